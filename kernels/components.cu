// Volumes of one head, each an array of its own, as the components of one volume; and back.
//
//   put:   whole(i, c) = part(i)        take:  part(i) = whole(i, c)        for all voxels i
//   peak:  max over all i of |whole(i, c)|
//
// Filters of volumes read all components of a voxel side by side, as floats; files have them apart, and in types of
// their own.
//
// Launch: any number of blocks, of up to 1024 threads. 1 read, and but for peak 1 write, a voxel.
#ifndef SAMPLE  // type of a part
#define SAMPLE float
#endif

extern "C" __global__ void put(const SAMPLE* part, float* whole, unsigned int count, unsigned int components)
{
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        whole[i * components] = part[i];
}

extern "C" __global__ void take(const float* whole, float* part, unsigned int count, unsigned int components)
{
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        part[i] = whole[i * components];
}

// `most` begins as 0. The bits of floats that are not negative are in the order of the numbers.
extern "C" __global__ void peak(const float* whole, unsigned int* most, unsigned int count, unsigned int components)
{
    float largest = 0;
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        largest = fmaxf(largest, fabsf(whole[i * components]));
    __shared__ unsigned int of_block;
    if (threadIdx.x == 0) of_block = 0;
    __syncthreads();
    atomicMax(&of_block, __float_as_uint(largest));
    __syncthreads();
    if (threadIdx.x == 0) atomicMax(most, of_block);
}
