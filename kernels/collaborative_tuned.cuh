// tuned: collaborative filtering with lists and stacks in registers; the same results as at the other levels.
//
// match   A thread has a block of bytes as 16 words in registers and goes down the columns of places around it; of the
//         words of a place, which lie below those of the last one, it reads two. Differences are |a|^2 + |b|^2 - 2 a b,
//         four products at a time. A key is (difference, place), so that the order is that of the other levels. What is
//         near enough waits in a queue of a thread; when one is full, all sort theirs and merge them into their lists.
//
// groups  A lane has a block of the stack in 64 registers while it is transformed along y and x; then it has one of 32
//         coefficients of all blocks, twice. In between, half of the coefficients at a time pass through the shared
//         memory of the warp: so little of it that two blocks of eight warps share a multiprocessor. What is
//         transformed first is a tile in shared memory, too, and grey bytes are a second one. Other blocks are read,
//         and all are added to the sums of the tile, by lanes that have a pixel of four rows each, which lie in
//         different banks; the few weights go to global memory. A stack of 16 has half a warp.
//
// Loops over arrays in registers have fixed lengths: with others the arrays would lie in slow memory.
//
// Launch: *match* as at the other levels; *groups*: blocks of 32 x GROUP_WARPS threads over the same tiles.
#ifndef KERNELSCOPE_COLLABORATIVE_TUNED
#define KERNELSCOPE_COLLABORATIVE_TUNED

