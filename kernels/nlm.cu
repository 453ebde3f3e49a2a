// Non-local means: every pixel becomes a weighted mean of the pixels whose surroundings look alike:
//
//   g(i) = sum over j of w(i, j) f(j) / sum over j of w(i, j)      w(i, j) = exp(-D(i, j))
//   D(i, j) = sum over k of (p(k) (f(i + k) - f(j + k)))^2, the mean of that over the colours
//
// where k runs over a patch of PATCH x PATCH cells, j over the candidates: a square around i, or the
// whole image. p holds everything constant: the Gaussian, filter_sigma, white, the number of colours.
//
// The candidates come in partitions: a row of the square, or a part of the image of PART x PART
// pixels. Sums are taken over a partition first, because adding a million small numbers to a large
// one would lose digits. A launch can stop after any partition; then scratch holds the sums.
//
// level            what it shows                                               image     p
// global           Z = sum of w and the mean in two kernels: w computed twice  global    global
// host_partitions  a launch a partition; scratch keeps the sums meanwhile      shared    constant
// shared           partition after partition; the sums stay in registers       shared    constant
// tuned            see nlm_tuned.cuh
//
// Launch: blocks of 32 x 8 threads over the output, a thread a pixel.
// A sample takes about 4 PATCH^2 operations and an exponential for each candidate (global: twice), and
// 2 PATCH^2 reads of shared memory (global: of cache); at best 1 read from and 1 write to device memory,
// host_partitions besides reads and writes its sums for each partition.
#include "common.cuh"

#ifdef TUNED  // compiled alone: its macros are others
#include "nlm_tuned.cuh"
#else

#ifndef PATCH
#define PATCH 7
#endif
#define RADIUS (PATCH / 2)
#define PART 32
#define COLOURS 3  // the most that an image has

// What is the same for all pixels. Under `reduce` patches are reflected (Python says so by BORDER), and
// only candidates are left out.
struct Search {
    int radius;    // of the square of candidates; 0: the whole image
    int together;  // how many colours share their weights: all of them, or 1
    int inside;    // 1 if candidates lie inside the image
};
__constant__ Search search;
__constant__ float constant_weights[PATCH * PATCH];  // p

// Some pixels of the source, or around it.
struct Box {
    int top, left, rows, columns;
};

__device__ inline Box grown(const Box& box)
{
    return {box.top - RADIUS, box.left - RADIUS, box.rows + 2 * RADIUS, box.columns + 2 * RADIUS};
}

__device__ inline Box common_part(const Box& a, const Box& b)
{
    const int top = max(a.top, b.top), left = max(a.left, b.left);
    return {top, left, min(a.top + a.rows, b.top + b.rows) - top,
            min(a.left + a.columns, b.left + b.columns) - left};
}

// The pixels whose patches the border allows.
__device__ inline Box whole_image(const Geometry& g)
{
    const int edge = valid_shift(RADIUS);
    return {edge, edge, g.height - 2 * edge, g.width - 2 * edge};
}

__device__ inline int parts(int length)
{
    return (length + PART - 1) / PART;
}

__device__ inline int partitions(const Geometry& g)
{
    if (search.radius > 0) return 2 * search.radius + 1;
    const Box image = whole_image(g);
    return parts(image.rows) * parts(image.columns);
}

// The candidates in a partition that some of `pixels` have.
__device__ inline Box candidates(const Geometry& g, int partition, const Box& pixels)
{
    const Box image = whole_image(g);
    if (search.radius > 0) {
        const Box row = {pixels.top + partition - search.radius, pixels.left - search.radius,
                         pixels.rows, pixels.columns + 2 * search.radius};
        return search.inside ? common_part(row, image) : row;
    }
    const int across = parts(image.columns);
    return common_part(image, {image.top + partition / across * PART,
                               image.left + partition % across * PART, PART, PART});
}

// Two and four channels have alpha behind their colours.
__device__ inline int colours(const Geometry& g)
{
    return (g.channels - 1) | 1;
}

// A box of the image in shared memory: the colours from `channel` on that share weights, as floats,
// one after the other.
struct Part {
    const float* samples;
    Box box;
    int channel;

    __device__ inline int size() const { return box.rows * box.columns * search.together; }
};

