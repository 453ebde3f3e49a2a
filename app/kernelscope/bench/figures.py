"""The figures published by the authors of the four sources, from ``source-figures.csv``.

Only like quantities are compared: `comparable` yields the figures that may be drawn next to a
quantity of a row, in the colour of the row's series; `absent` yields the reasons why others are
not. Tables have room for words in their cells, so they quote every figure with its scope
(`beside`).
"""

from __future__ import annotations

import csv
import functools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from kernelscope.base.paths import RESOURCES
from kernelscope.bench.plan import CPU, GPU
from kernelscope.bench.rows import Row
from kernelscope.bench.statistics import short


@dataclass(frozen=True)
class FigureSource:
    """An author, and the hardware of the measurements."""

    author: str
    hardware: str

    def describe(self) -> str:
        return f"{self.author}, measured on {self.hardware}."


# F: times by the system's clock, from picture to picture (chapter 6). M does not say whether its
# times include the copies of the picture. N: speed-ups are those of the total time (3.1); the scope
# of its times on a GT 640M is not stated. V: runs of the author's program, whose kernels keep tiles
# with their aprons in shared memory; tables 4-5 and 4-6 also quote other authors, who unroll loops
# or work in steps, as none of our levels does.
SOURCES = {
    "F": FigureSource(
        "Korčuška 2013", "Core 2 Duo E8400 + NVIDIA 210; Core 2 Duo T9300 + Quadro NVS 140M"
    ),
    "M": FigureSource("parallel computing report no. 5", "Xeon Gold 6154 + RTX 2080 Ti"),
    "N": FigureSource("Kasparidis, NLM report", "GTX 480; GT 640M"),
    "V": FigureSource("Salari 2019", "GT 540M; Tesla S2050; GTX 660 Ti"),
}


def titled(name: str) -> str:
    """Return the title of a plan: its source by author instead of by letter.

    ``Korčuška 2013: tables 1-3`` for ``F tables 1-3``; other names stay as they are.
    """
    letter, _, rest = name.partition(" ")
    if letter not in SOURCES:
        return name
    author = SOURCES[letter].author
    return f"{author[0].upper()}{author[1:]}: {rest}"


class Scope(StrEnum):
    """The part of a run that a time or a speed-up covers."""

    RUN = "whole run"
    KERNEL = "kernel"
    NOT_STATED = "kernel or whole run not stated"


TIME, SPEED_UP, PSNR, SCALING = "time", "speed-up", "psnr", "scaling"
"""Quantities: seconds; speed-up over serial CPU code; decibels; speed-up of two GPUs over one."""


@dataclass(frozen=True, kw_only=True)
class PublishedFigure:
    """One published figure, and the rows of ours that it can be compared with."""

    source: str  # ``F``, ``M``, ``N`` or ``V``, see `SOURCES`
    variant: str  # in the author's words
    quantity: str
    """`TIME` (in seconds), `SPEED_UP`, `PSNR` (of a photograph that is not ours) or `SCALING`."""
    scope: Scope
    """The part of a run that it covers; irrelevant on the CPU, where there are no transfers."""
    # The published range; both are equal if it was one number.
    low: float
    high: float
    printed: tuple[float, float]
    """The same as printed; a printed range may begin with its larger end."""
    # As in `Row`; only those parameters that the figure is about.
    filter: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    mask_side: int = 0  # side of the custom mask, whose weights the author does not give; else 0
    channels: int = 1
    shape: tuple[int, ...]  # (height, width) or (depth, height, width)
    # Our device and level that do the same; the level is empty if none of ours does.
    device: str
    level: str
    gpus: int = 1  # how many GPUs shared the work
    average: bool = False  # averaged over several rows of a table, so that it matches no single row
    remark: str = ""
    """A contradiction within the source itself, or how it was read where the print is doubtful; may
    be empty."""

    @property
    def origin(self) -> FigureSource:
        return SOURCES[self.source]

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    def is_about(self, row: Row) -> bool:
        return (
            not self.average
            and not row.machine  # so that reports of several machines do not repeat it
            and (self.filter, self.channels, self.shape) == (row.filter, row.channels, row.asked)
            and self.parameters.items() <= row.parameters.items()
            and (not self.mask_side or _side(row.parameters["mask"]) == self.mask_side)
        )

    def stands_beside(self, row: Row) -> bool:
        """Return whether it matches a row: same filter, data, device and level."""
        return (
            self.is_about(row)
            and not row.library
            and row.block is None  # the plan's default; no published figure states its block
            and (self.device, self.level, self.gpus) == (row.device, row.level, row.gpus)
        )

    def is_of(self, waiting: bool) -> bool:
        if self.device == CPU and self.quantity == TIME:
            return True
        return self.scope is (Scope.RUN if waiting else Scope.KERNEL)

    def describe(self) -> str:
        about = [self.variant]
        if self.quantity != PSNR and not (self.device == CPU and self.quantity == TIME):
            about.append(str(self.scope))
        text = f"{self.amount()} ({self.origin.author}: {', '.join(about)})"
        return f"{text} [{self.remark}]" if self.remark else text

    def amount(self) -> str:
        (first, last), unit = self.printed, _UNITS[self.quantity]
        if self.quantity == TIME and self.high < 1:
            first, last, unit = 1e3 * first, 1e3 * last, " ms"
        numbers = short(first, 4) if first == last else f"{short(first, 4)} to {short(last, 4)}"
        return f"{numbers}{unit}"


