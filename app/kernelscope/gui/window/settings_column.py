"""The dock *Settings*: the parameters scroll; the ladder and Run are always in view."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtWidgets import QVBoxLayout, QWidget

from kernelscope.gui.widgets.layouts import Slot


class SettingsColumn(QWidget):
    """The controls of the page, the panel, the ladder of levels, and Run with its progress.

    Attributes
    ----------
    ladder : Slot
        Between the panel, which gives up height for it, and Run.
    run : Slot
        Run and its progress.
    """

    def __init__(self, above: Iterable[QWidget], panel: QWidget) -> None:
        super().__init__()
        self.setObjectName("settingsColumn")
        self.ladder = Slot("ladderSlot", self)
        self.run = Slot("runSlot", self)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for widget in above:
            column.addWidget(widget)
        column.addWidget(panel, 1)
        column.addWidget(self.ladder)
        column.addWidget(self.run)
