"""Filters by NumPy alone, for the seconds in which their code is compiled for the first time.

Integers have the bytes that the compiled code gives, floats differ by rounding: sums are taken in
float64, which holds those of integers exactly. A band of rows is computed at once, mask cell by
mask cell, so that a filter is a few dozen calls of NumPy::

    padded rows   total += weight * cells(s, t)   for each cell (s, t) of the mask
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.correlation import Divisor, Finish
from kernelscope.filters.shared.footprints import Table, is_full, table_of
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import CpuPass, CpuTask

Rows = Callable[[CpuTask, int, int], NDArray[Any]]
"""Maps a task and the first and last of a band of its output's rows to the samples of these."""

_MODES: dict[Border, Any] = {
    Border.REFLECT: "symmetric",
    Border.MIRROR: "reflect",
    Border.WRAP: "wrap",
}
"""NumPy's names of the borders; `edge` for all others, whose cells outside are not used."""

_OUTSIDE = (Border.CONSTANT, Border.REDUCE)


class Ready(NamedTuple):
    """A kernel that needs no compiling."""

    function: Callable[..., None]

    def compile(self, *arguments: Any) -> bool:
        return False

    def entry(self, *arguments: Any) -> Callable[..., Any]:
        return self.function

    def __call__(self, *arguments: Any) -> None:
        self.function(*arguments)


