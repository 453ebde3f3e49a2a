"""Tiles of a list: a small picture, with lines of text beside or below it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPalette, QPen, QWheelEvent
from PySide6.QtWidgets import QAbstractItemView, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from kernelscope.gui.widgets import theme

Index = QModelIndex | QPersistentModelIndex


class TileDelegate(QStyledItemDelegate):
    """Paints tiles of one size by `paint_tile`, and around the current one the frame of the focus.

    `size` returns the size of a tile; it follows the font and the view.
    """

    def __init__(self, view: QAbstractItemView, size: Callable[[], QSize]) -> None:
        super().__init__(view)
        self._size = size

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return self._size()

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        painter.save()
        self.paint_tile(painter, option, index)
        if option.state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(ink_of(option), 1, Qt.PenStyle.DotLine))
            painter.drawRect(option.rect.adjusted(1, 1, -2, -2))
        painter.restore()

    def paint_tile(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        raise NotImplementedError


def is_selected(option: QStyleOptionViewItem) -> bool:
    return bool(option.state & QStyle.StateFlag.State_Selected)


def ink_of(option: QStyleOptionViewItem, *, on_selection: bool = False) -> QColor:
    """Return the colour of text; on the ground of a selected tile, if that is painted."""
    role = QPalette.ColorRole.HighlightedText if on_selection else QPalette.ColorRole.Text
    return option.palette.color(role)


def image_of(pixels: NDArray[np.uint8]) -> QImage:
    """Return RGB pixels, shape (height, width, 3), as an image, which must not outlive them."""
    height, width, _ = pixels.shape
    return QImage(pixels.data, width, height, 3 * width, QImage.Format.Format_RGB888)


def draw_thumbnail(
    painter: QPainter, frame: QRect, pixels: NDArray[np.uint8] | None, *, opacity: float = 1.0
) -> None:
    """Draw a picture in the middle of a dark frame, as large as there is room."""
    painter.fillRect(frame, QColor(theme.CANVAS_GROUND))
    if pixels is None:
        return
    image = image_of(pixels)
    place = QRect(
        frame.topLeft(), image.size().scaled(frame.size(), Qt.AspectRatioMode.KeepAspectRatio)
    )
    place.moveCenter(frame.center())
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
    painter.setOpacity(opacity)
    painter.drawImage(place, image)
    painter.setOpacity(1.0)


def write_line(
    painter: QPainter,
    line: QRect,
    text: str,
    ink: QColor,
    *,
    bold: bool = False,
    cut: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
) -> int:
    """Write a line of text, cut where it is too long; return the width that it takes."""
    font = painter.font()
    font.setBold(bold)
    painter.setFont(font)
    painter.setPen(ink)
    shown = painter.fontMetrics().elidedText(text, cut, line.width())
    painter.drawText(line, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop, shown)
    width = painter.fontMetrics().horizontalAdvance(shown)
    font.setBold(False)
    painter.setFont(font)
    return width


def scroll_sideways(view: QAbstractItemView, event: QWheelEvent) -> None:
    """Let the wheel scroll a row of tiles: there is nothing above or below."""
    delta, bar = event.angleDelta(), view.horizontalScrollBar()
    bar.setValue(bar.value() - (delta.x() or delta.y()))
    event.accept()
