"""A map of the pixels in which the result of an edited kernel is wrong."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
)
from PySide6.QtWidgets import QLabel, QWidget

from kernelscope.backends.trial.exercises import Comparison
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.parts import SELECTABLE, dressed, in_column, in_row, push_button

_STEPS = {Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1, Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1}
_RING = 7.0  # radius of the ring around the chosen pixel, on the screen


class WrongPixels(QWidget):
    """The output, grey, with wrong pixels red and hatched, and the chosen one in a ring.

    A click chooses the nearest wrong pixel, arrow keys the next and the previous one.
    """

    wrong_pixel_chosen = Signal(int, int)
    """Column and row of a pixel of the part of the picture that was tried."""

    def __init__(self) -> None:
        super().__init__()
        dressed(self, "wrongPixels", "Map of wrong pixels")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._comparison: Comparison | None = None
        self._chosen: tuple[int, int] | None = None
        self._ground = QImage()
        self._mask = QImage()

    @property
    def chosen(self) -> tuple[int, int] | None:
        return self._chosen

    def show_comparison(self, comparison: Comparison | None) -> None:
        self._comparison, self._chosen = comparison, None
        if comparison is not None:
            self._ground = _grey(comparison)
            self._mask = _mask(comparison)
            self._choose(comparison.step(-1, 0, 1))
        self.update()

    def sizeHint(self) -> QSize:
        side = 9 * self.fontMetrics().lineSpacing()
        return QSize(side, side)

    def _choose(self, place: tuple[int, int] | None) -> None:
        if place is None or self._comparison is None:
            return
        self._chosen = place
        pixel = self._comparison.pixel(*place)
        self.setAccessibleDescription(
            f"{self._comparison.count} wrong; chosen: column {pixel.x}, row {pixel.y}"
        )
        self.update()
        self.wrong_pixel_chosen.emit(*place)

    def area(self) -> QRectF:
        width, height = self._ground.width(), self._ground.height()
        scale = min(self.width() / width, self.height() / height)
        area = QRectF(0, 0, scale * width, scale * height)
        area.moveCenter(QRectF(self.rect()).center())
        return area

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.canvas_ground(self.palette()))
        if self._comparison is None:
            return
        area = self.area()
        painter.drawImage(area, self._ground)
        painter.drawImage(area, self._hatched(area))
        scale = area.width() / self._ground.width()
        if self._chosen is not None:
            x, y = self._chosen
            centre = QPointF(area.left() + scale * (x + 0.5), area.top() + scale * (y + 0.5))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            for colour, width in (("black", 4.0), ("white", 2.0)):
                painter.setPen(QPen(QColor(colour), width))
                painter.drawEllipse(centre, _RING, _RING)
        if self.hasFocus():
            painter.setPen(QPen(self.palette().color(QPalette.ColorRole.Highlight), 2))
            painter.drawRect(self.rect().adjusted(1, 1, -1, -1))

    def _hatched(self, area: QRectF) -> QImage:
        """Return the wrong pixels as large as on the screen: red, with white stripes."""
        mask = self._mask.scaled(area.size().toSize().expandedTo(QSize(1, 1)))
        layer = mask.convertToFormat(QImage.Format.Format_ARGB32_Premultiplied)
        painter = QPainter(layer)
        painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceAtop)
        painter.fillRect(layer.rect(), QColor("#e0241b"))
        painter.fillRect(layer.rect(), QBrush(QColor("white"), Qt.BrushStyle.BDiagPattern))
        painter.end()
        return layer

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._comparison is None:
            return
        area = self.area()
        at = (event.position() - area.topLeft()) * (self._ground.width() / area.width())
        self._choose(self._comparison.nearest(at.x() - 0.5, at.y() - 0.5))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        way = _STEPS.get(Qt.Key(event.key()))
        if way is None or self._comparison is None or self._chosen is None:
            super().keyPressEvent(event)
            return
        self._choose(self._comparison.step(*self._chosen, way))


def _grey(comparison: Comparison) -> QImage:
    values = np.nan_to_num(comparison.output.astype(np.float64).mean(axis=-1))
    low, high = float(values.min()), float(values.max())
    if comparison.output.dtype.kind == "u":
        low, high = 0.0, float(np.iinfo(comparison.output.dtype).max)
    scaled = (values - low) * (255 / max(high - low, 1e-30))
    return _image(scaled.astype(np.uint8), QImage.Format.Format_Grayscale8)


def _mask(comparison: Comparison) -> QImage:
    """Return an image that is opaque where pixels are wrong, and where their neighbours are.

    A single wrong pixel would be hard to find otherwise.
    """
    wrong = np.pad(comparison.wrong, 1)
    grown = wrong.copy()
    for axis in (0, 1):
        for way in (-1, 1):
            grown |= np.roll(wrong, way, axis)
    return _image(np.where(grown[1:-1, 1:-1], 255, 0).astype(np.uint8), QImage.Format.Format_Alpha8)


def _image(values: np.ndarray[tuple[int, int], np.dtype[np.uint8]], kind: QImage.Format) -> QImage:
    height, width = values.shape
    return QImage(np.ascontiguousarray(values).tobytes(), width, height, width, kind).copy()


class WrongPixelsBox(QWidget):
    """The map, and beside it the chosen pixel in figures; hidden while no pixel is wrong.

    `lines`: height, in lines of text.
    """

    xray_wanted = Signal(int, int)  # the user wants to see how the chosen pixel came about

    def __init__(self, lines: int) -> None:
        super().__init__()
        self.map = WrongPixels()
        self.map.setFixedHeight(lines * self.fontMetrics().lineSpacing())
        self.map.setMinimumWidth(self.map.sizeHint().width())
        self.map.wrong_pixel_chosen.connect(self._show_pixel)
        self._comparison: Comparison | None = None
        self._pixel = dressed(QLabel(), "wrongPixel")
        self._pixel.setTextInteractionFlags(SELECTABLE)
        self._pixel.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._pixel.setMinimumWidth(30 * self.fontMetrics().averageCharWidth())
        self.xray_button = push_button(
            "&X-ray of this pixel",
            "wrongPixelXray",
            self._on_xray,
            tip="Show which cells your kernel reads for it, step by step (X)",
        )
        side = in_column((self._pixel, 1), self.xray_button)
        in_row(self.map, side, of=self, margins=0)
        self.show_comparison(None)

    def show_comparison(self, comparison: Comparison | None) -> None:
        shown = comparison is not None and comparison.count > 0
        self._comparison = comparison if shown else None
        self.setVisible(shown)
        self.map.show_comparison(self._comparison)

    def _on_xray(self) -> None:
        if self.map.chosen is not None:
            self.xray_wanted.emit(*self.map.chosen)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_X:
            self._on_xray()
        else:
            super().keyPressEvent(event)

    def _show_pixel(self, x: int, y: int) -> None:
        if self._comparison is None:
            return
        pixel = self._comparison.pixel(x, y)
        channels = self._comparison.output.shape[-1]
        channel = f", channel {pixel.channel}" if channels > 1 else ""
        self._pixel.setText(
            f"Wrong pixel\nColumn {x}, row {y}{channel}\n"
            f"Expected {pixel.expected:g}, got {pixel.got:g}\n"
            "Arrow keys or a click choose\nanother one."
        )
