// Collaborative filtering of volumes: cubes of 4 x 4 x 4 voxels that are alike are filtered together, in two stages.
//
//   match    for each reference cube, 3 voxels apart (in stage 1 along z and y 4), the 32 most alike of 9 x 9 x 9
//            places around it
//   filter   cosines in each cube, Haar's transform along the group; keep the large coefficients (stage 1), or
//            multiply by b^2 / (b^2 + (0.9 sigma)^2), b of the same group in stage 1's result (stage 2)
//   add      every cube to the sums of its voxels, as whole numbers: their order does not matter
//
// The volume is stabilised first, so that sigma is 1, and extended by 4 voxels; that is the domain, in which all cubes
// lie. A warp has a reference. To match, each lane compares a place in turn, and keeps one of the 32 best; then each
// lane has the cube it kept, in registers, and cubes meet by shuffles. Every float has the bytes of the CPU.
//
// level   demonstrates                                    cells that are compared
// global  a warp for a reference, everything by itself     global memory
// shared  a block of eight references along x              shared memory: a cell is read by all of them
// tuned   products of matrices, and sums in shared memory   volume_collaborative_tuned.cuh
//
// The sums are cleared in step 0 and added to in step 1, which has to wait for all blocks of step 0. A launch is for the
// output slices first <= z < last; a reference belongs to the launch whose slices, AFTER further on, have it, and those
// before belong to the first launch.
//
// Launch: blocks of 32 x 8 threads, a warp a reference, which stride over the references.
#include "volume_noise.cuh"

#define SIDE 4
#define CELLS (SIDE * SIDE * SIDE)
#define STEP 3        // from a reference to the next
#define FIRST_STEP 4  // along z and y in stage 1
#define SEARCH 4
#define PLACES (2 * SEARCH + 1)
#define GROUP 32
#define PAD 4
#define REACH (2 * SEARCH + SIDE - 1)
#define BEFORE (SEARCH + SIDE - 1)
#define AFTER SEARCH
#define SLICES (2 * REACH)  // of buffers, before and behind the output
#define WARPS 8
#define DEEP 4  // voxels of a thread that divides
#ifndef BLOCKS  // of a multiprocessor, at least
#define BLOCKS 2
#endif
#define THREADS (32 * WARPS)
#define ALL 0xffffffffu
#define ROOT 0.70710678f
#define UNITS 67108864.0f  // of the whole numbers: 2^26
#define SHARES 262144.0f   // of squares of factors: 2^18

typedef unsigned long long Whole;

__constant__ float numbers[2];     // the threshold, and 1 / (0.9 sigma)
__constant__ float window[CELLS];  // weights of the cells of a cube

extern "C" __global__ void volume_collaborative_extend(
    const float* source, float*, const float* nodes, const float* forward, const float*, float* extended, Volume g)
{
    extend_stabilised(source, nodes, forward, extended, g, PAD, SLICES);
}

extern "C" __global__ void volume_collaborative_restore(
    const float*, float* output, const float* nodes, const float*, const float* backward, const float* filtered,
    Volume g)
{
    restore(output, nodes, backward, filtered, g);
}

extern "C" __global__ void volume_collaborative_copy(const float* source, float* output, Volume g)
{
    copy_source(source, output, g);
}

// A buffer that has the domain, of a slab with `SLICES` more.
template <typename Cell>
__device__ inline Around<Cell*> domain(Cell* cells, const Volume& g)
{
    return Around<Cell*>(cells, g, PAD, SLICES);
}

// ---- Match ----

// Cells around a reference, in any memory.
struct Cells {
    const float* first;  // that of the reference cube
    int slice, row;      // from one to the next
};

// A lane's one of the cubes that are most alike, in their order.
struct Best {
    float distance;
    int place;  // the number of its offset

    // Take a place that all lanes know.
    __device__ inline void insert(float other, int other_place)
    {
        const int lane = threadIdx.x;
        const int at = __popc(__ballot_sync(ALL, distance <= other));
        const float before = __shfl_up_sync(ALL, distance, 1);
        const int place_before = __shfl_up_sync(ALL, place, 1);
        if (at >= GROUP) return;
        if (lane > at) {
            distance = before;
            place = place_before;
        } else if (lane == at) {
            distance = other;
            place = other_place;
        }
    }
};

