"""Regions of interest and profile lines: their pixels, and how they are changed.

Coordinates are whole edges of pixels of the input: a rectangle from (2, 1) to (4, 2) holds the
pixels (2, 1) and (3, 1). A pixel belongs to a shape if its centre lies within. A line has no area:
its ends are pixels, and it runs from the centre of one to that of the other.

In a volume, a region belongs to one of the planes, in all slices of it; its pixels are the voxels
of the slice as it is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelscope.engine.area import FARTHEST, Area, Corner, Outline, box_around, inside

Point: TypeAlias = tuple[float, float]  # in pixels to the right and down; whole numbers are edges

COLOURS = ("#56b4e9", "#e69f00", "#2fbf8f", "#f0e442", "#e08ac0", "#ff7f4d")
"""Okabe and Ito's palette, lightened where the canvas is dark; a region is named as well."""


class Shape(StrEnum):
    RECTANGLE = "rectangle"
    ELLIPSE = "ellipse"
    POLYGON = "polygon"
    LINE = "line"


@dataclass(frozen=True)
class Interest:
    name: str
    shape: Shape
    corners: tuple[Corner, ...]
    """Two opposite corners of the box around a rectangle or an ellipse, the upper left one first;
    all corners of a polygon, in their order; the first and the last pixel of a line."""
    colour: str = COLOURS[0]
    plane: int | None = None
    """The plane of a volume that it was drawn into, by its number; None in a picture."""

    @property
    def box(self) -> tuple[int, int, int, int]:
        return box_around(self.corners)

    def moved(self, right: int, down: int) -> Interest:
        return replace(self, corners=tuple((x + right, y + down) for x, y in self.corners))

    def with_corner(self, number: int, corner: Corner) -> Interest:
        corners = list(self.corners)
        corners[number] = _near(corner[0]), _near(corner[1])
        return replace(self, corners=tuple(corners))

    def spanning(self, first: Corner, second: Corner) -> Interest:
        """Return a rectangle or an ellipse in the box between two opposite corners."""
        second = _near(second[0]), _near(second[1])
        return replace(self, corners=box_of(first, second))

    def with_box(self, left: int, top: int, width: int, height: int) -> Interest:
        x, y, right, bottom = self.box
        across, along = (right - x) or 1, (bottom - y) or 1
        width, height = max(1, width), max(1, height)
        return replace(
            self,
            corners=tuple(
                (
                    _near(left + round((corner[0] - x) * width / across)),
                    _near(top + round((corner[1] - y) * height / along)),
                )
                for corner in self.corners
            ),
        )

    def resized(self, right: int, down: int) -> Interest:
        if self.shape is Shape.LINE:
            x, y = self.corners[1]
            return self.with_corner(1, (x + right, y + down))
        left, top, end, bottom = self.box
        return self.with_box(left, top, end - left + right, bottom - top + down)

    @property
    def handles(self) -> tuple[Point, ...]:
        if self.shape is Shape.POLYGON:
            return self.corners
        if self.shape is Shape.LINE:
            return tuple((x + 0.5, y + 0.5) for x, y in self.corners)
        left, top, right, bottom = self.box
        return (left, top), (right, top), (left, bottom), (right, bottom)

    def opposite(self, handle: int) -> Corner:
        left, top, right, bottom = self.box
        return left if handle % 2 else right, top if handle > 1 else bottom

    @property
    def length(self) -> float:
        (x, y), (end_x, end_y) = self.corners[0], self.corners[-1]
        return math.hypot(end_x - x, end_y - y)

    def contains(self, x: float, y: float, reach: float = 0.0, aspect: float = 1.0) -> bool:
        """Return whether a point lies within, or up to `reach` pixels from a line.

        `aspect`: height of a pixel over its width.
        """
        if self.shape is not Shape.LINE:
            return bool(_inside(self, np.array([x]), np.array([y]))[0, 0])
        (from_x, from_y), (to_x, to_y) = ((x, y * aspect) for x, y in self.handles)
        across, along, y = to_x - from_x, to_y - from_y, y * aspect
        square = across * across + along * along
        share = ((x - from_x) * across + (y - from_y) * along) / (square or 1.0)
        share = min(max(share, 0.0), 1.0)
        return math.hypot(x - from_x - share * across, y - from_y - share * along) <= reach

    @property
    def area(self) -> Area | None:
        if self.shape is Shape.LINE:
            return None
        return Area(Outline(self.shape.value), self.corners)

    def mask(self, height: int, width: int) -> tuple[slice, slice, NDArray[np.bool_]]:
        left, top, right, bottom = self.box
        left, right = min(max(left, 0), width), min(max(right, 0), width)
        top, bottom = min(max(top, 0), height), min(max(bottom, 0), height)
        xs, ys = np.arange(left, right) + 0.5, np.arange(top, bottom) + 0.5
        return slice(top, bottom), slice(left, right), _inside(self, xs, ys)


