"""Small files that unpack to far more than their headers declare, in every codec that is read."""

from __future__ import annotations

import functools
import gzip
import lzma
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
import tifffile
from pydicom.encaps import encapsulate
from pydicom.uid import (
    HTJ2KLossless,
    JPEG2000Lossless,
    JPEGBaseline8Bit,
    JPEGLosslessSV1,
    JPEGLSLossless,
    RLELossless,
)

from kernelscope.base.errors import ImageReadError
from kernelscope.files import read_image
from kernelscope.files.formats import Unreadable
from kernelscope.files.pictures.jpeg import check_coded_size
from kernelscope.files.volumes import read_volume
from tests.files.makers import png_chunk, png_header
from tests.files.test_bounds import nifti
from tests.files.test_volumes_dicom import write as write_slice
from tests.foreign import posix

DECLARED, SIDE = 64, 6000
UNPACKED = SIDE * SIDE
MOST_MEMORY = 16 * 2**20
"""Less than half of the unpacked bytes, and room for what a codec takes at its first use."""

ZEROS = np.zeros((SIDE, SIDE), np.uint8)


@functools.cache
def plain() -> bytes:
    return ZEROS.tobytes()


BOMBS: dict[int, Callable[[], bytes | bytearray]] = {
    5: lambda: imagecodecs.lzw_encode(plain()),
    6: lambda: imagecodecs.jpeg8_encode(ZEROS),
    7: lambda: imagecodecs.jpeg8_encode(ZEROS),
    8: lambda: zlib.compress(plain(), 1),
    22610: lambda: imagecodecs.jpegxr_encode(ZEROS),
    32773: lambda: b"\x81\0" * (UNPACKED // 128),
    32946: lambda: zlib.compress(plain(), 1),
    33003: lambda: imagecodecs.jpeg2k_encode(ZEROS),
    33005: lambda: imagecodecs.jpeg2k_encode(ZEROS),
    33007: lambda: imagecodecs.jpeg8_encode(ZEROS),
    34712: lambda: imagecodecs.jpeg2k_encode(ZEROS, codecformat="jp2"),
    34887: lambda: imagecodecs.lerc_encode(ZEROS),
    34892: lambda: imagecodecs.jpeg8_encode(ZEROS, lossless=True),
    34925: lambda: lzma.compress(plain(), preset=0),
    34926: lambda: imagecodecs.zstd_encode(plain()),
    34933: lambda: imagecodecs.png_encode(ZEROS, level=1),
    34934: lambda: imagecodecs.jpegxr_encode(ZEROS),
    50000: lambda: imagecodecs.zstd_encode(plain()),
    50001: lambda: imagecodecs.webp_encode(np.dstack([ZEROS] * 3), level=0),
    50002: lambda: imagecodecs.jpegxl_encode(ZEROS, effort=1),
    50013: lambda: zlib.compress(plain(), 1),
    52546: lambda: imagecodecs.jpegxl_encode(ZEROS, effort=1),
}
"""Strips by the number of their compression; the fax decoder has a test of its own."""

SYNTAXES: dict[Any, Callable[[], bytes | bytearray]] = {
    JPEGBaseline8Bit: BOMBS[7],
    JPEGLosslessSV1: BOMBS[34892],
    JPEGLSLossless: lambda: imagecodecs.jpegls_encode(ZEROS),
    JPEG2000Lossless: BOMBS[33003],
    HTJ2KLossless: BOMBS[34712],
    RLELossless: lambda: struct.pack("<16I", 1, 64, *[0] * 14) + BOMBS[32773](),
}

CUT = (5, 34925)
"""Codecs that end where the declared pixels do, and do not look whether more follows."""

CHILD = """
import sys
from pathlib import Path

from kernelscope.base.errors import AppError
from kernelscope.files import read_image
from kernelscope.files.volumes import is_volume, read_volume


def peak():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def outcome(path):
    try:
        read_volume(path) if is_volume(path) else read_image(path)
    except AppError as error:
        return "refused", str(error)
    return "opened", ""


for known in Path(sys.argv[1]).glob("good*"):  # libraries are loaded
    assert outcome(known)[0] == "opened", outcome(known)
for path in map(Path, sys.argv[2:]):
    before = peak()
    print(path.name, *outcome(path)[:1], peak() - before, sep="|")
"""


def strip(path: Path, compression: int, data: bytes | bytearray, samples: int) -> Path:
    """Write a page of one strip."""
    tags = [
        (256, 3, DECLARED),
        (257, 3, DECLARED),
        (258, 3, 8),
        (259, 3, compression),
        (262, 3, 1 if samples == 1 else 2),
        (273, 4, 8 + 2 + 12 * 9 + 4),
        (277, 3, samples),
        (278, 3, DECLARED),
        (279, 4, len(data)),
    ]
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    head = struct.pack("<2sHIH", b"II", 42, 8, len(tags))
    path.write_bytes(head + entries + bytes(4) + data)
    return path


def frame(path: Path, data: bytes | bytearray, declared: tuple[int, int], syntax: Any) -> None:
    """Write a slice of one compressed frame."""
    dataset = write_slice(path, np.zeros(declared, np.uint8), 0)
    dataset.file_meta.TransferSyntaxUID = syntax
    dataset.PixelData = encapsulate([bytes(data)])
    dataset["PixelData"].is_undefined_length = True
    dataset.save_as(path)


def bombs(folder: Path) -> list[Path]:
    found = []
    for compression, make in BOMBS.items():
        samples = 3 if compression == 50001 else 1
        found.append(strip(folder / f"{compression}.tif", compression, make(), samples))
    for syntax, make in SYNTAXES.items():
        path = folder / f"{syntax.name}.dcm".replace(" ", "").replace("/", "")
        frame(path, make(), (DECLARED, DECLARED), syntax)
        found.append(path)
    packed = zlib.compress(plain(), 1)
    data = png_header(DECLARED, DECLARED) + png_chunk(b"IDAT", packed) + png_chunk(b"IEND", b"")
    found.append(folder / "a.png")
    found[-1].write_bytes(data)
    found.append(folder / "a.nii.gz")
    found[-1].write_bytes(gzip.compress(nifti(4, 4, 4) + plain() * 2, 1))
    return found


@posix
@pytest.mark.slow
def test_memory_is_bound_by_what_the_header_declares(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "good.tif", ZEROS[:9, :9], compression="zlib")
    write_slice(tmp_path / "good.dcm", np.zeros((9, 9), np.uint8), 0)
    (tmp_path / "good.nii").write_bytes(nifti(2, 2, 2) + bytes(8))
    named = bombs(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, tmp_path, *named], capture_output=True, text=True, check=True
    )
    rows = [line.split("|") for line in done.stdout.splitlines()]
    assert [name for name, *_ in rows] == [path.name for path in named]
    assert [row for row in rows if int(row[2]) > MOST_MEMORY] == []
    # PNG, too: rows beyond those of the header are left aside.
    opened = {name for name, outcome, _ in rows if outcome == "opened"}
    assert opened == {*(f"{number}.tif" for number in CUT), "a.png"}


