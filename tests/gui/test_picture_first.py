"""The pictures have most of the window, and all that the main job needs is in sight beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QDockWidget,
    QLabel,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from kernelscope.bench.recorded import Recorded
from kernelscope.engine.backend import Availability
from kernelscope.engine.options import Device
from kernelscope.gui.docks.ladder import LadderTree
from kernelscope.gui.model.ladder import RungPlace
from kernelscope.gui.model.regions import Shape
from kernelscope.gui.viewer.plane_canvas import PlaneCanvas
from kernelscope.gui.widgets.appearance import Appearance, Scheme, Stylist
from kernelscope.gui.widgets.commands import plain
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.work.tasks import Priority, Task
from tests.gui.helpers import Opener, load, press, run
from tests.pairs import in_turn

CARD = Availability(True, "test card")


def panes(window: MainWindow) -> list[QWidget]:
    """Return the panes without their titles: nothing but pictures."""
    return [each for each in window.page.findChildren(PlaneCanvas) if each.isVisible()]


def share(window: MainWindow) -> float:
    """Return the part of the window in which pictures are drawn."""
    areas = (each.width() * each.height() for each in panes(window))
    return sum(areas) / (window.width() * window.height())


def sized(window: MainWindow, width: int, height: int) -> None:
    window.resize(width, height)
    for _ in range(5):  # columns of docks follow in several steps
        QApplication.processEvents()
    assert window.size() == QSize(width, height)


def is_in_sight(widget: QWidget, window: MainWindow) -> bool:
    """Return whether all of a widget is seen without scrolling."""
    around: QWidget | None = widget.parentWidget()
    while around is not None:
        place = QRect(widget.mapTo(around, QPoint(0, 0)), widget.size())
        if not around.rect().contains(place):
            return False
        around = around.parentWidget()
    return widget.isVisible()


def child_of(window: MainWindow, name: str) -> QToolButton:
    found = window.findChild(QToolButton, name)
    assert found is not None
    return found


def main_job(window: MainWindow) -> dict[str, QWidget]:
    """Return the widgets of the main job by their purpose."""
    find: Any = window.findChild
    first, second = panes(window)
    return {
        "load": find(QToolButton, "openTool"),
        "filter": find(QComboBox, "filter"),
        "mask size": window.panel.form.editors["size"],
        "levels": find(LadderTree, "ladderRungs"),
        "run": find(QToolButton, "runButton"),
        "input": first,
        "output": second,
        "times": find(QLabel, "headlineText"),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("screen", "scheme"),
    in_turn(
        ((1920, 1080, 1.0, 0.60), (1280, 720, 1.0, 0.45), (1280, 720, 1.5, 0.45)),
        (Scheme.DARK, Scheme.LIGHT),
        every=2,
    ),
)
def test_the_pictures_have_most_of_the_window(
    qtbot: QtBot,
    open_window: Opener,
    picture: Path,
    stylist: Stylist,
    screen: tuple[int, int, float, float],
    scheme: Scheme,
) -> None:
    width, height, scale, least = screen
    stylist.apply(Appearance(scheme, scale=scale))
    window = open_window(panels=False)
    window.find_gpu()
    qtbot.waitUntil(lambda: bool(window.companions.availability))
    load(qtbot, window, picture)
    sized(window, width, height)
    run(qtbot, window)
    qtbot.waitUntil(lambda: window.findChild(QToolButton, "runsPanelButton").isVisible())
    QApplication.processEvents()
    assert len(panes(window)) == 2
    assert share(window) >= least
    hidden = [name for name, each in main_job(window).items() if not is_in_sight(each, window)]
    assert not hidden


def test_a_plain_window_has_no_levels_and_times_and_is_remembered(
    qtbot: QtBot, open_window: Opener, picture: Path
) -> None:
    of_speed = (
        *("ladder", "headlineText", "learnMenuTool", "gpuInfoTool"),
        *("runsPanelButton", "timingPanelButton"),
    )

    def seen(window: MainWindow) -> list[str]:
        return [name for name in of_speed if shown(window, name)]

    window = open_window(panels=False)
    load(qtbot, window, picture)
    run(qtbot, window)
    qtbot.waitUntil(lambda: seen(window) == [*of_speed])
    window.session.choose_place(RungPlace(Device.CPU, "serial"))
    press(qtbot, window, "F9")
    press(qtbot, window, "Shift+F11")
    qtbot.waitUntil(lambda: not seen(window))
    assert window.docks[DockName.TIMING].isHidden()
    assert window.session.place == RungPlace(Device.AUTO), "a level that cannot be seen"
    menus = {plain(each.text()): each.isVisible() for each in window.menuBar().actions()}
    assert menus["Run"]
    assert not menus["Learn"]
    assert window.actions_["plain"].isChecked()
    run(qtbot, window)

    again = open_window(panels=False)
    load(qtbot, again, picture)
    run(qtbot, again)
    assert not seen(again)
    assert shown(again, "freshness")
    press(qtbot, again, "Shift+F11")
    qtbot.waitUntil(lambda: seen(again) == [*of_speed])
    assert not again.actions_["plain"].isChecked()


# Controls that cannot act are not shown ------------------------------------------------


def shown(window: MainWindow, name: str) -> bool:
    found = [each for each in window.findChildren(QWidget, name) if each.isVisible()]
    return bool(found)


def test_options_of_colours_are_shown_for_colours_only(
    qtbot: QtBot, window: MainWindow, picture: Path, tmp_path: Path
) -> None:
    def are_shown() -> list[bool]:
        chroma = window.panel.form.editors["chroma"]
        grey = window.findChild(QCheckBox, "grey")
        assert isinstance(grey, QCheckBox)
        return [each.isVisibleTo(window) for each in (chroma, grey)]

    window.session.set_filter("sliding_dct")
    assert are_shown() == [True, True]  # no picture is open
    load(qtbot, window, picture)
    assert are_shown() == [False, False]
    window.session.set_filter("median")
    window.session.set_filter("sliding_dct")
    assert are_shown() == [False, False]
    colours = tmp_path / "colours.png"
    Pillow.fromarray(np.full((9, 12, 3), (9, 99, 199), np.uint8)).save(colours)
    load(qtbot, window, colours)
    assert are_shown() == [True, True]
    window.session.set_grey(True)
    assert are_shown() == [False, True]
    assert window.session.require().step.grey
    load(qtbot, window, picture)
    assert not window.session.require().step.grey, "what is not shown is not done"
    assert window.runner.recipe().steps[-1].grey, "a recipe keeps the wish"
    load(qtbot, window, colours)
    assert window.session.require().step.grey
    window.session.set_grey(False)
    assert are_shown() == [True, True]


def test_defaults_are_offered_once_a_value_differs_and_the_filter_in_one_place(
    qtbot: QtBot, window: MainWindow
) -> None:
    window.session.set_filter("median")
    assert not shown(window, "reset")
    window.session.set_values("median", {"size": 7})
    assert shown(window, "reset")
    window.session.reset()
    assert not shown(window, "reset")
    window.session.set_filter("sliding_dct")
    assert not shown(window, "reset")
    window.session.set_estimates("sliding_dct", {"sigma": 7.25})
    assert not shown(window, "reset"), "the picture's number, and no choice of the user"
    window.session.set_values("sliding_dct", {"sigma": 7.25})
    assert shown(window, "reset")

    box, title = window.panel.filter_box, window.findChild(QLabel, "filterTitle")
    browse = window.findChild(QToolButton, "findFilterButton")
    window.session.set_filter("median")
    assert (box.isVisible(), title.isVisible()) == (True, False)
    qtbot.mouseClick(browse, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(title.isVisible)
    assert not box.isVisible()
    assert not browse.isVisible()
    window.session.set_filter("sobel")
    assert title.text() == "Sobel"
    window.docks[DockName.FILTERS].close()
    qtbot.waitUntil(box.isVisible)
    assert box.currentText() == "Sobel"
    assert not title.isVisible()


# Panels at the bottom ------------------------------------------------------------------


def button(window: MainWindow, name: DockName) -> QToolButton:
    return child_of(window, f"{name}PanelButton")


def test_panels_are_offered_once_they_have_something_and_take_turns(
    qtbot: QtBot, open_window: Opener, picture: Path
) -> None:
    window = open_window(panels=False)
    names = DockName.RUNS, DockName.TIMING, DockName.QUALITY, DockName.MEASURE, DockName.CONSOLE
    assert not any(button(window, each).isVisible() for each in names)
    load(qtbot, window, picture)
    assert not any(button(window, each).isVisible() for each in names)
    QApplication.processEvents()
    height = window.statusBar().height()
    run(qtbot, window)
    qtbot.waitUntil(lambda: button(window, DockName.RUNS).text() == "Runs 1")
    QApplication.processEvents()
    assert window.statusBar().height() == height, "the pictures would move"
    assert [button(window, each).isVisible() for each in names] == [True, True, True, False, False]
    window.measuring.add(Shape.ELLIPSE)
    qtbot.waitUntil(lambda: button(window, DockName.MEASURE).text() == "Measure 1")
    assert window.docks[DockName.RUNS].isHidden(), "nothing takes height from the pictures unasked"

    runs, timing = (window.docks[each] for each in (DockName.RUNS, DockName.TIMING))

    def click(name: DockName) -> None:
        qtbot.mouseClick(button(window, name), Qt.MouseButton.LeftButton)

    qtbot.waitUntil(button(window, DockName.RUNS).isVisible)
    click(DockName.RUNS)
    qtbot.waitUntil(runs.isVisible)
    qtbot.waitUntil(button(window, DockName.RUNS).isChecked)
    assert 120 <= runs.height() <= 260
    click(DockName.TIMING)
    qtbot.waitUntil(timing.isVisible)
    assert runs.isHidden()
    qtbot.waitUntil(lambda: not button(window, DockName.RUNS).isChecked())
    click(DockName.TIMING)
    qtbot.waitUntil(timing.isHidden)
    assert not any(
        each.isVisible()
        for each in window.findChildren(QDockWidget)
        if window.dockWidgetArea(each) is Qt.DockWidgetArea.BottomDockWidgetArea
    )

    steps = window.docks[DockName.STEPS]
    run(qtbot, window)
    assert steps.isHidden()
    window.page.use_output()
    qtbot.waitUntil(lambda: not steps.isHidden())
    window.undo()
    qtbot.waitUntil(steps.isHidden)


# Each fact stands once -----------------------------------------------------------------


def test_time_and_place_of_a_run_stand_over_the_pictures_alone(
    qtbot: QtBot, window: MainWindow, picture: Path
) -> None:
    load(qtbot, window, picture)
    run(qtbot, window)
    headline = window.findChild(QLabel, "headlineText").text()
    assert "MP/s" in headline
    assert window.findChild(QLabel, "runState").text() == ""
    assert window.statusBar().currentMessage() == ""

    window.session.set_filter("mean")
    window.find_gpu()

    def constant() -> str:
        found = (each for each in window.levels.entries() if each.rung.place.level == "constant")
        return next(found).explain()

    qtbot.waitUntil(lambda: "Custom mask shows it best" in constant())


def test_a_live_result_leaves_the_time_of_run(
    qtbot: QtBot, open_window: Opener, picture: Path
) -> None:
    """One that Run overtook came afterwards, and its single time took the place of the median."""
    window = open_window(live=True)
    load(qtbot, window, picture)
    qtbot.waitUntil(lambda: window.session.subject.result is not None)
    live = window.session.subject.result
    run(qtbot, window)
    measured = window.session.subject.result
    assert live is not None
    assert measured is not None
    assert not measured.request.live
    window.live._task = Task(window.runner.tasks, live.request, Priority.LIVE)
    window.live._group, window.live._made = [live.request], []
    window.live._on_finished(live)
    assert window.session.subject.result is measured


# Levels that a filter lacks ------------------------------------------------------------


def test_the_best_example_of_a_level_is_the_one_that_gains_most() -> None:
    recorded = Recorded.read()
    shown = {level: recorded.best_shown(level) for level in ("constant", "shared", "tuned")}
    assert {level: each.filter for level, each in shown.items() if each is not None} == {
        "constant": "Custom mask",
        "shared": "Median",
        "tuned": "Non-local means",
    }
    assert shown["constant"] is not None
    assert 1.2 < shown["constant"].factor < 3
    assert "times as fast as GPU global memory" in shown["constant"].describe()
    assert recorded.best_shown("single-block") is None  # nothing comes before it
    assert recorded.best_shown("no-barrier") is None
    assert Recorded().best_shown("constant") is None
