// Records and counts what a kernel does to memory, in place of checks.h: the compiler calls the functions
// at the end for every read and write (-fsanitize=thread, without the compiler's own library) and for every
// piece of code without a branch (-fsanitize-coverage=trace-pc).
//
// A warp's lanes run one after the other here. Accesses of different lanes belong to one request of the
// warp if they come from the same instruction, in the same laps of the loops that lanes may leave at different
// times (see translation.py), and each lane executes it for the same time since the last barrier: that is what lanes
// in lockstep do. A warp's requests are counted as soon as another warp runs.
namespace emulator {
namespace checks {

struct Record {
    uint64_t value;
    uint32_t site, offset;
    uint16_t thread;
    uint8_t event, region, bytes;
    uint16_t lap;
};
struct Known {
    const void* from;
    int region, entry;
};

constexpr int MOST_KNOWN = 4096;
constexpr unsigned MOST_ROWS = 1 << 17;
constexpr unsigned TURN = 4096;  // accesses of a lane before the others have theirs
// How often each lane has executed it, and the row behind that of the last time.
static unsigned times[MOST_ENTRIES][WARP], after[MOST_ENTRIES][WARP];
static uint64_t laps[MOST_THREADS];  // in which laps of which loops each thread is
static Known known[MOST_KNOWN];
static Record* records;
static uint64_t record_count, record_room, barriers, accesses_left, most_accesses;
static int64_t unfinished[MOST_THREADS];  // the record of a write that has not happened yet, or -1
static unsigned wanted_block, rows_used, accesses_of_turn;
static unsigned first_wanted, end_wanted;  // threads whose events are recorded
static int only_region;                    // if not negative, writes to this one are recorded and nothing else
static Record copied[MOST_THREADS];        // the last read of device memory of each other thread
static bool active, recording;
static const char* const ENOUGH = "it does more than can be traced";

extern "C" char __ehdr_start __attribute__((visibility("hidden")));

QUIET inline uint32_t site_of(const void* from) { return (const char*)from - &__ehdr_start - 1; }

// Count the requests of the warp that ran.
CALLED inline void flush()
{
    static bool is_new[MOST_ENTRIES];
    bool is_any = false;
    for (int i = 0; i < entry_count; ++i) {
        Entry& entry = entries[i];
        const bool may = rows[i].used && may_be_part(entry);
        is_new[i] = may && !seen[i];
        is_any |= may;
        if (is_new[i]) {
            seen[i] = true;
            of_block[i] = without_counts(entry);
        }
        for (unsigned k = 0; k < rows[i].used; ++k) count_row(may ? of_block[i] : entry, rows[i].at[k]);
    }
    if (is_any) find_pairs(is_new);
    for (int i = 0; i < entry_count; ++i) {
        rows[i].used = 0;
        memset(times[i], 0, sizeof times[i]);
        memset(after[i], 0, sizeof after[i]);
    }
    rows_used = 0;
}

// End the launch: this is all that there is room or time for.
CALLED inline void stop()
{
    lost = true;
    active = recording = false;  // leaving has branches as well
    block->fault = ENOUGH;
    leave(WAITING);
}

QUIET inline void finish_write(unsigned thread)
{
    const int64_t number = unfinished[thread];
    if (number < 0) return;
    Record& record = records[number];
    memcpy(&record.value, regions[record.region].start + record.offset, record.bytes < 8 ? record.bytes : 8);
    unfinished[thread] = -1;
}

CALLED inline void record(Event event, const void* from, int region, uint32_t offset, size_t bytes)
{
    const unsigned thread = current->number;
    finish_write(thread);
    if (record_count == record_room) {
        stop();
        return;
    }
    Record& made = records[record_count];
    made = {0, site_of(from), offset, (uint16_t)thread, (uint8_t)event, (uint8_t)region, (uint8_t)bytes,
        (uint16_t)(laps[thread] >> 48)};
    if (event == READ && offset != OUTSIDE)
        memcpy(&made.value, regions[region].start + offset, bytes < 8 ? bytes : 8);
    if (event == WRITE) unfinished[thread] = record_count;
    ++record_count;
}

QUIET inline bool is_wanted(unsigned thread)
{
    return only_region < 0 && thread >= first_wanted && thread < end_wanted;
}

// Of other threads only copies to shared memory are recorded: a write, and the read before it.
QUIET inline void record_copy(Event event, const void* from, int region, uint32_t offset, size_t bytes)
{
    const unsigned thread = current->number;
    if (event == READ && (regions[region].space == GLOBAL || regions[region].space == TEXTURE)) {
        copied[thread] = {0, site_of(from), offset, (uint16_t)thread, READ, (uint8_t)region, (uint8_t)bytes};
        return;
    }
    if (event != WRITE || regions[region].space != SHARED) return;
    const Record read = copied[thread];
    if (read.bytes) {
        record(READ, from, read.region, read.offset, read.bytes);
        if (recording) records[record_count - 1].site = read.site;
    }
    if (recording) record(event, from, region, offset, bytes);
}

CALLED inline void record_access(Event event, const void* from, int region, uint32_t offset, size_t bytes)
{
    if (only_region >= 0) {
        if (event == WRITE && region == only_region) record(event, from, region, offset, bytes);
    } else if (is_wanted(current->number)) {
        record(event, from, region, offset, bytes);
    } else {
        record_copy(event, from, region, offset, bytes);
    }
}

QUIET inline int find_region(const unsigned char* at)
{
    for (int i = 0; i < region_count; ++i)
        if (at >= regions[i].start && at < regions[i].start + regions[i].bytes) return i;
    return -1;
}

CALLED inline int find_entry(const void* from, int region, Event event, size_t bytes)
{
    const uint32_t site = site_of(from);
    for (int i = 0; i < entry_count; ++i)
        if (!is_pair[i] && entries[i].site == site && entries[i].region == region && entries[i].event == event) return i;
    if (entry_count == MOST_ENTRIES) {
        lost = true;
        return -1;
    }
    Entry& made = entries[entry_count];
    made = {};
    made.site = site;
    made.region = region;
    made.event = event;
    made.bytes = bytes;
    return entry_count++;
}

QUIET inline Row* new_row(Rows& own, uint64_t lap)
{
    if (own.used == own.room) {
        const unsigned room = own.room ? 2 * own.room : 16;
        Row* const more = (Row*)realloc((void*)own.at, room * sizeof(Row));
        if (!more) {
            lost = true;
            return nullptr;
        }
        own.at = more;
        own.room = room;
    }
    ++rows_used;
    Row* const made = own.at + own.used++;
    made->lap = lap;
    made->lanes = 0;
    return made;
}

// The number of the first row of a lap, beginning at one, that the lane is not in; or of a new one.
QUIET inline unsigned free_row(const Rows& own, unsigned number, unsigned lane, uint64_t lap)
{
    for (; number < own.used; ++number)
        if (own.at[number].lap == lap && !(own.at[number].lanes >> lane & 1)) break;
    return number;
}

// The request that an access belongs to: the next one of its lap that the lane has not taken part in.
QUIET inline Row* row_of(int entry, unsigned lane, uint64_t lap)
{
    Rows& own = rows[entry];
    unsigned& next = after[entry][lane];
    unsigned number = free_row(own, next, lane, lap);
    if (number == own.used && times[entry][lane] < next) number = free_row(own, 0, lane, lap);  // left out before
    ++times[entry][lane];
    next = number + 1;
    return number < own.used ? own.at + number : new_row(own, lap);
}

CALLED inline void access(Event event, const void* from, int region, uint32_t offset, size_t bytes)
{
    const unsigned thread = current->number;
    if (thread != last_thread) {
        if (thread / WARP != last_thread / WARP || (thread < last_thread && rows_used > TURN)) flush();
        last_thread = thread;
        accesses_of_turn = 0;
    }
    if (rows_used >= MOST_ROWS) flush();
    Known& cell = known[((uintptr_t)from * 31 + region) % MOST_KNOWN];
    if (cell.from != from || cell.region != region || entries[cell.entry].event != event) {
        const int entry = find_entry(from, region, event, bytes);
        if (entry < 0) return;
        cell = {from, region, entry};
    }
    const unsigned lane = thread % WARP;
    Row* const row = row_of(cell.entry, lane, laps[thread]);
    if (!row) return;
    row->lanes |= 1u << lane;
    row->offsets[lane] = offset;
    if (recording) record_access(event, from, region, offset, bytes);
    if (!--accesses_left) stop();
    if (++accesses_of_turn >= TURN) {
        accesses_of_turn = 0;
        leave(READY);
    }
}

CALLED inline void at_address(Event event, const void* pointer, size_t bytes, const void* from)
{
    if (!active || !current) return;
    const int region = find_region((const unsigned char*)pointer);
    if (region < 0) return;  // the thread's own variables, and the emulator's
    access(event, from, region, (const unsigned char*)pointer - regions[region].start, bytes);
}

QUIET inline void begin_block(unsigned number)
{
    flush();
    finish_vectors();
    block_number = number;
    recording = active && number == wanted_block;
    last_thread = 0;
    for (int64_t& each : unfinished) each = -1;
    for (Record& each : copied) each.bytes = 0;
    memset(laps, 0, sizeof laps);
}

// A loop that lanes may leave at different times. Its laps are parts of those of the loop around it.
class Loop {
public:
    CALLED explicit Loop(unsigned place) : lap(&laps[current->number]), outer(*lap), number(place) {}
    CALLED void turn() { *lap = (outer ^ (number += 1u << 16)) * 0x9E3779B97F4A7C15u; }
    CALLED ~Loop() { *lap = outer; }

private:
    uint64_t *lap, outer, number;  // of the turn above, and of the loop in the source below
};

// The first region is the dynamic shared memory.
QUIET inline void dynamic_memory(void* memory, size_t bytes)
{
    regions[0] = {(const unsigned char*)memory, bytes, nullptr, nullptr, SHARED};
}

QUIET inline void arrive(const Gate&) {}
// The last thread to come to a gate waits as well, so that the lanes of its warp go on together.
QUIET inline void opened(const Gate& gate)
{
    if (!active) return;
    if (&gate >= block->gates && &gate < block->gates + 16) flush();
    if (current->state != DONE) leave(READY);
}

CALLED inline void stop_here()
{
    if (!active) return;
    ++barriers;
    if (recording && is_wanted(current->number)) record(BARRIER, __builtin_return_address(0), 0, 0, 0);
}

QUIET inline void touch(const void*, size_t) {}

// In place of tex2D. A fetch outside the texture is one as well, but of no sector. Textures do not
// change while a kernel runs: to the compiler it is a function of its arguments, which it keeps in registers.
template <typename T>
CALLED __attribute__((const)) T fetch(cudaTextureObject_t texture, float x, float y)
{
    const int column = texel(x, texture->columns, texture->addressing);
    const int row = texel(y, texture->rows, texture->addressing);
    const bool exists = column >= 0 && row >= 0;
    const size_t number = exists ? (size_t)row * texture->columns + column : 0;
    const int region = active && current ? find_region((const unsigned char*)texture->texels) : -1;
    if (region >= 0)
        access(READ, __builtin_return_address(0), region, exists ? number * sizeof(T) : OUTSIDE, sizeof(T));
    return exists ? ((const T*)texture->texels)[number] : T();
}

}  // namespace checks
}  // namespace emulator

