"""How the parts of the window lie."""

from __future__ import annotations

import itertools

import pytest
from PySide6.QtCore import QByteArray, QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QTabBar, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from kernelscope.gui.widgets.appearance import Appearance, Scheme, Stylist
from kernelscope.gui.window import last_session
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.main_window import MainWindow
from tests.gui.helpers import child, contrast, press


def test_a_layout_of_an_earlier_version_is_not_restored(window: MainWindow) -> None:
    quality = window.docks[DockName.QUALITY]
    quality.close()
    for version, hidden in (
        (last_session.STATE_VERSION - 1, False),
        (last_session.STATE_VERSION, True),
    ):
        quality.close()
        window.settings.set_blob("state", window.saveState(version))
        quality.show()
        last_session.restore_layout(window, window.settings)
        assert quality.isHidden() is hidden


def test_damaged_layouts_are_ignored(window: MainWindow) -> None:
    window.settings.set_text("state", "0 not base64")
    window.settings.set_blob("geometry", QByteArray(b"not a geometry"))
    last_session.restore_layout(window, window.settings)
    assert not window.docks[DockName.QUALITY].isHidden()


def test_one_key_leaves_only_the_pictures(qtbot: QtBot, window: MainWindow) -> None:
    window.docks[DockName.CONSOLE].close()
    window.docks[DockName.QUALITY].raise_()
    qtbot.waitUntil(lambda: not window.docks[DockName.QUALITY].visibleRegion().isEmpty())
    shown = {name for name, dock in window.docks.items() if not dock.isHidden()}
    press(qtbot, window, "F11")
    assert all(dock.isHidden() for dock in window.docks.values())
    run = window.findChild(QToolButton, "runTool")
    qtbot.waitUntil(run.isVisible)  # it stays in reach
    press(qtbot, window, "F11")
    assert {name for name, dock in window.docks.items() if not dock.isHidden()} == shown
    qtbot.waitUntil(lambda: not window.docks[DockName.QUALITY].visibleRegion().isEmpty())
    press(qtbot, window, "F11")
    window.docks[DockName.STEPS].show()  # as a second step does
    for _ in range(2):
        press(qtbot, window, "F11")
    again = {name for name, dock in window.docks.items() if not dock.isHidden()}
    assert again == {*shown, DockName.STEPS}


def test_the_wheel_does_not_change_tabs(qtbot: QtBot, window: MainWindow) -> None:
    def bars() -> list[QTabBar]:
        found = window.findChildren(QTabBar, "", Qt.FindChildOption.FindDirectChildrenOnly)
        return [bar for bar in found if bar.isVisible() and bar.count() > 1]

    qtbot.waitUntil(lambda: len(bars()) == 1)
    (bar,) = bars()
    before = bar.currentIndex()
    for notch in (-120, 120):
        place = QPointF(bar.mapTo(window, bar.rect().center()))
        QTest.wheelEvent(window.windowHandle(), place, QPoint(0, notch))
        assert bar.currentIndex() == before


@pytest.mark.parametrize("scheme", [Scheme.DARK, Scheme.LIGHT])
def test_a_panel_is_closed_and_floats_by_the_mouse(
    qtbot: QtBot, stylist: Stylist, window: MainWindow, scheme: Scheme
) -> None:
    stylist.apply(Appearance(scheme))
    dock = window.docks[DockName.CONTROLS]
    buttons = {
        name: child(dock, QAbstractButton, f"qt_dockwidget_{name}button")
        for name in ("float", "close")
    }
    qtbot.waitUntil(lambda: all(each.height() >= 16 for each in buttons.values()))
    for button in buttons.values():
        assert button.width() >= 16
        assert contrast_of_icon(button) >= 3
    qtbot.mouseClick(buttons["close"], Qt.MouseButton.LeftButton)
    assert dock.isHidden()


def contrast_of_icon(button: QWidget) -> float:
    """Return the contrast of the picture on a button with the ground at its edge."""
    picture = button.grab().toImage()
    ground = picture.pixelColor(0, 0).name()
    places = itertools.product(range(picture.width()), range(picture.height()))
    return max(contrast(ground, picture.pixelColor(x, y).name()) for x, y in places)
