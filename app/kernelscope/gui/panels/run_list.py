"""The list of the last runs: how long each took, and how much faster it was than a baseline."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTreeWidgetItem, QWidget

from kernelscope.gui.model.runs import KERNEL, TOTAL, Run, Runs, milliseconds
from kernelscope.gui.panels.bars import BARS, BarDelegate, end_to_end
from kernelscope.gui.widgets.copyable_tree import CopyableTree
from kernelscope.gui.widgets.theme import quiet_text

_COLUMNS = {
    "No.": "The runs of this session are numbered; a click on a heading sorts by it",
    "Run on": "Device and level",
    "Kernel ms": "Computation alone: the kernels of a GPU, or the stage compute of the CPU",
    "Transfers ms": "Upload of the picture to the GPU (↑) and download of the result (↓).\n"
    "A picture stays on the card: runs after the first have no upload.",
    "Total ms": "All counted stages: kernel, transfers, memory, wrapping the result; not compiling",
    "Parts": "Light: kernel. Dark: transfers. Grey: other stages.\nThe total fills the column.",
    "Speed-up of kernel": "Kernel time of the baseline / kernel time of this; medians of all "
    "repeats.\n",
    "Speed-up of total": "Total of the baseline / total of this; medians of all repeats.\n",
    "Compared with": "The baseline of both speed-ups. CPU serial, or else the level measured "
    "first, until you\nchoose another.",
    "Repeats": "Number of measured runs of the same work at the same level, and half the "
    "range of their totals.\nThe first run is none of them: caches, memory and compiled code "
    "were not ready.",
    "Image": "Width × height",
    "Speed": "Pixels or voxels of the input by the total",
    "Filter": "The filter and all settings that affect its result",
}
"""The headings and their tooltips."""

_BASELINE_HELP = (
    "Only runs that did the same work are compared: same filter and settings, same picture. The "
    "fastest is bold.\n"
    "The baseline is CPU serial, or else the level measured first, until you choose another."
)

COLUMN_NAMES = tuple(_COLUMNS)
_KERNEL, _TRANSFERS, _TOTAL, _PARTS = (
    COLUMN_NAMES.index(name) for name in ("Kernel ms", "Transfers ms", "Total ms", "Parts")
)
_SPEED_UPS = {
    COLUMN_NAMES.index("Speed-up of kernel"): KERNEL,
    COLUMN_NAMES.index("Speed-up of total"): TOTAL,
}
_OVER, _REPEATS, _FILTER = (
    COLUMN_NAMES.index(name) for name in ("Compared with", "Repeats", "Filter")
)
_SPARE = (COLUMN_NAMES.index("Speed"), _PARTS, COLUMN_NAMES.index("Image"))
"""Hidden one after the other until the rest fits: the first two follow from the other columns, and
the picture is shown anyway."""

_FILTER_CHARACTERS = 8
"""Least width of the last column, which gets what the others leave: its end is elided."""
_NUMBERS = (0, _KERNEL, _TRANSFERS, _TOTAL, COLUMN_NAMES.index("Speed"))

_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter

_FIRST_HELP = (
    "The first run of this work at this level: caches, memory and compiled code were not ready.\n"
    "It takes part in no comparison. Run it again to measure it."
)


class RunList(CopyableTree):
    """Shows `runs`, newest first until a click on a heading sorts them otherwise.

    Signals
    -------
    selected(Run or None)
        After another run became the current one, or the list was filled again.
    parts_shown(bool)
        After the columns were fitted: whether the column of parts found room.
    """

    selected = Signal(object)
    parts_shown = Signal(bool)

    def __init__(self, runs: Runs, parent: QWidget | None = None) -> None:
        super().__init__(self.text, parent)
        self._runs = runs
        self.shown: list[Run] = []
        """The runs in the order of the rows."""
        self.setObjectName("timingRuns")
        self.setAccessibleName("The last runs")
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setAllColumnsShowFocus(True)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.viewport().installEventFilter(self)
        self.setItemDelegateForColumn(_PARTS, BarDelegate(self))
        self._set_up_header()
        self.currentItemChanged.connect(lambda: self.selected.emit(self.current()))

    def _set_up_header(self) -> None:
        self.setHeaderLabels(list(COLUMN_NAMES))
        heading_item = self.headerItem()
        for number, (name, tip) in enumerate(_COLUMNS.items()):
            more = _BASELINE_HELP if number in _SPEED_UPS else ""
            heading_item.setToolTip(number, f"{tip}{more}")
            heading_item.setData(number, Qt.ItemDataRole.AccessibleTextRole, name)
        for number in _NUMBERS:
            heading_item.setTextAlignment(number, _RIGHT)
        header = self.header()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)  # see `fit_columns`
        header.setStretchLastSection(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setMinimumSectionSize(4 * self.fontMetrics().averageCharWidth())
        header.setSectionsClickable(True)
        header.setSortIndicator(0, Qt.SortOrder.DescendingOrder)
        header.sortIndicatorChanged.connect(lambda: self.refresh(self.current()))

    def current(self) -> Run | None:
        """Return the run of the current row."""
        place = self.currentIndex().row()
        return self.shown[place] if 0 <= place < len(self.shown) else None

    def refresh(self, selected: Run | None) -> None:
        """Fill the list with the runs as they are now, `selected` in the current row."""
        header = self.header()
        column = header.sortIndicatorSection()
        down = header.sortIndicatorOrder() is Qt.SortOrder.DescendingOrder
        self.shown = sorted(self._runs, key=lambda run: self._sort_key(run, column), reverse=down)
        blocked = self.blockSignals(True)
        self.clear()
        for number, name in enumerate(COLUMN_NAMES):  # Qt's own mark takes room in every heading
            mark = (" ▾" if down else " ▴") if number == column else ""
            heading = (
                name.replace(" of ", "\nof ").replace(" ms", "\nms").replace(" with", "\nwith")
            )
            self.headerItem().setText(number, heading + mark)
        for run in self.shown:
            item = self._item(run)
            self.addTopLevelItem(item)
            if run is selected:
                self.setCurrentItem(item)
        self.blockSignals(blocked)
        self.fit_columns()
        self.selected.emit(selected)

    def fit_columns(self) -> None:
        """Fit columns to their content, the last one to the rest; hide spare ones if too narrow.

        The choice depends on the width of the list alone, as if it always had a vertical scroll
        bar: that comes and goes with a horizontal one, which comes and goes with the columns. Qt's
        own way to size columns leaves the last one too wide where a scroll bar appears later.
        """
        header, metrics = self.header(), self.fontMetrics()
        for column in _SPARE:
            self.setColumnHidden(column, False)  # hidden columns have no size hint
        widths = [
            max(self.sizeHintForColumn(n), header.sectionSizeHint(n))
            for n in range(len(COLUMN_NAMES))
        ]
        widths[_PARTS] = max(widths[_PARTS], 6 * metrics.averageCharWidth())
        least = _FILTER_CHARACTERS * metrics.averageCharWidth()
        widths[_FILTER] = max(header.sectionSizeHint(_FILTER), least)
        bar = self.verticalScrollBar().sizeHint().width()
        room = self.width() - 2 * self.frameWidth() - bar
        shown = dict(enumerate(widths))
        for column in _SPARE:
            if sum(shown.values()) > room:
                del shown[column]
        for column in _SPARE:
            self.setColumnHidden(column, column not in shown)
        shown[_FILTER] += max(0, self.viewport().width() - sum(shown.values()))
        for column, width in shown.items():
            header.resizeSection(column, width)
        self.parts_shown.emit(_PARTS in shown)

    def text(self) -> str:
        """Return the list as it is sorted, with its header, cells separated by tabs."""
        rows = [COLUMN_NAMES, *map(self._texts, self.shown)]
        unsaid = (_PARTS, _OVER)  # a bar, and the baseline that both speed-ups name
        kept = ([c for n, c in enumerate(row) if n not in unsaid] for row in rows)
        return "\n".join("\t".join(row) for row in kept)

    def _sort_key(self, run: Run, column: int) -> Any:
        """Return the sort key of a run; of equals the newer is the larger."""
        gain = self._runs.speed_up(run, _SPEED_UPS.get(column, TOTAL))
        keys: dict[int, Any] = {
            0: run.number,
            _KERNEL: run.kernel,
            _TRANSFERS: sum(run.transfers.values()),
            _TOTAL: run.seconds,
            _PARTS: run.seconds,
            _REPEATS: self._runs.series(run).count,
            COLUMN_NAMES.index("Speed"): run.speed,
            **dict.fromkeys(_SPEED_UPS, gain.factor if gain else 0.0),
        }
        return keys[column] if column in keys else self._texts(run)[column], run.number

    def _texts(self, run: Run) -> tuple[str, ...]:
        """Return the cells of a run's row."""
        carried = sum(run.transfers.values())
        transfers = f"{milliseconds(carried)} {run.arrows}" if run.transfers else "–"
        return (
            str(run.number),
            run.where,
            milliseconds(run.kernel),
            f"({transfers})" if run.overlapped else transfers,
            milliseconds(run.seconds),
            "",
            self._speed_up(run, KERNEL),
            self._speed_up(run, TOTAL),
            self._over(run),
            self._repeats(run),
            run.size,
            f"{run.speed:,.1f} {run.unit}",
            run.settings,
        )

    def _speed_up(self, run: Run, quantity: str) -> str:
        gain = self._runs.speed_up(run, quantity)
        if gain is not None:
            return str(gain)
        is_base = run.is_measured(quantity) and self._runs.is_baseline(run)
        return "baseline" if is_base else "–"

    def _over(self, run: Run) -> str:
        gains = (self._runs.speed_up(run, quantity) for quantity in (KERNEL, TOTAL))
        return next((gain.over for gain in gains if gain is not None), "")

    def _repeats(self, run: Run) -> str:
        """Return how often the same was measured, and how far apart the totals lie."""
        series = self._runs.series(run)
        if run.first or series.total is None:
            return "first run"
        if series.count == 1:
            return "1 run"
        return f"{series.count} runs ± {100 * series.total.half:.0f} %"

    def _item(self, run: Run) -> QTreeWidgetItem:
        texts = list(self._texts(run))
        for column in _SPEED_UPS:  # over what stands once, in a column of its own
            texts[column] = texts[column].partition(" over ")[0]
        item = QTreeWidgetItem(texts)
        for column in range(len(COLUMN_NAMES)):
            item.setToolTip(column, self._tip(run, column))
            if column in _NUMBERS:
                item.setTextAlignment(column, _RIGHT)
        quiet, bold = quiet_text(self.palette()), self.font()
        bold.setBold(True)
        for column, quantity in _SPEED_UPS.items():
            gain = self._runs.speed_up(run, quantity)
            if gain is None or not gain.sure:
                item.setForeground(column, quiet)
            if self._runs.is_fastest(run, quantity) and (gain is None or gain.sure):
                item.setFont(column, bold)
        if run.first:
            item.setForeground(_REPEATS, quiet)
        whole = max(sum(part.seconds for part in run.parts), 1e-12)
        shares = [(part.name, part.seconds / whole) for part in run.parts]
        item.setData(_PARTS, BARS, end_to_end(shares))
        return item

    def _tip(self, run: Run, column: int) -> str:
        if column in _SPEED_UPS:
            quantity = _SPEED_UPS[column]
            gain = self._runs.speed_up(run, quantity)
            return gain.explain(run.where) if gain is not None else self._no_speed_up(run, quantity)
        if column == _TRANSFERS:
            return _carried(run)
        if column == _PARTS:
            return "\n".join(f"{part.name}: {milliseconds(part.seconds)} ms" for part in run.parts)
        series = self._runs.series(run)
        if column == _KERNEL and series.kernel is not None:
            return f"{run.where}, kernel: {series.kernel.describe()}"
        if column in (_TOTAL, _REPEATS) and series.total is not None:
            return f"{run.where}, total: {series.total.describe()}"
        if column == _REPEATS:
            return _FIRST_HELP
        shown = (
            "Double-click to see its images again."
            if run.result
            else "Its images are no longer in memory."
        )
        return f"{run.settings}\n{run.size}, {run.mode}\n{run.where}\n{shown}"

    def _no_speed_up(self, run: Run, quantity: str) -> str:
        """Return why a run has no speed-up."""
        base = self._runs.baseline(run)
        if not run.is_measured(quantity):
            return _FIRST_HELP
        if not self._runs.has_others(run):
            return "Nothing else did the same work yet."
        if base is not None and base.place == run.place:
            return "The other levels are compared with this one."
        return "Not compared: the baseline has no measured run yet, or other transfers."

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Fit the columns when the viewport gets another size, also by a scroll bar."""
        if watched is self.viewport() and event.type() == QEvent.Type.Resize:
            self.fit_columns()
        return super().eventFilter(watched, event)


def _carried(run: Run) -> str:
    """Return the transfers to the GPU and back, in words."""
    if not run.transfers:
        return "No transfers: the CPU reads the picture in place."
    lines = [f"{name.capitalize()}: {milliseconds(t)} ms" for name, t in run.transfers.items()]
    if "upload" not in run.transfers:
        lines.append("No upload: the picture was on the card already.")
    if run.overlapped:
        lines.append("Partly overlapped by kernels: the total contains less of it.")
    return "\n".join(lines)
