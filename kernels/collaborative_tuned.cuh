// tuned: collaborative filtering with blocks and stacks in registers; the same results as at the other levels.
//
// match   A thread has two blocks of bytes, one below the other, as words in registers, and goes down the columns of
//         places around them; of the words of a place, which lie below those of the last one, it reads three.
//         Differences are |a|^2 + |b|^2 - 2 a b, four products at a time; rows that both blocks have are multiplied
//         once. A key is (difference, place), so that the order is that of the other levels. Keys of similar blocks
//         wait in a queue of a thread; when one is full, all sort theirs and merge them into their lists.
//
// groups  A lane has a block of the stack in 64 registers while it is transformed along y and x; then it has one of 32
//         coefficients of all blocks, twice. In between, half of the coefficients at a time pass through the shared
//         memory of the warp: so little of it that two blocks of eight warps share a multiprocessor. The input
//         of the first transform is a tile in shared memory, too, and grey bytes are a second one. Other blocks are read,
//         and all are added to the sums of the tile, by lanes that have a pixel of four rows each, which lie in
//         different banks; the few weights go to global memory. A stack of 16 has half a warp.
//
// Loops over arrays in registers have fixed lengths: with others the arrays would lie in slow memory.
//
// Launch: *match*: blocks of 32 x 4 threads; *groups*: of 32 x GROUP_WARPS threads. Tiles are those of other levels.
#ifndef KERNELSCOPE_COLLABORATIVE_TUNED
#define KERNELSCOPE_COLLABORATIVE_TUNED

namespace tuned {

// ---- match ----

constexpr unsigned NONE = ~0u;
constexpr int FAR = 1 << 24;  // of a place without a block: more than every difference that counts
constexpr int QUEUE = 16, SLOTS = 12;  // keys that are sorted, and room for those that wait
constexpr int ACROSS = 2 * REACH + 1;
constexpr int TILE_WORDS = (31 * GRID_STEP + 2 * REACH + SIDE + 7) / 4;  // of four bytes, in a row
// Columns of the tile that blocks begin in. That of column x is at (x % step, x / step): neighbouring threads, whose
// blocks are a step apart, read neighbouring norms.
constexpr int LINE = (31 * GRID_STEP + 2 * REACH + GRID_STEP) / GRID_STEP;
constexpr int NORMS_ACROSS = LINE * GRID_STEP;
constexpr int OWN_ROWS = SIDE + GRID_STEP;  // of a thread's two blocks, one below the other
constexpr int TALL = CELL_ROWS + GRID_STEP;  // rows of the tile: the last block has one below it as well
constexpr int NORM_ROWS = TALL - SIDE + 1;
constexpr int MATCH_THREADS = 128;
constexpr int COMING = (OWN_ROWS + 1) / 2;  // places that are seen until queues are asked for room again
static_assert(COMING <= SLOTS, "room for those to come");

__device__ inline int column_at(int x) { return x % GRID_STEP * LINE + x / GRID_STEP; }

// The eight bytes from column x on, of the row at `words`.
__device__ inline void eight_bytes(const unsigned* words, int x, unsigned& first, unsigned& second)
{
    words += x >> 2;
    const unsigned middle = words[1];
    first = __funnelshift_r(words[0], middle, 8 * (x & 3));
    second = __funnelshift_r(middle, words[2], 8 * (x & 3));
}

__device__ inline void in_order(unsigned& a, unsigned& b)
{
    const unsigned low = min(a, b);
    b = max(a, b);
    a = low;
}

// Batcher's network for 16 keys.
template <int P, int K>
__device__ inline void sort_keys(unsigned (&keys)[QUEUE])
{
#pragma unroll
    for (int i = 0; i < QUEUE - K; ++i)
        if (i >= K % P && (i - K % P) / K % 2 == 0 && i / (2 * P) == (i + K) / (2 * P)) in_order(keys[i], keys[i + K]);
    if constexpr (K > 1) sort_keys<P, K / 2>(keys);
    else if constexpr (P < QUEUE / 2) sort_keys<2 * P, 2 * P>(keys);
}

template <int HALF>
__device__ inline void merge_keys(unsigned (&list)[MOST])
{
#pragma unroll
    for (int i = 0; i < MOST; ++i)
        if (!(i & HALF)) in_order(list[i], list[i + HALF]);
    if constexpr (HALF > 1) merge_keys<HALF / 2>(list);
}

// Merge the `waiting` keys of a queue, which lack the norm, into a list, whose largest keys go. Lists lie in slow
// memory: this is done seldom, and leaves its registers to the work at each place.
__device__ __noinline__ void merge_queue(unsigned* list, const unsigned* queue, int waiting, int norm)
{
    unsigned keys[MOST], coming[QUEUE];
#pragma unroll
    for (int k = 0; k < MOST; ++k) keys[k] = list[k];
#pragma unroll
    for (int i = 0; i < QUEUE; ++i)
        coming[i] = i < SLOTS && i < waiting ? queue[i * MATCH_THREADS] + ((unsigned)norm << 11) : NONE;
    sort_keys<1, 1>(coming);
#pragma unroll
    for (int i = 0; i < QUEUE; ++i) keys[MOST - 1 - i] = min(keys[MOST - 1 - i], coming[i]);
    merge_keys<MOST / 2>(keys);
#pragma unroll
    for (int k = 0; k < MOST; ++k) list[k] = keys[k];
}

// The blocks most like one: keys in order, and what waits to join them.
struct List {
    unsigned *keys, *queues;
    int first, next;  // bytes from `queues` to where its queue begins and ends
    int norm, tolerance, limit;  // of |b|^2 - 2 a b

