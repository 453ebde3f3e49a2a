"""The parts that pages share: controls, cards, plans, results, quoted figures, and the board.

Plans are the same that a run uses; results are those of the program's own filters on the processor.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage

from kernelscope import filters
from kernelscope.bench.figures import SOURCES, SPEED_UP, PublishedFigure, all_figures
from kernelscope.engine.step import Step
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import CudaPlan, Launch, planned
from kernelscope.schema.levels import Level
from kernelscope.schema.parameters import Choice, ChoiceParameter, OddParameter
from kernelscope.teach.handbook import pictures
from kernelscope.teach.handbook.svg import ACCENT, INK, Drawing
from kernelscope.traffic.gpus import GPUS, Limits

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

    def svg(self, ink: str = INK, letters: float = 1) -> str:
        """Return the drawing; Qt finds embedded pictures by the older attribute ``xlink:href``."""
        names = '<svg xmlns:xlink="http://www.w3.org/1999/xlink" '
        return super().svg(ink, letters).replace("<svg ", names, 1)

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


_NAMES = ("H100", "GeForce RTX 2080 Ti", "GeForce GTX 660 Ti", "GeForce GTX 480")

SHOWN = {
    (name := each.name.removeprefix("GeForce ")): replace(each, name=name)
    for each in reversed(GPUS)
    if each.name in _NAMES
}
"""The project's own and those of sources M, N and V, by the name that the pages give."""


def limits_of(card: str) -> Limits:
    limits = SHOWN[card].limits
    assert limits is not None
    return limits


_BLOCKS = ((8, 8), (16, 16), (32, 4), (32, 8), (32, 16), (32, 32))

BLOCK = ChoiceParameter(
    name="block",
    label="Block",
    help="Threads of a block in x and y",
    default="32x8",
    choices=tuple(Choice(f"{x}x{y}", f"{x}×{y} threads") for x, y in _BLOCKS),
)

CARD = ChoiceParameter(
    name="card",
    label="Card",
    help="The card whose data the page uses",
    default="H100",
    choices=tuple(Choice(name, name) for name in SHOWN),
)


def side(default: int, most: int = 15) -> OddParameter:
    return OddParameter(
        name="size",
        label="Mask size",
        help="Side of the square mask, in pixels",
        default=default,
        minimum=3,
        maximum=most,
    )


def block_of(text: str) -> tuple[int, int]:
    columns, _, rows = text.partition("x")
    return int(columns), int(rows)


def plan_of(
    filter_id: str,
    level: Level,
    shape: tuple[int, ...],
    parameters: Mapping[str, Any],
    *,
    block: tuple[int, int] | None = None,
) -> CudaPlan:
    """Return the plan of a filter at a level for a picture of bytes, other values by default."""
    step = Step.of_numbers(filter_id, parameters)
    border, values, dtype = step.border, step.parameters, np.dtype(np.uint8)
    return planned(step.filter, shape, dtype, values, border, level.id, block)[1]


def launch_of(
    filter_id: str,
    level: Level,
    shape: tuple[int, ...],
    parameters: Mapping[str, Any],
    *,
    block: tuple[int, int] | None = None,
) -> Launch:
    """Return the launch of the plan that does most of the work."""
    plan = plan_of(filter_id, level, shape, parameters, block=block)
    return max(plan.launches, key=lambda each: each.operations_per_sample)


def filtered(
    pixels: NDArray[np.uint8],
    filter_id: str,
    parameters: Mapping[str, Any],
    border: Border | None = None,
) -> NDArray[np.uint8]:
    source = Image.from_array(np.ascontiguousarray(pixels))
    return pictures.filtered(source, Step.of_numbers(filter_id, parameters, border=border))


def published(source: str, **about: Any) -> tuple[PublishedFigure, ...]:
    """Return the figures of a source whose attributes have the values in `about`."""
    return tuple(
        figure
        for figure in all_figures()
        if figure.source == source
        and all(getattr(figure, name) == value for name, value in about.items())
    )


def quote(figure: PublishedFigure) -> str:
    """Return a figure in words: ``Mean 3×3, 256×256, shared: 0.01069 ms``."""
    size = "×".join(str(side) for side in reversed(figure.shape))
    spec = filters.get(figure.filter)
    words = [spec.name]
    if figure.mask_side:
        words.append(f"{figure.mask_side}×{figure.mask_side}")
    words += [
        parameter.brief(parameter.parse(figure.parameters[parameter.name]))
        for parameter in spec.parameters
        if parameter.name in figure.parameters
    ]
    variant = figure.variant.replace("gpu", "GPU")
    over = " as fast as serial code" if figure.quantity == SPEED_UP else ""
    text = f"{', '.join(words)}, {size}, {variant}: {figure.amount()}{over}"
    return f"{text} [{figure.remark}]" if figure.remark else text


def credits(figures: Iterable[PublishedFigure]) -> tuple[str, ...]:
    """Return, for each source of some figures, its letter, author, year and hardware."""
    letters = dict.fromkeys(figure.source for figure in figures)
    return tuple(f"{letter}: {SOURCES[letter].describe()}" for letter in letters)
