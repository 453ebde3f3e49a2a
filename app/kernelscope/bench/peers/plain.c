/* The filters of level serial as plain loops in C, as a baseline for their cost on this machine.

   One thread; compiled with -O2 and without vector instructions (plain_c.py). Pixels whose mask
   lies inside the image are computed without a test for the border, the others from a copy of
   their cells. Images are grey, greyscale's are RGB.

   SAMPLE is uint8_t, uint16_t or float, WHITE the largest integer sample, 0 for float. With SIDE the
   compiler knows the side of masks and patches; without, it is an argument, as it is to the levels. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef SAMPLE
#define SAMPLE uint8_t
#define WHITE 255
#endif

#ifdef SIDE
#define KNOW(side) (side) = SIDE
#else
#define KNOW(side) (void)0
#endif

/* Sums of samples, and of their squares. */
#if WHITE == 255
typedef int number, square;
#elif WHITE
typedef int number;
typedef int64_t square;
#else
typedef double number, square;
#endif

enum { REFLECT, MIRROR, NEAREST, CONSTANT, WRAP };  /* as kernelscope.spec.borders.Border */
enum { KEEP, CLIP, ABSOLUTE, OFFSET };              /* treatment of negative results */

struct image {
    const SAMPLE *samples;
    SAMPLE *output;
    int height, width, border;
};

static int modulo(int i, int n)
{
    i %= n;
    return i < 0 ? i + n : i;
}

/* Returns the index in [0, n) that stands for i, or -1 if the cell is 0. */
static int border_index(int i, int n, int border)
{
    if (i >= 0 && i < n)
        return i;
    switch (border) {
    case NEAREST:
        return i < 0 ? 0 : n - 1;
    case WRAP:
        return modulo(i, n);
    case REFLECT:
        i = modulo(i, 2 * n);
        return i < n ? i : 2 * n - 1 - i;
    case MIRROR:
        if (n == 1)
            return 0;
        i = modulo(i, 2 * n - 2);
        return i < n ? i : 2 * n - 2 - i;
    default:
        return -1;
    }
}

/* Copies the cells around a pixel, row by row. Never part of its callers, nor made for their radius:
   that would depend on the filters in this file, and change how the loops of all are compiled. */
__attribute__((noinline, noipa))
static void gather(const struct image *image, int y, int x, int radius, SAMPLE *window)
{
    for (int s = -radius; s <= radius; s++) {
        int yy = border_index(y + s, image->height, image->border);
        for (int t = -radius; t <= radius; t++) {
            int xx = border_index(x + t, image->width, image->border);
            *window++ = yy < 0 || xx < 0 ? 0 : image->samples[(size_t)yy * image->width + xx];
        }
    }
}

/* Returns a result as a sample: rounded to nearest, ties to even, and saturated. */
static inline SAMPLE settle(double value, int negative)
{
#if WHITE
    long level = lrint(value);
    if (negative == ABSOLUTE)
        level = labs(level);
    else if (negative == OFFSET)
        level += (WHITE + 1) / 2;
    return level < 0 ? 0 : level > WHITE ? WHITE : level;
#else
    if (negative == ABSOLUTE)
        return fabs(value);
    if (negative == OFFSET)
        return value + 0.5;
    return negative == CLIP && value < 0 ? 0 : value;
#endif
}

/* Runs RESULT for each pixel, with `cells` at the first cell of its mask and `pitch` samples
   from one row of the mask to the next. */
#define EACH_PIXEL(image, side, RESULT)                                                        \
    do {                                                                                       \
        int height_ = (image)->height, width_ = (image)->width, radius_ = (side) / 2;          \
        SAMPLE window_[(side) * (side)];                                                       \
        for (int y = 0; y < height_; y++) {                                                    \
            int inside = y >= radius_ && y < height_ - radius_ && width_ > 2 * radius_;        \
            int left = inside ? radius_ : width_, right = inside ? width_ - radius_ : width_;  \
            SAMPLE *output = (image)->output + (size_t)y * width_;                             \
            for (int x = 0; x < width_; x = x + 1 == left ? right : x + 1) {                   \
                const SAMPLE *cells = window_;                                                 \
                ptrdiff_t pitch = (side);                                                      \
                gather(image, y, x, radius_, window_);                                         \
                output[x] = RESULT;                                                            \
            }                                                                                  \
            const SAMPLE *cells = (image)->samples + (ptrdiff_t)(y - radius_) * width_;        \
            ptrdiff_t pitch = width_;                                                          \
            for (int x = left; x < right; x++, cells++)                                        \
                output[x] = RESULT;                                                            \
        }                                                                                      \
    } while (0)

