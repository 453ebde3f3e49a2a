"""Gaussian noise against NumPy's numbers, and against the moments that it should have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.filters.gaussian_noise import SPEC
from kernelscope.schema.borders import Border
from tests.noise import add_noise, draw, even, white_of

CASES: list[dict[str, Any]] = [
    {},
    {"variance": 0.0},
    {"variance": 1.0, "seed": 2**31 - 1},
    {"sigma": 0.1, "seed": 1},
]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    sigma = parameters["sigma"] or parameters["variance"] ** 0.5
    numbers = draw(
        source, parameters["seed"], lambda stream, row: stream.standard_normal(row.shape)
    )
    return source + sigma * white_of(source) * numbers


@pytest.mark.parametrize(
    ("values", "variance"), [({}, 0.001), ({"variance": 0.04}, 0.04), ({"sigma": 0.3}, 0.09)]
)
def test_moments(values: dict[str, Any], variance: float) -> None:
    noise = add_noise(SPEC, even(0.5), **values) - np.float64(0.5)
    n = noise.size
    # Five standard errors each: of the mean, the variance, the skewness and the kurtosis.
    assert abs(noise.mean()) < 5 * (variance / n) ** 0.5
    assert abs(noise.var() / variance - 1) < 5 * (2 / n) ** 0.5
    standard = noise / variance**0.5
    assert abs((standard**3).mean()) < 5 * (15 / n) ** 0.5
    assert abs((standard**4).mean() - 3) < 5 * (96 / n) ** 0.5


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_amounts_are_fractions_of_white(dtype: Any) -> None:
    """The variance on top of N's is a twelfth of a level squared, from rounding."""
    white = np.iinfo(dtype).max
    noise = add_noise(SPEC, even(white // 2, dtype)).astype(float) - white // 2
    assert noise.var() == pytest.approx(0.001 * white**2 + 1 / 12, rel=0.015)


def test_floats_are_not_clipped_and_integers_are() -> None:
    noisy = add_noise(SPEC, even(0.0), sigma=0.1)
    assert noisy.min() < -0.3
    assert noisy.mean() == pytest.approx(0, abs=1e-3)
    assert add_noise(SPEC, even(255, np.uint8), sigma=0.1).max() == 255
    dark = add_noise(SPEC, even(0, np.uint8), sigma=0.1)
    # Half of it is cut off at zero, the other half has the mean sigma / sqrt(2 pi).
    assert dark.mean() == pytest.approx(25.5 / (2 * np.pi) ** 0.5, rel=0.02)
