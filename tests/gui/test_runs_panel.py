"""The panel of runs: the strip, the table, speed-ups, the keyboard."""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QModelIndex, QPoint, QRect, Qt
from PySide6.QtGui import (
    QAction,
    QColor,
    QFontMetrics,
    QGuiApplication,
    QImage,
    QKeySequence,
    QPainter,
)
from PySide6.QtWidgets import QApplication, QComboBox, QListWidget, QTreeWidget, QWidget
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.engine.request import Request
from kernelscope.engine.result import Judgement, Result
from kernelscope.engine.timing import Repeats, Stage
from kernelscope.gui.docks import runs_panel
from kernelscope.gui.docks.bars import part_colour
from kernelscope.gui.docks.runs_panel import COLUMN_NAMES, PARTS, SPEED_UP, SPREAD, RunsPanel
from kernelscope.gui.model.gallery import Gallery
from kernelscope.gui.model.runs import KERNEL, OTHER, TRANSFERS, Run
from kernelscope.gui.widgets import tiles
from kernelscope.gui.widgets.tables import BARS
from kernelscope.gui.widgets.theme import kernel_fill, quiet_text, transfers_fill
from kernelscope.gui.widgets.tiles import TileLine, draw_lines
from kernelscope.images.image import Image
from kernelscope.images.judging.metrics import Quality
from kernelscope.schema.borders import Border
from kernelscope.schema.levels import colour

FILTER = filters.get("mean")


