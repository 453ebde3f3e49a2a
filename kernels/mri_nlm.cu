// Non-local means of volumes with several components (T1w, T2w, PDw, ...), for magnitude MRI:
//
//   w(i, j) = exp(-D(i, j))     D(i, j) = 1 / C sum over c of (mean over k of (u(i+k) - u(j+k))^2) / h^2
//   Gaussian noise: g(i) = m1          Rician noise: g(i) = sqrt(max(m2 - 2 sigma^2, 0))
//
// for each component u, with mn = sum over j of w u(j)^n / sum over j of w. k runs over a patch, j over the search
// window around i: boxes, or rectangles of a slice. h^2 = 2 beta sigma^2; sigma, the standard deviation of the noise,
// is known for each component or, LOCAL, for each voxel i. The volume is mirrored at its border.
//
// As in source V, the volume is given an apron first (mri_nlm_pad), so that no loop tests a border. Levels global and
// shared do the same, a small patch around i in registers; only the memory of candidates j differs. The offsets j - i
// come in steps: ROWS rows along x that lie side by side in a slice. A launch can stop after any step; then scratch
// holds the sums.
//
// level   demonstrates                                                                 u(j)
// global  the formula, a thread a voxel                                                global
// shared  a block keeps the voxels that a step needs, with aprons                      shared
// tuned   squared differences shared by all patches that have them: mri_nlm_tuned.cuh  shared, registers
// sigma   LOCAL only, first of the launches: the noise in a window around each voxel   shared
// map     LOCAL only, instead of sigma: the noise between the nodes of a map           -
//
// Launch: blocks of 32 x 4 x 2 threads over width, height and slices (smaller where shared memory is short).
// A voxel takes for each offset 3 operations a cell of the patch (27 for radii of 1) and component, an exponential,
// and a read of the level's memory a cell; at best one read from and one write to device memory.
#include "volume.cuh"

#ifndef COMPONENTS
#define COMPONENTS 1
#endif
#ifndef DIMENSIONS  // 3, or 2: patches and windows within a slice
#define DIMENSIONS 3
#endif
#ifndef PATCH_X  // radii of a patch
#define PATCH_X 1
#endif
#ifndef PATCH_Y
#define PATCH_Y 1
#endif
#ifndef PATCH_Z
#define PATCH_Z (DIMENSIONS == 3 ? 1 : 0)
#endif
#ifndef RICIAN
#define RICIAN 1
#endif
#ifndef THREADS  // of a block of global and shared
#define THREADS 256
#endif
#ifndef LOCAL  // whether each voxel has its own sigma
#define LOCAL 0
#endif

// Of a patch along each axis.
constexpr int PATCH_COLUMNS = 2 * PATCH_X + 1, PATCH_ROWS = 2 * PATCH_Y + 1, PATCH_SLICES = 2 * PATCH_Z + 1;
constexpr int CELLS = PATCH_SLICES * PATCH_ROWS * PATCH_COLUMNS;
// Small patches stay in registers; larger ones are read again for every candidate, and their loops are not unrolled.
constexpr bool SMALL = COMPONENTS * CELLS <= 150;
constexpr int UNROLLED_COMPONENTS = SMALL ? COMPONENTS : 1, UNROLLED_SLICES = SMALL ? PATCH_SLICES : 1;
constexpr int UNROLLED_ROWS = SMALL ? PATCH_ROWS : 1;

struct Search {
    int x, y, z;  // radii
    int rows;     // rows of offsets in a step, at most
};
__constant__ Search search;
__constant__ float strength;  // 1 / (2 beta C cells): times squares / sigma^2, for a component of D

// The offsets of a step: in slice dz, rows dy <= row < end, all dx.
struct Offsets {
    int dz, dy, end;
};

__device__ inline int parts_of_a_slice()
{
    return (2 * search.y + search.rows) / search.rows;
}

__device__ inline int steps()
{
    return parts_of_a_slice() * (2 * search.z + 1);
}

__device__ inline Offsets offsets(int step)
{
    const int dy = step % parts_of_a_slice() * search.rows - search.y;
    return {step / parts_of_a_slice() - search.z, dy, min(dy + search.rows, search.y + 1)};
}

// How many slices a result depends on, above and below.
__device__ inline int reach()
{
    return search.z + PATCH_Z;
}

// Sigma of component c at the voxel `number`; without LOCAL there is a table of COMPONENTS numbers.
__device__ inline float sigma_at(const float* sigmas, size_t number, int c)
{
    return sigmas[LOCAL ? number * COMPONENTS + c : c];
}

