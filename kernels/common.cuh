// Shared by all kernels: sample types, image geometry, borders, rounding.
//
// Python replaces the line  #include "common.cuh"  by this text, so that one string is compiled
// and hashed. Every macro has a default, so each .cu also compiles on its own.
#ifndef KERNELSCOPE_COMMON
#define KERNELSCOPE_COMMON

// Set by the plan: the bits of a sample (8, 16: unsigned; 32: float) and the border.
#ifndef SAMPLE_BITS
#define SAMPLE_BITS 8
#endif
#ifndef BORDER
#define BORDER 0
#endif
// Which kernels to compile: those of the levels up to texture, or that of *tuned* alone.
#ifndef TUNED
#define TUNED 0
#endif

// The order of kernelscope.schema.borders.Border.
#define BORDER_REFLECT 0
#define BORDER_MIRROR 1
#define BORDER_NEAREST 2
#define BORDER_CONSTANT 3
#define BORDER_WRAP 4
#define BORDER_VALID 5
#define BORDER_REDUCE 6

#if SAMPLE_BITS == 8
typedef unsigned char Sample;
typedef int Sum;  // of up to 2^23 samples
#define SAMPLE_MAX 255
#elif SAMPLE_BITS == 16
typedef unsigned short Sample;
typedef int Sum;  // of up to 2^15 samples
#define SAMPLE_MAX 65535
#else
typedef float Sample;
typedef float Sum;
#endif

// An image in device memory. Rows are packed; the channels of a pixel lie side by side. A launch
// computes the output rows first <= y < last. When an image does not fit into device memory,
// only some of its rows are there: the one at the start of the buffer is row source_row (rows
// go on at row 0 after the last one, which `wrap` needs), and the output buffer starts at output_row.
struct Geometry {
    int width, height;  // of the source, in pixels
    int channels;
    int out_width;  // of the output, in pixels
    int first, last;
    int source_row, output_row;
    int hardware_border;  // 1 where the texture unit itself treats the border
};

// The index inside [0, n) that stands for i, or -1 if the cell is outside and counts as zero. A window may
// be larger than the image and reach it only after several reflections.
__device__ inline int folded_index(int i, int n)
{
#if BORDER == BORDER_NEAREST
    return max(0, min(i, n - 1));
#elif BORDER == BORDER_WRAP
    while (i < 0) i += n;
    while (i >= n) i -= n;
    return i;
#elif BORDER == BORDER_REFLECT
    while ((unsigned)i >= (unsigned)n) i = i < 0 ? -1 - i : 2 * n - 1 - i;
    return i;
#elif BORDER == BORDER_MIRROR
    if (n == 1) return 0;
    while ((unsigned)i >= (unsigned)n) i = i < 0 ? -i : 2 * n - 2 - i;
    return i;
#else
    return (unsigned)i < (unsigned)n ? i : -1;
#endif
}

// The same out of line, for kernels that would carry many copies.
__device__ __noinline__ int outside_index(int i, int n) { return folded_index(i, n); }

__device__ inline int border_index(int i, int n)
{
    return (unsigned)i < (unsigned)n ? i : outside_index(i, n);
}

// Whether the cell (y, x) counts: always, except outside the image under `reduce`.
__device__ inline bool counts(const Geometry& g, int y, int x)
{
#if BORDER == BORDER_REDUCE
    return 0 <= y && y < g.height && 0 <= x && x < g.width;
#else
    return true;
#endif
}

// Where the samples of source row y begin.
__device__ inline size_t source_offset(const Geometry& g, int y)
{
    int row = y - g.source_row;
    if (row < 0) row += g.height;
    return (size_t)row * g.width * g.channels;
}

// Where the samples of output pixel (y, x) go.
__device__ inline size_t output_offset(const Geometry& g, int y, int x)
{
    return ((size_t)(y - g.output_row) * g.out_width + x) * g.channels;
}

// Channel c of the source pixel (y, x), which may lie outside the image.
__device__ inline Sample fetch(const Sample* source, const Geometry& g, int y, int x, int c)
{
    y = border_index(y, g.height);
    x = border_index(x, g.width);
    if (y < 0 || x < 0) return 0;
    return source[source_offset(g, y) + (size_t)x * g.channels + c];
}

// `valid` results begin `radius` pixels inside the image: added to output coordinates.
__device__ inline int valid_shift(int radius)
{
    return BORDER == BORDER_VALID ? radius : 0;
}

#if SAMPLE_BITS < 32
// numerator / denominator to the nearest integer, ties to even; denominator > 0.
template <typename Integer>
__device__ inline Integer divide_round(Integer numerator, Integer denominator)
{
    Integer quotient = numerator / denominator;
    Integer rest = numerator - quotient * denominator;
    if (rest < 0) {
        quotient -= 1;
        rest += denominator;
    }
    const Integer twice = 2 * rest;
    if (twice > denominator || (twice == denominator && (quotient & 1))) quotient += 1;
    return quotient;
}

template <typename Integer>
__device__ inline Sample saturate(Integer value)
{
    return value < 0 ? 0 : value > SAMPLE_MAX ? SAMPLE_MAX : (Sample)value;
}

// The mean of `count` samples, to nearest, ties to even; the compiler turns a constant count into factors.
template <typename Total>
__device__ inline Sample quotient(Total sum, int count)
{
    const unsigned total = (unsigned)sum, n = count, rounded = (total + n / 2) / n;
    const bool is_tie = n % 2 == 0 && rounded * n == total + n / 2;
    return (Sample)(is_tie ? rounded & ~1u : rounded);
}
#else
template <typename Total>
__device__ inline Sample quotient(Total sum, int count)
{
    return (Sample)(sum / count);
}
#endif

#endif
