// Requests of warps: their sectors of device memory, and the turns that they take in shared and constant memory.
namespace emulator {
namespace checks {

// O2: long loops of these are not unrolled, as those of kernels are.
#define QUIET __attribute__((no_sanitize("thread"), no_sanitize_coverage, optimize("O2")))
#define CALLED QUIET __attribute__((noinline))

// The order of kernelscope.traffic.trace.Space and Event.
enum Space { GLOBAL, CONSTANT, SHARED, TEXTURE };
enum Event { READ, WRITE, BARRIER, BRANCH };

constexpr uint32_t OUTSIDE = ~0u;  // the offset of a texel that does not exist
constexpr int SECTOR = 32, BANKS = 32;

// An array. read_by, written_by: for each sector the number of the last block that did, plus one.
struct Region {
    const unsigned char* start;
    size_t bytes;
    unsigned *read_by, *written_by;
    int space;
};
// The totals of an instruction in an array: what all threads of all warps did there.
struct Entry {
    uint64_t accesses, requests, sectors, needed, wavefronts, ideal, block_sectors;
    uint32_t site;
    uint8_t region, event, bytes;
};
struct Row {
    uint64_t lap;
    uint32_t lanes, offsets[WARP];
};
struct Rows {
    Row* at;
    unsigned used, room;
};

constexpr int MOST_REGIONS = 64, MOST_ENTRIES = 4096;
static Region regions[MOST_REGIONS];
static Entry entries[MOST_ENTRIES];
static Rows rows[MOST_ENTRIES];
static int region_count, entry_count;
static unsigned block_number, last_thread;
static bool lost;

QUIET inline void sort(uint32_t* values, int count)
{
    for (int i = 1; i < count; ++i) {
        const uint32_t value = values[i];
        int j = i;
        for (; j && values[j - 1] > value; --j) values[j] = values[j - 1];
        values[j] = value;
    }
}

// Sectors of a request to device memory; `offsets` are in order.
QUIET inline void count_sectors(Entry& entry, const Region& region, const uint32_t* offsets, int count)
{
    unsigned* const last = entry.event == WRITE ? region.written_by : region.read_by;
    uint32_t next = 0;
    uint64_t end = 0, distinct = 0;
    for (int i = 0; i < count; ++i) {
        const uint64_t from = offsets[i] > end ? offsets[i] : end, to = (uint64_t)offsets[i] + entry.bytes;
        if (to > from) distinct += to - from;
        if (to > end) end = to;
        const uint32_t stop = (to - 1) / SECTOR + 1;
        uint32_t sector = offsets[i] / SECTOR;
        if (sector < next) sector = next;
        for (; sector < stop; ++sector) {
            ++entry.sectors;
            entry.block_sectors += last[sector] != block_number + 1;
            last[sector] = block_number + 1;
        }
        if (stop > next) next = stop;
    }
    entry.needed += (distinct + SECTOR - 1) / SECTOR;
}

// Turns that a request to shared memory takes: each bank gives one word at a time. A request of more than
// four bytes a lane is made by halves or quarters of the warp.
QUIET inline void count_banks(Entry& entry, const Row& row)
{
    const int words = (entry.bytes + 3) / 4, lanes = WARP / words;
    for (int first = 0; first < WARP; first += lanes) {
        uint32_t asked[WARP];
        int count = 0;
        for (int lane = first; lane < first + lanes; ++lane)
            if (row.lanes >> lane & 1)
                for (int k = 0; k < words; ++k) asked[count++] = row.offsets[lane] / 4 + k;
        if (!count) continue;
        sort(asked, count);
        unsigned char turns[BANKS] = {}, most = 0;
        for (int i = 0; i < count; ++i) {
            if (i && asked[i] == asked[i - 1]) continue;
            const unsigned char turn = ++turns[asked[i] % BANKS];
            if (turn > most) most = turn;
        }
        entry.wavefronts += most;
        ++entry.ideal;
    }
}

QUIET inline void count_row(Entry& entry, const Row& row)
{
    const Region& region = regions[entry.region];
    uint32_t offsets[WARP];
    int count = 0;
    for (uint32_t left = row.lanes; left; left &= left - 1) {
        const uint32_t offset = row.offsets[__builtin_ctz(left)];
        ++entry.accesses;
        if (offset != OUTSIDE) offsets[count++] = offset;
    }
    ++entry.requests;
    if (region.space == SHARED) {
        count_banks(entry, row);
        return;
    }
    sort(offsets, count);
    if (region.space != CONSTANT) count_sectors(entry, region, offsets, count);
    if (region.space == CONSTANT) {
        ++entry.ideal;
        for (int i = 0; i < count; ++i)
            entry.wavefronts += i == 0 || offsets[i] / 4 != offsets[i - 1] / 4;
    }
}

}  // namespace checks
}  // namespace emulator
