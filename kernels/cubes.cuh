// Shared by filters whose mask is a cube of voxels: where the cells of a voxel lie, and how results are rounded. Between
// two levels nothing differs but the memory of cells and weights.
//
// level     cells                        weights, where there are some
// global    global memory                global memory
// constant  global memory                constant memory
// shared    a tile in shared memory      constant memory
//
// A thread computes a voxel. Sums are of 64-bit floats: exact for integers of up to 16 bits.
#ifndef KERNELSCOPE_CUBES
#define KERNELSCOPE_CUBES
#include "common.cuh"
#include "volume.cuh"

// Set by the plan: the radii of the mask, and the threads of a block.
#ifndef RADIUS_Z
#define RADIUS_Z 1
#endif
#ifndef RADIUS_Y
#define RADIUS_Y 1
#endif
#ifndef RADIUS_X
#define RADIUS_X 1
#endif
#ifndef BLOCK_X
#define BLOCK_X 32
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 4
#endif
#ifndef BLOCK_Z
#define BLOCK_Z 2
#endif
#define THREADS (BLOCK_X * BLOCK_Y * BLOCK_Z)
#define CELLS ((2 * RADIUS_Z + 1) * (2 * RADIUS_Y + 1) * (2 * RADIUS_X + 1))

// Whether the voxels are integers, as their results are; whether voxels whose mask does not fit stay as they are; and
// how results below zero are treated: they stay, lose their sign, get mid-grey added, or become zero.
#ifndef WHOLE
#define WHOLE 0
#endif
#ifndef KEEP
#define KEEP 0
#endif
#ifndef NEGATIVE
#define NEGATIVE 0
#endif
#if NEGATIVE == 2
__constant__ double middle;
#endif

// The slice of the source's buffer for slice z of the volume; after the last one slices go on at 0 for `wrap`.
__device__ inline int slice_of(const Volume& g, int z)
{
    const int slice = z - g.source_slice;
    return slice < 0 ? slice + g.depth : slice;
}

__device__ inline const float* voxel_at(const float* source, const Volume& g, int z, int y, int x)
{
    return source + ((size_t)slice_of(g, z) * g.height + y) * g.width + x;
}

// The voxel that stands for a cell, 0 where there is none.
__device__ inline float cell_at(const float* source, const Volume& g, int z, int y, int x)
{
    z = border_index(z, g.depth);
    y = border_index(y, g.height);
    x = border_index(x, g.width);
    return z < 0 || y < 0 || x < 0 ? 0.0f : *voxel_at(source, g, z, y, x);
}

// A voxel's place, and whether all of its mask lies in the volume.
struct Voxel {
    const Volume& g;
    int z, y, x;

    __device__ inline bool fits() const
    {
        return RADIUS_Z <= z && z < g.depth - RADIUS_Z && RADIUS_Y <= y && y < g.height - RADIUS_Y
            && RADIUS_X <= x && x < g.width - RADIUS_X;
    }

    // Whether a cell counts: all but those outside under `reduce`.
    __device__ inline bool counts(int s, int t, int u) const
    {
#if BORDER == BORDER_REDUCE
        return (unsigned)(z + s) < (unsigned)g.depth && (unsigned)(y + t) < (unsigned)g.height
            && (unsigned)(x + u) < (unsigned)g.width;
#else
        return true;
#endif
    }
};

// The cells of a voxel, s slices, t rows and u columns away from it: around the voxel in memory, `row` and
// `slice` cells apart; or at the border one by one.
struct Inside {
    const float* at;
    int row, slice;
    __device__ inline float operator()(int s, int t, int u) const { return at[(ptrdiff_t)s * slice + t * row + u]; }
    __device__ inline bool counts(int, int, int) const { return true; }
};

struct Rim {
    const float* source;
    Voxel voxel;
    __device__ inline float operator()(int s, int t, int u) const
    {
        return cell_at(source, voxel.g, voxel.z + s, voxel.y + t, voxel.x + u);
    }
    __device__ inline bool counts(int s, int t, int u) const { return voxel.counts(s, t, u); }
};

