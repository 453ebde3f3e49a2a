"""The content of a pane: an input, an output, or the difference of an output to another one."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import Incomparable
from kernelscope.engine.result import Result
from kernelscope.engine.stabilising import Sigmas
from kernelscope.gui.model.comparison import NO_REFERENCE, View, like_output, offset_of
from kernelscope.gui.model.display import Display, Viewed, short
from kernelscope.gui.model.history import Reference
from kernelscope.images import reduction
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.images.judging.pictures import GAINS, ZERO, difference, suggest_gain
from kernelscope.images.planes import Position, auto_gain
from kernelscope.images.volume import Volume
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import white_level

_MOST_AT_ONCE = 96 << 20
"""Bytes of a picture that are averaged within a frame; larger ones need another thread."""


class Pyramid:
    """Samples in full size and halved again and again, in stored units.

    A picture that is shown reduced is drawn from the next larger of these, so that it looks
    averaged, not aliased. A change of level, window or colours needs none of them again.

    - `planes`: shape (height, width, channels), not to be written to.
    """

    def __init__(self, planes: NDArray[Any]) -> None:
        self.planes = planes
        self._levels: dict[int, NDArray[Any]] = {0: planes}
        self._lock = threading.Lock()

    @property
    def height(self) -> int:
        return int(self.planes.shape[0])

    @property
    def width(self) -> int:
        return int(self.planes.shape[1])

    def level_for(self, scale: float) -> int:
        wanted = math.floor(-math.log2(scale) + 1e-9)
        largest = math.ceil(math.log2(max(self.height, self.width)))
        return max(0, min(wanted, largest, int(math.log2(reduction.LARGEST_FACTOR))))

    def is_ready(self, level: int) -> bool:
        """Return whether `samples` has the answer at hand, or within a frame."""
        quick = self.planes.nbytes <= _MOST_AT_ONCE and reduction.is_quick(self.planes)
        return level in self._levels or quick

    def samples(self, level: int) -> NDArray[Any]:
        """Return the picture reduced by ``2 ** level``; see `is_ready`."""
        with self._lock:
            if level not in self._levels:
                self._levels[level] = reduction.reduced(self.planes, 1 << level)
            return self._levels[level]

    def aliased(self, level: int) -> NDArray[Any]:
        """Return every ``2 ** level``-th pixel, to be shown until `samples` are there; a view."""
        return self.planes[:: 1 << level, :: 1 << level]

    def prepare(self, scale: float) -> Pyramid:
        """Make the level that is drawn at this scale, on a thread that may take its time."""
        self.samples(self.level_for(scale))
        return self

    def arrays(self) -> list[NDArray[Any]]:
        return [array for level, array in self._levels.items() if level]


_FORMULAS = {View.RESIDUAL: "output – input", View.DIFFERENCE: "output – reference"}


_IN_SIGMAS = 8.0  # sigmas from black to white


@dataclass(frozen=True, eq=False)
class DrawnView:
    """The content of a pane; that of a volume is cut into slices when they are looked at."""

    shown: Viewed | None = None
    """The picture or volume whose values are read off."""
    pyramid: Pyramid | None = None
    """Of a picture: the samples that are drawn at any magnification."""
    offset: int = 0
    """Of a picture: the coordinate of its first row and column beside the input."""
    automatic: Display | None = None
    """The display that the program would choose for `shown`."""
    view: View = View.OUTPUT
    minus: Viewed | None = None
    """Subtracted from `shown`, as the difference is drawn."""
    gain: int = 1
    """How much that is amplified."""
    under: Pyramid | None = None
    """The samples of `minus` of a picture, over which the difference may be drawn."""
    change: Image | None = None  # the difference of pictures as it is drawn, to be saved
    window: float | None = None
    """The difference between black and white that gains are relative to, for floats that are not
    from 0 to 1, or in sigmas."""
    sigmas: Sigmas | None = None
    """Of a volume: they divide the difference, where noise depends on the brightness."""
    problem: str = ""  # why nothing is drawn
    own_levels: Display | None = None
    """The levels of values of another kind than those of the input, such as a map of noise."""
    caption: str = ""  # in place of `title`
    part: Box | None = None  # the voxels that are known, if not all of a slice
    beside: tuple[Volume, ...] | None = None
    """Of a preview of a composite: the other channels, filtered likewise."""

    @property
    def title(self) -> str:
        """The view, with its formula and gain."""
        name = self.view.value.capitalize()
        if self.caption or self.problem or self.shown is None:
            return self.caption or name
        if self.view is View.OUTPUT:
            if isinstance(self.shown, Volume):
                return name
            return f"{name}: {self.shown.width}×{self.shown.height}, {self.shown.mode}"
        formula, unit = _FORMULAS[self.view], ""
        if self.sigmas is not None:
            formula, unit = f"({formula}) / σ of photons and read-out", " σ"
        caption = f"{name}: {formula}, ×{self.gain}"
        if self.window is not None:
            caption += f", up to ±{self.limit(Display(0, self.window)):.3g}{unit}"
        return caption

    @property
    def is_change(self) -> bool:
        return self.minus is not None

    def limit(self, input_: Display) -> float:
        """Return the change that has the last colour; `input_`: the display of the input."""
        width = input_.width if self.window is None else self.window
        if self.window is None and isinstance(self.shown, Image):
            width = white_level(self.shown.pixels.dtype)
        return (255 - ZERO) / 255 * width / self.gain

    def range(self, input_: Display) -> str:
        """Return the values of the first and the last colour, where the title lacks them."""
        if self.own_levels is not None:
            return f"{short(self.own_levels.low)} to {short(self.own_levels.high)}"
        if self.is_change and self.window is None:
            return f"up to ±{self.limit(input_):.3g}"
        return ""

    def at(self, voxel: Position) -> Volume | None:
        """Return the volume, if it has a value at a voxel."""
        has = isinstance(self.shown, Volume) and (self.part is None or self.part.has(voxel))
        return self.shown if has and isinstance(self.shown, Volume) else None


def draw(
    view: View,
    result: Result,
    reference: Reference[Any] | None,
    gain: int | None,
    scale: float = 1.0,
) -> DrawnView:
    """Return a view of a picture, without a `gain` with the one that shows most; takes a while."""
    image, offset = result.image, offset_of(result.request)
    drawn = DrawnView(image, None, offset, Display.automatic(image.planes), view)
    if view is View.OUTPUT:
        return replace(drawn, pyramid=Pyramid(image.planes).prepare(scale))
    if view is View.RESIDUAL:
        other = like_output(result.request.image, result)
    elif reference is None:
        return replace(drawn, problem=NO_REFERENCE)
    else:
        other = like_output(reference.image, result)
    first, second = colours(image.planes), colours(other.planes)
    width = _window_of(result.request.image)
    if width is not None and first.dtype == second.dtype == np.float32:
        first, second = first / np.float32(width), second / np.float32(width)
    try:
        chosen = gain or suggest_gain(first, second)
        change = Image.from_array(difference(first, second, chosen), result.request.image.title)
    except Incomparable as error:
        return replace(drawn, problem=str(error))
    pyramid = Pyramid(change.planes).prepare(scale)
    return replace(
        drawn,
        pyramid=pyramid,
        minus=other,
        gain=chosen,
        under=Pyramid(other.planes),
        change=change,
        window=width,
    )


def draw_volume(
    view: View,
    output: Volume,
    other: Volume | None,
    gain: int | None,
    width: float,
    sigmas: Sigmas | None = None,
) -> DrawnView:
    """Return a view of a volume as `draw`; `other`: to subtract; `width`: from black to white."""
    if view is View.OUTPUT:
        return DrawnView(output)
    if other is None:
        return DrawnView(output, view=view, problem=NO_REFERENCE)
    made = DrawnView(output, view=view, minus=other, gain=gain or 1)
    if sigmas is not None:
        return replace(made, window=_IN_SIGMAS, sigmas=sigmas)
    return made if gain else replace(made, gain=auto_gain(output, other, width, GAINS))


def _window_of(image: Image) -> float | None:
    """Return the width of the display of floats without a white level; None for others."""
    if image.pixels.dtype.kind != "f":
        return None
    display = Display.automatic(image.planes)
    return None if display.is_full(image.pixels.dtype) else display.width
