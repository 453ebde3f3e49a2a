"""The controls of the views: planes, slices, projection, grey window, overlaid differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QToolButton, QWidget

from kernelscope.gui.model.slice_drawing import Projection, numbers
from kernelscope.gui.session.canvas_view import DRAWN, CanvasView
from kernelscope.gui.widgets.controls import NumberBox, Slider, WholeBox, choice_box
from kernelscope.gui.widgets.parts import dressed, in_row, label_of, switch
from kernelscope.images.planes import Plane

ALL, LARGE = 3, 4
"""Choices in place of a single plane: all alike, or one large beside two small ones."""

_TIPS = {
    ALL: "All planes, alike",
    LARGE: "The plane that was clicked last large, the others small; a double click on "
    "one of these enlarges it",
}


class PlaneSwitches(QWidget):
    """A switch for all planes, one for a large one, and one for each."""

    chosen = Signal(int)  # a plane to show alone, or `ALL` or `LARGE`

    def __init__(self) -> None:
        super().__init__()
        row = in_row(of=self, margins=0, spacing=4)
        self._switches: dict[int, QToolButton] = {}
        for number, name in enumerate(("Axial", "Coronal", "Sagittal", "All", "Large")):
            tip = _TIPS.get(number, "Double-click a plane to see it alone, and again to see all")
            button = self._switches[number] = switch(
                name, f"plane{number}Button", f"Show planes: {name.lower()}", tip=tip
            )
            button.clicked.connect(partial(self._on_click, number))
            row.insertWidget(max(0, number - 3) if number >= ALL else row.count(), button)

    def name(self, planes: Sequence[Plane]) -> None:
        for number, plane in enumerate(planes):
            self._switches[number].setText(plane.name)
            self._switches[number].setAccessibleName(f"Show only: {plane.name}")

    def show_choice(self, alone: int | None, large: int | None) -> None:
        several = ALL if large is None else LARGE
        for choice, button in self._switches.items():
            button.setChecked(choice == (several if alone is None else alone))

    def _on_click(self, choice: int, _checked: bool = False) -> None:
        self.chosen.emit(choice)
        self._switches[choice].setChecked(True)  # also if it was on already


class WindowControl(QWidget):
    """Chooses the values that are drawn black and white."""

    def __init__(self, view: CanvasView) -> None:
        super().__init__()
        self._view = view
        row = in_row(of=self, margins=0, spacing=3)
        self._level = self._box("windowLevel", "&Level", "The value that is drawn mid-grey", row)
        self._width = self._box(
            "windowWidth",
            "&Window",
            "Distance between the values drawn black and white; drag with the right button",
            row,
        )
        self.auto_button = switch(
            "Auto",
            "autoWindow",
            "Choose level and window automatically",
            tip="From the 0.2nd to the 99.8th percentile, as in pictures",
        )
        row.addWidget(self.auto_button)
        for box in (self._level, self._width):
            box.valueChanged.connect(self._on_boxes)
        self.auto_button.clicked.connect(lambda on: view.choose(None if on else view.display))
        view.when({DRAWN}, self._refresh)

    def _refresh(self) -> None:
        display = self._view.display
        if display is None:
            return
        self.auto_button.setChecked(self._view.displays.is_automatic(self._view.side))
        digits = 0 if display.width >= 100 else 2 if display.width >= 1 else 5
        for box, value in ((self._level, display.level), (self._width, display.width)):
            with QSignalBlocker(box):
                box.setDecimals(digits)
                box.setRange(-1e9 if box is self._level else 10.0**-digits, 1e9)
                box.setSingleStep(max(display.width / 20, 10.0**-digits))
                box.setValue(round(value, digits))

    def _on_boxes(self) -> None:
        level, half, display = self._level.value(), self._width.value() / 2, self._view.display
        if display is not None:
            self._view.choose(display.spanning(level - half, level + half))

    def _box(self, name: str, label: str, tip: str, row: QHBoxLayout) -> NumberBox:
        box = dressed(NumberBox(self), name, label.replace("&", ""), tip=tip)
        box.setKeyboardTracking(False)
        box.setMinimumWidth(68)  # the row must fit into the narrowest window
        caption = label_of(label, box)
        row.addWidget(caption)
        row.addWidget(box)
        return box


_MOST = 999


class ProjectionControl(QWidget):
    def __init__(self, view: CanvasView) -> None:
        super().__init__()
        self._view = view
        tip = "Show one slice, or the largest, smallest or mean value of several. "
        tip += "With Large, the large plane is projected: the small ones show their slices"
        self._kind = choice_box("projection", "Projection", Projection, tip=tip)
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
        view.when({DRAWN}, self._refresh)
        self._refresh()

    def _refresh(self) -> None:
        look = self._view.look
        with QSignalBlocker(self._kind), QSignalBlocker(self._slices):
            self._kind.setCurrentText(look.projection.value)
            self._slices.setValue(look.slices or 1)
        self._slices.setVisible(look.projection is not Projection.SLICE)

    def _on_change(self) -> None:
        slices = self._slices.value()
        projection = Projection(self._kind.currentText())
        look = replace(self._view.look, projection=projection, slices=0 if slices == 1 else slices)
        self._view.choose_look(look)


class OverlayBar(QWidget):
    """Lays a difference over the picture or volume that was subtracted; visible with it."""

    def __init__(self, view: CanvasView) -> None:
        super().__init__()
        self.setObjectName("overlayBar")
        self._view = view
        title = "Over the volume" if view.count > 1 else "Over the picture"
        self._switch = switch(
            title,
            "overlay",
            f"Draw differences {title.lower()}",
            tip="Blue: darker than before, or than the reference; orange: brighter. Under them: "
            "the input or the reference",
        )
        self._opacity = dressed(Slider(self), "overlayOpacity", "Opacity of the differences")
        self._opacity.setRange(0, 100)
        self._opacity.setPageStep(10)
        self._percent = QLabel(self)
        self._threshold = dressed(
            NumberBox(self),
            "overlayThreshold",
            "Threshold of the differences",
            tip="Smaller differences are not drawn, in units of the values",
        )
        self._threshold.setRange(0, 1e9)
        self._threshold.setKeyboardTracking(False)
        self._threshold.setMinimumWidth(84)
        row = in_row(self._switch, of=self, margins=2, spacing=4)
        self.setAutoFillBackground(True)
        for text, widget in (("Opa&city", self._opacity), ("&Threshold", self._threshold)):
            label = label_of(text, widget)
            row.addSpacing(8)
            row.addWidget(label)
            row.addWidget(widget)
            if widget is self._opacity:
                row.addWidget(self._percent)
        row.setStretchFactor(self._opacity, 1)
        row.addStretch(1)
        self._switch.toggled.connect(self._on_change)
        self._opacity.valueChanged.connect(self._on_change)
        self._threshold.valueChanged.connect(self._on_change)
        view.when({DRAWN}, self._refresh)
        self._refresh()
        self.hide()

    def _refresh(self) -> None:
        look = self._view.look
        widgets = (self._switch, self._opacity, self._threshold)
        blockers = [QSignalBlocker(widget) for widget in widgets]
        self._switch.setChecked(look.overlaid)
        self._opacity.setValue(round(100 * look.opacity))
        self._threshold.setValue(look.threshold)
        del blockers
        self._percent.setText(f"{100 * look.opacity:.0f} %")
        for widget in (self._opacity, self._percent, self._threshold):
            widget.setEnabled(look.overlaid)

    def _on_change(self) -> None:
        look = replace(
            self._view.look,
            overlaid=self._switch.isChecked(),
            opacity=self._opacity.value() / 100,
            threshold=self._threshold.value(),
        )
        self._view.choose_look(look)


class SliceSlider(QWidget):
    """Chooses a slice of one plane; its label says which one is shown."""

    chosen = Signal(int)

    def __init__(self, number: int) -> None:
        super().__init__()
        self._label = dressed(QLabel(), f"slice{number}")
        self._slider = dressed(Slider(self), f"slice{number}Slider")
        self._slider.setPageStep(10)
        self._label.setBuddy(self._slider)
        in_row(self._label, (self._slider, 1), of=self, margins=(2, 0, 2, 0))
        self._slider.valueChanged.connect(self.chosen)

    def set_plane(self, plane: Plane, count: int) -> None:
        with QSignalBlocker(self._slider):
            self._slider.setRange(0, count - 1)
        self._slider.setAccessibleName(f"{plane.name} slice")

    def show_slice(self, plane: Plane, index: int, part: range) -> None:
        with QSignalBlocker(self._slider):
            self._slider.setValue(index)
        self._label.setText(f"{plane.name}  {numbers(part)} / {self._slider.maximum() + 1}")
