// Sliding DCT: the mean of all 8 x 8 blocks that cover a pixel, noise removed from each, in two passes.
//
//   pass 1  keeps the coefficients above a threshold, and the first; weight 1 / (how many are kept)
//   pass 2  c b^2 / (b^2 + sigma^2), b of the block in pass 1's result; weight 1 / (sum of the squared factors)
//
// The picture is padded once by 14 pixels, so that no pass treats a border; colours become opponents. The
// result of pass 1 is padded by 7: its blocks reach beyond what they cover. All sums are of floats in one
// order, and each multiply-add is fused or not as on the CPU: a block's rows, its columns, what is left of these
// transformed back along y and added from the top block to the bottom one; then back along x, and
// added from the left one to the right one.
//
// level   demonstrates                                      sums over y               sums over x
// global  a thread goes down a column, everything by itself  its local memory          another kernel
// shared  a block goes down 32 columns                       shared memory, in turns   shared memory
//
// A thread of *global* transforms eight rows for every block; a block of *shared* transforms a row once
// for the eight (nearly) that need it.
//
// Launch: blocks of 32 x 8 threads over the output, which stride over what lies beyond it. *global*: a thread has
// a column of 8 rows, a layer of the grid a colour. *shared*: a block has TILE_COLUMNS x TILE_ROWS pixels, its
// threads 32 x 8 blocks at a time.
#include "cosine.cuh"

#define SIDE 8
#define PART (1.0f / 64)        // of a block that was transformed back
#define LARGEST 1.2676506e30f  // 2^100
#define REACH (SIDE - 1)
#define MARGIN (2 * REACH)
#define THREADS_X 32
#define THREADS_Y 8
#define TILE_COLUMNS (THREADS_X - REACH)
#ifndef TILE_ROWS
#define TILE_ROWS 57
#endif

// For each plane the thresholds of pass 1, and 1 / sigma, for frequencies [k][q]; zeros: there is no noise.
__constant__ float noise[3][2][SIDE * SIDE];

// The coefficients of a block, and later what is left of them: [k][q], k along x, q along y.
struct Block {
    Real values[SIDE][SIDE];

    __device__ inline void transform_columns()
    {
#pragma unroll
        for (int k = 0; k < SIDE; ++k) forward<1>(values[k]);
    }

    // Weigh the block, and transform it back along y.
    __device__ inline void restore_columns(Real weight)
    {
#pragma unroll
        for (int k = 0; k < SIDE; ++k) {
#pragma unroll
            for (int q = 0; q < SIDE; ++q) values[k][q] = values[k][q] * weight;
            backward<1>(values[k]);
        }
    }

    // Pass 1; returns the weight.
    __device__ inline Real keep_large(int c)
    {
        int kept = 1;
#pragma unroll
        for (int k = 0; k < SIDE; ++k)
#pragma unroll
            for (int q = 0; q < SIDE; ++q)
                if (k + q > 0) {
                    const bool keep = fabsf(values[k][q].value) > noise[c][0][k * SIDE + q];
                    if (!keep) values[k][q] = {0.0f};
                    kept += keep;
                }
        return Real{1.0f} / Real{(float)kept};
    }

    // Of a guide: its factors in place of its coefficients; returns the weight.
    __device__ inline Real become_factors(int c)
    {
        const Real one = {1.0f};
        Real total = one;
        values[0][0] = one;
#pragma unroll
        for (int k = 0; k < SIDE; ++k)
#pragma unroll
            for (int q = 0; q < SIDE; ++q)
                if (k + q > 0) {
                    const Real ratio = values[k][q] * noise[c][1][k * SIDE + q];
                    Real power = fused(ratio, ratio, one);
                    if (power.value > LARGEST) power.value = LARGEST;  // no gain differs by that
                    const Real gain = one - near_quotient(one, power);
                    values[k][q] = gain;
                    total = fused(gain, gain, total);
                }
        return one / total;
    }
};

// Two and four channels have alpha behind their colours.
__device__ inline int colours(const Geometry& g) { return (g.channels - 1) | 1; }

// A picture in floats with `around` more rows and columns than the output: of each row a line for each
// colour. Row y is there from g.output_row on; cell (y, x) is the middle of those that output (y, x) needs if
// `around` is 0.
template <typename Pointer>
struct Planes {
    Pointer cells;
    int around, count, columns, output_row;

    __device__ inline Planes(Pointer cells, const Geometry& g, int around)
        : cells(cells), around(around), count(colours(g)), columns(g.out_width + around),
          output_row(g.output_row)
    {
    }

    __device__ inline Pointer line(int y, int c) const
    {
        return cells + ((size_t)(y - output_row) * count + c) * columns;
    }
};
template <typename Pointer>
__device__ inline Planes<Pointer> planes(Pointer cells, const Geometry& g, int around)
{
    return Planes<Pointer>(cells, g, around);
}

