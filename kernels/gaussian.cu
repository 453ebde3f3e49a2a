// Gaussian:
//
//   v(y, x) = sum of w(s) f(y + s, x), s from -radius to radius      w(t) = exp(-t^2 / 2 sigma^2) / sum of all
//   g(y, x) = sum of w(t) v(y, x + t), t from -radius to radius
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
// A sample takes 2 (2 radius + 1) cached reads, 2 (3 radius + 1) operations, and 1 read from and 1 write to device
// memory for each pass; the sums in between are floats.
#include "separable.cuh"
#if TUNED
#include "separable_tuned.cuh"
#endif

struct Finish {
    __device__ inline auto operator()(Real mean, int y, int k) const { return rounded(mean); }
};

#if !TUNED
extern "C" __global__ void __launch_bounds__(1024)
    gaussian_single_block_columns(
        const Sample* source, Sample* output, const float* weights, float* sums, Geometry g)
{
    sum_columns(source, sums, weights, g);
}

extern "C" __global__ void __launch_bounds__(1024)
    gaussian_single_block_rows(
        const Sample* source, Sample* output, const float* weights, const float* sums, Geometry g)
{
    sum_rows(sums, output, weights, g, Finish());
}

extern "C" __global__ void __launch_bounds__(1024)
    gaussian_global_columns(const Sample* source, Sample* output, const float* weights, float* sums, Geometry g)
{
    sum_columns(source, sums, weights, g);
}

extern "C" __global__ void __launch_bounds__(1024)
    gaussian_global_rows(const Sample* source, Sample* output, const float* weights, const float* sums, Geometry g)
{
    sum_rows(sums, output, weights, g, Finish());
}

extern "C" __global__ void __launch_bounds__(1024)
    gaussian_constant_columns(const Sample* source, Sample* output, float* sums, Geometry g)
{
    sum_columns(source, sums, weights_in_constant_memory(), g);
}

extern "C" __global__ void __launch_bounds__(1024)
    gaussian_constant_rows(const Sample* source, Sample* output, const float* sums, Geometry g)
{
    sum_rows(sums, output, weights_in_constant_memory(), g, Finish());
}

extern "C" __global__ void __launch_bounds__(1024)
    gaussian_shared_columns(const Sample* source, Sample* output, float* sums, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    sum_columns_of_tiles(source, sums, (Sample*)memory, weights_in_constant_memory(), g);
}

extern "C" __global__ void __launch_bounds__(1024)
    gaussian_shared_rows(const Sample* source, Sample* output, const float* sums, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    sum_rows_of_tiles(sums, output, (float*)memory, weights_in_constant_memory(), g, Finish());
}

extern "C" __global__ void __launch_bounds__(1024)
    gaussian_texture_columns(cudaTextureObject_t source, Sample* output, float* sums, Geometry g)
{
    sum_columns(source, sums, weights_in_constant_memory(), g);
}

extern "C" __global__ void __launch_bounds__(1024)
    gaussian_texture_rows(cudaTextureObject_t sums, Sample* output, const float*, Geometry g)
{
    sum_rows(sums, output, weights_in_constant_memory(), g, Finish());
}
#else
extern "C" __global__ void __launch_bounds__(256) gaussian_tuned(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    filter_tile(source, output, (float*)memory, g, Finish());
}

extern "C" __global__ void __launch_bounds__(256)
    gaussian_tuned_columns(const Sample* source, Sample* output, float* sums, Geometry g)
{
    sum_all_columns(source, sums, g);
}

extern "C" __global__ void __launch_bounds__(256)
    gaussian_tuned_rows(const Sample* source, Sample* output, const float* sums, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    sum_all_rows(sums, output, (float*)memory, g, Finish());
}
#endif
