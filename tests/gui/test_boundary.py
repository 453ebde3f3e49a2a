"""Requests for layout end at a boundary unless size hints change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication, QLabel, QMainWindow, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from kernelscope.gui.widgets.layouts import Boundary
from kernelscope.gui.window.main_window import MainWindow
from tests.gui.helpers import settle


class Requests(QObject):
    """Counts requests for layout that reach a widget."""

    def __init__(self, widget: QWidget | None) -> None:
        assert widget is not None
        super().__init__(widget)
        self.count = 0
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        self.count += event.type() == QEvent.Type.LayoutRequest
        return False


@pytest.fixture
def label(qtbot: QtBot) -> Iterator[QLabel]:
    window = QMainWindow()
    qtbot.addWidget(window)
    content = QWidget()
    column = QVBoxLayout(content)
    label = QLabel("12.5 ms")
    column.addWidget(label)
    window.setCentralWidget(Boundary(content))
    window.resize(300, 200)
    with qtbot.waitExposed(window):
        window.show()
    yield label
    window.close()


def test_a_text_of_the_same_size_reaches_no_window(qtbot: QtBot, label: QLabel) -> None:
    requests, inner = Requests(label.window()), Requests(label.parentWidget())
    label.setText("21.5 ms")
    qtbot.waitUntil(lambda: inner.count > 0)
    QApplication.processEvents()
    assert requests.count == 0


def test_a_larger_text_enlarges_the_window(qtbot: QtBot, label: QLabel) -> None:
    label.setText("x" * 200)
    qtbot.waitUntil(lambda: label.window().width() > 400)
    assert label.width() >= label.sizeHint().width()


def test_changes_while_hidden_are_seen_when_shown(qtbot: QtBot, label: QLabel) -> None:
    window = label.window()
    window.hide()
    label.setText("x" * 200)
    window.show()
    qtbot.waitUntil(lambda: label.width() >= label.sizeHint().width())


def test_the_content_fills_it(label: QLabel) -> None:
    content = label.parentWidget()
    assert content is not None
    boundary = content.parentWidget()
    assert isinstance(boundary, Boundary)
    assert content.geometry() == boundary.rect()
    assert boundary.minimumSizeHint() == content.minimumSizeHint()


def test_a_window_at_rest_lays_out_nothing(qtbot: QtBot, window: MainWindow) -> None:
    window.show()
    requests = [Requests(each) for each in (window, window.centralWidget())]
    qtbot.waitUntil(lambda: window.isVisible())
    settle(qtbot, window)
    for each in requests:
        each.count = 0
    for timer in window.findChildren(QTimer):
        if timer.isActive():
            timer.timeout.emit()
    QApplication.processEvents()
    assert [each.count for each in requests] == [0, 0]
