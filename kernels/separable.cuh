// Symmetric weights along both axes, one pass for each: down the columns, and along the rows of their sums.
//
//   v(y, x) = sum of w(|s|) f(y + s, x), s from -radius to radius
//   m(y, x) = sum of w(|t|) v(y, x + t), t from -radius to radius
//
// A sum begins with the middle cell and adds the pairs outwards, in floats that are rounded after each operation. So
// all levels, and the CPU, have the same bits. The radius is a number in constant memory and no macro: one compiled
// kernel serves all sigmas. Rows are taken as flat: a pixel's neighbour is `channels` samples away.
#ifndef KERNELSCOPE_SEPARABLE
#define KERNELSCOPE_SEPARABLE
#include "common.cuh"
#include "real.cuh"

#ifndef MOST_RADIUS
#define MOST_RADIUS 200
#endif

__constant__ float constant_weights[MOST_RADIUS + 1];  // from the middle outwards
__constant__ int radius;

// Zero, as blocks are flat, but of a thread to the compiler: see `own_zero` in correlation.cuh.
__device__ inline const float* weights_in_constant_memory() { return constant_weights + threadIdx.z; }

// The nearest sample, saturated; integers in the lowest bits, ties to even, as the addition rounds.
#if SAMPLE_BITS == 32
__device__ inline float rounded(Real value) { return fmaxf(-3.402823466e38f, fminf(value.value, 3.402823466e38f)); }
#else
__device__ inline unsigned rounded(Real value)
{
    return __float_as_uint(__fadd_rn(fmaxf(0, fminf(value.value, SAMPLE_MAX)), 8388608.0f));
}
#endif

// Where the sums of output row y begin, `columns` for each row.
__device__ inline size_t sums_offset(const Geometry& g, int y, int columns)
{
    return (size_t)(y - g.output_row) * columns;
}

// The sample of the source in the place of sample k of output row y.
__device__ inline Sample sample_at(const Sample* source, const Geometry& g, int y, int k)
{
    const int shift = valid_shift(radius);
    return source[source_offset(g, y + shift) + k + shift * g.channels];
}

// The weights around cell i of `count` that belong to a cell of the image.
__device__ inline Real weight_inside(int i, int count, const float* weights)
{
    Real sum = {weights[0]};
    for (int k = 1; k <= radius; ++k)
        sum = sum + Real{(float)((i - k >= 0) + (i + k < count))} * weights[k];
    return sum;
}

// A sum around cell i, divided under `reduce` where cells are missing.
__device__ inline Real divided(Real sum, int i, int count, const float* weights)
{
    const bool is_cut = i < radius || i >= count - radius;
    return BORDER == BORDER_REDUCE && is_cut ? sum / weight_inside(i, count, weights) : sum;
}

#if !TUNED
// Lines of cells in any memory: [t] is the cell t away from the middle one, at(i) cell i from the edge of the image on.
// A line `fits` where all its cells can be had by [t].

// A column of the source around row `place`.
struct Column {
    const Sample* source;
    const Geometry& g;
    int k, place, count;
    const Sample* middle;

    __device__ inline Column(const Sample* source, const Geometry& g, int y, int k)
        : source(source), g(g), k(k), place(y), count(g.height), middle(source + source_offset(g, y) + k)
    {
    }
    __device__ inline bool fits() const
    {
        return BORDER == BORDER_VALID || (radius <= place && place < count - radius);
    }
    __device__ inline Real operator[](int t) const { return {(float)middle[t * (g.width * g.channels)]}; }
    __device__ inline Real at(int y) const
    {
        y = border_index(y, count);
        return {y < 0 ? 0.0f : (float)source[source_offset(g, y) + k]};
    }
};

// The same in a texture.
struct TexelColumn {
    cudaTextureObject_t source;
    const Geometry& g;
    int place, count;
    float x, y, scale;

