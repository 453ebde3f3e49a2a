"""The median on the CPU: its levels and their passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from kernelscope.base.errors import InvalidImage
from kernelscope.filters.median import masked
from kernelscope.filters.median.kernels import (
    VECTOR,
    Medians,
    median_counting,
    median_frame,
    median_huang,
    median_parallel,
    median_serial,
)
from kernelscope.filters.median.networks import median_program
from kernelscope.filters.shared import groups
from kernelscope.filters.shared.footprints import Table, is_full, table_of
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import CpuPass, CpuTask
from kernelscope.schema.levels import PARALLEL, SERIAL, Level

LEVEL_1 = 24_576  # bytes of level-1 cache for the intermediate rows of a network

SHORTEST = 256
"""Fewest samples to run a network on: for fewer, starting its loops would take longer than the
loops themselves."""

COUNTED = 19
"""Smallest mask for which bytes are counted: up to 17 x 17 a network takes less time, measured on
uniform noise and on a photograph with registers of 16 bytes."""

EXCHANGES = 2**24
"""Most comparisons in a unit of work of level `BUBBLE`, so that a run can be cancelled soon."""

PLAIN = replace(
    SERIAL, help="One thread, plain loops: Hoare's selection picks the middle cell of each mask."
)
BUBBLE = Level(
    "serial-bubble",
    "Serial, bubble sort",
    "One thread, plain loops: sorts the cells of each mask by exchanging neighbours.",
    single=True,
    why="Each window is sorted as a whole although only its middle value is wanted, by a method "
    "that takes the square of the number of cells.",
    source="Source F goes from it to selection (chapter 6).",
)
HUANG = Level(
    "serial-huang",
    "Serial, Huang",
    "One thread: counts values while the mask moves along the row; for 8 and 16 bits.",
    single=True,
    why="When the mask moves by a pixel, one column of cells enters and one leaves: a histogram is "
    "brought up to date instead of a window being sorted again, so that the time grows with the "
    "side of the mask and not with its area.",
    source="Huang, Yang and Tang 1979.",
)
LEVELS = (PLAIN, BUBBLE, HUANG, PARALLEL)


def plan_serial(task: CpuTask, table: Table) -> Iterator[CpuPass]:
    """Plan the levels that run on one thread."""
    size, is_square = len(table), is_full(table)
    arguments = (task.source, task.output, size // 2, task.border.code)
    rows, width = task.output.shape[:2]
    if task.level != HUANG.id:
        bubble = task.level == BUBBLE.id
        step = max(1, EXCHANGES // int(table.sum()) ** 2) if bubble else width
        if not is_square:
            yield from masked.plan_serial(task, table, step, bubble)
            return
        for first in range(0, width, step):
            columns = (first, min(first + step, width))
            yield CpuPass(median_serial, (*arguments, bubble, columns), rows)
    elif task.source.dtype.kind == "f":
        raise InvalidImage(
            "Values with fractions cannot be counted one by one, as Huang's histogram does.",
            "Choose another level, or a picture of 8 or 16 bits.",
        )
    elif not is_square:
        yield masked.plan_huang(task, table)
    else:
        yield CpuPass(median_huang, (*arguments, 4 * task.source.itemsize), rows)


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    table = table_of(task.parameters)
    size, rows = len(table), task.output.shape[0]
    if task.level != PARALLEL.id:
        return list(plan_serial(task, table))
    if not is_full(table):
        return masked.plan_parallel(task, table)
    if size == 3 and groups.applies(task.output):
        grouped = (task.source, task.output, Medians(), task.border.code)
        passes = [CpuPass(groups.sweep_rows, grouped, rows)]
    elif size >= COUNTED and task.source.itemsize == 1:
        arguments = (task.source, task.output, size // 2, task.border.code)
        passes = [CpuPass(median_counting, arguments, rows)]
    else:
        passes = [plan_network(task, size)]
    if task.border is Border.REDUCE:
        passes.append(CpuPass(median_frame, (task.source, task.output, size // 2), rows))
    return passes


def plan_network(task: CpuTask, size: int) -> CpuPass:
    program = median_program(size)
    places = len(program.places)
    share = LEVEL_1 // (places * task.source.itemsize)
    chunk = max(SHORTEST, share // VECTOR * VECTOR)
    network = ((0,) * size, np.array(program.results), places, chunk)
    arguments = (task.source, task.output, task.border.code, *network)
    return CpuPass(median_parallel, arguments, task.output.shape[0])
