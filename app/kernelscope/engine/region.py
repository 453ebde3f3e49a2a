"""A part of a result, and the part of a picture from which it is computed.

The picture is cropped to the region and the halo of the filter::

    +------- picture ------------+      edges inside of the picture have real neighbours,
    |      +-- crop -----+       |      and the results there, which the border of the crop
    |      | +- region + |       |      made wrong, are cut off; an edge of the picture stays
    |      | +---------+ |       |      one, with the border that was asked for
    |      +-------------+       |

so that the region has the same bytes as that part of the whole result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidParameter
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import Crop


@dataclass(frozen=True)
class Region:
    """Rows and columns of a result, in its own pixels; at least one of each.

    Raises `InvalidParameter` if it is empty, or begins outside of every picture.
    """

    top: int
    left: int
    height: int
    width: int

    def __post_init__(self) -> None:
        if min(self.top, self.left) < 0 or min(self.height, self.width) < 1:
            raise InvalidParameter(
                f"{self.describe()} is no part of a picture.", "Choose a part of the result."
            )

    @classmethod
    def all_of(cls, shape: tuple[int, ...]) -> Region:
        return cls(0, 0, shape[0], shape[1])

    def describe(self) -> str:
        return f"{self.width}×{self.height} pixels at x {self.left}, y {self.top}"

    @property
    def pixels(self) -> int:
        return self.height * self.width

    def fits(self, shape: tuple[int, ...]) -> bool:
        return self.top + self.height <= shape[0] and self.left + self.width <= shape[1]

    def of(self, planes: NDArray[Any]) -> NDArray[Any]:
        bottom, right = self.top + self.height, self.left + self.width
        return planes[self.top : bottom, self.left : right]

    def contains(self, other: Region) -> bool:
        return (
            self.top <= other.top
            and self.left <= other.left
            and other.top + other.height <= self.top + self.height
            and other.left + other.width <= self.left + self.width
        )


@dataclass(frozen=True)
class NeededPart:
    """The part of a source that a region needs."""

    # Of the source; for border ``wrap`` they may lie outside of it, on its other side.
    rows: range
    columns: range
    inside: Region  # where the region lies in the result of this part

    def take(self, planes: NDArray[Any]) -> NDArray[Any]:
        """Return this part of `planes`, shape (height, width, channels), C-contiguous."""
        height, width = planes.shape[:2]
        if _within(self.rows, height) and _within(self.columns, width):
            part = planes[self.rows.start : self.rows.stop, self.columns.start : self.columns.stop]
            return np.ascontiguousarray(part)
        rows = np.arange(self.rows.start, self.rows.stop) % height
        columns = np.arange(self.columns.start, self.columns.stop) % width
        around: NDArray[Any] = planes[rows[:, np.newaxis], columns]
        return around


def window(
    region: Region,
    shape: tuple[int, ...],
    radius: int,
    border: Border,
    crop: Crop,
    more: int = 0,
) -> NeededPart:
    """Return the part of a source of `shape` that `region` of its result needs.

    - `radius`: halo of the filter.
    - `crop`: its other needs.
    - `more`: how far steps around the filter look.
    """
    # A transparent pixel takes its colour from as far beyond (`engine.transparency`).
    more += radius if len(shape) == 3 and shape[2] in (2, 4) else 0
    rows = _grown(region.top, region.height, shape[0], radius, more, border, crop.grid)
    columns = _grown(region.left, region.width, shape[1], radius, more, border, crop.grid)
    if crop.rows:
        columns = range(shape[1])
    shift = radius if border is Border.VALID else 0  # results begin where masks fit
    inside = Region(
        region.top - rows.start,
        region.left - columns.start,
        region.height,
        region.width,
    )
    assert inside.fits((len(rows) - 2 * shift, len(columns) - 2 * shift))
    return NeededPart(rows, columns, inside)


def _grown(
    first: int, count: int, side: int, radius: int, more: int, border: Border, grid: int
) -> range:
    """Return the rows or columns of a source that some of its result need."""
    if border is Border.VALID:  # result 0 has the pixels 0 to 2 radius
        return range(max(0, first - more), min(side, first + count + 2 * radius + more))
    start, stop = first - radius - more, first + count + radius + more
    if border is Border.WRAP and radius:
        return range(start, stop)
    start, stop = start // grid * grid, -(-stop // grid) * grid
    return range(max(0, start), min(side, stop))


def _within(part: range, side: int) -> bool:
    return part.start >= 0 and part.stop <= side
