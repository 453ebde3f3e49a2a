"""Laplace against SciPy's differences and masks over NumPy's windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from kernelscope.filters.laplace import SPEC
from kernelscope.schema.borders import Border
from tests.filters import apply
from tests.oracle import to_dtype, windows

FORMS = ("4", "8", "5x5")

CASES: list[dict[str, Any]] = [
    {"form": "4", "negative": "clip"},
    {"form": "4", "negative": "offset"},
    {"form": "8", "negative": "absolute"},
    {"form": "5x5", "negative": "offset"},
]

DISTANCE = np.abs(np.mgrid[-2:3, -2:3]).sum(axis=0)


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    if parameters["form"] == "5x5":
        weights = np.choose(DISTANCE, [-16, 2, 1, 0, 0])
    else:
        weights = (DISTANCE[1:4, 1:4] <= (1 if parameters["form"] == "4" else 2)).astype(int)
        weights[1, 1] = 1 - weights.sum()
    cells, _ = windows(source, len(weights) // 2, border)
    sums: NDArray[Any] = np.einsum("...st,st", cells, weights)
    if parameters["negative"] == "absolute":
        return np.abs(sums)
    if parameters["negative"] == "offset":
        middle = {"u1": 128, "u2": 32768, "f4": 0.5}[source.dtype.str[1:]]
        return sums + middle
    return np.maximum(sums, 0)


def test_four_neighbours_are_scipys_laplace() -> None:
    source = np.random.default_rng(1).integers(0, 256, (40, 60)).astype(np.uint8)
    wanted = ndimage.laplace(source.astype(int), mode="reflect") + 128
    actual = apply(SPEC, source[:, :, None], {"form": "4", "negative": "offset"})
    np.testing.assert_array_equal(actual[:, :, 0], to_dtype(wanted, source.dtype))
