// Rows of bytes for the tensor cores, for the tuned kernels of masks.
//
// A warp takes 128 samples of a row and goes down the rows of its block's tile. An instruction makes all 128 results
// of it: 16 results side by side share 32 cells, and 8 such segments are the columns of a matrix of cells, which
// a matrix of weights is multiplied by. The weights of result r stand r cells further right than those of result 0,
// with zeros around. Sums are whole numbers and exact.
//
// Source rows come through shared memory, some rows ahead and without registers that wait for them: each warp has a
// ring of rows of its own, so that warps never wait for each other. They go through the level-1 cache, as the rows of
// neighbouring warps overlap.
//
// Rows outside the image are read where they are folded to. Columns are not: the rim is left to the code of the
// other levels.
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

// The products are those of cards since 2020; older ones take the code of other types.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define TENSOR_CORES 1
#else
#define TENSOR_CORES 0
#endif

namespace products {

constexpr int RESULTS = 16, SEGMENTS = 8, WARP_SAMPLES = RESULTS * SEGMENTS;
constexpr int CELLS = 32;                   // that the results of a segment share, or several times as many
constexpr int SAMPLES = RADIUS * CHANNELS;  // from a result to its first cell
constexpr int EIGHT = 8;                    // cells of a lane, side by side
// Cells begin BEFORE samples before the results, at a whole eight.
constexpr int BEFORE = BORDER == BORDER_VALID ? 0 : (SAMPLES + EIGHT - 1) / EIGHT * EIGHT;
constexpr int AFTER = BORDER == BORDER_VALID ? 2 * SAMPLES : SAMPLES;
constexpr int CHUNKS = (BEFORE + RESULTS + AFTER + CELLS - 1) / CELLS;

constexpr int AT_ONCE = SIZE <= 9 ? 4 : 8;      // rows that are copied and computed together
constexpr int GROUPS = SIZE <= 9 ? 4 : 3;       // of them in a ring
constexpr int PIECE = WHOLE_SIXTEENS ? 16 : 4;  // samples that a lane copies
constexpr int START = (BEFORE + PIECE - 1) / PIECE * PIECE;  // where a row of the ring begins, before the results
constexpr int END = WARP_SAMPLES - RESULTS - BEFORE + CHUNKS * CELLS;
// Samples of a row of the ring; of pieces that do not begin where the samples do, there is one more.
constexpr int PITCH = (START + END + PIECE - 1) / PIECE * PIECE + (WHOLE_SIXTEENS ? 0 : PIECE);
constexpr int PIECES = PITCH / PIECE;

// Start to copy a piece from global into shared memory.
__device__ inline void start_copy(Sample* to, const Sample* from)
{
#ifdef __CUDA_ARCH__
#if TENSOR_CORES
    const unsigned shared = (unsigned)__cvta_generic_to_shared(to);
#if WHOLE_SIXTEENS
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" : : "r"(shared), "l"(from) : "memory");
#else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" : : "r"(shared), "l"(from) : "memory");
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

// Whether rows outside the image are read where they are folded to; in place of others there would be zeros.
constexpr bool FOLDED = BORDER == BORDER_REFLECT || BORDER == BORDER_MIRROR || BORDER == BORDER_NEAREST || BORDER == BORDER_WRAP;

// The samples of a source row that pieces have, wherever in memory it begins: a piece has to end inside the row.
__device__ inline int samples_of_row(const Geometry& g)
{
    const int samples = g.width * CHANNELS;
    return WHOLE_SIXTEENS ? samples : max(samples / PIECE * PIECE - PIECE, 0);
}

// The part of a tile that is computed here: samples whose cells need no border but that of rows.
__device__ inline Part part_of(const Part& tile, const Geometry& g)
{
    const int before = RADIUS - valid_shift(RADIUS), after = RADIUS + valid_shift(RADIUS);
    Part part = tile;
    if (!FOLDED) {
        part.top = clamp(before, tile.top, tile.bottom);
        part.bottom = clamp(g.height - after, part.top, tile.bottom);
    }
    part.left = clamp(before * CHANNELS, tile.left, tile.right);
    part.right = clamp(samples_of_row(g) - after * CHANNELS, part.left, tile.right);
    return part;
}

// sums += weights x cells. The lane 4 g + t has rows g and g + 8 of the weights and of the sums, column g of the cells.
__device__ inline void multiply(int (&sums)[4], const uint4& weights, const uint2& cells)
{
#if TENSOR_CORES
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(weights.x), "r"(weights.y), "r"(weights.z), "r"(weights.w), "r"(cells.x), "r"(cells.y));
#endif
}

// Two whole numbers as bytes, saturated, below the lower half of `above`.
__device__ inline unsigned saturated(int first, int second, unsigned above)
{
    unsigned bytes;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(second), "r"(first), "r"(above));
    return bytes;
}

// The rows of a warp on their way from the source, a group of AT_ONCE after the other.
struct Ring {
    static constexpr int COPIES = (AT_ONCE * PIECES + 31) / 32;  // of a lane
    static constexpr int GROUP = AT_ONCE * PITCH, LENGTH = GROUPS * GROUP;

