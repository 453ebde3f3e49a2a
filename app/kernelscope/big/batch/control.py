"""Control of a batch on its way: it can be held, and its files followed."""

from __future__ import annotations

import threading
from enum import StrEnum

from kernelscope.engine.control import CancelToken

_LOOK_SECONDS = 0.05
"""A paused batch looks this often whether it was cancelled."""


class FileStage(StrEnum):
    """The part of the work on a file that begins."""

    READING = "reading"
    FILTERING = "filtering"
    WRITING = "writing"


class Pause:
    """Holds a batch before its next file; any thread may call it."""

    def __init__(self) -> None:
        self._go = threading.Event()
        self._go.set()

    @property
    def paused(self) -> bool:
        return not self._go.is_set()

    def pause(self) -> None:
        """Hold the batch; the file that is filtered and those that are written are finished."""
        self._go.clear()

    def go_on(self) -> None:
        self._go.set()

    def wait(self, token: CancelToken) -> None:
        """Return when the batch may go on, or was cancelled."""
        while not token.cancelled and not self._go.wait(_LOOK_SECONDS):
            pass
