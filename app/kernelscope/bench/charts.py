"""From rows to charts: the plots of the bench as numbers, without Qt."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kernelscope.base.text import significant
from kernelscope.bench import figures
from kernelscope.bench.figures import SOURCES, PublishedFigure
from kernelscope.bench.rows import Row
from kernelscope.bench.statistics import (
    BASELINE,
    RooflinePoint,
    find_baseline,
    full_time,
    roofline,
    speed_up,
    summarise,
)
from kernelscope.schema.devices import Device
from kernelscope.schema.levels import USUAL_LEVELS, colour


class Plot(StrEnum):
    SPEED_UP = "Speed-up"
    BARS = "Time by level"
    TIME = "Time against size"
    RATE = "Megapixels per second"
    STAGES = "Upload, kernel, download"
    ROOFLINE = "Roofline"


@dataclass(frozen=True)
class Selection:
    # Those of the rows, see `Row`; None for any.
    title: str | None = None
    size: str | None = None

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.title or "All filters", self.size)))

    def has(self, row: Row) -> bool:
        return self.title in (None, row.title) and self.size in (None, row.size)


@dataclass(frozen=True)
class Point:
    # For bars, x is the number of the group.
    x: float
    y: float
    # Quartiles, or the range that an author published.
    low: float
    high: float
    repeats: tuple[float, ...] = ()  # every single value, including outliers
    text: str = ""  # the value as it is written next to a bar
    inner: float | None = None
    """For the bar of a whole run: the computing, drawn as the lower part of the bar; the upper part
    is transfers and the rest of the run. None if the two are not distinguished."""


@dataclass(frozen=True)
class Series:
    name: str
    points: tuple[Point, ...]
    style: int
    """Number of the style: a series has the same style in every plot. Published figures have the
    style of our level that does the same."""
    theirs: bool = False  # published by an author, not measured here
    line: bool = False  # in charts without bars: a curve without symbols, such as a roof
    level: str = ""  # id of the level whose colour it has, if it is the only series of that level


@dataclass(frozen=True)
class Chart:
    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    groups: tuple[str, ...] = ()  # names beside groups of bars; empty for curves
    ticks: tuple[tuple[float, str], ...] = ()  # marks on the x axis of curves; empty for numbers
    log: bool = True  # whether the axes are logarithmic; of bars, that of values
    foot: float = 1.0  # value at the foot of the bars on a logarithmic axis
    note: str = ""  # further remarks, such as the origin of the published figures; may be empty
    stacked: bool = False  # whether bars are stacked
    joined: bool = True  # whether lines join the points of a series


__all__ = ["Chart", "Plot", "Point", "Selection", "Series", "all_whole", "chart", "choices"]


def choices(plot: Plot, rows: Iterable[Row]) -> list[Selection]:
    timed = [row for row in rows if row.seconds]
    if plot is Plot.ROOFLINE:
        points = [point.row for point in roofline(timed)]
        titles = [Selection(title) for title in _distinct(row.title for row in points)]
        return [Selection(), *titles] if len(titles) > 1 else titles
    if plot is Plot.STAGES:
        carried = [row for row in timed if _is_carried(row)]
        return list(dict.fromkeys(Selection(row.title, row.size) for row in carried))
    titles = [Selection(title) for title in _distinct(row.title for row in timed)]
    if plot in (Plot.TIME, Plot.RATE):
        return titles
    sizes = _distinct(row.size for row in timed)
    together = [Selection(None, size) for size in sizes] if len(titles) > 1 else []
    return together + titles


def all_whole(rows: Iterable[Row]) -> bool:
    """Return whether all rows with times can be compared by whole runs."""
    return all(row.is_whole for row in rows if row.seconds)


def chart(
    plot: Plot,
    choice: Selection,
    rows: Sequence[Row],
    *,
    baseline: str = BASELINE,
    waiting: bool = True,
) -> Chart:
    """Return the chart of one kind about some of the rows.

    `baseline`: the series that speed-ups are relative to. `waiting`: show the end-to-end time
    (`Row.waits`), or else computing alone.
    """
    timed = (row for row in rows if row.seconds and choice.has(row))
    # The last one is used of several rows with the same subject, as in merged runs.
    found = list({(row.series, row.title, row.subject): row for row in timed}.values())
    whole = waiting and plot not in (Plot.STAGES, Plot.ROOFLINE)
    shown = [row for row in found if row.is_whole or not whole]
    names = _in_order(row for row in rows if row.seconds)
    drawn = _Maker(choice, shown, names, waiting, baseline).chart(plot)
    if plot is not Plot.STAGES:
        drawn = replace(drawn, series=_coloured(drawn.series, names, rows))
    authors = {series.name.partition(":")[0] for series in drawn.series if series.theirs}
    notes = [drawn.note, *_whose(authors), *_doubts(authors, shown, plot)]
    notes += _not_drawn(plot, shown, baseline, waiting)
    notes += _without_transfers(row for row in found if row not in shown)
    return replace(drawn, note="\n".join(note[0].upper() + note[1:] for note in notes if note))


def _coloured(
    series: Iterable[Series], names: Sequence[str], rows: Iterable[Row]
) -> tuple[Series, ...]:
    """Return series with their levels; those that share the colour of a level have none."""
    levels = {row.series: "" if row.library else row.level for row in rows if row.seconds}
    uses = Counter(colour(level) for level in levels.values() if level)

    def level_of(each: Series) -> str:
        level = levels[names[each.style]] if each.style < len(names) else ""
        return level if level and uses[colour(level)] == 1 else ""

    return tuple(replace(each, level=level_of(each)) for each in series)


def _whose(authors: Container[str]) -> Iterator[str]:
    """Yield the hardware of the authors whose figures a plot shows."""
    for source in SOURCES.values():
        if source.author in authors:
            yield f"Published: {source.describe()}"


def _doubts(authors: Container[str], rows: Sequence[Row], plot: Plot) -> Iterator[str]:
    """Yield the remarks on the published figures that a plot shows."""
    if plot is Plot.SPEED_UP:  # only times are doubtful
        return
    said = (
        f"{figure.origin.author}, {figure.variant}: {figure.amount()} [{figure.remark}]."
        for row in rows
        for figure in figures.beside(row)
        if figure.remark and figure.origin.author in authors
    )
    yield from dict.fromkeys(said)


def _not_drawn(plot: Plot, rows: Sequence[Row], baseline: str, waiting: bool) -> Iterator[str]:
    """Yield the reasons why a plot of one kind leaves out published figures about these rows."""
    if plot in (Plot.TIME, Plot.RATE, Plot.BARS):
        yield from figures.absent(rows, figures.TIME, waiting=waiting)
    elif plot is Plot.SPEED_UP:
        if baseline == BASELINE:
            yield from figures.absent(rows, figures.SPEED_UP, waiting=waiting)
        elif any(f.quantity == figures.SPEED_UP for row in rows for f in figures.beside(row)):
            has_serial = any(row.runner == BASELINE for row in rows)
            way_out = f": choose {BASELINE} as baseline" if has_serial else ", which was not timed"
            yield f"Published speed-ups are over serial code{way_out}."


def _without_transfers(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the reason why a plot of whole runs leaves out these rows."""
    names = _distinct(row.name for row in rows)
    if names:
        yield (
            f"Left out, as only their computing was timed: {', '.join(names)}. "
            "Compare them without transfers."
        )


