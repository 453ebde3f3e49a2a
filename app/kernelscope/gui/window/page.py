"""A page of the window draws its `Subject`: a picture in one plane, a volume in three.

subject -- MOMENT, RESULT, REFERENCE, PART -->  page      draws
subject <-- note_moment, note_output ---------  page      once that is on the screen

Views that take a while are drawn off the GUI thread, so that the previous one stays until the
next one is there.
"""

from __future__ import annotations

import math
from typing import Generic

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from kernelscope.engine.region import Region
from kernelscope.gui.model.comparison import View, following, offset_of
from kernelscope.gui.model.display import Display, Viewed, first_of
from kernelscope.gui.model.drawn_view import DrawnView, Pyramid
from kernelscope.gui.model.history import Moment, Opened, Part, parts_of
from kernelscope.gui.model.slice_previews import place_of
from kernelscope.gui.session.canvas_view import DRAWN, SEEN, SLICES
from kernelscope.gui.session.session import FILTER, KIND, SETTINGS, VIEW
from kernelscope.gui.session.subject import (
    COMPONENT,
    MAP,
    MOMENT,
    PART,
    REFERENCE,
    RESULT,
    SHOWN,
    WORK,
    Fields,
    Subject,
)
from kernelscope.gui.viewer.pair_view import PairView
from kernelscope.gui.viewer.pane import NOTHING
from kernelscope.gui.widgets.parts import in_column, set_help
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.images.reduction import is_quick
from kernelscope.images.volume import Volume
from kernelscope.teach.manual import filter_page

_MARKED = frozenset({KIND, SETTINGS, MOMENT, RESULT, SHOWN, PART, SEEN, SLICES})
"""Changes after which the output may be of other settings, or no longer."""

_AT_ONCE = 1 << 22  # pixels of an output that is drawn without a thread: starting one takes longer


