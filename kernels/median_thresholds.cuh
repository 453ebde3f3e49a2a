// tuned, bytes, large masks: which of 32 thresholds a cell does not exceed is one word, and to count the cells
// of windows for all 32 thresholds at once takes logic instructions (counters.cuh).
//
// Launch: blocks of 32 x 4 threads, a thread for a strip of 8 columns and STRIP rows. A median is the number of
// thresholds that are exceeded by more than half of the cells of its window. The thresholds are neighbouring
// values, `low` to low + 31:
//
//   cell - low            -1     0     1     2   ...   31    32
//   does not exceed   11..11 11..11 11..10 11..00 ... 10..00 00..00     (bit 0, of threshold `low`, to the right)
//
// From a row of windows to the next one, SIZE cells enter each of them and SIZE leave. By how much that changes
// the counts follows from the window to the left and four cells. It takes about 60 (SIZE 15) to 85 (SIZE 31)
// instructions for a pixel, most of them logical.
//
// The medians of a strip differ by less than 31 in smooth parts of pictures. `low` is guessed from a window in
// the middle. Strips with other medians are computed again with thresholds above or below, only the rows that
// lack some, and all threads of the block share in that. So the time depends on the picture: at worst it is
// that of eight times as many strips. The tile of a block is read once, borders applied.
#ifndef KERNELSCOPE_MEDIAN_THRESHOLDS
#define KERNELSCOPE_MEDIAN_THRESHOLDS
#include "counters.cuh"
#include "edges.cuh"
#include "median_search.cuh"

#ifndef STRIP
#define STRIP 32
#endif
#define WIDTH 8                   // columns of a strip
#define SPAN (SIZE + WIDTH - 1)   // cells in a row of a strip
#define ALIGNMENT (BORDER == BORDER_VALID ? 0 : (32 - RADIUS) % 4)  // from a word to the first cell
#define PITCH ((ALIGNMENT + WIDTH * BLOCK_COLUMNS + SIZE - 1 + 3) / 4 * 4)
#define TILE_ROWS (STRIP * BLOCK_ROWS + SIZE - 1)
#define RANK (SIZE * SIZE / 2)
#define LOWEST (-1)  // these thresholds separate 0 to 30
#define HIGHEST 223  // ... and these 224 to 255
#define NEXT 31      // from thresholds to the next ones, which have one in common
#define FEW 16       // slots, for each of which several threads find the time
#define COARSE 2     // the round with coarse thresholds, if MANY slots are left by then
#define MANY (THREADS / 2)

// The row of white cells never leaves, and they do not exceed the last coarse threshold, 255.
static_assert((SIZE + 1) * SIZE - RANK <= 1 << bits_of(RANK), "beyond a count, as for SIZE 11");

typedef Counters<1 + bits_of(RANK)> Count;  // from -RANK - 1 to RANK

// ~0 << n, or 0 for n > 31
__device__ inline unsigned ones_from(unsigned n)
{
#ifdef __CUDA_ARCH__
    unsigned ones;
    asm("shl.b32 %0, %1, %2;" : "=r"(ones) : "r"(~0u), "r"(n));
    return ones;
#else
    return n > 31 ? 0 : ~0u << n;
#endif
}

// Thresholds: `low` and the 31 values after it, or if they are coarse 7, 15, ... 255.
struct Thresholds {
    float scale, start;

    // Whole numbers are floats here, in units of the smallest one: the bits of such a float are the number.
    __device__ inline Thresholds(int low, bool coarse)
        : scale(coarse ? 0.125f : 1), start(__uint_as_float(coarse ? 0 : low < 0 ? -low : 0x80000000u + low))
    {
    }

    // Which of them a cell does not exceed. max(cell - low, 0) and cell / 8 are a product and a sum of floats,
    // rounded down and saturated to 0 to 1: the units for floats are idle, those for whole numbers are not.
    __device__ inline unsigned within(unsigned cell) const
    {
#ifdef __CUDA_ARCH__
        float above;
        asm("fma.rz.sat.f32 %0, %1, %2, %3;"
            : "=f"(above)
            : "f"(__uint_as_float(cell)), "f"(scale), "f"(start));
        return ones_from(__float_as_uint(above));
#else
        const unsigned bits = __float_as_uint(start);
        const int offset = bits >> 31 ? -(int)(bits & 255) : (int)bits;
        return ones_from(max((int)(cell * scale) + offset, 0));
#endif
    }
};

__device__ inline void read_row(unsigned (&words)[SPAN], const Sample* row, const Thresholds& thresholds)
{
#pragma unroll
    for (int i = 0; i < SPAN; ++i) words[i] = thresholds.within(row[ALIGNMENT + i]);
}

