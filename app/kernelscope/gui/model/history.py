"""The recent inputs with their results and references, for undo and redo."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import takewhile
from typing import Any, Generic, TypeVar, cast

from kernelscope.engine.memo import Memo
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.result import Result
from kernelscope.gui.model.pipeline import Pipeline
from kernelscope.gui.model.regions import Against, Interest
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source, sizes_of
from kernelscope.images.volume import Among, Volume

MOST_MOMENTS = 100  # inputs and settings; most are only settings and a result

MOST_BYTES = 1 << 30
"""Limit for pixels and voxels in memory; the current moment is kept in any case."""

Opened = TypeVar("Opened", bound=Image | Scan)  # an input of filters

Part = TypeVar("Part", bound=Image | Volume)
"""A part of an input that is evaluated by itself: a picture, or one volume of a scan."""


def parts_of(source: Source) -> tuple[Image | Volume, ...]:
    if isinstance(source, Scan):
        return source.volumes
    assert isinstance(source, Image)
    return (source,)


class ReferenceOrigin(StrEnum):
    """How a picture or volume became the reference, in words for the user."""

    TRUTH = "the truth"
    NOISE = "before noise"
    CHOSEN = "chosen"
    KEPT = "kept from before"


@dataclass(frozen=True, eq=False)
class Reference(Generic[Part]):
    """The picture or volume that others are evaluated against."""

    image: Part
    origin: ReferenceOrigin


def references_of(
    parts: Sequence[Part],
    truth: Sequence[Part],
    known: Mapping[Part, Reference[Part]],
    shown: Reference[Part] | None,
) -> dict[Part, Reference[Part]]:
    """Return the references of parts: their `truth`, one that is known, or the chosen one."""
    if truth:
        truths = (Reference(each, ReferenceOrigin.TRUTH) for each in truth)
        return dict(zip(parts, truths, strict=True))
    references = {part: known[part] for part in parts if part in known}
    if shown and shown.origin in (ReferenceOrigin.CHOSEN, ReferenceOrigin.KEPT) and len(parts) == 1:
        (part,), image = parts, shown.image  # it may be meant for this input too
        chosen_for = next((each for each, reference in known.items() if reference is shown), part)
        if not isinstance(part, Volume) or _is_of(part, image, chosen_for):
            references.setdefault(part, Reference(image, ReferenceOrigin.KEPT))
    return references


def _is_of(part: Volume, image: Any, chosen_for: Any) -> bool:
    fits = part.voxels.shape == image.voxels.shape
    return bool(fits and place_for(part, image, chosen_for) == image.among)


def place_for(part: Volume, reference: Volume, chosen_for: Volume) -> tuple[Among, ...] | None:
    """Return the place, in the file of a reference, of the time and the channel of a volume.

    A file without times is the reference of all; one without channels is that of the channel which
    it was chosen for. None if it has no such volume.
    """
    own = {axis.letter: axis for axis in part.among}
    others = {axis.letter for axis in reference.among}
    if "C" in own and "C" not in others and part.channel_number != chosen_for.channel_number:
        return None
    places = [(own.get(axis.letter, axis), axis) for axis in reference.among]
    if any(mine.count != axis.count for mine, axis in places):
        return None
    return tuple(mine for mine, _ in places)


@dataclass(frozen=True, eq=False)
class Moment(Generic[Opened, Part]):
    """An input and everything that belongs to it."""

    source: Opened
    name: str
    """The action that led to this input, for “Undo …”: a filter or “Open a.png”. Empty if it was
    only looked at: another channel or time of the file, which Undo passes over."""
    steps: tuple[Request, ...] = ()  # the runs from the input that was opened to this one
    references: Mapping[Part, Reference[Part]] = field(default_factory=dict)
    """The reference of each part of the source that has one."""
    result: Result | None = None  # the last run on this input
    settings: RunSettings | None = None
    """The settings of the result, or later ones whose result has not come; without a result, those
    that were set when the user left."""
    pipeline: Pipeline | None = None
    """All steps, where they are not just `steps` and the form after them: some are off, or follow
    the one that the form edits, whose settings are in `settings`."""
    regions: tuple[Interest, ...] = ()
    """Those of interest, which belong to the files of the input."""
    against: Against | None = None
    """The regions that they are compared with, which do so too; None until they are chosen."""

    @property
    def base(self) -> Opened:
        """The picture or the volumes on which the first step works."""
        return cast(Opened, self.steps[0].source) if self.steps else self.source

    @property
    def files(self) -> set[object]:
        """The files that the input was read from; a picture that no file has stands for itself."""
        return {each.path or each for each in parts_of(self.base)}

    def kept(self) -> list[Source | Volume]:
        """Return the pictures and volumes that this keeps in memory."""
        kept: list[Source | Volume] = [self.source]
        for request in self.steps:
            kept.append(request.source)
        for reference in self.references.values():
            kept.append(reference.image)
        if self.result is not None:
            kept.append(self.result.output)
            for part in self.result.parts:
                kept.append(part.output)
        return kept

    def describe_steps(self) -> str:
        names = ", ".join(each.step.filter.name for each in self.steps)
        return f"after {names}" if names else ""


class History(Generic[Opened, Part]):
    """The moments, oldest first, and which of them is current."""

    def __init__(self) -> None:
        self._moments: list[Moment[Opened, Part]] = []
        self._place = -1
        self.settings_now: Callable[[], RunSettings | None] = lambda: None
        """Returns the current settings."""
        self._drawn: Moment[Opened, Part] | None = None  # that of the last act on regions
        self.outputs = Memo()  # the results of the steps that led to the present output

    @property
    def current(self) -> Moment[Opened, Part] | None:
        return self._moments[self._place] if self._moments else None

    @property
    def moments(self) -> tuple[Moment[Opened, Part], ...]:
        return tuple(self._moments)

    @property
    def undo_name(self) -> str:
        """The name of the step that `undo` takes back; empty if there is none."""
        return self._moments[self._step].name if self._step > 0 else ""

    @property
    def _step(self) -> int:
        """The place of the last moment that an act led to."""
        return next((n for n in range(self._place, 0, -1) if self._moments[n].name), 0)

    @property
    def redo_name(self) -> str:
        following = self._moments[self._place + 1 :]
        return following[0].name if following else ""

    @property
    def state(self) -> tuple[list[Moment[Opened, Part]], int]:
        return list(self._moments), self._place

    @state.setter
    def state(self, state: tuple[list[Moment[Opened, Part]], int]) -> None:
        moments, self._place = state
        self._moments = list(moments)

    def push(self, moment: Moment[Opened, Part]) -> None:
        self.leave()
        self._append(self._with_regions(moment))

    def _with_regions(self, moment: Moment[Opened, Part]) -> Moment[Opened, Part]:
        """Return `moment` with the regions that were drawn into its files."""
        for each in reversed(self._moments[: self._place + 1]):
            if not each.files.isdisjoint(moment.files):
                return replace(moment, regions=each.regions, against=each.against)
        return moment

    def draw(self, regions: tuple[Interest, ...], name: str, *, goes_on: bool) -> None:
        """Keep other regions, as a step, or as the end of the act that led to the last ones."""
        current = self._moments[self._place]
        if goes_on and current is self._drawn:
            self.amend(regions=regions)
        else:
            self._append(replace(current, name=name, regions=regions))
        self._drawn = self.current

    def _append(self, moment: Moment[Opened, Part]) -> None:
        del self._moments[self._place + 1 :]
        self._moments.append(moment)
        self._place += 1
        self._trim()

    def amend(self, **changes: object) -> None:
        """Change attributes of the current moment."""
        self._moments[self._place] = replace(self._moments[self._place], **changes)  # type: ignore[arg-type]
        self._trim()

    def put(self, moment: Moment[Opened, Part]) -> None:
        """Make `moment` the current one in place of the one that is."""
        self._moments[self._place] = self._with_regions(moment)
        self._trim()

    def show(self, result: Result, settings: RunSettings, *, as_step: bool) -> None:
        """Keep another result of the current input; one with other settings may be a step."""
        moment = self._moments[self._place]
        self.outputs.keep(result)
        if self._follows_region(settings):
            self.amend(result=result, settings=settings)
            self._drawn = self.current
        elif as_step and moment.result is not None and not _same(moment.settings, settings):
            name = result.request.step.filter.name
            self.push(replace(moment, name=name, result=result, settings=settings))
        else:
            self.amend(result=result, settings=settings)

    def settle(self, settings: RunSettings, *, as_step: bool) -> bool:
        """Keep settings whose result has not come; return whether they are another step."""
        moment = self._moments[self._place]
        if moment.settings is None or self._follows_region(settings):
            self.amend(settings=settings)
        elif not _same(moment.settings, settings):
            if as_step:
                name = settings.step.filter.name
                self._append(replace(moment, name=name, settings=settings))
                return True
            self.amend(settings=settings)
        return False

    def _follows_region(self, settings: RunSettings) -> bool:
        """Return whether a filter that is limited to a region follows the one just drawn."""
        moment = self._moments[self._place]
        known = moment.settings
        if known is None or moment is not self._drawn or known.step.within == settings.step.within:
            return False
        return _same(
            known, replace(settings, step=replace(settings.step, within=known.step.within))
        )

    def undo(self) -> bool:
        """Go one moment back, which `undo_name` must show to exist.

        Return whether regions alone are others; all else stays then as it is.
        """
        return self._go(self._step, self._step - 1)

    def redo(self) -> bool:
        """Go one step further, and to the volume that was looked at then; see `undo`."""
        step = self._place + 1
        following = range(step + 1, len(self._moments))
        looks = takewhile(lambda place: not self._moments[place].name, following)
        return self._go(step, max((step, *looks)))

    def _go(self, step: int, place: int) -> bool:
        """Go to a place, back over a step or further by it."""
        self.leave()
        before, after = self._moments[self._place], self._moments[place]
        last, this = self._moments[step - 1], self._moments[step]
        self._place = place
        alone = (
            last.source is this.source
            and last.regions != this.regions
            and _within(last) == _within(this)
        )
        if alone:
            moment = replace(before, name=after.name, regions=after.regions)
            self._moments[self._place] = moment
        return alone

    def moment_of(self, source: Opened) -> Moment[Opened, Part] | None:
        """Return the oldest moment with this input, if there is one."""
        found = (moment for moment in self._moments if moment.source is source)
        return next(found, None)

    # --- steps ---

    @property
    def then(self) -> tuple[RunSettings, ...]:
        current = self.current
        pipeline = current.pipeline if current is not None else None
        return pipeline.then if pipeline is not None else ()

    def followed(self, request: Request) -> Request:
        """Return `request` with the steps after it; `InvalidParameter` where one cannot follow."""
        if not self.then:
            return request
        request = replace(request, then=self.then)
        return replace(request, done=self.outputs.done(request))

    def steps_to_end(
        self, request: Request, *, unestimated: bool = False
    ) -> tuple[RunSettings, ...]:
        """Return all steps that are on, with known numbers fixed unless `unestimated`."""
        moment: Moment[Any, Any] | None = self.current
        assert moment is not None
        later: tuple[RunSettings, ...] = moment.pipeline.after if moment.pipeline else ()
        steps = [request.step.fixed, *(each.step for each in later)]
        walked: list[Result] = list(self.outputs.walk(request.source, steps))
        known: list[Request] = list(moment.steps)
        known += [request, *(result.request for result in walked[1:])]
        found: list[RunSettings] = []
        for each in known:
            step = each.step.unestimated if unestimated else each.step.fixed
            found.append(RunSettings(step, each.options))
        return (*found, *later[max(0, len(walked) - 1) :])

    def leave(self) -> None:
        """Store the current settings in a moment without a result: they were meant for it."""
        current = self.current
        if current is not None and current.result is None:
            self._moments[self._place] = replace(
                current, settings=self.settings_now() or current.settings
            )

    def _trim(self) -> None:
        """Forget the oldest moments, then the last ones to redo, until the rest is small."""
        while len(self._moments) > MOST_MOMENTS or (
            len(self._moments) > 1 and self.bytes > MOST_BYTES
        ):
            if self._place > 0:
                del self._moments[0]
                self._place -= 1
            else:
                del self._moments[-1]

    @property
    def sizes(self) -> dict[int, int]:
        kept: list[Source | Volume] = []
        for moment in self._moments:
            kept += moment.kept()
        return sizes_of(kept)

    @property
    def bytes(self) -> int:
        return sum(self.sizes.values())


def _within(moment: Moment[Any, Any]) -> object:
    return moment.settings.step.within if moment.settings is not None else None


def _same(first: RunSettings | None, second: RunSettings) -> bool:
    """Return whether settings are the same but for numbers that are estimated."""
    if first is None:
        return False
    return replace(first, step=first.step.unestimated) == replace(
        second, step=second.step.unestimated
    )
