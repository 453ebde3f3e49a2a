"""The results of the bench as a table, the authors' figures beside ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSize, Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
)

from kernelscope import filters
from kernelscope.base.text import significant
from kernelscope.bench import Row, figures, find_baseline, speed_up, summarise
from kernelscope.bench.charts import Chart
from kernelscope.bench.statistics import full_time, megapixels_per_second
from kernelscope.bench.tables import remarks
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.aligned import FigureDelegate
from kernelscope.gui.widgets.parts import dressed
from kernelscope.schema.levels import Level


def series_name(row: Row) -> str:
    level = _level(row)
    if level is None:
        return row.series
    device, _, block = row.runner.partition(f" {row.level}")
    name = f"{level.on(device)}{block}"
    return f"{row.machine}: {name}" if row.machine else name


def named(shown: Chart, rows: Iterable[Row]) -> Chart:
    """Return a chart of these rows with the names of levels in place of their ids."""
    series, levels = {}, {}
    for row in rows:
        series[row.series] = series_name(row)
        level = _level(row)
        levels[row.level] = level.name if level is not None else row.level
    y, note = shown.y, shown.note
    for old in sorted(series, key=len, reverse=True):  # GPU shared 16×16 before GPU shared
        if y.endswith(f" {old}"):
            y = f"{y.removesuffix(old)}{series[old]}"
            break
    for old in series:
        note = note.replace(f"{old} on ", f"{series[old]} on ")
    return replace(
        shown,
        y=y,
        note=note,
        series=tuple(replace(each, name=series.get(each.name, each.name)) for each in shown.series),
        groups=tuple(levels.get(group, group) for group in shown.groups),
    )


def _level(row: Row) -> Level | None:
    """Return the level of a row; None of a library, and of a level that is no longer there."""
    return None if row.library else filters.levels(row.device).get(row.level)


_COLUMNS = (
    ("Filter", 32, "The filter and its parameters"),
    ("By", 20, "Device and level, or library"),
    ("Size", 14, "Width × height; of the timed part, where only a part was timed"),
    (
        "ms",
        12,
        "Median of computing: stage compute, the kernels, or a library’s call; after ≈ for all of "
        "the data, where a part was timed",
    ),
    ("± %", 8, "Half the interquartile range"),
    ("End to end ms", 18, "Of a GPU: upload, kernel and download"),
    ("MP/s", 11, "Millions of pixels or voxels a second of computing"),
    (
        "Speed-up",
        12,
        "Times as fast as the baseline: whole runs or computing alone, as in the plot; ≈ where one "
        "was timed on a part.\nLibraries on a GPU are timed without transfers, and have no whole "
        "runs",
    ),
    (
        "Authors’ figures (their hardware)",
        48,
        "Reported by the source’s author, not measured here",
    ),
    ("Remark", 60, "Differences of libraries, load by other programs, why there is no time"),
)
_NUMBERS = range(3, 8)
_SPEED_UP, _THEIRS, _REMARK = 7, 8, 9
_BESIDE = 5  # where the authors' figures stand: right of our time and its spread
_ROOM = 4  # pixels of a row more than its text needs


class BenchTable(QTreeWidget):
    def __init__(self) -> None:
        super().__init__()
        dressed(self, "benchTable", "Results")
        self.setHeaderLabels([title for title, _, _ in _COLUMNS])
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setAllColumnsShowFocus(True)
        self.setAlternatingRowColors(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setItemDelegate(_Cell(self))
        figures = FigureDelegate(self)
        for column in _NUMBERS:
            self.setItemDelegateForColumn(column, figures)
        unit = self.fontMetrics().averageCharWidth()
        for column, (_, width, tip) in enumerate(_COLUMNS):
            self.setColumnWidth(column, width * unit)
            self.headerItem().setToolTip(column, tip)
        self.header().moveSection(_THEIRS, _BESIDE)  # beside ours, and never out of view
        self._rows: list[Row] = []
        self._items: list[QTreeWidgetItem] = []

    def show_rows(self, rows: Sequence[Row]) -> None:
        self.clear()
        self.setColumnHidden(_THEIRS, True)
        self._rows, self._items = [], []
        for column in range(_THEIRS):  # the columns behind them take room as their rows need
            self.setColumnWidth(column, self.header().sectionSizeHint(column))
        for row in rows:
            self.add(row)

    def add(self, row: Row) -> None:
        """Add a line, without its speed-up: `compare` fills that for all."""
        self._rows.append(row)
        size = f"{row.timed_size} of {row.size}" if row.is_part and row.seconds else row.size
        item = QTreeWidgetItem([row.label, series_name(row), size])
        for column in _NUMBERS:
            item.setTextAlignment(
                column, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            )
        if row.seconds:
            summary = summarise(row.seconds)
            item.setText(3, _time(row, summary.median, waiting=False))
            item.setText(4, f"{50 * summary.spread:.0f}")
            if row.waits != row.seconds:
                item.setText(5, _time(row, summarise(row.waits).median, waiting=True))
            item.setText(6, significant(megapixels_per_second(row)))
            said = [text for text in remarks(row) if not text.startswith("published: ")]
            if row.difference is not None and not row.difference.largest:
                said.insert(0, "same result as ours")
        else:
            said = [f"Not measured: {row.reason}"]
            item.setText(3, "none")
            for column in range(len(_COLUMNS)):
                item.setForeground(column, theme.quiet_text(self.palette()))
        found = list(figures.beside(row))
        item.setText(_THEIRS, "; ".join(figure.describe() for figure in found))
        item.setToolTip(
            _THEIRS,
            "\n".join(dict.fromkeys(f"{f.origin.author} on {f.origin.hardware}" for f in found)),
        )
        if found:
            self.setColumnHidden(_THEIRS, False)
        font = item.font(_THEIRS)
        font.setItalic(True)
        item.setFont(_THEIRS, font)
        item.setText(_REMARK, "; ".join(said))
        item.setToolTip(_REMARK, item.text(_REMARK))
        for column in range(_THEIRS):
            item.setToolTip(column, item.text(_REMARK) if row.reason else item.text(column))
        self.addTopLevelItem(item)
        self._items.append(item)
        self._make_room(item)

    def select(self, label: str, size: str, level: str) -> None:
        there = {
            row.level: item
            for item, row in zip(self._items, self._rows, strict=True)
            if (row.label, row.size) == (label, size)
        }
        if level in there:
            self.setCurrentItem(there[level])
        elif there:
            self.scrollToItem(next(iter(there.values())), self.ScrollHint.PositionAtTop)

    def compare(self, baseline: str, *, waiting: bool) -> None:
        """Fill the speed-up over the series `baseline`, of whole runs or of computing alone."""
        for item, row in zip(self._items, self._rows, strict=True):
            base = find_baseline(self._rows, row, baseline) if row.seconds else None
            gain = speed_up(row, base, waiting) if base is not None else None
            item.setText(_SPEED_UP, gain.figure if gain is not None else "")
            self._make_room(item)

    def _make_room(self, item: QTreeWidgetItem) -> None:
        """Widen columns for this line.

        None is cut off: rows differ in the last parameter or in the level, and a part of a number
        is another number. Those behind them take the room that is left.
        """
        for column in range(_THEIRS):
            wanted = self.fontMetrics().horizontalAdvance(f"{item.text(column)}MM")
            self.setColumnWidth(column, max(wanted, self.columnWidth(column)))


class _Cell(QStyledItemDelegate):
    """Keeps rows apart."""

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        return super().sizeHint(option, index) + QSize(0, _ROOM)


def _time(row: Row, seconds: float, waiting: bool) -> str:
    """Return milliseconds; where a part was timed, with the estimate for the whole."""
    text = significant(1e3 * seconds)
    return f"{text} (≈ {significant(1e3 * full_time(row, waiting))})" if row.is_part else text
