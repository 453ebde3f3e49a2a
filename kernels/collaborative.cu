// Collaborative filtering: stacks of blocks that are alike lose their noise together, in two stages.
//
//   stage 1  like blocks of the noisy picture; keeps wavelet coefficients above a threshold
//   stage 2  like blocks of stage 1's result, the guide; c b^2 / (b^2 + sigma^2), b of the guide
//
// The picture is padded by 8 pixels; blocks lie inside that frame. A stage has three launches: *match* lists the
// blocks most like each of those on a grid; *groups* filters these stacks and adds up what they lose, weighed, for
// each tile of 16 x 8 of them; *guide* or *finish* adds up the tiles that overlap, and takes the mean off the
// picture. Sums are of integers, so that their order does not matter; `Numbers` in model.py has the proof that
// they fit. A tile writes its own sums: a launch that is repeated, or cut into pieces, changes nothing.
//
// level   demonstrates                                  cells to compare   stacks and sums of a tile
// global  a thread compares a block with all others     global memory      global memory, of each tile
// shared  the same from a tile on the chip              shared memory      shared memory, then copied
//
// Launch: blocks of 32 x 8 threads over the output, which stride over what lies beyond it; *groups*: 32 x 4 threads,
// a warp a stack and a lane a block of it, over tiles of 16 x 8 blocks of the grid.
#include "cosine.cuh"

#ifndef GRID_STEP
#define GRID_STEP 3
#endif
#ifndef REACH
#define REACH 19
#endif
#ifndef MOST
#define MOST 16
#endif

#define SIDE 8
#define MARGIN SIDE
#define STAGE (SIDE - 1 + 2 * REACH)  // how far a stage looks
#define HALO (2 * STAGE)
#define MOST_PLACES 32
#define WEIGHT_STEPS 8388608.0f
#define SHARES 65526.0f       // of 16 bits
#define ONE 65025.0f          // 255 squared
#define LIMIT_STEPS 262144.0f  // the integer of `numbers[1]` and a weight of 1
#define LARGEST 1.2676506e30f  // 2^100
#define LARGEST_FLOAT 3.402823466e38f

#define TILE_ROWS 8  // of blocks on the grid
#define TILE_COLUMNS 16
#define REGION_ROWS ((TILE_ROWS - 1) * GRID_STEP + 2 * REACH + SIDE)
#define REGION_COLUMNS ((TILE_COLUMNS - 1) * GRID_STEP + 2 * REACH + SIDE)
#define REGION (REGION_ROWS * REGION_COLUMNS)
#define WARPS 4
#ifndef GROUP_WARPS  // at level tuned
#define GROUP_WARPS 8
#endif
#ifndef BYTES  // at level tuned: the plane has whole numbers of eight bits
#define BYTES 0
#endif
#define PITCH 33  // of the coefficients of a stack

// tolerance, by how much a limit's half is divided, nothing, and quotient; a window of eight; for each plane six thresholds or
// variances, and by which they are multiplied for each coefficient.
__constant__ float numbers[222];
#define WINDOW 4
#define LEVELS(c) (12 + 70 * (c))  // of a plane
#define NORMS 6                    // from these on

struct Frame {
    int width, height;           // of the padded picture
    int first_row;               // that buffers have
    int first_tile;              // of rows of tiles that buffers have
    int across, down;            // blocks on the grid
    int tiles_across, colours;

    __device__ inline Frame(const Geometry& g)
        : width(g.width + 2 * MARGIN), height(g.height + 2 * MARGIN),
          first_row(g.output_row + MARGIN - HALO), across((width - SIDE + GRID_STEP - 1) / GRID_STEP + 1),
          down((height - SIDE + GRID_STEP - 1) / GRID_STEP + 1), colours((g.channels - 1) | 1)
    {
        first_tile = max(first_row, 0) / GRID_STEP / TILE_ROWS;
        tiles_across = (across + TILE_COLUMNS - 1) / TILE_COLUMNS;
    }

