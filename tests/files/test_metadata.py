"""Metadata of files: kept if the format can, and reported if it cannot."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from typing import ClassVar
from xml.etree import ElementTree

import numpy as np
import PIL.ExifTags
import PIL.Image
import PIL.ImageCms
import PIL.TiffImagePlugin
import pytest
import tifffile

from kernelscope.files import read_image, read_pages, write_image, write_pages
from kernelscope.files.pictures import png, tiff
from kernelscope.files.pictures.exif import DAMAGED, _entries, stamped, turned, valid_orientation
from kernelscope.files.volumes.writing import record_of
from kernelscope.images.image import Coding, Metadata
from tests.files.makers import picture, png_chunk

RGB = PIL.ImageCms.ImageCmsProfile(PIL.ImageCms.createProfile("sRGB")).tobytes()
GREY = RGB[:16] + b"GRAY" + RGB[20:]
RESOLUTION = (300.0, 150.0)


def exif(orientation: int = 1, **sizes: int) -> bytes:
    """EXIF data with a camera's name, a size and a thumbnail."""
    data = PIL.Image.Exif()
    data[0x010F] = "Camera"
    data[0x0112] = orientation
    data[0x8769] = {0xA002: 77, 0xA003: 88, 0x9003: "2026:11:22 10:00:00"}
    return data.tobytes().removeprefix(b"Exif\0\0")


def saved_elsewhere(path, shape=(4, 6, 3), profile=RGB, held=None, **options):
    """A picture with everything beside it, written by another library."""
    pixels = np.random.default_rng(3).integers(0, 256, shape, np.uint8)
    held = exif() if held is None else held
    if path.suffix == ".tif":
        tifffile.imwrite(
            path,
            pixels,
            iccprofile=profile,
            resolution=RESOLUTION,
            resolutionunit="inch",
            metadata=None,
            **options,
        )
    else:
        PIL.Image.fromarray(pixels).save(
            path, icc_profile=profile, dpi=RESOLUTION, exif=b"Exif\0\0" + held, **options
        )
    return path


