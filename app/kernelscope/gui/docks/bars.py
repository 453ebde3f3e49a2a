"""Bars in the cells of a list: a run or a stage by its parts, in the colours of the parts."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from kernelscope.gui.docks.part_colours import part_colour

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

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        super().paint(painter, option, index)  # a selected line has a ground
        room = option.fontMetrics.horizontalAdvance("100%  ") if index.data() else 0
        area = option.rect.adjusted(1 + room, 2, -1, -2)
        for part, start, stop in index.data(BARS) or ():
            left = round(area.width() * start)
            width = max(round(area.width() * stop) - left, 1 if stop > start else 0)
            bar = QRect(area.left() + left, area.top(), width, area.height())
            painter.fillRect(bar, part_colour(part, option.palette))
