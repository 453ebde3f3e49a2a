// tuned: volume collaborative filtering by products of matrices, transposed stacks and sums in shared memory; the same
// results as at the other levels.
//
// match   A block has eight references along x. |a - b|^2 = |a|^2 + |b|^2 - 2 a b, and the products of eight cubes with
//         32 places in a row are those of matrices, of numbers with 11 bits. How far they may be wrong is known: what
//         may be one of the best is compared exactly, and sorted.
//
// groups  A block has 7 x 6 references, a warp three of them. A lane has a cube while it is transformed; then it has one
//         of 32 coefficients of all cubes, twice. In between, half of the coefficients pass through shared memory. Cubes
//         are read from a tile, and added to the sums of the tile, two integers each; those of the tile are added to
//         the volume's.
//
// Launch: *match*: blocks of 32 x 8 threads; groups: of 32 x 14, which need nearly all of a multiprocessor's shared
// memory.
#ifndef KERNELSCOPE_VOLUME_COLLABORATIVE_TUNED
#define KERNELSCOPE_VOLUME_COLLABORATIVE_TUNED

namespace tuned {

constexpr int WIDE = STEP * (WARPS - 1) + SIDE + 2 * SEARCH;  // of a tile, in voxels along x
constexpr int TALL = SIDE + 2 * SEARCH;
constexpr int ALL_PLACES = PLACES * PLACES * PLACES, OWN = ALL_PLACES / 2;

// The references of a launch, and where their places are.
template <bool WIENER>
struct References {
    static constexpr int APART = WIENER ? STEP : FIRST_STEP, MORE = WIENER ? 0 : REACH;
    Range slices;
    int front, tall, wide, components;