class TestKept:
    @pytest.mark.parametrize("target", [".png", ".jpg", ".tif"])
    @pytest.mark.parametrize("source", [".png", ".jpg", ".tif"])
    def test_profile_and_resolution_from_any_to_any(self, tmp_path, source, target):
        image = read_image(saved_elsewhere(tmp_path / f"a{source}"))
        path = write_image(image.like(255 - image.planes), tmp_path / f"b{target}")
        again = read_image(path)
        assert again.metadata.profile == RGB
        assert again.metadata.resolution == pytest.approx(RESOLUTION, rel=1e-4)
        with PIL.Image.open(path) as other:
            assert other.info["icc_profile"] == RGB
            assert [float(value) for value in other.info["dpi"]] == pytest.approx(
                RESOLUTION, rel=1e-4
            )

    @pytest.mark.parametrize("orientation", range(1, 9))
    @pytest.mark.parametrize("order", "<>")
    def test_the_subject_turns_with_the_picture(self, orientation, order):
        pixels = np.zeros((40, 60), np.uint8)
        pixels[10, 20] = 1  # the middle of the subject
        y, x = np.argwhere(turned(pixels, orientation))[0]
        height, width = turned(pixels, orientation).shape
        sides = (5, 3) if orientation >= 5 else (3, 5)
        for values in ((20, 10), (20, 10, 7), (20, 10, 3, 5)):
            data = PIL.Image.Exif()
            data.endian = order
            data[0x0112] = orientation
            data[0x8769] = {0x9214: values, 0xA214: (20, 10)}
            after = PIL.Image.Exif()
            after.load(b"Exif\0\0" + stamped(data.tobytes()[6:], width, height))
            own = after.get_ifd(0x8769)
            rest = sides if len(values) == 4 else values[2:]
            assert own[0x9214] == (x, y, *rest)
            assert own[0xA214] == (x, y)

    @pytest.mark.parametrize("target", [".png", ".jpg", ".webp", ".tif"])
    @pytest.mark.parametrize("orientation", [1, 3, 6])
    def test_exif_numbers_turn_with_the_picture(self, tmp_path, orientation, target):
        """Sizes in either table, and the resolutions of the picture and of the sensor."""
        data = PIL.Image.Exif()
        data[0x0100], data[0x0101], data[0x0112] = 6, 4, orientation
        data[0x011A], data[0x011B] = 300.0, 150.0
        sensor = (PIL.TiffImagePlugin.IFDRational(each, 1) for each in (5000, 6000))
        data[0x8769] = {0xA002: 77, 0xA003: 88, **dict(zip((0xA20E, 0xA20F), sensor, strict=True))}
        pixels = PIL.Image.fromarray(np.zeros((4, 6, 3), np.uint8))
        pixels.save(tmp_path / "a.webp", exif=data)
        image = read_image(tmp_path / "a.webp")
        with PIL.Image.open(write_image(image, tmp_path / f"b{target}")) as other:
            found, order = other.getexif(), slice(None, None, -1 if orientation == 6 else 1)
            own = found.get_ifd(0x8769)
            assert [own[0xA002], own[0xA003]] == [6, 4][order]
            assert [own[0xA20E], own[0xA20F]] == [5000, 6000][order]
            if target != ".tif":  # which has them in tags of its own
                assert [found[0x0100], found[0x0101]] == [6, 4][order]
                assert [found[0x011A], found[0x011B]] == [300, 150][order]
        assert read_image(tmp_path / f"b{target}").metadata.resolution == pytest.approx(
            (300, 150)[order], rel=1e-4
        )

    @pytest.mark.parametrize("orientation", range(1, 9))
    def test_the_resolution_turns_with_the_picture(self, tmp_path, orientation):
        image = read_image(saved_elsewhere(tmp_path / "a.png", held=exif(orientation)))
        is_turned = image.pixels.shape == (6, 4, 3)
        assert is_turned == (orientation in (5, 6, 7, 8))
        expected = RESOLUTION[::-1] if is_turned else RESOLUTION
        assert image.metadata.resolution == pytest.approx(expected, rel=1e-4)

    @pytest.mark.parametrize("target", [".png", ".jpg", ".webp", ".tif", ".ome.tif"])
    def test_what_was_turned_is_not_turned_again(self, tmp_path, target):
        path = saved_elsewhere(tmp_path / "a.png", held=exif(6))
        image = read_image(path)
        assert image.pixels.shape == (6, 4, 3)
        assert image.metadata.resolution == pytest.approx(RESOLUTION[::-1], rel=1e-4)
        again = read_image(write_image(image, tmp_path / f"b{target}"))
        assert again.pixels.shape == (6, 4, 3)
        assert again.notices == ()

    def test_the_thumbnail_of_the_input_is_left_out(self, tmp_path):
        data = exif()
        first = struct.unpack_from("<I" if data[:2] == b"II" else ">I", data, 4)[0]
        order = "<" if data[:2] == b"II" else ">"
        end = first + 2 + 12 * struct.unpack_from(f"{order}H", data, first)[0]
        table = struct.pack(f"{order}HHHIII", 1, 0x0103, 4, 1, 6, 0)
        data = data[:end] + struct.pack(f"{order}I", len(data)) + data[end + 4 :] + table
        image = read_image(saved_elsewhere(tmp_path / "a.jpg", held=data))
        with PIL.Image.open(tmp_path / "a.jpg") as other:
            assert other.getexif().get_ifd(PIL.ExifTags.IFD.IFD1)
        with PIL.Image.open(write_image(image, tmp_path / "b.jpg")) as other:
            assert not other.getexif().get_ifd(PIL.ExifTags.IFD.IFD1)
        assert record_of("b.jpg", image).lost == ("the thumbnail",)
        assert record_of("c.jpg", read_image(tmp_path / "b.jpg")).lost == ()

    def test_grey_profile_of_a_grey_picture(self, tmp_path):
        image = read_image(saved_elsewhere(tmp_path / "a.png", (4, 6), GREY))
        assert record_of("b.tif", image).losses == []
        assert read_image(write_image(image, tmp_path / "b.jpg")).metadata.profile == GREY

    def test_resolution_of_a_bmp(self, tmp_path):
        image = read_image(saved_elsewhere(tmp_path / "a.tif"))
        again = read_image(write_image(image, tmp_path / "b.bmp"))
        assert again.metadata.resolution == pytest.approx(RESOLUTION, rel=1e-4)

    @pytest.mark.parametrize("suffix", [".bmp", ".png", ".jpg", ".tif", ".webp"])
    def test_nothing_is_invented(self, tmp_path, suffix):
        image = picture(np.zeros((4, 6, 3), np.uint8))
        found = read_image(write_image(image, tmp_path / f"a{suffix}")).metadata
        assert found == Metadata(jpeg=Coding(95, "4:4:4") if suffix == ".jpg" else None)

    def test_profile_of_a_bmp(self, put):
        info = struct.pack("<IiiHHIIiiII", 124, 1, 1, 1, 24, 0, 4, 0, 0, 0, 0) + bytes(16)
        info += b"DEBM" + bytes(52) + struct.pack("<II", 128, len(RGB)) + bytes(4)
        start = struct.pack("<2sIHHI", b"BM", 0, 0, 0, 138)
        image = read_image(put("a.bmp", start + info + bytes([1, 2, 3, 0]) + RGB))
        assert image.metadata.profile == RGB

    def test_resolution_that_only_exif_knows(self, tmp_path):
        data = PIL.Image.Exif()
        data[0x011A] = data[0x011B] = 118.0
        data[0x0128] = 3
        pixels = PIL.Image.fromarray(np.zeros((2, 2, 3), np.uint8))
        pixels.save(tmp_path / "a.webp", exif=data)
        resolution = read_image(tmp_path / "a.webp").metadata.resolution
        assert resolution == pytest.approx((118 * 2.54,) * 2)


