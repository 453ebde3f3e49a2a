// tuned, masks of 5 x 5 to 11 x 11: as median_network.cuh, but neighbours share sorted columns as well.
//
// Launch: blocks of BLOCK_COLUMNS threads side by side. A thread sorts its own four columns of the rows that two
// rows of windows share, and merges them to two pairs of columns. They go to shared memory; there the
// thread finds its neighbours' columns and pairs for 4 x 2 values, see median_core.cuh. So the first thread
// of a block and the last ones have no windows of their own: LEFT + RIGHT.
//
// A value of 8 or 16 bits holds two samples, the second one from two rows further down.
// Minima and maxima for a value: 53, 109, 184 and 276 for SIZE 5, 7, 9 and 11.
#ifndef KERNELSCOPE_MEDIAN_COLUMNS
#define KERNELSCOPE_MEDIAN_COLUMNS
#include "median_core.cuh"

#ifndef STEPS  // rounds of a block, each further down
#define STEPS (SIZE <= 5 ? 2 : 1)
#endif
#define COMMON (SIZE - 1)           // rows that two rows of windows share
#define OWN (SIZE <= 5 ? 1 : 3)     // a thread's first own column, counted from that of its first window
#define LEFT 1                      // neighbours on either side that a thread needs columns of
#define RIGHT ((SIZE + 2 - OWN) / 4)
#define COLUMNS (4 * (BLOCK_COLUMNS - LEFT - RIGHT))  // of results of a block
#define HEIGHT (2 * LANES)                            // rows of results of a round
#define INPUT (SIZE - 1 + HEIGHT)                     // rows of cells of a round
#define ROUNDS (STEPS * (SAMPLE_BITS == 32 ? 1 : 2) / LANES)
#define ROUNDS_AT_ONCE (STEPS > 2 ? 2 : 1)            // unrolled: fewer rows move from register to register
#define SHARED_PAIRS (SIZE == 5 ? 1 : 2)              // of a thread's two pairs of columns, those that its neighbours need
#define SKEW ((BORDER == BORDER_VALID ? OWN : 8 + OWN - RADIUS) % 4)  // from a quad to own columns
#define PACK (COMMON % 4 == 0 ? 4 : 2)                       // values read and written at once

struct alignas(4 * PACK) Values {
    Value at[PACK];
};

// Lists of all threads of a block: the first PACK values of each, then the next ones.
template <int N>
struct Lists {
    Values packs[N / PACK][BLOCK_COLUMNS];

    __device__ inline Sorted<N> read(int thread) const
    {
        Sorted<N> list;
#pragma unroll
        for (int i = 0; i < N; ++i) list.at[i] = packs[i / PACK][thread].at[i % PACK];
        return list;
    }

    __device__ inline void write(int thread, const Sorted<N>& list)
    {
#pragma unroll
        for (int i = 0; i < N / PACK; ++i) {
            Values values;
#pragma unroll
            for (int k = 0; k < PACK; ++k) values.at[k] = list.at[PACK * i + k];
            packs[i][thread] = values;
        }
    }
};

struct alignas(16) FourCells {
    Value at[4];
};

struct Shared {
    Lists<COMMON> columns[4];
    Lists<2 * COMMON> pairs[SHARED_PAIRS];
    FourCells top[BLOCK_COLUMNS], bottom[BLOCK_COLUMNS];  // of the upper and of the lower windows alone
};

// Whose own column is column x of a patch, counted from the patch's thread, and which one it is there.
__host__ __device__ constexpr int owner(int x) { return (x - OWN + 4) / 4 - 1; }
__host__ __device__ constexpr int place(int x) { return (x - OWN + 4) % 4; }

// The cells of the windows of 4 x 2 values.
struct SharedPatch {
    const Shared& shared;
    int thread;
    Sorted<2 * COMMON> own[2];  // pairs
    Value top[SIZE + 3], bottom[SIZE + 3];

    template <int X>
    __device__ inline Sorted<COMMON> column() const
    {
        return shared.columns[place(X)].read(thread + owner(X));
    }

