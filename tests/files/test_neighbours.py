"""Neighbours of the named cases: the same numbers in other layouts, byte orders and depths."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray

from kernelscope.base.errors import AppError
from kernelscope.files import read_image
from kernelscope.files.volumes import is_volume, read_volume
from tests.files.makers import png_chunk

_random = np.random.default_rng(5)


def numbers(shape: tuple[int, ...], dtype: str, most: int | None = None) -> NDArray[Any]:
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return _random.random(shape).astype(kind)
    info = np.iinfo(kind)
    native = kind.newbyteorder("=")
    top = info.max if most is None else most
    return _random.integers(info.min, top, shape, native, endpoint=True).astype(kind)


def tiff(array: NDArray[Any], wanted: NDArray[Any] | None = None, **how: Any) -> Any:
    how.setdefault("photometric", "minisblack")

    def make(folder: Path) -> Path:
        tifffile.imwrite(folder / "a.tif", array, **how)
        return folder / "a.tif"

    return make, array if wanted is None else wanted


def nifti(array: NDArray[Any], slope: float, intercept: float, endianness: Any = "<") -> Any:
    def make(folder: Path) -> Path:
        header = nibabel.Nifti1Header(endianness=endianness)
        header.set_data_dtype(array.dtype)
        image = nibabel.Nifti1Image(array.T, np.diag([2, 3, 4, 1.0]), header)
        image.set_qform(np.diag([2, 3, 4, 1.0]), 1)
        image.set_sform(None, 0)
        nibabel.save(image, folder / "a.nii")
        data = bytearray((folder / "a.nii").read_bytes())
        struct.pack_into(f"{endianness}ff", data, 112, slope, intercept)
        (folder / "a.nii").write_bytes(data)
        return folder / "a.nii"

    scale = (slope, intercept) if slope else (1.0, 0.0)
    return make, (array.astype(np.float64) * scale[0] + scale[1]).astype(np.float32)


def png(array: NDArray[Any], colour_type: int, wanted: NDArray[Any], extra: bytes = b"") -> Any:
    def make(folder: Path) -> Path:
        height, width = array.shape[:2]
        depth = 8 * array.dtype.itemsize
        header = struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, 0)
        rows = array.astype(array.dtype.newbyteorder(">"))
        data = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
        chunks = png_chunk(b"IHDR", header) + extra + png_chunk(b"IDAT", data)
        path = folder / "a.png"
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunks + png_chunk(b"IEND", b""))
        return path

    return make, wanted


BIG_ENDIAN = numbers((20, 30), ">u2")
SEPARATE = numbers((20, 30, 4), "u2")
SIGNED = numbers((20, 30), ">i2")
INVERTED = numbers((20, 30), "u2")
BITS = numbers((20, 32), "u1", 1)
GREY = numbers((20, 30), "u2")
ALPHA = np.where(GREY[0, 0] == GREY, 0, 65535).astype("u2")
PAIR = numbers((20, 30, 2), "u2")
INDEX, COLOURS, OPACITY = numbers((20, 30), "u1"), numbers((256, 3), "u1"), numbers((256,), "u1")

CASES: dict[str, Any] = {
    "big-endian tiles, predictor": tiff(
        BIG_ENDIAN,
        BIG_ENDIAN.astype("u2"),
        byteorder=">",
        predictor=True,
        compression="zlib",
        tile=(16, 16),
    ),
    "separate planes, BigTIFF": tiff(
        np.moveaxis(SEPARATE, 2, 0),
        SEPARATE,
        planarconfig="separate",
        photometric="rgb",
        tile=(16, 32),
        extrasamples=["unassalpha"],
        bigtiff=True,
    ),
    "float predictor": tiff(numbers((20, 30), "f4"), predictor=3, compression="zlib"),
    "stack of int8": tiff(numbers((3, 20, 30), "i1")),
    "stack of uint32": tiff(numbers((3, 20, 30), "u4", 2**24)),
    "big-endian page of int16": tiff(SIGNED, SIGNED.astype("i2")[None], byteorder=">"),
    "white is zero": tiff(INVERTED, 65535 - INVERTED, photometric="miniswhite"),
    "bits": tiff(BITS.astype(bool), BITS * np.uint8(255)),
    "NIfTI of CT": nifti(numbers((4, 20, 30), "i2", 1000), 1.0, -1024.0),
    "NIfTI of a negative slope": nifti(numbers((4, 20, 30), "u1"), -1.0, 255.0),
    "NIfTI without a slope": nifti(numbers((4, 20, 30), "u1"), 0.0, 5.0),
    "big-endian NIfTI": nifti(numbers((4, 20, 30), "f8"), 1.0, 0.0, ">"),
    "transparent grey of 16 bits": png(
        GREY,
        0,
        np.dstack([GREY, ALPHA]),
        png_chunk(b"tRNS", struct.pack(">H", int(GREY[0, 0]))),
    ),
    "grey and alpha, gamma": png(PAIR, 4, PAIR, png_chunk(b"gAMA", struct.pack(">I", 100_000))),
    "palette and alpha": png(
        INDEX,
        3,
        np.dstack([COLOURS[INDEX], OPACITY[INDEX]]),
        png_chunk(b"PLTE", COLOURS.tobytes()) + png_chunk(b"tRNS", OPACITY.tobytes()),
    ),
}


def read(path: Path) -> NDArray[Any]:
    return read_volume(path).voxels if is_volume(path) else read_image(path).pixels


@pytest.mark.parametrize("case", CASES)
def test_numbers(case: str, tmp_path: Path) -> None:
    make, wanted = CASES[case]
    np.testing.assert_array_equal(read(make(tmp_path)), wanted)


@pytest.mark.parametrize("share", [0.3, 0.9])
@pytest.mark.parametrize("case", CASES)
def test_cut_off_files_are_refused_or_say_so(case: str, share: float, tmp_path: Path) -> None:
    path: Path = CASES[case][0](tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    try:
        source: Any = read_volume(path) if is_volume(path) else read_image(path)
    except AppError:
        return
    assert source.notices
