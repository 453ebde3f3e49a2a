"""Regions of interest and profile lines: their pixels, and how they are changed.

Coordinates are whole edges of pixels of the input: a rectangle from (2, 1) to (4, 2) holds the
pixels (2, 1) and (3, 1). A pixel belongs to a shape if its centre lies within. A line has no area:
its ends are pixels, and it runs from the centre of one to that of the other.

In a volume, a region belongs to one of the planes, in all slices of it; its pixels are the voxels
of the slice as it is drawn. They are shown, typed and written as the file counts them: see `Axes`.
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
from kernelscope.images.planes import Plane
from kernelscope.images.volume import AXES

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


@dataclass(frozen=True)
class Axes:
    """How the pixels of a picture, or of a slice as it is drawn, are counted in their file."""

    # Names of the axes to the right and down.
    across: str = "x"
    down: str = "y"
    # Number of the pixels along an axis that is drawn from its end; None for others.
    width: int | None = None
    height: int | None = None

    @classmethod
    def of(cls, plane: Plane, shape: tuple[int, ...]) -> Axes:
        return cls(
            AXES[plane.columns],
            AXES[plane.rows],
            shape[plane.columns] if plane.flip_columns else None,
            shape[plane.rows] if plane.flip_rows else None,
        )

    def turned(self, region: Interest) -> Interest:
        """Return a region of a slice as it is drawn in voxels of the file, and the other way."""
        end = region.shape is Shape.LINE  # whose corners are pixels, not edges
        corners = tuple(
            (
                x if self.width is None else self.width - end - x,
                y if self.height is None else self.height - end - y,
            )
            for x, y in region.corners
        )
        if region.shape in (Shape.RECTANGLE, Shape.ELLIPSE):
            corners = box_of(*corners)
        return replace(region, corners=corners)


AS_DRAWN = Axes()

ITSELF = " itself"  # no name of a region: they are stripped


@dataclass(frozen=True)
class Against:
    """The regions that others are compared with."""

    cnr: str = ""  # its name; empty for none
    background: str = ""
    """The region whose noise SNR takes; `ITSELF` for mean / SD of each, empty for no SNR."""
    rician: bool = False  # the noise of a background is that of a magnitude image

    @property
    def snr(self) -> str:
        law = "Rician" if self.rician else "its mean subtracted"
        named = self.background and self.background != ITSELF
        return f"SNR over {self.background}, {law}" if named else "SNR"


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
    """The regions of interest of the files in front, and the selected one.

    - `now`: returns all of them.
    - `keep`: takes others, the act that led to them, in words, and whether it goes on: one drag,
      or arrow keys in a row, are one act.
    - `selected`: called when another region is selected.
    """

    def __init__(
        self,
        now: Callable[[], tuple[Interest, ...]],
        keep: Callable[[tuple[Interest, ...], str, bool], None],
        selected: Callable[[], None],
    ) -> None:
        self._now, self._keep, self._selected = now, keep, selected
        self._name = ""  # of the selected region
        self._acts_on = ""  # the region that is drawn or moved, until `end_act`

    @property
    def all(self) -> tuple[Interest, ...]:
        return self._now()

    @property
    def number(self) -> int:
        """Place of the selected region in the list; -1 for none."""
        names = [each.name for each in self.all]
        return names.index(self._name) if self._name in names else -1

    @property
    def chosen(self) -> Interest | None:
        return next((each for each in self.all if each.name == self._name), None)

    def add(self, shape: Shape, corners: tuple[Corner, ...], plane: int | None = None) -> None:
        all_ = self.all
        taken = {region.name for region in all_}
        numbers = range(len(all_) + 1, 1 << 30)
        number = next(n for n in numbers if taken.isdisjoint((f"L{n}", f"R{n}")))
        self._name = self._acts_on = f"{'L' if shape is Shape.LINE else 'R'}{number}"
        colour = COLOURS[(number - 1) % len(COLOURS)]
        new = Interest(self._name, shape, corners, colour, plane)
        self._keep((*all_, new), f"Draw {self._name}", False)

    def choose(self, number: int) -> None:
        self.end_act()
        all_ = self.all
        name = all_[number].name if 0 <= number < len(all_) else ""
        if name != self._name:
            self._name = name
            self._selected()

    def choose_changed(self, before: tuple[Interest, ...]) -> None:
        """Select the last region that was not among those of `before`."""
        self._name = next((e.name for e in reversed(self.all) if e not in before), self._name)

    def put(self, region: Interest, act: str = "") -> None:
        chosen = self.chosen
        if chosen is None or region == chosen:
            return
        (x, y), (old_x, old_y) = region.corners[0], chosen.corners[0]
        is_moved = region == chosen.moved(x - old_x, y - old_y)
        act = act or ("Move" if is_moved else "Resize")
        goes_on = self._acts_on == chosen.name
        self._name = self._acts_on = region.name
        all_ = tuple(region if each is chosen else each for each in self.all)
        self._keep(all_, f"{act} {chosen.name}", goes_on)

    def end_act(self) -> None:
        """Have the next change be an act of its own."""
        self._acts_on = ""

    def rename(self, name: str) -> None:
        """Name the selected region; an empty name, or that of another region, is not taken."""
        name, chosen = name.strip(), self.chosen
        others = {region.name for region in self.all if region is not chosen}
        if chosen is not None and name and name not in others:
            self.end_act()
            self.put(replace(chosen, name=name), "Rename")
            self.end_act()

    def remove(self) -> None:
        number, all_ = self.number, self.all
        if number >= 0:
            self.end_act()
            rest = (*all_[:number], *all_[number + 1 :])
            removed, self._name = self._name, rest[min(number, len(rest) - 1)].name if rest else ""
            self._keep(rest, f"Delete {removed}", False)

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
            return self.number
        hits = (
            number
            for number, region in enumerate(self.all)
            if region.plane == plane and region.contains(x, y, reach, aspect)
        )
        return max(hits, default=-1)