    // Where a cell is in a buffer of planes, and in one of a single plane.
    __device__ inline size_t at(int y, int x, int c) const
    {
        return ((size_t)(y - first_row) * colours + c) * width + x;
    }
    __device__ inline size_t cell(int y, int x) const
    {
        return (size_t)(y - first_row) * width + x;
    }
    __device__ inline int row(int i) const { return min(i * GRID_STEP, height - SIDE); }
    __device__ inline int column(int j) const { return min(j * GRID_STEP, width - SIDE); }
    __device__ inline size_t group(int i, int j) const
    {
        return (size_t)(i - first_tile * TILE_ROWS) * across + j;
    }
    __device__ inline size_t tile(int ti, int tj, int c) const
    {
        return ((size_t)(ti - first_tile) * tiles_across + tj) * colours + c;
    }
};

// Rows of the frame, and the rows of blocks that reach them, of a launch whose stage has to be right `around` rows
// beyond the output. The first rows of blocks are those of the whole strip: a tile that an earlier piece of a launch
// began is computed anew, from its top.
struct Rows {
    int first, last, top, bottom;

    __device__ inline Rows(const Frame& f, const Geometry& g, int around)
        : first(max(0, g.first + MARGIN - around)), last(min(f.height, g.last + MARGIN + around))
    {
        const int strip = max(0, g.output_row + MARGIN - around - (SIDE - 1) - REACH);
        top = min((strip + GRID_STEP - 1) / GRID_STEP, f.down - 1);
        const int end = last + REACH;  // behind the last block that reaches the last row
        bottom = min(f.down, (end + GRID_STEP - 1) / GRID_STEP);
        if (f.height - SIDE < end) bottom = f.down;
    }
    // The first row of tiles of this piece.
    __device__ inline int begin() const
    {
        const int row = max(0, first - (SIDE - 1) - REACH);
        return max(top, (row + GRID_STEP - 1) / GRID_STEP) / TILE_ROWS;
    }
    __device__ inline int end() const { return (bottom + TILE_ROWS - 1) / TILE_ROWS; }
};

__device__ inline Real cell_of(Real grey, int colours)
{
    if (colours == 3) grey = grey * GREY;
#if SAMPLE_BITS == 8
    grey.value = rintf(grey.value);
#endif
    return grey;
}

extern "C" __global__ void collaborative_pad(
    const Sample* source, Sample* output, float* planes, float* cells, Geometry g)
{
    const Frame f(g);
    const Rows rows(f, g, HALO);
    for (int y = rows.first + blockIdx.y * blockDim.y + threadIdx.y; y < rows.last;
         y += gridDim.y * blockDim.y)
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < f.width;
             x += gridDim.x * blockDim.x) {
            Real first = {(float)fetch(source, g, y - MARGIN, x - MARGIN, 0)};
            if (f.colours == 3) {
                const Real red = first;
                const Real green = {(float)fetch(source, g, y - MARGIN, x - MARGIN, 1)};
                const Real blue = {(float)fetch(source, g, y - MARGIN, x - MARGIN, 2)};
                first = (red + green + blue) * GREY;
                planes[f.at(y, x, 1)] = ((red - blue) * RED_BLUE).value;
                planes[f.at(y, x, 2)] = (((red + blue) - (green + green)) * GREEN).value;
            }
            planes[f.at(y, x, 0)] = first.value;
            cells[f.cell(y, x)] = cell_of(first, f.colours).value;
        }
}

// ---- match ----

// The sum of squared differences of two blocks, column by column.
__device__ inline Real difference(const float* a, const float* b, int pitch)
{
    Real total = {0.0f};
#pragma unroll
    for (int k = 0; k < SIDE; ++k) {
        Real column = {0.0f};
#pragma unroll
        for (int j = 0; j < SIDE; ++j) {
            const Real d = Real{a[j * pitch + k]} - Real{b[j * pitch + k]};
            column = column + d * d;
        }
        total = total + column;
    }
    return total;
}

