// What the two kernels that sort windows by networks share: median_network.cuh and median_columns.cuh.
#ifndef KERNELSCOPE_MEDIAN_CORE
#define KERNELSCOPE_MEDIAN_CORE
#include "median_cut.cuh"

#if SIZE >= COLUMNS_FROM && SIZE <= COLUMNS_UP_TO
#ifndef ADDED_EXCHANGES  // measured on an H100
#define ADDED_EXCHANGES (SAMPLE_BITS == 8 ? 55 : 75)
#endif
#define SMALL_NUMBERS (SAMPLE_BITS == 8)
#endif
#include "networks.cuh"

#define CELLS (SIZE * SIZE)
#define RANK (CELLS / 2)

// The ranks among `count` of the cells that the median can have.
__host__ __device__ constexpr int lowest(int count)
{
    return RANK - (CELLS - count) > 0 ? RANK - (CELLS - count) : 0;
}

__host__ __device__ constexpr int highest(int count)
{
    return count - 1 < RANK ? count - 1 : RANK;
}

// COUNT cells in order, without those that cannot be the median.
template <int COUNT>
using Core = Sorted<highest(COUNT) - lowest(COUNT) + 1>;

// Merge more cells into a core.
template <int COUNT, int N>
__device__ inline Core<COUNT + N> add(const Core<COUNT>& core, const Sorted<N>& cells)
{
    constexpr int low = lowest(COUNT + N), high = highest(COUNT + N);
    constexpr int from = low - N > lowest(COUNT) ? low - N : lowest(COUNT);
    constexpr int start = low - COUNT > 0 ? low - COUNT : 0;
    constexpr int stop = high < N ? high + 1 : N;
    const auto kept = slice<from - lowest(COUNT), highest(COUNT) + 1 - from>(core);
    return merge_part<low - from - start, high - low + 1>(kept, slice<start, stop - start>(cells));
}

// COUNT columns of a patch from FIRST on, in order: the cells of the rows that two rows of windows share.
template <int FIRST, int COUNT, typename Patch>
__device__ inline Sorted<COUNT*(SIZE - 1)> merge_columns(const Patch& patch)
{
    if constexpr (COUNT == 1) {
        return patch.template column<FIRST>();
    } else if constexpr (COUNT == 2) {
        return patch.template pair<FIRST>();
    } else {
        constexpr int left = next_power_of_two((COUNT + 1) / 2);
        return merge(
            merge_columns<FIRST, left>(patch), merge_columns<FIRST + left, COUNT - left>(patch));
    }
}

// The same without those that cannot be the median.
template <int FIRST, int COUNT, typename Patch>
__device__ inline Core<COUNT*(SIZE - 1)> core_of_columns(const Patch& patch)
{
    constexpr int cells = COUNT * (SIZE - 1), low = lowest(cells), count = highest(cells) - low + 1;
    if constexpr (COUNT <= 2) {
        return slice<low, count>(merge_columns<FIRST, COUNT>(patch));
    } else {
        constexpr int left = next_power_of_two((COUNT + 1) / 2);
        return merge_part<low, count>(
            merge_columns<FIRST, left>(patch), merge_columns<FIRST + left, COUNT - left>(patch));
    }
}

#if SMALL_NUMBERS
// The median of a window from a core of all but SIZE cells, SIZE - 1 of these in order, and the last one. Of the
// core and the sorted ones together a half is below the median or equal to it: the smaller ones of pairs that are
// taken from the front of one list and from the end of the other, and the core's first. The last cell is the
// median where it lies between the largest of them and the smallest of the others.
__device__ inline Value middle_of(const Core<SIZE*(SIZE - 1)>& core, const Sorted<SIZE - 1>& row, Value last)
{
    static_assert(sizeof(core) == (SIZE + 1) * sizeof(Value), "as many below as above");
    Value low[SIZE], high[SIZE];
    low[0] = core.at[0];
    high[0] = core.at[SIZE];
    int share = 50;  // as in the networks
#pragma unroll
    for (int i = 1; i < SIZE; ++i) {
        low[i] = core.at[i];
        high[i] = row.at[SIZE - 1 - i];
        share += ADDED_EXCHANGES;
        exchange(low[i], high[i], share >= 100);
        if (share >= 100) share -= 100;
    }
    Value median = last;
#pragma unroll
    for (int i = 0; i < SIZE; ++i) median = minimum(median, high[i]);
#pragma unroll
    for (int i = 0; i < SIZE; ++i) median = maximum(median, low[i]);
    return median;
}
#endif

