"""Runs filters for pictures on volumes, slice by slice.

A slice becomes a picture whose black and white are those of its volume (`Volume.levels`): 0, or
the darkest voxel if that is negative, and the brightest one. It is filtered like any other, and
goes back to its place in a volume of the same type and header.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.engine.context import RunContext
from kernelscope.engine.control import Progress
from kernelscope.engine.cropping import crop_of
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.scaling import keeping_sign
from kernelscope.engine.stabilising import for_slices
from kernelscope.engine.step import Step
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.crop import Box
from kernelscope.schema.filter import SIGN, Unit
from kernelscope.schema.samples import UNIT, Levels, is_bytes

STAGE = "slices"  # name of the stage in progress reports


def filter_slices(
    request: Request,
    run: Callable[[Request, Progress], Image],
    context: RunContext,
) -> Scan:
    """Return the scan with every slice of every volume filtered by `run`, or a box of it.

    Bytes stay as they are, everything else is scaled to floats up to 1 and back. The result has the
    types and the headers of the scan.

    Raises `AppError` as `run` does; `Cancelled` if `token` was set meanwhile.
    """
    axis, box = request.step.axis, request.region
    depth = request.scan.volumes[0].voxels.shape[axis]
    indices = range(depth)
    if isinstance(box, Box):
        indices = range(box.first[axis], box.first[axis] + box.sides[axis])
    total, done = len(request.scan.volumes) * len(indices), 0

    def report(stage: str, fraction: float) -> None:
        if stage == "compile" and not done:
            context.progress(stage, fraction)
        else:
            context.progress(STAGE, (done + (fraction if stage == "compute" else 0)) / total)

    results = []
    target = request.target
    assert isinstance(target, Scan)
    both = zip(request.scan.volumes, target.volumes, strict=True)
    for number, (volume, part) in enumerate(both):
        output: NDArray[Any] | None = None
        unit = SliceUnit.of(volume.levels, request.step)
        own = request.step
        if own.parameters.get(SIGN) == "clip" and volume.value_range[0] < 0:
            own = keeping_sign(own)
        for place, index in enumerate(indices):
            context.token.check()
            picture = picture_of(volume, axis, index, unit)
            one = Request(
                picture,
                step_of(own, number * depth + index),
                request.options,
                live=request.live,
                stand_in=request.stand_in,
            )
            region = _region(box, axis)
            filtered = _filter_one(one, region, lambda each: run(each, report))
            if filtered.dtype.kind == "f":
                before = picture.pixels if region is None else region.of(picture.pixels)
                filtered = unit.restored(filtered, before, part.voxels.take(place, axis))
            if output is None:
                output = np.empty(part.voxels.shape, filtered.dtype)
            np.moveaxis(output, axis, 0)[place] = filtered
            done += 1
        assert output is not None  # a volume has slices
        results.append(part.with_voxels(output))
    return Scan(tuple(results))


def _region(box: Box | Region | None, axis: int) -> Region | None:
    """Return the part of each slice that belongs to a box."""
    if not isinstance(box, Box):
        return None
    (top, left), (height, width) = (np.delete(each, axis).tolist() for each in box)
    return Region(top, left, height, width)


def _filter_one(
    request: Request, region: Region | None, run: Callable[[Request], Image]
) -> NDArray[Any]:
    """Return a filtered slice, or a region of it: from a crop where the filter allows that."""
    if region is None or region == Region.all_of(request.image.planes.shape):
        return run(request).planes[:, :, 0]
    if request.step.filter.uncroppable(request.step.parameters):
        return region.of(run(request).planes)[:, :, 0]
    crop, place = crop_of(replace(request, region=region))
    return place.inside.of(run(crop).planes)[:, :, 0]


def step_of(step: Step, number: int) -> Step:
    """Return the step for the slice of this number; noise differs from slice to slice."""
    changed = {
        each.name: each.for_slice(step.parameters[each.name], number)
        for each in step.filter.parameters
    }
    return for_slices(replace(step, parameters=MappingProxyType({**step.parameters, **changed})))


def picture_of(volume: Volume, axis: int, index: int, unit: SliceUnit | None = None) -> Image:
    """Return a slice in the form in which it is filtered; see `filter_slices`.

    - `unit`: by default that of filters that know white only.
    """
    voxels = volume.voxels.take(index, axis)
    unit = unit or SliceUnit(volume.levels.span)
    place = "" if axis == volume.flat_axis else f", slice {index + 1}"
    return unit.picture(voxels, volume.title + place)


@dataclass(frozen=True)
class SliceUnit:
    """The distance of white from black, by which voxels are divided, and the black before that.

    Only filters that know white get that; others get a power of two, which rounds nothing: a median
    is one of its voxels, and a label must not become its neighbour.
    """

    span: float
    black: float = 0.0

    @classmethod
    def of(cls, levels: Levels, step: Step) -> SliceUnit:
        """Return the unit in which a step gets slices of a volume with these levels."""
        unit = step.filter.unit_for(step.parameters)
        if unit is Unit.LEVELS:
            return cls(levels.span, levels.black)
        if unit is not Unit.ANY:
            return cls(levels.span)
        return cls(2.0 ** min(math.ceil(math.log2(levels.span)), 127))

    def picture(self, voxels: NDArray[Any], title: str) -> Image:
        if is_bytes(voxels.dtype):
            return Image.from_array(np.ascontiguousarray(voxels), title)
        pixels = voxels.astype(np.float32)
        if self.black:
            pixels -= np.float64(self.black)
        pixels /= np.float32(self.span)
        return replace(Image.from_array(pixels, title), given_levels=UNIT)

    def restored(
        self, made: NDArray[Any], before: NDArray[Any], voxels: NDArray[Any]
    ) -> NDArray[np.float32]:
        """Return the result of a slice in the unit of its voxels.

        Those that the filter left alone are not rounded twice.
        """
        output = (made * np.float64(self.span) + self.black).astype(np.float32)
        if before.shape == made.shape:
            np.copyto(output, voxels, where=made == before)
        return output