// Sums over candidates: of weights, and of values times weights: u^n as above, for each component.
struct Sums {
    float weights, values[COMPONENTS];
};

__device__ inline void add(float& sum, float weight, float value)
{
    sum += RICIAN ? weight * value * value : weight * value;
}

// The sums that the launch before left in scratch.
__device__ inline Sums resume(const float* weights, const float* values, size_t number)
{
    Sums sums = {weights[number]};
    for (int c = 0; c < COMPONENTS; ++c) sums.values[c] = values[number * COMPONENTS + c];
    return sums;
}

// Leave them for the next launch.
__device__ inline void keep(const Sums& sums, float* weights, float* values, size_t number)
{
    weights[number] = sums.weights;
    for (int c = 0; c < COMPONENTS; ++c) values[number * COMPONENTS + c] = sums.values[c];
}

// Write the results.
__device__ inline void write(const Sums& sums, const float* sigmas, float* output, size_t number)
{
    for (int c = 0; c < COMPONENTS; ++c) {
        const float mean = sums.values[c] / sums.weights, sigma = sigma_at(sigmas, number, c);
        output[number * COMPONENTS + c] =
            RICIAN ? sqrtf(fmaxf(mean - 2 * sigma * sigma, 0)) : mean;
    }
}

// The source, mirrored.
struct Mirrored {
    const float* source;
    Volume g;

    __device__ inline float operator()(int z, int y, int x, int c) const
    {
        return source[source_offset(
            g, mirrored(z, g.depth), mirrored(y, g.height), mirrored(x, g.width)) + c];
    }
};

// Voxels of the volume with its apron, in global or shared memory; those of a component in a row lie side by side.
// The coordinates are those of the volume.
struct Voxels {
    const float* first;
    int z, y, x;               // of the first one
    int slice, row, component;  // from one to the next

    __device__ inline const float* at(int zz, int yy, int xx) const
    {
        return first + (size_t)(zz - z) * slice + (yy - y) * row + (xx - x);
    }
};

// All that a launch needs of the padded volume of mri_nlm_pad.
__device__ inline Voxels with_apron(const float* padded, const Volume& g)
{
    const int around_x = search.x + PATCH_X, around_y = search.y + PATCH_Y;
    const int columns = g.width + 2 * around_x, row = COMPONENTS * columns;
    return {padded, g.output_slice - reach(), -around_y, -around_x, (g.height + 2 * around_y) * row, row, columns};
}

// Write the volume with its apron, each component times its scale.
__device__ inline void pad(const float* source, float* padded, const Volume& g, const float (&scales)[COMPONENTS])
{
    const Voxels to = with_apron(padded, g);
    const Mirrored volume = {source, g};
    const int first_y = blockIdx.y * blockDim.y + threadIdx.y, first_x = blockIdx.x * blockDim.x + threadIdx.x;
    for (int z = g.first - reach() + blockIdx.z * blockDim.z + threadIdx.z; z < g.last + reach();
         z += gridDim.z * blockDim.z)
        for (int y = to.y + first_y; y < g.height - to.y; y += gridDim.y * blockDim.y)
            for (int x = to.x + first_x; x < g.width - to.x; x += gridDim.x * blockDim.x)
                for (int c = 0; c < COMPONENTS; ++c)
                    padded[to.at(z, y, x) - padded + c * to.component] = volume(z, y, x, c) * scales[c];
}

extern "C" __global__ void mri_nlm_pad(const float* source, float* output, float* padded, Volume g)
{
    float scales[COMPONENTS];
    for (int c = 0; c < COMPONENTS; ++c) scales[c] = 1;
    pad(source, padded, g, scales);
}

constexpr float LOG2_E = 1.442695041f;

// By which voxels with one sigma are multiplied, so that 2^-(squares of their differences) is the weight.
__device__ inline float scale_of(float sigma)
{
    return sqrtf(LOG2_E * strength) / sigma;
}

// As mri_nlm_pad, scaled.
extern "C" __global__ void mri_nlm_scale(
    const float* source, float* output, const float* sigmas, float* padded, Volume g)
{
    float scales[COMPONENTS];
    for (int c = 0; c < COMPONENTS; ++c) scales[c] = scale_of(sigmas[c]);
    pad(source, padded, g, scales);
}

// A part of them: slices from z on, rows from y on, columns from x on.
struct Box {
    int z, y, x, slices, rows, columns;
};

