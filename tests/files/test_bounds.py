"""Files of few bytes that would keep a reader busy, or unpack to far more than they declare."""

from __future__ import annotations

import functools
import gzip
import io
import lzma
import struct
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import imagecodecs
import numpy as np
import PIL.Image
import pytest
import tifffile
from pydicom.uid import (
    HTJ2KLossless,
    JPEG2000Lossless,
    JPEGBaseline8Bit,
    JPEGLosslessSV1,
    JPEGLSLossless,
    RLELossless,
)

from kernelscope.base.errors import ImageReadError
from kernelscope.files import read_image, watched
from kernelscope.files.formats import Unreadable
from kernelscope.files.pictures.jpeg import check_coded_size
from kernelscope.files.volumes import read_volume
from kernelscope.files.watched import WatchedFile
from tests import builds
from tests.files.makers import png_chunk, png_header
from tests.files.test_volumes_dicom import encapsulate
from tests.files.test_volumes_dicom import write as write_slice
from tests.foreign import posix
from tests.scripts import run_python


def nifti(*sides: int) -> bytes:
    """A header for 8-bit voxels."""
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, len(sides), *sides, *[1] * (7 - len(sides)))
    struct.pack_into("<2h", header, 70, 2, 8)
    struct.pack_into("<f", header, 108, 352)
    header[344:348] = b"n+1\0"
    return bytes(header)


class TestWatch:
    @pytest.fixture
    def impatient(self, monkeypatch):
        """No time at all: any reader that is checked at all is stopped."""
        monkeypatch.setattr(watched, "SECONDS", 0.0)
        monkeypatch.setattr(watched, "SECONDS_PER_BYTE", 0.0)

    @pytest.mark.parametrize("method", ["read", "read1", "readline", "readinto"])
    def test_endless_reading_is_ended(self, put, impatient, method):
        def read(path):
            with WatchedFile(path) as file:
                for _ in range(1000):
                    file.seek(0)
                    getattr(file, method)(bytearray(1) if method == "readinto" else 1)

        with pytest.raises(Unreadable, match="takes too long"):
            read(put("a", b"a"))

    @pytest.mark.parametrize("own", [False, True])
    def test_a_library_that_takes_it_for_the_end_of_the_data(self, put, impatient, own):
        """Only an error of its own says more."""

        def read(path):
            with WatchedFile(path) as file:
                try:
                    while True:
                        file.read(0)
                except Unreadable:
                    if own:
                        raise KeyError from None

        with pytest.raises(KeyError if own else Unreadable):
            read(put("a", b"a"))

    def test_decoding_is_not_watched(self, put, impatient):
        with WatchedFile(put("a", b"a")) as file:
            file._end = float("inf")
            file.trust()
            for _ in range(1000):
                file.read(0)

    def test_trust_comes_too_late(self, put, impatient):
        with pytest.raises(Unreadable), WatchedFile(put("a", b"a")) as file:
            file.trust()

    def test_more_time_for_more_data(self, put, monkeypatch):
        monkeypatch.setattr(watched, "SECONDS", 0.0)
        monkeypatch.setattr(watched, "SECONDS_PER_BYTE", 1e-3)
        with WatchedFile(put("a", b"a")) as file:
            file.allow(10**9)
            for _ in range(1000):
                file.read(0)

    @pytest.mark.parametrize(
        "data",
        [
            b"\x1f\x8b\x08\x08" + bytes(6) + b"a" * 9999,  # the name of a packed file
            b"P5" + b" " * 9999,
            b"P5" + b"#\n" * 9999,
            # A chain of pages without entries.
            b"II*\0\x08\0\0\0" + b"".join(struct.pack("<HI", 0, 14 + 6 * i) for i in range(999)),
            bytes(128) + b"DICM" + struct.pack("<HH2sHI", 9, 1, b"UL", 4, 0) * 999,
        ],
        ids=["name", "blanks", "comments", "pages", "elements"],
    )
    def test_every_walk_is_watched(self, put, impatient, data):
        path = put("a", data)
        read = read_volume if data[:1] in (b"\x1f", b"\0") else read_image
        with pytest.raises(ImageReadError, match="takes too long"):
            read(path)


