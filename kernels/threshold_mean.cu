// Mean with threshold:
//
//   g(y, x) = m(y, x) if |m(y, x) - f(y, x)| <= T, else f(y, x)
//
// where m is the mean of the SIZE x SIZE square around (y, x). The exact mean sum / count is compared,
// as |sum - count f| <= T count, before it is rounded.
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
// to device memory. Tuned: see box.cuh; about 6 additions and 2 multiplications, 3 reads and 1 write.
#include "box.cuh"
#include "common.cuh"
#include "texture.cuh"

#define RADIUS (SIZE / 2)

// For each number of cells that can count, from 0 to SIZE^2: the largest |sum - count f| that passes.
#if SAMPLE_BITS == 32
typedef double Limit;
#else
typedef long long Limit;
#endif
__constant__ Limit limits[SIZE * SIZE + 1];

// The filter at (y, x) of channel c; Source is a pointer, a texture or a tile.
template <typename Source>
__device__ inline Sample threshold_mean(const Source& source, const Geometry& g, int y, int x, int c)
{
#if SAMPLE_BITS == 32
    double sum = 0;  // as on the CPU, so that both decide alike
#else
    int sum = 0;
#endif
    int count = 0;
    constexpr int unrolled = UNROLL_ROWS(SIZE);  // nvcc expands no macros in pragmas
#pragma unroll unrolled
    for (int s = -RADIUS; s <= RADIUS; ++s)
        for (int t = -RADIUS; t <= RADIUS; ++t) {
            sum += fetch(source, g, y + s, x + t, c);
            count += counts(g, y + s, x + t);
        }
    const Sample pixel = fetch(source, g, y, x, c);
#if SAMPLE_BITS == 32
    return fabs(sum - (double)count * pixel) <= limits[count] ? (float)(sum / count) : pixel;
#else
    const long long difference = (long long)sum - (long long)count * pixel;
    return llabs(difference) <= limits[count] ? (Sample)divide_round(sum, count) : pixel;
#endif
}

extern "C" __global__ void threshold_mean_single_block(
    const Sample* source, Sample* output, Geometry g)
{
    compute_striding(output, g, RADIUS, [&](int y, int x, int c) {
        return threshold_mean(source, g, y, x, c);
    });
}

extern "C" __global__ void threshold_mean_global(const Sample* source, Sample* output, Geometry g)
{
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return threshold_mean(source, g, y, x, c);
    });
}

extern "C" __global__ void threshold_mean_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const Tile tile = load_tile(memory, source, g, RADIUS);
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return threshold_mean(tile, g, y, x, c);
    });
}

extern "C" __global__ void threshold_mean_texture(
    cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return threshold_mean(source, g, y, x, c);
    });
}

// The result of *tuned* for the sum over all cells, or over `count` of them, and the pixel.
struct ThresholdMean {
    __device__ inline Run::Result operator()(Total sum, Sample pixel) const
    {
#if SAMPLE_BITS == 32
        return fabs(sum - (double)CELLS * pixel) <= limits[CELLS] ? mean_of(sum) : pixel;
#else
        const int difference = (int)(sum - ZERO) - CELLS * pixel;
        return abs(difference) <= (int)limits[CELLS] ? mean_of(sum) : pixel;
#endif
    }

    __device__ inline Run::Result operator()(Total sum, Sample pixel, int count) const
    {
#if SAMPLE_BITS == 32
        return fabs(sum - (double)count * pixel) <= limits[count] ? mean_of(sum, count) : pixel;
#else
        const int difference = (int)(sum - ZERO) - count * pixel;
        return abs(difference) <= (int)limits[count] ? mean_of(sum, count) : pixel;
#endif
    }
};

extern "C" __global__ void __launch_bounds__(2 * HALF_BLOCK, BLOCKS)
    threshold_mean_tuned(const Sample* source, Sample* output, Geometry g)
{
    box_filter<true>(source, output, g, ThresholdMean());
}
