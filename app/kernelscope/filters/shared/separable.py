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

A third pass, along the slices of a volume, is `sum_columns` with its slices as rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidParameter
from kernelscope.base.jit import Index, Line, Number, Plane, Record, inlined, kernel
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.border_kernels import (
    REDUCE,
    VALID,
    border_index,
    pad_columns,
)
from kernelscope.filters.shared.correlation import Finish, Work
from kernelscope.filters.shared.plain import cell, no_simd
from kernelscope.filters.shared.vectors import blank_row
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import CpuPass, CpuTask
from kernelscope.schema.levels import SERIAL
from kernelscope.schema.parameters import AxesParameter, FloatParameter

Sharpening = tuple[float, float]
"""Amount, and the least difference that counts, in the unit of the samples."""

_TILE = 4096  # samples summed at a time: totals and the lines they come from stay in the L1 cache

_GROUP = 8192
"""Samples of rows that are summed as one line: narrow rows take as long to begin as to sum up."""


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


@kernel
def begin(middle: Line, weight: Number, totals: Line) -> None:
    for x in range(totals.size):
        totals[x] = weight * totals.dtype.type(middle[x])


@kernel
def add_pair(a: Line, b: Line, weight: Number, totals: Line) -> None:
    for x in range(totals.size):
        totals[x] += weight * (totals.dtype.type(a[x]) + totals.dtype.type(b[x]))


@kernel
def add_two_pairs(
    a: Line, b: Line, c: Line, d: Line, weight: Number, next_weight: Number, totals: Line
) -> None:
    """As `add_pair` twice: totals are loaded and stored once."""
    for x in range(totals.size):
        total = totals[x] + weight * (totals.dtype.type(a[x]) + totals.dtype.type(b[x]))
        totals[x] = total + next_weight * (totals.dtype.type(c[x]) + totals.dtype.type(d[x]))


@kernel
def weight_inside(i: Index, count: Index, weights: Line) -> Any:
    """Return the sum of the weights around cell `i` whose cells are among `count`."""
    no_simd()
    total = weights[0]
    for k in range(1, weights.size):
        inside = np.int64(i - k >= 0) + np.int64(i + k < count)
        total += weights[k] * weights.dtype.type(inside)
    return total


@kernel
def is_cut(i: Index, count: Index, weights: Line) -> Any:
    return i < weights.size - 1 or i > count - weights.size


@kernel
def line_at(samples: Line, row: Index, height: Index, border: Index, blank: Line) -> Any:
    """Return the samples from a row on, as the border has it; `blank`, a row, outside the image."""
    y = border_index(row, height, border)
    return samples[y * blank.size :] if y >= 0 else blank


@kernel
def sum_columns(
    samples: Line,
    row: Index,
    height: Index,
    weights: Line,
    border: Index,
    blank: Line,
    sums: Line,
) -> None:
    """Write the sums down the columns around a row of the source, and those below it.

    `sums` has room for a row, or for several whose masks lie inside the image.
    """
    radius = weights.size - 1
    for left in range(0, sums.size, _TILE):
        totals = sums[left : left + _TILE]
        begin(line_at(samples, row, height, border, blank)[left:], weights[0], totals)
        k = 1
        while k + 1 <= radius:
            a = line_at(samples, row - k, height, border, blank)[left:]
            b = line_at(samples, row + k, height, border, blank)[left:]
            c = line_at(samples, row - k - 1, height, border, blank)[left:]
            d = line_at(samples, row + k + 1, height, border, blank)[left:]
            add_two_pairs(a, b, c, d, weights[k], weights[k + 1], totals)
            k += 2
        if k <= radius:
            a = line_at(samples, row - k, height, border, blank)[left:]
            b = line_at(samples, row + k, height, border, blank)[left:]
            add_pair(a, b, weights[k], totals)


