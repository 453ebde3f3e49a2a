"""Work that would freeze the window: reading, writing and preparing pictures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal

_PATIENCE = 1.0
"""Seconds that closing the window waits for work that may be given up (a hanging file)."""


class Background(QObject):
    """Runs functions on threads of their own; their results arrive on the GUI thread."""

    settled = Signal(bool)
    """Emitted when the last work that must finish was answered: whether that went well."""

    _finished = Signal(object, object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._threads: set[threading.Thread] = set()
        self._latest: dict[str, object] = {}
        self._closed = False
        self._owed = 0
        self._finished.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    def start(
        self,
        topic: str,
        work: Callable[[], Any],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None],
        *,
        must_finish: bool = False,
    ) -> None:
        """Run ``work()`` on a thread, then ``then(result)`` or ``failed(error)`` here.

        Parameters
        ----------
        topic : str
            Of work on one topic only the latest is answered, so a file that hangs does not
            stand in the way of the next one. Work that must finish is always answered.
        must_finish : bool
            Closing waits for the end of this work, however long it takes.
        """
        ticket = object()
        if must_finish:
            self._owed += 1
        else:
            self._latest[topic] = ticket

        def body() -> None:
            callback: Callable[[Any], None]
            try:
                answer = work()
                callback = then
            except Exception as error:  # passed to `failed`, which handles it
                answer, callback = error, failed
            if not self._closed:
                self._finished.emit(None if must_finish else (topic, ticket), callback, answer)

        thread = threading.Thread(target=body, name=f"kernelscope-{topic}", daemon=not must_finish)
        self._threads = {old for old in self._threads if old.is_alive()} | {thread}
        thread.start()

    @property
    def owes(self) -> bool:
        """Whether work that must finish has not been answered yet."""
        return self._owed > 0

    def forget(self, topic: str) -> None:
        """Leave the work on `topic` that is still running unanswered."""
        self._latest.pop(topic, None)

    def close(self) -> None:
        """Wait for the threads; those that may be given up get a second together."""
        self._closed = True
        deadline = time.monotonic() + _PATIENCE
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()) if thread.daemon else None)

    def _deliver(
        self, claim: tuple[str, object] | None, callback: Callable[[Any], None], answer: Any
    ) -> None:
        if self._closed:
            return
        if claim is not None:
            topic, ticket = claim
            if self._latest.get(topic) is not ticket:
                return
            del self._latest[topic]
        else:
            self._owed -= 1
        callback(answer)
        if claim is None and not self._owed:
            self.settled.emit(not isinstance(answer, Exception))