class TestClaims:
    def test_segments_of_a_jpeg(self, put):
        with pytest.raises(ImageReadError, match="no end of segments"):
            read_image(put("a", b"\xff\xd8" + b"\xff\xfe\0\2" * 2**17))

    @pytest.mark.slow
    def test_chunks_of_a_png(self, put):
        data = png_header(3, 3) + png_chunk(b"tEXt", b"") * 2**20
        with pytest.raises(ImageReadError, match="too many chunks"):
            read_image(put("a", data))

    def test_canvas_of_an_animated_webp(self, put):
        buffer = io.BytesIO()
        frames = [PIL.Image.new("RGBA", (12, 9), colour) for colour in ("red", "blue")]
        frames[0].save(buffer, "WEBP", save_all=True, append_images=frames[1:])
        data = bytearray(buffer.getvalue())
        assert data[12:16] == b"VP8X"
        data[24:30] = struct.pack("<I", 16382)[:3] * 2
        with pytest.raises(ImageReadError, match="animation has 16383×16383 pixels"):
            read_image(put("a", bytes(data)))

    def test_volumes_of_a_nifti(self, put):
        path = put("a.nii", nifti(1, 1, 1, 400, 400) + bytes(400 * 400))
        with pytest.raises(ImageReadError, match="it holds 160000 volumes"):
            read_volume(path)

    @pytest.mark.slow
    def test_more_data_than_a_nifti_tells(self, put):
        pack = zlib.compressobj(9, zlib.DEFLATED, 31)
        parts = [pack.compress(nifti(2, 2, 2))]
        parts += [pack.compress(bytes(2**20)) for _ in range(65)]
        path = put("a.nii.gz", b"".join([*parts, pack.flush()]))
        with pytest.raises(ImageReadError, match="far more data follow"):
            read_volume(path)

    @pytest.mark.slow
    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_all_volumes_of_a_packed_nifti(self, put, monkeypatch, number):
        """Volumes follow the chosen one, and unpacking them takes time."""
        voxels = np.repeat(np.array([1, 2, 3], np.uint8), 2**24)
        path = put("a.nii.gz", gzip.compress(nifti(1024, 1024, 16, 3) + voxels.tobytes(), 1))
        assert (read_volume(path, number).voxels == number).all()
        monkeypatch.setattr("kernelscope.files.volumes.nifti._MAX_REST", 2**16)
        monkeypatch.setattr(watched, "_CALLS", 1)
        monkeypatch.setattr(watched, "SECONDS", 0.0)
        monkeypatch.setattr(watched, "SECONDS_PER_BYTE", 1e-6)
        monkeypatch.setattr(time, "thread_time", iter(np.arange(0, 99, 0.01)).__next__)
        assert (read_volume(path, number).voxels == number).all()

    @pytest.mark.parametrize("factor", [1.0, float("inf"), float("nan"), 1e38, 1e-38])
    def test_directions_of_a_nifti(self, put, factor):
        """No warning of NumPy's either: those are errors in tests."""
        header = bytearray(nifti(2, 2, 2))
        struct.pack_into("<h", header, 254, 1)
        struct.pack_into("<12f", header, 280, factor, 0, 0, 0, 0, factor, 0, 0, 0, 0, factor, 0)
        volume = read_volume(put("a.nii", bytes(header) + bytes(8)))
        assert (volume.affine is not None) == (factor in (1, 1e38))

    @pytest.mark.parametrize("text", [r"{'descr': '\o1'", "{'shape': (3L, 1if)", "{" * 9000])
    def test_header_of_an_array(self, put, text):
        data = b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode()
        with pytest.raises(ImageReadError, match="none of an array of numbers"):
            read_volume(put("a.npy", data))

    def test_header_of_python_2(self, put):
        text = b"{'descr': '<u2', 'fortran_order': True, 'shape': (1L, 2L, 3L), }\n"
        data = b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text
        volume = read_volume(put("a.npy", data + np.arange(6, dtype="<u2").tobytes()))
        assert volume.voxels.tolist() == [[[0, 2, 4], [1, 3, 5]]]


