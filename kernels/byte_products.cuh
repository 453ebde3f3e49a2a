// Rows of bytes for the tensor cores, for the tuned kernels of masks.
//
// A warp takes 128 samples of a row and goes down the rows of its block's tile. One product makes 128 results: a
// matrix of weights times one of cells, whose 8 columns are segments of the row. Sums are whole numbers and exact.
// There are three ways to fill the matrices, by SAMPLES, from a result to its first cell:
//
//   plain   16 results side by side share 32 cells, or several times as many. The weights of result r stand r cells
//           further right than those of result 0, with zeros around. SIZE products for a row of results.
//   paired  up to 4: 8 results side by side and the 8 below them share two rows of 16 cells, so that fewer of the
//           weights are zeros. (SIZE + 1) / 2 products for two rows of 64 results.
//   sparse  5 to 7: 16 results share two rows of 32 cells. Of two cells 16 apart no result has both, so that half
//           of the weights are zeros, which the tensor cores leave out. (SIZE + 1) / 2 products for a row of results.
//
// The kernels are bound by the rate at which instructions are issued, not by memory: positions move on by additions,
// whole groups of rows are written without tests, and nothing is copied that no result needs.
//
// Source rows come through shared memory, some rows ahead and without registers that wait for them: each warp has a
// ring of rows of its own, so that warps never wait for each other. They go through the level-1 cache, as the rows of
// neighbouring warps overlap.
//
// Cells outside the image are those that they are folded to: rows are read there, and the cells beside a row are
// written into the ring, if FOLDS_COLUMNS. The rim that is left is computed by the code of the other levels.
//
// Launch: blocks of TUNED_THREADS x 1. The grid's height decides how many rows a block goes down.
#ifndef KERNELSCOPE_BYTE_PRODUCTS
#define KERNELSCOPE_BYTE_PRODUCTS
#include "correlation.cuh"
#include "tuned_rows.cuh"

#ifndef CHANNELS
#define CHANNELS 1
#endif
// Digits of the weights, to the base 256, from -128 to 127 each.
#ifndef DIGITS
#define DIGITS 1
#endif
// Whether rows of the source consist of 16 samples, which are then copied at once.
#ifndef WHOLE_SIXTEENS
#define WHOLE_SIXTEENS 1
#endif
// Whether the mask is the outer product of a row with itself, of which only that row is multiplied.
#ifndef SEPARABLE
#define SEPARABLE 0
#endif

// The products are those of cards since 2020; older ones take the code of other types.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define TENSOR_CORES 1
#else
#define TENSOR_CORES 0
#endif

// Sparse products whose pairs are in order have a name of their own since CUDA 12.5, as others may be slower.
#if defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1205
#define SPARSE_PRODUCT "mma.sp"
#else
#define SPARSE_PRODUCT "mma.sp::ordered_metadata"
#endif

