"""Times in words."""

from __future__ import annotations

from kernelscope.base.durations import about, duration
from tests.pairs import together


@together(
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
    ],
)
def test_a_time_has_three_digits(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@together(
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
