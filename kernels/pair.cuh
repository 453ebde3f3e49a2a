// Two small whole numbers in one register, for the level *tuned*.
//
// They are 16-bit floats: one instruction calculates with both, and opposites and magnitudes cost
// nothing. In units of 2^-24, the smallest of these floats, the bits of one are the whole number itself up
// to 2047. So a byte below a byte of zeros is such a float without being converted, and results come
// out as whole numbers again. Sums are exact up to 2048.
#ifndef KERNELSCOPE_PAIR
#define KERNELSCOPE_PAIR

struct Pair {
    unsigned bits;
};

__device__ constexpr Pair both(unsigned number) { return Pair{number * 0x10001}; }

__device__ inline Pair operator+(Pair a, Pair b)
{
    Pair sum;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum.bits) : "r"(a.bits), "r"(b.bits));
    return sum;
}

__device__ inline Pair operator-(Pair a, Pair b)
{
    Pair difference;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(difference.bits) : "r"(a.bits), "r"(b.bits));
    return difference;
}

// a - b, or 0 if that is negative: sums are saturated to the range of floats from 0 to 1, with 1 far above it.
__device__ inline Pair less(Pair a, Pair b)
{
    Pair difference;
    asm("sub.rn.sat.f16x2 %0, %1, %2;" : "=r"(difference.bits) : "r"(a.bits), "r"(b.bits));
    return difference;
}

// A factor: a 16-bit float that is not in units of 2^-24.
enum class Factor : unsigned {
    MINUS_EIGHT = 0xc800,
    MINUS_FOUR = 0xc400,
    MINUS_TWO = 0xc000,
    MINUS_ONE = 0xbc00,
    NINTH = 0x2f1c,
    HALF = 0x3800,
    TWO = 0x4000
};

// factor * a + b
__device__ inline Pair scaled(Factor factor, Pair a, Pair b)
{
    Pair result;
    asm("fma.rn.f16x2 %0, %1, %2, %3;"
        : "=r"(result.bits)
        : "r"((unsigned)factor * 0x10001), "r"(a.bits), "r"(b.bits));
    return result;
}

// a + max(0, factor * a): the magnitude by MINUS_TWO; the number or 0 if it is negative by MINUS_ONE.
__device__ inline Pair folded(Factor factor, Pair a)
{
    Pair part;
    asm("fma.rn.sat.f16x2 %0, %1, %2, %3;"
        : "=r"(part.bits)
        : "r"((unsigned)factor * 0x10001), "r"(a.bits), "r"(0));
    return a + part;
}

__device__ inline Pair magnitude(Pair a)
{
    Pair result;
    asm("abs.f16x2 %0, %1;" : "=r"(result.bits) : "r"(a.bits));
    return result;
}

__device__ inline Pair max(Pair a, Pair b) { return a + less(b, a); }

// Both numbers as floats, in units of 2^-24 still, and back, rounded to the nearest, ties to even.
__device__ inline float2 to_floats(Pair a)
{
    float2 floats;
    asm("{.reg .f16 low, high;\n mov.b32 {low, high}, %2;\n"
        "cvt.f32.f16 %0, low;\n cvt.f32.f16 %1, high;}"
        : "=f"(floats.x), "=f"(floats.y)
        : "r"(a.bits));
    return floats;
}

__device__ inline Pair to_pair(float2 floats)
{
    Pair result;
    asm("{.reg .f16 low, high;\n cvt.rn.f16.f32 low, %1;\n cvt.rn.f16.f32 high, %2;\n"
        "mov.b32 %0, {low, high};}"
        : "=r"(result.bits)
        : "f"(floats.x), "f"(floats.y));
    return result;
}

#endif