struct Box {
    int low_z, high_z, low_y, high_y, low_x, high_x;  // of offsets: those of places in the domain

    __device__ inline bool has(int z, int y, int x) const
    {
        return z >= low_z && z <= high_z && y >= low_y && y <= high_y && x >= low_x && x <= high_x;
    }
};

__device__ inline Best match(const Cells& cells, const Box& box)
{
    const int lane = threadIdx.x, own = (PLACES * PLACES * PLACES) / 2;
    Real reference[CELLS];
#pragma unroll
    for (int k = 0; k < CELLS; ++k)
        reference[k] = {cells.first[(k >> 4) * cells.slice + (k >> 2 & 3) * cells.row + (k & 3)]};
    const float far = __int_as_float(0x7f800000);
    Best best = {lane ? far : -1.0f, own};
#pragma unroll 1
    for (int begin = 0; begin < PLACES * PLACES * PLACES; begin += 32) {
        const int number = begin + lane;
        const int dz = number / (PLACES * PLACES) - SEARCH, dy = number / PLACES % PLACES - SEARCH;
        const int dx = number % PLACES - SEARCH;
        float distance = far;
        if (number != own && box.has(dz, dy, dx)) {
            const float* other = cells.first + dz * cells.slice + dy * cells.row + dx;
            Real columns[SIDE] = {{0.0f}, {0.0f}, {0.0f}, {0.0f}};
#pragma unroll
            for (int n = 0; n < SIDE * SIDE; ++n)
#pragma unroll
                for (int x = 0; x < SIDE; ++x) {
                    const Real cell = {other[(n >> 2) * cells.slice + (n & 3) * cells.row + x]};
                    const Real difference = reference[SIDE * n + x] - cell;
                    columns[x] = columns[x] + difference * difference;
                }
            distance = (columns[0] + columns[1] + columns[2] + columns[3]).value;
        }
        const float worst = __shfl_sync(ALL, best.distance, GROUP - 1);
        unsigned found = __ballot_sync(ALL, distance < worst);
        for (; found; found &= found - 1) {
            const int from = __ffs((int)found) - 1;
            best.insert(__shfl_sync(ALL, distance, from), begin + from);
        }
    }
    return best;
}

// ---- Filter ----

// A lane's cube, and later its coefficients.
struct Cube {
    Real values[CELLS];

    __device__ inline void load(const Around<const float*>& volume, int z, int c, int y, int x)
    {
        const float* first = volume.row(z, c, y) + x;
        const size_t slice = (size_t)volume.components * volume.rows * volume.columns;
#pragma unroll
        for (int k = 0; k < CELLS; ++k)
            values[k] = {first[(k >> 4) * slice + (k >> 2 & 3) * volume.columns + (k & 3)]};
    }

    __device__ inline void transform()
    {
#pragma unroll
        for (int n = 0; n < SIDE * SIDE; ++n) forward_dct<1>(values + SIDE * n);
#pragma unroll
        for (int n = 0; n < SIDE * SIDE; ++n) forward_dct<4>(values + 16 * (n >> 2) + (n & 3));
#pragma unroll
        for (int n = 0; n < SIDE * SIDE; ++n) forward_dct<16>(values + n);
    }

    __device__ inline void transform_back()
    {
#pragma unroll
        for (int n = 0; n < SIDE * SIDE; ++n) backward_dct<16>(values + n);
#pragma unroll
        for (int n = 0; n < SIDE * SIDE; ++n) backward_dct<4>(values + 16 * (n >> 2) + (n & 3));
#pragma unroll
        for (int n = 0; n < SIDE * SIDE; ++n) backward_dct<1>(values + SIDE * n);
    }

    // Replace the cubes of lanes that are `step` apart by their sum and their difference.
    __device__ inline void pair_up(int step)
    {
        const int turn = threadIdx.x & (2 * step - 1);
        const float sign = turn == step ? -1.0f : 1.0f;
        const bool meets = turn == 0 || turn == step;
#pragma unroll
        for (int k = 0; k < CELLS; ++k) {
            const Real own = values[k], other = {__shfl_xor_sync(ALL, own.value, step)};
            const Real both = (other + own * sign) * ROOT;
            if (meets) values[k] = both;
        }
    }