def _side(mask: str) -> int:
    """Return the side of a mask in the form that the command line takes."""
    return mask.count(";") + 1


_UNITS = {TIME: " s", SPEED_UP: "×", PSNR: " dB", SCALING: "×"}

_SECONDS = {"s": 1.0, "ms": 1e-3}


@functools.cache
def all_figures() -> tuple[PublishedFigure, ...]:
    with (RESOURCES / "source-figures.csv").open(encoding="utf-8", newline="") as file:
        found = tuple(map(_figure, csv.DictReader(file)))
    return tuple(replace(figure, remark=_remark(figure, found)) for figure in found)


def beside(row: Row) -> Iterator[PublishedFigure]:
    data = row.filter, row.channels, row.asked
    return (figure for figure in _by_data().get(data, ()) if figure.stands_beside(row))


@functools.cache
def _by_data() -> dict[tuple[str, int, tuple[int, ...]], list[PublishedFigure]]:
    """Return the figures by filter, channels and shape: few rows have any."""
    found: dict[tuple[str, int, tuple[int, ...]], list[PublishedFigure]] = {}
    for figure in all_figures():
        found.setdefault((figure.filter, figure.channels, figure.shape), []).append(figure)
    return found


def comparable(row: Row, quantity: str, *, waiting: bool) -> Iterator[PublishedFigure]:
    """Yield the figures that may be drawn next to a quantity of a row.

    They are of the same quantity and scope, by the same level of the same device, on the same data,
    so that they take the colour of the row's series. `quantity`: `TIME` or `SPEED_UP` (over
    `statistics.BASELINE`). `waiting`: whether whole runs are drawn, or computing alone.
    """
    return (
        figure
        for figure in beside(row)
        if figure.quantity == quantity and figure.is_of(waiting) and row.seconds
    )


def absent(rows: Iterable[Row], quantity: str, *, waiting: bool) -> Iterator[str]:
    """Yield, for each author whose figures `comparable` leaves out, a sentence with the reason."""
    rows = [row for row in rows if row.seconds]
    left: dict[tuple[str, Scope], None] = {}
    for figure in all_figures():
        if (
            figure.quantity == quantity
            and not figure.is_of(waiting)
            and any(map(figure.stands_beside, rows))
        ):
            left.setdefault((figure.source, figure.scope))
    for source, scope in left:
        author = SOURCES[source].author
        if scope is Scope.NOT_STATED:
            yield (
                f"{author} does not state whether GPU times are those of kernels or of whole "
                "runs: these figures appear in tables only."
            )
        elif scope is Scope.RUN:
            yield f"The figures of {author} are times of whole runs: see the plots with transfers."
        else:
            yield f"The figures of {author} are kernel times: see the plots without transfers."


def _remark(figure: PublishedFigure, figures: Sequence[PublishedFigure]) -> str:
    """Return how a time was read, and the figures of its source that contradict it."""
    if figure.source != "V" or figure.quantity != TIME or figure.device != GPU:
        return figure.remark
    said = [figure.remark] if figure.remark else []
    line = operator.attrgetter("source", "filter", "channels", "shape", "parameters")
    alike = [other for other in figures if line(other) == line(figure)]  # of a table's line
    serial = [other for other in alike if other.device == CPU and other.quantity == TIME]
    for gain in alike:
        if gain.quantity == SPEED_UP and gain.variant == figure.variant and serial:
            least, most = serial[0].low / gain.high, serial[0].high / gain.low
            if figure.high < least or figure.low > most:
                implied = f"{short(least, 2)} to {short(most, 2)} s"
                said.append(f"as printed; its speed-up of {gain.amount()} implies {implied}")
    patch = figure.parameters.get("patch_radius", "")
    for other in figures:
        smaller = {**figure.parameters, "patch_radius": str(int(patch) - 1)}
        if (
            (other.variant, other.shape, other.quantity) == (figure.variant, figure.shape, TIME)
            and other.parameters == smaller
            and other.channels == figure.channels
            and other.low > figure.high
        ):
            said.append(f"as printed: less than with d = {int(patch) - 1}")
    return "; ".join(said)


def _figure(line: Mapping[str, str]) -> PublishedFigure:
    first, _, last = line["value"].partition("-")
    unit = _SECONDS.get(line["unit"], 1.0)
    printed = float(first) * unit, float(last or first) * unit
    return PublishedFigure(
        source=line["source"],
        variant=line["variant"],
        quantity=line["quantity"],
        scope=Scope(line["scope"]),
        low=min(printed),
        high=max(printed),
        printed=printed,
        filter=line["filter"],
        parameters=dict(each.split("=") for each in line["parameters"].split()),
        mask_side=int(line["mask_side"] or 0),
        channels=int(line["channels"]),
        shape=tuple(reversed([int(side) for side in line["size"].split("x")])),
        device=line["device"],
        level=line["level"],
        gpus=int(line["gpus"]),
        average=line["average"] == "yes",
        remark=line["reading"],
    )