@pytest.mark.parametrize("compression", [7, 34712, 34887, 34933, 50002])
def test_a_strip_of_another_size_is_refused(compression: int, tmp_path: Path) -> None:
    codecs: dict[int, Callable[..., bytes | bytearray]] = {
        7: imagecodecs.jpeg8_encode,
        34712: functools.partial(imagecodecs.jpeg2k_encode, codecformat="jp2"),
        34887: imagecodecs.lerc_encode,
        34933: imagecodecs.png_encode,
        50002: imagecodecs.jpegxl_encode,
    }
    for sides in ((DECLARED, DECLARED + 1), (DECLARED + 1, DECLARED)):
        data = codecs[compression](ZEROS[: sides[0], : sides[1]])
        with pytest.raises(
            ImageReadError, match=r"a\.tif: a (compressed part|strip or tile) of it"
        ):
            read_image(strip(tmp_path / "a.tif", compression, data, 1))


def codestream(right: int, bottom: int, left: int, top: int, components: int) -> bytes:
    """Return the beginning of a JPEG 2000 with those bounds on its grid."""
    bounds = struct.pack(">4I", right, bottom, left, top)
    return b"\xff\x4f\xff\x51" + bytes(4) + bounds + bytes(16) + struct.pack(">H", components)


def test_the_size_of_a_jpeg_2000_counts_from_its_origin() -> None:
    check_coded_size(codestream(164, 264, 100, 200, 3), 64, 64, 3)
    for bounds in ((165, 264), (164, 265)):
        with pytest.raises(Unreadable, match=f"{bounds[0] - 100}×{bounds[1] - 200} pixels"):
            check_coded_size(codestream(*bounds, 100, 200, 3), 64, 64, 3)


