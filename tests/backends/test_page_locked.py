"""Results on page-locked memory: when they have it, and what becomes of it."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.backends.cuda.page_locked import LEAST_BYTES, ResultMemory, is_page_locked

SHAPE = (700, 1000)
BYTES = np.dtype(np.uint8)
STEP = 2 << 20


class Registered:
    """Records what is registered with a driver that has room for `most` blocks."""

    def __init__(self, most: int = 100) -> None:
        self.most = most
        self.blocks: dict[int, int] = {}

    def lock(self, address: int, size: int) -> bool:
        if len(self.blocks) == self.most:
            return False
        self.blocks[address] = size
        return True

    def unlock(self, address: int) -> None:
        del self.blocks[address]


@pytest.fixture
def driver() -> Registered:
    return Registered()


@pytest.fixture
def results(driver: Registered) -> Iterator[ResultMemory]:
    memory = ResultMemory(driver.lock, driver.unlock, 3 * STEP)
    yield memory
    memory.close()


def missed_twice(results: ResultMemory, shape: tuple[int, ...] = SHAPE) -> None:
    for _ in range(2):
        results.take(shape, BYTES)
    results.grow()


def test_memory_is_locked_once_a_second_result_had_none(
    results: ResultMemory, driver: Registered
) -> None:
    first = results.take(SHAPE, BYTES)
    assert not is_page_locked(first)
    assert not results.is_wanting, "a single run does not pay for it"
    results.grow()
    assert not driver.blocks
    results.take(SHAPE, BYTES)
    assert results.is_wanting
    results.grow()
    assert list(driver.blocks.values()) == [STEP]
    assert not results.is_wanting
    third = results.take(SHAPE, BYTES)
    assert is_page_locked(third)
    assert third.shape == SHAPE
    assert third.dtype == BYTES
    assert third.flags.c_contiguous
    assert third.flags.writeable


def test_another_block_is_made_when_the_last_one_is_taken(
    results: ResultMemory, driver: Registered
) -> None:
    missed_twice(results)
    kept = []
    for count in (2, 3):
        kept.append(results.take(SHAPE, BYTES))
        assert is_page_locked(kept[-1]), "results that are kept have blocks too"
        assert results.is_wanting
        results.grow()
        assert len(driver.blocks) == count
    kept.append(results.take(SHAPE, BYTES))
    assert is_page_locked(kept[-1])
    assert not results.is_wanting, "one more would be too many"
    kept.clear()
    gc.collect()
    results.take(SHAPE, BYTES)
    assert not results.is_wanting, "others are free"


def test_results_take_blocks_while_another_one_is_made_and_cards_may_close(
    driver: Registered,
) -> None:
    seen = []

    def lock(address: int, size: int) -> bool:
        if driver.blocks and not seen:
            seen.append(is_page_locked(memory.take((1, *SHAPE), BYTES)))
            memory.close()
        return driver.lock(address, size)

    memory = ResultMemory(lock, driver.unlock, 3 * STEP)
    missed_twice(memory)
    memory.take(SHAPE, BYTES)  # gone at once: its block is free again
    memory.grow()
    assert seen == [True]
    assert not driver.blocks, "a block that is ready too late is given back"


def test_a_block_belongs_to_one_result_until_its_last_view_is_gone(results: ResultMemory) -> None:
    missed_twice(results)
    result = results.take(SHAPE, BYTES)
    result[:] = 7
    view = result.reshape(-1)[10:20].view()
    del result
    gc.collect()
    assert is_page_locked(view)
    other = results.take(SHAPE, BYTES)
    assert not is_page_locked(other), "the view still needs the block"
    other[:] = 9
    assert (view == 7).all()
    del view
    gc.collect()
    assert is_page_locked(results.take(SHAPE, BYTES))


def test_parts_of_a_result_are_page_locked_too(results: ResultMemory) -> None:
    missed_twice(results)
    result = results.take(SHAPE, BYTES)
    assert is_page_locked(result[:1])
    assert is_page_locked(result[-1:])
    beyond = np.ndarray((1,), np.uint8, buffer=memoryview(bytearray(1)))
    assert not is_page_locked(beyond)


def test_a_result_may_have_a_somewhat_larger_block_but_not_a_huge_one(
    results: ResultMemory, driver: Registered
) -> None:
    missed_twice(results, (3 * STEP - 5,))
    assert list(driver.blocks.values()) == [3 * STEP]
    assert not is_page_locked(results.take((STEP // 2,), BYTES))
    assert is_page_locked(results.take((2 * STEP,), BYTES))


def test_small_results_do_without(results: ResultMemory) -> None:
    missed_twice(results, (LEAST_BYTES - 1,))
    assert not is_page_locked(results.take((LEAST_BYTES - 1,), BYTES))
    missed_twice(results, (LEAST_BYTES,))
    assert is_page_locked(results.take((LEAST_BYTES,), BYTES))


def test_free_blocks_make_room_for_others_and_results_never_do(
    results: ResultMemory, driver: Registered
) -> None:
    missed_twice(results)
    result: NDArray[Any] | None = results.take(SHAPE, BYTES)
    missed_twice(results, (3 * STEP,))
    assert list(driver.blocks.values()) == [STEP, STEP], "with the result's it would be too much"
    del result
    gc.collect()
    missed_twice(results, (3 * STEP,))
    assert list(driver.blocks.values()) == [3 * STEP]


def test_what_the_driver_refuses_is_logged_once_and_not_asked_for_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    driver = Registered(most=1)
    results = ResultMemory(driver.lock, driver.unlock, 100 * STEP)
    missed_twice(results)
    kept = results.take(SHAPE, BYTES)
    with caplog.at_level(logging.WARNING):
        missed_twice(results)
        missed_twice(results)
    notice = (
        "Page-locked memory ran out at 2 MiB: further results of a GPU are copied through "
        "buffers, which takes longer."
    )
    assert [record.getMessage() for record in caplog.records] == [notice]
    assert results.pop_notice() == notice
    assert not results.pop_notice(), "once"
    assert is_page_locked(kept)
    results.close()


def test_results_outlive_the_card_and_everything_is_unlocked(
    results: ResultMemory, driver: Registered
) -> None:
    for _ in range(3):
        results.take(SHAPE, BYTES)
    missed_twice(results)
    result = results.take(SHAPE, BYTES)
    missed_twice(results)
    assert len(driver.blocks) == 2
    result[:] = 5
    results.close()
    assert not driver.blocks
    assert not is_page_locked(result), "copies have to go through buffers now"
    assert (result == 5).all()
    results.grow()
    assert not driver.blocks
    del result
    gc.collect()
    results.close()


def test_nothing_is_unlocked_in_a_lost_context(results: ResultMemory, driver: Registered) -> None:
    missed_twice(results)
    results.close(lost=True)
    assert len(driver.blocks) == 1
