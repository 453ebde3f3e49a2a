// tuned, for bytes and masks of whole numbers: see byte_products.cuh.
//
// Source rows stay in registers for the SIZE rows of results that they belong to. A result takes an instruction's
// share for each row of the mask and each digit of the weights.
#ifndef KERNELSCOPE_MASK_PRODUCTS
#define KERNELSCOPE_MASK_PRODUCTS
#include "byte_products.cuh"

// 1 where floats hold all sums and round quotients as whole numbers do, 2 where sums are also less than 2^22: added
// to the bits of 1.5 * 2^23 they make the float without a conversion.
#ifndef FLOAT_QUOTIENTS
#define FLOAT_QUOTIENTS 0
#endif

namespace products {

// The digits above the lowest two have sums of their own where 32 bits do not hold all.
constexpr int HIGH_DIGITS = WEIGHT_TYPE == 1 && DIGITS > 2 ? DIGITS - 2 : 0;
constexpr int TABLE = DIGITS * SIZE * CHUNKS;
constexpr bool KEPT = TABLE <= 9;  // in registers

// The weights of a lane, for each digit from the highest on, row of the mask and chunk of cells.
struct Weights {
    const uint4* table;
    uint4 kept[KEPT ? TABLE : 1];

    __device__ inline Weights(const uint4* fragments, int lane) : table(fragments + lane)
    {
        if (KEPT)
#pragma unroll
            for (int i = 0; i < TABLE; ++i) kept[i] = __ldg(table + 32 * i);
    }

    __device__ inline uint4 operator()(int i) const
    {
        return KEPT ? kept[KEPT ? i : 0] : __ldg(table + 32 * i);
    }

    // Keep the compiler from reading all of them ahead of the loop, into more registers than there are.
    __device__ inline void stay() { asm volatile("" : "+l"(table)); }
};

constexpr int ONE_AND_A_HALF = 0x4b400000;  // the bits of the float 1.5 * 2^23

// How sums become bytes.
struct Quotients {
    Weight divisor;
    int negative, middle, start;  // what sums begin with
#if WEIGHT_TYPE == 1
    double reciprocal;
#elif FLOAT_QUOTIENTS
    float reciprocal;
    bool by_product;
#endif

    __device__ inline Quotients() : divisor(finishing[DIVISOR]), negative((int)finishing[NEGATIVE])
    {
        middle = negative == 2 ? MIDDLE : 0;
        start = FLOAT_QUOTIENTS == 2 && divisor != 1 ? ONE_AND_A_HALF : 0;
#if WEIGHT_TYPE == 1
        reciprocal = 1.0 / divisor;
#elif FLOAT_QUOTIENTS
        reciprocal = 1.0f / divisor;
        // The product with the reciprocal is exact for powers of two. Else it is off by 2^-24 of a quotient up to
        // 257 at most, and those of odd divisors are no ties, but 1 / (2 divisor) or more away from one.
        by_product = divisor % 2 ? divisor < 1 << 14 : (divisor & (divisor - 1)) == 0;
#endif
    }

    __device__ inline int treated(int quotient) const
    {
        return negative == 1 ? abs(quotient) : quotient + middle;
    }

#if WEIGHT_TYPE == 1
    // A double holds the sum, and the nearest one to the quotient is that wherever it is a tie.
    __device__ inline int operator()(int low, int high) const
    {
        const double sum = 65536.0 * high + low;
        double value = sum * reciprocal;
        value = fma(fma(-value, (double)divisor, sum), reciprocal, value);
        return treated((int)rint(fmin(fmax(value, -1e3), 1e3)));
    }
#else
    __device__ inline int operator()(int sum, int) const
    {
#if FLOAT_QUOTIENTS
        if (divisor == 1) return treated(sum);
        const float total = FLOAT_QUOTIENTS == 2 ? __int_as_float(sum) - 12582912.0f : (float)sum;
        // Adding 1.5 * 2^23 rounds to a whole number, which then is in the lowest bits.
        float value;
        if (by_product) {
            value = fmaf(total, reciprocal, 12582912.0f);
        } else {
            value = total * reciprocal;
            value = fmaf(fmaf(-value, (float)divisor, total), reciprocal, value) + 12582912.0f;
        }
        return treated((int)__float_as_uint(value) - ONE_AND_A_HALF);
#else
        if (divisor == 1) return treated(sum);
        return finish(sum);
#endif
    }
#endif
};

typedef uint2 Cells[CHUNKS];
constexpr int WINDOW = SIZE - 1 + AT_ONCE;  // rows for AT_ONCE rows of results

// Make the sums of AT_ONCE rows of results of the digits from `first` on to the one before `end`, and `start`.
__device__ inline void add_digits(
    int (&sums)[AT_ONCE][4], const Weights& weights, const Cells (&rows)[WINDOW], int first, int end,
    int start)
{
#pragma unroll
    for (int digit = first; digit < end; ++digit) {
        // Those of the digits before count 256 times.
        const unsigned more = digit + 1 == end ? start : 0;
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i)
#pragma unroll
            for (int v = 0; v < 4; ++v)
                sums[i][v] = (int)((digit > first ? (unsigned)sums[i][v] << 8 : 0) + more);
#pragma unroll
        for (int s = 0; s < SIZE; ++s)
#pragma unroll
            for (int c = 0; c < CHUNKS; ++c) {
                const uint4 some = weights((digit * SIZE + s) * CHUNKS + c);
#pragma unroll
                for (int i = 0; i < AT_ONCE; ++i) multiply(sums[i], some, rows[i + s][c]);
            }
    }
}

// The results of a warp in the rows of `part`.
__device__ inline void descend(
    Sample* memory, const Sample* source, Sample* output, const uint4* fragments, const Geometry& g,
    const Part& part, int left, int lane)
{
    constexpr int WARM = (SIZE - 1 + AT_ONCE - 1) / AT_ONCE * AT_ONCE;  // rows of groups before the first result
    Ring ring(memory, source, g, part, WARM, left, lane);
    Weights weights(fragments, lane);
    const Quotients quotient;
    Writer writer(output, g, part, part.top, left, lane);
    Cells rows[WINDOW];
#pragma unroll 1
    for (int y = part.top - WARM; y < part.bottom; y += AT_ONCE) {
        weights.stay();
        ring.wait();
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) ring.read(rows[SIZE - 1 + i], i);
        ring.go_on();
        if (y >= part.top) {
            int low[AT_ONCE][4] = {}, high[AT_ONCE][4] = {};
            add_digits(high, weights, rows, 0, HIGH_DIGITS, 0);
            add_digits(low, weights, rows, HIGH_DIGITS, DIGITS, quotient.start);
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) {
                int results[4];
#pragma unroll
                for (int v = 0; v < 4; ++v) results[v] = quotient(low[i][v], high[i][v]);
                writer.next(
                    saturated(results[0], results[2], saturated(results[1], results[3], 0)),
                    y + i < part.bottom);
            }
        }
#pragma unroll
        for (int i = 0; i < SIZE - 1; ++i)
#pragma unroll
            for (int c = 0; c < CHUNKS; ++c) rows[i][c] = rows[i + AT_ONCE][c];
    }
}

__device__ inline void correlate(
    const Sample* source, Sample* output, const uint4* fragments, const Geometry& g)
{
    compute(source, output, g, [&](Sample* memory, const Part& part, int left, int lane) {
        descend(memory, source, output, fragments, g, part, left, lane);
    });
}

}  // namespace products

#endif