namespace products {

constexpr int SAMPLES = RADIUS * CHANNELS;  // from a result to its first cell
constexpr bool PAIRED = !SEPARABLE && SAMPLES <= 4;
constexpr bool SPARSE = !SEPARABLE && !PAIRED && SAMPLES < 8;

constexpr int WARP_SAMPLES = 128;
constexpr int RESULTS = PAIRED ? 8 : 16, CELLS = PAIRED ? 16 : 32;  // of a segment, in a row
constexpr int UNIT = PAIRED ? 4 : 8;                                // cells of a lane, side by side
// Cells begin BEFORE samples before the results, at a whole unit.
constexpr int BEFORE = BORDER == BORDER_VALID ? 0 : (SAMPLES + UNIT - 1) / UNIT * UNIT;
constexpr int AFTER = BORDER == BORDER_VALID ? 2 * SAMPLES : SAMPLES;
constexpr int CHUNKS = (BEFORE + RESULTS + AFTER + CELLS - 1) / CELLS;
constexpr int WORDS = 2 * CHUNKS;  // of a lane in a row; if PAIRED, of the left and of the right half

constexpr int AT_ONCE = PAIRED || SIZE > 9 ? 8 : 4;  // rows that are copied and computed together
constexpr int GROUPS = SIZE <= 9 ? 4 : 3;            // of them in a ring
constexpr int PIECE = WHOLE_SIXTEENS ? 16 : 4;       // samples that a lane copies
constexpr int START = (BEFORE + PIECE - 1) / PIECE * PIECE;  // where a row of the ring begins, before the results
constexpr int END = WARP_SAMPLES - RESULTS - BEFORE + CHUNKS * CELLS;
// Samples of a row of the ring; of pieces that do not begin where the samples do, there is one more.
constexpr int PITCH = (START + END + PIECE - 1) / PIECE * PIECE + (WHOLE_SIXTEENS ? 0 : PIECE);
constexpr int PIECES = PITCH / PIECE;

// Whether rows outside the image are read where they are folded to; in place of others there would be zeros.
constexpr bool FOLDED = BORDER == BORDER_REFLECT || BORDER == BORDER_MIRROR || BORDER == BORDER_NEAREST || BORDER == BORDER_WRAP;

// Whether no rim is left where borders are folded. In the loops of large separable masks, which have the fewest
// registers to spare, the test for it takes longer than their rim: 9x9 0.236 ms and not 0.230, 15x15 0.51 and not
// 0.46, for 16384 x 16384 samples on an H100. Other masks gain 1 to 4 %, in small pictures up to a fourth.
constexpr bool FOLDS_COLUMNS = FOLDED && WHOLE_SIXTEENS && (!SEPARABLE || SIZE <= 7);

// A place in shared memory. The compiler cannot see where a `place_of` comes from, so it has to keep it: it would make
// it again and again of the thread's index.
#ifdef __CUDA_ARCH__
typedef unsigned Place;
__device__ inline Place place_of(Sample* at)
{
    Place place = (unsigned)__cvta_generic_to_shared(at);
    asm volatile("" : "+r"(place));
    return place;
}
__device__ inline unsigned word_at(Place at)
{
    unsigned word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(at));
    return word;
}
__device__ inline uint2 words_at(Place at)
{
    uint2 words;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(words.x), "=r"(words.y) : "r"(at));
    return words;
}
#else
typedef Sample* Place;
__device__ inline Place place_of(Sample* at) { return at; }
__device__ inline unsigned word_at(Place at) { return *(const unsigned*)at; }
__device__ inline uint2 words_at(Place at) { return *(const uint2*)at; }
#endif

// Start to copy a piece from global into shared memory.
__device__ inline void start_copy(Place to, const Sample* from)
{
#ifdef __CUDA_ARCH__
#if TENSOR_CORES
#if WHOLE_SIXTEENS
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" : : "r"(to), "l"(from) : "memory");
#else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" : : "r"(to), "l"(from) : "memory");
#endif
#endif
#elif WHOLE_SIXTEENS
    *(uint4*)to = __ldg((const uint4*)from);
#else
    *(unsigned*)to = __ldg((const unsigned*)from);
#endif
}

// Close a group of copies, and wait until all but the last few groups have come.
__device__ inline void close_group()
{
#if defined(__CUDA_ARCH__) && TENSOR_CORES
    asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}

template <int PENDING>
__device__ inline void wait_for_copies()
{
#if defined(__CUDA_ARCH__) && TENSOR_CORES
    asm volatile("cp.async.wait_group %0;" : : "n"(PENDING) : "memory");
#endif
    __syncwarp();
}

// Where the samples of this warp begin.
__device__ inline int left_of_warp()
{
    return (int)(blockIdx.x * TUNED_THREADS + threadIdx.x) / 32 * WARP_SAMPLES;
}

// The samples of a source row that pieces have, wherever in memory it begins: a piece has to end inside the row.
__device__ inline int samples_of_row(const Geometry& g)
{
    const int samples = g.width * CHANNELS;
    return WHOLE_SIXTEENS ? samples : max(samples / PIECE * PIECE - PIECE, 0);
}

// The part of a tile that is computed here: samples whose cells need no border but a folded one.
__device__ inline Part part_of(const Part& tile, const Geometry& g)
{
    const int before = RADIUS - valid_shift(RADIUS), after = RADIUS + valid_shift(RADIUS);
    Part part = tile;
    if (!FOLDED) {
        part.top = clamp(before, tile.top, tile.bottom);
        part.bottom = clamp(g.height - after, part.top, tile.bottom);
    }
    if (!FOLDS_COLUMNS) {
        part.left = clamp(before * CHANNELS, tile.left, tile.right);
        part.right = clamp(samples_of_row(g) - after * CHANNELS, part.left, tile.right);
    }
    return part;
}

