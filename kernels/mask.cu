// Custom mask:
//
//   g(y, x) = sum over s, t of w(s, t) f(y + s, x + t) / divisor
//
// where the weights are the user's and nothing is flipped.
//
// level         demonstrates                                       weights    image
// single_block  one multiprocessor at work, the others idle        global     global
// global        many blocks, everything from global memory         global     global
// constant      one read serves all threads of a warp              constant   global
// shared        a block reads its tile and halo just once          constant   shared
// texture       the texture unit fetches and treats borders        constant   texture
// tuned         bytes: see mask_products.cuh                       global     shared
//               other types: see tuned_correlation.cuh             constant   global
//
// Launch: blocks of 32 x 8 threads stride over the output, a thread a pixel at a time (single_block: one
// block of 32 x 32).
// A sample takes SIZE^2 multiplications and additions and SIZE^2 cached reads; at best 1 read from
// and 1 write to device memory.
#include "correlation.cuh"
#ifndef DIGITS
#define DIGITS 0  // of the weights, where the tensor cores multiply them by bytes
#endif
#if TUNED
#include "tuned_correlation.cuh"
#if DIGITS
#include "mask_products.cuh"
#endif
#endif

#if !TUNED
extern "C" __global__ void __launch_bounds__(1024)
    mask_single_block(const Sample* source, Sample* output, const Weight* weights, Geometry g)
{
    compute(source, output, g, Correlation{weights});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    mask_global(const Sample* source, Sample* output, const Weight* weights, Geometry g)
{
    compute(source, output, g, Correlation{weights});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    mask_constant(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, Correlation{constant_weights});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    mask_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    compute(Tiles{source, memory}, output, g, Correlation{constant_weights});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    mask_texture(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute(source, output, g, Correlation{constant_weights});
}
#elif DIGITS
extern "C" __global__ void __launch_bounds__(MASK_BOUNDS)
    mask_tuned(const Sample* source, Sample* output, const uint4* fragments, Geometry g)
{
#if TENSOR_CORES
    products::correlate(source, output, fragments, g);
#else
    correlate_tuned(source, output, g);
#endif
}
#else
extern "C" __global__ void mask_tuned(const Sample* source, Sample* output, Geometry g)
{
    correlate_tuned(source, output, g);
}
#endif
