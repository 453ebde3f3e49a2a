"""The worked examples on the first screens of the filters are true."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from tests.filters import apply

SHARPEN = ((0, -1, 0), (-1, 5, -1), (0, -1, 0))
SPOT = "10 10 10\n10 50 10\n10 10 10"
WEAK_SPOT = "10 10 10\n10 60 10\n10 10 10"
EDGE = "10 10 50\n10 10 50\n10 10 50"
WINDOW = "10 20 30\n40 50 60\n70 80 95"
UNEVEN = "10 10 10 90 90\n10 10 10 90 90\n12 10 13 90 90\n19 11 10 90 90\n10 18 10 90 90"

MIDDLES: list[tuple[str, dict[str, Any], str, int]] = [
    ("laplace", {"form": "4", "negative": "absolute"}, SPOT, 160),
    ("mask", {"mask": SHARPEN, "divisor": "one"}, SPOT, 210),
    ("mean", {"size": 3}, WINDOW, 51),
    ("median", {"size": 3}, "10 12 11\n13 255 12\n11 14 13", 12),
    ("rotating_mask", {}, UNEVEN, 11),
    ("sobel", {"form": "sum"}, EDGE, 160),
    ("sobel", {"form": "magnitude"}, EDGE, 160),
    ("sobel", {"form": "angle"}, EDGE, 0),
    ("threshold_mean", {"size": 3, "threshold": 50}, WEAK_SPOT, 16),
    ("threshold_mean", {"size": 3, "threshold": 40}, WEAK_SPOT, 60),
    ("weighted_mean", {"size": 3}, SPOT, 20),
]


@pytest.mark.parametrize(("filter_id", "parameters", "text", "wanted"), MIDDLES)
def test_pixel_in_the_middle(
    filter_id: str, parameters: dict[str, Any], text: str, wanted: int
) -> None:
    documentation = str(importlib.import_module(f"kernelscope.filters.{filter_id}").__doc__)
    for row in text.splitlines():
        assert row in documentation
    assert str(wanted) in documentation
    source = np.array([row.split() for row in text.splitlines()], np.uint8)[..., None]
    result = apply(filters.get(filter_id), source, parameters)
    assert result[len(source) // 2, len(source) // 2, 0] == wanted


@pytest.mark.parametrize(
    ("filter_id", "source", "wanted"),
    [
        ("dot_product", [[[100], [200]]], [[[98], [98]]]),
        ("greyscale", [[[200, 100, 50]]], [[[124]]]),
        ("negative", [[[200]]], [[[55]]]),
        ("ripple", [[[0]]], [[[255]]]),
        ("turned_tiles", [[[1], [2], [3]], [[4], [5], [6]]], [[[6], [5], [4]], [[3], [2], [1]]]),
        ("vector_sum", [[[10], [20], [31]]], [[[20], [20], [20]]]),
    ],
)
def test_all_pixels(filter_id: str, source: Any, wanted: Any) -> None:
    result = apply(filters.get(filter_id), np.array(source, np.uint8), {})
    np.testing.assert_array_equal(result, wanted)
