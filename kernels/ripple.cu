// Ripple: rings around the middle of the picture, weaker outwards.
//
//   g(y, x) = white (1/2 + cos(d - tick / 7) / (2 (d + 1)))      d = distance from the middle / 10
//
// level         demonstrates
// single_block  one multiprocessor at work, the others idle
// global        a thread a pixel: the picture's rows and columns are the grid's
//
// Launch: blocks of 32 x 8 threads over the output, a thread a pixel (single_block: 32 x 32, once).
// A pixel takes about 30 operations, no read of the source and 1 write a sample.
#include "common.cuh"

// A polynomial of factors that Python hands over makes the cosine, and _rn keeps the compiler from merging a
// product and a sum: each step is rounded as the CPU rounds it, so that both give the same bytes.
//
// wave: turns a pixel, the part of a turn that the rings have moved, factors of v, v^3, ... v^9 in sin(2 pi v)
__device__ inline Sample ripple(int y, int x, const float* wave, const Geometry& g)
{
    const float across = x - 0.5f * (g.width - 1), down = y - 0.5f * (g.height - 1);
    const float distance =
        __fsqrt_rn(__fadd_rn(__fmul_rn(across, across), __fmul_rn(down, down)));
    const float turns = __fsub_rn(__fmul_rn(distance, wave[0]), wave[1]);
    const float v = 0.25f - fabsf(turns - rintf(turns));  // the cosine is the sine of this
    const float square = __fmul_rn(v, v);
    float sine = wave[6];
#pragma unroll
    for (int i = 5; i > 1; --i) sine = __fadd_rn(__fmul_rn(sine, square), wave[i]);
    const float value =
        __fadd_rn(0.5f, __fdiv_rn(__fmul_rn(5, __fmul_rn(sine, v)), distance + 10));
#if SAMPLE_BITS == 32
    return value;
#else
    return (Sample)rintf(SAMPLE_MAX * value);
#endif
}

// Threads stride over the output by as many pixels as the grid has threads.
__device__ inline void draw(Sample* output, const float* wave, const Geometry& g)
{
    const int columns = gridDim.x * blockDim.x, rows = gridDim.y * blockDim.y;
    for (int y = g.first + blockIdx.y * blockDim.y + threadIdx.y; y < g.last; y += rows)
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < g.out_width; x += columns) {
            const Sample value = ripple(y, x, wave, g);
            for (int c = 0; c < g.channels; ++c) output[output_offset(g, y, x) + c] = value;
        }
}

extern "C" __global__ void ripple_single_block(
    const Sample* source, Sample* output, const float* wave, Geometry g)
{
    draw(output, wave, g);
}

extern "C" __global__ void ripple_global(
    const Sample* source, Sample* output, const float* wave, Geometry g)
{
    draw(output, wave, g);
}