// Let two rows of cells enter the windows of a strip.
__device__ inline void enter(
    Count (&counts)[WIDTH], const Sample* row, const Sample* other, const Thresholds& thresholds)
{
    unsigned in[SPAN], too[SPAN], first[2 * SIZE];
    read_row(in, row, thresholds);
    read_row(too, other, thresholds);
#pragma unroll
    for (int i = 0; i < 2 * SIZE; ++i) first[i] = i < SIZE ? in[i] : too[i - SIZE];
    auto sum = count<2 * SIZE>(first);
#pragma unroll
    for (int x = 0; x < WIDTH; ++x) {
        if (x > 0) step(sum, in[x + SIZE - 1], too[x + SIZE - 1], in[x - 1], too[x - 1]);
        add<false>(counts[x], sum);
    }
}

// Move the windows of a strip down: `row` leaves them.
__device__ inline void move(
    Count (&counts)[WIDTH], const Sample* row, const Thresholds& thresholds)
{
    unsigned in[SPAN], out[SPAN];
    read_row(in, row + SIZE * PITCH, thresholds);
    read_row(out, row, thresholds);
    auto change = difference(count<SIZE>(in), count<SIZE>(out));
#pragma unroll
    for (int x = 0; x < WIDTH; ++x) {
        if (x > 0) step(change, in[x + SIZE - 1], out[x - 1], out[x + SIZE - 1], in[x - 1]);
        add<true>(counts[x], change);
    }
}

// The first threshold for a strip: coarse ones are counted in a window in its middle, of which every second row
// is enough.
__device__ inline int guess(const Sample* strip)
{
    constexpr int rows = SIZE / 2 + 1;
    Count counts;
    set(counts, -(SIZE * rows / 2) - 1);
    const Sample* row = strip + STRIP / 2 * PITCH + ALIGNMENT + WIDTH / 2;
#pragma unroll 1
    for (int y = 0; y < rows; ++y, row += 2 * PITCH) {
        unsigned words[SIZE];
#pragma unroll
        for (int i = 0; i < SIZE; ++i) words[i] = ones_from(row[i] / 8);
        add<false>(counts, count<SIZE>(words));
    }
    const int median = 8 * __popc(counts.at[bits_of(RANK)]) + 4;
    return clamp(median - 16, LOWEST, HIGHEST);
}

// Read channel c of a block's part of the image; below, a row of cells that exceed all thresholds.
__device__ inline void load(Sample* tile, const Sample* source, const Geometry& g, int c)
{
    const int shift = valid_shift(RADIUS) - RADIUS;
    const int top = g.first + blockIdx.y * (STRIP * BLOCK_ROWS) + shift;
    const int left = blockIdx.x * (WIDTH * BLOCK_COLUMNS) + shift - ALIGNMENT;
    const int bottom = g.last - 1 + shift + 2 * RADIUS;  // rows below are not needed, nor always there
    const bool quick = g.channels == 1 && g.width % 4 == 0 && left >= 0 && left + PITCH <= g.width
        && top >= 0 && top + TILE_ROWS <= min(g.height, bottom + 1);
    if (quick) {
        const Sample* first = source + source_offset(g, top) + left;
#pragma unroll 4
        for (int i = threadIdx.y; i < TILE_ROWS; i += BLOCK_ROWS) {
            const unsigned* words = (const unsigned*)(first + (size_t)i * g.width);
#pragma unroll
            for (int j = threadIdx.x; j < PITCH / 4; j += BLOCK_COLUMNS)
                ((unsigned*)tile)[i * (PITCH / 4) + j] = words[j];
        }
    } else {
#pragma unroll 1
        for (int i = threadIdx.y; i < TILE_ROWS; i += BLOCK_ROWS)
#pragma unroll 1
            for (int j = threadIdx.x; j < PITCH; j += BLOCK_COLUMNS)
                tile[i * PITCH + j] = fetch(source, g, min(top + i, bottom), left + j, c);
    }
    for (int j = threadIdx.y * BLOCK_COLUMNS + threadIdx.x; j < PITCH; j += THREADS)
        tile[TILE_ROWS * PITCH + j] = SAMPLE_MAX;
    __syncthreads();
}

// Rows of a strip to compute, with thresholds from `low` on.
struct Task {
    int strip, low, first, last;
};

// Rows of a strip that are left, from the first to the last one that has medians below or above those found.
struct Rest {
    int first, last;

    __device__ inline void add(int row)
    {
        first = min(first, row);
        last = row;
    }
};

