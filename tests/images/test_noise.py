"""Noise and errors estimated without a reference, against the real ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.images.judging.noise import estimate_risk, gaussian_sigma, probe

Floats = NDArray[np.float32]


def _clean(side: int = 256) -> Floats:
    """A smooth picture with a few edges, between 0.2 and 0.8."""
    y, x = np.mgrid[:side, :side] / side
    picture = 0.5 + 0.2 * np.sin(9 * x) * np.cos(7 * y) + 0.1 * (x + y > 1)
    return picture.astype(np.float32)[:, :, None]


def _noisy(sigma: float) -> Floats:
    noise = np.random.default_rng(3).normal(0, sigma, (256, 256, 1))
    return (_clean() + noise).astype(np.float32)


def _mean(radius: int) -> Callable[[Floats], Floats]:
    side = 2 * radius + 1

    def denoise(planes: Floats) -> Floats:
        padded = np.pad(planes, ((radius, radius), (radius, radius), (0, 0)), mode="symmetric")
        windows = np.lib.stride_tricks.sliding_window_view(padded, (side, side), axis=(0, 1))
        return np.asarray(windows.mean(axis=(3, 4)), np.float32)

    return denoise


@pytest.mark.parametrize("sigma", [0.02, 0.1])
def test_the_identity_keeps_the_noise(sigma: float) -> None:
    risk = estimate_risk(_noisy(sigma), lambda planes: planes, sigma)
    assert risk.mse == pytest.approx(sigma**2, rel=0.01)


def test_a_constant_is_as_far_as_it_is_from_the_clean_picture() -> None:
    noisy = _noisy(0.05)
    risk = estimate_risk(noisy, lambda planes: np.full_like(planes, 0.4), 0.05)
    assert risk.mse == pytest.approx(float(np.mean((_clean() - 0.4) ** 2)), rel=0.03)


@pytest.mark.parametrize("radius", [1, 2, 4])
def test_estimates_of_means_are_close_to_their_errors(radius: int) -> None:
    noisy, denoise = _noisy(0.05), _mean(radius)
    error = float(np.mean((denoise(noisy).astype(float) - _clean()) ** 2))
    # The mean square of the noise scatters by 1.4e-5 from picture to picture.
    assert estimate_risk(noisy, denoise, 0.05).mse == pytest.approx(error, abs=1.5e-5)
    assert error > 5e-5


def test_a_risk_at_or_below_zero_has_no_psnr() -> None:
    risk = estimate_risk(np.zeros((16, 16, 1), np.float32), lambda planes: planes * 0, 0.1)
    assert risk.mse == pytest.approx(-0.01)
    assert risk.psnr is None


def test_the_psnr_is_that_of_the_error() -> None:
    assert estimate_risk(_noisy(0.1), lambda planes: planes, 0.1).psnr == pytest.approx(20, abs=0.1)


def test_without_noise_there_is_no_estimate() -> None:
    with pytest.raises(ValueError, match="0"):
        estimate_risk(_clean(), lambda planes: planes, 0.0)


def test_signs_are_random_and_repeatable() -> None:
    signs = probe((100, 100))
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert abs(signs.mean()) < 0.05
    assert (signs == probe((100, 100))).all()


@pytest.mark.parametrize("sigma", [0.01, 0.03, 0.1])
def test_gaussian_noise_is_measured(sigma: float) -> None:
    assert gaussian_sigma(_noisy(sigma)) == pytest.approx(sigma, rel=0.06)


def test_the_noise_of_each_channel_counts() -> None:
    three = np.concatenate([_noisy(0.02)] * 2 + [_noisy(0.021)], axis=2)
    assert gaussian_sigma(three) == pytest.approx(0.0203, rel=0.06)


def test_impulses_are_not_gaussian() -> None:
    planes = _noisy(0.02)
    hit = np.random.default_rng(5).random(planes.shape) < 0.04
    planes[hit] = np.where(np.random.default_rng(6).random(hit.sum()) < 0.5, 0.001, 0.999)
    assert gaussian_sigma(planes) is None


def test_clipped_noise_is_not_gaussian() -> None:
    dark = (_noisy(0.05) - 0.4).clip(0, 1)
    assert np.mean(dark == 0) > 0.05
    assert gaussian_sigma(dark) is None
    assert gaussian_sigma((_noisy(0.05) + 0.4).clip(0, 1)) is None


def test_pictures_without_noise_have_none() -> None:
    assert gaussian_sigma(_clean()) is None
    assert gaussian_sigma(_noisy(0.0015)) is None


def test_small_pictures_say_nothing() -> None:
    assert gaussian_sigma(_noisy(0.05)[:7]) is None
    assert gaussian_sigma(_noisy(0.05)[:, :7]) is None
