// Greyscale, ITU-R BT.601:
//
//   g = 0.299 R + 0.587 G + 0.114 B
//
// Whole numbers are exact: (299 R + 587 G + 114 B) / 1000, ties to even. A grey image is copied.
//
// global   a thread a pixel: 3 reads (4 with alpha), 1 write (2), 5 operations
//
// Launch: blocks of 32 x 8 threads over the output.
#include "common.cuh"

extern "C" __global__ void greyscale_global(const Sample* source, Sample* output, Geometry g)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = g.first + blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= g.out_width || y >= g.last) return;
    const Sample* pixel = source + source_offset(g, y) + (size_t)x * g.channels;
    const int out_channels = g.channels > 2 ? g.channels - 2 : g.channels;
    Sample* target = output + ((size_t)(y - g.output_row) * g.out_width + x) * out_channels;
    if (g.channels <= 2)
        target[0] = pixel[0];
    else {
#if SAMPLE_BITS == 32
        const double grey = __dadd_rn(
            __dadd_rn(__dmul_rn(0.299, pixel[0]), __dmul_rn(0.587, pixel[1])),
            __dmul_rn(0.114, pixel[2]));
        target[0] = (float)grey;
#else
        target[0] = (Sample)divide_round(299 * pixel[0] + 587 * pixel[1] + 114 * pixel[2], 1000);
#endif
    }
    if (g.channels % 2 == 0) target[out_channels - 1] = pixel[g.channels - 1];
}
