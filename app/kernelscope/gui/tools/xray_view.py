"""The picture under a block: the cells that a thread, its warp and its block read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from kernelscope.gui.model.xray import Cell, Xray
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.parts import dressed
from kernelscope.traffic.trace import MemorySpace

_COLOURS = {
    MemorySpace.GLOBAL: "#ff9d3c",
    MemorySpace.SHARED: "#4cc3ff",
    MemorySpace.TEXTURE: "#8be36a",
    MemorySpace.CONSTANT: "#e58bff",
}
_MOST = 48  # cells in a row: more would be too small to see
_NUMBERED = 14  # least side of a cell in pixels whose order is written


class XrayView(QWidget):
    """Draws cells as grey squares and the accesses over them."""

    def __init__(self) -> None:
        super().__init__()
        dressed(self, "xrayPicture", "Cells that the thread reads")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._xray: Xray | None = None
        self._pixel: Cell = (0, 0)
        self._pixels: NDArray[np.uint8] = np.zeros((0, 0), np.uint8)
        self._done = 0
        self._area = (0, 0, 0, 0)

    def sizeHint(self) -> QSize:
        unit = self.fontMetrics().averageCharWidth()
        return QSize(80 * unit, 50 * unit)

    def show_xray(self, xray: Xray | None, pixel: Cell, pixels: NDArray[np.uint8]) -> None:
        """Show a thread that computes `pixel`; `pixels` are the grey values of the input."""
        self._xray, self._pixel, self._pixels, self._done = xray, pixel, pixels, 0
        self._area = self._visible()
        self.update()

    def show_steps(self, done: int) -> None:
        self._done = done
        self.update()

    @property
    def area(self) -> tuple[int, int, int, int]:
        """First column and row, and those behind the last, of the cells in view."""
        return self._area

    def _visible(self) -> tuple[int, int, int, int]:
        """Return the cells to show: those of the block, or as many as fit around the pixel."""
        height, width = self._pixels.shape
        if self._xray is None:
            return 0, 0, 0, 0
        cells = {self._pixel, *self._xray.block_pixels, *self._xray.cells(len(self._xray.steps))}
        sides = []
        for axis, length in ((0, width), (1, height)):
            places = [cell[axis] for cell in cells]
            low, high = max(min(places) - 1, 0), min(max(places) + 2, length)
            if high - low > _MOST:
                low = max(min(self._pixel[axis] - _MOST // 2, high - _MOST), low)
                high = low + _MOST
            sides.append((low, high))
        (left, right), (top, bottom) = sides
        return left, top, right, bottom

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.canvas_ground(self.palette()))
        left, top, right, bottom = self._area
        if self._xray is None or right <= left or bottom <= top:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        side = min(self.width() / (right - left), self.height() / (bottom - top))
        painter.translate(
            (self.width() - side * (right - left)) / 2, (self.height() - side * (bottom - top)) / 2
        )
        read = self._xray.cells(self._done)
        for y in range(top, bottom):
            for x in range(left, right):
                self._paint_cell(painter, QRectF((x - left) * side, (y - top) * side, side, side),
                                 (x, y), read.get((x, y)))  # fmt: skip
        self._paint_frames(painter, side)

    def _paint_cell(
        self, painter: QPainter, place: QRectF, cell: Cell, read: tuple[int, MemorySpace] | None
    ) -> None:
        assert self._xray is not None
        grey = int(self._pixels[cell[1], cell[0]])
        inside = cell in self._xray.block_pixels
        painter.fillRect(place, QColor(grey, grey, grey, 255 if inside else 90))
        side = place.width()
        if cell in self._xray.warp_pixels:
            frame = place.adjusted(1.5, 1.5, -1.5, -1.5)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QColor("#000000"))
            painter.drawRect(frame)
            painter.setPen(QPen(QColor("#ffffff"), 1, Qt.PenStyle.DotLine))
            painter.drawRect(frame)
        if read is None:
            return
        number, space = read
        last = number == self._done
        painter.setBrush(QColor(_COLOURS[space]))
        painter.setPen(QPen(QColor("#ffffff" if last else "#000000"), 3 if last else 1))
        _draw_sign(painter, place, space)
        if side >= _NUMBERED:
            font = self.font()
            font.setPixelSize(max(round(side * (0.5 if number < 100 else 0.36)), 6))
            painter.setFont(font)
            painter.setPen(QColor("#000000"))
            painter.drawText(place, Qt.AlignmentFlag.AlignCenter, str(number))

    def _paint_frames(self, painter: QPainter, side: float) -> None:
        """Frame the thread's own pixel."""
        left, top, _, _ = self._area
        x, y = self._pixel
        own = QRectF((x - left) * side, (y - top) * side, side, side)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor("#000000"), 4))
        painter.drawRect(own)
        painter.setPen(QPen(QColor("#ffe34d"), 2))
        painter.drawRect(own)


def _draw_sign(painter: QPainter, place: QRectF, space: MemorySpace) -> None:
    """Draw the shape of a memory into a cell."""
    side = place.width()
    inner = place.adjusted(0.14 * side, 0.14 * side, -0.14 * side, -0.14 * side)
    if space is MemorySpace.GLOBAL:
        painter.drawEllipse(inner)
    elif space is MemorySpace.SHARED:
        painter.drawRect(inner)
    else:
        top = QPointF(inner.center().x(), inner.top())
        painter.drawPolygon(QPolygonF([top, inner.bottomRight(), inner.bottomLeft()]))
