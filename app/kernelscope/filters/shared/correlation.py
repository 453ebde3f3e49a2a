"""Correlation with a square mask: the kernels of the linear filters on the CPU.

Every linear filter is ``settle(sum of weights times cells / divisor)``. Sums of integer
samples and integer weights are exact, in int64 or in a float type that holds them all, and
so is their rounding: a quotient of integers that is no tie is further from the tie than the
float division can err (`working_type`).

For example, with the weights 1 2 1 and the divisor 4, the cells 10 11 12 make (10 + 22 + 12) / 4 =
11. At level *parallel* a row is computed tap by tap: for every x at once, ``totals[x]`` gets
``1 * row[x] + 2 * row[x + 1] + 1 * row[x + 2]``, three taps in one sweep over a tile of the row.
For most masks of bytes `correlation_bytes` takes less time.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import (
    Array,
    Index,
    JitKernel,
    Line,
    Number,
    Plane,
    Record,
    inlined,
    kernel,
)
from kernelscope.filters.shared.border_kernels import REDUCE, VALID, fetch_row
from kernelscope.filters.shared.plain import cell, gather, interior
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import CpuPass, CpuTask, Unit
from kernelscope.schema.levels import SERIAL
from kernelscope.schema.parameters import Choice, ChoiceParameter, Mask

Work = type[np.float32] | type[np.float64]  # the type that a parallel kernel computes in

NEGLIGIBLE = 1e-9
"""A sum of weights is taken for zero up to this share of the sum of their magnitudes."""

_TILE = 1024  # samples summed at a time: totals and the rows they come from stay in the L1 cache
_GROUP = 3  # taps summed in one sweep over a tile: divides the 9 of the smallest mask


# User-defined masks default to clipping: most have a positive sum and sharpen or soften, and where
# they overshoot, a dark halo turned bright would be an edge that is not there. The presets that
# find edges bring `absolute` along.
def unit_of(parameters: Mapping[str, Any]) -> Unit:
    """Return the unit of floats: mid-grey is half of white."""
    return Unit.WHITE if parameters["negative"] == "offset" else Unit.ANY


NEGATIVE = ChoiceParameter(
    name="negative",
    label="Negative results",
    help="How to treat results below zero, which an image cannot show.",
    default="clip",
    choices=(
        Choice("clip", "Clip to black", "Everything below zero becomes zero."),
        Choice("absolute", "Absolute value", "The sign is dropped, as edges are usually shown."),
        Choice("offset", "Add mid-grey", "Adds 128, 32768 or 0.5, so that zero is mid-grey."),
    ),
)


def one_part(side: int) -> NDArray[np.float64]:
    """Return the parts of the divisor 1, shape (side, side): the centre, always inside."""
    parts = np.zeros((side, side))
    parts[side // 2, side // 2] = 1
    return parts


class Divisor(NamedTuple):
    """The divisor of the sums: the sum of those `parts` whose cells count."""

    table: NDArray[np.float64]
    """float64, shape (side + 1, side + 1). Sums of all parts above and to the left, so that any
    rectangle takes four look-ups."""
    negligible: float  # sums up to this magnitude are zero but for rounding

    @classmethod
    def of(cls, parts: NDArray[Any]) -> Divisor:
        """Return the divisor for `parts`, shape (side, side)."""
        table = np.zeros((len(parts) + 1, len(parts) + 1))
        table[1:, 1:] = parts.cumsum(0, np.float64).cumsum(1)
        return cls(table, NEGLIGIBLE * float(np.abs(parts).sum()))

    @classmethod
    def one(cls, side: int) -> Divisor:
        """Return the divisor 1, also under ``reduce``."""
        return cls.of(one_part(side))


class Finish(NamedTuple):
    """How a quotient becomes a sample: rounded, made positive, shifted, saturated.

    The three numbers have the type that the quotients are computed in.
    """

    whole: bool
    absolute: bool
    offset: np.floating[Any]
    low: np.floating[Any]
    high: np.floating[Any]

    @classmethod
    def of(cls, dtype: np.dtype[Any], work: Work, negative: str = "keep") -> Finish:
        """Return the finish for samples of `dtype`.

        `negative` is a choice of `NEGATIVE`, or ``keep`` for filters that leave the sign
        of float samples alone; integer samples saturate at zero in any case.
        """
        if dtype.kind == "f":
            high, middle = float(np.finfo(dtype).max), 0.5
            low = 0.0 if negative == "clip" else -high
        else:
            high = float(np.iinfo(dtype).max)
            low, middle = 0.0, (high + 1) / 2
        offset = middle if negative == "offset" else 0.0
        return cls(dtype.kind != "f", negative == "absolute", work(offset), work(low), work(high))


@kernel
def settle(value: Number, finish: Record) -> Any:
    """Return `value` as a sample, ties to even."""
    if finish.whole:
        value = np.rint(value)
    if finish.absolute:
        value = abs(value)
    return min(max(value + finish.offset, finish.low), finish.high)


@kernel
def divisor_at(
    y: Index, x: Index, height: Index, width: Index, divisor: Record, border: Index
) -> Any:
    table = divisor.table
    top = left = 0
    bottom = right = side = table.shape[0] - 1
    if border == REDUCE:
        radius = side // 2
        top = max(0, radius - y)
        left = max(0, radius - x)
        bottom = min(side, height + radius - y)
        right = min(side, width + radius - x)
    total = table[bottom, right] - table[top, right] - table[bottom, left] + table[top, left]
    return total if abs(total) > divisor.negligible else 1.0


@kernel.plain
def offsets_of_cells(side: Index, pitch: Index, step: Index) -> Any:
    """Return where the cells of a mask lie from its first one on, row by row.

    Its rows are `pitch` samples apart, its columns `step`.
    """
    offsets = np.empty(side * side, np.int64)
    for s in range(side):
        for t in range(side):
            offsets[s * side + t] = s * pitch + t * step
    return offsets


@inlined.plain
def weigh(samples: Line, place: Index, offsets: Line, weights: Line) -> Any:
    """Return the sum of ``weights[i] * samples[place + offsets[i]]``, int64 or float64."""
    total = 0 * weights[0]
    for i in range(weights.size):
        total += weights[i] * cell(samples, place + offsets[i])
    return total


@inlined
def put_signed(results: Line, place: Index, value: Number, finish: Record) -> None:
    """As `put`, for results that may be negative."""
    if results.dtype.type(0.5) == 0:
        value = np.rint(value)
    if finish.absolute:
        value = abs(value)
    value += finish.offset
    results[np.uintp(place)] = min(max(value, finish.low), finish.high)


@kernel.plain
def correlate_rim(
    source: Plane,
    results: Line,
    weights: Line,
    divisor: Record,
    finish: Record,
    border: Index,
    y: Index,
    first: Index,
    last: Index,
) -> None:
    """Compute `results`, output row `y`, but for the columns from `first` up to `last`."""
    height, width, channels = source.shape
    radius = (divisor.table.shape[0] - 1) // 2
    window = np.empty(weights.size, source.dtype)
    offsets = offsets_of_cells(2 * radius + 1, 2 * radius + 1, 1)
    for side in range(2):
        left, right = (0, first) if side == 0 else (last, results.size // channels)
        for x in range(left, right):
            quotient = divisor_at(y, x, height, width, divisor, border)
            for c in range(channels):
                gather(source, y, x, c, radius, border, window)
                total = weigh(window, 0, offsets, weights)
                put_signed(results, x * channels + c, np.true_divide(total, quotient), finish)


@kernel.plain
def correlate_serial(
    source: Plane,
    output: Plane,
    weights: Line,
    divisor: Record,
    finish: Record,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops: for every sample, every cell of the mask. Sums are int64 or float64.

    The cells are one loop and not one of rows and one of columns. LLVM unrolls it by eight,
    which leaves one cell of any odd square; rows of three to 15 cells are too short for that,
    and a loop of six instructions takes a third longer where it is badly aligned.

    - `weights`: int64 or float64, shape (cells,). Row by row.
    """
    height, width, channels = source.shape
    side = divisor.table.shape[0] - 1
    radius = side // 2
    inset = 0 if border == VALID else radius
    samples = source.reshape(source.size)
    pitch = width * channels
    offsets = offsets_of_cells(side, pitch, channels)
    quotient = divisor_at(0, 0, height, width, divisor, VALID)
    for y in range(start, stop):
        results = output[y].reshape(output.shape[1] * channels)
        first, last = interior(y, radius, height, width, border)
        correlate_rim(source, results, weights, divisor, finish, border, y, first, last)
        corner = (y - inset) * pitch - inset * channels
        for x in range(first * channels, last * channels):
            total = weigh(samples, corner + x, offsets, weights)
            put_signed(results, x, np.true_divide(total, quotient), finish)


