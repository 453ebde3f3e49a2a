"""Kernels of a slab are queued behind those of the one before: the card need not wait."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernelscope.backends.cuda.executor import Work
from tests.backends.fake_card import FakeStaging
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
        method = getattr(Work, name)

        def noted(self: Work, *earlier: float, _name: str = name, _method: Any = method) -> Any:
            found.append(_name)
            return _method(self, *earlier)

        monkeypatch.setattr(Work, name, noted)
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
