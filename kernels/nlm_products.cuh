// tuned, in the whole image of bytes: distances of patches as matrix products, on the tensor cores.
//
//   D(i, j) = |p_i|^2 + |p_j|^2 - 2 (p_i, p_j)      p_i: the cells of i's patch times their weights G
//
// All pairs of many pixels i and many candidates j make (p_i, p_j) a product of matrices, as in the
// attention of neural networks. Cells are centred, so that the three terms do not cancel more digits
// than they must: v = (f - 128) / 128, which half precision holds exactly. The weights 2 G^2 belong to
// i alone, and each of its products 2 G^2 v is the sum of two halves: 22 bits.
//
// Launch: blocks of 32 x 4 threads for 16 TILES x 4 pixels, a row of them a warp. Its patches stay in
// registers as the matrix A; candidates are read from shared memory as the matrix B: their patches
// overlap there, nothing is copied. A step of the launch is a row of candidates. A pair takes 16
// (STEPS + LOW_STEPS) multiplications on the tensor cores, an exponential and three additions.
#ifndef KERNELSCOPE_NLM_PRODUCTS
#define KERNELSCOPE_NLM_PRODUCTS
#include "common.cuh"

#ifndef PATCH
#define PATCH 7
#endif

#ifndef WARPS  // of a block
#define WARPS 4
#endif
#ifndef TILES  // of 16 pixels, whose patches a warp keeps: as many as registers allow
#define TILES (PATCH <= 7 ? 4 : PATCH <= 9 ? 2 : 1)
#endif

__constant__ float products_profile[PATCH / 2 + 1];  // G^2 along an axis, from the middle outwards
__constant__ float products_scale;                    // of a squared difference of cells v, for 2^-D

namespace products {

typedef unsigned Pair;  // two halves, neighbours in a row of the image

constexpr int HALF = PATCH / 2;
constexpr int PAIRS = HALF + 1;                        // of cells in a patch's row, the last of no weight
constexpr int STEPS = (PATCH * PAIRS + 7) / 8;         // of 16 cells, which an instruction multiplies
// Whether the last step has room for the lower halves of its own, and the additional steps of lower halves.
constexpr bool MERGED = (PATCH * PAIRS + 7) % 8 < 4;
constexpr int LOW_STEPS = STEPS - MERGED;
constexpr int CANDIDATES = 512;                        // that the block reads at once
constexpr int PITCH = CANDIDATES + 16;                 // cells in a row of shared memory, and some to spare
constexpr float NEVER = 1e30f;                         // |p_j|^2 of pixels that are no candidates

// Shared memory of a block.
struct Memory {
    // Cells v as halves, from some column on and from the one after: pairs begin at even columns
    // of either.
    Pair cells[2][PATCH + WARPS - 1][PITCH / 2];
    float columns[PITCH];  // sums of P v^2 over the columns of patches
    alignas(16) float2 candidates[CANDIDATES];  // |p_j|^2 and v of each
};

// The bits of a value rounded to half precision, and back.
__device__ inline unsigned to_half(float value)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

__device__ inline float from_half(unsigned bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((unsigned short)bits));
    return value;
}

__device__ inline float centred(Sample sample)
{
    return sample / 128.0f - 1;
}

__device__ inline float weight(int cell)
{
    return products_profile[abs(cell - HALF)];
}

// Read `rows` rows of PITCH cells, borders applied; every thread has to call this.
__device__ inline void load(
    Memory& memory, const Sample* source, const Geometry& g, int top, int left, int rows, int c)
{
    unsigned short* cells = (unsigned short*)memory.cells;
    for (int t = threadIdx.y * 32 + threadIdx.x; t < PITCH; t += 32 * WARPS) {
        const int x = border_index(left + t, g.width);
        for (int s = 0; s < rows; ++s) {
            const int y = border_index(top + s, g.height);
            Sample sample = 0;
            if (y >= 0 && x >= 0) sample = source[source_offset(g, y) + (size_t)x * g.channels + c];
            const unsigned short half = to_half(centred(sample));
            cells[s * PITCH + t] = half;
            if (t > 0) cells[(PATCH + WARPS - 1 + s) * PITCH + t - 1] = half;
        }
    }
    __syncthreads();
}

// The loaded cell v at row y and column x.
__device__ inline float cell(const Memory& memory, int y, int x)
{
    return from_half(memory.cells[0][y][x / 2] >> 16 * (x % 2));
}

