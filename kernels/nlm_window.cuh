// tuned, in a window of bytes: weights as matrix products; nlm_halves.cuh explains them.
//
// Products are of 4 x 4 pixels and as many candidates. A warp has TILES such squares of pixels side by
// side; it walks over the squares of candidates of their windows, and reads each once for all of its own.
// With a radius of 10, 6 x 6 squares have the candidates of a square of pixels: 77 % of the pairs count.
//
//   shared memory    of (y, x)                                 a thread reads, for each candidate
//   cells            v of (y, x) to (y, x + 7), as halves     1 or 2 rows of its patch, or one and half of one
//   norms            |p|^2 of the candidate, and ones         a thread of four instead of one of the rows
//
// Launch: nlm_tuned_norms computes |p|^2 of all candidates; then blocks of 32 x WARPS threads for 16 x 16
// pixels, which are 4 TILES ACROSS x 4 WARPS / ACROSS. Where shared memory is short, the candidates come in several bands. A
// pair that counts takes 1.3 x 16 STEPS multiplications on the tensor cores and 1.3 exponentials.
//
// If the compiler knows the radius of a window that is read at once, rows of squares are unrolled, and what lies
// outside of all windows takes no exponentials. That is a fifth less time, but such a radius needs a kernel of
// its own: the plan chooses which are worth it.
#ifndef KERNELSCOPE_NLM_WINDOW
#define KERNELSCOPE_NLM_WINDOW
#include "nlm_norms.cuh"

#ifndef WINDOW_TILES  // squares of 4 x 4 pixels, whose patches a warp keeps
#define WINDOW_TILES 2
#endif
#ifndef WINDOW_WARPS  // of a block
#define WINDOW_WARPS 8
#endif
#ifndef WINDOW_ACROSS  // how many of them lie side by side
#define WINDOW_ACROSS 2
#endif
#ifndef WINDOW_BLOCKS  // of a multiprocessor, at least: few registers spill then, none in the loop over squares
#define WINDOW_BLOCKS 3
#endif
static_assert(PATCH == 5 || PATCH == 7, "how four threads share 5 or 7 rows of 8 cells and one of the norm");

namespace halves {

constexpr int STEPS = (PATCH + 1) / 2;  // of 16 cells: two rows of 8, of the patch and one of its norm
constexpr int TILES = WINDOW_TILES, WARPS = WINDOW_WARPS, ACROSS = WINDOW_ACROSS;
constexpr int COLUMNS = 4 * TILES * ACROSS, ROWS = 4 * WARPS / ACROSS;  // of pixels
constexpr int AT_ONCE = 16 / WARPS;  // groups of four positions of shared memory that a thread reads at once

// Where a thread of a candidate reads its cells: all 8 of the row `first`, and 8 or 4 of the row `other`, from
// cell `begin` on. A row of -1 is that of the norm.
struct Places {
    int first, other, begin;
};

__device__ inline Places places_of(int thread)
{
    if (PATCH == 5) return {thread, thread < 2 ? 4 : -1, thread % 2 * 4};
    return {2 * thread, thread < 3 ? 2 * thread + 1 : -1, 0};
}

// The row of cells in whose banks the norms are: where the four threads of a candidate read different ones.
constexpr int NORM_ROW = PATCH == 7 ? 7 : 8;
constexpr int OTHER = 4;  // the first pair of the other row, among those of a thread

}  // namespace halves

// For each of four threads, pairs of 2 G^2 times the scale; zero beyond the patch.
__constant__ unsigned window_weights[4][2 * halves::STEPS];

namespace halves {

// Squares of candidates along an axis of a window.
__device__ constexpr int squares_of(int radius)
{
    return (2 * radius + 4 + 3) / 4;
}

// A window of a known radius is read at once.
constexpr int SQUARES = squares_of(RADIUS);
constexpr int PITCH = (COLUMNS - 4 + 4 * SQUARES + 1) | 1;

__device__ inline int window_pitch()
{
    return RADIUS ? PITCH : window.pitch;
}

// Rows of candidates in shared memory.
__device__ inline int rows_of_band(int count)
{
    return ROWS - 4 + 4 * count;
}

// Where a thread reads the cells of a candidate in shared memory.
struct Cursor {
    const uint4 *first, *other;

