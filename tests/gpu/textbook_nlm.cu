// Non-local means as a textbook writes it, a kernel for each memory, to compare the program's levels with.
// Grey pictures and single volumes of floats, padded by the host; sides need not be multiples of a block.
#ifndef P  // side of a patch
#define P 7
#endif
#ifndef R  // radius of the window
#define R 10
#endif
#define H (P / 2)
#define PART 32

__constant__ float constant_g[P * P];

// Source N, sections 2.3 and 2.4: the whole image, Z first and the mean then. A is padded by H.
#define FOR_ALL_PIXELS                         \
    for (int i = 0; i < m; ++i)                \
        for (int j = 0; j < n; ++j)

#define DISTANCE(cell, g)                                               \
    float d = 0;                                                        \
    _Pragma("unroll") for (int k = 0; k < P; ++k)                       \
        _Pragma("unroll") for (int l = 0; l < P; ++l)                   \
        {                                                               \
            const float e = (own[k][l] - (cell)) * g[k * P + l];        \
            d += e * e;                                                 \
        }

#define OWN_PATCH(top, left)                                 \
    float own[P][P];                                         \
    _Pragma("unroll") for (int k = 0; k < P; ++k)            \
        _Pragma("unroll") for (int l = 0; l < P; ++l)        \
            own[k][l] = A[((top) + k) * w + (left) + l];

#define PIXEL                                             \
    const int x = blockIdx.x * blockDim.x + threadIdx.x;  \
    const int y = blockIdx.y * blockDim.y + threadIdx.y;

extern "C" __global__ void whole_global_z(const float* A, const float* g, float* Z, int m, int n)
{
    PIXEL
    const int w = n + 2 * H;
    if (x >= n || y >= m) return;
    OWN_PATCH(y, x)
    float z = 0;
    FOR_ALL_PIXELS
    {
        DISTANCE(A[(i + k) * w + j + l], g)
        z += __expf(-d);
    }
    Z[y * n + x] = z;
}

extern "C" __global__ void whole_global_f(
    const float* A, const float* g, const float* Z, float* F, int m, int n)
{
    PIXEL
    const int w = n + 2 * H;
    if (x >= n || y >= m) return;
    OWN_PATCH(y, x)
    float f = 0;
    FOR_ALL_PIXELS
    {
        DISTANCE(A[(i + k) * w + j + l], g)
        f += __expf(-d) * A[(i + H) * w + j + H];
    }
    F[y * n + x] = f / Z[y * n + x];
}

extern "C" __global__ void whole_constant_z(const float* A, float* Z, int m, int n)
{
    PIXEL
    const int w = n + 2 * H;
    if (x >= n || y >= m) return;
    OWN_PATCH(y, x)
    float z = 0;
    FOR_ALL_PIXELS
    {
        DISTANCE(A[(i + k) * w + j + l], constant_g)
        z += __expf(-d);
    }
    Z[y * n + x] = z;
}

extern "C" __global__ void whole_constant_f(const float* A, const float* Z, float* F, int m, int n)
{
    PIXEL
    const int w = n + 2 * H;
    if (x >= n || y >= m) return;
    OWN_PATCH(y, x)
    float f = 0;
    FOR_ALL_PIXELS
    {
        DISTANCE(A[(i + k) * w + j + l], constant_g)
        f += __expf(-d) * A[(i + H) * w + j + H];
    }
    F[y * n + x] = f / Z[y * n + x];
}

// The same through a texture of A.
#define TEXEL(y, x) tex2D<float>(A, (x) + 0.5f, (y) + 0.5f)
#define OWN_TEXELS(top, left)                                \
    float own[P][P];                                         \
    _Pragma("unroll") for (int k = 0; k < P; ++k)            \
        _Pragma("unroll") for (int l = 0; l < P; ++l)        \
            own[k][l] = TEXEL((top) + k, (left) + l);

