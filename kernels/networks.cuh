// Sorting with nothing but minima and maxima: no branch, no address, every value in a register.
//
// A merging network takes two sorted lists to one by exchanges: of two values, one position gets the smaller
// and another the larger (Batcher 1968). Which exchanges a part of the results depends on is known when
// a kernel is compiled, and also which of them are read on one side only.
//
// Minima and maxima have half of the rate of additions, on a unit of their own. Additions make up the rest
// of an exchange: a + b less its minimum is its maximum. SHARE of 100 exchanges that are read on both sides are
// computed so, spread evenly, so that both units are busy.
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

// The percentage of exchanges to compute by additions, and whether all samples are whole numbers of at most
// 11 bits with zeros above them: then 16-bit floats do all of an exchange.
#ifndef ADDED_EXCHANGES
#define ADDED_EXCHANGES 0
#endif
#ifndef SMALL_NUMBERS
#define SMALL_NUMBERS 0
#endif

// Of the values at two positions, the smaller one goes to `low`, the larger one to `high`.
struct Exchange {
    short low, high;
    bool keeps_low, keeps_high;  // what of the results is read
    bool added;
};

// An odd-even merge of two sorted lists that lie end to end, M and N values: its exchanges, and the positions
// of the results in order.
template <int M, int N>
struct Network {
    static constexpr int MOST = (M + N) * 5;
    Exchange exchanges[MOST];
    int count;
    short order[M + N];

    // Merge the lists at positions a and b, of m and n values: first those at even places, then those at
    // odd ones, then neighbours.
    __host__ __device__ constexpr void merge(
        const short* a, int m, const short* b, int n, short* merged)
    {
        if (m == 0 || n == 0) {
            for (int i = 0; i < m + n; ++i) merged[i] = m == 0 ? b[i] : a[i];
        } else if (m == 1 && n == 1) {
            merged[0] = a[0];
            merged[1] = b[0];
            exchange(a[0], b[0]);
        } else {
            short halves[2][2][(M + N) / 2 + 1]{}, results[2][M + N]{};
            for (int i = 0; i < m; ++i) halves[i % 2][0][i / 2] = a[i];
            for (int i = 0; i < n; ++i) halves[i % 2][1][i / 2] = b[i];
            for (int odd = 0; odd < 2; ++odd)
                merge(halves[odd][0], (m + 1 - odd) / 2, halves[odd][1], (n + 1 - odd) / 2,
                    results[odd]);
            const int evens = (m + 1) / 2 + (n + 1) / 2, odds = m / 2 + n / 2;
            int made = 0;
            merged[made++] = results[0][0];
            int even = 1, odd = 0;
            while (even < evens && odd < odds) {
                const short low = results[1][odd++], high = results[0][even++];
                exchange(low, high);
                merged[made++] = low;
                merged[made++] = high;
            }
            while (odd < odds) merged[made++] = results[1][odd++];
            while (even < evens) merged[made++] = results[0][even++];
        }
    }

    __host__ __device__ constexpr void exchange(short low, short high)
    {
        exchanges[count].low = low;
        exchanges[count++].high = high;
    }

    // Keep the exchanges that the results `first` to `first + wanted` depend on.
    __host__ __device__ constexpr void prune(int first, int wanted)
    {
        bool read[M + N]{};
        for (int i = first; i < first + wanted; ++i) read[order[i]] = true;
        for (int k = count - 1; k >= 0; --k) {
            Exchange& exchange = exchanges[k];
            exchange.keeps_low = read[exchange.low];
            exchange.keeps_high = read[exchange.high];
            if (exchange.keeps_low || exchange.keeps_high)
                read[exchange.low] = read[exchange.high] = true;
        }
        int kept = 0, share = 50;  // so that a single exchange is rounded
        for (int k = 0; k < count; ++k) {
            Exchange exchange = exchanges[k];
            if (!exchange.keeps_low && !exchange.keeps_high) continue;
            if (exchange.keeps_low && exchange.keeps_high) share += ADDED_EXCHANGES;
            exchange.added = share >= 100;
            if (exchange.added) share -= 100;
            exchanges[kept++] = exchange;
        }
        count = kept;
    }
};

template <int FIRST, int COUNT, int M, int N>
__host__ __device__ constexpr Network<M, N> network()
{
    Network<M, N> made{};
    short a[M]{}, b[N]{};
    for (int i = 0; i < M; ++i) a[i] = i;
    for (int i = 0; i < N; ++i) b[i] = M + i;
    made.merge(a, M, b, N, made.order);
    made.prune(FIRST, COUNT);
    return made;
}

#if SMALL_NUMBERS
// The whole number i, in units of 2^-24, is the 16-bit float whose bits are i: see pair.cuh. What the larger
// of two has more than the smaller is their difference, or 0 where that is negative.
__device__ inline void exchange_by_additions(Value& low, Value& high)
{
    unsigned more, least, most;
    asm("sub.rn.sat.f16x2 %0, %1, %2;" : "=r"(more) : "r"(low), "r"(high));
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(least) : "r"(low), "r"(more));
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(most) : "r"(high), "r"(more));
    low = least;
    high = most;
}
#else
// Factors out of memory, as the compiler would make these multiplications minima again.
__constant__ unsigned plus_minus_one[2] = {1, ~0u};

__device__ inline unsigned bits_of(float value) { return __float_as_uint(value); }
__device__ inline unsigned bits_of(unsigned value) { return value; }
__device__ inline void set_bits(float& value, unsigned bits) { value = __uint_as_float(bits); }
__device__ inline void set_bits(unsigned& value, unsigned bits) { value = bits; }

// Bits are added as one whole number, whatever they stand for: those of the sum less those of one value are
// those of the other.
__device__ inline void exchange_by_additions(Value& low, Value& high)
{
    const unsigned sum = bits_of(low) * plus_minus_one[0] + bits_of(high);
    low = minimum(low, high);
    set_bits(high, bits_of(low) * plus_minus_one[1] + sum);
}
#endif

// Leave the smaller of two values in `low`, the larger one in `high`.
__device__ inline void exchange(Value& low, Value& high, bool by_additions)
{
    if (by_additions) {
        exchange_by_additions(low, high);
    } else {
        const Value least = minimum(low, high), most = maximum(low, high);
        low = least;
        high = most;
    }
}

// The COUNT values from rank FIRST on of two sorted lists.
template <int FIRST, int COUNT, int M, int N>
__device__ inline Sorted<COUNT> merge_part(const Sorted<M>& a, const Sorted<N>& b)
{
    constexpr auto wanted = network<FIRST, COUNT, M, N>();
    Value list[M + N];
#pragma unroll
    for (int i = 0; i < M + N; ++i) list[i] = i < M ? a.at[i] : b.at[i - M];
#pragma unroll
    for (int k = 0; k < wanted.count; ++k)
        exchange(list[wanted.exchanges[k].low], list[wanted.exchanges[k].high], wanted.exchanges[k].added);
    Sorted<COUNT> part;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) part.at[i] = list[wanted.order[FIRST + i]];
    return part;
}

template <int M, int N>
__device__ inline Sorted<M + N> merge(const Sorted<M>& a, const Sorted<N>& b)
{
    return merge_part<0, M + N>(a, b);
}

__host__ __device__ constexpr int next_power_of_two(int n)
{
    return n <= 1 ? 1 : 2 * next_power_of_two((n + 1) / 2);
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
