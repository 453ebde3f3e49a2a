// tuned, small masks: a network of minima and maxima instead of a search, shared by neighbours (after
// Adams 2021), and two samples in each instruction where they have 8 or 16 bits.
//
// Launch: blocks of 32 x 4 threads, a thread for 4 x 2 values (SIZE 3: 4 x 4). A value of 8 or 16 bits
// holds two samples, the second one from the lower half of the block's tile; GPUs that compare one sample
// at a time compute one half after the other.
//
// A thread sorts the SIZE - 1 rows that two rows of windows share, column by column, merges the columns
// that all its windows share, then halves the windows and merges in the cells that each half shares, until a single
// window is left that lacks one row. Cells that can no longer be the median are dropped on the way.
// Minima and maxima for a value: 17, 60, 140, 240, 392, 600 and 824 for SIZE 3, 5, ... 15. Inside the image a thread
// reads its cells four samples at a time, without shared memory: neighbours find it in level 1.
// At best a sample is read from and written to device memory once.
#ifndef KERNELSCOPE_MEDIAN_NETWORK
#define KERNELSCOPE_MEDIAN_NETWORK
#include "median_core.cuh"

#ifndef STEPS  // patches that a thread computes, one below the other
#define STEPS (SIZE <= 5 ? 2 : 1)
#endif
#define COLUMNS (4 * BLOCK_COLUMNS)  // of values in a block
#define ROWS (2 * STEPS * BLOCK_ROWS)
#define PARTS ((SAMPLE_BITS == 32 ? 1 : 2) / LANES)  // of a block's tile, one after the other
#define ALIGNMENT (BORDER == BORDER_VALID ? 0 : (8 - RADIUS) % 4)  // from a quad to the first cell
#define QUADS ((ALIGNMENT + SIZE + 3 + 3) / 4)  // that hold the cells of a thread in a row

// The cells of the windows of 4 x 2 values.
struct Patch {
    Sorted<SIZE - 1> columns[SIZE + 3];     // the rows that all windows have
    Value top[SIZE + 3], bottom[SIZE + 3];  // those of the upper and of the lower windows alone

    template <int X>
    __device__ inline Sorted<SIZE - 1> column() const
    {
        return columns[X];
    }

    template <int X>
    __device__ inline Sorted<2 * (SIZE - 1)> pair() const
    {
        return merge(columns[X], columns[X + 1]);
    }
};

__device__ inline Value join(const Quad& a, const Quad& b, int i)
{
#if SAMPLE_BITS == 32
    return __uint_as_float(a.words[i]);
#elif LANES == 1
    return a.words[i * SAMPLE_BITS / 32] >> i * SAMPLE_BITS % 32 & SAMPLE_MAX;
#elif SAMPLE_BITS == 8
    return __byte_perm(a.words[0], b.words[0], 0x4400 + 0x1111 * i);
#else
    return __byte_perm(a.words[i / 2], b.words[i / 2], i % 2 ? 0x7632 : 0x5410);
#endif
}

// Read the cells from (y, x) on, all of which are inside the image.
__device__ inline void read_cells(Value (&cells)[2 * STEPS + SIZE - 1][SIZE + 3],
    const Sample* source, const Geometry& g, int y, int x)
{
    const Sample* first = source + source_offset(g, y) + x - ALIGNMENT;
    const unsigned pitch = g.width;
#pragma unroll
    for (unsigned i = 0; i < 2 * STEPS + SIZE - 1; ++i) {
        const Quad* row = (const Quad*)(first + (size_t)i * pitch);
        const Quad* below = (const Quad*)(first + (size_t)(i + ROWS) * pitch);
        Quad a[QUADS], b[QUADS];
#pragma unroll
        for (int q = 0; q < QUADS; ++q) {
            a[q] = row[q];
            b[q] = LANES == 2 ? below[q] : a[q];
        }
#pragma unroll
        for (int j = 0; j < SIZE + 3; ++j)
            cells[i][j] =
                join(a[(j + ALIGNMENT) / 4], b[(j + ALIGNMENT) / 4], (j + ALIGNMENT) % 4);
    }
}

