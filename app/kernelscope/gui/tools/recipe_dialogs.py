"""Recipes in the window: saved from the steps of a picture, and loaded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from kernelscope.base.errors import AppError
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.files import RECIPE_SUFFIX, read_recipe, write_recipe
from kernelscope.gui.widgets import messages as dialogs
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.work.background import Background

_FILES = "Recipes (*.json);;All files (*)"


class Recipes(QObject):
    loaded = Signal(object)  # `Recipe`: The user chose a recipe to run
    saved = Signal(Path)  # a recipe was written there

    def __init__(self, window: QWidget, background: Background) -> None:
        super().__init__(window)
        self._window = window
        self._background = background

    @Action(
        "runRecipe",
        "Run R&ecipe…",
        keys=("Ctrl+Shift+R",),
        tip="Run several filters from a file, one after the other",
        help="window#recipes",
    )
    def choose(self) -> None:
        dialog = dialogs.choose_text_to_open(self._window, "Run Recipe", self.load, _FILES)
        dialog.setObjectName("recipeDialog")

    def save(self, steps: Iterable[Step]) -> None:
        recipe = Recipe(tuple(steps))

        def write(path: Path) -> None:
            try:
                write_recipe(recipe, path)
            except AppError as error:
                dialogs.show_error(self._window, error)
            else:
                self.saved.emit(path)

        dialog = dialogs.choose_text_to_save(
            self._window, "Save Recipe", f"steps{RECIPE_SUFFIX}", write, _FILES
        )
        dialog.setDefaultSuffix(RECIPE_SUFFIX.removeprefix("."))
        dialog.setObjectName("saveRecipeDialog")

    def load(self, path: Path) -> None:
        """Read a recipe; `loaded` comes when it is there."""
        self._background.start("recipe file", lambda: read_recipe(path), self.loaded.emit)
