// The largest magnitude of floats, as its bits: more than those of any finite number if one of them is
// infinite or NaN.
//
//   L = max over all i of bits(|x_i|)
//
// The bits of numbers that are not negative are in the order of the numbers, and those of NaN come last.
//
// A reduction in three stages, as in squared_error.cu: a thread looks at every THREADS * gridDim.x-th number;
// a block compares its threads, pairwise, in shared memory; the host compares the blocks.
//
// Launch: blocks of THREADS threads, any number of them; `largest` has one cell for each.
// 1 read and 2 operations a number.
#include "common.cuh"

#ifndef THREADS
#define THREADS 256  // a power of two
#endif

extern "C" __global__ void largest(const unsigned int* numbers, unsigned int* largest, unsigned int count)
{
    unsigned int most = 0;
    // Neighbouring threads read neighbouring numbers, so that each read of a warp is one piece.
    for (size_t i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS)
        most = max(most, numbers[i] & 0x7fffffff);

    __shared__ unsigned int cells[THREADS];
    cells[threadIdx.x] = most;
    // Each round compares the upper half of the cells with the lower one.
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();  // until all threads have written their numbers, which others read next
        if (threadIdx.x < half) cells[threadIdx.x] = max(cells[threadIdx.x], cells[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) largest[blockIdx.x] = cells[0];
}
