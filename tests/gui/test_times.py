"""Times in words; when a speed-up is sure, and when it may be chance."""

from __future__ import annotations

import pytest

from kernelscope.gui.model.times import EMULATED, SpeedUp, Spread, about, duration


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


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1234.4, "1,234 s"),
        (15.93, "15.9 s"),
        (0.9996, "1.00 s"),
        (0.2099, "210 ms"),
        (0.01, "10.0 ms"),
        (0.0009996, "1.00 ms"),
        (0.0006049, "605 µs"),
        (2.34e-5, "23.4 µs"),
        (1.56e-7, "0.156 µs"),
        (0.0, "0 s"),
        (None, EMULATED),
    ],
)
def test_a_time_has_three_digits(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (7000.0, "1.9 h"),
        (170.0, "3 min"),
        (1.23, "1.2 s"),
        (0.0193, "20 ms"),
        (0.000297, "300 µs"),
        (float("inf"), ""),
    ],
)
def test_an_estimate_has_no_digit_that_is_not_known(seconds: float, text: str) -> None:
    assert about(seconds) == text
