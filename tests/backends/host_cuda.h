// The additions of CUDA to C++ that the kernels run on the host in tests need; see host_kernels.py.
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <type_traits>
#include <vector>

#define __device__
#define __host__
#define __global__
#define __constant__
#define __noinline__
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __shared__ static  // one block at a time

struct Dim {
    unsigned x = 1, y = 1, z = 1;
};
thread_local Dim threadIdx;
Dim blockIdx, blockDim, gridDim;
std::barrier<>* all_threads;
inline void __syncthreads() { all_threads->arrive_and_wait(); }

struct alignas(8) int2 { int x, y; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

typedef struct Texture* cudaTextureObject_t;
template <typename T>
T tex2D(cudaTextureObject_t, float, float) { return T(); }

template <typename A, typename B>
constexpr std::common_type_t<A, B> min(A a, B b)
{
    typedef std::common_type_t<A, B> C;
    return (C)b < (C)a ? (C)b : (C)a;
}
template <typename A, typename B>
constexpr std::common_type_t<A, B> max(A a, B b)
{
    typedef std::common_type_t<A, B> C;
    return (C)a < (C)b ? (C)b : (C)a;
}
using std::abs;

template <typename To, typename From>
inline To bits_as(From from)
{
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}
inline unsigned __float_as_uint(float f) { return bits_as<unsigned>(f); }
inline float __uint_as_float(unsigned u) { return bits_as<float>(u); }
inline float __int_as_float(int i) { return bits_as<float>(i); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
template <typename T>
inline T __ldg(const T* at) { return *at; }
template <typename T>
inline T __ldcs(const T* at) { return *at; }
template <typename T>
inline void __stcs(T* at, T value) { *at = value; }
inline float __expf(float f) { return std::exp(f); }
inline float __fdividef(float a, float b) { return a / b; }
inline int __ffsll(long long n) { return __builtin_ffsll(n); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    return ((unsigned long long)high << 32 | low) >> (shift & 31);
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector)
{
    const unsigned long long bytes = (unsigned long long)b << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned choice = selector >> 4 * i & 15;
        unsigned byte = bytes >> 8 * (choice & 7) & 255;
        if (choice & 8) byte = byte & 128 ? 255 : 0;
        result |= byte << 8 * i;
    }
    return result;
}
inline int __dp2a_lo(int a, int b, int sum)
{
    return sum + (short)a * (signed char)b + (a >> 16) * (signed char)(b >> 8);
}
// How the threads of a warp, or of half a block, meet: these kernels are compiled, but not run.
inline void __syncwarp() { std::abort(); }
template <typename T>
T __shfl_down_sync(unsigned, T, int) { std::abort(); }
inline void bar_sync(unsigned, int) { std::abort(); }
inline void prefetch_global_L2(const void*) {}

// Threads of a block may run side by side.
template <typename T>
T atomicAdd(T* at, T value) { return std::atomic_ref<T>(*at).fetch_add(value); }
inline unsigned atomicMax(unsigned* at, unsigned value)
{
    unsigned old = *at;
    while (old < value && !std::atomic_ref<unsigned>(*at).compare_exchange_weak(old, value)) {}
    return old;
}
inline void __threadfence() {}

// Instructions, named as in PTX; the results come first.
inline void dp4a_u32_s32(int& result, unsigned samples, int weights, int sum)
{
    for (int i = 0; i < 4; ++i)
        sum += (int)(samples >> 8 * i & 255) * (signed char)((unsigned)weights >> 8 * i);
    result = sum;
}

float root_error = 0;  // relative: PTX allows 2^-23 either way
inline void sqrt_approx_ftz_f32(float& result, float f)
{
    result = (float)(std::sqrt((double)f) * (1 + (double)root_error));
}

// 16-bit floats, two to a word. Doubles hold their sums and products, so they are rounded once.
inline double half_of(unsigned bits) { return (float)bits_as<_Float16>((unsigned short)bits); }
inline unsigned to_half(double value) { return bits_as<unsigned short>((_Float16)value); }
template <typename Operation>
inline void in_halves(unsigned& result, Operation operation)
{
    result = to_half(operation(0)) | to_half(operation(16)) << 16;
}
inline double saturated(double value) { return value > 0 ? value < 1 ? value : 1 : 0; }
inline void add_rn_f16x2(unsigned& result, unsigned a, unsigned b)
{
    in_halves(result, [=](int at) { return half_of(a >> at) + half_of(b >> at); });
}
inline void sub_rn_f16x2(unsigned& result, unsigned a, unsigned b)
{
    in_halves(result, [=](int at) { return half_of(a >> at) - half_of(b >> at); });
}
inline void sub_rn_sat_f16x2(unsigned& result, unsigned a, unsigned b)
{
    in_halves(result, [=](int at) { return saturated(half_of(a >> at) - half_of(b >> at)); });
}
inline void fma_rn_f16x2(unsigned& result, unsigned a, unsigned b, unsigned c)
{
    in_halves(result, [=](int at) { return half_of(a >> at) * half_of(b >> at) + half_of(c >> at); });
}
inline void fma_rn_sat_f16x2(unsigned& result, unsigned a, unsigned b, unsigned c)
{
    in_halves(result, [=](int at) {
        return saturated(half_of(a >> at) * half_of(b >> at) + half_of(c >> at));
    });
}
inline void abs_f16x2(unsigned& result, unsigned a) { result = a & 0x7fff7fff; }
inline void cvt_f32_f16(float& low, float& high, unsigned a)
{
    low = half_of(a);
    high = half_of(a >> 16);
}
inline void cvt_rn_f16_f32(unsigned& result, float low, float high)
{
    result = to_half(low) | to_half(high) << 16;
}

// Call `body` for each thread of each block: one after the other, or, where they wait for each other,
// those of a block side by side.
template <typename Body>
void for_threads(const unsigned* dims, bool together, Body body)
{
    gridDim = {dims[0], dims[1], 1};
    blockDim = {dims[2], dims[3], 1};
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
            std::barrier<> gate(blockDim.x * blockDim.y);
            all_threads = &gate;
            std::vector<std::thread> crew;
            for (unsigned y = 0; y < blockDim.y; ++y)
                for (unsigned x = 0; x < blockDim.x; ++x) {
                    const auto one = [=] {
                        threadIdx = {x, y, 0};
                        body();
                    };
                    if (together)
                        crew.emplace_back(one);
                    else
                        one();
                }
            for (auto& thread : crew) thread.join();
        }
}
