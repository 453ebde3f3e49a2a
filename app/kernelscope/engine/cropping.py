"""Computes a region or an area of a result from a crop, and prepares boxes of volumes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kernelscope.base.errors import InvalidParameter
from kernelscope.base.remembered import LastMade
from kernelscope.engine.backend import Backend
from kernelscope.engine.options import Device
from kernelscope.engine.region import NeededPart, Region, window
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.scaling import with_sign
from kernelscope.engine.stabilising import reach_of_steps, with_noise
from kernelscope.images.image import Image
from kernelscope.images.source import Source
from kernelscope.schema.crop import Box

_crops, _resolved = LastMade(), LastMade()


def _crop(image: Image, part: NeededPart) -> Image:
    """Return a part of a picture: the same object for the same part."""
    if (part.rows, part.columns) == (range(image.height), range(image.width)):
        return image

    def make() -> Image:
        crop = Image.from_array(part.take(image.planes), image.title)
        return replace(crop, given_levels=image.levels) if crop.dtype.kind == "f" else crop

    return _crops.of(image, (part.rows, part.columns), make)


def crop_of(request: Request) -> tuple[Request, NeededPart]:
    """Return the request for the crop that the region of `request` needs, and its place.

    The crop is filtered as a whole, even if the step is limited to an area.
    """
    step, region = replace(with_sign(request).step, within=None), request.region
    assert isinstance(region, Region)
    image, spec = request.image, step.filter
    radius = spec.radius(step.parameters)
    request = with_noise(request)
    more = reach_of_steps(request)
    part = window(region, image.planes.shape, radius, step.border, spec.crop, more)
    top, left = request.origin
    crop = Request(
        _crop(image, part),
        step,
        request.options,
        measured=request.measured,
        noise=request.noise,
        origin=(top + part.rows.start, left + part.columns.start),
        estimated=True,
        live=request.live,
        stand_in=request.stand_in,
    )
    return crop, part


def filter_area(request: Request, run: Callable[[Request], Source]) -> Image:
    """Return the whole result of `request`, whose step is limited to an area.

    Only the box around it is filtered, where the filter does not need the whole picture. `run`
    computes a request without such a limit.
    """
    step, image, area = request.step, request.image, request.step.within
    assert area is not None
    part = area.region(image.height, image.width)
    assert part is not None, "refused by Request"
    step = replace(step, within=None)
    whole = replace(request, step=step, reference=None, reduction=1)
    if step.filter.uncroppable(step.parameters):
        inner = part.of(run(whole).planes)
    else:
        crop, place = crop_of(replace(whole, region=part))
        inner = place.inside.of(run(crop).planes)
    planes = image.planes.copy()
    part.of(planes)[:] = area.limited(part.of(planes), inner, part)
    return image.like(planes)


def execute_region(request: Request, run: Callable[[Request], Result]) -> Result:
    """Return the region of the result of `request`, which has one, computed by `run`.

    Its times are those of the crop. It is not compared with a reference.
    """
    image, region, area = request.image, request.region, request.step.within
    assert isinstance(region, Region)
    crop, part = crop_of(request)
    result = run(crop)
    planes = np.ascontiguousarray(part.inside.of(result.output.planes))
    if area is not None:
        planes = area.limited(region.of(image.planes), planes, region)
    request = request.computed_by(result.request.stand_in)
    output = Image.from_array(planes, image.title)
    return replace(result, request=request, output=output)


def resolved_for(request: Request) -> Request:
    """Return `request`, which is for a box, with the parameters that hold for the whole.

    Some depend on the voxels, such as sigma: those of the box would give others.
    """
    step, planes = request.step, request.scan.planes
    values = _resolved.of(request.scan, step, lambda: step.filter.resolve(planes, request.known))
    return replace(request, resolved=values)


def check_box(request: Request, backend: Backend) -> None:
    """Refuse a box of a volume that a backend computes only as a whole.

    Raises `InvalidParameter` on a GPU, except for filters that run slice by slice.
    """
    if isinstance(request.region, Box) and not request.by_slices and backend.id != Device.CPU:
        raise InvalidParameter(
            f"The {backend.name} filters volumes as a whole: press Run (F5).",
            "On the CPU, Live shows slices.",
        )
