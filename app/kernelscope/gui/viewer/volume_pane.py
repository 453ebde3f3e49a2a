"""One side of the view of volumes, and the sliders that choose slices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from PySide6.QtCore import QSignalBlocker, QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLabel, QWidget

from kernelscope.gui.model.camera import Point
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.model.plane_rows import lies_beside
from kernelscope.gui.viewer.pane import Pane
from kernelscope.gui.viewer.plane_canvas import PlaneCanvas
from kernelscope.gui.widgets.controls import Slider
from kernelscope.gui.widgets.parts import dressed, in_column
from kernelscope.images.planes import Plane
from kernelscope.images.volume import Volume

_BELOW, _BESIDE = 6, 10
"""Pixels between input and output; beside each other, more than between planes."""


def numbers(part: range) -> str:
    """Return the numbers of slices, from 1: “33” or “28–38”."""
    return f"{part.start + 1}" if len(part) == 1 else f"{part.start + 1}–{part.stop}"


class VolumePane(Pane):
    """The planes of one volume under their caption."""

    def __init__(
        self, name: str, side: PaneSide, heading: str, hint: str, parent: QWidget | None
    ) -> None:
        super().__init__(name, heading, hint, parent, padding=12)
        self.volume: Volume | None = None
        self._has_parts = False  # whether single slices are shown
        self.views = tuple(
            dressed(PlaneCanvas(side, self, number), f"{name}Plane{number}") for number in range(3)
        )
        column = in_column(self.title, of=self, margins=0, spacing=2)
        row = QHBoxLayout()
        row.setSpacing(4)
        for view in self.views:
            row.addWidget(view, 1)
        column.addLayout(row, 1)
        self.set_caption(heading)
        self.follow_palette()

    @property
    def is_empty(self) -> bool:
        return self.volume is None and not self._has_parts

    def show_volume(
        self, volume: Volume | None, caption: str, hint: str = "", brief: str = ""
    ) -> None:
        self.volume, self._has_parts = volume, False
        self.show_hint(hint)
        self.hint.setVisible(volume is None)
        self.set_caption(caption or self.heading, brief)

    def show_parts(self, caption: str, brief: str = "") -> None:
        """Show the caption of single slices, over the volume or without one."""
        self._has_parts = True
        self.hint.hide()
        self.set_caption(caption, brief)

    def place_hint(self) -> None:
        """Put the hint over the planes."""
        self.hint.setGeometry(self.rect().adjusted(0, self.title.height(), 0, 0))
        self.hint.raise_()


class PaneBox(QWidget):
    """Input and output, below each other or beside each other."""

    def __init__(self, panes: Sequence[VolumePane], parent: QWidget) -> None:
        super().__init__(parent)
        self._panes = panes
        self._alone = False
        self._extents: Sequence[tuple[float, float]] = ()
        self._box = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        self._box.setContentsMargins(0, 0, 0, 0)
        for pane in panes:
            self._box.addWidget(pane, 1)

    def show_planes(self, extents: Iterable[Point]) -> None:
        """Make room for slices of these sizes in millimetres."""
        self._extents = list(extents)
        self._arrange()

    def show_alone(self, alone: bool) -> None:
        """Make room for one plane of each side, or for all."""
        self._alone = alone
        self._arrange()

    def _arrange(self) -> None:
        heading = self._panes[0].title.sizeHint().height()
        beside = self._alone or lies_beside(self.width(), self.height(), heading, self._extents)
        direction = QBoxLayout.Direction
        self._box.setDirection(direction.LeftToRight if beside else direction.TopToBottom)
        self._box.setSpacing(_BESIDE if beside else _BELOW)

    def minimumSizeHint(self) -> QSize:
        """Return the width as it is now, and the height beside each other, which low windows get.

        Before the first layout the two lie below each other: their height enlarged the window.
        """
        width = self._box.minimumSize().width()
        return QSize(width, max(pane.minimumSizeHint().height() for pane in self._panes))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()


class SliceSliders(QWidget):
    """A slider for each plane."""

    chosen = Signal(int, int)  # a slice of a plane: number and index

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        self._sliders = [SliceSlider(number, self) for number in range(3)]
        for number, slider in enumerate(self._sliders):
            row.addWidget(slider, 1)
            slider.chosen.connect(partial(self.chosen.emit, number))

    def __getitem__(self, number: int) -> SliceSlider:
        return self._sliders[number]

    def set_planes(self, planes: Sequence[Plane], shape: tuple[int, ...]) -> None:
        for slider, plane in zip(self._sliders, planes, strict=True):
            slider.set_plane(plane, shape[plane.axis])

    def show_only(self, number: int | None) -> None:
        for each, slider in enumerate(self._sliders):
            slider.setVisible(number in (None, each))


class SliceSlider(QWidget):
    """Chooses a slice of one plane; its label says which one is shown."""

    chosen = Signal(int)

    def __init__(self, number: int, parent: QWidget) -> None:
        super().__init__(parent)
        row = QHBoxLayout(self)
        row.setContentsMargins(2, 0, 2, 0)
        self._label = dressed(QLabel(self), f"slice{number}")
        self._slider = dressed(Slider(self), f"slice{number}Slider")
        self._slider.setPageStep(10)
        self._label.setBuddy(self._slider)
        row.addWidget(self._label)
        row.addWidget(self._slider, 1)
        self._slider.valueChanged.connect(self.chosen)

    def set_plane(self, plane: Plane, count: int) -> None:
        with QSignalBlocker(self._slider):
            self._slider.setRange(0, count - 1)
        self._slider.setAccessibleName(f"{plane.name} slice")

    def show_slice(self, plane: Plane, index: int, part: range) -> None:
        """Show that this slice is the current one, or the middle of a slab."""
        with QSignalBlocker(self._slider):
            self._slider.setValue(index)
        self._label.setText(f"{plane.name}  {numbers(part)} / {self._slider.maximum() + 1}")
