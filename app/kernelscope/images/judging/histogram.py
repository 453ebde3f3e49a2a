"""How often each value occurs in a picture, by channel, and the same as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.images.judging.pictures import histogram

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
