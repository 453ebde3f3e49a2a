// Reading the image through a texture object: 2-D, one texel per sample (a pixel's channels side
// by side), point sampling. The texture unit knows the borders reflect ("mirror" addressing), nearest
// ("clamp"), constant ("border") and wrap, if there is one channel and the whole image.
#ifndef KERNELSCOPE_TEXTURE
#define KERNELSCOPE_TEXTURE
#include "common.cuh"

// Channel c of the source pixel (y, x), which may lie outside the image.
__device__ inline Sample fetch(cudaTextureObject_t source, const Geometry& g, int y, int x, int c)
{
#if BORDER == BORDER_REFLECT || BORDER == BORDER_WRAP
    // These two address modes exist for coordinates from 0 to 1 only.
    if (g.hardware_border)
        return tex2D<Sample>(source, (x + 0.5f) / g.width, (y + 0.5f) / g.height);
#elif BORDER == BORDER_NEAREST || BORDER == BORDER_CONSTANT
    if (g.hardware_border) return tex2D<Sample>(source, x + 0.5f, y + 0.5f);
#endif
    y = border_index(y, g.height);
    x = border_index(x, g.width);
    if (y < 0 || x < 0) return 0;
    int row = y - g.source_row;
    if (row < 0) row += g.height;
    return tex2D<Sample>(source, x * g.channels + c + 0.5f, row + 0.5f);
}

#endif
