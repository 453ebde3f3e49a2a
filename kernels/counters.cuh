// Numbers of 32 things at once, as bits in words: bit j of word i is bit i of the number of thing j. One logic
// instruction of three operands finds a bit of all 32 sums, another one all carries.
#ifndef KERNELSCOPE_COUNTERS
#define KERNELSCOPE_COUNTERS

// The bits that a number up to n has.
__host__ __device__ constexpr int bits_of(int n) { return n == 0 ? 0 : 1 + bits_of(n / 2); }

template <int BITS>
struct Counters {
    unsigned at[BITS];  // negative numbers as complements of two
};

// For each bit of a, b and c that of TABLE, numbered by 4 a + 2 b + c. The compiler finds some of these by
// itself, but not all.
template <int TABLE>
__device__ inline unsigned combine(unsigned a, unsigned b, unsigned c)
{
#ifdef __CUDA_ARCH__
    unsigned result;
    asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(result) : "r"(a), "r"(b), "r"(c), "n"(TABLE));
    return result;
#else
    unsigned result = 0;
    for (int i = 0; i < 8; ++i)
        if (TABLE >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return result;
#endif
}

constexpr int OF_A = 0xf0, OF_B = 0xcc, OF_C = 0xaa, OF_NOT_A = 0x0f;  // tables of one of them

// a + b + c = 2 carry + sum; a - b - c = sum - 2 borrow
__device__ inline unsigned sum_of(unsigned a, unsigned b, unsigned c)
{
    return combine<OF_A ^ OF_B ^ OF_C>(a, b, c);
}

__device__ inline unsigned carry_of(unsigned a, unsigned b, unsigned c)
{
    return combine<(OF_A & OF_B) | (OF_A & OF_C) | (OF_B & OF_C)>(a, b, c);
}

__device__ inline unsigned borrow_of(unsigned a, unsigned b, unsigned c)
{
    return combine<(OF_NOT_A & OF_B) | (OF_NOT_A & OF_C) | (OF_B & OF_C)>(a, b, c);
}

// The same number for all things.
template <int BITS>
__device__ inline void set(Counters<BITS>& counters, int number)
{
#pragma unroll
    for (int i = 0; i < BITS; ++i) counters.at[i] = number >> i & 1 ? ~0u : 0;
}

// How many of N words have a one, for each bit: two halves are counted, the last word is the carry into
// their sum.
template <int N>
__device__ inline Counters<bits_of(N)> count(const unsigned* words)
{
    Counters<bits_of(N)> sum;
    if constexpr (N == 1) {
        sum.at[0] = words[0];
    } else if constexpr (N == 2) {
        sum.at[0] = words[0] ^ words[1];
        sum.at[1] = words[0] & words[1];
    } else {
        constexpr int half = N / 2, rest = N - 1 - half;
        const auto a = count<half>(words);
        const auto b = count<rest>(words + half);
        unsigned carry = words[N - 1];
#pragma unroll
        for (int i = 0; i < bits_of(half); ++i) {
            const unsigned bit = i < bits_of(rest) ? b.at[i] : 0;
            sum.at[i] = sum_of(a.at[i], bit, carry);
            carry = carry_of(a.at[i], bit, carry);
        }
        if constexpr (bits_of(N) > bits_of(half)) sum.at[bits_of(half)] = carry;
    }
    return sum;
}

// Add 2^FROM where `up` has a one and subtract it where `down` has one.
template <int FROM, int BITS>
__device__ inline void step(Counters<BITS>& sum, unsigned up, unsigned down)
{
    unsigned change = 0;  // of the next bit
#pragma unroll
    for (int i = FROM; i < BITS; ++i) {
        const unsigned bit = sum.at[i];
        if (i == FROM) {
            sum.at[i] = sum_of(bit, up, down);
            change = combine<(OF_B ^ OF_C) & (OF_A ^ OF_C)>(bit, up, down);
        } else {
            sum.at[i] = bit ^ change;
            change = combine<OF_B & (OF_A ^ OF_C)>(bit, change, down);
        }
    }
}

// Add two bits and subtract two.
template <int BITS>
__device__ inline void step(
    Counters<BITS>& sum, unsigned up, unsigned other_up, unsigned down, unsigned other_down)
{
    const unsigned more = sum_of(sum.at[0], up, other_up), carry = carry_of(sum.at[0], up, other_up);
    sum.at[0] = sum_of(more, down, other_down);
    step<1>(sum, carry, borrow_of(more, down, other_down));
}

// Add numbers of fewer bits, the highest of which is a sign where SIGNED.
template <bool SIGNED, int BITS, int ADDED>
__device__ inline void add(Counters<BITS>& sum, const Counters<ADDED>& added)
{
    constexpr int plain = SIGNED ? ADDED - 1 : ADDED;
    unsigned carry = 0;
#pragma unroll
    for (int i = 0; i < plain; ++i) {
        const unsigned bit = sum.at[i];
        sum.at[i] = sum_of(bit, added.at[i], carry);
        carry = carry_of(bit, added.at[i], carry);
    }
    step<plain>(sum, carry, SIGNED ? added.at[ADDED - 1] : 0);
}

// a - b, with a sign
template <int BITS>
__device__ inline Counters<BITS + 1> difference(const Counters<BITS>& a, const Counters<BITS>& b)
{
    Counters<BITS + 1> result;
    unsigned borrow = 0;
#pragma unroll
    for (int i = 0; i < BITS; ++i) {
        result.at[i] = sum_of(a.at[i], b.at[i], borrow);
        borrow = borrow_of(a.at[i], b.at[i], borrow);
    }
    result.at[BITS] = borrow;
    return result;
}

#endif
