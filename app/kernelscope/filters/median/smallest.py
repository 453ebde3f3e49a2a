"""Level *parallel* for 3x3 on bytes: eight rows of medians in one sweep, from registers alone.

The three cells of each row are sorted, and the rows put below each other:

    lowest  middle  highest
      10      12      40        the largest of the lowest   11
      11      13      14        the middle of the middle    13
       9      20      30        the lowest of the highest   14

The middle of these three, 13, is the median of all nine (Smith 1996). A sorted row serves three
rows of medians, and of each two of these the two rows that they share are compared once: 17.5
minima and maxima for each median. `networks` has more, and writes rows down between its two loops.

Source: J. L. Smith, Implementing median filters in XC4000E FPGAs, XCell 23, 1996.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kernelscope.filters.shared import groups


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


class Medians(NamedTuple):
    """Medians of 3x3, eight rows at a time."""

    taps: tuple[int, ...] = groups.taps(3)

    @staticmethod
    def emit(step: groups.Step) -> None:
        """Sort rows when they are needed: registers have room for five of them."""
        comparer = Comparer(step.builder)
        cells: list[Sorted] = []
        for row in range(groups.GROUP + 2):
            cells.append(comparer.sort(*(step.load(row, tap, 8) for tap in range(3))))
            k = row - 3
            if k >= 0 and k % 2 == 0:
                shared = comparer.shared(cells[k + 1], cells[k + 2])
                step.store(comparer.median(shared, cells[k]), k)
                step.store(comparer.median(shared, cells[k + 3]), k + 1)
