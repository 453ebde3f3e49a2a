// Shared by all kernels: sample types, image geometry, borders, rounding.
//
// Python replaces the line  #include "common.cuh"  by this text, so that one string is compiled
// and hashed. Every macro has a default, so each .cu also compiles on its own.
#ifndef KERNELSCOPE_COMMON
#define KERNELSCOPE_COMMON

// What Python decides: the bits of a sample (8, 16: unsigned; 32: float) and the border.
#ifndef SAMPLE_BITS
#define SAMPLE_BITS 8
#endif
#ifndef BORDER
#define BORDER 0
#endif

// The order of app.filters.spec.Border.
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

// How many rows of a mask to unroll: the code of large masks would be slow to compile.
#define UNROLL_ROWS(size) ((size) <= 3 ? (size) : 1)

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

// The index inside [0, n) that stands for i < 0 or i >= n, or -1 if the cell counts as zero. Not
// inlined: few cells need it, and every read of a kernel would carry a copy.
__device__ __noinline__ int outside_index(int i, int n)
{
#if BORDER == BORDER_NEAREST
    return i < 0 ? 0 : n - 1;
#elif BORDER == BORDER_WRAP
    i %= n;
    return i < 0 ? i + n : i;
#elif BORDER == BORDER_REFLECT
    i %= 2 * n;
    if (i < 0) i += 2 * n;
    return i < n ? i : 2 * n - 1 - i;
#elif BORDER == BORDER_MIRROR
    if (n == 1) return 0;
    i %= 2 * n - 2;
    if (i < 0) i += 2 * n - 2;
    return i < n ? i : 2 * n - 2 - i;
#else
    return -1;
#endif
}

// The index inside [0, n) that stands for i, or -1 if the cell is outside and counts as zero.
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

// A block's part of the image in shared memory: its pixels and `radius` more on each side.
struct Tile {
    const Sample* samples;
    int top, left, columns;
};

__device__ inline Sample fetch(const Tile& tile, const Geometry& g, int y, int x, int c)
{
    return tile.samples[((y - tile.top) * tile.columns + x - tile.left) * g.channels + c];
}

// Read this block's tile into `memory`, borders applied; every thread has to call this.
__device__ inline Tile load_tile(void* memory, const Sample* source, const Geometry& g, int radius)
{
    Sample* samples = (Sample*)memory;
    const int top = g.first + blockIdx.y * blockDim.y + valid_shift(radius) - radius;
    const int left = blockIdx.x * blockDim.x + valid_shift(radius) - radius;
    const int columns = blockDim.x + 2 * radius;
    // A strip ends with the last row that is needed, which the last blocks would read beyond.
    const int rows =
        min((int)blockDim.y + 2 * radius, g.last + valid_shift(radius) + radius - top);
    for (int s = threadIdx.y; s < rows; s += blockDim.y)
        for (int t = threadIdx.x; t < columns; t += blockDim.x)
#pragma unroll 1
            for (int c = 0; c < g.channels; ++c)
                samples[(s * columns + t) * g.channels + c] =
                    fetch(source, g, top + s, left + t, c);
    __syncthreads();
    return Tile{samples, top, left, columns};
}

// A thread a pixel: output = value(y, x, c) for the source pixel (y, x) that belongs to it.
template <typename Value>
__device__ inline void compute_pixel(Sample* output, const Geometry& g, int radius, Value value)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = g.first + blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= g.out_width || y >= g.last) return;
    const int shift = valid_shift(radius);
#pragma unroll 1
    for (int c = 0; c < g.channels; ++c)
        output[output_offset(g, y, x) + c] = value(y + shift, x + shift, c);
}

// One block for all: its threads stride over the output.
template <typename Value>
__device__ inline void compute_striding(Sample* output, const Geometry& g, int radius, Value value)
{
    const int shift = valid_shift(radius);
    for (int y = g.first + threadIdx.y; y < g.last; y += blockDim.y)
        for (int x = threadIdx.x; x < g.out_width; x += blockDim.x)
#pragma unroll 1
            for (int c = 0; c < g.channels; ++c)
                output[output_offset(g, y, x) + c] = value(y + shift, x + shift, c);
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
#endif

#endif
