"""The steps of one input, to be applied to another that is opened."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from kernelscope.base.errors import AppError
from kernelscope.base.text import enumerated
from kernelscope.engine.request import Follower, Request
from kernelscope.engine.step import Step
from kernelscope.gui.model.pipeline import Pipeline, PipelineStep
from kernelscope.gui.model.run_settings import RunSettings
from kernelscope.images.source import Source
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
