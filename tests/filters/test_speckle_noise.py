"""Speckle noise against NumPy's numbers, and against the moments that it should have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.speckle_noise import SPEC
from kernelscope.schema.borders import Border
from tests.noise import add_noise, draw, even
from tests.pairs import together

CASES: list[dict[str, Any]] = [
    {},
    {"variance": 0.0},
    {"variance": 0.25, "seed": 1},
    {"variance": 1.0, "seed": 2**31 - 1},
]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    sigma = parameters["variance"] ** 0.5
    numbers = draw(
        source, parameters["seed"], lambda stream, row: stream.standard_normal(row.shape)
    )
    exact = source.astype(np.float64)
    return exact + exact * (sigma * numbers)


@together("variance", [0.01, 0.16])
@together("signal", [0.2, 0.5, -2.0])
def test_noise_grows_with_the_sample(signal: float, variance: float) -> None:
    noise = add_noise(SPEC, even(signal), variance=variance) - np.float64(np.float32(signal))
    wanted = variance * signal**2
    assert abs(noise.mean()) < 5 * (wanted / noise.size) ** 0.5
    assert abs(noise.var() / wanted - 1) < 5 * (2 / noise.size) ** 0.5


def test_black_stays_black() -> None:
    assert not add_noise(SPEC, even(0, np.uint8), variance=1.0).any()
