// Minimum and maximum: the filter for the cells around a pixel, and level tuned. LOWEST has to be defined.
//
// Tuned, squares: a block reads its tile into shared memory as level shared does, and writes behind it the extremes of
// the SIZE cells of each column; each thread then compares SIZE of those. Border reduce is nearest there: a cell
// outside the image repeats one that counts.
#ifndef KERNELSCOPE_EXTREMES
#define KERNELSCOPE_EXTREMES
#include "levels.cuh"
#ifndef MASKED
#define MASKED 0  // whether a mask says which cells count
#endif
#if MASKED
#include "footprint.cuh"
#endif

__device__ inline Sample extreme(Sample a, Sample b) { return (a < b) == LOWEST ? a : b; }

// The extreme of the cells that count, and of `found`.
template <typename Cells>
__device__ inline Sample extreme_of(const Cells& cells, Sample found)
{
#pragma unroll Cells::ROWS
    for (int s = -RADIUS; s <= RADIUS; ++s) {
        const auto row = cells.row(s);
#pragma unroll Cells::COLUMNS
        for (int t = -RADIUS; t <= RADIUS; ++t)
            if (row.counts(t)) found = extreme(found, row[t]);
    }
    return found;
}

struct Extreme {
    template <typename Cells>
    __device__ inline Sample operator()(const Cells& cells) const
    {
        return extreme_of(cells, cells.row(0)[0]);
    }
};

#if MASKED
#if SAMPLE_BITS == 32
#define HIGHEST_SAMPLE 3.402823466e38f
#define LOWEST_SAMPLE (-HIGHEST_SAMPLE)
#else
#define HIGHEST_SAMPLE SAMPLE_MAX
#define LOWEST_SAMPLE 0
#endif
#define NEUTRAL ((Sample)(LOWEST ? HIGHEST_SAMPLE : LOWEST_SAMPLE))

// The extreme of a mask's cells; the pixel itself where `reduce` leaves none.
struct MaskedExtreme {
    const unsigned* rows;

    template <typename Cells>
    __device__ inline Sample operator()(const Cells& cells) const
    {
        const Masked<Cells> masked{cells, rows};
        if (Cells::CUT && masked.count() == 0) return cells.row(0)[0];
        return extreme_of(masked, NEUTRAL);
    }

#if TUNED
    __device__ inline void operator()(const Sample* corner, Sample* results) const
    {
#pragma unroll
        for (int r = 0; r < STRIP; ++r) results[r] = NEUTRAL;
#pragma unroll 1
        for (int s = 0; s < SIZE + STRIP - 1; ++s) {
            const StripBits mask(s);
#pragma unroll 4
            for (int t = 0; t < SIZE; ++t) {
                const Sample cell = corner[s * StripTile::PITCH + t];
#pragma unroll
                for (int r = 0; r < STRIP; ++r)
                    if (mask.counts(r, t)) results[r] = extreme(results[r], cell);
            }
        }
    }
#endif
};
#endif

#if TUNED && !MASKED
__device__ inline void by_columns(const Sample* source, Sample* output, const Geometry& g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    Sample* const lines = (Sample*)memory + Tile::ROWS * Tile::PITCH;
    const int right = g.out_width + threadIdx.x, bottom = g.last + threadIdx.y;
    for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < right; x += gridDim.x * blockDim.x)
        for (int y = g.first + blockIdx.y * blockDim.y + threadIdx.y; y < bottom;
             y += gridDim.y * blockDim.y) {
            const Tile tile = load_tile(memory, source, g, Place{y, x});
            Sample* const line = lines + threadIdx.y * Tile::PITCH;
            if (y < g.last)
                for (int t = threadIdx.x; t < Tile::PITCH; t += BLOCK_COLUMNS) {
                    const Sample* column = tile.samples + threadIdx.y * Tile::PITCH + t;
                    Sample found = column[0];
#pragma unroll
                    for (int s = 1; s < SIZE; ++s) found = extreme(found, column[s * Tile::PITCH]);
                    line[t] = found;
                }
            __syncthreads();
            if (x < g.out_width && y < g.last) {
                Sample* target = output + (unsigned)((y - g.output_row) * g.out_width + x) * CHANNELS;
                for (int c = 0; c < CHANNELS; ++c) {
                    const Sample* cells = line + threadIdx.x * CHANNELS + c;
                    Sample found = cells[0];
#pragma unroll
                    for (int t = 1; t < SIZE; ++t) found = extreme(found, cells[t * CHANNELS]);
                    target[c] = found;
                }
            }
            __syncthreads();
        }
}
#endif

#endif
