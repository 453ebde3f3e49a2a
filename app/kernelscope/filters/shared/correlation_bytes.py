"""Correlation of bytes at level *parallel*: products of integers, two cells at a time.

A processor multiplies bytes with weights of 8 bits and adds up the products of neighbours in 16
bits by one instruction (pmaddubsw): four times as many as by one of float32. For that two rows are
interleaved, and a *step* takes two cells, one below the other, for all columns at once:

    rows y, y + 1     a0 b0 a1 b1 a2 b2 ...
    weights of y      1  2  1  2  1  2        a0 + 2 b0, a1 + 2 b1, a2 + 2 b2, ...
    weights of y + 1  0  1  0  1  0  1        b0, b1, b2, ...

The same two cells are one row higher in the mask of the next row of results: two rows of results
share the loads, and rows are interleaved in pairs that do not overlap.

Sums of 16 bits hold positive weights of up to 128 = 32767 // 255 in all, and as many negative ones.
So steps are in *groups* within these bounds, after each of which the sums are added to those of 32
bits. Two cells of a step keep to them as well; larger weights take several steps.

Where that makes too many steps, weights have 16 bits and sums 32 (pmaddwd): twice the time of a
step, but one for all weights up to 32767.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Array, Index, Like, Line, Number, Plane, Record, intrinsic, kernel
from kernelscope.filters.shared.border_kernels import fetch_row
from kernelscope.filters.shared.correlation import (
    Divisor,
    Finish,
    cpu_correlation,
    finish_row,
    update_divisors,
    working_type,
)
from kernelscope.filters.shared.vectors import Loops, make_ring
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import CpuPass, CpuTask
from kernelscope.schema.levels import PARALLEL
from kernelscope.schema.parameters import Mask

_LANES = 32  # samples of a step
_ROWS = 2  # rows of results that are computed together
_MOST = 32767 // 255  # sum of the positive, and of the negative weights that sums of 16 bits hold
_NARROW, _WIDE = 127, 32767  # largest weights of steps of 8 and of 16 bits
_LARGEST_DIVISOR, _QUOTIENTS = 2**13, 2**22  # see `factor_of`

_STEP, _GROUP, _WIDE_STEP, _FLOAT, _FLOAT_REST = 1.0, 1.7, 1.8, 1.6, 10.0
"""Times of a step, a group, and a step of 16 bits; with float32, of a weight and the rest more.

