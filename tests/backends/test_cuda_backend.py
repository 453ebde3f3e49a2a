"""The backend on two GPUs, over a driver that is made up."""

from __future__ import annotations

import itertools
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from kernelscope.backends.cuda import CudaBackend, components, device_run, info, slabs
from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.compiler import Cubin
from kernelscope.backends.cuda.kernel import LaunchNeeds
from kernelscope.backends.cuda.page_locked import is_page_locked
from kernelscope.base.errors import DeviceUnavailable, OutOfMemory
from kernelscope.engine import scaling
from kernelscope.engine.backend import Fact, FactGroup
from kernelscope.engine.context import RunContext
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.filters.shared.non_local import NORMAL_MEDIAN
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.library import arrays
from kernelscope.schema.borders import Border
from tests.backends.fake_card import (
    Allocation,
    CardFull,
    Driver,
    Error,
    FakeCubins,
    Function,
    installed,
)
from tests.backends.specialisations import tuned_at_any_size

SHAPE = (40, 6, 5)
GIVEN = {"sigma": (9.0,), "beta": 1.0, "search_radius": 2}


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """A driver whose kernel for volumes doubles voxels, and whose mean gives the image again."""
    driver = installed(monkeypatch, "A", "B")
    voxels = SHAPE[1] * SHAPE[2]

    def double(source: int, target: int, *rest: int) -> float:
        first, last, source_slice, output_slice = rest[8:12]
        sources = driver.rows_at(source, np.float32, voxels)
        targets = driver.rows_at(target, np.float32, voxels)
        for z in range(first, last):
            targets[z - output_slice] = 2 * sources[z - source_slice]
        return 1e-3 * (last - first)

    def same(source: int, target: int, *rest: int) -> float:
        driver.bytes_at(target)[:] = driver.bytes_at(source)
        return 1e-3

    monkeypatch.setattr(slabs, "WORTH_SHARING", 0)

    volumes = {"mri_nlm_scale": lambda *arguments: 1e-4, "mri_nlm_tuned": double}
    driver.modules |= {b"mri_nlm": volumes, b"mean": {"mean_tuned": same}}
    return driver


@pytest.fixture(autouse=True)
def tuned_kernels() -> Iterator[None]:
    """Have small pictures filtered by the kernels that the driver has."""
    with tuned_at_any_size():
        yield


@pytest.fixture
def backend(driver: Driver) -> Iterator[CudaBackend]:
    backend = CudaBackend([0, 2])
    yield backend
    backend.close()
    assert not driver.attached
    assert not driver.live


def scan() -> Scan:
    voxels = np.random.default_rng(0).integers(1, 100, SHAPE).astype(np.float32)
    return Scan((Volume.from_array(voxels),))


def run(backend: CudaBackend, source: Image | Scan, filter_id: str, **options: Any) -> Result:
    request = Request.create(source, filter_id, device=Device.GPU, **options)
    return execute(request, {"gpu": backend})


def nothing_is_used(backend: CudaBackend, driver: Driver) -> bool:
    """Return whether all memory of the cards is free, or kept for the next run."""
    for card in backend._devices:
        card.call(card.pool.release)
    return not driver.live


