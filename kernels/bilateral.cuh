// The bilateral mean of the cells around a pixel:
//
//   g = sum of w u / sum of w,   w = space(s, t) range(|u - centre|)
//
// The factors of w are tables: of SIZE^2 places, and of differences. For integers all are integers, w has WEIGHT_BITS,
// and sums are exact (factors go up to 65534, so that a product and half a unit of 14 bits fit into 32). Between two entries of `range` a difference of 16 bits or of floats is interpolated.
#ifndef KERNELSCOPE_BILATERAL
#define KERNELSCOPE_BILATERAL
#include "levels.cuh"

#define CELLS (SIZE * SIZE)
#define WEIGHT_BITS (CELLS <= 256 ? 16 : 14)  // 32 bits hold the sum of all weights times 255

#if SAMPLE_BITS == 8
#define ENTRIES 256
#else
#define ENTRIES 1025
#endif

#if SAMPLE_BITS == 32
typedef float Factor;
typedef float Total;
typedef float Scale;
#elif SAMPLE_BITS == 16
typedef unsigned Factor;  // of up to 16 bits
typedef long long Total;
typedef int Scale;
#else
typedef unsigned Factor;
typedef unsigned Total;
typedef int Scale;
#endif

__constant__ Factor constant_space[CELLS];
__constant__ Factor constant_range[ENTRIES];

// Entries of `range` for a difference: of floats for 1, of 16 bits for 2^scale.
__constant__ Scale scale[1];

__device__ inline Factor range_factor(const Factor* range, Sample cell, Sample centre)
{
#if SAMPLE_BITS == 32
    const float place = fabsf(cell - centre) * scale[0];
    if (!(place < ENTRIES - 1)) return 0;
    const int entry = (int)place;
    return range[entry] + (place - entry) * (range[entry + 1] - range[entry]);
#else
    const unsigned difference = cell < centre ? centre - cell : cell - centre;
#if SAMPLE_BITS == 8
    return range[difference];
#else
    const unsigned entry = difference >> scale[0], rest = difference - (entry << scale[0]);
    if (entry >= ENTRIES - 1) return 0;
    const unsigned one = 1u << scale[0];
    return (range[entry] * (one - rest) + range[entry + 1] * rest + one / 2) >> scale[0];
#endif
#endif
}

struct Means {
    Total sum = 0;
    Factor weights = 0;

    __device__ inline void add(Sample cell, Factor space, Factor range)
    {
#if SAMPLE_BITS == 32
        const Factor weight = space * range;
#else
        const Factor weight = (space * range + (1u << (31 - WEIGHT_BITS))) >> (32 - WEIGHT_BITS);
#endif
        sum += (Total)weight * cell;
        weights += weight;
    }

    __device__ inline Sample mean() const
    {
#if SAMPLE_BITS == 32
        return sum / weights;
#elif SAMPLE_BITS == 16
        return (Sample)divide_round<Total>(sum, weights);
#else
        return quotient(sum, weights);
#endif
    }
};

struct Bilateral {
    const Factor* space;
    const Factor* range;

    template <typename Cells>
    __device__ inline Sample operator()(const Cells& cells) const
    {
        const Sample centre = cells.row(0)[0];
        Means means;
#pragma unroll 1
        for (int s = -RADIUS; s <= RADIUS; ++s) {
            const auto row = cells.row(s);
            const Factor* const factors = space + (s + RADIUS) * SIZE + RADIUS;
#pragma unroll 4
            for (int t = -RADIUS; t <= RADIUS; ++t)
                if (row.counts(t)) means.add(row[t], factors[t], range_factor(range, row[t], centre));
        }
        return means.mean();
    }
};

// The range table behind the tile in shared memory, where threads read different entries at once.
__device__ inline Factor* shared_table(void* memory, int samples)
{
    Factor* const table = (Factor*)((unsigned char*)memory + (samples * sizeof(Sample) + 15) / 16 * 16);
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < ENTRIES; i += blockDim.x * blockDim.y)
        table[i] = constant_range[i];
    return table;  // a tile is read next, and waits for all threads
}

#endif