class TestLost:
    FULL = Metadata(RGB, RESOLUTION, exif(), ("XMP data",))

    @pytest.mark.parametrize(
        ("name", "lost"),
        [
            ("a.png", "XMP data"),
            ("a.jpg", "XMP data"),
            ("a.tif", "XMP data"),
            ("a.webp", "resolution and XMP data"),
            ("a.bmp", "colour profile, EXIF data and XMP data"),
            ("a.ppm", "colour profile, resolution, EXIF data and XMP data"),
        ],
    )
    def test_said_in_one_notice(self, tmp_path, name, lost):
        image = replace(picture(np.zeros((4, 6, 3), np.uint8)), metadata=self.FULL)
        assert record_of(name, image).losses == [f"{name} is saved without {lost} of the input."]
        again = read_image(write_image(image, tmp_path / name)).metadata
        assert bool(again.profile) == ("profile" not in lost)
        assert bool(again.resolution) == ("resolution" not in lost)
        assert bool(again.exif) == ("EXIF" not in lost)

    def test_nothing_to_say(self):
        assert record_of("a.pgm", picture(np.zeros((4, 6), np.uint8))).losses == []

    def test_a_colour_profile_does_not_suit_grey(self, tmp_path):
        image = replace(picture(np.zeros((4, 6), np.uint8)), metadata=Metadata(RGB))
        assert record_of("a.png", image).losses == [
            "a.png is saved without colour profile of the input."
        ]
        assert record_of("a.webp", image).losses == []  # It has no grey.
        assert not read_image(write_image(image, tmp_path / "a.png")).metadata.profile

    @pytest.mark.parametrize("dpi", [0.002, 0.5, 1.4, 2.6, 28.35, 72.009, 299.9994, 1e5])
    @pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp", ".tif"])
    def test_a_resolution_is_kept_or_named(self, tmp_path, suffix, dpi):
        """Formats round it: to pixels per inch or per metre."""
        image = picture(np.zeros((4, 6, 3), np.uint8))
        image = replace(image, metadata=Metadata(resolution=(dpi, dpi)))
        found = read_image(write_image(image, tmp_path / f"a{suffix}")).metadata.resolution
        assert (found is None) == ("resolution" in record_of(f"a{suffix}", image).lost)
        if found is not None:
            assert found == pytest.approx((dpi, dpi), rel=0.005)
        assert (found is not None) >= (suffix == ".tif" or 72 < dpi < 300)

    @pytest.mark.parametrize("resolution", [(70000.0, 70000.0), (0.2, 0.2)])
    def test_a_resolution_that_does_not_fit(self, tmp_path, resolution):
        image = picture(np.zeros((4, 6, 3), np.uint8))
        image = replace(image, metadata=Metadata(resolution=resolution))
        assert record_of("a.jpg", image).losses == [
            "a.jpg is saved without resolution of the input."
        ]
        assert read_image(write_image(image, tmp_path / "a.jpg")).metadata.resolution is None

    def test_texts_of_a_png(self, put, tmp_path):
        data = (saved_elsewhere(tmp_path / "a.png")).read_bytes()
        texts = png_chunk(b"tEXt", b"Author\0me") + png_chunk(b"gAMA", (100000).to_bytes(4, "big"))
        image = read_image(put("b.png", data[:33] + texts + data[33:]))
        assert image.metadata.others == ("texts",)  # The profile overrides the gamma.
        bare = write_image(picture(image.pixels), tmp_path / "c.png").read_bytes()
        image = read_image(put("b.png", bare[:33] + texts + bare[33:]))
        assert image.metadata.others == ("texts",)
        assert record_of("c.png", image).kept == ("its gamma",)
        assert record_of("c.tif", image).lost == ("its gamma", "texts")
        usual = png_chunk(b"gAMA", (45455).to_bytes(4, "big"))  # that of sRGB
        image = read_image(put("b.png", bare[:33] + usual + bare[33:]))
        assert image.metadata.others == ()

    @pytest.mark.parametrize(("unit", "per_inch"), [(0, None), (1, 100), (2, 254), (3, None)])
    def test_the_unit_of_a_jpeg(self, put, tmp_path, unit, per_inch):
        path = tmp_path / "a.jpg"
        PIL.Image.new("L", (6, 4)).save(path, dpi=(100, 50))
        data = bytearray(path.read_bytes())
        place = data.index(b"JFIF\0") + 7
        assert data[place : place + 5] == b"\1\0\x64\0\x32"
        data[place] = unit
        found = read_image(put("b.jpg", bytes(data))).metadata
        assert found.resolution == (per_inch and pytest.approx((per_inch, per_inch / 2)))
        assert found.others == (() if per_inch else ("the shape of its pixels",))

    def test_a_ratio_is_no_resolution(self, put, tmp_path):
        data = write_image(picture(np.zeros((4, 6), np.uint8)), tmp_path / "a.png").read_bytes()
        for unit, known in ((0, False), (1, True)):
            chunk = png_chunk(b"pHYs", struct.pack(">IIB", 5906, 5906, unit))
            image = read_image(put("b.png", data[:33] + chunk + data[33:]))
            assert (image.metadata.resolution is not None) == known

    @pytest.mark.parametrize(("x", "names"), [(1, ()), (2, ("the shape of its pixels",))])
    def test_the_ratio_of_a_tiff(self, tmp_path, x, names):
        tags = {"metadata": None, "software": False, "resolution": (x, 1), "resolutionunit": 1}
        tifffile.imwrite(tmp_path / "a.tif", np.zeros((4, 6), np.uint8), **tags)
        assert read_image(tmp_path / "a.tif").metadata.others == names

    def test_of_a_tiff(self, tmp_path):
        tags = [(700, "B", 6, b"<xmp/>", True), (270, "s", 0, "seen", True)]
        path = saved_elsewhere(tmp_path / "a.tif", extratags=tags)
        image = read_image(path)
        assert (image.metadata.xmp, image.metadata.others) == (b"<xmp/>", ())
        assert record_of(tmp_path / "b.tif", image).kept == (
            "colour profile",
            "resolution",
            "a description",
            "XMP data",
        )
        assert record_of(tmp_path / "b.ome.tif", image).lost == ("a description",)


def segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, 2 + len(content)) + content


