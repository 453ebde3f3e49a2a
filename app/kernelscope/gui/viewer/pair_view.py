"""Input and output, of a picture or of the planes of a volume, looked at alike.

+-- input ------------------------+
|  axial     coronal   sagittal   |      A picture has one plane. Those of a volume meet in a voxel
+-- output -----------------------+      (z, y, x), marked by a crosshair. Input and output lie
|  axial     coronal   sagittal   |      beside each other if one plane is shown or height is short.
+---------------------------------+
   slider     slider    slider
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from kernelscope.engine.region import Region
from kernelscope.gui.model.camera import Point, Room
from kernelscope.gui.model.display import (
    Arrangement,
    ColourMap,
    Display,
    PaneSide,
    Viewed,
    dtype_of,
)
from kernelscope.gui.model.drawn_view import DrawnView, Pyramid
from kernelscope.gui.model.measurements import steps_of
from kernelscope.gui.model.slice_drawing import Look, Projection, slab
from kernelscope.gui.session.canvas_view import DIVIDED, DRAWN, PANES, SEEN, SLICES, CanvasView
from kernelscope.gui.viewer import values
from kernelscope.gui.viewer.layer import Key, Layer, Slabs, picture_layer
from kernelscope.gui.viewer.marks import ProbeLine
from kernelscope.gui.viewer.pane import NOTHING, Pane, PaneBox
from kernelscope.gui.viewer.plane_canvas import PlaneCanvas, Probe
from kernelscope.gui.viewer.region_tool import RegionTool
from kernelscope.gui.viewer.view_controls import (
    ALL,
    LARGE,
    OverlayBar,
    PlaneSwitches,
    ProjectionControl,
    SliceSlider,
    WindowControl,
)
from kernelscope.gui.widgets.layouts import FoldingRow
from kernelscope.gui.widgets.parts import in_row
from kernelscope.images.image import Image
from kernelscope.images.planes import Plane, Position, planes_of
from kernelscope.images.volume import Volume
from kernelscope.schema.samples import white_level

_FLAT = 3  # times that a stack is wider than deep from which on its slices are shown large
_LOW = 200  # pixels of height below which a view has only its own value beside the cursor

_Pixel = tuple[int, int]  # column and row


class PairView(QWidget):
    """Input and output, each as one plane or as three, of which the visible part is converted.

    `names`: at the divide and beside values; set before the pictures.
    `reference`: its values are read off too.
    """

    described = Signal(str)
    """Position and values under the cursor, or else under the crosshair; empty for none."""
    zoomed = Signal(float)
    """Device pixels per picture pixel; also when other parts of the pictures are in view."""
    reduction_wanted = Signal(object, int)
    """`Pyramid, int`: A level is to be made on another thread; call `redraw` then."""
    wanted = Signal(object)
    """`callable`: Computes projections, off the GUI thread; `take` draws its answer."""

    def __init__(self, view: CanvasView) -> None:
        super().__init__()
        self.view, count = view, view.count
        self.setObjectName("images" if count == 1 else "volumeViewer")
        self.names = "Input", "Output"
        self.reference: Viewed | None = None
        self._previews: Mapping[int, tuple[int, DrawnView]] = {}
        """Slices in place of those of the output, by the axis across: index and content."""
        self._earlier: frozenset[int] = frozenset()
        """Axes of planes that show an output of earlier settings, while others do not."""
        self._slabs = Slabs()
        self._made: dict[tuple[int | None, PaneSide], tuple[object, Layer | None]] = {}
        """The layer of each plane with its source; from the same one it is not made again."""
        self._ordered: set[tuple[Pyramid, int]] = set()
        thing = "picture" if count == 1 else "volume"
        drop = " or drop one here" if count == 1 else ""
        self.input = Pane(self, PaneSide.INPUT, f"Open a {thing} (Ctrl+O){drop}")
        self.output = Pane(self, PaneSide.OUTPUT, "Press Run (F5)")
        self._panes = self.input, self.output
        self._lay_out()
        self._connect()
        self.choose_plane(None)

    def _lay_out(self) -> None:
        deep = self.view.count > 1
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4 if deep else 0, 0, 0)
        self._switches = PlaneSwitches()
        self._through: tuple[QWidget, ...] = ()  # the controls of volumes of several slices
        self._sliders = [SliceSlider(number) for number in range(self.view.count if deep else 0)]
        self.overlay = OverlayBar(self.view)
        self._both = PaneBox(self._panes, self)
        if deep:
            self._through = (self._switches, ProjectionControl(self.view))
            layout.addWidget(
                FoldingRow(self._through, (WindowControl(self.view),), self, apart=True)
            )
        stack = QGridLayout()  # the bar lies over the panes, which it would move otherwise
        stack.addWidget(self._both, 0, 0)
        stack.addWidget(
            self.overlay, 0, 0, Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignLeft
        )
        self.overlay.raise_()
        layout.addLayout(stack, 1)
        if deep:
            layout.addLayout(in_row(*((each, 1) for each in self._sliders), margins=0, spacing=4))

    def _connect(self) -> None:
        for number, slider in enumerate(self._sliders):
            slider.chosen.connect(partial(self._slide, number))
        self._switches.chosen.connect(self._choose)
        self.view.when({DIVIDED}, self._compose)
        self.view.when({PANES}, self._arrange)
        self.view.when({DRAWN, SLICES}, self._draw)

    def canvases(self) -> Iterator[PlaneCanvas]:
        for pane in self._panes:
            yield from pane.views

    # --- content ---

    def show_input(
        self,
        content: DrawnView,
        title: str = "",
        details: str = "",
        *,
        follows: bool = False,
        beside: bool = False,
    ) -> None:
        """Show another input, as `Displays.show_input`; the crosshair stays if the shape does."""
        image, before = content.shown, self.input.shown
        assert image is not None
        with self.view.changing(DRAWN):
            self._remember(content)
            self.view.displays.show_input(image, follows=follows, beside=beside)
            self.input.show_content(content, title, details)
            if isinstance(image, Volume):
                self._place(image, before)
            else:
                self.view.camera.show([(image.width, image.height)])
                self.fit()

    def _place(self, volume: Volume, before: Viewed | None) -> None:
        """Lay planes through a volume."""
        shape = volume.voxels.shape
        if not isinstance(before, Volume) or before.voxels.shape != shape:
            z, y, x = (side // 2 for side in shape)
            self.view.position = z, y, x
            self.view.camera.fit()
            self.view.probe = None
            self.show_output(NOTHING)  # it may have no voxel there
        self.view.planes = planes_of(volume)
        across = [plane.axis for plane in self.view.planes]
        self.view.flat = None if volume.flat_axis is None else across.index(volume.flat_axis)
        if self.view.flat is not None:
            self.view.choose_look(replace(self.view.look, projection=Projection.SLICE))
        self._switches.name(self.view.planes)
        for slider, plane in zip(self._sliders, self.view.planes, strict=True):
            slider.set_plane(plane, shape[plane.axis])
        for number, plane in enumerate(self.view.planes):
            for pane in self._panes:
                name = f"{plane.name} plane of the {pane.heading.lower()}"
                flat = self.view.flat is not None
                pane.views[number].setAccessibleName(pane.heading if flat else name)
                spacing = volume.spacing[plane.columns], volume.spacing[plane.rows]
                pane.views[number].set_spacing(*spacing)
        extents = [values.extent(volume, plane) for plane in self.view.planes]
        depths = [volume.spacing[axis] * shape[axis] for axis in across]
        thin, *others = sorted(depths)
        self.view.widest = depths.index(thin) if _FLAT * thin < others[0] else None
        self._show_planes()
        self.view.camera.show(extents, min(volume.spacing))
        self.apply_camera()
        self._both.show_planes(extents)

    def show_output(
        self, content: DrawnView, title: str = "", details: str = "", brief: str = ""
    ) -> None:
        self._previews, self._earlier = {}, frozenset()
        displays = self.view.displays
        followed = displays.ruling(PaneSide.OUTPUT) is PaneSide.INPUT
        self._remember(content)
        displays.show_output(None if content.own_levels else content.shown)
        self.output.show_content(content, title, details, brief)
        self.overlay.setVisible(content.is_change)
        self._show_panes()
        if followed and displays.ruling(PaneSide.OUTPUT) is PaneSide.INPUT:
            self._draw()  # with the levels and colours of the input, as the one before
        else:
            self.view.note(DRAWN)

    def _remember(self, content: DrawnView) -> None:
        if content.shown is not None and content.automatic is not None:
            self.view.displays.remember(content.shown, content.automatic)

    def show_region(
        self,
        region: Region,
        image: Image,
        offset: int,
        details: str = "",
        brief: str = "",
        *,
        over_input: bool = False,
    ) -> None:
        """Draw a part of another result over the picture until the next: `Layer.put_region`.

        Before there is an output, or in place of one, the input is around it.
        """
        with self.view.changing(DRAWN):
            covers = over_input and self.output.shown is not None
            if self.output.is_empty or covers:  # no other part may be known
                display = Display.full(image.pixels.dtype)
                self.output.content = DrawnView(offset=offset)
                state, source = (self.output.content, None, None), self.input.content
                alike = source.pyramid and source.pyramid.planes.dtype == image.pixels.dtype
                ground = source.pyramid if alike else None
                around = Layer(None, ground, source.offset if ground else offset, display)
                self._made[None, PaneSide.OUTPUT] = state, around
            if self.output.shown is None:
                self.view.displays.remember(image, Display.full(image.pixels.dtype))
                self.view.displays.show_output(image)
            layer, _ = self._layer(None, PaneSide.OUTPUT, self.output.content)
            if layer is not None:
                layer.put_region(region, image, offset)
            self.output.show_parts(details, brief)
            self._show_panes()

    def show_previews(
        self, slices: Mapping[int, tuple[int, DrawnView]], details: str, brief: str
    ) -> None:
        """Show slices in place of those of the output, until `show_output`."""
        self._previews = slices
        self.output.show_parts(details, brief)
        self._show_panes()
        self._draw()

    @property
    def has_previews(self) -> bool:
        return bool(self._previews)

    def mark_earlier(self, axes: frozenset[int]) -> None:
        """Note in the planes across these axes that they show an output of earlier settings."""
        if axes != self._earlier:
            self._earlier = axes
            self._draw()

    def take(self, computed: dict[Key, NDArray[Any]]) -> None:
        """Draw projections that were computed elsewhere; see `wanted`."""
        self._slabs.put(computed)
        self._draw()

    def _content_at(self, position: Position, planes: Sequence[Plane]) -> DrawnView:
        """Return the preview that shows a voxel in one of `planes`, or else the whole output."""
        for plane in planes:
            index, preview = self._previews.get(plane.axis, (-1, NOTHING))
            sliced = self.view.look_in(plane).projection is Projection.SLICE
            if sliced and index == position[plane.axis]:
                return preview
        return self.output.content

    # --- slices ---

    @property
    def volume(self) -> Volume | None:
        return self.input.shown if isinstance(self.input.shown, Volume) else None

    def go_to(self, position: Position) -> None:
        if self.volume is None:
            return
        sides = self.volume.voxels.shape
        z, y, x = (min(max(p, 0), side - 1) for p, side in zip(position, sides, strict=True))
        with self.view.changing(SLICES):
            self.view.position = z, y, x

    def choose_plane(self, number: int | None) -> None:
        with self.view.changing(SLICES):
            self.view.chosen_plane = number
            self._show_planes()

    def _show_planes(self) -> None:
        if self.view.count == 1:
            return
        alone, large, is_deep = self.view.plane_number, self.view.large, self.view.flat is None
        for number, slider in enumerate(self._sliders):
            slider.setVisible(is_deep and alone in (None, number))
        for control in self._through:
            control.setVisible(is_deep)
        for canvas in self.canvases():
            canvas.is_deep = is_deep
            canvas.setVisible(alone in (None, canvas.plane))
        self._switches.show_choice(alone, large)
        self._both.share_room(alone, large)

    def _choose(self, choice: int) -> None:
        """Show a plane alone, one of them large, or all alike."""
        if choice in (ALL, LARGE):
            self.view.enlarge(self.view.active_plane if choice == LARGE else None)
        self.choose_plane(None if choice in (ALL, LARGE) else choice)

    def alternate(self, number: int) -> None:
        if self.view.count == 1 or self.view.flat is not None:
            self.fit()
        elif self.view.large not in (None, number):
            self.view.enlarge(number)
        else:
            self.choose_plane(number if self.view.plane_number is None else None)

    def activate(self, canvas: PlaneCanvas) -> None:
        number = list(self.canvases()).index(canvas)
        if number != self.view.clicked:
            self.view.clicked = number
            self.apply_camera()  # the part of that plane in view

    def point(self, number: int, column: int, row: int) -> None:
        if self.volume is not None:
            plane = self.view.planes[number]
            self.go_to(plane.moved(self.view.position, column, row, self.volume.voxels.shape))

    def step(self, number: int, steps: int) -> None:
        if self.view.planes:
            self._slide(number, self.view.position[self.view.planes[number].axis] + steps)

    def _slide(self, number: int, index: int) -> None:
        new = list(self.view.position)
        new[self.view.planes[number].axis] = index
        z, y, x = new
        self.go_to((z, y, x))

    # --- arrangement ---

    @property
    def shows_input_instead(self) -> bool:
        """Whether the input is drawn in the place of the output."""
        return self.output.lends_room if self.output.is_empty else self.view.shows_input

    @property
    def is_divided(self) -> bool:
        return self.view.panes.arrangement.is_divided and not self.shows_input_instead

    def _arrange(self) -> None:
        self._show_panes()
        self._show_planes()
        self._draw()
        self.apply_camera()
        for canvas in self.canvases():
            canvas.magnified = self.view.panes.magnified
            canvas.redraw()

    def _show_panes(self) -> None:
        """Show the panes of the arrangement; until there is an output, the input has its room."""
        chosen = self.view.panes.arrangement
        self.input.setVisible(chosen is Arrangement.SIDE_BY_SIDE)
        alone = chosen is Arrangement.OUTPUT
        self.output.lends_room = alone and self.output.is_empty and not self.input.is_empty

    def redraw(self) -> None:
        for canvas in self.canvases():
            canvas.redraw()

    def show_work(self, *, at_work: bool, compiling: bool) -> None:
        self.output.show_work(at_work=at_work, compiling=compiling)
        if self.output.lends_room:
            self._compose()

    def order(self, pyramid: Pyramid, level: int) -> None:
        """Pass on that a level is wanted, once."""
        if (pyramid, level) not in self._ordered:
            self._ordered = {(pyramid, level)}
            self.reduction_wanted.emit(pyramid, level)

    def sizeHint(self) -> QSize:
        return QSize(640, 420)

    # --- drawing ---

    def _draw(self) -> None:
        self._compose()
        self._describe()

    def _compose(self) -> None:
        volume = self.volume
        if volume is not None:
            for number, plane in enumerate(self.view.planes):
                index = self.view.position[plane.axis]
                self._sliders[number].show_slice(plane, index, self._slab(volume, plane))
        for pane in self._panes:
            for canvas in pane.views:
                if self.view.plane_number in (None, canvas.plane):
                    self._fill(pane, canvas)
            pane.place_hint()
        output, only, input_ = self.output.content, "", self.view.displays.of(PaneSide.INPUT)
        if volume is not None and not output.caption:
            look, name = self.view.look, volume.channel.name
            if not output.is_change:
                only, of = look.filtered_only(volume), look.figures_of(volume)
                if of and only != f"{of} only":
                    only = ", ".join(filter(None, (only, f"figures of {of}")))
            elif look.beside and name:
                only = f"{name} only"  # a difference is that of the channel in front
        drawn = output.range(input_) if input_ is not None else ""
        self.output.set_note(", ".join(filter(None, (drawn, only))))
        self._note_line()
        work = self._slabs.take_work()
        if work is not None:
            self.wanted.emit(work)

    def _slab(self, volume: Volume, plane: Plane) -> range:
        """Return the slices that are drawn in a plane."""
        index, look = self.view.position[plane.axis], self.view.look_in(plane)
        if look.projection is Projection.SLICE:
            return range(index, index + 1)
        return slab(index, look.slices, volume.voxels.shape[plane.axis])

    def _fill(self, pane: Pane, canvas: PlaneCanvas) -> None:
        own = pane is self.output
        shows_output = own and not self.shows_input_instead
        plane = self._plane(canvas.plane)
        content = self.input.content
        if shows_output:
            content = self._content_at(self.view.position, (plane,) if plane is not None else ())
        side = PaneSide.OUTPUT if shows_output else PaneSide.INPUT
        front, drawn = self._layer(canvas.plane, side, content)
        behind = None
        if own and self.is_divided:
            behind, made = self._layer(canvas.plane, PaneSide.INPUT, self.input.content)
            drawn = drawn and made
        canvas.name = self.names[0] if own and not shows_output else ""
        canvas.note = self.output.hint.text() if own and pane.lends_room else ""
        image = self.volume or self.input.content.shown
        steps = steps_of(image, plane) if image is not None and self.view.panes.scale_bar else None
        canvas.unit = 0.0 if steps is None else steps[0] if plane is None else 1.0
        if plane is not None and self.volume is not None:
            place = plane.place(self.view.position, self.volume.voxels.shape)
            canvas.cross = place if canvas.is_deep else None
            canvas.letters = plane.letters
            part, state = self._slab(self.volume, plane), ""
            if shows_output:
                state = self._state(plane, content)
            note = values.note_of(self.view.look_in(plane).projection, part, state, drawn=drawn)
            canvas.note = ", ".join(filter(None, (self.volume.oblique, note, canvas.note)))
        first, second = self.names
        if content.is_change or content.caption:
            second = content.title.partition(":")[0]  # "Residual", or the map of a filter
        canvas.show_layers(front, behind, self.view, (first, second))

    def _plane(self, number: int | None) -> Plane | None:
        planes = self.view.planes
        return planes[number] if number is not None and planes else None

    def _state(self, plane: Plane, content: DrawnView) -> str:
        """Return how a plane relates to the settings, where planes differ."""
        if plane.axis in self._earlier:
            return "Earlier settings"
        if content.part is not None:
            return "Part of the slice"
        return "Not computed yet" if self._previews and content.shown is None else ""

    def _look_of(self, plane: Plane | None, side: PaneSide, content: DrawnView) -> Look:
        """Return how a plane is drawn: both sides of a composite with the same channels."""
        if plane is None or self.volume is None:
            return self.view.look
        look, output = self.view.look_in(plane), content
        if side is PaneSide.INPUT:
            output = self._content_at(self.view.position, (plane,))
        if output.beside is not None:
            look = look.beside_output(output.beside)
        if side is PaneSide.OUTPUT:
            return look.of_output
        of_output = output.shown is not None and not (output.is_change or output.own_levels)
        return look.of_input(self.volume) if of_output else look

    def names_of(self, front: Volume) -> str:
        """Return the channels that are drawn of the input, as `Look.names`."""
        plane = self._plane(self.view.active_plane)
        return self._look_of(plane, PaneSide.INPUT, self.input.content).names(front)

    def _layer(
        self, number: int | None, side: PaneSide, content: DrawnView
    ) -> tuple[Layer | None, bool]:
        """Return the layer of a plane, as before if nothing changed; False while it is computed."""
        display, plane = self._display_of(content, side), self._plane(number)
        if display is None:
            return None, True
        look = self._look_of(plane, side, content)
        overlaid = look.overlaid and content.is_change
        index = self.view.position[plane.axis] if plane is not None else 0
        deep = (plane, index, look) if plane is not None else None
        state = content, deep, (look, display) if overlaid else None
        known, layer = self._made.get((number, side), (None, None))
        if known == state:
            if layer is not None:
                layer.display = display
            return layer, True
        if plane is not None:
            layer, drawn = self._slabs.draw(content, plane, index, display, look)
        else:
            layer, drawn = picture_layer(content, display, look), True
        # An earlier layer would be taken for one that is computed elsewhere.
        self._made[number, side] = (state if drawn else None), layer
        return layer, drawn

    def _display_of(self, content: DrawnView, side: PaneSide) -> Display | None:
        displays, own, minus = self.view.displays, content.own_levels, content.minus
        # Gains are relative to the levels of the input.
        display = displays.of(PaneSide.INPUT if content.is_change or own else side)
        display = display or displays.of(PaneSide.INPUT)
        if display is None or minus is None:
            if display is not None and own is not None:
                return replace(display, low=own.low, high=own.high)
            return display
        if self.view.look.overlaid:
            return replace(display, colour_map=ColourMap.GREY)
        if isinstance(minus, Volume):
            if content.window is not None:
                display = replace(display, low=0, high=content.window)
            return display.of_change(content.gain, self.view.difference_map)
        colours = self.view.difference_map if minus.is_grey else ColourMap.GREY
        return Display(0, 255, 1, colours)

    # --- regions ---

    def add_regions(self, tool: RegionTool) -> None:
        for canvas in self.canvases():
            canvas.regions = tool
        self.update_regions()

    def update_regions(self) -> None:
        for canvas in self.canvases():
            canvas.update()

    def set_tool(self, tool: RegionTool | None) -> None:
        """Give the left button and the keys to a tool, or back to the views."""
        for canvas in self.canvases():
            canvas.set_tool(tool)

    def in_view(self) -> tuple[QRectF, int | None]:
        """Return the part of the input in view, in its pixels, and its plane: the last clicked."""
        beside = self.view.count > 1 and not self.input.isHidden()
        canvas = (self.input if beside else self.output).views[self.view.active_plane]
        area = QRectF(0, 0, *self._size(self.view.active_plane))
        return canvas.seen().intersected(area), canvas.plane

    def focus(self) -> None:
        """Give the keyboard to the plane that was clicked last, or shown in its place."""
        pane = self._panes[self.view.clicked // self.view.count]
        if self.view.count == 1 or pane.isHidden() or pane.is_empty:
            pane = self.output if self.view.count == 1 or pane.isHidden() else self.input
        pane.views[self.view.active_plane].setFocus()

    # --- camera ---

    @property
    def _middles(self) -> Mapping[int, Point]:
        """The points of all planes about which commands magnify."""
        if self.view.count == 1:
            return {0: self.view.camera.centre()}
        if self.volume is None:
            return {}
        return values.middles(self.volume, self.view.planes, self.view.position)

    @property
    def _pointed(self) -> Point | None:
        """The point of a picture under the pointer, about which commands magnify instead."""
        if self.view.count > 1 or self.view.probe is None:
            return None
        column, row = self.view.probe[1]
        return column + 0.5, row + 0.5

    def fitting_scale(self, image: Viewed) -> float:
        """Return the device pixels per pixel of a picture when it is fitted."""
        if isinstance(image, Volume) or not self.lay_out_camera():
            return 1.0
        scale = self.view.camera.fitting_scale([(image.width, image.height)])
        return scale * self.devicePixelRatioF()

    def fit(self) -> None:
        self.view.camera.fit()
        self.apply_camera()

    def one_to_one(self) -> None:
        fixed = self._pointed
        if fixed is None:
            self.view.camera.one_to_one(self._middles, {})
        else:
            self.view.camera.one_to_one({}, {0: fixed})
        self.apply_camera()

    def zoom_in(self) -> None:
        self._zoom(1)
        self.apply_camera()

    def zoom_out(self) -> None:
        self._zoom(-1)
        self.view.camera.settle()
        self.apply_camera()

    def _zoom(self, notches: float) -> None:
        fixed = self._pointed
        if fixed is None:
            self.view.camera.zoom(notches, self._middles)
        else:
            self.view.camera.zoom_about(notches, 0, fixed)

    def look_at(self, centre: QPointF, scale: float, number: int = 0) -> None:
        self.view.camera.look_at({number: (centre.x(), centre.y())}, scale)
        self.apply_camera()

    def zoom_about(self, number: int, notches: float, fixed: QPointF) -> None:
        self.view.camera.zoom_about(notches, number, (fixed.x(), fixed.y()))
        self.apply_camera()

    def pan(self, number: int, offset: QPointF) -> None:
        if not self.input.is_empty:
            self.view.camera.pan(number, (offset.x(), offset.y()))
            self.apply_camera()

    def lay_out_camera(self) -> bool:
        """Give the camera the sizes of the views; return False while there is no room."""
        rooms = [
            Room(canvas.number, canvas.width(), canvas.height())
            for pane in self._panes
            for canvas in pane.views
            if not canvas.isHidden() and not pane.isHidden()
        ]
        if not rooms or any(not room.width or not room.height for room in rooms):
            return False
        self.view.camera.lay_out(rooms, self.devicePixelRatioF(), self.view.large)
        return True

    def apply_camera(self) -> None:
        """Draw the pictures where they belong in views of the present size."""
        if not self.lay_out_camera():
            return
        camera = self.view.camera
        for pane in self._panes:
            pane.place_hint()
        for canvas in self.canvases():
            number = canvas.number
            canvas.set_camera(QPointF(*camera.centre(number)), camera.scale_of(number))
        with self.view.changing(SEEN):
            seen = self.in_view()[0]
            self.view.seen = seen.left(), seen.top(), seen.right(), seen.bottom()
            self._note_line()
        if not self.input.is_empty:
            self.zoomed.emit(camera.device_scale)

    def _note_line(self) -> None:
        """Note where the output of a picture begins: live parts of it begin there."""
        canvas = self.output.views[0]
        column = row = -math.inf
        if canvas.is_divided:
            at = canvas.to_scene(QPointF(canvas.line, canvas.line))
            column, row = (at.x(), row) if canvas.is_upright else (column, at.y())
        if (column, row) != self.view.output_from:
            with self.view.changing(SEEN):
                self.view.output_from = column, row

    # --- probe ---

    def _size(self, number: int) -> _Pixel:
        image = self.input.shown
        if isinstance(image, Image):
            return image.width, image.height
        if image is None:
            return 0, 0
        plane, shape = self.view.planes[number], image.voxels.shape
        return shape[plane.columns], shape[plane.rows]

    def _start(self, number: int) -> _Pixel:
        """Return the pixel of a plane at which keys begin to move the probe."""
        if self.volume is not None:
            shape = self.volume.voxels.shape
            return self.view.planes[number].place(self.view.position, shape)
        x, y = self.view.camera.centre()
        return math.floor(x), math.floor(y)

    def hover(self, number: int, point: QPointF | None) -> None:
        self.view.probe = None
        if point is not None:
            columns, rows = self._size(number)
            column, row = math.floor(point.x()), math.floor(point.y())
            if 0 <= column < columns and 0 <= row < rows:
                self.view.probe = number, (column, row)
        self._describe()

    def move_probe(self, number: int, right: int, down: int) -> None:
        """Move the probe by pixels of a plane; where there is none, begin in the middle."""
        size = self._size(number)
        if not all(size):
            return
        place = self._start(number)
        if self.view.probe is not None and self.view.probe[0] == number:
            (column, row), (columns, rows) = self.view.probe[1], size
            place = min(max(column + right, 0), columns - 1), min(max(row + down, 0), rows - 1)
        self.view.probe = number, place
        self._describe()

    def _describe(self) -> None:
        number, pixel = self.view.probe or (-1, (0, 0))
        reading = self._read(number, pixel)
        self.described.emit(reading.text if reading is not None else "")
        for pane in self._panes:
            for canvas in pane.views:
                if reading is None or (canvas.number) != number:
                    canvas.set_probe(None)
                    continue
                lines = reading.lines(canvas.side, canvas.height(), divided=canvas.is_divided)
                canvas.set_probe(Probe(*pixel, lines if self.view.panes.shows_values else ()))

    @property
    def spoken(self) -> tuple[str, str]:
        """The names within a line of text."""
        first, second = (name[:1].lower() + name[1:] for name in self.names)
        return first, second

    def _read(self, number: int, pixel: _Pixel) -> Reading | None:
        """Return the values at a pixel of a plane, or else under the crosshair."""
        if self.volume is not None:
            return self._read_voxel(self.volume, number, pixel)
        if number < 0 or self.input.is_empty:
            return None
        (x, y), found, own = pixel, [], list(self.spoken)
        for pane, side, name in zip(self._panes, PaneSide, self.spoken, strict=True):
            layer, _ = self._layer(None, side, pane.content)
            samples = layer.samples_at(x, y) if layer is not None else None
            if layer is None or samples is None:
                continue
            factor = self._factor(samples)
            found.append((name, values.text_of(samples, factor)))
            if layer.minus is not None:
                change = values.change_of(samples, _at(layer, layer.minus, x, y))
                own[1] = pane.content.view.value
                found.append((own[1], values.text_of(change, factor)))
        if not found:
            return None
        image = self.reference
        if isinstance(image, Image) and found[0][0] == self.spoken[0]:
            inside = 0 <= x < image.width and 0 <= y < image.height
            samples = np.asarray(image.planes[y, x]) if inside else None
            text = "–" if samples is None else values.text_of(samples, self._factor(samples))
            found.append(("reference", text))
        return Reading(f"x {x}, y {y}", found, (own[0], own[1]), self._display_text())

    def _read_voxel(self, volume: Volume, number: int, pixel: _Pixel) -> Reading:
        plane = self.view.planes[number] if number >= 0 else None
        look = self.view.look if plane is None else self.view.look_in(plane)
        voxel, planes = self.view.position, self.view.planes
        if plane is not None:
            voxel, planes = plane.moved(voxel, *pixel, volume.voxels.shape), (plane,)
        output = self._content_at(voxel, planes)
        name = "map" if output.own_levels else self.spoken[1]
        contents = [(self.spoken[0], self.input.content), (name, DrawnView(output.at(voxel)))]
        if output.is_change:
            contents.append((output.view.value, output))
        factor, found = values.factor_of(volume.levels.span, self.view.panes.units), []
        for name, each in contents:
            if not isinstance(each.shown, Volume):
                continue
            minus, sigmas = each.minus if isinstance(each.minus, Volume) else None, each.sigmas
            value = each.shown.voxels[voxel]
            change = value if minus is None else value.item() - minus.voxels[voxel].item()
            own, unit = (factor, "") if sigmas is None else (1 / sigmas(value).item(), " σ")
            text = values.text_of(np.asarray([change]), own) + unit
            if plane is not None and look.projection is not Projection.SLICE:
                index = self.view.position[plane.axis]
                slab = self._slabs.values(each.shown, minus, plane, index, look, sigmas)
                if slab is not None:
                    column, row = plane.place(voxel, volume.voxels.shape)
                    largest = minus is not None and look.projection is not Projection.MEAN
                    kind = "largest" if largest else look.projection.value.lower()
                    whole = values.text_of(slab[row, column, None], None if unit else factor)
                    text += f" ({kind} {whole}{unit})"
            found.append((name, text))
        names = found[0][0], found[-1][0]
        reference = self.reference  # it may still be that of the input before
        if isinstance(reference, Volume) and reference.voxels.shape == volume.voxels.shape:
            sample = reference.voxels[voxel][None]
            found.append(("reference", values.text_of(sample, factor)))
        of = self.view.look.figures_of(volume)
        return Reading(values.place_text(volume, voxel), found, names, of and f"of {of}")

    def _factor(self, samples: NDArray[Any]) -> float | None:
        """Return the factor from samples to the units that are chosen; None for as stored."""
        white = white_level(samples.dtype) if self.volume is None else self.volume.levels.span
        return values.factor_of(white, self.view.panes.units)

    def _display_text(self) -> str:
        """Return how pictures are drawn, unless values are drawn as they are."""
        texts = []
        for side, pane in zip(PaneSide, self._panes, strict=True):
            display, image = self.view.displays.of(side), pane.shown
            if display is not None and image is not None:
                full = display.is_full(dtype_of(image))
                texts.append("" if full else display.describe())
        if len(texts) == 2 and texts[0] != texts[1]:
            named = zip(self.spoken, texts, strict=True)
            return ", ".join(f"{name}: {text or 'display 1:1'}" for name, text in named)
        return texts[0] if texts else ""

    def cell(self, layer: Layer, x: int, y: int) -> list[str]:
        """Return the values to write into a pixel."""
        samples = layer.samples_at(x, y)
        if samples is None:
            return []
        factor = None if layer.in_sigmas else self._factor(samples)
        if layer.minus is None:
            return values.words_of(samples, factor)
        return values.change_words(samples, _at(layer, layer.minus, x, y), factor)


def _at(layer: Layer, planes: NDArray[Any], x: int, y: int) -> NDArray[Any]:
    """Return the samples at a scene pixel in other planes of a layer."""
    return np.asarray(planes[y - layer.offset, x - layer.offset])


@dataclass(frozen=True)
class Reading:
    """The values at a pixel; `own` are bold; `note`: how they are drawn, unless as they are."""

    place: str
    values: Sequence[tuple[str, str]]
    own: tuple[str, str]
    note: str = ""

    @property
    def text(self) -> str:
        parts = (self.place, *(f"{name} {value}" for name, value in self.values), self.note)
        return "   ".join(filter(None, parts))

    def lines(self, side: PaneSide, height: int, *, divided: bool) -> tuple[ProbeLine, ...]:
        """Return the lines beside the cursor in a view; in a low one, all would cover it."""
        own = "" if divided else self.own[side is PaneSide.OUTPUT]
        values = [ProbeLine(*value, value[0] == own) for value in self.values]
        if height < _LOW:
            return tuple(line for line in values if line.bold or divided)
        notes = [ProbeLine(self.note, "")] if self.note else []
        return (ProbeLine(self.place, ""), *values, *notes)
