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
#include "edges.cuh"
#include "median_search.cuh"
#include "networks.cuh"

#ifndef STEPS  // patches that a thread computes, one below the other
#define STEPS (SIZE == 3 ? 2 : 1)
#endif
#define COLUMNS (4 * BLOCK_COLUMNS)  // of values in a block
#define ROWS (2 * STEPS * BLOCK_ROWS)
#define PARTS ((SAMPLE_BITS == 32 ? 1 : 2) / LANES)  // of a block's tile, one after the other
#define ALIGNMENT (BORDER == BORDER_VALID ? 0 : (8 - RADIUS) % 4)  // from a quad to the first cell
#define QUADS ((ALIGNMENT + SIZE + 3 + 3) / 4)  // that hold the cells of a thread in a row
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
    return slice<low - from - start, high - low + 1>(merge(kept, slice<start, stop - start>(cells)));
}

// The cells of the windows of 4 x 2 values.
struct Patch {
    Sorted<SIZE - 1> columns[SIZE + 3];     // the rows that all windows have
    Value top[SIZE + 3], bottom[SIZE + 3];  // those of the upper and of the lower windows alone
};

template <int FIRST, int COUNT>
__device__ inline Sorted<COUNT*(SIZE - 1)> merge_columns(const Patch& patch)
{
    if constexpr (COUNT == 1) {
        return patch.columns[FIRST];
    } else {
        constexpr int left = next_power_of_two((COUNT + 1) / 2);
        return merge(
            merge_columns<FIRST, left>(patch), merge_columns<FIRST + left, COUNT - left>(patch));
    }
}

// The medians of WIDTH x 2 windows from column X on, of which `core`, `top` and `bottom` are the cells in
// the columns that they share.
template <int X, int WIDTH>
__device__ inline void refine(const Patch& patch, const Core<(SIZE + 1 - WIDTH) * (SIZE - 1)>& core,
    const Sorted<SIZE + 1 - WIDTH>& top, const Sorted<SIZE + 1 - WIDTH>& bottom, Value (*medians)[4])
{
    constexpr int count = (SIZE + 1 - WIDTH) * (SIZE - 1);
    if constexpr (WIDTH == 1) {
        medians[0][X] = select<RANK - lowest(count)>(core, top);
        medians[1][X] = select<RANK - lowest(count)>(core, bottom);
    } else {
        constexpr int half = WIDTH / 2, left = X + half - 1, right = X + SIZE;
        refine<X, half>(patch, add<count>(core, merge_columns<left, half>(patch)),
            merge(top, sort<half>(patch.top + left)), merge(bottom, sort<half>(patch.bottom + left)),
            medians);
        refine<X + half, half>(patch, add<count>(core, merge_columns<right, half>(patch)),
            merge(top, sort<half>(patch.top + right)), merge(bottom, sort<half>(patch.bottom + right)),
            medians);
    }
}

template <int X, int WIDTH>
__device__ inline void medians_of(const Patch& patch, Value (*medians)[4])
{
    constexpr int first = X + WIDTH - 1, shared = SIZE + 1 - WIDTH, count = shared * (SIZE - 1);
    refine<X, WIDTH>(patch,
        slice<lowest(count), highest(count) - lowest(count) + 1>(merge_columns<first, shared>(patch)),
        sort<shared>(patch.top + first), sort<shared>(patch.bottom + first), medians);
}

// Four samples side by side, read and written at once.
struct alignas(4 * sizeof(Sample)) Quad {
    unsigned words[sizeof(Sample)];
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

__device__ inline Quad lanes(const Value (&values)[4], int number)
{
#if SAMPLE_BITS == 8
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

// Whether the border leaves cells out of the window around (y, x).
__device__ inline bool is_cut(const Geometry& g, int y, int x)
{
    return BORDER == BORDER_REDUCE
        && (y < RADIUS || y >= g.height - RADIUS || x < RADIUS || x >= g.width - RADIUS);
}

__device__ inline void write_medians(
    const Value (&medians)[2 * STEPS][4], Sample* output, const Geometry& g, int y, int x, int c)
{
    const unsigned pitch = g.out_width * g.channels;
    Sample* first = output + output_offset(g, y, x) + c;
#pragma unroll
    for (unsigned i = 0; i < 2 * STEPS * LANES; ++i) {
        const unsigned step = i % (2 * STEPS), number = i / (2 * STEPS), row = step + number * ROWS;
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
    write_medians(medians, output, g, y, x, c);
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
#if BORDER == BORDER_REDUCE
    const int first = min(max(RADIUS, g.first), g.last), width = g.out_width;
    const int left_end = min(RADIUS, width) * g.channels;
    const Part whole{first, min(max(g.height - RADIUS, first), g.last), left_end,
        max(left_end, (width - RADIUS) * g.channels)};
    compute_around<RADIUS>(source, output, g, whole, Median());
#endif
}

#endif
