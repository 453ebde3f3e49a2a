"""How long the current run took, stage by stage, and how it compares with the last ones."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLayout,
    QSplitter,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from kernelscope.engine.result import Result
from kernelscope.gui.model.runs import Run, Runs
from kernelscope.gui.panels.part_colours import Legend
from kernelscope.gui.panels.run_list import RunList
from kernelscope.gui.panels.stage_view import StageView

_ACTIONS = ("timingCompareAction", "timingCopyAction", "timingClearAction")


class TimingPanel(QWidget):
    """Shows the stages of a run and the list of the last runs, newest first.

    Signals
    -------
    resultActivated(Result)
        When a run whose images are still kept is double-clicked, or Enter pressed on it.
    """

    resultActivated = Signal(object)  # noqa: N815

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("timingPanel")
        self._runs = Runs()
        self._current = StageView()
        self._current.line_shown.connect(self._make_room)
        self._list = RunList(self._runs)
        self._legend = Legend()
        self._list.parts_shown.connect(self._legend.setVisible)
        self._list.selected.connect(self._show_run)
        self._list.itemActivated.connect(lambda: self._activate())
        self._lay_out()
        self._list.refresh(None)

    def _lay_out(self) -> None:
        tools = QHBoxLayout()
        for name, text, tip, action in (
            (
                "timingCompare",
                "Compare &with this run",
                "Make the level of the selected run the baseline of all runs that did the same "
                "work",
                self.compare_with_selected,
            ),
            (
                "timingCopy",
                "&Copy",
                "Copy the list as text, cells separated by tabs",
                self._list.copy,
            ),
            ("timingClear", "C&lear", "Forget all runs", self.clear),
        ):
            tools.addWidget(self._tool(name, text, tip, action))
        tools.addStretch(1)
        tools.addWidget(self._legend)
        last = QWidget()
        column = QVBoxLayout(last)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._list, 1)
        column.addLayout(tools)

        self._splitter = QSplitter()
        self._splitter.setObjectName("timingSplitter")
        self._splitter.setChildrenCollapsible(False)
        self._splitter.addWidget(self._current)
        self._splitter.addWidget(last)
        self._splitter.setStretchFactor(0, 0)
        self._splitter.setStretchFactor(1, 1)
        self._splitter.setSizes([225, 775])
        layout = QVBoxLayout(self)
        layout.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)  # see `minimumSizeHint`
        layout.addWidget(self._splitter)

    def _tool(self, name: str, text: str, tip: str, slot: Any) -> QToolButton:
        """Return a button, whose action is also in the list's context menu."""
        action = QAction(text, self)
        action.setObjectName(f"{name}Action")
        action.setToolTip(tip)
        action.triggered.connect(slot)
        self._list.addAction(action)
        button = QToolButton()
        button.setObjectName(name)
        button.setDefaultAction(action)
        button.setAccessibleName(tip)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        return button

    @property
    def shown_runs(self) -> list[Run]:
        """The runs in the order of the rows."""
        return self._list.shown

    def add_result(self, result: Result) -> None:
        """Add a finished run to the list and show its stages."""
        self._list.refresh(self._runs.add(result))

    def compare_with_selected(self) -> None:
        """Make the selected run the baseline of its kind."""
        run = self._list.current()
        if run is not None:
            self._runs.choose(run)
            self._list.refresh(run)

    def clear(self) -> None:
        """Forget all runs; numbering continues."""
        self._runs.clear()
        self._list.refresh(None)

    def text(self) -> str:
        """Return the list as it is sorted, with its header, cells separated by tabs."""
        return self._list.text()

    def _activate(self) -> None:
        run = self._list.current()
        if run is not None and run.result is not None:
            self.resultActivated.emit(run.result)

    def _make_room(self, line: bool) -> None:
        """Give the time line as much room as the list."""
        if line:
            half = sum(self._splitter.sizes()) // 2
            self._splitter.setSizes([max(half, self._splitter.sizes()[0]), half])

    def _show_run(self, run: Run | None) -> None:
        """Show the stages of the selected run, and enable what can be done with it."""
        for name in _ACTIONS:
            action = self.findChild(QAction, name)
            assert action is not None
            action.setEnabled(run is not None)
            if name == "timingCompareAction":
                action.setEnabled(run is not None and self._can_be_baseline(run))
        self._current.show_run(run)

    def _can_be_baseline(self, run: Run) -> bool:
        """Return whether choosing `run` as the baseline would change anything."""
        return run.warm and self._runs.has_others(run) and not self._runs.is_baseline(run)

    def minimumSizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(45 * metrics.averageCharWidth(), 10 * metrics.height())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._show_run(self._list.current())
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._list.fit_columns()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the stages next to the list if there is room, otherwise above it."""
        super().resizeEvent(event)
        enough = 75 * self.fontMetrics().averageCharWidth()
        wide = self.width() > max(enough, self.height())
        self._splitter.setOrientation(
            Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical
        )
