"""Fax codes against libtiff (through Pillow), which wrote and reads most fax pages there are."""

from __future__ import annotations

import io
import struct

import numpy as np
import PIL.Image
import pytest
import tifffile

from kernelscope.base.errors import ImageReadError
from kernelscope.files import read_image
from kernelscope.files.formats import Unreadable
from kernelscope.files.pictures import fax
from kernelscope.files.volumes import read_volume

KINDS = {
    "group4": ("group4", None),
    "group3": ("group3", None),
    "group3-2d": ("group3", 1),
    "group3-aligned": ("group3", 4),
    "group3-2d-aligned": ("group3", 5),
    "huffman": ("tiff_ccitt", None),
}
T4_OPTIONS = 292


def page(rng: np.random.Generator, number: int) -> np.ndarray:
    """A page of noise, of blocks, of stripes, or all of one colour; every tenth is very wide."""
    height, width = rng.integers(1, 40, 2)
    if number % 10 == 0:
        height, width = 2, int(rng.integers(2000, 8000))
    black = rng.choice([0, 0.002, 0.02, 0.2, 0.5, 0.8, 0.98, 0.999, 1])
    bits = rng.random((height, width)) < black
    if number % 3 == 0:
        bits = np.repeat(bits, int(rng.integers(1, 9)), axis=1)
    if number % 5 == 0:
        bits = np.repeat(bits, 3, axis=0)
    return np.ascontiguousarray(bits)


def by_libtiff(bits: np.ndarray, kind: str) -> bytes:
    """A TIFF with white as 1."""
    compression, options = KINDS[kind]
    buffer = io.BytesIO()
    info = {} if options is None else {T4_OPTIONS: options}
    PIL.Image.fromarray(bits).save(buffer, "TIFF", compression=compression, tiffinfo=info)
    return buffer.getvalue()


def segments(data: bytes) -> list[tuple[int, int]]:
    """Where the strips are, and how long."""
    with tifffile.TiffFile(io.BytesIO(data)) as file:
        first = file.pages[0]
        return list(zip(first.dataoffsets, first.databytecounts, strict=True))


def tiff(strip: bytes, rows: int, width: int, compression: int = 4, **tags: int) -> bytes:
    """A TIFF of one strip, with black as 1."""
    values = {256: width, 257: rows, 258: 1, 259: compression, 262: 0, 273: 8, 277: 1, 278: rows}
    values |= {279: len(strip)} | {int(name[1:]): value for name, value in tags.items()}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, values[tag]) for tag in sorted(values))
    strip += bytes(-len(strip) % 2)
    head = struct.pack("<2sHI", b"II", 42, 8 + len(strip))
    return head + strip + struct.pack("<H", len(values)) + entries + bytes(4)


def packed(codes: str) -> bytes:
    """Bits in words, with the blanks left out, as bytes."""
    bits = codes.replace(" ", "")
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


