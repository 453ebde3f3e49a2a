// tuned, for bytes and binomial weights: see byte_products.cuh.
//
// Along the row the tensor cores multiply by a row of Pascal's triangle. Down the columns that is SIZE - 1 times the
// sum of two neighbours: a lane keeps the last sum of each stage, so that a sample takes SIZE - 1 additions.
#ifndef KERNELSCOPE_BINOMIAL_PRODUCTS
#define KERNELSCOPE_BINOMIAL_PRODUCTS
#ifndef SEPARABLE
#define SEPARABLE 1
#endif
#include "byte_products.cuh"

namespace products {

constexpr int STAGES = SIZE - 1;
constexpr int DIVISOR_BITS = 2 * STAGES;     // the divisor is 2^DIVISOR_BITS
// Sums of the first stages have up to 32 bits. Those of the rest are kept in two halves, of 16 bits before them.
constexpr int NARROW = SIZE <= 13 ? STAGES : 24 - STAGES, REST = STAGES - NARROW;

// The last sums of all stages, for one column.
struct Column {
    unsigned narrow[NARROW] = {};
    unsigned low[REST ? REST : 1] = {}, high[REST ? REST : 1] = {};

    // Sum of the stages `last` after adding a number to the first.
    template <int COUNT>
    static __device__ inline unsigned pushed(unsigned (&last)[COUNT], unsigned number)
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const unsigned sum = number + last[i];
            last[i] = number;
            number = sum;
        }
        return number;
    }

    // The result that the sum of a row completes, in the lowest byte.
    __device__ inline unsigned operator()(unsigned along)
    {
        unsigned sum = pushed(narrow, along);
        if constexpr (REST > 0) {
            const unsigned lower = pushed(low, sum & 0xffff);
            const unsigned upper = pushed(high, sum >> 16) + (lower >> 16);
            // Of the digits below only it matters whether there are any.
            return nearest_byte<DIVISOR_BITS - 15>(2 * upper + ((lower & 0xffff) != 0));
        } else {
            return nearest_byte<DIVISOR_BITS>(sum);
        }
    }

    // sum / 2^shift to the nearest, ties to even.
    template <int BITS>
    static __device__ inline unsigned nearest_byte(unsigned sum)
    {
        // The bits of the float 2^23 + sum; adding 1.5 * 2^23 rounds.
        if constexpr (BITS + 8 < 23)
            return __float_as_uint(fmaf(
                __uint_as_float(0x4b000000 + sum), 1.0f / (1 << BITS),
                12582912.0f - 8388608.0f / (1 << BITS)));
        else if constexpr (BITS + 8 <= 24)
            return __float_as_uint(fmaf((float)(int)sum, 1.0f / (1 << BITS), 12582912.0f));
        else
            return sum + ((1u << BITS - 1) - 1) + (sum >> BITS & 1) >> BITS;
    }
};

// The results of a warp in the rows of `part`.
__device__ inline void descend(
    Sample* memory, const Sample* source, Sample* output, const uint4* fragments, const Geometry& g,
    const Part& part, int left, int lane)
{
    // The results of the first STAGES source rows are not complete.
    constexpr int WARM = (STAGES + AT_ONCE - 1) / AT_ONCE * AT_ONCE;
    Ring ring(memory, source, g, part, WARM, left, lane);
    uint4 weights[DIGITS][CHUNKS];
#pragma unroll
    for (int i = 0; i < DIGITS * CHUNKS; ++i) weights[i / CHUNKS][i % CHUNKS] = __ldg(fragments + 32 * i + lane);
    Writer writer(output, g, part, part.top, left, lane);
    Column columns[4];
#pragma unroll 1
    for (int left_over = part.bottom - part.top + WARM; left_over > 0; left_over -= AT_ONCE) {
        ring.wait();
        unsigned rows[AT_ONCE][WORDS];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) ring.read(rows[i], i);
        ring.go_on();
        unsigned pairs[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            int along[4] = {};
#pragma unroll
            for (int digit = 0; digit < DIGITS; ++digit) {
                if (digit > 0)
#pragma unroll
                    for (int v = 0; v < 4; ++v) along[v] <<= 8;
#pragma unroll
                for (int c = 0; c < CHUNKS; ++c)
                    multiply(along, weights[digit][c], rows[i][2 * c], rows[i][2 * c + 1]);
            }
            unsigned results[4];
#pragma unroll
            for (int v = 0; v < 4; ++v) results[v] = columns[v](along[v]);
            pairs[i] = lowest_bytes(results);
        }
        if (left_over <= part.bottom - part.top) writer.next(pairs, left_over);
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
