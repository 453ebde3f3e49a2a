// Sums over SIZE x SIZE squares for the level *tuned*, at a cost that hardly depends on SIZE.
//
// A block has a tile of the image. Its two halves start in the middle of the tile's height, from sums over
// the same rows, of which each reads half. Then one half walks down and the other up, STEP rows at a time:
//
// 1. Each thread keeps the sums of COLUMNS neighbouring columns over SIZE rows: it adds the row that enters
//    the square and takes off the one that has left. The sums of STEP rows go to shared memory.
// 2. Each warp takes rows of these, each lane RUN neighbouring samples: it adds up SIZE columns once, and
//    then slides on, adding the column that enters and taking off the one that has left.
// 3. The warp's results pass through shared memory, so that they leave in whole lines.
//
// 8-bit rows for the next step 1 are being read during step 2. Columns outside the image have the sums of
// those that stand for them.
//
// A row is taken as width * CHANNELS samples in which neighbours of one channel lie CHANNELS apart.
#ifndef KERNELSCOPE_BOX
#define KERNELSCOPE_BOX
#include "common.cuh"
#include "pair.cuh"

#ifndef SIZE
#define SIZE 3
#endif
#ifndef CHANNELS
#define CHANNELS 1
#endif
// Output pixels of a block.
#ifndef TILE_COLUMNS
#define TILE_COLUMNS 480
#endif

constexpr int HALF_BLOCK = 128;                      // threads
constexpr int BLOCKS = 2;                            // that have to fit a multiprocessor at a time
constexpr int STEP = SAMPLE_BITS == 8 ? 8 : 4;       // rows at a time
constexpr int BATCH = SAMPLE_BITS == 32 ? 2 : STEP;  // rows that a thread loads at a time
constexpr bool PREFETCH = SAMPLE_BITS == 8;          // wider samples would take too many registers
constexpr int COLUMNS = 8;                           // of a thread
constexpr int WARPS = HALF_BLOCK / 32;               // of half a block
constexpr int LOADED = HALF_BLOCK * COLUMNS;         // columns of a block
constexpr int RUN = LOADED / 32;                     // samples along which a lane slides
constexpr int TILE = TILE_COLUMNS * CHANNELS;
constexpr int REACH = SIZE / 2 * CHANNELS;
// Columns on the left of a tile. Where the tile begins at a multiple of COLUMNS so do its loads.
constexpr int HALO = BORDER == BORDER_VALID ? REACH : (REACH + COLUMNS - 1) / COLUMNS * COLUMNS;
constexpr int CELLS = SIZE * SIZE;
static_assert(TILE % RUN == 0 && HALO + TILE + REACH <= LOADED, "the tile does not fit the block");

// Sample k of those that are packed in words.
__device__ inline Sample unpacked(const unsigned* words, int k)
{
#if SAMPLE_BITS == 32
    return __uint_as_float(words[k]);
#else
    return (Sample)(words[k * SAMPLE_BITS / 32] >> k * SAMPLE_BITS % 32);
#endif
}

// What a thread loads of one row.
struct alignas(SAMPLE_BITS == 8 ? 8 : 16) Samples {
    unsigned words[COLUMNS * SAMPLE_BITS / 32] = {};

    __device__ inline Sample get(int k) const { return unpacked(words, k); }
    __device__ inline void set(int k, Sample sample)  // once each
    {
#if SAMPLE_BITS == 32
        words[k] = __float_as_uint(sample);
#else
        words[k * SAMPLE_BITS / 32] |= (unsigned)sample << k * SAMPLE_BITS % 32;
#endif
    }
};

// Column: the sum of a column in shared memory. Total: the sum of a square. ColumnSums: the sums of a
// thread's columns.
#if SAMPLE_BITS == 8
typedef uint2 Vector;
typedef unsigned short Column;
typedef int Total;
// A sum below 2^23 in the low bits of 2^23 is a float without being converted.
constexpr Total ZERO = 0x4b000000;
__device__ inline float to_float(Total sum) { return __int_as_float(sum) - 8388608.0f; }

