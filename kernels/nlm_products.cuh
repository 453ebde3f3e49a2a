// tuned, in the whole image of bytes: weights as matrix products; nlm_halves.cuh explains them.
//
// nlm_tuned_prepare writes the matrix B of all candidates once, in the order in which the threads of a warp
// need it: for 16 candidates and a step a Group of four pairs for each thread, then v of the 16.
//
// Launch: blocks of 32 x WARPS threads for 16 TILES x WARPS pixels, a row of them a warp, whose matrix A
// stays in registers. The block walks over the candidates, which it copies to shared memory, CHUNK x 16 of
// them while it weighs those before: a step of the launch. A pair of pixels takes 16 STEPS multiplications
// on the tensor cores, an exponential and half of a conversion.
#ifndef KERNELSCOPE_NLM_PRODUCTS
#define KERNELSCOPE_NLM_PRODUCTS
#include "nlm_halves.cuh"

#ifndef WARPS  // of a block
#define WARPS 4
#endif
#ifndef TILES  // of 16 pixels, whose patches a warp keeps
#define TILES (PATCH <= 5 ? 4 : 2)
#endif
// Blocks of a multiprocessor, at least: as many as registers allow.
constexpr int BLOCKS = PATCH == 7 ? 5 : PATCH <= 9 ? 4 : 3;

namespace halves {

// Pairs of cells in a row of A or a column of B: those of the patch, row after row, and two more.
constexpr int NORM = (PATCH * PATCH + 1) / 2;  // |p_j|^2 as a sum of two halves, with -1 in A; then ones, with
constexpr int STEPS = (NORM + 2 + 7) / 8;      // -|p_i|^2 in A
constexpr int CHUNK = STEPS == 6 ? 4 : 32 / STEPS;  // groups of 16 candidates that a block reads at once

}  // namespace halves

// Pairs of 2 G^2 times the scale; zero beyond the patch.
__constant__ unsigned products_weights[halves::STEPS * 8];

namespace halves {

// 16 candidates.
struct Group {
    uint4 pairs[STEPS][32];  // of a thread: two of the first 8 candidates, two of the others
    uint4 values[2];         // v of each
};

// Pair of cells `k` (0 or 1) that a thread has in a step.
__device__ inline int pair_of(int step, int k)
{
    return (2 * step + k) * 4 + threadIdx.x % 4;
}

__device__ inline int groups_in_row(const Geometry& g)
{
    return (g.out_width + 15) / 16;
}

__device__ inline int rows_of(const Geometry& g)
{
    return g.height - 2 * valid_shift(HALF);
}

// Copy 16 bytes to shared memory, without waiting where the hardware can.
__device__ inline void copy(uint4* to, const uint4* from)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
        :: "l"(__cvta_generic_to_shared(to)), "l"(from) : "memory");
#else
    *to = *from;
#endif
}

__device__ inline void wait_for_copies()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// The cells of a thread for one candidate, and its norm, which all threads of the candidate return.
__device__ inline float cells_of(
    Pair (&pairs)[2 * STEPS], const Sample* source, const Geometry& g, int y, int x, int c)
{
    const int shift = valid_shift(HALF) - HALF;
    float norm = 0;
#pragma unroll
    for (int i = 0; i < 2 * STEPS; ++i) {
        Sample samples[2] = {128, 128};
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            const int cell = 2 * pair_of(i / 2, i % 2) + k;
            if (cell >= PATCH * PATCH) continue;
            const int row = cell / PATCH, column = cell % PATCH;
            samples[k] = fetch(source, g, y + shift + row, x + shift + column, c);
            const float v = centred(samples[k]);
            norm += profile(row) * profile(column) * v * v;
        }
        pairs[i] = centred(samples[0], samples[1]);
    }
    norm += __shfl_xor_sync(~0u, norm, 1);
    norm += __shfl_xor_sync(~0u, norm, 2);
    return halves_scale * norm;
}

