"""The timing panel: the stages of one run, with times and on a time line."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLabel, QTreeWidget
from pytestqt.qtbot import QtBot

from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.timing import KernelTime, Metric, Repeats, Stage, StagePart
from kernelscope.gui.docks.bars import part_colour
from kernelscope.gui.docks.timing_panel import TimingPanel
from kernelscope.gui.model.runs import KERNEL, OTHER, TRANSFERS, Run, Runs
from kernelscope.gui.widgets.tables import BARS
from kernelscope.gui.widgets.theme import kernel_fill
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
        [item.text(column) for column in range(3)]
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


def starts(panel: TimingPanel) -> list[str]:
    tree = panel.findChild(QTreeWidget, "timingStages")
    return [tree.topLevelItem(row).text(3) for row in range(tree.topLevelItemCount())]


def bars(panel: TimingPanel) -> dict[str, list[tuple[QColor, float, float]]]:
    tree = panel.findChild(QTreeWidget, "timingStages")
    items: list[Any] = [tree.topLevelItem(row) for row in range(tree.topLevelItemCount())]
    return {item.text(0).strip(): item.data(4, BARS) for item in items}


def test_the_time_line_draws_stages_by_start_and_length(qtbot: QtBot, panel: TimingPanel) -> None:
    panel.resize(1600, 260)
    panel.show_run(as_run(timed(*RUN)))
    drawn = [bar for (bar,) in bars(panel).values()]
    parts = OTHER, OTHER, TRANSFERS, KERNEL, TRANSFERS
    assert [fill for fill, _, _ in drawn] == [part_colour(each, panel.palette()) for each in parts]
    assert [stop - start for _, start, stop in drawn] == pytest.approx([0.1, 0.1, 0.2, 0.4, 0.2])
    assert all(a[2] == pytest.approx(b[1]) for a, b in pairwise(drawn))
    assert starts(panel) == ["0.0 ms", "1.0 ms", "2.0 ms", "4.0 ms", "8.0 ms"]
    tree = panel.findChild(QTreeWidget, "timingStages")
    assert tree.accessibleDescription().startswith("Prepare: 1.00 ms, from 0 s; Allocate:")
    kernel: Any = tree.topLevelItem(3)
    area = tree.visualItemRect(kernel)
    left, right = tree.columnViewportPosition(4), tree.viewport().width()
    shot = tree.viewport().grab().toImage()
    colours = [
        shot.pixelColor(round(left + share * (right - left)), area.center().y())
        for share in (0.42, 0.78)
    ]
    assert colours == [kernel_fill(panel.palette())] * 2


def test_the_time_line_follows_the_selected_run(panel: TimingPanel) -> None:
    panel.show_run(as_run(timed(Stage("compute", 1e-3), device="cpu")))
    assert list(bars(panel)) == ["Compute"]
    panel.show_run(as_run(timed(*RUN)))
    assert len(bars(panel)) == 5
    panel.show_run(None)
    assert bars(panel) == {}


def test_compiling_does_not_dwarf_the_rest(panel: TimingPanel) -> None:
    compiling = Stage("compile", 2.0, counted=False, start=1e-3)
    late = [stage._replace(start=stage.start + 2.0) for stage in RUN[1:]]
    panel.show_run(as_run(timed(RUN[0], compiling, *late)))
    drawn = {name: bar for name, (bar,) in bars(panel).items()}
    width = {name: stop - start for name, (_, start, stop) in drawn.items()}
    assert width["Kernel"] == pytest.approx(4 * width["Prepare"])
    assert width["Compile"] == pytest.approx(0.08)
    assert drawn["Prepare"][1] == 0
    assert drawn["Prepare"][2] == pytest.approx(drawn["Compile"][1])
    assert drawn["Compile"][2] == pytest.approx(drawn["Allocate"][1])
    assert drawn["Download"][2] == pytest.approx(1)
    assert starts(panel)[1:] == ["2,001.0 ms", "2,002.0 ms", "2,004.0 ms", "2,008.0 ms", "1.0 ms"]


def test_each_kernel_of_a_plan_has_its_line(panel: TimingPanel) -> None:
    kernels = (KernelTime("nlm_global_weights", 3e-3), KernelTime("nlm_global_mean", 1e-3))
    panel.show_run(as_run(timed(RUN[3]._replace(kernels=kernels))))
    assert rows(panel, "timingStages") == [
        ["Kernel", "4.00 ms", "100 %"],
        ["    nlm_global_weights", "3.00 ms", ""],
        ["    nlm_global_mean", "1.00 ms", ""],
    ]
    _, (first,), (second,) = bars(panel).values()
    assert first[2] == pytest.approx(second[1])
    assert first[2] - first[1] == pytest.approx(3 * (second[2] - second[1]))


def test_pieces_on_several_devices_have_lines_of_their_own(panel: TimingPanel) -> None:
    pieces = (StagePart(0, 1e-3, 2e-3), StagePart(1, 1e-3, 1e-3), StagePart(0, 5e-3, 1e-3))
    kernel = Stage("kernel", 3e-3, counted=False, overlapped=True, parts=pieces)
    panel.show_run(as_run(timed(Stage("slabs", 6e-3), kernel)))
    assert rows(panel, "timingStages")[1:] == [
        ["Kernel", "3.00 ms", "overlapped"],
        ["    GPU 0", "3.00 ms", ""],
        ["    GPU 1", "1.00 ms", ""],
    ]
    drawn = bars(panel)
    assert [len(drawn[name]) for name in ("Kernel", "GPU 0", "GPU 1")] == [3, 2, 1]
    assert drawn["GPU 0"][1][1:] == pytest.approx((5 / 6, 1.0)), "overlapped stages are not cut"


def test_a_time_that_is_an_upper_bound_says_so(panel: TimingPanel) -> None:
    panel.show_run(as_run(timed(RUN[3]._replace(excess=4e-3))))
    assert rows(panel, "timingStages") == [["Kernel", "≤ 4.00 ms", "100 %"]]
