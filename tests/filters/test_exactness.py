"""Integer masks stay exact where the plans switch to wider sums: at each bound, on both sides.

Random pixels and small weights hardly ever come near a bound, so masks and pixels are made for it:
sums as large as the bound whose last bit decides about the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.filters.correlation import Divisor, one_part, working_type
from app.filters.cuda_correlation import _exact_in_floats, weight_type
from app.filters.launch import CudaTask
from app.filters.mask import SPEC
from app.filters.spec import Border, Mask
from tests.filters import apply
from tests.oracle import windows

INTEGERS = pytest.mark.parametrize("dtype", [np.dtype(np.uint8), np.dtype(np.uint16)], ids=str)
BOUNDS = (2**22, 2**23, 2**24, 2**25, 2**26, 2**30, 2**31, 2**33)
"""Of the magnitudes of sums: where plans change, where a slip would let them, and beyond."""


def white_of(dtype: np.dtype[Any]) -> int:
    return int(np.iinfo(dtype).max)


def masks(magnitude: int) -> Iterator[Mask]:
    """Yield masks of integers whose magnitudes add up to `magnitude`, or one less."""
    half = (magnitude - 1) // 2
    if 0 < half <= 10**6:
        # What two large terms leave is the middle cell alone.
        yield ((0, 0, 0), (half, 1, -half), (0, 0, 0))
        yield ((half, 0, 0), (0, 1, 0), (0, 0, -half))
    ninth = magnitude // 9
    if 0 < ninth <= 10**6 - 9:
        yield ((ninth,) * 3, (ninth, magnitude - 8 * ninth, ninth), (ninth,) * 3)
    share = magnitude // 225
    if 0 < share <= 10**6:
        rows = np.full((15, 15), share)
        rows[::2, ::2] *= -1
        rows[7, 7] = 1
        yield tuple(map(tuple, rows.tolist()))


def pictures(dtype: np.dtype[Any]) -> Iterator[NDArray[Any]]:
    """Yield pictures of grey, shape (24, 40, 1), whose sums are large and differ by little."""
    random = np.random.default_rng(11)
    white = white_of(dtype)
    shape = (24, 40, 1)
    extremes = random.integers(0, 2, shape) * white
    yield extremes.astype(dtype)
    # Neighbours on both sides alike, so that large terms cancel.
    columns = np.repeat(random.integers(0, 2, (24, 2, 1)) * white, 20, axis=1)
    columns[:, ::2] = columns[:, :1]
    columns[:, 1::2] = random.integers(0, white + 1, (24, 20, 1))
    yield columns.astype(dtype)
    yield (white - random.integers(0, 3, shape)).astype(dtype)
    yield random.integers(0, white + 1, shape).astype(dtype)


def rounded(sums: NDArray[np.int64], divisor: int, white: int) -> NDArray[np.int64]:
    """Return sums / divisor to the nearest integer, ties to even, from 0 to white."""
    if divisor < 0:
        sums, divisor = -sums, -divisor
    quotient, rest = np.divmod(sums, divisor)
    up = (2 * rest > divisor) | ((2 * rest == divisor) & (quotient % 2 == 1))
    return np.clip(quotient + up, 0, white)


@INTEGERS
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("side", [-1, 0, 1], ids=["below", "at", "above"])
@pytest.mark.parametrize("level", ["serial", "parallel"])
def test_cpu_levels_are_exact_on_both_sides_of_each_bound(
    dtype: np.dtype[Any], bound: int, side: int, level: str
) -> None:
    white = white_of(dtype)
    for mask in masks(bound // white + side):
        weights = np.array(mask)
        for kind, divisor in (("one", 1), ("count", weights.size), ("sum", int(weights.sum()))):
            if not divisor:
                continue
            for pixels in pictures(dtype):
                cells, _ = windows(pixels, len(weights) // 2, Border.REFLECT)
                sums = np.einsum("...st,st", cells, weights)
                wanted = rounded(sums, divisor, white)
                actual = apply(
                    SPEC, pixels, {"mask": mask, "divisor": kind, "negative": "clip"}, level=level
                )
                np.testing.assert_array_equal(actual, wanted, f"{mask[0]}..., divisor {kind}")


@INTEGERS
@pytest.mark.parametrize("border", [Border.REFLECT, Border.REDUCE])
def test_float32_is_chosen_up_to_its_bound_and_not_beyond(
    dtype: np.dtype[Any], border: Border
) -> None:
    """So that the test above meets float32 below its bounds and wider sums above them."""
    white = white_of(dtype)
    for power, divisor in ((24, 1), (23, 3)):
        if border is Border.REDUCE:
            power = 23
        of = Divisor.of(one_part(3) * divisor)
        chosen = [
            working_type(dtype, np.array([[0, 0, 0], [0, total, 0], [0, 0, 0]]), of, border)
            for total in ((2**power - 3) // white, 2**power // white + 1)
        ]
        assert chosen == [np.float32, np.float64]


def task(dtype: np.dtype[Any], border: Border = Border.REFLECT) -> CudaTask:
    shape = (64, 64, 1)
    return CudaTask(shape, shape, dtype, {}, border, "tuned")


def quotients_near_ties(divisor: int, white: int, most: int) -> NDArray[np.int64]:
    """Return sums up to `most` whose quotient is a tie between whole numbers, or next to one."""
    ties = (2 * np.arange(white + 1, dtype=np.int64) + 1) * divisor
    sums = np.unique(np.concatenate([(ties + shift) // 2 for shift in (-2, -1, 0, 1, 2)]))
    return sums[(sums >= 0) & (sums <= most)]


@INTEGERS
def test_plans_in_floats_only_where_every_quotient_rounds_rightly(dtype: np.dtype[Any]) -> None:
    """All sums that could round to the wrong side, for the divisors around each bound."""
    white = white_of(dtype)
    accepted = 0
    for power in range(18, 28):
        for total in {2**power // white + shift for shift in (-2, -1, 0, 1, 2)} - {0}:
            for divisor in {1, 2, 3, 9, 225, 256, total - 1, total, total + 1}:
                if total <= 0 or divisor <= 0:
                    continue
                if not _exact_in_floats(float(total), float(divisor), task(dtype)):
                    continue
                accepted += 1
                most = total * white
                assert np.float32(most) == most
                assert np.float32(most - 1) == most - 1
                sums = quotients_near_ties(divisor, white, most)
                in_floats = np.rint(sums.astype(np.float32) / np.float32(divisor))
                np.testing.assert_array_equal(
                    np.minimum(in_floats, white), rounded(sums, divisor, white), f"/ {divisor}"
                )
    assert accepted > 50
    assert not _exact_in_floats(2.0**24 // white + 1, 1.0, task(dtype))
    assert not _exact_in_floats(2.0**23 // white + 1, 3.0, task(dtype))
    assert not _exact_in_floats(1.0, 2.0**23 // white + 1, task(dtype))


@INTEGERS
def test_32_bits_are_planned_only_where_nothing_overflows(dtype: np.dtype[Any]) -> None:
    """Sums, the offset by mid-grey times the divisor, and twice a remainder."""
    white = white_of(dtype)
    narrow = 0
    for power in range(24, 34):
        for shift in (-2, -1, 0, 1, 2):
            total = 2**power // white + shift
            for divisor in {1, total // 3, total, 3 * total}:
                if total <= 0 or divisor <= 0:
                    continue
                weights = np.array([[0, 0, 0], [0, total, 0], [0, 0, 0]])
                if weight_type(weights, float(divisor), dtype, Border.REFLECT) != 0:
                    continue
                narrow += 1
                largest = total * white + (white // 2 + 1) * divisor
                assert largest < 2**31
                assert 2 * divisor < 2**31
    assert narrow > 10
    weights = np.array([[0, 0, 0], [0, 2**30 // white + 1, 0], [0, 0, 0]])
    assert weight_type(weights, 1.0, dtype, Border.REFLECT) == 1
