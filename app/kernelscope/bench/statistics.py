"""Statistics of times: medians and their spread, speed-ups, rates, the roofline.

`ratio` states the confidence of a ratio of two medians by order statistics. The method assumes
nothing about the distribution of times, only that repeats are independent and identically
distributed: the k-th smallest and the k-th largest of n repeats enclose the true median with the
probability that a fair coin thrown n times shows heads at least k and at most n - k times (David
and Nagaraja, Order Statistics, 3rd edition, 2003, section 7.1). The intervals of both medians give
one for the ratio, which holds if both hold: their error probabilities add up (Bonferroni). 95 %
needs 7 repeats of each; 3 repeats give no more than 50 %. The interval does not cover errors common
to all repeats of a run, such as a lower clock rate, nor those of scaling from a part of the data.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kernelscope import filters
from kernelscope.base.text import significant
from kernelscope.bench.rows import Row

BASELINE = "CPU serial"  # the default baseline: plain loops on one thread

_WHISKER = 1.5
"""A time further than this many interquartile ranges from the quartiles is an outlier."""


@dataclass(frozen=True)
class Summary:
    # The second, the first and the third quartile, interpolated.
    median: float
    lower: float
    upper: float
    least: float
    most: float
    outliers: int
    """Number of values further than 1.5 interquartile ranges from the quartiles; they are included
    in all other statistics."""

    @property
    def spread(self) -> float:
        """The interquartile range as a share of the median."""
        return (self.upper - self.lower) / self.median if self.median else 0.0


def summarise(values: Sequence[float]) -> Summary:
    if len(values) > 1:
        lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
    else:
        lower = median = upper = values[0]
    reach = _WHISKER * (upper - lower)
    outliers = sum(not lower - reach <= value <= upper + reach for value in values)
    return Summary(median, lower, upper, min(values), max(values), outliers)


def megapixels_per_second(row: Row) -> float:
    """Return millions of pixels or voxels per second of computing."""
    return row.pixels / 1e6 / summarise(row.seconds).median


def short(value: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits, never as a power of ten."""
    return f"{value:.{digits}g}" if value < 10**digits - 0.5 else f"{value:,.0f}"


@dataclass(frozen=True)
class SpeedUp:
    factor: float
    scaled: bool  # at least one of the two was timed on a part of the data, and the parts differ

    def describe(self) -> str:
        return f"{'≈ ' if self.scaled else ''}{short(self.factor)}"

    @property
    def figure(self) -> str:
        """``3.40×``, or ``≈ 3.40×``: with its zeros, as others stand beside or below it."""
        return f"{'≈ ' if self.scaled else ''}{significant(self.factor)}×"


def speed_up(row: Row, baseline: Row, waiting: bool = True) -> SpeedUp | None:
    """Compare two rows of the same subject that have times.

    `waiting`: compare the end-to-end times (`Row.waits`), or else computing alone. Returns None if
    end-to-end times are wanted and one of the rows has none (`Row.is_whole`).
    """
    if row == baseline:  # exactly 1, also if only a part was timed
        return SpeedUp(1.0, scaled=False)
    if waiting and not (row.is_whole and baseline.is_whole):
        return None
    mine, other = (full_time(each, waiting) for each in (row, baseline))
    return SpeedUp(other / mine, row.is_part or baseline.is_part)


def full_time(row: Row, waiting: bool = False) -> float:
    """Return the median for all of the data, scaled by the work if a part was timed."""
    return summarise(row.waits if waiting else row.seconds).median * _work(row)


def _work(row: Row) -> float:
    """Return the ratio of the work on all of the data to that on the timed part."""
    if not row.is_part:
        return 1.0
    spec = filters.get(row.filter)
    work = 1.0
    for asked, timed in zip(row.asked, row.shape, strict=True):
        work *= asked / timed
    return work**2 if spec.whole(row.values(spec)) else work


SURE = 0.95  # confidence of intervals if there are enough repeats