// Copy `box` into `memory`; every thread has to call this.
__device__ inline Voxels load(float* memory, const Voxels& from, const Box& box)
{
    const int row = COMPONENTS * box.columns, slice = box.rows * row;
    for (int s = threadIdx.z; s < box.slices; s += blockDim.z)
        for (int r = threadIdx.y; r < box.rows; r += blockDim.y)
            for (int t = threadIdx.x; t < box.columns; t += blockDim.x)
                for (int c = 0; c < COMPONENTS; ++c)
                    memory[s * slice + r * row + c * box.columns + t] =
                        from.at(box.z + s, box.y + r, box.x + t)[c * from.component];
    __syncthreads();
    return {memory, box.z, box.y, box.x, slice, row, box.columns};
}

// The patch around a thread's voxel.
struct Patch {
    float cells[SMALL ? COMPONENTS * CELLS : 1];
    const float* first;
    int slice, row, component;

    __device__ inline Patch(const Voxels& voxels, int z, int y, int x)
        : first(voxels.at(z - PATCH_Z, y - PATCH_Y, x - PATCH_X)),
          slice(voxels.slice), row(voxels.row), component(voxels.component)
    {
#pragma unroll
        for (int k = 0; k < (SMALL ? COMPONENTS * CELLS : 0); ++k)
            cells[k] = first[k / CELLS * component + k % CELLS / (PATCH_ROWS * PATCH_COLUMNS) * slice +
                             k / PATCH_COLUMNS % PATCH_ROWS * row + k % PATCH_COLUMNS];
    }
    __device__ inline float cell(int c, int s, int r, int t) const
    {
        return SMALL ? cells[((c * PATCH_SLICES + s) * PATCH_ROWS + r) * PATCH_COLUMNS + t]
                     : first[c * component + s * slice + r * row + t];
    }
};

// w of the patch and the one whose first cell is `other`, among `voxels`.
__device__ inline float weight_of(
    const Patch& patch, const Voxels& voxels, const float* other, const float (&strengths)[COMPONENTS])
{
    float distance = 0;
#pragma unroll UNROLLED_COMPONENTS
    for (int c = 0; c < COMPONENTS; ++c) {
        float squares = 0;
#pragma unroll UNROLLED_SLICES
        for (int s = 0; s < PATCH_SLICES; ++s)
#pragma unroll UNROLLED_ROWS
            for (int r = 0; r < PATCH_ROWS; ++r)
#pragma unroll
                for (int t = 0; t < PATCH_COLUMNS; ++t) {
                    const float cell = other[c * voxels.component + s * voxels.slice + r * voxels.row + t];
                    const float difference = patch.cell(c, s, r, t) - cell;
                    squares += difference * difference;
                }
        distance += strengths[c] * squares;
    }
    return __expf(-distance);
}

// A thread's voxel, with the values for its weights. Beyond the volume it is the last one again.
struct Voxel {
    int z, y, x;
    bool inside;
    size_t number;
    float strengths[COMPONENTS];
    Sums sums = {};

    __device__ inline Voxel(
        const Volume& g, const float* sigmas, const float* weights, const float* values, int first)
        : z(g.first + blockIdx.z * blockDim.z + threadIdx.z),
          y(blockIdx.y * blockDim.y + threadIdx.y),
          x(blockIdx.x * blockDim.x + threadIdx.x),
          inside(z < g.last && y < g.height && x < g.width)
    {
        z = min(z, g.last - 1);
        y = min(y, g.height - 1);
        x = min(x, g.width - 1);
        number = voxel_number(g, z, y, x);
        for (int c = 0; c < COMPONENTS; ++c) {
            const float sigma = sigma_at(sigmas, number, c);
            strengths[c] = strength / (sigma * sigma);
        }
        if (first > 0) sums = resume(weights, values, number);
    }

    // Add the candidates at some offsets.
    __device__ inline void add_candidates(const Patch& patch, const Voxels& voxels, const Offsets& offsets)
    {
        const int middle = PATCH_Z * voxels.slice + PATCH_Y * voxels.row + PATCH_X;
        for (int dy = offsets.dy; dy < offsets.end; ++dy) {
            const float* other =
                voxels.at(z + offsets.dz - PATCH_Z, y + dy - PATCH_Y, x - search.x - PATCH_X);
            for (int t = 0; t <= 2 * search.x; ++t) {
                const float weight = weight_of(patch, voxels, other + t, strengths);
                sums.weights += weight;
                for (int c = 0; c < COMPONENTS; ++c)
                    add(sums.values[c], weight, other[c * voxels.component + middle + t]);
            }
        }
    }

