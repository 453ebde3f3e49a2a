"""The settings of a batch: recipe, output folder, format, device."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QGridLayout, QWidget

from kernelscope.base.errors import AppError
from kernelscope.base.text import one_line
from kernelscope.engine.recipe import Recipe
from kernelscope.files import WRITABLE, read_recipe
from kernelscope.files.volumes import WRITABLE_VOLUMES
from kernelscope.gui.model.batch_run import AS_INPUT, KEEP, REPLACE, BatchSettings, described
from kernelscope.gui.widgets import messages, theme
from kernelscope.gui.widgets.elided_label import ElidedLabel, plain_tip
from kernelscope.gui.widgets.form import Form, Listed, Text, Tick
from kernelscope.gui.widgets.parts import push_button
from kernelscope.schema.devices import Device

_RECIPES = "Recipes (*.json);;All files (*)"
_STEPS = (("Steps of the main window", None),)
_DEVICES = {Device.AUTO: "Automatic", Device.CPU: "CPU", Device.GPU: "GPU"}
_FORMATS = tuple(
    (f"{kind.name} ({kind.suffixes[0]})", kind.suffixes[0])
    for kind in (*WRITABLE, *WRITABLE_VOLUMES)
)

_OPTIONS = (
    Listed("batchRecipe", "Rec&ipe", None, "The steps that each file goes through", _STEPS),
    Listed(
        "batchFormat",
        "For&mat",
        "",
        "The format of the results",
        entries=((AS_INPUT[0].upper() + AS_INPUT[1:], ""), *_FORMATS),
    ),
    Text("batchOut", "Output &folder", help="Files of folders keep their places below it"),
    Listed(
        "batchThere",
        "Exis&ting results",
        False,
        "Files in the output folder that have the names of results",
        entries=((KEEP, False), (REPLACE, True)),
    ),
    Listed("batchDevice", "De&vice", Device.AUTO, "Where to compute"),  # see `set_devices`
    Tick(
        "batchLossy",
        "Allo&w losses of the format",
        help="Round, or drop transparency and colour, where a format cannot keep them",
    ),
)


class BatchForm(Form):
    """Edits a `BatchSettings` and chooses a recipe.

    `steps` returns the steps of the main window; raises `AppError` without any.
    """

    places_changed = Signal()  # results go to other places now

    def __init__(self, steps: Callable[[], Recipe], parent: QWidget | None = None) -> None:
        super().__init__("batchForm", _OPTIONS, parent, by_hand=True)
        self._steps = steps
        self._chosen_out = self._out_text = ""
        self._usable: Collection[str] = ()
        self.description = ElidedLabel(self)
        theme.set_role(self.description, "note")
        self._lay_out()
        self.set_devices(())
        self.editors["batchOut"].editingFinished.connect(self.take_out)
        self.changed.connect(self._on_option)
        self.show_recipe()

    def _on_option(self, name: str) -> None:
        if name == "batchRecipe":
            self.show_recipe()
        elif name == "batchFormat":
            self.places_changed.emit()

    def _lay_out(self) -> None:
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(10)
        grid.setColumnStretch(1, 3)
        grid.setColumnStretch(4, 2)
        for row, column, name in (
            (0, 0, "batchRecipe"),
            (2, 0, "batchOut"),
            (3, 0, "batchThere"),
            (0, 3, "batchFormat"),
            (2, 3, "batchDevice"),
        ):
            grid.addWidget(self.labels[name], row, column)
            grid.addWidget(self.editors[name], row, column + 1)
        tip = "Take the steps from a recipe file"
        recipe = push_button(
            "O&pen recipe…", "batchOpenRecipe", self._choose_recipe, "Open recipe", tip=tip
        )
        tip = "Choose the output folder"
        choose = push_button("C&hoose…", "batchChooseOut", self._choose_out, tip, tip=tip)
        grid.addWidget(recipe, 0, 2)
        grid.addWidget(choose, 2, 2)
        grid.addWidget(self.editors["batchLossy"], 3, 4)
        grid.addWidget(self.description, 1, 1, 1, 4)

    # --- settings ---

    def settings(self) -> BatchSettings:
        value = self.values
        return BatchSettings(
            *(self._chosen_out, value["batchFormat"], value["batchDevice"]),
            *(value["batchThere"], value["batchLossy"]),
        )

    def show_settings(self, settings: BatchSettings) -> None:
        """Show settings that were kept; a choice that is not offered any more is left out."""
        suffix = settings.suffix if settings.suffix in dict(_FORMATS).values() else ""
        self._chosen_out = self._out_text = settings.out
        self.show_values(
            batchOut=settings.out,
            batchFormat=suffix,
            batchDevice=settings.device,
            batchThere=settings.replaces,
            batchLossy=settings.lossy,
        )

    def set_devices(self, available: Collection[str]) -> None:
        self._usable = available
        self.offer(
            "batchDevice",
            ((name, each) for each, name in _DEVICES.items() if self._is_usable(each)),
        )

    def _is_usable(self, device: Device) -> bool:
        return device is not Device.GPU or device in self._usable

    @property
    def device(self) -> Device:
        chosen: Device = self.values["batchDevice"]
        return chosen if self._is_usable(chosen) else Device.AUTO

    @property
    def folder(self) -> Path | None:
        text = self.values["batchOut"].strip()
        return Path(text).expanduser().absolute() if text else None

    @property
    def suffix(self) -> str | None:
        return self.values["batchFormat"] or None

    def offer_out(self, folder: Path) -> None:
        if not self._chosen_out:
            self._out_text = str(folder)
            self.show_values(batchOut=self._out_text)

    def take_out(self) -> None:
        text = self.values["batchOut"]
        if text != self._out_text:
            self._out_text = text
            self._chosen_out = text if text.strip() else ""
            self.places_changed.emit()
            self.changed.emit("batchOut")

    def _choose_out(self) -> None:
        def use(paths: list[Path]) -> None:
            self.editors["batchOut"].setText(str(paths[0]))
            self.take_out()

        messages.choose_paths(
            *(self, "Output Folder", "batchOutDialog", use),
            folder=self.values["batchOut"],
            mode=QFileDialog.FileMode.Directory,
        )

    # --- recipe ---

    def recipe(self) -> Recipe:
        return self.values["batchRecipe"] or self._steps()

    def show_recipe(self) -> None:
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
        try:
            recipe = read_recipe(path)
        except AppError as error:
            messages.show_error(self, error)
            return
        self.offer("batchRecipe", (*_STEPS, (one_line(path.name), recipe)))
        self.editors["batchRecipe"].setItemData(
            1, plain_tip(str(path)), Qt.ItemDataRole.ToolTipRole
        )
        self.show_values(batchRecipe=recipe)
        self.show_recipe()
