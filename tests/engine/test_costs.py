"""Auto by measured cost: learning, storing, choosing and reporting."""

from __future__ import annotations

import json
import stat
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelscope.base.errors import AppError, DeviceUnavailable, OutOfMemory
from kernelscope.engine import costs as costs_module
from kernelscope.engine.backend import Availability
from kernelscope.engine.context import RunContext
from kernelscope.engine.costs import KEPT_POINTS, Costs, line
from kernelscope.engine.measuring import measure
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute, expected
from kernelscope.engine.timing import Stage
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.levels import CPU_LEVELS, GPU_LEVELS, Level
from tests.engine.fakes import FakeBackend
from tests.foreign import FOREIGN, make_foreign, posix


class Machine(FakeBackend):
    """A device that takes `overhead` + `slope` × samples seconds, or says so."""

    def __init__(self, id: str, overhead: float, slope: float) -> None:
        super().__init__(id, levels=CPU_LEVELS if id == "cpu" else GPU_LEVELS)
        self.overhead, self.slope = overhead, slope
        self.error: Exception | None = None

    def run(self, request: Request, level: Level, context: RunContext) -> Image:
        if self.error:
            raise self.error
        context.log.add("compute", self.overhead + self.slope * request.image.pixels.size)
        return request.image


@pytest.fixture
def machines() -> dict[str, Machine]:
    """Return a GPU that is faster from 10 000 samples on."""
    return {"gpu": Machine("gpu", 1.01e-3, 1e-9), "cpu": Machine("cpu", 1e-5, 1.01e-7)}


def request(side: int, filter_id: str = "mean", **options: Any) -> Request:
    return Request.create(Image.from_array(np.zeros((side, side), np.uint8)), filter_id, **options)


def result(request: Request, seconds: float, level: str = "tuned") -> Result:
    return Result(request, request.image, "gpu", level, (Stage("kernel", seconds),))


# The line -----------------------------------------------------------------------------


def test_a_wild_time_among_several_does_not_count() -> None:
    points = [(n, 2e-4 + 3e-9 * n) for n in (100, 1_000_000) for _ in range(3)]
    assert line([*points, (100, 5.0)]) == pytest.approx((2e-4, 3e-9))


@settings(deadline=None, max_examples=300)
@given(
    st.dictionaries(st.integers(1, 10**9), st.floats(1e-6, 1e3), min_size=2, max_size=6).map(
        lambda points: list(points.items())
    )
)
@pytest.mark.slow
def test_the_line_is_the_best_that_is_nowhere_negative(points: list[tuple[int, float]]) -> None:
    def error(overhead: float, slope: float) -> float:
        return sum(((overhead + slope * n) / t - 1) ** 2 for n, t in points)

    overhead, slope = line(points)
    assert overhead >= 0
    assert slope >= 0
    best = error(overhead, slope)
    for more in (0.9, 0.999, 1.001, 1.1):
        assert best <= error(overhead * more, slope) * (1 + 1e-6) + 1e-9
        assert best <= error(overhead, slope * more) * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        # Falling by far: the mean weighed by 1 / t², and no slope.
        ([(1000, 2.0), (2000, 1.0)], ((1 / 2 + 1) / (1 / 4 + 1), 0.0)),
        # Steeper than proportional: through the origin.
        ([(1, 1.0), (2, 4.0)], (0.0, (1 + 2 / 4) / (1 + 4 / 16))),
    ],
)
def test_what_would_be_negative_is_zero(
    points: list[tuple[int, float]], expected: tuple[float, float]
) -> None:
    assert line(points) == pytest.approx(expected)


@pytest.mark.parametrize("seconds", [0.25, 1e-5])
def test_one_size_is_met_exactly(seconds: float) -> None:
    overhead, slope = line([(1000, seconds)])
    assert overhead + 1000 * slope == pytest.approx(seconds)
    assert overhead > 0
    assert slope > 0


