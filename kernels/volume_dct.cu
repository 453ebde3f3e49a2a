// Sliding DCT of volumes: the mean of all 4 x 4 x 4 blocks that cover a voxel, noise removed from each, in two passes.
//
//   pass 1  keeps the coefficients above a threshold, and the first; weight 1 / (how many are kept)
//   pass 2  c b^2 / (b^2 + sigma^2), b of the block in pass 1's result; weight 1 / (sum of the squared factors)
//
// The volume is stabilised and extended by 6 voxels first, so that sigma is 1 and no pass treats a border; the result
// of pass 1 has 3 voxels around it. All sums are of floats in one order, as on the CPU: blocks are transformed along
// x, y and z; those that cover a voxel are added from the first slice to the last, then from top to bottom, then from
// left to right.
//
// level   demonstrates                                         sums over z           sums over y and x
// global  a thread goes down a column of blocks, by itself      registers             another kernel
// shared  a block of threads goes down 13 x 13 columns          registers             shared memory
//
// The number of a block's place is that of its first voxel: voxel v is covered by the places v - 3 to v.
//
// Launch: blocks of 16 x 16 threads, which stride over what lies beyond the output. A block of *global* has 16 x 16
// places and 8 slices of the result, one of *shared* 13 x 13 x SLICES voxels.
#include "volume_noise.cuh"

#define SIDE 4
#define REACH (SIDE - 1)
#define MARGIN (2 * REACH)
#define LINES (SIDE * SIDE)  // of a block's coefficients along x and y: 4 k + q, k along x and q along y
#define THREADS_X 16
#define THREADS_Y 16
#define THREADS (THREADS_X * THREADS_Y)
#define TILE_X (THREADS_X - REACH)
#define TILE_Y (THREADS_Y - REACH)
#ifndef SLICES  // of the result that a block of threads computes
#define SLICES 8
#endif

__constant__ float noise[2];  // the threshold of pass 1, and 1 / sigma

extern "C" __global__ void volume_dct_extend(
    const float* source, float*, const float* nodes, const float* forward, const float*, float* extended, Volume g)
{
    extend_stabilised(source, nodes, forward, extended, g, MARGIN, MARGIN);
}

extern "C" __global__ void volume_dct_restore(
    const float*, float* output, const float* nodes, const float*, const float* backward, const float* filtered,
    Volume g)
{
    restore(output, nodes, backward, filtered, g);
}

extern "C" __global__ void volume_dct_copy(const float* source, float* output, Volume g)
{
    copy_source(source, output, g);
}

// The four slices of a column, transformed along x and y.
struct Column {
    Real lines[SIDE][LINES];

    __device__ inline void shift()
    {
#pragma unroll
        for (int s = 0; s < REACH; ++s)
#pragma unroll
            for (int n = 0; n < LINES; ++n) lines[s][n] = lines[s + 1][n];
    }

    // Take the 4 x 4 samples at `first` as the last slice; from row to row it is `pitch`.
    __device__ inline void load(const float* first, int pitch)
    {
        Real* to = lines[REACH];
#pragma unroll
        for (int j = 0; j < SIDE; ++j) {
#pragma unroll
            for (int i = 0; i < SIDE; ++i) to[SIDE * i + j] = {first[j * pitch + i]};
            forward_dct<SIDE>(to + j);
        }
#pragma unroll
        for (int k = 0; k < SIDE; ++k) forward_dct<1>(to + SIDE * k);
    }

    // The frequencies along z of a line.
    __device__ inline void along_z(int n, Real* values) const
    {
#pragma unroll
        for (int s = 0; s < SIDE; ++s) values[s] = lines[s][n];
        forward_dct<1>(values);
    }
};

__device__ inline Real factor(Real guide)
{
    const Real one = {1.0f}, ratio = guide * noise[1];
    return one - one / (ratio * ratio + one);
}

// Sums of the blocks of a column: of their lines, and last of their weights, for four slices.
struct Sums {
    Real values[SIDE][LINES + 1];

