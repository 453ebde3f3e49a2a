// Non-local means: every pixel becomes a weighted mean of the pixels whose surroundings look alike:
//
//   g(i) = sum over j of w(i, j) f(j) / Z(i)      Z(i) = sum over j of w(i, j)      w(i, j) = exp(-D(i, j))
//   D(i, j) = sum over k of (p(k) (f(i + k) - f(j + k)))^2, the mean of that over the colours
//
// or exp(-max(D - F, 0)) with the part F of D that is noise. Here k runs over a patch of PATCH x PATCH cells, j over the candidates: a square around i, or the
// whole image. p holds everything constant: the Gaussian, filter_sigma, white, the number of colours.
//
// As in source N, the picture is padded first (nlm_pad.cuh), then Z is computed, then g: each weight
// twice. All levels do that alike, a small patch around i in registers; only the memory differs:
//
// level            demonstrates                                          candidates   p
// global           everything in one place                               global       global
// constant         the patch's weights where all threads read them       global       constant
// texture          texture units in place of loads                       texels       constant
// shared           the block walks over partitions of the candidates     shared       constant
// host_partitions  the host hands the partitions over, a launch each     shared       constant
// tuned            see nlm_tuned.cuh: one pass, other arithmetic
//
// A partition is a row of the square, or PART x PART pixels of the whole image. Sums are taken over one
// first, because adding a million small numbers to a large one would lose digits. A launch can stop
// after any partition; then scratch holds the sums.
//
// Launch: blocks of 32 x 8 threads (or as the user wants) over the output, a thread a pixel.
// A sample takes twice 3 PATCH^2 operations and an exponential for each candidate, and as often PATCH^2
// reads of the candidates' memory; at best 1 read from and 1 write to device memory.
#include "common.cuh"

#if TUNED  // compiled alone: its macros are others
#include "nlm_tuned.cuh"
#else
#include "nlm_pad.cuh"
#ifndef PAD  // compiled alone: it is the only one that depends on the border

#ifndef PATCH
#define PATCH 7
#endif
#ifndef TOGETHER  // how many colours share their weights
#define TOGETHER 1
#endif
#ifndef PART
#define PART 32
#endif
// Small patches stay in registers; larger ones are read again for every candidate, and the loop over their
// colours is not unrolled, as that would be slow to compile.
#define SMALL (TOGETHER * PATCH * PATCH <= 150)
constexpr int UNROLLED_COLOURS = SMALL ? TOGETHER : 1;

#ifndef THREADS  // of a block
#define THREADS 256
#endif
// Blocks of a multiprocessor at a time, at least: patches of up to 7 x 7 leave registers for 512 threads.
constexpr int BLOCKS = TOGETHER * PATCH * PATCH <= 50 && THREADS < 512 ? 512 / THREADS : 1;

struct Search {
    int radius;  // of the square of candidates; 0: the whole image
    int rows;    // of the whole output
    int inside;  // 1 if candidates lie inside the image
};
__constant__ Search search;
__constant__ float constant_weights[PATCH * PATCH];  // p
__constant__ float noise_floor;  // of D: so much is noise, and does not count

// Pixels of the output; or candidates, or cells of the padded picture. A candidate is where the first
// cell of its patch is; that of pixel (y, x) itself is at (y + search.radius, x + search.radius).
struct Box {
    int top, left, rows, columns;
};

__device__ inline Box common_part(const Box& a, const Box& b)
{
    const int top = max(a.top, b.top), left = max(a.left, b.left);
    return {top, left, min(a.top + a.rows, b.top + b.rows) - top,
            min(a.left + a.columns, b.left + b.columns) - left};
}

// The candidates in a partition that some of `pixels` have, by the first cells of their patches.
__device__ inline Box candidates(const Geometry& g, int partition, const Box& pixels)
{
    const Box image = {search.radius, search.radius, search.rows, g.out_width};
    if (search.radius > 0) {
        const Box row = {pixels.top + partition, pixels.left, pixels.rows,
                         pixels.columns + 2 * search.radius};
        return search.inside ? common_part(row, image) : row;
    }
    const int across = (g.out_width + PART - 1) / PART;
    return common_part(image, {partition / across * PART, partition % across * PART, PART, PART});
}

