"""Figures of threads, warps, blocks and launches: traffic by memory space, reuse and branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from kernelscope.traffic.trace import (
    OUTSIDE,
    SECTOR,
    WARP,
    Counts,
    Event,
    MemorySpace,
    Scene,
    SourceLine,
    Trace,
)

# Requests of warps, put together from the accesses of their threads --------------------
#
# The lanes of a warp make one request where they execute the same instruction, in the same laps
# of loops that lanes may leave at different times, for the same time since the last barrier, as
# lanes in lockstep do. Instructions that are parts of a wider one make its requests together, see
# `PART`. See the CUDA programming guide on coalescing of accesses, and on the banks of shared
# memory.

BANKS = 32
_WORD = 4

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Requests:
    """The requests of a block, in no particular order: an entry of each array for each request."""

    array: Whole
    event: Whole
    space: Whole
    lanes: Whole
    sectors: Whole
    needed: Whole
    wavefronts: Whole
    ideal: Whole


def requests(trace: Trace) -> Requests:
    accesses = trace.records["event"] <= Event.WRITE
    records = trace.records[accesses]
    thread = records["thread"].astype(np.int64)
    phase = barriers_before(trace)[accesses]
    site, array, event = (records[name].astype(np.int64) for name in ("site", "array", "event"))
    lap = records["lap"].astype(np.int64)
    instruction = np.unique(joined(site, array, event, lap), return_inverse=True)[1].ravel()
    turn = occurrence(joined(thread, phase, instruction))
    offset, size = records["offset"].astype(np.int64), records["bytes"].astype(np.int64)
    site, width = trace.instructions(records)
    if len(trace.parts):
        instruction = np.unique(joined(site, array, event, lap), return_inverse=True)[1].ravel()
    _, first, of_access = np.unique(
        joined(thread // WARP, phase, instruction, turn), return_index=True, return_inverse=True
    )
    of_access = of_access.ravel()
    space = trace.scene.spaces().astype(np.int64)[array[first]]
    count = len(first)
    lanes = np.bincount(_first_of_pairs(of_access, thread), minlength=count)
    exists = records["offset"] != OUTSIDE
    cached = exists & np.isin(space[of_access], (MemorySpace.GLOBAL, MemorySpace.TEXTURE))
    banked = exists & (space[of_access] == MemorySpace.SHARED)
    constant = exists & (space[of_access] == MemorySpace.CONSTANT)
    sectors, needed = _sectors(of_access[cached], offset[cached], size[cached], count)
    wavefronts, ideal = _banks(
        of_access[banked],
        thread[banked] % WARP,
        offset[banked],
        size[banked],
        width[banked],
        count,
    )
    words = _first_of_pairs(of_access[constant], offset[constant] // _WORD)
    wavefronts += np.bincount(words, minlength=count)
    ideal += space == MemorySpace.CONSTANT
    return Requests(
        array[first],
        event[first],
        space,
        lanes.astype(np.int64),
        sectors,
        needed,
        wavefronts,
        ideal,
    )


def barriers_before(trace: Trace) -> Whole:
    """Return how many barriers its thread has passed before each record."""
    records = trace.records
    order = np.argsort(records["thread"], kind="stable")
    passed = np.cumsum(records["event"][order] == Event.BARRIER)
    threads = records["thread"][order]
    if not len(threads):
        return np.zeros(0, np.int64)
    begins = np.flatnonzero(np.r_[True, threads[1:] != threads[:-1]])
    base = np.repeat(np.r_[0, passed][begins], np.diff(np.r_[begins, len(threads)]))
    result = np.empty(len(records), np.int64)
    result[order] = passed - base
    return result


def joined(*keys: Whole) -> Whole:
    """Return one number for each combination of keys, none of them negative, in the same order.

    Sorting one column is far faster than sorting several. Where the product of the ranges has no
    room in 64 bits, the numbers so far are replaced by their ranks.
    """
    result, size = keys[0].astype(np.int64), int(keys[0].max(initial=0)) + 1
    for key in keys[1:]:
        range_ = int(key.max(initial=0)) + 1
        if size * range_ >= 1 << 62:
            values, ranks = np.unique(result, return_inverse=True)
            result, size = ranks.ravel().astype(np.int64), len(values)
        result = result * range_ + key
        size *= range_
    return result


def _first_of_pairs(first: Whole, second: Whole) -> Whole:
    """Return the first numbers of all different pairs."""
    range_ = int(second.max(initial=0)) + 1
    if (int(first.max(initial=0)) + 1) * range_ >= 1 << 62:
        _, index = np.unique(joined(first, second), return_index=True)
        return first[index]
    return different(first * range_ + second) // range_


def different(keys: Whole) -> Whole:
    """Return the keys, sorted and each once; `np.unique` hashes, which takes five times as long."""
    ordered = np.sort(keys)
    kept = np.ones(len(ordered), bool)
    kept[1:] = ordered[1:] != ordered[:-1]
    return ordered[kept]


def occurrence(keys: Whole) -> Whole:
    """Return how often each key has come before."""
    count = len(keys)
    if not count:
        return np.zeros(0, np.int64)
    order = np.argsort(keys, kind="stable")
    changes = np.ones(count, bool)
    changes[1:] = np.diff(keys[order]) != 0
    begins = np.flatnonzero(changes)
    sizes = np.diff(np.r_[begins, count])
    result = np.empty(count, np.int64)
    result[order] = np.arange(count) - np.repeat(begins, sizes)
    return result


def _sectors(request: Whole, offset: Whole, size: Whole, count: int) -> tuple[Whole, Whole]:
    """Return the sectors that requests ask for, and those that their bytes would fill."""
    ends = np.stack([offset // SECTOR, (offset + size - 1) // SECTOR])
    asked = _first_of_pairs(np.tile(request, 2), ends.ravel())
    bytes_of = np.zeros(count, np.int64)
    for each in np.unique(size):  # an instruction has one size
        these = size == each
        owner, start = request[these], offset[these]
        if not (start % each).any():
            bytes_of += np.bincount(_first_of_pairs(owner, start), minlength=count) * each
            continue
        byte = (start[:, None] + np.arange(each)).ravel()
        bytes_of += np.bincount(_first_of_pairs(np.repeat(owner, each), byte), minlength=count)
    return np.bincount(asked, minlength=count), -(-bytes_of // SECTOR)


def _banks(
    request: Whole, lane: Whole, offset: Whole, size: Whole, width: Whole, count: int
) -> tuple[Whole, Whole]:
    """Return the turns that requests to shared memory take, and the fewest they could.

    An access has `size` bytes; the instruction that it is part of, `width`.
    """
    turns, fewest = np.zeros(count, np.int64), np.zeros(count, np.int64)
    words = np.maximum(-(-size // _WORD), 1)
    largest = int(words.max(initial=1))
    part = lane // (WARP // np.maximum(-(-width // _WORD), 1))
    word = offset[:, None] // _WORD + np.arange(largest)
    within = np.arange(largest) < words[:, None]

    def spread(values: Whole) -> Whole:
        return np.broadcast_to(values[:, None], word.shape)[within]

    owner, piece, asked = spread(request), spread(part), word[within]
    _, index = np.unique(joined(owner, piece, asked), return_index=True)
    owner, piece, bank = owner[index], piece[index], asked[index] % BANKS
    _, index, each = np.unique(joined(owner, piece, bank), return_index=True, return_counts=True)
    owner, piece = owner[index], piece[index]
    _, index, of_part = np.unique(joined(owner, piece), return_index=True, return_inverse=True)
    most = np.zeros(len(index), np.int64)
    np.maximum.at(most, of_part.ravel(), each)
    np.add.at(turns, owner[index], most)
    np.add.at(fewest, owner[index], 1)
    return turns, fewest


_OF_SECTORS = ("sectors", "needed", "block_sectors", "footprint")


@dataclass
class Totals:
    """The traffic with one memory space, in one direction."""

    accesses: int = 0  # loads or stores of threads
    requests: int = 0  # those of warps: one instruction for up to 32 threads
    # 32-byte sectors asked for, and those that the same bytes would fill if they lay together. Of
    # device memory and textures.
    sectors: int = 0
    needed: int = 0
    # Turns of shared and constant memory, and the fewest possible.
    wavefronts: int = 0
    ideal: int = 0
    block_sectors: int = 0
    """Sectors that each block asks for, once a block: traffic behind a cache of the block's."""
    footprint: int = 0  # sectors that are asked for at all: the traffic with device memory at best

    @property
    def conflicts(self) -> int:
        """Turns more than would be needed without bank conflicts or different addresses."""
        return self.wavefronts - self.ideal

    def of_space(self, space: MemorySpace) -> dict[str, int]:
        """Return the figures that a memory space has: sectors, or turns."""
        cached = space in (MemorySpace.GLOBAL, MemorySpace.TEXTURE)
        others = ("wavefronts", "ideal") if cached else _OF_SECTORS
        return {name: value for name, value in vars(self).items() if name not in others}

    @property
    def efficiency(self) -> float | None:
        """The part of the sectors that is needed; None without any."""
        return self.needed / self.sectors if self.sectors else None