@dataclass(frozen=True)
class Interval:
    low: float
    high: float
    confidence: float  # probability, 0 to 1, that it contains the true value

    def describe(self) -> str:
        return f"{short(self.low)} to {short(self.high)}, {_percent(self.confidence)} sure"


def _percent(share: float) -> str:
    """Return a share as a percentage, rounded down so that it never claims too much."""
    return f"{math.floor(100 * share + 1e-9)} %"


def median_interval(values: Sequence[float], confidence: float = SURE) -> Interval:
    """Return the narrowest interval of order statistics with at least this confidence.

    With too few values for that, it is the whole range, with the confidence that it has.
    """
    ordered = sorted(values)
    count = len(ordered)
    missed, below = 0.0, 0.0
    found = 0
    for place in range(count // 2):
        below += math.comb(count, place) / 2**count
        if place and 1 - 2 * below < confidence:
            break
        found, missed = place, 2 * below
    if count == 1:
        missed = 1.0
    return Interval(ordered[found], ordered[count - 1 - found], 1 - missed)


@dataclass(frozen=True)
class Ratio:
    value: float  # ratio of the medians
    interval: Interval
    scaled: bool = False  # at least one of the two was timed on a part of the data

    def over(self, other: Ratio) -> Ratio:
        """Return this ratio divided by another one, of other rows."""
        return Ratio(
            self.value / other.value,
            Interval(
                self.interval.low / other.interval.high,
                self.interval.high / other.interval.low,
                _both(self.interval, other.interval),
            ),
            self.scaled or other.scaled,
        )


def _both(first: Interval, second: Interval) -> float:
    """Return the least probability that both intervals hold (Bonferroni)."""
    return max(0.0, first.confidence + second.confidence - 1)


def ratio(first: Row, second: Row, waiting: bool = False) -> Ratio:
    """Return the time of `first` divided by that of `second`, for all of the data.

    `waiting`: compare the end-to-end times (`Row.waits`), or else computing alone.
    """
    found = ratio_of_times(
        first.waits if waiting else first.seconds,
        second.waits if waiting else second.seconds,
        _work(first) / _work(second),
    )
    return replace(found, scaled=first.is_part or second.is_part)


def ratio_of_times(first: Sequence[float], second: Sequence[float], scale: float = 1.0) -> Ratio:
    """Return `scale` times the ratio of the medians of two series of repeats."""
    each_sure = (1 + SURE) / 2
    mine, other = (median_interval(values, each_sure) for values in (first, second))
    return Ratio(
        scale * summarise(first).median / summarise(second).median,
        Interval(scale * mine.low / other.high, scale * mine.high / other.low, _both(mine, other)),
    )


def find_baseline(rows: Sequence[Row], row: Row, series: str = BASELINE) -> Row | None:
    """Return the row by `series` for the subject of `row`, if there is one with times.

    If rows of several machines are shown together, it is one of the same machine; if several runs
    are, the last one before `row`, which is that of the same run.
    """
    places = [
        place
        for place, other in enumerate(rows)
        if (other.runner, other.machine) == (series, row.machine)
        and other.seconds
        and other.subject == row.subject
    ]
    if not places:
        return None
    own = next((place for place, other in enumerate(rows) if other is row), 0)
    return rows[max((place for place in places if place <= own), default=places[0])]


@dataclass(frozen=True)
class RooflinePoint:
    row: Row
    intensity: float  # operations for each byte of memory traffic, both by the plan of the launches
    rate: float  # operations per second that were reached


def roofline(rows: Iterable[Row]) -> list[RooflinePoint]:
    """Return the points of the rows whose plans state their work (Williams et al. 2009)."""
    points = []
    for row in rows:
        if row.seconds and row.operations and row.bytes:
            intensity = row.operations / row.bytes
            rate = row.operations / summarise(row.seconds).median
            points.append(RooflinePoint(row, intensity, rate))
    return points