def by_numpy(rows: Rows, step: int = 16) -> Callable[[CpuTask], Sequence[CpuPass]]:
    """Return a plan of one pass without compiled code, whose units are bands of `step` rows."""

    def bands(task: CpuTask, start: int, stop: int) -> None:
        for first in range(step * start, step * stop, step):
            last = min(first + step, task.output.shape[0])
            task.output[first:last] = rows(task, first, last)

    return lambda task: [CpuPass(Ready(bands), (task,), -(-task.output.shape[0] // step))]


class Cells(NamedTuple):
    """The samples around a band of rows.

    - `samples`: shape (rows + 2 * radius, columns + 2 * radius, channels).
    - `inside`: shape (rows + 2 * radius, columns + 2 * radius, 1): cells of the picture. None where
      there are no others.
    """

    samples: NDArray[Any]
    inside: NDArray[np.bool_] | None
    radius: int

    def windows(self, of: NDArray[Any] | None = None) -> Iterator[NDArray[Any]]:
        """Yield the cells of a mask at all places, row by row of the mask."""
        array, side = self.samples if of is None else of, 2 * self.radius + 1
        rows, columns = array.shape[0] - side + 1, array.shape[1] - side + 1
        for s in range(side):
            for t in range(side):
                yield array[s : s + rows, t : t + columns]

    def windows_of(self, table: Table, of: NDArray[Any] | None = None) -> Iterator[NDArray[Any]]:
        """Yield `windows` of the cells that a mask has."""
        return itertools.compress(self.windows(of), table.ravel())

    def where_counted(self, table: Table, border: Border, made: NDArray[Any]) -> NDArray[Any]:
        """Return results, and the pixel itself where the border leaves no cell of a mask."""
        if border is not Border.REDUCE or self.inside is None:
            return made
        counted = functools.reduce(np.logical_or, self.windows_of(table, self.inside))
        pixels = self.samples[self.radius :, self.radius :][: made.shape[0], : made.shape[1]]
        return np.where(counted, made, pixels)


def cells(
    task: CpuTask, radius: int, start: int, stop: int, dtype: Any = None, outside: float = 0
) -> Cells:
    """Return the samples around a band; those outside the picture are `outside`, where no border
    says otherwise."""
    height, width, _ = task.source.shape
    rows, rows_inside = _places(height, radius, task.border, start, stop)
    columns, columns_inside = _places(width, radius, task.border, 0, task.output.shape[1])
    samples = task.source[rows][:, columns]
    if dtype is not None:
        samples = samples.astype(dtype)
    inside = rows_inside[:, None, None] & columns_inside[None, :, None]
    if inside.all():
        return Cells(samples, None, radius)
    samples[~inside[:, :, 0]] = outside
    return Cells(samples, inside, radius)


def _places(
    length: int, radius: int, border: Border, start: int, stop: int
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the places of the cells of a band along an axis, and which count as inside."""
    if border is Border.VALID:
        places = np.arange(start, stop + 2 * radius)
        return places, np.ones(places.shape, bool)
    places = np.pad(np.arange(length), radius, mode=_MODES.get(border, "edge"))
    inside = np.ones(places.shape, bool)
    if border in _OUTSIDE:
        inside[:radius] = inside[radius + length :] = False
    return places[start : stop + 2 * radius], inside[start : stop + 2 * radius]


def finished(task: CpuTask, values: NDArray[Any], negative: str = "keep") -> NDArray[Any]:
    """Return quotients as samples: rounded, made positive, shifted, saturated."""
    return settled(values, Finish.of(task.source.dtype, np.float64, negative))


def settled(values: NDArray[Any], finish: Finish) -> NDArray[Any]:
    """As `correlation.settle`, of many."""
    if finish.whole:
        values = np.rint(values)
    if finish.absolute:
        values = np.abs(values)
    if finish.offset:
        values = values + finish.offset
    return np.clip(values, finish.low, finish.high)


def divided(
    found: Cells, border: Border, totals: NDArray[np.float64], parts: NDArray[Any]
) -> NDArray[np.float64]:
    """Divide by the sum of the parts whose cells count; by 1 where that is zero."""
    table, negligible = Divisor.of(parts)
    divisor: Any = table[-1, -1]
    if border is Border.REDUCE and found.inside is not None:
        divisor = correlated(found, parts, found.inside)
    return totals / np.where(np.abs(divisor) > negligible, divisor, 1.0)


def correlated(
    found: Cells, weights: NDArray[Any], of: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Return the sums of weights times cells."""
    total: Any = 0.0
    for weight, cell in zip(weights.ravel().tolist(), found.windows(of), strict=True):
        if weight:
            total = total + weight * cell
    return np.asarray(total, np.float64)


def correlation(
    weights: Callable[[CpuTask], NDArray[Any]],
    parts: Callable[[CpuTask], NDArray[Any]],
    negative: Callable[[CpuTask], str] = lambda task: "keep",
) -> Callable[[CpuTask], Sequence[CpuPass]]:
    """Return the plan of a correlation with a mask, divided by the sum of `parts`."""

    def rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
        mask = weights(task)
        found = cells(task, len(mask) // 2, start, stop, np.float64)
        quotients = divided(found, task.border, correlated(found, mask), parts(task))
        return finished(task, quotients, negative(task))

    return by_numpy(rows)


def along_both(array: NDArray[Any], side: int, combine: np.ufunc) -> NDArray[Any]:
    """Combine the cells of squares, along one axis after the other."""
    rows, columns, channels = array.shape
    found = combined(array.reshape(-1), side, columns * channels, combine)
    found = combined(found, side, channels, combine)
    whole = np.empty(array.shape, found.dtype)
    whole.reshape(-1)[: found.size] = found
    return whole[: rows - side + 1, : columns - side + 1]


def combined(line: NDArray[Any], side: int, step: int, combine: np.ufunc) -> NDArray[Any]:
    """Combine `side` samples, `step` apart: of 7 the first, the next two, and the last four.

    Rows of a picture lie one after the other, in one line: NumPy takes a third of the time for a
    long one that it takes for many short ones. Squares across two rows are not used.
    """
    count, runs, span, used = line.size - (side - 1) * step, line, 1, 0
    found: NDArray[Any] | None = None
    while True:
        if side & span:
            cells = runs[used * step :][:count]
            found = cells.copy() if found is None else combine(found, cells, out=found)
            used += span
        if found is not None and used == side:
            return found
        runs = combine(runs[: -span * step], runs[span * step :])
        span *= 2


def weighted(line: NDArray[Any], profile: NDArray[Any], step: int) -> NDArray[Any]:
    """Return the sums of samples that are `step` apart, weighted by a profile."""
    count = line.size - (len(profile) - 1) * step
    found = line[:count] * profile[0]
    for i in range(1, len(profile)):
        found += line[i * step :][:count] * profile[i]
    return found


def mean_rows(reach: Callable[[CpuTask], float] = lambda task: np.inf) -> Rows:
    """Return the mean of a square, where it differs from the pixel by `reach` at most."""

    def rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
        side = int(task.parameters["size"])
        found = cells(task, side // 2, start, stop, np.float64)
        totals = along_both(found.samples, side, np.add)
        count: Any = side * side
        if task.border is Border.REDUCE and found.inside is not None:
            count = along_both(found.inside.astype(np.float64), side, np.add)
        most, radius = reach(task), side // 2
        means = totals / count
        if most < np.inf:
            pixel = found.samples[radius:, radius:][: means.shape[0], : means.shape[1]]
            means = np.where(np.abs(totals - count * pixel) <= most * count, means, pixel)
        return finished(task, means)

    return rows


def extreme_rows(lowest: bool, mask: Table | None = None) -> Rows:
    """Return the smallest or the largest sample of a mask, by default that of the parameters."""
    combine = np.minimum if lowest else np.maximum

    def rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
        table = table_of(task.parameters) if mask is None else mask
        side = len(table)
        dtype = task.source.dtype
        high = np.finfo(dtype).max if dtype.kind == "f" else 0
        outside: float = 0
        if task.border is Border.REDUCE:
            ends = (-high, high) if high else (0, np.iinfo(dtype).max)
            outside = float(ends[lowest])
        found = cells(task, side // 2, start, stop, outside=outside)
        if is_full(table):
            return along_both(found.samples, side, combine)
        made = functools.reduce(combine, found.windows_of(table))
        return found.where_counted(table, task.border, made)

    return rows


def median_rows(task: CpuTask, start: int, stop: int) -> NDArray[Any]:
    """Return the median of a mask, whichever of an even number of cells the compiled code takes."""
    table = table_of(task.parameters)
    side, is_square = len(table), is_full(table)
    reduces, dtype = task.border is Border.REDUCE, task.source.dtype
    # Outside cells sort to the end, and do not count.
    high = float(np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max)
    found = cells(task, side // 2, start, stop, outside=high if reduces else 0)
    columns = np.stack(list(found.windows_of(table)), axis=-1)
    middle = columns.shape[-1] // 2
    if not reduces or found.inside is None:
        columns.partition(middle, axis=-1)
        return np.asarray(columns[..., middle])
    columns.sort(axis=-1)
    counted = sum(each.astype(np.intp) for each in found.windows_of(table, found.inside))
    places = np.broadcast_to((counted - is_square) // 2, columns.shape[:-1])
    made = np.take_along_axis(columns, np.minimum(places, columns.shape[-1] - 1)[..., None], -1)
    return found.where_counted(table, task.border, made[..., 0])
