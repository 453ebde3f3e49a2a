// Shared by the kernels of volumes: their geometry and their border.
#ifndef KERNELSCOPE_VOLUME
#define KERNELSCOPE_VOLUME

// A volume in device memory: slices of rows of voxels of components, packed. A launch computes the output
// slices first <= z < last. Where only a slab of the volume is there, the source buffer starts at slice
// source_slice, and the output at output_slice.
struct Volume {
    int width, height, depth;  // of the whole volume, in voxels
    int components;
    int first, last;
    int source_slice, output_slice;
};

// The index inside [0, n) that stands for i: the volume is mirrored at its outer border.
__device__ inline int mirrored(int i, int n)
{
    if ((unsigned)i < (unsigned)n) return i;
    i = (i < 0 ? -1 - i : i) % (2 * n);
    return min(i, 2 * n - 1 - i);
}

// The same for a slice that is at most `reach` away from the slices that a launch computes. The last blocks of a launch
// would go on to slices that are not needed and may not be there: they read the last one that is.
__device__ inline int mirrored_slice(const Volume& g, int z, int reach)
{
    return mirrored(min(z, g.last - 1 + reach), g.depth);
}

// The number of a voxel in the output, and in its buffers.
__device__ inline size_t voxel_number(const Volume& g, int z, int y, int x)
{
    return ((size_t)(z - g.output_slice) * g.height + y) * g.width + x;
}

// Where the components of a voxel inside the volume are in the source.
__device__ inline size_t source_offset(const Volume& g, int z, int y, int x)
{
    return (((size_t)(z - g.source_slice) * g.height + y) * g.width + x) * g.components;
}

#endif