extern "C" __global__ void sliding_dct_pad(
    const Sample* source, Sample* output, float* padded, Geometry g)
{
    const auto target = planes(padded, g, 2 * MARGIN);
    const int shift = valid_shift(MARGIN) - MARGIN, last = g.last + 2 * MARGIN;
    const int rows_at_once = gridDim.y * blockDim.y, columns_at_once = gridDim.x * blockDim.x;
    for (int y = g.first + blockIdx.y * blockDim.y + threadIdx.y; y < last; y += rows_at_once)
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < target.columns;
             x += columns_at_once) {
            float* line = target.line(y, 0) + x;
            const Real first = {(float)fetch(source, g, y + shift, x + shift, 0)};
            line[0] = first.value;
            if (target.count == 3) {
                const Real green = {(float)fetch(source, g, y + shift, x + shift, 1)};
                const Real blue = {(float)fetch(source, g, y + shift, x + shift, 2)};
                line[0] = ((first + green + blue) * GREY).value;
                line[target.columns] = ((first - blue) * RED_BLUE).value;
                line[2 * target.columns] = (((first + blue) - (green + green)) * GREEN).value;
            }
        }
}

__device__ inline Sample as_sample(Real value)
{
#if SAMPLE_BITS < 32
    return (Sample)fminf(fmaxf(rintf(value.value), 0.0f), (float)SAMPLE_MAX);
#else
    return value.value;
#endif
}

// Write pixel (y, x) of the result, whose values lie `pitch` apart.
__device__ inline void write_pixel(
    const Sample* source, Sample* output, const Geometry& g, int y, int x, const float* values,
    int pitch)
{
    const int shift = valid_shift(MARGIN), count = colours(g);
    Sample* pixel = output + output_offset(g, y, x);
    // Alpha is put back later: any value will do.
    if (count < g.channels) pixel[count] = 0;
    if (noise[0][1][0] == 0) {
        for (int c = 0; c < count; ++c) pixel[c] = fetch(source, g, y + shift, x + shift, c);
    } else if (count == 3) {
        const Real grey = Real{values[0]} * GREY, across = Real{values[pitch]} * RED_BLUE;
        const Real green = Real{values[2 * pitch]} * GREEN;
        pixel[0] = as_sample(grey + across + green);
        pixel[1] = as_sample(grey - (green + green));
        pixel[2] = as_sample(grey - across + green);
    } else {
        pixel[0] = as_sample({values[0]});
    }
}

// ---- Level global ----

// The coefficients of the block whose first cell is (y, x).
__device__ inline void load_block(
    Block& block, const Planes<const float*>& cells, int y, int x, int c)
{
#pragma unroll
    for (int j = 0; j < SIDE; ++j) {
        const float* line = cells.line(y + j, c) + x;
        Real row[SIDE];
#pragma unroll
        for (int i = 0; i < SIDE; ++i) row[i] = {line[i]};
        forward<1>(row);
#pragma unroll
        for (int k = 0; k < SIDE; ++k) block.values[k][j] = row[k];
    }
    block.transform_columns();
}

// A line of `sums` has, for each place, eight values along x and the weight, in nine lines one below the other.
// The picture's blocks begin `shift` cells further down and right than those of the guide.
template <bool WIENER>
__device__ inline void sum_columns(
    const Planes<const float*>& picture, const Planes<const float*>& guide, int shift, float* sums,
    int around, const Geometry& g)
{
    const int c = blockIdx.z, places = g.out_width + around + REACH, last = g.last + around;
    const int rows_at_once = gridDim.y * THREADS_Y * SIDE;
    const int columns_at_once = gridDim.x * THREADS_X;
    int top = g.first + (blockIdx.y * THREADS_Y + threadIdx.y) * SIDE;
    for (; top < last; top += rows_at_once)
        for (int x = blockIdx.x * THREADS_X + threadIdx.x; x < places; x += columns_at_once) {
            Real sum[SIDE][SIDE + 1];  // indexed by a variable: local memory
            for (int r = 0; r < SIDE; ++r)
                for (int k = 0; k <= SIDE; ++k) sum[r][k] = {0.0f};
            const int end = min(top + SIDE, last);
#pragma unroll 1
            for (int y = top; y < end + REACH; ++y) {
                Block block;
                Real weight;
                if (WIENER) {
                    Block factors;
                    load_block(factors, guide, y, x, c);
                    weight = factors.become_factors(c);
                    load_block(block, picture, y + shift, x + shift, c);
#pragma unroll
                    for (int k = 0; k < SIDE; ++k)
#pragma unroll
                        for (int q = 0; q < SIDE; ++q)
                            block.values[k][q] = block.values[k][q] * factors.values[k][q];
                } else {
                    load_block(block, picture, y, x, c);
                    weight = block.keep_large(c);
                }
                block.restore_columns(weight);
#pragma unroll
                for (int r = 0; r < SIDE; ++r) {
                    const int row = y - REACH + r - top;
                    if (row < 0 || row >= end - top) continue;
#pragma unroll
                    for (int k = 0; k < SIDE; ++k) sum[row][k] = sum[row][k] + block.values[k][r];
                    sum[row][SIDE] = sum[row][SIDE] + weight;
                }
            }
            for (int r = 0; r < end - top; ++r) {
                backward<1>(sum[r]);
                float* line =
                    sums + ((size_t)(top + r - g.output_row) * colours(g) + c) * (SIDE + 1) * places;
                for (int k = 0; k <= SIDE; ++k) line[k * places + x] = sum[r][k].value;
            }
        }
}

