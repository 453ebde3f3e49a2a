// The filters as a textbook writes them: a kernel for each memory, grey bytes, no general case. The levels
// of the program are compared with them, see textbook.py. Results of the interior are those of the
// program; the rim is skipped (report no. 5) or has the result of the nearest interior pixel (Korcuska 2013,
// 5.2, who limits the thread's indices once).
typedef unsigned char Byte;

#ifndef SIZE
#define SIZE 3
#endif
#ifndef DIVISOR
#define DIVISOR (SIZE * SIZE)
#endif
#define R (SIZE / 2)
#define COLUMNS 32  // of a block
#define ROWS 8
#define SQUARE 16  // results of a block in x and y, of the kernels that have square ones

__constant__ int mask[SIZE * SIZE];

// Halves occur with even divisors only, and go to the even neighbour.
__device__ Byte rounded(int sum)
{
#if DIVISOR == 1
    int value = sum;
#elif DIVISOR % 2 == 1
    int value = (sum + DIVISOR / 2) / DIVISOR;
#else
    int value = __float2int_rn(sum * (1.0f / DIVISOR));
#endif
    return min(max(value, 0), 255);
}

__device__ bool is_rim(int x, int y, int width, int height)
{
    return x < R || y < R || x >= width - R || y >= height - R;
}

// A block's pixels and R more on each side; pixels outside the image are those of its edge.
__device__ void load_tile(Byte (*tile)[COLUMNS + 2 * R], const Byte* in, int width, int height)
{
    int left = blockIdx.x * COLUMNS - R, top = blockIdx.y * ROWS - R;
    for (int s = threadIdx.y; s < ROWS + 2 * R; s += ROWS)
        for (int t = threadIdx.x; t < COLUMNS + 2 * R; t += COLUMNS) {
            int y = min(max(top + s, 0), height - 1), x = min(max(left + t, 0), width - 1);
            tile[s][t] = in[y * width + x];
        }
    __syncthreads();
}

// Mean (report no. 5): threads stride over the image, in a single block as in many.
extern "C" __global__ void mean_global(
    const Byte* __restrict__ in, Byte* __restrict__ out, int width, int height)
{
    for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < height; y += gridDim.y * blockDim.y)
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < width; x += gridDim.x * blockDim.x) {
            if (is_rim(x, y, width, height)) continue;
            int sum = 0;
            for (int s = -R; s <= R; ++s)
                for (int t = -R; t <= R; ++t) sum += in[(y + s) * width + x + t];
            out[y * width + x] = rounded(sum);
        }
}

// The same with a thread a pixel.
extern "C" __global__ void mean_pixel(
    const Byte* __restrict__ in, Byte* __restrict__ out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (is_rim(x, y, width, height)) return;
    int sum = 0;
    for (int s = -R; s <= R; ++s)
        for (int t = -R; t <= R; ++t) sum += in[(y + s) * width + x + t];
    out[y * width + x] = rounded(sum);
}

extern "C" __global__ void mean_shared(
    const Byte* __restrict__ in, Byte* __restrict__ out, int width, int height)
{
    __shared__ Byte tile[ROWS + 2 * R][COLUMNS + 2 * R];
    load_tile(tile, in, width, height);
    int x = blockIdx.x * COLUMNS + threadIdx.x, y = blockIdx.y * ROWS + threadIdx.y;
    if (is_rim(x, y, width, height)) return;
    int sum = 0;
    for (int s = 0; s < SIZE; ++s)
        for (int t = 0; t < SIZE; ++t) sum += tile[threadIdx.y + s][threadIdx.x + t];
    out[y * width + x] = rounded(sum);
}

// Report no. 5, 3.3: each thread of a block of 16 x 16 reads its own pixel; those at the edges of the block
// also read the R pixels beyond, and those at its corners the ones beyond both: 18 x 18 for 3 x 3 cells.
extern "C" __global__ void mean_edge_threads(
    const Byte* __restrict__ in, Byte* __restrict__ out, int width, int height)
{
    __shared__ Byte tile[SQUARE + 2 * R][SQUARE + 2 * R];
    int i = threadIdx.y, j = threadIdx.x, y = blockIdx.y * SQUARE + i, x = blockIdx.x * SQUARE + j;
    for (int s = i == 0 ? -R : 0; s <= (i == SQUARE - 1 ? R : 0); ++s)
        for (int t = j == 0 ? -R : 0; t <= (j == SQUARE - 1 ? R : 0); ++t) {
            int v = min(max(y + s, 0), height - 1), u = min(max(x + t, 0), width - 1);
            tile[i + R + s][j + R + t] = in[v * width + u];
        }
    __syncthreads();
    if (is_rim(x, y, width, height)) return;
    int sum = 0;
    for (int s = 0; s < SIZE; ++s)
        for (int t = 0; t < SIZE; ++t) sum += tile[i + s][j + t];
    out[y * width + x] = rounded(sum);
}

