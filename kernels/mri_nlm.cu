// Non-local means of volumes with several components (T1w, T2w, PDw, ...), for magnitude MRI:
//
//   w(i, j) = exp(-D(i, j))     D(i, j) = 1 / C sum over c of (mean over k of (u(i+k) - u(j+k))^2) / h^2
//   Gaussian noise: g(i) = m1          Rician noise: g(i) = sqrt(max(m2 - 2 sigma^2, 0))
//
// for each component u, with mn = sum over j of w u(j)^n / sum over j of w. k runs over a patch, j over the search
// window around i: cubes, or squares of a slice. h^2 = 2 beta sigma^2; sigma, the standard deviation of the noise,
// is known for each component or, LOCAL, for each voxel i. The volume is mirrored at its border.
//
// The offsets j - i come in steps: ROWS rows along x that lie side by side in a slice. A launch can stop after any
// step; then scratch holds the sums.
//
// level   what it shows                                                                u(i)       u(j)
// global  the formula, a thread a voxel                                                global     global
// shared  a block keeps its voxels, and those a step needs, with aprons                shared     shared
// tuned   squared differences shared by all patches that have them: mri_nlm_tuned.cuh  registers  shared, registers
// sigma   LOCAL only, first of two launches: the noise in a window around each voxel   global, shared
// map     LOCAL only, instead of sigma: the noise between the nodes of a map           -
//
// Launch: blocks of 32 x 4 x 2 threads over width, height and slices (smaller where shared memory is short).
// A voxel takes for each offset 3 operations a cell of the patch (27 for d = 1) and component, and an exponential;
// twice as many reads of shared memory (global: of cache); at best one read from and one write to device memory.
#include "volume.cuh"

#ifndef COMPONENTS
#define COMPONENTS 1
#endif
#ifndef DIMENSIONS  // 3, or 2: patches and windows within a slice
#define DIMENSIONS 3
#endif
#ifndef PATCH_RADIUS
#define PATCH_RADIUS 1
#endif
#ifndef RICIAN
#define RICIAN 1
#endif
#ifndef LOCAL  // whether each voxel has its own sigma
#define LOCAL 0
#endif
#define SLICE_RADIUS (DIMENSIONS == 3 ? PATCH_RADIUS : 0)  // of a patch, across slices

struct Search {
    int radius;
    int rows;  // rows of offsets in a step, at most
};
__constant__ Search search;
__constant__ float strength;  // 1 / (2 beta C cells): times squares / sigma^2, what a component adds to D

// The offsets of a step: in slice dz, rows dy <= row < end, all dx.
struct Offsets {
    int dz, dy, end;
};

__device__ inline int parts_of_a_slice()
{
    return (2 * search.radius + search.rows) / search.rows;
}

__device__ inline int steps()
{
    return parts_of_a_slice() * (DIMENSIONS == 3 ? 2 * search.radius + 1 : 1);
}

__device__ inline Offsets offsets(int step)
{
    const int dz = DIMENSIONS == 3 ? step / parts_of_a_slice() - search.radius : 0;
    const int dy = step % parts_of_a_slice() * search.rows - search.radius;
    return {dz, dy, min(dy + search.rows, search.radius + 1)};
}

