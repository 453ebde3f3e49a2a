// Level tuned of filters that read masks or tables: a thread computes STRIP pixels, one below another, for which
// it reads the cells that they share once, from a tile of one channel in shared memory.
#ifndef KERNELSCOPE_STRIPS
#define KERNELSCOPE_STRIPS
#include "levels.cuh"

#define STRIP 4

struct StripTile {
    static constexpr int ROWS = STRIP * BLOCK_ROWS + 2 * RADIUS;
    static constexpr int PITCH = BLOCK_COLUMNS + 2 * RADIUS;
};

// The tile, and behind it whatever a filter keeps there.
__device__ inline void* strip_memory()
{
    extern __shared__ __align__(16) unsigned char memory[];
    return memory;
}

// Read channel c of this block's tile, borders applied; `y` and `x` are those of its first pixel.
__device__ inline void load_strips(Sample* tile, const Sample* source, const Geometry& g, int y, int x, int c)
{
    const int end = g.last + SHIFT + RADIUS;  // behind the last row that is needed, and there
    for (int s = threadIdx.y; s < StripTile::ROWS; s += BLOCK_ROWS)
        for (int t = threadIdx.x; t < StripTile::PITCH; t += BLOCK_COLUMNS) {
            const int row = y + SHIFT - RADIUS + s, column = x + SHIFT - RADIUS + t;
            tile[s * StripTile::PITCH + t] = row < end ? fetch(source, g, row, column, c) : 0;
        }
}

// output = filter(the strip's first window in the tile), or filter(cells) for windows that the border cuts.
template <typename Filter>
__device__ inline void compute_strips(
    const Sample* source, Sample* output, const Geometry& g, const Filter& filter)
{
    Sample* const tile = (Sample*)strip_memory();
    for (int left = blockIdx.x * BLOCK_COLUMNS; left < g.out_width; left += gridDim.x * BLOCK_COLUMNS)
        for (int top = g.first + blockIdx.y * BLOCK_ROWS * STRIP; top < g.last;
             top += gridDim.y * BLOCK_ROWS * STRIP)
#pragma unroll 1
            for (int c = 0; c < g.channels; ++c) {
                load_strips(tile, source, g, top, left, c);
                __syncthreads();
                const int x = left + threadIdx.x, y = top + STRIP * threadIdx.y;
                if (x < g.out_width && y < g.last) {
                    Sample results[STRIP];
                    filter(tile + STRIP * threadIdx.y * StripTile::PITCH + threadIdx.x, results);
#pragma unroll
                    for (int r = 0; r < STRIP; ++r) {
                        if (y + r >= g.last) break;
                        const int v = y + r + SHIFT, u = x + SHIFT;
                        if (BORDER == BORDER_REDUCE
                            && (v < RADIUS || v >= g.height - RADIUS || u < RADIUS
                                || u >= g.width - RADIUS))
                            results[r] =
                                filter(Rim<RADIUS, const Sample*>(source, g, v, u, c, g.channels));
                        output[output_offset(g, y + r, x) + c] = results[r];
                    }
                }
                __syncthreads();
            }
}

#endif
