"""Whether what a denoiser removed is noise alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from kernelscope.images.judging.whiteness import (
    picture_correlation,
    removed,
    removed_correlation,
    structure_notice,
)
from tests.pairs import together

F = np.float32


def head(seed: int = 1) -> NDArray[np.float32]:
    structure = gaussian_filter(np.random.default_rng(seed).normal(0, 1, (40, 50, 60)), 1.5)
    return (300 + 40 * structure / structure.std()).astype(F)


def test_noise_alone_is_white() -> None:
    noise = np.random.default_rng(2).normal(0, 10, (40, 50, 60))
    found = removed_correlation((head() + noise).astype(F), head())
    assert found == pytest.approx(0, abs=0.02)
    assert structure_notice(found, "head") == ""


def test_structure_that_is_removed_is_reported() -> None:
    noise = np.random.default_rng(2).normal(0, 10, (40, 50, 60))
    noisy = (head() + noise).astype(F)
    smooth = gaussian_filter(noisy, 2)
    rest = (noisy - smooth)[smooth > smooth.mean()]
    assert rest.std() > 15
    found = removed_correlation(noisy, smooth)
    assert found is not None
    assert found > 0.5
    assert f"correlation {found:.2f}" in structure_notice(found, "head")


@pytest.mark.parametrize("exponent", [-66, 66])
def test_scale_does_not_matter(exponent: int) -> None:
    noisy = head() + np.random.default_rng(2).normal(0, 10, (40, 50, 60)).astype(F)
    smooth = gaussian_filter(noisy, 2)
    factor = F(2.0**exponent)
    assert removed_correlation(noisy * factor, smooth * factor) == pytest.approx(
        removed_correlation(noisy, smooth)
    )


def test_nothing_removed_or_nothing_there() -> None:
    for volume in (np.zeros((9, 9, 9), F), np.full((20, 30, 30), 7, F), head()[:1, :1, :1], head()):
        assert removed_correlation(volume, volume) is None


def test_the_figure_is_that_of_the_pairs_inside() -> None:
    noise = gaussian_filter(np.random.default_rng(3).normal(0, 10, (40, 50, 60)), (0.4, 0, 0))
    part = np.s_[4:36, 5:45, 5:55]  # so small that all of it is looked at
    noisy, smooth = (head() + 30 + noise)[part].astype(F), head()[part]
    removed, inside = noisy - smooth.astype(np.float64), smooth > smooth.mean()
    both = inside[:-1] & inside[1:]
    pairs = np.corrcoef(removed[:-1][both], removed[1:][both])[0, 1]
    assert pairs > 0.05
    assert removed_correlation(noisy, smooth) == pytest.approx(pairs, abs=1e-3)


def test_an_offset_that_was_removed_has_no_correlation() -> None:
    lower = np.round(head())
    assert removed_correlation(lower + 1, lower) is None
    assert removed_correlation(lower.astype(np.float64) + 0.1, lower.astype(np.float64)) is None


@together(
    ("found", "words"),
    [
        (0.34, "correlated noise or detail"),
        (0.2, "correlated noise or detail"),
        (0.18, "white noise and perhaps detail"),
        (0.09, "white noise"),
        (-0.17, "white noise"),
        (-0.26, "a part of the noise"),
    ],
)
def test_the_correlation_in_words(found: float, words: str) -> None:
    assert removed(found) == words


def photo() -> NDArray[np.float32]:
    """Return two channels with edges."""
    y, x = np.mgrid[:200, :300]
    return np.stack([((y // 20 + x // 30) % 2) * 0.6 + 0.2, (y > x) * 0.5 + 0.1], axis=2).astype(F)


def drawn(sigma: float = 0.05) -> NDArray[np.float64]:
    return np.random.default_rng(4).normal(0, sigma, photo().shape)


def test_white_noise_removed_from_a_picture() -> None:
    assert picture_correlation(photo() + drawn(), photo()) == pytest.approx(0, abs=0.015)


@pytest.mark.parametrize("axis", [0, 1])
def test_correlated_noise_removed_from_a_picture(axis: int) -> None:
    """Of sums of two neighbours each, one of two numbers is common."""
    noise = drawn() + np.roll(drawn(), 1, axis)
    assert picture_correlation(photo() + noise, photo()) == pytest.approx(0.5, abs=0.02)


def test_edges_removed_with_the_noise() -> None:
    noisy = photo() + drawn()
    removed = picture_correlation(noisy, gaussian_filter(noisy, (3, 3, 0)))
    assert removed is not None
    assert removed > 0.3


def test_noise_that_stayed() -> None:
    noisy = photo() + drawn()
    left = photo() + gaussian_filter(drawn(), (0.8, 0.8, 0))
    removed = picture_correlation(noisy, left)
    assert removed is not None
    assert removed < -0.2


def test_one_channel_is_enough_and_a_rim_may_be_missing() -> None:
    noise = drawn()
    noise[..., 1] += np.roll(noise[..., 1], 1, 0)
    noisy = photo() + noise
    whole = picture_correlation(noisy, photo())
    assert whole == pytest.approx(0.5, abs=0.02)
    assert picture_correlation(noisy, photo()[5:-5, 5:-5]) == pytest.approx(whole, abs=0.02)


@together("shape", [(1, 1, 1), (20, 30, 3), (0, 5, 1), (1, 5000, 1)])
def test_small_pictures_and_equal_ones(shape: tuple[int, ...]) -> None:
    draws = np.random.default_rng(4).random(shape)
    found = picture_correlation(draws, np.zeros(shape))
    assert found is None if draws.size < 2000 else found == pytest.approx(0, abs=0.05)
    assert picture_correlation(draws, draws) is None


def test_bytes_and_a_large_picture() -> None:
    noisy = np.tile(np.clip((photo() + drawn()) * 255, 0, 255).astype(np.uint8), (5, 5, 1))
    clean = np.tile((photo() * 255).astype(np.uint8), (5, 5, 1))
    assert picture_correlation(noisy, clean) == pytest.approx(0, abs=0.03)
