"""The emulated GPU in the window: its rungs, its runs, and that no time of one is ever shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QAbstractItemModel, QAbstractListModel, QModelIndex, Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QComboBox,
    QSpinBox,
    QWidget,
)
from pytestqt.qtbot import QtBot

from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.emulator import EmulatorBackend
from kernelscope.backends.emulator.compiler import HostCompiler
from kernelscope.engine.backend import Availability, Backend
from kernelscope.engine.options import Device
from kernelscope.gui.docks.runs_panel import KERNEL_TIME, PARTS, SPREAD, TOTAL_TIME
from kernelscope.gui.model.ladder import AUTO, Agreement, KnownRung, RungPlace
from kernelscope.gui.model.runs import KERNEL, TOTAL
from kernelscope.gui.model.times import EMULATED, WHY_NOT_TIMED
from kernelscope.gui.tools.figure_dialog import FigureDialog
from kernelscope.gui.tools.level_dialog import LevelDialog
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window.main_window import MainWindow
from tests.backends.emulated import needs_compiler
from tests.gui.helpers import (
    NO_GPU,
    FakeCpu,
    FakeGpu,
    child,
    dialog,
    load,
    offers,
    press,
    wait_until,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("repeats_runs")]

SERIAL = RungPlace(Device.CPU, "serial")
SHARED, GLOBAL = RungPlace(Device.EMULATED, "shared"), RungPlace(Device.EMULATED, "global")

_TIME = re.compile(
    r"\d\s?(?:µs|ms|s|min)(?![\w/])|\d\s?(?:MP|Mvoxel|GB|mega\w+)/s|\d×(?:$| over)", re.MULTILINE
)
"""A time, a rate or a speed-up."""

_ROLES = (
    Qt.ItemDataRole.DisplayRole,
    Qt.ItemDataRole.ToolTipRole,
    Qt.ItemDataRole.AccessibleTextRole,
    Qt.ItemDataRole.StatusTipRole,
)
_TEXTS = ("text", "toPlainText", "toolTip", "statusTip", "whatsThis", "windowTitle", "title")
_MORE = ("accessibleName", "accessibleDescription", "currentText", "full_text")


class FakeEmulated(FakeCpu):
    """An emulated GPU that is quick, with a compiler or not."""

    id = "emulated"
    name = "Emulated GPU"

    def __init__(self, *, compiler: bool = True) -> None:
        super().__init__()
        self.compiler = compiler

    def availability(self) -> Availability:
        if self.compiler:
            return Availability(True, "test processor")
        return Availability(False, "No C++ compiler was found.", ("`pip install it`",))

    def levels(self, spec: Any) -> Any:
        return spec.levels("gpu")


def texts(window: QWidget) -> set[str]:
    """Return the lines of a window and its dialogs: of widgets, of items and of actions."""
    found = set()
    for each in (window, *window.findChildren(QWidget), *window.findChildren(QAction)):
        for name in (*_TEXTS, *_MORE):
            read = getattr(each, name, None)
            value = read() if callable(read) else read
            if isinstance(value, str):
                found.add(value)
        if isinstance(each, QAbstractItemView) and each.model() is not None:
            found |= set(_items(each.model(), QModelIndex()))
    return lines(*found)


def lines(*found: str) -> set[str]:
    return {line for text in found for line in text.splitlines()}


def _items(model: QAbstractItemModel, parent: QModelIndex) -> Iterator[str]:
    for row in range(model.rowCount(parent)):
        columns = 1 if isinstance(model, QAbstractListModel) else model.columnCount(parent)
        for column in range(columns):
            index = model.index(row, column, parent)
            for role in _ROLES:
                value = index.data(role)
                if isinstance(value, str):
                    yield value
            entry = index.data(Qt.ItemDataRole.UserRole)
            if isinstance(entry, KnownRung):  # painted by its delegate
                yield entry.brief_time
            if column == 0:
                yield from _items(model, index)


def times(found: set[str]) -> set[str]:
    return {text for text in found if _TIME.search(text)}


@pytest.fixture
def open_with(qtbot: QtBot, store: Path) -> Iterator[Callable[..., MainWindow]]:
    """Return a function that opens a window with these backends, and finds out which run."""
    windows = []

    def open_(*backends: Backend, live: bool = False) -> MainWindow:
        settings = Settings(store)
        settings.set_text("live", "on" if live else "off")
        window = MainWindow({each.id: each for each in backends}, settings)
        windows.append(window)
        window.resize(1280, 720)
        window.show()
        qtbot.waitExposed(window)
        window.find_gpu()
        wait_until(qtbot, lambda: window.companions.availability)
        window.session.set_filter("mean")
        return window

    yield open_
    for window in windows:
        wait_until(qtbot, lambda window=window: not window.background.owes)
        window.close()
        window.deleteLater()


@pytest.fixture
def emulating(qtbot: QtBot, open_with: Callable[..., MainWindow], picture: Path) -> MainWindow:
    """Return a window with the real emulated GPU and a picture."""
    emulator = EmulatorBackend(threads=2)
    if not emulator.availability().available:
        pytest.skip("no C++ compiler")
    window = open_with(CpuBackend(threads=2), emulator)
    load(qtbot, window, picture)
    return window


@pytest.fixture
def opened(
    qtbot: QtBot, open_with: Callable[..., MainWindow], cpu: FakeCpu, picture: Path
) -> MainWindow:
    """Return a window with a quick emulated GPU and a picture."""
    window = open_with(FakeGpu(NO_GPU), cpu, FakeEmulated())
    load(qtbot, window, picture)
    return window


def entry(window: MainWindow, place: RungPlace) -> KnownRung:
    return next(each for each in window.levels.entries() if each.rung.place == place)


def run_at(qtbot: QtBot, window: MainWindow, place: RungPlace) -> None:
    count = len(window.session.gallery)
    window.levels.run_at(place)
    wait_until(qtbot, lambda: len(window.session.gallery) > count and not window.runner.busy)
    wait_until(qtbot, lambda: window.session.subject.is_current(window.session.settings))


def test_no_text_of_the_window_has_the_time_of_an_emulated_run(
    qtbot: QtBot, emulating: MainWindow
) -> None:
    window = emulating
    window.toggle_console()
    window.levels.explain()
    before = texts(window)
    run_at(qtbot, window, SHARED)
    wait_until(qtbot, lambda: all(each.thumbnail is not None for each in window.session.gallery))
    (run,) = window.session.gallery
    assert run.result is not None
    assert run.result.seconds > 0, "it took time"
    window.levels.explain()
    window.findChild(QAction, "exportFigure").trigger()
    figure = dialog(qtbot, window, FigureDialog)
    copied = window.runs.table.text()
    new = (texts(window) | texts(figure) | lines(copied)) - before
    figure.reject()
    assert any("Emulated GPU shared memory" in text for text in new)
    assert times(new) == set()
    # The same walk finds the times of a run that has some.
    run_at(qtbot, window, SERIAL)
    found = times(texts(window) | lines(window.runs.table.text()))
    assert any("median of" in text for text in found)
    assert any("CPU serial" in text for text in found)
    assert len(found) > 8
    for each in window.findChildren(LevelDialog):
        each.reject()


def test_a_click_runs_the_kernels_and_the_result_agrees(
    qtbot: QtBot, emulating: MainWindow
) -> None:
    window = emulating
    run_at(qtbot, window, SERIAL)
    rungs = window.levels.ladder.rungs
    item = rungs.rung_item(SHARED)
    assert item is not None
    rungs.scrollToItem(item)
    spot = rungs.visualItemRect(item).center()
    qtbot.mouseClick(rungs.viewport(), Qt.MouseButton.LeftButton, pos=spot)
    wait_until(qtbot, lambda: entry(window, SHARED).parity is not None)
    parity = entry(window, SHARED).parity
    assert parity is not None
    assert (parity.agreement, parity.reference) == (Agreement.EQUAL, "CPU serial")
    assert (window.session.subject.result.device, window.session.subject.result.level) == (
        "emulated",
        "shared",
    )
    assert entry(window, SHARED).time is None
    assert entry(window, SHARED).brief_time == EMULATED
    assert WHY_NOT_TIMED in entry(window, SHARED).explain()
    assert entry(window, GLOBAL).brief_time == "–"


@needs_compiler
def test_an_emulated_run_takes_part_in_no_comparison(qtbot: QtBot, opened: MainWindow) -> None:
    window = opened
    run_at(qtbot, window, SHARED)
    run_at(qtbot, window, SERIAL)  # once: of two, either may be surely the fastest
    runs = window.session.gallery
    timed, emulated = runs
    assert emulated.where == "Emulated GPU shared memory"
    for quantity in (KERNEL, TOTAL):
        assert runs.speed_up(emulated, quantity) is None
        assert not runs.is_fastest(emulated, quantity)
        assert not runs.is_fastest(timed, quantity)
    assert runs.is_baseline(timed)
    assert not runs.has_rivals(timed), "it is compared with nothing"
    assert (emulated.seconds, emulated.kernel, emulated.speed) == (None, None, None)
    assert (emulated.stages, emulated.parts, emulated.transfers) == ((), (), {})
    table = window.runs.table.text().splitlines()
    assert "baseline" not in "".join(table)
    rows = window.runs.table
    for column in (TOTAL_TIME, KERNEL_TIME, SPREAD, PARTS):
        rows.header().setSortIndicator(column, Qt.SortOrder.AscendingOrder)
        assert rows.rows.places()[-1][1] is emulated
    window.runs.choose(emulated)
    assert not window.findChild(QAction, "compareRuns").isEnabled()


def test_without_a_compiler_it_is_not_offered_and_the_way_to_have_it_is_named(
    qtbot: QtBot, open_with: Callable[..., MainWindow], cpu: FakeCpu, picture: Path, store: Path
) -> None:
    Settings(store).set_texts("run", {"device": "emulated", "level": "shared"})
    window = open_with(FakeGpu(NO_GPU), cpu, FakeEmulated(compiler=False))
    load(qtbot, window, picture)
    assert not offers(window, "emulated")
    assert not [each for each in window.session.rungs if each.place.device is Device.EMULATED]
    assert window.session.place == AUTO, "a session with it goes on where it can"
    press(qtbot, window, "F5")
    wait_until(qtbot, lambda: window.session.subject.result is not None)
    assert window.session.subject.result.device == "cpu"
    tuned = entry(window, RungPlace(Device.GPU, "tuned")).explain()
    assert "No NVIDIA driver was found." in tuned
    assert "g++" in tuned
    assert "[emulator]" in tuned


def test_a_session_comes_back_to_it(
    qtbot: QtBot, open_with: Callable[..., MainWindow], cpu: FakeCpu, store: Path
) -> None:
    first = open_with(FakeGpu(NO_GPU), cpu, FakeEmulated())
    first.session.choose_place(SHARED)
    first.close()
    second = open_with(FakeGpu(NO_GPU), cpu, FakeEmulated())
    assert second.session.place == SHARED
    assert second.levels.ladder.rungs.headings[Device.EMULATED].isExpanded()


def test_blocks_are_offered_and_the_options_of_a_card_are_not(
    qtbot: QtBot, opened: MainWindow
) -> None:
    for place, block, card in ((SERIAL, False, False), (SHARED, True, False)):
        opened.session.choose_place(place)
        assert opened.findChild(QComboBox, "block").isVisible() is block
        assert opened.findChild(QSpinBox, "repeat").isVisible() is card
        assert opened.findChild(QSpinBox, "memoryLimit").isVisible() is card
    box = child(opened, QComboBox, "block")
    box.setCurrentIndex(box.findText("16×16 threads"))
    run_at(qtbot, opened, SHARED)
    (run,) = opened.session.gallery
    assert run.where.endswith("shared memory 16×16")
    opened.findChild(QAction, "copyPython").trigger()
    text = QGuiApplication.clipboard().text()
    assert "ks.mean(pixels, device='emulated', level='shared')" in text


def test_a_slow_one_waits_for_run_with_the_time_that_emulating_takes(
    qtbot: QtBot, open_with: Callable[..., MainWindow], cpu: FakeCpu, picture: Path
) -> None:
    window = open_with(FakeGpu(NO_GPU), cpu, FakeEmulated())
    load(qtbot, window, picture)
    window.session.choose_place(SHARED)
    request = window.session.subject.next_request()
    assert request is not None
    window.live.pace.record(request, 125.0)
    window.live.toggle()
    wait_until(qtbot, lambda: window.live.resting)
    badge = next(line for line in texts(window) if "to emulate" in line)
    assert "Run (F5): about 2 min to emulate" in badge
    assert "recorded" not in badge, "the time of no GPU stands beside it"
    assert not window.session.gallery
    assert window.session.subject.result is None


def test_offering_it_calls_no_compiler(
    qtbot: QtBot, open_with: Callable[..., MainWindow], cpu: FakeCpu, picture: Path
) -> None:
    class Silent(HostCompiler):
        def version(self) -> str:
            raise AssertionError("called")

        def compile(self, *_: object) -> Any:
            raise AssertionError("called")

    window = open_with(cpu, EmulatorBackend(Silent(("g++",)), threads=1), live=True)
    load(qtbot, window, picture)
    wait_until(qtbot, lambda: window.session.subject.result is not None)
    window.levels.refresh()
    assert offers(window, "emulated")
    assert window.session.subject.result.device == "cpu"
    assert window.session.place == AUTO
    assert window.session.rungs[0].name == "Auto: CPU parallel"
    assert QApplication.activeModalWidget() is None
