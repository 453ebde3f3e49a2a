// Unsharp mask:
//
//   g(y, x) = f + amount (f - m) if |f - m| >= threshold, else f      m(y, x) = the Gaussian of f, see gaussian.cu
//
// level         demonstrates                                                weights    columns    rows
// single_block  one multiprocessor at work, the others idle                 global     global     global
// global        many blocks; the sums of columns go by global memory        global     global     global
// constant      one read serves all threads of a warp                       constant   global     global
// shared        a block reads its tile and halo just once in each pass      constant   shared     shared
// texture       the texture unit fetches, and treats the source's borders   constant   texture    texture
// tuned         runs of results in registers, sums of columns stay on chip  constant   global     shared
//
// Launch: two kernels, of blocks of 32 x 8 threads that stride over the samples (single_block: one block of 32 x 32).
// tuned: see separable_tuned.cuh.
// A sample takes 2 (2 radius + 1) cached reads, 2 (3 radius + 1) operations and four more, and 1 read from and 1 write
// to device memory for each pass; the sums in between are floats.
#include "separable.cuh"
#if TUNED
#include "separable_tuned.cuh"
#endif

#define AMOUNT 0
#define THRESHOLD 1
__constant__ float sharpening[2];

__device__ inline auto sharpened(Real sample, Real mean)
{
    const Real difference = sample - mean;
    const bool counts = fabsf(difference.value) >= sharpening[THRESHOLD];
    return rounded(counts ? sample + difference * sharpening[AMOUNT] : sample);
}

struct Sharpen {
    const Sample* source;
    const Geometry& g;

    __device__ inline auto operator()(Real mean, int y, int k) const
    {
        return sharpened({(float)sample_at(source, g, y, k)}, mean);
    }
};

#if !TUNED
extern "C" __global__ void __launch_bounds__(1024)
    unsharp_single_block_columns(
        const Sample* source, Sample* output, const float* weights, float* sums, Geometry g)
{
    sum_columns(source, sums, weights, g);
}

extern "C" __global__ void __launch_bounds__(1024)
    unsharp_single_block_rows(
        const Sample* source, Sample* output, const float* weights, const float* sums, Geometry g)
{
    sum_rows(sums, output, weights, g, Sharpen{source, g});
}

extern "C" __global__ void __launch_bounds__(1024)
    unsharp_global_columns(const Sample* source, Sample* output, const float* weights, float* sums, Geometry g)
{
    sum_columns(source, sums, weights, g);
}

extern "C" __global__ void __launch_bounds__(1024)
    unsharp_global_rows(const Sample* source, Sample* output, const float* weights, const float* sums, Geometry g)
{
    sum_rows(sums, output, weights, g, Sharpen{source, g});
}

extern "C" __global__ void __launch_bounds__(1024)
    unsharp_constant_columns(const Sample* source, Sample* output, float* sums, Geometry g)
{
    sum_columns(source, sums, weights_in_constant_memory(), g);
}

extern "C" __global__ void __launch_bounds__(1024)
    unsharp_constant_rows(const Sample* source, Sample* output, const float* sums, Geometry g)
{
    sum_rows(sums, output, weights_in_constant_memory(), g, Sharpen{source, g});
}

extern "C" __global__ void __launch_bounds__(1024)
    unsharp_shared_columns(const Sample* source, Sample* output, float* sums, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    sum_columns_of_tiles(source, sums, (Sample*)memory, weights_in_constant_memory(), g);
}

extern "C" __global__ void __launch_bounds__(1024)
    unsharp_shared_rows(const Sample* source, Sample* output, const float* sums, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    sum_rows_of_tiles(sums, output, (float*)memory, weights_in_constant_memory(), g, Sharpen{source, g});
}

// The second pass has a texture of the sums alone. The samples stand behind the sums of each row.
extern "C" __global__ void __launch_bounds__(1024)
    unsharp_texture_columns(cudaTextureObject_t source, Sample* output, float* sums, Geometry g)
{
    const int columns = g.width * g.channels;
    each_sample(g, columns, [&](int y, int k) {
        const auto cells = column(source, g, y + valid_shift(radius), k);
        float* const target = sums + sums_offset(g, y, 2 * columns) + k;
        target[0] = weigh(cells, weights_in_constant_memory()).value;
        target[columns] = cells[0].value;
    });
}

extern "C" __global__ void __launch_bounds__(1024)
    unsharp_texture_rows(cudaTextureObject_t sums, Sample* output, const float*, Geometry g)
{
    sum_rows(sums, output, weights_in_constant_memory(), g, [&](Real mean, int y, int k) {
        const int own = g.width * g.channels + k + valid_shift(radius) * g.channels;
        return sharpened({tex2D<float>(sums, own + 0.5f, y - g.output_row + 0.5f)}, mean);
    });
}
#else
extern "C" __global__ void __launch_bounds__(256) unsharp_tuned(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    filter_tile(source, output, (float*)memory, g, Sharpen{source, g});
}

extern "C" __global__ void __launch_bounds__(256)
    unsharp_tuned_columns(const Sample* source, Sample* output, float* sums, Geometry g)
{
    sum_all_columns(source, sums, g);
}

extern "C" __global__ void __launch_bounds__(256)
    unsharp_tuned_rows(const Sample* source, Sample* output, const float* sums, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    sum_all_rows(sums, output, (float*)memory, g, Sharpen{source, g});
}
#endif
