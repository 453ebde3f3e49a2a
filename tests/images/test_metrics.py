"""Figures of quality: scikit-image's, to rounding, for every type and shape."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn
from skimage.metrics import mean_squared_error, peak_signal_noise_ratio, structural_similarity

from kernelscope.base import parallel
from kernelscope.base.errors import Cancelled, Incomparable
from kernelscope.files.formats import MAX_PIXELS
from kernelscope.images.judging import colours
from kernelscope.images.judging.metrics import Quality, add_errors, judge, judge_volume
from kernelscope.schema.samples import Levels, levels_of
from tests.oracle import WHITES
from tests.pairs import together

each_type = pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])


def pair(dtype: str, *shape: int, noise: float = 0.05, seed: int = 0) -> list[np.ndarray]:
    """Return a random picture with flat parts, and the same with noise."""
    rng = np.random.default_rng(seed)
    clean = np.clip(1.4 * rng.random(shape) - 0.2, 0, 1)
    noisy = np.clip(clean + rng.normal(0, noise, shape), 0, 1)
    return [(WHITES[dtype] * picture).astype(dtype) for picture in (noisy, clean)]


def expected(picture: np.ndarray, reference: np.ndarray) -> Quality:
    """Return the values of scikit-image, in float64: it computes SSIM of float32 in float32."""
    white = levels_of(reference).span
    first, second = picture.astype(np.float64), reference.astype(np.float64)
    ssim = None
    if min(picture.shape[:2]) >= 7:
        ssim = structural_similarity(first, second, channel_axis=-1, data_range=white)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the PSNR of equal pictures
        psnr = peak_signal_noise_ratio(first, second, data_range=white)
    return Quality(
        mean_squared_error(first, second), float(np.abs(first - second).mean()), psnr, ssim
    )


def assert_close(found: Quality, wanted: Quality) -> None:
    assert found.mse == pytest.approx(wanted.mse, rel=1e-12, abs=0)
    assert found.mae == pytest.approx(wanted.mae, rel=1e-12, abs=0)
    assert found.psnr == pytest.approx(wanted.psnr, rel=1e-12)
    assert (found.ssim is None) == (wanted.ssim is None)
    if wanted.ssim is not None:
        assert found.ssim == pytest.approx(wanted.ssim, abs=1e-10)


@each_type
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (6, 40, 1), (40, 6, 3), (7, 7, 1), (8, 7, 3), (33, 70, 1), (70, 33, 3)]
)
def test_equals_scikit_image(dtype: str, shape: tuple[int, ...]) -> None:
    picture, reference = pair(dtype, *shape)
    assert_close(judge(picture, reference), expected(picture, reference))


@each_type
@pytest.mark.parametrize("band", [1, 500, 3001])
def test_bands_make_no_difference(dtype: str, band: int, monkeypatch: pytest.MonkeyPatch) -> None:
    picture, reference = pair(dtype, 40, 30, 3)
    whole = judge(picture, reference)
    monkeypatch.setattr(parallel, "BAND_SAMPLES", band)
    assert_close(judge(picture, reference), whole)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), dtype=st.sampled_from(["uint8", "uint16"]))
def test_integers_of_any_kind_equal_scikit_image(data: st.DataObject, dtype: str) -> None:
    shape = data.draw(st.tuples(*2 * [st.integers(1, 12)], st.sampled_from([1, 3])))
    picture, reference = (data.draw(stn.arrays(dtype, shape)) for _ in range(2))
    assert_close(judge(picture, reference), expected(picture, reference))


def test_floats_may_leave_black_and_white() -> None:
    picture, reference = (8 * array - 3 for array in pair("float32", 30, 40, 1))
    assert_close(judge(picture, reference), expected(picture, reference))


@each_type
def test_black_against_white(dtype: str) -> None:
    """The largest sums that there are, and flat windows."""
    white = np.full((600, 500, 3), WHITES[dtype], dtype)
    found = judge(white, np.zeros_like(white))
    assert (found.mse, found.mae) == (WHITES[dtype] ** 2, WHITES[dtype])
    assert found.psnr == 0
    assert found.ssim == pytest.approx(0.0001 / 1.0001)


def test_errors_of_integers_are_exact_where_floats_are_not() -> None:
    """Floats cannot add the 1 of each later band to the 2**53 and more of the first five."""
    rows = parallel.BAND_SAMPLES // 1024
    reference = np.zeros((16 * rows, 1024, 1), np.uint16)
    picture = np.zeros_like(reference)
    picture[: 5 * rows] = 65535
    picture[5 * rows :: rows, 7] = 1
    squares = 5 * parallel.BAND_SAMPLES * 65535**2 + 11
    found = judge(picture, reference)
    assert found.mse * picture.size == float(squares)
    assert found.mse * picture.size != float(squares - 11)


def similarity(picture: np.ndarray, reference: np.ndarray, white: int) -> float:
    """Return SSIM by its definition, in fractions: nothing is rounded before the end."""
    c1, c2 = (Fraction(step * white, 100) ** 2 for step in (1, 3))
    values = []
    for y, x in np.ndindex(picture.shape[0] - 6, picture.shape[1] - 6):
        one, two = (
            [Fraction(value) for value in each[y : y + 7, x : x + 7].ravel().tolist()]
            for each in (picture, reference)
        )
        means = sum(one) / 49, sum(two) / 49
        variances = [
            sum((value - mean) ** 2 for value in part) / 48
            for part, mean in zip((one, two), means, strict=True)
        ]
        products = sum(a * b for a, b in zip(one, two, strict=True))
        covariance = (products - 49 * means[0] * means[1]) / 48
        above = (2 * means[0] * means[1] + c1) * (2 * covariance + c2)
        values.append(above / ((means[0] ** 2 + means[1] ** 2 + c1) * (sum(variances) + c2)))
    return float(sum(values) / len(values))


@together("dtype", ["uint8", "uint16"])
@together("low", ["nearly white", "black"])
def test_ssim_loses_no_digit_of_whole_numbers(dtype: str, low: str) -> None:
    """Windows of near-white have the largest sums and, by their last digits, small variances."""
    white = int(WHITES[dtype])
    rng = np.random.default_rng(8)
    picture, reference = (
        np.where(rng.integers(0, 2, (19, 9, 1)), white, white - 1 if low != "black" else 0)
        for _ in range(2)
    )
    found = judge(picture.astype(dtype), reference.astype(dtype)).ssim
    assert found == pytest.approx(similarity(picture, reference, white), rel=1e-14, abs=0)


@pytest.mark.parametrize("bright", [1e3, 1e8, 1e19])
def test_one_bright_sample_does_not_spoil_the_windows_below(bright: float) -> None:
    """Its square has more digits than float64; running sums would keep the lost part."""
    picture, reference = pair("float32", 24, 9, 1)
    picture[2, 4] = reference[2, 4] = bright
    found = judge(picture, reference, levels=Levels(0, 1)).ssim
    assert found == pytest.approx(similarity(picture, reference, 1), rel=1e-9, abs=0)


def test_sums_of_squares_fit_64_bits_for_the_largest_pictures() -> None:
    """Colours of 16 bits, black against white, which add up to the most."""
    assert 3 * MAX_PIXELS * 65535**2 < 2**63
    totals = np.array([0, 3 * MAX_PIXELS * 65535**2 - 2 * 65535**2])
    add_errors(np.array([65535, 0], np.uint16), np.array([0, 65535], np.uint16), totals)
    assert totals.tolist() == [2 * 65535, 3 * MAX_PIXELS * 65535**2]


@each_type
def test_equal_pictures(dtype: str) -> None:
    picture, _ = pair(dtype, 20, 30, 3)
    found = judge(picture, picture.copy())
    assert found == Quality(0, 0, math.inf, cast(float, pytest.approx(1)))
    assert found.describe() == "PSNR ∞ dB (equal), SSIM 1.0000, MSE 0, MAE 0"


def test_figures_in_words() -> None:
    small = Quality(48.3072, 5.12345, 31.2904, None)
    assert small.figures()[1] == ("SSIM", "none below 7×7")
    assert small.describe() == "PSNR 31.29 dB, SSIM none below 7×7, MSE 48.31, MAE 5.123"


def test_a_known_mse_is_taken_over() -> None:
    picture, reference = pair("uint8", 20, 30, 1)
    found = judge(picture, reference, mse=65.025)
    assert (found.mse, found.psnr) == (65.025, pytest.approx(30))
    assert found.ssim == judge(picture, reference).ssim


@pytest.mark.parametrize("calls", range(4))
def test_stops_when_asked(calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between bands of both halves of the work: there are two bands in each."""
    monkeypatch.setattr(parallel, "BAND_SAMPLES", 13 * 20)
    left = iter(range(calls))

    def check() -> None:
        if next(left, None) is None:
            raise Cancelled

    first, second = pair("uint8", 26, 20, 1)
    with pytest.raises(Cancelled):
        judge(first, second, check)
    assert next(left, None) is None


