// Median of cubes: every voxel becomes the middle value of the voxels around it (of an even number the lower one).
//
// The median is found bit by bit, as that of pictures: median_search.cuh.
//
// level   demonstrates                                       voxels
// global  all cells are read anew for every bit              global memory, mostly its cache
// shared  a block reads its tile and halo just once          shared memory
//
// Launch: blocks of 32 x 4 x 2 threads, a thread a voxel; fewer at level *shared* where a tile would not fit.
// A voxel takes KEY_BITS comparisons and reads of each cell; at best 1 read from and 1 write to device memory.
#include "cubes.cuh"

#ifndef KEY_BITS  // 17 for integers of up to 16 bits, with a sign or without
#define KEY_BITS 32
#endif
#define LOWEST (-32768)

// Whole numbers in the order of the voxels. For floats: flip the sign bit of positive numbers, all bits of negative ones.
__device__ inline unsigned to_key(float voxel)
{
#if KEY_BITS == 32
    const unsigned bits = __float_as_uint(voxel);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
#else
    return (unsigned)((int)voxel - LOWEST);
#endif
}

__device__ inline float from_key(unsigned key)
{
#if KEY_BITS == 32
    return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
#else
    return (float)((int)key + LOWEST);
#endif
}

struct Median {
    template <typename Cells>
    __device__ inline float operator()(const Cells& cells) const
    {
        int count = 0;
        for_cells([&](int s, int t, int u) { count += cells.counts(s, t, u); });
        const int rank = (count - 1) / 2;
        unsigned key = 0;
#pragma unroll 1
        for (unsigned bit = 1u << (KEY_BITS - 1); bit != 0; bit >>= 1) {
            const unsigned candidate = key | bit;
            int below = 0;
            for_cells([&](int s, int t, int u) {
                below += cells.counts(s, t, u) && to_key(cells(s, t, u)) < candidate;
            });
            if (below <= rank) key = candidate;
        }
        return from_key(key);
    }
};

extern "C" __global__ void __launch_bounds__(THREADS) median_3d_global(const float* source, float* output, Volume g)
{
    compute(source, output, g, Median{});
}

extern "C" __global__ void __launch_bounds__(THREADS) median_3d_shared(const float* source, float* output, Volume g)
{
    extern __shared__ float memory[];
    compute_tile(memory, source, output, g, Median{});
}
