"""Level and window of volumes: two boxes and “Auto”, and the user's choice for each volume."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from kernelscope.gui.widgets.controls import NumberBox
from kernelscope.gui.widgets.parts import dressed, label_of
from kernelscope.gui.widgets.switch import Switch
from kernelscope.images.planes import GreyWindow, auto_window
from kernelscope.images.volume import Volume

_DRAG = 1 / 300
"""Share of the window's width by which one pixel of a drag changes it."""

_NARROWEST = 1e-6


class WindowControl(QWidget):
    """Chooses the values that are drawn black and white."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.window_ = GreyWindow(0.5, 1)
        self._volume: Volume | None = None
        self._chosen: WeakKeyDictionary[Volume, GreyWindow] = WeakKeyDictionary()
        self._automatic: WeakKeyDictionary[Volume, GreyWindow] = WeakKeyDictionary()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(3)
        self._level = self._box("windowLevel", "&Level", "The value that is drawn mid-grey", row)
        self._width = self._box(
            "windowWidth",
            "&Window",
            "Distance between the values drawn black and white; drag with the right button",
            row,
        )
        self.auto_button = dressed(
            Switch(self),
            "autoWindow",
            "Choose level and window automatically",
            tip="From the 1st to the 99th percentile of the input",
        )
        self.auto_button.setText("Auto")
        self.auto_button.setCheckable(True)
        self.auto_button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        row.addWidget(self.auto_button)
        for box in (self._level, self._width):
            box.valueChanged.connect(self._on_boxes)
        self.auto_button.clicked.connect(self._on_auto)

    def show_volume(self, volume: Volume) -> None:
        """Take the window that was chosen for `volume`, or else the automatic one."""
        self._volume = volume
        self.auto_button.setChecked(volume not in self._chosen)
        self._set(self._chosen.get(volume) or self._auto_window(volume))

    def choose(self, window: GreyWindow) -> None:
        """Use `window` for the volume that is shown, now and later."""
        if self._volume is not None:
            self._chosen[self._volume] = window
            self.auto_button.setChecked(False)
            self._set(window)

    def drag(self, right: float, up: float) -> None:
        """Change the width by a drag to the right and the level by one upwards, in pixels.

        Viewers of medical scans agree on these directions.
        """
        step = self.window_.width * _DRAG
        width = max(self.window_.width + right * step, _NARROWEST)
        self.choose(GreyWindow(self.window_.level - up * step, width))

    def choose_automatic(self) -> None:
        """Use the automatic window for the volume that is shown."""
        self.auto_button.setChecked(True)
        self._on_auto(True)

    def choose_full(self) -> None:
        """Draw the smallest voxel black and the largest white."""
        if self._volume is not None:
            low, high = self._volume.value_range
            self.choose(GreyWindow((low + high) / 2, (high - low) or 1.0))

    def cache_window(self, volume: Volume, window: GreyWindow) -> None:
        """Store the automatic window of `volume`, which takes a while to find."""
        self._automatic[volume] = window

    def _auto_window(self, volume: Volume) -> GreyWindow:
        if volume not in self._automatic:
            self._automatic[volume] = auto_window(volume)
        return self._automatic[volume]

    def _set(self, window: GreyWindow) -> None:
        self.window_ = window
        digits = 0 if window.width >= 100 else 2 if window.width >= 1 else 5
        for box, value in ((self._level, window.level), (self._width, window.width)):
            with QSignalBlocker(box):
                box.setDecimals(digits)
                box.setRange(-1e9 if box is self._level else 10.0**-digits, 1e9)
                box.setSingleStep(max(window.width / 20, 10.0**-digits))
                box.setValue(round(value, digits))
        self.changed.emit()

    def _on_boxes(self) -> None:
        self.choose(GreyWindow(self._level.value(), self._width.value()))

    def _on_auto(self, checked: bool) -> None:
        if self._volume is None:
            return
        if checked:
            self._chosen.pop(self._volume, None)
            self._set(self._auto_window(self._volume))
        else:
            self._chosen[self._volume] = self.window_

    def _box(self, name: str, label: str, tip: str, row: QHBoxLayout) -> NumberBox:
        box = dressed(NumberBox(self), name, label.replace("&", ""), tip=tip)
        box.setKeyboardTracking(False)
        box.setMinimumWidth(68)  # the row must fit into the narrowest window
        caption = label_of(label, box)
        row.addWidget(caption)
        row.addWidget(box)
        return box
