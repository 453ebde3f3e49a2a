// The noise of volumes from their finest details: order statistics over blocks of two voxels along each axis.
//
//   mean(b)   = sum of the voxels of b / 2^axes
//   edges(b)  = root of the sum of squares of its details along one axis alone, 0 if there is one axis
//   detail(b) = |sum of the voxels, times -1 for each odd index|              each detail over the root of 2^axes
//
// so that white noise has one variance in all details. An axis of one voxel is left out. A block counts if it is at
// least as bright as the average one, and its edges are no stronger than those of a share of those blocks. haar_digit
// finds the two middle details and the two middle means of the blocks that count; shared/mri_sigma.py has the same
// numbers, bit by bit, on the host.
//
// The k-th smallest of many numbers, without sorting: count how often each value of the leading 11 bits occurs, choose
// the one in which rank k lies, and go on with the next bits among the numbers that begin like that. A launch for each
// three digits of edges, details and means; the block that ends last chooses.
//
// kernel      does                                                launch, with a row of the grid for each component
// haar        means, edges and details of all blocks, a thread each    any number of blocks, of THREADS threads
// haar_digit  one digit, `pass` from 0 to 5                            as above; details and means from pass 3 on
#ifndef THREADS
#define THREADS 256
#endif

#define RANKS 4    // searches in one pass: the two middle details and the two middle means
#define BITS 11
#define BINS (1 << BITS)
#define SLACK 1e-9  // sums differ in their last bits by their order: as bright as the average is meant within this

// Blocks along z, y and x, voxels from one to the next, and whether an axis has more than one voxel.
struct Blocks {
    int depth, height, width, stride, deep, high, wide;

    __device__ inline int count() const { return depth * height * width; }
};

// The searches in one component; all is 0 before haar.
struct Search {
    unsigned int counts[RANKS][BINS];
    unsigned int known[RANKS];  // the digits so far
    unsigned int rank[RANKS];   // among the numbers that begin with them
    double sum;                 // of all means
    unsigned int largest;       // magnitude of a mean, as bits of a float
    unsigned int strongest;     // edges of a block that counts, ordered
    unsigned int done;          // blocks of threads
    unsigned int spare;
};

static_assert(sizeof(Search) == 32824, "noise.py allocates as many bytes");

// Bits in the order of the numbers.
__device__ inline unsigned int ordered(float value)
{
    const unsigned int bits = __float_as_uint(value);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

__device__ inline float number(unsigned int order)
{
    return __uint_as_float(order >> 31 ? order & 0x7fffffffu : ~order);
}

__device__ inline double square(double value) { return __dmul_rn(value, value); }

// `whole` has the components of each voxel side by side; the other arrays have one component after the other.
extern "C" __global__ void haar(
    const float* whole, float* means, float* edges, float* details, Search* searches, Blocks blocks, int height,
    int width, int components)
{
    __shared__ double sums[THREADS];
    __shared__ unsigned int largest;
    const int component = blockIdx.y, axes = blocks.deep + blocks.high + blocks.wide;
    const double size = 1 << axes;
    const size_t own = (size_t)component * blocks.count();
    double sum = 0;
    if (threadIdx.x == 0) largest = 0;
    __syncthreads();
    for (int b = blockIdx.x * THREADS + threadIdx.x; b < blocks.count(); b += gridDim.x * THREADS) {
        const int z = b / (blocks.width * blocks.height) * blocks.stride;
        const int y = b / blocks.width % blocks.height * blocks.stride, x = b % blocks.width * blocks.stride;
        double band[8];  // by whether it is odd along z, y and x
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int k = i >> 2 & blocks.deep, j = i >> 1 & blocks.high, l = i & blocks.wide;
            band[i] = whole[(((size_t)(z + k) * height + y + j) * width + x + l) * components + component];
        }
#pragma unroll
        for (int axis = 4; axis > 0; axis >>= 1) {
            if (!(axis == 4 ? blocks.deep : axis == 2 ? blocks.high : blocks.wide)) continue;
#pragma unroll
            for (int i = 0; i < 8; ++i)
                if (!(i & axis)) {
                    const double low = band[i], high = band[i + axis];
                    band[i] = low + high;
                    band[i + axis] = low - high;
                }
        }
        double strength = 0;
        if (axes > 1) {
            if (blocks.wide) strength = square(band[1]);
            if (blocks.high) strength = __dadd_rn(strength, square(band[2]));
            if (blocks.deep) strength = __dadd_rn(strength, square(band[4]));
        }
        const int odd = 4 * blocks.deep + 2 * blocks.high + blocks.wide;
        double detail = band[7];
#pragma unroll
        for (int i = 1; i < 7; ++i)
            if (i == odd) detail = band[i];
        const float mean = (float)(band[0] / size);
        means[own + b] = mean;
        edges[own + b] = (float)sqrt(strength / size);
        details[own + b] = (float)(fabs(detail) / sqrt(size));
        sum += mean;
        atomicMax(&largest, __float_as_uint(fabsf(mean)));
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x > 0) return;
    atomicAdd(&searches[component].sum, sums[0]);
    atomicMax(&searches[component].largest, largest);
}

