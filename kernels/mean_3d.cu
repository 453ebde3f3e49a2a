// Mean of cubes: every voxel becomes the average of the voxels around it.
//
// level   demonstrates                                       voxels
// global  a thread for each voxel                            global memory
// shared  a block reads its tile and halo just once          shared memory
//
// Launch: blocks of 32 x 4 x 2 threads, a thread a voxel; fewer at level *shared* where a tile would not fit.
// A voxel takes as many additions and reads as the mask has cells; at best 1 read from and 1 write to device memory.
#include "cubes.cuh"

struct Mean {
    template <typename Cells>
    __device__ inline float operator()(const Cells& cells) const
    {
        double total = 0;
        int count = 0;
        for_cells([&](int s, int t, int u) {
            total += cells(s, t, u);
            count += cells.counts(s, t, u);
        });
        return rounded(total / count);
    }
};

extern "C" __global__ void __launch_bounds__(THREADS) mean_3d_global(const float* source, float* output, Volume g)
{
    compute(source, output, g, Mean{});
}

extern "C" __global__ void __launch_bounds__(THREADS) mean_3d_shared(const float* source, float* output, Volume g)
{
    extern __shared__ float memory[];
    compute_tile(memory, source, output, g, Mean{});
}
