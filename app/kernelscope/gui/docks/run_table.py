"""The table of runs: how long each took and how good it was, grouped by equal work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFont, QFontMetrics, QIcon
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTreeView, QWidget

from kernelscope.base.text import significant
from kernelscope.gui.docks.bars import BARS, BarDelegate, end_to_end
from kernelscope.gui.docks.run_choice import RUN_ROLE, RunChoice
from kernelscope.gui.model.gallery import Gallery
from kernelscope.gui.model.runs import KERNEL, TOTAL, Run
from kernelscope.gui.model.times import BUSY, VARYING, WHY_NOT_TIMED, duration
from kernelscope.gui.widgets.aligned import Column, FigureDelegate
from kernelscope.gui.widgets.copyable_tree import CopyKey
from kernelscope.gui.widgets.parts import RIGHT, dressed, swatch
from kernelscope.gui.widgets.theme import quiet_text
from kernelscope.schema.levels import colour

_COLUMNS = {
    "Run": "The runs of this session are numbered. ★ marks those whose pictures are kept longest",
    "Run on": "Device and level, with the colour of the level",
    "Total": "All counted stages: kernel, transfers, memory, wrapping the result; not compiling.\n"
    "The median of its repeats",
    "Parts": "The total, next to the slowest run of the same work.\n"
    "Light: kernel. Dark: transfers. Grey: other stages.",
    "Spread": "How often the run was repeated, and half the range of the totals.\n"
    "A run that takes seconds is not repeated: “one run”",
    "Speed-up": "Total in the row of the baseline / total in this row.\n",
    "Kernel": "Computation alone: the kernels of a GPU, or the stage compute of the CPU",
    "Kernel speed-up": "Kernel time in the row of the baseline / kernel time in this row.\n",
    "Transfers": "Upload of the picture to the GPU (↑) and download of the result (↓).\n"
    "A picture stays on the card: runs after the first have no upload.",
    "PSNR": "Of the output, with a reference",
    "SSIM": "Of the output, with a reference",
    "Speed": "Pixels or voxels of the input by the total",
}
"""The headings and their tooltips."""

_BASELINE_HELP = (
    "Only runs that did the same work at another level or on another device are compared. The "
    "fastest is bold, unless times vary.\n"
    "The baseline is the newest run at CPU serial, or else at the level measured first, until you "
    "choose another."
)

COLUMN_NAMES = tuple(_COLUMNS)
(
    RUN,
    WHERE,
    TOTAL_TIME,
    PARTS,
    SPREAD,
    SPEED_UP,
    KERNEL_TIME,
    KERNEL_GAIN,
    CARRIED,
    PSNR,
    SSIM,
    (RATE),
) = range(len(COLUMN_NAMES))
_SPEED_UPS = {SPEED_UP: TOTAL, KERNEL_GAIN: KERNEL}
_SPARE = (RATE, SSIM, CARRIED, KERNEL_GAIN, KERNEL_TIME, SPREAD)
"""Hidden one after the other until the rest fits."""

_TIMES = (TOTAL_TIME, PARTS, SPREAD, SPEED_UP, KERNEL_TIME, KERNEL_GAIN, CARRIED, RATE)

_LEFT_ALIGNED = (RUN, WHERE, PARTS)
_ALIGNED = (TOTAL_TIME, SPEED_UP, KERNEL_TIME, KERNEL_GAIN, PSNR, SSIM, RATE)
"""Columns of figures with their points below each other."""

_ROOT = QModelIndex()
_Index = QModelIndex | QPersistentModelIndex
_Roles = Qt.ItemDataRole

_LEAST_BAR = 10
"""Characters that the bars need at least; they get the room that the other columns leave."""

FIRST_HELP = (
    "The first run of this work at this level: caches, memory and compiled code were not ready.\n"
    "It takes part in no comparison. Run it again to measure it."
)


@dataclass(frozen=True)
class _Row:
    """A line of the table: a run, or the settings of the runs below it."""

    texts: tuple[str, ...]
    run: Run | None = None
    tip: str = ""
    bars: tuple[tuple[str, float, float], ...] = ()
    quiet: frozenset[int] = frozenset()  # columns in a quiet colour
    bold: frozenset[int] = frozenset()


class RunRows(QAbstractTableModel):
    """The runs in the lines of the table, made anew from the gallery when they change.

    Qt asks for cells and owns none: objects of the view that hold Python objects are not
    destroyed while other threads run.
    """

    def __init__(self, table: RunTable) -> None:
        super().__init__(table)
        self._table = table
        self._sorted = ""
        self.rows: tuple[_Row, ...] = ()

    def show(self, rows: Sequence[_Row], column: int, *, down: bool) -> None:
        self.beginResetModel()
        self.rows = tuple(rows)
        self._sorted = f"{COLUMN_NAMES[column]} {'▾' if down else '▴'}"
        self.endResetModel()

    # --- Qt ---

    def rowCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(COLUMN_NAMES)

    def flags(self, index: _Index) -> Qt.ItemFlag:
        heading = self.rows[index.row()].run is None
        return Qt.ItemFlag.ItemIsEnabled if heading else super().flags(index)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = _Roles.DisplayRole
    ) -> Any:
        name = COLUMN_NAMES[section]
        if role == _Roles.DisplayRole:  # Qt's own mark takes room in every heading
            return _heading(self._sorted if self._sorted[:-2] == name else name)
        if role == _Roles.AccessibleTextRole:
            return name
        if role == _Roles.ToolTipRole:
            return f"{_COLUMNS[name]}{_BASELINE_HELP if section in _SPEED_UPS else ''}"
        if role == _Roles.TextAlignmentRole and section not in _LEFT_ALIGNED:
            return RIGHT
        return None

    def data(self, index: _Index, role: int = _Roles.DisplayRole) -> Any:
        row, column = self.rows[index.row()], index.column()
        if role == RUN_ROLE:
            return row.run
        if role == _Roles.ToolTipRole:
            return row.tip if row.run is None else self._table.tip(row.run, column)
        if row.run is None:
            if role == _Roles.BackgroundRole:
                return self._table.palette().alternateBase()
            return row.texts[column] if role == _Roles.DisplayRole and column == RUN else None
        if role == _Roles.DisplayRole:
            return row.texts[column]
        if role == _Roles.DecorationRole and column == WHERE:
            return QIcon(swatch(colour(row.run.level), self._table.fontMetrics().height() // 2))
        if role == _Roles.TextAlignmentRole and column not in _LEFT_ALIGNED:
            return RIGHT
        if role == _Roles.ForegroundRole and column in row.quiet:
            return quiet_text(self._table.palette())
        if role == _Roles.FontRole and column in row.bold:
            font = QFont(self._table.font())
            font.setBold(True)
            return font
        return row.bars if role == BARS and column == PARTS else None


class RunTable(QTreeView):
    """Shows the runs of a gallery, newest first until a click on a heading sorts them otherwise.

    Runs that did the same work stand below a line with its settings.

    ``parts_shown(bool)``: the columns were fitted, with or without bars.
    """

    parts_shown = Signal(bool)
    reordered = Signal()  # it is to be filled in another order

    def __init__(self, gallery: Gallery, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._gallery = gallery
        self.rows = RunRows(self)
        self._key = CopyKey(self, self.text)
        dressed(self, "runTable", "Table of runs")
        self.setRootIsDecorated(False)
        self.setItemsExpandable(False)
        self.setIndentation(0)
        self.setUniformRowHeights(True)
        self.setAllColumnsShowFocus(True)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.viewport().installEventFilter(self)
        self.setItemDelegateForColumn(PARTS, BarDelegate(self))
        self.setModel(self.rows)
        figures = FigureDelegate(self)
        for column in _ALIGNED:
            self.setItemDelegateForColumn(column, figures)
        self.choice = RunChoice(self, RATE)
        self._set_up_header()

    def _set_up_header(self) -> None:
        header = self.header()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)  # see `fit_columns`
        header.setStretchLastSection(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setMinimumSectionSize(4 * self.fontMetrics().averageCharWidth())
        header.setSectionsClickable(True)
        header.setSortIndicator(RUN, Qt.SortOrder.DescendingOrder)
        header.sortIndicatorChanged.connect(lambda: self.reordered.emit())

    # --- content ---

    def fill(self, runs: Sequence[Run]) -> None:
        header = self.header()
        column = header.sortIndicatorSection()
        down = header.sortIndicatorOrder() is Qt.SortOrder.DescendingOrder
        runs = sorted(runs, key=lambda run: self._sort_key(run, column), reverse=down)
        groups: dict[Any, list[Run]] = {}
        for run in runs:
            groups.setdefault(run.work, []).append(run)
        rows = [row for group in groups.values() for row in self._group(group)]
        self.rows.show(rows, column, down=down)
        for place, row in enumerate(rows):
            self.setFirstColumnSpanned(place, _ROOT, row.run is None)
        self.fit_columns()

    def _group(self, runs: Sequence[Run]) -> list[_Row]:
        first = runs[0]
        chips = "  ".join(chip.text for chip in first.chips)
        heading = _Row(
            (f"{first.filter_name}  {chips}  –  {first.picture}, {first.size}",),
            tip=f"{first.settings}\n{first.picture}, {first.size}, {first.mode}",
        )
        slowest = max(run.seconds or 0.0 for run in runs)
        return [heading, *(self._row(run, slowest) for run in runs)]

    def _row(self, run: Run, slowest: float) -> _Row:
        quiet, bold, runs = set(), set(), self._gallery.runs
        for column, quantity in _SPEED_UPS.items():
            gain = runs.speed_up(run, quantity)
            if gain is None or not gain.sure:
                quiet.add(column)
            if runs.is_fastest(run, quantity):
                bold.add(column)
        if run.first or run.seconds is None:
            quiet.add(SPREAD)
        whole = max(sum(part.seconds for part in run.parts), slowest, 1e-12)
        bars = end_to_end((part.name, part.seconds / whole) for part in run.parts)
        return _Row(self._texts(run), run, "", tuple(bars), frozenset(quiet), frozenset(bold))

    def copy(self) -> None:
        self._key.copy()

    def text(self) -> str:
        """Return the table as it is sorted, with its header, cells separated by tabs."""
        unsaid = (PARTS,)
        rows = [(*COLUMN_NAMES, "Picture", "Filter")]
        rows += [
            (*self._texts(run), f"{run.picture}, {run.size}", run.settings)
            for run in self.choice.runs
        ]
        kept = ([cell for n, cell in enumerate(row) if n not in unsaid] for row in rows)
        return "\n".join("\t".join(row) for row in kept)

    def _sort_key(self, run: Run, column: int) -> Any:
        """Return the sort key of a run; of equals the newer is the larger.

        A run that is not timed comes after the slowest.
        """
        gain = self._gallery.runs.speed_up(run, _SPEED_UPS.get(column, TOTAL))
        quality = run.judgement.after if run.judgement else None
        ssim = quality.ssim if quality is not None else None
        keys: dict[int, float] = {
            RUN: run.number,
            TOTAL_TIME: math.inf if run.seconds is None else run.seconds,
            PARTS: math.inf if run.seconds is None else run.seconds,
            SPREAD: math.inf if run.seconds is None else run.totals.half,
            KERNEL_TIME: math.inf if run.kernel is None else run.kernel,
            CARRIED: sum(run.transfers.values()),
            PSNR: -math.inf if run.psnr is None else run.psnr,
            SSIM: -math.inf if ssim is None else ssim,
            RATE: run.speed or 0.0,
            **dict.fromkeys(_SPEED_UPS, gain.factor if gain else 0.0),
        }
        return keys[column] if column in keys else self._texts(run)[column], run.number

    def _texts(self, run: Run) -> tuple[str, ...]:
        transfers = f"{duration(sum(run.transfers.values()))} {run.arrows}"
        if run.overlapped:
            transfers = f"({transfers})"
        quality = run.judgement.after if run.judgement else None
        star = "★ " if run.starred else ""
        return (
            f"{star}{run.number}  {run.name}".rstrip(),
            run.where,
            duration(run.seconds),
            "",
            self._spread(run),
            self._speed_up(run, TOTAL),
            duration(run.kernel),
            self._speed_up(run, KERNEL),
            transfers if run.transfers else "–",
            decibels(quality.psnr) if quality else "–",
            f"{quality.ssim:.4f}" if quality and quality.ssim is not None else "–",
            f"{significant(run.speed)} {run.unit}" if run.speed is not None else "–",
        )

    def _speed_up(self, run: Run, quantity: str) -> str:
        runs = self._gallery.runs
        gain = runs.speed_up(run, quantity)
        if gain is not None:
            return str(gain)
        compared = runs.has_rivals(run) and run.is_measured(quantity) and runs.is_baseline(run)
        return "baseline" if compared else "–"

    @staticmethod
    def _spread(run: Run) -> str:
        count = len(run.totals.times)
        if count <= 1:
            return run.measurement
        half = f"± {100 * run.totals.half:.0f} %"
        return f"{'times vary' if run.totals.unsteady else half}, {count} runs"

    @staticmethod
    def _explain_spread(run: Run) -> str:
        warning = (
            f"± {100 * run.totals.half:.0f} %, {VARYING}: {BUSY}\n" if run.totals.unsteady else ""
        )
        return f"{warning}{run.where}, total: {run.totals.describe()}"

    def tip(self, run: Run, column: int) -> str:
        runs = self._gallery.runs
        if run.seconds is None and column in _TIMES:
            return WHY_NOT_TIMED
        if column in _SPEED_UPS:
            quantity = _SPEED_UPS[column]
            gain = runs.speed_up(run, quantity)
            return gain.explain() if gain is not None else self._no_speed_up(run, quantity)
        if column == CARRIED:
            return _carried(run)
        if column == PARTS:
            return "\n".join(f"{part.name}: {duration(part.seconds)}" for part in run.parts)
        if column == KERNEL_TIME and len(run.kernels) > 1:
            return f"{run.where}, kernel: {run.spread(KERNEL).describe()}"
        if column in (TOTAL_TIME, SPREAD):
            return FIRST_HELP if run.first else self._explain_spread(run)
        if column in (PSNR, SSIM) and run.judgement is not None:
            more = "" if column == SSIM or run.gain is None else f"{run.gain:+.2f} dB by the run. "
            return f"{more}Reference: {run.reference.title if run.reference else ''}"
        kept = "" if run.result else "\nIts picture is no longer in memory."
        return f"{run.settings}\n{run.picture}, {run.size}, {run.mode}\n{run.where}{kept}"

    def _no_speed_up(self, run: Run, quantity: str) -> str:
        runs = self._gallery.runs
        if not run.is_measured(quantity):
            return FIRST_HELP
        if not runs.has_rivals(run):
            return "Nothing else did the same work yet: run it at another level, or press Ctrl+F5."
        base = runs.baseline(run)
        if base is run:
            return "The other levels are compared with this run."
        if base is not None and base.where == run.where:
            return f"The other levels are compared with run {base.number}, at the same level."
        return "Not compared: the baseline has no measured run yet."

    # --- layout ---

    def fit_columns(self) -> None:
        """Fit columns to their content, the bars to the rest; hide spare ones if too narrow.

        The choice depends on the width of the table alone, as if it always had a vertical scroll
        bar: that comes and goes with a horizontal one, which comes and goes with the columns. Qt's
        own way to size columns leaves the last one too wide where a scroll bar appears later.
        """
        header = self.header()
        for column in _SPARE:
            self.setColumnHidden(column, False)  # hidden columns have no size hint
        room = self.width() - self._frame()
        shown = dict(enumerate(self._widths()))
        for column in _SPARE:
            if sum(shown.values()) > room:
                del shown[column]
        for column in _SPARE:
            self.setColumnHidden(column, column not in shown)
        shown[PARTS] += max(0, self.viewport().width() - sum(shown.values()))
        for column, width in shown.items():
            header.resizeSection(column, width)
        self.parts_shown.emit(bool(self.rows.rows))
        self.updateGeometry()

    def minimumSizeHint(self) -> QSize:
        widths = (width for column, width in enumerate(self._widths()) if column not in _SPARE)
        return QSize(sum(widths) + self._frame(), super().minimumSizeHint().height())

    def _frame(self) -> int:
        return 2 * self.frameWidth() + self.verticalScrollBar().sizeHint().width()

    def _widths(self) -> list[int]:
        metrics = self.fontMetrics()
        widths = [
            max(self._hint(number), _heading_width(name, metrics))
            for number, name in enumerate(COLUMN_NAMES)
        ]
        widths[PARTS] = _LEAST_BAR * metrics.averageCharWidth()
        return widths

    def _hint(self, column: int) -> int:
        metrics = self.fontMetrics()
        texts = [row.texts[column] for row in self.rows.rows if row.run is not None]
        if column in _ALIGNED:
            return Column(texts, metrics).width + 12
        icon = metrics.height() if column == WHERE else 0
        return icon + max((metrics.horizontalAdvance(text) for text in texts), default=0) + 12

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.viewport() and event.type() == QEvent.Type.Resize:
            self.fit_columns()
        return super().eventFilter(watched, event)


def _heading(name: str) -> str:
    """Return a heading in one line, or in two where it is wider than its numbers."""
    return name.replace(" speed", "\nspeed")


def _heading_width(name: str, metrics: QFontMetrics) -> int:
    """Return the width of a heading; with room for the mark of sorting, so that none moves."""
    *others, last = _heading(name).splitlines()
    return max(map(metrics.horizontalAdvance, (*others, f"{last} ▾"))) + 14


def decibels(psnr: float) -> str:
    """Return ``33.21 dB``; of equal pictures ``equal``."""
    return f"{psnr:.2f} dB" if math.isfinite(psnr) else "equal"


def _carried(run: Run) -> str:
    if not run.transfers:
        return "No transfers: the CPU reads the picture in place."
    lines = [f"{name.capitalize()}: {duration(t)}" for name, t in run.transfers.items()]
    if "upload" not in run.transfers:
        lines.append("No upload: the picture was on the card already.")
    if run.overlapped:
        lines.append("Partly overlapped by kernels: the total contains less of it.")
    return "\n".join(lines)