// The same for channel c of any image and near its borders, by way of shared memory. Every thread of the
// block, whose cells begin at (top, left), has to call this. Rows below `bottom` are not needed, nor always
// there.
__device__ inline void read_cells_slowly(Value (&cells)[2 * STEPS + SIZE - 1][SIZE + 3],
    const Sample* source, const Geometry& g, int top, int left, int bottom, int c)
{
    __shared__ Value tile[ROWS + SIZE - 1][COLUMNS + SIZE - 1];
    __syncthreads();  // the previous channel has been read
#pragma unroll 1
    for (int i = threadIdx.y; i < ROWS + SIZE - 1; i += BLOCK_ROWS) {
        const int y = border_index(min(top + i, bottom), g.height);
        const int y_below = border_index(min(top + i + ROWS, bottom), g.height);
        const Sample* row = source + source_offset(g, y) + c;
        const Sample* below = source + source_offset(g, y_below) + c;
#pragma unroll 4
        for (int j = threadIdx.x; j < COLUMNS + SIZE - 1; j += BLOCK_COLUMNS) {
            const int x = border_index(left + j, g.width);
            const size_t offset = (size_t)x * g.channels;
            const Sample a = y < 0 || x < 0 ? 0 : row[offset];
            tile[i][j] = join(a, LANES == 1 ? a : y_below < 0 || x < 0 ? 0 : below[offset]);
        }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2 * STEPS + SIZE - 1; ++i)
#pragma unroll
        for (int j = 0; j < SIZE + 3; ++j)
            cells[i][j] = tile[2 * STEPS * threadIdx.y + i][4 * threadIdx.x + j];
}

__device__ inline void find_medians(const Value (*cells)[SIZE + 3], Value (*medians)[4])
{
    Patch patch;
#pragma unroll
    for (int x = 0; x < SIZE + 3; ++x) {
        Value column[SIZE - 1];
#pragma unroll
        for (int s = 0; s < SIZE - 1; ++s) column[s] = cells[s + 1][x];
        patch.columns[x] = sort<SIZE - 1>(column);
        patch.top[x] = cells[0][x];
        patch.bottom[x] = cells[SIZE][x];
    }
#if SIZE == 3
    // Windows four in a row have no column in common.
    medians_of<0, 2>(patch, medians);
    medians_of<2, 2>(patch, medians);
#else
    medians_of<0, 4>(patch, medians);
#endif
}

// Compute channel c of the block's pixels from (top, left) on; every thread has to call this.
__device__ inline void compute_part(
    const Sample* source, Sample* output, const Geometry& g, int top, int left, int c)
{
    const int x = left + 4 * threadIdx.x, y = top + 2 * STEPS * threadIdx.y;
    const int shift = valid_shift(RADIUS) - RADIUS;  // from a pixel to the first cell of its window
    const int bottom = g.last - 1 + shift + 2 * RADIUS;
    const int start = left + shift - ALIGNMENT, end = top + shift + ROWS * LANES + SIZE - 2;
    Value cells[2 * STEPS + SIZE - 1][SIZE + 3];
    if (g.channels == 1 && g.width % 4 == 0 && start >= 0 && start + COLUMNS + 4 * (QUADS - 1) <= g.width
        && top + shift >= 0 && end < g.height && end <= bottom)
        read_cells(cells, source, g, y + shift, x + shift);
    else
        read_cells_slowly(cells, source, g, top + shift, left + shift, bottom, c);
    Value medians[2 * STEPS][4];
#pragma unroll
    for (int step = 0; step < STEPS; ++step) find_medians(cells + 2 * step, medians + 2 * step);
    write_medians<2 * STEPS, ROWS>(medians, output, g, y, x, c);
}

// Blocks that a multiprocessor should hold: as many as the registers allow, but for a few bytes.
#define RESIDENT (SIZE == 3 ? (SAMPLE_BITS == 8 ? 8 : 6) : SIZE >= 11 ? 2 : SIZE == 9 ? 3 : 4)

extern "C" __launch_bounds__(THREADS, RESIDENT) __global__ void median_tuned(
    const Sample* source, Sample* output, Geometry g)
{
    const int left = blockIdx.x * COLUMNS, top = g.first + blockIdx.y * (ROWS * LANES * PARTS);
#pragma unroll 1
    for (int i = 0; i < PARTS * g.channels; ++i)
        compute_part(source, output, g, top + i % PARTS * ROWS, left, i / PARTS);
    compute_cut_medians(source, output, g);
}

#endif
