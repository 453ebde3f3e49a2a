"""Files of few bytes that would keep a reader busy, or fill the memory."""

from __future__ import annotations

import gzip
import io
import struct
import sys
import time
import zlib
from pathlib import Path
from types import ModuleType

import numpy as np
import PIL.Image
import pytest

from kernelscope.base.errors import ImageReadError
from kernelscope.files import read_image, watched
from kernelscope.files.formats import Unreadable
from kernelscope.files.volumes import read_volume
from kernelscope.files.watched import WatchedFile
from tests.files.makers import png_chunk, png_header


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

    @pytest.mark.parametrize(
        ("text", "cause"),
        [
            ("1 2 3", "cut off"),
            ("1 2 3 ", "cut off"),
            ("1 2 3 x", "no numbers"),
            ("1 2 3 -4", "no numbers"),
            ("1 2 3 1000000000000", "above 9"),
            ("1 2 3 10", "above 9"),
        ],
    )
    def test_damage(self, put, text, cause):
        with pytest.raises(ImageReadError, match=cause):
            read_image(put("a.pgm", f"P2 2 2 9\n{text}".encode()))


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
