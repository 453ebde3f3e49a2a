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
from kernelscope.gui.model.camera import Point
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.model.projection import Projection, slab
from kernelscope.gui.session.canvas_view import DRAWN, SLICES
from kernelscope.gui.session.slice_view import SliceView
from kernelscope.gui.viewer import volume_values as values
from kernelscope.gui.viewer.image_views import change_words
from kernelscope.gui.viewer.layer import Layer
from kernelscope.gui.viewer.pair_view import PairView, Reading
from kernelscope.gui.viewer.plane_canvas import PlaneCanvas
from kernelscope.gui.viewer.slices import Key, OutputContent, PaneContent, Slabs
from kernelscope.gui.viewer.volume_controls import (
    OverlayBar,
    PlaneSwitches,
    ProjectionControl,
    WindowControl,
)
from kernelscope.gui.viewer.volume_pane import PaneBox, SliceSliders, VolumePane
from kernelscope.gui.widgets.layouts import FoldingRow
from kernelscope.images.planes import Plane, Position, planes_of
from kernelscope.images.volume import Volume
from kernelscope.schema.crop import Box


class VolumeViewer(PairView):
    """Input and output, each as three planes, or one plane of each side by side.

    Only visible slices are converted to grey levels; the size of the volume does not matter.
    """

    wanted = Signal(object)
    """`callable`: Computes projections, off the GUI thread; `take` draws its answer."""

    view: SliceView
    input: VolumePane
    output: VolumePane

    def __init__(self, parent: QWidget | None = None, view: SliceView | None = None) -> None:
        hint = "Open a volume (Ctrl+O)"
        panes = (
            VolumePane("volumeInput", PaneSide.INPUT, "Input", hint, None),
            VolumePane("volumeOutput", PaneSide.OUTPUT, "Output", "Press Run (F5)", None),
        )
        super().__init__(view or SliceView(), panes, parent)
        self.setObjectName("volumeViewer")
        self.content = OutputContent()
        self._slabs = Slabs()
        self._drawn: dict[tuple[PlaneCanvas, bool], tuple[tuple[object, ...], Layer | None]] = {}
        """The state that each layer was last made from; an equal one is not made again."""
        self.reference: Volume | None = None
        self._lay_out()
        self._connect()
        self.choose_plane(None)

    # --- content ---

    def show_input(
        self, volume: Volume, caption: str, *, follows: bool = False, beside: bool = False
    ) -> None:
        """Show `volume`; the crosshair stays where it is in a volume of the same shape.

        `follows` and `beside`: as for `Displays.show_input`.
        """
        old, self.input.volume = self.input.volume, volume
        self.input.show_volume(volume, caption)
        if old is None or old.voxels.shape != volume.voxels.shape or not self.view.planes:
            z, y, x = (side // 2 for side in volume.voxels.shape)
            self.view.position = z, y, x
            self.view.camera.fit()
            self.view.probe = None
            self.show_output(None)  # it may have no voxel there
        self.view.planes = planes_of(volume)
        self._switches.name(self.view.planes)
        self._sliders.set_planes(self.view.planes, volume.voxels.shape)
        for number, plane in enumerate(self.view.planes):
            for pane in self._panes:
                name = pane.heading.lower()
                pane.views[number].setAccessibleName(f"{plane.name} plane of the {name}")
                pane.views[number].set_spacing(
                    volume.spacing[plane.columns], volume.spacing[plane.rows]
                )
        with self.view.changing(DRAWN):
            self.view.displays.show_input(volume, follows=follows, beside=beside)
        extents = [values.extent(volume, plane) for plane in self.view.planes]
        self.view.camera.show(extents, min(volume.spacing))
        self.apply_camera()
        self._both.show_planes(extents)

    def show_output(
        self,
        volume: Volume | None,
        caption: str = "",
        *,
        minus: Volume | None = None,
        gain: int = 1,
        display: Display | None = None,
        hint: str = "",
        brief: str = "",
    ) -> None:
        """Show `volume`, or how it differs from another one of its shape, amplified.

        `display` has other levels than that of the input, for values of another kind. `hint` is
        shown where there is no volume, `brief` in place of `caption`, which its tooltip has.
        """
        self.content = OutputContent(PaneContent(volume, minus, gain, display))
        with self.view.changing(DRAWN):
            self.view.displays.show_output(volume if display is None else None)
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

    # --- building ---

    def _lay_out(self) -> None:
        self._switches = PlaneSwitches(self)
        self.projection = ProjectionControl(self)
        self.control = WindowControl(self.view, self)
        tools = FoldingRow((self._switches, self.projection), (self.control,), self, apart=True)

        self._both = PaneBox((self.input, self.output), self)
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
                view.values = self._cell
                view.pressed.connect(partial(self._activate, 3 * place + number))
                view.pointed.connect(partial(self._point, number))
                view.stepped.connect(partial(self._step, number))
                view.chosen.connect(partial(self._alternate, number))
        self._sliders.chosen.connect(self._slide)
        self._switches.chosen.connect(self.choose_plane)
        self.projection.chosen.connect(self.view.choose_look)
        self.overlay.chosen.connect(self.view.choose_look)
        self.view.when({DRAWN}, self._show_look)
        self.view.when({DRAWN, SLICES}, self._draw)

    def _show_look(self) -> None:
        self.projection.show_look(self.view.look)
        self.overlay.show_look(self.view.look)

    def _activate(self, number: int) -> None:
        if number != self.view.clicked:
            self.view.clicked = number
            self.apply_camera()  # what is in view of that plane

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

    def _show_panes(self) -> None:
        """Show the panes of the arrangement; both while there is no output to share the room."""
        beside = self.view.panes.arrangement is Arrangement.SIDE_BY_SIDE or self.output.is_empty
        self.input.setVisible(beside)

    # --- probe ---

    def _size(self, number: int) -> tuple[int, int]:
        if self.input.volume is None:
            return 0, 0
        plane, shape = self.view.planes[number], self.input.volume.voxels.shape
        return shape[plane.columns], shape[plane.rows]

    def _start(self, number: int) -> tuple[int, int]:
        assert self.input.volume is not None
        return self.view.planes[number].place(self.view.position, self.input.volume.voxels.shape)

    def _read(self, number: int, pixel: tuple[int, int]) -> Reading | None:
        if self.input.volume is None:
            return None
        plane = self.view.planes[number]
        shape = self.input.volume.voxels.shape
        return self._reading(plane.moved(self.view.position, *pixel, shape), plane)

    def _read_unpointed(self) -> Reading | None:
        return self._reading(self.view.position, None) if self.input.volume is not None else None

    def _reading(self, voxel: Position, plane: Plane | None) -> Reading:
        """Return the values of a voxel, as it is looked at in a plane or by the crosshair."""
        volume, look = self.input.volume, self.view.look
        assert volume is not None
        index = self.view.position[plane.axis] if plane is not None else 0
        content = self.content.at(voxel, self.view.planes if plane is None else (plane,), look)
        factor = values.factor_of(volume, self.view.panes.units)
        found = values.values_at(voxel, volume, content, self._slabs, look, plane, index, factor)
        own = found[0][0], found[-1][0]
        if self.reference is not None and self.reference is not content.minus:
            found.append(("reference", values.text_of(self.reference.voxels[voxel].item(), factor)))
        return Reading(values.place_text(volume, voxel), found, own)

    def _cell(self, layer: Layer, x: int, y: int) -> list[str]:
        """Return the value to write into a voxel."""
        samples, volume = layer.samples_at(x, y), self.input.volume
        if samples is None or volume is None:
            return []
        factor = values.factor_of(volume, self.view.panes.units)
        if layer.minus is not None:
            return change_words(samples * (factor or 1), layer.minus[y, x])
        return [values.text_of(samples[0].item(), factor)]

    def focus(self) -> None:
        """Give the keyboard to the slice that was clicked last, or shown in its place."""
        pane = (self.input, self.output)[self.view.clicked // 3]
        if pane.isHidden() or pane.views[self.view.active_plane].front is None:
            pane = self.output if pane.isHidden() else self.input
        pane.views[self.view.active_plane].setFocus()

    def in_view(self) -> tuple[QRectF, int]:
        """Return the part in view of the plane that was clicked last, and its number."""
        pane = self.output if self.input.isHidden() else self.input
        view = pane.views[self.view.active_plane]
        area = view.front.area if view.front is not None else QRectF()
        return view.seen().intersected(area), self.view.active_plane

    # --- drawing ---

    def _compose(self) -> None:
        """Draw the visible slices that have changed, and show which they are."""
        volume = self.input.volume
        if volume is None:
            return
        for number, plane in enumerate(self.view.planes):
            index = self.view.position[plane.axis]
            self._sliders[number].show_slice(plane, index, self._slab(volume, plane))
        for pane in (self.input, self.output):
            for canvas in pane.views:
                self._fill(pane, canvas)
        work = self._slabs.take_work()
        if work is not None:
            self.wanted.emit(work)

    def _slab(self, volume: Volume, plane: Plane) -> range:
        """Return the slices that are drawn in a plane."""
        index, look = self.view.position[plane.axis], self.view.look
        if look.projection is Projection.SLICE:
            return range(index, index + 1)
        return slab(index, look.slices, volume.voxels.shape[plane.axis])

    def _fill(self, pane: VolumePane, canvas: PlaneCanvas) -> None:
        """Draw the slice of a plane."""
        volume, number, own = self.input.volume, canvas.plane, pane is self.output
        if volume is None or number is None or number >= len(self.view.planes):
            return
        if self.view.plane_number not in (None, number):
            return
        plane = self.view.planes[number]
        shows_output = own and not self.shows_input_instead
        content = PaneContent(volume)
        if shows_output:
            content = self.content.at(self.view.position, (plane,), self.view.look)
        side = PaneSide.OUTPUT if shows_output else PaneSide.INPUT
        canvas.cross, canvas.letters = (
            plane.place(self.view.position, volume.voxels.shape),
            plane.letters,
        )
        canvas.name = self.names[0] if own and not shows_output else ""
        front, drawn = self._layer(canvas, side, content, plane)
        behind = None
        if own and self.is_divided and not self.output.is_empty:
            under = PaneContent(volume)
            behind, made = self._layer(canvas, PaneSide.INPUT, under, plane, behind=True)
            drawn = drawn and made
        state = self.content.state(plane, content) if shows_output else ""
        part = self._slab(volume, plane)
        canvas.note = values.note_of(self.view.look.projection, part, state, drawn=drawn)
        canvas.show_layers(front, behind, self.view, self.names)

    def _draw(self) -> None:
        self._compose()
        self._describe()

    def _layer(
        self,
        view: PlaneCanvas,
        pane: PaneSide,
        content: PaneContent,
        plane: Plane,
        *,
        behind: bool = False,
    ) -> tuple[Layer | None, bool]:
        """Return a slice, as before if nothing has changed; False while it is computed elsewhere.

        `pane`: whose content it is. `behind`: it is drawn on the other side of the line.
        """
        index = self.view.position[plane.axis]
        # Gains are relative to the levels of the input.
        ruling = PaneSide.INPUT if content.minus is not None or content.display else pane
        display = self.view.displays.of(ruling) or self.view.displays.of(PaneSide.INPUT)
        assert display is not None
        look = display, self.view.difference_map, self.view.look
        state = (content, plane, index, *look)
        known = self._drawn.get((view, behind))
        if known is not None and known[0] == state:
            return known[1], True
        layer, drawn = self._slabs.draw(content, plane, index, *look)
        if drawn:
            self._drawn[(view, behind)] = state, layer
        else:  # the earlier picture would be taken for this one
            self._drawn.pop((view, behind), None)
        return layer, drawn

    # --- camera ---

    @property
    def _middles(self) -> Mapping[int, Point]:
        volume = self.input.volume
        if volume is None:
            return {}
        return values.middles(volume, self.view.planes, self.view.position)

    def apply_camera(self) -> None:
        for pane in (self.input, self.output):
            pane.place_hint()
        super().apply_camera()

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