// sums += weights x cells. The lane 4 g + t has rows g and g + 8 of the weights and of the sums, column g of the cells.
__device__ inline void multiply(int (&sums)[4], const uint4& weights, unsigned low, unsigned high)
{
#if TENSOR_CORES
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(weights.x), "r"(weights.y), "r"(weights.z), "r"(weights.w), "r"(low), "r"(high));
#endif
}

// The same of 64 cells, of two rows, with weights for two of each four; `places` has which two. On an H100 it takes
// 8.4 cycles of a quarter of a multiprocessor, the one above 6.5.
__device__ inline void multiply_sparse(
    int (&sums)[4], const uint4& weights, unsigned places, const unsigned (&upper)[WORDS],
    const unsigned (&lower)[WORDS])
{
#if TENSOR_CORES
    asm(SPARSE_PRODUCT ".sync.aligned.m16n8k64.row.col.s32.s8.u8.s32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(weights.x), "r"(weights.y), "r"(weights.z), "r"(weights.w), "r"(upper[0]), "r"(upper[1]), "r"(lower[0]),
          "r"(lower[1]), "r"(places));
#endif
}

// Two whole numbers as bytes, saturated, below the lower half of `above`.
__device__ inline unsigned saturated(int first, int second, unsigned above)
{
    unsigned bytes;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(second), "r"(first), "r"(above));
    return bytes;
}

// The lowest bytes of a lane's four results, neighbours side by side.
__device__ inline unsigned lowest_bytes(const unsigned (&results)[4])
{
    const unsigned near = __byte_perm(results[0], results[2], 0x0040);
    const unsigned far = __byte_perm(results[1], results[3], 0x0040);
    return __byte_perm(near, far, 0x5410);
}

// The rows of a warp on their way from the source, a group of AT_ONCE after the other.
struct Ring {
    static constexpr int COPIES = (AT_ONCE * PIECES + 31) / 32;  // of a lane
    static constexpr int GROUP = AT_ONCE * PITCH, LENGTH = GROUPS * GROUP;

    const Sample* source;
    const Geometry& g;
    int first, last;      // rows that are needed; in place of others these are copied once more
    int lower, upper;     // a group that begins at these rows, or between, is copied as it lies in memory
    int coming;           // the row that is copied next
    int left, lane;
    int from, before;     // where the oldest group is, and the one before
    Place cells, pieces;  // of this lane
    const Sample* at[COPIES];  // what this lane's pieces are copied from, in such a group
    unsigned step;             // and how far the next group is
    Sample* memory;
    bool on_rim;  // some of the warp's cells lie beside the image

    // For the results of `part` from sample `left` on. The last of the first `warm` rows is the one before the
    // window of the first results is complete.
    __device__ inline Ring(
        Sample* memory, const Sample* source, const Geometry& g, const Part& part, int warm, int left, int lane)
        : source(source), g(g), first(part.top + valid_shift(RADIUS) - RADIUS),
          last(part.bottom - 1 + valid_shift(RADIUS) + RADIUS), coming(first + SIZE - 1 - warm), left(left),
          lane(lane), from(0), before((GROUPS - 1) * GROUP), memory(memory)
    {
        on_rim = left < SAMPLES || left + WARP_SAMPLES + SAMPLES > g.width * CHANNELS;
        lower = g.source_row;
        upper = min(last, g.height - 1) - (AT_ONCE - 1);
        step = AT_ONCE * g.width * CHANNELS;
        // Registers, in place of instructions that make them again for each group.
        asm volatile("" : "+r"(step), "+r"(this->lane), "+r"(lower), "+r"(upper));
        // Segments 0, 4, 1, 5 and so on: so half a warp's pairs of results lie side by side.
        const int segment = PAIRED ? lane / 4 : lane / 4 % 2 * 4 + lane / 8;
        cells = place_of(memory + START - BEFORE + segment * RESULTS + lane % 4 * (SPARSE ? 4 : UNIT));
        pieces = place_of(memory + lane * PIECE);
#pragma unroll
        for (int i = 0; i < COPIES; ++i) {
            const int n = lane + 32 * i;
            const long long row = coming + n / PIECES - g.source_row;
            at[i] = source + (row * g.width * CHANNELS + column(n));
        }
#pragma unroll 1
        for (int i = 0; i < GROUPS - 1; ++i) copy(i * GROUP);
    }

