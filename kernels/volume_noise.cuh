// Shared by filters of volumes that remove noise of sigma 1: volumes divided by their sigma, Rician noise made
// Gaussian, and back; app/kernelscope/filters/shared/volume_noise.py and rician.py have the same on the CPU.
//
// The kernels' tables are `nodes`, a map of sigma for each component (one node: the sigma of all voxels), and
// `forward` and `backward`, the transform. Results equal those of the CPU to the last bit.
#ifndef KERNELSCOPE_VOLUME_NOISE
#define KERNELSCOPE_VOLUME_NOISE
#include "real.cuh"
#include "volume.cuh"

struct Grid {
    int size[3], cell[3];  // nodes, and voxels from node to node, along z, y and x
};
__constant__ Grid grid;

struct Transform {
    int forward_last, backward_last;  // entries of the tables; zeros: noise is Gaussian already
    float lowest, offset;             // where `backward` begins, and of the forms beyond both
};
__constant__ Transform transform;

#define TABLE_STEPS 128.0f  // entries from one sigma to the next

// The nodes before and after a voxel along an axis, and how far it is between them.
struct Place {
    int low, high;
    Real part;

    __device__ inline Place(int voxel, int axis)
    {
        const int last = grid.size[axis] - 1;
        const Real half = {0.5f}, cell = {(float)grid.cell[axis]};
        const Real place = (Real{(float)voxel} + half) / cell - half;
        const float inside = fminf(fmaxf(place.value, 0), (float)last);
        low = (int)inside;
        high = min(low + 1, last);
        part = Real{inside} - Real{(float)low};
    }
};

__device__ inline Real between(Real low, Real high, Real part)
{
    return low + part * (high - low);
}

__device__ inline Real sigma_between(const float* nodes, int c, int z, int y, int x)
{
    const Place along_z(z, 0), along_y(y, 1), along_x(x, 2);
    const auto row = [&](int s, int column) {
        const float* line = nodes + (size_t)(c * grid.size[0] + s) * grid.size[1] * grid.size[2] + column;
        return between(
            {line[along_y.low * grid.size[2]]}, {line[along_y.high * grid.size[2]]}, along_y.part);
    };
    const Real low = between(row(along_z.low, along_x.low), row(along_z.high, along_x.low), along_z.part);
    const Real high = between(row(along_z.low, along_x.high), row(along_z.high, along_x.high), along_z.part);
    return between(low, high, along_x.part);
}

__device__ inline Real interpolated(const float* table, float place)
{
    const int low = (int)place;
    return between({table[low]}, {table[low + 1]}, Real{place} - Real{(float)low});
}

// f of a magnitude in sigmas.
__device__ inline Real stabilised(Real magnitude, const float* forward)
{
    if (transform.forward_last == 0) return magnitude;
    const float place = (magnitude * TABLE_STEPS).value;
    if (place < (float)transform.forward_last) return interpolated(forward, place);
    return (magnitude + Real{transform.offset}) - Real{0.25f} / magnitude;
}

// The signal, in sigmas, for a mean of f.
__device__ inline Real restored(Real mean, const float* backward)
{
    if (transform.backward_last == 0) return mean;
    const float place = ((mean - Real{transform.lowest}) * TABLE_STEPS).value;
    if (!(place > 0)) return {0.0f};
    if (place < (float)transform.backward_last)
        return {__fsqrt_rn(interpolated(backward, place).value)};
    const Real far = mean - Real{transform.offset};
    return far - Real{0.25f} / far;
}

// A buffer that has `around` voxels more than the output on each side, and `slices` in front and behind: of each
// slice all components.
template <typename Pointer>
struct Around {
    Pointer cells;
    int around, rows, columns, components, front;

    __device__ inline Around(Pointer cells, const Volume& g, int around, int slices)
        : cells(cells), around(around), rows(g.height + 2 * around), columns(g.width + 2 * around),
          components(g.components), front(g.output_slice - slices)
    {
    }
    __device__ inline Around(Pointer cells, const Volume& g, int around) : Around(cells, g, around, around) {}

    // Row y of slice z; its voxel 0 is column 0 of the volume.
    __device__ inline Pointer row(int z, int c, int y) const
    {
        return cells + (((size_t)(z - front) * components + c) * rows + y + around) * columns + around;
    }
};

