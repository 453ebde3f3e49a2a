"""Calls that wait until the picture is painted."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from kernelscope.gui.work.later import Later


class Canvas(QWidget):
    """Notes each paint."""

    def __init__(self, seen: list[str]) -> None:
        super().__init__()
        self.seen = seen

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        self.seen.append("paint")


def test_a_call_follows_the_paint(qtbot: QtBot) -> None:
    seen: list[str] = []
    canvas = Canvas(seen)
    qtbot.addWidget(canvas)
    later = Later(lambda: seen.append("call"), canvas)
    with qtbot.waitExposed(canvas):
        canvas.show()
    for _ in range(5):
        seen.clear()
        later.soon()
        later.after_paint()  # at once now, not after the wait of the first request
        canvas.update()
        qtbot.waitUntil(lambda: "call" in seen)
        assert seen == ["paint", "call"]


def test_a_call_that_waits_for_a_paint_is_due(qtbot: QtBot) -> None:
    calls: list[object] = []
    parent = QWidget()
    qtbot.addWidget(parent)
    later = Later(lambda: calls.append(None), parent)
    later.after_paint()
    assert later.is_due
    later.soon()
    assert not later.findChildren(QTimer)[0].isActive(), "it would call once more"
    qtbot.waitUntil(lambda: bool(calls))
    assert not later.is_due


def test_requests_are_answered_once_and_not_put_off(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []
    starts: list[object] = []
    parent = QWidget()
    qtbot.addWidget(parent)
    later = Later(lambda: calls.append(None), parent)
    timer = later.findChildren(QTimer)[0]
    start = timer.start
    monkeypatch.setattr(timer, "start", lambda: (starts.append(None), start()))
    for _ in range(3):
        later.soon()
    assert len(starts) == 1, "another start would put it off"
    qtbot.waitUntil(lambda: bool(calls))
    assert not later.is_due
    assert not timer.isActive()
    QApplication.processEvents()
    assert len(calls) == 1


def test_a_cancelled_call_does_not_come(qtbot: QtBot) -> None:
    calls: list[object] = []
    parent = QWidget()
    qtbot.addWidget(parent)
    later = Later(lambda: calls.append(None), parent)
    later.soon()
    later.after_paint()
    later.cancel()
    assert not later.is_due
    assert not later.findChildren(QTimer)[0].isActive()
    QApplication.processEvents()
    assert not calls
    later.after_paint()
    qtbot.waitUntil(lambda: bool(calls))
