"""The levels of a filter by their counted traffic, and the time that a card needs for it at least.

A `Rung` holds the counts of a level, or the reason why it was not counted. `MemoryLadder` adds a
card: predictions, recorded times where the same work was measured on that card, and the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kernelscope.bench.recorded import Figure
from kernelscope.engine.request import Request
from kernelscope.gui.model.figures import brief_duration
from kernelscope.images.image import Image
from kernelscope.spec.levels import Level
from kernelscope.traffic.cards import Card
from kernelscope.traffic.roofline import FAR, Part, Prediction, predict
from kernelscope.traffic.table import figures
from kernelscope.traffic.trace import Counts

SIDES = (512, 1024, 4096)
"""Of square pictures that are offered next to the open one."""

SHORT = 20e-6
"""Seconds below which starting a launch, 2 to 4 µs on an H100, is a good part of its time."""


class Rung(NamedTuple):
    """A level whose traffic was counted.

    Attributes
    ----------
    level : Level
    counts : sequence of Counts
        Of each launch; empty if it was not counted.
    refusal : str
        Why it was not.
    """

    level: Level
    counts: Sequence[Counts] = ()
    refusal: str = ""


@dataclass(frozen=True)
class Step:
    """A rung with its times.

    Attributes
    ----------
    rung : Rung
    prediction : Prediction, optional
    figure : Figure, optional
        The recorded time of the same work on this card.
    """

    rung: Rung
    prediction: Prediction | None
    figure: Figure | None

    @property
    def ratio(self) -> float | None:
        """The recorded time over the predicted one; None without one of them."""
        if self.prediction is None or self.figure is None:
            return None
        return self.figure.seconds / self.prediction.seconds

    @property
    def is_far(self) -> bool:
        """Whether prediction and recorded time differ by more than a factor of 1.5."""
        return self.ratio is not None and not 1 / FAR <= self.ratio <= FAR

    def text(self) -> str:
        """Return the times in words: ``at least 0.17 ms (loads and stores)``."""
        if self.prediction is None:
            return self.rung.refusal
        text = f"at least {brief_duration(self.prediction.seconds)}, {self.prediction.limit}"
        if self.figure is not None:
            text += f"; recorded {brief_duration(self.figure.seconds)}, {self.ratio:.2g} times that"
        return text

    def reason(self) -> str:
        """Return why the recorded time is so far off, where that is known; else empty."""
        if not self.is_far or self.figure is None or self.prediction is None:
            return ""
        if self.figure.seconds < SHORT:
            return "so short a launch is mostly its start."
        if self.prediction.limit is Part.MEMORY:
            return "data may move more than once, or too few loads be under way at a time."
        return "the least time leaves out instructions for addresses, borders and comparisons."


class MemoryLadder:
    """The levels on a card.

    Parameters
    ----------
    rungs : sequence of Rung
    card : Card
    recorded : mapping of str to Figure
        Recorded times of the same work by the id of the level, on any card.
    """

    def __init__(
        self, rungs: Sequence[Rung], card: Card, recorded: Mapping[str, Figure] | None = None
    ) -> None:
        self.card = card
        self.steps = tuple(self._step(each, recorded or {}) for each in rungs)

    def _step(self, rung: Rung, recorded: Mapping[str, Figure]) -> Step:
        prediction = predict(rung.counts, self.card) if rung.counts else None
        figure = recorded.get(rung.level.id)
        if figure is not None and figure.card != self.card.name:
            figure = None
        return Step(rung, prediction, figure)

    @cached_property
    def table(self) -> tuple[tuple[str, ...], ...]:
        """Rows of texts; the first cell of each is a title, the only one of a heading.

        The first row has the levels. Times follow, then the traffic for each pixel.
        """
        counted = [each for each in self.steps if each.prediction is not None]
        if not counted:
            return ()
        rows = [("", *(each.rung.level.name for each in counted))]
        rows.append((f"TIME ON {self.card.name}",))
        rows.append((LEAST, *(_least(each) for each in counted)))
        for part in Part:
            cells = [_bound(each, part) for each in counted]
            if any(cell != NONE for cell in cells):
                rows.append((f"    {part}", *cells))
        if any(each.figure is not None for each in counted):
            rows.append(("recorded", *(_recorded(each) for each in counted)))
            rows.append(("recorded / least", *(_ratio(each) for each in counted)))
        rows.append(("TRAFFIC OF A PIXEL OF THE OUTPUT",))
        found = {each.rung.level.name: each.rung.counts for each in counted}
        rows += [(each.title, *each.texts()) for each in figures(found)]
        return tuple(rows)

    def reasons(self) -> tuple[str, ...]:
        """Return a sentence for each reason why recorded times are far from the prediction."""
        found: dict[str, list[str]] = {}
        for each in self.steps:
            if each.is_far:
                found.setdefault(each.reason(), []).append(
                    f"{each.rung.level.name} {each.ratio:.2g} times"
                )
        return tuple(f"{', '.join(levels)}: {reason}" for reason, levels in found.items())


NONE, LEAST = "–", "least"


def _least(step: Step) -> str:
    assert step.prediction is not None
    return brief_duration(step.prediction.seconds)


def _bound(step: Step, part: Part) -> str:
    assert step.prediction is not None
    seconds = step.prediction.bounds.get(part)
    return NONE if seconds is None else brief_duration(seconds)


def _recorded(step: Step) -> str:
    return NONE if step.figure is None else brief_duration(step.figure.seconds)


def _ratio(step: Step) -> str:
    if step.ratio is None:
        return NONE
    return f"{step.ratio:.2f}{' !' if step.is_far else ''}"


def with_side(request: Request, side: int | None) -> Request:
    """Return the same work on a square picture that repeats the open one; None keeps it."""
    source = request.source
    if side is None or not isinstance(source, Image):
        return request
    height, width = source.pixels.shape[:2]
    repeats = (-(-side // height), -(-side // width)) + (1,) * (source.pixels.ndim - 2)
    pixels = np.tile(source.pixels, repeats)[:side, :side]
    picture = Image.from_array(np.ascontiguousarray(pixels), f"{source.title}, repeated")
    return Request(picture, replace(request.step, within=None), request.options)