extern "C" __global__ void whole_texture_z(cudaTextureObject_t A, float* Z, int m, int n)
{
    PIXEL
    if (x >= n || y >= m) return;
    OWN_TEXELS(y, x)
    float z = 0;
    FOR_ALL_PIXELS
    {
        DISTANCE(TEXEL(i + k, j + l), constant_g)
        z += __expf(-d);
    }
    Z[y * n + x] = z;
}

extern "C" __global__ void whole_texture_f(
    cudaTextureObject_t A, const float* Z, float* F, int m, int n)
{
    PIXEL
    if (x >= n || y >= m) return;
    OWN_TEXELS(y, x)
    float f = 0;
    FOR_ALL_PIXELS
    {
        DISTANCE(TEXEL(i + k, j + l), constant_g)
        f += __expf(-d) * TEXEL(i + H, j + H);
    }
    F[y * n + x] = f / Z[y * n + x];
}

// The partitions of the whole image one after the other; sides are multiples of PART.
#define FOR_ALL_PARTITIONS                   \
    for (int i = 0; i < m; i += PART)        \
        for (int j = 0; j < n; j += PART)

#define LOAD_PART                                                                  \
    __syncthreads();                                                               \
    for (int s = threadIdx.y; s < PART + 2 * H; s += blockDim.y)                   \
        for (int t = threadIdx.x; t < PART + 2 * H; t += blockDim.x)               \
            part[s][t] = A[(i + s) * w + j + t];                                   \
    __syncthreads();

extern "C" __global__ void whole_shared_z(const float* A, float* Z, int m, int n)
{
    __shared__ float part[PART + 2 * H][PART + 2 * H];
    PIXEL
    const int w = n + 2 * H;
    OWN_PATCH(y, x)
    float z = 0;
    FOR_ALL_PARTITIONS
    {
        LOAD_PART
        for (int s = 0; s < PART; ++s)
            for (int t = 0; t < PART; ++t) {
                DISTANCE(part[s + k][t + l], constant_g)
                z += __expf(-d);
            }
    }
    Z[y * n + x] = z;
}

extern "C" __global__ void whole_shared_f(const float* A, const float* Z, float* F, int m, int n)
{
    __shared__ float part[PART + 2 * H][PART + 2 * H];
    PIXEL
    const int w = n + 2 * H;
    OWN_PATCH(y, x)
    float f = 0;
    FOR_ALL_PARTITIONS
    {
        LOAD_PART
        for (int s = 0; s < PART; ++s)
            for (int t = 0; t < PART; ++t) {
                DISTANCE(part[s + k][t + l], constant_g)
                f += __expf(-d) * part[s + H][t + H];
            }
    }
    F[y * n + x] = f / Z[y * n + x];
}

// A window around each pixel. A is padded by H + R.
#define FOR_THE_WINDOW                       \
    for (int i = 0; i <= 2 * R; ++i)         \
        for (int j = 0; j <= 2 * R; ++j)

extern "C" __global__ void window_global_z(const float* A, const float* g, float* Z, int m, int n)
{
    PIXEL
    const int w = n + 2 * (H + R);
    if (x >= n || y >= m) return;
    OWN_PATCH(y + R, x + R)
    float z = 0;
    FOR_THE_WINDOW
    {
        DISTANCE(A[(y + i + k) * w + x + j + l], g)
        z += __expf(-d);
    }
    Z[y * n + x] = z;
}

extern "C" __global__ void window_global_f(
    const float* A, const float* g, const float* Z, float* F, int m, int n)
{
    PIXEL
    const int w = n + 2 * (H + R);
    if (x >= n || y >= m) return;
    OWN_PATCH(y + R, x + R)
    float f = 0;
    FOR_THE_WINDOW
    {
        DISTANCE(A[(y + i + k) * w + x + j + l], g)
        f += __expf(-d) * A[(y + i + H) * w + x + j + H];
    }
    F[y * n + x] = f / Z[y * n + x];
}

