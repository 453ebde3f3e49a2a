"""The strip of runs: a thumbnail each, with the settings that distinguish it, time and quality."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QPainter, QPalette, QPen, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QListView, QStyleOptionViewItem, QWidget

from kernelscope.gui.docks.run_table import decibels
from kernelscope.gui.model.gallery import Gallery, RunOrder
from kernelscope.gui.model.runs import Run
from kernelscope.gui.model.times import duration
from kernelscope.gui.widgets.elided_label import plain_tip
from kernelscope.gui.widgets.parts import dressed
from kernelscope.gui.widgets.tiles import (
    Index,
    Tile,
    TileDelegate,
    TileLine,
    draw_tile,
    is_selected,
    scroll_sideways,
)

_RUN = Qt.ItemDataRole.UserRole
_SETTINGS = Qt.ItemDataRole.UserRole + 1
_SHOWN = Qt.ItemDataRole.UserRole + 2

_LETTERS = 24  # width of a tile in characters; its height is that of the strip

_LEAST_PICTURE = 40
_MARGIN, _GAP = 4, 3
_LINES = 2


_ROOT = QModelIndex()


class _Runs(QAbstractListModel):
    """The runs from left to right, as a model for the reason of `RunRows`."""

    def __init__(self, strip: RunStrip) -> None:
        super().__init__(strip)
        self.runs: tuple[Run, ...] = ()
        self._settings: tuple[tuple[str, ...], ...] = ()
        self.shown: Run | None = None  # the one whose picture is in the viewer

    def show(self, runs: Sequence[Run], settings: Sequence[tuple[str, ...]]) -> None:
        self.beginResetModel()
        self.runs, self._settings = tuple(runs), tuple(settings)
        self.endResetModel()

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.runs)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        run, settings = self.runs[index.row()], self._settings[index.row()]
        if role == _RUN:
            return run
        if role == _SETTINGS:
            return ", ".join(settings)
        if role == _SHOWN:
            return run is self.shown
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return describe(run, settings)
        return plain_tip(_tip(run)) if role == Qt.ItemDataRole.ToolTipRole else None


class RunStrip(QListView):
    """The runs of a gallery in a row, in the order that is chosen."""

    clicked_run = Signal(object)  # `Run`: Without a modifier: it is to be shown
    chosen = Signal()  # other runs are selected, or another one is current

    def __init__(self, gallery: Gallery, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._gallery = gallery
        self._runs = _Runs(self)
        self.order = RunOrder.NEWEST
        dressed(self, "runStrip", "Runs as pictures")
        self.setFlow(QListView.Flow.LeftToRight)
        self.setWrapping(False)
        self.setUniformItemSizes(True)
        self.setSelectionMode(QListView.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.setItemDelegate(_Tile(self, self.tile_size))
        self.setSpacing(2)
        self.setModel(self._runs)
        self.selectionModel().currentChanged.connect(lambda: self.chosen.emit())
        self.selectionModel().selectionChanged.connect(lambda: self.chosen.emit())

    def current(self) -> Run | None:
        return self._run_at(self.currentIndex())

    def _run_at(self, index: QModelIndex) -> Run | None:
        return self._runs.runs[index.row()] if index.isValid() else None

    def selected(self) -> list[Run]:
        rows = {index.row() for index in self.selectionModel().selectedRows()}
        return [run for row, run in enumerate(self._runs.runs) if row in rows]

    def runs(self) -> list[Run]:
        return list(self._runs.runs)

    def tile(self, row: int) -> QModelIndex:
        """Return the place of the n-th run in the model."""
        return self._runs.index(row)

    def select(self, runs: Sequence[Run], current: Run | None) -> None:
        """Select these runs, without a signal, and bring the current one into view."""
        blocked = self.blockSignals(True)
        flags, chooser = QItemSelectionModel.SelectionFlag, self.selectionModel()
        selection = QItemSelection()
        for row, run in enumerate(self._runs.runs):
            if run is current:
                chooser.setCurrentIndex(self.tile(row), flags.NoUpdate)
                self.scrollTo(self.tile(row))
            if run in runs:
                selection.select(self.tile(row), self.tile(row))
        chooser.select(selection, flags.ClearAndSelect)
        self.blockSignals(blocked)

    def mark(self, shown: Run | None) -> None:
        self._runs.shown = shown
        self.viewport().update()

    def refresh(self) -> None:
        """Fill the strip with the runs as they are now; the selection stays."""
        current, selected = self.current(), self.selected()
        runs = self._gallery.sorted(self.order)
        settings = [tuple(self._gallery.distinguishing(run)) for run in runs]
        blocked = self.blockSignals(True)
        self._runs.show(runs, settings)
        self.blockSignals(blocked)
        self.select(selected, current)

    def sizeHint(self) -> QSize:
        return QSize(3 * self.tile_size().width(), _tile_size(self, 72).height() + self._frame())

    def minimumSizeHint(self) -> QSize:
        return QSize(
            self.tile_size().width() + 20, _tile_size(self, _LEAST_PICTURE).height() + self._frame()
        )

    def _frame(self) -> int:
        """Return the height of everything around the tiles."""
        return self.horizontalScrollBar().sizeHint().height() + 2 * self.frameWidth() + 4

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Make the tiles as high as the strip."""
        super().resizeEvent(event)
        self.scheduleDelayedItemsLayout()

    def tile_size(self) -> QSize:
        """Return the size of a tile: the pictures get the height that the text leaves."""
        least = _tile_size(self, _LEAST_PICTURE)
        return QSize(least.width(), max(least.height(), self.height() - self._frame()))

    def wheelEvent(self, event: QWheelEvent) -> None:
        scroll_sideways(self, event)

    def mouseReleaseEvent(self, event: Any) -> None:
        """Show a run that was clicked without a modifier."""
        super().mouseReleaseEvent(event)
        run = self._run_at(self.indexAt(event.position().toPoint()))
        plain = event.modifiers() == Qt.KeyboardModifier.NoModifier
        if run is not None and plain and event.button() == Qt.MouseButton.LeftButton:
            self.clicked_run.emit(run)