// Write the volume and `margin` voxels around it, and `slices` in front and behind, mirrored and stabilised.
__device__ inline void extend_stabilised(
    const float* source, const float* nodes, const float* forward, float* extended, const Volume& g, int margin,
    int slices)
{
    const Around<float*> to(extended, g, margin, slices);
    const int first_y = (int)(blockIdx.y * blockDim.y + threadIdx.y) - margin;
    const int first_x = (int)(blockIdx.x * blockDim.x + threadIdx.x) - margin;
    for (int z = g.first - slices + (int)(blockIdx.z * blockDim.z + threadIdx.z); z < g.last + slices;
         z += gridDim.z * blockDim.z)
        for (int y = first_y; y < g.height + margin; y += gridDim.y * blockDim.y)
            for (int x = first_x; x < g.width + margin; x += gridDim.x * blockDim.x) {
                const int zz = mirrored(z, g.depth), yy = mirrored(y, g.height), xx = mirrored(x, g.width);
                for (int c = 0; c < g.components; ++c) {
                    const Real voxel = {source[source_offset(g, zz, yy, xx) + c]};
                    to.row(z, c, y)[x] =
                        stabilised(voxel / sigma_between(nodes, c, zz, yy, xx), forward).value;
                }
            }
}

// Write the result at a thread's voxel: `filtered`, whose noise was 1, in the volume's unit.
__device__ inline void restore(
    float* output, const float* nodes, const float* backward, const float* filtered, const Volume& g)
{
    const Around<const float*> from(filtered, g, 0);
    const int z = g.first + blockIdx.z * blockDim.z + threadIdx.z;
    const int y = blockIdx.y * blockDim.y + threadIdx.y, x = blockIdx.x * blockDim.x + threadIdx.x;
    if (z >= g.last || y >= g.height || x >= g.width) return;
    for (int c = 0; c < g.components; ++c) {
        const Real value = restored({from.row(z, c, y)[x]}, backward);
        output[voxel_number(g, z, y, x) * g.components + c] =
            (value * sigma_between(nodes, c, z, y, x)).value;
    }
}

// Write the source itself at a thread's voxel: no noise is removed.
__device__ inline void copy_source(const float* source, float* output, const Volume& g)
{
    const int z = g.first + blockIdx.z * blockDim.z + threadIdx.z;
    const int y = blockIdx.y * blockDim.y + threadIdx.y, x = blockIdx.x * blockDim.x + threadIdx.x;
    if (z >= g.last || y >= g.height || x >= g.width) return;
    for (int c = 0; c < g.components; ++c)
        output[voxel_number(g, z, y, x) * g.components + c] = source[source_offset(g, z, y, x) + c];
}

// ---- The orthonormal DCT-II of four numbers ----

#define DCT_C1 0.65328148f  // cos(pi / 8) / sqrt(2)
#define DCT_C3 0.27059805f  // sin(pi / 8) / sqrt(2)

// `step` from one number to the next.
template <int STEP>
__device__ inline void forward_dct(Real* a)
{
    const Real s0 = a[0] + a[3 * STEP], s1 = a[STEP] + a[2 * STEP];
    const Real d0 = a[0] - a[3 * STEP], d1 = a[STEP] - a[2 * STEP];
    a[0] = (s0 + s1) * 0.5f;
    a[STEP] = d0 * DCT_C1 + d1 * DCT_C3;
    a[2 * STEP] = (s0 - s1) * 0.5f;
    a[3 * STEP] = d0 * DCT_C3 - d1 * DCT_C1;
}

template <int STEP>
__device__ inline void backward_dct(Real* b)
{
    const Real p = (b[0] + b[2 * STEP]) * 0.5f, q = (b[0] - b[2 * STEP]) * 0.5f;
    const Real r = b[STEP] * DCT_C1 + b[3 * STEP] * DCT_C3, t = b[STEP] * DCT_C3 - b[3 * STEP] * DCT_C1;
    b[0] = p + r;
    b[STEP] = q + t;
    b[2 * STEP] = q - t;
    b[3 * STEP] = p - r;
}

#endif
