// Sum of squared differences of two pictures, for their mean squared error and PSNR:
//
//   E = sum over all samples i of (a_i - b_i)^2
//
// A reduction in three stages, always in the same order, so that floats give the same bits again:
// a thread adds up every THREADS * gridDim.x-th sample; a block adds up its threads, pairwise, in
// shared memory; the host adds up the blocks. Exact for whole numbers: 64 bits hold 2^31 squares
// of 65535.
//
// Launch: blocks of THREADS threads, any number of them; `sums` has one cell for each.
// 2 reads and 3 operations a sample.
#include "common.cuh"

#ifndef THREADS
#define THREADS 256  // a power of two
#endif

#if SAMPLE_BITS == 32
typedef double Total;
#else
typedef unsigned long long Total;
#endif

__device__ inline Total squared_difference(Sample a, Sample b)
{
#if SAMPLE_BITS == 32
    const double difference = (double)a - b;
#else
    const unsigned int difference = a > b ? a - b : b - a;
#endif
    return (Total)difference * difference;
}

extern "C" __global__ void squared_error(
    const Sample* first, const Sample* second, Total* sums, unsigned int samples)
{
    Total sum = 0;
    // Neighbouring threads read neighbouring samples, so that each read of a warp is one piece.
    for (unsigned int i = blockIdx.x * THREADS + threadIdx.x; i < samples; i += gridDim.x * THREADS)
        sum += squared_difference(first[i], second[i]);

    __shared__ Total cells[THREADS];
    cells[threadIdx.x] = sum;
    // Each round adds the upper half of the cells to the lower one.
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();  // until all threads have written their sums, which others read next
        if (threadIdx.x < half) cells[threadIdx.x] += cells[threadIdx.x + half];
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = cells[0];
}
