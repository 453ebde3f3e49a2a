// Sums over SIZE x SIZE squares for the level *tuned*, at a cost that hardly depends on SIZE.
//
// A block has a tile of the image and two halves of HALF_BLOCK threads. Both start in the middle of the
// tile's height, from sums over the same rows, of which each half reads one part. Then one half walks down
// and the other up, STEP rows at a time:
//
//      halo       tile (TILE_COLUMNS pixels)        halo
//     ┌────┬───────────────────────────────────────┬────┐
//     │    │ ▲ half 1 walks up, STEP rows at a time│    │     a thread has COLUMNS columns of the
//     │    │ │                                     │    │     whole width, halo included
//     │    ├─┴── middle: SIZE rows summed once ──┬─┤    │
//     │    │                                     │ │    │
//     │    │ half 0 walks down                   ▼ │    │
//     └────┴───────────────────────────────────────┴────┘
//
// 1. Each thread keeps the sums of its columns over SIZE rows: it adds the row that enters the square and
//    subtracts the one that has left. The sums of STEP rows go to shared memory.
// 2. Each warp takes rows of these, each lane RUN neighbouring samples: it adds up SIZE columns once, and
//    then slides on, adding the column that enters and subtracting the one that has left.
// 3. The warp's results pass through shared memory, so that they leave in whole lines.
//
// For SIZE 3, the column sums of rows 4 to 6 are those of rows 3 to 5, plus row 6, minus row 3.
//
// 8-bit rows for the next step 1 are being read during step 2, and the cache asks memory for those of the
// step after it. Columns outside the image have the sums of those that stand for them. A row is taken as
// width * CHANNELS samples in which neighbours of one channel lie CHANNELS apart.
#ifndef KERNELSCOPE_BOX
#define KERNELSCOPE_BOX
#include "box_load.cuh"
#include "box_sums.cuh"

// The rows that enter and leave the squares around rows y, y + down ...
struct Change {
    Batch entering, leaving;

    __device__ inline void load(const Loader& loader, int y, int down)
    {
        entering = loader.load(y + SIZE / 2 * down, down, true);
        leaving = loader.load(y - SIZE / 2 * down, down, false);
    }

    // Let `sums`, which lack the last row of the square around the first y, go on, and store them on the way.
    __device__ inline void apply(ColumnSums& sums, Column* to) const
    {
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
            sums.add(entering.rows[i]);
            sums.store(to + i * ROW);
            sums.subtract(leaving.rows[i]);
        }
    }
};

// Add ROWS rows from row `from` on, and go on behind them. Inside the image all are asked for before the first
// one is waited for: a tile starts with nothing else to do.
template <int ROWS>
__device__ inline void add_rows(ColumnSums& sums, const Loader& loader, int& from)
{
    if (loader.is_plain(from, from + ROWS - 1)) {
        Rows<ROWS> rows;
        loader.read<ROWS>(rows, from, 1, true);
        add(sums, rows);
    } else {
        constexpr int rest = ROWS % BATCH;
        if (rest) add(sums, loader.load<rest>(from, 1, true));
#pragma unroll 1
        for (int i = rest; i < ROWS; i += BATCH) add(sums, loader.load(from + i, 1, true));
    }
    from += ROWS;
}

// Asks the second-level cache for the rows that enter the squares AHEAD steps later, each thread for a part of
// one. A thread's own loads are at most one step ahead, too late for the memory behind the cache. Floats are
// better off without: they take more of the cache and of the registers.
struct Prefetch {
    static constexpr int AHEAD = 2;
    const Sample* at;
    int left;  // rows between this one and the last that will be needed; negative behind it

    // For a half that begins with the squares around row y of the source and ends with those around `last`;
    // x: the first sample of the block's rows.
    __device__ inline Prefetch(const Sample* source, const Geometry& g, int x, int y, int last, int down)
    {
        const int number = threadIdx.x % STEP, row = y + (SIZE / 2 + AHEAD * STEP + number) * down;
        const int column = x + ((int)threadIdx.x - number) * (LOADED / HALF_BLOCK);
        left = down > 0 ? min(last + SIZE / 2, g.height - 1) - row : row - max(last - SIZE / 2, g.source_row);
        if (column < 0 || column >= g.width * CHANNELS) left = -1;
        at = source + source_offset(g, row) + column;
    }

    // Go on by a step; `step` is that of the address.
    __device__ inline void next(ptrdiff_t step)
    {
        if (left >= 0) asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
        left -= STEP;
        at += step;
    }
};

