"""The interface between the main window and a page: pictures (`PicturePage`) or volumes.

A page keeps the history of its inputs, shows the current input and its output, and compares both
with a reference. The window hands its requests to the worker, and the results back.

    window   -- request(settings) -->  page        Run: which input, which slices
    window  <-- Request ------------   page
    worker   -- Result  ----------->   window -- show_result(result) -->  page
    page     -- changed, drawn, subject_changed -->  window               menus, status, quality
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Generic, cast

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.result import Judgement, Result
from kernelscope.gui.docks.quality_panel import QualityPanel
from kernelscope.gui.model.comparison import View, following, quality_of
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.figure import Figure
from kernelscope.gui.model.freshness import alike, describe_part
from kernelscope.gui.model.gallery import judge_run
from kernelscope.gui.model.history import History, Moment, Opened, Part, Reference, ReferenceOrigin
from kernelscope.gui.model.kept_steps import KeptSteps
from kernelscope.gui.model.run_settings import RunSettings
from kernelscope.gui.model.sketches import ViewedPicture
from kernelscope.gui.viewer.pane import Canvas, Pane
from kernelscope.gui.window.pages.evaluation import Evaluating, Evaluation, Savable
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.images.source import Source
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind


class Page(QWidget, Generic[Opened, Part]):
    """Shows an input and its output, and keeps the history of both.

    Attributes
    ----------
    history : History
        The inputs with their results and references.
    """

    opening = Signal()
    """Another input is about to be shown, which ends a recipe in progress."""
    returned = Signal(object)
    """`RunSettings`: Undo or Redo reached a moment with these settings."""
    history_changed = Signal()
    """Undo, Redo or the result may be others."""
    reverted = Signal()
    """A moment could not be shown, and the page returned to the last one."""
    changed = Signal(bool)
    """The page shows another moment and wants to be in front; whether with another input."""
    drawn = Signal(object, bool)
    """`int or None, bool`: The gain of the difference on the right, None without one; whether that
    can be saved."""
    subject_changed = Signal()
    """Another input, output or reference is to be evaluated."""
    evaluated = Signal()
    """The output has been compared with its reference; see `judgement`."""
    referenced = Signal()
    """An input got a reference, while the previous one had none."""
    arranged = Signal()
    """Slices of another plane would be filtered."""
    moved = Signal()
    """Other slices of a volume are seen."""
    # Values under the cursor, and the magnification, for the status bar.
    described = Signal(str)
    zoomed = Signal(str)
    displayed = Signal()
    """Values are drawn in other colours."""

    kind: Kind
    """Pictures or volumes."""
    controls: QWidget | None = None
    """A widget of this page to be placed above the settings."""

    def __init__(
        self,
        background: Background,
        report: Callable[[Exception], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._background, self._report = background, report
        self.history: History[Opened, Part] = History()
        self._view = View.OUTPUT
        self.previewed: Request | None = None
        """The request of which a part is shown over the output."""
        self.steps_for: Callable[[Source], KeptSteps | None] = lambda _: None
        """Returns the steps of the input before that can be applied to one that is opened."""
        self.keeps_settings = False
        """Whether a result with other settings is a step that Undo takes back."""
        self._wanted_gain: int | None = None
        self._judging: object = None
        """The part, result and reference that were evaluated last, or are."""
        self._judged: tuple[object, Judgement] | None = None

    # --- the current moment ---

    @property
    def moment(self) -> Moment[Opened, Part]:
        """The moment that is shown; there is none before the first input."""
        assert self.history.current is not None
        return self.history.current

    @property
    def source(self) -> Opened | None:
        """The input of the next run."""
        return self.history.current.source if self.history.current else None

    @property
    def result(self) -> Result | None:
        """The last run on the input."""
        return self.history.current.result if self.history.current else None

    @property
    def part(self) -> Part:
        """The picture, or the volume of the scan, that is shown and evaluated."""
        raise NotImplementedError

    @property
    def reference(self) -> Reference[Part] | None:
        """The reference of `part`."""
        return self.moment.references.get(self.part) if self.history.current else None

    @property
    def canvas(self) -> Canvas:
        """The views of input and output."""
        raise NotImplementedError

    @property
    def output_pane(self) -> Pane:
        """The view of the output."""
        raise NotImplementedError

    @property
    def is_behind(self) -> bool:
        """Whether the current input has not been shown yet."""
        raise NotImplementedError

    def take_focus(self) -> None:
        """Give the keyboard to the view of the output."""
        raise NotImplementedError

    def announce(self) -> str:
        """Return a text for the status bar when another moment is shown."""
        source: Source = self.moment.source
        return "  ".join((f"{source.describe()}.", *source.notices))

    # --- input ---

    def takes(self, opened: object) -> bool:
        """Return whether an opened file or the source of a result belongs on this page."""
        raise NotImplementedError

    def open_part(self, opened: Part) -> None:
        """Continue with a picture or volume that is unrelated to the current one."""
        raise NotImplementedError

    def use_output(self) -> None:
        """Make the output the input, unless another input is shown by then."""
        moment = self.history.current
        if moment is None or moment.result is None:
            return

        def work() -> tuple[Moment[Opened, Part], Any]:
            new = following(moment)
            return new, self._examine(new.source)

        def show(answer: tuple[Moment[Opened, Part], Any]) -> None:
            new, examined = answer
            if self.source is moment.source:
                self._keep(new.source, examined)
                self._push(new)

        self._background.start("use", work, show, self._report)

    def undo(self) -> None:
        """Return to the previous input, with its output and references."""
        if self.history.undo_name:
            self.opening.emit()
            self.history.undo()
            self._return()

    def redo(self) -> None:
        """Reverse `undo`."""
        if self.history.redo_name:
            self.opening.emit()
            self.history.redo()
            self._return()

    def show_history(
        self, history: History[Opened, Part], form: RunSettings | None = None, *, draw: bool = True
    ) -> None:
        """Show another history in place of this one, with the settings `form` or its own.

        Without `draw` the caller shows it.
        """
        moment = history.current
        if moment is not None and len(history.moments) == 1 and not (form or moment.form):
            history.put(self._with_steps(moment))  # it is looked at for the first time
        self.opening.emit()
        self.history.leave()
        history.form, self.history = self.history.form, history
        if draw:
            self._return(form)

    def _return(self, form: RunSettings | None = None) -> None:
        form = form or self.moment.form
        if form is not None:
            self.returned.emit(form)
        self.show_moment()

    def _examine(self, source: Opened) -> Any:
        """Prepare `source` for being shown, off the GUI thread; see `_keep`."""

    def _keep(self, source: Opened, examined: Any) -> None:
        """Store the answer of `_examine`."""

    @property
    def slice_axis(self) -> int:
        """The axis across which a filter for pictures takes slices."""
        return 0

    def _with_steps(self, moment: Moment[Opened, Part]) -> Moment[Opened, Part]:
        """Return an opened moment with the steps of the input before, as far as they fit."""
        kept = self.steps_for(moment.source)
        return replace(moment, pipeline=kept.pipeline, form=kept.form) if kept else moment

    def _open(self, moment: Moment[Opened, Part]) -> None:
        """Show an opened input, with the steps of the one before; Undo returns to that."""
        self._push(self._with_steps(moment))

    def _push(self, moment: Moment[Opened, Part]) -> None:
        """Show `moment`; Undo returns to the current one."""
        self.opening.emit()
        self.history.push(moment)
        self._show_form()
        self.show_moment()

    def _show_form(self) -> None:
        """Show the settings that were meant for an input without a result yet."""
        if self.moment.form is not None and self.moment.result is None:
            self.returned.emit(self.moment.form)

    # --- runs ---

    def request(self, settings: RunSettings, *, of_slice: bool = False) -> Request:
        """Return a checked request for the input.

        Parameters
        ----------
        settings : RunSettings
        of_slice : bool
            Take a single slice in place of volumes, for a filter for pictures.

        Raises
        ------
        InvalidParameter
            As `Request.create`.
        """
        raise NotImplementedError

    def with_reference(self, request: Request) -> Request:
        """Return `request` with the reference, if the run itself can evaluate its result."""
        return request

    def warm_up_request(self, settings: RunSettings) -> Request | None:
        """Return the request to compile for before the first run; None for no compiling."""
        return None

    def show_result(self, result: Result, form: RunSettings | None = None) -> None:
        """Show a result with its input, which may be an earlier one.

        Parameters
        ----------
        form : RunSettings, optional
            Settings to restore with the result; by default, those of its request.
        """
        form = form or RunSettings.of(result.request)
        source = cast(Opened, result.request.source)
        if source is self.source:
            self.show_output(result, form)
            return
        known = self.history.moment_of(source) or Moment(source, "")
        references = self._references_of(result, known)
        moment = replace(known, name="Earlier Run", references=references, result=result, form=form)
        self._push(moment)

    def show_output(self, result: Result, form: RunSettings, *, same_step: bool = False) -> None:
        """Show another result of the current input.

        Parameters
        ----------
        form : RunSettings
            Settings to restore with it.
        same_step : bool
            It belongs to the gesture that led to the result that is shown.
        """
        self.history.show(result, form, as_step=self.keeps_settings and not same_step)
        self.show_moment(new=False)

    def show_again(self, result: Result, form: RunSettings) -> None:
        """Show an earlier run as `show_result` does, without the steps after it."""
        self.show_result(result, form)
        pipeline = self.moment.pipeline
        if pipeline is not None and pipeline.then and not result.request.then:
            self.history.amend(pipeline=pipeline.shown_alone(True))

    def show_cards(self, moment: Moment[Opened, Part], *, as_step: bool) -> None:
        """Show other cards with their input and output; as a step that Undo takes back."""
        self.opening.emit()
        new = moment.source is not self.source
        if as_step:
            self.history.push(moment)
        else:
            self.history.put(moment)
        self._show_form()
        self.show_moment(new=new)

    def visible_parts(self, request: Request) -> Sequence[Region | Box]:
        """Return the parts of the result to be computed for the view, first to last."""
        return ()

    def part_shown(self, request: Request) -> Region | Box | None:
        """Return the part of the result of `request` that is shown; None for none or all."""
        shown = self.previewed
        return shown.region if shown is not None and alike(shown, request) else None

    def describe_part(self, shown: Request) -> str:
        """Return which part of the result of a request is shown; empty for all of it."""
        return describe_part(shown)

    def shows_part(self, request: Request) -> bool:
        """Return whether the part of a request is still in view."""
        return True

    def reduction(self) -> int:
        """Return the side of the squares of pixels that one pixel of the screen shows."""
        return 1

    def scene(self) -> ViewedPicture | None:
        """Return the picture or slice that is looked at; None without an input."""
        raise NotImplementedError

    def display_of_scene(self, scene: ViewedPicture) -> Display:
        """Return how small pictures of a scene are drawn."""
        return Display.automatic(scene.image.planes)

    def show_preview(self, result: Result) -> bool:
        """Show a part of a result until a whole one is; return whether it can be shown."""
        raise NotImplementedError

    def _references_of(
        self, result: Result, known: Moment[Opened, Part]
    ) -> Mapping[Part, Reference[Part]]:
        """Return the references of an earlier run; `known` is a moment with its input."""
        return known.references

    def advance_silently(
        self, result: Result, form: RunSettings, following: Moment[Opened, Part]
    ) -> None:
        """Make the moment after `result` the current one, without showing it."""
        self.history.show(result, form, as_step=False)
        self.history.push(following)

    def show_moment(self, *, new: bool = True) -> None:
        """Show the current moment of the history; `new` unless only the result is another."""
        raise NotImplementedError

    def is_current(self, settings: RunSettings | None) -> bool:
        """Return whether a run would produce the result again; `settings` are None if invalid."""
        return (
            self.result is not None
            and settings is not None
            and settings.made(self.result.request)
            and self.result.request.then == self.history.then
        )

    def mark_stale(self, settings: RunSettings | None) -> bool:
        """Mark the output if a run with these settings would produce another one, and say so."""
        stale = self.result is not None and not self.is_current(settings)
        previewed = self.previewed
        preview = previewed is not None and settings is not None and settings.made(previewed)
        self.output_pane.set_stale(stale and not preview)
        return stale

    # --- views ---

    def set_view(self, view: View, gain: int | None) -> None:
        """Show the output or a difference; without a gain, the one that shows most."""
        raise NotImplementedError

    def show_noise(self, settings: RunSettings, show_status: Callable[[str], None]) -> None:
        """Show a map of the noise in place of the output, where there is one."""

    def slice_as_picture(self) -> Image | None:
        """Return the slice that was clicked last, where there are slices."""
        return None

    # --- reference ---

    def set_reference(
        self, image: Part | None, origin: ReferenceOrigin = ReferenceOrigin.CHOSEN
    ) -> None:
        """Evaluate `part` and its output against `image`, or against nothing.

        Raises `Incomparable` if they differ in size.
        """
        references = {k: v for k, v in self.moment.references.items() if k is not self.part}
        if image is not None:
            references[self.part] = Reference(image, origin)
        self.history.amend(references=references)
        self._redraw()
        self._show_reference()

    def use_input_as_reference(self) -> None:
        """Evaluate the output against the input."""
        if self.history.current is not None:
            self.set_reference(self.part)

    def clear_reference(self) -> None:
        """Evaluate no longer."""
        if self.history.current is not None:
            self.set_reference(None)

    def judge(self, panel: QualityPanel) -> None:
        """Evaluate input and output in the background and show that in `panel`, once."""
        if self.history.current is None:
            return
        reference = self.reference
        subject = (self.part, self.result, reference)
        if panel.subject == subject:
            return
        panel.subject = self._judging = subject
        panel.begin(self.part)
        keep = partial(self._keep_judgement, subject)
        evaluating = Evaluating(panel, reference, keep)
        evaluating.start(self._evaluation(), self._background, self._report)

    def judge_output(self) -> None:
        """Evaluate the output in the background, unless that was done or is under way."""
        part, result, reference = subject = (self.part, self.result, self.reference)
        if result is None or reference is None or subject == self._judging:
            return
        self._judging = subject
        self._background.start(
            "judge output",
            lambda: judge_run(result, part, reference.image),
            partial(self._keep_judgement, subject),
            self._report,
        )

    def _keep_judgement(self, subject: object, judgement: Judgement | None) -> None:
        if judgement is not None:
            self._judged = subject, judgement
            self.evaluated.emit()

    @property
    def judgement(self) -> Judgement | None:
        """How input and output compare with the reference, once they have been evaluated."""
        now = self.history.current and (self.part, self.result, self.reference)
        subject, judgement = self._judged or (None, None)
        return judgement if now and subject == now else quality_of(self.result, self.reference)

    def _evaluation(self) -> Callable[[], Evaluation]:
        """Return a function that evaluates the current moment, to be called on any thread."""
        raise NotImplementedError

    def _show_reference(self) -> None:
        self.subject_changed.emit()

    def _redraw(self) -> None:
        """Draw the output, or its difference to the reference, again."""
        raise NotImplementedError

    # --- to save ---

    def output(self) -> Savable | None:
        """Return the output that is shown."""
        raise NotImplementedError

    def all_outputs(self) -> Savable | None:
        """Return all volumes of the output, where it consists of volumes."""
        return None

    def save_difference(self, save: Callable[[Savable], None]) -> None:
        """Call `save` with the residual or difference that is shown, once it is computed."""
        raise NotImplementedError

    def figure(self) -> Callable[[View | None, bool], Figure]:
        """Return a function of a change and *in view* that draws this moment, on any thread."""
        raise NotImplementedError

    def copyable(self) -> Image | None:
        """Return the output for the clipboard, if it is a picture."""
        return None
