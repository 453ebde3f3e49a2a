"""The timing panel: the stages of one run, as a table and on a time line."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QLabel, QTreeWidget
from pytestqt.qtbot import QtBot

from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.timing import KernelTime, Metric, Repeats, Stage, StagePart
from kernelscope.gui.docks.timing_panel import TimeLine, TimingPanel
from kernelscope.gui.docks.timing_panel import lanes as time_line_lanes
from kernelscope.gui.model.runs import Run, Runs
from kernelscope.gui.widgets.theme import kernel_fill, transfers_fill
from kernelscope.images.image import Image


@pytest.fixture
def panel(qtbot: QtBot) -> TimingPanel:
    panel = TimingPanel()
    qtbot.addWidget(panel)
    panel.show()
    return panel


def as_run(result: Result) -> Run:
    return Runs().add(result)


def cpu_result(milliseconds: float = 10.0) -> Result:
    """Return a result whose stages are prepare and compute, a tenth and nine tenths."""
    image = Image.from_array(np.zeros((500, 1000), np.uint8))
    seconds = milliseconds / 1e3
    stages = (
        Stage("prepare", 0.1 * seconds),
        Stage("compile", 2.0, counted=False),
        Stage("compute", 0.4 * seconds),
        Stage("compute", 0.5 * seconds),
    )
    return Result(Request.create(image, "mean"), image, "cpu", "serial", stages)


def rows(panel: TimingPanel, name: str) -> list[list[str]]:
    tree = panel.findChild(QTreeWidget, name)
    return [
        [item.text(column) for column in range(tree.columnCount())]
        for item in (tree.topLevelItem(row) for row in range(tree.topLevelItemCount()))
    ]


def test_nothing_yet(panel: TimingPanel) -> None:
    assert panel.findChild(QLabel, "timingTitle").text() == "No run yet."
    assert rows(panel, "timingStages") == []


def test_stages_are_added_up_and_compiling_stands_apart(panel: TimingPanel) -> None:
    panel.show_run(as_run(cpu_result(10.0)))
    assert rows(panel, "timingStages") == [
        ["Prepare", "1.00 ms", "10 %"],
        ["Compute", "9.00 ms", "90 %"],
        ["Compile", "2.00 s", "not counted"],
    ]
    total = panel.findChild(QLabel, "timingTotal").text()
    assert total == "10.0 ms, 50.0 megapixels/s, first run"
    panel.show_run(as_run(cpu_result(10.3)))
    total = panel.findChild(QLabel, "timingTotal").text()
    assert total == "10.3 ms, 48.5 megapixels/s, first run", "with the digits of the headline"


def test_a_measured_run_shows_its_repeats(panel: TimingPanel) -> None:
    repeats = Repeats((0.011, 0.010, 0.012), (0.010, 0.009, 0.011))
    panel.show_run(as_run(replace(cpu_result(11.0), repeats=repeats)))
    total = panel.findChild(QLabel, "timingTotal").text()
    assert total.startswith("11.0 ms, median of 3 (10.0 ms to 12.0 ms), ")


def test_a_gpu_run_shows_rates_and_repeats(qtbot: QtBot) -> None:
    panel = TimingPanel()
    qtbot.addWidget(panel)
    request = Request.create(Image.from_array(np.zeros((8, 8), np.uint8)), "mean")
    stages = (
        Stage("compile", 1.0, counted=False),
        Stage("upload", 1e-3),
        Stage("kernel", 2e-3, repeats=(1e-3, 2e-3, 4e-3)),
        Stage("download", 1e-3),
    )
    metrics = (Metric("effective rate", 1e12, "B/s"), Metric("copy rate", 4e12, "B/s"))
    panel.show_run(as_run(Result(request, request.image, "gpu", "tuned", stages, (), metrics)))
    total = panel.findChild(QLabel, "timingTotal").text()
    assert total.endswith("\nKernel 1,000 GB/s, 25 % of copy rate")
    tree = panel.findChild(QTreeWidget, "timingStages")
    rows = {tree.topLevelItem(n).text(0): tree.topLevelItem(n) for n in range(4)}
    assert [item.text(2) for item in rows.values()] == ["25 %", "50 %", "25 %", "not counted"]
    assert rows["Kernel"].toolTip(1) == "2.00 ms, median of 3 (1.00 ms to 4.00 ms)"


def test_what_overlapped_is_in_no_total(panel: TimingPanel) -> None:
    request = Request.create(Image.from_array(np.zeros((8, 8), np.uint8)), "mean")
    stages = (
        Stage("compile", 1.0, counted=False),
        *(
            Stage(name, seconds, counted=False, overlapped=True)
            for name, seconds in (("upload", 3e-3), ("kernel", 8e-3), ("download", 4e-3))
        ),
        Stage("slabs", 9e-3),
        Stage("convert", 1e-3),
    )
    panel.show_run(as_run(Result(request, request.image, "gpu", "tuned", stages)))
    assert panel.findChild(QLabel, "timingTotal").text().startswith("10.0 ms")
    assert rows(panel, "timingStages") == [
        ["Slabs", "9.00 ms", "90 %"],
        ["Convert", "1.00 ms", "10 %"],
        ["Upload", "3.00 ms", "overlapped"],
        ["Kernel", "8.00 ms", "overlapped"],
        ["Download", "4.00 ms", "overlapped"],
        ["Compile", "1.00 s", "not counted"],
    ]


# The time line -------------------------------------------------------------------------


def timed(*stages: Stage, device: str = "gpu") -> Result:
    request = Request.create(Image.from_array(np.zeros((8, 8), np.uint8)), "mean")
    level = "tuned" if device == "gpu" else "serial"
    return Result(request, request.image, device, level, stages)


RUN = (
    Stage("prepare", 1e-3, start=0.0),
    Stage("allocate", 1e-3, start=1e-3),
    Stage("upload", 2e-3, start=2e-3),
    Stage("kernel", 4e-3, start=4e-3),
    Stage("download", 2e-3, start=8e-3),
)


def show_line(qtbot: QtBot, panel: TimingPanel) -> TimeLine:
    line = panel.findChild(TimeLine)
    assert line is not None
    if not line.isVisible():
        switch = panel.findChild(QAbstractButton, "timingShowLine")
        switch.setFocus()
        qtbot.keyClick(switch, Qt.Key.Key_Space)
        qtbot.waitUntil(line.isVisible)
    return line


def test_table_and_time_line_share_a_wide_panel_and_take_turns_in_a_narrow_one(
    qtbot: QtBot, panel: TimingPanel
) -> None:
    panel.show_run(as_run(timed(*RUN)))
    table, line = panel.findChild(QTreeWidget, "timingStages"), panel.findChild(TimeLine)
    switch = panel.findChild(QAbstractButton, "timingShowLine")
    panel.resize(1600, 260)
    assert [each.isVisible() for each in (table, line, switch)] == [True, True, False]
    panel.resize(400, 260)
    assert [each.isVisible() for each in (table, line, switch)] == [True, False, True]
    qtbot.mouseClick(switch, Qt.MouseButton.LeftButton)
    assert [each.isVisible() for each in (table, line)] == [False, True]
    qtbot.mouseClick(switch, Qt.MouseButton.LeftButton)
    assert [each.isVisible() for each in (table, line)] == [True, False]


def test_the_time_line_draws_stages_by_start_and_length(qtbot: QtBot, panel: TimingPanel) -> None:
    panel.resize(1600, 260)
    panel.show_run(as_run(timed(*RUN)))
    line = show_line(qtbot, panel)
    qtbot.waitUntil(lambda: line.viewport().width() > 700)  # it was laid out
    assert [lane.name for lane in line.lanes] == [
        "Prepare", "Allocate", "Upload", "Kernel", "Download",
    ]  # fmt: skip
    rects = [line.bar_rect(lane, lane.bars[0]) for lane in line.lanes]
    assert [rect.width() / rects[0].width() for rect in rects] == pytest.approx([1, 1, 2, 4, 2])
    assert all(a.right() == pytest.approx(b.left()) for a, b in pairwise(rects))
    assert [a.top() < b.top() for a, b in pairwise(rects)] == [True] * 4
    drawn = line.viewport().grab().toImage()
    colours = [drawn.pixelColor(rect.center().toPoint()) for rect in rects]
    light, dark = kernel_fill(panel.palette()), transfers_fill(panel.palette())
    assert colours[2:] == [dark, light, dark]
    assert line.accessibleDescription().startswith("Prepare: 1.00 ms, from 0 s; Allocate:")


def test_the_time_line_follows_the_selected_run(qtbot: QtBot, panel: TimingPanel) -> None:
    panel.show_run(as_run(timed(Stage("compute", 1e-3), device="cpu")))
    line = show_line(qtbot, panel)
    assert [lane.name for lane in line.lanes] == ["Compute"]
    panel.show_run(as_run(timed(*RUN)))
    assert len(line.lanes) == 5
    panel.show_run(None)
    assert line.lanes == []


def test_compiling_does_not_dwarf_the_rest(qtbot: QtBot, panel: TimingPanel) -> None:
    panel.resize(1600, 260)
    compiling = Stage("compile", 2.0, counted=False, start=1e-3)
    late = [stage._replace(start=stage.start + 2.0) for stage in RUN[1:]]
    panel.show_run(as_run(timed(RUN[0], compiling, *late)))
    line = show_line(qtbot, panel)
    lanes = {lane.name: lane for lane in line.lanes}
    width = {name: line.bar_rect(lane, lane.bars[0]).width() for name, lane in lanes.items()}
    assert width["Kernel"] == pytest.approx(4 * width["Prepare"])
    assert width["Compile"] < width["Kernel"]
    axis = line.axis
    assert axis.place(0.0) == 0
    assert axis.place(axis.end) == pytest.approx(1)
    assert [text for _, text in axis.ticks()] == [
        "0 ms",
        *(f"{2000 + number:,} ms" for number in (2, 4, 6, 8, 10)),
    ]
    assert lanes["Compile"].counted is False


def test_each_kernel_of_a_plan_has_its_line_and_its_lane(qtbot: QtBot, panel: TimingPanel) -> None:
    kernels = (KernelTime("nlm_global_weights", 3e-3), KernelTime("nlm_global_mean", 1e-3))
    panel.show_run(as_run(timed(RUN[3]._replace(kernels=kernels))))
    assert rows(panel, "timingStages") == [
        ["Kernel", "4.00 ms", "100 %"],
        ["    nlm_global_weights", "3.00 ms", ""],
        ["    nlm_global_mean", "1.00 ms", ""],
    ]
    line = show_line(qtbot, panel)
    assert [(lane.name, lane.inner) for lane in line.lanes] == [
        ("Kernel", False),
        ("nlm_global_weights", True),
        ("nlm_global_mean", True),
    ]
    first, second = (line.bar_rect(lane, lane.bars[0]) for lane in line.lanes[1:])
    assert first.right() == pytest.approx(second.left())
    assert first.width() == pytest.approx(3 * second.width())


def test_pieces_on_several_devices_have_lanes_of_their_own() -> None:
    pieces = (StagePart(0, 1e-3, 2e-3), StagePart(1, 1e-3, 1e-3), StagePart(0, 5e-3, 1e-3))
    stage = Stage("kernel", 3e-3, counted=False, overlapped=True, parts=pieces)
    first, second = time_line_lanes([stage])
    assert (first.name, len(first.bars)) == ("Kernel, GPU 0", 2)
    assert first.seconds == pytest.approx(3e-3)
    assert (second.name, len(second.bars)) == ("Kernel, GPU 1", 1)
    assert first.counted, "overlapped stages are no rest"
