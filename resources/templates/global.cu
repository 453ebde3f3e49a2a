// A kernel for the level global: each thread computes a pixel and reads all cells from global memory.
// It copies the picture until you fill in the lines marked with ">>>".
#ifndef SIZE
#define SIZE @SIDE@
#endif
#define RADIUS (SIZE / 2)
#include "common.cuh"

extern "C" __global__ void @KERNEL@(const Sample* source, Sample* output, Geometry g)
{
    const int shift = valid_shift(RADIUS);  // border `valid`: the output begins further inside
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= g.out_width) return;
    // In large pictures a block has more rows to compute than threads.
    for (int y = g.first + blockIdx.y * blockDim.y + threadIdx.y; y < g.last; y += gridDim.y * blockDim.y)
        for (int c = 0; c < g.channels; ++c) {
            Sample result = 0;
            for (int s = -RADIUS; s <= RADIUS; ++s)
                for (int t = -RADIUS; t <= RADIUS; ++t) {
                    const int row = border_index(y + shift + s, g.height);
                    const int column = border_index(x + shift + t, g.width);
                    if (row < 0 || column < 0) continue;  // there is no cell outside the picture
                    const Sample cell = source[source_offset(g, row) + column * g.channels + c];
                    // >>> use the cell, for example: sum += cell;
                    if (s == 0 && t == 0) result = cell;
                }
            // >>> compute the result, for example: result = quotient(sum, SIZE * SIZE);
            output[output_offset(g, y, x) + c] = result;
        }
}
