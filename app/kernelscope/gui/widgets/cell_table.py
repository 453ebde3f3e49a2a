"""The cells of a mask of any shape: a table to draw into, by mouse or keyboard, and its text."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPalette
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLineEdit,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from kernelscope.base.errors import InvalidParameter
from kernelscope.gui.widgets.controls import WholeBox
from kernelscope.gui.widgets.parts import dressed, in_column, in_row, label_of
from kernelscope.schema.parameters import Cells, FootprintParameter

_ROOM = 250  # pixels that the widest table may take in a form
_SIDES = 8, 18  # pixels of a cell, at least and at most

_HELP = "Click or drag to draw; with keys: arrows move, Space changes a cell"


class CellTable(QTableWidget):
    """Squares that are filled where a cell counts; the centre has a dot.

    Arrows move, Space changes a cell, 0 and 1 set it; Tab leaves the table.
    """

    drawn = Signal()

    def __init__(self) -> None:
        super().__init__()
        dressed(self, "footprintCells", "Cells of the mask", tip=_HELP)
        self.setItemDelegate(_Cell(self))
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setTabKeyNavigation(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setShowGrid(False)
        for header in (self.horizontalHeader(), self.verticalHeader()):
            header.hide()
            header.setMinimumSectionSize(1)
            header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self._brush: int | None = None
        """The value that the mouse draws while its button is down."""

    def cells(self) -> Cells:
        return tuple(
            tuple(self._value(y, x) for x in range(self.columnCount()))
            for y in range(self.rowCount())
        )

    def show_cells(self, cells: Cells) -> None:
        """Show these cells; the current one stays, as far as it is still there."""
        current = max(self.currentRow(), 0), max(self.currentColumn(), 0)
        self.setRowCount(len(cells))
        self.setColumnCount(len(cells[0]))
        for y, row in enumerate(cells):
            for x, value in enumerate(row):
                self.setItem(y, x, QTableWidgetItem())
                self._set(y, x, value)
        side = max(_SIDES[0], min(_SIDES[1], _ROOM // max(len(cells), len(cells[0]))))
        for header in (self.horizontalHeader(), self.verticalHeader()):
            header.setDefaultSectionSize(side)
        frame = 2 * self.frameWidth()
        self.setFixedSize(len(cells[0]) * side + frame, len(cells) * side + frame)
        self.setCurrentCell(min(current[0], len(cells) - 1), min(current[1], len(cells[0]) - 1))

    def _value(self, y: int, x: int) -> int:
        item = self.item(y, x)
        return int(item.data(Qt.ItemDataRole.UserRole)) if item is not None else 0

    def _set(self, y: int, x: int, value: int) -> None:
        item = self.item(y, x)
        assert item is not None
        item.setData(Qt.ItemDataRole.UserRole, value)
        counts = "counts" if value else "does not count"
        spoken = f"Row {y + 1}, column {x + 1} {counts}"
        item.setData(Qt.ItemDataRole.AccessibleTextRole, spoken)

    def _draw(self, y: int, x: int, value: int) -> None:
        if self._value(y, x) != value:
            self._set(y, x, value)
            self.drawn.emit()

    # --- Qt ---

    def keyPressEvent(self, event: QKeyEvent) -> None:
        y, x, key = self.currentRow(), self.currentColumn(), event.key()
        values = {
            Qt.Key.Key_Space: 1 - self._value(y, x),
            Qt.Key.Key_0: 0,
            Qt.Key.Key_1: 1,
        }
        if key in values:
            self._draw(y, x, values[Qt.Key(key)])
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        index = self.indexAt(event.position().toPoint())
        if event.button() is Qt.MouseButton.LeftButton and index.isValid():
            self._brush = 1 - self._value(index.row(), index.column())
            self._draw(index.row(), index.column(), self._brush)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        index = self.indexAt(event.position().toPoint())
        if self._brush is not None and index.isValid():
            self.setCurrentIndex(index)
            self._draw(index.row(), index.column(), self._brush)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        self._brush = None


class _Cell(QStyledItemDelegate):
    """Draws a square, the dot of the centre, and the cursor of the keyboard."""

    def __init__(self, table: CellTable) -> None:
        super().__init__(table)
        self._table = table

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        palette, table = self._table.palette(), self._table
        counts = bool(index.data(Qt.ItemDataRole.UserRole))
        fill, ink = (
            (QPalette.ColorRole.Accent, QPalette.ColorRole.Base)
            if counts
            else (QPalette.ColorRole.Base, QPalette.ColorRole.PlaceholderText)
        )
        rect: QRect = option.rect
        painter.save()
        painter.fillRect(rect, palette.color(QPalette.ColorRole.Midlight))
        painter.fillRect(rect.adjusted(0, 0, -1, -1), palette.color(fill))
        if (index.row(), index.column()) == (table.rowCount() // 2, table.columnCount() // 2):
            side = max(2, rect.width() // 4)
            dot = QRect(0, 0, side, side)
            dot.moveCenter(rect.center())
            painter.fillRect(dot, palette.color(ink))
        if table.hasFocus() and index == table.currentIndex():
            painter.setPen(palette.color(QPalette.ColorRole.Text))
            painter.drawRect(rect.adjusted(0, 0, -2, -2))
        painter.restore()


class CellSheet(QWidget):
    """The table under its numbers of rows and columns, over its text.

    `value` returns the cells, or raises `InvalidParameter` while the text or the table is refused.
    """

    changed = Signal()

    def __init__(self, parameter: FootprintParameter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("footprintSheet")
        self._parameter = parameter
        self.table = CellTable()
        self.table.drawn.connect(self._on_drawn)
        self._rows, self._columns = (
            dressed(WholeBox(), f"footprint{name}", f"{name} of the mask")
            for name in ("Rows", "Columns")
        )
        for box in (self._rows, self._columns):
            box.setRange(1, parameter.maximum)
            box.valueChanged.connect(lambda _: self._resize())
        self._text = dressed(
            QLineEdit(),
            "footprintText",
            "Cells of the mask as text",
            tip="Rows of 0 and 1, separated by “;”: to type, to copy and to paste",
        )
        self._text.textEdited.connect(self._on_typed)
        rows, columns = label_of("Rows", self._rows), label_of("Columns", self._columns)
        sides = in_row(rows, self._rows, columns, self._columns, 1, margins=0)
        in_column(sides, self.table, self._text, of=self, margins=0)

    def value(self) -> Cells:
        text = self._text.text()
        typed = self._parameter.parse(text)
        if isinstance(typed, str):  # a name, which the list offers
            raise InvalidParameter(f"“{text}” is no table of cells.", "Use rows of 0 and 1.")
        cells: Cells = typed
        return cells

    def show_cells(self, cells: Cells) -> None:
        """Show these cells, in the table and as text."""
        self._show_table(cells)
        text = self._parameter.format(cells)
        if self._text.text() != text:
            self._text.setText(text)

    def _show_table(self, cells: Cells) -> None:
        if cells == self.table.cells():
            return
        self.table.show_cells(cells)
        for box, side in ((self._rows, len(cells)), (self._columns, len(cells[0]))):
            with QSignalBlocker(box):
                box.setValue(side)

    def _on_drawn(self) -> None:
        self._text.setText(self._parameter.format(self.table.cells()))
        self.changed.emit()

    def _on_typed(self, text: str) -> None:
        """Show the typed cells, unless they are none; `value` says why not."""
        try:
            typed = self._parameter.parse(text)
        except InvalidParameter:
            typed = ""
        if not isinstance(typed, str):
            self._show_table(typed)
        self.changed.emit()

    def _resize(self) -> None:
        """Add cells that do not count around the centre, or cut from all sides."""
        old, height, width = (
            self.table.cells() or ((0,),),
            self._rows.value(),
            self._columns.value(),
        )
        down, right = height // 2 - len(old) // 2, width // 2 - len(old[0]) // 2

        def cell(y: int, x: int) -> int:
            inside = 0 <= y < len(old) and 0 <= x < len(old[0])
            return old[y][x] if inside else 0

        self.show_cells(
            tuple(tuple(cell(y - down, x - right) for x in range(width)) for y in range(height))
        )
        self.changed.emit()