    __device__ inline References(const Volume& g)
        : slices(
              g.first == g.output_slice ? g.first - BEFORE - MORE : g.first + AFTER + MORE, g.last + AFTER + MORE,
              g.depth, APART),
          front(max((g.output_slice - SLICES + PAD) / APART, 0)), tall(references(g.height, APART)),
          wide(references(g.width, STEP)), components(g.components)
    {
    }
    __device__ inline int z(int number, const Volume& g) const { return reference(number, g.depth, APART); }
    __device__ inline int y(int number, const Volume& g) const { return reference(number, g.height, APART); }
    __device__ inline int x(int number, const Volume& g) const { return reference(number, g.width, STEP); }
    __device__ inline size_t places(int kz, int c, int ky, int kx) const
    {
        return ((((size_t)(kz - front) * components + c) * tall + ky) * wide + kx) * GROUP;
    }
};

// ---- Match ----

constexpr int CELLS_OF_TILE = TALL * TALL * WIDE;
// Places that begin in a row of the tile. The last two are in no window: their cubes reach into the next row, or the
// norms.
constexpr int LINE = 32;
constexpr int NORMS = PLACES * PLACES * LINE;  // slices, rows, places
// From a reference's keys to the next one's: four lanes that write those of two references each meet no bank twice.
constexpr int KEYS = ALL_PLACES + 14;
static_assert(KEYS % 16 == 7 && WARPS * KEYS >= TALL * PLACES * LINE, "banks, and sums of slices");
constexpr int UNITS_OF_KEYS = 2 * PLACES;  // rows of places, twice five slices
constexpr int HALF_DEEP = SEARCH + 1;
constexpr int MINE = (ALL_PLACES + 31) / 32;  // places of a lane

// A row has 30 places that are compared, and two more whose cells are those of the next row, or the first ones of `exact`.
struct MatchMemory {
    float rounded[CELLS_OF_TILE], exact[CELLS_OF_TILE], norms[NORMS], keys[WARPS * KEYS];
};

// The nearest number of 11 bits: all that the products of matrices regard.
__device__ inline float of_11_bits(float value)
{
    return __uint_as_float((__float_as_uint(value) + 0x1000u) & ~0x1fffu);
}

// c += a b, of 16 x 8, 8 x 8 and 16 x 8: a lane has the numbers of row lane / 4 of a and of 8 rows below, those of
// column lane / 4 of b, and two each of these rows of c.
__device__ inline void add_products(float (&c)[4], const float (&a)[4], const float (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
          "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

__device__ inline void load_cells(
    MatchMemory& memory, const Around<const float*>& from, const Volume& g, int z, int c, int y, int x)
{
    // Around zero, fewer digits are lost.
    const float middle = from.row(z + SEARCH, c, y + SEARCH)[min(x + WIDE / 2, g.width + PAD - 1)];
    const auto load = [&](int s, int r, int t) {
        const int zz = z + s, yy = y + r, xx = x + t;
        const bool is_there = zz >= -PAD && zz < g.depth + PAD && yy >= -PAD && yy < g.height + PAD && xx >= -PAD &&
                              xx < g.width + PAD;
        const float cell = is_there ? from.row(zz, c, yy)[xx] : middle;
        const int at = (s * TALL + r) * WIDE + t;
        memory.exact[at] = cell;
        memory.rounded[at] = of_11_bits(cell - middle);
    };
    // A line of lanes, and what is left of the rows.
    int s = 0, r = threadIdx.y;
#pragma unroll 4
    for (int n = threadIdx.y; n < TALL * TALL; n += WARPS) {
        load(s, r, threadIdx.x);
        r += WARPS;
        s += r >= TALL;
        r -= r >= TALL ? TALL : 0;
    }
    constexpr int LEFT = WIDE - 32;
    for (int n = threadIdx.y * 32 + threadIdx.x; n < TALL * TALL * LEFT; n += 32 * WARPS)
        load(n / (TALL * LEFT), n / LEFT % TALL, 32 + n % LEFT);
}

// The squared norms of cubes: first of their slices, in the place of the keys.
__device__ inline void add_squares(MatchMemory& memory)
{
    const int lane = threadIdx.x, thread = threadIdx.y * 32 + lane;
    float* slices = memory.keys;
    for (int s = threadIdx.y; s < TALL; s += WARPS) {
        const float* cells = memory.rounded + s * TALL * WIDE + lane;
        float rows[SIDE];
#pragma unroll
        for (int r = 0; r < TALL; ++r, cells += WIDE) {
            float sum = 0.0f;
#pragma unroll
            for (int k = 0; k < SIDE; ++k) sum = __fmaf_rn(cells[k], cells[k], sum);
            rows[r % SIDE] = sum;
            if (r >= SIDE - 1)
                slices[(s * PLACES + r - SIDE + 1) * LINE + lane] = rows[0] + rows[1] + (rows[2] + rows[3]);
        }
    }
    __syncthreads();
    for (int n = thread; n < PLACES * LINE; n += 32 * WARPS) {
        float sums[SIDE];
#pragma unroll
        for (int s = 0; s < TALL; ++s) {
            sums[s % SIDE] = slices[s * PLACES * LINE + n];
            if (s >= SIDE - 1)
                memory.norms[(s - SIDE + 1) * PLACES * LINE + n] = sums[0] + sums[1] + (sums[2] + sums[3]);
        }
    }
    __syncthreads();
}

// Write |b|^2 - 2 a b for all references a and places b; the last reference is `most` from the first one.
__device__ inline void write_keys(MatchMemory& memory, int most)
{
    const int lane = threadIdx.x, high = lane >> 2, low = lane & 3;
    float own[2 * SIDE][2];
    const float* cells = memory.rounded + SEARCH * (TALL + 1) * WIDE + SEARCH + min(STEP * high, most) + low;
#pragma unroll
    for (int k = 0; k < 4 * SIDE; ++k) own[k >> 1][k & 1] = cells[((k >> 2) * TALL + (k & 3)) * WIDE];
    // Of the places of a lane and its two references.
    float* lines[2];
    bool is_near[2][4];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
        const int reference = 2 * low + k, before = high - min(STEP * reference, most);
        lines[k] = memory.keys + reference * KEYS + before;
#pragma unroll
        for (int n = 0; n < 4; ++n) is_near[k][n] = before + 8 * n >= 0 && before + 8 * n < PLACES;
    }
#pragma unroll 1
    for (int unit = threadIdx.y; unit < UNITS_OF_KEYS; unit += WARPS) {
        const int dy = unit >> 1, first = (unit & 1) * SEARCH;  // of slices; both have the middle one
        const float* row = memory.rounded + (first * TALL + dy) * WIDE + high + low;
        float products[HALF_DEEP][2][4] = {};
#pragma unroll
        for (int s = 0; s < HALF_DEEP + SIDE - 1; ++s)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float places[2][4];
#pragma unroll
                for (int k = 0; k < 8; ++k)
                    places[k >> 2][k & 3] = row[(s * TALL + 2 * half + (k >> 1 & 1)) * WIDE + 16 * (k >> 2) + 8 * (k & 1)];
#pragma unroll
                for (int z = 0; z < SIDE; ++z) {
                    if (s < z || s - z >= HALF_DEEP) continue;
                    add_products(products[s - z][0], places[0], own[2 * z + half]);
                    add_products(products[s - z][1], places[1], own[2 * z + half]);
                }
            }
        const int line = first * PLACES + dy;
        const float* norms = memory.norms + line * LINE + high;
        float* keys[2] = {lines[0] + line * PLACES, lines[1] + line * PLACES};
#pragma unroll
        for (int dz = 0; dz < HALF_DEEP; ++dz) {
            if (dz == 0 && first > 0) continue;  // written by another warp
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                const float norm = norms[dz * PLACES * LINE + 8 * n];
#pragma unroll
                for (int k = 0; k < 2; ++k)
                    if (is_near[k][n])
                        keys[k][dz * PLACES * PLACES + 8 * n] =
                            __fmaf_rn(-2.0f, products[dz][n >> 1][2 * (n & 1) + k], norm);
            }
        }
    }
    __syncthreads();
}