__device__ inline void prepare(
    Group& group, const Sample* source, const Geometry& g, int y, int left, int c)
{
    const int column = threadIdx.x / 4;
    Pair pairs[2][2 * STEPS];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
        const int x = left + 8 * k + column;
        const float norm = cells_of(pairs[k], source, g, y, min(x, g.out_width - 1), c);
        const Pair halves = x < g.out_width ? split(norm) : NEVER;
#pragma unroll
        for (int i = 0; i < 2 * STEPS; ++i) {
            const int pair = pair_of(i / 2, i % 2);
            if (pair == NORM) pairs[k][i] = halves;
            if (pair == NORM + 1) pairs[k][i] = ONES;
        }
    }
#pragma unroll
    for (int step = 0; step < STEPS; ++step)
        group.pairs[step][threadIdx.x] = make_uint4(pairs[0][2 * step], pairs[0][2 * step + 1],
            pairs[1][2 * step], pairs[1][2 * step + 1]);
    if (threadIdx.x < 8) {
        const int shift = valid_shift(HALF), x = left + 2 * threadIdx.x, last = g.out_width - 1;
        ((Pair*)group.values)[threadIdx.x] =
            centred(fetch(source, g, y + shift, min(x, last) + shift, c),
                fetch(source, g, y + shift, min(x + 1, last) + shift, c));
    }
}

__device__ inline void read(Candidates<STEPS>& candidates, const Group& group)
{
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        const uint4 four = group.pairs[step][threadIdx.x];
        candidates.cells[0][2 * step] = four.x;
        candidates.cells[0][2 * step + 1] = four.y;
        candidates.cells[1][2 * step] = four.z;
        candidates.cells[1][2 * step + 1] = four.w;
    }
#pragma unroll
    for (int k = 0; k < 2; ++k) {
        const Pair values = ((const Pair*)group.values)[4 * k + threadIdx.x % 4];
        candidates.values[k] = threadIdx.x / 4 % 2 ? ONES : values;
    }
}

// The matrix A of 16 pixels, from what they are as candidates.
__device__ inline void pixels_from(Pair (&pixels)[STEPS][4], const Group& group)
{
    Candidates<STEPS> own;
    read(own, group);
#pragma unroll
    for (int i = 0; i < 4 * STEPS; ++i) {
        const int pair = pair_of(i / 4, i / 2 % 2);
        const Pair value = product(own.cells[i % 2][i / 2], products_weights[pair]);
        pixels[i / 4][i % 4] = pair == NORM ? MINUS_ONES : value;
    }
    const float2 products = own_products<STEPS>(pixels, own.cells);
#pragma unroll
    for (int i = 0; i < 4 * STEPS; ++i)
        if (pair_of(i / 4, i / 2 % 2) == NORM + 1)
            pixels[i / 4][i % 4] = split(SHIFT + (CORRECTED ? halves_floor : 0) - (i % 2 ? products.y : products.x));
}

// Sums over candidates for 16 pixels, in this thread's part of the second product: where threadIdx.x % 4 is 0,
// of v times weights and of weights, for pixel threadIdx.x / 4 and the one 8 further.
typedef float Sums[TILES][4];

__device__ inline void copy_chunk(Group (&to)[CHUNK], const Group* from, int count)
{
    const int size = count * (sizeof(Group) / sizeof(uint4));
    for (int i = threadIdx.y * 32 + threadIdx.x; i < size; i += 32 * WARPS)
        copy((uint4*)to + i, (const uint4*)from + i);
}

// Sums over `count` groups are taken by themselves first: adding a million small numbers to a large one would
// lose digits.
__device__ inline void add_chunk(
    Sums& totals, const Pair (&pixels)[TILES][STEPS][4], const Group (&chunk)[CHUNK], int count)
{
    Sums sums = {};
#pragma unroll 1
    for (int n = 0; n < count; ++n) {
        Candidates<STEPS> candidates;
        read(candidates, chunk[n]);
        Pair weights[TILES][4];
        weigh<TILES, STEPS>(weights, pixels, 0, candidates);
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile)
            multiply(sums[tile], weights[tile], candidates.values[0], candidates.values[1]);
    }
#pragma unroll
    for (int i = 0; i < 4 * TILES; ++i) totals[i / 4][i % 4] += sums[i / 4][i % 4];
}

