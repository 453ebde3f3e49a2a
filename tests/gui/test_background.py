"""Background work: its answers, and on which thread its callbacks end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import FrameType

import pytest
import shiboken6
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from kernelscope.gui.work.background import Background
from tests.patience import PATIENCE


class Window:
    """Stands for a dialog: notes the thread that destroys it."""

    def __init__(self, destroyers: list[str], answers: list[str]) -> None:
        self.destroyers, self.answers = destroyers, answers

    def work(self) -> int:
        return 7

    def fail(self) -> int:
        raise ValueError(7)

    def show(self, answer: object) -> None:
        self.answers.append(str(answer))

    def __del__(self) -> None:
        self.destroyers.append(threading.current_thread().name)


@pytest.fixture
def lingering() -> Iterator[threading.Event]:
    """Keep threads in their last function, with all that it holds, until the event is set."""
    event = threading.Event()

    def linger(frame: FrameType, kind: str, _: object) -> None:
        if kind == "return" and frame.f_code.co_name == "body":
            event.wait(PATIENCE)

    threading.setprofile(linger)
    yield event
    threading.setprofile(None)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("forgotten", [False, True])
def test_callbacks_end_on_the_thread_of_the_window(
    qtbot: QtBot, lingering: threading.Event, fails: bool, forgotten: bool
) -> None:
    """A thread that let go of a closed dialog last destroyed its items while Qt painted them."""
    background, destroyers, answers = Background(), list[str](), list[str]()
    window = Window(destroyers, answers)
    background.start("test", window.fail if fails else window.work, window.show, window.show)
    if forgotten:
        background.forget("test")
    del window
    qtbot.waitUntil(lambda: bool(destroyers) or bool(answers))
    QApplication.processEvents()
    lingering.set()
    qtbot.waitUntil(lambda: bool(destroyers))
    assert destroyers == [threading.main_thread().name]
    assert answers == ([] if forgotten else ["7"])
    background.close()


def test_only_the_latest_of_a_topic_is_answered(qtbot: QtBot) -> None:
    background, answers, gate = Background(), list[object](), threading.Event()
    failed: list[Exception] = []

    def first() -> str:
        gate.wait(PATIENCE)
        return "first"

    def wrong() -> str:
        raise ValueError("wrong")

    background.start("a", first, answers.append, failed.append)
    background.start("a", lambda: "second", answers.append, failed.append)
    background.start("b", wrong, answers.append, failed.append)
    background.start("c", first, answers.append, failed.append, must_finish=True)
    assert background.owes
    gate.set()
    with qtbot.waitSignal(background.settled):
        pass
    qtbot.waitUntil(lambda: len(answers) == 2 and len(failed) == 1)
    assert sorted(map(str, answers)) == ["first", "second"]
    assert str(failed[0]) == "wrong"
    background.close()


def test_a_window_that_was_closed_is_not_answered(qtbot: QtBot) -> None:
    background, answers = Background(), list[object]()
    label = QLabel("waits")
    background.start("a", lambda: "late", label.setText, answers.append)
    shiboken6.delete(label)
    background.start("b", lambda: "answer", answers.append, answers.append, must_finish=True)
    with qtbot.waitSignal(background.settled):
        pass
    QApplication.processEvents()
    assert answers == ["answer"]
    background.close()
