"""When a speed-up is sure, and when it may be chance."""

from __future__ import annotations

import pytest

from kernelscope.gui.model.times import EMULATED, SpeedUp, Spread, duration


@pytest.mark.parametrize(
    ("own", "sure"),
    [
        ((1.0, 1.1, 1.2), True),
        ((1.0, 1.1, 2.0), False),  # its slowest took as long as the quickest of the other
        ((1.0, 1.1, 2.1), False),
        ((3.0, 3.1, 3.2), True),
        ((2.2, 3.1, 3.2), False),
        ((1.0, 1.1), False),
    ],
)
def test_repeats_that_meet_are_not_sure(own: tuple[float, ...], sure: bool) -> None:
    other = Spread((2.0, 2.1, 2.2))
    found = SpeedUp("Total", "CPU serial", 2.0, other, Spread(own))
    assert found.sure is sure
    assert ("about" in str(found)) is not sure
    assert ("chance" in found.explain("CPU parallel")) is (not sure and len(own) > 2)


def test_an_emulated_run_has_no_time() -> None:
    assert (duration(None), duration(0.01)) == (EMULATED, "10.0 ms")
