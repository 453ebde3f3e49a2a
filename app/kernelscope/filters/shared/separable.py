"""Symmetric weights along both axes: the passes of the Gaussian, and of filters made of it.

A mask whose weights are products of a row with itself takes two passes: down the columns, and along
the rows of their sums. Of n x n cells 2 n are left. For example with the weights 1 2 1 and 4 x 4:

    columns   1 2 1 of 10 10 10 = 40, of 10 50 10 = 120      rows   (40 + 2 * 120 + 40) / 16 = 20

Each sum begins with the middle cell and adds pairs at the same distance from it, outwards:

    w0 * c + w1 * (b + d) + w2 * (a + e)          of the cells a b c d e

in float32, rounded after each operation, whatever the type of the samples. So every level, of the
processor and of a card, has the same bits. Sums err by about 2**-22 of the largest cell: bytes by a
thousandth of a level, 16 bits by a fiftieth, before they are rounded. Only float64, which no card
gets, is added up in float64.

Each axis may have a sigma of its own. Both rows of weights are as long as the longer one then, with
zeros at the ends of the other, so that there is one radius.

Under ``reduce`` each pass divides by the weights inside the picture, added up in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidParameter
from kernelscope.base.jit import (
    Array,
    Index,
    Line,
    Number,
    Plane,
    Record,
    inlined,
    intrinsic,
    kernel,
)
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.border_kernels import (
    REDUCE,
    VALID,
    border_index,
    fill_sides,
    find_sides,
    pad_columns,
)
from kernelscope.filters.shared.correlation import Finish, Work
from kernelscope.filters.shared.plain import cell
from kernelscope.filters.shared.vectors import Loops
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import CpuPass, CpuTask
from kernelscope.schema.levels import SERIAL
from kernelscope.schema.parameters import AxesParameter, FloatParameter

Sharpening = tuple[float, float]
"""Amount, and the least difference that counts, in the unit of the samples."""

_LANES = 64  # sums that are kept in registers: four of AVX-512, or eight of AVX2

_ROWS, _COLUMNS = 16, 256
"""Size of a part of the picture whose columns are summed at a time."""


MOST_RADIUS = 200
"""Size of the weights in constant memory less one: macro ``MOST_RADIUS``. Tiles of level *shared*
have room for it."""

SIGMA = FloatParameter(
    name="sigma",
    label="Sigma",
    symbol="σ",
    help="Standard deviation of the bell curve: how far a pixel is spread.",
    default=1.0,
    minimum=0.0,
    maximum=100.0,
    slider=(0.3, 20.0),
    geometric=True,
    unit="px",
)

SIGMAS = AxesParameter(**vars(SIGMA))  # as `SIGMA`, or one for each axis

TRUNCATE = FloatParameter(
    name="truncate",
    label="Cut off at",
    symbol="cut off at",
    help="Where the bell curve ends, in sigmas: the mask reaches so far, rounded to pixels.",
    default=4.0,
    minimum=0.0,
    maximum=10.0,
    slider=(2.0, 6.0),
    step=0.5,
    decimals=2,
    unit="σ",
)


def sigmas_of(parameters: Mapping[str, Any], axes: int = 2) -> tuple[float, ...]:
    """Return sigma along y and x, or z, y and x."""
    sigma = parameters["sigma"]
    return sigma[::-1] if isinstance(sigma, tuple) else (sigma,) * axes


def radius(parameters: Mapping[str, Any]) -> int:
    """Return how far the mask reaches along any axis, as SciPy has it."""
    return int(parameters["truncate"] * max(sigmas_of(parameters)) + 0.5)


def check(parameters: Mapping[str, Any]) -> None:
    reach, truncate = radius(parameters), parameters["truncate"]
    if reach > MOST_RADIUS:
        sigma = max(sigmas_of(parameters))
        raise InvalidParameter(
            f"Sigma {sigma:g} px, cut off at {truncate:g} σ, makes a mask with a "
            f"radius of {reach} pixels, and {MOST_RADIUS} is the largest.",
            f"Use a sigma of up to {MOST_RADIUS / truncate:.3g} px.",
        )


def weights_of(parameters: Mapping[str, Any], axes: int = 2) -> list[NDArray[np.float64]]:
    """Return the weights along y and x, or z, y and x, each from the middle outwards.

    The middle one and twice the others add up to 1.
    """
    found = []
    for sigma in sigmas_of(parameters, axes):
        distances = np.arange(int(parameters["truncate"] * sigma + 0.5) + 1)
        weights = np.exp(-0.5 * (distances / (sigma if distances.size > 1 else 1.0)) ** 2)
        found.append(np.asarray(weights / (2 * math.fsum(weights) - weights[0])))
    return found


def weights_of_passes(parameters: Mapping[str, Any]) -> tuple[NDArray[np.float64], ...]:
    """Return the weights down the columns and along the rows, both of shape (radius + 1,)."""
    size = radius(parameters) + 1
    down, across = (np.pad(each, (0, size - each.size)) for each in weights_of(parameters))
    return down, across


@kernel.plain
def weight_inside(i: Index, count: Index, weights: Line) -> Any:
    """Return the sum of the weights around cell `i` whose cells are among `count`."""
    total = weights[0]
    for k in range(1, weights.size):
        inside = np.int64(i - k >= 0) + np.int64(i + k < count)
        total += weights[k] * weights.dtype.type(inside)
    return total


@kernel
def is_cut(i: Index, count: Index, weights: Line) -> Any:
    return i < weights.size - 1 or i > count - weights.size


@intrinsic
def weigh(
    context: Any,
    builder: Any,
    types: Any,
    cells: Any,
    place: Any,
    step: Any,
    weights: Any,
    totals: Any,
) -> None:
    """Write the weighted sums of cells from `place` on, and of pairs `step` or more from them."""
    count, sizes = builder.extract_value(totals, 2), builder.extract_value(weights, 2)
    narrow, wide = (Loops(context, builder, lanes) for lanes in (1, _LANES))
    cells, weights, totals = (
        narrow.start(kind, value)
        for kind, value in zip(
            (types[0], types[3], types[4]), (cells, weights, totals), strict=True
        )
    )
    one = count.type(1)

    def write(loops: Loops, x: Any) -> None:
        """Write the sums of a step."""
        middle = builder.add(place, x)

        def weighted(cells: Any, number: Any) -> Any:
            return builder.fmul(loops.spread(loops.item(weights, number)), cells)

        def pair(k: Any) -> list[Any]:
            number = builder.add(k, one)
            away = builder.mul(number, step)
            before, after = builder.sub(middle, away), builder.add(middle, away)
            both = builder.fadd(loops.load(cells, before), loops.load(cells, after))
            return [weighted(both, number)]

        first = weighted(loops.load(cells, middle), count.type(0))
        (total,) = loops.sums(builder.sub(sizes, one), [first], pair)
        loops.store(total, totals, x)

    is_long = builder.icmp_signed(">=", count, count.type(_LANES))
    with builder.if_else(is_long) as (then, otherwise):
        for branch, loops in ((then, wide), (otherwise, narrow)):
            with branch, loops.steps(count) as x:
                write(loops, x)


@kernel
def sum_columns(
    source: Plane, row: Index, rows: Index, weights: Line, border: Index, part: Line, sums: Array
) -> None:
    """Write the sums down the columns around rows of the source, from `row` on.

    Of a part of the columns at a time, whose cells are converted once, and stay in the caches.
    """
    height, pitch, radius = source.shape[0], source[0].size, weights.size - 1
    samples = source.reshape(source.size)
    length = min(_COLUMNS, pitch)
    for left in range(0, pitch, length):
        left = min(left, pitch - length)
        for i in range(rows + 2 * radius):
            y = border_index(row + i - radius, height, border)
            line = part[i * length : (i + 1) * length]
            if y < 0:
                line[:] = 0
                continue
            first = y * pitch + left
            for x in range(length):
                line[x] = samples[np.uintp(first + x)]
        for i in range(rows):
            totals = sums[i, left : left + length]
            weigh(part, (i + radius) * length, length, weights, totals)


@inlined
def sharpened(mean: Number, own: Number, sharpening: Record) -> Any:
    """Return the own sample plus `amount` times its difference from the mean, if that counts.

    All have the type of the sums.
    """
    if sharpening is None:
        return mean
    amount, least = sharpening
    difference = own - mean
    return own + amount * difference if abs(difference) >= least else own


@inlined
def settled(value: Number, finish: Record) -> Any:
    """Return `value` as a sample, rounded (ties to even) and saturated."""
    if finish.whole:
        value = np.rint(value)
    return min(max(value, finish.low), finish.high)


@kernel
def finish_samples(
    means: Line, samples: Line, sharpening: Record, finish: Record, results: Line
) -> None:
    for x in range(results.size):
        own = means.dtype.type(samples[x])
        results[x] = settled(sharpened(means[x], own, sharpening), finish)


@kernel
def divide_row(totals: Line, width: Index, channels: Index, weights: Line) -> None:
    """Divide the sums along a row by the weights inside the picture."""
    for x in range(width):
        if is_cut(x, width, weights):
            inside = weight_inside(x, width, weights)
            for c in range(channels):
                totals[x * channels + c] = np.true_divide(totals[x * channels + c], inside)


@kernel
def separable_parallel(
    source: Plane,
    output: Plane,
    down: Line,
    across: Line,
    sharpening: Record,
    finish: Record,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Rows at a time, by vectors.

    - `down`, `across`: weights of shape (radius + 1,), from the middle outwards, of the type of the
      sums.
    - `sharpening`: `Sharpening`, or None where the mean is the result.
    """
    height, width, channels = source.shape
    radius = down.size - 1
    inset = radius if border == VALID else 0
    pitch, size = width * channels, output.shape[1] * channels
    samples = source.reshape(source.size)
    begin, step = (radius - inset) * channels, radius * channels
    most = max(1, min(_ROWS, stop - start))
    part = np.empty((most + 2 * radius) * min(_COLUMNS, pitch) + 64 // down.itemsize, down.dtype)
    part = part[-np.int64(part.ctypes.data) % 64 // down.itemsize :]
    cells = np.empty((most, size + 2 * step), down.dtype)
    sides = np.empty(2 * begin, np.int64)
    find_sides(width, radius - inset, channels, border, sides)
    means = np.empty(size, down.dtype)
    for block in range(start, stop, most):
        rows = min(most, stop - block)
        sum_columns(source, block + inset, rows, down, border, part, cells[:, begin:])
        for y in range(block, block + rows):
            row, line = y + inset, cells[y - block]
            if border == REDUCE and is_cut(row, height, down):
                inside = weight_inside(row, height, down)
                for x in range(begin, begin + pitch):
                    line[x] = np.true_divide(line[x], inside)
            fill_sides(line, begin, begin + pitch, sides, 0)
            weigh(line, step, channels, across, means)
            if border == REDUCE:
                divide_row(means, width, channels, across)
            own = samples[row * pitch + inset * channels :][:size]
            finish_samples(means, own, sharpening, finish, output[y].reshape(size))


@inlined.plain
def plain_sum(samples: Line, place: Index, step: Index, weights: Line) -> Any:
    """Return the weighted sum of the cells around a place, `step` apart."""
    total = weights[0] * weights.dtype.type(cell(samples, place))
    for k in range(1, weights.size):
        before, after = cell(samples, place - k * step), cell(samples, place + k * step)
        total += weights[k] * (weights.dtype.type(before) + weights.dtype.type(after))
    return total


@kernel.plain
def plain_columns(
    source: Plane, row: Index, weights: Line, border: Index, window: Line, sums: Line
) -> None:
    """As `sum_columns`, around a `row` of the source whose mask leaves it: from copied cells."""
    height, width, channels = source.shape
    samples = source.reshape(source.size)
    radius = weights.size - 1
    for k in range(width * channels):
        for s in range(window.size):
            y = border_index(row + s - radius, height, border)
            window[s] = cell(samples, y * width * channels + k) if y >= 0 else 0
        sums[k] = plain_sum(window, radius, 1, weights)


@kernel.plain
def separable_serial(
    source: Plane,
    output: Plane,
    down: Line,
    across: Line,
    sharpening: Record,
    finish: Record,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops: for every sample, every cell of its column; then every sum of its row."""
    height, width, channels = source.shape
    radius = down.size - 1
    inset = radius if border == VALID else 0
    pitch, size = width * channels, output.shape[1] * channels
    samples = source.reshape(source.size)
    window = np.empty(2 * radius + 1, source.dtype)
    cells = np.empty(size + 2 * radius * channels, down.dtype)
    sums = cells[(radius - inset) * channels :][:pitch]
    for y in range(start, stop):
        row = y + inset
        if radius <= row < height - radius:
            for k in range(pitch):
                sums[k] = plain_sum(samples, row * pitch + k, pitch, down)
        else:
            plain_columns(source, row, down, border, window, sums)
        if border == REDUCE and is_cut(y, height, down):
            inside = weight_inside(y, height, down)
            for k in range(pitch):
                sums[k] = np.true_divide(sums[k], inside)
        pad_columns(cells, radius, channels, border)
        results = output[y].reshape(size)
        for k in range(size):
            total = plain_sum(cells, k + radius * channels, channels, across)
            x = k // channels
            if border == REDUCE and is_cut(x, width, across):
                total = np.true_divide(total, weight_inside(x, width, across))
            own = down.dtype.type(cell(samples, row * pitch + k + inset * channels))
            results[k] = settled(sharpened(total, own, sharpening), finish)


def _numbers(
    task: CpuTask, sharpening: Sharpening | None
) -> tuple[list[NDArray[Any]], tuple[Any, ...] | None]:
    """Return the weights of both passes, read-only, and the sharpening, in the type of the sums."""
    work: Work = np.float64 if task.source.dtype == np.float64 else np.float32
    weights = [each.astype(work) for each in weights_of_passes(task.parameters)]
    for each in weights:
        each.flags.writeable = False
    return weights, None if sharpening is None else tuple(map(work, sharpening))


def separable_cpu(task: CpuTask, sharpening: Sharpening | None = None) -> Sequence[CpuPass]:
    """Return the pass of a filter with the parameters `SIGMA` and `TRUNCATE`."""
    source, output, (weights, numbers) = task.source, task.output, _numbers(task, sharpening)
    finish = Finish.of(source.dtype, weights[0].dtype.type)
    others = (*weights, numbers, finish, task.border.code)
    sweep = separable_serial if task.level == SERIAL.id else separable_parallel
    return [CpuPass(sweep, (source, output, *others), output.shape[0])]


def separable_uncompiled(
    sharpening_of: Callable[[CpuTask], Sharpening | None] = lambda task: None,
) -> Callable[[CpuTask], Sequence[CpuPass]]:
    """Return the same passes by NumPy alone, with the same bits."""

    def rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
        (down, across), sharpening = _numbers(task, sharpening_of(task))
        reach = down.size - 1
        samples = uncompiled.cells(task, reach, start, stop, down.dtype).samples
        own = samples[reach:, reach:][: stop - start, : task.output.shape[1]]
        if task.border is Border.REDUCE:
            height, width, _ = task.source.shape
            means = _weighed(samples, down, 0) / _inside(start, stop, height, down)[:, None]
            means = _weighed(means, across, 1) / _inside(0, width, width, across)
        else:
            means = _weighed(_weighed(samples, down, 0), across, 1)
        if sharpening is not None:
            amount, least = sharpening
            difference = own - means
            means = np.where(np.abs(difference) >= least, own + amount * difference, own)
        return uncompiled.finished(task, means)

    return uncompiled.by_numpy(rows)


def _weighed(samples: NDArray[Any], weights: NDArray[Any], axis: int) -> NDArray[Any]:
    reach, length = weights.size - 1, samples.shape[axis] - 2 * weights.size + 2

    def cells(shift: int) -> NDArray[Any]:
        return samples.take(range(reach + shift, reach + shift + length), axis)

    totals = weights[0] * cells(0)
    for k in range(1, weights.size):
        totals += weights[k] * (cells(-k) + cells(k))
    return totals


def _inside(start: int, stop: int, count: int, weights: NDArray[Any]) -> NDArray[Any]:
    """Return the divisors of places along an axis, shape (places, 1); 1 where none is cut off."""
    places = np.arange(start, stop)
    found = np.full(places.size, weights[0])
    for k in range(1, weights.size):
        found += weights[k] * ((places >= k) + (places + k < count).astype(weights.dtype))
    cut = (places < weights.size - 1) | (places > count - weights.size)
    return np.where(cut, found, weights.dtype.type(1))[:, None]
