"""The steps to the output as cards: which are on, in which order, and which one the form edits.

    open picture --> [noise] --> [NLM: the form edits it] --> [off: sharpen] --> [median] --> output
                     before      present                                         then

A pipeline is frozen: each change returns another one, which the history keeps with the picture.
The engine's `Memo` keeps the output of each step, so that nothing is computed twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kernelscope.base.errors import AppError
from kernelscope.base.text import enumerated
from kernelscope.engine.options import DEFAULT_OPTIONS, RunOptions
from kernelscope.engine.request import Follower, Request
from kernelscope.engine.step import Step
from kernelscope.gui.model.run_settings import RunSettings
from kernelscope.images.source import Source
from kernelscope.schema.chips import Chip
from kernelscope.schema.samples import Kind


class KeptSteps(NamedTuple):
    """The cards that can be applied, of which the form edits the first, and its settings.

    `lost` names each of the others, with the reason.
    """

    pipeline: Pipeline
    form: RunSettings
    lost: tuple[tuple[str, str], ...] = ()

    def describe(self) -> str:
        """Return how many steps are applied, and why others are not."""
        names = enumerated([card.step.filter.name for card in self.pipeline.cards if card.on])
        lost = (f"Not applied: {name}. {why}" for name, why in self.lost)
        return "  ".join((f"Its steps: {names}.", *lost))


def kept_steps(pipeline: Pipeline, source: Source, axis: int) -> KeptSteps | None:
    """Return the steps of `pipeline` that can be applied to `source`; None for none.

    `axis`: across which a filter for pictures takes the slices of volumes.
    """
    cards: list[PipelineStep] = []
    lost = []
    for card in pipeline.cards:
        card = replace(card, step=_fitted(card, source, axis))
        try:
            _check(source, [*(each for each in cards if each.on and card.on), card])
        except AppError as error:
            name = card.step.filter.name
            lost.append((name, error.message.removeprefix(f"{name}, a later step: ")))
        else:
            cards.append(card)
    place = next((place for place, card in enumerate(cards) if card.on), None)
    if place is None:
        return None
    first = cards[place]
    form = RunSettings.of_open(first.step, first.options)
    return KeptSteps(Pipeline(tuple(cards), place), form, tuple(lost))


def _fitted(card: PipelineStep, source: Source, axis: int) -> Step:
    """Return the step of a card for data of another kind: volumes are grey, and have an axis."""
    if source.kind is Kind.PICTURE:
        return replace(card.step, axis=0)
    return replace(card.step, axis=axis if card.step.filter.kind is Kind.PICTURE else 0, grey=False)


def _check(source: Source, cards: list[PipelineStep]) -> None:
    """Raise `AppError` if a step cannot work on the output of the one before."""
    first, *others = cards
    then = tuple(Follower(card.step, card.options) for card in others)
    Request(source, first.step.with_numbers(), first.options, then=then)


_keys = itertools.count(1)


@dataclass(frozen=True)
class PipelineStep:
    """A step of a pipeline."""

    step: Step  # its numbers may be `ESTIMATE`, for those that each run estimates
    options: RunOptions = DEFAULT_OPTIONS
    on: bool = True  # off, it takes no part in the output
    key: int = field(default_factory=lambda: next(_keys))
    """Stays the same while the card is moved or edited."""

    @property
    def name(self) -> str:
        """The filter in short."""
        return self.step.filter.short or self.step.filter.name

    def chips(self) -> tuple[Chip, ...]:
        """Return the settings that differ from their defaults."""
        spec, step = self.step.filter, self.step
        chips = [chip for chip in spec.chips(step.with_numbers().parameters) if not chip.usual]
        chips = [chip for chip in chips if chip.name not in step.estimates]
        chips += [
            Chip(name, f"{spec.parameter(name).label.lower()} estimated", False)
            for name in step.estimates
        ]
        if step.border is not spec.borders[0]:
            chips.append(Chip("border", f"{step.border} border", False))
        if step.grey:
            chips.append(Chip("grey", "in grey", False))
        if step.within is not None:
            chips.append(Chip("within", f"only {step.within.describe()}", False))
        return tuple(chips)

    @property
    def caption(self) -> str:
        """The settings that differ from the defaults: ``5×5, wrap border``; empty for none."""
        return ", ".join(chip.text for chip in self.chips())


def card_of(request: Request) -> PipelineStep:
    """Return the card of a request that the form makes: automatic numbers are left open."""
    return PipelineStep(request.open_step, request.options)


@dataclass(frozen=True)
class Pipeline:
    """The cards, and the place of the one that the form edits, which is on."""

    cards: tuple[PipelineStep, ...]
    place: int
    alone: bool = False  # show the output of this card instead of that of the last one

    def __post_init__(self) -> None:
        assert self.cards[self.place].on, "the form edits a step that is on"

    @classmethod
    def of(cls, requests: Iterable[Request], present: PipelineStep) -> Pipeline:
        """Return the steps that led to an input, and `present` after them."""
        cards = (*(PipelineStep(each.step, each.options) for each in requests), present)
        return cls(cards, len(cards) - 1)

    # --- contents ---

    @property
    def present(self) -> PipelineStep:
        """The card that the form edits."""
        return self.cards[self.place]

    @property
    def before(self) -> tuple[PipelineStep, ...]:
        """The cards that are on before the one that the form edits."""
        return tuple(card for card in self.cards[: self.place] if card.on)

    @property
    def after(self) -> tuple[PipelineStep, ...]:
        """The cards that are on after the one that the form edits."""
        return tuple(card for card in self.cards[self.place + 1 :] if card.on)

    @property
    def then(self) -> tuple[Follower, ...]:
        """The further steps to the output that is shown."""
        return () if self.alone else self.all_then

    @property
    def all_then(self) -> tuple[Follower, ...]:
        """The further steps to the output of the last card."""
        return tuple(Follower(card.step, card.options) for card in self.after)

    @property
    def off(self) -> int:
        """How many cards are off."""
        return sum(not card.on for card in self.cards)

    def place_of(self, key: int) -> int:
        """Return the place of a card."""
        return next(place for place, card in enumerate(self.cards) if card.key == key)

    # --- changes ---

    def reopened(self, requests: Sequence[Request]) -> Pipeline:
        """Return the same with the numbers left open that `requests`, its first steps, estimated.

        They were estimated for another input.
        """
        steps = {
            id(card): each.open_step for card, each in zip(self.before, requests, strict=False)
        }
        cards = (replace(card, step=steps.get(id(card), card.step)) for card in self.cards)
        return replace(self, cards=tuple(cards))

    def edited(self, card: PipelineStep) -> Pipeline:
        """Return the same with the settings of `card` for the card that the form edits."""
        if (card.step, card.options) == (self.present.step, self.present.options):
            return self
        present = replace(self.present, step=card.step, options=card.options)
        return self._with(self.place, present)

    def switched(self, place: int) -> Pipeline:
        """Return the same with a card on or off.

        If the form edits that card, it goes on with the next one that is on, or the last before.
        The only card that is on stays on.
        """
        card = self.cards[place]
        if card.on and not self.can_switch(place):
            return self
        changed = replace(card, on=not card.on)
        cards = (*self.cards[:place], changed, *self.cards[place + 1 :])
        return Pipeline(cards, _nearest(cards, self.place), self.alone)._tidy()

    def can_switch(self, place: int) -> bool:
        """Return whether a card can be switched: one that is on is needed."""
        return not self.cards[place].on or sum(card.on for card in self.cards) > 1

    def moved(self, place: int, to: int) -> Pipeline:
        """Return the same with the card at `place` at another place."""
        cards = list(self.cards)
        present = cards[self.place].key
        cards.insert(to, cards.pop(place))
        new = next(number for number, card in enumerate(cards) if card.key == present)
        return Pipeline(tuple(cards), new, self.alone)._tidy()

    def removed(self, place: int) -> Pipeline:
        """Return the same without a card; the only one that is on stays."""
        if not self.can_switch(place):
            return self
        cards = (*self.cards[:place], *self.cards[place + 1 :])
        wanted = self.place - (place < self.place)
        return Pipeline(cards, _nearest(cards, wanted), self.alone)._tidy()

    def duplicated(self, place: int) -> Pipeline:
        """Return the same with a copy of a card after it, which the form then edits if it is on."""
        copy = replace(self.cards[place], key=next(_keys))
        cards = (*self.cards[: place + 1], copy, *self.cards[place + 1 :])
        present = place + 1 if copy.on else self.place + (self.place > place)
        return Pipeline(cards, present, self.alone)._tidy()

    def selected(self, place: int) -> Pipeline:
        """Return the same with another card to edit; one that is off cannot be edited."""
        return replace(self, place=place)._tidy() if self.cards[place].on else self

    def shown_alone(self, alone: bool) -> Pipeline:
        """Return the same that shows the output of the card that the form edits, or of the end."""
        return replace(self, alone=alone)._tidy()

    def followed(self) -> Pipeline:
        """Return the same with a new card on the output that is shown, which the form edits.

        It has the settings of the present card until the user chooses others.
        """
        place = self.place + 1 if self.alone else len(self.cards)
        copy = replace(self.present, key=next(_keys))
        return Pipeline((*self.cards[:place], copy, *self.cards[place:]), place)

    def ended(self) -> Pipeline:
        """Return the same without the cards after the one that the form edits."""
        return Pipeline(self.cards[: self.place + 1], self.place)

    def made(self, then: tuple[Follower, ...]) -> Pipeline:
        """Return the same with these further steps, if it has others: an earlier run is shown."""
        if then == self.then:
            return self
        cards = (*self.cards[: self.place + 1], *(PipelineStep(*follower) for follower in then))
        return Pipeline(cards, self.place)

    def _with(self, place: int, card: PipelineStep) -> Pipeline:
        return replace(self, cards=(*self.cards[:place], card, *self.cards[place + 1 :]))

    def _tidy(self) -> Pipeline:
        """Return the same that shows the end, if that is the card that the form edits."""
        return self if self.after or not self.alone else replace(self, alone=False)


def _nearest(cards: Sequence[PipelineStep], place: int) -> int:
    """Return the place of the next card from `place` that is on, or of the last one before."""
    later = (number for number in range(place, len(cards)) if cards[number].on)
    earlier = (number for number in range(min(place, len(cards)) - 1, -1, -1) if cards[number].on)
    return next(itertools.chain(later, earlier))
