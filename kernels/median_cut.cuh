// Windows that the border `reduce` cuts, which networks for whole windows leave out.
#ifndef KERNELSCOPE_MEDIAN_CUT
#define KERNELSCOPE_MEDIAN_CUT
#include "edges.cuh"
#include "median_search.cuh"

// Whether cells outside the image count as zero.
#define ZEROS_OUTSIDE (BORDER == BORDER_CONSTANT || BORDER >= BORDER_VALID)

// Whether the border leaves cells out of the window around (y, x).
__device__ inline bool is_cut(const Geometry& g, int y, int x)
{
    return BORDER == BORDER_REDUCE
        && (y < RADIUS || y >= g.height - RADIUS || x < RADIUS || x >= g.width - RADIUS);
}

// The medians of windows that the border cuts: all threads of the launch search for them.
__device__ inline void compute_cut_medians(const Sample* source, Sample* output, const Geometry& g)
{
#if BORDER == BORDER_REDUCE
    const int first = min(max(RADIUS, g.first), g.last), width = g.out_width;
    const int left_end = min(RADIUS, width) * g.channels;
    const Part whole{first, min(max(g.height - RADIUS, first), g.last), left_end,
        max(left_end, (width - RADIUS) * g.channels)};
    compute_around<RADIUS>(source, output, g, whole, Median());
#endif
}

#endif
