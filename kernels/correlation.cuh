// Correlation with a mask of SIZE x SIZE weights, for the filters that are one.
//
//   g(y, x) = sum over s, t of w(s, t) f(y + s, x + t) / divisor
//
// The weights lie row by row; behind them stands the divisor. Integer sums and divisors are exact.
#ifndef KERNELSCOPE_CORRELATION
#define KERNELSCOPE_CORRELATION
#include "common.cuh"
#include "texture.cuh"

#ifndef SIZE
#define SIZE 3
#endif
// Type of the weights and of the sum: 0 int, 1 long long, 2 float.
#ifndef WEIGHT_TYPE
#define WEIGHT_TYPE (SAMPLE_BITS == 32 ? 2 : 0)
#endif
// What the divisor is under `reduce`: 0 as it stands, 1 the cells that count, 2 their weights.
#ifndef DIVISOR
#define DIVISOR 0
#endif
// What becomes of negative values: 0 clip, 1 absolute, 2 offset by mid-range.
#ifndef NEGATIVE
#define NEGATIVE 0
#endif
#define RADIUS (SIZE / 2)

#if WEIGHT_TYPE == 0
typedef int Weight;
#elif WEIGHT_TYPE == 1
typedef long long Weight;
#else
typedef float Weight;
#endif

// The weights at the levels that keep them in constant memory: one read serves a whole warp.
__constant__ Weight constant_weights[SIZE * SIZE + 1];

// The result for a sum: divided, negatives treated, rounded to nearest even, saturated.
__device__ inline Sample finish(Weight sum, Weight divisor)
{
    if (divisor < 0) {
        sum = -sum;
        divisor = -divisor;
    }
#if WEIGHT_TYPE == 2
    float value = sum / divisor;
#if NEGATIVE == 1
    value = fabsf(value);
#elif NEGATIVE == 2
    value += SAMPLE_BITS == 32 ? 0.5f : (SAMPLE_BITS == 16 ? 32768.0f : 128.0f);
#endif
#if SAMPLE_BITS == 32
    return fminf(NEGATIVE == 0 ? fmaxf(value, 0.0f) : fmaxf(value, -3.402823466e38f), 3.402823466e38f);
#else
    return (Sample)fminf(fmaxf(rintf(value), 0.0f), SAMPLE_MAX);
#endif
#else
#if NEGATIVE == 1
    if (sum < 0) sum = -sum;
#elif NEGATIVE == 2
    sum += (Weight)(SAMPLE_MAX / 2 + 1) * divisor;
#endif
    return saturate(divisor == 1 ? sum : divide_round(sum, divisor));
#endif
}

// Sums up weighted cells, and under `reduce` what the divisor follows.
struct Accumulator {
    Weight sum = 0, inside = 0;

    __device__ inline void add(Weight weight, Weight sample, bool counted)
    {
        sum += weight * sample;
#if BORDER == BORDER_REDUCE && DIVISOR
        if (counted) inside += DIVISOR == 1 ? 1 : weight;
#endif
    }

    __device__ inline Sample result(Weight divisor) const
    {
#if BORDER == BORDER_REDUCE && DIVISOR
        return finish(sum, inside == 0 ? 1 : inside);
#else
        return finish(sum, divisor);
#endif
    }
};

// The correlation at (y, x) of channel c; Source is a pointer, a texture or a tile.
template <typename Source>
__device__ inline Sample correlate(
    const Source& source, const Weight* weights, const Geometry& g, int y, int x, int c)
{
    Accumulator cells;
    for (int s = 0; s < SIZE; ++s)
        for (int t = 0; t < SIZE; ++t) {
            const int yy = y + s - RADIUS, xx = x + t - RADIUS;
            cells.add(weights[s * SIZE + t], fetch(source, g, yy, xx, c), counts(g, yy, xx));
        }
    return cells.result(weights[SIZE * SIZE]);
}

#endif
