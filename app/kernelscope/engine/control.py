"""Cancelling and progress: the link between a long computation and its caller."""

from __future__ import annotations

from collections.abc import Callable

from kernelscope.base.errors import Cancelled


class CancelToken:
    """Set once, by any thread; checked often by the thread that computes."""

    def __init__(self) -> None:
        self._is_set = False  # nobody waits for it: an event would take 5 µs of each run

    def cancel(self) -> None:
        self._is_set = True

    @property
    def cancelled(self) -> bool:
        return self._is_set

    def check(self) -> None:
        if self._is_set:
            raise Cancelled


class JointToken(CancelToken):
    """Cancelled together with another token, or on its own."""

    def __init__(self, other: CancelToken) -> None:
        super().__init__()
        self._other = other

    @property
    def cancelled(self) -> bool:
        return super().cancelled or self._other.cancelled

    def check(self) -> None:
        self._other.check()
        super().check()


Progress = Callable[[str, float], None]
"""Called with the stage ("compile", "compute", ...) and the fraction done, 0 to 1."""


def no_progress(stage: str, fraction: float) -> None:
    """Ignore progress."""
