"""The parts of a chart, as plain data: points, series, and what a plot is about."""

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
class Choice:
    """Which rows a plot is about.

    Attributes
    ----------
    label, size : str or None
        Of the rows, see `Row`; None for any.
    """

    label: str | None = None
    size: str | None = None

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.label or "All filters", self.size)))

    def has(self, row: Row) -> bool:
        """Return whether the plot is about `row`."""
        return self.label in (None, row.label) and self.size in (None, row.size)


@dataclass(frozen=True)
class Point:
    """A value with its spread.

    Attributes
    ----------
    x, y : float
        Of bars, x is the number of the group.
    low, high : float
        Quartiles, or the range that an author reports.
    repeats : tuple of float
        Every single value, outliers too.
    text : str
        The value as it is written next to a bar.
    inner : float or None
        Of a bar of a whole run: how much of it is computing, the lower part; the upper part are
        transfers and the rest of the run. None if these are not distinguished.
    """

    x: float
    y: float
    low: float
    high: float
    repeats: tuple[float, ...] = ()
    text: str = ""
    inner: float | None = None


@dataclass(frozen=True)
class Series:
    """Points of one colour.

    Attributes
    ----------
    style : int
        Which of the styles: series keep theirs from plot to plot. An author's figures have that
        of the level of ours that does the same.
    theirs : bool
        The figures of an author, not measured here.
    line : bool
        Of charts without bars: a curve without symbols, such as a roof.
    """

    name: str
    points: tuple[Point, ...]
    style: int
    theirs: bool = False
    line: bool = False


@dataclass(frozen=True)
class Chart:
    """What is drawn.

    Attributes
    ----------
    groups : tuple of str
        Names below groups of bars; empty for curves.
    ticks : tuple of (float, str)
        Marks on the x axis of curves; empty for numbers.
    log : bool
        Whether the axes are logarithmic; of bars only y is.
    foot : float
        Value at the foot of bars on a logarithmic axis.
    note : str
        Further remarks, such as whose figures are shown; may be empty.
    stacked : bool
        Whether bars stand on each other.
    joined : bool
        Whether lines join the points of a series.
    """

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    groups: tuple[str, ...] = ()
    ticks: tuple[tuple[float, str], ...] = ()
    log: bool = True
    foot: float = 1.0
    note: str = ""
    stacked: bool = False
    joined: bool = True