// Columns in 16 bits each; none exceeds 99 * 255. Of each four they lie in the order 0, 2, 1, 3, as masks
// of 16 bits leave them, and the even ones are what remains of the whole words without the odd ones.
struct ColumnSums {
    unsigned words[2] = {}, odd[2] = {};

    __device__ inline void add(const Samples& s)
    {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            words[i] += s.words[i];
            odd[i] += __byte_perm(s.words[i], 0, 0x4341);
        }
    }
    __device__ inline void subtract(const Samples& s)
    {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            words[i] -= s.words[i];
            odd[i] -= __byte_perm(s.words[i], 0, 0x4341);
        }
    }
    __device__ inline void add(const ColumnSums& s)
    {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            words[i] += s.words[i];
            odd[i] += s.odd[i];
        }
    }
    __device__ inline void store(Column* to) const
    {
        *(uint4*)to = make_uint4(words[0] - (odd[0] << 8), odd[0], words[1] - (odd[1] << 8), odd[1]);
    }
};
#else
typedef uint4 Vector;
#if SAMPLE_BITS == 16
typedef unsigned Column;
typedef unsigned Total;
typedef unsigned Exact;
__device__ inline unsigned bits_of(Column column) { return column; }
#else
// Doubles do not drift. A column is rounded once, so that what enters a square is what leaves it.
typedef float Column;
typedef double Total;
typedef double Exact;
__device__ inline unsigned bits_of(Column column) { return __float_as_uint(column); }
#endif
constexpr Total ZERO = 0;

struct ColumnSums {
    Exact of[COLUMNS] = {};

    __device__ inline void add(const Samples& s)
    {
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) of[k] += s.get(k);
    }
    __device__ inline void subtract(const Samples& s)
    {
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) of[k] -= s.get(k);
    }
    __device__ inline void add(const ColumnSums& s)
    {
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) of[k] += s.of[k];
    }
    __device__ inline void store(Column* to) const
    {
#pragma unroll
        for (int k = 0; k < COLUMNS; k += 4)
            *(uint4*)(to + k) = make_uint4(bits_of((Column)of[k]), bits_of((Column)of[k + 1]),
                                           bits_of((Column)of[k + 2]), bits_of((Column)of[k + 3]));
    }
};
#endif

// The samples along which a lane slides, packed. Of a `Result` only the lowest SAMPLE_BITS count.
struct Run {
    unsigned words[RUN * SAMPLE_BITS / 32];

    // Sample k and, for k even, the one behind it.
#if SAMPLE_BITS == 32
    typedef float Result;
    __device__ inline void put(int k, Result a, Result b)
    {
        words[k] = __float_as_uint(a);
        words[k + 1] = __float_as_uint(b);
    }
#else
    typedef unsigned Result;
    __device__ inline void put(int k, Result a, Result b)
    {
        const unsigned pair = __byte_perm(a, b, 0x5410);
#if SAMPLE_BITS == 16
        words[k / 2] = pair;
#else
        words[k / 4] = k % 4 == 0 ? pair : __byte_perm(words[k / 4], pair, 0x6420);
#endif
    }
#endif
    __device__ inline Sample get(int k) const { return unpacked(words, k); }
#if SAMPLE_BITS == 8
    // Whole numbers when they are rounded, in units of 2^-24.
    __device__ inline void put(int k, float a, float b)
    {
        const unsigned pair = to_pair(make_float2(a, b)).bits;
        words[k / 4] = k % 4 == 0 ? pair : __byte_perm(words[k / 4], pair, 0x6420);
    }
#endif
};

// Read a run of which only the first `count` samples may exist.
__device__ inline void load(Run& run, const Sample* from, int count)
{
    if ((size_t)from % 16 == 0 && count >= RUN) {
#pragma unroll
        for (int i = 0; i < sizeof(Run) / 16; ++i) {
            const uint4 vector = ((const uint4*)from)[i];
            run.words[4 * i] = vector.x;
            run.words[4 * i + 1] = vector.y;
            run.words[4 * i + 2] = vector.z;
            run.words[4 * i + 3] = vector.w;
        }
    } else {
#pragma unroll
        for (int k = 0; k < RUN; k += 2)
            run.put(k, Run::Result(k < count ? from[k] : 0), Run::Result(k + 1 < count ? from[k + 1] : 0));
    }
}