    __device__ inline void haar()
    {
#pragma unroll 1
        for (int step = 1; step < GROUP; step *= 2) pair_up(step);
    }

    __device__ inline void haar_back()
    {
#pragma unroll 1
        for (int step = GROUP / 2; step > 0; step /= 2) pair_up(step);
    }
};

__device__ inline int warp_sum(int number)
{
    for (int step = 1; step < 32; step *= 2) number += __shfl_xor_sync(ALL, number, step);
    return number;
}

// Stage 1; returns the weight of the group.
__device__ inline Real keep_large(Cube& cube)
{
    int kept = 0;
#pragma unroll
    for (int k = 0; k < CELLS; ++k) {
        const bool keep = fabsf(cube.values[k].value) > numbers[0];
        if (!keep) cube.values[k] = {0.0f};
        kept += keep;
    }
    return Real{1.0f} / Real{(float)max(warp_sum(kept), 1)};
}

// Stage 2; returns the weight of the group.
__device__ inline Real multiply(Cube& cube, const Cube& guide)
{
    const Real one = {1.0f};
    int total = 0;
#pragma unroll
    for (int k = 0; k < CELLS; ++k) {
        const Real ratio = guide.values[k] * numbers[1];
        const Real sum = ratio * ratio + one;
        const Real gain = one - (sum.value > 1e30f ? Real{0.0f} : near_quotient(one, sum));
        cube.values[k] = cube.values[k] * gain;
        total += (int)(gain * gain * SHARES + Real{0.5f}).value;
    }
    const Real sum = Real{(float)warp_sum(total)} / Real{SHARES};
    return one / Real{fmaxf(sum.value, 1.0f)};
}

__device__ inline void add_whole(Whole* sum, float value)
{
    atomicAdd(sum, (Whole)(long long)rintf(value));
}

template <bool WIENER>
__device__ inline void filter_group(
    const Best& best, const Around<const float*>& volume, const Around<const float*>& guide,
    const Around<Whole*>& sums, const Around<Whole*>& weights, int z, int c, int y, int x)
{
    z += best.place / (PLACES * PLACES) - SEARCH;
    y += best.place / PLACES % PLACES - SEARCH;
    x += best.place % PLACES - SEARCH;
    Cube cube;
    cube.load(volume, z, c, y, x);
    cube.transform();
    cube.haar();
    Real weight;
    if (WIENER) {
        Cube basic;
        basic.load(guide, z, c, y, x);
        basic.transform();
        basic.haar();
        weight = multiply(cube, basic);
    } else {
        weight = keep_large(cube);
    }
    cube.haar_back();
    cube.transform_back();
    add_whole(weights.row(z, c, y) + x, (weight * UNITS).value);
    Whole* first = sums.row(z, c, y) + x;
    const size_t slice = (size_t)sums.components * sums.rows * sums.columns;
#pragma unroll
    for (int k = 0; k < CELLS; ++k)
        add_whole(
            first + (k >> 4) * slice + (k >> 2 & 3) * sums.columns + (k & 3),
            (cube.values[k] * weight * (Real{window[k]} * UNITS)).value);
}

// ---- References ----

// Where a reference cube begins along an axis, and how many there are.
__device__ inline int reference(int number, int size, int step)
{
    return min(step * number - PAD, size);
}

__device__ inline int references(int size, int step)
{
    return (size + PAD + step - 1) / step + 1;
}

// The numbers of the references that begin in slices low <= z < high: first <= number < last.
struct Range {
    int first, last;

    __device__ inline Range(int low, int high, int depth, int step)
        : first(max((low + PAD + step - 1) / step, 0)),
          last(high > depth ? references(depth, step) : (high + PAD + step - 1) / step)
    {
        if (low > depth) first = last;  // the last one begins there
        else first = min(first, references(depth, step) - 1);
    }
};

// Around the eight references of a block, from the first cell that they are compared with.
#define TILE_X (STEP * (WARPS - 1) + SIDE + 2 * SEARCH)
#define TILE_Y (SIDE + 2 * SEARCH)

// Places that lanes compare at once have numbers in a row, and lie in different banks: a place has the bank of its number.
#define TILE_ROW (32 + PLACES)
#define TILE_SLICE (TILE_Y * TILE_ROW + 5)
static_assert(TILE_X <= TILE_ROW && TILE_SLICE % 32 == PLACES * PLACES % 32, "banks");