def box_of(first: Corner, second: Corner) -> tuple[Corner, Corner]:
    """Return the upper left and the lower right corner of a box, at least a pixel in size."""
    left, top = min(first[0], second[0]), min(first[1], second[1])
    right, bottom = max(first[0], second[0]), max(first[1], second[1])
    return (left, top), (max(right, left + 1), max(bottom, top + 1))


def _near(coordinate: int) -> int:
    return min(max(coordinate, -FARTHEST), FARTHEST)


def _inside(region: Interest, xs: NDArray[Any], ys: NDArray[Any]) -> NDArray[np.bool_]:
    if region.shape is Shape.LINE:
        return np.zeros((ys.size, xs.size), bool)
    return inside(Outline(region.shape.value), region.corners, xs, ys)


class Regions:
    """The regions of interest of a window, and the chosen one; `changed` is called each time."""

    def __init__(self) -> None:
        self.changed: Callable[[], None] = lambda: None
        self._regions: list[Interest] = []
        self._chosen = -1
        self._made = 0

    @property
    def all(self) -> tuple[Interest, ...]:
        return tuple(self._regions)

    @property
    def number(self) -> int:
        """Place of the selected region in the list; -1 for none."""
        return self._chosen

    @property
    def chosen(self) -> Interest | None:
        return self._regions[self._chosen] if self._chosen >= 0 else None

    def add(self, shape: Shape, corners: tuple[Corner, ...], plane: int | None = None) -> None:
        colour = COLOURS[self._made % len(COLOURS)]
        self._made += 1
        taken = {region.name for region in self._regions}
        letter = "L" if shape is Shape.LINE else "R"
        numbers = range(self._made, 1 << 30)
        name = next(name for n in numbers if (name := f"{letter}{n}") not in taken)
        self._regions.append(Interest(name, shape, corners, colour, plane))
        self._chosen = len(self._regions) - 1
        self.changed()

    def choose(self, number: int) -> None:
        number = number if 0 <= number < len(self._regions) else -1
        if number != self._chosen:
            self._chosen = number
            self.changed()

    def put(self, region: Interest) -> None:
        if self._chosen >= 0 and region != self._regions[self._chosen]:
            self._regions[self._chosen] = region
            self.changed()

    def rename(self, name: str) -> None:
        """Name the selected region; an empty name, or that of another region, is not taken."""
        name, chosen = name.strip(), self.chosen
        others = {region.name for region in self._regions if region is not chosen}
        if chosen is not None and name and name not in others:
            self.put(replace(chosen, name=name))

    def remove(self) -> None:
        if self._chosen >= 0:
            del self._regions[self._chosen]
            self._chosen = min(self._chosen, len(self._regions) - 1)
            self.changed()

    def chosen_in(self, plane: int | None) -> Interest | None:
        chosen = self.chosen
        return chosen if chosen is not None and chosen.plane == plane else None

    def at(
        self,
        x: float,
        y: float,
        reach: float = 0.0,
        plane: int | None = None,
        aspect: float = 1.0,
    ) -> int:
        """Return the place of the topmost region at a point, the chosen one first; -1 for none."""
        chosen = self.chosen_in(plane)
        if chosen is not None and chosen.contains(x, y, reach, aspect):
            return self._chosen
        hits = (
            number
            for number, region in enumerate(self._regions)
            if region.plane == plane and region.contains(x, y, reach, aspect)
        )
        return max(hits, default=-1)
