"""Greyscale against the formula of ITU-R BT.601."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.filters.spec import Border

CASES: list[dict[str, Any]] = [{}]

WEIGHTS = np.array([299, 587, 114])


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    if source.shape[2] == 1:
        return source
    # Thousandths are divided last, so that ties are exact.
    exact = source.astype(np.float64) @ WEIGHTS.astype(np.float64) / 1000
    return exact[:, :, None]
