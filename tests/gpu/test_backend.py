"""The backend around the kernels: memory, time, cancelling, failures."""

from __future__ import annotations

import gc
import re
import resource
import statistics
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.cuda import CudaBackend, device_run, executor, kernel, sources
from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.compiler import CompileError, CubinCache, Nvcc, Nvrtc
from kernelscope.base.errors import Cancelled, DeviceUnavailable, OutOfMemory
from kernelscope.bench.runner import planned_work
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.images.image import Image
from kernelscope.schema.blocks import takes_block

pytestmark = pytest.mark.gpu


def noise(*shape: int, seed: int = 0) -> Image:
    return Image.from_array(np.random.default_rng(seed).integers(0, 256, shape, np.uint8))


def run(gpu: CudaBackend, image: Image, filter_id: str = "mean", **options: Any) -> Result:
    request = Request.create(image, filter_id, device=Device.GPU, **options)
    return execute(request, {"gpu": gpu, "cpu": CpuBackend()})


def stage_names(result: Result) -> list[str]:
    return [stage.name for stage in result.stages]


def free_memory(gpu: CudaBackend) -> int:
    """Return what others could allocate: nothing is kept for the next run any more."""
    (card,) = gpu._open()
    card.call(card.pool.release)
    return card.call(card.free_memory)


# Reports of a run ---------------------------------------------------------------------


