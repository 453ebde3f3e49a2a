"""How long the selected run took, stage by stage: as a table and on a time axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QHelpEvent, QPainter, QPaintEvent, QPalette, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QLayout,
    QToolTip,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from kernelscope.base.durations import unit_of
from kernelscope.base.text import significant
from kernelscope.engine.timing import Metric, Stage
from kernelscope.engine.timing import added_up as kernels_added_up
from kernelscope.gui.docks.bars import BARS, BarDelegate, end_to_end, part_colour
from kernelscope.gui.model.runs import Run, added_up, part_of
from kernelscope.gui.model.times import WHY_NOT_TIMED, Spread, duration
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.parts import (
    RIGHT,
    ElidedLabel,
    as_table,
    dressed,
    in_column,
    switch,
    text_label,
    tool_splitter,
)
from kernelscope.gui.widgets.tables import FigureDelegate
from kernelscope.gui.widgets.theme import quiet_text

_BREAK = 0.08
"""Share of the width that a stage takes which is in no total: compiling takes 1000 times as long
as all others."""


@dataclass(frozen=True)
class Stretch:
    # As on the clock, from the start of the run.
    start: float
    seconds: float


@dataclass(frozen=True)
class TimeLane:
    """A line of the drawing: a stage, or one of its kernels, on one device."""

    name: str
    part: str
    bars: tuple[Stretch, ...]
    seconds: float  # the reported time of the stage
    counted: bool  # false for stages that are in no total
    inner: bool = False  # a kernel of the stage in the lane above
    note: str = ""  # a remark on the bars; may be empty


def lanes(stages: Sequence[Stage]) -> list[TimeLane]:
    """Return a lane for each stage on each device, and below it one for each of its kernels."""
    found: list[TimeLane] = []
    for name in dict.fromkeys(stage.name for stage in stages):
        alike = [stage for stage in stages if stage.name == name]
        counted = any(stage.counted or stage.overlapped for stage in alike)
        pieces = [part for stage in alike for part in stage.parts]
        seconds = sum(stage.seconds for stage in alike)
        title, part = name.capitalize(), part_of(name)
        devices = sorted({piece.device for piece in pieces})
        for device in devices:
            bars = tuple(Stretch(p.start, p.seconds) for p in pieces if p.device == device)
            own = sum(bar.seconds for bar in bars)
            label = f"{title}, GPU {device}" if len(devices) > 1 else title
            found.append(TimeLane(label, part, bars, own, counted))
        if not pieces:
            bars = tuple(Stretch(stage.start, stage.seconds) for stage in alike)
            repeats = max(len(stage.repeats) for stage in alike)
            note = f"the median of {repeats} repeats, drawn once" if repeats > 1 else ""
            found.append(TimeLane(title, part, bars, seconds, counted, note=note))
        found += _kernels(alike, part, counted)
    return found


def _kernels(stages: Sequence[Stage], part: str, counted: bool) -> list[TimeLane]:
    """Return lanes of several kernels, one after the other: when each launch began is not kept."""
    bars: dict[str, list[Stretch]] = {}
    for stage in stages:
        start = stage.start
        for kernel in stage.kernels if len(stage.kernels) > 1 else ():
            bars.setdefault(kernel.name, []).append(Stretch(start, kernel.seconds))
            start += kernel.seconds
    note = "all launches of this kernel, as if one after the other"
    return [
        TimeLane(name, part, tuple(each), sum(bar.seconds for bar in each), counted, True, note)
        for name, each in bars.items()
    ]


class RunAxis:
    """Seconds to places from 0 to 1; stages that are in no total are cut short by `_BREAK`."""

    def __init__(self, found: Sequence[TimeLane]) -> None:
        ends = [bar.start + bar.seconds for lane in found for bar in lane.bars]
        self.end = max(ends, default=0.0)
        quiet = [bar for lane in found if not lane.counted for bar in lane.bars]
        shown = self.end - sum(bar.seconds for bar in quiet)
        self.cuts = sorted(
            ((bar.start, bar.start + bar.seconds) for bar in quiet if bar.seconds > 0.25 * shown),
        )
        rest = self.end - sum(stop - start for start, stop in self.cuts)
        self._scale = (1 - _BREAK * len(self.cuts)) / max(rest, 1e-12)

    def place(self, seconds: float) -> float:
        at = seconds * self._scale
        for start, stop in self.cuts:
            gone = min(max(seconds - start, 0.0), stop - start)
            at += _BREAK * gone / (stop - start) - gone * self._scale
        return at

    def ticks(self) -> list[tuple[float, str]]:
        """Return marks and their texts, none of them where time is cut short."""
        whole = self.end - sum(stop - start for start, stop in self.cuts)
        if not whole:
            return []
        step = 10.0 ** math.floor(math.log10(whole / 2))
        # A half, since the logarithm of 99.99999999999999 is rounded to 2.
        step *= next(factor for factor in (5, 2, 1, 0.5) if whole / (factor * step) >= 2)
        marks = []
        begin = 0.0
        for start, stop in (*self.cuts, (self.end, self.end)):
            first, last = math.ceil(begin / step), math.floor(start / step + 1e-9)
            marks += [number * step for number in range(first, last + 1)]
            begin = stop
        unit, size = unit_of(whole)  # that of the stages in view, also behind seconds of compiling
        digits = max(0, -math.floor(math.log10(step / size) + 1e-9))
        return [(moment, f"{moment / size:,.{digits}f} {unit}") for moment in marks]


class TimeLine(QAbstractScrollArea):
    """Draws the stages of a run; the keyboard scrolls, tooltips have the numbers."""

    def __init__(self) -> None:
        super().__init__()
        dressed(self, "timingLine", "Time line of the run")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.lanes: list[TimeLane] = []
        self.axis = RunAxis([])  # from moments to places, of the lanes as drawn

    def show_stages(self, stages: Sequence[Stage]) -> None:
        self.lanes = lanes(stages)
        self.axis = RunAxis(self.lanes)
        self.setAccessibleDescription("; ".join(map(_describe, self.lanes)))
        self._fit()
        self.viewport().update()

    def lane_at(self, y: float) -> TimeLane | None:
        number = int((y + self.verticalScrollBar().value()) // self.row_height())
        return self.lanes[number] if 0 <= number < len(self.lanes) else None

    def bar_rect(self, lane: TimeLane, bar: Stretch) -> QRectF:
        left, right = self._span()
        start = left + self.axis.place(bar.start) * (right - left)
        stop = left + self.axis.place(bar.start + bar.seconds) * (right - left)
        row, top = self.row_height(), self.lanes.index(lane) * self.row_height()
        top -= self.verticalScrollBar().value()
        inset = 0.3 if lane.inner else 0.18
        return QRectF(start, top + inset * row, max(stop - start, 1.5), (1 - 2 * inset) * row)

    def row_height(self) -> int:
        return self.fontMetrics().height() + 3

    def _span(self) -> tuple[float, float]:
        """Return the left and the right end of the axis: names before it, numbers behind."""
        metrics = self.fontMetrics()
        names = [_indent(lane) + metrics.horizontalAdvance(lane.name) for lane in self.lanes]
        texts = [metrics.horizontalAdvance(duration(lane.seconds)) for lane in self.lanes]
        left = 6 + max(names, default=0) + 8
        right = self.viewport().width() - max(texts, default=0) - 14
        return left, max(right, left + 20)

    def _fit(self) -> None:
        room = self.viewport().height() - self.row_height()
        bar = self.verticalScrollBar()
        bar.setRange(0, max(0, len(self.lanes) * self.row_height() - room))
        bar.setSingleStep(self.row_height())
        bar.setPageStep(max(room, 1))

    def sizeHint(self) -> QSize:
        return QSize(400, (max(len(self.lanes), 5) + 1) * self.row_height())

    def resizeEvent(self, event: object) -> None:
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        palette, metrics = self.palette(), self.fontMetrics()
        text, quiet = palette.color(QPalette.ColorRole.Text), theme.quiet_text(palette)
        left, right = self._span()
        foot = self.viewport().height() - self.row_height()
        grid = QPen(quiet)
        grid.setStyle(Qt.PenStyle.DotLine)
        last = -1e9
        for moment, name in self.axis.ticks() if self.lanes else ():
            x = left + self.axis.place(moment) * (right - left)
            painter.setPen(grid)
            painter.drawLine(QPointF(x, 0), QPointF(x, foot))
            width = metrics.horizontalAdvance(name)
            if x - width / 2 > last + 6 and x + width / 2 < self.viewport().width():
                painter.setPen(quiet)
                area = QRectF(x - width / 2, foot, width + 1, self.row_height())
                painter.drawText(area, Qt.AlignmentFlag.AlignCenter, name)
                last = x + width / 2
        painter.setClipRect(QRectF(0, 0, self.viewport().width(), foot))
        for number, lane in enumerate(self.lanes):
            top = number * self.row_height() - self.verticalScrollBar().value()
            painter.setPen(text if lane.counted else quiet)
            name_area = QRectF(6 + _indent(lane), top, left, self.row_height())
            painter.drawText(name_area, Qt.AlignmentFlag.AlignVCenter, lane.name)
            colour = part_colour(lane.part, palette)
            if not lane.counted:
                colour.setAlpha(110)
            for bar in lane.bars:
                painter.fillRect(self.bar_rect(lane, bar), colour)
            time_area = QRectF(
                right + 4, top, self.viewport().width() - right - 10, self.row_height()
            )
            alignment = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
            painter.drawText(time_area, alignment, duration(lane.seconds))
        for start, stop in self.axis.cuts:
            self._draw_cut(painter, left + self.axis.place((start + stop) / 2) * (right - left))

    def _draw_cut(self, painter: QPainter, x: float) -> None:
        foot = self.viewport().height() - self.row_height()
        painter.fillRect(QRectF(x - 2, 0, 4, foot), self.palette().color(QPalette.ColorRole.Base))
        painter.setPen(theme.quiet_text(self.palette()))
        for shift in (-2, 2):
            painter.drawLine(QPointF(x + shift, 0), QPointF(x + shift, foot))

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            lane = self.lane_at(event.pos().y())
            QToolTip.showText(event.globalPos(), _describe(lane) if lane else "", self)
            return True
        return super().viewportEvent(event)


def _indent(lane: TimeLane) -> int:
    return 12 if lane.inner else 0


def _describe(lane: TimeLane) -> str:
    start = min(bar.start for bar in lane.bars)
    parts = [f"{lane.name}: {duration(lane.seconds)}", f"from {duration(max(start, 0.0))}"]
    if len(lane.bars) > 1:
        parts.append(f"{len(lane.bars)} pieces")
    if not lane.counted:
        parts.append("in no total")
    if lane.note:
        parts.append(lane.note)
    return ", ".join(parts)


_WIDE = 80  # characters from which on the table and the time line have room beside each other

_QUIET = (
    ("overlapped", "Part of “slabs”, at the same time as other stages."),
    (
        "not counted",
        "No part of a reported time: compiling is done once, its result is kept; a warm-up goes "
        "before repeats; kernels that were started too slowly to be measured are repeated.",
    ),
)
"""Word and tooltip of stages that are in no total."""


_UPPER_BOUND = (
    "At most: the GPU may have waited for the computer to start the kernel. "
    "Run measures it exactly."
)


class TimingPanel(QWidget):
    """Title, total and stages of a run: a table, and beside it the time line if there is room."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("timingPanel")
        self._run: Run | None = None
        # The settings of a run can be longer than the panel is high.
        self._title = dressed(ElidedLabel(), "timingTitle")
        self._total = text_label("", "timingTotal")
        self._total.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        font = self._total.font()
        font.setBold(True)
        self._total.setFont(font)
        headings = "Stage", "Time", "Share"
        self._stages = as_table(
            QTreeWidget(), "timingStages", "Stages of the run", headings, right=(1,)
        )
        self._stages.setItemDelegateForColumn(1, FigureDelegate(self._stages))
        self._stages.setItemDelegateForColumn(2, BarDelegate(self._stages))
        self._stages.header().setStretchLastSection(True)
        self._stages.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._line = TimeLine()
        sides = self._stages, self._line
        self._views = tool_splitter(*sides, name="timingViews", sizes=(400, 600))
        self._switch = switch(
            "Time line",
            "timingShowLine",
            tip="The stages of the run on a time axis, in place of the table",
        )
        self._switch.toggled.connect(self._arrange)
        parts = self._title, self._total, (self._views, 1), self._switch
        layout = in_column(*parts, of=self, margins=(4, 2, 4, 2))
        layout.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)  # see `minimumSizeHint`
        self.show_run(None)

    def show_run(self, run: Run | None) -> None:
        self._run = run
        self._stages.clear()
        self._line.show_stages(run.stages if run is not None else ())
        if run is None:
            self._title.set_full_text("No run yet.")
            self._total.clear()
            return
        self._title.set_full_text(f"Run {run.number}: {run.where}, {run.settings}")
        if run.seconds is None:
            self._total.setText(WHY_NOT_TIMED)
            return
        assert run.speed is not None
        total = f"{run.totals.describe()}, {significant(run.speed)} {run.unit}"
        if len(run.totals.times) == 1:
            total = f"{total}, {run.measurement}"
        self._total.setText("\n".join((total, *_rates(run.metrics))))
        counted = added_up(stage for stage in run.stages if stage.counted)
        for name, seconds in counted.items():
            share = seconds / max(run.seconds, 1e-9)
            item = self._add_stage(name, seconds, f"{100 * share:.0f} %")
            item.setData(2, BARS, end_to_end([(part_of(name), share)]))
            same = [stage for stage in run.stages if stage.name == name]
            if len(same) == 1 and same[0].repeats:
                item.setToolTip(1, Spread(same[0].repeats).describe())
            elif any(stage.is_upper_bound for stage in same):
                item.setText(1, f"≤ {duration(seconds)}")
                item.setToolTip(1, _UPPER_BOUND)
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

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def minimumSizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(45 * metrics.averageCharWidth(), 6 * metrics.height())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.show_run(self._run)
        elif event.type() == QEvent.Type.FontChange and self.layout() is not None:
            self._arrange()

    def _arrange(self) -> None:
        """Show table and time line beside each other, or one of them where there is no room."""
        wide = self.width() >= _WIDE * self.fontMetrics().averageCharWidth()
        self._switch.setVisible(not wide)
        self._line.setVisible(wide or self._switch.isChecked())
        self._stages.setVisible(wide or not self._switch.isChecked())

    def _add_stage(
        self, name: str, seconds: float, share: str, *, as_is: bool = False
    ) -> QTreeWidgetItem:
        title = name if as_is else name.capitalize()
        item = QTreeWidgetItem([title, duration(seconds), share])
        item.setTextAlignment(1, RIGHT)
        self._stages.addTopLevelItem(item)
        return item


def _rates(metrics: Iterable[Metric]) -> list[str]:
    """Return the kernel's throughput on one line: a second one would cost a stage."""
    values = {metric.name: metric.value for metric in metrics}
    effective, copy = values.get("effective rate"), values.get("copy rate")
    if effective is None:
        return []
    share = f", {100 * effective / copy:.0f} % of copy rate" if copy else ""
    rate = effective / 1e9
    return [f"Kernel {rate:,.{0 if rate >= 100 else 1}f} GB/s{share}"]