/* Custom mask, weighted mean and Laplace ------------------------------------------------- */

static inline number weigh(const SAMPLE *cells, ptrdiff_t pitch, const number *weights, int side)
{
    number total = 0;
    for (int s = 0; s < side; s++)
        for (int t = 0; t < side; t++)
            total += weights[s * side + t] * cells[s * pitch + t];
    return total;
}

void mask(const struct image *image, const number *weights, int side, double divisor, int negative)
{
    KNOW(side);
    EACH_PIXEL(image, side, settle(weigh(cells, pitch, weights, side) / divisor, negative));
}

/* Means ---------------------------------------------------------------------------------- */

static inline number add_up(const SAMPLE *cells, ptrdiff_t pitch, int side)
{
    number total = 0;
    for (int s = 0; s < side; s++)
        for (int t = 0; t < side; t++)
            total += cells[s * pitch + t];
    return total;
}

void mean(const struct image *image, int side)
{
    KNOW(side);
    double count = side * side;
    EACH_PIXEL(image, side, settle(add_up(cells, pitch, side) / count, KEEP));
}

static inline SAMPLE choose(number total, int count, SAMPLE pixel, double limit)
{
    double apart = total - (number)count * pixel;
    return fabs(apart) <= limit ? settle(total / (double)count, KEEP) : pixel;
}

void threshold_mean(const struct image *image, int side, double threshold)
{
    KNOW(side);
    int count = side * side, radius = side / 2;
    double limit = threshold * count;
    EACH_PIXEL(
        image,
        side,
        choose(add_up(cells, pitch, side), count, cells[radius * (pitch + 1)], limit));
}

/* Medians -------------------------------------------------------------------------------- */

static inline void copy(const SAMPLE *cells, ptrdiff_t pitch, int side, SAMPLE *copied)
{
    for (int s = 0; s < side; s++)
        for (int t = 0; t < side; t++)
            *copied++ = cells[s * pitch + t];
}

/* Hoare's selection. */
static inline SAMPLE middle(SAMPLE *cells, int count)
{
    int rank = (count - 1) / 2, low = 0, high = count - 1;
    while (low < high) {
        SAMPLE pivot = cells[(low + high) / 2];
        int i = low, j = high;
        while (i <= j) {
            while (cells[i] < pivot)
                i++;
            while (pivot < cells[j])
                j--;
            if (i <= j) {
                SAMPLE kept = cells[i];
                cells[i++] = cells[j];
                cells[j--] = kept;
            }
        }
        if (rank <= j)
            high = j;
        else if (rank >= i)
            low = i;
        else
            break;
    }
    return cells[rank];
}

static inline SAMPLE sorted_middle(SAMPLE *cells, int count)
{
    for (int last = count - 1; last > 0; last--)
        for (int i = 0; i < last; i++)
            if (cells[i] > cells[i + 1]) {
                SAMPLE kept = cells[i];
                cells[i] = cells[i + 1];
                cells[i + 1] = kept;
            }
    return cells[(count - 1) / 2];
}

void median(const struct image *image, int side)
{
    KNOW(side);
    SAMPLE copied[side * side];
    EACH_PIXEL(image, side, (copy(cells, pitch, side, copied), middle(copied, side * side)));
}

void median_bubble(const struct image *image, int side)
{
    SAMPLE copied[side * side];
    EACH_PIXEL(
        image, side, (copy(cells, pitch, side, copied), sorted_middle(copied, side * side)));
}

/* Sobel ---------------------------------------------------------------------------------- */

enum { SUM, MAGNITUDE, DIRECTIONS, SINGLE, WINNER, ANGLE };

static inline number magnitude(number value)
{
#if WHITE
    return abs(value);
#else
    return fabs(value);
#endif
}