extern "C" __global__ void __launch_bounds__(THREADS_X* THREADS_Y)
    sliding_dct_global_hard(const Sample*, Sample*, const float* padded, float* sums, Geometry g)
{
    const auto picture = planes(padded, g, 2 * MARGIN);
    sum_columns<false>(picture, picture, 0, sums, MARGIN, g);
}

extern "C" __global__ void __launch_bounds__(THREADS_X* THREADS_Y) sliding_dct_global_wiener(
    const Sample*, Sample*, const float* padded, const float* first, float* sums, Geometry g)
{
    sum_columns<true>(
        planes(padded, g, 2 * MARGIN), planes(first, g, MARGIN), REACH, sums, 0, g);
}

// The mean of the blocks at column x of a line of sums, added up from left to right.
__device__ inline float divide_sums(
    const float* sums, const Geometry& g, int places, int y, int x, int c)
{
    const float* line =
        sums + ((size_t)(y - g.output_row) * colours(g) + c) * (SIDE + 1) * places + x;
    Real total = {0.0f}, weight = {0.0f};
    for (int k = 0; k < SIDE; ++k) {
        total = total + Real{line[(REACH - k) * places + k]};
        weight = weight + Real{line[SIDE * places + k]};
    }
    return (total * PART / weight).value;
}

extern "C" __global__ void sliding_dct_global_first(
    const Sample*, Sample*, const float* sums, float* first, Geometry g)
{
    const auto result = planes(first, g, MARGIN);
    const int rows_at_once = gridDim.y * blockDim.y, columns_at_once = gridDim.x * blockDim.x;
    const int last = g.last + MARGIN;
    for (int y = g.first + blockIdx.y * blockDim.y + threadIdx.y; y < last; y += rows_at_once)
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < result.columns;
             x += columns_at_once)
            for (int c = 0; c < result.count; ++c)
                result.line(y, c)[x] = divide_sums(sums, g, result.columns + REACH, y, x, c);
}

extern "C" __global__ void sliding_dct_global_second(
    const Sample* source, Sample* output, const float* sums, Geometry g)
{
    const int y = g.first + blockIdx.y * blockDim.y + threadIdx.y;
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (y >= g.last || x >= g.out_width) return;
    float values[3];
    for (int c = 0; c < colours(g); ++c)
        values[c] = divide_sums(sums, g, g.out_width + REACH, y, x, c);
    write_pixel(source, output, g, y, x, values, 1);
}

// ---- Level shared ----

#define ROWS_AT_ONCE (THREADS_Y + REACH)
#define KEPT_ROWS 16  // a power of two that has room for them

struct Memory {
    float rows[ROWS_AT_ONCE][SIDE][THREADS_X];   // transformed along x; later back along x
    float sums[KEPT_ROWS][SIDE + 1][THREADS_X];  // of blocks and weights; row y at y modulo 16
};

// The blocks of this thread: rows are transformed along x once, by whoever comes first.
__device__ inline void load_shared(
    Block& block, Memory& memory, const Planes<const float*>& cells, int y, int x, int last_row, int c)
{
    const int column = min(x + (int)threadIdx.x, cells.columns - SIDE);
    for (int j = threadIdx.y; j < ROWS_AT_ONCE; j += THREADS_Y) {
        const float* line = cells.line(min(y + j, last_row), c) + column;
        Real row[SIDE];
#pragma unroll
        for (int i = 0; i < SIDE; ++i) row[i] = {line[i]};
        forward<1>(row);
#pragma unroll
        for (int k = 0; k < SIDE; ++k) memory.rows[j][k][threadIdx.x] = row[k].value;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SIDE; ++k)
#pragma unroll
        for (int j = 0; j < SIDE; ++j)
            block.values[k][j] = {memory.rows[threadIdx.y + j][k][threadIdx.x]};
    block.transform_columns();
    __syncthreads();
}

