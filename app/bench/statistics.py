"""What the times amount to: medians and their spread, speed-ups, rates, the roofline."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app import filters
from app.bench.rows import Row

BASELINE = "CPU serial"
"""The series that others are compared with by default: plain loops on one thread."""

_WHISKER = 1.5
"""A time further than this many interquartile ranges from the quartiles is an outlier."""


@dataclass(frozen=True)
class Summary:
    """A median and its spread, in the unit of the values.

    Attributes
    ----------
    median, lower, upper : float
        The second, the first and the third quartile, interpolated.
    least, most : float
    outliers : int
        How many values are further than 1.5 interquartile ranges from the quartiles; they
        are counted in everything else.
    """

    median: float
    lower: float
    upper: float
    least: float
    most: float
    outliers: int

    @property
    def spread(self) -> float:
        """The interquartile range as a share of the median."""
        return (self.upper - self.lower) / self.median if self.median else 0.0


def summarise(values: Sequence[float]) -> Summary:
    """Return what at least one value amounts to."""
    if len(values) > 1:
        lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
    else:
        lower = median = upper = values[0]
    reach = _WHISKER * (upper - lower)
    outliers = sum(not lower - reach <= value <= upper + reach for value in values)
    return Summary(median, lower, upper, min(values), max(values), outliers)


def megapixels_per_second(row: Row, waiting: bool = False) -> float:
    """Return millions of pixels or voxels a second of computing, or of `Row.waits`."""
    return row.pixels / 1e6 / summarise(row.waits if waiting else row.seconds).median


def short(value: float, digits: int = 3) -> str:
    """Return a number with so many digits, or all before the point: no powers of ten."""
    return f"{value:.{digits}g}" if value < 10**digits - 0.5 else f"{value:,.0f}"


@dataclass(frozen=True)
class SpeedUp:
    """How many times less time a row takes than the baseline.

    Attributes
    ----------
    factor : float
    scaled : bool
        At least one of the two was timed on a part of the data.
    """

    factor: float
    scaled: bool


def speed_up(row: Row, baseline: Row, waiting: bool = True) -> SpeedUp:
    """Compare two rows of the same subject that have times.

    Parameters
    ----------
    waiting : bool
        Compare what the user waits for (`Row.waits`), or else the computing alone.
    """
    mine, other = (full_time(each, waiting) for each in (row, baseline))
    return SpeedUp(other / mine, row.shape != row.asked or baseline.shape != baseline.asked)


def full_time(row: Row, waiting: bool = False) -> float:
    """Return the median for all of the data, scaled by the work where a part was timed."""
    spec = filters.get(row.filter)
    values = {name: spec.parameter(name).parse(text) for name, text in row.parameters.items()}
    work = 1.0
    for asked, timed in zip(row.asked, row.shape, strict=True):
        work *= asked / timed
    if spec.whole(values):
        work **= 2
    return summarise(row.waits if waiting else row.seconds).median * work


def find_baseline(rows: Iterable[Row], row: Row, series: str = BASELINE) -> Row | None:
    """Return the row of `series` for the subject of `row`, if there is one with times."""
    for other in rows:
        if other.series == series and other.seconds and other.subject == row.subject:
            return other
    return None


@dataclass(frozen=True)
class RooflinePoint:
    """A row of the GPU in a roofline plot.

    Attributes
    ----------
    intensity : float
        Operations for each byte of memory traffic, both by the plan of the launches.
    rate : float
        Operations per second that were reached.
    roof : float or None
        Operations per second that the card allows at this intensity: the lower of the
        copy rate times the intensity and the peak rate. None where neither is known.
    """

    row: Row
    intensity: float
    rate: float
    roof: float | None


def roofline(rows: Iterable[Row]) -> list[RooflinePoint]:
    """Return the points of those rows whose plans tell their work (Williams et al. 2009)."""
    points = []
    for row in rows:
        if row.seconds and row.operations and row.bytes:
            intensity = row.operations / row.bytes
            roofs = [row.copy_rate * intensity] if row.copy_rate else []
            roofs += [row.peak_rate] if row.peak_rate else []
            rate = row.operations / summarise(row.seconds).median
            points.append(RooflinePoint(row, intensity, rate, min(roofs, default=None)))
    return points
