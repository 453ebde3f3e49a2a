"""The mask at work, as a drawing: a patch with its window, the mask, and the result."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.schema.explanation import number
from kernelscope.teach.handbook.examples import Worked
from kernelscope.teach.handbook.svg import ACCENT, INK, Drawing

_CELL = 34
_TOP = 26
"""Pixels of a cell, and the room for the heading of a grid."""

_GAP = 46
_MOST_MASK_CELLS = 9
"""Side of the largest mask whose weights are drawn."""


def draw(name: str, worked: Worked) -> Drawing:
    """Return the drawing of a worked example of the filter called `name`."""
    y, x = worked.middle
    found = _number(worked.result[y, x])
    about = f"{name}, worked example: the middle {_number(worked.patch[y, x])} becomes {found}."
    drawing = Drawing(about)
    middle = _TOP + worked.patch.shape[0] * _CELL / 2
    left = _grid(drawing, 0, "input", worked.patch, worked.radius)
    for place, (label, weights) in enumerate(worked.masks.items()):
        if len(weights) <= _MOST_MASK_CELLS:
            sign = "," if place else "×"
            drawing.text(left + _GAP / 2, middle + 6, sign, size=20, anchor="middle")
            left = _weights(drawing, left + _GAP, middle, label, weights)
    drawing.arrow(left + 8, middle, left + _GAP - 8, middle)
    _grid(drawing, left + _GAP, "result", worked.result, 0)
    return drawing


def _number(sample: Any) -> str:
    """Return a sample, or the samples of a pixel, for a cell."""
    values = np.atleast_1d(sample)
    return ", ".join(f"{round(float(value))}" for value in values)


def _grid(drawing: Drawing, left: float, heading: str, samples: NDArray[Any], radius: int) -> float:
    """Draw samples in their own brightness, the window marked; return the right end."""
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
