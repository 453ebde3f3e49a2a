"""The kernels of the tuned median: rows, shared columns, networks, and the planes behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from kernelscope.backends.emulator.backend import EmulatorBackend
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.schema import launch
from kernelscope.schema.borders import Border
from kernelscope.schema.levels import TUNED
from tests.pairs import in_turn

pytestmark = pytest.mark.slow

DTYPES = ("uint8", "uint16", "float32")


def hostile(dtype: str, shape: tuple[int, int]) -> NDArray[Any]:
    """Return noise of which two fifths are the smallest and the largest value."""
    random = np.random.default_rng(shape[1])
    white = 1.0 if dtype == "float32" else float(np.iinfo(dtype).max)
    values = random.random(shape)
    values[random.random(values.shape) < 0.2] = 0
    values[random.random(values.shape) < 0.2] = 1
    return (values * white).astype(dtype)


def assert_equals_scipy(
    emulator: EmulatorBackend, pixels: NDArray[Any], size: int, border: Border
) -> None:
    request = Request.create(Image.from_array(pixels), "median", {"size": size}, border=border)
    actual = emulator.run(request, TUNED, RunContext()).planes[:, :, 0]
    np.testing.assert_array_equal(actual, median_filter(pixels, size, mode=border.value))


@pytest.mark.parametrize(("dtype", "size"), in_turn(DTYPES, (11, 13, 15, 17), every=2))
def test_large_masks_equal_scipy(
    emulator: EmulatorBackend, monkeypatch: pytest.MonkeyPatch, dtype: str, size: int
) -> None:
    """300 columns: whole quads inside the picture, and tiles at all four sides."""
    monkeypatch.setattr(launch, "BY_SIZE", False)
    assert_equals_scipy(emulator, hostile(dtype, (44, 300)), size, Border.MIRROR)


@pytest.mark.parametrize(("dtype", "size"), in_turn(DTYPES, (5, 7, 9, 11), every=2))
def test_shared_columns_equal_scipy(
    emulator: EmulatorBackend, monkeypatch: pytest.MonkeyPatch, dtype: str, size: int
) -> None:
    """Two blocks and a part of one side by side: their ends read columns of each other's."""
    monkeypatch.setattr(launch, "BY_SIZE", False)
    for shape in ((23, 1100), (9, 1021), (5, 8)):
        assert_equals_scipy(emulator, hostile(dtype, shape), size, Border.MIRROR)


@pytest.mark.parametrize("border", [Border.MIRROR, Border.CONSTANT, Border.WRAP])
@pytest.mark.parametrize("by_size", [False, True])
def test_grey_bytes_equal_scipy(
    emulator: EmulatorBackend, monkeypatch: pytest.MonkeyPatch, by_size: bool, border: Border
) -> None:
    """Down the rows, and the shape for small pictures; of 1021 columns another kernel."""
    monkeypatch.setattr(launch, "BY_SIZE", by_size)
    for shape in ((23, 1100), (9, 1021), (7, 8), (3, 4), (2, 4)):
        assert_equals_scipy(emulator, hostile("uint8", shape), 3, border)
