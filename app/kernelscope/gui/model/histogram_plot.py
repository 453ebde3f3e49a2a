"""Input and output in one plot of how often values occur, and handles for level, window, gamma.

Heights are counts for bins of one width. Where two histograms have bins of different widths, the
counts of the narrower ones are scaled up, so that curves can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelscope.gui.model.display import GAMMAS, Display, short
from kernelscope.images.judging.pictures import Histogram, histogram

_BINS = 256  # about how many bins a curve has within the axis

_TAIL = 0.001  # share of the samples at either end that does not decide on the axis

_PADDING = 0.02  # room beyond the values at either end of the axis, as a share of it

_FLATTENING = 4
"""How many times higher than all other values a background has to be to leave the scale."""

_HUMP = 0.12  # width of a background at most, as a share of the axis

_VALLEY = 2  # how many times lower the lowest count behind a hump is than the next peak

_APART = 0.02  # distance of the background from the values that are left, as a share of the axis

_GAMMA_STEP = 10**0.02
_GAP = 1e-3  # smallest distance of the handles, as a share of the axis


class HeightScale(StrEnum):
    """How heights grow with counts; the value is the name in the interface."""

    LINEAR = "Linear"
    ROOT = "Square root"
    LOG = "Logarithmic"

    def heights(self, counts: NDArray[np.float64], top: float) -> NDArray[np.float64]:
        """Return heights, `top` as 1; the logarithm of none is drawn as that of half a sample."""
        result: NDArray[np.float64]
        if top <= 0:
            return np.zeros(len(counts))
        match self:
            case HeightScale.LINEAR:
                result = counts / top
            case HeightScale.ROOT:
                result = np.sqrt(counts / top)
            case HeightScale.LOG:
                lowest = min(0.5, top / 2)
                result = np.log(np.maximum(counts, lowest) / lowest) / math.log(top / lowest)
        return result

    def marks(self, top: float) -> tuple[float, ...]:
        """Return counts that the axis names, from the lowest."""
        if top <= 0:
            return ()
        if self is HeightScale.LOG:
            powers = range(math.floor(math.log10(max(top, 1))) + 1)
            every = max(1, round(len(powers) / 3))
            return tuple(10.0**power for power in powers[::every])
        return ticks(0.0, top, 3)


class Handle(StrEnum):
    """A mark that the user moves along the axis; the value is the name in the interface."""

    LOW = "Black level"
    MIDDLE = "Gamma"
    HIGH = "White level"


class ValueAxis(NamedTuple):
    """The values from the left to the right end of the plot, in stored units."""

    low: float
    high: float

    @property
    def span(self) -> float:
        return self.high - self.low

    def share(self, value: float) -> float:
        return (value - self.low) / self.span

    def value(self, share: float) -> float:
        return self.low + share * self.span


@dataclass(frozen=True, eq=False)
class Curve:
    """Counts of one picture or channel: bin i from ``edges[i]`` to ``edges[i + 1]``."""

    picture: str  # “input” or “output”
    channel: str  # empty for all channels together
    counts: NDArray[np.int64]
    edges: NDArray[np.float64]

    @property
    def name(self) -> str:
        return f"{self.picture}, {self.channel}" if self.channel else self.picture

    @property
    def bin_width(self) -> float:
        return float(self.edges[1] - self.edges[0])

    def bin_at(self, value: float) -> tuple[float, float, int]:
        place = int(np.searchsorted(self.edges, value, side="right")) - 1
        place = min(max(place, 0), len(self.counts) - 1)
        return float(self.edges[place]), float(self.edges[place + 1]), int(self.counts[place])

    def within(self, axis: ValueAxis, bins: int = _BINS) -> Curve:
        last = len(self.counts)
        start = min(max(int((axis.low - self.edges[0]) // self.bin_width), 0), last - 1)
        stop = math.ceil((axis.high - self.edges[0]) / self.bin_width)
        stop = min(max(stop, start + 1), last)
        merged = max(1, (stop - start) // bins)
        start -= start % merged
        counts, edges = self.counts[start:stop], self.edges[start : stop + 1]
        starts = np.arange(0, len(counts), merged)
        if len(counts) % merged:  # the last bin would be narrower
            missing = merged - len(counts) % merged
            more = self.counts[stop : stop + missing]
            counts = np.concatenate([counts, more, np.zeros(missing - len(more), np.int64)])
        ends = edges[0] + self.bin_width * merged * np.arange(len(starts) + 1)
        return replace(self, counts=np.add.reduceat(counts, starts), edges=ends)


class FrequentValues(NamedTuple):
    """Values that are so frequent that the scale leaves them out."""

    name: str  # that of the curve
    low: float
    high: float
    share: float  # of all samples of the curve within the axis
    top: float  # the highest of the counts that are left


@dataclass(frozen=True, eq=False)
class HistogramCurves:
    """Curves, and the scale that they are drawn in."""

    axis: ValueAxis
    curves: tuple[Curve, ...]
    scale: HeightScale
    bin_width: float  # the width that heights refer to
    top: float  # the count at the upper end
    backgrounds: tuple[FrequentValues, ...]  # beyond the upper end
    beyond: int  # samples beyond either end of the axis

    @classmethod
    def of(
        cls,
        histograms: Mapping[str, Histogram],
        axis: ValueAxis,
        scale: HeightScale,
        *,
        by_channel: bool = False,
    ) -> HistogramCurves:
        whole = curves_of(histograms, by_channel=by_channel)
        curves = tuple(each.within(axis) for each in whole)
        width = max((each.bin_width for each in curves), default=1.0)
        found, tops = [], [0.0]
        for each in curves:
            factor = width / each.bin_width
            background = None if scale is HeightScale.LOG else background_of(each)
            top = float(each.counts.max()) if background is None else background.top
            if background is not None:
                found.append(background)
            tops.append(top * factor)
        pairs = zip(whole, curves, strict=True)
        beyond = sum(int(every.counts.sum() - shown.counts.sum()) for every, shown in pairs)
        return cls(axis, curves, scale, width, max(tops), tuple(found), beyond)

    def heights(self, curve: Curve) -> NDArray[np.float64]:
        factor = self.bin_width / curve.bin_width
        return self.scale.heights(curve.counts.astype(np.float64) * factor, self.top)

    def note(self) -> str:
        parts = [
            f"{short(each.low)} to {short(each.high)} ({100 * each.share:.0f} % of the "
            f"{each.name}) exceed the scale"
            for each in self.backgrounds
        ]
        if self.beyond:
            samples = "sample is" if self.beyond == 1 else "samples are"
            parts.append(f"{self.beyond:,} {samples} beyond the axis")
        return ". ".join(parts) + "." if parts else ""

    def read(self, value: float) -> str:
        """Return “128 to 129: input 20, output 35”: the counts of the bins of a value."""
        if not self.curves:
            return ""
        counts: dict[str, list[str]] = {}
        for each in self.curves:
            low, high, count = each.bin_at(value)
            counts.setdefault(f"{short(low)} to {short(high)}", []).append(
                f"{each.channel or each.picture} {count:,}"
            )
        return "; ".join(f"{ends}: {', '.join(texts)}" for ends, texts in counts.items())


def fine_histogram(pixels: NDArray[Any]) -> Histogram:
    """Count values in fine bins (16 bits often use a sixteenth of their range); takes a while."""
    if pixels.dtype == np.uint8:
        return Histogram.of(pixels)
    return Histogram(*histogram(pixels, 4096 if pixels.dtype == np.uint16 else 1024))


def curves_of(histograms: Mapping[str, Histogram], *, by_channel: bool) -> tuple[Curve, ...]:
    """Return a curve for each picture, or for each channel of the output, else of the input."""
    if by_channel and histograms:
        picture = "output" if "output" in histograms else "input"
        each = histograms[picture]
        rows = zip(each.channels, each.counts, strict=True)
        return tuple(Curve(picture, channel, counts, each.edges) for channel, counts in rows)
    return tuple(
        Curve(picture, "", each.counts.sum(axis=0), each.edges)
        for picture, each in histograms.items()
    )


def axis_for(histograms: Iterable[Histogram], display: Display | None) -> ValueAxis:
    """Return an axis of the values that occur, but for a few far ones, and of the display."""
    lows, highs = [], []
    for each in histograms:
        counts, edges = each.counts.sum(axis=0), each.edges
        if len(counts) == 256 and edges[-1] == 256:
            lows.append(0.0)
            highs.append(256.0)
            continue
        occupied = np.flatnonzero(counts)
        if not len(occupied):
            continue
        sums = np.cumsum(counts)
        first, last = np.searchsorted(sums, np.array([_TAIL, 1 - _TAIL]) * sums[-1]).tolist()
        room = edges[last + 1] - edges[first]
        lows.append(max(float(edges[occupied[0]]), float(edges[first] - room)))
        highs.append(min(float(edges[occupied[-1] + 1]), float(edges[last + 1] + room)))
    if display is not None:
        lows.append(display.low)
        highs.append(display.high)
    if not lows:
        return ValueAxis(0.0, 1.0)
    low, high = min(lows), max(highs)
    if (low, high) == (0.0, 256.0):
        return ValueAxis(low, high)
    room = _PADDING * ((high - low) or 1.0)
    return ValueAxis(low - room, high + room)


def background_of(curve: Curve) -> FrequentValues | None:
    """Return the lowest values if they would flatten the rest of a curve.

    That is one bin, for instance the zeros around a head, or a narrow hump with a valley behind
    it: the noise there. A dark picture, whose counts fall from its peak on, has no background.
    """
    counts = curve.counts
    occupied = np.flatnonzero(counts)
    if len(occupied) < 3:
        return None
    first, peak = int(occupied[0]), int(counts.argmax())
    apart = max(3, round(_APART * len(counts)))
    widest = max(1, round(_HUMP * len(counts)))
    for last in range(peak, min(first + widest, len(counts) - 1)):
        rest = counts[last + 1 :]
        top, nearest = int(rest.max()), int(rest.argmax())
        if top == 0:
            return None
        alone = last == peak == first
        valley = nearest >= apart and _VALLEY * rest[: nearest + 1].min() <= top
        if _FLATTENING * top <= counts[peak] and (alone or valley):
            share = float(counts[first : last + 1].sum() / counts.sum())
            ends = float(curve.edges[first]), float(curve.edges[last + 1])
            return FrequentValues(curve.name, *ends, share, top)
    return None


# --- handles ---


def place_of(display: Display, handle: Handle) -> float:
    match handle:
        case Handle.LOW:
            return display.low
        case Handle.HIGH:
            return display.high
        case Handle.MIDDLE:
            return display.low + display.width * math.pow(0.5, 1 / display.gamma)


def moved(
    display: Display, handle: Handle, value: float, axis: ValueAxis, *, whole: bool = False
) -> Display:
    """Return the display with a handle at a value, whole if `whole`; handles pass no other."""
    if handle is Handle.MIDDLE:
        share = (value - display.low) / display.width
        limits = [0.5 ** (1 / gamma) for gamma in GAMMAS]
        share = min(max(share, limits[0]), limits[1])
        return with_gamma(display, math.log(0.5) / math.log(share))
    gap = max(_GAP * axis.span, 1.0 if whole else 0.0)
    value = float(round(value)) if whole else value
    if handle is Handle.LOW:
        return display.spanning(min(value, display.high - gap), display.high)
    return display.spanning(display.low, max(value, display.low + gap))


def stepped(
    display: Display, handle: Handle, steps: int, axis: ValueAxis, *, whole: bool = False
) -> Display:
    """Return the display with a handle moved by small steps; to the right if more than 0."""
    if handle is Handle.MIDDLE:
        return with_gamma(display, display.gamma * _GAMMA_STEP**steps)
    step = axis.span / 256
    step = max(1.0, float(round(step))) if whole else step
    return moved(display, handle, place_of(display, handle) + steps * step, axis, whole=whole)


def with_gamma(display: Display, gamma: float) -> Display:
    return replace(display, gamma=float(f"{min(max(gamma, GAMMAS[0]), GAMMAS[1]):.3g}"))


def describe(display: Display, handle: Handle) -> str:
    if handle is Handle.MIDDLE:
        return f"Gamma {display.gamma:.3g}"
    return f"{handle} {short(place_of(display, handle))}"


# --- texts ---


def ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Return round values from `low` to `high`, at most `most` and two."""
    if not high > low:
        return ()
    rough = (high - low) / max(most, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(float(f"{number * step:.12g}") for number in range(first, last + 1))
