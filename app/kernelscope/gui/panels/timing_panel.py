"""How long the current run took, stage by stage, and how it compares with the last ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QAction,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLayout,
    QSplitter,
    QStackedWidget,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from kernelscope.engine.result import Result
from kernelscope.engine.timing import Metric
from kernelscope.engine.timing import added_up as kernels_added_up
from kernelscope.gui.model.runs import (
    KERNEL,
    TOTAL,
    Run,
    Runs,
    Spread,
    added_up,
    duration,
    milliseconds,
    part_of,
)
from kernelscope.gui.panels.part_colours import Legend, part_colour
from kernelscope.gui.panels.time_line import TimeLine
from kernelscope.gui.widgets.elided_label import ElidedLabel
from kernelscope.gui.widgets.switch import Switch
from kernelscope.gui.widgets.theme import quiet_text

_COLUMNS = {
    "No.": "The runs of this session are numbered; a click on a heading sorts by it",
    "Run on": "Device and level",
    "Kernel ms": "Computing alone: on a GPU its kernels, on the CPU the stage compute",
    "Transfers ms": "Carrying the picture to the card (↑) and the result back (↓).\n"
    "A picture stays on the card: runs after the first have no upload.",
    "Total ms": "All that is counted: kernel, transfers, memory, wrapping the result; not "
    "compiling",
    "Parts": "Light: kernel. Dark: transfers. Grey: other stages.\nThe total fills the column.",
    "Speed-up of kernel": "Kernel time of the baseline / kernel time of this; medians of all "
    "repeats.\n",
    "Speed-up of total": "Total of the baseline / total of this; medians of all repeats.\n",
    "Compared with": "The baseline of both speed-ups. It is CPU serial, else what was measured "
    "first, until you\nchoose another.",
    "Repeats": "How many runs of the same work at the same level were measured, and half the "
    "range of their totals.\nThe first run is none of them: caches, memory and compiled code "
    "were not ready.",
    "Image": "Width × height",
    "Speed": "Pixels or voxels of the input by the total",
    "Filter": "The filter and all that decides its result",
}
"""The headings and their tooltips."""

_BASELINE_HELP = (
    "Only runs that did the same work are compared: same filter and settings, same picture. The "
    "fastest is bold.\n"
    "The baseline is CPU serial, else what was measured first, until you choose another."
)

_NAMES = tuple(_COLUMNS)
_KERNEL, _TRANSFERS, _TOTAL, _PARTS = (
    _NAMES.index(name) for name in ("Kernel ms", "Transfers ms", "Total ms", "Parts")
)
_SPEED_UPS = {_NAMES.index("Speed-up of kernel"): KERNEL, _NAMES.index("Speed-up of total"): TOTAL}
_OVER, _REPEATS, _FILTER = (_NAMES.index(name) for name in ("Compared with", "Repeats", "Filter"))
_SPARE = (_NAMES.index("Speed"), _PARTS, _NAMES.index("Image"))
"""Hidden one after the other until the rest fits: the first two follow from the other columns, and
the picture is in sight."""

_FILTER_CHARACTERS = 8
"""Least width of the last column, which gets what the others leave: its end is elided."""
_NUMBERS = (0, _KERNEL, _TRANSFERS, _TOTAL, _NAMES.index("Speed"))

_QUIET = (
    ("overlapped", "Done while “slabs” went by, at the same time as other stages."),
    (
        "not counted",
        "No part of a reported time: compiling is done once, its result is kept; a warm-up goes "
        "before repeats; kernels that were started too slowly to be measured are repeated.",
    ),
)
"""What is said of stages that are in no total."""

_BARS = Qt.ItemDataRole.UserRole
"""Role under which a cell keeps its bar: (part, from, to) with shares of its width."""


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
        self._shown: list[Run] = []
        self._build()
        self._show_list(None)

    def _build(self) -> None:
        self._title = ElidedLabel()  # the settings of a run can be longer than the panel is high
        self._title.setObjectName("timingTitle")
        self._total = QLabel()
        self._total.setObjectName("timingTotal")
        self._total.setWordWrap(True)
        self._total.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        font = self._total.font()
        font.setBold(True)
        self._total.setFont(font)
        self._stages = _tree("timingStages", "Stages of the run", ("Stage", "Time, ms", "Share"))
        self._stages.setItemDelegateForColumn(2, _Bar(self._stages))
        self._stages.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self._stages.header().setStretchLastSection(True)
        self._stages.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._line = TimeLine()
        self._views = QStackedWidget()
        self._views.setObjectName("timingViews")
        self._views.addWidget(self._stages)
        self._views.addWidget(self._line)
        switch = Switch()
        switch.setObjectName("timingShowLine")
        switch.setText("Time line")
        switch.setAccessibleName("Time line")
        switch.setToolTip("The stages of the run on a time axis, in place of the table")
        switch.setCheckable(True)
        switch.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        switch.toggled.connect(self._on_view)
        current = QWidget()
        column = QVBoxLayout(current)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._title)
        column.addWidget(self._total)
        column.addWidget(self._views, 1)
        column.addWidget(switch)

        self._list = _tree("timingRuns", "The last runs", _NAMES)
        self._list.installEventFilter(self)
        self._list.viewport().installEventFilter(self)
        self._list.setItemDelegateForColumn(_PARTS, _Bar(self._list))
        heading_item = self._list.headerItem()
        for column_number, (name, tip) in enumerate(_COLUMNS.items()):
            more = _BASELINE_HELP if column_number in _SPEED_UPS else ""
            heading_item.setToolTip(column_number, f"{tip}{more}")
            heading_item.setData(column_number, Qt.ItemDataRole.AccessibleTextRole, name)
        header = self._list.header()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)  # see `_fit_columns`
        header.setStretchLastSection(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setMinimumSectionSize(4 * self.fontMetrics().averageCharWidth())
        header.setSectionsClickable(True)
        header.setSortIndicator(0, Qt.SortOrder.DescendingOrder)
        header.sortIndicatorChanged.connect(lambda: self._show_list(self._selected()))
        for number in _NUMBERS:
            heading_item.setTextAlignment(number, _RIGHT)
        self._list.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self._list.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self._list.currentItemChanged.connect(lambda: self._show_run(self._selected()))
        self._list.itemActivated.connect(lambda: self._activate())
        tools = QHBoxLayout()
        for name, text, tip, action in (
            (
                "timingCompare",
                "Compare &with this run",
                "Make the level of the selected run the baseline of all runs that did the same "
                "work",
                self.compare_with_selected,
            ),
            ("timingCopy", "&Copy", "Copy the list as text, cells separated by tabs", self.copy),
            ("timingClear", "C&lear", "Forget all runs", self.clear),
        ):
            tools.addWidget(self._tool(name, text, tip, action))
        tools.addStretch(1)
        self._legend = Legend()
        tools.addWidget(self._legend)
        last = QWidget()
        column = QVBoxLayout(last)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._list, 1)
        column.addLayout(tools)

        self._splitter = QSplitter()
        self._splitter.setObjectName("timingSplitter")
        self._splitter.setChildrenCollapsible(False)
        self._splitter.addWidget(current)
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

    def add_result(self, result: Result) -> None:
        """Put a finished run into the list and show its stages."""
        self._show_list(self._runs.add(result))

    def compare_with_selected(self) -> None:
        """Make the selected run the baseline of its kind."""
        run = self._selected()
        if run is not None:
            self._runs.choose(run)
            self._show_list(run)

    def clear(self) -> None:
        """Forget all runs; the numbers go on."""
        self._runs.clear()
        self._show_list(None)

    def text(self) -> str:
        """Return the list as it is sorted, with its header, cells separated by tabs."""
        rows = [_NAMES, *map(self._texts, self._shown)]
        unsaid = (_PARTS, _OVER)  # a bar, and what both speed-ups say in full
        kept = ([c for n, c in enumerate(row) if n not in unsaid] for row in rows)
        return "\n".join("\t".join(row) for row in kept)

    def copy(self) -> None:
        """Put `text` on the clipboard."""
        QGuiApplication.clipboard().setText(self.text())

    def _selected(self) -> Run | None:
        place = self._list.currentIndex().row()
        return self._shown[place] if 0 <= place < len(self._shown) else None

    def _activate(self) -> None:
        run = self._selected()
        if run is not None and run.result is not None:
            self.resultActivated.emit(run.result)

    def _on_view(self, line: bool) -> None:
        """Show the time line, which gets as much room as the list, or the table of stages."""
        self._views.setCurrentWidget(self._line if line else self._stages)
        if line:
            half = sum(self._splitter.sizes()) // 2
            self._splitter.setSizes([max(half, self._splitter.sizes()[0]), half])

    def _show_list(self, selected: Run | None) -> None:
        header = self._list.header()
        column = header.sortIndicatorSection()
        down = header.sortIndicatorOrder() is Qt.SortOrder.DescendingOrder
        self._shown = sorted(self._runs, key=lambda run: self._sort_key(run, column), reverse=down)
        blocked = self._list.blockSignals(True)
        self._list.clear()
        for number, name in enumerate(_NAMES):  # Qt's own mark takes room in every heading
            mark = (" ▾" if down else " ▴") if number == column else ""
            heading = (
                name.replace(" of ", "\nof ").replace(" ms", "\nms").replace(" with", "\nwith")
            )
            self._list.headerItem().setText(number, heading + mark)
        for run in self._shown:
            item = self._item(run)
            self._list.addTopLevelItem(item)
            if run is selected:
                self._list.setCurrentItem(item)
        self._list.blockSignals(blocked)
        self._fit_columns()
        self._show_run(selected)

    def _fit_columns(self) -> None:
        """Give every column what it holds, the last one the rest; hide spare ones for lack of room.

        What is hidden depends on the width of the list alone, as if it always had a vertical scroll
        bar: that comes and goes with a horizontal one, which comes and goes with the columns. Qt's
        own way to size columns leaves the last one too wide where a scroll bar appears later.
        """
        header, metrics = self._list.header(), self.fontMetrics()
        for column in _SPARE:
            self._list.setColumnHidden(column, False)  # what is hidden has no width to ask for
        widths = [
            max(self._list.sizeHintForColumn(n), header.sectionSizeHint(n))
            for n in range(len(_NAMES))
        ]
        widths[_PARTS] = max(widths[_PARTS], 6 * metrics.averageCharWidth())
        least = _FILTER_CHARACTERS * metrics.averageCharWidth()
        widths[_FILTER] = max(header.sectionSizeHint(_FILTER), least)
        bar = self._list.verticalScrollBar().sizeHint().width()
        room = self._list.width() - 2 * self._list.frameWidth() - bar
        shown = dict(enumerate(widths))
        for column in _SPARE:
            if sum(shown.values()) > room:
                del shown[column]
        for column in _SPARE:
            self._list.setColumnHidden(column, column not in shown)
        shown[_FILTER] += max(0, self._list.viewport().width() - sum(shown.values()))
        for column, width in shown.items():
            header.resizeSection(column, width)
        self._legend.setVisible(_PARTS in shown)

    def _sort_key(self, run: Run, column: int) -> Any:
        """Return what a run is sorted by; of equals the newer is the larger."""
        gain = self._runs.speed_up(run, _SPEED_UPS.get(column, TOTAL))
        keys: dict[int, Any] = {
            0: run.number,
            _KERNEL: run.kernel,
            _TRANSFERS: sum(run.transfers.values()),
            _TOTAL: run.seconds,
            _PARTS: run.seconds,
            _REPEATS: self._runs.series(run).count,
            _NAMES.index("Speed"): run.speed,
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
        for column in range(len(_NAMES)):
            item.setToolTip(column, self._tip(run, column))
            if column in _NUMBERS:
                item.setTextAlignment(column, _RIGHT)
        quiet, bold = quiet_text(self.palette()), self._list.font()
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
        item.setData(_PARTS, _BARS, _end_to_end(shares))
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
        shown = "Double-click to see its images again." if run.result else "Its images are gone."
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

    def _show_run(self, run: Run | None) -> None:
        """Show the stages of `run`."""
        for name in ("timingCompareAction", "timingCopyAction", "timingClearAction"):
            action = self.findChild(QAction, name)
            assert action is not None
            action.setEnabled(run is not None)
            if name == "timingCompareAction":
                action.setEnabled(run is not None and self._can_be_baseline(run))
        self._stages.clear()
        self._line.show_stages(run.stages if run is not None else ())
        if run is None:
            self._title.set_full_text("No run yet.")
            self._total.clear()
            return
        self._title.set_full_text(f"Run {run.number}: {run.where}, {run.settings}")
        total = f"{duration(run.seconds)}, {run.speed:,.1f} {run.unit}"
        self._total.setText("\n".join((total, *_rates(run.metrics))))
        counted = added_up(stage for stage in run.stages if stage.counted)
        for name, seconds in counted.items():
            share = seconds / max(run.seconds, 1e-9)
            item = self._add_stage(name, seconds, f"{share:.0%}")
            item.setData(2, _BARS, _end_to_end([(part_of(name), share)]))
            same = [stage for stage in run.stages if stage.name == name]
            if len(same) == 1 and same[0].repeats:
                item.setToolTip(1, Spread(same[0].repeats).describe())
            kernels = [kernel for stage in same for kernel in stage.kernels]
            for kernel in kernels_added_up(kernels) if len(kernels) > 1 else ():
                self._add_stage(f"    {kernel.name}", kernel.seconds, "", as_is=True)
        quiet = [stage for stage in run.stages if not stage.counted]
        for overlapped, (word, tip) in zip((True, False), _QUIET, strict=True):
            alike = (stage for stage in quiet if stage.overlapped is overlapped)
            for name, seconds in added_up(alike).items():
                item = self._add_stage(name, seconds, word)
                for column in range(3):
                    item.setForeground(column, quiet_text(self.palette()))
                    item.setToolTip(column, tip)

    def _can_be_baseline(self, run: Run) -> bool:
        """Tell whether choosing `run` as the baseline would change anything."""
        return run.warm and self._runs.has_others(run) and not self._runs.is_baseline(run)

    def _add_stage(
        self, name: str, seconds: float, share: str, *, as_is: bool = False
    ) -> QTreeWidgetItem:
        title = name if as_is else name.capitalize()
        item = QTreeWidgetItem([title, milliseconds(seconds), share])
        item.setTextAlignment(1, _RIGHT)
        self._stages.addTopLevelItem(item)
        return item

    def minimumSizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(45 * metrics.averageCharWidth(), 10 * metrics.height())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._show_run(self._selected())
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._fit_columns()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """In the list Ctrl+C copies it, although the window has a shortcut for that key."""
        if watched is self._list.viewport():
            if event.type() == QEvent.Type.Resize:
                self._fit_columns()
            return False
        if (
            isinstance(event, QKeyEvent)
            and event.type() in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress)
            and event.matches(QKeySequence.StandardKey.Copy)
        ):
            event.accept()
            if event.type() == QEvent.Type.KeyPress:
                self.copy()
            return True
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Stages stand beside the list where there is room, above it elsewhere."""
        super().resizeEvent(event)
        enough = 75 * self.fontMetrics().averageCharWidth()
        wide = self.width() > max(enough, self.height())
        self._splitter.setOrientation(
            Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical
        )