class TestContentThatNoResultHas:
    """It is named, whatever format it comes from; other programs may need it."""

    @pytest.mark.parametrize(
        ("marker", "content", "name"),
        [
            (0xFE, b"hello", "a comment"),
            (0xE0, b"JFXX\0\x10", "the thumbnail"),
            (0xE2, b"MPF\0II*\0", "further pictures"),
            (0xE2, b"FPXR\0", "application data (APP2)"),
            (0xE5, b"anything", "application data (APP5)"),
            (0xEB, b"JP\0\1", "application data (APP11)"),
            (0xED, b"Photoshop 3.0\x008BIM\4\4\0\0\0\0\0\x001234", "IPTC data"),
            (0xED, b"Photoshop 3.0\x008BIM\4\x0c\0\0\0\0\0\x001234", "Photoshop's data"),
            (0xEE, b"Ducky", "application data (APP14)"),
        ],
    )
    def test_segments_of_a_jpeg(self, tmp_path, marker, content, name):
        PIL.Image.new("RGB", (6, 4)).save(tmp_path / "a.jpg")
        data = (tmp_path / "a.jpg").read_bytes()
        assert record_of("b.jpg", read_image(tmp_path / "a.jpg")).lost == ()
        (tmp_path / "a.jpg").write_bytes(data[:2] + segment(marker, content) + data[2:])
        assert record_of("b.jpg", read_image(tmp_path / "a.jpg")).lost == (name,)

    def test_the_thumbnail_in_a_header(self, put, tmp_path):
        PIL.Image.new("L", (6, 4)).save(tmp_path / "a.jpg")
        data = (tmp_path / "a.jpg").read_bytes()
        assert data[2:4] == b"\xff\xe0"
        header = data[6:18] + b"\2\1" + bytes(6)
        image = read_image(put("b.jpg", data[:2] + segment(0xE0, header) + data[20:]))
        assert image.metadata.others == ("the thumbnail",)

    @pytest.mark.parametrize(
        ("rest", "names"), [(b"\0\0\r\n", ()), (b"\0film", ("data behind the picture",))]
    )
    def test_data_behind_a_jpeg(self, put, tmp_path, rest, names):
        PIL.Image.new("RGB", (6, 4)).save(tmp_path / "a.jpg", progressive=True)
        data = (tmp_path / "a.jpg").read_bytes()
        assert read_image(put("b.jpg", data + rest)).metadata.others == names
        more = data[:2] + segment(0xE2, b"MPF\0II*\0") + data[2:]
        found = read_image(put("b.jpg", more + rest)).metadata.others
        assert found == ("further pictures",)

    def test_chunks_of_a_png(self, put, tmp_path):
        data = write_image(picture(np.zeros((4, 6), np.uint8)), tmp_path / "a.png").read_bytes()
        chunks = (
            png_chunk(b"caBX", b"signed") + png_chunk(b"iDOT", b"\0") + png_chunk(b"\0\1ab", b"")
        )
        image = read_image(put("b.png", data[:33] + chunks + data[33:]))
        assert image.metadata.others == ("its chunk caBX", "its chunk iDOT")
        packet = png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0<x/>")
        image = read_image(put("b.png", data[:33] + packet + packet + data[33:]))
        assert (image.metadata.xmp, image.metadata.others) == (b"<x/>", ("texts",))

    def test_extensions_of_a_gif(self, put, tmp_path):
        pages = [PIL.Image.new("L", (6, 4), white) for white in (9, 99)]
        pages[0].save(tmp_path / "a.gif", save_all=True, append_images=pages[1:], loop=0)
        data = (tmp_path / "a.gif").read_bytes()
        assert read_image(tmp_path / "a.gif").metadata.others == ()
        pages[0].save(tmp_path / "a.gif", comment="hello")
        assert read_image(tmp_path / "a.gif").metadata.others == ("a comment",)
        place = data.index(b"\x21\xff")
        assert data[place + 3 : place + 14] == b"NETSCAPE2.0"
        other = data[: place + 3] + b"ICCRGBG1012" + data[place + 14 :]
        assert read_image(put("b.gif", other)).metadata.others == ("application data",)

    def test_colours_of_a_bmp(self, put):
        for kind, ends, names in (
            (b"BGRs", bytes(48), ()),
            (bytes(4), bytes(48), ()),
            (bytes(4), bytes(47) + b"\1", ("its primaries", "its gamma")),
            (b"KNIL", bytes(48), ("a linked colour profile",)),
        ):
            info = struct.pack("<IiiHHIIiiII", 108, 1, 1, 1, 24, 0, 4, 0, 0, 0, 0) + bytes(16)
            start = struct.pack("<2sIHHI", b"BM", 0, 0, 0, 122)
            image = read_image(put("a.bmp", start + info + kind + ends + bytes([1, 2, 3, 0])))
            assert image.metadata.others == names

    @pytest.mark.parametrize("data", [b"P2 # me\n1 1 255 7", b"P5\n# me\n1 1 255\n\7"])
    def test_comments_of_a_pgm(self, put, data):
        image = read_image(put("a.pgm", data))
        assert image.pixels[0, 0] == 7
        assert image.metadata.others == ("a comment",)
        assert read_image(put("a.pgm", data.replace(b"# me", b""))).metadata.others == ()

    def test_further_pictures_of_a_stream(self, put):
        (notice,) = read_image(put("a.pgm", b"P5 1 1 255\n#P5 1 1 255\n\7")).notices
        assert notice == "Only the first of several pictures is shown."
        assert read_image(put("a.pgm", b"P5 1 1 255\n#\n")).notices == ()

    @pytest.mark.parametrize(
        ("tag", "kind", "value", "name"),
        [
            (318, 5, (3127, 10000, 3290, 10000), "its primaries"),
            (301, 3, (0,) * 768, "its transfer function"),
            (340, 3, (7,), "its range of samples"),
        ],
    )
    def test_tags_of_a_tiff(self, tmp_path, tag, kind, value, name):
        count = len(value) // (2 if kind == 5 else 1)
        tags = [(tag, kind, count, value if len(value) > 1 else value[0], True)]
        tifffile.imwrite(tmp_path / "a.tif", np.zeros((4, 6), np.uint8), extratags=tags)
        assert read_image(tmp_path / "a.tif").metadata.others == (name,)

    def test_pictures_within_a_page(self, tmp_path):
        with tifffile.TiffWriter(tmp_path / "a.tif") as file:
            file.write(np.zeros((4, 6), np.uint8), subifds=1)
            file.write(np.zeros((2, 3), np.uint8), subfiletype=1)
        assert read_image(tmp_path / "a.tif").metadata.others == ("further pictures",)

    @pytest.mark.parametrize("suffix", [".png", ".webp"])
    def test_pictures_of_an_animation_have_its_metadata(self, tmp_path, suffix):
        pages = [PIL.Image.new("RGB", (6, 4), colour) for colour in ("red", "blue")]
        pages[0].save(
            tmp_path / f"a{suffix}",
            save_all=True,
            append_images=pages[1:],
            icc_profile=RGB,
            exif=exif(6),
            lossless=True,
        )
        first = read_image(tmp_path / f"a{suffix}")
        assert first.metadata.profile == RGB
        for page in read_pages(tmp_path / f"a{suffix}"):
            assert page.metadata == first.metadata
            assert page.pixels.shape == first.pixels.shape == (6, 4, 3)


