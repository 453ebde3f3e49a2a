"""The time left, estimated from progress."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kernelscope.engine.timing import TimeLeft


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return a clock whose `now` the test sets, in seconds."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr("kernelscope.engine.timing.time.monotonic", lambda: clock.now)
    return clock


def test_a_stage_that_stands_still_has_no_estimate(clock: SimpleNamespace) -> None:
    left = TimeLeft()
    assert left.describe("compute", 0.25) == ""
    clock.now += 10
    assert left.describe("compute", 0.25) == "", "nothing was done since it began"
    assert left.describe("compute", 0.5) == ", 20 s left"


def test_long_waits_are_in_minutes(clock: SimpleNamespace) -> None:
    left = TimeLeft()
    left.describe("compute", 0.0)
    clock.now += 10
    assert left.describe("compute", 0.1) == ", 2 min left"
    assert left.describe("compute", 0.9999) == ", 1 s left", "never none while it goes on"
