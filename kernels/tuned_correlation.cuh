// The tuned kernels of the linear filters; see tuned_rows.cuh.
//
// Each source row belongs to SIZE rows of results. A thread keeps the sums of all of them and adds to
// each what its row of the mask makes of the source row: a sample is read and unpacked once for SIZE^2
// multiplications. Weights come from constant memory as operands of the multiplications.
#ifndef KERNELSCOPE_TUNED_CORRELATION
#define KERNELSCOPE_TUNED_CORRELATION
#include "correlation.cuh"
#include "tuned_rows.cuh"

// Sums of the rows of results, by how many source rows are still to come.
struct Sums {
    Weight values[SIZE][QUAD] = {};

    // Add row SIZE - 1 - i of the mask times the samples to sum i, which stood at i + 1 before.
    __device__ inline void add(const Weight (&row)[QUAD + 2 * RADIUS])
    {
#pragma unroll
        for (int i = 0; i < SIZE; ++i)
#pragma unroll
            for (int v = 0; v < QUAD; ++v) {
                Weight sum = i + 1 < SIZE ? values[i + 1][v] : 0;
#pragma unroll
                for (int t = 0; t < SIZE; ++t)
                    sum += constant_weights[(SIZE - 1 - i) * SIZE + t] * row[v + t];
                values[i][v] = sum;
            }
    }

    // The same for a separable mask: its first row is that of which it is the outer product.
    __device__ inline void add_separable(const Weight (&row)[QUAD + 2 * RADIUS])
    {
#pragma unroll
        for (int v = 0; v < QUAD; ++v) {
            Weight along = 0;
#pragma unroll
            for (int t = 0; t < SIZE; ++t) along += constant_weights[t] * row[v + t];
            add_along(v, along);
        }
    }

    __device__ inline void add_along(int v, Weight along)
    {
#pragma unroll
        for (int i = 0; i < SIZE; ++i)
            values[i][v] = (i + 1 < SIZE ? values[i + 1][v] : 0) + constant_weights[i] * along;
    }

    // The same from memory, for colour and for rows that are no whole quads.
    __device__ inline void add_samples(const Sample* first, int step, bool separable)
    {
        if (separable) {
            Weight along[QUAD] = {};
#pragma unroll 1
            for (int t = 0; t < SIZE; ++t)
#pragma unroll
                for (int v = 0; v < QUAD; ++v)
                    along[v] += constant_weights[t] * __ldg(first + t * step + v);
#pragma unroll
            for (int v = 0; v < QUAD; ++v) add_along(v, along[v]);
            return;
        }
#pragma unroll
        for (int i = 0; i < SIZE; ++i)
#pragma unroll
            for (int v = 0; v < QUAD; ++v) values[i][v] = i + 1 < SIZE ? values[i + 1][v] : 0;
#pragma unroll 1
        for (int t = 0; t < SIZE; ++t)
#pragma unroll
            for (int v = 0; v < QUAD; ++v) {
                const Weight sample = __ldg(first + t * step + v);
#pragma unroll
                for (int i = 0; i < SIZE; ++i)
                    values[i][v] += constant_weights[(SIZE - 1 - i) * SIZE + t] * sample;
            }
    }
};

// The results for QUAD complete sums. Floats that hold whole numbers are divided as if exactly: the
// product with the reciprocal is corrected by its remainder.
struct Finish {
    Weight divisor, reciprocal;
    int negative;

    __device__ inline Finish()
        : divisor(constant_weights[DIVISOR]),
          reciprocal(1 / divisor),
          negative((int)constant_weights[NEGATIVE])
    {
    }

    __device__ inline void operator()(const Weight (&sums)[QUAD], Sample (&results)[QUAD]) const
    {
#pragma unroll
        for (int v = 0; v < QUAD; ++v)
#if WEIGHT_TYPE == 2 && SAMPLE_BITS < 32
        {
            float value = sums[v] * reciprocal;
            value = fmaf(fmaf(-value, divisor, sums[v]), reciprocal, value);
            if (negative == 1) value = fabsf(value);
            if (negative == 2) value += MIDDLE;
            results[v] = sample_of(value);
        }
#else
            results[v] = finish(sums[v], divisor, negative);
#endif
    }
};

__device__ inline void correlate_tuned(
    const Sample* source, Sample* output, const Geometry& g, bool separable)
{
    const Part tile = tile_of_block(g), part = inner_part(tile, g, RADIUS);
    const int k = tile.left + threadIdx.x * QUAD;
    if (part.left <= k && k < part.right && part.top < part.bottom) {
        const Finish finished;
        const int samples = g.width * g.channels, out_samples = g.out_width * g.channels;
        const bool whole = whole_quads(out_samples);
        Sample* target = output + output_offset(g, part.top, 0) + k;
        Sums sums;
        Sample results[QUAD];
        // Rows of the source; the results of the first SIZE - 1 are not complete.
        const int first = part.top + valid_shift(RADIUS) - RADIUS;
        const int last = part.bottom + valid_shift(RADIUS) + RADIUS;
        if (WEIGHT_TYPE % 2 == 0 && g.channels == 1 && whole_quads(samples)) {
            Row<RADIUS> ahead;
            ahead.load(source, g, first, k);
#pragma unroll 1
            for (int y = first; y < last; ++y) {
                Weight row[QUAD + 2 * RADIUS];
                ahead.unpack(row);
                if (y + 1 < last) ahead.load(source, g, y + 1, k);
                if (separable)
                    sums.add_separable(row);
                else
                    sums.add(row);
                if (y < first + SIZE - 1) continue;
                finished(sums.values[0], results);
                store(target, results, whole);
                target += out_samples;
            }
        } else {
            const int offset = k + (valid_shift(RADIUS) - RADIUS) * g.channels;
#pragma unroll 1
            for (int y = first; y < last; ++y) {
                sums.add_samples(source + source_offset(g, y) + offset, g.channels, separable);
                if (y < first + SIZE - 1) continue;
                finished(sums.values[0], results);
                store(target, results, whole);
                target += out_samples;
            }
        }
    }
    compute_around(output, g, RADIUS, tile, part, [&](int y, int x, int c) {
        return correlate(source, constant_weights, g, y, x, c);
    });
}

#endif
