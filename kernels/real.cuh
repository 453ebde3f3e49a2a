// A float whose products, sums and quotients are rounded one by one, as on the CPU: no multiply-add rounds once.
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

#endif
