"""Level *parallel* for large masks on bytes: a histogram for every column, added up along the row.

From one row to the next a pixel joins each column and one leaves it, and from one pixel to the
next a column joins the window and one leaves it: both take the same time for any mask (Perreault
and Hébert 2007). Counts are in two tiers, of 16 values together and of each value:

    coarse      0-15  16-31  32-47 ...             of the window, always up to date
    fine        0 1 2 ... 15 | 16 17 ... 31 | ...  16 segments, each as of the last pixel that
                                                   needed it

The coarse counts name the segment of the median, and only that one is brought up to date: by the
few columns since it was last needed, or by adding up all columns of the window. A segment is a
vector of 16 counts. Its sums from the left are made in four steps, and compared with the rank:

    counts      0 3 2 3 1
    sums        0 3 5 8 9    rank 4: the first sum above it is the third, so the value is 2

A column counts at most 31 cells, a window 31 * 31: bytes and 16 bits hold them. Columns of a
stripe stay in the level-2 cache, and those of a block in the level-1 cache while each of three
loops goes over them; one loop of all three would have too long a chain of dependent steps.

Source: S. Perreault and P. Hébert, Median filtering in constant time, 2007.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelscope.base.jit import Array, Flag, Index, Line, Plane, intrinsic, kernel
from kernelscope.filters.shared.border_kernels import VALID, border_index

_BITS = 4
"""Bits of a place in a segment."""

SEGMENT = 1 << _BITS
"""Counts of a segment, and segments."""

_HALVES = (0, SEGMENT // 2)
"""Where the two vectors of a segment begin: registers of 16 bytes, which every processor has."""

_COLUMN = SEGMENT + SEGMENT * SEGMENT
"""Counts of a column: the coarse ones and then the fine ones."""

_STRIPE = 512
"""Columns of the result in a stripe, whose counts take 145 KiB."""

_BLOCK = 32
"""Columns that each loop goes over."""


def _load(builder: Any, start: Any, place: Any, bits: int) -> tuple[Any, Any]:
    """Return eight counts of so many bits as numbers of 16 bits, and the pointer to them."""
    from llvmlite import ir  # type: ignore[import-untyped]

    vector = ir.VectorType(ir.IntType(bits), SEGMENT // 2)
    pointer = builder.bitcast(builder.gep(start, [place]), vector.as_pointer())
    counts = builder.load(pointer, align=bits // 8)
    return builder.zext(counts, ir.VectorType(ir.IntType(16), SEGMENT // 2)), pointer


def _halves(
    context: Any, builder: Any, types: Any, window: Any, at: Any, columns: Any, joins: Any
) -> Iterator[tuple[Any, Any, Any, int]]:
    """Yield halves of a segment with the counts that join it, their pointer and their offset."""
    window = context.make_array(types[0])(context, builder, window).data
    columns = context.make_array(types[2])(context, builder, columns).data
    for half in _HALVES:
        counts, pointer = _load(builder, window, builder.add(at, at.type(half)), 16)
        joining, _ = _load(builder, columns, builder.add(joins, joins.type(half)), 8)
        yield builder.add(counts, joining), pointer, columns, half


@intrinsic
def join(
    context: Any, builder: Any, types: Any, window: Any, at: Any, columns: Any, joins: Any
) -> None:
    """Add the segment of a column at `joins` to that of the window at `at`."""
    for counts, pointer, *_ in _halves(context, builder, types, window, at, columns, joins):
        builder.store(counts, pointer, align=2)


@intrinsic
def move(
    context: Any,
    builder: Any,
    types: Any,
    window: Any,
    at: Any,
    columns: Any,
    joins: Any,
    leaves: Any,
) -> None:
    """As `join`, and subtract the segment of the column at `leaves`."""
    parts = _halves(context, builder, types, window, at, columns, joins)
    for counts, pointer, start, half in parts:
        leaving, _ = _load(builder, start, builder.add(leaves, leaves.type(half)), 8)
        builder.store(builder.sub(counts, leaving), pointer, align=2)


@functools.partial(intrinsic, result="int64")
def locate(
    context: Any, builder: Any, types: Any, window: Any, at: Any, rank: Any, sums: Any
) -> Any:
    """Find the cell of a rank, from 0, among those that the segment at `at` counts.

    Returns its place in the segment, and its rank among the cells that are counted there, times
    2 * `SEGMENT`. `sums` is a buffer of `SEGMENT` + 1 counts, of which the first is 0.
    """
    from llvmlite import ir

    window = context.make_array(types[0])(context, builder, window).data
    sums = context.make_array(types[3])(context, builder, sums).data
    length, short, whole = SEGMENT // 2, ir.IntType(16), ir.IntType(32)
    vector = ir.VectorType(short, length)
    none = ir.Constant(vector, [0] * length)

    def shuffled(a: Any, b: Any, places: Any) -> Any:
        places = list(places)
        mask = ir.Constant(ir.VectorType(whole, len(places)), places)
        return builder.shuffle_vector(a, b, mask)

    parts: list[Any] = []
    for half in _HALVES:
        counts, _ = _load(builder, window, builder.add(at, at.type(half)), 16)
        for distance in (1, 2, 4):
            before = shuffled(none, counts, range(length - distance, 2 * length - distance))
            counts = builder.add(counts, before)
        if parts:
            counts = builder.add(counts, shuffled(parts[0], none, [length - 1] * length))
        place = builder.gep(sums, [at.type(half + 1)])
        builder.store(counts, builder.bitcast(place, vector.as_pointer()), align=2)
        parts.append(counts)
    ranks = builder.insert_element(none, builder.trunc(rank, short), whole(0))
    ranks = shuffled(ranks, none, [0] * length)
    low, high = (builder.icmp_signed(">", part, ranks) for part in parts)
    above = shuffled(low, high, range(SEGMENT))
    bits = builder.zext(builder.bitcast(above, ir.IntType(SEGMENT)), rank.type)
    bits = builder.or_(bits, rank.type(1 << SEGMENT))
    found = builder.cttz(bits, ir.IntType(1)(1))
    below = builder.zext(builder.load(builder.gep(sums, [found])), rank.type)
    left = builder.shl(builder.sub(rank, below), rank.type(_BITS + 1))
    return builder.or_(found, left)


@kernel
def fetch_cells(
    source: Plane, row: Index, c: Index, left: Index, radius: Index, border: Index, cells: Line
) -> None:
    """Write channel `c` of padded row `row`, from padded column `left` on, to `cells`."""
    height, width, channels = source.shape
    margin = 0 if border == VALID else radius
    y = border_index(row - margin, height, border)
    if y < 0:
        cells[:] = 0
        return
    samples = source[y].reshape(width * channels)
    first = left - margin
    begin = min(max(-first, 0), cells.size)
    end = max(begin, min(width - first, cells.size))
    for i in range(begin, end):
        cells[i] = samples[np.uintp((first + i) * channels + c)]
    for i in range(cells.size - (end - begin)):
        i += 0 if i < begin else end - begin
        x = border_index(first + i, width, border)
        cells[i] = samples[x * channels + c] if x >= 0 else 0


@kernel
def count_cells(columns: Line, joining: Line, leaving: Line, full: Flag) -> None:
    """Count a cell more in each column, and a cell less where it is `full`."""
    one = np.uint8(1)
    for i in range(joining.size):
        start = i * _COLUMN
        value = np.int64(joining[i])
        columns[np.uintp(start + (value >> _BITS))] += one
        columns[np.uintp(start + SEGMENT + value)] += one
        if full:
            value = np.int64(leaving[i])
            columns[np.uintp(start + (value >> _BITS))] -= one
            columns[np.uintp(start + SEGMENT + value)] -= one


@kernel
def find_segments(
    columns: Line, window: Line, side: Index, first: Index, stop: Index, sums: Line, found: Line
) -> None:
    """Let columns `first` to `stop` join the window, and find the segment after each of them.

    Before the window is full there is nothing to find. `found` is as `locate` returns it.
    """
    middle = side * side // 2
    for i in range(first, stop):
        if i < side:
            join(window, 0, columns, i * _COLUMN)
        else:
            move(window, 0, columns, i * _COLUMN, (i - side) * _COLUMN)
        if i >= side - 1:
            found[np.uintp(i - first)] = locate(window, 0, middle, sums)


@kernel
def find_values(
    columns: Line,
    window: Line,
    side: Index,
    first: Index,
    stop: Index,
    sums: Line,
    found: Line,
    last: Line,
) -> None:
    """Find the medians of the windows that end with columns `first` to `stop`.

    They replace the segments in `found`. ``last`` has the first column of the window for which
    each segment was last brought up to date.
    """
    for i in range(first, stop):
        segment = found[np.uintp(i - first)] & (2 * SEGMENT - 1)
        rank = found[np.uintp(i - first)] >> (_BITS + 1)
        at = SEGMENT + SEGMENT * segment
        x = i - side + 1
        before = last[np.uintp(segment)]
        if 2 * (x - before) > side:
            window[at : at + SEGMENT] = 0
            for k in range(x, x + side):
                join(window, at, columns, k * _COLUMN + at)
        else:
            for k in range(before, x):
                move(window, at, columns, (k + side) * _COLUMN + at, k * _COLUMN + at)
        last[np.uintp(segment)] = x
        value = locate(window, at, rank, sums) & (2 * SEGMENT - 1)
        found[np.uintp(i - first)] = SEGMENT * segment + value


@kernel
def medians_of_row(
    columns: Line, cells: Array, full: Flag, side: Index, buffers: Any, step: Index, results: Line
) -> None:
    """Compute a row of a stripe: every `step`-th of `results`.

    `cells` are those that join the columns, and those that leave them where these are `full`.
    """
    window, sums, last, found = buffers
    padded = cells.shape[1]
    window[:SEGMENT] = 0
    last[:] = -side
    for first in range(0, padded, _BLOCK):
        stop = min(first + _BLOCK, padded)
        count_cells(columns[first * _COLUMN :], cells[0, first:stop], cells[1, first:stop], full)
        find_segments(columns, window, side, first, min(stop, side - 1), sums, found)
        begin = max(first, side - 1)
        find_segments(columns, window, side, begin, stop, sums, found)
        find_values(columns, window, side, begin, stop, sums, found, last)
        for i in range(stop - begin):
            results[np.uintp((begin - side + 1 + i) * step)] = found[i]


@kernel
def median_counting(
    source: Plane, output: Plane, radius: Index, border: Index, start: Index, stop: Index
) -> None:
    """Count cells in columns; stripe by stripe, so that these counts stay in the cache."""
    side = 2 * radius + 1
    width, channels = output.shape[1], source.shape[2]
    columns = np.empty((min(_STRIPE, width) + 2 * radius) * _COLUMN, np.uint8)
    buffers = (
        np.empty(_COLUMN, np.uint16),
        np.zeros(SEGMENT + 1, np.uint16),
        np.empty(SEGMENT, np.int64),
        np.empty(_BLOCK, np.int64),
    )
    room = np.empty((2, _STRIPE + 2 * radius), np.uint8)
    for c in range(channels):
        for left in range(0, width, _STRIPE):
            cells = room[:, : min(_STRIPE, width - left) + 2 * radius]
            columns[: cells.shape[1] * _COLUMN] = 0
            for row in range(start, start + side - 1):
                fetch_cells(source, row, c, left, radius, border, cells[0])
                count_cells(columns, cells[0], cells[1], False)
            for y in range(start, stop):
                fetch_cells(source, y + side - 1, c, left, radius, border, cells[0])
                if y > start:
                    fetch_cells(source, y - 1, c, left, radius, border, cells[1])
                results = output[y].reshape(width * channels)[left * channels + c :]
                medians_of_row(columns, cells, y > start, side, buffers, channels, results)
