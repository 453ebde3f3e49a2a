"""The times of runs on a GPU in this session, for the lecture and the memory ladder."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import TYPE_CHECKING

from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.gui.model.times import Timing, duration

if TYPE_CHECKING:
    from kernelscope.teach.lecture.page import MeasuredTime

_MOST = 4
"""Runs of a filter that a page has room for."""


class SessionTimes:
    """Keeps the newest run of each setting and level on a GPU; emulated runs have no time."""

    def __init__(self) -> None:
        self._runs: dict[str, MeasuredTime] = {}
        self._kernels: dict[tuple[str, tuple[int, ...]], float] = {}

    def add(self, result: Result) -> None:
        from kernelscope.teach.lecture.page import MeasuredTime

        kernels = Timing.of(result).kernels
        if result.device != Device.GPU or not kernels or result.parts:
            return
        what = f"{result.caption}, {result.request.source.title}: kernels"
        self._runs.pop(what, None)
        seconds = statistics.median(kernels)
        self._runs[what] = MeasuredTime(result.request.step.filter.id, what, duration(seconds))
        if not result.first:
            self._kernels[_place(result.request, result.level)] = seconds

    def same(self, request: Request) -> dict[str, float]:
        """Return the seconds of the kernels by the id of the level, for the work of a request.

        First runs are left out: the card was cold.
        """
        levels = [each.id for each in request.step.filter.levels(Device.GPU)]
        known = {level: self._kernels.get(_place(request, level)) for level in levels}
        return {level: seconds for level, seconds in known.items() if seconds is not None}

    def newest(self) -> tuple[MeasuredTime, ...]:
        kept: list[MeasuredTime] = []
        for run in reversed(self._runs.values()):
            if sum(each.filter_id == run.filter_id for each in kept) < _MOST:
                kept.append(run)
        return tuple(reversed(kept))


def _place(request: Request, level: str) -> tuple[str, tuple[int, ...]]:
    """Return the values that decide how long the kernels of a level take."""
    options = replace(request.options, device=Device.GPU, level=level, repeat=1)
    return request.at(options).cost_key, request.source.shape
