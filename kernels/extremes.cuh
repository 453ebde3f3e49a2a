// Minimum and maximum: the filter for the cells around a pixel, and level tuned. LOWEST has to be defined.
//
// Tuned: a block reads its tile into shared memory as level shared does, and writes behind it the extremes of
// the SIZE cells of each column; each thread then compares SIZE of those. Border reduce is nearest there: a cell
// outside the image repeats one that counts.
#ifndef KERNELSCOPE_EXTREMES
#define KERNELSCOPE_EXTREMES
#include "levels.cuh"

__device__ inline Sample extreme(Sample a, Sample b) { return (a < b) == LOWEST ? a : b; }

struct Extreme {
    template <typename Cells>
    __device__ inline Sample operator()(const Cells& cells) const
    {
        Sample found = cells.row(0)[0];
#pragma unroll Cells::ROWS
        for (int s = -RADIUS; s <= RADIUS; ++s) {
            const auto row = cells.row(s);
#pragma unroll Cells::COLUMNS
            for (int t = -RADIUS; t <= RADIUS; ++t)
                if (row.counts(t)) found = extreme(found, row[t]);
        }
        return found;
    }
};

#if TUNED
__device__ inline void by_columns(const Sample* source, Sample* output, const Geometry& g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    Sample* const lines = (Sample*)memory + Tile::ROWS * Tile::PITCH;
    const int right = g.out_width + threadIdx.x, bottom = g.last + threadIdx.y;
    for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < right; x += gridDim.x * blockDim.x)
        for (int y = g.first + blockIdx.y * blockDim.y + threadIdx.y; y < bottom;
             y += gridDim.y * blockDim.y) {
            const Tile tile = load_tile(memory, source, g, Place{y, x});
            Sample* const line = lines + threadIdx.y * Tile::PITCH;
            if (y < g.last)
                for (int t = threadIdx.x; t < Tile::PITCH; t += BLOCK_COLUMNS) {
                    const Sample* column = tile.samples + threadIdx.y * Tile::PITCH + t;
                    Sample found = column[0];
#pragma unroll
                    for (int s = 1; s < SIZE; ++s) found = extreme(found, column[s * Tile::PITCH]);
                    line[t] = found;
                }
            __syncthreads();
            if (x < g.out_width && y < g.last) {
                Sample* target = output + (unsigned)((y - g.output_row) * g.out_width + x) * CHANNELS;
                for (int c = 0; c < CHANNELS; ++c) {
                    const Sample* cells = line + threadIdx.x * CHANNELS + c;
                    Sample found = cells[0];
#pragma unroll
                    for (int t = 1; t < SIZE; ++t) found = extreme(found, cells[t * CHANNELS]);
                    target[c] = found;
                }
            }
            __syncthreads();
        }
}
#endif

#endif