# Memory -------------------------------------------------------------------------------


@pytest.mark.parametrize(("side", "known"), [(24, True), (20, False), (180, True), (184, False)])
def test_predictions_reach_to_an_eighth_and_to_eight_times_the_size(side: int, known: bool) -> None:
    costs = Costs()
    costs.record(result(request(64), 0.5), "card")
    assert (costs.predict(request(side), "card", "tuned") is not None) == known


def test_a_run_should_take_as_long_as_those_before_on_its_device(
    machines: dict[str, Machine],
) -> None:
    costs, on_cpu = Costs(), request(64, device=Device.CPU)
    assert expected(on_cpu, machines, costs) is None
    for _ in range(2):
        execute(on_cpu, machines, costs=costs)
    assert expected(on_cpu, machines, costs) == pytest.approx(1e-5 + 1.01e-7 * 64 * 64)
    assert expected(request(64, device=Device.GPU), machines, costs) is None
    assert expected(replace(on_cpu, region=Region(0, 0, 9, 9)), machines, costs) is None


def test_what_matters_makes_another_kind(tmp_path: Path) -> None:
    costs = Costs()
    first = request(64, parameters={"size": 3})
    costs.record(result(first, 0.5), "card")
    assert costs.predict(first, "card", "tuned") == pytest.approx(0.5)
    assert costs.predict(request(64, border="wrap"), "card", "tuned") == pytest.approx(0.5)
    colour = Image.from_array(np.zeros((32, 32, 4), np.uint8))  # as many samples
    wide = Image.from_array(np.zeros((64, 64), np.uint16))
    others = (
        (first, "other card", "tuned"),
        (first, "card", "global"),
        (request(64, parameters={"size": 5}), "card", "tuned"),
        (request(64, "median", parameters={"size": 3}), "card", "tuned"),
        (Request.create(wide, "mean", {"size": 3}), "card", "tuned"),
        (Request.create(colour, "mean", {"size": 3}), "card", "tuned"),
    )
    assert [costs.predict(*other) for other in others] == [None] * len(others)


def test_runs_that_turn_colour_to_grey_are_of_another_kind() -> None:
    costs = Costs()
    colour = Image.from_array(np.zeros((64, 64, 3), np.uint8))
    for grey, seconds in ((False, 0.5), (True, 0.25)):
        kind = Request.create(colour, "mean", grey=grey)
        assert costs.predict(kind, "card", "tuned") is None
        costs.record(result(kind, seconds), "card")
        assert costs.predict(kind, "card", "tuned") == pytest.approx(seconds)
    # Grey pictures are not converted.
    costs.record(result(request(64), 0.125), "card")
    assert costs.predict(request(64, grey=True), "card", "tuned") == pytest.approx(0.125)


def test_settings_of_one_radius_are_of_several_kinds() -> None:
    """Patch and search radius of non-local means make up its radius together."""
    costs = Costs()
    first = request(64, "nlm", parameters={"patch": 3, "search_radius": 10})
    costs.record(result(first, 0.5), "card")
    smoother = {"patch": 3, "search_radius": 10, "filter_sigma": 0.5}
    others: tuple[dict[str, Any], ...] = (
        {"patch": 11, "search_radius": 6},
        {"patch": 3, "search_radius": 10, "weights": "uniform"},
    )
    assert costs.predict(request(64, "nlm", parameters=smoother), "card", "tuned") is not None
    for other in others:
        assert costs.predict(request(64, "nlm", parameters=other), "card", "tuned") is None


