// Numbers as halves, two to a register, and products of matrices of them on the tensor cores.
#ifndef KERNELSCOPE_HALVES
#define KERNELSCOPE_HALVES

namespace halves {

typedef unsigned Pair;  // two halves

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

// A number as the sum of two halves.
__device__ inline Pair split(float value)
{
    const float high = first_of(to_pair(value, 0));
    return to_pair(high, value - high);
}

// The sum of a pair.
__device__ inline float sum_of(Pair pair)
{
    return first_of(pair) + first_of(pair >> 16);
}

// c += a b, of 16 x 8, 16 x 16 and 16 x 8: a lane has pairs of row lane / 4 of a and of 8 rows below, pairs of column
// lane / 4 of b, and two cells each of these rows of c.
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

}  // namespace halves

#endif