def test_stages_and_metrics(gpu: CudaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    # A host that others keep busy may queue every launch too late for its rate to be shown.
    monkeypatch.setattr(device_run, "NOTABLE_EXCESS", float("inf"))
    gc.collect()
    kept = run(gpu, noise(8, 8))  # frees the copies of what is gone, which is a stage as well
    result = run(gpu, noise(2048, 2048), repeat=5)
    # Launches that another process on the card disturbs are repeated.
    assert [name for name in stage_names(result) if name != "repeat"] == [
        "prepare",
        "compile",
        "allocate",
        "upload",
        "allocate",
        "warm-up",
        "kernel",
        "launch",
        "download",
        "convert",
    ]
    uncounted = {stage.name for stage in result.stages if not stage.counted}
    assert uncounted - {"repeat"} == {"compile", "warm-up"}
    (kernel,) = (stage for stage in result.stages if stage.name == "kernel")
    assert len(kernel.repeats) == 5
    assert kernel.seconds == sorted(kernel.repeats)[2]
    metrics = {metric.name: metric for metric in result.metrics}
    assert metrics["effective rate"].value == pytest.approx(2 * 2048**2 / kernel.seconds)
    assert metrics["effective rate"].unit == "B/s"
    assert 10e9 < metrics["copy rate"].value < 20e12
    assert 1e12 < metrics["peak rate"].value < 1e15
    assert metrics["arithmetic rate"].value < metrics["peak rate"].value
    del kept


def test_events_enclose_the_kernel_alone(gpu: CudaBackend) -> None:
    """A few pixels take the card microseconds; the host needs more to launch anything."""
    result = run(gpu, noise(16, 16), level="global", repeat=21)
    assert sum(stage.seconds for stage in result.stages if stage.name == "kernel") < 8e-6


def test_the_total_is_what_the_clock_says(gpu: CudaBackend) -> None:
    """Apart from the engine's work around the backend, a good millisecond at most."""
    run(gpu, noise(4096, 4096, seed=1))  # compiles, and allocates staging buffers
    cpu = CpuBackend()
    request = Request.create(noise(4096, 4096), "mean", device=Device.GPU)
    start = time.perf_counter()
    result = execute(request, {"gpu": gpu, "cpu": cpu})
    clock = time.perf_counter() - start
    cpu.close()
    compiling = sum(stage.seconds for stage in result.stages if not stage.counted)
    assert 0.65 * (clock - compiling) < result.seconds <= clock


def test_cold_launches_read_from_memory(gpu: CudaBackend) -> None:
    """8 MiB and as much again stay in the cache of any card that is fast enough to notice."""
    cold, warm = (
        next(
            stage.seconds
            for stage in run(
                gpu, noise(2048, 4096), "laplace", level="tuned", repeat=21, cold=cold
            ).stages
            if stage.name == "kernel"
        )
        for cold in (True, False)
    )
    assert cold > 1.1 * warm


def batch_of(result: Result) -> int:
    return int(next((m.value for m in result.metrics if m.name == "batch"), 1))


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("level", ["single-block", "global", "shared", "texture", "tuned"])
def test_batches_compute_the_same_and_take_no_longer_than_single_launches(
    gpu: CudaBackend, monkeypatch: pytest.MonkeyPatch, level: str, cold: bool
) -> None:
    image = noise(200, 300)
    wanted = run(gpu, image, "median", level=level)
    assert batch_of(wanted) == 1
    together = run(gpu, image, "median", level=level, repeat=9, cold=cold)
    np.testing.assert_array_equal(together.image.pixels, wanted.image.pixels)
    (card,) = gpu._open()
    monkeypatch.setattr(kernel, "SHORT_SECONDS", 0.0)
    monkeypatch.setattr(card, "batches", {})
    alone = run(gpu, image, "median", level=level, repeat=9, cold=cold)
    assert batch_of(alone) == 1
    seconds = {
        name: next(stage.seconds for stage in result.stages if stage.name == "kernel")
        for name, result in (("together", together), ("alone", alone))
    }
    if batch_of(together) > 1:
        assert level == "single-block" or batch_of(together) * seconds["together"] > 50e-6
        assert seconds["together"] < 1.5 * seconds["alone"]


def test_a_cold_batch_reads_from_memory(gpu: CudaBackend) -> None:
    """Each of its launches a picture of its own: 4 MiB, which the next one would find cached."""
    image = noise(2048, 2048)
    runs = {
        cold: run(gpu, image, "laplace", level="tuned", repeat=21, cold=cold)
        for cold in (True, False)
    }
    assert batch_of(runs[True]) > 4
    cold, warm = (
        next(stage.seconds for stage in runs[each].stages if stage.name == "kernel")
        for each in (True, False)
    )
    assert cold > 1.1 * warm


@pytest.mark.parametrize("filter_id", ["mean", "greyscale", "nlm"])
def test_the_bench_plans_the_work_that_is_counted(
    gpu: CudaBackend, filter_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A busy host may queue these short launches too late for their rates to be shown.
    monkeypatch.setattr(device_run, "NOTABLE_EXCESS", float("inf"))
    result = run(gpu, noise(64, 80, 3), filter_id, level="global", repeat=2, cold=True)
    kernel = sum(stage.seconds for stage in result.stages if stage.name == "kernel")
    rates = {metric.name: metric.value for metric in result.metrics}
    bytes_, operations = planned_work(result.request)
    assert rates["effective rate"] * kernel == pytest.approx(bytes_)
    assert rates["arithmetic rate"] * kernel == pytest.approx(operations)


def test_no_launch_is_long(gpu: CudaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[float] = []
    learn = device_run.Pacer.learn

    def note(self: device_run.Pacer, units: int, seconds: float) -> None:
        launches.append(seconds)
        learn(self, units, seconds)

    monkeypatch.setattr(device_run.Pacer, "learn", note)
    result = run(gpu, noise(2048, 2048), "median", parameters={"size": 9}, level="single-block")
    assert len(launches) > 3
    assert max(launches) < device_run.LAUNCH_SECONDS
    (kernel,) = (stage for stage in result.stages if stage.name == "kernel")
    assert kernel.seconds == pytest.approx(sum(launches))


@pytest.mark.usefixtures("alone")
def test_copies_take_no_longer_than_bare_ones(gpu: CudaBackend) -> None:
    """4096² from and to pageable memory, new pages included; interleaved, medians."""
    pixels = noise(4096, 4096).pixels
    (card,) = gpu._open()
    address = card.call(card.cuda.mem_alloc, pixels.nbytes)

    def bare() -> float:
        target = np.empty_like(pixels)
        start = time.perf_counter()
        card.cuda.memcpy_htod(int(address), pixels)
        card.cuda.memcpy_dtoh(target, int(address))
        return time.perf_counter() - start

    ours, theirs = [], []
    for _ in range(15):
        theirs.append(card.call(bare))
        result = run(gpu, Image.from_array(pixels))
        ours.append(sum(s.seconds for s in result.stages if s.name in ("upload", "download")))
    card.call(address.free)
    assert statistics.median(ours) < 1.3 * statistics.median(theirs)


# Memory -------------------------------------------------------------------------------


def test_the_image_stays_on_the_card(gpu: CudaBackend) -> None:
    image = noise(300, 200)
    assert "upload" in stage_names(run(gpu, image))
    assert "upload" not in stage_names(run(gpu, image, "sobel"))
    assert "upload" not in stage_names(run(gpu, replace(image, title="other name")))
    assert "upload" in stage_names(run(gpu, noise(300, 200)))


@pytest.mark.usefixtures("alone")
def test_the_image_goes_with_its_owner(gpu: CudaBackend) -> None:
    run(gpu, noise(8, 8))
    before = free_memory(gpu)
    image = noise(8192, 8192)
    run(gpu, image)
    assert free_memory(gpu) <= before - image.pixels.nbytes + (4 << 20)
    del image
    gc.collect()
    run(gpu, noise(8, 8))
    assert free_memory(gpu) >= before


@pytest.mark.usefixtures("alone")
def test_two_hundred_images_leave_nothing_behind(gpu: CudaBackend) -> None:
    def cycle(number: int) -> None:
        image = noise(1024 + number % 3, 1024, 3, seed=number)
        for filter_id in ("mean", "median", "sobel"):
            for level in ("global", "shared", "texture"):
                run(gpu, image, filter_id, level=level)

    def collect() -> None:
        gc.collect()
        run(gpu, noise(8, 8))  # frees the copies of what is gone

    for number in range(5):
        cycle(number)
    collect()
    device = free_memory(gpu)
    host = _resident_bytes()
    for number in range(200):
        cycle(number)
        if number % 20 == 19:  # in tests the collector does not run by itself
            collect()
    # The driver keeps up to some tens of MiB of pieces. One buffer left behind by each cycle, of
    # 3 MiB, would be 600 MiB.
    assert free_memory(gpu) >= device - (128 << 20)
    assert _resident_bytes() - host < 32 << 20


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_failed_allocation_leads_to_strips(
    gpu: CudaBackend, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    image = noise(400, 300)
    wanted = run(gpu, image).image.pixels
    allocate, failed = GpuContext.allocate, 0

    def scarce(self: GpuContext, size: int, keep: Any = None) -> Any:
        nonlocal failed
        if size > 50_000 and failed < times:
            failed += 1
            raise self.cuda.MemoryError("injected")
        return allocate(self, size, keep)

    monkeypatch.setattr(GpuContext, "allocate", scarce)
    result = run(gpu, noise(400, 300))
    assert failed
    assert "strips" in result.notices[-1]
    np.testing.assert_array_equal(result.image.pixels, wanted)


@pytest.mark.usefixtures("alone")
def test_without_memory_it_says_so_and_works_again(
    gpu: CudaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(gpu, noise(400, 300))  # so that its kernel is loaded
    run(gpu, noise(40, 30))
    before = free_memory(gpu)
    with monkeypatch.context() as patch:

        def nothing(self: GpuContext, size: int, keep: Any = None) -> Any:
            raise self.cuda.MemoryError("injected")

        patch.setattr(GpuContext, "allocate", nothing)
        with pytest.raises(OutOfMemory, match="too little free memory"):
            run(gpu, noise(400, 300))
    assert free_memory(gpu) >= before
    run(gpu, noise(400, 300))


def test_a_limit_below_one_row(gpu: CudaBackend) -> None:
    gpu.memory_limit = 1000
    with pytest.raises(OutOfMemory, match="too little free memory"):
        run(gpu, noise(400, 3000))


@pytest.mark.usefixtures("alone")
def test_a_full_card_gives_up_other_images_first(gpu: CudaBackend) -> None:
    """Images that stayed on the card do not count as taken."""
    kept = [noise(8192, 8192, seed=seed) for seed in range(2)]
    for image in kept:
        run(gpu, image)
    (card,) = gpu._open()
    hogs = []  # the first takes page tables too, out of the remaining memory
    for left in (512 << 20, 96 << 20):
        hogs.append(card.call(card.cuda.mem_alloc, free_memory(gpu) - left))
    try:
        result = run(gpu, noise(8192, 8192, seed=2))
        assert not result.notices
    finally:
        for hog in hogs:
            card.call(hog.free)


# Cancelling, failures -----------------------------------------------------------------


def test_cancel_between_launches(gpu: CudaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each launch is short; see `test_no_launch_is_long`."""
    token = CancelToken()
    launches: list[bool] = []

    def note(self: device_run.Pacer, units: int, seconds: float) -> None:
        launches.append(token.cancelled)

    def progress(stage: str, fraction: float) -> None:
        if stage == "kernel":
            token.cancel()

    monkeypatch.setattr(device_run.Pacer, "learn", note)
    request = Request.create(
        noise(4096, 4096), "median", {"size": 9}, device=Device.GPU, level="single-block"
    )
    with pytest.raises(Cancelled):
        execute(request, {"gpu": gpu, "cpu": CpuBackend()}, token, progress)
    assert launches == [False], "none begins after the first report"
    run(gpu, noise(40, 30))


def test_a_compile_error_shows_the_log(
    fresh_gpu: CudaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = sources.read_source
    with monkeypatch.context() as patch:
        patch.setattr(executor, "read_source", lambda name: read(name).replace("Sum s", "Summe s"))
        with pytest.raises(CompileError, match=r"mean\.cu\(\d+\).*Summe") as caught:
            run(fresh_gpu, noise(8, 8), level="global")
        assert "Summe s" in caught.value.log
    run(fresh_gpu, noise(8, 8))


def test_a_choice_of_the_gpu_never_falls_back(
    fresh_gpu: CudaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: GpuContext, ordinal: int) -> None:
        raise DeviceUnavailable("The GPU is on fire.")

    monkeypatch.setattr(GpuContext, "__init__", broken)
    cpu = CpuBackend()
    request = Request.create(noise(8, 8), "mean", device=Device.GPU)
    try:
        with pytest.raises(DeviceUnavailable, match="on fire"):
            execute(request, {"gpu": fresh_gpu, "cpu": cpu})
    finally:
        cpu.close()


def test_a_device_that_is_not_there() -> None:
    backend = CudaBackend(ordinals=[99], compiler=Nvrtc())
    with pytest.raises(DeviceUnavailable, match="99"):
        run(backend, noise(8, 8))
    backend.close()


def test_nvcc_and_nvrtc_compute_the_same(
    gpu: CudaBackend, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvcc = Nvcc.find()
    if nvcc is None:
        pytest.skip("there is no nvcc")
    other = CudaBackend()
    monkeypatch.setattr(CudaBackend, "_cache", CubinCache(nvcc, tmp_path))
    try:
        there = run(other, noise(300, 200), "median")
    finally:
        other.close()
    monkeypatch.undo()
    here = run(gpu, noise(300, 200), "median")
    np.testing.assert_array_equal(there.image.pixels, here.image.pixels)
    for result, pattern in ((there, r"nvcc [\d.]+ through PyCUDA"), (here, r"NVRTC [\d.]+")):
        assert result.launch is not None
        assert re.fullmatch(pattern, result.launch.compiler)
        assert result.launch.resources is not None
        assert result.launch.resources.registers > 0


def test_an_error_of_nvcc_through_pycuda_shows_the_log(tmp_path: Any) -> None:
    nvcc = Nvcc.find()
    if nvcc is None:
        pytest.skip("there is no nvcc")
    with pytest.raises(CompileError, match=r"mean\.cu\(\d+\).*Summe"):
        nvcc.compile("mean", sources.read_source("mean").replace("Sum s", "Summe s"), "sm_90", {})


@pytest.mark.parametrize("block", [(8, 8), (16, 16), (32, 32), (256, 1), (14, 18), (1, 64)])
@pytest.mark.parametrize("filter_id", ["mask", "mean", "median", "sobel"])
def test_blocks_of_any_size_compute_the_same(
    gpu: CudaBackend, filter_id: str, block: tuple[int, int]
) -> None:
    image = noise(130, 201, 3)
    spec = filters.get(filter_id)
    wanted = run(gpu, image, filter_id).image.pixels
    for level in spec.levels("gpu"):
        if not takes_block(spec, level.id):
            continue
        result = run(gpu, image, filter_id, level=level.id, block=block)
        assert result.launch is not None
        assert result.launch.block == block
        np.testing.assert_array_equal(result.image.pixels, wanted, level.id)


def test_a_block_that_needs_too_much_is_one_clear_error(gpu: CudaBackend) -> None:
    """And the card is as good as before."""
    options: dict[str, Any] = {"level": "shared", "block": (32, 32)}
    image = Image.from_array(np.ones((200, 200, 4), np.float32))
    with pytest.raises(DeviceUnavailable, match="KiB of shared memory a block") as caught:
        run(gpu, image, "mean", parameters={"size": 99}, **options)
    assert caught.value.hint.startswith("Choose a smaller block")
    run(gpu, noise(40, 30), **options)
