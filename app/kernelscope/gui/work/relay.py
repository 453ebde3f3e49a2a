"""One way from any thread to the GUI thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal


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
