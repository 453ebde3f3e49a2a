"""Recipes in the window: saved from the steps of a picture, loaded, and run step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from kernelscope.base.errors import AppError
from kernelscope.engine.backend import Backend
from kernelscope.engine.options import RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.result import Result
from kernelscope.engine.step import Step
from kernelscope.engine.steps import RecipeRun
from kernelscope.files import RECIPE_SUFFIX, read_recipe, write_recipe
from kernelscope.gui.widgets import messages as dialogs
from kernelscope.gui.widgets.commands import action
from kernelscope.gui.work.background import Background
from kernelscope.images.source import Source

_FILES = "Recipes (*.json);;All files (*)"


class Recipes(QObject):
    """The dialogs for recipes, and the recipe in progress."""

    loaded = Signal(object)
    """`Recipe`: The user chose a recipe to run."""
    preparing = Signal(bool)
    """The next step is got ready, off the GUI thread; whether numbers are estimated for it."""
    wanted = Signal(object)
    """`Request`: This step should be run next; `go_on` wants its result."""
    failed = Signal(object)
    """`Exception`: The recipe ended here; errors that the user can put right name the step."""
    saved = Signal(Path)
    """A recipe was written there."""

    def __init__(
        self, window: QWidget, background: Background, backends: Mapping[str, Backend]
    ) -> None:
        super().__init__(window)
        self._window = window
        self._background = background
        self._backends = backends
        self._run: RecipeRun | None = None

    @action(
        "runRecipe",
        "Run R&ecipe…",
        keys=("Ctrl+Shift+R",),
        tip="Run several filters from a file, one after the other",
        help="window#recipes",
    )
    def choose(self) -> None:
        """Let the user choose a recipe to run."""
        dialog = dialogs.choose_text_to_open(self._window, "Run Recipe", self.load, _FILES)
        dialog.setObjectName("recipeDialog")

    def save(self, steps: Iterable[Step]) -> None:
        """Let the user choose where to save `steps`."""
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

    @property
    def busy(self) -> bool:
        """Whether a recipe is in progress."""
        return self._run is not None

    @property
    def step(self) -> str:
        """Number of the current step, to show before its stage; empty for a single step."""
        return self._run.label if self._run is not None else ""

    def start(self, recipe: Recipe, source: Source, options: RunOptions) -> None:
        """Run `recipe` on a picture or on volumes.

        Raises
        ------
        InvalidParameter
            If a step cannot work on the output of the previous one.
        """
        self._run = RecipeRun(recipe, source, self._backends, options)
        self._next(self._run, source)

    @property
    def has_more(self) -> bool:
        """Whether a step follows the current one."""
        return self._run is not None and self._run.has_more

    def with_notices(self, result: Result) -> Result:
        """Return the result of the current step with the notices of that step."""
        return self._run.finish(result) if self._run is not None else result

    def go_on(self, source: Source) -> None:
        """Run the next step on the output of the last one, unless `stop` was called."""
        if self._run is not None and self._run.has_more:
            self._next(self._run, source)

    def stop(self) -> None:
        """Stop the recipe after the steps that are done."""
        self._run = None
        self._background.forget("recipe")

    def fail(self, error: Exception) -> Exception:
        """Stop, and return `error` with the step named."""
        run, self._run = self._run, None
        return run.named(error) if run is not None else error

    def load(self, path: Path) -> None:
        """Read a recipe; `loaded` comes when it is there."""

        def failed(error: Exception) -> None:
            if isinstance(error, AppError):
                dialogs.show_error(self._window, error)
            else:
                self.failed.emit(error)

        self._background.start("recipe file", lambda: read_recipe(path), self.loaded.emit, failed)

    def _next(self, run: RecipeRun, source: Source) -> None:
        """Request the next step, after estimating the parameters it leaves open."""
        run.advance()
        self.preparing.emit(bool(run.step.estimates))
        self._background.start(
            "recipe",
            lambda: run.request(source),
            self.wanted.emit,
            lambda error: self.failed.emit(self.fail(error)),
        )