Key = tuple[MemorySpace, Event]  # a memory space, and `Event.READ` or `Event.WRITE`


def launch_totals(found: Counts | Trace) -> dict[Key, Totals]:
    result: dict[Key, Totals] = {}
    names = [each.name for each in fields(Totals) if each.name != "footprint"]
    for entry in found.entries:
        array = found.scene.arrays[entry["array"]]
        totals = result.setdefault((array.space, Event(entry["event"])), Totals())
        for name in names:
            setattr(totals, name, getattr(totals, name) + int(entry[name]))
    for array, row in zip(found.scene.arrays, found.footprint, strict=True):
        for event in (Event.READ, Event.WRITE):
            if (array.space, event) in result:
                result[array.space, event].footprint += int(row[event])
    return result


def thread_totals(trace: Trace, thread: int) -> dict[Key, Totals]:
    records = trace.accesses()
    records = records[records["thread"] == thread]
    result: dict[Key, Totals] = {}
    spaces = trace.scene.spaces()[records["array"]]
    # Of an access to several cells the first one is counted.
    counted = trace.instructions(records)[0] == records["site"]
    for space in MemorySpace:
        for event in (Event.READ, Event.WRITE):
            count = np.count_nonzero((spaces == space) & (records["event"] == event) & counted)
            if count:
                result[space, event] = Totals(accesses=int(count))
    for (space, event), totals in result.items():
        totals.footprint = _footprint(trace.scene, records, space, event)
    return result


