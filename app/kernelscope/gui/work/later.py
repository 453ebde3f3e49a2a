"""Calls that come to the GUI thread: from any thread, and after the picture is painted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer, Signal


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

_EVENT = QEvent.Type(QEvent.registerEventType())

_AFTER_PAINTS = Qt.EventPriority.LowEventPriority.value - 1
"""Qt posts paints at the low priority. A timer of 0 ms may come before them."""


class Later(QObject):
    """Calls a slow function once for several requests, after the picture is painted."""

    def __init__(self, call: Callable[[], object], parent: QObject) -> None:
        super().__init__(parent)
        self._call = call
        self._is_posted = False
        self._timer = QTimer(self, singleShot=True, interval=SOON_MS)
        self._timer.timeout.connect(call)

    @property
    def is_due(self) -> bool:
        """Whether a call was requested and has not come yet."""
        return self._is_posted or self._timer.isActive()

    def soon(self) -> None:
        """Call within 30 ms, however many requests there are meanwhile."""
        if not self.is_due:
            self._timer.start()

    def after_paint(self) -> None:
        """Call when all that has changed by now has been painted."""
        self._timer.stop()
        if not self._is_posted:
            self._is_posted = True
            QCoreApplication.postEvent(self, QEvent(_EVENT), _AFTER_PAINTS)

    def cancel(self) -> None:
        """Call no more for earlier requests."""
        self._timer.stop()
        self._is_posted = False
        QCoreApplication.removePostedEvents(self, _EVENT)

    def customEvent(self, event: QEvent) -> None:
        self._is_posted = False
        self._call()
