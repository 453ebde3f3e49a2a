"""The times of runs on a GPU in this session, for the lecture and the memory ladder."""

from __future__ import annotations

import statistics
from typing import Any

from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
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
        self._kernels: dict[tuple[object, str], float] = {}

    def add(self, result: Result) -> None:
        """Keep the time of a result, if it ran on a GPU and had one step."""
        kernels = Timing.of(result).kernels
        if result.device != Device.GPU or not kernels or result.parts:
            return
        what = f"{result.caption}, {result.request.source.title}: kernels"
        self._runs.pop(what, None)
        seconds = statistics.median(kernels)
        self._runs[what] = Measured(result.request.step.filter.id, what, duration(seconds))
        if not result.first:
            self._kernels[_work(result.request), result.level] = seconds

    def same(self, request: Request) -> dict[str, float]:
        """Return the seconds of the kernels by the id of the level, for the work of a request.

        First runs are left out: the card was cold.
        """
        work = _work(request)
        return {level: time for (done, level), time in self._kernels.items() if done == work}

    def newest(self) -> tuple[Measured, ...]:
        """Return the newest runs of each filter, the oldest of them first."""
        kept: list[Measured] = []
        for run in reversed(self._runs.values()):
            if sum(each.filter_id == run.filter_id for each in kept) < _MOST:
                kept.append(run)
        return tuple(reversed(kept))


def _work(request: Request) -> object:
    """Return everything that decides how long a run takes, without the pixels."""
    step, source, options = request.step, request.source, request.options
    values: dict[str, Any] = dict(step.parameters)
    return (
        step.filter.id, repr(sorted(values.items())), step.border, step.grey, step.axis,
        step.within, source.shape, source.dtype, options.block, options.cold,
        options.memory_limit, options.gpus,
    )  # fmt: skip
