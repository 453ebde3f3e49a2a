"""Bars of a run or a stage by its parts: their colours, a legend, and cells that draw them."""

from __future__ import annotations

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QPainter, QPalette
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from kernelscope.gui.model.runs import KERNEL, OTHER, TRANSFERS
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.parts import Index

_COLOURS = {KERNEL: theme.kernel_fill, TRANSFERS: theme.transfers_fill, OTHER: theme.other_fill}


def part_colour(part: str, palette: QPalette) -> QColor:
    return _COLOURS[part](palette)


def legend(palette: QPalette) -> str:
    """Return the names of the parts, each behind a square of its colour, as rich text."""
    colours = ((part, part_colour(part, palette).name()) for part in _COLOURS)
    return "&nbsp;&nbsp; ".join(
        f'<span style="color: {ink}">■</span> {part}' for part, ink in colours
    )


LEGEND_TIP = "Colours of bars: light kernel, dark transfers, grey other stages"

BARS = Qt.ItemDataRole.UserRole
"""Role under which a cell keeps its bar: (part, from, to) with shares of its width."""


class BarDelegate(QStyledItemDelegate):
    """Draws bars in the colours of the parts."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        super().paint(painter, option, index)  # a selected line has a ground
        area = option.rect.adjusted(1, 2, -1, -2)
        for part, start, stop in index.data(BARS) or ():
            left = round(area.width() * start)
            width = max(round(area.width() * stop) - left, 1 if stop > start else 0)
            bar = QRect(area.left() + left, area.top(), width, area.height())
            painter.fillRect(bar, part_colour(part, option.palette))
