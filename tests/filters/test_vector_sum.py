"""The oracle of the vector sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.filters.vector_sum import SPEC
from kernelscope.schema.borders import Border
from tests.filters import apply

CASES: list[dict[str, Any]] = [{}]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    vectors = source.astype(np.float64)
    return (vectors + vectors[:, ::-1]) / 2


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16], ids=["uint8", "uint16"])
def test_halves_go_to_even_up_to_white(dtype: type[np.integer[Any]]) -> None:
    white = int(np.iinfo(dtype).max)
    row = [white, white - 1, white - 2, 0, 1, 2, 1, white, white - 1, white - 1]
    source = np.array([row], dtype)[:, :, None]
    output = apply(SPEC, source, {}, level="serial")
    sums = np.array(row) + np.array(row)[::-1]
    assert (sums % 4 == 1).any()  # ties on both sides of an even number
    assert (sums % 4 == 3).any()
    np.testing.assert_array_equal(output[0, :, 0], np.rint(sums / 2).astype(dtype))


def test_the_sum_of_two_large_floats_is_finite() -> None:
    source = np.full((1, 2, 1), np.finfo(np.float32).max)
    output = apply(SPEC, source, {}, level="serial")
    np.testing.assert_array_equal(output, source)
