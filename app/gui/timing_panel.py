"""How long the current run took, stage by stage, and how it compares with the last ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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
    QPalette,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QSplitter,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app import filters
from app.engine.image import Image
from app.engine.request import Result
from app.engine.scan import Scan
from app.engine.timing import Metric, Stage
from app.filters.spec import CPU_LEVELS
from app.gui.elided_label import ElidedLabel
from app.gui.theme import quiet_text

MAX_RUNS = 100

KEPT_RESULTS = 10
"""Runs whose images are kept; older ones keep their timings only."""

KEPT_BYTES = 512 << 20
"""Most pixels to keep alive in those images."""

_COLUMNS = ("No.", "Level", "Total, ms", "Speed-up", "MP/s", "Device", "Filter", "Image")
"""What is compared comes first: a narrow window cuts off the end."""

_NUMBERS = tuple(_COLUMNS.index(name) for name in ("No.", "Total, ms", "Speed-up", "MP/s"))
_SPEED_UP = _COLUMNS.index("Speed-up")
_SPEED_UP_HELP = (
    "Total time of the baseline divided by the total time of this run.\n"
    "Only runs that did the same work are compared: same filter and settings, same size and "
    "kind of image. The first of them is the baseline until you choose another."
)

_QUIET = (
    ("overlapped", "Done while “slabs” went by, at the same time as other stages."),
    ("not counted", "No part of a reported time: compiling is done once, its result is kept."),
)
"""What is said of stages that are in no total."""

_LEVEL_NAMES = {level.id: level.name for level in (*CPU_LEVELS, *filters.gpu_levels().values())}

_SHARE = Qt.ItemDataRole.UserRole
"""Role under which a cell keeps the fraction that its bar shows."""


@dataclass(eq=False)
class Run:
    """What the list keeps of a result."""

    number: int
    settings: str
    size: str
    mode: str
    unit: str
    device: str
    level: str
    stages: tuple[Stage, ...]
    metrics: tuple[Metric, ...]
    seconds: float
    speed: float
    work: tuple[Any, ...]
    """Equal for runs whose times can be compared."""
    result: Result | None

    @classmethod
    def of(cls, number: int, result: Result) -> Run:
        request = result.request
        source = request.source
        size, mode = _size_and_mode(source)
        return cls(
            number=number,
            settings=result.settings,
            size=size,
            mode=mode,
            unit=result.speed_unit,
            device=result.device.upper(),
            level=_LEVEL_NAMES[result.level],
            stages=result.stages,
            metrics=result.metrics,
            seconds=result.seconds,
            speed=result.speed,
            work=(
                request.filter.id,
                tuple(sorted(request.parameters.items())),
                request.border,
                request.grey,
                source.pixels.shape,
                source.pixels.dtype,
            ),
            result=result,
        )

    def texts(self, baseline: Run) -> tuple[str, ...]:
        """Return the cells of this run's row."""
        ratio = baseline.seconds / max(self.seconds, 1e-9)
        speed_up = "baseline" if self is baseline else f"{ratio:.2f}×"
        return (
            str(self.number),
            self.level,
            f"{self.seconds * 1e3:.3f}",
            speed_up,
            f"{self.speed:.1f}",
            self.device,
            self.settings,
            self.size,
        )


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
        self._runs: list[Run] = []
        self._chosen: dict[tuple[Any, ...], Run] = {}
        self._count = 0
        self._build()
        self._show_run(None)

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
        current = QWidget()
        column = QVBoxLayout(current)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._title)
        column.addWidget(self._total)
        column.addWidget(self._stages, 1)

        self._list = _tree("timingRuns", "The last runs", _COLUMNS)
        self._list.installEventFilter(self)
        self._list.headerItem().setToolTip(_SPEED_UP, _SPEED_UP_HELP)
        self._list.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self._list.header().setStretchLastSection(False)
        self._list.header().setMaximumSectionSize(50 * self.fontMetrics().averageCharWidth())
        for number in _NUMBERS:
            self._list.headerItem().setTextAlignment(number, _RIGHT)
        self._list.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self._list.currentItemChanged.connect(lambda: self._show_run(self._selected()))
        self._list.itemActivated.connect(lambda: self._activate())
        tools = QHBoxLayout()
        for name, text, tip, action in (
            (
                "timingCompare",
                "Compare &with this run",
                "Make the selected run the baseline of all runs that did the same work",
                self.compare_with_selected,
            ),
            ("timingCopy", "&Copy", "Copy the list as text, cells separated by tabs", self.copy),
            ("timingClear", "C&lear", "Forget all runs", self.clear),
        ):
            tools.addWidget(self._tool(name, text, tip, action))
        tools.addStretch(1)
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
        layout = QVBoxLayout(self)
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
        """Put a finished run on top of the list and show its stages."""
        self._count += 1
        run = Run.of(self._count, result)
        self._runs.insert(0, run)
        if len(self._runs) > MAX_RUNS:
            baselines = self._baselines().values()
            others = [old for old in self._runs[1:] if old not in baselines]
            dropped = (others or self._runs)[-1]
            self._runs.remove(dropped)
            if self._chosen.get(dropped.work) is dropped:
                del self._chosen[dropped.work]
        self._drop_images()
        self._show_list(run)

    def compare_with_selected(self) -> None:
        """Make the selected run the baseline of its kind."""
        run = self._selected()
        if run is not None:
            self._chosen[run.work] = run
            self._show_list(run)

    def clear(self) -> None:
        """Forget all runs; the numbers go on."""
        self._runs.clear()
        self._chosen.clear()
        self._show_list(None)

    def text(self) -> str:
        """Return the list with its header, cells separated by tabs."""
        baselines = self._baselines()
        rows = [_COLUMNS, *(run.texts(baselines[run.work]) for run in self._runs)]
        return "\n".join("\t".join(row) for row in rows)

    def copy(self) -> None:
        """Put `text` on the clipboard."""
        QGuiApplication.clipboard().setText(self.text())

    def _baselines(self) -> dict[tuple[Any, ...], Run]:
        """Return the run to compare with for each kind of work."""
        first = {run.work: run for run in self._runs}  # the list is newest first
        return first | self._chosen

    def _drop_images(self) -> None:
        """Let go of the images of older runs; those of the newest one stay in any case."""
        pixels: dict[int, int] = {}
        for place, run in enumerate(self._runs):
            if run.result is None:
                continue
            for image in (run.result.request.source, run.result.output):
                pixels |= _pixels_of(image)
            if place >= KEPT_RESULTS or (place and sum(pixels.values()) > KEPT_BYTES):
                run.result = None

    def _selected(self) -> Run | None:
        place = self._list.currentIndex().row()
        return self._runs[place] if 0 <= place < len(self._runs) else None

    def _activate(self) -> None:
        run = self._selected()
        if run is not None and run.result is not None:
            self.resultActivated.emit(run.result)

    def _show_list(self, selected: Run | None) -> None:
        blocked = self._list.blockSignals(True)
        self._list.clear()
        baselines = self._baselines()
        for run in self._runs:
            item = QTreeWidgetItem(list(run.texts(baselines[run.work])))
            for column in range(len(_COLUMNS)):
                item.setToolTip(column, self._tip(run, column))
                if column in _NUMBERS:
                    item.setTextAlignment(column, _RIGHT)
            if run is baselines[run.work]:
                item.setForeground(_SPEED_UP, quiet_text(self.palette()))
            self._list.addTopLevelItem(item)
            if run is selected:
                self._list.setCurrentItem(item)
        self._list.blockSignals(blocked)
        self._show_run(selected)

    def _tip(self, run: Run, column: int) -> str:
        if column == _SPEED_UP:
            return _SPEED_UP_HELP
        shown = "Double-click to see its images again." if run.result else "Its images are gone."
        return f"{run.settings}\n{run.size}, {run.mode}\n{run.device} {run.level}\n{shown}"

    def _show_run(self, run: Run | None) -> None:
        """Show the stages of `run`."""
        for name in ("timingCompareAction", "timingCopyAction", "timingClearAction"):
            action = self.findChild(QAction, name)
            assert action is not None
            action.setEnabled(run is not None)
        self._stages.clear()
        if run is None:
            self._title.set_full_text("No run yet.")
            self._total.clear()
            return
        self._title.set_full_text(
            f"Run {run.number}: {run.device} {run.level.lower()}, {run.settings}"
        )
        total = f"{run.seconds * 1e3:.3f} ms, {run.speed:.1f} {run.unit}"
        self._total.setText("\n".join((total, *_rates(run.metrics))))
        counted = _added_up(stage for stage in run.stages if stage.counted)
        for name, seconds in counted.items():
            share = seconds / max(run.seconds, 1e-9)
            item = self._add_stage(name, seconds, f"{share:.0%}")
            item.setData(2, _SHARE, share)
            same = [stage for stage in run.stages if stage.name == name]
            if len(same) == 1 and same[0].repeats:
                item.setToolTip(1, _spread(same[0].repeats))
        quiet = [stage for stage in run.stages if not stage.counted]
        for overlapped, (word, tip) in zip((True, False), _QUIET, strict=True):
            alike = (stage for stage in quiet if stage.overlapped is overlapped)
            for name, seconds in _added_up(alike).items():
                item = self._add_stage(name, seconds, word)
                for column in range(3):
                    item.setForeground(column, quiet_text(self.palette()))
                    item.setToolTip(column, tip)

    def _add_stage(self, name: str, seconds: float, share: str) -> QTreeWidgetItem:
        item = QTreeWidgetItem([name.capitalize(), f"{seconds * 1e3:.3f}", share])
        item.setTextAlignment(1, _RIGHT)
        self._stages.addTopLevelItem(item)
        return item

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        metrics = self.fontMetrics()
        return QSize(45 * metrics.averageCharWidth(), 10 * metrics.height())

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._show_run(self._selected())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """In the list Ctrl+C copies it, although the window has a shortcut for that key."""
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

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Stages stand beside the list where there is room, above it elsewhere."""
        super().resizeEvent(event)
        enough = 75 * self.fontMetrics().averageCharWidth()
        wide = self.width() > max(enough, self.height())
        self._splitter.setOrientation(
            Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical
        )


_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


def _size_and_mode(source: Image | Scan) -> tuple[str, str]:
    """Return the size and the kind of what was filtered, in words."""
    if isinstance(source, Image):
        return f"{source.width}×{source.height}", source.mode
    first = source.volumes[0]
    size = f"{first.width}×{first.height}×{first.depth}"
    return size, source.describe_count()


def _pixels_of(image: Image | Scan) -> dict[int, int]:
    """Return the bytes of the arrays that an image or a scan keeps alive, by their identity."""
    return {id(array): array.nbytes for array in image.arrays()}


def _added_up(stages: Iterable[Stage]) -> dict[str, float]:
    """Return the seconds of each stage name, in order of first appearance."""
    seconds: dict[str, float] = {}
    for stage in stages:
        seconds[stage.name] = seconds.get(stage.name, 0.0) + stage.seconds
    return seconds


def _spread(repeats: tuple[float, ...]) -> str:
    """Return the number and the range of repeated times, in words."""
    least, most = 1e3 * min(repeats), 1e3 * max(repeats)
    return f"Median of {len(repeats)} runs, {least:.3f} to {most:.3f} ms"


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
    """Draws a bar behind the text, as long as the share of the total."""

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        share = index.data(_SHARE)
        if share is not None:
            area = option.rect.adjusted(1, 2, -1, -2)
            colour = option.palette.color(QPalette.ColorRole.Highlight)
            colour.setAlpha(128)
            painter.fillRect(
                QRect(area.topLeft(), QSize(round(area.width() * share), area.height())), colour
            )
        super().paint(painter, option, index)