struct Memory {
    float cells[TILE_Y * TILE_SLICE];  // slices, rows, columns
};

__device__ inline Cells load_tile(
    Memory& memory, const Around<const float*>& from, const Volume& g, int z, int c, int y, int x, int own)
{
    __syncthreads();  // before the next tile takes the place of this one
    for (int n = threadIdx.y; n < TILE_Y * TILE_Y; n += WARPS) {
        const int s = n / TILE_Y, r = n % TILE_Y, zz = z - SEARCH + s, yy = y - SEARCH + r;
        if (zz < -PAD || zz >= g.depth + PAD || yy < -PAD || yy >= g.height + PAD) continue;
        const float* row = from.row(zz, c, yy);
        for (int t = threadIdx.x; t < TILE_X; t += 32) {
            const int xx = x - SEARCH + t;
            if (xx >= -PAD && xx < g.width + PAD) memory.cells[s * TILE_SLICE + r * TILE_ROW + t] = row[xx];
        }
    }
    __syncthreads();
    return {
        memory.cells + SEARCH * (TILE_SLICE + TILE_ROW + 1) + own - x, TILE_SLICE, TILE_ROW};
}

__device__ inline void clear(Whole* sum_cells, Whole* weight_cells, const Around<Whole*>& sums, const Volume& g)
{
    const size_t slice = (size_t)sums.components * sums.rows * sums.columns;
    const size_t begin = (max(g.first - SLICES, -PAD) - sums.front) * slice;
    const size_t end = (min(g.last + SLICES, g.depth + PAD) - sums.front) * slice;
    const size_t blocks = (size_t)gridDim.x * gridDim.y * gridDim.z;
    const int threads = blockDim.x * blockDim.y;
    size_t at = ((blockIdx.z * gridDim.y + blockIdx.y) * (size_t)gridDim.x + blockIdx.x) * threads;
    for (at += begin + threadIdx.y * 32 + threadIdx.x; at < end; at += blocks * threads)
        sum_cells[at] = weight_cells[at] = 0;
}

template <bool WIENER, bool SHARED>
__device__ inline void stage(
    Memory* memory, const float* extended, const float* basic, Whole* sum_cells, Whole* weight_cells, const Volume& g,
    int step)
{
    const Around<Whole*> sums = domain(sum_cells, g), weights = domain(weight_cells, g);
    if (step == 0) {
        clear(sum_cells, weight_cells, sums, g);
        return;
    }
    const int more = WIENER ? 0 : REACH;  // slices of the result beyond the output
    const int apart = WIENER ? STEP : FIRST_STEP;
    const int low = g.first == g.output_slice ? g.first - BEFORE - more : g.first + AFTER + more;
    const Range slices(low, g.last + AFTER + more, g.depth, apart);
    const Around<const float*> volume = domain(extended, g), guide = domain(basic, g);
    const int tall = references(g.height, apart), wide = references(g.width, STEP);
    for (int kz = slices.first + (int)blockIdx.z; kz < slices.last; kz += gridDim.z)
        for (int ky = blockIdx.y; ky < tall; ky += gridDim.y)
            for (int begin = (int)blockIdx.x * WARPS; begin < wide; begin += gridDim.x * WARPS)
                for (int c = 0; c < g.components; ++c) {
                    const int kx = begin + (int)threadIdx.y;
                    const int z = reference(kz, g.depth, apart), y = reference(ky, g.height, apart);
                    // A warp without a reference has the last one, and does nothing with it.
                    const int x = reference(min(kx, wide - 1), g.width, STEP);
                    const Around<const float*>& compared = WIENER ? guide : volume;
                    Cells cells = {
                        compared.row(z, c, y) + x, compared.components * compared.rows * compared.columns,
                        compared.columns};
                    if (SHARED)
                        cells = load_tile(*memory, compared, g, z, c, y, reference(begin, g.width, STEP), x);
                    if (kx >= wide) continue;
                    const Box box = {max(-SEARCH, -PAD - z), min(SEARCH, g.depth - z),
                                     max(-SEARCH, -PAD - y), min(SEARCH, g.height - y),
                                     max(-SEARCH, -PAD - x), min(SEARCH, g.width - x)};
                    const Best best = match(cells, box);
                    filter_group<WIENER>(best, volume, guide, sums, weights, z, c, y, x);
                }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) volume_collaborative_global_hard(
    const float*, float*, const float* extended, Whole* sums, Whole* weights, Volume g, int first, int last)
{
    for (int step = first; step < last; ++step)
        stage<false, false>(nullptr, extended, extended, sums, weights, g, step);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) volume_collaborative_global_wiener(
    const float*, float*, const float* extended, const float* basic, Whole* sums, Whole* weights, Volume g, int first,
    int last)
{
    for (int step = first; step < last; ++step)
        stage<true, false>(nullptr, extended, basic, sums, weights, g, step);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) volume_collaborative_shared_hard(
    const float*, float*, const float* extended, Whole* sums, Whole* weights, Volume g, int first, int last)
{
    extern __shared__ __align__(16) unsigned char memory[];
    for (int step = first; step < last; ++step)
        stage<false, true>((Memory*)memory, extended, extended, sums, weights, g, step);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) volume_collaborative_shared_wiener(
    const float*, float*, const float* extended, const float* basic, Whole* sums, Whole* weights, Volume g, int first,
    int last)
{
    extern __shared__ __align__(16) unsigned char memory[];
    for (int step = first; step < last; ++step)
        stage<true, true>((Memory*)memory, extended, basic, sums, weights, g, step);
}

