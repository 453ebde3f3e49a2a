"""Brings sources whose noise is not white to filters that suppose that it is, and results back.

A filter declares `FilterSpec.noise`. The model of the noise is found once for a picture or a scan,
from the whole of it, and kept with a request: a region has the bytes that it has in the
whole result. All levels on all devices get the same floats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.remembered import LastMade, remembered
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.engine.scaling import factors_of, finds_noise, scaled
from kernelscope.engine.step import Step
from kernelscope.engine.transparency import to_grey, visible
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import NoiseSteps
from kernelscope.schema.samples import UNIT, Pixels

Sigmas: TypeAlias = Callable[[NDArray[Any]], NDArray[np.float32]]
"""Returns the sigma of the noise of each voxel."""


def _model_of(request: Request) -> Any:
    """Return the model of the noise in a source, found once for each choice of its kind."""
    step, choice = request.step, request.step.filter.noise
    assert choice is not None
    kind = step.parameters[choice.parameter]
    if isinstance(request.source, Scan):
        return choice.find(request.scan.samples, kind)
    image = request.image

    def find() -> Any:
        factors = factors_of(request)
        inner = request if factors is None else scaled(request, factors)
        return choice.find(colours(_picture(inner).planes), kind)

    name = (choice.key, kind, step.grey, image.given_levels)
    return remembered(image.pixels, name, find)


def photon_sigmas(request: Request, component: int) -> Sigmas | None:
    """Return a function of voxels to the sigma of their noise, where that grows with them.

    None unless a denoiser took the noise of a volume for that of photons and read-out, as its only
    step.
    """
    if request.then or request.by_slices or not isinstance(request.source, Scan):
        return None
    found = with_noise(request).noise
    noise = found[component] if found is not None else None
    return noise.sigmas_at if noise is not None and noise.is_photons else None


def change_of(
    voxels: NDArray[Any], minus: NDArray[Any], sigmas: Sigmas | None
) -> NDArray[np.float32]:
    change: NDArray[np.float32] = voxels.astype(np.float32) - minus
    return change if sigmas is None else change / sigmas(voxels)


def change_of_volume(output: Volume, other: Volume, sigmas: Sigmas | None) -> Volume:
    """Return the change as a volume, in units of `sigmas` where there are any."""
    made = output.minus(other)
    if sigmas is None:
        return made
    return made.with_voxels(change_of(output.voxels, other.voxels, sigmas), as_float=True)


def _picture(request: Request) -> Image:
    """Return the colours that count, as the filter gets them."""
    return to_grey(visible(request)) if request.step.grey else visible(request)


def with_noise(request: Request) -> Request:
    """Return a request that has the model of its noise, if that has to be found."""
    return replace(request, noise=_model_of(request)) if has_noise_to_find(request) else request


def has_noise_to_find(request: Request) -> bool:
    """Return whether the model of its noise is needed, and not there yet.

    Volumes have that of MRI unless another one is chosen, or they are of a microscope.
    """
    step, source, choice = request.step, request.source, request.step.filter.noise
    if request.noise is not None or choice is None or not finds_noise(step):
        return False
    if isinstance(source, Scan):
        found = step.parameters[choice.parameter] == choice.found
        return not request.by_slices and (source.microscope or not found)
    return True


def needs_steps(request: Request) -> bool:
    """Return whether `run_stabilised` changes a picture."""
    return _steps_of(request, request.step.parameters, request.source.dtype) is not None


def reach_of_steps(request: Request) -> int:
    """Return how far beyond the filter its steps look, both together; the noise is known."""
    steps = _steps_of(request, request.step.parameters, request.source.dtype)
    return 2 * steps.reach if steps is not None else 0


def _steps_of(
    request: Request, parameters: Mapping[str, Any] | None, dtype: Any
) -> NoiseSteps | None:
    step, model = request.step, request.noise
    if step.filter.noise is None or model is None:
        return None
    steps = step.filter.noise.steps(model, parameters, dtype)
    # Where opposite sides touch, a part of a picture has neighbours that the whole has not.
    if steps is not None and steps.reach and step.border is Border.WRAP:
        return None
    return steps


def stabilised(request: Request, pixels: Pixels) -> tuple[Pixels, Mapping[str, Any]]:
    """Return a picture and values from which parameters are estimated: those that a filter gets."""
    choice = request.step.filter.noise
    if choice is None:
        return pixels, request.known
    if request.by_slices:
        return pixels, {**request.known, **for_slices(request.step).parameters}
    if isinstance(request.source, Scan):
        inner = _stable_scan(request)
        return inner.scan.planes, inner.known
    steps = _steps_of(request, None, pixels.dtype)
    if steps is None:
        return pixels, request.known
    return steps.forward(pixels), {**request.known, choice.parameter: choice.white}


def for_slices(step: Step) -> Step:
    """Return a step whose noise is white where the kind was to be found: slices would differ."""
    choice = step.filter.noise
    if choice is None or step.parameters[choice.parameter] != choice.found:
        return step
    values = {**step.parameters, choice.parameter: choice.white}
    return replace(step, parameters=MappingProxyType(values))


def noise_notice(request: Request) -> tuple[str, ...]:
    """Return a line about the kind of the noise, for a request that has the model of it."""
    choice, source = request.step.filter.noise, request.source
    if choice is None or request.noise is None:
        return ()
    kind = request.step.parameters[choice.parameter]
    white = source.levels.span if isinstance(source, Image) else 1.0
    line = choice.describe(request.noise, kind, white)
    if isinstance(source, Scan) and len(source.titles) > 1:
        line = f"{line} (of {', '.join(source.titles)})" if line else ""
    return (f"{request.step.filter.name}: {line}.",) if line else ()


def run_stabilised(
    request: Request, run: Callable[[Request], Source], context: RunContext
) -> Source:
    """Return ``run(request)``, computed where the noise of the source is white."""
    step, choice = request.step, request.step.filter.noise
    if choice is None or request.noise is None:
        return run(request)
    if isinstance(request.source, Scan):
        return _run_stable_scan(request, run, context)
    image = request.image
    steps = _steps_of(request, step.parameters, image.dtype)
    if steps is None:
        return run(request)
    with context.log.stage("convert"):
        grey = to_grey(image) if step.grey else image
        values = {**step.parameters, choice.parameter: choice.white}
        inner = replace(
            request,
            source=_stable.of(grey, steps, lambda: _forward(grey, steps)),
            step=replace(step, parameters=MappingProxyType(values), grey=False),
            noise=None,
            reference=None,
            reduction=1,
        )
    output = run(inner)
    assert isinstance(output, Image)
    with context.log.stage("convert"):
        shift = (image.height - output.height) // 2
        part = np.s_[shift : image.height - shift, shift : image.width - shift]
        before = inner.image.planes[part], grey.planes[part]
        return image.like(steps.backward(output.planes, *before))


def _run_stable_scan(
    request: Request, run: Callable[[Request], Source], context: RunContext
) -> Source:
    choice, steps = request.step.filter.noise, _steps_of_scan(request)
    assert choice is not None
    with context.log.stage("convert"):
        inner = _stable_scan(request)
    given, resolved = request.step.parameters, dict(inner.step.parameters)
    if steps is not None:
        resolved[choice.parameter] = choice.camera
        context.log.estimates |= request.step.filter.estimates(given, resolved)
    elif given[choice.parameter] == choice.found:
        context.log.estimates[choice.parameter] = choice.white
    output = run(inner)
    if steps is None:
        return output
    assert isinstance(output, Scan)
    with context.log.stage("convert"):
        target = request.target
        assert isinstance(target, Scan)
        both = zip(target.volumes, steps.backward(output.samples), strict=True)
        return Scan(tuple(volume.with_voxels(voxels, copy=False) for volume, voxels in both))


def _steps_of_scan(request: Request) -> NoiseSteps | None:
    types = tuple(samples.dtype for samples in request.scan.samples)
    return _steps_of(request, request.step.parameters, types)


def _stable_scan(request: Request) -> Request:
    """Return the request for volumes whose noise has one sigma."""
    scan, step, choice = request.scan, request.step, request.step.filter.noise
    if choice is None or request.noise is None:
        return request
    steps = _steps_of_scan(request)

    def make() -> Scan:
        assert steps is not None
        both = zip(steps.forward(scan.samples), scan.titles, strict=True)
        return Scan(tuple(Volume.from_array(voxels, title) for voxels, title in both))

    between = {} if steps is None else steps.values
    values = {**step.parameters, **between, choice.parameter: choice.white}
    return replace(
        request,
        source=scan if steps is None else _stable.of(scan, steps, make),
        step=replace(step, parameters=MappingProxyType(values)),
        noise=None,
        reference=None,
    )


_stable = LastMade()


def _forward(image: Image, steps: NoiseSteps) -> Image:
    planes = steps.forward(image.planes)
    return replace(Image.from_array(planes, image.title), given_levels=UNIT)
