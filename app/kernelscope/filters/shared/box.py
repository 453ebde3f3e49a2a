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

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import (
    Flag,
    Index,
    Like,
    Line,
    Number,
    Plane,
    Record,
    inlined,
    intrinsic,
    kernel,
)
from kernelscope.filters.shared import groups
from kernelscope.filters.shared.border_kernels import REDUCE, VALID, border_index, pad_columns
from kernelscope.filters.shared.correlation import Work, finish_row, update_divisors
from kernelscope.filters.shared.plain import count_cells, gather, put, rolled, wide_cell
from kernelscope.filters.shared.vectors import LANES, Loops, padded_row
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import CudaTask, Launch

# Means of bytes: sums of 16 bits, and a product in place of the division ----------------
#
# Down the columns, the row that joins the mask and the one that leaves it are one sweep. Along the
# row, up to 15 columns are added up anew for each pixel, which 16 bits hold. Larger masks need 32;
# for these the sums from the start of the row are written down, of which two make the sum of a mask
# of any size:
#
#     columns             1  2  3  4  5  6
#     from the start   0  1  3  6 10 15 21
#     sums of three       6  9 12 15             6 - 0, 10 - 1, 15 - 3, 21 - 6
#
# A mean n / d, with an odd number of cells d, is no tie. For sums of 16 bits it is the upper half
# of (n + d // 2) * multiplier, shifted; see `scale_of`. For larger ones it is n times 1 / d in
# float32, at most 255.5 / 2**23 wrong: less than the 1 / 2d that lie between n / d and a tie.

_LARGEST_16_BIT = 15  # largest mask whose 8-bit samples add up to 16 bits: 15 * 15 * 255 = 57375


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


@inlined.plain
def add_up(samples: Line, place: Index, pitch: Index, step: Index, size: Index) -> Any:
    """Return the sum of a window whose first cell is at `place`, int64 or float64.

    Its rows are `pitch` samples apart, its columns `step`.
    """
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


@kernel.plain
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


LARGEST_OF_16_BITS = 15  # largest mask whose bytes add up to 16 bits: 15 * 15 * 255 = 57375

LARGEST_OF_GROUPS = 7
"""Largest mask that `Means` computes: a row of sums for each of its rows stays in a register."""

_STEP = 2 * LANES  # samples of a step where sums have 16 bits; rows are at least as long
_PART = 4  # lanes of the smallest registers, for 32 bits


class MeanScale(NamedTuple):
    """How sums become means."""

    half: int  # added to a sum before it is multiplied: half of the cells, rounded down
    multiplier: int  # 2**(16 + shift) / cells, rounded up
    shift: int
    factor: np.float32  # 1 / cells


