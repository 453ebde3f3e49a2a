"""Salt and pepper noise against NumPy's numbers, and against its density."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.salt_and_pepper_noise import SPEC
from kernelscope.schema.borders import Border
from tests.noise import add_noise, draw, even, white_of
from tests.pairs import together

CASES: list[dict[str, Any]] = [
    {},
    {"density": 0.0},
    {"density": 0.5, "seed": 1},
    {"density": 1.0, "seed": 2**31 - 1},
]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    density = parameters["density"]
    chance = draw(source, parameters["seed"], lambda stream, row: stream.random_sample(row.shape))
    noisy = np.where(chance < density, white_of(source), source)
    return np.where(chance < density / 2, 0, noisy)


@together("density", [0.01, 0.05, 0.4])
@together("dtype", [np.uint8, np.uint16, np.float32])
def test_density(density: float, dtype: Any) -> None:
    source = even(0.4 if dtype == np.float32 else 100, dtype)
    noisy = add_noise(SPEC, source, density=density)
    white = 1 if dtype == np.float32 else np.iinfo(dtype).max
    half = density / 2
    margin = 5 * (half * (1 - half) / noisy.size) ** 0.5
    assert abs((noisy == 0).mean() - half) < margin
    assert abs((noisy == white).mean() - half) < margin
    assert set(np.unique(noisy)) == {noisy.dtype.type(0), source[0, 0, 0], noisy.dtype.type(white)}
