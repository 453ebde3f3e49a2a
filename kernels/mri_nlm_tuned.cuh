// tuned: non-local means of volumes with everything between a voxel and a result in registers.
//
// For an offset o the squared difference of u(i) and u(i + o) belongs to the patches of all voxels around i. It is
// computed once, and D of neighbouring voxels are short sums over sums:
//
//   down the rows and then through the slices, within a thread; along x, across the threads of a warp.
//
// A thread has TILE_Y x TILE_Z voxels of one x: their sums, their surroundings and those of the candidates stay in
// registers. A warp has 32 neighbouring x, of which the outer PATCH_X on each side only help the others. For a
// slice dz of offsets the block reads its voxels into shared memory, where all slices of a voxel lie side by
// side (a Cell); a thread goes through the dy of a dx and reads one more cell for each.
//
// Voxels are scaled when they are read, so that 2^-D is the weight; under LOCAL each voxel scales its own D.
//
// Launch: blocks of 32 x WARPS threads for 32 - 2 PATCH_X x WARPS TILE_Y x TILE_Z voxels.
// A pair of voxels takes about 16 instructions for one component and patches of 3 x 3 x 3.
#ifndef KERNELSCOPE_MRI_NLM_TUNED
#define KERNELSCOPE_MRI_NLM_TUNED

#ifndef TILE_Y
#define TILE_Y 4
#endif
#ifndef TILE_Z
#define TILE_Z 4
#endif

namespace tuned {

constexpr int SLICES = TILE_Z + 2 * PATCH_Z;
constexpr int ROWS = TILE_Y + 2 * PATCH_Y;
constexpr int VALUES = COMPONENTS * SLICES;
constexpr int WIDTH = 32 - 2 * PATCH_X;  // voxels that a warp computes
// Components that make a D: all of them, or, if each voxel weighs them differently, one after the other.
constexpr int TOGETHER = LOCAL ? 1 : COMPONENTS;
constexpr float LOG2_E = 1.442695041f;

// The slices of one x and y, those of a component side by side: read at once.
struct alignas(VALUES % 4 == 0 ? 16 : VALUES % 2 == 0 ? 8 : 4) Cell {
    float values[VALUES];