@pytest.fixture
def panel(qtbot: QtBot) -> RunsPanel:
    panel = RunsPanel(Gallery())
    qtbot.addWidget(panel)
    panel.resize(1700, 320)
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
    image = Image.from_array(np.full((500, width), value, np.uint8), "flat")
    request = Request.create(image, FILTER.id, {"size": size}, **options)
    seconds = milliseconds / 1e3
    stages = (
        Stage("prepare", 0.1 * seconds),
        Stage("compile", 2.0, counted=False),
        Stage("compute", 0.9 * seconds),
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
    image = Image.from_array(np.zeros((500, 1000), np.uint8), "flat")
    request = Request.create(image, FILTER.id, {"size": 3}, **options)
    stages = [
        *([Stage("upload", upload / 1e3)] if upload else []),
        Stage("kernel", kernel / 1e3, repeats=tuple(each / 1e3 for each in repeats)),
        Stage("download", download / 1e3),
        Stage("convert", 1e-4),
    ]
    return Result(request, image, "gpu", level, tuple(stages))


def measured(each: Result, *milliseconds: float) -> Result:
    """Return a result as a measured run of these totals; computing is nine tenths of them."""
    totals = tuple(time / 1e3 for time in milliseconds)
    return replace(each, repeats=Repeats(totals, tuple(0.9 * time for time in totals)))


def with_psnr(each: Result, psnr: float) -> Result:
    before, after = (Quality(1.0, 1.0, value, 0.9) for value in (psnr - 3, psnr))
    return replace(each, quality=Judgement(before, after))


def add(panel: RunsPanel, *results: Result) -> list[Run]:
    """Add runs to the gallery; the last one is then on top."""
    gallery = panel.gallery
    runs = []
    for each in results:
        run = gallery.add(each)
        gallery.keep(run, gallery.examine(run))
        runs.append(run)
    panel.refresh()
    return runs


def twice(panel: RunsPanel, *results: Result) -> list[Run]:
    """Add each result twice: the first run of its kind is measured by nobody."""
    return add(panel, *(each for each in results for _ in range(2)))


def column(panel: RunsPanel, title: str) -> list[str]:
    """Return the cells under a heading, from the text that is copied."""
    header, *lines = (line.split("\t") for line in panel.table.text().splitlines())
    return [line[header.index(title)] for line in lines]


def cell(panel: RunsPanel, row: int, column: int = 0) -> QModelIndex:
    """Return a cell of the n-th run in the table."""
    rows = panel.table.rows
    return rows.index(rows.places()[row][0], column)


def tip(panel: RunsPanel, row: int, column: int) -> str:
    """Return the tooltip of a cell."""
    return str(cell(panel, row, column).data(Qt.ItemDataRole.ToolTipRole))


def is_bold(panel: RunsPanel, row: int) -> bool:
    """Return whether the speed-up of the n-th run is bold."""
    font = cell(panel, row, SPEED_UP).data(Qt.ItemDataRole.FontRole)
    return font is not None and bool(font.bold())


def headings(panel: RunsPanel) -> list[str]:
    """Return the titles of the columns, as they are shown."""
    model = panel.table.model()
    count = range(len(COLUMN_NAMES))
    return [model.headerData(number, Qt.Orientation.Horizontal) for number in count]


def groups(panel: RunsPanel) -> list[tuple[str, int]]:
    """Return the text of each group and how many rows it has."""
    table, found = panel.table, list[tuple[str, int]]()
    for row in range(table.model().rowCount()):
        if table.isFirstColumnSpanned(row, QModelIndex()):
            found.append((table.model().index(row, 0).data(), 0))
        else:
            found[-1] = found[-1][0], found[-1][1] + 1
    return found


# The table -----------------------------------------------------------------------------


def test_runs_stand_in_groups_of_equal_work(panel: RunsPanel) -> None:
    add(panel, result(), result(size=5), result(level="parallel"))
    assert groups(panel) == [
        (f"{FILTER.name}  3×3  reflect border  –  flat, 1000×500", 2),
        (f"{FILTER.name}  5×5  reflect border  –  flat, 1000×500", 1),
    ]
    assert column(panel, "Run") == ["3", "1", "2"]
    assert column(panel, "Run on") == ["CPU parallel", "CPU serial", "CPU serial"]


def test_times_have_few_digits_and_their_unit(panel: RunsPanel) -> None:
    add(panel, result(15972.922), result(1.2587, size=5), result(0.03125, size=7))
    assert column(panel, "Total") == ["31.3 µs", "1.26 ms", "16.0 s"]


def test_the_bars_take_the_room_and_compare_within_a_group(panel: RunsPanel) -> None:
    add(panel, result(10.0), result(2.5, level="parallel"), result(1.0, size=5))
    widths = [panel.table.columnWidth(n) for n in range(len(COLUMN_NAMES))]
    panel.resize(1740, 320)
    wider = [panel.table.columnWidth(n) for n in range(len(COLUMN_NAMES))]
    assert [n for n, (a, b) in enumerate(zip(widths, wider, strict=True)) if a != b] == [PARTS]
    ends = [cell(panel, row, PARTS).data(BARS)[-1][2] for row in range(3)]
    assert ends == pytest.approx([1.0, 0.25, 1.0])


def test_a_bar_shows_kernel_transfers_and_the_rest(panel: RunsPanel) -> None:
    add(panel, gpu_result("tuned", 5.0, 2.0, upload=2.9))
    shown = cell(panel, 0, PARTS).data(BARS)
    parts, palette = (KERNEL, TRANSFERS, OTHER), panel.palette()
    assert [fill for fill, _, _ in shown] == [part_colour(each, palette) for each in parts]
    assert [round(stop, 2) for _, _, stop in shown] == [0.5, 0.99, 1.0]
    table = panel.table
    table.clearSelection()
    area = table.visualRect(cell(panel, 0))
    left, width = table.columnViewportPosition(PARTS), table.columnWidth(PARTS)
    drawn = table.viewport().grab().toImage()
    found = [
        drawn.pixelColor(left + round(share * width), area.center().y()) for share in (0.25, 0.7)
    ]
    assert found == [kernel_fill(panel.palette()), transfers_fill(panel.palette())]
    legend = panel.findChild(QWidget, "timingLegend")
    assert legend.isVisible()
    panel.resize(700, 320)  # room for the pictures alone, which have no bars
    panel.refresh()
    assert not table.isVisible()
    assert not legend.isVisible()


def test_a_level_has_its_colour_and_its_name(panel: RunsPanel) -> None:
    add(panel, gpu_result("shared", 1.0, 1.0))
    where = cell(panel, 0, runs_panel.WHERE)
    square = where.data(Qt.ItemDataRole.DecorationRole).pixmap(6, 6).toImage()
    assert square.pixelColor(1, 1) == QColor(colour("shared"))
    assert where.data() == "GPU shared memory"


@pytest.mark.parametrize("heading", ["Run", "Total", "PSNR"])
def test_a_click_on_a_heading_sorts_groups_and_rows(
    qtbot: QtBot, panel: RunsPanel, heading: str
) -> None:
    add(
        panel,
        with_psnr(result(10.0), 30.0),
        with_psnr(result(2.0, level="parallel"), 30.0),
        with_psnr(result(5.0, size=5), 33.5),
    )
    header = panel.table.header()
    number = COLUMN_NAMES.index(heading)
    place = QPoint(header.sectionViewportPosition(number) + 5, header.height() // 2)
    orders = []
    for _ in range(2):
        qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)
        orders.append(column(panel, "Run"))
        (mark,) = (t for t in headings(panel) if t[-1] in "▾▴")
        assert mark[:-2] == heading
    expected = {"Run": ["1", "2", "3"], "Total": ["2", "1", "3"], "PSNR": ["1", "2", "3"]}[heading]
    assert expected in orders
    assert orders[0] != orders[1]


def test_quality_names_its_reference(qtbot: QtBot, panel: RunsPanel) -> None:
    truth = Image.from_array(np.zeros((500, 1000), np.uint8), "clean.png")
    made = with_psnr(result(), 30.0)
    add(panel, replace(made, request=replace(made.request, reference=truth)))
    for name, gain in (("PSNR", "+3.00 dB by the run. "), ("SSIM", "")):
        found = tip(panel, 0, COLUMN_NAMES.index(name))
        assert found == f"{gain}Reference: clean.png"


def test_copy_gives_the_whole_table_with_the_filter(qtbot: QtBot, panel: RunsPanel) -> None:
    add(panel, result(), result(size=5))
    panel.table.setFocus()
    window_shortcut = QAction(panel)
    window_shortcut.setShortcut(QKeySequence.StandardKey.Copy)
    panel.addAction(window_shortcut)
    with qtbot.assertNotEmitted(window_shortcut.triggered):
        qtbot.keyClick(panel.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert len(lines) == 3
    assert {line.count("\t") for line in lines} == {len(COLUMN_NAMES)}
    assert "mask size 5 px" in lines[1]


# Speed-ups -----------------------------------------------------------------------------


def test_the_same_work_at_the_same_level_is_never_a_speed_up(panel: RunsPanel) -> None:
    add(panel, *(result(milliseconds) for milliseconds in (31.2, 10.0, 8.0, 12.0)))
    assert column(panel, "Speed-up") == ["–"] * 4
    add(panel, result(4.0, level="parallel"))
    gains = dict(zip(column(panel, "Run"), column(panel, "Speed-up"), strict=True))
    assert gains == {"5": "–", "4": "baseline", "3": "–", "2": "–", "1": "–"}
    assert "compared with run 4" in tip(panel, 2, SPEED_UP)


def test_measured_runs_at_two_levels_are_compared_at_once(panel: RunsPanel) -> None:
    add(
        panel,
        measured(result(10.0), 9.0, 10.0, 11.0),
        measured(result(2.0, level="parallel"), 2.1, 2.0, 1.9),
    )
    assert column(panel, "Speed-up") == ["5.00×", "baseline"]
    assert column(panel, "Kernel speed-up") == ["5.00×", "baseline"]
    assert column(panel, "Spread") == ["± 5 %, 3 runs", "± 10 %, 3 runs"]
    assert is_bold(panel, 0)
    assert tip(panel, 0, SPEED_UP).splitlines() == [
        "total: CPU serial (run 1) / CPU parallel (run 2) = 5.00",
        "CPU serial (run 1): 10.0 ms, median of 3 (9.00 ms to 11.0 ms)",
        "CPU parallel (run 2): 2.00 ms, median of 3 (1.90 ms to 2.10 ms)",
    ]


def test_each_row_is_compared_with_the_newest_serial_one(panel: RunsPanel) -> None:
    quick = measured(result(2.0, level="parallel"), *[2.0] * 3)
    add(panel, measured(result(10.0), *[10.0] * 3), quick, measured(result(20.0), *[20.0] * 3))
    assert column(panel, "Run") == ["3", "2", "1"]
    assert column(panel, "Speed-up") == ["baseline", "10.0×", "–"]
    one = listed(panel)[2]
    panel.gallery.choose(one)
    panel.refresh()
    assert column(panel, "Speed-up") == ["–", "5.00×", "baseline"]
    panel.gallery.remove(one)
    panel.refresh()
    assert column(panel, "Speed-up") == ["baseline", "10.0×"]


@pytest.mark.parametrize(
    ("serial", "parallel", "tuned", "expected"),
    [
        ((100, 100, 100), (10, 10, 10), (5, 5, 5), "GPU tuned"),
        ((60, 100, 140), (10, 10, 10), (5, 5, 5), ""),  # the baseline varies
        ((100, 100, 100), (10, 10, 10), (3, 5, 9), ""),  # its own vary
        ((100, 100, 100), (4, 10, 30), (5, 5, 5), ""),  # a rival's reach it
        ((100, 100, 100), (8, 10, 30), (5, 5, 5), "GPU tuned"),  # a slow one's vary
        ((4, 4, 4), (10, 10, 10), (5, 5, 5), "CPU serial"),
        ((2, 4, 4.5), (10, 10, 10), (5, 5, 5), ""),
    ],
)
def test_nothing_is_bold_while_times_vary(
    panel: RunsPanel,
    serial: tuple[float, ...],
    parallel: tuple[float, ...],
    tuned: tuple[float, ...],
    expected: str,
) -> None:
    of_levels = {"serial": serial, "parallel": parallel, "tuned": tuned}
    runs = [measured(result(t[1], level=level), *t) for level, t in of_levels.items()]
    add(panel, *runs[:2], replace(runs[2], device="gpu"))
    texts = column(panel, "Run on")
    bold = [text for row, text in enumerate(texts) if is_bold(panel, row)]
    assert bold == ([expected] if expected else [])


def test_a_first_run_is_marked_and_compared_with_nothing(panel: RunsPanel) -> None:
    add(panel, result(90.0), result(8.0, level="parallel"))
    assert column(panel, "Spread") == ["first run", "first run"]
    assert column(panel, "Speed-up") == ["–", "–"]
    assert tip(panel, 0, SPREAD) == runs_panel.FIRST_HELP
    add(panel, result(2.0, level="parallel"), result(10.0))
    assert column(panel, "Spread") == ["one run", "one run", "first run", "first run"]
    assert column(panel, "Speed-up") == ["baseline", "≈ 5.00×", "–", "–"]


def test_a_slow_run_counts_although_it_is_the_only_one(panel: RunsPanel) -> None:
    slow = replace(result(60_000.0), repeats=Repeats((60.0,), (54.0,)), first=True)
    add(panel, slow, measured(result(2000.0, level="parallel"), 2000.0))
    assert column(panel, "Spread") == ["one run", "one run"]
    assert column(panel, "Speed-up") == ["≈ 30.0×", "baseline"], "not sure: one run each"


def test_the_median_of_an_even_number_of_repeats_was_measured(panel: RunsPanel) -> None:
    (run,) = add(panel, measured(result(2.0), 2.0, 6.0))
    assert run.totals.median == run.seconds
    assert column(panel, "Spread") == ["times vary, 2 runs"]
    assert tip(panel, 0, SPREAD).startswith("± 100 %, times vary: other programs")
    assert tip(panel, 0, SPREAD).endswith("2.00 ms, median of 2 (2.00 ms to 6.00 ms)")


def test_repeats_that_overlap_are_toned_down(panel: RunsPanel) -> None:
    add(
        panel,
        measured(result(14.0), 11.0, 14.0, 15.0),
        measured(result(11.0, level="parallel"), 9.0, 11.0, 12.0),
    )
    gain = cell(panel, 0, SPEED_UP)
    assert gain.data() == "≈ 1.27×"
    assert QColor(gain.data(Qt.ItemDataRole.ForegroundRole)) == quiet_text(panel.palette())
    assert "may be chance" in tip(panel, 0, SPEED_UP)
    assert gain.data(Qt.ItemDataRole.FontRole) is None


@pytest.mark.parametrize(
    "other",
    [{"size": 5}, {"width": 999}, {"value": 7}, {"border": Border.WRAP}],
    ids=str,
)
def test_only_the_same_work_is_compared(panel: RunsPanel, other: dict[str, Any]) -> None:
    twice(panel, result(10.0), result(5.0, level="parallel", **other))
    assert column(panel, "Speed-up") == ["–"] * 4
    assert "Nothing else did the same work" in tip(panel, 0, SPEED_UP)


def test_runs_with_other_transfers_are_measured_apart(panel: RunsPanel) -> None:
    twice(panel, result(10.0), gpu_result("tuned", 0.1, 1.8))
    add(panel, gpu_result("tuned", 0.1, 1.8, upload=2.0))
    assert column(panel, "Transfers")[:2] == ["3.80 ms ↑↓", "1.80 ms ↓"]
    assert column(panel, "Speed-up")[:2] == ["≈ 2.50×", "≈ 5.00×"]
    transfers = COLUMN_NAMES.index("Transfers")
    assert "No upload: the picture was on the card" in tip(panel, 1, transfers)
    assert "Upload: 2.00 ms" in tip(panel, 0, transfers)
    panel.gallery.choose(listed(panel)[1])
    panel.refresh()
    assert column(panel, "Speed-up")[:2] == ["–", "baseline"], "the same level"


def test_repeats_of_a_kernel_count_each(panel: RunsPanel) -> None:
    twice(panel, result(10.0), gpu_result("tuned", 0.2, 2.0, repeats=(0.1, 0.2, 0.4)))
    found = tip(panel, 0, runs_panel.KERNEL_TIME)
    assert found.startswith("GPU tuned, kernel: 200 µs, median of 3 (100 µs to 400 µs)")
    assert column(panel, "Kernel speed-up")[0] == "≈ 45.0×"


def test_block_sizes_are_levels_of_their_own(panel: RunsPanel) -> None:
    twice(panel, result(10.0), gpu_result("shared", 1.0, 1.0))
    twice(panel, gpu_result("shared", 2.0, 1.0, block=(16, 16)))
    assert column(panel, "Run on")[::2] == [
        "GPU shared memory 16×16", "GPU shared memory", "CPU serial",
    ]  # fmt: skip
    assert column(panel, "Kernel speed-up")[::2] == ["≈ 4.50×", "≈ 9.00×", "baseline"]


def test_overlapped_transfers_are_in_brackets(panel: RunsPanel) -> None:
    request = result().request
    stages = (
        Stage("upload", 3e-3, overlapped=True, counted=False),
        Stage("kernel", 8e-3, overlapped=True, counted=False),
        Stage("download", 4e-3, overlapped=True, counted=False),
        Stage("slabs", 9e-3),
    )
    (run,) = add(panel, Result(request, request.image, "gpu", "tuned", stages))
    assert column(panel, "Kernel") == ["8.00 ms"]
    assert column(panel, "Transfers") == ["(7.00 ms ↑↓)"]
    parts = [(part.name, round(1e3 * part.seconds, 6)) for part in run.parts]
    assert parts == [("kernel", 8), ("transfers", 1), ("other stages", 0)]


def test_no_time_at_all_is_no_crash(panel: RunsPanel) -> None:
    twice(panel, result(0.0), result(0.0, level="parallel"))
    assert column(panel, "Speed-up") == ["–", "–", "baseline", "–"]


# The strip and both views --------------------------------------------------------------


def listed(panel: RunsPanel) -> list[Run]:
    return [run for _, run in panel.table.rows.places()]


def test_both_views_are_sorted_by_number_time_or_psnr(panel: RunsPanel) -> None:
    one, two, three = add(
        panel,
        with_psnr(result(5.0), 31.0),
        result(1.0, size=5),
        with_psnr(result(9.0, size=7), 33.0),
    )
    box = panel.findChild(QComboBox, "runsOrder")
    orders = {}
    for name in ("Fastest first", "Best PSNR first", "Newest first"):
        box.textActivated.emit(name)
        assert box.currentText() == name
        orders[name] = listed(panel)
    assert orders == {
        "Newest first": [three, two, one],
        "Fastest first": [two, one, three],
        "Best PSNR first": [three, one, two],
    }
    panel.table.header().setSortIndicator(SPREAD, Qt.SortOrder.AscendingOrder)
    assert box.currentText() == "", "a heading has another order"


def test_a_click_wants_a_run_and_a_second_with_control_a_pair(
    qtbot: QtBot, panel: RunsPanel
) -> None:
    one, two = add(panel, result(), result(size=5))
    view = panel.strip.viewport()
    places = [panel.strip.visualRect(cell(panel, n)).center() for n in (0, 1)]
    with qtbot.waitSignal(panel.wanted) as wanted:
        qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=places[1])
    assert wanted.args == [one]
    control = Qt.KeyboardModifier.ControlModifier
    with qtbot.waitSignal(panel.pair_wanted) as pair, qtbot.assertNotEmitted(panel.wanted):
        qtbot.mouseClick(view, Qt.MouseButton.LeftButton, control, places[0])
    assert pair.args == [one, two]
    assert panel.choice.selected == [two, one], "both views have one selection"


def test_a_click_on_a_row_wants_the_run_and_one_on_a_group_does_not(
    qtbot: QtBot, panel: RunsPanel
) -> None:
    (run,) = add(panel, result())
    table = panel.table
    area = table.visualRect(cell(panel, 0))
    with qtbot.waitSignal(panel.wanted) as wanted:
        qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=area.center())
    assert wanted.args == [run]
    assert panel.choice.selected == [run]
    heading = table.visualRect(table.model().index(0, 0))
    with qtbot.assertNotEmitted(panel.wanted):
        qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=heading.center())


