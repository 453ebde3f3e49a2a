// How the tuned kernels walk over the image.
//
// A thread takes QUAD samples that lie side by side and goes down the rows of its block's tile. It reads
// each source row once and keeps in registers the samples that the next rows need, so that one load serves many
// results. Rows are taken as flat: the channels of a pixel are samples side by side, and a pixel's
// neighbour is `channels` samples away.
//
// Inside the image no cell needs a border. The few samples whose cells do are left to the code of the
// other levels, shared out among all threads of the launch.
//
// Launch: blocks of TUNED_THREADS x 1; the grid's height decides how many rows a block goes down.
#ifndef KERNELSCOPE_TUNED_ROWS
#define KERNELSCOPE_TUNED_ROWS
#include "common.cuh"
#include "edges.cuh"

#ifndef QUAD
#define QUAD 4
#endif
#ifndef TUNED_THREADS
#define TUNED_THREADS 128
#endif
// Quads side by side of a thread: two or four where rows of grey bytes are multiples of them and the plan asks for it.
#ifndef WIDE
#define WIDE 1
#endif
constexpr int SPAN = QUAD * WIDE;

// Whether rows are not asked for what is known of them when a kernel is compiled: that they are whole spans, and that
// none lie behind the last one. It saves instructions, but not always registers: measured for each filter.
#ifndef LEAN
#define LEAN 0
#endif

// QUAD samples as the hardware loads them at once.
#if SAMPLE_BITS == 8
typedef unsigned int Quad;
#elif SAMPLE_BITS == 16
typedef uint2 Quad;
#else
typedef float4 Quad;
#endif

// The tile of this block.
__device__ inline Part tile_of_block(const Geometry& g)
{
    const int rows = (g.last - g.first + gridDim.y - 1) / gridDim.y;
    const int top = min(g.first + (int)blockIdx.y * rows, g.last);
    const int samples = g.out_width * g.channels;
    const int left = min((int)(blockIdx.x * blockDim.x) * SPAN, samples);
    return Part{top, min(top + rows, g.last), left, min(left + (int)blockDim.x * SPAN, samples)};
}

// The part of `tile` whose cells lie inside the image; left and right are those of whole spans.
__device__ inline Part inner_part(const Part& tile, const Geometry& g, int radius)
{
    const int before = radius - valid_shift(radius), after = radius + valid_shift(radius);
    Part part;
    part.top = clamp(before, tile.top, tile.bottom);
    part.bottom = clamp(g.height - after, part.top, tile.bottom);
    part.left = clamp((before * g.channels + SPAN - 1) / SPAN * SPAN, tile.left, tile.right);
    part.right = clamp((g.width - after) * g.channels / SPAN * SPAN, part.left, tile.right);
    return part;
}

// The samples of the launch outside the inner parts of its tiles: output = filter(cells).
template <int REACH, typename Filter>
__device__ inline void compute_edges(
    const Sample* source, Sample* output, const Geometry& g, Filter filter)
{
    const Part all{g.first, g.last, 0, g.out_width * g.channels};
    compute_around<REACH>(source, output, g, inner_part(all, g, REACH), filter);
}

// Whether rows of `samples` samples consist of whole quads, which can then be read and written.
__device__ inline bool whole_quads(int samples) { return samples % QUAD == 0; }

// Sample i of a quad as a number to calculate with.
template <typename Number>
__device__ inline Number number_of(const Quad& quad, int i)
{
#if SAMPLE_BITS == 8
    return (Number)(quad >> 8 * i & 0xff);
#elif SAMPLE_BITS == 16
    return (Number)((i < 2 ? quad.x : quad.y) >> 16 * (i % 2) & 0xffff);
#else
    return (Number)(i == 0 ? quad.x : i == 1 ? quad.y : i == 2 ? quad.z : quad.w);
#endif
}

#if SAMPLE_BITS < 32
// A float's conversion unit is slow. The whole number i < 2^23 is the float 2^23 + i, less 2^23, and the
// bits of 2^23 + i are 0x4b000000 + i: putting the bytes in place makes the float.
template <>
__device__ inline float number_of<float>(const Quad& quad, int i)
{
#if SAMPLE_BITS == 8
    const unsigned bits = __byte_perm(quad, 0x4b000000, 0x7540 + i);
#else
    const unsigned bits = __byte_perm(i < 2 ? quad.x : quad.y, 0x4b000000, i % 2 ? 0x7532 : 0x7510);
#endif
    return __uint_as_float(bits) - 8388608.0f;
}
#endif

// A sample to write: its bits are the lowest, others do not matter.
#if SAMPLE_BITS == 32
typedef float Result;
#else
typedef unsigned Result;
#endif

// The nearest sample to a number that is not negative, ties to even.
__device__ inline Result nearest(float value)
{
#if SAMPLE_BITS == 32
    return fminf(value, 3.402823466e38f);
#else
    // As above, and the addition rounds.
    return __float_as_uint(fminf(value, (float)SAMPLE_MAX) + 8388608.0f);
#endif
}

