"""Kernels of a slab are queued behind those of the one before: the card need not wait."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernelscope.backends.cuda.device_run import LAUNCH_SECONDS
from kernelscope.backends.cuda.executor import StepLaunch
from kernelscope.base.errors import Cancelled
from tests.backends.fake_card import Error, FakeStaging
from tests.backends.test_slabs import wait_until
from tests.backends.weighted_rows import Session, WeightedRows, expected, picture

SHAPE = (48, 5, 3)


@pytest.fixture
def session(rows_of_a_slab: Callable[[int], None]) -> Session:
    """Return a card with room for slabs of four rows: twelve, of which the first is a pilot."""
    rows_of_a_slab(4)
    return Session(WeightedRows(SHAPE, pace=5e-3), room=0.6)


def filtered(session: Session, **options: Any) -> None:
    source = picture(SHAPE)
    np.testing.assert_array_equal(
        session.filter(source, **options), expected(rows_of(session), source)
    )
    session.assert_nothing_leaked()


def rows_of(session: Session) -> WeightedRows:
    (rows,) = session.filters
    assert isinstance(rows, WeightedRows)
    return rows


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by a word whenever launches are queued or waited for."""
    found: list[str] = []
    for name in ("queue", "read"):
        method = getattr(StepLaunch, name)

        def noted(self: StepLaunch, *earlier: float, name: str = name, method: Any = method) -> Any:
            found.append(name)
            return method(self, *earlier)

        monkeypatch.setattr(StepLaunch, name, noted)
    return found


