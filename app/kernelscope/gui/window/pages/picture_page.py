"""Pictures in the window: the input, its output or a difference, and their reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from PySide6.QtWidgets import QVBoxLayout, QWidget

from kernelscope.engine.region import Region
from kernelscope.engine.result import Result
from kernelscope.gui.model.comparison import View, offset_of
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.drawn_view import DrawnView, draw
from kernelscope.gui.model.history import Moment
from kernelscope.gui.model.pyramid import Pyramid
from kernelscope.gui.session.picture_subject import PictureSubject
from kernelscope.gui.viewer.image_views import ImagePair
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.window.pages.page import Page
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.images.reduction import is_compiled

_Input: TypeAlias = tuple[Pyramid, Display]
"""An input as it is drawn, and the display that the program would choose for it."""

_AT_ONCE = 1 << 22
"""Pixels of an output that is drawn without a thread: starting one takes longer."""


class PicturePage(Page[Image, Image]):
    """Input on the left, output or a difference on the right.

    Pictures are drawn off the GUI thread, so that the previous one stays until the next one
    is there.

    Attributes
    ----------
    images : ImagePair
    """

    def __init__(
        self,
        subject: PictureSubject,
        background: Background,
        report: Callable[[Exception], None],
        parent: QWidget | None = None,
    ) -> None:
        self.images = ImagePair(state=subject.view)
        super().__init__(subject, self.images, background, report, parent)
        self.subject = subject
        self.setObjectName("picturePage")
        set_help(self, "window#looking")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.images)
        self.images.described.connect(self.described)

    # --- from the subject to the screen ---

    def _show_moment(self) -> None:
        moment, reference = self.subject.moment, self.subject.reference
        view, gain = self._session.view, self._session.wanted_gain
        image, result = moment.source, moment.result
        new = self.subject.is_behind
        scale = self.images.fitting_scale(image) if new else self.subject.view.camera.device_scale

        def work() -> tuple[_Input | None, DrawnView | None]:
            drawing = draw(view, result, reference, gain, scale) if result else None
            if not new:
                return None, drawing
            pyramid = Pyramid(image.planes).prepare(scale)
            return (pyramid, Display.automatic(image.planes)), drawing

        def show(drawn: tuple[_Input | None, DrawnView | None]) -> None:
            source, drawing = drawn
            with self.subject.changing():
                if source is not None:
                    self._show_input(moment, *source)
                self.subject.note_moment()
                self._show_drawing(drawing)
                self.show_reference()

        def failed(error: Exception) -> None:
            self.subject.revert()
            self._report(error)

        self._background.forget("draw")
        if not new and view is View.OUTPUT and _is_quick(result, scale):
            self._background.forget("show")
            show(work())
        else:
            self._background.start("show", work, show, failed)

    def _redraw(self) -> None:
        result, view, gain = self.subject.result, self._session.view, self._session.wanted_gain
        if result is None:
            return
        reference, scale = self.subject.reference, self.subject.view.camera.device_scale
        self._background.start(
            "draw",
            lambda: draw(view, result, reference, gain, scale),
            self._show_drawing,
            self._report,
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
        result, output = self.subject.result, self.images.output
        self.subject.drawing = drawing
        with self.subject.changing():
            if drawing is None or result is None:
                self.images.clear_output()
                self.subject.note_output()
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
            self.subject.note_output(
                drawing.gain if amplified else None,
                has_difference=amplified and drawing.image is not None,
            )

    def _show_part(self) -> None:
        result = self.subject.preview
        assert result is not None
        region = result.request.region
        if not isinstance(region, Region):
            region = Region.all_of(result.request.whole_shape)
        self.images.output.show_region(
            region,
            result.image,
            offset_of(result.request),
            f"{result.where}, {result.settings}",
            result.caption,
        )


def _is_quick(result: Result | None, scale: float) -> bool:
    """Return whether the output is drawn sooner than a thread for that would start."""
    if result is None:
        return True
    small = math.prod(result.output.shape[:2]) <= _AT_ONCE
    return small and (scale > 1 / 2 or is_compiled(result.image.pixels.dtype))
