"""Results of reading image files, against the pixels and against other readers."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import struct
import sys
import zlib
from pathlib import Path

import cv2
import imagecodecs
import numpy as np
import PIL.Image
import PIL.ImageOps
import pytest

from kernelscope.base.errors import ImageReadError, OutOfMemory
from kernelscope.base.installed import pip_command
from kernelscope.files import READABLE, read_image
from kernelscope.files.formats import MAX_PIXELS, Unreadable, check_size, damage_explained
from tests.files.makers import claims, healthy, png_chunk, png_header
from tests.scripts import run_python

SHAPE = (11, 13)


class TestPlain:
    """Grey and RGB come in as they are, without a notice."""

    @pytest.mark.parametrize("channels", [(), (3,)], ids=["grey", "RGB"])
    @pytest.mark.parametrize("name", ["a.bmp", "a.png", "a.tif", "a.pgm", "a.ppm"])
    def test_lossless(self, save, noise, name, channels):
        pixels = noise((*SHAPE, *channels))
        image = read_image(save(name, pixels))
        np.testing.assert_array_equal(image.pixels, pixels)
        assert image.notices == ()
        assert (image.title, image.path.name) == (name, name)

    @pytest.mark.parametrize("channels", [(), (3,)], ids=["grey", "RGB"])
    def test_jpeg(self, save, noise, channels):
        path = save("a.jpg", noise((*SHAPE, *channels)), quality=90, subsampling=0)
        expected = np.asarray(PIL.Image.open(path))
        np.testing.assert_array_equal(read_image(path).pixels, expected)

    @pytest.mark.parametrize("channels", [3, 4])
    def test_webp(self, save, noise, channels):
        pixels = noise((*SHAPE, channels))
        image = read_image(save("a.webp", pixels, lossless=True, exact=True))
        np.testing.assert_array_equal(image.pixels, pixels)

    def test_progressive_jpeg(self, save, noise):
        path = save("a.jpg", noise((40, 50, 3)), progressive=True)
        np.testing.assert_array_equal(read_image(path).pixels, np.asarray(PIL.Image.open(path)))

    def test_cmyk_jpeg(self, save):
        image = read_image(save("a.jpg", PIL.Image.new("CMYK", (16, 16), (255, 0, 0, 0))))
        assert image.mode == "RGB, 8 bit"
        np.testing.assert_allclose(image.pixels, np.full((16, 16, 3), (0, 255, 255)), atol=2)
        assert image.notices == ("CMYK converted to RGB without a colour profile.",)

    def test_strings_spaces_and_unicode(self, save, noise):
        pixels = noise(SHAPE)
        path = save("Übung – 写真 1.png", pixels)
        image = read_image(str(path))
        assert image.title == "Übung – 写真 1.png"
        np.testing.assert_array_equal(image.pixels, pixels)

    @pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1)])
    @pytest.mark.parametrize("name", ["a.bmp", "a.png", "a.tif", "a.pgm"])
    def test_thin(self, save, noise, name, shape):
        pixels = noise(shape)
        np.testing.assert_array_equal(read_image(save(name, pixels)).pixels, pixels)

    def test_black_and_white_bmp(self, save):
        bits = np.eye(5, dtype=bool)
        image = read_image(save("a.bmp", PIL.Image.fromarray(bits)))
        np.testing.assert_array_equal(image.pixels, bits * np.uint8(255))
        assert image.notices == ("Black and white (1 bit) converted to 8-bit grey.",)


class TestPng:
    @pytest.mark.parametrize("channels", [1, 2, 3, 4])
    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
    def test_depth_is_kept(self, put, noise, channels, dtype):
        pixels = noise((*SHAPE, channels), dtype)
        image = read_image(put("a.png", imagecodecs.png_encode(pixels)))
        np.testing.assert_array_equal(image.planes, pixels)
        assert image.pixels.dtype == dtype
        assert image.notices == ()

    def test_interlaced_16_bit_from_opencv(self, tmp_path, noise):
        pixels = noise((*SHAPE, 3), np.uint16)
        cv2.imwrite(str(tmp_path / "a.png"), pixels[:, :, ::-1])
        np.testing.assert_array_equal(read_image(tmp_path / "a.png").pixels, pixels)

    def test_palette(self, save, noise):
        source = PIL.Image.fromarray(noise((*SHAPE, 3))).quantize(16)
        image = read_image(save("a.png", source))
        np.testing.assert_array_equal(image.pixels, np.asarray(source.convert("RGB")))
        assert image.notices == ("Palette colours converted to RGB.",)

    def test_transparent_palette(self, save, noise):
        source = PIL.Image.fromarray(noise((*SHAPE, 3))).quantize(4)
        path = save("a.png", source, transparency=bytes([0, 100, 255]))
        image = read_image(path)
        np.testing.assert_array_equal(
            image.pixels, np.asarray(PIL.Image.open(path).convert("RGBA"))
        )
        assert image.notices == ("Palette colours converted to RGBA.",)

    def test_transparent_grey_of_two_bits(self, put):
        """Stretching the samples but not the transparent value is a known trap."""
        rows = zlib.compress(b"\0\x1b")  # 0 1 2 3
        data = png_header(4, 1, 2, 0) + png_chunk(b"tRNS", b"\0\2")
        image = read_image(put("a.png", data + png_chunk(b"IDAT", rows) + png_chunk(b"IEND", b"")))
        expected = [[[0, 255], [85, 255], [170, 0], [255, 255]]]
        np.testing.assert_array_equal(image.pixels, expected)
        assert image.notices == (
            "2-bit samples stretched to 8 bits.",
            "The transparent colour became an alpha channel.",
        )

    def test_transparent_16_bit_colour(self, put):
        rows = zlib.compress(b"\0" + struct.pack(">6H", 1, 2, 3, 1, 2, 4))
        data = png_header(2, 1, 16, 2) + png_chunk(b"tRNS", struct.pack(">3H", 1, 2, 3))
        image = read_image(put("a.png", data + png_chunk(b"IDAT", rows) + png_chunk(b"IEND", b"")))
        np.testing.assert_array_equal(image.pixels, [[[1, 2, 3, 0], [1, 2, 4, 65535]]])
        assert image.pixels.dtype == np.uint16

    def test_one_bit(self, save):
        image = read_image(save("a.png", PIL.Image.fromarray(np.eye(9, dtype=bool))))
        np.testing.assert_array_equal(image.pixels, np.eye(9, dtype=np.uint8) * 255)
        assert image.notices == ("Black and white (1 bit) converted to 8-bit grey.",)

    @pytest.mark.parametrize(
        "chunk",
        [
            png_chunk(b"iCCP", b"x\0\0" + zlib.compress(b"no profile")),
            png_chunk(b"gAMA", b"x"),
            png_chunk(b"tEXt", b"title\0text")[:-1] + b"?",
            png_chunk(b"eXIf", b"no EXIF"),
        ],
        ids=["iCCP", "gAMA", "checksum", "eXIf"],
    )
    def test_damage_beside_the_pixels_does_not_matter(self, put, chunk, capfd):
        pixels = png_chunk(b"IDAT", zlib.compress(bytes([0, 1, 2, 3])))
        data = png_header(1, 1) + chunk + pixels + png_chunk(b"IEND", b"")
        assert read_image(put("a.png", data)).pixels.tolist() == [[[1, 2, 3]]]
        assert capfd.readouterr() == ("", "")

    def test_what_libpng_warns_of_is_a_notice(self, put, caplog):
        """It was printed, beside --quiet too, and the picture looked sound."""
        wrong = png_chunk(b"tRNS", struct.pack(">3H", 1, 2, 3))[:-1] + b"?"
        pixels = png_chunk(b"IDAT", zlib.compress(bytes([0, 1, 2, 3])))
        data = png_header(1, 1) + wrong + pixels + png_chunk(b"IEND", b"")
        image = read_image(put("a.png", data))
        assert image.pixels.tolist() == [[[1, 2, 3]]]
        assert "The file is damaged, parts of the picture may be wrong (tRNS: CRC error)." in (
            image.notices
        )
        assert all(record.levelno < logging.WARNING for record in caplog.records)

    def test_no_image_data(self, put):
        data = png_header(1, 1) + png_chunk(b"IEND", b"")
        with pytest.raises(ImageReadError, match=r"^a\.png: it has no image data\.$"):
            read_image(put("a.png", data))

    def test_longer_than_libpng_allows(self, put):
        with pytest.raises(ImageReadError, match="1000000 a side"):
            read_image(put("a.png", png_header(1_000_001, 1)))


class TestNetpbm:
    @pytest.mark.parametrize("channels", [(), (3,)], ids=["grey", "RGB"])
    def test_16_bit_from_opencv(self, tmp_path, noise, channels):
        pixels = noise((*SHAPE, *channels), np.uint16)
        path = tmp_path / ("a.ppm" if channels else "a.pgm")
        cv2.imwrite(str(path), pixels[:, :, ::-1] if channels else pixels)
        image = read_image(path)
        np.testing.assert_array_equal(image.pixels, pixels)
        assert image.pixels.dtype == np.uint16

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (b"P2 # size\n3 2\n255\n0 1 2 # row\n253 254 255\n", [[0, 1, 2], [253, 254, 255]]),
            (b"P2\n2 1\n#white\n65535\n0 65535", [[0, 65535]]),
            (b"P3 1 2 255 1 2 3\n4 5 6", [[[1, 2, 3]], [[4, 5, 6]]]),
            (b"P3 1 1 65535 1 2 65535", [[[1, 2, 65535]]]),
            (b"P1 3 2 101\n0 0 1", [[0, 255, 0], [255, 255, 0]]),
            (b"P4 10 1\n\xff\x40", [[0] * 8 + [255, 0]]),
            (b"P5 2 1 255 \xff\0", [[255, 0]]),
        ],
    )
    def test_plain_and_packed(self, put, text, expected):
        image = read_image(put("a.pnm", text))
        np.testing.assert_array_equal(image.pixels, expected)

    @pytest.mark.parametrize(
        ("maximum", "sample", "expected", "bits"),
        [(15, 7, 119, 8), (100, 50, 128, 8), (1023, 511, 32735, 16), (4095, 4095, 65535, 16)],
    )
    def test_other_whites_are_stretched(self, put, maximum, sample, expected, bits):
        image = read_image(put("a.pgm", f"P2 1 1 {maximum} {sample}".encode()))
        assert image.pixels.tolist() == [[expected]]
        assert image.notices == (f"Samples of 0 to {maximum} stretched to {bits} bits.",)

    @pytest.mark.parametrize(
        ("data", "cause"),
        [
            (b"P5 4 4 255 123", "cut off"),
            (b"P2 2 2 255 1 2 3", "cut off"),
            (b"P1 2 2 1 0 1", "cut off"),
            (b"P6 4", "cut off"),
            (b"P5 4 x 255 ", "header is damaged"),
            (b"P5 4 4 99999 ", "99999 as white"),
            (b"P5 4 4 0 ", "0 as white"),
            (b"P2 1 1 255 256", "above 255"),
            (b"P5 1 1 15 \xff", "above 15"),
            (b"P2 1 1 255 " + b"9" * 5000, "above 255"),
            (b"P2 1 1 255 ten", "no numbers"),
            (b"P2 1 1 255 -1", "no numbers"),
            (b"P1 1 1 7", "bits other than"),
            (b"P5 0 4 255 ", "no pixels"),
            (b"P6 99999 99999 255 ", "too large"),
        ],
    )
    def test_damage(self, put, data, cause):
        with pytest.raises(ImageReadError, match=rf"^a\.pgm: .*{cause}"):
            read_image(put("a.pgm", data))


class TestAnimations:
    @pytest.mark.parametrize("name", ["a.gif", "a.png", "a.webp"])
    def test_first_picture_with_a_notice(self, save, name):
        frames = [PIL.Image.new("RGB", (8, 6), colour) for colour in ("red", "blue")]
        options = {"lossless": True} if name == "a.webp" else {}
        image = read_image(
            save(name, frames[0], save_all=True, append_images=frames[1:], **options)
        )
        np.testing.assert_array_equal(image.pixels[:, :, :3], np.full((6, 8, 3), (255, 0, 0)))
        assert "Only the first picture of an animation is shown." in image.notices

    def test_single_gif(self, save):
        image = read_image(save("a.gif", PIL.Image.new("RGB", (8, 6), "lime")))
        np.testing.assert_array_equal(image.pixels, np.full((6, 8, 3), (0, 255, 0)))
        assert image.notices == ("Palette colours converted to RGB.",)

    def test_transparent_gif(self, save):
        source = PIL.Image.new("P", (2, 1))
        source.putpalette([255, 0, 0, 0, 0, 255])
        source.putpixel((1, 0), 1)
        image = read_image(save("a.gif", source, transparency=0))
        np.testing.assert_array_equal(image.pixels[0, :, 3], [0, 255])
        np.testing.assert_array_equal(image.pixels[0, 1], [0, 0, 255, 255])

    def test_transparent_grey_gif(self, save):
        grey = np.arange(256, dtype=np.uint8).reshape(16, 16)
        image = read_image(save("a.gif", PIL.Image.fromarray(grey), transparency=40))
        expected = np.stack([grey, np.where(grey == 40, 0, 255)], axis=-1)
        np.testing.assert_array_equal(image.pixels, expected)
        assert image.notices == ("The transparent colour became an alpha channel.",)


class TestOrientation:
    @pytest.mark.parametrize("orientation", range(1, 9))
    @pytest.mark.parametrize("name", ["a.png", "a.webp", "a.jpg", "a.tif"])
    def test_upright(self, save, noise, name, orientation):
        exif = PIL.Image.Exif()
        exif[0x0112] = orientation
        lossless = {"lossless": True} if name == "a.webp" else {}
        path = save(name, noise((6, 9, 3)), exif=exif, **lossless)
        stored = PIL.Image.open(path)
        # Pillow itself turns a TIFF.
        upright = stored if name == "a.tif" else PIL.ImageOps.exif_transpose(stored)
        image = read_image(path)
        np.testing.assert_array_equal(image.pixels, np.asarray(upright))
        assert ("Turned upright, as the camera was held." in image.notices) == (orientation != 1)


class TestContentDecides:
    @pytest.mark.parametrize("suffix", [".bmp", ".jpg", ".txt"])
    def test_wrong_suffix(self, save, noise, suffix):
        pixels = noise(SHAPE)
        image = read_image(save("a" + suffix, pixels, format="PNG"))
        np.testing.assert_array_equal(image.pixels, pixels)
        assert image.notices == (f"The file is PNG in spite of its suffix {suffix}.",)

    @pytest.mark.parametrize("name", ["a.PNG", "a"])
    def test_no_notice_without_contradiction(self, save, noise, name):
        assert read_image(save(name, noise(SHAPE), format="PNG")).notices == ()

    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("a.svg", b'<svg xmlns="http://www.w3.org/2000/svg"/>'),
            ("a.psd", b"8BPS\0\1" + bytes(40)),
            ("a.png", b"hello"),
            ("a.bmp", bytes(100)),
            ("a.eps", b"%!PS-Adobe-3.0 EPSF-3.0\n"),
        ],
    )
    def test_unknown_format_names_the_known(self, put, name, data):
        with pytest.raises(ImageReadError, match=f"^{name}: this is no image") as caught:
            read_image(put(name, data))
        assert all(format.name in caught.value.hint for format in READABLE)

    def test_formats_not_offered_are_not_tried(self, save):
        with pytest.raises(ImageReadError, match="no image"):
            read_image(save("a.tga", PIL.Image.new("RGB", (8, 8)), format="TGA"))


class TestBadPaths:
    def test_missing(self, tmp_path):
        with pytest.raises(ImageReadError, match=r"^gone\.png: the file does not exist"):
            read_image(tmp_path / "gone.png")

    def test_folder(self, tmp_path):
        with pytest.raises(ImageReadError, match="folder"):
            read_image(tmp_path)

    def test_empty(self, put):
        with pytest.raises(ImageReadError, match=r"^a\.png: the file is empty"):
            read_image(put("a.png", b""))

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
    def test_pipe_does_not_block(self, tmp_path):
        os.mkfifo(tmp_path / "pipe.png")
        with pytest.raises(ImageReadError, match="no ordinary file"):
            read_image(tmp_path / "pipe.png")

    @pytest.mark.parametrize(
        ("where", "fault", "error", "message"),
        [
            ((Path, "open"), PermissionError(13, "Permission denied"), ImageReadError, "not allow"),
            (
                (imagecodecs, "png_decode"),
                OSError(5, "Input/output error"),
                ImageReadError,
                r"cannot be read \(Input/output error\)",
            ),
            ((imagecodecs, "png_decode"), MemoryError(), OutOfMemory, r"^a\.png"),
        ],
    )
    def test_faults_of_the_system(self, save, noise, monkeypatch, where, fault, error, message):
        path = save("a.png", noise(SHAPE))

        def fail(*_args, **_options):
            raise fault

        monkeypatch.setattr(*where, fail)
        with pytest.raises(error, match=message):
            read_image(path)


class TestBombs:
    KINDS = ("png", "bmp", "ppm", "gif", "jpg", "tif")

    @pytest.mark.parametrize("kind", KINDS)
    def test_refused_from_the_header(self, put, kind):
        with pytest.raises(ImageReadError, match="60000×60000 pixels, which is too large"):
            read_image(put("a." + kind, claims(kind, 60000, 60000)))

    @pytest.mark.parametrize("kind", KINDS)
    def test_16384_squared_is_within_the_limit(self, put, kind):
        """The same files fail later, over the missing pixels."""
        assert MAX_PIXELS == 16384**2
        with pytest.raises(ImageReadError, match=r"damaged|cut off"):
            read_image(put("a." + kind, claims(kind, 16384, 16384)))

    @pytest.mark.parametrize("kind", KINDS)
    def test_no_pixels(self, put, kind):
        with pytest.raises(ImageReadError, match=r"no pixels|damaged"):
            read_image(put("a." + kind, claims(kind, 0, 4)))

    @pytest.mark.parametrize(
        ("size", "cause", "hint"),
        [
            (
                (16385, 16384),
                "16385×16384 pixels, which is too large: 268.5 megapixels",
                "268.4 meg",
            ),
            ((65535, 900, 40), "65535×900 pixels of 40 samples each", "2147 million samples"),
            ((65535, 900, 40), "which is too large: 2359 million samples", "Fewer than 2147 mil"),
        ],
    )
    def test_the_limit_is_named_that_is_passed(self, size, cause, hint):
        with pytest.raises(Unreadable) as caught:
            check_size(*size)
        assert cause in caught.value.cause
        assert hint in caught.value.hint

    @pytest.mark.parametrize("size", [(16384, 16384), (65535, 900, 36), (2**28, 1)])
    def test_what_is_within_all_limits(self, size):
        check_size(*size)

    @pytest.mark.slow
    def test_no_memory_is_taken(self, put):
        """In a process that has no memory to spare for the claimed size."""
        paths = [str(put("a." + kind, claims(kind, 60000, 60000))) for kind in self.KINDS]
        code = """