    __device__ inline TexelColumn(cudaTextureObject_t source, const Geometry& g, int row, int k)
        : source(source), g(g), place(row), count(g.height), x(k + 0.5f), y(texel_row(row)), scale(1)
    {
        if ((BORDER == BORDER_REFLECT || BORDER == BORDER_WRAP) && g.hardware_border) {
            // These two address modes exist for coordinates from 0 to 1 only.
            scale = __fdividef(1, g.height);
            x = x * __fdividef(1, g.width);
        }
    }
    __device__ inline float texel_row(int y) const
    {
        const int row = y - g.source_row;
        return (BORDER == BORDER_WRAP && row < 0 ? row + g.height : row) + 0.5f;
    }
    __device__ inline bool fits() const
    {
        return BORDER == BORDER_VALID || g.hardware_border || (radius <= place && place < count - radius);
    }
    __device__ inline Real operator[](int t) const
    {
        return {(float)tex2D<Sample>(source, x, (y + t) * scale)};
    }
    __device__ inline Real at(int i) const
    {
        i = border_index(i, count);
        return {i < 0 ? 0.0f : (float)tex2D<Sample>(source, x, texel_row(i))};
    }
};

// A row of sums around sample k of an output row.
struct SumsRow {
    const float* row;
    int channels, c, place, count;

    __device__ inline SumsRow(const float* sums, const Geometry& g, int y, int k)
        : row(sums + sums_offset(g, y, g.width * g.channels)),
          channels(g.channels),
          c(k % g.channels),
          place(k / g.channels + valid_shift(radius)),
          count(g.width)
    {
    }
    __device__ inline bool fits() const
    {
        return BORDER == BORDER_VALID || (radius <= place && place < count - radius);
    }
    __device__ inline Real operator[](int t) const { return {row[(place + t) * channels + c]}; }
    __device__ inline Real at(int x) const
    {
        x = border_index(x, count);
        return {x < 0 ? 0.0f : row[x * channels + c]};
    }
};

// The same in a texture of the sums.
struct TexelSumsRow : SumsRow {
    cudaTextureObject_t sums;
    float y;

    __device__ inline TexelSumsRow(cudaTextureObject_t sums, const Geometry& g, int y, int k)
        : SumsRow(nullptr, g, y, k), sums(sums), y(y - g.output_row + 0.5f)
    {
    }
    __device__ inline Real operator[](int t) const
    {
        return {tex2D<float>(sums, (place + t) * channels + c + 0.5f, y)};
    }
    __device__ inline Real at(int x) const
    {
        x = border_index(x, count);
        return {x < 0 ? 0.0f : tex2D<float>(sums, x * channels + c + 0.5f, y)};
    }
};

// A line of a tile in shared memory, whose cells have the border applied.
template <typename Cell>
struct TileLine {
    const Cell* middle;
    int step, place, count;

    __device__ inline bool fits() const { return true; }
    __device__ inline Real operator[](int t) const { return {(float)middle[t * step]}; }
    __device__ inline Real at(int i) const { return (*this)[i - place]; }
};

__device__ inline Column column(const Sample* source, const Geometry& g, int y, int k) { return {source, g, y, k}; }
__device__ inline TexelColumn column(cudaTextureObject_t source, const Geometry& g, int y, int k)
{
    return {source, g, y, k};
}
__device__ inline SumsRow row(const float* sums, const Geometry& g, int y, int k) { return {sums, g, y, k}; }
__device__ inline TexelSumsRow row(cudaTextureObject_t sums, const Geometry& g, int y, int k)
{
    return {sums, g, y, k};
}

// The weighted sum of a line.
template <typename Line>
__device__ inline Real weigh(const Line& line, const float* weights)
{
    const int i = line.place;
    Real sum = line[0] * weights[0];
    if (line.fits())
        for (int k = 1; k <= radius; ++k) sum = sum + (line[-k] + line[k]) * weights[k];
    else
        for (int k = 1; k <= radius; ++k) sum = sum + (line.at(i - k) + line.at(i + k)) * weights[k];
    return divided(sum, i, line.count, weights);
}

