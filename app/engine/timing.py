"""Wall-clock stages of a run."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Stage:
    """A named part of a run and how long it took.

    Attributes
    ----------
    name : str
        ``prepare``, ``compile``, ``compute``, ``convert``; on a GPU also ``upload``,
        ``kernel`` and ``download``.
    seconds : float
        Wall-clock time, or device time between events for ``kernel``.
    counted : bool
        False for what is reported apart and is in no total: compiling.
    """

    name: str
    seconds: float
    counted: bool = True


class Stopwatch:
    """Collects stages; each is also logged, which is what the debug console shows."""

    def __init__(self) -> None:
        self._stages: list[Stage] = []

    @contextmanager
    def stage(self, name: str, *, counted: bool = True) -> Iterator[None]:
        """Time the block; nothing is recorded if it raises."""
        start = time.perf_counter()
        yield
        self.add(name, time.perf_counter() - start, counted=counted)

    def add(self, name: str, seconds: float, *, counted: bool = True) -> None:
        """Record a duration that was measured elsewhere."""
        self._stages.append(Stage(name, seconds, counted))
        _logger.debug("%s: %.3f ms", name, seconds * 1e3)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(self._stages)