// The medians of WIDTH x 2 windows from column X on, of which `core`, `top` and `bottom` are the cells in
// the columns that they share.
template <int X, int WIDTH, typename Patch>
__device__ inline void refine(const Patch& patch, const Core<(SIZE + 1 - WIDTH) * (SIZE - 1)>& core,
    const Sorted<SIZE + 1 - WIDTH>& top, const Sorted<SIZE + 1 - WIDTH>& bottom, Value (*medians)[4])
{
    constexpr int count = (SIZE + 1 - WIDTH) * (SIZE - 1);
    if constexpr (WIDTH == 1) {
        medians[0][X] = select<RANK - lowest(count)>(core, top);
        medians[1][X] = select<RANK - lowest(count)>(core, bottom);
    } else {
        constexpr int half = WIDTH / 2, left = X + half - 1, right = X + SIZE;
#if SMALL_NUMBERS
        if constexpr (half == 1) {
            const auto first = add<count>(core, merge_columns<left, 1>(patch));
            medians[0][X] = middle_of(first, top, patch.top[left]);
            medians[1][X] = middle_of(first, bottom, patch.bottom[left]);
            const auto second = add<count>(core, merge_columns<right, 1>(patch));
            medians[0][X + 1] = middle_of(second, top, patch.top[right]);
            medians[1][X + 1] = middle_of(second, bottom, patch.bottom[right]);
            return;
        }
#endif
        refine<X, half>(patch, add<count>(core, merge_columns<left, half>(patch)),
            merge(top, sort<half>(patch.top + left)), merge(bottom, sort<half>(patch.bottom + left)),
            medians);
        refine<X + half, half>(patch, add<count>(core, merge_columns<right, half>(patch)),
            merge(top, sort<half>(patch.top + right)), merge(bottom, sort<half>(patch.bottom + right)),
            medians);
    }
}

template <int X, int WIDTH, typename Patch>
__device__ inline void medians_of(const Patch& patch, Value (*medians)[4])
{
    constexpr int first = X + WIDTH - 1, shared = SIZE + 1 - WIDTH;
    refine<X, WIDTH>(patch, core_of_columns<first, shared>(patch), sort<shared>(patch.top + first),
        sort<shared>(patch.bottom + first), medians);
}

// Four samples side by side, read and written at once.
struct alignas(4 * sizeof(Sample)) Quad {
    unsigned words[sizeof(Sample)];
};

__device__ inline Quad lanes(const Value (&values)[4], int number)
{
#if SMALL_NUMBERS
    // Both lanes of two values side by side, once for the rows of either lane.
    const unsigned a = values[1] * 256 + values[0], b = values[3] * 256 + values[2];
    return Quad{{__byte_perm(a, b, number ? 0x7632 : 0x5410)}};
#elif SAMPLE_BITS == 8
    const unsigned pair = number ? 0x0062 : 0x0040;
    return Quad{{__byte_perm(__byte_perm(values[0], values[1], pair),
        __byte_perm(values[2], values[3], pair), 0x5410)}};
#elif SAMPLE_BITS == 16
    const unsigned pair = number ? 0x7632 : 0x5410;
    return Quad{{__byte_perm(values[0], values[1], pair), __byte_perm(values[2], values[3], pair)}};
#else
    return Quad{{__float_as_uint(values[0]), __float_as_uint(values[1]), __float_as_uint(values[2]),
        __float_as_uint(values[3])}};
#endif
}

// Write four columns of ROWS rows from (y, x) on; the second lanes belong APART rows further down.
template <int ROWS, int APART>
__device__ inline void write_medians(
    const Value (&medians)[ROWS][4], Sample* output, const Geometry& g, int y, int x, int c)
{
    const unsigned pitch = g.out_width * g.channels;
    Sample* first = output + output_offset(g, y, x) + c;
#pragma unroll
    for (unsigned i = 0; i < ROWS * LANES; ++i) {
        const unsigned step = i % ROWS, number = i / ROWS, row = step + number * APART;
        if (y + (int)row >= g.last) continue;
        Sample* target = first + (size_t)row * pitch;
        // The network is for whole windows: other medians are searched for.
        const bool cut = is_cut(g, y + row, x) || is_cut(g, y + row, x + 3);
        if (g.channels == 1 && g.out_width % 4 == 0 && !cut) {
            if (x < g.out_width) *(Quad*)target = lanes(medians[step], number);
        } else {
#pragma unroll
            for (int k = 0; k < 4; ++k)
                if (x + k < g.out_width && !(cut && is_cut(g, y + row, x + k)))
                    target[k * g.channels] = lane(medians[step][k], number);
        }
    }
}

#endif
