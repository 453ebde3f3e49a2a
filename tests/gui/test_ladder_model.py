"""The ladder without a window: rungs, times that belong to settings, agreement, order of a race."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.bench.recorded import Recorded, RecordedTime
from kernelscope.bench.rows import Row
from kernelscope.engine.backend import Availability
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.timing import Repeats, Stage
from kernelscope.gui.model.ladder import (
    AUTO,
    LIMIT,
    Agreement,
    KnownRung,
    LadderModel,
    RungPlace,
    chosen_place,
    compare,
    expected_times,
    marked,
    race,
    rungs,
)
from kernelscope.gui.model.runs import Runs
from kernelscope.images.image import Image
from tests.gui.helpers import NO_GPU, FakeCpu, FakeGpu

CPU, GPU = Device.CPU, Device.GPU
HERE = Availability(True, "a card")


def picture(value: int = 0) -> Image:
    return Image.from_array(np.full((20, 30), value, np.uint8), "a picture")


def offered(filter_id: str = "mean", gpu: Availability | None = HERE) -> Any:
    backends = {"gpu": FakeGpu(), "cpu": FakeCpu()}
    states = {"gpu": gpu} if gpu is not None else {}
    return rungs(filters.get(filter_id), backends, states)


def result(
    source: Image,
    level: str = "serial",
    seconds: float = 0.01,
    *,
    output: Image | None = None,
    measured: bool = True,
    **settings: Any,
) -> Result:
    request = Request.create(source, "mean", settings or None, device=CPU, level=level)
    stages = (Stage("compute", seconds), Stage("convert", seconds / 10))
    repeats = Repeats((1.1 * seconds,) * 3, (seconds, 0.9 * seconds, 1.2 * seconds))
    return Result(
        request, output or source, "cpu", level, stages, repeats=repeats if measured else None
    )


def options(level: str, **others: Any) -> RunOptions:
    return RunOptions(CPU, level, **others)


def test_rungs_are_auto_the_cpu_and_the_gpu_from_slow_to_fast() -> None:
    found = offered()
    assert found[0].place == AUTO
    assert [rung.place.device for rung in found[1:3]] == [CPU, CPU]
    assert found[-1].place == RungPlace(GPU, "tuned")
    assert found[0].name == "Auto: the faster device"
    assert found[0].choice.startswith("Auto chooses by the times of earlier runs")
    assert found[1].full_name == "CPU serial"


def test_without_a_card_its_rungs_have_the_reason_and_auto_names_the_cpu() -> None:
    found = offered(gpu=NO_GPU)
    of_gpu = [rung for rung in found if rung.place.device is GPU and not rung.gap]
    assert {rung.obstacle for rung in of_gpu} == {NO_GPU.summary}
    gaps = {rung.place.level: rung.obstacle for rung in found if rung.gap}
    assert gaps == filters.get("mean").gaps("gpu") != {}
    assert found[0].name == "Auto: CPU parallel"
    assert found[0].choice.startswith("There is one device to choose: CPU. ")
    assert NO_GPU.summary in found[0].choice
    assert {rung.obstacle for rung in offered(gpu=None) if rung.place.device is GPU} >= {
        "Looking for a GPU…"
    }


class FakeEmulated(FakeGpu):
    id = "emulated"
    name = "Emulated GPU"


def with_emulated(state: Availability | None, filter_id: str = "mean") -> Any:
    backends = {"gpu": FakeGpu(), "cpu": FakeCpu(), "emulated": FakeEmulated()}
    states = {"gpu": NO_GPU, **({"emulated": state} if state is not None else {})}
    return rungs(filters.get(filter_id), backends, states)


def test_the_emulated_gpu_stands_last_and_auto_never_takes_it() -> None:
    found = with_emulated(HERE)
    devices = list(dict.fromkeys(rung.place.device for rung in found))
    assert devices == [Device.AUTO, CPU, GPU, Device.EMULATED]
    assert found[-1].full_name == "Emulated GPU tuned"
    assert found[0].name == "Auto: CPU parallel"
    assert chosen_place(RungPlace(Device.AUTO, "shared"), found) == AUTO
    emulated = RungPlace(Device.EMULATED, "shared")
    assert chosen_place(emulated, found) == emulated
    assert marked(RungPlace(Device.EMULATED), found) == found[-1].place
    order, slow = race(found, {})
    assert {rung.place.device for rung in (*order, *slow)} == {CPU}
    assert len(with_emulated(HERE, "gaussian_noise")) == len(offered("gaussian_noise", NO_GPU))


def test_without_a_compiler_the_gpu_that_is_missing_names_the_extra() -> None:
    for state, hint in (
        (HERE, "in the group “Emulated GPU”"),
        (Availability(False, "No C++ compiler was found."), "install g++ or clang++"),
        (None, ""),
    ):
        found = with_emulated(state)
        obstacles = {rung.obstacle for rung in found if rung.place.device is GPU and not rung.gap}
        assert len(obstacles) == 1
        assert hint in obstacles.pop()
        offers = any(rung.place.device is Device.EMULATED for rung in found)
        assert offers is (state is HERE)


SHARED = RungPlace(GPU, "shared")


@pytest.mark.parametrize(
    ("wanted", "filter_id", "gpu", "place", "rung"),
    [
        (SHARED, "mean", HERE, SHARED, SHARED),
        (SHARED, "mean", NO_GPU, AUTO, AUTO),
        (SHARED, "gaussian_noise", HERE, AUTO, AUTO),
        (RungPlace(GPU, "constant"), "mean", HERE, RungPlace(GPU), RungPlace(GPU, "tuned")),
        (RungPlace(CPU), "mean", HERE, RungPlace(CPU), RungPlace(CPU, "parallel")),
        (RungPlace(Device.AUTO, "serial"), "mean", HERE, *[RungPlace(CPU, "serial")] * 2),
        (RungPlace(CPU, "no such"), "mean", HERE, RungPlace(CPU), RungPlace(CPU, "parallel")),
    ],
)
def test_a_place_that_is_not_offered_has_a_stand_in(
    wanted: RungPlace, filter_id: str, gpu: Availability, place: RungPlace, rung: RungPlace
) -> None:
    found = offered(filter_id, gpu)
    assert chosen_place(wanted, found) == place
    assert marked(place, found) == rung


@pytest.fixture
def runs() -> Runs:
    return Runs()


@pytest.fixture
def ladder(runs: Runs) -> LadderModel:
    return LadderModel(runs)


def test_a_time_belongs_to_its_settings_its_picture_and_its_place(
    runs: Runs, ladder: LadderModel
) -> None:
    source = picture()
    run = result(source)
    added = runs.add(run)
    time = ladder.time(run.request, options("serial"))
    assert time is not None
    assert (time.computing, time.repeats) == (0.01, 3)
    assert time.total == pytest.approx(0.011)
    assert (time.least, time.most) == pytest.approx((0.009, 0.012))
    assert ladder.time(run.request, options("parallel")) is None
    assert ladder.time(run.request, options("serial", memory_limit=1 << 20)) == time, "of a GPU"
    assert ladder.time(run.request, options("serial", repeat=5)) == time
    assert ladder.time(replace(run.request, source=picture()), options("serial")) is None
    larger = Request.create(source, "mean", {"size": 7})
    assert ladder.time(larger, options("serial")) is None
    runs.add(result(source, size=7, seconds=1.0))
    assert ladder.time(run.request, options("serial")) == time  # it comes back with its settings
    runs.remove(added)
    assert ladder.time(run.request, options("serial")) is None


def test_a_single_run_has_no_time_to_compare(runs: Runs, ladder: LadderModel) -> None:
    run = result(picture(), measured=False)
    runs.add(run)
    assert ladder.time(run.request, options("serial")) is None
    assert not ladder.has_run(run.request, options("serial"))


def test_a_run_of_another_picture_in_the_same_memory_is_not_taken(
    runs: Runs, ladder: LadderModel
) -> None:
    run = runs.add(result(picture()))
    request = run.result.request if run.result is not None else None
    assert request is not None
    run.result = None  # its pictures were dropped
    assert ladder.time(request, options("serial")) is not None
    other = replace(request, source=picture())
    del request
    gc.collect()
    assert run.source() is None
    assert ladder.time(other, options("serial")) is None


def to_compare(ladder: LadderModel, request: Request, found: Any) -> tuple[Any, Any]:
    """Return the reference and the pairs, of which there have to be some."""
    compared = ladder.to_compare(request, found)
    assert compared is not None
    return compared


def test_results_are_compared_with_the_serial_level_whenever_it_comes(
    runs: Runs, ladder: LadderModel
) -> None:
    source, found = picture(), offered()
    first = result(source, "parallel", output=picture(9))
    runs.add(first)
    reference, pairs = to_compare(ladder, first.request, found)
    assert (reference.full_name, pairs) == ("CPU parallel", {})
    runs.add(result(source, "serial", output=picture(8)))
    reference, pairs = to_compare(ladder, first.request, found)
    assert reference.full_name == "CPU serial"
    ((place, (expected, other)),) = pairs.items()
    assert place == RungPlace(CPU, "parallel")
    parity = compare(reference.full_name, expected.planes, other.planes)
    ladder.learn(first.request, reference, {place: parity})
    known = ladder.parity(first.request, place)
    assert known is not None
    assert known.agreement is Agreement.DIFFERENT
    assert known.describe() == "100.00 % of the samples differ from CPU serial, by up to 1."
    own = ladder.parity(first.request, reference.place)
    assert own is not None
    assert own.agreement is Agreement.REFERENCE
    assert ladder.to_compare(first.request, found) == (reference, {})
    again = result(source, "parallel", output=picture(8))
    runs.add(again)
    ladder.renew(again)  # a new result is compared again
    _, pairs = to_compare(ladder, first.request, found)
    assert place in pairs


def test_nothing_is_said_about_results_of_other_settings(runs: Runs, ladder: LadderModel) -> None:
    source, found = picture(), offered()
    runs.add(result(source, "serial"))
    runs.add(result(source, "parallel", size=7))
    assert ladder.to_compare(Request.create(source, "mean", {"size": 5}), found) is None
    _, pairs = to_compare(ladder, Request.create(source, "mean", {"size": 7}), found)
    assert pairs == {}


def test_floats_may_differ_by_rounding() -> None:
    expected = np.full((4, 4, 1), 100, np.float32)
    assert compare("a", expected, expected.copy()).agreement is Agreement.EQUAL
    near, far = expected + np.float32(0.005), expected + np.float32(0.05)
    assert compare("a", expected, near).agreement is Agreement.ROUNDING
    assert compare("a", expected, far).agreement is Agreement.DIFFERENT
    whole = np.full((4, 4, 1), 60000, np.uint16)
    assert compare("a", whole, whole + np.uint16(1)).agreement is Agreement.DIFFERENT


def test_the_race_begins_with_the_quickest_and_leaves_out_the_slow() -> None:
    found = offered()
    order, slow = race(
        found, {RungPlace(CPU, "serial"): LIMIT + 1, RungPlace(GPU, "global"): 0.001}
    )
    assert [rung.full_name for rung in slow] == ["CPU serial"]
    assert order[0].place == RungPlace(GPU, "global")
    assert order[1].place == RungPlace(GPU, "tuned")  # unknown: the fastest ones first
    assert all(rung.level is not None and not rung.obstacle for rung in order)
    assert not race(found, {RungPlace(CPU, "serial"): LIMIT})[1]


def row(level: str, seconds: float, **others: Any) -> Row:
    spec = filters.get("mean")
    defaults = {each.name: each.format(each.default) for each in spec.parameters}
    return Row(
        label="Mean",
        filter="mean",
        parameters=defaults,
        border="reflect",
        content="noise",
        channels=1,
        asked=(512, 512),
        shape=(512, 512),
        device=others.pop("device", "cpu"),
        level=level,
        seconds=(seconds,),
        **others,
    )


def test_the_cost_of_a_level_follows_from_one_that_was_measured() -> None:
    figures = [
        RecordedTime(row(level, seconds), "a processor", "22 Nov 2026", Path("cpu.json"))
        for level, seconds in (("serial", 3.0), ("parallel", 0.1))
    ]
    request = Request.create(picture(), "mean")
    known = {RungPlace(CPU, "parallel"): 0.5}
    expected = expected_times(request, offered(), known, Recorded(figures))
    assert expected == {
        RungPlace(CPU, "parallel"): 0.5,
        RungPlace(CPU, "serial"): pytest.approx(15.0),
    }
    assert expected_times(request, offered(), known, Recorded()) == known
    assert expected_times(request, offered(), {}, Recorded(figures)) == {}


def test_a_recorded_time_says_where_it_comes_from() -> None:
    part = replace(row("tuned", 0.002, device="gpu"), shape=(256, 512))
    figure = RecordedTime(part, "NVIDIA H100 80GB HBM3", "22 Nov 2026", Path("gpu.json"))
    rung = next(each for each in offered(gpu=NO_GPU) if each.place == RungPlace(GPU, "tuned"))
    entry = KnownRung(rung, figure=figure)
    assert entry.seconds == pytest.approx(0.004)
    text = entry.explain()
    for words in (
        *("Recorded, not measured here", "≈ 4.00 ms", "512×512", "NVIDIA H100 80GB HBM3"),
        *("22 Nov 2026", "Timed on 512×256 and scaled", NO_GPU.summary),
    ):
        assert words in text
