"""Calls that come to the GUI thread: after the paint, and from threads, which may outlive it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import shiboken6
from PySide6.QtCore import QObject, QThread, QTimer
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken
from kernelscope.engine.worker import Job
from kernelscope.gui.work.background import Background, Later, Relay
from kernelscope.gui.work.tasks import Priority, Tasks
from tests.paths import ROOT
from tests.patience import PATIENCE


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
        seen.clear()
        QTimer.singleShot(0, later.after_paint)
        QTimer.singleShot(0, canvas.update)  # in the turn of the request, and after it
        qtbot.waitUntil(lambda: "call" in seen)
        assert seen == ["paint", "call"]


@pytest.mark.slow
def test_a_call_follows_the_paint_where_timers_come_first() -> None:
    """As in the event loop of Qt's own, which is that of systems without GLib."""
    name = test_a_call_follows_the_paint.__name__
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", f"{__file__}::{name}"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "QT_NO_GLIB": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_no_event_of_python_is_posted() -> None:
    """After thousands of them PySide 6.11 uses the Python half of one that it has freed."""
    sources = (ROOT / "app" / "kernelscope" / "gui").rglob("*.py")
    assert not [each.name for each in sources if "postEvent(" in each.read_text("utf-8")]


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


class Receiver(QObject):
    """Stands for a window."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[object] = []
        self.threads: set[QThread] = set()

    def take(self, value: object) -> None:
        self.values.append(value)
        self.threads.add(QThread.currentThread())


def on_a_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PATIENCE)


def test_values_of_threads_arrive_here_in_their_order(qtbot: QtBot) -> None:
    receiver = Receiver()
    relay = Relay(receiver.take)
    on_a_thread(lambda: [relay.send(number) for number in range(100)])
    assert receiver.values == []
    qtbot.waitUntil(lambda: len(receiver.values) == 100)
    assert receiver.values == list(range(100))
    assert receiver.threads == {receiver.thread()}


def test_a_closed_relay_drops_values(qtbot: QtBot) -> None:
    receiver = Receiver()
    relay = Relay(receiver.take)
    relay.send("before")
    relay.close()
    on_a_thread(lambda: relay.send("after"))
    qtbot.waitUntil(lambda: receiver.values != [])
    QApplication.processEvents()
    assert receiver.values == ["before"]


@pytest.mark.slow
def test_a_receiver_is_destroyed_while_threads_send(qtbot: QtBot) -> None:
    """Each thread sends a given number of values: four without end would keep this one waiting."""
    for _ in range(20):
        receiver = Receiver()
        relay = Relay(receiver.take)
        sends = threading.Event()

        def send(relay: Relay = relay, sends: threading.Event = sends) -> None:
            for _ in range(500):
                relay.send(7)
                sends.set()

        threads = [threading.Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        assert sends.wait(PATIENCE)
        relay.send(8)
        relay.close()
        shiboken6.delete(receiver)
        QApplication.processEvents()
        for thread in threads:
            thread.join(PATIENCE)
        assert not shiboken6.isValid(receiver)


def test_a_run_ends_after_its_window_was_destroyed(qtbot: QtBot) -> None:
    """A measurement on a busy machine outlived the window, and used the signal of nobody."""
    entered, go = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def work(
        backends: Mapping[str, Backend], token: CancelToken, report: Callable[[Any], None]
    ) -> None:
        entered.set()
        go.wait(PATIENCE)
        try:
            report(7)
        except BaseException as error:
            failures.append(error)
            raise

    before = set(threading.enumerate())
    tasks = Tasks({})
    tasks.submit(Job(work), Priority.STARTED)
    assert entered.wait(PATIENCE)
    tasks.close(0.01)
    shiboken6.delete(tasks)
    go.set()
    deadline = time.monotonic() + PATIENCE
    while set(threading.enumerate()) - before:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert failures == []


def test_work_ends_after_its_background_was_destroyed(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelscope.gui.work.background._PATIENCE", 0.01)
    go, answers = threading.Event(), list[object]()
    background = Background()
    background.start("test", lambda: go.wait(PATIENCE), answers.append, answers.append)
    (thread,) = background._threads
    background.close()
    shiboken6.delete(background)
    go.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert answers == []