static inline double steepness(const SAMPLE *cells, ptrdiff_t pitch, int form)
{
    const SAMPLE *level = cells + pitch, *below = cells + 2 * pitch;
    number a = cells[0], b = cells[1], c = cells[2], d = level[0], f = level[2];
    number g = below[0], h = below[1], i = below[2];
    number gx = magnitude(c + 2 * f + i - a - 2 * d - g);
    number gy = magnitude(g + 2 * h + i - a - 2 * b - c);
    if (form == SUM)
        return gx + gy;
    if (form == MAGNITUDE)
        return sqrt((double)gx * gx + (double)gy * gy);
    number rising = magnitude(b + 2 * c + f - d - 2 * g - h);
    number falling = magnitude(f + 2 * i + h - b - 2 * a - d);
    number straight = gx > gy ? gx : gy, diagonal = rising > falling ? rising : falling;
    return straight > diagonal ? straight : diagonal;
}

void sobel(const struct image *image, int form)
{
    EACH_PIXEL(image, 3, settle(steepness(cells, pitch, form), KEEP));
}

/* Returns the angle of a gradient, 0 to `turn`, which is 0 again. */
static inline double angle_of(double gx, double gy, double turn)
{
    double across = fabs(gx), down = fabs(gy), large = across > down ? across : down;
    if (large == 0)
        return 0;
    double place = atan((across > down ? down : across) / large) * (turn / (2 * M_PI));
#if WHITE
    place = rint(place);
#endif
    if (down > across)
        place = turn / 4 - place;
    if (gx < 0)
        place = turn / 2 - place;
    if (gy < 0)
        place = turn - place;
    return place < turn ? place : 0;
}

/* `direction` counts the masks N, NE, E, ... of form SINGLE; `turn` is the least value above white,
   or 1 for float. */
static inline double direction_of(
    const SAMPLE *cells, ptrdiff_t pitch, int form, int direction, double turn)
{
    const SAMPLE *level = cells + pitch, *below = cells + 2 * pitch;
    number a = cells[0], b = cells[1], c = cells[2], d = level[0], f = level[2];
    number g = below[0], h = below[1], i = below[2];
    number n = a + 2 * b + c - (g + 2 * h + i), ne = b + 2 * c + f - (d + 2 * g + h);
    number e = c + 2 * f + i - (a + 2 * d + g), se = f + 2 * i + h - (b + 2 * a + d);
    if (form == ANGLE)
        return angle_of(e, -n, turn);
    if (form == SINGLE) {
        int mask = direction % 4;
        number found = mask == 0 ? n : mask == 1 ? ne : mask == 2 ? e : se;
        return direction < 4 ? found : -found;
    }
    number found[8] = {n, ne, e, se, -n, -ne, -e, -se}, most = 0;
    int winner = 0;
    for (int mask = 0; mask < 8; mask++)
        if (found[mask] > most) {
            most = found[mask];
            winner = mask + 1;
        }
    return winner * turn / 8 - (WHITE && winner);
}

void sobel_direction(const struct image *image, int form, int direction, double turn)
{
    EACH_PIXEL(
        image, 3, settle(direction_of(cells, pitch, form, direction, turn), CLIP));
}

/* Rotating mask -------------------------------------------------------------------------- */

/* Returns the sum of the most even of nine windows; of several, the one with the least sum. */
static inline number most_even(const SAMPLE *cells, ptrdiff_t pitch)
{
    square best_variance = 0;
    number best = 0;
    for (int window = 0; window < 9; window++) {
        const SAMPLE *corner = cells + window / 3 * pitch + window % 3;
        number total = 0;
        square squares = 0;
        for (int s = 0; s < 3; s++)
            for (int t = 0; t < 3; t++) {
                number value = corner[s * pitch + t];
                total += value;
                squares += (square)value * value;
            }
        square variance = 9 * squares - (square)total * total;
        if (window == 0 || variance < best_variance || (variance == best_variance && total < best)) {
            best_variance = variance;
            best = total;
        }
    }
    return best;
}

void rotating_mask(const struct image *image)
{
    EACH_PIXEL(image, 5, settle(most_even(cells, pitch) / 9.0, KEEP));
}

/* Greyscale ------------------------------------------------------------------------------ */

/* `less` thousandths are taken off before rounding. */
void greyscale(const struct image *image, double less)
{
    const SAMPLE *pixel = image->samples;
    size_t count = (size_t)image->height * image->width;
    for (size_t i = 0; i < count; i++, pixel += 3) {
#if WHITE
        image->output[i] = lrint((299 * pixel[0] + 587 * pixel[1] + 114 * pixel[2] - less) / 1000);
#else
        (void)less;
        image->output[i] = 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2];
#endif
    }
}

