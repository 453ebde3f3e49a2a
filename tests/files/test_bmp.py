"""Every kind of BMP, put together by hand as the format's makers define it.

The kinds are those of Jason Summers' BMP Suite; the bytes are made here.
"""

from __future__ import annotations

import struct

import numpy as np
import pytest

from kernelscope.base.errors import ImageReadError
from kernelscope.files import read_image
from kernelscope.files.pictures import bmp

WIDTH, HEIGHT = 19, 7
GREYS = np.repeat(np.arange(256), 3).reshape(-1, 3)
PALETTE = np.random.default_rng(2).integers(0, 256, (256, 3))


def header(
    bits: int,
    compression: int = 0,
    *,
    length: int = 40,
    size: tuple[int, int] = (WIDTH, HEIGHT),
    used: int = 0,
    inside: bytes = b"",
) -> bytes:
    """An information header of any length; `inside` follows its first 40 bytes."""
    if length == 12:
        return struct.pack("<IHHHH", 12, *size, 1, bits)
    fields = (length, *size, 1, bits, compression, 0, 2835, 2835, used, 0)
    return (struct.pack("<IiiHHIIiiII", *fields) + inside)[:length].ljust(length, b"\0")


def whole(info: bytes, body: bytes, table: bytes = b"", gap: int = 0) -> bytes:
    """The file: its header, the information header, masks or palette, and the pixels."""
    offset = 14 + len(info) + len(table) + gap
    start = struct.pack("<2sIHHI", b"BM", offset + len(body), 0, 0, offset)
    return start + info + table + bytes(gap) + body


