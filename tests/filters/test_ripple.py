"""The oracle of the ripple."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.filters.spec import Border
from tests.oracle import WHITES

CASES: list[dict[str, Any]] = [{}, {"tick": 23}]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    height, width, channels = source.shape
    y, x = np.mgrid[:height, :width]
    distance = np.hypot(y - (height - 1) / 2, x - (width - 1) / 2) / 10
    rings = np.cos(distance - parameters["tick"] / 7) / (distance + 1)
    return np.repeat(WHITES[source.dtype.name] * (1 + rings)[:, :, None] / 2, channels, axis=2)


def tolerance(parameters: Mapping[str, Any], dtype: np.dtype[Any]) -> float:
    """A cosine of floats may round to the other side of a tie."""
    return 1 if dtype.kind == "u" else 1e-5
