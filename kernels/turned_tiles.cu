// Turned tiles: each tile of TILE x TILE pixels, smaller at the right and bottom edge, by half a turn.
//
// level       demonstrates
// no_barrier  the fault: a warp reads from the tile before other warps have written their part of it, and
//             finds pixels of the tile that the multiprocessor had before
// global      each thread reads its pixel where it lies: nothing to wait for
// shared      a block reads its tile in order, waits at a barrier, and writes it in order
//
// Launch: blocks of TILE x TILE threads, a thread a pixel.
// A sample takes 1 read and 1 write; no_barrier and shared another one each of shared memory.
#include "common.cuh"

#ifndef TILE
#define TILE 16
#endif

// A thread's pixel, the rows and columns of its tile, and the pixel's place in the tile: its own, and that
// after half a turn.
struct Spot {
    int y, x, rows, columns;
    int own, turned;
    bool inside;
};

__device__ inline Spot spot_of_thread(const Geometry& g)
{
    const int top = g.first + blockIdx.y * TILE, left = blockIdx.x * TILE;
    const int rows = min(TILE, g.height - top), columns = min(TILE, g.width - left);
    const int s = threadIdx.y, t = threadIdx.x;
    return {top + s, left + t, rows, columns, s * TILE + t,
            (rows - 1 - s) * TILE + columns - 1 - t, s < rows && t < columns};
}

extern "C" __global__ void turned_tiles_global(const Sample* source, Sample* output, Geometry g)
{
    const Spot spot = spot_of_thread(g);
    if (!spot.inside) return;
    const int y = spot.y + spot.rows - 1 - 2 * (int)threadIdx.y;
    const int x = spot.x + spot.columns - 1 - 2 * (int)threadIdx.x;
    for (int c = 0; c < g.channels; ++c)
        output[output_offset(g, spot.y, spot.x) + c] =
            source[source_offset(g, y) + (size_t)x * g.channels + c];
}

extern "C" __global__ void turned_tiles_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    Sample* tile = (Sample*)memory;
    const Spot spot = spot_of_thread(g);
    if (spot.inside)
        for (int c = 0; c < g.channels; ++c)
            tile[spot.turned * g.channels + c] =
                source[source_offset(g, spot.y) + (size_t)spot.x * g.channels + c];
    __syncthreads();
    if (spot.inside)
        for (int c = 0; c < g.channels; ++c)
            output[output_offset(g, spot.y, spot.x) + c] = tile[spot.own * g.channels + c];
}

extern "C" __global__ void turned_tiles_no_barrier(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    // volatile: without a barrier the compiler may assume that no other thread writes the tile.
    volatile Sample* tile = (Sample*)memory;
    const Spot spot = spot_of_thread(g);
    if (spot.inside)
        for (int c = 0; c < g.channels; ++c)
            tile[spot.turned * g.channels + c] =
                source[source_offset(g, spot.y) + (size_t)spot.x * g.channels + c];
    if (spot.inside)
        for (int c = 0; c < g.channels; ++c)
            output[output_offset(g, spot.y, spot.x) + c] = tile[spot.own * g.channels + c];
}
