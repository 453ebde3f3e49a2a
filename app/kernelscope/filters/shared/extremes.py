"""The smallest or the largest sample of a mask, for the filters minimum, maximum and morphology.

Level *parallel* takes one or two steps along each axis for squares of up to 9 x 9, three up to 27.
Of three neighbours each it makes the extremes of threes, of three of those that of nines, and so
on; three that overlap make any size:

    size 7, samples   a b c d e f g
    threes            abc bcd cde def efg
    result            abc     cde     efg

A *block* of rows and the cells beside them is one line, along which a step is one loop, whichever
axis it is for. The rows of other masks are cut into *spans*, runs of 1, 3, 9 or 27 cells.

Under ``reduce`` cells outside the image have a value that is never the extreme one.

Source: J. Pecht, Speeding-up successive Minkowski operations with bit-plane computers, Pattern
Recognition Letters 3, 1985, who combines two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Flag, Index, Line, Plane, Record, inlined, kernel
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.border_kernels import (
    REDUCE,
    VALID,
    border_index,
    fill_sides,
    find_sides,
)
from kernelscope.filters.shared.footprints import (
    FOOTPRINT,
    Table,
    footprint_launch,
    is_full,
    masked,
    offsets_of,
    radius_of,
    size_parameter,
    table_of,
)
from kernelscope.filters.shared.plain import cell, higher, interior, lower
from kernelscope.schema.borders import Border
from kernelscope.schema.explanation import Cells, Example, Explanation, number
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask, FilterSpec
from kernelscope.schema.launch import Cuda, CudaTask, Launch, level_launch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SERIAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.samples import Pixels

SOURCE = "Gonzalez and Woods, Digital Image Processing, chapters 5 and 9; Pecht 1985"

_BLOCK = 1 << 16
"""Bytes of a block, small enough that its intermediate results stay in the L2 cache."""

_PART = 1 << 18
"""Bytes of the part of a block whose columns are computed at a time, for the same reason."""


@inlined.plain
def extreme(a: Any, b: Any, lowest: Flag) -> Any:
    return a if (a < b) == lowest else b


@kernel.plain
def extremes_serial(
    source: Plane,
    output: Plane,
    radius: Index,
    lowest: Flag,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops: for every sample, every cell of the mask."""
    height, width, channels = source.shape
    inset = 0 if border == VALID else radius
    samples = source.reshape(source.size)
    for y in range(start, stop):
        first, last = interior(y, radius, height, width, border)
        for x in range(output.shape[1]):
            is_inside = first <= x < last
            for c in range(channels):
                found = source[y + radius - inset, x + radius - inset, c]
                for s in range(2 * radius + 1):
                    row = y + s - inset
                    if not is_inside:
                        row = border_index(row, height, border)
                    for t in range(2 * radius + 1):
                        column = x + t - inset
                        if is_inside:
                            place = (row * width + column) * channels + c
                            found = extreme(found, cell(samples, place), lowest)
                            continue
                        column = border_index(column, width, border)
                        other = source.dtype.type(0)
                        if row >= 0 and column >= 0:
                            other = source[row, column, c]
                        found = extreme(found, other, lowest)
                output[y, x, c] = found


@kernel
def combine(
    cells: Line,
    a: Index,
    b: Index,
    c: Index,
    pitch: Index,
    lowest: Flag,
    results: Line,
    place: Index,
    step: Index,
    rows: Index,
    count: Index,
) -> None:
    """Write the extremes of each three samples, from `a`, `b` and `c` on, to `place`.

    Of `count` samples, or of several rows of these: cells `pitch` apart, and results `step`. There
    is a loop for each kind, which vectorises. Slices would take longer to make than short rows.
    """
    for i in range(rows):
        if lowest:
            for x in range(i * pitch, i * pitch + count):
                pair = lower(cell(cells, a + x), cell(cells, b + x))
                results[np.uintp(place + i * (step - pitch) + x)] = lower(pair, cell(cells, c + x))
        else:
            for x in range(i * pitch, i * pitch + count):
                pair = higher(cell(cells, a + x), cell(cells, b + x))
                results[np.uintp(place + i * (step - pitch) + x)] = higher(pair, cell(cells, c + x))


