// Rotating mask:
//
//   of the nine 3 x 3 windows that contain the pixel, the mean of the one with the smallest variance;
//   of windows with equal variance, the smallest mean
//
// The variance of n cells with sum S and sum of squares Q is (n Q - S^2) / n^2: compared as whole numbers
// without division. Floats are summed as doubles in the order of the CPU code, without fused
// multiply-adds, so that both choose the same window.
//
// level         demonstrates                                       image
// single_block  one multiprocessor at work, the others idle        global
// global        many blocks, everything from global memory         global
// shared        a block reads its tile and halo just once          shared
// texture       the texture unit fetches and treats borders        texture
// tuned         four samples a thread, each window measured once   global
//
// Launch: blocks of 32 x 8 threads stride over the output, a thread a pixel at a time (single_block: one
// block of 32 x 32).
// A sample takes 25 cached reads and about 250 operations; at best 1 read from and 1 write to device
// memory. Tuned: a window belongs to nine pixels but is measured once (in colour three times).
#define RADIUS 2
#include "common.cuh"
#include "levels.cuh"
#if TUNED
#include "tuned_rows.cuh"
#endif

#if SAMPLE_BITS == 32
typedef double Wide;
#define MULTIPLY(a, b) __dmul_rn(a, b)
#define ADD(a, b) __dadd_rn(a, b)
#else
#if SAMPLE_BITS == 8
typedef int Wide;
#else
typedef long long Wide;
#endif
#define MULTIPLY(a, b) ((a) * (b))
#define ADD(a, b) ((a) + (b))
#endif

// A window: how many cells count, their sum, and the variance times their number squared.
struct Nine {
    int count;
    Wide sum, variance;

    // Whether this window is more even than another, or as even and darker.
    __device__ inline bool is_better(const Nine& other) const
    {
        const Wide n = count, m = other.count;
        const Wide here = MULTIPLY(variance, MULTIPLY(m, m));
        const Wide there = MULTIPLY(other.variance, MULTIPLY(n, n));
        return here < there || (here == there && MULTIPLY(sum, m) < MULTIPLY(other.sum, n));
    }
};

// The window whose middle is v rows below and u columns right of the pixel.
template <typename Cells>
__device__ inline Nine measure(const Cells& cells, int v, int u)
{
    Wide sum = 0, squares = 0;
    int count = 0;
#pragma unroll
    for (int s = -1; s <= 1; ++s) {
        const auto row = cells.row(v + s);
#pragma unroll
        for (int t = -1; t <= 1; ++t) {
            const Wide sample = row[u + t];
            sum = ADD(sum, sample);
            squares = ADD(squares, MULTIPLY(sample, sample));
            count += row.counts(u + t);
        }
    }
    return Nine{count, sum, ADD(MULTIPLY((Wide)count, squares), -MULTIPLY(sum, sum))};
}

// The filter for the cells around a pixel.
struct RotatingMask {
    template <typename Cells>
    __device__ inline Sample operator()(const Cells& cells) const
    {
        Nine best = measure(cells, -1, -1);
#pragma unroll
        for (int i = 1; i < 9; ++i) {
            const Nine window = measure(cells, i / 3 - 1, i % 3 - 1);
            if (window.is_better(best)) best = window;
        }
        return quotient(best.sum, best.count);
    }
};

#if !TUNED
extern "C" __global__ void __launch_bounds__(1024)
    rotating_mask_single_block(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, RotatingMask());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    rotating_mask_global(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, RotatingMask());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    rotating_mask_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    compute(Tiles{source, memory}, output, g, RotatingMask());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    rotating_mask_texture(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute(source, output, g, RotatingMask());
}
#else
// How even a window is: the smaller, the more; of equally even ones the darker. All windows have nine
// cells here, so that the variance is 9 Q - S^2. Integers are one key that ends with the rounded mean.
#if SAMPLE_BITS == 8
typedef float Cell, Square;  // exact: 9 Q < 2^24
struct Evenness {
    unsigned key;

    __device__ inline void measure(float sum, float squares)
    {
        // 2^23 more puts whole numbers into the low bits of a float, and rounds (9 is odd: no ties).
        const unsigned variance =
            __float_as_uint(fmaf(-sum, sum, fmaf(9.0f, squares, 8388608.0f)));
        const unsigned mean = __float_as_uint(fmaf(sum, 1.0f / 9.0f, 8388608.0f));
        key = __byte_perm(mean, variance, 0x6540);
    }
    __device__ inline void take_better(const Evenness& other) { key = min(key, other.key); }
    __device__ inline Result mean() const { return (Result)key; }
};
#elif SAMPLE_BITS == 16
typedef unsigned Cell;
typedef unsigned long long Square;
struct Evenness {
    unsigned long long key;

    __device__ inline void measure(Cell sum, Square squares)
    {
        key = (9 * squares - (Square)sum * sum) << 16 | (sum + 4) / 9;
    }
    __device__ inline void take_better(const Evenness& other) { key = min(key, other.key); }
    __device__ inline Result mean() const { return (Result)key; }
};
#else
typedef float Cell;
struct Evenness {
    double variance, sum;

    __device__ inline void measure(double window_sum, double squares)
    {
        sum = window_sum;
        variance = ADD(MULTIPLY(9.0, squares), -MULTIPLY(sum, sum));
    }
    __device__ inline void take_better(const Evenness& other)
    {
        if (other.variance < variance || (other.variance == variance && other.sum < sum)) *this = other;
    }
    __device__ inline Result mean() const { return (float)(sum / 9.0); }
};
#endif