// In shared memory 16 bytes stay free after the columns of each lane's run: eight lanes that read 16
// bytes each then find them in different banks.
constexpr int PITCH = RUN + 16 / sizeof(Column);
constexpr int ROW = LOADED / RUN * PITCH;
constexpr int VECTOR = 16 / sizeof(Column);

__device__ constexpr int place(int column) { return column / RUN * PITCH + column % RUN; }

// Where a single column is; see ColumnSums.
__device__ inline int position(int column)
{
#if SAMPLE_BITS == 8
    if (column % 4 == 1 || column % 4 == 2) column ^= 3;
#endif
    return place(column);
}

// Where vector i of 16 bytes of a row of results is put. In order, vectors of one number of eight lanes'
// runs would be in the same banks; so they are not, and those of neighbouring numbers are not either.
constexpr int VECTOR_SAMPLES = 16 / sizeof(Sample), VECTORS = RUN / VECTOR_SAMPLES;
__device__ constexpr int slot(int i) { return i ^ (i >> 3 & (VECTORS - 1)); }

// The columns of a row, numbered from the first one of a lane's run.
struct Columns {
    const Column* run;

    // Add to `sum` the 16 bytes of columns from `first` on, each times its weight -1, 0 or 1.
    template <typename Weight>
    __device__ inline void add(Total& sum, int first, Weight weight) const
    {
        const uint4 vector = *(const uint4*)(run + place(first));
        const unsigned words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#if SAMPLE_BITS == 8
            const int column = first + i / 2 * 4 + i % 2;  // see ColumnSums
            const int low = weight(column), high = weight(column + 2);
            if (low || high) sum = __dp2a_lo((int)words[i], (low & 255) | (high & 255) << 8, sum);
#else
#if SAMPLE_BITS == 16
            const Column column = words[i];
#else
            const Column column = __uint_as_float(words[i]);
#endif
            if (weight(first + i) > 0) sum += column;
            if (weight(first + i) < 0) sum -= column;
#endif
        }
    }

    // Add to `sum` a column times its weight.
    __device__ inline void add_one(Total& sum, int column, int weight) const
    {
        add(sum, column / VECTOR * VECTOR, [=](int k) { return k == column ? weight : 0; });
    }
};

// Rows that a thread loads at a time; all are asked for before the first one is waited for.
struct Batch {
    Samples rows[BATCH];
};

__device__ inline void add(ColumnSums& sums, const Batch& batch)
{
#pragma unroll
    for (int i = 0; i < BATCH; ++i) sums.add(batch.rows[i]);
}

// Whose sums a column has whose sample of the row would be i: that of a sample inside, or -1 for zeros.
__device__ inline int column_inside(int i, int width)
{
    const int pixel = i >= 0 ? i / CHANNELS : -1 - (-1 - i) / CHANNELS;
    const int inside = border_index(pixel, width);
    return inside < 0 ? -1 : (inside - pixel) * CHANNELS + i;
}

// How a thread can load its columns: not at all, each for itself, as words that lie anywhere, as vectors.
enum class Way { NONE, SINGLE, WORDS, VECTORS };

// Loads a thread's columns from rows of the source; no other rows than `top` to `bottom` are needed.
struct Loader {
    // Columns outside are left out, and filled in later. But where the image wraps around, the columns that
    // stand for them are in other blocks.
    static constexpr bool OUTSIDE = BORDER == BORDER_WRAP;
    const Sample* source;
    const Geometry& g;
    int x;  // of the first column, as a sample of the row
    int top, bottom;
    Way way;

    __device__ inline Loader(const Sample* source, const Geometry& g, int x, int end, int top, int bottom)
        : source(source), g(g), x(x), top(top), bottom(bottom), way(Way::NONE)
    {
        const int pitch = g.width * CHANNELS;
        if (x >= end) return;
        if (OUTSIDE && pitch % COLUMNS == 0) this->x = (x % pitch + pitch) % pitch;
        const int first = this->x;
        if (0 <= first && first + COLUMNS <= pitch)
            // The words of the last columns may reach beyond the image.
            way = pitch % COLUMNS == 0 ? Way::VECTORS
                : first + COLUMNS + 4 <= pitch ? Way::WORDS
                                               : Way::SINGLE;
        else if (OUTSIDE || (first + COLUMNS > 0 && first < pitch))
            way = Way::SINGLE;
    }

