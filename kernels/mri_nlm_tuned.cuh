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
// The volume has an apron, and its voxels are scaled, so that 2^-D is the weight (mri_nlm_scale); under LOCAL each
// voxel scales its own D.
//
// Launch: blocks of 32 x WARPS threads for WARPS (32 - 2 PATCH_X) x TILE_Y x TILE_Z voxels.
// A pair of voxels takes about 15 instructions for one component and patches of 3 x 3 x 3.
#ifndef KERNELSCOPE_MRI_NLM_TUNED
#define KERNELSCOPE_MRI_NLM_TUNED

#ifndef TILE_Y
#define TILE_Y 4
#endif
#ifndef TILE_Z
#define TILE_Z 4
#endif

#ifndef MIN_BLOCKS  // that a multiprocessor has registers for
#define MIN_BLOCKS 1
#endif

// Columns of a row of tiles, those beyond the volume included, where blocks go on from one row to the next; else 0.
__constant__ int line;

namespace tuned {

constexpr int SLICES = TILE_Z + 2 * PATCH_Z;
constexpr int ROWS = TILE_Y + 2 * PATCH_Y;
constexpr int VALUES = COMPONENTS * SLICES;
constexpr int WIDTH = 32 - 2 * PATCH_X;  // voxels that a warp computes
// Components that make a D: all of them, or, if each voxel weighs them differently, one after the other.
constexpr int TOGETHER = LOCAL ? 1 : COMPONENTS;
// The slices of one x and y, those of a component side by side: read at once.
struct alignas(VALUES % 4 == 0 ? 16 : VALUES % 2 == 0 ? 8 : 4) Cell {
    float values[VALUES];

    __device__ inline float at(int c, int slice) const { return values[c * SLICES + slice]; }
};

// A voxel as it goes into the sums: u^n.
__device__ inline float power(float value)
{
    return RICIAN ? value * value : value;
}

// Those of the slices in the middle, where there are registers for them.
constexpr bool KEPT = COMPONENTS < 4;
struct Middle {
    float of[COMPONENTS][TILE_Z];

    __device__ inline void operator=(const Cell& cell)
    {
#pragma unroll
        for (int c = 0; KEPT && c < COMPONENTS; ++c)
#pragma unroll
            for (int z = 0; z < TILE_Z; ++z) of[c][z] = power(cell.at(c, z + PATCH_Z));
    }
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

// The x of a thread, and its row of tiles. The rows of a slice make a line, one after the other, each with PATCH_X
// columns beyond the volume at both ends:
//
//   row 0  x = -1 0 1 2 ... width-1 width | row 1  -1 0 1 ...        of blocks and warps only the last one of a slice
//   warps  0           30           60           90                  has threads without a voxel
struct Position {
    int row, x;

    // The one at `distance` from the first column of row `row`.
    __device__ inline Position(int row, int distance)
        : row(line ? row + distance / line : row), x((line ? distance % line : distance) - PATCH_X)
    {
    }
};

// The columns of shared memory: those of the block in its first row of tiles with their candidates, then those in
// the next row, and so on.
struct Columns {
    Position first;
    int head;  // how many are of the first row
    int all;

    __device__ inline Columns(const Position& first, const Position& last)
        : first(first),
          head((last.row > first.row ? line - first.x - PATCH_X : last.x - first.x + 1) + 2 * search.x),
          all((last.row - first.row) * (line + 2 * search.x) + last.x - first.x + 1 + 2 * search.x)
    {
    }

    // What is in column t.
    __device__ inline Position position(int t) const
    {
        Position position = first;
        if (t >= head) {
            const int width = line + 2 * search.x;
            position.row += 1 + (t - head) / width;
            t = (t - head) % width - first.x - PATCH_X;
        }
        position.x += t - search.x;
        return position;
    }

