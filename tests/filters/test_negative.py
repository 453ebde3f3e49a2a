"""The oracle of the negative."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.schema.borders import Border
from tests.oracle import WHITES

CASES: list[dict[str, Any]] = [{}]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    return WHITES[source.dtype.name] - source.astype(np.float64)
