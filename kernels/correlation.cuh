// Correlation with a mask of SIZE x SIZE weights, for the filters that are one.
//
//   g(y, x) = sum over s, t of w(s, t) f(y + s, x + t) / divisor
//
// The weights lie row by row; behind them stand the four values below. Integer sums and divisors are
// exact.
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
// What stands behind the weights of a table.
#define DIVISOR (SIZE * SIZE)
// The magnitude up to which a sum of weights is taken for zero.
#define NEGLIGIBLE (DIVISOR + 1)
// What the divisor is under `reduce`: 0 as it stands, 1 the cells that count, 2 their weights.
#define FOLLOWS (DIVISOR + 2)
// What becomes of negative values: 0 clip, 1 absolute, 2 offset by mid-range, 3 nothing.
#define NEGATIVE (DIVISOR + 3)
#define TABLE (DIVISOR + 4)
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
__constant__ Weight constant_weights[TABLE];

#if SAMPLE_BITS == 32
#define MIDDLE 0.5f
#define HIGHEST 3.402823466e38f
#define LOWEST (-HIGHEST)
#else
#define MIDDLE (SAMPLE_MAX / 2 + 1)
#define HIGHEST SAMPLE_MAX
#define LOWEST 0
#endif

// The result for a sum: divided, negatives treated, rounded to nearest even, saturated. Not inlined:
// once a sample it costs little, and every kernel would carry a copy.
__device__ __noinline__ Sample finish(Weight sum, Weight divisor, int negative)
{
    if (divisor < 0) {
        sum = -sum;
        divisor = -divisor;
    }
#if WEIGHT_TYPE >= 2
    Weight value = sum / divisor;
    if (negative == 2)
        value += MIDDLE;
    else if (value < 0 && negative != 3)
        value = negative == 1 ? -value : 0;
    value = value < LOWEST ? (Weight)LOWEST : value > HIGHEST ? (Weight)HIGHEST : value;
    return (Sample)(SAMPLE_BITS == 32 ? value : rint(value));
#else
    if (negative == 2)
        sum += (Weight)MIDDLE * divisor;
    else if (sum < 0)
        sum = negative == 1 ? -sum : 0;
    return saturate(divisor == 1 ? sum : divide_round(sum, divisor));
#endif
}

// The correlation at (y, x) of channel c; Source is a pointer, a texture or a tile.
template <typename Source>
__device__ inline Sample correlate(
    const Source& source, const Weight* weights, const Geometry& g, int y, int x, int c)
{
    Weight sum = 0, inside = 0;
    constexpr int unrolled = UNROLL_ROWS(SIZE);  // nvcc expands no macros in pragmas
#pragma unroll unrolled
    for (int s = 0; s < SIZE; ++s)
        for (int t = 0; t < SIZE; ++t) {
            const int yy = y + s - RADIUS, xx = x + t - RADIUS;
            const Weight weight = weights[s * SIZE + t];
            sum += weight * fetch(source, g, yy, xx, c);
            if (BORDER == BORDER_REDUCE && counts(g, yy, xx))
                inside += weights[FOLLOWS] == 1 ? 1 : weight;
        }
    Weight divisor = weights[DIVISOR];
    if (BORDER == BORDER_REDUCE && weights[FOLLOWS] != 0)
        divisor = -weights[NEGLIGIBLE] <= inside && inside <= weights[NEGLIGIBLE] ? 1 : inside;
    return finish(sum, divisor, (int)weights[NEGATIVE]);
}

#endif
