"""The strip of runs: a thumbnail each, with the settings that distinguish it, time and quality."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QModelIndex, QRect, QSize, QSortFilterProxyModel, Qt
from PySide6.QtGui import QPainter, QPalette, QPen, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QListView, QStyleOptionViewItem, QWidget

from kernelscope.gui.docks.run_choice import RUN_ROLE, RunChoice
from kernelscope.gui.docks.run_table import RUN, RunRows, decibels
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

_SETTINGS = Qt.ItemDataRole.UserRole + 2
_SHOWN = Qt.ItemDataRole.UserRole + 3

_LETTERS = 24  # width of a tile in characters; its height is that of the strip

_LEAST_PICTURE = 40
_MARGIN, _GAP = 4, 3
_LINES = 2


class _Runs(QSortFilterProxyModel):
    """The runs of the table without its headings, in an order of their own."""

    def __init__(self, rows: RunRows, gallery: Gallery, strip: RunStrip) -> None:
        super().__init__(strip)
        self._rows, self._gallery = rows, gallery
        self.order = RunOrder.NEWEST
        self._places: dict[Run | None, int] = {}
        self.shown: Run | None = None  # the one whose picture is in the viewer
        self.setSourceModel(rows)

    def refresh(self) -> None:
        self._places = {run: n for n, run in enumerate(self._gallery.sorted(self.order))}
        self.invalidate()
        self.sort(RUN)

    def filterAcceptsRow(self, row: int, parent: Index) -> bool:
        return self._rows.rows[row].run is not None

    def lessThan(self, left: Index, right: Index) -> bool:
        one, other = (self._rows.rows[each.row()].run for each in (left, right))
        return self._places.get(one, 0) < self._places.get(other, 0)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        run: Run = super().data(index, RUN_ROLE)
        if role == _SETTINGS:
            return ", ".join(self._gallery.distinguishing(run))
        if role == _SHOWN:
            return run is self.shown
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return describe(run, self._gallery.distinguishing(run))
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(_tip(run))
        return run if role == RUN_ROLE else None


class RunStrip(QListView):
    """The runs of the table in a row, as pictures, in the order that is chosen."""

    def __init__(self, rows: RunRows, gallery: Gallery, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._runs = _Runs(rows, gallery, self)
        dressed(self, "runStrip", "Runs as pictures")
        self.setFlow(QListView.Flow.LeftToRight)
        self.setWrapping(False)
        self.setUniformItemSizes(True)
        self.setSelectionMode(QListView.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.setItemDelegate(_RunTile(self, self.tile_size))
        self.setSpacing(2)
        self.setModel(self._runs)
        self.choice = RunChoice(self)

    def tile(self, row: int) -> QModelIndex:
        return self._runs.index(row, RUN)

    def mark(self, shown: Run | None) -> None:
        self._runs.shown = shown
        self.viewport().update()

    def fill(self, order: RunOrder) -> None:
        self._runs.order = order
        self._runs.refresh()

    def sizeHint(self) -> QSize:
        return QSize(3 * self.tile_size().width(), _tile_size(self, 72).height() + self._frame())

    def minimumSizeHint(self) -> QSize:
        return QSize(
            self.tile_size().width() + 20, _tile_size(self, _LEAST_PICTURE).height() + self._frame()
        )

    def _frame(self) -> int:
        return self.horizontalScrollBar().sizeHint().height() + 2 * self.frameWidth() + 4

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.scheduleDelayedItemsLayout()

    def tile_size(self) -> QSize:
        least = _tile_size(self, _LEAST_PICTURE)
        return QSize(least.width(), max(least.height(), self.height() - self._frame()))

    def wheelEvent(self, event: QWheelEvent) -> None:
        scroll_sideways(self, event)


class _RunTile(TileDelegate):
    """Paints a run: its picture over two lines of text."""

    def paint_tile(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        run: Run = index.data(RUN_ROLE)
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