_MOST_LINEAR = 30
"""Ratio of the longest to the shortest bar above which the axis becomes logarithmic."""

_STAGE_ORDER = ("prepare", "upload", "kernel", "launch", "download")


@dataclass(frozen=True)
class _Maker:
    """The charts of some rows, whose series are in the order of `names`."""

    choice: Selection
    rows: Sequence[Row]
    names: Sequence[str]
    waiting: bool
    baseline: str

    def chart(self, plot: Plot) -> Chart:
        match plot:
            case Plot.TIME:
                return self._curves("Time", "ms", lambda row, seconds: 1e3 * seconds)
            case Plot.RATE:
                unit = "megavoxels/s" if self._are_volumes else "megapixels/s"
                return self._curves("Speed", unit, lambda row, s: row.pixels / 1e6 / s)
            case Plot.BARS:
                return self._times()
            case Plot.SPEED_UP:
                return self._speed_ups()
            case Plot.STAGES:
                return self._stages()
            case Plot.ROOFLINE:
                return self._roofline()

    @property
    def _are_volumes(self) -> bool:
        return bool(self.rows) and len(self.rows[0].shape) == 3

    def _curves(self, quantity: str, unit: str, value: Callable[[Row, float], float]) -> Chart:
        """Return curves of `value`, computed from the seconds of each row, against its pixels."""

        def point(row: Row) -> Point:
            summary = summarise(self._seconds(row))
            low, high = sorted((value(row, summary.lower), value(row, summary.upper)))
            repeats = tuple(value(row, each) for each in self._seconds(row))
            return Point(row.pixels, value(row, summary.median), low, high, repeats)

        def their_point(row: Row, figure: PublishedFigure) -> Point:
            # The figure was published for all of the data, though ours may be timed on a part.
            whole = replace(row, shape=row.asked)
            low, high = sorted((value(whole, figure.low), value(whole, figure.high)))
            return Point(whole.pixels, (low + high) / 2, low, high)

        # Of several rows that were timed on the same part, the one that asked for just that part.
        ordered = sorted(self.rows, key=lambda row: math.prod(row.asked), reverse=True)
        rows = list({(row.series, row.shape): row for row in ordered}.values())
        sizes = {row.pixels: "×".join(map(str, reversed(row.shape))) for row in rows}
        ours, theirs = self._ours(rows, point), self._theirs(rows, figures.TIME, their_point)
        return Chart(
            f"{self.choice}: {self._about(quantity)}",
            "Size in voxels" if self._are_volumes else "Size in pixels",
            f"{quantity} in {unit}",
            (*ours, *theirs),
            ticks=tuple(sorted(sizes.items())),
        )

    def _times(self) -> Chart:
        groups = _Groups.of(self.choice, self.rows)

        def point(row: Row) -> Point:
            whole = 1e3 * full_time(row, self.waiting)
            summary = summarise(self._seconds(row))
            scale = whole / summary.median
            return Point(
                *(groups.number(row), whole, scale * summary.lower, scale * summary.upper),
                tuple(scale * each for each in self._seconds(row)),
                f"{'≈ ' if row.is_part else ''}{significant(whole)}",
                inner=1e3 * full_time(row) if self.waiting else None,
            )

        theirs = self._their_bars(self.rows, groups, figures.TIME, 1e3, "")
        series = _side_by_side(self._ours(self.rows, point), theirs)
        points = [point for each in series for point in each.points]
        times = [point.y for point in points] or [1.0]
        inner = [point.inner for point in points if point.inner]
        return Chart(
            f"{groups.about}: {self._about('Time')}",
            *("", "Time in ms", series, groups.names),
            log=max(times) > _MOST_LINEAR * min(times),
            foot=_foot([*times, *inner]),
            note=_scaled(self.rows),
        )

    def _speed_ups(self) -> Chart:
        found = [(row, find_baseline(self.rows, row, self.baseline)) for row in self.rows]
        bases = {id(row): base for row, base in found if base is not None}
        kept = [row for row in self.rows if id(row) in bases]
        groups = _Groups.of(self.choice, kept)

        def point(row: Row) -> Point:
            gain = speed_up(row, bases[id(row)], self.waiting)
            assert gain is not None, "only whole runs are drawn with transfers"
            summary = summarise(self._seconds(row))
            scale = gain.factor * summary.median
            return Point(
                *(groups.number(row), gain.factor, scale / summary.upper, scale / summary.lower),
                tuple(scale / each for each in self._seconds(row)),
                gain.figure,
            )

        published = kept if self.baseline == BASELINE else []
        # Bars of each machine have a base of their own.
        base = next((replace(row, machine="").name for row in bases.values()), self.baseline)
        theirs = self._their_bars(published, groups, figures.SPEED_UP, 1, "×")
        series = _side_by_side(self._ours(kept, point), theirs)
        factors = [point.y for each in series for point in each.points] or [1.0]
        return Chart(
            f"{groups.about}: {self._about('Speed-up')}",
            *("", f"Times as fast as {base}", series, groups.names),
            log=max(factors) > _MOST_LINEAR * min(factors),
            foot=_foot(factors),
            note=_scaled([*kept, *bases.values()]),
        )

    def _stages(self) -> Chart:
        carried = [row for row in self.rows if _is_carried(row)]
        found = _distinct(name for row in carried for name in row.stages)
        order = _distinct([*(name for name in _STAGE_ORDER if name in found), *found])
        series = []
        for style, name in enumerate(order):
            points = []
            for number, row in enumerate(carried):
                if name in row.stages:
                    each = summarise([1e3 * seconds for seconds in row.stages[name]])
                    text = significant(each.median)
                    points.append(Point(number, each.median, each.lower, each.upper, text=text))
            series.append(Series(name.capitalize(), tuple(points), style))
        return Chart(
            f"{self.choice}: where the time goes on the GPU",
            *("", "Time in ms", tuple(series), tuple(row.level_name for row in carried)),
            log=False,
            stacked=True,
        )

    def _roofline(self) -> Chart:
        points = roofline(self.rows)
        found = {id(point.row): point for point in points}

        def point(row: Row) -> Point:
            here = found[id(row)]
            rates = [row.operations / each / 1e9 for each in row.seconds if row.operations]
            summary = summarise(rates)
            return Point(
                here.intensity, here.rate / 1e9, summary.lower, summary.upper, tuple(rates)
            )

        series = list(self._ours([each.row for each in points], point))
        copies = [each.row.copy_rate for each in points if each.row.copy_rate]
        peaks = [each.row.peak_rate for each in points if each.row.peak_rate]
        if copies:
            roof = _roof(points, statistics.median(copies), max(peaks, default=math.inf))
            series.append(replace(roof, style=len(self.names)))
        return Chart(
            f"{self.choice}: kernels against the limits of the GPU",
            *("Operations per byte", "Billion operations per second", tuple(series)),
            joined=False,
        )

    def _seconds(self, row: Row) -> Sequence[float]:
        return row.waits if self.waiting else row.seconds

    def _about(self, quantity: str) -> str:
        runs = "whole runs, with transfers" if self.waiting else "computing alone"
        return f"{quantity.lower()} of {runs}"

    def _ours(self, rows: Sequence[Row], point: Callable[[Row], Point]) -> Iterator[Series]:
        for style, name in enumerate(self.names):
            own = [row for row in rows if row.series == name]
            if own:
                points = sorted(map(point, own), key=lambda p: p.x)
                yield Series(own[0].name, tuple(points), style)

    def _theirs(
        self, rows: Iterable[Row], quantity: str, point: Callable[[Row, PublishedFigure], Point]
    ) -> Iterator[Series]:
        """Yield the published figures of the same quantity, in the style of our matching level."""
        found: dict[tuple[str, str], dict[float, Point]] = {}
        for row in rows:
            for figure in figures.comparable(row, quantity, waiting=self.waiting):
                made = point(row, figure)
                name = f"{figure.origin.author}: {figure.variant}"
                found.setdefault((row.series, name), {})[made.x] = made
        for (series, name), points in found.items():
            ordered = tuple(points[x] for x in sorted(points))
            yield Series(name, ordered, self.names.index(series), theirs=True)

    def _their_bars(
        self, rows: Iterable[Row], groups: _Groups, quantity: str, scale: float, sign: str
    ) -> Iterator[Series]:
        def point(row: Row, figure: PublishedFigure) -> Point:
            low, high = scale * figure.low, scale * figure.high
            middle = (low + high) / 2
            return Point(groups.number(row), middle, low, high, text=f"{significant(middle)}{sign}")

        return self._theirs(rows, quantity, point)


