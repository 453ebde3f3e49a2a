"""Measured runs: warmed up, repeated, and honest about it. No test measures real time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from kernelscope.base.errors import Cancelled, DeviceUnavailable
from kernelscope.engine.backend import Fact, FactGroup
from kernelscope.engine.context import RunContext
from kernelscope.engine.control import CancelToken
from kernelscope.engine.costs import Costs
from kernelscope.engine.measuring import measure
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.worker import Event, Finished, Worker
from kernelscope.images.image import Image
from kernelscope.schema.levels import CPU_LEVELS, GPU_LEVELS, Level
from tests.engine.fakes import FakeBackend, request
from tests.pairs import together


class Clockwork(FakeBackend):
    """Reports runs of the given seconds, one after the other; the first one compiles."""

    def __init__(self, *seconds: float, id: str = "cpu") -> None:
        super().__init__(id, levels=GPU_LEVELS if id == "gpu" else CPU_LEVELS)
        self._seconds = seconds
        self.seen: list[tuple[Request, str]] = []

    def facts(self) -> Iterator[FactGroup]:
        return iter(())

    def load(self) -> tuple[Fact, ...]:
        return ()

    def run(self, request: Request, level: Level, context: RunContext) -> Image:
        seconds = self._seconds[min(len(self.seen), len(self._seconds) - 1)]
        first = not self.seen
        self.seen.append((request, level.id))
        context.token.check()
        if first:
            context.log.add("compile", 2.0, counted=False)
            context.log.first = True
        context.log.notices.append(f"Notice {len(self.seen)}.")
        context.log.add("kernel" if self.id == "gpu" else "compute", seconds)
        context.log.add("convert", 0.001)
        return request.image.like(request.image.planes.copy())


def measured(*seconds: float) -> Result:
    return measure(request(), {"cpu": Clockwork(*seconds)})


@together(
    ("seconds", "count"),
    [
        ([0.9, 0.002], 5),
        ([0.9, 0.009], 5),
        ([0.9, 0.015], 4),
        ([0.9, 0.3], 3),
        ([0.5, 0.4], 2),
        ([0.9, 0.6], 1),
        ([1.1, 0.6], 1),
    ],
)
def test_how_often_a_run_is_repeated(seconds: Sequence[float], count: int) -> None:
    repeats = measured(*seconds).repeats
    assert repeats is not None
    assert len(repeats.totals) == count


def test_a_run_on_the_emulated_gpu_is_not_measured() -> None:
    emulator = Clockwork(0.5, id="emulated")
    costs = Costs()
    wanted = request(device=Device.EMULATED)
    result = measure(wanted, {"cpu": Clockwork(0.1), "emulated": emulator}, costs=costs)
    assert (result.device, result.repeats, len(emulator.seen)) == ("emulated", None, 1)
    assert result.is_emulated
    assert result.where == "Emulated GPU parallel"


def test_the_first_run_is_no_repeat_and_the_stages_are_those_of_the_median() -> None:
    result = measured(0.5, 0.004, 0.009, 0.005, 0.007, 0.006)
    assert result.repeats is not None
    assert result.repeats.totals == pytest.approx((0.005, 0.01, 0.006, 0.008, 0.007))
    assert result.repeats.computing == pytest.approx((0.004, 0.009, 0.005, 0.007, 0.006))
    assert result.seconds == pytest.approx(0.007)
    counted = {stage.name: stage.seconds for stage in result.stages if stage.counted}
    assert counted == pytest.approx({"compute": 0.006, "convert": 0.001})
    assert not result.first, "its kernels were warm"


def test_of_an_even_number_of_repeats_one_is_shown_and_no_mean_of_two() -> None:
    result = measured(0.5, 0.015, 0.011, 0.013, 0.012)
    assert result.repeats is not None
    assert len(result.repeats.totals) == 4
    assert result.seconds in result.repeats.totals
    assert result.seconds == pytest.approx(0.013)


def test_compiling_and_the_warm_up_are_shown_and_in_no_total() -> None:
    result = measured(0.5, 0.009, 0.007, 0.008, 0.006, 0.010)
    quiet = {stage.name: stage.seconds for stage in result.stages if not stage.counted}
    assert list(quiet) == ["compile", "warm-up", "other repeats"]
    assert quiet["compile"] == 2.0
    assert quiet["warm-up"] == pytest.approx(0.501)
    assert result.compile_seconds == 2.0


def test_a_run_of_seconds_is_the_only_one() -> None:
    backend = Clockwork(3.0)
    result = measure(request(), {"cpu": backend})
    assert len(backend.seen) == 1
    assert result.repeats is not None
    assert len(result.repeats.totals) == 1
    assert result.first, "it was cold, and is known to have been"


def test_repeats_stay_where_the_first_run_was() -> None:
    gpu, cpu = Clockwork(0.5, 0.01, id="gpu"), Clockwork(0.5, 0.01)
    image = Image.from_array(np.zeros((600, 600), np.uint8))
    costs = Costs()
    asked = Request.create(image, "mean", device=Device.AUTO)
    result = measure(asked, {"gpu": gpu, "cpu": cpu}, costs=costs)
    assert (result.device, result.level) == ("gpu", GPU_LEVELS[-1].id)
    assert cpu.seen == []
    assert {level for _, level in gpu.seen} == {GPU_LEVELS[-1].id}
    assert result.request is asked, "the window compares its settings with those in the panel"


def test_a_measurement_is_one_run_to_auto(tmp_path: Path) -> None:
    costs = Costs(tmp_path / "costs.json")
    gpu, cpu = Clockwork(0.5, 0.01, id="gpu"), Clockwork(0.5, 0.01)
    image = Image.from_array(np.zeros((600, 600), np.uint8))
    asked = Request.create(image, "mean", device=Device.GPU)
    measure(asked, {"gpu": gpu, "cpu": cpu}, costs=costs)
    expected = costs.predict(asked, gpu.availability().summary, GPU_LEVELS[-1].id)
    assert expected == pytest.approx(0.011), "the warm median, not the cold run"


def test_the_evaluation_and_the_notices_are_those_of_one_run() -> None:
    picture = Image.from_array(np.zeros((4, 4), np.uint8))
    backend = Clockwork(0.5, 0.01)
    result = measure(Request.create(picture, "mean", reference=picture), {"cpu": backend})
    assert result.quality is not None
    assert result.notices == ("Notice 1.",)
    assert [each.reference for each, _ in backend.seen[1:]] == [None] * (len(backend.seen) - 1)


def test_a_token_stops_between_two_repeats() -> None:
    token = CancelToken()
    backend = Clockwork(0.5, 0.01)

    def cancel(stage: str, fraction: float) -> None:
        if (stage, fraction) == ("measure", 0.4):
            token.cancel()

    with pytest.raises(Cancelled):
        measure(request(), {"cpu": backend}, token, cancel)
    assert len(backend.seen) == 3


@pytest.mark.parametrize("timed", [False, True])
def test_the_worker_measures_what_is_to_be_timed(timed: bool) -> None:
    backend = Clockwork(0.5, 0.01)
    events: list[Event] = []
    worker = Worker({"cpu": backend}, events.append)
    image = Image.from_array(np.zeros((4, 4), np.uint8))
    step = request().step
    worker.submit(Request(image, step, timed=timed))
    while not any(isinstance(event, Finished) for event in list(events)):
        pass
    worker.close()
    (finished,) = (event for event in events if isinstance(event, Finished))
    assert (finished.result.repeats is not None) == timed
    assert len(backend.seen) == (6 if timed else 1)


def test_a_repeat_that_fails_leaves_the_result() -> None:
    class Fading(Clockwork):
        def run(self, request: Request, level: Level, context: RunContext) -> Image:
            if self.seen:
                raise DeviceUnavailable("The GPU stopped.")
            return super().run(request, level, context)

    result = measure(request(), {"cpu": Fading(0.01)})
    assert result.repeats is None, "a single run"
    assert result.seconds == pytest.approx(0.011)
    assert result.notices[-1].endswith("a repeat failed. The GPU stopped.")
