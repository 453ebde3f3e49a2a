"""Runs a request with further steps: each works on the output of the one before it.

    request  step, then = (B, C)      done = (result of step,)
             step (done)  --> B --> C            only B and C are computed

A recipe runs its steps as requests of their own, so that each is listed and can be undone. Here the
steps are one run: while a setting of the first changes, only the end is looked at. A single step is
run as it is, and measured if that is wanted; of several only the first is measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernelscope.engine.backend import Backend
from kernelscope.engine.chain import estimate
from kernelscope.engine.control import CancelToken, Progress, no_progress
from kernelscope.engine.costs import Costs
from kernelscope.engine.measuring import measure
from kernelscope.engine.request import Follower, Request
from kernelscope.engine.result import Result, estimate_notices
from kernelscope.engine.run import execute, shortage_explained
from kernelscope.engine.scaling import measurement
from kernelscope.engine.timing import Stage
from kernelscope.errors import AppError
from kernelscope.images.source import Source


def execute_all(
    request: Request,
    backends: Mapping[str, Backend],
    token: CancelToken | None = None,
    progress: Progress = no_progress,
    costs: Costs | None = None,
) -> Result:
    """Return the result of all steps of `request`; parameters as those of `execute`.

    Raises
    ------
    AppError
        As `execute`; the message names a further step.
    Cancelled
        If `token` was set meanwhile.
    """
    token = token or CancelToken()
    run = measure if request.timed else execute
    if not request.then:
        return run(request, backends, token, progress, costs)
    parts = list(request.done)
    if not parts:
        head = replace(request, then=(), reference=None)
        parts.append(run(head, backends, token, _step(progress, 1, request), costs))
    for number, follower in enumerate(request.then, 2):
        if number <= len(parts):
            continue
        try:
            token.check()
            following, notices = _request(follower, parts[-1].output, live=request.live)
            report = _step(progress, number, request)
            part = execute(following, backends, token, report, costs)
        except AppError as error:
            raise error.prefixed(f"{follower.step.filter.name}, a later step: ") from error
        parts.append(replace(part, notices=(*notices, *part.notices)))
    return joined(request, parts)


def joined(request: Request, parts: Sequence[Result]) -> Result:
    """Return the result of `request` with further steps, from the result of each.

    Its stages are those of all steps, one after the other. It is not compared with a reference.
    """
    first, last = parts[0], parts[-1]
    return Result(
        replace(request, done=()),
        last.output,
        last.device,
        last.level,
        _in_turn(parts),
        tuple(dict.fromkeys(notice for part in parts for notice in part.notices)),
        estimates=first.estimates,
        first=any(part.first for part in parts),
        parts=tuple(parts),
    )


def _request(follower: Follower, source: Source, *, live: bool) -> tuple[Request, tuple[str, ...]]:
    """Return the request for a further step, and notices on numbers that were estimated."""
    step, options = follower
    request = Request(source, step.with_numbers(), options, live=live)
    if not step.estimates:
        return request, ()
    with shortage_explained(source):
        measured = measurement(request)
        numbers = estimate(replace(request, measured=measured), step.estimates)
    request = replace(
        request,
        step=step.with_numbers(numbers),
        measured=measured,
        estimated=step.estimates,
    )
    return request, estimate_notices(request, numbers)


def _in_turn(parts: Sequence[Result]) -> tuple[Stage, ...]:
    """Return the stages of all parts as if each began when the one before had ended."""
    stages: list[Stage] = []
    for part in parts:
        begun = max((stage.start + stage.seconds for stage in stages), default=0.0)
        stages += (
            stage._replace(
                start=stage.start + begun,
                parts=tuple(replace(each, start=each.start + begun) for each in stage.parts),
            )
            for stage in part.stages
        )
    return tuple(stages)


def _step(progress: Progress, number: int, request: Request) -> Progress:
    """Return a `Progress` that names the step."""
    count = 1 + len(request.then)
    return lambda stage, fraction: progress(f"step {number} of {count}, {stage}", fraction)