__device__ inline float sorted(float value)
{
    const int lane = threadIdx.x;
#pragma unroll
    for (int size = 2; size <= 32; size *= 2)
#pragma unroll
        for (int step = size / 2; step > 0; step /= 2) {
            const float other = __shfl_xor_sync(ALL, value, step);
            value = !(lane & size) == !(lane & step) ? fminf(value, other) : fmaxf(value, other);
        }
    return value;
}

// A distance and its place, in this order.
typedef unsigned long long Key;

__device__ inline Key in_order(Key key, int step, bool up)
{
    const Key other = __shfl_xor_sync(ALL, key, step);
    return (other < key) == (up == !(threadIdx.x & step)) ? other : key;
}

// Of lanes of which the first `many` have one.
__device__ inline Key sorted(Key key, int many)
{
#pragma unroll
    for (int size = 2; size <= 32; size *= 2) {
        if (size / 2 >= many) break;
#pragma unroll
        for (int step = size / 2; step > 0; step /= 2) key = in_order(key, step, !(threadIdx.x & size));
    }
    return key;
}

// The first 32 of two sorted lists.
__device__ inline Key merged(Key first, Key second)
{
    Key key = min(first, __shfl_sync(ALL, second, 31 - (int)threadIdx.x));
#pragma unroll
    for (int step = 16; step > 0; step /= 2) key = in_order(key, step, true);
    return key;
}

// The largest key that one of the 32 best may have. Triangles: |a - b| of the cubes is that of the rounded ones and at
// most what both lose, a 2048th of their norms. Each of eight products of matrices adds nine numbers, and loses at most
// 2^-24 of |a| |b| for each and 2^-23 for their sum; norms lose 2^-20 of theirs.
__device__ inline float largest_key(float best, float norm)
{
    const float root = sqrtf(norm) * 1.001f;
    const float far = 1.01f * (root + sqrtf(fmaxf(best + norm, 0.0f)));  // |b| is less
    const float more = 1.2e-5f * root * far + 2e-6f * far * far, lost = 0.0005f * (root + far);
    const float real = (sqrtf(fmaxf(best + norm, 0.0f) + more) + lost) * 1.0001f + lost;
    return fminf((real * real + more) * 1.0001f - norm, 3e38f);
}

