"""Values on their way from threads to a window, also to one that is gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import shiboken6
from PySide6.QtCore import QObject, QThread
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken
from kernelscope.engine.worker import Job
from kernelscope.gui.work.background import Background
from kernelscope.gui.work.relay import Relay
from kernelscope.gui.work.tasks import Priority, Tasks
from tests.patience import PATIENCE


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