    // Where the candidate of a voxel with the least dx is.
    __device__ inline int of(const Position& position) const
    {
        return (position.row - first.row) * (line + 2 * search.x) + position.x - first.x;
    }
};

// The slices from z on. Tiles may go on beyond the voxels that are there: those are not needed.
__device__ inline Cell read(const Voxels& volume, const Volume& g, int z, int y, int x)
{
    y = min(y, g.height - 1 - volume.y);
    x = min(x, g.width - 1 - volume.x);
    Cell cell;
#pragma unroll
    for (int s = 0; s < SLICES; ++s) {
        const float* voxel = volume.at(min(z + s, g.last - 1 + reach()), y, x);
#pragma unroll
        for (int c = 0; c < COMPONENTS; ++c) cell.values[c * SLICES + s] = voxel[c * volume.component];
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

// Sums over rows and slices, for components from c on. Two neighbouring slices share all but one slice each.
__device__ inline void sum_rows_and_slices(
    float (&sums)[TILE_Z][TILE_Y], const Cell (&own)[ROWS], const Cell (&others)[ROWS], int turn,
    int c)
{
    float shared[TILE_Z / 2][TILE_Y];
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
        for (int z = 0; z < TILE_Z; z += 2)
#pragma unroll
            for (int y = 0; y < TILE_Y; ++y) {
                const bool of_both = z < s && s <= z + 2 * PATCH_Z;
                if (of_both) shared[z / 2][y] = s == z + 1 ? rows[y] : shared[z / 2][y] + rows[y];
                if (s == z) sums[z][y] = rows[y];
                if (of_both && s == z + 2 * PATCH_Z) sums[z][y] += shared[z / 2][y];
                if (s == z + 1 + 2 * PATCH_Z) sums[z + 1][y] = PATCH_Z ? shared[z / 2][y] + rows[y] : rows[y];
            }
    }
}

// Add the candidates of one offset. Row r of their surroundings is `others[(r + turn) % ROWS]`.
__device__ inline void compare(
    Tile& tile, const Cell (&own)[ROWS], const Cell (&others)[ROWS], const Middle (&powers)[ROWS], int turn,
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
                if (KEPT)
                    tile.values[c][z][y] += weight * powers[(y + PATCH_Y + turn) % ROWS].of[c][z];
                else
                    add(tile.values[c][z][y], weight, others[(y + PATCH_Y + turn) % ROWS].at(c, z + PATCH_Z));
        }
}

// Call visit(z, y, number) for the voxels of a thread that are inside the volume and the launch.
template <typename Visit>
__device__ inline void for_each_voxel(const Volume& g, int z, int y, int x, Visit visit)
{
    const int lane = threadIdx.x;
    if (lane < PATCH_X || lane >= PATCH_X + WIDTH || (unsigned)x >= (unsigned)g.width) return;
#pragma unroll
    for (int s = 0; s < TILE_Z; ++s)
#pragma unroll
        for (int r = 0; r < TILE_Y; ++r)
            if (z + s < g.last && y + r < g.height) visit(s, r, voxel_number(g, z + s, y + r, x));
}

}  // namespace tuned

extern "C" __global__ void __launch_bounds__(128, MIN_BLOCKS) mri_nlm_tuned(
    const float* source, float* output, const float* sigmas, const float* padded, float* weights, float* values,
    Volume g, int first, int last)
{
    using namespace tuned;
    extern __shared__ float4 tuned_memory[];
    Cell* cells = (Cell*)tuned_memory;

    const Voxels volume = with_apron(padded, g);
    const int left = blockIdx.x * blockDim.y * WIDTH;
    const Position block(blockIdx.y, left), place(blockIdx.y, left + threadIdx.y * WIDTH + threadIdx.x);
    const Columns columns(block, Position(blockIdx.y, left + blockDim.y * WIDTH + 2 * PATCH_X - 1));
    const int front = g.first + blockIdx.z * TILE_Z - PATCH_Z;
    const int z = front + PATCH_Z, y = place.row * TILE_Y, x = place.x;

    Cell own[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) own[r] = read(volume, g, front, y - PATCH_Y + r, x);

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

    for (int step = first; step < last; ++step) {
        const Offsets part = offsets(step);
        const int count = part.end - part.dy;
        __syncthreads();  // the previous step is no longer read
        for (int t = threadIdx.x; t < columns.all; t += 32) {
            const Position from = columns.position(t);
            for (int r = threadIdx.y; r < ROWS + count - 1; r += blockDim.y)
                cells[r * columns.all + t] =
                    read(volume, g, front + part.dz, from.row * TILE_Y - PATCH_Y + part.dy + r, from.x);
        }
        __syncthreads();
#pragma unroll 1
        for (int dx = 0; dx <= 2 * search.x; ++dx) {
            const Cell* next = cells + columns.of(place) + dx;
            // A ring of rows: each dy takes one more, in the place of the one that is over.
            Cell others[ROWS];
            Middle powers[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS - 1; ++r, next += columns.all) {
                others[r] = *next;
                if (r >= PATCH_Y) powers[r] = others[r];
            }
#pragma unroll 1
            for (int dy = 0; dy < count; dy += ROWS)
#pragma unroll
                for (int turn = 0; turn < ROWS; ++turn) {
                    if (dy + turn >= count) break;
                    others[(turn + ROWS - 1) % ROWS] = *next;
                    next += columns.all;
                    powers[(turn + TILE_Y - 1 + PATCH_Y) % ROWS] = others[(turn + TILE_Y - 1 + PATCH_Y) % ROWS];
                    compare(tile, own, others, powers, turn, strengths);
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
        for (int c = 0; !LOCAL && c < COMPONENTS; ++c) sums.values[c] /= power(scale_of(sigmas[c]));
        write(sums, sigmas, output, number);
    });
}

#endif
