"""The values and notes that the views write, and the size of slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.gui.model.camera import Point
from kernelscope.gui.model.display import Units
from kernelscope.gui.model.slice_drawing import Projection, numbers
from kernelscope.images.planes import Plane, Position, millimetres
from kernelscope.images.volume import AXES, Volume


def factor_of(white: float, units: Units) -> float | None:
    """Return the factor from samples to other units; None for values as they are stored."""
    return None if units is Units.STORED else (255 if units is Units.BYTES else 1) / white


def words_of(samples: NDArray[Any], factor: float | None = None) -> list[str]:
    if factor is None and samples.dtype.kind != "f":
        return [str(value) for value in samples]
    return [f"{value:.4g}" for value in samples.astype(np.float64) * (factor or 1)]


def text_of(samples: NDArray[Any], factor: float | None = None) -> str:
    words = words_of(samples, factor)
    return words[0] if len(words) == 1 else f"({', '.join(words)})"


def change_of(samples: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """Return the differences of two pixels, without alpha."""
    change: NDArray[np.float64] = samples.astype(np.float64) - other
    return change[: 3 if samples.size >= 3 else 1]


def change_words(samples: NDArray[Any], other: NDArray[Any], factor: float | None) -> list[str]:
    change = change_of(samples, other) * (factor or 1)
    return [f"{value:+.4g}" if value else "0" for value in change]


def place_text(volume: Volume, position: Position) -> str:
    """Return “x 1, y 2, z 3   (90.5, -108.5, 90.5) mm”, without the latter if unknown."""
    text = ", ".join(f"{AXES[axis]} {position[axis]}" for axis in volume.axes)
    place = millimetres(volume, position)
    if place is None:
        return text
    return f"{text}   ({', '.join(f'{part:.1f}' for part in place)}) mm"


def note_of(projection: Projection, part: range, state: str, *, drawn: bool) -> str:
    """Return the content of a view but its own slice; `state`: how it fits the settings."""
    words = []
    if projection is not Projection.SLICE:
        words.append(f"{projection.value} of slices {numbers(part)}")
    if not drawn:
        words.append("computing…")
    if state:
        words.append(state)
    return ", ".join(words)


def middles(volume: Volume, planes: Sequence[Plane], position: Position) -> dict[int, Point]:
    points = {}
    for number, plane in enumerate(planes):
        column, row = plane.place(position, volume.voxels.shape)
        across, down = volume.spacing[plane.columns], volume.spacing[plane.rows]
        points[number] = (column + 0.5) * across, (row + 0.5) * down
    return points


def extent(volume: Volume, plane: Plane) -> Point:
    shape, steps = volume.voxels.shape, volume.spacing
    return shape[plane.columns] * steps[plane.columns], shape[plane.rows] * steps[plane.rows]