class Page(QWidget, Generic[Opened, Part]):
    """Shows an input beside its output or a difference."""

    # Values under the cursor, and the magnification, for the status bar.
    described = Signal(str)
    zoomed = Signal(str)

    def __init__(self, subject: Subject[Opened, Part], background: Background) -> None:
        super().__init__()
        of_volumes = subject.view.count > 1
        self.setObjectName("volumePage" if of_volumes else "picturePage")
        self._session, self._background = subject.session, background
        self.subject: Subject[Opened, Part] = subject
        self.canvas = canvas = PairView(subject.view)
        self._column = in_column((canvas, 1), of=self, margins=0)
        self._member = self._values = ""
        """The volume that is shown, where there are several to step through; its values."""
        canvas.described.connect(self._describe)
        canvas.zoomed.connect(lambda zoom: self.zoomed.emit(f"{100 * zoom:.0f} %"))
        canvas.reduction_wanted.connect(self._reduce)
        canvas.wanted.connect(
            lambda work: background.start(self._topic("project"), work, canvas.take)
        )
        subject.when({MOMENT, RESULT}, self._show_moment)
        subject.when({COMPONENT}, self._show_component)
        subject.when({REFERENCE}, self._redraw)
        subject.when({REFERENCE}, self.show_reference)
        subject.when({PART}, self._show_part)
        subject.when({SLICES}, self._on_slices)
        subject.when({MAP}, self._draw_at_once)
        subject.when({WORK}, self._show_work)
        subject.session.follow(self._on_session)
        subject.session.when({KIND, FILTER}, self._set_help)
        self._set_help()
        subject.view.when({DRAWN}, self._on_drawn)

    def _set_help(self) -> None:
        set_help(self, filter_page(self._session.spec))

    def add_bar(self, bar: QWidget) -> None:
        self._column.addWidget(bar)

    def name_member(self, name: str) -> None:
        """Name the volume that is shown before its values, where there are several."""
        if name != self._member:
            self._member = name
            self._describe(self._values)

    def _describe(self, values: str) -> None:
        self._values = values
        self.described.emit("   ".join(filter(None, (self._member, values))))

    def _reduce(self, pyramid: Pyramid, level: int) -> None:
        """Average a large picture for a magnification at which it is looked at first."""
        self._background.start(
            self._topic("reduce"),
            lambda: pyramid.samples(level),
            lambda _: self.canvas.redraw(),
        )

    def _topic(self, work: str) -> str:
        """Return the topic of background work: a page does not displace that of the other."""
        return f"{work} {self.subject.kind}"

    # --- from the subject to the screen ---

    def show_reference(self) -> None:
        reference = self.subject.reference
        self.canvas.reference = reference.image if reference is not None else None

    def _show_work(self) -> None:
        subject = self.subject
        self.canvas.show_work(at_work=subject.at_work, compiling=subject.compiling)

    def _on_session(self, fields: Fields) -> None:
        if self.subject.is_front and self.subject.source is not None:
            if fields & {VIEW, KIND}:
                self._redraw()
            if fields & _MARKED:
                self._mark()

    def _show_moment(self) -> None:
        subject, canvas, moment = self.subject, self.canvas, self.subject.moment
        part, new = subject.part, canvas.input.shown is not subject.part
        scale = canvas.fitting_scale(part) if new else subject.view.camera.device_scale
        subject.map = None
        at_once, draw = subject.drawn_at_once, subject.to_draw(scale)

        def work() -> tuple[DrawnView | None, DrawnView | None]:
            source = self._prepared(part, scale) if new else None
            return source, None if at_once else draw()

        def show(drawn: tuple[DrawnView | None, DrawnView | None]) -> None:
            source, drawing = drawn
            with subject.changing():
                if source is not None:
                    self._show_input(moment, source)
                subject.note_moment()
                self._show_drawing(subject.to_draw()() if at_once else drawing)
                self.show_reference()

        def failed(error: Exception) -> None:
            subject.revert()
            self._background.report(error)

        self._background.forget(self._topic("draw"))
        known = not new or (isinstance(part, Volume) and subject.view.displays.knows(part))
        if known and (at_once or self._is_quick(scale)):
            self._background.forget(self._topic("show"))
            show(work())
        else:
            self._background.start(self._topic("show"), work, show, failed)

    def _prepared(self, part: Part, scale: float = 1.0) -> DrawnView:
        """Return an input as it is drawn, with the display that the program would choose for it."""
        if isinstance(part, Image):
            pyramid = Pyramid(part.planes).prepare(scale)
            return DrawnView(part, pyramid, automatic=first_of(part))
        known = self.subject.view.displays.knows(part)
        return DrawnView(part, automatic=None if known else first_of(part))

    def _show_component(self) -> None:
        self.subject.map = None
        with self.subject.changing():
            self._show_input(self.subject.moment, self._prepared(self.subject.part))
            self.show_reference()
            self._draw_at_once()

    def _redraw(self) -> None:
        if self.subject.is_behind:
            self._show_moment()  # which is under way, for the view of before
            return
        self.subject.map = None
        if self.subject.drawn_at_once:
            self._draw_at_once()
        elif self.subject.result is not None:
            draw = self.subject.to_draw(self.subject.view.camera.device_scale)

            def failed(error: Exception) -> None:
                self._show_drawing(self.subject.drawing)
                self._background.report(error)

            view, drawing = self._session.view, self.subject.drawing
            if drawing is not None and drawing.view is not view:  # which may take seconds
                self.canvas.output.set_caption(f"{view.capitalize()}: computing…")
            self._background.start(self._topic("draw"), draw, self._show_drawing, failed)

    def _draw_at_once(self) -> None:
        if self.subject.source is not None:
            self._show_drawing(self.subject.to_draw()())

    def _show_input(self, moment: Moment[Opened, Part], content: DrawnView) -> None:
        part, before = content.shown, self.canvas.input.shown
        assert part is not None
        title = f"Input: {part.title}" if isinstance(part, Image) else ""
        beside = isinstance(part, Volume) and before in parts_of(moment.source)
        details = self._details_of(part, moment)
        follows = bool(moment.steps) and not beside
        self.canvas.show_input(content, title, details, follows=follows, beside=beside)

    def _details_of(self, part: Viewed, moment: Moment[Opened, Part]) -> str:
        if isinstance(part, Image):
            size = f"{part.width}×{part.height}, {part.mode}"
        else:
            size = part.describe(self.canvas.names_of(part))
        return ", ".join(filter(None, (size, moment.describe_steps())))

    def _on_drawn(self) -> None:
        """Write over the input which channels of a composite are drawn."""
        part = self.canvas.input.shown
        if isinstance(part, Volume) and not self.subject.is_behind:
            self.canvas.input.show_details("", self._details_of(part, self.subject.moment))

    def _show_drawing(self, drawing: DrawnView | None) -> None:
        """Show a view of the current result, or that there is none."""
        subject, result = self.subject, self.subject.result
        subject.drawing = drawing
        with subject.changing():
            if drawing is None:
                self.canvas.show_output(NOTHING)
                self._show_slices()
                subject.note_output()
                return
            details, brief = "", ""
            if result is not None and not drawing.caption:
                details, brief = f"{result.where}, {result.settings}", result.caption
            self.canvas.show_output(drawing, drawing.title, details, brief)
            self._show_slices()
            subject.note_output(
                drawing.gain if drawing.view is not View.OUTPUT else None,
                has_difference=drawing.is_change or bool(drawing.caption),
            )

    def _show_part(self) -> None:
        result = self.subject.preview
        if result is None:
            self._show_slices()
            return
        region = result.request.region
        if not isinstance(region, Region):
            region = Region.all_of(result.request.whole_shape)
        details, offset = f"{result.where}, {result.settings}", offset_of(result.request)
        whole, spec = self.subject.result, result.request.step.filter
        other = whole is not None and whole.request.step.filter is not spec
        of_part = details, result.caption
        self.canvas.show_region(region, result.image, offset, *of_part, over_input=other)

    def _show_slices(self) -> None:
        previews = self.subject.previews_in_view
        if not previews:
            return
        last, slices = previews[-1].result, {}
        for each in previews:
            axis, index = place_of(each.request) or (-1, -1)
            slices[axis] = index, each.contents[self.subject.component]
        self.canvas.show_previews(slices, f"{last.where}, {last.settings}", last.caption)

    def _on_slices(self) -> None:
        """Show the previews of other slices."""
        if self.canvas.has_previews and not self.subject.previews_in_view:
            self._redraw()
        else:
            self._show_slices()

    def _mark(self) -> None:
        """Mark an output that a run would not produce, and another picture around a preview."""
        if self.subject.drop_previews():
            self._redraw()
        earlier, around = self.subject.is_earlier, ""
        if self.subject.is_around:
            ground = "others" if earlier else "earlier settings"
            shown = self.canvas.output.shown
            around = f"{ground if shown is not None else 'input'} around the preview"
        mark = ", ".join(filter(None, ("earlier settings" if earlier else "", around)))
        self.canvas.output.set_mark(mark and f"{mark.capitalize()} – ")
        if self.canvas.has_previews:
            self.canvas.mark_earlier(self.subject.earlier_axes())

    def _is_quick(self, scale: float) -> bool:
        """Return whether the output is drawn sooner than a thread for that would start."""
        result = self.subject.result
        if result is None:
            return True
        small = math.prod(result.output.shape[:2]) <= _AT_ONCE
        reduces = scale <= 1 / 2 and not is_quick(result.image.planes)
        return self._session.view is View.OUTPUT and small and not reduces

    # --- commands ---

    def use_output(self) -> None:
        """Make the output the input, unless another input is shown by then."""
        moment = self.subject.history.current
        if moment is None or moment.result is None:
            return

        def work() -> tuple[Moment[Opened, Part], list[tuple[Volume, Display]]]:
            new = following(moment)
            volumes = [each for each in parts_of(new.source) if isinstance(each, Volume)]
            return new, [(each, first_of(each)) for each in volumes]

        def show(answer: tuple[Moment[Opened, Part], list[tuple[Volume, Display]]]) -> None:
            new, displays = answer
            if self.subject.source is moment.source:
                for volume, display in displays:
                    self.subject.view.displays.remember(volume, display)
                self.subject.push(new)

        self._background.start(self._topic("use"), work, show)