__device__ inline int partitions(const Geometry& g)
{
    if (search.radius > 0) return 2 * search.radius + 1;
    return ((search.rows + PART - 1) / PART) * ((g.out_width + PART - 1) / PART);
}

// The cells of the patches in a box.
__device__ inline Box cells_of(const Box& box)
{
    return {box.top, box.left, box.rows + PATCH - 1, box.columns + PATCH - 1};
}

// Cells of the padded picture, in global or shared memory: the colours from some one on.
struct Picture {
    const float* cells;
    int top, left;     // of the first cell
    int pitch, plane;  // from a row to the next, from a colour to the next
    typedef const float* Place;

    __device__ inline Place at(int y, int x) const
    {
        return cells + (size_t)(y - top) * pitch + (x - left);
    }
    // Of colour c, in row s and column t counted from a place.
    __device__ inline float cell(Place place, int c, int s, int t) const
    {
        return place[c * plane + s * pitch + t];
    }
    static __device__ inline void next(Place& place) { ++place; }
};

// The same through a texture object, a texel a cell.
struct Texels {
    cudaTextureObject_t cells;
    int top, left, plane;
    struct Place {
        float x, y;
    };

    __device__ inline Place at(int y, int x) const { return {x - left + 0.5f, y - top + 0.5f}; }
    __device__ inline float cell(Place place, int c, int s, int t) const
    {
        return tex2D<float>(cells, place.x + (c * plane + t), place.y + s);
    }
    static __device__ inline void next(Place& place) { place.x += 1; }
};

// Colours from c on of the padded picture.
__device__ inline Picture whole_picture(const float* padded, const Geometry& g, int c)
{
    const int columns = padded_columns(g);
    return {padded + c * columns, frame.whole ? 0 : g.output_row, 0, colours(g) * columns, columns};
}

// Colours from c on of the padded picture.
__device__ inline Texels whole_texels(cudaTextureObject_t padded, const Geometry& g, int c)
{
    const int columns = padded_columns(g);
    return {padded, frame.whole ? 0 : g.output_row, -c * columns, columns};
}

// Colours from c on of partition `step`, which the host handed over: the cells that any pixel needs.
__device__ inline Picture handed_picture(const float* part, const Geometry& g, int step, int c)
{
    Box box = {g.output_row + step, 0, 0, padded_columns(g)};
    if (search.radius == 0) box = cells_of(candidates(g, step, box));
    return {part + c * box.columns, box.top, box.left, colours(g) * box.columns, box.columns};
}

// Copy the cells of `box` into `memory`; every thread has to call this.
__device__ inline Picture load(float* memory, const Picture& from, const Box& box)
{
    const int pitch = TOGETHER * box.columns;
    for (int s = threadIdx.y; s < box.rows; s += blockDim.y)
        for (int t = threadIdx.x; t < box.columns; t += blockDim.x)
            for (int c = 0; c < TOGETHER; ++c)
                memory[s * pitch + c * box.columns + t] =
                    from.cell(from.at(box.top + s, box.left + t), c, 0, 0);
    __syncthreads();
    return {memory, box.top, box.left, pitch, box.columns};
}

// The patch around the thread's pixel.
template <typename Picture>
struct Patch {
#if SMALL
    float cells[TOGETHER][PATCH][PATCH];

    __device__ inline Patch(const Picture& picture, int y, int x)
    {
        const typename Picture::Place from = picture.at(y, x);
#pragma unroll
        for (int k = 0; k < TOGETHER * PATCH * PATCH; ++k) {
            const int c = k / (PATCH * PATCH), s = k / PATCH % PATCH, t = k % PATCH;
            cells[c][s][t] = picture.cell(from, c, s, t);
        }
    }
    __device__ inline float cell(int c, int s, int t) const { return cells[c][s][t]; }
#else
    const Picture picture;
    const typename Picture::Place from;

