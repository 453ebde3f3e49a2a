"""Pictures on their way to the screen and to the clipboard and back."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from kernelscope.gui.canvas.rendering import from_clipboard, render, to_clipboard
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


@pytest.mark.parametrize(
    ("pixels", "shown"),
    [
        (np.array([[0, 255, 17]], np.uint8), [0, 255, 17]),
        (np.array([[0, 65535, 0x1234]], np.uint16), [0, 255, 0x12]),
        (np.array([[-3, 7, 0.2]], np.float32), [0, 255, 51]),
    ],
    ids=["uint8", "uint16", "float32"],
)
def test_display_maps_black_to_black_and_white_to_white(
    pixels: np.ndarray, shown: list[int]
) -> None:
    (drawn,) = render(Image.from_array(pixels))
    assert [drawn.pixelColor(x, 0).red() for x in range(3)] == shown


def test_reduced_pictures_are_averages() -> None:
    chequers = np.indices((1024, 1030)).sum(0) % 2 * 200
    images = render(Image.from_array(chequers.astype(np.uint8)))
    assert [(i.width(), i.height()) for i in images] == [(1030, 1024), (515, 512), (257, 256)]
    assert {images[2].pixelColor(x, 99).red() for x in range(5, 250)} <= {99, 100, 101}


def test_transparency_is_kept(qtbot: QtBot) -> None:
    pixels = np.full((2, 2, 4), 255, np.uint8)
    pixels[0, 0, 3] = 0
    (drawn,) = render(Image.from_array(pixels))
    assert drawn.pixelColor(0, 0).alpha() == 0
    assert drawn.pixelColor(1, 1).alpha() == 255
