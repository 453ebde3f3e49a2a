"""Cancelling and progress: how a long computation talks to whoever started it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from app.errors import Cancelled


class CancelToken:
    """Set once by any thread; looked at often by the thread that computes."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        self._event.set()

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def check(self) -> None:
        """Raise `Cancelled` if `cancel` was called."""
        if self._event.is_set():
            raise Cancelled


Progress = Callable[[str, float], None]
"""Called with the stage ("compile", "compute", ...) and the fraction done, 0 to 1."""


def no_progress(stage: str, fraction: float) -> None:
    """Report to nobody."""