extern "C" __global__ void window_constant_z(const float* A, float* Z, int m, int n)
{
    PIXEL
    const int w = n + 2 * (H + R);
    if (x >= n || y >= m) return;
    OWN_PATCH(y + R, x + R)
    float z = 0;
    FOR_THE_WINDOW
    {
        DISTANCE(A[(y + i + k) * w + x + j + l], constant_g)
        z += __expf(-d);
    }
    Z[y * n + x] = z;
}

extern "C" __global__ void window_constant_f(
    const float* A, const float* Z, float* F, int m, int n)
{
    PIXEL
    const int w = n + 2 * (H + R);
    if (x >= n || y >= m) return;
    OWN_PATCH(y + R, x + R)
    float f = 0;
    FOR_THE_WINDOW
    {
        DISTANCE(A[(y + i + k) * w + x + j + l], constant_g)
        f += __expf(-d) * A[(y + i + H) * w + x + j + H];
    }
    F[y * n + x] = f / Z[y * n + x];
}

extern "C" __global__ void window_texture_z(cudaTextureObject_t A, float* Z, int m, int n)
{
    PIXEL
    if (x >= n || y >= m) return;
    OWN_TEXELS(y + R, x + R)
    float z = 0;
    FOR_THE_WINDOW
    {
        DISTANCE(TEXEL(y + i + k, x + j + l), constant_g)
        z += __expf(-d);
    }
    Z[y * n + x] = z;
}

extern "C" __global__ void window_texture_f(
    cudaTextureObject_t A, const float* Z, float* F, int m, int n)
{
    PIXEL
    if (x >= n || y >= m) return;
    OWN_TEXELS(y + R, x + R)
    float f = 0;
    FOR_THE_WINDOW
    {
        DISTANCE(TEXEL(y + i + k, x + j + l), constant_g)
        f += __expf(-d) * TEXEL(y + i + H, x + j + H);
    }
    F[y * n + x] = f / Z[y * n + x];
}

// The tile of a block of 32 x 8 threads with all that its windows and patches need.
#define TILE_ROWS (8 + 2 * (H + R))
#define TILE_COLUMNS (32 + 2 * (H + R))
#define LOAD_TILE                                                                        \
    for (int s = threadIdx.y; s < TILE_ROWS; s += 8)                                     \
        for (int t = threadIdx.x; t < TILE_COLUMNS; t += 32)                             \
            tile[s][t] = A[min((int)blockIdx.y * 8 + s, m + 2 * (H + R) - 1) * w +       \
                           min((int)blockIdx.x * 32 + t, w - 1)];                        \
    __syncthreads();

extern "C" __global__ void window_shared_z(const float* A, float* Z, int m, int n)
{
    __shared__ float tile[TILE_ROWS][TILE_COLUMNS];
    PIXEL
    const int w = n + 2 * (H + R);
    LOAD_TILE
    if (x >= n || y >= m) return;
    OWN_PATCH(y + R, x + R)
    float z = 0;
    FOR_THE_WINDOW
    {
        DISTANCE(tile[threadIdx.y + i + k][threadIdx.x + j + l], constant_g)
        z += __expf(-d);
    }
    Z[y * n + x] = z;
}

extern "C" __global__ void window_shared_f(const float* A, const float* Z, float* F, int m, int n)
{
    __shared__ float tile[TILE_ROWS][TILE_COLUMNS];
    PIXEL
    const int w = n + 2 * (H + R);
    LOAD_TILE
    if (x >= n || y >= m) return;
    OWN_PATCH(y + R, x + R)
    float f = 0;
    FOR_THE_WINDOW
    {
        DISTANCE(tile[threadIdx.y + i + k][threadIdx.x + j + l], constant_g)
        f += __expf(-d) * tile[threadIdx.y + i + H][threadIdx.x + j + H];
    }
    F[y * n + x] = f / Z[y * n + x];
}