def test_costs_outlive_the_program_and_old_ones_go(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "costs.json"
    costs = Costs(path)
    for _ in range(3 * KEPT_POINTS):
        costs.record(result(request(64), 0.5), "card")
    for _ in range(KEPT_POINTS):
        costs.record(result(request(64), 0.25), "card")
    assert Costs(path).predict(request(64), "card", "tuned") == 0.5, "one of a known kind waits"
    costs.save()
    assert Costs(path).predict(request(64), "card", "tuned") == pytest.approx(0.25)
    assert [len(points) for points in json.loads(path.read_text()).values()] == [KEPT_POINTS]
    assert [file.name for file in path.parent.iterdir()] == ["costs.json"]


def test_a_first_run_counts_only_until_the_second(tmp_path: Path) -> None:
    """On a card it waits for the code: Auto would take the processor from then on."""
    path, cold = tmp_path / "costs.json", replace(result(request(100), 1.0), first=True)
    costs = Costs(path)
    costs.record(cold, "gpu")
    assert costs.predict(request(100), "gpu", "tuned") is None
    assert Costs(path).predict(request(100), "gpu", "tuned") == pytest.approx(1.0)
    costs.record(result(request(100), 0.004), "gpu")
    costs.record(result(request(100), 0.002), "gpu")
    assert costs.predict(request(100), "gpu", "tuned") == pytest.approx(0.003)
    costs.save()
    ((_, points),) = json.loads(path.read_text()).items()
    assert points == [[10_000, 0.004], [10_000, 0.002]]
    again = Costs(path)
    again.record(cold, "gpu")
    assert again.predict(request(100), "gpu", "tuned") == pytest.approx(0.004), "the median"


def test_known_kinds_are_written_now_and_then_and_when_the_process_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, now = tmp_path / "costs.json", 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    costs = Costs(path)

    def kept() -> int:
        (points,) = json.loads(path.read_text()).values()
        return len(points)

    costs.record(result(request(64), 0.5), "card")
    assert kept() == 1
    for _ in range(3):
        costs.record(result(request(64), 0.5), "card")
    assert kept() == 1, "writing takes longer than many a run"
    now += 11
    costs.record(result(request(64), 0.5), "card")
    assert kept() == 5
    costs.record(result(request(64), 0.5), "card")
    costs_module._save_all()
    assert kept() == 6
    path.unlink()
    costs_module._save_all()
    assert not path.exists(), "there was nothing new"


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"a": 3}', b'{"a": [[1]]}', b"\xff\xfe"])
def test_a_damaged_file_is_started_anew(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "costs.json"
    path.write_bytes(content)
    costs = Costs(path)
    assert costs.predict(request(8), "card", "tuned") is None
    assert "damaged" in caplog.text
    costs.record(result(request(8), 0.5), "card")
    assert Costs(path).predict(request(8), "card", "tuned") == pytest.approx(0.5)


@posix
@pytest.mark.parametrize("how", FOREIGN)
def test_costs_that_others_may_have_written_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    path = tmp_path / "costs.json"
    Costs(path).record(result(request(8), 0.5), "card")
    make_foreign(path, how, monkeypatch)
    assert Costs(path).predict(request(8), "card", "tuned") is None


@posix
def test_the_folder_of_the_costs_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "kernelscope"
    folder.mkdir()
    folder.chmod(0o777)
    Costs(folder / "costs.json").record(result(request(8), 0.5), "card")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_place_that_cannot_be_written_costs_no_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    costs = Costs(tmp_path / "file" / "costs.json")
    costs.record(result(request(8), 0.5), "card")
    assert "cannot be kept" in caplog.text
    assert costs.predict(request(8), "card", "tuned") == pytest.approx(0.5)


# The choice ---------------------------------------------------------------------------


def test_without_knowledge_large_pictures_go_to_the_gpu(machines: dict[str, Machine]) -> None:
    assert execute(request(512), machines).device == "gpu"
    small = execute(request(511), machines)
    assert small.device == "cpu"
    assert small.notices == ("Auto chose the CPU, as usual for pictures of this size.",)


def test_both_are_tried_and_then_the_cheaper_is_taken(machines: dict[str, Machine]) -> None:
    costs = Costs()
    chosen = [execute(request(64), machines, costs=costs) for _ in range(3)]
    assert [run.device for run in chosen] == ["cpu", "gpu", "cpu"]
    assert "to measure it too" in chosen[1].notices[0]
    assert "expects 1.01 ms on the GPU, 424 µs on the CPU" in chosen[2].notices[0]
    far = [execute(request(200), machines, costs=costs) for _ in range(3)]
    assert [run.device for run in far] == ["cpu", "gpu", "gpu"]
    assert "expects" in far[2].notices[0]


def test_the_slow_device_is_not_tried_on_a_large_picture(machines: dict[str, Machine]) -> None:
    costs = Costs()
    chosen = [execute(request(1100), machines, costs=costs).device for _ in range(3)]
    assert chosen == ["gpu"] * 3


def test_the_crossing_is_found_within_a_few_runs(machines: dict[str, Machine]) -> None:
    costs = Costs()
    for side in (16, 800):
        for device in Device.CPU, Device.GPU:
            execute(request(side, device=device), machines, costs=costs)
    sides = range(20, 300, 20)
    chosen = [execute(request(side), machines, costs=costs).device for side in sides]
    assert chosen == ["gpu" if side > 100 else "cpu" for side in sides]


def test_without_a_gpu_there_is_nothing_to_say(machines: dict[str, Machine]) -> None:
    machines["gpu"].state = Availability(False, "none")
    done = execute(request(800), machines)
    assert (done.device, done.notices) == ("cpu", ())


@pytest.mark.parametrize("options", [{"memory_limit": 1000}, {"gpus": 1}, {"cold": True}])
def test_unusual_runs_teach_nothing(machines: dict[str, Machine], options: dict[str, Any]) -> None:
    costs = Costs()
    for _ in range(2):
        assert execute(request(800, **options), machines, costs=costs).device == "gpu"
        assert costs.predict(request(800), "fake GPU", "tuned") is None
    execute(request(800, repeat=3), machines, costs=costs)
    assert costs.predict(request(800), "fake GPU", "tuned") is not None


def test_any_other_option_makes_a_run_unusual() -> None:
    """Also one that is added."""
    others: dict[str, Any] = {"device": Device.GPU, "level": "tuned", "repeat": 3}
    unusual: dict[str, Any] = {"memory_limit": 0, "cold": True, "gpus": 1, "block": (32, 8)}
    assert {each.name for each in fields(RunOptions)} == {*others, *unusual}
    assert RunOptions(**others).is_usual
    assert not any(RunOptions(**{name: value}).is_usual for name, value in unusual.items())


def test_a_measured_region_teaches_nothing_about_its_picture(machines: dict[str, Machine]) -> None:
    costs = Costs()
    part = replace(request(800), region=Region(0, 0, 40, 40))
    assert measure(part, machines, costs=costs).image.planes.shape == (40, 40, 1)
    for device, level in (("fake GPU", "tuned"), ("fake CPU", "parallel")):
        assert costs.predict(request(800), device, level) is None


def test_slices_teach_nothing(machines: dict[str, Machine]) -> None:
    costs = Costs()
    scan = Scan((Volume.from_array(np.zeros((2, 800, 800), np.uint8)),))
    wanted = Request.create(scan, "mean")
    assert execute(wanted, machines, costs=costs).device == "gpu"
    assert costs.predict(wanted, "fake GPU", "tuned") is None


@pytest.mark.parametrize(
    "error",
    [DeviceUnavailable("It is gone."), OutOfMemory("It is full."), AppError("No host compiler.")],
)
def test_auto_turns_to_the_cpu_and_says_so(machines: dict[str, Machine], error: Exception) -> None:
    machines["gpu"].error = error
    done = execute(request(800), machines)
    assert done.device == "cpu"
    assert done.notices == (f"Auto used the CPU, because the GPU failed: {error}",)
    with pytest.raises(type(error)):
        execute(request(800, device=Device.GPU), machines)
    with pytest.raises(type(error)):
        execute(request(800, level="tuned"), machines)
