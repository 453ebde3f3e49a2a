"""Short launches, which are queued and waited for together with the download."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kernelscope.backends.cuda import CudaBackend, executor
from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.device_run import Pacer, Piece
from kernelscope.base.errors import Cancelled, DeviceUnavailable
from kernelscope.engine.context import RunContext
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.images.image import Image
from kernelscope.schema.launch import Launch
from tests.backends import fake_card
from tests.backends.fake_card import CardFull, Driver, Error, FakeStream, installed
from tests.backends.specialisations import tuned_at_any_size
from tests.pairs import together

SIDE = 64


class Event(fake_card.Event):
    """Notices when it is recorded before the launch that it stood by was read."""

    made = waits = 0

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        Event.made += 1
        self._is_used = False

    def record(self, stream: FakeStream) -> None:
        assert not self._is_used, "used for two launches at a time"
        self._is_used = True
        super().record(stream)

    def synchronize(self) -> None:
        Event.waits += 1
        super().synchronize()

    def time_since(self, other: Any) -> float:
        self._is_used = other._is_used = False
        return super().time_since(other)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """A driver whose mean gives the image again."""
    driver = installed(monkeypatch, "A")
    monkeypatch.setattr(Event, "made", 0)
    monkeypatch.setattr(Event, "waits", 0)
    monkeypatch.setattr(GpuContext, "known_copy_rate", 1e12)
    monkeypatch.setattr(
        driver, "Event", lambda flags=0: fake_card.Event(driver) if flags else Event(driver)
    )

    def same(source: int, target: int, *rest: int) -> float:
        width, _, channels, _, start, stop, source_row, first, _ = rest
        sources = driver.rows_at(source, np.uint8, width * channels)
        targets = driver.rows_at(target, np.uint8, width * channels)
        targets[start - first : stop - first] = sources[start - source_row : stop - source_row]
        return 3e-6

    driver.modules[b"mean"] = {"mean_tuned": same}
    driver.modules[b"greyscale"] = {"greyscale_tuned": lambda *rest: 2e-6}
    return driver


@pytest.fixture(autouse=True)
def tuned_kernels() -> Iterator[None]:
    with tuned_at_any_size():
        yield


@pytest.fixture
def backend(driver: Driver) -> Iterator[CudaBackend]:
    backend = CudaBackend()
    yield backend
    backend.close()
    assert not driver.live


def picture(number: int, channels: tuple[int, ...] = ()) -> Image:
    random = np.random.default_rng(number)
    return Image.from_array(random.integers(0, 256, (SIDE, SIDE, *channels), np.uint8))


def run(backend: CudaBackend, source: Image, **options: Any) -> Result:
    return execute(
        Request.create(source, "mean", device=Device.GPU, level="tuned", **options),
        {"gpu": backend},
    )


def test_a_small_picture_is_waited_for_once(
    backend: CudaBackend, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(backend, picture(0))
    waits = []
    wait = FakeStream.synchronize
    monkeypatch.setattr(FakeStream, "synchronize", lambda stream: (waits.append(1), wait(stream)))
    before = Event.waits
    for number in range(1, 5):
        source = picture(number)
        result = run(backend, source)
        np.testing.assert_array_equal(result.image.pixels, source.pixels)
        (kernel,) = (stage for stage in result.stages if stage.name == "kernel")
        assert kernel.seconds == pytest.approx(3e-6)
        assert result.launch is not None
        assert result.launch.kernel == "mean_tuned"
    assert len(waits) == 4
    assert Event.waits == before


def test_events_are_used_again_but_not_at_a_time(backend: CudaBackend, driver: Driver) -> None:
    for number in range(5):
        result = run(backend, picture(number, (3,)), grey=True)
        kernels = [stage.seconds for stage in result.stages if stage.name == "kernel"]
        assert kernels == pytest.approx([2e-6, 3e-6])
    assert Event.made == 4  # two launches wait for the same download


def test_a_measurement_waits_for_each_launch(backend: CudaBackend, driver: Driver) -> None:
    run(backend, picture(0))
    run(backend, picture(1))
    before = Event.waits
    result = run(backend, picture(2), repeat=3)
    assert Event.waits >= before + 3
    assert not any(stage.is_upper_bound for stage in result.stages)


def test_a_lost_gpu_is_noticed_by_the_only_wait(
    backend: CudaBackend, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(backend, picture(0))

    def fail(*_: object) -> None:
        raise Error("an illegal memory access was encountered")

    monkeypatch.setattr(FakeStream, "synchronize", fail)
    monkeypatch.setattr(fake_card.Context, "synchronize", staticmethod(fail))
    with pytest.raises(DeviceUnavailable, match="stopped with an error: an illegal"):
        run(backend, picture(1))
    with pytest.raises(DeviceUnavailable, match="earlier"):
        run(backend, picture(2))
    driver.live.clear()  # as the context is, which took them along


def test_what_fails_after_queueing_leaves_nothing_behind(
    backend: CudaBackend, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fake card notices memory that is freed while it is used."""
    run(backend, picture(0, (3,)), grey=True)
    run(backend, picture(1, (3,)), grey=True)
    copy = driver.memcpy_dtoh_async

    def fail(*_: object) -> None:
        raise Error("no such luck")

    monkeypatch.setattr(driver, "memcpy_dtoh_async", fail)
    with pytest.raises(DeviceUnavailable, match="no such luck"):
        run(backend, picture(2, (3,)), grey=True)
    monkeypatch.setattr(driver, "memcpy_dtoh_async", copy)
    result = run(backend, picture(3, (3,)), grey=True)
    assert [stage.seconds for stage in result.stages if stage.name == "kernel"] == pytest.approx(
        [2e-6, 3e-6]
    )


