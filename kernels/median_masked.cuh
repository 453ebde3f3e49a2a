// The median of the cells of a mask. Of n cells it is number n / 2 in order, from 0: of an even number the upper
// of the two in the middle, but of a full square the lower. Where `reduce` leaves no cell, the pixel stays as it is.
#ifndef KERNELSCOPE_MEDIAN_MASKED
#define KERNELSCOPE_MEDIAN_MASKED
#include "footprint.cuh"
#include "median_search.cuh"

struct MaskedMedian {
    const unsigned* rows;

    template <typename Cells>
    __device__ inline Sample operator()(const Cells& cells) const
    {
        const Masked<Cells> masked{cells, rows};
        const int count = masked.count();
        return count ? ranked(masked, (count - FULL) / 2) : cells.row(0)[0];
    }

#if TUNED
    __device__ inline void operator()(const Sample* corner, Sample* results) const
    {
        int count = 0;
#pragma unroll 1
        for (int s = 0; s < SIZE; ++s) count += __popc(rows[s]);
        const int rank = count / 2;
        unsigned keys[STRIP] = {};
#pragma unroll 1
        for (unsigned bit = 1u << (SAMPLE_BITS - 1); bit != 0; bit >>= 1) {
            int below[STRIP] = {};
#pragma unroll 1
            for (int s = 0; s < SIZE + STRIP - 1; ++s) {
                const StripBits mask(s);
#pragma unroll 4
                for (int t = 0; t < SIZE; ++t) {
                    const unsigned key = to_key(corner[s * StripTile::PITCH + t]);
#pragma unroll
                    for (int r = 0; r < STRIP; ++r)
                        below[r] += mask.counts(r, t) && key < (keys[r] | bit);
                }
            }
#pragma unroll
            for (int r = 0; r < STRIP; ++r)
                if (below[r] <= rank) keys[r] |= bit;
        }
#pragma unroll
        for (int r = 0; r < STRIP; ++r) results[r] = from_key(keys[r]);
    }
#endif
};

struct MaskedSelection {
    const unsigned* rows;
    Selection selection;

    template <typename Cells>
    __device__ inline Sample operator()(const Cells& cells) const
    {
        const int count = selection.copy(Masked<Cells>{cells, rows});
        return count ? selection.select(count, count / 2) : cells.row(0)[0];
    }
};

#endif
