// Median:
//
//   g(y, x) = the middle of the sorted SIZE x SIZE neighbourhood of (y, x); of an even number of cells
//   (which happens under `reduce`) the lower of the two in the middle
//
// level         what it shows                                      image
// single_block  one multiprocessor at work, the others idle        global
// global        a thread a pixel, everything from global memory    global
// shared        a block reads its tile and halo just once          shared
// texture       the texture unit fetches and treats borders        texture
//
// Launch: blocks of 32 x 8 threads over the output, a thread a pixel (single_block: 32 x 32, once).
// Up to `texture` no thread sorts: it finds the median bit by bit, from the highest, as the largest value
// that no more than `rank` cells are below. A sample takes SIZE^2 cached reads and comparisons for each
// of its bits; at best 1 read from and 1 write to device memory.
#include "common.cuh"
#include "texture.cuh"

#ifndef SIZE
#define SIZE 3
#endif
#define RADIUS (SIZE / 2)

// Whole numbers in the order of the samples. For floats: flip the sign bit of positive numbers, all bits
// of negative ones.
__device__ inline unsigned to_key(Sample sample)
{
#if SAMPLE_BITS == 32
    const unsigned bits = __float_as_uint(sample);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
#else
    return sample;
#endif
}

__device__ inline Sample from_key(unsigned key)
{
#if SAMPLE_BITS == 32
    return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
#else
    return (Sample)key;
#endif
}

// The median around (y, x) of channel c; Source is a pointer, a texture or a tile.
template <typename Source>
__device__ inline Sample median(const Source& source, const Geometry& g, int y, int x, int c)
{
    int cells = 0;
    for (int s = -RADIUS; s <= RADIUS; ++s)
        for (int t = -RADIUS; t <= RADIUS; ++t) cells += counts(g, y + s, x + t);
    const int rank = (cells - 1) / 2;

    unsigned key = 0;
    for (unsigned bit = 1u << (SAMPLE_BITS - 1); bit != 0; bit >>= 1) {
        const unsigned candidate = key | bit;
        int below = 0;
        for (int s = -RADIUS; s <= RADIUS; ++s)
            for (int t = -RADIUS; t <= RADIUS; ++t)
                below += counts(g, y + s, x + t) &&
                         to_key(fetch(source, g, y + s, x + t, c)) < candidate;
        if (below <= rank) key = candidate;
    }
    return from_key(key);
}

extern "C" __global__ void median_single_block(const Sample* source, Sample* output, Geometry g)
{
    compute_striding(output, g, RADIUS, [&](int y, int x, int c) {
        return median(source, g, y, x, c);
    });
}

extern "C" __global__ void median_global(const Sample* source, Sample* output, Geometry g)
{
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return median(source, g, y, x, c);
    });
}

extern "C" __global__ void median_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const Tile tile = load_tile(memory, source, g, RADIUS);
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return median(tile, g, y, x, c);
    });
}

extern "C" __global__ void median_texture(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return median(source, g, y, x, c);
    });
}