#define tex2D emulator::checks::fetch
#define __syncthreads() \
    (emulator::checks::stop_here(), emulator::meet(emulator::block->gates[0], emulator::block->live))

#define CALLBACK extern "C" __attribute__((visibility("default"))) QUIET
#define FROM __builtin_return_address(0)

// Begin to count, and to record the block `wanted`, if it is one; all ends at `most` accesses. Of the block
// the threads from `first` to before `end` are recorded, or only the writes to `only`, if it is not negative.
CALLBACK int trace_begin(const emulator::checks::Region* given, int count, unsigned wanted,
    emulator::checks::Record* records, uint64_t room, uint64_t most, unsigned first, unsigned end, int only)
{
    using namespace emulator::checks;
    if (count >= MOST_REGIONS) return 0;
    for (int i = 0; i < count; ++i) regions[i + 1] = given[i];
    region_count = count + 1;
    entry_count = 0;
    block_number = ~0u;
    begin_vectors();
    memset((void*)known, 0, sizeof known);
    emulator::checks::records = records;
    record_room = room;
    accesses_left = most_accesses = most;
    record_count = barriers = rows_used = 0;
    wanted_block = wanted;
    first_wanted = first;
    end_wanted = end;
    only_region = only;
    lost = false;
    active = true;
    return 1;
}

