"""Where non-local means looks for candidates, and the rectangles in which it goes through them.

*Extended coordinates* are those of the image after `sums.extend`, which widens it by the filter's
radius on each side; for ``valid`` it is the source itself. For a window search of radius 2 with
patches of 3x3, the radius is 3:

    +-----------------------+
    | extended image        |   margin   3: row and column of the first pixel of the result
    |   +---------------+   |   reach    2: how far a candidate may lie from its pixel
    |   | result        |   |   edge     1: candidates keep this distance from the edge, so that
    |   |               |   |               their patches fit
    |   +---------------+   |
    +-----------------------+
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kernelscope.base.jit import Index, Record, kernel


class PatchSearch(NamedTuple):
    """Where candidates lie, in extended coordinates."""

    margin: int
    """Row and column of the first pixel of the result."""
    reach: int
    """Largest distance from the pixel along an axis."""
    edge: int
    """No candidate is closer than this to the edge of the extended image."""


class Rectangle(NamedTuple):
    """Some pixels, in extended coordinates; empty where it has no rows or no columns."""

    y: int
    x: int
    rows: int
    columns: int


@kernel
def tile_at(number: Index, size: Record, margin: Index, shape: Record) -> Any:
    """Return the tile of that number, row by row, of tiles of up to `size` rows and columns.

    `shape` is that of the result, and `margin` where it begins.
    """
    across = -(-shape[1] // size[1])
    y, x = number // across * size[0], number % across * size[1]
    return Rectangle(y + margin, x + margin, min(size[0], shape[0] - y), min(size[1], shape[1] - x))


@kernel
def with_partners_in(pixels: Record, others: Record, dy: Index, dx: Index) -> Any:
    """Return those of `pixels` whose partners, `dy` rows and `dx` columns on, lie in `others`."""
    y, x = max(pixels.y, others.y - dy), max(pixels.x, others.x - dx)
    bottom = min(pixels.y + pixels.rows, others.y + others.rows - dy)
    right = min(pixels.x + pixels.columns, others.x + others.columns - dx)
    return Rectangle(y, x, bottom - y, right - x)


def whole(parameters: Mapping[str, Any]) -> bool:
    """Return whether candidates are all pixels of the image."""
    return bool(parameters["search"] == "image")


def radius(parameters: Mapping[str, Any]) -> int:
    half = int(parameters["patch"]) // 2
    return half if whole(parameters) else half + int(parameters["search_radius"])