__device__ inline int match(MatchMemory& memory, const Box& box, int number, int column)
{
    const int lane = threadIdx.x;
    float* keys = memory.keys + number * KEYS;
    const float far = __int_as_float(0x7f800000);
    const bool is_full = box.high_z - box.low_z + box.high_y - box.low_y + box.high_x - box.low_x == 6 * SEARCH;
    if (!is_full) {
        for (int n = lane; n < ALL_PLACES; n += 32)
            if (!box.has(n / (PLACES * PLACES) - SEARCH, n / PLACES % PLACES - SEARCH, n % PLACES - SEARCH))
                keys[n] = far;
        __syncwarp();
    }
    float mine[MINE], first = far, second = far;
#pragma unroll
    for (int k = 0; k < MINE; ++k) {
        const int n = 32 * k + lane;
        mine[k] = n < ALL_PLACES && n != OWN ? keys[n] : far;
        second = fminf(second, fmaxf(first, mine[k]));
        first = fminf(first, mine[k]);
    }
    __syncwarp();
    // 64 of the keys: at least 32 are up to the 32nd of them.
    float best = fminf(sorted(first), __shfl_sync(ALL, sorted(second), 31 - lane));
    for (int step = 16; step > 0; step /= 2) best = fmaxf(best, __shfl_xor_sync(ALL, best, step));
    const float norm = memory.norms[SEARCH * (PLACES + 1) * LINE + SEARCH + column];
    const float limit = largest_key(best, norm);
    unsigned near[2] = {};
#pragma unroll
    for (int k = 0; k < MINE; ++k)
        if (mine[k] <= limit) near[k >> 5] |= 1u << (k & 31);
    int* const found = (int*)keys;
    int own = __popc(near[0]) + __popc(near[1]), count = own;
    for (int step = 1; step < 32; step *= 2) {
        const int before = __shfl_up_sync(ALL, count, step);
        if (lane >= step) count += before;
    }
    own = count - own;
    count = __shfl_sync(ALL, count, 31);
#pragma unroll
    for (int k = 0; k < 2; ++k)
        for (; near[k]; near[k] &= near[k] - 1) found[own++] = 32 * (32 * k + __ffs((int)near[k]) - 1) + lane;
    __syncwarp();
    // Four lanes compare a place, a column of cells each.
    const float* cells = memory.exact + SEARCH * (TALL + 1) * WIDE + SEARCH + column + (lane & 3);
    Real reference[SIDE * SIDE];
#pragma unroll
    for (int k = 0; k < SIDE * SIDE; ++k) reference[k] = {cells[((k >> 2) * TALL + (k & 3)) * WIDE]};
    Key group = ~(Key)0;
#pragma unroll 1
    for (int begin = 0; begin < count; begin += 32) {
        const int many = min(count - begin, 32);
        const int n = found[begin + min(lane, many - 1)];
        float distance = far;
#pragma unroll 1
        for (int part = 0; part < many; part += 8) {
            const int other = __shfl_sync(ALL, n, part + (lane >> 2));
            const float* place = cells + ((other / (PLACES * PLACES) - SEARCH) * TALL + other / PLACES % PLACES -
                                          SEARCH) * WIDE + other % PLACES - SEARCH;
            Real sum = {0.0f};
#pragma unroll
            for (int k = 0; k < SIDE * SIDE; ++k) {
                const Real difference = reference[k] - Real{place[((k >> 2) * TALL + (k & 3)) * WIDE]};
                sum = sum + difference * difference;
            }
            const int quad = (lane & 7) << 2;
            Real columns[SIDE];
#pragma unroll
            for (int k = 0; k < SIDE; ++k) columns[k] = {__shfl_sync(ALL, sum.value, quad + k)};
            if (lane >> 3 == part >> 3) distance = (columns[0] + columns[1] + columns[2] + columns[3]).value;
        }
        const Key key = sorted(lane < many ? (Key)__float_as_uint(distance) << 32 | (unsigned)n : ~(Key)0, many);
        group = begin ? merged(group, key) : key;
    }
    const Key before = __shfl_up_sync(ALL, group, 1);
    return lane == 0 ? OWN : (int)(unsigned)before;
}

template <bool WIENER>
__device__ inline void match_all(const float* compared, unsigned short* places, MatchMemory& memory, const Volume& g)
{
    const References<WIENER> all(g);
    const Around<const float*> from = domain(compared, g);
    for (int kz = all.slices.first + (int)blockIdx.z; kz < all.slices.last; kz += gridDim.z)
        for (int ky = blockIdx.y; ky < all.tall; ky += gridDim.y)
            for (int begin = (int)blockIdx.x * WARPS; begin < all.wide; begin += gridDim.x * WARPS)
                for (int c = 0; c < g.components; ++c) {
                    const int kx = begin + (int)threadIdx.y;
                    const int z = all.z(kz, g), y = all.y(ky, g), left = all.x(begin, g), x = all.x(kx, g);
                    __syncthreads();  // before the next tile takes the place of this one
                    load_cells(memory, from, g, z - SEARCH, c, y - SEARCH, left - SEARCH);
                    __syncthreads();
                    add_squares(memory);
                    write_keys(memory, g.width - left);
                    if (kx >= all.wide) continue;
                    const Box box = {max(-SEARCH, -PAD - z), min(SEARCH, g.depth - z),
                                     max(-SEARCH, -PAD - y), min(SEARCH, g.height - y),
                                     max(-SEARCH, -PAD - x), min(SEARCH, g.width - x)};
                    places[all.places(kz, c, ky, kx) + threadIdx.x] =
                        (unsigned short)match(memory, box, threadIdx.y, x - left);
                }
}

