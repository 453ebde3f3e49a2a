// Greyscale, ITU-R BT.601:
//
//   g = 0.299 R + 0.587 G + 0.114 B
//
// Whole numbers are exact: (299 R + 587 G + 114 B) / 1000, ties to even, or with ROUND_DOWN 1 the whole
// part. A grey image is copied.
//
// global   a thread a pixel: 3 reads (4 with alpha), 1 write (2), 5 operations
// tuned    a thread 16 bytes of each channel, read and written at once
//
// Launch: blocks of 32 x 8 threads stride over the output (tuned: 32 x 8 threads over 32 PIXELS x 8 pixels).
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
// Pixels of a thread: a word of 16 bytes of each channel.
#ifndef PIXELS
#define PIXELS (SAMPLE_BITS == 8 ? 16 : SAMPLE_BITS == 16 ? 8 : 4)
#endif

#if SAMPLE_BITS < 32
constexpr int PER_WORD = 32 / SAMPLE_BITS;  // samples
#endif

// Sample i of words that lie one after another.
__device__ inline Sample sample_of(const unsigned* words, int i)
{
#if SAMPLE_BITS == 32
    return __uint_as_float(words[i]);
#else
    return (Sample)(words[i / PER_WORD] >> i % PER_WORD * SAMPLE_BITS);
#endif
}

__device__ inline void put_sample(unsigned* words, int i, Sample sample)
{
#if SAMPLE_BITS == 32
    words[i] = __float_as_uint(sample);
#else
    words[i / PER_WORD] |= (unsigned)sample << i % PER_WORD * SAMPLE_BITS;
#endif
}

// Convert pixels of N samples, as many as a `Word` has samples, which is read N times.
template <int N, typename Word>
__device__ inline void convert(const Sample* pixels, Sample* target)
{
    constexpr int OUT = N > 2 ? N - 2 : N;
    constexpr int COUNT = sizeof(Word) / sizeof(Sample), WORDS = sizeof(Word) / 4;
    Word in[N], out[OUT];
#pragma unroll
    for (int i = 0; i < N; ++i) in[i] = __ldg((const Word*)pixels + i);
    unsigned from[N * WORDS], to[OUT * WORDS] = {};
    memcpy(from, in, sizeof(in));
#pragma unroll
    for (int p = 0; p < COUNT; ++p) {
        const Sample first = sample_of(from, p * N);
        put_sample(to, p * OUT,
            N > 2 ? grey_of(first, sample_of(from, p * N + 1), sample_of(from, p * N + 2)) : first);
        if (OUT == 2) put_sample(to, p * OUT + 1, sample_of(from, p * N + N - 1));
    }
    memcpy(out, to, sizeof(out));
#pragma unroll
    for (int i = 0; i < OUT; ++i) ((Word*)target)[i] = out[i];
}

// Convert `count` pixels, of which rows consist of whole words.
template <typename Word>
__device__ inline void convert_words(
    const Sample* pixels, Sample* target, int count, int channels, int out_channels)
{
    constexpr int COUNT = sizeof(Word) / sizeof(Sample);
    for (int p = 0; p < count; p += COUNT) {
        const Sample* from = pixels + p * channels;
        Sample* to = target + p * out_channels;
        if (channels == 3)
            convert<3, Word>(from, to);
        else if (channels == 4)
            convert<4, Word>(from, to);
        else if (channels == 2)
            convert<2, Word>(from, to);
        else
            convert<1, Word>(from, to);
    }
}

extern "C" __global__ void greyscale_tuned(const Sample* source, Sample* output, Geometry g)
{
    const int y = g.first + blockIdx.y * blockDim.y + threadIdx.y;
    const int x = (blockIdx.x * blockDim.x + threadIdx.x) * PIXELS;
    if (x >= g.out_width || y >= g.last) return;
    const Sample* pixels = source + source_offset(g, y) + (size_t)x * g.channels;
    const int out_channels = g.channels > 2 ? g.channels - 2 : g.channels;
    Sample* target = output + ((size_t)(y - g.output_row) * g.out_width + x) * out_channels;
    const int count = min(PIXELS, g.out_width - x);
    if (g.width % PIXELS == 0)
        convert_words<uint4>(pixels, target, PIXELS, g.channels, out_channels);
#if SAMPLE_BITS < 32
    else if (g.width % 4 == 0)
        convert_words<Quad>(pixels, target, count, g.channels, out_channels);
#endif
    else
        for (int p = 0; p < count; ++p)
            convert_pixel(pixels + p * g.channels, target + p * out_channels, g.channels);
}
#endif
