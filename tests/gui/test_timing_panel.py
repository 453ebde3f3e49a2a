"""The timing panel: stages, the list of runs, speed-ups, and what is kept in memory."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QAbstractButton, QLabel, QTreeWidget, QTreeWidgetItem, QWidget
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.timing import KernelTime, Metric, Part, Stage
from kernelscope.gui.model import runs
from kernelscope.gui.model.runs import KEPT_RESULTS, MAX_RUNS
from kernelscope.gui.panels import bars, run_list
from kernelscope.gui.panels.time_line import TimeLine
from kernelscope.gui.panels.time_line import lanes as time_line_lanes
from kernelscope.gui.panels.timing_panel import TimingPanel
from kernelscope.gui.widgets.theme import kernel_fill, quiet_text, transfers_fill
from kernelscope.images.image import Image
from kernelscope.spec.borders import Border

FILTER = next(
    spec for spec in filters.discover().values() if any(p.name == "size" for p in spec.parameters)
)

HEADINGS = list(run_list.COLUMN_NAMES)
PARTS = HEADINGS.index("Parts")


@pytest.fixture
def panel(qtbot: QtBot) -> TimingPanel:
    panel = TimingPanel()
    qtbot.addWidget(panel)
    panel.show()
    return panel


def result(
    milliseconds: float = 10.0,
    size: int = 3,
    width: int = 1000,
    level: str = "serial",
    value: int = 0,
    **options: Any,
) -> Result:
    """Return a result whose stages are prepare and compute, a tenth and nine tenths."""
    image = Image.from_array(np.full((500, width), value, np.uint8))
    request = Request.create(image, FILTER.id, {"size": size}, **options)
    seconds = milliseconds / 1e3
    stages = (
        Stage("prepare", 0.1 * seconds),
        Stage("compile", 2.0, counted=False),
        Stage("compute", 0.4 * seconds),
        Stage("compute", 0.5 * seconds),
    )
    output = Image.from_array(np.zeros((500, width), np.uint8))
    return Result(request, output, "cpu", level, stages)


def gpu_result(
    level: str,
    kernel: float,
    download: float,
    *,
    upload: float = 0.0,
    repeats: tuple[float, ...] = (),
    **options: Any,
) -> Result:
    """Return a run of the same work as `result`, times in milliseconds."""
    image = Image.from_array(np.zeros((500, 1000), np.uint8))
    request = Request.create(image, FILTER.id, {"size": 3}, **options)
    stages = [
        *([Stage("upload", upload / 1e3)] if upload else []),
        Stage("kernel", kernel / 1e3, repeats=tuple(each / 1e3 for each in repeats)),
        Stage("download", download / 1e3),
        Stage("convert", 1e-4),
    ]
    return Result(request, image, "gpu", level, tuple(stages))


def add(panel: TimingPanel, *results: Result) -> None:
    """Add each result twice: the first run of its kind is measured by nobody."""
    for each in results:
        panel.add_result(each)
        panel.add_result(each)


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


def item(panel: TimingPanel, row: int) -> QTreeWidgetItem:
    """Return a line of the list."""
    return panel.findChild(QTreeWidget, "timingRuns").topLevelItem(row)


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
        ["Compile", "2,000", "not counted"],
    ]
    assert panel.findChild(QLabel, "timingTotal").text() == "10.00 ms, 50.0 megapixels/s"


def test_the_list_is_newest_first_and_compares_with_serial_code(panel: TimingPanel) -> None:
    add(panel, result(2.5, level="parallel"), result(10.0))
    assert column(panel, "No.") == ["4", "3", "2", "1"]
    assert column(panel, "Image") == ["1000×500"] * 4
    assert column(panel, "Run on") == ["CPU serial", "CPU serial", "CPU parallel", "CPU parallel"]
    assert column(panel, "Kernel ms") == ["9.000", "9.000", "2.250", "2.250"]
    assert column(panel, "Transfers ms") == ["–"] * 4
    assert column(panel, "Total ms") == ["10.00", "10.00", "2.500", "2.500"]
    assert column(panel, "Speed")[2] == "200.0 megapixels/s"
    for quantity in ("kernel", "total"):
        gains = column(panel, f"Speed-up of {quantity}")
        assert gains == ["baseline", "–", "about 4× over CPU serial", "–"]
    over = HEADINGS.index("Compared with")
    for shown, line in zip(rows(panel, "timingRuns"), panel.text().splitlines()[1:], strict=True):
        said = [cell for n, cell in enumerate(shown) if n not in (PARTS, over)]
        assert said == [cell.partition(" over ")[0] for cell in line.split("\t")]
    assert [row[over] for row in rows(panel, "timingRuns")] == ["", "", "CPU serial", ""]


def test_a_first_run_is_marked_and_compared_with_nothing(panel: TimingPanel) -> None:
    panel.add_result(result(90.0))
    panel.add_result(result(8.0, level="parallel"))
    assert column(panel, "Repeats") == ["first run", "first run"]
    assert column(panel, "Speed-up of total") == ["–", "–"]
    panel.add_result(result(2.0, level="parallel"))
    assert column(panel, "Speed-up of total") == ["baseline", "–", "–"], "what was measured"
    panel.add_result(result(10.0))
    assert column(panel, "Repeats") == ["1 run", "1 run", "first run", "first run"]
    assert column(panel, "Speed-up of total") == ["baseline", "about 5× over CPU serial", "–", "–"]
    tips = [item(panel, row).toolTip(PARTS + 2) for row in range(4)]
    assert tips[1].splitlines() == [
        "total: CPU serial / CPU parallel = 5",
        "CPU serial: 10.00 ms",
        "CPU parallel: 2.000 ms",
        "One of the two was measured less than 3 times: run it again to be sure.",
    ]
    assert tips[3].startswith("The first run of this work at this level")


def test_the_same_work_at_the_same_level_is_never_a_speed_up(panel: TimingPanel) -> None:
    for milliseconds in (31.2, 10.0, 8.0, 12.0):
        panel.add_result(result(milliseconds))
    assert column(panel, "Speed-up of total") == ["baseline", "baseline", "baseline", "–"]
    assert column(panel, "Repeats") == ["3 runs ± 20 %"] * 3 + ["first run"]
    repeats = HEADINGS.index("Repeats")
    assert item(panel, 0).toolTip(repeats) == (
        "CPU serial, total: 10.00 ms, median of 3 (8.000 to 12.00 ms)"
    )


def test_all_runs_of_a_level_have_the_speed_up_of_their_medians(panel: TimingPanel) -> None:
    for level, times in (("serial", (50.0, 10.0, 30.0, 12.0)), ("parallel", (9.0, 2.0, 3.0, 4.0))):
        for milliseconds in times:
            panel.add_result(result(milliseconds, level=level))
    gains = column(panel, "Speed-up of total")
    assert gains == ["4× over CPU serial"] * 3 + ["–"] + ["baseline"] * 3 + ["–"]


def test_repeats_that_overlap_are_toned_down(panel: TimingPanel) -> None:
    for level, times in (
        ("serial", (50.0, 10.0, 30.0, 24.0)),
        ("parallel", (9.0, 8.0, 11.0, 12.0)),
    ):
        for milliseconds in times:
            panel.add_result(result(milliseconds, level=level))
    gain = item(panel, 0)
    assert gain.foreground(PARTS + 2).color() == quiet_text(panel.palette())
    assert "may be chance" in gain.toolTip(PARTS + 2)
    assert not gain.font(PARTS + 2).bold()
    assert column(panel, "Speed-up of total")[0].startswith("about 2.1")


@pytest.mark.parametrize("few", ["serial", "parallel"])
def test_two_repeats_are_about_right_at_best(panel: TimingPanel, few: str) -> None:
    for level, milliseconds in (("serial", 30.0), ("parallel", 3.0)):
        for _ in range(3 if level == few else 4):
            panel.add_result(result(milliseconds, level=level))
    gain = item(panel, 0)
    assert column(panel, "Speed-up of total")[0] == "about 10× over CPU serial"
    assert gain.text(PARTS + 2) == "about 10×"
    assert gain.foreground(PARTS + 2).color() == quiet_text(panel.palette())
    assert not gain.font(PARTS + 2).bold()
    assert "measured less than 3 times" in gain.toolTip(PARTS + 2)
    assert "may be chance" not in gain.toolTip(PARTS + 2)
    panel.add_result(result(30.0 if few == "serial" else 3.0, level=few))
    gain = item(panel, 1 if few == "serial" else 0)
    assert gain.text(PARTS + 2) == "10×"
    assert gain.foreground(PARTS + 2).color() != quiet_text(panel.palette())
    assert gain.font(PARTS + 2).bold()
    assert "less than 3 times" not in gain.toolTip(PARTS + 2)


def test_a_baseline_that_was_measured_once_is_not_bold(panel: TimingPanel) -> None:
    add(panel, result(3.0), result(30.0, level="parallel"))
    bold = [item(panel, row).font(PARTS + 2).bold() for row in range(4)]
    assert column(panel, "Speed-up of total")[2] == "baseline"
    assert bold == [False] * 4
    panel.add_result(result(3.0))
    assert item(panel, 0).font(PARTS + 2).bold()


@pytest.mark.parametrize(
    "other",
    [
        {"size": 5},
        {"width": 999},
        {"value": 7},
        {"grey": True},
        {"border": Border.WRAP},
    ],
    ids=str,
)
def test_only_the_same_work_is_compared(panel: TimingPanel, other: dict[str, Any]) -> None:
    add(panel, result(10.0), result(5.0, level="parallel", **other))
    assert column(panel, "Speed-up of total") == ["baseline", "–", "baseline", "–"]
    assert "Nothing else did the same work" in item(panel, 0).toolTip(PARTS + 2)


def test_kernel_transfers_and_total_stand_apart(panel: TimingPanel) -> None:
    add(panel, result(10.0))
    panel.add_result(gpu_result("tuned", 0.05, 2.0, upload=1.0))
    panel.add_result(gpu_result("tuned", 0.05, 6.0))
    panel.add_result(gpu_result("shared", 0.5, 2.0))
    panel.add_result(gpu_result("shared", 0.5, 2.0))
    assert column(panel, "Kernel ms")[:4] == ["0.5000", "0.5000", "0.05000", "0.05000"]
    assert column(panel, "Transfers ms")[:4] == ["2.000 ↓", "2.000 ↓", "6.000 ↓", "3.000 ↑↓"]
    assert column(panel, "Total ms")[:4] == ["2.600", "2.600", "6.150", "3.150"]
    assert column(panel, "Speed-up of kernel")[::2][:2] == [
        "about 18× over CPU serial",
        "about 180× over CPU serial",
    ]
    assert column(panel, "Speed-up of total")[::2][:2] == [
        "about 3.85× over CPU serial",
        "about 1.63× over CPU serial",
    ]
    transfers = HEADINGS.index("Transfers ms")
    assert "No upload: the picture was on the card" in item(panel, 2).toolTip(transfers)
    assert "Upload: 1.000 ms" in item(panel, 3).toolTip(transfers)

    for each in (
        result(10.0),
        gpu_result("tuned", 0.05, 6.0),
        gpu_result("shared", 0.5, 2.0),
    ):
        panel.add_result(each)
        panel.add_result(each)
    assert item(panel, 2).font(PARTS + 1).bold(), "the fastest kernel"
    assert not item(panel, 2).font(PARTS + 2).bold()
    assert item(panel, 0).font(PARTS + 2).bold(), "the fastest in all"


def test_runs_with_other_transfers_are_measured_apart(panel: TimingPanel) -> None:
    add(panel, result(10.0), gpu_result("tuned", 0.1, 1.8))
    panel.add_result(gpu_result("tuned", 0.1, 1.8, upload=2.0))
    assert column(panel, "Transfers ms")[:2] == ["3.800 ↑↓", "1.800 ↓"]
    assert column(panel, "Speed-up of total")[:2] == [
        "about 2.5× over CPU serial",
        "about 5× over CPU serial",
    ]
    select(panel, 1)
    panel.compare_with_selected()
    assert column(panel, "Speed-up of total")[:2] == ["–", "baseline"], "the same level"


def test_repeats_of_a_kernel_count_each(panel: TimingPanel) -> None:
    add(panel, result(10.0), gpu_result("tuned", 0.2, 2.0, repeats=(0.1, 0.2, 0.4)))
    tip = item(panel, 0).toolTip(HEADINGS.index("Kernel ms"))
    assert tip == "GPU tuned, kernel: 0.2000 ms, median of 3 (0.1000 to 0.4000 ms)"
    assert column(panel, "Speed-up of kernel")[0] == "about 45× over CPU serial"


def test_kernels_that_were_warmed_up_count_in_a_first_run(panel: TimingPanel) -> None:
    add(panel, result(10.0))
    cold = gpu_result("tuned", 0.2, 2.0, upload=1.0, repeats=(0.1, 0.2, 0.4))
    warm = replace(cold, stages=(Stage("warm-up", 1e-3, counted=False), *cold.stages))
    panel.add_result(warm)
    assert column(panel, "Repeats")[0] == "first run"
    assert column(panel, "Speed-up of kernel")[0] == "about 45× over CPU serial"
    assert column(panel, "Speed-up of total")[0] == "–"
    panel.clear()
    panel.add_result(replace(result(3.0), first=True))
    assert column(panel, "Repeats") == ["first run"], "its code was new, says the run"


def test_block_sizes_are_levels_of_their_own(panel: TimingPanel) -> None:
    add(panel, result(10.0), gpu_result("shared", 1.0, 1.0))
    add(panel, gpu_result("shared", 2.0, 1.0, block=(16, 16)))
    assert column(panel, "Run on")[::2] == ["GPU shared 16×16", "GPU shared", "CPU serial"]
    assert column(panel, "Speed-up of kernel")[::2] == [
        "about 4.5× over CPU serial",
        "about 9× over CPU serial",
        "baseline",
    ]


def test_a_bar_shows_kernel_transfers_and_the_rest(panel: TimingPanel) -> None:
    panel.resize(1600, 200)
    panel.add_result(gpu_result("tuned", 5.0, 2.0, upload=2.9))
    shown = item(panel, 0).data(PARTS, bars.BARS)
    assert [name for name, _, _ in shown] == ["kernel", "transfers", "other stages"]
    assert [round(stop, 2) for _, _, stop in shown] == [0.5, 0.99, 1.0]
    tree = panel.findChild(QTreeWidget, "timingRuns")
    tree.clearSelection()
    area = tree.visualItemRect(item(panel, 0))
    left, width = tree.columnViewportPosition(PARTS), tree.columnWidth(PARTS)
    drawn = tree.viewport().grab().toImage()
    found = [
        drawn.pixelColor(left + round(share * width), area.center().y()) for share in (0.25, 0.7)
    ]
    assert found == [kernel_fill(panel.palette()), transfers_fill(panel.palette())]
    assert kernel_fill(panel.palette()).lightness() > transfers_fill(panel.palette()).lightness()
    legend = panel.findChild(QWidget, "timingLegend")
    assert legend.isVisible()
    assert legend.accessibleName().endswith("light kernel, dark transfers, grey other stages")


def test_overlapped_transfers_are_in_brackets(panel: TimingPanel) -> None:
    request = result().request
    stages = (
        Stage("upload", 3e-3, overlapped=True, counted=False),
        Stage("kernel", 8e-3, overlapped=True, counted=False),
        Stage("download", 4e-3, overlapped=True, counted=False),
        Stage("slabs", 9e-3),
    )
    panel.add_result(Result(request, request.image, "gpu", "tuned", stages))
    assert column(panel, "Kernel ms") == ["8.000"]
    assert column(panel, "Transfers ms") == ["(7.000 ↑↓)"]
    parts = [(part.name, round(1e3 * part.seconds, 6)) for part in panel.shown_runs[0].parts]
    assert parts == [("kernel", 8), ("transfers", 1), ("other stages", 0)]


@pytest.mark.parametrize("heading", ["Kernel ms", "Total ms", "Speed-up of kernel", "Run on"])
def test_a_click_on_a_heading_sorts(qtbot: QtBot, panel: TimingPanel, heading: str) -> None:
    panel.resize(1600, 300)
    add(panel, result(10.0), gpu_result("tuned", 0.05, 6.0), gpu_result("shared", 0.5, 2.0))
    tree = panel.findChild(QTreeWidget, "timingRuns")
    header, heading_item = tree.header(), tree.headerItem()
    number = HEADINGS.index(heading)
    place = QPoint(header.sectionViewportPosition(number) + 5, header.height() // 2)
    orders = []
    for _ in range(2):
        qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)
        titles = [heading_item.text(place).replace("\n", " ") for place in range(len(HEADINGS))]
        (mark,) = (title for title in titles if title[-1] in "▾▴")
        assert mark[:-2] == heading
        cells = column(panel, heading)
        if heading.endswith("ms"):
            values = [float(cell) for cell in cells]
            assert values == sorted(values, reverse=mark.endswith("▾"))
        orders.append(cells)
        select(panel, 0)
        assert (
            panel.findChild(QLabel, "timingTitle")
            .toolTip()
            .startswith(f"Run {panel.shown_runs[0].number}:")
        )
    assert orders[0] == orders[1][::-1]


def test_another_baseline_can_be_chosen(qtbot: QtBot, panel: TimingPanel) -> None:
    add(panel, result(10.0), result(4.0, level="parallel"))
    add(panel, gpu_result("tuned", 0.4, 0.5))
    select(panel, 2)
    qtbot.mouseClick(panel.findChild(QAbstractButton, "timingCompare"), Qt.MouseButton.LeftButton)
    assert column(panel, "Speed-up of total")[::2] == [
        "about 4× over CPU parallel",
        "baseline",
        "about 0.4× over CPU parallel",
    ]
    select(panel, 4)
    panel.findChild(QAction, "timingCompareAction").trigger()
    assert column(panel, "Speed-up of total")[4] == "baseline"


def test_what_cannot_be_a_baseline_is_not_offered(panel: TimingPanel) -> None:
    compare = panel.findChild(QAbstractButton, "timingCompare")
    add(panel, result(10.0))
    assert not compare.isEnabled(), "nothing else to compare with"
    panel.add_result(result(4.0, level="parallel"))
    assert not compare.isEnabled(), "a first run"
    panel.add_result(result(4.0, level="parallel"))
    assert compare.isEnabled()
    select(panel, 2)
    assert not compare.isEnabled(), "it is the baseline"


def test_each_kind_of_work_has_its_own_baseline(panel: TimingPanel) -> None:
    for size in (3, 5):
        add(panel, result(10.0 * size, size=size), result(10.0, size=size, level="parallel"))
    select(panel, 0)
    panel.compare_with_selected()
    assert column(panel, "Speed-up of total")[::2] == [
        "baseline",
        "about 0.2× over CPU parallel",
        "about 3× over CPU serial",
        "baseline",
    ]


@pytest.mark.slow
def test_a_full_list_keeps_baselines(panel: TimingPanel) -> None:
    add(panel, result(10.0), result(4.0, level="parallel"))
    for width in range(1, MAX_RUNS + 1):
        panel.add_result(result(width=width))
    numbers = [int(number) for number in column(panel, "No.")]
    assert len(numbers) == MAX_RUNS
    assert numbers[-2:] == [2, 1], "serial code; the runs in parallel went"


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


@pytest.mark.slow
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
    assert column(panel, "Speed-up of total")[-1] == "baseline"
    select(panel, KEPT_RESULTS)
    with qtbot.assertNotEmitted(panel.resultActivated):
        qtbot.keyClick(panel.findChild(QTreeWidget, "timingRuns"), Qt.Key.Key_Return)


@pytest.mark.slow
def test_large_images_are_dropped_sooner(
    panel: TimingPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "KEPT_BYTES", 2_500_000)
    images = []
    for _ in range(4):
        one = result()  # a million bytes: input and output
        images.append(weakref.ref(one.image.pixels))
        panel.add_result(one)
    del one
    gc.collect()
    assert [image() is not None for image in images] == [False, False, True, True]
    monkeypatch.setattr(runs, "KEPT_BYTES", 1)
    newest = result()
    panel.add_result(newest)
    gc.collect()
    assert not any(image() is not None for image in images)
    assert panel.shown_runs[0].result is newest


def test_clear(panel: TimingPanel) -> None:
    panel.add_result(result())
    panel.findChild(QAction, "timingClearAction").trigger()
    assert rows(panel, "timingRuns") == rows(panel, "timingStages") == []
    assert panel.findChild(QLabel, "timingTitle").text() == "No run yet."
    panel.add_result(result(5.0))
    assert column(panel, "No.") == ["2"]
    assert column(panel, "Repeats") == ["1 run"], "what was warmed up stays so"


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
    assert all(line.count("\t") == len(HEADINGS) - 3 for line in lines)


def test_no_time_at_all_is_no_crash(panel: TimingPanel) -> None:
    add(panel, result(0.0), result(0.0, level="parallel"))
    assert column(panel, "Speed-up of total") == ["–", "–", "baseline", "–"]


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
    assert rows["Kernel"].toolTip(1) == "2.000 ms, median of 3 (1.000 to 4.000 ms)"


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
    assert panel.findChild(QLabel, "timingTotal").text().startswith("10.00 ms")
    assert rows(panel, "timingStages") == [
        ["Slabs", "9.000", "90%"],
        ["Convert", "1.000", "10%"],
        ["Upload", "3.000", "overlapped"],
        ["Kernel", "8.000", "overlapped"],
        ["Download", "4.000", "overlapped"],
        ["Compile", "1,000", "not counted"],
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
    switch = panel.findChild(QAbstractButton, "timingShowLine")
    switch.setFocus()
    qtbot.keyClick(switch, Qt.Key.Key_Space)
    line = panel.findChild(TimeLine)
    qtbot.waitUntil(line.isVisible)
    return line


def test_the_time_line_draws_stages_by_start_and_length(qtbot: QtBot, panel: TimingPanel) -> None:
    panel.resize(1600, 260)
    panel.add_result(timed(*RUN))
    line = show_line(qtbot, panel)
    assert not panel.findChild(QTreeWidget, "timingStages").isVisible()
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
    assert line.accessibleDescription().startswith("Prepare: 1.000 ms, from 0.000 ms; Allocate:")
    qtbot.mouseClick(panel.findChild(QAbstractButton, "timingShowLine"), Qt.MouseButton.LeftButton)
    assert panel.findChild(QTreeWidget, "timingStages").isVisible()


def test_the_time_line_follows_the_selected_run(qtbot: QtBot, panel: TimingPanel) -> None:
    panel.add_result(timed(*RUN))
    panel.add_result(timed(Stage("compute", 1e-3), device="cpu"))
    line = show_line(qtbot, panel)
    assert [lane.name for lane in line.lanes] == ["Compute"]
    select(panel, 1)
    assert len(line.lanes) == 5
    panel.clear()
    assert line.lanes == []


def test_compiling_does_not_dwarf_the_rest(qtbot: QtBot, panel: TimingPanel) -> None:
    panel.resize(1600, 260)
    compiling = Stage("compile", 2.0, counted=False, start=1e-3)
    late = [replace(stage, start=stage.start + 2.0) for stage in RUN[1:]]
    panel.add_result(timed(RUN[0], compiling, *late))
    line = show_line(qtbot, panel)
    lanes = {lane.name: lane for lane in line.lanes}
    width = {name: line.bar_rect(lane, lane.bars[0]).width() for name, lane in lanes.items()}
    assert width["Kernel"] == pytest.approx(4 * width["Prepare"])
    assert width["Compile"] < width["Kernel"]
    axis = line._axis
    assert axis.place(0.0) == 0
    assert axis.place(axis.end) == pytest.approx(1)
    assert [text for _, text in axis.ticks()] == [
        "0 ms",
        *(f"{2000 + number} ms" for number in (2, 4, 6, 8, 10)),
    ]
    assert lanes["Compile"].counted is False


def test_each_kernel_of_a_plan_has_its_line_and_its_lane(qtbot: QtBot, panel: TimingPanel) -> None:
    kernels = (KernelTime("nlm_global_weights", 3e-3), KernelTime("nlm_global_mean", 1e-3))
    panel.add_result(timed(replace(RUN[3], kernels=kernels)))
    assert rows(panel, "timingStages") == [
        ["Kernel", "4.000", "100%"],
        ["    nlm_global_weights", "3.000", ""],
        ["    nlm_global_mean", "1.000", ""],
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
    pieces = (Part(0, 1e-3, 2e-3), Part(1, 1e-3, 1e-3), Part(0, 5e-3, 1e-3))
    stage = Stage("kernel", 3e-3, counted=False, overlapped=True, parts=pieces)
    first, second = time_line_lanes([stage])
    assert (first.name, first.seconds, len(first.bars)) == ("Kernel, GPU 0", pytest.approx(3e-3), 2)
    assert (second.name, len(second.bars)) == ("Kernel, GPU 1", 1)
    assert first.counted, "overlapped stages are no rest"


def test_a_low_time_line_scrolls(qtbot: QtBot, panel: TimingPanel) -> None:
    panel.resize(1600, 130)
    panel.add_result(timed(*RUN))
    line = show_line(qtbot, panel)
    qtbot.waitUntil(lambda: line.verticalScrollBar().maximum() > 0)
    assert line.lane_at(1).name == "Prepare"
    line.verticalScrollBar().setValue(line.verticalScrollBar().maximum())
    foot = line.viewport().height() - line._row()
    assert line.lane_at(foot - 2).name == "Download"