    // Of the candidate that lies `further` positions away.
    __device__ inline void read(Pair (&cells)[2 * STEPS], int further) const
    {
        const uint4 four = first[further];
        cells[0] = four.x;
        cells[1] = four.y;
        cells[2] = four.z;
        cells[3] = four.w;
        if (PATCH == 5) {
            const uint2 two = *(const uint2*)(other + further);
            cells[OTHER] = two.x;
            cells[OTHER + 1] = two.y;
        } else {
            const uint4 more = other[further];
            cells[2 * STEPS - 4] = more.x;
            cells[2 * STEPS - 3] = more.y;
            cells[2 * STEPS - 2] = more.z;
            cells[2 * STEPS - 1] = more.w;
        }
    }
};

// The block's memory.
struct Memory {
    uint4 *cells, *norms;

    __device__ inline Memory(uint4* memory)
        : cells(memory)
    {
        const int pitch = window_pitch(), rows = rows_of_band(window.band) + PATCH - 1;
        norms = memory + rows * pitch + ((NORM_ROW - rows) * pitch & 7);
    }

    // For this thread and the candidate at (y, x).
    __device__ inline Cursor at(int y, int x) const
    {
        const Places places = places_of(threadIdx.x % 4);
        const int place = y * window_pitch() + x;
        const uint4* other = norms + place;
        if (places.other >= 0)
            other = (const uint4*)((const Pair*)(cells + place + places.other * window_pitch()) +
                places.begin / 2);
        return {cells + place + places.first * window_pitch(), other};
    }
};

// Read `rows` rows of candidates from row `top` on, counted from the first candidate of the output; every thread
// has to call this. Rows and columns beyond the last candidate repeat others: only pixels beyond the output have
// them in their windows.
__device__ inline void load(const Memory& memory, const Sample* source, const Pair* norms,
    const Geometry& g, int top, int left, int rows, int c)
{
    const int thread = threadIdx.y * 32 + threadIdx.x, around = HALF + window_radius();
    const int shift = valid_shift(around) - around, colours = (g.channels - 1) | 1;
    const int last = g.last - 1 + 2 * around, pitch = window_pitch();
    const int end = g.last + 2 * window_radius(), columns = norm_pitch(g);
    const unsigned fours = (pitch + 3) / 4, count = (rows + PATCH - 1) * fours;
    __syncthreads();  // what was there has been read
    for (unsigned first = thread; first < count; first += AT_ONCE * 32 * WARPS) {
        Twelve samples[AT_ONCE];
        Pair four_norms[AT_ONCE][4];  // read one by one: of a vector, nvcc 13.0 copies parts at once, and waits
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const int s = (first + i * 32 * WARPS) / fours, t = (first + i * 32 * WARPS - s * fours) * 4;
            const int row = min(top + s, end - 1), column = min(left + t, columns - 4);
            const Pair* from = norms + ((size_t)(row - g.output_row) * colours + c) * columns + column;
#pragma unroll
            for (int k = 0; k < 4; ++k) four_norms[i][k] = from[k];
            const int y = border_index(min(top + s, last) + shift, g.height);
            if (y >= 0) samples[i].read(source + source_offset(g, y) + c, g, left + t + shift);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const int s = (first + i * 32 * WARPS) / fours, t = (first + i * 32 * WARPS - s * fours) * 4;
            if (s >= rows + PATCH - 1) break;
            Pair even[6], odd[5];  // from every other cell on
#pragma unroll
            for (int k = 0; k < 6; ++k)
                even[k] =
                    centred_pair(__byte_perm(samples[i].four(k / 2), 0x64, k % 2 ? 0x4342 : 0x4140));
#pragma unroll
            for (int k = 0; k < 5; ++k) odd[k] = __byte_perm(even[k], even[k + 1], 0x5432);
            uint4* to = memory.cells + s * pitch + t;
            to[0] = make_uint4(even[0], even[1], even[2], even[3]);
            if (t + 1 < pitch) to[1] = make_uint4(odd[0], odd[1], odd[2], odd[3]);
            if (t + 2 < pitch) to[2] = make_uint4(even[1], even[2], even[3], even[4]);
            if (t + 3 < pitch) to[3] = make_uint4(odd[1], odd[2], odd[3], odd[4]);
            if (s >= rows) continue;
            to = memory.norms + s * pitch + t;
            to[0] = make_uint4(four_norms[i][0], ONES, 0, 0);
            if (t + 1 < pitch) to[1] = make_uint4(four_norms[i][1], ONES, 0, 0);
            if (t + 2 < pitch) to[2] = make_uint4(four_norms[i][2], ONES, 0, 0);
            if (t + 3 < pitch) to[3] = make_uint4(four_norms[i][3], ONES, 0, 0);
        }
    }
    __syncthreads();
}

