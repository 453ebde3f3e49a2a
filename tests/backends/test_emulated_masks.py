"""The tuned kernels of masks over bytes at the bounds of their digits, sums and quotients.

They exchange values within a warp, so the emulated GPU runs them; the kernels of other types are in
test_kernel_bounds.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import comb

from kernelscope.backends.emulator import EmulatorBackend
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.filters.shared.products_cuda import digits_of, products_pay
from kernelscope.images.image import Image
from kernelscope.spec import launch
from kernelscope.spec.borders import Border
from kernelscope.spec.launch import CudaTask
from kernelscope.spec.levels import TUNED
from tests.filters.test_exactness import BOUNDS, masks, pictures, rounded
from tests.oracle import windows

pytestmark = pytest.mark.slow

BYTE = np.dtype(np.uint8)

Filter = Callable[[str, NDArray[Any], Mapping[str, Any], Border], NDArray[Any]]


@pytest.fixture
def tuned(emulator: EmulatorBackend, monkeypatch: pytest.MonkeyPatch) -> Filter:
    """Return a function that filters a picture, shape (height, width, channels)."""
    monkeypatch.setattr(launch, "BY_SIZE", False)

    def run(
        name: str, pixels: NDArray[Any], parameters: Mapping[str, Any], border: Border
    ) -> NDArray[Any]:
        request = Request.create(Image.from_array(pixels), name, parameters, border=border)
        return emulator.run(request, TUNED, RunContext()).planes

    return run


def check(
    tuned: Filter,
    weights: NDArray[np.int64],
    pixels: NDArray[Any],
    *,
    divisors: tuple[str, ...] = ("one", "count", "sum"),
    negatives: tuple[str, ...] = ("clip", "absolute", "offset"),
) -> None:
    """Compare a mask's results with those of whole numbers without end."""
    cells, _ = windows(pixels, len(weights) // 2, Border.REFLECT)
    sums = np.einsum("...st,st", cells, weights)
    for kind in divisors:
        divisor = {"one": 1, "count": weights.size, "sum": int(weights.sum())}[kind]
        for negative in negatives:
            if not divisor:
                continue
            wanted = rounded(sums, divisor, 255)
            if negative == "absolute":
                wanted = rounded(abs(sums), abs(divisor), 255)
            elif negative == "offset":
                wanted = rounded(sums + 128 * divisor, divisor, 255)
            mask = tuple(map(tuple, weights.tolist()))
            parameters = {"mask": mask, "divisor": kind, "negative": negative}
            actual = tuned("mask", pixels, parameters, Border.REFLECT)
            np.testing.assert_array_equal(actual, wanted, f"{mask}, {kind}, {negative}")


def board(rows: int, columns: int, channels: int = 1) -> NDArray[np.uint8]:
    """Return black and white cells, the largest differences of neighbours."""
    cells = np.indices((rows, columns, channels)).sum(axis=0) % 2
    return np.where(cells, 255, 0).astype(np.uint8)


@pytest.mark.parametrize("side", [-1, 0, 1], ids=["below", "at", "above"])
def test_masks_on_both_sides_of_each_bound(tuned: Filter, side: int) -> None:
    """One to three digits, quotients in floats, whole numbers and doubles."""
    extremes, alike, *_ = pictures(BYTE)
    checked = 0
    for bound in BOUNDS:
        for mask in masks(bound // 255 + side):
            if len(mask) == 3:
                check(tuned, np.array(mask), extremes, negatives=("clip", "offset"))
                check(tuned, np.array(mask), alike, negatives=("absolute",))
                checked += 2
    assert checked > 20


def test_ties_of_divisors_without_exact_reciprocals(tuned: Filter) -> None:
    """Halves come of even divisors; a product with 1 / 6 or 1 / 22 may miss them by a bit."""
    pixels = np.random.default_rng(3).integers(0, 256, (24, 80, 1)).astype(np.uint8)
    for divisor in (6, 10, 12, 14, 22, 26, 28, 38, 44, 46, 58, 62, 92, 94, 106, 118):
        weights = np.array([[0, 0, 0], [1, divisor - 2, 1], [0, 0, 0]])
        check(tuned, weights, pixels, divisors=("sum",))


def test_sums_next_to_ties_where_floats_step_by_two(tuned: Filter) -> None:
    """Divided by a power of two, a sum beyond 2**24 that is a tie but for 1 would become one."""
    *_, nearly_white, _ = pictures(BYTE)
    for power in range(4, 20):
        half = 2**power
        weights = np.array([[0, 0, 0], [half - 1, half, 1], [0, 0, 0]])
        check(tuned, weights, nearly_white, divisors=("sum",), negatives=("clip",))


def test_quotients_next_to_ties_of_large_odd_divisors(tuned: Filter) -> None:
    """Products with reciprocals while 1 / (2 divisor) is more than their error; both sides."""
    *_, nearly_white, noise = pictures(BYTE)
    for divisor in (2**14 - 3, 2**14 - 1, 2**14 + 1, 2**15 - 1, 2**15 + 1):
        half = divisor // 2
        for pixels in (nearly_white, noise):
            weights = np.array([[0, 0, 0], [half, 1, half], [0, 0, 0]])
            check(tuned, weights, pixels, divisors=("sum",), negatives=("clip", "offset"))


@pytest.mark.parametrize("size", [3, 15])
@pytest.mark.parametrize("most", [127, 32639, 10**6])
def test_sums_of_every_digit_at_their_largest(tuned: Filter, size: int, most: int) -> None:
    """All weights at a bound of their digits, of one sign and of both, over black and white."""
    signs = np.where(board(size, size)[:, :, 0], 1, -1)
    for weights in (np.full((size, size), most), most * signs):
        for pixels in (np.full((size + 5, 152, 1), 255, np.uint8), board(size + 5, 152)):
            check(tuned, weights, pixels, divisors=("one", "count"), negatives=("offset",))


@pytest.mark.parametrize("size", [3, 9])
@pytest.mark.parametrize("largest", [127, 128, 129, 32639, 32640, 32896, 32897])
def test_weights_on_both_sides_of_a_digit(tuned: Filter, size: int, largest: int) -> None:
    weights = np.random.default_rng(largest).integers(-largest, largest + 1, (size, size))
    weights[0, :2] = largest, -largest
    pixels = np.random.default_rng(1).integers(0, 256, (size + 4, 161, 1)).astype(np.uint8)
    check(tuned, weights, pixels, negatives=("clip",))


def test_digits_make_the_weights() -> None:
    weights = np.array(
        [[0, 1, -1, 127, 128, -128, -129], [32639, 32640, -32896, -32897, 10**6, -(10**6), 5]]
    )
    digits = digits_of(weights)
    assert len(digits) == 3
    total = sum(digit.astype(int) * 256**i for i, digit in enumerate(reversed(digits)))
    np.testing.assert_array_equal(total, weights)
    for largest, count in ((127, 1), (-128, 1), (128, 2), (-129, 2), (32639, 2), (32640, 3)):
        assert len(digits_of(np.array([[largest]]))) == count


@pytest.mark.parametrize("border", [border for border in Border if border is not Border.KEEP])
@pytest.mark.parametrize(("size", "channels"), [(3, 3), (5, 1), (9, 2), (15, 1), (15, 4)])
def test_every_border_in_rows_of_any_length(
    tuned: Filter, size: int, channels: int, border: Border
) -> None:
    """Cells of a row of weights are `channels` samples apart; rows begin at any byte."""
    random = np.random.default_rng(size)
    weights = random.integers(-100, 101, (size, size))
    for columns in (size, 141, 144):
        pixels = random.integers(0, 256, (size + 6, columns, channels)).astype(np.uint8)
        colour = pixels[:, :, : (channels - 1) | 1]
        cells, _ = windows(colour, size // 2, border)
        wanted = rounded(np.einsum("...st,st", cells, weights), 1, 255)
        parameters = {"mask": weights.tolist(), "divisor": "one", "negative": "clip"}
        actual = tuned("mask", pixels, parameters, border)
        np.testing.assert_array_equal(actual[:, :, : colour.shape[2]], wanted, f"{columns}")


@pytest.mark.parametrize("size", range(3, 17, 2))
def test_binomial_sums_at_their_largest(tuned: Filter, size: int) -> None:
    """White, black and white, and greys whose quotients are ties or next to them."""
    row = comb(size - 1, np.arange(size)).astype(np.int64)
    weights = np.outer(row, row)
    random = np.random.default_rng(size)
    ramp = np.broadcast_to(np.arange(152) // 2 % 256, (size + 9, 152))[..., None]
    for pixels in (
        np.full((size + 9, 152, 1), 255),
        255 * random.integers(0, 2, (size + 9, 152, 1)),
        board(size + 9, 152),
        ramp,
        254 + random.integers(0, 2, (size + 9, 151, 1)),
        random.integers(0, 256, (size + 9, 61, 3)),
    ):
        cells, _ = windows(pixels, size // 2, Border.MIRROR)
        wanted = rounded(np.einsum("...st,st", cells, weights), int(weights.sum()), 255)
        actual = tuned("weighted_mean", pixels.astype(np.uint8), {"size": size}, Border.MIRROR)
        np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize(("size", "rows"), [(3, 3), (9, 9), (13, 1), (15, 1)])
def test_the_tensor_cores_are_for_large_pictures(size: int, rows: int) -> None:
    least = 2**24 if size in (9, 15) else 2**26
    for samples, pay in ((least - 2**12, False), (least, True)):
        shape = (samples // 2**12, 2**12, 1)
        task = CudaTask(shape, shape, BYTE, {}, Border.REFLECT, TUNED.id)
        assert products_pay(task, size, rows) is pay
    words = CudaTask(shape, shape, np.dtype(np.uint16), {}, Border.REFLECT, TUNED.id)
    assert not products_pay(words, size, rows)
