// Sobel, the strength of edges and their directions:
//
//        -1 0 1        -1 -2 -1
//   gx:  -2 0 2   gy:   0  0  0    FORM 0: |gx| + |gy|, 1: sqrt(gx^2 + gy^2),
//        -1 0 1         1  2  1    2: the largest of the eight masks that rotate in steps of 45 degrees,
//                                 3 to 6: see directions.cuh
//
// level         demonstrates                                       image
// single_block  one multiprocessor at work, the others idle        global
// global        many blocks, everything from global memory         global
// shared        a block reads its tile and halo just once          shared
// texture       the texture unit fetches and treats borders        texture
// tuned         see tuned_rows.cuh; grey bytes: packed.cuh         global
//
// Launch: blocks of 32 x 8 threads stride over the output, a thread a pixel at a time (single_block: one
// block of 32 x 32).
// A sample takes 8 cached reads and about 15 operations (FORM 2 to 4: 30, 5 and 6: 100, in doubles); at best
// 1 read from and 1 write to device memory. The weights are part of the code: there is no mask to keep anywhere.
#define RADIUS 1
#ifndef FORM
#define FORM 0
#endif
#include "common.cuh"
#include "levels.cuh"
#include "directions.cuh"
#if TUNED
#include "packed.cuh"
#include "tuned_rows.cuh"
#endif

__device__ inline int magnitude(int v) { return abs(v); }
__device__ inline float magnitude(float v) { return fabsf(v); }

// Of a sum of squares, in any unit. Floats hold these sums of bytes, and up to white the roots are further
// from ties than this instruction errs.
__device__ inline float root(float sum)
{
    float result;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(sum));
    return result;
}

// The filter for the cells around a pixel, not yet saturated, in whole numbers or floats.
//
//   a b d
//   e   h
//   i j k
template <typename Number>
__device__ inline Number strength(
    Number a, Number b, Number d, Number e, Number h, Number i, Number j, Number k)
{
#if FORM > 2
    return direction_of<Number>(all_masks(a, b, d, e, h, i, j, k));
#else
    const Number gx = (d + 2 * h + k) - (a + 2 * e + i);
    const Number gy = (i + 2 * j + k) - (a + 2 * b + d);
#if FORM == 0
    return magnitude(gx) + magnitude(gy);
#elif FORM == 1 && SAMPLE_BITS == 16
    // Doubles hold these squares exactly, and a root of a whole number is never a tie.
    return (Number)rint(sqrt((double)gx * gx + (double)gy * gy));
#elif FORM == 1 && SAMPLE_BITS == 8
    return (Number)rintf(root((float)gx * gx + (float)gy * gy));
#elif FORM == 1
    return sqrtf(gx * gx + gy * gy);
#else
    const Number rising = magnitude((b + 2 * d + h) - (e + 2 * i + j));
    const Number falling = magnitude((h + 2 * k + j) - (b + 2 * a + e));
    return max(max(magnitude(gx), magnitude(gy)), max(rising, falling));
#endif
#endif
}

#if FORM == 6
typedef Paint Sobel;
#else
// The filter for the cells around a pixel.
struct Sobel {
    template <typename Cells>
    __device__ inline Sample operator()(const Cells& cells) const
    {
        const auto above = cells.row(-1), here = cells.row(0), below = cells.row(1);
        const Sum value = strength<Sum>(
            above[-1], above[0], above[1], here[-1], here[1], below[-1], below[0], below[1]);
#if SAMPLE_BITS == 32
        return fminf(value, 3.402823466e38f);
#else
        return saturate(value);
#endif
    }
};
#endif

#if !TUNED
extern "C" __global__ void __launch_bounds__(1024)
    sobel_single_block(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, Sobel());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sobel_global(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, Sobel());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sobel_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    compute(Tiles{source, memory}, output, g, Sobel());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sobel_texture(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute(source, output, g, Sobel());
}
#elif FORM >= 5
// An angle takes far longer than the work that neighbours could share.
extern "C" __global__ void __launch_bounds__(THREADS)
    sobel_tuned(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, Sobel());
}
#else
template <bool GREY>
using Around = Cells<RADIUS, GREY>;

template <bool FIRST, typename A, typename B>
struct Choose {
    typedef A Type;
};
template <typename A, typename B>
struct Choose<false, A, B> {
    typedef B Type;
};

__device__ inline Result sample_of(float value) { return nearest(value); }
#if SAMPLE_BITS < 32
__device__ inline Result sample_of(int value) { return saturate(value); }
#endif

// Three source rows around QUAD results. Where results have cells of their own, turning each into a float
// takes longer than counting with whole numbers.
template <bool GREY>
struct Window {
    typedef typename Choose<GREY, float, Sum>::Type Number;
    Number rows[3][Around<GREY>::COUNT] = {};