@together(
    ("shape", "dtype", "message", "hint"),
    [
        ((8, 9, 3), "uint16", "type uint8 and uint16", "Convert"),
        ((8, 9, 1), "uint8", "grey picture and one in colour", "greyscale"),
        ((7, 9, 3), "uint8", "Pictures of 9×8 and 9×7 pixels", "same size"),
        ((7, 9, 1), "uint8", "Pictures of 9×8 and 9×7 pixels", "same size"),
    ],
)
def test_refuses_what_does_not_compare(shape, dtype, message, hint) -> None:
    with pytest.raises(Incomparable, match=message) as caught:
        judge(np.zeros((8, 9, 3), np.uint8), np.zeros(shape, dtype))
    assert hint in caught.value.hint


@together(("channels", "left"), [(1, 1), (2, 1), (3, 3), (4, 3)])
def test_alpha_does_not_count(channels: int, left: int) -> None:
    picture, reference = pair("uint8", 20, 30, channels)
    assert colours(picture).shape == (20, 30, left)
    found = judge(colours(picture), colours(reference))
    assert_close(found, expected(picture[:, :, :left], reference[:, :, :left]))


# Volumes; `tests/cli/test_volumes.py` holds them against scikit-image's ---------------


@pytest.mark.parametrize("scale", [1, 1000])
def test_errors_are_in_units_of_the_voxels_and_psnr_knows_none(scale: int) -> None:
    reference = np.linspace(0, scale, 3 * 8 * 9, dtype=np.float32).reshape(3, 8, 9)
    judged = judge_volume(reference - np.float32(0.1 * scale), reference)
    assert judged.bias == pytest.approx(-0.1 * scale)
    assert judged.mae == pytest.approx(0.1 * scale)
    assert judged.mse == pytest.approx(0.01 * scale**2)
    assert judged.psnr == pytest.approx(20, abs=1e-4)


