"""The oracle of the dot product."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.dot_product import SPEC
from kernelscope.schema.borders import Border
from tests.filters import apply
from tests.oracle import WHITES

CASES: list[dict[str, Any]] = [{}]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    white = WHITES[source.dtype.name]
    means = (source.astype(np.float64) ** 2).sum(axis=1, keepdims=True) / (source.shape[1] * white)
    return np.broadcast_to(means, source.shape)


def test_sums_of_long_white_rows_are_exact() -> None:
    """A row of 16-bit white has squares beyond 2^32 from the second sample on."""
    source = np.full((1, 100_003, 1), 65535, np.uint16)
    source[0, 0] = 0
    output = apply(SPEC, source, {}, level="serial")
    exact = round(65535 * 100_002 / 100_003)
    assert set(output.ravel().tolist()) == {exact}
