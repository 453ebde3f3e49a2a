"""The context of a run: its log, its cancel token, and its progress callback.

The engine passes `RunContext` through a backend to the computing code, as one value.
"""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from kernelscope.base import jit
from kernelscope.engine.control import CancelToken, Progress, no_progress
from kernelscope.engine.timing import KernelTime, LaunchReport, Metric, Stage, StagePart

_logger = logging.getLogger(__name__)


class _TimedStage(AbstractContextManager[None]):
    """Records the time of a block as a stage; a generator would take twice as long as this."""

    __slots__ = ("_begun", "_compiled", "_counted", "_log", "_name")

    def __init__(self, log: RunLog, name: str, counted: bool) -> None:
        self._log, self._name, self._counted = log, name, counted

    def __enter__(self) -> None:
        self._compiled = jit.seconds_spent()
        self._begun = time.perf_counter()

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None:
            seconds = time.perf_counter() - self._begun
            compiled = jit.seconds_spent() - self._compiled if self._counted else 0.0
            if compiled > 0:  # a function that the stage calls had no code yet: no time of the run
                self._log.add("compile", compiled, counted=False, begun=self._begun)
                self._log.first = True
                seconds, self._begun = seconds - compiled, self._begun + compiled
            self._log.add(self._name, seconds, counted=self._counted, begun=self._begun)


class RunLog:
    """Collects the stages of a run, which are also logged, and its other reports.

    - `origin`: when the run started, by `time.perf_counter`; by default now.
    - `logged`: whether stages are logged as well.
    - `notices`: messages to the user about the run.
    - `launch`: the kernel that did the work, on a GPU.
    - `estimates`: parameters that were estimated from the data, by name.
    - `first`: the process had not run this code before.
    - `uncompiled`: NumPy computed, because the code is still being compiled.
    - `stand_in`: the name of the method by which it did, if it is not that of the filter.
    """

    def __init__(self, origin: float | None = None, *, logged: bool = True) -> None:
        self.origin = time.perf_counter() if origin is None else origin
        self._logged = logged and _logger.isEnabledFor(logging.DEBUG)
        self._stages: list[Stage] = []
        self.metrics: list[Metric] = []
        self.notices: list[str] = []
        self.launch: LaunchReport | None = None
        self.estimates: dict[str, Any] = {}
        self.first = self.uncompiled = False
        self.stand_in = ""

    def stage(self, name: str, *, counted: bool = True) -> AbstractContextManager[None]:
        """Time the block; nothing is recorded if it raises."""
        return _TimedStage(self, name, counted)

    def add(
        self,
        name: str,
        seconds: float,
        *,
        counted: bool = True,
        repeats: tuple[float, ...] = (),
        overlapped: bool = False,
        begun: float | None = None,
        parts: tuple[StagePart, ...] = (),
        kernels: tuple[KernelTime, ...] = (),
        excess: float = 0.0,
    ) -> None:
        """Record a duration that was measured elsewhere; one that overlapped is not counted.

        - `begun`: when it began, by `time.perf_counter`; by default `seconds` ago.
        """
        if begun is None:
            begun = time.perf_counter() - seconds
        counted = counted and not overlapped
        start = begun - self.origin
        self._stages.append(
            Stage(name, seconds, counted, repeats, overlapped, start, parts, kernels, excess)
        )
        if not self._logged:
            return
        _logger.debug("%s: %.3f ms", name, seconds * 1e3)
        for kernel in kernels:
            _logger.debug("%s: %s: %.3f ms", name, kernel.name, kernel.seconds * 1e3)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(self._stages)


@dataclass(frozen=True)
class RunContext:
    log: RunLog = field(default_factory=RunLog)  # receives stages, notices and figures
    token: CancelToken = field(default_factory=CancelToken)  # the run checks it often
    progress: Progress = no_progress  # called with a stage and the fraction of it that is done

    def reporting_to(self, progress: Progress) -> RunContext:
        """Return the context for a part of the run, such as one slice of a volume."""
        return replace(self, progress=progress)
