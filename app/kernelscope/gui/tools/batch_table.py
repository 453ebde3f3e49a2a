"""The table of a batch's files with their thumbnails: only the rows in view cost anything."""

from __future__ import annotations

import html
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QBrush,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPalette,
    QPixmap,
)
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from kernelscope.base.errors import AppError
from kernelscope.base.text import one_line
from kernelscope.big.batch import FileState
from kernelscope.files import read_image
from kernelscope.files.volumes import is_dicom, is_volume, read_volume
from kernelscope.gui.model.batch_queue import BatchQueue, FileRow
from kernelscope.gui.model.gallery import thumbnail
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.parts import dressed
from kernelscope.gui.widgets.tiles import draw_thumbnail
from kernelscope.gui.work.background import Background
from kernelscope.images.scan import Scan

SIZE = QSize(48, 36)

_TOPIC = "batch thumbnail"
_SIDE = 2 * 48  # longer side in pixels: sharp on screens of 200 %

_MOST_KEPT, _MOST_WANTED = 500, 40
"""Thumbnails kept, 14 MB at most; and files that wait for one: more than fit on a screen."""

_MOST_BYTES = 1 << 26  # larger files are not read twice for a thumbnail


class Thumbnails(QObject):
    """Reads one file at a time in the background, the one asked for last first."""

    made = Signal(Path)  # there is a thumbnail of this file now

    def __init__(self, background: Background, parent: QObject) -> None:
        super().__init__(parent)
        self._background = background
        self._made: OrderedDict[Path, QPixmap] = OrderedDict()
        self._wanted: list[Path] = []
        self._busy = False
        self._closed = False
        self.empty = _framed(None)
        """In place of a thumbnail that is not there yet, or cannot be made."""

    def of(self, path: Path) -> QPixmap:
        """Return the thumbnail of a file; the first call begins to make it."""
        if path in self._made:
            self._made.move_to_end(path)
            return self._made[path]
        if path in self._wanted:
            self._wanted.remove(path)
        self._wanted.append(path)
        del self._wanted[:-_MOST_WANTED]  # those have been scrolled out of view
        self._next()
        return self.empty

    def close(self) -> None:
        self._wanted.clear()
        self._closed = True

    def open(self) -> None:
        """Make thumbnails again after `close`."""
        self._closed = False

    def _next(self) -> None:
        if self._busy or self._closed or not self._wanted:
            return
        path, self._busy = self._wanted.pop(), True

        def keep(pixels: NDArray[np.uint8] | None) -> None:
            self._made[path] = _framed(pixels)
            if len(self._made) > _MOST_KEPT:
                self._made.popitem(last=False)
            self._busy = False
            self.made.emit(path)
            self._next()

        # A bug of a reader is reported when the batch reads the file.
        self._background.start(_TOPIC, lambda: _read(path), keep, lambda _: keep(None))


def _read(path: Path) -> NDArray[np.uint8] | None:
    try:
        if path.is_dir() or path.stat().st_size > _MOST_BYTES:
            return None
        if is_volume(path):
            alone = (path,) if is_dicom(path) else ()  # one slice, and not its whole series
            return thumbnail(Scan((read_volume(path, nan=0.0, slices=alone),)), _SIDE)
        return thumbnail(read_image(path, nan=0.0), _SIDE)
    except (AppError, OSError):
        return None


def _framed(pixels: NDArray[np.uint8] | None) -> QPixmap:
    frame = QPixmap(SIZE * 2)
    painter = QPainter(frame)
    draw_thumbnail(painter, frame.rect(), pixels)
    painter.end()
    frame.setDevicePixelRatio(2)
    return frame


_HEADINGS = ("File", "Size", "State", "Result")
_FILE, _SIZE, _STATE, _RESULT = range(4)
_Index = QModelIndex | QPersistentModelIndex
_Roles = Qt.ItemDataRole
_ROOT = QModelIndex()

_BUSY = (FileState.READING, FileState.FILTERING, FileState.WRITING)


