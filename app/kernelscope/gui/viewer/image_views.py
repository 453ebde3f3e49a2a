"""Input and output side by side or one over the other, panned and zoomed together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtWidgets import QHBoxLayout, QWidget

from kernelscope.gui.model.arrangement import Arrangement
from kernelscope.gui.model.camera import Point
from kernelscope.gui.model.colour_maps import ColourMap
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.model.pyramid import Pyramid
from kernelscope.gui.session.canvas_view import DRAWN, CanvasView
from kernelscope.gui.viewer.image_view import ImageView, text_of, words_of
from kernelscope.gui.viewer.layer import Layer
from kernelscope.gui.viewer.pair_view import PairView, Reading
from kernelscope.images.image import Image


class ImagePair(PairView):
    """Input and output of a picture, side by side or one over the other.

    `reference`: a picture whose values under the cursor are shown too.
    """

    input: ImageView
    output: ImageView

    def __init__(self, parent: QWidget | None = None, state: CanvasView | None = None) -> None:
        hint = "Open a picture (Ctrl+O) or drop one here"
        panes = (
            ImageView(PaneSide.INPUT, "Input", hint),
            ImageView(PaneSide.OUTPUT, "Output", "Press Run (F5)"),
        )
        super().__init__(state or CanvasView(), panes, parent)
        self.setObjectName("images")
        self.reference: Image | None = None
        self._views = panes
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        for view in self._views:
            row.addWidget(view, 1)
            view.canvas.values = self._cell
            view.canvas.chosen.connect(self.fit)
        self.output.patched.connect(self._on_patched)
        self.view.when({DRAWN}, self._apply_displays)

    # --- pictures ---

    def show_input(
        self,
        image: Image,
        pyramid: Pyramid,
        automatic: Display,
        title: str,
        details: str,
        *,
        follows: bool,
    ) -> None:
        """Show a picture as the input; see `Displays.show_input`."""
        with self.view.changing(DRAWN):
            self.view.displays.remember(image, automatic)
            self.view.displays.show_input(image, follows=follows)
            self.input.show_picture(image, pyramid, 0, title, details)
            self.view.camera.show([(image.width, image.height)])
            self.fit()

    def show_output(
        self,
        image: Image,
        pyramid: Pyramid | None,
        automatic: Display,
        offset: int,
        caption: tuple[str, str, str],
        minus: Image | None = None,
    ) -> None:
        """Show the output, or its difference to a picture `minus`.

        `caption`: title, details, and details in brief.
        """
        with self.view.changing(DRAWN):
            self.view.displays.remember(image, automatic)
            self.view.displays.show_output(image)
            self.output.show_picture(image, pyramid, offset, *caption)
            assert self.output.layer is not None
            self.output.layer.minus = minus.planes if minus is not None else None

    def _on_patched(self, image: Image) -> None:
        """Draw a region of a result, of which no other part may be known."""
        layer = self.output.layer
        with self.view.changing(DRAWN):
            if layer is not None and layer.planes is None:
                self.view.displays.remember(image, Display.full(image.pixels.dtype))
                self.view.displays.show_output(image)

    def clear_output(self) -> None:
        """Show the first hint in place of an output."""
        with self.view.changing(DRAWN):
            self.view.displays.show_output(None)
            self.output.clear()

    # --- displays ---

    def _apply_displays(self) -> None:
        """Draw the pictures as `view` says."""
        for side, view in ((PaneSide.INPUT, self.input), (PaneSide.OUTPUT, self.output)):
            display, layer = self.view.displays.of(side), view.layer
            if layer is None:
                continue
            if layer.minus is not None:
                grey = layer.minus.shape[2] < 3
                layer.display = Display(
                    0, 255, 1, self.view.difference_map if grey else ColourMap.GREY
                )
            elif display is not None:
                layer.display = display
        self._compose()
        self._describe()

    # --- arrangement ---

    def _show_panes(self) -> None:
        self.input.setVisible(self.view.panes.arrangement is Arrangement.SIDE_BY_SIDE)

    def _compose(self) -> None:
        instead, first, second = self.shows_input_instead, self.input, self.output
        front, behind = first.layer if instead else second.layer, None
        if self.is_divided:
            behind = first.layer
        second.canvas.name = self.names[0] if instead else ""
        # A result leaves the input as it was drawn.
        first.canvas.show_layers(first.layer, None, self.view, self.names)
        second.canvas.show_layers(front, behind, self.view, self.names)

    # --- camera ---

    @property
    def _middles(self) -> Mapping[int, Point]:
        return {0: self.view.camera.centre()}

    def in_view(self) -> tuple[QRectF, None]:
        return self.visible(), None

    def visible(self) -> QRectF:
        """Return the part of the input that is in view, in its pixels."""
        if self.input.layer is None:
            return QRectF()
        return self.output.canvas.seen().intersected(self.input.layer.area)

    def fitting_scale(self, image: Image) -> float:
        """Return the device pixels per pixel of a picture when it is fitted."""
        camera = self.view.camera
        if not self.lay_out_camera():
            return 1.0
        return camera.fitting_scale([(image.width, image.height)]) * self.devicePixelRatioF()

    # --- probe ---

    def focus(self) -> None:
        self.output.canvas.setFocus()

    def _size(self, number: int) -> tuple[int, int]:
        image = self.input.image
        return (image.width, image.height) if image is not None else (0, 0)

    def _start(self, number: int) -> tuple[int, int]:
        x, y = self.view.camera.centre()
        return math.floor(x), math.floor(y)

    def _read(self, number: int, pixel: tuple[int, int]) -> Reading | None:
        before, after = (view.samples_at(*pixel) for view in self._views)
        values = [
            (name, text_of(samples, self.view.panes.units))
            for name, samples in zip(self.spoken, (before, after), strict=True)
            if samples is not None
        ]
        if self.reference is not None and before is not None:
            values.append(("reference", self._reference_text(*pixel)))
        x, y = pixel
        return (
            Reading(f"x {x}, y {y}", values, self.spoken, self._display_text()) if values else None
        )

    def _reference_text(self, x: int, y: int) -> str:
        image = self.reference
        assert image is not None
        if not (0 <= x < image.width and 0 <= y < image.height):
            return "–"
        return text_of(np.asarray(image.planes[y, x]), self.view.panes.units)

    def _display_text(self) -> str:
        """Return how pictures are drawn, unless values are drawn as they are."""
        texts = []
        for side, view in ((PaneSide.INPUT, self.input), (PaneSide.OUTPUT, self.output)):
            display = self.view.displays.of(side)
            image = view.image
            if display is not None and image is not None:
                full = display.is_full(image.pixels.dtype)
                texts.append("" if full else display.describe())
        if len(texts) == 2 and texts[0] != texts[1]:
            named = zip(self.spoken, texts, strict=True)
            return ", ".join(f"{name}: {text or 'display 1:1'}" for name, text in named)
        return texts[0] if texts else ""

    def _cell(self, layer: Layer, x: int, y: int) -> list[str]:
        """Return the values to write into a pixel."""
        samples = layer.samples_at(x, y)
        if samples is None:
            return []
        if layer.minus is None:
            return words_of(samples, self.view.panes.units)
        return change_words(samples, layer.minus[y - layer.offset, x - layer.offset])


def change_words(samples: NDArray[Any], other: NDArray[Any]) -> list[str]:
    """Return the signed differences of two pixels, without alpha, as texts."""
    change = (samples.astype(np.float64) - other)[: 3 if samples.size >= 3 else 1]
    return [f"{value:+.4g}" if value else "0" for value in change]