namespace tuned {

// ---- match ----

constexpr unsigned NONE = ~0u;
constexpr int FAR = 1 << 24;  // of a place without a block: more than every difference that counts
constexpr int QUEUE = 16;
constexpr int ACROSS = 2 * REACH + 1;
// Columns of the tile that blocks begin in, and their second words. Column x is at (x % step, x / step): neighbouring
// threads, whose blocks are a step apart, read neighbouring words.
constexpr int LINE = (31 * GRID_STEP + 2 * REACH + 5 + GRID_STEP - 1) / GRID_STEP;
constexpr int WORDS = LINE * GRID_STEP;
constexpr int NORM_ROWS = CELL_ROWS - SIDE + 1;

__device__ inline int column_at(int x) { return x % GRID_STEP * LINE + x / GRID_STEP; }

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

// Merge a thread's queue into its list, whose largest keys go.
__device__ inline void take_queue(unsigned (&list)[MOST], const unsigned* queue, int waiting)
{
    unsigned keys[QUEUE];
#pragma unroll
    for (int i = 0; i < QUEUE; ++i) keys[i] = i < waiting ? queue[i * 256] : NONE;
    sort_keys<1, 1>(keys);
#pragma unroll
    for (int i = 0; i < QUEUE; ++i) list[MOST - 1 - i] = min(list[MOST - 1 - i], keys[i]);
    merge_keys<MOST / 2>(list);
}

__device__ inline void match(const float* cells, unsigned short* places, int* counts, unsigned* words, const Geometry& g)
{
    const Frame f(g);
    const Rows rows(f, g, AROUND);
    int* norms = (int*)(words + CELL_ROWS * WORDS);
    const int thread = threadIdx.y * 32 + threadIdx.x;
    unsigned* queue = (unsigned*)(norms + NORM_ROWS * WORDS) + thread;
    for (int top = rows.begin() * TILE_ROWS + blockIdx.y * 8; top < rows.bottom; top += gridDim.y * 8)
        for (int left = blockIdx.x * 32; left < f.across; left += gridDim.x * 32) {
            const int y0 = f.row(max(top, rows.top)) - REACH, x0 = f.column(left) - REACH;
            const int last = min(f.row(min(top + 8, rows.bottom) - 1) + REACH + SIDE, f.height);
            for (int n = thread; n < CELL_ROWS * WORDS; n += 256) {
                const int y = y0 + n / WORDS, x = x0 + n % LINE * GRID_STEP + n % WORDS / LINE;
                unsigned word = 0;
                if (0 <= y && y < last)
#pragma unroll
                    for (int k = 0; k < 4; ++k)
                        if (0 <= x + k && x + k < f.width) word |= (unsigned)cells[f.cell(y, x + k)] << 8 * k;
                words[n] = word;
            }
            __syncthreads();
            for (int n = thread; n < NORM_ROWS * WORDS; n += 256) {
                const int s = n % LINE * GRID_STEP + n % WORDS / LINE, y = y0 + n / WORDS, x = x0 + s;
                int norm = FAR;
                if (0 <= y && y + SIDE <= last && 0 <= x && x + SIDE <= f.width && s + 4 < WORDS) {
                    unsigned sum = 0;
                    const unsigned *first = words + n, *second = words + n / WORDS * WORDS + column_at(s + 4);
#pragma unroll
                    for (int k = 0; k < SIDE; ++k) {
                        sum = __dp4a(first[k * WORDS], first[k * WORDS], sum);
                        sum = __dp4a(second[k * WORDS], second[k * WORDS], sum);
                    }
                    norm = (int)sum;
                }
                norms[n] = norm;
            }
            __syncthreads();
            const int i = top + threadIdx.y, j = left + threadIdx.x;
            if (rows.top <= i && i < rows.bottom) {
                const int y = f.row(i) - REACH - y0, x = f.column(min(j, f.across - 1)) - REACH - x0;
                unsigned own[2 * SIDE], list[MOST];
                const int middle = (y + REACH) * WORDS + column_at(x + REACH);
                const int right = (y + REACH) * WORDS + column_at(x + REACH + 4);
#pragma unroll
                for (int k = 0; k < SIDE; ++k) {
                    own[2 * k] = words[middle + k * WORDS];
                    own[2 * k + 1] = words[right + k * WORDS];
                }
#pragma unroll
                for (int k = 0; k < MOST; ++k) list[k] = NONE;
                const int norm = norms[middle];
                const int tolerance = j < f.across ? (int)ceilf(numbers[0]) - 1 : -1;
                int limit = tolerance - norm, waiting = 0;
#pragma unroll 1
                for (int dx = 0; dx < ACROSS; ++dx) {
                    const unsigned* first = words + y * WORDS + column_at(x + dx);
                    const unsigned* second = words + y * WORDS + column_at(x + dx + 4);
                    const int* others = norms + y * WORDS + column_at(x + dx);
                    unsigned place[2 * SIDE];
#pragma unroll
                    for (int k = 0; k < SIDE - 1; ++k) {
                        place[2 * k] = first[k * WORDS];
                        place[2 * k + 1] = second[k * WORDS];
                    }
#pragma unroll 1
                    for (int base = 0; base < ACROSS; base += SIDE) {
#pragma unroll
                        for (int u = 0; u < SIDE; ++u) {
                            const int dy = base + u;
                            if (dy >= ACROSS) break;
                            place[2 * ((u + 7) & 7)] = first[(dy + 7) * WORDS];
                            place[2 * ((u + 7) & 7) + 1] = second[(dy + 7) * WORDS];
                            unsigned one = 0, two = 0;
#pragma unroll
                            for (int k = 0; k < SIDE; ++k) {
                                one = __dp4a(own[2 * k], place[2 * ((u + k) & 7)], one);
                                two = __dp4a(own[2 * k + 1], place[2 * ((u + k) & 7) + 1], two);
                            }
                            const int rest = others[dy * WORDS] - 2 * (int)(one + two);
                            if (rest <= limit)
                                queue[256 * waiting++] = (unsigned)(rest + norm) << 11 | (unsigned)(dy * ACROSS + dx);
                            if ((u & 3) == 3 || dy == ACROSS - 1)
                                if (__ballot_sync(~0u, waiting > QUEUE - 4)) {
                                    take_queue(list, queue, waiting);
                                    waiting = 0;
                                    limit = min(tolerance, (int)(list[MOST - 1] >> 11)) - norm;
                                }
                        }
                    }
                }
                take_queue(list, queue, waiting);
                if (j < f.across) {
                    const size_t at = f.group(i, j);
                    unsigned short* own_places = places + at * MOST_PLACES;
                    own_places[0] = REACH << 6 | REACH;
                    int n = 1;
#pragma unroll
                    for (int k = 0; k < MOST; ++k) {
                        const int place = list[k] & 2047;
                        if (list[k] == NONE || place == REACH * (ACROSS + 1) || n == MOST) continue;
                        own_places[n++] = (unsigned short)(place / ACROSS << 6 | place % ACROSS);
                    }
                    counts[at] = 1 << (31 - __clz(n));
                }
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
constexpr int PIXEL_PITCH = REGION_COLUMNS | 1;  // of the tile's pixels
constexpr int PIXELS = (REGION_ROWS * PIXEL_PITCH + 3) & ~3;
static_assert(REGION_COLUMNS <= SUM_PITCH, "a row of a tile's sums");

// The place of a coefficient along a stack: with 2^SCALE others, it is half as often a sum as with 2^(SCALE + 1).
__device__ constexpr int scale_of(int m) { return m < 2 ? 0 : m < 4 ? 1 : m < 8 ? 2 : m < 16 ? 3 : 4; }

template <int N, int DEEP>
__device__ inline void add_up(Real (&a)[DEEP], int count)
{
    if (N <= count) {
        Real spare[N];
#pragma unroll
        for (int i = 0; i < N / 2; ++i) {
            spare[i] = a[2 * i] + a[2 * i + 1];
            spare[N / 2 + i] = a[2 * i] - a[2 * i + 1];
        }
#pragma unroll
        for (int i = 0; i < N; ++i) a[i] = spare[i];
    }
    if constexpr (N > 2) add_up<N / 2, DEEP>(a, count);
}

template <int N, int DEEP>
__device__ inline void take_apart(Real (&a)[DEEP], int count)
{
    if constexpr (N > 2) take_apart<N / 2, DEEP>(a, count);
    if (N <= count) {
        Real spare[N];
#pragma unroll
        for (int i = 0; i < N / 2; ++i) {
            spare[2 * i] = a[i] + a[N / 2 + i];
            spare[2 * i + 1] = a[i] - a[N / 2 + i];
        }
#pragma unroll
        for (int i = 0; i < N; ++i) a[i] = spare[i];
    }
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
template <typename Pixel>
__device__ inline void read_blocks(const Pixel* own, Real (&block)[SIDE * SIDE])
{
#pragma unroll
    for (int k = 0; k < SIDE * SIDE; ++k) block[k] = {(float)own[k / SIDE * PIXEL_PITCH + k % SIDE]};
}

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
            line[0] = plane[start.x];
            line[1] = plane[start.y];
            line[2] = plane[start.z];
            line[3] = plane[start.w];
        }
        take<TURN_PITCH>(block + HALF * h, stack);
    }
}

// Leave the noise of the coefficient `number` of a stack; return how many of its coefficients are none.
template <int DEEP>
__device__ inline int leave_noise(float* stack, const float* levels, int number, int count)
{
    const int most = 31 - __clz(count), halved = halvings(number);
    const float norm = numbers[NORMS + number];
    Real a[DEEP];
    read_stack(a, stack);
    add_up<DEEP>(a, count);
    int kept = 0;
#pragma unroll
    for (int m = 0; m < DEEP; ++m) {
        const int t = max(most - scale_of(m), 0);
        const bool noise = fabsf(a[m].value) <= (Real{levels[t]} * norm).value && (m > 0 || number > 0);
        a[m] = noise ? a[m] * power(halved + t) : Real{0.0f};
        kept += !noise && m < count;
    }
    take_apart<DEEP>(a, count);
    write_stack(stack, a);
    return kept;
}

// The shares of noise of the coefficient `number`, of 16 bits each, two to a word; return what is left, squared.
__device__ inline int shares_of(
    const Real (&a)[32], const float* levels, int number, int count, unsigned (&shares)[16])
{
    const int most = 31 - __clz(count);
    const float norm = numbers[NORMS + number];
    int total = 0;
#pragma unroll
    for (int m = 0; m < 32; ++m) {
        const Real variance = Real{levels[max(most - scale_of(m), 0)]} * norm;
        // A variance is at least 1e-25. Where there is no value, and where the power is so large that the quotient is
        // not exact, the share is less than half.
        const Real power = {fminf((a[m] * a[m] + variance).value, LARGEST)};
        float share = (near_quotient(variance, power) * 65535.0f).value;
        if (m == 0 && number == 0) share = 0.0f;
        // To the nearest whole number: the last digits of a sum that is as large.
        const unsigned digits = __float_as_uint(__fadd_rn(share, 8388608.0f));
        // (left * left) >> 14 of left = (65535 - digits) >> 1.
        const unsigned left = (0x4b00ffffu - digits) << 8 & ~0x1ffu;
        total += m < count ? __umulhi(left, left) : 0;
        shares[m / 2] = m % 2 ? __byte_perm(shares[m / 2], digits, 0x5410) : digits;
    }
    return total;
}

__device__ inline void leave_shares(Real (&a)[32], int count, const unsigned (&shares)[16])
{
    const int most = 31 - __clz(count);
    const bool has_values = fabsf(a[0].value) <= LARGEST_FLOAT;
#pragma unroll
    for (int m = 0; m < 32; ++m) {
        const unsigned digits = __byte_perm(shares[m / 2], 0x4b000000, m % 2 ? 0x7632 : 0x7610);
        const float share = __fsub_rn(__uint_as_float(digits), 8388608.0f);
        a[m] = a[m] * share * power(16 + 6 + max(most - scale_of(m), 0));
    }
    if (has_values) return;
#pragma unroll
    for (int m = 0; m < 32; ++m) a[m] = {0.0f};
}

// Add a pixel of a block, or what a block loses of it: at least `factor` times -limit, at most times limit.
__device__ inline void add_pixel(int* sum, float value, float factor)
{
    value = fmaxf(fminf(value, numbers[1]), -numbers[1]);
    // To the nearest whole number, which is below 2^18.
    atomicAdd(sum, __float_as_int(__fadd_rn(__fmul_rn(value, factor), 12582912.0f)) - 0x4b400000);
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
        starts[lane] = row * pitch + column;
        __syncwarp();
#pragma unroll
        for (int pass = 0; pass < 2; ++pass) {
            if (pass == 0) read_blocks(pixels, block);
            else if (BYTES) read_blocks(bytes + row * PIXEL_PITCH + column, block);
            else gather_blocks(planes, starts, pitch, stack, block);
            transform<false>(block);
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                give<STACK_PITCH>(block + HALF * h, stack);
                Real a[DEEP];
                read_stack(a, line);
                add_up<DEEP>(a, count);
                if (pass == 0) {
                    total[0] += shares_of(a, levels, lane + HALF * h, count, shares[h]);
                    __syncwarp();
                } else {
                    leave_shares(a, count, shares[h]);
                    take_apart<DEEP>(a, count);
                    write_stack(line, a);
                    take<STACK_PITCH>(block + HALF * h, stack);
                }
            }
        }
    } else {
        read_blocks(pixels, block);
        transform<true>(block);
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
    starts[lane] = row * SUM_PITCH + column;
    sums += (lane >> 3) * SUM_PITCH + (lane & 7);
    float scale[32 / DEEP];
#pragma unroll
    for (int part = 0; part < 32 / DEEP; ++part) {
        const Real weight = Real{WIENER ? ONE : 1.0f} / Real{(float)warp_sum(total[part])};
        scale[part] = (weight * numbers[2]).value;
        if (lane / DEEP == part && lane % DEEP < count)
            atomicAdd(weights + row * REGION_COLUMNS + column, (int)rintf((weight * WEIGHT_STEPS).value));
    }
#pragma unroll
    for (int h = 0; h < 2; ++h, sums += 4 * SUM_PITCH) {
        const Real window = Real{numbers[WINDOW + 4 * h + (lane >> 3)]} * numbers[WINDOW + (lane & 7)];
        give<TURN_PITCH>(block + HALF * h, stack);
#pragma unroll
        for (int part = 0; part < 32 / DEEP; ++part) {
            const float factor = (Real{scale[part]} * window).value;
            const int own = __shfl_sync(~0u, count, part * DEEP);
            const float* values = stack + lane * TURN_PITCH + part * DEEP;
#pragma unroll 2
            for (int b = 0; b < own; b += 4) {
                const int4 start = *(const int4*)(starts + part * DEEP + b);
                add_pixel(sums + start.x, values[b], factor);
                if (own < 2) break;
                add_pixel(sums + start.y, values[b + 1], factor);
                if (own < 4) break;
                add_pixel(sums + start.z, values[b + 2], factor);
                add_pixel(sums + start.w, values[b + 3], factor);
            }
        }
        __syncwarp();
    }
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
                for (int n = thread; n < REGION; n += 32 * GROUP_WARPS) {
                    const int r = n / REGION_COLUMNS, s = n % REGION_COLUMNS, y = y0 + r, x = x0 + s;
                    own[REGION + n] = 0;
                    if (y < first || y >= last || x < 0 || x >= f.width) continue;
                    pixels[r * PIXEL_PITCH + s] = (WIENER ? guides : planes)[f.at(y, x, c)];
                    if (WIENER && BYTES) bytes[r * PIXEL_PITCH + s] = (unsigned char)planes[f.at(y, x, c)];
                }
                __syncthreads();
                const long long corner = ((long long)(y0 - f.first_row) * f.colours + c) * f.width + x0;
                for (int n = threadIdx.y * AT_ONCE; n < TILE_ROWS * TILE_COLUMNS; n += GROUP_WARPS * AT_ONCE) {
                    const int number = n + threadIdx.x / DEEP;
                    const int i = ti * TILE_ROWS + number / TILE_COLUMNS;
                    const int j = tj * TILE_COLUMNS + number % TILE_COLUMNS;
                    int count = 0, row = 0, column = 0;
                    if (rows.top <= i && i < rows.bottom && j < f.across) {
                        const size_t at = f.group(i, j);
                        count = counts[at];
                        const int code = places[at * MOST_PLACES + min((int)threadIdx.x % DEEP, count - 1)];
                        row = f.row(i) + (code >> 6) - REACH - y0;
                        column = f.column(j) + (code & 63) - REACH - x0;
                    }
                    // Warps keep in step, as they share the cache of instructions.
                    __syncthreads();
                    const unsigned some = __ballot_sync(~0u, count > 0);
                    if (!some) continue;
                    // A lane without a block reads that of another stack, which is there.
                    const int other = __ffs(some) - 1;
                    const int there = __shfl_sync(~0u, row, other), beside = __shfl_sync(~0u, column, other);
                    filter_stacks<WIENER, DEEP>(
                        pixels, bytes, planes + corner, numbers + LEVELS + 6 * c, f.width * f.colours, count,
                        count ? row : there, count ? column : beside, stack, starts, sums, own + REGION);
                }
                __syncthreads();
                for (int n = thread; n < REGION; n += 32 * GROUP_WARPS)
                    own[n] = sums[n / REGION_COLUMNS * SUM_PITCH + n % REGION_COLUMNS];
                __syncthreads();
            }
}

}  // namespace tuned

extern "C" __global__ void __launch_bounds__(256, 2) collaborative_tuned_match(
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
