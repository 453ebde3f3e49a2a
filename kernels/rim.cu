// Border "keep": pixels whose mask does not fit into the image stay as they are.
//
// The filter's own kernel computes these pixels like any others; this one runs after it, at every
// level, and puts those of the source in their place. A grey source stays grey where the result has
// colours. Alpha of the source is copied along with the colours.
//
// Launch: blocks of 64 x 8 threads for 8 output rows; the 64 of a row walk along those of its pixels
// that lie within the radius of an edge.
#include "common.cuh"

__constant__ int constant_rim[2];  // the radius, and the channels of the output

extern "C" __global__ void rim_keep(const Sample* source, Sample* output, Geometry g)
{
    const int radius = constant_rim[0], channels = constant_rim[1];
    const int y = g.first + blockIdx.y * blockDim.y + threadIdx.y;
    if (y >= g.last) return;
    const bool whole = y < radius || y >= g.height - radius || g.width <= 2 * radius;
    const Sample* from = source + source_offset(g, y);
    Sample* to = output + (size_t)(y - g.output_row) * g.out_width * channels;
    for (int i = threadIdx.x; i < (whole ? g.width : 2 * radius); i += blockDim.x) {
        const int x = whole || i < radius ? i : g.width - 2 * radius + i;
        for (int c = 0; c < channels; ++c) {
            const int kept = channels == g.channels ? c : c / 3;
            to[(size_t)x * channels + c] = from[(size_t)x * g.channels + kept];
        }
    }
}
