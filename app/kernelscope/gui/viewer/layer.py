"""Draws a picture or a slice of any type as it is displayed: only the visible part, at its scale.

Samples become bytes when they are painted, as many as the screen has pixels. So a run, a change
of level or a colour map costs nothing for the rest of the picture. Projections of large slabs are
computed elsewhere.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRect, QRectF, QSizeF, Qt
from PySide6.QtGui import QBrush, QColor, QImage, QPainter, QPixmap, qRgb

from kernelscope.engine.region import Region
from kernelscope.engine.stabilising import Sigmas
from kernelscope.gui.model.display import Colouring, ColourMap, Display, table
from kernelscope.gui.model.drawn_view import DrawnView, Pyramid
from kernelscope.gui.model.slice_drawing import (
    Look,
    Projection,
    project,
    project_change,
    slab,
    slice_of,
)
from kernelscope.gui.widgets.tiles import image_of
from kernelscope.images.image import Image
from kernelscope.images.judging.pictures import ZERO
from kernelscope.images.planes import Plane
from kernelscope.images.volume import Volume
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import white_level

SHARP_FROM = 3.0
"""Magnification from which pixels are sharp squares even where they differ in size by one."""

_BLENDED = QImage.Format.Format_ARGB32_Premultiplied

_FRAME = ((3, QColor(0, 0, 0)), (2, QColor("#ffffff")))
"""Device pixels and colours around a region, which is compared with the picture under it."""


Colours: TypeAlias = Callable[[NDArray[Any]], NDArray[np.uint8]]
"""Returns red, green, blue and opacity of samples, shape (height, width, channels)."""


class _Part(NamedTuple):
    """A picture, and the rectangle of the scene that it is drawn in."""

    pyramid: Pyramid
    area: QRectF
    planes: NDArray[Any] | None = None
    """The samples to read off, of a region that is newer than the picture."""
    colours: Colours | None = None  # how it is drawn over the picture
    added: Display | None = None  # how it is drawn, if its light is added to that of the picture


class Layer:
    """A picture or a slice at its place in the scene, with regions that are newer than the rest.

    `planes` (shape (height, width, channels)): the values to read off; None where only regions are
    known. `pyramid` is drawn; other samples than `planes` for a difference. `offset`: scene
    coordinate of its first row and column. `display`: how the samples of `pyramid` are drawn.
    `part`: the pixels of the scene that are known, if not all. `revision`: another number after
    each change of the drawn picture. `is_dark`: the picture itself is black, for others' light.
    `in_sigmas`: its values are differences in units of their noise.
    """

    def __init__(
        self,
        planes: NDArray[Any] | None,
        pyramid: Pyramid | None,
        offset: int,
        display: Display,
        part: QRectF | None = None,
    ) -> None:
        self.planes, self.offset, self.part = planes, offset, part
        self.minus: NDArray[Any] | None = None
        """Other samples of the same shape, if the difference to them is drawn."""
        self.revision, self.is_dark, self.in_sigmas = 0, False, False
        self._display = display
        self._parts: list[_Part] = []
        self._drawn: dict[object, QImage] = {}
        if pyramid is not None:
            area = QRectF(offset, offset, pyramid.width, pyramid.height)
            self._parts.append(_Part(pyramid, area))

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
        if self.planes is not None:
            height, width = self.planes.shape[:2]
            return QRectF(self.offset, self.offset, width, height)
        return self._parts[-1].area if self._parts else QRectF()

    def put_region(self, region: Region, image: Image, offset: int) -> None:
        """Draw `region` of another result, `image` stretched to it, in a frame over the picture."""
        area = QRectF(offset + region.left, offset + region.top, region.width, region.height)
        self._parts = [part for part in self._parts if part.planes is None]
        self._parts.append(_Part(Pyramid(image.planes), area, image.planes))
        self.revision += 1

    def put_over(self, pyramid: Pyramid, colours: Colours) -> None:
        """Draw other samples over all of the picture, those in view in `colours`."""
        self._parts.append(_Part(pyramid, self.area, colours=colours))

    def add_light(self, pyramid: Pyramid, display: Display) -> None:
        """Add other samples to all of the picture, as light of their own colour."""
        self._parts.append(_Part(pyramid, self.area, added=display))

    def samples_at(self, x: int, y: int) -> NDArray[Any] | None:
        """Return the samples at a scene pixel; none around a region, whose settings are others."""
        latest = self._parts[-1] if self._parts else None
        if latest is not None and latest.planes is not None:
            area, planes = latest.area, latest.planes
            if not area.contains(QPointF(x + 0.5, y + 0.5)):
                return None
            column = (x + 0.5 - area.x()) * planes.shape[1] / area.width()
            row = (y + 0.5 - area.y()) * planes.shape[0] / area.height()
            return np.asarray(planes[int(row), int(column)])
        if self.planes is None or not self._is_known(x, y):
            return None
        return np.asarray(self.planes[y - self.offset, x - self.offset])

    def _is_known(self, x: int, y: int) -> bool:
        middle = QPointF(x + 0.5, y + 0.5)
        return self.area.contains(middle) and (self.part is None or self.part.contains(middle))

    def paint(
        self,
        painter: QPainter,
        origin: QPointF,
        cell: QSizeF,
        room: QRect,
        want: Callable[[Pyramid, int], None],
    ) -> None:
        """Draw the visible part; `want`: called with a level that has to be made on another thread.

        `origin`: scene point at the top left of `room`, in device pixels as the painter is.
        `cell`: device pixels per scene pixel.
        """
        drawn: dict[object, QImage] = {}
        for part in self._parts:
            self._paint_part(painter, part, origin, cell, room, want, drawn)
        self._drawn = drawn

    def _paint_part(
        self,
        painter: QPainter,
        part: _Part,
        origin: QPointF,
        cell: QSizeF,
        room: QRect,
        want: Callable[[Pyramid, int], None],
        drawn: dict[object, QImage],
    ) -> None:
        pyramid, area = part.pyramid, part.area
        # Device pixels per pixel of this picture.
        across = cell.width() * area.width() / pyramid.width
        down = cell.height() * area.height() / pyramid.height
        level = pyramid.level_for(max(across, down))
        factor = 1 << level
        if ready := pyramid.is_ready(level):
            samples = pyramid.samples(level)
        else:
            samples = pyramid.aliased(level)
            want(pyramid, level)
        wide, high = across * factor, down * factor  # device pixels per sample
        left = room.left() + (area.x() - origin.x()) * cell.width()
        top = room.top() + (area.y() - origin.y()) * cell.height()
        columns = _span(room.left() - left, room.right() + 1 - left, wide, samples.shape[1])
        rows = _span(room.top() - top, room.bottom() + 1 - top, high, samples.shape[0])
        if not columns or not rows:
            return
        key = pyramid, level, ready, columns, rows
        cached = self._drawn.get(key)
        if cached is None:
            crop = samples[rows.start : rows.stop, columns.start : columns.stop]
            if part.colours is None:
                cached = as_qimage(crop, part.added or self._display)
            else:
                cached = image_of(part.colours(crop), QImage.Format.Format_RGBA8888, _BLENDED)
        drawn[key] = cached
        target = QRectF(
            left + columns.start * wide,
            top + rows.start * high,
            len(columns) * wide,
            len(rows) * high,
        )
        edge = QRectF(left, top, area.width() * cell.width(), area.height() * cell.height())
        if part.planes is not None:
            for width, colour in _FRAME:
                painter.fillRect(edge.adjusted(-width, -width, width, width), colour)
        painter.save()
        painter.setClipRect(edge, Qt.ClipOperation.IntersectClip)
        if self.part is not None:
            known = QRectF(
                left + (self.part.x() - area.x()) * cell.width(),
                top + (self.part.y() - area.y()) * cell.height(),
                self.part.width() * cell.width(),
                self.part.height() * cell.height(),
            )
            painter.setClipRect(known, Qt.ClipOperation.IntersectClip)
        if part.colours is None and pyramid.planes.shape[2] in (2, 4):
            painter.fillRect(edge & QRectF(room), _chequers())
        smooth = is_smooth(max(across, down)) or min(across, down) < 1
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, smooth)
        if part.added is not None:
            painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Plus)
        if self.is_dark and part is self._parts[0]:
            painter.fillRect(target, Qt.GlobalColor.black)
        else:
            painter.drawImage(target, cached)
        painter.restore()


def is_smooth(scale: float) -> bool:
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
        return image_of(pixels, QImage.Format.Format_RGBA8888, _BLENDED)
    if channels == 3:
        return image_of(_coloured(steps, display), QImage.Format.Format_RGB888, opaque)
    if display.colour_map is ColourMap.GREY:
        return image_of(steps, QImage.Format.Format_Grayscale8, opaque)
    # Qt looks colours up in a thirtieth of the time of NumPy: 0.7 ms for a megapixel, not 22.
    return image_of(steps, QImage.Format.Format_Indexed8, opaque, _palette(display.colour_map))


@functools.cache
def _palette(colour_map: Colouring) -> list[int]:
    return [qRgb(*colour) for colour in table(colour_map).tolist()]


def _coloured(steps: NDArray[np.uint8], display: Display) -> NDArray[np.uint8]:
    if steps.shape[2] == 1:
        return table(display.colour_map)[steps[:, :, 0]]
    return 255 - steps if display.colour_map is ColourMap.INVERTED else steps


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


_AT_ONCE = 1 << 20
"""Voxels of a slab that is projected on the GUI thread. Of seven times as many, a maximum took 2 ms
and differences 13 to 55 ms on a core of a cloud machine."""

_KEPT = 24  # projections kept for each volume: of three planes, and of some positions before


Key = tuple[Any, ...]


class Slabs:
    """Slices and projections of volumes; large ones are computed when `compute` is called."""

    def __init__(self) -> None:
        self._made: WeakKeyDictionary[Volume, dict[Key, NDArray[Any]]] = WeakKeyDictionary()
        self._wanted: dict[Key, Callable[[], NDArray[Any]]] = {}

    def values(
        self,
        volume: Volume,
        minus: Volume | None,
        plane: Plane,
        index: int,
        look: Look,
        sigmas: Sigmas | None = None,
    ) -> NDArray[Any] | None:
        """Return the values to draw; None if they have to be computed elsewhere first."""
        axis = plane.axis
        if look.projection is Projection.SLICE:
            return slice_of(volume, minus, plane, index, look, sigmas)
        part = slab(index, look.slices, volume.voxels.shape[axis])
        key = (minus and ref(minus), axis, part, look.projection, sigmas is None)
        made = self._made.setdefault(volume, {})
        if key not in made:

            def work() -> NDArray[Any]:
                if minus is None:
                    return project(volume, axis, part, look.projection)
                return project_change(volume, minus, axis, part, look.projection, sigmas)

            if volume.voxels.size // volume.voxels.shape[axis] * len(part) > _AT_ONCE:
                self._wanted[(volume, *key)] = work
                return None
            self._keep(volume, key, work())
        return plane.cut(made[key], 0)

    def take_work(self) -> Callable[[], dict[Key, NDArray[Any]]] | None:
        """Return a function that computes all that is wanted; None if nothing is."""
        wanted, self._wanted = self._wanted, {}
        if not wanted:
            return None
        return lambda: {key: work() for key, work in wanted.items()}

    def put(self, computed: dict[Key, NDArray[Any]]) -> None:
        """Keep the answer of the function of `take_work`."""
        for (volume, *key), values in computed.items():
            self._keep(volume, tuple(key), values)

    def _keep(self, volume: Volume, key: Key, values: NDArray[Any]) -> None:
        made = self._made.setdefault(volume, {})
        while len(made) >= _KEPT:
            del made[next(iter(made))]
        made[key] = values

    def draw(
        self, content: DrawnView, plane: Plane, index: int, display: Display, look: Look
    ) -> tuple[Layer | None, bool]:
        """Return a slice or a projection, and False while it is computed elsewhere."""
        volume, minus = content.shown, content.minus
        if not isinstance(volume, Volume) or content.problem:
            return None, True
        assert minus is None or isinstance(minus, Volume)
        values = self.values(volume, minus, plane, index, look, content.sigmas)
        if minus is None:
            of_channel = content.own_levels is None  # a map of noise is none
            others = look.others(volume) if of_channel else []
            # All are asked for before one of them is waited for.
            lights = [(self.values(each, None, plane, index, look), own) for each, own in others]
            if values is None:
                return None, False
            part = None if content.part is None else _place(content.part, plane, volume)
            layer = layer_of(values, display, part)
            layer.is_dark = of_channel and not look.shows(volume)
            for light, own in lights:
                if light is not None:
                    layer.add_light(Pyramid(_drawable(light)), own)
            return layer, all(light is not None for light, _ in lights)
        under = self.values(minus, None, plane, index, look) if look.overlaid else values
        if values is None or under is None:
            return None, False
        layer = layer_of(under, display)
        if look.overlaid:
            width = content.window or display.width
            put_change(layer, Pyramid(values[:, :, np.newaxis]), look, width, content.gain)
        layer.planes = values[:, :, np.newaxis]
        layer.minus = np.broadcast_to(np.float32(0), layer.planes.shape)
        layer.in_sigmas = content.sigmas is not None
        return layer, True


def _drawable(values: NDArray[Any]) -> NDArray[Any]:
    """Return a slice as a picture of one channel; signed numbers as floats: pictures have none."""
    # Neighbours on the screen may lie a slice apart in the volume, and are read at every zoom.
    planes = np.ascontiguousarray(values)[:, :, np.newaxis]
    return planes.astype(np.float32) if planes.dtype.kind == "i" else planes


def put_change(
    layer: Layer, change: Pyramid, look: Look, width: float, gain: int, zero: float = 0
) -> None:
    """Draw differences over a layer; `width`: from black to white, in steps from `zero`."""

    def colours(samples: NDArray[Any]) -> NDArray[np.uint8]:
        sizes = samples.astype(np.float32) - np.float32(zero)
        if sizes.shape[2] > 1:  # the colour that has changed most
            largest = np.abs(sizes).argmax(axis=2, keepdims=True)
            sizes = np.take_along_axis(sizes, largest, axis=2)
        return look.layer(sizes[:, :, 0], width, gain)

    layer.put_over(change, colours)


def picture_layer(content: DrawnView, display: Display, look: Look) -> Layer | None:
    """Return a picture or a difference; the display of the latter is that of its bytes."""
    image, minus = content.shown, content.minus
    if not isinstance(image, Image):
        return None
    if minus is None:
        return Layer(image.planes, content.pyramid, content.offset, display)
    assert isinstance(minus, Image)
    if look.overlaid and content.pyramid is not None:
        layer = Layer(image.planes, content.under, content.offset, display)
        white = content.window or white_level(image.pixels.dtype)
        scaled = replace(look, threshold=look.threshold * 255 * content.gain / white)
        put_change(layer, content.pyramid, scaled, 255, 1, ZERO)
    else:
        layer = Layer(image.planes, content.pyramid, content.offset, display)
    layer.minus = minus.planes
    return layer


def layer_of(values: NDArray[Any], display: Display, part: QRectF | None = None) -> Layer:
    planes = np.ascontiguousarray(values)[:, :, np.newaxis]
    return Layer(planes, Pyramid(_drawable(planes[:, :, 0])), 0, display, part)


def _place(part: Box, plane: Plane, volume: Volume) -> QRectF:
    """Return where the voxels of a box lie in a slice."""
    shape = volume.voxels.shape
    last = [first + side - 1 for first, side in zip(part.first, part.sides, strict=True)]
    corners = plane.place(part.first, shape), plane.place((last[0], last[1], last[2]), shape)
    (left, right), (top, bottom) = (sorted(both) for both in zip(*corners, strict=True))
    return QRectF(left, top, right + 1 - left, bottom + 1 - top)
