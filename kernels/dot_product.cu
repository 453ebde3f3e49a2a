// Dot product: each row times itself, as a fraction of a white row.
//
//   g(y, x) = sum over u of f(y, u)^2 / (width white)
//
// Whole numbers are rounded to nearest, ties to even; each channel has its own sums.
//
// level   demonstrates
// global  a thread a row: nothing is shared, and the reads of a warp lie a whole row apart
// shared  a block a row: each thread adds up its share, then a tree in shared memory, halved at each barrier
// tuned   as shared, but warps add up by shuffles, without a barrier: one barrier instead of eight
//
// Launch: global: blocks of 1 x THREADS threads over as many rows; else a block of THREADS threads a row.
// A sample takes 1 read, 2 operations and 1 write.
#include "common.cuh"

#ifndef THREADS
#define THREADS 256
#endif

#if SAMPLE_BITS == 32
typedef double Total;
__device__ inline Sample mean_of(Total total, int width) { return (float)(total / width); }
#else
typedef long long Total;  // of 2^31 squares of 16 bits
__device__ inline Sample mean_of(Total total, int width)
{
    return (Sample)divide_round(total, (Total)width * SAMPLE_MAX);
}
#endif

// The squares of channel c of a row, from `first` on in steps of `step` pixels.
__device__ inline Total squares(const Sample* row, const Geometry& g, int c, int first, int step)
{
    Total total = 0;
    for (int x = first; x < g.width; x += step) {
        const Total value = row[x * g.channels + c];
        total += value * value;
    }
    return total;
}

__device__ inline void fill(Sample* row, const Geometry& g, int c, Sample value, int first, int step)
{
    for (int x = first; x < g.width; x += step) row[x * g.channels + c] = value;
}

extern "C" __global__ void dot_product_global(const Sample* source, Sample* output, Geometry g)
{
    const int y = g.first + blockIdx.y * blockDim.y + threadIdx.y;
    if (y >= g.last) return;
    for (int c = 0; c < g.channels; ++c) {
        const Total total = squares(source + source_offset(g, y), g, c, 0, 1);
        fill(output + output_offset(g, y, 0), g, c, mean_of(total, g.width), 0, 1);
    }
}

extern "C" __global__ void dot_product_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ Total totals[];
    const int y = g.first + blockIdx.y, thread = threadIdx.x;
    for (int c = 0; c < g.channels; ++c) {
        totals[thread] = squares(source + source_offset(g, y), g, c, thread, THREADS);
        for (int half = THREADS / 2; half > 0; half /= 2) {
            __syncthreads();
            if (thread < half) totals[thread] += totals[thread + half];
        }
        __syncthreads();
        const Sample mean = mean_of(totals[0], g.width);
        __syncthreads();  // before the next channel overwrites the sums
        fill(output + output_offset(g, y, 0), g, c, mean, thread, THREADS);
    }
}

extern "C" __global__ void dot_product_tuned(const Sample* source, Sample* output, Geometry g)
{
    __shared__ Total totals[THREADS / 32];
    const int y = g.first + blockIdx.y, thread = threadIdx.x;
    for (int c = 0; c < g.channels; ++c) {
        Total total = squares(source + source_offset(g, y), g, c, thread, THREADS);
        for (int half = 16; half > 0; half /= 2)
            total += __shfl_xor_sync(0xffffffff, total, half);
        if (thread % 32 == 0) totals[thread / 32] = total;
        __syncthreads();
        total = 0;
        for (int warp = 0; warp < THREADS / 32; ++warp) total += totals[warp];
        __syncthreads();  // before the next channel overwrites the sums
        fill(output + output_offset(g, y, 0), g, c, mean_of(total, g.width), thread, THREADS);
    }
}