// End it: the number of entries and of records, of barriers that threads came to, whether some of all
// that had no room, the number of parts, and of accesses.
CALLBACK const emulator::checks::Entry* trace_end(uint64_t* numbers)
{
    using namespace emulator::checks;
    flush();
    finish_vectors();
    if (record_room)
        for (unsigned i = 0; i < emulator::MOST_THREADS; ++i) finish_write(i);
    active = recording = false;
    numbers[0] = entry_count;
    numbers[1] = record_count;
    numbers[2] = barriers;
    numbers[3] = lost;
    numbers[4] = part_count;
    numbers[5] = most_accesses - accesses_left;
    return entries;
}

// The instructions that were parts of wider ones in the block that was recorded.
CALLBACK const emulator::checks::Part* trace_parts() { return emulator::checks::parts; }

// Give back the rows, and the stacks that this library has on this thread of the host.
CALLBACK void trace_release()
{
    for (emulator::checks::Rows& each : emulator::checks::rows) {
        free((void*)each.at);
        each = {};
    }
    emulator::release_block();
}

#define WATCHED(NAME, BYTES, EVENT) \
    CALLBACK void __tsan_##NAME(void* at) { emulator::checks::at_address(emulator::checks::EVENT, at, BYTES, FROM); }
#define WATCHED_BOTH(BYTES)              \
    WATCHED(read##BYTES, BYTES, READ)    \
    WATCHED(write##BYTES, BYTES, WRITE)  \
    WATCHED(unaligned_read##BYTES, BYTES, READ) \
    WATCHED(unaligned_write##BYTES, BYTES, WRITE)
WATCHED_BOTH(1)
WATCHED_BOTH(2)
WATCHED_BOTH(4)
WATCHED_BOTH(8)
WATCHED_BOTH(16)
CALLBACK void __tsan_read_range(void* at, size_t n)
{
    emulator::checks::at_address(emulator::checks::READ, at, n, FROM);
}
CALLBACK void __tsan_write_range(void* at, size_t n)
{
    emulator::checks::at_address(emulator::checks::WRITE, at, n, FROM);
}
CALLBACK void __tsan_init() {}
CALLBACK void __tsan_func_entry(void*) {}
CALLBACK void __tsan_func_exit() {}
CALLBACK void __sanitizer_cov_trace_pc()
{
    using namespace emulator;
    if (!checks::recording || !current || !checks::is_wanted(current->number)) return;
    const unsigned char* const here = (const unsigned char*)__builtin_frame_address(0);
    if (here < block->stacks || here >= block->stacks + (size_t)MOST_THREADS * STACK) return;
    checks::record(checks::BRANCH, FROM, 0, 0, 0);
}
#undef CALLBACK
#undef FROM
