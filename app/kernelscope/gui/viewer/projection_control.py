"""The choice between slices and projections of slabs."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QWidget

from kernelscope.gui.model.projection import Projection
from kernelscope.gui.model.slice_drawing import Look
from kernelscope.gui.widgets.controls import ChoiceBox, WholeBox
from kernelscope.gui.widgets.parts import dressed, in_row

_MOST = 999


class ProjectionControl(QWidget):
    """A list of projections, and the thickness of the slab."""

    chosen = Signal(object)
    """A `Look`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._look = Look()
        self._kind = dressed(
            ChoiceBox(self),
            "projection",
            "Projection",
            tip="Show one slice, or the largest, smallest or mean value of several",
        )
        self._kind.addItems([each.value for each in Projection])
        self._slices = dressed(
            WholeBox(self),
            "slabSlices",
            "Slices of the slab",
            tip="How many slices around the crosshair are projected; below 2: all",
        )
        self._slices.setRange(1, _MOST)
        self._slices.setSpecialValueText("all")
        self._slices.setKeyboardTracking(False)
        self._slices.setMinimumWidth(56)
        in_row(self._kind, self._slices, of=self, margins=(4, 0, 0, 0), spacing=4)
        self._kind.currentTextChanged.connect(self._on_change)
        self._slices.valueChanged.connect(self._on_change)
        self.show_look(self._look)

    def show_look(self, look: Look) -> None:
        self._look = look
        with QSignalBlocker(self._kind), QSignalBlocker(self._slices):
            self._kind.setCurrentText(look.projection.value)
            self._slices.setValue(look.slices or 1)
        self._slices.setVisible(look.projection is not Projection.SLICE)

    def _on_change(self) -> None:
        slices = self._slices.value()
        projection = Projection(self._kind.currentText())
        self.chosen.emit(
            replace(self._look, projection=projection, slices=0 if slices == 1 else slices)
        )