    __device__ inline void begin(unsigned* own_keys, unsigned* all_queues, int number, int own_norm, int largest)
    {
        keys = own_keys;
        for (int k = 0; k < MOST; ++k) keys[k] = NONE;
        queues = all_queues;
        first = next = 4 * number;
        norm = own_norm;
        tolerance = largest;
        limit = tolerance - norm;
    }
    __device__ inline void see(int rest, int place)
    {
        if (rest > limit) return;
        *(unsigned*)((unsigned char*)queues + next) = ((unsigned)rest << 11) + (unsigned)place;
        next += 4 * MATCH_THREADS;
    }
    __device__ inline void take()
    {
        merge_queue(keys, queues + first / 4, (next - first) / (4 * MATCH_THREADS), norm);
        next = first;
        limit = min(tolerance, (int)(keys[MOST - 1] >> 11)) - norm;
    }
    // All threads of a warp take theirs when one has no room for those to come.
    __device__ inline void make_room()
    {
        if (__ballot_sync(~0u, next - first > 4 * MATCH_THREADS * (SLOTS - COMING))) take();
    }
    __device__ inline void write(unsigned short* places, int* count)
    {
        take();
        places[0] = REACH << 6 | REACH;
        int n = 1;
        for (int k = 0; k < MOST; ++k) {
            const int place = keys[k] & 2047;
            if (keys[k] == NONE || place == REACH * (ACROSS + 1) || n == MOST) continue;
            places[n++] = (unsigned short)(place / ACROSS << 6 | place % ACROSS);
        }
        *count = 1 << (31 - __clz(n));
    }
};

// Compare a block, and that below it, with all places; rows that both have are multiplied once. They begin at row y and
// column x of the tile; `upper` and `lower` are in use if their tolerance is not negative.
__device__ inline void match_blocks(const unsigned* words, const int* norms, int y, int x, List& upper, List& lower)
{
    unsigned own[2 * OWN_ROWS];
#pragma unroll
    for (int k = 0; k < OWN_ROWS; ++k) eight_bytes(words + (y + k) * TILE_WORDS, x, own[2 * k], own[2 * k + 1]);
#pragma unroll 1
    for (int turn = 0; turn < ACROSS; ++turn) {
        // From the middle to both sides: near places are alike, and the lists are soon good.
        const int dx = REACH + (turn & 1 ? (turn + 1) / 2 : -(turn / 2));
        const int column = x - REACH + dx;
        const unsigned* first = words + (y - REACH) * TILE_WORDS;
        const int* others = norms + (y - REACH) * NORMS_ACROSS + column_at(column);
        unsigned place[2 * OWN_ROWS];
#pragma unroll
        for (int k = 0; k < OWN_ROWS - 1; ++k)
            eight_bytes(first + k * TILE_WORDS, column, place[2 * k], place[2 * k + 1]);
#pragma unroll 1
        for (int base = 0; base < ACROSS; base += OWN_ROWS) {
#pragma unroll
            for (int u = 0; u < OWN_ROWS; ++u) {
                const int dy = base + u;
                if (dy >= ACROSS) break;
                constexpr int LAST = OWN_ROWS - 1;
                unsigned* next = place + 2 * ((u + LAST) % OWN_ROWS);
                eight_bytes(first + (dy + LAST) * TILE_WORDS, column, next[0], next[1]);
                unsigned both = 0;
                const auto add = [&](unsigned sum, int k) {
                    sum = __dp4a(own[2 * k], place[2 * ((u + k) % OWN_ROWS)], sum);
                    return __dp4a(own[2 * k + 1], place[2 * ((u + k) % OWN_ROWS) + 1], sum);
                };
#pragma unroll
                for (int k = GRID_STEP; k < SIDE; ++k) both = add(both, k);
                unsigned above = both, below = both;
#pragma unroll
                for (int k = 0; k < GRID_STEP; ++k) above = add(above, k);
#pragma unroll
                for (int k = SIDE; k < OWN_ROWS; ++k) below = add(below, k);
                const int number = dy * ACROSS + dx;
                const bool is_time = u % COMING == COMING - 1 || u == LAST || u == (ACROSS - 1) % OWN_ROWS;
                upper.see(others[dy * NORMS_ACROSS] - 2 * (int)above, number);
                if (is_time) upper.make_room();
                lower.see(others[(dy + GRID_STEP) * NORMS_ACROSS] - 2 * (int)below, number);
                if (is_time) lower.make_room();
            }
        }
    }
}

__device__ inline void match(const float* cells, unsigned short* places, int* counts, unsigned* words, const Geometry& g)
{
    const Frame f(g);
    const Rows rows(f, g, AROUND);
    int* norms = (int*)(words + TALL * TILE_WORDS);
    const int thread = threadIdx.y * 32 + threadIdx.x;
    unsigned* queues = (unsigned*)(norms + NORM_ROWS * NORMS_ACROSS);
    for (int top = rows.begin() * TILE_ROWS + blockIdx.y * 8; top < rows.bottom; top += gridDim.y * 8)
        for (int left = blockIdx.x * 32; left < f.across; left += gridDim.x * 32) {
            const int y0 = f.row(max(top, rows.top)) - REACH, x0 = f.column(left) - REACH;
            const int last = min(f.row(min(top + 8, rows.bottom) - 1) + REACH + SIDE, f.height);
            for (int n = thread; n < TALL * TILE_WORDS; n += MATCH_THREADS) {
                const int y = y0 + n / TILE_WORDS, x = x0 + n % TILE_WORDS * 4;
                unsigned word = 0;
                if (0 <= y && y < last)
#pragma unroll
                    for (int k = 0; k < 4; ++k)
                        if (0 <= x + k && x + k < f.width) word |= (unsigned)cells[f.cell(y, x + k)] << 8 * k;
                words[n] = word;
            }
            __syncthreads();
            for (int n = thread; n < NORM_ROWS * NORMS_ACROSS; n += MATCH_THREADS) {
                const int r = n / NORMS_ACROSS, s = n % LINE * GRID_STEP + n % NORMS_ACROSS / LINE;
                const int y = y0 + r, x = x0 + s;
                int norm = FAR;
                if (0 <= y && y + SIDE <= last && 0 <= x && x + SIDE <= f.width) {
                    unsigned sum = 0;
#pragma unroll
                    for (int k = 0; k < SIDE; ++k) {
                        unsigned first, second;
                        eight_bytes(words + (r + k) * TILE_WORDS, s, first, second);
                        sum = __dp4a(second, second, __dp4a(first, first, sum));
                    }
                    norm = (int)sum;
                }
                norms[n] = norm;
            }
            __syncthreads();
            const int j = left + threadIdx.x, x = f.column(min(j, f.across - 1)) - x0;
            const int tolerance = (int)ceilf(numbers[0]) - 1;
            const int mine = top + 2 * (int)threadIdx.y;
            const int begin = max(mine, rows.top), end = min(mine + 2, rows.bottom);
#pragma unroll 1
            for (int i = begin; i < end;) {
                // The last row of blocks may be nearer to the one above it.
                const bool is_pair = i + 1 < end && f.row(i + 1) - f.row(i) == GRID_STEP;
                const int y = f.row(i) - y0, middle = y * NORMS_ACROSS + column_at(x);
                unsigned of_upper[MOST], of_lower[MOST];
                List upper, lower;
                upper.begin(of_upper, queues, thread, norms[middle], j < f.across ? tolerance : -1);
                lower.begin(
                    of_lower, queues, thread + SLOTS * MATCH_THREADS, norms[middle + GRID_STEP * NORMS_ACROSS],
                    j < f.across && is_pair ? tolerance : -1);
                match_blocks(words, norms, y, x, upper, lower);
                if (j < f.across) {
                    const size_t at = f.group(i, j);
                    upper.write(places + at * MOST_PLACES, counts + at);
                    if (is_pair) lower.write(places + (at + f.across) * MOST_PLACES, counts + at + f.across);
                }
                i += 1 + is_pair;
            }
            __syncthreads();
        }
}

// ---- groups ----

constexpr int STACK_PITCH = 36;  // from a coefficient to the next, of 32 blocks: four at a time are read
constexpr int TURN_PITCH = 33;   // of pixels: they are read along both axes
constexpr int HALF = SIDE * SIDE / 2;
constexpr int STACK = HALF * STACK_PITCH;
constexpr int SUM_PITCH = 104;  // eight banks further from row to row
constexpr int SUMS = REGION_ROWS * SUM_PITCH;
constexpr int PIXEL_PITCH = REGION_COLUMNS | 1;  // of the tile's pixels, below which there is a block of zeros
constexpr int BYTE_PITCH = (REGION_COLUMNS + 7) & ~3;  // there are bytes behind a row, which are not used
constexpr int PIXELS = ((REGION_ROWS + SIDE) * PIXEL_PITCH + 3) & ~3;
static_assert(REGION_COLUMNS <= SUM_PITCH, "a row of a tile's sums");

// A stack's sums and differences take the places of its blocks: place m, but the first, has a difference of sums of
// 2^(scale - 1) blocks each. Behind `count` blocks there are zeros, so that all levels can be added up.
__device__ constexpr int scale_of(int m) { return m % 2 ? 1 : 1 + scale_of(m / 2); }

template <int N, int DEEP>
__device__ inline void add_up(Real (&a)[DEEP], int count)
{
#pragma unroll
    for (int i = 0; i < DEEP; i += 2 * N) {
        const Real first = a[i], second = a[i + N];
        a[i] = first + second;
        a[i + N] = first - second;
    }
    if constexpr (4 * N <= DEEP) add_up<2 * N, DEEP>(a, count);
    // With nothing but zeros, the sum is the difference as well.
    if (count <= N) a[N] = {0.0f};
}

// The first is divided already, and a difference by `part` and 2^scale here.
template <int N, int DEEP>
__device__ inline void take_apart(Real (&a)[DEEP], float part)
{
    const float scale = part * power(scale_of(N));
#pragma unroll
    for (int i = 0; i < DEEP; i += 2 * N) {
        const Real sum = a[i], difference = a[i + N];
        a[i] = fused(difference, Real{scale}, sum);
        a[i + N] = fused(difference, Real{-scale}, sum);
    }
    if constexpr (N > 1) take_apart<N / 2, DEEP>(a, part);
}

template <int DEEP>
__device__ inline void read_stack(Real (&a)[DEEP], const float* stack)
{
    const float4* fours = (const float4*)stack;
#pragma unroll
    for (int m = 0; m < DEEP; m += 4) {
        a[m] = {fours[m / 4].x};
        a[m + 1] = {fours[m / 4].y};
        a[m + 2] = {fours[m / 4].z};
        a[m + 3] = {fours[m / 4].w};
    }
}

template <int DEEP>
__device__ inline void write_stack(float* stack, const Real (&a)[DEEP])
{
#pragma unroll
    for (int m = 0; m < DEEP; m += 4)
        *(float4*)(stack + m) = make_float4(a[m].value, a[m + 1].value, a[m + 2].value, a[m + 3].value);
}

// Half a block goes to the stack, a line for each coefficient or pixel.
template <int LINE_PITCH>
__device__ inline void give(const Real* half, float* stack)
{
#pragma unroll
    for (int k = 0; k < HALF; ++k) stack[k * LINE_PITCH + threadIdx.x] = half[k].value;
    __syncwarp();
}

// It comes back.
template <int LINE_PITCH>
__device__ inline void take(Real* half, const float* stack)
{
    __syncwarp();
#pragma unroll
    for (int k = 0; k < HALF; ++k) half[k] = {stack[k * LINE_PITCH + threadIdx.x]};
    __syncwarp();
}

// Each lane reads its block from a tile.
__device__ inline void read_blocks(const float* own, Real (&block)[SIDE * SIDE])
{
#pragma unroll
    for (int k = 0; k < SIDE * SIDE; ++k) block[k] = {own[k / SIDE * PIXEL_PITCH + k % SIDE]};
}

// The same of bytes, four at a time, each plus BIAS: in a float of that size a byte is a byte.
__device__ inline void read_bytes(const unsigned char* tile, int offset, Real (&block)[SIDE * SIDE])
{
    const unsigned* words = (const unsigned*)tile + (offset >> 2);
    const int shift = 8 * (offset & 3);
#pragma unroll
    for (int j = 0; j < SIDE; ++j, words += BYTE_PITCH / 4) {
        const unsigned left = __funnelshift_r(words[0], words[1], shift);
        const unsigned right = __funnelshift_r(words[1], words[2], shift);
#pragma unroll
        for (int k = 0; k < SIDE; ++k)
            block[SIDE * j + k] = {__uint_as_float(
                __byte_perm(k < 4 ? left : right, 0x47000000, 0x7404 | (k & 3) << 4))};
    }
}

constexpr float BIAS = 32768.0f;

constexpr int NOWHERE = 0x7fffffff;  // where a lane without a block has it

// The same from a plane, where they begin at `starts`: all lanes read a block at a time.
__device__ inline void gather_blocks(
    const float* plane, const int* starts, int pitch, float* stack, Real (&block)[SIDE * SIDE])
{
    const int lane = threadIdx.x;
    plane += (lane >> 3) * pitch + (lane & 7);
#pragma unroll
    for (int h = 0; h < 2; ++h, plane += 4 * pitch) {
#pragma unroll 4
        for (int b = 0; b < 32; b += 4) {
            const int4 start = *(const int4*)(starts + b);
            float* line = stack + lane * TURN_PITCH + b;
            line[0] = start.x < NOWHERE ? plane[start.x] : 0.0f;
            line[1] = start.y < NOWHERE ? plane[start.y] : 0.0f;
            line[2] = start.z < NOWHERE ? plane[start.z] : 0.0f;
            line[3] = start.w < NOWHERE ? plane[start.w] : 0.0f;
        }
        take<TURN_PITCH>(block + HALF * h, stack);
    }
}

// Leave the noise of the coefficient `number` of a stack; return how many of its coefficients are none.
template <int DEEP>
__device__ inline int leave_noise(float* stack, const float* levels, int number, int count)
{
    const int all = 31 - __clz(count);
    const float norm = levels[NORMS + number], part = power(halvings(number));
    Real a[DEEP];
    read_stack(a, stack);
    add_up<1, DEEP>(a, count);
    int kept = 0;
#pragma unroll
    for (int m = 0; m < DEEP; ++m) {
        const float level = (Real{levels[m ? scale_of(m) : all]} * norm).value;
        const bool noise = fabsf(a[m].value) <= level && (m > 0 || number > 0);
        if (!noise) a[m] = {0.0f};
        kept += !noise;
    }
    a[0] = a[0] * (part * power(all));
    take_apart<DEEP / 2, DEEP>(a, part);
    write_stack(stack, a);
    return kept;
}

// The shares of noise of the coefficient `number`, of 16 bits each, two to a word; return the square of the rest.
__device__ inline unsigned shares_of(
    const Real (&a)[32], const float* levels, int number, int count, unsigned (&shares)[16])
{
    const float norm = levels[NORMS + number];
    unsigned total = 0;
#pragma unroll
    for (int m = 0; m < 32; ++m) {
        unsigned digits = share_of(Real{levels[m ? scale_of(m) : 31 - __clz(count)]} * norm, a[m]);
        if (m == 0 && number == 0) digits = 0;
        shares[m / 2] = m % 2 ? __byte_perm(shares[m / 2], digits, 0x5410) : digits;
        if (m % 4 < 3) continue;
        const unsigned left = ~__byte_perm(shares[m / 2 - 1], shares[m / 2], 0x7531);
        total = __dp4a(left, left, total);
    }
    return total;
}

__device__ inline void leave_shares(Real (&a)[32], int count, const unsigned (&shares)[16])
{
    const bool has_values = fabsf(a[0].value) <= LARGEST_FLOAT;
#pragma unroll
    for (int m = 0; m < 32; ++m) {
        const unsigned digits = __byte_perm(shares[m / 2], 0x4b000000, m % 2 ? 0x7632 : 0x7610);
        a[m] = a[m] * __fsub_rn(__uint_as_float(digits), 8388608.0f);
    }
    a[0] = a[0] * power(16 + 6 + 31 - __clz(count));
    take_apart<16, 32>(a, power(16 + 6));
    if (has_values) return;
#pragma unroll
    for (int m = 0; m < 32; ++m) a[m] = {0.0f};
}

// Filter a warp's stack, or two of them, and add what they lose to the sums of the tile. `count` is 0 where there is
// none, and (row, column) a place in the tile, whose pixels are those of the guide in the second stage.
template <bool WIENER, int DEEP>
__device__ inline void filter_stacks(
    const float* pixels, const unsigned char* bytes, const float* planes, const float* levels, int pitch, int count,
    int row, int column, float* stack, int* starts, int* sums, int* weights)
{
    const int lane = threadIdx.x;
    int total[32 / DEEP] = {};
    float* const line = stack + lane * STACK_PITCH;
    Real block[SIDE * SIDE];
    pixels += row * PIXEL_PITCH + column;
    if constexpr (WIENER) {
        unsigned shares[2][16];
        starts[lane] = row < REGION_ROWS ? row * pitch + column : NOWHERE;
        __syncwarp();
#pragma unroll
        for (int pass = 0; pass < 2; ++pass) {
            if (pass == 0) read_blocks(pixels, block);
            else if (BYTES) read_bytes(bytes, row * BYTE_PITCH + column, block);
            else gather_blocks(planes, starts, pitch, stack, block);
            transform<false>(block, pass && BYTES ? SIDE * BIAS : 0.0f);
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                give<STACK_PITCH>(block + HALF * h, stack);
                Real a[DEEP];
                read_stack(a, line);
                add_up<1, DEEP>(a, count);
                if (pass == 0) {
                    total[0] += shares_of(a, levels, lane + HALF * h, count, shares[h]);
                    __syncwarp();
                } else {
                    leave_shares(a, count, shares[h]);
                    write_stack(line, a);
                    take<STACK_PITCH>(block + HALF * h, stack);
                }
            }
        }
    } else {
        if (BYTES) read_bytes(bytes, row * BYTE_PITCH + column, block);
        else read_blocks(pixels, block);
        transform<true>(block, BYTES ? SIDE * BIAS : 0.0f);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            give<STACK_PITCH>(block + HALF * h, stack);
#pragma unroll
            for (int part = 0; part < 32 / DEEP; ++part)
                total[part] += leave_noise<DEEP>(
                    line + part * DEEP, levels, lane + HALF * h, max(__shfl_sync(~0u, count, part * DEEP), 1));
            take<STACK_PITCH>(block + HALF * h, stack);
        }
    }