// Fill in the columns of a row outside the image: numbers `first` to `end` - 1, of which number 0 is sample
// `x` of the row. By one warp.
__device__ inline void fill_outside(Column* row, const Geometry& g, int x, int first, int end)
{
    const int after = max(first, g.width * CHANNELS - x);  // the first one behind the image
    const int left = max(0, min(end, -x) - first), right = max(0, end - after);
    if (left + right == 0) return;
#pragma unroll 1
    for (int i = threadIdx.x % 32; i < left + right; i += 32) {
        const int column = i < left ? first + i : after + i - left;
        const int inside = column_inside(x + column, g.width);
        row[position(column)] = inside < 0 ? 0 : row[position(inside - x)];
    }
    __syncwarp();
}

// Slide along the run of output samples x, x + 1... of row y. `finish(sum, pixel)` makes a result from the
// sum over all cells and the source sample in the middle, `finish(sum, pixel, count)` from that over fewer.
template <typename Finish>
__device__ inline void slide(
    const Columns& columns, Squares& squares, Run& results, const Run& pixels, const Geometry& g, int y, int x, Finish finish)
{
    bool whole = true;
#if BORDER == BORDER_REDUCE
    const int down = cells_inside(y, g.height);
    whole = down == SIZE && cells_inside(x / CHANNELS, g.width) == SIZE &&
            cells_inside((x + RUN - 1) / CHANNELS, g.width) == SIZE;
#endif
    asm volatile("" ::: "memory");  // rather read columns again than keep them in registers
#pragma unroll
    for (int pair = 0; pair < RUN; pair += 2) {
        Total around[2];
#pragma unroll
        for (int k = pair; k < pair + 2; ++k) {
            Total& sum = squares.sums[k % CHANNELS];
            if (k >= CHANNELS) {
                columns.add_one(sum, HALO + k + REACH, 1);
                columns.add_one(sum, HALO + k - REACH - CHANNELS, -1);
            }
            around[k - pair] = sum;
        }
        const Sample a = pixels.get(pair), b = pixels.get(pair + 1);
        if (whole)
            results.put(pair, finish(around[0], a), finish(around[1], b));
#if BORDER == BORDER_REDUCE
        else
            results.put(pair, finish(around[0], a, down * cells_inside((x + pair) / CHANNELS, g.width)),
                        finish(around[1], b, down * cells_inside((x + pair + 1) / CHANNELS, g.width)));
#endif
    }
}

// The mean of a square: its sum over all cells ...
__device__ inline Run::Result mean_of(Total sum)
{
#if SAMPLE_BITS == 8
    // The product is off by less than 1 / (2 CELLS), which is how near a half a quotient can come.
    // Adding 1.5 * 2^23 rounds it into the low bits.
    return __float_as_uint(fmaf(to_float(sum), 1.0f / CELLS, 12582912.0f));
#elif SAMPLE_BITS == 16
    return (sum + CELLS / 2) / CELLS;  // an odd number: no ties
#else
    return (Sample)(sum * (1.0 / CELLS));
#endif
}

#if SAMPLE_BITS == 8
// The same in units of 2^-24, for `Run::put` to round. A sum in a float's low bits goes without being
// taken out: factor and product of the fused step are exact, and its rounding is the only one.
__device__ inline float quotient_of(Total sum)
{
    constexpr float factor = 1.0f / CELLS / 16777216;
    return fmaf(__int_as_float(sum), factor, -8388608 * factor);
}
#else
__device__ inline Run::Result quotient_of(Total sum) { return mean_of(sum); }
#endif

// ... or over `count` of them.
__device__ inline Run::Result mean_of(Total sum, int count)
{
#if SAMPLE_BITS == 32
    return (Sample)(sum / count);
#else
    // Threads next to the image have no cells, and their results go nowhere.
    return divide_round((int)(sum - ZERO), max(count, 1));
#endif
}

// Wait until all threads of this half of the block are here.
__device__ inline void wait_for_half()
{
    asm volatile("bar.sync %0, %1;" ::"r"(1 + threadIdx.y), "n"(HALF_BLOCK) : "memory");
}