def test_sizes_of_jpeg_2000_in_boxes_of_any_length() -> None:
    stream = codestream(64, 64, 0, 0, 5)
    start = b"\0\0\0\x0cjP  \r\n\x87\n"
    for between in (b"", struct.pack(">I4s", 8, b"free"), struct.pack(">I4sQ", 1, b"free", 16)):
        with pytest.raises(Unreadable, match="64×64 pixels of 5 samples, where 64×64 of 3"):
            check_coded_size(start + between + bytes(4) + b"jp2c" + stream, 64, 64, 3)
    endless = struct.pack(">I4s", 0, b"free")
    check_coded_size(start + endless + stream, 64, 64, 3)  # the decoder refuses it


@pytest.mark.parametrize(
    ("how", "sides", "parts"),
    [
        ({"tile": (32, 32)}, (40, 20), [(32, 20), (8, 20)]),
        ({"rowsperstrip": 32}, (40, 20), [(32, 20), (32, 20)]),
    ],
)
def test_tiles_may_end_at_the_edge_and_the_last_strip_beyond_it(
    how: dict[str, Any], sides: tuple[int, int], parts: list[tuple[int, int]], tmp_path: Path
) -> None:
    rows = np.arange(64 * 20, dtype=np.uint16).reshape(64, 20)
    cut = [rows[32 * n :][:tall, :wide].copy() for n, (tall, wide) in enumerate(parts)]
    tifffile.imwrite(
        tmp_path / "a.tif",
        map(imagecodecs.png_encode, cut),
        shape=sides,
        dtype="uint16",
        compression="png",
        photometric="minisblack",
        **how,
    )
    np.testing.assert_array_equal(read_image(tmp_path / "a.tif").pixels.squeeze(), rows[:40])


def test_frames_of_another_size_are_refused(tmp_path: Path) -> None:
    frame(tmp_path / "a.dcm", imagecodecs.jpegls_encode(ZEROS[:9, :10]), (9, 9), JPEGLSLossless)
    with pytest.raises(ImageReadError, match=r"has 10×9 pixels of 1 samples, where 9×9 of 1"):
        read_volume(tmp_path / "a.dcm")


CODECS = {
    "jpeg2000": ("uint8", "uint16"),
    "png": ("uint8", "uint16"),
    "webp": ("uint8",),
    "jpegxl": ("uint8", "uint16", "float32"),
    "jpegxr": ("uint8", "uint16"),
    "lerc": ("uint8", "uint16", "float32"),
    "lzma": ("uint8", "uint16", "float32"),
    "zstd": ("uint8", "uint16", "float32"),
}
LOSSLESS = {"webp": {"level": 100, "lossless": True}, "jpegxl": {"lossless": True}}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    "how", [{}, {"rowsperstrip": 16}, {"tile": (32, 32)}], ids=["whole", "strips", "tiles"]
)
def test_sound_files_of_every_codec_open(codec: str, how: dict[str, Any], tmp_path: Path) -> None:
    """Tiles at the edges and the last strip have fewer pixels than the others, or are filled up."""
    random = np.random.default_rng(0)
    for dtype in CODECS[codec]:
        for channels in (1, 3, 4):
            if codec == "webp" and channels == 1:
                continue
            shape = (50, 70) if channels == 1 else (50, 70, channels)
            samples = random.integers(0, 255, shape).astype(dtype)
            tifffile.imwrite(
                tmp_path / "a.tif",
                samples / np.float32(255) if dtype == "float32" else samples,
                photometric="minisblack" if channels == 1 else "rgb",
                extrasamples=("unassalpha",) if channels == 4 else None,
                compression=codec,
                compressionargs=LOSSLESS.get(codec),
                **how,
            )
            expected = tifffile.imread(tmp_path / "a.tif")
            np.testing.assert_array_equal(read_image(tmp_path / "a.tif").pixels, expected)


def test_entities_of_xml_are_not_expanded(tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    text = f'<!DOCTYPE OME [<!ENTITY e0 "0123456789">{entities}]><OME><Image>&e11;</Image></OME>'
    tifffile.imwrite(tmp_path / "a.ome.tif", ZEROS[:9, :9], description=text, metadata=None)
    with pytest.raises(ImageReadError, match="its OME-XML is damaged"):
        read_image(tmp_path / "a.ome.tif")