def test_the_object_has_a_psnr_without_the_air_around_it() -> None:
    """By hand: errors of 1 inside and 5 outside, white 100."""
    reference = np.zeros((2, 10, 10), np.float32)
    reference[:, :6] = 100
    judged = judge_volume(
        reference + np.where(reference > 0, np.float32(1), np.float32(5)), reference
    )
    assert judged.psnr_inside == pytest.approx(40)
    assert judged.psnr == pytest.approx(10 * math.log10(1e4 / (0.6 + 0.4 * 25)))
    assert judged.describe().endswith(", PSNR inside 40.00 dB")

    air = np.where(reference > 0, np.float32(0), np.float32(5))  # all of the error
    judged = judge_volume(reference + air, reference)
    assert judged.psnr_inside == math.inf
    assert math.isfinite(judged.psnr)
    assert judged.describe().endswith(", PSNR inside ∞ dB (equal)")

    reference[:, :9] = 100  # a tenth is air, and then less than that
    assert judge_volume(reference + 1, reference).psnr_inside == pytest.approx(40)
    reference[0, 9, 0] = 1
    assert judge_volume(reference + 1, reference).psnr_inside is None
    reference[:, :6] = 0
    reference[0, 0, 0] = 1
    assert judge_volume(reference + 1, reference).psnr_inside is not None
    reference[0, 0, 0] = -1  # black lies below the air
    assert judge_volume(reference + 1, reference).psnr_inside is None


def test_black_volumes_and_small_slices() -> None:
    black = np.zeros((2, 3, 9), np.int16)
    judged = judge_volume(black + np.int16(2), black)
    assert (judged.mse, judged.ssim, judged.bias) == (4, None, 2)
    assert judge_volume(black, black).psnr == math.inf


def test_volumes_of_other_shapes_are_refused() -> None:
    with pytest.raises(Incomparable, match="9×8×3 and 9×8×2 voxels"):
        judge_volume(np.zeros((3, 8, 9)), np.zeros((2, 8, 9)))


def test_judging_a_volume_can_be_cancelled() -> None:
    def stop() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        judge_volume(np.zeros((3, 8, 9)), np.zeros((3, 8, 9)), stop)
