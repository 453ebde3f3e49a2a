// Laplace:
//
//   g(y, x) = sum over s, t of w(s, t) f(y + s, x + t)
//
// where w is one of three discrete Laplace operators.
//
// level         demonstrates                                       weights    image
// single_block  one multiprocessor at work, the others idle        global     global
// global        many blocks, everything from global memory         global     global
// constant      one read serves all threads of a warp              constant   global
// shared        a block reads its tile and halo just once          constant   shared
// texture       the texture unit fetches and treats borders        constant   texture
// tuned         see tuned_correlation.cuh; grey bytes: packed.cuh  constant   global
//
// Launch: blocks of 32 x 8 threads stride over the output, a thread a pixel at a time (single_block: one
// block of 32 x 32).
// A sample takes SIZE^2 multiplications and additions and SIZE^2 cached reads; at best 1 read from
// and 1 write to device memory.
#include "correlation.cuh"
#if TUNED
#include "packed.cuh"
#include "tuned_correlation.cuh"
#endif

// At level tuned: the 4 or 8 neighbours, or 5 for the larger mask.
#ifndef FORM
#define FORM (SIZE == 5 ? 5 : 4)
#endif

#if !TUNED
extern "C" __global__ void __launch_bounds__(1024)
    laplace_single_block(const Sample* source, Sample* output, const Weight* weights, Geometry g)
{
    compute(source, output, g, Correlation{weights});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    laplace_global(const Sample* source, Sample* output, const Weight* weights, Geometry g)
{
    compute(source, output, g, Correlation{weights});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    laplace_constant(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, Correlation{constant_weights});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    laplace_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    compute(Tiles{source, memory}, output, g, Correlation{constant_weights});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    laplace_texture(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute(source, output, g, Correlation{constant_weights});
}
#else
#if SAMPLE_BITS == 8
// The source rows around QUAD results of grey bytes.
struct Window {
    typedef Pairs<RADIUS> Packed;
    static constexpr int ROWS = SIZE;

    // The mask's part of a row, for even and odd results: its middle cell, the sum of the cells
    // next to it, and that with the middle one; in the larger mask, whose middle cells count twice in
    // the rows next to the centre, the sides are four cells of the centre's own row.
    struct Line {
        Pair centre, sides, all;
    };
    Line lines[ROWS][2];
    Pair offset = both(finishing[NEGATIVE] == 2 ? MIDDLE : 0);
    Factor fold = finishing[NEGATIVE] == 1 ? Factor::MINUS_TWO : Factor::MINUS_ONE;

    __device__ inline void add(const Packed& row)
    {
#pragma unroll
        for (int v = 0; v < 2; ++v) {
#pragma unroll
            for (int s = 0; s + 1 < ROWS; ++s) lines[s][v] = lines[s + 1][v];
            Line& line = lines[ROWS - 1][v];
            line.centre = row[v + RADIUS];
            line.sides = row[v + RADIUS - 1] + row[v + RADIUS + 1];
#if FORM == 5
            line.all = scaled(Factor::TWO, line.centre, line.sides);
            line.sides = scaled(Factor::TWO, line.sides, row[v] + row[v + 4]);
#else
            line.all = line.centre + line.sides;
#endif
        }
    }

    __device__ inline Pair sum(int v) const
    {
        const Pair centre = lines[RADIUS][v].centre, sides = lines[RADIUS][v].sides;
        const Line &above = lines[RADIUS - 1][v], &below = lines[RADIUS + 1][v];
#if FORM == 4
        return scaled(Factor::MINUS_FOUR, centre, above.centre + below.centre + sides);
#elif FORM == 8
        return scaled(Factor::MINUS_EIGHT, centre, above.all + below.all + sides);
#else
        // Each half is exact, 8 * 255 at most; their sum may be inexact where it is far beyond white.
        const Pair near = scaled(Factor::MINUS_EIGHT, centre, above.all + below.all);
        const Pair far = lines[0][v].centre + lines[4][v].centre + sides;
        return near + scaled(Factor::MINUS_EIGHT, centre, far);
#endif
    }

    // White less result v, or 0 where that is negative.
    __device__ inline Pair left(int v) const { return less(WHITE, folded(fold, sum(v) + offset)); }

    __device__ inline void results(Quad* to) const { to[0] = quad_of(left(0), left(1)); }
};
#endif

extern "C" __global__ void laplace_tuned(const Sample* source, Sample* output, Geometry g)
{
#if SAMPLE_BITS == 8
    if (g.channels == 1 && whole_quads(g.width)) {
        filter_packed<Window>(source, output, g, Correlation{constant_weights});
        return;
    }
#endif
    correlate_tuned(source, output, g);
}
#endif
