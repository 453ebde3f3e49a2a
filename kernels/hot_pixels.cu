// Hot pixels: of a hot sample, and of the 3 x 3 that demosaicing raised with it, each becomes a value on the line
// between the two next samples that are not mended.
//
// A sample is hot if it rises above the brightest of the 16 samples two pixels away by more than CONTRAST times
// the range of these, and is sharp or of one colour: see the module of the filter. Where a colour of a pixel is
// sharp, the others are mended with it if they are above all 24 samples around them. Dark samples, the hot ones of
// the negative, are mended alike. Doubles are computed in the order of the CPU code, without fused multiply-adds, so
// that both find the same samples.
//
// level         demonstrates                                       image
// single_block  one multiprocessor at work, the others idle        global
// global        many blocks, everything from global memory         global
// shared        a block reads its tile and halo just once          shared
// texture       the texture unit fetches and treats borders        texture
// tuned         as shared, but in colour a sample is judged once   global
//
// Launch: blocks of 32 x 8 threads stride over the output, a thread a pixel at a time (single_block: one
// block of 32 x 32).
// A sample takes 17 cached reads and about 50 operations where it is above or below those two pixels away, 12 and
// 30 mostly; in colour nine times as many, since each of the 3 x 3 around it may be hot. At best 1 read from and
// 1 write to device memory.
#ifndef CHANNELS
#define CHANNELS 1
#endif
#define COLOURS (CHANNELS < 3 ? 1 : 3)
#define RADIUS (COLOURS == 3 ? 3 : 2)
#include "common.cuh"
#include "levels.cuh"

// Shares of how far a hot sample rises.
#ifndef SHARP
#define SHARP 0.3
#endif
#ifndef COLOURED
#define COLOURED 0.12
#endif
#ifndef SPREAD
#define SPREAD 0.08
#endif

// Contrast, and how far hot samples rise at least.
__constant__ double limits[2];

// The brighter of two samples, or for dark ones (a SIGN of -1) the darker.
template <int SIGN>
__device__ inline Sample farther(Sample one, Sample other)
{
    return SIGN > 0 ? max(one, other) : min(one, other);
}

// Whether a sample is as far as another; false with NaN.
template <int SIGN>
__device__ inline bool as_far(Sample one, Sample other)
{
    return SIGN > 0 ? one >= other : one <= other;
}

// The brightest and the darkest of the samples two pixels from the one u rows below and v columns right of the
// pixel. Returns false if one is NaN; where only PEAKS matter, also if one is as far as the sample, at the first row
// that has one.
template <int SIGN, bool PEAKS, typename Cells>
__device__ inline bool look_around(const Cells& cells, int u, int v, Sample& high, Sample& low)
{
    const Sample middle = cells.row(u)[v];
    high = low = cells.row(u - 2)[v];
#pragma unroll Cells::ROWS
    for (int s = -2; s <= 2; ++s) {
        const auto row = cells.row(u + s);
        bool fits = true;
#pragma unroll Cells::COLUMNS
        for (int t = -2; t <= 2; t += s == -2 || s == 2 ? 1 : 4) {
            const Sample cell = row[v + t];
            fits &= PEAKS ? as_far<SIGN>(middle, cell) && cell != middle : cell == cell;
            high = max(high, cell);
            low = min(low, cell);
        }
        if (!fits) return false;
    }
    return true;
}

// How far from a sample of channel c the next ones are that are not mended, 1 or 2; 0 if it is not hot, or dark
// with a SIGN of -1. `up` is how far it rises or falls.
template <int SIGN, typename Channels, typename Cells>
__device__ inline int judge(
    const Channels& channels, const Cells& cells, int c, int u, int v, double& up)
{
    const Sample middle = cells.row(u)[v];
    Sample high, low;
    if (!look_around<SIGN, true>(cells, u, v, high, low)) return 0;
    const Sample nearest = SIGN > 0 ? high : low;
    // Contrast is 0.5 or more. Cards for games have few units for doubles, and noise has many peaks. Halves of
    // floats are exact, and do not overflow.
    if (SIGN * ((float)middle - (float)nearest) < 0.98f * (0.5f * high - 0.5f * low)) return 0;
    const double contrast = limits[0];
    up = SIGN * ((double)middle - nearest);
    if (!(up > limits[1] && up > contrast * ((double)high - low))) return 0;

    Sample beside = cells.row(u - 1)[v - 1], last = SIGN > 0 ? low : high;
#pragma unroll 1
    for (int i = 0; i < 9; ++i) {
        if (i == 4) continue;
        const Sample cell = cells.row(u + i / 3 - 1)[v + i % 3 - 1];
        if (!as_far<SIGN>(middle, cell)) return 0;
        beside = farther<SIGN>(beside, cell);
        last = farther<-SIGN>(last, cell);
    }
    const double first = farther<SIGN>(beside, nearest);
    if (SIGN * (beside - (middle - SIGN * up)) < SHARP * up
        && SIGN * (middle - first) > contrast * (SIGN * (first - last)))
        return 1;
#pragma unroll 1
    for (int k = 0; k < COLOURS; ++k) {
        if (k == c) continue;
        const auto others = channels(k);
        if (!look_around<SIGN, false>(others, u, v, high, low)) return 0;
        if (!(SIGN * ((double)others.row(u)[v] - (SIGN > 0 ? high : low)) <= COLOURED * up)) return 0;
    }
    return COLOURS == 3 ? 2 : 0;
}