class TestGoodPages:
    @pytest.mark.slow
    @pytest.mark.parametrize("count", [50, pytest.param(400, marks=pytest.mark.exhaustive)])
    @pytest.mark.parametrize("kind", KINDS)
    def test_pages_of_libtiff(self, put, kind, count):
        rng = np.random.default_rng(11)
        for number in range(count):
            bits = page(rng, number)
            image = read_image(put("a.tif", by_libtiff(bits, kind)))
            np.testing.assert_array_equal(image.pixels, bits * np.uint8(255), f"page {number}")

    @pytest.mark.slow
    def test_every_length_of_runs(self, put):
        """Each code of the tables is used: rows of one black run of 0 to 2700 pixels."""
        bits = np.tri(2701, 2700, -1, bool)
        for kind in KINDS:
            for rows in (bits, ~bits):
                image = read_image(put("a.tif", by_libtiff(rows, kind)))
                np.testing.assert_array_equal(image.pixels, rows * np.uint8(255))

    @pytest.mark.parametrize("kind", KINDS)
    def test_last_bit_first(self, put, kind):
        bits = page(np.random.default_rng(3), 3)
        data = by_libtiff(bits, kind)
        ((start, count),) = segments(data)
        strip = bytes(int(f"{byte:08b}"[::-1], 2) for byte in data[start : start + count])
        compression, options = {"h": (2, 0), "g": (3, KINDS[kind][1] or 0)}[kind[0]]
        if kind == "group4":
            compression = 4
        rows, width = bits.shape
        inverted = read_image(
            put(
                "a.tif",
                tiff(strip, rows, width, compression, t266=2, t292=options),
            )
        )
        with tifffile.TiffFile(io.BytesIO(data)) as file:
            black_is_zero = file.pages[0].photometric == 1
        expected = bits if not black_is_zero else ~bits
        np.testing.assert_array_equal(inverted.pixels, expected * np.uint8(255))

    @pytest.mark.parametrize("ending", ["", "000000000001" * 2, "000000000001" * 2 + "1" * 9])
    def test_endings_of_group_4(self, ending):
        """A mark of the end may be there; bits behind it do not count."""
        pixels = fax.decode(packed("1 1 1" + ending), 3, 8, fax.GROUP_4)
        assert not pixels.any()

    def test_rows_that_begin_with_two_runs_of_no_pixels(self, put):
        """The row below may refer to them."""
        white, black = {0: "00110101", 2: "0111", 4: "1011"}, {0: "0000110111", 2: "11", 4: "011"}
        empty = f"001 {white[0]} {black[0]}"
        row = f"001 {white[2]} {black[4]} 001 {white[4]} {black[2]} 1"
        # Below a row of changes at 0, 0, 2, 6, 10 and 12 a first pass leads over the empty pair.
        strip = packed(f"{row} {empty} 1 1 1 1 1 0001 1 1 1 1 1 {empty} {row}" + "000000000001" * 2)
        expected = np.tile(np.repeat([1, 0, 1, 0, 1], [2, 4, 4, 2, 4]).astype(bool), (4, 1))
        data = tiff(strip, 4, 16)
        np.testing.assert_array_equal(read_image(put("a.tif", data)).pixels, 255 * expected)
        np.testing.assert_array_equal(np.asarray(PIL.Image.open(io.BytesIO(data))), expected)

    def test_group_3_without_marks(self):
        white_8 = "10011"
        pixels = fax.decode(packed(white_8 * 3), 3, 8, fax.GROUP_3)
        assert not pixels.any()

    def test_stacks(self, tmp_path):
        rng = np.random.default_rng(5)
        pages = rng.random((3, 20, 30)) < 0.5
        frames = [PIL.Image.fromarray(bits) for bits in pages]
        path = tmp_path / "a.tif"
        frames[0].save(path, save_all=True, append_images=frames[1:], compression="group4")
        np.testing.assert_array_equal(read_volume(path).voxels, pages)
        data = bytearray(path.read_bytes())
        with tifffile.TiffFile(path) as file:
            start = file.pages[1].dataoffsets[0]
        data[start : start + 8] = bytes(8)
        path.write_bytes(data)
        with pytest.raises(
            ImageReadError, match=r"fax data \(CCITT Group 4\) are damaged in row 1"
        ):
            read_volume(path)


