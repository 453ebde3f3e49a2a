// A kernel for the level shared: a block reads its tile, with a halo of RADIUS cells, just once.
// It copies the picture until you fill in the lines marked with ">>>".
#ifndef SIZE
#define SIZE @SIDE@
#endif
#define RADIUS (SIZE / 2)
#include "common.cuh"

extern "C" __global__ void @KERNEL@(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    Sample* const tile = (Sample*)memory;
    const int shift = valid_shift(RADIUS);  // border `valid`: the output begins further inside
    const int rows = blockDim.y + 2 * RADIUS, columns = blockDim.x + 2 * RADIUS;
    const int left = blockIdx.x * blockDim.x, x = left + threadIdx.x;
    // In large pictures a block has several tiles to compute.
    for (int top = g.first + blockIdx.y * blockDim.y; top < g.last; top += gridDim.y * blockDim.y) {
        for (int s = threadIdx.y; s < rows; s += blockDim.y)
            for (int t = threadIdx.x; t < columns; t += blockDim.x) {
                const int v = min(top + s, g.last - 1 + 2 * RADIUS);  // no row beyond the last halo
                const int row = border_index(v + shift - RADIUS, g.height);
                const int column = border_index(left + t + shift - RADIUS, g.width);
                for (int c = 0; c < g.channels; ++c) {
                    Sample cell = 0;  // where there is none: `constant` and `reduce`
                    if (row >= 0 && column >= 0)
                        cell = source[source_offset(g, row) + column * g.channels + c];
                    tile[(s * columns + t) * g.channels + c] = cell;
                }
            }
        __syncthreads();  // all cells of the tile are there
        const int y = top + threadIdx.y;
        if (x < g.out_width && y < g.last)
            for (int c = 0; c < g.channels; ++c) {
                Sample result = 0;
                for (int s = 0; s < SIZE; ++s)
                    for (int t = 0; t < SIZE; ++t) {
                        const int place = (threadIdx.y + s) * columns + threadIdx.x + t;
                        const Sample cell = tile[place * g.channels + c];
                        // >>> use the cell, for example: sum += cell;
                        if (s == RADIUS && t == RADIUS) result = cell;
                    }
                // >>> compute the result, for example: result = quotient(sum, SIZE * SIZE);
                output[output_offset(g, y, x) + c] = result;
            }
        __syncthreads();  // before the next tile takes the place of this one
    }
}