// List the blocks most like block (y, x): codes of their offsets, and how many, a power of two. `block` is the block
// itself, and others lie around it.
__device__ inline void match_block(
    const Frame& f, const float* block, int pitch, int y, int x, unsigned short* places, int* count)
{
    float best[MOST];
    unsigned short found[MOST];
    best[0] = -1.0f;
    found[0] = REACH << 6 | REACH;
    int n = 1;
    for (int dy = max(-REACH, -y); dy <= min(REACH, f.height - SIDE - y); ++dy)
        for (int dx = max(-REACH, -x); dx <= min(REACH, f.width - SIDE - x); ++dx) {
            if (dy == 0 && dx == 0) continue;
            const float total = difference(block, block + dy * pitch + dx, pitch).value;
            if (!(total < (n < MOST ? numbers[0] : best[MOST - 1]))) continue;
            int m = n < MOST ? n++ : MOST - 1;
            for (; m > 1 && best[m - 1] > total; --m) {
                best[m] = best[m - 1];
                found[m] = found[m - 1];
            }
            best[m] = total;
            found[m] = (unsigned short)((dy + REACH) << 6 | (dx + REACH));
        }
    int power = 1;
    while (2 * power <= n) power *= 2;
    *count = power;
    for (int m = 0; m < power; ++m) places[m] = found[m];
}

__device__ inline void match_global(
    const float* cells, unsigned short* places, int* counts, const Geometry& g, int around)
{
    const Frame f(g);
    const Rows rows(f, g, around);
    for (int i = rows.begin() * TILE_ROWS + blockIdx.y * 8 + threadIdx.y; i < rows.bottom;
         i += gridDim.y * 8)
        for (int j = blockIdx.x * 32 + threadIdx.x; j < f.across; j += gridDim.x * 32) {
            if (i < rows.top) continue;
            const int y = f.row(i), x = f.column(j);
            const size_t at = f.group(i, j);
            match_block(
                f, cells + f.cell(y, x), f.width, y, x, places + at * MOST_PLACES, counts + at);
        }
}

#define CELL_ROWS (7 * GRID_STEP + 2 * REACH + SIDE)
#define CELL_COLUMNS (31 * GRID_STEP + 2 * REACH + SIDE)

__device__ inline void match_shared(
    const float* cells, unsigned short* places, int* counts, float* tile, const Geometry& g, int around)
{
    const Frame f(g);
    const Rows rows(f, g, around);
    for (int top = rows.begin() * TILE_ROWS + blockIdx.y * 8; top < rows.bottom;
         top += gridDim.y * 8)
        for (int left = blockIdx.x * 32; left < f.across; left += gridDim.x * 32) {
            const int y0 = f.row(max(top, rows.top)) - REACH, x0 = f.column(left) - REACH;
            const int last = f.row(min(top + 8, rows.bottom) - 1) + REACH + SIDE;
            for (int r = threadIdx.y; r < CELL_ROWS; r += 8)
                for (int s = threadIdx.x; s < CELL_COLUMNS; s += 32) {
                    const int y = y0 + r, x = x0 + s;
                    if (0 <= y && y < min(last, f.height) && 0 <= x && x < f.width)
                        tile[r * CELL_COLUMNS + s] = cells[f.cell(y, x)];
                }
            __syncthreads();
            const int i = top + threadIdx.y, j = left + threadIdx.x;
            if (rows.top <= i && i < rows.bottom && j < f.across) {
                const int y = f.row(i), x = f.column(j);
                const size_t at = f.group(i, j);
                match_block(
                    f, tile + (y - y0) * CELL_COLUMNS + x - x0, CELL_COLUMNS, y, x,
                    places + at * MOST_PLACES, counts + at);
            }
            __syncthreads();
        }
}

// ---- groups ----

// The wavelet bior1.5 on a circle, by lifting, as in cpu.py.
#define UPDATE 0.171875f

template <int BY>
__device__ inline void to_wavelets(Real* a)
{
    const Real d0 = a[BY] - a[0], d1 = a[3 * BY] - a[2 * BY];
    const Real d2 = a[5 * BY] - a[4 * BY], d3 = a[7 * BY] - a[6 * BY];
    const Real u = (d3 - d1) * UPDATE, v = (d0 - d2) * UPDATE;
    const Real s0 = a[0] + a[BY] + u, s1 = a[2 * BY] + a[3 * BY] + v;
    const Real s2 = a[4 * BY] + a[5 * BY] - u, s3 = a[6 * BY] + a[7 * BY] - v;
    const Real p = s0 + s1, q = s2 + s3;
    a[0] = p + q;
    a[BY] = q - p;
    a[2 * BY] = s1 - s0;
    a[3 * BY] = s3 - s2;
    a[4 * BY] = d0;
    a[5 * BY] = d1;
    a[6 * BY] = d2;
    a[7 * BY] = d3;
}

