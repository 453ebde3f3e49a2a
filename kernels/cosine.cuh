// The cosine transform of eight numbers, and the opponent colours, rounded as on the CPU: filters/shared/cosine.py.
#ifndef KERNELSCOPE_COSINE
#define KERNELSCOPE_COSINE
#include "common.cuh"
#include "real.cuh"

// cos(4 pi / 16), cos(6 pi / 16), and the difference and the sum of cos(2 pi / 16) and cos(6 pi / 16); those of the
// way back: twice the first, twice cos(2 pi / 16), and twice the difference and the sum.
#define F1 0.70710678f
#define F2 0.38268343f
#define F3 0.54119610f
#define F4 1.30656296f
#define B1 1.41421356f
#define B2 1.84775907f
#define B3 1.08239220f
#define B4 2.61312593f

// The opponent space.
#define GREY 0.57735027f
#define RED_BLUE 0.70710678f
#define GREEN 0.40824829f

// The DCT-II of eight numbers, `STEP` from one to the next, each coefficient times a number of its own: SCALES.
template <int STEP>
__device__ inline void forward(Real* a)
{
    const Real s0 = a[0] + a[7 * STEP], d0 = a[0] - a[7 * STEP];
    const Real s1 = a[STEP] + a[6 * STEP], d1 = a[STEP] - a[6 * STEP];
    const Real s2 = a[2 * STEP] + a[5 * STEP], d2 = a[2 * STEP] - a[5 * STEP];
    const Real s3 = a[3 * STEP] + a[4 * STEP], d3 = a[3 * STEP] - a[4 * STEP];
    const Real p = s0 + s3, q = s1 + s2, r = s0 - s3, t = s1 - s2;
    const Real e = r + t, x = d2 + d3, y = d1 + d2, z = d0 + d1;
    const Real turned = (x - z) * F2;
    const Real u = fused(x, Real{F3}, turned), v = fused(z, Real{F4}, turned);
    const Real m = fused(y, Real{F1}, d0), n = fused(y, Real{-F1}, d0);
    a[0] = p + q;
    a[STEP] = m + v;
    a[2 * STEP] = fused(e, Real{F1}, r);
    a[3 * STEP] = n - u;
    a[4 * STEP] = p - q;
    a[5 * STEP] = n + u;
    a[6 * STEP] = fused(e, Real{-F1}, r);
    a[7 * STEP] = m - v;
}

// Eight times that of which `forward` is.
template <int STEP>
__device__ inline void backward(Real* b)
{
    const Real p = b[0] + b[4 * STEP], q = b[0] - b[4 * STEP], r = b[2 * STEP] + b[6 * STEP];
    const Real t = fused(b[2 * STEP] - b[6 * STEP], Real{B1}, Real{-r.value});
    const Real s0 = p + r, s1 = q + t, s2 = q - t, s3 = p - r;
    const Real m = b[STEP] + b[7 * STEP], n = b[STEP] - b[7 * STEP];
    const Real x = b[5 * STEP] + b[3 * STEP], z = b[5 * STEP] - b[3 * STEP];
    const Real turned = (z + n) * B2;
    const Real d0 = m + x;
    const Real d1 = fused(z, Real{-B4}, turned) - d0;
    const Real d2 = fused(m - x, Real{B1}, Real{-d1.value});
    const Real d3 = fused(n, Real{B3}, Real{-turned.value}) + d2;
    b[0] = s0 + d0;
    b[STEP] = s1 + d1;
    b[2 * STEP] = s2 + d2;
    b[3 * STEP] = s3 - d3;
    b[4 * STEP] = s3 + d3;
    b[5 * STEP] = s2 - d2;
    b[6 * STEP] = s1 - d1;
    b[7 * STEP] = s0 - d0;
}

#endif
