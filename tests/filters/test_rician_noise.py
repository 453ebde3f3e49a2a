"""Rician noise against NumPy's numbers, and against the moments of its distribution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from kernelscope.filters.rician_noise import SPEC
from kernelscope.schema.borders import Border
from tests.noise import add_noise, draw, even, white_of

CASES: list[dict[str, Any]] = [
    {},
    {"sigma": 0.0},
    {"sigma": 0.2, "seed": 1},
    {"sigma": 2.0, "seed": 2**31 - 1},
]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    sigma = parameters["sigma"] * white_of(source)
    pairs = draw(
        source, parameters["seed"], lambda stream, row: stream.standard_normal((*row.shape, 2))
    )
    real, imaginary = source + sigma * pairs[..., 0], sigma * pairs[..., 1]
    return np.abs(real + 1j * imaginary)


@pytest.mark.parametrize("signal", [0.0, 0.1, 0.5])
def test_distribution(signal: float) -> None:
    """SciPy's distribution; without a signal it is Rayleigh's, whose mean is sigma 1.25."""
    sigma = 0.1
    noisy = add_noise(SPEC, even(signal), sigma=sigma).astype(float)
    wanted = stats.rice(signal / sigma, scale=sigma)
    mean, variance, _, excess = (float(moment) for moment in wanted.stats("mvsk"))
    assert abs(noisy.mean() - mean) < 5 * (variance / noisy.size) ** 0.5
    assert abs(noisy.var() / variance - 1) < 5 * ((excess + 2) / noisy.size) ** 0.5
    assert noisy.min() >= 0
    assert stats.kstest(noisy.ravel()[:20_000], wanted.cdf).pvalue > 0.001