// ---- Groups ----

constexpr int GROUP_WARPS = 14;
constexpr int GROUPS_WIDE = 7, GROUPS_TALL = 6;  // a row of the tile is then one of lanes
constexpr int SUMS_WIDE = 32;
static_assert(STEP * (GROUPS_WIDE - 1) + TALL <= SUMS_WIDE, "a row of lanes");
constexpr int STACK_PITCH = 36;  // from a coefficient to the next, of 32 cubes: four at a time are read
constexpr int HALF = CELLS / 2;
constexpr float LARGEST = 4096.0f;  // of cells whose sums two integers hold
constexpr float PART = 4194304.0f;  // 2^22: the first counts these, the second what is left

template <bool WIENER>
struct GroupMemory {
    static constexpr int SUMS_TALL = References<WIENER>::APART * (GROUPS_TALL - 1) + TALL;
    static constexpr int SLICE = SUMS_TALL * SUMS_WIDE, SUMS = TALL * SLICE;
    unsigned high[SUMS], low[SUMS];
    float stacks[GROUP_WARPS][HALF * STACK_PITCH];
    int is_large;
    float cells[WIENER ? 2 : 1][SUMS];  // and the guide's
};

template <int N>
__device__ inline void pair_up(Real (&a)[GROUP])
{
#pragma unroll
    for (int i = 0; i < GROUP; i += 2 * N) {
        const Real first = a[i], second = a[i + N];
        a[i] = (first + second) * ROOT;
        a[i + N] = (first - second) * ROOT;
    }
}

__device__ inline void add_up(Real (&a)[GROUP])
{
    pair_up<1>(a);
    pair_up<2>(a);
    pair_up<4>(a);
    pair_up<8>(a);
    pair_up<16>(a);
}

__device__ inline void take_apart(Real (&a)[GROUP])
{
    pair_up<16>(a);
    pair_up<8>(a);
    pair_up<4>(a);
    pair_up<2>(a);
    pair_up<1>(a);
}

// Half a cube goes to the stack, and a coefficient of all cubes comes back.
__device__ inline void give(const Real* half, float* stack, Real (&a)[GROUP])
{
#pragma unroll
    for (int k = 0; k < HALF; ++k) stack[k * STACK_PITCH + threadIdx.x] = half[k].value;
    __syncwarp();
    const float4* fours = (const float4*)(stack + threadIdx.x * STACK_PITCH);
#pragma unroll
    for (int m = 0; m < GROUP; m += 4) {
        const float4 four = fours[m / 4];
        a[m] = {four.x};
        a[m + 1] = {four.y};
        a[m + 2] = {four.z};
        a[m + 3] = {four.w};
    }
    __syncwarp();
}

__device__ inline void take(Real* half, float* stack, const Real (&a)[GROUP])
{
#pragma unroll
    for (int m = 0; m < GROUP; m += 4)
        *(float4*)(stack + threadIdx.x * STACK_PITCH + m) =
            make_float4(a[m].value, a[m + 1].value, a[m + 2].value, a[m + 3].value);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < HALF; ++k) half[k] = {stack[k * STACK_PITCH + threadIdx.x]};
    __syncwarp();
}

// A slice's coefficients along x and y.
__device__ inline void read_slice(const float* cells, Real (&slice)[16])
{
#pragma unroll
    for (int k = 0; k < 16; ++k) slice[k] = {cells[(k >> 2) * SUMS_WIDE + (k & 3)]};
#pragma unroll
    for (int n = 0; n < SIDE; ++n) forward_dct<1>(slice + SIDE * n);
#pragma unroll
    for (int n = 0; n < SIDE; ++n) forward_dct<4>(slice + n);
}

// The coefficients 0 and 2 along z, of the sums of opposite slices; or 1 and 3, of the differences.
template <bool ODD>
__device__ inline void along_z(const Real (&outer)[16], const Real (&inner)[16], Real* half)
{
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        half[k] = ODD ? outer[k] * DCT_C1 + inner[k] * DCT_C3 : (outer[k] + inner[k]) * 0.5f;
        half[k + 16] = ODD ? outer[k] * DCT_C3 - inner[k] * DCT_C1 : (outer[k] - inner[k]) * 0.5f;
    }
}

