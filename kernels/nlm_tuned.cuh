// tuned: non-local means with everything between a sample and a result in registers.
//
// For an offset (dy, dx) the squared difference of the samples (y, x) and (y + dy, x + dx) belongs to
// PATCH^2 patches. It is computed once, and the distances of neighbouring pixels are two short sums
// over it:
//
//   S(y, x) = sum over s of P(s) (f(y + s, x) - f(y + s + dy, x + dx))^2     down the columns of a thread
//   D(y, x) = sum over t of P(t) S(y, x + t)                                 across the threads of a warp
//
// with P = G^2 along an axis. Samples are scaled when they are read, so that 2^-D is the weight.
//
// A thread has 4 columns x STRIP rows of pixels, whose sums stay in registers while it goes through
// all offsets; a warp has 128 columns, of which the outer HALF on each side only help their
// neighbours. GROUP offsets that differ in dx are taken at once, because they share their own samples
// and most of the others'. The block keeps two things in shared memory: its own samples, and the rows
// that a dy needs (BAND columns of them).
//
// Launch: blocks of 32 x WARPS threads (1, 2 or 4, as shared memory allows) for 128 - 2 HALF x STRIP
// WARPS pixels. Small pictures have too few blocks to fill the card: layers of them along z share the
// rows of candidates, and a second kernel adds up their sums. A pair of pixels takes about 20
// instructions with a Gaussian patch of 7 x 7, 14 with a uniform one.
#ifndef KERNELSCOPE_NLM_TUNED
#define KERNELSCOPE_NLM_TUNED
#include "common.cuh"

#ifndef CORRECTED  // whether the part of a distance that is noise does not count
#define CORRECTED 0
#endif
#ifndef PRODUCTS
#define PRODUCTS 0  // 1 for another way to weights, which suits bytes
#endif
#ifndef WHOLE  // whether candidates are all pixels of the image, not those of a window
#define WHOLE 0
#endif
#if PRODUCTS
#include "nlm_halves.cuh"
#if WHOLE
#include "nlm_products.cuh"
#else
#include "nlm_window.cuh"
#endif
#else

#ifndef PATCH
#define PATCH 7
#endif
#ifndef UNIFORM  // whether all cells of a patch count alike
#define UNIFORM 0
#endif
#ifndef TOGETHER  // how many colours share their weights
#define TOGETHER 1
#endif
#ifndef INSIDE  // whether candidates of a window lie inside the image
#define INSIDE 0
#endif
#ifndef REST  // offsets of a row of the window that are left when it is cut into groups
#define REST 1
#endif

#ifndef GROUP  // offsets taken at once: 2 or 4
#define GROUP 4
#endif
#ifndef STRIP  // rows of a thread
#define STRIP (TOGETHER == 1 ? 8 : 4)
#endif

#ifndef WARP_COLUMNS  // of a warp
#define WARP_COLUMNS 128
#endif
#ifndef CHUNK_OFFSETS  // offsets in a row for which a band of columns suffices
#define CHUNK_OFFSETS 32
#endif

__constant__ float tuned_profile[PATCH / 2 + 1];  // P, from the middle outwards
__constant__ float tuned_scale[2];                // of a sample for D, and back
__constant__ float tuned_floor;                   // the part of D that is noise
__constant__ int tuned_radius;                    // of the window
__constant__ int tuned_layers;                    // of blocks that share the rows of candidates

