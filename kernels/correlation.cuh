// Correlation with a mask of SIZE x SIZE weights, for the filters that are one.
//
//   g(y, x) = sum over s, t of w(s, t) f(y + s, x + t) / divisor
//
// Integer sums and divisors are exact.
#ifndef KERNELSCOPE_CORRELATION
#define KERNELSCOPE_CORRELATION
#ifndef SIZE
#define SIZE 3
#endif
#define RADIUS (SIZE / 2)
#include "common.cuh"
#include "levels.cuh"

// Type of the weights and of the sum: 0 int, 1 long long, 2 float, 3 double.
#ifndef WEIGHT_TYPE
#define WEIGHT_TYPE (SAMPLE_BITS == 32 ? 2 : 0)
#endif
#if WEIGHT_TYPE == 0
typedef int Weight;
#elif WEIGHT_TYPE == 1
typedef long long Weight;
#elif WEIGHT_TYPE == 2
typedef float Weight;
#else
typedef double Weight;
#endif

// The weights, row by row, at the levels that keep them in constant memory: one read serves a whole warp.
__constant__ Weight constant_weights[SIZE * SIZE];

// How a sum becomes a sample. At every level in constant memory, as the arguments of a kernel are.
#define DIVISOR 0
#define NEGLIGIBLE 1  // the magnitude up to which a sum of weights is taken for zero
#define FOLLOWS 2     // the divisor under `reduce`: 0 as it stands, 1 the cells that count, 2 their weights
#define NEGATIVE 3    // treatment of negative values: 0 clip, 1 absolute, 2 offset by mid-range, 3 nothing
#define FOLD 4        // twice the sum times this, or
#define OFFSET 5      // twice the sum and this, whichever is more, is rounded
#define RECIPROCAL 6  // n / 2 divisor is the high half of n * RECIPROCAL, shifted right by SHIFTED
#define SHIFTED 7
__constant__ Weight finishing[8];

#if SAMPLE_BITS == 32
#define MIDDLE 0.5f
#define HIGHEST 3.402823466e38f
#define LOWEST (-HIGHEST)
#else
#define MIDDLE (SAMPLE_MAX / 2 + 1)
#define HIGHEST SAMPLE_MAX
#define LOWEST 0
#endif

#if TUNED
#define FINISH __noinline__  // loops over several samples would carry as many copies
#else
#define FINISH inline
#endif

// The result for a sum: divided, negatives treated, rounded to nearest even, saturated.
__device__ FINISH Sample finish(Weight sum, Weight divisor, int negative)
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

// The same for the divisor of whole windows. Where the sum has 32 bits a multiplication divides:
// 2 sum + divisor, by 2 divisor, which rounds halves up. They leave no rest, and take odd results back.
__device__ inline Sample finish(Weight sum)
{
#if WEIGHT_TYPE == 0
    const int divisor = finishing[DIVISOR];
    const unsigned twice = max(2 * sum + finishing[OFFSET], sum * finishing[FOLD] + divisor);
    unsigned quotient = __umulhi(twice, finishing[RECIPROCAL]) >> finishing[SHIFTED];
    if (quotient * 2 * divisor == twice) quotient &= ~1u;
    return min(quotient, SAMPLE_MAX);
#else
    return finish(sum, finishing[DIVISOR], (int)finishing[NEGATIVE]);
#endif
}

// Zero, as blocks are flat, but of a `thread` to the compiler: an index with it is a thread's own. An index
// that is the same for a whole warp may be kept in a uniform register, and the weight read by ULDC, which
// stalls the warp at each miss of the first constant cache. A mask of 15 x 15 in a loop took five to ten times
// as long that way on an H100, at those borders at which the compiler chose it; LDC does not stall.
__device__ inline int own_zero(bool thread) { return thread ? (int)threadIdx.z : 0; }

// The correlation of the cells around a pixel.
struct Correlation {
    const Weight* weights;

    template <typename Cells>
    __device__ inline Sample operator()(const Cells& cells) const
    {
        Weight sum = 0, inside = 0;
#pragma unroll Cells::ROWS
        for (int s = -RADIUS; s <= RADIUS; ++s) {
            const auto row = cells.row(s);
            const int middle = (s + RADIUS) * SIZE + RADIUS + own_zero(Cells::ROWS < SIZE);
#pragma unroll Cells::COLUMNS
            for (int t = -RADIUS; t <= RADIUS; ++t) {
                const Weight weight = weights[middle + t];
                sum += weight * row[t];
                if (Cells::CUT && row.counts(t)) inside += finishing[FOLLOWS] == 1 ? 1 : weight;
            }
        }
        if (!Cells::CUT || finishing[FOLLOWS] == 0) return finish(sum);
        const bool nothing = -finishing[NEGLIGIBLE] <= inside && inside <= finishing[NEGLIGIBLE];
        return finish(sum, nothing ? 1 : inside, (int)finishing[NEGATIVE]);
    }
};

#endif
