"""Draws a picture of any type as it is displayed: only the visible part, at its scale.

Samples become bytes when they are painted, as many as the screen has pixels. So a run, a change
of level or a colour map costs nothing for the rest of the picture.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QImage, QPainter, QPixmap

from kernelscope.engine.region import Region
from kernelscope.gui.model.colour_maps import ColourMap, table
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.pyramid import Pyramid
from kernelscope.images.image import Image
from kernelscope.schema.samples import white_level

SHARP_FROM = 3.0
"""Magnification from which pixels are sharp squares even where they differ in size by one."""

_VEIL = QColor(0, 0, 0, 150)  # laid over a picture around a region that is newer


class _Part(NamedTuple):
    """A picture, and the rectangle of the scene that it is drawn in."""

    pyramid: Pyramid
    area: QRectF
    image: Image | None


class Layer:
    """A picture at its place in the scene, with regions that are newer than the rest.

    `image` provides the values to read off; None where only regions are known. `pyramid` is drawn;
    other samples than those of `image` for a difference. `offset`: scene coordinate of its first
    row and column. `display`: how the samples of `pyramid` are drawn. `revision`: another number
    after each change of the drawn picture.
    """

    def __init__(
        self, image: Image | None, pyramid: Pyramid | None, offset: int, display: Display
    ) -> None:
        self.image, self.offset = image, offset
        self.minus: Image | None = None
        """Another picture of the same size, if the difference to it is drawn."""
        self.revision = 0
        self._display = display
        self._parts: list[_Part] = []
        self._drawn: dict[object, QImage] = {}
        if pyramid is not None:
            area = QRectF(offset, offset, pyramid.width, pyramid.height)
            self._parts.append(_Part(pyramid, area, None))

    @property
    def display(self) -> Display:
        return self._display

    @display.setter
    def display(self, display: Display) -> None:
        if display != self._display:
            self._display = display
            self._drawn.clear()
            self.revision += 1

    @property
    def area(self) -> QRectF:
        """Where the picture lies in the scene, or the region if that is all."""
        if self.image is not None:
            return QRectF(self.offset, self.offset, self.image.width, self.image.height)
        return self._parts[-1].area if self._parts else QRectF()

    def put_region(self, region: Region, image: Image, offset: int) -> None:
        """Draw a part of another result over the picture, which is dimmed.

        `region`: in pixels of that result. `image`: samples of the region; fewer are stretched.
        `offset`: scene coordinate of the first row and column of that result.
        """
        area = QRectF(offset + region.left, offset + region.top, region.width, region.height)
        self._parts = [part for part in self._parts if part.image is None]
        self._parts.append(_Part(Pyramid(image.planes), area, image))
        self.revision += 1

    def samples_at(self, x: int, y: int) -> NDArray[Any] | None:
        """Return the samples of all channels at a scene pixel; None where there are none.

        Around a region there are none: those of the earlier picture have other settings.
        """
        latest = self._parts[-1] if self._parts else None
        if latest is not None and latest.image is not None:
            area, image = latest.area, latest.image
            if not area.contains(QPointF(x + 0.5, y + 0.5)):
                return None
            column = (x + 0.5 - area.x()) * image.width / area.width()
            row = (y + 0.5 - area.y()) * image.height / area.height()
            return np.asarray(image.planes[int(row), int(column)])
        if self.image is None:
            return None
        x, y = x - self.offset, y - self.offset
        if 0 <= x < self.image.width and 0 <= y < self.image.height:
            return np.asarray(self.image.planes[y, x])
        return None

    def paint(
        self,
        painter: QPainter,
        origin: QPointF,
        scale: float,
        room: QRect,
        want: Callable[[Pyramid, int], None],
    ) -> None:
        """Draw the visible part.

        `painter`: on device pixels. `origin`: scene point at the top left corner of `room`.
        `scale`: device pixels per scene pixel. `room`: device pixels to draw in. `want` is called
        with a level that has to be made on another thread first.
        """
        drawn: dict[object, QImage] = {}
        for part in self._parts:
            if part.image is not None:
                painter.fillRect(room, _VEIL)
            self._paint_part(painter, part, origin, scale, room, want, drawn)
        self._drawn = drawn

    def _paint_part(
        self,
        painter: QPainter,
        part: _Part,
        origin: QPointF,
        scale: float,
        room: QRect,
        want: Callable[[Pyramid, int], None],
        drawn: dict[object, QImage],
    ) -> None:
        pyramid, area = part.pyramid, part.area
        own = scale * area.width() / pyramid.width  # device pixels per pixel of this picture
        level = pyramid.level_for(own)
        factor = 1 << level
        if ready := pyramid.is_ready(level):
            samples = pyramid.samples(level)
        else:
            samples = pyramid.aliased(level)
            want(pyramid, level)
        block = own * factor  # device pixels per sample
        left = room.left() + (area.x() - origin.x()) * scale
        top = room.top() + (area.y() - origin.y()) * scale
        columns = _span(room.left() - left, room.right() + 1 - left, block, samples.shape[1])
        rows = _span(room.top() - top, room.bottom() + 1 - top, block, samples.shape[0])
        if not columns or not rows:
            return
        key = pyramid, level, ready, columns, rows
        cached = self._drawn.get(key)
        if cached is None:
            crop = samples[rows.start : rows.stop, columns.start : columns.stop]
            cached = as_qimage(crop, self._display)
        drawn[key] = cached
        target = QRectF(
            left + columns.start * block,
            top + rows.start * block,
            len(columns) * block,
            len(rows) * block,
        )
        painter.save()
        edge = QRectF(left, top, area.width() * scale, area.height() * scale)
        painter.setClipRect(edge, Qt.ClipOperation.IntersectClip)
        if pyramid.planes.shape[2] in (2, 4):
            painter.fillRect(edge & QRectF(room), _chequers())
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, is_smooth(own))
        painter.drawImage(target, cached)
        painter.restore()


def is_smooth(scale: float) -> bool:
    """Return whether pixels are interpolated at this magnification, in device pixels."""
    return scale < SHARP_FROM and scale != round(scale)


def as_qimage(planes: NDArray[Any], display: Display) -> QImage:
    """Return samples as they are displayed, in the format that Qt scales fastest."""
    steps = display.steps(planes[:, :, : 3 if planes.shape[2] >= 3 else 1])
    height, width, channels = steps.shape
    opaque = QImage.Format.Format_RGB32
    if planes.shape[2] in (2, 4):
        pixels = np.empty((height, width, 4), np.uint8)
        pixels[:, :, :3] = _coloured(steps, display)
        scale = 255 / white_level(planes.dtype)
        pixels[:, :, 3] = np.rint((planes[:, :, -1] * scale).clip(0, 255))
        blended = QImage.Format.Format_ARGB32_Premultiplied
        return _converted(pixels, QImage.Format.Format_RGBA8888, blended)
    if channels == 3:
        return _converted(_coloured(steps, display), QImage.Format.Format_RGB888, opaque)
    if display.colour_map is ColourMap.GREY:
        return _converted(steps, QImage.Format.Format_Grayscale8, opaque)
    return _converted(_coloured(steps, display), QImage.Format.Format_RGB888, opaque)


def _coloured(steps: NDArray[np.uint8], display: Display) -> NDArray[np.uint8]:
    """Return steps as red, green and blue; a picture in colour can only be inverted."""
    if steps.shape[2] == 1:
        return table(display.colour_map)[steps[:, :, 0]]
    return 255 - steps if display.colour_map is ColourMap.INVERTED else steps


def _converted(samples: NDArray[Any], layout: QImage.Format, wanted: QImage.Format) -> QImage:
    """Return an image of its own, from bytes that are only borrowed meanwhile."""
    samples = np.ascontiguousarray(samples)
    height, width = samples.shape[:2]
    borrowed = QImage(samples.data, width, height, samples.strides[0], layout)
    return borrowed.convertToFormat(wanted)


def _span(start: float, stop: float, block: float, length: int) -> range:
    """Return the blocks that lie between two places, and one on each side to blend with."""
    first, last = math.floor(start / block) - 1, math.ceil(stop / block) + 1
    return range(max(0, first), min(length, last))


def _chequers() -> QBrush:
    """Return the brush behind transparent pixels."""
    tile = QPixmap(16, 16)
    tile.fill(QColor("#c8c8c8"))
    painter = QPainter(tile)
    painter.fillRect(QRect(0, 0, 8, 8), QColor("#989898"))
    painter.fillRect(QRect(8, 8, 8, 8), QColor("#989898"))
    painter.end()
    return QBrush(tile)
