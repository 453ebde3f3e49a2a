"""Filters of pictures in three dimensions: their mask is a cube of voxels, or a box of odd sides.

A spec has such a form in `FilterSpec.in_3d`, made by `CubeSpec`. The borders are those of pictures
along all three axes. All sums are of 64-bit floats, which hold those of integers up to 16 bits
exactly for every mask that is offered, and a result is rounded once: voxels that are integers stay
integers, ties to even, as `WHOLE` says.

Borders are in tables. For each axis, *places* are the indices of the voxels that stand for the
cells from ``-radius`` to ``size - 1 + radius``, or -1 for those that count as zero; the cells of
the voxel ``i`` are at ``i`` to ``i + 2 * radius`` in them. Of the border ``reflect`` with four
voxels and a mask of three: 0 0 1 2 3 3.

The sum of a mask whose weights are products, as those of averages are, is computed axis after axis:
a row of the result from as many rows of sums along z as the mask has rows, and these from as many
slices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Index, JitKernel, Line, Number, Record, Voxels, kernel
from kernelscope.filters.shared.border_kernels import border_index
from kernelscope.filters.shared.correlation import Finish, settle
from kernelscope.filters.shared.uncompiled import Ready, settled
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import Crop
from kernelscope.schema.filter import MIDDLE, WHOLE, CpuPass, CpuTask, FilterSpec
from kernelscope.schema.launch import CudaTask, Launch
from kernelscope.schema.levels import GLOBAL, PARALLEL, SHARED, SINGLE_BLOCK, TEXTURE, TUNED
from kernelscope.schema.parameters import SidesParameter
from kernelscope.schema.samples import Kind

BORDERS = tuple(border for border in Border if border is not Border.VALID)
"""Results keep the shape of their volume, so that headers and places in the patient stay true."""

CubeSpec = partial(FilterSpec, kind=Kind.VOLUME, borders=BORDERS, crop=Crop(boxes=True))
"""A `FilterSpec` with the fields that all filters with a cube as their mask share."""

Sides = tuple[int, int, int]  # along z, y and x
ROWS = 16  # rows of a unit of work of level *parallel*: a slice of a preview keeps all cores busy


def radii_of(sides: int | tuple[int, int, int]) -> Sides:
    """Return the radii along z, y and x of a mask, whose sides are given along x, y and z."""
    x, y, z = SidesParameter.along_axes(sides)
    return z // 2, y // 2, x // 2


def places_along(
    begin: int, count: int, size: int, radius: int, border: Border
) -> NDArray[np.int64]:
    """Return the indices of the voxels that stand for cells along an axis."""
    cells = range(begin - radius, begin + count + radius)
    return np.array([border_index.function(i, size, border.code) for i in cells], np.int64)


class Places(NamedTuple):
    """The voxels that stand for the cells around the voxels of a result; see the module."""

    z: NDArray[np.int64]
    y: NDArray[np.int64]
    x: NDArray[np.int64]
    straight: tuple[int, int]  # from where to where the places along x count up by one
    fits: tuple[int, ...]
    """Slices, rows and columns of the result, from and up to, whose mask fits, where that matters:
    the others stay as they are for border ``keep``."""

    @classmethod
    def of(
        cls, task: CpuTask, radii: Sides, limited: tuple[Border, ...] = (Border.KEEP,)
    ) -> Places:
        """Return the places for a task; `fits` is all of the result but for `limited` borders."""
        first = task.part.first if task.part else (0, 0, 0)
        tables, fits = [], []
        for begin, count, size, radius in zip(
            first, task.output.shape[:3], task.source.shape[:3], radii, strict=True
        ):
            tables.append(places_along(begin, count, size, radius, task.border))
            low, high = 0, count
            if task.border in limited:
                low, high = max(radius - begin, 0), min(size - radius - begin, count)
            fits += [low, max(low, high)]
        own = np.arange(len(tables[2])) + first[2] - radii[2]
        inside = np.flatnonzero((own == tables[2]) & (own >= 0))
        straight = (int(inside[0]), int(inside[-1]) + 1)
        z, y, x = tables
        return cls(z, y, x, straight, tuple(fits))


def finish_of(task: CpuTask, negative: str = "keep") -> Finish:
    """Return how quotients become voxels; `negative` is that of `correlation.NEGATIVE`."""
    finish = Finish.of(task.source.dtype, np.float64, negative)
    middle = task.parameters.get(MIDDLE, 0.5) if negative == "offset" else 0.0
    whole = bool(task.parameters.get(WHOLE, False))
    return finish._replace(whole=whole, offset=np.float64(middle))


def divisors(
    rows: Sequence[NDArray[Any]], places: Places, border: Border
) -> tuple[NDArray[np.float64], ...]:
    """Return the factors of each voxel's divisor along z, y and x: sums of weights that count.

    `rows` are the weights along z, y and x, of which those of cells are products.
    """
    found = []
    for row, cells in zip(rows, (places.z, places.y, places.x), strict=True):
        counted = (cells >= 0) if border is Border.REDUCE else np.ones(len(cells))
        found.append(np.correlate(counted.astype(np.float64), row.astype(np.float64)))
    return tuple(found)


@kernel
def is_inside(fits: Record, z: Index, y: Index, x: Index) -> Any:
    """Return whether a voxel is to be computed."""
    return fits[0] <= z < fits[1] and fits[2] <= y < fits[3] and fits[4] <= x < fits[5]


@kernel
def own_voxel(source: Voxels, places: Record, radii: Record, z: Index, y: Index, x: Index) -> Any:
    """Return the voxel of the source at a place of the result."""
    return source[places.z[z + radii[0]], places.y[y + radii[1]], places.x[x + radii[2]], 0]


@kernel.plain
def gather_cube(
    source: Voxels,
    places: Record,
    radii: Record,
    z: Index,
    y: Index,
    x: Index,
    outside: Index,
    cells: Line,
) -> Any:
    """Write the cells around a voxel, slice by slice and row by row; return how many they are.

    Those outside that count as zero are written if `outside` is 1, and left out if it is 0.
    """
    count = 0
    for s in range(2 * radii[0] + 1):
        zz = places.z[z + s]
        for t in range(2 * radii[1] + 1):
            yy = places.y[y + t]
            for u in range(2 * radii[2] + 1):
                xx = places.x[x + u]
                if zz >= 0 and yy >= 0 and xx >= 0:
                    cells[count] = source[zz, yy, xx, 0]
                    count += 1
                elif outside:
                    cells[count] = 0
                    count += 1
    return count


@kernel.plain
def weigh_cubes_serial(
    source: Voxels,
    output: Voxels,
    weights: Line,
    divisor: Record,
    places: Record,
    radii: Record,
    finish: Record,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops: for every voxel, every cell of the mask.

    - `weights`: float64, slice by slice and row by row.
    - `divisor`: of `divisors`.
    """
    cells = np.empty(weights.size, np.float64)
    for z in range(start, stop):
        for y in range(output.shape[1]):
            for x in range(output.shape[2]):
                if not is_inside(places.fits, z, y, x):
                    output[z, y, x, 0] = own_voxel(source, places, radii, z, y, x)
                    continue
                gather_cube(source, places, radii, z, y, x, 1, cells)
                total = 0.0
                for i in range(weights.size):
                    total += weights[i] * cells[i]
                quotient = divisor[0][z] * divisor[1][y] * divisor[2][x]
                output[z, y, x, 0] = settle(np.true_divide(total, quotient), finish)