    template <int X>
    __device__ inline Sorted<2 * COMMON> pair() const
    {
        static_assert(place(X) % 2 == 0, "not a pair of one thread");
        if constexpr (owner(X) == 0) {
            return own[place(X) / 2];
        } else {
            static_assert(place(X) / 2 < SHARED_PAIRS, "not among the pairs that are shared");
            return shared.pairs[place(X) / 2].read(thread + owner(X));
        }
    }
};

// The own cells of a row that begins at `first`, SKEW samples before them.
__device__ inline Quad read_quad(const Sample* first)
{
    const Quad* quads = (const Quad*)first;
    if constexpr (SKEW == 0) {
        return quads[0];
    } else {
        const Quad pair[2] = {quads[0], quads[1]};
        Quad own;
#pragma unroll
        for (int i = 0; i < (int)sizeof(Sample); ++i) {
            constexpr int whole = SKEW * SAMPLE_BITS / 32, bytes = SKEW * SAMPLE_BITS / 8 % 4;
            constexpr int count = sizeof(Sample);
            const int a = whole + i, b = whole + i + 1 < 2 * count ? whole + i + 1 : a;
            own.words[i] = __byte_perm(pair[a / count].words[a % count],
                pair[b / count].words[b % count], 0x3210 + 0x1111 * bytes);
        }
        return own;
    }
}

// The own cells of COUNT rows from (y, x) on, some of which may be outside the image; channel c.
// Rows below `bottom` are not needed, nor always there. Cells that count as zero are read nevertheless, from the
// nearest place inside: without branches, all cells are on their way at once.
template <int COUNT>
__device__ inline void read_outside(
    Quad* rows, const Sample* source, const Geometry& g, int y, int x, int bottom, int c)
{
    int columns[4];
    unsigned offsets[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        columns[j] = border_index(x + j, g.width);
        offsets[j] = (ZEROS_OUTSIDE && columns[j] < 0 ? clamp(x + j, 0, g.width - 1) : columns[j]) * g.channels;
    }
    Sample cells[COUNT][4];
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        const int wanted = min(y + i, bottom), row = border_index(wanted, g.height);
        const bool zeros = ZEROS_OUTSIDE && row < 0;
        const Sample* first =
            source + source_offset(g, zeros ? clamp(wanted, 0, g.height - 1) : row) + c;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const Sample cell = first[offsets[j]];
            cells[i][j] = zeros || (ZEROS_OUTSIDE && columns[j] < 0) ? 0 : cell;
        }
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        rows[i] = Quad{};
#pragma unroll
        for (int j = 0; j < 4; ++j)
#if SAMPLE_BITS == 32
            rows[i].words[j] = __float_as_uint(cells[i][j]);
#else
            rows[i].words[j * SAMPLE_BITS / 32] |= (unsigned)cells[i][j] << j * SAMPLE_BITS % 32;
#endif
    }
}

// The same, at once where all of them are inside.
template <int COUNT>
__device__ inline void read_rows(Quad* rows, const Sample* source, const Geometry& g, int y, int x,
    int bottom, int c)
{
    const bool whole = g.channels == 1 && g.width % 4 == 0;
    if (whole && x >= SKEW && x - SKEW + (SKEW ? 8 : 4) <= g.width && y >= 0
        && y + COUNT - 1 <= min(bottom, g.height - 1)) {
        const Sample* first = source + source_offset(g, y) + x - SKEW;
#pragma unroll
        for (unsigned i = 0; i < COUNT; ++i) rows[i] = read_quad(first + (size_t)i * g.width);
    } else {
        read_outside<COUNT>(rows, source, g, y, x, bottom, c);
    }
}

// Cell j of two rows, each in a lane. Bytes are zero-extended, see SMALL_NUMBERS.
__device__ inline Value join(const Quad& a, const Quad& b, int j)
{
#if SAMPLE_BITS == 32
    return __uint_as_float(a.words[j]);
#elif LANES == 1
    return a.words[j * SAMPLE_BITS / 32] >> j * SAMPLE_BITS % 32 & SAMPLE_MAX;
#elif SAMPLE_BITS == 16
    return __byte_perm(a.words[j / 2], b.words[j / 2], j % 2 ? 0x7632 : 0x5410);
#else
    const unsigned odd = 0x4341;  // bytes 1 and 3; the compiler does it once for every row
    const unsigned u = j % 2 ? __byte_perm(a.words[0], 0, odd) : a.words[0] & 0x00ff00ff;
    const unsigned v = j % 2 ? __byte_perm(b.words[0], 0, odd) : b.words[0] & 0x00ff00ff;
    return __byte_perm(u, v, j / 2 ? 0x7632 : 0x5410);
#endif
}