def test_arrows_move_and_show_nothing(qtbot: QtBot, panel: RunsPanel) -> None:
    one, two = add(panel, result(), result(size=5))
    panel.choose(two)
    panel.strip.setFocus()
    with qtbot.assertNotEmitted(panel.wanted):
        qtbot.keyClick(panel.strip, Qt.Key.Key_Right)
    assert panel.current is one
    assert panel.choice.current is one
    assert panel.selected == [one]


def test_a_tile_names_only_the_settings_that_distinguish_it(panel: RunsPanel) -> None:
    one, two = add(panel, result(), result(size=5))
    words = cell(panel, 0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert words == f"Run 2, {FILTER.name}, 5×5, CPU serial, 10.0 ms, first run"
    two.name, two.starred = "the best", True
    panel.refresh()
    words = cell(panel, 0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert words.startswith("Run 2, the best, 5×5")
    assert words.endswith("starred")
    assert column(panel, "Run") == ["★ 2  the best", "1"]
    assert one.thumbnail is not None


def test_a_narrow_panel_shows_one_of_the_views(qtbot: QtBot, panel: RunsPanel) -> None:
    add(panel, result())
    assert panel.strip.isVisible()
    assert panel.table.isVisible()
    panel.resize(500, 200)
    switch = panel.findChild(QWidget, "runsTableSwitch")
    qtbot.waitUntil(lambda: not panel.table.isVisible())
    assert panel.strip.isVisible()
    qtbot.mouseClick(switch, Qt.MouseButton.LeftButton)
    assert panel.table.isVisible()
    assert not panel.strip.isVisible()
    assert panel.width() == 500


def test_the_list_is_bounded_and_keeps_baselines_and_stars(
    panel: RunsPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelscope.gui.model.runs.MAX_RUNS", 8)
    runs = twice(panel, result(10.0), result(4.0, level="parallel"))
    runs[3].starred = True
    add(panel, *(result(width=width) for width in range(10, 30)))
    numbers = sorted(run.number for run in listed(panel))
    assert len(numbers) == 8
    assert numbers[:2] == [2, 4], "the baseline and the star; the others went"


def test_no_widget_owns_runs(panel: RunsPanel) -> None:
    """Items of Qt with Python objects were destroyed while other threads ran, which crashed."""
    assert not panel.findChildren(QTreeWidget)
    assert not panel.findChildren(QListWidget)
    runs = add(panel, result(), result(size=5), result(level="parallel"))
    panel.choose(runs[0])
    gone = weakref.ref(runs.pop(0))
    deleted = gone()
    assert deleted is not None
    panel.gallery.remove(deleted)
    del deleted
    panel.refresh()
    panel.choose(runs[0])
    assert gone() is None, "nothing keeps a run that was removed"
    assert listed(panel) == [runs[1], runs[0]]
    assert panel.selected == [runs[0]]


@pytest.mark.parametrize(("letters", "behind"), [(40, ["CPU parallel"]), (2, [])])
def test_what_stands_behind_a_name_has_the_rest_of_its_line(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch, letters: int, behind: list[str]
) -> None:
    """*Unsharp mask* was cut to leave room for the level."""
    written: list[str] = []
    write = tiles._write

    def noted(painter: QPainter, cell: QRect, line: TileLine, ink: QColor) -> int:
        taken = write(painter, cell, line, ink)
        assert taken <= cell.width()
        written.append(line.text)
        return taken

    monkeypatch.setattr(tiles, "_write", noted)
    picture = QImage(900, 40, QImage.Format.Format_RGB32)
    painter = QPainter(picture)
    font = painter.font()
    font.setBold(True)
    name, metrics = "Unsharp mask", QFontMetrics(font)
    width = metrics.horizontalAdvance(name) + letters * metrics.averageCharWidth()
    lines = (TileLine(name, bold=True, behind="CPU parallel"),)
    draw_lines(painter, lines, QRect(0, 0, width, 40), QColor("black"), QColor("grey"))
    painter.end()
    assert written == [name, *behind]


def test_columns_follow_the_size_of_text(panel: RunsPanel) -> None:
    table = panel.table
    before, font = table.minimumSizeHint().width(), table.font()
    font.setPointSizeF(1.5 * font.pointSizeF())
    table.setFont(font)
    assert table.minimumSizeHint().width() > 1.2 * before
