"""Steps of masks against the masks, and their sums at the bounds of 16 bits."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.base.jit import Flag, Index, Line, Number, kernel
from kernelscope.filters.mask import PRESETS, SPEC
from kernelscope.filters.shared import correlation_bytes
from kernelscope.filters.shared.correlation import Divisor
from kernelscope.filters.shared.correlation_bytes import factor_of, saturate_row, steps_of
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import CpuTask
from kernelscope.schema.parameters import Mask
from tests.filters import apply
from tests.oracle import windows
from tests.pairs import together


def mask_of(weights: Any) -> Mask:
    return tuple(map(tuple, np.asarray(weights).tolist()))


def random_mask(side: int, largest: int) -> Mask:
    random = np.random.default_rng(side + largest)
    return mask_of(random.integers(-largest, largest, (side, side), endpoint=True))


def column(*weights: int) -> Mask:
    """Return a mask of zeros but for its middle column."""
    mask = np.zeros((len(weights), len(weights)), np.int64)
    mask[:, len(weights) // 2] = weights
    return mask_of(mask)


MASKS = [
    *(random_mask(side, largest) for side in (3, 5, 9, 15) for largest in (1, 9, 50, 127)),
    *(random_mask(side, 32767) for side in (3, 15)),
    column(127, -127, 127),
    column(128, 0, -128),
    column(64, 64, 0),
    column(64, 65, 0),
    column(-64, -65, 1),
    column(255, 255, -255),
    column(32767, 32767, -32767),
    mask_of(np.ones((15, 15))),
    mask_of(np.eye(15)),
    *(mask_of(preset.fill(side)) for preset in PRESETS for side in (3, 7)),
]


def heavy(middle: int) -> Mask:
    """Return a mask of the largest weights of 16 bits, but for two in the middle."""
    mask = np.full((15, 15), 32767)
    mask[6, 6:8] = middle // 2, middle - middle // 2
    return mask_of(mask)


LARGEST = (2**31 - 1) // 255 - 223 * 32767
"""Of a heavy mask: bytes of 255 still have a sum of 32 bits."""

MASKS += [heavy(LARGEST), heavy(-LARGEST), mask_of(-np.array(heavy(LARGEST)))]


def parts_of(mask: Mask) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Any]:
    """Return the cells of steps, their weights [step, row of results, cell], and the groups."""
    steps = steps_of(mask)
    assert steps is not None
    lanes = steps.weights.reshape(len(steps.cells), 2, -1, 2)
    assert (lanes == lanes[:, :, :1]).all()
    return steps.cells, lanes[:, :, 0].astype(np.int64), steps.ends, steps.weights.dtype


@together("mask", MASKS)
def test_steps_add_up_to_the_mask_for_either_row(mask: Mask) -> None:
    cells, parts, ends, _ = parts_of(mask)
    sums = np.zeros((2, len(mask) + 3, len(mask)), np.int64)
    for (pair, x), part in zip(cells, parts, strict=True):
        for row in range(2):
            sums[row, 2 * pair : 2 * pair + 2, x] += part[row]
    for row in range(2):
        np.testing.assert_array_equal(sums[row, row : row + len(mask)], mask)
        assert np.count_nonzero(sums[row]) == np.count_nonzero(mask)
    assert (ends[0], ends[-1]) == (0, len(parts))
    assert (np.diff(ends) > 0).all()


@together("mask", MASKS)
def test_no_group_leaves_16_bits(mask: Mask) -> None:
    """Whatever the picture, and in whatever order: bytes of 255 on all weights of a sign."""
    _, parts, ends, dtype = parts_of(mask)
    if dtype == np.int16:
        assert 255 * abs(parts).sum((0, 2)).max() < 2**31
        return
    for group in np.split(parts, ends[1:-1]):
        assert 255 * group.clip(0).sum((0, 2)).max() <= 32767
        assert 255 * group.clip(None, 0).sum((0, 2)).min() >= -32768


def test_a_mask_of_equal_weights_is_one_group_as_long_as_it_fits() -> None:
    ones = np.zeros((15, 15), np.int64)
    ones.ravel()[:128] = 1
    assert len(parts_of(mask_of(ones))[2]) == 2
    ones.ravel()[128] = 1
    assert len(parts_of(mask_of(ones))[2]) == 3


@together(
    ("mask", "dtype"),
    [
        (random_mask(15, 9), np.int8),
        (random_mask(15, 1000), np.int16),
        (heavy(LARGEST), np.int16),
        (column(*[1] * 15), np.int8),
    ],
)
def test_large_weights_take_16_bits(mask: Mask, dtype: Any) -> None:
    assert parts_of(mask)[3] == dtype


@pytest.mark.parametrize(
    "mask", [mask_of(np.zeros((3, 3))), column(0, 999_999, 0), heavy(LARGEST + 1)]
)
def test_others_have_no_steps(mask: Mask) -> None:
    assert steps_of(mask) is None


def adversaries(mask: Mask, width: int) -> NDArray[np.uint8]:
    """Return a picture with the largest and the least sum of the mask, and noise around them."""
    weights, side = np.array(mask), len(mask)
    source = np.random.default_rng(side).integers(0, 256, (2 * side + 4, width, 1), np.uint8)
    source[:side, :side, 0] = 255 * (weights > 0)
    source[1 + side : 1 + 2 * side, :side, 0] = 255 * (weights < 0)
    source[:side, side : 2 * side] = 255
    return source


@together("mask", MASKS)
def test_sums_at_the_bounds_are_exact(mask: Mask) -> None:
    """Small sums cut to bytes, and large ones divided by the cells or by all weights."""
    side = len(mask)
    source = adversaries(mask, 70)
    cells, _ = windows(source, side // 2, Border.VALID)
    sums = np.einsum("...st,st", cells.astype(np.int64), np.array(mask))
    for negative in ("clip", "absolute"):
        parameters = {"mask": mask, "divisor": "one", "negative": negative}
        output = apply(SPEC, source, parameters, Border.VALID, "parallel")
        expected = (abs(sums) if negative == "absolute" else sums).clip(0, 255)
        np.testing.assert_array_equal(output, expected)
    total = int(np.sum(mask))
    for choice, divisor in (("count", side**2), ("sum", total))[: 1 + (total != 0)]:
        parameters = {"mask": mask, "divisor": choice, "negative": "offset"}
        output = apply(SPEC, source, parameters, Border.VALID, "parallel")
        expected = (np.rint(sums / divisor) + 128).clip(0, 255)
        np.testing.assert_array_equal(output, expected)


@kernel
def saturate(
    totals: Line,
    factor: Number,
    absolute: Flag,
    offset: Index,
    samples: Line,
    start: Index,
    _: Index,
) -> None:
    saturate_row(totals[start:], factor, absolute, offset, samples[start:])


@together("divisor", [2, 3, 9, 16, 25, 225, 4097, 8189, 8191, 8192])
def test_products_in_place_of_quotients_round_alike(divisor: int) -> None:
    """All ties, the totals next to them, and the largest that may be given."""
    halves = divisor * np.arange(-900, 901)
    near = np.concatenate([(halves + more) // 2 for more in (-2, -1, 0, 1, 2)])
    most = min(divisor * 2**22, 2**31) - 1
    totals = np.concatenate([near, [most, -most]]).astype(np.int32)
    exact = np.array([round(Fraction(int(total), divisor)) for total in totals])
    weights = np.zeros((3, 3), np.int64)
    weights[1, 1] = divisor
    factor = factor_of(weights, Divisor.of(weights), Border.REFLECT)
    assert factor == np.float32(1 / divisor)
    for absolute, offset in ((False, 0), (True, 0), (False, 128)):
        samples = np.zeros(len(totals), np.uint8)
        saturate(totals, factor, absolute, offset, samples, 0, 0)
        expected = (abs(exact) if absolute else exact) + offset
        np.testing.assert_array_equal(samples, expected.clip(0, 255))


@together(
    ("middle", "rest", "border", "factor"),
    [
        (1, 0, Border.REFLECT, 1),
        (1, 0, Border.REDUCE, 1),
        (9, 0, Border.REDUCE, 0),
        (6, 0, Border.REFLECT, 0),
        (8193, 0, Border.REFLECT, 0),
        (-3, 0, Border.REFLECT, 0),
        (9000, -8999, Border.REFLECT, 1),
        (9000, -8999, Border.REDUCE, 0),
        (24673, -24670, Border.REFLECT, 1 / 3),
        (24674, -24671, Border.REFLECT, 0),
    ],
)
def test_other_divisors_divide(middle: int, rest: int, border: Border, factor: float) -> None:
    weights = np.zeros((3, 3), np.int64)
    weights[1, 1:] = middle, rest
    assert factor_of(weights, Divisor.of(weights), border) == np.float32(factor)


@together("shape", [(1, 32, 1), (2, 33, 1), (5, 63, 1), (6, 64, 1), (7, 31, 3)])
@together("border", [Border.REDUCE, Border.WRAP, Border.CONSTANT])
def test_odd_and_even_numbers_of_rows_as_at_level_serial(
    shape: tuple[int, int, int], border: Border
) -> None:
    source = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    for divisor in ("one", "count"):
        parameters = {"mask": random_mask(5, 9), "divisor": divisor}
        serial = apply(SPEC, source, parameters, border, "serial")
        parallel = apply(SPEC, source, parameters, border, "parallel")
        np.testing.assert_array_equal(parallel, serial)


@together(
    ("shape", "dtype", "applies"),
    [
        ((4, 32, 1), np.uint8, True),
        ((4, 31, 1), np.uint8, False),
        ((4, 11, 3), np.uint8, True),
        ((4, 32, 1), np.uint16, False),
    ],
)
def test_rows_of_fewer_samples_than_a_step_and_other_types_are_left_out(
    shape: tuple[int, int, int], dtype: Any, applies: bool
) -> None:
    source = np.zeros(shape, dtype)
    task = CpuTask(source, np.zeros_like(source), {}, Border.REFLECT, "parallel")
    weights = np.array(random_mask(3, 9))
    (sweep,) = correlation_bytes.plan(task, weights, Divisor.one(3), "clip")
    assert (sweep.kernel is correlation_bytes.correlate_bytes) == applies
