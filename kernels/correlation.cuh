// Correlation with a mask of SIZE x SIZE weights, for the filters that are one.
//
//   g(y, x) = sum over s, t of w(s, t) f(y + s, x + t) / divisor
//
// The weights lie row by row; behind them stand the divisor, and the magnitude up to which a sum of
// weights is taken for zero. Integer sums and divisors are exact.
#ifndef KERNELSCOPE_CORRELATION
#define KERNELSCOPE_CORRELATION
#include "common.cuh"
#include "texture.cuh"

#ifndef SIZE
#define SIZE 3
#endif
// Type of the weights and of the sum: 0 int, 1 long long, 2 float, 3 double.
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
#elif WEIGHT_TYPE == 2
typedef float Weight;
#else
typedef double Weight;
#endif

// The weights at the levels that keep them in constant memory: one read serves a whole warp.
__constant__ Weight constant_weights[SIZE * SIZE + 2];

#if SAMPLE_BITS == 32
#define MIDDLE 0.5f
#define HIGHEST 3.402823466e38f
#define LOWEST (NEGATIVE == 0 ? 0.0f : -HIGHEST)
#else
#define MIDDLE (SAMPLE_MAX / 2 + 1)
#define HIGHEST SAMPLE_MAX
#define LOWEST 0
#endif

// The result for a sum: divided, negatives treated, rounded to nearest even, saturated.
__device__ inline Sample finish(Weight sum, Weight divisor)
{
    if (divisor < 0) {
        sum = -sum;
        divisor = -divisor;
    }
#if WEIGHT_TYPE >= 2
    Weight value = sum / divisor;
#if NEGATIVE == 1
    value = value < 0 ? -value : value;
#elif NEGATIVE == 2
    value += MIDDLE;
#endif
    value = value < LOWEST ? (Weight)LOWEST : value > HIGHEST ? (Weight)HIGHEST : value;
    return (Sample)(SAMPLE_BITS == 32 ? value : rint(value));
#else
#if NEGATIVE == 1
    if (sum < 0) sum = -sum;
#elif NEGATIVE == 2
    sum += (Weight)MIDDLE * divisor;
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

    __device__ inline Sample result(const Weight* weights) const
    {
#if BORDER == BORDER_REDUCE && DIVISOR
        const Weight negligible = weights[SIZE * SIZE + 1];
        return finish(sum, -negligible <= inside && inside <= negligible ? 1 : inside);
#else
        return finish(sum, weights[SIZE * SIZE]);
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
    return cells.result(weights);
}

#endif