// Whether the sample of channel c is above all around it, or below with a SIGN of -1, and another one of the pixel
// is sharp.
template <int SIGN, typename Channels, typename Cells>
__device__ inline bool joins(const Channels& channels, const Cells& cells, int c)
{
    const Sample middle = cells.row(0)[0];
#pragma unroll 1
    for (int s = -2; s <= 2; ++s) {
        const auto row = cells.row(s);
#pragma unroll 1
        for (int t = -2; t <= 2; ++t) {
            const Sample cell = row[t];
            if (s == 0 && t == 0) continue;
            if (!as_far<SIGN>(middle, cell) || cell == middle || fabs((double)cell) > 1e300) return false;
        }
    }
#pragma unroll 1
    for (int k = 0; k < COLOURS; ++k) {
        double up;
        if (k != c && judge<SIGN>(channels, channels(k), k, 0, 0, up) == 1) return true;
    }
    return false;
}

// Whether a sample, s rows above and t columns left of the pixel, is hot, or dark, and moved that with it: then
// `result` lies between the next samples that are not mended.
template <int SIGN, typename Channels, typename Cells>
__device__ inline bool mend(
    const Channels& channels, const Cells& cells, int c, int s, int t, Sample& result)
{
    const Sample pixel = cells.row(0)[0];
    if (!as_far<SIGN>(cells.row(-s)[-t], pixel)) return false;  // beside a hot one, none is brighter
    double up;
    int reach = judge<SIGN>(channels, cells, c, -s, -t, up);
    if (COLOURS == 3 && reach == 0 && s == 0 && t == 0 && joins<SIGN>(channels, cells, c)) {
        reach = 1;
        up = 0;
    }
    if (reach <= max(abs(s), abs(t))) return false;
    double nearest = 1e300, value = 0;
    const auto consider = [&](Sample first, Sample last, int place) {
        const double step = (double)last - first;
        if (fabs(step) >= nearest) return;
        nearest = fabs(step);
        const double share = (reach == 1 ? 0.5 : 0.25) * (reach + place);
        value = __dadd_rn(first, __dmul_rn(step, share));
    };
    consider(cells.row(-s - reach)[0], cells.row(reach - s)[0], s);
    consider(cells.row(0)[-t - reach], cells.row(0)[reach - t], t);
    if (s == 0 && t == 0) {
        consider(cells.row(-reach)[-reach], cells.row(reach)[reach], 0);
        consider(cells.row(-reach)[reach], cells.row(reach)[-reach], 0);
    }
    if (!(SIGN * (pixel - value) > SPREAD * up)) return false;
    result = (Sample)(SAMPLE_BITS == 32 ? value : rint(value));
    return true;
}

// Of several samples that mend this one, the first one decides.
template <typename Channels>
__device__ inline Sample mended(const Channels& channels, int c, const Geometry& g, int y, int x)
{
    const auto cells = channels(c);
    Sample result = cells.row(0)[0];
    const int reach = COLOURS == 3;
#pragma unroll 1
    for (int s = reach; s >= -reach; --s)
#pragma unroll 1
        for (int t = reach; t >= -reach; --t) {
            if (y < s || x < t || y - s >= g.height || x - t >= g.width) continue;
            if (mend<1>(channels, cells, c, s, t, result) || mend<-1>(channels, cells, c, s, t, result))
                return result;
        }
    return result;
}

template <typename Channels>
__device__ inline void write_pixel(Sample* target, const Channels& channels, const Geometry& g, int y, int x)
{
#pragma unroll 1
    for (int c = 0; c < COLOURS; ++c) target[c] = mended(channels, c, g, y, x);
    for (int c = COLOURS; c < CHANNELS; ++c) target[c] = channels(c).row(0)[0];  // alpha
}

struct HotPixels {};

