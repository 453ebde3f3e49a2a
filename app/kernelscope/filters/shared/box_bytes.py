"""Means of bytes at level *parallel*: sums of 16 bits, and a product in place of the division.

Down the columns, the row that joins the mask and the one that leaves it are one sweep. Along the
row, up to 15 columns are added up anew for each pixel, which 16 bits hold. Larger masks need 32;
for these the sums from the start of the row are written down, of which two make the sum of a mask
of any size:

    columns             1  2  3  4  5  6
    from the start   0  1  3  6 10 15 21
    sums of three       6  9 12 15             6 - 0, 10 - 1, 15 - 3, 21 - 6

A mean n / d, with an odd number of cells d, is no tie. For sums of 16 bits it is the upper half of
(n + d // 2) * multiplier, shifted; see `scale_of`. For larger ones it is n times 1 / d in
float32, at most 255.5 / 2**23 wrong: less than the 1 / 2d that lie between n / d and a tie.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Index, Line, Plane, Record, intrinsic, kernel
from kernelscope.filters.shared import groups
from kernelscope.filters.shared.border_kernels import VALID, pad_columns
from kernelscope.filters.shared.vectors import LANES, Loops, padded_row
from kernelscope.schema.borders import Border

LARGEST_OF_16_BITS = 15
"""Largest mask whose bytes add up to 16 bits: 15 * 15 * 255 = 57375."""

LARGEST_OF_GROUPS = 7
"""Largest mask that `Means` computes: a row of sums for each of its rows stays in a register."""

_STEP = 2 * LANES
"""Samples of a step where sums have 16 bits; rows are at least as long."""

_PART = 4
"""Lanes of the smallest registers, for 32 bits."""


class MeanScale(NamedTuple):
    """How sums become means."""

    half: int
    """Added to a sum before it is multiplied: half of the cells, rounded down."""
    multiplier: int
    """2**(16 + shift) / cells, rounded up."""
    shift: int
    factor: np.float32
    """1 / cells."""


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
    def emit(step: groups.Step) -> None:
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