namespace tuned {

constexpr int HALF = PATCH / 2;
constexpr int COLUMNS = WARP_COLUMNS;
constexpr int CHUNK = CHUNK_OFFSETS;
constexpr int BAND = COLUMNS + CHUNK;
constexpr bool MASKED = WHOLE || INSIDE;
constexpr float NEVER = 1e30f;   // added to the distance of pixels that are no candidates
constexpr float LARGEST = 1e17f; // of a scaled sample: sums of squares stay finite

// Samples as the hardware loads them at once.
struct alignas(4 * GROUP) Vector {
    float values[GROUP];
};

// Read COUNT values that begin at an aligned address.
template <int COUNT>
__device__ inline void read(float (&values)[COUNT], const float* from)
{
#pragma unroll
    for (int i = 0; i < COUNT; i += GROUP) {
        const Vector vector = *(const Vector*)(from + i);
#pragma unroll
        for (int j = 0; j < GROUP; ++j)
            if (i + j < COUNT) values[i + j] = vector.values[j];
    }
}

// Sums over candidates for the pixels of a thread: of weights, and of scaled samples times weights.
struct Sums {
    float weights[STRIP][4];
    float samples[TOGETHER][STRIP][4];
};

__device__ inline void clear(Sums& sums)
{
#pragma unroll
    for (int i = 0; i < 4 * STRIP; ++i) {
        sums.weights[i / 4][i % 4] = 0;
#pragma unroll
        for (int c = 0; c < TOGETHER; ++c) sums.samples[c][i / 4][i % 4] = 0;
    }
}

// The rows that a block reads for its own pixels, or for a dy.
__device__ inline int block_rows()
{
    return blockDim.y * STRIP + 2 * HALF;
}

// Read TOGETHER planes of samples into `memory`, scaled and with borders applied; every thread has to
// call this.
template <int PITCH>
__device__ inline void load(
    float* memory, const Sample* source, const Geometry& g, int top, int left, int c)
{
    const int bottom = g.last - 1 + valid_shift(HALF + tuned_radius) + HALF + tuned_radius;
    int offsets[PITCH / 32];
#pragma unroll
    for (int i = 0; i < PITCH / 32; ++i)
        offsets[i] = border_index(left + threadIdx.x + 32 * i, g.width);
    for (int s = threadIdx.y; s < block_rows(); s += blockDim.y) {
        // A strip ends with the last row that is needed; without a window it has all rows.
        const int y = border_index(WHOLE ? top + s : min(top + s, bottom), g.height);
        const Sample* row = source + source_offset(g, max(y, 0)) + c;
#pragma unroll
        for (int k = 0; k < TOGETHER; ++k)
#pragma unroll
            for (int i = 0; i < PITCH / 32; ++i) {
                float sample = 0;
                if (y >= 0 && offsets[i] >= 0) sample = row[(size_t)offsets[i] * g.channels + k];
                sample = fminf(fmaxf(tuned_scale[0] * sample, -LARGEST), LARGEST);
                memory[(k * block_rows() + s) * PITCH + threadIdx.x + 32 * i] = sample;
            }
    }
}

// Column `i` of the warp, counted from this thread's first one; from -2 * 4 to 3 * 4 - 1.
__device__ inline float column(const float (&own)[4], int i)
{
    if (i < 0) return __shfl_up_sync(~0u, own[(i + 8) % 4], (3 - i) / 4);
    if (i >= 4) return __shfl_down_sync(~0u, own[i % 4], i / 4);
    return own[i];
}

// The sum over a column of a patch, from the squares of its cells.
__device__ inline float column_sum(const float (&cells)[PATCH])
{
    float sum = cells[HALF];
#pragma unroll
    for (int s = 1; s <= HALF; ++s) {
        sum = fmaf(tuned_profile[s], cells[HALF - s], sum);
        sum = fmaf(tuned_profile[s], cells[HALF + s], sum);
    }
    return sum;
}

// The distances of four pixels side by side, from the sums over the columns of their patches.
__device__ inline void row_sums(float (&distances)[4], const float (&own)[4])
{
    float columns[4 + 2 * HALF];
#pragma unroll
    for (int i = 0; i < 4 + 2 * HALF; ++i) columns[i] = column(own, i - HALF);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        float sum = columns[k + HALF];
#pragma unroll
        for (int t = 1; t <= HALF; ++t) {
#if UNIFORM
            if (k > 0) continue;
            sum += columns[HALF - t];
            sum += columns[HALF + t];
#else
            sum = fmaf(tuned_profile[t], columns[k + HALF - t], sum);
            sum = fmaf(tuned_profile[t], columns[k + HALF + t], sum);
#endif
        }
#if UNIFORM
        if (k > 0) sum = distances[k - 1] - columns[k - 1] + columns[k + 2 * HALF];
#endif
        distances[k] = sum;
    }
}

__device__ inline float exponential(float distance)
{
    float weight;
    const float exponent = CORRECTED ? fminf(tuned_floor - distance, 0) : -distance;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(weight) : "f"(exponent));
    return weight;
}