// As for any filter (levels.cuh), but a thread sees all channels.
template <typename Source>
__device__ inline void compute_pixel(
    const Source& source, Sample* output, const Geometry& g, Place place, HotPixels)
{
    const int y = place.y, x = place.x, rim = rim_of(source, g);
    if (x >= g.out_width || y >= g.last) return;
    Sample* target = output + output_offset(g, y, x);
    if (rim <= x && x < g.out_width - rim && rim <= y && y < g.height - rim)
        write_pixel(target, [&](int c) { return inside(source, g, y, x, c); }, g, y, x);
    else if (has_rim(source))
        write_pixel(target, [&](int c) { return Rim<RADIUS, Source>(source, g, y, x, c, CHANNELS); }, g, y, x);
}

#if !TUNED
extern "C" __global__ void __launch_bounds__(1024)
    hot_pixels_single_block(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, HotPixels());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    hot_pixels_global(const Sample* source, Sample* output, Geometry g)
{
    compute(source, output, g, HotPixels());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    hot_pixels_shared(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    compute(Tiles{source, memory}, output, g, HotPixels());
}

extern "C" __global__ void __launch_bounds__(THREADS)
    hot_pixels_texture(cudaTextureObject_t source, Sample* output, Geometry g)
{
    compute(source, output, g, HotPixels());
}
#elif COLOURS == 3
// A tile, and for each pixel of the block and next to it a bit for each channel: whether that is hot,
// or a colour of the pixel sharp, so that it may be mended with that.
struct Judged : Tile {
    static constexpr int HOT_ROWS = BLOCK_ROWS + 2, HOT_COLUMNS = BLOCK_COLUMNS + 2;

    const unsigned char* hot;

    __device__ inline int place(int y, int x) const
    {
        return (y - top - 2) * HOT_COLUMNS + x - left - 2;
    }
};

struct JudgedTiles : Tiles {};

__device__ inline Judged begin(const JudgedTiles& tiles, const Geometry& g, Place place)
{
    unsigned char* hot = (unsigned char*)tiles.memory + Tile::ROWS * Tile::PITCH * sizeof(Sample);
    const Judged tile{load_tile(tiles.memory, tiles.source, g, place), hot};
    const int top = tile.top + 2, left = tile.left + 2;
    const int bottom = min(min(top + Judged::HOT_ROWS, g.last + 1), g.height);
    const int right = min(left + Judged::HOT_COLUMNS, g.width);
    for (int y = top + threadIdx.y; y < top + Judged::HOT_ROWS; y += BLOCK_ROWS)
        for (int x = left + threadIdx.x; x < left + Judged::HOT_COLUMNS; x += BLOCK_COLUMNS) {
            int bits = 0;
            const auto channels = [&](int c) { return inside(tile, g, y, x, c); };
#pragma unroll 1
            for (int c = 0; c < COLOURS && 0 <= y && y < bottom && 0 <= x && x < right; ++c) {
                double up;
                const auto cells = channels(c);
                int reach = judge<1>(channels, cells, c, 0, 0, up);
                if (reach == 0) reach = judge<-1>(channels, cells, c, 0, 0, up);
                if (reach > 0) bits |= reach == 1 ? (1 << COLOURS) - 1 : 1 << c;
            }
            hot[tile.place(y, x)] = bits;
        }
    __syncthreads();
    return tile;
}

__device__ inline void compute_pixel(
    const Judged& tile, Sample* output, const Geometry& g, Place place, HotPixels)
{
    const int y = place.y, x = place.x;
    if (x >= g.out_width || y >= g.last) return;
    int hot = 0;
#pragma unroll
    for (int s = -1; s <= 1; ++s)
#pragma unroll
        for (int t = -1; t <= 1; ++t) hot |= tile.hot[tile.place(y + s, x + t)];
    Sample* target = output + output_offset(g, y, x);
    const auto channels = [&](int c) { return inside(tile, g, y, x, c); };
#pragma unroll 1
    for (int c = 0; c < CHANNELS; ++c)
        target[c] = hot >> c & 1 ? mended(channels, c, g, y, x) : channels(c).row(0)[0];
}

extern "C" __global__ void __launch_bounds__(THREADS)
    hot_pixels_tuned(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    compute(JudgedTiles{{source, memory}}, output, g, HotPixels());
}
#else
// A hot sample mends itself alone: each is judged once anyway.
extern "C" __global__ void __launch_bounds__(THREADS)
    hot_pixels_tuned(const Sample* source, Sample* output, Geometry g)
{
    extern __shared__ __align__(16) unsigned char memory[];
    compute(Tiles{source, memory}, output, g, HotPixels());
}
#endif
