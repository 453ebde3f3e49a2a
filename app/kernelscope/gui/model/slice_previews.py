"""Slices of the output of volumes that were computed before a run of the whole.

A slice has the bytes that it has in the whole. Each is kept with its request: those of earlier
settings stay on the screen, marked as such, until those of the present ones are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.gui.model.freshness import alike
from kernelscope.images.volume import Volume
from kernelscope.spec.crop import Box

_MOST = 64
"""Slices kept, so that steps back show at once: 5 MB of a head in 16 bits."""


@dataclass(frozen=True, eq=False)
class SlicePreview:
    """A slice of an output.

    Attributes
    ----------
    result : Result
        Of a request whose region is the slice.
    volumes : tuple of Volume
        Each component in the shape of the whole, with this slice in place of every slice across
        its axis; they take no memory.
    """

    result: Result
    volumes: tuple[Volume, ...]

    @property
    def request(self) -> Request:
        return self.result.request


class SlicePreviews:
    """The last slices that were computed, by axis and index."""

    def __init__(self) -> None:
        self._slices: dict[tuple[int, int], SlicePreview] = {}

    def __bool__(self) -> bool:
        return bool(self._slices)

    def __iter__(self) -> Iterator[SlicePreview]:
        return iter(self._slices.values())

    def clear(self) -> None:
        self._slices.clear()

    def put(self, result: Result) -> bool:
        """Keep the result of a slice; return whether it is one: a part of it only measures."""
        place = place_of(result.request)
        if place is None:
            return False
        sources = result.request.scan.volumes
        volumes = tuple(
            replace(source, voxels=np.broadcast_to(part.voxels, source.voxels.shape))
            for source, part in zip(sources, result.scan.volumes, strict=True)
        )
        self._slices.pop(place, None)
        self._slices[place] = SlicePreview(result, volumes)
        while len(self._slices) > _MOST:
            del self._slices[next(iter(self._slices))]
        return True

    def at(self, axis: int, index: int) -> SlicePreview | None:
        """Return the slice at this place, of whatever settings."""
        return self._slices.get((axis, index))

    def has(self, wanted: Request, axis: int, index: int) -> bool:
        """Return whether a slice of the settings of `wanted` is there."""
        found = self.at(axis, index)
        return found is not None and alike(found.request, wanted)


def place_of(request: Request) -> tuple[int, int] | None:
    """Return axis and index of the slice of a request; None if its region is not one."""
    box, shape = request.region, request.source.shape
    if not isinstance(box, Box):
        return None
    axes = [request.step.axis] if request.by_slices else range(3)
    for axis in axes:
        if box == Box.slice_of(shape, axis, box.first[axis]):
            return axis, box.first[axis]
    return None
