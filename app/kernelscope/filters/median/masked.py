"""The median of the cells of a mask that is no square.

Of n cells in order it is number n // 2, from 0: of an even number the upper of the two in the
middle, as SciPy has it. Where `Border.REDUCE` leaves no cell, the pixel stays as it is.

Level *parallel* searches bit by bit, as the GPU does (see ``kernels/median_search.cuh``), in whole
rows: for each bit a loop for each cell of the mask, which vectorises.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelscope.base.jit import (
    Array,
    Flag,
    Index,
    Like,
    Line,
    Number,
    Plane,
    Record,
    inlined,
    kernel,
)
from kernelscope.filters.median.kernels import count_cell, counted, ranked, sort
from kernelscope.filters.shared.border_kernels import REDUCE, VALID, border_index, fetch_row
from kernelscope.filters.shared.footprints import Table, offsets_of
from kernelscope.filters.shared.plain import cell, interior
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import CpuPass, CpuTask


@inlined.plain
def upper(cells: Line, count: Index, bubble: Flag) -> Any:
    """Return number ``count // 2`` of ``cells[:count]`` in order."""
    if not bubble:
        return ranked(cells, count, count // 2)
    sort(cells, count)
    return cell(cells, count // 2)


@kernel.plain
def masked_rim(
    source: Plane,
    output: Plane,
    offsets: Array,
    border: Index,
    bubble: Flag,
    cells: Line,
    y: Index,
    first: Index,
    last: Index,
) -> None:
    """Compute output row `y` from column `first` up to `last`; for all borders but ``valid``."""
    height, width, channels = source.shape
    for x in range(first, last):
        for c in range(channels):
            count = 0
            for k in range(offsets.shape[0]):
                row = border_index(y + offsets[k, 0], height, border)
                column = border_index(x + offsets[k, 1], width, border)
                if row >= 0 and column >= 0:
                    cells[count] = source[row, column, c]
                    count += 1
                elif border != REDUCE:
                    cells[count] = 0
                    count += 1
            output[y, x, c] = upper(cells, count, bubble) if count else source[y, x, c]


@kernel.plain
def masked_serial(
    source: Plane,
    output: Plane,
    offsets: Array,
    radius: Index,
    border: Index,
    bubble: Flag,
    columns: Record,
    start: Index,
    stop: Index,
) -> None:
    """As `median_serial`, of the cells at `offsets`: int64, shape (cells, 2), from the centre."""
    height, width, channels = source.shape
    inset = 0 if border == VALID else radius
    samples = source.reshape(source.size)
    pitch = width * channels
    places = np.empty(offsets.shape[0], np.int64)
    for k in range(places.size):
        places[k] = (offsets[k, 0] + radius) * pitch + (offsets[k, 1] + radius) * channels
    cells = np.empty(places.size, source.dtype)
    for y in range(start, stop):
        first, last = interior(y, radius, height, width, border)
        first = min(max(first, columns[0]), columns[1])
        last = min(max(last, columns[0]), columns[1])
        masked_rim(source, output, offsets, border, bubble, cells, y, columns[0], first)
        results = output[y].reshape(output.shape[1] * channels)
        corner = (y - inset) * pitch - inset * channels
        for x in range(first * channels, last * channels):
            for k in range(places.size):
                cells[np.uintp(k)] = cell(samples, corner + x + places[k])
            results[x] = upper(cells, places.size, bubble)
        masked_rim(source, output, offsets, border, bubble, cells, y, last, columns[1])


@kernel
def masked_frame(
    source: Plane, output: Plane, offsets: Array, radius: Index, start: Index, stop: Index
) -> None:
    """Compute the pixels whose mask is reduced, at the edges of the image."""
    cells = np.empty(offsets.shape[0], source.dtype)
    height, width = output.shape[:2]
    for y in range(start, stop):
        left, right = interior(y, radius, height, width, REDUCE)
        masked_rim(source, output, offsets, REDUCE, False, cells, y, 0, left)
        masked_rim(source, output, offsets, REDUCE, False, cells, y, right, width)


@kernel.plain
def count_at(
    source: Plane,
    offsets: Array,
    y: Index,
    x: Index,
    c: Index,
    border: Index,
    step: Index,
    shift: Index,
    groups: Line,
    counts: Line,
) -> Any:
    """Count the cells at `offsets` from (y, x), whatever the border; return `step` times these."""
    height, width, _ = source.shape
    total = 0
    for k in range(offsets.shape[0]):
        row = border_index(y + offsets[k, 0], height, border)
        column = border_index(x + offsets[k, 1], width, border)
        if row >= 0 and column >= 0:
            count_cell(np.int64(source[row, column, c]), step, shift, groups, counts)
            total += step
        elif border != REDUCE:
            count_cell(0, step, shift, groups, counts)
            total += step
    return total


@kernel.plain
def masked_huang(
    source: Plane,
    output: Plane,
    offsets: Array,
    joining: Array,
    leaving: Array,
    radius: Index,
    border: Index,
    shift: Index,
    start: Index,
    stop: Index,
) -> None:
    """As `median_huang`: of each row of the mask the ends of its parts join and leave.

    - `offsets`: all cells of the mask; `joining`: those that the mask one pixel to the left had
      not; `leaving`: those that the mask one pixel to the right has not.
    """
    channels = source.shape[2]
    inset = radius if border == VALID else 0
    counts = np.empty(1 << 2 * shift, np.int32)
    groups = np.empty(1 << shift, np.int32)
    for y in range(start, stop):
        row = y + inset
        for c in range(channels):
            counts[:] = 0
            groups[:] = 0
            total = count_at(source, offsets, row, inset, c, border, 1, shift, groups, counts)
            for x in range(output.shape[1]):
                column = x + inset
                if x > 0:
                    total += count_at(
                        source, leaving, row, column - 1, c, border, -1, shift, groups, counts
                    )
                    total += count_at(
                        source, joining, row, column, c, border, 1, shift, groups, counts
                    )
                if total == 0:
                    output[y, x, c] = source[row, column, c]
                    continue
                output[y, x, c] = counted(total // 2, shift, groups, counts)


@kernel
def to_keys(samples: Line, keys: Line, top: Number) -> None:
    """Write whole numbers in the order of the samples.

    Of floats they are the bits, the sign bit flipped of positive ones, all bits of negative ones;
    `top` is that bit, and 0 for integers.
    """
    bits = samples.view(keys.dtype)
    for x in range(keys.size):
        keys[x] = ~bits[x] if bits[x] & top else bits[x] | top


@kernel
def from_keys(keys: Line, samples: Line, top: Number) -> None:
    bits = samples.view(keys.dtype)
    for x in range(keys.size):
        bits[x] = keys[x] & ~top if keys[x] & top or top == 0 else ~keys[x]


@kernel
def count_below(below: Line, cells: Line, found: Line, bit: Number) -> None:
    """Count the cells that are smaller than the value found so far with the next bit set."""
    for x in range(below.size):
        below[x] += cells[x] < (found[x] | bit)


@kernel
def set_bits(found: Line, below: Line, bit: Number, rank: Number) -> None:
    for x in range(found.size):
        if below[x] <= rank:
            found[x] |= bit


@kernel
def masked_parallel(
    source: Plane,
    output: Plane,
    offsets: Array,
    radius: Index,
    border: Index,
    top: Line,
    counter: Like,
    start: Index,
    stop: Index,
) -> None:
    """Search the medians of a row bit by bit.

    - `top`: the sign bit of floats or 0, in an array of the type of keys.
    - `counter`: of the type that counts all cells.
    """
    channels, kind = source.shape[2], top.dtype.type
    side, length = 2 * radius + 1, output.shape[1] * channels
    padded = np.empty(length + 2 * radius * channels, source.dtype)
    ring = np.empty((side, padded.size), top.dtype)
    found, below = np.empty(length, top.dtype), np.empty(length, counter.dtype)
    count = offsets.shape[0]
    rank = counter.dtype.type(count // 2)
    for row in range(start, stop + side - 1):
        fetch_row(source, row, radius, border, padded)
        to_keys(padded, ring[row % side], top[0])
        y = row - side + 1
        if y < start:
            continue
        found[:] = 0
        for place in range(8 * source.itemsize - 1, -1, -1):
            bit = kind(kind(1) << kind(place))
            below[:] = 0
            for k in range(count):
                cells = ring[(y + radius + offsets[k, 0]) % side]
                shifted = cells[(radius + offsets[k, 1]) * channels :][:length]
                count_below(below, shifted, found, bit)
            set_bits(found, below, bit, rank)
        from_keys(found, output[y].reshape(length), top[0])


def plan_serial(task: CpuTask, table: Table, step: int, bubble: bool) -> Iterator[CpuPass]:
    """Plan a level that sorts each window, in units of `step` columns."""
    rows, width = task.output.shape[:2]
    arguments = task.source, task.output, offsets_of(table), len(table) // 2, task.border.code
    for first in range(0, width, step):
        columns = (first, min(first + step, width))
        yield CpuPass(masked_serial, (*arguments, bubble, columns), rows)


def plan_huang(task: CpuTask, table: Table) -> CpuPass:
    before = np.pad(table, ((0, 0), (1, 0)))[:, :-1]
    after = np.pad(table, ((0, 0), (0, 1)))[:, 1:]
    cells = offsets_of(table), offsets_of(table & ~after), offsets_of(table & ~before)
    how = len(table) // 2, task.border.code, 4 * task.source.itemsize
    return CpuPass(masked_huang, (task.source, task.output, *cells, *how), task.output.shape[0])


def plan_parallel(task: CpuTask, table: Table) -> list[CpuPass]:
    rows, offsets, radius = task.output.shape[0], offsets_of(table), len(table) // 2
    bits = 8 * task.source.itemsize
    top = np.array([1 << bits - 1 if task.source.dtype.kind == "f" else 0], f"u{bits // 8}")
    counter = np.empty(0, np.uint16 if bits == 8 and len(offsets) > 255 else top.dtype)
    arguments = (task.source, task.output, offsets, radius)
    passes = [CpuPass(masked_parallel, (*arguments, task.border.code, top, counter), rows)]
    if task.border is Border.REDUCE:
        passes.append(CpuPass(masked_frame, arguments, rows))
    return passes
