"""Aids drawn over pictures: grid, values, probe, divide, names, magnifier."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from PySide6.QtCore import QLineF, QPointF, QRect, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen, QPixmap

GRID_FROM = 20.0  # device pixels per pixel from which the grid is drawn: 2000 %
LENS = 176  # side of the magnifier

LENS_FACTOR = 4.0
LENS_LEAST = 8.0
"""The magnifier shows pixels four times as large as around it, and at least 8 device pixels."""

_CENTRE, _MIDDLE = Qt.AlignmentFlag.AlignHCenter, Qt.AlignmentFlag.AlignVCenter
SIDES = (
    _CENTRE | Qt.AlignmentFlag.AlignTop,
    _CENTRE | Qt.AlignmentFlag.AlignBottom,
    _MIDDLE | Qt.AlignmentFlag.AlignLeft,
    _MIDDLE | Qt.AlignmentFlag.AlignRight,
)
"""Where the letters of the directions stand: up, down, left and right."""

_GRID = QColor(128, 128, 128, 150)
_INK = QColor("#ffffff")
_QUIET_INK = QColor("#c9ced6")
_CHIP = QColor(18, 20, 24, 225)
_EDGE = QColor(0, 0, 0, 170)
_SMALLEST_TEXT = 7.0  # height of letters, in screen pixels, below which values are left out

_HANDLE = 22.0


class ProbeLine(NamedTuple):
    """A line of the probe: a name and a value; bold for the pane's own picture."""

    name: str
    value: str
    bold: bool = False


def draw_grid(painter: QPainter, seen: QRectF, to_screen: Callable[[QPointF], QPointF]) -> None:
    columns = range(math.floor(seen.left()), math.ceil(seen.right()) + 1)
    rows = range(math.floor(seen.top()), math.ceil(seen.bottom()) + 1)
    ends = [(QPointF(x, rows[0]), QPointF(x, rows[-1])) for x in columns]
    ends += [(QPointF(columns[0], y), QPointF(columns[-1], y)) for y in rows]
    lines = [QLineF(to_screen(first), to_screen(last)) for first, last in ends]
    painter.setPen(QPen(_GRID, 0))
    painter.drawLines(lines)


def value_font(font: QFont, texts: Sequence[str], lines: int, cell: QSizeF) -> QFont | None:
    """Return a font in which all `texts` fit into a cell; None if it would be unreadable."""
    longest = max(map(len, texts), default=1)
    small = QFont(font)
    # Digits are about 0.6 as wide as the font is high, and a line takes 1.25 of its height.
    pixels = min(
        0.86 * cell.width() / (0.62 * longest), 0.86 * cell.height() / (1.25 * lines), 15.0
    )
    if pixels < _SMALLEST_TEXT:
        return None
    small.setPixelSize(int(pixels))
    return small


def draw_value(painter: QPainter, cell: QRectF, text: str, ground: QColor) -> None:
    dark = ground.lightnessF() < 0.55
    painter.setPen(QColor(255, 255, 255, 235) if dark else QColor(0, 0, 0, 235))
    painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, text)


def draw_marker(painter: QPainter, cell: QRectF) -> None:
    lines: list[QLineF] = []
    if min(cell.width(), cell.height()) < 6:
        x, y = cell.center().x(), cell.center().y()
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            lines.append(QLineF(x + 4 * dx, y + 4 * dy, x + 11 * dx, y + 11 * dy))
    for pen in (QPen(_EDGE, 3), QPen(_INK, 1)):
        painter.setPen(pen)
        if lines:
            painter.drawLines(lines)
        else:
            painter.drawRect(cell)


