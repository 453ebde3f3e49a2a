"""Launches of kernels that walk down rows, four samples a thread: ``kernels/tuned_rows.cuh``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from kernelscope.schema.borders import Border
from kernelscope.schema.launch import BLOCK, CudaTask, Launch, level_launch

THREADS = 128  # of a block: macro ``TUNED_THREADS``
QUAD = 4  # samples side by side of a thread: macro ``QUAD``

_LEAST_ROWS, _MOST_ROWS = 2, 64
_SAMPLES_A_ROW = 2**21
"""Output samples for each row that a block goes down, divided by the size of the mask: the larger
that is, the more rows a thread reads twice, and the fewer threads the registers leave room for.
The numbers of rows were measured on an H100, 1 to 64 for masks of 3x3 to 15x15, at 128 to 4096
pixels squared."""

_ENOUGH_ROWS, _ENOUGH_SIZES = 24, 4
"""More rows, also more than this many for each row of the mask, are too few threads ..."""

_SAMPLES_A_LATE_ROW = 2**22
"""... but in very large images, of which there are still enough."""

_SAMPLES_A_WIDE_ROW, _MOST_WIDE_ROWS = 2**18, 12
"""Output samples for each row of a thread that has two quads of grey bytes, and the most rows. With
words of 4 bytes even a copy takes a fifth longer than with words of 8; rows of low tiles lie
together in memory. Measured on an H100, 2 to 64 rows for 3x3 and 5x5 cells, at 512 to 16384
pixels squared."""

_COLOUR_SIZE = 5  # least size that counts for the rows of colour pictures

SMALL = 900_000
"""Output samples from which on these kernels are quicker than other levels: of two rows each, that
is 850 threads for each multiprocessor of an H100."""

LATE = 4 * SMALL  # the same for cases that pay later, in colour


def rows_pay_from(task: CudaTask) -> float:
    """Return the least output samples for which these kernels pay.

    Bytes in colour pay later under the border `valid`, where other levels need not ask whether a
    pixel lies on the rim.
    """
    bytes_in_colour = task.dtype.itemsize == 1 and task.shape[2] > 1
    return LATE if bytes_in_colour and task.border is Border.VALID else SMALL


def _rows(samples: int, size: int, channels: int) -> int:
    """Return how many rows of `samples` results a thread should go down, for a mask of `size`."""
    if channels > 1:  # neighbours share no cells of a row: going down is all that saves loads
        size = max(size, _COLOUR_SIZE)
    rows = min(samples * size // _SAMPLES_A_ROW, max(_ENOUGH_ROWS, _ENOUGH_SIZES * size))
    return min(max(rows, samples // _SAMPLES_A_LATE_ROW, _LEAST_ROWS), _MOST_ROWS)


def rows_launch(
    filter_id: str,
    task: CudaTask,
    size: int,
    operations: float,
    constants: Mapping[str, NDArray[Any]] | None = None,
    packed: bool = False,
    **defines: int | str,
) -> Launch:
    """Return the launch of level *tuned* over quads of samples, for a mask of `size` x `size`.

    See `level_launch` for the other parameters.

    - `packed`: whether the kernel goes down grey bytes by ``packed.cuh``, where a thread may have
      two quads.
    """
    samples = task.output_shape[0] * task.out_row_samples
    rows, wide = _rows(samples, size, task.shape[2]), 1
    if packed:
        grey_bytes = task.dtype.itemsize == 1 and task.shape[2] == 1
        if grey_bytes and task.shape[1] % (2 * QUAD) == 0:
            wide = 2
            rows = min(max(samples // _SAMPLES_A_WIDE_ROW, _LEAST_ROWS), _MOST_WIDE_ROWS)
        defines["WIDE"] = wide
    launch = level_launch(
        filter_id,
        task,
        0,
        operations,
        block=BLOCK,
        constants=None,
        tables=(),
        arguments=None,
        QUAD=QUAD,
        TUNED_THREADS=THREADS,
        **defines,
    )
    return replace(
        launch,
        block=(THREADS, 1),
        tile=(THREADS * wide * QUAD // task.shape[2], rows),
        constants=constants or {},
    )
