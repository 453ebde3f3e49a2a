"""Runs filters and recipes for the window: from Run to the result on the page.

    run -> submit -> progress ... -> finished, failed, stopped
    run_recipe -> submit -> for each step: progress ... -> the next input

A newer run replaces the one in progress. A result whose input is no longer shown is only listed
among the timings. The bar under the settings shows the progress.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QEvent, QObject, Signal

from kernelscope.base.durations import about
from kernelscope.base.errors import AppError, InvalidParameter
from kernelscope.engine.denoising import alternatives
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request, RunSettings, alike
from kernelscope.engine.result import Result
from kernelscope.engine.step import Step
from kernelscope.engine.steps import estimate, recipe_request
from kernelscope.engine.worker import Job
from kernelscope.gui.model.comparison import RecipeRun, StepDone, StepProgress
from kernelscope.gui.model.gallery import LONG_SECONDS
from kernelscope.gui.model.runs import describe_result
from kernelscope.gui.session.canvas_view import SLICES
from kernelscope.gui.session.session import KIND, OF_SETTINGS, Session
from kernelscope.gui.session.subject import MOMENT, PART, REVERTED, SHOWN, Fields
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.window.bars import RunBar
from kernelscope.gui.work.background import Background
from kernelscope.gui.work.tasks import Priority, Task, Tasks
from kernelscope.schema.samples import Kind

_STATE = OF_SETTINGS | {MOMENT, PART, REVERTED, SHOWN, SLICES}
"""Changes after which the result has other settings, or the present ones."""

_AGAIN_SECONDS = 3.0  # within which a second Esc stops a long run

NOTHING_OPEN = "Open a picture first (Ctrl+O)."


class Estimates(QObject):
    """Estimates the numbers of the form that are marked so, once for each input and settings."""

    ended = Signal(object)  # an `Exception`; None if the numbers are there

    def __init__(self, session: Session, background: Background, parent: QObject) -> None:
        super().__init__(parent)
        self._session, self._background = session, background
        self._known: object = None
        """The input and the settings to which numbers of the form belong, and these numbers."""
        self._pending: object = None
        """Those of the numbers that are being estimated; None while none are."""
        self.failed: tuple[object, Exception] | None = None
        """The last ones, if that failed, and why."""

    @property
    def pending(self) -> bool:
        return self._pending is not None

    def begin(self, wanted: Request) -> bool:
        """Return whether the numbers are there; if not, `ended` follows, unless that `failed`."""
        names = wanted.step.estimates
        if not names:
            self._pending = None  # of the filter before
            self._background.forget("live-estimate")
            return True
        key = _key(wanted)
        if self._known == (key, _numbers(wanted)):
            return True
        failed = self.failed is not None and key == self.failed[0]
        if failed or key == self._pending:
            return False  # moving the view meanwhile asks again
        self._pending, self.failed = key, None

        def show(values: dict[str, float]) -> None:
            self._pending = None
            current = self._session.subject.wanted()
            if current is not None and _key(current) == key:
                self._known = key, [values[name] for name in names]
                self._session.set_estimates(wanted.step.filter.id, values)
                current = self._session.subject.wanted()
                if current is not None:  # with the numbers as the form takes them
                    self._known = key, _numbers(current)
            self.ended.emit(None)

        def give_up(error: Exception) -> None:
            self._pending, self.failed = None, (key, error)
            self.ended.emit(error)

        self._background.start("live-estimate", lambda: estimate(wanted, names), show, give_up)
        return False


def _key(wanted: Request) -> object:
    return replace(wanted, estimated=False).work


def _numbers(wanted: Request) -> list[object]:
    return [wanted.step.parameters[name] for name in wanted.step.estimates]


class Runner(QObject):
    """Submits requests to the worker and takes its answers."""

    aside_finished = Signal()  # after `finished` of a run that is not shown
    submitted = Signal()  # a run that will be shown began
    stopped = Signal()  # of the run in progress
    changed = Signal()  # a run or a recipe began or ended
    finished = Signal(object, object)
    """`Result, RunSettings`: Of every run, whether or not its input is still shown."""
    failed = Signal(object)  # `Exception`: a run or a setting of it

    def __init__(
        self,
        tasks: Tasks,
        session: Session,
        bar: RunBar,
        background: Background,
        show_status: Callable[[str], None],
    ) -> None:
        super().__init__(tasks)
        self.tasks, self._session, self._bar = tasks, session, bar
        self._task: Task | None = None
        self._recipe: RecipeRun | None = None  # the recipe in progress
        self._last: Result | None = None  # the result of its last step
        self._background, self.show_status = background, show_status
        self.estimates = Estimates(session, background, self)
        self.pace: Callable[[Request], float | None] = lambda _: None
        """Returns the seconds that a run should take, as far as earlier ones show."""
        self._asked = -math.inf  # after how many seconds of the run Esc was pressed
        self._ended = ""  # how the last run ended, unless well, until something newer happens
        self.described = ""  # the text of the status bar on the last run
        session.follow(self._on_session)

    def _on_session(self, fields: Fields) -> None:
        """End a recipe after its present step if another input is shown; show the state."""
        if fields & {MOMENT, KIND} and self._recipe is not None:
            self._recipe.left = True
        if fields & (OF_SETTINGS | {MOMENT}):
            self._ended = ""  # it is of other settings
        if fields & _STATE:
            self.show_state()

    @property
    def seconds(self) -> float:
        """The seconds since the run in progress began; 0 without one."""
        return max(0.0, time.monotonic() - self._task.begun) if self._task is not None else 0.0

    @property
    def busy(self) -> bool:
        return self._task is not None

    # --- requests ---

    def create(self) -> Request | None:
        """Return the request of Run, None without an input; raises `AppError` for the settings."""
        subject = self._session.subject
        if subject.source is None:
            return None
        of_slice = self._session.spec.kind is Kind.PICTURE
        return subject.request(self._session.require(), of_slice=of_slice)

    def in_view(self) -> tuple[Request, Region | None] | None:
        """Return the request of Run for a picture or slice, its reference, and the part in view."""
        subject = self._session.subject
        if self._session.spec.kind is not Kind.PICTURE:
            return None
        request = subject.next_request(of_slice=True)
        if request is None:
            return None
        request = subject.with_reference(request)
        parts = subject.visible_parts(request) if subject.kind is Kind.PICTURE else ()
        return request, next((each for each in parts if isinstance(each, Region)), None)

    def estimated_in_view(self) -> tuple[Request, Region | None] | None:
        """Return the same; numbers that are not estimated yet will be, and `Estimates.ended`.

        Raises `AppError` if they cannot be.
        """
        found, wanted = self.in_view(), self._session.subject.wanted()
        if found is None or wanted is None or self.estimates.begin(wanted):
            return found
        if self.estimates.failed is not None:
            raise self.estimates.failed[1]
        return replace(found[0], estimated=False), found[1]

    def alternatives(self) -> Iterator[Step]:
        """Yield the filters that the one in front is compared with, as if they were chosen."""
        session = self._session
        for spec in alternatives(session.spec) if session.kind is Kind.PICTURE else ():
            with suppress(InvalidParameter):  # its form has an error
                yield session.step_of(spec.id)

    def request(self) -> Request | None:
        """Return the request of Run, or show the user why there is none."""

        return self._checked(lambda: self._session.subject.request(self._session.require()))

    def recipe(self) -> Recipe:
        subject = self._session.subject
        if subject.source is None:
            raise AppError("No picture is open, so there are no steps.", "Open one (Ctrl+O).")
        request = subject.request(self._session.require())
        if self._session.wishes_grey and self._session.kind is Kind.PICTURE:
            # A grey picture is not converted; others that the recipe runs on may be.
            request = replace(request, step=replace(request.step, grey=True))
        steps = subject.history.steps_to_end(request, unestimated=True)
        return Recipe(tuple(each.step for each in steps))

    def _checked(self, create: Callable[[], Request | None]) -> Request | None:
        if self._session.subject.source is None:
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
            parameter, value = request.step.filter.parameter(name), values[name]
            text = f"{parameter.label} {value:.4g}{parameter.behind(value)}"
            self.show_status(f"{text}, estimated from {request.source.title}.")

        self.show_status("Estimating…")
        self._background.start(
            "estimate",
            lambda: estimate(request, [*self._session.automatic, name]),
            show,
            self.failed.emit,
        )

    # --- start and stop ---

    @Action("run", "&Run", "F5 Ctrl+R", need=commands.SOURCE, icon="run", label="Run")
    def run(self) -> None:
        """Apply the filter."""
        request = self.to_run()
        if request is not None:
            self.start(request)

    def to_run(self) -> Request | None:
        """Return the request of Run with the steps after it, or show the user why there is none."""
        subject, request = self._session.subject, self.request()
        if request is None:
            return None
        try:
            request = subject.history.followed(replace(request, estimated=False))
        except AppError as error:
            self.failed.emit(error)
            return None
        return replace(subject.with_reference(request), timed=True, done=())  # to be measured

    def start(self, request: Request) -> Task:
        """Return the run of a request of `to_run`: a new one, or one alike that is under way."""
        task = self._task
        if (
            task is not None
            and task.priority is Priority.STARTED
            and isinstance(task.work, Request)
            and alike(task.work, request)
        ):
            self.show_status("This run is under way already; Esc stops it.")
            return task
        return self.begin(request)

    def begin(
        self,
        work: Request | Job,
        priority: Priority = Priority.STARTED,
        *,
        text: str = "",
    ) -> Task:
        """Submit work in place of that in progress; runs `ASIDE` are listed, but not shown."""
        instead = ", in place of the run that was under way" if self.busy else ""
        self._task = self._recipe = None
        self._ended, self._asked = "", -math.inf
        task = self._task = self.tasks.submit(work, priority)
        task.progressed.connect(self._bar.show_progress)
        task.reported.connect(partial(self._on_reported, task))
        task.finished.connect(partial(self._on_finished, task))
        task.failed.connect(partial(self._on_failed, task))
        task.stopped.connect(partial(self._on_stopped, task))
        self._bar.expect(self.pace(work) if isinstance(work, Request) else None)
        self._bar.show_progress("Waiting", 0.0)
        self.show_status(f"{text or work.describe()}{instead}")
        self.changed.emit()
        if priority is Priority.STARTED:
            self.submitted.emit()
        return task

    @Action("cancel", "&Cancel", "Esc", need=commands.BUSY, icon="cancel", label="Cancel")
    def cancel(self) -> None:
        """Stop the run."""
        task = self._task
        self.tasks.cancel()
        if task is not None:  # a recipe, whose last reports are still to come
            self._on_stopped(task)

    def eventFilter(self, action: QObject, event: QEvent) -> bool:
        """Let Esc stop a long run only when it is pressed again soon."""
        seconds = self.seconds
        if event.type() != QEvent.Type.Shortcut or seconds < LONG_SECONDS:
            return False
        again = seconds - self._asked < _AGAIN_SECONDS
        self._asked = seconds
        if not again:
            self.show_status(f"This run has taken {about(seconds)}: Esc again stops it.")
        return not again

    def run_recipe(self, recipe: Recipe) -> None:
        """Run a recipe from a file on the input, in place of the steps from the form on."""
        subject = self._session.subject
        if subject.source is None:
            self.show_status(NOTHING_OPEN)
            return
        try:
            options = replace(self._session.require().options, level=None)
            request = recipe_request(recipe, subject.source, options)
        except AppError as error:
            self.failed.emit(error)
            return
        pipeline = subject.moment.pipeline
        if pipeline is not None and pipeline.after:
            moment = replace(subject.moment, name="Recipe", pipeline=pipeline.ended(), result=None)
            subject.push(moment)
        run = RecipeRun(request, subject.moment, self.tasks.costs)
        self._last = None
        self.begin(Job(run.run, "recipe"), text="Running the recipe")
        self._recipe = run

    # --- answers ---

    def _on_reported(self, task: Task, report: object) -> None:
        if task is not self._task:
            return
        if isinstance(report, StepProgress):
            self._bar.show_progress(report.stage, report.fraction, report.step, report.left)
        elif not isinstance(report, StepDone):
            return  # who began the job takes it
        elif report.next is None:
            self._last = report.result
        elif self._list(report.result):
            self.show_status(self.described)
            settings = RunSettings.of(report.result.request)
            history = self._session.subject.history  # without showing it
            history.show(report.result, settings, as_step=False)
            history.push(report.next)

    def _list(self, result: Result) -> bool:
        """List a result; return whether its input is still the one that is shown."""
        # Of several steps the first was measured: the run that others are compared with.
        first = result.parts[0] if result.parts else result
        self.finished.emit(first, RunSettings.of(result.request))
        self.described = describe_result(result)
        if result.request.source is self._session.subject.source:
            return True
        self.show_status("The run on the previous picture is done; it is in the list of runs.")
        return False

    def _on_finished(self, task: Task, result: Result | None) -> None:
        if task is not self._task:
            return
        recipe = task.is_job
        result = self._last if recipe else result
        if result is not None and not recipe and task.priority is Priority.STARTED:
            self._session.show_estimates(result.request)
        self._task = self._recipe = self._last = None
        if result is not None and task.priority is Priority.ASIDE:
            self.show_status("")  # it named the run, which has ended
            self.finished.emit(result, RunSettings.of(result.request))
            self.aside_finished.emit()
        elif result is not None and self._list(result):  # None: another input was shown meanwhile
            settings = RunSettings.of(result.request)
            if recipe:
                self._session.show(settings)
            self._session.subject.show_result(result, settings)
            self.show_status(self.described)  # last: the form withdraws the one before
            return
        self.changed.emit()
        self.show_state()

    def _on_failed(self, task: Task, error: Exception) -> None:
        if task is not self._task:
            return
        self._task = self._recipe = None
        self.show_status("")
        if task.priority is not Priority.ASIDE:
            self._end("Failed.")
        self.changed.emit()
        self.show_state()
        if task.priority is not Priority.ASIDE:
            self.failed.emit(error)

    def _on_stopped(self, task: Task) -> None:
        if task is not self._task:
            return
        self._task = self._recipe = None
        self._end("Cancelled.")
        self.show_status("")
        self.changed.emit()
        self.stopped.emit()

    def _end(self, text: str) -> None:
        self._session.subject.show_moment()
        self._ended = text
        self.show_state()

    def show_state(self) -> None:
        if not self.busy:
            self._bar.show_idle(self._ended)
