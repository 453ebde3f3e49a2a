"""A table to type a convolution mask into."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, Signal
from PySide6.QtGui import QGuiApplication, QPalette
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QPushButton, QTableWidgetItem, QWidget

from kernelscope.base.errors import AppError, InvalidParameter
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.controls import ChoiceBox
from kernelscope.gui.widgets.mask_table import MaskTable, number_in
from kernelscope.gui.widgets.messages import (
    choose_text_to_open,
    choose_text_to_save,
    show_error,
    write_text,
)
from kernelscope.gui.widgets.parts import dressed, in_column, in_row, text_label, tool_button
from kernelscope.schema.parameters import Mask, MaskParameter, MaskPreset

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
        self._size = dressed(
            ChoiceBox(),
            "maskSize",
            "Size of the mask",
            tip="Rows and columns. The weights stay centred.",
        )
        for size in range(parameter.minimum, parameter.maximum + 1, 2):
            self._size.addItem(f"{size}×{size}", size)
        self._size.currentIndexChanged.connect(lambda: self._resize(self._size.currentData()))
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
        blocked = self._table.blockSignals(True)
        self._table.set_texts(texts)
        self._table.blockSignals(blocked)
        blocked = self._size.blockSignals(True)
        self._size.setCurrentIndex(self._size.findData(len(texts)))
        self._size.blockSignals(blocked)
        self._check()
        self.changed.emit()

    def _clear_cells(self) -> None:
        self._table.write_selected("0")

    def _cell_edited(self, item: QTableWidgetItem) -> None:
        blocked = self._table.blockSignals(True)
        item.setText(item.text().strip() or "0")
        self._table.blockSignals(blocked)
        self._check()
        self.changed.emit()

    def _check(self) -> None:
        """Mark the cells that hold no number, and note the sum."""
        self._problem = ""
        total = []
        blocked = self._table.blockSignals(True)
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
        self._table.blockSignals(blocked)

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