    // Where piece n begins in the row. Pieces beside the row belong to no result that is computed here, or are
    // written by `fold`; others are copied in their place.
    __device__ inline int column(int n) const
    {
        return clamp(left - START + n % PIECES * PIECE, 0, (g.width * CHANNELS / PIECE - 1) * PIECE);
    }

    __device__ inline const Sample* row(int y) const
    {
        const int needed = clamp(y, first, last);
        return source + source_offset(g, FOLDED ? border_index(needed, g.height) : needed);
    }

    // Row i of the oldest group.
    __device__ inline const Sample* oldest(int i) const { return row(coming - (GROUPS - 1) * AT_ONCE + i); }

    // By how many samples pieces begin before the columns that they are for.
    static __device__ inline int shift_of(const Sample* at) { return WHOLE_SIXTEENS ? 0 : (size_t)at % PIECE; }

    // Start to copy the next group.
    __device__ inline void copy(int to)
    {
        if (lower <= coming && coming <= upper) {
#pragma unroll
            for (int i = 0; i < COPIES; ++i) {
                if ((i + 1) * 32 <= AT_ONCE * PIECES || this->lane < AT_ONCE * PIECES - 32 * i)
                    start_copy(pieces + to + 32 * i * PIECE, at[i] - shift_of(at[i]));
            }
        } else if (coming <= last) {
#pragma unroll 1
            for (int i = 0; i < COPIES; ++i) {
                const int n = lane + 32 * i;
                if (n >= AT_ONCE * PIECES) break;
                const Sample* from = row(coming + n / PIECES) + column(n);
                start_copy(pieces + to + 32 * i * PIECE, from - shift_of(from));
            }
        }
        close_group();
#pragma unroll
        for (int i = 0; i < COPIES; ++i) at[i] += step;
        coming += AT_ONCE;
    }

    // Wait for the oldest group.
    __device__ inline void wait()
    {
        wait_for_copies<GROUPS - 2>();
        if (FOLDS_COLUMNS && on_rim) fold();
    }

    // Write the cells beside the image into the rows of the oldest group.
    __device__ inline void fold()
    {
        const int samples = g.width * CHANNELS;
#pragma unroll 1
        for (int n = lane; n < AT_ONCE * 2 * SAMPLES; n += 32) {
            const int i = n / (2 * SAMPLES), c = n % (2 * SAMPLES);
            const int column = c < SAMPLES ? c - SAMPLES : samples + c - SAMPLES, place = START + column - left;
            if (place < 0 || place >= PITCH) continue;
            // Of numbers that are not negative, whose quotients are rounded down.
            const int x = (column + SAMPLES) / CHANNELS - RADIUS, channel = (column + SAMPLES) % CHANNELS;
            memory[from + i * PITCH + place] = __ldg(oldest(i) + border_index(x, g.width) * CHANNELS + channel);
        }
        __syncwarp();
    }

    // A lane's words of row i of the oldest group. The order of cells does not matter where weights have the same:
    // of each chunk, or of each half if PAIRED, those side by side; if SPARSE, pairs of neighbours and those 16 cells
    // further right.
    __device__ inline void read(unsigned (&words)[WORDS], int i) const
    {
        const Place here = cells + from + i * PITCH;
#if WHOLE_SIXTEENS
        const unsigned shift = 0;
#else
        const unsigned shift = 8 * shift_of(oldest(i));
#endif
        if (PAIRED) {
            words[0] = shifted_word(here, shift);
            words[1] = shifted_word(here + WARP_SAMPLES / 2, shift);
        } else if (SPARSE) {
            const unsigned near = shifted_word(here, shift), far = shifted_word(here + 16, shift);
            words[0] = __byte_perm(near, far, 0x5410);
            words[1] = __byte_perm(near, far, 0x7632);
        } else {
#pragma unroll
            for (int c = 0; c < CHUNKS; ++c) {
                const Place at = here + c * CELLS;
#if WHOLE_SIXTEENS
                const uint2 both = words_at(at);
                words[2 * c] = both.x;
                words[2 * c + 1] = both.y;
#else
                const unsigned middle = word_at(at + 4);
                words[2 * c] = __funnelshift_r(word_at(at), middle, shift);
                words[2 * c + 1] = __funnelshift_r(middle, word_at(at + 8), shift);
#endif
            }
        }
    }

    static __device__ inline unsigned shifted_word(Place at, unsigned shift)
    {
        return WHOLE_SIXTEENS ? word_at(at) : __funnelshift_r(word_at(at), word_at(at + 4), shift);
    }

