// Sorting with nothing but minima and maxima: no branch, no address, every value in a register.
//
// A merging network takes two sorted lists to one (Batcher 1968). Results that are not read cost nothing,
// since the compiler omits their computation: taking a slice of a list prunes its network.
#ifndef KERNELSCOPE_NETWORKS
#define KERNELSCOPE_NETWORKS
#include "common.cuh"

// Samples that one instruction compares: two of 16 bits from Hopper on, else one. No GPU has minima of
// bytes: there a byte becomes both halves of 16 bits, which keeps the order.
#if SAMPLE_BITS < 32 && __CUDA_ARCH__ >= 900
#define LANES 2
#else
#define LANES 1
#endif
#if SAMPLE_BITS == 32
typedef float Value;
#else
typedef unsigned Value;
#endif

__device__ inline Value minimum(Value a, Value b)
{
#if LANES == 2
    return __vminu2(a, b);
#else
    return min(a, b);
#endif
}

__device__ inline Value maximum(Value a, Value b)
{
#if LANES == 2
    return __vmaxu2(a, b);
#else
    return max(a, b);
#endif
}

// A value whose lanes are a and b, or which is just a.
__device__ inline Value join(Sample a, Sample b)
{
#if LANES == 1
    return a;
#elif SAMPLE_BITS == 8
    return __byte_perm(a, b, 0x4400);
#else
    return a | (unsigned)b << 16;
#endif
}

__device__ inline Sample lane(Value value, int number)
{
#if LANES == 2
    return (Sample)(value >> 16 * number);
#else
    return (Sample)value;
#endif
}

// Values in ascending order.
template <int N>
struct Sorted {
    Value at[N];
};

template <int FIRST, int COUNT, int N>
__device__ inline Sorted<COUNT> slice(const Sorted<N>& list)
{
    static_assert(0 <= FIRST && FIRST + COUNT <= N, "beyond the list");
    Sorted<COUNT> part;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) part.at[i] = list.at[FIRST + i];
    return part;
}

// The rounds of Batcher's odd-even merge of two lists of LENGTH, in which values stand DISTANCE apart. The
// lists lie end to end; OFFSET values are missing from the front of the first, so to speak the smallest.
template <int LENGTH, int DISTANCE, int OFFSET, int N>
__device__ inline void merge_rounds(Sorted<N>& list)
{
    constexpr bool first = DISTANCE == LENGTH;
#pragma unroll
    for (int k = 0; k < (first ? LENGTH : LENGTH - DISTANCE); ++k) {
        const int i = (first ? k : k + (k / DISTANCE + 1) * DISTANCE) - OFFSET;
        if (i >= 0 && i + DISTANCE < N) {
            const Value a = list.at[i], b = list.at[i + DISTANCE];
            list.at[i] = minimum(a, b);
            list.at[i + DISTANCE] = maximum(a, b);
        }
    }
    if constexpr (DISTANCE > 1) merge_rounds<LENGTH, DISTANCE / 2, OFFSET>(list);
}

__host__ __device__ constexpr int next_power_of_two(int n)
{
    return n <= 1 ? 1 : 2 * next_power_of_two((n + 1) / 2);
}

template <int M, int N>
__device__ inline Sorted<M + N> merge(const Sorted<M>& a, const Sorted<N>& b)
{
    constexpr int length = next_power_of_two(M > N ? M : N);
    Sorted<M + N> list;
#pragma unroll
    for (int i = 0; i < M + N; ++i) list.at[i] = i < M ? a.at[i] : b.at[i - M];
    merge_rounds<length, length, length - M>(list);
    return list;
}

template <int N>
__device__ inline Sorted<N> sort(const Value* values)
{
    if constexpr (N == 1) {
        return Sorted<1>{{values[0]}};
    } else {
        return merge(sort<N / 2>(values), sort<N - N / 2>(values + N / 2));
    }
}

// The value of RANK, from 0, among all values of two lists: the smallest that some RANK + 1 of them, taken
// from the fronts, do not exceed.
template <int RANK, int M, int N>
__device__ inline Value select(const Sorted<M>& a, const Sorted<N>& b)
{
    static_assert(RANK < M + N, "beyond the lists");
    constexpr int fewest = RANK + 1 > N ? RANK + 1 - N : 0;  // from a
    constexpr int most = RANK + 1 < M ? RANK + 1 : M;
    Value selected;
#pragma unroll
    for (int i = fewest; i <= most; ++i) {
        const Value largest = i == 0 ? b.at[RANK]
            : i == RANK + 1          ? a.at[RANK]
                                     : maximum(a.at[i - 1], b.at[RANK - i]);
        selected = i == fewest ? largest : minimum(selected, largest);
    }
    return selected;
}

#endif
