// Morphology: opening, closing, gradient and top-hats with a mask that has SIZE rows of SIZE cells or less.
//
//   opening    the dilation of the erosion           white top-hat  the source less its opening
//   closing    the erosion of the dilation           black top-hat  the closing less the source
//   gradient   the dilation less the erosion
//
// Erosion is the smallest of the cells that the mask has around a pixel, dilation the largest of those that the mask
// turned by half a turn has. Openings and closings are two launches: `first` writes the result of the first to
// a buffer, in which `second` finds the cells of a picture of that size, and treats its borders. A top-hat keeps the
// result of `second` in another buffer, and `finish` subtracts.
//
// level         demonstrates                                       mask      image    buffer
// single_block  one multiprocessor at work, the others idle        global    global   global
// global        many blocks, everything from global memory         global    global   global
// constant      one read of the mask serves all threads of a warp  constant  global   global
// shared        a block reads its tile and halo just once          constant  shared   shared
// texture       the texture unit fetches and treats borders        constant  texture  texture
// tuned         squares: columns first, then rows                            shared   shared
//               masks: a cell is read once for four pixels         constant  shared   shared
//
// Launch: blocks of 32 x 8 threads stride over the output, a thread a pixel at a time (single_block: one
// block of 32 x 32; tuned masks: four pixels a thread), and in `first` over the rows around it.
// A sample takes a comparison and a cached read for each cell of the mask, twice; a square of tuned about 4 SIZE.
#ifndef SIZE
#define SIZE 3
#endif
#define RADIUS (SIZE / 2)
// Of the launch: whether it erodes; without meaning for the gradient.
#ifndef LOWEST
#define LOWEST 1
#endif
// Whether a mask says which cells count: not for squares at level tuned.
#ifndef MASKED
#define MASKED 1
#endif
// 0: none, 1: white, 2: black.
#ifndef TOP_HAT
#define TOP_HAT 0
#endif
// Whether to compile level texture, whose buffer is one of floats, of which textures are made; the second launch
// reads such a texture.
#ifndef FLOATS
#define FLOATS 0
#endif
#ifndef SECOND
#define SECOND 0
#endif
#if FLOATS && SECOND
#define TEXEL float
#endif
#include "common.cuh"
#if FLOATS
typedef float Cell;
#else
typedef Sample Cell;
#endif
#include "extremes.cuh"

// Rows of the buffer: those of the output, and RADIUS more on each side. Row 0 is row `buffer_row` of the
// picture between the launches, which `valid` makes smaller.
__device__ inline int buffer_row(const Geometry& g) { return g.output_row + SHIFT - RADIUS; }

// The first launch: body(geometry) for the rows of the buffer. Under `wrap` those beyond the picture are its rows
// on the other side, computed again, as a strip of a picture does not have them.
template <typename Body>
__device__ inline void over_buffer(const Geometry& g, const Body& body)
{
    const int first = g.first + SHIFT - RADIUS, last = g.last + SHIFT + RADIUS;
    const int height = g.height - 2 * SHIFT;
    Geometry part = g;
    part.out_width = g.width - 2 * SHIFT;
    int at = 0;  // the row that row 0 of the picture is
#if BORDER == BORDER_WRAP
#pragma unroll 1
    for (at = first - (first % height + height) % height; at < last; at += height)
#endif
    {
        part.first = max(first - at, 0);
        part.last = min(last - at, height);
        part.output_row = buffer_row(g) - at;
        body(part);
    }
}

// The geometry of the second launch, whose source is the buffer.
__device__ inline Geometry from_buffer(Geometry g)
{
    g.source_row = buffer_row(g);
    g.width -= 2 * SHIFT;
    g.height -= 2 * SHIFT;
    if (BORDER == BORDER_WRAP) g.source_row = (g.source_row % g.height + g.height) % g.height;
    g.hardware_border = 0;
    return g;
}

__device__ inline Sample difference(Sample a, Sample b)
{
    return SAMPLE_BITS == 32 || a > b ? a - b : 0;
}