// Sort the own columns, and keep them for the neighbours.
__device__ inline void sort_own(const Quad (&rows)[INPUT], Shared& shared, SharedPatch& patch)
{
    Sorted<COMMON> columns[4];
    FourCells top, bottom;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        Value cells[SIZE + 1];
#pragma unroll
        for (int i = 0; i <= SIZE; ++i) cells[i] = join(rows[i], rows[i + HEIGHT - 2], j);
        columns[j] = sort<COMMON>(cells + 1);
        top.at[j] = cells[0];
        bottom.at[j] = cells[SIZE];
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) shared.columns[j].write(patch.thread, columns[j]);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        patch.own[j] = merge(columns[2 * j], columns[2 * j + 1]);
        if (j < SHARED_PAIRS) shared.pairs[j].write(patch.thread, patch.own[j]);
    }
    shared.top[patch.thread] = top;
    shared.bottom[patch.thread] = bottom;
}

// The medians of a thread that has all of its neighbours.
__device__ inline void find_medians(SharedPatch& patch, Value (*medians)[4])
{
#pragma unroll
    for (int x = 0; x < SIZE + 3; ++x) {
        patch.top[x] = patch.shared.top[patch.thread + owner(x)].at[place(x)];
        patch.bottom[x] = patch.shared.bottom[patch.thread + owner(x)].at[place(x)];
    }
    medians_of<0, 4>(patch, medians);
}

// Compute channel c of the block's pixels from (top, left) on; every thread has to call this.
__device__ inline void compute_part(const Sample* source, Sample* output, const Geometry& g,
    Shared& shared, int top, int left, int c)
{
    const int thread = threadIdx.x, x = left + 4 * (thread - LEFT);
    const int shift = valid_shift(RADIUS) - RADIUS;  // from a pixel to the first cell of its window
    const int bottom = g.last - 1 + shift + 2 * RADIUS;
    Quad rows[INPUT];
    read_rows<INPUT>(rows, source, g, top + shift, x + shift + OWN, bottom, c);
    constexpr int unrolled = ROUNDS_AT_ONCE;
#pragma unroll unrolled
    for (int round = 0; round < ROUNDS; ++round) {
        const int y = top + round * HEIGHT;
        if (round > 0) __syncthreads();  // the lists of the last round have been read
        SharedPatch patch{shared, thread};
        sort_own(rows, shared, patch);
        if (ROUNDS > 1) {
#pragma unroll
            for (int i = 0; i < INPUT - HEIGHT; ++i) rows[i] = rows[i + HEIGHT];
            if (round + 1 < ROUNDS)
                read_rows<HEIGHT>(rows + INPUT - HEIGHT, source, g, y + INPUT + shift,
                    x + shift + OWN, bottom, c);
        }
        __syncthreads();
        if (thread >= LEFT && thread < BLOCK_COLUMNS - RIGHT) {
            Value medians[2][4];
            find_medians(patch, medians);
            write_medians<2, 2>(medians, output, g, y, x, c);
        }
    }
}

// Blocks that a multiprocessor should hold: as many as the registers allow, but for a few bytes.
#ifndef RESIDENT
#define RESIDENT (SIZE == 11 && SAMPLE_BITS == 16 ? 4 : SIZE >= 9 ? 5 : SIZE == 5 && SAMPLE_BITS == 8 ? 8 : 6)
#endif

extern "C" __launch_bounds__(BLOCK_COLUMNS, RESIDENT) __global__ void median_tuned(
    const Sample* source, Sample* output, Geometry g)
{
    __shared__ Shared shared;
    const int left = blockIdx.x * COLUMNS, top = g.first + blockIdx.y * (HEIGHT * ROUNDS);
#pragma unroll 1
    for (int c = 0; c < g.channels; ++c) {
        if (c > 0) __syncthreads();
        compute_part(source, output, g, shared, top, left, c);
    }
    compute_cut_medians(source, output, g);
}

#endif