Milliseconds for 4096×4096 samples on one core of an EPYC of 2017, 2.5 GHz.
"""


class MaskSteps(NamedTuple):
    """The weights of a mask as steps."""

    cells: NDArray[np.int64]
    """int64, shape (steps, 2). Pair of rows and column of each step in the mask."""
    weights: NDArray[Any]
    """int8 or int16, shape (steps * 2 * 2 * _LANES,). Of each step, for either row of results: the
    weights of two cells, for each lane."""
    ends: NDArray[np.int64]
    """int64, shape (groups + 1,). Number of the first step of each group, and of all steps."""


Cell = tuple[int, int]

Part = tuple[tuple[int, ...], ...]
"""The weights of a step: for either row of results, those of the upper and the lower cell."""


@functools.lru_cache(maxsize=64)
def steps_of(mask: Mask) -> MaskSteps | None:
    """Return the fastest steps for a mask of whole numbers, or none where float32 is faster."""
    weights = [abs(weight) for row in mask for weight in row if weight]
    if not 0 < 255 * sum(weights) < 2**31:
        return None
    wide = list(_parts(mask, _WIDE, 2 * _WIDE))
    least = min(_WIDE_STEP * len(wide), _FLOAT_REST + _FLOAT * len(weights))
    parts: list[tuple[Cell, Part]] = []
    ends = [0]
    positive: tuple[int, ...] = (0, 0)
    negative = positive
    for each in _parts(mask, _NARROW, _MOST):
        more = tuple(sum(max(weight, 0) for weight in row) for row in each[1])
        less = tuple(sum(max(-weight, 0) for weight in row) for row in each[1])
        positive, negative = _sum(positive, more), _sum(negative, less)
        if max(positive + negative) > _MOST:
            ends.append(len(parts))
            positive, negative = more, less
        parts.append(each)
        if _STEP * len(parts) + _GROUP * (len(ends) - 1) > least:
            break
    else:
        return _table(parts, [*ends, len(parts)], np.int8)
    if _WIDE_STEP * len(wide) > least:
        return None
    return _table(wide, [0, len(wide)], np.int16)


def _table(parts: list[tuple[Cell, Part]], ends: list[int], dtype: Any) -> MaskSteps:
    cells, weights = zip(*parts, strict=True)
    table = np.array(weights, dtype).repeat(_LANES, axis=1).ravel()
    return MaskSteps(np.array(cells, np.int64), table, np.array(ends, np.int64))


def _sum(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(operator.add, a, b))


def _parts(mask: Mask, largest: int, most: int) -> Iterator[tuple[Cell, Part]]:
    """Yield the cell and the weights of each step.

    No weight is above `largest`, and no sum of two of a sign above `most`.
    """

    def within(upper: int, lower: int) -> tuple[int, int]:
        upper = min(max(upper, -largest), largest)
        room = min(most - abs(upper), largest) if upper * lower > 0 else largest
        return upper, min(max(lower, -room), room)

    none = (0,) * len(mask)
    rows = [none, *mask, none]
    for pair in range((len(mask) + 1) // 2):
        for column, (above, upper, lower) in enumerate(zip(*rows[2 * pair :][:3], strict=True)):
            left: Part = (int(upper), int(lower)), (int(above), int(upper))
            while any(map(any, left)):
                part = within(*left[0]), within(*left[1])
                yield (pair, column), part
                left = tuple((a - c, b - d) for (a, b), (c, d) in zip(left, part, strict=True))


def factor_of(weights: NDArray[np.int64], divisor: Divisor, border: Border) -> np.float32:
    """Return 1 / divisor if products with it, rounded, are the quotients; 0 otherwise.

    For powers of two they are. A quotient by an odd number d is no tie, but at least 1 / 2d from
    one. Results above 384 are cut off whatever is done to them; up to there, factor and product are
    together less than 384 / 2**23 wrong, which is less for d up to 2**13. Quotients have to be
    below 2**22, and all divisors the same.
    """
    total = float(divisor.table[-1, -1])
    is_one = np.array_equal(divisor.table, Divisor.one(len(weights)).table)
    if border is Border.REDUCE and not is_one:
        return np.float32(0)
    is_simple = math.frexp(total)[0] == 0.5 or total % 2 == 1
    is_small = total == 1 or 255 * abs(weights).sum() < _QUOTIENTS * total
    return np.float32(1 / total if 1 <= total <= _LARGEST_DIVISOR and is_simple and is_small else 0)


def _sums_of_pairs(loops: Loops, builder: Any, samples: Any, weights: Any) -> Any:
    """Return sums of two products each, of bytes and weights: of twice the bits of the weights.

    They fit, so that nothing is cut; but LLVM knows pmaddubsw by its bounds, and pmaddwd without.
    """
    least, largest = loops.all(-32768, 32), loops.all(32767, 32)
    halves = [range(k, 2 * _LANES, 2) for k in range(2)]
    if weights.type.element.width == 16:
        wide = type(least.type)(least.type.element, 2 * _LANES)
        products = builder.mul(builder.zext(samples, wide), builder.sext(weights, wide))
        return builder.add(*(loops.chosen(products, products, half) for half in halves))
    even, odd = (
        builder.mul(
            builder.zext(loops.chosen(samples, samples, half), least.type),
            builder.sext(loops.chosen(weights, weights, half), least.type),
        )
        for half in halves
    )
    total = builder.add(even, odd)
    total = builder.select(builder.icmp_signed("<", total, largest), total, largest)
    total = builder.select(builder.icmp_signed(">", total, least), total, least)
    return builder.trunc(total, loops.all(0).type)


@intrinsic
def pair_sums(
    context: Any,
    builder: Any,
    types: Any,
    pairs: Any,
    offsets: Any,
    weights: Any,
    ends: Any,
    upper: Any,
    lower: Any,
) -> None:
    """Write the weighted sums of interleaved rows for two rows of results, 32 bits."""
    loops, twos = Loops(context, builder, _LANES), Loops(context, builder, 2 * _LANES)
    count = builder.extract_value(upper, 2)
    groups = builder.sub(builder.extract_value(ends, 2), count.type(1))
    arrays = (pairs, offsets, weights, ends, upper, lower)
    pairs, offsets, weights, ends, *totals = map(loops.start, types, arrays)
    bits = weights.type.pointee.width
    none, zeros, intp = loops.all(0, 2 * bits), loops.all(0, 32), count.type
    with loops.steps(count) as x:
        twice = builder.mul(x, intp(2))

        def products(step: Any) -> Iterator[Any]:
            samples = twos.load(pairs, builder.add(twice, loops.item(offsets, step)), 8)
            for row in range(_ROWS):
                place = builder.add(builder.mul(step, intp(_ROWS)), intp(row))
                weight = twos.load(weights, builder.mul(place, intp(2 * _LANES)), bits)
                yield _sums_of_pairs(loops, builder, samples, weight)

        def group_sums(group: Any) -> Iterator[Any]:
            first, end = (loops.item(ends, builder.add(group, intp(i))) for i in range(2))
            steps = builder.sub(end, first)
            added = loops.sums(
                steps, [none] * _ROWS, lambda number: products(builder.add(first, number))
            )
            return (builder.sext(each, zeros.type) for each in added)

        for total, row in zip(loops.sums(groups, [zeros] * _ROWS, group_sums), totals, strict=True):
            loops.store(total, row, x)


@intrinsic
def saturate_row(
    context: Any,
    builder: Any,
    types: Any,
    totals: Any,
    factor: Any,
    absolute: Any,
    offset: Any,
    samples: Any,
) -> None:
    """As `finish_row`, with a product for the quotient: see `factor_of`.

    With a whole number for `factor`, without one.
    """
    from llvmlite import ir  # type: ignore[import-untyped]

    loops = Loops(context, builder, _LANES)
    count = builder.extract_value(samples, 2)
    totals, samples = loops.start(types[0], totals), loops.start(types[4], samples)
    zeros, white, offset = loops.all(0, 32), loops.all(255, 32), loops.spread(offset, 32)
    real = ir.VectorType(ir.FloatType(), _LANES)
    # From 2**23 on floats are whole: the sum of one is rounded, and has the number in its bits.
    whole = ir.Constant(real, [1.5 * 2.0**23] * _LANES)
    scaled = factor.type == real.element
    if scaled:
        bits = builder.bitcast(factor, zeros.type.element)
        factor = builder.bitcast(loops.spread(bits, 32), real)
    with loops.steps(count) as x:
        number = loops.load(totals, x, 32)
        if scaled:
            quotient = builder.fmul(builder.sitofp(number, real), factor)
            number = builder.bitcast(builder.fadd(quotient, whole), zeros.type)
            number = builder.sub(number, builder.bitcast(whole, zeros.type))
        opposite = builder.sub(zeros, number)
        positive = builder.select(builder.icmp_signed(">", number, opposite), number, opposite)
        number = builder.add(builder.select(absolute, positive, number), offset)
        number = builder.select(builder.icmp_signed("<", number, white), number, white)
        number = builder.select(builder.icmp_signed(">", number, zeros), number, zeros)
        loops.store(number, samples, x)


@kernel
def correlate_bytes(
    source: Plane,
    output: Plane,
    cells: Array,
    weights: Line,
    ends: Line,
    divisor: Record,
    finish: Record,
    factor: Number,
    like: Like,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Two rows at a time over a ring of interleaved rows; finished in the type of `like`.

    `cells`, `weights` and `ends` are of `MaskSteps`.
    """
    side = divisor.table.shape[0] - 1
    radius, lines = side // 2, (side + 1) // 2
    channels = source.shape[2]
    length = output.shape[1] * channels
    padded = length + 2 * radius * channels
    ring, pitch = make_ring(lines, 2 * padded)
    upper, lower = np.empty((2, padded), np.uint8)
    offsets = np.empty(ends[-1], np.int64)
    totals = np.empty((2, length), np.int32)
    divisors = np.empty(length, like.dtype)
    for pair in range((stop - start + 1) // 2 + lines - 1):
        row = start + 2 * pair
        fetch_row(source, row, radius, border, upper)
        fetch_row(source, row + 1, radius, border, lower)
        slot = ring[pair % lines * pitch :]
        for x in range(padded):
            slot[2 * x] = upper[x]
            slot[2 * x + 1] = lower[x]
        first = pair - lines + 1
        if first < 0:
            continue
        for i in range(offsets.size):
            line = (first + cells[i, 0]) % lines
            offsets[i] = line * pitch + 2 * cells[i, 1] * channels
        pair_sums(ring, offsets, weights, ends, totals[0], totals[1])
        for y in range(start + 2 * first, min(start + 2 * first + 2, stop)):
            sums, means = totals[(y - start) % 2], output[y].reshape(length)
            if factor == 1:
                saturate_row(sums, 1, finish.absolute, np.int64(finish.offset), means)
            elif factor > 0:
                saturate_row(sums, factor, finish.absolute, np.int64(finish.offset), means)
            else:
                update_divisors(divisors, y, start, source, divisor, border)
                finish_row(sums, divisors, finish, means)


def plan(
    task: CpuTask, weights: NDArray[Any], divisor: Divisor, negative: str
) -> Sequence[CpuPass]:
    """As `cpu_correlation`, for bytes by `correlate_bytes` where that is faster."""
    source, output, border = task.source, task.output, task.border
    steps = None
    if (
        task.level == PARALLEL.id
        and source.dtype == np.uint8
        and weights.dtype.kind == "i"
        and min(source[0].size, output[0].size) >= _LANES
    ):
        steps = steps_of(tuple(map(tuple, weights.tolist())))
    if steps is None:
        return cpu_correlation(task, weights, divisor, negative)
    work = working_type(source.dtype, weights, divisor, border)
    if steps.weights.dtype == np.int16:
        work = np.float64  # always, to compile once: beside its many products that takes no time
    finish = Finish.of(source.dtype, work, negative)
    factor = factor_of(weights, divisor, border)
    arguments = (source, output, *steps, divisor, finish, factor, np.empty(0, work), border.code)
    return [CpuPass(correlate_bytes, arguments, output.shape[0])]
