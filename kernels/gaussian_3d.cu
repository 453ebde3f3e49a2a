// Gaussian of volumes: weights of a bell curve along z, then along y and x, a launch for each axis.
//
// level     demonstrates                                     weights    voxels and sums
// global    a thread for each voxel                          global     global memory
// constant  one read of a weight serves a whole warp         constant   global memory
// shared    a block reads its tile and halo just once        constant   shared memory
//
// All sums are of 64-bit floats, in the order of the cells, and rounded after each operation: they are the same at every
// level and on the processor. `divisors` has that of each slice, row and column; a voxel's is their product.
//
// Launch: blocks of 32 x 1 x 8, 32 x 8 x 1 and 32 x 4 x 2 threads, a thread a voxel. A voxel takes 2 RADIUS + 1
// multiplications and additions in each launch; at best 1 read and 1 write, twice as long between the launches.
#include "cubes.cuh"

#ifndef AXIS  // 0, 1 and 2 for z, y and x
#define AXIS 0
#endif
#define RADIUS RADIUS_X

__constant__ double line_weights[2 * RADIUS + 1];

// The sum of weights times cells, which cell(s) has for s from 0 to 2 RADIUS.
template <typename Cell>
__device__ inline double weighed(const double* weights, Cell cell)
{
    double total = 0;
#pragma unroll 4
    for (int s = 0; s <= 2 * RADIUS; ++s) total = __dadd_rn(total, __dmul_rn(weights[s], cell(s)));
    return total;
}

// What a launch reads: voxels along z, the sums along z for y, and those along y for x.
struct Before {
    const float* source;
    const double* sums;
    const Volume& g;

    // The value at a place of the volume; along the axis it may lie outside.
    __device__ inline double at(int z, int y, int x) const
    {
#if AXIS == 0
        z = border_index(z, g.depth);
        return z < 0 ? 0.0 : (double)*voxel_at(source, g, z, y, x);
#elif AXIS == 1
        y = border_index(y, g.height);
        return y < 0 ? 0.0 : sums[voxel_number(g, z, y, x)];
#else
        x = border_index(x, g.width);
        return x < 0 ? 0.0 : sums[voxel_number(g, z, y, x)];
#endif
    }

    // The same `s` places further along the axis.
    __device__ inline double along(const Voxel& v, int s) const
    {
        return at(v.z + (AXIS == 0) * s, v.y + (AXIS == 1) * s, v.x + (AXIS == 2) * s);
    }
};

__device__ inline Before before(
    const float* source, const double* along_z, const double* along_y, const Volume& g)
{
    return {source, AXIS == 1 ? along_z : along_y, g};
}

__device__ inline bool is_there(const Voxel& v) { return v.z < v.g.last && v.y < v.g.height && v.x < v.g.width; }

// Write a sum, or at last the voxel.
__device__ inline void write_sum(double total, const float* source, float* output, const double* divisors,
    double* along_z, double* along_y, const Voxel& v)
{
    const size_t place = voxel_number(v.g, v.z, v.y, v.x);
#if AXIS == 0
    along_z[place] = total;
#elif AXIS == 1
    along_y[place] = total;
#else
    const double* columns = divisors + v.g.depth + v.g.height;
    const double divisor = __dmul_rn(__dmul_rn(divisors[v.z], divisors[v.g.depth + v.y]), columns[v.x]);
    output[place] = KEEP && !v.fits() ? *voxel_at(source, v.g, v.z, v.y, v.x) : rounded(total / divisor);
#endif
}

__device__ inline void pass(const float* source, float* output, const double* weights, const double* divisors,
    double* along_z, double* along_y, const Volume& g)
{
    const Voxel v = voxel_of(g);
    if (!is_there(v)) return;
    const Before cells = before(source, along_z, along_y, g);
    const double total = weighed(weights, [&](int s) { return cells.along(v, s - RADIUS); });
    write_sum(total, source, output, divisors, along_z, along_y, v);
}