// Add the candidates at COUNT offsets that differ in dx. `own` and `others` point to the first cells
// that the thread needs; `barred` to the penalties added to the distances of the candidates there. Row 0 of
// the thread's pixels has candidates in row `first` of `rows`.
template <int COUNT>
__device__ inline void add(
    Sums& sums, const float* own, const float* others, const float* barred, int first, int rows)
{
    const int plane = block_rows();
    float bars[3 + COUNT];
    if (MASKED) read(bars, barred);
    // Of the last PATCH rows. Of a uniform patch: of all rows so far, summed up.
    float squares[COUNT][4][PATCH];
#pragma unroll
    for (int q = 0; q < STRIP + 2 * HALF; ++q) {
        float newest[COUNT][4];
#pragma unroll
        for (int c = 0; c < TOGETHER; ++c) {
            float a[4], b[3 + COUNT];
            read(a, own + c * plane * COLUMNS + q * COLUMNS);
            read(b, others + c * plane * BAND + q * BAND);
#pragma unroll
            for (int i = 0; i < 4 * COUNT; ++i) {
                const float difference = a[i % 4] - b[i % 4 + i / 4];
                float& square = newest[i / 4][i % 4];
                square = c == 0 ? difference * difference : fmaf(difference, difference, square);
            }
        }
        const int y = q - 2 * HALF;
        float b[TOGETHER][3 + COUNT];
        if (y >= 0)
#pragma unroll
            for (int c = 0; c < TOGETHER; ++c)
                read(b[c], others + c * plane * BAND + (y + HALF) * BAND);
#pragma unroll
        for (int o = 0; o < COUNT; ++o) {
            float column_sums[4], distances[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
#if UNIFORM
                float total = newest[o][k];
                if (q > 0) total += squares[o][k][(q + PATCH - 1) % PATCH];
                column_sums[k] = q < PATCH ? total : total - squares[o][k][q % PATCH];
                squares[o][k][q % PATCH] = total;
#else
                squares[o][k][q % PATCH] = newest[o][k];
                float cells[PATCH];
#pragma unroll
                for (int s = 0; s < PATCH; ++s) cells[s] = squares[o][k][(q + 1 + s) % PATCH];
                column_sums[k] = column_sum(cells);
#endif
            }
            if (y < 0 || (MASKED && (unsigned)(first + y) >= (unsigned)rows)) continue;
            row_sums(distances, column_sums);
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const float weight = exponential(MASKED ? distances[k] + bars[k + o] : distances[k]);
                sums.weights[y][k] += weight;
#pragma unroll
                for (int c = 0; c < TOGETHER; ++c)
                    sums.samples[c][y][k] = fmaf(weight, b[c][k + o], sums.samples[c][y][k]);
            }
        }
    }
}

// The block's place: its first pixel in the output, and how far the source is ahead of the output.
struct Place {
    int top, left, shift;
};

__device__ inline int rows_of_candidates(const Geometry& g)
{
    return g.height - 2 * valid_shift(HALF);
}

// Add all candidates at offsets (dy, dx) with first <= dx < last.
__device__ inline void add_row(
    Sums& sums, float* memory, const Sample* source, const Geometry& g, const Place& place, int dy,
    int first, int last, int c)
{
    const int strip = threadIdx.y * STRIP, column = 4 * threadIdx.x, rows = rows_of_candidates(g);
    float* band = memory + TOGETHER * block_rows() * COLUMNS;
    float* barred = band + TOGETHER * block_rows() * BAND;
    const float* own = memory + strip * COLUMNS + column;
    const float* others = band + strip * BAND + column;
    for (int dx = first; dx < last; dx += CHUNK) {
        const int top = place.top + dy, left = place.left - HALF + dx;
        __syncthreads();  // the last band has been read
        load<BAND>(band, source, g, top + place.shift - HALF, left + place.shift, c);
        if (MASKED && threadIdx.y == 0)
            for (int t = threadIdx.x; t < BAND; t += 32)
                barred[t] = (unsigned)(left + t) < (unsigned)g.out_width ? 0 : NEVER;
        __syncthreads();
        const int count = min(last - dx, CHUNK);
        int d = 0;
        // Offsets beyond the last one of the whole image have no candidates.
#pragma unroll 1
        for (; d + (WHOLE ? 0 : GROUP - 1) < count; d += GROUP)
            add<GROUP>(sums, own, others + d, barred + column + d, top + strip, rows);
        if (!WHOLE && d < count)
            add<REST>(sums, own, others + d, barred + column + d, top + strip, rows);
    }
}

// Call use(y, x, row, column) for the pixels of the thread: in the output, and in its sums.
template <typename Use>
__device__ inline void for_pixels(const Geometry& g, const Place& place, Use use)
{
    const int y = place.top + threadIdx.y * STRIP, column = 4 * threadIdx.x - HALF;
#pragma unroll
    for (int i = 0; i < 4 * STRIP; ++i) {
        const int k = column + i % 4, x = place.left + k;
        if (y + i / 4 < g.last && 0 <= k && k < COLUMNS - 2 * HALF && x < g.out_width)
            use(y + i / 4, x, i / 4, i % 4);
    }
}

// Write the mean: rounded to nearest even, saturated.
__device__ inline void write(Sample& output, float samples, float weights)
{
    const float mean = samples / weights * tuned_scale[1];
#if SAMPLE_BITS == 32
    output = mean;
#else
    output = (Sample)fminf(rintf(mean), SAMPLE_MAX);
#endif
}

__device__ inline Place place_of_block(const Geometry& g)
{
    return {g.first + (int)(blockIdx.y * blockDim.y * STRIP), (int)(blockIdx.x * (COLUMNS - 2 * HALF)),
        valid_shift(HALF + tuned_radius)};
}

// Read the samples of the block itself.
__device__ inline void load_own(
    float* memory, const Sample* source, const Geometry& g, const Place& place, int c)
{
    const int ahead = place.shift - HALF;
    __syncthreads();  // the channel before has been read
    load<COLUMNS>(memory, source, g, place.top + ahead, place.left + ahead, c);
}