def test_a_slab_is_queued_before_the_one_ahead_is_waited_for(
    session: Session, seen: list[str]
) -> None:
    filtered(session)
    assert seen == ["queue", *["queue", "read"] * (len(seen) // 2 - 1), "read"]
    assert len(seen) > 12


@pytest.mark.parametrize("options", [{"repeat": 2}, {"cold": True}])
def test_measured_launches_are_waited_for_one_by_one(
    session: Session, seen: list[str], options: dict[str, Any]
) -> None:
    filtered(session, **options)
    assert not seen


def test_kernels_of_a_card_follow_each_other_on_the_time_line(session: Session) -> None:
    """The card's time is made up, and longer than the host's: most begin where one ended."""
    filtered(session)
    (kernels,) = (stage for stage in session.stages if stage.name == "kernel")
    queued = kernels.parts[2:]
    assert len(queued) > 6
    for one, other in itertools.pairwise(queued):
        assert other.start > one.start + one.seconds - 1e-6


def test_a_result_goes_down_while_the_next_source_is_late(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploads, downloads = [0], [0]
    upload, download = FakeStaging.upload, FakeStaging.download

    def late(self: FakeStaging, *arguments: Any) -> None:
        uploads[0] += 1
        before = uploads[0] - 1

        def the_one_before_is_coming() -> bool:
            session.card.stream.synchronize()  # a real card goes on by itself
            return downloads[0] >= before

        wait_until(the_one_before_is_coming)
        upload(self, *arguments)

    def counted(self: FakeStaging, *arguments: Any) -> None:
        downloads[0] += 1
        download(self, *arguments)

    monkeypatch.setattr(FakeStaging, "upload", late)
    monkeypatch.setattr(FakeStaging, "download", counted)
    filtered(session)
    assert uploads == downloads
    assert uploads[0] > 6


def test_a_slab_that_would_take_too_long_is_cut(
    rows_of_a_slab: Callable[[int], None], seen: list[str]
) -> None:
    rows_of_a_slab(6)
    session = Session(WeightedRows(SHAPE, pace=LAUNCH_SECONDS / 4), room=0.6)
    pieces: list[float] = []
    kernels = session.card.cuda.modules[rows_of(session).step.cubins[0].code]
    add = kernels["add"]

    def timed(*arguments: int) -> float:
        pieces.append(add(*arguments))
        return pieces[-1]

    kernels["add"] = timed
    filtered(session)
    assert not seen
    assert max(pieces[4:]) <= LAUNCH_SECONDS, "after the first slab the pace is known"


def test_queued_slabs_teach_the_pace(session: Session, seen: list[str]) -> None:
    """A card that becomes slower, by others that use it, gets its kernels in pieces again."""
    kernels = session.card.cuda.modules[rows_of(session).step.cubins[0].code]
    add, calls = kernels["add"], itertools.count()

    def slower(*arguments: int) -> float:
        return add(*arguments) * (1 if next(calls) < 6 else 20)

    kernels["add"] = slower
    filtered(session)
    assert 0 < seen.count("queue") < 10, "of twelve"
    seen.clear()
    filtered(session)
    assert not seen, "the device remembers the pace"


def test_cancelling_queues_no_more(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    queue, queued = StepLaunch.queue, list[StepLaunch]()

    def cancel_after_two(self: StepLaunch) -> None:
        if len(queued) == 2:
            session.token.cancel()
        queue(self)
        queued.append(self)

    monkeypatch.setattr(StepLaunch, "queue", cancel_after_two)
    with pytest.raises(Cancelled):
        session.filter(picture(SHAPE))
    assert len(queued) == 2
    session.assert_nothing_leaked()


@pytest.mark.parametrize("late", [False, True])
def test_the_host_is_in_no_time_of_kernels_that_were_queued_in_time(
    session: Session, seen: list[str], late: bool
) -> None:
    session.filter(picture(SHAPE))
    session.card.cuda.late = late  # the card began before the launch was there
    session.filter(picture(SHAPE))
    (kernels,) = (stage for stage in session.stages if stage.name == "kernel")
    assert seen
    assert (kernels.excess > 0) == late
    assert (session.runs[0].excess > 0) == late


@pytest.mark.parametrize("fails", [False, True])
def test_a_result_gets_its_pages_while_its_kernels_are_queued(
    session: Session, seen: list[str], fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pages:
        def stop(self) -> None:
            seen.append("stop")

        def abandon(self) -> None:
            seen.append("abandon")

    def give_pages(self: FakeStaging, target: Any) -> Pages:
        seen.append("give")
        if fails and seen.count("give") == 5:
            raise Error("no memory left")
        return Pages()

    monkeypatch.setattr(FakeStaging, "give_pages", give_pages)
    if fails:
        with pytest.raises(Error, match="left"):
            session.filter(picture(SHAPE))
        assert seen[-1] == "abandon"
        session.assert_nothing_leaked()
        return
    filtered(session)
    first = seen.index("queue")
    assert seen[first : first + 6] == ["queue", "give", "queue", "read", "stop", "give"]
    assert seen[-2:] == ["read", "stop"]
    assert "abandon" not in seen


def test_nothing_keeps_a_result_but_its_owner(session: Session) -> None:
    """Memory of large results would pile up until garbage is collected."""
    assert not gc.isenabled(), "the tests collect it themselves, between them"
    result = session.filter(picture(SHAPE))
    session.runs.clear()
    there = weakref.ref(result)
    del result
    assert there() is None


@pytest.mark.parametrize("refused", range(8))
def test_an_allocation_that_fails_once_with_a_known_pace(session: Session, refused: int) -> None:
    filtered(session)
    session.card.call(session.card.pool.release)
    session.card.cuda.refused = [session.card.cuda.allocations + refused]
    filtered(session)


def test_the_pace_of_the_last_queued_slab_is_remembered(session: Session, seen: list[str]) -> None:
    filtered(session)
    kernels = session.card.cuda.modules[rows_of(session).step.cubins[0].code]
    add, calls = kernels["add"], itertools.count(1)
    kernels["add"] = lambda *arguments: add(*arguments) * (20 if next(calls) == 12 else 1)
    seen.clear()
    filtered(session)
    assert seen.count("queue") == next(calls) - 1 == 12
    seen.clear()
    filtered(session)
    assert seen.count("queue") < 12, "the first one is cut"


def test_the_launch_stage_leaves_out_queued_kernels(seen: list[str]) -> None:
    """Whose time is made up, and longer than the host's: nothing is left."""
    session = Session(WeightedRows(SHAPE, pace=20e-3 / SHAPE[0]))
    for _ in range(2):
        filtered(session)
    assert seen == ["queue", "read"], "the second run, whose pace is known"
    (launch,) = (stage for stage in session.stages if stage.name == "launch")
    assert launch.seconds == 0