def warp_totals(trace: Trace, made: Requests) -> dict[Key, Totals]:
    records = trace.accesses()
    result: dict[Key, Totals] = {}
    for space in MemorySpace:
        for event in (Event.READ, Event.WRITE):
            these = (made.space == space) & (made.event == event)
            if not these.any():
                continue
            result[space, event] = Totals(
                accesses=int(made.lanes[these].sum()),
                requests=int(these.sum()),
                sectors=int(made.sectors[these].sum()),
                needed=int(made.needed[these].sum()),
                wavefronts=int(made.wavefronts[these].sum()),
                ideal=int(made.ideal[these].sum()),
                footprint=_footprint(trace.scene, records, space, event),
            )
    return result


def _footprint(scene: Scene, records: NDArray[np.void], space: MemorySpace, event: Event) -> int:
    """Return how many different sectors records ask for."""
    if space in (MemorySpace.SHARED, MemorySpace.CONSTANT):
        return 0
    these = records[
        (scene.spaces()[records["array"]] == space)
        & (records["event"] == event)
        & (records["offset"] != OUTSIDE)
    ]
    first = these["offset"].astype(np.int64) // SECTOR
    last = (these["offset"].astype(np.int64) + these["bytes"] - 1) // SECTOR
    array = these["array"].astype(np.int64)
    return len(different(joined(np.tile(array, 2), np.r_[first, last])))


@dataclass(frozen=True)
class Branches:
    """Where the threads of warps part."""

    passed: int  # branches that warps came to, as the host's compiler made them
    divergent: int  # those at which threads of a warp went on differently
    places: tuple[tuple[SourceLine, int], ...]
    """Lines at which the code begins that ends in a divergent branch, with how often, the most
    frequent first."""


