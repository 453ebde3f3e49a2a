"""The headline over the output: time, rate and quality of the picture that is shown."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from kernelscope.gui.model.freshness import Freshness
from kernelscope.gui.model.runs import Figures
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.parts import ElidedLabel, SnugLabel, dressed, in_row, set_help

_HELP = {
    Freshness.EXACT: "The output is that of these settings, for the whole picture.",
    Freshness.PART: "A part of the output until the whole is there; its pixels are final.",
    Freshness.PREVIEW: "Until the output is there: the whole reduced, or by a quick method.",
    Freshness.OUT_OF_DATE: "The output was computed with other settings.",
}


class FreshnessBadge(SnugLabel):
    """A shape, a word and the details: ``◐ part: 900×700 of 6000×4000 pixels``."""

    def __init__(self) -> None:
        super().__init__()
        dressed(self, "freshness", "Freshness of the output")
        set_help(self, "window#live")
        self.freshness: Freshness | None = None
        self._details: str | None = None

    def show_freshness(self, freshness: Freshness | None, details: str) -> None:
        """Show how the output relates to the settings; None for no output."""
        if (freshness, details) == (self.freshness, self._details):
            return
        self.freshness, self._details = freshness, details
        word = f"{freshness.symbol} {freshness}" if freshness is not None else ""
        self.set_full_text(": ".join(filter(None, (word, details))))
        if freshness is not None:
            self.setToolTip(f"{self.toolTip()}\n{_HELP[freshness]}")


class Headline(QWidget):
    """Figures in large type, a badge saying whether they are up to date, and a small note."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("headline")
        set_help(self, "window#the-list-of-runs")
        self._text = dressed(
            QLabel(self),
            "headlineText",
            "Time, rate and quality of the output",
            tip="Quality: the PSNR, or its gain, of the whole picture or volume",
        )
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        theme.set_role(self._text, "headline")
        self.badge = FreshnessBadge()
        self._note = dressed(ElidedLabel(self), "headlineNote")
        theme.set_role(self._note, "note")
        parts = self._text, self.badge, (self._note, 1), 0  # the badge alone stands on the left
        in_row(*parts, of=self, margins=(4, 0, 4, 0), spacing=10)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.show_figures(None)

    def show_times(self, shown: bool) -> None:
        """Show time, rate and quality beside the badge, or the badge alone."""
        for label in (self._text, self._note):
            label.setVisible(shown)

    def show_figures(self, figures: Figures | None) -> None:
        self._text.setText(figures.text if figures else "")
        note, detail = (figures.note, figures.detail) if figures else ("", "")
        full = f"{note}\n{detail}" if detail else note
        self._note.set_full_text(full, f"⚠ {note}" if detail else "")
        theme.set_role(self._note, "warning" if detail else "note")
        spoken = f"{figures.text}, {full}" if figures else "No output yet"
        self._text.setAccessibleDescription(spoken)