    __device__ inline void finish(
        const float* sigmas, float* output, float* weights, float* values, int last) const
    {
        if (!inside) return;
        if (last < steps())
            keep(sums, weights, values, number);
        else
            write(sums, sigmas, output, number);
    }
};

// Data of a block for a step: its voxels at all offsets of it, with the apron of their patches. A slab ends with
// the last slice that is needed.
__device__ inline Box box_of(const Volume& g, const Offsets& part)
{
    const int front = g.first + blockIdx.z * blockDim.z;
    return {front + part.dz - PATCH_Z,
            (int)(blockIdx.y * blockDim.y) + part.dy - PATCH_Y,
            (int)(blockIdx.x * blockDim.x) - search.x - PATCH_X,
            min((int)blockDim.z, g.last - front) + 2 * PATCH_Z,
            min((int)blockDim.y, g.height - (int)(blockIdx.y * blockDim.y)) + 2 * PATCH_Y + part.end - part.dy - 1,
            min((int)blockDim.x, g.width - (int)(blockIdx.x * blockDim.x)) + 2 * (PATCH_X + search.x)};
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) mri_nlm_global(
    const float* source, float* output, const float* sigmas, const float* padded, float* weights, float* values,
    Volume g, int first, int last)
{
    Voxel voxel(g, sigmas, weights, values, first);
    const Voxels volume = with_apron(padded, g);
    const Patch patch(volume, voxel.z, voxel.y, voxel.x);
    for (int step = first; step < last; ++step)
        voxel.add_candidates(patch, volume, offsets(step));
    voxel.finish(sigmas, output, weights, values, last);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) mri_nlm_shared(
    const float* source, float* output, const float* sigmas, const float* padded, float* weights, float* values,
    Volume g, int first, int last)
{
    extern __shared__ float memory[];
    Voxel voxel(g, sigmas, weights, values, first);
    const Voxels volume = with_apron(padded, g);
    const Patch patch(volume, voxel.z, voxel.y, voxel.x);
    for (int step = first; step < last; ++step) {
        const Voxels part = load(memory, volume, box_of(g, offsets(step)));
        voxel.add_candidates(patch, part, offsets(step));
        __syncthreads();  // before the next step takes the place of this one
    }
    voxel.finish(sigmas, output, weights, values, last);
}

#if LOCAL
__constant__ int window_radius;

// One step along an axis.
struct Step {
    int z, y, x;
};

// The square of (1 -2 1) along one axis and along another, in units in which noise keeps its variance.
__device__ inline float squared_residual(
    const Mirrored& volume, int z, int y, int x, int c, Step a, Step b)
{
    float total = 4 * volume(z, y, x, c);
#pragma unroll
    for (int p = -1; p <= 1; p += 2) {
        const int zz = z + p * a.z, yy = y + p * a.y, xx = x + p * a.x;
        total -= 2 * (volume(zz, yy, xx, c) + volume(z + p * b.z, y + p * b.y, x + p * b.x, c));
#pragma unroll
        for (int q = -1; q <= 1; q += 2) total += volume(zz + q * b.z, yy + q * b.y, xx + q * b.x, c);
    }
    return total * total / 36;
}

// sigma^2 of Rician noise with this variance and mean square; see mri_sigma.py.
__device__ inline float noise_variance(float variance, float power)
{
    const float signal = 0.11f, background = 0.17f;
    const float dark = variance > signal * power ? (variance / power - signal) / (background - signal) : 0;
    return variance + fminf(dark, 1) * (power / 2 - variance);
}

// Contribution of one voxel to the sums over a window: its square, and squared residuals in the three planes.
struct alignas(16) Squares {
    float power, yx, zx, zy;
};

__device__ inline Squares squares_at(const Mirrored& volume, int z, int y, int x, int c)
{
    const Step along_z = {1, 0, 0}, along_y = {0, 1, 0}, along_x = {0, 0, 1};
    const float value = volume(z, y, x, c);
    Squares squares = {value * value, squared_residual(volume, z, y, x, c, along_y, along_x)};
    if (DIMENSIONS == 3) {
        squares.zx = squared_residual(volume, z, y, x, c, along_z, along_x);
        squares.zy = squared_residual(volume, z, y, x, c, along_z, along_y);
    }
    return squares;
}

