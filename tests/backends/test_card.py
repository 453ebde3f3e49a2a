"""The device, its lanes and its staging buffers, over a driver that is made up."""

from __future__ import annotations

import itertools
import mmap
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.backends.cuda import memory
from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.memory import Staging
from kernelscope.backends.cuda.thread import OwnerThread
from kernelscope.base.errors import DeviceUnavailable
from tests.backends.fake_card import (
    CardFull,
    Driver,
    Error,
    FakeStaging,
    FakeStream,
    install,
)
from tests.pairs import in_turn

CHUNK = 128 << 10
"""A sixteenth of the usual one, for copies of a sixteenth."""

SIZES = [1, CHUNK, CHUNK + 1, 3 * CHUNK - 5, (memory.CHUNKS + 3) * CHUNK]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert memory.BUFFERED_BYTES < CHUNK < memory.CHUNK_BYTES
    monkeypatch.setattr(memory, "CHUNK_BYTES", CHUNK)
    monkeypatch.setattr(Staging, "piece_bytes", CHUNK)
    monkeypatch.setattr(memory._pieces, "__defaults__", (CHUNK,))


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    driver = Driver(1 << 30)
    install(driver, monkeypatch)
    return driver


@pytest.fixture
def device(driver: Driver) -> Iterator[GpuContext]:
    device = GpuContext(0)
    yield device
    device.close()
    assert not driver.attached
    assert not driver.live
    assert all(buffer.freed for buffer in driver.page_locked)


def noise(size: int) -> NDArray[np.uint8]:
    """Return bytes that repeat at a distance that no piece has."""
    return np.resize(np.random.default_rng(size).integers(0, 256, 1_000_003, np.uint8), size)


def there_and_back(device: GpuContext, staging: Staging, source: NDArray[Any]) -> NDArray[Any]:
    target = np.zeros_like(source)
    allocation = device.allocate(source.nbytes)
    try:
        staging.upload(source, int(allocation))
        with staging.giving_pages_to(target):
            pass
        staging.download(int(allocation), target)
    finally:
        device.free(allocation)
    return target


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_copies_arrive(device: GpuContext, size: int) -> None:
    source = noise(size)
    target = device.call(there_and_back, device, device.staging, source)
    np.testing.assert_array_equal(target, source)


