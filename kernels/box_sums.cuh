// The sums of `box.cuh`: of a thread's columns, in registers; of a lane's squares, from columns in shared
// memory.
//
//   ColumnSums   sums over SIZE rows of a thread's COLUMNS columns; a row enters, another one leaves
//   Columns      a row of such sums in shared memory, as one lane sees it
//   Squares      sums over SIZE columns around the first pixel of a lane's run, one for each channel
//   Run          the RUN samples along which a lane slides: source samples, or results
#ifndef KERNELSCOPE_BOX_SUMS
#define KERNELSCOPE_BOX_SUMS
#include "box_load.cuh"
#include "pair.cuh"

// Column: the sum of a column in shared memory. Total: the sum of a square. ColumnSums: the sums of a
// thread's columns.
#if SAMPLE_BITS == 8
typedef unsigned short Column;
typedef int Total;
// A sum below 2^23 in the low bits of 2^23 is a float without being converted.
constexpr Total ZERO = 0x4b000000;
__device__ inline float to_float(Total sum) { return __int_as_float(sum) - 8388608.0f; }

// Columns in 16 bits each; none exceeds 99 * 255. Of each four they lie in the order 0, 2, 1, 3, as masks
// of 16 bits leave them; the even ones are the whole words minus the odd ones.
struct ColumnSums {
    unsigned words[2] = {}, odd[2] = {};

    __device__ inline void add(const Samples& s)
    {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            words[i] += s.words[i];
            odd[i] += __byte_perm(s.words[i], 0, 0x4341);
        }
    }
    __device__ inline void subtract(const Samples& s)
    {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            words[i] -= s.words[i];
            odd[i] -= __byte_perm(s.words[i], 0, 0x4341);
        }
    }
    __device__ inline void add(const ColumnSums& s)
    {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            words[i] += s.words[i];
            odd[i] += s.odd[i];
        }
    }
    __device__ inline void store(Column* to) const
    {
        *(uint4*)to = make_uint4(words[0] - (odd[0] << 8), odd[0], words[1] - (odd[1] << 8), odd[1]);
    }
};
#else
#if SAMPLE_BITS == 16
typedef unsigned Column;
typedef unsigned Total;
typedef unsigned Exact;
__device__ inline unsigned bits_of(Column column) { return column; }
#else
// Doubles do not drift. A column is rounded once, so that the same value enters and leaves a square.
typedef float Column;
typedef double Total;
typedef double Exact;
__device__ inline unsigned bits_of(Column column) { return __float_as_uint(column); }
#endif
constexpr Total ZERO = 0;

struct ColumnSums {
    Exact of[COLUMNS] = {};

    __device__ inline void add(const Samples& s)
    {
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) of[k] += s.get(k);
    }
    __device__ inline void subtract(const Samples& s)
    {
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) of[k] -= s.get(k);
    }
    __device__ inline void add(const ColumnSums& s)
    {
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) of[k] += s.of[k];
    }
    __device__ inline void store(Column* to) const
    {
#pragma unroll
        for (int k = 0; k < COLUMNS; k += 4)
            *(uint4*)(to + k) = make_uint4(bits_of((Column)of[k]), bits_of((Column)of[k + 1]),
                                           bits_of((Column)of[k + 2]), bits_of((Column)of[k + 3]));
    }
};
#endif

template <int ROWS>
__device__ inline void add(ColumnSums& sums, const Rows<ROWS>& batch)
{
#pragma unroll
    for (int i = 0; i < ROWS; ++i) sums.add(batch.rows[i]);
}

// The samples along which a lane slides, packed. Of a `Result` only the lowest SAMPLE_BITS count.
struct Run {
    unsigned words[RUN * SAMPLE_BITS / 32];

    // Sample k and, for k even, the one behind it.
#if SAMPLE_BITS == 32
    typedef float Result;
    __device__ inline void put(int k, Result a, Result b)
    {
        words[k] = __float_as_uint(a);
        words[k + 1] = __float_as_uint(b);
    }
#else
    typedef unsigned Result;
    __device__ inline void put(int k, Result a, Result b)
    {
        const unsigned pair = __byte_perm(a, b, 0x5410);
#if SAMPLE_BITS == 16
        words[k / 2] = pair;
#else
        words[k / 4] = k % 4 == 0 ? pair : __byte_perm(words[k / 4], pair, 0x6420);
#endif
    }
#endif
    __device__ inline Sample get(int k) const { return unpacked(words, k); }
#if SAMPLE_BITS == 8
    // Whole numbers when they are rounded, in units of 2^-24.
    __device__ inline void put(int k, float a, float b)
    {
        const unsigned pair = to_pair(make_float2(a, b)).bits;
        words[k / 4] = k % 4 == 0 ? pair : __byte_perm(words[k / 4], pair, 0x6420);
    }
#endif
};

