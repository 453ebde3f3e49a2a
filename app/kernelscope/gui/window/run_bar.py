"""Run, Cancel, and the progress of the run."""

from __future__ import annotations

import time

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QHBoxLayout,
    QProgressBar,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from kernelscope.engine.timing import TimeLeft, left
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.elided_label import ElidedLabel
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.widgets.parts import dressed, in_column

_STAGES = {
    "compile": "Compiling (first use only)…",
    "estimate": "Estimating…",
    "judge": "Judging",
}


_LEAST_SECONDS = 2.0
"""A run that should end sooner has no time left to be shown."""

_TICK_MS = 250


class RunBar(QWidget):
    def __init__(self, run: QAction, cancel: QAction, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("runBar")
        set_help(self, "window#the-list-of-runs")
        buttons = QHBoxLayout()
        for action in (run, cancel):
            button = QToolButton(self)
            button.setDefaultAction(action)
            button.setObjectName(f"{action.objectName()}Button")
            button.setAccessibleName(action.text().replace("&", ""))
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)  # in the middle
            button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            button.setMinimumHeight(34)
            theme.set_role(button, "primary" if action is run else "")
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            buttons.addWidget(button, 3 if action is run else 2)
        self._bar = QProgressBar(self)
        self._bar.setObjectName("progress")
        self._bar.setAccessibleName("Progress")
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(8)
        policy = self._bar.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # or the levels above would move with each run
        self._bar.setSizePolicy(policy)
        self._label = dressed(ElidedLabel(self), "runState")
        self._time_left = TimeLeft()
        self._expected: float | None = None
        self._begun, self._guessed = 0.0, ""
        self._ticks = QTimer(self, interval=_TICK_MS)
        self._ticks.timeout.connect(self._show_guess)
        rows = buttons, self._bar, self._label
        in_column(*rows, of=self, margins=(9, 6, 9, 4), spacing=4)
        self.show_idle("")

    def expect(self, seconds: float | None) -> None:
        """Begin a run that should take so many seconds, without compiling; None if unknown."""
        self._expected = seconds if seconds is not None and seconds >= _LEAST_SECONDS else None
        self._begun = time.monotonic()

    def show_progress(self, stage: str, fraction: float, step: str = "") -> None:
        """Show a stage; the bar is indeterminate while the fraction is unknown.

        Of a run of a known pace, the time that has passed stands in for the fraction.
        `step` names the run it belongs to if there are several.
        """
        if stage in _STAGES and stage != "judge":
            self._begun = time.monotonic()  # it is no part of the time that is expected
        guesses = self._expected is not None and stage not in _STAGES and not step
        if guesses and fraction == 0:
            self._guessed = stage
            self._ticks.start()
            self._bar.show()
            self._show_guess()
            return
        self._ticks.stop()
        self._bar.show()
        if fraction > 0:
            self._bar.setRange(0, 100)
            self._bar.setValue(round(100 * fraction))
        else:
            self._bar.setRange(0, 0)
        known = _STAGES.get(stage, stage.capitalize())
        text = f"{known} {100 * fraction:.0f} %" if fraction > 0 else known
        left = self._time_left.describe(step + stage, fraction)
        self._label.set_full_text(f"{step}{text}{left}")

    def show_idle(self, text: str) -> None:
        """Hide the bar, and show how the last run ended if there is something to say."""
        self._ticks.stop()
        self._expected = None
        self._bar.setRange(0, 100)
        self._bar.setValue(0)
        self._label.set_full_text(text)
        self._bar.hide()

    def _show_guess(self) -> None:
        """Show how much of the expected time has passed; nothing is known once it is over."""
        assert self._expected is not None
        rest = self._expected - (time.monotonic() - self._begun)
        name = self._guessed.capitalize()
        if rest <= 0:
            self._bar.setRange(0, 0)
            self._label.set_full_text(f"{name}, longer than expected")
            return
        self._bar.setRange(0, 100)
        self._bar.setValue(round(100 * (1 - rest / self._expected)))
        self._label.set_full_text(f"{name}, about {left(rest)}")
