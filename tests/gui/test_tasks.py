"""The queue of the window: one task at a time, which answers once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from kernelscope.base.errors import AppError
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken, Progress
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.worker import Job
from kernelscope.gui.work.tasks import Priority, Task, Tasks
from kernelscope.images.image import Image
from tests.engine.fakes import FakeBackend
from tests.patience import PATIENCE

SKETCH, LIVE, ERRAND, ASIDE, STARTED = Priority


class Slow(FakeBackend):
    """Waits in each run until it may go on."""

    def __init__(self) -> None:
        super().__init__("cpu", self._wait)
        self.entered, self.go = threading.Event(), threading.Event()
        self.error: Exception | None = None

    def _wait(self, request: Request, token: CancelToken, progress: Progress) -> None:
        self.entered.set()
        assert self.go.wait(PATIENCE)
        if self.error is not None:
            raise self.error


@pytest.fixture
def cpu() -> Slow:
    return Slow()


@pytest.fixture
def tasks(qtbot: QtBot, cpu: Slow) -> Iterator[Tasks]:
    tasks = Tasks({"cpu": cpu})
    yield tasks
    cpu.go.set()
    tasks.close(PATIENCE)


def request(size: int = 3) -> Request:
    image = Image.from_array(np.zeros((8, 9), np.uint8))
    return Request.create(image, "mean", {"size": size}, device=Device.CPU)


def heard(task: Task) -> list[str]:
    """Return the names of the signals that a task sends from now on."""
    names: list[str] = []
    for name in ("reported", "finished", "failed"):
        getattr(task, name).connect(lambda _, name=name: names.append(name))
    task.stopped.connect(lambda: names.append("stopped"))
    return names


def job(body: Callable[[CancelToken, Callable[[Any], None]], None]) -> Job:
    def work(
        backends: Mapping[str, Backend], token: CancelToken, report: Callable[[Any], None]
    ) -> None:
        body(token, report)

    return Job(work)


def test_a_task_ends_with_its_result(qtbot: QtBot, tasks: Tasks, cpu: Slow) -> None:
    ended: list[Task] = []
    tasks.ended.connect(ended.append)
    task = tasks.submit(request(), STARTED)
    names = heard(task)
    assert tasks.current is task
    cpu.go.set()
    with qtbot.waitSignal(task.finished) as done:
        pass
    assert done.args[0].request is task.work
    assert (names, ended, tasks.current) == (["finished"], [task], None)


@pytest.mark.parametrize("new", [SKETCH, LIVE, ERRAND, ASIDE, STARTED])
@pytest.mark.parametrize("old", [LIVE, ERRAND, ASIDE, STARTED])
def test_a_task_gives_way_to_its_own_priority_and_higher_ones(
    qtbot: QtBot, tasks: Tasks, cpu: Slow, old: Priority, new: Priority
) -> None:
    """One of a lower priority waits; the input of a step is computed again afterwards."""
    first = tasks.submit(request(3), old)
    names = heard(first)
    assert tasks.is_free(new) is (new >= old)
    second = tasks.submit(request(5), new)
    assert tasks.current is (second if new >= old else first)
    again = old is ERRAND and new > old
    kept = again or new < old
    assert names == ([] if kept else ["stopped"])
    if new is SKETCH:
        return  # which has no backends here
    cpu.go.set()
    last = first if again else second
    with qtbot.waitSignal(last.finished) as done:
        pass
    assert done.args[0].request is last.work
    assert names == (["finished"] if kept else ["stopped"]), "a late result has no effect"


def test_work_that_waits_can_be_given_up_and_only_the_last_one_waits(
    qtbot: QtBot, tasks: Tasks, cpu: Slow
) -> None:
    run = tasks.submit(request(3), STARTED)
    first = tasks.submit(request(5), ERRAND)
    names = heard(first)
    second = tasks.submit(request(7), ERRAND)
    assert names == ["stopped"]
    second.cancel()
    cpu.go.set()
    with qtbot.waitSignal(run.finished):
        pass
    assert tasks.current is None


def test_the_input_of_a_step_that_had_to_wait_is_computed_after_a_run_is_cancelled(
    qtbot: QtBot, tasks: Tasks, cpu: Slow
) -> None:
    errand = tasks.submit(request(3), ERRAND)
    before = errand.work
    tasks.submit(request(5), STARTED)
    tasks.cancel()
    assert tasks.current is errand
    cpu.go.set()
    with qtbot.waitSignal(errand.finished) as done:
        pass
    assert done.args[0].request is errand.work is not before


def test_a_cancelled_run_has_ended_at_once(qtbot: QtBot, tasks: Tasks, cpu: Slow) -> None:
    task = tasks.submit(request(), STARTED)
    names = heard(task)
    task.cancel()
    assert (names, tasks.current) == (["stopped"], None)
    task.cancel()
    later = tasks.submit(request(5), LIVE)
    task.cancel()
    assert tasks.current is later, "it ends no other task"
    cpu.go.set()
    with qtbot.waitSignal(later.finished):
        pass
    assert names == ["stopped"]


def test_the_last_reports_of_a_job_come_before_its_end(qtbot: QtBot, tasks: Tasks) -> None:
    entered = threading.Event()

    def body(token: CancelToken, report: Callable[[Any], None]) -> None:
        entered.set()
        while not token.cancelled:
            time.sleep(0.001)
        report("the last row")

    task = tasks.submit(job(body), STARTED)
    names = heard(task)
    assert entered.wait(PATIENCE)
    task.cancel()
    assert names == []
    with qtbot.waitSignal(task.stopped):
        pass
    assert names == ["reported", "stopped"]


def test_thumbnails_that_hear_nothing_hold_up_neither_runs_nor_the_next_but_wait_for_each_other(
    qtbot: QtBot, tasks: Tasks, cpu: Slow
) -> None:
    """As while code for an estimate is compiled."""
    entered, go_on, drawn = threading.Event(), threading.Event(), list[str]()

    def deaf(token: CancelToken, report: Callable[[Any], None]) -> None:
        entered.set()
        assert go_on.wait(PATIENCE)
        drawn.append("first")

    first = tasks.submit(job(deaf), SKETCH)
    names = heard(first)
    assert entered.wait(PATIENCE)
    cpu.go.set()
    with qtbot.waitSignal(tasks.submit(request(), LIVE).finished):
        assert names == ["stopped"]
    second = tasks.submit(job(lambda token, report: drawn.append("second")), SKETCH)
    go_on.set()
    with qtbot.waitSignal(second.finished):
        pass
    assert (names, drawn) == (["stopped"], ["first", "second"])


def test_nobody_hears_a_task_that_was_dropped(qtbot: QtBot, tasks: Tasks) -> None:
    task = tasks.submit(request(), LIVE)
    names = heard(task)
    with qtbot.waitSignal(tasks.ended):
        task.drop()
    assert names == []


def test_an_error_ends_a_task(qtbot: QtBot, tasks: Tasks, cpu: Slow) -> None:
    cpu.error = AppError("Full.", "Use less.")
    task = tasks.submit(request(), STARTED)
    cpu.go.set()
    with qtbot.waitSignal(task.failed) as failed:
        pass
    assert str(failed.args[0]) == "Full. Use less."
    assert tasks.current is None
