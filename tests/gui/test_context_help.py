"""F1: every control opens a page that exists, at a heading that exists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QAbstractItemView, QApplication, QComboBox, QDialog, QMenu, QWidget
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.base.paths import RESOURCES
from kernelscope.engine.options import Device
from kernelscope.gui.model.ladder import RungPlace
from kernelscope.gui.tools.level_dialog import LevelDialog
from kernelscope.gui.tools.manual_window import ManualWindow
from kernelscope.gui.widgets.parts import HELP_ROLE, place_of, set_help
from kernelscope.gui.window.dock_list import DOCKS
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.schema.samples import Kind
from kernelscope.teach import handbook
from kernelscope.teach.manual import anchor_of, filter_page
from tests.gui.helpers import Opener, load

PICTURE = RESOURCES / "camera.bmp"
PAGES = {name for names in handbook.SECTIONS.values() for name in names}


def check(place: str) -> None:
    """Fail if a place does not exist."""
    name, _, anchor = place.partition("#")
    assert name in PAGES, place
    assert not anchor or anchor in handbook.anchors(name), place


def controls(window: QWidget) -> Iterator[QWidget]:
    """Yield the widgets inside `window` that can have the focus."""
    for widget in window.findChildren(QWidget):
        if widget.focusPolicy() is not Qt.FocusPolicy.NoFocus:
            yield widget


def read(qtbot: QtBot, window: QWidget) -> ManualWindow:
    """Return the manual once it is shown, or fail."""
    qtbot.waitUntil(lambda: window.findChild(ManualWindow) is not None)
    manual = window.findChild(ManualWindow)
    assert manual is not None
    qtbot.waitUntil(manual.isVisible)
    return manual


@pytest.mark.parametrize("dock", DOCKS, ids=lambda dock: dock.name)
def test_docks_have_a_page(dock) -> None:
    check(dock.help)


def test_every_control_of_every_filter_and_every_entry_of_the_menus_opens_a_page(
    window: MainWindow,
) -> None:
    seen = set()
    for kind in Kind:
        window.session.bring_to_front(
            next(each for each in window.session.subjects if each.kind is kind)
        )
        for spec in filters.discover(kind).values():
            window.session.set_filter(spec.id)
            assert place_of(window.panel.filter_box) == filter_page(spec)
            page = window.pages[kind].canvas
            assert place_of(page) == place_of(window.panel) == filter_page(spec)
            window.measuring.choose_tool("rectangle")
            assert place_of(page) == "window#measuring"
            window.measuring.choose_tool("")
            assert place_of(page) == filter_page(spec)
            for widget in controls(window):
                place = place_of(widget)
                assert place, widget.objectName()
                check(place)
                seen.add(place)
            for parameter in spec.parameters:
                editor = window.findChild(QWidget, f"{spec.id}Form").findChild(
                    QWidget, parameter.name
                )
                assert editor is not None
                own = f"{filter_page(spec)}#{anchor_of(parameter.label)}"
                assert {place_of(each) for each in (editor, *controls(editor))} == {own}
    assert len(seen) > 60

    places = set[str]()
    for menu in window.menuBar().findChildren(QMenu):
        for action in menu.actions():
            if not action.isSeparator():
                menu.setActiveAction(action)
                place = place_of(menu)
                assert place, action.text()
                check(place)
                places.add(place)
    assert {filter_page(spec) for spec in filters.discover().values()} < places


def test_lines_of_lists_and_the_dialog_of_a_level_open_their_page(
    qtbot: QtBot, window: MainWindow
) -> None:
    load(qtbot, window, PICTURE)
    rungs = window.levels.ladder.rungs
    qtbot.waitUntil(lambda: rungs.topLevelItemCount() > 2)
    serial, parallel = (
        rungs.rung_item(RungPlace(Device.CPU, level)) for level in ("serial", "parallel")
    )
    assert serial is not None
    assert parallel is not None
    rungs.setCurrentItem(serial)
    assert place_of(rungs) == "level-cpu-serial"
    lower = rungs.visualItemRect(parallel).center()
    assert place_of(rungs, rungs.viewport().mapToGlobal(lower)) == "level-cpu-parallel"
    for view in window.findChildren(QAbstractItemView):
        model = view.model()
        for row in range(model.rowCount() if model is not None else 0):
            place = model.index(row, 0).data(HELP_ROLE)
            if place:
                check(place)

    rungs.setCurrentItem(parallel)
    window.levels.explain()
    qtbot.waitUntil(lambda: window.findChild(LevelDialog) is not None)
    dialog = window.findChild(LevelDialog)
    assert dialog is not None
    drawing = dialog.findChild(QWidget, "levelDrawing")
    assert drawing.isVisibleTo(dialog)
    assert drawing.pixmap().width() > 300
    assert place_of(dialog) == "level-cpu-parallel"
    dialog.close()


def test_f1_opens_the_page_of_the_focus_in_open_lists_and_menus_too(
    qtbot: QtBot, window: MainWindow
) -> None:
    window.session.set_filter("median")
    box = window.findChild(QWidget, "medianForm").findChild(QWidget, "sizeBox")
    window.activateWindow()
    box.setFocus()
    qtbot.waitUntil(box.hasFocus)
    qtbot.keyClick(box, Qt.Key.Key_F1)
    manual = read(qtbot, window)
    assert manual.page == "filter-median"
    assert manual.findChild(QWidget, "manualPage").textCursor().block().text() == "Mask size"
    manual.close()

    listed: QComboBox = window.panel.filter_box
    listed.showPopup()
    qtbot.waitUntil(listed.view().isVisible)
    listed.view().setCurrentIndex(listed.model().index(listed.findData("sobel"), 0))
    qtbot.keyClick(listed.view(), Qt.Key.Key_F1)
    manual = read(qtbot, window)
    assert manual.page == "filter-sobel"
    assert not listed.view().isVisible()
    manual.close()

    for way, page in (
        (("File", "New Phantom…"), "volumes"),
        (("View", "Several Volumes", "Play Volumes"), "volumes"),
        (("View", "Regions of Interest"), "window"),
        (("Filter", "Smoothing", "Median"), "filter-median"),
    ):
        press_f1_at(qtbot, window, way)
        manual = read(qtbot, window)
        assert manual.page == page
        manual.close()


def test_the_mouse_counts_once_it_moved(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    help_ = window.companions.context_help
    window.session.set_filter("mean")
    box = window.findChild(QWidget, "meanForm").findChild(QWidget, "sizeBox")
    monkeypatch.setattr(QApplication, "focusWidget", lambda: box)
    monkeypatch.setattr(QApplication, "activeWindow", lambda: window)
    monkeypatch.setattr(QApplication, "widgetAt", lambda _: window.levels.ladder)
    monkeypatch.setattr(QCursor, "pos", lambda: QPoint(5, 5))
    QApplication.instance().focusChanged.emit(None, box)
    assert help_.place() == "filter-mean#mask-size"
    monkeypatch.setattr(QCursor, "pos", lambda: QPoint(6, 5))
    assert help_.place() == place_of(window.levels.ladder) != "filter-mean#mask-size"
    monkeypatch.setattr(QApplication, "widgetAt", lambda _: None)
    assert help_.place() == "filter-mean#mask-size"


def test_f1_in_dialogs_that_block_the_window(qtbot: QtBot, open_window: Opener) -> None:
    companions = open_window().companions
    for show in (
        companions.show_preferences,
        companions.show_shortcuts,
        companions.show_gpu,
        companions.new_phantom,
        companions.show_about,
    ):
        show()
        qtbot.waitUntil(lambda: QApplication.activeModalWidget() is not None)
        dialog = QApplication.activeModalWidget()
        assert isinstance(dialog, QDialog)
        for widget in (dialog, *controls(dialog)):
            check(place_of(widget))
        dialog.activateWindow()
        qtbot.waitUntil(dialog.isActiveWindow)
        qtbot.keyClick(dialog, Qt.Key.Key_F1)
        manual = read(qtbot, dialog)
        assert manual.page == place_of(dialog).partition("#")[0]
        manual.close()
        dialog.close()
        qtbot.waitUntil(lambda: QApplication.activeModalWidget() is None)


def test_other_windows_have_a_page(window: MainWindow) -> None:
    window.companions.show_kernel()
    window.companions.show_bench()
    for other in (window.companions.kernel_viewer, window.companions.bench):
        assert other is not None
        for widget in (other, *controls(other)):
            check(place_of(widget))
        other.close()


def test_a_place_holds_for_everything_inside(qtbot: QtBot) -> None:
    outer = QWidget()
    qtbot.addWidget(outer)
    inner = QWidget(outer)
    assert place_of(inner) == ""
    set_help(outer, "window")
    assert place_of(inner) == "window"
    set_help(inner, "volumes#files")
    assert place_of(inner) == "volumes#files"
    assert place_of(outer) == "window"


def press_f1_at(qtbot: QtBot, window: MainWindow, way: tuple[str, ...]) -> None:
    menu: Any = None
    for name in way:
        holder: Any = menu if menu is not None else window.menuBar()
        entry = next(each for each in holder.actions() if each.text().replace("&", "") == name)
        if menu is not None:
            menu.setActiveAction(entry)
        if entry.menu() is not None and name != "Regions of Interest":
            menu = entry.menu()
            menu.popup(window.mapToGlobal(QPoint(40, 40)))
            qtbot.waitUntil(menu.isVisible)
    assert menu is not None
    qtbot.keyClick(menu, Qt.Key.Key_F1)
    assert QApplication.activePopupWidget() is None
