"""The groups of level *parallel*: eight coefficients at a time, in vectors that are written out.

A vector has a row of a block, so that its eight are transformed at once, turned, and transformed
along the other axis. Vector k of a group's number n is at ``k * PITCH + 8 * n``, as in
`cpu.transform_group`. Along the group, all vectors at one place of a block, up to 32, are added up,
shrunk and taken apart again without going back to memory in between.

The arithmetic is that of the functions for numbers, which `of_lanes` makes functions of vectors.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from kernelscope.base.jit import Index, JitKernel, Line, Number, Record, inlined, intrinsic, kernel
from kernelscope.filters.collaborative.model import LARGEST, SHARES, SIDE, UPDATE, WIENER
from kernelscope.filters.shared.cosine import backward, bits_of, float_of, forward, fused
from kernelscope.filters.shared.plain import higher, lower
from kernelscope.filters.shared.vectors import Lanes, Loops, of_lanes, whole

INVERSE, SLOPE, OFFSET = np.int32(0x7EB50000), np.float32(-1.9412878), np.float32(2.7867577)
"""Of `share_of`."""

LEAST_WHOLE, LEAST_WHOLE_BITS = np.float32(2**23), np.int32(0x4B000000)
WHOLE, WHOLE_BITS = np.float32(3 * 2**22), np.int32(0x4B400000)
"""Floats, and their bits, to which a number is added to have its whole number in the last bits: one
that is not negative, and any."""

PITCH = SIDE * WIENER  # from a line of a group to the next: there are eight lanes for each block

COMPARED = 16  # blocks that are compared at a time: those in one vector


@inlined
def to_wavelets(samples: Record) -> Any:
    """Return coefficients of bior1.5 on a circle, each times its `model.WAVELET_SCALES`."""
    a0, a1, a2, a3, a4, a5, a6, a7 = samples
    d0, d1, d2, d3 = a1 - a0, a3 - a2, a5 - a4, a7 - a6
    u, v = (d3 - d1) * UPDATE, (d0 - d2) * UPDATE
    s0, s1, s2, s3 = a0 + a1 + u, a2 + a3 + v, a4 + a5 - u, a6 + a7 - v
    p, q = s0 + s1, s2 + s3
    return p + q, q - p, s1 - s0, s3 - s2, d0, d1, d2, d3


@inlined
def from_wavelets(coefficients: Record) -> Any:
    """Return the samples whose `to_wavelets` these are, each times its `model.WAVELET_PARTS`."""
    b0, b1, e, f, d0, d1, d2, d3 = coefficients
    p, q = b0 - b1, b0 + b1
    u, v = (d3 - d1) * UPDATE, (d0 - d2) * UPDATE
    s0, s1, s2, s3 = p - e - u, p + e - v, q - f + u, q + f + v
    return s0 - d0, s0 + d0, s1 - d1, s1 + d1, s2 - d2, s2 + d2, s3 - d3, s3 + d3


@inlined
def share_of(own: Number, guide: Number) -> Any:
    """Return noise's share of a coefficient's power, own / (guide² + own), times `SHARES`, whole.

    To a part in 9000: x y (c0 + c1 x y) is that near to 1 if y, the difference of the bits of a
    number and of x, is about 0.7 / x.
    """
    power = lower(fused(guide, guide, own), LARGEST)  # has no value, or is too large
    inverse = float_of(whole(INVERSE - bits_of(power)))
    rest = fused(power * inverse, SLOPE, OFFSET)
    return whole(bits_of(fused(own * SHARES * inverse, rest, LEAST_WHOLE)) - LEAST_WHOLE_BITS)


@inlined
def steps_of(value: Number, part: Number, factor: Number) -> Any:
    """Return the integer of a block's loss at a pixel, from minus to plus the limit."""
    share = higher(fused(value, part, np.float32(0.5)), np.float32(0))  # has no value, too
    share = lower(share, np.float32(1))
    return whole(bits_of(fused(share - np.float32(0.5), factor, WHOLE)) - WHOLE_BITS)


