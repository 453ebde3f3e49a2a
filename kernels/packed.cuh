// How the tuned kernels of filters with small weights go down grey images of bytes: as tuned_rows.cuh does,
// but two samples at a time, see pair.cuh.
#include "pair.cuh"
#include "tuned_rows.cuh"

#if SAMPLE_BITS == 8 && !defined(KERNELSCOPE_PACKED)
#define KERNELSCOPE_PACKED

// The cells of a source row around QUAD results. Result 0 and 2 make a pair, and 1 and 3: cell t of result
// v and of v + 2 is pair v + t.
template <int REACH>
struct Pairs {
    static constexpr int QUADS = 1, RESULTS = 2, COUNT = RESULTS + 2 * REACH;
    Pair pairs[COUNT];

    __device__ inline explicit Pairs(const Quad* quads)
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int word = (Row<REACH>::SKIP + i) / QUAD, at = (Row<REACH>::SKIP + i) % QUAD;
            if (at < 2) {
                pairs[i].bits = half(quads[word], at);
            } else if (word == 0 && Row<REACH>::SKIP > 0) {
                pairs[i].bits = __byte_perm(half(quads[1], at - 2), quads[0], 0x1014 + at);
            } else {
                const unsigned select = 0x1412 + (at - 2) * 0x100;
                pairs[i].bits = __byte_perm(half(quads[word], at - 2), quads[word + 1], select);
            }
        }
    }

    // Bytes 0 and 2 of a word, or 1 and 3.
    static __device__ inline unsigned half(Quad word, int first)
    {
        return __byte_perm(word, 0, 0x4240 + first * 0x101);
    }

    __device__ inline Pair operator[](int i) const { return pairs[i]; }

    // The bytes of results, in order.
    static __device__ inline void put(const Pair (&results)[RESULTS], Quad* to)
    {
        to[0] = __byte_perm(results[0].bits, results[1].bits, 0x6240);
    }
};

// The same around two quads: each result of the first one makes a pair with the one QUAD behind it. Of two quads by
// themselves eight columns are in pairs, and of these six.
template <int REACH>
struct Octets {
    static constexpr int QUADS = 2, RESULTS = QUAD, COUNT = RESULTS + 2 * REACH;
    Pair pairs[COUNT];

    __device__ inline explicit Octets(const Quad* quads)
    {
        static_assert(REACH <= QUAD, "cells of the quads next to these");
        constexpr int own = Row<REACH>::OWN, first = own * REACH;  // the first result's quad, and the pair with its cell
        split(quads[own], quads[own + 1], pairs + first);
#pragma unroll
        for (int i = 0; i < first; ++i) {
            const unsigned select = 0x5450 + QUAD - first + i;
            pairs[i].bits = __byte_perm(quads[0], pairs[i + QUAD].bits, select);
        }
#pragma unroll
        for (int i = first + QUAD; i < COUNT; ++i) {
            const int word = own + 1 + (i - first) / QUAD, at = (i - first) % QUAD;
            pairs[i].bits = __byte_perm(pairs[i - QUAD].bits, quads[word], 0x3432 + at * 0x100);
        }
    }

    // The pairs of the cells in two words.
    static __device__ inline void split(Quad a, Quad b, Pair* to)
    {
#pragma unroll
        for (int i = 0; i < QUAD; i += 2) {
            const unsigned two = __byte_perm(a, b, i == 0 ? 0x5410 : 0x7632);
            to[i].bits = two & 0x00ff00ff;
            to[i + 1].bits = __byte_perm(two, 0, 0x4341);
        }
    }

    __device__ inline Pair operator[](int i) const { return pairs[i]; }

    static __device__ inline void put(const Pair (&results)[RESULTS], Quad* to)
    {
        const unsigned a = results[1].bits * 256 + results[0].bits;
        const unsigned b = results[3].bits * 256 + results[2].bits;
        to[0] = __byte_perm(a, b, 0x5410);
        to[1] = __byte_perm(a, b, 0x7632);
    }
};

constexpr Pair WHITE = both(255);

// Rows that are on their way while one is computed.
#ifndef ROWS_AHEAD
#define ROWS_AHEAD 2
#endif