@kernel
def add_voxels(voxels: Line, weight: Number, places: Line, straight: Record, totals: Line) -> None:
    """Add `weight` times the voxels at `places` of a row to `totals`, float64."""
    first, last = straight
    for u in range(first):
        if places[u] >= 0:
            totals[u] += weight * voxels[places[u]]
    inside = voxels[places[first] : places[first] + last - first]
    sums = totals[first:last]
    for u in range(sums.size):
        sums[u] += weight * inside[u]
    for u in range(last, totals.size):
        if places[u] >= 0:
            totals[u] += weight * voxels[places[u]]


@kernel
def sum_slices(
    source: Voxels, weights: Line, places: Record, z: Index, t: Index, totals: Line
) -> None:
    """Write the sum along z of the row `t` of places, weighted, as far as x has places."""
    totals[:] = 0
    yy = places.y[t]
    if yy < 0:
        return
    for s in range(weights.size):
        zz = places.z[z + s]
        if zz >= 0 and weights[s] != 0:
            voxels = source[zz, yy].reshape(source.shape[2])
            add_voxels(voxels, weights[s], places.x, places.straight, totals)


@kernel
def add_scaled(line: Line, weight: Number, totals: Line) -> None:
    """Add `weight` times `line` to `totals`, as many as these are."""
    for u in range(totals.size):
        totals[u] += weight * line[u]


