"""A volume before and after filtering: three planes each, all through the same voxel.

+-- input ------------------------+
|  axial     coronal   sagittal   |      Position: a voxel (z, y, x), marked by a crosshair.
+-- output -----------------------+      Each plane shows the slice through it across one
|  axial     coronal   sagittal   |      of the axes z, y and x. One plane shown alone puts
+---------------------------------+      input and output next to each other.
   slider     slider    slider
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QPointF, QSignalBlocker, QSize, QSizeF, Qt, Signal
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from kernelscope.gui.canvas.camera import ZOOM_STEP, PlaneCamera
from kernelscope.gui.canvas.pane import Pane
from kernelscope.gui.canvas.volume_plane_view import PlaneView
from kernelscope.gui.canvas.window_control import WindowControl
from kernelscope.gui.widgets.controls import Slider
from kernelscope.gui.widgets.switch import Switch
from kernelscope.images.planes import Plane, Position, Window, millimetres, planes_of
from kernelscope.images.volume import Volume

_ALL = 3
"""The choice of all planes in place of a single one."""


class VolumePane(Pane):
    """The planes of one volume under their caption."""

    def __init__(self, name: str, heading: str, hint: str, parent: QWidget) -> None:
        super().__init__(name, heading, hint, parent, padding=12)
        self.volume: Volume | None = None
        self.views = tuple(PlaneView(f"{name}Plane{number}", self) for number in range(3))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(self.title)
        row = QHBoxLayout()
        row.setSpacing(4)
        for view in self.views:
            row.addWidget(view, 1)
        column.addLayout(row, 1)
        self.set_caption(heading)
        self.follow_palette()

    @property
    def is_empty(self) -> bool:
        return self.volume is None

    def show_volume(
        self, volume: Volume | None, caption: str, hint: str = "", brief: str = ""
    ) -> None:
        self.volume = volume
        self.show_hint(hint)
        self.hint.setVisible(volume is None)
        self.set_caption(caption or self.heading, brief)

    def place_hint(self) -> None:
        """Put the hint over the planes."""
        self.hint.setGeometry(self.rect().adjusted(0, self.title.height(), 0, 0))
        self.hint.raise_()


class SliceSlider(QWidget):
    """Chooses a slice of one plane; its label says which one is shown.

    Signals
    -------
    chosen : int
    """

    chosen = Signal(int)

    def __init__(self, number: int, parent: QWidget) -> None:
        super().__init__(parent)
        row = QHBoxLayout(self)
        row.setContentsMargins(2, 0, 2, 0)
        self._label = QLabel(self)
        self._label.setObjectName(f"slice{number}")
        self._slider = Slider(self)
        self._slider.setObjectName(f"slice{number}Slider")
        self._slider.setPageStep(10)
        self._label.setBuddy(self._slider)
        row.addWidget(self._label)
        row.addWidget(self._slider, 1)
        self._slider.valueChanged.connect(self.chosen)

    def set_plane(self, plane: Plane, count: int) -> None:
        """Choose from the `count` slices of `plane`."""
        with QSignalBlocker(self._slider):
            self._slider.setRange(0, count - 1)
        self._slider.setAccessibleName(f"{plane.name} slice")

    def show_slice(self, plane: Plane, index: int) -> None:
        """Show that this slice is the current one."""
        with QSignalBlocker(self._slider):
            self._slider.setValue(index)
        self._label.setText(f"{plane.name}  {index + 1} / {self._slider.maximum() + 1}")


class VolumeViewer(QWidget):
    """Input and output, each as three planes, or one plane of each side by side.

    Only visible slices are converted to grey levels, so that the size of the volume does not
    matter: a move of the crosshair changes at most four of them.

    Signals
    -------
    described : str
        Position and values under the cursor, or else under the crosshair.
    arranged
        Another plane is shown alone, or all of them.
    """

    described = Signal(str)
    arranged = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("volumeViewer")
        self.position: Position = (0, 0, 0)
        self.planes: tuple[Plane, ...] = ()
        self.plane_number: int | None = None
        """Which plane is shown alone: an index of `planes`; None for all of them."""
        self.subtracted: Volume | None = None
        """The volume that is subtracted from the output, to show a difference."""
        self._gain = 1
        self._own_window: Window | None = None
        self._camera = PlaneCamera()
        self._active = 0
        self._drawn: dict[PlaneView, tuple[object, ...]] = {}
        """The state that each view was last drawn from; an equal one is not drawn again."""

        self.input = VolumePane("volumeInput", "Input", "Open a volume (Ctrl+O)", self)
        self.output = VolumePane("volumeOutput", "Output", "Press Run (F5)", self)
        self._panes = (self.input, self.output)
        self._lay_out()
        self._connect()
        self.choose_plane(None)

    # --- content ---

    @property
    def active(self) -> tuple[Volume | None, Plane, int]:
        """The slice that was clicked last: its volume, its plane and its number."""
        pane, number = divmod(self._active, 3)
        number = number if self.plane_number is None else self.plane_number
        plane = self.planes[number]
        return self._panes[pane].volume, plane, self.position[plane.axis]

    @property
    def window_(self) -> Window:
        """The values that are drawn black and white."""
        return self.control.window_

    def show_input(self, volume: Volume, caption: str) -> None:
        """Show `volume`; the crosshair stays where it is in a volume of the same shape."""
        old, self.input.volume = self.input.volume, volume
        self.input.show_volume(volume, caption)
        if old is None or old.voxels.shape != volume.voxels.shape or not self.planes:
            z, y, x = (side // 2 for side in volume.voxels.shape)
            self.position = z, y, x
            self._camera.reset()
            self.show_output(None)  # it may have no voxel there
        self.planes = planes_of(volume)
        self._camera.set_extents([_extent(volume, plane) for plane in self.planes])
        for number, plane in enumerate(self.planes):
            self._sliders[number].set_plane(plane, volume.voxels.shape[plane.axis])
            self._choices[number].setText(plane.name)
            self._choices[number].setAccessibleName(f"Show only: {plane.name}")
            for pane, name in ((self.input, "input"), (self.output, "output")):
                pane.views[number].setAccessibleName(f"{plane.name} plane of the {name}")
        self.control.show_volume(volume)
        self._apply_camera()

    def show_output(
        self,
        volume: Volume | None,
        caption: str = "",
        *,
        minus: Volume | None = None,
        gain: int = 1,
        window: Window | None = None,
        hint: str = "",
        brief: str = "",
    ) -> None:
        """Show `volume`, or how it differs from another one of its shape, amplified.

        Parameters
        ----------
        window : Window, optional
            Replaces that of the input, for values of another kind.
        hint : str
            Shown where there is no volume.
        brief : str
            Shown in place of `caption`, which its tooltip has.
        """
        self.subtracted, self._gain, self._own_window = minus, gain, window
        self.output.show_volume(volume, caption, hint, brief)
        self.output.place_hint()
        self._draw()

    def go_to(self, position: Position) -> None:
        """Move the crosshair to a voxel, or the nearest one inside."""
        if self.input.volume is None:
            return
        sides = self.input.volume.voxels.shape
        z, y, x = (min(max(p, 0), side - 1) for p, side in zip(position, sides, strict=True))
        self.position = z, y, x
        self._draw()

    def set_window(self, window: Window) -> None:
        """Choose the values drawn black and white, for this volume and the results from it."""
        self.control.choose(window)

    def set_running(self, running: bool) -> None:
        """Show in place of an output whether it is being computed."""
        self.output.set_running(running)

    def fit(self) -> None:
        """Show whole slices."""
        self._camera.reset()
        self._apply_camera()

    def one_to_one(self) -> None:
        """Show the smallest side of a voxel as one pixel, or larger if whole slices fit then."""
        if self.input.volume is not None:
            wanted = 1 / min(self.input.volume.spacing) / self.devicePixelRatioF()
            self._zoom_all(wanted / (self._fit * self._camera.zoom))

    def zoom_in(self) -> None:
        self._zoom_all(ZOOM_STEP)

    def zoom_out(self) -> None:
        self._zoom_all(1 / ZOOM_STEP)

    # --- building ---

    def _lay_out(self) -> None:
        tools = QHBoxLayout()
        tools.setSpacing(4)
        tools.addWidget(QLabel("Planes", self))
        self._choices: dict[int, Switch] = {}
        for number, name in ((_ALL, "All"), (0, "Axial"), (1, "Coronal"), (2, "Sagittal")):
            switch = Switch(self)
            switch.setObjectName(f"plane{number}Button")
            switch.setText(name)
            switch.setAccessibleName("Show all planes")
            switch.setToolTip("Double-click a plane to see it alone, and again to see all")
            switch.setCheckable(True)
            switch.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            switch.clicked.connect(partial(self._on_choice, number if number != _ALL else None))
            self._choices[number] = switch
            tools.addWidget(switch)
        tools.addStretch(1)
        self.control = WindowControl(self)
        tools.addWidget(self.control)

        self._both = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._both.setSpacing(6)
        for pane in self._panes:
            self._both.addWidget(pane, 1)
        sliders = QHBoxLayout()
        sliders.setSpacing(4)
        self._sliders = [SliceSlider(number, self) for number in range(3)]
        for slider in self._sliders:
            sliders.addWidget(slider, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addLayout(tools)
        layout.addLayout(self._both, 1)
        layout.addLayout(sliders)

    def _connect(self) -> None:
        for place, pane in enumerate(self._panes):
            for number, view in enumerate(pane.views):
                view.pressed.connect(partial(self._activate, 3 * place + number))
                view.pointed.connect(partial(self._point, number))
                view.hovered.connect(partial(self._hover, number))
                view.stepped.connect(partial(self._step, number))
                view.windowed.connect(self.control.drag)
                view.panned.connect(partial(self._pan, number))
                view.zoomed.connect(partial(self._zoom_at, number))
                view.chosen.connect(partial(self._toggle_plane, number))
                view.resized.connect(self._apply_camera)
        for number, slider in enumerate(self._sliders):
            slider.chosen.connect(partial(self._slide, number))
        self.control.changed.connect(self._draw)

    # --- moving ---

    def _activate(self, number: int) -> None:
        self._active = number

    def _point(self, number: int, column: int, row: int) -> None:
        volume = self.input.volume
        if volume is not None:
            plane = self.planes[number]
            self.go_to(plane.moved(self.position, column, row, volume.voxels.shape))

    def _step(self, number: int, steps: int) -> None:
        if self.planes:
            self._slide(number, self.position[self.planes[number].axis] + steps)

    def _slide(self, number: int, index: int) -> None:
        new = list(self.position)
        new[self.planes[number].axis] = index
        z, y, x = new
        self.go_to((z, y, x))

    def _hover(self, number: int, place: tuple[int, int] | None) -> None:
        volume = self.input.volume
        if volume is None:
            return
        if place is None:
            self._describe(self.position)
            return
        shape, plane = volume.voxels.shape, self.planes[number]
        column, row = place
        if 0 <= column < shape[plane.columns] and 0 <= row < shape[plane.rows]:
            self._describe(plane.moved(self.position, column, row, shape))
        else:
            self._describe(self.position)

    def _describe(self, position: Position) -> None:
        """Emit position and values of a voxel."""
        volume = self.input.volume
        assert volume is not None
        z, y, x = position
        facts = [f"x {x}, y {y}, z {z}"]
        place = millimetres(volume, position)
        if place is not None:
            facts.append(f"({', '.join(f'{part:.1f}' for part in place)}) mm")
        second = "map" if self._own_window else "output"
        for pane, name in ((self.input, "input"), (self.output, second)):
            if pane.volume is not None:
                facts.append(f"{name} {pane.volume.voxels[position].item():.4g}")
        self.described.emit("   ".join(facts))

    # --- drawing ---

    def _draw(self) -> None:
        """Draw the visible slices that have changed."""
        volume = self.input.volume
        if volume is None:
            return
        shape = volume.voxels.shape
        for number, plane in enumerate(self.planes):
            index = self.position[plane.axis]
            self._sliders[number].show_slice(plane, index)
            if self.plane_number in (None, number):
                for pane in self._panes:
                    view = pane.views[number]
                    view.show_marks(plane.place(self.position, shape), plane.letters)
                    self._draw_slice(pane, view, plane, index)
        self._describe(self.position)

    def _draw_slice(self, pane: VolumePane, view: PlaneView, plane: Plane, index: int) -> None:
        volume, minus, window = pane.volume, None, self.window_
        if pane is self.output:
            minus, window = self.subtracted, self._own_window or self.window_
        state = (volume, minus, self._gain, plane, index, window)
        if self._drawn.get(view) == state:
            return
        self._drawn[view] = state
        if volume is None:
            view.show_slice(None)
        elif minus is None:
            view.show_slice(window.grey(plane.cut(volume.voxels, index)))
        else:
            first, second = (plane.cut(each.voxels, index) for each in (volume, minus))
            view.show_slice(window.difference(first, second, self._gain))

    # --- camera ---

    def choose_plane(self, number: int | None) -> None:
        """Show one plane of input and output next to each other, or all for None."""
        self.plane_number = number
        for choice, switch in self._choices.items():
            switch.setChecked(choice == (_ALL if number is None else number))
        for each in range(3):
            visible = number in (None, each)
            self._sliders[each].setVisible(visible)
            for pane in self._panes:
                pane.views[each].setVisible(visible)
        direction = QBoxLayout.Direction
        alone = number is not None
        self._both.setDirection(direction.LeftToRight if alone else direction.TopToBottom)
        self._draw()
        self.arranged.emit()

    def _on_choice(self, number: int | None, _checked: bool = False) -> None:
        self.choose_plane(number)

    def _toggle_plane(self, number: int) -> None:
        self.choose_plane(number if self.plane_number is None else None)

    @property
    def _fit(self) -> float:
        """The scale of whole slices, in screen pixels per millimetre."""
        return self._camera.fit_of(
            (number, QSizeF(view.size()))
            for pane in self._panes
            for number, view in enumerate(pane.views)
            if not view.isHidden()
        )

    def _zoom_all(self, factor: float) -> None:
        """Magnify all planes about the crosshair."""
        volume = self.input.volume
        if volume is None:
            return
        points = {}
        for number, plane in enumerate(self.planes):
            column, row = plane.place(self.position, volume.voxels.shape)
            steps = volume.spacing
            points[number] = QPointF(
                (column + 0.5) * steps[plane.columns], (row + 0.5) * steps[plane.rows]
            )
        self._camera.zoom_about(points, factor)
        self._apply_camera()

    def _zoom_at(self, number: int, factor: float, point: QPointF) -> None:
        """Magnify all planes; the point under the cursor stays there."""
        if self.planes:
            view = self.input.views[number]
            middle = QPointF(view.width() / 2, view.height() / 2)
            self._camera.zoom_at(number, point - middle, factor, self._fit)
            self._apply_camera()

    def _pan(self, number: int, right: float, down: float) -> None:
        if self.planes:
            self._camera.pan(number, QPointF(right, down), self._fit)
            self._apply_camera()

    def _apply_camera(self) -> None:
        for pane in self._panes:
            pane.place_hint()
        if not self.planes:
            return
        fit = self._fit
        for pane in self._panes:
            for number, view in enumerate(pane.views):
                view.set_camera(self._camera.area(number, QSizeF(view.size()), fit))

    def sizeHint(self) -> QSize:
        return QSize(640, 420)


def _extent(volume: Volume, plane: Plane) -> QSizeF:
    """Return the size of a slice in millimetres."""
    shape, steps = volume.voxels.shape, volume.spacing
    return QSizeF(
        shape[plane.columns] * steps[plane.columns], shape[plane.rows] * steps[plane.rows]
    )
