// How level tuned adds up columns and rows, see separable.cuh: RUN neighbouring results a thread.
//
// The results of a run share their cells. With each pair of weights the cells before them move on by one, and so do
// those behind; a thread keeps RUN of either in registers and reads the one that is new. Cell c is in register
// c mod RUN, so that nothing is moved once the loop is unrolled. For the 3 RUN operations of a pair a thread reads two
// cells, and none of them is converted twice.
//
// A small mask takes one launch: a block adds up the columns of its tile and its halo into shared memory, and then the
// rows. In larger ones the halo would be added up by several blocks: there the sums of all columns go to global memory,
// and a second launch reads them.
//
// Launch: blocks of 256 x 1 threads, for TILE_SAMPLES x TILE_ROWS samples. A warp has a row of the tile.
#ifndef KERNELSCOPE_SEPARABLE_TUNED
#define KERNELSCOPE_SEPARABLE_TUNED
#include "separable.cuh"
#include "tuned_rows.cuh"

#ifndef RUN
#define RUN 8
#endif
#ifndef TILE_SAMPLES
#define TILE_SAMPLES 256
#endif
#ifndef TILE_ROWS
#define TILE_ROWS 16
#endif
#ifndef CHANNELS
#define CHANNELS 1
#endif
constexpr int LANES = TILE_SAMPLES / RUN;

// A float's conversion unit is slow, see tuned_rows.cuh.
__device__ inline Real real(Sample sample)
{
#if SAMPLE_BITS == 32
    return {sample};
#else
    return {__uint_as_float(0x4b000000 | sample) - 8388608.0f};
#endif
}

__device__ constexpr int slot(int cell) { return (cell % RUN + RUN) % RUN; }

// The weighted sums around cells 0 to RUN - 1, of cells that `load` reads by their number; pairs are STEP apart.
template <int STEP, typename Load>
__device__ inline void weigh_run(Load load, const float* weights, Real (&sums)[RUN])
{
    Real before[RUN], behind[RUN];
#pragma unroll
    for (int i = 0; i < RUN; ++i) {
        before[i] = behind[i] = load(i);
        sums[i] = before[i] * weights[0];
    }
#pragma unroll 1
    for (int first = 1; first <= radius; first += RUN)
#pragma unroll
        for (int j = 0; j < RUN; ++j) {
            const int k = first + j, moved = (1 + j) * STEP;  // k STEP, modulo RUN
            if (k > radius) break;
#pragma unroll
            for (int n = 0; n < STEP; ++n) {
                before[slot(n - moved)] = load(n - k * STEP);
                behind[slot(moved - STEP + n)] = load(k * STEP + RUN - STEP + n);
            }
#pragma unroll
            for (int i = 0; i < RUN; ++i)
                sums[i] = sums[i] + (before[slot(i - moved)] + behind[slot(i + moved)]) * weights[k];
        }
}

// The sums down sample k of the source's rows, for output rows y to y + RUN - 1. Behind the last row of the launch its
// results are repeated.
__device__ inline void sum_column(
    const Sample* source, const Geometry& g, int y, int k, const float* weights, Real (&sums)[RUN])
{
    const int first = y + valid_shift(radius), last = g.last - 1 + valid_shift(radius);
    const int pitch = g.width * CHANNELS;
    if (radius <= first && first + RUN - 1 <= last && first + RUN - 1 + radius < g.height) {
        const Sample* const middle = source + source_offset(g, first) + k;
        weigh_run<1>([=](int t) { return real(middle[t * pitch]); }, weights, sums);
    } else
        weigh_run<1>(
            [&](int t) {
                const int row = border_index(min(first + t, last + radius), g.height);
                return row < 0 ? Real{0} : real(source[source_offset(g, row) + k]);
            },
            weights, sums);
    if (BORDER == BORDER_REDUCE)
#pragma unroll
        for (int i = 0; i < RUN; ++i) sums[i] = divided(sums[i], first + i, g.height, weights);
}

// A line of shared memory has one unused cell for each RUN, so that the runs of a warp lie in different banks.
__device__ inline int spaced(unsigned cell) { return cell + cell / RUN; }

__device__ inline int line_cells() { return TILE_SAMPLES + 2 * radius * CHANNELS; }