class _Tile(TileDelegate):
    """Paints a run: its picture over two lines of text."""

    def paint_tile(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        run: Run = index.data(_RUN)
        palette, area, selected = option.palette, option.rect, is_selected(option)
        if selected:
            painter.fillRect(area, palette.color(QPalette.ColorRole.Highlight))
        height = _LINES * option.fontMetrics.height()
        frame = area.adjusted(_MARGIN, _MARGIN, -_MARGIN, -_MARGIN - _GAP - height)
        room = QRect(frame.left(), frame.bottom() + _GAP, frame.width(), height)
        marks = f"{run.number}", "★" * run.starred, "" if run.result else "settings only"
        lines = (
            TileLine(run.title, bold=True, behind=index.data(_SETTINGS) or run.where),
            TileLine(
                f"{'≈ ' if run.first else ''}{duration(run.seconds)}",
                aside=decibels(run.psnr) if run.psnr is not None else "",
            ),
        )
        tile = Tile(
            run.thumbnail,
            lines,
            badge=" ".join(filter(None, marks)),
            opacity=1.0 if run.result is not None else 0.4,
        )
        draw_tile(painter, tile, frame, room, palette, selected=selected)
        if index.data(_SHOWN):
            painter.setPen(QPen(palette.color(QPalette.ColorRole.Highlight), 2))
            painter.drawRect(area.adjusted(1, 1, -1, -1))


def describe(run: Run, settings: Sequence[str]) -> str:
    """Return a run in words, for a screen reader."""
    parts = [f"Run {run.number}", run.title, *settings, run.where, duration(run.seconds)]
    parts.append(run.measurement)
    if run.psnr is not None:
        parts.append(f"PSNR {decibels(run.psnr)}")
    parts += ["starred"] * run.starred
    return ", ".join(parts)


def _tip(run: Run) -> str:
    kept = "" if run.result else "\nIts picture is no longer in memory; Run computes it again."
    return (
        f"{run.settings}\n{run.picture}, {run.size}\n{run.where}, {run.totals.describe()}, "
        f"{run.measurement}{kept}"
    )


def _tile_size(widget: QWidget, picture: int) -> QSize:
    height = 2 * _MARGIN + picture + _GAP + _LINES * widget.fontMetrics().height()
    return QSize(_LETTERS * widget.fontMetrics().averageCharWidth() + 2 * _MARGIN, height)