template <bool ODD, int SLICE>
__device__ inline void read_half(const float* cells, Real (&half)[HALF])
{
    Real pairs[2][16], other[16];
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        read_slice(cells + n * SLICE, pairs[n]);
        read_slice(cells + (3 - n) * SLICE, other);
#pragma unroll
        for (int k = 0; k < 16; ++k) pairs[n][k] = ODD ? pairs[n][k] - other[k] : pairs[n][k] + other[k];
    }
    along_z<ODD>(pairs[0], pairs[1], half);
}

template <int SLICE>
__device__ inline void read_cube(const float* cells, Real (&even)[HALF], Real (&odd)[HALF])
{
    Real sums[2][16], differences[2][16], other[16];
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        read_slice(cells + n * SLICE, sums[n]);
        read_slice(cells + (3 - n) * SLICE, other);
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            differences[n][k] = sums[n][k] - other[k];
            sums[n][k] = sums[n][k] + other[k];
        }
    }
    along_z<false>(sums[0], sums[1], even);
    along_z<true>(differences[0], differences[1], odd);
}

__device__ inline int keep_large(Real (&a)[GROUP])
{
    int kept = 0;
#pragma unroll
    for (int m = 0; m < GROUP; ++m) {
        const bool keep = fabsf(a[m].value) > numbers[0];
        if (!keep) a[m] = {0.0f};
        kept += keep;
    }
    return kept;
}

// Of a number from 0 to 2^22.
__device__ inline int whole_part(float number)
{
#ifdef __CUDA_ARCH__
    return __float_as_int(__fadd_rz(number, 8388608.0f)) - 0x4b000000;
#else
    return (int)number;
#endif
}

// Replace coefficients of the guide by factors; return the sum of their squares.
__device__ inline int find_gains(Real (&a)[GROUP])
{
    const Real one = {1.0f};
    int total = 0;
#pragma unroll
    for (int m = 0; m < GROUP; ++m) {
        const Real ratio = a[m] * numbers[1];
        const Real sum = ratio * ratio + one;
        const Real gain = one - (sum.value > 1e30f ? Real{0.0f} : near_quotient(one, sum));
        a[m] = gain;
        total += whole_part((gain * gain * SHARES + Real{0.5f}).value);
    }
    return total;
}

template <bool ODD, int SLICE>
__device__ inline int multiply_half(const float* guide, float* stack, Real (&half)[HALF])
{
    Real gains[GROUP], a[GROUP];
    {
        Real of_guide[HALF];
        read_half<ODD, SLICE>(guide, of_guide);
        give(of_guide, stack, gains);
    }
    add_up(gains);
    const int total = find_gains(gains);
    give(half, stack, a);
    add_up(a);
#pragma unroll
    for (int m = 0; m < GROUP; ++m) a[m] = a[m] * gains[m];
    take_apart(a);
    take(half, stack, a);
    return total;
}

__device__ inline int keep_half(float* stack, Real (&half)[HALF])
{
    Real a[GROUP];
    give(half, stack, a);
    add_up(a);
    const int kept = keep_large(a);
    take_apart(a);
    take(half, stack, a);
    return kept;
}

// Add a number, and leave what is not a whole number out.
__device__ inline void add_whole(unsigned* high, unsigned* low, Real value)
{
    const float whole = 12582912.0f;  // 1.5 * 2^23: numbers around it are whole ones
    const float many = __fmaf_rn(value.value, 1.0f / PART, whole);
    const float left = __fmaf_rn(-PART, __fsub_rn(many, whole), value.value);
    atomicAdd(high, __float_as_uint(many) - __float_as_uint(whole));
    atomicAdd(low, __float_as_uint(__fadd_rn(left, whole)) - __float_as_uint(whole));
}

