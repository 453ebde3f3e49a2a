"""When a speed-up is sure, and when it may be chance."""

from __future__ import annotations

import pytest

from kernelscope.gui.model.times import EMULATED, RunSpeedUp, Spread, duration


@pytest.mark.parametrize(
    ("own", "why"),
    [
        ((1.0, 1.1, 1.2), ""),
        ((3.0, 3.1, 3.2), ""),
        ((1.7, 1.9, 2.0), "may be chance"),  # its slowest took as long as the quickest of the other
        ((2.2, 3.1, 3.2), "may be chance"),
        ((1.0, 1.1, 1.9), "Times vary"),
        ((1.0, 1.1), "measured less than 3 times"),
    ],
)
def test_why_a_speed_up_is_not_sure(own: tuple[float, ...], why: str) -> None:
    other = Spread((2.0, 2.1, 2.2))
    found = RunSpeedUp("total", "CPU serial", "CPU parallel", other, Spread(own))
    assert found.factor == 2.1 / Spread(own).median
    assert found.sure == (not why)
    assert str(found).startswith("≈ ") == bool(why)
    assert why in found.explain()


def test_an_emulated_run_has_no_time() -> None:
    assert (duration(None), duration(0.01)) == (EMULATED, "10.0 ms")
