// Sobel, the strength of edges:
//
//        -1 0 1        -1 -2 -1
//   gx:  -2 0 2   gy:   0  0  0    FORM 0: |gx| + |gy|, 1: sqrt(gx^2 + gy^2),
//        -1 0 1         1  2  1    2: the largest of the eight masks that rotate in steps of 45 degrees
//
// level         what it shows                                      image
// single_block  one multiprocessor at work, the others idle        global
// global        a thread a pixel, everything from global memory    global
// shared        a block reads its tile and halo just once          shared
// texture       the texture unit fetches and treats borders        texture
//
// Launch: blocks of 32 x 8 threads over the output, a thread a pixel (single_block: 32 x 32, once).
// A sample takes 8 cached reads and about 15 operations (FORM 2: 30); at best 1 read from and 1 write
// to device memory. The weights are part of the code: there is no mask to keep anywhere.
#include "common.cuh"
#include "texture.cuh"

#ifndef FORM
#define FORM 0
#endif
#define RADIUS 1

#if SAMPLE_BITS == 32
#define MAGNITUDE(v) fabsf(v)
#else
#define MAGNITUDE(v) abs(v)
#endif

__device__ inline Sum larger(Sum a, Sum b) { return a > b ? a : b; }

// The filter at (y, x) of channel c; Source is a pointer, a texture or a tile.
template <typename Source>
__device__ inline Sample sobel(const Source& source, const Geometry& g, int y, int x, int c)
{
    //   a b d
    //   e   h
    //   i j k
    const Sum a = fetch(source, g, y - 1, x - 1, c), b = fetch(source, g, y - 1, x, c);
    const Sum d = fetch(source, g, y - 1, x + 1, c), e = fetch(source, g, y, x - 1, c);
    const Sum h = fetch(source, g, y, x + 1, c), i = fetch(source, g, y + 1, x - 1, c);
    const Sum j = fetch(source, g, y + 1, x, c), k = fetch(source, g, y + 1, x + 1, c);
    const Sum gx = (d + 2 * h + k) - (a + 2 * e + i);
    const Sum gy = (i + 2 * j + k) - (a + 2 * b + d);
#if FORM == 0
    const Sum value = MAGNITUDE(gx) + MAGNITUDE(gy);
#elif FORM == 1
#if SAMPLE_BITS == 32
    const Sum value = sqrtf(gx * gx + gy * gy);
#else
    // Doubles hold these squares exactly, and a root of a whole number is never a tie.
    const double squares = (double)gx * gx + (double)gy * gy;
    const Sum value = (Sum)rint(sqrt(squares));
#endif
#else
    const Sum rising = (b + 2 * d + h) - (e + 2 * i + j);
    const Sum falling = (h + 2 * k + j) - (b + 2 * a + e);
    const Sum value = larger(
        larger(MAGNITUDE(gx), MAGNITUDE(gy)), larger(MAGNITUDE(rising), MAGNITUDE(falling)));
#endif
#if SAMPLE_BITS == 32
    return fminf(value, 3.402823466e38f);
#else
    return saturate(value);
#endif
}

extern "C" __global__ void sobel_single_block(const Sample* source, Sample* output, Geometry g)
{
    compute_striding(output, g, RADIUS, [&](int y, int x, int c) {
        return sobel(source, g, y, x, c);
    });
}

extern "C" __global__ void sobel_global(const Sample* source, Sample* output, Geometry g)
{
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return sobel(source, g, y, x, c);
    });
}

extern "C" __global__ void sobel_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const Tile tile = load_tile(memory, source, g, RADIUS);
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return sobel(tile, g, y, x, c);
    });
}

extern "C" __global__ void sobel_texture(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return sobel(source, g, y, x, c);
    });
}
