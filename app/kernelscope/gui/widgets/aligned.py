"""Columns of figures whose decimal points stand below each other, with their units in a column.

 14.5  ms
589    µs
  1.08 s
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPalette
from PySide6.QtWidgets import QAbstractItemView, QStyle, QStyledItemDelegate, QStyleOptionViewItem

_FIGURE = re.compile(r"(?P<whole>\D*[\d,]+)(?P<fraction>\.\d+)?(?P<unit>.*)")
_MARGIN = 4  # pixels beside the figures of a cell
_MIDDLE = Qt.AlignmentFlag.AlignVCenter


def parts_of(text: str) -> tuple[str, str, str] | None:
    """Return a figure up to its point, its decimals and its unit; None for words and remarks."""
    found = _FIGURE.fullmatch(text) if "(" not in text else None
    return None if found is None else (found["whole"], found["fraction"] or "", found["unit"])


class Column:
    """The places of the parts of figures, for the texts of a column."""

    def __init__(self, texts: Iterable[str], metrics: QFontMetrics) -> None:
        self._metrics = metrics
        width = metrics.horizontalAdvance
        texts = tuple(texts)
        split = [each for text in texts if (each := parts_of(text)) is not None]
        self._widths = [max((width(each[n]) for each in split), default=0) for n in range(3)]
        words = max((width(text) for text in texts if parts_of(text) is None), default=0)
        self.width = max(sum(self._widths), words)

    def paint(self, painter: QPainter, place: QRect, text: str) -> None:
        """Draw a text of the column at the right of a place, with the pen of the painter."""
        split = parts_of(text)
        if split is None or self.width > place.width():
            elided = self._metrics.elidedText(text, Qt.TextElideMode.ElideRight, place.width())
            painter.drawText(place, Qt.AlignmentFlag.AlignRight | _MIDDLE, elided)
            return
        whole, fraction, unit = split
        units = place.right() + 1 - self._widths[2]
        point = units - self._widths[1]
        top, height = place.top(), place.height()
        left = QRect(place.left(), top, point - place.left(), height)
        painter.drawText(left, Qt.AlignmentFlag.AlignRight | _MIDDLE, whole)
        for start, part in ((point, fraction), (units, unit)):
            painter.drawText(QRect(start, top, place.right() + 1 - start, height), _MIDDLE, part)


class FigureDelegate(QStyledItemDelegate):
    """Draws the cells of a column of a view as a `Column`."""

    def __init__(self, view: QAbstractItemView) -> None:
        super().__init__(view)
        self._view = view
        self._columns: dict[tuple[int, str], Column] = {}
        model = view.model()
        for changed in (
            model.modelReset,
            model.dataChanged,
            model.rowsInserted,
            model.rowsRemoved,
        ):
            changed.connect(self._forget)

    def _forget(self) -> None:
        self._columns.clear()

    def _column(self, number: int, font: QFont) -> Column:
        key = number, font.toString()
        if key not in self._columns:
            model = self._view.model()
            cells = (model.index(row, number) for row in range(model.rowCount()))
            texts = (str(cell.data() or "") for cell in cells)
            self._columns[key] = Column(texts, QFontMetrics(font))
        return self._columns[key]

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        shown = QStyleOptionViewItem(option)
        self.initStyleOption(shown, index)
        text, shown.text = shown.text, ""
        style, widget = self._view.style(), self._view
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, shown, painter, widget)
        selected = bool(shown.state & QStyle.StateFlag.State_Selected)
        role = QPalette.ColorRole.HighlightedText if selected else QPalette.ColorRole.Text
        painter.save()
        painter.setFont(shown.font)
        painter.setPen(shown.palette.color(role))
        place = shown.rect.adjusted(_MARGIN, 0, -_MARGIN, 0)
        self._column(index.column(), shown.font).paint(painter, place, text)
        painter.restore()

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        size = super().sizeHint(option, index)
        wanted = self._column(index.column(), option.font).width + 2 * _MARGIN + 2
        return size.expandedTo(QSize(wanted, 0))
