"""One plane through a volume, with its crosshair."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFont,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from kernelscope.gui.model.arrangement import Arrangement
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.viewer import marks
from kernelscope.gui.viewer.camera import ZOOM_STEP
from kernelscope.gui.viewer.slice_images import Drawn, layer_of, picture_of
from kernelscope.gui.viewer.tools import Overlay, OverlayPlace, Tool, Touch
from kernelscope.gui.widgets import theme

_GAP = 8
"""Pixels of the crosshair left out around its centre, so that the voxel can be seen."""

_CROSS = QColor(61, 174, 233, 200)
_LETTER = QColor(255, 208, 96)
_MARGIN = 4

_GRIP = 7
"""Pixels beside the line between input and output at which it can be dragged."""

_DIVIDE_STEP = 0.05
"""Share of the picture by which a key moves that line."""

_WHEEL_STEP = 120
"""Angle that Qt reports for one notch of a mouse wheel, in eighths of a degree."""

_PAGE = 10

_ARROWS: dict[int, tuple[int, int]] = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}

_STEPS: dict[int, int] = {
    Qt.Key.Key_Up: 1,
    Qt.Key.Key_Right: 1,
    Qt.Key.Key_Down: -1,
    Qt.Key.Key_Left: -1,
    Qt.Key.Key_PageUp: _PAGE,
    Qt.Key.Key_PageDown: -_PAGE,
}


class PlaneView(QWidget):
    """Draws a slice; emits the requests of mouse and keys and leaves acting on them to others.

    Painted directly: six of these follow the mouse at once, and each shows one small picture, two
    lines and four letters. `number`: the plane that is drawn, as overlays and tools number it.
    """

    pressed = Signal()
    """A button of the mouse went down."""
    pointed = Signal(int, int)
    """A column and a row of the slice were clicked or dragged to."""
    hovered = Signal(object)
    """`object`: (column, row) under the cursor; None when it left."""
    stepped = Signal(int)
    """By a number of slices."""
    windowed = Signal(float, float)
    """The right button was dragged: pixels to the right and upwards."""
    panned = Signal(float, float)
    """The middle button was dragged: pixels to the right and downwards."""
    zoomed = Signal(float, object)
    """`float, object`: Magnify by a factor, about a QPointF of this widget."""
    chosen = Signal()
    """Double-clicked."""
    divided = Signal(float)
    """The line between input and output was moved to this share of the view."""
    held = Signal(bool)
    """Space was pressed, or released."""
    probed = Signal(int, int)
    """The keyboard moves the probe by that many columns and rows."""
    resized = Signal()

    def __init__(
        self, name: str, number: int, side: PaneSide, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.number, self.side = number, side
        self.overlays: Sequence[Overlay] = ()
        self.tool: Tool | None = None
        self.magnified = False
        """Whether a magnifier is drawn at the probe."""
        self._taken = ""
        """The use of the left button: “divide”, “tool” or “point”; empty while it is up."""
        self.image: QImage | None = None
        self.behind: QImage | None = None
        """The input, painted on its side of the line between input and output."""
        self.note = ""
        """Written into the lower left corner."""
        self._layer: QImage | None = None
        self._arrangement, self._divide = Arrangement.SIDE_BY_SIDE, 0.5
        self._probe: tuple[tuple[int, int], tuple[marks.ProbeLine, ...]] | None = None
        self._cross = (0, 0)
        self._letters = ""
        self._area = QRectF()
        self._from = QPointF()
        self._wheel = 0
        self.setMinimumSize(100, 80)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setCursor(Qt.CursorShape.CrossCursor)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)

    def show_slice(self, drawn: Drawn) -> None:
        """Draw a slice, or nothing if it has no steps."""
        self.image, self._layer = picture_of(drawn), layer_of(drawn)
        self.update()

    def show_behind(self, drawn: Drawn) -> None:
        """Draw a slice of the input on its side of the line, or none without steps."""
        self.behind = picture_of(drawn)
        self.update()

    def show_divide(self, arrangement: Arrangement, share: float) -> None:
        """Put the line between input and output at a share of the view."""
        self._arrangement, self._divide = arrangement, share
        self.update()

    def show_note(self, note: str) -> None:
        """Write into the lower left corner."""
        if note != self.note:
            self.note = note
            self.update()

    def show_probe(self, place: tuple[int, int] | None, lines: tuple[marks.ProbeLine, ...]) -> None:
        """Mark a column and row, with its values beside it; nothing for None."""
        probe = None if place is None else (place, lines)
        if probe != self._probe:
            self._probe = probe
            self.update()

    def show_marks(self, cross: tuple[int, int], letters: str) -> None:
        """Put the crosshair on a column and row; `letters` as in `Plane`."""
        self._cross, self._letters = cross, letters
        self.update()

    def set_camera(self, area: QRectF) -> None:
        """Draw the whole slice into `area`, of which parts may lie outside."""
        if area != self._area:
            self._area = area
            self.update()

    def place_at(self, point: QPointF) -> tuple[int, int] | None:
        """Return the column and row at a point, outside of the slice too; None without one."""
        if self.image is None or self._area.isEmpty():
            return None
        place = self._to_slice(point)
        return math.floor(place.x()), math.floor(place.y())

    def point_of(self, column: int, row: int) -> QPointF:
        """Return the middle of a place, where it is drawn."""
        assert self.image is not None
        return self._area.topLeft() + QPointF(
            (column + 0.5) * self._area.width() / self.image.width(),
            (row + 0.5) * self._area.height() / self.image.height(),
        )

    def seen(self) -> QRectF:
        """Return the part of the slice that is in view, in its columns and rows."""
        if self.image is None or self._area.isEmpty():
            return QRectF()
        corners = (self._to_slice(QPointF()), self._to_slice(QPointF(self.width(), self.height())))
        whole = QRectF(0, 0, self.image.width(), self.image.height())
        return QRectF(*corners).intersected(whole)

    def _to_slice(self, point: QPointF) -> QPointF:
        """Return the point of the slice at a point of the view; whole numbers are edges."""
        cell, offset = self._cell, point - self._area.topLeft()
        return QPointF(offset.x() / cell.width(), offset.y() / cell.height())

    @property
    def _cell(self) -> QSizeF:
        """The size of a voxel on the screen."""
        assert self.image is not None
        return QSizeF(
            self._area.width() / self.image.width(), self._area.height() / self.image.height()
        )

    # --- Qt ---

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.canvas_ground(self.palette()))
        if self.image is not None:
            smaller = self._area.width() < self.image.width()
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, smaller)
            painter.drawImage(self._area, self.image)
            if self._layer is not None:
                painter.drawImage(self._area, self._layer)
            self._draw_behind(painter)
            self._draw_cross(painter)
            self._draw_overlays(painter)
            self._draw_letters(painter)
            self._draw_probe(painter)
            if self.note:
                self._draw_note(painter)
        if self.hasFocus():
            painter.setPen(self.palette().color(QPalette.ColorRole.Highlight))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.resized.emit()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._from = event.position()
        self.pressed.emit()
        if event.button() == Qt.MouseButton.LeftButton:
            if self._on_line(event.position()):
                self._taken = "divide"
            elif self._has_tool and self.tool is not None and self.tool.press(self._touch(event)):
                self._taken = "tool"
            else:
                self._taken = "point"
                self._point(event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        way = event.position() - self._from
        if event.buttons() & Qt.MouseButton.LeftButton:
            if self._taken == "divide":
                self.divided.emit(self._share(event.position()))
            elif self._taken == "tool" and self.tool is not None:
                self.tool.drag(self._touch(event))
            elif self._taken == "point":
                self._point(event.position())
        elif event.buttons() & Qt.MouseButton.RightButton:
            self.windowed.emit(way.x(), -way.y())
        elif event.buttons() & Qt.MouseButton.MiddleButton:
            self.panned.emit(way.x(), way.y())
        elif not event.buttons():
            self.setCursor(self._shape(event.position()))
            if self._has_tool and self.tool is not None:
                self.tool.hover(self._touch(event))
        self._from = event.position()
        self.hovered.emit(self.place_at(event.position()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            if self._taken == "tool" and self.tool is not None:
                self.tool.release(self._touch(event))
            self._taken = ""

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.tool is None:
            self.chosen.emit()

    @property
    def _has_tool(self) -> bool:
        """Whether a tool can be used: there is a slice to use it on."""
        return self.tool is not None and self.image is not None and not self._area.isEmpty()

    def _touch(self, event: QMouseEvent) -> Touch:
        cell = self._cell
        return Touch(
            self._to_slice(event.position()),
            self.side,
            cell.width(),
            event.modifiers(),
            self.number,
            cell.height() / cell.width(),
        )

    def leaveEvent(self, event: QEvent) -> None:
        self.hovered.emit(None)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Turn through the slices, or zoom with Ctrl; fine wheels add up to whole notches."""
        self._wheel += event.angleDelta().y()
        notches = int(self._wheel / _WHEEL_STEP)
        self._wheel -= notches * _WHEEL_STEP
        if notches and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoomed.emit(ZOOM_STEP**notches, event.position())
        elif notches:
            self.stepped.emit(notches)
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._has_tool and self.tool is not None and self.tool.key(event, self.number):
            return
        step, arrow = _STEPS.get(event.key()), _ARROWS.get(event.key())
        modifiers = event.modifiers()
        moves = {Qt.Key.Key_BracketLeft: -_DIVIDE_STEP, Qt.Key.Key_BracketRight: _DIVIDE_STEP}
        if arrow is not None and modifiers & Qt.KeyboardModifier.ShiftModifier:
            far = 10 if modifiers & Qt.KeyboardModifier.ControlModifier else 1
            self.probed.emit(far * arrow[0], far * arrow[1])
        elif step is not None:
            self.stepped.emit(step)
        elif event.key() == Qt.Key.Key_Space:
            self.held.emit(True)
        elif self._is_divided and event.key() in moves:
            self.divided.emit(self._divide + moves[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() != Qt.Key.Key_Space:
            super().keyReleaseEvent(event)
        elif not event.isAutoRepeat():
            self.held.emit(False)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self.held.emit(False)  # the release of the key goes elsewhere
        super().focusOutEvent(event)

    # --- line between input and output ---

    @property
    def _is_divided(self) -> bool:
        return self._arrangement.is_divided and self.behind is not None

    def _line(self) -> float:
        """Return where the line is, in pixels."""
        upright = self._arrangement is Arrangement.SWIPE
        return self._divide * (self.width() if upright else self.height())

    def _share(self, point: QPointF) -> float:
        if self._arrangement is Arrangement.SWIPE:
            return point.x() / max(self.width(), 1)
        return point.y() / max(self.height(), 1)

    def _shape(self, point: QPointF) -> Qt.CursorShape:
        if not self._on_line(point):
            return Qt.CursorShape.CrossCursor
        upright = self._arrangement is Arrangement.SWIPE
        return Qt.CursorShape.SplitHCursor if upright else Qt.CursorShape.SplitVCursor

    def _on_line(self, point: QPointF) -> bool:
        place = point.x() if self._arrangement is Arrangement.SWIPE else point.y()
        return self._is_divided and abs(place - self._line()) <= _GRIP

    # --- painting ---

    def _draw_behind(self, painter: QPainter) -> None:
        """Draw the input on its side of the line, and the line."""
        if not self._is_divided or self.behind is None:
            return
        upright, room = self._arrangement is Arrangement.SWIPE, QRectF(self.rect())
        part = QRectF(room)
        if upright:
            part.setRight(self._line())
        else:
            part.setBottom(self._line())
        painter.save()
        painter.setClipRect(part)
        painter.fillRect(part, theme.canvas_ground(self.palette()))
        painter.drawImage(self._area, self.behind)
        painter.restore()
        painter.save()
        marks.draw_divide(painter, self._line(), room, upright=upright)
        painter.restore()

    def _draw_probe(self, painter: QPainter) -> None:
        if self._probe is None or self.image is None:
            return
        place, lines = self._probe
        cell = QRectF(QPointF(), self._cell)
        cell.moveCenter(self.point_of(*place))
        if self.magnified:
            self._draw_lens(painter, cell)
            reach = marks.LENS / 2 - 10
            cell = cell.adjusted(-reach, -reach, reach, reach)
        else:
            marks.draw_marker(painter, cell)
        if lines:
            painter.setFont(self.font())
            marks.draw_chip(painter, cell, QRectF(self.rect()), lines)

    def _draw_lens(self, painter: QPainter, cell: QRectF) -> None:
        """Draw the surroundings of the probe larger; `cell` is its voxel on the screen."""
        middle, ratio = cell.center(), self.devicePixelRatioF()
        factor = ratio * marks.lens_factor(ratio * min(cell.width(), cell.height()))
        upright = self._arrangement is Arrangement.SWIPE
        before = (middle.x() if upright else middle.y()) < self._line()
        behind = self._is_divided and before

        def draw(inner: QPainter, room: QRect) -> None:
            offset = (self._area.topLeft() - middle) * factor
            area = QRectF(QRectF(room).center() + offset, self._area.size() * factor)
            image = self.behind if behind else self.image
            if image is not None:
                inner.drawImage(area, image)
            if self._layer is not None and not behind:
                inner.drawImage(area, self._layer)

        ground = theme.canvas_ground(self.palette())
        marks.draw_lens(painter, middle, ground, cell.size() * factor, draw)

    def _draw_overlays(self, painter: QPainter) -> None:
        if not self.overlays or self._area.isEmpty():
            return
        cell = self._cell
        painter.save()
        painter.setFont(self.font())
        painter.translate(self._area.topLeft())
        painter.scale(cell.width(), cell.height())
        for overlay in self.overlays:
            painter.save()
            overlay.paint(painter, OverlayPlace(self.side, cell.width(), self.seen(), self.number))
            painter.restore()
        painter.restore()

    def _draw_note(self, painter: QPainter) -> None:
        painter.setFont(self.font())
        corner = QPointF(_MARGIN, self.height() - _MARGIN - self.fontMetrics().height() - 4)
        marks.draw_name(painter, self.note, corner, right=False, room=self.width())

    def _draw_cross(self, painter: QPainter) -> None:
        centre = self.point_of(*self._cross)
        x, y = centre.x(), centre.y()
        painter.setPen(QPen(_CROSS, 1))
        for start, stop in ((self._area.left(), x - _GAP), (x + _GAP, self._area.right())):
            if start < stop:
                painter.drawLine(QPointF(start, y), QPointF(stop, y))
        for start, stop in ((self._area.top(), y - _GAP), (y + _GAP, self._area.bottom())):
            if start < stop:
                painter.drawLine(QPointF(x, start), QPointF(x, stop))

    def _draw_letters(self, painter: QPainter) -> None:
        font = QFont(self.font())
        font.setBold(True)
        painter.setFont(font)
        room = QRectF(self.rect()).adjusted(_MARGIN, _MARGIN, -_MARGIN, -_MARGIN)
        centre, middle = Qt.AlignmentFlag.AlignHCenter, Qt.AlignmentFlag.AlignVCenter
        sides = (
            centre | Qt.AlignmentFlag.AlignTop,
            centre | Qt.AlignmentFlag.AlignBottom,
            middle | Qt.AlignmentFlag.AlignLeft,
            middle | Qt.AlignmentFlag.AlignRight,
        )
        for letter, side in zip(self._letters, sides, strict=False):
            painter.setPen(QColor("black"))  # a shadow: the ground may be light or dark
            painter.drawText(room.translated(1, 1), side, letter)
            painter.setPen(_LETTER)
            painter.drawText(room, side, letter)

    def _point(self, point: QPointF) -> None:
        place = self.place_at(point)
        if place is not None:
            self.pointed.emit(*place)