def _foot(values: Iterable[float]) -> float:
    """Return the power of ten below all values, where bars on a logarithmic axis begin."""
    return 10.0 ** (math.ceil(math.log10(min(values))) - 1)


def _roof(points: Sequence[RooflinePoint], copy_rate: float, peak_rate: float) -> Series:
    known_ridge = [] if math.isinf(peak_rate) else [peak_rate / copy_rate]
    known = [*(each.intensity for each in points), *known_ridge]
    least, most = min(known) / 2, 2 * max(known)
    corners = sorted({least, *known_ridge, most})
    heights = (min(copy_rate * x, peak_rate) / 1e9 for x in corners)
    peak = "" if math.isinf(peak_rate) else f", peak {peak_rate / 1e12:.3g} Tops/s"
    return Series(
        f"Roof: copy {copy_rate / 1e9:,.0f} GB/s{peak}",
        tuple(Point(x, y, y, y) for x, y in zip(corners, heights, strict=True)),
        style=0,
        line=True,
    )


def _side_by_side(ours: Iterable[Series], theirs: Iterable[Series]) -> tuple[Series, ...]:
    """Return series in the order of their styles, each published one after its match."""
    return tuple(sorted((*ours, *theirs), key=lambda series: (series.style, series.theirs)))


def _scaled(rows: Iterable[Row]) -> str:
    """Return a note that lists the timed parts; empty if all data were timed."""
    parts = dict.fromkeys(f"{row.name} on {row.timed_size}" for row in rows if row.is_part)
    return f"≈ scaled by the work from a timed part: {', '.join(parts)}." if parts else ""


