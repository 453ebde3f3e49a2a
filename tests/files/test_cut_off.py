"""Files that were cut off open with the part that is there, and say how large it is."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from kernelscope.base.errors import ImageReadError
from kernelscope.files import read_image, write_image
from kernelscope.images.image import Image
from tests.files.makers import jpeg, png_chunk
from tests.paths import ROOT

ROWS = re.compile(
    r"The file is cut off: only rows 1 to (\d+) of (\d+) are there; the others are (\w+)\."
)
PHOTO = np.asarray(PIL.Image.open(ROOT / "resources" / "coffee.png").convert("RGB"))[:200, :304]
SEQUENTIAL = ("baseline", "restarts", "grey", "CMYK", "12-bit", "lossless")


def png(dtype: Any = np.uint8, channels: int = 3) -> bytes:
    pixels = (PHOTO[..., :channels].astype(dtype) * (257 if dtype == np.uint16 else 1)).squeeze()
    path = Path("a.png")
    write_image(Image.from_array(pixels), path)
    return path.read_bytes()


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def true_rows(path: Path, whole: np.ndarray) -> tuple[int, int, str]:
    """Return how many rows of a file equal those of the whole, how many it says, and the rest."""
    image = read_image(path)
    assert image.pixels.shape == whole.shape
    (said,) = filter(None, map(ROWS.fullmatch, image.notices))
    differs = (image.pixels != whole).reshape(len(whole), -1).any(axis=1)
    return int(differs.argmax()), int(said[1]), said[3]


@pytest.mark.parametrize("end", [b"", b"\xff\xd9"], ids=["no mark", "end mark"])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
@pytest.mark.parametrize("kind", SEQUENTIAL)
def test_the_rows_of_a_jpeg(tmp_path: Path, kind: str, share: float, end: bytes) -> None:
    data, path = jpeg(kind, PHOTO), tmp_path / "a.jpg"
    path.write_bytes(data)
    whole = read_image(path).pixels
    path.write_bytes(data[: round(len(data) * share)] + end)
    there, said, rest = true_rows(path, whole)
    assert there == said
    assert 200 * share - 40 < said < 200
    assert rest == "grey"


def test_a_progressive_jpeg_says_that_detail_is_missing(tmp_path: Path) -> None:
    data, path = jpeg("progressive", PHOTO), tmp_path / "a.jpg"
    path.write_bytes(data[: len(data) // 2])
    notices = " ".join(read_image(path).notices)
    assert "The file is cut off: detail is missing, most below row" in notices
    assert "it lacks scans" in notices


@pytest.mark.parametrize("kind", [*SEQUENTIAL, "progressive", "LS"])
def test_only_the_end_mark_is_missing(tmp_path: Path, kind: str) -> None:
    data, path = jpeg(kind, PHOTO), tmp_path / "a.jpg"
    path.write_bytes(data)
    whole = read_image(path)
    path.write_bytes(data[:-2])
    np.testing.assert_array_equal(read_image(path).pixels, whole.pixels)
    assert read_image(path).notices == whole.notices


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_what_has_nothing_to_show_is_refused(tmp_path: Path, share: float) -> None:
    path = tmp_path / "a.jpg"
    data = jpeg("LS", PHOTO) if share == 0.5 else jpeg("baseline", PHOTO)
    path.write_bytes(data[: round(len(data) * share)])
    with pytest.raises(ImageReadError, match="cut off"):
        read_image(path)


@pytest.mark.parametrize("stray", [b"\0", b"\0\x12stray", b"\xff", b"\xff\0\xff\0", bytes(500)])
def test_stray_bytes_between_segments(tmp_path: Path, stray: bytes) -> None:
    data, path = jpeg("baseline", PHOTO), tmp_path / "a.jpg"
    path.write_bytes(data)
    whole = read_image(path)
    # As far as a file is recognised, in front of the first one, too.
    at = 2 if len(stray) < 500 else 4 + int.from_bytes(data[4:6], "big")
    while data[at + 1] != 0xDA:  # in front of each segment up to the scan
        path.write_bytes(data[:at] + stray + data[at:])
        image = read_image(path)
        np.testing.assert_array_equal(image.pixels, whole.pixels)
        assert (image.metadata, image.notices) == (whole.metadata, whole.notices)
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")


@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
@pytest.mark.parametrize(("dtype", "channels"), [(np.uint8, 1), (np.uint8, 3), (np.uint16, 3)])
def test_the_rows_of_a_png(tmp_path: Path, dtype: Any, channels: int, share: float) -> None:
    data, path = png(dtype, channels), tmp_path / "b.png"
    path.write_bytes(data)
    whole = read_image(path).pixels
    path.write_bytes(data[: round(len(data) * share)])
    there, said, rest = true_rows(path, whole)
    assert there == said
    assert 200 * share - 40 < said < 200
    assert rest == "black"
    assert not read_image(path).pixels[said:].any()


def test_a_png_without_its_end(tmp_path: Path) -> None:
    data, path = png(), tmp_path / "b.png"
    path.write_bytes(data[:-12])
    image = read_image(path)
    np.testing.assert_array_equal(image.pixels, PHOTO)
    assert image.notices == ("The file is cut off behind its picture, which is whole.",)


def test_an_interlaced_png(tmp_path: Path) -> None:
    """Of all passes, up to the end of the data; by a reader of its own."""
    path = tmp_path / "b.png"
    grey = PHOTO[:64, :64, 0]
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
              (0, 1, 1, 2))  # fmt: skip
    raw, places = b"", []
    for x, y, right, down in passes:
        for row in range(y, 64, down):
            raw += b"\0" + grey[row, x::right].tobytes()
            places.append((row, slice(x, None, right), len(raw)))
    header = b"\0\0\0\x40\0\0\0\x40\x08\0\0\0\x01"
    packed = zlib.compress(raw, 0)
    kept = 1500
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", packed[:kept])
    )
    image = read_image(path)
    expected = np.zeros_like(grey)
    for row, columns, end in places:
        if end <= kept - 7:  # the header of zlib, and that of a stored block
            expected[row, columns] = grey[row, columns]
    np.testing.assert_array_equal(image.pixels, expected)
    assert "pixels of its later passes are not there" in image.notices[0]


def test_a_png_without_a_row_is_refused(tmp_path: Path) -> None:
    data, path = png(), tmp_path / "b.png"
    path.write_bytes(data[: data.index(b"IDAT") + 20])
    with pytest.raises(ImageReadError, match="cut off: its data end before the first row"):
        read_image(path)
