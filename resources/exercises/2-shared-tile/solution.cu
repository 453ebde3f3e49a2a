#include "exercise.cuh"

#define COLUMNS 32
#define ROWS 8
#define TILE_COLUMNS (COLUMNS + 2)
#define TILE_ROWS (ROWS + 2)

// output(y, x) = the mean of the 3 x 3 cells around (y, x) of the source
extern "C" __global__ void mean(const Cell* source, Cell* output, Picture picture)
{
    __shared__ unsigned char tile[TILE_ROWS][TILE_COLUMNS];
    const int left = blockIdx.x * COLUMNS - 1, top = blockIdx.y * ROWS - 1;
    for (int i = threadIdx.y * COLUMNS + threadIdx.x; i < TILE_ROWS * TILE_COLUMNS; i += COLUMNS * ROWS) {
        const int row = clamped(top + i / TILE_COLUMNS, picture.height);
        const int column = clamped(left + i % TILE_COLUMNS, picture.width);
        tile[i / TILE_COLUMNS][i % TILE_COLUMNS] = source[row * picture.width + column];
    }
    __syncthreads();
    const int x = left + 1 + threadIdx.x, y = top + 1 + threadIdx.y;
    if (x >= picture.width || y >= picture.height) return;
    int sum = 0;
    for (int s = 0; s < 3; ++s)
        for (int t = 0; t < 3; ++t) sum += tile[threadIdx.y + s][threadIdx.x + t];
    output[y * picture.width + x] = (sum + 4) / 9;
}