    __device__ inline Patch(const Picture& picture, int y, int x)
        : picture(picture), from(picture.at(y, x))
    {
    }
    __device__ inline float cell(int c, int s, int t) const { return picture.cell(from, c, s, t); }
#endif
};

// w of the patch and the one whose first cell is `other`, with the weights p.
template <typename Own, typename Picture>
__device__ inline float weight(
    const Patch<Own>& patch, const Picture& picture, typename Picture::Place other, const float* p)
{
    float distance = 0;
#pragma unroll UNROLLED_COLOURS
    for (int c = 0; c < TOGETHER; ++c)
#pragma unroll
        for (int s = 0; s < PATCH; ++s)
#pragma unroll
            for (int t = 0; t < PATCH; ++t) {
                const float cell = picture.cell(other, c, s, t);
                const float difference = p[s * PATCH + t] * (patch.cell(c, s, t) - cell);
                distance += difference * difference;
            }
    return __expf(-fmaxf(distance - noise_floor, 0));
}

// The sum of the weights of some candidates.
template <typename Own, typename Picture>
__device__ inline float sum_weights(
    const Patch<Own>& patch, const Picture& picture, const float* p, const Box& candidates)
{
    float sum = 0;
    for (int s = 0; s < candidates.rows; ++s) {
        typename Picture::Place other = picture.at(candidates.top + s, candidates.left);
        for (int t = 0; t < candidates.columns; ++t, picture.next(other))
            sum += weight(patch, picture, other, p);
    }
    return sum;
}

// Sums of colours times weights.
struct Sums {
    float of[TOGETHER];
};

template <typename Own, typename Picture>
__device__ inline void add_colours(
    Sums& sums, const Patch<Own>& patch, const Picture& picture, const float* p,
    const Box& candidates)
{
    Sums more = {};
    for (int s = 0; s < candidates.rows; ++s) {
        typename Picture::Place other = picture.at(candidates.top + s, candidates.left);
        for (int t = 0; t < candidates.columns; ++t, picture.next(other)) {
            const float w = weight(patch, picture, other, p);
            for (int c = 0; c < TOGETHER; ++c)
                more.of[c] += w * picture.cell(other, c, PATCH / 2, PATCH / 2);
        }
    }
    for (int c = 0; c < TOGETHER; ++c) sums.of[c] += more.of[c];
}

// The pixels of a block, and that of a thread: the last one of the block again if there are fewer.
__device__ inline Box block_pixels(const Geometry& g)
{
    const int top = g.first + blockIdx.y * blockDim.y, left = blockIdx.x * blockDim.x;
    return {top, left, min((int)blockDim.y, g.last - top), min((int)blockDim.x, g.out_width - left)};
}

struct Pixel {
    Box box;
    bool inside;   // whether it is this thread that writes the result
    size_t place;  // of its first colour, in scratch

    __device__ inline Pixel(const Geometry& g, const Box& block)
        : box{block.top + min((int)threadIdx.y, block.rows - 1),
              block.left + min((int)threadIdx.x, block.columns - 1), 1, 1},
          inside((int)threadIdx.y < block.rows && (int)threadIdx.x < block.columns),
          place(((size_t)(box.top - g.output_row) * g.out_width + box.left) * colours(g))
    {
    }

    template <typename Picture>
    __device__ inline Patch<Picture> patch(const Picture& picture) const
    {
        return Patch<Picture>(picture, box.top + search.radius, box.left + search.radius);
    }
};

// The sums that the launch before left in scratch.
__device__ inline Sums resume(const float* weighted, size_t place, int first)
{
    Sums sums = {};
    for (int c = 0; c < TOGETHER; ++c)
        if (first > 0) sums.of[c] = weighted[place + c];
    return sums;
}

