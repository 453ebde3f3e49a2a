"""A recipe as one job of the worker: each result with the moment that its output leads to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken, Progress
from kernelscope.engine.costs import Costs
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.result import Result
from kernelscope.engine.steps import run_steps
from kernelscope.gui.model.comparison import following, with_reference
from kernelscope.gui.model.history import Moment


class StepProgress(NamedTuple):
    step: str  # its number and name, to put before the stage; empty if there is only one
    stage: str
    fraction: float


class StepDone(NamedTuple):
    result: Result
    next: Moment[Any, Any] | None
    """The moment with its output as the input; None after the last step."""


class RecipeRun:
    """Runs a recipe from a moment on.

    `request`: of all steps; see `recipe_request`.
    """

    def __init__(self, request: Request, moment: Moment[Any, Any], costs: Costs) -> None:
        self._request, self._moment, self._costs = request, moment, costs
        self.left = False
        """Whether the run ends after the present step: another input is shown."""

    def run(
        self,
        backends: Mapping[str, Backend],
        token: CancelToken,
        report: Callable[[StepProgress | StepDone], None],
    ) -> None:
        request, moment = self._request, self._moment
        last = 1 + len(request.then)

        def refer(each: Request) -> Request:
            return with_reference(each, moment.references.get(each.source))

        def progress_of(number: int) -> Progress:
            prefix = request.prefix(number)
            step = prefix.replace(",", f" of {last},", 1)
            return lambda stage, fraction: report(StepProgress(step, stage, fraction))

        results = run_steps(
            request, backends, token, costs=self._costs, report=progress_of, refer=refer
        )
        for number, result in enumerate(results, 1):
            if number == last:
                report(StepDone(result, None))
                return
            done = replace(moment, result=result, settings=RunSettings.of(result.request))
            moment = following(done)
            report(StepDone(result, moment))
            if self.left:
                return