#ifdef TUNED
#include "volume_collaborative_tuned.cuh"
#endif

// ---- Means ----

// Divide the sums, for the output and `around` voxels more, and `slices` more, as far as the domain goes. A thread has
// DEEP voxels, one behind the other: most of their weights are the same.
__device__ inline void divide(
    const Whole* sum_cells, const Whole* weight_cells, const Around<float*>& to, const Volume& g, int around,
    int slices)
{
    const Around<const Whole*> sums = domain(sum_cells, g), weights = domain(weight_cells, g);
    const int last = min(g.last + slices, g.depth + around);
    for (int z = max(g.first - slices, -around) + DEEP * (int)blockIdx.z; z < last; z += DEEP * gridDim.z)
        for (int y = (int)(blockIdx.y * blockDim.y + threadIdx.y) - around; y < g.height + around;
             y += gridDim.y * blockDim.y)
            for (int x = (int)(blockIdx.x * blockDim.x + threadIdx.x) - around; x < g.width + around;
                 x += gridDim.x * blockDim.x)
                for (int c = 0; c < g.components; ++c) {
                    Real totals[DEEP] = {};
                    // From the last slice to the first: in the order of the cells of a cube.
#pragma unroll
                    for (int s = DEEP - 1; s > -SIDE; --s) {
                        const bool is_there = z + s >= -PAD && z + s < last;
                        const Whole* line = weights.row(is_there ? z + s : z, c, y) + x;
#pragma unroll 1  // there are other threads to wait for cells
                        for (int k = 0; k < SIDE; ++k, line -= weights.columns)
#pragma unroll
                            for (int i = 0; i < SIDE; ++i) {
                                const bool is_one = is_there && y - k >= -PAD && x - i >= -PAD;
                                const Real weight = {is_one ? (float)(long long)line[-i] : 0.0f};
#pragma unroll
                                for (int n = 0; n < DEEP; ++n)
                                    if (n - s >= 0 && n - s < SIDE)
                                        totals[n] = totals[n] + weight * window[SIDE * (SIDE * (n - s) + k) + i];
                            }
                    }
#pragma unroll
                    for (int n = 0; n < DEEP; ++n)
                        if (z + n < last) {
                            const Real sum = {(float)(long long)sums.row(z + n, c, y)[x]};
                            to.row(z + n, c, y)[x] = (sum / totals[n]).value;
                        }
                }
}

extern "C" __global__ void volume_collaborative_first(
    const float*, float*, const Whole* sums, const Whole* weights, float* basic, Volume g)
{
    divide(sums, weights, domain(basic, g), g, PAD, REACH);
}

extern "C" __global__ void volume_collaborative_second(
    const float*, float*, const Whole* sums, const Whole* weights, float* filtered, Volume g)
{
    divide(sums, weights, Around<float*>(filtered, g, 0), g, 0, 0);
}
