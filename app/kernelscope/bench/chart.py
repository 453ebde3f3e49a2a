"""The parts of a chart, as plain data: points, series and groups."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kernelscope.bench.rows import Row


class Plot(StrEnum):
    """The kinds of plots, as the window calls them."""

    SPEED_UP = "Speed-up"
    BARS = "Time by level"
    TIME = "Time against size"
    RATE = "Megapixels per second"
    STAGES = "Upload, kernel, download"
    ROOFLINE = "Roofline"


@dataclass(frozen=True)
class Selection:
    """The rows that a plot shows."""

    # Those of the rows, see `Row`; None for any.
    label: str | None = None
    size: str | None = None

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.label or "All filters", self.size)))

    def has(self, row: Row) -> bool:
        return self.label in (None, row.label) and self.size in (None, row.size)


@dataclass(frozen=True)
class Point:
    """A value with its spread."""

    # For bars, x is the number of the group.
    x: float
    y: float
    # Quartiles, or the range that an author published.
    low: float
    high: float
    repeats: tuple[float, ...] = ()
    """Every single value, including outliers."""
    text: str = ""
    """The value as it is written next to a bar."""
    inner: float | None = None
    """For the bar of a whole run: the computing, drawn as the lower part of the bar; the upper part
    is transfers and the rest of the run. None if the two are not distinguished."""


@dataclass(frozen=True)
class Series:
    """Points of one colour."""

    name: str
    points: tuple[Point, ...]
    style: int
    """Number of the style: a series has the same style in every plot. Published figures have the
    style of our level that does the same."""
    theirs: bool = False
    """Published by an author, not measured here."""
    line: bool = False
    """In charts without bars: a curve without symbols, such as a roof."""
    level: str = ""
    """Id of the level whose colour it has, if it is the only series of that level."""


@dataclass(frozen=True)
class Chart:
    """A drawing: axes, labels and series.

    `ticks`: marks on the x axis of curves; empty for numbers.
    """

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    groups: tuple[str, ...] = ()
    """Names below groups of bars; empty for curves."""
    ticks: tuple[tuple[float, str], ...] = ()
    log: bool = True
    """Whether the axes are logarithmic; in bar charts only the y axis is."""
    foot: float = 1.0
    """Value at the foot of the bars on a logarithmic axis."""
    note: str = ""
    """Further remarks, such as the origin of the published figures; may be empty."""
    stacked: bool = False
    """Whether bars are stacked."""
    joined: bool = True
    """Whether lines join the points of a series."""