// Leave the sums for the next launch, or write the means: rounded to nearest even, saturated.
__device__ inline void finish(
    const Sums& sums, float z, float* weighted, Sample* output, const Geometry& g,
    const Pixel& pixel, int c, int last)
{
    if (!pixel.inside) return;
    for (int k = 0; k < TOGETHER; ++k) {
        if (last < partitions(g)) {
            weighted[pixel.place + c + k] = sums.of[k];
            continue;
        }
        const float mean = sums.of[k] / z;
        Sample& result = output[output_offset(g, pixel.box.top, pixel.box.left) + c + k];
#if SAMPLE_BITS == 32
        result = mean;
#else
        result = (Sample)fminf(rintf(mean), SAMPLE_MAX);
#endif
    }
}

// global: Z, from partition `first` up to `last`.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) nlm_global_weights(
    const Sample* source, Sample* output, const float* p, const float* padded, float* weights,
    Geometry g, int first, int last)
{
    const Pixel pixel(g, block_pixels(g));
    for (int c = 0; c < colours(g); c += TOGETHER) {
        const Picture picture = whole_picture(padded, g, c);
        const auto patch = pixel.patch(picture);
        float z = first > 0 ? weights[pixel.place + c] : 0;
        for (int step = first; step < last; ++step)
            z += sum_weights(patch, picture, p, candidates(g, step, pixel.box));
        if (pixel.inside) weights[pixel.place + c] = z;
    }
}

// global: the mean, when Z is known.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) nlm_global_mean(
    const Sample* source, Sample* output, const float* p, const float* padded, float* weights,
    float* weighted, Geometry g, int first, int last)
{
    const Pixel pixel(g, block_pixels(g));
    for (int c = 0; c < colours(g); c += TOGETHER) {
        const Picture picture = whole_picture(padded, g, c);
        const auto patch = pixel.patch(picture);
        Sums sums = resume(weighted, pixel.place + c, first);
        for (int step = first; step < last; ++step)
            add_colours(sums, patch, picture, p, candidates(g, step, pixel.box));
        finish(sums, weights[pixel.place + c], weighted, output, g, pixel, c, last);
    }
}

// constant: Z.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) nlm_constant_weights(
    const Sample* source, Sample* output, const float* padded, float* weights, Geometry g, int first,
    int last)
{
    const Pixel pixel(g, block_pixels(g));
    for (int c = 0; c < colours(g); c += TOGETHER) {
        const Picture picture = whole_picture(padded, g, c);
        const auto patch = pixel.patch(picture);
        float z = first > 0 ? weights[pixel.place + c] : 0;
        for (int step = first; step < last; ++step)
            z += sum_weights(patch, picture, constant_weights, candidates(g, step, pixel.box));
        if (pixel.inside) weights[pixel.place + c] = z;
    }
}

// constant: the mean.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) nlm_constant_mean(
    const Sample* source, Sample* output, const float* padded, float* weights, float* weighted,
    Geometry g, int first, int last)
{
    const Pixel pixel(g, block_pixels(g));
    for (int c = 0; c < colours(g); c += TOGETHER) {
        const Picture picture = whole_picture(padded, g, c);
        const auto patch = pixel.patch(picture);
        Sums sums = resume(weighted, pixel.place + c, first);
        for (int step = first; step < last; ++step)
            add_colours(sums, patch, picture, constant_weights, candidates(g, step, pixel.box));
        finish(sums, weights[pixel.place + c], weighted, output, g, pixel, c, last);
    }
}

// texture: Z.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) nlm_texture_weights(
    cudaTextureObject_t padded, Sample* output, float* weights, Geometry g, int first, int last)
{
    const Pixel pixel(g, block_pixels(g));
    for (int c = 0; c < colours(g); c += TOGETHER) {
        const Texels picture = whole_texels(padded, g, c);
        const auto patch = pixel.patch(picture);
        float z = first > 0 ? weights[pixel.place + c] : 0;
        for (int step = first; step < last; ++step)
            z += sum_weights(patch, picture, constant_weights, candidates(g, step, pixel.box));
        if (pixel.inside) weights[pixel.place + c] = z;
    }
}