import resource, sys
import imagecodecs, PIL.Image, tifffile
from kernelscope.base.errors import ImageReadError
from kernelscope.files import read_image
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        read_image(path)
    except ImageReadError as error:
        assert "too large" in str(error), error
    else:
        raise AssertionError(path)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
assert grown < 50_000, grown
"""
        run_python(code, *paths)


class TestDamage:
    """Whatever is wrong inside a file: a picture or a plain message, and no warning."""

    SUFFIXES = (".bmp", ".png", ".jpg", ".webp", ".gif", ".ppm", ".tif", ".tiff")

    @pytest.mark.parametrize("suffix", SUFFIXES)
    @pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.9])
    def test_cut_off(self, put, suffix, share):
        data = healthy(suffix)
        path = put("broken" + suffix, data[: int(len(data) * share)])
        if suffix in (".jpg", ".png"):  # which open with the part that is there
            with contextlib.suppress(ImageReadError):
                assert any("The file is cut off" in each for each in read_image(path).notices)
            return
        cause = r"cut off|damaged" if share > 0.5 else ""
        with pytest.raises(ImageReadError, match=rf"^broken\..*({cause})") as caught:
            read_image(path)
        assert "object at 0x" not in str(caught.value)

    @pytest.mark.slow
    @pytest.mark.skipif(sys.version_info >= (3, 12), reason="None has no count there")
    def test_none_is_not_used_up(self, put):
        """A codec that loses a reference to it ends the process, once none is left."""
        data = healthy(".png")
        at = data.index(b"IDAT")
        path = put("broken.png", data[: at + 4] + bytes(40) + data[at + 44 :])
        refused = 200
        gc.collect()
        before = sys.getrefcount(None)
        for _ in range(refused):
            with pytest.raises(ImageReadError):
                read_image(path)
        gc.collect()
        assert sys.getrefcount(None) > before - refused // 2


@pytest.mark.slow
def test_importing_is_cheap():
    code = (
        "import sys, kernelscope.files;"
        "assert not {'PIL', 'tifffile', 'imagecodecs'} & sys.modules.keys()"
    )
    run_python(code)


@pytest.mark.parametrize(
    ("error", "package"),
    [
        (ModuleNotFoundError("No module named 'imagecodecs'", name="imagecodecs"), "imagecodecs"),
        (ValueError("<COMPRESSION.LZW: 5> requires the 'imagecodecs' package"), "imagecodecs"),
        (ModuleNotFoundError("No module named 'compression'"), "imagecodecs"),
        (RuntimeError("all available plugins:\n imagecodecs: No module named 'PIL.x'"), "pillow"),
    ],
)
def test_intact_data_without_their_decoder_are_not_called_damaged(
    error: Exception, package: str
) -> None:
    with pytest.raises(Unreadable) as caught, damage_explained("PNG"):
        raise error
    need = f"the PNG data need the package {package}, which is not installed."
    assert caught.value.cause == need
    assert caught.value.hint == f"Install it: {pip_command(package)}"


def test_a_decoder_that_was_left_out_of_imagecodecs_is_named() -> None:
    why = "could not import 'jpegxl_decode'"
    with pytest.raises(Unreadable, match=why) as caught, damage_explained("TIFF"):
        raise ImportError(why)
    assert caught.value.hint.endswith(" --upgrade imagecodecs")
    with pytest.raises(Unreadable, match="damaged or cut off"), damage_explained("TIFF"):
        raise ValueError("bad data")
