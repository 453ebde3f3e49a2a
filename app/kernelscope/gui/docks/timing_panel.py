"""How long the selected run took, stage by stage, and when each stage ran."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QLayout, QTreeWidget, QTreeWidgetItem, QWidget

from kernelscope.base.durations import unit_of
from kernelscope.base.text import significant
from kernelscope.engine.timing import Metric, Stage
from kernelscope.gui.docks.bars import part_colour
from kernelscope.gui.model.runs import Run, part_of
from kernelscope.gui.model.times import WHY_NOT_TIMED, Spread, duration
from kernelscope.gui.widgets.appearance import stylist
from kernelscope.gui.widgets.parts import (
    RIGHT,
    ElidedLabel,
    as_table,
    dressed,
    in_column,
    text_label,
)
from kernelscope.gui.widgets.tables import BARS, BarDelegate, FigureDelegate
from kernelscope.gui.widgets.theme import quiet_text

_BREAK = 0.08
"""Share of the width that a stage takes which is in no total: compiling takes 1000 times as long
as all others."""

_UPPER_BOUND = (
    "At most: the GPU may have waited for the computer to start the kernel. "
    "Run measures it exactly."
)

_IN_NO_TOTAL = {
    "overlapped": "Part of “slabs”, at the same time as other stages.",
    "not counted": "No part of a reported time: compiling is done once, its result is kept; a "
    "warm-up goes before repeats; kernels that were started too slowly to be measured are "
    "repeated. Its bar is cut short where it is much longer than the others.",
}
"""Words for stages that are in no total, and their tooltips."""


@dataclass(frozen=True)
class TimeLane:
    """A row: a stage, the share of one device in it, or one of its kernels."""

    name: str
    part: str
    bars: tuple[tuple[float, float], ...]  # starts and ends on the clock of the run
    seconds: float  # the reported time
    word: str = ""  # why it is in no total; see `_IN_NO_TOTAL`
    inner: bool = False  # of the stage above
    note: str = ""  # a remark on the bars
    bound: str = ""  # before the time
    spread: str = ""  # a remark on the time

    def describe(self) -> str:
        parts = [f"{self.name}: {duration(self.seconds)}", f"from {duration(self.start)}"]
        if len(self.bars) > 1:
            parts.append(f"{len(self.bars)} pieces")
        return ", ".join(filter(None, (*parts, self.word, self.note)))

    @property
    def start(self) -> float:
        return max(0.0, min(start for start, _ in self.bars))


def lanes(stages: Sequence[Stage]) -> list[TimeLane]:
    """Return a lane for each stage, those in no total last, and below it one for each kernel."""
    found: list[TimeLane] = []
    for word in ("", *_IN_NO_TOTAL):
        own = [stage for stage in stages if _word(stage) == word]
        for name in dict.fromkeys(stage.name for stage in own):
            found += _lanes_of([stage for stage in own if stage.name == name], word)
    return found


def _word(stage: Stage) -> str:
    return "" if stage.counted else "overlapped" if stage.overlapped else "not counted"


def _lanes_of(alike: Sequence[Stage], word: str) -> list[TimeLane]:
    """Return the lane of stages with one name, and those of its devices and kernels."""
    first, part = alike[0], part_of(alike[0].name)
    pieces = sorted((p for stage in alike for p in stage.parts), key=lambda piece: piece.device)
    bars = [(each.start, each.start + each.seconds) for each in pieces or alike]
    note = spread = ""
    if (count := max(len(stage.repeats) for stage in alike)) > 1:
        note = f"the median of {count} repeats, drawn once"
        spread = Spread(first.repeats).describe() if len(alike) == 1 else ""
    bound = any(stage.is_upper_bound for stage in alike) and not spread
    stage = TimeLane(
        name=first.name.capitalize(),
        part=part,
        bars=tuple(bars),
        seconds=sum(each.seconds for each in alike),
        word=word,
        note=note,
        bound="≤ " if bound else "",
        spread=_UPPER_BOUND if bound else spread,
    )
    found = [stage]
    devices = {device: list(each) for device, each in groupby(pieces, lambda p: p.device)}
    for device, own in devices.items() if len(devices) > 1 else ():
        ends = tuple((each.start, each.start + each.seconds) for each in own)
        seconds = sum(each.seconds for each in own)
        found.append(TimeLane(f"GPU {device}", part, ends, seconds, word, inner=True))
    return found + _kernels(alike, part, word)


def _kernels(stages: Sequence[Stage], part: str, word: str) -> list[TimeLane]:
    """Return lanes of several kernels, one after the other: when each launch began is not kept."""
    bars: dict[str, list[tuple[float, float]]] = {}
    for stage in stages:
        start = stage.start
        for kernel in stage.kernels if len(stage.kernels) > 1 else ():
            bars.setdefault(kernel.name, []).append((start, start + kernel.seconds))
            start += kernel.seconds
    note = "all launches of this kernel, as if one after the other"
    return [
        TimeLane(name, part, tuple(each), sum(b - a for a, b in each), word, True, note)
        for name, each in bars.items()
    ]


class RunAxis:
    """Seconds to places from 0 to 1; stages that are not counted are cut short by `_BREAK`."""

    def __init__(self, found: Sequence[TimeLane]) -> None:
        ends = [stop for lane in found for _, stop in lane.bars]
        quiet = [bar for lane in found if lane.word == "not counted" for bar in lane.bars]
        shown = max(ends, default=0.0) - sum(stop - start for start, stop in quiet)
        self._cuts = sorted(bar for bar in quiet if bar[1] - bar[0] > 0.25 * shown)
        rest = max(ends, default=0.0) - sum(stop - start for start, stop in self._cuts)
        self._scale = (1 - _BREAK * len(self._cuts)) / max(rest, 1e-12)

    def place(self, seconds: float) -> float:
        at = seconds * self._scale
        for start, stop in self._cuts:
            gone = min(max(seconds - start, 0.0), stop - start)
            at += _BREAK * gone / (stop - start) - gone * self._scale
        return at


class TimingPanel(QWidget):
    """Title, total and stages of a run, each with a bar on the clock of the run."""

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
        headings = "Stage", "Time", "Share", "Start", "Time line"
        self._stages = as_table(
            QTreeWidget(), "timingStages", "Stages of the run", headings, right=(1, 3)
        )
        for column in (1, 3):
            self._stages.setItemDelegateForColumn(column, FigureDelegate(self._stages))
        self._stages.setItemDelegateForColumn(4, BarDelegate(self._stages))
        self._stages.header().setStretchLastSection(True)
        parts = self._title, self._total, (self._stages, 1)
        layout = in_column(*parts, of=self, margins=(4, 2, 4, 2))
        layout.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)  # see `minimumSizeHint`
        self.show_run(None)
        stylist().restyled.connect(self._restyle)

    def _restyle(self) -> None:
        self.show_run(self._run)

    def show_run(self, run: Run | None) -> None:
        self._run = run
        self._stages.clear()
        found = lanes(run.stages) if run is not None else []
        self._stages.setAccessibleDescription("; ".join(lane.describe() for lane in found))
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
        axis = RunAxis(found)
        for lane in found:
            self._add(lane, axis, run.seconds)

    def _add(self, lane: TimeLane, axis: RunAxis, total: float) -> None:
        name = f"    {lane.name}" if lane.inner else lane.name
        share = lane.word or f"{100 * lane.seconds / max(total, 1e-9):.0f} %"
        item = QTreeWidgetItem(
            [
                *(name, f"{lane.bound}{duration(lane.seconds)}"),
                *("" if lane.inner else share, _moment(lane.start, total)),
            ]
        )
        for column in (1, 3):
            item.setTextAlignment(column, RIGHT)
        fill = part_colour(lane.part, self.palette())
        bars = [(fill, axis.place(start), axis.place(stop)) for start, stop in lane.bars]
        item.setData(4, BARS, bars)
        item.setToolTip(1, lane.spread)
        item.setToolTip(4, lane.describe())
        for column in range(4) if lane.word else ():
            item.setForeground(column, quiet_text(self.palette()))
            item.setToolTip(column, _IN_NO_TOTAL[lane.word])
        self._stages.addTopLevelItem(item)

    def minimumSizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(45 * metrics.averageCharWidth(), 6 * metrics.height())


def _moment(seconds: float, total: float) -> str:
    """Return a moment with the unit and the decimals of the total, also after long compiling."""
    unit, size = unit_of(total)
    decimals = max(0, 2 - math.floor(math.log10(max(total, 1e-9) / size)))
    return f"{seconds / size:,.{decimals}f} {unit}"


def _rates(metrics: Iterable[Metric]) -> list[str]:
    """Return the kernel's throughput on one line: a second one would cost a stage."""
    values = {metric.name: metric.value for metric in metrics}
    effective, copy = values.get("effective rate"), values.get("copy rate")
    if effective is None:
        return []
    share = f", {100 * effective / copy:.0f} % of copy rate" if copy else ""
    rate = effective / 1e9
    return [f"Kernel {rate:,.{0 if rate >= 100 else 1}f} GB/s{share}"]
