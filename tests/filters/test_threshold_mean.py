"""The mean with threshold against its definition."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.filters.threshold_mean import SPEC
from kernelscope.images.image import DTYPES
from kernelscope.schema.borders import Border
from kernelscope.schema.levels import Level
from tests.filters import apply
from tests.oracle import windows

CASES: list[dict[str, Any]] = [
    {"size": 3, "threshold": 0.0},
    {"size": 3, "threshold": 60.0},
    {"size": 7, "threshold": 12.5},
    {"size": 31, "threshold": 20.0},
]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    size = parameters["size"]
    cells, counted = windows(source, size // 2, border)
    total, count = cells.sum((-2, -1)), counted.sum((-2, -1))
    pixel = cells[..., size // 2, size // 2]
    white = 1 if source.dtype.kind == "f" else np.iinfo(source.dtype).max
    # As a fraction: the thresholds above times white times a count are whole 510ths.
    reach = Fraction(parameters["threshold"]) * white
    difference = np.abs(total - count * pixel) * (255 * reach.denominator)
    return np.where(difference <= reach.numerator * count, total / count, pixel)


@pytest.mark.slow
@pytest.mark.parametrize("level", SPEC.levels("cpu"))
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_threshold_itself_is_near_enough(dtype: np.dtype[Any], level: Level) -> None:
    unit = 1 / 255 if dtype.kind == "f" else np.iinfo(dtype).max // 255
    source = np.zeros((3, 3, 1))
    source[1, 1] = 45 * unit  # the mean is 5, 40 away
    for threshold, expected in ((40.01, 5), (40, 5), (39.99, 45)):
        if dtype.kind == "f" and threshold == 40:
            continue  # 45 / 255 is not a float
        output = apply(SPEC, source.astype(dtype), {"threshold": threshold}, level=level.id)
        assert output[1, 1, 0] == pytest.approx(expected * unit)