// Write QUAD samples, at once if the output's rows are `whole` quads.
__device__ inline void store(Sample* target, const Result (&results)[QUAD], bool whole)
{
    if (whole) {
#if SAMPLE_BITS == 8
        const unsigned low = __byte_perm(results[0], results[1], 0x0040);
        const unsigned high = __byte_perm(results[2], results[3], 0x0040);
        *(Quad*)target = __byte_perm(low, high, 0x5410);
#elif SAMPLE_BITS == 16
        *(Quad*)target = make_uint2(
            __byte_perm(results[0], results[1], 0x5410),
            __byte_perm(results[2], results[3], 0x5410));
#else
        *(Quad*)target = make_float4(results[0], results[1], results[2], results[3]);
#endif
    } else
        for (int v = 0; v < QUAD; ++v) target[v] = (Sample)results[v];
}

// A position in the source that goes down row by row.
struct Descent {
    const Sample* at;
    int y;
    int row;
    size_t image;
    int wrap;

    __device__ inline Descent(const Sample* source, const Geometry& g, int y, int k)
        : at(source + source_offset(g, y) + k),
          y(y),
          row(g.width * g.channels),
          image((size_t)g.height * g.width * g.channels),
          wrap(g.source_row)
    {
    }

    __device__ inline void go_down()
    {
        at += row;
        ++y;
        if ((!LEAN || BORDER == BORDER_WRAP) && y == wrap) at -= image;  // see source_offset
    }
};

// Grey rows of whole quads: the samples from REACH before WIDTH results to REACH behind them.
template <int REACH, int WIDTH = QUAD>
struct Row {
    // Aligned quads hold these samples, and SKIP others before them.
    static constexpr int SKIP = BORDER == BORDER_VALID ? 0 : (QUAD - REACH % QUAD) % QUAD;
    static constexpr int BEFORE = BORDER == BORDER_VALID ? 0 : REACH + SKIP;
    static constexpr int COUNT = (SKIP + 2 * REACH + WIDTH + QUAD - 1) / QUAD;
    static constexpr int OWN = BEFORE / QUAD, BEHIND = OWN + WIDTH / QUAD;  // the results' own quads, and those behind
    Quad quads[COUNT];

    __device__ inline void load(const Descent& source)
    {
        const Quad* from = (const Quad*)(source.at - BEFORE);
#pragma unroll
        for (int i = 0; i < OWN; ++i) quads[i] = __ldg(from + i);
        load_own(from + OWN);
#pragma unroll
        for (int i = BEHIND; i < COUNT; ++i) quads[i] = __ldg(from + i);
    }

    // The results' own quads, at once.
    __device__ inline void load_own(const Quad* from)
    {
#if SAMPLE_BITS == 8
        if constexpr (WIDTH == 4 * QUAD) {
            const uint4 four = __ldg((const uint4*)from);
            quads[OWN] = four.x;
            quads[OWN + 1] = four.y;
            quads[OWN + 2] = four.z;
            quads[OWN + 3] = four.w;
        } else if constexpr (WIDTH == 2 * QUAD) {
            const uint2 two = __ldg((const uint2*)from);
            quads[OWN] = two.x;
            quads[OWN + 1] = two.y;
        } else
#endif
        {
            static_assert(WIDTH == QUAD, "no load of this width");
            quads[OWN] = __ldg(from);
        }
    }

    template <typename Number>
    __device__ inline void unpack(Number (&numbers)[QUAD + 2 * REACH]) const
    {
#pragma unroll
        for (int i = 0; i < QUAD + 2 * REACH; ++i)
            numbers[i] = number_of<Number>(quads[(SKIP + i) / QUAD], (SKIP + i) % QUAD);
    }
};

// The cells of one source row around QUAD results: neighbours share them in a grey image of whole quads;
// else each result has its own.
template <int REACH, bool GREY>
struct Cells {
    static constexpr int COUNT = GREY ? QUAD + 2 * REACH : QUAD * (1 + 2 * REACH);

    // Which one is t cells behind the leftmost of result v.
    static __device__ constexpr int at(int t, int v) { return GREY ? v + t : t * QUAD + v; }

    template <typename Number>
    static __device__ inline void load(
        const Descent& source, const Geometry& g, Number (&numbers)[COUNT])
    {
        if constexpr (GREY) {
            Row<REACH> row;
            row.load(source);
            row.unpack(numbers);
        } else {
            const Sample* first = source.at + (valid_shift(REACH) - REACH) * g.channels;
#pragma unroll
            for (int t = 0; t <= 2 * REACH; ++t)
#pragma unroll
                for (int v = 0; v < QUAD; ++v)
                    numbers[t * QUAD + v] = (Number)__ldg(first + t * g.channels + v);
        }
    }
};

#endif