template <bool WIENER>
__device__ inline void filter_stack(
    GroupMemory<WIENER>& memory, int place, const Around<Whole*>& sums, const Around<Whole*>& weights, int z, int c,
    int y, int x, int corner_z, int corner_y, int corner_x)
{
    constexpr int SLICE = GroupMemory<WIENER>::SLICE, SUMS_TALL = GroupMemory<WIENER>::SUMS_TALL;
    z += place / (PLACES * PLACES) - SEARCH;
    y += place / PLACES % PLACES - SEARCH;
    x += place % PLACES - SEARCH;
    const int at = ((z - corner_z) * SUMS_TALL + y - corner_y) * SUMS_WIDE + x - corner_x;
    float* stack = memory.stacks[threadIdx.y];
    Real even[HALF], odd[HALF];
    read_cube<SLICE>(memory.cells[0] + at, even, odd);
    Real weight;
    if (WIENER) {
        int total = multiply_half<false, SLICE>(memory.cells[1] + at, stack, even);
        total += multiply_half<true, SLICE>(memory.cells[1] + at, stack, odd);
        const Real sum = Real{(float)warp_sum(total)} / Real{SHARES};
        weight = Real{1.0f} / Real{fmaxf(sum.value, 1.0f)};
    } else {
        int kept = keep_half(stack, even);
        kept += keep_half(stack, odd);
        weight = Real{1.0f} / Real{(float)max(warp_sum(kept), 1)};
    }
    Real cube[CELLS];
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        const Real p = (even[k] + even[k + 16]) * 0.5f, q = (even[k] - even[k + 16]) * 0.5f;
        const Real r = odd[k] * DCT_C1 + odd[k + 16] * DCT_C3, t = odd[k] * DCT_C3 - odd[k + 16] * DCT_C1;
        cube[k] = p + r;
        cube[k + 16] = q + t;
        cube[k + 32] = q - t;
        cube[k + 48] = p - r;
    }
#pragma unroll
    for (int n = 0; n < 16; ++n) backward_dct<4>(cube + 16 * (n >> 2) + (n & 3));
#pragma unroll
    for (int n = 0; n < 16; ++n) backward_dct<1>(cube + SIDE * n);
    ::add_whole(weights.row(z, c, y) + x, (weight * UNITS).value);
    if (memory.is_large) {
        Whole* first = sums.row(z, c, y) + x;
        const size_t slice = (size_t)sums.components * sums.rows * sums.columns;
#pragma unroll
        for (int k = 0; k < CELLS; ++k)
            ::add_whole(
                first + (k >> 4) * slice + (k >> 2 & 3) * sums.columns + (k & 3),
                (cube[k] * weight * (Real{window[k]} * UNITS)).value);
        return;
    }
#pragma unroll
    for (int k = 0; k < CELLS; ++k) {
        const int cell = at + (k >> 4) * SLICE + (k >> 2 & 3) * SUMS_WIDE + (k & 3);
        add_whole(memory.high + cell, memory.low + cell, cube[k] * weight * (Real{window[k]} * UNITS));
    }
}

template <bool WIENER>
__device__ inline void load_groups(
    GroupMemory<WIENER>& memory, const Around<const float*>& volume, const Around<const float*>& guide, const Volume& g,
    int z, int c, int y, int x)
{
    constexpr int SUMS_TALL = GroupMemory<WIENER>::SUMS_TALL;
    const int thread = threadIdx.y * 32 + threadIdx.x, xx = x + (int)threadIdx.x;
    for (int n = thread; n < GroupMemory<WIENER>::SUMS / 2; n += 32 * GROUP_WARPS)
        ((uint4*)memory.high)[n] = make_uint4(0, 0, 0, 0);
    if (thread == 0) memory.is_large = 0;
    __syncthreads();
    bool is_large = false;
    if (xx >= -PAD && xx < g.width + PAD) {
        int s = 0, r = threadIdx.y;
#pragma unroll 4
        for (int n = threadIdx.y; n < TALL * SUMS_TALL; n += GROUP_WARPS) {
            const int zz = z + s, yy = y + r;
            if (zz >= -PAD && zz < g.depth + PAD && yy >= -PAD && yy < g.height + PAD) {
                const float cell = volume.row(zz, c, yy)[xx];
                memory.cells[0][n * SUMS_WIDE + threadIdx.x] = cell;
                if (WIENER) memory.cells[1][n * SUMS_WIDE + threadIdx.x] = guide.row(zz, c, yy)[xx];
                is_large = is_large || !(fabsf(cell) <= LARGEST);
            }
            r += GROUP_WARPS;
            s += r >= SUMS_TALL;
            r -= r >= SUMS_TALL ? SUMS_TALL : 0;
        }
    }
    if (is_large) memory.is_large = 1;
    __syncthreads();
}

