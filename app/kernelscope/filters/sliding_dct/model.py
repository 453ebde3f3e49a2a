"""The numbers of the sliding DCT that all levels share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.flat_noise import flat_sigma
from kernelscope.spec.samples import Pixels, white_level

SIDE = 8
"""Of a block."""

REACH = SIDE - 1
"""How far a pass looks: a pixel's blocks reach so far on each side of it."""

MARGIN = 2 * REACH
"""The second pass looks at what the first one computes."""

_LAMBDA = 2.7
"""Coefficients of up to so many sigma are noise."""

_LARGEST = 3e38


def radius(parameters: Mapping[str, Any]) -> int:
    return MARGIN


def estimate_sigma(pixels: Pixels, parameters: Mapping[str, Any]) -> float:
    return 100 * flat_sigma(pixels)


def noise(dtype: np.dtype[Any], parameters: Mapping[str, Any]) -> NDArray[np.float32]:
    """Return the threshold of the first pass, and 1 / sigma for the second, in units of a sample.

    Both are 0 where there is no noise to remove.
    """
    percent = parameters["sigma"] * parameters["strength"] / 100
    sigma = percent / 100 * white_level(dtype)
    threshold = np.float32(min(_LAMBDA * sigma, _LARGEST))
    if threshold == 0:
        return np.zeros(2, np.float32)
    return np.array([threshold, min(1 / sigma, _LARGEST)], np.float32)
