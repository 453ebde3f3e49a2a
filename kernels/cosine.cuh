// The cosine transform of eight numbers, and the opponent colours, rounded as on the CPU: filters/shared/cosine.py.
#ifndef KERNELSCOPE_COSINE
#define KERNELSCOPE_COSINE
#include "common.cuh"
#include "real.cuh"

// cos(k pi / 16) / 2, and the factor of the mean.
#define C1 0.49039264f
#define C2 0.46193977f
#define C3 0.41573481f
#define C5 0.27778512f
#define C6 0.19134172f
#define C7 0.09754516f
#define C4 0.35355339f

// The opponent space.
#define GREY 0.57735027f
#define RED_BLUE 0.70710678f
#define GREEN 0.40824829f

// The orthonormal DCT-II of eight numbers, `step` from one to the next.
template <int STEP>
__device__ inline void forward(Real* a)
{
    const Real s0 = a[0] + a[7 * STEP], d0 = a[0] - a[7 * STEP];
    const Real s1 = a[STEP] + a[6 * STEP], d1 = a[STEP] - a[6 * STEP];
    const Real s2 = a[2 * STEP] + a[5 * STEP], d2 = a[2 * STEP] - a[5 * STEP];
    const Real s3 = a[3 * STEP] + a[4 * STEP], d3 = a[3 * STEP] - a[4 * STEP];
    const Real p = s0 + s3, q = s1 + s2, r = s0 - s3, t = s1 - s2;
    a[0] = (p + q) * C4;
    a[STEP] = d0 * C1 + d1 * C3 + d2 * C5 + d3 * C7;
    a[2 * STEP] = r * C2 + t * C6;
    a[3 * STEP] = d0 * C3 - d1 * C7 - d2 * C1 - d3 * C5;
    a[4 * STEP] = (p - q) * C4;
    a[5 * STEP] = d0 * C5 - d1 * C1 + d2 * C7 + d3 * C3;
    a[6 * STEP] = r * C6 - t * C2;
    a[7 * STEP] = d0 * C7 - d1 * C5 + d2 * C3 - d3 * C1;
}

// What `forward` is of.
template <int STEP>
__device__ inline void backward(Real* b)
{
    const Real p = (b[0] + b[4 * STEP]) * C4, q = (b[0] - b[4 * STEP]) * C4;
    const Real r = b[2 * STEP] * C2 + b[6 * STEP] * C6, t = b[2 * STEP] * C6 - b[6 * STEP] * C2;
    const Real s0 = p + r, s1 = q + t, s2 = q - t, s3 = p - r;
    const Real b1 = b[STEP], b3 = b[3 * STEP], b5 = b[5 * STEP], b7 = b[7 * STEP];
    const Real d0 = b1 * C1 + b3 * C3 + b5 * C5 + b7 * C7;
    const Real d1 = b1 * C3 - b3 * C7 - b5 * C1 - b7 * C5;
    const Real d2 = b1 * C5 - b3 * C1 + b5 * C7 + b7 * C3;
    const Real d3 = b1 * C7 - b3 * C5 + b5 * C3 - b7 * C1;
    b[0] = s0 + d0;
    b[STEP] = s1 + d1;
    b[2 * STEP] = s2 + d2;
    b[3 * STEP] = s3 + d3;
    b[4 * STEP] = s3 - d3;
    b[5 * STEP] = s2 - d2;
    b[6 * STEP] = s1 - d1;
    b[7 * STEP] = s0 - d0;
}

#endif
