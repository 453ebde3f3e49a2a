// Weighted mean:
//
//   g(y, x) = sum over s, t of b(s) b(t) f(y + s, x + t) / (sum of b)^2
//
// where b is the binomial row (1 2 1), (1 4 6 4 1), ....
//
// level         demonstrates                                       weights    image
// single_block  one multiprocessor at work, the others idle        global     global
// global        many blocks, everything from global memory         global     global
// constant      one read serves all threads of a warp              constant   global
// shared        a block reads its tile and halo just once          constant   shared
// texture       the texture unit fetches and treats borders        constant   texture
// tuned         bytes: see binomial_products.cuh                   global     shared
//               other types: see tuned_correlation.cuh             constant   global
//
// Launch: blocks of 32 x 8 threads stride over the output, a thread a pixel at a time (single_block: one
// block of 32 x 32).
// A sample takes SIZE^2 multiplications and additions and SIZE^2 cached reads; at best 1 read from
// and 1 write to device memory.
#define SEPARABLE 1
#include "correlation.cuh"
#ifndef DIGITS
#define DIGITS 0  // of the weights of a row, where the tensor cores multiply them by bytes
#endif
#if TUNED
#include "tuned_correlation.cuh"
#if DIGITS
#include "binomial_products.cuh"
#endif
#endif

#if !TUNED
extern "C" __global__ void __launch_bounds__(1024)
    weighted_mean_single_block(const Sample* source, Sample* output, const Weight* weights, Geometry g)
{
    compute(source, output, g, Correlation{weights});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    weighted_mean_global(const Sample* source, Sample* output, const Weight* weights, Geometry g)
{
    compute(source, output, g, Correlation{weights});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    weighted_mean_constant(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, Correlation{constant_weights});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    weighted_mean_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    compute(Tiles{source, memory}, output, g, Correlation{constant_weights});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    weighted_mean_texture(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute(source, output, g, Correlation{constant_weights});
}
#elif DIGITS
extern "C" __global__ void __launch_bounds__(TUNED_THREADS)
    weighted_mean_tuned(const Sample* source, Sample* output, const uint4* fragments, Geometry g)
{
#if TENSOR_CORES
    products::correlate(source, output, fragments, g);
#else
    correlate_tuned(source, output, g);
#endif
}
#else
extern "C" __global__ void weighted_mean_tuned(const Sample* source, Sample* output, Geometry g)
{
    correlate_tuned(source, output, g);
}
#endif
