// Negative:
//
//   g(y, x) = white - f(y, x)
//
// One subtraction a sample: the time is that of the memory, and of the order in which threads ask for it.
//
// level        demonstrates
// mapped       as global, but source and output lie in the host's memory: the bus sets the pace
// local        samples pass through an array with a run-time index, which lives in local memory
// uncoalesced  each thread takes CELLS neighbouring samples: a warp's reads lie CELLS samples apart
// global       the threads of a warp take neighbouring samples: a warp reads whole lines of memory
//
// Launch: blocks of 32 x 8 threads over BLOCK_SAMPLES x 8 samples; a thread takes CELLS samples of a row.
// A sample takes 1 read and 1 write.
#include "common.cuh"

#ifndef CELLS
#define CELLS 16
#endif
// The samples that a row of a block's threads takes: whole pixels.
#ifndef BLOCK_SAMPLES
#define BLOCK_SAMPLES (32 * CELLS)
#endif

#if SAMPLE_BITS == 32
#define WHITE 1.0f
#else
#define WHITE SAMPLE_MAX
#endif

// The part of a row that a block's row of threads takes.
struct Span {
    const Sample* source;
    Sample* output;
    int count;
};

__device__ inline Span span_of_block(const Sample* source, Sample* output, const Geometry& g)
{
    const int y = g.first + blockIdx.y * blockDim.y + threadIdx.y;
    const int start = blockIdx.x * BLOCK_SAMPLES, end = g.width * g.channels;
    if (y >= g.last) return {source, output, 0};
    return {source + source_offset(g, y) + start, output + output_offset(g, y, 0) + start,
            min(BLOCK_SAMPLES, end - start)};
}

__device__ inline void negate_coalesced(const Span& span)
{
#pragma unroll
    for (int i = 0; i < CELLS; ++i) {
        const int k = threadIdx.x + i * 32;
        if (k < span.count) span.output[k] = WHITE - span.source[k];
    }
}

extern "C" __global__ void negative_mapped(const Sample* source, Sample* output, Geometry g)
{
    negate_coalesced(span_of_block(source, output, g));
}

extern "C" __global__ void negative_global(const Sample* source, Sample* output, Geometry g)
{
    negate_coalesced(span_of_block(source, output, g));
}

extern "C" __global__ void negative_uncoalesced(const Sample* source, Sample* output, Geometry g)
{
    const Span span = span_of_block(source, output, g);
#pragma unroll
    for (int i = 0; i < CELLS; ++i) {
        const int k = threadIdx.x * CELLS + i;
        if (k < span.count) span.output[k] = WHITE - span.source[k];
    }
}

extern "C" __global__ void negative_local(const Sample* source, Sample* output, Geometry g)
{
    const Span span = span_of_block(source, output, g);
    Sample cells[CELLS];
#pragma unroll 1
    for (int i = 0; i < CELLS; ++i) {
        const int k = threadIdx.x + i * 32;
        if (k < span.count) cells[i] = span.source[k];
    }
    // Registers have no index: a loop that is not unrolled needs an array in memory.
#pragma unroll 1
    for (int i = 0; i < CELLS; ++i) {
        const int k = threadIdx.x + i * 32;
        if (k < span.count) span.output[k] = WHITE - cells[i];
    }
}
