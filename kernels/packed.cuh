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
    static constexpr int COUNT = 2 + 2 * REACH;
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

// Compute the rows of `part` for SPAN samples from k on. A window `add`s a source row, and makes the
// `result` around the middle one of the last ROWS.
template <typename Window>
__device__ inline void descend(
    Window window, const Sample* source, Sample* output, const Geometry& g, const Part& part, int k)
{
    constexpr int REACH = Window::ROWS / 2;
    const bool whole = g.out_width % SPAN == 0;
    Sample* target = output + output_offset(g, part.top, 0) + k;
    Descent source_rows(source, g, part.top + valid_shift(REACH) - REACH, k);
    const int last = part.bottom - 1 + valid_shift(REACH) + REACH;
    Window windows[WIDE];
#pragma unroll
    for (int q = 0; q < WIDE; ++q) windows[q] = window;
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
        for (int q = 0; q < WIDE; ++q) windows[q].add(Pairs<REACH>(rows[0].quads + q));
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
        for (int q = 0; q < WIDE; ++q) results.quads[q] = windows[q].result();
        if (whole)
            *(Quads*)target = results;
        else
            for (int v = 0; v < SPAN; ++v)
                target[v] = number_of<Sample>(results.quads[v / QUAD], v % QUAD);
        target += g.out_width;
    }
}

#endif
