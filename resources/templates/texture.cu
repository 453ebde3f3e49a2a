// A kernel for the level texture: the texture unit fetches cells, and treats borders where it can.
// It copies the picture until you fill in the lines marked with ">>>".
#ifndef SIZE
#define SIZE @SIDE@
#endif
#define RADIUS (SIZE / 2)
#include "common.cuh"
#include "levels.cuh"

// The result for the cells around one pixel, wherever they are kept.
struct Own {
    template <typename Cells>
    __device__ inline Sample operator()(const Cells& cells) const
    {
        Sample result = 0;
        for (int s = -RADIUS; s <= RADIUS; ++s) {
            const auto row = cells.row(s);
            for (int t = -RADIUS; t <= RADIUS; ++t) {
                if (!row.counts(t)) continue;  // border `reduce`: there is no cell outside
                const Sample cell = row[t];
                // >>> use the cell, for example: sum += cell;
                if (s == 0 && t == 0) result = cell;
            }
        }
        // >>> compute the result, for example: result = quotient(sum, cells.count());
        return result;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    @KERNEL@(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute(source, output, g, Own());
}
