"""The arithmetic of the kernels, emulated, at the bounds that their comments name.

Sums that floats, bytes, halves of words and 16-bit floats still hold, and the largest that plans
let them have; the same kernels run on a GPU in tests/gpu with ordinary pictures.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.filters.mean import SPEC as MEAN
from kernelscope.filters.shared import correlation_cuda
from kernelscope.schema.borders import Border
from kernelscope.schema.parameters import Mask, OddParameter
from tests.backends import emulated
from tests.backends.emulated import needs_compiler
from tests.filters import apply
from tests.filters.test_exactness import (
    BOUNDS,
    INTEGERS,
    masks,
    pictures,
    rounded,
    steep,
    white_of,
)
from tests.oracle import windows
from tests.pairs import together

pytestmark = [needs_compiler, pytest.mark.slow]

LEVELS = pytest.mark.parametrize("level", ["global", "tuned"])
BYTE = np.dtype(np.uint8)


@pytest.fixture(autouse=True)
def without_tensor_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their kernels exchange values within a warp: see test_emulated_masks.py."""
    monkeypatch.setattr(correlation_cuda, "products_pay", lambda *_: False)


def every_extreme_window() -> NDArray[Any]:
    """Return all 3 x 3 windows of black and white, four columns apart; shape (8, 2048, 1)."""
    cells = np.arange(512)[:, None] >> np.arange(9) & 1
    board = np.zeros((8, 2048, 1), np.uint8)
    for n, window in enumerate(255 * cells.reshape(-1, 3, 3)):
        board[2:5, 4 * n : 4 * n + 3, 0] = window
    return board


# Masks --------------------------------------------------------------------------------


def check_mask(mask: Mask, pixels: NDArray[Any], level: str, **kinds: Any) -> None:
    """Compare a mask's results, for some of the `divisors` and `negatives`."""
    compare_mask(np.array(mask), pixels, partial(emulated.run, "mask", level=level), **kinds)