// The matrix A of 4 x 4 pixels, the first of which is the candidate at (y, x).
__device__ inline void pixels_from(Pair (&pixels)[STEPS][4], const Memory& memory, int y, int x)
{
    const int thread = threadIdx.x % 4;
    const Places places = places_of(thread);
    const bool has_norm = places.other < 0 && places.begin == 0;
    const Cursor cursor = memory.at(y + threadIdx.x / 16, x + threadIdx.x / 4 % 4);
    Pair cells[2][2 * STEPS];
#pragma unroll
    for (int k = 0; k < 2; ++k) cursor.read(cells[k], 2 * k * window_pitch());
#pragma unroll
    for (int i = 0; i < 4 * STEPS; ++i) {
        const Pair value = product(cells[i % 2][i / 2], window_weights[thread][i / 2]);
        pixels[i / 4][i % 4] = i / 2 == OTHER && has_norm ? MINUS_ONES : value;
    }
    const float2 products = own_products<STEPS>(pixels, cells);
    // Without a branch, all of a warp's squares are computed side by side.
#pragma unroll
    for (int k = 0; k < 2; ++k) {
        const Pair own = split(SHIFT + (CORRECTED ? halves_floor : 0) - (k ? products.y : products.x));
        pixels[OTHER / 2][k + 2] = has_norm ? own : pixels[OTHER / 2][k + 2];
    }
}

// Those of a warp's squares of pixels.
__device__ inline void pixels_of(Pair (&pixels)[TILES][STEPS][4], const Memory& memory, int y, int x)
{
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) pixels_from(pixels[tile], memory, y, x + 4 * tile);
}

// All bits of the halves whose candidate is in the window of their pixel; `apart` is the first one's offset
// from the start of the window along an axis, and `more` how much further the second one is.
__device__ inline Pair in_window(int apart, int more)
{
    const unsigned most = 2 * window_radius();
    return ((unsigned)apart <= most ? 0xffffu : 0) | ((unsigned)(apart + more) <= most ? 0xffff0000u : 0);
}

// Sums over candidates for the pixels of a warp, in this thread's part of the second product: where
// threadIdx.x % 4 is 0, of v times weights and of weights, for two pixels of each square.
typedef float Sums[TILES][4];

// Add a square of candidates to COUNT squares of pixels from `tile` on; it is the window's number `square` of the
// first one. `rows` are the bits that count by the rows of the window, for the four parts of a thread.
template <int COUNT>
__device__ inline void add_square(Sums& sums, const Pair (&pixels)[TILES][STEPS][4], int tile,
    const Candidates<STEPS>& candidates, const Pair (&rows)[4], int square)
{
    const int apart = threadIdx.x % 2 * 2 - threadIdx.x / 4 % 4, edge = (2 * window_radius() + 1) / 4;
    Pair weights[COUNT][4];
    weigh<COUNT, STEPS>(weights, pixels, tile, candidates);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        Pair columns = ~0u;
        if (square == i || square >= edge + i) columns = in_window(4 * (square - i) + apart, 1);
#pragma unroll
        for (int k = 0; k < 4; ++k) weights[i][k] &= rows[k] & columns;
        multiply(sums[tile + i], weights[i], candidates.values[0], candidates.values[1]);
    }
}