// Sigma of each voxel, from the residuals in a window; smaller ones are raised to `least`. The block first
// computes the squares of its voxels, with an apron, into shared memory.
extern "C" __global__ void mri_nlm_sigma(
    const float* source, float* output, const float* least, float* sigmas, Volume g)
{
    extern __shared__ Squares block_squares[];
    const Mirrored volume = {source, g};
    const int radius = window_radius, deep = DIMENSIONS == 3 ? radius : 0;
    const int front = g.first + blockIdx.z * blockDim.z, top = blockIdx.y * blockDim.y;
    const int left = blockIdx.x * blockDim.x;
    const int z = front + threadIdx.z, y = top + threadIdx.y, x = left + threadIdx.x;
    const int rows = blockDim.y + 2 * radius, columns = blockDim.x + 2 * radius;
    const int slices = min((int)blockDim.z, g.last - front) + 2 * deep;
    const float cells = (2 * deep + 1) * (2 * radius + 1) * (2 * radius + 1);
    for (int c = 0; c < COMPONENTS; ++c) {
        for (int s = threadIdx.z; s < slices; s += blockDim.z)
            for (int r = threadIdx.y; r < rows; r += blockDim.y)
                for (int t = threadIdx.x; t < columns; t += blockDim.x)
                    block_squares[(s * rows + r) * columns + t] = squares_at(
                        volume, front - deep + s, top - radius + r, left - radius + t, c);
        __syncthreads();
        if (z < g.last && y < g.height && x < g.width) {
            Squares sum = {};
            for (int s = 0; s <= 2 * deep; ++s)
                for (int r = 0; r <= 2 * radius; ++r)
                    for (int t = 0; t <= 2 * radius; ++t) {
                        const Squares& more =
                            block_squares[((threadIdx.z + s) * rows + threadIdx.y + r) * columns +
                                          threadIdx.x + t];
                        sum.power += more.power;
                        sum.yx += more.yx;
                        sum.zx += more.zx;
                        sum.zy += more.zy;
                    }
            // The least of three is less than each of them is on average.
            const float unbiased = DIMENSIONS == 2 ? 1 : radius == 1 ? 1.30f : 1.14f;
            const float squares = DIMENSIONS == 2 ? sum.yx : fminf(sum.yx, fminf(sum.zx, sum.zy));
            float variance = unbiased * squares / cells;
            if (RICIAN) variance = noise_variance(variance, sum.power / cells);
            sigmas[voxel_number(g, z, y, x) * COMPONENTS + c] = fmaxf(sqrtf(variance), least[c]);
        }
        __syncthreads();  // before the next component takes the place of this one
    }
}

struct Grid {
    int size[3], cell[3];  // nodes, and voxels from node to node, along z, y and x
};
__constant__ Grid grid;

// The nodes before and after a voxel along an axis, and how far it is between them.
struct Place {
    int low, high;
    float part;

    __device__ inline Place(int voxel, int axis)
    {
        const int last = grid.size[axis] - 1;
        const float place = fminf(fmaxf((voxel + 0.5f) / grid.cell[axis] - 0.5f, 0), last);
        low = (int)place;
        high = min(low + 1, last);
        part = place - low;
    }
};

// Sigma of each voxel, linear between nodes; see mri_sigma_map.py.
extern "C" __global__ void mri_nlm_map(
    const float* source, float* output, const float* nodes, float* sigmas, Volume g)
{
    const int z = g.first + blockIdx.z * blockDim.z + threadIdx.z;
    const int y = blockIdx.y * blockDim.y + threadIdx.y, x = blockIdx.x * blockDim.x + threadIdx.x;
    if (z >= g.last || y >= g.height || x >= g.width) return;
    const Place along_z(z, 0), along_y(y, 1), along_x(x, 2);
    for (int c = 0; c < COMPONENTS; ++c) {
        const auto node = [&](int s, int r, int t) {
            return nodes[((c * grid.size[0] + s) * grid.size[1] + r) * grid.size[2] + t];
        };
        const auto row = [&](int s, int r) {
            const float low = node(s, r, along_x.low);
            return low + along_x.part * (node(s, r, along_x.high) - low);
        };
        const auto slice = [&](int s) {
            const float low = row(s, along_y.low);
            return low + along_y.part * (row(s, along_y.high) - low);
        };
        const float low = slice(along_z.low);
        sigmas[voxel_number(g, z, y, x) * COMPONENTS + c] =
            low + along_z.part * (slice(along_z.high) - low);
    }
}
#endif

#ifndef TUNED  // 0 for patches that are too large for it
#define TUNED 1
#endif
#if TUNED
#include "mri_nlm_tuned.cuh"
#endif
