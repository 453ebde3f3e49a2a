// Median:
//
//   g(y, x) = the middle of the sorted SIZE x SIZE neighbourhood of (y, x); of an even number of cells
//   (which happens under `reduce`) the lower of the two in the middle; or, see median_masked.cuh, of the cells
//   in it that a mask has
//
// level         demonstrates                                       mask      image
// single_block  one multiprocessor at work, the others idle        global    global
// global        many blocks, everything from global memory         global    global
// selection     each thread sorts a copy of its window in part     constant  global, copy shared
// constant      one read of the mask serves all threads of a warp  constant  global
// shared        a block reads its tile and halo just once          constant  shared
// texture       the texture unit fetches and treats borders        constant  texture
// tuned         squares: sorting in registers; bits in words                 global
//               masks: a cell is read once for four pixels         constant  shared
//
// A square needs no mask in memory but at level constant, which shows what one costs.
//
// Launch: blocks of 32 x 4 threads stride over the output, a thread a pixel at a time (single_block: one
// block of 32 x 32; selection: smaller blocks where windows are large).
// But for `selection`, up to `texture` no thread sorts: it finds the median bit by bit, from the highest,
// as the largest value that no more than `rank` cells are below: SIZE^2 comparisons for each bit of a sample.
// The compiler keeps windows up to 9 x 9 in registers: SIZE^2 cached reads, of larger ones as many for each
// bit. At best 1 read from and 1 write to device memory.
// `tuned` is other methods: median_rows.cuh for 3 x 3 of grey bytes, median_columns.cuh for masks of 5 x 5 to 11 x 11,
// median_network.cuh for others up to 13 x 13 (of more than 8 bits 15 x 15), median_planes.cuh for larger
// ones. Those from 13 x 13 on of large pictures of bytes: median_thresholds.cuh.
#ifndef SIZE
#define SIZE 3
#endif
#define RADIUS (SIZE / 2)
#include "common.cuh"
#include "edges.cuh"
#include "levels.cuh"
#include "median_cut.cuh"
#include "median_search.cuh"
#ifndef MASKED
#define MASKED 0  // whether a mask says which cells count
#endif
#ifndef FULL
#define FULL 0  // whether all cells of that mask count
#endif
#if MASKED
#include "median_masked.cuh"
#endif

// The largest mask that is sorted by a network. One of 15 x 15 has no room in registers, but is still twice as
// fast where samples have more bits to search for.
#define NETWORK_UP_TO (SAMPLE_BITS == 8 ? 13 : 15)

// Whether to count with 32 thresholds at once, which is for bytes alone.
#ifndef THRESHOLDS
#define THRESHOLDS 0
#endif

// The masks for which threads share sorted columns.
#define COLUMNS_FROM 5
#define COLUMNS_UP_TO 11

// Whether the mask is 3 x 3 and the image one of grey bytes, whole words of four in a row.
#ifndef GREY_BYTES
#define GREY_BYTES 0
#endif

#if !TUNED && !MASKED
extern "C" __global__ void __launch_bounds__(1024)
    median_single_block(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, Median());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    median_global(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, Median());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    median_selection(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const int thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
    compute(source, output, g, Selection{(Sample*)memory + thread, threads});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    median_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    compute(Tiles{source, memory}, output, g, Median());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    median_texture(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute(source, output, g, Median());
}

#elif !TUNED
extern "C" __global__ void __launch_bounds__(1024)
    median_single_block_masked(const Sample* source, Sample* output, const unsigned* rows, Geometry g)
{
    compute(source, output, g, MaskedMedian{rows});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    median_global_masked(const Sample* source, Sample* output, const unsigned* rows, Geometry g)
{
    compute(source, output, g, MaskedMedian{rows});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    median_selection_masked(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const int thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
    const Selection selection{(Sample*)memory + thread, threads};
    compute(source, output, g, MaskedSelection{constant_rows, selection});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    median_constant(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, MaskedMedian{constant_rows});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    median_shared_masked(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    compute(Tiles{source, memory}, output, g, MaskedMedian{constant_rows});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    median_texture_masked(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute(source, output, g, MaskedMedian{constant_rows});
}

#elif MASKED
extern "C" __global__ void __launch_bounds__(THREADS)
    median_tuned_masked(const Sample* source, Sample* output, Geometry g)
{
    compute_strips(source, output, g, MaskedMedian{constant_rows});
}

#elif THRESHOLDS
#include "median_thresholds.cuh"
#elif GREY_BYTES
#include "median_rows.cuh"
#elif SIZE <= NETWORK_UP_TO
#include "median_core.cuh"
#if SIZE >= COLUMNS_FROM && SIZE <= COLUMNS_UP_TO
#include "median_columns.cuh"
#else
#include "median_network.cuh"
#endif
#else
#include "median_planes.cuh"
#endif
