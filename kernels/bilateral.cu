// Bilateral filter: see bilateral.cuh.
//
// level         demonstrates                                          space     range     image
// single_block  one multiprocessor at work, the others idle           global    global    global
// global        many blocks, everything from global memory            global    global    global
// constant      one read serves a warp where it reads one address     constant  constant  global
// shared        a block reads its tile once; tables of many addresses constant  shared    shared
// texture       the texture unit fetches and treats borders           constant  constant  texture
// tuned         a cell is read once for four pixels                   constant  shared    shared
//
// All threads of a warp read the same entry of `space`, which constant memory serves at once, but each its own
// of `range`, which it serves one after another: shared memory has a bank for each thread.
//
// Launch: blocks of 32 x 8 threads stride over the output, a thread a pixel at a time (single_block: one
// block of 32 x 32; tuned: four pixels).
// A sample takes about 8 SIZE^2 operations, SIZE^2 cached reads and as many of each table; at best 1 read from and
// 1 write to device memory.
#ifndef SIZE
#define SIZE 5
#endif
#define RADIUS (SIZE / 2)
#include "common.cuh"
#include "bilateral.cuh"
#if TUNED
#include "strips.cuh"
#endif

#if !TUNED
extern "C" __global__ void __launch_bounds__(1024) bilateral_single_block(
    const Sample* source, Sample* output, const Factor* space, const Factor* range, Geometry g)
{
    compute(source, output, g, Bilateral{space, range});
}

extern "C" __global__ void __launch_bounds__(THREADS) bilateral_global(
    const Sample* source, Sample* output, const Factor* space, const Factor* range, Geometry g)
{
    compute(source, output, g, Bilateral{space, range});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    bilateral_constant(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, Bilateral{constant_space, constant_range});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    bilateral_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const Factor* range = shared_table(memory, Tile::ROWS * Tile::PITCH);
    compute(Tiles{source, memory}, output, g, Bilateral{constant_space, range});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    bilateral_texture(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute(source, output, g, Bilateral{constant_space, constant_range});
}
#else
struct BilateralStrips : Bilateral {
    using Bilateral::operator();

    __device__ inline void operator()(const Sample* corner, Sample* results) const
    {
        Sample centres[STRIP];
        Means means[STRIP];
#pragma unroll
        for (int r = 0; r < STRIP; ++r) centres[r] = corner[(r + RADIUS) * StripTile::PITCH + RADIUS];
#pragma unroll 1
        for (int s = 0; s < SIZE + STRIP - 1; ++s)
#pragma unroll 2
            for (int t = 0; t < SIZE; ++t) {
                const Sample cell = corner[s * StripTile::PITCH + t];
#pragma unroll
                for (int r = 0; r < STRIP; ++r)
                    if (0 <= s - r && s - r < SIZE)
                        means[r].add(
                            cell, space[(s - r) * SIZE + t], range_factor(range, cell, centres[r]));
            }
#pragma unroll
        for (int r = 0; r < STRIP; ++r) results[r] = means[r].mean();
    }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    bilateral_tuned(const Sample* source, Sample* output, Geometry g)
{
    const Factor* range = shared_table(strip_memory(), StripTile::ROWS * StripTile::PITCH);
    compute_strips(source, output, g, BilateralStrips{{constant_space, range}});
}
#endif
