"""Minimum against NumPy's windows; `test_maximum` has both against SciPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.schema.borders import Border
from tests.oracle import windows

CASES: list[dict[str, Any]] = [{"size": 3}, {"size": 7}]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    cells, counted = windows(source, parameters["size"] // 2, border)
    return np.where(counted, cells, cells.max()).min(axis=(-2, -1))