def compare_mask(
    weights: NDArray[np.int64],
    pixels: NDArray[Any],
    run: Callable[[NDArray[Any], Mapping[str, Any]], NDArray[Any]],
    divisors: tuple[str, ...] = ("one", "count", "sum"),
    negatives: tuple[str, ...] = ("clip", "absolute", "offset"),
) -> None:
    """Compare a mask's results with those of whole numbers without end."""
    mask, white = tuple(map(tuple, weights.tolist())), white_of(pixels.dtype)
    cells, _ = windows(pixels, len(weights) // 2, Border.REFLECT)
    sums = np.einsum("...st,st", cells, weights)
    for kind in divisors:
        divisor = {"one": 1, "count": weights.size, "sum": int(weights.sum())}[kind]
        for negative in negatives:
            if not divisor:
                continue
            wanted = rounded(sums, divisor, white)
            if negative == "absolute":
                wanted = rounded(abs(sums), abs(divisor), white)
            elif negative == "offset":
                wanted = rounded(sums + (white // 2 + 1) * divisor, divisor, white)
            parameters = {"mask": mask, "divisor": kind, "negative": negative}
            actual = run(pixels, parameters)
            np.testing.assert_array_equal(actual, wanted, f"{mask}, {parameters}")


@INTEGERS
@LEVELS
@pytest.mark.parametrize("side", [-1, 0, 1], ids=["below", "at", "above"])
def test_masks_on_both_sides_of_each_bound(dtype: np.dtype[Any], level: str, side: int) -> None:
    """Bytes four at a time, floats, 32 and 64 bits: whatever the plan chooses is exact."""
    white, checked = white_of(dtype), 0
    extremes, alike, *_ = pictures(dtype)
    for bound in BOUNDS:
        for mask in masks(bound // white + side):
            if len(mask) == 3:
                check_mask(mask, extremes, level, negatives=("clip", "offset"))
                check_mask(mask, alike, level, negatives=("absolute",))
                checked += 2
    assert checked > 20


@INTEGERS
@LEVELS
def test_ties_of_divisors_without_exact_reciprocals(dtype: np.dtype[Any], level: str) -> None:
    """Halves come of even divisors; a product with 1 / 6 or 1 / 22 may miss them by a bit."""
    pixels = np.random.default_rng(3).integers(0, 256, (48, 80, 1)).astype(dtype)
    for divisor in (6, 10, 12, 14, 22, 26, 28, 38, 44, 46, 58, 62, 92, 94, 106, 118):
        check_mask(((0, 0, 0), (1, divisor - 2, 1), (0, 0, 0)), pixels, level)


@INTEGERS
def test_sums_next_to_ties_where_floats_step_by_two(dtype: np.dtype[Any]) -> None:
    """Divided by a power of two, a sum beyond 2**24 that is a tie but for 1 would become one."""
    white = white_of(dtype)
    *_, nearly_white, _ = pictures(dtype)
    for power in range(4, 20):
        half = 2**power
        if half * white < 2**27:
            check_mask(((0, 0, 0), (half - 1, half, 1), (0, 0, 0)), nearly_white, "tuned")


def test_sums_of_dot_products_do_not_leave_the_bits_of_a_float() -> None:
    """Weights of 127, which fit bytes, make 2**22 out of greys that do not saturate."""
    mask = ((127,) * 13,) * 13
    check_mask(mask, np.full((16, 24, 1), 200, np.uint8), "tuned")


@together("side", [-1, 0, 1])
@together("sign", [1, -1])
def test_dot_products_on_both_sides_of_their_bound(side: int, sign: int) -> None:
    """Sums of 2**22 take 13 x 13 bytes of weights; white pictures have no larger ones."""
    weights = np.full(169, (2**22 // 255 + side) // 169)
    weights[: 2**22 // 255 + side - int(weights.sum())] += 1
    mask = tuple(map(tuple, (sign * weights.reshape(13, 13)).tolist()))
    for pixels in (np.full((16, 24, 1), 255, np.uint8), next(pictures(BYTE))):
        check_mask(mask, pixels, "tuned")


@pytest.mark.parametrize("largest", [127, 128])
def test_weights_that_fit_a_byte_and_those_that_do_not(largest: int) -> None:
    mask: Mask = ((largest, 0, -largest), (0, 1, 0), (-largest, 0, largest))
    check_mask(mask, next(pictures(BYTE)), "tuned")


# Other filters ------------------------------------------------------------------------


@INTEGERS
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        *(("laplace", {"form": form}) for form in ("4", "8", "5x5")),
        *(("sobel", {"form": form}) for form in ("sum", "magnitude", "directions")),
        ("rotating_mask", {}),
        ("weighted_mean", {"size": 15}),
    ],
)
def test_packed_and_small_sums_hold_the_largest(
    dtype: np.dtype[Any], name: str, parameters: dict[str, Any]
) -> None:
    """Two bytes in a word as 16-bit floats, keys of 24 and 8 bits, products of 32 bits."""
    spec = filters.get(name)
    negatives = ("clip", "absolute", "offset") if name == "laplace" else (None,)
    for negative in negatives:
        options = parameters | ({"negative": negative} if negative else {})
        for pixels in (
            *steep(dtype, name),
            every_extreme_window().astype(dtype) * (white_of(dtype) // 255),
        ):
            np.testing.assert_array_equal(
                emulated.run(name, pixels, options, "tuned"),
                apply(spec, pixels, options, level="serial"),
            )


_ROOT = """
inline void erring(float& root, float f) { root = (float)(sqrt((double)f) * (1 + (double)ERROR)); }
#define sqrt_approx_ftz_f32 erring
"""


@pytest.mark.parametrize("error", [-(2.0**-23), 2.0**-23])
@LEVELS
def test_roots_of_bytes_bear_what_the_instruction_errs(level: str, error: float) -> None:
    """Of the approximate root, whose relative error PTX bounds by 2**-23."""
    spec, parameters = filters.get("sobel"), {"form": "magnitude"}
    root = _ROOT.replace("ERROR", repr(error))
    for pixels in steep(BYTE, "sobel"):
        np.testing.assert_array_equal(
            emulated.run("sobel", pixels, parameters, level, before=root),
            apply(spec, pixels, parameters, level="serial"),
        )
    # No other sum of squares up to white is nearer to a tie either.
    sums = np.arange(65_281)
    halves = np.rint(np.sqrt(sums))
    np.testing.assert_array_equal(np.rint(np.float32(np.sqrt(sums) * (1 + error))), halves)


@INTEGERS
@LEVELS
def test_greyscale_next_to_ties(dtype: np.dtype[Any], level: str) -> None:
    white = white_of(dtype)
    colours = np.random.default_rng(7).integers(0, white + 1, (60_000, 3))
    colours[:2] = white
    sums = colours @ np.array([299, 587, 114])
    chosen = np.isin(sums % 1000, (0, 499, 500, 501, 999)) | (np.arange(len(sums)) < 2)
    pixels = colours[chosen].astype(dtype)[None]
    for rounding, wanted in (
        ("nearest", rounded(sums[chosen], 1000, white)),
        ("floor", sums[chosen] // 1000),
    ):
        actual = emulated.run("greyscale", pixels, {"rounding": rounding}, level)
        np.testing.assert_array_equal(actual[0, :, 0], wanted)


# Sums of squares of pixels (box.cuh) ------------------------------------------------------

_BOX = """
extern "C" void means(int sums, unsigned char* results)
{
    for (int sum = 0; sum < sums; ++sum, results += 4) {
        Run run;
        run.put(0, mean_of(sum + ZERO), mean_of(sum + ZERO));
        run.put(2, mean_of(sum + ZERO), mean_of(sum + ZERO));
        results[0] = run.get(0);
        results[1] = run.get(3);
        run.put(0, quotient_of(sum + ZERO), quotient_of(sum + ZERO));
        run.put(2, quotient_of(sum + ZERO), quotient_of(sum + ZERO));
        results[2] = run.get(1);
        results[3] = run.get(2);
    }
}

extern "C" int columns(const unsigned char* rows, int entering, int leaving, int* results)
{
    ColumnSums sums;
    const auto samples = [&](int row) {
        Samples samples;
        for (int k = 0; k < COLUMNS; ++k) samples.set(k, rows[row * COLUMNS + k]);
        return samples;
    };
    for (int row = 0; row < entering; ++row) sums.add(samples(row));
    for (int row = 0; row < leaving; ++row) sums.subtract(samples(row));
    alignas(16) Column stored[COLUMNS];
    sums.store(stored);
    for (int k = 0; k < COLUMNS; ++k) results[k] = stored[position(k)];
    Total sum = ZERO;
    Columns{stored}.add(sum, 0, [](int k) { return k < 5 ? 1 : -1; });
    return sum - ZERO;
}
"""

SIZES = (3, 15, 31, 99)


def box(size: int) -> Any:
    defines = {"SAMPLE_BITS": 8, "BORDER": 0, "TUNED": 1, "SIZE": size, "TILE_COLUMNS": 480}
    return emulated.build(
        "mean",
        "mean_tuned",
        tuple((name, str(value)) for name, value in defines.items()),
        behind=_BOX,
    )


def test_the_largest_mean_is_among_those_tested() -> None:
    size = MEAN.parameter("size")
    assert isinstance(size, OddParameter)
    assert max(SIZES) == size.maximum


@pytest.mark.parametrize("size", SIZES)
def test_every_mean_of_bytes_is_rounded_rightly(size: int) -> None:
    """By multiplication in floats and, for the mean itself, in 16-bit ones: all sums there are."""
    sums = np.arange(255 * size * size + 1)
    results = np.zeros((len(sums), 4), np.uint8)
    box(size).means(len(sums), ctypes.c_void_p(results.ctypes.data))
    wanted = (2 * sums + size * size) // (2 * size * size)
    np.testing.assert_array_equal(results, np.repeat(wanted[:, None], 4, axis=1))


def columns_of(size: int) -> Iterator[NDArray[np.uint8]]:
    random = np.random.default_rng(size)
    yield np.full((size + 8, 8), 255, np.uint8)
    yield np.tile(np.array([255, 0], np.uint8), (size + 8, 4))
    yield np.tile(np.array([0, 255], np.uint8), (size + 8, 4))
    yield random.integers(0, 256, (size + 8, 8)).astype(np.uint8)


@together("size", SIZES)
@together("leaving", [0, 8])
def test_columns_of_bytes_share_words_without_carries(size: int, leaving: int) -> None:
    """Two columns a word, at most `size` white cells each; sums of columns are signed ones."""
    for rows in columns_of(size):
        found = np.zeros(8, np.int32)
        entering = size + leaving if leaving else size
        total = box(size).columns(
            ctypes.c_void_p(rows.ctypes.data),
            entering,
            leaving,
            ctypes.c_void_p(found.ctypes.data),
        )
        wanted = rows[leaving:entering].sum(axis=0, dtype=int)
        np.testing.assert_array_equal(found, wanted)
        assert total == wanted[:5].sum() - wanted[5:].sum()


# Sums of squared differences -----------------------------------------------------------


@pytest.mark.parametrize("blocks", [1, 3])
def test_sums_of_squared_differences_beyond_53_bits(blocks: int) -> None:
    """Black against white, a few samples less: no float holds these sums, and one is odd."""
    library = emulated.build(
        "squared_error", "squared_error", (("SAMPLE_BITS", "16"), ("THREADS", "16"))
    )
    first = np.zeros(2**23 - 5, np.uint16)
    second = np.full_like(first, 65535)
    first[::1000], second[::1000] = 65535, 0
    second[-1] = 1
    sums = np.zeros(blocks, np.uint64)
    emulated.launch(library, (blocks,), (16,), first, second, sums, ctypes.c_uint(len(first)))
    total = (len(first) - 1) * 65535**2 + 1
    assert total > 2**53
    assert int(float(total)) != total
    assert sum(sums.tolist()) == total


# The largest magnitude -----------------------------------------------------------------


@together("blocks", [1, 3])
@together("odd_one", [3.4028235e38, -3.4028235e38, np.inf, -np.inf, np.nan, -np.nan])
@together("place", [0, 15, 16, 500, 996])
def test_the_largest_magnitude_wherever_it_is(odd_one: float, place: int, blocks: int) -> None:
    library = emulated.build("largest", "largest", (("THREADS", "16"),))
    numbers = np.random.default_rng(1).normal(0, 1e37, 997).astype(np.float32)
    numbers[place] = odd_one
    found = np.zeros(blocks, np.uint32)
    emulated.launch(library, (blocks,), (16,), numbers, found, ctypes.c_uint(len(numbers)))
    assert found.max() == np.abs(numbers[place : place + 1]).view(np.uint32)[0]
    assert (found.max() < 0x7F800000) == np.isfinite(odd_one)


# The bias of Rician noise --------------------------------------------------------------

_WRITE = """
extern "C" float result(float value, float sigma, float candidates)
{
    const Sums sums = {candidates, {candidates * value * value}};
    float output;
    write(sums, &sigma, &output, 0);
    return output;
}
"""


@together(
    ("value", "sigma", "rest"),
    [(7, 5, 0), (239, 169, 0), (1393, 985, 0), (3, 2, 1), (577, 408, 1), (0, 1, 0)],
)
@together("scale", [1e-18, 2.0**-20, 1, 2.0**20, 1e12])
def test_rician_bias_next_to_what_it_leaves(
    value: int, sigma: int, rest: int, scale: float
) -> None:
    """As on the CPU (tests/filters/test_mri_nlm.py): exact where the scale is a power of two."""
    library = emulated.build("mri_nlm", "mri_nlm_global", (("TUNED", "0"),), behind=_WRITE)
    library.result.restype = ctypes.c_float
    found = library.result(*map(ctypes.c_float, (value * scale, sigma * scale, 1)))
    if np.frexp(scale)[0] == 0.5:
        assert found == rest * scale
    assert found == pytest.approx(rest * scale, abs=value * scale * 2.0**-10)
