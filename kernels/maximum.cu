// Maximum:
//
//   g(y, x) = the largest sample of the SIZE x SIZE square around (y, x), or of the cells in it that a mask has
//
// level         demonstrates                                       mask      image
// single_block  one multiprocessor at work, the others idle        global    global
// global        many blocks, everything from global memory         global    global
// constant      one read of the mask serves all threads of a warp  constant  global
// shared        a block reads its tile and halo just once          constant  shared
// texture       the texture unit fetches and treats borders        constant  texture
// tuned         squares: columns first, then rows                            shared
//               masks: a cell is read once for four pixels         constant  shared
//
// A square needs no mask in memory but at level constant, which shows what one costs.
//
// Launch: blocks of 32 x 8 threads stride over the output, a thread a pixel at a time (single_block: one
// block of 32 x 32).
// A sample takes SIZE^2 comparisons and cached reads; tuned: about 2 SIZE of each.
#ifndef SIZE
#define SIZE 3
#endif
#define RADIUS (SIZE / 2)
#define LOWEST 0
#include "common.cuh"
#include "extremes.cuh"

#if !TUNED && !MASKED
extern "C" __global__ void __launch_bounds__(1024)
    maximum_single_block(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, Extreme());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    maximum_global(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, Extreme());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    maximum_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    compute(Tiles{source, memory}, output, g, Extreme());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    maximum_texture(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute(source, output, g, Extreme());
}
#elif !MASKED
extern "C" __global__ void __launch_bounds__(THREADS)
    maximum_tuned(const Sample* source, Sample* output, Geometry g)
{
    by_columns(source, output, g);
}
#elif !TUNED
extern "C" __global__ void __launch_bounds__(1024)
    maximum_single_block_masked(const Sample* source, Sample* output, const unsigned* rows, Geometry g)
{
    compute(source, output, g, MaskedExtreme{rows});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    maximum_global_masked(const Sample* source, Sample* output, const unsigned* rows, Geometry g)
{
    compute(source, output, g, MaskedExtreme{rows});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    maximum_constant(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, MaskedExtreme{constant_rows});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    maximum_shared_masked(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    compute(Tiles{source, memory}, output, g, MaskedExtreme{constant_rows});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    maximum_texture_masked(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute(source, output, g, MaskedExtreme{constant_rows});
}
#else
extern "C" __global__ void __launch_bounds__(THREADS)
    maximum_tuned_masked(const Sample* source, Sample* output, Geometry g)
{
    compute_strips(source, output, g, MaskedExtreme{constant_rows});
}
#endif
