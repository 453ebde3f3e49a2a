#include "exercise.cuh"

// output(y, x) = the mean of the 3 x 3 cells around (y, x) of the source
extern "C" __global__ void mean(const Cell* source, Cell* output, Picture picture)
{
    // To do: the pixel of this thread, and the mean.
    const int x = 0;
    const int y = 0;
    output[y * picture.width + x] = source[y * picture.width + x];
}
