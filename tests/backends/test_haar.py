"""The noise of a volume by haar.cu, emulated, is that of the host to the last bit."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.backends.cuda.components import PASSES, SEARCH_BYTES
from kernelscope.filters.shared.mri_sigma import (
    FLATTEST,
    estimate_component,
    estimate_global,
    estimates_by_share,
)
from kernelscope.schema.samples import Components, NoiseMedians
from tests.backends import emulated
from tests.backends.emulated import needs_compiler

THREADS = 16

DEFINES = (("PASSES", str(PASSES)), ("THREADS", str(THREADS)))


def middles(
    planes: NDArray[np.float32], share: float, stride: int, grid: int
) -> NDArray[np.float32]:
    """Return the result of haar.cu for components, shape (depth, height, width, components)."""
    *sides, count = planes.shape
    deep = [int(side > 1) for side in sides]
    blocks = [len(range(0, max(side - 1, 1), stride)) for side in sides]
    size = int(np.prod(blocks))
    bands = [np.full((count, size), np.nan, np.float32) for _ in range(3)]
    searches = np.zeros(count * SEARCH_BYTES + 64, np.uint8)
    found = np.full((count, 4), np.nan, np.float32)
    sides_of_a_row = map(ctypes.c_int, (planes.shape[1], planes.shape[2], count))
    by_value = (ctypes.c_int * 7)(*blocks, stride, *deep)
    emulated.launch(
        emulated.build("haar", "haar", DEFINES),
        (grid, count),
        (THREADS,),
        *(planes, *bands, searches, by_value, *sides_of_a_row),
    )
    digit = emulated.build("haar", "haar_digit", DEFINES)
    for number in range(PASSES):
        numbers_of_pass = ctypes.c_int(size), ctypes.c_int(number), ctypes.c_double(share)
        emulated.launch(digit, (grid, count), (THREADS,), *bands, searches, found, *numbers_of_pass)
    return found


def component(values: str, shape: tuple[int, int, int], number: int) -> NDArray[np.float32]:
    random = np.random.default_rng(number)
    if values == "noise":
        return random.normal(60 + 50 * (np.arange(shape[2]) > 9), 5 + number, shape).astype("f4")
    if values == "around zero":
        return random.normal(0, 1, shape).astype(np.float32)
    if values == "few values":  # many ranks share a number
        return random.integers(-2, 3, shape).astype(np.float32)
    if values == "wide":  # every digit of the bits of a float
        return (10.0 ** random.uniform(-18, 15, shape)).astype(np.float32)
    if values == "slope":  # a block in the middle is as bright as the average
        return np.broadcast_to(np.arange(shape[2], dtype=np.float32), shape).copy()
    return np.full(shape, 70 - number, np.float32)


@needs_compiler
@pytest.mark.parametrize(
    "values", ["noise", "around zero", "few values", "wide", "slope", "constant"]
)
@pytest.mark.parametrize(
    ("shape", "components"),
    [((9, 12, 33), 3), ((1, 23, 14), 2), ((7, 1, 30), 1), ((1, 1, 41), 1), ((2, 2, 2), 1)],
)
def test_the_same_bits_as_the_host(
    values: str, shape: tuple[int, int, int], components: int
) -> None:
    parts = [component(values, shape, number) for number in range(components)]
    planes = np.ascontiguousarray(np.stack(parts, axis=-1))

    def medians(number: int, share: float, stride: int) -> NoiseMedians:
        a, b, c, d = middles(planes, share, stride, grid=3)[number].tolist()
        return NoiseMedians((a, b), (c, d))

    source = Components(tuple(parts), lambda: planes, lambda _: (0, 0), noise_medians=medians)
    for number, part in enumerate(parts):
        for rician in (False, True):
            wanted = estimate_global(part, rician)
            assert estimate_component(source, number, rician) == wanted
            assert values not in ("noise", "wide") or wanted > 0
            assert values != "constant" or wanted == 0


@needs_compiler
def test_the_share_and_the_stride_count() -> None:
    volume = component("noise", (9, 12, 33), 0)
    planes = volume[..., np.newaxis]
    shares = (0.1, FLATTEST, 1)
    wanted = estimates_by_share(volume, False, *shares)
    assert len(set(wanted)) == 3
    for share, sigma in zip(shares, wanted, strict=True):
        low, high = middles(planes, share, 2, grid=2)[0, :2].tolist()
        assert (low + high) / 2 / 0.6744897501960817 == pytest.approx(sigma, rel=1e-15)
    assert not np.array_equal(middles(planes, 0.5, 2, 2), middles(planes, 0.5, 4, 2))