// Bits of a number: those known before a pass, and those that it finds.
struct Digit {
    int known, bits;

    __device__ inline explicit Digit(int number) : known(number * BITS), bits(number == 2 ? 32 - 2 * BITS : BITS) {}
    // A shift by all 32 bits is not defined.
    __device__ inline bool begins(unsigned int order, unsigned int with) const
    {
        return known == 0 || order >> (32 - known) == with;
    }
    __device__ inline int of(unsigned int order) const { return order >> (32 - known - bits) & ((1 << bits) - 1); }
};

// Choose the bin in which rank r lies; by one thread. `sums` has the counts of BINS / THREADS bins each.
__device__ inline void choose(
    Search& search, const unsigned int* sums, int r, bool begins, bool middle, double share, int bits)
{
    const unsigned int* counts = search.counts[r];
    if (begins) {
        unsigned int all = 0;
        for (int t = 0; t < THREADS; ++t) all += sums[t];
        if (all == 0) return;  // all values are NaN
        search.rank[r] = middle ? (all - 1 + r % 2) / 2 : (unsigned int)(share * (all - 1));
    }
    unsigned int rank = search.rank[r];
    int bin = 0;
    for (int t = 0; t < THREADS - 1 && rank >= sums[t]; ++t) {
        rank -= sums[t];
        bin += BINS / THREADS;
    }
    while (bin < BINS - 1 && rank >= counts[bin]) rank -= counts[bin++];
    search.known[r] = search.known[r] << bits | bin;
    search.rank[r] = rank;
}

// found[4 c + 0, 1] are the two middle details of component c, and [2, 3] the two middle means.
extern "C" __global__ void __launch_bounds__(THREADS) haar_digit(
    const float* means, const float* edges, const float* details, Search* searches, float* found, int size, int pass,
    double share)
{
    __shared__ unsigned int counts[RANKS][BINS];
    __shared__ unsigned int sums[RANKS][THREADS];
    __shared__ bool is_last;
    Search& search = searches[blockIdx.y];
    const bool middle = pass >= 3;
    const Digit digit(pass % 3);
    const int ranks = middle ? RANKS : 1;
    const auto tally = [&](int r, unsigned int order) {
        if (digit.begins(order, search.known[r])) atomicAdd(&counts[r][digit.of(order)], 1u);
    };
    for (int bin = threadIdx.x; bin < ranks * BINS; bin += THREADS) counts[0][bin] = 0;
    __syncthreads();
    const double least = search.sum / size - SLACK * __uint_as_float(search.largest);
    const size_t own = (size_t)blockIdx.y * size;
    for (int b = blockIdx.x * THREADS + threadIdx.x; b < size; b += gridDim.x * THREADS) {
        const float mean = means[own + b];
        if (!(mean >= least)) continue;
        const unsigned int edge = ordered(edges[own + b]);
        if (!middle) {
            tally(0, edge);
        } else if (edge <= search.strongest) {
            const unsigned int detail = ordered(details[own + b]), order = ordered(mean);
            for (int r = 0; r < RANKS; ++r) tally(r, r < 2 ? detail : order);
        }
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < ranks * BINS; bin += THREADS)
        if (counts[0][bin]) atomicAdd(&search.counts[0][bin], counts[0][bin]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(&search.done, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();  // counts of a component share cache lines with what this block has read of another
    for (int r = 0; r < ranks; ++r) {
        unsigned int sum = 0;
        for (int i = 0; i < BINS / THREADS; ++i) sum += search.counts[r][threadIdx.x * (BINS / THREADS) + i];
        sums[r][threadIdx.x] = sum;
    }
    __syncthreads();
    const int r = threadIdx.x;
    if (r < ranks) choose(search, sums[r], r, pass % 3 == 0, middle, share, digit.bits);
    __syncthreads();
    // The next pass begins with zeros.
    for (int bin = threadIdx.x; bin < ranks * BINS; bin += THREADS) search.counts[0][bin] = 0;
    if (threadIdx.x == 0) search.done = 0;
    if (pass % 3 < 2 || r >= ranks) return;
    if (middle)
        found[RANKS * blockIdx.y + r] = number(search.known[r]);
    else
        search.strongest = search.known[r];
    search.known[r] = 0;
}
