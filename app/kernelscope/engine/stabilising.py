"""Brings pictures whose noise is not white to filters that suppose that it is, and results back.

A filter declares `FilterSpec.noise`. The model of the noise is found once for a picture, from the
whole of it, and kept with a request: a region has the bytes that it has in the
whole result. All levels on all devices get the same floats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from kernelscope.base.remembered import LastMade, remembered
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.engine.scaling import factors_of, finds_noise, scaled
from kernelscope.engine.step import Step
from kernelscope.engine.transparency import to_grey, visible
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.images.source import Source
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import NoiseSteps
from kernelscope.schema.samples import UNIT, Pixels


def _model_of(request: Request) -> Any:
    """Return the model of the noise in a picture, found once for each choice of its kind."""
    step, image, choice = request.step, request.image, request.step.filter.noise
    assert choice is not None
    kind = step.parameters[choice.parameter]

    def find() -> Any:
        factors = factors_of(request)
        inner = request if factors is None else scaled(request, factors)
        return choice.find(colours(_picture(inner).planes), kind)

    name = (choice.key, kind, step.grey, image.given_levels)
    return remembered(image.pixels, name, find)


def _picture(request: Request) -> Image:
    """Return the colours that count, as the filter gets them."""
    return to_grey(visible(request)) if request.step.grey else visible(request)


def with_noise(request: Request) -> Request:
    """Return a request that has the model of its noise, if that has to be found."""
    if request.noise is not None or not isinstance(request.source, Image):
        return request
    return replace(request, noise=_model_of(request)) if finds_noise(request.step) else request


def needs_steps(request: Request) -> bool:
    """Return whether `run_stabilised` changes a picture."""
    return _steps_of(request, request.step.parameters, request.source.dtype) is not None


def reach_of_steps(request: Request) -> int:
    """Return how far beyond the filter its steps look, both together; the noise is known."""
    steps = _steps_of(request, request.step.parameters, request.source.dtype)
    return 2 * steps.reach if steps is not None else 0


def _steps_of(
    request: Request, parameters: Mapping[str, Any] | None, dtype: np.dtype[Any]
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
    choice = request.step.filter.noise
    if choice is None or request.noise is None:
        return ()
    kind = request.step.parameters[choice.parameter]
    line = choice.describe(request.noise, kind, request.image.levels.span)
    return (f"{request.step.filter.name}: {line}.",) if line else ()


def run_stabilised(
    request: Request, run: Callable[[Request], Source], context: RunContext
) -> Source:
    """Return ``run(request)``, computed where the noise of the picture is white."""
    step, choice = request.step, request.step.filter.noise
    if choice is None or request.noise is None:
        return run(request)
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


_stable = LastMade()


def _forward(image: Image, steps: NoiseSteps) -> Image:
    planes = steps.forward(image.planes)
    return replace(Image.from_array(planes, image.title), given_levels=UNIT)
