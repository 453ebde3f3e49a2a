"""Sums of squares on the card, and images there that follow those on the host."""

from __future__ import annotations

import gc
from typing import Any, cast

import numpy as np
import pytest

from kernelscope.backends.cuda.memory import Resident
from kernelscope.backends.cuda.reduction import is_finite, mean_squared_error
from tests.backends.fake_card import FakeCard, FakeCubins

pytestmark = pytest.mark.slow


class Allocation:
    """Notes whether it was freed, and that at most once."""

    def __init__(self) -> None:
        self.freed = False

    def free(self) -> None:
        assert not self.freed
        self.freed = True


@pytest.fixture
def resident() -> Resident:
    return Resident()


def test_a_copy_follows_its_new_name(resident: Resident) -> None:
    allocation, pixels = Allocation(), np.zeros(10, np.uint8)
    resident.put(pixels, allocation)
    view = pixels.view()
    resident.rename(pixels, view)
    assert resident.get(pixels) is None
    assert resident.get(view) is allocation
    assert resident.size == 10
    del pixels
    gc.collect()
    assert resident.get(view) is allocation
    del view
    gc.collect()
    resident.get(np.zeros(1))
    assert allocation.freed
    assert resident.size == 0


def test_a_copy_without_a_new_name_is_freed(resident: Resident) -> None:
    allocation, pixels = Allocation(), np.zeros(10, np.uint8)
    resident.put(pixels, allocation)
    resident.rename(pixels, None)
    assert allocation.freed
    resident.rename(pixels, None)
    assert resident.size == 0


def test_only_copies_of_arrays_that_went_are_freed(resident: Resident) -> None:
    allocations, arrays = [Allocation() for _ in range(3)], [np.zeros(10) for _ in range(3)]
    for array, allocation in zip(arrays, allocations, strict=True):
        resident.put(array, allocation)
    assert not resident.has_dead
    del array, arrays[1]
    gc.collect()
    assert resident.has_dead
    resident.drop_dead()
    assert [each.freed for each in allocations] == [False, True, False]
    assert not resident.has_dead
    assert resident.evict(keep=arrays[0])  # the copy of an array that is still there
    del arrays[1]
    gc.collect()
    resident.drop_dead()
    assert [each.freed for each in allocations] == [False, True, True]
    assert resident.get(arrays[0]) is allocations[0]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_the_sums_of_all_blocks_are_waited_for(dtype: type) -> None:
    card = FakeCard(1 << 20)
    rng = np.random.default_rng(3)
    first, second = (rng.integers(0, 200, (30, 40, 1)).astype(dtype) for _ in range(2))

    def kernel(one: int, other: int, target: int, samples: int) -> float:
        memory = card.cuda
        pair = (memory.bytes_at(at, first.nbytes).view(dtype) for at in (one, other))
        difference = np.subtract(*(each.astype(np.float64) for each in pair))
        sums = memory.bytes_at(target).view(np.float64 if dtype is np.float32 else np.uint64)
        parts = np.array_split(difference**2, len(sums))
        sums[:] = [part.sum() for part in parts]
        return 1e-3

    def compute() -> float | None:
        for pixels in (first, second):
            allocation = card.cuda.mem_alloc(pixels.nbytes)
            card.staging.upload(pixels, int(allocation))
            card.resident.put(pixels, allocation)
        return mean_squared_error(card, cast(Any, FakeCubins()), first, second)

    card.cuda.modules[b"squared_error"] = {"squared_error": kernel}
    expected = np.mean((first.astype(float) - second.astype(float)) ** 2)
    assert card.call(compute) == pytest.approx(expected, rel=1e-12)
    card.call(card.resident.clear)
    card.call(card.pool.release)
    assert not card.cuda.live


@pytest.mark.parametrize(("odd_one", "finite"), [(1.0, True), (3e38, True), (np.inf, False)])
def test_a_card_says_whether_its_samples_are_finite(odd_one: float, finite: bool) -> None:
    card, cubins = FakeCard(1 << 20), cast(Any, FakeCubins())
    pixels = np.zeros((30, 40), np.float32)
    pixels[29, 39] = odd_one

    def kernel(source: int, target: int, samples: int) -> float:
        memory = card.cuda
        bits = memory.bytes_at(source, pixels.nbytes).view(np.uint32)
        found = memory.bytes_at(target).view(np.uint32)
        found[:] = [part.max() for part in np.array_split(bits[:samples], len(found))]
        return 1e-3

    def compute() -> bool | None:
        allocation = card.cuda.mem_alloc(pixels.nbytes)
        card.staging.upload(pixels, int(allocation))
        card.resident.put(pixels, allocation)
        return is_finite(card, cubins, pixels)

    card.cuda.modules[b"largest"] = {"largest": kernel}
    assert card.call(is_finite, card, cubins, pixels) is None, "it is not there"
    assert card.call(compute) is finite
    card.call(card.resident.clear)
    card.call(card.pool.release)
    assert not card.cuda.live
