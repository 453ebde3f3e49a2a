"""The result of an edited kernel against that of the program's own, pixel by pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOAT_TOLERANCE = 1e-5
"""Of floats, as a part of the range of the reference: sums in another order differ by less."""


@dataclass(frozen=True)
class WrongPixel:
    x: int
    y: int
    channel: int
    expected: float
    got: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """The pixels that differ; a pixel is wrong if any of its channels is."""

    wrong: NDArray[np.bool_]
    output: NDArray[Any]
    reference: NDArray[Any]

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self.wrong))

    def pixel(self, x: int, y: int) -> WrongPixel:
        got, expected = (each[y, x].astype(np.float64) for each in (self.output, self.reference))
        away = np.abs(got - expected)
        channel = int(np.argmax(np.where(np.isnan(away), np.inf, away)))
        return WrongPixel(x, y, channel, float(expected[channel]), float(got[channel]))

    def step(self, x: int, y: int, way: int) -> tuple[int, int] | None:
        """Return the next wrong pixel after (x, y), or before it (`way` -1), round and round."""
        places = np.flatnonzero(self.wrong)
        if not places.size:
            return None
        width = self.wrong.shape[1]
        here = y * width + x
        if way > 0:
            found = places[np.searchsorted(places, here, "right") % places.size]
        else:
            found = places[np.searchsorted(places, here, "left") - 1]
        return int(found % width), int(found // width)

    def nearest(self, x: float, y: float) -> tuple[int, int] | None:
        """Return the wrong pixel that is nearest to a point."""
        rows, columns = np.nonzero(self.wrong)
        if not rows.size:
            return None
        best = int(np.argmin((rows - y) ** 2 + (columns - x) ** 2))
        return int(columns[best]), int(rows[best])


def compare(output: NDArray[Any], reference: NDArray[Any], tolerance: int = 0) -> Comparison:
    """Compare results of the same shape and type: integers by value, floats within a part of all.

    Integers may differ by `tolerance` levels.
    """
    if output.dtype.kind != "f":
        apart = np.abs(output.astype(np.int64) - reference)
        return Comparison((apart > tolerance).any(axis=-1), output, reference)
    finite = reference[np.isfinite(reference)]
    size = float(np.abs(finite).max()) if finite.size else 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        away = np.abs(output.astype(np.float64) - reference)
    same = (away <= FLOAT_TOLERANCE * size) | (output == reference)
    same |= np.isnan(output) & np.isnan(reference)
    return Comparison(~same.all(axis=-1), output, reference)
