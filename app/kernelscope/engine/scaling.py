"""Brings samples into the unit that a filter supposes, and its result back.

Filters that know white suppose that it is 1 for floats, those that know black that it is 0, and
filters that square samples that float32 holds the squares. Samples of another unit are divided
before such a filter, by the distance of white from black or by a power of two, and its result is
multiplied; black is subtracted first and added last. Others are filtered as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from kernelscope.base.parallel import in_parts
from kernelscope.base.remembered import LastMade
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Measurement, Request
from kernelscope.engine.step import Step
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume
from kernelscope.schema.filter import SIGN, Unit
from kernelscope.schema.samples import UNIT, Pixels, colour_count, is_bytes

_SMALL, _LARGE = 2.0**-20, 2.0**40
"""Between these peaks, float32 holds squares of samples and of their noise, and sums of those."""

Factors = tuple[float, ...]
"""The unit of a picture, or of each volume of a scan, in that which the filter supposes."""


def levels_notice(request: Request) -> tuple[str, ...]:
    """Return a line about black and white, where a filter knows them and they are not the usual."""
    spec, source = request.step.filter, request.source
    if not spec.unit_for(request.step.parameters).knows_white:
        return ()
    if isinstance(source, Scan):
        volumes = [each for each in source.volumes if not is_bytes(each.voxels.dtype)]
        found = [each.levels for each in volumes] if request.by_slices else []
    else:
        assert isinstance(source, Image)
        found = [source.levels] if source.dtype.kind == "f" and source.levels != UNIT else []
    return tuple(dict.fromkeys(f"{spec.name}: {levels.describe()}." for levels in found))


def factors_of(request: Request) -> Factors | None:
    """Return the divisors of the source of a request; None if it stays as it is."""
    unit = request.step.filter.unit_for(request.step.parameters)
    source = request.source
    if unit is Unit.ANY or request.by_slices:
        return None
    if isinstance(source, Scan):
        factors: Factors = tuple(_power_of_two(_peak(volume)) for volume in source.volumes)
    else:
        assert isinstance(source, Image)
        if source.dtype.kind != "f":
            return None
        span = source.levels.span
        factors = (span if unit.knows_white else _power_of_two(span),)
    stays = all(factor == 1 for factor in factors) and not black_of(request)
    return None if stays else factors


def black_of(request: Request) -> float:
    """Return the sample that has to become 0, before a picture is divided."""
    source, unit = request.source, request.step.filter.unit_for(request.step.parameters)
    return source.levels.black if unit is Unit.LEVELS and isinstance(source, Image) else 0.0


def _peak(volume: Volume) -> float:
    if volume.voxels.dtype.kind != "f":
        return 1.0  # integers are neither too small nor too large
    low, high = volume.value_range
    return float(max(high, -low))


def _power_of_two(peak: float) -> float:
    """Return the power of two that brings a peak near 1, if it is far from there."""
    return 1.0 if peak == 0 or _SMALL <= peak <= _LARGE else 2.0 ** math.floor(math.log2(peak))


def scaled(request: Request, factors: Factors) -> Request:
    """Return `request` for its source divided by `factors`, with parameters of that unit."""
    step, source, black = request.step, request.source, black_of(request)
    values = {
        each.name: each.in_unit(step.parameters[each.name], factors)
        for each in step.filter.parameters
    }
    return replace(
        request,
        source=_scaled.of(source, (factors, black), lambda: _divided(source, factors, black)),
        step=replace(step, parameters=MappingProxyType(values)),
        measured=request.measured if isinstance(source, Image) else None,
        noise=request.noise if isinstance(source, Image) else _noise_in_unit(request, factors),
    )


def _noise_in_unit(request: Request, factors: Factors) -> Any:
    """Return the model of the noise of volumes that are divided."""
    if request.noise is None:
        return None
    both = zip(request.noise, factors, strict=True)
    return tuple(noise.in_unit(1 / factor) for noise, factor in both)


def measurement(request: Request) -> Measurement | None:
    """Return slow measurements for `request`; none of a source that a run divides first."""
    return Measurement.of(request) if factors_of(request) is None else None


def run_scaled(request: Request, run: Callable[[Request], Source], context: RunContext) -> Source:
    """Return ``run(request)``, computed in the unit that the filter supposes."""
    factors = factors_of(request)
    if factors is None:
        return run(request)
    with context.log.stage("convert"):
        inner = scaled(request, factors)
    output = run(inner)
    inverse = tuple(1 / factor for factor in factors)
    for name, value in context.log.estimates.items():
        context.log.estimates[name] = request.step.filter.parameter(name).in_unit(value, inverse)
    with context.log.stage("convert"):
        target = request.target
        if isinstance(target, Image):
            assert isinstance(output, Image)
            planes = _times(output.planes, factors[0], after=black_of(request))
            before = inner.source.planes
            if planes.shape == before.shape:  # where the filter left samples, none is rounded twice
                np.copyto(planes, target.planes, where=output.planes == before)
            return target.like(planes)
        assert isinstance(target, Scan)
        assert isinstance(output, Scan)
        return Scan(
            tuple(
                volume.with_voxels(made.voxels * np.float64(factor), copy=False)
                if factor != 1
                else made
                for volume, made, factor in zip(
                    target.volumes, output.volumes, factors, strict=True
                )
            )
        )


def with_sign(request: Request) -> Request:
    """Return a request whose negative samples are not clipped to black: then black is not 0.

    Results below zero are, by default, where no sample is: there they are overshoot. Parts of the
    source are filtered with the step of the whole.
    """
    source = request.source
    if not isinstance(source, Image) or request.step.parameters.get(SIGN) != "clip":
        return request
    return replace(request, step=keeping_sign(request.step)) if source.is_negative else request


def keeping_sign(step: Step) -> Step:
    """Return a step that does not clip negative results."""
    return replace(step, parameters=MappingProxyType({**step.parameters, SIGN: "keep"}))


_scaled = LastMade()


def _divided(source: Source, factors: Factors, black: float) -> Source:
    if isinstance(source, Image):
        planes = _times(source.planes, 1 / factors[0], before=-black)
        return replace(Image.from_array(planes, source.title), given_levels=UNIT)
    assert isinstance(source, Scan)
    return Scan(
        tuple(
            Volume.from_array((volume.voxels * (1 / factor)).astype(np.float32), volume.title)
            if factor != 1
            else volume
            for volume, factor in zip(source.volumes, factors, strict=True)
        )
    )


def _times(planes: Pixels, factor: float, before: float = 0.0, after: float = 0.0) -> Pixels:
    """Return floats times `factor`, with constants that are added; alpha is kept."""
    product = planes.copy()
    colours = product[:, :, : colour_count(planes.shape[2])]

    def work(part: slice) -> None:
        colours[part] = (colours[part] + np.float64(before)) * factor + after

    in_parts(work, colours)
    return product


def ignores_levels(step: Step) -> bool:
    """Return whether neither black and white nor the sign of other samples count for a result."""
    any_unit = step.filter.unit_for(step.parameters) is Unit.ANY
    return any_unit and step.parameters.get(SIGN) != "clip"


def finds_noise(step: Step) -> bool:
    """Return whether the noise of a picture has to be found for a step."""
    choice = step.filter.noise
    if choice is None or step.parameters[choice.parameter] == choice.white:
        return False
    return step.filter.parameter(choice.parameter).matters(step.parameters)


def facts_of_whole(step: Step, *, levels: bool = False) -> tuple[str, str]:
    """Return the facts that a step takes from all of its source, and how to do without them.

    Where there are none, both are empty: a part may stand for the whole, if it comes with its
    neighbours (see `FilterSpec.uncroppable`). `levels`: whether the type of the samples states no
    black and white.
    """
    spec, found = step.filter, []
    if spec.noise is not None and finds_noise(step):
        way = f"Choose white noise: {spec.noise.parameter}={spec.noise.white}."
        found.append(("its noise is found from the whole picture", way))
    if step.estimates:
        labels = ", ".join(spec.parameter(name).label for name in step.estimates)
        verb = "is" if len(step.estimates) == 1 else "are"
        way = f"Give numbers: {', '.join(step.estimates)}."
        found.append((f"{labels} {verb} estimated from the whole picture", way))
    if levels and not ignores_levels(step):
        found.append(("black, white and sign are those of the whole", ""))
    return " and ".join(why for why, _ in found), " ".join(way for _, way in found if way)
