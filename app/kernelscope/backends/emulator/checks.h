// Watches what a kernel does to memory: the compiler calls the functions at the end for every read and
// write, because it takes this for a program to look for races in (-fsanitize=thread). None of the
// compiler's own library is linked.
//
// Found are reads and writes outside all arrays, reads of cells that nothing has written, indices beyond
// the declared size of an array, and accesses of two threads to one cell of which at least one is a
// write and that no barrier orders. Each thread counts the barriers it passed, and knows how far those
// it met were at that time. Of the readers of a cell, the last two are remembered.
namespace emulator {
namespace checks {

#define QUIET __attribute__((no_sanitize("thread"), no_sanitize("undefined")))

// The order of kernelscope.traffic.trace.MemorySpace.
enum Space { GLOBAL, CONSTANT, SHARED, TEXTURE };
enum Kind { OUTSIDE, UNINITIALISED, RACE_OF_WRITES, RACE_WITH_READ, INDEX };

// An array. written: a byte for each of its bytes, 0 while nothing has been written there. read: bytes
// that were read of it in this launch.
struct Region {
    const unsigned char* start;
    size_t bytes;
    unsigned char* written;
    uint64_t read;
    int space;
};
struct Cell {
    unsigned writer, write_clock, reader[2], read_clock[2];
};
// What was found at one instruction in one array; block and thread are the first ones, `other` is the
// other thread of a race, in the block `other_block`.
struct Finding {
    uint64_t instruction, count;
    int64_t offset;
    int kind, region, bytes, write;
    unsigned block, thread, other_block, other;
    const char* file;  // of an index; else null
    int line;
};

constexpr int MOST_REGIONS = 64, MOST_FINDINGS = 64;
inline Region regions[MOST_REGIONS];
inline Cell* cells[MOST_REGIONS];
inline Finding findings[MOST_FINDINGS];
inline int region_count, finding_count;
inline unsigned block_number;
inline const Gate* gate_of[MOST_THREADS];
inline unsigned clock_of[MOST_THREADS];

extern "C" char __ehdr_start __attribute__((visibility("hidden")));
extern "C" char _end __attribute__((visibility("hidden")));

QUIET inline void forget(int region)
{
    memset((void*)cells[region], 0, regions[region].bytes * sizeof(Cell));
}

QUIET inline void begin_block(unsigned number)
{
    block_number = number;
    if (!block->known) block->known = (unsigned(*)[MOST_THREADS])calloc(MOST_THREADS, sizeof *block->known);
    for (int i = 0; i < region_count; ++i) {
        const bool shared = regions[i].space == SHARED;
        if (shared) memset(regions[i].written, 0, regions[i].bytes);
        if (shared || number == 0) forget(i);
    }
    for (unsigned i = 0; i < block->count; ++i) {
        gate_of[i] = nullptr;
        clock_of[i] = 1;
        memset(block->known[i], 0, block->count * sizeof block->known[i][0]);
    }
}

// The first region is the dynamic shared memory; its cells are those of the last launch.
QUIET inline void dynamic_memory(void* memory, size_t bytes)
{
    if (regions[0].bytes != bytes) {
        free(regions[0].written);
        free(cells[0]);
        regions[0].written = (unsigned char*)calloc(bytes + 1, 1);
        cells[0] = (Cell*)calloc(bytes + 1, sizeof(Cell));
    }
    regions[0].start = (const unsigned char*)memory;
    regions[0].bytes = bytes;
    regions[0].space = SHARED;
}

QUIET inline void arrive(const Gate& gate) { gate_of[current->number] = &gate; }

QUIET inline void opened(const Gate& gate)
{
    static unsigned met[MOST_THREADS];
    unsigned all[MOST_THREADS] = {}, count = 0;
    for (unsigned i = 0; i < block->count; ++i)
        if (gate_of[i] == &gate) met[count++] = i;
    for (unsigned i = 0; i < count; ++i) {
        for (unsigned j = 0; j < block->count; ++j)
            if (block->known[met[i]][j] > all[j]) all[j] = block->known[met[i]][j];
    }
    for (unsigned i = 0; i < count; ++i) all[met[i]] = clock_of[met[i]]++;
    for (unsigned i = 0; i < count; ++i) {
        memcpy(block->known[met[i]], all, block->count * sizeof all[0]);
        gate_of[met[i]] = nullptr;
    }
}

QUIET inline Finding& report(Kind kind, int region, const void* instruction)
{
    static Finding spare;
    const uint64_t place = (const char*)instruction - &__ehdr_start - 1;
    for (int i = 0; i < finding_count; ++i) {
        Finding& old = findings[i];
        if (old.kind != kind || old.region != region || old.instruction != place) continue;
        ++old.count;
        return spare;
    }
    Finding& made = finding_count < MOST_FINDINGS ? findings[finding_count++] : spare;
    made = {place, 1, 0, kind, region, 0, 0, block_number, current->number, 0, 0, nullptr, 0};
    return made;
}

// Whether this thread has seen what another one did.
QUIET inline bool ordered(unsigned other, unsigned clock)
{
    if (!other) return true;
    const unsigned number = (other - 1) % MOST_THREADS;
    if ((other - 1) / MOST_THREADS != block_number) return false;
    return number == current->number || block->known[current->number][number] >= clock;
}

QUIET inline void describe(Finding& found, size_t offset, int bytes, bool write, unsigned other)
{
    found.offset = offset;
    found.bytes = bytes;
    found.write = write;
    if (!other) return;
    found.other_block = (other - 1) / MOST_THREADS;
    found.other = (other - 1) % MOST_THREADS;
}

QUIET inline void access_cell(int region, size_t offset, int bytes, bool write, const void* from)
{
    Cell& cell = cells[region][offset];
    const unsigned self = block_number * MOST_THREADS + current->number + 1;
    const unsigned clock = clock_of[current->number];
    if (!ordered(cell.writer, cell.write_clock))
        describe(report(write ? RACE_OF_WRITES : RACE_WITH_READ, region, from), offset, bytes, write,
            cell.writer);
    if (write) {
        for (int i = 0; i < 2; ++i)
            if (!ordered(cell.reader[i], cell.read_clock[i]))
                describe(report(RACE_WITH_READ, region, from), offset, bytes, write, cell.reader[i]);
        cell = {self, clock, {0, 0}, {0, 0}};
        return;
    }
    if (cell.reader[0] != self) {
        cell.reader[1] = cell.reader[0];
        cell.read_clock[1] = cell.read_clock[0];
        cell.reader[0] = self;
    }
    cell.read_clock[0] = clock;
}

template <typename T>
QUIET bool part_of(const T& variable, const unsigned char* at)
{
    return at >= (const unsigned char*)&variable && at < (const unsigned char*)(&variable + 1);
}

QUIET __attribute__((noinline)) inline void access(const void* pointer, size_t bytes, bool write, const void* from)
{
    if (!block || !current) return;
    const unsigned char* const at = (const unsigned char*)pointer;
    const unsigned char* const here = (const unsigned char*)__builtin_frame_address(0);
    const unsigned char* const stacks_end = block->stacks + (size_t)MOST_THREADS * STACK;
    if (here < block->stacks || here >= stacks_end) return;  // the scheduler
    int nearest = -1;
    for (int i = 0; i < region_count; ++i) {
        Region& region = regions[i];
        if (at < region.start || at + bytes > region.start + region.bytes) {
            if (at + 4096 >= region.start && at < region.start + region.bytes + 4096) nearest = i;
            continue;
        }
        const size_t offset = at - region.start;
        bool known_bytes = true;
        if (!write) region.read += bytes;
        for (size_t k = 0; k < bytes; ++k) {
            known_bytes &= region.written[offset + k];
            if (write) region.written[offset + k] = 1;
            access_cell(i, offset + k, bytes, write, from);
        }
        if (!write && !known_bytes) describe(report(UNINITIALISED, i, from), offset, bytes, false, 0);
        return;
    }
    const bool own = (at >= block->stacks && at < stacks_end)
        || (at >= (const unsigned char*)&__ehdr_start && at < (const unsigned char*)&_end)
        || (at >= (const unsigned char*)block && at < (const unsigned char*)(block + 1))
        || part_of(block, at) || part_of(current, at)
        || part_of(block_size, at) || part_of(grid_size, at);  // libraries share them
    if (own) return;
    describe(report(OUTSIDE, nearest, from), nearest < 0 ? 0 : at - regions[nearest].start, bytes, write, 0);
    block->fault = "a kernel reads or writes outside its arrays";
    leave(WAITING);  // before the access: it might end the process
}

QUIET __attribute__((noinline)) inline void touch(const void* at, size_t bytes)
{
    access(at, bytes, false, __builtin_return_address(0));
}

}  // namespace checks
}  // namespace emulator