// The filter whose results `finish` makes; PIXELS if it wants to know the source sample.
template <bool PIXELS, typename Finish>
__device__ inline void box_filter(const Sample* source, Sample* output, const Geometry& g, Finish finish)
{
    __shared__ __align__(16) Column memory[2][STEP * ROW];
    constexpr int radius = SIZE / 2;
    const int shift = valid_shift(radius);
    const int rows = (g.last - g.first + gridDim.y - 1) / gridDim.y;
    const int top = min(g.first + (int)blockIdx.y * rows, g.last), end = min(top + rows, g.last);
    const int left = blockIdx.x * TILE, samples = min(TILE, g.out_width * CHANNELS - left);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, half = threadIdx.y;

    const int centre = left + shift * CHANNELS;  // source sample of the first result
    const Loader loader(source, g, centre - HALO + COLUMNS * (int)threadIdx.x, centre + samples + REACH,
                        top + shift - radius, end - 1 + shift + radius);
    const int middle = (top + end) / 2, down = half == 0 ? 1 : -1;
    int y = half == 0 ? middle : middle - 1;
    Change change;
    // The sums of both halves' first squares but the last rows, which are different ones.
    int from = middle + shift - (half == 0 ? 0 : radius);
    ColumnSums sums;
    if constexpr (radius <= 2 * BATCH) {
        constexpr int rest = radius % BATCH;
        Batch batch = loader.load<rest>(from, 1, true);
#pragma unroll 1
        for (int done = rest; done < radius; done += BATCH) {
            const Batch next = loader.load(from + done, 1, true);  // on its way while others are added
            add(sums, batch);
            batch = next;
        }
        add(sums, batch);
    } else {
        constexpr int groups = (radius + AT_ONCE - 1) / AT_ONCE, group = (radius + groups - 1) / groups;
        add_rows<radius - (groups - 1) * group>(sums, loader, from);
#pragma unroll 1
        for (int i = 1; i < groups; ++i) add_rows<group>(sums, loader, from);
    }
    ColumnSums* const exchange = (ColumnSums*)memory;
    exchange[half * HALF_BLOCK + threadIdx.x] = sums;
    __syncthreads();
    sums.add(exchange[(1 - half) * HALF_BLOCK + threadIdx.x]);
    __syncthreads();

    Column* const column = memory[half] + place(COLUMNS * threadIdx.x);
    const int last = half == 0 ? end - 1 : top;
    if (PREFETCH) change.load(loader, y + shift, down);
    Prefetch prefetch(source, g, centre - HALO, y + shift, last + shift, down);
    for (; (last - y) * down >= 0; y += STEP * down) {
        if (SAMPLE_BITS < 32) prefetch.next((ptrdiff_t)(STEP * down * g.width * CHANNELS));
#pragma unroll
        for (int i = 0; i < STEP; i += BATCH) {
            if (!PREFETCH) change.load(loader, y + i * down + shift, down);
            change.apply(sums, column + i * ROW);
        }
        wait_for_half();
        const int next = y + STEP * down;
        if (PREFETCH && (last - next) * down >= 0) change.load(loader, next + shift, down);
        for (int i = warp; i < min(STEP, (last - y) * down + 1); i += WARPS) {
            const int row = y + i * down;
            Column* const mine = memory[half] + i * ROW;
            uint4* const results = (uint4*)mine;
            if (BORDER != BORDER_WRAP && BORDER != BORDER_VALID)
                fill_outside(mine, g, centre - HALO, HALO - REACH, HALO + samples + REACH);
            // The last lanes' squares would reach beyond the row; they have no results.
            const Columns columns{mine + min(lane, TILE / RUN - 1) * PITCH};
            const bool active = lane * RUN < samples;
            Squares squares(columns, Columns{mine + lane * PITCH});
            Run run;
            if (active) {
                Run pixels;
                if (PIXELS) {
                    const Sample* at = source + source_offset(g, row + shift) + centre + lane * RUN;
                    load(pixels, at, samples - lane * RUN);
                }
                slide(columns, squares, run, pixels, g, row + shift, centre + lane * RUN, finish);
            }
            __syncwarp();  // the columns are no longer needed
            if (active) {
#pragma unroll
                for (int v = 0; v < VECTORS; ++v)
                    results[slot(lane * VECTORS + v)] = make_uint4(
                        run.words[4 * v], run.words[4 * v + 1], run.words[4 * v + 2], run.words[4 * v + 3]);
            }
            __syncwarp();
            Sample* to = output + output_offset(g, row, 0) + left;
            if (g.out_width * CHANNELS * sizeof(Sample) % 16 == 0) {
                // An int: of a size_t ptxas 13.0.88 loses the upper half, a register that `gather` overwrites.
                const int vectors = samples * (int)sizeof(Sample) / 16;
#pragma unroll
                for (int k = 0; k < (TILE * (int)sizeof(Sample) / 16 + 31) / 32; ++k) {
                    const int i = lane + 32 * k;
                    if (i < vectors) __stcs((uint4*)to + i, results[slot(i)]);
                }
            } else {
                for (int i = lane; i < samples; i += 32)
                    to[i] = ((const Sample*)(results + slot(i / VECTOR_SAMPLES)))[i % VECTOR_SAMPLES];
            }
        }
        wait_for_half();
    }
}

#endif
