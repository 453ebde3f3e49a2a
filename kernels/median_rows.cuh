// tuned, 3 x 3 of grey bytes: down the rows, two samples at a time, see packed.cuh.
//
// A thread sorts the three cells of each column, which its neighbouring results share. The median of the window is
// the middle one of three: the largest of the columns' smallest cells, the middle one of their middle
// cells, and the smallest of their largest cells (Paeth 1990). Of three numbers a minimum and a maximum take one
// instruction each; the middle one is the rest of their sum, and additions run on another unit.
// 15 minima, maxima and byte moves and 16 additions for two samples; where threads have several quads, of which two share
// the columns between them, 12 and 14.
#ifndef KERNELSCOPE_MEDIAN_ROWS
#define KERNELSCOPE_MEDIAN_ROWS
#define LEAN (WIDE > 1)
#include "median_cut.cuh"
#include "packed.cuh"

#ifndef ROWS_AT_ONCE
#define ROWS_AT_ONCE 0
#endif

__device__ inline Pair smaller(Pair a, Pair b)
{
#if __CUDA_ARCH__ >= 900
    return Pair{__vminu2(a.bits, b.bits)};
#else
    return a - less(a, b);
#endif
}

__device__ inline Pair larger(Pair a, Pair b)
{
#if __CUDA_ARCH__ >= 900
    return Pair{__vmaxu2(a.bits, b.bits)};
#else
    return max(a, b);
#endif
}

// Three numbers in order; `middle` is at most 3 * 255 on the way.
struct Ordered {
    Pair least, middle, most;

    __device__ inline Ordered() {}
    __device__ inline Ordered(Pair a, Pair b, Pair c)
        : least(smaller(smaller(a, b), c)), most(larger(larger(a, b), c))
    {
        middle = a + b + c - least - most;
    }
};

// The source rows around the results of one quad, or of two.
#if WIDE > 1
struct Window : LastRows<Octets<RADIUS>, SIZE> {
#else
struct Window : LastRows<Pairs<RADIUS>, SIZE> {
#endif
    static constexpr int COUNT = Packed::COUNT;

    __device__ inline void results(Quad* to) const
    {
        Ordered columns[COUNT];
        Pair medians[Packed::RESULTS];
#pragma unroll
        for (int i = 0; i < COUNT; ++i) columns[i] = Ordered(rows[0][i], rows[1][i], rows[2][i]);
#pragma unroll
        for (int v = 0; v < Packed::RESULTS; ++v) {
            // Two neighbours have the columns a and b.
            const int first = v / 2 * 2;
            const Ordered &a = columns[first + 1], &b = columns[first + 2], &c = columns[first + v % 2 * 3];
            const Ordered middle(a.middle, b.middle, c.middle);
            const Pair low = larger(larger(a.least, b.least), c.least);
            const Pair high = smaller(smaller(a.most, b.most), c.most);
            medians[v] = Ordered(low, middle.middle, high).middle;
        }
        Packed::put(medians, to);
    }
};

#if ROWS_AT_ONCE
// Small pictures: a thread reads all rows that it needs at once, as there are too few threads to wait for one row
// after the other, and applies the border itself.

// The cells of COUNT source rows from (y, x) on around QUAD results. Rows below `bottom` are not needed, nor always
// there. Cells that count as zero are read nevertheless, from the nearest place inside: without branches, all
// cells are on their way at once.
template <int COUNT>
__device__ inline void read_cells(
    Row<RADIUS> (&rows)[COUNT], const Sample* source, const Geometry& g, int y, int x, int bottom)
{
    typedef Row<RADIUS> Cells;
    constexpr int WIDTH = QUAD + 2 * RADIUS;
    const int start = x - Cells::SKIP;
    if (start >= 0 && start + Cells::COUNT * QUAD <= g.width && y >= 0
        && y + COUNT - 1 <= min(bottom, g.height - 1)) {
        const Sample* first = source + source_offset(g, y) + start;
#pragma unroll
        for (unsigned i = 0; i < COUNT; ++i)
#pragma unroll
            for (int k = 0; k < Cells::COUNT; ++k)
                rows[i].quads[k] = ((const Quad*)(first + (size_t)i * g.width))[k];
        return;
    }
    int columns[WIDTH];
#pragma unroll
    for (int j = 0; j < WIDTH; ++j) columns[j] = border_index(x + j, g.width);
    Quad cells[COUNT][WIDTH];
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        const int wanted = min(y + i, bottom), row = border_index(wanted, g.height);
        const bool zeros = ZEROS_OUTSIDE && row < 0;
        const Sample* first =
            source + source_offset(g, zeros ? clamp(wanted, 0, g.height - 1) : row);
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            const bool zero = ZEROS_OUTSIDE && columns[j] < 0;
            const Quad cell = first[zero ? clamp(x + j, 0, g.width - 1) : columns[j]];
            cells[i][j] = zeros || zero ? 0 : cell;
        }
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        rows[i] = Cells{};
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            const int at = Cells::SKIP + j;
            rows[i].quads[at / QUAD] |= cells[i][j] << at % QUAD * 8;
        }
    }
}

__device__ inline void write_row(Quad results, Sample* output, const Geometry& g, int y, int x)
{
    Sample* target = output + output_offset(g, y, x);
    if (whole_quads(g.out_width) && !is_cut(g, y, x) && !is_cut(g, y, x + QUAD - 1)) {
        *(Quad*)target = results;
    } else {
#pragma unroll
        for (int v = 0; v < QUAD; ++v)
            if (x + v < g.out_width && !is_cut(g, y, x + v)) target[v] = number_of<Sample>(results, v);
    }
}

extern "C" __global__ void median_tuned(const Sample* source, Sample* output, Geometry g)
{
    const int x = (blockIdx.x * blockDim.x + threadIdx.x) * QUAD;
    const int y = g.first + (blockIdx.y * blockDim.y + threadIdx.y) * ROWS_AT_ONCE;
    const int shift = valid_shift(RADIUS) - RADIUS;
    if (x < g.out_width && y < g.last) {
        Row<RADIUS> rows[ROWS_AT_ONCE + SIZE - 1];
        read_cells(rows, source, g, y + shift, x + shift, g.last - 1 + shift + SIZE - 1);
        Window window;
#pragma unroll
        for (int i = 0; i < ROWS_AT_ONCE + SIZE - 1; ++i) {
            window.add(Window::Packed(rows[i].quads));
            const int row = y + i - (SIZE - 1);
            if (row < y || row >= g.last) continue;
            Quad medians;
            window.results(&medians);
            write_row(medians, output, g, row, x);
        }
    }
    compute_cut_medians(source, output, g);
}
#else
extern "C" __global__ void median_tuned(const Sample* source, Sample* output, Geometry g)
{
    filter_packed<Window>(source, output, g, Median());
}

#endif

#endif
