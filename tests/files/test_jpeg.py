"""JPEG of the kinds that cameras do not write, and messages about unsupported ones."""

from __future__ import annotations

import struct

import imagecodecs
import numpy as np
import PIL.Image
import pytest

from kernelscope.base.errors import ImageReadError
from kernelscope.files import read_image, write_image
from kernelscope.files.formats import Unreadable
from kernelscope.files.pictures.jpeg import check_complete
from kernelscope.images.image import Image
from tests.files.makers import healthy, jpeg


@pytest.fixture
def deep():
    """Return a function that makes smooth samples of that depth."""

    def make(bits: int, channels: int = 1) -> np.ndarray:
        ramp = np.add.outer(np.arange(33), np.arange(41))[:, :, np.newaxis] * np.arange(1, 4)
        samples = ramp[:, :, :channels] * (2**bits - 1) // (72 * channels)
        return samples.squeeze().astype(np.uint8 if bits <= 8 else np.uint16)

    return make


def stretched(samples: np.ndarray, bits: int) -> np.ndarray:
    white = 255 if bits <= 8 else 65535
    return np.floor(samples / (2**bits - 1) * white + 0.5)


_DQT, _SOF = b"\xff\xdb", b"\xff\xc0"


class TestCoding:
    """Quality and chroma of a JPEG, which it is saved with again, at 95 or more."""

    @pytest.mark.parametrize("chroma", ["4:4:4", "4:2:2", "4:2:0"])
    def test_stays(self, tmp_path, chroma):
        pixels = np.random.default_rng(1).integers(0, 256, (40, 48, 3)).astype(np.uint8)
        for quality in (1, 30, 50, 75, 92, 100):
            path = tmp_path / "a.jpg"
            PIL.Image.fromarray(pixels).save(path, quality=quality, subsampling=chroma)
            source = read_image(path)
            assert source.metadata.jpeg == (quality, chroma)
            again = write_image(source, tmp_path / "b.jpg")
            assert (tables_of(again) == tables_of(path)) is (quality == 100)
            assert read_image(again).metadata.jpeg == (max(quality, 95), chroma)
            other = write_image(source, tmp_path / "c.jpg", quality=60)
            assert read_image(other).metadata.jpeg == (60, chroma)

    def test_of_others(self, tmp_path, put):
        pixels = np.random.default_rng(1).integers(0, 256, (40, 48, 3)).astype(np.uint8)
        computed = write_image(Image.from_array(pixels), tmp_path / "a.jpg")
        assert read_image(computed).metadata.jpeg == (95, "4:4:4")
        grey = write_image(Image.from_array(pixels[:, :, 0]), tmp_path / "b.jpg")
        assert read_image(grey).metadata.jpeg == (95, "")
        # Pillow has none that is halved along y alone.
        data = imagecodecs.jpeg8_encode(pixels, level=80, subsampling="440")
        tall = read_image(put("c.jpg", data))
        assert tall.metadata.jpeg == (80, "4:4:0")
        assert read_image(write_image(tall, tmp_path / "d.jpg")).metadata.jpeg == (95, "4:4:4")

    @pytest.mark.parametrize(
        ("orientation", "chroma"), [(4, "4:2:2"), (5, "4:4:0"), (6, "4:4:0"), (8, "4:4:0")]
    )
    def test_of_a_picture_that_is_turned(self, tmp_path, orientation, chroma):
        pixels = np.random.default_rng(1).integers(0, 256, (40, 48, 3)).astype(np.uint8)
        exif = PIL.Image.Exif()
        exif[0x112] = orientation
        PIL.Image.fromarray(pixels).save(
            tmp_path / "a.jpg", quality=80, subsampling="4:2:2", exif=exif
        )
        source = read_image(tmp_path / "a.jpg")
        assert source.pixels.shape[:2] == ((40, 48) if chroma == "4:2:2" else (48, 40))
        assert source.metadata.jpeg == (80, chroma)

    @pytest.mark.parametrize("wide", [False, True])
    def test_tables_in_one_segment(self, put, wide):
        """Of 8 or 16 bits a number, and the first component has the second table."""
        data = jpeg("baseline", COLOURS)  # of two segments, a table each
        usual, (first, frame) = read_image(put("a.jpg", data)), map(data.index, (_DQT, _SOF))
        tables = b""
        for number, start in ((1, first + 5), (0, first + 74)):
            steps = np.frombuffer(data, np.uint8, 64, start).astype(">u2" if wide else "u1")
            tables += bytes([16 * wide + number]) + steps.tobytes()
        head = bytearray(data[frame : frame + 19])
        head[12], head[15], head[18] = 1, 0, 0
        segment = _DQT + struct.pack(">H", 2 + len(tables)) + tables
        image = read_image(put("b.jpg", data[:first] + segment + head + data[frame + 19 :]))
        assert image.metadata.jpeg == usual.metadata.jpeg == (75, "4:2:0")
        np.testing.assert_array_equal(image.pixels, usual.pixels)


