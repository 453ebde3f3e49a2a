"""Requests of warps, put together from the accesses of their threads.

The lanes of a warp make one request where they execute the same instruction, in the same laps of
loops that lanes may leave at different times, for the same time since the last barrier: what lanes
in lockstep do. Instructions that are parts of a wider one make its requests together, see `PART`.
See the CUDA programming guide on coalescing of accesses, and on the banks of shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelscope.traffic.trace import OUTSIDE, SECTOR, WARP, Event, MemorySpace, Trace

BANKS = 32
_WORD = 4

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Requests:
    """The requests of a block, in no particular order: an entry of each array for each request."""

    warp: Whole
    array: Whole
    event: Whole
    site: Whole
    space: Whole
    lanes: Whole
    sectors: Whole
    needed: Whole
    wavefronts: Whole
    ideal: Whole
    of_access: Whole


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
        thread[first] // WARP,
        array[first],
        event[first],
        site[first],
        space,
        lanes.astype(np.int64),
        sectors,
        needed,
        wavefronts,
        ideal,
        of_access,
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
