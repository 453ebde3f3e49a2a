"""Slices of the output of volumes that were computed before a run of the whole.

A slice has the bytes that it has in the whole. Each is kept with its request: those of earlier
settings stay on the screen, marked as such, until those of the present ones are there.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.engine.request import Request, alike
from kernelscope.engine.result import Result
from kernelscope.gui.model.drawn_view import DrawnView
from kernelscope.images.volume import Volume
from kernelscope.schema.crop import Box

_MOST = 64  # slices kept, so that steps back show at once: 5 MB of a head in 16 bits


@dataclass(frozen=True, eq=False)
class SlicePreview:
    result: Result  # of a request whose region is the slice
    volumes: tuple[Volume, ...]
    """Each component in the shape of the whole, with this slice in place of every slice across its
    axis; they take the memory of a slice. Voxels outside of `part` mean nothing."""
    beside: tuple[Volume, ...] = ()  # the same of the other channels of a composite

    @functools.cached_property
    def contents(self) -> tuple[DrawnView, ...]:
        return tuple(
            DrawnView(volume, part=self.part, beside=self.beside) for volume in self.volumes
        )

    @property
    def request(self) -> Request:
        return self.result.request

    @property
    def part(self) -> Box | None:
        """The voxels that were computed; None for all of the slice."""
        box = self.request.region
        assert isinstance(box, Box)
        axis, index = _place(box, self.request)
        return None if box == Box.slice_of(self.request.source.shape, axis, index) else box


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

    def drop_stand_ins(self) -> None:
        """Forget slices that another method made."""
        own = {each: kept for each, kept in self._slices.items() if not kept.request.stand_in}
        self._slices = own

    def put(self, result: Result, beside: Iterable[Result] = ()) -> bool:
        """Keep the result of a slice or a part of one; return whether it is one.

        `beside`: those of the other channels of a composite.
        """
        place, box = place_of(result.request), result.request.region
        if place is None:
            return False
        assert isinstance(box, Box)

        def spread(each: Result) -> Iterator[Volume]:
            for source, part in zip(each.request.scan.volumes, each.scan.volumes, strict=True):
                voxels = _spread(part.voxels, box, source.voxels.shape, place)
                yield replace(source, voxels=voxels)

        others = tuple(volume for each in beside for volume in spread(each))
        self._slices.pop(place, None)
        self._slices[place] = SlicePreview(result, tuple(spread(result)), others)
        while len(self._slices) > _MOST:
            del self._slices[next(iter(self._slices))]
        return True

    def at(self, axis: int, index: int) -> SlicePreview | None:
        return self._slices.get((axis, index))

    def of(self, wanted: Request, axis: int, index: int) -> SlicePreview | None:
        found = self.at(axis, index)
        return found if found is not None and alike(found.request, wanted) else None


def place_of(request: Request) -> tuple[int, int] | None:
    """Return axis and index of the slice that the region of a request is a part of."""
    box = request.region
    return _place(box, request) if isinstance(box, Box) else None


def _place(box: Box, request: Request) -> tuple[int, int]:
    shape = request.source.shape[:3]
    axes = [request.step.axis] if request.by_slices else range(3)
    # A volume of one slice is thin along that axis in every direction.
    axis = min(axes, key=lambda each: (box.sides[each], box.sides[each] == shape[each]))
    return axis, box.first[axis]


def _spread(
    voxels: NDArray[Any], box: Box, shape: tuple[int, ...], place: tuple[int, int]
) -> NDArray[Any]:
    """Return a part of a slice in place of every slice across its axis, in the whole shape."""
    whole = Box.slice_of(shape, *place)
    if box != whole:
        part, voxels = voxels, np.zeros(whole.sides, voxels.dtype)
        first = [a - b for a, b in zip(box.first, whole.first, strict=True)]
        Box((first[0], first[1], first[2]), box.sides).of(voxels)[:] = part
    return np.broadcast_to(voxels, shape)
