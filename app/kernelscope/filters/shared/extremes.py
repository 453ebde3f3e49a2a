"""The smallest or the largest sample of a square, for the filters minimum and maximum.

Level *parallel* takes three comparisons for each sample down the columns, whatever the size (van
Herk 1992, Gil and Werman 1993): of ``size`` rows that one result after another leaves, the extremes
from each row to the last are written down, and those that join come one by one:

    size 3, rows    a b c | d e          result 1    abc
    written down    abc bc c             result 2    bc and d
    joining         d  de                result 3    c and de

Along the row, extremes of 1, 2, 4, 8... neighbours are combined, of which two that overlap make
any size. Under ``reduce`` the cells that count are those of ``nearest``: a cell outside the image
repeats one of them.

Sources: M. van Herk, Pattern Recognition Letters 13, 1992; J. Gil and M. Werman, IEEE Transactions
on Pattern Analysis and Machine Intelligence 15, 1993.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernelscope.base.jit import Flag, Index, Line, Plane, inlined, kernel
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.border_kernels import VALID, border_index, fetch_row
from kernelscope.filters.shared.plain import cell, interior, no_simd
from kernelscope.schema.borders import Border
from kernelscope.schema.explanation import Cells, Example, Explanation, number
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask, FilterSpec
from kernelscope.schema.launch import NO_MASK, Cuda, CudaTask, Launch, level_launch
from kernelscope.schema.levels import (
    CONSTANT,
    GLOBAL,
    SERIAL,
    SHARED,
    SINGLE_BLOCK,
    TEXTURE,
    TUNED,
)
from kernelscope.schema.parameters import OddParameter

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
    """Write the smaller or the larger of each two samples; a loop for each, which vectorises."""
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
    joining, row = np.empty(padded, source.dtype), np.empty(padded, source.dtype)
    columns, spare = np.empty(padded, source.dtype), np.empty(padded, source.dtype)
    for first in range(start, stop, size):
        for s in range(size - 1, -1, -1):
            fetch_row(source, first + s, size // 2, border, leaving[s])
            if s + 1 < size:
                combine(leaving[s], leaving[s + 1], leaving[s], lowest)
        for y in range(first, min(first + size, stop)):
            found = leaving[y - first]
            if y > first:
                fetch_row(source, y + size - 1, size // 2, border, row)
                if y == first + 1:
                    combine(row, row, joining, lowest)
                else:
                    combine(joining, row, joining, lowest)
                combine(found, joining, columns, lowest)
            else:
                combine(found, found, columns, lowest)
            along_row(columns, spare, size, channels, lowest, output[y].reshape(length))


def radius(parameters: Mapping[str, Any]) -> int:
    return int(parameters["size"]) // 2


def _planner(lowest: bool) -> Callable[[CpuTask], Sequence[CpuPass]]:
    def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
        source, output, size = task.source, task.output, int(task.parameters["size"])
        border = Border.NEAREST if task.border is Border.REDUCE else task.border
        if task.level == SERIAL.id:
            serial = (source, output, size // 2, lowest, border.code)
            return [CpuPass(extremes_serial, serial, output.shape[0])]
        parallel = (source, output, size, lowest, border.code)
        return [CpuPass(extremes_parallel, parallel, output.shape[0])]

    return plan_cpu


def _cuda_planner(filter_id: str) -> Callable[[CudaTask], Launch]:
    def plan_cuda(task: CudaTask) -> Launch:
        size = int(task.parameters["size"])
        if task.level != TUNED.id:
            return level_launch(filter_id, task, size // 2, size * size, SIZE=size)
        if task.border is Border.REDUCE:
            task = replace(task, border=Border.NEAREST)
        # The tile of level shared, and behind it the extremes of its columns.
        launch = level_launch(
            filter_id, replace(task, level=SHARED.id, block=None), size // 2, 2 * size, SIZE=size
        )
        columns, rows = launch.block
        lines = (columns + size - 1) * rows * task.shape[2] * task.dtype.itemsize
        return replace(
            launch,
            kernel=f"{filter_id}_tuned",
            defines={**launch.defines, "TUNED": "1"},
            shared_bytes=launch.shared_bytes + lines,
        )

    return plan_cuda


def spec(
    filter_id: str, *, lowest: bool, summary: str, synonyms: tuple[str, ...], use: str, avoid: str
) -> FilterSpec:
    """Return the declaration of one of the two filters."""
    word, sign = ("smallest", "min") if lowest else ("largest", "max")

    def working(window: Cells, parameters: Mapping[str, Any]) -> str:
        found = window.min() if lowest else window.max()
        return f"the {word} of {window.size} cells = {number(found)}"

    return FilterSpec(
        id=filter_id,
        name=filter_id.capitalize(),
        category="Morphology",
        summary=summary,
        synonyms=synonyms,
        source=SOURCE,
        parameters=(
            OddParameter(
                name="size",
                label="Mask size",
                help=f"Side of the square whose {word} value is taken.",
                default=3,
                minimum=3,
                maximum=31,
                slider=(3, 15),
            ),
        ),
        radius=radius,
        restores=False,
        implementations={
            "cpu": Cpu(
                _planner(lowest),
                uncompiled=uncompiled.by_numpy(uncompiled.extreme_rows(lowest)),
            ),
            "gpu": Cuda(
                _cuda_planner(filter_id),
                (SINGLE_BLOCK, GLOBAL, SHARED, TEXTURE, TUNED),
                {CONSTANT.id: NO_MASK},
            ),
        },
        explanation=Explanation(
            formula=rf"g(y, x) = \{sign}_{{|s|,\,|t| \le r}} u(y + s,\, x + t)",
            use=use,
            avoid=avoid,
            example=Example(working=working),
        ),
    )
