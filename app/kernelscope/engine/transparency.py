"""Keeps the colours of transparent pixels out of results.

A pixel of alpha 0 has no colour that anybody sees, and whatever its file holds there must not
bleed into its neighbours. Averages (`FilterSpec.averages`) are weighted by alpha:

    result = F(alpha · colour) / F(alpha)

For other filters each transparent pixel gets the mean of its visible neighbours first, ring by ring
as far as the filter reaches; pixels that are partly transparent count as they are. Alpha itself and
the colours of transparent pixels stay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.remembered import LastMade
from kernelscope.engine.request import Request, grey_first
from kernelscope.images.image import Image
from kernelscope.images.source import Source
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Cpu, CpuTask
from kernelscope.schema.levels import PARALLEL
from kernelscope.schema.samples import Pixels, white_level

_opaque = LastMade()


def has_transparent(request: Request) -> bool:
    """Return whether the filter of a request would mix colours that nobody sees."""
    source, step = request.source, request.step
    if not isinstance(source, Image) or not source.has_alpha or _reach(request) == 0:
        return False
    alpha = source.planes[:, :, -1]
    limit = white_level(source.dtype) if step.filter.averages else 1
    return bool((alpha < limit).any())


def run_visible(request: Request, run: Callable[[Request], Source]) -> Source:
    """Return ``run(request)`` for the visible part of its source."""
    if not has_transparent(request):
        return run(request)
    step = request.step
    if step.filter.averages and step.grey and not request.source.is_grey:
        grey = to_grey(request.image)  # colours are weighted after that
        request = replace(request, source=grey, step=replace(step, grey=False))
    image = request.image
    shift = step.filter.radius(step.parameters) if step.border is Border.VALID else 0
    own = image.planes[shift : image.height - shift, shift : image.width - shift]
    if step.filter.averages:
        planes = own.copy()
        planes[:, :, :-1] = _weighted(request, own[:, :, :-1], run)
    else:
        reach, wraps = _reach(request), step.border is Border.WRAP
        output = run(replace(request, source=opaque(image, reach, wraps=wraps)))
        planes = output.planes.copy()
        if planes.shape[:2] == own.shape[:2]:
            planes[:, :, -1] = own[:, :, -1]
    if planes.shape == own.shape:
        hidden = own[:, :, -1] == 0
        planes[hidden] = own[hidden]
    return image.like(planes)


def _reach(request: Request) -> int:
    """Return how far away a colour may have an effect; 0 for filters of single pixels."""
    spec, parameters = request.step.filter, request.step.parameters
    if spec.whole(parameters):
        return max(request.source.shape[:2])
    return spec.radius(parameters)


def _weighted(
    request: Request, hidden: Pixels, run: Callable[[Request], Source]
) -> NDArray[np.float64]:
    """Return the average of colours, weighted by alpha; those of `hidden` where none is seen.

    Integers are weighted as 16-bit numbers, which all levels average to the same bytes.
    """
    image = request.image
    colours, alpha = image.planes[:, :, :-1], image.planes[:, :, -1:]
    white, is_float = white_level(image.dtype), image.dtype.kind == "f"
    dtype = image.dtype if is_float else np.dtype(np.uint16)
    full = white_level(dtype)  # of products: white of a pixel that is opaque

    def averaged(shares: NDArray[np.float64]) -> NDArray[np.float64]:
        whole = shares if is_float else np.rint(shares * full)
        part = Image.from_array(whole.astype(dtype), image.title)
        return run(replace(request, source=part, reference=None)).planes / full

    weights = alpha / np.float64(white)
    below = averaged(weights)
    each = range(colours.shape[2])
    above = np.concatenate([averaged(colours[:, :, [c]] / white * weights) for c in each], axis=2)
    found = np.divide(above, below, out=np.zeros_like(above), where=below > 0) * white
    if not is_float:
        found = np.rint(found.clip(0, white))
    return np.where(below > 0, found, hidden)


def to_grey(image: Image) -> Image:
    if image.is_grey:
        return image
    spec, parameters, border = grey_first()
    settings = parameters, border
    output = np.empty(spec.output_shape(image.planes.shape, *settings), image.pixels.dtype)
    task = CpuTask(image.planes, output, *settings, PARALLEL.id)
    for sweep in spec.implementation(Cpu).plan(task):
        sweep.kernel(*sweep.arguments, 0, sweep.rows)
    spec.carry_alpha(image.planes, output, *settings)
    return image.like(output)


def visible(request: Request) -> Image:
    """Return the picture of a request with the colours that count; to be estimated from."""
    image = request.image
    if not image.has_alpha or not (image.planes[:, :, -1] == 0).any():
        return image
    return opaque(image, max(image.shape[:2]))


def opaque(image: Image, reach: int, *, wraps: bool = False) -> Image:
    """Return a picture without transparent pixels, which have the colours of those around them."""

    def make() -> Image:
        planes = image.planes.copy()
        planes[:, :, :-1] = _filled(planes[:, :, :-1], planes[:, :, -1] > 0, reach, wraps=wraps)
        planes[:, :, -1] = image.dtype.type(white_level(image.dtype))
        return replace(Image.from_array(planes, image.title), given_levels=image.given_levels)

    return _opaque.of(image, (reach, wraps), make)


def _filled(colours: Pixels, visible: NDArray[np.bool_], reach: int, *, wraps: bool) -> Pixels:
    """Return colours, with rings of means of neighbours around the visible part."""
    values = np.where(visible[:, :, None], colours, 0).astype(np.float64)
    for _ in range(reach):
        if visible.all() or not visible.any():
            break
        rim = ((1, 1), (1, 1), (0, 0))
        mode: Literal["wrap", "constant"] = "wrap" if wraps else "constant"
        wide, there = (np.pad(each, rim, mode) for each in (values, visible[:, :, None]))
        height, width = visible.shape
        corners = product(range(3), repeat=2)
        windows = [(slice(dy, dy + height), slice(dx, dx + width)) for dy, dx in corners]
        count = np.sum([there[place] for place in windows], axis=0)
        total = np.sum([wide[place] for place in windows], axis=0)
        new = ~visible & (count[:, :, 0] > 0)
        values[new] = total[new] / count[new]
        visible = visible | new
    if colours.dtype.kind != "f":
        values = np.rint(values)
    return np.where(visible[:, :, None], values, colours).astype(colours.dtype)
