"""Cuts an image into strips of rows that fit into device memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelscope.schema.borders import Border


@dataclass(frozen=True)
class Strip:
    """Some rows of the output, and the rows of the source that they need."""

    # Output rows ``first <= y < last``.
    first: int
    last: int
    source_first: int  # first source row; rows go on at 0 after the last one (needed for ``wrap``)
    source_rows: int  # number of source rows

    def source_pieces(self, height: int) -> Iterator[tuple[int, int, int]]:
        """Yield (row in the strip, first source row, number of rows) without wrapping."""
        before = min(self.source_rows, height - self.source_first)
        yield 0, self.source_first, before
        if before < self.source_rows:
            yield before, 0, self.source_rows - before


def strip(
    height: int, rows: tuple[int, int], radius: int, border: Border, *, whole: bool = False
) -> Strip:
    """Return output rows ``first <= y < last`` with the source rows that they need.

    They are `radius` rows above and below, or all `height` rows if every strip needs the `whole`.
    """
    first, last = rows
    shift = radius if border is Border.VALID else 0
    top, bottom = first + shift - radius, last + shift + radius
    if whole or bottom - top >= height:
        return Strip(first, last, 0, height)
    if border is Border.WRAP:
        return Strip(first, last, top % height, bottom - top)
    # Mirrored rows lie within `radius` of the edge, where a strip at the edge has its halo.
    top, bottom = max(0, top), min(height, bottom)
    return Strip(first, last, top, bottom - top)
