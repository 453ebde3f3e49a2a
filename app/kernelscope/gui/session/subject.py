"""The subject of filters and views: an input with its history, and the output on the screen.

    open, run, undo ...  -->  push, show_output, undo ...   -->  MOMENT, RESULT, REFERENCE
    the page draws that  -->  note_moment, note_output       -->  INPUT, SHOWN

There is one for pictures and one for volumes; that in front is `Session.subject`.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeAlias, cast

from kernelscope.base.errors import AppError
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request, RunSettings, alike
from kernelscope.engine.result import Judgement, Result
from kernelscope.engine.stabilising import Sigmas
from kernelscope.engine.step import Step
from kernelscope.files.names import name_of_steps, stem, stem_of, targets_of
from kernelscope.gui.model.comparison import (
    Evaluation,
    Judged,
    View,
    histogram_of,
    judge_both,
    offset_of,
    output_of,
    quality_of,
    with_reference,
)
from kernelscope.gui.model.display import Display, PaneSide, automatic_of, samples_of
from kernelscope.gui.model.drawn_view import DrawnView, draw
from kernelscope.gui.model.figure import (
    Figure,
    FigurePart,
    caption_of,
    channel_rows,
    of_planes,
    part_in_view,
    region_in_view,
    row_of,
    slices_in_words,
    unit_of,
)
from kernelscope.gui.model.freshness import describe_part
from kernelscope.gui.model.history import (
    History,
    Moment,
    Opened,
    Part,
    Reference,
    ReferenceOrigin,
    parts_of,
    references_of,
)
from kernelscope.gui.model.measurements import (
    EARLIER,
    Output,
    ProfiledPicture,
    size_of,
    steps_of,
    to_measure,
)
from kernelscope.gui.model.pipeline import Pipeline
from kernelscope.gui.model.regions import AS_DRAWN, Against, Axes, Interest, Regions
from kernelscope.gui.model.runs import Run
from kernelscope.gui.model.sketches import ViewedPicture
from kernelscope.gui.model.slice_previews import SlicePreview, SlicePreviews, place_of
from kernelscope.images.image import Image
from kernelscope.images.levels import relevelled, takes_levels
from kernelscope.images.planes import Plane
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind, Levels

if TYPE_CHECKING:
    from kernelscope.gui.session.canvas_view import CanvasView, Edges
    from kernelscope.gui.session.session import Session

_logger = logging.getLogger(__name__)

MOMENT, RESULT, REFERENCE = "moment", "result", "reference"
"""Of the history: another moment, another result of its input, another reference."""

INPUT, MOMENT_SHOWN, SHOWN, PART = "input", "moment shown", "shown", "part"
"""Of the screen: another input; another moment or result; another view of the output too; a part of
another output."""

COMPONENT, MAP = "component", "map"
"""Another component is shown; a map of noise is, in place of the output."""

REFERENCED, JUDGED, WORK, REVERTED = "referenced", "judged", "work", "reverted"
SETTLED, REGIONS = "settled", "regions"
"""An input got a reference, while the one before had none; the output was compared with its
reference; work on the output began or ended; a moment could not be shown; settings became a step,
at a pause, or regions did; other regions are drawn or selected."""


Fields: TypeAlias = frozenset[str]  # names of the attributes that are others now

Watcher: TypeAlias = Callable[[Fields], object]


class Observed:
    """Calls its followers when attributes have changed: the form and the picture at once.

    Those of `follow_later` are called once a turn of the event loop, after the paint, if
    `schedule` brings its argument there.
    """

    def __init__(self, schedule: Callable[[], object] | None = None) -> None:
        self.schedule: Callable[[], object] = schedule or (lambda: None)
        """Has `call_later` called soon."""
        self._early: list[tuple[Fields | None, Watcher]] = []
        """Followers, with the fields that concern them; None for all."""
        self._now: list[tuple[Fields | None, Watcher]] = []
        self._later: list[tuple[Fields | None, Watcher]] = []
        self._changed: set[str] = set()
        self._due: set[str] = set()
        self._depth = 0

    def follow(self, follower: Watcher, *, early: bool = False) -> None:
        """Call `follower` at the end of each change; `early`: before those who only show it."""
        (self._early if early else self._now).append((None, follower))

    def when(self, fields: Iterable[str], call: Callable[[], object]) -> None:
        """Call `call` at the end of each change of one of `fields`."""
        self._now.append((frozenset(fields), lambda _: call()))

    def follow_later(self, follower: Watcher) -> None:
        """Call `follower` once for several changes, after the paint."""
        self._later.append((None, follower))

    def changing(self, *fields: str) -> Self:
        """Note that attributes change in the ``with`` block of this, whose changes are one."""
        self._changed.update(fields)
        return self

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._tell()

    def note(self, *fields: str) -> None:
        with self.changing(*fields):
            pass

    def _tell(self) -> None:
        # A follower may change something itself, as the form does that rounds a number.
        failures: list[Exception] = []
        while self._changed and not self._depth:
            fields = frozenset(self._changed)
            self._changed.clear()
            self._due |= fields
            self._depth += 1
            try:
                failures += _failures(_concerned((*self._early, *self._now), fields))
            finally:
                self._depth -= 1
        if self._due:
            self.schedule()
        _report(failures)

    def call_later(self) -> None:
        """Call those of `follow_later`, if anything has changed since."""
        fields = frozenset(self._due)
        self._due.clear()
        if fields:
            _report(_failures(_concerned(tuple(self._later), fields)))


def _concerned(
    followers: Sequence[tuple[Fields | None, Watcher]], fields: Fields
) -> list[Callable[[], object]]:
    return [
        partial(follower, fields)
        for wanted, follower in followers
        if wanted is None or not wanted.isdisjoint(fields)
    ]


def _failures(calls: Iterable[Callable[[], object]]) -> list[Exception]:
    """Call all, and return the errors: one that fails does not silence the others."""
    failures: list[Exception] = []
    for call in calls:
        try:
            call()
        except Exception as error:  # raised once all have been called
            failures.append(error)
    return failures


def _report(failures: list[Exception]) -> None:
    """Raise the first failure as it is, or the user could not put it right; log the others."""
    for each in failures[1:]:
        _logger.error("Another failure of the same change", exc_info=each)
    for each in failures[:1]:
        raise each


class Savable(NamedTuple):
    """Pictures or volumes to save, and a file name to suggest, without suffix."""

    images: Sequence[Image | Volume]
    name: str
    together: bool = False  # whether all volumes go to one file
    sources: Sequence[object] = ()  # the inputs whose outputs are safe then
    part_of: str = ""  # ``12 volumes``: those of the input file, of which several are only some
    compute: Callable[[Path, Callable[[Savable], object]], object] | None = None
    """Of stand-ins for an output: computes it for a file, and then calls its second argument."""

    @property
    def whole(self) -> str:
        """All volumes of the input file, ``12 volumes``, if these are only some of them."""
        first, *others = self.images
        axes = first.among if isinstance(first, Volume) and not others else ()
        if self.part_of or not axes:
            return self.part_of
        kind = "channels" if {axis.letter for axis in axes} == {"C"} else "volumes"
        return f"{math.prod(axis.count for axis in axes)} {kind}"

    def files(self, path: Path) -> list[tuple[Sequence[Image | Volume], Path]]:
        """Return the files to write with their contents: `path`, and others next to it."""
        if self.together:
            return [(self.images, path)]
        targets = targets_of(self.images, path)
        return [([image], target) for image, target in zip(self.images, targets, strict=True)]


class Subject(Observed, Generic[Opened, Part]):
    """A picture; `VolumeSubject` adds the components and the slices of volumes."""

    kind = Kind.PICTURE
    drawn_at_once = False  # whether the output is drawn quickly, as the input on the screen is

    def __init__(self, session: Session, view: CanvasView) -> None:
        super().__init__()
        self.session, self.view = session, view
        view.follow(self._on_view)
        self.history: History[Opened, Part] = self._owned(History())
        self.input: Opened | None = None  # the input on the screen
        self._chosen: object = None  # the part that was chosen
        self.shown: Request | None = None
        """The request whose output, or a part of it, is on the screen."""
        self.gain: int | None = None  # that of the difference on the screen; None for no difference
        self.has_difference = False  # whether there is a difference to be saved
        self.drawing: DrawnView | None = None  # the output or the difference on the screen
        self.preview: Result | None = None
        """The last region of a result that was shown over the output, while it may be again."""
        self.previews = SlicePreviews()
        """Slices of outputs of volumes that were computed before a run of the whole."""
        self.map: Part | None = None  # a map of noise that is shown in place of the output
        self.at_work = self.compiling = False
        """Whether the output is computed, and whether its code is compiled first."""
        self.regions = Regions(self._regions, self._draw, lambda: self.note(REGIONS))
        self.pending: tuple[Pipeline, str] | None = None
        """Steps that wait for their input, and the name of the step for Undo."""
        self.judging: object = None
        """The part, result and reference that were evaluated last, or are."""
        self._waiting: RunSettings | None = None  # settings to be shown when this is in front
        self._drawn: tuple[History[Opened, Part], Any] = self.history, self.history.state
        """The history of the input on the screen, and its state when that was drawn."""
        self._judged: tuple[object, Judgement] | None = None
        self._derived: tuple[object, Pipeline] | None = None
        self.when({MOMENT, RESULT}, self.previews.clear)

    def _owned(self, history: History[Opened, Part]) -> History[Opened, Part]:
        history.settings_now = lambda: self.session.settings if self.is_front else None
        return history

    def __enter__(self) -> None:
        self.session.__enter__()
        super().__enter__()

    def __exit__(self, *_: object) -> None:
        """End a change, and that of the session, which calls its followers once."""
        _report(_failures((super().__exit__, self.session.__exit__)))

    def _regions(self) -> tuple[Interest, ...]:
        current = self.history.current
        return current.regions if current is not None else ()

    def _draw(self, regions: tuple[Interest, ...], act: str, goes_on: bool) -> None:
        if self.source is None or self.is_behind:
            return  # the picture on the screen is another one
        with self.changing(REGIONS, SETTLED):
            self.history.draw(regions, act, goes_on=goes_on)
            self._drawn = self.history, self.history.state

    def _on_view(self, fields: Fields) -> None:
        self.note(*fields)

    # --- the current moment ---

    @property
    def is_front(self) -> bool:
        return self is self.session.subject

    @property
    def moment(self) -> Moment[Opened, Part]:
        current = self.history.current
        assert current is not None
        return current

    @property
    def source(self) -> Opened | None:
        current = self.history.current
        return current.source if current is not None else None

    @property
    def result(self) -> Result | None:
        current = self.history.current
        return current.result if current is not None else None

    @property
    def part(self) -> Part:
        return cast(Part, parts_of(self.moment.source)[self.component])

    @property
    def component(self) -> int:
        """The number of the part that is shown: the one that was chosen, or else the first."""
        parts = parts_of(self.source) if self.source is not None else ()
        return next((place for place, each in enumerate(parts) if each is self._chosen), 0)

    def choose(self, component: int) -> None:
        with self.changing(COMPONENT):
            self._chosen = parts_of(self.moment.source)[component]

    @property
    def reference(self) -> Reference[Part] | None:
        current = self.history.current
        return current.references.get(self.part) if current is not None else None

    @property
    def is_behind(self) -> bool:
        """Whether the current input has not been shown yet."""
        return self.source is not self.input

    def announce(self) -> str:
        """Return a text for the status bar when another input is shown."""
        source: Source = self.moment.source
        return "  ".join((f"{source.describe()}.", *source.notices))

    # --- other moments ---

    def opened(
        self, source: Opened, name: str = "", truth: Sequence[Part] = ()
    ) -> Moment[Opened, Part]:
        """Return the moment of an input with its references; `truth`: noise-free originals.

        `name`: of the step for Undo.
        """
        moment, parts = self.history.current, cast("tuple[Part, ...]", parts_of(source))
        known = moment.references if moment is not None else {}
        references = references_of(parts, truth, known, self.reference)
        return Moment(source, name or f"Open {source.title}", references=references)

    def open_source(self, source: Opened) -> None:
        self.open(self.opened(source))

    def open(self, moment: Moment[Opened, Part]) -> None:
        """Show an opened input, with the steps of the one before; Undo returns to that."""
        self.push(self.session.with_steps(self, moment))

    def push(self, moment: Moment[Opened, Part]) -> None:
        had_none = self.reference is None
        with self.changing():
            self.show_steps(moment, as_step=True)
            if had_none and self.reference is not None:
                self.note(REFERENCED)

    def show_steps(self, moment: Moment[Opened, Part], *, as_step: bool) -> None:
        """Show other steps with their input and output; as a step that Undo takes back."""
        with self.changing(MOMENT):
            if as_step:
                self.history.push(moment)
            else:
                self.history.put(moment)
            if moment.result is None:  # settings that were meant for it
                self._recall(moment.settings)

    def undo(self) -> None:
        if self.history.undo_name:
            self._go(self.history.undo)

    def redo(self) -> None:
        if self.history.redo_name:
            self._go(self.history.redo)

    def _go(self, step: Callable[[], bool]) -> None:
        before = self._regions()
        with self.changing():
            if step():
                self._drawn = self.history, self.history.state
                self.note(REGIONS, SETTLED)
            else:
                self.note(MOMENT)
                self._recall(self.moment.settings)
            self.regions.choose_changed(before)

    def show_history(
        self, history: History[Opened, Part], settings: RunSettings | None = None
    ) -> None:
        with self.changing(MOMENT):
            moment = history.current
            if (
                moment is not None
                and len(history.moments) == 1
                and not (settings or moment.settings)
            ):
                # It is seen for the first time: a reference that was chosen stays.
                known = moment.references or self.opened(moment.source).references
                history.put(self.session.with_steps(self, replace(moment, references=known)))
            self.history.leave()
            self.history = self._owned(history)
            self._recall(settings or self.moment.settings)

    def revert(self) -> None:
        with self.changing(REVERTED):
            self.history, self.history.state = self._drawn

    def show_moment(self) -> None:
        """Show the current moment, if steps led to it without being shown."""
        if self.is_behind:
            self.note(RESULT)

    def _recall(self, settings: RunSettings | None) -> None:
        """Show settings in the form, now or as soon as this is in front."""
        if self.is_front and settings is not None:
            self.session.show(settings)
        self._waiting = None if self.is_front else settings

    def take_due(self) -> RunSettings | None:
        """Return once the settings that wait for this to be in front."""
        due, self._waiting = self._waiting, None
        return due

    def settle(self, *, as_step: bool) -> None:
        """Let Undo return to the present settings: the user has paused, though no result came."""
        settings, result = self.session.settings, self.result
        if settings is None or self.source is None or self.is_behind or not self.is_front:
            return
        known = self.moment.settings
        if result and known and known.made(result.request) and settings.made(result.request):
            return  # which may lack settings of another kind
        if self.history.settle(settings, as_step=as_step):
            self._drawn = self.history, self.history.state
            self.note(SETTLED)

    # --- runs ---

    def request(self, settings: RunSettings, *, of_slice: bool = False) -> Request:
        """Return a checked request for the input, or a single slice; raises `InvalidParameter`."""
        return settings.request(self.moment.source)

    def next_request(self, *, of_slice: bool = False) -> Request | None:
        if self.session.settings is None or self.source is None:
            return None
        try:
            return self.request(self.session.settings, of_slice=of_slice)
        except AppError:
            return None

    def wanted(self) -> Request | None:
        """Return the request of the settings, with the steps after it to the output."""
        request = self.next_request()
        try:
            return self.history.followed(request) if request is not None else None
        except AppError:
            return None

    def with_reference(self, request: Request) -> Request:
        """Return `request` with the reference, if the run itself can evaluate its result."""
        return with_reference(request, self.reference)

    def show_result(self, result: Result, settings: RunSettings | None = None) -> None:
        """Show a result with its input, maybe an earlier one, and the settings to restore."""
        settings = settings or RunSettings.of(result.request)
        source = cast(Opened, result.request.source)
        if source is self.source:
            self.show_output(result, settings)
            return
        known = self.history.moment_of(source) or Moment(source, "")
        moment = replace(known, name="Earlier Run", result=result, settings=settings)
        if self.kind is Kind.PICTURE:  # a run of volumes has no reference of its own
            reference = cast("Part | None", result.request.reference)
            part = cast(Part, source)
            references = {part: Reference(reference, ReferenceOrigin.CHOSEN)} if reference else {}
            moment = replace(moment, references=references)
        self.push(moment)

    def show_output(
        self, result: Result, settings: RunSettings, *, same_step: bool = False
    ) -> None:
        """Show another result of the input; `same_step`: of the gesture that led to the last."""
        with self.changing(RESULT):
            self.history.show(result, settings, as_step=self.session.live and not same_step)

    def show_again(self, result: Result, settings: RunSettings) -> None:
        """Show an earlier run as `show_result` does, without the steps after it."""
        with self.changing():
            self.show_result(result, settings)
            pipeline = self.moment.pipeline
            if pipeline is not None and pipeline.then and not result.request.then:
                self.history.amend(pipeline=pipeline.shown_alone(True))

    def requests_beside(self, request: Request) -> list[Request]:
        """Return the requests that do the same with the other channels of a composite."""
        return []

    def lacks_channels(self) -> bool:
        """Whether channels of a composite are drawn whose outputs were not filtered likewise."""
        return False

    def keep_beside(self, result: Result, beside: Sequence[Result]) -> None:
        """Keep the outputs of the other channels of a composite, which are drawn with a result."""

    def show_preview(self, result: Result, beside: Sequence[Result] = ()) -> bool:
        """Show a part of a result until a whole one is; return whether it is in view.

        `beside`: those of the other channels of a composite.
        """
        if not self.visible_parts(result.request):
            return False
        with self.changing(PART):
            self.preview, self.shown = result, result.request
        return True

    def is_current(self, settings: RunSettings | None) -> bool:
        """Return whether a run would produce the result again; `settings` are None if invalid."""
        if self.result is None or settings is None:
            return False
        request = self.result.request
        along = not request.by_slices or request.step.axis == self.slice_axis
        return along and settings.made(request) and request.then == self.history.then

    @property
    def run(self) -> Run | None:
        return self.session.gallery.find(self.result) if self.result is not None else None

    @property
    def is_stale(self) -> bool:
        return self.result is not None and not self.is_current(self.session.settings)

    @property
    def slice_axis(self) -> int:
        return self.view.axis

    # --- the steps ---

    @property
    def pipeline(self) -> Pipeline | None:
        if self.pending is not None:
            return self.pending[0]
        moment = self.history.current
        if moment is None or not self.is_front:
            return moment.pipeline if moment is not None else None
        return self.pipeline_of(moment)

    def pipeline_of(self, moment: Moment[Opened, Part]) -> Pipeline:
        """Return the steps of the moment that is shown, with the settings of the form."""
        present = self._present()
        if moment.pipeline is not None:
            return moment.pipeline.edited(present)
        if self._derived is None or self._derived[0] is not moment.steps or not moment.steps:
            self._derived = moment.steps, Pipeline.of(moment.steps, present)
        return self._derived[1].edited(present)

    def _present(self) -> RunSettings:
        settings = self.session.settings
        if settings is None:
            if self.result is not None:
                request = self.result.request
                return RunSettings(request.step.fixed, request.options)
            return RunSettings(Step.create(self.session.spec.id))
        with contextlib.suppress(AppError):
            step = self.request(settings).step  # volumes have an axis
            return RunSettings(step.unestimated, settings.options)
        return RunSettings(settings.step.unestimated, settings.options)

    @property
    def base(self) -> Opened | None:
        """The picture or the volumes on which the first step works."""
        return self.history.current.base if self.history.current is not None else None

    # --- black and white ---

    @property
    def takes_levels(self) -> bool:
        """Whether the type of the input that was opened states no black and white."""
        return self.base is not None and any(map(takes_levels, parts_of(self.base)))

    @property
    def levels(self) -> Levels | None:
        parts = parts_of(self.base) if self.base is not None else ()
        return next((each.given_levels for each in parts if takes_levels(each)), None)

    def levels_of_samples(self) -> Callable[[], Levels]:
        """Return a function, for any thread, of black and white where the user gives none."""
        part = relevelled(self.part, None)
        return lambda: part.levels

    def set_levels(self, levels: Levels | None) -> None:
        """Open the input again with other samples as black and white; Undo returns to the old."""
        base = self.base
        if base is None or levels == self.levels:
            return
        known = self.history.moment_of(base) or self.moment
        before = cast("tuple[Part, ...]", parts_of(base))
        parts: dict[Part, Part] = {each: relevelled(each, levels) for each in before}
        references = {
            parts[part]: replace(reference, image=relevelled(reference.image, levels))
            for part, reference in known.references.items()
            if part in parts
        }
        source = self._together(list(parts.values()))
        name = "Black and White" if levels is not None else "Black and White of the Samples"
        regions = self._regions()  # of the same samples, whether a file has them or not
        self.open(Moment(source, name, references=references, regions=regions))
        self.session.take_notice()  # the steps are those that were there

    def _together(self, parts: Sequence[Part]) -> Opened:
        """Return the input of these pictures or volumes."""
        (source,) = parts
        return cast(Opened, source)

    # --- the screen ---

    def note_moment(self) -> None:
        with self.changing(MOMENT_SHOWN, *[INPUT] * self.is_behind):
            self.input = self.source
            self._drawn = self.history, self.history.state
            self.session.bring_to_front(self)

    def note_output(self, gain: int | None = None, *, has_difference: bool = False) -> None:
        """Note that the whole output is on the screen, a difference, or none.

        A preview for the present settings is not lost: it comes back with the output.
        """
        preview, wanted = self.preview, self.wanted()
        with self.changing(SHOWN):
            self.shown = self._on_screen()
            self.gain, self.has_difference = gain, has_difference
            if preview and not (
                wanted
                and alike(preview.request, wanted)
                and not self.is_current(self.session.settings)
            ):
                self.preview = None
            elif preview:
                self.show_preview(preview)

    def _on_screen(self) -> Request | None:
        if self.previews_in_view:
            return self.previews_in_view[-1].request
        return self.result.request if self.result is not None else None

    def note_work(self, *, at_work: bool, compiling: bool) -> None:
        if (at_work, compiling) != (self.at_work, self.compiling):
            with self.changing(WORK):
                self.at_work, self.compiling = at_work, compiling

    def to_draw(self, scale: float = 1.0) -> Callable[[], DrawnView | None]:
        """Return a function, for any thread, of the output at `scale` device pixels per pixel."""
        result, reference = self.result, self.reference
        view, gain = self.session.view, self.session.wanted_gain
        if result is None:
            return lambda: None
        return lambda: draw(view, result, reference, gain, scale)

    @property
    def _shows_output(self) -> bool:
        return self.session.view is View.OUTPUT and self.map is None

    @property
    def previews_in_view(self) -> list[SlicePreview]:
        """The slices in view that were computed alone, the last one at the end."""
        places = self.view.slices if self._shows_output else ()
        return [each for each in self.previews if place_of(each.request) in places]

    def drop_previews(self) -> bool:
        settings = self.session.settings
        if not self.previews or not (self.is_current(settings) or self.history.then):
            return False
        self.previews.clear()  # the whole is there under them, or is another one
        return True

    def earlier_axes(self) -> frozenset[int]:
        """Return the axes of the planes in view that show an output of earlier settings."""
        settings, earlier = self.session.settings, set()
        whole = self.result.request if self.result is not None else None
        for axis, index in self.view.places:
            preview = self.previews.at(axis, index) if (axis, index) in self.view.slices else None
            request = preview.request if preview is not None else whole
            if request is not None and not (settings and settings.made(request)):
                earlier.add(axis)
        return frozenset(earlier)

    @property
    def is_earlier(self) -> bool:
        """Whether the output on the screen is that of other settings."""
        previewed, settings = self.previewed, self.session.settings
        if previewed is None:
            return self.is_stale
        covered = self.is_current(settings)  # it is about to be drawn
        return not covered and not (settings is not None and settings.made(previewed))

    @property
    def is_around(self) -> bool:
        """Whether an output of other settings, or the input, is in view around a preview."""
        shown = self.previewed
        if shown is None or self.is_current(self.session.settings):
            return False
        if not isinstance(shown.region, Region):
            return False
        parts = self.visible_parts(shown)
        return any(isinstance(each, Region) and not shown.region.contains(each) for each in parts)

    @property
    def previewed(self) -> Request | None:
        whole = self.result.request if self.result is not None else None
        return self.shown if self.shown is not whole else None

    def part_shown(self, request: Request) -> Region | Box | None:
        """Return the part of the result of `request` that is shown; None for none or all."""
        shown = self.shown
        return shown.region if shown is not None and alike(shown, request) else None

    def describe_part(self, shown: Request) -> str:
        return describe_part(shown)

    def visible_parts(self, request: Request) -> Sequence[Region | Box]:
        """Return the parts of a result that are in view, and not there as a whole."""
        return self._parts_of(self.view.seen, request)

    def first_parts(self, request: Request) -> Sequence[Region | Box]:
        """Return the visible parts without those over which the input is drawn."""
        (left, top, right, bottom), (column, row) = self.view.seen, self.view.output_from
        beside = max(left, column), max(top, row), right, bottom
        return self._parts_of(beside, request) or self.visible_parts(request)

    def _parts_of(self, edges: Edges, request: Request) -> Sequence[Region | Box]:
        height, width = request.whole_shape[:2]
        part = part_in_view(edges, height, width, offset_of(request))
        return (part,) if part is not None and self._shows_output else ()

    def _in_view(self, request: Request) -> list[tuple[int, int]]:
        if request.then or not request.has_boxes:
            return []
        return [
            each
            for each in self.view.slices
            if not request.by_slices or each[0] == request.step.axis
        ]

    def shows_part(self, request: Request) -> bool:
        place = place_of(request)
        return place is None or place in self._in_view(request)

    def reduction(self) -> int:
        """Return the side of the squares of pixels that one pixel of the screen shows."""
        return max(1, math.floor(1 / self.view.camera.device_scale))

    def scene(self) -> ViewedPicture | None:
        """Return the picture that is shown, or a slice in the form in which it is filtered."""
        source: object = self.source
        if not isinstance(source, Image):
            return None
        left, top, right, bottom = self.view.seen
        x = (max(left, 0) + min(right, source.width)) / 2
        y = (max(top, 0) + min(bottom, source.height)) / 2
        return ViewedPicture(source, (int(x), int(y)), source)

    def display_of(self, image: Image, volume: Volume | None = None) -> Display:
        """Return how a picture, or a slice in the form in which it is filtered, is drawn.

        `volume`: that of the slice, by default the one that is shown.
        """
        return self.view.displays.of(PaneSide.INPUT) or Display.automatic(image.planes)

    def probed(self) -> tuple[int, int] | None:
        """Return column and row of the pixel under the pointer, of a volume in the slice."""
        return self.view.probe[1] if self.view.probe is not None else None

    def to_measure(self) -> Callable[[], list[ProfiledPicture]]:
        """Return a function, for any thread, of the pictures in which regions are measured."""
        part, outputs, planes, position = self.part, self.outputs, self._planes, self.view.position
        reference = self.reference.image if self.reference is not None else None
        looks = [self.view.look_in(p) if p else self.view.look for p in planes]
        display = self.view.displays.of(PaneSide.INPUT)
        return lambda: to_measure(part, outputs, reference, planes, position, looks, display)

    @property
    def outputs(self) -> list[Output]:
        """The outputs in view: previews, and the whole one around them or in other slices."""
        found, result, preview = [], self.result, self.preview
        if preview and preview.request is self.shown and preview.request.reduction == 1:
            by = preview.request.stand_in
            state = EARLIER if self.is_earlier else f"preview by {by}" if by else "preview"
            found.append(Output(preview, state))
        earlier, in_view = self.earlier_axes(), self.previews_in_view
        for number, plane in enumerate(self.view.planes):
            own = self.previews.at(plane.axis, self.view.position[plane.axis])
            if own is None or own not in in_view:
                continue
            by = own.request.stand_in
            state = f"preview by {by}" if by else "preview"
            found.append(
                Output(
                    own.result,
                    EARLIER if plane.axis in earlier else state,
                    number,
                    own.volumes[self.component],
                    own.part,
                    own.beside,
                )
            )
        if result is not None:
            found.append(Output(result, EARLIER if self.is_stale else ""))
        return found

    @property
    def _planes(self) -> Sequence[Plane | None]:
        """The planes of a volume; None stands for that of a picture."""
        return self.view.planes or (None,)

    @property
    def against(self) -> Against:
        """The regions that others are compared with; Rician noise is supposed of scans."""
        current, source = self.history.current, self.source
        known = current.against if current is not None else None
        scanned = isinstance(source, Scan) and not source.microscope
        return known if known is not None else Against(rician=scanned)

    def compare_regions(self, against: Against) -> None:
        if self.source is not None and not self.is_behind:
            self.history.amend(against=against)
            self._drawn = self.history, self.history.state

    def axes_of(self, region: Interest) -> Axes:
        if self.source is None or region.plane is None:
            return AS_DRAWN
        return Axes.of(self.view.planes[region.plane], cast(Volume, self.part).voxels.shape)

    def size_of(self, region: Interest) -> str:
        """Return the size in millimetres, where it is known."""
        part = self.part if self.source is not None and not self.is_behind else None
        if part is None or (isinstance(part, Volume) and region.plane is None):
            return ""
        plane = self.view.planes[region.plane] if region.plane is not None else None
        return size_of(region, steps_of(part, plane))

    # --- reference ---

    @property
    def reference_note(self) -> str:
        """Why a reference that was chosen is not that of this part; empty if none was."""
        return ""

    def set_reference(
        self, image: Part | None, origin: ReferenceOrigin = ReferenceOrigin.CHOSEN
    ) -> None:
        references = {k: v for k, v in self.moment.references.items() if k is not self.part}
        if image is not None:
            references[self.part] = Reference(image, origin)
        with self.changing(REFERENCE):
            self.history.amend(references=references)

    def evaluation(self) -> Callable[[], Evaluation]:
        """Return a function, for any thread, of the figures and histograms of input and output."""
        part, result, reference = self.part, self.result, self.reference

        def evaluate() -> Evaluation:
            shown: dict[str, Image | Volume] = {"input": part}
            if result is not None:
                shown["output"] = output_of(result, part)
            judged = judge_both(part, result, reference.image) if reference else Judged()
            return judged, {name: histogram_of(each) for name, each in shown.items()}

        return evaluate

    def keep_judgement(self, judged: object, judgement: Judgement | None) -> None:
        """Keep a comparison with the reference; `judged`: the value of `to_judge` then."""
        if judgement is not None:
            with self.changing(JUDGED):
                self._judged = judged, judgement

    @property
    def to_judge(self) -> tuple[Part, Result | None, Reference[Part] | None] | None:
        """The part, the result and the reference that belong together; None without an input."""
        return (self.part, self.result, self.reference) if self.history.current else None

    @property
    def judgement(self) -> Judgement | None:
        now, (judged, judgement) = self.to_judge, self._judged or (None, None)
        return judgement if now and judged == now else quality_of(self.result, self.reference)

    # --- to save ---

    @property
    def shown_output(self) -> Part | None:
        outputs = parts_of(self.result.output) if self.result is not None else None
        return cast(Part, outputs[self.component]) if outputs else None

    @property
    def subtracted(self) -> Part | None:
        """The picture or volume to subtract from the output for a difference."""
        if self.session.view is View.RESIDUAL:
            return self.part
        return self.reference.image if self.reference else None

    def output(self, *, every: bool = False) -> Savable | None:
        result = self.result
        return self.savable(result.request, every)(result.output) if result is not None else None

    def savable(self, request: Request, every: bool) -> Callable[[Source], Savable]:
        """Return a function of an output of `request`, which stays valid when others are shown.

        - `every`: not only the component that is in front.
        """
        parts = slice(None) if every else slice(self.component, self.component + 1)
        before = self.moment.steps if request.source is self.source else ()
        steps = [*(each.step for each in before), request.step, *(e.step for e in request.then)]
        made = name_of_steps(each.filter.id for each in steps)
        name = f"{stem_of(parts_of(request.source)[parts][0])}-{made}"
        sources = *(each.source for each in self.moment.steps), request.source
        return lambda output: Savable(parts_of(output)[parts], name, sources=sources)

    def difference(self) -> Callable[[], Savable] | None:
        change = self.drawing.change if self.drawing is not None else None
        if self.drawing is None or change is None:
            return None
        name = f"{stem(Path(change.title))}-{self.drawing.view}"
        return lambda: Savable([change], name)

    def figure(self) -> Callable[[View | None, FigurePart], Figure]:
        """Return a function of a change and a part that draws this moment, on any thread."""
        result, part, judgement, view = self.result, self.part, self.judgement, self.view
        assert result is not None
        reference = self.reference.image if self.reference is not None else None
        planes, position, active, seen = self._planes, view.position, view.active_plane, view.seen
        looks, sigmas = [view.look_in(p) if p else view.look for p in planes], self._residual_sigmas
        look, drawing = view.look, self.drawing
        chosen, regions = [view.displays.of(side) for side in PaneSide], self.regions.all

        def make(third: View | None, wanted: FigurePart) -> Figure:
            output, region, rows = output_of(result, part), None, []
            displays = [
                display or automatic_of(image)
                for display, image in zip(chosen, (part, output), strict=True)
            ]
            on_screen = drawing is not None and drawing.is_change and drawing.view is third
            limit = drawing.limit(displays[0]) if drawing is not None and on_screen else None
            numbers = range(len(planes)) if wanted is FigurePart.PLANES else (active,)
            for number in numbers:
                plane = planes[number]
                if wanted is FigurePart.VIEW:
                    height, width = samples_of(output, plane, position).shape[:2]
                    region = region_in_view(seen, height, width, offset_of(result.request))
                own = [each for each in regions if each.plane in (None, number)]
                row = partial(
                    row_of,
                    *(result, part, reference),
                    third=None if wanted is FigurePart.CHANNELS else third,
                    region=region,
                    regions=own,
                    place=(plane, position),
                    sigmas=sigmas,
                    limit=limit,
                )
                if wanted is FigurePart.CHANNELS:
                    rows += channel_rows(part, displays, looks[number], row)
                else:
                    rows.append(row(displays, look=looks[number]))
            wanted_planes = [(planes[number], looks[number]) for number in numbers]
            names = slices_in_words(part, wanted_planes, position, displays[0])
            pairs = zip(look.beside, look.filtered, strict=False)
            others = any(raw is not made for (raw, _), (made, _) in pairs)
            channel = part.channel.name if isinstance(part, Volume) and others else ""
            caption = caption_of(
                result, judgement, names, in_part=region is not None, channel=channel
            )
            return Figure(of_planes(rows), caption, unit_of(part), len(rows))

        return make

    @property
    def _residual_sigmas(self) -> Sigmas | None:
        """Sigmas by which the residual of a volume is divided, where they depend on it."""
        return None

    def output_as_picture(self) -> Image | None:
        return self.result.image if self.result is not None else None

    def slice_as_picture(self) -> Image | None:
        return None
