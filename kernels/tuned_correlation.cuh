// The tuned kernels of the linear filters; see tuned_rows.cuh.
//
// Each source row belongs to SIZE rows of results. A thread keeps the sums of all of them and adds to
// each the product of its row of the mask and the source row: a sample is read and unpacked once for SIZE^2
// multiplications. Weights come from constant memory.
#ifndef KERNELSCOPE_TUNED_CORRELATION
#define KERNELSCOPE_TUNED_CORRELATION
#include "correlation.cuh"
#include "tuned_rows.cuh"

// 1 for bytes with weights that are bytes: one instruction multiplies four samples and adds up. Not
// the samples are shifted to where the weights are, but for each of the QUAD results the weights have
// been, so that all results use the same words of the image.
#ifndef DOT
#define DOT 0
#endif
// The mask is the outer product of its first row with itself.
#ifndef SEPARABLE
#define SEPARABLE 0
#endif

// Sums are compared and divided as floats where these are exact.
#define FLOAT_FINISH (SAMPLE_BITS < 32 && (WEIGHT_TYPE == 2 || DOT))

#if DOT
typedef Row<RADIUS> Words;
__constant__ int constant_words[QUAD][SIZE][Words::COUNT];

// Whole numbers of less than 2^22 are added to the bits of 1.5 * 2^23, which makes them floats.
#define NOTHING 0x4b400000
__device__ inline float total_of(int sum) { return __int_as_float(sum) - 12582912.0f; }

__device__ inline int dot(unsigned samples, int weights, int sum)
{
    int result;
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(samples), "r"(weights), "r"(sum));
    return result;
}
#else
#define NOTHING 0
__device__ inline Weight total_of(Weight sum) { return sum; }
#endif

// Sums of the rows of results, by how many source rows are still to come. Each source row moves them
// on: it is row SIZE - 1 - i of the mask to sum i, which stood at i + 1 before.
struct Sums {
    Weight values[SIZE][QUAD] = {};

    __device__ inline Weight before(int i, int v) const
    {
        return i + 1 < SIZE ? values[i + 1][v] : NOTHING;
    }

    // Add a row of a grey image of whole quads.
    __device__ inline void add(const Row<RADIUS>& quads)
    {
#if DOT
#pragma unroll
        for (int i = 0; i < SIZE; ++i)
#pragma unroll
            for (int v = 0; v < QUAD; ++v) {
                int sum = before(i, v);
#pragma unroll
                for (int w = (Words::SKIP + v) / QUAD; w <= (Words::SKIP + v + SIZE - 1) / QUAD; ++w)
                    sum = dot(quads.quads[w], constant_words[v][SIZE - 1 - i][w], sum);
                values[i][v] = sum;
            }
#elif SEPARABLE
        Factor row[QUAD + 2 * RADIUS];
        quads.unpack(row);
#pragma unroll
        for (int v = 0; v < QUAD; ++v) {
            Factor along = 0;
#pragma unroll
            for (int t = 0; t < SIZE; ++t) along += (Factor)constant_weights[t] * row[v + t];
            add_along(v, along);
        }
#else
        Weight row[QUAD + 2 * RADIUS];
        quads.unpack(row);
#pragma unroll
        for (int i = 0; i < SIZE; ++i)
#pragma unroll
            for (int v = 0; v < QUAD; ++v) {
                Weight sum = before(i, v);
#pragma unroll
                for (int t = 0; t < SIZE; ++t)
                    sum += constant_weights[(SIZE - 1 - i) * SIZE + t] * row[v + t];
                values[i][v] = sum;
            }
#endif
    }

    // The same for colour and for rows that are no whole quads: cells are `step` samples apart.
    __device__ inline void add(const Sample* first, int step)
    {
#if SEPARABLE
        Factor along[QUAD] = {};
#pragma unroll 1
        for (int t = 0; t < SIZE; ++t)
#pragma unroll
            for (int v = 0; v < QUAD; ++v)
                along[v] += (Factor)constant_weights[t] * __ldg(first + t * step + v);
#pragma unroll
        for (int v = 0; v < QUAD; ++v) add_along(v, along[v]);
#else
#pragma unroll
        for (int i = 0; i < SIZE; ++i)
#pragma unroll
            for (int v = 0; v < QUAD; ++v) values[i][v] = before(i, v);
#pragma unroll 1
        for (int t = 0; t < SIZE; ++t)
#pragma unroll
            for (int v = 0; v < QUAD; ++v) {
                const Weight sample = __ldg(first + t * step + v);
#pragma unroll
                for (int i = 0; i < SIZE; ++i)
                    values[i][v] += constant_weights[(SIZE - 1 - i) * SIZE + t] * sample;
            }
#endif
    }

#if SEPARABLE
    // Type of sums along a row: 32 bits, where weights and samples have no more.
#if WEIGHT_TYPE == 1
    typedef int Factor;
#else
    typedef Weight Factor;
#endif

