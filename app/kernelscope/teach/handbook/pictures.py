"""The pictures of the generated pages, by the name that a page gives them.

A page has ``![text](picture:mask/median)``. The program draws the bytes of `render`, and the site
puts them into the page::

    formula/median        the formula                               at once
    level/gpu/shared      a level, with the numbers of a plan       at once
    mask/median           a worked example                          runs the filter
    effect/median         a sample before and after the filter      runs the filter

Formulas are typeset from LaTeX as SVG for the program and as MathML for the site; the libraries are
imported when the first one is.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.paths import RESOURCES
from kernelscope.engine.options import RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.step import Step
from kernelscope.engine.steps import execute_all
from kernelscope.files import read_image
from kernelscope.images import phantom
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume
from kernelscope.schema.devices import Device
from kernelscope.schema.explanation import number
from kernelscope.schema.samples import Kind
from kernelscope.teach.handbook import level_pictures
from kernelscope.teach.handbook.svg import ACCENT, INK, Drawing

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
def worked_example(filter_id: str) -> Worked:
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


_CELL, _TOP = 34, 26  # pixels of a cell, and the room for the heading of a grid

_SIGN_WIDTH = 46
_MOST_MASK_CELLS = 9  # side of the largest mask whose weights are drawn


def draw(name: str, worked: Worked) -> Drawing:
    y, x = worked.middle
    found = _number(worked.result[y, x])
    about = f"{name}, worked example: the middle {_number(worked.patch[y, x])} becomes {found}."
    drawing = Drawing(about)
    middle = _TOP + worked.patch.shape[0] * _CELL / 2
    left = _grid(drawing, 0, "input", worked.patch, worked.radius)
    for place, (label, weights) in enumerate(worked.masks.items()):
        if len(weights) <= _MOST_MASK_CELLS:
            sign = "," if place else "×"
            drawing.text(left + _SIGN_WIDTH / 2, middle + 6, sign, size=20, anchor="middle")
            left = _weights(drawing, left + _SIGN_WIDTH, middle, label, weights)
    drawing.arrow(left + 8, middle, left + _SIGN_WIDTH - 8, middle)
    _grid(drawing, left + _SIGN_WIDTH, "result", worked.result, 0)
    return drawing


def _number(sample: Any) -> str:
    """Return a sample, or the samples of a pixel, for a cell."""
    values = np.atleast_1d(sample)
    return ", ".join(f"{round(float(value))}" for value in values)


def _grid(drawing: Drawing, left: float, heading: str, samples: NDArray[Any], radius: int) -> float:
    height, width = int(samples.shape[0]), int(samples.shape[1])
    drawing.text(left, 15, heading, bold=True)
    span = float(samples.max()) if samples.dtype.kind == "f" else 255.0
    for y in range(height):
        for x in range(width):
            _cell(drawing, left + x * _CELL, _TOP + y * _CELL, samples[y, x], span)
    y, x = height // 2, width // 2
    side = (2 * radius + 1) * _CELL
    corner = left + (x - radius) * _CELL, _TOP + (y - radius) * _CELL
    drawing.rectangle(*corner, side, side, stroke=ACCENT, thickness=3)
    if radius:
        corner = left + x * _CELL + 3, _TOP + y * _CELL + 3
        drawing.rectangle(*corner, _CELL - 6, _CELL - 6, stroke=ACCENT, thickness=1.5, dashed=True)
    return left + width * _CELL


def _cell(drawing: Drawing, left: float, top: float, sample: Any, span: float) -> None:
    values = [float(value) for value in np.atleast_1d(sample)]
    shades = [min(max(round(255 * value / span), 0), 255) for value in values]
    red, green, blue = shades if len(shades) == 3 else shades[:1] * 3
    ground = f"#{red:02x}{green:02x}{blue:02x}"
    ink = "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 120 else "#ffffff"
    drawing.rectangle(left, top, _CELL, _CELL, fill=ground, stroke="#808080", thickness=0.6)
    if len(values) == 1:
        text = f"{round(values[0])}"
        drawing.text(
            left + _CELL / 2, top + _CELL / 2 + 4, text, size=12, fill=ink, anchor="middle"
        )
        return
    for line, value in enumerate(values):
        place = top + 10 + 10 * line
        drawing.text(left + _CELL / 2, place, f"{value:g}", size=9, fill=ink, anchor="middle")


def _weights(
    drawing: Drawing, left: float, middle: float, label: str, weights: NDArray[Any]
) -> float:
    """Draw a mask around the height `middle`; return the right end."""
    side = len(weights)
    top = middle - side * _CELL / 2
    drawing.text(left, top - 8, label, bold=True)
    largest = float(np.abs(weights).max()) or 1.0
    for y, x in np.ndindex(weights.shape):
        share = abs(float(weights[y, x])) / largest
        corner = left + x * _CELL, top + y * _CELL
        drawing.rectangle(*corner, _CELL, _CELL, fill=ACCENT, opacity=0.35 * share, thickness=0.6)
        drawing.text(
            corner[0] + _CELL / 2,
            corner[1] + _CELL / 2 + 4,
            number(float(weights[y, x])),
            size=12,
            fill=INK,
            anchor="middle",
        )
    return left + side * _CELL


_SIZE, _FORMULA_GAP = 20, 14  # pixels of the letters, and between two formulas

_AROUND_SUMS = re.compile(r"\\left\((.*?\\sum.*?)\\right\)")
"""Brackets that ziamath makes 2000 pixels tall, as the sums within have limits."""


@functools.lru_cache(maxsize=128)
def as_svg(formula: str, ink: str = INK) -> str:
    """Return the formulas of the lines of `formula` below each other, as one drawing."""
    import ziamath

    ziamath.config.svg2 = False  # letters as paths: Qt knows no symbols
    parts, width, height = [], 0.0, 0.0
    for line in formula.split("\n"):
        made = ziamath.Latex(_AROUND_SUMS.sub(r"\\Bigl(\1\\Bigr)", line), size=_SIZE, color=ink)
        across, down = made.getsize()
        element = made.svgxml()
        left, top, wide, high = (float(side) for side in element.get("viewBox").split())
        made_svg = made.svg()
        body = made_svg[made_svg.index(">") + 1 : made_svg.rindex("</svg>")]
        parts.append(f'<g transform="translate({-left:g} {height - top:g})">{body}</g>')
        width, height = max(width, wide, across), height + max(high, down) + _FORMULA_GAP
    height -= _FORMULA_GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
        f"{''.join(parts)}</svg>"
    )


def as_mathml(formula: str) -> str:
    """Return the formulas as MathML, which browsers typeset themselves."""
    from latex2mathml import converter

    return "".join(converter.convert(line, display="block") for line in formula.split("\n"))


SCHEME = "picture"  # of the addresses of pictures: ``picture:mask/median``
_ENLARGED, _GAP = 2, 12  # screen pixels of a pixel of a sample, and between before and after


def is_quick(name: str) -> bool:
    """Return whether a picture is drawn at once; others may compile a filter."""
    return name.startswith(("formula/", "level/"))


def render(name: str, ink: str = INK) -> bytes:
    """Return a picture as SVG or as PNG, which begins otherwise.

    - `name`: its address without the scheme.
    - `ink`: colour of the text around it.

    Raises `KeyError` if there is no such picture.
    """
    kind, _, about = name.partition("/")
    match kind:
        case "formula":
            formula: str = filters.get(about).explanation.formula
            return as_svg(formula, ink).encode()
        case "mask":
            drawing = draw(filters.get(about).name, worked_example(about))
            return drawing.svg(ink).encode()
        case "level":
            return of_level(*about.split("/")).svg(ink).encode()
        case "effect":
            return _effect(about)
    raise KeyError(name)


def of_level(device: str, level_id: str) -> Drawing:
    if device == Device.CPU:
        return level_pictures.draw_cpu(filters.levels(device)[level_id])
    return level_pictures.draw(level_pictures.planned_example(level_id))


def _effect(filter_id: str) -> bytes:
    """Return before and after beside each other; the gap is transparent."""
    shown = effect(filter_id)
    sides = [_enlarged(each) for each in (shown.before, shown.after)]
    height = max(side.shape[0] for side in sides)
    gap = np.zeros((height, _GAP, 4), np.uint8)
    joined = np.concatenate([sides[0], gap, sides[1]], axis=1)
    file = io.BytesIO()
    PillowImage.fromarray(joined).save(file, "PNG")
    return file.getvalue()


def _enlarged(pixels: np.ndarray) -> np.ndarray:
    colours = pixels[:, :, None].repeat(3, axis=2) if pixels.ndim == 2 else pixels[:, :, :3]
    opaque = np.dstack([colours, np.full(pixels.shape[:2], 255, np.uint8)])
    return opaque.repeat(_ENLARGED, axis=0).repeat(_ENLARGED, axis=1)