class TestDamaged:
    @pytest.mark.parametrize(
        "held", [*(exif()[:cut] for cut in (4, 8, 20, 60)), b"garbage", b"II*\0\xff\xff\xff\x7f"]
    )
    @pytest.mark.parametrize("suffix", [".png", ".jpg"])
    def test_exif(self, tmp_path, suffix, held):
        image = read_image(saved_elsewhere(tmp_path / f"a{suffix}", held=held))
        assert image.notices == (DAMAGED,)
        assert image.metadata.exif == b""

    @pytest.mark.slow
    def test_every_byte_of_exif(self, tmp_path):
        """Whatever stands there, the picture is read, and saved again."""
        rng = np.random.default_rng(4)
        path = saved_elsewhere(tmp_path / "a.png")
        data = path.read_bytes()
        at = data.index(b"eXIf")
        length = struct.unpack(">I", data[at - 4 : at])[0]
        for _ in range(300):
            broken = bytearray(data)
            for place in rng.integers(at + 4, at + 4 + length, 3):
                broken[place] = rng.integers(256)
            path.write_bytes(broken)
            write_image(read_image(path), tmp_path / "b.png")

    def test_a_profile_that_lacks_a_segment(self, put, tmp_path):
        long = (70_000).to_bytes(4, "big") + RGB[4:] + bytes(70_000 - len(RGB))
        data = saved_elsewhere(tmp_path / "a.jpg", profile=long).read_bytes()
        assert read_image(tmp_path / "a.jpg").metadata.profile == long
        start = data.index(b"ICC_PROFILE\0\2") - 4
        length = int.from_bytes(data[start + 2 : start + 4], "big") + 2
        image = read_image(put("b.jpg", data[:start] + data[start + length :]))
        assert image.metadata.profile == b""
        assert record_of("c.jpg", image).lost == ("a damaged colour profile",)

    def test_a_profile_that_unpacks_to_no_end(self, put, tmp_path):
        data = write_image(picture(np.zeros((4, 6, 3), np.uint8)), tmp_path / "a.png").read_bytes()
        bomb = png_chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(2**25)))
        assert read_image(put("b.png", data[:33] + bomb + data[33:])).metadata.profile == b""


