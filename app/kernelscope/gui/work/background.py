"""Work off the GUI thread, and calls that come to it: from any thread, or after the paint."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import shiboken6
from PySide6.QtCore import QObject, Qt, QTimer, Signal

from kernelscope.base.errors import AppError, Cancelled


class _Sender(QObject):
    sent = Signal(object)


class Relay:
    """Hands values from any thread to a slot, which is called on the GUI thread.

    A thread that outlives its window may go on sending. Were the signal the window's own, the
    thread would use it while the GUI thread destroys it, which crashes the program. Threads
    hold a relay instead, and the window closes it.

    - `slot`: a method of a `QObject` that lives on the GUI thread; called once for each value, in
      the order of sending, until that object is destroyed.
    """

    def __init__(self, slot: Callable[[Any], None]) -> None:
        self._lock = threading.Lock()
        self._sender: _Sender | None = _Sender()
        self._sender.sent.connect(slot, Qt.ConnectionType.QueuedConnection)

    def send(self, value: object) -> None:
        """Hand over `value`; after `close`, drop it."""
        with self._lock:
            if self._sender is not None:
                self._sender.sent.emit(value)

    def close(self) -> None:
        """Let go of the slot, from the GUI thread; values on their way still arrive."""
        with self._lock:
            self._sender = None


SOON_MS = 30  # the wait after a change of a setting: most live runs end sooner, and none is seen


class Later(QObject):
    """Calls a slow function once for several requests, after the picture is painted."""

    def __init__(self, call: Callable[[], object], parent: QObject) -> None:
        super().__init__(parent)
        self._call = call
        self._timer = QTimer(self, singleShot=True, interval=SOON_MS)
        self._timer.timeout.connect(call)
        # Not an event of low priority, as paints are: PySide 6.11 at times deletes the Python half
        # of an event that is posted before Qt deletes the other one, which then ends the program.
        self._turn = QTimer(self, singleShot=True, interval=0)
        self._turn.timeout.connect(self._on_turn)
        self._turns = 0  # of the event loop that are to end

    @property
    def is_due(self) -> bool:
        """Whether a call was requested and has not come yet."""
        return self._turn.isActive() or self._timer.isActive()

    def soon(self) -> None:
        """Call within 30 ms, however many requests there are meanwhile."""
        if not self.is_due:
            self._timer.start()

    def after_paint(self) -> None:
        """Call when all that had changed at the first such request has been painted."""
        self._timer.stop()
        if not self._turn.isActive():
            self._turns = 2  # a timer may come before the paints of its turn
            self._turn.start()

    def cancel(self) -> None:
        """Call no more for earlier requests."""
        self._timer.stop()
        self._turn.stop()

    def _on_turn(self) -> None:
        self._turns -= 1
        if self._turns:
            self._turn.start()
        else:
            self._call()


_PATIENCE = 1.0
"""Seconds that closing the window waits for work that may be given up (a hanging file)."""


class _Task:
    """Work of a thread and its callbacks, which hold on to windows.

    Whoever lets go of a window last destroys it. A thread must not: Qt may be painting it. So
    threads know tasks only, and the GUI thread empties them.
    """

    def __init__(
        self,
        work: Callable[[], Any],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None],
        topic: str | None,
    ) -> None:
        self.topic = topic  # None for work that must finish
        self._parts: dict[str, Any] = {"work": work, "then": then, "failed": failed}

    def run(self) -> None:
        """Do the work, on any thread."""
        try:
            self._parts["answer"] = self._parts["work"]()
        except Exception as error:  # passed to `failed`, which handles it
            self._parts["error"] = error

    def take(self) -> tuple[Callable[[Any], None], Any]:
        """Return the callback and its argument, and keep nothing; after `run`."""
        parts, self._parts = self._parts, {}
        if "error" in parts:
            return parts["failed"], parts["error"]
        return parts["then"], parts["answer"]


def expected(error: Exception) -> AppError | None:
    """Return a failure that is shown to the user; None where work was cancelled. Raises a bug."""
    if isinstance(error, Cancelled):
        return None
    if not isinstance(error, AppError):
        raise error
    return error


class Background(QObject):
    """Runs functions on threads of their own; their results arrive on the GUI thread."""

    settled = Signal(bool)
    """Emitted when the last work that must finish was answered: whether that went well."""

    def __init__(
        self,
        parent: QObject | None = None,
        report: Callable[[Exception], None] | None = None,
    ) -> None:
        super().__init__(parent)
        self.report = report or _raise  # takes failures for which the work names no other function
        self._threads: set[threading.Thread] = set()
        self._tasks: set[_Task] = set()
        self._latest: dict[str, _Task] = {}
        self._closed = False
        self._owed = 0
        self._relay = Relay(self._deliver)

    def start(
        self,
        topic: str,
        work: Callable[[], Any],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None] | None = None,
        *,
        must_finish: bool = False,
    ) -> None:
        """Run ``work()`` on a thread, then ``then(result)`` or ``failed(error)`` here.

        - `topic`: of work on one topic only the latest is answered, so a file that hangs does not
          stand in the way of the next one. Work that must finish is always answered.
        - `must_finish`: closing waits for the end of this work, however long it takes.
        """
        latest = None if must_finish else topic
        task, relay = _Task(work, then, failed or self.report, latest), self._relay
        self._tasks.add(task)
        if must_finish:
            self._owed += 1
        else:
            self._latest[topic] = task

        def body() -> None:
            task.run()
            relay.send(task)

        thread = threading.Thread(target=body, name=f"kernelscope-{topic}", daemon=not must_finish)
        self._threads = {old for old in self._threads if old.is_alive()} | {thread}
        thread.start()

    @property
    def owes(self) -> bool:
        """Whether work that must finish has not been answered yet."""
        return self._owed > 0

    def forget(self, topic: str) -> None:
        self._latest.pop(topic, None)

    def close(self) -> None:
        """Wait for the threads; those that may be given up get a second together."""
        self._closed = True
        self._relay.close()
        deadline = time.monotonic() + _PATIENCE
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()) if thread.daemon else None)

    def _deliver(self, task: _Task) -> None:
        if self._closed:
            return
        self._tasks.discard(task)
        callback, answer = task.take()
        if task.topic is None:
            self._owed -= 1
        elif self._latest.get(task.topic) is task:
            del self._latest[task.topic]
        else:
            return
        owner = getattr(callback, "__self__", None)
        if not isinstance(owner, QObject) or shiboken6.isValid(owner):  # else it was closed
            callback(answer)
        if task.topic is None and not self._owed:
            self.settled.emit(not isinstance(answer, Exception))


def _raise(error: Exception) -> None:
    raise error
