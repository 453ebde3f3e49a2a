"""Conducts the steps to the output: the list follows the page, and the page the list.

    the form, the page, a run  --> refresh: a row for each step
    a step is switched, moved, removed, copied, chosen
        -> its input is known?       else a task computes it, from the last output that is kept
        -> a moment with that input, the steps, and the end if it is kept
        -> the page shows it, the form has its settings, Live computes the rest

A change of the steps is a step for Undo; to look at another step is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast
from weakref import ref

from PySide6.QtCore import QObject, QTimer

from kernelscope.base.errors import AppError
from kernelscope.engine.denoising import Proposal, propose
from kernelscope.engine.memo import Facts
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.result import Result
from kernelscope.engine.step import Step
from kernelscope.gui.docks.steps_panel import StepsPanel
from kernelscope.gui.model.comparison import following
from kernelscope.gui.model.history import Moment
from kernelscope.gui.model.pipeline import Pipeline, fitted
from kernelscope.gui.model.step_rows import ShownStep, carried, examine, rows_of
from kernelscope.gui.session.session import OF_SETTINGS
from kernelscope.gui.session.subject import (
    INPUT,
    JUDGED,
    MOMENT,
    REFERENCE,
    RESULT,
    REVERTED,
    SHOWN,
    Subject,
)
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.widgets.parts import plain_tip
from kernelscope.gui.window import menus
from kernelscope.gui.window.actions import Actions
from kernelscope.gui.window.live import Live
from kernelscope.gui.work.tasks import Priority, Task
from kernelscope.images.source import Source

_SOON_MS = 60  # the list follows a slider so often; the picture is more urgent

_SHOWN_HERE = OF_SETTINGS | {INPUT, JUDGED, MOMENT, REFERENCE, RESULT, REVERTED, SHOWN}
"""Changes after which the steps may be others."""


class StepCommands(QObject):
    """Carries out the commands of the menu of steps, and keeps their list true."""

    def __init__(self, panel: StepsPanel, live: Live, actions: Actions) -> None:
        super().__init__(live)
        self._panel, self._live, self._actions = panel, live, actions
        self._runner, self._session = live.runner, live.session
        self._background = live.background
        self._show_status, self._report = live.runner.show_status, live.runner.failed.emit
        self._task: Task | None = None  # computes the input of a step
        self._last: dict[int, Facts] = {}  # the facts that each step showed last, by its key
        self._proposed: tuple[ref[Any], Proposal] | None = None  # the last one that was taken
        self._soon = QTimer(self, singleShot=True, interval=_SOON_MS)
        self._soon.timeout.connect(self.refresh)
        panel.set_actions(actions, menus.actions_of(menus.STEPS))
        panel.steps.wanted.connect(self.edit)
        panel.steps.switched.connect(self.switch)
        panel.steps.removed.connect(self.delete)
        panel.steps.moved.connect(self.move)
        live.session.when({MOMENT}, self._give_up)
        live.session.when(_SHOWN_HERE, self._touch)
        live.refreshed.connect(self._touch)
        live.runner.changed.connect(self._touch)

    @property
    def _subject(self) -> Subject[Any, Any]:
        return self._session.subject

    # --- the steps as they are ---

    def refresh(self) -> None:
        self._soon.stop()
        subject = self._subject
        pipeline, count, later = subject.pipeline, 0, False
        if pipeline is None:
            self._panel.show_rows(())
        else:
            shown = self._shown(pipeline)
            self._panel.show_rows(rows_of(pipeline, shown, self._last), self._problem(pipeline))
            count, later = len(pipeline.steps), bool(pipeline.after)
            if self._live.resting and not self._runner.busy and not subject.is_behind:
                self._examine(shown)
        self._actions.apply(replace(self._actions.state, steps=count, later=later))
        self._actions.tick(self)

    def _shown(self, pipeline: Pipeline) -> list[ShownStep]:
        """Return the step, the result and the facts of each step that is on."""
        subject = self._subject
        outputs, source = subject.history.outputs, subject.base
        found: list[ShownStep] = []
        for place, settings in enumerate(pipeline.steps):
            if place == pipeline.place and subject.pending is None:
                source = subject.source
            if not settings.on:
                continue
            result = outputs.find(source, settings.step) if source is not None else None
            facts = outputs.facts(result) if result is not None else None
            found.append(ShownStep(settings, result, facts))
            source = result.output if result is not None else None
        return found

    def _problem(self, pipeline: Pipeline) -> str:
        subject = self._subject
        try:
            if subject.source is not None and subject.pending is None:
                Request(subject.source, pipeline.present.step, then=pipeline.then)
        except AppError as error:
            return str(error)
        return ""

    def _examine(self, shown: Sequence[ShownStep]) -> None:
        """Make thumbnails and compare with the reference, where that is still to be done."""
        subject = self._subject
        reference = subject.reference.image if subject.reference is not None else None
        first = subject.history.moment_of(subject.base) or Moment(subject.base, "")
        work = examine(shown, first, subject.moment, reference)
        if work is not None:
            self._background.start("facts of steps", work, lambda _: self.refresh())

    def _touch(self, *_: object) -> None:
        if not self._soon.isActive():
            self._soon.start()

    # --- commands ---

    def _at(self, place: int | None) -> tuple[Pipeline | None, int]:
        """Return the steps and a place among them, by default the chosen one; None elsewhere."""
        pipeline = self._subject.pipeline
        place = self._panel.steps.currentRow() if place is None else place
        inside = pipeline is not None and 0 <= place < len(pipeline.steps)
        return (pipeline if inside else None), place

    @Action("editStep", "&Edit Step", need=commands.STEPS, label="Edit")
    def edit(self, place: int | None = None) -> None:
        """Show the settings of the selected step in the panel Steps (Return)."""
        pipeline, place = self._at(place)
        if pipeline is not None and place != pipeline.place:
            if not pipeline.steps[place].on:
                self._show_status("This step is off: switch it on first (Space).")
                return
            self._apply(pipeline.selected(place), "")

    @Action("switchStep", "Switch Step &On or Off", need=commands.STEPS, label="On or off")
    def switch(self, place: int | None = None) -> None:
        """Switch the step off or on again (Space)."""
        pipeline, place = self._at(place)
        if pipeline is None:
            return
        if not pipeline.can_switch(place):
            self._show_status("The only step that is on stays on. Hold Space to see the input.")
            return
        word = "Switch Off" if pipeline.steps[place].on else "Switch On"
        self._change(place, Pipeline.switched, word)

    @Action("deleteStep", "De&lete Step", need=commands.STEPS, icon="delete", label="Delete")
    def delete(self, place: int | None = None) -> None:
        """Remove the selected step (Delete)."""
        pipeline, place = self._at(place)
        if pipeline is not None:
            if not pipeline.can_switch(place):
                self._show_status("The only step that is on stays.")
                return
            self._change(place, Pipeline.removed, "Delete")

    @Action(
        "duplicateStep",
        "Du&plicate Step",
        need=commands.SOURCE,
        icon="duplicate",
        label="Duplicate",
    )
    def duplicate(self) -> None:
        """Insert a copy of the selected step after it."""
        self._change(self._at(None)[1], Pipeline.duplicated, "Duplicate")

    @Action(
        "stepUp",
        "Move Step &Up",
        "Alt+Up",
        tip="Apply the step earlier",
        need=commands.STEPS,
        icon="up",
        label="Up",
        argument=-1,
    )
    @Action(
        "stepDown",
        "Move Step &Down",
        "Alt+Down",
        tip="Apply the step later",
        need=commands.STEPS,
        icon="down",
        label="Down",
        argument=1,
    )
    def shift(self, way: int) -> None:
        place = self._at(None)[1]
        self.move(place, place + way)

    def move(self, place: int, to: int) -> None:
        if self._at(to)[0] is not None:
            self._change(place, lambda steps, at: steps.moved(at, to), "Move")

    @Action(
        "stepAlone",
        "Output of the Edited &Step",
        need=commands.LATER_STEPS,
        ticked=lambda steps: (shown := steps._subject.pipeline) is not None and shown.alone,
        icon="alone",
        label="Alone",
    )
    def toggle_alone(self) -> None:
        """Show the output of the step that is edited instead of that of the last step."""
        pipeline = self._subject.pipeline
        if pipeline is not None:
            self._apply(pipeline.shown_alone(not pipeline.alone), "")

    @Action(
        "denoise",
        "&Denoise",
        "Ctrl+Shift+D",
        need=commands.SOURCE,
        icon="denoise",
        help="window#denoising",
    )
    def denoise(self) -> None:
        """Choose the filter that suits the noise, at the strength that it estimates."""
        subject = self._subject
        pipeline, source = subject.pipeline, cast(Source, subject.source)
        assert pipeline is not None
        count = sum(each.on for each in pipeline.steps[: pipeline.noisy])
        noisy = next((each.source for each in subject.moment.steps[count:]), source)

        def choose(proposal: Proposal) -> None:
            if subject.is_front and subject.source is source:
                said = self._take(proposal, source)
                self._show_status(said)
                button = self._actions["denoise"]  # the status bar has other messages soon
                button.setToolTip(plain_tip(f"{button.statusTip()}\n{source.title}: {said}"))
                if subject.pending is not None:  # another input will be announced
                    self._session.notice = said

        self._background.start("denoise", lambda: propose(noisy), choose)

    def _take(self, proposal: Proposal, source: Source) -> str:
        """Put the denoiser that is proposed among the steps, or go to one that is there.

        Returns a text for the status bar.
        """
        subject, spec = self._subject, proposal.filter
        pipeline = subject.pipeline
        assert pipeline is not None
        assert spec.remedy is not None
        others, line, note = proposal.others, proposal.line, ""
        left = pipeline.without_copy()
        place = left.against(spec.remedy.disturbance)
        there = left.steps[place].step.filter if place is not None else None
        if len(pipeline.steps) == 1 or (place is None and left is not pipeline):
            if kept := self._take_values(proposal, source):
                note = f"Kept: {', '.join(kept)}; "
            pipeline = subject.pipeline
        elif place is None:
            step = fitted(Step.create(spec.id, proposal.values), source, subject.slice_axis)
            pipeline = pipeline.inserted(pipeline.noisy, RunSettings(step))
            note = f"Added as step {pipeline.place + 1}; "
        else:
            pipeline = left if left.steps[place].on else left.switched(place)
            pipeline, note = pipeline.selected(place), f"Step {place + 1} stays as it is; "
            if there is not None and there is not spec:
                others = tuple(each for each in (spec, *others) if each is not there)
                line = there.name
        first = proposal.first
        assert pipeline is not None
        there_already = [
            each for each in pipeline.steps[: pipeline.place] if each.step.filter is first
        ]
        if first is not None and not there_already:
            step = fitted(Step.create(first.id), source, subject.slice_axis)
            pipeline = pipeline.preceded(RunSettings(step))
        elif first is not None and not any(each.on for each in there_already):
            note += f"{first.name} stays off; "  # the user switched it off
        self._apply(pipeline, "Denoise")
        if others:
            line = f"{line}; other filters: {', '.join(each.name for each in others)}"
        return note + line  # the end is cut off where the bar is short

    def _take_values(self, proposal: Proposal, source: object) -> list[str]:
        """Take the values of a proposal; return the labels of those that the user chose since.

        These stay if the method does; on another source, estimates are made again.
        """
        session, spec = self._session, proposal.filter
        before, old = self._proposed or (ref(source), None)
        chosen: dict[str, Any] = {}
        if old is not None and old.filter is spec and session.filter_id == spec.id:
            usual, values = {**spec.defaults(), **old.values}, session.values
            chosen = {
                each.name: values.numbers[each.name]
                for each in spec.parameters
                if each.name not in values.automatic
                and (each.is_estimated or values.numbers[each.name] != usual[each.name])
                and (before() is source or not (each.is_estimated or each.name in old.values))
            }
        with session.changing():
            session.set_filter(spec.id)
            session.reset({**proposal.values, **chosen})
        self._proposed = ref(source), proposal
        return [spec.parameter(name).label for name in chosen]

    def _change(self, place: int, change: Callable[[Pipeline, int], Pipeline], word: str) -> None:
        """Apply a change of the step at a place, named ``Move Median`` for Undo."""
        pipeline, place = self._at(place)
        if pipeline is not None:
            settings = pipeline.steps[place]
            self._apply(change(pipeline, place), f"{word} {settings.step.filter.name}")

    # --- from the steps to the page ---

    def _apply(self, pipeline: Pipeline, name: str) -> None:
        """Show other steps; without a name this is no step for Undo."""
        subject = self._subject
        if pipeline == subject.pipeline:
            self._actions.tick(self)
            return
        name = name or (subject.pending[1] if subject.pending is not None else "")
        subject.pending = pipeline, name
        self._forget_input()
        moment = subject.moment
        base = moment.steps[0].source if moment.steps else moment.source
        before = [each.step for each in pipeline.before]
        if before == [each.step for each in subject.pipeline_of(moment).before]:
            self._show(moment)
            return
        kept = list(subject.history.outputs.walk(base, before))
        missing = pipeline.before[len(kept) :]
        if not missing:
            self._build(kept)
            return
        source = kept[-1].output if kept else base
        self._touch()
        self._show_status(f"Computing {missing[0].step.filter.name} for the later steps…")
        self._prepare(source, missing, lambda parts: self._build([*kept, *parts]))

    def _prepare(
        self, source: Any, steps: Sequence[RunSettings], then: Callable[[Sequence[Result]], None]
    ) -> None:
        subject, (first, *others) = self._subject, steps
        try:
            request = Request(source, first.step, first.options, live=True, then=tuple(others))
        except AppError as error:
            self._fail(error)
            return
        task = self._task = self._runner.tasks.submit(request, Priority.ERRAND)

        def done(result: Result) -> None:
            self._live.record(request, result)
            subject.history.outputs.keep(result)
            self._show_status("")
            if self._is_awaited(subject):
                then(result.parts or (result,))

        task.finished.connect(done)
        task.failed.connect(self._fail)
        task.stopped.connect(self._give_up)

    def _is_awaited(self, subject: Subject[Any, Any]) -> bool:
        """Return whether steps wait for their input, which is still in front."""
        if subject.pending is not None and not subject.is_front:
            self._give_up()  # a picture took the place of volumes meanwhile, or they its place
        return subject.pending is not None

    def _build(self, results: Sequence[Result]) -> None:
        """Show the pending steps with the input that the last of `results` is."""
        subject = self._subject
        base = subject.base
        known = subject.history.moment_of(base)
        first = replace(
            known or Moment(base, ""), steps=(), result=None, settings=None, pipeline=None
        )

        def work() -> Moment[Any, Any]:
            moment = first
            for result in results:
                moment = following(replace(moment, result=result))
            return moment

        def show(moment: Moment[Any, Any]) -> None:
            if self._is_awaited(subject):
                shown = subject.moment
                self._show(replace(carried(moment, shown), name=shown.name))

        self._background.start("steps", work, show, self._fail)

    def _show(self, moment: Moment[Any, Any]) -> None:
        subject = self._subject
        assert subject.pending is not None
        (pipeline, title), subject.pending = subject.pending, None
        settings = pipeline.present
        result = subject.history.outputs.end(moment.source, settings.step, pipeline.then)
        if result is None and moment.source is subject.source:
            result = moment.result  # marked as out of date until the new one is there
        moment = replace(
            moment, name=title or moment.name, result=result, settings=settings, pipeline=pipeline
        )
        with subject.changing():
            subject.show_steps(moment, as_step=bool(title))
            self._session.show(settings)
        self.refresh()

    def _forget_input(self) -> None:
        """Leave the input of steps that is being computed or prepared."""
        self._background.forget("steps")
        if self._task is not None:
            self._task.drop()
            self._task = None

    def _fail(self, error: Exception) -> None:
        self._session.take_notice()
        self._give_up()
        self._report(error)

    def _give_up(self) -> None:
        self._forget_input()
        for subject in self._session.subjects:
            subject.pending = None
        self._touch()
