"""At 150 % text, names and times are still readable, and windows fit a screen of 1280×720."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import pytest
from PySide6.QtCore import QRect, QSize
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QLabel,
    QPushButton,
    QTabBar,
    QTextBrowser,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from kernelscope.engine.backend import Availability
from kernelscope.engine.options import Device
from kernelscope.gui.docks.runs_panel import BUTTONS
from kernelscope.gui.model.ladder import AUTO
from kernelscope.gui.model.regions import Shape
from kernelscope.gui.tools.kernel_viewer import KernelViewer
from kernelscope.gui.widgets.appearance import Appearance, Stylist
from kernelscope.gui.widgets.theme import show_markdown
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.schema.samples import Kind
from tests.gui.helpers import Opener, child, load, offers, run, settle, wait_until
from tests.gui.test_volume_page import open_scan, voxels, write


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_the_window_with_all_docks_fits_a_small_screen(
    qtbot: QtBot, open_window: Opener, picture: Path, scale: float, stylist: Stylist
) -> None:
    stylist.apply(Appearance(scale=scale))
    window = open_window()
    load(qtbot, window, picture)
    for name in (DockName.FILTERS, DockName.STEPS):
        window.docks[name].show()
    window.resize(1280, 720)
    QApplication.processEvents()
    assert window.minimumSizeHint().width() <= 1280
    assert window.minimumSizeHint().height() <= 720
    assert window.size() == QSize(1280, 720)
    run(qtbot, window)
    window.measuring.add(Shape.LINE)  # whose plot stands beside the table
    qtbot.waitUntil(window.measure.profile.isVisible)
    settle(qtbot, window)
    assert window.size() == QSize(1280, 720)


def test_the_hidden_page_of_volumes_does_not_widen_the_window(
    qtbot: QtBot, open_window: Opener, picture: Path, stylist: Stylist
) -> None:
    """At 1280 pixels, Cancel and the button that closes Settings were cut off."""
    stylist.apply(Appearance(scale=1.5))
    window = open_window()
    load(qtbot, window, picture)
    shown, hidden = (window.pages[kind] for kind in (Kind.PICTURE, Kind.VOLUME))
    central, around = window.centralWidget(), hidden.parentWidget()
    assert around.minimumSizeHint() == shown.minimumSizeHint()
    assert central.minimumSizeHint().width() < hidden.minimumSizeHint().width()
    window.session.bring_to_front(window.session.volumes)
    wait_until(
        qtbot,
        lambda: central.minimumSizeHint().width() >= hidden.minimumSizeHint().width(),
    )
    assert around.minimumSizeHint() == hidden.minimumSizeHint()


def test_strength_and_the_arrangement_are_in_sight(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, stylist: Stylist
) -> None:
    """Of volumes, also with a reference and the gain of a residual."""
    stylist.apply(Appearance(scale=1.5))
    window.resize(1280, 720)
    open_scan(qtbot, window, write(tmp_path / "T1.nii", voxels()))
    window.use_input_as_reference()
    for filter_id, name in (("mri_nlm", "beta"), ("volume_dct", "strength")):
        window.session.set_filter(filter_id)
        run(qtbot, window)
        window.set_view("residual")
        qtbot.waitUntil(lambda: window.volumes.canvas.output.content.is_change)
        settle(qtbot, window)
        assert window.size() == QSize(1280, 720)
        (editor,) = (
            each for each in window.findChildren(QWidget, name) if each.isVisibleTo(window)
        )
        assert editor.visibleRegion().boundingRect() == editor.rect()
        arranged = window.actions_.of_choice("arrangement")
        for action in (*arranged, *window.actions_.of_choice("view")):
            button = child(window, QToolButton, f"{action.objectName()}Button")
            assert button.visibleRegion().boundingRect() == button.rect(), action.objectName()


def test_three_parameters_are_in_sight_beside_the_levels_of_a_card(
    qtbot: QtBot, open_window: Opener, picture: Path, stylist: Stylist
) -> None:
    """Two were, with all ten levels; now the last ones scroll."""
    stylist.apply(Appearance(scale=1.5))
    window = open_window(Availability(True, "a card"), panels=False)
    window.find_gpu()
    load(qtbot, window, picture)
    qtbot.waitUntil(lambda: offers(window, "gpu"))
    window.resize(1280, 720)
    for filter_id in ("nlm", "bilateral", "unsharp"):
        window.session.set_filter(filter_id)
        settle(qtbot, window)
        first = [each for each in window.panel.form.editors.values() if each.isVisible()][:3]
        assert len(first) == 3
        for each in first:
            assert each.visibleRegion().boundingRect() == each.rect(), filter_id
        rungs = window.levels.ladder.rungs
        auto = rungs.rung_item(AUTO)
        assert auto is not None
        assert rungs.height() >= 7 * rungs.visualItemRect(auto).height()
    assert window.size() == QSize(1280, 720)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "all_fit"), [(1400, True), (420, False)])
def test_buttons_of_runs_without_room_are_in_a_menu(
    qtbot: QtBot, open_window: Opener, width: int, all_fit: bool
) -> None:
    runs = open_window().runs
    runs.setParent(None)
    qtbot.addWidget(runs)
    runs.resize(width, 200)
    runs.show()
    buttons = [runs.findChild(QToolButton, f"{name}Button") for name in BUTTONS]
    more = runs.findChild(QToolButton, "qt_toolbar_ext_button")
    assert isinstance(more, QToolButton)
    shown = [each for each in buttons if each is not None and each.isVisible()]
    hidden = [] if all_fit else more.menu().actions()
    offered = [each.defaultAction() for each in shown] + hidden
    assert [each.objectName() for each in offered] == list(BUTTONS)
    assert (len(shown) == len(BUTTONS)) is all_fit
    assert more.isVisible() is not all_fit
    assert all(each.width() >= each.sizeHint().width() for each in shown)


@pytest.mark.slow
def test_all_that_is_shown_above_the_runs_has_room(qtbot: QtBot, open_window: Opener) -> None:
    """The margins were not counted, nor was the name of the level to compare with."""
    window = open_window()
    runs = window.runs
    runs.setParent(None)
    qtbot.addWidget(runs)
    runs.show()
    order = runs.findChild(QComboBox, "runsOrder")
    assert order is not None
    for width in range(360, 760, 3):
        runs.resize(width, 200)
        for where in ("", "GPU shared memory, GPU"):
            window.actions_.name_comparison(where, "")
            QApplication.processEvents()
            buttons = [each for each in runs.findChildren(QToolButton) if each.isVisible()]
            for each in (order, *buttons):
                assert each.width() >= each.sizeHint().width(), (width, each.objectName())


@pytest.mark.slow
def test_windows_that_are_open_follow_the_size_of_text(
    qtbot: QtBot, open_window: Opener, picture: Path, stylist: Stylist
) -> None:
    """Titles of docks, tabs of files and headings stayed as they were."""
    looks: list[Callable[[], tuple[Any, ...]]] = []
    viewers = []
    for scales in ((1.5,), (1.0, 1.5)):
        stylist.apply(Appearance(scale=scales[0]))
        window = open_window()
        load(qtbot, window, picture)
        window.actions_["viewKernel"].trigger()
        viewer = window.findChild(KernelViewer)
        assert viewer is not None
        tabs = viewer.findChild(QTabBar)
        heading = viewer.findChild(QLabel, "headline")
        dock = window.docks[DockName.CONTROLS]
        assert tabs is not None
        assert heading is not None
        wait_until(qtbot, lambda tabs=tabs: tabs.count() > 1)
        for scale in scales[1:]:
            stylist.apply(Appearance(scale=scale))
        seen = [each for each in viewer.findChildren(QWidget) if each.isVisible()]
        plain = [each for each in seen if not each.font().resolveMask()]
        assert tabs in plain
        assert all(each.font() == QApplication.font() for each in plain)

        def look(
            tabs: QTabBar = tabs, heading: QLabel = heading, dock: QWidget = dock
        ) -> tuple[Any, ...]:
            title = dock.grab(QRect(0, 0, 100, dock.fontMetrics().height())).toImage()
            return title, tabs.tabRect(0).size(), heading.fontInfo().pointSizeF()

        looks.append(look)
        viewers.append(viewer)
    # Sizes follow the font in events of their own, in both windows.
    wait_until(qtbot, lambda: looks[0]() == looks[1]())
    for viewer in viewers:
        viewer.reject()


def test_code_in_texts_follows_the_size_of_text(qtbot: QtBot, stylist: Stylist) -> None:
    """Qt gives it a size of its own: 9 points beside 15."""
    view = QTextBrowser()
    qtbot.addWidget(view)
    show_markdown(view, "A `name` in a line\n\n```\nlines of code\n```\n\n## A heading")
    for scale in (1.0, 1.5):
        stylist.apply(Appearance(scale=scale))
        sizes = {}
        block = view.document().begin()
        while block.isValid():
            for part in [each.fragment() for each in cast(Iterable[Any], block)]:
                font = part.charFormat().font().resolve(view.document().defaultFont())
                sizes[part.text()] = font.pointSizeF()
            block = block.next()
        assert sizes["name"] == sizes["A "] == sizes["lines of code"] == view.font().pointSizeF()
    assert "monospace" in view.toHtml()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["contactSheet", "benchmark", "viewKernel", "lecture"])
def test_tools_fit_a_small_screen_and_can_be_closed(
    qtbot: QtBot, open_window: Opener, picture: Path, stylist: Stylist, name: str
) -> None:
    """The benchmark was 1,433 pixels wide, and the contact sheet 752 high."""
    stylist.apply(Appearance(scale=1.5))
    window = open_window()
    load(qtbot, window, picture)
    window.actions_[name].trigger()
    tool = next(each for each in window.findChildren(ToolWindow) if each.isVisible())
    assert tool.width() <= 1280 - 16
    assert tool.height() <= 720 - 48
    assert tool.minimumSizeHint().width() <= tool.width()
    buttons = (each for each in tool.findChildren(QPushButton) if each.isVisible())
    (close,) = (each for each in buttons if "Close" in each.text())
    close.click()
    assert not tool.isVisible()


@pytest.mark.slow
@pytest.mark.parametrize("id_", ["mask", "collaborative"])
def test_names_and_hints_of_levels_have_room(
    qtbot: QtBot, open_window: Opener, picture: Path, stylist: Stylist, id_: str
) -> None:
    """“Constant memory” lacked a pixel, and “see Custom mask” had the room of a bar."""
    window = open_window()
    window.resize(1920, 1080)
    load(qtbot, window, picture)
    window.find_gpu()
    window.session.set_filter(id_)
    wait_until(qtbot, lambda: any(each.figure for each in window.levels.entries()))
    rungs = window.levels.ladder.rungs
    rungs.headings[Device.GPU].setExpanded(True)
    stylist.apply(Appearance(scale=1.5))
    settle(qtbot, window)
    hints = 0
    for entry in window.levels.entries():
        item = rungs.rung_item(entry.rung.place)
        assert item is not None
        needed = rungs.sizeHintForIndex(rungs.indexFromItem(item, 0)).width()
        if entry.best is not None:
            hints += 1
            assert item.text(0).endswith(f" · see {entry.best.filter}")
            assert rungs.viewport().width() >= needed, item.text(0)
        elif entry.rung.level is not None:
            assert rungs.columnWidth(0) >= needed, item.text(0)
    assert hints == 2 * (id_ == "collaborative")
