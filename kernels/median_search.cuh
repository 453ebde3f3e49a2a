// The median of the cells around a pixel at the levels up to *texture*: bit by bit (`Median`), or sorting a
// copy of the window in part (`Selection`).
//
// Bit by bit, with the 3-bit samples 1 2 2 5 7 as an example: the median is the largest value that no more
// than 2 cells lie below. 4? Three cells do: no. 2? One cell does: yes. 3? Three cells do: no. It is 2.
#ifndef KERNELSCOPE_MEDIAN_SEARCH
#define KERNELSCOPE_MEDIAN_SEARCH
#include "common.cuh"

// Whole numbers in the order of the samples. For floats: flip the sign bit of positive numbers, all bits
// of negative ones.
__device__ inline unsigned to_key(Sample sample)
{
#if SAMPLE_BITS == 32
    const unsigned bits = __float_as_uint(sample);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
#else
    return sample;
#endif
}

__device__ inline Sample from_key(unsigned key)
{
#if SAMPLE_BITS == 32
    return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
#else
    return (Sample)key;
#endif
}

// The cell that `rank` others lie below, bit by bit.
template <typename Cells>
__device__ inline Sample ranked(const Cells& cells, int rank)
{
    unsigned key = 0;
#pragma unroll 1
    for (unsigned bit = 1u << (SAMPLE_BITS - 1); bit != 0; bit >>= 1) {
        const unsigned candidate = key | bit;
        int below = 0;
#pragma unroll Cells::ROWS
        for (int s = -RADIUS; s <= RADIUS; ++s) {
            const auto row = cells.row(s);
#pragma unroll Cells::COLUMNS
            for (int t = -RADIUS; t <= RADIUS; ++t)
                below += row.counts(t) && to_key(row[t]) < candidate;
        }
        if (below <= rank) key = candidate;
    }
    return from_key(key);
}

// The median of the cells around a pixel, bit by bit.
struct Median {
    template <typename Cells>
    __device__ inline Sample operator()(const Cells& cells) const
    {
        return ranked(cells, (cells.count() - 1) / 2);
    }
};

// The median of the cells around a pixel, which are copied to a window of the thread's own and partly sorted
// there (Hoare's quickselect): in the part that holds the median, cells smaller and cells larger than a
// pivot change sides, and one of the two parts remains.
struct Selection {
    Sample* window;
    int step;  // from a cell of it to the next: those of other threads lie between them

    template <typename Cells>
    __device__ inline int copy(const Cells& cells) const
    {
        int count = 0;
        for (int s = -RADIUS; s <= RADIUS; ++s) {
            const auto row = cells.row(s);
            for (int t = -RADIUS; t <= RADIUS; ++t)
                if (row.counts(t)) window[count++ * step] = row[t];
        }
        return count;
    }

    template <typename Cells>
    __device__ inline Sample operator()(const Cells& cells) const
    {
        const int count = copy(cells);
        return select(count, (count - 1) / 2);
    }

    // The cell of the window, which holds `count`, that `rank` others lie below.
    __device__ inline Sample select(int count, int rank) const
    {
        for (int low = 0, high = count - 1; low < high;) {
            const Sample pivot = window[rank * step];
            int i = low, j = high;
            while (i <= j) {
                while (window[i * step] < pivot) ++i;
                while (pivot < window[j * step]) --j;
                if (i > j) break;
                const Sample larger = window[i * step];
                window[i++ * step] = window[j * step];
                window[j-- * step] = larger;
            }
            if (j < rank) low = i;
            if (rank < i) high = j;
        }
        return window[rank * step];
    }
};

#endif
