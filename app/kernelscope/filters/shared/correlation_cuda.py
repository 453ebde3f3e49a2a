"""Correlation with a square mask: the launches of the linear filters.

Masks of whole numbers over bytes run on the tensor cores: ``kernels/byte_products.cuh``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.correlation import NEGATIVE, Divisor, mask_array
from kernelscope.filters.shared.rows_cuda import LATE, QUAD, SMALL, rows_launch, rows_pay_from
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import BLOCK, CudaTask, Launch, is_small, level_launch
from kernelscope.schema.levels import TUNED
from kernelscope.schema.parameters import Mask

SIXTEEN = 16  # samples that are copied at once where rows consist of as many

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
_LARGE_MASK, _LARGE_SEPARABLE = 11, 9  # the more rows a mask has, the more lie around a tile

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

    PTX leaves open which lane has those of a row and a half of the fours; this is how an H100
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


_TYPES = (np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.float32), np.dtype(np.float64))
"""Types of weights and sums, in the order of the macro ``WEIGHT_TYPE``."""

_FLOAT_GAIN = 64.0
"""Largest gain of a mask, sum of magnitudes / divisor, whose float32 sums are near enough."""


def weight_type(weights: NDArray[Any], divisor: float, dtype: np.dtype[Any], border: Border) -> int:
    """Return the ``WEIGHT_TYPE`` in which sums are exact, or near enough for float masks."""
    total = float(np.abs(weights).sum())
    if dtype.kind != "f" and weights.dtype.kind == "i":
        white = float(np.iinfo(dtype).max)
        # The offset adds half of white times the divisor; rounding doubles a remainder.
        return 0 if total * white + max(abs(divisor), 1) * white < 2**30 else 1
    averages = bool((weights >= 0).all())
    # Under `reduce` a divisor of weights of both signs can come close to zero.
    small = border is not Border.REDUCE and total <= _FLOAT_GAIN * abs(divisor)
    return 2 if averages or small else 3


def reciprocal(divisor: int) -> tuple[int, int]:
    """Return factor and shift by which ``n // (2 * divisor) == n * factor >> 32 + shift``.

    That holds for ``0 <= n < 2**31``; the factor has 32 bits, the highest of them set
    (Granlund and Montgomery 1994, theorem 4.2).
    """
    twice = 2 * divisor
    shift = (twice - 1).bit_length() - 1
    return -(-(2 ** (32 + shift)) // twice), shift


def _exact_in_floats(total: float, divisor: float, task: CudaTask) -> bool:
    """Return whether float32 holds all sums, and quotients round as the exact ones do.

    A quotient that is no tie is 1 / (2 divisor) away from one: that must be more than the
    rounding of a float up to white. A power of two divides exactly.
    """
    white = float(np.iinfo(task.dtype).max)
    power_of_two = task.border is not Border.REDUCE and np.frexp(divisor)[0] == 0.5
    return total * white < 2**24 and (power_of_two or max(total, abs(divisor)) * white < 2**23)


def _treatment(negative: str) -> int:
    """Return the number of a choice of `NEGATIVE`, or ``keep``."""
    return [*(choice.value for choice in NEGATIVE.choices), "keep"].index(negative)


def _quotients(
    weights: NDArray[Any], divisor: int, kind: int, exact: bool, negative: str
) -> dict[str, int]:
    """Return the macros for how the sums of a mask over bytes become bytes."""
    if kind == 0 and divisor == 1:
        division = 1
    elif exact:
        # The product with the reciprocal is exact for powers of two. Else it is off by 2**-24 of
        # a quotient up to 257 at most, and those of odd divisors are no ties, but
        # 1 / (2 divisor) or more away from one.
        product = divisor < 2**14 if divisor % 2 else divisor & (divisor - 1) == 0
        division = 2 if product else 3
    else:
        division = 0
    small = int(np.abs(weights).sum()) * 255 < 2**22
    averages = bool((weights >= 0).all()) and int(weights.sum()) <= divisor
    return {
        "DIVISION": division,
        "SMALL_SUMS": int(division > 1 and small),
        "TREATMENT": _treatment(negative),
        "IN_BYTES": int(division > 0 and averages and negative != "offset"),
    }


def _fits_dot_products(weights: NDArray[Any], task: CudaTask) -> bool:
    """Return whether weights and samples are bytes in grey rows of whole words."""
    return (
        task.dtype == np.uint8
        and task.shape[2] == 1
        and task.shape[1] % QUAD == 0
        and bool((np.abs(weights) < 128).all())
        and int(np.abs(weights).sum()) * 255 < 2**22
    )


def _shifted_words(weights: NDArray[Any], border: Border) -> NDArray[np.int8]:
    """Return the rows of a mask as words of bytes, shifted for each of four results.

    Shape (4, side, bytes of the image's words around four results).
    """
    size = len(weights)
    skip = 0 if border is Border.VALID else -(size // 2) % QUAD
    length = -(-(skip + size - 1 + QUAD) // QUAD) * QUAD
    words = np.zeros((QUAD, size, length), np.int8)
    for shift in range(QUAD):
        words[shift, :, skip + shift : skip + shift + size] = weights
    return words


def _follows(divisor_parts: NDArray[Any], border: Border) -> int:
    """Return how the divisor follows the cells inside the image: not, by number or by weight."""
    if border is not Border.REDUCE or np.count_nonzero(divisor_parts) == 1:
        return 0
    return 1 if (divisor_parts == 1).all() else 2


def _finishing(
    task: CudaTask, kind: int, divisor: float, negligible: float, follows: int, negative: str
) -> NDArray[Any]:
    """Return the constant ``finishing``: how sums of ``WEIGHT_TYPE`` `kind` become samples."""
    if negative == "keep" and task.dtype.kind != "f":
        negative = "clip"  # saturation does that anyway, and kernels have a short way for it
    finishing = np.zeros(8, _TYPES[kind])
    finishing[:4] = divisor, negligible, follows, _treatment(negative)
    if kind == 0:
        middle = int(np.iinfo(task.dtype).max) // 2 + 1 if negative == "offset" else 0
        factor, shift = reciprocal(int(divisor))
        fold = -2 if negative == "absolute" else 0
        finishing[4:] = fold, (2 * middle + 1) * int(divisor), factor - 2**32, shift
    return finishing


def cuda_correlation(
    task: CudaTask,
    filter_id: str,
    mask: Mask | NDArray[np.int64],
    divisor_parts: NDArray[Any],
    negative: str = "keep",
    *,
    tensor_rows: int = 0,
    packed: bool = False,
    **defines: int | str,
) -> Launch:
    """Return the launch of a linear filter.

    - `mask`: tuple of tuples or ndarray, shape (side, side). The weights.
    - `divisor_parts`: shape (side, side). Their sum is the divisor: under ``reduce``, only those of
      cells inside the image count.
    - `negative`: a choice of `NEGATIVE`, or ``keep`` for filters that leave the sign of floats
      alone.
    - `tensor_rows`: rows of the mask that the filter's tuned kernel for bytes multiplies on the
      tensor cores (macro ``DIGITS``): all of them, the first of a separable mask, or none. Smaller
      pictures have masks of bytes multiplied four cells at a time (macro ``DOT``).
    - `packed`: see `rows_launch`.
    - `defines`: more macros for the kernel.
    """
    weights = mask_array(mask) if isinstance(mask, tuple) else mask
    size = len(weights)
    divisor = Divisor.of(divisor_parts)
    total = float(divisor.table[-1, -1])
    if total < 0:
        weights, total = -weights, -total
    kind = weight_type(weights, total, task.dtype, task.border)
    negligible = divisor.negligible if kind >= 2 else 0
    tuned = task.level == TUNED.id
    exact = kind == 0 and _exact_in_floats(float(np.abs(weights).sum()), total, task)
    digits = None
    words: dict[str, NDArray[Any]] = {}
    if tuned and tensor_rows and kind < 2 and products_pay(task):
        digits = digits_of(weights[:tensor_rows])
        defines |= {
            "DIGITS": len(digits),
            "CHANNELS": task.shape[2],
            "WHOLE_SIXTEENS": int(task.row_samples % SIXTEEN == 0),
        }
        if tensor_rows > 1:
            defines |= _quotients(weights, int(total), kind, exact, negative)
    elif tuned and exact:
        if tensor_rows > 1 and _fits_dot_products(weights, task):
            words["constant_words"] = _shifted_words(weights, task.border)
        else:
            kind = 2
    table = weights.reshape(-1).astype(_TYPES[kind])
    follows = _follows(divisor_parts, task.border)
    operations = 2 * size * size + 1
    defines |= {"SIZE": size, "WEIGHT_TYPE": kind, **({"DOT": 1} if words else {})}
    in_constant = {"constant_weights": table}
    arguments = {"finishing": _finishing(task, kind, total, negligible, follows, negative)}
    if tuned:
        constants = {**words, **in_constant, **arguments}
        launch = rows_launch(filter_id, task, size, operations, constants, packed, **defines)
        return products_launch(launch, task, digits) if digits else launch
    return level_launch(
        filter_id,
        task,
        size // 2,
        operations,
        block=BLOCK,
        constants=in_constant,
        tables=(table,),
        arguments=arguments,
        **defines,
    )


LARGEST_UNROLLED = 9
"""Size up to which the levels have no loops over cells: ``UNROLLED_SIZE`` in ``cells.cuh``."""


def correlation_pays_from(
    task: CudaTask, launch: Launch, size: int, *, separable: bool = False
) -> float:
    """Return the least samples for which a tuned `launch` pays, for a mask of `size` x `size`.

    Sums of whole numbers take several times as many instructions as floats (`DOT` and the tensor
    cores aside), so that saving loads pays late; with masks that levels do not unroll later
    still, and in colour, where neighbours share no loads, never. Nor do floats in colour gain
    before the picture is large, as long as levels unroll the whole mask. Those of separable masks
    save more than loads.
    """
    if separable:
        # Under `reduce` other levels look at every cell of a large mask twice.
        cut = task.border is Border.REDUCE and size > 8
        return min(1.0, 8 / size) * SMALL * (0.3 if cut else 1.0)
    colour = task.shape[2] > 1
    if launch.defines["WEIGHT_TYPE"] in ("0", "1") and not {"DOT", "DIGITS"} & {*launch.defines}:
        if size <= LARGEST_UNROLLED:
            return LATE
        return math.inf if colour else 16 * SMALL
    if colour and task.dtype.kind == "f" and 3 < size <= LARGEST_UNROLLED:
        return LATE
    return rows_pay_from(task)