class TestDamagedPages:
    @pytest.mark.slow
    @pytest.mark.parametrize("kind", KINDS)
    def test_nothing_is_read_that_libtiff_reads_otherwise(self, kind):
        """If both understand the changed bits alike, no decoder could know more."""
        rng = np.random.default_rng(17)
        refused = 0
        for number in range(600):
            bits = np.repeat(page(rng, number + number // 9), 2, axis=0)
            good = by_libtiff(bits, kind)
            data = bytearray(good)
            start, count = segments(good)[0]
            first, second = sorted(rng.integers(0, count, 2))
            change = number % 4
            if change == 0:
                data[start + first] ^= 1 << rng.integers(8)
            elif change == 1:
                data[start + first] = rng.integers(256)
            elif change == 2:  # Something was lost.
                lost = data[start + second : start + count] + bytes(second - first)
                data[start + first : start + count] = lost
            else:  # The end is missing.
                data[start + first : start + count] = bytes(count - first)
            if data == good:
                continue
            rows, width = bits.shape
            with tifffile.TiffFile(io.BytesIO(good)) as file:
                leader = file.pages[0]
                rows = min(rows, leader.rowsperstrip)
                options = leader.tags.valueof(T4_OPTIONS) or 0
                black_is_zero = leader.photometric == 1
                compression = int(leader.compression)
            strip = bytes(data[start : start + count])
            try:
                pixels = fax.decode(strip, rows, width, compression, options)
            except Unreadable:
                refused += 1
                continue
            by_pillow = np.asarray(PIL.Image.open(io.BytesIO(bytes(data))))[:rows]
            np.testing.assert_array_equal(pixels ^ (not black_is_zero), by_pillow)
        assert refused > 400

    @pytest.mark.parametrize(
        ("codes", "compression", "options", "cause"),
        [
            ("1 1", 4, 0, "are cut off in row 3 of 3"),
            ("1 0000000001", 4, 0, "are damaged in row 2 of 3: a code"),
            ("1 011", 4, 0, "are damaged in row 2 of 3: it does not have the width"),
            ("1 0001", 4, 0, "are damaged in row 2 of 3: it does not have the width"),
            ("1 0000001111", 4, 0, "use the uncompressed mode in row 2"),
            ("1 1 000000000001 000000000001", 4, 0, "end before row 3 of 3"),
            ("1 1 1 1", 4, 0, "are damaged: something follows the last of 3 rows"),
            ("1 001 0111 0000110111 1 1", 4, 0, "are ambiguous in row 2 of 3"),
            ("10011 10011", 3, 0, "are cut off in row 3"),
            ("10011 000000000001 10011 10011", 3, 0, "the mark of its beginning is missing"),
            ("000000000001 10011" * 2 + "10011", 3, 0, "row 3 of 3: the mark of its beginning"),
            ("000000000001 10011" + "000000000001" * 6, 3, 0, "end before row 2 of 3"),
            ("10011 10011 10011", 3, 1, "row 1 of 3: the mark of its beginning is missing"),
            ("001 0111 010 1 1 010 1 1", 4, 0, "row 2 of 3: it does not have the width"),
            (
                "000000000001 1 0111 0000110111 1110" + " 000000000001 0 1" * 2,
                *(3, 1, "are ambiguous in row 1 of 3"),
            ),
            ("10011 100", 2, 0, "row 1 of 3: it does not have the width"),
            ("10011 000 10100", 2, 0, "row 2 of 3: it does not have the width"),
        ],
    )
    def test_causes(self, put, codes, compression, options, cause):
        data = tiff(packed(codes), 3, 8, compression, t292=options)
        with pytest.raises(ImageReadError, match="its fax data") as got:
            read_image(put("a.tif", data))
        assert cause in got.value.message
        assert "repairs fax pages" in got.value.hint

    @pytest.mark.parametrize(
        "third",
        [
            "001 10011 0000110111",  # by runs alone
            "0001 1",  # a first pass leads over all that is above
            "011 000011 1",  # places right of those that are in doubt
        ],
    )
    @pytest.mark.parametrize(
        "second",
        [
            "001 0111 11 001 00110101 0000110111 1",  # two runs of no pixels
            "001 0111 11 001 00110101 0000110111 001 00110101 0000110111 1",
            "001 0111 11 1",  # and without
        ],
    )
    def test_runs_of_no_pixels_that_do_not_matter(self, second, third):
        """Group 4: a white row, a row of two, two and four pixels, and one that refers to it."""
        plain = packed(f"1 001 0111 11 1 {third}")
        expected = fax.decode(plain, 3, 8, fax.GROUP_4)
        decoded = fax.decode(packed(f"1 {second} {third}"), 3, 8, fax.GROUP_4)
        np.testing.assert_array_equal(decoded, expected)
        np.testing.assert_array_equal(decoded[1], [0, 0, 1, 1, 0, 0, 0, 0])

    def test_runs_of_no_pixels_without_end(self):
        with pytest.raises(Unreadable, match="does not have the width"):
            fax.decode(packed("1 001 0111 11" + "001 00110101 0000110111" * 50), 3, 8, fax.GROUP_4)

    def test_a_code_that_goes_on_behind_the_end(self):
        """Though zeros would complete it."""
        with pytest.raises(Unreadable, match="are cut off in row 9 of 9"):
            fax.decode(packed("1" * 8 + "001 1100 1"), 9, 8, fax.GROUP_4)
        assert fax.decode(packed("1" * 8 + "001 1100 10"), 9, 8, fax.GROUP_4)[8].sum() == 3

    def test_colour(self, put):
        with pytest.raises(ImageReadError, match="other than one bit per pixel"):
            read_image(put("a.tif", tiff(bytes(9), 3, 8, t258=8)))
