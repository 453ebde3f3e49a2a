"""The ladder in the window: click, keys, all levels, recorded figures, hidden rungs."""

from __future__ import annotations

import threading
from html import escape
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QLabel,
    QPushButton,
    QSpinBox,
)
from pytestqt.qtbot import QtBot

from kernelscope.base.errors import AppError
from kernelscope.bench import recorded
from kernelscope.engine.backend import Availability
from kernelscope.engine.options import Device
from kernelscope.gui.docks.ladder import LadderTree, RungItem
from kernelscope.gui.model.ladder import AUTO, Agreement, KnownRung, Rung, RungPlace, Time
from kernelscope.gui.tools.kernel_viewer import KernelViewer
from kernelscope.gui.tools.level_dialog import LevelDialog
from kernelscope.gui.widgets.tables import BARS
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.image import Image
from kernelscope.schema.levels import CPU_LEVELS, Level
from kernelscope.teach.handbook import level_pictures
from kernelscope.teach.handbook.svg import Drawing
from tests.gui.helpers import FakeCpu, Opener, child, choose_place, load, offers, press, settle
from tests.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("repeats_runs")

SERIAL, PARALLEL = RungPlace(Device.CPU, "serial"), RungPlace(Device.CPU, "parallel")
TUNED = RungPlace(Device.GPU, "tuned")


def item_of(rungs: LadderTree, place: RungPlace) -> RungItem:
    item = rungs.rung_item(place)
    assert item is not None, place
    return item


def entry(window: MainWindow, place: RungPlace) -> KnownRung:
    """Return the rung as it is shown."""
    found = item_of(window.levels.ladder.rungs, place).entry
    assert found is not None
    return found


def click(window: MainWindow, place: RungPlace) -> None:
    rungs = window.levels.ladder.rungs
    item = item_of(rungs, place)
    rungs.scrollToItem(item)  # unfolds
    spot = rungs.visualItemRect(item).center()
    QTest.mouseClick(rungs.viewport(), Qt.MouseButton.LeftButton, pos=spot)


def measure(qtbot: QtBot, window: MainWindow, place: RungPlace) -> None:
    """Run a level by a click and wait for its time."""
    click(window, place)
    qtbot.waitUntil(lambda: entry(window, place).time is not None)


def explanation(window: MainWindow) -> str:
    """Return the text of *Why*, which has no loads while the levels are those of a processor."""
    labels = window.companions.why.findChildren(QLabel)
    return " ".join(each.text() for each in labels if not each.isHidden())


def note(window: MainWindow) -> str:
    return window.findChild(QLabel, "ladderNote").text()


@pytest.fixture
def ready(qtbot: QtBot, window: MainWindow, picture: Path) -> MainWindow:
    """Return a window without a GPU, with a picture and a filter of two levels."""
    load(qtbot, window, picture)
    window.find_gpu()
    qtbot.waitUntil(lambda: window.levels.entries()[-1].figure is not None)
    window.session.set_filter("mean")
    return window


def on_a_card(qtbot: QtBot, open_window: Opener, picture: Path) -> MainWindow:
    window = open_window(Availability(True, "a card"))
    window.find_gpu()
    load(qtbot, window, picture)
    qtbot.waitUntil(lambda: offers(window, "gpu"))
    window.session.set_filter("mean")
    return window


def test_keys_and_clicks_choose_and_run_levels_whose_times_go_with_the_settings(
    qtbot: QtBot, ready: MainWindow, cpu: FakeCpu
) -> None:
    rungs = ready.levels.ladder.rungs
    assert [item_of(rungs, each).isFirstColumnSpanned() for each in (AUTO, SERIAL)] == [True, False]
    rungs.setFocus()
    rungs.setCurrentItem(item_of(rungs, AUTO))
    QTest.keyClick(rungs, Qt.Key.Key_Down)
    QTest.keyClick(rungs, Qt.Key.Key_Down)
    assert ready.session.place == AUTO, "moving chooses nothing"
    QTest.keyClick(rungs, Qt.Key.Key_Space)
    assert ready.session.place == PARALLEL
    assert cpu.requests == []
    QTest.keyClick(rungs, Qt.Key.Key_Up)
    drawn: list[tuple[object, int]] = []
    rungs.model().dataChanged.connect(
        lambda first, last: drawn.append((rungs.itemFromIndex(first), last.column()))
    )
    QTest.keyClick(rungs, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: entry(ready, SERIAL).time is not None)
    assert (item_of(rungs, SERIAL), rungs.columnCount() - 1) in drawn, "the whole row, once"
    assert ready.session.place == SERIAL

    cpu.requests.clear()
    child(ready, QSpinBox, "sizeBox").setValue(5)
    qtbot.waitUntil(lambda: entry(ready, SERIAL).time is None)
    measure(qtbot, ready, SERIAL)
    assert {(each.options.device, each.options.level) for each in cpu.requests} == {SERIAL}
    assert ready.session.place == SERIAL
    assert ready.levels.ladder.rungs.chosen == SERIAL
    time = entry(ready, SERIAL).time
    assert time is not None
    assert time.repeats >= 3
    assert entry(ready, PARALLEL).time is None

    first = entry(ready, SERIAL).time
    size = child(ready, QSpinBox, "sizeBox")
    size.setValue(9)
    qtbot.waitUntil(lambda: entry(ready, SERIAL).time is None)
    size.setValue(5)
    qtbot.waitUntil(lambda: entry(ready, SERIAL).time == first)
    ready.session.set_filter("median")
    assert entry(ready, SERIAL).time is None, "other levels are offered, which is shown at once"
    ready.session.set_filter("mean")
    assert entry(ready, SERIAL).time == first


