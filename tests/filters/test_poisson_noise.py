"""Poisson noise against NumPy's numbers, and against the distribution of photons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.filters.poisson_noise import SPEC
from kernelscope.schema.borders import Border
from tests.noise import add_noise, draw, even, white_of
from tests.pairs import together

CASES: list[dict[str, Any]] = [
    {},
    {"photons": 1},
    {"photons": 100, "seed": 1},  # ties: a photon is 2.55 of 8 bit
    {"photons": 1_000_000, "seed": 2**31 - 1},
]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    photons, white = parameters["photons"], white_of(source)
    counts = draw(
        source,
        parameters["seed"],
        lambda stream, row: stream.poisson(np.maximum(row, 0) * photons / white),
    )
    return counts * white / photons


@together("photons", [4, 255, 10_000])
@together("light", [0.1, 0.5])
def test_mean_and_variance_are_the_same_number_of_photons(photons: int, light: float) -> None:
    counts = add_noise(SPEC, even(light), photons=photons).astype(float) * photons
    expected = photons * light
    n = counts.size
    assert abs(counts.mean() - expected) < 5 * (expected / n) ** 0.5
    assert abs(counts.var() / expected - 1) < 5 * ((2 + 1 / expected) / n) ** 0.5
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-3)


def test_a_byte_is_its_own_count() -> None:
    noise = add_noise(SPEC, even(50, np.uint8))
    assert noise.var() == pytest.approx(50, rel=0.02)
    assert not add_noise(SPEC, even(0, np.uint8)).any()


@pytest.mark.parametrize(("sample", "wanted"), [(-3.0, 0.0), (3e38, 3e38), (1e12, 1e12)])
def test_what_cannot_be_counted(sample: float, wanted: float) -> None:
    """Less than no light is none; the noise of very much light is below the precision."""
    noisy = add_noise(SPEC, even(sample, side=8), photons=1_000_000)
    np.testing.assert_allclose(noisy, np.float32(wanted), rtol=1e-6)
