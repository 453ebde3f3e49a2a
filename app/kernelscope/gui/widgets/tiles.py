"""One tile for every list of pictures: the picture, a title, lines of text, a badge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QImage, QPainter, QPalette, QPen, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
)

from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.parts import Index

_GAP = 6  # pixels between texts in one line
_BADGE = QColor(0, 0, 0, 170)


@dataclass(frozen=True)
class TileLine:
    text: str
    bold: bool = False
    quiet: bool = False
    behind: str = ""
    aside: str = ""
    spare: int = 0  # pixels at the right end that stay free
    ink: QColor | None = None
    cut: Qt.TextElideMode | None = Qt.TextElideMode.ElideRight  # None: it wraps


@dataclass(frozen=True)
class Tile:
    """The content of a tile; `note`: in place of the picture; `badge`: in its corner."""

    picture: QImage | NDArray[np.uint8] | None
    lines: Sequence[TileLine]
    note: str = ""
    badge: str = ""
    opacity: float = 1.0


class TileDelegate(QStyledItemDelegate):
    """Paints tiles by `paint_tile`; `size` returns that of each, after font and view."""

    def __init__(self, view: QAbstractItemView, size: Callable[[], QSize]) -> None:
        super().__init__(view)
        self._size = size

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return self._size()

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        painter.save()
        self.paint_tile(painter, option, index)
        if option.state & QStyle.StateFlag.State_HasFocus:
            ink = option.palette.color(QPalette.ColorRole.Text)
            painter.setPen(QPen(ink, 1, Qt.PenStyle.DotLine))
            painter.drawRect(option.rect.adjusted(1, 1, -2, -2))
        painter.restore()

    def paint_tile(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        raise NotImplementedError


def is_selected(option: QStyleOptionViewItem) -> bool:
    return bool(option.state & QStyle.StateFlag.State_Selected)


def draw_tile(
    painter: QPainter,
    tile: Tile,
    frame: QRect,
    room: QRect,
    palette: QPalette,
    *,
    selected: bool = False,
) -> None:
    """Draw the picture into a frame, the text into the room beside or below it."""
    draw_thumbnail(painter, frame, tile.picture, opacity=tile.opacity)
    if tile.picture is None and tile.note:
        draw_note(painter, frame, tile.note)
    if tile.badge:
        draw_badge(painter, frame, tile.badge)
    role = QPalette.ColorRole.HighlightedText if selected else QPalette.ColorRole.Text
    ink = palette.color(role)
    draw_lines(painter, tile.lines, room, ink, ink if selected else theme.quiet_text(palette))


def draw_badge(painter: QPainter, frame: QRect, text: str) -> None:
    metrics = painter.fontMetrics()
    size = QSize(metrics.horizontalAdvance(text) + 8, metrics.height() + 2)
    corner = QRect(frame.topLeft(), size)
    painter.fillRect(corner, _BADGE)
    painter.setPen(Qt.GlobalColor.white)
    painter.drawText(corner, Qt.AlignmentFlag.AlignCenter, text)


def image_of(
    samples: NDArray[Any],
    layout: QImage.Format,
    wanted: QImage.Format | None = None,
    colours: Sequence[int] = (),
) -> QImage:
    """Return samples, shape (height, width, ...), as an image of its own, maybe converted.

    `colours`: of an indexed layout, as Qt has them.
    """
    samples = np.ascontiguousarray(samples)
    height, width = samples.shape[:2]
    borrowed = QImage(samples.data, width, height, samples.strides[0], layout)
    if colours:
        borrowed.setColorTable(colours)
    return borrowed.copy() if wanted in (None, layout) else borrowed.convertToFormat(wanted)


def draw_thumbnail(
    painter: QPainter,
    frame: QRect,
    picture: QImage | NDArray[np.uint8] | None,
    *,
    opacity: float = 1.0,
) -> None:
    """Draw a picture in the middle of a dark frame: an image pixel for pixel, pixels to fill it."""
    painter.fillRect(frame, QColor(theme.CANVAS_GROUND))
    if picture is None:
        return
    image = (
        picture if isinstance(picture, QImage) else image_of(picture, QImage.Format.Format_RGB888)
    )
    size = image.size()
    if image is not picture:
        size.scale(frame.size(), Qt.AspectRatioMode.KeepAspectRatio)
    place = QRect(frame.topLeft(), size)
    place.moveCenter(frame.center())
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
    painter.setOpacity(opacity)
    painter.drawImage(place, image)
    painter.setOpacity(1.0)


def draw_note(painter: QPainter, frame: QRect, note: str) -> None:
    """Write why there is no picture, so small that no word is cut off."""
    painter.save()
    painter.setPen(QColor(theme.CANVAS_QUIET))
    area = frame.adjusted(2, 0, -2, 0)
    painter.setFont(fitting(painter.font(), note, area.width()))
    painter.drawText(area, Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignCenter, note)
    painter.restore()


def fitting(font: QFont, text: str, width: int) -> QFont:
    """Return `font`, or a smaller one in which the longest word of a text is not cut off."""
    found, words = QFont(font), text.split() or [""]
    while max(map(QFontMetrics(found).horizontalAdvance, words)) > width and found.pointSizeF() > 4:
        found.setPointSizeF(found.pointSizeF() - 0.5)
    return found


def draw_lines(
    painter: QPainter, lines: Sequence[TileLine], room: QRect, ink: QColor, quiet: QColor
) -> None:
    """Write lines from the top of a room downwards; those that wrap in the middle of it."""
    heights = [line_height(painter.font(), room, line) for line in lines]
    top = room.top()
    if any(line.cut is None for line in lines):
        top += max(0, (room.height() - sum(heights)) // 2)
    for line, height in zip(lines, heights, strict=True):
        row = QRect(room.left(), top, room.width(), height)
        top += height
        painter.setPen(ink)
        painter.drawText(row, Qt.AlignmentFlag.AlignRight, line.aside)
        end = painter.fontMetrics().horizontalAdvance(line.aside) + _GAP if line.aside else 0
        cell = row.adjusted(0, 0, -end - line.spare, 0)
        taken = _write(painter, cell, line, line.ink or (quiet if line.quiet else ink))
        rest = row.adjusted(taken + _GAP, 0, -end, 0)
        if rest.width() > _LEAST_LETTERS * painter.fontMetrics().averageCharWidth():
            _write(painter, rest, TileLine(line.behind), quiet)


def _write(painter: QPainter, cell: QRect, line: TileLine, ink: QColor) -> int:
    usual, bold = painter.font(), painter.font()
    bold.setBold(line.bold)
    painter.setFont(bold)
    painter.setPen(ink)
    metrics, text = painter.fontMetrics(), line.text
    if line.cut is not None:
        text = metrics.elidedText(text, line.cut, cell.width())
    painter.drawText(cell, _TOP if line.cut is not None else _WRAPPED, text)
    painter.setFont(usual)
    return metrics.horizontalAdvance(text)


def line_height(font: QFont, room: QRect, line: TileLine) -> int:
    bold = QFont(font)
    bold.setBold(line.bold)
    metrics = QFontMetrics(bold)
    if line.cut is not None:
        return metrics.height()
    return metrics.boundingRect(room, _WRAPPED, line.text).height()


_LEAST_LETTERS = 4  # of something behind a text, whose line is the text's first
_TOP = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop
_WRAPPED = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


def set_count(view: QListWidget, count: int) -> None:
    """Have this many items; the first ones stay, with their selection."""
    while view.count() > count:
        view.takeItem(view.count() - 1)
    while view.count() < count:
        view.addItem(QListWidgetItem())


def scroll_sideways(view: QAbstractItemView, event: QWheelEvent) -> None:
    """Let the wheel scroll a row of tiles: there is nothing above or below."""
    delta, bar = event.angleDelta(), view.horizontalScrollBar()
    bar.setValue(bar.value() - (delta.x() or delta.y()))
    event.accept()
