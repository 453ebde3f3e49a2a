"""The arithmetic of the histogram: axis, scales, backgrounds, handles."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest

from kernelscope.gui.model.display import GAMMAS, Display
from kernelscope.gui.model.histogram_plot import (
    Curve,
    Handle,
    HeightScale,
    HistogramCurves,
    ValueAxis,
    axis_for,
    background_of,
    describe,
    fine_histogram,
    moved,
    place_of,
    stepped,
    ticks,
)
from kernelscope.images.judging.pictures import Histogram
from tests.paths import ROOT

BYTES = ValueAxis(0, 256)


def made(counts: np.ndarray, low: float = 0, high: float | None = None) -> Histogram:
    """Return a histogram of one channel, or of as many as `counts` has rows."""
    rows = np.atleast_2d(counts).astype(np.int64)
    return Histogram(
        rows, np.linspace(low, rows.shape[1] if high is None else high, rows.shape[1] + 1)
    )


def hump(middle: float, width: float, most: float, bins: int = 256) -> np.ndarray:
    places = np.arange(bins)
    return np.rint(most * np.exp(-(((places - middle) / width) ** 2)))


# --- axis ---


def test_the_axis_of_8_bits_is_always_the_whole_range() -> None:
    narrow = made(hump(100, 2, 50))
    assert axis_for([narrow], Display(0, 255)) == BYTES


def test_12_bits_in_16_fill_the_axis() -> None:
    counts = np.zeros(4096)
    counts[:256] = 100  # 0 to 4095
    axis = axis_for([made(counts, 0, 65536)], Display(8, 4086))
    assert axis.low == pytest.approx(-82, abs=2)
    assert axis.high == pytest.approx(4096 * 1.02, abs=2)
    shown = HistogramCurves.of({"input": made(counts, 0, 65536)}, axis, HeightScale.LINEAR).curves[
        0
    ]
    assert len(shown.counts) > 200
    assert shown.counts.sum() == counts.sum()


def test_one_hot_pixel_does_not_squeeze_the_axis_and_is_said() -> None:
    counts = np.zeros(1024)
    counts[:10] = 10_000
    counts[1000] = 1
    histogram = made(counts, 0, 1024)
    axis = axis_for([histogram], Display(0, 10))
    assert 10 < axis.high < 25
    plot = HistogramCurves.of({"input": histogram}, axis, HeightScale.LINEAR)
    assert plot.beyond == 1
    assert "1 sample is beyond the axis" in plot.note()


def test_the_axis_takes_in_a_display_beyond_the_values() -> None:
    counts = np.ones(1024)
    axis = axis_for([made(counts, 0, 1)], Display(-3, 5))
    assert axis.low < -3
    assert axis.high > 5


def test_without_values_there_is_an_axis() -> None:
    assert axis_for([], None) == ValueAxis(0, 1)
    assert axis_for([made(np.zeros(1024), 0, 1)], None).span > 0


# --- curves ---


@pytest.mark.parametrize("bins", [7, 100, 256, 1000])
def test_merged_bins_hold_every_sample_in_its_place(bins: int) -> None:
    counts = np.random.default_rng(3).integers(0, 50, 1000)
    curve = Curve("input", "", counts, np.linspace(-20, 65, 1001))
    part = curve.within(ValueAxis(-20, 65), bins)
    assert part.counts.sum() == counts.sum()
    assert len(part.edges) == len(part.counts) + 1
    merged = round(part.bin_width / curve.bin_width)
    assert part.counts[0] == counts[:merged].sum()
    assert part.counts[3] == counts[3 * merged : 4 * merged].sum()
    assert part.edges[3] == pytest.approx(curve.edges[3 * merged])


def test_a_bin_begins_with_its_lower_end() -> None:
    curve = Curve("input", "", np.arange(100), np.linspace(0, 100, 101))
    assert curve.bin_at(5.0) == (5, 6, 5)
    assert curve.bin_at(5.99) == (5, 6, 5)
    assert curve.bin_at(-3) == (0, 1, 0)
    assert curve.bin_at(100) == (99, 100, 99)


def test_a_part_of_the_axis_holds_only_its_samples() -> None:
    curve = Curve("input", "", np.arange(100), np.linspace(0, 100, 101))
    part = curve.within(ValueAxis(20, 30))
    assert list(part.counts) == list(range(20, 30))
    assert part.edges[0] == pytest.approx(20)


def test_bins_of_different_widths_are_drawn_at_the_same_height() -> None:
    wide, narrow = made(np.full(100, 40), 0, 1), made(np.full(200, 20), 0, 1)
    plot = HistogramCurves.of(
        {"input": wide, "output": narrow}, ValueAxis(0, 1), HeightScale.LINEAR
    )
    first, second = (plot.heights(curve) for curve in plot.curves)
    assert first == pytest.approx(1)
    assert second == pytest.approx(1)


def test_channels_are_added_up_or_drawn_alone() -> None:
    colour = made(np.stack([hump(middle, 9, 50) for middle in (50, 120, 200)]))
    both = {"input": colour, "output": colour}
    together = HistogramCurves.of(both, BYTES, HeightScale.LINEAR).curves
    assert [curve.picture for curve in together] == ["input", "output"]
    assert (together[0].counts == colour.counts.sum(axis=0)).all()
    alone = HistogramCurves.of(both, BYTES, HeightScale.LINEAR, by_channel=True).curves
    assert [curve.name for curve in alone] == [f"output, {c}" for c in ("red", "green", "blue")]
    assert (alone[1].counts == colour.counts[1]).all()
    without = HistogramCurves.of(
        {"input": colour}, BYTES, HeightScale.LINEAR, by_channel=True
    ).curves
    assert [curve.picture for curve in without] == ["input"] * 3


def test_values_are_read_off() -> None:
    counts = np.arange(256)
    plot = HistogramCurves.of(
        {"input": made(counts), "output": made(counts * 20)}, BYTES, HeightScale.LINEAR
    )
    assert plot.read(128.5) == "128 to 129: input 128, output 2,560"
    assert plot.read(1e6) == "255 to 256: input 255, output 5,100"


# --- scales ---


@pytest.mark.parametrize("scale", list(HeightScale))
def test_scales_rise_from_0_to_1_at_the_top(scale: HeightScale) -> None:
    heights = scale.heights(np.array([0.0, 1, 10, 500, 1000]), 1000)
    assert heights[0] == 0
    assert heights[-1] == pytest.approx(1)
    assert (np.diff(heights) > 0).all()


def test_rare_values_are_higher_by_root_and_highest_by_logarithm() -> None:
    linear, root, log = (each.heights(np.array([1.0]), 1000)[0] for each in HeightScale)
    assert linear == pytest.approx(0.001)
    assert root == pytest.approx(0.001**0.5)
    assert log == pytest.approx(np.log(2) / np.log(2000))


@pytest.mark.parametrize("scale", list(HeightScale))
@pytest.mark.parametrize("top", [0.0, 1.0, 7.0, 1e7])
def test_the_axis_of_counts_names_few(scale: HeightScale, top: float) -> None:
    marks = scale.marks(top)
    assert len(marks) <= 6
    assert all(0 <= mark <= top for mark in marks)


# --- backgrounds ---


def test_zeros_around_a_head_leave_the_scale_and_are_said() -> None:
    counts = hump(120, 30, 900)
    counts[0] = 300_000
    plot = HistogramCurves.of({"input": made(counts)}, BYTES, HeightScale.LINEAR)
    assert plot.top == 900
    share = 100 * 300_000 / counts.sum()
    assert plot.note() == f"0 to 1 ({share:.0f} % of the input) exceed the scale."
    assert plot.heights(plot.curves[0])[120] == pytest.approx(1)


def test_a_noisy_background_leaves_the_scale_as_a_whole() -> None:
    noise = np.random.default_rng(5).poisson(hump(8, 5, 40_000))
    found = background_of(Curve("input", "", noise + hump(120, 30, 900), np.arange(257.0)))
    assert found is not None
    assert 10 < found.high < 60
    assert found.top == pytest.approx(900, rel=0.05)


def test_the_logarithm_shows_the_background_too() -> None:
    counts = hump(120, 30, 900)
    counts[0] = 300_000
    plot = HistogramCurves.of({"input": made(counts)}, BYTES, HeightScale.LOG)
    assert plot.top == 300_000
    assert plot.note() == ""


def test_a_dark_colour_picture_has_no_background() -> None:
    pixels = np.asarray(PIL.Image.open(ROOT / "resources" / "coffee.png"))
    plot = HistogramCurves.of(
        {"input": fine_histogram(pixels)}, BYTES, HeightScale.LINEAR, by_channel=True
    )
    assert plot.backgrounds == ()


def test_the_noise_around_a_head_is_background_and_its_tail_is_not_the_head() -> None:
    random = np.random.default_rng(2)
    y, x = np.mgrid[:200, :200]
    head = np.where((y - 100) ** 2 + (x - 100) ** 2 < 3600, 500.0, 0.0)[..., None]
    head += (head > 0) * random.normal(0, 100, head.shape)
    noise = random.normal(0, 30, (2, *head.shape))
    pixels = np.hypot(head + noise[0], noise[1]).astype(np.float32)
    histograms = {"input": fine_histogram(pixels)}
    axis = axis_for(histograms.values(), None)
    (found,) = HistogramCurves.of(histograms, axis, HeightScale.LINEAR).backgrounds
    assert 0.66 < found.share < 0.74  # of 0.717 around the head
    assert 60 < found.high < 150


@pytest.mark.parametrize(
    "counts",
    [
        hump(100, 40, 900),
        hump(10, 4, 900) + hump(150, 30, 500),
        hump(220, 4, 90_000) + hump(60, 20, 500),
        np.eye(256)[7] * 5000,
        np.zeros(256),
        np.exp(-np.arange(256) / 40) * 9000,
        np.exp(-np.arange(256) / 12) * 9000 + 20,
        hump(30, 12, 9000) + hump(150, 30, 500),
    ],
    ids=["one hump", "two humps", "bright", "one value", "none", "falling", "steep", "wide hump"],
)
def test_ordinary_pictures_keep_the_whole_scale(counts: np.ndarray) -> None:
    plot = HistogramCurves.of({"input": made(counts)}, BYTES, HeightScale.LINEAR)
    assert plot.backgrounds == ()
    assert plot.top == counts.astype(np.int64).max()


# --- handles ---


def test_the_middle_handle_stands_at_the_value_drawn_in_the_middle() -> None:
    for gamma in (0.3, 1.0, 2.4):
        display = Display(100, 900, gamma)
        value = place_of(display, Handle.MIDDLE)
        assert int(display.steps(np.array([[value]], np.float32))[0, 0]) in (127, 128)


@pytest.mark.parametrize("value", [150.0, 300.0, 700.0])
def test_the_middle_handle_moves_only_gamma(value: float) -> None:
    display = moved(Display(100, 900), Handle.MIDDLE, value, ValueAxis(0, 1000))
    assert (display.low, display.high) == (100, 900)
    assert place_of(display, Handle.MIDDLE) == pytest.approx(value, rel=0.01)


def test_gamma_stays_in_its_range() -> None:
    display = Display(0, 100)
    assert moved(display, Handle.MIDDLE, -50, ValueAxis(0, 100)).gamma == GAMMAS[0]
    assert moved(display, Handle.MIDDLE, 500, ValueAxis(0, 100)).gamma == GAMMAS[1]
    assert stepped(display, Handle.MIDDLE, 999, ValueAxis(0, 100)).gamma == GAMMAS[1]


def test_black_and_white_do_not_pass_each_other() -> None:
    display = Display(50, 60)
    low = moved(display, Handle.LOW, 500, BYTES, whole=True)
    assert (low.low, low.high) == (59, 60)
    high = moved(display, Handle.HIGH, -3, BYTES, whole=True)
    assert (high.low, high.high) == (50, 51)
    fraction = moved(Display(0.2, 0.4), Handle.LOW, 7, ValueAxis(0, 1))
    assert fraction.low == pytest.approx(0.399)


def test_whole_numbers_stay_whole_and_steps_are_at_least_one() -> None:
    assert moved(Display(0, 255), Handle.LOW, 12.6, BYTES, whole=True).low == 13
    assert stepped(Display(0, 255), Handle.LOW, 1, BYTES, whole=True).low == 1
    assert stepped(Display(0, 4000), Handle.HIGH, -1, ValueAxis(0, 4096), whole=True).high == 3984
    assert stepped(Display(0, 9), Handle.HIGH, -1, ValueAxis(0, 10), whole=True).high == 8


def test_handles_keep_the_rest_of_the_display() -> None:
    display = Display(0, 255, 0.7)
    assert moved(display, Handle.HIGH, 200, BYTES).gamma == 0.7


def test_handles_are_named_with_their_values() -> None:
    display = Display(-20, 65.25, 0.8)
    texts = [describe(display, handle) for handle in Handle]
    assert texts == ["Black level -20", "Gamma 0.8", "White level 65.25"]


@pytest.mark.parametrize(("low", "high"), [(0, 255), (-20, 65), (0, 1), (0, 65535), (0.99, 1.01)])
def test_ticks_are_round_and_inside(low: float, high: float) -> None:
    places = ticks(low, high, 5)
    assert 2 <= len(places) <= 7
    assert all(low <= place <= high for place in places)
    assert np.diff(places) == pytest.approx(places[1] - places[0])
