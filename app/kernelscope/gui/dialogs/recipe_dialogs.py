"""Recipes in the window: saved from what was done, loaded, and run step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from kernelscope.engine.backend import Backend
from kernelscope.engine.chain import naming, prepare, shapes
from kernelscope.engine.options import RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.step import ESTIMATE
from kernelscope.errors import AppError
from kernelscope.files import RECIPE_SUFFIX, read_recipe, write_recipe
from kernelscope.gui.widgets import messages as dialogs
from kernelscope.gui.work.background import Background
from kernelscope.images.source import Source

_FILES = "Recipes (*.json);;All files (*)"


class Recipes(QObject):
    """The dialogs for recipes, and the recipe in progress.

    Signals
    -------
    loaded : Recipe
        The user chose a recipe to run.
    preparing : bool
        The next step is got ready, off the GUI thread; whether numbers are estimated for it.
    wanted : Request
        This step should be run next; `go_on` wants its result.
    failed : Exception
        The recipe ended here; errors that the user can put right name the step.
    saved : Path
        A recipe was written there.
    """

    loaded = Signal(object)
    preparing = Signal(bool)
    wanted = Signal(object)
    failed = Signal(object)
    saved = Signal(Path)

    def __init__(
        self, window: QWidget, background: Background, backends: Mapping[str, Backend]
    ) -> None:
        super().__init__(window)
        self._window = window
        self._background = background
        self._backends = backends
        self._recipe: Recipe | None = None
        self._number = 0
        self._notices: tuple[str, ...] = ()
        self._options = RunOptions()

    def choose(self) -> None:
        """Let the user choose a recipe to run."""
        dialog = dialogs.choose_text_to_open(self._window, "Run Recipe", self._load, _FILES)
        dialog.setObjectName("recipeDialog")

    def save(self, requests: Iterable[Request]) -> None:
        """Let the user choose where to save what `requests` do."""
        recipe = Recipe(tuple(each.step for each in requests))

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

    @property
    def busy(self) -> bool:
        """Whether a recipe is in progress."""
        return self._recipe is not None

    @property
    def step(self) -> str:
        """Number of the current step, to show before its stage; empty for a single step."""
        if self._recipe is None or len(self._recipe.steps) == 1:
            return ""
        name = self._recipe.steps[self._number - 1].filter.name
        return f"Step {self._number} of {len(self._recipe.steps)}, {name}: "

    def start(self, recipe: Recipe, source: Source, options: RunOptions) -> None:
        """Run `recipe` on a picture or on volumes.

        Raises
        ------
        InvalidParameter
            If a step cannot work on the output of the previous one.
        """
        shapes(recipe, source)
        self._recipe, self._number, self._options = recipe, 0, options
        self._next(source)

    @property
    def has_more(self) -> bool:
        """Whether a step follows the current one."""
        return self._recipe is not None and self._number < len(self._recipe.steps)

    def told(self, result: Result) -> Result:
        """Return the result of the current step with the notices of that step."""
        return replace(result, notices=(*self._notices, *result.notices)) if self.busy else result

    def go_on(self, source: Source) -> None:
        """Run the next step on the output of the last one, unless `stop` was called."""
        if self.has_more:
            self._next(source)

    def stop(self) -> None:
        """Leave the recipe where it is."""
        self._recipe = None
        self._background.forget("recipe")

    def fail(self, error: Exception) -> Exception:
        """Stop, and return `error` with the step named."""
        recipe, self._recipe = self._recipe, None
        if recipe is not None:
            try:
                with naming(recipe, self._number):
                    raise error
            except AppError as named:
                return named
            except Exception:  # a bug is reported as it is
                pass
        return error

    def _load(self, path: Path) -> None:
        def failed(error: Exception) -> None:
            if isinstance(error, AppError):
                dialogs.show_error(self._window, error)
            else:
                self.failed.emit(error)

        self._background.start("recipe file", lambda: read_recipe(path), self.loaded.emit, failed)

    def _next(self, source: Source) -> None:
        """Request the next step, after estimating the parameters it leaves open."""
        assert self._recipe is not None
        recipe, options = self._recipe, self._options
        self._number += 1
        number = self._number
        values = recipe.steps[number - 1].parameters.values()
        self.preparing.emit(any(isinstance(each, str) and each == ESTIMATE for each in values))

        def ask(prepared: tuple[Request, tuple[str, ...]]) -> None:
            request, self._notices = prepared
            self.wanted.emit(request)

        self._background.start(
            "recipe",
            lambda: prepare(recipe, number, source, self._backends, options),
            ask,
            lambda error: self.failed.emit(self.fail(error)),
        )
