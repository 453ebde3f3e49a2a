"""Mouse, keys, tools and overlays of one plane, that of a picture or a slice of a volume.

Input and output may share the canvas, divided by a line::

    points of the widget --to_scene--> pixels of the plane, where tools and overlays work
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPalette, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from kernelscope.gui.model.arrangement import Arrangement
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.viewer import marks
from kernelscope.gui.viewer.tools import Overlay, OverlayPlace, Tool, Touch

NOTCH = 120  # angle that Qt reports for one notch of a mouse wheel, in eighths of a degree

ARROWS: dict[int, tuple[int, int]] = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}

_GRIP = 7  # pixels on each side of the divide at which it can be taken

_DIVIDES: dict[int, float] = {Qt.Key.Key_BracketLeft: -0.02, Qt.Key.Key_BracketRight: 0.02}


class PlaneCanvas(QWidget):
    """Emits the requests of mouse and keys, and leaves acting on them to others.

    `side`: the picture or volume that this canvas is for. `plane`: its number in a volume.
    """

    levelled = Signal(float, float)  # the right button was dragged: pixels to the right and upwards
    divided = Signal(float)  # the line is wanted elsewhere: a share of the width or height
    hovered = Signal(object)
    """The place under the cursor, as `place_under` returns it; None when the cursor left."""
    probed = Signal(int, int)  # the keyboard moves the probe by that many pixels
    held = Signal(bool)  # the key for the input in place of the output goes down or up
    chosen = Signal()  # double-clicked
    resized = Signal()

    def __init__(
        self, side: PaneSide, parent: QWidget | None = None, plane: int | None = None
    ) -> None:
        super().__init__(parent)
        self.side, self.plane = side, plane
        self.arrangement = Arrangement.SIDE_BY_SIDE
        self.divide = 0.5  # place of the line, as a share of the width or height
        self.magnified = False  # whether a magnifier is drawn at the probe
        self.overlays: Sequence[Overlay] = ()
        self.tool: Tool | None = None
        self._from = QPointF()
        self._taken = ""
        """The use of the button that is down: “divide”, “tool”, “left”, “middle” or “right”."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setCursor(Qt.CursorShape.CrossCursor)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    # --- of subclasses ---

    @property
    def has_picture(self) -> bool:
        """Whether there is something for tools and overlays to work on."""
        raise NotImplementedError

    @property
    def has_behind(self) -> bool:
        """Whether there is a picture for the other side of the line."""
        raise NotImplementedError

    @property
    def cell(self) -> QSizeF:
        """Size of a pixel of the plane on the screen, in device-independent pixels."""
        raise NotImplementedError

    def to_scene(self, point: QPointF) -> QPointF:
        """Return the point of the plane at a point of the widget; whole numbers are edges."""
        raise NotImplementedError

    def to_widget(self, point: QPointF) -> QPointF:
        raise NotImplementedError

    def seen(self) -> QRectF:
        """Return the part of the plane that is in view."""
        raise NotImplementedError

    def place_under(self, point: QPointF) -> object:
        """Return the place of the plane that `hovered` has for a point of the widget."""
        raise NotImplementedError

    def drag(self, button: str, point: QPointF, way: QPointF) -> None:
        """Act on a drag of the “left” or the “middle” button; its press has no way yet."""
        raise NotImplementedError

    def press_key(self, event: QKeyEvent) -> bool:
        """Return whether a key was for the picture."""
        raise NotImplementedError

    # --- the line between input and output ---

    @property
    def is_divided(self) -> bool:
        return self.arrangement.is_divided and self.has_behind

    @property
    def is_upright(self) -> bool:
        return self.arrangement is Arrangement.SWIPE

    @property
    def line(self) -> float:
        """Where the line is drawn, on a whole pixel."""
        return float(round(self.divide * (self.width() if self.is_upright else self.height())))

    def halves(self) -> tuple[QRectF, QRectF]:
        """Return the room before the line and behind it."""
        first, second = QRectF(self.rect()), QRectF(self.rect())
        if self.is_upright:
            first.setRight(self.line)
            second.setLeft(self.line)
        else:
            first.setBottom(self.line)
            second.setTop(self.line)
        return first, second

    def _is_at_line(self, point: QPointF) -> bool:
        return self.is_divided and abs(self._along(point) - self.line) <= _GRIP

    def _along(self, point: QPointF) -> float:
        return point.x() if self.is_upright else point.y()

    # --- painting ---

    def draw_overlays(self, painter: QPainter) -> None:
        if not self.overlays or not self.has_picture:
            return
        cell = self.cell
        painter.save()
        painter.setFont(self.font())
        painter.translate(self.to_widget(QPointF()))
        painter.scale(cell.width(), cell.height())
        for overlay in self.overlays:
            painter.save()
            overlay.paint(painter, OverlayPlace(self.side, cell.width(), self.seen(), self.plane))
            painter.restore()
        painter.restore()

    def draw_focus(self, painter: QPainter) -> None:
        if self.hasFocus():
            painter.setPen(self.palette().color(QPalette.ColorRole.Highlight))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def beside_lens(self, cell: QRectF) -> QRectF:
        """Return the room that the marked cell takes, or the magnifier around it."""
        reach = marks.LENS / 2 - 10 if self.magnified else 0
        return cell.adjusted(-reach, -reach, reach, reach)

    # --- mouse ---

    def set_tool(self, tool: Tool | None) -> None:
        """Give the left button and the keys to a tool, or take them back."""
        self.tool = tool
        self._choose_cursor(QPointF(self.mapFromGlobal(self.cursor().pos())))

    def usable_tool(self) -> Tool | None:
        """Return the tool, where points of the widget are points of a plane."""
        return self.tool

    def _touch(self, event: QMouseEvent) -> Touch:
        point, cell = self.to_scene(event.position()), self.cell
        aspect = cell.height() / cell.width()
        return Touch(point, self.side, cell.width(), event.modifiers(), self.plane, aspect)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._from, tool = event.position(), self.usable_tool()
        left = event.button() == Qt.MouseButton.LeftButton
        if left and self._is_at_line(event.position()):
            self._taken = "divide"
        elif left and tool is not None and tool.press(self._touch(event)):
            self._taken = "tool"
        elif left or event.button() == Qt.MouseButton.MiddleButton:
            self._taken = "left" if left else "middle"
            self.drag(self._taken, event.position(), QPointF())
        elif event.button() == Qt.MouseButton.RightButton:
            self._taken = "right"

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        point, way, tool = event.position(), event.position() - self._from, self.usable_tool()
        self._from = point
        match self._taken:
            case "divide":
                size = self.width() if self.is_upright else self.height()
                self.divided.emit(self._along(point) / max(size, 1))
            case "tool" if tool is not None:
                tool.drag(self._touch(event))
            case "left" | "middle":
                self.drag(self._taken, point, way)
            case "right":
                self.levelled.emit(way.x(), -way.y())
            case "":
                self._choose_cursor(point)
                if tool is not None:
                    tool.hover(self._touch(event))
        self.hovered.emit(self.place_under(point))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        tool = self.usable_tool()
        if self._taken == "tool" and tool is not None:
            tool.release(self._touch(event))
        self._taken = ""
        self._choose_cursor(event.position())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        left = event.button() == Qt.MouseButton.LeftButton
        if left and self.tool is None and not self._is_at_line(event.position()):
            self.chosen.emit()

    def leaveEvent(self, event: QEvent) -> None:
        self.hovered.emit(None)

    def _choose_cursor(self, point: QPointF) -> None:
        cursor = self.tool.cursor if self.tool is not None else Qt.CursorShape.CrossCursor
        if self._is_at_line(point):
            upright = self.is_upright
            cursor = Qt.CursorShape.SplitHCursor if upright else Qt.CursorShape.SplitVCursor
        if self.cursor().shape() != cursor:
            self.setCursor(cursor)

    # --- keys, size ---

    def keyPressEvent(self, event: QKeyEvent) -> None:
        tool = self.usable_tool()
        if tool is not None and tool.key(event, self.plane):
            return
        arrow, modifiers = ARROWS.get(event.key()), event.modifiers()
        if event.key() == Qt.Key.Key_Space:
            if not event.isAutoRepeat():
                self.held.emit(True)
        elif event.key() in _DIVIDES and self.is_divided:
            self.divided.emit(self.divide + _DIVIDES[event.key()])
        elif arrow is not None and modifiers & Qt.KeyboardModifier.ShiftModifier:
            far = 10 if modifiers & Qt.KeyboardModifier.ControlModifier else 1
            self.probed.emit(far * arrow[0], far * arrow[1])
        elif not self.press_key(event):
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() != Qt.Key.Key_Space:
            super().keyReleaseEvent(event)
        elif not event.isAutoRepeat():
            self.held.emit(False)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self.held.emit(False)  # the release of the key goes elsewhere
        super().focusOutEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.resized.emit()
