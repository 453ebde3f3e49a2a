"""How long the selected run took, stage by stage."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize
from PySide6.QtWidgets import QLayout, QWidget

from kernelscope.gui.docks.stage_view import StageView
from kernelscope.gui.model.runs import Run
from kernelscope.gui.widgets.parts import in_column


class TimingPanel(QWidget):
    """Shows the stages of a run as a table and on a time line."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("timingPanel")
        self._run: Run | None = None
        self._stages = StageView()
        layout = in_column(self._stages, of=self, margins=(4, 2, 4, 2))
        layout.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)  # see `minimumSizeHint`
        self.show_run(None)

    def show_run(self, run: Run | None) -> None:
        self._run = run
        self._stages.show_run(run)

    def minimumSizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(45 * metrics.averageCharWidth(), 8 * metrics.height())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.show_run(self._run)
