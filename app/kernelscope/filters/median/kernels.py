"""The ways to find the middle cell of square masks on the CPU: one of each level, and for bytes."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kernelscope.base.jit import Array, Flag, Index, Line, Plane, Record, inlined, intrinsic, kernel
from kernelscope.filters.median.networks import Program, ShiftedValue, median_program
from kernelscope.filters.shared import groups
from kernelscope.filters.shared.border_kernels import REDUCE, VALID, border_index, fetch_row
from kernelscope.filters.shared.plain import cell, interior

# Levels *serial* and *serial-bubble*: copy the window of every pixel, and pick its middl
#
# Hoare's quickselect moves the cells that are smaller than a pivot to the left and larger ones to
# the right, until both sides meet; then it goes on with the side that has the middle place. For the
# nine cells of a 3x3 window, whose middle place is 4 (from 0), with the pivot in brackets:
#
#     7 2 9 4 [1] 8 3 6 5    1 changes places with 7; the middle place lies to the right of it
#     1|2 9 4 [7] 8 3 6 5    9 changes places with 5, 7 with 6, 8 with 3; now it lies to the left
#     1|2 5 [4] 6 3|8 7 9    ... and so on, until place 4 holds the median, 5
#
# On average that takes some 3 n comparisons for n cells. Bubble sort takes n² / 2, whatever they
# are.


@inlined.plain
def ranked(cells: Line, count: Index, rank: Index) -> Any:
    """Return number `rank` of ``cells[:count]`` in order; reorders them (Hoare's quickselect)."""
    low = 0
    high = count - 1
    while low < high:
        pivot = cell(cells, (low + high) // 2)
        i = low
        j = high
        while i <= j:
            while cell(cells, i) < pivot:
                i += 1
            while pivot < cell(cells, j):
                j -= 1
            if i <= j:
                exchange(cells, i, j)
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return cell(cells, rank)


@inlined
def exchange(cells: Line, i: Index, j: Index) -> None:
    """Let two cells change places."""
    kept = cell(cells, i)
    cells[np.uintp(i)] = cell(cells, j)
    cells[np.uintp(j)] = kept


@inlined
def middle(cells: Line, count: Index) -> Any:
    """Return the (lower) median of ``cells[:count]``, which it reorders."""
    return ranked(cells, count, (count - 1) // 2)


@inlined.plain
def sort(cells: Line, count: Index) -> None:
    """Sort ``cells[:count]`` by exchanging neighbours (bubble sort)."""
    for last in range(count - 1, 0, -1):
        for i in range(last):
            if cell(cells, i) > cell(cells, i + 1):
                exchange(cells, i, i + 1)


@inlined.plain
def sorted_middle(cells: Line, count: Index) -> Any:
    """As `middle`, after sorting all cells."""
    sort(cells, count)
    return cell(cells, (count - 1) // 2)


@kernel.plain
def median_rim(
    source: Plane,
    output: Plane,
    radius: Index,
    border: Index,
    bubble: Flag,
    cells: Line,
    y: Index,
    first: Index,
    last: Index,
) -> None:
    """Compute output row `y` from column `first` up to `last`, whatever the border."""
    height, width, channels = source.shape
    for x in range(first, last):
        for c in range(channels):
            count = 0
            for s in range(-radius, radius + 1):
                yy = border_index(y + s, height, border)
                for t in range(-radius, radius + 1):
                    xx = border_index(x + t, width, border)
                    if yy >= 0 and xx >= 0:
                        cells[count] = source[yy, xx, c]
                        count += 1
                    elif border != REDUCE:
                        cells[count] = 0
                        count += 1
            output[y, x, c] = sorted_middle(cells, count) if bubble else middle(cells, count)


@kernel.plain
def median_serial(
    source: Plane,
    output: Plane,
    radius: Index,
    border: Index,
    bubble: Flag,
    columns: Record,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops: for every sample, pick the middle one of the cells of the mask.

    Of each row from one of `columns` up to the other. `bubble` sorts the cells instead.
    """
    height, width, channels = source.shape
    side = 2 * radius + 1
    inset = 0 if border == VALID else radius
    samples = source.reshape(source.size)
    pitch = width * channels
    cells = np.empty(side * side, source.dtype)
    for y in range(start, stop):
        first, last = interior(y, radius, height, width, border)
        first = min(max(first, columns[0]), columns[1])
        last = min(max(last, columns[0]), columns[1])
        median_rim(source, output, radius, border, bubble, cells, y, columns[0], first)
        results = output[y].reshape(output.shape[1] * channels)
        corner = (y - inset) * pitch - inset * channels
        for x in range(first * channels, last * channels):
            count = 0
            for s in range(side):
                row = corner + x + s * pitch
                for t in range(side):
                    cells[np.uintp(count)] = cell(samples, row + t * channels)
                    count += 1
            results[x] = sorted_middle(cells, count) if bubble else middle(cells, count)
        median_rim(source, output, radius, border, bubble, cells, y, last, columns[1])


@kernel
def median_frame(source: Plane, output: Plane, radius: Index, start: Index, stop: Index) -> None:
    """Compute the pixels whose mask is reduced, at the edges of the image."""
    cells = np.empty((2 * radius + 1) ** 2, source.dtype)
    height, width = output.shape[:2]
    for y in range(start, stop):
        left, right = interior(y, radius, height, width, REDUCE)
        median_rim(source, output, radius, REDUCE, False, cells, y, 0, left)
        median_rim(source, output, radius, REDUCE, False, cells, y, right, width)


# Level *serial-huang*: a histogram that moves along the row, for samples of 8 and 16 bit
#
# From one pixel to the next, only one column of the window leaves and one joins; all the others
# stay counted (Huang, Yang and Tang 1979). The middle one of n cells is the value at which the
# running sum of the counts exceeds (n - 1) / 2:
#
#     window    value     0 1 2 3 4
#     1 1 2     counts    0 3 2 3 1
#     1 2 3     sum       0 3 5 8 9    5 is the first sum over 4: the median is 2
#     3 3 4
#
#     one pixel to the right, the column 1 1 3 has left and 2 4 4 has joined:
#     1 2 2     counts    0 1 3 2 3
#     2 3 4     sum       0 1 4 6 9    6 is the first sum over 4: the median is 3
#     3 4 4
#
# To shorten the way through 256 or 65,536 counts, groups of 16 or 256 neighbouring values are
# counted too: first the group is found and then the value in it.


@inlined
def count_cell(value: Index, step: Index, shift: Index, groups: Line, counts: Line) -> None:
    """Add `step` to the counts of a value and of its group, 2**shift neighbouring values."""
    counts[np.uintp(value)] += step
    groups[np.uintp(value >> shift)] += step


@kernel.plain
def count_rim(
    source: Plane,
    y: Index,
    x: Index,
    c: Index,
    radius: Index,
    border: Index,
    step: Index,
    shift: Index,
    groups: Line,
    counts: Line,
) -> Any:
    """Count a column of the mask, whatever the border; return `step` times its cells."""
    height, width, _ = source.shape
    total = 0
    xx = border_index(x, width, border)
    for s in range(-radius, radius + 1):
        yy = border_index(y + s, height, border)
        if yy >= 0 and xx >= 0:
            count_cell(np.int64(source[yy, xx, c]), step, shift, groups, counts)
            total += step
        elif border != REDUCE:
            count_cell(0, step, shift, groups, counts)
            total += step
    return total


@inlined
def count_column(
    samples: Line,
    place: Index,
    pitch: Index,
    side: Index,
    step: Index,
    shift: Index,
    groups: Line,
    counts: Line,
) -> None:
    """Count a column of the mask inside the image, `side` cells from `place` down."""
    for s in range(side):
        count_cell(np.int64(cell(samples, place + s * pitch)), step, shift, groups, counts)


@inlined
def counted(rank: Index, shift: Index, groups: Line, counts: Line) -> Any:
    """Return number `rank` of the cells that are counted, in order."""
    left, group = rank, 0  # cells still to be passed
    while left >= cell(groups, group):
        left -= cell(groups, group)
        group += 1
    value = group << shift
    while left >= cell(counts, value):
        left -= cell(counts, value)
        value += 1
    return value


@kernel.plain
def median_huang(
    source: Plane,
    output: Plane,
    radius: Index,
    border: Index,
    shift: Index,
    start: Index,
    stop: Index,
) -> None:
    """Count the cells by value while the mask moves along the row, column by column.

    There are 4**shift values, in groups of 2**shift.
    """
    height, width, channels = source.shape
    side = 2 * radius + 1
    inset = 0 if border == VALID else radius
    samples = source.reshape(source.size)
    pitch = width * channels
    counts = np.empty(1 << 2 * shift, np.int32)
    groups = np.empty(1 << shift, np.int32)
    for y in range(start, stop):
        middle_y = y - inset + radius
        inside = radius <= middle_y < height - radius
        top = (middle_y - radius) * pitch
        for c in range(channels):
            counts[:] = 0
            groups[:] = 0
            total = 0
            for x in range(1 - side, output.shape[1]):
                # The column that joins the mask, and below the one that leaves it.
                new = x - inset + 2 * radius
                if inside and 0 <= new < width:
                    place = top + new * channels + c
                    count_column(samples, place, pitch, side, 1, shift, groups, counts)
                    total += side
                else:
                    total += count_rim(
                        source, middle_y, new, c, radius, border, 1, shift, groups, counts
                    )
                if x < 0:
                    continue
                output[y, x, c] = counted((total - 1) // 2, shift, groups, counts)
                old = x - inset
                if inside and 0 <= old < width:
                    place = top + old * channels + c
                    count_column(samples, place, pitch, side, -1, shift, groups, counts)
                    total -= side
                else:
                    total += count_rim(
                        source, middle_y, old, c, radius, border, -1, shift, groups, counts
                    )


# Level *parallel* for large masks on bytes: a histogram for every column, added up along
#
# From one row to the next a pixel joins each column and one leaves it, and from one pixel to the
# next a column joins the window and one leaves it: both take the same time for any mask (Perreault
# and Hébert 2007). Counts are in two tiers, of 16 values together and of each value:
#
#     coarse      0-15  16-31  32-47 ...             of the window, always up to date
#     fine        0 1 2 ... 15 | 16 17 ... 31 | ...  16 segments, each as of the last pixel that
#                                                    needed it
#
# The coarse counts name the segment of the median, and only that one is brought up to date: by the
# few columns since it was last needed, or by adding up all columns of the window. A segment is a
# vector of 16 counts. Its sums from the left are made in four steps, and compared with the rank:
#
#     counts      0 3 2 3 1
#     sums        0 3 5 8 9    rank 4: the first sum above it is the third, so the value is 2
#
# A column counts at most 31 cells, a window 31 * 31: bytes and 16 bits hold them. Columns of a
# stripe stay in the level-2 cache, and those of a block in the level-1 cache while each of three
# loops goes over them; one loop of all three would have too long a chain of dependent steps.
#
# Source: S. Perreault and P. Hébert, Median filtering in constant time, 2007.

_BITS = 4  # bits of a place in a segment
SEGMENT = 1 << _BITS  # counts of a segment, and segments

_HALVES = (0, SEGMENT // 2)
"""Where the two vectors of a segment begin: registers of 16 bytes, which every processor has."""

_COLUMN = SEGMENT + SEGMENT * SEGMENT  # counts of a column: the coarse ones and then the fine ones
_STRIPE = 512  # columns of the result in a stripe, whose counts take 145 KiB

# Level *parallel*: the networks of `networks.py` as loops over vectors, row after row --
#
# `run_network` writes the loops as LLVM code, because a network has no loop that Python could be
# compiled from: each of its operations is a separate statement. `median_parallel` keeps the padded
# rows that a group of output rows needs in a ring, and calls `run_network` for one chunk of columns
# at a time, so that all intermediate rows stay in the level-1 cache:
#
#     ring    row 0 |#####|.....|.....|        chunk 0 of all rows first, then chunk 1, ...
#             row 1 |#####|.....|.....|
#             row 2 |#####|.....|.....|        the next group of output rows reuses the ring:
#             row 3 |#####|.....|.....|        only the rows that it has not seen are fetched

_BLOCK = 32  # columns that each loop goes over


def _load(builder: Any, start: Any, place: Any, bits: int) -> tuple[Any, Any]:
    """Return eight counts of this many bits as numbers of 16 bits, and the pointer to them."""
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


# Level *parallel* for 3x3 on bytes: eight rows of medians in one sweep, from registers a
#
# The three cells of each row are sorted, and the rows put below each other:
#
#     lowest  middle  highest
#       10      12      40        the largest of the lowest   11
#       11      13      14        the middle of the middle    13
#        9      20      30        the lowest of the highest   14
#
# The middle of these three, 13, is the median of all nine (Smith 1996). A sorted row serves three
# rows of medians, and of each two of these the two rows that they share are compared once: 17.5
# minima and maxima for each median. `networks` has more, and writes rows down between its two
# loops.
#
# Source: J. L. Smith, Implementing median filters in XC4000E FPGAs, XCell 23, 1996.


class Sorted(NamedTuple):
    """Three cells in order."""

    lowest: Any
    middle: Any
    highest: Any


class Comparer:
    """Appends minima and maxima of vectors to the code of an intrinsic."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def smaller(self, a: Any, b: Any) -> Any:
        return self._builder.select(self._builder.icmp_unsigned("<", a, b), a, b)

    def larger(self, a: Any, b: Any) -> Any:
        return self._builder.select(self._builder.icmp_unsigned(">", a, b), a, b)

    def sort(self, a: Any, b: Any, c: Any) -> Sorted:
        """Sort three cells."""
        a, b = self.smaller(a, b), self.larger(a, b)
        b, c = self.smaller(b, c), self.larger(b, c)
        return Sorted(self.smaller(a, b), self.larger(a, b), c)

    def shared(self, first: Sorted, second: Sorted) -> tuple[Any, ...]:
        """Compare the two rows that two medians have in common."""
        return (
            self.larger(first.lowest, second.lowest),
            self.smaller(first.middle, second.middle),
            self.larger(first.middle, second.middle),
            self.smaller(first.highest, second.highest),
        )

    def median(self, shared: tuple[Any, ...], row: Sorted) -> Any:
        """Return the median of the two rows that are `shared`, and another one."""
        lowest, below, above, highest = shared
        lowest = self.larger(lowest, row.lowest)
        middle = self.larger(below, self.smaller(above, row.middle))
        highest = self.smaller(highest, row.highest)
        lowest, middle = self.smaller(lowest, middle), self.larger(lowest, middle)
        return self.larger(lowest, self.smaller(middle, highest))


class Medians(NamedTuple):
    """Medians of 3x3, eight rows at a time."""

    taps: tuple[int, ...] = groups.taps(3)

    @staticmethod
    def emit(step: groups.SweepStep) -> None:
        """Sort rows when they are needed: registers have room for five of them."""
        comparer = Comparer(step.builder)
        cells: list[Sorted] = []
        for row in range(groups.GROUP + 2):
            cells.append(comparer.sort(*(step.load(row, tap, 8) for tap in range(3))))
            k = row - 3
            if k >= 0 and k % 2 == 0:
                shared = comparer.shared(cells[k + 1], cells[k + 2])
                step.store(comparer.median(shared, cells[k]), k)
                step.store(comparer.median(shared, cells[k + 3]), k + 1)


VECTOR = 32  # bytes of a vector register (AVX2)


@intrinsic
def run_network(
    context: Any,
    builder: Any,
    types: Any,
    mask: Any,
    base: Any,
    buffer: Any,
    samples: Any,
    channels: Any,
) -> None:
    """Compute `samples` neighbouring samples of a few rows of medians.

    Emits the network for ``len(mask)`` as a loop over vectors for each of its stages. Its
    places begin at ``buffer[base[place]]``.
    """
    emit_program(
        context, builder, median_program(len(types[0])), types, (base, buffer, samples, channels)
    )


def emit_program(
    context: Any, builder: Any, program: Program, types: Any, operands: tuple[Any, Any, Any, Any]
) -> None:
    """Emit a loop over vectors for each stage of a program.

    - `types`: Numba's; the second and the third are those of `base` and `buffer`.
    - `operands`: base, buffer, samples and channels of `run_network`.
    """
    from llvmlite import ir

    base, buffer, samples, channels = operands
    base = context.make_array(types[1])(context, builder, base).data
    buffer = context.make_array(types[2])(context, builder, buffer).data
    sample = buffer.type.pointee
    align = context.get_abi_sizeof(sample)
    length = VECTOR // align
    vector = ir.VectorType(sample, length).as_pointer()
    compare = builder.icmp_unsigned if isinstance(sample, ir.IntType) else builder.fcmp_ordered
    intp = samples.type

    def address(lane: ShiftedValue) -> Any:
        place = builder.load(builder.gep(base, [intp(program.places[lane.node])]))
        return builder.gep(buffer, [builder.add(place, builder.mul(channels, intp(lane.shift)))])

    for stage in program.stages:
        # Addresses are taken before the loop: for all LLVM knows, its stores change `base`.
        read = {lane: address(lane) for lane in stage.reads}
        written = {node: address(ShiftedValue(node)) for node in stage.writes}
        count = builder.add(samples, builder.mul(channels, intp(stage.reach)))
        before = builder.block
        loop = builder.append_basic_block()
        after = builder.append_basic_block()
        builder.branch(loop)
        builder.position_at_end(loop)
        i = builder.phi(intp)
        i.add_incoming(intp(0), before)
        known = {
            lane: builder.load(builder.bitcast(builder.gep(start, [i]), vector), align=align)
            for lane, start in read.items()
        }
        for node, (larger, a, b) in stage.operations.items():
            u, v = known[a], known[b]
            known[ShiftedValue(node)] = builder.select(compare(">" if larger else "<", u, v), u, v)
        for node, start in written.items():
            target = builder.bitcast(builder.gep(start, [i]), vector)
            builder.store(known[ShiftedValue(node)], target, align=align)
        following = builder.add(i, intp(length))
        i.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
        builder.position_at_end(after)


@kernel
def median_parallel(
    source: Plane,
    output: Plane,
    border: Index,
    mask: Record,
    results: Line,
    places: Index,
    chunk: Index,
    start: Index,
    stop: Index,
) -> None:
    """Run a network over groups of rows, `chunk` samples at a time.

    The padded rows that a group needs are kept in a ring; channels are samples side by side.
    `mask` is a tuple as long as the mask is wide: that makes its size known to the compiler.
    """
    channels = source.shape[2]
    radius = len(mask) // 2
    group = results.size
    inputs = group + 2 * radius
    last_input = output.shape[0] - 1 + 2 * radius
    samples = output.shape[1] * channels
    padded = samples + 2 * radius * channels
    # Loops go beyond their end by less than a vector.
    pitch = padded + VECTOR
    stride = chunk + 2 * radius * channels + VECTOR
    buffer = np.empty(inputs * pitch + (places - inputs) * stride, source.dtype)
    base = np.empty(places, np.int64)
    for place in range(inputs, places):
        base[place] = inputs * pitch + (place - inputs) * stride
    flat = output.reshape(output.shape[0], samples)
    fetched = start
    for y in range(start, stop, group):
        while fetched < y + inputs:
            begin = fetched % inputs * pitch
            line = buffer[begin : begin + padded]
            # The last group may reach beyond the image; its surplus results are not kept.
            fetch_row(source, min(fetched, last_input), radius, border, line)
            fetched += 1
        for x in range(0, samples, chunk):
            count = min(chunk, samples - x)
            for row in range(inputs):
                base[row] = (y + row) % inputs * pitch + x
            run_network(mask, base, buffer, count, channels)
            for row in range(min(group, stop - y)):
                begin = base[results[row]]
                result = buffer[begin : begin + count]
                target = flat[y + row, x : x + count]
                # A loop, because Numba copies slices sample by sample.
                for i in range(count):
                    target[i] = result[i]