def test_l_runs_all_levels_once_and_compares_them(
    qtbot: QtBot, ready: MainWindow, cpu: FakeCpu
) -> None:
    choose_place(ready, "cpu", "parallel")
    press(qtbot, ready, "Ctrl+F5")
    qtbot.waitUntil(lambda: entry(ready, PARALLEL).parity is not None)
    qtbot.waitUntil(lambda: note(ready) == "")
    for place in (SERIAL, PARALLEL):
        assert entry(ready, place).time is not None
    reference = entry(ready, SERIAL).parity
    assert reference is not None
    assert reference.agreement is Agreement.REFERENCE
    parity = entry(ready, PARALLEL).parity
    assert parity is not None
    assert (parity.agreement, parity.reference) == (Agreement.EQUAL, "CPU serial")
    assert ready.statusBar().currentMessage() == "", "it named a run, which has ended"
    assert ready.session.place == PARALLEL, "the choice stays"
    shown = ready.session.subject.result
    assert shown is not None
    assert shown.level == "parallel", "and so does the output"
    assert ready.session.subject.is_current(ready.session.settings)

    shelf, result = ready.run_shelf, ready.session.pictures.result
    assert len(list(shelf.gallery)) > 1
    assert result is not None
    assert ready.runs.current is shelf.gallery.find(result)

    cpu.requests.clear()
    press(qtbot, ready, "Ctrl+F5")
    qtbot.waitUntil(lambda: note(ready) == "")
    assert cpu.requests == []


def test_esc_or_other_settings_end_the_race(qtbot: QtBot, ready: MainWindow, cpu: FakeCpu) -> None:
    measure(qtbot, ready, PARALLEL)
    cpu.go.clear()
    cpu.entered.clear()
    press(qtbot, ready, "Ctrl+F5")
    qtbot.waitUntil(cpu.entered.is_set)
    qtbot.waitUntil(lambda: note(ready).startswith("Running CPU serial"))
    assert "Esc stops" in note(ready)
    press(qtbot, ready, "Esc")
    qtbot.waitUntil(lambda: not ready.runner.busy)
    cpu.go.set()
    assert note(ready) == ""
    settle(qtbot, ready)
    assert not ready.runner.busy
    assert entry(ready, SERIAL).time is None

    cpu.go.clear()
    press(qtbot, ready, "Ctrl+F5")
    qtbot.waitUntil(lambda: note(ready).startswith("Running CPU serial"))
    child(ready, QSpinBox, "sizeBox").setValue(9)
    qtbot.waitUntil(lambda: not ready.runner.busy)
    cpu.go.set()
    assert note(ready) == ""
    assert entry(ready, SERIAL).time is None