@functools.partial(JitKernel, fastmath=frozenset({"contract"}))
def weighted_sum(samples: Line, offsets: Line, weights: Line, totals: Line) -> None:
    """Set ``totals[x]`` to the sum over i of ``weights[i] * samples[offsets[i] + x]``.

    - `samples`, `weights`, `totals`: float32 or of float64, one-dimensional.
    - `offsets`: int64, as many as `weights`, a multiple of `_GROUP`.
    """
    for left in range(0, totals.size, _TILE):
        tile = totals[left : left + _TILE]
        for i in range(0, offsets.size, _GROUP):
            # Slices keep the index plain, which the vectoriser needs.
            cells_0 = samples[left + offsets[i] :]
            cells_1 = samples[left + offsets[i + 1] :]
            cells_2 = samples[left + offsets[i + 2] :]
            weight_0, weight_1, weight_2 = weights[i], weights[i + 1], weights[i + 2]
            if i == 0:
                tile[:] = 0
            for x in range(tile.size):
                tile[x] += weight_0 * cells_0[x] + weight_1 * cells_1[x] + weight_2 * cells_2[x]


@kernel
def finish_row(totals: Line, divisors: Line, finish: Record, samples: Line) -> None:
    """Write ``totals / divisors``, computed in the type of `divisors`, as samples (all flat)."""
    for x in range(samples.size):
        # Python's operator would test for zero, which keeps LLVM from vectorising.
        quotient = np.true_divide(divisors.dtype.type(totals[x]), divisors[x])
        samples[x] = settle(quotient, finish)


