"""The part of a picture or volume that a filter needs for a part of its result."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray


class Box(NamedTuple):
    """A part of a volume: its first voxel, and the numbers of slices, rows and columns."""

    first: tuple[int, int, int]
    sides: tuple[int, int, int]

    @classmethod
    def slice_of(cls, shape: tuple[int, ...], axis: int, index: int) -> Box:
        """Return a slice of a volume of `shape` across an axis."""
        first, sides = [0, 0, 0], list(shape[:3])
        first[axis], sides[axis] = index, 1
        return cls((first[0], first[1], first[2]), (sides[0], sides[1], sides[2]))

    @property
    def pixels(self) -> int:
        return math.prod(self.sides)

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Return whether it has voxels, and lies in a volume of `shape`."""
        ends = zip(self.first, self.sides, shape, strict=False)
        return all(first >= 0 and 1 <= side <= most - first for first, side, most in ends)

    def contains(self, other: Box) -> bool:
        """Return whether all voxels of `other` belong to this box."""
        both = zip(self.first, self.sides, other.first, other.sides, strict=True)
        return all(a <= b and b + inner <= a + side for a, side, b, inner in both)

    def has(self, voxel: tuple[int, int, int]) -> bool:
        return self.contains(Box(voxel, (1, 1, 1)))

    def middle(self, most: tuple[int, int, int]) -> Box:
        """Return the middle of this box, of at most these sides."""
        sides = [min(both) for both in zip(self.sides, most, strict=True)]
        rows = zip(self.first, self.sides, sides, strict=True)
        first = [start + (whole - side) // 2 for start, whole, side in rows]
        return Box((first[0], first[1], first[2]), (sides[0], sides[1], sides[2]))

    def of(self, voxels: NDArray[Any]) -> NDArray[Any]:
        """Return this part of an array of shape (depth, height, width, ...), as a view."""
        ends = zip(self.first, self.sides, strict=True)
        return voxels[tuple(slice(first, first + side) for first, side in ends)]

    def describe(self) -> str:
        """Return ``181×217×1 voxels at x 0, y 0, z 90``."""
        z, y, x = self.first
        size = "×".join(str(side) for side in reversed(self.sides))
        return f"{size} voxels at x {x}, y {y}, z {z}"


@dataclass(frozen=True)
class Crop:
    """How a picture may be cropped so that a part of the result keeps its bytes.

    Every filter needs the halo of its mask, which follows from its radius.
    """

    whole: str = ""
    """Why no part can be computed on its own, as the end of a sentence; empty if it can."""
    rows: bool = False
    """Whole rows are needed: a result depends on all of its row, or on its place in it."""
    grid: int = 1
    """Parts begin at multiples of this many pixels, and end there or with the picture."""
    boxes: bool = False
    """For filters of volumes: the plans of the CPU can compute `CpuTask.part` alone."""
    floats: int = 4
    """32-bit floats that the CPU may hold for each sample of a part, beside its input, a copy of
    it, and its output. Measured 3.0 for non-local means of 8-bit grey of 1024×896 pixels."""


HALO_ONLY = Crop()
"""No samples are needed in addition to the halo, as for most filters."""
