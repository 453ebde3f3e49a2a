"""Medians, speed-ups, rates and the roofline, on rows that are made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from kernelscope.bench.rows import Difference, Row
from kernelscope.bench.rules import REPEAT
from kernelscope.bench.statistics import (
    Interval,
    Ratio,
    SpeedUp,
    find_baseline,
    full_time,
    median_interval,
    megapixels_per_second,
    ratio,
    roofline,
    short,
    speed_up,
    summarise,
)
from tests.bench.made_up import row


@pytest.mark.parametrize("values", [[3.0, 1.0, 2.0], [5.0, 1.0, 4.0, 2.0], [0.1, 0.7] * 9])
def test_quartiles_are_numpys(values: list[float]) -> None:
    summary = summarise(values)
    expected = np.percentile(values, [25, 50, 75])
    assert (summary.lower, summary.median, summary.upper) == pytest.approx(tuple(expected))
    assert (summary.least, summary.most) == (min(values), max(values))


def test_outliers_are_counted_and_kept() -> None:
    summary = summarise([1.0, 1.1, 1.2, 1.3, 1.4, 9.0])
    assert summary.outliers == 1
    assert summary.most == 9.0


def test_one_value_has_no_spread() -> None:
    summary = summarise([2.0])
    assert (summary.lower, summary.median, summary.upper, summary.spread) == (2, 2, 2, 0)


def test_spread_is_a_share() -> None:
    assert summarise([1.0, 2.0, 3.0]).spread == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("count", "low", "high", "confidence"),
    [  # 1 - 2 (1 + n + ...) / 2^n, as in tables of the sign test
        (1, 0, 0, 0.0),
        (2, 0, 1, 0.5),
        (3, 0, 2, 0.75),
        (6, 0, 5, 1 - 2 / 64),
        (8, 0, 7, 1 - 2 / 256),
        (9, 1, 7, 1 - 2 * (1 + 9) / 512),
        (15, 3, 11, 1 - 2 * (1 + 15 + 105 + 455) / 2**15),
    ],
)
def test_the_interval_of_a_median(count: int, low: int, high: int, confidence: float) -> None:
    values = list(reversed(range(count)))
    assert median_interval(values) == Interval(low, high, cast(float, pytest.approx(confidence)))


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 7, 9, 15])
def test_intervals_enclose_the_truth_as_often_as_they_say(count: int) -> None:
    rng = np.random.default_rng(1)
    times = 1e-3 * rng.lognormal(sigma=0.5, size=(2, 4000, count))  # skewed, as times are
    of_one, of_two = [], []
    for first, second in zip(2 * times[0], times[1], strict=True):
        of_one.append(median_interval(second))
        of_two.append(ratio(row(seconds=tuple(first)), row(seconds=tuple(second))).interval)
    found = np.mean([each.low <= 1e-3 <= each.high for each in of_one])
    assert found == pytest.approx(of_one[0].confidence, abs=0.015)
    found = np.mean([each.low <= 2 <= each.high for each in of_two])
    assert found >= of_two[0].confidence, "adding up the misses claims too little, if anything"
    assert (of_two[0].confidence >= 0.95) == (count >= 7)


def test_a_ratio_is_of_the_same_quantity_and_of_all_of_the_data() -> None:
    part = row(asked=(64, 64), shape=(32, 32), seconds=(1.0, 1.0, 1.0))
    carried = gpu_row(asked=(64, 64))
    kernel, run = ratio(part, carried), ratio(part, carried, waiting=True)
    assert kernel.value == pytest.approx(4 / 1.25)
    assert run.value == pytest.approx(4 / 6.25)
    assert (run.interval.low, run.interval.high) == pytest.approx((4 / 6.5, 4 / 6))
    assert run.interval.confidence == pytest.approx(0.25)
    assert run.scaled
    assert not ratio(carried, carried).scaled


def test_one_outlier_at_each_end_does_not_widen_the_interval() -> None:
    usual = (1.0,) * (REPEAT - 2)
    found = ratio(row(seconds=(0.1, *usual, 9.0)), row(seconds=(0.2, *usual, 5.0)))
    assert (found.interval.low, found.interval.high) == (1, 1)
    assert found.interval.confidence >= 0.95


def test_a_ratio_of_ratios_misses_what_either_misses() -> None:
    first, second = Ratio(6.0, Interval(5.0, 8.0, 0.9)), Ratio(2.0, Interval(1.0, 4.0, 0.8), True)
    assert first.over(second) == Ratio(
        3.0, Interval(1.25, 8.0, cast(float, pytest.approx(0.7))), True
    )


def test_confidence_is_rounded_down() -> None:
    assert Interval(1.0, 2.0, 0.9969).describe() == "1 to 2, 99 % sure"


def test_megapixels() -> None:
    assert megapixels_per_second(row(shape=(2000, 1000), seconds=(0.2,))) == pytest.approx(10)


def gpu_row(**changes: Any) -> Row:
    stages = {"upload": (3.0, 3.0), "kernel": (1.0, 1.5), "download": (2.0, 2.0)}
    return row(device="gpu", level="tuned", seconds=(1.0, 1.5), stages=stages, **changes)


def test_the_baseline_is_exactly_as_fast_as_itself() -> None:
    part = row(asked=(100, 100), shape=(50, 50), seconds=(0.3, 0.1))
    assert speed_up(part, part) == SpeedUp(1.0, scaled=False)
    again = speed_up(replace(part, seconds=(0.1, 0.3)), part)
    assert again is not None
    assert again.scaled, "another measurement"


def test_speed_up_counts_what_the_user_waits_for() -> None:
    serial = row(seconds=(60.0, 60.0), stages={"compute": (60.0, 60.0), "convert": (5.0, 5.0)})
    assert gpu_row().waits == (6.0, 6.5)
    whole, computing = (speed_up(gpu_row(), serial, each) for each in (True, False))
    assert whole is not None
    assert computing is not None
    assert whole.factor == pytest.approx(60 / 6.25)
    assert computing.factor == pytest.approx(60 / 1.25)


def test_a_call_of_a_library_on_a_gpu_is_not_compared_with_whole_runs() -> None:
    library = row(device="gpu", level="NPP", library=True, seconds=(2.0,))
    on_cpu = row(device="cpu", level="OpenCV", library=True, seconds=(2.0,))
    assert not library.is_whole
    assert on_cpu.is_whole
    for first, second in ((library, gpu_row()), (gpu_row(), library), (library, row(seconds=(9,)))):
        assert speed_up(first, second) is None
    computing = speed_up(library, gpu_row(), waiting=False)
    assert computing is not None
    assert computing.factor == pytest.approx(1.25 / 2)
    assert speed_up(library, library) == SpeedUp(1.0, scaled=False)
    assert speed_up(on_cpu, gpu_row()) is not None


def test_a_part_is_scaled_by_its_pixels() -> None:
    part = row(asked=(1024, 1024), shape=(256, 256), seconds=(1.0,))
    gain = speed_up(row(asked=(1024, 1024), shape=(1024, 1024), seconds=(2.0,)), part)
    assert gain is not None
    assert gain.factor == pytest.approx(8)
    assert gain.scaled


def test_a_part_of_a_whole_search_is_scaled_by_their_square() -> None:
    part = row(
        filter="nlm", parameters={"search": "image"}, asked=(64, 64), shape=(32, 32), seconds=(1.0,)
    )
    assert full_time(part) == pytest.approx(16)
    older = replace(part, parameters={"search": "image", "forgotten": "7"})
    assert full_time(older) == pytest.approx(16)


def test_the_baseline_is_of_the_same_subject() -> None:
    mine = gpu_row()
    serial = row(seconds=(1.0,))
    others = [
        row(filter="median", seconds=(1.0,)),
        row(asked=(8, 8), seconds=(1.0,)),
        row(parameters={"size": "5"}, seconds=(1.0,)),
        row(reason="It failed."),
    ]
    assert find_baseline([*others, serial], mine) is serial
    assert find_baseline(others, mine) is None
    assert find_baseline([serial], mine, "CPU parallel") is None


def test_each_of_two_runs_shown_together_has_its_own_baseline() -> None:
    """The table, the plot and the CSV take it from here."""
    slow, fast = row(seconds=(2.0,)), row(seconds=(1.0,))
    first, second = gpu_row(), gpu_row()
    rows = [slow, first, fast, second]
    assert find_baseline(rows, first) is slow
    assert find_baseline(rows, second) is fast


def test_roofline() -> None:
    below = gpu_row(bytes=1e9, operations=2e9, copy_rate=1e12, peak_rate=5e12)
    above = gpu_row(bytes=1e9, operations=2e12, copy_rate=1e12, peak_rate=5e12)
    unknown = gpu_row(bytes=1e9, operations=2e9)
    points = roofline([below, above, unknown, row(seconds=(1.0,), bytes=1e9), row(reason="No.")])
    assert [point.row for point in points] == [below, above, unknown]
    assert points[0].intensity == pytest.approx(2)
    assert points[0].rate == pytest.approx(2e9 / 1.25)


def test_difference_is_not_lost_in_bytes() -> None:
    ours, theirs = np.array([[0, 255, 7]], np.uint8), np.array([[255, 0, 7]], np.uint8)
    difference = Difference.between(ours, theirs)
    assert [difference.largest, difference.share] == [255, pytest.approx(2 / 3)]
    assert difference.describe() == "66.67 % differ from ours, by up to 255"
    assert not Difference.between(ours, ours).describe()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0123456, "0.0123"),
        (12.345, "12.3"),
        (999.4, "999"),
        (999.6, "1,000"),
        (124848.0, "124,848"),
    ],
)
def test_numbers_have_no_powers_of_ten(value: float, text: str) -> None:
    assert short(value) == text