@kernel
def keep_row(
    source: Voxels, output: Voxels, places: Record, radii: Record, z: Index, y: Index
) -> None:
    """Bring the voxels of a row back whose mask does not fit, for border ``keep``."""
    for x in range(output.shape[2]):
        if not is_inside(places.fits, z, y, x):
            output[z, y, x, 0] = own_voxel(source, places, radii, z, y, x)


@kernel
def weigh_cubes_parallel(
    source: Voxels,
    output: Voxels,
    rows: Record,
    divisor: Record,
    places: Record,
    radii: Record,
    finish: Record,
    centre: Number,
    start: Index,
    stop: Index,
) -> None:
    """One axis after the other: `rows` are the weights along z, y and x, float64.

    A unit of work is `ROWS` rows of a slice.

    - `centre`: weight of the voxel itself, in addition to the product of the rows.
    """
    tall, wide = output.shape[1], places.x.size
    side = rows[1].size
    blocks = -(-tall // ROWS)
    ring = np.empty((side, wide))
    columns = np.empty(wide)
    totals = np.empty(output.shape[2])
    for unit in range(start, stop):
        z, top = unit // blocks, unit % blocks * ROWS
        bottom = min(top + ROWS, tall)
        for t in range(top, bottom + side - 1):
            sum_slices(source, rows[0], places, z, t, ring[t % side])
            y = t - side + 1
            if y < top:
                continue
            columns[:] = 0
            for s in range(side):
                add_scaled(ring[(y + s) % side], rows[1][s], columns)
            totals[:] = 0
            for u in range(rows[2].size):
                add_scaled(columns[u:], rows[2][u], totals)
            quotient = divisor[0][z] * divisor[1][y]
            for x in range(totals.size):
                if centre != 0:
                    totals[x] += centre * own_voxel(source, places, radii, z, y, x)
                value = np.true_divide(totals[x], quotient * divisor[2][x])
                output[z, y, x, 0] = settle(value, finish)
            keep_row(source, output, places, radii, z, y)


@kernel.plain
def weigh_axes_serial(
    source: Voxels,
    output: Voxels,
    rows: Record,
    divisor: Record,
    places: Record,
    radii: Record,
    finish: Record,
    start: Index,
    stop: Index,
) -> None:
    """Plain loops, one axis after the other: the sums of `weigh_cubes_parallel` in its order.

    For weights that are no whole numbers, whose sums depend on the order.
    """
    tall, wide = places.y.size, places.x.size
    along_z = np.empty((tall, wide))
    along_y = np.empty(wide)
    for z in range(start, stop):
        for t in range(tall):
            for u in range(wide):
                total = 0.0
                for s in range(rows[0].size):
                    zz, yy, xx = places.z[z + s], places.y[t], places.x[u]
                    if zz >= 0 and yy >= 0 and xx >= 0:
                        total += rows[0][s] * source[zz, yy, xx, 0]
                along_z[t, u] = total
        for y in range(output.shape[1]):
            for u in range(wide):
                total = 0.0
                for s in range(rows[1].size):
                    total += rows[1][s] * along_z[y + s, u]
                along_y[u] = total
            for x in range(output.shape[2]):
                total = 0.0
                for s in range(rows[2].size):
                    total += rows[2][s] * along_y[x + s]
                quotient = divisor[0][z] * divisor[1][y] * divisor[2][x]
                output[z, y, x, 0] = settle(np.true_divide(total, quotient), finish)
            keep_row(source, output, places, radii, z, y)


def units(task: CpuTask) -> int:
    """Return the units of work of level *parallel*."""
    return task.output.shape[0] * -(-task.output.shape[1] // ROWS)


def plan_average(
    task: CpuTask, weights_of: Callable[[int], NDArray[Any]], serial: bool
) -> list[CpuPass]:
    """Return the pass of an average whose weights are products of those along each axis.

    - `weights_of`: maps a side to the weights along an axis.
    """
    radii = radii_of(task.parameters["size"])
    places = Places.of(task, radii)
    rows = [weights_of(2 * radius + 1).astype(np.float64) for radius in radii]
    divisor, finish = divisors(rows, places, task.border), finish_of(task)
    if serial:
        cube = np.einsum("z,y,x->zyx", *rows).reshape(-1)
        arguments = (task.source, task.output, cube, divisor, places, radii, finish)
        return [CpuPass(weigh_cubes_serial, arguments, task.output.shape[0])]
    parallel = (task.source, task.output, tuple(rows), divisor, places, radii, finish, 0.0)
    return [CpuPass(weigh_cubes_parallel, parallel, units(task))]


def side_radius(parameters: Mapping[str, Any]) -> int:
    """Return the pixels on each side, or slices, that a mask with the parameter ``size`` needs."""
    return radii_of(parameters["size"])[0]


def sides(maximum: int, help: str) -> SidesParameter:
    """Return the parameter ``size`` of a mask of voxels."""
    return SidesParameter(name="size", label="Mask size", help=help, default=3, maximum=maximum)


GAPS_IN_3D = {
    SINGLE_BLOCK.id: "One multiprocessor would take seconds where all of them take milliseconds.",
    TEXTURE.id: "The textures of this program have two dimensions; a volume has three.",
    TUNED.id: "This filter has no tuned kernel in 3-D yet.",
}

_BLOCKS = ((32, 4, 2), (32, 4, 1), (32, 2, 1), (32, 1, 1))
"""Threads along x, y and z: the first whose tile fits into shared memory is taken."""

_SHARED_BYTES = 48 * 1024  # shared memory of a block on every GPU

_NEGATIVE = ("keep", "absolute", "offset", "clip")


def _tile_bytes(block: tuple[int, int, int], radii: Sides) -> int:
    return 4 * math.prod(
        threads + 2 * radius for threads, radius in zip(block, radii[::-1], strict=True)
    )


def _block(task: CudaTask, radii: Sides) -> tuple[int, int, int]:
    if task.block is not None:
        return *task.block, 1
    if task.level != SHARED.id:
        return _BLOCKS[0]
    fitting = (each for each in _BLOCKS if _tile_bytes(each, radii) <= _SHARED_BYTES)
    return next(fitting, _BLOCKS[-1])


def cube_launch(
    filter_id: str,
    task: CudaTask,
    radii: Sides,
    *,
    operations: float,
    weights: NDArray[Any] | None = None,
    negative: str = "keep",
    block: tuple[int, int, int] | None = None,
    **defines: int,
) -> Launch:
    """Return the launch of a level.

    - `operations`: for each cell of the mask.
    - `block`: threads along x, y and z, unless the user asks for others.
    - `weights`: of the cells, shape (slices, rows, columns): whole numbers, of which float32 holds
      each. They are in constant memory but at level *global*.
    """
    if block is None or task.block is not None:
        block = _block(task, radii)
    defines |= dict(zip(("RADIUS_Z", "RADIUS_Y", "RADIUS_X"), radii, strict=True))
    defines |= dict(zip(("BLOCK_X", "BLOCK_Y", "BLOCK_Z"), block, strict=True))
    whole = int(bool(task.parameters.get(WHOLE, False)))
    table = None if weights is None else weights.astype(np.float32).reshape(-1)
    constants: dict[str, NDArray[Any]] = {}
    if table is not None and task.level != GLOBAL.id:
        constants["constant_weights"] = table
    if negative == "offset":
        constants["middle"] = np.array(task.parameters.get(MIDDLE, 0.5), np.float64)
    return Launch(
        kernel=f"{filter_id}_{task.level}",
        defines=task.defines(
            WHOLE=whole,
            KEEP=int(task.border is Border.KEEP),
            NEGATIVE=_NEGATIVE.index(negative),
            **defines,
        ),
        block=block,
        constants=constants,
        tables=(table,) if table is not None and task.level == GLOBAL.id else (),
        shared_bytes=_tile_bytes(block, radii) if task.level == SHARED.id else 0,
        bytes_per_sample=8.0,
        operations_per_sample=operations * math.prod(2 * radius + 1 for radius in radii),
    )


# Masks of voxels by NumPy alone, in place of the kernels of level *parallel* -----------
#
# All sums are in the order of those kernels, so that results have the same bits.

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


AVERAGES: Mapping[JitKernel, Callable[..., None]] = {weigh_cubes_parallel: weigh}  # for `instead`
