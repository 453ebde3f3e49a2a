"""The panel *Runs*: a strip of pictures, and beside it a table of times and quality."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QAction,
    QFont,
    QFontMetrics,
    QIcon,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPalette,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLabel,
    QLayout,
    QListView,
    QStackedWidget,
    QStyleOptionViewItem,
    QTreeView,
    QWidget,
)

from kernelscope.base.text import significant
from kernelscope.gui.docks.bars import LEGEND_TIP, legend, part_colour
from kernelscope.gui.model.gallery import Gallery
from kernelscope.gui.model.runs import KERNEL, TOTAL, Run
from kernelscope.gui.model.times import BUSY, VARYING, WHY_NOT_TIMED, duration
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.appearance import stylist
from kernelscope.gui.widgets.controls import choice_box
from kernelscope.gui.widgets.parts import (
    RIGHT,
    ElidedLabel,
    Index,
    Watcher,
    dressed,
    in_column,
    in_row,
    plain_tip,
    swatch,
    switch,
    text_label,
    tool_row,
    tool_splitter,
)
from kernelscope.gui.widgets.tables import BARS, BarDelegate, Column, CopyKey, FigureDelegate
from kernelscope.gui.widgets.theme import quiet_text
from kernelscope.gui.widgets.tiles import (
    Tile,
    TileDelegate,
    TileLine,
    draw_tile,
    is_selected,
    scroll_sideways,
)
from kernelscope.schema.levels import colour

RUN_ROLE = Qt.ItemDataRole.UserRole + 1  # role of the run in a row of a model; None for a heading


class RunChoice(Watcher):
    """The runs that are chosen in the strip and the table: both have the same rows."""

    clicked = Signal(object)  # `Run`: without a modifier: it is to be shown
    changed = Signal()  # other runs are selected, or another one is current

    def __init__(self, table: RunTable, strip: RunStrip) -> None:
        super().__init__(table)
        self._table, self._views = table, (table, strip)
        self._chooser = table.selectionModel()
        self._plain = True  # whether the button of the mouse was released without a modifier
        strip.setSelectionModel(self._chooser)
        self._chooser.currentChanged.connect(lambda: self.changed.emit())
        self._chooser.selectionChanged.connect(lambda: self.changed.emit())
        for view in self._views:
            view.clicked.connect(self._on_clicked)
            self.watch(view.viewport())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QMouseEvent) and event.type() == QEvent.Type.MouseButtonRelease:
            self._plain = event.modifiers() == Qt.KeyboardModifier.NoModifier
        return super().eventFilter(watched, event)

    def _on_clicked(self, index: QModelIndex) -> None:
        run = index.data(RUN_ROLE)
        if run is not None and self._plain:
            self.clicked.emit(run)

    @property
    def current(self) -> Run | None:
        run: Run | None = self._chooser.currentIndex().data(RUN_ROLE)
        return run

    @property
    def selected(self) -> list[Run]:
        rows = {index.row() for index in self._chooser.selectedIndexes()}
        return [run for place, run in self._table.rows.places() if place in rows]

    def select(self, runs: Sequence[Run], current: Run | None) -> None:
        """Select these runs, without a signal, and bring the current one into view."""
        blocked, model = self.blockSignals(True), self._table.rows
        flags, selection = QItemSelectionModel.SelectionFlag, QItemSelection()
        for place, run in model.places():
            cell = model.index(place, RUN)
            if run is current:
                self._chooser.setCurrentIndex(cell, flags.NoUpdate)
                for view in self._views:
                    view.scrollTo(cell)
            if run in runs:
                selection.select(cell, cell.siblingAtColumn(RATE))
        self._chooser.select(selection, flags.ClearAndSelect)
        self.blockSignals(blocked)


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
    "PSNR": "Of the whole output, all slices of a volume, with a reference",
    "SSIM": "Of the whole output, all slices of a volume, with a reference",
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
ORDERS = {
    "Newest first": (RUN, Qt.SortOrder.DescendingOrder),
    "Fastest first": (TOTAL_TIME, Qt.SortOrder.AscendingOrder),
    "Best PSNR first": (PSNR, Qt.SortOrder.DescendingOrder),
}
_SPEED_UPS = {SPEED_UP: TOTAL, KERNEL_GAIN: KERNEL}
_SPARE = (RATE, SSIM, CARRIED, KERNEL_GAIN, KERNEL_TIME, SPREAD)
"""Hidden one after the other until the rest fits."""

_TIMES = (TOTAL_TIME, PARTS, SPREAD, SPEED_UP, KERNEL_TIME, KERNEL_GAIN, CARRIED, RATE)

_LEFT_ALIGNED = (RUN, WHERE, PARTS)
_ALIGNED = (TOTAL_TIME, SPEED_UP, KERNEL_TIME, KERNEL_GAIN, PSNR, SSIM, RATE)
"""Columns of figures with their points below each other."""

_ROOT = QModelIndex()
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

    def places(self) -> list[tuple[int, Run]]:
        return [(place, row.run) for place, row in enumerate(self.rows) if row.run is not None]

    def show(self, rows: Sequence[_Row], column: int, *, down: bool) -> None:
        self.beginResetModel()
        self.rows = tuple(rows)
        self._sorted = f"{COLUMN_NAMES[column]} {'▾' if down else '▴'}"
        self.endResetModel()

    # --- Qt ---

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(COLUMN_NAMES)

    def flags(self, index: Index) -> Qt.ItemFlag:
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

    def data(self, index: Index, role: int = _Roles.DisplayRole) -> Any:
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
        if role == _Roles.AccessibleTextRole and column == RUN:
            return self._table.describe(row.run)
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
        if role == BARS and column == PARTS:
            palette = self._table.palette()
            return [(part_colour(part, palette), *ends) for part, *ends in row.bars]
        return None


class RunTable(QTreeView):
    """The runs, newest first until a heading is clicked; those of the same work below its settings.

    ``parts_shown(bool)``: the columns were fitted, with or without bars.
    """

    parts_shown = Signal(bool)
    reordered = Signal()  # it is to be filled in another order

    def __init__(self, gallery: Gallery) -> None:
        super().__init__()
        self._gallery = gallery
        self.rows = RunRows(self)
        self._measured: tuple[object, list[int]] = None, []
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

    @property
    def order(self) -> tuple[int, Qt.SortOrder]:
        return self.header().sortIndicatorSection(), self.header().sortIndicatorOrder()

    def fill(self, runs: Sequence[Run]) -> None:
        column, order = self.order
        down = order is Qt.SortOrder.DescendingOrder
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
            (f"{first.filter_name}  {chips}  –  {first.input}",),
            tip=f"{first.settings}\n{first.input}, {first.mode}",
        )
        slowest = max(run.seconds or 0.0 for run in runs)
        return [heading, *(self._row(run, slowest) for run in runs)]

    def _row(self, run: Run, slowest: float) -> _Row:
        quiet, bold, runs = set(), set(), self._gallery
        for column, quantity in _SPEED_UPS.items():
            gain = runs.speed_up(run, quantity)
            if gain is None or not gain.sure:
                quiet.add(column)
            if runs.is_fastest(run, quantity):
                bold.add(column)
        if run.first or run.seconds is None:
            quiet.add(SPREAD)
        whole = max(sum(part.seconds for part in run.parts), slowest, 1e-12)
        ends = (0.0, *itertools.accumulate(part.seconds / whole for part in run.parts))
        names = (part.name for part in run.parts)
        bars = tuple(zip(names, ends, ends[1:], strict=False))
        return _Row(self._texts(run), run, "", bars, frozenset(quiet), frozenset(bold))

    def copy(self) -> None:
        self._key.copy()

    def text(self) -> str:
        """Return the table as it is sorted, with its header, cells separated by tabs."""
        unsaid = (PARTS,)
        rows = [(*COLUMN_NAMES, "Picture", "Filter")]
        rows += [(*self._texts(run), run.input, run.settings) for _, run in self.rows.places()]
        kept = ([cell for n, cell in enumerate(row) if n not in unsaid] for row in rows)
        return "\n".join("\t".join(row) for row in kept)

    def _sort_key(self, run: Run, column: int) -> Any:
        """Return the key of a run: of equals the newer is larger; one without a time comes last."""
        gain = self._gallery.speed_up(run, _SPEED_UPS.get(column, TOTAL))
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
        runs = self._gallery
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
        runs = self._gallery
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
        kept = "" if run.result else "\nIts picture is no longer in memory; Run computes it again."
        how = f"{run.where}, {run.totals.describe()}, {run.measurement}"
        return plain_tip(f"{run.settings}\n{run.input}, {run.mode}\n{how}{kept}")

    def describe(self, run: Run) -> str:
        settings = self._gallery.distinguishing(run)
        parts = [f"Run {run.number}", run.title, *settings, run.where, duration(run.seconds)]
        parts.append(run.measurement)
        if run.psnr is not None:
            parts.append(f"PSNR {decibels(run.psnr)}")
        parts += ["starred"] * run.starred
        return ", ".join(parts)

    def _no_speed_up(self, run: Run, quantity: str) -> str:
        runs = self._gallery
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
        """Measure the texts once: Qt asks with each layout of the window."""
        metrics = self.fontMetrics()
        if self._measured[0] != (self.rows.rows, metrics):
            widths = [
                max(self._hint(number), _heading_width(name, metrics))
                for number, name in enumerate(COLUMN_NAMES)
            ]
            widths[PARTS] = _LEAST_BAR * metrics.averageCharWidth()
            self._measured = (self.rows.rows, metrics), widths
        return self._measured[1]

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


_LETTERS = 24  # width of a tile in characters; its height is that of the strip

_LEAST_PICTURE = 40
_MARGIN, _GAP = 4, 3
_LINES = 2


class RunStrip(QListView):
    """The runs of the table in a row, as pictures."""

    def __init__(self, rows: RunRows, gallery: Gallery) -> None:
        super().__init__()
        self.gallery = gallery
        self.shown: Run | None = None  # the one whose picture is in the viewer
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
        self.setModel(rows)
        rows.modelReset.connect(lambda: self._hide_headings(rows))

    def _hide_headings(self, rows: RunRows) -> None:
        for place, row in enumerate(rows.rows):
            self.setRowHidden(place, row.run is None)

    def selectionCommand(
        self, index: Index, event: QEvent | None = None
    ) -> QItemSelectionModel.SelectionFlag:
        """Select whole rows, as the table does."""
        return super().selectionCommand(index, event) | QItemSelectionModel.SelectionFlag.Rows

    def mark(self, shown: Run | None) -> None:
        self.shown = shown
        self.viewport().update()

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
        strip = self.parent()
        assert isinstance(strip, RunStrip)
        settings = ", ".join(strip.gallery.distinguishing(run))
        if selected:
            painter.fillRect(area, palette.color(QPalette.ColorRole.Highlight))
        height = _LINES * option.fontMetrics.height()
        frame = area.adjusted(_MARGIN, _MARGIN, -_MARGIN, -_MARGIN - _GAP - height)
        room = QRect(frame.left(), frame.bottom() + _GAP, frame.width(), height)
        marks = f"{run.number}", "★" * run.starred, "" if run.result else "settings only"
        lines = (
            TileLine(run.title, bold=True, behind=settings or run.where),
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
        if run is strip.shown:
            painter.setPen(QPen(palette.color(QPalette.ColorRole.Highlight), 2))
            painter.drawRect(area.adjusted(1, 1, -1, -1))


def _tile_size(widget: QWidget, picture: int) -> QSize:
    height = 2 * _MARGIN + picture + _GAP + _LINES * widget.fontMetrics().height()
    return QSize(_LETTERS * widget.fontMetrics().averageCharWidth() + 2 * _MARGIN, height)


_WIDE = 140  # characters from which on the strip and the table have room beside each other
_SIDE = 4  # pixels beside all of it

_RUN_HINT = "Run (F5) measures the filter and keeps the picture here."
_EMPTY, _NONE_OF_IT = f"No runs yet. {_RUN_HINT}", f"No runs of this picture yet. {_RUN_HINT}"

SHOW, STAR, DELETE = "showRun", "starRun", "deleteRun"
"""Ids of the actions with a key of their own in the panel."""

KEYS = {
    Qt.Key.Key_Return: SHOW,
    Qt.Key.Key_Enter: SHOW,
    Qt.Key.Key_Space: STAR,
    Qt.Key.Key_Delete: DELETE,
}

BUTTONS = ("starRun", "saveRun", "deleteRun", "swipeRuns", "compareRuns")
"""Ids of the actions that have a button."""


class RunsPanel(QWidget):
    wanted = Signal(object)  # `Run`: It is to be shown, with its settings
    pair_wanted = Signal(object, object)  # `Run, Run`: Two were chosen to be compared in the viewer
    chosen = Signal()  # other runs are selected

    def __init__(self, gallery: Gallery) -> None:
        super().__init__()
        self.setObjectName("runsPanel")
        self.gallery = gallery
        self._actions: Mapping[str, QAction] = {}
        self._selected: list[Run] = []
        self._current: Run | None = None
        self.table = RunTable(gallery)
        self.strip = RunStrip(self.table.rows, gallery)
        self._legend = dressed(QLabel(), "timingLegend", LEGEND_TIP, tip=LEGEND_TIP)
        self._note = dressed(_Note(), "runsNote")
        theme.set_role(self._note, "note")
        self._empty = text_label(_EMPTY, "runsEmpty")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        tip = "Order of the runs; a click on a heading sorts by it"
        self._order = choice_box("runsOrder", "Order of the runs", ORDERS, tip=tip)
        header = self.table.header()
        self._order.textActivated.connect(lambda name: header.setSortIndicator(*ORDERS[name]))
        self._picture = ""
        which, tip = ("This picture", "All pictures"), "List the runs of one picture, or all"
        pairs = zip(which, (False, True), strict=True)
        self._of = choice_box("runsOf", "Runs in the list", pairs, self.refresh, tip=tip)
        tip = "Times and quality of all runs in a table"
        self._switch = switch("Table", "runsTableSwitch", tip=tip)
        self._switch.toggled.connect(lambda: self._arrange())
        self._lay_out()
        self.choice = RunChoice(self.table, self.strip)
        self.choice.clicked.connect(self.wanted)
        self.choice.changed.connect(self._on_chosen)
        for view in (self.strip, self.table):
            view.installEventFilter(self)
        self.table.reordered.connect(self._fill)
        self.table.parts_shown.connect(lambda _: self._show_legend())
        stylist().restyled.connect(self._fill)
        self.refresh()

    # --- building ---

    def _lay_out(self) -> None:
        self._tools = in_row(self._of, self._order, (self._note, 1), self._legend, self._switch)
        sides = self.strip, self.table
        self._splitter = tool_splitter(*sides, name="runsSplitter", sizes=(500, 500))
        self._views = QStackedWidget()
        self._views.addWidget(self._empty)
        self._views.addWidget(self._splitter)
        parts = (self._views, 1), self._tools
        layout = in_column(*parts, of=self, margins=(_SIDE, 2, _SIDE, 2), spacing=2)
        layout.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)  # see `minimumSizeHint`

    def set_actions(self, actions: Mapping[str, QAction], ids: Sequence[str]) -> None:
        self._actions = actions
        for view in (self.strip, self.table):
            view.addActions([actions[id_] for id_ in ids])
        buttons = tool_row("runButtons", [actions[id_] for id_ in BUTTONS], icons=False)
        self._tools.insertWidget(2, buttons)

    # --- content ---

    @property
    def runs(self) -> list[Run]:
        """The runs in the list: those of the picture in front, unless all are wanted."""
        every = self._of.currentData() or not self._picture
        return list(self.gallery) if every else self.gallery.of(self._picture)

    @property
    def current(self) -> Run | None:
        return self._current if self._current in self.runs else None

    @property
    def selected(self) -> list[Run]:
        runs = self.runs
        return [run for run in self._selected if run in runs]

    def show_picture(self, title: str) -> None:
        if title != self._picture:
            self._picture = title
            self.refresh()

    def refresh(self) -> None:
        self._fill()
        listed = bool(self.runs)
        others = len(self.gallery.of(self._picture)) < len(self.gallery)
        self._of.setVisible(bool(self._picture) and others)
        self._empty.setText(_NONE_OF_IT if len(self.gallery) else _EMPTY)
        self._views.setCurrentIndex(1 if listed else 0)
        self._switch.setEnabled(listed)
        self._show_legend()
        self.chosen.emit()

    def _fill(self) -> None:
        """Show the runs as they are now in both views; the selection stays."""
        self.table.fill(self.runs)
        names = [name for name, order in ORDERS.items() if order == self.table.order]
        self._order.setCurrentIndex(self._order.findText(names[0]) if names else -1)
        self.choice.select(self.selected, self.current)

    def choose(self, run: Run | None) -> None:
        self._current, self._selected = run, [run] if run is not None else []
        self.choice.select(self._selected, run)
        self.chosen.emit()

    def mark(self, shown: Run | None) -> None:
        self.strip.mark(shown)

    def show_note(self, text: str) -> None:
        self._note.set_full_text(text)

    def _on_chosen(self) -> None:
        now = self.choice.selected
        before = [run for run in self._selected if run in now]
        added = [run for run in now if run not in before]
        self._selected, self._current = before + added, self.choice.current
        self.chosen.emit()
        if len(self._selected) == 2 and added and before:
            self.pair_wanted.emit(*self._selected)

    # --- keys and layout ---

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take the keys of runs before the views, and before shortcuts of the window, do."""
        kinds = (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress)
        if isinstance(event, QKeyEvent) and event.type() in kinds:
            action = self._actions.get(KEYS.get(Qt.Key(event.key()), ""))
            plain = event.modifiers() in (
                Qt.KeyboardModifier.NoModifier,
                Qt.KeyboardModifier.KeypadModifier,
            )
            if action is not None and plain:
                event.accept()
                if event.type() == QEvent.Type.KeyPress and action.isEnabled():
                    action.trigger()
                return True
        return super().eventFilter(watched, event)

    def _arrange(self) -> None:
        """Show strip and table beside each other, or one of them where there is no room."""
        wide = self.width() >= _WIDE * self.fontMetrics().averageCharWidth()
        self._switch.setVisible(not wide)
        table = wide or self._switch.isChecked()
        self.strip.setVisible(wide or not table)
        self.table.setVisible(table)
        self._show_legend()

    def _show_legend(self) -> None:
        self._legend.setText(legend(self.palette()))
        seen = not (self.table.isHidden() or self._switch.isVisible())
        self._legend.setVisible(seen and bool(self.runs))

    def minimumSizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(45 * metrics.averageCharWidth(), 8 * metrics.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()


class _Note(ElidedLabel):
    """Shows its text in full or not at all: the button beside it has it as its tooltip."""

    def _elide(self) -> None:
        room = self.contentsRect().width()
        fits = self.fontMetrics().horizontalAdvance(self.full_text) <= room
        self.setText(self.full_text if fits else "")
