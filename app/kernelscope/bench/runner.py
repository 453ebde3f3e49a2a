"""Measures a plan, row by row, by the rules of `kernelscope.bench.rules`."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelscope.base.durations import about
from kernelscope.base.errors import AppError, Cancelled
from kernelscope.bench import peers, rules
from kernelscope.bench.cases import Case, Group, expand
from kernelscope.bench.data import Data, forget
from kernelscope.bench.plan import CPU, GPU, MEASURABLE, Plan
from kernelscope.bench.rows import Difference, Row
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.engine.timing import Stage, added_up
from kernelscope.images.image import Image
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask

_WARM_UPS = 3  # assumed cost of a row before it is timed, in timed runs


@dataclass(frozen=True)
class BenchProgress:
    # Finished rows, and all that can run.
    done: int
    total: int
    text: str  # the row that is being measured
    left: float | None  # estimated seconds left; None until the first measurement

    @property
    def fraction(self) -> float:
        return self.done / max(self.total, 1)

    def describe(self) -> str:
        """Return ``3/8  Median, mask size 3, 512×512, CPU serial, 2 min left``."""
        text = f"{self.done + 1}/{self.total}  {self.text}"
        if self.left is None:
            return text
        return f"{text}, {about(self.left) if self.left >= 1 else 'under 1 s'} left"


Announce = Callable[[BenchProgress], None]


def measure(
    plan: Plan,
    backends: Mapping[str, Backend],
    token: CancelToken,
    announce: Announce = lambda progress: None,
) -> Iterator[Row]:
    """Yield every row that a plan asks for; those that cannot run have a reason.

    Everything happens on the calling thread, which must be the one that uses the backends.
    `announce` is called with its `BenchProgress` before each part of the work. Raises `Cancelled`
    after `token` was set, once the rows in progress have been yielded with their repeats so far.
    """
    try:
        yield from _measured(plan, backends, token, announce)
    finally:
        forget()  # hundreds of megabytes, which a window would keep


def _measured(
    plan: Plan, backends: Mapping[str, Backend], token: CancelToken, announce: Announce
) -> Iterator[Row]:
    groups = expand(plan, backends)
    forecast = _Forecast(plan, groups)
    tools = _Tools(plan, backends, token, rules.Evictor())
    done = 0
    total = sum(len(group.runnable) for group in groups)
    for number, group in enumerate(groups):
        yield from (case.row() for case in group.cases if case.reason)
        left = forecast.left(number)

        def say(case: Case, done: int = done, left: float | None = left) -> None:
            text = f"{case.label}, {case.data.describe()}, {case.row().series}"
            announce(BenchProgress(done, total, text, left))

        start = time.perf_counter()
        yield from _measure_group(group.runnable, tools, say)
        forecast.learn(group, time.perf_counter() - start)
        done += len(group.runnable)


@dataclass(frozen=True)
class _Tools:
    plan: Plan
    backends: Mapping[str, Backend]
    token: CancelToken
    evictor: rules.Evictor

    def request(
        self, case: Case, source: Any, device: str, level: str | None, **more: Any
    ) -> Request:
        return Request.create(
            source,
            case.filter,
            case.parameters,
            border=case.border,
            device=Device(device),
            level=level,
            **more,
        )

    def run(self, request: Request) -> Result:
        return execute(request, self.backends, self.token)


def _measure_group(
    cases: Sequence[Case], tools: _Tools, say: Callable[[Case], None]
) -> Iterator[Row]:
    contestants: list[_Contestant] = []
    load = rules.Load()
    try:
        for case in cases:
            say(case)
            kind: type[_Contestant] = _Library if case.library else _Level
            contestant = kind(case, tools)
            contestant.warm_up()
            contestants.append(contestant)
        load = rules.Load()
        for _ in range(tools.plan.repeat):
            for contestant in contestants:
                tools.token.check()
                say(contestant.case)
                contestant.take_turn()
    except (Cancelled, KeyboardInterrupt):
        yield from (each.row(load.others()) for each in contestants if each.seconds)
        raise
    others = load.others()
    yield from (contestant.row(others) for contestant in contestants)


class _Contestant:
    def __init__(self, case: Case, tools: _Tools) -> None:
        self.case = case
        self.seconds: list[float] = []
        self._tools = tools
        self._data = case.data
        self._stages: list[dict[str, float]] = []
        self._kernels: list[dict[str, float]] = []
        self._facts: dict[str, Any] = {}
        self._reason = ""

    def warm_up(self) -> None:
        whole = self.case.spec.whole(self.case.spec.validate(self.case.parameters))
        parts = list(self.case.data.parts())
        before = None
        try:
            for part, larger in itertools.zip_longest(parts, parts[1:]):
                self._tools.token.check()
                self._data = part
                seconds = self._first_run(part)
                growth = (larger.size / part.size if larger else 1) ** (2 if whole else 1)
                if self.case.device == GPU:  # a small part leaves most of a GPU idle
                    growth = min(growth, seconds / before if before else 1)
                if seconds * growth > self._tools.plan.longest:
                    break
                before = seconds
            self._get_ready()
        except AppError as error:
            self._reason = error.message

    def take_turn(self) -> None:
        """Run once more, timed."""
        if self._reason:
            return
        try:
            self._timed_run()
            if self.seconds[-1] < MEASURABLE[0]:  # speeds would be infinite
                raise AppError("No time was measured.")
        except AppError as error:
            self._reason = error.message
            self.seconds.clear()

    def row(self, load: float | None) -> Row:
        if self._reason:
            return self.case.row(reason=self._reason)
        return self.case.row(
            shape=self._data.shape,
            seconds=tuple(self.seconds),
            stages=_by_name(self._stages),
            kernels=_by_name(self._kernels),
            cache=rules.COLD if self._tools.plan.cold else rules.WARM,
            load=load,
            **self._facts,
        )

    def _evict(self) -> None:
        if self._tools.plan.cold and self.case.device == CPU:
            self._tools.evictor.evict()

    def _first_run(self, data: Data) -> float:
        """Run on `data`; return the seconds that it took, without one-off costs."""
        raise NotImplementedError

    def _get_ready(self) -> None:
        """Finish the preparation on the chosen data, before runs are timed."""

    def _timed_run(self) -> None:
        raise NotImplementedError


class _Level(_Contestant):
    def _first_run(self, data: Data) -> float:
        result = self._run(data, reference=data.truth())
        pixels, output = result.request.source.planes, result.output.planes
        self._facts = {"notices": result.notices, "bytes": float(pixels.nbytes + output.nbytes)}
        # A part has no PSNR: it is the same photograph with fewer pixels, and thus another picture.
        if result.quality is not None and data.shape == self.case.data.shape:
            self._facts["psnr"] = result.quality.after.psnr
        if self.case.device == GPU:
            metrics = {metric.name: metric.value for metric in result.metrics}
            self._facts["copy_rate"] = metrics.get("copy rate")
            self._facts["peak_rate"] = metrics.get("peak rate")
            self._facts["bytes"], self._facts["operations"] = planned_work(result.request)
        return _computing(result)

    def _timed_run(self) -> None:
        result = self._run(self._data)
        if self.case.device == GPU:
            batches = (metric.value for metric in result.metrics if metric.name == "batch")
            self._facts["batch"] = int(next(batches, 1))
        totals: dict[str, float] = {}
        for stage in result.stages:
            if stage.counted:
                totals[stage.name] = totals.get(stage.name, 0.0) + _once(stage)
        self.seconds.append(_computing(result))
        self._stages.append(totals)
        kernels = added_up(each for stage in result.stages for each in stage.kernels)
        self._kernels.append({each.name: _last(each.seconds, each.repeats) for each in kernels})

    def _run(self, data: Data, reference: Image | None = None) -> Result:
        case, plan = self.case, self._tools.plan
        # The first launch warms the GPU's cache for the next, so the second one is timed.
        repeat = 2 if case.device == GPU and not plan.cold else 1
        request = self._tools.request(
            case,
            data.make(),
            case.device,
            case.level,
            repeat=repeat,
            cold=plan.cold,
            reference=reference,
            gpus=case.gpus,
            block=case.block,
        )
        self._evict()
        return self._tools.run(request)


class _Library(_Contestant):
    def _first_run(self, data: Data) -> float:
        call = self._counterpart(data)
        call.result()
        return call.seconds(cold=False)

    def _get_ready(self) -> None:
        """Compare the result with ours on the timed data."""
        call, case = self._counterpart(self._data), self.case
        ours, theirs = self._ours(self._data).image.pixels, call.result()
        if ours.shape != theirs.shape:
            raise AppError(
                f"{case.level} returned the shape {theirs.shape} instead of {ours.shape}."
            )
        margin = case.spec.radius(case.spec.validate(case.parameters))
        inside = call.library.inside_only
        part = np.s_[margin:-margin, margin:-margin] if inside and margin else np.s_[:]
        self._facts = {
            "difference": Difference.between(ours[part], theirs[part], inside and margin > 0),
            "bytes": float(self._pixels(self._data).nbytes + ours.nbytes),
        }

    def _timed_run(self) -> None:
        call = self._counterpart(self._data)
        self._evict()
        self.seconds.append(call.seconds(self._tools.plan.cold))

    def _ours(self, data: Data) -> Result:
        return self._tools.run(self._tools.request(self.case, data.make(), self.case.device, None))

    def _pixels(self, data: Data) -> Any:
        source = data.make()
        assert isinstance(source, Image)
        return source.pixels

    def _counterpart(self, data: Data) -> peers.Counterpart:
        case = self.case
        found = peers.counterpart(
            case.level,
            case.filter,
            self._pixels(data),
            case.spec.validate(case.parameters),
            case.border,
        )
        if found is None:
            raise AppError(f"{case.level} has no function that computes the same.")
        return found


def _computing(result: Result) -> float:
    """Return the seconds that a run spent computing."""
    name = "kernel" if result.device == GPU else "compute"
    return sum(_once(stage) for stage in result.stages if stage.name == name)


def _once(stage: Stage) -> float:
    return _last(stage.seconds, stage.repeats)


def _last(seconds: float, repeats: Sequence[float]) -> float:
    """Return the seconds of a stage or a kernel: the last of its repeats, see `_Level._run`."""
    return repeats[-1] if repeats else seconds


def _by_name(runs: Sequence[Mapping[str, float]]) -> dict[str, tuple[float, ...]]:
    """Return the seconds of each name in every run; 0 for a stage that a run skipped."""
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: tuple(run.get(name, 0.0) for run in runs) for name in names}


def planned_work(request: Request) -> tuple[float, float]:
    """Return the bytes and the operations of a request for a level of the GPU, by its plan."""
    spec, source = request.step.filter, request.source.planes
    assert request.options.level is not None
    parameters = spec.resolve(source, request.step.parameters)
    output = request.output_shape
    task = CudaTask(
        *(source.shape, output, source.dtype, parameters),
        *(request.step.border, request.options.level, request.options.block),
    )
    samples = math.prod(output[:-1]) * max(source.shape[-1], output[-1])
    launches = CudaPlan.of(spec.implementation(Cuda).plan(task)).launches
    return (
        samples * sum(launch.bytes_per_sample for launch in launches),
        samples * sum(launch.operations_per_sample for launch in launches),
    )


class _Forecast:
    """Estimates the time left in a plan from the groups that are done."""

    def __init__(self, plan: Plan, groups: Sequence[Group]) -> None:
        self._groups = groups
        self._most = plan.longest * (plan.repeat + _WARM_UPS)
        self._known: list[tuple[Group, float]] = []

    def learn(self, group: Group, seconds: float) -> None:
        if group.runnable:
            self._known.append((group, seconds / len(group.runnable)))

    def left(self, number: int) -> float | None:
        if not self._known:
            return None
        return sum(self._guess(group) * len(group.runnable) for group in self._groups[number:])

    def _guess(self, group: Group) -> float:
        """Return the estimated seconds of a row, from the most similar finished group, by size."""
        if not group.runnable:
            return 0.0
        case = group.cases[0]

        def likeness(known: tuple[Group, float]) -> tuple[bool, bool, float]:
            other = known[0].cases[0]
            ratio = abs(math.log(other.data.size / case.data.size))
            return other.device == case.device, other.filter == case.filter, -ratio

        like, seconds = max(self._known, key=likeness)
        return min(seconds * case.data.size / like.cases[0].data.size, max(self._most, seconds))
