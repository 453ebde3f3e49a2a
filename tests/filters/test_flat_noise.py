"""The noise that is measured in a picture against the noise that was added."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from skimage import data

from kernelscope.filters.gaussian_noise import SPEC as NOISE
from kernelscope.filters.shared.flat_noise import flat_sigma
from tests.noise import add_noise

pytestmark = pytest.mark.slow


def middle(name: str, side: int) -> NDArray[np.uint8]:
    image = np.atleast_3d(getattr(data, name)())
    top, left = ((n - side) // 2 for n in image.shape[:2])
    return np.ascontiguousarray(image[top : top + side, left : left + side])


@pytest.mark.parametrize(("name", "least", "most"), [("camera", 0.94, 1.1), ("coins", 0.94, 1.1)])
@pytest.mark.parametrize("variance", [0.0004, 0.001, 0.004, 0.015])
def test_noise_is_measured_beside_detail(
    name: str, least: float, most: float, variance: float
) -> None:
    noisy = add_noise(NOISE, middle(name, 256), variance=variance)
    assert least < flat_sigma(noisy) / variance**0.5 < most


@pytest.mark.parametrize(
    ("name", "sigma", "least", "most"),
    [
        ("grass", 5, 0.85, 1.15),  # 1.90 by the flattest blocks, as no block is flat
        ("grass", 10, 0.95, 1.1),
        # 1.033 and 1.036 by the curve: there is more noise than texture, which is everywhere
        ("grass", 20, 0.98, 1.02),
        ("grass", 30, 0.98, 1.02),
        ("coins", 5, 0.955, 1.04),  # 0.938 without the curve, which counts as much as the others
        ("gravel", 5, 0.95, 1.08),
        ("chelsea", 5, 0.93, 1.05),
        ("brick", 20, 0.97, 1.04),
        ("page", 50, 0.97, 1.03),
        ("moon", 30, 0.97, 1.03),
    ],
)
def test_noise_is_measured_in_texture(name: str, sigma: int, least: float, most: float) -> None:
    clean = middle(name, 256) if name != "page" else middle(name, 190)
    noise = np.random.default_rng(sigma).normal(0, sigma, clean.shape)
    assert least < flat_sigma(((clean + noise) / 255).astype(np.float32)) * 255 / sigma < most


@pytest.mark.parametrize("factor", [1e-20, 1e-3, 1e3, 1e20, 1e35])
def test_the_estimate_follows_the_unit(factor: float) -> None:
    noise = np.random.default_rng(0).normal(0.5, 0.1, (128, 128, 1)).astype(np.float32)
    found = flat_sigma(noise * np.float32(factor))
    assert found == pytest.approx(factor * flat_sigma(noise), rel=1e-4)


@pytest.mark.parametrize("value", [0, 0.3, np.nan, np.inf])
def test_nothing_is_no_noise(value: float) -> None:
    assert flat_sigma(np.full((64, 64, 2), value, np.float32)) == 0


def test_noise_alone_is_measured_right() -> None:
    noise = np.random.default_rng(0).normal(0.5, 0.1, (301, 303, 3))
    assert flat_sigma(noise.astype(np.float32)) == pytest.approx(0.1, rel=0.015)
    assert flat_sigma((noise * 255).astype(np.uint8)) == pytest.approx(0.1, rel=0.03)


def test_places_without_noise_do_not_count() -> None:
    """Black, white, or evenly grey."""
    noisy = add_noise(NOISE, np.full((256, 256, 1), 128, np.uint8), variance=0.004)
    noisy[:64], noisy[64:100], noisy[100:130] = 0, 255, 77
    assert flat_sigma(noisy) == pytest.approx(0.004**0.5, rel=0.03)


def test_places_without_a_number_do_not_count() -> None:
    noise = np.random.default_rng(0).normal(0.5, 0.1, (128, 128, 1)).astype(np.float32)
    noise[40:50, 60:70], noise[100, 3] = np.nan, np.inf
    assert flat_sigma(noise) == pytest.approx(0.1, rel=0.03)


@pytest.mark.parametrize("white", [1.0, 3e-5, 4095.0])
def test_clipped_floats_have_the_noise_that_was_cut_off(white: float) -> None:
    """Half of the noise of black places is gone: a quarter of the picture is black here."""
    clean = data.astronaut()[:200, 150:350, :1] / 255
    clean[:100, :100] = 0
    noise = np.random.default_rng(4).normal(0, 20 / 255, clean.shape)
    source = (np.clip(clean + noise, 0, 1) * white).astype(np.float32)
    assert flat_sigma(source) == pytest.approx(20 / 255 * white, rel=0.05)
