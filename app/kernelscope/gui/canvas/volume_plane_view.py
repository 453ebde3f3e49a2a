"""One plane through a volume, with its crosshair."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
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

from kernelscope.gui.canvas.camera import ZOOM_STEP
from kernelscope.gui.widgets import theme

_GAP = 8
"""Pixels of the crosshair left out around its centre, so that the voxel can be seen."""

_CROSS = QColor(61, 174, 233, 200)
_LETTER = QColor(255, 208, 96)
_MARGIN = 4

_WHEEL_STEP = 120
"""Angle that Qt reports for one notch of a mouse wheel, in eighths of a degree."""

_PAGE = 10

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

    Painted directly: six of these follow the mouse at once, and each shows one small
    picture, two lines and four letters.

    Signals
    -------
    pressed
        A button of the mouse went down.
    pointed : int, int
        A column and a row of the slice were clicked or dragged to.
    hovered : object
        (column, row) under the cursor; None when it left.
    stepped : int
        By a number of slices.
    windowed : float, float
        The right button was dragged: pixels to the right and upwards.
    panned : float, float
        The middle button was dragged: pixels to the right and downwards.
    zoomed : float, object
        Magnify by a factor, about a QPointF of this widget.
    chosen
        Double-clicked.
    resized
    """

    pressed = Signal()
    pointed = Signal(int, int)
    hovered = Signal(object)
    stepped = Signal(int)
    windowed = Signal(float, float)
    panned = Signal(float, float)
    zoomed = Signal(float, object)
    chosen = Signal()
    resized = Signal()

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.image: QImage | None = None
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

    def show_slice(self, grey: NDArray[np.uint8] | None) -> None:
        """Draw a slice, shape (rows, columns), C-ordered; nothing for None."""
        if grey is None:
            self.image = None
        else:
            rows, columns = grey.shape
            layout = QImage.Format.Format_Grayscale8
            # A copy: Qt does not keep the array alive.
            self.image = QImage(grey.data, columns, rows, columns, layout).copy()
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
        offset = point - self._area.topLeft()
        return (
            math.floor(offset.x() / self._area.width() * self.image.width()),
            math.floor(offset.y() / self._area.height() * self.image.height()),
        )

    def point_of(self, column: int, row: int) -> QPointF:
        """Return the middle of a place, where it is drawn."""
        assert self.image is not None
        return self._area.topLeft() + QPointF(
            (column + 0.5) * self._area.width() / self.image.width(),
            (row + 0.5) * self._area.height() / self.image.height(),
        )

    # --- Qt ---

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.canvas_ground(self.palette()))
        if self.image is not None:
            smaller = self._area.width() < self.image.width()
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, smaller)
            painter.drawImage(self._area, self.image)
            self._draw_cross(painter)
            self._draw_letters(painter)
        if self.hasFocus():
            painter.setPen(self.palette().color(QPalette.ColorRole.Highlight))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.resized.emit()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._from = event.position()
        self.pressed.emit()
        if event.button() == Qt.MouseButton.LeftButton:
            self._point(event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        way = event.position() - self._from
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._point(event.position())
        elif event.buttons() & Qt.MouseButton.RightButton:
            self.windowed.emit(way.x(), -way.y())
        elif event.buttons() & Qt.MouseButton.MiddleButton:
            self.panned.emit(way.x(), way.y())
        self._from = event.position()
        self.hovered.emit(self.place_at(event.position()))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.chosen.emit()

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
        step = _STEPS.get(event.key())
        if step is None:
            super().keyPressEvent(event)
        else:
            self.stepped.emit(step)

    # --- painting ---

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