// Korcuska 5.2: a block has a thread for each cell of its tile, (16 + 2R)^2 of them. Each reads one cell,
// and then the 16 x 16 inner ones have a result to compute; the others are idle.
typedef Byte Cells[SQUARE + 2 * R][SQUARE + 2 * R];

__device__ bool is_idle(int x, int y, int width, int height)
{
    int i = (int)threadIdx.y - R, j = (int)threadIdx.x - R;
    return i < 0 || j < 0 || i >= SQUARE || j >= SQUARE || x >= width || y >= height;
}

__device__ void load_cell(Cells& tile, const Byte* in, int x, int y, int width, int height)
{
    int v = min(max(y, 0), height - 1), u = min(max(x, 0), width - 1);
    tile[threadIdx.y][threadIdx.x] = in[v * width + u];
    __syncthreads();
}

extern "C" __global__ void mask_cell_threads(
    const Byte* __restrict__ in, Byte* __restrict__ out, int width, int height)
{
    __shared__ Cells tile;
    int x = blockIdx.x * SQUARE + threadIdx.x - R, y = blockIdx.y * SQUARE + threadIdx.y - R;
    load_cell(tile, in, x, y, width, height);
    if (is_idle(x, y, width, height)) return;
    int sum = 0;
    for (int s = 0; s < SIZE; ++s)
        for (int t = 0; t < SIZE; ++t)
            sum += mask[s * SIZE + t] * tile[threadIdx.y - R + s][threadIdx.x - R + t];
    out[y * width + x] = rounded(sum);
}

extern "C" __global__ void median_cell_threads(
    const Byte* __restrict__ in, Byte* __restrict__ out, int width, int height)
{
    __shared__ Cells tile;
    int x = blockIdx.x * SQUARE + threadIdx.x - R, y = blockIdx.y * SQUARE + threadIdx.y - R;
    load_cell(tile, in, x, y, width, height);
    if (is_idle(x, y, width, height)) return;
    int median = 0;
    for (int bit = 128; bit > 0; bit /= 2) {
        int below = 0;
        for (int s = 0; s < SIZE; ++s)
            for (int t = 0; t < SIZE; ++t)
                below += tile[threadIdx.y - R + s][threadIdx.x - R + t] < median + bit;
        if (below <= SIZE * SIZE / 2) median += bit;
    }
    out[y * width + x] = median;
}

extern "C" __global__ void mean_texture(
    cudaTextureObject_t in, Byte* __restrict__ out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int sum = 0;
    for (int s = -R; s <= R; ++s)
        for (int t = -R; t <= R; ++t) sum += tex2D<Byte>(in, x + t + 0.5f, y + s + 0.5f);
    out[y * width + x] = rounded(sum);
}

// Any mask (Korcuska).
extern "C" __global__ void mask_global(const Byte* __restrict__ in, Byte* __restrict__ out,
    int width, int height, const int* __restrict__ weights)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int u = min(max(x, R), width - 1 - R), v = min(max(y, R), height - 1 - R);
    int sum = 0;
    for (int s = -R; s <= R; ++s)
        for (int t = -R; t <= R; ++t)
            sum += weights[(s + R) * SIZE + t + R] * in[(v + s) * width + u + t];
    out[y * width + x] = rounded(sum);
}

extern "C" __global__ void mask_constant(
    const Byte* __restrict__ in, Byte* __restrict__ out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int u = min(max(x, R), width - 1 - R), v = min(max(y, R), height - 1 - R);
    int sum = 0;
    for (int s = -R; s <= R; ++s)
        for (int t = -R; t <= R; ++t)
            sum += mask[(s + R) * SIZE + t + R] * in[(v + s) * width + u + t];
    out[y * width + x] = rounded(sum);
}

extern "C" __global__ void mask_shared(
    const Byte* __restrict__ in, Byte* __restrict__ out, int width, int height)
{
    __shared__ Byte tile[ROWS + 2 * R][COLUMNS + 2 * R];
    load_tile(tile, in, width, height);
    int x = blockIdx.x * COLUMNS + threadIdx.x, y = blockIdx.y * ROWS + threadIdx.y;
    if (x >= width || y >= height) return;
    int sum = 0;
    for (int s = 0; s < SIZE; ++s)
        for (int t = 0; t < SIZE; ++t)
            sum += mask[s * SIZE + t] * tile[threadIdx.y + s][threadIdx.x + t];
    out[y * width + x] = rounded(sum);
}

extern "C" __global__ void mask_texture(
    cudaTextureObject_t in, Byte* __restrict__ out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int sum = 0;
    for (int s = -R; s <= R; ++s)
        for (int t = -R; t <= R; ++t)
            sum += mask[(s + R) * SIZE + t + R] * tex2D<Byte>(in, x + t + 0.5f, y + s + 0.5f);
    out[y * width + x] = rounded(sum);
}

// Sobel, |gx| + |gy|.
__device__ Byte strength(int a, int b, int c, int d, int f, int g, int h, int i)
{
    int gx = c + 2 * f + i - a - 2 * d - g, gy = g + 2 * h + i - a - 2 * b - c;
    return min(abs(gx) + abs(gy), 255);
}