template <int BY>
__device__ inline void from_wavelets(Real* b)
{
    const Real p = b[0] - b[BY], q = b[0] + b[BY];
    const Real d0 = b[4 * BY], d1 = b[5 * BY], d2 = b[6 * BY], d3 = b[7 * BY];
    const Real u = (d3 - d1) * UPDATE, v = (d0 - d2) * UPDATE;
    const Real s0 = p - b[2 * BY] - u, s1 = p + b[2 * BY] - v;
    const Real s2 = q - b[3 * BY] + u, s3 = q + b[3 * BY] + v;
    b[0] = s0 - d0;
    b[BY] = s0 + d0;
    b[2 * BY] = s1 - d1;
    b[3 * BY] = s1 + d1;
    b[4 * BY] = s2 - d2;
    b[5 * BY] = s2 + d2;
    b[6 * BY] = s3 - d3;
    b[7 * BY] = s3 + d3;
}

// The logarithm of the part of coefficient k that goes back: of numbers 0 to 7 along an axis 3, 3, 2, 2, 1, 1, 1, 1.
__device__ inline int halvings(int k)
{
    const int i = k & 7, j = k >> 3;
    return 6 - (i >= 2) - (i >= 4) - (j >= 2) - (j >= 4);
}

// 2^-t
__device__ inline float power(int t) { return __int_as_float((127 - t) << 23); }

// The spectrum of a block, along y, then along x.
template <bool WAVELETS>
__device__ inline void transform(Real (&block)[SIDE * SIDE], float bias = 0.0f)
{
#pragma unroll
    for (int k = 0; k < SIDE; ++k) {
        if (WAVELETS) to_wavelets<SIDE>(block + k);
        else forward<SIDE>(block + k);
        if (bias != 0.0f) block[k] = block[k] - Real{bias};
    }
#pragma unroll
    for (int j = 0; j < SIDE; ++j) {
        if (WAVELETS) to_wavelets<1>(block + j * SIDE);
        else forward<1>(block + j * SIDE);
    }
}

// Write the spectrum of a lane's block to the stack.
template <bool WAVELETS>
__device__ inline void write_spectrum(const float* cells, int pitch, float* stack, int lane)
{
    Real block[SIDE * SIDE];
#pragma unroll
    for (int j = 0; j < SIDE; ++j)
#pragma unroll
        for (int k = 0; k < SIDE; ++k) block[j * SIDE + k] = {cells[(size_t)j * pitch + k]};
    transform<WAVELETS>(block);
#pragma unroll
    for (int k = 0; k < SIDE * SIDE; ++k) stack[k * PITCH + lane] = block[k].value;
}

// Sums and differences along a stack of `count`, in place, as `add_up` in cpu.py.
__device__ inline void add_up(Real* a, int count)
{
    Real spare[MOST_PLACES];
    for (int n = count / 2; n > 0; n /= 2) {
        for (int i = 0; i < n; ++i) {
            spare[i] = a[2 * i] + a[2 * i + 1];
            spare[n + i] = a[2 * i] - a[2 * i + 1];
        }
        for (int i = 0; i < 2 * n; ++i) a[i] = spare[i];
    }
}

__device__ inline void take_apart(Real* a, int count)
{
    Real spare[MOST_PLACES];
    for (int n = 1; n < count; n *= 2) {
        for (int i = 0; i < n; ++i) {
            spare[2 * i] = a[i] + a[n + i];
            spare[2 * i + 1] = a[i] - a[n + i];
        }
        for (int i = 0; i < 2 * n; ++i) a[i] = spare[i];
    }
}

