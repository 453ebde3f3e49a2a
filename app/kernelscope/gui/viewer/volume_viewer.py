"""A volume before and after filtering: three planes each, all through the same voxel.

+-- input ------------------------+
|  axial     coronal   sagittal   |      Position: a voxel (z, y, x), marked by a crosshair.
+-- output -----------------------+      Each plane shows the slice through it across one
|  axial     coronal   sagittal   |      of the axes z, y and x. Input and output lie next to
+---------------------------------+      each other if one plane is shown, or height is short.
   slider     slider    slider
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from numpy.typing import NDArray
from PySide6.QtCore import QRectF, QSize, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from kernelscope.gui.model.arrangement import Arrangement
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.model.projection import Projection, slab
from kernelscope.gui.session.canvas_view import DRAWN, PANES, SLICES
from kernelscope.gui.session.slice_view import SliceView
from kernelscope.gui.viewer import volume_values as values
from kernelscope.gui.viewer.camera import ZOOM_STEP
from kernelscope.gui.viewer.slices import Drawn, Key, OutputContent, PaneContent, Slabs
from kernelscope.gui.viewer.tools import Overlay, Tool
from kernelscope.gui.viewer.volume_camera import VolumeCamera
from kernelscope.gui.viewer.volume_controls import (
    OverlayBar,
    PlaneSwitches,
    ProjectionControl,
    WindowControl,
)
from kernelscope.gui.viewer.volume_pane import PaneBox, SliceSliders, VolumePane
from kernelscope.gui.viewer.volume_plane_view import PlaneView
from kernelscope.gui.viewer.volume_probe import VolumeProbe
from kernelscope.gui.widgets.folding_row import FoldingRow
from kernelscope.images.planes import GreyWindow, Plane, Position, planes_of
from kernelscope.images.volume import Volume
from kernelscope.schema.crop import Box


class VolumeViewer(QWidget):
    """Input and output, each as three planes, or one plane of each side by side.

    Only visible slices are converted to grey levels; the size of the volume does not matter.
    """

    described = Signal(str)
    """Position and values under the cursor, or else under the crosshair."""
    wanted = Signal(object)
    """`callable`: Computes projections, off the GUI thread; `take` draws its answer."""

    def __init__(self, parent: QWidget | None = None, view: SliceView | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("volumeViewer")
        self.view = view or SliceView()
        self._divide = 0.5
        self.content = OutputContent()
        self._slabs = Slabs()
        self._drawn: dict[tuple[PlaneView, str], tuple[object, ...]] = {}
        """The state that each view was last drawn from; an equal one is not drawn again."""

        hint = "Open a volume (Ctrl+O)"
        self.input = VolumePane("volumeInput", PaneSide.INPUT, "Input", hint, self)
        self.output = VolumePane("volumeOutput", PaneSide.OUTPUT, "Output", "Press Run (F5)", self)
        self._panes = (self.input, self.output)
        self._views = (*self.input.views, *self.output.views)
        self._camera, self.probe = VolumeCamera(self._panes), VolumeProbe(self._panes, self.view)
        self._overlays: tuple[Overlay, ...] = ()
        self._lay_out()
        self._connect()
        self.choose_plane(None)

    # --- content ---

    def show_input(self, volume: Volume, caption: str) -> None:
        """Show `volume`; the crosshair stays where it is in a volume of the same shape."""
        old, self.input.volume = self.input.volume, volume
        self.input.show_volume(volume, caption)
        if old is None or old.voxels.shape != volume.voxels.shape or not self.view.planes:
            z, y, x = (side // 2 for side in volume.voxels.shape)
            self.view.position = z, y, x
            self._camera.reset()
            self.probe.clear()
            self.show_output(None)  # it may have no voxel there
        self.view.planes = planes_of(volume)
        self._switches.name(self.view.planes)
        self._sliders.set_planes(self.view.planes, volume.voxels.shape)
        for number, plane in enumerate(self.view.planes):
            for pane in self._panes:
                name = pane.heading.lower()
                pane.views[number].setAccessibleName(f"{plane.name} plane of the {name}")
        self.view.show_volume(volume)
        self._camera.show(volume, self.view.planes)
        self._both.show_planes(values.extent(volume, plane) for plane in self.view.planes)

    def show_output(
        self,
        volume: Volume | None,
        caption: str = "",
        *,
        minus: Volume | None = None,
        gain: int = 1,
        window: GreyWindow | None = None,
        hint: str = "",
        brief: str = "",
    ) -> None:
        """Show `volume`, or how it differs from another one of its shape, amplified.

        `window` replaces that of the input, for values of another kind. `hint` is shown where there
        is no volume. `brief` is shown in place of `caption`, which its tooltip has.
        """
        self.content = OutputContent(PaneContent(volume, minus, gain, window))
        self.output.show_volume(volume, caption, hint, brief)
        self._show_panes()
        self.output.place_hint()
        self.overlay.show_difference(minus is not None)
        self._draw()

    def show_previews(
        self, slices: Mapping[int, tuple[int, Volume, Box | None]], caption: str, brief: str
    ) -> None:
        """Show slices in place of those of the output, until `show_output`.

        `slices`: as in `OutputContent`. `caption` and `brief`: as for `show_output`.
        """
        self.content.previews = slices
        self.output.show_parts(caption, brief)
        self._show_panes()
        self._draw()

    def mark_earlier(self, axes: frozenset[int]) -> None:
        """Note in the planes across these axes that they show an output of earlier settings."""
        if axes != self.content.earlier:
            self.content.earlier = axes
            self._draw()

    def take(self, computed: dict[Key, NDArray[Any]]) -> None:
        """Draw projections that were computed elsewhere; see `wanted`."""
        self._slabs.put(computed)
        self._draw()

    def go_to(self, position: Position) -> None:
        """Move the crosshair to a voxel, or the nearest one inside."""
        if self.input.volume is None:
            return
        sides = self.input.volume.voxels.shape
        z, y, x = (min(max(p, 0), side - 1) for p, side in zip(position, sides, strict=True))
        with self.view.changing(SLICES):
            self.view.position = z, y, x
            self.probe.follow(self.view.position, self.view.planes)

    def set_running(self, running: bool) -> None:
        """Show in place of an output whether it is being computed."""
        self.output.set_running(running)

    def fit(self) -> None:
        """Show whole slices."""
        self._camera.reset()
        self._camera.apply()

    def one_to_one(self) -> None:
        """Show the smallest side of a voxel as one pixel, or larger if whole slices fit then."""
        self._camera.one_to_one(self.view.position, self.devicePixelRatioF())

    def zoom_in(self) -> None:
        self._camera.zoom_all(self.view.position, ZOOM_STEP)

    def zoom_out(self) -> None:
        self._camera.zoom_all(self.view.position, 1 / ZOOM_STEP)

    # --- building ---

    def _lay_out(self) -> None:
        self._switches = PlaneSwitches(self)
        self.projection = ProjectionControl(self)
        self.control = WindowControl(self.view, self)
        tools = FoldingRow((self._switches, self.projection), (self.control,), self, apart=True)

        self._both = PaneBox(self._panes, self)
        self._sliders = SliceSliders(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        self.overlay = OverlayBar(self)
        layout.addWidget(tools)
        layout.addWidget(self.overlay)
        layout.addWidget(self._both, 1)
        layout.addWidget(self._sliders)

    def _connect(self) -> None:
        for place, pane in enumerate(self._panes):
            for number, view in enumerate(pane.views):
                view.pressed.connect(partial(self._activate, 3 * place + number))
                view.pointed.connect(partial(self._point, number))
                view.hovered.connect(partial(self._hover, number))
                view.stepped.connect(partial(self._step, number))
                view.levelled.connect(self.control.drag)
                view.panned.connect(partial(self._camera.pan, number))
                view.zoomed.connect(partial(self._camera.zoom_at, number))
                view.probed.connect(partial(self._move_probe, number))
                view.chosen.connect(partial(self._alternate, number))
                view.resized.connect(self._camera.apply)
                view.divided.connect(self.set_divide)
                view.held.connect(self.view.hold_input)
        self._sliders.chosen.connect(self._slide)
        self._switches.chosen.connect(self.choose_plane)
        self.projection.chosen.connect(self.view.choose_look)
        self.overlay.chosen.connect(self.view.choose_look)
        self.view.when({DRAWN}, self._show_look)
        self.view.when({DRAWN, SLICES}, self._draw)
        self.view.when({PANES}, self._arrange)

    def _show_look(self) -> None:
        self.projection.show_look(self.view.look)
        self.overlay.show_look(self.view.look)

    def _arrange(self) -> None:
        self.probe.show_magnifier()
        self._show_panes()
        self._draw()
        self._camera.apply()

    def _activate(self, number: int) -> None:
        self.view.clicked = number

    def _point(self, number: int, column: int, row: int) -> None:
        volume = self.input.volume
        if volume is not None:
            plane = self.view.planes[number]
            self.go_to(plane.moved(self.view.position, column, row, volume.voxels.shape))

    def _step(self, number: int, steps: int) -> None:
        if self.view.planes:
            self._slide(number, self.view.position[self.view.planes[number].axis] + steps)

    def _slide(self, number: int, index: int) -> None:
        new = list(self.view.position)
        new[self.view.planes[number].axis] = index
        z, y, x = new
        self.go_to((z, y, x))

    # --- arrangement ---

    def set_divide(self, share: float) -> None:
        """Move the line between input and output."""
        self._divide = min(max(share, 0.0), 1.0)
        self._draw()

    def _show_panes(self) -> None:
        """Show the panes of the arrangement; both while there is no output to share the room."""
        beside = self.view.panes.arrangement is Arrangement.SIDE_BY_SIDE or self.output.is_empty
        self.input.setVisible(beside)

    def _hover(self, number: int, place: tuple[int, int] | None) -> None:
        volume = self.input.volume
        if volume is not None:
            plane, shape = self.view.planes[number], volume.voxels.shape
            self.probe.hover(number, place, plane, self.view.position, shape)
            self._show_probe()

    def _move_probe(self, number: int, right: int, down: int) -> None:
        volume = self.input.volume
        if volume is not None:
            plane, shape = self.view.planes[number], volume.voxels.shape
            self.probe.move(number, (right, down), plane, self.view.position, shape)
            self._show_probe()

    def _show_probe(self) -> None:
        volume = self.input.volume
        if volume is not None:
            look = self.view.look
            text = self.probe.show(
                volume,
                self.view.planes,
                self.view.position,
                lambda position, planes: self.content.at(position, planes, look),
                self._slabs,
                look,
            )
            self.described.emit(text)

    # --- overlays and tools ---

    def add_overlay(self, overlay: Overlay) -> None:
        """Draw over the slices from now on; call `update_overlays` after each change."""
        self._overlays = (*self._overlays, overlay)
        for view in self._views:
            view.overlays = self._overlays
        self.update_overlays()

    def update_overlays(self) -> None:
        for view in self._views:
            view.update()

    def set_tool(self, tool: Tool | None) -> None:
        """Give the left button and the keys to a tool; None gives them back."""
        for view in self._views:
            view.tool = tool

    def focus(self) -> None:
        """Give the keyboard to the slice that was clicked last, or shown in its place."""
        pane = self._panes[self.view.clicked // 3]
        if pane.isHidden() or pane.views[self.view.active_plane].image is None:
            pane = self.output if pane.isHidden() else self.input
        pane.views[self.view.active_plane].setFocus()

    def in_view(self) -> tuple[QRectF, int]:
        """Return the part in view of the plane that was clicked last, and its number."""
        pane = self.output if self.input.isHidden() else self.input
        return pane.views[self.view.active_plane].seen(), self.view.active_plane

    # --- drawing ---

    def _draw(self) -> None:
        """Draw the visible slices that have changed."""
        volume = self.input.volume
        if volume is None:
            return
        shape, look = volume.voxels.shape, self.view.look
        arrangement = self.view.panes.arrangement
        instead = self.view.shows_input and not self.output.is_empty
        divided = arrangement.is_divided and not instead and not self.output.is_empty
        for number, plane in enumerate(self.view.planes):
            index = self.view.position[plane.axis]
            part = range(index, index + 1)
            if look.projection is not Projection.SLICE:
                part = slab(index, look.slices, shape[plane.axis])
            self._sliders[number].show_slice(plane, index, part)
            if self.view.plane_number not in (None, number):
                continue
            for pane in self._panes:
                view = pane.views[number]
                own = pane is self.output and not instead
                content = PaneContent(volume)
                if own:
                    content = self.content.at(self.view.position, (plane,), look)
                view.show_marks(plane.place(self.view.position, shape), plane.letters)
                drawn = self._draw_slice(view, "front", content, plane, index)
                if pane is self.output:
                    behind = PaneContent(volume) if divided else PaneContent()
                    drawn = self._draw_slice(view, "behind", behind, plane, index) and drawn
                    view.show_divide(arrangement, self._divide)
                named = "Input" if instead and pane is self.output else ""
                state = self.content.state(plane, content) if own else ""
                note = values.note_of(look.projection, part, state, drawn=drawn, named=named)
                view.show_note(note)
        work = self._slabs.take_work()
        if work is not None:
            self.wanted.emit(work)
        self._show_probe()

    def _draw_slice(
        self, view: PlaneView, layer: str, content: PaneContent, plane: Plane, index: int
    ) -> bool:
        """Draw a slice unless it is drawn already; return False if it is computed elsewhere."""
        state = (content, plane, index, self.view.window, self.view.look)
        if self._drawn.get((view, layer)) == state:
            return True
        drawn = self._slabs.draw(content, plane, index, self.view.window, self.view.look)
        show = view.show_slice if layer == "front" else view.show_behind
        if drawn is None:  # the earlier picture would be taken for this one
            self._drawn.pop((view, layer), None)
            show(Drawn())
            return False
        self._drawn[(view, layer)] = state
        show(drawn)
        return True

    # --- camera ---

    def _alternate(self, number: int) -> None:
        self.choose_plane(number if self.view.plane_number is None else None)

    def choose_plane(self, number: int | None) -> None:
        """Show one plane of input and output next to each other, or all for None."""
        with self.view.changing(SLICES):
            self.view.plane_number = number
            self._switches.show_choice(number)
            self._sliders.show_only(number)
            for each in range(3):
                visible = number in (None, each)
                for pane in self._panes:
                    pane.views[each].setVisible(visible)
            self._both.show_alone(number is not None)

    def sizeHint(self) -> QSize:
        return QSize(640, 420)