extern "C" __global__ void sobel_global(
    const Byte* __restrict__ in, Byte* __restrict__ out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int u = min(max(x, 1), width - 2), v = min(max(y, 1), height - 2);
    const Byte* p = in + v * width + u;
    out[y * width + x] = strength(p[-width - 1], p[-width], p[-width + 1], p[-1], p[1],
        p[width - 1], p[width], p[width + 1]);
}

extern "C" __global__ void sobel_shared(
    const Byte* __restrict__ in, Byte* __restrict__ out, int width, int height)
{
    __shared__ Byte tile[ROWS + 2 * R][COLUMNS + 2 * R];
    load_tile(tile, in, width, height);
    int x = blockIdx.x * COLUMNS + threadIdx.x, y = blockIdx.y * ROWS + threadIdx.y;
    if (x >= width || y >= height) return;
    int i = threadIdx.y, j = threadIdx.x;
    out[y * width + x] = strength(tile[i][j], tile[i][j + 1], tile[i][j + 2], tile[i + 1][j],
        tile[i + 1][j + 2], tile[i + 2][j], tile[i + 2][j + 1], tile[i + 2][j + 2]);
}

extern "C" __global__ void sobel_texture(
    cudaTextureObject_t in, Byte* __restrict__ out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float u = x + 0.5f, v = y + 0.5f;
    out[y * width + x] = strength(tex2D<Byte>(in, u - 1, v - 1), tex2D<Byte>(in, u, v - 1),
        tex2D<Byte>(in, u + 1, v - 1), tex2D<Byte>(in, u - 1, v), tex2D<Byte>(in, u + 1, v),
        tex2D<Byte>(in, u - 1, v + 1), tex2D<Byte>(in, u, v + 1), tex2D<Byte>(in, u + 1, v + 1));
}

// Median, bit by bit from the highest: the largest value that at most half of the cells are below.
extern "C" __global__ void median_global(
    const Byte* __restrict__ in, Byte* __restrict__ out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int u = min(max(x, R), width - 1 - R), v = min(max(y, R), height - 1 - R), median = 0;
    for (int bit = 128; bit > 0; bit /= 2) {
        int below = 0;
        for (int s = -R; s <= R; ++s)
            for (int t = -R; t <= R; ++t) below += in[(v + s) * width + u + t] < median + bit;
        if (below <= SIZE * SIZE / 2) median += bit;
    }
    out[y * width + x] = median;
}

extern "C" __global__ void median_shared(
    const Byte* __restrict__ in, Byte* __restrict__ out, int width, int height)
{
    __shared__ Byte tile[ROWS + 2 * R][COLUMNS + 2 * R];
    load_tile(tile, in, width, height);
    int x = blockIdx.x * COLUMNS + threadIdx.x, y = blockIdx.y * ROWS + threadIdx.y, median = 0;
    if (x >= width || y >= height) return;
    for (int bit = 128; bit > 0; bit /= 2) {
        int below = 0;
        for (int s = 0; s < SIZE; ++s)
            for (int t = 0; t < SIZE; ++t)
                below += tile[threadIdx.y + s][threadIdx.x + t] < median + bit;
        if (below <= SIZE * SIZE / 2) median += bit;
    }
    out[y * width + x] = median;
}

extern "C" __global__ void median_texture(
    cudaTextureObject_t in, Byte* __restrict__ out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int median = 0;
    for (int bit = 128; bit > 0; bit /= 2) {
        int below = 0;
        for (int s = -R; s <= R; ++s)
            for (int t = -R; t <= R; ++t)
                below += tex2D<Byte>(in, x + t + 0.5f, y + s + 0.5f) < median + bit;
        if (below <= SIZE * SIZE / 2) median += bit;
    }
    out[y * width + x] = median;
}

// Median by selection (Korcuska 5.3): each thread copies its window to shared memory and finds the middle
// there with Hoare's algorithm.
extern "C" __global__ void median_selection(
    const Byte* __restrict__ in, Byte* __restrict__ out, int width, int height)
{
    __shared__ Byte windows[SIZE * SIZE][ROWS * COLUMNS];
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int u = min(max(x, R), width - 1 - R), v = min(max(y, R), height - 1 - R);
    int thread = threadIdx.y * COLUMNS + threadIdx.x;
    for (int s = 0; s < SIZE; ++s)
        for (int t = 0; t < SIZE; ++t)
            windows[s * SIZE + t][thread] = in[(v + s - R) * width + u + t - R];
    int low = 0, high = SIZE * SIZE - 1, middle = SIZE * SIZE / 2;
    while (low < high) {
        Byte pivot = windows[middle][thread];
        int i = low, j = high;
        do {
            while (windows[i][thread] < pivot) ++i;
            while (pivot < windows[j][thread]) --j;
            if (i <= j) {
                Byte other = windows[i][thread];
                windows[i++][thread] = windows[j][thread];
                windows[j--][thread] = other;
            }
        } while (i <= j);
        if (j < middle) low = i;
        if (middle < i) high = j;
    }
    out[y * width + x] = windows[middle][thread];
}
