"""Sums over square windows, as the mean and the mean with threshold need them.

`add_row` keeps a running sum for each column: the row that enters the window is added, the one that
leaves is subtracted. Along the row, `window_sums` adds up columns in sums of 1, 2, 4, 8, ... For a
window of 5 = 4 + 1 columns:

    columns             1  2  3  4  5  6  7
    pairs               3  5  7  9 11 13        1 + 2, 2 + 3, ...
    fours              10 14 18 22              3 + 7, 5 + 9, ...
    sums of five       15 20 25                 1 + 14, 2 + 18, 3 + 22

That takes log2(size) sweeps, which vectorise; a running sum along the row, of which every sum needs
the one to its left, does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Flag, Index, Like, Line, Number, Plane, Record, inlined, kernel
from kernelscope.filters.shared.border_kernels import REDUCE, VALID, border_index, pad_columns
from kernelscope.filters.shared.correlation import Work, finish_row, update_divisors
from kernelscope.filters.shared.plain import (
    count_cells,
    gather,
    no_simd,
    put,
    rolled,
    wide_cell,
)

_LARGEST_16_BIT = 15
"""Largest mask whose 8-bit samples add up to 16 bits: 15 * 15 * 255 = 57375."""


@kernel
def add_row(source: Plane, y: Index, sign: Index, columns: Line) -> None:
    """Add row `y` of `source`, times `sign`, to `columns`; nothing if `y` is outside (-1)."""
    if y >= 0:
        samples = source[y].reshape(columns.size)
        for x in range(columns.size):
            columns[x] += sign * columns.dtype.type(samples[x])


@kernel
def copy(samples: Line, copied: Line) -> None:
    """Write `samples` to `copied`, in its type. (Numba copies slices sample by sample.)"""
    for x in range(copied.size):
        copied[x] = samples[x]


@kernel
def add(samples: Line, totals: Line) -> None:
    """Add to `totals` as many of `samples`."""
    for x in range(totals.size):
        totals[x] += samples[x]


@kernel
def add_pairs(samples: Line, distance: Index, pairs: Line) -> None:
    """Set ``pairs[x]`` to the sum of the samples at ``x`` and ``x + distance``."""
    partners = samples[distance:]
    for x in range(pairs.size):
        pairs[x] = samples[x] + partners[x]


@kernel
def window_sums(columns: Line, spare: Line, size: Index, step: Index, totals: Line) -> None:
    """Set ``totals[x]`` to the sum of the `size` columns from `x` on, `step` apart.

    Sums of 1, 2, 4, 8... columns add up to any size in a few sweeps that vectorise, which a
    running sum along the row does not. (They are calls because LLVM vectorises a loop only
    if it can prove that its arrays do not overlap, and here two of them change places.) `columns`
    and `spare`, of the same length, are overwritten.
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
def add_up(samples: Line, place: Index, pitch: Index, step: Index, size: Index) -> Any:
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
def choose(total: Number, count: Index, pixel: Number, reach: Number) -> Any:
    """Return the mean, or the pixel if that is further from it than `reach`."""
    if abs(total - count * pixel) <= reach * count:
        return np.true_divide(total, count)
    return np.float64(pixel)


@kernel
def mean_rim(
    source: Plane,
    results: Line,
    size: Index,
    reach: Number,
    finish: Record,
    border: Index,
    y: Index,
    first: Index,
    last: Index,
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
def put_back(totals: Line, counts: Line, limits: Line, pixels: Line) -> None:
    """Replace the sums S that are further than the limit from n f by n f (all flat).

    The type of `counts`, float32 or float64, holds all sums of integers exactly, and n f of
    float32 pixels, so that dividing by n gives the pixel back.
    """
    for x in range(totals.size):
        total = counts.dtype.type(totals[x])
        own = counts[x] * counts.dtype.type(pixels[x])
        totals[x] = total if abs(total - own) <= limits[x] else own


@kernel
def update_limits(limits: Line, counts: Line, reach: Number, whole: Flag) -> None:
    """Set `limits` to T n; a `whole` limit, for integers, is exact in the type of `limits`."""
    for x in range(limits.size):
        limit = reach * np.float64(counts[x])
        limits[x] = np.floor(limit) if whole else limit


@kernel
def mean_parallel(
    source: Plane,
    output: Plane,
    like: Like,
    divisor: Record,
    finish: Record,
    reach: Any,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Running sums down the columns, then sums of neighbouring columns along the row.

    - `like`: empty. Its type holds the sum of a mask: uint16, int32 or float64, in which the drift
      of running sums stays far below the precision of float32 samples.
    - `reach`: that of `choose`; None for the mean itself, which puts nothing back.
    """
    height, width, channels = source.shape
    side = divisor.table.shape[0] - 1
    radius = side // 2
    margin = 0 if border == VALID else radius
    shift = radius - margin
    length = output.shape[1] * channels
    sums = np.zeros(width * channels, like.dtype)
    columns = np.empty(length + 2 * radius * channels, like.dtype)
    inside = columns[margin * channels : margin * channels + sums.size]
    spare = np.empty_like(columns)
    totals = np.empty(length, like.dtype)
    counts = np.full(length, finish.high)
    limits = np.empty_like(counts)
    for row in range(start, stop + side - 1):
        add_row(source, border_index(row - margin, height, border), 1, sums)
        y = row - side + 1
        if y < start:
            continue
        copy(sums, inside)
        pad_columns(columns, radius, channels, border)
        window_sums(columns, spare, side, channels, totals)
        update_divisors(counts, y, start, source, divisor, border)
        if reach is not None:
            if y == start or border == REDUCE:
                update_limits(limits, counts, reach, finish.whole)
            pixels = source[y + shift].reshape(sums.size)[shift * channels :]
            put_back(totals, counts, limits, pixels)
        finish_row(totals, counts, finish, output[y].reshape(length))
        add_row(source, border_index(y - margin, height, border), -1, sums)


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