// The sample of the source's rows that stands for cell q of the lines of a tile; -1 if it counts as zero.
__device__ inline int source_sample(const Geometry& g, int left, int q)
{
    const int x = (left + q) / CHANNELS - radius, c = (left + q) % CHANNELS, shift = valid_shift(radius);
    const int column = border_index(min(x, g.out_width - 1 + radius) + shift, g.width);
    return column < 0 ? -1 : column * CHANNELS + c;
}

// The rows of a tile, whose sums of columns are in `lines`.
template <typename Finish>
__device__ inline void sum_tile(
    const float* lines, Sample* output, const Geometry& g, int top, int left, const float* weights, Finish finish)
{
    const int samples = g.out_width * CHANNELS, pitch = spaced(line_cells());
    const int begin = threadIdx.x % LANES * RUN, k = left + begin;
    if (k >= samples) return;
    const int last = min(top + TILE_ROWS, g.last);
    for (int y = top + threadIdx.x / LANES; y < last; y += blockDim.x / LANES) {
        const float* const line = lines + (y - top) * pitch;
        const int middle = begin + radius * CHANNELS;
        Real means[RUN];
        weigh_run<CHANNELS>([=](int t) { return Real{line[spaced(middle + t)]}; }, weights, means);
        Sample* const target = output + sums_offset(g, y, samples) + k;
#pragma unroll
        for (int part = 0; part < RUN; part += QUAD) {
            Result results[QUAD];
#pragma unroll
            for (int i = 0; i < QUAD; ++i) {
                const int own = min(k + part + i, samples - 1);
                const Real mean = divided(means[part + i], own / CHANNELS, g.width, weights);
                results[i] = finish(mean, y, own);
            }
            if (k + part + QUAD <= samples)
                store(target + part, results, whole_quads(samples));
            else
#pragma unroll  // so that results stay in registers
                for (int i = 0; i < QUAD; ++i)
                    if (k + part + i < samples) target[part + i] = (Sample)results[i];
        }
    }
}

// Both passes.
template <typename Finish>
__device__ inline void filter_tile(
    const Sample* source, Sample* output, float* lines, const Geometry& g, Finish finish)
{
    const float* const weights = weights_in_constant_memory();
    const int left = blockIdx.x * TILE_SAMPLES, top = g.first + blockIdx.y * TILE_ROWS;
    const int width = line_cells(), pitch = spaced(width);
    if (left >= g.out_width * CHANNELS) return;
    for (int q = threadIdx.x, s = 0; s < TILE_ROWS; q += blockDim.x) {
        if (q >= width) {  // a line has at least as many cells as the block threads
            q -= width;
            s += RUN;
            if (s >= TILE_ROWS) break;
        }
        const int k = source_sample(g, left, q);
        Real sums[RUN] = {};
        if (k >= 0) sum_column(source, g, top + s, k, weights, sums);
#pragma unroll
        for (int i = 0; i < RUN; ++i) lines[(s + i) * pitch + spaced(q)] = sums[i].value;
    }
    __syncthreads();
    sum_tile(lines, output, g, top, left, weights, finish);
}

// The first pass by itself, ...
__device__ inline void sum_all_columns(const Sample* source, float* sums, const Geometry& g)
{
    const int columns = g.width * CHANNELS, y = g.first + blockIdx.y * RUN;
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < columns; k += gridDim.x * blockDim.x) {
        Real results[RUN];
        sum_column(source, g, y, k, weights_in_constant_memory(), results);
#pragma unroll
        for (int i = 0; i < RUN; ++i)
            if (y + i < g.last) sums[sums_offset(g, y + i, columns) + k] = results[i].value;
    }
}

// ... and the second.
template <typename Finish>
__device__ inline void sum_all_rows(
    const float* sums, Sample* output, float* lines, const Geometry& g, Finish finish)
{
    const int left = blockIdx.x * TILE_SAMPLES, top = g.first + blockIdx.y * TILE_ROWS;
    const int width = line_cells(), pitch = spaced(width), rows = min(TILE_ROWS, g.last - top);
    if (left >= g.out_width * CHANNELS) return;
    for (int q = threadIdx.x; q < width; q += blockDim.x) {
        const int k = source_sample(g, left, q);
        for (int s = 0; s < rows; ++s)
            lines[s * pitch + spaced(q)] = k < 0 ? 0 : sums[sums_offset(g, top + s, g.width * CHANNELS) + k];
    }
    __syncthreads();
    sum_tile(lines, output, g, top, left, weights_in_constant_memory(), finish);
}

#endif
