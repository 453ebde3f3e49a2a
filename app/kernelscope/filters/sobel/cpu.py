"""Sobel on the CPU: how steep the picture is; `directions` computes where to it gets brighter."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Index, Line, Plane, Record, inlined, kernel
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.border_kernels import VALID, fetch_row
from kernelscope.filters.shared.correlation import Finish, Work, settle, taps, weighted_sum
from kernelscope.filters.shared.plain import gather, interior, no_simd, put, wide_cell
from kernelscope.filters.sobel import directions
from kernelscope.schema.filter import CpuPass, CpuTask
from kernelscope.schema.levels import SERIAL

MASKS = np.array(
    [
        [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]],
        [[-1, -2, -1], [0, 0, 0], [1, 2, 1]],
        [[0, 1, 2], [-1, 0, 1], [-2, -1, 0]],
        [[-2, -1, 0], [-1, 0, 1], [0, 1, 2]],
    ],
    np.int64,
)
"""gx, gy and the two diagonals. The other four of the eight directions are their opposites."""

FORMS = ("sum", "magnitude", "directions", *directions.FORMS)
_SUM, _MAGNITUDE, _DIRECTIONS = range(3)
"""Those that `sobel_serial` and `sobel_parallel` compute; `directions` does the others."""


@inlined
def steepness(samples: Line, place: Index, pitch: Index, step: Index, form: Index) -> Any:
    """Return the float64 result for the 3x3 window whose first cell is at `place`.

    Its rows are `pitch` samples apart, its columns `step`.
    """
    below = place + 2 * pitch
    a = wide_cell(samples, place)
    b = wide_cell(samples, place + step)
    c = wide_cell(samples, place + 2 * step)
    d = wide_cell(samples, place + pitch)
    f = wide_cell(samples, place + pitch + 2 * step)
    g = wide_cell(samples, below)
    h = wide_cell(samples, below + step)
    i = wide_cell(samples, below + 2 * step)
    gx = abs(c + 2 * f + i - a - 2 * d - g)
    gy = abs(g + 2 * h + i - a - 2 * b - c)
    if form == _SUM:
        return np.float64(gx + gy)
    if form == _MAGNITUDE:
        return np.sqrt(np.float64(gx) * gx + np.float64(gy) * gy)
    rising = abs(b + 2 * c + f - d - 2 * g - h)
    falling = abs(f + 2 * i + h - b - 2 * a - d)
    return np.float64(max(max(gx, gy), max(rising, falling)))


@kernel
def sobel_rim(
    source: Plane,
    results: Line,
    form: Index,
    finish: Record,
    border: Index,
    y: Index,
    first: Index,
    last: Index,
) -> None:
    """Compute `results`, output row `y`, but for the columns from `first` up to `last`."""
    no_simd()
    channels = source.shape[2]
    window = np.empty(9, source.dtype)
    for side in range(2):
        left, right = (0, first) if side == 0 else (last, results.size // channels)
        for x in range(left, right):
            for c in range(channels):
                gather(source, y, x, c, 1, border, window)
                put(results, x * channels + c, steepness(window, 0, 3, 1, form), finish)


@kernel
def sobel_serial(
    source: Plane,
    output: Plane,
    form: Index,
    finish: Record,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops: for every sample, its eight neighbours."""
    no_simd()
    height, width, channels = source.shape
    inset = 0 if border == VALID else 1
    samples = source.reshape(source.size)
    pitch = width * channels
    for y in range(start, stop):
        results = output[y].reshape(output.shape[1] * channels)
        first, last = interior(y, 1, height, width, border)
        sobel_rim(source, results, form, finish, border, y, first, last)
        corner = (y - inset) * pitch - inset * channels
        for x in range(first * channels, last * channels):
            if channels == 1:  # a known step leaves fewer addresses to keep
                value = steepness(samples, corner + x, pitch, 1, form)
            else:
                value = steepness(samples, corner + x, pitch, channels, form)
            put(results, x, value, finish)