#if MASKED
__device__ inline void include(Sample cell, bool in_mask, bool in_turned, Sample& low, Sample& high)
{
    if (in_mask && cell < low) low = cell;
    if (in_turned && cell > high) high = cell;
}

// The largest of the turned mask's cells less the smallest of the mask's.
struct Gradient {
    const unsigned* rows;

    template <typename Cells>
    __device__ inline Sample operator()(const Cells& cells) const
    {
        Sample low = (Sample)HIGHEST_SAMPLE, high = (Sample)LOWEST_SAMPLE;
        bool none = true, none_turned = true;
#pragma unroll Cells::ROWS
        for (int s = -RADIUS; s <= RADIUS; ++s) {
            const auto row = cells.row(s);
            const unsigned mask = rows[RADIUS + s], turned = rows[RADIUS - s];
#pragma unroll Cells::COLUMNS
            for (int t = -RADIUS; t <= RADIUS; ++t) {
                if (!row.counts(t)) continue;
                const bool in_mask = mask >> (RADIUS + t) & 1, in_turned = turned >> (RADIUS - t) & 1;
                include(row[t], in_mask, in_turned, low, high);
                none = none && !in_mask;
                none_turned = none_turned && !in_turned;
            }
        }
        if (Cells::CUT && none) low = cells.row(0)[0];  // `reduce` leaves no cell
        if (Cells::CUT && none_turned) high = cells.row(0)[0];
        return difference(high, low);
    }

#if TUNED
    __device__ inline void operator()(const Sample* corner, Sample* results) const
    {
        Sample low[STRIP], high[STRIP];
#pragma unroll
        for (int r = 0; r < STRIP; ++r) low[r] = (Sample)HIGHEST_SAMPLE, high[r] = (Sample)LOWEST_SAMPLE;
#pragma unroll 1
        for (int s = 0; s < SIZE + STRIP - 1; ++s) {
            // Row s of window r is row s - r of the mask; in the turned mask, that row counts from the end.
            const StripBits mask(s);
            unsigned turned[STRIP];
#pragma unroll
            for (int r = 0; r < STRIP; ++r) {
                const int row = SIZE - 1 - s + r;
                turned[r] = 0 <= row && row < SIZE ? rows[row] : 0;
            }
#pragma unroll 4
            for (int t = 0; t < SIZE; ++t) {
                const Sample cell = corner[s * StripTile::PITCH + t];
#pragma unroll
                for (int r = 0; r < STRIP; ++r)
                    include(cell, mask.counts(r, t), turned[r] >> (SIZE - 1 - t) & 1, low[r], high[r]);
            }
        }
#pragma unroll
        for (int r = 0; r < STRIP; ++r) results[r] = difference(high[r], low[r]);
    }
#endif
};
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    morphology_finish(const Sample* source, Sample* output, const Sample* kept, Geometry g)
{
    const int samples = g.out_width * g.channels;
    const int shift = BORDER == BORDER_VALID ? 2 * RADIUS : 0;
    for (int y = g.first + blockIdx.y * blockDim.y + threadIdx.y; y < g.last; y += gridDim.y * blockDim.y) {
        const Sample* from = source + source_offset(g, y + shift) + (size_t)shift * g.channels;
        const size_t row = output_offset(g, y, 0);
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < samples; i += gridDim.x * blockDim.x) {
            const Sample own = from[i], found = kept[row + i];
            output[row + i] = TOP_HAT == 1 ? difference(own, found) : difference(found, own);
        }
    }
}

#if !TUNED && !FLOATS
extern "C" __global__ void __launch_bounds__(1024)
    morphology_single_block_first(const Sample* source, Sample* output,
        const unsigned* rows, Cell* middle, Geometry g)
{
    over_buffer(g, [&](const Geometry& part) { compute(source, middle, part, MaskedExtreme{rows}); });
}

