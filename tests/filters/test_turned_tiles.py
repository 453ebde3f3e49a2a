"""The oracle of the turned tiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.schema.borders import Border

CASES: list[dict[str, Any]] = [{}]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    turned = np.empty_like(source)
    for top in range(0, source.shape[0], 16):
        for left in range(0, source.shape[1], 16):
            tile = np.s_[top : top + 16, left : left + 16]
            turned[tile] = source[tile][::-1, ::-1]
    return turned.astype(np.float64)
