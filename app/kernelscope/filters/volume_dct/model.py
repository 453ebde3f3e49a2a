"""The numbers of the sliding DCT of volumes that all levels share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelscope.filters.shared.volume_noise import removed_sigma

SIDE = 4
"""Of a block."""

REACH = SIDE - 1
"""How far a pass looks: a voxel's blocks reach so far on each side of it."""

MARGIN = 2 * REACH
"""The second pass looks at what the first one computes."""

_LAMBDA = 3.0
"""Coefficients of up to so many sigma are noise. The paper's 2.7 leaves more of it: 0.03 to 0.20 dB
in 16 trials, of three other parts of the head and a phantom with noise of 1, 3, 5 and 9 %."""

_LARGEST = 3e38


def radius(parameters: Mapping[str, Any]) -> int:
    return MARGIN


def numbers(parameters: Mapping[str, Any]) -> tuple[np.float32, np.float32]:
    """Return the threshold of the first pass, and 1 / sigma for the second."""
    sigma = removed_sigma(parameters)
    return np.float32(_LAMBDA * sigma), np.float32(min(1 / max(sigma, 1e-38), _LARGEST))