def draw_chip(painter: QPainter, at: QRectF, room: QRectF, lines: Sequence[ProbeLine]) -> None:
    """Write the values of the probe beside the pixel `at`, inside of `room`."""
    plain = QFont(painter.font())
    bold = QFont(plain)
    bold.setBold(True)
    metrics = QFontMetricsF(bold)
    pad, gap, height = 6.0, 10.0, metrics.height()
    advance, read = metrics.horizontalAdvance, [line for line in lines if line.value]
    names = max((advance(line.name) for line in read), default=0.0)
    values = max((advance(line.value) for line in read), default=-gap)
    # The place, which stands alone, pushes no value out of a narrow view.
    alone = max((advance(line.name) for line in lines if not line.value), default=0.0)
    width = max(names + gap + values, min(alone, room.width() - 2 * pad))
    size = QRectF(0, 0, width + 2 * pad, height * len(lines) + 2 * pad - 2)
    x, y = at.right() + 14, at.bottom() + 14
    if x + size.width() > room.right():
        x = at.left() - 14 - size.width()
    if y + size.height() > room.bottom():
        y = at.top() - 14 - size.height()
    x = min(max(x, room.left()), max(room.left(), room.right() - size.width()))
    y = min(max(y, room.top()), max(room.top(), room.bottom() - size.height()))
    box = size.translated(x, y)
    painter.setPen(QPen(QColor(255, 255, 255, 50), 1))
    painter.setBrush(_CHIP)
    painter.drawRoundedRect(box, 4, 4)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for number, line in enumerate(lines):
        row = QRectF(box.x() + pad, box.y() + pad - 1 + number * height, width, height)
        painter.setFont(bold if line.bold else plain)
        painter.setPen(_INK if line.bold else _QUIET_INK)
        name = metrics.elidedText(line.name, Qt.TextElideMode.ElideRight, width)
        painter.drawText(row, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, name)
        painter.drawText(
            row, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, line.value
        )
    painter.setFont(plain)


def draw_name(painter: QPainter, text: str, corner: QPointF, *, right: bool, room: float) -> None:
    metrics = QFontMetricsF(painter.font())
    width = metrics.horizontalAdvance(text) + 12
    if width + 8 > room:
        return
    box = QRectF(0, 0, width, metrics.height() + 4)
    box.moveTopLeft(corner)
    if right:
        box.moveRight(corner.x())
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(_CHIP)
    painter.drawRoundedRect(box, 4, 4)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(_INK)
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)


def draw_scale_bar(painter: QPainter, corner: QPointF, length: float, text: str) -> None:
    """Draw a bar of `length` pixels up to `corner`, and `text` over it."""
    bar = QRectF(corner.x() - length, corner.y() - 3, length, 3)
    metrics = QFontMetricsF(painter.font())
    left = bar.center().x() - metrics.horizontalAdvance(text) / 2
    left = min(left, corner.x() - metrics.horizontalAdvance(text))
    shape = QPainterPath()
    shape.addRect(bar)
    shape.addText(QPointF(left, bar.top() - 4), painter.font(), text)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.strokePath(shape, QPen(_EDGE, 3))
    painter.fillPath(shape, _INK)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)


def draw_divide(painter: QPainter, place: float, room: QRectF, *, upright: bool) -> None:
    if upright:
        line = QLineF(place, room.top(), place, room.bottom())
        handle = QPointF(place, room.center().y())
    else:
        line = QLineF(room.left(), place, room.right(), place)
        handle = QPointF(room.center().x(), place)
    for pen in (QPen(_EDGE, 3), QPen(_INK, 1)):
        painter.setPen(pen)
        painter.drawLine(line)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(_CHIP)
    painter.setPen(QPen(_INK, 1.5))
    painter.drawEllipse(handle, _HANDLE / 2, _HANDLE / 2)
    arrows = QPainterPath()
    for sign in (-1, 1):
        tip, back = 7 * sign, 3.5 * sign
        for along, across in ((back, -3.5), (tip, 0), (back, 3.5)):
            point = handle + (QPointF(along, across) if upright else QPointF(across, along))
            if across == -3.5:
                arrows.moveTo(point)
            else:
                arrows.lineTo(point)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(arrows)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)


def draw_lens(
    painter: QPainter,
    middle: QPointF,
    ground: QColor,
    cell: QSizeF,
    draw: Callable[[QPainter, QRect], None],
) -> None:
    """Draw the magnifier; `draw` draws the picture, the marked pixel in its middle."""
    ratio = painter.device().devicePixelRatioF()
    side = round(LENS * ratio)
    lens = QPixmap(side, side)
    lens.fill(ground)
    inner = QPainter(lens)
    draw(inner, lens.rect())
    marked = QRectF(QPointF(), cell)
    marked.moveCenter(QPointF(side, side) / 2)
    draw_marker(inner, marked)
    inner.end()
    lens.setDevicePixelRatio(ratio)
    path = QPainterPath()
    path.addEllipse(middle, LENS / 2, LENS / 2)
    painter.save()
    painter.setClipPath(path)
    painter.drawPixmap(middle - QPointF(LENS, LENS) / 2, lens)
    painter.restore()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for pen in (QPen(_EDGE, 4), QPen(_INK, 1.5)):
        painter.setPen(pen)
        painter.drawPath(path)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
