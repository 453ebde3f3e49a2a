// Sums over SIZE x SIZE squares for the level *tuned*, at a cost that hardly depends on SIZE.
//
// A block of 8 warps walks down a strip of the image, 8 rows at a time:
//
// 1. Each thread keeps the sums of 4 neighbouring columns over SIZE rows: it adds the row that enters the
//    square and takes off the one that has left. The sums of the 8 rows go to shared memory.
// 2. Each warp takes one of the 8 rows, each lane RUN neighbouring samples of it: it adds up SIZE
//    columns once, and then slides on, adding the column that enters and taking off the one that has left.
// 3. The warp's results pass through shared memory, so that they leave in whole lines.
//
// 8-bit rows for the next step 1 are being read during step 2.
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
// Blocks that have to fit a multiprocessor at a time.
#ifndef BLOCKS
#define BLOCKS 2
#endif

constexpr int STEP = 8;       // rows at a time, and warps of a block
constexpr int RUN = 32;       // samples along which a lane slides
constexpr int BATCH = SAMPLE_BITS == 32 ? 4 : 8;  // rows that a thread loads at a time
constexpr bool PREFETCH = SAMPLE_BITS == 8;  // wider samples would take too many registers
constexpr int LOADED = 1024;  // columns of a block: 4 a thread
constexpr int TILE = TILE_COLUMNS * CHANNELS;
constexpr int REACH = SIZE / 2 * CHANNELS;
// Columns on the left of a tile. Where the tile begins at a multiple of 4 columns so do its loads.
constexpr int HALO = BORDER == BORDER_VALID ? REACH : (REACH + 3) / 4 * 4;
constexpr int CELLS = SIZE * SIZE;
static_assert(TILE % RUN == 0 && HALO + TILE + REACH <= LOADED, "the tile does not fit the block");

// Quad: four samples as they are loaded. Column: the sum of a column in shared memory. Total: the sum of
// a square. ColumnSums: the sums of a thread's four columns.
#if SAMPLE_BITS == 8
typedef unsigned Quad;
typedef unsigned short Column;
typedef int Total;
// A sum below 2^23 in the low bits of 2^23 is a float without being converted.
constexpr Total ZERO = 0x4b000000;
__device__ inline Quad make_quad(Sample a, Sample b, Sample c, Sample d)
{
    return a | b << 8 | c << 16 | (unsigned)d << 24;
}
__device__ inline float to_float(Total sum) { return __int_as_float(sum) - 8388608.0f; }

// Four columns in 16 bits each; no column exceeds 99 * 255. They lie in the order 0, 2, 1, 3, as masks of
// 16 bits leave them, and the even ones are what remains of the whole words without the odd ones.
struct ColumnSums {
    unsigned words = 0, odd = 0;

    __device__ inline void add(Quad q)
    {
        words += q;
        odd += __byte_perm(q, 0, 0x4341);
    }
    __device__ inline void subtract(Quad q)
    {
        words -= q;
        odd -= __byte_perm(q, 0, 0x4341);
    }
    __device__ inline void store(Column* to) const { *(uint2*)to = make_uint2(words - (odd << 8), odd); }
};
#else
#if SAMPLE_BITS == 16
typedef uint2 Quad;
typedef unsigned Column;
typedef unsigned Total;
typedef unsigned Exact;
__device__ inline Quad make_quad(Sample a, Sample b, Sample c, Sample d)
{
    return make_uint2(a | (unsigned)b << 16, c | (unsigned)d << 16);
}
__device__ inline uint4 samples_of(Quad q)
{
    return make_uint4(q.x & 0xffff, q.x >> 16, q.y & 0xffff, q.y >> 16);
}
#else
// Doubles do not drift. A column is rounded once, so that what enters a square is what leaves it.
typedef float4 Quad;
typedef float Column;
typedef double Total;
typedef double Exact;
__device__ inline Quad make_quad(Sample a, Sample b, Sample c, Sample d) { return make_float4(a, b, c, d); }
__device__ inline float4 samples_of(Quad q) { return q; }
#endif
constexpr Total ZERO = 0;

struct ColumnSums {
    Exact a = 0, b = 0, c = 0, d = 0;