def scale_of(size: int) -> MeanScale:
    """Return the scale of a mask.

    With the largest shift that leaves a multiplier of 16 bits. It is too large by e / cells, so
    that a product is too large by n * e / cells, which has to stay below 2**(16 + shift) / cells:
    true of all sums of 16 bits for the sizes up to `LARGEST_OF_16_BITS` (there is a test).
    """
    cells = size * size
    shift = 0
    while -(-(1 << 17 + shift) // cells) < 1 << 16:
        shift += 1
    return MeanScale(cells // 2, -(-(1 << 16 + shift) // cells), shift, np.float32(1 / cells))


class Means(NamedTuple):
    """Means of `LARGEST_OF_GROUPS` at most, eight rows at a time."""

    taps: tuple[int, ...]
    multiplier: int
    shift: int

    @classmethod
    def of(cls, size: int) -> Means:
        scale = scale_of(size)
        return cls(groups.taps(size), scale.multiplier, scale.shift)

    @staticmethod
    def emit(step: groups.SweepStep) -> None:
        """Add up each row once; a sum of rows is that of the one above, and a row more and less."""
        loops, builder, size = step.loops, step.builder, step.size
        # Of constants LLVM would join the two shifts, and lose the upper half of a product.
        wide = loops.all(0, 32).type
        multiplier = builder.zext(loops.spread(step.field(1)), wide)
        shift = loops.spread(step.field(2))
        rows: list[Any] = []
        total = loops.all(size * size // 2)
        for row in range(groups.GROUP + size - 1):
            cells = [step.load(row, tap, 16) for tap in range(size)]
            rows.append(functools.reduce(builder.add, cells))
            total = builder.add(total, rows[row])
            y = row - size + 1
            if y < 0:
                continue
            product = builder.mul(builder.zext(total, wide), multiplier)
            upper = builder.trunc(builder.lshr(product, loops.all(16, 32)), total.type)
            step.store(builder.lshr(upper, shift), y)
            total = builder.sub(total, rows[y])


def applies(source: NDArray[Any], output: NDArray[Any], size: int, border: Border) -> bool:
    """Return whether `mean_bytes` computes these means."""
    if source.dtype != np.uint8 or border is Border.REDUCE:
        return False
    if min(source[0].size, output[0].size) < _STEP:
        return False
    return size <= LARGEST_OF_16_BITS or source.shape[2] == 1


@intrinsic
def slide_down(
    context: Any, builder: Any, types: Any, sums: Any, joins: Any, leaves: Any, moved: Any
) -> None:
    """Write ``sums + joins - leaves`` to as many sums in `moved`, another array."""
    loops = Loops(context, builder, _STEP)
    count = builder.extract_value(joins, 2)
    sums, joins, leaves, moved = map(loops.start, types, (sums, joins, leaves, moved))
    with loops.steps(count) as x:
        total = builder.add(loops.load(sums, x), loops.load(joins, x))
        loops.store(builder.sub(total, loops.load(leaves, x)), moved, x)


@intrinsic
def short_means(
    context: Any,
    builder: Any,
    types: Any,
    columns: Any,
    size: Any,
    step: Any,
    scale: Any,
    means: Any,
) -> None:
    """Write the means of `size` columns each, `step` samples apart, from sums of 16 bits."""
    loops = Loops(context, builder, _STEP)
    half, multiplier, shift = (builder.extract_value(scale, place) for place in range(3))
    half, shift = loops.spread(half), loops.spread(shift)
    multiplier = builder.zext(loops.spread(multiplier), loops.all(0, 32).type)
    count = builder.extract_value(means, 2)
    columns, means = loops.start(types[0], columns), loops.start(types[4], means)
    with loops.steps(count) as x:

        def term(tap: Any) -> list[Any]:
            return [loops.load(columns, builder.add(x, builder.mul(tap, step)))]

        (total,) = loops.sums(size, [half], term)
        product = builder.mul(builder.zext(total, multiplier.type), multiplier)
        upper = builder.lshr(product, loops.all(16, 32))
        mean = builder.lshr(builder.trunc(upper, half.type), shift)
        loops.store(mean, means, x)


@intrinsic
def sums_from_start(context: Any, builder: Any, types: Any, columns: Any, sums: Any) -> None:
    """Write the sum of all columns before each one, and after a multiple of `LANES` of them.

    `sums` has a number more than `columns`.
    """
    loops = Loops(context, builder)
    count = builder.extract_value(columns, 2)
    columns, sums = loops.start(types[0], columns), loops.start(types[1], sums)
    zeros = loops.chosen(loops.all(0, 32), loops.all(0, 32), range(_PART))
    begin = builder.block
    builder.store(sums.type.pointee(0), sums)
    with loops.repeat(builder.sdiv(count, count.type(LANES))) as step:
        before = carried = builder.phi(zeros.type)
        place = builder.mul(step, count.type(LANES))
        added = loops.load(columns, place, 32)
        for first in range(0, LANES, _PART):
            total = loops.chosen(added, added, range(first, first + _PART))
            for distance in (1, 2):
                places = range(_PART - distance, 2 * _PART - distance)
                total = builder.add(total, loops.chosen(zeros, total, places))
            total = builder.add(total, carried)
            carried = loops.chosen(total, total, [_PART - 1] * _PART)
            loops.store(total, sums, builder.add(place, count.type(first + 1)))
        before.add_incoming(zeros, begin)
        before.add_incoming(carried, builder.block)


@intrinsic
def long_means(
    context: Any, builder: Any, types: Any, sums: Any, size: Any, factor: Any, means: Any
) -> None:
    """Write the means of `size` columns each from `sums_from_start`."""
    from llvmlite import ir  # type: ignore[import-untyped]

    loops = Loops(context, builder)
    count = builder.extract_value(means, 2)
    sums, means = loops.start(types[0], sums), loops.start(types[3], means)
    real = ir.VectorType(ir.FloatType(), LANES)
    none = ir.Constant(real, ir.Undefined)
    factors = builder.insert_element(none, factor, ir.IntType(32)(0))
    factors = loops.chosen(factors, none, [0] * LANES)
    with loops.steps(count) as x:
        total = builder.sub(loops.load(sums, builder.add(x, size), 32), loops.load(sums, x, 32))
        mean = builder.fmul(builder.sitofp(total, real), factors)
        # From 2**23 on floats are whole: this rounds, and leaves the mean in the lowest byte.
        mean = builder.fadd(mean, ir.Constant(real, [2.0**23] * LANES))
        loops.store(builder.bitcast(mean, total.type), means, x)


@kernel
def mean_bytes(
    source: Plane,
    output: Plane,
    blank: Line,
    size: Index,
    scale: Record,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """As `box.mean_parallel`, for bytes and any border but ``reduce``.

    Rows have at least `_STEP` samples; those of masks above `LARGEST_OF_16_BITS` are grey.
    """
    channels = source.shape[2]
    radius = size // 2
    margin = 0 if border == VALID else radius * channels
    length = output.shape[1] * channels
    padded = length + 2 * radius * channels
    columns, moved = np.zeros((2, padded + LANES), np.uint16)
    sums = np.empty(padded + LANES + 1, np.int32)
    for row in range(start, stop + size - 1):
        joins = padded_row(source, row, radius, border, blank)
        leaves = blank
        if row - size >= start:
            leaves = padded_row(source, row - size, radius, border, blank)
        slide_down(columns[margin:], joins, leaves, moved[margin:])
        columns, moved = moved, columns
        y = row - size + 1
        if y < start:
            continue
        pad_columns(columns[:padded], radius, channels, border)
        means = output[y].reshape(length)
        if size <= LARGEST_OF_16_BITS:
            short_means(columns, size, channels, scale, means)
        else:
            sums_from_start(columns, sums)
            long_means(sums, size, scale.factor, means)


_HALF_BLOCK = 128
"""Threads that walk down from the middle of a tile, and that walk up: ``BOX_HALF_BLOCK``."""

_COLUMNS = 8  # columns (samples of a row) of a thread: macro ``BOX_COLUMNS``
_LOADED = _COLUMNS * _HALF_BLOCK  # columns that a block reads

_RUN = _LOADED // 32
"""Neighbouring results that a thread computes, of the 32 of a warp: macro ``BOX_RUN``."""

_STEPS = {8: 8, 16: 4, 32: 4}
"""Rows that half a block computes at a time, by the bits of a sample: macro ``BOX_STEP``."""

_TILE_STEP = 2 * max(_STEPS.values())  # rows of which the height of a tile is a multiple

_SAMPLES_A_ROW = 340_000
"""Output samples for each row of a tile: smaller images need low tiles to occupy the whole card."""

_TALLEST_TILE = 96
"""Rows. For 16384 x 16384 bytes on an H100, tiles of 64 take 4 % longer with 15 x 15 cells, 2 %
with 31 x 31; tiles of 128 rows take 3 % longer with 31 x 31, 6 % with 63 x 63 and 99 x 99."""

_SMALL_WORK_GREY_BYTES, _SMALL_WORK, _SMALL_WORK_FLOATS, _SMALL_WORK_COUNTED = 9e6, 1e7, 5e7, 2e8
"""Cells that another level adds up, for a whole picture, from which on these kernels are faster:
their own work hardly grows with the mask. They are slower where they add up doubles, and slowest
where they divide by the number of cells that the border leaves. Measured on an H100 for 3x3 to
31x31."""


def box_pays_from(task: CudaTask, size: int) -> float:
    """Return the least samples for which these kernels pay for `size` x `size` cells."""
    work = _SMALL_WORK_FLOATS if task.dtype.kind == "f" else _SMALL_WORK
    if task.dtype.itemsize == 1 and task.shape[2] == 1:
        work = _SMALL_WORK_GREY_BYTES
    if task.border is Border.REDUCE:
        work = _SMALL_WORK_COUNTED
    return work / (size * size)


def _tile_rows(samples: int) -> int:
    """Return the height of a tile for an output of `samples`.

    Low tiles keep the rows that tiles share in the cache and all multiprocessors occupied to
    the end; but for each tile, size - 1 rows have to be added up once more.
    """
    return min(max(samples // _SAMPLES_A_ROW // _TILE_STEP, 1) * _TILE_STEP, _TALLEST_TILE)


def tile_columns(size: int, channels: int, border: Border) -> int:
    """Return how many results (pixels of a row) a block has the columns for."""
    reach = size // 2 * channels
    halo = reach if border is Border.VALID else -(-reach // _COLUMNS) * _COLUMNS
    whole = math.lcm(_RUN, channels)
    return (_LOADED - halo - reach) // whole * whole // channels


def plan_box(filter_id: str, task: CudaTask, size: int) -> Launch:
    """Return the launch of a filter of `size` x `size` sums at level *tuned*."""
    channels = task.shape[2]
    samples = task.output_shape[0] * task.out_row_samples
    tile = (tile_columns(size, channels, task.border), _tile_rows(samples))
    return Launch(
        kernel=f"{filter_id}_tuned",
        defines=task.defines(
            SIZE=size,
            CHANNELS=channels,
            TILE_COLUMNS=tile[0],
            TUNED=1,
            BOX_HALF_BLOCK=_HALF_BLOCK,
            BOX_COLUMNS=_COLUMNS,
            BOX_RUN=_RUN,
            BOX_STEP=_STEPS[8 * task.dtype.itemsize],
        ),
        block=(_HALF_BLOCK, 2),
        tile=tile,
        bytes_per_sample=2.0 * task.dtype.itemsize,
        operations_per_sample=5.0,
    )