// Columns of a strip to write.
struct Columns {
    int first, end;
};

// Those in row y; not where the border cuts windows.
__device__ inline Columns columns_of(const Geometry& g, int y, int x)
{
#if BORDER == BORDER_REDUCE
    if (y < RADIUS || y >= g.height - RADIUS) return Columns{0, 0};
    return Columns{RADIUS - x, g.out_width - RADIUS - x};
#else
    return Columns{0, g.out_width - x};
#endif
}

// Write the medians of a row that lie between thresholds, all eight at once where no other thread has any.
__device__ inline void write(const unsigned (&exceeded)[WIDTH], int low, bool at_once, Sample* target,
    int channels, const Columns& columns)
{
    if (at_once && columns.first <= 0 && columns.end >= WIDTH) {
        unsigned words[2];
#pragma unroll
        for (int i = 0; i < 2; ++i)
            words[i] = (unsigned)low * 0x01010101u + exceeded[4 * i] + (exceeded[4 * i + 1] << 8)
                + (exceeded[4 * i + 2] << 16) + (exceeded[4 * i + 3] << 24);
        *(uint2*)target = make_uint2(words[0], words[1]);
    } else {
#pragma unroll
        for (int x = 0; x < WIDTH; ++x)
            if (x >= columns.first && x < columns.end && exceeded[x] > 0
                && (exceeded[x] < 32 || low == HIGHEST))
                target[x * channels] = low + exceeded[x];
    }
}

// Compute the rows of a task, or with coarse thresholds only return which of 0 to 7, 8 to 15, ... their medians
// are among, as bits.
__device__ inline unsigned compute_rows(const Sample* tile, Sample* output, const Geometry& g,
    const Task& task, bool coarse, bool at_once, int c, Rest& lower, Rest& higher)
{
    const int column = task.strip % BLOCK_COLUMNS * WIDTH;
    const int row = task.strip / BLOCK_COLUMNS * STRIP + task.first;
    const int x = blockIdx.x * (WIDTH * BLOCK_COLUMNS) + column;
    const int y = g.first + blockIdx.y * (STRIP * BLOCK_ROWS) + row;
    const Sample* cells = tile + row * PITCH + column;
    const Thresholds thresholds(task.low, coarse);
    Count counts[WIDTH];  // of cells that do not exceed a threshold, less RANK + 1
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) set(counts[i], -RANK - 1);
#pragma unroll 1
    for (int i = 0; i < SIZE; i += 2)
        enter(counts, cells + i * PITCH,
            i + 1 < SIZE ? cells + (i + 1) * PITCH : tile + TILE_ROWS * PITCH, thresholds);
    lower = higher = Rest{STRIP, -1};
    Sample* target = output + output_offset(g, y, x) + c;
    unsigned octets = 0;
#pragma unroll 1
    for (int i = task.first;; ++i) {
        unsigned exceeded[WIDTH], by_all = ~0u, by_any = 0;
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
            const unsigned signs = counts[k].at[bits_of(RANK)];
            by_all &= signs;
            by_any |= signs;
            exceeded[k] = __popc(signs);
        }
        if (!(by_all & 1)) lower.add(i);
        if (by_any >> 31) higher.add(i);
        if (coarse) {
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) octets |= 1u << exceeded[k];
        } else {
            write(exceeded, task.low, at_once, target, g.channels,
                columns_of(g, y + i - task.first, x));
        }
        if (i == task.last) break;
        target += (size_t)g.out_width * g.channels;
        move(counts, cells, thresholds);
        cells += PITCH;
    }
    return octets;
}

// What is left of a strip, below (slot = strip) or above (slot = THREADS + strip) the thresholds tried.
struct Left {
    unsigned char low, first, last;  // low as the last threshold tried + 1
};

#define NONE 255  // as last row

struct Work {
    Left left[2][2 * THREADS];  // of this round and of the next one
    unsigned octets[2 * THREADS];  // which of 0 to 7, 8 to 15, ... that can be
    unsigned short slots[2 * THREADS];
    int numbers[2 * BLOCK_ROWS];  // of slots, by warp
};

// List the slots of a round that have something left, and return their number.
__device__ inline int list_slots(Work& work, int round)
{
    const int thread = threadIdx.y * BLOCK_COLUMNS + threadIdx.x;
    unsigned masks[2];
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int slot = thread + half * THREADS;
        masks[half] = __ballot_sync(~0u, work.left[round][slot].last != NONE);
        if (threadIdx.x == 0) work.numbers[half * BLOCK_ROWS + threadIdx.y] = __popc(masks[half]);
        work.left[round ^ 1][slot].last = NONE;
    }
    __syncthreads();
    int total = 0;
