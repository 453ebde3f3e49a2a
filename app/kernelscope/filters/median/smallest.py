"""Level *parallel* for 3x3 on bytes: eight rows of medians in one sweep, from registers alone.

The three cells of each row are sorted, and the rows put below each other:

    lowest  middle  highest
      10      12      40        the largest of the lowest   11
      11      13      14        the middle of the middle    13
       9      20      30        the lowest of the highest   14

The middle of these three, 13, is the median of all nine (Smith 1996). A sorted row serves three
rows of medians, and of each two of these the two rows that they share are compared once: 17.5
minima and maxima for each median. `networks` has more, and writes rows down between its two loops.
A step takes a whole line of the cache from each row, because rows of 4096 bytes push each other out
of it.

The windows of the first and the last column are put side by side, and are a short sweep.

Source: J. L. Smith, Implementing median filters in XC4000E FPGAs, XCell 23, 1996.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import Index, Line, Plane, intrinsic, kernel
from kernelscope.filters.shared.border_kernels import VALID, border_index
from kernelscope.filters.shared.vectors import Loops, padded_row

_LANES = 32
"""Bytes that are compared at a time: a register of AVX2."""

_STEP = 64
"""Bytes of a step: a line of the cache."""

_GROUP = 8
"""Rows of medians in a sweep."""


class Sorted(NamedTuple):
    """Three cells in order."""

    lowest: Any
    middle: Any
    highest: Any


class Comparer:
    """Appends minima and maxima of vectors to the code of an intrinsic."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def smaller(self, a: Any, b: Any) -> Any:
        return self._builder.select(self._builder.icmp_unsigned("<", a, b), a, b)

    def larger(self, a: Any, b: Any) -> Any:
        return self._builder.select(self._builder.icmp_unsigned(">", a, b), a, b)

    def sort(self, a: Any, b: Any, c: Any) -> Sorted:
        """Sort three cells."""
        a, b = self.smaller(a, b), self.larger(a, b)
        b, c = self.smaller(b, c), self.larger(b, c)
        return Sorted(self.smaller(a, b), self.larger(a, b), c)

    def shared(self, first: Sorted, second: Sorted) -> tuple[Any, ...]:
        """Compare the two rows that two medians have in common."""
        return (
            self.larger(first.lowest, second.lowest),
            self.smaller(first.middle, second.middle),
            self.larger(first.middle, second.middle),
            self.smaller(first.highest, second.highest),
        )

    def median(self, shared: tuple[Any, ...], row: Sorted) -> Any:
        """Return the median of the two rows that are `shared`, and another one."""
        lowest, below, above, highest = shared
        lowest = self.larger(lowest, row.lowest)
        middle = self.larger(below, self.smaller(above, row.middle))
        highest = self.smaller(highest, row.highest)
        lowest, middle = self.smaller(lowest, middle), self.larger(lowest, middle)
        return self.larger(lowest, self.smaller(middle, highest))


@intrinsic
def sweep(
    context: Any, builder: Any, types: Any, rows: Any, medians: Any, step: Any, count: Any
) -> None:
    """Compute `count` medians in each of `_GROUP` rows, from cells `step` samples apart.

    `rows` and `medians` have the addresses of `_GROUP` + 2 rows and of as many results.
    """
    from llvmlite import ir  # type: ignore[import-untyped]

    loops, comparer = Loops(context, builder, _LANES), Comparer(builder)
    lines = Loops(context, builder, _STEP)
    byte = ir.IntType(8).as_pointer()

    def pointers(kind: Any, addresses: Any, number: int) -> list[Any]:
        first = loops.start(kind, addresses)
        return [
            builder.inttoptr(loops.item(first, count.type(place)), byte) for place in range(number)
        ]

    sources = pointers(types[0], rows, _GROUP + 2)
    targets = pointers(types[1], medians, _GROUP)
    with lines.steps(count) as begin:
        for part in range(0, _STEP, _LANES):
            x = builder.add(begin, count.type(part))
            places = [x, builder.add(x, step), builder.add(x, builder.mul(step, step.type(2)))]
            cells: list[Sorted] = []
            # Rows are sorted when they are needed: registers have room for five of them.
            for source in sources:
                cells.append(comparer.sort(*(loops.load(source, place, 8) for place in places)))
                k = len(cells) - 4
                if k >= 0 and k % 2 == 0:
                    shared = comparer.shared(cells[k + 1], cells[k + 2])
                    loops.store(comparer.median(shared, cells[k]), targets[k], x)
                    loops.store(comparer.median(shared, cells[k + 3]), targets[k + 1], x)


def applies(source: NDArray[Any]) -> bool:
    """Return whether `median_smallest` computes the medians of 3x3."""
    _, width, channels = source.shape
    return source.dtype == np.uint8 and (width - 2) * channels >= _STEP


@kernel
def fetch_edges(row: Line, channels: Index, border: Index, edges: Line) -> None:
    """Write the cells of the first and the last window of a row side by side, column by column."""
    width = row.size // channels
    for side in range(2):
        for k in range(3):
            x = border_index(side * (width - 1) + k - 1, width, border)
            for c in range(channels):
                place = (2 * k + side) * channels + c
                edges[place] = row[x * channels + c] if x >= 0 else 0


@kernel
def median_smallest(
    source: Plane, output: Plane, blank: Line, border: Index, start: Index, stop: Index
) -> None:
    """Compute rows in groups; for ``reduce``, those that need no reduced mask."""
    _, width, channels = source.shape
    inset = 0 if border == VALID else channels
    length = output.shape[1] * channels
    spare = np.empty(length, np.uint8)
    edges = np.zeros((_GROUP + 2, 6 * channels + _STEP), np.uint8)
    found = np.empty((_GROUP, 2 * channels + _STEP), np.uint8)
    rows = np.empty(_GROUP + 2, np.int64)
    edge_rows = np.empty(_GROUP + 2, np.int64)
    medians = np.empty(_GROUP, np.int64)
    edge_medians = np.empty(_GROUP, np.int64)
    for k in range(_GROUP + 2):
        edge_rows[k] = edges[k].ctypes.data
    for k in range(_GROUP):
        edge_medians[k] = found[k].ctypes.data
    for y in range(start, stop, _GROUP):
        for k in range(_GROUP + 2):
            # The last group may reach beyond the image; its surplus results are not kept.
            row = padded_row(source, min(y + k, output.shape[0] + 1), 1, border, blank)
            rows[k] = row.ctypes.data
            fetch_edges(row, channels, border, edges[k])
        for k in range(_GROUP):
            target = output[y + k].reshape(length) if y + k < stop else spare
            medians[k] = target[inset:].ctypes.data
        sweep(rows, medians, channels, (width - 2) * channels)
        if border != VALID:
            sweep(edge_rows, edge_medians, 2 * channels, _STEP)
            for k in range(y, min(y + _GROUP, stop)):
                for c in range(channels):  # slices would take seconds to compile
                    output[k, 0, c] = found[k - y, c]
                    output[k, width - 1, c] = found[k - y, channels + c]
