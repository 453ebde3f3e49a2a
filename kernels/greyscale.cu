// Greyscale, ITU-R BT.601:
//
//   g = 0.299 R + 0.587 G + 0.114 B
//
// Whole numbers are exact: (299 R + 587 G + 114 B) / 1000, ties to even, or with ROUND_DOWN 1 the whole
// part. A grey image is copied.
//
// global   a thread a pixel: 3 reads (4 with alpha), 1 write (2), 5 operations
// tuned    a thread four pixels side by side, read and written as whole quads
//
// Launch: blocks of 32 x 8 threads stride over the output (tuned: 32 x 8 threads over 128 x 8 pixels).
#define RADIUS 0
#include "common.cuh"
#include "levels.cuh"
#if TUNED
#include "tuned_rows.cuh"
#endif

#ifndef ROUND_DOWN
#define ROUND_DOWN 0
#endif

__device__ inline Sample grey_of(Sample red, Sample green, Sample blue)
{
#if SAMPLE_BITS == 32
    return (float)__dadd_rn(
        __dadd_rn(__dmul_rn(0.299, red), __dmul_rn(0.587, green)), __dmul_rn(0.114, blue));
#else
    const int thousandths = 299 * red + 587 * green + 114 * blue;
    return ROUND_DOWN ? (Sample)(thousandths / 1000) : quotient(thousandths, 1000);
#endif
}

__device__ inline void convert_pixel(const Sample* pixel, Sample* target, int channels)
{
    target[0] = channels > 2 ? grey_of(pixel[0], pixel[1], pixel[2]) : pixel[0];
    if (channels == 2) target[1] = pixel[1];
    if (channels == 4) target[1] = pixel[3];
}

#if !TUNED
extern "C" __global__ void __launch_bounds__(THREADS)
    greyscale_global(const Sample* source, Sample* output, Geometry g)
{
    constexpr int out_channels = CHANNELS > 2 ? CHANNELS - 2 : CHANNELS;
    for (int y = g.first + blockIdx.y * blockDim.y + threadIdx.y; y < g.last;
         y += gridDim.y * blockDim.y)
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < g.out_width;
             x += gridDim.x * blockDim.x) {
            const unsigned target = (y - g.output_row) * g.out_width + x;
            convert_pixel(row_of(source, g, y, CHANNELS) + x * CHANNELS,
                output + target * out_channels, CHANNELS);
        }
}
#else
// Convert QUAD pixels of N samples.
template <int N>
__device__ inline void convert(const Sample* pixels, Sample* target)
{
    constexpr int OUT = N > 2 ? N - 2 : N;
    Sample in[QUAD * N];
    Result out[OUT][QUAD];
#pragma unroll
    for (int q = 0; q < N; ++q) {
        const Quad quad = __ldg((const Quad*)pixels + q);
#pragma unroll
        for (int i = 0; i < QUAD; ++i) in[q * QUAD + i] = number_of<Sample>(quad, i);
    }
#pragma unroll
    for (int p = 0; p < QUAD; ++p) {
        const Sample* pixel = in + p * N;
        const int o = p * OUT;
        out[o / QUAD][o % QUAD] = N > 2 ? grey_of(pixel[0], pixel[1], pixel[2]) : pixel[0];
        if (OUT == 2) out[(o + 1) / QUAD][(o + 1) % QUAD] = pixel[N - 1];
    }
#pragma unroll
    for (int q = 0; q < OUT; ++q) store(target + q * QUAD, out[q], true);
}

extern "C" __global__ void greyscale_tuned(const Sample* source, Sample* output, Geometry g)
{
    const int y = g.first + blockIdx.y * blockDim.y + threadIdx.y;
    const int x = (blockIdx.x * blockDim.x + threadIdx.x) * QUAD;
    if (x >= g.out_width || y >= g.last) return;
    const Sample* pixels = source + source_offset(g, y) + (size_t)x * g.channels;
    const int out_channels = g.channels > 2 ? g.channels - 2 : g.channels;
    Sample* target = output + ((size_t)(y - g.output_row) * g.out_width + x) * out_channels;
    if (whole_quads(g.width)) {
        if (g.channels == 3)
            convert<3>(pixels, target);
        else if (g.channels == 4)
            convert<4>(pixels, target);
        else if (g.channels == 2)
            convert<2>(pixels, target);
        else
            convert<1>(pixels, target);
        return;
    }
    for (int p = 0; p < QUAD && x + p < g.out_width; ++p)
        convert_pixel(pixels + p * g.channels, target + p * out_channels, g.channels);
}
#endif