#pragma unroll
    for (int i = 0; i < 2 * BLOCK_ROWS; ++i) {
        const unsigned mask = masks[i / BLOCK_ROWS];
        if (i % BLOCK_ROWS == threadIdx.y && mask >> threadIdx.x & 1)
            work.slots[total + __popc(mask & ((1u << threadIdx.x) - 1))] =
                i / BLOCK_ROWS * THREADS + thread;
        total += work.numbers[i];
    }
    __syncthreads();
    return total;
}

__device__ inline void keep(Left& left, int low, const Rest& rest)
{
    left = Left{(unsigned char)(low + 1), (unsigned char)rest.first, (unsigned char)rest.last};
}

// The thresholds to try next for a slot: the nearest ones that medians can be among.
__device__ inline int next_low(const Left& left, unsigned octets, bool is_lower)
{
    const int low = left.low - 1;
    if (is_lower) {
        const unsigned below = octets & ~0u >> (31 - max(low, 0) / 8);
        return min(8 * (31 - __clz(below)) + 7, low) - NEXT;
    }
    const unsigned above = octets & ~0u << (low + 32) / 8;
    return max(8 * (__ffs(above) - 1), low + 32) - 1;
}

// Four blocks a multiprocessor leave 128 registers a thread: masks from 17 x 17 on keep some hundred bytes in
// local memory, and still are 5 to 10 % faster than with 165 registers.
extern "C" __launch_bounds__(THREADS, 4) __global__ void median_tuned(
    const Sample* source, Sample* output, Geometry g)
{
    __shared__ __align__(16) Sample tile[(TILE_ROWS + 1) * PITCH];
    __shared__ Work work;
    const int thread = threadIdx.y * BLOCK_COLUMNS + threadIdx.x;
    const int rows = g.last - g.first - (blockIdx.y * BLOCK_ROWS + threadIdx.y) * STRIP;
    const bool exists = (blockIdx.x * BLOCK_COLUMNS + threadIdx.x) * WIDTH < g.out_width && rows > 0;
    const bool aligned = g.channels == 1 && g.out_width % WIDTH == 0;
#pragma unroll 1
    for (int c = 0; c < g.channels; ++c) {
        load(tile, source, g, c);
        work.left[0][thread].last = work.left[0][thread + THREADS].last = NONE;
        work.octets[thread] = work.octets[thread + THREADS] = ~0u;
        // The first round: each thread has a strip. In the others each has what is left in a slot; where
        // slots are few, several threads have one, with thresholds further and further away.
        Task task{thread, 0, 0, min(STRIP, rows) - 1};
        if (exists) task.low = guess(tile + threadIdx.y * STRIP * PITCH + threadIdx.x * WIDTH);
        bool active = exists, coarse = false;
        int slot = -1, copies = 1, round = 0;
#pragma unroll 1
        for (int next = thread, total = 0;;) {
            if (active) {
                Rest lower, higher;
                const unsigned octets = compute_rows(
                    tile, output, g, task, coarse, slot < 0 && aligned, c, lower, higher);
                Left* left = work.left[round % 2];
                if (coarse) {
                    work.octets[slot] = octets;
                    left[slot] = work.left[round % 2 ^ 1][slot];
                } else if (next % copies == copies - 1) {
                    if (slot < THREADS && task.low > LOWEST) keep(left[task.strip], task.low, lower);
                    if ((slot < 0 || slot >= THREADS) && task.low < HIGHEST)
                        keep(left[task.strip + THREADS], task.low, higher);
                }
            }
            next += THREADS;
            if (next - thread >= total) {
                total = list_slots(work, round % 2);
                if (total == 0) break;
                ++round;
                coarse = round == COARSE && total > MANY;
                copies = total > FEW ? 1 : min(32 / total, 8);
                total *= copies;
                next = thread;
            }
            active = next < total;
            if (active) {
                slot = work.slots[next / copies];
                const Left left = work.left[round % 2 ^ 1][slot];
                const bool is_lower = slot < THREADS;
                const int apart = NEXT * (next % copies);
                const int low =
                    next_low(left, work.octets[slot], is_lower) + (is_lower ? -apart : apart);
                active = is_lower ? low > LOWEST - NEXT : low < HIGHEST + NEXT;
                task = Task{slot % THREADS, clamp(low, LOWEST, HIGHEST), left.first, left.last};
            }
        }
    }
    compute_cut_medians(source, output, g);
}

#endif