class Extremes(NamedTuple):
    """Which cells of a mask level *parallel* takes, and which of them wins."""

    size: int
    """Side of the mask."""
    spans: NDArray[np.int64]
    """Shape (spans, 3): the power of three of each, row and column of its first cell, from the
    corner. None of a square; else an odd number, three at least, of which some may be alike."""
    lowest: bool
    border: int
    outside: Any
    """The value of cells outside the image, of the type of its samples."""

    @classmethod
    def of(cls, table: Table, lowest: bool, border: Border, dtype: np.dtype[Any]) -> Extremes:
        spans = []
        for row, cells in enumerate(table if not is_full(table) else ()):
            ends = np.flatnonzero(np.diff(cells, prepend=False, append=False))
            for first, end in ends.reshape(-1, 2).tolist():
                power = max(k for k in range(4) if 3**k <= end - first)
                last = end - 3**power
                starts = {first, last}
                if last - first > 3**power:
                    starts.add((first + last) // 2)
                spans += [(power, row, start) for start in sorted(starts)]
        if spans:
            spans += spans[-1:] * max(3 - len(spans), 1 - len(spans) % 2)
        found = np.array(spans or np.empty((0, 3)), np.int64)
        found.flags.writeable = False
        outside: Any = 0
        if border is Border.REDUCE and dtype.kind == "f":
            outside = np.inf if lowest else -np.inf
        elif border is Border.REDUCE:
            outside = np.iinfo(dtype).max if lowest else np.iinfo(dtype).min
        return cls(len(table), found, lowest, border.code, dtype.type(outside))


@kernel
def rows_of_block(rows: Index, padded: Index, size: Index, itemsize: Index) -> Any:
    """Return how many of these rows are computed at a time.

    Twice as many as the mask has at least: there is work for those around them as well.
    """
    return max(1, min(rows, max(2 * size, _BLOCK // (padded * itemsize))))


@kernel
def sides_of(source: Plane, wanted: Record) -> Any:
    """Return where the cells beside a row stand in it, see `find_sides`."""
    margin = 0 if wanted.border == VALID else wanted.size // 2
    sides = np.empty(2 * margin * source.shape[2], np.int64)
    find_sides(source.shape[1], margin, source.shape[2], wanted.border, sides)
    return sides


@kernel
def areas_of(wanted: Record) -> Any:
    """Return how many areas as large as a block `extreme_rows` needs, with two rows behind them."""
    highest = 1
    for k in range(wanted.spans.shape[0]):
        highest = max(highest, wanted.spans[k, 0])
    return highest


@kernel
def square_rows(
    work: Line,
    block: Index,
    spare: Index,
    padded: Index,
    channels: Index,
    wanted: Record,
    rows: Index,
    results: Line,
    target: Index,
    step: Index,
) -> None:
    """As `extreme_rows`, of a square: down the columns, then along the rows."""
    size, lowest, lines = wanted.size, wanted.lowest, rows + wanted.size - 1
    part = _PART // (lines * work.itemsize)
    here, other = block, spare
    for left in range(0, padded, part):
        here, other, span, left_over = block, spare, 1, lines
        while span < size:
            reach = min(3 * span, size)
            left_over -= reach - span
            a, b, c = here + left, (reach - span) // 2 * padded, (reach - span) * padded
            many, count = left_over, min(part, padded - left)
            if count == padded:
                many, count = 1, left_over * padded
            combine(work, a, a + b, a + c, padded, lowest, work, other + left, padded, many, count)
            here, other, span = other, here, reach
    count, span = rows * padded, 1
    while 3 * span < size:
        b, c = here + span * channels, here + 2 * span * channels
        count -= c - here
        combine(work, here, b, c, padded, lowest, work, other, padded, 1, count)
        here, other, span = other, here, 3 * span
    b, c = here + (size - span) // 2 * channels, here + (size - span) * channels
    count = padded - (size - 1) * channels
    combine(work, here, b, c, padded, lowest, results, target, step, rows, count)


@kernel
def masked_rows(
    work: Line,
    block: Index,
    spare: Index,
    padded: Index,
    channels: Index,
    wanted: Record,
    rows: Index,
    results: Line,
    target: Index,
    step: Index,
) -> None:
    """As `extreme_rows`, of spans: two at a time with those before."""
    lowest, spans, areas = wanted.lowest, wanted.spans, areas_of(wanted)
    length = padded - (wanted.size - 1) * channels
    area = count = (rows + wanted.size - 1) * padded
    here, other, apart = block, spare, channels
    for _ in range(areas):
        count -= 2 * apart
        b, c = here + apart, here + 2 * apart
        combine(work, here, b, c, padded, lowest, work, other, padded, 1, count)
        here, other, apart = other, other + area, 3 * apart
    places = np.empty(spans.shape[0], np.int64)
    for k in range(places.size):
        begin = block if spans[k, 0] == 0 else spare + (spans[k, 0] - 1) * area
        places[k] = begin + spans[k, 1] * padded + spans[k, 2] * channels
    for i in range(rows):
        found, other = spare + areas * area, spare + areas * area + length
        for k in range(1, places.size, 2):
            a = found if k > 1 else places[0] + i * padded
            b, c = places[k] + i * padded, places[k + 1] + i * padded
            if k + 2 < places.size:
                combine(work, a, b, c, padded, lowest, work, other, padded, 1, length)
            else:
                place = target + i * step
                combine(work, a, b, c, padded, lowest, results, place, step, 1, length)
            found, other = other, found


@kernel
def keep_uncounted(
    work: Line,
    block: Index,
    padded: Index,
    channels: Index,
    wanted: Record,
    y: Index,
    rows: Index,
    height: Index,
    results: Line,
    target: Index,
    step: Index,
) -> None:
    """Write the pixels of a block from row `y` on of whose masks no cell is in the image."""
    radius, spans = wanted.size // 2, wanted.spans
    width = padded // channels - 2 * radius
    for i in range(rows):
        left, right = interior(y + i, radius, height, width, REDUCE)
        for place in range(left + width - right):
            x = place if place < left else place + right - left
            counts = False
            for k in range(spans.shape[0]):
                row, column = y + i + spans[k, 1] - radius, x + spans[k, 2] - radius
                counts |= 0 <= row < height and -(3 ** spans[k, 0]) < column < width
            for c in range(0 if counts else channels):
                own = block + (i + radius) * padded + (x + radius) * channels + c
                results[target + i * step + x * channels + c] = work[own]


@kernel
def extreme_rows(
    work: Line,
    block: Index,
    spare: Index,
    sides: Line,
    padded: Index,
    channels: Index,
    wanted: Record,
    y: Index,
    rows: Index,
    height: Index,
    results: Line,
    target: Index,
    step: Index,
) -> None:
    """Write the extremes of rows from `y` on, of a picture of some height, to places `step` apart.

    - `work`: has the rows that masks reach at `block`, and `areas_of` areas at `spare`; both are
      overwritten.
    - `padded`: samples of a row of the block. The cells of `sides` at its ends are filled here.
    """
    inset, inputs = sides.size // 2, rows + wanted.size - 1
    for i in range(inputs if inset else 0):
        row, end = block + i * padded + inset, block + (i + 1) * padded - inset
        fill_sides(work, row, end, sides, wanted.outside)
    if wanted.spans.size == 0:
        square_rows(work, block, spare, padded, channels, wanted, rows, results, target, step)
        return
    masked_rows(work, block, spare, padded, channels, wanted, rows, results, target, step)
    if wanted.border == REDUCE:
        keep_uncounted(
            work, block, padded, channels, wanted, y, rows, height, results, target, step
        )


@kernel
def extremes_at(
    source: Plane,
    y: Index,
    rows: Index,
    wanted: Record,
    sides: Line,
    work: Line,
    spare: Index,
    results: Line,
    target: Index,
    step: Index,
) -> None:
    """As `extreme_rows`, of a source, with the beginning of `work` for the block."""
    height, pitch, channels = source.shape[0], source[0].size, source.shape[2]
    samples, inset = source.reshape(source.size), sides.size // 2
    top, padded = y - inset // channels, pitch + sides.size
    for i in range(rows + wanted.size - 1):
        row = border_index(top + i, height, wanted.border) * pitch
        first = i * padded + inset
        for x in range(pitch):
            found = cell(samples, row + x) if row >= 0 else wanted.outside
            work[np.uintp(first + x)] = found
    block = np.intp(0)  # a plain 0 would be a type of its own: all of it would be compiled again
    extreme_rows(
        work, block, spare, sides, padded, channels, wanted, y, rows, height, results, target, step
    )


@kernel
def extremes_parallel(
    source: Plane, output: Plane, wanted: Record, start: Index, stop: Index
) -> None:
    """As described above."""
    sides = sides_of(source, wanted)
    padded, length = source[0].size + sides.size, output[0].size
    most = rows_of_block(stop - start, padded, wanted.size, source.itemsize)
    area = (most + wanted.size - 1) * padded
    work = np.empty((1 + areas_of(wanted)) * area + 2 * length, source.dtype)
    results = output.reshape(output.size)
    for y in range(start, stop, most):
        rows = min(most, stop - y)
        extremes_at(source, y, rows, wanted, sides, work, area, results, y * length, length)


@kernel.plain
def masked_rim(
    source: Plane,
    output: Plane,
    offsets: Array,
    radius: Index,
    lowest: Flag,
    border: Index,
    y: Index,
    first: Index,
    last: Index,
) -> None:
    """Compute output row `y` from column `first` up to `last`, whatever the border."""
    height, width, channels = source.shape
    shift = radius if border == VALID else 0
    for x in range(first, last):
        for c in range(channels):
            found = source[y + shift, x + shift, c]
            is_first = True
            for k in range(offsets.shape[0]):
                row = border_index(y + shift + offsets[k, 0], height, border)
                column = border_index(x + shift + offsets[k, 1], width, border)
                other = source.dtype.type(0)
                if row >= 0 and column >= 0:
                    other = source[row, column, c]
                elif border == REDUCE:
                    continue
                found = other if is_first else extreme(found, other, lowest)
                is_first = False
            output[y, x, c] = found


@kernel.plain
def masked_serial(
    source: Plane,
    output: Plane,
    offsets: Array,
    radius: Index,
    lowest: Flag,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops: for every sample, every cell that counts.

    - `offsets`: int64, shape (cells, 2). Row and column of each from the centre.
    """
    height, width, channels = source.shape
    inset = 0 if border == VALID else radius
    samples = source.reshape(source.size)
    pitch = width * channels
    places = np.empty(offsets.shape[0], np.int64)
    for k in range(places.size):
        places[k] = (offsets[k, 0] + radius) * pitch + (offsets[k, 1] + radius) * channels
    for y in range(start, stop):
        first, last = interior(y, radius, height, width, border)
        masked_rim(source, output, offsets, radius, lowest, border, y, 0, first)
        results = output[y].reshape(output.shape[1] * channels)
        corner = (y - inset) * pitch - inset * channels
        for x in range(first * channels, last * channels):
            found = cell(samples, corner + x + places[0])
            for k in range(1, places.size):
                found = extreme(found, cell(samples, corner + x + places[k]), lowest)
            results[x] = found
        masked_rim(source, output, offsets, radius, lowest, border, y, last, output.shape[1])


def serial_pass(
    task: CpuTask, source: Pixels, output: Pixels, table: Table, lowest: bool
) -> CpuPass:
    """Return the pass that writes the extremes of a mask's cells in `source` to `output`."""
    rows, radius, border = output.shape[0], len(table) // 2, task.border
    if is_full(table):
        border = Border.NEAREST if border is Border.REDUCE else border
        return CpuPass(extremes_serial, (source, output, radius, lowest, border.code), rows)
    arguments = (source, output, offsets_of(table), radius, lowest, border.code)
    return CpuPass(masked_serial, arguments, rows)


def _planner(lowest: bool) -> Callable[[CpuTask], Sequence[CpuPass]]:
    def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
        source, output, table = task.source, task.output, table_of(task.parameters)
        if task.level == SERIAL.id:
            return [serial_pass(task, source, output, table, lowest)]
        wanted = Extremes.of(table, lowest, task.border, source.dtype)
        return [CpuPass(extremes_parallel, (source, output, wanted), output.shape[0])]

    return plan_cpu


def extremes_launch(filter_id: str, task: CudaTask, table: Table, **defines: Any) -> Launch:
    """Return the launch that takes the extremes of a mask's cells."""
    side = len(table)
    if not is_full(table) or task.level == CONSTANT.id:
        launch = footprint_launch(filter_id, task, table, float(table.sum()), **defines)
        return masked(launch, task)
    if task.level != TUNED.id:
        return level_launch(filter_id, task, side // 2, side * side, SIZE=side, **defines)
    if task.border is Border.REDUCE:
        task = replace(task, border=Border.NEAREST)
    # The tile of level shared, and behind it the extremes of its columns.
    launch = level_launch(
        filter_id,
        replace(task, level=SHARED.id, block=None),
        side // 2,
        2 * side,
        SIZE=side,
        **defines,
    )
    columns, rows = launch.block
    lines = (columns + side - 1) * rows * task.shape[2] * task.dtype.itemsize
    return replace(
        launch,
        kernel=f"{filter_id}_tuned",
        defines={**launch.defines, "TUNED": "1"},
        shared_bytes=launch.shared_bytes + lines,
    )


def _cuda_planner(filter_id: str) -> Callable[[CudaTask], Launch]:
    return lambda task: extremes_launch(filter_id, task, table_of(task.parameters))


def spec(
    filter_id: str, *, lowest: bool, summary: str, synonyms: tuple[str, ...], use: str, avoid: str
) -> FilterSpec:
    """Return the declaration of one of the two filters."""
    word, sign = ("smallest", "min") if lowest else ("largest", "max")

    def working(window: Cells, parameters: Mapping[str, Any]) -> str:
        cells = window[table_of(parameters)]
        found = cells.min() if lowest else cells.max()
        return f"the {word} of {cells.size} cells = {number(found)}"

    return FilterSpec(
        id=filter_id,
        name=filter_id.capitalize(),
        category="Morphology",
        summary=summary,
        synonyms=synonyms,
        source=SOURCE,
        parameters=(
            size_parameter(f"Side of the mask whose {word} value is taken.", (3, 15)),
            FOOTPRINT,
        ),
        radius=radius_of,
        restores=False,
        implementations={
            "cpu": Cpu(
                _planner(lowest),
                uncompiled=uncompiled.by_numpy(uncompiled.extreme_rows(lowest)),
            ),
            "gpu": Cuda(
                _cuda_planner(filter_id),
                (SINGLE_BLOCK, GLOBAL, CONSTANT, SHARED, TEXTURE, TUNED),
            ),
        },
        explanation=Explanation(
            formula=rf"g(y, x) = \{sign}_{{(s,\,t) \in M}} u(y + s,\, x + t)",
            use=use,
            avoid=avoid,
            example=Example(working=working),
        ),
    )
