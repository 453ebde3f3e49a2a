"""The pictures of the generated pages, by the name that a page gives them.

A page has ``![text](picture:mask/median)``. The program draws the bytes of `render`, and the site
puts them into the page::

    formula/median        the formula                               at once
    level/gpu/shared      a level, with the numbers of a plan       at once
    mask/median           a worked example                          runs the filter
    effect/median         a sample before and after the filter      runs the filter
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image as PillowImage

from kernelscope import filters
from kernelscope.schema.devices import Device
from kernelscope.teach.handbook import examples, formulas, level_pictures, mask_pictures
from kernelscope.teach.handbook.svg import INK, Drawing

SCHEME = "picture"
"""Of the addresses of pictures: ``picture:mask/median``."""

_ENLARGED = 2
_GAP = 12
"""Screen pixels of a pixel of a sample, and between before and after."""


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
            return formulas.as_svg(formula, ink).encode()
        case "mask":
            drawing = mask_pictures.draw(filters.get(about).name, examples.worked(about))
            return drawing.svg(ink).encode()
        case "level":
            return _level(*about.split("/")).svg(ink).encode()
        case "effect":
            return _effect(about)
    raise KeyError(name)


def _level(device: str, level_id: str) -> Drawing:
    level = filters.levels(device)[level_id]
    if device == Device.CPU:
        return level_pictures.draw_cpu(level)
    spec = level_pictures.example_of(level_id)
    own = next(each for each in spec.levels(device) if each.id == level_id)
    return level_pictures.draw(level_pictures.planned(spec, own))


def _effect(filter_id: str) -> bytes:
    """Return before and after beside each other; the gap is transparent."""
    shown = examples.effect(filter_id)
    sides = [_enlarged(each) for each in (shown.before, shown.after)]
    height = max(side.shape[0] for side in sides)
    gap = np.zeros((height, _GAP, 4), np.uint8)
    joined = np.concatenate([sides[0], gap, sides[1]], axis=1)
    file = io.BytesIO()
    PillowImage.fromarray(joined).save(file, "PNG")
    return file.getvalue()


def _enlarged(pixels: np.ndarray) -> np.ndarray:
    """Return opaque RGBA of grey or RGB pixels, each a small square."""
    colours = pixels[:, :, None].repeat(3, axis=2) if pixels.ndim == 2 else pixels[:, :, :3]
    opaque = np.dstack([colours, np.full(pixels.shape[:2], 255, np.uint8)])
    return opaque.repeat(_ENLARGED, axis=0).repeat(_ENLARGED, axis=1)
