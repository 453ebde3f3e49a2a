"""Shown in place of a plot: a line that helps, and recorded results to open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QMenu, QWidget

from kernelscope.bench.charts import Plot
from kernelscope.bench.recorded import RecordedReport
from kernelscope.gui.widgets.parts import dressed, in_column, push_button, text_label

FIRST_HINT = "Choose a preset or filters on the left, and press Run (F5)."


class EmptyPlot(QWidget):
    """A hint, and below it the recorded results while nothing was measured.

    `entries`: the recorded results; an installation may lack them. `recorded` opens the list of
    recorded results.
    """

    chosen = Signal(Path)
    """A recorded result is to be shown."""

    def __init__(self, entries: Sequence[RecordedReport]) -> None:
        super().__init__()
        self._hint = text_label("", "benchHint")
        self._hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.recorded = push_button(
            "&Recorded results",
            "benchRecorded",
            lambda: None,
            tip="Show results that were measured on another machine",
        )
        self._has_entries = bool(entries)
        menu = dressed(QMenu(self.recorded), "benchRecordedMenu")
        for entry in entries:
            action = menu.addAction(entry.title.replace("&", "&&"))
            action.triggered.connect(lambda _=False, path=entry.path: self.chosen.emit(path))
        self.recorded.setMenu(menu)
        column = in_column(0, self._hint, of=self)
        column.addWidget(self.recorded, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch()

    def show_hint(self, text: str, *, offers: bool) -> None:
        """Show a hint, with or without the recorded results."""
        self._hint.setText(text)
        self.recorded.setVisible(offers and self._has_entries)


def missing_for(plot: Plot, baseline: str) -> str:
    """Return the rows that a plot needs, for rows that it shows nothing of."""
    match plot:
        case Plot.STAGES:
            return "Needs rows of the GPU."
        case Plot.ROOFLINE:
            return "Needs rows of the GPU whose plans state bytes and operations."
        case Plot.SPEED_UP:
            return f"No row of {baseline} to compare with."
        case _:
            return "Nothing to show."