// t: of coefficient `number` along a stack of `count`, 2^t were added up.
__device__ inline int added(int number, int count)
{
    int t = 0;
    for (; count > max(1, number); count /= 2) ++t;
    return t;
}

__device__ inline int warp_sum(int value)
{
    for (int bit = 16; bit > 0; bit /= 2) value += __shfl_xor_sync(~0u, value, bit);
    return value;
}

// Noise's share of a coefficient's power, v / (b^2 + v), in the last 16 bits, to a part in 9000: x y (c0 + c1 x y)
// is that near to 1 if y, the difference of the bits of x and a number, is about 0.7 / x.
__device__ inline unsigned share_of(Real variance, Real guide)
{
    // A variance is at least 1e-25. Where there is no value, the share is nearly zero; bytes have one.
    Real power = fused(guide, guide, variance);
    if (!BYTES) power.value = fminf(power.value, LARGEST);
    const Real inverse = {__uint_as_float(0x7eb50000u - __float_as_uint(power.value))};
    const Real near = power * inverse;
    const Real rest = fused(near, Real{-1.9412878f}, Real{2.7867577f});
    // To the nearest whole number: the last digits of a sum that is as large.
    return __float_as_uint(fused(variance * SHARES * inverse, rest, Real{8388608.0f}).value);
}

// The integer of what a block loses of a pixel, from minus to plus the limit.
__device__ inline int steps_of(float value, float factor)
{
    const float part = __saturatef(__fmaf_rn(value, numbers[1], 0.5f));
    return __float_as_int(__fmaf_rn(__fsub_rn(part, 0.5f), factor, 12582912.0f)) - 0x4b400000;
}

// Filter the stack of a warp and add what it loses to the sums of the tile.
template <bool WIENER>
__device__ inline void filter_stack(
    const Frame& f, const float* planes, const float* guides, const unsigned short* places,
    int count, int y, int x, int c, float* stack, int* sums, int* weights, int y0, int x0)
{
    const int lane = threadIdx.x, code = places[min(lane, count - 1)];
    const int yy = y + (code >> 6) - REACH, xx = x + (code & 63) - REACH;
    const int pitch = f.width * f.colours;
    unsigned short factors[2][MOST_PLACES];
    int total = 0;
    if (WIENER) {
        if (lane < count) write_spectrum<false>(guides + f.at(yy, xx, c), pitch, stack, lane);
        __syncwarp();
        for (int h = 0; h < 2; ++h) {
            const int k = lane + 32 * h;
            Real a[MOST_PLACES];
            for (int m = 0; m < count; ++m) a[m] = {stack[k * PITCH + m]};
            add_up(a, count);
            for (int m = 0; m < count; ++m) {
                const Real variance = Real{numbers[LEVELS(c) + added(m, count)]} * numbers[LEVELS(c) + NORMS + k];
                factors[h][m] = k == 0 && m == 0 ? 0 : (unsigned short)share_of(variance, a[m]);
                const int left = 255 - (factors[h][m] >> 8);
                total += left * left;
            }
        }
        __syncwarp();
    }
    if (lane < count) write_spectrum<!WIENER>(planes + f.at(yy, xx, c), pitch, stack, lane);
    __syncwarp();
    for (int h = 0; h < 2; ++h) {
        const int k = lane + 32 * h;
        Real a[MOST_PLACES];
        for (int m = 0; m < count; ++m) a[m] = {stack[k * PITCH + m]};
        add_up(a, count);
        const bool has_values = fabsf(a[0].value) <= LARGEST_FLOAT;
        for (int m = 0; m < count; ++m) {
            const int t = added(m, count);
            if (WIENER) {
                a[m] = has_values ? a[m] * (float)factors[h][m] * power(16 + 6 + t) : Real{0.0f};
            } else {
                const Real threshold = Real{numbers[LEVELS(c) + t]} * numbers[LEVELS(c) + NORMS + k];
                const bool noise = fabsf(a[m].value) <= threshold.value && (k > 0 || m > 0);
                a[m] = noise ? a[m] * power(halvings(k) + t) : Real{0.0f};
                total += !noise;
            }
        }
        take_apart(a, count);
        for (int m = 0; m < count; ++m) stack[k * PITCH + m] = a[m].value;
    }
    const Real weight = Real{WIENER ? ONE : 1.0f} / Real{(float)warp_sum(total)};
    __syncwarp();
    if (lane < count) {
        Real block[SIDE * SIDE];
#pragma unroll
        for (int k = 0; k < SIDE * SIDE; ++k) block[k] = {stack[k * PITCH + lane]};
#pragma unroll
        for (int j = 0; j < SIDE; ++j) {
            if (WIENER) backward<1>(block + j * SIDE);
            else from_wavelets<1>(block + j * SIDE);
        }
        const Real scale = weight * (2.0f * LIMIT_STEPS);
        const int at = (yy - y0) * REGION_COLUMNS + xx - x0;
        atomicAdd(weights + at, (int)rintf((weight * WEIGHT_STEPS).value));
#pragma unroll
        for (int k = 0; k < SIDE; ++k) {
            if (WIENER) backward<SIDE>(block + k);
            else from_wavelets<SIDE>(block + k);
#pragma unroll
            for (int j = 0; j < SIDE; ++j) {
                const Real window = Real{numbers[WINDOW + j]} * numbers[WINDOW + k];
                const int steps = steps_of(block[j * SIDE + k].value, (scale * window).value);
                if (steps) atomicAdd(sums + at + j * REGION_COLUMNS + k, steps);
            }
        }
    }
    __syncwarp();
}