def test_levels_that_take_too_long_are_stopped_and_told_apart(
    qtbot: QtBot, ready: MainWindow, cpu: FakeCpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comma, as in the name of one, does not separate them."""
    huang = Level("huang", "Serial, Huang", "", single=True)
    monkeypatch.setattr(cpu, "levels", lambda spec: (CPU_LEVELS[0], huang, CPU_LEVELS[1]))
    ready.session.set_filter("median")
    measure(qtbot, ready, PARALLEL)
    ready.levels.limit = 0.05
    cpu.go.clear()
    press(qtbot, ready, "Ctrl+F5")
    qtbot.waitUntil(lambda: note(ready).startswith("Not measured"))
    cpu.go.set()
    assert note(ready) == (
        "Not measured: CPU serial (stopped after 50 ms); CPU serial, Huang (stopped after "
        "50 ms). Click a level to run it."
    )
    assert not ready.runner.busy
    assert "Click to run" in entry(ready, SERIAL).remark
    measure(qtbot, ready, SERIAL)  # which has no limit


def test_compiling_does_not_count_towards_the_limit(
    qtbot: QtBot, ready: MainWindow, cpu: FakeCpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure(qtbot, ready, PARALLEL)
    run, compiling, compiled = cpu.run, threading.Event(), threading.Event()

    def compile_and_run(request: Any, level: Any, context: Any) -> object:
        compiling.wait(PATIENCE)
        context.progress("compile", 0.0)
        compiled.wait(PATIENCE)
        return run(request, level, context)

    def is_limited() -> bool:
        timers = ready.levels.findChildren(QTimer)
        return any(each.isActive() and each.interval() > 10_000 for each in timers)

    monkeypatch.setattr(cpu, "run", compile_and_run)
    cpu.go.clear()
    press(qtbot, ready, "Ctrl+F5")
    qtbot.waitUntil(lambda: note(ready).startswith("Running CPU serial"))
    assert is_limited()
    compiling.set()
    qtbot.waitUntil(lambda: not is_limited())
    assert note(ready).startswith("Running CPU serial")
    compiled.set()
    qtbot.waitUntil(is_limited)
    cpu.go.set()
    qtbot.waitUntil(lambda: note(ready) == "")


def test_a_level_that_fails_does_not_stop_the_others(
    qtbot: QtBot, ready: MainWindow, cpu: FakeCpu
) -> None:
    measure(qtbot, ready, PARALLEL)
    cpu.error = AppError("There is no memory left.", "Close something.")
    press(qtbot, ready, "Ctrl+F5")
    qtbot.waitUntil(lambda: note(ready).startswith("Not measured: CPU serial (There is no mem"))
    assert "no memory left" in entry(ready, SERIAL).remark


def test_times_go_with_the_runs_that_are_deleted(qtbot: QtBot, ready: MainWindow) -> None:
    measure(qtbot, ready, SERIAL)
    ready.run_shelf.delete()
    assert entry(ready, SERIAL).time is None


def test_the_levels_of_a_missing_card_are_folded_and_have_recorded_figures(
    ready: MainWindow,
) -> None:
    rungs = ready.levels.ladder.rungs
    fold, item = rungs.headings[Device.GPU], item_of(rungs, TUNED)
    assert item.parent() is fold
    assert not fold.isExpanded()
    rungs.setCurrentItem(fold)
    for expanded in (True, False, True):
        QTest.keyClick(rungs, Qt.Key.Key_Return)
        assert fold.isExpanded() is expanded
    assert ready.levels.ladder.sizeHint().height() > 100
    assert ready.levels.ladder.height() <= 210

    shown = entry(ready, TUNED)
    assert shown.figure is not None
    assert shown.time is None
    assert fold.text(0).splitlines()[0] == f"▾ No GPU: recorded on H100, {shown.figure.date}"
    assert shown.brief_time.endswith("/MP")  # beside times of the whole picture
    assert "Times for one megapixel, not for this picture" in fold.toolTip(0)
    assert all(line.strip("▾ ") in fold.toolTip(0) for line in fold.text(0).splitlines())
    for words in (
        "Recorded, not measured here",
        shown.figure.card,
        shown.figure.date,
        "mask size 3",
        "8 bit",
    ):
        assert words in item.toolTip(0)
        assert words in item.data(0, Qt.ItemDataRole.AccessibleTextRole)


def test_bars_are_as_long_as_the_times_and_name_their_scale(qtbot: QtBot) -> None:
    def known(number: int, **of: Any) -> KnownRung:
        level = CPU_LEVELS[number]
        return KnownRung(Rung(RungPlace(Device.CPU, level.id), level.name, "CPU", level), **of)

    tree = LadderTree()
    qtbot.addWidget(tree)
    times = [Time(each, 2 * each, 1, each, each) for each in (0.0553, 0.00265)]
    tree.show_entries([known(n, time=each) for n, each in enumerate(times)], SERIAL, {})
    for place, share in ((SERIAL, 1.0), (PARALLEL, 0.00265 / 0.0553)):
        item = tree.rung_item(place)
        assert item is not None
        assert [stop for _, _, stop in item.data(2, BARS)] == [pytest.approx(share)]
        assert "share of the longest time measured here" in item.toolTip(2)


def test_times_of_another_mask_are_marked_at_the_heading_and_each_level(
    qtbot: QtBot, ready: MainWindow
) -> None:
    rungs, mark = ready.levels.ladder.rungs, "⚠ Other settings: mask size 9, "
    fold, usual = rungs.headings[Device.GPU], rungs.palette().text().color()
    assert mark not in fold.text(0)
    assert fold.foreground(0).color() == usual
    ready.session.set_values("mean", {"size": 15})
    qtbot.waitUntil(lambda: mark in " ".join(fold.text(0).split()))
    assert fold.foreground(0).color() != usual
    assert "These are other settings: mask size 9, " in item_of(rungs, TUNED).toolTip(0)


def test_a_level_without_a_recorded_figure_says_so_and_where_to_see_it(
    qtbot: QtBot, ready: MainWindow
) -> None:
    constant = RungPlace(Device.GPU, "constant")
    ready.session.set_filter("median")
    qtbot.waitUntil(lambda: entry(ready, constant).remark != "")
    assert "recorded neither for these settings" in entry(ready, constant).remark
    name = item_of(ready.levels.ladder.rungs, constant).text(0)
    assert name == "○ Constant memory · see Custom mask"
    click(ready, constant)
    text = explanation(ready)
    for words in ("No NVIDIA driver", "recorded neither", "Custom mask shows it best"):
        assert words in text


def test_why_explains_a_level_and_leads_to_kernel_and_bench(
    qtbot: QtBot, ready: MainWindow, cpu: FakeCpu
) -> None:
    click(ready, TUNED)  # cannot run here, and says why
    assert cpu.requests == []
    why = ready.findChild(LevelDialog)
    assert why.isVisible()
    text = explanation(ready)
    for words in ("Tuned", "No NVIDIA driver was found.", "Recorded, not measured here", "H100"):
        assert words.lower() in text.lower()
    why.findChild(QPushButton, "levelKernel").click()
    viewer = ready.findChild(KernelViewer)
    assert viewer.isVisible()
    viewer.close()
    why.findChild(QPushButton, "levelXray").click()
    xray = ready.companions.xray
    assert xray is not None
    assert xray.findChild(QComboBox, "xrayLevel").currentText() == "Tuned"
    xray.close()
    why.findChild(QPushButton, "levelBench").click()
    bench = ready.companions.bench
    assert bench is not None
    figure = entry(ready, TUNED).figure
    assert figure is not None
    state = bench.findChild(QLabel, "benchState")
    qtbot.waitUntil(lambda: figure.path.name in state.text())
    bench.close()
    why.reject()
    press(qtbot, ready, "Ctrl+Shift+W")
    assert why.isVisible()
    assert ready.findChildren(LevelDialog) == [why]


def test_why_of_auto_explains_the_level_that_it_took(
    qtbot: QtBot, ready: MainWindow, cpu: FakeCpu
) -> None:
    press(qtbot, ready, "Ctrl+Shift+W")
    why = ready.companions.why
    assert why.windowTitle() == "Auto: CPU parallel – Mean"
    for words in ("Auto takes CPU parallel for the next run.", CPU_LEVELS[1].help):
        assert escape(words) in explanation(ready)
    ready.runner.run()
    qtbot.waitUntil(lambda: "Auto took CPU parallel for this output." in explanation(ready))
    assert "There is one device to choose: CPU." in explanation(ready)
    child(ready, QSpinBox, "sizeBox").setValue(7)
    qtbot.waitUntil(lambda: "Auto takes CPU parallel for the next run." in explanation(ready))
    why.reject()


def test_why_of_auto_has_the_reason_of_the_run_on_the_device_that_it_took(
    qtbot: QtBot, open_window: Opener, picture: Path
) -> None:
    window = on_a_card(qtbot, open_window, picture)
    press(qtbot, window, "Ctrl+Shift+W")
    assert window.companions.why.windowTitle() == "Auto: CPU parallel – Mean"
    assert "Auto chose the CPU, as usual for pictures of this size." in explanation(window)
    for _ in range(3):  # a first run says little about the cost
        window.runner.run()
        qtbot.waitUntil(lambda: not window.runner.busy)
    result = window.session.subject.result
    took = "CPU parallel" if result.device == "cpu" else "GPU tuned"
    assert result.notices[0].startswith("Auto chose the")
    words = escape(f"Auto took {took} for this output. {result.notices[0]}")
    qtbot.waitUntil(lambda: words in explanation(window))
    window.companions.why.reject()


def test_an_open_why_follows_settings_and_levels_and_stays_where_it_is(
    qtbot: QtBot, ready: MainWindow
) -> None:
    click(ready, TUNED)
    why = ready.companions.why
    settle(qtbot, ready)
    place = why.geometry()
    drawing = why.findChild(QLabel, "levelDrawing").pixmap().cacheKey()
    child(ready, QSpinBox, "sizeBox").setValue(15)
    qtbot.waitUntil(lambda: "mask size 9" in explanation(ready))
    assert why.findChild(QLabel, "levelDrawing").pixmap().cacheKey() != drawing
    ready.session.set_filter("median")
    qtbot.waitUntil(lambda: why.windowTitle() == "GPU tuned – Median")
    assert "Source of Median." in explanation(ready)
    ready.session.choose_place(SERIAL)
    assert why.windowTitle() == "CPU serial – Median"
    assert not why.findChild(QPushButton, "levelXray").isVisible()
    assert why.geometry() == place
    why.reject()
    ready.session.choose_place(PARALLEL)
    assert why.windowTitle() == "CPU serial – Median", "closed, it takes no time"


def test_the_drawing_of_a_level_is_about_the_open_picture(
    qtbot: QtBot, ready: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    real = level_pictures.draw

    def draw(plan: level_pictures.Planned) -> Drawing:
        drawn.append(f"{plan.filter.id} {plan.size} {plan.parameters['size']}")
        return real(plan)

    monkeypatch.setattr(level_pictures, "draw", draw)
    ready.session.set_filter("median")
    child(ready, QSpinBox, "sizeBox").setValue(7)
    click(ready, TUNED)
    why = ready.findChild(LevelDialog)
    source = ready.session.subject.source
    assert isinstance(source, Image)
    assert drawn[-1] == f"median {source.width}×{source.height}, 8 bit 7"
    assert why.findChild(QLabel, "levelDrawing").pixmap().width() > 300
    why.reject()


def test_recorded_results_open_from_the_menu(qtbot: QtBot, window: MainWindow) -> None:
    path = recorded.entries()[0].path
    window.findChild(QAction, f"recorded{path.stem}").trigger()
    bench = window.companions.bench
    assert bench is not None
    assert bench.isVisible()
    state = bench.findChild(QLabel, "benchState")
    qtbot.waitUntil(lambda: path.name in state.text())
    bench.close()


def test_with_a_card_its_rungs_run(qtbot: QtBot, open_window: Opener, picture: Path) -> None:
    window = on_a_card(qtbot, open_window, picture)
    assert entry(window, TUNED).figure is None
    measure(qtbot, window, TUNED)
    press(qtbot, window, "Ctrl+F5")
    qtbot.waitUntil(lambda: note(window).startswith("Running"))
    qtbot.waitUntil(lambda: note(window) == "")
    runnable = [each for each in window.levels.entries()[1:] if not each.rung.obstacle]
    assert len(runnable) > 5
    assert all(each.time is not None and each.parity is not None for each in runnable)
    assert not [each for each in threading.enumerate() if each.name == "kernelscope-parity"]


def test_levels_stay_where_they_are_while_others_unfold(qtbot: QtBot, ready: MainWindow) -> None:
    """The ladder grew upwards: a second click at the same place ran a level."""
    ready.resize(1400, 1000)
    ready.session.set_filter("sobel")
    rungs = ready.levels.ladder.rungs
    for heading in rungs.headings.values():
        heading.setExpanded(False)
    QApplication.processEvents()
    heading = list(rungs.headings.values())[-1]

    def places() -> list[int]:
        items = map(rungs.topLevelItem, range(rungs.topLevelItemCount()))
        areas = [rungs.visualItemRect(item) for item in items if item is not None]
        return [rungs.viewport().mapToGlobal(area.center()).y() for area in areas]

    before, ran = places(), []
    rungs.run_wanted.connect(ran.append)
    rungs.why_wanted.connect(ran.append)
    spot = rungs.visualItemRect(heading).center()
    for _ in range(2):
        expanded = heading.isExpanded()
        qtbot.mouseClick(rungs.viewport(), Qt.MouseButton.LeftButton, pos=spot)
        assert heading.isExpanded() is not expanded
        QApplication.processEvents()
        assert places() == before
    assert not ran


def test_a_level_that_moved_under_the_mouse_does_not_run(qtbot: QtBot, ready: MainWindow) -> None:
    rungs = ready.levels.ladder.rungs
    ran: list[object] = []
    rungs.run_wanted.connect(ran.append)
    serial = rungs.rung_item(SERIAL)
    assert serial is not None
    spot = rungs.visualItemRect(serial).center()
    rungs._toggled_at = spot  # a line that unfolds was there, and the list is scrolled since
    for expected in (0, 1):
        qtbot.mouseClick(rungs.viewport(), Qt.MouseButton.LeftButton, pos=spot)
        assert len(ran) == expected
