"""Differences over the anatomy: the switch, their opacity and the threshold."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QLabel, QWidget

from kernelscope.gui.model.slice_drawing import Look
from kernelscope.gui.widgets.controls import NumberBox, Slider
from kernelscope.gui.widgets.parts import dressed, in_row, label_of
from kernelscope.gui.widgets.switch import Switch


class OverlayBar(QWidget):
    """Visible while a difference is shown."""

    chosen = Signal(object)
    """A `Look`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("overlayBar")
        self._look = Look()
        self._switch = dressed(
            Switch(self),
            "overlay",
            "Draw differences over the anatomy",
            tip="Blue: darker than before, or than the reference; orange: brighter. Grey: the "
            "volume that was subtracted",
        )
        self._switch.setText("Over the anatomy")
        self._switch.setCheckable(True)
        self._switch.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._opacity = dressed(Slider(self), "overlayOpacity", "Opacity of the differences")
        self._opacity.setRange(0, 100)
        self._opacity.setPageStep(10)
        self._percent = QLabel(self)
        self._threshold = dressed(
            NumberBox(self),
            "overlayThreshold",
            "Threshold of the differences",
            tip="Smaller differences are not drawn, in units of the voxels",
        )
        self._threshold.setRange(0, 1e9)
        self._threshold.setKeyboardTracking(False)
        self._threshold.setMinimumWidth(84)
        row = in_row(self._switch, of=self, margins=0, spacing=4)
        for text, widget in (("&Opacity", self._opacity), ("&Threshold", self._threshold)):
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
        self.show_look(self._look)
        self.hide()

    def show_difference(self, shown: bool) -> None:
        self.setVisible(shown)

    def show_look(self, look: Look) -> None:
        self._look = look
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
        self.chosen.emit(
            replace(
                self._look,
                overlaid=self._switch.isChecked(),
                opacity=self._opacity.value() / 100,
                threshold=self._threshold.value(),
            )
        )
