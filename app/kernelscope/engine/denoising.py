"""The filter that is proposed for a noisy picture or volume.

black and white specks    the remedy for impulses, at a size that suits their share
anything else             the remedy for noise with the best results; where a photograph has hot
                          pixels, their remedy goes before it
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.engine.slices import picture_of
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.images.judging.noise import impulse_share
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.schema.filter import Disturbance, FilterSpec, Remedy
from kernelscope.schema.samples import Kind


@dataclass(frozen=True)
class Proposal:
    filter: FilterSpec
    values: Mapping[str, Any]  # parameters that are not at their defaults
    line: str  # the filter and why, for the user; a run says more about the noise
    others: tuple[FilterSpec, ...] = ()  # filters that remove it as well, the best first
    first: FilterSpec | None = None  # goes before the filter, at its defaults


def propose(source: Source | None) -> Proposal:
    """Return the best filter against the noise of a source; None stands for any deep volume."""
    image, share, first = _picture(source), 0.0, None
    if image is None:
        best, *others = remedies(Disturbance.NOISE, Kind.VOLUME)
        why = "the best results of the denoisers of volumes"
    elif share := impulse_share(middle := _in_unit(_middle(image), image)):
        best, *others = remedies(Disturbance.IMPULSES, Kind.PICTURE)
        why = f"specks in {_percent(share)} of the pixels"
    else:
        best, *others = remedies(Disturbance.NOISE, Kind.PICTURE)
        why = "the best results of the denoisers, for noise of photons or read-out"
        for spec in remedies(Disturbance.HOT_PIXELS, Kind.PICTURE):
            assert spec.remedy is not None
            if hot := spec.remedy.share(middle):
                first, why = spec, f"{why}; {spec.name} before it: {_percent(hot)} of the pixels"
    assert best.remedy is not None
    return Proposal(best, best.remedy.values(share), f"{best.name}: {why}", tuple(others), first)


def _percent(share: float) -> str:
    return f"{float(f'{100 * share:.2g}'):g} %"


def _picture(source: Source | None) -> Image | None:
    if isinstance(source, Scan):
        first = source.volumes[0]
        return None if first.flat_axis is None else picture_of(first, first.flat_axis, 0)
    assert source is None or isinstance(source, Image)
    return source


def alternatives(spec: FilterSpec) -> list[FilterSpec]:
    """Return the filters against the noise of pictures, if `spec` is of a kind with remedies."""
    found = [remedies(each, Kind.PICTURE) for each in Disturbance]
    alike = any(spec.category == each.category for specs in found for each in specs)
    return remedies(Disturbance.NOISE, Kind.PICTURE) if alike else []


def remedies(disturbance: Disturbance, kind: Kind) -> list[FilterSpec]:
    found: list[tuple[Remedy, FilterSpec]] = [
        (spec.remedy, spec)
        for spec in filters.discover(kind).values()
        if spec.remedy is not None and spec.remedy.disturbance is disturbance
    ]
    return [spec for _, spec in sorted(found, key=lambda each: -each[0].decibels)]


_ENOUGH = 2**21
"""Samples that are looked at, about, so that the analysis takes less than a second; a limit in
samples and not in time, so that a picture has the same proposal on every machine."""


def _middle(image: Image) -> NDArray[Any]:
    """Return the colours of the middle of a picture."""
    planes = colours(image.planes)
    height, width, channels = planes.shape
    pixels = _ENOUGH // channels
    side = math.isqrt(pixels)
    # A long strip has its share as well.
    tall = max(side, pixels // max(width, 1)) if width < side else side
    wide = max(side, pixels // max(height, 1)) if height < side else side
    top, left = max(0, height - tall) // 2, max(0, width - wide) // 2
    return planes[top : top + tall, left : left + wide]


def _in_unit(samples: NDArray[Any], image: Image) -> NDArray[np.float32]:
    """Return samples of a picture where black is 0 and white is 1."""
    levels = image.levels
    made: NDArray[np.float32] = ((samples - levels.black) / levels.span).astype(np.float32)
    return made
