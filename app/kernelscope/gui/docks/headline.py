"""The headline over the output: time, rate and quality of the picture that is shown."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from kernelscope.gui.model.figures import Figures
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.elided_label import ElidedLabel
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.widgets.layouts import Slot
from kernelscope.gui.widgets.parts import dressed, in_row


class Headline(QWidget):
    """Figures in large type, a badge, and a note in small type.

    `badge`: place of the badge that says whether the picture is up to date.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("headline")
        set_help(self, "window#the-list-of-runs")
        self._text = dressed(QLabel(self), "headlineText", "Time, rate and quality of the output")
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        theme.set_role(self._text, "headline")
        self.badge = Slot("badgeSlot", self)
        self._note = dressed(ElidedLabel(self), "headlineNote")
        theme.set_role(self._note, "note")
        in_row(self._text, self.badge, (self._note, 1), of=self, margins=(4, 0, 4, 0), spacing=10)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.show_figures(None)

    def show_figures(self, figures: Figures | None) -> None:
        self._text.setText(figures.text if figures else "–")
        note, detail = (figures.note, figures.detail) if figures else ("", "")
        full = f"{note}\n{detail}" if detail else note
        self._note.set_full_text(full, f"⚠ {note}" if detail else "")
        theme.set_role(self._note, "warning" if detail else "note")
        spoken = f"{figures.text}, {full}" if figures else "No output yet"
        self._text.setAccessibleDescription(spoken)
