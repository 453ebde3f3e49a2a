"""Mean against sums over NumPy's windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.filters.mean import SPEC
from kernelscope.filters.shared.box import LARGEST_OF_16_BITS, scale_of, tile_columns
from kernelscope.schema.borders import Border
from tests.filters import apply
from tests.oracle import to_dtype, windows
from tests.pairs import together

CASES: list[dict[str, Any]] = [{"size": 3}, {"size": 15}, {"size": 17}]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    cells, counted = windows(source, parameters["size"] // 2, border)
    exact: NDArray[Any] = cells.sum(axis=(-2, -1)) / counted.sum(axis=(-2, -1))
    return exact


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("border", [Border.REFLECT, Border.REDUCE])
def test_the_largest_mask_holds_its_sums(dtype: type[Any], border: Border) -> None:
    """White overflows first; black and white halves move the running sums up and down."""
    white = 1 if dtype is np.float32 else np.iinfo(dtype).max
    source = np.full((230, 120, 1), white, dtype)
    source[70:150, 10:] = 0
    parameters = {"size": 99}
    wanted = to_dtype(oracle(source, parameters, border), source.dtype)
    actual = apply(SPEC, source, parameters, border)
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=0 if white > 1 else 1e-6)


@pytest.mark.slow
@together("size", range(3, 101, 2))
def test_every_size(size: int) -> None:
    source = np.random.default_rng(size).integers(0, 256, (40, 101, 1)).astype(np.uint8)
    wanted = to_dtype(oracle(source, {"size": size}, Border.WRAP), source.dtype)
    np.testing.assert_array_equal(apply(SPEC, source, {"size": size}, Border.WRAP), wanted)


@together("size", range(3, LARGEST_OF_16_BITS + 1, 2))
def test_a_product_divides_every_sum_of_bytes(size: int) -> None:
    """The largest sum of 16 bits, and half of the cells on top, fit 16 bits."""
    cells, scale = size * size, scale_of(size)
    sums = np.arange(255 * cells + 1)
    halved = sums + scale.half
    assert halved[-1] < 2**16
    assert scale.multiplier < 2**16
    means = halved * scale.multiplier >> 16 >> scale.shift
    np.testing.assert_array_equal(means, np.rint(sums / cells))
    assert means[-1] == 255


@pytest.mark.slow
@together("size", range(LARGEST_OF_16_BITS + 2, 101, 2))
def test_a_float_product_divides_every_larger_sum(size: int) -> None:
    cells = size * size
    sums = np.arange(255 * cells + 1)
    means = np.rint(sums.astype(np.float32) * scale_of(size).factor)
    np.testing.assert_array_equal(means, np.rint(sums / cells))


@together("border", [Border.REFLECT, Border.CONSTANT, Border.VALID])
@together("shape", [(9, 31, 1), (9, 32, 1), (9, 33, 1), (9, 10, 3), (9, 11, 3)])
def test_rows_around_the_length_of_a_vector(shape: tuple[int, ...], border: Border) -> None:
    random = np.random.default_rng(shape[1])
    source = random.integers(0, 256, shape).astype(np.uint8)
    for size in (3, 5, 7, 9):
        if border is Border.VALID and size > shape[1]:
            continue
        wanted = to_dtype(oracle(source, {"size": size}, border), source.dtype)
        np.testing.assert_array_equal(apply(SPEC, source, {"size": size}, border), wanted)


def test_floats_do_not_drift() -> None:
    """A bright band must leave no trace in the running sums below it."""
    source = np.full((3000, 40, 1), 1e-3, np.float32)
    source[10:300] = 1e4
    output = apply(SPEC, source, {"size": 15}, Border.NEAREST)
    np.testing.assert_allclose(output[400:], 1e-3, rtol=1e-6)


@together("channels", [1, 2, 3, 4])
@together("border", [Border.REFLECT, Border.VALID])
def test_every_size_leaves_a_tile(channels: int, border: Border) -> None:
    """A block of level *tuned* reads 1024 columns, most of which should yield results."""
    for size in range(3, 101, 2):
        tile = tile_columns(size, channels, border)
        assert tile * channels % 32 == 0
        assert 512 < tile * channels <= 1024 - 2 * (size // 2) * channels
