"""The steps to the output: which are on, in which order, and which one the form edits.

    open picture --> [noise] --> [NLM: the form edits it] --> [off: sharpen] --> [median] --> output
                     before      present                                         then

A pipeline is frozen: each change returns another one, which the history keeps with the picture.
The engine's `Memo` keeps the output of each step, so that nothing is computed twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kernelscope.base.errors import AppError
from kernelscope.base.text import enumerated
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.step import Step
from kernelscope.images.source import Source
from kernelscope.schema.filter import Disturbance
from kernelscope.schema.samples import Kind

NOISE = "Noise"  # the category of filters that add noise, on which denoising can be tested


class KeptSteps(NamedTuple):
    """The steps that can be applied, the form's first; `lost` has the reasons of the others."""

    pipeline: Pipeline
    lost: tuple[tuple[str, str], ...] = ()

    def describe(self) -> str:
        """Return how many steps are applied, and why others are not."""
        names = enumerated([each.step.filter.name for each in self.pipeline.steps if each.on])
        lost = (f"Not applied: {name}. {why}" for name, why in self.lost)
        return "  ".join((f"Its steps: {names}.", *lost))


def kept_steps(pipeline: Pipeline, source: Source, axis: int) -> KeptSteps | None:
    """Return the steps that `source` can take; `axis`: across slices for a picture's filter."""
    steps: list[RunSettings] = []
    lost = []
    for settings in pipeline.steps:
        settings = replace(settings, step=fitted(settings.step, source, axis))
        try:  # whether it can work on the output of the one before
            first, *then = *(each for each in steps if each.on and settings.on), settings
            Request(source, first.step, first.options, then=tuple(then))
        except AppError as error:
            name = settings.step.filter.name
            lost.append((name, error.message.removeprefix(f"{name}, a later step: ")))
        else:
            steps.append(settings)
    place = next((place for place, settings in enumerate(steps) if settings.on), None)
    if place is None:
        return None
    return KeptSteps(Pipeline(tuple(steps), place), tuple(lost))


def fitted(step: Step, source: Source, axis: int) -> Step:
    """Return a step for data of another kind: volumes are grey, and have an axis."""
    if source.kind is Kind.PICTURE:
        return replace(step, axis=0)
    return replace(step, axis=axis if step.filter.kind is Kind.PICTURE else 0, grey=False)


