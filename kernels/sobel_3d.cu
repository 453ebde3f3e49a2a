// Sobel of volumes: the gradient, from the differences along each axis, smoothed by 1 2 1 along both others.
//
//   sum        |gx| + |gy| + |gz|
//   magnitude  sqrt(gx^2 + gy^2 + gz^2)
//
// level   demonstrates                                       voxels
// global  a thread for each voxel                            global memory
// shared  a block reads its tile and halo just once          shared memory
//
// Launch: blocks of 32 x 4 x 2 threads, a thread a voxel.
// A voxel takes about 100 additions and 26 reads; at best 1 read from and 1 write to device memory.
#include "cubes.cuh"

#ifndef MAGNITUDE
#define MAGNITUDE 0
#endif

struct Sobel {
    template <typename Cells>
    __device__ inline float operator()(const Cells& cells) const
    {
        double gz = 0, gy = 0, gx = 0;
#pragma unroll
        for (int i = -1; i <= 1; ++i)
#pragma unroll
            for (int j = -1; j <= 1; ++j) {
                const double weight = (2 - i * i) * (2 - j * j);
                gz += weight * ((double)cells(1, i, j) - cells(-1, i, j));
                gy += weight * ((double)cells(i, 1, j) - cells(i, -1, j));
                gx += weight * ((double)cells(i, j, 1) - cells(i, j, -1));
            }
        return rounded(MAGNITUDE ? sqrt(gx * gx + gy * gy + gz * gz) : fabs(gx) + fabs(gy) + fabs(gz));
    }
};

extern "C" __global__ void __launch_bounds__(THREADS) sobel_3d_global(const float* source, float* output, Volume g)
{
    compute(source, output, g, Sobel{});
}

extern "C" __global__ void __launch_bounds__(THREADS) sobel_3d_shared(const float* source, float* output, Volume g)
{
    extern __shared__ float memory[];
    compute_tile(memory, source, output, g, Sobel{});
}