extern "C" __global__ void __launch_bounds__(1024)
    morphology_single_block_second(const Sample* source, Sample* output,
        const unsigned* rows, const Cell* middle, Sample* kept, Geometry g)
{
    Sample* target = TOP_HAT ? kept : output;
    compute(middle, target, from_buffer(g), MaskedExtreme{rows});
}

extern "C" __global__ void __launch_bounds__(1024)
    morphology_single_block_gradient(const Sample* source, Sample* output, const unsigned* rows, Geometry g)
{
    compute(source, output, g, Gradient{rows});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    morphology_global_first(const Sample* source, Sample* output,
        const unsigned* rows, Cell* middle, Geometry g)
{
    over_buffer(g, [&](const Geometry& part) { compute(source, middle, part, MaskedExtreme{rows}); });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    morphology_global_second(const Sample* source, Sample* output,
        const unsigned* rows, const Cell* middle, Sample* kept, Geometry g)
{
    Sample* target = TOP_HAT ? kept : output;
    compute(middle, target, from_buffer(g), MaskedExtreme{rows});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    morphology_global_gradient(const Sample* source, Sample* output, const unsigned* rows, Geometry g)
{
    compute(source, output, g, Gradient{rows});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    morphology_constant_first(const Sample* source, Sample* output, Cell* middle, Geometry g)
{
    over_buffer(g, [&](const Geometry& part) { compute(source, middle, part, MaskedExtreme{constant_rows}); });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    morphology_constant_second(const Sample* source, Sample* output,
        const Cell* middle, Sample* kept, Geometry g)
{
    Sample* target = TOP_HAT ? kept : output;
    compute(middle, target, from_buffer(g), MaskedExtreme{constant_rows});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    morphology_constant_gradient(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, Gradient{constant_rows});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    morphology_shared_first(const Sample* source, Sample* output, Cell* middle, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    over_buffer(g, [&](const Geometry& part) { compute(Tiles{source, memory}, middle, part, MaskedExtreme{constant_rows}); });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    morphology_shared_second(const Sample* source, Sample* output,
        const Cell* middle, Sample* kept, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    Sample* target = TOP_HAT ? kept : output;
    compute(Tiles{middle, memory}, target, from_buffer(g), MaskedExtreme{constant_rows});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    morphology_shared_gradient(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    compute(Tiles{source, memory}, output, g, Gradient{constant_rows});
}
#elif FLOATS
extern "C" __global__ void __launch_bounds__(THREADS)
    morphology_texture_first(cudaTextureObject_t source, Sample* output, Cell* middle, Geometry g)
{
    over_buffer(g, [&](const Geometry& part) { compute(source, middle, part, MaskedExtreme{constant_rows}); });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    morphology_texture_second(cudaTextureObject_t source, Sample* output, Sample* kept, Geometry g)
{
    Sample* target = TOP_HAT ? kept : output;
    compute(source, target, from_buffer(g), MaskedExtreme{constant_rows});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    morphology_texture_gradient(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute(source, output, g, Gradient{constant_rows});
}
#else
#if MASKED
#define EXTREMES(source, output, g) compute_strips(source, output, g, MaskedExtreme{constant_rows})
#else
#define EXTREMES(source, output, g) by_columns(source, output, g)
#endif
extern "C" __global__ void __launch_bounds__(THREADS)
    morphology_tuned_first(const Sample* source, Sample* output, Sample* middle, Geometry g)
{
    over_buffer(g, [&](const Geometry& part) { EXTREMES(source, middle, part); });
}

extern "C" __global__ void __launch_bounds__(THREADS) morphology_tuned_second(
    const Sample* source, Sample* output, const Sample* middle, Sample* kept, Geometry g)
{
    EXTREMES(middle, (TOP_HAT ? kept : output), from_buffer(g));
}

#if MASKED
extern "C" __global__ void __launch_bounds__(THREADS)
    morphology_tuned_gradient(const Sample* source, Sample* output, Geometry g)
{
    compute_strips(source, output, g, Gradient{constant_rows});
}
#endif
#endif