    __device__ inline void add(Quad q)
    {
        const auto s = samples_of(q);
        a += s.x;
        b += s.y;
        c += s.z;
        d += s.w;
    }
    __device__ inline void subtract(Quad q)
    {
        const auto s = samples_of(q);
        a -= s.x;
        b -= s.y;
        c -= s.z;
        d -= s.w;
    }
    __device__ inline void store(Column* to) const
    {
#if SAMPLE_BITS == 16
        *(uint4*)to = make_uint4(a, b, c, d);
#else
        *(float4*)to = make_float4((Column)a, (Column)b, (Column)c, (Column)d);
#endif
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
    __device__ inline Sample get(int k) const { return __uint_as_float(words[k]); }
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
    __device__ inline Sample get(int k) const
    {
        return (Sample)(words[k * SAMPLE_BITS / 32] >> k * SAMPLE_BITS % 32);
    }
#endif
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
    Quad rows[BATCH];
};

// Four columns of BATCH rows from row y on, sample by sample, borders applied: -1 stands for columns of
// zeros, and no row below `bottom` is needed. Not inlined: it is long, and few warps call it.
__device__ __noinline__ Batch gather(const Sample* source, Geometry g, int4 columns, int y, int bottom)
{
    const int at[4] = {columns.x, columns.y, columns.z, columns.w};
    int inside[BATCH];
#pragma unroll
    for (int i = 0; i < BATCH; ++i) inside[i] = border_index(min(y + i, bottom), g.height);
    Batch batch;
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
        const Sample* row = source + source_offset(g, max(inside[i], 0));
        Sample samples[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) samples[k] = (inside[i] | at[k]) < 0 ? 0 : row[at[k]];
        batch.rows[i] = make_quad(samples[0], samples[1], samples[2], samples[3]);
    }
    return batch;
}

// Loads the four columns of a thread.
struct Loader {
    const Sample* source;
    const Geometry& g;
    int x;         // of the first one, as a sample of the row
    int4 columns;  // where they are found
    int bottom;    // the last row needed
    bool aligned;  // each thread of the warp can load its columns as a Quad

    __device__ inline Loader(const Sample* source, const Geometry& g, int x, int bottom)
        : source(source), g(g), x(x), bottom(bottom)
    {
        const int pitch = g.width * CHANNELS;
        aligned = __all_sync(0xffffffffu, pitch % 4 == 0 && 0 <= x && x + 4 <= pitch);
        columns = make_int4(place(x), place(x + 1), place(x + 2), place(x + 3));
    }

    // The sample of a row that stands for its sample i, or -1 for zero.
    __device__ inline int place(int i) const
    {
        const int pixel = i >= 0 ? i / CHANNELS : -1 - (-1 - i) / CHANNELS;
        const int inside = border_index(pixel, g.width);
        return inside < 0 ? -1 : inside * CHANNELS + i - pixel * CHANNELS;
    }

    // Whether rows `top` to `end` - 1 can be read as they lie in memory.
    __device__ inline bool plain(int top, int end) const
    {
        return aligned && top >= max(0, g.source_row) && end <= min(bottom + 1, g.height);
    }

    // Plain rows from y on; `again` if they will be needed again.
    __device__ inline Batch read(int y, bool again) const
    {
        const int pitch = g.width * CHANNELS;
        const Sample* from = source + (size_t)(y - g.source_row) * pitch + x;
        Batch batch;
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
            const Quad* at = (const Quad*)(from + (size_t)(unsigned)(i * pitch));
            batch.rows[i] = again ? __ldg(at) : __ldcs(at);
        }
        return batch;
    }

    __device__ inline Batch gather(int y) const { return ::gather(source, g, columns, y, bottom); }
};

// The rows that enter and leave the squares around rows y to y + BATCH - 1.
struct Change {
    Batch entering, leaving;

    __device__ inline void load(const Loader& loader, int y)
    {
        if (loader.plain(y - SIZE / 2, y + SIZE / 2 + BATCH)) {
            entering = loader.read(y + SIZE / 2, true);
            leaving = loader.read(y - SIZE / 2, false);
        } else {
            entering = loader.gather(y + SIZE / 2);
            leaving = loader.gather(y - SIZE / 2);
        }
    }

