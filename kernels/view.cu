// A picture reduced to the size at which it is shown: the mean of each square of FACTOR pixels.
//
//   v(y, x) = (sum of the samples of a square + n / 2) / n, rounded down, for integers
//   v(y, x) = sum / n, added up in double, for floats
//
// where n is the number of pixels of the square inside of the picture: squares at the right and at
// the bottom may be cut off. Sums of 16 bits stay within 64.
//
// Launch: a thread for each sample of the result; FACTOR squared reads, one write.
#include "common.cuh"

#if SAMPLE_BITS == 32
typedef double Total;
#else
typedef unsigned long long Total;
#endif

extern "C" __global__ void view(
    const Sample* source, Sample* reduced, int height, int width, int channels, int factor)
{
    const int rows = (height + factor - 1) / factor, columns = (width + factor - 1) / factor;
    const int i = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= columns * channels || y >= rows) return;
    const int c = i % channels, left = i / channels * factor, top = y * factor;
    const int right = min(left + factor, width), bottom = min(top + factor, height);
    Total sum = 0;
    for (int yy = top; yy < bottom; ++yy)
        for (int xx = left; xx < right; ++xx)
            sum += source[((size_t)yy * width + xx) * channels + c];
    const Total n = (Total)(right - left) * (bottom - top);
#if SAMPLE_BITS == 32
    const Sample mean = (Sample)(sum / n);
#else
    const Sample mean = (Sample)((sum + n / 2) / n);
#endif
    reduced[(size_t)y * columns * channels + i] = mean;
}
