"""What the program knows about the GPU, and how to get one going."""

from __future__ import annotations

import html
import re

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QLabel, QVBoxLayout, QWidget

from app.engine.backend import Availability
from app.gui.dialogs import SELECTABLE, add_button, close_box, headline
from app.gui.theme import fixed_font


class GpuDialog(QDialog):
    """The state of the GPU: the device, or why there is none and what to do about it."""

    def __init__(self, availability: Availability, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("gpuDialog")
        self.setWindowTitle("GPU information")
        self._availability = availability
        self._headline = (
            "GPU filters can be used" if availability.available else "No supported device found"
        )

        reason = QLabel(availability.summary)
        reason.setObjectName("reason")
        reason.setTextFormat(Qt.TextFormat.PlainText)
        reason.setWordWrap(True)
        reason.setTextInteractionFlags(SELECTABLE)
        reason.setMinimumWidth(70 * self.fontMetrics().averageCharWidth())

        layout = QVBoxLayout(self)
        layout.addWidget(headline(self._headline))
        layout.addWidget(reason)
        if not availability.available:
            rest = QLabel("Filters run on the CPU; everything else works as usual.")
            rest.setObjectName("rest")
            rest.setWordWrap(True)
            layout.addWidget(rest)
        if availability.steps:
            layout.addWidget(self._steps())
        layout.addStretch(1)
        box = close_box(self)
        add_button(box, "copyButton", "&Copy", "Copy all of this text", self.copy)
        layout.addWidget(box)

    def _steps(self) -> QLabel:
        items = "".join(
            f"<li style='margin-bottom: 4px'>{_with_commands(step)}</li>"
            for step in self._availability.steps
        )
        label = QLabel(f"<p>What to do:</p><ol style='margin-top: 0'>{items}</ol>")
        label.setObjectName("steps")
        label.setWordWrap(True)
        label.setTextInteractionFlags(SELECTABLE)
        return label

    def text(self) -> str:
        """Return everything the dialog says, as plain text."""
        steps = [f"{number}. {step}" for number, step in enumerate(self._availability.steps, 1)]
        return "\n".join((self._headline, self._availability.summary, *steps))

    def copy(self) -> None:
        """Put `text` on the clipboard."""
        QGuiApplication.clipboard().setText(self.text())


def _with_commands(step: str) -> str:
    """Return `step` as HTML, with the commands between backticks in monospace."""
    style = f"font-family: {fixed_font().family()}; white-space: pre"
    return re.sub("`([^`]+)`", rf'<span style="{style}">\1</span>', html.escape(step))