    // ROWS rows y, y + down ... and zeros for others; `again` if they will be needed again.
    template <int ROWS = BATCH>
    __device__ inline Batch load(int y, int down, bool again) const
    {
        const int last = y + (ROWS - 1) * down;
        if (way == Way::VECTORS && min(y, last) >= max(max(top, 0), g.source_row) &&
            max(y, last) <= min(bottom, g.height - 1))
            return read<ROWS>(y, down, again);
        Batch batch;
        if (way != Way::NONE) batch = gather(source, g, x, way, y, down, top, bottom);
#pragma unroll
        for (int i = ROWS; i < BATCH; ++i) batch.rows[i] = Samples();
        return batch;
    }

    // As they lie in memory.
    template <int ROWS>
    __device__ inline Batch read(int y, int down, bool again) const
    {
        const ptrdiff_t pitch = (ptrdiff_t)down * g.width * CHANNELS;
        const Sample* row = source + (ptrdiff_t)(y - g.source_row) * g.width * CHANNELS + x;
        Batch batch;
#pragma unroll
        for (int i = 0; i < ROWS; ++i, row += pitch)
#pragma unroll
            for (int v = 0; v < sizeof(Samples) / sizeof(Vector); ++v) {
                const Vector* at = (const Vector*)row + v;
                ((Vector*)batch.rows[i].words)[v] = again ? __ldg(at) : __ldcs(at);
            }
        return batch;
    }

    // Any rows, borders applied. Not inlined: it is long, and where vectors can be loaded few warps call it.
    static __device__ __noinline__ Batch gather(
        const Sample* source, Geometry g, int x, Way way, int y, int down, int top, int bottom)
    {
        int inside[BATCH];  // negative for rows of zeros, in place of which another one is loaded
        const int least = BORDER == BORDER_CONSTANT || BORDER == BORDER_REDUCE ? max(0, top) : 0;
        const Sample* rows[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
            inside[i] = border_index(max(top, min(y + i * down, bottom)), g.height);
            rows[i] = source + source_offset(g, max(inside[i], least));
        }
        Batch batch;
        if (way == Way::VECTORS) {
#pragma unroll
            for (int i = 0; i < BATCH; ++i)
#pragma unroll
                for (int v = 0; v < sizeof(Samples) / sizeof(Vector); ++v)
                    ((Vector*)batch.rows[i].words)[v] = ((const Vector*)(rows[i] + x))[v];
        } else if (way == Way::WORDS) {
            constexpr int count = sizeof(Samples) / 4;
#pragma unroll
            for (int i = 0; i < BATCH; ++i) {
                const size_t address = (size_t)(rows[i] + x);
                const unsigned* words = (const unsigned*)(address / 4 * 4);
                unsigned loaded[count + 1];
#pragma unroll
                for (int k = 0; k < count; ++k) loaded[k] = words[k];
                loaded[count] = address % 4 ? words[count] : 0;
#pragma unroll
                for (int k = 0; k < count; ++k)
                    batch.rows[i].words[k] =
                        __funnelshift_r(loaded[k], loaded[k + 1], (unsigned)(address % 4 * 8));
            }
        } else {
#pragma unroll
            for (int k = 0; k < COLUMNS; ++k) {
                const int i = x + k, pitch = g.width * CHANNELS;
                const int at = OUTSIDE ? column_inside(i, g.width) : 0 <= i && i < pitch ? i : -1;
#pragma unroll
                for (int r = 0; r < BATCH; ++r) batch.rows[r].set(k, at < 0 ? 0 : rows[r][at]);
            }
        }
#pragma unroll
        for (int i = 0; i < BATCH; ++i)
            if (inside[i] < 0) batch.rows[i] = Samples();
        return batch;
    }
};

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

// How many of the cells within SIZE / 2 of i lie in [0, n).
__device__ inline int cells_inside(int i, int n)
{
    return min(i + SIZE / 2, n - 1) - max(i - SIZE / 2, 0) + 1;
}

