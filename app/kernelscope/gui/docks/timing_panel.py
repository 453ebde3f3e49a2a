"""How long the selected run took, stage by stage."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLayout, QTreeWidget, QTreeWidgetItem, QWidget

from kernelscope.base.text import significant
from kernelscope.engine.timing import Metric
from kernelscope.engine.timing import added_up as kernels_added_up
from kernelscope.gui.docks.bars import BARS, BarDelegate, end_to_end
from kernelscope.gui.docks.time_line import TimeLine
from kernelscope.gui.model.runs import Run, added_up, part_of
from kernelscope.gui.model.times import WHY_NOT_TIMED, Spread, duration
from kernelscope.gui.widgets.aligned import FigureDelegate
from kernelscope.gui.widgets.elided_label import ElidedLabel
from kernelscope.gui.widgets.parts import (
    RIGHT,
    as_table,
    dressed,
    in_column,
    switch,
    text_label,
    tool_splitter,
)
from kernelscope.gui.widgets.theme import quiet_text

_WIDE = 100  # characters from which on the table and the time line have room beside each other

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


class StageView(QWidget):
    """Title, total and stages of a run: a table, and beside it the time line if there is room."""

    def __init__(self) -> None:
        super().__init__()
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
        self._views = tool_splitter(*sides, name="timingViews", sizes=(350, 650))
        self._switch = switch(
            "Time line",
            "timingShowLine",
            tip="The stages of the run on a time axis, in place of the table",
        )
        self._switch.toggled.connect(self._arrange)
        in_column(self._title, self._total, (self._views, 1), self._switch, of=self, margins=0)

    def show_run(self, run: Run | None) -> None:
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
            item = self._add_stage(name, seconds, f"{share:.0%}")
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
    """Return a line on the kernel's throughput, where it was measured.

    Four digits and 100% have to fit next to the list of runs: a second line costs a stage.
    """
    values = {metric.name: metric.value for metric in metrics}
    effective, copy = values.get("effective rate"), values.get("copy rate")
    if effective is None:
        return []
    share = f", {effective / copy:.0%} of copy rate" if copy else ""
    rate = effective / 1e9
    return [f"Kernel {rate:,.{0 if rate >= 100 else 1}f} GB/s{share}"]


class TimingPanel(QWidget):
    """Shows the stages of a run as a table and on a time line."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("timingPanel")
        self._run: Run | None = None
        self._stages = StageView()
        layout = in_column(self._stages, of=self, margins=(4, 2, 4, 2))
        layout.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)  # see `minimumSizeHint`
        self.show_run(None)

    def show_run(self, run: Run | None) -> None:
        self._run = run
        self._stages.show_run(run)

    def minimumSizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(45 * metrics.averageCharWidth(), 6 * metrics.height())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.show_run(self._run)
