"""Run, Cancel, and the progress of the run."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from kernelscope.engine.timing import TimeLeft
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.help_place import set_help

_STAGES = {
    "compile": "Compiling (first use only)…",
    "estimate": "Estimating…",
    "judge": "Judging",
}


class RunBar(QWidget):
    """Two large buttons over a progress bar."""

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
        self._label = QLabel(self)
        self._label.setObjectName("runState")
        self._label.setWordWrap(True)
        self._time_left = TimeLeft()
        layout = QVBoxLayout(self)
        layout.addLayout(buttons)
        layout.addWidget(self._bar)
        layout.addWidget(self._label)
        self.show_idle("Ready.")

    def show_progress(self, stage: str, fraction: float, step: str = "") -> None:
        """Show a stage; the bar is indeterminate while the fraction is unknown.

        `step` names the run it belongs to if there are several.
        """
        if fraction > 0:
            self._bar.setRange(0, 100)
            self._bar.setValue(round(100 * fraction))
        else:
            self._bar.setRange(0, 0)
        self._label.setEnabled(True)
        known = _STAGES.get(stage, stage.capitalize())
        text = f"{known} {100 * fraction:.0f} %" if fraction > 0 else known
        left = self._time_left.describe(step + stage, fraction)
        self._label.setText(f"{step}{text}{left}")

    def show_idle(self, text: str, *, stale: bool = False) -> None:
        """Empty the bar and show how the last run ended; greyed where that had other settings."""
        self._bar.setRange(0, 100)
        self._bar.setValue(0)
        self._label.setText(text)
        self._label.setEnabled(not stale)