// texture: the mean.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) nlm_texture_mean(
    cudaTextureObject_t padded, Sample* output, float* weights, float* weighted, Geometry g,
    int first, int last)
{
    const Pixel pixel(g, block_pixels(g));
    for (int c = 0; c < colours(g); c += TOGETHER) {
        const Texels picture = whole_texels(padded, g, c);
        const auto patch = pixel.patch(picture);
        Sums sums = resume(weighted, pixel.place + c, first);
        for (int step = first; step < last; ++step)
            add_colours(sums, patch, picture, constant_weights, candidates(g, step, pixel.box));
        finish(sums, weights[pixel.place + c], weighted, output, g, pixel, c, last);
    }
}

// shared: Z.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) nlm_shared_weights(
    const Sample* source, Sample* output, const float* padded, float* weights, Geometry g, int first,
    int last)
{
    extern __shared__ float memory[];
    const Box block = block_pixels(g);
    const Pixel pixel(g, block);
    for (int c = 0; c < colours(g); c += TOGETHER) {
        const Picture picture = whole_picture(padded, g, c);
        const auto patch = pixel.patch(picture);
        float z = first > 0 ? weights[pixel.place + c] : 0;
        for (int step = first; step < last; ++step) {
            const Picture part = load(memory, picture, cells_of(candidates(g, step, block)));
            z += sum_weights(patch, part, constant_weights, candidates(g, step, pixel.box));
            __syncthreads();  // before the next partition takes the place of this one
        }
        if (pixel.inside) weights[pixel.place + c] = z;
    }
}

// shared: the mean.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) nlm_shared_mean(
    const Sample* source, Sample* output, const float* padded, float* weights, float* weighted,
    Geometry g, int first, int last)
{
    extern __shared__ float memory[];
    const Box block = block_pixels(g);
    const Pixel pixel(g, block);
    for (int c = 0; c < colours(g); c += TOGETHER) {
        const Picture picture = whole_picture(padded, g, c);
        const auto patch = pixel.patch(picture);
        Sums sums = resume(weighted, pixel.place + c, first);
        for (int step = first; step < last; ++step) {
            const Picture part = load(memory, picture, cells_of(candidates(g, step, block)));
            add_colours(sums, patch, part, constant_weights, candidates(g, step, pixel.box));
            __syncthreads();  // before the next partition takes the place of this one
        }
        finish(sums, weights[pixel.place + c], weighted, output, g, pixel, c, last);
    }
}

// host_partitions: Z, of the one partition that was handed over.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) nlm_host_partitions_weights(
    const Sample* source, Sample* output, const float* padded, const float* handed, float* weights,
    Geometry g, int step, int last)
{
    extern __shared__ float memory[];
    const Box block = block_pixels(g);
    const Pixel pixel(g, block);
    for (int c = 0; c < colours(g); c += TOGETHER) {
        const auto patch = pixel.patch(whole_picture(padded, g, c));
        const Picture picture = handed_picture(handed, g, step, c);
        float z = step > 0 ? weights[pixel.place + c] : 0;
        const Picture part = load(memory, picture, cells_of(candidates(g, step, block)));
        z += sum_weights(patch, part, constant_weights, candidates(g, step, pixel.box));
        __syncthreads();  // before the next colour takes the place of this one
        if (pixel.inside) weights[pixel.place + c] = z;
    }
}

// host_partitions: the mean.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) nlm_host_partitions_mean(
    const Sample* source, Sample* output, const float* padded, const float* handed, float* weights,
    float* weighted, Geometry g, int step, int last)
{
    extern __shared__ float memory[];
    const Box block = block_pixels(g);
    const Pixel pixel(g, block);
    for (int c = 0; c < colours(g); c += TOGETHER) {
        const auto patch = pixel.patch(whole_picture(padded, g, c));
        const Picture picture = handed_picture(handed, g, step, c);
        Sums sums = resume(weighted, pixel.place + c, step);
        const Picture part = load(memory, picture, cells_of(candidates(g, step, block)));
        add_colours(sums, patch, part, constant_weights, candidates(g, step, pixel.box));
        __syncthreads();  // before the next colour takes the place of this one
        finish(sums, weights[pixel.place + c], weighted, output, g, pixel, c, last);
    }
}
#endif
#endif
