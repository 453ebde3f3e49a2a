"""Runs filters and recipes for the window: from Run to the result on the page.

    run -> [estimates: a recipe of one step] -> submit -> progress ... -> finished, failed, stopped
           start_recipe: for each step prepare -> submit -> ... -> page.advance_silently

A newer run replaces the one in progress. A result whose input is no longer shown is only listed
among the timings. The bar under the settings shows the progress, and afterwards the time of the
result that is shown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QObject, Signal

from kernelscope.base.errors import AppError
from kernelscope.bench.statistics import short
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.steps import estimate
from kernelscope.gui.model.figures import describe_result
from kernelscope.gui.model.pipeline import asked
from kernelscope.gui.model.run_settings import RunSettings
from kernelscope.gui.model.times import EMULATED, NOT_TIMED, duration
from kernelscope.gui.model.timing import Timing
from kernelscope.gui.session.session import Session
from kernelscope.gui.tools.recipe_dialogs import Recipes
from kernelscope.gui.viewer.pane import EARLIER
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import action
from kernelscope.gui.window.pages.page import Page
from kernelscope.gui.window.run_bar import RunBar
from kernelscope.gui.work.background import Background
from kernelscope.gui.work.tasks import Priority, Task, Tasks
from kernelscope.schema.samples import Kind

_logger = logging.getLogger(__name__)

_WORTH_SHOWING = 0.1
"""Seconds of compiling that are worth showing: cached code is loaded in less."""

NOTHING_OPEN = "Open a picture first (Ctrl+O)."


class Runner(QObject):
    """Submits requests to the worker and takes its answers.

    Parameters
    ----------
    page : callable
        Returns the page in front.
    show_status : callable
        Shows a text in the status bar.
    """

    aside_failed = Signal(object)
    """`Exception`: A run that is not shown; see `run_aside`."""
    aside_finished = Signal()
    """After `finished` of such a run."""
    submitted = Signal(object)
    """A `Request`."""
    progressed = Signal(str, float)
    stopped = Signal()
    """Of the run in progress."""
    changed = Signal()
    """A run or a recipe began or ended."""
    finished = Signal(object, object)
    """`Result, RunSettings`: Of every run, whether or not its input is still shown."""
    failed = Signal(object)
    """`Exception`: A run or a setting of it."""

    def __init__(
        self,
        tasks: Tasks,
        recipes: Recipes,
        session: Session,
        bar: RunBar,
        background: Background,
        page: Callable[[], Page[Any, Any]],
        show_status: Callable[[str], None],
    ) -> None:
        super().__init__(tasks)
        self.tasks, self._recipes, self._session, self._bar = tasks, recipes, session, bar
        self._task: Task | None = None
        self._background, self._page, self.show_status = background, page, show_status
        self.pace: Callable[[Request], float | None] = lambda _: None
        """Returns the seconds that a run should take, as far as earlier ones show."""
        self._ended = ""
        """How the last run ended, unless well, until something newer happens."""
        self.described = ""
        """The text of the status bar on the last run."""
        self._in_progress: object = None
        """Input and settings of the last run."""
        self._automatic: tuple[str, ...] = ()
        """Parameters that the current run estimates because the user wants it every time."""
        self._replaces = False
        self._aside: Request | None = None
        """The run in progress, if its result is listed but not shown."""
        recipes.loaded.connect(self._run_recipe)
        recipes.preparing.connect(self._on_preparing)
        recipes.wanted.connect(self._show_estimates)
        recipes.wanted.connect(self._submit)
        recipes.failed.connect(self._on_failed)

    @property
    def busy(self) -> bool:
        """Whether a run or a recipe is in progress."""
        return self._task is not None or self._recipes.busy

    # --- requests ---

    def settings(self) -> RunSettings | None:
        """Return the settings of the next run; None if they are invalid."""
        return self._session.settings

    def create(self) -> Request | None:
        """Return a request for the input; for a filter for pictures, of a single slice.

        None without an input; raises `AppError` for invalid settings.
        """
        if self._page().source is None:
            return None
        of_slice = self._session.spec.kind is Kind.PICTURE
        return self._page().request(self._session.require(), of_slice=of_slice)

    def in_view(self) -> tuple[Request, Region | None] | None:
        """Return the request of Run for a picture, with its reference, and the part in view.

        None without a picture or valid settings.
        """
        page, settings = self._page(), self.settings()
        if settings is None or page.kind is not Kind.PICTURE or page.source is None:
            return None
        try:
            request = page.with_reference(page.request(settings))
        except AppError:
            return None
        parts = (each for each in page.visible_parts(request) if isinstance(each, Region))
        return request, next(parts, None)

    def request(self) -> Request | None:
        """Return the request of Run, or show the user why there is none."""

        def create() -> Request:
            return self._page().request(self._session.require())

        return self._checked(create)

    def recipe(self) -> Recipe:
        """Return the steps to the output; raises `AppError` without an input or valid settings."""
        page = self._page()
        if page.source is None:
            raise AppError("No picture is open, so there are no steps.", "Open one (Ctrl+O).")
        request = page.request(self._session.require())
        return Recipe(tuple(asked(each) for each in page.history.steps_to_end(request)))

    def _checked(self, create: Callable[[], Request | None]) -> Request | None:
        if self._page().source is None:
            self.show_status(NOTHING_OPEN)
            return None
        try:
            return create()
        except AppError as error:
            self.failed.emit(error)
            return None

    def estimate(self, name: str) -> None:
        """Set the parameter of this name to the value that is estimated from the input."""
        request = self._checked(self.create)
        if request is None:
            return

        def show(values: dict[str, float]) -> None:
            self._session.set_estimates(request.step.filter.id, values)
            label = request.step.filter.parameter(name).label
            self.show_status(f"{label} {values[name]:.4g}, estimated from {request.source.title}.")

        self.show_status("Estimating…")
        self._background.start(
            "estimate",
            lambda: estimate(request, [*self._session.automatic, name]),
            show,
            self.failed.emit,
        )

    # --- start and stop ---

    @action(
        "run",
        "&Run",
        keys=("F5", "Ctrl+R"),
        tip="Apply the filter",
        need=commands.SOURCE,
        icon="run",
        label="Run",
    )
    def run(self) -> None:
        """Apply the filter to the input, in place of a run in progress."""
        request = self.request()
        if request is None:
            return
        names = request.estimated
        open_ = replace(request, step=asked(request).with_numbers())
        wanted = names, open_.work, request.options
        if self.busy and wanted == self._in_progress:
            self.show_status("This run is under way already; Esc stops it.")
            return
        self._replaces = self.busy
        self._recipes.stop()
        self._in_progress = wanted
        if names:
            recipe = Recipe((asked(request),))
            self._start_recipe(recipe, request.options.level, names)
        else:
            self._automatic = ()
            self._submit(request)

    def run_aside(self, request: Request) -> None:
        """Run `request` without showing its result, which `finished` has.

        A run or a recipe in progress gives way to it.
        """
        self._recipes.stop()
        self._in_progress, self._automatic = None, ()
        self._aside = request
        self._begin(request)

    def is_aside(self, request: Request) -> bool:
        """Return whether the result of `request` is not going to be shown."""
        return request is self._aside

    @action(
        "cancel",
        "&Cancel",
        keys=("Esc",),
        tip="Stop the run",
        need=commands.BUSY,
        icon="cancel",
        label="Cancel",
    )
    def cancel(self) -> None:
        """Stop the run in progress, and the recipe that it belongs to."""
        between = self._recipes.busy and self._task is None
        self._recipes.stop()
        self.tasks.cancel()
        if between:  # between two steps, or while a number is estimated
            _logger.info("Cancelled before it began")
            self._on_stopped()

    def leave(self) -> None:
        """End a recipe, because another input is about to be shown."""
        self._recipes.stop()
        self.forget_end()

    def forget_end(self) -> None:
        """Show no longer that the last run failed or was cancelled."""
        self._ended = ""

    def _run_recipe(self, recipe: Recipe) -> None:
        """Run a recipe from a file on the input, in place of the steps from the form on."""
        self._in_progress = None
        page = self._page()
        pipeline = page.moment.pipeline if page.source is not None else None
        if pipeline is not None and pipeline.after:
            moment = replace(page.moment, name="Recipe", pipeline=pipeline.ended(), result=None)
            page.show_cards(moment, as_step=True)
        self._start_recipe(recipe)

    def _start_recipe(
        self, recipe: Recipe, level: str | None = None, automatic: tuple[str, ...] = ()
    ) -> None:
        source = self._page().source
        if source is None:
            self.show_status(NOTHING_OPEN)
            return
        self._replaces = self._replaces or self._task is not None
        self.tasks.cancel(followed=True)
        self._automatic = automatic
        try:
            options = replace(self._session.require().options, level=level)
            self._recipes.start(recipe, source, options)
        except AppError as error:
            self._replaces = False
            self.failed.emit(error)
        self.changed.emit()

    def _submit(self, request: Request) -> None:
        page, steps = self._page(), self._recipes.busy and not self._automatic
        if not steps:  # those of a recipe run one by one, and once
            try:
                request = replace(page.history.followed(request), done=())  # to be measured
            except AppError as error:
                self._on_failed(error)
                return
        self._begin(replace(page.with_reference(request), timed=not steps))

    def _begin(self, request: Request) -> None:
        if self._task is not None:
            self._task.mute()
        task = self._task = self.tasks.submit(request, Priority.STARTED)
        task.progressed.connect(self._on_progress)
        task.finished.connect(self._on_finished)
        task.failed.connect(self._on_failed)
        task.stopped.connect(self._on_stopped)
        self._on_submitted(request)
        self.submitted.emit(request)

    # --- answers ---

    def _show_estimates(self, request: Request) -> None:
        """Show in their fields the numbers that were estimated for the request."""
        if request.step.filter.id == self._session.filter_id:
            names = self._session.automatic
            values = {name: request.step.parameters[name] for name in names}
            self._session.set_estimates(request.step.filter.id, values)

    def _on_preparing(self, estimates: bool) -> None:
        """Show why the next step is delayed: an estimate, or code that is compiled."""
        self._ended = ""
        self._bar.show_progress("estimate" if estimates else "prepare", 0.0, self._recipes.step)

    def _on_submitted(self, request: Request) -> None:
        if request is not self._aside:
            self._aside = None
        self._ended = ""
        self._bar.expect(self.pace(request))
        self._bar.show_progress("Waiting", 0.0)
        instead = ", in place of the run that was under way" if self._replaces else ""
        self._replaces = False
        self.show_status(f"{request.describe()}{instead}")
        self.changed.emit()

    def _on_progress(self, stage: str, fraction: float) -> None:
        self._bar.show_progress(stage, fraction, self._recipes.step)
        self.progressed.emit(stage, fraction)

    def _on_finished(self, result: Result) -> None:
        self._task = None
        if self._aside is not None:
            self._aside = None
            self.finished.emit(result, RunSettings.of(result.request))
            self.aside_finished.emit()
            self.changed.emit()
            self.show_state()
            return
        result = self._recipes.with_notices(result)
        form = RunSettings.of(result.request)
        # Of several steps the first was measured: the run that others are compared with.
        self.finished.emit(result.parts[0] if result.parts else result, form)
        self.described = describe_result(result)
        page = self._page()
        if result.request.source is not page.source:
            self.show_status("The run on the previous picture is done; it is in the list of runs.")
            self.changed.emit()
            self.show_state()
            return
        if self._recipes.has_more:
            self.show_status(self.described)
            page.advance_silently(result, form, self._recipes.go_on)
            return
        if self._recipes.busy and not self._automatic:
            self._session.show(form)  # of the last step of a recipe from a file
        self._recipes.stop()
        page.show_result(result, form)
        self.show_status(self.described)  # last: the form that follows it withdraws the one before

    def _on_failed(self, error: Exception) -> None:
        self._task = None
        if self._aside is not None:
            self._aside = None
            self.changed.emit()
            self.show_state()
            self.aside_failed.emit(error)
            return
        error = self._recipes.fail(error)
        self._end("Failed.")
        self.changed.emit()
        self.failed.emit(error)

    def _on_stopped(self) -> None:
        self._task = self._aside = None
        self._end("Cancelled.")
        self.show_status("")
        self.changed.emit()
        self.stopped.emit()

    def _end(self, text: str) -> None:
        """Show how far an incomplete recipe came, and how it ended."""
        if self._page().is_behind:
            self._page().show_moment()
        self._ended = text
        self.show_state()

    def show_state(self) -> None:
        """Show how long the result took and whether it has the current settings."""
        page = self._page()
        stale = page.mark_stale(self.settings())
        if self.busy:
            return
        if self._ended or page.result is None:
            self._bar.show_idle(self._ended or "Ready.")
        else:
            self._bar.show_idle(_describe_time(page.result, stale), stale=stale)


def _describe_time(result: Result, stale: bool) -> str:
    """Return the time and speed of a run in words."""
    timing = Timing.of(result)
    if timing.seconds is None:
        done = f"{'live, ' * result.request.live}{EMULATED}, {NOT_TIMED}"
        return f"{EARLIER}{done}." if stale else f"{done[0].upper()}{done[1:]}."
    if result.request.live:
        taken = duration(timing.seconds)
        return f"{EARLIER}live, one run: {taken}." if stale else f"Live, one run: {taken}."
    assert timing.speed is not None
    done = f"done in {duration(timing.seconds)}, {short(timing.speed)} {result.speed_unit}"
    if result.compile_seconds >= _WORTH_SHOWING:
        done = f"{done}; compiling once took {duration(result.compile_seconds)} before"
    return f"{EARLIER}{done}." if stale else f"D{done[1:]}."
