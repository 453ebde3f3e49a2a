"""A handle below a histogram: dragged, or moved by keys while it has the focus."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QPolygonF,
)
from PySide6.QtWidgets import QWidget

from kernelscope.gui.model.histogram_plot import Handle

WIDTH, HEIGHT = 15, 17
"""In pixels; the tip is in the middle of the upper edge."""

_COARSE = 10
"""Small steps in one large step."""

_STEPS = {
    Qt.Key.Key_Left: -1,
    Qt.Key.Key_Down: -1,
    Qt.Key.Key_Right: 1,
    Qt.Key.Key_Up: 1,
    Qt.Key.Key_PageDown: -_COARSE,
    Qt.Key.Key_PageUp: _COARSE,
}

_FILLS = {Handle.LOW: "#000000", Handle.MIDDLE: "#808080", Handle.HIGH: "#ffffff"}

_TIPS = {
    Handle.LOW: "The value that is drawn black",
    Handle.MIDDLE: "Gamma: the value that is drawn in the middle between black and white",
    Handle.HIGH: "The value that is drawn white",
}


class LevelHandle(QWidget):
    """Black and white level are arrows, gamma is a diamond."""

    stepped = Signal(int)
    """Small steps, to the right if more than 0."""
    # The left button went down on it and up again.
    grabbed = Signal()
    dragged = Signal(float)
    """To this place in the parent, in pixels from the left."""
    dropped = Signal()
    reset = Signal()
    """A double click or Enter."""
    focused = Signal()
    """It has the focus or has lost it."""

    def __init__(self, handle: Handle, parent: QWidget) -> None:
        super().__init__(parent)
        self.handle = handle
        self._offset = 0.0
        self._held = False
        self.setObjectName(f"handle{handle.name.capitalize()}")
        self.setAccessibleName(str(handle))
        self.setToolTip(
            f"{_TIPS[handle]}. Drag, or use the arrow keys (Shift: larger steps); a double click "
            "or Enter chooses the contrast automatically"
        )
        self.setFixedSize(WIDTH, HEIGHT)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.SizeHorCursor)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = _STEPS.get(Qt.Key(event.key()))
        if steps is not None:
            larger = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            self.stepped.emit(steps * _COARSE if larger and abs(steps) == 1 else steps)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.reset.emit()
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._offset, self._held = event.position().x() - WIDTH / 2, True
            self.raise_()
            self.grabbed.emit()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._held:
            self.dragged.emit(self.mapToParent(event.position()).x() - self._offset)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._held and event.button() == Qt.MouseButton.LeftButton:
            self._held = False
            self.dropped.emit()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.reset.emit()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.raise_()
        self.update()
        self.focused.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()
        self.focused.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle, bottom, shoulder = WIDTH / 2, HEIGHT - 1.5, 6.5
        if self.handle is Handle.MIDDLE:
            half = HEIGHT / 2
            places = [(middle, 1.0), (12.5, half), (middle, bottom), (2.5, half)]
        else:
            places = [(middle, 1.0), (13.0, shoulder), (13.0, bottom), (2.0, bottom)]
            places.append((2.0, shoulder))
        palette = self.palette()
        role = QPalette.ColorRole.Highlight if self.hasFocus() else QPalette.ColorRole.Text
        painter.setPen(QPen(palette.color(role), 2.6 if self.hasFocus() else 1.2))
        painter.setBrush(QColor(_FILLS[self.handle]))
        painter.drawPolygon(QPolygonF([QPointF(x, y) for x, y in places]))
