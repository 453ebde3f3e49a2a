"""Input and output side by side or one over the other, panned and zoomed together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSizeF, Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from kernelscope.gui.model.arrangement import Arrangement
from kernelscope.gui.model.colour_maps import ColourMap
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.model.pyramid import Pyramid
from kernelscope.gui.session.canvas_view import DRAWN, PANES, SEEN
from kernelscope.gui.session.picture_view import PictureView
from kernelscope.gui.viewer.camera import PictureCamera
from kernelscope.gui.viewer.image_view import ImageView, text_of, words_of
from kernelscope.gui.viewer.layer import Layer
from kernelscope.gui.viewer.marks import ProbeLine
from kernelscope.gui.viewer.picture_canvas import Probe
from kernelscope.gui.viewer.tools import Overlay, Tool
from kernelscope.images.image import Image

_LEVEL_DRAG = 1 / 300  # share of the window by which one pixel of a drag changes it, as for volumes


class ImagePair(QWidget):
    """Input and output, with one camera for both.

    `reference`: a picture whose values under the cursor are shown too. `view`: how the two are
    drawn and arranged. `names` is written at the divide and beside values; to be set before the
    pictures.
    """

    described = Signal(str)
    """Position and values under the cursor; empty when there are none."""
    zoomed = Signal(float)
    """Device pixels per picture pixel; also when other parts of the pictures are in view."""
    wanted = Signal(object, int)
    """`Pyramid, int`: A level is to be made on another thread; call `redraw` then."""

    def __init__(self, parent: QWidget | None = None, state: PictureView | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("images")
        self.view = state or PictureView()
        self.input = ImageView(PaneSide.INPUT, "Input", "Open a picture (Ctrl+O) or drop one here")
        self.output = ImageView(PaneSide.OUTPUT, "Output", "Press Run (F5)")
        self.reference: Image | None = None
        self.names = "Input", "Output"
        self.camera = PictureCamera()
        self._views = (self.input, self.output)
        self._overlays: list[Overlay] = []
        self._divide = 0.5
        self._ordered: set[tuple[Pyramid, int]] = set()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        for view in self._views:
            row.addWidget(view, 1)
            view.resized.connect(self._apply_camera)
            self._connect(view)
        self.output.patched.connect(self._on_patched)
        self.view.when({DRAWN}, self._apply_displays)
        self.view.when({PANES}, self._arrange)

    def _connect(self, view: ImageView) -> None:
        canvas = view.canvas
        canvas.values = self._cell
        canvas.panned.connect(self._pan)
        canvas.zoomed.connect(self._zoom)
        canvas.levelled.connect(lambda right, up: self.level(canvas.side, right, up))
        canvas.divided.connect(self.set_divide)
        canvas.hovered.connect(self._hover)
        canvas.probed.connect(self.move_probe)
        canvas.held.connect(self.view.hold_input)
        canvas.chosen.connect(self.fit)
        canvas.wanted.connect(self._order)

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
            self.view.displays.show_input(image, automatic, follows=follows)
            self.input.show_picture(image, pyramid, 0, title, details)
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
            self.view.displays.show_output(image, automatic)
            self.output.show_picture(image, pyramid, offset, *caption)
            assert self.output.layer is not None
            self.output.layer.minus = minus

    def _on_patched(self, image: Image) -> None:
        """Draw a region of a result, of which no other part may be known."""
        layer = self.output.layer
        with self.view.changing(DRAWN):
            if layer is not None and layer.image is None:
                self.view.displays.show_output(image, Display.full(image.pixels.dtype))

    def clear_output(self) -> None:
        """Show the first hint in place of an output."""
        with self.view.changing(DRAWN):
            self.view.displays.show_output(None, None)
            self.output.clear()

    def set_running(self, running: bool) -> None:
        """Show in place of an output whether it is being computed."""
        self.output.set_running(running)

    def redraw(self) -> None:
        """Draw the visible part again."""
        for view in self._views:
            view.canvas.redraw()

    def _order(self, pyramid: Pyramid, level: int) -> None:
        """Pass on that a level is wanted, once."""
        if (pyramid, level) not in self._ordered:
            self._ordered = {(pyramid, level)}
            self.wanted.emit(pyramid, level)

    # --- displays ---

    def _apply_displays(self) -> None:
        """Draw the pictures as `view` says."""
        for side, view in ((PaneSide.INPUT, self.input), (PaneSide.OUTPUT, self.output)):
            display, layer = self.view.displays.of(side), view.layer
            if layer is None:
                continue
            if layer.minus is not None:
                grey = layer.minus.is_grey
                layer.display = Display(
                    0, 255, 1, self.view.difference_map if grey else ColourMap.GREY
                )
            elif display is not None:
                layer.display = display
        self._compose()
        self._describe()

    def level(self, side: PaneSide, right: float, up: float) -> None:
        """Widen the window by a drag to the right, lower the level by one upwards, in pixels."""
        display = self.view.displays.of(side)
        if display is None:
            return
        step = display.width * _LEVEL_DRAG
        level, width = display.level - up * step, max(display.width + right * step, step)
        self.view.choose_display(side, display.spanning(level - width / 2, level + width / 2))

    # --- arrangement ---

    def _arrange(self) -> None:
        """Arrange input and output, and their values, as `view` says."""
        panes = self.view.panes
        self.input.setVisible(panes.arrangement is Arrangement.SIDE_BY_SIDE)
        for each in self._views:
            each.canvas.magnified = panes.magnified
        self._compose()
        self._apply_camera()
        self._describe()
        self.redraw()

    def set_divide(self, share: float) -> None:
        """Move the line between input and output."""
        self._divide = min(max(share, 0.0), 1.0)
        self._compose()

    def _compose(self) -> None:
        """Give each canvas the pictures that it draws."""
        first, second = self.input.canvas, self.output.canvas
        first.front = self.input.layer
        arrangement = self.view.panes.arrangement
        instead = self.view.shows_input and not self.output.is_empty
        second.front = self.input.layer if instead else self.output.layer
        divided = arrangement.is_divided and not instead
        second.behind = self.input.layer if divided else None
        second.arrangement = arrangement
        second.divide = self._divide
        second.name = self.names[0] if instead else ""
        second.names = self.names
        for view in self._views:  # a result leaves the input as it was drawn
            view.canvas.refresh()

    # --- overlays and tools ---

    def add_overlay(self, overlay: Overlay) -> None:
        """Draw over the pictures from now on; call `update_overlays` after each change."""
        self._overlays = [*self._overlays, overlay]
        for view in self._views:
            view.canvas.overlays = self._overlays
        self.update_overlays()

    def update_overlays(self) -> None:
        for view in self._views:
            view.canvas.update()

    def set_tool(self, tool: Tool | None) -> None:
        """Give the left button and the keys to a tool; None gives them back."""
        for view in self._views:
            view.canvas.set_tool(tool)

    # --- camera ---

    def in_view(self) -> tuple[QRectF, None]:
        """Return the part of the input that is in view; pictures have no planes."""
        return self.visible(), None

    def visible(self) -> QRectF:
        """Return the part of the input that is in view, in its pixels."""
        if self.input.layer is None:
            return QRectF()
        return self.output.canvas.seen().intersected(self.input.layer.area)

    def fitting_scale(self, image: Image) -> float:
        """Return the device pixels per pixel of a picture when it is fitted."""
        camera = PictureCamera()
        sizes, ratio = self._sizes(), self.devicePixelRatioF()
        camera.fit(QSizeF(image.width, image.height), sizes, ratio)
        return camera.scale * ratio

    @property
    def device_scale(self) -> float:
        """Device pixels per pixel of the picture."""
        return self.camera.scale * self.devicePixelRatioF()

    def fit(self) -> None:
        """Show the whole picture, and keep doing so when the window is resized."""
        self.camera.fitted = True
        self._apply_camera()

    def one_to_one(self) -> None:
        """Show each pixel of the picture as exactly one of the screen."""
        self.camera.look_at(self.camera.centre, 1 / self.devicePixelRatioF())
        self._settle()

    def zoom_in(self) -> None:
        self._zoom(1, self.camera.centre)

    def zoom_out(self) -> None:
        self.camera.zoom(-1, self.camera.centre, self.devicePixelRatioF())
        self._settle()

    def look_at(self, centre: QPointF, scale: float) -> None:
        """Show the surroundings of a point of the picture, magnified by `scale`."""
        self.camera.look_at(centre, scale)
        self._apply_camera()

    def _settle(self) -> None:
        if self.input.layer is not None:
            self.camera.settle(self.input.layer.area, self._sizes())
        self._apply_camera()

    def _zoom(self, notches: float, fixed: QPointF) -> None:
        self.camera.zoom(notches, fixed, self.devicePixelRatioF())
        self._apply_camera()

    def _pan(self, offset: QPointF) -> None:
        if self.input.layer is not None:
            self.camera.pan(offset, self.input.layer.area)
            self._apply_camera()

    def _sizes(self) -> list[QSizeF]:
        side_by_side = self.view.panes.arrangement is Arrangement.SIDE_BY_SIDE
        views = self._views if side_by_side else (self.output,)
        return [view.canvas_size for view in views]

    def _apply_camera(self) -> None:
        sizes = self._sizes()
        if any(size.isEmpty() for size in sizes):
            return
        if self.camera.fitted and self.input.image is not None:
            image = self.input.image
            size = QSizeF(image.width, image.height)
            self.camera.fit(size, sizes, self.devicePixelRatioF())
        for view in self._views:
            view.set_camera(self.camera.centre, self.camera.scale)
        seen = self.visible()
        with self.view.changing(SEEN):
            self.view.seen = seen.left(), seen.top(), seen.right(), seen.bottom()
            self.view.scale = self.device_scale
        self.zoomed.emit(self.device_scale)

    # --- probe ---

    def move_probe(self, right: int, down: int) -> None:
        """Move the probe by pixels, from the middle of the view where there is none."""
        image = self.input.image
        if image is None:
            return
        if self.view.place is None:
            centre = self.camera.centre
            self.view.place = math.floor(centre.x()), math.floor(centre.y())
            right = down = 0
        x = min(max(self.view.place[0] + right, 0), image.width - 1)
        y = min(max(self.view.place[1] + down, 0), image.height - 1)
        self.view.place = x, y
        self._describe()

    def _hover(self, position: QPointF | None) -> None:
        self.view.place = None
        if position is not None:
            self.view.place = math.floor(position.x()), math.floor(position.y())
        self._describe()

    def _describe(self) -> None:
        """Mark the probe in both pictures and write their values there."""
        values = self._values()
        if self.view.place is None or not values:
            for view in self._views:
                view.canvas.set_probe(None)
            self.described.emit("")
            return
        x, y = self.view.place
        display = self._display_text()
        text = "   ".join([f"x {x}, y {y}", *(f"{name} {value}" for name, value in values)])
        self.described.emit(f"{text}   {display}" if display else text)
        for view in self._views:
            lines = [ProbeLine(f"x {x}, y {y}", "")]
            own = (
                "" if self.view.panes.arrangement.is_divided else self._spoken[view is self.output]
            )
            lines += [ProbeLine(name, value, name == own) for name, value in values]
            if display:
                lines.append(ProbeLine(display, ""))
            view.canvas.set_probe(Probe(x, y, tuple(lines) if self.view.panes.shows_values else ()))

    def _values(self) -> list[tuple[str, str]]:
        """Return the names and values of the pictures at the probe."""
        if self.view.place is None:
            return []
        before, after = (view.samples_at(*self.view.place) for view in self._views)
        values = zip(self._spoken, (before, after), strict=True)
        texts = [
            (name, text_of(samples, self.view.panes.units))
            for name, samples in values
            if samples is not None
        ]
        if self.reference is not None and before is not None:
            texts.append(("reference", self._reference_text(*self.view.place)))
        return texts

    @property
    def _spoken(self) -> tuple[str, str]:
        """The names within a line of text."""
        first, second = (name[:1].lower() + name[1:] for name in self.names)
        return first, second

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
            named = zip(self._spoken, texts, strict=True)
            return ", ".join(f"{name}: {text or 'display 1:1'}" for name, text in named)
        return texts[0] if texts else ""

    def _cell(self, layer: Layer, x: int, y: int) -> list[str]:
        """Return the values to write into a pixel."""
        samples = layer.samples_at(x, y)
        if samples is None:
            return []
        if layer.minus is None:
            return words_of(samples, self.view.panes.units)
        return _change(samples, layer.minus.planes[y - layer.offset, x - layer.offset])


def _change(samples: NDArray[Any], other: NDArray[Any]) -> list[str]:
    """Return the signed differences of two pixels, without alpha, as texts."""
    change = (samples.astype(np.float64) - other)[: 3 if samples.size >= 3 else 1]
    return [f"{value:+.4g}" if value else "0" for value in change]
