"""Device memory that is kept for the next allocation of its size."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.backends.cuda.memory import Pool
from kernelscope.base.errors import Cancelled
from tests.backends.fake_card import CardFull, CheckedPool, Driver, FakeCard
from tests.backends.weighted_rows import ROOMY, Session, WeightedRows, expected, picture

SHAPE = (48, 5, 3)


@pytest.fixture
def driver() -> Driver:
    return Driver(10_000)


@pytest.fixture
def pool(driver: Driver) -> Pool:
    return CheckedPool(driver.mem_alloc, 3000)


def test_freed_memory_is_taken_again_for_its_size_only(pool: Pool, driver: Driver) -> None:
    first = pool.take(1000)
    address = int(first)
    first.free()
    assert pool.size == 1000
    assert driver.used == 1000
    others = [pool.take(size) for size in (999, 1001)]
    assert address not in map(int, others)
    again = pool.take(1000)
    assert int(again) == address
    assert pool.size == 0
    again.free()
    assert pool.size == 1000


def test_memory_in_use_is_never_handed_out_twice(pool: Pool) -> None:
    taken = [pool.take(100) for _ in range(5)]
    assert len({int(each) for each in taken}) == 5


def test_what_was_kept_longest_goes_where_there_is_too_much(pool: Pool, driver: Driver) -> None:
    taken = [pool.take(size) for size in (1000, 1500, 2000)]
    for each in taken:
        each.free()
    assert pool.size == 2000
    assert list(driver.live) == [int(taken[2])]
    pool.take(4000).free()
    assert pool.size == 0
    assert not driver.live


def test_release_gives_everything_back(pool: Pool, driver: Driver) -> None:
    assert not pool.release()
    kept = pool.take(100)
    pool.take(200).free()
    assert pool.release()
    assert pool.size == 0
    assert list(driver.live) == [int(kept)]


def test_under_pressure_a_card_gives_up_kept_memory_before_images() -> None:
    card = FakeCard(10_000)
    image = np.zeros(4000, np.uint8)
    card.resident.put(image, card.allocate(4000))
    card.allocate(5000).free()
    assert card.free_memory() == 6000, "what is kept is free"
    large = card.allocate(6000)
    assert card.resident.get(image) is not None
    card.free(large)
    larger = card.allocate(9000)
    assert card.resident.get(image) is None
    with pytest.raises(CardFull):
        card.allocate(2000)
    card.free(larger)


def test_later_runs_allocate_nothing() -> None:
    rows = WeightedRows(SHAPE)
    session = Session(rows, room=10)
    for number in range(4):
        source = picture(SHAPE, number)
        np.testing.assert_array_equal(session.filter(source), expected(rows, source))
        del source
        if number == 1:  # the images of the first are gone then
            allocations = session.card.cuda.allocations
    assert session.card.cuda.allocations == allocations
    session.assert_nothing_leaked()


def test_a_cancelled_run_leaves_its_memory_to_the_next() -> None:
    rows = WeightedRows(SHAPE)
    session, source = Session(rows, room=ROOMY), picture(SHAPE)
    session.filter(source)
    session.token.cancel()
    with pytest.raises(Cancelled):
        session.filter(picture(SHAPE, 1))
    assert session.card.resident.size + session.card.pool.size == session.card.cuda.used
    session.assert_nothing_leaked()
