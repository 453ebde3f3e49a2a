"""DICOM files with several frames that do not state their number."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
from pydicom import dcmread, uid
from pydicom.pixels.encoders import RLELosslessEncoder

from kernelscope.base.errors import ImageReadError
from kernelscope.files import read_image
from kernelscope.files.volumes import read_volume
from tests.files.test_volumes_dicom import encapsulate, enhanced
from tests.files.test_volumes_dicom import write as write_slice

SIDES = (32, 40)
GREY = [np.random.default_rng(n).integers(0, 256, SIDES, np.uint8) for n in range(3)]
COLOUR = [np.random.default_rng(n).integers(0, 256, (*SIDES, 3), np.uint8) for n in range(3)]


def rle(frame: Any) -> bytes | bytearray:
    colour = frame.ndim == 3
    encoded: bytes | bytearray = RLELosslessEncoder.encode(
        frame, rows=SIDES[0], columns=SIDES[1], samples_per_pixel=3 if colour else 1,
        bits_allocated=8, bits_stored=8, pixel_representation=0, number_of_frames=1,
        photometric_interpretation="RGB" if colour else "MONOCHROME2", planar_configuration=0,
    )  # fmt: skip
    return encoded


ENCODERS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "JPEG": (uid.JPEGLosslessSV1, lambda a: imagecodecs.jpeg8_encode(a, lossless=True)),
    "JPEG-LS": (uid.JPEGLSLossless, imagecodecs.jpegls_encode),
    "JPEG 2000": (
        uid.JPEG2000Lossless,
        lambda a: imagecodecs.jpeg2k_encode(a, reversible=True, codecformat="j2k", mct=False),
    ),
    "RLE": (uid.RLELossless, rle),
}


def write(path: Path, syntax: Any, pieces: list[bytes], offsets: bool, colour: bool) -> Path:
    tags: dict[str, Any] = {"PhotometricInterpretation": "RGB", "SamplesPerPixel": 3}
    tags["PlanarConfiguration"] = 0
    data = write_slice(path, COLOUR[0] if colour else GREY[0], 0, **tags if colour else {})
    encapsulate(data, path, syntax, *pieces, has_bot=offsets)
    return path


@pytest.mark.parametrize("offsets", [False, True])
@pytest.mark.parametrize("kind", ENCODERS)
def test_the_first_of_several_is_read_and_said(tmp_path: Path, kind: str, offsets: bool) -> None:
    syntax, encode = ENCODERS[kind]
    grey = write(tmp_path / "g", syntax, [bytes(encode(each)) for each in GREY], offsets, False)
    volume = read_volume(grey)
    np.testing.assert_array_equal(volume.voxels, GREY[0][np.newaxis])
    assert any("Only the first of 3 frames of g is read" in each for each in volume.notices)
    colour = write(tmp_path / "c", syntax, [bytes(encode(each)) for each in COLOUR], offsets, True)
    image = read_image(colour)
    np.testing.assert_array_equal(image.pixels, COLOUR[0])
    assert "Only the first of 3 pictures is shown." in image.notices


@pytest.mark.parametrize("kind", ENCODERS)
def test_one_frame_in_several_pieces_is_one(tmp_path: Path, kind: str) -> None:
    syntax, encode = ENCODERS[kind]
    data = bytes(encode(GREY[0]))
    pieces = [data[:400], data[400:800], data[800:]]
    volume = read_volume(write(tmp_path / "g", syntax, pieces, False, False))
    np.testing.assert_array_equal(volume.voxels, GREY[0][np.newaxis])
    assert not any("Only the first" in each for each in volume.notices)


def test_uncompressed_frames_are_counted_by_their_size(tmp_path: Path) -> None:
    data = enhanced(tmp_path / "a")
    one = data.Rows * data.Columns * data.BitsAllocated // 8
    for name in ("PerFrameFunctionalGroupsSequence", "NumberOfFrames"):
        delattr(data, name)
    data.save_as(tmp_path / "a")
    volume = read_volume(tmp_path / "a")
    assert len(data.PixelData) == 4 * one
    assert volume.depth == 1
    assert any("Only the first of 4 frames of a is read" in each for each in volume.notices)


def test_a_file_without_a_series_says_so(tmp_path: Path) -> None:
    syntax, encode = ENCODERS["RLE"]
    path = write(tmp_path / "g", syntax, [bytes(encode(GREY[0]))], False, False)
    data = dcmread(path)
    del data.SeriesInstanceUID
    data.save_as(path)
    with pytest.raises(ImageReadError, match="SeriesInstanceUID is missing"):
        read_volume(path)


def test_described_frames_are_all_read(tmp_path: Path) -> None:
    stated = enhanced(tmp_path / "a")
    expected = read_volume(tmp_path / "a")
    del stated.NumberOfFrames
    stated.save_as(tmp_path / "a")
    volume = read_volume(tmp_path / "a")
    assert volume.depth == 4
    np.testing.assert_array_equal(volume.voxels, expected.voxels)
    np.testing.assert_array_equal(volume.affine, expected.affine)


@pytest.mark.slow
@pytest.mark.parametrize("length", [1 << 10, 1 << 28])
def test_deflated_files_are_bounded(tmp_path: Path, length: int) -> None:
    data = enhanced(tmp_path / "a")
    data.file_meta.TransferSyntaxUID = uid.DeflatedExplicitVRLittleEndian
    data.add_new(0xFFFCFFFC, "OB", bytes(length))  # padding, which is no part of the picture
    data.save_as(tmp_path / "a", enforce_file_format=True)
    if length < 1 << 20:
        assert read_volume(tmp_path / "a").depth == 4
    else:
        with pytest.raises(ImageReadError, match="unpack to far more than their size explains"):
            read_volume(tmp_path / "a")