    __device__ inline float at(int c, int slice) const { return values[c * SLICES + slice]; }
};

// Sums over candidates for the voxels of a thread.
struct Tile {
    float weights[TILE_Z][TILE_Y];
    float values[COMPONENTS][TILE_Z][TILE_Y];
};

// Factor of D at each voxel, where it is not the same for all.
struct Strengths {
    float of[COMPONENTS][TILE_Z][TILE_Y];
};

// The slices from z on, scaled.
__device__ inline Cell read(
    const float* source, const Volume& g, const float (&scales)[COMPONENTS], int z, int y, int x)
{
    Cell cell;
#pragma unroll
    for (int s = 0; s < SLICES; ++s) {
        const float* voxel = source + source_offset(g, mirrored_slice(g, z + s, reach()), y, x);
#pragma unroll
        for (int c = 0; c < COMPONENTS; ++c)
            cell.values[c * SLICES + s] = voxel[c] * scales[c];
    }
    return cell;
}

// The sum over the x of a patch: of the values of 2 PATCH_X + 1 neighbouring threads.
__device__ inline float sum_along_x(float value)
{
    const float near = value + (__shfl_up_sync(~0u, value, 1) + __shfl_down_sync(~0u, value, 1));
#if PATCH_X == 1
    return near;
#elif PATCH_X == 2
    return near + (__shfl_up_sync(~0u, value, 2) + __shfl_down_sync(~0u, value, 2));
#elif PATCH_X == 3
    return value + (__shfl_up_sync(~0u, near, 2) + __shfl_down_sync(~0u, near, 2));
#elif PATCH_X == 4
    return near + (__shfl_up_sync(~0u, near, 3) + __shfl_down_sync(~0u, near, 3));
#else
    const float five = near + (__shfl_up_sync(~0u, value, 2) + __shfl_down_sync(~0u, value, 2));
    return value + (__shfl_up_sync(~0u, five, 3) + __shfl_down_sync(~0u, five, 3));
#endif
}

// Squared differences in rows `first` to `last`, added to `sum`.
__device__ inline float add_squares(
    float sum, const float (&differences)[TOGETHER][ROWS], int first, int last)
{
#pragma unroll
    for (int r = first; r <= last; ++r)
#pragma unroll
        for (int c = 0; c < TOGETHER; ++c)
            sum = fmaf(differences[c][r], differences[c][r], sum);
    return sum;
}

// Sums over the rows of a patch. Two neighbours share all of it but one row each.
__device__ inline void sum_rows(float (&sums)[TILE_Y], const float (&differences)[TOGETHER][ROWS])
{
#pragma unroll
    for (int y = 0; y < TILE_Y; y += 2) {
        const float shared = add_squares(0, differences, y + 1, y + 2 * PATCH_Y);
        sums[y] = add_squares(shared, differences, y, y);
        if (y + 1 < TILE_Y) {
            const int last = y + 1 + 2 * PATCH_Y;
            sums[y + 1] = add_squares(shared, differences, last, last);
        }
    }
}

// Sums over rows and slices, for components from c on. Slices are added in their order, wherever the tile
// begins: so a slab gives the same bytes as the whole volume.
__device__ inline void sum_rows_and_slices(
    float (&sums)[TILE_Z][TILE_Y], const Cell (&own)[ROWS], const Cell (&others)[ROWS], int turn,
    int c)
{
#pragma unroll
    for (int s = 0; s < SLICES; ++s) {
        float differences[TOGETHER][ROWS], rows[TILE_Y];
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k)
                differences[k][r] = own[r].at(c + k, s) - others[(r + turn) % ROWS].at(c + k, s);
        sum_rows(rows, differences);
#pragma unroll
        for (int z = 0; z < TILE_Z; ++z)
#pragma unroll
            for (int y = 0; y < TILE_Y; ++y)
                if (z <= s && s <= z + 2 * PATCH_Z)
                    sums[z][y] = z == s ? rows[y] : sums[z][y] + rows[y];
    }
}

// Add the candidates of one offset. Row r of their surroundings is `others[(r + turn) % ROWS]`.
__device__ inline void compare(
    Tile& tile, const Cell (&own)[ROWS], const Cell (&others)[ROWS], int turn,
    const Strengths& strengths)
{
    float distances[TILE_Z][TILE_Y];
#pragma unroll
    for (int c = 0; c < COMPONENTS; c += TOGETHER) {
        float sums[TILE_Z][TILE_Y];
        sum_rows_and_slices(sums, own, others, turn, c);
#pragma unroll
        for (int z = 0; z < TILE_Z; ++z)
#pragma unroll
            for (int y = 0; y < TILE_Y; ++y) {
                float distance = sum_along_x(sums[z][y]);
                if (LOCAL) distance *= strengths.of[c][z][y];
                distances[z][y] = c == 0 ? distance : distances[z][y] + distance;
            }
    }
#pragma unroll
    for (int z = 0; z < TILE_Z; ++z)
#pragma unroll
        for (int y = 0; y < TILE_Y; ++y) {
            float weight;
            asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(weight) : "f"(-distances[z][y]));
            tile.weights[z][y] += weight;
#pragma unroll
            for (int c = 0; c < COMPONENTS; ++c)
                add(tile.values[c][z][y], weight,
                    others[(y + PATCH_Y + turn) % ROWS].at(c, z + PATCH_Z));
        }
}