template <bool WIENER>
__device__ inline void filter_all(
    const float* extended, const float* basic, const unsigned short* places, Whole* sum_cells, Whole* weight_cells,
    GroupMemory<WIENER>& memory, const Volume& g, int step)
{
    constexpr int SUMS_TALL = GroupMemory<WIENER>::SUMS_TALL;
    const Around<Whole*> sums = domain(sum_cells, g), weights = domain(weight_cells, g);
    if (step == 0) {
        clear(sum_cells, weight_cells, sums, g);
        return;
    }
    const References<WIENER> all(g);
    const Around<const float*> volume = domain(extended, g), guide = domain(basic, g);
    for (int kz = all.slices.first + (int)blockIdx.z; kz < all.slices.last; kz += gridDim.z)
        for (int top = (int)blockIdx.y * GROUPS_TALL; top < all.tall; top += gridDim.y * GROUPS_TALL)
            for (int begin = (int)blockIdx.x * GROUPS_WIDE; begin < all.wide; begin += gridDim.x * GROUPS_WIDE)
                for (int c = 0; c < g.components; ++c) {
                    const int z = all.z(kz, g);
                    const int z0 = z - SEARCH, y0 = all.y(top, g) - SEARCH, x0 = all.x(begin, g) - SEARCH;
                    __syncthreads();  // before the next tile takes the place of this one
                    load_groups<WIENER>(memory, volume, guide, g, z0, c, y0, x0);
#pragma unroll 1
                    for (int n = threadIdx.y; n < GROUPS_WIDE * GROUPS_TALL; n += GROUP_WARPS) {
                        const int ky = top + n / GROUPS_WIDE, kx = begin + n % GROUPS_WIDE;
                        const bool is_one = ky < all.tall && kx < all.wide;
                        // Warps keep in step, as they share the cache of instructions.
                        __syncthreads();
                        if (!is_one) continue;
                        filter_stack<WIENER>(
                            memory, places[all.places(kz, c, ky, kx) + threadIdx.x], sums, weights, z, c, all.y(ky, g),
                            all.x(kx, g), z0, y0, x0);
                    }
                    __syncthreads();
                    int s = 0, r = threadIdx.y;
#pragma unroll 4
                    for (int n = threadIdx.y; n < TALL * SUMS_TALL; n += GROUP_WARPS) {
                        const int at = n * SUMS_WIDE + threadIdx.x;
                        const Whole sum = (Whole)((long long)(int)memory.high[at] * (int)PART + (int)memory.low[at]);
                        if (sum) atomicAdd(sums.row(z0 + s, c, y0 + r) + x0 + threadIdx.x, sum);
                        r += GROUP_WARPS;
                        s += r >= SUMS_TALL;
                        r -= r >= SUMS_TALL ? SUMS_TALL : 0;
                    }
                }
}

}  // namespace tuned

extern "C" __global__ void __launch_bounds__(THREADS, 3) volume_collaborative_tuned_match_hard(
    const float*, float*, const float* extended, unsigned short* places, Volume g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    tuned::match_all<false>(extended, places, *(tuned::MatchMemory*)memory, g);
}

extern "C" __global__ void __launch_bounds__(THREADS, 3) volume_collaborative_tuned_match_wiener(
    const float*, float*, const float* basic, unsigned short* places, Volume g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    tuned::match_all<true>(basic, places, *(tuned::MatchMemory*)memory, g);
}

extern "C" __global__ void __launch_bounds__(32 * tuned::GROUP_WARPS, 1) volume_collaborative_tuned_hard(
    const float*, float*, const float* extended, const unsigned short* places, Whole* sums, Whole* weights, Volume g,
    int first, int last)
{
    extern __shared__ __align__(16) unsigned char memory[];
    for (int step = first; step < last; ++step)
        tuned::filter_all<false>(
            extended, extended, places, sums, weights, *(tuned::GroupMemory<false>*)memory, g, step);
}

extern "C" __global__ void __launch_bounds__(32 * tuned::GROUP_WARPS, 1) volume_collaborative_tuned_wiener(
    const float*, float*, const float* extended, const float* basic, const unsigned short* places, Whole* sums,
    Whole* weights, Volume g, int first, int last)
{
    extern __shared__ __align__(16) unsigned char memory[];
    for (int step = first; step < last; ++step)
        tuned::filter_all<true>(
            extended, basic, places, sums, weights, *(tuned::GroupMemory<true>*)memory, g, step);
}

#endif