#pragma unroll
    for (int j = 0; j < SIDE; ++j) {
        if (WIENER) backward<1>(block + j * SIDE);
        else from_wavelets<1>(block + j * SIDE);
    }
#pragma unroll
    for (int k = 0; k < SIDE; ++k) {
        if (WIENER) backward<SIDE>(block + k);
        else from_wavelets<SIDE>(block + k);
    }
    float scale = 0.0f;
#pragma unroll
    for (int part = 0; part < 32 / DEEP; ++part) {
        const Real weight = Real{WIENER ? ONE : 1.0f} / Real{(float)warp_sum(total[part])};
        if (lane / DEEP == part) scale = (weight * (2.0f * LIMIT_STEPS)).value;
        if (lane / DEEP == part && lane % DEEP < count)
            atomicAdd(weights + row * REGION_COLUMNS + column, (int)rintf((weight * WEIGHT_STEPS).value));
    }
    if (lane % DEEP < count) {
        sums += row * SUM_PITCH + column;
#pragma unroll
        for (int k = 0; k < SIDE * SIDE; ++k) {
            const Real window = Real{numbers[WINDOW + k / SIDE]} * numbers[WINDOW + k % SIDE];
            atomicAdd(sums + k / SIDE * SUM_PITCH + k % SIDE, steps_of(block[k].value, (Real{scale} * window).value));
        }
    }
    __syncwarp();
}