// A tile has all cells, borders applied; but under `reduce` some do not count.
struct Tile {
    static constexpr int ROW = BLOCK_X + 2 * RADIUS_X, SLICE = ROW * (BLOCK_Y + 2 * RADIUS_Y);
    static constexpr int SLICES = BLOCK_Z + 2 * RADIUS_Z;
    const float* at;
    Voxel voxel;
    __device__ inline float operator()(int s, int t, int u) const { return at[s * SLICE + t * ROW + u]; }
    __device__ inline bool counts(int s, int t, int u) const { return voxel.counts(s, t, u); }
};

__device__ inline float rounded(double value)
{
#if WHOLE
    value = rint(value);
#endif
#if NEGATIVE == 1
    value = fabs(value);
#elif NEGATIVE == 2
    value += middle;
#elif NEGATIVE == 3
    value = fmax(value, 0.0);
#endif
    const double most = 3.402823466385288598e38;
    return (float)fmin(fmax(value, -most), most);
}

__device__ inline Voxel voxel_of(const Volume& g)
{
    return {g, g.first + (int)(blockIdx.z * BLOCK_Z + threadIdx.z), (int)(blockIdx.y * BLOCK_Y + threadIdx.y),
        (int)(blockIdx.x * BLOCK_X + threadIdx.x)};
}

// output = filter(cells) for this thread's voxel, if there is one.
template <typename Cells, typename Filter>
__device__ inline void write(const Cells& cells, float* output, const Voxel& v, Filter filter)
{
    output[voxel_number(v.g, v.z, v.y, v.x)] = KEEP && !v.fits() ? cells(0, 0, 0) : filter(cells);
}

template <typename Filter>
__device__ inline void compute(const float* source, float* output, const Volume& g, Filter filter)
{
    const Voxel v = voxel_of(g);
    if (v.z >= g.last || v.y >= g.height || v.x >= g.width) return;
    if (v.fits())
        write(Inside{voxel_at(source, g, v.z, v.y, v.x), g.width, g.width * g.height}, output, v, filter);
    else
        write(Rim{source, v}, output, v, filter);
}

// The same from a tile, which all threads of the block read into `memory` first. Slices beyond those that the launch
// needs are left out: they may not be there.
template <typename Filter>
__device__ inline void compute_tile(float* memory, const float* source, float* output, const Volume& g, Filter filter)
{
    const Voxel v = voxel_of(g);
    const int front = v.z - (int)threadIdx.z - RADIUS_Z, top = v.y - (int)threadIdx.y - RADIUS_Y;
    const int left = v.x - (int)threadIdx.x - RADIUS_X;
    const int slices = min(Tile::SLICES, g.last + RADIUS_Z - front);
    for (int s = threadIdx.z; s < slices; s += BLOCK_Z)
        for (int t = threadIdx.y; t < BLOCK_Y + 2 * RADIUS_Y; t += BLOCK_Y)
            for (int u = threadIdx.x; u < Tile::ROW; u += BLOCK_X)
                if (top + t < g.height + RADIUS_Y && left + u < g.width + RADIUS_X)
                    memory[s * Tile::SLICE + t * Tile::ROW + u] = cell_at(source, g, front + s, top + t, left + u);
    __syncthreads();
    if (v.z >= g.last || v.y >= g.height || v.x >= g.width) return;
    const int own = (threadIdx.z + RADIUS_Z) * Tile::SLICE + (threadIdx.y + RADIUS_Y) * Tile::ROW + threadIdx.x + RADIUS_X;
    write(Tile{memory + own, v}, output, v, filter);
}

// filter(s, t, u) for all cells, slice by slice and row by row.
template <typename Visit>
__device__ inline void for_cells(Visit visit)
{
#pragma unroll 1
    for (int s = -RADIUS_Z; s <= RADIUS_Z; ++s)
#pragma unroll 1
        for (int t = -RADIUS_Y; t <= RADIUS_Y; ++t)
#pragma unroll
            for (int u = -RADIUS_X; u <= RADIUS_X; ++u) visit(s, t, u);
}

// The number of a cell, from that of the first one.
__device__ constexpr int cell_number(int s, int t, int u)
{
    return ((s + RADIUS_Z) * (2 * RADIUS_Y + 1) + t + RADIUS_Y) * (2 * RADIUS_X + 1) + u + RADIUS_X;
}
#endif