class TestXmp:
    TEXTS = (
        b'<rdf:Description tiff:Orientation="6"/>',
        b"<rdf:Description><tiff:Orientation>6</tiff:Orientation></rdf:Description>",
    )

    def write(self, path, xmp, held=b""):
        pixels = PIL.Image.fromarray(np.arange(72, dtype=np.uint8).reshape(4, 6, 3))
        if path.suffix == ".png":
            pixels.save(path, exif=held or None)
            data = path.read_bytes()
            for packed in (b"\0\0", b"\1\0"):
                text = zlib.compress(xmp) if packed == b"\1\0" else xmp
                chunk = png_chunk(b"iTXt", b"XML:com.adobe.xmp\0" + packed + b"\0\0" + text)
                path.write_bytes(data[:33] + chunk + data[33:])
                yield path
        else:
            pixels.save(path, xmp=xmp, lossless=True, exif=held or b"")
            yield path

    @pytest.mark.parametrize("text", TEXTS)
    @pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp"])
    def test_orientation(self, tmp_path, suffix, text):
        for path in self.write(tmp_path / f"a{suffix}", text):
            image = read_image(path)
            assert image.pixels.shape == (6, 4, 3)
            assert "Turned upright, as the camera was held." in image.notices
            assert image.metadata.others == ()
            again = read_image(write_image(image, tmp_path / f"b{suffix}"))
            assert again.metadata.xmp == text.replace(b"6", b"1")
            assert again.pixels.shape == (6, 4, 3)

    RATED = b'<rdf:Description tiff:Orientation="1" xmp:Rating="4" dc:rights="\xc2\xa9 me"/>'

    @pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp"])
    def test_ratings_and_rights_are_kept(self, tmp_path, suffix):
        (path,) = {*self.write(tmp_path / f"a{suffix}", self.RATED)}
        image = read_image(path)
        for target in ("b.jpg", "b.png", "b.webp", "b.tif", "b.ome.tif"):
            write_image(image, tmp_path / target)
            assert read_image(tmp_path / target).metadata.xmp == self.RATED
            assert "XMP data" not in record_of(tmp_path / target, image).lost
        with PIL.Image.open(tmp_path / "b.png") as written:
            assert written.info["xmp"] == self.RATED, "also for other programs"
        assert "XMP data" in record_of(tmp_path / "b.bmp", image).lost

    @pytest.mark.parametrize(
        ("xmp", "kept"),
        [
            (b"<x>" + b"y" * 64_993 + b"</x>", True),
            (b"<x>" + b"y" * 64_994 + b"</x>", False),
            (b"<x>a\0b</x>", False),
            ("<x/>".encode("utf-16"), False),
            (b"<x>not the end", False),
            (b'<!DOCTYPE x [<!ENTITY y "z">]><x>&y;</x>', False),
        ],
    )
    def test_what_no_segment_or_text_can_hold_is_lost_with_a_word(self, tmp_path, xmp, kept):
        image = replace(picture(np.zeros((4, 6, 3), np.uint8)), metadata=Metadata(xmp=xmp))
        for name in ("a.jpg", "a.png", "a.tif"):
            write_image(image, tmp_path / name)
            assert (read_image(tmp_path / name).metadata.xmp == xmp) is kept
            assert ("XMP data" in record_of(tmp_path / name, image).lost) is not kept

    PACKET = """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
        <x:xmpmeta xmlns:x="adobe:ns:meta/">
         <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
          <rdf:Description rdf:about='' xmlns:size="http://ns.adobe.com/tiff/1.0/"
            xmlns:exif="http://ns.adobe.com/exif/1.0/" xmlns:xap="http://ns.adobe.com/xap/1.0/"
            xmlns:tiff="http://ns.adobe.com/tiff/1.0/"
            xmlns:xmpNote="http://ns.adobe.com/xmp/note/"
            xmlns:gain="http://ns.adobe.com/hdr-gain-map/1.0/"
            xmlns:C="http://ns.google.com/photos/1.0/container/"
            xmlns:GCamera="http://ns.google.com/photos/1.0/camera/"
            xmlns:GDepth="http://ns.google.com/photos/1.0/depthmap/"
            xmlns:mwg-rs="http://www.metadataworkinggroup.com/schemas/regions/"
            tiff:Orientation="6" size:ImageWidth='777' xap:Rating = "4" GCamera:MotionPhoto="1"
            GCamera:BurstID="b" gain:Version="1.0" GDepth:Near="7" xmpNote:HasExtendedXMP="A0">
           <exif:PixelXDimension>777</exif:PixelXDimension><size:ImageLength/>
           <exif:PixelYDimension>888</exif:PixelYDimension>
           <xap:Thumbnails><rdf:li size:ImageWidth="7">old</rdf:li></xap:Thumbnails>
           <C:Directory><rdf:Seq><C:Item/></rdf:Seq></C:Directory>
           <mwg-rs:Regions><rdf:li>face</rdf:li></mwg-rs:Regions>
           <xap:Label>777 é &lt; 888 &gt; </xap:Label>
          </rdf:Description>
         </rdf:RDF>
        </x:xmpmeta>
        <?xpacket end="w"?>""".encode()

    def test_a_packet_is_true_of_the_result(self, tmp_path):
        """Other programs read the size of the result, and no thumbnail or gain map of the input."""
        (path,) = self.write(tmp_path / "a.jpg", self.PACKET)
        image = read_image(path)
        result = image.like(image.planes[1:-1])
        for name in ("b.jpg", "b.png", "b.webp", "b.tif"):
            again = read_image(write_image(result, tmp_path / name)).metadata.xmp.decode()
            root = ElementTree.fromstring(again.partition("?>")[2])
            (described,) = root.iter("{http://www.w3.org/1999/02/22-rdf-syntax-ns#}Description")
            found = {key.rpartition("}")[2]: value for key, value in described.attrib.items()}
            found |= {each.tag.rpartition("}")[2]: each.text or "" for each in described}
            assert found == {
                "about": "",
                "Orientation": "1",
                "ImageWidth": "4",
                "ImageLength": "",
                "PixelXDimension": "4",
                "PixelYDimension": "4",
                "Rating": "4",
                "BurstID": "b",
                "Label": "777 é < 888 > ",
            }, name
            lost = record_of(name, result).lost
            assert ("the thumbnail" in lost, "the regions of faces" in lost) == (True, True)

    def test_depths_and_regions_in_the_packet_stay(self, tmp_path):
        text = (
            b'<a xmlns:GDepth="http://ns.google.com/photos/1.0/depthmap/" GDepth:Near="7">'
            b"<mwg-rs:Regions>face</mwg-rs:Regions></a>"
        )
        (path,) = self.write(tmp_path / "a.jpg", text)
        image = read_image(path)
        assert read_image(write_image(image, tmp_path / "b.jpg")).metadata.xmp == text
        assert record_of("b.jpg", image).lost == ()

    def test_a_packet_in_several_segments_is_no_whole_one(self, tmp_path):
        (path,) = self.write(tmp_path / "a.jpg", self.RATED)
        data, more = path.read_bytes(), b"http://ns.adobe.com/xmp/extension/\0" + bytes(40)
        path.write_bytes(data[:2] + struct.pack(">BBH", 255, 0xE1, 2 + len(more)) + more + data[2:])
        image = read_image(path)
        assert image.metadata.xmp == self.RATED
        assert record_of(tmp_path / "b.jpg", image).lost == ("further XMP data",)

    @pytest.mark.parametrize(("held", "shape"), [(1, (4, 6, 3)), (3, (4, 6, 3)), (8, (6, 4, 3))])
    @pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp"])
    def test_exif_comes_first(self, tmp_path, suffix, held, shape):
        for path in self.write(tmp_path / f"a{suffix}", self.TEXTS[0], b"Exif\0\0" + exif(held)):
            assert read_image(path).pixels.shape == shape

    @pytest.mark.parametrize("text", [b'tiff:Orientation="9"', b"tiff:Orientation=66", b"\xff"])
    def test_nonsense_is_upright(self, tmp_path, text):
        for path in self.write(tmp_path / "a.jpg", text):
            assert read_image(path).pixels.shape == (4, 6, 3)


def test_exif_tables_that_point_to_themselves_are_read_once():
    """Each of n entries that points back to its table would be n more entries to read."""
    count = 2000
    entry = struct.pack("<HHII", 0x8769, 4, 1, 8)
    data = struct.pack("<4sIH", b"II*\0", 8, count) + count * entry + bytes(4)
    assert len(list(_entries(data))) == 0
    number = struct.pack("<HHII", 0xA002, 4, 1, 7)
    mixed = struct.pack("<4sIH", b"II*\0", 8, count) + (count - 1) * entry + number + bytes(4)
    assert len(list(_entries(mixed))) == 2


def test_one_packet_of_xmp_is_unpacked(tmp_path, monkeypatch):
    """Of thousands each may unpack to as much as is allowed, and then be thrown away."""
    path = saved_elsewhere(tmp_path / "a.png", held=b"")
    data = path.read_bytes()
    packet = png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(b"x")[:-1])
    path.write_bytes(data[:33] + 9 * packet + data[33:])
    unpacked = []
    usual = png.unpacked
    monkeypatch.setattr(png, "unpacked", lambda *a: unpacked.append(a) or usual(*a))
    assert read_image(path).metadata.profile
    assert len(unpacked) == 2  # the profile, and the first packet


