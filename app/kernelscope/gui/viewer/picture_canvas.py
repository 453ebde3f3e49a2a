"""The drawing area of a picture: paints its visible part, emits requests of mouse and keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from kernelscope.gui.model.arrangement import Arrangement
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.viewer import marks
from kernelscope.gui.viewer.layer import Layer
from kernelscope.gui.viewer.tools import Overlay, OverlayPlace, Tool, Touch
from kernelscope.gui.widgets import theme

_NOTCH = 120
"""Angle that Qt reports for one notch of a mouse wheel, in eighths of a degree."""

_GRIP = 7
"""Pixels on each side of the divide at which it can be taken."""

_ARROWS: dict[int, tuple[int, int]] = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}

_DIVIDES: dict[int, float] = {Qt.Key.Key_BracketLeft: -0.02, Qt.Key.Key_BracketRight: 0.02}


@dataclass(frozen=True)
class Probe:
    """A pixel of the scene that is read off, and the lines written beside it."""

    x: int
    y: int
    lines: tuple[marks.ProbeLine, ...] = ()


class PictureCanvas(QWidget):
    """Draws one picture, or two divided by a line, with all that lies over them.

    `side`: the picture that this canvas is for. `behind`: the picture on the other side of the
    line, in a divided arrangement. `arrangement`: whether and how the canvas is divided. `divide`:
    place of the line, as a share of the width or height. `magnified`: whether a magnifier is drawn
    at the probe. `probe`: the pixel that is marked; see `set_probe`. `values` returns the text in a
    pixel's cell at high magnification, by layer, x and y.
    """

    panned = Signal(QPointF)
    """By an offset in scene coordinates."""
    zoomed = Signal(float, QPointF)
    """By notches, about a scene point."""
    levelled = Signal(float, float)
    """The right button was dragged: pixels to the right and upwards."""
    divided = Signal(float)
    """The line is wanted elsewhere: a share of the width or height."""
    hovered = Signal(object)
    """`QPointF or None`: Scene coordinates under the cursor; None when it left."""
    probed = Signal(int, int)
    """The keyboard moves the probe by that many pixels."""
    held = Signal(bool)
    """The key for the input in place of the output goes down or up."""
    chosen = Signal()
    """Double-clicked."""
    wanted = Signal(object, int)
    """`Pyramid, int`: A level is to be made on another thread."""
    resized = Signal()

    def __init__(self, side: PaneSide, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.side = side
        self.front: Layer | None = None
        self.behind: Layer | None = None
        self.arrangement = Arrangement.SIDE_BY_SIDE
        self.divide = 0.5
        self.magnified = False
        self.names = "Input", "Output"
        """Written on the two sides of the line."""
        self.name = ""
        """Written into the corner, where the picture is not the one of the heading."""
        self.values: Callable[[Layer, int, int], list[str]] = lambda layer, x, y: []
        self.overlays: Sequence[Overlay] = ()
        self.tool: Tool | None = None
        self.probe: Probe | None = None
        self._centre, self._scale = QPointF(), 1.0
        self._pixmap = QPixmap()
        self._is_current = False
        self._scene: object = None
        """The pictures and their arrangement as `refresh` last found them."""
        self._from = QPointF()
        self._taken = ""
        self.setMinimumSize(120, 90)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setCursor(Qt.CursorShape.CrossCursor)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
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

    def set_tool(self, tool: Tool | None) -> None:
        """Give the left button and the keys to a tool, or take them back."""
        self.tool = tool
        self._choose_cursor(QPointF(self.mapFromGlobal(self.cursor().pos())))

    @property
    def camera(self) -> tuple[QPointF, float]:
        """The centre, and device-independent pixels per scene pixel."""
        return self._centre, self._scale

    @property
    def room(self) -> QSizeF:
        """Size in device-independent pixels."""
        return QSizeF(self.size())

    def to_scene(self, point: QPointF) -> QPointF:
        return self._origin() + point / self._scale

    def to_widget(self, point: QPointF) -> QPointF:
        return (point - self._origin()) * self._scale

    def seen(self) -> QRectF:
        """Return the part of the scene that is in view."""
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
        self._draw_overlays(painter)
        self._draw_divide(painter)
        self._draw_probe(painter)
        if self.hasFocus():
            painter.setPen(self.palette().color(QPalette.ColorRole.Highlight))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
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
        whole = QRectF(self.rect())
        if self.behind is None or not self.arrangement.is_divided:
            return [(self.front, whole)] if self.front is not None else []
        first, second = QRectF(whole), QRectF(whole)
        if self.arrangement is Arrangement.SWIPE:
            first.setRight(self._line)
            second.setLeft(self._line)
        else:
            first.setBottom(self._line)
            second.setTop(self._line)
        rooms = [(self.behind, first)]
        return [*rooms, (self.front, second)] if self.front is not None else rooms

    @property
    def _line(self) -> float:
        """Where the divide is drawn, on a whole pixel."""
        upright = self.arrangement is Arrangement.SWIPE
        return float(round(self.divide * (self.width() if upright else self.height())))

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

    def _draw_overlays(self, painter: QPainter) -> None:
        if not self.overlays or not self._rooms():
            return
        painter.save()
        painter.translate(self.to_widget(QPointF()))
        painter.scale(self._scale, self._scale)
        for overlay in self.overlays:
            painter.save()
            overlay.paint(painter, OverlayPlace(self.side, self._scale, self.seen()))
            painter.restore()
        painter.restore()

    def _draw_divide(self, painter: QPainter) -> None:
        corner, room = QPointF(8, 8), float(self.width())
        if self.arrangement.is_divided and self.behind is not None:
            first, second = self.names
            upright = self.arrangement is Arrangement.SWIPE
            marks.draw_divide(painter, self._line, QRectF(self.rect()), upright=upright)
            if upright:
                line = self._line
                left, right = QPointF(line - 8, 8), QPointF(line + 8, 8)
                marks.draw_name(painter, first, left, right=True, room=line)
                marks.draw_name(painter, second, right, right=False, room=room - line)
            else:
                above = QPointF(8, self._line - 8 - painter.fontMetrics().height() - 4)
                below = QPointF(8, self._line + 8)
                marks.draw_name(painter, first, above, right=False, room=room)
                marks.draw_name(painter, second, below, right=False, room=room)
        elif self.name:
            marks.draw_name(painter, self.name, corner, right=False, room=room)

    def _draw_probe(self, painter: QPainter) -> None:
        probe = self.probe
        if probe is None or not self._rooms():
            return
        corner = self.to_widget(QPointF(probe.x, probe.y))
        cell = QRectF(corner, QSizeF(self._scale, self._scale))
        room = QRectF(self.rect()).adjusted(4, 4, -4, -4)
        if not room.intersects(cell):
            return
        if self.magnified:
            self._draw_lens(painter, cell.center(), probe)
            reach = marks.LENS / 2 - 10
            cell = cell.adjusted(-reach, -reach, reach, reach)
        else:
            marks.draw_marker(painter, cell)
        if probe.lines:
            marks.draw_chip(painter, cell, room, probe.lines)

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

    # --- mouse ---

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._from = event.position()
        left = event.button() == Qt.MouseButton.LeftButton
        if left and self._is_at_line(event.position()):
            self._taken = "divide"
        elif left and self.tool is not None and self.tool.press(self._touch(event)):
            self._taken = "tool"
        elif left or event.button() == Qt.MouseButton.MiddleButton:
            self._taken = "pan"
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
        elif event.button() == Qt.MouseButton.RightButton:
            self._taken = "level"

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        way = event.position() - self._from
        self._from = event.position()
        match self._taken:
            case "divide":
                upright = self.arrangement is Arrangement.SWIPE
                at = event.position()
                self.divided.emit(at.x() / self.width() if upright else at.y() / self.height())
            case "tool" if self.tool is not None:
                self.tool.drag(self._touch(event))
            case "pan":
                self.panned.emit(-way / self._scale)
            case "level":
                self.levelled.emit(way.x(), -way.y())
        if not self._taken:
            self._choose_cursor(event.position())
            if self.tool is not None:
                self.tool.hover(self._touch(event))
        self.hovered.emit(self.to_scene(event.position()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._taken == "tool" and self.tool is not None:
            self.tool.release(self._touch(event))
        self._taken = ""
        self._choose_cursor(event.position())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        left = event.button() == Qt.MouseButton.LeftButton
        if left and self.tool is None and not self._is_at_line(event.position()):
            self.chosen.emit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        # Without the rounding of `to_scene`, which would add up.
        offset = event.position() - QPointF(self.width(), self.height()) / 2
        fixed = self._centre + offset / self._scale
        self.zoomed.emit(event.angleDelta().y() / _NOTCH, fixed)
        event.accept()

    def leaveEvent(self, event: QEvent) -> None:
        self.hovered.emit(None)

    def _touch(self, event: QMouseEvent) -> Touch:
        return Touch(self.to_scene(event.position()), self.side, self._scale, event.modifiers())

    def _is_at_line(self, point: QPointF) -> bool:
        if not self.arrangement.is_divided or self.behind is None:
            return False
        at = point.x() if self.arrangement is Arrangement.SWIPE else point.y()
        return abs(at - self._line) <= _GRIP

    def _choose_cursor(self, point: QPointF) -> None:
        cursor = self.tool.cursor if self.tool is not None else Qt.CursorShape.CrossCursor
        if self._is_at_line(point):
            upright = self.arrangement is Arrangement.SWIPE
            cursor = Qt.CursorShape.SplitHCursor if upright else Qt.CursorShape.SplitVCursor
        if self.cursor().shape() != cursor:
            self.setCursor(cursor)

    # --- keys, size ---

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self.tool is not None and self.tool.key(event):
            return
        arrow = _ARROWS.get(event.key())
        if event.key() == Qt.Key.Key_Space:
            if not event.isAutoRepeat():
                self.held.emit(True)
        elif event.key() in _DIVIDES and self.arrangement.is_divided:
            self.divided.emit(self.divide + _DIVIDES[event.key()])
        elif arrow is not None and event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            far = 10 if event.modifiers() & Qt.KeyboardModifier.ControlModifier else 1
            self.probed.emit(far * arrow[0], far * arrow[1])
        elif arrow is not None:
            seen = self.seen()
            self.panned.emit(QPointF(arrow[0] * seen.width(), arrow[1] * seen.height()) / 10)
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Space:
            if not event.isAutoRepeat():
                self.held.emit(False)
        else:
            super().keyReleaseEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self.held.emit(False)
        super().focusOutEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.resized.emit()
