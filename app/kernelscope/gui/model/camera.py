"""Where views look, and how closely: zooming, panning and fitting, of pictures and volumes.

A camera has a centre, the point of a plane in the middle of its views, and a scale, in screen
pixels per unit of the plane. A point p is drawn at

    middle of the view + (p - centre) * scale

To magnify and keep p under the cursor, the centre moves towards p by the factor of the zoom:

    (p - new) * after = (p - old) * before    so    new = p - (p - old) * before / after

With p = 10, a centre of 6 and a scale that goes from 1 to 2, the new centre is 8: p stays four
pixels to the right of the middle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

ZOOM_STEP = 1.25  # factor of one step of zoom by a key, the menu or the wheel

_MOST = 64.0  # device-independent pixels per pixel of a picture
_LITTLE_LOSS = 0.85  # a fitted picture is shown at least so large, as a share, to have sharp pixels
_MARGIN = 4  # screen pixels left free around a fitted plane

Point: TypeAlias = tuple[float, float]  # to the right and down


class Room(NamedTuple):
    """The size of a view in device-independent pixels, and the plane that it shows."""

    plane: int
    width: float
    height: float


def snapped(device: float) -> float:
    """Return the magnification to show: from 200 % on whole, so that pixels are sharp and alike."""
    if device >= 2:
        return float(math.floor(device + 0.5))
    return 1.0 if 0.93 < device < 1.07 else device


class Camera:
    """Looks at the planes of an input, of which a picture has one, in all of its views alike.

    Units are pixels of a picture, or millimetres of a slice from its upper left corner. `scale`:
    device-independent pixels of the screen per unit, the same for all planes unless one is large:
    the others, in smaller views, show as much of theirs. `fitted`: whether whole planes are shown,
    whatever the size of the views.
    """

    def __init__(self) -> None:
        self.scale = 1.0
        self.fitted = True
        self._planes: tuple[Point, ...] = ()
        self._unit = 1.0
        self._rooms: tuple[Room, ...] = ()
        self._large: int | None = None
        self._ratio = 1.0
        self._centres: dict[int, Point] = {}
        self._wanted = 1.0, 1.0
        """The scale that the wheel has added up to, and the one that is shown instead."""

    def show(self, planes: Sequence[Point], unit: float = 1.0) -> None:
        """Look at planes of these sizes; `unit` is the smallest side of their pixels."""
        self._planes, self._unit = tuple(planes), unit
        self._settle_scale()

    def lay_out(self, rooms: Sequence[Room], ratio: float, large: int | None = None) -> None:
        """Look through views of these sizes; those of the plane `large` are larger than others."""
        self._rooms, self._ratio, self._large = tuple(rooms), ratio, large
        self._settle_scale()

    @property
    def device_scale(self) -> float:
        """Device pixels per pixel of the picture, or per smallest side of a voxel."""
        return self.scale * self._unit * self._ratio

    def scale_of(self, plane: int) -> float:
        if self._large in (None, plane) or not self._planes:
            return self.scale
        fits = [self._fit(self._planes, each) for each in (plane, self._large)]
        return self.scale * min(fits[0] / fits[1], 1.0)

    def _fit(self, planes: Sequence[Point], plane: int | None) -> float:
        rooms = [room for room in self._rooms if room.plane == plane] or self._rooms
        return min(
            min(
                max(1, room.width - 2 * _MARGIN) / planes[room.plane][0],
                max(1, room.height - 2 * _MARGIN) / planes[room.plane][1],
            )
            for room in rooms
        )

    def centre(self, plane: int = 0) -> Point:
        if plane in self._centres or not self._planes:
            return self._centres.get(plane, (0.0, 0.0))
        width, height = self._planes[plane]
        return width / 2, height / 2

    def fit(self) -> None:
        self.fitted = True
        self._centres.clear()
        self._settle_scale()

    def fitting_scale(self, planes: Sequence[Point], unit: float = 1.0) -> float:
        """Return the scale at which each of these planes fits into its views.

        Magnified at least threefold, or where that costs little, the pixels of a picture are
        magnified by a whole number, so that they are sharp and alike. Several planes, which
        share the room, have none to give away.
        """
        device = unit * self._ratio * self._fit(planes, self._large)
        whole = math.floor(device + 1e-9) if len(planes) == 1 else 0
        if whole >= 3 or (whole >= 1 and whole / device > _LITTLE_LOSS):
            device = whole
        return device / (unit * self._ratio)

    def look_at(self, points: Mapping[int, Point], scale: float) -> None:
        """Look there; a scale out of range becomes the nearest one in range."""
        self.fitted = False
        self._centres |= points
        self.scale = self._in_range(scale)
        self._settle_scale()

    def zoom(self, notches: float, points: Mapping[int, Point]) -> None:
        """Magnify by steps of `ZOOM_STEP`, with these points in the middle; see `snapped`.

        Fractions of a step, as a touchpad reports them, add up.
        """
        wanted, after = self._after(notches)
        self.look_at(points, after)
        self._wanted = wanted, self.scale

    def zoom_about(self, notches: float, plane: int, fixed: Point) -> None:
        """Magnify as `zoom`; a point of one of the planes stays where it is."""
        _, after = self._after(notches)
        self.zoom(notches, {plane: self._centre_about(plane, fixed, after)})

    def one_to_one(self, points: Mapping[int, Point], fixed: Mapping[int, Point]) -> None:
        """Show each pixel as one of the screen, or larger where whole slices fit then.

        - `points`: they come to the middle.
        - `fixed`: points that stay where they are, of other planes.
        """
        after = 1 / (self._unit * self._ratio)
        about = {plane: self._centre_about(plane, each, after) for plane, each in fixed.items()}
        self.look_at({**points, **about}, after)
        self.settle()

    def _centre_about(self, plane: int, fixed: Point, after: float) -> Point:
        """Return the centre at another scale at which a point of a plane stays where it is."""
        share = self.scale / after
        x, y = (p - (p - c) * share for p, c in zip(fixed, self.centre(plane), strict=True))
        return x, y

    def pan(self, plane: int, offset: Point) -> None:
        """Move by an offset in units; a point of the plane stays in the middle of the view."""
        moved = zip(self.centre(plane), offset, self._planes[plane], strict=True)
        x, y = (min(max(centre + way, 0.0), size) for centre, way, size in moved)
        self.look_at({plane: (x, y)}, self.scale)

    def settle(self) -> None:
        for plane, size in enumerate(self._planes):
            rooms = [room for room in self._rooms if room.plane == plane]
            if rooms:
                x, y = self.centre(plane)
                scale = self.scale_of(plane)
                width = min(room.width for room in rooms) / scale
                height = min(room.height for room in rooms) / scale
                self._centres[plane] = _settled(x, size[0], width), _settled(y, size[1], height)

    def _after(self, notches: float) -> tuple[float, float]:
        """Return the scale after some steps, and the one to be shown in its place."""
        wanted, shown = self._wanted
        wanted = wanted if shown == self.scale else self.scale
        wanted, device = self._in_range(wanted * ZOOM_STEP**notches), self._unit * self._ratio
        shown = wanted if wanted == self._least else snapped(wanted * device) / device
        return wanted, self._in_range(shown)

    def _in_range(self, scale: float) -> float:
        return min(max(scale, self._least), _MOST / self._unit)

    @property
    def _least(self) -> float:
        """The smallest scale: of several planes, which share the room, that of whole ones."""
        if len(self._planes) > 1 and self._rooms:
            return self.fitting_scale(self._planes, self._unit)
        return 1 / _MOST / self._unit

    def _settle_scale(self) -> None:
        """Fit the planes, if they are fitted or have become as small as that."""
        if not self._planes or not self._rooms:
            return
        if len(self._planes) > 1 and self.scale <= self._least:
            self.fitted = True
        if self.fitted:
            self._centres.clear()
            self.scale = self.fitting_scale(self._planes, self._unit)


def _settled(centre: float, size: float, length: float) -> float:
    """Return the nearest centre of a view of this length that lies within; else the middle."""
    if length >= size:
        return size / 2
    return min(max(centre, length / 2), size - length / 2)


_PLANES = 3  # planes of each side, beside each other

_LEAST_GAIN = 1.15
"""Gain from which on all planes lie beside each other; else each output is below its input."""


class Enlarged(NamedTuple):
    """How a large plane and two small ones share a room."""

    below: bool  # whether the small ones are below the large one; else they are on its right
    share: float  # of the height or width, that the small ones have
    scale: float  # of the large one


_SHARES, _LEAST_SMALL, _BETTER = (1 / 3, 1 / 2, 1 / 4, 1 / 6), 0.4, 1.02
"""Shares of the small planes; their scale, as a share of that of the large one, at least; and the
gain of scale from which on another arrangement than the first is taken."""


def arranged(
    width: float,
    height: float,
    heading: float,
    extents: Sequence[Point],
    large: int | None = None,
    *,
    sides: int = 2,
) -> tuple[bool, Enlarged | None]:
    """Return whether the output belongs beside the input, and how each side shares its room.

    - `width`, `height`: the room for both, in pixels.
    - `heading`: height of the line over the planes of each side, in pixels.
    - `extents`: width and height of the slices of each plane, in millimetres.
    - `large`: the plane that is larger than the others.
    - `sides`: 1 if only the input or the output is shown.
    """
    rooms = (width, height / sides - heading), (width / sides, height - heading)
    if large is None or not extents:
        below, beside = (_scale(wide / _PLANES, high, extents) for wide, high in rooms)
        return beside > _LEAST_GAIN * below, None
    choices = [_enlarged(*room, extents, large) for room in rooms]
    is_beside = choices[1].scale > _LEAST_GAIN * choices[0].scale
    return is_beside, choices[is_beside]


def _enlarged(width: float, height: float, extents: Sequence[Point], large: int) -> Enlarged:
    """Return the arrangement in which a plane is largest, and the others are not too small."""
    small = [extent for number, extent in enumerate(extents) if number != large]
    best: Enlarged | None = None
    for share in _SHARES:
        for below in (False, True):
            wide, high = (width, (1 - share) * height) if below else ((1 - share) * width, height)
            scale = _scale(wide, high, [extents[large]])
            rest = (width / 2, share * height) if below else (share * width, height / 2)
            seen = _scale(*rest, small) >= _LEAST_SMALL * scale
            if best is None or (seen and scale > _BETTER * best.scale):
                best = Enlarged(below, share, scale)
    assert best is not None
    return best


def _scale(width: float, height: float, extents: Sequence[Point]) -> float:
    """Return the scale in which the slices of all planes fit into views of this size."""
    return min((min(width / across, height / down) for across, down in extents), default=0.0)