def tables_of(path):
    with PIL.Image.open(path) as image:
        return vars(image)["quantization"]


class TestDeep:
    @pytest.mark.parametrize("channels", [1, 3])
    def test_12_bits(self, put, deep, channels):
        samples = deep(12, channels)
        data = imagecodecs.jpeg8_encode(samples, level=100, bitspersample=12, subsampling="444")
        image = read_image(put("a.jpg", data))
        assert image.pixels.dtype == np.uint16
        error = np.abs(image.pixels - stretched(samples, 12)).max()
        assert error < 65535 / 4095 * 6  # So close are no 8 bits: their steps are 16.
        assert image.notices == ("12-bit samples stretched to 16 bits.",)

    @pytest.mark.parametrize("bits", [8, 10, 12, 14, 16])
    @pytest.mark.parametrize("kind", ["lossless", "LS"])
    def test_without_loss(self, put, deep, bits, kind):
        samples = deep(bits)
        if kind == "lossless":
            data = imagecodecs.jpeg8_encode(samples, bitspersample=bits, lossless=True)
        else:
            data = bytes(imagecodecs.jpegls_encode(samples))
            start = data.index(b"\xff\xf7")
            assert data[start + 4] in (bits, 8, 16)
            if data[start + 4] != bits:
                pytest.skip("the encoder writes 8 and 16 bits only")
        image = read_image(put("a.jpg", data))
        np.testing.assert_array_equal(image.pixels, stretched(samples, bits))
        assert len(image.notices) == (bits not in (8, 16))

    def test_colour_without_loss(self, put, deep):
        samples = deep(8, 3)
        data = imagecodecs.jpeg8_encode(samples, lossless=True, colorspace="RGB")
        np.testing.assert_array_equal(read_image(put("a.jpg", data)).pixels, samples)

    @pytest.mark.parametrize("channels", [1, 3])
    def test_the_longest_side(self, put, channels):
        """A JPEG can have 65535 pixels, more than Pillow reads."""
        row = np.add.outer(np.arange(65535), 20 * np.arange(channels)) // 300
        samples = np.repeat(row[np.newaxis], 8, axis=0).squeeze().astype(np.uint8)
        data = imagecodecs.jpeg8_encode(samples, level=100)
        image = read_image(put("a.jpg", data))
        assert image.pixels.shape == samples.shape
        assert np.abs(image.pixels.astype(int) - samples).max() <= 3

    def test_cut_off(self, put, deep):
        data = imagecodecs.jpeg8_encode(deep(12), bitspersample=12, lossless=True)
        with pytest.raises(ImageReadError, match=r"a\.jpg: .*(cut off|damaged)"):
            read_image(put("a.jpg", data[: int(0.02 * len(data))]))
        for share in (0.6, 0.8):
            notices = read_image(put("a.jpg", data[: int(share * len(data))])).notices
            assert "The file is cut off" in notices[0]

    @pytest.mark.parametrize("frame", [0xC1, 0xC3, 0xF7])
    def test_a_claimed_size_takes_no_memory(self, put, frame):
        content = struct.pack(">BHHB", 12, 60000, 60000, 1) + b"\1\x11\0"
        data = struct.pack(">HBBH", 0xFFD8, 0xFF, frame, len(content) + 2) + content
        with pytest.raises(ImageReadError, match="60000×60000 pixels, which is too large"):
            read_image(put("a.jpg", data + bytes(64)))


