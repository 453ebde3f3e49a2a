"""Measuring: the requests to the devices, their order, and the stored results."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernelscope.base.errors import AppError, Cancelled
from kernelscope.bench import data, peers, rules
from kernelscope.bench.data import Content, Data
from kernelscope.bench.plan import Plan, Sweep
from kernelscope.bench.presets import grid
from kernelscope.bench.rows import Row
from kernelscope.bench.runner import BenchProgress, measure, planned_work
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.worker import Event, Finished, Job, Reported, Stopped, Worker
from tests.bench.stand_in import COPY_RATE, DOWNLOAD, KERNEL, PEAK_RATE, UPLOAD, StandIn
from tests.patience import PATIENCE

PLAN = Plan(sweeps=grid(["mean"], [32], [3]), devices=("cpu",), repeat=2, cold=False)
GPU = replace(PLAN, devices=("gpu",), levels=("global", "shared"))


def rows_of(plan: Plan, backends: dict[str, Backend]) -> list[Row]:
    return list(measure(plan, backends, CancelToken()))


def test_every_row_has_every_repeat(backends: dict[str, Backend]) -> None:
    rows = rows_of(PLAN, backends)
    assert [row.series for row in rows] == ["CPU serial", "CPU parallel"]
    for row in rows:
        assert len(row.seconds) == len(row.stages["compute"]) == 2
        assert row.seconds == row.stages["compute"] == row.waits
        assert min(row.seconds) > 0
        assert row.shape == row.asked == (32, 32)
        assert row.bytes == 2 * 32 * 32
        assert row.cache == "warm"
        assert not row.reason


def test_a_gpu_is_timed_by_kernels_and_end_to_end(backends: dict[str, Backend]) -> None:
    row, _ = rows_of(GPU, backends)
    assert row.series == "GPU global"
    assert row.seconds == (KERNEL, KERNEL)
    assert row.stages["upload"] == (UPLOAD, UPLOAD)
    assert "compile" not in row.stages
    assert row.waits == pytest.approx([UPLOAD + KERNEL + DOWNLOAD] * 2)
    assert (row.copy_rate, row.peak_rate) == (COPY_RATE, PEAK_RATE)
    assert row.bytes == 2 * 32 * 32
    assert row.operations == 10 * 32 * 32


def test_launches_that_are_timed_together_are_counted(
    backends: dict[str, Backend], gpu: StandIn
) -> None:
    gpu.batch = 16
    assert {row.batch for row in rows_of(GPU, backends)} == {16}
    assert {row.batch for row in rows_of(PLAN, backends)} == {1}


def test_each_kernel_of_several_is_timed(backends: dict[str, Backend], gpu: StandIn) -> None:
    gpu.kernels = ("weights", "mean")
    row, _ = rows_of(GPU, backends)
    assert row.kernels == {"weights": (KERNEL / 2,) * 2, "mean": (KERNEL / 2,) * 2}
    assert row.seconds == (KERNEL, KERNEL)


def test_a_stage_that_not_every_run_has_took_no_time_elsewhere(
    backends: dict[str, Backend], gpu: StandIn
) -> None:
    """Such as making room on the card, once."""
    gpu.allocations = [0.25, 0.5]  # of the first run, which is not timed, and the one after
    (row,) = rows_of(replace(GPU, levels=("global",)), backends)
    assert row.stages["allocate"] == (0.25, 0.0)
    usual = UPLOAD + KERNEL + DOWNLOAD
    assert row.waits == pytest.approx([0.25 + usual, usual])


def test_each_row_is_run_by_its_number_of_gpus(backends: dict[str, Backend], gpu: StandIn) -> None:
    gpu.chosen = 2
    sweeps = grid(["mri_nlm"], [8], [3])
    rows = rows_of(replace(GPU, sweeps=sweeps, levels=("shared",), gpus=(1, 2)), backends)
    assert [(row.series, row.gpus) for row in rows] == [("GPU shared", 1), ("2 GPUs shared", 2)]
    assert [request.options.gpus for request in gpu.requests] == [1, 2] * 3


def test_every_run_has_a_picture_of_its_own(backends: dict[str, Backend], gpu: StandIn) -> None:
    """A picture that is on the card already would not be uploaded."""
    rows_of(GPU, backends)
    places = {request.image.pixels.__array_interface__["data"] for request in gpu.requests}
    assert len(gpu.requests) == len(places) == 2 * (1 + 2)


def test_levels_take_turns(backends: dict[str, Backend], gpu: StandIn) -> None:
    rows_of(GPU, backends)
    levels = [request.options.level for request in gpu.requests]
    assert levels == ["global", "shared"] * 3


def test_cold_caches(
    monkeypatch: pytest.MonkeyPatch, backends: dict[str, Backend], gpu: StandIn
) -> None:
    evictions: list[None] = []
    monkeypatch.setattr(rules.Evictor, "evict", lambda self: evictions.append(None))
    rows = rows_of(replace(PLAN, cold=True), backends)
    assert {row.cache for row in rows} == {"cold"}
    assert len(evictions) == 2 * (1 + 2)
    rows_of(replace(GPU, cold=True), backends)
    assert len(evictions) == 6
    assert {(request.options.cold, request.options.repeat) for request in gpu.requests} == {
        (True, 1)
    }


def test_warm_caches_take_the_second_launch(backends: dict[str, Backend], gpu: StandIn) -> None:
    for row in rows_of(GPU, backends):
        assert row.seconds == row.stages["kernel"] == (KERNEL, KERNEL)
    assert {(request.options.cold, request.options.repeat) for request in gpu.requests} == {
        (False, 2)
    }


def test_a_slow_level_gets_a_part(backends: dict[str, Backend]) -> None:
    plan = replace(PLAN, sweeps=grid(["mean"], [512], [3]), levels=("serial",), longest=1e-9)
    (row,) = rows_of(plan, backends)
    assert (row.shape, row.asked) == ((64, 64), (512, 512))


def test_a_small_part_says_little_of_a_card(backends: dict[str, Backend]) -> None:
    sweeps = grid(["mean"], [512], [3])
    plan = replace(GPU, sweeps=sweeps, levels=("tuned",), longest=1.5 * KERNEL)
    (row,) = rows_of(plan, backends)
    assert row.shape == (512, 512), "no part took longer than the one before"
    (row,) = rows_of(replace(plan, longest=KERNEL / 2), backends)
    assert row.shape == (64, 64)


def test_volumes(backends: dict[str, Backend]) -> None:
    sweep = Sweep(
        filter="mri_nlm",
        parameters=({"search_radius": 1, "sigma_from": "given", "sigma": (10.0,)},),
        data=(Data(Content.HEAD, (4, 6, 5), 2),),
    )
    serial, parallel, *on_gpu = rows_of(
        replace(PLAN, sweeps=(sweep,), devices=("cpu", "gpu")), backends
    )
    assert serial.asked == parallel.asked == (4, 6, 5)
    assert serial.channels == 2
    assert serial.size == "5×6×4"
    assert [row.level for row in on_gpu] == ["global", "shared", "tuned"]
    assert all(row.operations for row in on_gpu)


def test_a_photograph_is_judged(backends: dict[str, Backend]) -> None:
    sweep = Sweep(filter="mean", parameters=({},), data=(Data(Content.PHOTOGRAPH, (64, 64)),))
    for row in rows_of(replace(PLAN, sweeps=(sweep,)), backends):
        assert row.psnr is not None
        assert 15 < row.psnr < 40
        assert "judge" not in row.stages


def test_a_part_of_a_photograph_is_another_picture(backends: dict[str, Backend]) -> None:
    """And its PSNR says nothing of the picture that was asked for."""
    sweep = Sweep(filter="mean", parameters=({},), data=(Data(Content.PHOTOGRAPH, (256, 256)),))
    plan = replace(PLAN, sweeps=(sweep,), levels=("serial",), longest=1e-9)
    (row,) = rows_of(plan, backends)
    assert (row.timed_size, row.size, row.is_part, row.psnr) == ("64×64", "256×256", True, None)


def test_every_run_has_the_block_of_its_row(backends: dict[str, Backend], gpu: StandIn) -> None:
    plan = Plan(
        sweeps=grid(["mean"], [16], [3]), levels=("shared",), blocks=((8, 8), (16, 16)), repeat=2
    )
    rows = list(measure(plan, backends, CancelToken()))
    assert [(row.block, row.series) for row in rows] == [
        ((8, 8), "GPU shared 8×8"),
        ((16, 16), "GPU shared 16×16"),
    ]
    assert [request.options.block for request in gpu.requests[-4:]] == [(8, 8), (16, 16)] * 2


def test_planned_work_is_what_the_executor_counts(backends: dict[str, Backend]) -> None:
    """Bytes and operations of a sample of the result, for all samples."""
    image = Data(Content.NOISE, (10, 20), 3).make()
    request = Request.create(image, "greyscale", device=Device.GPU, level="global")
    bytes_, operations = planned_work(request)
    assert bytes_ % (10 * 20 * 3) == operations % (10 * 20 * 3) == 0
    assert min(bytes_, operations) > 0


# Cases that cannot run -------------------------------------------------------------------


def test_rows_that_cannot_run_stay_with_the_reason(
    backends: dict[str, Backend], gpu: StandIn
) -> None:
    gpu.too_large_for = "shared"
    running, failing = rows_of(GPU, backends)
    assert running.seconds
    assert failing.reason == "The GPU has too little memory."
    assert not failing.seconds
    gpu.available = False
    assert {row.reason for row in rows_of(GPU, backends)} == {"No GPU here."}


def test_a_time_of_zero_is_no_time(backends: dict[str, Backend], gpu: StandIn) -> None:
    """A speed, or a speed-up, cannot be computed from it, nor can a report with it be read."""
    gpu.launch = 0.0
    rows = rows_of(GPU, backends)
    assert {row.reason for row in rows} == {"No time was measured."}
    assert not any(row.seconds for row in rows)


def test_mistakes_are_found_before_anything_is_timed(backends: dict[str, Backend]) -> None:
    steps: list[BenchProgress] = []
    plan = replace(PLAN, levels=("parallel", "fast"))
    with pytest.raises(AppError, match="“fast”"):
        list(measure(plan, backends, CancelToken(), steps.append))
    assert not steps


# Libraries -------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["OpenCV", "SciPy", "scikit-image"])
def test_libraries_are_timed_on_the_same_data(
    library: str, backends: dict[str, Backend], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    counterpart = peers.counterpart

    def watch(name: str, *arguments: Any) -> peers.Counterpart | None:
        seen.append(arguments[1])
        return counterpart(name, *arguments)

    monkeypatch.setattr(peers, "counterpart", watch)
    plan = replace(PLAN, sweeps=grid(["median"], [32], [3]), peers=True)
    rows = {row.series: row for row in rows_of(plan, backends)}
    row = rows[library]
    assert row.library
    assert len(row.seconds) == 2
    assert row.difference is not None
    assert row.difference.largest == 0
    assert not row.stages
    for pixels in seen:
        np.testing.assert_array_equal(pixels, Data(Content.NOISE, (32, 32)).make().pixels)


def test_a_different_result_is_told(
    monkeypatch: pytest.MonkeyPatch, backends: dict[str, Backend]
) -> None:
    def wrong(pixels: Any, parameters: Any, border: Any) -> Any:
        return lambda: np.full_like(pixels, 255), np.asarray

    known = peers.discover()
    opencv = known["OpenCV"]
    broken = replace(opencv, makers={**opencv.makers, "mean": wrong})
    monkeypatch.setattr(peers, "discover", lambda: {**known, "OpenCV": broken})
    rows = rows_of(replace(PLAN, peers=True), backends)
    (row,) = (row for row in rows if row.series == "OpenCV")
    assert row.difference is not None
    assert row.difference.largest > 50
    assert row.difference.share > 0.9


def test_nothing_that_computes_the_same(backends: dict[str, Backend]) -> None:
    sweep = replace(grid(["nlm"], [8], [3])[0], parameters=({"patch": 3, "search_radius": 1},))
    rows = rows_of(replace(PLAN, sweeps=(sweep,), peers=True), backends)
    reasons = {row.series: row.reason for row in rows if row.library}
    assert reasons["OpenCV"] == "OpenCV has no function that computes the same."


# Progress and cancel -----------------------------------------------------------------------


def test_steps_tell_how_far_it_is(backends: dict[str, Backend]) -> None:
    steps: list[BenchProgress] = []
    plan = replace(PLAN, sweeps=grid(["mean"], [16, 32], [3]))
    list(measure(plan, backends, CancelToken(), steps.append))
    assert {step.total for step in steps} == {4}
    assert [step.done for step in steps] == [0] * 6 + [2] * 6
    assert steps[0].text == "Mean, mask size 3, 16×16, CPU serial"
    assert steps[0].left is None
    assert steps[0].describe() == "1/4  Mean, mask size 3, 16×16, CPU serial"
    left = steps[-1].left
    assert left is not None
    assert 0 < left < 60
    assert steps[-1].describe().endswith("s left")


def test_cancel_keeps_what_was_begun(backends: dict[str, Backend]) -> None:
    """In the second round of the second size: two rows are whole, two have one repeat."""
    token = CancelToken()
    steps: list[BenchProgress] = []

    def announce(step: BenchProgress) -> None:
        steps.append(step)
        if len(steps) == 6 + 5:
            token.cancel()

    plan = replace(PLAN, sweeps=grid(["mean"], [16, 32], [3]))
    rows: list[Row] = []
    with pytest.raises(Cancelled):
        rows.extend(collect(measure(plan, backends, token, announce), rows))
    assert [len(row.seconds) for row in rows] == [2, 2, 1, 1]


def collect(rows: Iterator[Row], into: list[Row]) -> Iterator[Row]:
    """Add rows to a list one by one, so that an exception does not take them."""
    for row in rows:
        into.append(row)
    yield from ()


def test_on_the_workers_thread(backends: dict[str, Backend]) -> None:
    """As the window does it."""
    events: list[Event] = []
    ended = threading.Event()

    def listen(event: Event) -> None:
        events.append(event)
        if isinstance(event, Finished | Stopped):
            ended.set()

    worker = Worker(backends, listen)
    try:

        def work(backends: Any, token: CancelToken, report: Any) -> None:
            for row in measure(PLAN, backends, token, report):
                report(row)

        job = Job(work)
        worker.submit(job)
        assert ended.wait(PATIENCE)
    finally:
        worker.close()
    assert isinstance(events[-1], Finished)
    values = [event.value for event in events if isinstance(event, Reported)]
    assert {type(value) for value in values} == {BenchProgress, Row}
    assert [value.series for value in values if isinstance(value, Row)] == [
        "CPU serial",
        "CPU parallel",
    ]


@pytest.mark.parametrize("is_whole", [True, False])
def test_no_data_are_kept_after_a_run(backends: dict[str, Backend], is_whole: bool) -> None:
    """Eight pictures of 8192² would stay in the window's memory: half a gigabyte."""
    photograph = Data(Content.PHOTOGRAPH, (32, 32))
    sweep = replace(PLAN.sweeps[0], data=(photograph,))
    plan = replace(PLAN, sweeps=(*PLAN.sweeps, sweep))
    rows = measure(plan, backends, CancelToken())
    next(rows)
    assert data._pixels.cache_info().currsize == 1
    if is_whole:
        assert len(list(rows)) == 3
    rows.close()  # type: ignore[attr-defined]
    assert data._pixels.cache_info().currsize == 0
    assert data._photograph.cache_info().currsize == 0
