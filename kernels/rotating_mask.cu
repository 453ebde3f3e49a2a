// Rotating mask:
//
//   of the nine 3 x 3 windows that contain the pixel, the mean of the one with the smallest variance;
//   of windows with equal variance, the smallest mean
//
// The variance of n cells with sum S and sum of squares Q is (n Q - S^2) / n^2: compared as whole numbers
// without division. Floats are summed as doubles in the order of the CPU code, without fused
// multiply-adds, so that both choose the same window.
//
// level         what it shows                                      image
// single_block  one multiprocessor at work, the others idle        global
// global        a thread a pixel, everything from global memory    global
// shared        a block reads its tile and halo just once          shared
// texture       the texture unit fetches and treats borders        texture
// tuned         four samples a thread, each window measured once   global
//
// Launch: blocks of 32 x 8 threads over the output, a thread a pixel (single_block: 32 x 32, once).
// A sample takes 81 cached reads and about 250 operations; at best 1 read from and 1 write to device
// memory. Tuned: a window belongs to nine pixels but is measured once (in colour three times).
#include "common.cuh"
#include "texture.cuh"
#include "tuned_rows.cuh"

#define RADIUS 2

#if SAMPLE_BITS == 32
typedef double Wide;
#define MULTIPLY(a, b) __dmul_rn(a, b)
#define ADD(a, b) __dadd_rn(a, b)
#else
typedef long long Wide;
#define MULTIPLY(a, b) ((a) * (b))
#define ADD(a, b) ((a) + (b))
#endif

// The filter at (y, x) of channel c; Source is a pointer, a texture or a tile.
template <typename Source>
__device__ inline Sample rotating_mask(const Source& source, const Geometry& g, int y, int x, int c)
{
    Wide best_sum = 0, best_variance = 0;  // the variance times n^2
    int best_count = 0;
    for (int v = -1; v <= 1; ++v)
        for (int u = -1; u <= 1; ++u) {
            Wide sum = 0, squares = 0;
            int count = 0;
            for (int s = -1; s <= 1; ++s)
                for (int t = -1; t <= 1; ++t) {
                    const Wide sample = fetch(source, g, y + v + s, x + u + t, c);
                    sum = ADD(sum, sample);
                    squares = ADD(squares, MULTIPLY(sample, sample));
                    count += counts(g, y + v + s, x + u + t);
                }
            if (count == 0) continue;
            const Wide n = count, m = best_count;
            const Wide variance = ADD(MULTIPLY(n, squares), -MULTIPLY(sum, sum));
            const Wide here = MULTIPLY(variance, MULTIPLY(m, m));
            const Wide best = MULTIPLY(best_variance, MULTIPLY(n, n));
            if (best_count == 0 || here < best ||
                (here == best && MULTIPLY(sum, m) < MULTIPLY(best_sum, n))) {
                best_sum = sum;
                best_variance = variance;
                best_count = count;
            }
        }
#if SAMPLE_BITS == 32
    return (float)(best_sum / best_count);
#else
    return (Sample)divide_round<int>((int)best_sum, best_count);
#endif
}

extern "C" __global__ void rotating_mask_single_block(
    const Sample* source, Sample* output, Geometry g)
{
    compute_striding(output, g, RADIUS, [&](int y, int x, int c) {
        return rotating_mask(source, g, y, x, c);
    });
}

extern "C" __global__ void rotating_mask_global(const Sample* source, Sample* output, Geometry g)
{
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return rotating_mask(source, g, y, x, c);
    });
}

extern "C" __global__ void rotating_mask_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const Tile tile = load_tile(memory, source, g, RADIUS);
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return rotating_mask(tile, g, y, x, c);
    });
}

extern "C" __global__ void rotating_mask_texture(
    cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return rotating_mask(source, g, y, x, c);
    });
}

// How even a window is: the smaller, the more; of equally even ones the darker. All windows have nine
// cells here, so that the variance is 9 Q - S^2. Integers are one key that ends with the rounded mean.
#if SAMPLE_BITS == 8
typedef float Cell;  // exact: 9 Q < 2^24
typedef float Stored;
struct Evenness {
    unsigned key;

