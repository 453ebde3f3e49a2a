"""Volumes in the window: the scan that is open, its results, and the component that is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from kernelscope import filters
from kernelscope.engine.request import RunSettings
from kernelscope.gui.docks.volume_components import ComponentsPanel
from kernelscope.gui.model.comparison import NO_REFERENCE, View
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import PaneSide, automatic_of
from kernelscope.gui.model.noise_map import figures_of, noise_map
from kernelscope.gui.model.slice_previews import place_of
from kernelscope.gui.session.canvas_view import SLICES
from kernelscope.gui.session.volume_subject import COMPONENT, MAP, VolumeSubject
from kernelscope.gui.viewer.volume_viewer import VolumeViewer
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.window.pages.page import Page
from kernelscope.gui.work.background import Background
from kernelscope.images.judging.gains import GAINS
from kernelscope.images.planes import auto_gain
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume


class VolumePage(Page[Scan, Volume]):
    """Shows one component of a scan before and after filtering.

    Attributes
    ----------
    components : ComponentsPanel
        The list of components; it is placed above the settings.
    """

    add_wanted = Signal(object)
    """`list of Path`: Files to add as components; empty to let the user choose."""

    def __init__(
        self,
        subject: VolumeSubject,
        background: Background,
        report: Callable[[Exception], None],
        parent: QWidget | None = None,
    ) -> None:
        self.viewer = VolumeViewer(view=subject.view)
        super().__init__(subject, self.viewer, background, report, parent)
        self.subject = subject
        self.setObjectName("volumePage")
        set_help(self, "volumes")
        self._wanted: tuple[Volume, ...] = ()
        """The volumes that are being opened, or are open."""
        self.controls = self.components = ComponentsPanel()
        self._has_previews = False
        """Whether slices are shown over those of the output."""
        subject.when({COMPONENT}, self._show_component)
        subject.when({SLICES}, self._on_slices)
        subject.when({MAP}, self._show_map)
        self._member = self._values = ""
        """The volume that is shown, where there are several to step through; its values."""
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(self.viewer, 1)
        self.viewer.described.connect(self._describe)
        self.viewer.wanted.connect(
            lambda work: self._background.start("project", work, self.viewer.take, self._report)
        )
        self.components.chosen.connect(subject.choose)
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

    # --- input ---

    def open(
        self, volumes: Sequence[Volume], truth: Sequence[Volume] = (), *, name: str = ""
    ) -> None:
        """Show `volumes` as one scan, if they are of one head; see `VolumeSubject.open_volumes`."""
        self._wanted = tuple(volumes)

        def show(stacked: tuple[Scan, list[Display]]) -> None:
            scan, displays = stacked
            self._keep(scan, displays)
            self.subject.open_volumes(scan, truth, name=name)

        def failed(error: Exception) -> None:
            self._show_components()
            self._report(error)

        def stack() -> tuple[Scan, list[Display]]:
            scan = Scan(tuple(volumes))
            return scan, self._examine(scan)

        self._background.start("scan", stack, show, failed)

    def open_each(self, volumes: Sequence[Volume]) -> None:
        """Show `volumes` as scans of their own, one after the other: Undo returns to each."""

        def work() -> tuple[list[Scan], list[Display]]:
            scans = [Scan((volume,)) for volume in volumes]
            return scans, [*map(automatic_of, volumes[:-1]), *self._examine(scans[-1])]

        def show(answer: tuple[list[Scan], list[Display]]) -> None:
            for scan, display in zip(*answer, strict=True):
                self._keep(scan, [display])
            self.subject.open_each(answer[0])

        self._background.start("scan", work, show, self._report)

    def show_member(self, volume: Volume, name: str) -> None:
        """Show another volume of the same file; several such steps are one for Undo."""
        scan = Scan((volume,))
        display = self.subject.view.displays.of(PaneSide.INPUT)
        if display is not None:
            self._keep(scan, [display])  # the same greys for all
        self.subject.show_member(scan, name)

    def add(self, volume: Volume) -> None:
        """Filter `volume` together with those that are open."""
        self.open([*self._wanted, volume], name=f"Add {volume.title}")

    def _examine(self, source: Scan) -> list[Display]:
        """Return how volumes are shown at first; raises `AppError` if their shapes differ."""
        _ = source.planes
        return [automatic_of(volume) for volume in source.volumes]

    def _keep(self, source: Scan, examined: Sequence[Display]) -> None:
        for volume, display in zip(source.volumes, examined, strict=True):
            self.subject.view.displays.remember(volume, display)

    # --- from the subject to the screen ---

    def _show_moment(self) -> None:
        self._show_components()
        with self.subject.changing():
            self.subject.note_moment()
            self._show_component()

    def _show_components(self) -> None:
        source = self.subject.source
        self._wanted = source.volumes if source is not None else ()
        self.components.show_volumes(self._wanted, self.subject.component)

    def _show_component(self) -> None:
        """Show the component that is chosen."""
        part, moment, before = self.subject.part, self.subject.moment, self.viewer.input.volume
        details = ", ".join(filter(None, (part.describe(), moment.describe_steps())))
        beside = before in moment.source.volumes
        follows = bool(moment.steps) and not beside
        self.show_reference()
        self.viewer.show_input(part, f"Input: {details}", follows=follows, beside=beside)
        self._redraw()

    def _redraw(self) -> None:
        self.subject.map = None
        with self.subject.changing():
            gain, difference = self._draw_whole()
            self._show_part()
            self.subject.note_output(gain, has_difference=difference)

    def _draw_whole(self) -> tuple[int | None, bool]:
        """Draw the output, or its difference; return the gain, and whether it can be saved."""
        self._has_previews = False
        output, result, view = self.subject.shown_output, self.subject.result, self._session.view
        if output is None or result is None:
            self.viewer.show_output(None)
            return None, False
        if view is View.OUTPUT:
            # The device comes first: a narrow window cuts off the end.
            caption = f"Output: {result.where}, {result.settings}"
            self.viewer.show_output(output, caption, brief=f"Output: {result.caption}")
            return None, False
        other = self.subject.subtracted
        if other is None:
            self.viewer.show_output(None, "Difference", hint=NO_REFERENCE)
            return None, False
        gain = self._session.wanted_gain
        display = self.subject.view.displays.of(PaneSide.INPUT)
        assert display is not None
        gain = gain or auto_gain(output, other, display.width, GAINS)
        minus = "input" if view is View.RESIDUAL else "reference"
        caption = f"{view.value.capitalize()}: output – {minus}, ×{gain}"
        self.viewer.show_output(output, caption, minus=other, gain=gain)
        return gain, True

    def _show_part(self) -> None:
        """Show the slices in view that were computed, over the output."""
        previews = self.subject.previews_in_view
        if not previews:
            return
        self._has_previews = True
        component, last = self.subject.component, previews[-1].result
        slices = {}
        for each in previews:
            axis, index = place_of(each.request) or (-1, -1)
            slices[axis] = index, each.volumes[component], each.part
        caption = f"Preview: {last.where}, {last.settings}"
        self.viewer.show_previews(slices, caption, f"Preview: {last.caption}")

    def _on_slices(self) -> None:
        """Show the previews of other slices."""
        if self._has_previews and not self.subject.previews_in_view:
            self._redraw()
        else:
            self._show_part()

    def _mark(self) -> None:
        """Mark the output, and the planes of earlier settings where others show a preview."""
        subject, settings = self.subject, self._session.settings
        if subject.previews and (subject.is_current(settings) or subject.history.then):
            subject.previews.clear()  # the whole is there under them, or is another one
            self._redraw()
        super()._mark()
        if self._has_previews:
            self.viewer.mark_earlier(subject.earlier_axes())
        if subject.map is not None:
            current = settings is not None and subject.is_map_current(settings)
            self.viewer.output.set_stale(not current)

    # --- the map of noise ---

    def show_noise(self, settings: RunSettings, show_status: Callable[[str], None]) -> None:
        """Show the map of the filter, or of another filter, until the view changes."""
        volume = self.subject.part
        diagnostic, made_with = filters.diagnostic(
            settings.step.filter.id, settings.step.parameters
        )

        def show(shown: Volume) -> None:
            if volume is not self.subject.part:
                return
            text, figures = diagnostic.describe(made_with), figures_of(shown)
            caption = f"{diagnostic.name}: {text}, {figures}"
            self.subject.show_map(shown, made_with, caption)
            show_status(f"{text}: {figures}.")

        work = partial(noise_map, volume, diagnostic, made_with)
        self._background.start("noise", work, show, self._report)

    def _show_map(self) -> None:
        shown = self.subject.map
        if shown is not None:
            display = automatic_of(shown)
            self.viewer.show_output(shown, self.subject.map_caption, display=display)
            self._has_previews = False
            self.subject.note_output(has_difference=True)
