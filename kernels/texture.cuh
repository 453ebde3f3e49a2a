// Reading the image through a texture object: 2-D, one texel a sample (the channels of a pixel side by
// side), point sampling. The texture unit knows the borders reflect ("mirror" addressing), nearest ("clamp"),
// constant ("border") and wrap, if there is one channel and the whole image.
#ifndef KERNELSCOPE_TEXTURE
#define KERNELSCOPE_TEXTURE
#include "cells.cuh"

// The type that a texture holds: floats where it is one of a buffer between two launches.
#ifndef TEXEL
#define TEXEL Sample
#endif

// These two address modes exist for coordinates from 0 to 1 only.
#define NORMALISED (BORDER == BORDER_REFLECT || BORDER == BORDER_WRAP)

// All inside, or the texture unit treats the border. Coordinates are those of the middles of texels.
template <int REACH, int STEP>
struct Texels : Inside<REACH, STEP> {
    cudaTextureObject_t texture;
    float x, y, x_scale, y_scale;

    struct Row {
        const Texels& texels;
        float y;

        __device__ inline Sample operator[](int t) const
        {
            return (Sample)tex2D<TEXEL>(texels.texture, (texels.x + t * STEP) * texels.x_scale, y);
        }
        __device__ inline bool counts(int t) const { return true; }
    };

    __device__ inline Texels(cudaTextureObject_t texture, const Geometry& g, int row, int column)
        : texture(texture), x(column + 0.5f), y(row + 0.5f), x_scale(1), y_scale(1)
    {
        if (NORMALISED && STEP == 1 && g.hardware_border) {
            x_scale = __fdividef(1, g.width);
            y_scale = __fdividef(1, g.height);
        }
    }

    __device__ inline Row row(int s) const { return Row{*this, (y + s) * y_scale}; }
};

// The texture's row for image row y, and the sample at `column` of such a row.
struct TexelRow {
    cudaTextureObject_t texture;
    float y;
};

__device__ inline TexelRow row_of(cudaTextureObject_t texture, const Geometry& g, int y, int channels)
{
    int row = y - g.source_row;
    if (BORDER == BORDER_WRAP && row < 0) row += g.height;
    return TexelRow{texture, row + 0.5f};
}

__device__ inline Sample read(const TexelRow& row, int column)
{
    return (Sample)tex2D<TEXEL>(row.texture, column + 0.5f, row.y);
}

#endif
