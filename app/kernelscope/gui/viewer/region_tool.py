"""Regions and lines over pictures and slices: how they are drawn, and changed by mouse and keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPainterPath, QPen, QTransform

from kernelscope.engine.area import Corner
from kernelscope.gui.model.regions import Interest, Point, Regions, Shape, box_of

_GRIP = 8.0  # screen pixels around a handle within which it is taken

_HANDLE = 7.0
_EDGE = QColor(0, 0, 0, 190)
_CHIP = QColor(18, 20, 24, 215)

ARROWS: dict[int, Corner] = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}
"""How far right and down a press of an arrow key moves the part in hand."""


@dataclass(frozen=True)
class Touch:
    point: QPointF
    """Pixel (x, y) of the input, or of a slice as it is drawn, covers x to x + 1 and y to y + 1. It
    may lie outside of the picture."""
    scale: float  # screen pixels per pixel of the picture, across
    plane: int | None = None  # the plane of a volume, by its number; None for a picture
    aspect: float = 1.0  # height of a pixel of the picture over its width

    def distance(self, x: float, y: float) -> float:
        """Return how far a point is away, in screen pixels: the larger of both directions."""
        across, down = x - self.point.x(), (y - self.point.y()) * self.aspect
        return max(abs(across), abs(down)) * self.scale


class RegionTool:
    """Draws, moves and resizes regions in the views of a `PairView`.

    In a volume, each plane has regions of its own.

    A press on a handle resizes, one inside a region moves it, any other draws a new one. `redraw`
    is called when the pictures are to be painted again without a change of the regions. `leave` is
    called when Escape is pressed and nothing is being drawn. `visible` returns the part of the
    picture or slice in view, and its plane or None; Return adds a region in its middle. `shape`: of
    new regions.
    """

    cursor = Qt.CursorShape.CrossCursor

    def __init__(
        self,
        regions: Regions,
        redraw: Callable[[], None],
        leave: Callable[[], None],
        visible: Callable[[], tuple[QRectF, int | None]],
    ) -> None:
        self.shape = Shape.RECTANGLE
        self.regions, self._redraw, self._leave = regions, redraw, leave
        self._visible = visible
        self._draft: list[Corner] = []
        self._plane: int | None = None  # the plane of that polygon
        self._cursor: Corner | None = None
        self._handle = -1  # the corner of a polygon, or the end of a line, that is dragged
        self._from: Corner | None = None
        """Where a gesture began; the corner opposite to the one that is dragged."""
        self._resized = False
        self._moved: Interest | None = None

    # --- mouse ---

    def press(self, touch: Touch) -> None:
        corner = _corner(touch.point, self.shape)
        if self._draft and touch.plane == self._plane:
            self._go_on(corner, touch)
            return
        self._draft = []
        self.regions.end_act()
        chosen, handle = self.regions.chosen_in(touch.plane), self._handle_at(touch)
        if chosen is not None and handle >= 0:
            if chosen.shape in (Shape.POLYGON, Shape.LINE):
                self._handle = handle
            else:
                self._from, self._resized = chosen.opposite(handle), True
            return
        x, y, reach = touch.point.x(), touch.point.y(), _GRIP / touch.scale
        hit = self.regions.at(x, y, reach, touch.plane, touch.aspect)
        self._from = corner
        if hit >= 0:
            self.regions.choose(hit)
            self._moved = self.regions.chosen
        elif self.shape is Shape.POLYGON:
            self._draft, self._from, self._cursor = [corner], None, corner
            self._plane = touch.plane
            self._redraw()

    def drag(self, touch: Touch) -> None:
        chosen = self.regions.chosen
        taken = chosen is not None and (self._handle >= 0 or self._resized)
        corner = _corner(touch.point, chosen.shape if taken and chosen else self.shape)
        if self._moved is not None and self._from is not None:
            right, down = corner[0] - self._from[0], corner[1] - self._from[1]
            self.regions.put(self._moved.moved(right, down))
        elif self._handle >= 0 and chosen is not None:
            self.regions.put(chosen.with_corner(self._handle, corner))
        elif self._resized and chosen is not None and self._from is not None:
            self.regions.put(chosen.spanning(self._from, corner))
        elif self._from is None or self._draft or corner == self._from:
            return
        elif self.shape is Shape.LINE:
            self.regions.add(self.shape, (self._from, corner), touch.plane)
            self._from, self._handle = None, 1
        else:
            self.regions.add(self.shape, box_of(self._from, corner), touch.plane)
            self._resized = True

    def release(self, touch: Touch) -> None:
        if self._from is not None and not self._resized and self._moved is None:
            self.regions.choose(-1)  # a click beside all of them
        self._handle, self._resized, self._from, self._moved = -1, False, None, None
        self.regions.end_act()

    def hover(self, touch: Touch) -> None:
        if self._draft and touch.plane == self._plane:
            self._cursor = _corner(touch.point, self.shape)
            self._redraw()

    def _handle_at(self, touch: Touch) -> int:
        chosen = self.regions.chosen_in(touch.plane)
        for number, (x, y) in enumerate(chosen.handles if chosen is not None else ()):
            if touch.distance(x, y) <= _GRIP:
                return number
        return -1

    # --- polygons ---

    def _go_on(self, corner: Corner, touch: Touch) -> None:
        """Add a corner; at the first or at the last one the polygon is complete."""
        at = replace(touch, point=QPointF(*corner))
        for end in (self._draft[0], self._draft[-1]):
            if len(self._draft) >= 3 and at.distance(*end) <= _GRIP:
                self._finish()
                return
        if corner != self._draft[-1]:
            self._draft.append(corner)
        self._redraw()

    def _finish(self) -> None:
        corners, self._draft = tuple(self._draft), []
        if len(corners) >= 3:
            self.regions.add(Shape.POLYGON, corners, self._plane)
            self.regions.end_act()
        self._redraw()

    def drop_draft(self) -> None:
        self._draft = []
        self._redraw()

    # --- keys ---

    def key(self, event: QKeyEvent, plane: int | None = None) -> bool:
        modifiers = event.modifiers()
        step, chosen = ARROWS.get(event.key()), self.regions.chosen_in(plane)
        if step is not None and chosen is not None:
            far = 10 if modifiers & Qt.KeyboardModifier.ShiftModifier else 1
            right, down = far * step[0], far * step[1]
            if modifiers & Qt.KeyboardModifier.ControlModifier:
                self.regions.put(chosen.resized(right, down))
            else:
                self.regions.put(chosen.moved(right, down))
            return True
        match event.key():
            case Qt.Key.Key_Delete if chosen is not None:
                self.regions.remove()
            case Qt.Key.Key_Backspace if self._draft:
                self._draft.pop()
                self._redraw()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                if self._draft:
                    self._finish()
                else:
                    self.add(self.shape)
            case Qt.Key.Key_Escape:
                if self._draft:
                    self.drop_draft()
                else:
                    self._leave()
            case _:
                return False
        return True

    def add(self, shape: Shape) -> None:
        seen, plane = self._visible()
        middle = seen.center()
        across, along = max(seen.width() / 4, 1), max(seen.height() / 4, 1)
        left, top = round(middle.x() - across), round(middle.y() - along)
        right, bottom = round(middle.x() + across), round(middle.y() + along)
        corners: tuple[Corner, ...] = ((left, top), (right, bottom))
        if shape is Shape.POLYGON:
            x, y = (left + right) // 2, (top + bottom) // 2
            corners = ((x, top), (right, y), (x, bottom), (left, y))
        elif shape is Shape.LINE:
            y = math.floor(middle.y())
            corners = ((left, y), (right, y))
        self.regions.add(shape, corners, plane)
        self.regions.end_act()

    # --- painting ---

    def paint(self, painter: QPainter, plane: int | None) -> None:
        """Draw the regions of a plane; the painter is on pixels of the picture."""
        to_screen = painter.worldTransform()
        painter.resetTransform()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        chosen = self.regions.chosen_in(plane)
        for region in self.regions.all:
            if region is not chosen and region.plane == plane:
                _paint(painter, to_screen, region, chosen=False)
        if chosen is not None:
            _paint(painter, to_screen, chosen, chosen=True)
        if self._draft and plane == self._plane:
            corners = [*self._draft, *([self._cursor] if self._cursor is not None else [])]
            path = _path(to_screen, corners)
            for pen in (QPen(_EDGE, 3), QPen(QColor("#ffffff"), 1.5, Qt.PenStyle.DashLine)):
                painter.strokePath(path, pen)
            _paint_handles(painter, to_screen, self._draft)


def _corner(point: QPointF, shape: Shape) -> Corner:
    """Return the nearest corner of a pixel; for a line, the pixel."""
    if shape is Shape.LINE:
        return math.floor(point.x()), math.floor(point.y())
    return round(point.x()), round(point.y())


def _path(to_screen: QTransform, corners: Sequence[Point]) -> QPainterPath:
    points = [to_screen.map(QPointF(x, y)) for x, y in corners]
    path = QPainterPath(points[0])
    for point in points[1:]:
        path.lineTo(point)
    return path


def path_of(region: Interest) -> QPainterPath:
    if region.shape in (Shape.POLYGON, Shape.LINE):
        path = _path(QTransform(), region.handles)
        if region.shape is Shape.POLYGON:
            path.closeSubpath()
        return path
    left, top, right, bottom = region.box
    path, box = QPainterPath(), QRectF(left, top, right - left, bottom - top)
    (path.addEllipse if region.shape is Shape.ELLIPSE else path.addRect)(box)
    return path


def _paint(painter: QPainter, to_screen: QTransform, region: Interest, *, chosen: bool) -> None:
    path = to_screen.map(path_of(region))
    box = path.boundingRect()
    colour = QColor(region.colour)
    painter.strokePath(path, QPen(_EDGE, 4.5 if chosen else 3))
    painter.strokePath(path, QPen(colour, 2.5 if chosen else 1.5))
    metrics = painter.fontMetrics()
    chip = QRectF(0, 0, metrics.horizontalAdvance(region.name) + 10, metrics.height() + 2)
    if region.shape is Shape.LINE:  # beside the end where the profile begins
        start = path.elementAt(0)
        chip.moveBottomLeft(QPointF(start.x, start.y) + QPointF(-chip.width() / 2, -8))
    else:
        chip.moveBottomLeft(box.topLeft() + QPointF(0, -5))
    if chip.top() < 0:
        chip.moveTop(max(box.top() + 5, 0))
        chip.moveLeft(box.left() + 6)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(_CHIP)
    painter.drawRoundedRect(chip, 3, 3)
    painter.setPen(colour)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawText(chip, Qt.AlignmentFlag.AlignCenter, region.name)
    if chosen:
        _paint_handles(painter, to_screen, region.handles)


def _paint_handles(painter: QPainter, to_screen: QTransform, corners: Sequence[Point]) -> None:
    painter.setPen(QPen(_EDGE, 1))
    painter.setBrush(QColor("#ffffff"))
    for x, y in corners:
        handle = QRectF(0, 0, _HANDLE, _HANDLE)
        handle.moveCenter(to_screen.map(QPointF(x, y)))
        painter.drawRect(handle)
    painter.setBrush(Qt.BrushStyle.NoBrush)