    __device__ inline void move_down()
    {
#pragma unroll
        for (int i = 0; i < Around<GREY>::COUNT; ++i) {
            rows[0][i] = rows[1][i];
            rows[1][i] = rows[2][i];
        }
    }

    __device__ inline Number cell(int s, int t, int v) const { return rows[s][Around<GREY>::at(t, v)]; }

    __device__ inline Result result(int v) const
    {
        return sample_of(strength<Number>(
            cell(0, 0, v), cell(0, 1, v), cell(0, 2, v), cell(1, 0, v), cell(1, 2, v),
            cell(2, 0, v), cell(2, 1, v), cell(2, 2, v)));
    }
};

// Compute the rows of `part` for the samples from k on.
template <bool GREY>
__device__ inline void sobel_down(
    const Sample* source, Sample* output, const Geometry& g, const Part& part, int k)
{
    const int out_samples = g.out_width * g.channels;
    const bool whole = whole_quads(out_samples);
    Sample* target = output + output_offset(g, part.top, 0) + k;
    Descent source_rows(source, g, part.top + valid_shift(RADIUS) - RADIUS, k);
    Window<GREY> window;
    Around<GREY>::load(source_rows, g, window.rows[1]);
    source_rows.go_down();
    Around<GREY>::load(source_rows, g, window.rows[2]);
    constexpr int unrolled = GREY ? 3 : 1;  // as many rows as the window has: nothing is moved
#pragma unroll unrolled
    for (int y = part.top; y < part.bottom; ++y) {
        source_rows.go_down();
        window.move_down();
        Around<GREY>::load(source_rows, g, window.rows[2]);
        Result results[QUAD];
#pragma unroll
        for (int v = 0; v < QUAD; ++v) results[v] = window.result(v);
        store(target, results, whole);
        target += out_samples;
    }
}

#if SAMPLE_BITS == 8 && FORM < 3
// Three source rows around QUAD results of grey bytes, in pairs.
struct PairWindow {
    typedef Pairs<RADIUS> Packed;
    static constexpr int ROWS = 3;

    // The masks' part of a row, for even and odd results: the outer cells, their difference, and
    // the sum of all three, the middle one twice.
    struct Line {
        Pair left, right, across, along;
    };
    Line lines[ROWS][2];

    __device__ inline void add(const Packed& row)
    {
#pragma unroll
        for (int v = 0; v < 2; ++v) {
            lines[0][v] = lines[1][v];
            lines[1][v] = lines[2][v];
            const Pair left = row[v], right = row[v + 2];
            lines[2][v] = {left, right, right - left, scaled(Factor::TWO, row[v + 1], left + right)};
        }
    }

    // White less result v, or 0 where that is negative.
    __device__ inline Pair left(int v) const
    {
        const Line &above = lines[0][v], &middle = lines[1][v], &below = lines[2][v];
        const Pair gx = scaled(Factor::TWO, middle.across, above.across + below.across);
        const Pair gy = below.along - above.along;
#if FORM == 0
        return less(WHITE - magnitude(gx), magnitude(gy));
#elif FORM == 1
        const float2 x = to_floats(gx), y = to_floats(gy);
        return less(WHITE, to_pair(make_float2(
            root(x.x * x.x + y.x * y.x), root(x.y * x.y + y.y * y.y))));
#else
        // The diagonal masks are half of these sums and, once more, the corners that they rise between.
        const Pair rising = scaled(Factor::HALF, gx - gy, above.right - below.left);
        const Pair falling = scaled(Factor::HALF, gx + gy, below.right - above.left);
        return less(WHITE, max(
            max(magnitude(gx), magnitude(gy)), max(magnitude(rising), magnitude(falling))));
#endif
    }

    __device__ inline void results(Quad* to) const { to[0] = quad_of(left(0), left(1)); }
};
#endif

extern "C" __global__ void sobel_tuned(const Sample* source, Sample* output, Geometry g)
{
    const Part tile = tile_of_block(g), part = inner_part(tile, g, RADIUS);
    const int k = tile.left + threadIdx.x * SPAN;
    if (part.left <= k && k < part.right && part.top < part.bottom) {
        if (g.channels == 1 && whole_quads(g.width)) {
#if SAMPLE_BITS == 8 && FORM < 3
            descend(PairWindow(), source, output, g, part, k);
#else
            sobel_down<true>(source, output, g, part, k);
#endif
        } else
            sobel_down<false>(source, output, g, part, k);
    }
    compute_edges<RADIUS>(source, output, g, Sobel());
}
#endif