class TestChunks:
    """Chunks of a PNG that state its colours: kept by PNG, named by other formats."""

    CHUNKS = (
        ("cICP", bytes([9, 16, 0, 1])),
        ("cHRM", struct.pack(">8I", 31270, 32900, 70800, 29200, 17000, 79700, 13100, 4600)),
        ("gAMA", (100000).to_bytes(4, "big")),
    )

    def read(self, put, *chunks):
        bare = png.encode(np.zeros((4, 6, 3), np.uint8))
        added = b"".join(png_chunk(kind.encode(), content) for kind, content in chunks)
        return read_image(put("a.png", bare[:33] + added + bare[33:]))

    def test_kept(self, put, tmp_path):
        image = self.read(put, *self.CHUNKS)
        assert image.metadata.chunks == self.CHUNKS
        again = read_image(write_image(image, tmp_path / "b.png"))
        assert again.metadata == image.metadata
        names = ("its colour space (cICP)", "its primaries (cHRM)", "its gamma")
        assert record_of("b.png", image).kept == names
        assert record_of("b.tif", image).lost == names

    @pytest.mark.parametrize(
        ("kind", "content", "name"),
        [
            ("sBIT", bytes([5, 6, 5]), "its significant bits"),
            ("bKGD", bytes(6), "its background colour"),
            ("tIME", bytes([7, 230, 1, 1, 0, 0, 0]), "its time of change"),
            ("iCCP", b"name\0\0damaged", "a damaged colour profile"),
            ("pHYs", struct.pack(">IIB", 1, 2, 0), "the shape of its pixels"),
        ],
    )
    def test_named(self, put, kind, content, name):
        image = self.read(put, (kind, content))
        assert record_of("b.png", image).lost == (name,)

    def test_of_a_wrong_length_are_left_out(self, put):
        assert self.read(put, ("cICP", bytes(3)), ("cHRM", bytes(31))).metadata.chunks == ()