@pytest.mark.parametrize(
    ("frame", "name"), [(0xC5, "hierarchical"), (0xCB, "lossless and arithmetically coded")]
)
def test_rare_kinds_are_not_called_damaged(put, frame, name):
    data = healthy(".jpg")
    start = data.index(b"\xff\xc0")
    data = data[: start + 1] + bytes([frame]) + data[start + 2 :]
    with pytest.raises(ImageReadError) as caught:
        read_image(put("a.jpg", data))
    assert f"({name}), which is not supported" in caught.value.message
    assert "Convert it to PNG" in caught.value.hint


COLOURS = np.random.default_rng(5).integers(0, 256, (64, 80, 3), np.uint8)
"""Noise in each block."""


class TestDataThatEndEarly:
    """With an end mark, libjpeg fills up with grey and goes on."""

    KINDS = ("baseline", "progressive", "restarts", "grey", "CMYK", "12-bit", "lossless", "LS")

    @pytest.mark.parametrize("kind", KINDS)
    def test_whole_ones_have_no_notice_of_damage(self, put, kind):
        notices = read_image(put("a.jpg", jpeg(kind, COLOURS))).notices
        assert not any("damaged" in notice for notice in notices)

    def test_missing_scans_are_reported(self, put):
        """Between two scans, the data that there are end where they should."""
        data = jpeg("progressive", COLOURS)
        start = data.rindex(b"\xff\xc4", 0, data.rindex(b"\xff\xda"))
        image = read_image(put("a.jpg", data[:start] + b"\xff\xd9"))
        assert image.notices == ("The file is damaged: it lacks scans, which hold finer detail.",)

    def test_damage_in_the_middle_is_reported(self, put):
        data = jpeg("baseline", COLOURS)
        image = read_image(put("a.jpg", data[:-2] + bytes(40) + data[-2:]))
        assert len(image.notices) == 1
        assert "extraneous bytes" in image.notices[0]
        assert "parts of the picture may be wrong (" in image.notices[0]

    @pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
    @pytest.mark.parametrize("subsampling", [0, 1, 2])
    @pytest.mark.parametrize("progressive", [False, True])
    def test_pixels_are_those_of_pillow(self, put, mode, subsampling, progressive):
        pixels = np.random.default_rng(6).integers(0, 256, (37, 43, 3), np.uint8)
        path = put("a.jpg", b"")
        PIL.Image.fromarray(pixels).convert(mode).save(
            path, subsampling=subsampling, progressive=progressive
        )
        with PIL.Image.open(path) as image:
            expected = np.asarray(image.convert("RGB") if mode == "CMYK" else image)
        np.testing.assert_array_equal(read_image(path).pixels, expected)


def test_complete_data_without_an_end_mark_are_complete() -> None:
    """Segments of a TIFF and frames of DICOM may lack it: their length is known."""
    pixels = np.random.default_rng(3).integers(0, 256, (40, 50), np.uint8)
    data = bytes(imagecodecs.jpeg8_encode(pixels, level=95)[:-2])
    check_complete(data, imagecodecs.jpeg8_decode(data), imagecodecs.jpeg8_decode)
    shorter = data[: len(data) * 2 // 3]
    with pytest.raises(Unreadable, match="cut off or damaged"):
        check_complete(shorter, imagecodecs.jpeg8_decode(shorter), imagecodecs.jpeg8_decode)