@kernel
def sobel_parallel(  # noqa: C901 - compiled by Numba as one loop
    source: Plane,
    output: Plane,
    places: Array,
    weights: Array,
    form: Index,
    finish: Record,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Row by row over a ring of padded rows, in the type of `weights`.

    - `places`: int64, shape (masks, taps, 2). Row and column of each weight in its mask.
    - `weights`: float32 or float64, shape (masks, taps).
    """
    channels = source.shape[2]
    length = output.shape[1] * channels
    stride = length + 2 * channels
    ring = np.empty(3 * stride, weights.dtype)
    offsets = np.empty(weights.shape[1], np.int64)
    gradient = np.empty(length, weights.dtype)
    results = np.empty(length, weights.dtype)
    for row in range(start, stop + 2):
        slot = row % 3 * stride
        fetch_row(source, row, 1, border, ring[slot : slot + stride])
        y = row - 2
        if y < start:
            continue
        results[:] = 0
        for m in range(weights.shape[0]):
            for i in range(offsets.size):
                offsets[i] = (y + places[m, i, 0]) % 3 * stride + places[m, i, 1] * channels
            weighted_sum(ring, offsets, weights[m], gradient)
            if form == _SUM:
                for x in range(length):
                    results[x] += abs(gradient[x])
            elif form == _MAGNITUDE:
                for x in range(length):
                    results[x] += gradient[x] * gradient[x]
            else:
                for x in range(length):
                    results[x] = max(results[x], abs(gradient[x]))
        if form == _MAGNITUDE:
            for x in range(length):
                results[x] = np.sqrt(results[x])
        samples = output[y].reshape(length)
        for x in range(length):
            samples[x] = settle(results[x], finish)


@functools.cache
def _taps(masks: int, work: Work) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return places and weights of the first masks, stacked; see `correlation.taps`."""
    places, weights = zip(*(taps(mask, work) for mask in MASKS[:masks]), strict=True)
    return np.stack(places), np.stack(weights)


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output, border = task.source, task.output, task.border
    form = FORMS.index(task.parameters["form"])
    if form > _DIRECTIONS:
        return directions.plan_directions(task)
    if task.level == SERIAL.id:
        finish = Finish.of(source.dtype, np.float64)
        serial = (source, output, form, finish, border.code)
        return [CpuPass(sobel_serial, serial, output.shape[0])]
    # Sums of squares of 8-bit gradients fit the 24 bits of float32. Those of 16-bit ones
    # need float64, which also brings the root near enough to decide on which side of a
    # half it is: it never is one, and is off by 1/4 / (2 * 65536) at least.
    work = np.float32 if source.dtype == np.uint8 else np.float64
    places, weights = _taps(len(MASKS) if form == _DIRECTIONS else 2, work)
    finish = Finish.of(source.dtype, work)
    parallel = (source, output, places, weights, form, finish, border.code)
    return [CpuPass(sobel_parallel, parallel, output.shape[0])]


def _rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
    """Return the results of a band by NumPy."""
    form = task.parameters["form"]
    found = uncompiled.cells(task, 1, start, stop, np.float64)
    gx, gy, rising, falling = (uncompiled.correlated(found, mask) for mask in MASKS)
    if form == "single":
        number = directions.COMPASS.index(task.parameters["direction"])
        one = (-gy, rising, gx, falling)[number % 4]
        return uncompiled.finished(task, np.maximum(-one if number > 3 else one, 0))
    if form == "sum":
        return uncompiled.finished(task, abs(gx) + abs(gy))
    if form == "magnitude":
        return uncompiled.finished(task, np.sqrt(gx * gx + gy * gy))
    return uncompiled.finished(task, abs(np.stack((gx, gy, rising, falling))).max(0))


def uncompiled_passes(task: CpuTask) -> Sequence[CpuPass]:
    """Return the passes of NumPy; none of the forms that say where to it gets brighter."""
    if task.parameters["form"] in directions.FORMS[1:]:
        return ()
    return uncompiled.by_numpy(_rows)(task)