    __device__ inline void measure(float sum, float squares)
    {
        // 2^23 more puts whole numbers into the low bits of a float, and rounds (9 is odd: no ties).
        const unsigned variance =
            __float_as_uint(fmaf(-sum, sum, fmaf(9.0f, squares, 8388608.0f)));
        const unsigned mean = __float_as_uint(fmaf(sum, 1.0f / 9.0f, 8388608.0f));
        key = __byte_perm(mean, variance, 0x6540);
    }
    __device__ inline void take_better(const Evenness& other) { key = min(key, other.key); }
    __device__ inline Result mean() const { return (Result)key; }
};
#elif SAMPLE_BITS == 16
typedef unsigned long long Cell;
typedef unsigned Stored;
struct Evenness {
    unsigned long long key;

    __device__ inline void measure(Cell sum, Cell squares)
    {
        key = (9 * squares - sum * sum) << 16 | ((unsigned)sum + 4) / 9;
    }
    __device__ inline void take_better(const Evenness& other) { key = min(key, other.key); }
    __device__ inline Result mean() const { return (Result)key; }
};
#else
typedef double Cell;
typedef float Stored;
struct Evenness {
    double variance, sum;

    __device__ inline void measure(double window_sum, double squares)
    {
        sum = window_sum;
        variance = ADD(MULTIPLY(9.0, squares), -MULTIPLY(sum, sum));
    }
    __device__ inline void take_better(const Evenness& other)
    {
        if (other.variance < variance || (other.variance == variance && other.sum < sum)) *this = other;
    }
    __device__ inline Result mean() const { return (float)(sum / 9.0); }
};
#endif

// Compute the rows of `part` for the samples from k on.
template <bool GREY>
__device__ inline void rotating_mask_down(
    const Sample* source, Sample* output, const Geometry& g, const Part& part, int k)
{
    typedef Cells<RADIUS, GREY> Around;
    typedef Cells<RADIUS - 1, GREY> Windows;  // those whose middle lies in a row
    const int out_samples = g.out_width * g.channels;
    const bool whole = whole_quads(out_samples);
    Sample* target = output + output_offset(g, part.top, 0) + k;
    Descent source_rows(source, g, part.top + valid_shift(RADIUS) - RADIUS, k);
    Stored rows[3][Around::COUNT] = {};
    Evenness best[3][QUAD] = {};  // of the windows around each result in the last three rows of windows
    for (int y = part.top - 2 * RADIUS; y < part.bottom; ++y) {
#pragma unroll
        for (int i = 0; i < Around::COUNT; ++i) {
            rows[0][i] = rows[1][i];
            rows[1][i] = rows[2][i];
        }
        Around::load(source_rows, g, rows[2]);
        source_rows.go_down();
        Evenness windows[Windows::COUNT];
#pragma unroll
        for (int t = 0; t < 3; ++t)
#pragma unroll
            for (int v = 0; v < QUAD; ++v) {
                if (GREY && t > 0 && v < QUAD - 1) continue;  // it is window v + 1 of t - 1
                Cell sum = 0, squares = 0;
#pragma unroll
                for (int i = 0; i < 9; ++i) {
                    const Cell cell = rows[i / 3][Around::at(t + i % 3, v)];
                    sum = ADD(sum, cell);
                    squares = ADD(squares, MULTIPLY(cell, cell));
                }
                windows[Windows::at(t, v)].measure(sum, squares);
            }
        Result results[QUAD];
#pragma unroll
        for (int v = 0; v < QUAD; ++v) {
            best[0][v] = best[1][v];
            best[1][v] = best[2][v];
            best[2][v] = windows[Windows::at(0, v)];
            best[2][v].take_better(windows[Windows::at(1, v)]);
            best[2][v].take_better(windows[Windows::at(2, v)]);
            Evenness most = best[0][v];
            most.take_better(best[1][v]);
            most.take_better(best[2][v]);
            results[v] = most.mean();
        }
        if (y < part.top) continue;
        store(target, results, whole);
        target += out_samples;
    }
}

extern "C" __global__ void rotating_mask_tuned(const Sample* source, Sample* output, Geometry g)
{
    const Part tile = tile_of_block(g), part = inner_part(tile, g, RADIUS);
    const int k = tile.left + threadIdx.x * QUAD;
    if (part.left <= k && k < part.right && part.top < part.bottom) {
        if (g.channels == 1 && whole_quads(g.width))
            rotating_mask_down<true>(source, output, g, part, k);
        else
            rotating_mask_down<false>(source, output, g, part, k);
    }
    compute_edges<RADIUS>(source, output, g, [&](const Near<RADIUS>& near, int y, int x, int c) {
        return rotating_mask(near, g, y, x, c);
    });
}
