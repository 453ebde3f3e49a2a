// Mean with threshold:
//
//   g(y, x) = m(y, x) if |m(y, x) - f(y, x)| <= T, else f(y, x)
//
// where m is the mean of the SIZE x SIZE square around (y, x). The exact mean sum / count is compared,
// as |sum - count f| <= T count, before it is rounded.
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
// to device memory. Tuned: see box.cuh; about 6 additions and 2 multiplications, 3 reads and 1 write.
#ifndef SIZE
#define SIZE 3
#endif
#define RADIUS (SIZE / 2)
#include "common.cuh"
#include "levels.cuh"
#if TUNED
#include "box.cuh"
#endif

#if SAMPLE_BITS == 32
typedef double Precise;  // as on the CPU, so that both decide alike
__device__ inline double magnitude(double v) { return fabs(v); }
#else
typedef int Precise;
__device__ inline int magnitude(int v) { return abs(v); }
#endif

// For each number of cells that can count, from 0 to SIZE^2: the largest |sum - count f| that passes.
__constant__ Precise limits[SIZE * SIZE + 1];

#if !TUNED
// The filter for the cells around a pixel.
struct ThresholdMean {
    template <typename Cells>
    __device__ inline Sample operator()(const Cells& cells) const
    {
        Precise sum = 0;
#pragma unroll Cells::ROWS
        for (int s = -RADIUS; s <= RADIUS; ++s) {
            const auto row = cells.row(s);
#pragma unroll Cells::COLUMNS
            for (int t = -RADIUS; t <= RADIUS; ++t) sum += row[t];
        }
        const Sample pixel = cells.row(0)[0];
        const int count = cells.count();
        return magnitude(sum - (Precise)count * pixel) <= limits[count] ? quotient(sum, count) : pixel;
    }
};

extern "C" __global__ void __launch_bounds__(1024)
    threshold_mean_single_block(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, ThresholdMean());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    threshold_mean_global(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, ThresholdMean());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    threshold_mean_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    compute(Tiles{source, memory}, output, g, ThresholdMean());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    threshold_mean_texture(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute(source, output, g, ThresholdMean());
}
#else
// The result of *tuned* for the sum over all cells, or over `count` of them, and the pixel.
struct ThresholdMean {
    __device__ inline Run::Result operator()(Total sum, Sample pixel) const
    {
#if SAMPLE_BITS == 32
        return fabs(sum - (double)CELLS * pixel) <= limits[CELLS] ? mean_of(sum) : pixel;
#else
        const int difference = (int)(sum - ZERO) - CELLS * pixel;
        return abs(difference) <= limits[CELLS] ? mean_of(sum) : pixel;
#endif
    }

    __device__ inline Run::Result operator()(Total sum, Sample pixel, int count) const
    {
        count = max(count, 0);  // threads next to the image have no cells, and their results go nowhere
#if SAMPLE_BITS == 32
        return fabs(sum - (double)count * pixel) <= limits[count] ? mean_of(sum, count) : pixel;
#else
        const int difference = (int)(sum - ZERO) - count * pixel;
        return abs(difference) <= limits[count] ? mean_of(sum, count) : pixel;
#endif
    }
};

extern "C" __global__ void __launch_bounds__(2 * HALF_BLOCK, BLOCKS)
    threshold_mean_tuned(const Sample* source, Sample* output, Geometry g)
{
    box_filter<true>(source, output, g, ThresholdMean());
}
#endif
