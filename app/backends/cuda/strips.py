"""Cuts an image into strips of rows that fit into device memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.filters.spec import Border


@dataclass(frozen=True)
class Strip:
    """Some rows of the output, and the rows of the source that they need.

    Attributes
    ----------
    first, last : int
        Output rows ``first <= y < last``.
    source_first : int
        First source row; rows go on at 0 after the last one (needed for ``wrap``).
    source_rows : int
        Number of source rows.
    """

    first: int
    last: int
    source_first: int
    source_rows: int

    def source_pieces(self, height: int) -> Iterator[tuple[int, int, int]]:
        """Yield (row in the strip, first source row, number of rows) without wrapping."""
        before = min(self.source_rows, height - self.source_first)
        yield 0, self.source_first, before
        if before < self.source_rows:
            yield before, 0, self.source_rows - before


def cut(
    height: int, out_height: int, radius: int, border: Border, rows: int, *, whole: bool = False
) -> list[Strip]:
    """Return strips of at most `rows` output rows that together make the whole output.

    Parameters
    ----------
    height, out_height : int
        Rows of the source and of the output.
    radius : int
        Rows that a filter needs above and below.
    whole : bool
        Whether each strip needs all of the source.
    """
    shift = radius if border is Border.VALID else 0
    strips = []
    for first in range(0, out_height, rows):
        last = min(first + rows, out_height)
        top, bottom = first + shift - radius, last + shift + radius
        if (
            whole
            or bottom - top >= height
            or (border is not Border.WRAP and (top <= 0 and bottom >= height))
        ):
            strips.append(Strip(first, last, 0, height))
        elif border is Border.WRAP:
            strips.append(Strip(first, last, top % height, bottom - top))
        else:
            # Mirrored rows lie within `radius` of the edge; a strip at the edge has them all
            # only if it reaches that far inwards.
            top = max(0, min(top, height - 1 - radius))
            bottom = min(height, max(bottom, radius + 1))
            strips.append(Strip(first, last, top, bottom - top))
    return strips