template <bool WIENER, int DEEP>
__device__ inline void groups(
    const float* planes, const float* guides, const unsigned short* places, const int* counts, int* tiles,
    float* memory, const Geometry& g)
{
    const Frame f(g);
    const Rows rows(f, g, AROUND);
    int* sums = (int*)(memory + GROUP_WARPS * STACK);
    float* pixels = (float*)(sums + SUMS);
    int* starts = (int*)(pixels + PIXELS) + 32 * threadIdx.y;
    unsigned char* bytes = (unsigned char*)(pixels + PIXELS + 32 * GROUP_WARPS);
    float* stack = memory + threadIdx.y * STACK;
    constexpr int AT_ONCE = 32 / DEEP;
    const int thread = threadIdx.y * 32 + threadIdx.x;
    for (int ti = rows.begin() + blockIdx.y; ti < rows.end(); ti += gridDim.y)
        for (int tj = blockIdx.x; tj < f.tiles_across; tj += gridDim.x)
            for (int c = 0; c < f.colours; ++c) {
                const int y0 = f.row(ti * TILE_ROWS) - REACH, x0 = f.column(tj * TILE_COLUMNS) - REACH;
                const int first = max(f.row(max(ti * TILE_ROWS, rows.top)) - REACH, 0);
                const int last = min(f.row(min((ti + 1) * TILE_ROWS, rows.bottom) - 1) + REACH + SIDE, f.height);
                int* own = tiles + f.tile(ti, tj, c) * 2 * REGION;
                for (int n = thread; n < SUMS; n += 32 * GROUP_WARPS) sums[n] = 0;
                for (int n = thread; n < REGION; n += 32 * GROUP_WARPS) own[REGION + n] = 0;
                for (int n = thread; n < (REGION_ROWS + SIDE) * BYTE_PITCH; n += 32 * GROUP_WARPS) {
                    const int r = n / BYTE_PITCH, s = n % BYTE_PITCH, y = y0 + r, x = x0 + s;
                    const bool is_there = y >= first && y < last && x >= 0 && x < f.width && s < REGION_COLUMNS;
                    const size_t at = is_there ? f.at(y, x, c) : 0;
                    if ((WIENER || !BYTES) && s < PIXEL_PITCH)
                        pixels[r * PIXEL_PITCH + s] = is_there ? (WIENER ? guides : planes)[at] : 0.0f;
                    if (BYTES) bytes[n] = is_there ? (unsigned char)planes[at] : 0;
                }
                __syncthreads();
                const long long corner = ((long long)(y0 - f.first_row) * f.colours + c) * f.width + x0;
                for (int n = threadIdx.y * AT_ONCE; n < TILE_ROWS * TILE_COLUMNS; n += GROUP_WARPS * AT_ONCE) {
                    const int number = n + threadIdx.x / DEEP;
                    const int i = ti * TILE_ROWS + number / TILE_COLUMNS;
                    const int j = tj * TILE_COLUMNS + number % TILE_COLUMNS;
                    int count = 0, row = REGION_ROWS, column = 0;
                    if (rows.top <= i && i < rows.bottom && j < f.across) {
                        const size_t at = f.group(i, j);
                        count = counts[at];
                        const int code = places[at * MOST_PLACES + min((int)threadIdx.x % DEEP, count - 1)];
                        if ((int)threadIdx.x % DEEP < count) {
                            row = f.row(i) + (code >> 6) - REACH - y0;
                            column = f.column(j) + (code & 63) - REACH - x0;
                        }
                    }
                    // Warps keep in step, as they share the cache of instructions.
                    __syncthreads();
                    if (!__ballot_sync(~0u, count > 0)) continue;
                    filter_stacks<WIENER, DEEP>(
                        pixels, bytes, planes + corner, numbers + LEVELS(c), f.width * f.colours, count,
                        row, column, stack, starts, sums, own + REGION);
                }
                __syncthreads();
                for (int n = thread; n < REGION; n += 32 * GROUP_WARPS)
                    own[n] = sums[n / REGION_COLUMNS * SUM_PITCH + n % REGION_COLUMNS];
                __syncthreads();
            }
}

}  // namespace tuned

extern "C" __global__ void __launch_bounds__(tuned::MATCH_THREADS, 4) collaborative_tuned_match(
    const Sample*, Sample*, const float* cells, unsigned short* places, int* counts, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    tuned::match(cells, places, counts, (unsigned*)memory, g);
}

extern "C" __global__ void __launch_bounds__(32 * GROUP_WARPS, 2) collaborative_tuned_groups(
    const Sample*, Sample*, const float* planes, const float* guides, const unsigned short* places,
    const int* counts, int* tiles, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    tuned::groups<WIENER_STAGE != 0, WIENER_STAGE ? 32 : MOST>(
        planes, guides, places, counts, tiles, (float*)memory, g);
}

#endif