@dataclass(frozen=True)
class _Groups:
    about: str  # their common property, for the title
    # The common property of the rows in a group, and its difference from other groups.
    keys: tuple[str, ...]
    names: tuple[str, ...]
    sizes: bool

    @classmethod
    def of(cls, choice: Selection, rows: Iterable[Row]) -> _Groups:
        """Group by size if a filter is chosen, else by filter."""
        if choice.title is not None:
            keys = tuple(_distinct(row.size for row in rows))
            return cls(str(choice), keys, keys, sizes=True)
        keys = tuple(_distinct(row.title for row in rows))
        parts = [key.split(", ") for key in keys]
        places = itertools.takewhile(lambda words: len(set(words)) == 1, zip(*parts, strict=False))
        alike = len(list(places)) if len(keys) > 1 else 0
        names = tuple(", ".join(each[alike:]) or key for each, key in zip(parts, keys, strict=True))
        common = ", ".join([*parts[0][:alike], *filter(None, [choice.size])]) if alike else ""
        return cls(common or str(choice), keys, names, sizes=False)

    def number(self, row: Row) -> int:
        return self.keys.index(row.size if self.sizes else row.title)


def _is_carried(row: Row) -> bool:
    return row.device == Device.GPU and bool(row.stages)


def _in_order(rows: Iterable[Row]) -> list[str]:
    """Return the series of rows, those of levels in the order of the ladder.

    Others, such as libraries and levels of a filter's own, stay behind the one before them.
    """
    order = [level.id for levels in USUAL_LEVELS.values() for level in levels]
    places: dict[str, int] = {}
    last = -1
    for row in rows:
        if row.series not in places:
            last = order.index(row.level) if row.level in order and not row.library else last
            places[row.series] = last
    return sorted(places, key=places.__getitem__)


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
