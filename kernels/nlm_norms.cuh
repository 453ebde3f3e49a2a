// tuned, in a window of bytes: |p|^2 of all candidates, for the products of nlm_window.cuh.
//
// A thread has four columns and goes down the rows of cells, each of which adds to the norms of PATCH rows. It
// reads 12 samples of a row as words, and writes four norms at once. A norm is the sum of its rows from the first
// to the last, of which each is a sum from the first cell to the last, wherever the thread begins.
//
// Launch: any blocks with a thread for each four columns or more; they share out the candidates, which are more than
// pixels. With a patch of 7 a row of four cells takes about 200 instructions: 80 a norm, where a thread has ten rows of
// them. 5 bytes of traffic.
#ifndef KERNELSCOPE_NLM_NORMS
#define KERNELSCOPE_NLM_NORMS
#include "nlm_halves.cuh"

#ifndef RADIUS  // of the window, where its loops are unrolled; 0: it is known only when the kernel runs
#define RADIUS 0
#endif
#ifndef INSIDE  // whether candidates lie inside the image
#define INSIDE 0
#endif

struct Window {
    int radius;
    int band;   // rows of squares of a window that the block reads at once
    int pitch;  // positions in a row of shared memory; odd, so that four rows are in different banks
};
__constant__ Window window;

namespace halves {

__device__ inline int window_radius()
{
    return RADIUS ? RADIUS : window.radius;
}

// Norms in a row: those of all columns of candidates, and up to three more, as threads write four at once.
__device__ inline int norm_pitch(const Geometry& g)
{
    return (g.out_width + 2 * window_radius() + 3) & ~3;
}

// Words of a row with 12 samples as bytes. They are shifted only where they are used, so that a thread can
// read several rows without waiting.
struct Twelve {
    unsigned words[4] = {}, bits = 0;  // before the first sample

    // From column x on; `row` begins at the channel.
    __device__ inline void read(const Sample* row, const Geometry& g, int x)
    {
        if (g.channels == 1 && 4 <= x && x + 16 <= g.width) {
            const unsigned before = (size_t)(row + x) % 4;
            const unsigned* from = (const unsigned*)(row + x - before);
#pragma unroll
            for (int i = 0; i < 4; ++i) words[i] = from[i];
            bits = before * 8;
            return;
        }
#pragma unroll 1
        for (int i = 0; i < 12; ++i) {
            const int column = border_index(x + i, g.width);
            const unsigned sample = column < 0 ? 0 : row[(size_t)column * g.channels];
            words[0] = words[0] >> 8 | words[1] << 24;
            words[1] = words[1] >> 8 | words[2] << 24;
            words[2] = words[2] >> 8 | sample << 24;
        }
    }

    // The samples 4 i to 4 i + 3.
    __device__ inline unsigned four(int i) const
    {
        return __funnelshift_r(words[i], words[i + 1], bits);
    }
};

// Four candidates side by side, of which a thread goes down the rows of cells.
struct Norms {
    // Of those whose last rows are to come: they have one row in begun[0], and one more in each that follows.
    float begun[PATCH - 1][4];

    // Add a row of cells, the first ones of `samples`; `complete` are the norms whose last row it is.
    __device__ inline void add(float (&complete)[4], const Twelve& samples)
    {
        float cells[PATCH + 3];
#pragma unroll
        for (int i = 0; i < PATCH + 3; ++i) cells[i] = centred_byte(samples.four(i / 4), i % 4);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            float sum = 0;
#pragma unroll
            for (int t = 0; t < PATCH; ++t) sum = fmaf(profile(t) * cells[k + t], cells[k + t], sum);
            complete[k] = fmaf(profile(PATCH - 1), sum, begun[PATCH - 2][k]);
#pragma unroll
            for (int t = PATCH - 2; t > 0; --t) begun[t][k] = fmaf(profile(t), sum, begun[t - 1][k]);
            begun[0][k] = profile(0) * sum;
        }
    }
};

}  // namespace halves

// |p|^2 of the candidates of the output's pixels as sums of two halves, a row of them for each colour; NEVER
// of those that lie outside the image where they have to be inside. The threads share out the candidates: one
// has four columns of an even number of rows, and reads two rows of cells at once.
extern "C" __launch_bounds__(256) __global__ void nlm_tuned_norms(
    const Sample* source, Sample* output, uint4* norms, Geometry g)
{
    using namespace halves;
    const int around = HALF + window_radius(), shift = valid_shift(around) - around;
    const int end = g.last + 2 * window_radius(), colours = (g.channels - 1) | 1;
    const unsigned fours = norm_pitch(g) / 4, block = blockIdx.y * gridDim.x + blockIdx.x;
    const unsigned threads = blockDim.x * blockDim.y, strips = gridDim.x * gridDim.y * threads / fours;
    const unsigned thread = block * threads + threadIdx.y * blockDim.x + threadIdx.x;
    const int rows = (end - g.first + 2 * strips - 1) / (2 * strips) * 2;
    const int top = g.first + thread / fours * rows, four = thread % fours;
    if (top >= end) return;
    for (int c = 0; c < colours; ++c) {
        Norms sums = {};
#pragma unroll 1
        for (int s = top; s < top + rows + PATCH - 1; s += 2) {
            Twelve samples[2];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int y = border_index(min(s + i, end + PATCH - 2) + shift, g.height);
                if (y >= 0) samples[i].read(source + source_offset(g, y) + c, g, 4 * four + shift);
            }
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                float complete[4];
                sums.add(complete, samples[i]);
                const int row = s + i - (PATCH - 1);
                if (row < top || row >= end) continue;
                Pair pairs[4];
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    const bool inside = (unsigned)(row - window_radius()) < (unsigned)g.height &&
                        (unsigned)(4 * four + k - window_radius()) < (unsigned)g.width;
                    pairs[k] = INSIDE && !inside ? NEVER : split(halves_scale * complete[k]);
                }
                norms[((size_t)(row - g.output_row) * colours + c) * fours + four] =
                    make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
            }
        }
    }
}
#endif
