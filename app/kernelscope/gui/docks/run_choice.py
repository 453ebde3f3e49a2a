"""The choice of runs in a view: which are selected, which is current, which was clicked."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import (
    QEvent,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    Qt,
    Signal,
)
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QAbstractItemView

from kernelscope.gui.model.runs import Run

RUN_ROLE = Qt.ItemDataRole.UserRole + 1
"""Role of the run in a row of a model; None for a heading."""


class RunChoice(QObject):
    """Chooses runs in a view of a model that has them under `RUN_ROLE`.

    - `last`: the last column of a row, all of which are selected.
    """

    clicked = Signal(object)  # `Run`: without a modifier: it is to be shown
    changed = Signal()  # other runs are selected, or another one is current

    def __init__(self, view: QAbstractItemView, last: int = 0) -> None:
        super().__init__(view)
        self._view, self._last = view, last
        self._plain = True
        """Whether the button of the mouse was released without a modifier."""
        view.selectionModel().currentChanged.connect(lambda: self.changed.emit())
        view.selectionModel().selectionChanged.connect(lambda: self.changed.emit())
        view.clicked.connect(self._on_clicked)
        view.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QMouseEvent) and event.type() == QEvent.Type.MouseButtonRelease:
            self._plain = event.modifiers() == Qt.KeyboardModifier.NoModifier
        return super().eventFilter(watched, event)

    def _on_clicked(self, index: QModelIndex) -> None:
        run = index.data(RUN_ROLE)
        if run is not None and self._plain:
            self.clicked.emit(run)

    @property
    def runs(self) -> list[Run]:
        return list(self._places())

    def _places(self) -> dict[Run, QModelIndex]:
        model = self._view.model()
        cells = [model.index(row, 0) for row in range(model.rowCount())]
        return {cell.data(RUN_ROLE): cell for cell in cells if cell.data(RUN_ROLE) is not None}

    def cell(self, run: Run, column: int = 0) -> QModelIndex:
        return self._places()[run].siblingAtColumn(column)

    @property
    def current(self) -> Run | None:
        run: Run | None = self._view.currentIndex().data(RUN_ROLE)
        return run

    @property
    def selected(self) -> list[Run]:
        rows = {index.row() for index in self._view.selectionModel().selectedIndexes()}
        return [run for run, cell in self._places().items() if cell.row() in rows]

    def select(self, runs: Sequence[Run], current: Run | None) -> None:
        """Select these runs, without a signal, and bring the current one into view."""
        blocked = self.blockSignals(True)
        flags, chooser = QItemSelectionModel.SelectionFlag, self._view.selectionModel()
        selection = QItemSelection()
        for run, cell in self._places().items():
            if run is current:
                chooser.setCurrentIndex(cell, flags.NoUpdate)
                self._view.scrollTo(cell)
            if run in runs:
                selection.select(cell, cell.siblingAtColumn(self._last))
        chooser.select(selection, flags.ClearAndSelect)
        self.blockSignals(blocked)