@intrinsic
def compare(
    context: Any,
    builder: Any,
    types: Any,
    cells: Any,
    width: Any,
    here: Any,
    there: Any,
    start: Any,
    stop: Any,
    columns: Any,
    limits: Any,
    sums: Any,
    alike: Any,
) -> None:
    """As `cpu.compare_rows`, of at least `COMPARED` blocks."""
    loops = Loops(context, builder, COMPARED)
    source, buffer, most, totals, flags = (
        loops.start(types[i], each)
        for i, each in ((0, cells), (6, columns), (7, limits), (8, sums), (9, alike))
    )
    count = builder.sub(stop, start)

    def added(numbers: Iterable[Lanes]) -> Lanes:
        return functools.reduce(operator.add, numbers)

    def squares(x: Any) -> Iterator[Lanes]:
        for y in range(SIDE):
            down = builder.mul(width, width.type(y))
            a, b = (
                Lanes.load(loops, source, builder.add(builder.add(first, down), x))
                for first in (here, there)
            )
            yield (a - b) * (a - b)

    with loops.steps(count) as step:
        x = builder.add(start, step)
        added(squares(x)).store(buffer, x)
    with loops.steps(builder.sub(count, count.type(SIDE - 1))) as step:
        x = builder.add(start, step)
        places = [builder.add(x, x.type(k)) for k in range(SIDE)]
        total = added([Lanes.load(loops, buffer, each) for each in places])
        total.store(totals, x)
        (total < Lanes.load(loops, most, x)).as_bytes().store(flags, x)


def _turned(rows: Sequence[Lanes]) -> list[Lanes]:
    """Exchange the axes of a block: first of single cells, then of squares of 2×2 and of 4×4."""
    for side in (1, 2, 4):
        turned = list(rows)
        for i in (i for i in range(SIDE) if not i & side):
            a, b = rows[i], rows[i + side]
            lanes = [lane if not lane & side else SIDE + lane - side for lane in range(SIDE)]
            turned[i] = a.chosen(b, lanes)
            turned[i + side] = a.chosen(b, [lane + side for lane in lanes])
        rows = turned
    return list(rows)


def _into_spectrum(transform: JitKernel) -> Any:
    along: Callable[[Any], list[Lanes]] = of_lanes(transform)

    def spectrum(
        context: Any,
        builder: Any,
        types: Any,
        cells: Any,
        place: Any,
        width: Any,
        out: Any,
        lane: Any,
    ) -> None:
        """Write the spectrum of a block."""
        loops = Loops(context, builder, SIDE)
        source, target = loops.start(types[0], cells), loops.start(types[3], out)
        places = [builder.add(place, builder.mul(width, width.type(y))) for y in range(SIDE)]
        rows = along([Lanes.load(loops, source, each) for each in places])
        for k, each in enumerate(along(_turned(rows))):
            each.store(target, builder.add(lane, lane.type(k * PITCH)))

    return intrinsic(spectrum)


def _from_spectrum(transform: JitKernel) -> Any:
    along: Callable[[Any], list[Lanes]] = of_lanes(transform)
    steps: Callable[..., Lanes] = of_lanes(steps_of)

    def add_loss(
        context: Any,
        builder: Any,
        types: Any,
        spectra: Any,
        lane: Any,
        part: Any,
        scale: Any,
        factors: Any,
        sums: Any,
        place: Any,
        width: Any,
    ) -> None:
        """Transform a block back, and add its loss to the sums of its pixels."""
        loops = Loops(context, builder, SIDE)
        source, curve = loops.start(types[0], spectra), loops.start(types[4], factors)
        target = loops.start(types[5], sums)
        places = [builder.add(lane, lane.type(k * PITCH)) for k in range(SIDE)]
        parts, scales = (Lanes(loops, loops.spread(each)) for each in (part, scale))
        rows = along(_turned(along([Lanes.load(loops, source, each) for each in places])))
        for y, each in enumerate(rows):
            factor = scales * Lanes.load(loops, curve, lane.type(y * PITCH))
            row = builder.add(place, builder.mul(width, width.type(y)))
            (Lanes.load(loops, target, row) + steps(each, parts, factor)).store(target, row)

    return intrinsic(add_loss)


_into_cosines, _into_wavelets = _into_spectrum(forward), _into_spectrum(to_wavelets)
_from_cosines, _from_wavelets = _from_spectrum(backward), _from_spectrum(from_wavelets)


@kernel
def spectra_of(
    cells: Line, width: Index, places: Line, count: Index, wavelets: Any, out: Line
) -> None:
    """Write the spectra of the blocks of a group."""
    for b in range(count):
        if wavelets:
            _into_wavelets(cells, np.int64(places[b]), width, out, 8 * b)
        else:
            _into_cosines(cells, np.int64(places[b]), width, out, 8 * b)


