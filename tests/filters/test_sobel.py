"""Sobel against SciPy's derivatives and eight rotated masks over NumPy's windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

from app.filters.sobel import SPEC
from app.filters.spec import Border
from tests.filters import apply
from tests.oracle import to_dtype, windows

CASES: list[dict[str, Any]] = [{"form": form} for form in ("sum", "magnitude", "directions")]

RING = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)]
"""The outer cells of the mask, clockwise."""


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    cells, _ = windows(source, 1, border)
    ring = np.stack([cells[..., y, x] for y, x in RING])
    rotated = [np.roll([1, 2, 1, 0, -1, -2, -1, 0], turn) for turn in range(8)]
    gradients = np.stack([np.tensordot(weights, ring, 1) for weights in rotated])
    if parameters["form"] == "directions":
        exact: NDArray[Any] = gradients.max(axis=0)
    elif parameters["form"] == "magnitude":
        exact = np.sqrt(gradients[0] ** 2.0 + gradients[2] ** 2.0)
    else:
        exact = np.abs(gradients[0]) + np.abs(gradients[2])
    return exact


@pytest.mark.parametrize("level", ["serial", "parallel"])
def test_is_scipys_sobel(level: str) -> None:
    source = np.random.default_rng(1).integers(0, 60, (40, 60)).astype(np.uint16)
    down, across = (ndimage.sobel(source.astype(int), axis, mode="reflect") for axis in (0, 1))
    for form, wanted in (
        ("sum", np.abs(down) + np.abs(across)),
        ("magnitude", np.hypot(down, across)),
    ):
        actual = apply(SPEC, source[:, :, None], {"form": form}, Border.REFLECT, level)
        np.testing.assert_array_equal(actual[:, :, 0], to_dtype(wanted, source.dtype))


@pytest.mark.parametrize("level", ["serial", "parallel"])
@pytest.mark.parametrize("form", ["sum", "magnitude", "directions"])
def test_edges_beyond_the_largest_float_stay_finite(form: str, level: str) -> None:
    source = np.zeros((3, 4, 1), np.float32)
    source[:, 2:] = np.finfo(np.float32).max
    output = apply(SPEC, source, {"form": form}, Border.REFLECT, level)
    assert output.max() == np.finfo(np.float32).max
    assert (output[:, [0, 3]] == 0).all()


@pytest.mark.parametrize("level", ["serial", "parallel"])
def test_magnitudes_next_to_a_half(level: str) -> None:
    """sqrt(m² + m) is just below m + 1/2, sqrt(m² + m + 1) just above."""
    source = np.random.default_rng(2).integers(0, 1 << 14, (600, 600, 1)).astype(np.uint16)
    source[300:] >>= 10
    cells, _ = windows(source, 1, Border.VALID)
    gx = (cells * [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]).sum(axis=(-2, -1))
    gy = (cells * [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]).sum(axis=(-2, -1))
    squares = gx * gx + gy * gy
    below = np.array([[[int(n) for n in row] for row in squares[:, :, 0]]], np.int64)[0]
    root = np.sqrt(below.astype(np.longdouble)).astype(np.int64)
    wanted = root + (below > root * root + root)
    actual = apply(SPEC, source, {"form": "magnitude"}, Border.VALID, level)
    near = np.isin(below - root * root - root, (0, 1))
    assert near.sum() > 100
    np.testing.assert_array_equal(actual[:, :, 0], wanted)
