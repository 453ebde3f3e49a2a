#include "exercise.cuh"

// 1 / (white^2 h), with white = 255 and h = 0.02
#define SCALE (1 / (255.0f * 255.0f * 0.02f))
#define COLUMNS 32
#define ROWS 8
#define HALO 3  // two cells to the furthest candidate, and one more to the rim of its patch
#define TILE_COLUMNS (COLUMNS + 2 * HALO)
#define TILE_ROWS (ROWS + 2 * HALO)

// output(y, x) = the mean of the 5 x 5 cells around (y, x), weighted by how much their 3 x 3 patches are alike
extern "C" __global__ void denoise(const Cell* source, Cell* output, Picture picture)
{
    __shared__ unsigned char tile[TILE_ROWS][TILE_COLUMNS];
    const int left = blockIdx.x * COLUMNS, top = blockIdx.y * ROWS;
    for (int i = threadIdx.y * COLUMNS + threadIdx.x; i < TILE_ROWS * TILE_COLUMNS; i += COLUMNS * ROWS) {
        const int row = clamped(top - HALO + i / TILE_COLUMNS, picture.height);
        const int column = clamped(left - HALO + i % TILE_COLUMNS, picture.width);
        tile[i / TILE_COLUMNS][i % TILE_COLUMNS] = source[row * picture.width + column];
    }
    __syncthreads();
    const int x = left + threadIdx.x, y = top + threadIdx.y;
    if (x >= picture.width || y >= picture.height) return;
    const int row = threadIdx.y + HALO, column = threadIdx.x + HALO;  // of the pixel, in the tile
    float weights = 0, sum = 0;
    for (int dy = -2; dy <= 2; ++dy)
        for (int dx = -2; dx <= 2; ++dx) {
            int distance = 0;
            for (int s = -1; s <= 1; ++s)
                for (int t = -1; t <= 1; ++t) {
                    const int difference = tile[row + dy + s][column + dx + t] - tile[row + s][column + t];
                    distance += difference * difference;
                }
            const float weight = expf(-SCALE * distance);
            weights += weight;
            sum += weight * tile[row + dy][column + dx];
        }
    output[y * picture.width + x] = (int)(sum / weights + 0.5f);
}
