"""Masks: cells to draw, and weights to type, in a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtCore import (
    QEvent,
    QItemSelectionModel,
    QLocale,
    QRect,
    QSignalBlocker,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QFontMetrics,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPalette,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QMenu,
    QPushButton,
    QSizePolicy,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from kernelscope.base.errors import AppError, InvalidParameter
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.appearance import stylist
from kernelscope.gui.widgets.controls import WholeBox, choice_box
from kernelscope.gui.widgets.messages import (
    choose_text_to_open,
    choose_text_to_save,
    show_error,
    write_text,
)
from kernelscope.gui.widgets.parts import (
    Index,
    dressed,
    in_column,
    in_row,
    label_of,
    text_label,
    tool_button,
)
from kernelscope.schema.parameters import (
    Cells,
    FootprintParameter,
    Mask,
    MaskParameter,
    MaskPreset,
    read_number,
)

_ROOM = 250  # pixels that the widest table may take in a form
_SIDES = 8, 18  # pixels of a cell, at least and at most

_HELP = "Click or drag to draw; with keys: arrows move, Space changes a cell"


_Content = TypeVar("_Content")


def _centred(
    old: Sequence[Sequence[_Content]], height: int, width: int, empty: _Content
) -> list[list[_Content]]:
    """Return a table of this size with the content of another in its middle."""
    down, right = height // 2 - len(old) // 2, width // 2 - len(old[0]) // 2

    def cell(y: int, x: int) -> _Content:
        return old[y][x] if 0 <= y < len(old) and 0 <= x < len(old[0]) else empty

    return [[cell(y - down, x - right) for x in range(width)] for y in range(height)]


class _Squares(QTableWidget):
    """Cells without headings, of sizes that are set."""

    def __init__(self, name: str, accessible: str, tip: str = "") -> None:
        super().__init__()
        dressed(self, name, accessible, tip=tip)
        for header in (self.horizontalHeader(), self.verticalHeader()):
            header.hide()
            header.setMinimumSectionSize(1)
            header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)


class CellTable(_Squares):
    """Squares filled where a cell counts: arrows move, Space, 0 and 1 change, Tab leaves."""

    drawn = Signal()

    def __init__(self) -> None:
        super().__init__("footprintCells", "Cells of the mask", _HELP)
        self.setItemDelegate(_Cell(self))
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setTabKeyNavigation(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setShowGrid(False)
        self._brush: int | None = None  # the value that the mouse draws while its button is down

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

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
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
    """The table under its numbers of rows and columns, over its text."""

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
        height, width = self._rows.value(), self._columns.value()
        cells = _centred(self.table.cells() or ((0,),), height, width, 0)
        self.show_cells(tuple(map(tuple, cells)))
        self.changed.emit()


_WITHOUT_SCROLLING = 7
"""Up to this size all cells are in view, however narrow the window (long weights are cut short)."""

_CELL_PADDING = 8


class MaskTable(_Squares):
    """Cells as of a spreadsheet; Tab leaves after the last: the keyboard is never caught."""

    copy_asked = Signal()
    paste_asked = Signal()
    clear_asked = Signal()

    def __init__(self) -> None:
        super().__init__("maskTable", "Weights of the mask")
        self.setItemDelegate(_ShortNumbers(self))
        self._narrow = self._wide = 0
        self.setEditTriggers(
            QAbstractItemView.EditTrigger.AnyKeyPressed
            | QAbstractItemView.EditTrigger.EditKeyPressed
            | QAbstractItemView.EditTrigger.DoubleClicked
        )
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)

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

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:
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


_LARGEST_FILE = 1 << 20


class MaskEditor(QWidget):
    """Edits the value of a `MaskParameter`; `changed` also if `value` refuses it.

    ``presetChosen``: the table was filled from a preset, whose settings may be applied.
    """

    changed = Signal()
    presetChosen = Signal(object)  # noqa: N815

    def __init__(self, parameter: MaskParameter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("maskEditor")
        self._parameter = parameter
        self.problem = ""
        self._mask: Mask | None = None
        """The mask of the table, if it was read since its last change."""
        self._build()
        self.set_value(parameter.default)
        stylist().restyled.connect(self._check)

    def _build(self) -> None:
        self._table = MaskTable()
        self._table.setToolTip(self._parameter.help)
        model = self._table.model()  # the table's own signals are blocked at times
        for changed in (
            model.dataChanged,
            model.modelReset,
            model.rowsInserted,
            model.rowsRemoved,
            model.columnsInserted,
            model.columnsRemoved,
        ):
            changed.connect(self._forget)
        self._table.itemChanged.connect(self._cell_edited)
        self._table.copy_asked.connect(self.copy)
        self._table.paste_asked.connect(self.paste)
        self._table.clear_asked.connect(lambda: self._table.write_selected("0"))
        self._note = text_label("", "maskNote", plain=True)
        in_column(
            self._size_and_presets(), self._table, self._note, self._tools(), of=self, margins=0
        )

    def _size_and_presets(self) -> QHBoxLayout:
        parameter = self._parameter
        sizes = range(parameter.minimum, parameter.maximum + 1, 2)
        self._size = choice_box(
            "maskSize",
            "Size of the mask",
            ((f"{size}×{size}", size) for size in sizes),
            lambda: self._resize(self._size.currentData()),
            tip="Rows and columns. The weights stay centred.",
        )
        size_label = dressed(QLabel("Si&ze"), "maskSizeLabel")
        size_label.setBuddy(self._size)

        presets = dressed(
            QPushButton("Fill &with"),
            "maskPresets",
            "Fill the mask with a preset",
            tip="Replace all weights by a well-known mask of this size.",
        )
        menu = dressed(QMenu(presets), "maskPresetsMenu")
        for preset in parameter.presets:
            menu.addAction(preset.name).triggered.connect(
                lambda _=False, preset=preset: self._fill(preset)
            )
        presets.setMenu(menu)
        presets.setVisible(bool(parameter.presets))

        return in_row(size_label, self._size, presets, 1)

    def _tools(self) -> QHBoxLayout:
        buttons = (
            ("maskCopy", "Copy", "Copy the mask as text (Ctrl+C in the table)", self.copy),
            ("maskPaste", "Paste", "Paste a mask from text (Ctrl+V in the table)", self.paste),
            ("maskLoad", "Open…", "Open a mask from a text file", self.load),
            ("maskSave", "Save…", "Save the mask to a text file", self.save),
        )
        made = (tool_button(text, name, action, tip) for name, text, tip, action in buttons)
        return in_row(*made, 1, spacing=2)

    def value(self) -> Mask:
        if self._mask is None:
            self._mask = self._parameter.validate(_numbers(self._table.texts()))
        return self._mask

    def _forget(self) -> None:
        self._mask = None

    def set_value(self, mask: Sequence[Sequence[Any]]) -> None:
        """Show `mask`; one that the parameter does not allow leaves the table as it was."""
        mask = self._parameter.validate(mask)
        self._set_texts([[repr(weight) for weight in row] for row in mask])

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(
            "\n".join("\t".join(row) for row in self._table.texts())
        )

    def paste(self) -> None:
        text = QGuiApplication.clipboard().text()
        words = text.split()
        if len(words) == 1 and text.count(",") <= 1 and ";" not in text:
            self._table.write_selected(words[0])
            return
        try:
            self.set_value(self._parameter.parse(text))
        except InvalidParameter as error:
            show_error(
                self,
                InvalidParameter(f"The clipboard holds no mask. {error.message}", error.hint),
            )

    def load(self) -> None:
        choose_text_to_open(self, "Open a mask", self.load_from)

    def load_from(self, path: Path) -> None:
        self.set_value(self._parse_file(path))

    def _parse_file(self, path: Path) -> Mask:
        try:
            with path.open(encoding="utf-8-sig") as file:
                text = file.read(_LARGEST_FILE)
        except OSError as error:
            raise AppError(f"“{path}” cannot be read: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise AppError(
                f"“{path}” is not a text file.", "Choose a file with rows of numbers."
            ) from None
        try:
            return self._parameter.parse(text)
        except InvalidParameter as error:
            raise InvalidParameter(f"“{path}” holds no mask. {error.message}", error.hint) from None

    def save(self) -> None:
        choose_text_to_save(self, "Save the mask", "mask.txt", self.save_to)

    def save_to(self, path: Path) -> None:
        rows = (" ".join(repr(weight) for weight in row) for row in self.value())
        write_text(path, "".join(f"{row}\n" for row in rows))

    def _fill(self, preset: MaskPreset) -> None:
        self.set_value(preset.fill(self._size.currentData()))
        self.presetChosen.emit(preset)

    def _resize(self, size: int) -> None:
        self._set_texts(_centred(self._table.texts(), size, size, "0"))

    def _set_texts(self, texts: list[list[str]]) -> None:
        if texts == self._table.texts():
            return
        with QSignalBlocker(self._table), QSignalBlocker(self._size):
            self._table.set_texts(texts)
            self._size.setCurrentIndex(self._size.findData(len(texts)))
        self._check()
        self.changed.emit()

    def _cell_edited(self, item: QTableWidgetItem) -> None:
        with QSignalBlocker(self._table):
            item.setText(item.text().strip() or "0")
        self._check()
        self.changed.emit()

    def _check(self) -> None:
        """Mark the cells that hold no number, and note the sum."""
        self.problem = ""
        total = []
        with QSignalBlocker(self._table):
            for y, row in enumerate(_numbers(self._table.texts())):
                for x, number in enumerate(row):
                    try:
                        total.append(self._parameter.validate_cell(number, y, x))
                        refusal = ""
                    except InvalidParameter as error:
                        refusal = str(error)
                    self._table.mark(y, x, refusal)
                    self.problem = self.problem or refusal
            self._table.fit()

        palette = self.palette()
        if self.problem:
            palette.setColor(QPalette.ColorRole.WindowText, theme.error_text(palette))
        self._note.setPalette(palette)
        self._note.setText(self.problem or f"Sum of the weights: {math.fsum(total):.10g}")


def _numbers(texts: list[list[str]]) -> list[list[float | str]]:
    return [[number_in(text) for text in row] for row in texts]
