// Directions of edges: the forms of Sobel that do not only say how steep an edge is.
//
// FORM 3  one of the eight masks alone, not below 0: DIRECTION 0 to 7 is N, NE, E, SE, S, SW, W, NW
//      4  which of them is the largest: the n-th gives n eighths of white, the first of several; else 0
//      5  the angle atan2(gy, gx): a turn has as many steps as samples have values, or is 1 for floats
//      6  that angle as a hue, and sqrt(gx^2 + gy^2) as brightness: three samples for a pixel
//
// gx is the result of mask E, gy that of S: rows count downwards, so angles go clockwise to the eye. They
// are rounded in the first eighth of a turn, in doubles, and mirrored from there by whole steps: no gradient
// is so near to a bound between two steps that an arctangent could err about it (app/kernelscope/filters/sobel/cpu.py
// has the figures). Float images have their sums in doubles too, which decides between almost equal masks.
#ifndef KERNELSCOPE_DIRECTIONS
#define KERNELSCOPE_DIRECTIONS
#include "levels.cuh"

#ifndef DIRECTION
#define DIRECTION 0
#endif

#if SAMPLE_BITS == 32
typedef double Exact;
#define TURN 1.0
#else
typedef int Exact;
#define TURN (SAMPLE_MAX + 1.0)
#endif

// Results of the masks N, NE, E and SE; those of the other four are the opposite.
struct Found {
    Exact n, ne, e, se;
};

//   a b d
//   e   h
//   i j k
__device__ inline Found all_masks(
    Exact a, Exact b, Exact d, Exact e, Exact h, Exact i, Exact j, Exact k)
{
    return {
        (a + 2 * b + d) - (i + 2 * j + k), (b + 2 * d + h) - (e + 2 * i + j),
        (d + 2 * h + k) - (a + 2 * e + i), (h + 2 * k + j) - (b + 2 * a + e)};
}

// The angle of a gradient, from 0 to TURN, which is 0 again.
__device__ inline double turn_of(double gx, double gy)
{
    const double across = fabs(gx), down = fabs(gy), large = fmax(across, down);
    if (large == 0) return 0;
    double place = atan(fmin(across, down) / large) * (TURN / 6.283185307179586);
#if SAMPLE_BITS < 32
    place = rint(place);
#endif
    if (down > across) place = TURN / 4 - place;
    if (gx < 0) place = TURN / 2 - place;
    if (gy < 0) place = TURN - place;
    return place;
}

// Forms 3 to 5 of the results of the masks.
template <typename Number>
__device__ inline Number direction_of(const Found& found)
{
#if FORM == 3
    const Exact masks[4] = {found.n, found.ne, found.e, found.se};
    const Exact response = DIRECTION < 4 ? masks[DIRECTION % 4] : -masks[DIRECTION % 4];
    return (Number)(response > 0 ? response : 0);
#elif FORM == 4
    const Exact masks[8] = {
        found.n, found.ne, found.e, found.se, -found.n, -found.ne, -found.e, -found.se};
    Exact most = 0;
    int winner = 0;
#pragma unroll
    for (int n = 0; n < 8; ++n)
        if (masks[n] > most) {
            most = masks[n];
            winner = n + 1;
        }
    return (Number)(winner * (TURN / 8) - (SAMPLE_BITS < 32 && winner > 0));
#else
    const Number angle = (Number)turn_of(found.e, -found.n);
    return angle < (Number)TURN ? angle : 0;
#endif
}

#if FORM == 6
// A pixel's colour. Of its channels, the one with the longest gradient counts, the first of several; alpha
// stays as it is.
struct Paint {
    static constexpr int COLOURS = CHANNELS - (CHANNELS % 2 == 0);
    static constexpr int SAMPLES = 3 + (CHANNELS % 2 == 0);

    double x = 0, y = 0, square = 0;
    Sample alpha = 0;

    // Look at channel c.
    template <typename Cells>
    __device__ inline void add(const Cells& cells, int c)
    {
        if (c == COLOURS) {
            alpha = cells.row(0)[0];
            return;
        }
        const auto above = cells.row(-1), here = cells.row(0), below = cells.row(1);
        const Found found = all_masks(
            above[-1], above[0], above[1], here[-1], here[1], below[-1], below[0], below[1]);
        const double gx = found.e, gy = -(double)found.n, squares = gx * gx + gy * gy;
        if (squares <= square) return;
        x = gx;
        y = gy;
        square = squares;
    }

    // Write red, green and blue, and alpha.
    __device__ inline void write(Sample* target) const
    {
        const double place = 6 * turn_of(x, y) / TURN;
        const int sector = (int)place;
#if SAMPLE_BITS == 32
        const double bright = fmin(sqrt(square), 3.4028234663852886e38);
        const double rising = bright * (place - sector), falling = bright * (sector + 1 - place);
#else
        const double bright = fmin(rint(sqrt(square)), (double)SAMPLE_MAX);
        const double rising = rint(bright * (place - sector));
        const double falling = rint(bright * (sector + 1 - place));
#endif
        for (int c = 0; c < 3; ++c) {
            const int from = (sector + 6 - 2 * c) % 6;  // the sector, counted from this colour
            target[c] =
                (Sample)(from % 5 == 0 ? bright : from == 1 ? falling : from == 4 ? rising : 0);
        }
        if (SAMPLES > 3) target[3] = alpha;
    }
};

// As for any filter (levels.cuh), but of all channels together.
template <typename Source>
__device__ inline void compute_pixel(
    const Source& source, Sample* output, const Geometry& g, Place place, Paint paint)
{
    const int y = place.y, x = place.x, rim = rim_of(source, g);
    if (x >= g.out_width || y >= g.last) return;
    const bool is_inside = rim <= x && x < g.out_width - rim && rim <= y && y < g.height - rim;
#pragma unroll 1
    for (int c = 0; c < CHANNELS; ++c)
        if (is_inside)
            paint.add(inside(source, g, y + SHIFT, x + SHIFT, c), c);
        else if (has_rim(source))
            paint.add(Rim<RADIUS, Source>(source, g, y + SHIFT, x + SHIFT, c, CHANNELS), c);
    paint.write(output + ((size_t)(y - g.output_row) * g.out_width + x) * Paint::SAMPLES);
}
#endif

#endif
