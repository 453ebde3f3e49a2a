// Border "keep": pixels whose mask does not fit into the image stay as they are.
//
// The filter's own kernel computes these pixels like any others; this one runs after it, at every
// level, and puts those of the source in their place. A grey source stays grey where the result has
// colours. Alpha of the source is copied along with the colours.
//
// Launch: blocks of 256 x 4 threads for 2048 x 32 pixels stride over the pixels within the radius of an edge:
// over all pixels of the first and the last rows, and the outer ones of the others.
#include "common.cuh"

__constant__ int constant_rim[2];  // the radius, and the channels of the output

extern "C" __global__ void rim_keep(const Sample* source, Sample* output, Geometry g)
{
    const int radius = constant_rim[0], channels = constant_rim[1];
    for (int y = g.first + blockIdx.y * blockDim.y + threadIdx.y; y < g.last;
         y += gridDim.y * blockDim.y) {
        const bool whole = y < radius || y >= g.height - radius || g.width <= 2 * radius;
        const int count = whole ? g.width : 2 * radius;  // of its pixels
        const Sample* from = source + source_offset(g, y);
        Sample* to = output + (size_t)(y - g.output_row) * g.out_width * channels;
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
            const int x = whole || i < radius ? i : g.width - 2 * radius + i;
            for (int c = 0; c < channels; ++c) {
                const int kept = channels == g.channels ? c : c / 3;
                to[(size_t)x * channels + c] = from[(size_t)x * g.channels + kept];
            }
        }
    }
}