// The stacks of all tiles; `memory` has the stacks of warps and sums, or is null: then they lie in `work` and `tiles`.
template <bool WIENER, bool SHARED_MEMORY>
__device__ inline void filter_tiles(
    const float* planes, const float* guides, const unsigned short* places, const int* counts,
    int* tiles, float* work, float* memory, const Geometry& g, int around)
{
    const Frame f(g);
    const Rows rows(f, g, around);
    const int thread = threadIdx.y * 32 + threadIdx.x;
    for (int ti = rows.begin() + blockIdx.y; ti < rows.end(); ti += gridDim.y)
        for (int tj = blockIdx.x; tj < f.tiles_across; tj += gridDim.x)
            for (int c = 0; c < f.colours; ++c) {
                const size_t tile = f.tile(ti, tj, c);
                int* own = tiles + tile * 2 * REGION;
                float* stacks = SHARED_MEMORY ? memory : work + tile * WARPS * SIDE * SIDE * PITCH;
                int* sums = SHARED_MEMORY ? (int*)(memory + WARPS * SIDE * SIDE * PITCH) : own;
                for (int n = thread; n < 2 * REGION; n += 32 * WARPS) sums[n] = 0;
                __syncthreads();
                const int y0 = f.row(ti * TILE_ROWS) - REACH, x0 = f.column(tj * TILE_COLUMNS) - REACH;
                for (int n = threadIdx.y; n < TILE_ROWS * TILE_COLUMNS; n += WARPS) {
                    const int i = ti * TILE_ROWS + n / TILE_COLUMNS;
                    const int j = tj * TILE_COLUMNS + n % TILE_COLUMNS;
                    if (i < rows.top || i >= rows.bottom || j >= f.across) continue;
                    const size_t at = f.group(i, j);
                    filter_stack<WIENER>(
                        f, planes, guides, places + at * MOST_PLACES, counts[at], f.row(i), f.column(j),
                        c, stacks + threadIdx.y * SIDE * SIDE * PITCH, sums, sums + REGION, y0, x0);
                }
                __syncthreads();
                if (SHARED_MEMORY)
                    for (int n = thread; n < 2 * REGION; n += 32 * WARPS) own[n] = sums[n];
                __syncthreads();
            }
}

// ---- guide, finish ----

#define MEAN_ROWS 32  // of pixels that a block of 32 x 8 threads takes at a time
#define EACH (MEAN_ROWS / 8)

#define AROUND_ROWS (MEAN_ROWS + SIDE - 1)  // and the blocks that reach them
#define AROUND_COLUMNS (32 + SIDE - 1)
#define AROUND_EACH ((AROUND_ROWS * AROUND_COLUMNS + 255) / 256)