// Two and four channels have alpha behind their colours, which is as good as any value: it is put back
// later. One layer clears it: the others have the same pixels.
__device__ inline void clear_alpha(Sample* output, const Geometry& g, const Place& place)
{
    if (g.channels % 2 == 0 && blockIdx.z == 0)
        for_pixels(g, place, [&](int y, int x, int, int) {
            output[output_offset(g, y, x) + g.channels - 1] = 0;
        });
}

}  // namespace tuned

extern __shared__ float tuned_memory[];

// `scratch` holds, for each pixel, each colour (or once for colours that share them) and each layer, sums of
// weights and of samples.
namespace tuned {

__device__ inline float* totals_of(float* scratch, const Geometry& g, int y, int x, int c)
{
    const int groups = ((g.channels - 1) | 1) / TOGETHER;
    const size_t pixel = (size_t)(y - g.output_row) * g.out_width + x;
    return scratch + ((pixel * groups + c / TOGETHER) * tuned_layers + blockIdx.z) * (1 + TOGETHER);
}

}  // namespace tuned

#if WHOLE
// A row of candidates is summed up by itself first: adding a million small numbers to a large one would
// lose digits. Of a step, which is tuned_layers rows, a layer has one.
extern "C" __launch_bounds__(128, 2) __global__ void nlm_tuned(
    const Sample* source, Sample* output, float* scratch, Geometry g, int first_step, int last_step)
{
    using namespace tuned;
    const Place place = place_of_block(g);
    const int colours = (g.channels - 1) | 1;
    const int reach = blockDim.y * STRIP - 1;  // rows above the image in which the block begins
    const int last = g.out_width - place.left, first = 1 - place.left - (COLUMNS - 2 * HALF);
    for (int c = 0; c < colours; c += TOGETHER) {
        load_own(tuned_memory, source, g, place, c);
        for (int step = first_step; step < last_step; ++step) {
            const int dy = step * tuned_layers + (int)blockIdx.z - reach - place.top;
            Sums sums;
            clear(sums);
            add_row(sums, tuned_memory, source, g, place, dy, first, last, c);
            for_pixels(g, place, [&](int y, int x, int row, int column) {
                float* total = totals_of(scratch, g, y, x, c);
                float weights = sums.weights[row][column];
                if (step > 0) weights += total[0];
                total[0] = weights;
#pragma unroll
                for (int k = 0; k < TOGETHER; ++k) {
                    float samples = sums.samples[k][row][column];
                    if (step > 0) samples += total[1 + k];
                    total[1 + k] = samples;
                }
            });
        }
    }
    clear_alpha(output, g, place);
}
#else
// Of the rows of the window, a layer has every tuned_layers-th.
extern "C" __launch_bounds__(128, 2) __global__ void nlm_tuned(
    const Sample* source, Sample* output, float* scratch, Geometry g)
{
    using namespace tuned;
    const Place place = place_of_block(g);
    const int colours = (g.channels - 1) | 1;
    for (int c = 0; c < colours; c += TOGETHER) {
        load_own(tuned_memory, source, g, place, c);
        Sums sums;
        clear(sums);
        for (int dy = (int)blockIdx.z - tuned_radius; dy <= tuned_radius; dy += tuned_layers)
            add_row(sums, tuned_memory, source, g, place, dy, -tuned_radius, tuned_radius + 1, c);
        for_pixels(g, place, [&](int y, int x, int row, int column) {
            float* total = totals_of(scratch, g, y, x, c);
            if (tuned_layers > 1) total[0] = sums.weights[row][column];
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k)
                if (tuned_layers > 1)
                    total[1 + k] = sums.samples[k][row][column];
                else
                    write(output[output_offset(g, y, x) + c + k], sums.samples[k][row][column],
                        sums.weights[row][column]);
        });
    }
    clear_alpha(output, g, place);
}
#endif

// The means, from the sums of all layers; a thread a pixel.
extern "C" __global__ void nlm_tuned_mean(
    const Sample* source, Sample* output, float* scratch, Geometry g)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = g.first + blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= g.out_width || y >= g.last) return;
    for (int c = 0; c < ((g.channels - 1) | 1); c += TOGETHER) {
        const float* total = tuned::totals_of(scratch, g, y, x, c);
        float sums[1 + TOGETHER] = {};
        for (int layer = 0; layer < tuned_layers; ++layer)
            for (int k = 0; k <= TOGETHER; ++k) sums[k] += total[layer * (1 + TOGETHER) + k];
        for (int k = 0; k < TOGETHER; ++k)
            tuned::write(output[output_offset(g, y, x) + c + k], sums[1 + k], sums[0]);
    }
}
#endif
#endif
