"""The drawings of the lecture: parts of pictures and bars, in one size for all pages."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage

from kernelscope.teach.handbook.svg import ACCENT, INK, Drawing

WIDTH, HEIGHT = 660, 440  # of every drawing, so that letters have one size on all pages

STRONG = "#c94d00"
"""Marks cells on a picture; readable on light and dark grounds, as `ACCENT` is."""

_LEAST_ENLARGED = 640
"""Pixels that an embedded picture has at least a side: painters smooth small ones."""


@dataclass(frozen=True)
class Bar:
    label: str
    value: float
    text: str
    fill: str = ACCENT
    hatched: bool = False
    """Drawn as an outline: of another kind than the others, whatever the colours."""


class Board(Drawing):
    """A drawing of `WIDTH` by `HEIGHT` with pictures and bars."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.width, self.height = float(WIDTH), float(HEIGHT)

    def svg(self, ink: str = INK) -> str:
        """Return the drawing; Qt finds embedded pictures by the older attribute ``xlink:href``."""
        names = '<svg xmlns:xlink="http://www.w3.org/1999/xlink" '
        return super().svg(ink).replace("<svg ", names, 1)

    def picture(
        self, x: float, y: float, width: float, height: float, pixels: NDArray[np.uint8]
    ) -> None:
        """Draw grey or RGB pixels; each is a rectangle, not smoothed where they are large."""
        times = max(1, -(-_LEAST_ENLARGED // max(pixels.shape[:2])))
        large = pixels.repeat(times, axis=0).repeat(times, axis=1)
        file = io.BytesIO()
        PillowImage.fromarray(large).save(file, "PNG")
        data = base64.b64encode(file.getvalue()).decode()
        self._add(
            f'<image x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
            f'preserveAspectRatio="none" '
            f'xlink:href="data:image/png;base64,{data}"/>',
            x + width,
            y + height,
        )

    def fitted(
        self, x: float, y: float, side: tuple[float, float], pixels: NDArray[np.uint8]
    ) -> tuple[float, float, float]:
        """Draw pixels as large as there is room; return the corner and the size of a pixel."""
        rows, columns = pixels.shape[:2]
        cell = min(side[0] / columns, side[1] / rows)
        self.picture(x, y, cell * columns, cell * rows, pixels)
        return x, y, cell

    def frame(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        stroke: str = STRONG,
        thickness: float = 2,
        dashed: bool = False,
    ) -> None:
        self.rectangle(x, y, width, height, stroke="#ffffff", thickness=thickness + 2)
        self.rectangle(x, y, width, height, stroke=stroke, thickness=thickness, dashed=dashed)

    def heading(self, x: float, y: float, text: str, note: str = "") -> None:
        self.text(x, y, text, bold=True, size=14)
        if note:
            self.text(x, y + 17, note, size=12)

    def bars(self, x: float, y: float, width: float, bars: Sequence[Bar]) -> None:
        """Draw bars below each other, from zero, on one scale: label above, value behind."""
        most = max((bar.value for bar in bars), default=0) or 1
        room = width - 8 - max((7.8 * len(bar.text) for bar in bars), default=0)
        for number, bar in enumerate(bars):
            top = y + number * 46
            length = max(room * bar.value / most, 1)
            self.text(x, top + 12, bar.label, size=13)
            self.rectangle(
                x,
                top + 18,
                length,
                16,
                fill="none" if bar.hatched else bar.fill,
                stroke=bar.fill,
                thickness=1.5,
                dashed=bar.hatched,
            )
            self.text(x + length + 6, top + 31, bar.text, size=13, bold=True)
