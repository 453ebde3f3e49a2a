"""Bars of a run or a stage by its parts: their colours, a legend, and cells that draw them."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QEvent, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem, QWidget

from kernelscope.gui.model.runs import KERNEL, OTHER, TRANSFERS
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.parts import Index, dressed

_COLOURS = {KERNEL: theme.kernel_fill, TRANSFERS: theme.transfers_fill, OTHER: theme.other_fill}


def part_colour(part: str, palette: QPalette) -> QColor:
    return _COLOURS[part](palette)


class Legend(QWidget):
    def __init__(self) -> None:
        super().__init__()
        names = ", ".join(f"{tone} {part}" for part, tone in zip(_COLOURS, _TONES, strict=True))
        text = f"Colours of bars: {names}"
        dressed(self, "timingLegend", text, tip=text)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())  # where there is no room, tooltips have to do

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        widths = (self._box() + 5 + metrics.horizontalAdvance(part) + _GAP for part in _COLOURS)
        return QSize(sum(widths) - _GAP, metrics.height() + 2)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.updateGeometry()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        metrics, side, x = self.fontMetrics(), self._box(), 0.0
        top = (self.height() - side) / 2
        for part in _COLOURS:
            width = metrics.horizontalAdvance(part)
            if x + side + 5 + width > self.width() + 1:
                return
            painter.fillRect(QRectF(x, top, side, side), part_colour(part, self.palette()))
            x += side + 5
            painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
            area = QRectF(x, 0, width + 1, self.height())
            painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, part)
            x += width + _GAP

    def _box(self) -> int:
        return round(0.7 * self.fontMetrics().height())


_TONES = ("light", "dark", "grey")
_GAP = 14  # pixels between entries


BARS = Qt.ItemDataRole.UserRole
"""Role under which a cell keeps its bar: (part, from, to) with shares of its width."""


def end_to_end(shares: Iterable[tuple[str, float]]) -> list[tuple[str, float, float]]:
    """Return bars that follow each other: the part, from where and to where."""
    bars, start = [], 0.0
    for part, share in shares:
        bars.append((part, start, start + share))
        start += share
    return bars


class BarDelegate(QStyledItemDelegate):
    """Draws bars after the text, in the colours of the parts."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        super().paint(painter, option, index)  # a selected line has a ground
        room = option.fontMetrics.horizontalAdvance("100 %  ") if index.data() else 0
        area = option.rect.adjusted(1 + room, 2, -1, -2)
        for part, start, stop in index.data(BARS) or ():
            left = round(area.width() * start)
            width = max(round(area.width() * stop) - left, 1 if stop > start else 0)
            bar = QRect(area.left() + left, area.top(), width, area.height())
            painter.fillRect(bar, part_colour(part, option.palette))
