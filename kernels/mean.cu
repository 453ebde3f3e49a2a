// Mean:
//
//   g(y, x) = sum of f over the SIZE x SIZE square around (y, x) / number of cells
//
// level         what it shows                                      image
// single_block  one multiprocessor at work, the others idle        global
// global        a thread a pixel, everything from global memory    global
// shared        a block reads its tile and halo just once          shared
// texture       the texture unit fetches and treats borders        texture
// tuned         running sums, down the columns and along the rows  global
//
// Launch: blocks of 32 x 8 threads over the output, a thread a pixel (single_block: 32 x 32, once).
// A sample takes SIZE^2 additions, SIZE^2 cached reads and a division; at best 1 read from and 1 write
// to device memory. Tuned: see box.cuh; about 4 additions and a multiplication, 2 reads and 1 write.
#include "box.cuh"
#include "common.cuh"
#include "texture.cuh"

#define RADIUS (SIZE / 2)

__device__ inline Sample quotient(Sum sum, int count)
{
#if SAMPLE_BITS == 32
    return sum / count;
#else
    return divide_round(sum, count);
#endif
}

// The mean around (y, x) of channel c; Source is a pointer, a texture or a tile.
template <typename Source>
__device__ inline Sample mean(const Source& source, const Geometry& g, int y, int x, int c)
{
    Sum sum = 0;
    int count = 0;
    constexpr int unrolled = UNROLL_ROWS(SIZE);  // nvcc expands no macros in pragmas
#pragma unroll unrolled
    for (int s = -RADIUS; s <= RADIUS; ++s) {
        Sum row = 0;  // row by row, so that floats keep their precision in large masks
        for (int t = -RADIUS; t <= RADIUS; ++t) {
            row += fetch(source, g, y + s, x + t, c);
            count += counts(g, y + s, x + t);
        }
        sum += row;
    }
    return quotient(sum, count);
}

extern "C" __global__ void mean_single_block(const Sample* source, Sample* output, Geometry g)
{
    compute_striding(output, g, RADIUS, [&](int y, int x, int c) {
        return mean(source, g, y, x, c);
    });
}

extern "C" __global__ void mean_global(const Sample* source, Sample* output, Geometry g)
{
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return mean(source, g, y, x, c);
    });
}

extern "C" __global__ void mean_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const Tile tile = load_tile(memory, source, g, RADIUS);
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return mean(tile, g, y, x, c);
    });
}

extern "C" __global__ void mean_texture(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return mean(source, g, y, x, c);
    });
}

struct Mean {
    __device__ inline auto operator()(Total sum, Sample) const { return quotient_of(sum); }
    __device__ inline Run::Result operator()(Total sum, Sample, int count) const
    {
        return mean_of(sum, count);
    }
};

extern "C" __global__ void __launch_bounds__(2 * HALF_BLOCK, BLOCKS)
    mean_tuned(const Sample* source, Sample* output, Geometry g)
{
    box_filter<false>(source, output, g, Mean());
}
