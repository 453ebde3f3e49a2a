"""The picture that is filtered."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelscope.engine.region import Region
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.result import Result
from kernelscope.gui.model.comparison import (
    Evaluation,
    Judged,
    View,
    judge_both,
    offset_of,
    with_reference,
)
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.model.drawn_view import DrawnView, draw
from kernelscope.gui.model.figure import Figure, FigurePart, caption_of, of_pictures, region_in_view
from kernelscope.gui.model.histogram_plot import fine_histogram
from kernelscope.gui.model.history import Moment, Reference, ReferenceOrigin
from kernelscope.gui.model.measurements import ProfiledPicture, pictures
from kernelscope.gui.model.sketches import ViewedPicture
from kernelscope.gui.session.canvas_view import CanvasView
from kernelscope.gui.session.subject import PART, REFERENCED, Savable, Subject
from kernelscope.images.image import Image
from kernelscope.images.judging import colours
from kernelscope.schema.samples import Kind

if TYPE_CHECKING:
    from kernelscope.gui.session.session import Session


class PictureSubject(Subject[Image, Image]):
    kind = Kind.PICTURE

    def __init__(self, session: Session) -> None:
        super().__init__(session, CanvasView())

    @property
    def part(self) -> Image:
        return self.moment.source

    def open_picture(self, opened: Image) -> None:
        references = {}
        reference = self.reference
        if reference is not None and reference.origin in (
            ReferenceOrigin.CHOSEN,
            ReferenceOrigin.KEPT,
        ):
            # One that was chosen may be meant for this picture too.
            references[opened] = Reference(reference.image, ReferenceOrigin.KEPT)
        self.open(Moment(opened, f"Open {opened.title}", references=references))

    def _together(self, parts: Sequence[Image]) -> Image:
        (image,) = parts
        return image

    def push(self, moment: Moment[Image, Image]) -> None:
        had_none = self.reference is None
        with self.changing():
            super().push(moment)
            if had_none and self.reference is not None:
                self.note(REFERENCED)

    # --- runs ---

    def request(self, settings: RunSettings, *, of_slice: bool = False) -> Request:
        return settings.request(self.moment.source)

    def with_reference(self, request: Request) -> Request:
        return with_reference(request, self.reference)

    def visible_part(self, request: Request) -> Region | None:
        if self.session.view is not View.OUTPUT:
            return None
        (first, upper, last, lower), offset = self.view.seen, offset_of(request)
        height, width = request.whole_shape[:2]
        left, right = _overlap(first - offset, last - offset, width)
        top, bottom = _overlap(upper - offset, lower - offset, height)
        if left >= right or top >= bottom:
            return None
        return Region(top, left, bottom - top, right - left)

    def visible_parts(self, request: Request) -> tuple[Region, ...]:
        part = self.visible_part(request)
        return () if part is None else (part,)

    def show_preview(self, result: Result) -> bool:
        if self.visible_part(result.request) is None:
            return False
        with self.changing(PART):
            self.preview, self.shown = result, result.request
        return True

    def to_draw(self, scale: float = 1.0) -> Callable[[], DrawnView | None]:
        result, reference = self.result, self.reference
        view, gain = self.session.view, self.session.wanted_gain
        if result is None:
            return lambda: None
        return lambda: draw(view, result, reference, gain, scale)

    def note_output(self, gain: int | None = None, *, has_difference: bool = False) -> None:
        self.preview = None
        super().note_output(gain, has_difference=has_difference)

    def reduction(self) -> int:
        return max(1, math.floor(1 / self.view.camera.device_scale))

    def scene(self) -> ViewedPicture | None:
        if self.source is None:
            return None
        left, top, right, bottom = self.view.seen
        x = (max(left, 0) + min(right, self.source.width)) / 2
        y = (max(top, 0) + min(bottom, self.source.height)) / 2
        return ViewedPicture(self.source, (int(x), int(y)), self.source)

    def display_of(self, request: Request) -> Display:
        return self.view.displays.of(PaneSide.INPUT) or super().display_of(request)

    def display_of_scene(self, scene: ViewedPicture) -> Display:
        return self.view.displays.of(PaneSide.INPUT) or super().display_of_scene(scene)

    def to_measure(self) -> Callable[[], list[ProfiledPicture]]:
        moment = self.moment
        reference = self.reference.image if self.reference is not None else None
        return lambda: pictures(moment.source, moment.result, reference)

    def _references_of(
        self, result: Result, known: Moment[Image, Image]
    ) -> Mapping[Image, Reference[Image]]:
        reference = result.request.reference
        if not isinstance(reference, Image):
            return {}
        return {known.source: Reference(reference, ReferenceOrigin.CHOSEN)}

    def evaluation(self) -> Callable[[], Evaluation]:
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

    def difference(self) -> Callable[[], Savable] | None:
        drawing = self.drawing
        image = drawing.change if drawing is not None else None
        if drawing is None or image is None:
            return None
        name = f"{Path(image.title).stem}-{drawing.view}"
        return lambda: Savable([image], name)

    def figure(self) -> Callable[[View | None, FigurePart], Figure]:
        result, reference, judgement = self.result, self.reference, self.judgement
        assert result is not None
        automatic = Display.automatic
        shown = [self.view.displays.of(side) for side in (PaneSide.INPUT, PaneSide.OUTPUT)]
        seen, regions = self.view.seen, self.regions.all

        def make(third: View | None, part: FigurePart) -> Figure:
            image, offset = result.image, offset_of(result.request)
            region = None
            if part is FigurePart.VIEW:
                region = region_in_view(seen, image.height, image.width, offset)
            caption = caption_of(result, judgement, in_part=region is not None)
            displays = (
                shown[0] or automatic(result.request.image.planes),
                shown[1] or automatic(result.image.planes),
            )
            other = reference.image if reference is not None else None
            return Figure(of_pictures(result, other, displays, third, region, regions), caption)

        return make


def _overlap(first: float, last: float, side: int) -> tuple[int, int]:
    """Return the first of the pixels 0 to `side` that a view shows, and the one after the last."""
    return max(0, math.floor(first)), min(side, math.ceil(last))
