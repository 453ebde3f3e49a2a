"""A table to type a convolution mask into."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import (
    QEvent,
    QItemSelectionModel,
    QLocale,
    QModelIndex,
    QPersistentModelIndex,
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
    QPalette,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
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
from kernelscope.gui.widgets.controls import choice_box
from kernelscope.gui.widgets.messages import (
    choose_text_to_open,
    choose_text_to_save,
    show_error,
    write_text,
)
from kernelscope.gui.widgets.parts import dressed, in_column, in_row, text_label, tool_button
from kernelscope.schema.parameters import Mask, MaskParameter, MaskPreset, read_number

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


_LARGEST_FILE = 1 << 20


class MaskEditor(QWidget):
    """Shows and edits the value of a `MaskParameter`.

    ``changed()``: after a change by the user or by `set_value`, also to something `value` refuses.
    ``presetChosen(MaskPreset)``: after the table was filled from a preset, whose settings the
    listener may apply.
    """

    changed = Signal()
    presetChosen = Signal(object)  # noqa: N815

    def __init__(self, parameter: MaskParameter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("maskEditor")
        self._parameter = parameter
        self._problem = ""
        self._mask: Mask | None = None
        """The mask of the table, if it was read since its last change."""
        self._build()
        self.set_value(parameter.default)

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
        self._table.clear_asked.connect(self._clear_cells)
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

    @property
    def problem(self) -> str:
        return self._problem

    def value(self) -> Mask:
        if self._mask is None:
            self._mask = self._parameter.validate(_numbers(self._table.texts()))
        return self._mask

    def _forget(self) -> None:
        self._mask = None

    def set_value(self, mask: Sequence[Sequence[Any]]) -> None:
        """Show `mask`; one that the parameter does not allow leaves the table as it was."""
        mask = self._parameter.validate(mask)
        self._set_texts([[_text(weight) for weight in row] for row in mask])

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
        try:
            self.set_value(self._parse_file(path))
        except AppError as error:
            show_error(self, error)

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
        try:
            rows = (" ".join(_text(weight) for weight in row) for row in self.value())
            write_text(path, "".join(f"{row}\n" for row in rows))
        except AppError as error:
            show_error(self, error)

    def _fill(self, preset: MaskPreset) -> None:
        self.set_value(preset.fill(self._size.currentData()))
        self.presetChosen.emit(preset)

    def _resize(self, size: int) -> None:
        old = self._table.texts()
        shift = (size - len(old)) // 2

        def cell(y: int, x: int) -> str:
            inside = 0 <= y < len(old) and 0 <= x < len(old)
            return old[y][x] if inside else "0"

        self._set_texts([[cell(y - shift, x - shift) for x in range(size)] for y in range(size)])

    def _set_texts(self, texts: list[list[str]]) -> None:
        if texts == self._table.texts():
            return
        with QSignalBlocker(self._table), QSignalBlocker(self._size):
            self._table.set_texts(texts)
            self._size.setCurrentIndex(self._size.findData(len(texts)))
        self._check()
        self.changed.emit()

    def _clear_cells(self) -> None:
        self._table.write_selected("0")

    def _cell_edited(self, item: QTableWidgetItem) -> None:
        with QSignalBlocker(self._table):
            item.setText(item.text().strip() or "0")
        self._check()
        self.changed.emit()

    def _check(self) -> None:
        """Mark the cells that hold no number, and note the sum."""
        self._problem = ""
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
                    self._problem = self._problem or refusal
            self._table.fit()

        palette = self.palette()
        if self._problem:
            palette.setColor(QPalette.ColorRole.WindowText, theme.error_text(palette))
        self._note.setPalette(palette)
        self._note.setText(self._problem or f"Sum of the weights: {math.fsum(total):.10g}")

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._check()


def _text(weight: float) -> str:
    return repr(weight)


def _numbers(texts: list[list[str]]) -> list[list[float | str]]:
    return [[number_in(text) for text in row] for row in texts]
