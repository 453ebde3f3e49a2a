"""Measured runs: times that can be compared.

A single run is not representative: it compiles, and finds caches, clocks and page tables cold. A
measured run is warmed up by a run that does not count, and repeated until its times add up to
`ENOUGH_SECONDS` or `MOST_REPEATS` were taken. Its result has the stages of the median repeat and
the times of all::

    first run     repeat 1   repeat 2   repeat 3   repeat 4   repeat 5
    compile, cold  2.52 ms    2.49 ms    2.61 ms    2.50 ms    2.49 ms   ->  2.50 ms, median of 5

A run that takes seconds is not repeated: nobody wants to wait for it twice, and being cold makes
little of it. It is the only repeat of its measurement, and not a warmed one. A run on the emulated
GPU is not measured at all: its time is not that of a GPU.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernelscope.base.errors import AppError
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken, Progress, no_progress
from kernelscope.engine.costs import Costs
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute, remember
from kernelscope.engine.timing import Repeats, Stage

ENOUGH_SECONDS = 0.05  # measured time after which more repeats would not change the median by much

FEWEST_REPEATS, MOST_REPEATS = 3, 5
"""With fewer repeats the spread means nothing, however long they took."""

SLOW_SECONDS = 1.0
"""A run that takes this long is not repeated; no repeat begins that would exceed it in total."""


def measure(
    request: Request,
    backends: Mapping[str, Backend],
    token: CancelToken | None = None,
    progress: Progress = no_progress,
    costs: Costs | None = None,
) -> Result:
    """Return the result of `request`, warmed up and repeated; parameters as those of `execute`.

    The output, the notices and the evaluation are those of the first run: further ones give
    the same bytes. Repeats stay on the device and at the level of the first.

    Raises `AppError` as `execute`; if only a repeat fails, a notice says so and the single run is
    returned; `Cancelled` if `token` was set, also between two repeats.
    """
    costs = costs or Costs()
    token = token or CancelToken()
    origin = time.perf_counter()
    first = execute(request, backends, token, progress, costs, learn=False)
    if first.is_emulated:
        return first
    warm_up = time.perf_counter() - origin
    again = replace(
        request,
        reference=None,
        options=replace(request.options, device=Device(first.device), level=first.level),
    )
    runs: list[tuple[float, Result]] = []
    while not _is_enough(first, [run.seconds for _, run in runs]):
        progress("measure", len(runs) / MOST_REPEATS)
        token.check()
        begun = time.perf_counter() - origin
        try:
            run = execute(again, backends, token, costs=costs, learn=False)
        except AppError as error:  # the result is there, only its time is less sure
            notice = f"The time is that of a single run: a repeat failed. {error}"
            first, runs = replace(first, notices=(*first.notices, notice)), []
            break
        runs.append((begun, replace(run, output=first.output)))  # one picture in memory, not five
    result = _median(first, warm_up, runs) if runs else _only(first)
    remember(result, backends, costs)
    return result


def _is_enough(first: Result, seconds: Sequence[float]) -> bool:
    """Return whether a measurement is complete after repeats of these durations."""
    count, spent = len(seconds), sum(seconds)
    slowest = max(seconds, default=first.seconds)
    if count >= MOST_REPEATS or spent + slowest > SLOW_SECONDS:
        return True
    return count >= FEWEST_REPEATS and spent >= ENOUGH_SECONDS


def _only(first: Result) -> Result:
    """Return a run that was not repeated as a measurement, if it is slow enough to be one."""
    if first.seconds < SLOW_SECONDS:
        return first
    return replace(first, repeats=Repeats((first.seconds,), (first.computing_seconds,)))


def _median(first: Result, warm_up: float, runs: Sequence[tuple[float, Result]]) -> Result:
    """Return the output of `first` with the stages of the median of `runs`.

    The median is one of the repeats, the lower one of two, so that stages add up to it.

    - `warm_up`: wall-clock seconds of the first run.
    - `runs`: the repeats, and when they began, in seconds after the first run did.
    """
    totals = tuple(run.seconds for _, run in runs)
    place = totals.index(statistics.median_low(totals))
    begun, median = runs[place]
    compiled = tuple(stage for stage in first.stages if stage.name == "compile")
    quiet = [*compiled, Stage("warm-up", first.seconds, False, start=warm_up - first.seconds)]
    if begun > runs[0][0]:
        quiet.append(Stage("other repeats", begun - runs[0][0], False, start=runs[0][0]))
    moved = (
        stage._replace(
            start=stage.start + begun,
            parts=tuple(replace(part, start=part.start + begun) for part in stage.parts),
        )
        for stage in median.stages
        if stage.name != "compile"  # it was done before, and took no time
    )
    return replace(
        first,
        stages=(*quiet, *moved),
        metrics=median.metrics,
        launch=median.launch,
        first=False,
        repeats=Repeats(totals, tuple(run.computing_seconds for _, run in runs)),
    )