// What a stage takes off pixels (top + threadIdx.y + 8 i, left + threadIdx.x): the sum over the mean weight. A pixel
// has the weights of the blocks that begin up to seven pixels before it, each times the window of that distance.
__device__ inline void removed(
    const int* tiles, const Frame& f, const Rows& rows, int top, int left, int c, Real (&taken)[EACH])
{
    __shared__ float weights[AROUND_ROWS][AROUND_COLUMNS], lines[AROUND_ROWS][32];
    const int thread = threadIdx.y * 32 + threadIdx.x;
    int sums[EACH] = {}, around[AROUND_EACH] = {};
    const int before = max(top - SIDE + 1 + REACH - REGION_ROWS + TILE_ROWS * GRID_STEP, 0) / (TILE_ROWS * GRID_STEP);
    const int beside =
        max(left - SIDE + 1 + REACH - REGION_COLUMNS + TILE_COLUMNS * GRID_STEP, 0) / (TILE_COLUMNS * GRID_STEP);
    for (int ti = max(rows.top / TILE_ROWS, before); ti < rows.end(); ++ti) {
        const int y0 = f.row(ti * TILE_ROWS) - REACH;
        if (y0 >= top + MEAN_ROWS) break;
        for (int tj = beside; tj < f.tiles_across; ++tj) {
            const int x0 = f.column(tj * TILE_COLUMNS) - REACH;
            if (x0 >= left + 32) break;
            const int* own = tiles + f.tile(ti, tj, c) * 2 * REGION;
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
                const int r = top + (int)threadIdx.y + 8 * i - y0, s = left + (int)threadIdx.x - x0;
                if ((unsigned)r < REGION_ROWS && (unsigned)s < REGION_COLUMNS) sums[i] += own[r * REGION_COLUMNS + s];
            }
#pragma unroll
            for (int i = 0; i < AROUND_EACH; ++i) {
                const int n = thread + 256 * i;
                const int r = top - SIDE + 1 + n / AROUND_COLUMNS - y0, s = left - SIDE + 1 + n % AROUND_COLUMNS - x0;
                if ((unsigned)r < REGION_ROWS && (unsigned)s < REGION_COLUMNS)
                    around[i] += own[REGION + r * REGION_COLUMNS + s];
            }
        }
    }
#pragma unroll
    for (int i = 0; i < AROUND_EACH; ++i) {
        const int n = thread + 256 * i;
        if (n < AROUND_ROWS * AROUND_COLUMNS) weights[n / AROUND_COLUMNS][n % AROUND_COLUMNS] = (float)around[i];
    }
    __syncthreads();
    for (int r = threadIdx.y; r < AROUND_ROWS; r += 8) {
        Real line = {0.0f};
#pragma unroll
        for (int k = 0; k < SIDE; ++k)
            line = line + Real{numbers[WINDOW + k]} * Real{weights[r][threadIdx.x + SIDE - 1 - k]};
        lines[r][threadIdx.x] = line.value;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const int r = threadIdx.y + 8 * i;
        Real below = {0.0f};
#pragma unroll
        for (int j = 0; j < SIDE; ++j)
            below = below + Real{numbers[WINDOW + j]} * Real{lines[r + SIDE - 1 - j][threadIdx.x]};
        taken[i] = Real{(float)sums[i]} * numbers[3] / below;
    }
}

