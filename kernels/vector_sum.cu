// Vector sum: each row is a vector, which is added to itself backwards.
//
//   g(y, x) = (f(y, x) + f(y, width - 1 - x)) / 2
//
// Whole numbers are rounded to nearest, ties to even.
//
// All levels run the same code, whose threads stride over the rows by as many pixels as the grid
// has threads, so that it is right for any launch.
//
// level              launch
// one_thread_blocks  a block of one thread for each pixel: a warp runs for the sake of one lane
// single_block       one block of 32 x 32 threads: one multiprocessor at work, the others idle
// global             blocks of 32 x 8 threads over the output
//
// A sample takes 2 reads, 2 operations and 1 write.
#include "common.cuh"

__device__ inline Sample average(Sample a, Sample b)
{
#if SAMPLE_BITS == 32
    return 0.5f * a + 0.5f * b;
#else
    const int sum = a + b, half = sum >> 1;
    return (Sample)(half + (sum & half & 1));
#endif
}

__device__ inline void add_rows(const Sample* source, Sample* output, const Geometry& g)
{
    const int columns = gridDim.x * blockDim.x, rows = gridDim.y * blockDim.y;
    for (int y = g.first + blockIdx.y * blockDim.y + threadIdx.y; y < g.last; y += rows) {
        const Sample* row = source + source_offset(g, y);
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < g.width; x += columns)
            for (int c = 0; c < g.channels; ++c)
                output[output_offset(g, y, x) + c] =
                    average(row[x * g.channels + c], row[(g.width - 1 - x) * g.channels + c]);
    }
}

extern "C" __global__ void vector_sum_one_thread_blocks(const Sample* source, Sample* output, Geometry g)
{
    add_rows(source, output, g);
}

extern "C" __global__ void vector_sum_single_block(const Sample* source, Sample* output, Geometry g)
{
    add_rows(source, output, g);
}

extern "C" __global__ void vector_sum_global(const Sample* source, Sample* output, Geometry g)
{
    add_rows(source, output, g);
}