// The tile whose first pixel is (top, left), of a colour.
template <bool WIENER>
__device__ inline void filter_tile(
    Memory& memory, const Planes<const float*>& picture, const Planes<const float*>& guide,
    int shift, const Planes<float*>& result, int top, int left, int end, int c)
{
    const int last = min(top + TILE_ROWS, end), tx = threadIdx.x, ty = threadIdx.y;
    for (int r = ty; r < KEPT_ROWS; r += THREADS_Y)
        for (int k = 0; k <= SIDE; ++k) memory.sums[r][k][tx] = 0;
    for (int y = top; y < last + REACH; y += THREADS_Y) {
        Block block;
        Real weight;
        if (WIENER) {
            Block factors;
            load_shared(factors, memory, guide, y, left, end + MARGIN - 1, c);
            weight = factors.become_factors(c);
            load_shared(
                block, memory, picture, y + shift, left + shift, end + MARGIN - 1 + shift,
                c);
#pragma unroll
            for (int k = 0; k < SIDE; ++k)
#pragma unroll
                for (int q = 0; q < SIDE; ++q)
                    block.values[k][q] = block.values[k][q] * factors.values[k][q];
        } else {
            load_shared(block, memory, picture, y, left, end + MARGIN - 1, c);
            weight = block.keep_large(c);
        }
        block.restore_columns(weight);
        // In turns: each row gets its blocks from the top one to the bottom one.
#pragma unroll
        for (int r = REACH; r >= 0; --r) {
            float(*sum)[THREADS_X] = memory.sums[(y + ty - REACH + r) & (KEPT_ROWS - 1)];
#pragma unroll
            for (int k = 0; k < SIDE; ++k)
                sum[k][tx] = (Real{sum[k][tx]} + block.values[k][r]).value;
            sum[SIDE][tx] = (Real{sum[SIDE][tx]} + weight).value;
            __syncthreads();
        }
        // Eight rows have all of their blocks.
        const int row = y + ty - REACH;
        float(*sum)[THREADS_X] = memory.sums[row & (KEPT_ROWS - 1)];
        Real values[SIDE];
#pragma unroll
        for (int k = 0; k < SIDE; ++k) {
            values[k] = {sum[k][tx]};
            sum[k][tx] = 0;
        }
        backward<1>(values);
#pragma unroll
        for (int k = 0; k < SIDE; ++k) memory.rows[ty][k][tx] = values[k].value;
        __syncthreads();
        const int x = left + tx;
        if (top <= row && row < last && tx < TILE_COLUMNS && x < result.columns) {
            Real total = {0.0f}, weights = {0.0f};
#pragma unroll
            for (int k = 0; k < SIDE; ++k) {
                total = total + Real{memory.rows[ty][REACH - k][tx + k]};
                weights = weights + Real{sum[SIDE][tx + k]};
            }
            result.line(row, c)[x] = (total * PART / weights).value;
        }
        __syncthreads();
        sum[SIDE][tx] = 0;
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS_X* THREADS_Y)
    sliding_dct_shared_hard(const Sample*, Sample*, const float* padded, float* first, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const auto picture = planes(padded, g, 2 * MARGIN);
    const auto result = planes(first, g, MARGIN);
    const int end = g.last + MARGIN;
    for (int top = g.first + blockIdx.y * TILE_ROWS; top < end; top += gridDim.y * TILE_ROWS)
        for (int left = blockIdx.x * TILE_COLUMNS; left < result.columns;
             left += gridDim.x * TILE_COLUMNS)
            for (int c = 0; c < result.count; ++c)
                filter_tile<false>(
                    *(Memory*)memory, picture, picture, 0, result, top, left, end, c);
}

extern "C" __global__ void __launch_bounds__(THREADS_X* THREADS_Y) sliding_dct_shared_wiener(
    const Sample* source, Sample* output, const float* padded, const float* first, float* second,
    Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    const auto picture = planes(padded, g, 2 * MARGIN);
    const auto guide = planes(first, g, MARGIN);
    const auto result = planes(second, g, 0);
    const int top = g.first + blockIdx.y * TILE_ROWS, left = blockIdx.x * TILE_COLUMNS;
    for (int c = 0; c < result.count; ++c)
        filter_tile<true>(
            *(Memory*)memory, picture, guide, REACH, result, top, left, g.last, c);
    const int x = left + threadIdx.x;
    if (threadIdx.x >= TILE_COLUMNS || x >= g.out_width) return;
    for (int y = top + threadIdx.y; y < min(top + TILE_ROWS, g.last); y += THREADS_Y)
        write_pixel(source, output, g, y, x, result.line(y, 0) + x, result.columns);
}