    __device__ inline void clear()
    {
#pragma unroll
        for (int s = 0; s < SIDE; ++s)
#pragma unroll
            for (int n = 0; n <= LINES; ++n) values[s][n] = {0.0f};
    }

    // The first slice is complete.
    __device__ inline void shift()
    {
#pragma unroll
        for (int n = 0; n <= LINES; ++n) {
#pragma unroll
            for (int s = 0; s < REACH; ++s) values[s][n] = values[s + 1][n];
            values[REACH][n] = {0.0f};
        }
    }

    // Add a block, shrunk. Its frequencies along z are computed twice: its weight comes first.
    template <bool WIENER>
    __device__ inline void add(const Column& noisy, const Column& guide)
    {
        const Real one = {1.0f};
        Real total = one;
#pragma unroll
        for (int n = 0; n < LINES; ++n) {
            Real found[SIDE];
            (WIENER ? guide : noisy).along_z(n, found);
#pragma unroll
            for (int q = 0; q < SIDE; ++q)
                if (n + q > 0) {
                    if (WIENER) {
                        const Real gain = factor(found[q]);
                        total = total + gain * gain;
                    } else if (fabsf(found[q].value) > noise[0]) {
                        total = total + one;
                    }
                }
        }
        const Real weight = one / total;
#pragma unroll
        for (int n = 0; n < LINES; ++n) {
            Real found[SIDE], guides[SIDE];
            noisy.along_z(n, found);
            if (WIENER) guide.along_z(n, guides);
#pragma unroll
            for (int q = 0; q < SIDE; ++q) {
                if (n + q > 0) {
                    if (WIENER)
                        found[q] = found[q] * factor(guides[q]);
                    else if (!(fabsf(found[q].value) > noise[0]))
                        found[q] = {0.0f};
                }
                found[q] = found[q] * weight;
            }
            backward_dct<1>(found);
#pragma unroll
            for (int s = 0; s < SIDE; ++s) values[s][n] = values[s][n] + found[s];
        }
#pragma unroll
        for (int s = 0; s < SIDE; ++s) values[s][LINES] = values[s][LINES] + weight;
    }
};

// The sums over y at a column: of the lines k along x, and of weights. `at(j, n)` is sum n of the place j rows down.
template <typename At>
__device__ inline void sum_rows(const At& at, Real* lines)
{
#pragma unroll
    for (int k = 0; k <= SIDE; ++k) lines[k] = {0.0f};
#pragma unroll
    for (int j = 0; j < SIDE; ++j) {
#pragma unroll
        for (int k = 0; k < SIDE; ++k) {
            Real found[SIDE];
#pragma unroll
            for (int q = 0; q < SIDE; ++q) found[q] = {at(j, SIDE * k + q)};
            backward_dct<1>(found);
            lines[k] = lines[k] + found[REACH - j];
        }
        lines[SIDE] = lines[SIDE] + Real{at(j, LINES)};
    }
}

// The mean of all blocks of a voxel. `at(i, k)` is sum k of `sum_rows` at the place i columns to the right.
template <typename At>
__device__ inline float mean_of(const At& at)
{
    Real total = {0.0f}, weight = {0.0f};
#pragma unroll
    for (int i = 0; i < SIDE; ++i) {
        Real found[SIDE];
#pragma unroll
        for (int k = 0; k < SIDE; ++k) found[k] = {at(i, k)};
        backward_dct<1>(found);
        total = total + found[REACH - i];
        weight = weight + Real{at(i, SIDE)};
    }
    return (total / weight).value;
}

// ---- Level global ----

// Sums over z for all places of a result with `around` voxels around it; of each slice and component a picture for
// every sum.
struct PlaceSums {
    int around, rows, columns, components, front;

    __device__ inline PlaceSums(const Volume& g, int around)
        : around(around), rows(g.height + 2 * around + REACH), columns(g.width + 2 * around + REACH),
          components(g.components), front(g.output_slice - around)
    {
    }

