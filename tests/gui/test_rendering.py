"""Pictures on their way to the clipboard and back."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtGui import QImage

from kernelscope.gui.viewer.rendering import from_clipboard, to_clipboard
from kernelscope.images.image import Image

RANDOM = np.random.default_rng(7)


def image(dtype: str, channels: int, shape: tuple[int, int] = (9, 13)) -> Image:
    if dtype == "float32":
        pixels = RANDOM.random((*shape, channels), np.float32)
    else:
        pixels = RANDOM.integers(0, np.iinfo(dtype).max, (*shape, channels), dtype, endpoint=True)
    return Image.from_array(pixels)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_clipboard_keeps_every_bit(dtype: str, channels: int) -> None:
    original = image(dtype, channels)
    pixels = from_clipboard(to_clipboard(original))
    assert pixels.dtype == dtype
    colours = pixels.reshape(9, 13, -1)
    expected = original.planes
    if channels == 2:  # Qt has no grey with alpha
        expected = expected[:, :, [0, 0, 0, 1]]
    np.testing.assert_array_equal(colours, expected)


def test_floats_go_to_the_clipboard_with_16_bits_clipped() -> None:
    pixels = np.array([[-1, 0, 0.5, 1, 2]], np.float32)
    copied = from_clipboard(to_clipboard(Image.from_array(pixels)))
    np.testing.assert_array_equal(copied, [[0, 0, 32768, 65535, 65535]])


def test_a_1_bit_picture_can_be_pasted() -> None:
    pasted = QImage(9, 2, QImage.Format.Format_Mono)
    pasted.setColorTable([0xFF000000, 0xFFFFFFFF])
    pasted.fill(0)
    pasted.setPixel(8, 1, 1)
    expected = np.zeros((2, 9), np.uint8)
    expected[1, 8] = 255
    np.testing.assert_array_equal(from_clipboard(pasted), expected)
