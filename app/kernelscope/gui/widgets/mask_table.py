"""The cells of a convolution mask: a table of texts that behaves like a spreadsheet."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import (
    QEvent,
    QItemSelectionModel,
    QLocale,
    QModelIndex,
    QPersistentModelIndex,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFontMetrics, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QAbstractItemView,
    QHeaderView,
    QSizePolicy,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.parts import dressed
from kernelscope.schema.parameters import read_number

_WITHOUT_SCROLLING = 7
"""Up to this size all cells are in view, however narrow the window (long weights are cut short)."""

_CELL_PADDING = 8


class MaskTable(QTableWidget):
    """Square cells of text that behave like a spreadsheet's.

    Tab and the arrows move, Enter goes down, typing replaces, Delete clears. Tab leaves the
    table after the last cell (and Shift+Tab before the first), so that the keyboard is never
    caught in it.
    """

    copy_asked = Signal()
    paste_asked = Signal()
    clear_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        dressed(self, "maskTable", "Weights of the mask")
        self.setItemDelegate(_ShortNumbers(self))
        self._narrow = self._wide = 0
        self.setEditTriggers(
            QAbstractItemView.EditTrigger.AnyKeyPressed
            | QAbstractItemView.EditTrigger.EditKeyPressed
            | QAbstractItemView.EditTrigger.DoubleClicked
        )
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        for header in (self.horizontalHeader(), self.verticalHeader()):
            header.hide()
            header.setMinimumSectionSize(1)
            header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)

    def texts(self) -> list[list[str]]:
        return [
            [self._cell(y, x).text() for x in range(self.columnCount())]
            for y in range(self.rowCount())
        ]

    def _cell(self, y: int, x: int) -> QTableWidgetItem:
        item = self.item(y, x)
        assert item is not None
        return item

    def set_texts(self, texts: list[list[str]]) -> None:
        size = len(texts)
        y, x = self.currentRow(), self.currentColumn()
        self.setRowCount(size)
        self.setColumnCount(size)
        for row, cells in enumerate(texts):
            for column, text in enumerate(cells):
                item = QTableWidgetItem(text)
                item.setTextAlignment(Qt.AlignmentFlag.AlignCenter)
                self.setItem(row, column, item)
        # Current, but not selected: a coloured corner would look as if it meant something.
        self.selectionModel().setCurrentIndex(
            self.model().index(min(max(y, 0), size - 1), min(max(x, 0), size - 1)),
            QItemSelectionModel.SelectionFlag.NoUpdate,
        )

    def write_selected(self, text: str) -> None:
        for item in self.selectedItems() or [self._cell(self.currentRow(), self.currentColumn())]:
            item.setText(text)

    def mark(self, y: int, x: int, refusal: str) -> None:
        item = self._cell(y, x)
        item.setData(
            Qt.ItemDataRole.BackgroundRole, theme.error_fill(self.palette()) if refusal else None
        )
        item.setToolTip(refusal or f"Row {y + 1}, column {x + 1}: {item.text()}")

    def fit(self) -> None:
        texts = {_short(text) for row in self.texts() for text in row}
        bold = self.font()
        bold.setBold(True)
        width = QFontMetrics(bold).horizontalAdvance
        self._narrow = width("000") + _CELL_PADDING
        self._wide = max(self._narrow, *(width(text) + _CELL_PADDING for text in texts))
        self._wide = min(self._wide, width("-0.0000") + _CELL_PADDING)
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 8)
        self.setMaximumSize(self._outer_size(self._wide, self.columnCount()))
        self.updateGeometry()
        self._share_out()

    def _share_out(self) -> None:
        """Share the room among the columns, within reason."""
        room = self.maximumViewportSize().width()
        if self.columnCount() > _WITHOUT_SCROLLING:
            room -= self.verticalScrollBar().sizeHint().width()
        share = room // min(self.columnCount(), _WITHOUT_SCROLLING)
        self.horizontalHeader().setDefaultSectionSize(max(self._narrow, min(share, self._wide)))

    def _outer_size(self, width: int, columns: int) -> QSize:
        frame = 2 * self.frameWidth()
        return QSize(
            columns * width + frame,
            columns * self.verticalHeader().defaultSectionSize() + frame,
        )

    def _hint(self, width: int) -> QSize:
        size = self._outer_size(width, min(self.columnCount(), _WITHOUT_SCROLLING))
        if self.columnCount() > _WITHOUT_SCROLLING:
            size += QSize(
                self.verticalScrollBar().sizeHint().width(),
                self.horizontalScrollBar().sizeHint().height(),
            )
        return size

    def sizeHint(self) -> QSize:
        return self._hint(self._wide)

    def minimumSizeHint(self) -> QSize:
        return self._hint(self._narrow)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._share_out()
        super().resizeEvent(event)

    def event(self, event: QEvent) -> bool:
        own = (QKeySequence.StandardKey.Copy, QKeySequence.StandardKey.Paste)
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.ShortcutOverride
            and any(event.matches(key) for key in own)
        ):
            # Here these keys are the table's, although the window has shortcuts for them.
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_asked.emit()
        elif event.matches(QKeySequence.StandardKey.Paste):
            self.paste_asked.emit()
        elif event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.clear_asked.emit()
        elif event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)
        elif self.state() != QAbstractItemView.State.EditingState:
            # While editing, the key comes here as well, and then `closeEditor` moves.
            self._go_down()

    def closeEditor(self, editor: QWidget, hint: QAbstractItemDelegate.EndEditHint) -> None:
        hints = QAbstractItemDelegate.EndEditHint
        forward = hint == hints.EditNextItem
        if forward or hint == hints.EditPreviousItem:
            # Tab moves on without opening the next cell, and out of the last one.
            super().closeEditor(editor, hints.NoHint)
            self.focusNextPrevChild(forward)
        else:
            super().closeEditor(editor, hint)
            if hint == hints.SubmitModelCache:
                self._go_down()

    def focusNextPrevChild(self, forward: bool) -> bool:
        last = self.rowCount() - 1
        end = (last, last) if forward else (0, 0)
        self.setTabKeyNavigation((self.currentRow(), self.currentColumn()) != end)
        return super().focusNextPrevChild(forward)

    def _go_down(self) -> None:
        y, x, size = self.currentRow(), self.currentColumn(), self.rowCount()
        below = (y + 1, x) if y + 1 < size else (0, (x + 1) % size)
        self.setCurrentCell(*below)


class _ShortNumbers(QStyledItemDelegate):
    """Shows few digits, edits all of them, and marks the centre of the table."""

    def displayText(self, value: Any, locale: QLocale | QLocale.Language) -> str:
        return _short(value)

    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().initStyleOption(option, index)
        middle = index.model().rowCount() // 2
        if index.row() == middle and index.column() == middle:
            option.font.setBold(True)


def _short(text: str) -> str:
    number = number_in(text)
    if isinstance(number, str):
        return text
    if 0.001 <= abs(number) < 100:
        return f"{number:.3f}".rstrip("0").rstrip(".")
    return f"{number:.5g}" if abs(number) >= 1 else f"{number:.1g}"


def number_in(text: str) -> float | str:
    top, slash, bottom = text.partition("/")
    try:
        return read_number(top) / read_number(bottom) if slash else read_number(text)
    except (ValueError, ZeroDivisionError):
        return text
