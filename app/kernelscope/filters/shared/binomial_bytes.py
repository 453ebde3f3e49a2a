"""Weighted means of bytes at level *parallel*: binomial weights in integers.

As cells at the same distance from the middle have the same weight, they are added up first, two at
a time, and the middle one with itself, at half its weight. Down the columns 1 4 6 4 1 becomes
1 * (a + e) + 4 * (b + d) + 3 * (c + c), and then the same along the row. All numbers stay narrow:

- Up to 5x5, totals fit 16 bits, and all lanes of a register count: see `groups`.
- Up to 9x9, columns do. Along the row, products are added up in pairs, to 32 bits, which is one
  instruction (pmaddwd). It takes 16 bits with a sign, two columns together: so 15 bits of a column,
  less 2**14. The lowest bits, up to 7 of 22, are dropped.
- Up to 15x15, columns take these products as well.

For a mean only the dropped bits of few pixels count: all together they are less than a 128th of a
grey level. So a mean is computed without them and with the most that they could be, and only where
these differ are they added up.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Index, Line, Plane, intrinsic, kernel
from kernelscope.filters.shared import groups
from kernelscope.filters.shared.border_kernels import fetch_row
from kernelscope.filters.shared.correlation import binomial
from kernelscope.filters.shared.vectors import LANES, Loops, make_ring
from kernelscope.schema.borders import Border

LARGEST_SHORT, _LARGEST_MIDDLE, _LARGEST = 5, 9, 15
"""Largest masks with totals of 16 bits, with columns of 16 bits, and at all."""

_BITS = 15  # bits of a column that are not dropped

_FIRST = [lane // 2 + LANES * (lane % 2) + (lane & 8) // 2 for lane in range(LANES)]
"""Lanes of two vectors in turn: of each half of them, the first half. Registers have halves that
are shuffled apart."""

_SECOND = [lane + LANES // 4 for lane in _FIRST]

_EVEN = [*range(0, 8, 2), *range(16, 24, 2), *range(8, 16, 2), *range(24, 32, 2)]
"""Lower halves of the numbers of 32 bits that `_FIRST` and `_SECOND` became, in order."""


def applies(source: NDArray[Any], output: NDArray[Any], size: int, border: Border) -> bool:
    """Return whether `binomial_means` computes these weighted means."""
    if source.dtype != np.uint8 or border is Border.REDUCE:
        return False
    if not LARGEST_SHORT < size <= _LARGEST:
        return False
    return min(source[0].size, output[0].size) >= LANES


def tables(size: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the weights for columns and for rows, of masks of a size.

    Those of 16 bits without a sign are single terms', repeated for each lane; of those with a sign
    two terms' stand side by side. `binomial_means` is compiled for these types.
    """
    half = binomial(size)[: size // 2 + 1]
    half[-1] //= 2
    single = half.astype(np.uint16).repeat(LANES)
    pairs = np.pad(half, (0, len(half) % 2)).reshape(-1, 1, 2)
    double = pairs.repeat(LANES // 2, axis=1).astype(np.int16).ravel()
    return single if size <= _LARGEST_MIDDLE else double, double


def _totals(
    loops: Loops, builder: Any, kind: Any, terms: Any, weights: Any, load: Any, least: Any = None
) -> list[Any]:
    """Return the weighted sum of `terms` pairs of samples.

    With single weights, by the `kind` of their table, it has 16 bits; with those of two terms two
    vectors of 32 bits, the lanes `_FIRST` and `_SECOND`, to which `least` is added.
    """
    intp = terms.type

    def weight_of(number: Any) -> Any:
        return loops.load(weights, builder.mul(number, intp(LANES)))

    def term(number: Any) -> Iterator[Any]:
        yield builder.mul(load(number), weight_of(number))

    def two_terms(pair: Any) -> Iterator[Any]:
        first = builder.mul(pair, intp(2))
        second = builder.add(first, intp(1))
        # The last term is its own partner where there is no other, with weight 0.
        is_term = builder.icmp_signed("<", second, terms)
        both = load(first), load(builder.select(is_term, second, first))
        wide = loops.all(0, 32).type
        weight = builder.sext(weight_of(pair), wide)
        for lanes in (_FIRST, _SECOND):
            products = builder.mul(builder.sext(loops.chosen(*both, lanes), wide), weight)
            yield builder.add(
                *(loops.chosen(products, products, range(k, LANES, 2)) for k in range(2))
            )

    if not kind.dtype.signed:
        return loops.sums(terms, [loops.all(0)], term)
    pairs = builder.sdiv(builder.add(terms, intp(1)), intp(2))
    return loops.sums(pairs, [_half(loops, intp(0)) if least is None else least] * 2, two_terms)


def _joined(loops: Loops, builder: Any, parts: Sequence[Any]) -> Any:
    """Return one vector of 16 bits, or two of 32, of which the upper 16 are 0, as one in order."""
    parts = [builder.bitcast(each, loops.all(0).type) for each in parts]
    return parts[0] if len(parts) == 1 else loops.chosen(parts[0], parts[1], _EVEN)


def _pair(loops: Loops, builder: Any, samples: Any, offsets: Any, x: Any) -> Any:
    """Return a function that loads the sum of the two `samples` of a term, from `x` on."""

    def load(term: Any) -> Any:
        first = builder.mul(term, x.type(2))
        places = (
            builder.add(x, loops.item(offsets, place))
            for place in (first, builder.add(first, x.type(1)))
        )
        return builder.add(*(loops.load(samples, place) for place in places))

    return load


class BinomialMeans(NamedTuple):
    """Weighted means of 3x3 and 5x5, whose totals have 16 bits, eight rows at a time."""

    taps: tuple[int, ...]

    @staticmethod
    def emit(step: groups.SweepStep) -> None:
        """Weigh each row once, and then these."""
        builder, size = step.builder, step.size
        weights = [step.loops.all(int(each)) for each in binomial(size)[: size // 2 + 1]]

        def weighted(cells: Sequence[Any]) -> Any:
            pairs = [builder.add(cells[k], cells[-1 - k]) for k in range(size // 2)]
            return functools.reduce(
                builder.add, map(builder.mul, [*pairs, cells[size // 2]], weights)
            )

        rows: list[Any] = []
        for row in range(groups.GROUP + size - 1):
            rows.append(weighted([step.load(row, tap, 16) for tap in range(size)]))
            y = row - size + 1
            if y >= 0:
                total = weighted(rows[y:])
                step.store(_divided(step.loops, builder, total, bits=4 * (size // 2)), y)


@intrinsic
def column_sums(
    context: Any,
    builder: Any,
    types: Any,
    samples: Any,
    offsets: Any,
    down: Any,
    drop: Any,
    high: Any,
    low: Any,
) -> None:
    """Write sums of rows in two parts: without the lowest bits and less 2**14, and these bits."""
    loops = Loops(context, builder)
    count = builder.extract_value(high, 2)
    terms = builder.sdiv(builder.extract_value(offsets, 2), count.type(2))
    samples, offsets, down, _, high, low = (
        value if value is drop else loops.start(kind, value)
        for kind, value in zip(types, (samples, offsets, down, drop, high, low), strict=True)
    )
    shift = _half(loops, drop) if types[2].dtype.signed else loops.spread(drop)
    ones = shift.type([1] * shift.type.count)
    mask = builder.sub(builder.shl(ones, shift), ones)
    with loops.steps(count) as x:
        load = _pair(loops, builder, samples, offsets, x)
        totals = _totals(loops, builder, types[2], terms, down, load)
        lower = [builder.and_(each, mask) for each in totals]
        loops.store(_joined(loops, builder, lower), low, x)
        upper = [builder.lshr(each, shift) for each in totals]
        bias = loops.all(1 << _BITS - 1)
        loops.store(builder.sub(_joined(loops, builder, upper), bias), high, x)


def _half(loops: Loops, number: Any) -> Any:
    """Return a vector of a number of 32 bits, in as many lanes as `_FIRST` makes of 16 bits."""
    vector = loops.spread(number, 32)
    return loops.chosen(vector, vector, range(LANES // 2))


class Rounding:
    """Constants and steps of the division by the weights, of eight totals at a time.

    The weights of a row add up to 2**(2 * `radius`); `drop` bits of a total are apart.
    """

    def __init__(self, loops: Loops, builder: Any, drop: Any, radius: Any) -> None:
        intp = drop.type
        one = intp(1)
        bits = builder.mul(radius, intp(2))
        shift = builder.sub(builder.mul(bits, intp(2)), drop)
        half = builder.sub(builder.shl(one, builder.sub(shift, one)), one)
        dropped = builder.sub(builder.shl(one, drop), one)
        most = builder.lshr(builder.shl(dropped, bits), drop)
        fraction = builder.sub(builder.shl(one, shift), one)
        # Up to this part, all dropped bits and one for a tie do not change the mean.
        sure = builder.sub(builder.sub(fraction, most), one)
        least = builder.shl(intp(1 << _BITS - 1), bits)
        self._builder = builder
        self.least, self.shift, self.drop = (_half(loops, each) for each in (least, shift, drop))
        self._half, self._dropped, self._fraction, self._sure = (
            _half(loops, each) for each in (half, dropped, fraction, sure)
        )
        self.zeros = self.shift.type(None)
        self._ones = self.shift.type([1] * self.shift.type.count)

    def rounded(self, total: Any, more: Any | None = None) -> Any:
        """Return the sum that is shifted to a mean; `more` is 1 where bits make a tie none."""
        builder = self._builder
        odd = builder.and_(builder.lshr(total, self.shift), self._ones)
        odd = odd if more is None else builder.or_(odd, more)
        return builder.add(builder.add(total, self._half), odd)

    def unsure(self, rounded: Any) -> Any:
        """Return where the dropped bits may change the mean."""
        part = self._builder.and_(rounded, self._fraction)
        return self._builder.icmp_signed(">", part, self._sure)

    def exact(self, total: Any, low: Any) -> Any:
        """As `rounded`, with the sums of dropped bits."""
        builder = self._builder
        left = builder.and_(low, self._dropped)
        left = builder.zext(builder.icmp_unsigned("!=", left, self.zeros), self.zeros.type)
        return self.rounded(builder.add(total, builder.lshr(low, self.drop)), left)


def _divided(loops: Loops, builder: Any, total: Any, bits: int) -> Any:
    """Return totals of 16 bits, divided by a power of two, ties to even."""
    shift = loops.all(bits)
    odd = builder.and_(builder.lshr(total, shift), loops.all(1))
    half = loops.all((1 << bits - 1) - 1)
    return builder.lshr(builder.add(builder.add(total, half), odd), shift)


@intrinsic
def row_means(
    context: Any,
    builder: Any,
    types: Any,
    high: Any,
    low: Any,
    offsets: Any,
    along: Any,
    drop: Any,
    radius: Any,
    means: Any,
) -> None:
    """Write weighted means of `column_sums`."""
    loops = Loops(context, builder)
    count = builder.extract_value(means, 2)
    terms = builder.sdiv(builder.extract_value(offsets, 2), count.type(2))
    high, low, offsets, weights = map(loops.start, types, (high, low, offsets, along))
    means = loops.start(types[6], means)

    def totals(columns: Any, x: Any, least: Any = None) -> list[Any]:
        load = _pair(loops, builder, columns, offsets, x)
        return _totals(loops, builder, types[3], terms, weights, load, least)

    rounding = Rounding(loops, builder, drop, radius)

    def write(rounded: list[Any], x: Any) -> None:
        parts = [builder.lshr(each, rounding.shift) for each in rounded]
        loops.store(_joined(loops, builder, parts), means, x)

    with loops.steps(count) as x:
        upper = totals(high, x, rounding.least)
        rounded = [rounding.rounded(total) for total in upper]
        write(rounded, x)
        unsure = builder.or_(*map(rounding.unsure, rounded))
        with builder.if_then(loops.any(unsure), likely=False):
            write(list(map(rounding.exact, upper, totals(low, x))), x)


@kernel
def offsets_of_terms(radius: Index, step: Index, first: Index, offsets: Line) -> None:
    """Write where the two cells of each term are, `step` apart.

    The one that is number `first` of all 2 * `radius` + 1 is at 0: they are a ring.
    """
    side = 2 * radius + 1
    for term in range(radius + 1):
        offsets[2 * term] = (first + term) % side * step
        offsets[2 * term + 1] = (first + 2 * radius - term) % side * step


@kernel
def binomial_means(
    source: Plane,
    output: Plane,
    down: Line,
    along: Line,
    radius: Index,
    border: Index,
    start: Index,
    stop: Index,
) -> None:
    """Weighted means for masks up to `_LARGEST` by their `tables`, any border but ``reduce``."""
    channels = source.shape[2]
    length = output.shape[1] * channels
    padded = length + 2 * radius * channels
    side = 2 * radius + 1
    drop = max(0, 8 + 2 * radius - _BITS)
    ring, pitch = make_ring(side, padded)
    high, low = np.empty((2, padded), np.uint16)
    rows, across = np.empty((2, 2 * radius + 2), np.int64)
    offsets_of_terms(radius, channels, 0, across)
    for row in range(start, stop + side - 1):
        slot = row % side * pitch
        fetch_row(source, row, radius, border, ring[slot : slot + padded])
        y = row - side + 1
        if y >= start:
            offsets_of_terms(radius, pitch, y % side, rows)
            column_sums(ring, rows, down, drop, high, low)
            row_means(high, low, across, along, drop, radius, output[y].reshape(length))
