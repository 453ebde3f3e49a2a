"""The drawing area of a picture: paints its visible part, emits requests of mouse and keys."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRect, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPixmap, QWheelEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.viewer import marks
from kernelscope.gui.viewer.layer import Layer
from kernelscope.gui.viewer.plane_canvas import ARROWS, NOTCH, PlaneCanvas
from kernelscope.gui.widgets import theme


@dataclass(frozen=True)
class Probe:
    """A pixel of the scene that is read off, and the lines written beside it."""

    x: int
    y: int
    lines: tuple[marks.ProbeLine, ...] = ()


class PictureCanvas(PlaneCanvas):
    """Draws one picture, or two divided by a line, with all that lies over them.

    `behind`: the picture on the other side of the line, in a divided arrangement. `probe`: the
    pixel that is marked; see `set_probe`. `values` returns the text in a pixel's cell at high
    magnification, by layer, x and y.
    """

    panned = Signal(QPointF)  # by an offset in scene coordinates
    zoomed = Signal(float, QPointF)  # by notches, about a scene point
    wanted = Signal(object, int)  # `Pyramid, int`: A level is to be made on another thread

    def __init__(self, side: PaneSide, parent: QWidget | None = None) -> None:
        super().__init__(side, parent)
        self.front: Layer | None = None
        self.behind: Layer | None = None
        self.names = "Input", "Output"  # written on the two sides of the line
        self.name = ""  # written into the corner, where the picture is not the one of the heading
        self.values: Callable[[Layer, int, int], list[str]] = lambda layer, x, y: []
        self.probe: Probe | None = None
        self._centre, self._scale = QPointF(), 1.0
        self._pixmap = QPixmap()
        self._is_current = False
        self._scene: object = None
        """The pictures and their arrangement as `refresh` last found them."""
        self.setMinimumSize(120, 90)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    # --- state ---

    def redraw(self) -> None:
        self._is_current = False
        self.update()

    def refresh(self) -> None:
        """Draw the pictures again if a layer, its display or the arrangement has changed."""
        layers = (self.front, self.behind)
        revisions = [layer.revision if layer is not None else 0 for layer in layers]
        scene = layers, revisions, self.arrangement, self.divide, self.name, self.names
        if scene != self._scene:
            self._scene = scene
            self.redraw()

    def set_camera(self, centre: QPointF, scale: float) -> None:
        """Look at a scene point, magnified by `scale` in device-independent pixels."""
        if (centre, scale) != (self._centre, self._scale):
            self._centre, self._scale = centre, scale
            self.redraw()

    def set_probe(self, probe: Probe | None) -> None:
        """Mark a pixel and write the lines beside it."""
        if probe != self.probe:
            self.probe = probe
            self.update()

    @property
    def camera(self) -> tuple[QPointF, float]:
        """The centre, and device-independent pixels per scene pixel."""
        return self._centre, self._scale

    @property
    def room(self) -> QSizeF:
        """Size in device-independent pixels."""
        return QSizeF(self.size())

    @property
    def has_picture(self) -> bool:
        return bool(self._rooms())

    @property
    def has_behind(self) -> bool:
        return self.behind is not None

    @property
    def cell(self) -> QSizeF:
        return QSizeF(self._scale, self._scale)

    def place_under(self, point: QPointF) -> QPointF:
        """Return the scene coordinates at a point of the widget."""
        return self.to_scene(point)

    def to_scene(self, point: QPointF) -> QPointF:
        return self._origin() + point / self._scale

    def to_widget(self, point: QPointF) -> QPointF:
        return (point - self._origin()) * self._scale

    def seen(self) -> QRectF:
        size = self.room / self._scale
        return QRectF(self._origin(), size)

    def _origin(self) -> QPointF:
        """Return the scene point in the upper left corner; whole multiples hit whole pixels."""
        ratio = self.devicePixelRatioF()
        device = self._scale * ratio
        origin = self._centre - QPointF(self.width(), self.height()) / (2 * self._scale)
        if device >= 1 and device == round(device):
            return QPointF(round(origin.x() * device), round(origin.y() * device)) / device
        return origin

    # --- painting ---

    def paintEvent(self, event: QPaintEvent) -> None:
        ratio = self.devicePixelRatioF()
        size = self.size() * ratio
        if self._pixmap.size() != size:
            self._pixmap = QPixmap(size)
            self._is_current = False
        if not self._is_current:
            self._draw_pictures(ratio)
            self._is_current = True
        painter = QPainter(self)
        self._pixmap.setDevicePixelRatio(ratio)
        painter.drawPixmap(0, 0, self._pixmap)
        self.draw_overlays(painter)
        self._draw_divide(painter)
        self._draw_probe(painter)
        self.draw_focus(painter)
        painter.end()

    def _draw_pictures(self, ratio: float) -> None:
        self._pixmap.setDevicePixelRatio(1)
        self._pixmap.fill(theme.canvas_ground(self.palette()))
        painter = QPainter(self._pixmap)
        for layer, room in self._rooms():
            device = QRect(
                round(room.x() * ratio),
                round(room.y() * ratio),
                round(room.right() * ratio) - round(room.x() * ratio),
                round(room.bottom() * ratio) - round(room.y() * ratio),
            )
            origin = self._origin() + QPointF(device.topLeft()) / (self._scale * ratio)
            painter.setClipRect(device)
            layer.paint(painter, origin, self._scale * ratio, device, self.wanted.emit)
            if self._scale * ratio >= marks.GRID_FROM:
                self._draw_values(painter, layer, device, ratio)
        painter.end()

    def _rooms(self) -> list[tuple[Layer, QRectF]]:
        front = [self.front] if self.front is not None else []
        if self.behind is None or not self.is_divided:
            return [(layer, QRectF(self.rect())) for layer in front]
        first, second = self.halves()
        return [(self.behind, first), *((layer, second) for layer in front)]

    def _draw_values(self, painter: QPainter, layer: Layer, room: QRect, ratio: float) -> None:
        """Draw the grid, and the values in its cells where they can be read."""
        cell = self._scale * ratio
        origin = self._origin()

        def place(point: QPointF) -> QPointF:
            return (point - origin) * cell

        seen = QRectF(
            origin + QPointF(room.topLeft()) / cell, QSizeF(room.size()) / cell
        ).intersected(layer.area)
        if seen.isEmpty():
            return
        marks.draw_grid(painter, seen, place, cell)
        columns = range(math.floor(seen.left()), math.ceil(seen.right()))
        rows = range(math.floor(seen.top()), math.ceil(seen.bottom()))
        texts = {(x, y): self.values(layer, x, y) for y in rows for x in columns}
        most = max(map(len, texts.values()))
        words = [word for text in texts.values() for word in text]
        font = marks.value_font(self.font(), words, most, cell) if most else None
        if font is None:
            return
        painter.setFont(font)
        ground = self._pixmap.toImage()
        for (x, y), text in texts.items():
            corner = place(QPointF(x, y))
            middle = corner + QPointF(cell * 0.5, cell * 0.12)
            x_inside = min(max(round(middle.x()), 0), ground.width() - 1)
            y_inside = min(max(round(middle.y()), 0), ground.height() - 1)
            colour = ground.pixelColor(x_inside, y_inside)
            marks.draw_value(painter, QRectF(corner, QSizeF(cell, cell)), "\n".join(text), colour)

    def _draw_divide(self, painter: QPainter) -> None:
        corner, room = QPointF(8, 8), float(self.width())
        if self.is_divided:
            (first, second), line = self.names, self.line
            marks.draw_divide(painter, line, QRectF(self.rect()), upright=self.is_upright)
            if self.is_upright:
                left, right = QPointF(line - 8, 8), QPointF(line + 8, 8)
                marks.draw_name(painter, first, left, right=True, room=line)
                marks.draw_name(painter, second, right, right=False, room=room - line)
            else:
                above = QPointF(8, line - 8 - painter.fontMetrics().height() - 4)
                below = QPointF(8, line + 8)
                marks.draw_name(painter, first, above, right=False, room=room)
                marks.draw_name(painter, second, below, right=False, room=room)
        elif self.name:
            marks.draw_name(painter, self.name, corner, right=False, room=room)

    def _draw_probe(self, painter: QPainter) -> None:
        probe = self.probe
        if probe is None or not self._rooms():
            return
        corner = self.to_widget(QPointF(probe.x, probe.y))
        cell = QRectF(corner, self.cell)
        room = QRectF(self.rect()).adjusted(4, 4, -4, -4)
        if not room.intersects(cell):
            return
        if self.magnified:
            self._draw_lens(painter, cell.center(), probe)
        else:
            marks.draw_marker(painter, cell)
        if probe.lines:
            marks.draw_chip(painter, self.beside_lens(cell), room, probe.lines)

    def _draw_lens(self, painter: QPainter, middle: QPointF, probe: Probe) -> None:
        """Draw the surroundings of the probe larger; the pixel that is read off is marked."""
        ratio = self.devicePixelRatioF()
        scale = round(marks.lens_factor(self._scale * ratio) * self._scale * ratio)
        centre = QPointF(probe.x + 0.5, probe.y + 0.5)

        def draw(inner: QPainter, room_in_lens: QRect) -> None:
            for layer, room in self._rooms():
                if room.contains(middle):
                    origin = centre - QPointF(room_in_lens.width(), room_in_lens.height()) / (
                        2 * scale
                    )
                    layer.paint(inner, origin, scale, room_in_lens, self.wanted.emit)

        ground = theme.canvas_ground(self.palette())
        marks.draw_lens(painter, middle, ground, QSizeF(scale, scale), draw)

    # --- mouse and keys ---

    def drag(self, button: str, point: QPointF, way: QPointF) -> None:
        if way.isNull():
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
        else:
            self.panned.emit(-way / self._scale)

    def wheelEvent(self, event: QWheelEvent) -> None:
        # Without the rounding of `to_scene`, which would add up.
        offset = event.position() - QPointF(self.width(), self.height()) / 2
        fixed = self._centre + offset / self._scale
        self.zoomed.emit(event.angleDelta().y() / NOTCH, fixed)
        event.accept()

    def press_key(self, event: QKeyEvent) -> bool:
        arrow = ARROWS.get(event.key())
        if arrow is None:
            return False
        seen = self.seen()
        self.panned.emit(QPointF(arrow[0] * seen.width(), arrow[1] * seen.height()) / 10)
        return True