class TestExifOfTiff:
    """EXIF data lie in tables of the TIFF itself, and are moved there and back."""

    def data(self):
        made = PIL.Image.Exif()
        made[271], made[306], made[274] = "Camera", "2026:05:03 10:20:30", 6
        made[0x8769] = {
            0x829A: PIL.TiffImagePlugin.IFDRational(1, 125),
            0x9003: "2026:05:03 10:20:30",
            0x927C: bytes(range(200)),
        }
        made[0x8825] = {1: "N", 2: (51.0, 3.0, 30.5)}
        return made.tobytes().removeprefix(b"Exif\0\0")

    EVERYTHING: ClassVar = {
        270: "seen at dawn",
        271: "Camera",
        305: "Firmware 1.0",
        315: "José".encode(),
        316: "a computer",
        18246: 4,
        33432: "me",
        40091: "Title".encode("utf-16-le"),
        40095: "Łódź".encode("utf-16-le"),
    }
    OF_EXIF: ClassVar = {
        0x829A: PIL.TiffImagePlugin.IFDRational(1, 125),
        0x8824: "spectral",
        0x9204: PIL.TiffImagePlugin.IFDRational(-1, 3),
        0x927C: bytes(range(201)),
        0x9286: b"ASCII\0\0\0a comment",
        0xA005: {1: "R98"},
    }
    OF_GPS: ClassVar = {0: b"\2\3\0\0", 1: "N", 2: (51.0, 3.0, 30.5), 29: "2026:05:03"}

    def everything(self, order, *, in_tiff):
        made = PIL.Image.Exif()
        made.endian = order
        for tag, value in self.EVERYTHING.items():
            made[tag] = value
        table = dict(self.OF_EXIF)
        if in_tiff:  # where Pillow writes no such table, but a pointer to one
            del table[0xA005]
        made[0x8769], made[0x8825] = table, self.OF_GPS
        return made.tobytes().removeprefix(b"Exif\0\0")

    @pytest.mark.parametrize("order", ["<", ">"])
    @pytest.mark.parametrize("source", [".jpg", ".png", ".webp", ".tif"])
    @pytest.mark.parametrize("target", [".jpg", ".png", ".webp", ".tif", ".ome.tif"])
    def test_every_tag_from_any_to_any(self, tmp_path, order, source, target):
        pixels = PIL.Image.fromarray(np.arange(72, dtype=np.uint8).reshape(4, 6, 3))
        in_tiff = source == ".tif"
        head = b"" if in_tiff else b"Exif\0\0"
        pixels.save(tmp_path / f"a{source}", exif=head + self.everything(order, in_tiff=in_tiff))
        image = read_image(tmp_path / f"a{source}")
        record = record_of(tmp_path / f"b{target}", image)
        is_ome = target == ".ome.tif"
        assert record.lost == (("a description",) if is_ome else ())
        assert ("a description" in record.kept, "EXIF data" in record.kept) == (not is_ome, True)
        written = write_image(image, tmp_path / f"b{target}")
        with PIL.Image.open(tmp_path / f"a{source}") as before, PIL.Image.open(written) as after:
            old, new = before.getexif(), after.getexif()
            for tag in self.EVERYTHING.keys() - ({270} if is_ome else set()):
                assert new[tag] == old[tag], tag
            table = new.get_ifd(0x8769)
            for tag in self.OF_EXIF.keys() - {0xA005}:
                assert table[tag] == old.get_ifd(0x8769)[tag], tag
            if not in_tiff:
                assert new.get_ifd(0xA005)[1] == "R98"
            assert new.get_ifd(0x8825) == old.get_ifd(0x8825)
        again = read_image(written)
        np.testing.assert_array_equal(again.pixels[..., 0].shape, image.pixels[..., 0].shape)
        assert "private tags" not in again.metadata.others

    def test_texts_in_utf_16_take_the_byte_order_of_the_file(self, tmp_path):
        made = PIL.Image.Exif()
        made.endian = ">"
        made[0x8769] = {0x9286: b"UNICODE\0" + "Łódź".encode("utf-16-be")}
        image = replace(
            picture(np.zeros((4, 6, 3), np.uint8)),
            metadata=Metadata(exif=made.tobytes().removeprefix(b"Exif\0\0")),
        )
        with PIL.Image.open(write_image(image, tmp_path / "a.tif")) as other:
            text = other.getexif().get_ifd(0x8769)[0x9286]
        with tifffile.TiffFile(tmp_path / "a.tif") as file:
            order = {"<": "le", ">": "be"}[file.byteorder]
        assert text == b"UNICODE\0" + "Łódź".encode(f"utf-16-{order}")

    @pytest.mark.parametrize("text", ['{"shape": [9, 9]}', "ImageJ=1.54\nimages=2", "<?xml?>"])
    def test_a_description_that_imitates_a_layout_is_lost(self, tmp_path, text):
        made = PIL.Image.Exif()
        made[270], made[271] = text, "Camera"
        image = replace(
            picture(np.zeros((4, 6, 3), np.uint8)),
            metadata=Metadata(exif=made.tobytes().removeprefix(b"Exif\0\0")),
        )
        assert record_of(tmp_path / "a.tif", image).lost == ("a description",)
        again = read_image(write_image(image, tmp_path / "a.tif"))
        assert again.pixels.shape == (4, 6, 3)
        assert record_of(tmp_path / "b.png", again).kept == ("EXIF data",)

    def test_damaged_values_are_left_out_and_named(self, tmp_path):
        data = bytearray(self.data())
        at = data.index(struct.pack(">H", 0x927C))
        data[at + 8 : at + 12] = b"\x7f\xff\xff\xff"
        image = replace(picture(np.zeros((4, 6, 3), np.uint8)), metadata=Metadata(exif=bytes(data)))
        record = record_of(tmp_path / "a.tif", image)
        assert record.kept == ("EXIF data",)
        assert record.lost == ("damaged EXIF data",)
        assert record_of(tmp_path / "a.jpg", image).lost == ()
        with PIL.Image.open(write_image(image, tmp_path / "a.tif")) as other:
            assert other.getexif().get_ifd(0x8769)[0x9003] == "2026:05:03 10:20:30"

    def test_further_tags_of_a_tiff_are_named(self, tmp_path):
        tags = [
            (33723, "B", 5, b"iptc ", True),
            (34377, "B", 5, b"8BIM ", True),
            (33550, "d", 3, (1.0, 1.0, 0.0), True),
            (65000, "s", 0, "private", True),
        ]
        tifffile.imwrite(tmp_path / "a.tif", np.zeros((9, 9), np.uint8), extratags=tags)
        lost = record_of(tmp_path / "b.tif", read_image(tmp_path / "a.tif")).lost
        assert lost == ("IPTC data", "Photoshop's data", "the georeference", "private tags")

    def test_damaged_ones_are_named(self, tmp_path):
        pixels = PIL.Image.fromarray(np.zeros((4, 6, 3), np.uint8))
        pixels.save(tmp_path / "a.tif", exif=self.data())
        with tifffile.TiffFile(tmp_path / "a.tif") as file:
            place = file.pages[0].tags[34665].offset
            black = file.pages[0].dataoffsets[0]
        data = bytearray((tmp_path / "a.tif").read_bytes())
        data[place + 8 : place + 12] = black.to_bytes(4, "little")
        (tmp_path / "a.tif").write_bytes(data)
        record = record_of("b.tif", read_image(tmp_path / "a.tif"))
        assert record.kept == ("EXIF data",)  # that of the other tables
        assert record.lost == ("damaged EXIF data",)

    @pytest.mark.parametrize("most", [4 * 6 * 4 + 1, 4 * 6 * 8 + 1])
    def test_a_bigtiff_holds_none(self, tmp_path, monkeypatch, most):
        """Samples of 64 bits are written, although those of 32 are filtered."""
        monkeypatch.setattr(tiff, "is_big", lambda count: count >= most)
        data = Metadata(exif=exif(), wide=True)
        image = replace(picture(np.zeros((4, 6), np.float32)), metadata=data)
        with tifffile.TiffFile(write_image(image, tmp_path / "a.tif")) as file:
            assert file.is_bigtiff == (most < 4 * 6 * 8)
            assert (271 in file.pages.first.tags) == (not file.is_bigtiff)
            assert ("EXIF data" in record_of("a.tif", image).lost) == file.is_bigtiff

    def test_pages(self, tmp_path):
        image = replace(picture(np.zeros((4, 6, 3), np.uint8)), metadata=Metadata(exif=self.data()))
        write_pages([picture(image.pixels), image], tmp_path / "a.tif")
        with PIL.Image.open(tmp_path / "a.tif") as other:
            assert 271 not in other.getexif()
            other.seek(1)
            assert other.getexif()[271] == "Camera"


def test_letters_beyond_ascii_stay_what_they_are(tmp_path):
    name = "José, Łódź"
    pixels = np.zeros((9, 9), np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", pixels, extratags=[(315, "s", 0, name.encode(), True)])
    write_image(read_image(tmp_path / "a.tif"), tmp_path / "b.tif")
    write_image(read_image(tmp_path / "b.tif"), tmp_path / "c.tif")
    with tifffile.TiffFile(tmp_path / "c.tif") as file:
        assert file.pages[0].tags[315].value == name


@pytest.mark.parametrize(
    ("found", "taken"), [(0, 1), (1, 1), (6, 6), (8, 8), (9, 1), (-3, 1), ("6", 1), (None, 1)]
)
def test_an_orientation_that_there_is_not_is_upright(found, taken):
    assert valid_orientation(found) == taken