    // Sum n of place (y, x), which may be negative; the next sum of it is `rows * columns` further.
    __device__ inline size_t place(int z, int c, int y, int x) const
    {
        return (((size_t)(z - front) * components + c) * (LINES + 1) * rows + y + around + REACH) * columns + x +
               around + REACH;
    }
};

template <bool WIENER>
__device__ inline void sum_slices(
    const Around<const float*>& volume, const Around<const float*>& guide, float* sums, const Volume& g, int around)
{
    const PlaceSums to(g, around);
    const int least = -around - REACH, last = g.last + around;
    for (int front = g.first - around + (int)blockIdx.z * SLICES; front < last; front += gridDim.z * SLICES)
        for (int y = least + (int)(blockIdx.y * THREADS_Y + threadIdx.y); y < g.height + around;
             y += gridDim.y * THREADS_Y)
            for (int x = least + (int)(blockIdx.x * THREADS_X + threadIdx.x); x < g.width + around;
                 x += gridDim.x * THREADS_X)
                for (int c = 0; c < g.components; ++c) {
                    Column noisy, guides;
                    Sums sum;
                    sum.clear();
                    const int end = min(front + SLICES, last);
#pragma unroll 1
                    for (int slice = front - REACH; slice < end + REACH; ++slice) {
                        noisy.shift();
                        noisy.load(volume.row(slice, c, y) + x, volume.columns);
                        if (WIENER) {
                            guides.shift();
                            guides.load(guide.row(slice, c, y) + x, guide.columns);
                        }
                        const int z = slice - REACH;  // of the block, and of the slice that it completes
                        if (z < front - REACH) continue;
                        sum.add<WIENER>(noisy, guides);
                        if (z >= front) {
                            float* at = sums + to.place(z, c, y, x);
#pragma unroll
                            for (int n = 0; n <= LINES; ++n)
                                at[(size_t)n * to.rows * to.columns] = sum.values[0][n].value;
                        }
                        sum.shift();
                    }
                }
}