/* Non-local means ------------------------------------------------------------------------ */

static inline float distance(const float *here, const float *there, ptrdiff_t pitch,
                             const float *squares, int side)
{
    float total = 0;
    for (int s = 0; s < side; s++)
        for (int t = 0; t < side; t++) {
            float difference = here[s * pitch + t] - there[s * pitch + t];
            total += squares[s * side + t] * difference * difference;
        }
    return total;
}

/* `squares` are the weights of the cells of a patch; multiplied by `scale`, a distance is the binary
   logarithm of its weight; `reach` is the search radius, at least the image size for the whole image. */
int nlm(const struct image *image, const float *squares, int side, int reach, int whole, float scale)
{
    KNOW(side);
    int height = image->height, width = image->width, half = side / 2;
    int margin = whole ? half : half + reach;
    ptrdiff_t pitch = width + 2 * margin;
    float *extended = malloc((size_t)(height + 2 * margin) * pitch * sizeof *extended);
    if (!extended)
        return 0;
    for (int y = 0; y < height + 2 * margin; y++) {
        int yy = border_index(y - margin, height, image->border);
        for (int x = 0; x < pitch; x++) {
            int xx = border_index(x - margin, width, image->border);
            int outside = yy < 0 || xx < 0;
            extended[y * pitch + x] = outside ? 0 : image->samples[(size_t)yy * width + xx];
        }
    }
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            /* Candidates, and the first cell of the pixel's patch, in the extended image. */
            int top = whole ? half : y + half, left = whole ? half : x + half;
            int bottom = whole ? half + height : top + 2 * reach + 1;
            int right = whole ? half + width : left + 2 * reach + 1;
            const float *patches = extended - half * pitch - half;
            const float *here = patches + (y + margin) * pitch + x + margin;
            double sum = 0, weights = 0;
            for (int yy = top; yy < bottom; yy++)
                for (int xx = left; xx < right; xx++) {
                    const float *there = patches + yy * pitch + xx;
                    float weight = exp2f(scale * distance(here, there, pitch, squares, side));
                    weights += weight;
                    sum += weight * extended[yy * pitch + xx];
                }
            image->output[(size_t)y * width + x] = settle((float)sum / (float)weights, KEEP);
        }
    free(extended);
    return 1;
}

/* MRI non-local means, of one component and one sigma -------------------------------------- */

static inline double cube_distance(const float *here, const float *there, ptrdiff_t plane,
                                   ptrdiff_t pitch, const int *patch)
{
    double total = 0;
    for (int s = 0; s < 2 * patch[0] + 1; s++)
        for (int r = 0; r < 2 * patch[1] + 1; r++)
            for (int t = 0; t < 2 * patch[2] + 1; t++) {
                ptrdiff_t cell = s * plane + r * pitch + t;
                float difference = here[cell] - there[cell];
                total += difference * difference;
            }
    return total;
}

/* `extended` is the volume mirrored by `margins`; margins and radii have three values, one per axis.
   Multiplied by `strength`, a distance is the binary logarithm of its weight. */
void mri_nlm(const float *extended, float *output, const int *shape, const int *margins,
             const int *search, const int *patch, double strength, float sigma, int rician)
{
    int depth = shape[0], height = shape[1], width = shape[2];
    ptrdiff_t pitch = width + 2 * margins[2], plane = pitch * (height + 2 * margins[1]);
    ptrdiff_t corner = patch[0] * plane + patch[1] * pitch + patch[2];
    for (int z = 0; z < depth; z++)
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                ptrdiff_t place = (z + margins[0]) * plane + (y + margins[1]) * pitch;
                const float *here = extended + place + x + margins[2];
                double sum = 0, weights = 0;
                for (int dz = -search[0]; dz <= search[0]; dz++)
                    for (int dy = -search[1]; dy <= search[1]; dy++)
                        for (int dx = -search[2]; dx <= search[2]; dx++) {
                            const float *there = here + dz * plane + dy * pitch + dx;
                            double apart = strength * cube_distance(here - corner, there - corner,
                                                                    plane, pitch, patch);
                            double weight = exp2(apart);
                            weights += weight;
                            sum += weight * (rician ? *there * *there : *there);
                        }
                double mean = sum / weights;
                if (rician)
                    mean = mean > 2 * sigma * sigma ? sqrt(mean - 2 * sigma * sigma) : 0;
                *output++ = mean;
            }
}
