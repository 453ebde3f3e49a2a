// tuned, for bytes and masks of whole numbers: see byte_products.cuh.
//
// Source rows stay in registers for the SIZE rows of results that they belong to. A result takes an instruction's
// share for each row of the mask, or each two, and each digit of the weights.
#ifndef KERNELSCOPE_MASK_PRODUCTS
#define KERNELSCOPE_MASK_PRODUCTS
#include "byte_products.cuh"

// How a sum is divided: 0 as a whole number, or as a double where it has more than 32 bits; 1 not at all, as the
// divisor is 1; 2 as a float by the product with the reciprocal, 3 by that and its remainder.
#ifndef DIVISION
#define DIVISION 0
#endif
// Whether sums are less than 2^22: added to the bits of 1.5 * 2^23 they make the float without a conversion.
#ifndef SMALL_SUMS
#define SMALL_SUMS 0
#endif
// Treatment of negative quotients, as NEGATIVE in correlation.cuh: 0 clip, 1 absolute, 2 offset by mid-range.
#ifndef TREATMENT
#define TREATMENT 0
#endif
// Whether all quotients are bytes, which need no saturation.
#ifndef IN_BYTES
#define IN_BYTES 0
#endif

// Of 9x9 the compiler would take more registers, and one block less would fit a multiprocessor.
#if SIZE == 9 && CHANNELS == 1
#define MASK_BOUNDS TUNED_THREADS, 5
#else
#define MASK_BOUNDS TUNED_THREADS
#endif

namespace products {

// The digits above the lowest two have sums of their own where 32 bits do not hold all.
constexpr int HIGH_DIGITS = WEIGHT_TYPE == 1 && DIGITS > 2 ? DIGITS - 2 : 0;
constexpr int STEPS = PAIRED || SPARSE ? (SIZE + 1) / 2 : SIZE * CHUNKS;  // products of a digit
// If SPARSE, two rows of results share source rows: the weights of the second begin a row further down.
constexpr int TABLES = SPARSE ? 2 : 1, TABLE = DIGITS * TABLES * STEPS;
constexpr bool KEPT = TABLE <= 9;  // in registers

// The weights of a lane, for each digit from the highest on and each step.
struct Weights {
    const uint4* table;
    uint4 kept[KEPT ? TABLE : 1];
    unsigned places;  // of sparse weights

    __device__ inline Weights(const uint4* fragments, int lane) : table(fragments + lane)
    {
        if (SPARSE) places = __ldg((const unsigned*)(fragments + 32 * TABLE) + lane);
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
constexpr int OFFSET_BY = TREATMENT == 2 ? MIDDLE : 0;
// What sums begin with.
constexpr int FIRST = DIVISION == 1 ? OFFSET_BY : DIVISION > 1 && SMALL_SUMS ? ONE_AND_A_HALF : 0;

// How sums become bytes.
struct Quotients {
    Weight divisor;
#if WEIGHT_TYPE == 1
    double reciprocal;
#elif DIVISION > 1
    float reciprocal;
#endif

    __device__ inline Quotients() : divisor(finishing[DIVISOR])
    {
#if WEIGHT_TYPE == 1
        reciprocal = 1.0 / divisor;
#elif DIVISION > 1
        reciprocal = 1.0f / divisor;
#endif
    }

    static __device__ inline int treated(int quotient) { return TREATMENT == 1 ? abs(quotient) : quotient; }

#if WEIGHT_TYPE == 1
    // A double holds the sum, and the nearest one to the quotient is that wherever it is a tie.
    __device__ inline int operator()(int low, int high) const
    {
        const double sum = 65536.0 * high + low;
        double value = sum * reciprocal;
        value = fma(fma(-value, (double)divisor, sum), reciprocal, value);
        const int quotient = (int)rint(fmin(fmax(value, -1e3), 1e3));
        return treated(quotient + OFFSET_BY);
    }
#elif DIVISION > 1
    __device__ inline int operator()(int sum, int) const
    {
        const float total = SMALL_SUMS ? __int_as_float(sum) - 12582912.0f : (float)sum;
        // Adding 1.5 * 2^23 rounds to a whole number, which then is in the lowest bits.
        const float rounding = 12582912.0f + OFFSET_BY;
        float value;
        if (DIVISION == 2) {
            value = fmaf(total, reciprocal, rounding);
        } else {
            value = total * reciprocal;
            value = fmaf(fmaf(-value, (float)divisor, total), reciprocal, value) + rounding;
        }
        const int quotient = (int)__float_as_uint(value) - (IN_BYTES ? 0 : ONE_AND_A_HALF);
        return treated(quotient);
    }
#elif DIVISION == 1
    __device__ inline int operator()(int sum, int) const { return treated(sum); }
#else
    __device__ inline int operator()(int sum, int) const { return finish(sum); }
#endif

    // The bytes of a lane's four results, neighbours side by side.
    __device__ inline unsigned operator()(const int (&low)[4], const int (&high)[4]) const
    {
        unsigned results[4];
#pragma unroll
        for (int v = 0; v < 4; ++v) results[v] = (*this)(low[v], high[v]);
        if (IN_BYTES) return lowest_bytes(results);
        return saturated(results[0], results[2], saturated(results[1], results[3], 0));
    }
};

constexpr int WINDOW = SIZE - 1 + AT_ONCE;  // rows for AT_ONCE rows of results
typedef unsigned Rows[WINDOW][WORDS];

// Make the sums of AT_ONCE rows of results of the digits from `first` on to the one before `end`, and `start`. If
// PAIRED, sums i are those of half i % 2 of two rows.
__device__ inline void add_digits(
    int (&sums)[AT_ONCE][4], const Weights& weights, const Rows& rows, int first, int end, int start)
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
        for (int turn = 0; turn < STEPS * TABLES; ++turn) {
            const int step = turn / TABLES;
            const uint4 some = weights(digit * STEPS * TABLES + turn);
#pragma unroll
            for (int i = turn % TABLES; i < AT_ONCE; i += TABLES) {
                const int upper = i / 2 * 2 + step * 2;  // of two rows
                if (SPARSE) {
                    multiply_sparse(sums[i], some, weights.places, rows[upper], rows[upper + 1]);
                } else if (PAIRED) {
                    multiply(sums[i], some, rows[upper][i % 2], rows[upper + 1][i % 2]);
                } else {
                    const int row = i + step / CHUNKS, c = step % CHUNKS * 2;
                    multiply(sums[i], some, rows[row][c], rows[row][c + 1]);
                }
            }
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
    const Quotients quotients;
    Writer writer(output, g, part, part.top, left, lane);
    Rows rows;
#pragma unroll 1
    for (int left_over = part.bottom - part.top + WARM; left_over > 0; left_over -= AT_ONCE) {
        weights.stay();
        ring.wait();
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) ring.read(rows[SIZE - 1 + i], i);
        ring.go_on();
        if (left_over <= part.bottom - part.top) {
            int low[AT_ONCE][4] = {}, high[AT_ONCE][4] = {};
            add_digits(high, weights, rows, 0, HIGH_DIGITS, 0);
            add_digits(low, weights, rows, HIGH_DIGITS, DIGITS, FIRST);
            unsigned pairs[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) pairs[i] = quotients(low[i], high[i]);
            writer.next(pairs, left_over);
        }
#pragma unroll
        for (int i = 0; i < SIZE - 1; ++i)
#pragma unroll
            for (int c = 0; c < WORDS; ++c) rows[i][c] = rows[i + AT_ONCE][c];
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
