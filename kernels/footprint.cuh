// Masks that are no full squares: of each row of SIZE cells a word, whose bit t is 1 if cell t counts.
//
// All threads of a warp read the same word at once, which constant memory serves in one go.
#ifndef KERNELSCOPE_FOOTPRINT
#define KERNELSCOPE_FOOTPRINT
#include "levels.cuh"
#if TUNED
#include "strips.cuh"
#endif

// At the levels that keep the mask in constant memory.
__constant__ unsigned constant_rows[SIZE];

// The cells around a pixel, of which only those of a mask count.
template <typename Cells>
struct Masked {
    static constexpr int ROWS = Cells::ROWS, COLUMNS = Cells::COLUMNS;

    const Cells& cells;
    const unsigned* rows;

    struct Row {
        typename Cells::Row row;
        unsigned bits;

        __device__ inline bool counts(int t) const
        {
            return (bits >> (t + RADIUS) & 1) && row.counts(t);
        }
        __device__ inline Sample operator[](int t) const { return row[t]; }
    };

    __device__ inline Row row(int s) const { return Row{cells.row(s), rows[s + RADIUS]}; }

    // How many cells count.
    __device__ inline int count() const
    {
        int found = 0;
#pragma unroll 1
        for (int s = -RADIUS; s <= RADIUS; ++s) {
            if (Cells::CUT) {
                const Row row = this->row(s);
#pragma unroll 1
                for (int t = -RADIUS; t <= RADIUS; ++t) found += row.counts(t);
            } else
                found += __popc(rows[s + RADIUS]);
        }
        return found;
    }
};

#if TUNED
// Row s of the windows of a thread's pixels: for each of these a word of its mask, 0 where row s is not of its
// window.
struct StripBits {
    unsigned bits[STRIP];

    __device__ inline StripBits(int s)
    {
#pragma unroll
        for (int r = 0; r < STRIP; ++r) {
            const int row = s - r;
            bits[r] = 0 <= row && row < SIZE ? constant_rows[row] : 0;
        }
    }
    __device__ inline bool counts(int r, int t) const { return bits[r] >> t & 1; }
};
#endif

#endif