    // Let `sums`, which lack the last row of the square around row y, move down, and store them on the way.
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

// How many of the cells within SIZE / 2 of i lie in [0, n).
__device__ inline int cells_inside(int i, int n)
{
    return min(i + SIZE / 2, n - 1) - max(i - SIZE / 2, 0) + 1;
}

// Slide along the run of output samples x, x + 1... of row y. `finish(sum, pixel)` makes a result from the
// sum over all cells and the source sample in the middle, `finish(sum, pixel, count)` from that over fewer.
template <typename Finish>
__device__ inline void slide(
    const Columns& columns, Run& results, const Run& pixels, const Geometry& g, int y, int x, Finish finish)
{
    bool whole = true;
#if BORDER == BORDER_REDUCE
    const int down = cells_inside(y, g.height);
    whole = down == SIZE && cells_inside(x / CHANNELS, g.width) == SIZE &&
            cells_inside((x + RUN - 1) / CHANNELS, g.width) == SIZE;
#endif
    Total sums[CHANNELS];
#pragma unroll
    for (int c = 0; c < CHANNELS; ++c) sums[c] = ZERO;
    constexpr int first = HALO - REACH, end = first + SIZE * CHANNELS;
#pragma unroll
    for (int at = first / VECTOR * VECTOR; at < end; at += VECTOR)
#pragma unroll
        for (int c = 0; c < CHANNELS; ++c)
            columns.add(sums[c], at, [=](int k) {
                return first <= k && k < end && (k - first) % CHANNELS == c ? 1 : 0;
            });
    asm volatile("" ::: "memory");  // rather read columns again than keep them in registers
#pragma unroll
    for (int pair = 0; pair < RUN; pair += 2) {
        Total around[2];
#pragma unroll
        for (int k = pair; k < pair + 2; ++k) {
            Total& sum = sums[k % CHANNELS];
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

// The filter whose results `finish` makes; PIXELS if it wants to know the source sample.
template <bool PIXELS, typename Finish>
__device__ inline void box_filter(const Sample* source, Sample* output, const Geometry& g, Finish finish)
{
    __shared__ __align__(16) Column memory[STEP * ROW];
    const int shift = valid_shift(SIZE / 2);
    const int rows = (g.last - g.first + gridDim.y - 1) / gridDim.y;
    const int top = min(g.first + (int)blockIdx.y * rows, g.last), end = min(top + rows, g.last);
    const int left = blockIdx.x * TILE, samples = min(TILE, g.out_width * CHANNELS - left);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Column* const mine = memory + warp * ROW;
    Sample* const results = (Sample*)mine;

    const int centre = left + shift * CHANNELS;  // source sample of the first result
    const Loader loader(
        source, g, centre - HALO + 4 * (int)threadIdx.x, end - 1 + shift + SIZE / 2);
    ColumnSums sums;
    // The first square but its last row.
    const int first = top + shift - SIZE / 2;
    const auto add = [&](int y, int rows) {
        const Batch batch = loader.plain(y, y + BATCH) ? loader.read(y, true) : loader.gather(y);
#pragma unroll
        for (int i = 0; i < rows; ++i) sums.add(batch.rows[i]);
    };
    constexpr int rest = (SIZE - 1) % BATCH;
#pragma unroll 1
    for (int done = rest; done < SIZE - 1; done += BATCH) add(first + done, BATCH);
    if (rest > 0) add(first, rest);
    Column* const column = memory + place(4 * threadIdx.x);
    Change change;
    if (PREFETCH) change.load(loader, top + shift);
    for (int y = top; y < end; y += STEP) {
#pragma unroll
        for (int i = 0; i < STEP; i += BATCH) {
            if (!PREFETCH) change.load(loader, y + i + shift);
            change.apply(sums, column + i * ROW);
        }
        __syncthreads();
        if (PREFETCH && y + STEP < end) change.load(loader, y + STEP + shift);
        if (y + warp < end) {
            const bool active = lane * RUN < samples;
            Run run;
            if (active) {
                Run pixels;
                if (PIXELS) {
                    const Sample* at = source + source_offset(g, y + warp + shift) + centre + lane * RUN;
                    load(pixels, at, samples - lane * RUN);
                }
                slide(Columns{mine + lane * PITCH}, run, pixels, g, y + warp + shift,
                      centre + lane * RUN, finish);
            }
            __syncwarp();  // now nobody needs the columns any more
            if (active) {
#pragma unroll
                for (int i = 0; i < sizeof(Run) / 16; ++i)
                    ((uint4*)(results + lane * RUN))[i] = make_uint4(
                        run.words[4 * i], run.words[4 * i + 1], run.words[4 * i + 2], run.words[4 * i + 3]);
            }
            __syncwarp();
            Sample* to = output + output_offset(g, y + warp, 0) + left;
            // An int: of a size_t ptxas 13.0.88 loses the upper half, a register that `gather` overwrites.
            const int vectors = samples * (int)sizeof(Sample) / 16;
            if (g.out_width * CHANNELS * sizeof(Sample) % 16 == 0) {
                for (int i = lane; i < vectors; i += 32)
                    __stcs((uint4*)to + i, ((const uint4*)results)[i]);
            } else {
                for (int i = lane; i < samples; i += 32) to[i] = results[i];
            }
        }
        __syncthreads();
    }
}

#endif