    __device__ inline void add_along(int v, Factor along)
    {
#pragma unroll
        for (int i = 0; i < SIZE; ++i)
            values[i][v] = before(i, v) + (Weight)(Factor)constant_weights[i] * along;
    }
#endif
};

// The results for QUAD complete sums.
struct Finish {
    Weight divisor;
    int negative;
#if FLOAT_FINISH
    float reciprocal, offset, fold;
#else
    int shift;  // where the divisor is 2^shift, else -1
#endif

    __device__ inline Finish()
        : divisor(finishing[DIVISOR]), negative((int)finishing[NEGATIVE])
    {
#if FLOAT_FINISH
        reciprocal = 1.0f / divisor;
        offset = negative == 2 ? MIDDLE : 0;
        fold = negative == 1 ? -1 : 0;
#elif WEIGHT_TYPE < 2
        shift = divisor > 1 && (divisor & (divisor - 1)) == 0 ? __ffsll(divisor) - 1 : -1;
#endif
    }

    __device__ inline void operator()(const Weight (&sums)[QUAD], Result (&results)[QUAD]) const
    {
#if FLOAT_FINISH
        float values[QUAD];
#pragma unroll
        for (int v = 0; v < QUAD; ++v) values[v] = total_of(sums[v]);
        if (divisor != 1) {
            // The product with the reciprocal, corrected by its remainder, is the nearest quotient.
#pragma unroll
            for (int v = 0; v < QUAD; ++v) {
                const float value = values[v] * reciprocal;
                const float rest = fmaf(-value, divisor, values[v]);
                values[v] = fmaf(rest, reciprocal, value);
            }
        }
#pragma unroll
        for (int v = 0; v < QUAD; ++v) {
            const float value = values[v] + offset;
            results[v] = nearest(fmaxf(value, value * fold));
        }
#else
#pragma unroll
        for (int v = 0; v < QUAD; ++v) {
#if WEIGHT_TYPE < 2
            if (shift > 0 && negative == 0) {
                // To the nearest; a tie, half of the divisor, goes up from an odd quotient only.
                const Weight odd = sums[v] >> shift & 1;
                results[v] = saturate((sums[v] + divisor / 2 - 1 + odd) >> shift);
                continue;
            }
#endif
            results[v] = finish(sums[v], divisor, negative);
        }
#endif
    }
};

__device__ inline void correlate_tuned(const Sample* source, Sample* output, const Geometry& g)
{
    const Part tile = tile_of_block(g), part = inner_part(tile, g, RADIUS);
    const int k = tile.left + threadIdx.x * QUAD;
    if (part.left <= k && k < part.right && part.top < part.bottom) {
        const Finish finished;
        const int out_samples = g.out_width * g.channels;
        const bool whole = whole_quads(out_samples);
        Sample* target = output + output_offset(g, part.top, 0) + k;
        Sums sums;
        Result results[QUAD];
        Descent source_rows(source, g, part.top + valid_shift(RADIUS) - RADIUS, k);
        // The results of the first SIZE - 1 source rows are not complete.
        const int count = part.bottom - part.top + SIZE - 1;
        if (g.channels == 1 && whole_quads(g.width)) {
            Row<RADIUS> row;
            row.load(source_rows);
#pragma unroll 1
            for (int i = 0; i < count; ++i) {
                const Row<RADIUS> here = row;
                if (i + 1 < count) {
                    source_rows.go_down();
                    row.load(source_rows);  // ahead: it takes long
                }
                sums.add(here);
                if (i < SIZE - 1) continue;
                finished(sums.values[0], results);
                store(target, results, whole);
                target += out_samples;
            }
        } else {
            const int offset = (valid_shift(RADIUS) - RADIUS) * g.channels;
#pragma unroll 1
            for (int i = 0; i < count; ++i) {
                sums.add(source_rows.at + offset, g.channels);
                source_rows.go_down();
                if (i < SIZE - 1) continue;
                finished(sums.values[0], results);
                store(target, results, whole);
                target += out_samples;
            }
        }
    }
    compute_edges<RADIUS>(source, output, g, Correlation{constant_weights});
}

#endif