// The results of a thread in one row.
struct alignas(SPAN) Quads {
    Quad quads[WIDE];
};

// The results from the `left` part of white below them, or 0 where they are above: so they are saturated.
__device__ inline Quad quad_of(Pair left_even, Pair left_odd)
{
    return ~__byte_perm(left_even.bits, left_odd.bits, 0x6240);
}

// The cells of the last ROWS source rows, for windows that need all of them.
template <typename Cells, int COUNT>
struct LastRows {
    typedef Cells Packed;
    static constexpr int ROWS = COUNT;
    Pair rows[ROWS][Packed::COUNT];

    __device__ inline void add(const Packed& row)
    {
#pragma unroll
        for (int i = 0; i < Packed::COUNT; ++i) {
#pragma unroll
            for (int s = 0; s + 1 < ROWS; ++s) rows[s][i] = rows[s + 1][i];
            rows[ROWS - 1][i] = row[i];
        }
    }
};

// Compute the rows of `part` for SPAN samples from k on. A window `add`s a source row, `Packed` as Pairs or Octets, and
// puts the `results` around the middle one of the last ROWS.
template <typename Window>
__device__ inline void descend(
    Window window, const Sample* source, Sample* output, const Geometry& g, const Part& part, int k)
{
    typedef typename Window::Packed Packed;
    constexpr int REACH = Window::ROWS / 2, WINDOWS = WIDE / Packed::QUADS;
    // The source's rows are whole spans of several quads, see WIDE, but those of `valid` results are shorter.
    const bool whole = (LEAN && WIDE > 1 && BORDER != BORDER_VALID) || g.out_width % SPAN == 0;
    Sample* target = output + output_offset(g, part.top, 0) + k;
    Descent source_rows(source, g, part.top + valid_shift(REACH) - REACH, k);
    const int last = part.bottom - 1 + valid_shift(REACH) + REACH;
    Window windows[WINDOWS];
#pragma unroll
    for (int i = 0; i < WINDOWS; ++i) windows[i] = window;
    // Rows are loaded ahead, which takes long. Behind the last one it is loaded again, as branches would
    // keep the compiler from asking for several at once.
    Row<REACH, SPAN> rows[ROWS_AHEAD];
    const auto load = [&](Row<REACH, SPAN>& row) {
        row.load(source_rows);
        if (source_rows.y < last) source_rows.go_down();
    };
#pragma unroll
    for (int i = 0; i < ROWS_AHEAD; ++i) load(rows[i]);
    const auto add_next = [&] {
#pragma unroll
        for (int i = 0; i < WINDOWS; ++i) windows[i].add(Packed(rows[0].quads + i * Packed::QUADS));
#pragma unroll
        for (int i = 0; i + 1 < ROWS_AHEAD; ++i) rows[i] = rows[i + 1];
        load(rows[ROWS_AHEAD - 1]);
    };
#pragma unroll
    for (int i = 0; i < Window::ROWS - 1; ++i) add_next();
    constexpr int unrolled = Window::ROWS * ROWS_AHEAD;  // so nothing is moved
#pragma unroll unrolled
    for (int y = part.top; y < part.bottom; ++y) {
        add_next();
        Quads results;
#pragma unroll
        for (int i = 0; i < WINDOWS; ++i) windows[i].results(results.quads + i * Packed::QUADS);
        if (whole)
            *(Quads*)target = results;
        else
            for (int v = 0; v < SPAN; ++v)
                target[v] = number_of<Sample>(results.quads[v / QUAD], v % QUAD);
        target += g.out_width;
    }
}

// Compute all samples of the launch: by windows, and by `filter` where cells need a border.
template <typename Window, typename Filter>
__device__ inline void filter_packed(
    const Sample* source, Sample* output, const Geometry& g, Filter filter)
{
    constexpr int REACH = Window::ROWS / 2;
    const Part tile = tile_of_block(g), part = inner_part(tile, g, REACH);
    const int k = tile.left + threadIdx.x * SPAN;
    if (part.left <= k && k < part.right && part.top < part.bottom)
        descend(Window(), source, output, g, part, k);
    compute_edges<REACH>(source, output, g, filter);
}

#endif
