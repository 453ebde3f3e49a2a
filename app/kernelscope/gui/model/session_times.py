"""The times of runs on a GPU in this session, as the lecture quotes them."""

from __future__ import annotations

import statistics

from kernelscope.engine.options import Device
from kernelscope.engine.result import Result
from kernelscope.gui.model.times import duration
from kernelscope.gui.model.timing import Timing
from kernelscope.lecture import Measured

_MOST = 4
"""Runs of a filter that a page has room for."""


class SessionTimes:
    """Keeps the newest run of each setting and level on a GPU; emulated runs have no time."""

    def __init__(self) -> None:
        self._runs: dict[str, Measured] = {}

    def add(self, result: Result) -> None:
        """Keep the time of a result, if it ran on a GPU and had one step."""
        kernels = Timing.of(result).kernels
        if result.device != Device.GPU or not kernels or result.parts:
            return
        what = f"{result.caption}, {result.request.source.title}: kernels"
        self._runs.pop(what, None)
        time = duration(statistics.median(kernels))
        self._runs[what] = Measured(result.request.step.filter.id, what, time)

    def newest(self) -> tuple[Measured, ...]:
        """Return the newest runs of each filter, the oldest of them first."""
        kept: list[Measured] = []
        for run in reversed(self._runs.values()):
            if sum(each.filter_id == run.filter_id for each in kept) < _MOST:
                kept.append(run)
        return tuple(reversed(kept))
