"""Weighted mean against SciPy's binomial coefficients over NumPy's windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb

from kernelscope.filters.weighted_mean import SPEC
from kernelscope.schema.borders import Border
from tests.filters import apply
from tests.oracle import windows
from tests.pairs import together

CASES: list[dict[str, Any]] = [{"size": size} for size in (3, 9, 15)]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    size = parameters["size"]
    row = comb(size - 1, np.arange(size)).astype(np.int64)
    weights = np.outer(row, row)
    cells, counted = windows(source, size // 2, border)
    exact: NDArray[Any] = np.einsum("...st,st", cells, weights) / np.einsum(
        "...st,st", counted, weights
    )
    return exact


@together("dtype", [np.uint8, np.uint16])
@together("size", range(3, 17, 2))
def test_levels_agree_for_every_size(size: int, dtype: type[Any]) -> None:
    source = np.random.default_rng(size).integers(0, np.iinfo(dtype).max + 1, (20, 70, 3))
    source[:, :30] = np.iinfo(dtype).max
    source = source.astype(dtype)
    for border in (Border.MIRROR, Border.REDUCE):
        serial = apply(SPEC, source, {"size": size}, border, "serial")
        np.testing.assert_array_equal(apply(SPEC, source, {"size": size}, border), serial)
        assert (serial[:, :15] == np.iinfo(dtype).max).all()


@together("size", range(3, 17, 2))
@together("border", [Border.REFLECT, Border.CONSTANT, Border.VALID, Border.WRAP])
def test_bytes_near_ties(size: int, border: Border) -> None:
    """Levels a few apart: totals crowd around ties, where each bit of a column counts."""
    random = np.random.default_rng(size)
    for low, high, shape in ((0, 2, (24, 61, 1)), (254, 256, (24, 61, 1)), (127, 129, (17, 16, 3))):
        source = random.integers(low, high, shape).astype(np.uint8)
        serial = apply(SPEC, source, {"size": size}, border, "serial")
        np.testing.assert_array_equal(apply(SPEC, source, {"size": size}, border), serial)


def drawn_to_a_tie(size: int) -> NDArray[np.uint8]:
    """Return a window whose mean is 1/2 above an even number, exactly."""
    row = comb(size - 1, np.arange(size), exact=False).astype(np.int64)
    weights = np.outer(row, row)
    window = np.full((size, size), 100, np.uint8)
    rest = int(weights.sum()) // 2
    for place in np.argsort(-weights.ravel()):
        y, x = divmod(int(place), size)
        more = min(rest // int(weights[y, x]), 100)
        window[y, x] += more
        rest -= more * int(weights[y, x])
    assert rest == 0
    return window


@together("size", range(3, 17, 2))
def test_a_single_level_of_a_corner_decides_a_tie(size: int) -> None:
    """The corners have weight 1, in the lowest of all bits."""
    window = drawn_to_a_tie(size)
    for change, wanted in ((0, 100), (1, 101), (-1, 100)):
        source = np.full((size, size + 30, 1), 100, np.uint8)
        source[:, 9 : 9 + size, 0] = window
        source[0, 9] += np.uint8(change % 256)
        output = apply(SPEC, source, {"size": size}, Border.VALID)
        assert output[0, 9, 0] == wanted, change
