"""Where views look, and how closely: zooming, panning and fitting, without any widget.

A camera has a centre, the point of the scene in the middle of each view, and a scale, in screen
pixels per unit of the scene. A scene point p is drawn at

    middle of the view + (p - centre) * scale

To magnify and keep p under the cursor, the centre moves towards p by the factor of the zoom:

    (p - new) * after = (p - old) * before    so    new = p - (p - old) * before / after

With p = 10, a centre of 6 and a scale that goes from 1 to 2, the new centre is 8: p stays four
pixels to the right of the middle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from PySide6.QtCore import QPointF, QRectF, QSizeF

ZOOM_STEP = 1.25  # factor of one step of zoom by a key, the menu or the wheel

_MOST_PICTURE_SCALE = 64.0
_LEAST_PICTURE_SCALE = 1 / 64
_LITTLE_LOSS = 0.85  # a fitted picture is shown at least so large, as a share, to have sharp pixels
_PICTURE_MARGIN = 8  # screen pixels left free around a fitted picture

_MOST_PLANE_ZOOM = 32.0
_PLANE_MARGIN = 4  # screen pixels left free around a fitted slice


def fitting_scale(views: Iterable[QSizeF], extent: QSizeF, margin: float) -> float:
    """Return the largest scale at which `extent` with a margin fits into each of the views."""
    return min(
        min(
            max(1, view.width() - 2 * margin) / extent.width(),
            max(1, view.height() - 2 * margin) / extent.height(),
        )
        for view in views
    )


def centre_holding(fixed: QPointF, centre: QPointF, before: float, after: float) -> QPointF:
    """Return the centre with which `fixed` stays in place when the scale changes."""
    return fixed - (fixed - centre) * (before / after)


def snapped(device: float) -> float:
    """Return the magnification to show in place of one that was asked for.

    Pixels are sharp and alike only at whole multiples, so from 200 % on there are no others.
    `device`: device pixels per pixel of the picture.
    """
    if device >= 2:
        return float(math.floor(device + 0.5))
    return 1.0 if 0.93 < device < 1.07 else device


class PictureCamera:
    """Looks at a picture in all of its views alike.

    `centre`: in pixels of the picture. `scale`: device-independent pixels of the screen per pixel
    of the picture. `fitted`: whether the whole picture is shown, whatever the size of the views.
    """

    def __init__(self) -> None:
        self.centre = QPointF()
        self.scale = 1.0
        self.fitted = True
        self._wanted = 1.0, 1.0
        """The scale that the wheel has added up to, and the one that is shown instead."""

    def fit(self, picture: QSizeF, views: Iterable[QSizeF], ratio: float = 1.0) -> None:
        """Show the whole picture in each of the views.

        Magnified at least threefold, or where that costs little, it is magnified by a whole number,
        so that its pixels are sharp and alike. `ratio`: device pixels per device-independent one.
        """
        self.centre = QPointF(picture.width() / 2, picture.height() / 2)
        device = fitting_scale(views, picture, _PICTURE_MARGIN) * ratio
        whole = math.floor(device + 1e-9)
        if device >= 3 or (whole >= 1 and whole / device > _LITTLE_LOSS):
            device = whole
        self.scale = device / ratio

    def look_at(self, centre: QPointF, scale: float) -> None:
        """Look there; a scale out of range becomes the nearest one in range."""
        self.fitted = False
        self.centre = centre
        self.scale = _in_range(scale)

    def zoom(self, notches: float, fixed: QPointF, ratio: float = 1.0) -> None:
        """Magnify by steps of `ZOOM_STEP` about a point that stays; see `snapped`.

        Fractions of a step, as a touchpad reports them, add up.
        """
        wanted, shown = self._wanted
        wanted = _in_range((wanted if shown == self.scale else self.scale) * ZOOM_STEP**notches)
        after = _in_range(snapped(wanted * ratio) / ratio)
        self.look_at(centre_holding(fixed, self.centre, self.scale, after), after)
        self._wanted = wanted, self.scale

    def pan(self, offset: QPointF, picture: QRectF) -> None:
        """Move by an offset in pixels of the picture, which stays in the middle of the view."""
        centre = self.centre + offset
        x = min(max(centre.x(), picture.left()), picture.right())
        y = min(max(centre.y(), picture.top()), picture.bottom())
        self.look_at(QPointF(x, y), self.scale)

    def settle(self, picture: QRectF, views: Sequence[QSizeF]) -> None:
        """Move so that the picture fills the views, or lies in their middle if it is smaller."""
        self.centre = QPointF(
            _settled(
                self.centre.x(),
                picture.left(),
                picture.right(),
                min(view.width() for view in views) / self.scale,
            ),
            _settled(
                self.centre.y(),
                picture.top(),
                picture.bottom(),
                min(view.height() for view in views) / self.scale,
            ),
        )


def _settled(centre: float, low: float, high: float, length: float) -> float:
    """Return the nearest centre of a view of this length that lies within; else the middle."""
    if length >= high - low:
        return (low + high) / 2
    return min(max(centre, low + length / 2), high - length / 2)


def _in_range(scale: float) -> float:
    return min(max(scale, _LEAST_PICTURE_SCALE), _MOST_PICTURE_SCALE)


class PlaneCamera:
    """Looks at the planes of a volume: one zoom for all of them, a centre for each.

    Scenes are slices, in millimetres from their top left corner. Methods that need the scale take
    `fit`, that of whole slices; it depends on the size of the views (`fit_of`). `zoom`: relative to
    whole slices; at least 1.
    """

    def __init__(self) -> None:
        self.zoom = 1.0
        self._extents: Sequence[QSizeF] = ()
        self._centres: dict[int, QPointF] = {}

    def set_extents(self, extents: Sequence[QSizeF]) -> None:
        """Look at slices of these sizes in millimetres, one for each plane."""
        self._extents = extents

    def reset(self) -> None:
        """Show whole slices."""
        self.zoom = 1.0
        self._centres.clear()

    def fit_of(self, views: Iterable[tuple[int, QSizeF]]) -> float:
        """Return the scale of whole slices: the same for all views, given by plane and size."""
        return min(
            fitting_scale([size], self._extents[number], _PLANE_MARGIN) for number, size in views
        )

    def centre(self, number: int) -> QPointF:
        """Return the point of a plane that lies in the middle of its views."""
        extent = self._extents[number]
        return self._centres.get(number, QPointF(extent.width() / 2, extent.height() / 2))

    def zoom_about(self, points: Mapping[int, QPointF], factor: float) -> None:
        self._zoom_by(factor)
        if self.zoom > 1:
            self._centres |= points

    def zoom_at(self, number: int, offset: QPointF, factor: float, fit: float) -> None:
        """Magnify all planes; the point `offset` pixels from the middle of one stays."""
        centre, before = self.centre(number), fit * self.zoom
        self._zoom_by(factor)
        if self.zoom > 1:  # whole slices lie in the middle
            fixed = centre + offset / before
            self._centres[number] = centre_holding(fixed, centre, before, fit * self.zoom)

    def pan(self, number: int, offset: QPointF, fit: float) -> None:
        """Move a plane by an offset in screen pixels."""
        self._centres[number] = self.centre(number) - offset / (fit * self.zoom)

    def area(self, number: int, view: QSizeF, fit: float) -> QRectF:
        """Return where the whole slice is drawn in a view; parts may lie outside of it."""
        scale = fit * self.zoom
        centre, extent = self.centre(number), self._extents[number]
        return QRectF(
            view.width() / 2 - centre.x() * scale,
            view.height() / 2 - centre.y() * scale,
            extent.width() * scale,
            extent.height() * scale,
        )

    def _zoom_by(self, factor: float) -> None:
        self.zoom = min(max(self.zoom * factor, 1.0), _MOST_PLANE_ZOOM)
        if self.zoom == 1:
            self._centres.clear()