@kernel
def add_blocks(
    spectra: Line,
    spots: Line,
    count: Index,
    wavelets: Any,
    part: Number,
    scale: Number,
    factors: Line,
    sums: Line,
    width: Index,
) -> None:
    """Add the loss of the blocks of a group to the sums of their pixels."""
    for b in range(count):
        if wavelets:
            _from_wavelets(spectra, 8 * b, part, scale, factors, sums, spots[b], width)
        else:
            _from_cosines(spectra, 8 * b, part, scale, factors, sums, spots[b], width)


def _added_up(numbers: Sequence[Lanes]) -> list[Lanes]:
    """As `cpu.add_up`."""
    differences: list[Lanes] = []
    while len(numbers) > 1:
        pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
        numbers, differences = [a + b for a, b in pairs], [a - b for a, b in pairs] + differences
    return [*numbers, *differences]


def _taken_apart(numbers: Sequence[Lanes]) -> list[Lanes]:
    """As `cpu.take_apart`."""
    apart = [numbers[0]]
    while (n := len(apart)) < len(numbers):
        pairs = zip(apart, numbers[n : 2 * n], strict=True)
        apart = [
            each for total, difference in pairs for each in (total + difference, total - difference)
        ]
    return apart


def _each_count(
    line: Callable[[Loops, list[Any], list[Any]], Lanes],
) -> Any:
    """Return the code of a sum over a group, written out for each count of blocks that it may have.

    ``line(loops, arrays, places)`` computes the coefficients at a place of all blocks, and returns
    whole numbers, which are added up.
    """

    def shrink(
        context: Any,
        builder: Any,
        types: Any,
        spectra: Any,
        guides: Any,
        noise: Any,
        parts: Any,
        count: Any,
    ) -> Any:
        loops, intp = Loops(context, builder, SIDE), count.type
        given = zip(types, (spectra, guides, noise, parts), strict=False)
        arrays = [loops.start(kind, each) for kind, each in given]
        zeros, sums = loops.all(0, 32), []
        start, after = builder.block, builder.append_basic_block()
        cases = builder.switch(count, after)
        for blocks in (1, 2, 4, 8, 16, WIENER):
            cases.add_case(intp(blocks), case := builder.append_basic_block())
            builder.position_at_end(case)

            def terms(index: Any, blocks: int = blocks) -> list[Any]:
                first = builder.mul(index, intp(PITCH))
                places = [builder.add(first, intp(SIDE * n)) for n in range(blocks)]
                return [line(loops, arrays, places).value]

            (added,) = loops.sums(intp(SIDE), [zeros], terms)
            sums.append((added, builder.block))
            builder.branch(after)
        builder.position_at_end(after)
        total = builder.phi(zeros.type)
        for added, block in [(zeros, start), *sums]:
            total.add_incoming(added, block)
        return loops.added_up(total)

    return functools.partial(intrinsic, result="int64")(shrink)


def _hard(loops: Loops, arrays: list[Any], places: list[Any]) -> Lanes:
    spectra, _, thresholds, parts = arrays
    kept, rest = Lanes(loops, loops.all(0, 32)), []
    numbers = _added_up([Lanes.load(loops, spectra, place) for place in places])
    for number, place in zip(numbers, places, strict=True):
        is_noise = abs(number) <= Lanes.load(loops, thresholds, place)
        rest.append(is_noise.choose(number * Lanes.load(loops, parts, place), np.float32(0)))
        kept += is_noise.choose(np.int32(0), np.int32(1))
    for each, place in zip(_taken_apart(rest), places, strict=True):
        each.store(spectra, place)
    return kept


_share: Callable[..., Lanes] = of_lanes(share_of)


def _wiener(loops: Loops, arrays: list[Any], places: list[Any]) -> Lanes:
    spectra, guides, variances, parts = arrays
    total, rest = Lanes(loops, loops.all(0, 32)), []
    numbers = _added_up([Lanes.load(loops, spectra, place) for place in places])
    guided = _added_up([Lanes.load(loops, guides, place) for place in places])
    known = abs(numbers[0]) < np.float32(np.inf)
    for number, guide, place in zip(numbers, guided, places, strict=True):
        noise = _share(Lanes.load(loops, variances, place), guide)
        own = known.choose(number, np.float32(0)) * noise.as_floats()
        rest.append(own * Lanes.load(loops, parts, place))
        left = np.int32(255) - noise.shifted(8)
        total += left * left
    for each, place in zip(_taken_apart(rest), places, strict=True):
        each.store(spectra, place)
    return total


shrink_hard, shrink_wiener = _each_count(_hard), _each_count(_wiener)
"""Shrink the spectra of a group by themselves, or by guides, and take it apart; return the sum of
the coefficients that were kept, or that of the squared factors."""
