"""The part of a picture to which a step is limited: a rectangle, an ellipse or a polygon.

Inside, the result has the bytes that it has without the limit, with the halo from outside; the
input is kept elsewhere. Coordinates are edges of pixels: the rectangle from (2, 1) to (4, 2) has
the pixels (2, 1) and (3, 1). A pixel belongs to an area if its centre lies within.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidParameter
from kernelscope.engine.region import Region

Corner: TypeAlias = tuple[int, int]  # edges of pixels to the right and down
FARTHEST = 1 << 20  # largest coordinate: further away no picture has pixels

_MOST_CORNERS = 1000


class Outline(StrEnum):
    RECTANGLE = "rectangle"
    ELLIPSE = "ellipse"
    POLYGON = "polygon"


@dataclass(frozen=True)
class Area:
    """A part of a picture.

    Raises `InvalidParameter` if it has too few corners, or none of its sides is a pixel long.
    """

    outline: Outline
    corners: tuple[Corner, ...]
    """The upper left and the lower right corner of the box around a rectangle or an ellipse; all
    corners of a polygon, in their order. A polygon has the pixels around which its edges go an odd
    number of times."""

    def __post_init__(self) -> None:
        count, is_polygon = len(self.corners), self.outline is Outline.POLYGON
        if not (3 <= count <= _MOST_CORNERS if is_polygon else count == 2):
            needed = f"3 to {_MOST_CORNERS}" if is_polygon else "two"
            raise InvalidParameter(f"A {self.outline} has {needed} corners, not {count}.", _FORM)
        if max(abs(part) for corner in self.corners for part in corner) > FARTHEST:
            raise InvalidParameter(f"Coordinates go up to {FARTHEST}.", _FORM)
        left, top, right, bottom = self.box
        ordered = is_polygon or self.corners[0] == (left, top)
        if left >= right or top >= bottom or not ordered:
            raise InvalidParameter(
                f"The corners of {self.format()} enclose no pixels.",
                "The first corner is the upper left one, the second the lower right one.",
            )

    @classmethod
    def parse(cls, text: str) -> Area:
        """Return the area of a text like ``ellipse 12,8 52,38``; see `format`.

        Raises `InvalidParameter` if it is none.
        """
        outline, *corners = text.split() or [""]
        if outline not in list(Outline):
            raise InvalidParameter(f"“{outline[:40]}” is no shape.", _FORM)
        return cls(Outline(outline), tuple(map(_corner, corners)))

    def format(self) -> str:
        """Return the shape and the corners as text: ``rectangle 12,8 52,38``."""
        return " ".join([self.outline.value, *(f"{x},{y}" for x, y in self.corners)])

    def describe(self) -> str:
        left, top, right, bottom = self.box
        return f"{right - left}×{bottom - top} {self.outline} at x {left}, y {top}"

    @property
    def box(self) -> tuple[int, int, int, int]:
        return box_around(self.corners)

    def region(self, height: int, width: int) -> Region | None:
        """Return the box around the area within a picture; None if it lies outside."""
        left, top, right, bottom = self.box
        left, right = max(left, 0), min(right, width)
        top, bottom = max(top, 0), min(bottom, height)
        if left >= right or top >= bottom:
            return None
        return Region(top, left, bottom - top, right - left)

    def mask(self, part: Region) -> NDArray[np.bool_]:
        columns = np.arange(part.left, part.left + part.width) + 0.5
        rows = np.arange(part.top, part.top + part.height) + 0.5
        return inside(self.outline, self.corners, columns, rows)

    def limited(self, before: NDArray[Any], after: NDArray[Any], part: Region) -> NDArray[Any]:
        """Return `after` inside the area and `before` elsewhere.

        - `before`, `after`: the part of the input and of the result, (height, width, channels).
        """
        return np.where(self.mask(part)[:, :, np.newaxis], after, before)


def box_around(corners: Sequence[Corner]) -> tuple[int, int, int, int]:
    """Return the left, top, right and bottom edge of the box around corners."""
    xs, ys = zip(*corners, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


_FORM = (
    "Write a shape and its corners in pixels, such as “rectangle 12,8 52,38”, “ellipse 12,8 "
    "52,38” or “polygon 0,0 40,0 20,30”."
)


def _corner(text: str) -> Corner:
    x, comma, y = text.partition(",")
    try:
        if not comma or len(text) > 20:
            raise ValueError
        return int(x), int(y)
    except ValueError:
        raise InvalidParameter(f"“{text[:40]}” is no corner.", _FORM) from None


def inside(
    outline: Outline, corners: Sequence[Corner], xs: NDArray[Any], ys: NDArray[Any]
) -> NDArray[np.bool_]:
    """Return whether points lie within an outline, for each y and x."""
    columns, rows = xs[np.newaxis, :], ys[:, np.newaxis]
    if outline is Outline.POLYGON:
        return _inside_polygon(corners, columns, rows)
    (left, top), (right, bottom) = corners
    if outline is Outline.ELLIPSE:
        across = (2 * columns - left - right) / max(right - left, 1)
        along = (2 * rows - top - bottom) / max(bottom - top, 1)
        return np.asarray(across * across + along * along <= 1)
    return np.asarray((left <= columns) & (columns < right) & (top <= rows) & (rows < bottom))


def _inside_polygon(
    corners: Sequence[Corner], columns: NDArray[Any], rows: NDArray[Any]
) -> NDArray[np.bool_]:
    """Return which points lie in a polygon by the even-odd rule.

    Each edge toggles the points to its right. Edges are half-open in y, so that a row through a
    corner counts it once.
    """
    found = np.zeros((rows.size, columns.size), bool)
    for (x, y), (next_x, next_y) in zip(corners, (*corners[1:], corners[0]), strict=True):
        if y == next_y:
            continue
        crossed = (min(y, next_y) <= rows) & (rows < max(y, next_y))
        crossing = x + (rows - y) * (next_x - x) / (next_y - y)
        found ^= crossed & (columns >= crossing)
    return found