@pytest.mark.slow
@pytest.mark.parametrize("page_locked", [True, False])
def test_several_arrays_arrive_together(
    device: GpuContext, page_locked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [noise(size) for size in (SIZES[-1], 9, SIZES[1], CHUNK + 1)]

    def copy() -> list[NDArray[Any]]:
        there = [device.allocate(source.nbytes) for source in sources]
        results = [np.zeros_like(source) for source in sources]
        device.staging.upload_all(list(zip(sources, map(int, there), strict=True)))
        for result, allocation in zip(results, there, strict=True):
            device.staging.download(int(allocation), result)
        device.free(*there)
        return results

    with monkeypatch.context() as patch:
        if not page_locked:
            patch.setattr(device.staging, "_memory", None)
        copied = device.call(copy)
    for source, result in zip(sources, copied, strict=True):
        np.testing.assert_array_equal(result, source)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cards", "size"),
    in_turn(
        (1, 2, 3, 4, 9),
        ((memory.CHUNKS + 7) * CHUNK, 7 * memory.CHUNKS * CHUNK // 2 + 5),
        every=2,
    ),
)
def test_no_buffer_is_filled_again_before_its_round_was_sent(
    device: GpuContext, driver: Driver, size: int, cards: int
) -> None:
    """Copiers that do something else at first keep the first round from ending before others."""
    copiers = [OwnerThread(f"made-up-copy-{number}") for number in range(6)]
    source, target = noise(size), np.zeros(size, np.uint8)

    def copy() -> None:
        staging = FakeStaging(driver, driver.new_stream(), copiers)
        staging.piece_bytes = memory.upload_piece_bytes(cards)
        allocation = device.allocate(size)
        staging.upload(source, int(allocation))
        staging.download(int(allocation), target)
        device.free(allocation)

    try:
        for copier in copiers[1:3]:
            copier.submit(time.sleep, 0.2)
        device.call(copy)
    finally:
        for copier in copiers:
            copier.end()
    np.testing.assert_array_equal(target, source)


@pytest.mark.slow
def test_an_upload_that_fails_leaves_the_buffers_to_the_next_one(
    device: GpuContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, calls = np.copyto, itertools.count()

    def failing(target: NDArray[Any], source: NDArray[Any]) -> None:
        if next(calls) == 3:
            raise MemoryError("no pages")
        copy(target, source)

    source = noise(SIZES[-1])
    with monkeypatch.context() as patch:
        patch.setattr(np, "copyto", failing)
        with pytest.raises(MemoryError, match="no pages"):
            device.call(there_and_back, device, device.staging, source)
    target = device.call(there_and_back, device, device.staging, source)
    np.testing.assert_array_equal(target, source)


@pytest.mark.slow
def test_a_download_returns_when_the_last_piece_is_there(
    device: GpuContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Helpers empty the buffers: where one is slow, the card has long been done."""
    copy = np.copyto

    def slowly(target: NDArray[Any], source: NDArray[Any]) -> None:
        time.sleep(0.05)
        copy(target, source)

    monkeypatch.setattr(np, "copyto", slowly)
    source = noise(SIZES[-1])
    target = device.call(there_and_back, device, device.staging, source)
    np.testing.assert_array_equal(target, source)


def test_the_copy_rate_is_that_of_copies_that_ended(
    device: GpuContext, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelscope.backends.cuda.card.COPY_PROBE_BYTES", 1000)
    copy = driver.memcpy_dtod_async

    def timed(target: int, source: int, size: int, stream: FakeStream) -> None:
        copy(target, source, size, stream)
        stream.add(lambda: setattr(driver, "clock", driver.clock + 1e-3))

    monkeypatch.setattr(driver, "memcpy_dtod_async", timed)
    assert device.call(device.copy_rate) == pytest.approx(2 * 1000 / 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES[1:])
def test_lanes_copy_beside_the_device(device: GpuContext, size: int) -> None:
    """Their threads have the context too; all three share the helpers."""
    device.call(device.open_lanes, 1)
    source, results = noise(size), []

    def copy(staging: Staging) -> None:
        results.append(there_and_back(device, staging, source))

    before = time.perf_counter()
    works = [lane.submit(copy) for lane in (device.uploads, device.downloads)]
    results.append(device.call(there_and_back, device, device.staging, source))
    for work in works:
        begun, seconds = work.result()
        assert before <= begun <= begun + seconds <= time.perf_counter()
    assert len(results) == 3
    for result in results:
        np.testing.assert_array_equal(result, source)


def test_more_cards_send_larger_pieces(device: GpuContext, monkeypatch: pytest.MonkeyPatch) -> None:
    size, sent = memory.CHUNKS * CHUNK, list[int]()
    upload = Staging._upload_pieces

    def noted(self: Staging, sources: Any) -> None:
        sent.append(self.piece_bytes)
        upload(self, sources)

    def copy(staging: Staging) -> None:
        there_and_back(device, staging, noise(size))

    monkeypatch.setattr(Staging, "_upload_pieces", noted)
    for cards in (1, 2, 4, 1):
        device.call(device.open_lanes, cards)
        device.uploads.submit(copy).result()
    device.call(there_and_back, device, device.staging, noise(size))
    assert sent == [CHUNK, 2 * CHUNK, 4 * CHUNK, CHUNK, CHUNK]


def test_lanes_open_once(device: GpuContext, driver: Driver) -> None:
    for _ in range(2):
        device.call(device.open_lanes, 1)
    assert len(driver.page_locked) == 3


def test_a_lane_that_cannot_open_is_tried_again(
    device: GpuContext, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise Error("no memory to lock")

    with monkeypatch.context() as patch:
        patch.setattr(driver, "pagelocked_empty", refuse)
        with pytest.raises(Error, match="lock"):
            device.call(device.open_lanes, 1)
    device.call(device.open_lanes, 1)
    assert len(driver.page_locked) == 3


@pytest.mark.slow
def test_pages_are_given_while_the_block_runs(device: GpuContext) -> None:
    """All of them, if there is time, and nothing but them; afterwards nobody writes any more."""
    target = np.full((memory.CHUNKS + 1) * CHUNK, 7, np.uint8)
    touched = np.zeros_like(target, dtype=bool)
    touched.reshape(-1, CHUNK)[:, :: mmap.PAGESIZE] = True

    def give() -> None:
        with device.staging.giving_pages_to(target):
            for copier in device._copiers:
                copier.call(lambda: None)

    device.call(give)
    np.testing.assert_array_equal(target, np.where(touched, 0, 7))


def test_nobody_gives_pages_after_a_block_that_failed(device: GpuContext) -> None:
    """Another attempt writes there by then, in other pieces and so on other threads."""
    writing, begun, ended = threading.Semaphore(0), [], []

    class Slow(np.ndarray[Any, Any]):
        def __setitem__(self, key: Any, value: Any) -> None:
            begun.append(key)
            writing.release()
            time.sleep(0.05)
            super().__setitem__(key, value)
            ended.append(key)

    target = np.zeros(len(device._copiers) * CHUNK + 1, np.uint8).view(Slow)

    def fail() -> None:
        with device.staging.giving_pages_to(target):
            for _ in device._copiers:
                writing.acquire()
            raise Error("out of memory")

    with pytest.raises(Error):
        device.call(fail)
    assert len(begun) == len(ended) >= len(device._copiers)


def test_small_arrays_are_left_alone(device: GpuContext) -> None:
    """Their download goes into them without a helper, who might write over it."""
    target = np.full(CHUNK, 7, np.uint8)

    def give() -> None:
        with device.staging.giving_pages_to(target):
            for copier in device._copiers:
                copier.call(lambda: None)

    device.call(give)
    assert (target == 7).all()


def test_a_device_that_does_not_open_leaves_no_thread(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise Error("out of memory")

    before = threading.active_count()
    monkeypatch.setattr(driver, "pagelocked_empty", refuse)
    with pytest.raises(DeviceUnavailable, match="GPU 3 could not be opened"):
        GpuContext(3)
    assert not driver.attached
    assert threading.active_count() == before


def test_a_lost_device_ends_its_threads_and_frees_nothing(driver: Driver) -> None:
    device = GpuContext(0)
    device.call(device.open_lanes, 1)
    device.lost = True
    device.close()
    assert not driver.attached
    assert not any(buffer.freed for buffer in driver.page_locked)


def test_without_page_locked_memory_the_driver_copies(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*arguments: Any) -> Any:
        raise CardFull

    monkeypatch.setattr(driver, "pagelocked_empty", refuse)
    device, source = GpuContext(0), noise(3 * CHUNK + 7)
    try:
        result = device.call(there_and_back, device, device.staging, source)
        np.testing.assert_array_equal(result, source)
        assert driver.calls == ["upload", "download"]
    finally:
        device.close()
    assert "page-locked memory ran out" in caplog.text