def test_two_gpus_share_a_volume(
    backend: CudaBackend, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The launches are made up, but this computer queues them in its own time, be it ever so busy.
    monkeypatch.setattr(device_run, "NOTABLE_EXCESS", float("inf"))
    source = scan()
    result = run(backend, source, "mri_nlm")
    np.testing.assert_array_equal(result.scan.planes, 2 * source.planes)
    assert result.notices[-1] == (
        "The volume was filtered in 1 slab on GPU 0 and 1 slab on GPU 2; "
        "transfers overlapped computing."
    )
    stages = {stage.name: stage for stage in result.stages}
    assert stages["kernel"].overlapped
    assert result.seconds == pytest.approx(
        sum(s.seconds for s in result.stages if s.name in ("prepare", "slabs", "convert"))
    )
    rates = {"effective rate", "arithmetic rate", "peak rate"}
    assert {metric.name for metric in result.metrics} == rates
    assert result.launch is not None
    assert nothing_is_used(backend, driver)


def test_little_work_is_left_to_one_gpu(
    backend: CudaBackend, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slabs, "WORTH_SHARING", 1e12)
    source = scan()
    result = run(backend, source, "mri_nlm")
    np.testing.assert_array_equal(result.scan.planes, 2 * source.planes)
    assert "slab" not in " ".join(result.notices)


def test_copies_count_as_work_to_share(
    backend: CudaBackend, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = scan()
    monkeypatch.setattr(
        slabs, "WORTH_SHARING", 30_000 * math.prod(source.shape)
    )  # 18,600 by itself
    assert "slab" in " ".join(run(backend, source, "mri_nlm").notices)


@pytest.mark.parametrize("most", [0, 1 << 30])
def test_several_volumes_come_and_go_one_by_one(
    most: int, backend: CudaBackend, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel sees their voxels side by side; the host never puts them together."""
    monkeypatch.setattr(components, "_MOST_AT_ONCE", most)
    shape = (4, SHAPE[1], SHAPE[2] // 2 * 2)
    random = np.random.default_rng(1)
    volumes = [random.integers(1, 99, shape).astype(name) for name in ("float32", "float32")]

    def double(source: int, target: int, *rest: int) -> float:
        sources, targets = (driver.bytes_at(at).view(np.float32) for at in (source, target))
        targets[:] = 2 * sources
        assert sources[:2].tolist() == [volume.flat[0] for volume in volumes]
        return 1e-3

    driver.modules[b"mri_nlm"]["mri_nlm_tuned"] = double
    source = Scan(tuple(map(Volume.from_array, volumes)))
    for _ in range(2):  # the second time it is on the card
        result = run(backend, source, "mri_nlm", gpus=1, parameters=GIVEN)
        for volume, filtered in zip(volumes, result.scan.volumes, strict=True):
            np.testing.assert_array_equal(filtered.voxels, 2 * volume)
            assert filtered.voxels.flags.c_contiguous
    assert "planes" not in vars(source)
    assert "upload" not in [stage.name for stage in result.stages]


def test_the_card_finds_the_details_from_which_noise_is_estimated(backend: CudaBackend) -> None:
    values = {"noise": "gaussian", "sigma_from": "volume", "beta": 1.0}
    for _ in range(2):
        result = run(backend, scan(), "mri_nlm", gpus=1, parameters=values)
        assert result.estimates["sigma"] == (2 / NORMAL_MEDIAN,), "from the middles 1 and 3"
    two = run(backend, scan(), "mri_nlm", gpus=2, parameters=values)
    assert two.estimates["sigma"] != result.estimates["sigma"], "the host looks at shared volumes"


def test_the_card_does_not_look_for_a_peak_that_is_known(
    backend: CudaBackend, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaling, "_peak", lambda volume: 1.0)  # the engine looks at floats
    values = {**GIVEN, "noise": "gaussian"}  # for another kind the engine looks at the sign
    for known in (False, True):
        volume = Volume.from_array(np.full(SHAPE, 50, np.float32))
        if known:
            assert volume.value_range == (50, 50)
        run(backend, Scan((volume,)), "mri_nlm", gpus=1, parameters=values)
        assert driver.calls.count("peak") == 1, "of the first volume"


def test_a_full_card_leaves_the_peak_to_the_host_and_keeps_the_volume(
    backend: CudaBackend, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaling, "_peak", lambda volume: 1.0)  # the engine looks at floats
    values = {**GIVEN, "noise": "gaussian"}  # for another kind the engine looks at the sign
    look, source, stayed = components._peak, scan(), list[bool]()

    def look_without_room(device: GpuContext, *arguments: Any) -> float:
        def refuse(size: int) -> Allocation:
            raise CardFull

        with monkeypatch.context() as patch:
            patch.setattr(device.pool, "_allocate", refuse)
            try:
                return look(device, *arguments)
            finally:
                stayed.append(device.resident.get(source.key) is not None)

    monkeypatch.setattr(components, "_peak", look_without_room)
    result = run(backend, source, "mri_nlm", gpus=1, parameters=values)
    np.testing.assert_array_equal(result.scan.planes, 2 * source.planes)
    assert stayed == [True]
    assert "peak" not in driver.calls


def test_one_of_two_gpus_may_do_it_alone(backend: CudaBackend, driver: Driver) -> None:
    source = scan()
    result = run(backend, source, "mri_nlm", gpus=1)
    np.testing.assert_array_equal(result.scan.planes, 2 * source.planes)
    assert "slabs" not in {stage.name for stage in result.stages}
    assert not any("slab" in notice for notice in result.notices)


def test_a_picture_stays_on_the_first(backend: CudaBackend, driver: Driver) -> None:
    image = Image.from_array(np.arange(64, dtype=np.uint8).reshape(8, 8))
    for _ in range(2):
        result = run(backend, image, "mean", level="tuned")
        np.testing.assert_array_equal(result.image.pixels, image.pixels)
    assert driver.calls.count("upload") == 1
    assert not result.notices


def test_memory_of_others_is_filtered_where_it_lies(backend: CudaBackend, driver: Driver) -> None:
    pixels = np.arange(64, dtype=np.float32).reshape(8, 8)
    owned = [driver.mem_alloc(pixels.nbytes) for _ in range(2)]
    source, target = map(int, owned)
    backend.store(pixels.T, source)
    stand_in = Image(np.broadcast_to(np.float32(0), pixels.shape))
    request = Request.create(stand_in, "mean", device=Device.GPU)
    before, stages = len(driver.live), list[str]()
    context = RunContext(progress=lambda stage, fraction: stages.append(stage))
    backend.run_at(request, backend.levels(request.step.filter)[-1], context, source, target)
    np.testing.assert_array_equal(backend.fetch(target, (8, 8), pixels.dtype), pixels.T)
    assert driver.calls.count("upload") == driver.calls.count("download") == 1
    assert stages == ["compile", "kernel"]
    assert len(driver.live) == before  # nothing of its own is left, and nothing of others freed
    for each in owned:
        each.free()


def test_memory_of_others_may_leave_too_little(backend: CudaBackend, driver: Driver) -> None:
    def full(*arguments: int) -> float:
        raise CardFull

    driver.modules[b"mean"] = {"mean_tuned": full}
    owned = [driver.mem_alloc(64) for _ in range(2)]
    request = Request.create(Image(np.zeros((8, 8), np.uint8)), "mean", device=Device.GPU)
    level = backend.levels(request.step.filter)[-1]
    with pytest.raises(OutOfMemory, match="copy it to the host first"):
        backend.run_at(request, level, RunContext(), *map(int, owned))
    for each in owned:
        each.free()


@pytest.mark.parametrize("limit", [None, 900])
def test_the_rim_is_kept_after_the_filter(
    backend: CudaBackend, driver: Driver, limit: int | None
) -> None:
    """In one piece and in strips; the kernel of the rim gets radius and channels as constants."""
    height, width, channels, radius = 40, 9, 2, 2

    def white(source: int, target: int, *geometry: int) -> float:
        driver.bytes_at(target)[:] = 255
        return 1e-3

    def keep(source: int, target: int, *geometry: int) -> float:
        start, stop, source_row, output_row = geometry[4:8]
        constants = [each.data[:8].view(np.int32).tolist() for each in driver.constants.values()]
        assert [radius, channels] in constants  # the other GPU's may not be there yet
        sources = driver.rows_at(source, np.uint8, width * channels)
        targets = driver.rows_at(target, np.uint8, width * channels)
        for y in range(start, stop):
            columns = np.tile(np.abs(np.arange(width) - width // 2) > width // 2 - radius, (2, 1)).T
            rim = columns | (y < radius) | (y >= height - radius)
            rows = y - output_row, y - source_row
            targets[rows[0]] = np.where(rim.reshape(-1), sources[rows[1]], targets[rows[0]])
        return 1e-4

    driver.modules |= {b"mean": {"mean_tuned": white}, b"rim": {"rim_keep": keep}}
    pixels = np.random.default_rng(0).integers(0, 255, (height, width, channels), np.uint8)
    pixels[:, :, -1] = 255  # averages are weighted by alpha
    result = run(
        backend,
        Image.from_array(pixels),
        "mean",
        parameters={"size": 5},
        border=Border.KEEP,
        level="tuned",
        memory_limit=limit,
    )
    assert bool(result.notices) == bool(limit)
    wanted = pixels.copy()
    wanted[2:-2, 2:-2, 0] = 255
    np.testing.assert_array_equal(result.image.pixels, wanted)
    if limit is None:
        (kernel,) = (stage.seconds for stage in result.stages if stage.name == "kernel")
        assert kernel == pytest.approx(1.1e-3), "the rim is part of it"
    assert result.launch is not None
    assert result.launch.kernel == "mean_tuned"


def test_an_error_on_one_gpu_is_told_and_both_work_again(
    backend: CudaBackend, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: int) -> float:
        if threading.current_thread().name == "kernelscope-gpu-2":
            raise Error("too many threads")
        return double(*arguments)

    kernels = driver.modules[b"mri_nlm"]
    double: Callable[..., float] = kernels["mri_nlm_tuned"]
    kernels["mri_nlm_tuned"] = fail
    with pytest.raises(DeviceUnavailable, match="cannot do this: too many threads"):
        run(backend, scan(), "mri_nlm")
    assert nothing_is_used(backend, driver)
    backend.close()  # and the modules with it
    kernels["mri_nlm_tuned"] = double
    run(backend, scan(), "mri_nlm")


def test_a_lost_gpu_ends_the_use_of_all(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> float:
        raise Error("an illegal memory access was encountered")

    backend = CudaBackend([0, 1])
    driver.modules[b"mri_nlm"]["mri_nlm_tuned"] = fail
    monkeypatch.setattr(type(driver).Context, "synchronize", staticmethod(fail))
    with pytest.raises(DeviceUnavailable, match="stopped with an error: an illegal") as caught:
        run(backend, scan(), "mri_nlm")
    assert "Restart" in str(caught.value)
    assert not driver.attached
    with pytest.raises(DeviceUnavailable, match="stopped with an error earlier"):
        run(backend, scan(), "mri_nlm")


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.skipif(sys.platform == "win32", reason="has no signals for threads")
def test_ctrl_c_stops_both_gpus(backend: CudaBackend, driver: Driver) -> None:
    """Whichever thread takes the signal."""
    launches = itertools.count(1)

    def slow(*arguments: int) -> float:
        time.sleep(1e-3)
        if next(launches) == 4:
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        return 1e-3

    driver.modules[b"mri_nlm"]["mri_nlm_tuned"] = slow
    repeat = 2000
    with pytest.raises(KeyboardInterrupt):
        run(backend, scan(), "mri_nlm", repeat=repeat)
    backend.close()
    assert next(launches) < repeat
    assert not driver.live


def test_what_launching_takes_is_told_of_every_slice(backend: CudaBackend, driver: Driver) -> None:
    def slow(source: int, target: int, *rest: int) -> float:
        time.sleep(4e-3)
        driver.bytes_at(target)[:] = driver.bytes_at(source)
        return 2e-3

    driver.modules[b"mean"]["mean_tuned"] = slow
    request = Request.create(scan(), "mean", axis=2, device=Device.GPU, level="tuned")
    stages = execute(request, {"gpu": backend}).stages
    launching, copying = (
        [stage.seconds for stage in stages if stage.name == name] for name in ("launch", "download")
    )
    assert len(launching) == SHAPE[2]
    # Short launches are waited for together with the download.
    assert min(map(sum, zip(launching, copying, strict=True))) >= 2e-3


def test_compiling_is_in_no_stage_that_is_counted(
    backend: CudaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    class Slow(FakeCubins):
        loaded: ClassVar[set[str]] = set()

        def get(self, filter_id: str, *specialisation: Any) -> Cubin:
            nonlocal now
            if filter_id not in self.loaded:
                now += 0.1
            self.loaded.add(filter_id)
            return super().get(filter_id, *specialisation)

    monkeypatch.setattr(CudaBackend, "_cache", Slow())
    monkeypatch.setattr("time.perf_counter", lambda: now)
    image = Image.from_array(np.arange(64, dtype=np.uint8).reshape(8, 8))
    result = run(backend, image, "mean", level="tuned")
    assert Slow.loaded == {"mean"}
    assert result.seconds < 0.1
    assert sum(stage.seconds for stage in result.stages if stage.name == "compile") >= 0.1
    result = run(backend, image, "mean", level="tuned", repeat=2)
    assert Slow.loaded == {"mean", "hold"}
    assert result.seconds < 0.1


def test_a_report_names_the_compiler_of_its_kernel(
    backend: CudaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Packaged(FakeCubins):
        def get(self, filter_id: str, *specialisation: Any) -> Cubin:
            return replace(super().get(filter_id, *specialisation), compiler="another 13.9")

    monkeypatch.setattr(CudaBackend, "_cache", Packaged())
    image = Image.from_array(np.arange(64, dtype=np.uint8).reshape(8, 8))
    launch = run(backend, image, "mean", level="tuned").launch
    assert launch is not None
    assert launch.compiler == "another 13.9"


def test_the_block_that_is_asked_for_is_launched(backend: CudaBackend, driver: Driver) -> None:
    driver.modules[b"mean"]["mean_shared"] = driver.modules[b"mean"]["mean_tuned"]
    image = Image.from_array(np.arange(64, dtype=np.uint8).reshape(8, 8))
    launch = run(backend, image, "mean", level="shared", block=(16, 2)).launch
    assert launch is not None
    assert (launch.block, launch.grid) == ((16, 2), (1, 4))
    assert launch.compiler == "made up 1.0"
    launch = run(backend, image, "mean", level="shared").launch
    assert launch is not None
    assert launch.block != (16, 2)


@pytest.mark.parametrize(
    ("most", "shared", "message"),
    [
        (640, 0, r"at level shared cannot run in blocks of 32×32: 1024 threads, each with 32 "),
        (1024, 240_000, r"needs 23\d KiB of shared memory a block; this GPU has 227 KiB"),
    ],
)
def test_a_block_that_does_not_fit_is_refused_before_anything_runs(
    backend: CudaBackend,
    driver: Driver,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    shared: int,
    message: str,
) -> None:
    driver.modules[b"mean"]["mean_shared"] = driver.modules[b"mean"]["mean_tuned"]
    monkeypatch.setattr(Function, "get_attribute", lambda self, attribute: most)
    monkeypatch.setattr(Function, "shared_size_bytes", shared)
    image = Image.from_array(np.arange(64, dtype=np.uint8).reshape(8, 8))
    with pytest.raises(DeviceUnavailable, match=message) as caught:
        run(backend, image, "mean", level="shared", block=(32, 32))
    assert caught.value.hint.startswith("Choose a smaller block")
    assert not driver.calls


def test_the_first_run_of_a_kernel_is_marked(backend: CudaBackend, driver: Driver) -> None:
    driver.modules[b"mean"]["mean_shared"] = driver.modules[b"mean"]["mean_tuned"]
    image = Image.from_array(np.arange(64, dtype=np.uint8).reshape(8, 8))
    first = [run(backend, image, "mean", level="tuned").first for _ in range(2)]
    assert first == [True, False]
    assert run(backend, scan(), "mri_nlm").first
    backend.close()  # and the modules with it
    assert run(backend, image, "mean", level="tuned").first


def test_facts_say_of_which_gpu_they_are(
    backend: CudaBackend, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def groups(cuda: Any, ordinal: int) -> Iterator[FactGroup]:
        yield FactGroup("Device", (Fact("Name", f"Card {ordinal}"),))

    monkeypatch.setattr(info, "device_groups", groups)
    monkeypatch.setattr(info, "software_group", lambda *_: FactGroup("Software", ()))
    monkeypatch.setattr(FakeCubins, "compiler", None, raising=False)
    monkeypatch.setattr(info, "theoretical_bandwidth", lambda *_: None)
    monkeypatch.setattr(info, "load", lambda address: (Fact("Power", address, "W"),))
    titles = [group.title for group in backend.facts()]
    assert titles == [
        "GPU 0: Device",
        "GPU 2: Device",
        "Software",
        "GPU 0: Measured",
        "GPU 2: Measured",
    ]
    assert [fact.name for fact in backend.load()] == ["GPU 0: Power", "GPU 2: Power"]


def test_a_plan_is_made_once_for_the_same_settings(
    backend: CudaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    cubins = CudaBackend._cache
    asked: list[str] = []
    get = FakeCubins.get

    def noted(self: FakeCubins, filter_id: str, *specialisation: Any) -> Cubin:
        asked.append(filter_id)
        return get(self, filter_id, *specialisation)

    monkeypatch.setattr(FakeCubins, "get", noted)
    assert isinstance(cubins, FakeCubins)
    image = Image.from_array(np.arange(600, dtype=np.uint8).reshape(20, 30))

    def run(size: int, border: Border = Border.REFLECT, width: int = 30) -> Result:
        part = Image.from_array(image.pixels[:, :width].copy())
        request = Request.create(
            part, "mean", {"size": size}, border=border, device=Device.GPU, level="tuned"
        )
        return execute(request, {"gpu": backend})

    first, again = run(3), run(3)
    assert asked.count("mean") == len(backend.ordinals)
    assert first.first
    assert not again.first, "its code was there"
    others: list[tuple[Any, ...]] = [(5,), (3, Border.WRAP), (3, Border.REFLECT, 28)]
    for number, settings in enumerate(others, start=2):
        other = run(*settings)
        assert asked.count("mean") == number * len(backend.ordinals)
        assert np.array_equal(other.image.pixels, image.pixels[:, : other.image.width])


def wait_for_blocks(backend: CudaBackend) -> None:
    """Wait until page-locked memory has been made, if a run asked for it."""
    card = backend._devices[0]
    card.call(lambda: None)
    if card._maker is not None:
        card._maker.call(lambda: None)


def test_results_have_page_locked_memory_from_the_third_on(
    backend: CudaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GpuContext, "_lock", lambda card, address, size: True)
    monkeypatch.setattr(GpuContext, "_unlock", lambda card, address: None)
    pixels = np.random.default_rng(0).integers(0, 255, (600, 700), np.uint8)
    kept = []
    for _ in range(4):
        request = Request.create(Image.from_array(pixels), "mean", device=Device.GPU, level="tuned")
        kept.append(execute(request, {"gpu": backend}).image.pixels)
        wait_for_blocks(backend)
    assert [is_page_locked(each) for each in kept] == [False, False, True, True]
    # Callers of the library write to theirs.
    for each in (kept[2], kept[3]):
        own = arrays.of_picture(Image.from_array(each))
        assert np.shares_memory(own, each)
        own[0, 0] ^= 1
        assert each[0, 0] == own[0, 0]
        own[0, 0] ^= 1
    assert all(np.array_equal(each, pixels) for each in kept)
    backend.close()
    assert np.array_equal(kept[2], pixels)


@pytest.mark.parametrize("limit", [None, 900])
def test_the_thread_of_a_single_gpu_does_all_of_a_run(
    backend: CudaBackend, driver: Driver, limit: int | None
) -> None:
    """In strips as well, whose copies have threads of their own."""
    image = Image.from_array(np.random.default_rng(0).integers(0, 255, (40, 18), np.uint8))
    names: set[str] = set()

    def same(source: int, target: int, *geometry: int) -> float:
        names.add(threading.current_thread().name)
        start, stop, source_row, output_row = geometry[4:8]
        sources, targets = (driver.rows_at(each, np.uint8, 18) for each in (source, target))
        targets[start - output_row : stop - output_row] = sources[
            start - source_row : stop - source_row
        ]
        return 1e-3

    driver.modules[b"mean"]["mean_tuned"] = same
    settings: dict[str, Any] = {"level": "tuned", "gpus": 1, "memory_limit": limit}
    result = run(backend, image, "mean", **settings)
    np.testing.assert_array_equal(result.image.pixels, image.pixels)
    assert bool(result.notices) == (limit is not None)
    assert names == {"kernelscope-gpu-0"}


@pytest.mark.parametrize("seconds", [1e-7, 1.0])
def test_a_kernel_that_may_have_waited_for_the_host_has_an_upper_bound(
    backend: CudaBackend, driver: Driver, seconds: float
) -> None:
    """Only runs that are measured hold the card."""
    image = Image.from_array(np.zeros((8, 8), np.uint8))
    driver.modules[b"mean"]["mean_tuned"] = lambda source, target, *rest: seconds
    driver.late = True  # the card gets to the launch before the host has queued all of it
    plain = run(backend, image, "mean", level="tuned", gpus=1)
    assert "hold" not in driver.calls
    (kernel,) = (stage for stage in plain.stages if stage.name == "kernel")
    rates = {metric.name for metric in plain.metrics}
    assert kernel.is_upper_bound == (seconds < 1e-3)
    assert ("effective rate" in rates) == (seconds > 1e-3)
    driver.late = False
    measured = run(backend, image, "mean", level="tuned", gpus=1, repeat=2)
    assert "hold" in driver.calls
    assert not any(stage.is_upper_bound for stage in measured.stages)


def test_page_locked_memory_that_runs_out_is_reported_in_the_next_run(
    backend: CudaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GpuContext, "_lock", lambda card, address, size: False)
    pixels = np.random.default_rng(0).integers(0, 255, (600, 700), np.uint8)
    notices = []
    for _ in range(4):
        result = run(backend, Image.from_array(pixels), "mean", level="tuned")
        assert np.array_equal(result.image.pixels, pixels)
        notices.append(result.notices)
        wait_for_blocks(backend)
    assert [bool(each) for each in notices] == [False, False, True, False]
    assert "Page-locked memory ran out at 0 MiB" in notices[2][0]


def test_launches_are_kept_with_plans_only(backend: CudaBackend) -> None:
    """A plan that is made for one run may hold a map as large as a volume."""
    image = Image.from_array(np.arange(64, dtype=np.uint8).reshape(8, 8))
    for _ in range(3):
        run(backend, image, "mean", level="tuned", gpus=1)
    card = backend._devices[0]

    def ready() -> list[LaunchNeeds]:
        return [thing for thing in card._kept.values() if isinstance(thing, LaunchNeeds)]

    (launch,) = ready()
    assert launch.step.is_kept
    other = replace(launch.step, is_kept=False)
    assert card.call(LaunchNeeds.of, other, 0, card).step is other
    assert ready() == [launch]


def test_plans_of_the_same_code_leave_each_other_their_memory(backend: CudaBackend) -> None:
    """Macros that a kernel does not look at give the same code, and so the same function."""
    image = Image.from_array(np.arange(64, dtype=np.uint8).reshape(8, 8))
    for _ in range(2):
        run(backend, image, "mean", level="tuned", gpus=1)
    card = backend._devices[0]
    step = next(thing.step for thing in card._kept.values() if isinstance(thing, LaunchNeeds))

    def ready(size: int) -> LaunchNeeds:
        (launch,) = step.plan.launches
        plan = replace(step.plan, launches=(replace(launch, shared_bytes=size),))
        return card.call(LaunchNeeds.of, replace(step, plan=plan, is_kept=False), 0, card)

    larger, smaller = ready(96 << 10), ready(90 << 10)
    for each in (larger, smaller):
        assert each.function.get_attribute("dynamic") == 96 << 10