_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter

_FIRST_HELP = (
    "The first run of this work at this level: caches, memory and compiled code were not ready.\n"
    "It is compared with nothing. Run it again to measure it."
)


def _end_to_end(shares: Iterable[tuple[str, float]]) -> list[tuple[str, float, float]]:
    """Return bars that follow each other: the part, from where and to where."""
    bars, start = [], 0.0
    for part, share in shares:
        bars.append((part, start, start + share))
        start += share
    return bars


def _carried(run: Run) -> str:
    """Return what was carried to the card and back, in words."""
    if not run.transfers:
        return "Nothing was carried: the CPU reads the picture where it lies."
    lines = [f"{name.capitalize()}: {milliseconds(t)} ms" for name, t in run.transfers.items()]
    if "upload" not in run.transfers:
        lines.append("No upload: the picture was on the card already.")
    if run.overlapped:
        lines.append("In part while kernels ran: the total has less of it.")
    return "\n".join(lines)


def _rates(metrics: Iterable[Metric]) -> list[str]:
    """Return a line on the kernel's throughput, where it was measured.

    Four digits and 100% have to fit beside the list of runs: a second line costs a stage.
    """
    values = {metric.name: metric.value for metric in metrics}
    effective, copy = values.get("effective rate"), values.get("copy rate")
    if effective is None:
        return []
    share = f", {effective / copy:.0%} of copy rate" if copy else ""
    rate = effective / 1e9
    return [f"Kernel {rate:,.{0 if rate >= 100 else 1}f} GB/s{share}"]


def _tree(name: str, accessible_name: str, columns: tuple[str, ...]) -> QTreeWidget:
    tree = QTreeWidget()
    tree.setObjectName(name)
    tree.setAccessibleName(accessible_name)
    tree.setHeaderLabels(list(columns))
    tree.setRootIsDecorated(False)
    tree.setUniformRowHeights(True)
    tree.setAllColumnsShowFocus(True)
    tree.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    return tree


class _Bar(QStyledItemDelegate):
    """Draws bars after the text, in the colours of the parts."""

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        super().paint(painter, option, index)  # a selected line has a ground
        room = option.fontMetrics.horizontalAdvance("100%  ") if index.data() else 0
        area = option.rect.adjusted(1 + room, 2, -1, -2)
        for part, start, stop in index.data(_BARS) or ():
            left = round(area.width() * start)
            width = max(round(area.width() * stop) - left, 1 if stop > start else 0)
            bar = QRect(area.left() + left, area.top(), width, area.height())
            painter.fillRect(bar, part_colour(part, option.palette))
