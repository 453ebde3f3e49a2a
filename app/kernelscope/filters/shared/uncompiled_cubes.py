"""Masks of voxels by NumPy alone, in place of the kernels of level *parallel*.

All sums are in the order of those kernels, so that results have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Index, JitKernel, Line, Number, Record, Voxels
from kernelscope.filters.shared.correlation import Finish
from kernelscope.filters.shared.cubes import ROWS, Places, weigh_cubes_parallel
from kernelscope.filters.shared.uncompiled import Ready, settled
from kernelscope.schema.filter import CpuPass, CpuTask
from kernelscope.schema.levels import PARALLEL

Cells = NDArray[np.float64]

Plan = Callable[[CpuTask], Sequence[CpuPass]]


def instead(plan: Plan, forms: Mapping[JitKernel, Callable[..., None]]) -> Plan:
    """Return the plan of level *parallel* with a function of NumPy for each of its kernels."""

    def passes(task: CpuTask) -> Sequence[CpuPass]:
        planned = plan(replace(task, level=PARALLEL.id))
        kernels: Mapping[Any, Callable[..., None]] = forms
        return [replace(each, kernel=Ready(kernels[each.kernel])) for each in planned]

    return passes


def blocks(output: Voxels, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Yield the slice of each unit of work, and its rows: the first, and the one after the last."""
    count = -(-output.shape[1] // ROWS)
    for unit in range(start, stop):
        top = unit % count * ROWS
        yield unit // count, top, min(top + ROWS, output.shape[1])


def cells_around(
    source: Voxels, places: Places, radii: Record, block: tuple[int, int, int], outside: float = 0
) -> Cells:
    """Return the cells around the rows of a block, shape (slices, rows, columns)."""
    z, top, bottom = block
    deep, tall, _ = (2 * radius for radius in radii)
    axes = places.z[z : z + deep + 1], places.y[top : bottom + tall], places.x
    cells: Cells = source[np.ix_(*axes)][..., 0].astype(np.float64)
    for axis, indices in enumerate(axes):
        np.moveaxis(cells, axis, 0)[indices < 0] = outside
    return cells


def summed(cells: Cells, weights: Line, axis: int) -> Cells:
    """Return the weighted sums of neighbours along an axis, from the first to the last."""
    count = cells.shape[axis] - len(weights) + 1
    total: Any = 0.0
    for k, weight in enumerate(weights):
        if weight:
            total = total + weight * cells[(*(slice(None),) * axis, slice(k, k + count))]
    return np.asarray(total)


def put(
    output: Voxels,
    block: tuple[int, int, int],
    values: Cells,
    cells: Cells,
    places: Places,
    radii: Record,
) -> None:
    """Write the rows of a block; voxels whose mask does not fit, where that matters, stay."""
    z, top, bottom = block
    own = cells[radii[0], radii[1] :, radii[2] :][: bottom - top, : output.shape[2]]
    z_from, z_to, y_from, y_to, x_from, x_to = places.fits
    y, x = np.arange(top, bottom)[:, None], np.arange(output.shape[2])
    fits = (z_from <= z < z_to) & (y_from <= y) & (y < y_to) & (x_from <= x) & (x < x_to)
    output[z, top:bottom, :, 0] = np.where(fits, values, own)


def weigh(
    source: Voxels,
    output: Voxels,
    rows: Record,
    divisor: Record,
    places: Places,
    radii: Record,
    finish: Finish,
    centre: Number,
    start: Index,
    stop: Index,
) -> None:
    """As `cubes.weigh_cubes_parallel`."""
    for block in blocks(output, start, stop):
        z, top, bottom = block
        cells = totals = cells_around(source, places, radii, block)
        for axis, row in enumerate(rows):
            totals = summed(totals, row, axis)
        if centre:
            own = cells[radii[0], radii[1] :, radii[2] :]
            totals = totals + centre * own[: bottom - top, : output.shape[2]]
        quotient = divisor[0][z] * divisor[1][top:bottom, None] * divisor[2]
        put(output, block, settled(totals[0] / quotient, finish), cells, places, radii)


AVERAGES: Mapping[JitKernel, Callable[..., None]] = {weigh_cubes_parallel: weigh}
"""For `instead`."""
