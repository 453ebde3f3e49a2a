"""Worked examples: the numbers and pictures of a filter's page, made by its code for the CPU."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.paths import RESOURCES
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.step import Step
from kernelscope.engine.steps import execute_all
from kernelscope.files import read_image
from kernelscope.images import phantom
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume
from kernelscope.schema.samples import Kind

_SIDE = 128  # pixels of the part of a sample that shows the effect of a filter

_PLACE = {"camera": (40, 96), "coffee": (130, 230)}
"""Upper left corner of that part, by the beginning of the file's name: the head of the
photographer, the rim of the cup."""

# Voxels and noise of the head that filters of volumes are shown on.
_HEAD = (9, 96, 96)
_HEAD_SIGMA = 18.0


@dataclass(frozen=True, eq=False)
class Worked:
    patch: NDArray[Any]
    result: NDArray[Any]
    """Shape (height, width) or (height, width, channels). Of volumes the slice in the middle."""
    radius: int  # cells on each side of the middle that its window has
    masks: Mapping[str, NDArray[Any]]
    working: str  # the arithmetic of the middle sample, or empty
    settings: str  # the filter and its parameters in words

    @property
    def middle(self) -> tuple[int, int]:
        return self.patch.shape[0] // 2, self.patch.shape[1] // 2

    @property
    def window(self) -> NDArray[Any]:
        y, x = self.middle
        reach = self.radius
        return self.patch[y - reach : y + reach + 1, x - reach : x + reach + 1]


@functools.cache
def worked(filter_id: str) -> Worked:
    """Return the worked example of a filter. The first call may compile the filter."""
    spec = filters.get(filter_id)
    example = spec.explanation.example
    step = Step.of_numbers(filter_id, example.parameters)
    volume = spec.kind is Kind.VOLUME
    patch = np.array(example.patch, np.float32 if volume else np.uint8)
    source = Scan((Volume.from_array(patch, "example"),)) if volume else Image.from_array(patch)
    result = filtered(source, step)
    if volume:
        patch, result = patch[len(patch) // 2], result[len(result) // 2]
    height, width = patch.shape[:2]
    usual = 0 if spec.whole(step.parameters) else spec.radius(step.parameters)
    radius = usual if example.radius is None else example.radius
    radius = min(radius, height // 2, width // 2)
    said = spec.describe(step.parameters)
    made = Worked(patch, result, radius, example.masks(step.parameters), "", said)
    working = example.working(made.window, step.parameters)
    return Worked(patch, result, radius, made.masks, working, made.settings)


@dataclass(frozen=True, eq=False)
class Effect:
    before: NDArray[np.uint8]
    after: NDArray[np.uint8]


@functools.cache
def effect(filter_id: str) -> Effect:
    """Return the effect of a filter on a sample. The first call may compile the filter."""
    spec = filters.get(filter_id)
    step = Step.create(filter_id, spec.explanation.before)
    if spec.kind is Kind.VOLUME:
        return _effect_on_head(step)
    name = spec.explanation.sample
    top, left = next(place for start, place in _PLACE.items() if name.startswith(start))
    whole = read_image(RESOURCES / name).pixels
    part = np.ascontiguousarray(whole[top : top + _SIDE, left : left + _SIDE])
    return Effect(part, filtered(Image.from_array(part), step))


def _effect_on_head(step: Step) -> Effect:
    truth = phantom.head(_HEAD, (phantom.Contrast.T1W,)).truth[phantom.Contrast.T1W]
    noisy = phantom.add_noise(truth, "rician", _HEAD_SIGMA).voxels
    result = filtered(Scan((Volume.from_array(noisy, "head"),)), step)
    middle, most = _HEAD[0] // 2, float(noisy.max())
    before, after = (
        np.clip(np.rint(voxels[middle] * (255 / most)), 0, 255).astype(np.uint8)
        for voxels in (noisy, result)
    )
    return Effect(before, after)


def filtered(source: Source, step: Step) -> NDArray[Any]:
    """Return the result of a step on the processor, without the axis of a single component.

    Raises `AppError` if the filter cannot run on the source: a picture smaller than the mask.
    """
    options = RunOptions(device=Device.CPU, level=step.filter.levels(Device.CPU)[-1].id)
    request = Request(source, step, options, live=True)  # not logged
    backend = CpuBackend()
    try:
        found = execute_all(request, {backend.id: backend}).output.planes
    finally:
        backend.close()
    return found[..., 0] if found.shape[-1] == 1 else found