// In place of memcpy and memmove, which the compiler does not mark.
QUIET __attribute__((noinline)) inline void* watched_copy(void* to, const void* from, size_t bytes)
{
    if (!bytes) return to;
    emulator::checks::access(from, bytes, false, __builtin_return_address(0));
    emulator::checks::access(to, bytes, true, __builtin_return_address(0));
    return memmove(to, from, bytes);
}
namespace std {
using ::watched_copy;
}

#ifndef CHECKS_ELSEWHERE  // in an object that is linked
#define CALLED extern "C" EXPORTED QUIET
#define FROM __builtin_return_address(0)

// The arrays of the next launches, behind the dynamic shared memory; false if there is no room.
CALLED int checks_begin(const emulator::checks::Region* given, int count)
{
    using namespace emulator::checks;
    for (int i = 1; i < region_count; ++i) free(cells[i]);
    region_count = 1;
    finding_count = 0;
    if (count >= MOST_REGIONS) return 0;
    for (; region_count <= count; ++region_count) {
        regions[region_count] = given[region_count - 1];
        cells[region_count] = (Cell*)calloc(regions[region_count].bytes + 1, sizeof(Cell));
        if (!cells[region_count]) return 0;
    }
    return 1;
}
// Bytes that the launch has read of arrays in global memory.
CALLED uint64_t checks_read()
{
    using namespace emulator::checks;
    uint64_t sum = 0;
    for (int i = 0; i < region_count; ++i)
        if (regions[i].space == GLOBAL) sum += regions[i].read;
    return sum;
}
CALLED int checks_findings(emulator::checks::Finding* copies)
{
    memcpy((void*)copies, emulator::checks::findings, sizeof emulator::checks::findings);
    return emulator::checks::finding_count;
}