    // Give the place of the group before the oldest to the next one.
    __device__ inline void go_on()
    {
        copy(before);
        before = from;
        from = from + GROUP == LENGTH ? 0 : from + GROUP;
    }
};

// Where a lane's four sums go: 0 and 2 are neighbours, and so are 1 and 3, of another segment. Two lanes exchange them,
// so that each has four neighbours. If PAIRED, half of the lanes have the row below, and of two sets of sums the second
// is half of the warp's samples further right; else each has the next row.
struct Writer {
    Sample* at;
    unsigned row, select;
    int begin, end;  // which of the four are inside the part
    bool whole;      // all of this warp, as words

    __device__ inline Writer(Sample* output, const Geometry& g, const Part& part, int y, int left, int lane)
        : row(g.out_width * CHANNELS)
    {
        const int odd = lane / 4 % 2;
        int k = left;
        if (PAIRED) {
            k += (lane % 4 * 2 + odd) * RESULTS + lane / 8 % 2 * 4;
            y += lane / 16;
        } else {
            k += lane % 4 * RESULTS + lane / 8 * 4 + odd * (WARP_SAMPLES / 2);
        }
        at = output + output_offset(g, y, 0) + k;
        begin = part.left - k;
        end = part.right - k;
        select = odd ? 0x3276 : 0x5410;
        whole = row % 4 == 0 && part.left <= left && left + WARP_SAMPLES <= part.right;
        asm volatile("" : "+r"(select), "+r"(row));
    }

    // Write those of four results, `beside` samples further right, that are inside the part.
    __device__ inline void write_some(Sample* to, unsigned four, int beside) const
    {
        if (row % 4 == 0 && begin <= beside && beside + 4 <= end) {
            *(unsigned*)to = four;
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (begin <= beside + i && beside + i < end) to[i] = four >> 8 * i;
        }
    }

    // Write AT_ONCE rows of the lanes' results, pairs in both halves of `pairs`, and go down; the first `rows` count.
    __device__ inline void next(const unsigned (&pairs)[AT_ONCE], int rows)
    {
        unsigned fours[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i)
            fours[i] = __byte_perm(pairs[i], __shfl_xor_sync(~0u, pairs[i], 4), select);
        if (whole && rows >= AT_ONCE) {
#pragma unroll
            for (int i = 0; i < AT_ONCE; i += PAIRED ? 2 : 1) {
                Sample* to = at + (size_t)row * i;
                *(unsigned*)to = fours[i];
                if (PAIRED) *(unsigned*)(to + WARP_SAMPLES / 2) = fours[i + 1];
            }
        } else {
#pragma unroll
            for (int i = 0; i < AT_ONCE; i += PAIRED ? 2 : 1) {
                if (i + (PAIRED ? (int)threadIdx.x % 32 / 16 : 0) >= rows) continue;
                Sample* to = at + (size_t)row * i;
                write_some(to, fours[i], 0);
                if (PAIRED) write_some(to + WARP_SAMPLES / 2, fours[i + 1], WARP_SAMPLES / 2);
            }
        }
        at += (size_t)row * AT_ONCE;
    }
};

// Write the tile of the block by `descend`, and the rim of the image by the code of the other levels.
template <typename Descend>
__device__ inline void compute(const Sample* source, Sample* output, const Geometry& g, Descend descend)
{
    __shared__ uint4 memory[TUNED_THREADS / 32][Ring::LENGTH / 16];
    const Part all{g.first, g.last, 0, g.out_width * CHANNELS};
    const Part part = part_of(tile_of_block(g), g);
    const int left = left_of_warp();
    if (left < part.right && left + WARP_SAMPLES > part.left && part.top < part.bottom)
        descend((Sample*)memory[threadIdx.x / 32], part, left, threadIdx.x % 32);
    // Most blocks have none of the rim's samples, which are shared out in the order of blocks.
    const Part inner = part_of(all, g);
    const long long rim = (long long)all.right * (all.bottom - all.top)
                          - (long long)(inner.right - inner.left) * (inner.bottom - inner.top);
    if ((long long)(blockIdx.y * gridDim.x + blockIdx.x) * TUNED_THREADS < rim)
        compute_around<RADIUS>(source, output, g, inner, Correlation{constant_weights});
}

}  // namespace products

#endif