// Which pair of cells a thread has in part i of the matrices, half a step each.
__device__ inline int pair_of(int i)
{
    return (MERGED && i == 2 * STEPS - 1 ? i - 1 : i) * 4 + threadIdx.x % 4;
}

// The row and the first column of pair q of a patch.
__device__ inline int2 place_of_pair(int q)
{
    // The last step may go beyond the patch; cells there have no weight.
    return q < PATCH * PAIRS ? make_int2(q / PAIRS, q % PAIRS * 2) : make_int2(0, 0);
}

// The patches of 16 pixels side by side, in this thread's part of the matrix A: times 2 G^2, as sums
// of two halves.
struct Patches {
    Pair high[STEPS][4], low[LOW_STEPS][4];
    float norms[2];  // |p_i|^2
};

__device__ inline Patches patches_from(const Memory& memory, int tile)
{
    Patches patches;
#pragma unroll
    for (int n = 0; n < 4 * STEPS; ++n) {
        // Registers 0 to 3 of a step: pixels n and n + 8 with the first 4 pairs, then both
        // with the others.
        const int q = pair_of(n / 2);
        const int pixel = 16 * tile + n % 2 * 8 + threadIdx.x / 4;
        const int2 place = place_of_pair(q);
        Pair high = 0, low = 0;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            const int column = place.y + k;
            float value = 0;
            if (q < PATCH * PAIRS && column < PATCH)
                value = 2 * products_scale * weight(place.x) * weight(column) *
                        cell(memory, threadIdx.y + place.x, pixel + column);
            const unsigned half = to_half(value);
            high |= half << 16 * k;
            low |= to_half(value - from_half(half)) << 16 * k;
        }
        patches.high[n / 4][n % 4] = MERGED && n / 2 == 2 * STEPS - 1 ? low : high;
        if (n / 4 < LOW_STEPS) patches.low[n / 4][n % 4] = low;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        float norm = 0;
#pragma unroll 1
        for (int n = 0; n < PATCH * PATCH; ++n) {
            const int s = n / PATCH, t = n % PATCH;
            const float v = cell(memory, threadIdx.y + s, 16 * tile + 8 * i + threadIdx.x / 4 + t);
            norm += weight(s) * weight(t) * v * v;
        }
        patches.norms[i] = products_scale * norm;
    }
    return patches;
}

// Norms and values of the candidates, whose patches were loaded; `count` of them are in the image.
__device__ inline void measure(Memory& memory, int count)
{
    const int thread = threadIdx.y * 32 + threadIdx.x;
    for (int t = thread; t < CANDIDATES + 2 * HALF; t += 32 * WARPS) {
        float sum = 0;
#pragma unroll
        for (int s = 0; s < PATCH; ++s) {
            const float v = cell(memory, s, t);
            sum += weight(s) * v * v;
        }
        memory.columns[t] = products_scale * sum;
    }
    __syncthreads();
    for (int t = thread; t < CANDIDATES; t += 32 * WARPS) {
        float norm = 0;
#pragma unroll
        for (int k = 0; k < PATCH; ++k) norm += weight(k) * memory.columns[t + k];
        memory.candidates[t] = make_float2(t < count ? norm : NEVER, cell(memory, HALF, t + HALF));
    }
    __syncthreads();
}

// c += a b for 16 x 16 cells of 16 pixels and 8 candidates.
__device__ inline void multiply(float (&c)[4], const Pair (&a)[4], const Pair (&b)[2])
{
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
    for (int i = 0; i < 2; ++i)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
            "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[2 * i]), "r"(a[2 * i + 1]), "r"(b[i]));
#endif
}

// Sums over candidates for the pixels of a thread, two in each tile: of weights, and of v times
// weights. Four threads side by side have the same pixels, each other candidates.
struct Sums {
    float weights[TILES][2], values[TILES][2];
};

