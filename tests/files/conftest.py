"""Fixtures that make pixels and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from kernelscope.files import reading
from kernelscope.files.formats import ONLY_FIRST, Decoded
from kernelscope.files.picture_formats import PictureFormat
from kernelscope.files.watched import WatchedFile


@pytest.fixture
def noise():
    """Return a function that makes random pixels: noise(shape, dtype)."""
    rng = np.random.default_rng(7)

    def make(shape: tuple[int, ...], dtype: Any = np.uint8) -> np.ndarray:
        if np.dtype(dtype).kind == "f":
            return rng.random(shape).astype(dtype)
        return rng.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)

    return make


@pytest.fixture
def save(tmp_path):
    """Return a function that saves pixels with Pillow: save(name, image or array, **options)."""

    def write(name: str, image: PIL.Image.Image | np.ndarray, **options: Any) -> Path:
        if isinstance(image, np.ndarray):
            image = PIL.Image.fromarray(image)
        path = tmp_path / name
        image.save(path, **options)
        return path

    return write


@pytest.fixture
def put(tmp_path):
    """Return a function that writes bytes: put(name, data)."""

    def write(name: str, data: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


@pytest.fixture(autouse=True)
def heads(monkeypatch):
    """Compare each picture that the tests of files read with its head."""
    decode = reading._decode

    def compared(found: PictureFormat, handle: WatchedFile) -> Decoded:
        decoded = decode(found, handle)
        head = reading.read_head(Path(handle.name))
        assert head is not None
        shape = decoded.pixels.shape if decoded.pixels.ndim == 3 else (*decoded.pixels.shape, 1)
        several = any(each.startswith(ONLY_FIRST) for each in decoded.notices)
        assert (head.shape, head.dtype) == (shape, decoded.pixels.dtype)
        assert several or not reading.is_one_of_several(head)  # some are found behind the first
        return decoded

    monkeypatch.setattr(reading, "_decode", compared)
