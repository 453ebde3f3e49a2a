"""The table of runs: how long each took and how good it was, grouped by equal work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QEvent, QItemSelectionModel, QObject, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QIcon, QPixmap
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTreeWidgetItem, QWidget

from kernelscope.bench.statistics import short
from kernelscope.gui.model.gallery import Gallery
from kernelscope.gui.model.runs import KERNEL, TOTAL, Run
from kernelscope.gui.model.times import BUSY, VARYING, WHY_NOT_TIMED, duration
from kernelscope.gui.panels.bars import BARS, BarDelegate, end_to_end
from kernelscope.gui.widgets.copyable_tree import CopyableTree
from kernelscope.gui.widgets.theme import quiet_text
from kernelscope.spec.level_colours import colour

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
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_RUN = Qt.ItemDataRole.UserRole + 1
"""Role under which a row keeps its run."""

_LEAST_BAR = 10
"""Characters that the bars need at least; they get the room that the other columns leave."""

FIRST_HELP = (
    "The first run of this work at this level: caches, memory and compiled code were not ready.\n"
    "It takes part in no comparison. Run it again to measure it."
)


class RunTable(CopyableTree):
    """Shows the runs of a gallery, newest first until a click on a heading sorts them otherwise.

    Runs that did the same work stand below a line with its settings.

    Signals
    -------
    clicked_run : Run
        Without a modifier: it is to be shown.
    chosen
        Other rows are selected, or another one is current.
    parts_shown(bool)
        After the columns were fitted: whether there are bars.
    """

    clicked_run = Signal(object)
    chosen = Signal()
    parts_shown = Signal(bool)

    def __init__(self, gallery: Gallery, parent: QWidget | None = None) -> None:
        super().__init__(self.text, parent)
        self._gallery = gallery
        self._items: dict[Run, QTreeWidgetItem] = {}
        self.setObjectName("runTable")
        self.setAccessibleName("Table of runs")
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
        self._set_up_header()
        self.currentItemChanged.connect(lambda: self.chosen.emit())
        self.itemSelectionChanged.connect(self.chosen)

    def _set_up_header(self) -> None:
        self.setHeaderLabels(list(COLUMN_NAMES))
        heading = self.headerItem()
        for number, (name, tip) in enumerate(_COLUMNS.items()):
            more = _BASELINE_HELP if number in _SPEED_UPS else ""
            heading.setToolTip(number, f"{tip}{more}")
            heading.setData(number, Qt.ItemDataRole.AccessibleTextRole, name)
            if number not in _LEFT_ALIGNED:
                heading.setTextAlignment(number, _RIGHT)
        header = self.header()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)  # see `fit_columns`
        header.setStretchLastSection(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setMinimumSectionSize(4 * self.fontMetrics().averageCharWidth())
        header.setSectionsClickable(True)
        header.setSortIndicator(RUN, Qt.SortOrder.DescendingOrder)
        header.sortIndicatorChanged.connect(lambda: self.refresh())

    # --- content ---

    @property
    def shown(self) -> list[Run]:
        """The runs in the order of the rows."""
        return list(self._items)

    def current(self) -> Run | None:
        """Return the run of the current row."""
        item = self.currentItem()
        run: Run | None = item.data(0, _RUN) if item is not None else None
        return run

    def selected(self) -> list[Run]:
        """Return the selected runs, in the order of the rows."""
        return [run for run, item in self._items.items() if item.isSelected()]

    def select(self, runs: Sequence[Run], current: Run | None) -> None:
        """Select these runs, without a signal."""
        blocked = self.blockSignals(True)
        if current in self._items:
            flag = QItemSelectionModel.SelectionFlag.NoUpdate
            self.setCurrentItem(self._items[current], 0, flag)
        for run, item in self._items.items():
            item.setSelected(run in runs)
        self.blockSignals(blocked)

    def refresh(self) -> None:
        """Fill the table with the runs as they are now; the selection stays."""
        current, selected = self.current(), self.selected()
        header = self.header()
        column = header.sortIndicatorSection()
        down = header.sortIndicatorOrder() is Qt.SortOrder.DescendingOrder
        runs = sorted(self._gallery, key=lambda run: self._sort_key(run, column), reverse=down)
        groups: dict[Any, list[Run]] = {}
        for run in runs:
            groups.setdefault(run.work, []).append(run)
        blocked = self.blockSignals(True)
        self.clear()
        self._items = {}
        for number, name in enumerate(COLUMN_NAMES):  # Qt's own mark takes room in every heading
            mark = (" ▾" if down else " ▴") if number == column else ""
            self.headerItem().setText(number, _heading(name) + mark)
        for group in groups.values():
            self._add_group(group)
        self.blockSignals(blocked)
        self.select(selected, current)
        self.fit_columns()

    def _add_group(self, runs: Sequence[Run]) -> None:
        first = runs[0]
        chips = "  ".join(chip.text for chip in first.chips)
        heading = QTreeWidgetItem(
            [f"{first.filter_name}  {chips}  –  {first.picture}, {first.size}"]
        )
        heading.setFlags(Qt.ItemFlag.ItemIsEnabled)
        heading.setBackground(0, self.palette().alternateBase())
        heading.setToolTip(0, f"{first.settings}\n{first.picture}, {first.size}, {first.mode}")
        self.addTopLevelItem(heading)
        heading.setFirstColumnSpanned(True)
        slowest = max(run.seconds or 0.0 for run in runs)
        for run in runs:
            item = self._item(run, slowest)
            heading.addChild(item)
            self._items[run] = item
        heading.setExpanded(True)

    def _item(self, run: Run, slowest: float) -> QTreeWidgetItem:
        texts = self._texts(run)
        item = QTreeWidgetItem(list(texts))
        item.setData(0, _RUN, run)
        item.setIcon(WHERE, _swatch(run.level, self.fontMetrics().height() // 2))
        for column in range(len(COLUMN_NAMES)):
            item.setToolTip(column, self._tip(run, column))
            if column not in _LEFT_ALIGNED:
                item.setTextAlignment(column, _RIGHT)
        quiet, bold = quiet_text(self.palette()), self.font()
        bold.setBold(True)
        runs = self._gallery.runs
        for column, quantity in _SPEED_UPS.items():
            gain = runs.speed_up(run, quantity)
            if gain is None or not gain.sure:
                item.setForeground(column, quiet)
            if runs.is_fastest(run, quantity):
                item.setFont(column, bold)
        if run.first or run.seconds is None:
            item.setForeground(SPREAD, quiet)
        whole = max(sum(part.seconds for part in run.parts), slowest, 1e-12)
        item.setData(
            PARTS, BARS, end_to_end([(part.name, part.seconds / whole) for part in run.parts])
        )
        return item

    def text(self) -> str:
        """Return the table as it is sorted, with its header, cells separated by tabs."""
        unsaid = (PARTS,)
        rows = [(*COLUMN_NAMES, "Picture", "Filter")]
        rows += [
            (*self._texts(run), f"{run.picture}, {run.size}", run.settings) for run in self.shown
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
        """Return the cells of a run's row."""
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
            f"{short(run.speed)} {run.unit}" if run.speed is not None else "–",
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
        """Return how often the run was repeated, and how far apart the totals lie."""
        count = len(run.totals.times)
        if count <= 1:
            return run.measurement
        half = f"± {100 * run.totals.half:.0f} %"
        return f"{'times vary' if run.totals.unsteady else half}, {count} runs"

    @staticmethod
    def _explain_spread(run: Run) -> str:
        """Return the repeats, and the figure where the cell has words for it."""
        warning = (
            f"± {100 * run.totals.half:.0f} %, {VARYING}: {BUSY}\n" if run.totals.unsteady else ""
        )
        return f"{warning}{run.where}, total: {run.totals.describe()}"

    def _tip(self, run: Run, column: int) -> str:
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
        """Return why a run has no speed-up."""
        runs = self._gallery.runs
        if not run.is_measured(quantity):
            return FIRST_HELP
        if not runs.has_rivals(run):
            return "Nothing else did the same work yet: run it at another level, or press L."
        base = runs.baseline(run)
        if base is run:
            return "The other levels are compared with this run."
        if base is not None and base.where == run.where:
            return f"The other levels are compared with run {base.number}, at the same level."
        return "Not compared: the baseline has no measured run yet."

    # --- layout and mouse ---

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
        self.parts_shown.emit(bool(self._items))
        self.updateGeometry()

    def minimumSizeHint(self) -> QSize:
        """Return the size in which the columns fit that are never hidden."""
        widths = (width for column, width in enumerate(self._widths()) if column not in _SPARE)
        return QSize(sum(widths) + self._frame(), super().minimumSizeHint().height())

    def _frame(self) -> int:
        """Return the width of everything around the columns."""
        return 2 * self.frameWidth() + self.verticalScrollBar().sizeHint().width()

    def _widths(self) -> list[int]:
        """Return the width that each column needs."""
        metrics = self.fontMetrics()
        widths = [
            max(self._hint(number), _heading_width(name, metrics))
            for number, name in enumerate(COLUMN_NAMES)
        ]
        widths[PARTS] = _LEAST_BAR * metrics.averageCharWidth()
        return widths

    def _hint(self, column: int) -> int:
        """Return the width of the cells of a column; headings of groups span all columns."""
        metrics = self.fontMetrics()
        texts = (item.text(column) for item in self._items.values())
        icon = metrics.height() if column == WHERE else 0
        return icon + max((metrics.horizontalAdvance(text) for text in texts), default=0) + 12

    def mouseReleaseEvent(self, event: Any) -> None:
        """Show a run that was clicked without a modifier."""
        super().mouseReleaseEvent(event)
        item = self.itemAt(event.position().toPoint())
        plain = event.modifiers() == Qt.KeyboardModifier.NoModifier
        if item is not None and plain and event.button() == Qt.MouseButton.LeftButton:
            run = item.data(0, _RUN)
            if run is not None:
                self.clicked_run.emit(run)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Fit the columns when the viewport gets another size, also by a scroll bar."""
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


def _swatch(level: str, side: int) -> QIcon:
    """Return a square in the colour of a level."""
    square = QPixmap(side, side)
    square.fill(QColor(colour(level)))
    return QIcon(square)


def _carried(run: Run) -> str:
    """Return the transfers to the GPU and back, in words."""
    if not run.transfers:
        return "No transfers: the CPU reads the picture in place."
    lines = [f"{name.capitalize()}: {duration(t)}" for name, t in run.transfers.items()]
    if "upload" not in run.transfers:
        lines.append("No upload: the picture was on the card already.")
    if run.overlapped:
        lines.append("Partly overlapped by kernels: the total contains less of it.")
    return "\n".join(lines)
