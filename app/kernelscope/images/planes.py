"""The three planes through a volume, and where their voxels lie on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.images.volume import AXES, Volume

Position = tuple[int, int, int]  # a voxel: its indices along z, y and x
_SAMPLE = 1 << 18  # about how many voxels decide on windows and gains
_GAIN_SHARE = 99.5  # percentage of the differences that an automatic gain keeps from saturating

_OPPOSITES = dict(zip("RLAPSI", "LRPAIS", strict=True))

_NAMES = {"S": "Axial", "A": "Coronal", "R": "Sagittal"}
"""A plane is called after the direction that it lies across."""


@dataclass(frozen=True)
class Plane:
    """Slices across one axis of a volume, as they are drawn.

    If the file has the orientation of the patient, the head stands upright and is seen as
    radiologists see it: the patient's right on the left of the screen, anterior above, and
    on the left where seen from the side. Otherwise z points up.
    """

    name: str  # “Axial”, “Coronal”, “Sagittal”; or “Across z” where that is unknown
    # Axes of the voxels: the one that slices are taken across, and those that run down and to the
    # right on the screen.
    axis: int
    rows: int
    columns: int
    # Whether the first voxels lie at the bottom, or on the right.
    flip_rows: bool = False
    flip_columns: bool = False
    letters: str = ""  # names of the directions: up, down, left and right; empty if unknown

    def cut(self, voxels: NDArray[Any], index: int) -> NDArray[Any]:
        """Return slice `index`, rows from the top and columns from the left; a view."""
        first: list[Any] = [slice(None)] * 3
        first[self.axis] = index
        plane: NDArray[Any] = voxels[tuple(first)]
        if self.rows > self.columns:
            plane = plane.T
        return plane[:: -1 if self.flip_rows else 1, :: -1 if self.flip_columns else 1]

    def title(self, volume: Volume, index: int) -> str:
        """Return ``T1.nii, axial 5`` for a slice; the title alone of a flat volume."""
        name = f", {self.name.lower()} {index + 1}"
        return volume.title + name * (self.axis != volume.flat_axis)

    def place(self, position: Position, shape: tuple[int, ...]) -> tuple[int, int]:
        """Return where a voxel is drawn: its column and its row on the screen."""
        column, row = position[self.columns], position[self.rows]
        return (
            shape[self.columns] - 1 - column if self.flip_columns else column,
            shape[self.rows] - 1 - row if self.flip_rows else row,
        )

    def moved(self, position: Position, column: int, row: int, shape: tuple[int, ...]) -> Position:
        """Return `position`, moved within its slice to the voxel that is drawn at a place.

        Places outside of the volume become the nearest ones inside.
        """
        new = list(position)
        for axis, place, flip in (
            (self.columns, column, self.flip_columns),
            (self.rows, row, self.flip_rows),
        ):
            inside = min(max(place, 0), shape[axis] - 1)
            new[axis] = shape[axis] - 1 - inside if flip else inside
        z, y, x = new
        return z, y, x


def planes_of(volume: Volume) -> tuple[Plane, Plane, Plane]:
    """Return the axial, coronal and sagittal plane, or those across z, y and x."""
    letters = volume.orientation[::-1]  # of z, y and x
    if not letters:
        return (
            Plane(f"Across {AXES[0]}", 0, 1, 2),
            Plane(f"Across {AXES[1]}", 1, 0, 2, flip_rows=True),
            Plane(f"Across {AXES[2]}", 2, 0, 1, flip_rows=True),
        )

    def along(direction: str) -> int:
        """Return the axis that runs to or from a side of the patient."""
        return next(
            axis for axis in range(3) if letters[axis] in (direction, _OPPOSITES[direction])
        )

    def plane(across: str, above: str, left: str) -> Plane:
        rows, columns = along(above), along(left)
        return Plane(
            _NAMES[across],
            along(across),
            rows,
            columns,
            letters[rows] == above,
            letters[columns] == left,
            above + _OPPOSITES[above] + left + _OPPOSITES[left],
        )

    return plane("S", "A", "R"), plane("A", "S", "R"), plane("R", "S", "A")


def auto_gain(volume: Volume, other: Volume, width: float, gains: Sequence[int]) -> int:
    """Return the largest of `gains` with which few differences saturate.

    `width`: from black to white; with a gain of 1, half of it saturates.
    """
    change = sampled(volume.voxels).astype(np.float32) - sampled(other.voxels)
    sizes = np.abs(change)
    size = float(np.percentile(sizes, _GAIN_SHARE)) or float(sizes.max())
    most = width / 2 / size if size else 1
    return max((gain for gain in gains if gain <= most), default=gains[0])


def millimetres(volume: Volume, position: Position) -> tuple[float, float, float] | None:
    """Return where a voxel lies, x first; None if the file does not say."""
    if volume.affine is None:
        return None
    x, y, z = (volume.affine @ (*reversed(position), 1))[:3].tolist()
    return x, y, z


def sampled(voxels: NDArray[Any]) -> NDArray[Any]:
    """Return voxels from all over the volume."""
    step = max(1, round((voxels.size / _SAMPLE) ** (1 / 3)))
    return voxels[::step, ::step, ::step]
