"""The estimated strength of non-local means against the errors that it has in fact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from skimage import data

from kernelscope.filters.gaussian_noise import SPEC as NOISE
from kernelscope.filters.nlm import SPEC
from kernelscope.filters.nlm import strength as nlm_strength
from kernelscope.filters.nlm.strength import estimate_strength, estimated_errors
from kernelscope.filters.shared.flat_noise import flat_sigma
from kernelscope.filters.shared.non_local import patch_profile
from tests.filters import apply
from tests.noise import add_noise

pytestmark = pytest.mark.slow


def middle(name: str, side: int) -> NDArray[np.uint8]:
    image = np.atleast_3d(getattr(data, name)())
    top, left = ((n - side) // 2 for n in image.shape[:2])
    return np.ascontiguousarray(image[top : top + side, left : left + side])


def squared_error(image: NDArray[Any], clean: NDArray[Any]) -> float:
    return float(np.mean((image.astype(float) - clean) ** 2))


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"patch": 3, "search_radius": 4, "weights": "uniform"},
        {"colour": "separate", "patch": 5, "search_radius": 5},
        {"search": "image", "patch": 3},
    ],
)
@pytest.mark.parametrize("colours", [1, 3])
def test_errors_are_known_without_the_clean_picture(
    parameters: dict[str, Any], colours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At all pixels, of noise of known sigma, from weak strengths to ones that are too strong."""
    monkeypatch.setattr(nlm_strength, "_WORK", 1e12)
    clean = middle("astronaut", 64)[:, :, :colours].astype(np.float32) / 255
    sigma = 0.06
    noise = np.random.default_rng(colours).standard_normal(clean.shape, np.float32)
    noisy = clean + np.float32(sigma) * noise
    values = SPEC.validate(parameters)
    unit = 2 * sigma**2 * float(patch_profile(values).sum() ** 2)
    strengths = unit * np.array([0.1, 0.4, 1.0, 3.0])
    found = estimated_errors(noisy, values, sigma, strengths)
    actual = [
        squared_error(apply(SPEC, noisy, {**parameters, "filter_sigma": each}), clean)
        for each in strengths.tolist()
    ]
    # The mean of 4096 squares of noise is itself off by 2 % of sigma squared.
    noise_power = float(np.mean((noisy - clean) ** 2))
    np.testing.assert_allclose(
        found + noise_power - sigma**2, actual, rtol=0.06, atol=0.03 * sigma**2
    )


@pytest.mark.parametrize("parameters", [{}, {"search": "image", "patch": 3}])
def test_a_part_of_pixels_and_candidates_says_the_same(
    parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    noisy = add_noise(NOISE, middle("camera", 128), variance=0.004)
    values = SPEC.validate(parameters)
    strengths = np.array([0.02, 0.05, 0.1])
    monkeypatch.setattr(nlm_strength, "_PIXELS", 128**2)
    monkeypatch.setattr(nlm_strength, "_WORK", 1e10)
    much = estimated_errors(noisy, values, 0.063, strengths)
    monkeypatch.setattr(nlm_strength, "_CANDIDATES", 128 * 64)
    monkeypatch.setattr(nlm_strength, "_WORK", 1e9)
    less = estimated_errors(noisy, values, 0.063, strengths)
    # Candidates that were not drawn add an error of their own, to all strengths alike.
    np.testing.assert_allclose(less / less.mean(), much / much.mean(), rtol=0.15)
    np.testing.assert_allclose(less, much, rtol=0.4)


@pytest.mark.parametrize("name", ["camera", "coins", "astronaut"])
@pytest.mark.parametrize("variance", [0.001, 0.01])
def test_it_is_close_to_the_best(name: str, variance: float) -> None:
    clean = middle(name, 128)
    noisy = add_noise(NOISE, clean, variance=variance)
    strength = estimate_strength(noisy, SPEC.defaults())

    def error(filter_sigma: float) -> float:
        return squared_error(apply(SPEC, noisy, {"filter_sigma": filter_sigma}), clean)

    best = min(error(strength * factor) for factor in (0.25, 0.4, 0.6, 0.8, 1.25, 1.7, 2.5, 4))
    assert error(strength) < best * 10**0.05  # 0.5 dB


@pytest.mark.parametrize(("name", "least", "most"), [("camera", 0.94, 1.1), ("coins", 0.94, 1.1)])
@pytest.mark.parametrize("variance", [0.0004, 0.001, 0.004, 0.015])
def test_noise_is_measured_beside_detail(
    name: str, least: float, most: float, variance: float
) -> None:
    noisy = add_noise(NOISE, middle(name, 256), variance=variance)
    assert least < flat_sigma(noisy) / variance**0.5 < most


def test_noise_alone_is_measured_right() -> None:
    noise = np.random.default_rng(0).normal(0.5, 0.1, (301, 303, 3))
    assert flat_sigma(noise.astype(np.float32)) == pytest.approx(0.1, rel=0.015)
    assert flat_sigma((noise * 255).astype(np.uint8)) == pytest.approx(0.1, rel=0.03)


def test_places_without_noise_do_not_count() -> None:
    """Black, white, or evenly grey."""
    noisy = add_noise(NOISE, np.full((256, 256, 1), 128, np.uint8), variance=0.004)
    noisy[:64], noisy[64:100], noisy[100:130] = 0, 255, 77
    assert flat_sigma(noisy) == pytest.approx(0.004**0.5, rel=0.03)


def test_small_pictures_have_an_estimate() -> None:
    for shape in ((1, 1, 1), (3, 50, 1), (40, 9, 3)):
        pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
        for search in ("window", "image"):
            strength = estimate_strength(pixels, SPEC.validate({"search": search}))
            assert np.isfinite(strength)
            assert strength >= 0