// The bits that count by the rows of the window, for the candidates of its row of squares `row`.
__device__ inline void rows_in_window(Pair (&rows)[4], int row)
{
    const int most = 2 * window_radius();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        // How far candidates lie from the window's first row: as much, one less or one more. It is even, as
        // is `most`: only next to the first and the last row do the threads differ.
        const int apart = 4 * row + k / 2 * 2 - k % 2 * 2;
        if (apart == 0 || apart == most)
            rows[k] = in_window(apart + threadIdx.x % 4 / 2 - threadIdx.x / 16, 0);
        else
            rows[k] = 0 < apart && apart < most ? ~0u : 0;
    }
}

// A row of squares of candidates in shared memory.
struct Squares {
    Cursor cursor;
    const Pair* values;  // v: halves 2 and 3 of the cells from one after the first on, or from that itself

    // The first candidate of the warp's first square is at (y, x).
    __device__ inline Squares(const Memory& memory, int y, int x)
        : cursor(memory.at(y + threadIdx.x / 16, x + threadIdx.x / 4 % 4))
    {
        const int thread = threadIdx.x % 4;
        values = (const Pair*)(memory.cells + (y + thread / 2 + HALF) * window_pitch() + x +
            thread % 2 * 2 + HALF % 2) + HALF / 2;
    }

    // Of the square that lies `further` positions away.
    __device__ inline void read(Candidates<STEPS>& candidates, int further) const
    {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            const int place = further + k * 2 * window_pitch();
            cursor.read(candidates.cells[k], place);
            candidates.values[k] = threadIdx.x / 4 % 2 ? ONES : values[4 * place];
        }
    }

    __device__ inline void advance()
    {
        cursor.first += 4;
        cursor.other += 4;
        values += 16;
    }
};

#if RADIUS
// Add the squares of a row from `SQUARE` on: an iteration of a loop whose number is known when compiling, as
// it decides how many of the warp's squares of pixels have those candidates in their windows.
template <int SQUARE>
__device__ inline void add_squares(Sums& sums, const Pair (&pixels)[TILES][STEPS][4],
    const Squares& squares, const Pair (&rows)[4])
{
    constexpr int first = SQUARE < SQUARES ? 0 : SQUARE - SQUARES + 1;
    constexpr int last = SQUARE < TILES ? SQUARE : TILES - 1;
    Candidates<STEPS> candidates;
    squares.read(candidates, 4 * SQUARE);
    add_square<last - first + 1>(sums, pixels, first, candidates, rows, SQUARE - first);
    if constexpr (SQUARE + 1 < SQUARES + TILES - 1)
        add_squares<SQUARE + 1>(sums, pixels, squares, rows);
}

template <int ROW>
__device__ inline void add_row_of(
    Sums& sums, const Pair (&pixels)[TILES][STEPS][4], const Squares& squares)
{
    Pair rows[4];
    rows_in_window(rows, ROW);
    add_squares<0>(sums, pixels, squares, rows);
}

// Add the row of squares `row` of the window. All candidates of a row in the middle count, as in row 1; the
// others have code of their own, with neither exponentials nor masks for what does not.
__device__ inline void add_row(
    Sums& sums, const Pair (&pixels)[TILES][STEPS][4], const Squares& squares, int row)
{
    constexpr int last = SQUARES - 1;
    if (row == 0)
        add_row_of<0>(sums, pixels, squares);
    else if (row == last)
        add_row_of<last>(sums, pixels, squares);
    else if (RADIUS % 2 && row == last - 1)
        add_row_of<last - 1>(sums, pixels, squares);
    else
        add_row_of<1>(sums, pixels, squares);
}
#else
// Add the row of squares `row` of the window.
__device__ inline void add_row(
    Sums& sums, const Pair (&pixels)[TILES][STEPS][4], Squares squares, int row)
{
    const int count = squares_of(window_radius());
    Pair rows[4];
    rows_in_window(rows, row);
#pragma unroll 1
    for (int i = 0; i < count + TILES - 1; ++i) {
        Candidates<STEPS> candidates;
        squares.read(candidates, 0);
        squares.advance();
#pragma unroll
        for (int tile = 0; tile < TILES; tile += 2) {
            const bool one = (unsigned)(i - tile) < (unsigned)count;
            const bool other = tile + 1 < TILES && (unsigned)(i - tile - 1) < (unsigned)count;
            if (one && other)
                add_square<2>(sums, pixels, tile, candidates, rows, i - tile);
            else if (one)
                add_square<1>(sums, pixels, tile, candidates, rows, i - tile);
            else if (other)
                add_square<1>(sums, pixels, tile + 1, candidates, rows, i - tile - 1);
        }
    }
}
#endif