__device__ inline void average(const float* sums, float* result, const Volume& g, int around)
{
    const PlaceSums from(g, around);
    const Around<float*> to(result, g, around);
    const size_t next = (size_t)from.rows * from.columns;
    for (int z = g.first - around + (int)(blockIdx.z * blockDim.z + threadIdx.z); z < g.last + around;
         z += gridDim.z * blockDim.z)
        for (int y = (int)(blockIdx.y * blockDim.y + threadIdx.y) - around; y < g.height + around;
             y += gridDim.y * blockDim.y)
            for (int x = (int)(blockIdx.x * blockDim.x + threadIdx.x) - around; x < g.width + around;
                 x += gridDim.x * blockDim.x)
                for (int c = 0; c < g.components; ++c) {
                    const float* first = sums + from.place(z, c, y - REACH, x - REACH);
                    Real lines[SIDE][SIDE + 1];
#pragma unroll
                    for (int i = 0; i < SIDE; ++i)
                        sum_rows([&](int j, int n) { return first[n * next + j * from.columns + i]; }, lines[i]);
                    to.row(z, c, y)[x] = mean_of([&](int i, int k) { return lines[i][k].value; });
                }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    volume_dct_global_hard(const float*, float*, const float* extended, float* sums, Volume g)
{
    const Around<const float*> volume(extended, g, MARGIN);
    sum_slices<false>(volume, volume, sums, g, REACH);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    volume_dct_global_first(const float*, float*, const float* sums, float* basic, Volume g)
{
    average(sums, basic, g, REACH);
}

extern "C" __global__ void __launch_bounds__(THREADS) volume_dct_global_wiener(
    const float*, float*, const float* extended, const float* basic, float* sums, Volume g)
{
    sum_slices<true>({extended, g, MARGIN}, {basic, g, REACH}, sums, g, 0);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    volume_dct_global_second(const float*, float*, const float* sums, float* filtered, Volume g)
{
    average(sums, filtered, g, 0);
}

// ---- Level shared ----

#define CELLS_X (THREADS_X + REACH)
#define CELLS_Y (THREADS_Y + REACH)

struct Memory {
    float noisy[CELLS_Y][CELLS_X], guide[CELLS_Y][CELLS_X];  // a slice of the tile
    float sums[LINES + 1][THREADS_Y][THREADS_X];
    float lines[SIDE + 1][TILE_Y][THREADS_X];
};

// Copy a slice of the tile whose first cell is (y, x); rows and columns beyond the buffer are not needed.
__device__ inline void load_tile(
    float (&cells)[CELLS_Y][CELLS_X], const Around<const float*>& from, int z, int c, int y, int x)
{
    for (int j = threadIdx.y; j < CELLS_Y; j += THREADS_Y)
        for (int i = threadIdx.x; i < CELLS_X; i += THREADS_X)
            cells[j][i] = from.row(z, c, min(y + j, from.rows - from.around - 1))[min(
                x + i, from.columns - from.around - 1)];
}

template <bool WIENER>
__device__ inline void filter_tiles(
    Memory& memory, const Around<const float*>& volume, const Around<const float*>& guide, float* result,
    const Volume& g, int around)
{
    const Around<float*> to(result, g, around);
    const int tx = threadIdx.x, ty = threadIdx.y, last = g.last + around;
    for (int front = g.first - around + (int)blockIdx.z * SLICES; front < last; front += gridDim.z * SLICES)
        for (int top = (int)blockIdx.y * TILE_Y - around; top < g.height + around; top += gridDim.y * TILE_Y)
            for (int left = (int)blockIdx.x * TILE_X - around; left < g.width + around; left += gridDim.x * TILE_X)
                for (int c = 0; c < g.components; ++c) {
                    Column noisy, guides;
                    Sums sum;
                    sum.clear();
                    const int end = min(front + SLICES, last);
#pragma unroll 1
                    for (int slice = front - REACH; slice < end + REACH; ++slice) {
                        load_tile(memory.noisy, volume, slice, c, top - REACH, left - REACH);
                        if (WIENER) load_tile(memory.guide, guide, slice, c, top - REACH, left - REACH);
                        __syncthreads();
                        noisy.shift();
                        noisy.load(&memory.noisy[ty][tx], CELLS_X);
                        if (WIENER) {
                            guides.shift();
                            guides.load(&memory.guide[ty][tx], CELLS_X);
                        }
                        const int z = slice - REACH;  // of the block, and of the slice that it completes
                        if (z >= front - REACH) {
                            sum.add<WIENER>(noisy, guides);
#pragma unroll
                            for (int n = 0; n <= LINES; ++n) memory.sums[n][ty][tx] = sum.values[0][n].value;
                            sum.shift();
                        }
                        __syncthreads();
                        if (z < front) continue;
                        if (ty < TILE_Y) {
                            Real lines[SIDE + 1];
                            sum_rows([&](int j, int n) { return memory.sums[n][ty + j][tx]; }, lines);
#pragma unroll
                            for (int k = 0; k <= SIDE; ++k) memory.lines[k][ty][tx] = lines[k].value;
                        }
                        __syncthreads();
                        if (ty < TILE_Y && tx < TILE_X && top + ty < g.height + around &&
                            left + tx < g.width + around)
                            to.row(z, c, top + ty)[left + tx] =
                                mean_of([&](int i, int k) { return memory.lines[k][ty][tx + i]; });
                    }
                    __syncthreads();  // before the next tile takes the place of this one
                }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    volume_dct_shared_hard(const float*, float*, const float* extended, float* basic, Volume g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const Around<const float*> volume(extended, g, MARGIN);
    filter_tiles<false>(*(Memory*)memory, volume, volume, basic, g, REACH);
}

extern "C" __global__ void __launch_bounds__(THREADS) volume_dct_shared_wiener(
    const float*, float*, const float* extended, const float* basic, float* filtered, Volume g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    filter_tiles<true>(*(Memory*)memory, {extended, g, MARGIN}, {basic, g, REACH}, filtered, g, 0);
}
