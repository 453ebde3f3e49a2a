// The samples that tuned kernels leave out: those whose cells need a border.
#ifndef KERNELSCOPE_EDGES
#define KERNELSCOPE_EDGES
#include "cells.cuh"
#include "common.cuh"

// Output rows [top, bottom) and samples [left, right) of each.
struct Part {
    int top, bottom, left, right;
};

__device__ inline int clamp(int i, int low, int high) { return max(low, min(i, high)); }

// The samples of the launch outside `part`: output = filter(cells). All threads of the launch share them:
// one block would take long for those of its own tile, while the others have nothing left to do.
template <int REACH, typename Filter>
__device__ inline void compute_around(
    const Sample* source, Sample* output, const Geometry& g, const Part& part, Filter filter)
{
    const Part all{g.first, g.last, 0, g.out_width * g.channels};
    const int shift = valid_shift(REACH);
    const int own = threadIdx.y * blockDim.x + threadIdx.x, block = blockDim.x * blockDim.y;
    const size_t threads = (size_t)gridDim.x * gridDim.y * block;
    size_t i = (size_t)(blockIdx.y * gridDim.x + blockIdx.x) * block + own;
#pragma unroll 1
    for (int side = 0; side < 4; ++side) {
        const int top = side == 0 ? all.top : side == 1 ? part.bottom : part.top;
        const int bottom = side == 0 ? part.top : side == 1 ? all.bottom : part.bottom;
        const int left = side == 3 ? part.right : all.left;
        const int right = side == 2 ? part.left : all.right;
        const int columns = right - left;
        const size_t count = (size_t)columns * (bottom - top);
#pragma unroll 1
        for (; i < count; i += threads) {
            const int y = top + (int)(i / columns), k = left + (int)(i % columns);
            const int x = k / g.channels, c = k % g.channels;
            const Rim<REACH, const Sample*> cells(source, g, y + shift, x + shift, c, g.channels);
            output[output_offset(g, y, x) + c] = filter(cells);
        }
        i -= count;
    }
}

#endif