@kernel
def sum_row(cells: Line, weights: Line, channels: Index, totals: Line) -> None:
    """Write the sums along a row, or along several with the cells between them as well.

    `cells` has the radius more pixels on both sides of each.
    """
    radius = weights.size - 1
    for left in range(0, totals.size, _TILE):
        tile = totals[left : left + _TILE]
        middle = left + radius * channels
        begin(cells[middle:], weights[0], tile)
        k = 1
        while k + 1 <= radius:
            near, far = k * channels, (k + 1) * channels
            add_two_pairs(
                cells[middle - near :],
                cells[middle + near :],
                cells[middle - far :],
                cells[middle + far :],
                weights[k],
                weights[k + 1],
                tile,
            )
            k += 2
        if k <= radius:
            near = k * channels
            add_pair(cells[middle - near :], cells[middle + near :], weights[k], tile)


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
    blank: Line,
    down: Line,
    across: Line,
    sharpening: Record,
    finish: Record,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Lines of rows at a time, which vectorises.

    - `blank`: a row of zeros.
    - `down`, `across`: weights of shape (radius + 1,), from the middle outwards, of the type of the
      sums.
    - `sharpening`: `Sharpening`, or None where the mean is the result.
    """
    height, width, channels = source.shape
    radius = down.size - 1
    inset = radius if border == VALID else 0
    margin = (radius - inset) * channels
    pitch, size = blank.size, output.shape[1] * channels
    padded = size + 2 * radius * channels
    most = max(1, _GROUP // padded)
    samples = source.reshape(source.size)
    sums = np.empty(most * pitch, down.dtype)
    cells = np.empty(most * padded, down.dtype)
    totals = np.empty(most * padded, down.dtype)
    one = down.dtype.type(1)
    y = start
    while y < stop:
        row, rows = y + inset, 1
        if row >= radius:
            rows = max(1, min(most, min(stop - y, height - radius - row)))
        sum_columns(samples, row, height, down, border, blank, sums[: rows * pitch])
        if border == REDUCE and is_cut(row, height, down):
            inside = weight_inside(row, height, down)
            for x in range(pitch):
                sums[x] = np.true_divide(sums[x], inside)
        for i in range(rows):
            line = cells[i * padded : (i + 1) * padded]
            begin(sums[i * pitch :], one, line[margin : margin + pitch])
            pad_columns(line, radius, channels, border)
        sum_row(cells, across, channels, totals[: rows * padded - 2 * radius * channels])
        for i in range(rows):
            means = totals[i * padded :][:size]
            if border == REDUCE:
                divide_row(means, width, channels, across)
            own = samples[(row + i) * pitch + inset * channels :][:size]
            finish_samples(means, own, sharpening, finish, output[y + i].reshape(size))
        y += rows


@inlined
def plain_sum(samples: Line, place: Index, step: Index, weights: Line) -> Any:
    """Return the weighted sum of the cells around a place, `step` apart."""
    no_simd()
    total = weights[0] * weights.dtype.type(cell(samples, place))
    for k in range(1, weights.size):
        before, after = cell(samples, place - k * step), cell(samples, place + k * step)
        total += weights[k] * (weights.dtype.type(before) + weights.dtype.type(after))
    return total


@kernel
def plain_columns(
    source: Plane, row: Index, weights: Line, border: Index, window: Line, sums: Line
) -> None:
    """As `sum_columns`, around a `row` of the source whose mask leaves it: from copied cells."""
    no_simd()
    height, width, channels = source.shape
    samples = source.reshape(source.size)
    radius = weights.size - 1
    for k in range(width * channels):
        for s in range(window.size):
            y = border_index(row + s - radius, height, border)
            window[s] = cell(samples, y * width * channels + k) if y >= 0 else 0
        sums[k] = plain_sum(window, radius, 1, weights)


@kernel
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
    no_simd()
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
    if task.level == SERIAL.id:
        return [CpuPass(separable_serial, (source, output, *others), output.shape[0])]
    blank = blank_row(source[0].size, source.dtype)
    return [CpuPass(separable_parallel, (source, output, blank, *others), output.shape[0])]


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