// Read a run of which only the first `count` samples may exist.
__device__ inline void load(Run& run, const Sample* from, int count)
{
    if ((size_t)from % 16 == 0 && count >= RUN) {
#pragma unroll
        for (int i = 0; i < sizeof(Run) / 16; ++i) {
            const uint4 vector = ((const uint4*)from)[i];
            run.words[4 * i] = vector.x;
            run.words[4 * i + 1] = vector.y;
            run.words[4 * i + 2] = vector.z;
            run.words[4 * i + 3] = vector.w;
        }
    } else {
#pragma unroll
        for (int k = 0; k < RUN; k += 2)
            run.put(k, Run::Result(k < count ? from[k] : 0), Run::Result(k + 1 < count ? from[k + 1] : 0));
    }
}

// In shared memory 16 bytes stay free after the columns of each lane's run: eight lanes that read 16
// bytes each then find them in different banks.
constexpr int PITCH = RUN + 16 / sizeof(Column);
constexpr int ROW = LOADED / RUN * PITCH;
constexpr int VECTOR = 16 / sizeof(Column);

__device__ constexpr int place(int column) { return column / RUN * PITCH + column % RUN; }

// Where a single column is; see ColumnSums.
__device__ inline int position(int column)
{
#if SAMPLE_BITS == 8
    if (column % 4 == 1 || column % 4 == 2) column ^= 3;
#endif
    return place(column);
}

// Where vector i of 16 bytes of a row of results is put. In order, vectors of one number of eight lanes'
// runs would be in the same banks; so they are not, and those of neighbouring numbers are not either.
constexpr int VECTOR_SAMPLES = 16 / sizeof(Sample), VECTORS = RUN / VECTOR_SAMPLES;
__device__ constexpr int slot(int i) { return i ^ (i >> 3 & (VECTORS - 1)); }

// The columns of a row, numbered from the first one of a lane's run.
struct Columns {
    const Column* run;

    // Add to `sum` the 16 bytes of columns from `first` on, each times its weight -1, 0 or 1.
    template <typename Weight>
    __device__ inline void add(Total& sum, int first, Weight weight) const
    {
        const uint4 vector = *(const uint4*)(run + place(first));
        const unsigned words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#if SAMPLE_BITS == 8
            const int column = first + i / 2 * 4 + i % 2;  // see ColumnSums
            const int low = weight(column), high = weight(column + 2);
            if (low || high) sum = __dp2a_lo((int)words[i], (low & 255) | (high & 255) << 8, sum);
#else
#if SAMPLE_BITS == 16
            const Column column = words[i];
#else
            const Column column = __uint_as_float(words[i]);
#endif
            if (weight(first + i) > 0) sum += column;
            if (weight(first + i) < 0) sum -= column;
#endif
        }
    }

    // Add to `sum` a column times its weight.
    __device__ inline void add_one(Total& sum, int column, int weight) const
    {
        add(sum, column / VECTOR * VECTOR, [=](int k) { return k == column ? weight : 0; });
    }
};

// How many of the cells within SIZE / 2 of i lie in [0, n).
__device__ inline int cells_inside(int i, int n)
{
    return min(i + SIZE / 2, n - 1) - max(i - SIZE / 2, 0) + 1;
}

// The sums of the squares around the first pixel of a lane's run, for each channel.
struct Squares {
    static constexpr int FIRST = HALO - REACH, END = FIRST + SIZE * CHANNELS;  // their columns
    static constexpr int WHOLE = END / RUN;  // runs that end among them
    Total sums[CHANNELS];

    // By all lanes of a warp: they exchange the sums of their own runs, if that is less work.
    __device__ inline Squares(const Columns& columns, const Columns& own_run)
    {
#pragma unroll
        for (int c = 0; c < CHANNELS; ++c) sums[c] = ZERO;
        if constexpr (WHOLE < 2) {
            add<FIRST, END, 1>(columns);
        } else {
            Total own[CHANNELS] = {};  // of the columns k with k % CHANNELS == c
#pragma unroll
            for (int at = 0; at < RUN; at += VECTOR)
#pragma unroll
                for (int c = 0; c < CHANNELS; ++c)
                    own_run.add(own[c], at, [=](int k) { return k % CHANNELS == c ? 1 : 0; });
#pragma unroll
            for (int run = 0; run < WHOLE; ++run)
#pragma unroll
                for (int c = 0; c < CHANNELS; ++c) {
                    // That is c + FIRST - run * RUN, which would be negative.
                    const int of = (c + FIRST + run * RUN * (CHANNELS - 1)) % CHANNELS;
                    sums[c] += run == 0 ? own[of] : __shfl_down_sync(0xffffffffu, own[of], run);
                }
            add<0, FIRST, -1>(columns);
            add<WHOLE * RUN, END, 1>(columns);
        }
    }

    // Add the columns from A to B - 1, each times WEIGHT.
    template <int A, int B, int WEIGHT>
    __device__ inline void add(const Columns& columns)
    {
#pragma unroll
        for (int at = A / VECTOR * VECTOR; at < B; at += VECTOR)
#pragma unroll
            for (int c = 0; c < CHANNELS; ++c)
                columns.add(sums[c], at, [=](int k) {
                    return A <= k && k < B && (k + FIRST * (CHANNELS - 1)) % CHANNELS == c ? WEIGHT : 0;
                });
    }
};

#endif
