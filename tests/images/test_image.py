"""Images: accepted input, its stored form, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.base.errors import InvalidImage
from kernelscope.images.image import DTYPES, MAX_SAMPLES, Image
from tests.pairs import together


@together("dtype", DTYPES)
@together("shape", [(1, 1), (2, 3), (2, 3, 2), (2, 3, 3), (2, 3, 4)])
def test_keeps_what_filters_work_on(dtype: np.dtype, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    image = Image.from_array(array)
    assert np.shares_memory(image.pixels, array)
    np.testing.assert_array_equal(image.pixels, array)
    assert image.pixels.dtype == dtype
    assert (image.height, image.width) == shape[:2]
    assert image.channels == (shape[2] if len(shape) == 3 else 1)
    assert image.planes.shape == (*shape[:2], image.channels)
    assert image.has_alpha == (image.channels in (2, 4))
    assert image.is_grey == (image.channels < 3)


def test_pixels_cannot_be_written_and_the_array_still_can() -> None:
    array = np.zeros((2, 2), np.uint8)
    image = Image.from_array(array)
    with pytest.raises(ValueError, match="read-only"):
        image.pixels[0, 0] = 1
    assert array.flags.writeable


def test_one_channel_is_grey() -> None:
    assert Image.from_array(np.zeros((2, 3, 1), np.uint8)).pixels.shape == (2, 3)


@pytest.mark.parametrize("kind", ["u2", "f4"])
def test_big_endian_is_converted(kind: str) -> None:
    array = np.array([[1, 256], [3, 4]], ">" + kind)
    image = Image.from_array(array)
    assert image.pixels.dtype.isnative
    np.testing.assert_array_equal(image.pixels, array)


@together(
    "view",
    [
        lambda a: a[::2, ::3],
        lambda a: a[::-1],
        lambda a: np.asfortranarray(a),
        lambda a: a.swapaxes(0, 1),
        lambda a: np.broadcast_to(a[:1], a.shape),
    ],
)
def test_other_layouts_are_copied(view) -> None:
    array = view(np.arange(180, dtype=np.uint16).reshape(6, 10, 3))
    image = Image.from_array(array)
    assert image.pixels.flags.c_contiguous
    np.testing.assert_array_equal(image.pixels, array)


@together(
    ("array", "message"),
    [
        (np.zeros((2, 2), np.int16), "p.bmp: samples of type int16 cannot be filtered."),
        (np.zeros((2, 2), bool), "samples of type bool"),
        (np.zeros((2, 2), np.float64), "samples of type float64"),
        (np.zeros((2, 2), object), "samples of type object"),
        (np.zeros(4, np.uint8), "p.bmp: an array of shape (4,) is not an image."),
        (np.zeros((2, 2, 5), np.uint8), "shape (2, 2, 5)"),
        (np.zeros((2, 2, 0), np.uint8), "shape (2, 2, 0)"),
        (np.zeros((2, 2, 2, 3), np.uint8), "shape (2, 2, 2, 3)"),
        (np.zeros((0, 4), np.uint8), "p.bmp: the image has no pixels."),
        (np.zeros((4, 0, 3), np.uint8), "p.bmp: the image has no pixels."),
        (
            np.array([[0, np.nan], [np.inf, -np.inf]], np.float32),
            "p.bmp: 2 of 4 samples are infinite or too large for 32-bit floats.",
        ),
        (np.array([[0, np.nan]], np.float32), "p.bmp: 1 of 2 samples is NaN, which is no number."),
        (
            np.broadcast_to(np.uint8(0), (2**16, MAX_SAMPLES // 2**16)),
            "p.bmp: 32768×65536 pixels are too many.",
        ),
    ],
)
def test_refuses_with_the_cause(array: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidImage) as caught:
        Image.from_array(array, title="p.bmp")
    assert message in caught.value.message


@together(
    ("shape", "dtype", "text"),
    [
        ((4, 6), np.uint8, "p, 6×4, grey, 8 bit"),
        ((4, 6, 2), np.uint16, "p, 6×4, grey with alpha, 16 bit"),
        ((4, 6, 3), np.float32, "p, 6×4, RGB, 32-bit float"),
        ((4, 6, 4), np.uint8, "p, 6×4, RGBA, 8 bit"),
    ],
)
def test_describes_itself(shape: tuple[int, ...], dtype: type, text: str) -> None:
    assert Image.from_array(np.zeros(shape, dtype), "p").describe() == text
