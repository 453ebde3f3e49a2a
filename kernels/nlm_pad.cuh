// The picture as all levels but tuned read it: padded once, before they start, so that no loop of theirs
// tests a border. A row of the padded picture is a line of floats for each colour, side by side.
//
// Output pixel (y, x) is the middle of the cells (y .. y + 2 margin, x .. x + 2 margin), whatever the
// border. Of a strip of the output only those rows are there; of a search of the whole image all.
//
// Launch: as the kernels that follow; the threads stride over the output.
#ifndef KERNELSCOPE_NLM_PAD
#define KERNELSCOPE_NLM_PAD
#include "common.cuh"

struct Frame {
    int margin;  // on each side
    int whole;   // 1 if all rows are there, whichever are computed
};
__constant__ Frame frame;

// Two and four channels have alpha behind their colours.
__device__ inline int colours(const Geometry& g)
{
    return (g.channels - 1) | 1;
}

__device__ inline int padded_columns(const Geometry& g)
{
    return g.out_width + 2 * frame.margin;
}

extern "C" __global__ void nlm_pad(const Sample* source, Sample* output, float* padded, Geometry g)
{
    const int shift = valid_shift(frame.margin), around = 2 * frame.margin;
    const int first = frame.whole ? 0 : g.first;
    const int last = (frame.whole ? g.height - 2 * shift : g.last) + around;
    const int count = colours(g), columns = padded_columns(g);
    const int y = blockIdx.y * blockDim.y + threadIdx.y, x = blockIdx.x * blockDim.x + threadIdx.x;
    const int rows_at_once = gridDim.y * blockDim.y, columns_at_once = gridDim.x * blockDim.x;
    for (int row = first + y; row < last; row += rows_at_once) {
        float* line = padded + (size_t)(row - (frame.whole ? 0 : g.output_row)) * count * columns;
        for (int column = x; column < columns; column += columns_at_once)
            for (int c = 0; c < count; ++c)
                line[c * columns + column] = fetch(
                    source, g, row + shift - frame.margin, column + shift - frame.margin, c);
    }
    // Alpha is put back later: any value will do.
    if (count < g.channels && g.first + y < g.last && x < g.out_width)
        output[output_offset(g, g.first + y, x) + count] = 0;
}
#endif