__device__ inline float sample(const Part& part, const Geometry& g, int y, int x, int c)
{
    const int row = (c - part.channel) * part.box.rows + y - part.box.top;
    return part.samples[row * part.box.columns + x - part.box.left];
}

__device__ inline float sample(const Sample* source, const Geometry& g, int y, int x, int c)
{
    return fetch(source, g, y, x, c);
}

// Read `box` into `memory`, borders applied; every thread has to call this.
__device__ inline Part load(
    float* memory, const Sample* source, const Geometry& g, const Box& box, int channel)
{
    for (int c = 0; c < search.together; ++c)
        for (int s = threadIdx.y; s < box.rows; s += blockDim.y)
            for (int t = threadIdx.x; t < box.columns; t += blockDim.x)
                memory[(c * box.rows + s) * box.columns + t] =
                    fetch(source, g, box.top + s, box.left + t, channel + c);
    __syncthreads();
    return {memory, box, channel};
}

// Sums over candidates: of their weights, and of their colours times the weights.
struct Sums {
    float weights, colours[COLOURS];
};

// Add to `sums` those over some candidates of the pixel (y, x): of the colours from c on that share
// weights. The pixel's patch is read from `own`, the candidates from `others`. Unrolled rows of a patch
// have its constant weights in their instructions; with border tests in them they would be too long.
template <int UNROLLED_ROWS, typename Image>
__device__ inline void compare(
    Sums& sums, const Image& own, const Image& others, const float* patch, const Geometry& g, int y,
    int x, int c, const Box& candidates)
{
    Sums more = {};
    for (int v = candidates.top; v < candidates.top + candidates.rows; ++v)
        for (int u = candidates.left; u < candidates.left + candidates.columns; ++u) {
            float distance = 0;
            for (int k = c; k < c + search.together; ++k)
#pragma unroll UNROLLED_ROWS
                for (int s = -RADIUS; s <= RADIUS; ++s)
#pragma unroll
                    for (int t = -RADIUS; t <= RADIUS; ++t) {
                        const float p = patch[(s + RADIUS) * PATCH + t + RADIUS];
                        const float difference = p * (sample(own, g, y + s, x + t, k) -
                                                      sample(others, g, v + s, u + t, k));
                        distance += difference * difference;
                    }
            const float weight = __expf(-distance);
            more.weights += weight;
            for (int k = 0; k < COLOURS; ++k)
                if (k < search.together) more.colours[k] += weight * sample(others, g, v, u, c + k);
        }
    sums.weights += more.weights;
    for (int k = 0; k < COLOURS; ++k) sums.colours[k] += more.colours[k];
}

// The pixels of the source that a block computes.
__device__ inline Box block_pixels(const Geometry& g)
{
    const int shift = valid_shift(search.radius + RADIUS);
    const int top = g.first + blockIdx.y * blockDim.y, left = blockIdx.x * blockDim.x;
    return {top + shift, left + shift, min((int)blockDim.y, g.last - top),
            min((int)blockDim.x, g.out_width - left)};
}

// The pixel of a thread; none if the block has fewer pixels than threads.
__device__ inline Box thread_pixel(const Box& block)
{
    const bool any = (int)threadIdx.y < block.rows && (int)threadIdx.x < block.columns;
    return {block.top + (int)threadIdx.y, block.left + (int)threadIdx.x, any, any};
}

// Where its first colour goes, in the output and in scratch.
__device__ inline size_t place_of(const Box& pixel, const Geometry& g)
{
    const int shift = valid_shift(search.radius + RADIUS);
    return output_offset(g, pixel.top - shift, pixel.left - shift);
}

// The sums that the launch before left in scratch.
__device__ inline Sums resume(const float* weights, const float* weighted, size_t place)
{
    Sums sums = {weights[place]};
    for (int k = 0; k < COLOURS; ++k)
        if (k < search.together) sums.colours[k] = weighted[place + k];
    return sums;
}

// Leave them for the next launch.
__device__ inline void keep(const Sums& sums, float* weights, float* weighted, size_t place)
{
    weights[place] = sums.weights;
    for (int k = 0; k < COLOURS; ++k)
        if (k < search.together) weighted[place + k] = sums.colours[k];
}

