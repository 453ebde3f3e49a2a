"""A whole job by the keyboard alone: no test here touches the mouse or calls a method for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFileDialog, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from kernelscope.gui.model.comparison import View
from kernelscope.gui.model.display import Arrangement
from kernelscope.gui.window.main_window import MainWindow
from tests.gui.helpers import child, choose_files, dialog, press, save_as
from tests.gui.test_volume_page import open_scan, voxels, write

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("compiled_judging")]

_MOST = 250
"""Controls of the window that Tab goes through at most."""


def tab_to(qtbot: QtBot, window: MainWindow, name: str) -> QWidget:
    """Press Tab until the control of this name has the focus."""
    for _ in range(_MOST):
        focused = QApplication.focusWidget()
        if focused is not None and focused.objectName() == name:
            return focused
        qtbot.keyClick(focused or window, Qt.Key.Key_Tab)
    pytest.fail(f"Tab does not lead to {name}")


def test_a_picture_is_opened_filtered_compared_measured_and_saved(
    qtbot: QtBot, window: MainWindow, picture: Path, tmp_path: Path
) -> None:
    press(qtbot, window, "Ctrl+O")
    choose_files(dialog(qtbot, window, QFileDialog), picture)
    qtbot.waitUntil(lambda: window.session.pictures.input is not None)

    press(qtbot, window, "Ctrl+F")
    search = QApplication.focusWidget()
    assert isinstance(search, QLineEdit)
    qtbot.keyClicks(search, "median")
    qtbot.keyClick(search, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.session.filter_id == "median")

    box = tab_to(qtbot, window, "sizeBox")
    qtbot.keyClick(box, Qt.Key.Key_Up)
    assert window.session.values.numbers["size"] == 5
    press(qtbot, window, "F5")
    qtbot.waitUntil(lambda: window.session.pictures.result is not None)

    press(qtbot, window, "Alt+2")
    view = window.session.pictures.view
    assert view.panes.arrangement is Arrangement.SWIPE
    tab_to(qtbot, window, "outputCanvas")
    press(qtbot, window, "]")
    assert view.divide > 0.5
    press(qtbot, window, "F3")
    assert window.session.view is View.RESIDUAL
    press(qtbot, window, "F2")

    press(qtbot, window, "Ctrl+Alt+R")
    press(qtbot, window, "Return")
    press(qtbot, window, "Right")
    qtbot.waitUntil(lambda: len(window.measure.rows) >= 2)
    tab_to(qtbot, window, "regionName")

    press(qtbot, window, "Ctrl+S")
    save_as(qtbot, window, tmp_path / "out.png")
    qtbot.waitUntil((tmp_path / "out.png").exists)


def test_planes_and_slices_of_a_volume_are_chosen(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    open_scan(qtbot, window, write(tmp_path / "T1.nii", voxels()))
    view = window.session.volumes.view
    large = tab_to(qtbot, window, "plane4Button")
    qtbot.keyClick(large, Qt.Key.Key_Space)
    assert view.large == 0
    sagittal = tab_to(qtbot, window, "plane2Button")
    qtbot.keyClick(sagittal, Qt.Key.Key_Space)
    assert view.plane_number == 2
    before = view.position
    canvas = tab_to(qtbot, window, "volumeInputPlane2")
    qtbot.keyClick(canvas, Qt.Key.Key_Up)
    assert view.position != before
    level = child(window, QWidget, "windowLevel")
    tab_to(qtbot, window, level.objectName())
