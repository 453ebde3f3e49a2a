"""Masks of whole numbers over bytes on the tensor cores: ``kernels/byte_products.cuh``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernelscope.schema.borders import Border
from kernelscope.schema.launch import CudaTask, Launch, is_small

SIXTEEN = 16
"""Samples that are copied at once where rows consist of as many."""

_CELLS, _LANES, _RESULTS = 32, 32, 16
"""Of an instruction; `_RESULTS` are those that share the cells."""

_FOUR, _EIGHT = 4, 8
"""Cells of a lane, side by side, of paired rows and of others; they begin at a whole number of
them."""

_LEAST_ROWS, _SAMPLES_A_ROW = 8, 2**18
"""Rows that a warp goes down: the more, the more rows around a tile are read as well; in smaller
pictures fewer, so that there are enough warps. Measured on an H100 with 4 to 256 rows for 3x3 to
15x15, at 1024 to 16384 pixels squared."""

_MOST_ROWS, _MOST_ROWS_OF_LARGE, _MOST_ROWS_OF_LARGE_SEPARABLE = 32, 64, 128
_MOST_ROWS_OF_SMALLEST_SEPARABLE = 16
_LARGE_MASK, _LARGE_SEPARABLE = 11, 9
"""The more rows a mask has, the more lie around a tile."""

LEAST_SAMPLES = 2**20
"""Of bytes in the output, from which on these kernels are used: smaller pictures were not timed.
There and above they were quicker for every mask. Milliseconds on an H100, products of four or
floats / these: 1024 pixels squared, 3x3 0.0094 / 0.0072, 15x15 0.0317 / 0.0107, weighted means
of 3x3 0.0098 / 0.0077, 15x15 0.0400 / 0.0162; 4096 pixels squared, 3x3 0.027 / 0.020, 15x15
0.141 / 0.033; 16384 pixels squared, 3x3 0.298 / 0.192, 15x15 1.50 / 0.271."""


def products_pay(task: CudaTask) -> bool:
    """Return whether the tensor cores are the quickest for a mask."""
    return task.dtype == np.uint8 and not is_small(task, LEAST_SAMPLES)


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
    """Return the weights as the lanes of a warp have them, for the way in which products are made.

    `digits`: int8, shape (rows, side), of all rows, or of the one that is multiplied if the mask is
    separable.
    """
    rows, side = digits[0].shape
    samples = side // 2 * channels
    if rows > 1 and samples <= _FOUR:
        return _paired_fragments(digits, channels, border)
    if rows > 1 and samples < _EIGHT:
        return _sparse_fragments(digits, channels, border)
    return _plain_fragments(digits, channels, border)


def _skipped(samples: int, unit: int, border: Border) -> int:
    """Return how many cells lie before those of the first result."""
    return 0 if border is Border.VALID else -samples % unit


def _weights_at(
    digits: Sequence[NDArray[np.int8]],
    row: NDArray[np.int64],
    sample: NDArray[np.int64],
    channels: int,
) -> NDArray[np.int8]:
    """Return the digits of rows of a mask and samples from its first cell, or zeros beside it."""
    rows, side = digits[0].shape
    column, rest = np.divmod(sample, channels)
    has = (rest == 0) & (column >= 0) & (column < side) & (row >= 0) & (row < rows)
    found = np.stack(digits)[:, np.where(has, row, 0), np.where(has, column, 0)]
    return np.where(has, found, np.int8(0))


def _plain_fragments(
    digits: Sequence[NDArray[np.int8]], channels: int, border: Border
) -> NDArray[np.int8]:
    """Return the weights for 16 results side by side.

    Shape (digits, rows, chunks of 32 cells, 32 lanes, 4 registers, 4 bytes).
    """
    rows, side = digits[0].shape
    samples = side // 2 * channels
    skip = _skipped(samples, _EIGHT, border)
    chunks = -(-(skip + _RESULTS + 2 * samples) // _CELLS)
    row, chunk, lane, register, byte = np.indices((rows, chunks, _LANES, 4, 4))
    result = 2 * (lane // 4) + register % 2
    cell = chunk * _CELLS + lane % 4 * _EIGHT + register // 2 * 4 + byte
    return _weights_at(digits, row, cell - skip - result, channels)


def _paired_fragments(
    digits: Sequence[NDArray[np.int8]], channels: int, border: Border
) -> NDArray[np.int8]:
    """Return the weights for two rows of 8 results, and two rows of 16 cells at a time.

    Shape (digits, steps, 32 lanes, 4 registers, 4 bytes).
    """
    side = digits[0].shape[1]
    skip = _skipped(side // 2 * channels, _FOUR, border)
    step, lane, register, byte = np.indices(((side + 1) // 2, _LANES, 4, 4))
    result, below = lane // 4 % 4 * 2 + register % 2, lane // 16
    cell = lane % 4 * _FOUR + byte
    return _weights_at(digits, 2 * step + register // 2 - below, cell - skip - result, channels)


def _sparse_fragments(
    digits: Sequence[NDArray[np.int8]], channels: int, border: Border
) -> NDArray[np.int8]:
    """Return the weights for 16 results and two rows of 32 cells at a time, without half of them.

    A word of cells has two neighbours and those 16 cells further right, of which a result has one
    each at most. Flat: of shape (digits, steps, two rows of results, 32 lanes, 4 registers, 4
    bytes); then, of shape (32 lanes, 4 bytes), which two of each four cells have the weights.
    """
    side = digits[0].shape[1]
    samples = side // 2 * channels
    skip = _skipped(samples, _EIGHT, border)
    # For each row of the matrix and each four cells: the two that count, in order of their places.
    line, four = np.indices((_RESULTS, 16))
    result = line % 8 * 2 + line // 8
    first = four % 4 * 4 + four // 4 % 2 * 2
    sample = first - skip - result
    places = []
    for i in range(2):
        near = (sample + i >= 0) & (sample + i <= 2 * samples)
        places.append(np.where(near, i, i + 2))
    place = np.sort(np.stack(places), axis=0)
    cell = first + place % 2 + place // 2 * 16
    step, below, lane, register, byte = np.indices(((side + 1) // 2, 2, _LANES, 4, 4))
    line = lane // 4 + register % 2 * 8
    weight = lane % 4 * 4 + byte + register // 2 * 16
    row = 2 * step + weight // 16 - below
    sample = cell[weight % 2, line, weight // 2] - skip - result[line, 0]
    weights = _weights_at(digits, row, sample, channels)
    return np.concatenate([weights.reshape(-1), _packed(place).view(np.int8)])


def _packed(place: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the places, shape (2, 16 rows, 16 fours), as the lanes have them: two bits for each.

    PTX leaves open which lane has those of a row and a half of the fours; this is what an H100
    showed.
    """
    line, four = np.indices(place.shape[1:])
    bits = (place[0] | place[1] << 2).astype(np.uint32) << (4 * (four % 8)).astype(np.uint32)
    words = np.zeros(_LANES, np.uint32)
    np.bitwise_or.at(words, line % 8 * 4 + four // 8 * 2 + line // 8, bits)
    return words


def _rows(task: CudaTask, size: int, rows: int) -> int:
    """Return how many rows a warp should go down for a mask of which `rows` are multiplied."""
    if rows > 1:
        most = _MOST_ROWS_OF_LARGE if size >= _LARGE_MASK else _MOST_ROWS
    elif size >= _LARGE_SEPARABLE:
        most = _MOST_ROWS_OF_LARGE_SEPARABLE
    else:
        most = _MOST_ROWS if size > 3 else _MOST_ROWS_OF_SMALLEST_SEPARABLE
    samples = task.output_shape[0] * task.out_row_samples
    whole = samples // _SAMPLES_A_ROW // _LEAST_ROWS * _LEAST_ROWS  # warps compute 4 or 8 at once
    return min(max(whole, _LEAST_ROWS), most)


def products_launch(launch: Launch, task: CudaTask, digits: Sequence[NDArray[np.int8]]) -> Launch:
    """Return a launch over rows for the tensor cores."""
    rows, size = digits[0].shape
    assert launch.tile is not None
    return replace(
        launch,
        tile=(launch.tile[0], _rows(task, size, rows)),
        tables=(fragments(digits, task.shape[2], task.border),),
    )
