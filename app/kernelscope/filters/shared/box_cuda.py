"""The launch of ``box.cuh``, for filters that add up squares, at level *tuned*."""

from __future__ import annotations

import math

from kernelscope.schema.borders import Border
from kernelscope.schema.launch import CudaTask, Launch

_HALF_BLOCK = 128
"""Threads that walk down from the middle of a tile, and that walk up: ``BOX_HALF_BLOCK``."""

_COLUMNS = 8
"""Columns (samples of a row) of a thread: macro ``BOX_COLUMNS``."""

_LOADED = _COLUMNS * _HALF_BLOCK
"""Columns that a block reads."""

_RUN = _LOADED // 32
"""Neighbouring results that a thread computes, of the 32 of a warp: macro ``BOX_RUN``."""

_STEPS = {8: 8, 16: 4, 32: 4}
"""Rows that half a block computes at a time, by the bits of a sample: macro ``BOX_STEP``."""

_TILE_STEP = 2 * max(_STEPS.values())
"""Rows of which the height of a tile is a multiple."""

_SAMPLES_A_ROW = 340_000
"""Output samples for each row of a tile: smaller images need low tiles to occupy the whole card."""

_TALLEST_TILE = 96
"""Rows. For 16384 x 16384 bytes on an H100, tiles of 64 take 4 % longer with 15 x 15 cells, 2 %
with 31 x 31; tiles of 128 rows take 3 % longer with 31 x 31, 6 % with 63 x 63 and 99 x 99."""

_SMALL_WORK_GREY_BYTES, _SMALL_WORK, _SMALL_WORK_FLOATS, _SMALL_WORK_COUNTED = 9e6, 1e7, 5e7, 2e8
"""Cells that another level adds up, for a whole picture, from which on these kernels are faster:
their own work hardly grows with the mask. They are slower where they add up doubles, and slowest
where they divide by the number of cells that the border leaves. Measured on an H100 for 3x3 to
31x31."""


def box_pays_from(task: CudaTask, size: int) -> float:
    """Return the least samples for which these kernels pay for `size` x `size` cells."""
    work = _SMALL_WORK_FLOATS if task.dtype.kind == "f" else _SMALL_WORK
    if task.dtype.itemsize == 1 and task.shape[2] == 1:
        work = _SMALL_WORK_GREY_BYTES
    if task.border is Border.REDUCE:
        work = _SMALL_WORK_COUNTED
    return work / (size * size)


def _tile_rows(samples: int) -> int:
    """Return the height of a tile for an output of `samples`.

    Low tiles keep the rows that tiles share in the cache and all multiprocessors occupied to
    the end; but for each tile, size - 1 rows have to be added up once more.
    """
    return min(max(samples // _SAMPLES_A_ROW // _TILE_STEP, 1) * _TILE_STEP, _TALLEST_TILE)


def tile_columns(size: int, channels: int, border: Border) -> int:
    """Return how many results (pixels of a row) a block has the columns for."""
    reach = size // 2 * channels
    halo = reach if border is Border.VALID else -(-reach // _COLUMNS) * _COLUMNS
    whole = math.lcm(_RUN, channels)
    return (_LOADED - halo - reach) // whole * whole // channels


def plan_box(filter_id: str, task: CudaTask, size: int) -> Launch:
    """Return the launch of a filter of `size` x `size` sums at level *tuned*."""
    channels = task.shape[2]
    samples = task.output_shape[0] * task.out_row_samples
    tile = (tile_columns(size, channels, task.border), _tile_rows(samples))
    return Launch(
        kernel=f"{filter_id}_tuned",
        defines=task.defines(
            SIZE=size,
            CHANNELS=channels,
            TILE_COLUMNS=tile[0],
            TUNED=1,
            BOX_HALF_BLOCK=_HALF_BLOCK,
            BOX_COLUMNS=_COLUMNS,
            BOX_RUN=_RUN,
            BOX_STEP=_STEPS[8 * task.dtype.itemsize],
        ),
        block=(_HALF_BLOCK, 2),
        tile=tile,
        bytes_per_sample=2.0 * task.dtype.itemsize,
        operations_per_sample=5.0,
    )
