"""Runs filters for pictures on volumes, slice by slice.

A slice becomes a picture whose white is that of its volume: the brightest voxel or, if some are
negative, the range. It is filtered like any other, and goes back to its place in a volume of the
same type and header.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.engine.context import RunContext
from kernelscope.engine.control import Progress
from kernelscope.engine.cropping import crop_of
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.scaling import SIGN, keeping_sign
from kernelscope.engine.stabilising import for_slices
from kernelscope.engine.step import Step
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.crop import Box
from kernelscope.schema.filter import Unit
from kernelscope.schema.samples import span

STAGE = "slices"
"""Name of the stage in progress reports."""


def filter_slices(
    request: Request,
    run: Callable[[Request, Progress], Image],
    context: RunContext,
) -> Scan:
    """Return the scan with every slice of every volume filtered by `run`, or a box of it.

    A slice is a picture whose white is that of its volume, see `white_of`: bytes stay as
    they are, everything else is scaled to floats up to 1 and back. The result has the types
    and the headers of the scan.

    Raises
    ------
    AppError
        Any error that `run` raises.
    Cancelled
        If `token` was set meanwhile.
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
        divisor = divisor_of(_white(volume), request.step)
        own = request.step
        if own.parameters.get(SIGN) == "clip" and volume.value_range[0] < 0:
            own = keeping_sign(own)
        for place, index in enumerate(indices):
            context.token.check()
            picture = picture_of(volume, axis, index, divisor)
            one = Request(picture, step_of(own, number * depth + index), request.options)
            filtered = _filter_one(one, _region(box, axis), lambda each: run(each, report))
            if output is None:
                output = np.empty(part.voxels.shape, filtered.dtype)
            np.moveaxis(output, axis, 0)[place] = filtered
            done += 1
        assert output is not None  # a volume has slices
        if output.dtype == np.float32:
            output *= divisor
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


def picture_of(volume: Volume, axis: int, index: int, divisor: np.float32 | None = None) -> Image:
    """Return a slice in the form in which it is filtered; see `filter_slices`.

    Parameters
    ----------
    divisor : float32, optional
        Voxels other than bytes are divided by it rather than by white.
    """
    pixels = np.ascontiguousarray(volume.voxels.take(index, axis))
    white = None if pixels.dtype == np.uint8 else divisor or _white(volume)
    return as_picture(pixels, white, f"{volume.title}, slice {index + 1}")


def as_picture(voxels: NDArray[Any], white: np.float32 | None, title: str) -> Image:
    """Return voxels of a slice as a picture; None keeps them as they are, which bytes are."""
    pixels = voxels if white is None else voxels.astype(np.float32) / white
    return replace(Image.from_array(pixels, title), given_white=None if white is None else 1.0)


def divisor_of(white: np.float32, step: Step) -> np.float32:
    """Return the number that voxels are divided by before a step, and multiplied with after it.

    It is white for filters that look at it. Others get a power of two, which rounds nothing: a
    median is one of its voxels, and a label must not become its neighbour.
    """
    if step.filter.unit_for(step.parameters) is not Unit.ANY:
        return white
    return np.float32(2.0 ** min(math.ceil(math.log2(white)), 127))


def white_of(low: float, high: float) -> np.float32:
    """Return the value that counts as white where voxels between these are not bytes."""
    return np.float32(span(low, high))


def _white(volume: Volume) -> np.float32:
    return white_of(*volume.value_range)
