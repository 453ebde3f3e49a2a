"""The work of the window's worker: one task at a time, by priority, its answers on the GUI thread.

submit(A, LIVE)   submit(B, SHOWN)
   |---- A ----|x stopped
                 |---- B ---- finished, ended
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import IntEnum

from PySide6.QtCore import QObject, Signal

from kernelscope.engine.backend import Backend
from kernelscope.engine.costs import Costs
from kernelscope.engine.request import Request
from kernelscope.engine.worker import (
    Event,
    Failed,
    Finished,
    Job,
    Progressed,
    Reported,
    Stopped,
    Worker,
)
from kernelscope.gui.work.background import Relay


class Priority(IntEnum):
    """Work gives way to work of its own priority or a higher one."""

    SKETCH = 1  # a thumbnail of the filter browser
    LIVE = 2  # the output follows the settings
    ERRAND = 3  # the input of a step that the user wants to see
    ASIDE = 4  # the user started it beside the output: a level of the ladder, a contact sheet
    STARTED = 5  # the user started it: a run, a recipe, a benchmark


class Task(QObject):
    progressed = Signal(str, float)  # stage and fraction; not of live work
    reported = Signal(object)  # a value that a job reported
    finished = Signal(object)  # `Result`; None of a job
    failed = Signal(object)  # an `Exception`
    stopped = Signal()  # it was cancelled, or other work took its place

    def __init__(self, tasks: Tasks, work: Request | Job, priority: Priority) -> None:
        super().__init__()
        self._tasks, self.work, self.priority = tasks, work, priority
        self.begun = math.inf  # when it began

    @property
    def is_job(self) -> bool:
        return isinstance(self.work, Job)

    def cancel(self) -> None:
        """Stop it, if it is still in progress."""
        self._tasks.cancel(self)

    def mute(self) -> None:
        """Send no signal any more: nobody waits for it."""
        self.blockSignals(True)

    def drop(self) -> None:
        """Stop it, and send no signal any more."""
        self.mute()
        self.cancel()


class Tasks(QObject):
    # Of a `Task`; `ended` follows the signal of the task itself.
    began = Signal(object)
    ended = Signal(object)

    def __init__(
        self,
        backends: Mapping[str, Backend],
        parent: QObject | None = None,
        costs: Costs | None = None,
    ) -> None:
        super().__init__(parent)
        self.current: Task | None = None  # the task in progress
        self._waiting: Task | None = None
        """The one that begins when that has ended: it has a lower priority."""
        self._due: dict[Callable[[], object], Priority] = {}  # the calls of `when_free`
        self.costs = costs or Costs()
        relay = self._relay = Relay(self._deliver)
        # They hold the relay only: a thread may outlive the window.
        self._worker = Worker(backends, relay.send, self.costs)
        # On a thread of their own, thumbnails give way at once: code that is loaded, or compiled
        # for an estimate, cannot be interrupted, and a live change would wait for seconds.
        self._sketcher = Worker({}, relay.send, daemon=True)

    def is_free(self, priority: Priority) -> bool:
        """Return whether work of this priority would not have to wait."""
        return self.current is None or self.current.priority <= priority

    def submit(self, work: Request | Job, priority: Priority) -> Task:
        """Begin `work` in place of the current task; only the last waits for an urgent one."""
        task = Task(self, work, priority)
        if self.is_free(priority):
            self._begin(task)
        else:
            replaced, self._waiting = self._waiting, task
            if replaced is not None:
                replaced.stopped.emit()
            self.when_free(priority, self._begin_waiting)
        return task

    def when_free(self, priority: Priority, call: Callable[[], object]) -> None:
        """Call once, now or when work of this priority need no longer wait."""
        self._due[call] = priority
        self._go_on()

    def _go_on(self) -> None:
        for call, priority in sorted(self._due.items(), key=lambda due: -due[1]):
            if self.is_free(priority) and self._due.pop(call, None) is not None:
                call()

    def _begin_waiting(self) -> None:
        task, self._waiting = self._waiting, None
        if task is not None:
            self._begin(task)

    def _begin(self, task: Task) -> None:
        replaced, self.current = self.current, task
        task.begun = time.monotonic()
        worker = self._worker_of(task)
        if replaced is not None and worker is not self._worker_of(replaced):
            self._worker_of(replaced).cancel(followed=True)
        worker.submit(task.work)
        self.began.emit(task)
        if replaced is not None:
            if replaced.priority is Priority.ERRAND < task.priority:
                # A copy: the end of the one that was stopped would be taken for its end.
                assert isinstance(replaced.work, Request)
                replaced.work = replace(replaced.work)
                self._waiting = replaced
                self.when_free(replaced.priority, self._begin_waiting)
            else:
                replaced.stopped.emit()
            self.ended.emit(replaced)

    def cancel(self, task: Task | None = None) -> None:
        """Stop a task, by default the current one; see `Worker.cancel`.

        It has ended at once, although a kernel that is being compiled runs to its end. A job ends
        after its last reports.
        """
        if task is not None and task is self._waiting:
            self._waiting = None
        if self.current is None or task not in (None, self.current):
            return
        live = self.current.priority < Priority.ASIDE
        self._worker_of(self.current).cancel(followed=live)
        if not self.current.is_job:
            ended = self._end()
            ended.stopped.emit()
            self.ended.emit(ended)
            self._go_on()

    def live_stage(self) -> str:
        """Return the stage of the current live run; empty if there is none."""
        live = self.current is not None and self.current.priority < Priority.ASIDE
        return self._worker.live_stage if live else ""

    def close(self, timeout: float) -> None:
        """Cancel and wait for the worker's thread to end, `timeout` seconds at most."""
        self.current = self._waiting = None
        self._due.clear()
        self._relay.close()
        self._sketcher.close(0)
        self._worker.close(timeout)

    def _worker_of(self, task: Task) -> Worker:
        return self._sketcher if task.priority is Priority.SKETCH else self._worker

    def _end(self) -> Task:
        task, self.current = self.current, None
        assert task is not None
        return task

    def _deliver(self, event: Event) -> None:
        task = self.current
        if task is None or event.request is not task.work:
            return  # of work that was replaced
        match event:
            case Progressed(stage=stage, fraction=fraction):
                task.progressed.emit(stage, fraction)
                return
            case Reported(value=value):
                task.reported.emit(value)
                return
        self._end()
        match event:
            case Finished(result=answer):
                task.finished.emit(answer)
            case Failed(error=error):
                task.failed.emit(error)
            case Stopped():
                task.stopped.emit()
        self.ended.emit(task)
        self._go_on()
