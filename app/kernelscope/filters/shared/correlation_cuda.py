"""Correlation with a square mask: the launches of the linear filters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.correlation import NEGATIVE, Divisor, mask_array
from kernelscope.filters.shared.products_cuda import (
    SIXTEEN,
    digits_of,
    products_launch,
    products_pay,
)
from kernelscope.filters.shared.rows_cuda import LATE, QUAD, SMALL, rows_launch, rows_pay_from
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import BLOCK, CudaTask, Launch, level_launch
from kernelscope.schema.levels import TUNED
from kernelscope.schema.parameters import Mask

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
