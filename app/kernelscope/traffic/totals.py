"""Figures of threads, warps, blocks and launches: traffic by memory space, reuse and branches."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from kernelscope.traffic.requests import Requests, barriers_before, different, joined, occurrence
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


def reuse(trace: Trace, space: MemorySpace) -> float | None:
    """Return how often the block reads each cell of a space that it reads; None for no reads."""
    records = trace.accesses()
    spaces = trace.scene.spaces()[records["array"]]
    reads = (spaces == space) & (records["event"] == Event.READ) & (records["offset"] != OUTSIDE)
    records = records[reads]
    if not len(records):
        return None
    cells = np.unique(np.stack([records["array"].astype(np.int64), records["offset"]]), axis=1)
    return len(records) / int(cells.shape[1])


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
