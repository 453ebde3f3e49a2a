"""Samples along a line through pictures, or through slices of volumes."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelscope.gui.model.arrangement import Units
from kernelscope.gui.model.regions import Interest
from kernelscope.images.lengths import unit_of
from kernelscope.schema.samples import white_level

CHANNELS = ("red", "green", "blue")

MOST_POINTS = 1 << 16
"""Of a line: more than across any picture, and few enough to be drawn at once."""

Steps: TypeAlias = tuple[float, float]
"""Width and height of a pixel in millimetres."""


@dataclass(frozen=True)
class ProfiledPicture:
    """A picture, or a slice of a volume, that is measured."""

    name: str
    # Colours only, shape (height, width, channels).
    planes: NDArray[Any]
    reference: NDArray[Any] | None = None
    offset: int = 0
    """Row and column of the input from which the first pixel comes."""
    plane: int | None = None
    """The plane of a slice; see `Interest.plane`."""
    slice: str = ""
    """Name of the slice."""
    white: float | None = None
    """The value by which units are converted; by default, that of the type."""
    peak: float | None = None
    """As in `statistics`."""
    steps: Steps | None = None
    """Width and height of a pixel in millimetres, where they are known."""

    @property
    def unit(self) -> float:
        return white_level(self.planes.dtype) if self.white is None else self.white


@dataclass(frozen=True)
class Profile:
    """The samples of one picture along a line, linearly interpolated between pixel centres."""

    line: Interest
    picture: str
    places: NDArray[np.float64]
    """Shape (points, 2): pixels to the right and down; whole numbers are centres of pixels of the
    input."""
    levels: NDArray[np.float64]
    """Shape (points, channels), in levels of the type; NaN where the picture has no pixel."""
    white: float
    """White of the picture, by which units are converted."""
    steps: Steps | None = None
    """As in `ProfiledPicture`."""

    @property
    def unit(self) -> str:
        return "px" if self.steps is None else unit_of(self.steps)[0]

    @property
    def length(self) -> float:
        length = length_of(self.line, self.steps)
        return length if self.steps is None else length / unit_of(self.steps)[1]

    @property
    def distances(self) -> NDArray[np.float64]:
        return np.linspace(0.0, self.length, len(self.places))

    @property
    def channels(self) -> tuple[str, ...]:
        count = self.levels.shape[1]
        return CHANNELS[:count] if count > 1 else ("",)

    @property
    def inside(self) -> NDArray[np.float64]:
        return self.levels[~np.isnan(self.levels[:, 0])]

    def values(self, units: Units) -> NDArray[np.float64]:
        if units is Units.STORED:
            return self.levels
        return self.levels * ((255 if units is Units.BYTES else 1) / self.white)


def profile(line: Interest, picture: ProfiledPicture) -> Profile:
    """Return the samples along a line, at equal steps of at most a pixel, with both ends.

    A line of more than `MOST_POINTS` pixels, most of which lie outside, has larger steps.
    """
    count = min(max(math.ceil(line.length), 1), MOST_POINTS) + 1
    (x, y), (end_x, end_y) = line.corners
    shares = np.linspace(0.0, 1.0, count)[:, np.newaxis]
    places = (1 - shares) * np.array([x, y]) + shares * np.array([end_x, end_y])
    levels = _interpolated(picture.planes, places - picture.offset)
    return Profile(line, picture.name, places, levels, picture.unit, picture.steps)


def length_of(line: Interest, steps: Steps | None) -> float:
    (x, y), (end_x, end_y) = line.corners
    across, down = steps or (1.0, 1.0)
    return math.hypot((end_x - x) * across, (end_y - y) * down)


def _interpolated(planes: NDArray[Any], places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return bilinear samples, NaN outside of the rectangle between the outermost centres."""
    height, width, channels = planes.shape
    columns, rows = places[:, 0], places[:, 1]
    inside = (columns >= 0) & (columns <= width - 1) & (rows >= 0) & (rows <= height - 1)
    levels = np.full((len(places), channels), np.nan)
    columns, rows = columns[inside], rows[inside]
    left, top = np.floor(columns).astype(int), np.floor(rows).astype(int)
    right, bottom = np.minimum(left + 1, width - 1), np.minimum(top + 1, height - 1)
    across, down = (columns - left)[:, np.newaxis], (rows - top)[:, np.newaxis]
    upper = (1 - across) * planes[top, left] + across * planes[top, right]
    lower = (1 - across) * planes[bottom, left] + across * planes[bottom, right]
    levels[inside] = (1 - down) * upper + down * lower
    return levels


def profiles_as_csv(profiles: Sequence[Profile], units: Units) -> str:
    """Return profiles along one line as CSV with all digits, empty beyond a picture."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    heads = [
        " ".join(filter(None, (each.picture, channel)))
        for each in profiles
        for channel in each.channels
    ]
    unit = profiles[0].unit if profiles else "px"
    writer.writerow([f"distance in {unit}", "x", "y", *heads, "units"])
    if not profiles:
        return text.getvalue()
    first = profiles[0]
    values = np.hstack([each.values(units) for each in profiles])
    for distance, place, row in zip(first.distances, first.places, values, strict=True):
        cells = ["" if np.isnan(value) else value for value in row.tolist()]
        writer.writerow([float(distance), *place.tolist(), *cells, units.value])
    return text.getvalue()