extern "C" __global__ void __launch_bounds__(256, 4) collaborative_guide(
    const Sample*, Sample*, const float* planes, const int* tiles, float* guides, float* cells, Geometry g)
{
    const Frame f(g);
    const Rows rows(f, g, STAGE);
    for (int top = rows.first + blockIdx.y * MEAN_ROWS; top < rows.last; top += gridDim.y * MEAN_ROWS)
        for (int left = blockIdx.x * 32; left < f.width; left += gridDim.x * 32)
            for (int c = 0; c < f.colours; ++c) {
                const int x = left + threadIdx.x;
                Real taken[EACH], before[EACH];  // read at once, as early as can be
#pragma unroll
                for (int i = 0; i < EACH; ++i) {
                    const int y = top + threadIdx.y + 8 * i;
                    before[i] = {y < rows.last && x < f.width ? planes[f.at(y, x, c)] : 0.0f};
                }
                removed(tiles, f, rows, top, left, c, taken);
#pragma unroll
                for (int i = 0; i < EACH; ++i) {
                    const int y = top + threadIdx.y + 8 * i;
                    if (y >= rows.last || x >= f.width) continue;
                    const Real value = before[i] - taken[i];
                    guides[f.at(y, x, c)] = value.value;
                    if (c > 0) continue;
                    float cell = cell_of(value, f.colours).value;
#if SAMPLE_BITS == 8
                    cell = fminf(fmaxf(cell, 0.0f), 255.0f);
#endif
                    cells[f.cell(y, x)] = cell;
                }
                __syncthreads();
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

extern "C" __global__ void __launch_bounds__(256) collaborative_finish(
    const Sample* source, Sample* output, const int* tiles, Geometry g)
{
    const Frame f(g);
    const Rows rows(f, g, 0);
    const int top = g.first + blockIdx.y * MEAN_ROWS, left = blockIdx.x * 32, x = left + threadIdx.x;
    Real taken[3][EACH];
#pragma unroll
    for (int c = 0; c < 3; ++c) {
        if (c >= f.colours) continue;
        if (c > 0) __syncthreads();
        removed(tiles, f, rows, top + MARGIN, left + MARGIN, c, taken[c]);
    }
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const int y = top + threadIdx.y + 8 * i;
        if (y >= g.last || x >= g.out_width) continue;
        Sample* pixel = output + output_offset(g, y, x);
        const Sample* before = source + source_offset(g, y) + (size_t)x * g.channels;
        // Alpha is put back later: any value will do.
        if (f.colours < g.channels) pixel[f.colours] = 0;
        const Real first = taken[0][i];
        if (f.colours == 3) {
            const Real grey = first * GREY, across = taken[1][i] * RED_BLUE, green = taken[2][i] * GREEN;
            pixel[0] = as_sample(Real{(float)before[0]} - (grey + across + green));
            pixel[1] = as_sample(Real{(float)before[1]} - (grey - (green + green)));
            pixel[2] = as_sample(Real{(float)before[2]} - (grey - across + green));
        } else {
            pixel[0] = as_sample(Real{(float)before[0]} - first);
        }
    }
}

extern "C" __global__ void collaborative_copy(const Sample* source, Sample* output, Geometry g)
{
    const int y = g.first + blockIdx.y * blockDim.y + threadIdx.y;
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (y >= g.last || x >= g.out_width) return;
    for (int c = 0; c < g.channels; ++c)
        output[output_offset(g, y, x) + c] = source[source_offset(g, y) + (size_t)x * g.channels + c];
}

#ifndef WIENER_STAGE
#define WIENER_STAGE 0
#endif
#define AROUND (WIENER_STAGE ? 0 : STAGE)

#if TUNED
#include "collaborative_tuned.cuh"
#else
extern "C" __global__ void __launch_bounds__(256) collaborative_global_match(
    const Sample*, Sample*, const float* cells, unsigned short* places, int* counts, Geometry g)
{
    match_global(cells, places, counts, g, AROUND);
}

extern "C" __global__ void __launch_bounds__(256) collaborative_shared_match(
    const Sample*, Sample*, const float* cells, unsigned short* places, int* counts, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    match_shared(cells, places, counts, (float*)memory, g, AROUND);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) collaborative_global_groups(
    const Sample*, Sample*, const float* planes, const float* guides, const unsigned short* places,
    const int* counts, int* tiles, float* work, Geometry g)
{
    filter_tiles<WIENER_STAGE != 0, false>(
        planes, guides, places, counts, tiles, work, nullptr, g, AROUND);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) collaborative_shared_groups(
    const Sample*, Sample*, const float* planes, const float* guides, const unsigned short* places,
    const int* counts, int* tiles, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    filter_tiles<WIENER_STAGE != 0, true>(
        planes, guides, places, counts, tiles, nullptr, (float*)memory, g, AROUND);
}
#endif
