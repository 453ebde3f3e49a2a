// Shared by the levels up to texture: the loop over the pixels, and the three memories in which a pixel's
// cells lie. Between two levels nothing differs but that. RADIUS has to be defined.
#ifndef KERNELSCOPE_LEVELS
#define KERNELSCOPE_LEVELS
#include "cells.cuh"
#include "texture.cuh"

#ifndef CHANNELS
#define CHANNELS 1
#endif
// Threads of a block (single_block has other ones).
#ifndef BLOCK_COLUMNS
#define BLOCK_COLUMNS 32
#endif
#ifndef BLOCK_ROWS
#define BLOCK_ROWS 8
#endif
#define THREADS (BLOCK_COLUMNS * BLOCK_ROWS)

// From the output pixel to the source pixel that belongs to it: `valid` results begin further inside.
#define SHIFT (BORDER == BORDER_VALID ? RADIUS : 0)

// The output pixel of a thread, next to which its neighbours in the block have theirs.
struct Place {
    int y, x;
};

// A block's part of the image in shared memory: its pixels and RADIUS more on each side.
struct Tile {
    static constexpr int ROWS = BLOCK_ROWS + 2 * RADIUS, COLUMNS = BLOCK_COLUMNS + 2 * RADIUS;
    static constexpr int PITCH = COLUMNS * CHANNELS;

    const Sample* samples;
    int top, left;  // of the image
};

// Read this block's tile into `memory`, borders applied; every thread has to call this.
__device__ inline Tile load_tile(
    void* memory, const Sample* source, const Geometry& g, Place place)
{
    Sample* samples = (Sample*)memory;
    const int top = place.y - threadIdx.y + SHIFT - RADIUS;
    const int left = place.x - threadIdx.x + SHIFT - RADIUS;
    const int end = g.last + SHIFT + RADIUS;  // behind the last row that is needed, and there
    // Most tiles lie inside the image.
    if (top >= 0 && top + Tile::ROWS <= min(end, g.height) && left >= 0
        && left + Tile::COLUMNS <= g.width) {
        const Sample* first = row_of(source, g, top, CHANNELS) + left * CHANNELS;
        const unsigned pitch = g.width * CHANNELS;
#pragma unroll
        for (int s = threadIdx.y; s < Tile::ROWS; s += BLOCK_ROWS)
#pragma unroll
            for (int t = threadIdx.x; t < Tile::PITCH; t += BLOCK_COLUMNS)
                samples[s * Tile::PITCH + t] = first[s * pitch + t];
    } else {
        for (int s = threadIdx.y; s < min(Tile::ROWS, end - top); s += BLOCK_ROWS)
            for (int t = threadIdx.x; t < Tile::COLUMNS; t += BLOCK_COLUMNS)
                for (int c = 0; c < CHANNELS; ++c) {
                    const Rim<0, const Sample*> cell(source, g, top + s, left + t, c, CHANNELS);
                    samples[s * Tile::PITCH + t * CHANNELS + c] = cell.row(0)[0];
                }
    }
    __syncthreads();
    return Tile{samples, top, left};
}

// The cells of a source pixel inside the image, and on its rim, for each memory. Those of a tile are all
// there, borders applied; but under `reduce` some do not count.
typedef Inside<RADIUS, CHANNELS> InsideCells;

// How wide the rim of the image is whose pixels' cells need a border.
__device__ inline int rim_of(const Sample*, const Geometry&) { return RADIUS - SHIFT; }
__device__ inline int rim_of(cudaTextureObject_t, const Geometry& g)
{
    return CHANNELS == 1 && g.hardware_border ? 0 : RADIUS - SHIFT;
}
__device__ inline int rim_of(const Tile&, const Geometry&)
{
    return BORDER == BORDER_REDUCE ? RADIUS : 0;
}
__device__ constexpr bool has_rim(const Sample*) { return BORDER != BORDER_VALID; }
__device__ constexpr bool has_rim(cudaTextureObject_t) { return BORDER != BORDER_VALID; }
__device__ constexpr bool has_rim(const Tile&) { return BORDER == BORDER_REDUCE; }

__device__ inline InsideCells inside(const Sample* source, const Geometry& g, int y, int x, int c)
{
    const unsigned first = row_offset(g, y - RADIUS, CHANNELS) + (x - RADIUS) * CHANNELS + c;
    return {source + first, (unsigned)(g.width * CHANNELS)};
}

__device__ inline InsideCells inside(const Tile& tile, const Geometry& g, int y, int x, int c)
{
    const int row = y - RADIUS - tile.top, column = x - RADIUS - tile.left;
    return {tile.samples + row * Tile::PITCH + column * CHANNELS + c, Tile::PITCH};
}

__device__ inline Texels<RADIUS, CHANNELS> inside(
    cudaTextureObject_t texture, const Geometry& g, int y, int x, int c)
{
    int row = y - g.source_row;
    if (BORDER == BORDER_WRAP && row < 0) row += g.height;
    return {texture, g, row, x * CHANNELS + c};
}

__device__ inline const Sample* row_of(const Tile& tile, const Geometry& g, int y, int channels)
{
    return tile.samples + (y - tile.top) * Tile::PITCH - tile.left * CHANNELS;
}

// output = filter(cells) for this thread's pixel.
template <typename Source, typename Target, typename Filter>
__device__ inline void compute_pixel(
    const Source& source, Target* output, const Geometry& g, Place place, Filter filter)
{
    const int y = place.y, x = place.x, rim = rim_of(source, g);
#pragma unroll 1
    for (int c = 0; c < CHANNELS; ++c) {
        const int v = y + SHIFT, u = x + SHIFT;  // of the source
        Target* target =
            output + (unsigned)(((y - g.output_row) * g.out_width + x) * CHANNELS + c);
        if (rim <= x && x < g.out_width - rim && rim <= y && y < min(g.last, g.height - rim))
            *target = filter(inside(source, g, v, u, c));
        else if (has_rim(source) && x < g.out_width && y < g.last)
            *target = filter(Rim<RADIUS, Source>(source, g, v, u, c, CHANNELS));
    }
}

// Steps of a block before and after it computes its pixels: a tile has to be read.
struct Tiles {
    const Sample* source;
    void* memory;
};

__device__ inline const Sample* begin(const Sample* source, const Geometry&, Place) { return source; }
__device__ inline cudaTextureObject_t begin(cudaTextureObject_t source, const Geometry&, Place)
{
    return source;
}
__device__ inline Tile begin(const Tiles& tiles, const Geometry& g, Place place)
{
    return load_tile(tiles.memory, tiles.source, g, place);
}
__device__ inline void end(const Sample*) {}
__device__ inline void end(cudaTextureObject_t) {}
__device__ inline void end(const Tile&) { __syncthreads(); }

// output = filter(cells) for the pixel of this thread; where the grid is smaller than the output (one block
// only, say) also for those that lie a grid further down and right. All threads of a block take part.
template <typename Source, typename Target, typename Filter>
__device__ inline void compute(const Source& source, Target* output, const Geometry& g, Filter filter)
{
    const int right = g.out_width + threadIdx.x, bottom = g.last + threadIdx.y;
    for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < right; x += gridDim.x * blockDim.x)
        for (int y = g.first + blockIdx.y * blockDim.y + threadIdx.y; y < bottom;
             y += gridDim.y * blockDim.y) {
            const Place place{y, x};
            const auto memory = begin(source, g, place);
            compute_pixel(memory, output, g, place, filter);
            end(memory);
        }
}

#endif