// Compute channel c; `scratch` holds the sums of each pixel and colour between launches.
__device__ inline void compute(Group (&memory)[2][CHUNK], Sample* output, const Group* candidates,
    float2* scratch, const Geometry& g, int c, int first_step, int last_step)
{
    const int colours = (g.channels - 1) | 1, across = groups_in_row(g), rows = rows_of(g);
    const int y = g.first + blockIdx.y * WARPS + threadIdx.y, left = blockIdx.x * 16 * TILES;
    const Group* all = candidates + (size_t)c * rows * across;
    const Group* row = all + (size_t)min(y, g.last - 1) * across;
    Pair pixels[TILES][STEPS][4];
    Sums totals;
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
        pixels_from(pixels[tile], row[min(left / 16 + tile, across - 1)]);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int x = left + 16 * tile + 8 * i + threadIdx.x / 4;
            float2 kept = {};
            if (first_step > 0 && threadIdx.x % 4 == 0 && y < g.last && x < g.out_width)
                kept = scratch[((size_t)(y - g.output_row) * g.out_width + x) * colours + c];
            totals[tile][2 * i] = kept.x;
            totals[tile][2 * i + 1] = kept.y;
        }
    }
    const int groups = rows * across;
    __syncthreads();  // the channel before is done
    copy_chunk(memory[0], all + (size_t)first_step * CHUNK, min(CHUNK, groups - first_step * CHUNK));
    for (int step = first_step; step < last_step; ++step) {
        const int now = (step - first_step) % 2, left_over = groups - step * CHUNK;
        wait_for_copies();
        __syncthreads();  // this chunk is there, and the one before has been read
        if (step + 1 < last_step)
            copy_chunk(memory[1 - now], all + (size_t)(step + 1) * CHUNK, min(CHUNK, left_over - CHUNK));
        add_chunk(totals, pixels, memory[now], min(CHUNK, left_over));
    }
    if (threadIdx.x % 4 > 0 || y >= g.last) return;
#pragma unroll
    for (int i = 0; i < 2 * TILES; ++i) {
        const int x = left + 8 * i + threadIdx.x / 4;
        if (x >= g.out_width) continue;
        const float2 total = {totals[i / 2][2 * (i % 2)], totals[i / 2][2 * (i % 2) + 1]};
        if (last_step * CHUNK < groups)
            scratch[((size_t)(y - g.output_row) * g.out_width + x) * colours + c] = total;
        else
            output[output_offset(g, y, x) + c] = mean(total.x, total.y);
    }
}

}  // namespace halves

// The candidates of all rows, whichever are computed; a warp takes 16 at a time.
extern "C" __global__ void nlm_tuned_prepare(
    const Sample* source, Sample* output, uint4* candidates, Geometry g)
{
    using namespace halves;
    const int across = groups_in_row(g), rows = rows_of(g), colours = (g.channels - 1) | 1;
    const int warps = gridDim.x * gridDim.y * blockDim.y;
    int n = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.y + threadIdx.y;
    for (; n < colours * rows * across; n += warps)
        prepare(((Group*)candidates)[n], source, g, n / across % rows, n % across * 16,
            n / across / rows);
}

extern "C" __launch_bounds__(32 * WARPS, BLOCKS) __global__ void nlm_tuned(const Sample* source,
    Sample* output, const uint4* candidates, float2* scratch, Geometry g, int first_step, int last_step)
{
    __shared__ halves::Group memory[2][halves::CHUNK];
    const int colours = (g.channels - 1) | 1;
    for (int c = 0; c < colours; ++c)
        halves::compute(memory, output, (const halves::Group*)candidates, scratch, g, c, first_step,
            last_step);
    // Alpha, which two and four channels have, is put back later: any value will do.
    const int y = g.first + blockIdx.y * WARPS + threadIdx.y;
    for (int x = threadIdx.x; x < 16 * TILES; x += 32) {
        const int column = blockIdx.x * 16 * TILES + x;
        if (colours < g.channels && y < g.last && column < g.out_width)
            output[output_offset(g, y, column) + colours] = 0;
    }
}
#endif