// Source V: a volume with an apron of V + D voxels, Rician noise; h = 1 / (2 beta sigma^2 cells).
#ifndef V
#define V 5
#endif
#ifndef D
#define D 1
#endif
#define S (2 * D + 1)

#define VOXEL_DISTANCE(cell)                                              \
    float d = 0;                                                          \
    _Pragma("unroll") for (int a = 0; a < S; ++a)                         \
        _Pragma("unroll") for (int k = 0; k < S; ++k)                     \
            _Pragma("unroll") for (int l = 0; l < S; ++l)                 \
            {                                                             \
                const float e = own[a][k][l] - (cell);                    \
                d += e * e;                                               \
            }

#define OWN_VOXELS                                                                      \
    float own[S][S][S];                                                                 \
    _Pragma("unroll") for (int a = 0; a < S; ++a)                                       \
        _Pragma("unroll") for (int k = 0; k < S; ++k)                                   \
            _Pragma("unroll") for (int l = 0; l < S; ++l)                               \
                own[a][k][l] = A[((z + V + a) * h + y + V + k) * w + x + V + l];

#define VOXEL                                             \
    const int x = blockIdx.x * blockDim.x + threadIdx.x;  \
    const int y = blockIdx.y * blockDim.y + threadIdx.y;  \
    const int z = blockIdx.z * blockDim.z + threadIdx.z;  \
    const int w = columns + 2 * (V + D), h = rows + 2 * (V + D);

extern "C" __global__ void mri_global(
    const float* A, float* F, float strength, float bias, int slices, int rows, int columns)
{
    VOXEL
    if (x >= columns || y >= rows || z >= slices) return;
    OWN_VOXELS
    float weights = 0, values = 0;
    for (int r = 0; r <= 2 * V; ++r)
        for (int i = 0; i <= 2 * V; ++i)
            for (int j = 0; j <= 2 * V; ++j) {
                VOXEL_DISTANCE(A[((z + r + a) * h + y + i + k) * w + x + j + l])
                const float weight = __expf(-strength * d);
                const float u = A[((z + r + D) * h + y + i + D) * w + x + j + D];
                weights += weight;
                values += weight * u * u;
            }
    F[(z * rows + y) * columns + x] = sqrtf(fmaxf(values / weights - bias, 0));
}

// Figure 2-3: a block of 16 x 16 voxels of a slice keeps all that its windows and patches need.
#define SIDE (16 + 2 * (V + D))
#define DEPTH (1 + 2 * (V + D))

extern "C" __global__ void mri_shared(
    const float* A, float* F, float strength, float bias, int slices, int rows, int columns)
{
    extern __shared__ float tile[];  // DEPTH x SIDE x SIDE
    VOXEL
    for (int a = 0; a < DEPTH; ++a)
        for (int k = threadIdx.y; k < SIDE; k += 16)
            for (int l = threadIdx.x; l < SIDE; l += 16)
                tile[(a * SIDE + k) * SIDE + l] =
                    A[((z + a) * h + min((int)blockIdx.y * 16 + k, h - 1)) * w +
                      min((int)blockIdx.x * 16 + l, w - 1)];
    __syncthreads();
    if (x >= columns || y >= rows) return;
    OWN_VOXELS
    float weights = 0, values = 0;
    const float* mine = tile + threadIdx.y * SIDE + threadIdx.x;
    for (int r = 0; r <= 2 * V; ++r)
        for (int i = 0; i <= 2 * V; ++i)
            for (int j = 0; j <= 2 * V; ++j) {
                VOXEL_DISTANCE(mine[((r + a) * SIDE + i + k) * SIDE + j + l])
                const float weight = __expf(-strength * d);
                const float u = mine[((r + D) * SIDE + i + D) * SIDE + j + D];
                weights += weight;
                values += weight * u * u;
            }
    F[(z * rows + y) * columns + x] = sqrtf(fmaxf(values / weights - bias, 0));
}