def test_a_run_that_was_cancelled_launches_nothing(backend: CudaBackend, driver: Driver) -> None:
    for number in range(2):
        run(backend, picture(number))
    request = Request.create(picture(2), "mean", device=Device.GPU, level="tuned")
    (level,) = (each for each in backend.levels(request.step.filter) if each.id == "tuned")
    token = CancelToken()
    token.cancel()
    before = driver.calls.count("mean_tuned")
    with pytest.raises(Cancelled):
        backend.run(request, level, RunContext(token=token))
    assert driver.calls.count("mean_tuned") == before


def test_free_memory_is_asked_for_once(
    backend: CudaBackend, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    ask = driver.mem_get_info
    monkeypatch.setattr(driver, "mem_get_info", lambda: (asked.append(1), ask())[1])
    for number in range(3):
        run(backend, picture(number))
    first = len(asked)
    for number in range(3):
        run(backend, picture(number))
    assert len(asked) == first
    run(backend, picture(0), memory_limit=1 << 20)
    assert len(asked) == first + 1


def test_memory_that_is_gone_unasked_is_found_out(
    backend: CudaBackend, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program may have taken it: the picture is filtered in strips then."""
    run(backend, picture(0))
    run(backend, picture(1))
    (card,) = backend._devices
    card.call(card.resident.clear)
    card.call(card.pool.release)
    allocate, large = driver.mem_alloc, []

    def refuse(size: int) -> Any:
        if size >= SIDE * SIDE:
            large.append(size)
            raise CardFull
        return allocate(size)

    monkeypatch.setattr(card.pool, "_allocate", refuse)
    source = picture(2)
    result = run(backend, source)
    assert large
    np.testing.assert_array_equal(result.image.pixels, source.pixels)
    assert "strips" in result.notices[-1]


@together(
    ("operations", "rows", "steps", "at_once", "is_one"),
    [
        (10.0, 64, 0, None, True),
        (1e9, 64, 0, None, False),  # long
        (10.0, 64, 6, None, True),
        (10.0, 64, 6, 2, False),  # three pieces
        (0.0, 4 * 65_536, 0, None, False),  # more blocks than a grid has
    ],
)
def test_what_is_one_short_piece(
    operations: float, rows: int, steps: int, at_once: int | None, is_one: bool
) -> None:
    launch = Launch("k", {}, (32, 4), 1.0, operations, steps=steps, steps_at_once=at_once)
    pacer = Pacer(launch, operations)
    assert pacer.is_one_piece(rows, executor.SHORT_STEP_SECONDS) == is_one
    if is_one:
        assert list(pacer.pieces(0, rows)) == [Piece(0, rows, 0, max(steps, 1))]
    assert not pacer.is_one_piece(rows, 1e-12 * operations)
