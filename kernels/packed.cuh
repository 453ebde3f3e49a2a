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

    __device__ inline explicit Pairs(const Row<REACH>& row)
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int word = (row.SKIP + i) / QUAD, at = (row.SKIP + i) % QUAD;
            if (at < 2) {
                pairs[i].bits = half(row.quads[word], at);
            } else if (word == 0 && row.SKIP > 0) {
                pairs[i].bits = __byte_perm(half(row.quads[1], at - 2), row.quads[0], 0x1014 + at);
            } else {
                const unsigned select = 0x1412 + (at - 2) * 0x100;
                pairs[i].bits = __byte_perm(half(row.quads[word], at - 2), row.quads[word + 1], select);
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

// The results from the `left` part of white below them, or 0 where they are above: so they are saturated.
__device__ inline Quad quad_of(Pair left_even, Pair left_odd)
{
    return ~__byte_perm(left_even.bits, left_odd.bits, 0x6240);
}

// Compute the rows of `part` for the samples from k on. A window `add`s a source row, and makes the
// `result` around the middle one of the last ROWS.
template <typename Window>
__device__ inline void descend(
    Window window, const Sample* source, Sample* output, const Geometry& g, const Part& part, int k)
{
    constexpr int REACH = Window::ROWS / 2;
    const bool whole = whole_quads(g.out_width);
    Sample* target = output + output_offset(g, part.top, 0) + k;
    Descent source_rows(source, g, part.top + valid_shift(REACH) - REACH, k);
    const int last = part.bottom - 1 + valid_shift(REACH) + REACH;
    // Rows are loaded ahead, which takes long. Behind the last one it is loaded again, as branches would
    // keep the compiler from asking for several at once.
    Row<REACH> row;
    const auto load = [&] {
        row.load(source_rows);
        if (source_rows.y < last) source_rows.go_down();
    };
    load();
    const auto next = [&] {
        const Pairs<REACH> here(row);
        load();
        return here;
    };
#pragma unroll
    for (int i = 0; i < Window::ROWS - 1; ++i) window.add(next());
    constexpr int unrolled = Window::ROWS;  // so nothing is moved
#pragma unroll unrolled
    for (int y = part.top; y < part.bottom; ++y) {
        window.add(next());
        const Quad results = window.result();
        if (whole)
            *(Quad*)target = results;
        else
            for (int v = 0; v < QUAD; ++v) target[v] = number_of<Sample>(results, v);
        target += g.out_width;
    }
}

#endif