class BatchRows(QAbstractTableModel):
    """The rows of a queue: all of them, or those that failed."""

    def __init__(self, queue: BatchQueue, thumbnails: Thumbnails) -> None:
        super().__init__(thumbnails)
        self._queue, self._thumbnails = queue, thumbnails
        self._only: list[int] | None = None
        self._rows: dict[Path, int] = {}
        thumbnails.made.connect(self._on_made)
        self.show_all()

    def show_all(self) -> None:
        self._reset(None)

    def show_failed(self) -> None:
        rows = self._queue.rows
        self._reset([k for k, row in enumerate(rows) if row.state is FileState.FAILED])

    def _reset(self, only: list[int] | None) -> None:
        self.beginResetModel()
        self._only = only
        places = range(len(self._queue)) if only is None else only
        sources = (self._queue.rows[place].item.source for place in places)
        self._rows = {source: row for row, source in enumerate(sources)}
        self.endResetModel()

    def refresh(self, places: Iterable[int]) -> None:
        changed = [self._rows.get(self._queue.rows[place].item.source) for place in places]
        rows = [row for row in changed if row is not None]
        if rows:
            self.dataChanged.emit(self.index(min(rows), 0), self.index(max(rows), _RESULT))

    def place(self, row: int) -> int:
        return row if self._only is None else self._only[row]

    def row(self, index: _Index) -> FileRow:
        return self._queue.rows[self.place(index.row())]

    # --- Qt ---

    def rowCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(_HEADINGS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = _Roles.DisplayRole
    ) -> Any:
        if orientation is Qt.Orientation.Horizontal and role == _Roles.DisplayRole:
            return _HEADINGS[section]
        return None

    def data(self, index: _Index, role: int = _Roles.DisplayRole) -> Any:
        row, column = self.row(index), index.column()
        if role == _Roles.DisplayRole:
            return _text(row, column)
        if role == _Roles.DecorationRole and column == _FILE:
            return self._thumbnails.of(row.item.source)
        if role == _Roles.ToolTipRole:
            return _tip(row, column)
        if role == _Roles.AccessibleTextRole and column == _FILE:
            parts = _name(row), row.state_name, row.size, row.remark
            return one_line(", ".join(filter(None, parts)))
        if role == _Roles.ForegroundRole:
            return _ink(row, column)
        return None

    def _on_made(self, path: Path) -> None:
        row = self._rows.get(path)
        if row is not None:
            index = self.index(row, _FILE)
            self.dataChanged.emit(index, index, [_Roles.DecorationRole])


def _text(row: FileRow, column: int) -> str:
    match column:
        case 0:
            return _name(row)
        case 1:
            return row.size
        case 2:
            return row.state_name.capitalize()
    return one_line(row.remark)


def _name(row: FileRow) -> str:
    name, count = one_line(row.item.source.name), len(row.item.slices)
    return f"{name}, {count} slices" if count > 1 else name


def _ink(row: FileRow, column: int) -> QBrush | None:
    palette = QGuiApplication.palette()
    if column in (_STATE, _RESULT) and row.state is FileState.FAILED:
        return QBrush(theme.error_text(palette))
    if column == _STATE and row.state in _BUSY:
        return QBrush(palette.color(QPalette.ColorRole.Link))
    if column == _FILE or row.state in _BUSY:
        return None
    return QBrush(theme.quiet_text(palette))


def _tip(row: FileRow, column: int) -> str:
    if column == _RESULT and row.remark:
        text = row.parts or row.remark
    else:
        text = f"{one_line(str(row.item.source))}\nThe result is {one_line(str(row.item.target))}."
    # Qt would take a name with “<b>” in it for HTML.
    return "<br>".join(html.escape(one_line(line)) for line in text.split("\n"))


class BatchTable(QTableView):
    """Shows the files; Delete removes those that are selected."""

    removing = Signal(list)  # places in the queue
    result_wanted = Signal(object)  # `Path`: Return or a double click on a file that is done

    def __init__(self, rows: BatchRows, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        dressed(self, "batchTable", "Files of the batch")
        self.setModel(rows)
        self._shown = rows
        self.setIconSize(SIZE)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        down, across = self.verticalHeader(), self.horizontalHeader()
        down.hide()
        down.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)  # no row is measured
        down.setDefaultSectionSize(SIZE.height() + 6)
        across.setHighlightSections(False)
        across.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        unit = self.fontMetrics().averageCharWidth()
        for column, characters in ((_FILE, 44), (_SIZE, 15), (_STATE, 14)):
            across.resizeSection(column, characters * unit)
        across.setStretchLastSection(True)
        self.activated.connect(self._open_result)

    def _open_result(self, index: QModelIndex) -> None:
        row = self._shown.row(index)
        if row.state is FileState.DONE:
            self.result_wanted.emit(row.item.target)

    def selected(self) -> list[int]:
        return [self._shown.place(each.row()) for each in self.selectionModel().selectedRows()]

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Delete):
            self.removing.emit(self.selected())
        else:
            super().keyPressEvent(event)
