"""The settings of a batch: recipe, output folder, format, device."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QFileDialog, QGridLayout, QLineEdit, QWidget

from kernelscope.base.errors import AppError
from kernelscope.engine.recipe import Recipe
from kernelscope.files import WRITABLE, read_recipe
from kernelscope.files.volumes import WRITABLE_VOLUMES
from kernelscope.gui.model.batch_run import AS_INPUT, KEEP, REPLACE, BatchSettings, described
from kernelscope.gui.widgets import messages, theme
from kernelscope.gui.widgets.controls import ChoiceBox
from kernelscope.gui.widgets.editors import shrink
from kernelscope.gui.widgets.elided_label import ElidedLabel
from kernelscope.gui.widgets.parts import dressed, label_of, push_button
from kernelscope.schema.devices import Device

_STEPS = "Steps of the main window"
_RECIPES = "Recipes (*.json);;All files (*)"
_DEVICES = {Device.AUTO: "Automatic", Device.CPU: "CPU", Device.GPU: "GPU"}


class BatchForm(QWidget):
    """Edits a `BatchSettings` and chooses a recipe.

    `steps` returns the steps of the main window; raises `AppError` without any.
    """

    places_changed = Signal()  # results go to other places now
    changed = Signal()  # some setting is another one

    def __init__(self, steps: Callable[[], Recipe], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("batchForm")
        self._steps = steps
        self._read: Recipe | None = None
        self._chose_out = False
        self._out_text = ""
        self._device = Device.AUTO  # the device that the user chose, which may not be offered yet
        self._make_controls()
        self._lay_out()
        self.recipes.activated.connect(lambda _: self.show_recipe())
        self.out.editingFinished.connect(self.take_out)
        self.formats.activated.connect(lambda _: self.places_changed.emit())
        self.devices.activated.connect(self._on_device)
        for box in (self.formats, self.there):
            box.activated.connect(lambda _: self.changed.emit())
        self.lossy.toggled.connect(lambda _: self.changed.emit())
        self.show_recipe()

    def _make_controls(self) -> None:
        self.recipes = self._choice("Recipe", "Recipe", "The steps that each file goes through")
        self.formats = self._choice("Format", "Format", "The format of the results")
        there = "Files in the output folder that have the names of results"
        self.there = self._choice("There", "Existing results", there)
        self.devices = self._choice("Device", "Device", "Where to compute")
        below = "Files of folders keep their places below it"
        self.out = dressed(QLineEdit(self), "batchOut", "Output folder", tip=below)
        self._open = push_button(
            "O&pen Recipe…",
            "batchOpenRecipe",
            self._choose_recipe,
            "Open recipe",
            tip="Take the steps from a recipe file",
        )
        self._choose = push_button(
            "C&hoose…",
            "batchChooseOut",
            self._choose_out,
            "Choose output folder",
            tip="Choose the output folder",
        )
        self.lossy = dressed(
            QCheckBox("Allo&w losses of the format", self),
            "batchLossy",
            "Allow losses of the format",
            tip="Round, or drop transparency and colour, where a format cannot keep them",
        )
        self.description = ElidedLabel(self)
        theme.set_role(self.description, "note")
        self.recipes.addItem(_STEPS)
        self.formats.addItem(AS_INPUT[0].upper() + AS_INPUT[1:], "")
        for kind in (*WRITABLE, *WRITABLE_VOLUMES):
            self.formats.addItem(f"{kind.name} ({kind.suffixes[0]})", kind.suffixes[0])
        self.there.addItem(KEEP, False)
        self.there.addItem(REPLACE, True)
        self.set_devices(())

    def _choice(self, id_: str, name: str, tip: str) -> ChoiceBox:
        box = dressed(ChoiceBox(self), f"batch{id_}", name, tip=tip)
        shrink(box)
        return box

    def _lay_out(self) -> None:
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(10)
        grid.setColumnStretch(1, 3)
        grid.setColumnStretch(4, 2)
        for row, column, caption, widget in (
            (0, 0, "Rec&ipe", self.recipes),
            (2, 0, "Output &folder", self.out),
            (3, 0, "Exis&ting results", self.there),
            (0, 3, "For&mat", self.formats),
            (2, 3, "De&vice", self.devices),
        ):
            grid.addWidget(label_of(caption, widget), row, column)
            grid.addWidget(widget, row, column + 1)
        grid.addWidget(self._open, 0, 2)
        grid.addWidget(self._choose, 2, 2)
        grid.addWidget(self.lossy, 3, 4)
        grid.addWidget(self.description, 1, 1, 1, 4)

    # --- settings ---

    def settings(self) -> BatchSettings:
        return BatchSettings(
            self.out.text() if self._chose_out else "",
            str(self.formats.currentData()),
            self._device,
            bool(self.there.currentData()),
            self.lossy.isChecked(),
        )

    def show_settings(self, settings: BatchSettings) -> None:
        """Show settings that were kept; a choice that is not offered any more is left out."""
        self._chose_out = bool(settings.out)
        self.out.setText(settings.out)
        self._out_text = settings.out
        for box, data in (
            (self.formats, settings.suffix),
            (self.there, settings.replaces),
        ):
            box.setCurrentIndex(max(0, box.findData(data)))
        self._device = settings.device
        self.devices.setCurrentIndex(max(0, self.devices.findData(settings.device)))
        self.lossy.setChecked(settings.lossy)

    def set_devices(self, available: Collection[str]) -> None:
        """Offer the devices that can be used."""
        self.devices.clear()
        for device, name in _DEVICES.items():
            if device is not Device.GPU or device in available:
                self.devices.addItem(name, device)
        self.devices.setCurrentIndex(max(0, self.devices.findData(self._device)))

    def _on_device(self) -> None:
        self._device = self.device
        self.changed.emit()

    @property
    def device(self) -> Device:
        return Device(self.devices.currentData())

    @property
    def folder(self) -> Path | None:
        """The output folder; None while there is none."""
        text = self.out.text().strip()
        return Path(text).expanduser().absolute() if text else None

    @property
    def suffix(self) -> str | None:
        """The suffix of all results; None for that of each file."""
        return str(self.formats.currentData()) or None

    def offer_out(self, folder: Path) -> None:
        """Propose an output folder, unless the user chose one."""
        if not self._chose_out:
            self.out.setText(str(folder))
            self._out_text = str(folder)

    def take_out(self) -> None:
        """Use the output folder that is typed."""
        if self.out.text() != self._out_text:
            self._out_text = self.out.text()
            self._chose_out = bool(self.out.text().strip())
            self.places_changed.emit()
            self.changed.emit()

    def _choose_out(self) -> None:
        dialog = dressed(QFileDialog(self, "Output Folder", self.out.text()), "batchOutDialog")
        dialog.setFileMode(QFileDialog.FileMode.Directory)

        def use(text: str) -> None:
            self.out.setText(text)
            self.take_out()

        dialog.fileSelected.connect(use)
        messages.open_dialog(dialog)

    # --- recipe ---

    def recipe(self) -> Recipe:
        """Return the steps that are chosen; raises `AppError` if there are none."""
        if self.recipes.currentIndex() == 0 or self._read is None:
            return self._steps()
        return self._read

    def show_recipe(self) -> None:
        """Show the steps that a file would go through now."""
        try:
            text = described(self.recipe())
        except AppError as error:
            theme.set_role(self.description, "problem")
            self.description.set_full_text(str(error))
        else:
            theme.set_role(self.description, "note")
            self.description.set_full_text(text)

    def _choose_recipe(self) -> None:
        dialog = messages.choose_text_to_open(self, "Recipe", self.read_recipe, _RECIPES)
        dialog.setObjectName("batchRecipeDialog")

    def read_recipe(self, path: Path) -> None:
        """Take the steps from a file."""
        try:
            self._read = read_recipe(path)
        except AppError as error:
            messages.show_error(self, error)
            return
        if self.recipes.count() > 1:
            self.recipes.removeItem(1)
        self.recipes.addItem(path.name)
        self.recipes.setItemData(1, str(path), Qt.ItemDataRole.ToolTipRole)
        self.recipes.setCurrentIndex(1)
        self.show_recipe()