__device__ inline void compute(
    const Memory& memory, const Sample* source, Sample* output, const Pair* norms, const Geometry& g, int c)
{
    const int top = g.first + blockIdx.y * ROWS, left = blockIdx.x * COLUMNS;
    // Known when compiling, it would let the compiler join code around the loop over rows, and nvcc 13.0 then
    // puts three times the NOPs among the products: 3.96 ms in place of 3.68.
    const int band = window.band;
    const int strip = threadIdx.y / ACROSS * 4, beside = threadIdx.y % ACROSS * 4 * TILES;
    const int thread = threadIdx.x % 4, y = threadIdx.x / 16, x = threadIdx.x / 4 % 4;
    Pair pixels[TILES][STEPS][4];
    Sums sums = {};
#if RADIUS
    load(memory, source, norms, g, top, left, rows_of_band(SQUARES), c);
    pixels_of(pixels, memory, strip + RADIUS, beside + RADIUS);
#pragma unroll 1
    for (int row = 0; row < band; ++row)
        add_row(sums, pixels, Squares(memory, strip + 4 * row, beside), row);
#else
    const int count = squares_of(window_radius());
    const bool at_once = band >= count;
    // The pixels themselves are read first, where candidates come in bands.
    for (int first = at_once ? 0 : -band; first < count; first += band) {
        const bool own = first < 0;
        const int last = min(first + band, count);
        load(memory, source, norms, g, top + (own ? window_radius() : 4 * first), left,
            rows_of_band(own ? 1 : last - first), c);
        if (own || at_once)
            pixels_of(pixels, memory, strip + (own ? 0 : window_radius()), beside + window_radius());
        if (own) continue;
#pragma unroll 1
        for (int row = first; row < last; ++row)
            add_row(sums, pixels, Squares(memory, strip + 4 * (row - first), beside), row);
    }
#endif
    if (thread > 0) return;
#pragma unroll
    for (int i = 0; i < 2 * TILES; ++i) {
        const int row = top + strip + y + i % 2 * 2, column = left + beside + i / 2 * 4 + x;
        if (row < g.last && column < g.out_width)
            output[output_offset(g, row, column) + c] =
                mean(sums[i / 2][i % 2 * 2], sums[i / 2][i % 2 * 2 + 1]);
    }
}

}  // namespace halves

extern __shared__ uint4 window_memory[];

extern "C" __launch_bounds__(32 * WINDOW_WARPS, WINDOW_BLOCKS) __global__ void nlm_tuned(
    const Sample* source, Sample* output, const unsigned* norms, Geometry g)
{
    using namespace halves;
    const Memory memory(window_memory);
    const int colours = (g.channels - 1) | 1;
    for (int c = 0; c < colours; ++c) compute(memory, source, output, norms, g, c);
    // Alpha, which two and four channels have, is put back later: any value will do.
    for (int i = threadIdx.y * 32 + threadIdx.x; i < ROWS * COLUMNS; i += 32 * WARPS) {
        const int column = blockIdx.x * COLUMNS + i % COLUMNS;
        const int row = g.first + blockIdx.y * ROWS + i / COLUMNS;
        if (colours < g.channels && row < g.last && column < g.out_width)
            output[output_offset(g, row, column) + colours] = 0;
    }
}
#endif
