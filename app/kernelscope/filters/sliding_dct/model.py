"""The numbers of the sliding DCT that all levels share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.shared.cosine import SQUARES
from kernelscope.filters.shared.sigma_parameters import shares_of
from kernelscope.filters.shared.stabilise import estimated_sigma
from kernelscope.schema.samples import Pixels, white_level

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
    return 100 * estimated_sigma(pixels, parameters)


def noise(dtype: np.dtype[Any], parameters: Mapping[str, Any]) -> NDArray[np.float32]:
    """Return the threshold of the first pass, and 1 / sigma for the second, in units of a sample.

    Both are those of coefficients as `cosine.forward` scales them.
    Shape (planes, 2, 64), for frequencies 8 x + y; all are 0 where there is no noise to remove.
    """
    percent = parameters["sigma"] * parameters["strength"] / 100
    sigma = percent / 100 * white_level(dtype)
    numbers = np.zeros((3, 2, SIDE * SIDE), np.float32)
    if np.float32(min(_LAMBDA * sigma, _LARGEST)) == 0:
        return numbers
    spectra = parameters.get("spectra", np.ones((3, SIDE, SIDE)))
    sigmas = sigma * np.sqrt(spectra.transpose(0, 2, 1).reshape(len(spectra), -1) * SQUARES)
    sigmas *= np.array(shares_of(parameters, len(sigmas)))[:, None]
    with np.errstate(divide="ignore"):
        numbers[:, 1] = np.minimum(1 / sigmas, _LARGEST)
    numbers[:, 0] = np.minimum(_LAMBDA * sigmas, _LARGEST)
    return numbers
