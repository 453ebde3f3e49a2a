"""The timing panel: stages, the list of runs, speed-ups, and what is kept in memory."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QAbstractButton, QLabel, QTreeWidget
from pytestqt.qtbot import QtBot

from app import filters
from app.engine.image import Image
from app.engine.request import Request, Result
from app.engine.timing import Metric, Stage
from app.gui import timing_panel
from app.gui.timing_panel import KEPT_RESULTS, MAX_RUNS, TimingPanel

FILTER = next(
    spec for spec in filters.discover().values() if any(p.name == "size" for p in spec.parameters)
)


@pytest.fixture
def panel(qtbot: QtBot) -> TimingPanel:
    panel = TimingPanel()
    qtbot.addWidget(panel)
    panel.show()
    return panel


def result(
    milliseconds: float = 10.0, size: int = 3, width: int = 1000, level: str = "serial"
) -> Result:
    """Return a result whose stages are prepare and compute, a tenth and nine tenths."""
    image = Image.from_array(np.zeros((500, width), np.uint8))
    request = Request.create(image, FILTER.id, {"size": size})
    seconds = milliseconds / 1e3
    stages = (
        Stage("prepare", 0.1 * seconds),
        Stage("compile", 2.0, counted=False),
        Stage("compute", 0.4 * seconds),
        Stage("compute", 0.5 * seconds),
    )
    output = Image.from_array(np.zeros((500, width), np.uint8))
    return Result(request, output, "cpu", level, stages)


def rows(panel: TimingPanel, name: str) -> list[list[str]]:
    tree = panel.findChild(QTreeWidget, name)
    return [
        [item.text(column) for column in range(tree.columnCount())]
        for item in (tree.topLevelItem(row) for row in range(tree.topLevelItemCount()))
    ]


def column(panel: TimingPanel, title: str) -> list[str]:
    """Return the cells under a heading, from the text that is copied."""
    header, *lines = (line.split("\t") for line in panel.text().splitlines())
    return [line[header.index(title)] for line in lines]


def select(panel: TimingPanel, row: int) -> None:
    tree = panel.findChild(QTreeWidget, "timingRuns")
    tree.setCurrentItem(tree.topLevelItem(row))


def test_nothing_yet(panel: TimingPanel) -> None:
    assert panel.findChild(QLabel, "timingTitle").text() == "No run yet."
    assert rows(panel, "timingRuns") == []
    assert not panel.findChild(QAbstractButton, "timingCompare").isEnabled()


def test_stages_are_added_up_and_compiling_stands_apart(panel: TimingPanel) -> None:
    panel.add_result(result(10.0))
    assert rows(panel, "timingStages") == [
        ["Prepare", "1.000", "10%"],
        ["Compute", "9.000", "90%"],
        ["Compile", "2000.000", "not counted"],
    ]
    assert panel.findChild(QLabel, "timingTotal").text() == "10.000 ms, 50.0 megapixels/s"


def test_the_list_is_newest_first_and_compares_with_the_first_run(panel: TimingPanel) -> None:
    panel.add_result(result(10.0))
    panel.add_result(result(2.5, level="parallel"))
    assert column(panel, "No.") == ["2", "1"]
    assert column(panel, "Image") == ["1000×500"] * 2
    assert column(panel, "Level") == ["Parallel", "Serial"]
    assert column(panel, "Total, ms") == ["2.500", "10.000"]
    assert column(panel, "MP/s") == ["200.0", "50.0"]
    assert column(panel, "Speed-up") == ["4.00×", "baseline"]
    assert rows(panel, "timingRuns") == [line.split("\t") for line in panel.text().splitlines()[1:]]


def test_only_the_same_work_is_compared(panel: TimingPanel) -> None:
    panel.add_result(result(10.0))
    panel.add_result(result(10.0, size=5))
    panel.add_result(result(10.0, width=999))
    panel.add_result(result(20.0))
    assert column(panel, "Speed-up") == ["0.50×", "baseline", "baseline", "baseline"]


def test_another_baseline_can_be_chosen(qtbot: QtBot, panel: TimingPanel) -> None:
    for milliseconds in (10.0, 4.0, 1.0):
        panel.add_result(result(milliseconds))
    select(panel, 1)
    qtbot.mouseClick(panel.findChild(QAbstractButton, "timingCompare"), Qt.MouseButton.LeftButton)
    assert column(panel, "Speed-up") == ["4.00×", "baseline", "0.40×"]
    select(panel, 0)
    panel.findChild(QAction, "timingCompareAction").trigger()
    assert column(panel, "Speed-up") == ["baseline", "0.25×", "0.10×"]


def test_each_kind_of_work_has_its_own_baseline(panel: TimingPanel) -> None:
    for milliseconds, size in ((10.0, 3), (30.0, 5), (5.0, 3), (10.0, 5)):
        panel.add_result(result(milliseconds, size=size))
    assert column(panel, "Speed-up") == ["3.00×", "2.00×", "baseline", "baseline"]
    select(panel, 0)
    panel.compare_with_selected()
    assert column(panel, "Speed-up") == ["baseline", "2.00×", "0.33×", "baseline"]


def test_a_list_full_of_baselines_drops_the_oldest(panel: TimingPanel) -> None:
    for width in range(1, MAX_RUNS + 2):
        panel.add_result(result(width=width))
        panel.compare_with_selected()
    assert column(panel, "No.")[0] == str(MAX_RUNS + 1)
    assert column(panel, "No.")[-1] == "2"
    assert column(panel, "Speed-up") == ["baseline"] * MAX_RUNS


def test_selecting_a_run_shows_its_stages(panel: TimingPanel) -> None:
    panel.add_result(result(10.0))
    panel.add_result(result(30.0))
    select(panel, 1)
    assert panel.findChild(QLabel, "timingTitle").text().startswith("Run 1:")
    assert rows(panel, "timingStages")[1] == ["Compute", "9.000", "90%"]


def test_long_settings_leave_room_for_the_stages(panel: TimingPanel) -> None:
    panel.resize(700, 150)
    panel.show()
    panel.add_result(result())
    title = panel.findChild(QLabel, "timingTitle")
    assert title.text().endswith("…")
    assert title.height() < 2 * title.fontMetrics().height()
    assert title.text().startswith("Run 1: CPU serial, ")


def test_activating_a_run_gives_its_result(qtbot: QtBot, panel: TimingPanel) -> None:
    first = result()
    panel.add_result(first)
    panel.add_result(result())
    select(panel, 1)
    tree = panel.findChild(QTreeWidget, "timingRuns")
    with qtbot.waitSignal(panel.resultActivated) as caught:
        qtbot.keyClick(tree, Qt.Key.Key_Return)
    assert caught.args == [first]


def test_the_list_and_the_images_are_bounded(qtbot: QtBot, panel: TimingPanel) -> None:
    images = []
    for _ in range(MAX_RUNS + 5):
        one = result()
        images.append(weakref.ref(one.image.pixels))
        panel.add_result(one)
    del one
    gc.collect()
    assert len(rows(panel, "timingRuns")) == MAX_RUNS
    assert [image() is not None for image in images[-KEPT_RESULTS - 2 :]] == (
        [False] * 2 + [True] * KEPT_RESULTS
    )
    assert not any(image() is not None for image in images[:-KEPT_RESULTS])
    # The baseline stays, so that the speed-ups keep their meaning.
    assert column(panel, "Speed-up")[-1] == "baseline"
    select(panel, KEPT_RESULTS)
    with qtbot.assertNotEmitted(panel.resultActivated):
        qtbot.keyClick(panel.findChild(QTreeWidget, "timingRuns"), Qt.Key.Key_Return)


def test_large_images_are_dropped_sooner(
    panel: TimingPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing_panel, "KEPT_BYTES", 2_500_000)
    images = []
    for _ in range(4):
        one = result()  # a million bytes: input and output
        images.append(weakref.ref(one.image.pixels))
        panel.add_result(one)
    del one
    gc.collect()
    assert [image() is not None for image in images] == [False, False, True, True]
    monkeypatch.setattr(timing_panel, "KEPT_BYTES", 1)
    newest = result()
    panel.add_result(newest)
    gc.collect()
    assert not any(image() is not None for image in images)
    assert panel._runs[0].result is newest


def test_clear(panel: TimingPanel) -> None:
    panel.add_result(result())
    panel.findChild(QAction, "timingClearAction").trigger()
    assert rows(panel, "timingRuns") == rows(panel, "timingStages") == []
    assert panel.findChild(QLabel, "timingTitle").text() == "No run yet."
    panel.add_result(result(5.0))
    assert column(panel, "No.") == ["2"]
    assert column(panel, "Speed-up") == ["baseline"]


def test_copy_gives_the_whole_list(qtbot: QtBot, panel: TimingPanel) -> None:
    panel.add_result(result())
    panel.add_result(result())
    tree = panel.findChild(QTreeWidget, "timingRuns")
    tree.setFocus()
    window_shortcut = QAction(panel)
    window_shortcut.setShortcut(QKeySequence.StandardKey.Copy)
    panel.addAction(window_shortcut)
    with qtbot.assertNotEmitted(window_shortcut.triggered):
        qtbot.keyClick(tree, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert len(lines) == 3
    assert all(line.count("\t") == 7 for line in lines)


def test_no_time_at_all_is_no_crash(panel: TimingPanel) -> None:
    panel.add_result(result(0.0))
    panel.add_result(result(0.0))
    assert column(panel, "Speed-up") == ["0.00×", "baseline"]


@pytest.mark.parametrize(
    ("width", "orientation"),
    [(1200, Qt.Orientation.Horizontal), (380, Qt.Orientation.Vertical)],
)
def test_it_fits_a_wide_and_a_narrow_place(
    qtbot: QtBot, panel: TimingPanel, width: int, orientation: Any
) -> None:
    panel.add_result(result())
    panel.resize(width, 400)
    qtbot.waitUntil(lambda: panel._splitter.orientation() == orientation)
    assert panel.width() == width


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
    panel.add_result(Result(request, request.image, "gpu", "tuned", stages, (), metrics))
    total = panel.findChild(QLabel, "timingTotal").text()
    assert total.endswith("\nKernel 1,000 GB/s, 25% of copy rate")
    tree = panel.findChild(QTreeWidget, "timingStages")
    rows = {tree.topLevelItem(n).text(0): tree.topLevelItem(n) for n in range(4)}
    assert [item.text(2) for item in rows.values()] == ["25%", "50%", "25%", "not counted"]
    assert rows["Kernel"].toolTip(1) == "Median of 3 runs, 1.000 to 4.000 ms"


@pytest.mark.parametrize(
    ("rate", "text"), [(9.87e9, "9.9 GB/s"), (123.4e9, "123 GB/s"), (2.873e12, "2,873 GB/s")]
)
def test_rates_are_short(panel: TimingPanel, rate: float, text: str) -> None:
    image = Image.from_array(np.zeros((8, 8), np.uint8))
    request = Request.create(image, "mean")
    metrics = (Metric("effective rate", rate, "B/s"), Metric("copy rate", rate, "B/s"))
    panel.add_result(Result(request, image, "gpu", "tuned", (Stage("kernel", 1.0),), (), metrics))
    total = panel.findChild(QLabel, "timingTotal").text()
    assert total.endswith(f"\nKernel {text}, 100% of copy rate")


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
    panel.add_result(Result(request, request.image, "gpu", "tuned", stages))
    assert panel.findChild(QLabel, "timingTotal").text().startswith("10.000 ms")
    assert rows(panel, "timingStages") == [
        ["Slabs", "9.000", "90%"],
        ["Convert", "1.000", "10%"],
        ["Upload", "3.000", "overlapped"],
        ["Kernel", "8.000", "overlapped"],
        ["Download", "4.000", "overlapped"],
        ["Compile", "1000.000", "not counted"],
    ]