class TestPlainNetpbm:
    def test_numbers_across_pieces(self, put, monkeypatch):
        from kernelscope.files.pictures import netpbm

        values = np.random.default_rng(1).integers(0, 65536, (40, 30))
        text = "".join(f"{value:06}{' ' if value % 2 else chr(10)}" for value in values.flat)
        path = put("a.pgm", f"P2 30 40 65535 {text}".encode())
        for piece in (8, 9, 100, 2**20):
            monkeypatch.setattr(netpbm, "_PIECE", piece)
            np.testing.assert_array_equal(read_image(path).pixels, values)


def test_loading_a_library_is_not_the_files_doing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(10))
    with WatchedFile(path) as handle:
        monkeypatch.setitem(sys.modules, "loaded_meanwhile", ModuleType("loaded_meanwhile"))
        after = time.thread_time() + 10 * watched.SECONDS
        with monkeypatch.context() as patch:
            patch.setattr(time, "thread_time", lambda: after)
            handle.trust()
    handle = WatchedFile(path)
    monkeypatch.setattr(time, "thread_time", lambda: after + 10 * watched.SECONDS)
    with pytest.raises(Unreadable, match="too long"):
        handle.trust()
    handle.close()


DECLARED, SIDE = 64, 6000
UNPACKED = SIDE * SIDE
MOST_MEMORY = 16 * 2**20
"""Less than half of the unpacked bytes, and room for a codec at its first use."""

ZEROS = np.zeros((SIDE, SIDE), np.uint8)


@functools.cache
def plain() -> bytes:
    return ZEROS.tobytes()


BOMBS: dict[int, Callable[[], Any]] = {
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

SYNTAXES: dict[Any, Callable[[], Any]] = {
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
    encapsulate(dataset, path, syntax, bytes(data))


def packed_before(make: Callable[[], Any], name: object) -> bytes:
    """Return ``make()`` of this session or an earlier one: all of them take six seconds."""

    def write(path: Path) -> None:
        path.write_bytes(make())

    # All of this file: `make` calls others, and takes numbers from it.
    key = "bomb", name, imagecodecs.__version__, Path(__file__).read_text("utf-8")
    return builds.built(write, ".bomb", *key).read_bytes()


def bombs(folder: Path) -> list[Path]:
    found = []
    for compression, make in BOMBS.items():
        samples = 3 if compression == 50001 else 1
        data = packed_before(make, compression)
        found.append(strip(folder / f"{compression}.tif", compression, data, samples))
    for syntax, make in SYNTAXES.items():
        path = folder / f"{syntax.name}.dcm".replace(" ", "").replace("/", "")
        frame(path, packed_before(make, syntax.name), (DECLARED, DECLARED), syntax)
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
    rows = [line.split("|") for line in run_python(CHILD, tmp_path, *named).splitlines()]
    assert [name for name, *_ in rows] == [path.name for path in named]
    assert [row for row in rows if int(row[2]) > MOST_MEMORY] == []
    # PNG, too: rows beyond those of the header are left aside.
    opened = {name for name, outcome, _ in rows if outcome == "opened"}
    assert opened == {*(f"{number}.tif" for number in CUT), "a.png"}


@pytest.mark.parametrize("compression", [7, 34712, 34887, 34933, 50002])
def test_a_strip_of_another_size_is_refused(compression: int, tmp_path: Path) -> None:
    codecs: dict[int, Callable[..., Any]] = {
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
    data = bytes(imagecodecs.jpegls_encode(ZEROS[:9, :10]))
    frame(tmp_path / "a.dcm", data, (9, 9), JPEGLSLossless)
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