#define WATCHED(NAME, BYTES, WRITE) \
    CALLED void __tsan_##NAME(void* at) { emulator::checks::access(at, BYTES, WRITE, FROM); }
#define WATCHED_BOTH(BYTES)                     \
    WATCHED(read##BYTES, BYTES, false)          \
    WATCHED(write##BYTES, BYTES, true)          \
    WATCHED(unaligned_read##BYTES, BYTES, false) \
    WATCHED(unaligned_write##BYTES, BYTES, true)
WATCHED_BOTH(1)
WATCHED_BOTH(2)
WATCHED_BOTH(4)
WATCHED_BOTH(8)
WATCHED_BOTH(16)
CALLED void __tsan_read_range(void* at, size_t n) { emulator::checks::access(at, n, false, FROM); }
CALLED void __tsan_write_range(void* at, size_t n) { emulator::checks::access(at, n, true, FROM); }
CALLED void __tsan_init() {}
CALLED void __tsan_func_entry(void*) {}
CALLED void __tsan_func_exit() {}

// An index beyond the declared size of an array; `place` is the compiler's description of where.
CALLED void __ubsan_handle_out_of_bounds(void* place, void* index)
{
    using namespace emulator::checks;
    struct Place {
        const char* file;
        unsigned line, column;
    };
    Finding& found = report(INDEX, -1, FROM);
    found.offset = (int64_t)index;
    found.file = ((const Place*)place)->file;
    found.line = ((const Place*)place)->line;
}
#undef CALLED
#undef FROM
#endif
#define memcpy watched_copy
#define memmove watched_copy