// Compute the samples of this thread: one, and those a grid further right and down.
template <typename Compute>
__device__ inline void each_sample(const Geometry& g, int columns, Compute compute)
{
    for (int y = g.first + blockIdx.y * blockDim.y + threadIdx.y; y < g.last; y += gridDim.y * blockDim.y)
        for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < columns; k += gridDim.x * blockDim.x)
            compute(y, k);
}

// The first pass: v of all columns of the source.
template <typename Source>
__device__ inline void sum_columns(const Source& source, float* sums, const float* weights, const Geometry& g)
{
    const int columns = g.width * g.channels;
    each_sample(g, columns, [&](int y, int k) {
        const Real sum = weigh(column(source, g, y + valid_shift(radius), k), weights);
        sums[sums_offset(g, y, columns) + k] = sum.value;
    });
}

// The second pass: output = finish(m, y, k) for sample k of row y.
template <typename Sums, typename Finish>
__device__ inline void sum_rows(
    const Sums& sums, Sample* output, const float* weights, const Geometry& g, Finish finish)
{
    const int columns = g.out_width * g.channels;
    each_sample(g, columns, [&](int y, int k) {
        output[sums_offset(g, y, columns) + k] = (Sample)finish(weigh(row(sums, g, y, k), weights), y, k);
    });
}

// Compute the tiles of this block, by its samples at the top left; all threads take part.
template <typename Compute>
__device__ inline void each_tile(const Geometry& g, int columns, Compute compute)
{
    for (int top = g.first + blockIdx.y * blockDim.y; top < g.last; top += gridDim.y * blockDim.y)
        for (int left = blockIdx.x * blockDim.x; left < columns; left += gridDim.x * blockDim.x) {
            compute(top, left);
            __syncthreads();
        }
}

// The first pass by way of shared memory: a tile is as wide as the block, and has the radius more rows on both sides.
__device__ inline void sum_columns_of_tiles(
    const Sample* source, float* sums, Sample* tile, const float* weights, const Geometry& g)
{
    const int columns = g.width * g.channels, rows = blockDim.y + 2 * radius, shift = valid_shift(radius);
    each_tile(g, columns, [&](int top, int left) {
        const int k = left + threadIdx.x, y = top + threadIdx.y, first = top + shift - radius;
        const int there = min(rows, g.last + shift + radius - first);
        if (k < columns)
            for (int s = threadIdx.y; s < there; s += blockDim.y)
                tile[s * blockDim.x + threadIdx.x] = (Sample)Column(source, g, 0, k).at(first + s).value;
        __syncthreads();
        if (k >= columns || y >= g.last) return;
        const Sample* middle = tile + (threadIdx.y + radius) * blockDim.x + threadIdx.x;
        const TileLine<Sample> line{middle, (int)blockDim.x, y + shift, g.height};
        sums[sums_offset(g, y, columns) + k] = weigh(line, weights).value;
    });
}

// The second pass: a tile is as high as the block, and has the radius more pixels on both sides.
template <typename Finish>
__device__ inline void sum_rows_of_tiles(
    const float* sums, Sample* output, float* tile, const float* weights, const Geometry& g, Finish finish)
{
    const int columns = g.out_width * g.channels, pitch = blockDim.x + 2 * radius * g.channels;
    each_tile(g, columns, [&](int top, int left) {
        const int k = left + threadIdx.x, y = top + threadIdx.y;
        float* const line = tile + threadIdx.y * pitch;
        if (y < g.last)
            for (int t = threadIdx.x; t < pitch; t += blockDim.x) {
                const SumsRow cells(sums, g, y, left + t);
                line[t] = cells.at(cells.place - radius).value;
            }
        __syncthreads();
        if (k >= columns || y >= g.last) return;
        const float* middle = line + threadIdx.x + radius * g.channels;
        const int x = k / g.channels + valid_shift(radius);
        const Real mean = weigh(TileLine<float>{middle, g.channels, x, g.width}, weights);
        output[sums_offset(g, y, columns) + k] = (Sample)finish(mean, y, k);
    });
}
#endif

#endif