// The sums of the squares around the first pixel of a lane's run, for each channel.
struct Squares {
    static constexpr int FIRST = HALO - REACH, END = FIRST + SIZE * CHANNELS;  // their columns
    static constexpr int WHOLE = END / RUN;  // runs that end among them
    Total sums[CHANNELS];

    // By all lanes of a warp: they tell each other the sums of their own runs, if that is less work.
    __device__ inline Squares(const Columns& columns, const Columns& own_run)
    {
#pragma unroll
        for (int c = 0; c < CHANNELS; ++c) sums[c] = ZERO;
        if constexpr (WHOLE < 2) {
            add<FIRST, END, 1>(columns);
        } else {
            Total own[CHANNELS] = {};  // of the columns k with k % CHANNELS == c
#pragma unroll
            for (int at = 0; at < RUN; at += VECTOR)
#pragma unroll
                for (int c = 0; c < CHANNELS; ++c)
                    own_run.add(own[c], at, [=](int k) { return k % CHANNELS == c ? 1 : 0; });
#pragma unroll
            for (int run = 0; run < WHOLE; ++run)
#pragma unroll
                for (int c = 0; c < CHANNELS; ++c) {
                    // That is c + FIRST - run * RUN, which would be negative.
                    const int of = (c + FIRST + run * RUN * (CHANNELS - 1)) % CHANNELS;
                    sums[c] += run == 0 ? own[of] : __shfl_down_sync(0xffffffffu, own[of], run);
                }
            add<0, FIRST, -1>(columns);
            add<WHOLE * RUN, END, 1>(columns);
        }
    }

    // Add the columns from A to B - 1, each times WEIGHT.
    template <int A, int B, int WEIGHT>
    __device__ inline void add(const Columns& columns)
    {
#pragma unroll
        for (int at = A / VECTOR * VECTOR; at < B; at += VECTOR)
#pragma unroll
            for (int c = 0; c < CHANNELS; ++c)
                columns.add(sums[c], at, [=](int k) {
                    return A <= k && k < B && (k + FIRST * (CHANNELS - 1)) % CHANNELS == c ? WEIGHT : 0;
                });
    }
};

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
    return divide_round((int)(sum - ZERO), count);
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
    constexpr int radius = SIZE / 2, rest = radius % BATCH;
    const int shift = valid_shift(radius);
    const int rows = (g.last - g.first + gridDim.y - 1) / gridDim.y;
    const int top = min(g.first + (int)blockIdx.y * rows, g.last), end = min(top + rows, g.last);
    const int left = blockIdx.x * TILE, samples = min(TILE, g.out_width * CHANNELS - left);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, half = threadIdx.y;

    const int centre = left + shift * CHANNELS;  // source sample of the first result
    const Loader loader(source, g, centre - HALO + COLUMNS * (int)threadIdx.x, centre + samples + REACH,
                        top + shift - radius, end - 1 + shift + radius);
    // The sums of both halves' first squares but the last rows, which are different ones.
    const int middle = (top + end) / 2;
    const int first = middle + shift - (half == 0 ? 0 : radius);
    ColumnSums sums;
    Batch batch = loader.load<rest>(first, 1, true);
#pragma unroll 1
    for (int done = rest; done < radius; done += BATCH) {
        const Batch next = loader.load(first + done, 1, true);  // on its way while others are added
        add(sums, batch);
        batch = next;
    }
    add(sums, batch);
    ColumnSums* const exchange = (ColumnSums*)memory;
    exchange[half * HALF_BLOCK + threadIdx.x] = sums;
    __syncthreads();
    sums.add(exchange[(1 - half) * HALF_BLOCK + threadIdx.x]);
    __syncthreads();

    Column* const column = memory[half] + place(COLUMNS * threadIdx.x);
    const int down = half == 0 ? 1 : -1, last = half == 0 ? end - 1 : top;
    Change change;
    int y = half == 0 ? middle : middle - 1;
    if (PREFETCH) change.load(loader, y + shift, down);
    for (; (last - y) * down >= 0; y += STEP * down) {
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
            __syncwarp();  // now nobody needs the columns any more
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