// The last three source rows, from which the windows around QUAD results are measured: window t of
// result v is the one t - 1 columns from it.
template <bool GREY>
struct Lines {
    typedef Cells<RADIUS, GREY> Around;
    typedef Cells<RADIUS - 1, GREY> Windows;  // those whose middle lies in a row

    // Of a grey row, neighbours share windows: it is window v + 1 of t - 1.
    static __device__ constexpr bool is_new(int t, int v) { return !GREY || t == 0 || v == QUAD - 1; }

#if SAMPLE_BITS < 32
    // The parts of windows in each row: sums are exact in any order.
    struct Line {
        Cell sums[Windows::COUNT];
        Square squares[Windows::COUNT];
    };
    Line lines[3] = {};

    __device__ inline void add(const Cell (&cells)[Around::COUNT])
    {
        lines[0] = lines[1];
        lines[1] = lines[2];
#pragma unroll
        for (int t = 0; t < 3; ++t)
#pragma unroll
            for (int v = 0; v < QUAD; ++v) {
                if (!is_new(t, v)) continue;
                const int window = Windows::at(t, v);
                const Cell a = cells[Around::at(t, v)], b = cells[Around::at(t + 1, v)],
                           c = cells[Around::at(t + 2, v)];
                lines[2].sums[window] = a + b + c;
                lines[2].squares[window] = (Square)a * a + (Square)b * b + (Square)c * c;
            }
    }

    __device__ inline Evenness measure(int t, int v) const
    {
        const int window = Windows::at(t, v);
        Evenness result;
        result.measure(lines[0].sums[window] + lines[1].sums[window] + lines[2].sums[window],
            lines[0].squares[window] + lines[1].squares[window] + lines[2].squares[window]);
        return result;
    }
#else
    Cell rows[3][Around::COUNT] = {};

    __device__ inline void add(const Cell (&cells)[Around::COUNT])
    {
#pragma unroll
        for (int i = 0; i < Around::COUNT; ++i) {
            rows[0][i] = rows[1][i];
            rows[1][i] = rows[2][i];
            rows[2][i] = cells[i];
        }
    }

    __device__ inline Evenness measure(int t, int v) const
    {
        double sum = 0, squares = 0;
#pragma unroll
        for (int i = 0; i < 9; ++i) {
            const double cell = rows[i / 3][Around::at(t + i % 3, v)];
            sum = ADD(sum, cell);
            squares = ADD(squares, MULTIPLY(cell, cell));
        }
        Evenness result;
        result.measure(sum, squares);
        return result;
    }
#endif
};

// Compute the rows of `part` for the samples from k on.
template <bool GREY>
__device__ inline void rotating_mask_down(
    const Sample* source, Sample* output, const Geometry& g, const Part& part, int k)
{
    typedef Cells<RADIUS, GREY> Around;
    typedef Cells<RADIUS - 1, GREY> Windows;
    const int out_samples = g.out_width * g.channels;
    const bool whole = whole_quads(out_samples);
    Sample* target = output + output_offset(g, part.top, 0) + k;
    Descent source_rows(source, g, part.top + valid_shift(RADIUS) - RADIUS, k);
    Lines<GREY> lines;
    Evenness best[3][QUAD] = {};  // of the windows around each result in the last three rows of windows
    Row<RADIUS> ahead;  // of grey rows, the next is loaded while one is computed, which takes long
    if (GREY) ahead.load(source_rows);
    for (int y = part.top - 2 * RADIUS; y < part.bottom; ++y) {
        Cell cells[Around::COUNT];
        if constexpr (GREY) {
            ahead.unpack(cells);
            if (y + 1 < part.bottom) source_rows.go_down();  // behind the last it is loaded again
            ahead.load(source_rows);
        } else {
            Around::load(source_rows, g, cells);
            source_rows.go_down();
        }
        lines.add(cells);
        Evenness windows[Windows::COUNT];
#pragma unroll
        for (int t = 0; t < 3; ++t)
#pragma unroll
            for (int v = 0; v < QUAD; ++v)
                if (Lines<GREY>::is_new(t, v)) windows[Windows::at(t, v)] = lines.measure(t, v);
        Result results[QUAD];
#pragma unroll
        for (int v = 0; v < QUAD; ++v) {
            best[0][v] = best[1][v];
            best[1][v] = best[2][v];
            best[2][v] = windows[Windows::at(0, v)];
            best[2][v].take_better(windows[Windows::at(1, v)]);
            best[2][v].take_better(windows[Windows::at(2, v)]);
            Evenness most = best[0][v];
            most.take_better(best[1][v]);
            most.take_better(best[2][v]);
            results[v] = most.mean();
        }
        if (y < part.top) continue;
        store(target, results, whole);
        target += out_samples;
    }
}

extern "C" __global__ void rotating_mask_tuned(const Sample* source, Sample* output, Geometry g)
{
    const Part tile = tile_of_block(g), part = inner_part(tile, g, RADIUS);
    const int k = tile.left + threadIdx.x * QUAD;
    if (part.left <= k && k < part.right && part.top < part.bottom) {
        if (g.channels == 1 && whole_quads(g.width))
            rotating_mask_down<true>(source, output, g, part, k);
        else
            rotating_mask_down<false>(source, output, g, part, k);
    }
    compute_edges<RADIUS>(source, output, g, RotatingMask());
}
#endif
