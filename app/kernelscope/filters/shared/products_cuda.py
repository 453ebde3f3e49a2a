"""Masks of whole numbers over bytes on the tensor cores: ``kernels/byte_products.cuh``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernelscope.spec.borders import Border
from kernelscope.spec.launch import CudaTask, Launch, is_small

SIXTEEN = 16
"""Samples that are copied at once where rows consist of as many."""

_CELLS, _LANES, _RESULTS = 32, 32, 16
"""Of an instruction; `_RESULTS` are those that share the cells."""

_EIGHT = 8
"""Cells of a lane, side by side; they begin at a whole eight."""

_MOST_ROWS = {3: 16, 5: 24, 7: 64}
_MOST_ROWS_ELSE = 128
_LEAST_ROWS, _SAMPLES_A_ROW = 8, 2**20
"""Rows that a warp goes down: the more, the more rows around a tile are read as well; in smaller
pictures fewer, so that there are enough warps. Measured on an H100."""


LEAST_SAMPLES, LEAST_SAMPLES_OF_LARGE = 2**26, 2**24
"""Of bytes in the output, from which on these kernels are used; the second for masks that take
longest otherwise, see `products_pay`. At 2**28 they were quicker for every mask, on an H100, from
by a tenth (3x3) to four times (15x15). Smaller pictures keep kernels that were measured there."""

_LARGE_MASK, _LARGE_SEPARABLE = 9, 15


def products_pay(task: CudaTask, size: int, rows: int) -> bool:
    """Return whether the tensor cores are quicker for `size` x `size` cells.

    Parameters
    ----------
    rows : int
        Of the mask that are multiplied: 1 if it is separable.
    """
    if task.dtype != np.uint8:
        return False
    large = size >= (_LARGE_MASK if rows > 1 else _LARGE_SEPARABLE)
    return not is_small(task, LEAST_SAMPLES_OF_LARGE if large else LEAST_SAMPLES)


def digits_of(weights: NDArray[np.int64]) -> list[NDArray[np.int8]]:
    """Return the digits of `weights` to the base 256, from -128 to 127 each, the highest first.

    Up to a million, the largest weight of a mask, there are three. Sums of the lowest two fit 32
    bits for masks of up to 15 x 15.
    """
    digits: list[NDArray[np.int8]] = []
    rest = weights.astype(np.int64)
    while not digits or rest.any():
        low = (rest + 128 & 255) - 128
        digits.append(low.astype(np.int8))
        rest = rest - low >> 8
    return digits[::-1]


def fragments(
    digits: Sequence[NDArray[np.int8]], channels: int, border: Border
) -> NDArray[np.int8]:
    """Return the weights as the lanes of a warp have them, for 16 results side by side.

    Parameters
    ----------
    digits : sequence of ndarray of int8, shape (rows, side)
        Of the weights.

    Returns
    -------
    ndarray of int8, shape (digits, rows, chunks of 32 cells, 32 lanes, 4 registers, 4 bytes)
    """
    side = digits[0].shape[1]
    samples = side // 2 * channels
    before = 0 if border is Border.VALID else -(-samples // _EIGHT) * _EIGHT
    skip = 0 if border is Border.VALID else before - samples
    chunks = -(-(skip + _RESULTS + 2 * samples) // _CELLS)
    chunk, lane, register, byte = np.indices((chunks, _LANES, 4, 4))
    result = 2 * (lane // 4) + register % 2
    cell = chunk * _CELLS + lane % 4 * _EIGHT + register // 2 * 4 + byte
    place, rest = np.divmod(cell - skip - result, channels)
    has = (rest == 0) & (place >= 0) & (place < side)
    return np.where(has, np.stack(digits)[:, :, np.where(has, place, 0)], np.int8(0))


def products_launch(launch: Launch, task: CudaTask, digits: Sequence[NDArray[np.int8]]) -> Launch:
    """Return a launch over rows for the tensor cores."""
    samples, size = task.output_shape[0] * task.out_row_samples, digits[0].shape[1]
    rows = max(samples // _SAMPLES_A_ROW, _LEAST_ROWS)
    assert launch.tile is not None
    return replace(
        launch,
        tile=(launch.tile[0], min(rows, _MOST_ROWS.get(size, _MOST_ROWS_ELSE))),
        tables=(fragments(digits, task.shape[2], task.border),),
    )
