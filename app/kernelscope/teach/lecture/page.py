"""A page of the lecture as data: its text, its controls, and the function that shows it.

Its subject is the picture of the user, as grey bytes, or a sample.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.emulator.tracing import Tracer
from kernelscope.base.paths import RESOURCES
from kernelscope.bench.figures import PublishedFigure
from kernelscope.engine.request import Request
from kernelscope.files import SAMPLES, read_image
from kernelscope.images.image import Image
from kernelscope.images.source import Source
from kernelscope.schema.devices import Device
from kernelscope.schema.parameters import Parameter
from kernelscope.schema.samples import Kind
from kernelscope.teach.handbook.svg import Drawing
from kernelscope.traffic.totals import figures

_PLACES = 7  # places along each axis among which that of a detail is chosen


@dataclass(frozen=True)
class MeasuredTime:
    """The time of a run of this session on a GPU."""

    filter_id: str
    what: str  # the filter with its settings, and the level
    time: str  # with its unit


@dataclass(frozen=True, eq=False)
class LectureSubject:
    title: str
    pixels: NDArray[np.uint8]  # uint8, shape (height, width)
    measured: tuple[MeasuredTime, ...] = ()

    @classmethod
    def of(cls, source: Source | None, measured: tuple[MeasuredTime, ...] = ()) -> LectureSubject:
        """Return the picture that is open as grey bytes; of volumes, the slice in the middle."""
        if source is None:
            source = read_image(SAMPLES[0].path)
        if source.kind is Kind.VOLUME:
            middle = source.shape[0] // 2
            title = f"{source.title}, slice {middle + 1}"
            return cls(title, _stretched(source.planes[middle]), measured)
        return cls(source.title, _grey(source.planes), measured)

    @property
    def shape(self) -> tuple[int, int, int]:
        return (*self.pixels.shape, 1)

    @property
    def size(self) -> str:
        """The sides in words: ``512×384``."""
        height, width = self.pixels.shape
        return f"{width}×{height}"

    def part(self, rows: int, columns: int) -> tuple[NDArray[np.uint8], int, int]:
        """Return a detail with its first row and column; smaller where the picture is.

        It is the one with most contrast among some places, so that it is seldom an empty sky.
        """
        height, width = self.pixels.shape
        tops, lefts = (
            np.linspace(0, max(0, side - part), _PLACES + 2, dtype=int)[1:-1]
            for side, part in ((height, rows), (width, columns))
        )
        parts = [
            (self.pixels[top : top + rows, left : left + columns], int(top), int(left))
            for top in tops
            for left in lefts
        ]
        return max(parts, key=lambda each: float(each[0].std()))


def _grey(planes: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the mean of the colours as bytes; an alpha channel is left out."""
    channels = planes.shape[2]
    grey = planes[:, :, : channels - (channels in (2, 4))].mean(axis=2, dtype=np.float64)
    white = {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}.get(planes.dtype, 1)
    return _bytes(grey * (255 / white))


def _stretched(plane: NDArray[Any]) -> NDArray[np.uint8]:
    """Return a slice of a volume as bytes: the smallest value is black, the largest white."""
    grey = plane.mean(axis=2, dtype=np.float64)
    low, high = float(grey.min()), float(grey.max())
    return _bytes((grey - low) * (255 / (high - low) if high > low else 0))


def _bytes(grey: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(np.clip(np.rint(grey), 0, 255).astype(np.uint8))


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
    note: str = ""  # more about the origin: the card and the day of a measurement; may be empty

    @property
    def source(self) -> str:
        return f"{self.origin}: {self.note}" if self.note else str(self.origin)


by_plan, by_formula = NumberOrigin.PLAN.number, NumberOrigin.FORMULA.number
of_picture, of_card = NumberOrigin.PICTURE.number, NumberOrigin.CARD.number
as_recorded = NumberOrigin.RECORDED.number


@dataclass(frozen=True)
class Demonstration:
    drawing: Drawing
    facts: tuple[NamedNumber, ...]


@dataclass(frozen=True)
class Count:
    filter_id: str
    levels: tuple[str, ...]  # ids of levels of the GPU
    parameters: Mapping[str, Any]
    titles: tuple[str, ...]  # figures to show, by their titles in `kernelscope.traffic.totals`
    block: tuple[int, int] | None = None


@dataclass(frozen=True)
class LecturePage:
    id: str  # the name of its text in ``resources/lecture``
    controls: tuple[Parameter, ...]  # the values to try, one or two
    show: Callable[[LectureSubject, Mapping[str, Any]], Demonstration]
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

    def described(self, values: Mapping[str, Any]) -> str:
        """Return the values of the controls in words."""
        texts = ((each.label, each.describe(values[each.name])) for each in self.controls)
        return " · ".join(
            f"{label} {text.removeprefix(label.lower()).lstrip()}" for label, text in texts
        )

    def facts(self, shown: Demonstration, subject: LectureSubject) -> tuple[NamedNumber, ...]:
        here = (
            NamedNumber(run.what, run.time, NumberOrigin.HERE)
            for run in subject.measured
            if run.filter_id in self.filters
        )
        return *shown.facts, *here


_SIDE = 128  # pixels of the part that the kernels run on: they are counted in about a second


def count(wanted: Count, subject: LectureSubject) -> tuple[NamedNumber, ...]:
    """Run kernels on a detail of the picture; return their accesses for each pixel.

    Raises `AppError` if there is no compiler for the emulated GPU.
    """
    part, *_ = subject.part(_SIDE, _SIDE)
    offered = {each.id: each for each in filters.get(wanted.filter_id).levels(Device.GPU)}
    source = Image.from_array(part.copy(), subject.title)
    tracer = Tracer()
    try:
        made = {}
        for level_id in wanted.levels:
            level = offered[level_id]
            request = Request.create(
                source, wanted.filter_id, wanted.parameters, level=level_id, block=wanted.block
            )
            made[level.name] = tracer.count(request, level)
    finally:
        tracer.close()
    return tuple(
        NamedNumber(f"{name}: {figure.title} a pixel", text, NumberOrigin.EMULATED)
        for figure in figures(made)
        if figure.title in wanted.titles
        for name, value, text in zip(made, figure.values, figure.texts(), strict=True)
        if value is not None
    )
