"""Volumes in the window: the scan that is open, its results, and the component that is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from kernelscope import filters
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.slices import picture_of
from kernelscope.files.names import stem_of
from kernelscope.gui.docks.volume_components import ComponentsPanel
from kernelscope.gui.model.comparison import NO_REFERENCE, View, judge_volumes
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.figure import Figure
from kernelscope.gui.model.figure_content import caption_of, of_slices
from kernelscope.gui.model.figures import describe_result
from kernelscope.gui.model.history import Moment, Reference, ReferenceOrigin
from kernelscope.gui.model.noise_map import figures_of, noise_map
from kernelscope.gui.model.run_settings import RunSettings
from kernelscope.gui.model.sketches import ViewedPicture
from kernelscope.gui.model.slice_drawing import drawn_slice
from kernelscope.gui.model.volume_references import references_of
from kernelscope.gui.viewer.volume_pane import VolumePane
from kernelscope.gui.viewer.volume_viewer import VolumeViewer
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.window.pages.evaluation import Evaluation, Savable
from kernelscope.gui.window.pages.page import Page
from kernelscope.gui.window.pages.plane_previews import PlanePreviews
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.images.judging.gains import GAINS
from kernelscope.images.planes import GreyWindow, auto_gain, auto_window
from kernelscope.images.scan import MAX_COMPONENTS, Scan
from kernelscope.images.volume import Volume, check_reference
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind


class VolumePage(Page[Scan, Volume]):
    """Shows one component of a scan before and after filtering.

    Attributes
    ----------
    components : ComponentsPanel
        The list of components; it is placed above the settings.
    """

    add_wanted = Signal(object)
    """`list of Path`: Files to add as components; empty to let the user choose."""
    estimated = Signal(object)
    """`Result or None`: The result that is shown, whose estimates belong into the fields of the
    parameters."""

    kind = Kind.VOLUME

    def __init__(
        self,
        background: Background,
        report: Callable[[Exception], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(background, report, parent)
        self.setObjectName("volumePage")
        set_help(self, "volumes")
        self._wanted: tuple[Volume, ...] = ()
        """The volumes that are being opened, or are open."""
        self._map: Volume | None = None
        """A map of noise that is shown in place of the output."""
        self._map_made_with: tuple[Any, ...] = ()
        self.viewer = VolumeViewer(self)
        self.previews = PlanePreviews(self.viewer)
        self._stepped: Scan | None = None
        """The input that `show_member` showed last."""
        self._settings: RunSettings | None = None
        """Those of the panel, when they were looked at last."""
        self.controls = self.components = ComponentsPanel()
        self._member = self._values = ""
        """The volume that is shown, where there are several to step through; its values."""
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(self.viewer, 1)
        self.viewer.described.connect(self._describe)
        self.viewer.arranged.connect(self.arranged)
        self.viewer.arranged.connect(self._on_moved)
        self.viewer.moved.connect(self._on_moved)
        self.viewer.displayed.connect(self._on_moved)
        self.viewer.wanted.connect(
            lambda work: self._background.start("project", work, self.viewer.take, self._report)
        )
        self.components.chosen.connect(self._on_chosen)
        self.components.reordered.connect(lambda volumes: self.open(volumes, name="Components"))
        self.components.add_wanted.connect(self.add_wanted)

    def add_bar(self, bar: QWidget) -> None:
        """Place `bar` below the slices."""
        self._column.addWidget(bar)

    def name_member(self, name: str) -> None:
        """Name the volume that is shown before its values, where there are several."""
        if name != self._member:
            self._member = name
            self._describe(self._values)

    def _describe(self, values: str) -> None:
        self._values = values
        self.described.emit("   ".join(filter(None, (self._member, values))))

    @property
    def part(self) -> Volume:
        return self.moment.source.volumes[self.components.current]

    @property
    def canvas(self) -> VolumeViewer:
        return self.viewer

    @property
    def output_pane(self) -> VolumePane:
        return self.viewer.output

    @property
    def is_behind(self) -> bool:
        return self.source is not None and self.viewer.input.volume not in self.source.volumes

    def take_focus(self) -> None:
        self.viewer.focus()

    def announce(self) -> str:
        return describe_result(self.result) if self.result is not None else super().announce()

    # --- input ---

    def takes(self, opened: object) -> bool:
        return isinstance(opened, Volume | Scan)

    def open_part(self, opened: Volume) -> None:
        self.open([opened])

    def open(
        self, volumes: Sequence[Volume], truth: Sequence[Volume] = (), *, name: str = ""
    ) -> None:
        """Show `volumes` as one scan, if they are of one head.

        Parameters
        ----------
        truth : sequence of Volume
            The noise-free original of each, where it is known.
        name : str
            Name of this step in the history.
        """
        self._wanted = tuple(volumes)

        def show(stacked: tuple[Scan, list[GreyWindow]]) -> None:
            scan, windows = stacked
            self._keep(scan, windows)
            references = self._references(volumes, truth)
            moment = Moment(scan, name or f"Open {scan.title}", references=references)
            before = self.history.current
            if before is not None and set(volumes) <= set(before.source.volumes):
                self._push(replace(moment, steps=before.steps, pipeline=before.pipeline))
            else:
                self._open(moment)

        def failed(error: Exception) -> None:
            self._wanted = ()
            if self.source is not None:
                self._wanted = self.source.volumes
                self.components.show_volumes(self.source.volumes)
            self._report(error)

        def stack() -> tuple[Scan, list[GreyWindow]]:
            scan = Scan(tuple(volumes))
            return scan, self._examine(scan)

        self._background.start("scan", stack, show, failed)

    def open_each(self, volumes: Sequence[Volume]) -> None:
        """Show `volumes` as scans of their own, one after the other: Undo returns to each."""

        def work() -> tuple[list[Scan], list[GreyWindow]]:
            scans = [Scan((volume,)) for volume in volumes]
            return scans, [*map(auto_window, volumes[:-1]), *self._examine(scans[-1])]

        def show(answer: tuple[list[Scan], list[GreyWindow]]) -> None:
            for scan, window in zip(*answer, strict=True):
                self._keep(scan, [window])
            *others, last = [
                Moment(scan, f"Open {scan.title}", references=self._references(scan.volumes))
                for scan in answer[0]
            ]
            others = [self._with_steps(moment) for moment in others]
            last = self._with_steps(last)
            self.opening.emit()
            for moment in others:
                self.history.push(moment)
            self._open(last)

        self._background.start("scan", work, show, self._report)

    def show_member(self, volume: Volume, name: str) -> None:
        """Show another volume of the same file; several such steps are one for Undo."""
        scan, moment = Scan((volume,)), self.moment
        self._keep(scan, [self.viewer.window_])  # the same greys for all
        new = self._with_steps(Moment(scan, name, references=self._references(scan.volumes)))
        measured = moment.result is not None and not moment.result.request.live
        stepped = moment.source is self._stepped and not measured
        self._stepped = scan
        self.show_cards(new, as_step=not stepped)

    def add(self, volume: Volume) -> None:
        """Filter `volume` together with those that are open."""
        self.open([*self._wanted, volume], name=f"Add {volume.title}")

    @property
    def room(self) -> int:
        """How many more volumes can be filtered together with those that are open."""
        return MAX_COMPONENTS - (len(self.source.volumes) if self.source else 0)

    def _examine(self, source: Scan) -> list[GreyWindow]:
        """Return how volumes are shown at first; raises `AppError` if their shapes differ."""
        _ = source.planes
        return [auto_window(volume) for volume in source.volumes]

    def _keep(self, source: Scan, examined: Sequence[GreyWindow]) -> None:
        for volume, window in zip(source.volumes, examined, strict=True):
            self.viewer.control.cache_window(volume, window)

    # --- runs ---

    def request(self, settings: RunSettings, *, of_slice: bool = False) -> Request:
        """Return a checked request; see `Page.request`.

        A filter for pictures runs on the slices of the plane that is shown alone, or else on
        those across z.
        """
        scan, axis = self.moment.source, self.slice_axis
        if of_slice:
            return settings.request(picture_of(self.part, axis, self.viewer.position[axis]))
        if settings.step.filter.kind is Kind.PICTURE:
            settings = replace(settings, step=replace(settings.step, axis=axis))
        return settings.request(scan)

    @property
    def slice_axis(self) -> int:
        alone = self.viewer.plane_number
        return 0 if alone is None else self.viewer.planes[alone].axis

    def is_current(self, settings: RunSettings | None) -> bool:
        request = self.result.request if self.result else None
        if request is not None and request.by_slices and request.step.axis != self.slice_axis:
            return False
        return super().is_current(settings)

    def mark_stale(self, settings: RunSettings | None) -> bool:
        if self.previews and (self.is_current(settings) or self.history.then):
            self.previews.clear()  # the whole is there under them, or is another one
            self._redraw()
        stale = super().mark_stale(settings)
        self._settings = settings
        self._mark_planes()
        if self._map is not None:
            current = settings is not None and self.is_map_current(settings)
            self.viewer.output.set_stale(not current)
        return stale

    # --- slices before a run ---

    def visible_parts(self, request: Request) -> tuple[Box, ...]:
        output = self._view is View.OUTPUT and not self.shows_map
        return self.previews.missing(request) if output else ()

    def part_shown(self, request: Request) -> Box | None:
        return self.previews.part_of(request)

    def describe_part(self, shown: Request) -> str:
        if isinstance(shown.region, Box):
            return self.previews.describe(shown)
        return super().describe_part(shown)

    def shows_part(self, request: Request) -> bool:
        return self.previews.shows(request)

    def show_preview(self, result: Result) -> bool:
        fits = result.request.source is self.source and not self.history.then
        if not fits or not self.previews.put(result):
            return False
        self._show_previews()
        return self.previewed is not None

    def _show_previews(self) -> None:
        """Show the slices in view over the output."""
        self.previewed = None
        if self.previews and self._view is View.OUTPUT and not self.shows_map:
            self.previewed = self.previews.show(self.components.current)
            self._mark_planes()

    def _mark_planes(self) -> None:
        """Mark the planes that show earlier settings, where others show a preview."""
        if self.previewed is not None:
            whole = self.result.request if self.result is not None else None
            self.previews.mark_earlier(whole, self._settings)

    def _on_moved(self) -> None:
        """Show the previews of other slices."""
        if self.source is None or self.is_behind:
            return
        had = self.previewed
        self._show_previews()
        if had is not None and self.previewed is None:
            self._redraw()
        self.moved.emit()

    def show_moment(self, *, new: bool = True) -> None:
        self.previews.clear()
        self._wanted = self.moment.source.volumes
        self.components.show_volumes(self._wanted)
        self.history_changed.emit()
        self._show()
        self.changed.emit(True)
        self.estimated.emit(self.result)
        self.subject_changed.emit()

    # --- views ---

    @property
    def shows_map(self) -> bool:
        """Whether a map of the noise is shown in place of the output."""
        return self._map is not None

    def is_map_current(self, settings: RunSettings) -> bool:
        """Return whether `show_noise` would compute the map again that is shown."""
        _, made_with = filters.diagnostic(settings.step.filter.id, settings.step.parameters)
        return self._map_made_with == made_with

    def set_view(self, view: View, gain: int | None) -> None:
        self._view, self._wanted_gain = view, gain
        if self.source is not None:
            self._redraw()

    def show_noise(self, settings: RunSettings, show_status: Callable[[str], None]) -> None:
        """Show the map of the filter, or of another filter, until the view changes.

        Parameters
        ----------
        settings : RunSettings
            Those of a filter; some of its parameters decide on the map.
        """
        volume = self.part
        diagnostic, made_with = filters.diagnostic(
            settings.step.filter.id, settings.step.parameters
        )

        def show(shown: Volume) -> None:
            if volume is not self.part:
                return
            text, figures = diagnostic.describe(made_with), figures_of(shown)
            self._map, self._map_made_with = shown, made_with
            caption = f"{diagnostic.name}: {text}, {figures}"
            self.viewer.show_output(shown, caption, window=auto_window(shown))
            self.previewed = None
            self.drawn.emit(None, True)
            show_status(f"{text}: {figures}.")

        work = partial(noise_map, volume, diagnostic, made_with)
        self._background.start("noise", work, show, self._report)

    @property
    def shown_output(self) -> Volume | None:
        """The component of the output that is shown."""
        return self.result.scan.volumes[self.components.current] if self.result else None

    # --- reference ---

    def set_reference(
        self, image: Volume | None, origin: ReferenceOrigin = ReferenceOrigin.CHOSEN
    ) -> None:
        if image is not None:
            check_reference(self.part, image)
        super().set_reference(image, origin)

    def _evaluation(self) -> Callable[[], Evaluation]:
        volume, output, reference = self.part, self.shown_output, self.reference
        image = reference.image if reference is not None else None
        if self.result is not None and not self.result.request.step.filter.restores:
            output = None  # it does not compare with the reference
        return lambda: judge_volumes(volume, output, image)

    # --- to save ---

    def output(self) -> Savable | None:
        volume = self.shown_output
        return self._savable([volume]) if volume is not None else None

    def all_outputs(self) -> Savable | None:
        return self._savable(self.result.scan.volumes) if self.result is not None else None

    def _savable(self, volumes: Sequence[Volume]) -> Savable:
        assert self.result is not None
        return Savable(volumes, f"{stem_of(volumes[0])}-{self.result.request.step.filter.id}")

    def save_difference(self, save: Callable[[Savable], None]) -> None:
        self._background.start(
            "change",
            self.change,
            lambda change: save(Savable([change], change.title)),
            self._report,
        )

    def change(self) -> Volume:
        """Return the residual, difference or map that is shown, as a volume, not amplified.

        Takes a while: call it off the GUI thread.
        """
        if self._map is not None:
            return self._map
        output, other = self.shown_output, self._other()
        assert output is not None
        assert other is not None
        return replace(output.minus(other), title=f"{stem_of(other)}-{self._view}")

    def _other(self) -> Volume | None:
        """Return the volume to subtract from the output."""
        if self._view is View.RESIDUAL:
            return self.part
        return self.reference.image if self.reference else None

    def scene(self) -> ViewedPicture | None:
        """Return the slice that was clicked last, in the form in which it is filtered."""
        if self.source is None:
            return None
        volume, plane, index = self.viewer.active
        volume = volume or self.part
        image = picture_of(volume, plane.axis, index)
        return ViewedPicture(image, (image.width // 2, image.height // 2), volume, image.title)

    def figure(self) -> Callable[[View | None, bool], Figure]:
        result, output, reference = self.result, self.shown_output, self.reference
        assert result is not None
        assert output is not None
        _, plane, index = self.viewer.active
        window, part, look = self.viewer.window_, self.part, self.viewer.look
        display = Display(window.low, window.low + window.width, look.gamma, look.colour_map)
        place = f"{plane.name.lower()} slice {index + 1}"
        caption = caption_of(result, self.judgement, place)
        unit = "mm" if part.stated else "voxels"

        def make(third: View | None, in_view: bool) -> Figure:
            volumes = (("Input", part), ("Output", output))
            other = part if third is View.RESIDUAL else reference.image if reference else None
            pictures = of_slices(volumes, other, plane, index, display, third)
            return Figure(pictures, caption, unit)

        return make

    def slice_as_picture(self) -> Image | None:
        if self.source is None:
            return None
        volume, plane, index = self.viewer.active
        return drawn_slice(volume or self.part, plane, index, self.viewer.window_)

    def _references(
        self, volumes: Sequence[Volume], truth: Sequence[Volume] = ()
    ) -> dict[Volume, Reference[Volume]]:
        known = self.history.current.references if self.history.current else {}
        return references_of(volumes, truth, known, self.reference)

    def _on_chosen(self) -> None:
        self._show()
        self.subject_changed.emit()

    def _show(self) -> None:
        """Show the component that is chosen."""
        steps = self.moment.describe_steps()
        details = ", ".join(filter(None, (self.part.describe(), steps)))
        self.viewer.show_input(self.part, f"Input: {details}")
        self._redraw()

    def _redraw(self) -> None:
        self._map = None
        drawn = self._draw_whole()
        self._show_previews()
        self.drawn.emit(*drawn)

    def _draw_whole(self) -> tuple[int | None, bool]:
        """Draw the output, or its difference; return the gain, and whether it can be saved."""
        output = self.shown_output
        if output is None or self.result is None:
            self.viewer.show_output(None)
            return None, False
        if self._view is View.OUTPUT:
            # The device comes first: a narrow window cuts off the end.
            caption = f"Output: {self.result.where}, {self.result.settings}"
            brief = f"Output: {self.result.caption}"
            self.viewer.show_output(output, caption, brief=brief)
            return None, False
        other = self._other()
        if other is None:
            self.viewer.show_output(None, "Difference", hint=NO_REFERENCE)
            return None, False
        gain = self._wanted_gain or auto_gain(output, other, self.viewer.window_, GAINS)
        minus = "input" if self._view is View.RESIDUAL else "reference"
        caption = f"{self._view.value.capitalize()}: output – {minus}, ×{gain}"
        self.viewer.show_output(output, caption, minus=other, gain=gain)
        return gain, True
