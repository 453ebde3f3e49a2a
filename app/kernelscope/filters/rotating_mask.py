"""Rotating mask: the mean of the most even 3x3 window that contains the pixel.

Of nine windows, the one with the smallest variance is taken; of several, the one with the
smallest mean. With n cells, their sum S and the sum Q of their squares, the variance is
(n Q - S²) / n² and the mean S / n. Only ``reduce`` makes n differ from 9, and then it divides
36, so that variances are compared as (36 / n)² (n Q - S²), and means as (36 / n) S: integers,
compared without rounding.

For example, at an edge, where the mean of the window in the middle is 37: of the nine windows, the
one at the top left has the least variance, 92 / 81, since 9 * 1013 - 95² = 92:

    10 10 10 90 90
    10 10 10 90 90    S = 95, Q = 1013: 13 becomes 95 / 9 = 10.6, rounded to 11
    12 10 13 90 90
    19 11 10 90 90
    10 18 10 90 90

For float32 the order of operations decides which of two almost equal windows is taken, so
every backend keeps to this one: S and Q are float64 sums over the counted cells, row by row
from the top left; squares and products are rounded before they are added (no fused
multiply-add); the comparison is that of the two formulas above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Index, Like, Line, Plane, Record, inlined, kernel
from kernelscope.filters.shared import uncompiled
from kernelscope.filters.shared.border_kernels import (
    REDUCE,
    VALID,
    border_index,
    fetch_row,
)
from kernelscope.filters.shared.correlation import Finish
from kernelscope.filters.shared.plain import interior, put, wide_cell
from kernelscope.filters.shared.rows_cuda import rows_launch
from kernelscope.schema.borders import Border
from kernelscope.schema.explanation import EDGE, Cells, Example, Explanation, number
from kernelscope.schema.filter import Cpu, CpuPass, CpuTask, FilterSpec, Unit
from kernelscope.schema.launch import (
    NO_MASK,
    Cuda,
    CudaPlan,
    CudaTask,
    Launch,
    by_size,
    level_launch,
    quick_level,
)
from kernelscope.schema.levels import CONSTANT, GLOBAL, SERIAL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED

_WINDOWS = 9
"""Around a pixel. A tuned thread goes down as many rows as for a mask of that size."""

_SMALL_BYTES = 200_000
"""Bytes of output from which on the tuned kernel is quicker than the other levels, on an H100."""


RADIUS = 2


@kernel.plain
def most_even_mean(source: Plane, y: Index, x: Index, c: Index, border: Index) -> Any:
    """Return 36 times the mean of the best window around a pixel; int64 or float64."""
    height, width, _ = source.shape
    best_variance = 0
    best_mean = 0
    for window in range(9):
        total = 0
        squares = 0
        count = 0
        for s in range(3):
            yy = border_index(y + window // 3 + s - 2, height, border)
            for t in range(3):
                xx = border_index(x + window % 3 + t - 2, width, border)
                if yy >= 0 and xx >= 0:
                    value = np.int64(0) + source[yy, xx, c]
                    total += value
                    squares += value * value
                    count += 1
                elif border != REDUCE:
                    count += 1
        scale = 36 // count
        variance = scale * scale * (count * squares - total * total)
        mean = scale * total
        if (
            window == 0
            or variance < best_variance
            or (variance == best_variance and mean < best_mean)
        ):
            best_variance = variance
            best_mean = mean
    return best_mean


@inlined.plain
def most_even_sum(samples: Line, place: Index, pitch: Index, step: Index) -> Any:
    """Return the sum of the best window around a pixel; those windows begin at `place`.

    As `most_even_mean` where all windows have 9 cells, which need no scale to be compared.
    """
    best_variance = 0
    best_total = 0
    for window in range(9):
        corner = place + window // 3 * pitch + window % 3 * step
        total = 0
        squares = 0
        for s in range(3):
            row = corner + s * pitch
            for t in range(3):
                value = wide_cell(samples, row + t * step)
                total += value
                squares += value * value
        variance = 9 * squares - total * total
        if (
            window == 0
            or variance < best_variance
            or (variance == best_variance and total < best_total)
        ):
            best_variance = variance
            best_total = total
    return best_total


@kernel.plain
def rim(
    source: Plane,
    results: Line,
    finish: Record,
    border: Index,
    y: Index,
    first: Index,
    last: Index,
) -> None:
    """Compute `results`, output row `y`, but for the columns from `first` up to `last`."""
    channels = source.shape[2]
    for side in range(2):
        left, right = (0, first) if side == 0 else (last, results.size // channels)
        for x in range(left, right):
            for c in range(channels):
                mean = most_even_mean(source, y, x, c, border)
                put(results, x * channels + c, np.true_divide(mean, 36), finish)


@kernel.plain
def serial(
    source: Plane, output: Plane, finish: Record, border: Index, start: Index, stop: Index
) -> None:
    """Plain loops: for every sample, every cell of every window."""
    height, width, channels = source.shape
    inset = 0 if border == VALID else RADIUS
    samples = source.reshape(source.size)
    pitch = width * channels
    for y in range(start, stop):
        results = output[y].reshape(output.shape[1] * channels)
        first, last = interior(y, RADIUS, height, width, border)
        rim(source, results, finish, border, y, first, last)
        corner = (y - inset) * pitch - inset * channels
        for x in range(first * channels, last * channels):
            total = most_even_sum(samples, corner + x, pitch, channels)
            put(results, x, np.true_divide(total, 9), finish)


@kernel
def sum_along_row(row: Line, channels: Index, sums: Line, squares: Line) -> None:
    """Add up three neighbours, and their squares, along a padded row."""
    for k in range(sums.shape[0]):
        a = np.int64(row[k])
        b = np.int64(row[k + channels])
        c = np.int64(row[k + 2 * channels])
        sums[k] = a + b + c
        squares[k] = a * a + b * b + c * c


@kernel
def make_keys(sums: Array, squares: Array, bits: Index, keys: Line) -> None:
    """Write a key for each window: its variance, then in the last `bits` its rounded mean.

    The smallest key is the window to take, and it ends with the result. It fits int32 for
    uint8, and int64 for uint16. There are no ties to round, since 9 is odd.
    """
    for k in range(keys.shape[0]):
        total = np.int64(sums[0, k]) + np.int64(sums[1, k]) + np.int64(sums[2, k])
        square = np.int64(squares[0, k]) + np.int64(squares[1, k]) + np.int64(squares[2, k])
        keys[k] = ((9 * square - total * total) << bits) | ((total + 4) // 9)


@kernel
def smallest_of_three(a: Line, b: Line, c: Line, smallest: Line) -> None:
    """Write the element-wise minimum of three rows."""
    for k in range(smallest.shape[0]):
        least = a[k] if a[k] < b[k] else b[k]
        smallest[k] = least if least < c[k] else c[k]


@kernel
def parallel_integer(
    source: Plane, output: Array, border: Index, bits: Index, like: Like, start: Index, stop: Index
) -> None:
    """Row by row: sums, keys, then the smallest key in 3x3, first along and then down.

    `output` is flat in its rows. `like` is an empty array of the type for keys.
    """
    channels = source.shape[2]
    samples = output.shape[1]
    row = np.empty(samples + 4 * channels, source.dtype)
    sums = np.empty((3, samples + 2 * channels), np.int32)
    squares = np.empty((3, samples + 2 * channels), like.dtype)
    keys = np.empty(samples + 2 * channels, like.dtype)
    smallest = np.empty((3, samples), like.dtype)
    for y in range(start, stop + 4):
        slot = y % 3
        fetch_row(source, y, RADIUS, border, row)
        sum_along_row(row, channels, sums[slot], squares[slot])
        if y < start + 2:
            continue
        make_keys(sums, squares, bits, keys)
        smallest_of_three(keys, keys[channels:], keys[2 * channels :], smallest[slot])
        if y < start + 4:
            continue
        # Storing keeps the low bits of the key, which are the result.
        smallest_of_three(smallest[0], smallest[1], smallest[2], output[y - 4])


@kernel
def measure_windows(rows: Array, y: Index, channels: Index, variances: Line, totals: Line) -> None:
    """Write n Q - S² and S of the windows whose last padded row is `y`."""
    top, middle, bottom = rows[(y - 2) % 3], rows[(y - 1) % 3], rows[y % 3]
    for k in range(totals.shape[0]):
        total = 0.0
        square = 0.0
        for row in (top, middle, bottom):
            for t in range(3):
                value = row[k + t * channels]
                total += value
                square += value * value
        variances[k] = 9 * square - total * total
        totals[k] = total


@kernel
def choose(variance: Line, total: Line, other_variance: Line, other_total: Line) -> None:
    """Overwrite the first windows with the others where these are more even."""
    for k in range(total.shape[0]):
        better = (other_variance[k] < variance[k]) | (
            (other_variance[k] == variance[k]) & (other_total[k] < total[k])
        )
        variance[k] = other_variance[k] if better else variance[k]
        total[k] = other_total[k] if better else total[k]


@kernel
def parallel_float(source: Plane, output: Array, border: Index, start: Index, stop: Index) -> None:
    """As `parallel_integer`, with variance and sum apart."""
    channels = source.shape[2]
    samples = output.shape[1]
    rows = np.empty((3, samples + 4 * channels), np.float64)
    variances = np.empty(samples + 2 * channels, np.float64)
    totals = np.empty(samples + 2 * channels, np.float64)
    best_variances = np.empty((3, samples), np.float64)
    best_totals = np.empty((3, samples), np.float64)
    for y in range(start, stop + 4):
        slot = y % 3
        fetch_row(source, y, RADIUS, border, rows[slot])
        if y < start + 2:
            continue
        measure_windows(rows, y, channels, variances, totals)
        variance, total = best_variances[slot], best_totals[slot]
        variance[:] = variances[:samples]
        total[:] = totals[:samples]
        choose(variance, total, variances[channels:], totals[channels:])
        choose(variance, total, variances[2 * channels :], totals[2 * channels :])
        if y < start + 4:
            continue
        # The oldest row is not needed again.
        variance, total = best_variances[(y - 2) % 3], best_totals[(y - 2) % 3]
        choose(variance, total, best_variances[(y - 1) % 3], best_totals[(y - 1) % 3])
        choose(variance, total, best_variances[slot], best_totals[slot])
        for k in range(samples):
            output[y - 4, k] = np.float32(total[k] / 9)


@kernel
def edges(source: Plane, output: Plane, finish: Record, start: Index, stop: Index) -> None:
    """Redo for ``reduce`` the samples that have windows beyond the image."""
    height, width, channels = source.shape
    for y in range(start, stop):
        first, last = interior(y, RADIUS, height, width, REDUCE)
        results = output[y].reshape(width * channels)
        rim(source, results, finish, REDUCE, y, first, last)


def plan_cpu(task: CpuTask) -> Sequence[CpuPass]:
    source, output, border = task.source, task.output, task.border
    rows, finish = output.shape[0], Finish.of(source.dtype, np.float64)
    if task.level == SERIAL.id:
        return [CpuPass(serial, (source, output, finish, border.code), rows)]
    flat = output.reshape(rows, -1)
    if source.dtype == np.float32:
        passes = [CpuPass(parallel_float, (source, flat, border.code), rows)]
    else:
        bits = 8 * source.itemsize
        like = np.empty(0, np.int32 if source.dtype == np.uint8 else np.int64)
        arguments = (source, flat, border.code, bits, like)
        passes = [CpuPass(parallel_integer, arguments, rows)]
    if border is Border.REDUCE:
        passes.append(CpuPass(edges, (source, output, finish), rows))
    return passes


def _rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
    """Return the results of a band by NumPy; float64 holds the integers of 16 bits exactly."""
    found = uncompiled.cells(task, RADIUS, start, stop, np.float64)
    samples = list(found.windows())
    reduces = task.border is Border.REDUCE and found.inside is not None
    inside = list(found.windows(found.inside)) if reduces else None
    side = 2 * RADIUS + 1
    best_variance: Any = np.inf
    best_mean: Any = np.inf
    for window in range(_WINDOWS):
        total: Any = 0.0
        squares: Any = 0.0
        count: Any = 0.0
        for s in range(window // 3, window // 3 + 3):
            for t in range(window % 3, window % 3 + 3):
                cell = samples[side * s + t]
                total = total + cell
                squares = squares + cell * cell
                count = count + (inside[side * s + t] if inside is not None else 1.0)
        share = 36 / count
        variance = share * share * (count * squares - total * total)
        mean = share * total
        better = (variance < best_variance) | ((variance == best_variance) & (mean < best_mean))
        best_variance = np.where(better, variance, best_variance)
        best_mean = np.where(better, mean, best_mean)
    return uncompiled.finished(task, best_mean / 36)


def plan_cuda(task: CudaTask) -> Launch | CudaPlan:
    if task.level == TUNED.id:
        launch = rows_launch("rotating_mask", task, _WINDOWS, operations=50)
        level = quick_level(task, RADIUS, GLOBAL)
        return by_size(task, launch, plan_cuda, level, _SMALL_BYTES * task.dtype.itemsize)
    return level_launch("rotating_mask", task, 2, operations=250)


def _working(window: Cells, parameters: Mapping[str, Any]) -> str:
    places = [(y, x) for y in range(3) for x in range(3)]
    parts = [window[y : y + 3, x : x + 3].astype(float) for y, x in places]
    best = min(parts, key=lambda part: (9 * (part**2).sum() - part.sum() ** 2, part.sum()))
    return (
        f"the least variance of the nine windows is {number(best.var())}; "
        f"the mean of that window is {number(best.sum())} / 9 = {number(best.mean())}"
    )


SPEC = FilterSpec(
    id="rotating_mask",
    name="Rotating mask",
    category="Smoothing",
    summary="Averages the most even 3×3 square that contains the pixel: smooths, keeps edges.",
    synonyms=("kuwahara", "edge-preserving", "blur"),
    source="Korčuška 2013, section 1.3",
    parameters=(),
    radius=lambda parameters: RADIUS,
    unit=Unit.SQUARES,
    implementations={
        "cpu": Cpu(plan_cpu, uncompiled=uncompiled.by_numpy(_rows)),
        "gpu": Cuda(
            plan_cuda, (SINGLE_BLOCK, GLOBAL, SHARED, TEXTURE, TUNED), {CONSTANT.id: NO_MASK}
        ),
    },
    explanation=Explanation(
        formula=r"g(y, x) = \overline{u}_{k}, \quad k = \operatorname{arg\,min}_{1 \le j \le 9}"
        r" \operatorname{var}(W_j)",
        use="To smooth noise near edges: the window that lies on one side of the edge is the most "
        "even one, so that edges become sharper.",
        avoid="It turns fine texture into small flat areas. For specks use the median, for texture "
        "non-local means.",
        example=Example(patch=EDGE, working=_working),
    ),
)
