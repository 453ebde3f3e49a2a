"""Mean filter: every pixel becomes the average of the square around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.border_kernels import VALID, border_index, pad_columns
from kernelscope.filters.shared.box_cuda import plan_box, small
from kernelscope.filters.shared.correlation import (
    Divisor,
    Finish,
    Work,
    finish_row,
    update_divisors,
)
from kernelscope.filters.shared.plain import (
    count_cells,
    gather,
    interior,
    no_simd,
    put,
    rolled,
    wide_cell,
)
from kernelscope.jit import inlined, kernel
from kernelscope.spec.filter import (
    CONSTANT,
    GLOBAL,
    SERIAL,
    SHARED,
    SINGLE_BLOCK,
    TEXTURE,
    TUNED,
    CpuPass,
    FilterSpec,
    FilterTask,
    OddParameter,
)
from kernelscope.spec.launch import (
    NO_MASK,
    CudaPlan,
    CudaTask,
    Launch,
    by_size,
    level_launch,
    quick_level,
)

_LARGEST_16_BIT = 15
"""Largest mask whose 8-bit samples add up to 16 bits: 15 * 15 * 255 = 57375."""


@kernel
def add_row(source: Any, y: Any, sign: Any, columns: Any) -> None:
    """Add row `y` of `source`, times `sign`, to `columns`; nothing if `y` is outside (-1)."""
    if y >= 0:
        samples = source[y].reshape(columns.size)
        for x in range(columns.size):
            columns[x] += sign * columns.dtype.type(samples[x])


@kernel
def copy(samples: Any, copied: Any) -> None:
    """Write `samples` to `copied`, in its type. (Numba copies slices sample by sample.)"""
    for x in range(copied.size):
        copied[x] = samples[x]


@kernel
def add(samples: Any, totals: Any) -> None:
    """Add to `totals` as many of `samples`."""
    for x in range(totals.size):
        totals[x] += samples[x]


@kernel
def add_pairs(samples: Any, distance: Any, pairs: Any) -> None:
    """Set ``pairs[x]`` to the sum of the samples at ``x`` and ``x + distance``."""
    partners = samples[distance:]
    for x in range(pairs.size):
        pairs[x] = samples[x] + partners[x]


@kernel
def window_sums(columns: Any, spare: Any, size: Any, step: Any, totals: Any) -> None:
    """Set ``totals[x]`` to the sum of the `size` columns from `x` on, `step` apart.

    Sums of 1, 2, 4, 8... columns add up to any size in a few sweeps that vectorise, which a
    running sum along the row does not. (They are calls because LLVM vectorises a loop only
    if it can tell its arrays apart, and here two of them change places.) `columns` and
    `spare`, of the same length, are overwritten.
    """
    copy(columns, totals)
    done = span = 1
    length = columns.size
    while done < size:
        length -= span * step
        add_pairs(columns, span * step, spare[:length])
        columns, spare = spare, columns
        span *= 2
        if size & span:
            add(columns[done * step :], totals)
            done += span


@inlined
def add_up(samples: Any, place: Any, pitch: Any, step: Any, size: Any) -> Any:
    """Return the sum of a window whose first cell is at `place`, int64 or float64.

    Its rows are `pitch` samples apart, its columns `step`.
    """
    no_simd()
    total = 0
    for s in range(size):
        row = place + s * pitch
        for t in range(size):
            rolled()
            total += wide_cell(samples, row + t * step)
    return total


@inlined
def choose(total: Any, count: Any, pixel: Any, reach: Any) -> Any:
    """Return the mean, or the pixel if that is further from it than `reach`."""
    if abs(total - count * pixel) <= reach * count:
        return np.true_divide(total, count)
    return np.float64(pixel)


@kernel
def mean_rim(
    source: Any,
    results: Any,
    size: Any,
    reach: Any,
    finish: Any,
    border: Any,
    y: Any,
    first: Any,
    last: Any,
) -> None:
    """Compute `results`, output row `y`, but for the columns from `first` up to `last`.

    `reach` is that of `choose`: infinite for the mean itself.
    """
    no_simd()
    height, width, channels = source.shape
    window = np.empty(size * size, source.dtype)
    for side in range(2):
        left, right = (0, first) if side == 0 else (last, results.size // channels)
        for x in range(left, right):
            count = count_cells(y, x, size // 2, height, width, border)
            for c in range(channels):
                gather(source, y, x, c, size // 2, border, window)
                total = add_up(window, 0, size, 1, size)
                pixel = wide_cell(window, window.size // 2)
                put(results, x * channels + c, choose(total, count, pixel, reach), finish)


@kernel
def mean_serial(
    source: Any, output: Any, size: Any, reach: Any, finish: Any, border: Any, start: Any, stop: Any
) -> None:
    """Plain loops: for every sample, every cell of the mask.

    `reach`, of the rim, is infinite. As a constant here it would let LLVM make the rim part of
    this kernel, whose loops then lack registers.
    """
    no_simd()
    height, width, channels = source.shape
    radius = size // 2
    inset = 0 if border == VALID else radius
    samples = source.reshape(source.size)
    pitch = width * channels
    for y in range(start, stop):
        results = output[y].reshape(output.shape[1] * channels)
        first, last = interior(y, radius, height, width, border)
        mean_rim(source, results, size, reach, finish, border, y, first, last)
        corner = (y - inset) * pitch - inset * channels
        for x in range(first * channels, last * channels):
            total = add_up(samples, corner + x, pitch, channels, size)
            put(results, x, np.true_divide(total, size * size), finish)


@kernel
def mean_parallel(
    source: Any,
    output: Any,
    zero: Any,
    divisor: Any,
    finish: Any,
    border: Any,
    start: Any,
    stop: Any,
) -> None:
    """Running sums down the columns, then sums of neighbouring columns along the row.

    Parameters
    ----------
    zero : ndarray, empty
        Its type holds the sum of a mask: uint16, int32 or float64, in which the drift of
        running sums stays far below the precision of float32 samples.
    """
    height, width, channels = source.shape
    side = divisor.table.shape[0] - 1
    radius = side // 2
    margin = 0 if border == VALID else radius
    length = output.shape[1] * channels
    sums = np.zeros(width * channels, zero.dtype)
    columns = np.empty(length + 2 * radius * channels, zero.dtype)
    inside = columns[margin * channels : margin * channels + sums.size]
    spare = np.empty_like(columns)
    totals = np.empty(length, zero.dtype)
    divisors = np.full(length, finish.high)
    for row in range(start, stop + side - 1):
        add_row(source, border_index(row - margin, height, border), 1, sums)
        y = row - side + 1
        if y < start:
            continue
        copy(sums, inside)
        pad_columns(columns, radius, channels, border)
        window_sums(columns, spare, side, channels, totals)
        update_divisors(divisors, y, start, source, divisor, border)
        finish_row(totals, divisors, finish, output[y].reshape(length))
        add_row(source, border_index(y - margin, height, border), -1, sums)


def radius(parameters: Mapping[str, Any]) -> int:
    return int(parameters["size"]) // 2


def sum_types(dtype: np.dtype[Any], size: int) -> tuple[NDArray[Any], Work]:
    """Return an empty array of the type that holds the sum of a mask, and that of its mean.

    Sums of integers are exact in both. The quotient of a sum below 2**22 and a divisor is
    rounded correctly in float32, see `correlation.working_type`.
    """
    if dtype.kind == "f":
        return np.empty(0, np.float64), np.float64
    if dtype == np.uint16:
        return np.empty(0, np.int32), np.float64
    return np.empty(0, np.uint16 if size <= _LARGEST_16_BIT else np.int32), np.float32


def plan_cpu(task: FilterTask) -> Sequence[CpuPass]:
    source, output, border = task.source, task.output, task.border
    size = task.parameters["size"]
    if task.level == SERIAL.id:
        finish = Finish.of(source.dtype, np.float64)
        serial = (source, output, size, np.inf, finish, border.code)
        return [CpuPass(mean_serial, serial, output.shape[0])]
    divisor = Divisor.of(np.ones((size, size), np.int64))
    zero, work = sum_types(source.dtype, size)
    arguments = (
        source,
        output,
        zero,
        divisor,
        Finish.of(source.dtype, work),
        border.code,
    )
    return [CpuPass(mean_parallel, arguments, output.shape[0])]


def plan_cuda(task: CudaTask) -> Launch | CudaPlan:
    size = int(task.parameters["size"])
    if task.level == TUNED.id:
        launch = plan_box("mean", task, size)
        level = quick_level(task, size // 2, GLOBAL)
        return by_size(task, launch, plan_cuda, level, small(task, size))
    return level_launch("mean", task, size // 2, size * size + 1, SIZE=size)


SPEC = FilterSpec(
    id="mean",
    name="Mean",
    category="Smoothing",
    summary="Averages the square around each pixel: smooths noise and edges alike.",
    source="Korčuška 2013, section 1.3; parallel computing report no. 5",
    parameters=(
        OddParameter(
            name="size",
            label="Mask size",
            help="Side of the square that is averaged.",
            default=3,
            minimum=3,
            maximum=99,
            slider=(3, 15),
        ),
    ),
    radius=radius,
    plan_cpu=plan_cpu,
    plan_cuda=plan_cuda,
    gpu_levels=(SINGLE_BLOCK, GLOBAL, SHARED, TEXTURE, TUNED),
    gpu_gaps={CONSTANT.id: NO_MASK},
)
