"""Draws the chosen view of a picture's result: the output, or a difference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelscope.base.errors import Incomparable
from kernelscope.engine.result import Result
from kernelscope.gui.model.comparison import NO_REFERENCE, View, like_output
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.history import Reference
from kernelscope.gui.model.pyramid import Pyramid
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.images.judging.pictures import ZERO, difference, suggest_gain

_FORMULAS = {View.RESIDUAL: "output – input", View.DIFFERENCE: "output – reference"}


@dataclass(frozen=True, eq=False)
class DrawnView:
    """A view, ready for the screen."""

    view: View
    image: Image | None
    """The picture that is drawn, to be saved; None where `problem` says why there is none."""
    pyramid: Pyramid | None  # its samples, drawn at any magnification
    automatic: Display  # the display that the program would choose for the output
    gain: int = 1  # how much differences are amplified
    minus: Image | None = None  # the picture that was subtracted
    window: float | None = None
    """The difference between black and white that gains are relative to, for floats that are not
    from 0 to 1."""
    problem: str = ""

    def title(self, output: Image) -> str:
        """Return a caption; `output` is the result that the view is of."""
        if self.view is View.OUTPUT:
            return f"Output: {output.width}×{output.height}, {output.mode}"
        name = self.view.value.capitalize()
        if self.image is None:
            return name
        caption = f"{name}: {_FORMULAS[self.view]}, ×{self.gain}"
        if self.window is not None:
            caption += f", up to ±{(255 - ZERO) / 255 * self.window / self.gain:.3g}"
        return caption


def draw(
    view: View,
    result: Result,
    reference: Reference[Image] | None,
    gain: int | None,
    scale: float = 1.0,
) -> DrawnView:
    """Return a view of `result`; without a `gain`, with the one that shows most.

    Takes a while for large images: call it off the GUI thread. `scale`: device pixels per pixel
    that it will be drawn at first.
    """
    automatic = Display.automatic(result.image.planes)
    if view is View.OUTPUT:
        pyramid = Pyramid(result.image.planes).prepare(scale)
        return DrawnView(view, result.image, pyramid, automatic)
    if view is View.RESIDUAL:
        other = like_output(result.request.image, result)
    elif reference is None:
        return DrawnView(view, None, None, automatic, problem=NO_REFERENCE)
    else:
        other = like_output(reference.image, result)
    first, second = colours(result.image.planes), colours(other.planes)
    width = _window_of(result.request.image)
    if width is not None and first.dtype == second.dtype == np.float32:
        first, second = first / np.float32(width), second / np.float32(width)
    try:
        chosen = gain or suggest_gain(first, second)
        shown = difference(first, second, chosen)
        image = Image.from_array(shown, result.request.image.title)
    except Incomparable as error:
        return DrawnView(view, None, None, automatic, problem=str(error))
    pyramid = Pyramid(image.planes).prepare(scale)
    return DrawnView(view, image, pyramid, automatic, chosen, other, window=width)


def _window_of(image: Image) -> float | None:
    """Return the difference between black and white as a picture is seen; None if it is usual.

    Floats beyond 0 to 1 have no white level, so differences are amplified relative to that.
    """
    if image.pixels.dtype.kind != "f":
        return None
    display = Display.automatic(image.planes)
    return None if display.is_full(image.pixels.dtype) else display.width
