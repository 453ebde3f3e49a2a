"""The badge over the output: preview, up to date or out of date."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QSizePolicy

from kernelscope.gui.model.freshness import Freshness
from kernelscope.gui.widgets.elided_label import ElidedLabel
from kernelscope.gui.widgets.help_place import set_help
from kernelscope.gui.widgets.parts import dressed

_HELP = {
    Freshness.EXACT: "The output is that of these settings, for the whole picture.",
    Freshness.PREVIEW: "A part of the output is shown, exactly as the whole will have it.",
    Freshness.OUT_OF_DATE: "The output was computed with other settings.",
}


class FreshnessBadge(ElidedLabel):
    """A shape, a word and the details: ``◐ preview: the visible 900×700 pixels``."""

    def __init__(self) -> None:
        super().__init__()
        dressed(self, "freshness", "Freshness of the output")
        set_help(self, "window#live")
        self.freshness: Freshness | None = None
        self._details: str | None = None
        # As wide as its text where there is room, beside figures and notes.
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def show_freshness(self, freshness: Freshness | None, details: str) -> None:
        """Show how the output relates to the settings; None for no output."""
        if (freshness, details) == (self.freshness, self._details):
            return
        self.freshness, self._details = freshness, details
        word = f"{freshness.symbol} {freshness}" if freshness is not None else ""
        self.set_full_text(": ".join(filter(None, (word, details))))
        self.setAccessibleDescription(self.toolTip())
        if freshness is not None:
            self.setToolTip(f"{self.toolTip()}\n{_HELP[freshness]}")
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        size = super().sizeHint()
        size.setWidth(self.fontMetrics().horizontalAdvance(self.full_text) + 2)
        return size

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())
