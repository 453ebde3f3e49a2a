// Accesses to words of shared memory that a GPU's compiler makes one of: reads or writes of neighbouring words, 8 or
// 16 bytes together. The host's compiler makes one for each word, and such requests for every second or fourth word
// would seem to have bank conflicts.
//
// A compiler has to prove where cells lie; here it is seen. Two instructions are taken for one if in a block every
// request of the first has a partner of the second, of the same lanes, and in each lane the second cell lies right
// behind the first, at an address that allows one access for both. A pair can itself have a partner: another pair or,
// since a GPU has no accesses of three words, a single word. An instruction is tried with the first partner that
// its first requests have. Whether it stays one is known at the end of the block; until then the requests are counted
// both ways. Smaller cells than words are left alone, since arrays of them often begin at any byte.
namespace emulator {
namespace checks {

constexpr int NARROWEST = 4, WIDEST = 16;

// Two instructions, or pairs of them; a number from MOST_ENTRIES on is that of a pair.
struct Pair {
    Entry counts;
    int first, second, leader;  // leader: the instruction whose cells lie first
    bool broken, taken;
    // For each warp, how many more requests of the first than of the second there were: requests are counted
    // when a warp's turn ends, which may be between the two.
    signed char ahead[MOST_THREADS / WARP];
};
// An instruction that is part of a wider one, whose first cells are those of the instruction at `leader`.
struct Part {
    uint32_t site, leader;
    uint8_t region, event, bytes;
};

static Pair pairs[MOST_ENTRIES];
static Entry of_block[MOST_ENTRIES];  // what those in shared memory did in this block
static bool seen[MOST_ENTRIES], taken[MOST_ENTRIES], is_pair[MOST_ENTRIES];
static Part parts[MOST_ENTRIES];
static int pair_count, part_count;

QUIET inline void begin_vectors()
{
    pair_count = part_count = 0;
    memset(seen, 0, sizeof seen);
    memset(taken, 0, sizeof taken);
    memset(is_pair, 0, sizeof is_pair);
}

QUIET inline bool may_be_part(const Entry& entry)
{
    return regions[entry.region].space == SHARED && entry.bytes >= NARROWEST && entry.bytes < WIDEST;
}

QUIET inline Entry without_counts(const Entry& entry)
{
    Entry made = {};
    made.site = entry.site;
    made.region = entry.region;
    made.event = entry.event;
    made.bytes = entry.bytes;
    return made;
}

QUIET inline void add(Entry& to, const Entry& from)
{
    to.accesses += from.accesses;
    to.requests += from.requests;
    to.sectors += from.sectors;
    to.needed += from.needed;
    to.wavefronts += from.wavefronts;
    to.ideal += from.ideal;
    to.block_sectors += from.block_sectors;
}

QUIET inline Entry& counts_of(int number)
{
    return number < MOST_ENTRIES ? of_block[number] : pairs[number - MOST_ENTRIES].counts;
}
QUIET inline int leader_of(int number)
{
    return number < MOST_ENTRIES ? number : pairs[number - MOST_ENTRIES].leader;
}
QUIET inline bool& taken_by_pair(int number)
{
    return number < MOST_ENTRIES ? taken[number] : pairs[number - MOST_ENTRIES].taken;
}

// Whether the requests of `second` ask for the cells right behind those of `first`. `ahead`: see Pair.
QUIET inline bool follows(int first, int second, signed char& ahead)
{
    const Rows &a = rows[leader_of(first)], &b = rows[leader_of(second)];
    const unsigned bytes = counts_of(first).bytes;
    if (!a.used && !b.used) return true;
    const unsigned old_a = ahead < 0, old_b = ahead > 0;  // those whose partners have been counted
    if (a.used < old_a || b.used < old_b) return false;
    const unsigned more_a = a.used - old_a, more_b = b.used - old_b;
    const unsigned both = more_a < more_b ? more_a : more_b;
    if (more_a > both + 1 || more_b > both + 1) return false;
    ahead = (signed char)(more_a - more_b);
    for (unsigned i = 0; i < both; ++i) {
        const Row &one = a.at[old_a + i], &other = b.at[old_b + i];
        if (one.lanes != other.lanes || one.lap != other.lap) return false;
        for (uint32_t left = one.lanes; left; left &= left - 1) {
            const int lane = __builtin_ctz(left);
            if (other.offsets[lane] != one.offsets[lane] + bytes || one.offsets[lane] % (2 * bytes)) return false;
        }
    }
    return true;
}

QUIET inline void count_pair(Pair& pair)
{
    const Rows& own = rows[pair.leader];
    for (unsigned i = 0; i < own.used; ++i) count_row(pair.counts, own.at[i]);
}

// Look for a partner of `bytes` among instructions that are `is_new` in the block, or pairs of them.
QUIET inline bool find_partner(int first, unsigned bytes, int start, int end, const bool* is_new)
{
    const Entry& own = counts_of(first);
    if (pair_count == MOST_ENTRIES) return false;
    for (int second = start; second < end; ++second) {
        if (second == first || (second < MOST_ENTRIES && !is_new[second]) || taken_by_pair(second)) continue;
        const Entry& other = counts_of(second);
        if (other.region != own.region || other.event != own.event || other.bytes != bytes) continue;
        signed char ahead = 0;
        if (!follows(first, second, ahead)) continue;
        Pair& made = pairs[pair_count++];
        made = {without_counts(own), first, second, leader_of(first)};
        made.ahead[last_thread / WARP] = ahead;
        made.counts.bytes *= 2;
        count_pair(made);
        taken_by_pair(first) = taken_by_pair(second) = true;
        return true;
    }
    return false;
}

// Take the requests of a warp into account that were counted for instructions that are new in the block.
QUIET inline void find_pairs(const bool* is_new)
{
    for (int i = 0; i < pair_count; ++i) {
        Pair& pair = pairs[i];
        pair.broken |= !follows(pair.first, pair.second, pair.ahead[last_thread / WARP]);
        if (!pair.broken) count_pair(pair);
    }
    int start = pair_count;
    for (int i = 0; i < entry_count; ++i)
        if (is_new[i] && !taken[i]) find_partner(i, entries[i].bytes, 0, entry_count, is_new);
    while (start < pair_count) {
        const int end = pair_count;
        for (int i = start; i < end; ++i) {
            const unsigned bytes = pairs[i].counts.bytes;
            const int number = MOST_ENTRIES + i;
            if (pairs[i].taken || bytes == WIDEST) continue;
            if (find_partner(number, bytes, MOST_ENTRIES + start, MOST_ENTRIES + end, is_new)) continue;
            if (bytes == 8 && pairs[i].counts.event == READ) find_partner(number, 4, 0, entry_count, is_new);
        }
        start = end;
    }
}

QUIET inline Entry* entry_of_pair(const Entry& counts)
{
    for (int i = 0; i < entry_count; ++i)
        if (is_pair[i] && entries[i].site == counts.site && entries[i].region == counts.region &&
            entries[i].event == counts.event && entries[i].bytes == counts.bytes)
            return entries + i;
    if (entry_count == MOST_ENTRIES) {
        lost = true;
        return nullptr;
    }
    is_pair[entry_count] = true;
    entries[entry_count] = without_counts(counts);
    return entries + entry_count++;
}

QUIET inline bool has_broken_part(const Pair& pair)
{
    return (pair.first >= MOST_ENTRIES && pairs[pair.first - MOST_ENTRIES].broken) ||
           (pair.second >= MOST_ENTRIES && pairs[pair.second - MOST_ENTRIES].broken);
}

// At the end of a block: add to the totals, pairs as one instruction, and keep the parts.
QUIET inline void finish_vectors()
{
    for (int i = 0; i < pair_count; ++i) {
        Pair& pair = pairs[i];
        pair.broken |= has_broken_part(pair);
        for (signed char ahead : pair.ahead) pair.broken |= ahead && !lost;  // the rest was not run
    }
    static int whole[2 * MOST_ENTRIES];  // the widest one that an instruction or a pair is part of, or -1
    const int count = entry_count;
    for (int i = 0; i < count; ++i) whole[i] = -1;
    for (int i = 0; i < pair_count; ++i) whole[MOST_ENTRIES + i] = -1;
    for (int i = pair_count - 1; i >= 0; --i) {  // those that have partners are behind their parts
        const Pair& pair = pairs[i];
        int& own = whole[MOST_ENTRIES + i];
        if (own < 0 && !pair.broken) {
            own = i;
            if (Entry* const entry = entry_of_pair(pair.counts)) add(*entry, pair.counts);
        }
        if (own >= 0) whole[pair.first] = whole[pair.second] = own;
    }
    part_count = 0;
    for (int i = 0; i < count; ++i) {
        if (!seen[i] || is_pair[i] || !may_be_part(entries[i])) continue;
        if (whole[i] < 0) {
            add(entries[i], of_block[i]);
        } else {
            const Entry& wide = pairs[whole[i]].counts;
            parts[part_count++] = {entries[i].site, wide.site, wide.region, wide.event, wide.bytes};
        }
    }
    pair_count = 0;
    memset(seen, 0, sizeof seen);
    memset(taken, 0, sizeof taken);
}

}  // namespace checks
}  // namespace emulator
