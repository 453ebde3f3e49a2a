#include "exercise.cuh"

// output(y, x) = the mean of the 3 x 3 cells around (y, x) of the source
extern "C" __global__ void mean(cudaTextureObject_t source, Cell* output, Picture picture)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= picture.width || y >= picture.height) return;
    int sum = 0;
    for (int s = -1; s <= 1; ++s)
        for (int t = -1; t <= 1; ++t) sum += tex2D<unsigned char>(source, x + t + 0.5f, y + s + 0.5f);
    output[y * picture.width + x] = (sum + 4) / 9;
}