def rows(pixels: np.ndarray, bits: int) -> bytes:
    """(height, width) numbers of that depth, bottom row first, each row a multiple of 4 bytes."""
    lines = []
    for row in pixels[::-1]:
        if bits < 8:
            text = "".join(f"{number:0{bits}b}" for number in row.tolist())
            line = bytes(int(text[i : i + 8].ljust(8, "0"), 2) for i in range(0, len(text), 8))
        else:
            line = b"".join(int(number).to_bytes(bits // 8, "little") for number in row)
        lines.append(line.ljust(-(-len(line) // 4) * 4, b"\0"))
    return b"".join(lines)


def entries(palette: np.ndarray, size: int = 4) -> bytes:
    return b"".join(bytes(entry[::-1].tolist()).ljust(size, b"\0") for entry in palette)


@pytest.fixture
def numbers():
    """Return a function that makes (height, width) random numbers of that depth."""
    rng = np.random.default_rng(5)
    return lambda bits: rng.integers(0, 2**bits, (HEIGHT, WIDTH))


class TestPalettes:
    @pytest.mark.parametrize("bits", [1, 2, 4, 8])
    @pytest.mark.parametrize("length", [12, 16, 40, 42, 52, 56, 64, 108, 124])
    def test_every_header(self, put, numbers, bits, length):
        indices = numbers(bits)
        table = entries(PALETTE[: 1 << bits], 3 if length == 12 else 4)
        data = whole(header(bits, length=length), rows(indices, bits), table)
        image = read_image(put("a.bmp", data))
        np.testing.assert_array_equal(image.pixels, PALETTE[indices])
        assert image.notices == ("Palette colours converted to RGB.",)

    @pytest.mark.parametrize("length", [12, 40, 64, 108, 124])
    def test_without_the_file_header(self, put, numbers, length):
        indices = numbers(4)
        table = entries(PALETTE[:16], 3 if length == 12 else 4)
        data = header(4, length=length) + table + rows(indices, 4)
        np.testing.assert_array_equal(read_image(put("a.dib", data)).pixels, PALETTE[indices])

    def test_grey(self, put, numbers):
        indices = numbers(8)
        image = read_image(put("a.bmp", whole(header(8), rows(indices, 8), entries(GREYS))))
        np.testing.assert_array_equal(image.pixels, indices)
        assert image.notices == ()

    def test_grey_from_white_to_black_is_a_palette(self, put, numbers):
        indices = numbers(8)
        image = read_image(put("a.bmp", whole(header(8), rows(indices, 8), entries(GREYS[::-1]))))
        np.testing.assert_array_equal(image.pixels, GREYS[::-1][indices])

    @pytest.mark.parametrize("gap", [0, 8])
    def test_few_entries_and_a_gap_before_the_pixels(self, put, numbers, gap):
        indices = numbers(8) % 5
        data = whole(header(8, used=5), rows(indices, 8), entries(PALETTE[:5]), gap)
        np.testing.assert_array_equal(read_image(put("a.bmp", data)).pixels, PALETTE[indices])

    def test_more_entries_than_indices(self, put, numbers):
        indices = numbers(4)
        data = whole(header(4, used=200), rows(indices, 4), entries(PALETTE[:200]))
        np.testing.assert_array_equal(read_image(put("a.bmp", data)).pixels, PALETTE[indices])

    def test_indices_that_the_palette_lacks(self, put):
        indices = np.arange(WIDTH * HEIGHT).reshape(HEIGHT, WIDTH) % 100
        data = whole(header(8, used=90), rows(indices, 8), entries(PALETTE[:90]))
        image = read_image(put("a.bmp", data))
        expected = np.where(indices[:, :, np.newaxis] < 90, PALETTE[indices], 0)
        np.testing.assert_array_equal(image.pixels, expected)
        lacking = np.count_nonzero(indices >= 90)
        assert f"{lacking} pixels have colours that the palette lacks" in image.notices[0]

    def test_top_down(self, put, numbers):
        indices = numbers(8)
        data = whole(header(8, size=(WIDTH, -HEIGHT)), rows(indices[::-1], 8), entries(PALETTE))
        np.testing.assert_array_equal(read_image(put("a.bmp", data)).pixels, PALETTE[indices])


class TestFields:
    """The widths of red, green, blue and alpha, red in the highest bits."""

    @pytest.mark.parametrize("kind", ["behind", "alpha behind", "V3", "V4", "V5"])
    @pytest.mark.parametrize(
        "widths",
        [
            (5, 5, 5, 1),
            (4, 4, 4, 4),
            (5, 6, 5, 0),
            (2, 3, 1, 0),
            (3, 10, 3, 0),
            (1, 9, 2, 4),
            (8, 8, 8, 8),
            (8, 8, 8, 0),
            (10, 10, 10, 2),
            (11, 11, 10, 0),
            (7, 18, 7, 0),
            (6, 17, 5, 4),
            (0, 32, 0, 0),
            (16, 0, 0, 16),
        ],
    )
    def test_any_width(self, put, numbers, kind, widths):
        if kind == "behind" and widths[3]:
            pytest.skip("three masks have no alpha")
        bits = 16 if sum(widths) <= 16 else 32
        masks, samples, packed, shift = [], [], np.zeros((HEIGHT, WIDTH), np.int64), sum(widths)
        for width in widths:
            shift -= width
            masks.append(((1 << width) - 1) << shift)
            samples.append(numbers(width))
            packed |= samples[-1] << shift
        table = struct.pack("<4I", *masks)
        count = 12 if kind == "behind" else 16
        length = {"V3": 56, "V4": 108, "V5": 124}.get(kind, 40)
        info = header(bits, 6 if kind == "alpha behind" else 3, length=length, inside=table)
        data = whole(info, rows(packed, bits), table[:count] if length == 40 else b"")
        image = read_image(put("a.bmp", data))
        white = 65535 if max(widths) > 8 else 255
        channels = [
            np.floor(sample / (2**width - 1) * white + 0.5)
            if width <= 16
            else (sample >> (width - 16))
            for sample, width in zip(samples, widths, strict=True)
            for width in [max(width, 1)]
        ]
        expected = np.stack(channels[: 4 if widths[3] else 3], axis=2)
        np.testing.assert_array_equal(image.pixels, expected)
        odd = {width for width in widths if width not in (0, 16 if white == 65535 else 8)}
        assert len(image.notices) == bool(odd)
        assert all(str(width) in image.notices[0] for width in odd)

    def test_without_fields_the_highest_bit_has_no_meaning(self, put):
        packed = np.array([[0xFC00, 0x7FFF]])
        image = read_image(put("a.bmp", whole(header(16, size=(2, 1)), rows(packed, 16))))
        np.testing.assert_array_equal(image.pixels, [[[255, 0, 0], [255, 255, 255]]])
        assert "The highest bit of each pixel has no meaning in this BMP: left out." in (
            image.notices
        )

    @pytest.mark.parametrize(("fill", "notices"), [((0, 0), 0), ((255, 255), 0), ((0, 255), 1)])
    def test_without_fields_the_fourth_byte_has_no_meaning(self, put, fill, notices):
        body = bytes([1, 2, 3, fill[0], 4, 5, 6, fill[1]])
        image = read_image(put("a.bmp", whole(header(32, size=(2, 1)), body)))
        np.testing.assert_array_equal(image.pixels, [[[3, 2, 1], [6, 5, 4]]])
        assert len(image.notices) == notices

    def test_colours_behind_the_header_are_left_aside(self, put):
        body = bytes([1, 2, 3, 0])
        data = whole(header(24, size=(1, 1), used=200), body, entries(PALETTE[:200]))
        np.testing.assert_array_equal(read_image(put("a.bmp", data)).pixels, [[[3, 2, 1]]])

    @pytest.mark.parametrize(
        ("masks", "cause"),
        [
            ((0x5400, 0x3E0, 0x1F), "bit fields have gaps"),
            ((0xF8000, 0x7E0, 0x1F), "do not fit into 16 bits"),
        ],
    )
    def test_impossible(self, put, masks, cause):
        data = whole(header(16, 3, size=(2, 1)), bytes(4), struct.pack("<3I", *masks))
        with pytest.raises(ImageReadError, match=cause):
            read_image(put("a.bmp", data))


def runs(rng: np.random.Generator, bits: int, holes: bool) -> tuple[bytes, np.ndarray, int]:
    """Random run-length encoded rows, their pixels (top row first), and the pixels left out."""
    shape = (HEIGHT, WIDTH) if bits < 24 else (HEIGHT, WIDTH, 3)
    shown = np.zeros(shape, int)
    written = np.zeros((HEIGHT, WIDTH), bool)
    data, x, y = b"", 0, 0
    highest = 16 if bits == 4 else 256

    def packed(values: np.ndarray) -> bytes:
        if bits == 24:
            return bytes(values[:, ::-1].ravel().tolist())
        if bits == 8:
            return bytes(values.tolist())
        padded = [*values.tolist(), 0]
        return bytes(padded[i] << 4 | padded[i + 1] for i in range(0, len(values), 2))

    while y < HEIGHT:
        kind, count = rng.integers(4), int(rng.integers(1, 9))
        if x == WIDTH:
            data, x, y = data + b"\0\0", 0, y + 1
        elif kind == 0 and holes:
            right, up = min(count, WIDTH - x), int(rng.integers(0, 2))
            data, x, y = data + bytes([0, 2, right, up]), x + right, y + up
        elif kind == 1 and holes:
            data, x, y = data + b"\0\0", 0, y + 1
        else:
            count = min(count, WIDTH - x)
            values = rng.integers(0, highest, (count, *shape[2:]))
            if kind == 2 and count >= 3:
                literal = packed(values)
                data += bytes([0, count]) + literal + bytes(len(literal) % 2)
            else:
                first = values[:1] if bits != 4 else np.resize(values[:2], 2)
                data += bytes([count]) + packed(first)
                values = np.resize(first, values.shape)
            if y < HEIGHT:
                shown[y, x : x + count] = values
                written[y, x : x + count] = True
            x += count
    return data + b"\0\1", shown[::-1], int(np.count_nonzero(~written))


class TestRuns:
    @pytest.mark.parametrize("interpreted", [True, False])
    @pytest.mark.parametrize("holes", [False, True])
    @pytest.mark.parametrize(("bits", "compression"), [(8, 1), (4, 2), (24, 4)])
    def test_random(self, put, monkeypatch, bits, compression, holes, interpreted):
        monkeypatch.setattr(bmp, "_INTERPRETED", 10**6 if interpreted else 0)
        rng = np.random.default_rng(bits)
        table = entries(PALETTE[: 1 << bits]) if bits < 24 else b""
        for _ in range(20):
            data, shown, left_out = runs(rng, bits, holes)
            info = header(bits, compression, length=64 if bits == 24 else 40)
            image = read_image(put("a.bmp", whole(info, data, table)))
            expected = PALETTE[shown] if bits < 24 else shown
            np.testing.assert_array_equal(image.pixels, expected)
            notice = f"The file leaves out {left_out} pixels: they have the palette's first colour."
            assert (notice in image.notices) == bool(left_out)
            assert holes or not left_out

    def test_a_run_ends_with_its_row(self, put):
        body = bytes([9, 1, 0, 0, 3, 2, 0, 1])
        data = whole(header(8, 1, size=(3, 2)), body, entries(PALETTE))
        image = read_image(put("a.bmp", data))
        np.testing.assert_array_equal(image.pixels, PALETTE[[[2, 2, 2], [1, 1, 1]]])

    @pytest.mark.parametrize("side", [4096, 16384])
    def test_a_claimed_size_takes_no_memory(self, put, side):
        data = whole(header(8, 1, size=(side, side)), b"\0\1", entries(PALETTE))
        if side == 4096:
            image = read_image(put("a.bmp", data))
            assert f"The file leaves out {side * side} pixels" in image.notices[0]
        else:
            with pytest.raises(ImageReadError, match="16384×16384 pixels, and its data have 255"):
                read_image(put("a.bmp", data))

    def test_the_end_mark_may_be_missing(self, put):
        data = whole(header(8, 1, size=(3, 1)), bytes([3, 2]), entries(PALETTE))
        np.testing.assert_array_equal(read_image(put("a.bmp", data)).pixels, PALETTE[[[2, 2, 2]]])

    @pytest.mark.parametrize(
        ("bits", "body"),
        [
            (8, b""),
            (8, b"\x02\x02"),
            (8, b"\0\x03\x01\x01"),
            (8, b"\0\x02\x01"),
            (8, b"\x01"),
            (4, b"\0\x05\x11\x11"),
            (24, b"\x03\x01\x02"),
            (24, b"\0\x03" + bytes(8)),
        ],
    )
    def test_cut_off(self, put, bits, body):
        info = header(bits, {8: 1, 4: 2, 24: 4}[bits], length=64, size=(9, 1))
        table = entries(PALETTE[: 1 << bits]) if bits < 24 else b""
        with pytest.raises(ImageReadError, match=r"a\.bmp: the file is cut off"):
            read_image(put("a.bmp", whole(info, body, table)))


class TestUnsupported:
    """A file that is whole is never called damaged."""

    @pytest.mark.parametrize(
        ("info", "cause", "hint"),
        [
            (header(0, 4), "a JPEG inside a BMP", "Save the JPEG itself"),
            (header(0, 5), "a PNG inside a BMP", "Save the PNG itself"),
            (header(64), "64 bits a pixel", "16-bit PNG or TIFF"),
            (header(1, 3, length=64), "a fax (Huffman 1D)", "XnView"),
            (header(32, 11), "CMYK inks", "Convert it to RGB"),
        ],
    )
    def test_named(self, put, info, cause, hint):
        with pytest.raises(ImageReadError) as caught:
            read_image(put("a.bmp", whole(info, bytes(4000))))
        assert cause in caught.value.message
        assert "damaged" not in caught.value.message
        assert hint in caught.value.hint

    @pytest.mark.parametrize(
        "info",
        [
            header(8, length=13),
            header(8, length=200),
            header(3),
            header(8, 2),
            header(24, 1),
            header(8, 77),
            header(8, size=(0, 4)),
        ],
    )
    def test_damaged(self, put, info):
        with pytest.raises(ImageReadError, match=r"damaged|no pixels"):
            read_image(put("a.bmp", whole(info, bytes(4000))))


@pytest.mark.parametrize("bits", [1, 8, 16, 24, 32])
def test_every_way_of_cutting_off(put, numbers, bits):
    table = entries(PALETTE[: 1 << bits]) if bits <= 8 else b""
    data = whole(header(bits), rows(numbers(bits), bits), table)
    padding = -WIDTH * bits % 32 // 8
    # Programs leave out the padding of the last row.
    read_image(put("a.bmp", data[: len(data) - padding]))
    for size in range(2, len(data) - padding, 11):
        with pytest.raises(ImageReadError, match=r"cut off|damaged"):
            read_image(put("a.bmp", data[:size]))
