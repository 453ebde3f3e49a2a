"""Greyscale against the formula of ITU-R BT.601."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.filters.greyscale import SPEC
from kernelscope.schema.borders import Border
from tests.filters import apply

CASES: list[dict[str, Any]] = [{"rounding": "nearest"}, {"rounding": "floor"}]

WEIGHTS = np.array([299, 587, 114])


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    if source.shape[2] == 1:
        return source
    # Thousandths are divided last, so that ties are exact.
    if source.dtype.kind == "f":
        exact = source.astype(np.float64) @ WEIGHTS.astype(np.float64) / 1000
    elif parameters["rounding"] == "floor":
        exact = source.astype(np.int64) @ WEIGHTS // 1000
    else:
        exact = source.astype(np.int64) @ WEIGHTS / 1000
    return exact[:, :, None]


@pytest.mark.slow
@pytest.mark.parametrize("rounding", ["nearest", "floor"])
@pytest.mark.parametrize("level", ["serial", "parallel"])
def test_every_sum_of_24_bits(level: str, rounding: str) -> None:
    """A fifth of the colours has 19 sums of 20."""
    green, blue = (axis.astype(np.uint8) for axis in np.mgrid[:256, :256])
    for red in range(0, 256, 5):
        source = np.stack([np.full_like(green, red), green, blue], axis=2)
        output = apply(SPEC, source, {"rounding": rounding}, level=level)
        total = source.astype(np.int64) @ WEIGHTS
        wanted = total // 1000
        if rounding == "nearest":
            rest = total - 1000 * wanted
            wanted += (rest > 500) | ((rest == 500) & (wanted % 2 == 1))
        np.testing.assert_array_equal(output[:, :, 0], wanted)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["serial", "parallel"])
def test_16_bits_next_to_the_bounds(level: str) -> None:
    """Colours whose thousandths are within one of a whole level, and of a tie; and white."""
    colours = np.random.default_rng(0).integers(0, 65536, (1_000_000, 3))
    colours[0] = 65535
    total = colours @ WEIGHTS
    near = np.isin(total % 1000, (0, 1, 499, 500, 501, 999))
    assert near.sum() > 5_000
    source = colours[near].astype(np.uint16)[None]
    down = apply(SPEC, source, {"rounding": "floor"}, level=level)
    np.testing.assert_array_equal(down[0, :, 0], total[near] // 1000)
    nearest = apply(SPEC, source, {"rounding": "nearest"}, level=level)
    wanted = [(2 * int(n) // 1000 + 1) // 2 for n in total[near]]
    tie = total[near] % 1000 == 500
    np.testing.assert_array_equal(nearest[0, ~tie, 0], np.array(wanted)[~tie])
    np.testing.assert_array_equal(nearest[0, tie, 0] % 2, 0)
