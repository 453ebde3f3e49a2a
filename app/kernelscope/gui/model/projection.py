"""Slices of a slab projected onto one: their largest, smallest or mean value at each place."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.images.volume import Volume


class Projection(StrEnum):
    SLICE = "Slice"
    """The slice itself."""
    MAXIMUM = "Maximum"
    MINIMUM = "Minimum"
    MEAN = "Mean"


def slab(index: int, slices: int, side: int) -> range:
    """Return the slices around `index`, cut off at the ends of the volume.

    - `slices`: thickness of the slab; 0 for all slices.
    - `side`: the number of slices of the volume.
    """
    if slices == 0:
        return range(side)
    first = index - (slices - 1) // 2
    return range(max(first, 0), min(first + slices, side))


def project(volume: Volume, axis: int, slices: range, projection: Projection) -> NDArray[Any]:
    """Return one slice for several, by another projection than `SLICE`; its axis has length 1.

    The mean is taken in double precision and returned as float32.
    """
    part = _part(volume, axis, slices)
    if projection is Projection.MAXIMUM:
        return np.asarray(part.max(axis=axis, keepdims=True))
    if projection is Projection.MINIMUM:
        return np.asarray(part.min(axis=axis, keepdims=True))
    mean = part.mean(axis=axis, dtype=np.float64, keepdims=True)
    return np.asarray(mean, np.float32)


def project_change(
    volume: Volume, minus: Volume, axis: int, slices: range, projection: Projection
) -> NDArray[np.float32]:
    """Return one slice for the differences of several, as `project`.

    For `MAXIMUM` and `MINIMUM` that is the difference of the largest size with its sign: a maximum
    alone would hide all that became darker.
    """
    shape = [1 if each == axis else side for each, side in enumerate(volume.voxels.shape)]
    total: NDArray[np.float64] = np.zeros(shape)
    for index in slices:
        cut = _across(axis, index)
        change = volume.voxels[cut].astype(np.float32) - minus.voxels[cut]
        if projection is Projection.MEAN:
            total += change
        else:
            np.copyto(total, change, where=np.abs(change) > np.abs(total))
    if projection is Projection.MEAN:
        total /= len(slices)
    return total.astype(np.float32)


def _across(axis: int, index: int) -> tuple[slice, ...]:
    return tuple(slice(index, index + 1) if each == axis else slice(None) for each in range(3))


def _part(volume: Volume, axis: int, slices: range) -> NDArray[Any]:
    cut = [slice(None)] * 3
    cut[axis] = slice(slices.start, slices.stop)
    part: NDArray[Any] = volume.voxels[tuple(cut)]
    return part
