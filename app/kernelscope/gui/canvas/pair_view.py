"""Two pictures of one size in one place: a divide to drag, and one alone while Space is held."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from kernelscope.gui.widgets import theme

_STEP = 0.05
"""How far an arrow key moves the divide, as a share of the picture."""


def to_qimage(steps: NDArray[np.uint8]) -> QImage:
    """Return 8-bit samples as a picture of its own; alpha is left out.

    Parameters
    ----------
    steps : ndarray of uint8, shape (height, width, channels)
    """
    height, width, channels = steps.shape
    colours = np.ascontiguousarray(steps[:, :, :1] if channels < 3 else steps[:, :, :3])
    layout = QImage.Format.Format_Grayscale8 if channels < 3 else QImage.Format.Format_RGB888
    return QImage(colours.data, width, height, colours.strides[0], layout).copy()


def place(image: QImage, room: QRectF) -> QRectF:
    """Return where `image` lies centred in `room`: enlarged by whole numbers, or reduced."""
    scale = min(room.width() / image.width(), room.height() / image.height())
    scale = float(int(scale)) if scale >= 1 else scale
    width, height = scale * image.width(), scale * image.height()
    centre = room.center()
    return QRectF(round(centre.x() - width / 2), round(centre.y() - height / 2), width, height)


class PairView(QWidget):
    """The first picture left of the divide, the second right of it.

    Parameters
    ----------
    first, second : QImage
        Of one size.
    names : tuple of str
        Drawn in the corners.
    """

    def __init__(
        self, first: QImage, second: QImage, names: tuple[str, str], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("pairView")
        self.setAccessibleName(f"{names[0]} and {names[1]}, one over the other")
        self.setToolTip("Drag the divide, or move it by the arrow keys; hold Space for the first")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(320, 240)
        self.images, self.names = (first, second), names
        self.divide = 0.5
        self.only_first = False

    def set_divide(self, divide: float) -> None:
        """Move the divide to a share of the width."""
        self.divide = min(max(divide, 0.0), 1.0)
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Left: -_STEP, Qt.Key.Key_Right: _STEP}
        if event.key() == Qt.Key.Key_Space:
            self._show_first(True)
        elif event.key() in steps:
            self.set_divide(self.divide + steps[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Space and not event.isAutoRepeat():
            self._show_first(False)
        else:
            super().keyReleaseEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._follow(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._follow(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.canvas_ground(self.palette()))
        room = place(self.images[0], QRectF(self.rect()))
        enlarged = room.width() > self.images[0].width()
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, not enlarged)
        painter.drawImage(room, self.images[0])
        divide = room.right() if self.only_first else room.left() + self.divide * room.width()
        painter.save()
        painter.setClipRect(QRectF(divide, room.top(), room.right() - divide, room.height()))
        painter.drawImage(room, self.images[1])
        painter.restore()
        if not self.only_first:
            painter.setPen(QPen(QColor(theme.CANVAS_TEXT), 2))
            painter.drawLine(round(divide), round(room.top()), round(divide), round(room.bottom()))
        self._draw_names(painter)

    def _draw_names(self, painter: QPainter) -> None:
        sides = (Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight)
        for name, side in zip(self.names, sides, strict=True):
            if self.only_first and side is Qt.AlignmentFlag.AlignRight:
                continue
            flags = side | Qt.AlignmentFlag.AlignTop
            room = self.rect().adjusted(8, 6, -8, -6)
            area = painter.boundingRect(room, flags, name).adjusted(-5, -3, 5, 3)
            painter.fillRect(area, QColor(0, 0, 0, 170))
            painter.setPen(QColor(theme.CANVAS_TEXT))
            painter.drawText(room, flags, name)

    def _follow(self, event: QMouseEvent) -> None:
        room = place(self.images[0], QRectF(self.rect()))
        self.set_divide((event.position().x() - room.left()) / room.width())

    def _show_first(self, only: bool) -> None:
        self.only_first = only
        self.update()
