// The geometry of a block of `box.cuh`, and how its threads load rows of the source.
//
// A thread has COLUMNS neighbouring samples of a row, packed in words. Inside the image it loads them as
// vectors or as words that lie anywhere; at a border each for itself (`Loader`, `Way`).
#ifndef KERNELSCOPE_BOX_LOAD
#define KERNELSCOPE_BOX_LOAD
#include "common.cuh"

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

// Fixed for all pictures, and known to the plan: threads of half a block, columns of a thread, and samples
// along which a lane slides.
#ifndef BOX_HALF_BLOCK
#define BOX_HALF_BLOCK 128
#endif
#ifndef BOX_COLUMNS
#define BOX_COLUMNS 8
#endif
#ifndef BOX_RUN
#define BOX_RUN 32
#endif
#ifndef BOX_STEP  // rows at a time
#define BOX_STEP (SAMPLE_BITS == 8 ? 8 : 4)
#endif

constexpr int HALF_BLOCK = BOX_HALF_BLOCK, COLUMNS = BOX_COLUMNS, RUN = BOX_RUN, STEP = BOX_STEP;
constexpr int BLOCKS = 2;                            // that have to fit a multiprocessor at a time
constexpr int BATCH = SAMPLE_BITS == 32 ? 2 : STEP;  // rows that a thread loads at a time
constexpr bool PREFETCH = SAMPLE_BITS == 8;          // wider samples would take too many registers
constexpr int AT_ONCE = 248 / SAMPLE_BITS;           // rows of a tile's first sums that a thread loads at a time
constexpr int WARPS = HALF_BLOCK / 32;               // of half a block
constexpr int LOADED = HALF_BLOCK * COLUMNS;         // columns of a block
constexpr int TILE = TILE_COLUMNS * CHANNELS;
constexpr int REACH = SIZE / 2 * CHANNELS;
// Columns on the left of a tile. Where the tile begins at a multiple of COLUMNS so do its loads.
constexpr int HALO = BORDER == BORDER_VALID ? REACH : (REACH + COLUMNS - 1) / COLUMNS * COLUMNS;
constexpr int CELLS = SIZE * SIZE;
static_assert(RUN * 32 == LOADED, "a warp takes a row of columns, a run a lane");
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

// Samples of one row that a thread loads.
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

#if SAMPLE_BITS == 8
typedef uint2 Vector;
#else
typedef uint4 Vector;
#endif

// Rows that a thread loads at a time; all are asked for before the first one is waited for.
template <int ROWS>
struct Rows {
    Samples rows[ROWS];
};
typedef Rows<BATCH> Batch;

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

    // Whether rows `first` to `last` can be read as they lie in memory.
    __device__ inline bool is_plain(int first, int last) const
    {
        return way == Way::VECTORS && first >= max(max(top, 0), g.source_row) &&
               last <= min(bottom, g.height - 1);
    }

    // ROWS rows y, y + down ... and zeros for others; `again` if they will be needed again.
    template <int ROWS = BATCH>
    __device__ inline Batch load(int y, int down, bool again) const
    {
        const int last = y + (ROWS - 1) * down;
        Batch batch;
        if (is_plain(min(y, last), max(y, last))) {
            read<ROWS>(batch, y, down, again);
            return batch;
        }
        if (way != Way::NONE) batch = gather(source, g, x, way, y, down, top, bottom);
#pragma unroll
        for (int i = ROWS; i < BATCH; ++i) batch.rows[i] = Samples();
        return batch;
    }

    // As they lie in memory.
    template <int ROWS, typename To>
    __device__ inline void read(To& batch, int y, int down, bool again) const
    {
        const ptrdiff_t pitch = (ptrdiff_t)down * g.width * CHANNELS;
        const Sample* row = source + (ptrdiff_t)(y - g.source_row) * g.width * CHANNELS + x;
#pragma unroll
        for (int i = 0; i < ROWS; ++i, row += pitch)
#pragma unroll
            for (int v = 0; v < sizeof(Samples) / sizeof(Vector); ++v) {
                const Vector* at = (const Vector*)row + v;
                ((Vector*)batch.rows[i].words)[v] = again ? __ldg(at) : __ldcs(at);
            }
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

#endif
