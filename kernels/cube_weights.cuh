// Shared by filters that weigh the cells of a cube: the weights, whole numbers, and their sum over the cells.
#ifndef KERNELSCOPE_CUBE_WEIGHTS
#define KERNELSCOPE_CUBE_WEIGHTS
#include "cubes.cuh"

__constant__ float constant_weights[CELLS];

// The weighted sum of the cells, divided by the sum of the weights that count, or else as it is.
template <bool DIVIDED>
struct Weighted {
    const float* weights;

    template <typename Cells>
    __device__ inline float operator()(const Cells& cells) const
    {
        double total = 0, divisor = 0;
        for_cells([&](int s, int t, int u) {
            const double weight = weights[cell_number(s, t, u)];
            total += weight * cells(s, t, u);
            if (DIVIDED && cells.counts(s, t, u)) divisor += weight;
        });
        return rounded(DIVIDED ? total / divisor : total);
    }
};
#endif
