// Mean:
//
//   g(y, x) = sum of f over the SIZE x SIZE square around (y, x) / number of cells
//
// level         demonstrates                                       image
// single_block  one multiprocessor at work, the others idle        global
// global        many blocks, everything from global memory         global
// shared        a block reads its tile and halo just once          shared
// texture       the texture unit fetches and treats borders        texture
// tuned         running sums, down the columns and along the rows  global
//
// Launch: blocks of 32 x 8 threads stride over the output, a thread a pixel at a time (single_block: one
// block of 32 x 32).
// A sample takes SIZE^2 additions, SIZE^2 cached reads and a division; at best 1 read from and 1 write
// to device memory. Tuned: see box.cuh; about 4 additions and a multiplication, 2 reads and 1 write. 3 x 3 of grey
// bytes: see mean_rows.cuh.
#ifndef SIZE
#define SIZE 3
#endif
#define RADIUS (SIZE / 2)
#include "common.cuh"
#include "levels.cuh"

// Whether the mask is 3 x 3 and the image one of grey bytes, whole words in a row.
#ifndef GREY_BYTES
#define GREY_BYTES 0
#endif

// Here, as either kernel below needs it, and headers are read where they are named first.
#if TUNED
#include "pair.cuh"
#endif
#if TUNED && !GREY_BYTES
#include "box.cuh"
#endif

#if !TUNED || GREY_BYTES
// The mean of the cells around a pixel.
struct Mean {
    template <typename Cells>
    __device__ inline Sample operator()(const Cells& cells) const
    {
        Sum sum = 0;
#pragma unroll Cells::ROWS
        for (int s = -RADIUS; s <= RADIUS; ++s) {
            const auto row = cells.row(s);
            Sum part = 0;  // row by row, so that floats keep their precision in large masks
#pragma unroll Cells::COLUMNS
            for (int t = -RADIUS; t <= RADIUS; ++t) part += row[t];
            sum += part;
        }
        return quotient(sum, cells.count());
    }
};
#endif

#if !TUNED
extern "C" __global__ void __launch_bounds__(1024)
    mean_single_block(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, Mean());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    mean_global(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, Mean());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    mean_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    compute(Tiles{source, memory}, output, g, Mean());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    mean_texture(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute(source, output, g, Mean());
}
#elif GREY_BYTES
#include "mean_rows.cuh"
#else
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
#endif
