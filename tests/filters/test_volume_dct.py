"""The sliding DCT of volumes; its quality is with that of collaborative filtering."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.fft import dct, idct

from kernelscope.filters.volume_dct import SPEC
from tests.filters import apply
from tests.filters.volume_noise import of_unit_noise
from tests.filters.volumes import run

pytestmark = pytest.mark.slow

CASES: list[dict[str, Any]] = [
    {"noise": noise, "sigma_from": sigma_from}
    | ({"sigma": (15.0,)} if sigma_from == "given" else {})
    for noise, sigma_from in itertools.product(
        ("auto", "rician", "gaussian", "camera"), ("given", "volume", "adaptive")
    )
] + [
    {"sigma": (20.0,), "sigma_from": "given", "strength": 250.0},
    {"sigma": (20.0,), "sigma_from": "given", "strength": 0.0},
]

AXES = (3, 4, 5)


def blocks(volume: NDArray[Any]) -> NDArray[Any]:
    """Return the coefficients of the block at every place."""
    found = np.lib.stride_tricks.sliding_window_view(volume, (4, 4, 4))
    for axis in AXES:
        found = dct(found, axis=axis, norm="ortho")
    return found


def mean_of(spectra: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    for axis in AXES:
        spectra = idct(spectra, axis=axis, norm="ortho")
    spectra = spectra * weights[..., None, None, None]
    sides = [n - 3 for n in weights.shape]
    top, bottom = np.zeros(sides), np.zeros(sides)
    for cell in np.ndindex(4, 4, 4):
        part = tuple(slice(3 - i, 3 - i + n) for i, n in zip(cell, sides, strict=True))
        top += spectra[(*part, *cell)]
        bottom += weights[part]
    return top / bottom


def passes(volume: NDArray[Any], sigma: float) -> NDArray[Any]:
    wide = np.pad(volume, 6, mode="symmetric")
    noisy = blocks(wide)
    keep = np.abs(noisy) > 3 * sigma
    keep[..., 0, 0, 0] = True
    basic = mean_of(noisy * keep, 1 / keep.sum(axis=AXES))
    squares = blocks(basic) ** 2
    gains = squares / (squares + sigma**2)
    gains[..., 0, 0, 0] = 1
    return mean_of(noisy[3:-3, 3:-3, 3:-3] * gains, 1 / (gains**2).sum(axis=AXES))


def oracle(source: NDArray[Any], parameters: Mapping[str, Any]) -> NDArray[Any]:
    sigma = parameters["strength"] / 100
    if sigma == 0:
        return source
    return of_unit_noise(source, parameters, lambda volume: passes(volume, sigma))


def test_gaussian_noise_knows_no_zero() -> None:
    source = np.random.default_rng(6).uniform(50, 100, (7, 9, 8)).astype(np.float32)
    actual = run(source - 75, SPEC.id, sigma=9.0)
    wanted = run(source, SPEC.id, sigma=9.0, noise="gaussian") - 75
    np.testing.assert_allclose(actual, wanted, atol=2e-4)


def test_a_strength_above_all_voxels_leaves_means() -> None:
    source = np.random.default_rng(4).uniform(0, 1, (9, 10, 11, 1)).astype(np.float32)
    values = {"noise": "gaussian", "sigma": (1e6,), "strength": 1000.0}
    result = apply(SPEC, source, values | {"sigma_from": "given"})
    k = 4 - np.abs(np.arange(-3, 4))  # twice a mean of four
    wide = np.pad(source[..., 0].astype(float), 3, mode="symmetric")
    view = np.lib.stride_tricks.sliding_window_view(wide, (7, 7, 7))
    wanted = np.einsum("zyxabc,a,b,c->zyx", view, k, k, k) / 4**6
    np.testing.assert_allclose(result[..., 0], wanted, rtol=1e-4)