// The same from a tile, which all threads of the block read into `memory` first.
__device__ inline void pass_tile(double* memory, const float* source, float* output, const double* divisors,
    double* along_z, double* along_y, const Volume& g)
{
    constexpr int halo_z = AXIS == 0 ? RADIUS : 0, halo_y = AXIS == 1 ? RADIUS : 0, halo_x = AXIS == 2 ? RADIUS : 0;
    constexpr int row = BLOCK_X + 2 * halo_x, slice = row * (BLOCK_Y + 2 * halo_y);
    constexpr int step = AXIS == 0 ? slice : AXIS == 1 ? row : 1;
    const Voxel v = voxel_of(g);
    const Before cells = before(source, along_z, along_y, g);
    const int front = v.z - (int)threadIdx.z - halo_z, top = v.y - (int)threadIdx.y - halo_y;
    const int left = v.x - (int)threadIdx.x - halo_x;
    for (int s = threadIdx.z; s < BLOCK_Z + 2 * halo_z; s += BLOCK_Z)
        for (int t = threadIdx.y; t < BLOCK_Y + 2 * halo_y; t += BLOCK_Y)
            for (int u = threadIdx.x; u < row; u += BLOCK_X)
                if (front + s < g.last + halo_z && top + t < g.height + halo_y && left + u < g.width + halo_x)
                    memory[s * slice + t * row + u] = cells.at(front + s, top + t, left + u);
    __syncthreads();
    if (!is_there(v)) return;
    const double* first = memory + threadIdx.z * slice + threadIdx.y * row + threadIdx.x;
    const double total = weighed(line_weights, [&](int s) { return first[s * step]; });
    write_sum(total, source, output, divisors, along_z, along_y, v);
}

extern "C" __global__ void __launch_bounds__(THREADS) gaussian_3d_global_z(const float* source, float* output,
    const double* weights, const double* divisors, double* along_z, double* along_y, Volume g)
{
    pass(source, output, weights, divisors, along_z, along_y, g);
}

extern "C" __global__ void __launch_bounds__(THREADS) gaussian_3d_constant_z(
    const float* source, float* output, const double* divisors, double* along_z, double* along_y, Volume g)
{
    pass(source, output, line_weights, divisors, along_z, along_y, g);
}

extern "C" __global__ void __launch_bounds__(THREADS) gaussian_3d_shared_z(
    const float* source, float* output, const double* divisors, double* along_z, double* along_y, Volume g)
{
    extern __shared__ double memory[];
    pass_tile(memory, source, output, divisors, along_z, along_y, g);
}

extern "C" __global__ void __launch_bounds__(THREADS) gaussian_3d_global_y(const float* source, float* output,
    const double* weights, const double* divisors, double* along_z, double* along_y, Volume g)
{
    pass(source, output, weights, divisors, along_z, along_y, g);
}

extern "C" __global__ void __launch_bounds__(THREADS) gaussian_3d_constant_y(
    const float* source, float* output, const double* divisors, double* along_z, double* along_y, Volume g)
{
    pass(source, output, line_weights, divisors, along_z, along_y, g);
}

extern "C" __global__ void __launch_bounds__(THREADS) gaussian_3d_shared_y(
    const float* source, float* output, const double* divisors, double* along_z, double* along_y, Volume g)
{
    extern __shared__ double memory[];
    pass_tile(memory, source, output, divisors, along_z, along_y, g);
}

extern "C" __global__ void __launch_bounds__(THREADS) gaussian_3d_global_x(const float* source, float* output,
    const double* weights, const double* divisors, double* along_z, double* along_y, Volume g)
{
    pass(source, output, weights, divisors, along_z, along_y, g);
}

extern "C" __global__ void __launch_bounds__(THREADS) gaussian_3d_constant_x(
    const float* source, float* output, const double* divisors, double* along_z, double* along_y, Volume g)
{
    pass(source, output, line_weights, divisors, along_z, along_y, g);
}

extern "C" __global__ void __launch_bounds__(THREADS) gaussian_3d_shared_x(
    const float* source, float* output, const double* divisors, double* along_z, double* along_y, Volume g)
{
    extern __shared__ double memory[];
    pass_tile(memory, source, output, divisors, along_z, along_y, g);
}
