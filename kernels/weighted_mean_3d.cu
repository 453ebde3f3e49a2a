// Weighted mean of cubes: weights that are products of a row of Pascal's triangle along each axis.
//
// level     demonstrates                                     weights    voxels
// global    a thread for each voxel                          global     global memory
// constant  one read of a weight serves a whole warp         constant   global memory
// shared    a block reads its tile and halo just once        constant   shared memory
//
// Launch: blocks of 32 x 4 x 2 threads, a thread a voxel; fewer at level *shared* where a tile would not fit.
// A voxel takes a multiplication and an addition for each cell; at best 1 read from and 1 write to device memory.
#include "cube_weights.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    weighted_mean_3d_global(const float* source, float* output, const float* weights, Volume g)
{
    compute(source, output, g, Weighted<true>{weights});
}

extern "C" __global__ void __launch_bounds__(THREADS) weighted_mean_3d_constant(const float* source, float* output, Volume g)
{
    compute(source, output, g, Weighted<true>{constant_weights});
}

extern "C" __global__ void __launch_bounds__(THREADS) weighted_mean_3d_shared(const float* source, float* output, Volume g)
{
    extern __shared__ float memory[];
    compute_tile(memory, source, output, g, Weighted<true>{constant_weights});
}
