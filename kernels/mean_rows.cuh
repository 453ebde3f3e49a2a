// tuned, 3 x 3 of grey bytes: down the rows, two samples at a time, see packed.cuh.
//
// A thread adds up the three cells of each column, which its neighbouring results share. A ninth of the sum, as a
// whole number, takes one instruction, which rounds just once. Nine cells less 9 * 128 are between -1152 and 1143, and
// a ninth as a 16-bit float is too small by 2^-12 of itself, so their quotient, which 128 is added to, errs
// by at most 128 / 4096 and the nearest whole number is found: a quotient is a half of a ninth away from a tie.
// 8 additions, 2 multiplications and 5 byte moves for four samples.
#ifndef KERNELSCOPE_MEAN_ROWS
#define KERNELSCOPE_MEAN_ROWS
#define LEAN 1
#include "packed.cuh"

constexpr Pair MINUS_NINE_GREYS = both(0x8000 | 9 * 128);

// The source rows around QUAD results.
struct Window : LastRows<Pairs<RADIUS>, SIZE> {
    static constexpr int COUNT = Packed::COUNT;

    __device__ inline void results(Quad* to) const
    {
        unsigned columns[COUNT];  // as whole numbers, of which one instruction adds three
#pragma unroll
        for (int i = 0; i < COUNT; ++i) columns[i] = rows[0][i].bits + rows[1][i].bits + rows[2][i].bits;
        // Both results have columns 1 and 2.
        const Pair middle = Pair{columns[1] + columns[2]} + MINUS_NINE_GREYS;
        const Pair means[Packed::RESULTS] = {ninth(middle + Pair{columns[0]}), ninth(middle + Pair{columns[3]})};
        Packed::put(means, to);
    }

    static __device__ inline Pair ninth(Pair sum) { return scaled(Factor::NINTH, sum, both(128)); }
};

extern "C" __global__ void mean_tuned(const Sample* source, Sample* output, Geometry g)
{
    filter_packed<Window>(source, output, g, Mean());
}

#endif