// How many slices a result depends on, above and below.
__device__ inline int reach()
{
    return DIMENSIONS == 3 ? search.radius + PATCH_RADIUS : 0;
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

// Voxels in shared memory: slices from z on, rows from y on, columns from x on.
struct Box {
    const float* voxels;
    int z, y, x, slices, rows, columns;

    __device__ inline float operator()(int s, int r, int t, int c) const
    {
        return voxels[(((s - z) * rows + r - y) * columns + t - x) * COMPONENTS + c];
    }
    __device__ inline int size() const { return slices * rows * columns * COMPONENTS; }
};

// Fill `box` in `memory`; every thread has to call this.
__device__ inline Box load(float* memory, const float* source, const Volume& g, Box box)
{
    for (int s = threadIdx.z; s < box.slices; s += blockDim.z) {
        const int z = mirrored_slice(g, box.z + s, reach());
        for (int r = threadIdx.y; r < box.rows; r += blockDim.y) {
            const int y = mirrored(box.y + r, g.height);
            for (int t = threadIdx.x; t < box.columns; t += blockDim.x)
                for (int c = 0; c < COMPONENTS; ++c)
                    memory[((s * box.rows + r) * box.columns + t) * COMPONENTS + c] =
                        source[source_offset(g, z, y, mirrored(box.x + t, g.width)) + c];
        }
    }
    __syncthreads();
    box.voxels = memory;
    return box;
}

// Add candidate j = (z + dz, y + dy, x + dx) of the voxel i = (z, y, x): its patch is read from `own`, that of j from
// `others`.
template <typename Voxels>
__device__ inline void compare(
    Sums& sums, const Voxels& own, const Voxels& others, const float (&strengths)[COMPONENTS],
    int z, int y, int x, int dz, int dy, int dx)
{
    float distance = 0;
    for (int c = 0; c < COMPONENTS; ++c) {
        float squares = 0;
        for (int s = z - SLICE_RADIUS; s <= z + SLICE_RADIUS; ++s)
            for (int r = y - PATCH_RADIUS; r <= y + PATCH_RADIUS; ++r)
#pragma unroll
                for (int t = x - PATCH_RADIUS; t <= x + PATCH_RADIUS; ++t) {
                    const float difference = own(s, r, t, c) - others(s + dz, r + dy, t + dx, c);
                    squares += difference * difference;
                }
        distance += strengths[c] * squares;
    }
    const float weight = __expf(-distance);
    sums.weights += weight;
    for (int c = 0; c < COMPONENTS; ++c)
        add(sums.values[c], weight, others(z + dz, y + dy, x + dx, c));
}

// A thread's voxel, with what it needs for its weights.
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
          inside(z < g.last && y < g.height && x < g.width),
          number(voxel_number(g, z, y, x))
    {
        if (!inside) return;
        for (int c = 0; c < COMPONENTS; ++c) {
            const float sigma = sigma_at(sigmas, number, c);
            strengths[c] = strength / (sigma * sigma);
        }
        if (first > 0) sums = resume(weights, values, number);
    }

    template <typename Voxels>
    __device__ inline void compare_with(
        const Voxels& own, const Voxels& others, const Offsets& offsets)
    {
        if (!inside) return;
        for (int dy = offsets.dy; dy < offsets.end; ++dy)
            for (int dx = -search.radius; dx <= search.radius; ++dx)
                compare(sums, own, others, strengths, z, y, x, offsets.dz, dy, dx);
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

extern "C" __global__ void mri_nlm_global(
    const float* source, float* output, const float* sigmas, float* weights, float* values,
    Volume g, int first, int last)
{
    Voxel voxel(g, sigmas, weights, values, first);
    const Mirrored volume = {source, g};
    for (int step = first; step < last; ++step)
        voxel.compare_with(volume, volume, offsets(step));
    voxel.finish(sigmas, output, weights, values, last);
}

extern "C" __global__ void mri_nlm_shared(
    const float* source, float* output, const float* sigmas, float* weights, float* values,
    Volume g, int first, int last)
{
    extern __shared__ float memory[];
    Voxel voxel(g, sigmas, weights, values, first);
    // The voxels of the block with the apron of their patches.
    Box box = {nullptr,
               voxel.z - (int)threadIdx.z - SLICE_RADIUS,
               voxel.y - (int)threadIdx.y - PATCH_RADIUS,
               voxel.x - (int)threadIdx.x - PATCH_RADIUS,
               (int)blockDim.z + 2 * SLICE_RADIUS,
               (int)blockDim.y + 2 * PATCH_RADIUS,
               (int)blockDim.x + 2 * PATCH_RADIUS};
    const Box own = load(memory, source, g, box);
    for (int step = first; step < last; ++step) {
        const Offsets part = offsets(step);
        box = own;
        box.z += part.dz;
        box.y += part.dy;
        box.x -= search.radius;
        box.rows += part.end - part.dy - 1;
        box.columns += 2 * search.radius;
        const Box others = load(memory + own.size(), source, g, box);
        voxel.compare_with(own, others, part);
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

// What one voxel adds to the sums over a window: its square, and squared residuals in the three planes.
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

#include "mri_nlm_tuned.cuh"
