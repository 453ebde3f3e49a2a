"""The kernel that reduces a picture to the size at which it is shown."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.backends.cuda.reduction import BLOCK, ReducedView
from tests.backends.emulated import build, launch, needs_compiler
from tests.backends.fake_card import FakeCard, FakeCubins

BITS = {np.dtype(np.uint8): "8", np.dtype(np.uint16): "16", np.dtype(np.float32): "32"}


def expected(pixels: NDArray[Any], factor: int) -> NDArray[Any]:
    """Return the means of squares, those of integers rounded, halves up."""
    height, width, channels = pixels.shape
    output = np.empty((-(-height // factor), -(-width // factor), channels), pixels.dtype)
    for y, x, c in np.ndindex(output.shape):
        top, left = y * factor, x * factor
        square = pixels[top : top + factor, left : left + factor, c]
        if pixels.dtype.kind == "f":
            output[y, x, c] = square.astype(np.float64).sum() / square.size
        else:
            output[y, x, c] = (2 * int(square.sum(dtype=np.int64)) + square.size) // (
                2 * square.size
            )
    return output


def pixels_of(dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    random = np.random.default_rng(shape)
    white = 1 if dtype.kind == "f" else np.iinfo(dtype).max
    return (random.random(shape) * white).astype(dtype)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("dtype", BITS, ids=str)
@pytest.mark.parametrize("factor", [2, 3, 7])
@pytest.mark.parametrize("shape", [(1, 1, 1), (13, 70, 1), (31, 37, 3)])
def test_means_of_squares(dtype: np.dtype[Any], factor: int, shape: tuple[int, ...]) -> None:
    pixels = pixels_of(dtype, shape)
    wanted = expected(pixels, factor)
    output = np.zeros_like(wanted)
    library = build("view", "view", (("SAMPLE_BITS", BITS[dtype]),))
    numbers = map(ctypes.c_int, (*shape, factor))
    rows, columns, channels = output.shape
    grid = -(-columns * channels // BLOCK[0]), -(-rows // BLOCK[1])
    launch(library, grid, BLOCK[:2], pixels, output, *numbers)
    np.testing.assert_array_equal(output, wanted)


def test_only_the_view_is_copied_and_its_memory_is_freed() -> None:
    card: Any = FakeCard(1 << 20)
    cubins: Any = FakeCubins()
    pixels = pixels_of(np.dtype(np.uint16), (30, 41, 3))

    def kernel(
        source: int, target: int, height: int, width: int, channels: int, factor: int
    ) -> float:
        memory = card.cuda
        shape = height, width, channels
        whole = memory.bytes_at(source, pixels.nbytes).view(np.uint16).reshape(shape)
        memory.bytes_at(target).view(np.uint16)[:] = expected(whole, factor).ravel()
        return 1e-3

    card.cuda.modules[b"view"] = {"view": kernel}

    def compute() -> NDArray[Any]:
        source = card.cuda.mem_alloc(pixels.nbytes)
        card.staging.upload(pixels, int(source))
        view = ReducedView.prepare(card, cubins, pixels.shape, pixels.dtype, 4)
        shown = view.download(card, int(source))
        source.free()
        return shown

    np.testing.assert_array_equal(card.call(compute), expected(pixels, 4))
    card.call(card.pool.release)
    assert not card.cuda.live