__device__ inline Sums add_candidates(const Memory& memory, const Patches (&patches)[TILES], int count)
{
    const int column = threadIdx.x / 4;
    const Pair* cells = &memory.cells[column % 2][0][column / 2];
    const float4* candidates = (const float4*)memory.candidates + threadIdx.x % 4;
    int offsets[STEPS][2];  // of the pairs of a candidate's patch
#pragma unroll
    for (int i = 0; i < 2 * STEPS; ++i) {
        const int2 place = place_of_pair(pair_of(i));
        offsets[i / 2][i % 2] = (place.x * PITCH + place.y) / 2;
    }
    Sums sums = {};
#pragma unroll 1
    for (int j = 0; j < count; j += 8) {
        const float4 two = candidates[j / 2];  // |p_j|^2 and v of two candidates
        Pair b[STEPS][2];
#pragma unroll
        for (int i = 0; i < 2 * STEPS; ++i) b[i / 2][i % 2] = cells[j / 2 + offsets[i / 2][i % 2]];
        float exponents[TILES][4];
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                exponents[tile][i] = -patches[tile].norms[i / 2] - (i % 2 ? two.z : two.x);
#pragma unroll
        for (int step = 0; step < STEPS; ++step)
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
                if (step < LOW_STEPS) multiply(exponents[tile], patches[tile].low[step], b[step]);
                multiply(exponents[tile], patches[tile].high[step], b[step]);
            }
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float weight;
                asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(weight) : "f"(exponents[tile][i]));
                sums.weights[tile][i / 2] += weight;
                sums.values[tile][i / 2] =
                    fmaf(weight, i % 2 ? two.w : two.y, sums.values[tile][i / 2]);
            }
    }
    return sums;
}

// The sum over the four threads that have the same pixel.
__device__ inline float sum_of_four(float value)
{
    value += __shfl_xor_sync(~0u, value, 1);
    return value + __shfl_xor_sync(~0u, value, 2);
}

// Compute channel c; `scratch` holds the sums of each pixel and colour between launches. Sums over the
// candidates that are read at once are taken by themselves first: adding a million small numbers to a
// large one would lose digits.
__device__ inline void compute(
    Memory& memory, const Sample* source, Sample* output, float2* scratch, const Geometry& g, int c,
    int first_step, int last_step)
{
    const int shift = valid_shift(HALF);
    const int top = g.first + blockIdx.y * WARPS, left = blockIdx.x * 16 * TILES;
    const int rows = g.height - 2 * shift;
    __syncthreads();  // the channel before is done
    load(memory, source, g, top + shift - HALF, left + shift - HALF, PATCH + WARPS - 1, c);
    Patches patches[TILES];
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) patches[tile] = patches_from(memory, tile);
    Sums totals = {};
    for (int step = first_step; step < last_step; ++step)
        for (int x = 0; x < g.out_width; x += CANDIDATES) {
            const int count = min(g.out_width - x, CANDIDATES);
            __syncthreads();  // the cells before have been read
            load(memory, source, g, step + shift - HALF, x + shift - HALF, PATCH, c);
            measure(memory, count);
            const Sums sums = add_candidates(memory, patches, count);
#pragma unroll
            for (int i = 0; i < 2 * TILES; ++i) {
                totals.weights[i / 2][i % 2] += sums.weights[i / 2][i % 2];
                totals.values[i / 2][i % 2] += sums.values[i / 2][i % 2];
            }
        }
    const int colours = (g.channels - 1) | 1, y = top + threadIdx.y;
#pragma unroll
    for (int i = 0; i < 2 * TILES; ++i) {
        const int x = left + 8 * i + threadIdx.x / 4;
        float2 total = {
            sum_of_four(totals.weights[i / 2][i % 2]), sum_of_four(totals.values[i / 2][i % 2])};
        if (threadIdx.x % 4 > 0 || y >= g.last || x >= g.out_width) continue;
        float2& kept = scratch[((size_t)(y - g.output_row) * g.out_width + x) * colours + c];
        if (first_step > 0) {
            total.x += kept.x;
            total.y += kept.y;
        }
        kept = total;
        if (last_step == rows) {
            const float mean = 128 * (total.y / total.x) + 128;
            output[output_offset(g, y, x) + c] = (Sample)fminf(fmaxf(rintf(mean), 0), SAMPLE_MAX);
        }
    }
}

}  // namespace products

extern "C" __launch_bounds__(128, 2) __global__ void nlm_tuned(
    const Sample* source, Sample* output, float2* scratch, Geometry g, int first_step, int last_step)
{
    __shared__ products::Memory memory;
    const int colours = (g.channels - 1) | 1;
    for (int c = 0; c < colours; ++c)
        products::compute(memory, source, output, scratch, g, c, first_step, last_step);
    // Alpha, which two and four channels have, is put back later: any value will do.
    const int y = g.first + blockIdx.y * WARPS + threadIdx.y;
    for (int x = threadIdx.x; x < 16 * TILES; x += 32) {
        const int column = blockIdx.x * 16 * TILES + x;
        if (colours < g.channels && y < g.last && column < g.out_width)
            output[output_offset(g, y, column) + colours] = 0;
    }
}
#endif
