"""Pillow images given to the library: as files of the same content, or refused."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, cast

import numpy as np
import PIL.Image
import pytest

import kernelscope as ks
from kernelscope.files import read_image


def colours() -> Any:
    noise = np.random.default_rng(5).integers(0, 255, (12, 10, 3), np.uint8)
    return PIL.Image.fromarray(noise)


@pytest.mark.parametrize("mode", ["P", "1", "L", "LA", "RGB", "RGBA", "I;16"])
def test_the_same_as_from_a_file(tmp_path: Path, mode: str):
    if mode == "I;16":
        image: Any = PIL.Image.fromarray(np.arange(120, dtype=np.uint16).reshape(12, 10) * 500)
    else:
        image = colours().convert(mode)
    image.save(tmp_path / "a.png")
    pixels = read_image(tmp_path / "a.png").pixels
    expected = ks.median(pixels, alpha=mode in ("LA", "RGBA"))
    np.testing.assert_array_equal(ks.median(image), expected)


def test_a_transparent_palette():
    image = colours().convert("P")
    image.info["transparency"] = 0
    np.testing.assert_array_equal(ks.median(image), ks.median(image.convert("RGBA")))


@pytest.mark.parametrize("mode", ["CMYK", "YCbCr", "LAB", "HSV", "RGBX", "RGBa"])
def test_other_colour_models_are_converted_and_the_log_says_so(
    mode: str, caplog: pytest.LogCaptureFixture
):
    rgb = colours()
    if mode == "LAB":
        image: Any = PIL.Image.frombytes("LAB", rgb.size, rgb.tobytes())
    else:
        image = (rgb.convert("RGBA") if mode == "RGBa" else rgb).convert(mode)
    expected = np.asarray(image.convert("RGBA" if mode == "RGBa" else "RGB"))
    with caplog.at_level(logging.INFO, "kernelscope"):
        negative = ks.negative(expected, alpha=mode == "RGBa")
        np.testing.assert_array_equal(ks.negative(image), negative)
    assert f"image: {mode} converted to RGB" in caplog.text


def test_inks_are_those_of_a_file(tmp_path: Path):
    image = colours().convert("CMYK")
    image.save(tmp_path / "a.tif")
    read = read_image(tmp_path / "a.tif")
    assert "CMYK converted to RGB without a colour profile." in read.notices
    np.testing.assert_array_equal(ks.median(image), ks.median(read.pixels))


def test_grey_weighed_by_alpha_is_divided_by_it(caplog: pytest.LogCaptureFixture):
    grey = PIL.Image.merge("LA", [colours().convert("L"), colours().getchannel(0)])
    with caplog.at_level(logging.INFO, "kernelscope"):
        found = ks.median(cast(Any, grey.convert("La")))
    np.testing.assert_array_equal(
        found, ks.median(np.asarray(grey.convert("La").convert("LA")), alpha=True)
    )
    assert "image: La converted to LA." in caplog.text


def test_a_mode_without_a_conversion_is_refused(monkeypatch: pytest.MonkeyPatch):
    image: Any = PIL.Image.new("HSV", (10, 12))

    def convert(mode: str) -> None:
        raise ValueError("not supported")

    monkeypatch.setattr(image, "convert", convert)
    with pytest.raises(ks.AppError, match="image of mode HSV"):
        ks.median(image)