// Call visit(z, y, number) for the voxels of a thread that are inside the volume and the launch.
template <typename Visit>
__device__ inline void for_each_voxel(const Volume& g, int z, int y, int x, Visit visit)
{
    const int lane = threadIdx.x;
    if (lane < PATCH_X || lane >= PATCH_X + WIDTH || x >= g.width) return;
#pragma unroll
    for (int s = 0; s < TILE_Z; ++s)
#pragma unroll
        for (int r = 0; r < TILE_Y; ++r)
            if (z + s < g.last && y + r < g.height) visit(s, r, voxel_number(g, z + s, y + r, x));
}

}  // namespace tuned

extern "C" __global__ void __launch_bounds__(128) mri_nlm_tuned(
    const float* source, float* output, const float* sigmas, float* weights, float* values,
    Volume g, int first, int last)
{
    using namespace tuned;
    extern __shared__ float4 tuned_memory[];
    Cell* cells = (Cell*)tuned_memory;

    const int left = blockIdx.x * WIDTH - PATCH_X;
    const int top = blockIdx.y * blockDim.y * TILE_Y - PATCH_Y;
    const int front = g.first + blockIdx.z * TILE_Z - PATCH_Z;
    const int z = front + PATCH_Z, x = left + threadIdx.x;
    const int y = top + PATCH_Y + threadIdx.y * TILE_Y;

    float scales[COMPONENTS];
    for (int c = 0; c < COMPONENTS; ++c)
        scales[c] = LOCAL ? 1 : sqrtf(LOG2_E * strength) / sigmas[c];
    Cell own[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        own[r] = read(source, g, scales, front, mirrored(y - PATCH_Y + r, g.height),
                      mirrored(x, g.width));

    Tile tile = {};
    Strengths strengths = {};
    for_each_voxel(g, z, y, x, [&](int s, int r, size_t number) {
        for (int c = 0; LOCAL && c < COMPONENTS; ++c) {
            const float sigma = sigma_at(sigmas, number, c);
            strengths.of[c][s][r] = LOG2_E * strength / (sigma * sigma);
        }
        if (first == 0) return;
        const Sums sums = resume(weights, values, number);
        tile.weights[s][r] = sums.weights;
        for (int c = 0; c < COMPONENTS; ++c) tile.values[c][s][r] = sums.values[c];
    });

    const int columns = 32 + 2 * search.x;
    for (int step = first; step < last; ++step) {
        const Offsets part = offsets(step);
        const int count = part.end - part.dy;
        const int rows = blockDim.y * TILE_Y + 2 * PATCH_Y + count - 1;
        __syncthreads();  // the previous step is no longer read
        for (int r = threadIdx.y; r < rows; r += blockDim.y)
            for (int t = threadIdx.x; t < columns; t += 32)
                cells[r * columns + t] =
                    read(source, g, scales, front + part.dz, mirrored(top + part.dy + r, g.height),
                         mirrored(left - search.x + t, g.width));
        __syncthreads();
#pragma unroll 1
        for (int dx = 0; dx <= 2 * search.x; ++dx) {
            const Cell* next = cells + threadIdx.y * TILE_Y * columns + threadIdx.x + dx;
            // A ring of rows: each dy takes one more, in the place of the one that is over.
            Cell others[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS - 1; ++r, next += columns) others[r] = *next;
#pragma unroll 1
            for (int dy = 0; dy < count; dy += ROWS)
#pragma unroll
                for (int turn = 0; turn < ROWS; ++turn) {
                    if (dy + turn >= count) break;
                    others[(turn + ROWS - 1) % ROWS] = *next;
                    next += columns;
                    compare(tile, own, others, turn, strengths);
                }
        }
    }

    for_each_voxel(g, z, y, x, [&](int s, int r, size_t number) {
        Sums sums = {tile.weights[s][r]};
        for (int c = 0; c < COMPONENTS; ++c) sums.values[c] = tile.values[c][s][r];
        if (last < steps()) {
            keep(sums, weights, values, number);
            return;
        }
        // Scaled values went into the sums.
        for (int c = 0; c < COMPONENTS; ++c)
            sums.values[c] /= RICIAN ? scales[c] * scales[c] : scales[c];
        write(sums, sigmas, output, number);
    });
}

#endif
