"""A page of the lecture as data: its text, its controls, and the function that shows it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kernelscope.base.paths import RESOURCES
from kernelscope.bench.figures import PublishedFigure
from kernelscope.schema.parameters import Parameter
from kernelscope.teach.handbook.svg import Drawing
from kernelscope.teach.lecture.subject import LectureSubject


class NumberOrigin(StrEnum):
    PLAN = "from the launch plan"
    FORMULA = "closed form"
    PICTURE = "computed from the picture"
    CARD = "data sheet of the card"
    RECORDED = "recorded"
    EMULATED = "counted on the emulated GPU"
    HERE = "measured in this session"

    def number(self, name: str, value: str, note: str = "") -> NamedNumber:
        return NamedNumber(name, value, self, note)


@dataclass(frozen=True)
class NamedNumber:
    name: str
    value: str
    origin: NumberOrigin
    note: str = ""
    """More about the origin: the card and the day of a measurement; may be empty."""

    @property
    def source(self) -> str:
        """The origin in words."""
        return f"{self.origin}: {self.note}" if self.note else str(self.origin)


by_plan, by_formula = NumberOrigin.PLAN.number, NumberOrigin.FORMULA.number
of_picture, of_card = NumberOrigin.PICTURE.number, NumberOrigin.CARD.number
as_recorded = NumberOrigin.RECORDED.number


@dataclass(frozen=True)
class Shown:
    drawing: Drawing
    facts: tuple[NamedNumber, ...]


@dataclass(frozen=True)
class Count:
    filter_id: str
    levels: tuple[str, ...]
    """Ids of levels of the GPU."""
    parameters: Mapping[str, Any]
    titles: tuple[str, ...]
    """Figures to show, by their titles in `kernelscope.traffic.table`."""
    block: tuple[int, int] | None = None


@dataclass(frozen=True)
class LecturePage:
    id: str
    """The name of its module, and of its text in ``resources/lecture``."""
    controls: tuple[Parameter, ...]
    """The values to try, one or two."""
    show: Callable[[LectureSubject, Mapping[str, Any]], Shown]
    """Maps the picture and the values of the controls to the picture and numbers of the page. It
    may run a filter, which may have to be compiled."""
    figures: Callable[[], tuple[PublishedFigure, ...]] = lambda: ()
    """Returns the sources' figures that belong here."""
    filters: tuple[str, ...] = ()
    """Filters whose runs in this session on a GPU are shown with the numbers."""
    counted: Callable[[Mapping[str, Any]], Count] | None = None
    """Maps the values of the controls to kernels that the emulated GPU can count."""

    @functools.cached_property
    def _paragraphs(self) -> list[str]:
        text = (RESOURCES / "lecture" / f"{self.id}.md").read_text(encoding="utf-8")
        return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]

    @property
    def title(self) -> str:
        return self._paragraphs[0].removeprefix("# ")

    @property
    def text(self) -> str:
        """One or two paragraphs, at most 120 words."""
        return "\n\n".join(self._paragraphs[1:])

    def defaults(self) -> dict[str, Any]:
        return {control.name: control.default for control in self.controls}

    def facts(self, shown: Shown, subject: LectureSubject) -> tuple[NamedNumber, ...]:
        """Return the numbers of the page, and the times of this session."""
        here = (
            NamedNumber(run.what, run.time, NumberOrigin.HERE)
            for run in subject.measured
            if run.filter_id in self.filters
        )
        return *shown.facts, *here
