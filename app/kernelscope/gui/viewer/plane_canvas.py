"""The drawing area of one plane, that of a picture or a slice of a volume.

Paints the visible part, and takes mouse and keys to the pair. Input and output may share the
canvas, divided by a line::

    points of the widget --to_scene--> pixels of the plane, where regions are drawn
                         --to_units--> millimetres of a slice, where the camera works
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSizeF, Qt
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFont,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from kernelscope.gui.model.display import Arrangement, PaneSide
from kernelscope.gui.model.figure import round_length
from kernelscope.gui.session.canvas_view import CanvasView
from kernelscope.gui.viewer import marks
from kernelscope.gui.viewer.layer import Layer
from kernelscope.gui.viewer.region_tool import ARROWS, RegionTool, Touch
from kernelscope.gui.widgets import theme
from kernelscope.images.lengths import in_words

if TYPE_CHECKING:
    from kernelscope.gui.viewer.pair_view import PairView

_NOTCH = 120  # angle that Qt reports for one notch of a mouse wheel, in eighths of a degree

_PAGE = 10

_STEPS: dict[int, int] = {
    Qt.Key.Key_Up: 1,
    Qt.Key.Key_Right: 1,
    Qt.Key.Key_Down: -1,
    Qt.Key.Key_Left: -1,
    Qt.Key.Key_PageUp: _PAGE,
    Qt.Key.Key_PageDown: -_PAGE,
}
"""Slices by which a key goes on."""

_GRIP = 7  # pixels on each side of the divide at which it can be taken

_DIVIDES: dict[int, float] = {Qt.Key.Key_BracketLeft: -0.02, Qt.Key.Key_BracketRight: 0.02}


_GAP = 8  # pixels of the crosshair left out around its centre, so that the voxel can be seen

_CROSS = QColor(61, 174, 233, 200)
_LETTER = QColor(255, 208, 96)
_MARGIN = 4  # pixels between the edge and the text there


@dataclass(frozen=True)
class Probe:
    """A pixel of the plane that is read off, and the lines written beside it."""

    x: int
    y: int
    lines: tuple[marks.ProbeLine, ...] = ()


class PlaneCanvas(QWidget):
    """Draws one plane, or two divided by a line, with all that lies over them.

    Leaves acting on mouse and keys to the `pair`. `side`: the picture or volume that
    this canvas is for. `plane`: its number in a volume, through whose slices wheel and keys go;
    None for a picture, which they move and magnify.
    """

    def __init__(self, pair: PairView, side: PaneSide, plane: int | None = None) -> None:
        super().__init__()
        self.pair, self.side, self.plane, self.number = pair, side, plane, plane or 0
        self.is_deep = plane is not None  # whether wheel, keys and clicks lead to other slices
        self.front: Layer | None = None
        self.behind: Layer | None = None
        """The picture on the other side of the line, in a divided arrangement."""
        self.arrangement = Arrangement.SIDE_BY_SIDE
        self.divide = 0.5  # place of the line, as a share of the width or height
        self.names = "Input", "Output"  # written on the two sides of the line
        self.name = ""  # written into the corner, where the picture is not the one of the heading
        self.note = ""  # written into the lower left corner
        self.cross: tuple[int, int] | None = None  # column and row of the crosshair
        self.letters = ""  # of the directions, as in `Plane`
        self.unit = 0.0  # millimetres of a unit of the scene; with 0 there is no scale bar
        self.probe: Probe | None = None
        self.magnified = False  # whether a magnifier is drawn at the probe
        self.regions: RegionTool | None = None  # draws over the picture
        self.tool: RegionTool | None = None  # takes the left button and the keys
        self._spacing = QSizeF(1, 1)
        self._centre, self._scale = QPointF(), 1.0
        self._pixmap = QPixmap()
        self._is_current = False
        self._scene: object = None
        """The pictures and their arrangement as `refresh` last found them."""
        self._wheel = 0
        self._from = QPointF()
        self._taken = ""
        """The use of the button that is down: “divide”, “tool”, “left”, “middle” or “right”."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setCursor(Qt.CursorShape.CrossCursor)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.setMinimumSize(80, 60)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    # --- state ---

    def redraw(self) -> None:
        self._is_current = False
        self.update()

    def show_layers(
        self, front: Layer | None, behind: Layer | None, view: CanvasView, names: tuple[str, str]
    ) -> None:
        self.front, self.behind, self.names = front, behind, names
        self.arrangement, self.divide = view.panes.arrangement, view.divide
        self.refresh()

    def refresh(self) -> None:
        layers = (self.front, self.behind)
        revisions = [layer.revision if layer is not None else 0 for layer in layers]
        texts = self.name, self.names, self.note, self.letters
        aids = self.cross, self.unit
        scene = layers, revisions, self.arrangement, self.divide, texts, aids
        if scene != self._scene:
            self._scene = scene
            self.redraw()

    def set_camera(self, centre: QPointF, scale: float) -> None:
        if (centre, scale) != (self._centre, self._scale):
            self._centre, self._scale = centre, scale
            self.redraw()

    def set_spacing(self, across: float, down: float) -> None:
        self._spacing = QSizeF(across, down)
        self.redraw()

    def set_probe(self, probe: Probe | None) -> None:
        if probe != self.probe:
            self.probe = probe
            self.update()

    @property
    def camera(self) -> tuple[QPointF, float]:
        return self._centre, self._scale

    @property
    def has_picture(self) -> bool:
        return bool(self._rooms())

    @property
    def cell(self) -> QSizeF:
        return self._spacing * self._scale

    def to_scene(self, point: QPointF) -> QPointF:
        origin, cell = self._origin(), self.cell
        return origin + QPointF(point.x() / cell.width(), point.y() / cell.height())

    def to_widget(self, point: QPointF) -> QPointF:
        way, cell = point - self._origin(), self.cell
        return QPointF(way.x() * cell.width(), way.y() * cell.height())

    def to_units(self, point: QPointF) -> QPointF:
        # Without the rounding of `to_scene`, which would add up.
        middle = QPointF(self.width(), self.height()) / 2
        return self._centre + (point - middle) / self._scale

    def point_of(self, column: int, row: int) -> QPointF:
        """Return the middle of a pixel, where it is drawn."""
        return self.to_widget(QPointF(column + 0.5, row + 0.5))

    def seen(self) -> QRectF:
        return QRectF(self.to_scene(QPointF()), self.to_scene(QPointF(self.width(), self.height())))

    def _origin(self) -> QPointF:
        """Return the scene point in the upper left corner; whole multiples hit whole pixels."""

        def first(centre: float, side: int, cell: float, spacing: float) -> float:
            origin = centre / spacing - side / (2 * cell)
            device = cell * self.devicePixelRatioF()
            whole = device >= 1 and device == round(device)
            return round(origin * device) / device if whole else origin

        cell, spacing = self.cell, self._spacing
        return QPointF(
            first(self._centre.x(), self.width(), cell.width(), spacing.width()),
            first(self._centre.y(), self.height(), cell.height(), spacing.height()),
        )

    # --- the line between input and output ---

    @property
    def is_divided(self) -> bool:
        return self.arrangement.is_divided and self.behind is not None

    @property
    def is_upright(self) -> bool:
        return self.arrangement is Arrangement.SWIPE

    @property
    def line(self) -> float:
        """Where the line is drawn, on a whole pixel."""
        return float(round(self.divide * (self.width() if self.is_upright else self.height())))

    def halves(self) -> tuple[QRectF, QRectF]:
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
        self._draw_cross(painter)
        self._draw_regions(painter)
        self._draw_names(painter)
        self._draw_letters(painter)
        self._draw_scale_bar(painter)
        self._draw_probe(painter)
        if self.hasFocus():
            painter.setPen(self.palette().color(QPalette.ColorRole.Highlight))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        painter.end()

    def _draw_pictures(self, ratio: float) -> None:
        self._pixmap.setDevicePixelRatio(1)
        self._pixmap.fill(theme.canvas_ground(self.palette()))
        painter = QPainter(self._pixmap)
        cell = self.cell * ratio
        for layer, room in self._rooms():
            device = QRect(
                round(room.x() * ratio),
                round(room.y() * ratio),
                round(room.right() * ratio) - round(room.x() * ratio),
                round(room.bottom() * ratio) - round(room.y() * ratio),
            )
            origin = self._origin()
            origin += QPointF(device.x() / cell.width(), device.y() / cell.height())
            painter.setClipRect(device)
            layer.paint(painter, origin, cell, device, self.pair.order)
            if min(cell.width(), cell.height()) >= marks.GRID_FROM:
                self._draw_values(painter, layer, origin, cell, device)
        painter.end()

    def _rooms(self) -> list[tuple[Layer, QRectF]]:
        front = [self.front] if self.front is not None else []
        if self.behind is None or not self.is_divided:
            return [(layer, QRectF(self.rect())) for layer in front]
        first, second = self.halves()
        return [(self.behind, first), *((layer, second) for layer in front)]

    def _draw_values(
        self, painter: QPainter, layer: Layer, origin: QPointF, cell: QSizeF, room: QRect
    ) -> None:
        def place(point: QPointF) -> QPointF:
            way = point - origin
            across, down = way.x() * cell.width(), way.y() * cell.height()
            return QPointF(room.topLeft()) + QPointF(across, down)

        size = QSizeF(room.width() / cell.width(), room.height() / cell.height())
        seen = QRectF(origin, size).intersected(layer.area)
        if seen.isEmpty():
            return
        marks.draw_grid(painter, seen, place)
        columns = range(math.floor(seen.left()), math.ceil(seen.right()))
        rows = range(math.floor(seen.top()), math.ceil(seen.bottom()))
        texts = {(x, y): self.pair.cell(layer, x, y) for y in rows for x in columns}
        most = max(map(len, texts.values()))
        words = [word for text in texts.values() for word in text]
        font = marks.value_font(self.font(), words, most, cell) if most else None
        if font is None:
            return
        painter.setFont(font)
        ground = self._pixmap.toImage()
        for (x, y), text in texts.items():
            corner = place(QPointF(x, y))
            x_inside = min(max(round(corner.x() + 2), 0), ground.width() - 1)
            y_inside = min(max(round(corner.y() + 2), 0), ground.height() - 1)
            colour = ground.pixelColor(x_inside, y_inside)
            marks.draw_value(painter, QRectF(corner, cell), "\n".join(text), colour)

    def _draw_regions(self, painter: QPainter) -> None:
        if self.regions is None or not self.has_picture:
            return
        cell = self.cell
        painter.save()
        painter.setFont(self.font())
        painter.translate(self.to_widget(QPointF()))
        painter.scale(cell.width(), cell.height())
        self.regions.paint(painter, self.plane)
        painter.restore()

    def _draw_cross(self, painter: QPainter) -> None:
        if self.cross is None or self.front is None:
            return
        cell = self.cell
        if min(cell.width(), cell.height()) >= marks.GRID_FROM:  # lines would cross the values
            painter.setPen(QPen(_CROSS, 2))
            painter.drawRect(QRectF(self.to_widget(QPointF(*self.cross)), cell))
            return
        centre, area, room = self.point_of(*self.cross), self.front.area, QRectF(self.rect())
        x, y = round(centre.x()), round(centre.y())
        # Filled and cut off: Qt takes a millisecond for a long line that is half transparent.
        drawn = QRectF(self.to_widget(area.topLeft()), self.to_widget(area.bottomRight())) & room
        for start, stop in ((drawn.left(), x - _GAP), (x + _GAP, drawn.right())):
            painter.fillRect(QRectF(start, y, max(stop - start, 0), 1), _CROSS)
        for start, stop in ((drawn.top(), y - _GAP), (y + _GAP, drawn.bottom())):
            painter.fillRect(QRectF(x, start, 1, max(stop - start, 0)), _CROSS)

    def _draw_letters(self, painter: QPainter) -> None:
        if self.front is None or not self.letters:
            return
        font = QFont(self.font())
        font.setBold(True)
        painter.setFont(font)
        room = QRectF(self.rect()).adjusted(_MARGIN, _MARGIN, -_MARGIN, -_MARGIN)
        for letter, side in zip(self.letters, marks.SIDES, strict=False):
            if self.is_divided:  # the line would cross it
                place = painter.boundingRect(room, side, letter).adjusted(-1, 0, 2, 0)
                painter.fillRect(place, theme.canvas_ground(self.palette()))
            painter.setPen(QColor("black"))  # a shadow: the ground may be light or dark
            painter.drawText(room.translated(1, 1), side, letter)
            painter.setPen(_LETTER)
            painter.drawText(room, side, letter)
        painter.setFont(self.font())

    def _draw_scale_bar(self, painter: QPainter) -> None:
        """Draw a round length of at most a quarter of the width in the lower right corner."""
        if self.front is None or not self.unit:
            return
        scale = self._scale / self.unit  # screen pixels a millimetre
        length = round_length(self.width() / 4 / scale)
        corner = QPointF(self.width() - 2 * _MARGIN, self.height() - 2 * _MARGIN)
        marks.draw_scale_bar(painter, corner, length * scale, in_words([length]))

    def _draw_names(self, painter: QPainter) -> None:
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
        if self.note:
            below = QPointF(_MARGIN, self.height() - _MARGIN - self.fontMetrics().height() - 4)
            marks.draw_name(painter, self.note, below, right=False, room=room)

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
            reach = marks.LENS / 2 - 10 if self.magnified else 0
            taken = cell.adjusted(-reach, -reach, reach, reach)
            marks.draw_chip(painter, taken, room, probe.lines)

    def _draw_lens(self, painter: QPainter, middle: QPointF, probe: Probe) -> None:
        """Draw the surroundings of the probe larger; the pixel that is read off is marked."""
        device = self.cell * self.devicePixelRatioF()
        least = min(device.width(), device.height())
        factor = max(marks.LENS_FACTOR, marks.LENS_LEAST / least)
        cell = device * (round(factor * least) / least)
        centre = QPointF(probe.x + 0.5, probe.y + 0.5)

        def draw(inner: QPainter, room_in_lens: QRect) -> None:
            half = QPointF(
                room_in_lens.width() / cell.width(), room_in_lens.height() / cell.height()
            )
            for layer, room in self._rooms():
                if room.contains(middle):
                    layer.paint(inner, centre - half / 2, cell, room_in_lens, self.pair.order)

        ground = theme.canvas_ground(self.palette())
        marks.draw_lens(painter, middle, ground, cell, draw)

    # --- mouse ---

    def set_tool(self, tool: RegionTool | None) -> None:
        self.tool = tool
        self._choose_cursor(QPointF(self.mapFromGlobal(self.cursor().pos())))

    def _touch(self, event: QMouseEvent) -> Touch:
        point, cell = self.to_scene(event.position()), self.cell
        aspect = cell.height() / cell.width()
        return Touch(point, cell.width(), self.plane, aspect)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.pair.activate(self)
        self._from, tool = event.position(), self.tool
        left = event.button() == Qt.MouseButton.LeftButton
        if left and self._is_at_line(event.position()):
            self._taken = "divide"
        elif left and tool is not None:
            self._taken = "tool"
            tool.press(self._touch(event))
        elif left or event.button() == Qt.MouseButton.MiddleButton:
            self._taken = "left" if left else "middle"
            self._drag(self._taken, event.position(), QPointF())
        elif event.button() == Qt.MouseButton.RightButton:
            self._taken = "right"

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        point, way, tool = event.position(), event.position() - self._from, self.tool
        self._from = point
        match self._taken:
            case "divide":
                size = self.width() if self.is_upright else self.height()
                self.pair.view.set_divide(self._along(point) / max(size, 1))
            case "tool" if tool is not None:
                tool.drag(self._touch(event))
            case "left" | "middle":
                self._drag(self._taken, point, way)
            case "right":
                self.pair.view.drag(self.side, way.x(), -way.y())
            case "":
                self._choose_cursor(point)
                if tool is not None:
                    tool.hover(self._touch(event))
        self.pair.hover(self.number, self.to_scene(point) if self.has_picture else None)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        tool = self.tool
        if self._taken == "tool" and tool is not None:
            tool.release(self._touch(event))
        self._taken = ""
        self._choose_cursor(event.position())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        left = event.button() == Qt.MouseButton.LeftButton
        if left and self.tool is None and not self._is_at_line(event.position()):
            self.pair.alternate(self.number)

    def leaveEvent(self, event: QEvent) -> None:
        self.pair.hover(self.number, None)

    def _choose_cursor(self, point: QPointF) -> None:
        cursor = self.tool.cursor if self.tool is not None else Qt.CursorShape.CrossCursor
        if self._is_at_line(point):
            upright = self.is_upright
            cursor = Qt.CursorShape.SplitHCursor if upright else Qt.CursorShape.SplitVCursor
        if self.cursor().shape() != cursor:
            self.setCursor(cursor)

    def _drag(self, button: str, point: QPointF, way: QPointF) -> None:
        if button == "left" and self.is_deep:
            if self.has_picture:
                place = self.to_scene(point)
                self.pair.point(self.number, math.floor(place.x()), math.floor(place.y()))
        elif way.isNull():
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
        else:
            self.pair.pan(self.number, -way / self._scale)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom in a picture, or with Ctrl; go through slices: fine wheels add up to whole ones."""
        angle = event.angleDelta().y()
        if not self.is_deep or event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.pair.zoom_about(self.number, angle / _NOTCH, self.to_units(event.position()))
        else:
            self._wheel += angle
            notches = int(self._wheel / _NOTCH)
            self._wheel -= notches * _NOTCH
            if notches:
                self.pair.step(self.number, notches)
        event.accept()

    # --- keys, size ---

    def keyPressEvent(self, event: QKeyEvent) -> None:
        tool = self.tool
        if tool is not None and tool.key(event, self.plane):
            return
        arrow, modifiers = ARROWS.get(event.key()), event.modifiers()
        ctrl = Qt.KeyboardModifier.ControlModifier
        if event.key() == Qt.Key.Key_Space:
            if not event.isAutoRepeat():
                self.pair.view.hold_input(True)
        elif event.key() in _DIVIDES and self.is_divided:
            self.pair.view.set_divide(self.divide + _DIVIDES[event.key()])
        elif arrow is not None and modifiers & Qt.KeyboardModifier.ShiftModifier:
            far = 10 if modifiers & ctrl else 1
            self.pair.move_probe(self.number, far * arrow[0], far * arrow[1])
        elif self.is_deep and event.key() in _STEPS and not modifiers & ctrl:
            self.pair.step(self.number, _STEPS[event.key()])
        elif arrow is not None:  # a tenth of the view
            across, down = arrow[0] * self.width(), arrow[1] * self.height()
            self.pair.pan(self.number, QPointF(across, down) / (10 * self._scale))
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() != Qt.Key.Key_Space:
            super().keyReleaseEvent(event)
        elif not event.isAutoRepeat():
            self.pair.view.hold_input(False)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self.pair.view.hold_input(False)  # the release of the key goes elsewhere
        super().focusOutEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.pair.apply_camera()
