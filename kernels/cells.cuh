// The cells around a pixel, up to REACH rows and columns away, row by row:
//
//   const auto row = cells.row(s);   row[t] is the cell s rows below and t columns right of the pixel
//
// A pixel is asked once whether its whole window lies inside the image. Then no cell is tested, and those of
// a row lie at fixed distances; else the indices of rows and columns have the border applied beforehand.
#ifndef KERNELSCOPE_CELLS
#define KERNELSCOPE_CELLS
#include "common.cuh"

// Up to this size all of a window is unrolled, and up to that its columns.
#define UNROLLED_SIZE 9
#define UNROLLED_COLUMNS 31

// All inside: rows lie `pitch` samples apart, in global or in shared memory, neighbours STEP samples.
template <int REACH, int STEP>
struct Inside {
    static constexpr int SIDE = 2 * REACH + 1;
    static constexpr int ROWS = SIDE <= UNROLLED_SIZE ? SIDE : 1;  // to unroll
    static constexpr int COLUMNS = SIDE <= UNROLLED_COLUMNS ? SIDE : 9;
    static constexpr bool CUT = false;  // whether some cells may not count

    const Sample* corner;  // the cell at the top left
    unsigned pitch;

    struct Row {
        const Sample* left;

        __device__ inline Sample operator[](int t) const { return left[(t + REACH) * STEP]; }
        __device__ inline bool counts(int t) const { return true; }
    };

    __device__ inline Row row(int s) const { return Row{corner + (s + REACH) * pitch}; }
    __device__ inline int count() const { return SIDE * SIDE; }
};

// Where the samples of source row y, which is there, begin.
__device__ inline unsigned row_offset(const Geometry& g, int y, int channels)
{
    int row = y - g.source_row;
    if (BORDER == BORDER_WRAP && row < 0) row += g.height;
    return (unsigned)row * (unsigned)(g.width * channels);
}

__device__ inline const Sample* row_of(const Sample* source, const Geometry& g, int y, int channels)
{
    return source + row_offset(g, y, channels);
}

__device__ inline Sample read(const Sample* row, int column) { return row[(unsigned)column]; }

// Partly outside: channel c of an image of `channels`, by way of `row_of` and `read`.
template <int REACH, typename Source>
struct Rim {
    static constexpr int SIDE = 2 * REACH + 1;
    static constexpr int ROWS = SIDE <= 3 ? SIDE : 1;
    static constexpr int COLUMNS = SIDE <= UNROLLED_COLUMNS ? SIDE : 1;
    static constexpr bool ZEROS = BORDER == BORDER_CONSTANT || BORDER >= BORDER_VALID;
    static constexpr bool CUT = BORDER == BORDER_REDUCE;

    const Source& source;
    const Geometry& g;
    int y, x, c, channels;
    int columns[COLUMNS];

    __device__ inline Rim(const Source& source, const Geometry& g, int y, int x, int c, int channels)
        : source(source), g(g), y(y), x(x), c(c), channels(channels)
    {
#pragma unroll
        for (int t = 0; t < COLUMNS; ++t) columns[t] = folded_index(x + t - REACH, g.width);
    }

    __device__ inline int column(int t) const
    {
        return COLUMNS == SIDE ? columns[t + REACH] : folded_index(x + t, g.width);
    }

    struct Row {
        const Rim& rim;
        decltype(row_of(source, g, 0, 0)) samples;
        bool is_zero;

        __device__ inline bool counts(int t) const
        {
            return !CUT || !(is_zero || rim.column(t) < 0);
        }
        __device__ inline Sample operator[](int t) const
        {
            const int column = rim.column(t);
            if (ZEROS && (is_zero || column < 0)) return 0;
            return read(samples, column * rim.channels + rim.c);
        }
    };

    __device__ inline Row row(int s) const
    {
        const int row = folded_index(y + s, g.height);
        return Row{*this, row_of(source, g, ZEROS ? max(row, 0) : row, channels), row < 0};
    }

    // How many cells count.
    __device__ inline int count() const
    {
        if (!CUT) return SIDE * SIDE;
        const int rows = min(y + REACH, g.height - 1) - max(y - REACH, 0) + 1;
        return rows * (min(x + REACH, g.width - 1) - max(x - REACH, 0) + 1);
    }
};

#endif
