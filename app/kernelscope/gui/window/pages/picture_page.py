"""Pictures in the window: the input, its output or a difference, and their reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from PySide6.QtCore import QRectF
from PySide6.QtWidgets import QVBoxLayout, QWidget

from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.gui.model.comparison import Judged, View, judge_both, offset_of, with_reference
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.model.figure import Figure
from kernelscope.gui.model.figure_content import caption_of, of_pictures, region_in_view
from kernelscope.gui.model.histogram_plot import fine_histogram
from kernelscope.gui.model.history import Moment, Reference, ReferenceOrigin
from kernelscope.gui.model.pyramid import Pyramid
from kernelscope.gui.model.run_settings import RunSettings
from kernelscope.gui.model.sketches import ViewedPicture
from kernelscope.gui.viewer.drawing import DrawnView, draw
from kernelscope.gui.viewer.image_view import ImageView
from kernelscope.gui.viewer.image_views import ImagePair
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.window.pages.evaluation import Evaluation, Savable
from kernelscope.gui.window.pages.page import Page
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.images.reduction import is_compiled
from kernelscope.schema.samples import Kind

_Input: TypeAlias = tuple[Pyramid, Display]
"""An input as it is drawn, and the display that the program would choose for it."""

_AT_ONCE = 1 << 22
"""Pixels of an output that is drawn without a thread: starting one takes longer."""


class PicturePage(Page[Image, Image]):
    """Input on the left, output or a difference on the right.

    Pictures are drawn off the GUI thread, so that the previous one stays until the next one
    is there; `show_moment` therefore returns early.

    Attributes
    ----------
    images : ImagePair
    drawing : DrawnView or None
        The view on the right.
    """

    kind = Kind.PICTURE

    def __init__(
        self,
        background: Background,
        report: Callable[[Exception], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(background, report, parent)
        self.setObjectName("picturePage")
        set_help(self, "window#looking")
        self._shown = self.history, self.history.state
        """The history of the picture on the screen, and its state when that was drawn."""
        self.drawing: DrawnView | None = None
        self.images = ImagePair(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.images)
        self.images.described.connect(self.described)
        self.images.zoomed.connect(lambda zoom: self.zoomed.emit(f"{100 * zoom:.0f} %"))
        self.images.displayed.connect(self.displayed)
        self.images.wanted.connect(self._reduce)

    @property
    def part(self) -> Image:
        return self.moment.source

    @property
    def canvas(self) -> ImagePair:
        return self.images

    @property
    def output_pane(self) -> ImageView:
        return self.images.output

    @property
    def is_behind(self) -> bool:
        return self.source is not self.images.input.image

    def take_focus(self) -> None:
        self.images.output.canvas.setFocus()

    # --- input and runs ---

    def takes(self, opened: object) -> bool:
        return isinstance(opened, Image)

    def open_part(self, opened: Image) -> None:
        references = {}
        reference = self.reference
        if reference is not None and reference.origin in (
            ReferenceOrigin.CHOSEN,
            ReferenceOrigin.KEPT,
        ):
            # One that was chosen may be meant for this picture too.
            references[opened] = Reference(reference.image, ReferenceOrigin.KEPT)
        self._open(Moment(opened, f"Open {opened.title}", references=references))

    def _push(self, moment: Moment[Image, Image]) -> None:
        had_none = self.reference is None
        super()._push(moment)
        if had_none and self.reference is not None:
            self.referenced.emit()

    def request(self, settings: RunSettings, *, of_slice: bool = False) -> Request:
        return settings.request(self.moment.source)

    def with_reference(self, request: Request) -> Request:
        return with_reference(request, self.reference)

    def visible_part(self, request: Request) -> Region | None:
        """Return the part of the result of `request` that the view shows; None for none."""
        if self._view is not View.OUTPUT:
            return None
        seen, offset = self.images.visible(), offset_of(request)
        height, width = request.whole_shape[:2]
        left, right = _overlap(seen.left() - offset, seen.right() - offset, width)
        top, bottom = _overlap(seen.top() - offset, seen.bottom() - offset, height)
        if left >= right or top >= bottom:
            return None
        return Region(top, left, bottom - top, right - left)

    def visible_parts(self, request: Request) -> tuple[Region, ...]:
        part = self.visible_part(request)
        return () if part is None else (part,)

    def display_of(self, request: Request) -> Display:
        """Return how the input is drawn, for other pictures of its kind."""
        shown = self.images.displays.of(PaneSide.INPUT)
        return shown or Display.automatic(request.image.planes)

    def scene(self) -> ViewedPicture | None:
        if self.source is None:
            return None
        seen, width, height = self.images.visible(), self.source.width, self.source.height
        middle = seen.intersected(QRectF(0, 0, width, height)).center()
        return ViewedPicture(self.source, (int(middle.x()), int(middle.y())), self.source)

    def display_of_scene(self, scene: ViewedPicture) -> Display:
        return self.images.displays.of(PaneSide.INPUT) or super().display_of_scene(scene)

    def reduction(self) -> int:
        return max(1, math.floor(1 / self.images.device_scale))

    def show_preview(self, result: Result) -> bool:
        if self.visible_part(result.request) is None:
            return False
        region = result.request.region
        if not isinstance(region, Region):
            region = Region.all_of(result.request.whole_shape)
        self.previewed = result.request
        self.images.output.show_region(
            region,
            result.image,
            offset_of(result.request),
            f"{result.where}, {result.settings}",
            result.caption,
        )
        return True

    def warm_up_request(self, settings: RunSettings) -> Request | None:
        return self.request(settings) if self.source is not None else None

    def _references_of(
        self, result: Result, known: Moment[Image, Image]
    ) -> Mapping[Image, Reference[Image]]:
        """Return the reference that the run was evaluated against."""
        reference = result.request.reference
        if not isinstance(reference, Image):
            return {}
        return {known.source: Reference(reference, ReferenceOrigin.CHOSEN)}

    # --- views ---

    def show_moment(self, *, new: bool = True) -> None:
        moment, view, gain = self.moment, self._view, self._wanted_gain
        image, result, reference = moment.source, moment.result, self.reference
        new = image is not self.images.input.image

        scale = self.images.fitting_scale(image) if new else self.images.device_scale

        def work() -> tuple[_Input | None, DrawnView | None]:
            drawing = draw(view, result, reference, gain, scale) if result else None
            if not new:
                return None, drawing
            pyramid = Pyramid(image.planes).prepare(scale)
            return (pyramid, Display.automatic(image.planes)), drawing

        def show(drawn: tuple[_Input | None, DrawnView | None]) -> None:
            source, drawing = drawn
            self._shown = self.history, self.history.state
            if source is not None:
                self._show_input(moment, *source)
            self.changed.emit(new)
            self._show_drawing(drawing)
            self._show_reference()

        def failed(error: Exception) -> None:
            self.history, self.history.state = self._shown
            self.history_changed.emit()
            self.reverted.emit()
            self._report(error)

        self.history_changed.emit()
        self._background.forget("draw")
        if not new and view is View.OUTPUT and _is_quick(result, scale):
            self._background.forget("show")
            show(work())
        else:
            self._background.start("show", work, show, failed)

    def set_view(self, view: View, gain: int | None) -> None:
        if (view, gain) != (self._view, self._wanted_gain):
            self._view, self._wanted_gain = view, gain
            self._redraw()

    def _redraw(self) -> None:
        result, view, gain = self.result, self._view, self._wanted_gain
        if result is None:
            return
        reference, scale = self.reference, self.images.device_scale
        self._background.start(
            "draw",
            lambda: draw(view, result, reference, gain, scale),
            self._show_drawing,
            self._report,
        )

    def _reduce(self, pyramid: Pyramid, level: int) -> None:
        """Average a large picture for a magnification at which it is looked at first."""
        self._background.start(
            "reduce", lambda: pyramid.samples(level), lambda _: self.images.redraw(), self._report
        )

    def _show_input(
        self, moment: Moment[Image, Image], pyramid: Pyramid, automatic: Display
    ) -> None:
        image = moment.source
        size = f"{image.width}×{image.height}, {image.mode}"
        details = ", ".join(filter(None, (size, moment.describe_steps())))
        self.images.show_input(
            image,
            pyramid,
            automatic,
            f"Input: {image.title}",
            details,
            follows=bool(moment.steps),
        )

    def _show_drawing(self, drawing: DrawnView | None) -> None:
        """Show a view of the current result, or that there is none."""
        result, output = self.result, self.images.output
        self.drawing, self.previewed = drawing, None
        if drawing is None or result is None:
            self.images.clear_output()
            self.drawn.emit(None, False)
            return
        caption = (
            drawing.title(result.image),
            f"{result.where}, {result.settings}",
            result.caption,
        )
        self.images.show_output(
            result.image,
            drawing.pyramid,
            drawing.automatic,
            offset_of(result.request),
            caption,
            drawing.minus,
        )
        if drawing.problem:
            output.show_hint(drawing.problem)
        amplified = drawing.view is not View.OUTPUT
        self.drawn.emit(
            drawing.gain if amplified else None, amplified and drawing.image is not None
        )

    # --- reference ---

    def _show_reference(self) -> None:
        """Show values of the reference under the cursor, and evaluate against it."""
        self.images.reference = self.reference.image if self.reference else None
        super()._show_reference()

    def _evaluation(self) -> Callable[[], Evaluation]:
        moment, reference = self.moment, self.reference
        planes = {"input": moment.source.planes}
        if moment.result is not None:
            planes["output"] = moment.result.image.planes

        def evaluate() -> Evaluation:
            judged = Judged()
            if reference is not None:
                judged = judge_both(moment.source, moment.result, reference.image)
            return judged, {name: fine_histogram(colours(each)) for name, each in planes.items()}

        return evaluate

    # --- to save ---

    def output(self) -> Savable | None:
        if self.result is None:
            return None
        request = self.result.request
        name = f"{Path(request.source.title).stem}-{request.step.filter.id}"
        return Savable([self.result.image], name)

    def save_difference(self, save: Callable[[Savable], None]) -> None:
        drawing = self.drawing
        if drawing is not None and drawing.image is not None:
            save(Savable([drawing.image], f"{Path(drawing.image.title).stem}-{drawing.view}"))

    def figure(self) -> Callable[[View | None, bool], Figure]:
        result, reference, judgement = self.result, self.reference, self.judgement
        assert result is not None
        automatic = Display.automatic
        shown = [self.images.displays.of(side) for side in (PaneSide.INPUT, PaneSide.OUTPUT)]
        seen = self.images.visible()
        edges = seen.left(), seen.top(), seen.right(), seen.bottom()

        def make(third: View | None, in_view: bool) -> Figure:
            region = region_in_view(edges, result) if in_view else None
            caption = caption_of(result, judgement, in_part=region is not None)
            displays = (
                shown[0] or automatic(result.request.image.planes),
                shown[1] or automatic(result.image.planes),
            )
            other = reference.image if reference is not None else None
            return Figure(of_pictures(result, other, displays, third, region), caption)

        return make

    def copyable(self) -> Image | None:
        return self.result.image if self.result is not None else None


def _is_quick(result: Result | None, scale: float) -> bool:
    """Return whether the output is drawn sooner than a thread for that would start."""
    if result is None:
        return True
    small = math.prod(result.output.shape[:2]) <= _AT_ONCE
    return small and (scale > 1 / 2 or is_compiled(result.image.pixels.dtype))


def _overlap(first: float, last: float, side: int) -> tuple[int, int]:
    """Return the first of the pixels 0 to `side` that a view shows, and the one after the last."""
    return max(0, math.floor(first)), min(side, math.ceil(last))