@kernel
def update_divisors(
    divisors: Line, y: Index, first: Index, source: Plane, divisor: Record, border: Index
) -> None:
    """Make `divisors` (flat: columns x channels) those of output row `y`.

    Only ``reduce`` changes them after row `first`, and only near the top and the bottom.
    """
    height, width, channels = source.shape
    radius = divisor.table.shape[0] // 2
    if y > first and (border != REDUCE or radius < y < height - radius):
        return
    for x in range(divisors.size // channels):
        divisors[x * channels : (x + 1) * channels] = divisor_at(
            y, x, height, width, divisor, border
        )


@kernel
def correlate_parallel(
    source: Plane,
    output: Plane,
    places: Array,
    weights: Line,
    divisor: Record,
    finish: Record,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Row by row over a ring of padded rows, in the type of `weights`.

    - `places`: int64, shape (taps, 2). Row and column of each weight in the mask.
    - `weights`: float32 or float64, shape (taps,).
    """
    side = divisor.table.shape[0] - 1
    radius = side // 2
    channels = source.shape[2]
    length = output.shape[1] * channels
    stride = length + 2 * radius * channels
    ring = np.empty(side * stride, weights.dtype)
    offsets = np.empty(weights.size, np.int64)
    totals = np.empty(length, weights.dtype)
    divisors = np.empty(length, weights.dtype)
    for row in range(start, stop + side - 1):
        slot = row % side * stride
        fetch_row(source, row, radius, border, ring[slot : slot + stride])
        y = row - side + 1
        if y < start:
            continue
        for i in range(weights.size):
            offsets[i] = (y + places[i, 0]) % side * stride + places[i, 1] * channels
        weighted_sum(ring, offsets, weights, totals)
        update_divisors(divisors, y, start, source, divisor, border)
        finish_row(totals, divisors, finish, output[y].reshape(length))


def taps(weights: NDArray[Any], work: Work) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return places and weights of the cells that are not zero, padded to whole groups.

    Places are int64, shape (taps, dimensions); weights have the type `work`, shape (taps,).
    """
    places = np.argwhere(weights)
    values = weights[tuple(places.T)].astype(work)
    missing = -len(values) % _GROUP or _GROUP * (not len(values))
    return np.pad(places, ((0, missing), (0, 0))), np.pad(values, (0, missing))


def working_type(
    dtype: np.dtype[Any], weights: NDArray[Any], divisor: Divisor, border: Border
) -> Work:
    """Return the narrowest float type that gives the results that were agreed on.

    Integer samples and weights have to come out exact. Sums below 2**24 are exact in
    float32, and stay so when divided by a power of two. For any other divisor d, take a
    sum n and a tie m + 1/2 that is not n/d: they are at least 1/(2d) apart, and the
    quotient, rounded to 24 bits, can only fall on the tie if they are within
    (m + 1/2) / 2**24 of each other. That cannot be below n = 2**23, less a little room.
    Float64 does all this for any mask whose weights are at most a million.

    Integer samples and float weights may err by a level. With g groups of taps, each sum is
    rounded g times, each product and weight a few times more, each time by at most the
    largest sum / 2**24; quotients less than a level apart are rounded to neighbours.
    """
    if dtype.kind == "f":
        return np.float64
    magnitude = float(np.abs(weights).sum()) * np.iinfo(dtype).max
    total = abs(float(divisor.table[-1, -1]))
    if total <= divisor.negligible:
        total = 1.0
    if weights.dtype.kind == "i":
        power_of_two = math.frexp(total)[0] == 0.5 and border is not Border.REDUCE
        return np.float32 if magnitude < 2 ** (24 if power_of_two else 23) - 2 else np.float64
    error = magnitude / total * (weights.size / _GROUP + 5) / 2**24
    return np.float32 if error < 1 and border is not Border.REDUCE else np.float64


def cpu_correlation(
    task: CpuTask, weights: NDArray[Any], divisor: Divisor, negative: str = "keep"
) -> Sequence[CpuPass]:
    """Plan ``settle(sum of weights times cells / divisor)`` for either CPU level.

    - `weights`: int64 or float64, shape (side, side).
    - `negative`: see `Finish.of`.
    """
    source, output, border = task.source, task.output, task.border
    if task.level == SERIAL.id:
        if source.dtype.kind == "f":
            weights = weights.astype(np.float64)
        finish = Finish.of(source.dtype, np.float64, negative)
        serial = (source, output, weights.ravel(), divisor, finish, border.code)
        return [CpuPass(correlate_serial, serial, output.shape[0])]
    work = working_type(source.dtype, weights, divisor, border)
    finish = Finish.of(source.dtype, work, negative)
    parallel = (source, output, *taps(weights, work), divisor, finish, border.code)
    return [CpuPass(correlate_parallel, parallel, output.shape[0])]


def mask_array(mask: Mask) -> NDArray[Any]:
    """Return `mask` as int64 if all its weights are whole numbers, else as float64."""
    whole = all(isinstance(cell, int) for row in mask for cell in row)
    return np.array(mask, np.int64 if whole else np.float64)


def rectangle(weights: Callable[[int], NDArray[np.int64]]) -> Callable[[int, int], Any]:
    """Return the `FilterSpec.rectangle` of averages with products of `weights`, by a custom mask.

    A mask is an odd square: rows and columns of zeros are put around a rectangle.
    """

    def step(height: int, width: int) -> tuple[str, dict[str, Any]]:
        radius = max(height, width) // 2
        table = np.zeros((2 * radius + 1, 2 * radius + 1), np.int64)
        top, left = radius - height // 2, radius - width // 2
        table[top : top + height, left : left + width] = np.outer(weights(height), weights(width))
        return "mask", {"mask": tuple(map(tuple, table.tolist())), "divisor": "sum"}

    return step


def binomial(size: int) -> NDArray[np.int64]:
    """Return the binomial row of `size` numbers: 1 2 1, 1 4 6 4 1, ..."""
    return np.array([math.comb(size - 1, k) for k in range(size)], np.int64)
