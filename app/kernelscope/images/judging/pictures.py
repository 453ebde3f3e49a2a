"""Difference images: the residual of a filter and its error, amplified to be visible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.jit import kernel
from kernelscope.base.parallel import sum_of_bands
from kernelscope.images.judging import comparable, read_only
from kernelscope.schema.samples import white_level

ZERO = 128  # the grey that stands for no difference
GAIN_SHARE = 0.995  # share of the differences that `suggest_gain` keeps from saturating
STEPS = 65536  # number of sizes of differences that `suggest_gain` distinguishes


def difference(picture: NDArray[Any], other: NDArray[Any], gain: float = 1) -> NDArray[np.uint8]:
    """Return ``picture - other`` as bytes around mid-grey: 128 without a difference; saturated.

    The *residual* of a filter is its output minus its input; the remaining error is its output
    minus the reference.

    - `picture`, `other`: shape (height, width, channels). Colours only (see `colours`); uint8,
      uint16 or float32.
    - `gain`: steps of the result for a difference of 1/255 of white.

    Raises `Incomparable` if types or shapes differ.
    """
    first, second, levels = comparable(picture, other)
    output = np.empty(first.shape, np.uint8)
    draw_difference(
        first.reshape(-1),
        second.reshape(-1),
        gain * 255 / levels.span,
        float(ZERO),
        output.reshape(-1),
    )
    return output


def suggest_gain(picture: NDArray[Any], other: NDArray[Any]) -> int:
    """Return the largest of `GAINS` with which few differences saturate.

    If nearly all pixels are equal, none of the others saturates; if all are, it is 1.
    """
    first, second, levels = comparable(picture, other)
    scale = (STEPS - 1) / levels.span

    def sizes(start: int, stop: int) -> NDArray[Any]:
        counts = np.zeros(STEPS, np.int64)
        count_differences(
            first[start:stop].reshape(-1), second[start:stop].reshape(-1), scale, counts
        )
        return counts

    counts = sum_of_bands(sizes, first)
    size = int(np.searchsorted(counts.cumsum(), GAIN_SHARE * first.size))
    if size == 0:
        size = int(counts.nonzero()[0][-1])
    if size == 0:
        return 1
    most = (255 - ZERO) * (STEPS - 1) / 255 / size
    return max((gain for gain in GAINS if gain <= most), default=1)


def histogram(
    pixels: NDArray[Any], bins: int = 256
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Count the samples of each channel by their value, in uint8, uint16 or float32.

    Returns counts, shape (channels, bins), and edges, shape (bins + 1,). Bin i holds ``edges[i] <=
    value < edges[i + 1]``, the last one its upper edge too. From 0 to 256 or 65536 for integers;
    for floats from 0 to 1, or to the smallest and the largest value where they lie beyond.
    """
    array = read_only(pixels)
    channels = array.shape[2]
    whole_numbers = array.dtype.kind == "u"
    low, high = 0.0, white_level(array.dtype)
    if whole_numbers:
        high += 1
    else:
        low, high = min(low, float(array.min())), max(high, float(array.max()))
    edges = np.linspace(low, high, bins + 1)
    values = np.arange(int(high)) if whole_numbers else np.empty(0)
    bin_of = np.searchsorted(edges, values, side="right") - 1

    def floats(start: int, stop: int) -> NDArray[Any]:
        counts = np.zeros((channels, bins), np.int64)
        count_floats(array[start:stop].reshape(-1), edges, counts)
        return counts

    def integers(start: int, stop: int) -> NDArray[Any]:
        each = np.zeros((channels, values.size), np.int64)
        count_values(array[start:stop].reshape(-1), each)
        return np.stack([np.bincount(bin_of, row, bins).astype(np.int64) for row in each])

    return sum_of_bands(integers if whole_numbers else floats, array), edges


@kernel
def draw_difference(first: Any, second: Any, factor: Any, zero: Any, output: Any) -> None:
    """Set `output` to ``zero + factor * (first - second)``, rounded and saturated."""
    for i in range(output.size):
        value = zero + factor * (np.float64(first[i]) - np.float64(second[i]))
        output[i] = np.uint8(np.rint(min(max(value, 0.0), 255.0)))


@kernel
def count_differences(first: Any, second: Any, scale: Any, counts: Any) -> None:
    """Count the differences by their size times `scale`, rounded; the last count has the rest."""
    most = float(counts.size - 1)
    for i in range(first.size):
        size = scale * abs(np.float64(first[i]) - np.float64(second[i]))
        counts[int(min(size + 0.5, most))] += 1


@kernel
def count_values(samples: Any, counts: Any) -> None:
    """Count integer samples, of channels side by side, by their value."""
    channels = counts.shape[0]
    for first in range(0, samples.size, channels):
        for channel in range(channels):
            counts[channel, samples[first + channel]] += 1


@kernel
def count_floats(samples: Any, edges: Any, counts: Any) -> None:
    """Count samples between `edges`, evenly spaced, of which none lies outside."""
    channels, bins = counts.shape
    scale = bins / (edges[bins] - edges[0])
    for first in range(0, samples.size, channels):
        for channel in range(channels):
            value = np.float64(samples[first + channel])
            i = min(int((value - edges[0]) * scale), bins - 1)
            # The product above is rounded; the edges decide.
            if value < edges[i]:
                i -= 1
            elif i < bins - 1 and value >= edges[i + 1]:
                i += 1
            counts[channel, i] += 1


GAINS = tuple(figure * 10**power for power in range(5) for figure in (1, 2, 5))

_CHANNELS = {
    1: ("grey",),
    3: ("red", "green", "blue"),
}


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of each channel, shape (channels, bins), between edges, shape (bins + 1,)."""

    counts: NDArray[np.int64]
    edges: NDArray[np.float64]

    @classmethod
    def of(cls, pixels: NDArray[Any]) -> Histogram:
        """Count the values of `pixels`, shape (height, width, channels): grey or RGB.

        Takes a while for large images.
        """
        return cls(*histogram(pixels))

    @property
    def channels(self) -> tuple[str, ...]:
        return _CHANNELS[len(self.counts)]


def as_csv(histograms: dict[str, Histogram]) -> str:
    """Return a table in blocks, one for each picture: from, to, and a count for each channel."""
    lines = ["picture,channel,from,to,count"]
    for name, each in histograms.items():
        for channel, counts in zip(each.channels, each.counts, strict=True):
            lines += [
                f"{name},{channel},{low:g},{high:g},{count}"
                for low, high, count in zip(each.edges, each.edges[1:], counts, strict=False)
            ]
    return "\n".join(lines) + "\n"
