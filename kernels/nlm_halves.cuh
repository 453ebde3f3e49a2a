// tuned, for bytes: weights of many pairs of pixels at once as matrix products, on the tensor cores.
//
//   log2 w(i, j) = -D(i, j) = 2 (p_i, p_j) - |p_i|^2 - |p_j|^2      p_i: the cells of i's patch times G
//
// Many pixels i and many candidates j make this a product of two matrices of halves: a row of A has the
// cells of i times 2 G^2, a column of B those of j, and four cells more add |p_i|^2 and |p_j|^2. Powers of
// two of the product are the weights. Rounded to halves they are the matrix A of a second product,
// which adds up weights and samples times weights, as in the attention of neural networks.
//
// Cells are centred, v = (f - 128) / 128, and halves hold them exactly. Only 2 G^2 v is rounded, by up to
// 2^-10 of it and for i alone, and |p_i|^2 is what makes D(i, i) zero. So D is off by up to 2^-10 of
// 2 (p_i, p_i - p_j): where a weight counts, p_j is close to p_i. Weights are off by 2^-11 of each.
#ifndef KERNELSCOPE_NLM_HALVES
#define KERNELSCOPE_NLM_HALVES
#include "common.cuh"

#ifndef CORRECTED
#define CORRECTED 0
#endif
#ifndef PATCH
#define PATCH 7
#endif

__constant__ float halves_profile[PATCH / 2 + 1];  // G^2 along an axis, from the middle outwards
__constant__ float halves_scale;                    // of a squared difference of cells v, for 2^-D
__constant__ float halves_floor;                    // the part of D that is noise

namespace halves {

typedef unsigned Pair;  // two halves

constexpr int HALF = PATCH / 2;
constexpr Pair NEVER = 0x7b53;  // 60000: |p_j|^2 of pixels that are no candidates, so that their weight is 0
constexpr Pair ONES = 0x3c003c00;
constexpr Pair MINUS_ONES = 0xbc00bc00;
constexpr float SHIFT = 12;  // is added to the logarithms of weights, so that small ones are no denormal halves

// Two numbers rounded to halves.
__device__ inline Pair to_pair(float low, float high)
{
    Pair pair;
    asm("{.reg .f16 low, high;\n cvt.rn.f16.f32 low, %1;\n cvt.rn.f16.f32 high, %2;\n"
        "mov.b32 %0, {low, high};}"
        : "=r"(pair)
        : "f"(low), "f"(high));
    return pair;
}

__device__ inline float first_of(Pair pair)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((unsigned short)pair));
    return value;
}

// The products of two pairs.
__device__ inline Pair product(Pair a, Pair b)
{
    Pair result;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(0));
    return result;
}

// A number as the sum of two halves.
__device__ inline Pair split(float value)
{
    const float high = first_of(to_pair(value, 0));
    return to_pair(high, value - high);
}

// The cells v of two samples below bytes 0x64: together they are halves of 1024 + f. v is that / 128 - 9.
__device__ inline Pair centred_pair(unsigned samples)
{
    Pair result;
    asm("fma.rn.f16x2 %0, %1, %2, %3;"
        : "=r"(result)
        : "r"(samples), "r"(0x20002000u), "r"(0xc880c880u));
    return result;
}

__device__ inline Pair centred(unsigned low, unsigned high)
{
    return centred_pair(0x64006400 | low | high << 16);
}

// Without a conversion: behind the exponent of 2^23 a byte is a number already, and all steps are exact.
__device__ inline float centred(Sample sample)
{
    return fmaf(__uint_as_float(0x4b000000 | sample), 1 / 128.0f, -65537);
}

// The same of one of four samples in a word.
__device__ inline float centred_byte(unsigned samples, int byte)
{
    return fmaf(__uint_as_float(__byte_perm(samples, 0x4b000000, 0x7440 | byte)), 1 / 128.0f, -65537);
}

__device__ inline float profile(int cell)
{
    return halves_profile[abs(cell - HALF)];
}

// c += a b for 16 x 16 cells of 16 pixels and 8 candidates.
__device__ inline void multiply(float (&c)[4], const Pair (&a)[4], Pair b0, Pair b1)
{
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}

// 2 to the power of SHIFT - D, or of SHIFT - max(D - halves_floor, 0).
__device__ inline float power_of_two(float exponent)
{
    float power;
    if (CORRECTED) exponent = fminf(exponent, SHIFT);
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
    return power;
}

// 16 candidates, in a thread's part of the matrix B, and v of those of its candidates.
template <int STEPS>
struct Candidates {
    Pair cells[2][2 * STEPS];  // of the first 8, and of the others
    Pair values[2];            // or ones, for the sum of weights: every other column of the second product
};

// The products of two of 16 pixels, threadIdx.x / 4 and the one 8 further, with their own cells as candidates.
template <int STEPS>
__device__ inline float2 own_products(
    const Pair (&pixels)[STEPS][4], const Pair (&cells)[2][2 * STEPS])
{
    const int pixel = threadIdx.x / 4;
    float own[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
        float all[4] = {};
#pragma unroll
        for (int step = 0; step < STEPS; ++step)
            multiply(all, pixels[step], cells[k][2 * step], cells[k][2 * step + 1]);
        own[k] = __shfl_sync(~0u, pixel % 2 ? all[2 * k + 1] : all[2 * k], 4 * pixel + pixel / 2);
    }
    return {own[0], own[1]};
}

// The weights of 16 candidates for COUNT times 16 pixels, as this thread's part of the matrix A of the second
// product.
template <int COUNT, int STEPS, int ALL>
__device__ inline void weigh(Pair (&weights)[COUNT][4], const Pair (&pixels)[ALL][STEPS][4], int tile,
    const Candidates<STEPS>& candidates)
{
    float exponents[COUNT][2][4] = {};
#pragma unroll
    for (int step = 0; step < STEPS; ++step)
#pragma unroll
        for (int i = 0; i < 2 * COUNT; ++i)
            multiply(exponents[i / 2][i % 2], pixels[tile + i / 2][step],
                candidates.cells[i % 2][2 * step], candidates.cells[i % 2][2 * step + 1]);
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const float* two = &exponents[i][k / 2][k % 2 * 2];
            weights[i][k] = to_pair(power_of_two(two[0]), power_of_two(two[1]));
        }
}

// The mean of a pixel from its sums: of v times weights, and of weights.
__device__ inline Sample mean(float values, float weights)
{
    return (Sample)fminf(fmaxf(rintf(128 * __fdividef(values, weights) + 128), 0), SAMPLE_MAX);
}

}  // namespace halves
#endif
