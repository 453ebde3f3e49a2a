"""A volume before and after: three planes each, all at the same voxel."""

from __future__ import annotations

from functools import partial
from weakref import WeakKeyDictionary

from PySide6.QtCore import QPointF, QRectF, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)

from kernelscope.gui.canvas.image_views import EARLIER, RUNNING
from kernelscope.gui.canvas.volume_plane_view import PlaneView
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.controls import NumberBox, Slider
from kernelscope.gui.widgets.elided_label import ElidedLabel
from kernelscope.gui.widgets.switch import Switch
from kernelscope.images.planes import Plane, Position, Window, auto_window, millimetres, planes_of
from kernelscope.images.volume import Volume

_MOST_ZOOM = 32.0
_ZOOM_STEP = 1.25
_FIT_MARGIN = 4
"""Pixels left free around a fitted slice."""

_DRAG = 1 / 300
"""Share of the window's width that a pixel of a drag changes it by."""

_ALL = 3
"""Chosen in place of a single plane."""


class _Side(QWidget):
    """The planes of one volume under their caption."""

    def __init__(self, name: str, heading: str, hint: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.volume: Volume | None = None
        self._heading, self._first_hint = heading, hint
        self._text, self._brief, self._stale = heading, "", False
        self._caption = ElidedLabel(self)
        self._caption.setObjectName(f"{name}Title")
        font = self._caption.font()
        font.setBold(True)
        self._caption.setFont(font)
        self.views = tuple(PlaneView(f"{name}Plane{number}", self) for number in range(3))
        self._hint = QLabel(hint, self)
        self._hint.setObjectName(f"{name}Hint")
        self._hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._hint.setWordWrap(True)
        self._hint.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(self._caption)
        row = QHBoxLayout()
        row.setSpacing(4)
        for view in self.views:
            row.addWidget(view, 1)
        column.addLayout(row, 1)
        self._caption.set_full_text(heading)

    def show_volume(
        self, volume: Volume | None, caption: str, hint: str = "", brief: str = ""
    ) -> None:
        self.volume = volume
        self._brief = brief
        self._text = caption or self._heading
        self._hint.setText(hint or self._first_hint)
        self._hint.setVisible(volume is None)
        self.set_stale(self._stale)

    def set_stale(self, stale: bool) -> None:
        """Say over the planes that Run would not make them as things are set now, or not."""
        self._stale = stale
        stale = stale and self.volume is not None
        before = EARLIER if stale else ""
        self._caption.set_full_text(before + self._text, self._brief and before + self._brief)
        colour = theme.warning_text(self.palette()).name()
        self._caption.setStyleSheet(f"color: {colour}" if stale else "")

    def set_running(self, running: bool) -> None:
        """Say whether a volume is on its way, where the hint that the side began with stood."""
        if self._hint.text() in (self._first_hint, RUNNING):
            self._hint.setText(RUNNING if running else self._first_hint)

    def place_hint(self) -> None:
        """Put the hint over what is shown."""
        quiet = theme.quiet_text(self.palette()).name()
        self._hint.setStyleSheet(f"color: {quiet}; padding: 12px")
        self._hint.setGeometry(self.rect().adjusted(0, self._caption.height(), 0, 0))
        self._hint.raise_()


class VolumeViewer(QWidget):
    """Input and output, each as three planes, or one plane of each side by side.

    Only the slices that are seen are turned into grey levels, so that the size of the
    volume does not matter: a move of the crosshair changes at most four of them.

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
        self._minus: Volume | None = None
        self._gain = 1
        self._own_window: Window | None = None
        self._window = Window(0.5, 1)
        self._windows: WeakKeyDictionary[Volume, Window] = WeakKeyDictionary()
        """Those that the user set."""
        self._automatic: WeakKeyDictionary[Volume, Window] = WeakKeyDictionary()
        self._zoom = 1.0
        self._centres: dict[int, QPointF] = {}
        """What lies in the middle of each plane, in millimetres from its top left corner."""
        self._active = 0
        self._drawn: dict[PlaneView, tuple[object, ...]] = {}
        """What each view was drawn from, not to draw it again."""

        self.input = _Side("volumeInput", "Input", "Open a volume (Ctrl+O)", self)
        self.output = _Side("volumeOutput", "Output", "Press Run (F5)", self)
        self._sides = (self.input, self.output)
        self._lay_out()
        self._connect()
        self._choose_plane(_ALL)

    # --- what is shown ---

    @property
    def active(self) -> tuple[Volume | None, Plane, int]:
        """The slice that was clicked last: its volume, its plane and its number."""
        side, number = divmod(self._active, 3)
        number = number if self.plane_number is None else self.plane_number
        plane = self.planes[number]
        return self._sides[side].volume, plane, self.position[plane.axis]

    @property
    def window_(self) -> Window:
        """The values that are drawn black and white."""
        return self._window

    def know_window(self, volume: Volume, window: Window) -> None:
        """Take `window` as the automatic one of `volume`; finding it takes a while."""
        self._automatic[volume] = window

    def show_input(self, volume: Volume, caption: str) -> None:
        """Show `volume`; the crosshair stays where it is in a volume of the same shape."""
        old, self.input.volume = self.input.volume, volume
        self.input.show_volume(volume, caption)
        if old is None or old.voxels.shape != volume.voxels.shape or not self.planes:
            z, y, x = (side // 2 for side in volume.voxels.shape)
            self.position = z, y, x
            self._zoom = 1.0
            self._centres.clear()
            self.show_output(None)  # has no voxel there, perhaps
        self.planes = planes_of(volume)
        for number, plane in enumerate(self.planes):
            with QSignalBlocker(self._sliders[number]):
                self._sliders[number].setRange(0, volume.voxels.shape[plane.axis] - 1)
            self._sliders[number].setAccessibleName(f"{plane.name} slice")
            self._choices[number].setText(plane.name)
            self._choices[number].setAccessibleName(f"Show only: {plane.name}")
            for side, name in ((self.input, "input"), (self.output, "output")):
                side.views[number].setAccessibleName(f"{plane.name} plane of the {name}")
        self._set_window(self._windows.get(volume) or self._auto_window(volume))
        self._auto.setChecked(volume not in self._windows)
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
            In place of that of the input, where the values are of another kind.
        hint : str
            Said where there is no volume.
        brief : str
            In place of `caption` where there is no room for that.
        """
        self._minus, self._gain, self._own_window = minus, gain, window
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
        """Choose what is black and white, for this volume and what is made of it."""
        if self.input.volume is not None:
            self._windows[self.input.volume] = window
            self._auto.setChecked(False)
            self._set_window(window)

    def set_running(self, running: bool) -> None:
        """Say in place of an output whether it is on its way."""
        self.output.set_running(running)

    def fit(self) -> None:
        """Show whole slices."""
        self._zoom = 1.0
        self._centres.clear()
        self._apply_camera()

    def one_to_one(self) -> None:
        """Show the smallest side of a voxel as one pixel, or larger if whole slices fit then."""
        if self.input.volume is not None:
            wanted = 1 / min(self.input.volume.spacing) / self.devicePixelRatioF()
            self._zoom_all(wanted / self._scale())

    def zoom_in(self) -> None:
        self._zoom_all(_ZOOM_STEP)

    def zoom_out(self) -> None:
        self._zoom_all(1 / _ZOOM_STEP)

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
            switch.clicked.connect(partial(self._choose_plane, number))
            self._choices[number] = switch
            tools.addWidget(switch)
        tools.addStretch(1)
        self._level = self._spin("windowLevel", "&Level", "The value that is drawn mid-grey", tools)
        self._width = self._spin(
            "windowWidth",
            "&Window",
            "How far the values drawn black and white lie apart; drag with the right button",
            tools,
        )
        self._auto = Switch(self)
        self._auto.setObjectName("autoWindow")
        self._auto.setText("Auto")
        self._auto.setAccessibleName("Choose level and window automatically")
        self._auto.setToolTip("From the 1st to the 99th percentile of the input")
        self._auto.setCheckable(True)
        self._auto.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        tools.addWidget(self._auto)

        self._both = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._both.setSpacing(6)
        for side in self._sides:
            self._both.addWidget(side, 1)
        sliders = QHBoxLayout()
        sliders.setSpacing(4)
        self._sliders, self._places, self._slider_boxes = [], [], []
        for number in range(3):
            box = QWidget(self)
            row = QHBoxLayout(box)
            row.setContentsMargins(2, 0, 2, 0)
            label = QLabel(box)
            label.setObjectName(f"slice{number}")
            slider = Slider(box)
            slider.setObjectName(f"slice{number}Slider")
            slider.setPageStep(10)
            label.setBuddy(slider)
            row.addWidget(label)
            row.addWidget(slider, 1)
            sliders.addWidget(box, 1)
            self._sliders.append(slider)
            self._places.append(label)
            self._slider_boxes.append(box)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addLayout(tools)
        layout.addLayout(self._both, 1)
        layout.addLayout(sliders)

    def _spin(self, name: str, label: str, tip: str, row: QHBoxLayout) -> NumberBox:
        box = NumberBox(self)
        box.setObjectName(name)
        box.setAccessibleName(label.replace("&", ""))
        box.setToolTip(tip)
        box.setKeyboardTracking(False)
        box.setMinimumWidth(84)
        caption = QLabel(label, self)
        caption.setBuddy(box)
        row.addWidget(caption)
        row.addWidget(box)
        return box

    def _connect(self) -> None:
        for place, side in enumerate(self._sides):
            for number, view in enumerate(side.views):
                view.pressed.connect(partial(self._activate, 3 * place + number))
                view.pointed.connect(partial(self._point, number))
                view.hovered.connect(partial(self._hover, number))
                view.stepped.connect(partial(self._step, number))
                view.windowed.connect(self._drag_window)
                view.panned.connect(partial(self._pan, number))
                view.zoomed.connect(partial(self._zoom_at, number))
                view.chosen.connect(partial(self._toggle_plane, number))
                view.resized.connect(self._apply_camera)
        for number, slider in enumerate(self._sliders):
            slider.valueChanged.connect(partial(self._slide, number))
        for box in (self._level, self._width):
            box.valueChanged.connect(self._on_boxes)
        self._auto.clicked.connect(self._on_auto)

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
        """Tell position and values of a voxel."""
        volume = self.input.volume
        assert volume is not None
        z, y, x = position
        facts = [f"x {x}, y {y}, z {z}"]
        place = millimetres(volume, position)
        if place is not None:
            facts.append(f"({', '.join(f'{part:.1f}' for part in place)}) mm")
        second = "map" if self._own_window else "output"
        for side, name in ((self.input, "input"), (self.output, second)):
            if side.volume is not None:
                facts.append(f"{name} {side.volume.voxels[position].item():.4g}")
        self.described.emit("   ".join(facts))

    # --- drawing ---

    def _draw(self) -> None:
        """Draw what is seen and has changed."""
        volume = self.input.volume
        if volume is None:
            return
        shape = volume.voxels.shape
        for number, plane in enumerate(self.planes):
            index = self.position[plane.axis]
            with QSignalBlocker(self._sliders[number]):
                self._sliders[number].setValue(index)
            self._places[number].setText(f"{plane.name}  {index + 1} / {shape[plane.axis]}")
            if self.plane_number in (None, number):
                for side in self._sides:
                    view = side.views[number]
                    view.show_marks(plane.place(self.position, shape), plane.letters)
                    self._draw_slice(side, view, plane, index)
        self._describe(self.position)

    def _draw_slice(self, side: _Side, view: PlaneView, plane: Plane, index: int) -> None:
        volume, minus, window = side.volume, None, self._window
        if side is self.output:
            minus, window = self._minus, self._own_window or self._window
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

    # --- window ---

    def _set_window(self, window: Window) -> None:
        self._window = window
        digits = 0 if window.width >= 100 else 2 if window.width >= 1 else 5
        for box, value in ((self._level, window.level), (self._width, window.width)):
            with QSignalBlocker(box):
                box.setDecimals(digits)
                box.setRange(-1e9 if box is self._level else 10.0**-digits, 1e9)
                box.setSingleStep(max(window.width / 20, 10.0**-digits))
                box.setValue(round(value, digits))
        self._draw()

    def _auto_window(self, volume: Volume) -> Window:
        if volume not in self._automatic:
            self._automatic[volume] = auto_window(volume)
        return self._automatic[volume]

    def _on_boxes(self) -> None:
        self.set_window(Window(self._level.value(), self._width.value()))

    def _on_auto(self, checked: bool) -> None:
        volume = self.input.volume
        if volume is None:
            return
        if checked:
            self._windows.pop(volume, None)
            self._set_window(self._auto_window(volume))
        else:
            self._windows[volume] = self._window

    def _drag_window(self, right: float, up: float) -> None:
        """Change the width to the right and the level upwards, as viewers of scans do."""
        step = self._window.width * _DRAG
        width = max(self._window.width + right * step, 1e-6)
        self.set_window(Window(self._window.level - up * step, width))

    # --- camera ---

    def _choose_plane(self, number: int, _clicked: bool = False) -> None:
        """Show one plane of input and output side by side, or all of them."""
        for choice, switch in self._choices.items():
            switch.setChecked(choice == number)
        alone = number != _ALL
        self.plane_number = number if alone else None
        for each in range(3):
            seen = not alone or each == number
            self._slider_boxes[each].setVisible(seen)
            for side in self._sides:
                side.views[each].setVisible(seen)
        direction = QBoxLayout.Direction
        self._both.setDirection(direction.LeftToRight if alone else direction.TopToBottom)
        self._draw()
        self.arranged.emit()

    def _toggle_plane(self, number: int) -> None:
        self._choose_plane(number if self.plane_number is None else _ALL)

    def _zoom_all(self, factor: float) -> None:
        """Magnify all planes about the crosshair."""
        self._zoom_by(factor)
        volume = self.input.volume
        if volume is not None and self._zoom > 1:
            for number, plane in enumerate(self.planes):
                column, row = plane.place(self.position, volume.voxels.shape)
                steps = volume.spacing
                self._centres[number] = QPointF(
                    (column + 0.5) * steps[plane.columns], (row + 0.5) * steps[plane.rows]
                )
        self._apply_camera()

    def _zoom_at(self, number: int, factor: float, point: QPointF) -> None:
        """Magnify all planes; what is under the cursor stays there."""
        if not self.planes:
            return
        before = self._scale()
        self._zoom_by(factor)
        after = self._scale()
        if self._zoom == 1:  # whole slices lie in the middle
            self._apply_camera()
            return
        view = self.input.views[number]
        middle = QPointF(view.width() / 2, view.height() / 2)
        centre = self._centres.get(number, self._middle(number))
        self._centres[number] = centre + (point - middle) * (1 / before - 1 / after)
        self._apply_camera()

    def _zoom_by(self, factor: float) -> None:
        self._zoom = min(max(self._zoom * factor, 1.0), _MOST_ZOOM)
        if self._zoom == 1:
            self._centres.clear()

    def _pan(self, number: int, right: float, down: float) -> None:
        if self.planes:
            centre = self._centres.get(number, self._middle(number))
            self._centres[number] = centre - QPointF(right, down) / self._scale()
            self._apply_camera()

    def _extent(self, plane: Plane) -> tuple[float, float]:
        """Return the width and the height of a slice in millimetres."""
        assert self.input.volume is not None
        shape, steps = self.input.volume.voxels.shape, self.input.volume.spacing
        return (
            shape[plane.columns] * steps[plane.columns],
            shape[plane.rows] * steps[plane.rows],
        )

    def _middle(self, number: int) -> QPointF:
        width, height = self._extent(self.planes[number])
        return QPointF(width / 2, height / 2)

    def _scale(self) -> float:
        """Return screen pixels per millimetre, the same in all planes that are seen."""
        scales = []
        for side in self._sides:
            for view, plane in zip(side.views, self.planes, strict=True):
                if not view.isHidden():
                    width, height = self._extent(plane)
                    scales += [
                        max(1, view.width() - 2 * _FIT_MARGIN) / width,
                        max(1, view.height() - 2 * _FIT_MARGIN) / height,
                    ]
        return min(scales) * self._zoom

    def _apply_camera(self) -> None:
        for side in self._sides:
            side.place_hint()
        if not self.planes:
            return
        scale = self._scale()
        for number, plane in enumerate(self.planes):
            width, height = self._extent(plane)
            centre = self._centres.get(number, self._middle(number))
            for side in self._sides:
                view = side.views[number]
                left = view.width() / 2 - centre.x() * scale
                top = view.height() / 2 - centre.y() * scale
                view.set_camera(QRectF(left, top, width * scale, height * scale))

    def sizeHint(self) -> QSize:
        return QSize(640, 420)