    Sample* memory;
    const Sample* source;
    const Geometry& g;
    int first, last;  // rows that are needed; in place of others these are copied once more
    int coming;       // the row that is copied next
    int from, to;     // where the oldest group is, and where the next one goes
    int columns[COPIES], lane;
    const Sample* cells;  // of this lane

    // For the results of `part` from sample `left` on. The last of the first `warm` rows is the one before the
    // window of the first results is complete.
    __device__ inline Ring(
        Sample* memory, const Sample* source, const Geometry& g, const Part& part, int warm, int left, int lane)
        : memory(memory), source(source), g(g), first(part.top + valid_shift(RADIUS) - RADIUS),
          last(part.bottom - 1 + valid_shift(RADIUS) + RADIUS), coming(first + SIZE - 1 - warm), from(0), to(0),
          lane(lane)
    {
        // Segments 0, 4, 1, 5 and so on: so half a warp's pairs of results lie side by side.
        const int segment = lane / 4 % 2 * 4 + lane / 8;
        cells = memory + START - BEFORE + segment * RESULTS + lane % 4 * EIGHT;
#pragma unroll
        for (int i = 0; i < COPIES; ++i) {
            // Pieces beside the row belong to no result that is computed here; others are copied in their place.
            const int piece = (lane + 32 * i) % PIECES;
            columns[i] = clamp(left - START + piece * PIECE, 0, (g.width * CHANNELS / PIECE - 1) * PIECE);
        }
#pragma unroll 1
        for (int i = 0; i < GROUPS - 1; ++i) copy();
    }

    __device__ inline const Sample* row(int y) const
    {
        const int needed = clamp(y, first, last);
        return source + source_offset(g, FOLDED ? border_index(needed, g.height) : needed);
    }

    // By how many samples pieces begin before the columns that they are for.
    static __device__ inline int shift_of(const Sample* at) { return WHOLE_SIXTEENS ? 0 : (size_t)at % PIECE; }

    // Start to copy the next group.
    __device__ inline void copy()
    {
#pragma unroll
        for (int i = 0; i < COPIES; ++i) {
            const int n = lane + 32 * i;
            if (i + 1 == COPIES && n >= AT_ONCE * PIECES) break;
            const Sample* at = row(coming + n / PIECES);
            start_copy(memory + to + n * PIECE, at + columns[i] - shift_of(at));
        }
        close_group();
        coming += AT_ONCE;
        to = to + GROUP == LENGTH ? 0 : to + GROUP;
    }

    // Wait for the oldest group.
    __device__ inline void wait() { wait_for_copies<GROUPS - 2>(); }

    // A lane's cells in row i of the oldest group: of each chunk eight side by side, as their order does not matter
    // where weights have the same.
    __device__ inline void read(uint2 (&chunks)[CHUNKS], int i) const
    {
        const Sample* at = cells + from + i * PITCH;
#if !WHOLE_SIXTEENS
        const unsigned shift = 8 * shift_of(row(coming - (GROUPS - 1) * AT_ONCE + i));
#endif
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
#if WHOLE_SIXTEENS
            chunks[c] = *(const uint2*)(at + c * CELLS);
#else
            const unsigned* words = (const unsigned*)(at + c * CELLS);
            chunks[c] = make_uint2(
                __funnelshift_r(words[0], words[1], shift), __funnelshift_r(words[1], words[2], shift));
#endif
        }
    }

    // Give the place of the group before the oldest to the next one.
    __device__ inline void go_on()
    {
        from = from + GROUP == LENGTH ? 0 : from + GROUP;
        copy();
    }
};

// Where a lane's four sums go: 0 and 2 are neighbours, 1 and 3 those half of the warp's samples further right. Two
// lanes exchange them, so that each has four neighbours of one half.
struct Writer {
    Sample* at;
    int row, begin, end;  // which of the four are inside the part
    unsigned select;
    bool whole;

    __device__ inline Writer(Sample* output, const Geometry& g, const Part& part, int y, int left, int lane)
        : row(g.out_width * CHANNELS)
    {
        const int odd = lane / 4 % 2;
        const int k = left + lane % 4 * RESULTS + lane / 8 * 4 + odd * (WARP_SAMPLES / 2);
        at = output + output_offset(g, y, 0) + k;
        begin = part.left - k;
        end = part.right - k;
        select = odd ? 0x3276 : 0x5410;
        whole = row % 4 == 0 && begin <= 0 && end >= 4;
    }

    // Write the lanes' results, pairs in both halves of `pairs`, if the row `counts`, and go down.
    __device__ inline void next(unsigned pairs, bool counts)
    {
        const unsigned other = __shfl_xor_sync(~0u, pairs, 4);
        const unsigned four = __byte_perm(pairs, other, select);
        if (counts && whole) {
            *(unsigned*)at = four;
        } else if (counts) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (begin <= i && i < end) at[i] = four >> 8 * i;
        }
        at += row;
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
    compute_around<RADIUS>(source, output, g, part_of(all, g), Correlation{constant_weights});
}

}  // namespace products

#endif
