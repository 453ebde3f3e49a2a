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

from kernelscope import filters
from kernelscope.backends.cuda.strips import strip
from kernelscope.backends.emulator import EmulatorBackend
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.filters.shared.correlation_cuda import digits_of, products_launch, products_pay
from kernelscope.images.image import Image
from kernelscope.schema import launch
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import CudaTask, Launch
from kernelscope.schema.levels import TUNED
from tests.backends import emulated
from tests.backends.emulated import needs_compiler
from tests.backends.test_kernel_bounds import compare_mask
from tests.filters.test_exactness import BOUNDS, masks, pictures, rounded
from tests.oracle import windows
from tests.pairs import in_turn, together

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


def check(tuned: Filter, weights: NDArray[np.int64], pixels: NDArray[Any], **kinds: Any) -> None:
    """Compare a mask's results, for some of the `divisors` and `negatives`."""

    def run(pixels: NDArray[Any], parameters: Mapping[str, Any]) -> NDArray[Any]:
        return tuned("mask", pixels, parameters, Border.REFLECT)

    compare_mask(weights, pixels, run, **kinds)


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


@pytest.mark.parametrize(("size", "most"), in_turn((3, 9, 15), (127, 32639, 10**6), every=2))
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


def test_averages_whose_largest_quotients_are_white_or_beyond(tuned: Filter) -> None:
    """Without negative weights, sums of up to the divisor make bytes, which are not saturated."""
    for white in (True, False):
        pixels = np.full((11, 160, 1), 255) if white else board(11, 160)
        for total in (8, 9, 10):
            weights = np.ones((3, 3), int)
            weights[1, 1] += total - 9
            check(tuned, weights, pixels.astype(np.uint8))
            weights[0] = -1
            check(tuned, weights, pixels.astype(np.uint8))


def test_a_mask_without_division_and_its_negative(tuned: Filter) -> None:
    """Sums are the quotients: offset, absolute and clipped, on both sides of black and white."""
    pixels = np.random.default_rng(5).integers(0, 256, (20, 160, 1)).astype(np.uint8)
    for middle in (1, -1, 2, -2):
        weights = np.zeros((5, 5), int)
        weights[2, 2] = middle
        check(tuned, weights, pixels)


# Borders, rows and parts ------------------------------------------------------------------

WAYS = [
    *(("mask", *way) for way in ((3, 1), (3, 3), (5, 1), (9, 1))),  # paired, up to 4 samples
    *(("mask", *way) for way in ((11, 1), (5, 3), (15, 1))),  # sparse, 5 to 7
    *(("mask", *way) for way in ((9, 2), (5, 4), (15, 4))),  # plain
    *(("weighted_mean", *way) for way in ((3, 1), (7, 1), (9, 1), (7, 3), (15, 4))),
]
BORDERS = [border for border in Border if border is not Border.KEEP]


def chosen(name: str, size: int) -> tuple[dict[str, Any], NDArray[np.int64], int]:
    """Return parameters, weights and divisor."""
    if name == "weighted_mean":
        row = comb(size - 1, np.arange(size)).astype(np.int64)
        return {"size": size}, np.outer(row, row), 4 ** (size - 1)
    weights = np.random.default_rng(size).integers(-100, 101, (size, size))
    return {"mask": weights.tolist(), "divisor": "one", "negative": "clip"}, weights, 1


def expected(
    name: str, size: int, pixels: NDArray[Any], border: Border
) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """Return parameters, and the results of all channels but alpha."""
    parameters, weights, divisor = chosen(name, size)
    cells, inside = windows(pixels[:, :, : (pixels.shape[2] - 1) | 1], size // 2, border)
    sums = np.einsum("...st,st", cells, weights)
    if border is Border.REDUCE and divisor > 1:
        parts = np.einsum("...st,st", np.broadcast_to(inside, cells.shape), weights)
        exact = [
            rounded(np.array(total), int(part), 255)
            for total, part in zip(sums.ravel(), parts.ravel(), strict=True)
        ]
        return parameters, np.array(exact).reshape(sums.shape)
    return parameters, rounded(sums, divisor, 255)


@pytest.mark.parametrize(("way", "border"), in_turn(WAYS, BORDERS, every=5))
def test_every_border_in_rows_of_any_length(
    tuned: Filter, way: tuple[str, int, int], border: Border
) -> None:
    """Cells of a row of weights are `channels` samples apart; rows begin at any byte.

    Rows of whole sixteens have the cells beside them folded, others a rim; both may be narrower
    than the mask, or one sample longer than a warp takes.
    """
    name, size, channels = way
    random = np.random.default_rng(size)
    for columns in (4, 16, size, 129, 144, 256):
        if border is Border.VALID and columns < size:
            continue
        pixels = random.integers(0, 256, (size + 6, columns, channels)).astype(np.uint8)
        parameters, wanted = expected(name, size, pixels, border)
        actual = tuned(name, pixels, parameters, border)
        np.testing.assert_array_equal(actual[:, :, : wanted.shape[2]], wanted, f"{columns}")


@needs_compiler
@pytest.mark.parametrize("border", [Border.REFLECT, Border.WRAP, Border.VALID])
@pytest.mark.parametrize(("name", "size", "channels"), [WAYS[2], WAYS[6], WAYS[9], WAYS[12]])
def test_parts_of_a_picture(name: str, size: int, channels: int, border: Border) -> None:
    """Strips of rows have only the source rows that they need; a warp goes down all of them."""
    height, spec = 43, filters.get(name)
    whole = 144 // channels  # columns of whole sixteens, of which the first warp has 128
    for columns in (whole, whole - 1):
        pixels = np.random.default_rng(9).integers(0, 256, (height, columns, channels))
        pixels = pixels.astype(np.uint8)
        parameters, wanted = expected(name, size, pixels, border)
        height_of_all = spec.output_shape(pixels.shape, spec.validate(parameters), border)[0]
        for rows in ((0, 19), (17, height_of_all), (0, height_of_all)):
            part = strip(height, rows, size // 2, border)
            actual = emulated.run(name, pixels, parameters, TUNED.id, border, part=part)
            np.testing.assert_array_equal(
                actual[:, :, : wanted.shape[2]], wanted[slice(*rows)], f"{columns}, {rows}"
            )


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


def plain_task(side: int, dtype: np.dtype[Any] = BYTE) -> CudaTask:
    return CudaTask((side, side, 1), (side, side, 1), dtype, {}, Border.REFLECT, TUNED.id)


def test_the_tensor_cores_are_for_pictures_that_were_timed() -> None:
    assert products_pay(plain_task(1024))
    assert not products_pay(plain_task(1023))
    assert not products_pay(plain_task(4096, np.dtype(np.uint16)))


@together(
    ("size", "rows", "wanted"),
    [
        (3, 3, [8, 16, 32, 32, 32]),
        (9, 9, [8, 16, 32, 32, 32]),
        (11, 11, [8, 16, 64, 64, 64]),
        (3, 1, [8, 16, 16, 16, 16]),
        (7, 1, [8, 16, 32, 32, 32]),
        (9, 1, [8, 16, 64, 128, 128]),
    ],
)
def test_warps_go_down_more_rows_of_larger_pictures_and_masks(
    size: int, rows: int, wanted: list[int]
) -> None:
    digits = [np.ones((rows, size), np.int8)]
    made = []
    for side in (1024, 2048, 4096, 8192, 16384):
        before = Launch("mask_tuned", {}, (128, 1), 1, 1, tile=(512, 1))
        planned = products_launch(before, plain_task(side), digits)
        assert planned.tile is not None
        made.append(planned.tile[1])
    assert made == wanted
