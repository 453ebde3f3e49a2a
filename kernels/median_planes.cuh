// tuned, large masks: one bit of a whole row of the window in each instruction.
//
// Launch: blocks of 32 x 8 threads for 32 x 32 pixels. A block takes its tile apart into bit planes: a word
// of plane b holds bit b of 32 neighbours. The median is again found bit by bit from the highest, but the
// cells of a row that still agree with the bits found are one word, and to count those whose next bit is
// zero takes one population count a row: about 6 SIZE operations for each bit of a sample.
#ifndef KERNELSCOPE_MEDIAN_PLANES
#define KERNELSCOPE_MEDIAN_PLANES
#include "median_search.cuh"

#define ROWS (32 + SIZE - 1)

__device__ inline void load_planes(
    uint2 (&planes)[SAMPLE_BITS][ROWS], const Sample* source, const Geometry& g, int c)
{
    const int shift = valid_shift(RADIUS) - RADIUS;
    const int top = g.first + blockIdx.y * 32 + shift;
    const int left = blockIdx.x * 32 + shift + threadIdx.x;
    const int bottom = g.last - 1 + shift + 2 * RADIUS;  // rows below are not needed, nor always there
    for (int i = threadIdx.y; i < ROWS; i += BLOCK_ROWS) {
        const int y = min(top + i, bottom);
        const unsigned low = to_key(fetch(source, g, y, left, c));
        const unsigned high = to_key(fetch(source, g, y, left + 32, c));
#pragma unroll
        for (int bit = 0; bit < SAMPLE_BITS; ++bit) {
            const unsigned x = __ballot_sync(~0u, low >> bit & 1);
            const unsigned y = __ballot_sync(~0u, high >> bit & 1);
            if (threadIdx.x == bit) planes[bit][i] = make_uint2(x, y);
        }
    }
    __syncthreads();
}

// Which cells count in row y of a window around column x, as bits.
__device__ inline unsigned counted_columns(const Geometry& g, int y, int x)
{
    unsigned columns = (1u << SIZE) - 1;
#if BORDER == BORDER_REDUCE
    if (y < 0 || y >= g.height) return 0;
    if (x < RADIUS) columns &= ~0u << (RADIUS - x);
    if (x + RADIUS >= g.width) columns &= ~0u >> (32 - (g.width - x + RADIUS));
#endif
    return columns;
}

extern "C" __launch_bounds__(THREADS) __global__ void median_tuned(
    const Sample* source, Sample* output, Geometry g)
{
    __shared__ uint2 planes[SAMPLE_BITS][ROWS];
    const int x = blockIdx.x * 32 + threadIdx.x;
    for (int c = 0; c < g.channels; ++c) {
        if (c > 0) __syncthreads();
        load_planes(planes, source, g, c);
        for (int row = threadIdx.y; row < 32; row += BLOCK_ROWS) {
            const int y = g.first + blockIdx.y * 32 + row;
            if (x >= g.out_width || y >= g.last) continue;

            unsigned alive[SIZE];  // the cells of each row that agree with `key` so far
            int rank = -1;
#pragma unroll
            for (int s = 0; s < SIZE; ++s) {
                alive[s] = counted_columns(g, y + s - RADIUS, x);
                rank += __popc(alive[s]);
            }
            rank /= 2;
            unsigned key = 0;
#pragma unroll 1
            for (int bit = SAMPLE_BITS - 1; bit >= 0; --bit) {
                unsigned zeros[SIZE];
                int count = 0;
#pragma unroll
                for (int s = 0; s < SIZE; ++s) {
                    const uint2 plane = planes[bit][row + s];
                    zeros[s] = alive[s] & ~__funnelshift_r(plane.x, plane.y, threadIdx.x);
                    count += __popc(zeros[s]);
                }
                const bool one = rank >= count;
                if (one) {
                    key |= 1u << bit;
                    rank -= count;
                }
                const unsigned mask = one ? ~0u : 0;
#pragma unroll
                for (int s = 0; s < SIZE; ++s) alive[s] = (alive[s] & mask) ^ zeros[s];
            }
            output[output_offset(g, y, x) + c] = from_key(key);
        }
    }
}

#endif