def branches(trace: Trace, warp: int | None = None) -> Branches:
    known = np.array([site for site, places in trace.scene.sites.items() if places], np.uint32)
    kept = (trace.records["event"] == Event.BRANCH) & np.isin(trace.records["site"], known)
    if warp is not None:
        kept &= trace.records["thread"] // WARP == warp
    records, phase = trace.records[kept], barriers_before(trace)[kept]
    order = np.argsort(records["thread"], kind="stable")
    thread, site, lap = (
        records[name][order].astype(np.int64) for name in ("thread", "site", "lap")
    )
    phase = joined(phase[order], lap)
    if not len(thread):
        return Branches(0, 0, ())
    follows = np.r_[np.where(thread[1:] == thread[:-1], site[1:], -1), -1]
    turn = occurrence(joined(thread, phase, site))
    _, index, where = np.unique(
        joined(thread // WARP, phase, site, turn), return_index=True, return_inverse=True
    )
    where = where.ravel()
    low, high = (np.full(len(index), value) for value in (1 << 62, -1))
    np.minimum.at(low, where, follows)
    np.maximum.at(high, where, follows)
    divergent = low != high
    counts: dict[SourceLine, int] = {}
    for each in site[index][divergent]:
        place = trace.scene.place(int(each))
        if place is not None:
            counts[place] = counts.get(place, 0) + 1
    places = tuple(sorted(counts.items(), key=lambda each: -each[1]))
    return Branches(len(index), int(divergent.sum()), places)


def intensity(found: Counts) -> float | None:
    """Return arithmetic operations for each byte that has to come from or go to device memory."""
    totals = launch_totals(found)
    sectors = sum(each.footprint for each in totals.values())
    samples = float(np.prod(found.scene.output_shape))
    return found.scene.operations * samples / (sectors * SECTOR) if sectors else None


@dataclass(frozen=True)
class TableRow:
    title: str
    values: tuple[float | None, ...]  # one a level; None where the level does not use that memory
    digits: int = 2  # behind the point
    note: str = ""  # the meaning of the figure
    unit: str = "per pixel of the output"  # empty if the title has it

    def texts(self) -> tuple[str, ...]:
        return tuple("–" if each is None else f"{each:,.{self.digits}f}" for each in self.values)


PAST_L1, FROM_DEVICE = "bytes past the L1 cache", "bytes of device memory"
"""Titles of the traffic behind the caches."""


def totals_of(launches: Sequence[Counts]) -> dict[Key, Totals]:
    result: dict[Key, Totals] = {}
    for each in launches:
        for key, totals in launch_totals(each).items():
            mine = result.setdefault(key, Totals())
            for name, value in vars(totals).items():
                setattr(mine, name, getattr(mine, name) + value)
    return result


def figures(levels: Mapping[str, Sequence[Counts]]) -> list[TableRow]:
    """Return the figures of levels, for each pixel of the output.

    - `levels`: the launches of each level, by its name.
    """
    made = [(totals_of(each), each, each[-1].scene.pixels) for each in levels.values()]

    def row(title: str, key: Key, field: str, note: str, scale: float = 1.0) -> TableRow:
        values = tuple(
            getattr(totals[key], field) * scale / count if key in totals else None
            for totals, _, count in made
        )
        return TableRow(title, values, note=note)

    loads, stores = (MemorySpace.GLOBAL, Event.READ), (MemorySpace.GLOBAL, Event.WRITE)
    shared, texture = (MemorySpace.SHARED, Event.READ), (MemorySpace.TEXTURE, Event.READ)
    constant = (MemorySpace.CONSTANT, Event.READ)
    efficiencies = [totals[loads].efficiency if loads in totals else None for totals, *_ in made]
    needed = tuple(None if each is None else 100 * each for each in efficiencies)
    banked = [
        [totals[key] for key in totals if key[0] is MemorySpace.SHARED] for totals, *_ in made
    ]
    conflicts = tuple(
        sum(each.conflicts for each in both) / count if both else None
        for both, (_, _, count) in zip(banked, made, strict=True)
    )
    found = [
        row("global loads", loads, "accesses", "of threads"),
        row("global sectors", loads, "sectors", "of 32 bytes that the loads of warps ask for"),
        TableRow("global sectors needed (%)", needed, 1, "if the same bytes lay together", ""),
        row("global stores", stores, "accesses", "of threads"),
        row("texture fetches", texture, "accesses", "of threads"),
        row("constant loads", constant, "accesses", "of threads"),
        row("shared loads", shared, "accesses", "of threads"),
        row("shared stores", (MemorySpace.SHARED, Event.WRITE), "accesses", "of threads"),
        TableRow(
            "turns lost to bank conflicts", conflicts, 3, "of shared memory; one serves a warp"
        ),
        TableRow(
            PAST_L1,
            tuple(
                sum(each.block_sectors for each in totals.values()) * SECTOR / count
                for totals, _, count in made
            ),
            note="if the cache of a block misses each sector once",
        ),
        TableRow(
            FROM_DEVICE,
            tuple(
                sum(each.footprint for each in totals.values()) * SECTOR / count
                for totals, _, count in made
            ),
            note="at best: each sector once",
        ),
        TableRow(
            "barriers of a thread",
            tuple(
                sum(each.barriers / (each.scene.blocks * each.scene.threads) for each in launches)
                for _, launches, _ in made
            ),
            note="in a whole launch",
            unit="",
        ),
        TableRow(
            "operations a byte",
            tuple(intensity(launches[-1]) for _, launches, _ in made),
            note="of device memory at best, by the filter's plan",
            unit="",
        ),
    ]
    return [each for each in found if any(value is not None for value in each.values)]
