"""Gamma and colours of volumes, in a panel that pops up; level and window are always in view."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import QFormLayout, QFrame, QWidget

from kernelscope.gui.docks.popup import place_below
from kernelscope.gui.model.colour_maps import ColourMap
from kernelscope.gui.model.display import GAMMAS
from kernelscope.gui.viewer.volume_viewer import VolumeViewer
from kernelscope.gui.widgets.controls import ChoiceBox, NumberBox
from kernelscope.gui.widgets.parts import dressed, in_row, push_button, text_label

_NOTE = (
    "Only the view changes, never the data. In a slice, drag with the right button: across for "
    "the window, up and down for the level."
)


class VolumeDisplayPanel(QFrame):
    """Boxes for the look of volumes; follows `VolumeViewer.displayed`."""

    def __init__(self, viewer: VolumeViewer, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setObjectName("volumeDisplayPanel")
        self.setAccessibleName("Level and colours of volumes")
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self._viewer = viewer
        form = QFormLayout(self)
        form.setContentsMargins(12, 10, 12, 10)
        form.setVerticalSpacing(6)
        self._gamma = dressed(
            NumberBox(self),
            "volumeGamma",
            "Gamma",
            tip="Below 1 the middle becomes lighter, above 1 darker",
        )
        self._gamma.setRange(*GAMMAS)
        self._gamma.setSingleStep(0.1)
        self._gamma.setKeyboardTracking(False)
        self._map = _choice("volumeMap", "Colours", list(ColourMap), self)
        differences = [ColourMap.DIVERGING, ColourMap.GREY]
        self._difference = _choice("volumeDifference", "Colours of differences", differences, self)
        form.addRow("&Gamma", self._gamma)
        form.addRow("&Colours", self._map)
        form.addRow("&Differences", self._difference)
        automatic = viewer.control.choose_automatic
        buttons = (
            push_button("&Automatic", "volumeAutomatic", automatic),
            push_button("&Full Range", "volumeFull", viewer.control.choose_full),
        )
        form.addRow(in_row(*buttons, 1))
        note = text_label(_NOTE, "", "note", parent=self)
        note.setMinimumWidth(280)
        form.addRow(note)
        viewer.displayed.connect(self.refresh)
        self._gamma.valueChanged.connect(self._choose)
        self._map.currentTextChanged.connect(self._choose)
        self._difference.currentTextChanged.connect(self._choose)
        self.refresh()

    def open_below(self, widget: QWidget) -> None:
        """Pop up under a button, inside of its screen."""
        self.refresh()
        place_below(self, widget)
        self._gamma.setFocus()

    def refresh(self) -> None:
        """Show the look as it is now."""
        look = self._viewer.look
        blockers = [QSignalBlocker(each) for each in (self._gamma, self._map, self._difference)]
        self._gamma.setValue(look.gamma)
        self._map.setCurrentText(look.colour_map)
        self._difference.setCurrentText(look.difference_map)
        del blockers

    def _choose(self) -> None:
        self._viewer.choose_look(
            replace(
                self._viewer.look,
                gamma=self._gamma.value(),
                colour_map=ColourMap(self._map.currentText()),
                difference_map=ColourMap(self._difference.currentText()),
            )
        )


def _choice(name: str, title: str, maps: list[ColourMap], parent: QWidget) -> ChoiceBox:
    box = dressed(ChoiceBox(parent), name, title)
    box.addItems([each.value for each in maps])
    return box
