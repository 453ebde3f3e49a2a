"""Steps through the components of a scan, or through the volumes of a file, such as time points."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QLabel, QToolButton, QWidget

from kernelscope.gui.widgets.controls import Slider
from kernelscope.gui.widgets.elided_label import plain_tip
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.widgets.parts import dressed, in_row

_NOTE = 12  # most room for a name, in heights of a line


class VolumeStepBar(QWidget):
    """A label, a slider and a button that plays; hidden while there is a single volume."""

    chosen = Signal(int)  # show the volume at this index
    played = Signal(bool)  # show one after the other, or stop doing so

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("volumeSteps")
        set_help(self, "volumes#volumes-of-a-file")
        self._label = dressed(QLabel(self), "volumeStep")
        self._slider = dressed(
            Slider(self), "volumeStepSlider", tip="Full stop and comma step forwards and backwards"
        )
        self._label.setBuddy(self._slider)
        self._play = dressed(QToolButton(self), "playVolumesButton")
        self._play.setCheckable(True)
        self._play.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        in_row(self._label, (self._slider, 1), self._play, of=self, margins=(2, 0, 2, 0), spacing=6)
        self._slider.valueChanged.connect(self.chosen)
        self._play.toggled.connect(self._on_toggled)
        self._on_toggled(False)
        self.hide()

    @property
    def text(self) -> str:
        return self._label.text()

    @property
    def playing(self) -> bool:
        return self._play.isChecked()

    def set_playing(self, playing: bool) -> None:
        self._play.setChecked(playing)

    def show_place(self, kind: str, index: int, count: int, note: str) -> None:
        """Show the place in `count` volumes; `kind` is “Component” or “Volume”.

        `note` follows the number: a name, or that the volume is being read.
        """
        with QSignalBlocker(self._slider):
            self._slider.setRange(0, count - 1)
            self._slider.setValue(index)
        self._slider.setAccessibleName(kind)
        metrics = self._label.fontMetrics()
        elided = metrics.elidedText(note, Qt.TextElideMode.ElideMiddle, _NOTE * metrics.height())
        text = f"{kind}  {index + 1} / {count}"
        self._label.setText(f"{text}  {elided}" if note else text)
        self._label.setToolTip(plain_tip(note))
        # Or the slider would jump while the number grows by a digit.
        self._label.setMinimumWidth(metrics.horizontalAdvance(f"{kind}  {count} / {count}"))
        self.setVisible(count > 1)

    def _on_toggled(self, playing: bool) -> None:
        self._play.setText("Stop" if playing else "Play")
        self._play.setAccessibleName("Stop playing" if playing else "Play the volumes")
        self._play.setToolTip("Show the volumes one after the other, again and again")
        self.played.emit(playing)
