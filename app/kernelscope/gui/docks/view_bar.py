"""The row above the pictures: undo and redo, arrangement, view of the output, its display."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from kernelscope.gui.widgets.controls import WholeBox
from kernelscope.gui.widgets.parts import dressed, set_help, switch, tool_row
from kernelscope.images.judging.pictures import GAINS


class _GainBox(WholeBox):
    """Steps through `GAINS`; any whole number can be typed."""

    def stepBy(self, steps: int) -> None:
        ahead = [gain for gain in GAINS if (gain - self.value()) * steps > 0]
        if ahead:
            self.setValue(ahead[0] if steps > 0 else ahead[-1])


class ViewBar(QWidget):
    """Actions on the input, arrangements, views, gain; a button opens levels and colours."""

    gain_changed = Signal()  # see `gain`

    def __init__(
        self,
        steps: Sequence[QAction],
        arrangements: Sequence[QAction],
        views: Sequence[QAction],
        display: QAction,
    ) -> None:
        super().__init__()
        self.setObjectName("viewBar")
        set_help(self, "window#looking")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        row.addWidget(tool_row("viewButtons", steps), 1)  # a menu has those without room
        self._gain = dressed(
            _GainBox(self), "gain", "Gain of differences", tip="How much differences are amplified"
        )
        self._gain.setRange(GAINS[0], GAINS[-1])
        self._gain.setPrefix("× ")
        self._gain.setMinimumWidth(68)
        self._gain.setKeyboardTracking(False)
        self._gain.valueChanged.connect(self._on_gain)
        self._auto = switch(
            "Auto",
            "autoGain",
            "Choose the gain automatically",
            tip="The largest gain with which few differences saturate",
        )
        self._auto.setChecked(True)
        self._auto.toggled.connect(self.gain_changed)
        for widget in (self._gain, self._auto):  # where no button moves from under the pointer
            row.addWidget(widget)
        row.addSpacing(4)
        for action in arrangements:
            row.addWidget(self._button(action, icon_only=True))
        for action in views:
            row.addWidget(button := self._button(action))
            action.changed.connect(partial(self._offer, button))
            self._offer(button)
        row.addSpacing(4)
        self.display_button = self._button(display, icon_only=True)
        row.addWidget(self.display_button)
        self.show_gain(None)

    @property
    def gain(self) -> int | None:
        """The gain that the user set; None to choose one automatically."""
        return None if self._auto.isChecked() else self._gain.value()

    def show_gain(self, gain: int | None) -> None:
        if gain is not None:
            with QSignalBlocker(self._gain):
                self._gain.setValue(gain)
        for widget in (self._gain, self._auto):
            widget.setVisible(gain is not None)

    def _offer(self, button: QToolButton) -> None:
        """Show the button of a view that there is, or that is chosen."""
        action = button.defaultAction()
        button.setVisible(action.isEnabled() or action.isChecked())

    def _on_gain(self) -> None:
        if self._auto.isChecked():
            self._auto.setChecked(False)  # which emits the change
        else:
            self.gain_changed.emit()

    def _button(self, action: QAction, *, icon_only: bool = False) -> QToolButton:
        button = QToolButton(self)
        button.setDefaultAction(action)
        dressed(button, f"{action.objectName()}Button", action.toolTip())
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.setAutoRaise(True)
        if icon_only:
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        return button
