"""Pictures of differences and histograms, beside NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

from kernelscope.base import parallel
from kernelscope.base.errors import Incomparable
from kernelscope.images.judging.pictures import difference, histogram, suggest_gain
from tests.images.test_metrics import each_type, pair
from tests.oracle import WHITES
from tests.pairs import together


@each_type
@pytest.mark.parametrize("gain", [1, 5, 0.5])
def test_difference_around_mid_grey(dtype: str, gain: float) -> None:
    picture, reference = pair(dtype, 30, 20, 3)
    exact = (picture.astype(np.float64) - reference) * (gain * 255 / WHITES[dtype])
    found = difference(picture, reference, gain)
    assert found.dtype == np.uint8
    # Halves fall to either side where the factor itself is rounded.
    expected = np.clip(128 + exact, 0, 255)
    assert np.abs(found - expected).max() <= 0.5 + 1e-9


def test_difference_by_hand() -> None:
    picture = np.array([[[9], [7], [255], [0]]], np.uint8)
    other = np.array([[[9], [8], [0], [200]]], np.uint8)
    assert difference(picture, other, 10).ravel().tolist() == [128, 118, 255, 0]


@each_type
def test_the_gain_fills_the_range(dtype: str) -> None:
    """Noise of a standard deviation of 1 %: 99.5 % lie within 2.8 of them, 7.2 of 255 steps."""
    rng = np.random.default_rng(3)
    other = np.full((400, 300, 1), 0.5)
    picture = other + rng.normal(0, 0.01, other.shape)
    both = [(WHITES[dtype] * array).astype(dtype) for array in (picture, other)]
    first, second = both
    gain = suggest_gain(first, second)
    assert gain == 10
    shown = difference(first, second, gain)
    assert np.mean((shown == 0) | (shown == 255)) < 0.006
    assert np.ptp(shown) > 180


@together(
    ("size", "gain"), [(0, 1), (1, 100), (2, 50), (6, 20), (12, 10), (127, 1), (128, 1), (255, 1)]
)
def test_the_gain_of_one_difference(size: int, gain: int) -> None:
    """It counts although 99.9 % of the pixels are equal."""
    other = np.zeros((40, 25, 1), np.uint8)
    picture = other.copy()
    picture[5, 6] = size
    assert suggest_gain(picture, other) == gain


@each_type
@pytest.mark.parametrize("bins", [256, 100, 7])
@pytest.mark.parametrize("channels", [1, 3])
def test_histogram_equals_that_of_numpy(dtype: str, bins: int, channels: int) -> None:
    picture, _ = pair(dtype, 50, 30, channels)
    counts, edges = histogram(picture, bins)
    picture = picture.astype(np.float64)  # or NumPy's edges of floats would be rounded to float32
    assert counts.shape == (channels, bins)
    top = 1 if dtype == "float32" else int(WHITES[dtype]) + 1
    for channel in range(channels):
        wanted, wanted_edges = np.histogram(picture[:, :, channel], bins, range=(0, top))
        np.testing.assert_array_equal(counts[channel], wanted)
        np.testing.assert_array_equal(edges, wanted_edges)


@each_type
def test_bands_make_no_difference(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    picture, reference = pair(dtype, 40, 30, 3)
    counts, gain = histogram(picture)[0], suggest_gain(picture, reference)
    monkeypatch.setattr(parallel, "BAND_SAMPLES", 500)
    np.testing.assert_array_equal(histogram(picture)[0], counts)
    assert suggest_gain(picture, reference) == gain


@settings(max_examples=60, deadline=None)
@given(
    values=stn.arrays(
        np.float32, st.tuples(*3 * [st.integers(1, 6)]), elements=st.floats(-4, 4, width=32)
    ),
    bins=st.integers(1, 40),
)
def test_histogram_of_floats_reaches_all_of_them(values: np.ndarray, bins: int) -> None:
    counts, edges = histogram(values, bins)
    low, high = min(0.0, float(values.min())), max(1.0, float(values.max()))
    for channel, row in enumerate(counts):
        wanted, wanted_edges = np.histogram(
            values[:, :, channel].astype(np.float64), bins, range=(low, high)
        )
        np.testing.assert_array_equal(row, wanted)
        np.testing.assert_array_equal(edges, wanted_edges)


def test_a_histogram_of_bytes_has_a_bin_for_each_value() -> None:
    values = np.array([[[0], [255], [255], [7]]], np.uint8)
    (counts,), edges = histogram(values)
    assert {value: int(counts[value]) for value in counts.nonzero()[0]} == {0: 1, 7: 1, 255: 2}
    assert (edges[0], edges[1], edges[-1]) == (0, 1, 256)


def test_pictures_that_do_not_compare_are_refused() -> None:
    grey, colour = np.zeros((8, 9, 1), np.uint8), np.zeros((8, 9, 3), np.uint8)
    with pytest.raises(Incomparable):
        difference(grey, colour)
    with pytest.raises(Incomparable):
        suggest_gain(grey, colour)
