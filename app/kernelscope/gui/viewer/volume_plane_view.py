"""One plane through a volume, with its crosshair."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRect, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from kernelscope.gui.model.arrangement import Arrangement
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.viewer import marks
from kernelscope.gui.viewer.camera import ZOOM_STEP
from kernelscope.gui.viewer.plane_canvas import NOTCH, PlaneCanvas
from kernelscope.gui.viewer.slices import Drawn, layer_of, picture_of
from kernelscope.gui.viewer.tools import Tool
from kernelscope.gui.widgets import theme

_GAP = 8  # pixels of the crosshair left out around its centre, so that the voxel can be seen

_CROSS = QColor(61, 174, 233, 200)
_LETTER = QColor(255, 208, 96)
_MARGIN = 4

_PAGE = 10

_STEPS: dict[int, int] = {
    Qt.Key.Key_Up: 1,
    Qt.Key.Key_Right: 1,
    Qt.Key.Key_Down: -1,
    Qt.Key.Key_Left: -1,
    Qt.Key.Key_PageUp: _PAGE,
    Qt.Key.Key_PageDown: -_PAGE,
}


class PlaneView(PlaneCanvas):
    """Draws a slice with its crosshair.

    Painted directly: six of these follow the mouse at once, and each shows one small picture, two
    lines and four letters.
    """

    pressed = Signal()  # a button of the mouse went down
    pointed = Signal(int, int)  # a column and a row of the slice were clicked or dragged to
    stepped = Signal(int)  # by a number of slices
    panned = Signal(float, float)
    """The middle button was dragged: pixels to the right and downwards."""
    zoomed = Signal(float, object)
    """`float, object`: Magnify by a factor, about a QPointF of this widget."""

    def __init__(
        self, name: str, number: int, side: PaneSide, parent: QWidget | None = None
    ) -> None:
        super().__init__(side, parent, number)
        self.setObjectName(name)
        self.image: QImage | None = None
        self.behind: QImage | None = None
        """The input, painted on its side of the line between input and output."""
        self.note = ""  # written into the lower left corner
        self._layer: QImage | None = None
        self._probe: tuple[tuple[int, int], tuple[marks.ProbeLine, ...]] | None = None
        self._cross = (0, 0)
        self._letters = ""
        self._area = QRectF()
        self._wheel = 0
        self.setMinimumSize(100, 80)

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
        self.arrangement, self.divide = arrangement, share
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

    @property
    def has_picture(self) -> bool:
        return self.image is not None and not self._area.isEmpty()

    @property
    def has_behind(self) -> bool:
        return self.behind is not None

    @property
    def cell(self) -> QSizeF:
        assert self.image is not None
        return QSizeF(
            self._area.width() / self.image.width(), self._area.height() / self.image.height()
        )

    def to_scene(self, point: QPointF) -> QPointF:
        cell, offset = self.cell, point - self._area.topLeft()
        return QPointF(offset.x() / cell.width(), offset.y() / cell.height())

    def to_widget(self, point: QPointF) -> QPointF:
        cell = self.cell
        return self._area.topLeft() + QPointF(point.x() * cell.width(), point.y() * cell.height())

    def usable_tool(self) -> Tool | None:
        return self.tool if self.has_picture else None

    def place_under(self, point: QPointF) -> tuple[int, int] | None:
        """Return the column and row at a point, outside of the slice too; None without one."""
        if not self.has_picture:
            return None
        place = self.to_scene(point)
        return math.floor(place.x()), math.floor(place.y())

    def point_of(self, column: int, row: int) -> QPointF:
        """Return the middle of a place, where it is drawn."""
        return self.to_widget(QPointF(column + 0.5, row + 0.5))

    def seen(self) -> QRectF:
        if self.image is None or not self.has_picture:
            return QRectF()
        corners = self.to_scene(QPointF()), self.to_scene(QPointF(self.width(), self.height()))
        whole = QRectF(0, 0, self.image.width(), self.image.height())
        return QRectF(*corners).intersected(whole)

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
            self.draw_overlays(painter)
            self._draw_letters(painter)
            self._draw_probe(painter)
            if self.note:
                self._draw_note(painter)
        self.draw_focus(painter)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.pressed.emit()
        super().mousePressEvent(event)

    def drag(self, button: str, point: QPointF, way: QPointF) -> None:
        place = self.place_under(point)
        if button == "middle":
            self.panned.emit(way.x(), way.y())
        elif place is not None:
            self.pointed.emit(*place)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Turn through the slices, or zoom with Ctrl; fine wheels add up to whole notches."""
        self._wheel += event.angleDelta().y()
        notches = int(self._wheel / NOTCH)
        self._wheel -= notches * NOTCH
        if notches and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoomed.emit(ZOOM_STEP**notches, event.position())
        elif notches:
            self.stepped.emit(notches)
        event.accept()

    def press_key(self, event: QKeyEvent) -> bool:
        step = _STEPS.get(event.key())
        if step is not None:
            self.stepped.emit(step)
        return step is not None

    # --- painting ---

    def _draw_behind(self, painter: QPainter) -> None:
        """Draw the input on its side of the line, and the line."""
        if not self.is_divided or self.behind is None:
            return
        part, _ = self.halves()
        painter.save()
        painter.setClipRect(part)
        painter.fillRect(part, theme.canvas_ground(self.palette()))
        painter.drawImage(self._area, self.behind)
        painter.restore()
        painter.save()
        marks.draw_divide(painter, self.line, QRectF(self.rect()), upright=self.is_upright)
        painter.restore()

    def _draw_probe(self, painter: QPainter) -> None:
        if self._probe is None or self.image is None:
            return
        place, lines = self._probe
        cell = QRectF(QPointF(), self.cell)
        cell.moveCenter(self.point_of(*place))
        if self.magnified:
            self._draw_lens(painter, cell)
        else:
            marks.draw_marker(painter, cell)
        if lines:
            painter.setFont(self.font())
            marks.draw_chip(painter, self.beside_lens(cell), QRectF(self.rect()), lines)

    def _draw_lens(self, painter: QPainter, cell: QRectF) -> None:
        """Draw the surroundings of the probe larger; `cell` is its voxel on the screen."""
        middle, ratio = cell.center(), self.devicePixelRatioF()
        factor = ratio * marks.lens_factor(ratio * min(cell.width(), cell.height()))
        behind = self.is_divided and self.halves()[0].contains(middle)

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
