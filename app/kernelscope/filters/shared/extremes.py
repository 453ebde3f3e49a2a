"""The smallest or the largest sample of a mask, for the filters minimum, maximum and morphology.

Level *parallel* takes three comparisons for each sample down the columns, whatever the size (van
Herk 1992, Gil and Werman 1993): of ``size`` rows that one result after another leaves, the extremes
from each row to the last are written down, and those that join come one by one:

    size 3, rows    a b c | d e          result 1    abc
    written down    abc bc c             result 2    bc and d
    joining         d  de                result 3    c and de

Along the row, extremes of 1, 2, 4, 8... neighbours are combined, of which two that overlap make
any size. Under ``reduce`` the cells that count are those of ``nearest``: a cell outside the image
repeats one of them.

That is for squares. For other masks it combines whole rows, one for each cell that counts, and
computes the windows that ``reduce`` cuts by themselves.

Sources: M. van Herk, Pattern Recognition Letters 13, 1992; J. Gil and M. Werman, IEEE Transactions
on Pattern Analysis and Machine Intelligence 15, 1993.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernelscope.base.jit import Array, Flag, Index, Line, Plane, inlined, kernel
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.border_kernels import REDUCE, VALID, border_index, fetch_row
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
from kernelscope.filters.shared.plain import cell, interior, no_simd
from kernelscope.schema.borders import Border
from kernelscope.schema.explanation import Cells, Example, Explanation, number
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask, FilterSpec
from kernelscope.schema.launch import Cuda, CudaTask, Launch, level_launch
from kernelscope.schema.levels import (
    CONSTANT,
    GLOBAL,
    SERIAL,
    SHARED,
    SINGLE_BLOCK,
    TEXTURE,
    TUNED,
)
from kernelscope.schema.samples import Pixels

SOURCE = "Gonzalez and Woods, Digital Image Processing, chapters 5 and 9; van Herk 1992"


@inlined
def extreme(a: Any, b: Any, lowest: Flag) -> Any:
    no_simd()
    return a if (a < b) == lowest else b


@kernel
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
    no_simd()
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
def combine(some: Line, others: Line, results: Line, lowest: Flag) -> None:
    """Write the smaller or the larger of each two samples; a loop for each, which vectorises.

    Results that lie where samples do would be computed one by one.
    """
    if lowest:
        for x in range(results.size):
            results[x] = some[x] if some[x] < others[x] else others[x]
    else:
        for x in range(results.size):
            results[x] = some[x] if some[x] > others[x] else others[x]


@kernel
def along_row(
    columns: Line, spare: Line, size: Index, step: Index, lowest: Flag, results: Line
) -> None:
    """Write the extreme of `size` columns from each one on, `step` samples apart.

    `columns` and `spare` are overwritten.
    """
    span, length = 1, columns.size
    while 2 * span <= size:
        length -= span * step
        combine(columns[:length], columns[span * step :][:length], spare[:length], lowest)
        columns, spare = spare, columns
        span *= 2
    rest = (size - span) * step
    combine(columns[: results.size], columns[rest:][: results.size], results, lowest)


@kernel
def extremes_parallel(
    source: Plane,
    output: Plane,
    size: Index,
    lowest: Flag,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """As described above, in groups of `size` rows."""
    channels = source.shape[2]
    length = output.shape[1] * channels
    padded = length + (size - 1) * channels
    leaving = np.empty((size, padded), source.dtype)
    joining, joined = np.empty(padded, source.dtype), np.empty(padded, source.dtype)
    row = np.empty(padded, source.dtype)
    columns, spare = np.empty(padded, source.dtype), np.empty(padded, source.dtype)
    for first in range(start, stop, size):
        fetch_row(source, first + size - 1, size // 2, border, leaving[size - 1])
        for s in range(size - 2, -1, -1):
            fetch_row(source, first + s, size // 2, border, row)
            combine(row, leaving[s + 1], leaving[s], lowest)
        for y in range(first, min(first + size, stop)):
            found = leaving[y - first]
            if y == first:
                combine(found, found, columns, lowest)
            else:
                fetch_row(source, y + size - 1, size // 2, border, row)
                combine(row if y == first + 1 else joining, row, joined, lowest)
                combine(found, joined, columns, lowest)
                joining, joined = joined, joining
            along_row(columns, spare, size, channels, lowest, output[y].reshape(length))


@kernel
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
    no_simd()
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


@kernel
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
    no_simd()
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


@kernel
def masked_parallel(
    source: Plane,
    output: Plane,
    offsets: Array,
    radius: Index,
    lowest: Flag,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Combine a row for each cell that counts; offsets as for `masked_serial`."""
    channels = source.shape[2]
    side, length = 2 * radius + 1, output.shape[1] * channels
    ring = np.empty((side, length + 2 * radius * channels), source.dtype)
    found, joined = np.empty(length, source.dtype), np.empty(length, source.dtype)
    for row in range(start, stop + side - 1):
        fetch_row(source, row, radius, border, ring[row % side])
        y = row - side + 1
        if y < start:
            continue
        for k in range(offsets.shape[0]):
            cells = ring[(y + radius + offsets[k, 0]) % side]
            others = cells[(radius + offsets[k, 1]) * channels :][:length]
            combine(others if k == 0 else found, others, joined, lowest)
            found, joined = joined, found
        output[y].reshape(length)[:] = found


@kernel
def masked_frame(
    source: Plane,
    output: Plane,
    offsets: Array,
    radius: Index,
    lowest: Flag,
    start: Index,
    stop: Index,
) -> None:
    """Compute the pixels whose mask is reduced, at the edges of the image."""
    height, width = output.shape[:2]
    for y in range(start, stop):
        left, right = interior(y, radius, height, width, REDUCE)
        masked_rim(source, output, offsets, radius, lowest, REDUCE, y, 0, left)
        masked_rim(source, output, offsets, radius, lowest, REDUCE, y, right, width)


def cpu_passes(
    task: CpuTask, source: Pixels, output: Pixels, table: Table, lowest: bool
) -> list[CpuPass]:
    """Return the passes that write the extremes of a mask's cells in `source` to `output`."""
    rows, radius, border = output.shape[0], len(table) // 2, task.border
    is_serial = task.level == SERIAL.id
    if is_full(table):
        border = Border.NEAREST if border is Border.REDUCE else border
        if is_serial:
            return [CpuPass(extremes_serial, (source, output, radius, lowest, border.code), rows)]
        square = (source, output, len(table), lowest, border.code)
        return [CpuPass(extremes_parallel, square, rows)]
    arguments = (source, output, offsets_of(table), radius, lowest)
    if is_serial:
        return [CpuPass(masked_serial, (*arguments, border.code), rows)]
    passes = [CpuPass(masked_parallel, (*arguments, border.code), rows)]
    if border is Border.REDUCE:
        passes.append(CpuPass(masked_frame, arguments, rows))
    return passes


def _planner(lowest: bool) -> Callable[[CpuTask], Sequence[CpuPass]]:
    def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
        return cpu_passes(task, task.source, task.output, table_of(task.parameters), lowest)

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
