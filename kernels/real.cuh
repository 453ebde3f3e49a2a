// A float whose products, sums and quotients are rounded one by one, as on the CPU: only `fused` rounds once.
#ifndef KERNELSCOPE_REAL
#define KERNELSCOPE_REAL

struct Real {
    float value;
};
__device__ inline Real operator+(Real a, Real b) { return {__fadd_rn(a.value, b.value)}; }
__device__ inline Real operator-(Real a, Real b) { return {__fsub_rn(a.value, b.value)}; }
__device__ inline Real operator*(Real a, Real b) { return {__fmul_rn(a.value, b.value)}; }
__device__ inline Real operator*(Real a, float b) { return {__fmul_rn(a.value, b)}; }
__device__ inline Real operator/(Real a, Real b) { return {__fdiv_rn(a.value, b.value)}; }
// a * b + c
__device__ inline Real fused(Real a, Real b, Real c) { return {__fmaf_rn(a.value, b.value, c.value)}; }

// a / b as __fdiv_rn rounds it, by the same steps. That has others as well for numbers near the ends of the range: here
// b has to lie between 2^-100 and 2^100, and a / b at 2^-100 or above.
__device__ inline Real near_quotient(Real a, Real b)
{
#ifdef __CUDA_ARCH__
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(b.value));
    inverse = __fmaf_rn(__fmaf_rn(-b.value, inverse, 1.0f), inverse, inverse);
    float quotient = __fmul_rn(a.value, inverse);
    quotient = __fmaf_rn(__fmaf_rn(-b.value, quotient, a.value), inverse, quotient);
    return {__fmaf_rn(__fmaf_rn(-b.value, quotient, a.value), inverse, quotient)};
#else
    return a / b;
#endif
}

#endif
