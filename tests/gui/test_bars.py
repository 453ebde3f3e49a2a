"""The status bar: its message, and the bar while code is compiled ahead."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from PySide6.QtGui import QPaintEvent, QStatusTipEvent
from PySide6.QtWidgets import QApplication, QLabel, QToolButton
from pytestqt.qtbot import QtBot

from kernelscope.backends import warm_up
from kernelscope.backends.warm_up import Done
from kernelscope.gui.window import main_window
from kernelscope.gui.window.bars import StatusBar
from kernelscope.gui.window.main_window import MainWindow
from tests.gui.helpers import child


def test_name_bar_and_number_left_are_shown_while_it_compiles(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    preparing = window.preparing
    ordered: list[list[str]] = []
    monkeypatch.setattr(preparing.helper, "start", lambda lines: ordered.append(list(lines)))
    monkeypatch.setattr(warm_up, "is_done", lambda: False)
    preparing.start()
    assert not ordered, "only the program compiles ahead"
    window.session.set_filter("sobel")
    preparing.wanted = True
    window._on_code_ready("Median")
    window._on_code_ready("Sobel")
    qtbot.waitUntil(lambda: bool(ordered))
    assert ordered == [["median", "sobel"]]
    preparing.helper.answered.emit(json.dumps(Done(1, 4, "Sobel, 8 bit")))
    assert preparing.isVisible()
    assert preparing._label.full_text.startswith("Compiling Sobel, 8 bit, 3 of 4 left. The code")
    assert preparing._label.text() == "Compiling, 3 left", "the message beside it has the room"
    assert (preparing._bar.value(), preparing._bar.maximum()) == (1, 4)
    assert window._status._area().right() < preparing.x()
    window.resize(1280, 720)
    QApplication.processEvents()
    assert preparing.width() == preparing.sizeHint().width(), "half of the bar was empty"
    preparing.helper.answered.emit(json.dumps(Done(4, 4, "")))
    assert not preparing.isVisible()


def test_pictures_are_averaged_by_compiled_code_once_numba_is_there(
    qtbot: QtBot, loaded: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NumPy went on all session, at two to four times the time for each output."""
    types: list[np.dtype[Any]] = []
    monkeypatch.setattr(main_window, "compile_for", types.append)
    loaded._on_code_ready("Median")
    qtbot.waitUntil(lambda: set(types) == {np.dtype(np.uint8)})


def test_nothing_is_compiled_again(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def is_done() -> bool:
        asked.append(True)
        return True

    monkeypatch.setattr(warm_up, "is_done", is_done)
    monkeypatch.setattr(window.preparing.helper, "start", pytest.fail)
    window.preparing.wanted = True
    window.preparing.start()
    qtbot.waitUntil(lambda: bool(asked) and not window.background._tasks)
    assert not window.preparing.isVisible()


MESSAGE = "GPU tuned.  MRI NLM, dimensions 3d, search radius 5 voxels, patch radius 1 voxel."


class Watched(StatusBar):
    """Keeps its last drawing, from the left edge on."""

    drawn = ""

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        super().paintEvent(event)
        if event.rect().left() == 0:
            self.drawn = self.shown_message()


def test_a_long_message_ends_before_the_labels(qtbot: QtBot) -> None:
    position = QLabel("x 32")
    bar = Watched((QLabel(),), position)
    qtbot.addWidget(bar)
    bar.resize(2000, 24)
    bar.show()
    bar.showMessage(MESSAGE)
    qtbot.waitUntil(lambda: bar.drawn == MESSAGE)
    bar.resize(400, 24)
    qtbot.waitUntil(lambda: bar.drawn.endswith("…"))
    first = bar.drawn
    assert MESSAGE.startswith(first.removesuffix("…"))
    assert bar.fontMetrics().horizontalAdvance(first) < position.x()
    position.setText("x 32, y 36, z 24")
    qtbot.waitUntil(lambda: bar.drawn.endswith("…") and len(bar.drawn) < len(first))
    assert bar.currentMessage() == bar.toolTip() == MESSAGE


def test_a_message_comes_back_after_the_tip_of_a_button(window: MainWindow) -> None:
    """That of *Denoise* was gone as soon as the mouse left the button that was pressed."""
    bar = window.statusBar()
    for message, withdrawn, left in (
        ("saved", "other", "saved"),
        ("saved", "saved", ""),
        ("", "", ""),
    ):
        window.show_status(message)
        QApplication.sendEvent(window, QStatusTipEvent("Open a picture"))
        assert bar.currentMessage() == "Open a picture"
        window._status.withdraw(withdrawn)
        QApplication.sendEvent(window, QStatusTipEvent(""))
        assert bar.currentMessage() == left
        assert bar.toolTip() == left


def test_zoom_and_values_do_not_move_the_buttons_of_panels(
    qtbot: QtBot, window: MainWindow
) -> None:
    """They moved by up to 12 pixels from under the pointer."""
    button = child(window, QToolButton, "runsPanelButton")
    assert button.isVisible()

    def place() -> int:
        QApplication.processEvents()
        return button.mapTo(window, button.rect().topLeft()).x()

    before = place()
    for zoom, values in (("9 %", ""), ("6400 %", ""), ("100 %", "1023, 767: 12.345 of 255")):
        window._status.zoom.setText(zoom)
        window._status.pixel.set_full_text(values)
        assert place() == before, (zoom, values)
