"""Integer masks stay exact where the plans switch to wider sums: at each bound, on both sides.

Random pixels and small weights hardly ever come near a bound, so masks and pixels are made for it:
sums as large as the bound whose last bit decides about the result.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.filters.mask import SPEC
from kernelscope.filters.nlm import cuda as cuda_nlm_tuned
from kernelscope.filters.nlm.cuda import _exponent
from kernelscope.filters.shared.correlation import _GROUP, Divisor, one_part, working_type
from kernelscope.filters.shared.correlation_cuda import (
    _FLOAT_GAIN,
    _exact_in_floats,
    _fits_dot_products,
    reciprocal,
    weight_type,
)
from kernelscope.filters.shared.non_local import patch_profile
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import CudaTask
from kernelscope.schema.parameters import Mask
from tests.filters import apply
from tests.oracle import windows

pytestmark = pytest.mark.slow

INTEGERS = pytest.mark.parametrize("dtype", [np.dtype(np.uint8), np.dtype(np.uint16)], ids=str)
BOUNDS = (2**22, 2**23, 2**24, 2**25, 2**26, 2**30, 2**31, 2**33)
"""Of the magnitudes of sums: where plans change, where a slip would let them, and beyond."""


def white_of(dtype: np.dtype[Any]) -> int:
    return int(np.iinfo(dtype).max)


def masks(magnitude: int) -> Iterator[Mask]:
    """Yield masks of integers whose magnitudes add up to `magnitude`, or one less."""
    half = (magnitude - 1) // 2
    if 0 < half <= 10**6:
        # Two large terms cancel except for the middle cell.
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
def test_cpu_levels_are_exact_on_both_sides_of_each_bound(dtype: np.dtype[Any], bound: int) -> None:
    """Level *serial* adds up in 64 bits whatever the bound, and meets each mask in one picture."""
    white, number = white_of(dtype), 0
    for side, pixels in itertools.product((-1, 0, 1), pictures(dtype)):
        for mask in masks(bound // white + side):
            weights = np.array(mask)
            cells, _ = windows(pixels, len(weights) // 2, Border.REFLECT)
            sums = np.einsum("...st,st", cells, weights)
            for kind, divisor in (("one", 1), ("count", weights.size), ("sum", int(weights.sum()))):
                number += 1
                for level in ("parallel", "serial") if number % 4 == 0 else ("parallel",):
                    if divisor:
                        values = {"mask": mask, "divisor": kind, "negative": "clip"}
                        np.testing.assert_array_equal(
                            apply(SPEC, pixels, values, level=level),
                            rounded(sums, divisor, white),
                            f"side {side}, {mask[0]}..., divisor {kind}, {level}",
                        )


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
    """Return sums up to `most` whose quotient is a tie between whole numbers, or next to one.

    Few are there twice: sorting them would take as long as all divisions.
    """
    last = min(white, most // divisor)  # later ties are beyond `most`, and all next to them
    ties = (2 * np.arange(last + 1, dtype=np.int64) + 1) * divisor
    sums = np.concatenate([(ties + shift) // 2 for shift in (-2, 0, 1, 2)])
    return sums[(sums >= 0) & (sums <= most)]


@INTEGERS
def test_plans_in_floats_only_where_every_quotient_rounds_rightly(dtype: np.dtype[Any]) -> None:
    """All sums that could round to the wrong side, for the divisors around each bound."""
    white = white_of(dtype)
    accepted = dict[int, int]()
    for power in range(18, 28):
        for total in {2**power // white + shift for shift in (-2, -1, 0, 1, 2)} - {0}:
            for divisor in {1, 2, 3, 9, 225, 256, total - 1, total, total + 1}:
                if total <= 0 or divisor <= 0:
                    continue
                if not _exact_in_floats(float(total), float(divisor), task(dtype)):
                    continue
                most = total * white
                assert np.float32(most) == most
                assert np.float32(most - 1) == most - 1
                accepted[divisor] = max(most, accepted.get(divisor, 0))
    for divisor, most in accepted.items():  # the sums up to a smaller one are among these
        sums = quotients_near_ties(divisor, white, most)
        in_floats = np.rint(sums.astype(np.float32) / np.float32(divisor))
        np.testing.assert_array_equal(
            np.minimum(in_floats, white), rounded(sums, divisor, white), f"/ {divisor}"
        )
    assert len(accepted) > 30
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


# Every other filter that adds up integers ----------------------------------------------


def settings(dtype: np.dtype[Any]) -> Iterator[tuple[str, dict[str, Any], Border]]:
    """Yield settings on both sides of each switch of types in the filters' CPU plans.

    With border *reduce*, whose sums are of other types, on both sides of a switch as well.
    """
    one_byte = dtype == np.uint8
    for size in (15, 17, 99) if one_byte else (3, 99):  # up to 15 sums of bytes fit 16 bits
        yield "mean", {"size": size}, Border.REFLECT
    yield "mean", {"size": 15 if one_byte else 99}, Border.REDUCE
    for size in (15, 17, 31) if one_byte else (3, 31):
        for threshold in (0.0, 0.6, 254.9):
            yield "threshold_mean", {"size": size, "threshold": threshold}, Border.REFLECT
    yield "threshold_mean", {"size": 15, "threshold": 20.0}, Border.REDUCE
    # Sums of bytes leave float32 behind at 9, those of 16 bits at 5.
    for size in (7, 9, 15) if one_byte else (3, 5, 15):
        yield "weighted_mean", {"size": size}, Border.REFLECT
    for size in (7, 9) if one_byte else (3, 5):
        yield "weighted_mean", {"size": size}, Border.REDUCE
    yield "rotating_mask", {}, Border.REFLECT
    yield "rotating_mask", {}, Border.REDUCE
    for form in ("sum", "magnitude", "directions"):
        yield "sobel", {"form": form}, Border.REFLECT
    for form, negative in (("4", "clip"), ("8", "offset"), ("5x5", "absolute")):
        yield "laplace", {"form": form, "negative": negative}, Border.REFLECT
    yield "median", {"size": 3}, Border.REFLECT


def steep(dtype: np.dtype[Any], name: str) -> Iterator[NDArray[Any]]:
    """Yield pictures, shape (24, 40, 1), with the largest sums, squares and differences."""
    white = white_of(dtype)
    yield np.full((24, 40, 1), white, dtype)
    board = np.indices((24, 40)).sum(axis=0)[..., None]
    yield np.where(board % 2, white, 0).astype(dtype)
    yield np.where(board % 2, white, white - 1).astype(dtype)
    ramp = np.linspace(0, white, 24 * 40).round().reshape(24, 40, 1)
    yield ramp.astype(dtype)
    # Windows of equal sums whose variances are all but the same, and large.
    random = np.random.default_rng(5)
    bright, dark = random.integers(0, 2, (24, 40, 1)), random.integers(0, 3, (24, 40, 1))
    yield np.where(bright, white, dark).astype(dtype)
    if name == "sobel":  # roots of sums of squares that do not saturate, some next to a half
        yield random.integers(0, white // 5, (96, 160, 1)).astype(dtype)
    yield from pictures(dtype)


@pytest.mark.parametrize(
    ("dtype", "name", "parameters", "border"),
    [(dtype, *row) for dtype in map(np.dtype, (np.uint8, np.uint16)) for row in settings(dtype)],
    ids=lambda value: str(value) if isinstance(value, str | np.dtype) else "",
)
def test_fast_sums_equal_plain_ones(
    dtype: np.dtype[Any], name: str, parameters: dict[str, Any], border: Border
) -> None:
    """Level *serial* adds up in int64; the contract compares it with the oracle."""
    spec = filters.get(name)
    for pixels in steep(dtype, name):
        plain, fast = (
            apply(spec, pixels, parameters, border, level) for level in ("serial", "parallel")
        )
        np.testing.assert_array_equal(fast, plain)


@pytest.mark.parametrize("dtype", [np.dtype(np.uint8), np.dtype(np.uint16)], ids=str)
def test_greyscale_rounds_every_sum_of_thousandths_rightly(dtype: np.dtype[Any]) -> None:
    """Of 16 bits the sums that end in 499, 500 or 501, where the quotient is next to a tie."""
    random = np.random.default_rng(7)
    colours = random.integers(0, white_of(dtype) + 1, (400_000, 3))
    sums = colours @ np.array([299, 587, 114])
    chosen = np.isin(sums % 1000, (0, 499, 500, 501, 999)) | (np.arange(len(sums)) < 1000)
    pixels = colours[chosen].astype(dtype)[None]
    for rounding, wanted in (
        ("nearest", rounded(sums[chosen], 1000, white_of(dtype))),
        ("floor", sums[chosen] // 1000),
    ):
        for level in ("serial", "parallel"):
            actual = apply(filters.get("greyscale"), pixels, {"rounding": rounding}, level=level)
            np.testing.assert_array_equal(actual[0, :, 0], wanted)


@INTEGERS
def test_float_masks_use_float32_while_it_errs_by_less_than_a_level(
    dtype: np.dtype[Any],
) -> None:
    """The bound of the error, magnitude / divisor * rounds / 2**24, is met on both sides."""
    rounds = 9 / _GROUP + 5
    edge = 2**24 / rounds / white_of(dtype)  # magnitude of weights for a divisor of one
    for gain, wanted in ((0.999 * edge, np.float32), (1.001 * edge, np.float64)):
        weights = np.array([[0, 0, 0], [gain / 2 + 0.5, 0, 0.5 - gain / 2], [0, 0, 0]])
        weights[1, 1] = 1 - weights.sum()
        magnitude = np.abs(weights).sum()
        weights *= gain / magnitude
        divisor = Divisor.of(one_part(3) * 1.0)
        assert working_type(dtype, weights, divisor, Border.REFLECT) == wanted
        assert working_type(dtype, weights, divisor, Border.REDUCE) == np.float64


def test_weights_of_the_gpu_switch_at_their_bounds() -> None:
    """Float masks by their gain, bytes four at a time by their largest sum."""

    def kind(gain: float) -> int:
        weights = np.array([[0, 0, 0], [0, (gain + 1) / 2, (1 - gain) / 2], [0, 0, 0]])
        return weight_type(weights, 1.0, np.dtype(np.float32), Border.REFLECT)

    assert (kind(_FLOAT_GAIN), kind(_FLOAT_GAIN * 1.01)) == (2, 3)
    assert _FLOAT_GAIN * 2.0**-24 * 8 < 1e-4, "the part of white that single precision may lose"
    for total, fits in ((2**22 // 255, True), (2**22 // 255 + 1, False)):
        weights = np.full((15, 15), total // 225)
        weights[0, : total - int(weights.sum())] += 1 if total > weights.sum() else 0
        weights[1, 1] += total - int(weights.sum())
        assert int(weights.sum()) == total
        assert weights.max() < 128
        assert _fits_dot_products(weights, task(np.dtype(np.uint8))) == fits
    for largest, fits in ((127, True), (128, False)):
        weights = np.zeros((3, 3), np.int64)
        weights[1, 1] = -largest
        assert _fits_dot_products(weights, task(np.dtype(np.uint8))) == fits


def test_32_bit_quotients_by_multiplication_are_right_up_to_their_bound() -> None:
    """``n // 2d`` for every n next to a multiple, below 2**31."""
    for divisor in (1, 2, 3, 7, 225, 255, 65_535, 10**6, 2**22 - 1, 2**22, 2**22 + 1):
        factor, shift = reciprocal(divisor)
        assert 2**31 <= factor < 2**32
        count = 2**31 // (2 * divisor)
        random = np.random.default_rng(divisor).integers(0, count + 1, 2000).tolist()
        for multiple in {0, 1, 2, count - 1, count, *random}:
            for number in (2 * divisor * multiple + shift_by for shift_by in (-1, 0, 1)):
                if 0 <= number < 2**31:
                    assert number // (2 * divisor) == number * factor >> (32 + shift)


def test_nlm_multiplies_matrices_only_where_weights_are_exact_enough() -> None:
    """Level *tuned* of the GPU: the exponent of a pair's weight decides."""
    nlm = filters.get("nlm")

    def products(sigma: float) -> bool:
        values = nlm.validate({"filter_sigma": sigma, "search": "image", "weights": "uniform"})
        shape = (256, 256, 1)
        of = CudaTask(shape, shape, np.dtype(np.uint8), values, Border.REFLECT, "tuned")
        norm = _exponent(of, 1) * float(patch_profile(values).sum()) ** 2 / 4
        with pytest.MonkeyPatch.context() as patch:
            chosen: list[str] = []
            for name in ("_plan_products", "_plan_sums"):
                patch.setattr(cuda_nlm_tuned, name, lambda _, n=name: chosen.append(n))
            cuda_nlm_tuned.plan_tuned(of)
        assert chosen == ["_plan_products" if norm <= 4096 else "_plan_sums"], norm
        return norm <= 4096

    assert {products(sigma) for sigma in np.geomspace(0.001, 0.2, 60)} == {True, False}
