// Rotating mask:
//
//   of the nine 3 x 3 windows that contain the pixel, the mean of the one with the smallest variance;
//   of windows with equal variance, the smallest mean
//
// The variance of n cells with sum S and sum of squares Q is (n Q - S^2) / n^2: compared as whole numbers
// without division. Floats are summed as doubles in the order of the CPU code, without fused
// multiply-adds, so that both choose the same window.
//
// level         what it shows                                      image
// single_block  one multiprocessor at work, the others idle        global
// global        a thread a pixel, everything from global memory    global
// shared        a block reads its tile and halo just once          shared
// texture       the texture unit fetches and treats borders        texture
//
// Launch: blocks of 32 x 8 threads over the output, a thread a pixel (single_block: 32 x 32, once).
// A sample takes 81 cached reads and about 250 operations; at best 1 read from and 1 write to device
// memory.
#include "common.cuh"
#include "texture.cuh"

#define RADIUS 2

#if SAMPLE_BITS == 32
typedef double Wide;
#define MULTIPLY(a, b) __dmul_rn(a, b)
#define ADD(a, b) __dadd_rn(a, b)
#else
typedef long long Wide;
#define MULTIPLY(a, b) ((a) * (b))
#define ADD(a, b) ((a) + (b))
#endif

// The filter at (y, x) of channel c; Source is a pointer, a texture or a tile.
template <typename Source>
__device__ inline Sample rotating_mask(const Source& source, const Geometry& g, int y, int x, int c)
{
    Wide best_sum = 0, best_variance = 0;  // the variance times n^2
    int best_count = 0;
    for (int v = -1; v <= 1; ++v)
        for (int u = -1; u <= 1; ++u) {
            Wide sum = 0, squares = 0;
            int count = 0;
            for (int s = -1; s <= 1; ++s)
                for (int t = -1; t <= 1; ++t) {
                    const Wide sample = fetch(source, g, y + v + s, x + u + t, c);
                    sum = ADD(sum, sample);
                    squares = ADD(squares, MULTIPLY(sample, sample));
                    count += counts(g, y + v + s, x + u + t);
                }
            if (count == 0) continue;
            const Wide n = count, m = best_count;
            const Wide variance = ADD(MULTIPLY(n, squares), -MULTIPLY(sum, sum));
            const Wide here = MULTIPLY(variance, MULTIPLY(m, m));
            const Wide best = MULTIPLY(best_variance, MULTIPLY(n, n));
            if (best_count == 0 || here < best ||
                (here == best && MULTIPLY(sum, m) < MULTIPLY(best_sum, n))) {
                best_sum = sum;
                best_variance = variance;
                best_count = count;
            }
        }
#if SAMPLE_BITS == 32
    return (float)(best_sum / best_count);
#else
    return (Sample)divide_round<int>((int)best_sum, best_count);
#endif
}

extern "C" __global__ void rotating_mask_single_block(
    const Sample* source, Sample* output, Geometry g)
{
    compute_striding(output, g, RADIUS, [&](int y, int x, int c) {
        return rotating_mask(source, g, y, x, c);
    });
}

extern "C" __global__ void rotating_mask_global(const Sample* source, Sample* output, Geometry g)
{
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return rotating_mask(source, g, y, x, c);
    });
}

extern "C" __global__ void rotating_mask_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const Tile tile = load_tile(memory, source, g, RADIUS);
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return rotating_mask(tile, g, y, x, c);
    });
}

extern "C" __global__ void rotating_mask_texture(
    cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute_pixel(output, g, RADIUS, [&](int y, int x, int c) {
        return rotating_mask(source, g, y, x, c);
    });
}