@dataclass(frozen=True)
class Pipeline:
    """The steps, and the place of the one that the form edits, which is on."""

    steps: tuple[RunSettings, ...]
    place: int
    alone: bool = False  # show the output of this step instead of that of the last one

    def __post_init__(self) -> None:
        assert self.steps[self.place].on, "the form edits a step that is on"

    @classmethod
    def of(cls, requests: Iterable[Request], present: RunSettings) -> Pipeline:
        """Return the steps that led to an input, and `present` after them."""
        before = (RunSettings(each.step.fixed, each.options) for each in requests)
        steps = (*before, present)
        return cls(steps, len(steps) - 1)

    # --- contents ---

    @property
    def present(self) -> RunSettings:
        return self.steps[self.place]

    @property
    def before(self) -> tuple[RunSettings, ...]:
        return tuple(each for each in self.steps[: self.place] if each.on)

    @property
    def after(self) -> tuple[RunSettings, ...]:
        return tuple(each for each in self.steps[self.place + 1 :] if each.on)

    @property
    def then(self) -> tuple[RunSettings, ...]:
        return () if self.alone else self.after

    @property
    def noisy(self) -> int:
        """The place of a new denoiser: behind added noise and hot pixels, at most the form's."""
        for place, each in enumerate(self.steps[: self.place]):
            added = each.step.filter.category == NOISE
            if each.on and not added and _removed_by(each) is not Disturbance.HOT_PIXELS:
                return place
        return self.place

    def against(self, disturbance: Disturbance) -> int | None:
        """Return the place of a step that removes it, that of the form rather than another."""
        places = sorted(range(len(self.steps)), key=lambda place: place != self.place)
        removing = (place for place in places if _removed_by(self.steps[place]) is disturbance)
        return next(removing, None)

    def place_of(self, key: int) -> int:
        return next(place for place, settings in enumerate(self.steps) if settings.key == key)

    # --- changes ---

    def reopened(self, requests: Sequence[Request]) -> Pipeline:
        """Return the same with numbers open that `requests` estimated for another input."""
        opened = {
            before.key: each.step.unestimated
            for before, each in zip(self.before, requests, strict=False)
        }
        steps = (replace(each, step=opened.get(each.key, each.step)) for each in self.steps)
        return replace(self, steps=tuple(steps))

    def edited(self, settings: RunSettings) -> Pipeline:
        if (settings.step, settings.options) == (self.present.step, self.present.options):
            return self
        present = replace(self.present, step=settings.step, options=settings.options)
        steps = (*self.steps[: self.place], present, *self.steps[self.place + 1 :])
        return replace(self, steps=steps)

    def switched(self, place: int) -> Pipeline:
        """Return the same with a step on or off, except the only one that is on.

        The form leaves a step that is off for the next one that is on, or the last before.
        """
        settings = self.steps[place]
        if settings.on and not self.can_switch(place):
            return self
        changed = replace(settings, on=not settings.on)
        steps = (*self.steps[:place], changed, *self.steps[place + 1 :])
        return Pipeline(steps, _nearest(steps, self.place), self.alone)._tidy()

    def can_switch(self, place: int) -> bool:
        return not self.steps[place].on or sum(each.on for each in self.steps) > 1

    def moved(self, place: int, to: int) -> Pipeline:
        steps = list(self.steps)
        present = steps[self.place].key
        steps.insert(to, steps.pop(place))
        new = next(number for number, settings in enumerate(steps) if settings.key == present)
        return Pipeline(tuple(steps), new, self.alone)._tidy()

    def removed(self, place: int) -> Pipeline:
        if not self.can_switch(place):
            return self
        steps = (*self.steps[:place], *self.steps[place + 1 :])
        wanted = self.place - (place < self.place)
        return Pipeline(steps, _nearest(steps, wanted), self.alone)._tidy()

    def duplicated(self, place: int) -> Pipeline:
        """Return the same with a copy of a step after it, which the form then edits if it is on."""
        copy = renewed(self.steps[place])
        steps = (*self.steps[: place + 1], copy, *self.steps[place + 1 :])
        present = place + 1 if copy.on else self.place + (self.place > place)
        return Pipeline(steps, present, self.alone)._tidy()

    def selected(self, place: int) -> Pipeline:
        return replace(self, place=place)._tidy() if self.steps[place].on else self

    def shown_alone(self, alone: bool) -> Pipeline:
        """Return the same that shows the output of the step that the form edits, or of the end."""
        return replace(self, alone=alone)._tidy()

    def followed(self) -> Pipeline:
        """Return the same with a new step at the end, as the present one, which the form edits."""
        place = self.place + 1 if self.alone else len(self.steps)
        copy = renewed(self.present)
        return Pipeline((*self.steps[:place], copy, *self.steps[place:]), place)

    def without_copy(self) -> Pipeline:
        """Return the same without the step of the form if it is still as that before."""
        before = self.steps[self.place - 1] if self.place else None
        copied = before and before.on and before.step.fixed == self.present.step.fixed
        return self.removed(self.place) if copied else self

    def inserted(self, place: int, settings: RunSettings) -> Pipeline:
        """Return the same with another step at a place, which the form edits."""
        return Pipeline((*self.steps[:place], settings, *self.steps[place:]), place)

    def preceded(self, settings: RunSettings) -> Pipeline:
        """Return the same with another step before that of the form."""
        steps = (*self.steps[: self.place], settings, *self.steps[self.place :])
        return replace(self, steps=steps, place=self.place + 1)

    def ended(self) -> Pipeline:
        return Pipeline(self.steps[: self.place + 1], self.place)

    def made(self, then: tuple[RunSettings, ...]) -> Pipeline:
        """Return the same with these further steps, if it has others: an earlier run is shown."""
        if then == self.then:
            return self
        return Pipeline((*self.steps[: self.place + 1], *then), self.place)

    def _tidy(self) -> Pipeline:
        return self if self.after or not self.alone else replace(self, alone=False)


def _removed_by(settings: RunSettings) -> Disturbance | None:
    remedy = settings.step.filter.remedy
    return remedy.disturbance if remedy is not None else None


def renewed(settings: RunSettings) -> RunSettings:
    return RunSettings(settings.step, settings.options, settings.on)


def _nearest(steps: Sequence[RunSettings], place: int) -> int:
    """Return the place of the next step from `place` that is on, or of the last one before."""
    later = (number for number in range(place, len(steps)) if steps[number].on)
    earlier = (number for number in range(min(place, len(steps)) - 1, -1, -1) if steps[number].on)
    return next(itertools.chain(later, earlier))
