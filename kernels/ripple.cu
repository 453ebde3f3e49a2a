// Ripple: rings around the middle of the picture, weaker outwards.
//
//   g(y, x) = white (1/2 + cos(d - tick / 7) / (2 (d + 1)))      d = distance from the middle / 10
//
// level         what it shows
// single_block  one multiprocessor at work, the others idle
// global        a thread a pixel: the picture's rows and columns are the grid's
//
// Launch: blocks of 32 x 8 threads over the output, a thread a pixel (single_block: 32 x 32, once).
// A pixel takes about 20 operations, no read of the source and 1 write a sample.
#include "common.cuh"

__device__ inline Sample ripple(int y, int x, int tick, const Geometry& g)
{
    const float across = x - 0.5f * (g.width - 1), down = y - 0.5f * (g.height - 1);
    const float distance = 0.1f * sqrtf(across * across + down * down);
    const float value = 0.5f + 0.5f * cosf(distance - tick / 7.0f) / (distance + 1.0f);
#if SAMPLE_BITS == 32
    return value;
#else
    return (Sample)rintf(SAMPLE_MAX * value);
#endif
}

// Threads stride over the output by as many pixels as the grid has threads.
__device__ inline void draw(Sample* output, int tick, const Geometry& g)
{
    const int columns = gridDim.x * blockDim.x, rows = gridDim.y * blockDim.y;
    for (int y = g.first + blockIdx.y * blockDim.y + threadIdx.y; y < g.last; y += rows)
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < g.out_width; x += columns) {
            const Sample value = ripple(y, x, tick, g);
            for (int c = 0; c < g.channels; ++c) output[output_offset(g, y, x) + c] = value;
        }
}

extern "C" __global__ void ripple_single_block(
    const Sample* source, Sample* output, const int* tick, Geometry g)
{
    draw(output, *tick, g);
}

extern "C" __global__ void ripple_global(
    const Sample* source, Sample* output, const int* tick, Geometry g)
{
    draw(output, *tick, g);
}
