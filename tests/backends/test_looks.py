"""The card looks for floats that are not finite, slab by slab, and nobody waits for that."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernelscope.backends.cuda import slabs
from kernelscope.backends.cuda.reduction import FiniteLook
from tests.backends.fake_card import Driver, Error
from tests.backends.weighted_rows import Session, WeightedRows, expected, picture

SHAPE = (30, 3, 2, 2)


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small volumes are shared, and looked at on the card."""
    monkeypatch.setattr(slabs, "WORTH_SHARING", 0)
    monkeypatch.setattr(slabs, "LOOK_BYTES", 0)


def session_on(cards: int, rows: WeightedRows) -> Session:
    session = Session(rows, room=20, cards=cards)
    for card in session.cards:
        card.cuda.modules[b"largest"] = {"largest": functools.partial(largest, card.cuda)}
    return session


def largest(memory: Driver, source: int, target: int, samples: int) -> float:
    """Stands in for the kernel that finds the bits of the largest magnitude."""
    bits = memory.bytes_at(source, 4 * samples).view(np.uint32)
    found = memory.bytes_at(target).view(np.uint32)
    found[:] = [part.max() for part in np.array_split(bits, len(found))]
    return 1e-3


@pytest.mark.parametrize("cards", [1, 2])
@pytest.mark.parametrize("odd_one", [None, 0, 13, 29])
def test_an_odd_one_in_any_slab_is_found(
    cards: int, odd_one: int | None, rows_of_a_slab: Callable[[int], None]
) -> None:
    rows_of_a_slab(4)
    rows = WeightedRows(SHAPE, radius=0)
    session, source = session_on(cards, rows), picture(SHAPE)
    if odd_one is not None:
        voxels = source.samples[1]
        voxels.setflags(write=True)  # a scan has none, a result may
        voxels[odd_one, 2, 1] = np.inf
    np.testing.assert_array_equal(session.filter(source), expected(rows, source))
    assert len(session.runs) == cards
    assert all(run.is_finite for run in session.runs) is (odd_one is None)
    session.assert_nothing_leaked()


def test_without_room_to_look_nothing_is_claimed(
    rows_of_a_slab: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_of_a_slab(10)
    rows, source = WeightedRows(SHAPE), picture(SHAPE)
    session = session_on(1, rows)
    pool = session.card.pool
    take, looks = pool.take, []

    def refuse_the_second(size: int) -> Any:
        if size <= 4 * 16:  # a number of each block
            looks.append(size)
            if len(looks) == 2:
                raise session.card.cuda.MemoryError("full")
        return take(size)

    monkeypatch.setattr(pool, "take", refuse_the_second)
    np.testing.assert_array_equal(session.filter(source), expected(rows, source))
    assert len(looks) == 3
    assert not session.runs[0].is_finite
    session.assert_nothing_leaked()


def test_a_look_is_over_before_its_memory_is_freed(
    rows_of_a_slab: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something fails while the card looks at the first slab."""
    rows_of_a_slab(10)
    session = session_on(1, WeightedRows(SHAPE))
    queue = FiniteLook.queue

    def queue_and_fail(self: Any, *arguments: int) -> None:
        queue(self, *arguments)
        raise Error("the card is on fire")

    monkeypatch.setattr(FiniteLook, "queue", queue_and_fail)
    with pytest.raises(Error, match="fire"):
        session.filter(picture(SHAPE))
    session.assert_nothing_leaked()


def test_small_results_are_left_to_the_host(
    rows_of_a_slab: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slabs, "LOOK_BYTES", 1 << 20)
    rows_of_a_slab(10)
    session = Session(rows := WeightedRows(SHAPE), room=20)  # whose card has no such kernel
    np.testing.assert_array_equal(
        session.filter(picture(SHAPE)), rows.expected(picture(SHAPE).planes)
    )
    assert not session.runs[0].is_finite
