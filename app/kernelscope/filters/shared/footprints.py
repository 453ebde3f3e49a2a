"""The cells of a mask that is no full square: shapes by name, and tables of the user.

A disk has the cells whose centres are at most ``size // 2`` from that of the mask, a cross those of
its middle row and column. For size 5:

    . . 1 . .    . . 1 . .
    . 1 1 1 .    . . 1 . .
    1 1 1 1 1    1 1 1 1 1
    . 1 1 1 .    . . 1 . .
    . . 1 . .    . . 1 . .

For kernels a mask is an odd square. A table of other sides gets rows and columns without cells
around it, so that its centre, cell n // 2 of n, is that of the square.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.schema.launch import CudaTask, Launch, level_launch
from kernelscope.schema.levels import CONSTANT, GLOBAL, SINGLE_BLOCK, TUNED
from kernelscope.schema.parameters import Choice, FootprintParameter, OddParameter

SQUARE, DISK, CROSS = "square", "disk", "cross"

LARGEST = 31  # cells of a row of a mask: kernels keep a row in a word
Table = NDArray[np.bool_]  # the cells of a mask, an odd square


def size_parameter(help: str, slider: tuple[int, int]) -> OddParameter:
    return OddParameter(
        name="size",
        label="Mask size",
        help=help,
        default=3,
        minimum=3,
        maximum=LARGEST,
        slider=slider,
        matters=lambda values: isinstance(values["footprint"], str),
    )


FOOTPRINT = FootprintParameter(
    name="footprint",
    label="Mask shape",
    help="The cells of the mask that count.",
    default=SQUARE,
    maximum=LARGEST,
    cells_of=lambda values: tuple(tuple(map(int, row)) for row in table_of(values)),
    choices=(
        Choice(SQUARE, "Square", "All cells."),
        Choice(DISK, "Disk", "Those no farther from the middle than the ends of its row."),
        Choice(CROSS, "Cross", "Those of the middle row and the middle column."),
    ),
)


def table_of(parameters: Mapping[str, Any]) -> Table:
    """Return the cells that count, as an odd square; it must not be written to."""
    return _table(parameters["footprint"], parameters["size"])


@functools.lru_cache(maxsize=64)
def _table(footprint: Any, size: int) -> Table:
    radius = size // 2
    if isinstance(footprint, str):
        away = np.abs(np.arange(-radius, radius + 1))
        down, right = away[:, np.newaxis], away
        cells = {
            SQUARE: np.ones((size, size), bool),
            DISK: down**2 + right**2 <= radius**2,
            CROSS: np.minimum(down, right) == 0,
        }[footprint]
    else:
        given = np.array(footprint, bool)
        height, width = given.shape
        radius = max(height // 2, width // 2)
        cells = np.zeros((2 * radius + 1, 2 * radius + 1), bool)
        top, left = radius - height // 2, radius - width // 2
        cells[top : top + height, left : left + width] = given
    cells.flags.writeable = False
    return cells


def radius_of(parameters: Mapping[str, Any]) -> int:
    return len(table_of(parameters)) // 2


def is_full(table: Table) -> bool:
    """Return whether a mask is a square, for which there are faster ways."""
    return len(table) > 1 and bool(table.all())


def offsets_of(table: Table) -> NDArray[np.int64]:
    """Return the rows and columns of the cells that count, from the centre; row by row."""
    return np.argwhere(table) - len(table) // 2


def flipped(table: Table) -> Table:
    """Return the mask turned by half a turn, which dilation takes where erosion takes `table`."""
    return table[::-1, ::-1]


def words_of(table: Table) -> NDArray[np.uint32]:
    """Return a word for each row of a mask: bit t is cell t."""
    bits = np.uint32(1) << np.arange(len(table), dtype=np.uint32)
    words: NDArray[np.uint32] = (table * bits).sum(axis=1, dtype=np.uint32)
    return words


def masked(launch: Launch, task: CudaTask) -> Launch:
    """Return the launch of a filter that has kernels for squares at the same levels, but one."""
    if task.level == CONSTANT.id:
        return launch
    return replace(launch, kernel=f"{launch.kernel}_masked")


STRIP = 4  # rows of a thread at level *tuned*: the macro of the same name


def footprint_launch(
    filter_id: str,
    task: CudaTask,
    table: Table,
    operations: float,
    *,
    block: tuple[int, int] = (32, 8),
    **defines: Any,
) -> Launch:
    """Return the launch of a kernel that reads the words of a mask.

    They are in global memory at levels *single-block* and *global*, in constant memory at others.

    - `operations`: for each sample, at the levels up to *texture*.
    """
    side, words = len(table), words_of(table)
    in_global = task.level in (SINGLE_BLOCK.id, GLOBAL.id)
    launch = level_launch(
        filter_id,
        task,
        side // 2,
        operations,
        block=block,
        tables=(words,),
        arguments=None if in_global else {"constant_rows": words},
        SIZE=side,
        MASKED=1,
        **defines,
    )
    if not in_global:
        launch = replace(launch, tables=())
    return in_strips(launch, task, side) if task.level == TUNED.id else launch


def in_strips(launch: Launch, task: CudaTask, side: int) -> Launch:
    """Return a launch of level *tuned* whose threads compute `STRIP` pixels each."""
    columns, rows = launch.block[0] + side - 1, STRIP * launch.block[1] + side - 1
    return replace(
        launch,
        tile=(launch.block[0], STRIP * launch.block[1]),
        shared_bytes=columns * rows * task.dtype.itemsize,
    )