// Write the mean: rounded to nearest even, saturated.
__device__ inline void write(const Sums& sums, Sample* output, size_t place)
{
    for (int k = 0; k < COLOURS; ++k) {
        if (k >= search.together) break;
        const float mean = sums.colours[k] / sums.weights;
#if SAMPLE_BITS == 32
        output[place + k] = mean;
#else
        output[place + k] = (Sample)fminf(rintf(mean), SAMPLE_MAX);
#endif
    }
}

// Alpha stays as it is.
__device__ inline void copy_alpha(
    const Sample* source, Sample* output, const Geometry& g, const Box& pixel)
{
    const int alpha = colours(g);
    if (alpha < g.channels)
        output[place_of(pixel, g) + alpha] = fetch(source, g, pixel.top, pixel.left, alpha);
}

// Z, from partition `first` up to `last`.
extern "C" __global__ void nlm_global_weights(
    const Sample* source, Sample* output, const float* patch, float* weights, Geometry g, int first,
    int last)
{
    const Box pixel = thread_pixel(block_pixels(g));
    if (pixel.rows == 0) return;
    const size_t place = place_of(pixel, g);
    for (int c = 0; c < colours(g); c += search.together) {
        Sums sums = {first == 0 ? 0 : weights[place + c]};
        for (int step = first; step < last; ++step)
            compare<1>(sums, source, source, patch, g, pixel.top, pixel.left, c,
                    candidates(g, step, pixel));
        weights[place + c] = sums.weights;
    }
}

// The mean, when Z is known.
extern "C" __global__ void nlm_global_mean(
    const Sample* source, Sample* output, const float* patch, float* weights, float* weighted,
    Geometry g, int first, int last)
{
    const Box pixel = thread_pixel(block_pixels(g));
    if (pixel.rows == 0) return;
    for (int c = 0; c < colours(g); c += search.together) {
        const size_t place = place_of(pixel, g) + c;
        Sums sums = {};
        if (first > 0) sums = resume(weights, weighted, place);
        for (int step = first; step < last; ++step)
            compare<1>(sums, source, source, patch, g, pixel.top, pixel.left, c,
                    candidates(g, step, pixel));
        sums.weights = weights[place];
        if (last < partitions(g))
            keep(sums, weights, weighted, place);
        else
            write(sums, output, place);
    }
    copy_alpha(source, output, g, pixel);
}

// Go through partitions `first` up to `last`: each is read into shared memory, behind the patches of the
// block.
__device__ inline void walk(
    float* memory, const Sample* source, Sample* output, float* weights, float* weighted,
    const Geometry& g, int first, int last)
{
    const Box block = block_pixels(g), pixel = thread_pixel(block);
    for (int c = 0; c < colours(g); c += search.together) {
        const size_t place = place_of(pixel, g) + c;
        const Part own = load(memory, source, g, grown(block), c);
        Sums sums = {};
        if (pixel.rows > 0 && first > 0) sums = resume(weights, weighted, place);
        for (int step = first; step < last; ++step) {
            const Box box = grown(candidates(g, step, block));
            const Part others = load(memory + own.size(), source, g, box, c);
            if (pixel.rows > 0)
                compare<PATCH>(sums, own, others, constant_weights, g, pixel.top, pixel.left, c,
                        candidates(g, step, pixel));
            __syncthreads();  // before the next partition takes the place of this one
        }
        if (pixel.rows == 0) continue;
        if (last < partitions(g))
            keep(sums, weights, weighted, place);
        else
            write(sums, output, place);
    }
    if (pixel.rows > 0) copy_alpha(source, output, g, pixel);
}

extern "C" __global__ void nlm_host_partitions(
    const Sample* source, Sample* output, float* weights, float* weighted, Geometry g, int first,
    int last)
{
    extern __shared__ float memory[];
    walk(memory, source, output, weights, weighted, g, first, first + 1);
}

extern "C" __global__ void nlm_shared(
    const Sample* source, Sample* output, float* weights, float* weighted, Geometry g, int first,
    int last)
{
    extern __shared__ float memory[];
    walk(memory, source, output, weights, weighted, g, first, last);
}

#endif
