"""TIFF has too many layouts for one table."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import PIL.Image
import PIL.ImageCms
import pytest
import tifffile

from kernelscope.base.errors import ImageReadError, InvalidImage
from kernelscope.files import read_image
from kernelscope.files.volumes import is_volume, read_volume

SHAPE = (21, 34)


def by_hand(tags: dict[int, int], strips: list[bytes], colours: bytes = b"") -> bytes:
    """A little-endian TIFF; equal strips are stored once."""
    data = bytearray(b"II*\0" + bytes(4))
    places: dict[bytes, int] = {}
    for strip in strips:
        if strip not in places:
            places[strip] = len(data)
            data += strip
    entries = {tag: (4, 1, value) for tag, value in tags.items()}
    counts = {273: [places[strip] for strip in strips], 279: [len(strip) for strip in strips]}
    for tag, values in counts.items():
        entries[tag] = (4, len(values), values[0] if len(values) == 1 else len(data))
        if len(values) > 1:
            data += struct.pack(f"<{len(values)}I", *values)
    if colours:
        entries[320] = (3, len(colours) // 2, len(data))
        data += colours
    data[4:8] = struct.pack("<I", len(data))
    data += struct.pack("<H", len(entries))
    for tag in sorted(entries):
        data += struct.pack("<HHII", tag, *entries[tag])
    return bytes(data + bytes(4))


@pytest.fixture
def tiff(tmp_path):
    """Return a function that saves with tifffile and reads with ours."""

    def round_trip(pixels, **options):
        path = tmp_path / "a.tif"
        tifffile.imwrite(path, pixels, **options)
        return read_image(path)

    return round_trip


@pytest.fixture
def pillow(save):
    """Return a function that saves a Pillow image and reads it with ours."""

    def round_trip(image, **options):
        return read_image(save("a.tif", image, **options))

    return round_trip


class TestLayouts:
    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
    @pytest.mark.parametrize("order", ["<", ">"])
    @pytest.mark.parametrize("compression", [None, "lzw", "zlib", "packbits", "zstd"])
    def test_compressions(self, tiff, noise, dtype, order, compression):
        pixels = noise((*SHAPE, 3), dtype)
        image = tiff(pixels, photometric="rgb", byteorder=order, compression=compression)
        np.testing.assert_array_equal(image.pixels, pixels)
        assert image.pixels.dtype == dtype
        assert image.notices == ()

    @pytest.mark.parametrize(
        "layout", [{}, {"tile": (16, 32)}, {"rowsperstrip": 4}, {"bigtiff": True}]
    )
    @pytest.mark.parametrize("predictor", [False, True])
    def test_segments(self, tiff, noise, layout, predictor):
        pixels = noise(SHAPE, np.uint16)
        image = tiff(pixels, compression="zlib", predictor=predictor, **layout)
        np.testing.assert_array_equal(image.pixels, pixels)

    @pytest.mark.parametrize("channels", [3, 4])
    def test_separate_planes(self, tiff, noise, channels):
        planes = noise((channels, *SHAPE), np.uint16)
        extra = {"extrasamples": ["unassalpha"]} if channels == 4 else {}
        image = tiff(planes, photometric="rgb", planarconfig="separate", **extra)
        np.testing.assert_array_equal(image.pixels, np.moveaxis(planes, 0, 2))

    @pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1)])
    def test_thin_colour(self, tiff, noise, shape):
        pixels = noise((*shape, 3))
        image = tiff(pixels, photometric="rgb", planarconfig="contig")
        np.testing.assert_array_equal(image.pixels, pixels)

    def test_pages(self, tiff, noise):
        pages = noise((3, *SHAPE))
        image = tiff(pages, photometric="minisblack")
        np.testing.assert_array_equal(image.pixels, pages[0])
        assert image.notices == ("Only the first of 3 pages is shown.",)

    def test_volume(self, tiff, noise):
        with pytest.raises(ImageReadError, match="volume"):
            tiff(noise((16, 16, 16)), volumetric=True, tile=(16, 16, 16))

    def test_jpeg(self, pillow, noise):
        smooth = np.add.outer(np.arange(64), np.arange(64)).astype(np.uint8)
        pixels = np.stack([smooth, smooth[::-1], smooth // 2], axis=2)
        image = pillow(PIL.Image.fromarray(pixels), compression="jpeg", quality=95)
        np.testing.assert_allclose(image.pixels.astype(int), pixels, atol=12)


class TestAlpha:
    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
    @pytest.mark.parametrize("channels", [2, 4])
    def test_plain(self, tiff, noise, dtype, channels):
        pixels = noise((*SHAPE, channels), dtype)
        image = tiff(
            pixels,
            photometric="rgb" if channels == 4 else "minisblack",
            planarconfig="contig",
            extrasamples=["unassalpha"],
        )
        np.testing.assert_array_equal(image.pixels, pixels)
        assert image.notices == ()

    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
    def test_premultiplied(self, tiff, dtype):
        white = 1 if dtype == np.float32 else np.iinfo(dtype).max
        stored = np.array([[[white / 5, 0, white * 2 / 5, white * 2 / 5], [0, 0, 0, 0]]])
        image = tiff(stored.astype(dtype), photometric="rgb", extrasamples=["assocalpha"])
        expected = np.array([[[white / 2, 0, white, white * 2 / 5], [0, 0, 0, 0]]])
        np.testing.assert_allclose(image.pixels, expected, atol=0.51 if white > 1 else 1e-6)
        assert image.notices == ("Premultiplied alpha converted to plain alpha.",)

    def test_unknown_extra_samples_are_left_out(self, tiff, noise):
        pixels = noise((*SHAPE, 6))
        image = tiff(
            pixels,
            photometric="rgb",
            planarconfig="contig",
            extrasamples=["unspecified", "unassalpha", "unspecified"],
        )
        np.testing.assert_array_equal(image.pixels, pixels[:, :, [0, 1, 2, 4]])
        assert image.notices == ("2 extra samples per pixel of unknown meaning are left out.",)


class TestColourModels:
    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
    def test_white_is_zero(self, tiff, noise, dtype):
        pixels = noise(SHAPE, dtype)
        image = tiff(pixels, photometric="miniswhite")
        np.testing.assert_array_equal(image.pixels, np.iinfo(dtype).max - pixels)

    @pytest.mark.parametrize("photometric", ["miniswhite", "minisblack"])
    @pytest.mark.parametrize("compression", [None, "packbits"])
    def test_one_bit(self, tiff, noise, photometric, compression):
        bits = noise(SHAPE) > 100
        image = tiff(bits, photometric=photometric, compression=compression)
        white = bits if photometric == "minisblack" else ~bits
        np.testing.assert_array_equal(image.pixels, white * np.uint8(255))

    def test_fax(self, pillow, noise):
        bits = noise(SHAPE) > 100
        image = pillow(PIL.Image.fromarray(bits), compression="group4")
        np.testing.assert_array_equal(image.pixels, bits * np.uint8(255))
        assert image.notices == ("Black and white (1 bit) converted to 8-bit grey.",)

    def test_palette_of_16_bit_colours(self, tiff, noise):
        indices, table = noise(SHAPE), noise((3, 256), np.uint16)
        image = tiff(indices, photometric="palette", colormap=table)
        np.testing.assert_array_equal(image.pixels, table.T[indices])

    @pytest.mark.parametrize("bits", [1, 2, 4])
    @pytest.mark.parametrize("compression", [1, 32773])
    def test_palette_of_few_colours(self, put, noise, bits, compression):
        table = noise((2**bits, 3))
        indices = noise((5, 16)) % 2**bits
        packed = np.packbits(
            (indices[:, :, None] >> np.arange(bits)[::-1] & 1).astype(np.uint8), axis=None
        ).tobytes()
        if compression == 32773:
            packed = bytes([len(packed) - 1]) + packed
        colours = (table.T.astype("<u2") * 257).tobytes()
        tags = {256: 16, 257: 5, 258: bits, 259: compression, 262: 3, 277: 1, 278: 5}
        image = read_image(put("a.tif", by_hand(tags, [packed], colours)))
        np.testing.assert_array_equal(image.pixels, table[indices])
        assert image.notices == ("Palette colours converted to RGB.",)

    def test_palette_of_few_colours_with_alpha(self, put, noise):
        table = noise((16, 3))
        indices, alpha = noise((5, 6)) % 16, noise((5, 6)) % 16
        tags = {256: 6, 257: 5, 258: 4, 262: 3, 277: 2, 278: 5, 338: 2}
        colours = (table.T.astype("<u2") * 257).tobytes()
        image = read_image(put("a.tif", by_hand(tags, [(indices << 4 | alpha).tobytes()], colours)))
        np.testing.assert_array_equal(image.pixels[:, :, :3], table[indices])
        np.testing.assert_array_equal(image.pixels[:, :, 3], alpha * 17)

    def test_palette_that_is_too_short(self, put):
        tags = {256: 2, 257: 1, 258: 8, 262: 3, 277: 1, 278: 1}
        colours = np.zeros((3, 4), "<u2").tobytes()
        with pytest.raises(ImageReadError, match="colours beyond its palette of 4"):
            read_image(put("a.tif", by_hand(tags, [b"\3\4"], colours)))
        with pytest.raises(ImageReadError, match="palette is missing"):
            read_image(put("a.tif", by_hand(tags, [b"\0\0"])))

    def test_pages_with_palettes_are_pictures(self, tmp_path, noise):
        """They are no slices of a volume."""
        path = tmp_path / "a.tif"
        pages, table = noise((3, *SHAPE)), noise((3, 256), np.uint16)
        with tifffile.TiffWriter(path) as writer:
            for page in pages:
                writer.write(page, photometric="palette", colormap=table, metadata=None)
        assert not is_volume(path)
        image = read_image(path)
        np.testing.assert_array_equal(image.pixels, table.T[pages[0]])
        assert "Only the first of 3 pages is shown." in image.notices

    @pytest.mark.parametrize("mode", ["P", "PA"])
    def test_palette_of_8_bit_colours(self, pillow, noise, mode):
        source = PIL.Image.fromarray(noise((*SHAPE, 3))).quantize(30)
        if mode == "PA":
            source = source.convert("PA")
            source.putalpha(PIL.Image.fromarray(noise(SHAPE)))
        expected = np.asarray(source.convert("RGBA" if mode == "PA" else "RGB"))
        image = pillow(source)
        np.testing.assert_array_equal(image.pixels, expected)
        assert "Palette colours converted to RGB." in image.notices

    def test_cmyk(self, pillow, noise):
        source = PIL.Image.frombytes("CMYK", SHAPE[::-1], noise((*SHAPE, 4)).tobytes())
        image = pillow(source)
        np.testing.assert_allclose(
            image.pixels.astype(int), np.asarray(source.convert("RGB")), atol=1
        )
        assert image.notices == ("CMYK converted to RGB without a colour profile.",)

    def test_cmyk_16_bit_keeps_its_depth(self, tiff):
        inks = np.array([[[0, 0, 0, 0], [65535, 0, 0, 0], [0, 0, 0, 65535]]], np.uint16)
        image = tiff(inks, photometric="separated", planarconfig="contig")
        assert image.pixels.tolist() == [[[65535] * 3, [0, 65535, 65535], [0] * 3]]

    def test_ycbcr(self, pillow, noise):
        source = PIL.Image.fromarray(noise((*SHAPE, 3))).convert("YCbCr")
        image = pillow(source)
        np.testing.assert_array_equal(image.pixels, np.asarray(source.convert("RGB")))
        assert image.notices == ("YCbCr converted to RGB.",)

    def test_lab(self, pillow):
        colours = np.array([[[255, 255, 255], [0, 0, 0], [200, 60, 60], [40, 90, 190]]], np.uint8)
        profile = PIL.ImageCms.createProfile
        source = PIL.ImageCms.profileToProfile(
            PIL.Image.fromarray(colours), profile("sRGB"), profile("LAB"), outputMode="LAB"
        )
        image = pillow(source)
        np.testing.assert_allclose(image.pixels.astype(int), colours, atol=4)
        assert image.notices == ("LAB converted to RGB.",)

    def test_unsupported(self, tiff, noise):
        with pytest.raises(ImageReadError, match="colour model CFA is not supported"):
            tiff(noise(SHAPE), photometric="cfa")


class TestDepths:
    @pytest.mark.parametrize("bits", [2, 4, 10, 12, 14])
    def test_odd_depths_are_stretched(self, tmp_path, bits):
        """Written by hand, as tifffile writes no such depths."""
        white = 2**bits - 1
        values = [0, 1, white // 2, white]
        packed = "".join(f"{value:0{bits}b}" for value in values)
        packed = packed.ljust(-(-len(packed) // 8) * 8, "0")
        data = int(packed, 2).to_bytes(len(packed) // 8, "big")
        path = tmp_path / "a.tif"
        tifffile.imwrite(path, np.frombuffer(data, np.uint8)[None], photometric="minisblack")
        with tifffile.TiffFile(path, mode="r+b") as file:
            file.pages[0].tags["ImageWidth"].overwrite(len(values))
            file.pages[0].tags["BitsPerSample"].overwrite(bits)
        image = read_image(path)
        top = 255 if bits < 8 else 65535
        assert image.pixels.tolist() == [[round(value * top / white) for value in values]]
        assert image.notices == (f"{bits}-bit samples stretched to {8 if bits < 8 else 16} bits.",)

    def test_half_floats(self, tiff, noise):
        pixels = noise(SHAPE, np.float16)
        image = tiff(pixels)
        np.testing.assert_array_equal(image.pixels, pixels.astype(np.float32))
        assert image.notices == ("16-bit floats converted to 32-bit floats.",)

    def test_doubles(self, tiff, noise):
        pixels = noise(SHAPE, np.float64)
        image = tiff(pixels)
        np.testing.assert_array_equal(image.pixels, pixels.astype(np.float32))
        assert image.notices == ("64-bit floats filtered as 32-bit floats.",)

    def test_floats_outside_0_to_1_are_told(self, tiff):
        image = tiff(np.array([[-2.5, 0.5, 255]], np.float32))
        assert image.pixels.tolist() == [[-2.5, 0.5, 255]]
        assert image.notices == ("Samples run from -2.5 to 255; -2.5 is black and 255 is white.",)

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_not_finite(self, tiff, bad):
        with pytest.raises(InvalidImage, match=r"^a\.tif: 1 of 2 samples"):
            tiff(np.array([[0.5, bad]], np.float32))

    def test_doubles_beyond_float32(self, tiff):
        with pytest.raises(InvalidImage, match="infinite"):
            tiff(np.array([[0.5, 1e300]]))

    def test_complex(self, tiff):
        with pytest.raises(ImageReadError, match="complex64 are not supported"):
            tiff(np.zeros(SHAPE, np.complex64))


class TestDamage:
    @pytest.mark.parametrize("layout", [{}, {"tile": (16, 16)}, {"rowsperstrip": 2}])
    @pytest.mark.parametrize("compression", [None, "lzw", "jpeg"])
    def test_cut_off_pixels(self, tmp_path, noise, layout, compression):
        """JPEG segments would be filled up with grey without a word."""
        path = tmp_path / "a.tif"
        tifffile.imwrite(
            path, noise((64, 64, 3)), photometric="rgb", compression=compression, **layout
        )
        path.write_bytes(path.read_bytes()[:-200])
        with pytest.raises(ImageReadError, match=r"^a\.tif: the file is cut off"):
            read_image(path)

    @pytest.mark.parametrize("subsampling", [(1, 1), (2, 2)])
    @pytest.mark.parametrize("layout", [{}, {"tile": (32, 32)}, {"rowsperstrip": 16}])
    @pytest.mark.parametrize("volume", [False, True])
    def test_jpeg_data_that_end_early(self, tmp_path, noise, layout, subsampling, volume):
        """The file is whole, but one of its segments holds fewer rows than it should."""
        path = tmp_path / "a.tif"
        shape = (3, 64, 64) if volume else (64, 64, 3)
        tifffile.imwrite(
            path,
            noise(shape),
            photometric="minisblack" if volume else "rgb",
            compression="jpeg",
            compressionargs={} if volume else {"outcolorspace": "ycbcr"},
            subsampling=None if volume else subsampling,
            **layout,
        )
        read = read_volume if volume else read_image
        read(path)
        with tifffile.TiffFile(path) as file:
            page = file.pages[-1]
            middle = page.dataoffsets[-1] + page.databytecounts[-1] * 3 // 4
        data = bytearray(path.read_bytes())
        data[middle : middle + 2] = b"\xff\xd9"
        path.write_bytes(data)
        with pytest.raises(ImageReadError, match="data end before the picture does"):
            read(path)

    def test_no_pages(self, put):
        with pytest.raises(ImageReadError, match="it has no page"):
            read_image(put("a.tif", b"II*\0\0\0\0\0"))

    @pytest.mark.parametrize("bigtiff", [False, True])
    @pytest.mark.parametrize("back_to", [0, 1, 2])
    def test_a_chain_of_pages_in_a_circle(self, tmp_path, noise, bigtiff, back_to):
        path = tmp_path / "a.tif"
        with tifffile.TiffWriter(path, bigtiff=bigtiff) as writer:
            for _ in range(3):
                writer.write(noise((4, 5)))
        with tifffile.TiffFile(path) as file:
            pages = [page.offset for page in file.pages]
            tiff = file.tiff
            last = pages[-1] + tiff.tagnosize + len(file.pages[-1].tags) * tiff.tagsize
        data = bytearray(path.read_bytes())
        assert not any(data[last : last + tiff.offsetsize])
        data[last : last + tiff.offsetsize] = pages[back_to].to_bytes(tiff.offsetsize, "little")
        path.write_bytes(data)
        for read in (read_image, read_volume):
            with pytest.raises(ImageReadError, match="chain of pages is a circle"):
                read(path)
        assert not is_volume(path)

    @pytest.mark.parametrize("header", [b"II*\0", b"II+\0\x08\0\1\0", b"MM\0*\0\0"])
    def test_damaged_headers(self, put, header):
        with pytest.raises(ImageReadError, match=r"header is damaged|cut off|no page"):
            read_image(put("a.tif", header))

    def test_huge_tiles(self, tmp_path, noise):
        path = tmp_path / "a.tif"
        tifffile.imwrite(path, noise((16, 16)), tile=(16, 16), compression="zlib")
        with tifffile.TiffFile(path, mode="r+b") as file:
            file.pages[0].tags["TileWidth"].overwrite(65520)
            file.pages[0].tags["TileLength"].overwrite(65520)
        with pytest.raises(ImageReadError, match="65520×65520 pixels, which is too large"):
            read_image(path)


class TestStrips:
    """Files that programs write against the letter of the format, and no pictures."""

    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
    @pytest.mark.parametrize("predictor", [1, 2])
    @pytest.mark.parametrize("more", [1, 3])
    def test_a_last_strip_of_more_rows_than_the_picture_has(
        self, put, noise, dtype, predictor, more
    ):
        rows = noise((12, 9), dtype)
        stored = rows.copy()
        if predictor == 2:
            stored[:, 1:] -= rows[:, :-1]
        height = 12 - more
        bits = rows.itemsize * 8
        tags = {256: 9, 257: height, 258: bits, 259: 8, 262: 1, 277: 1, 278: 4, 317: predictor}
        strips = [zlib.compress(stored[top : top + 4].tobytes()) for top in (0, 4, 8)]
        image = read_image(put("a.tif", by_hand(tags, strips)))
        np.testing.assert_array_equal(image.pixels, rows[:height])
        alone = {**tags, 278: 2**32 - 1}
        image = read_image(put("b.tif", by_hand(alone, [zlib.compress(stored.tobytes())])))
        np.testing.assert_array_equal(image.pixels, rows[:height])
        for damaged in (strips[2][:-1] + bytes([strips[2][-1] ^ 1]), strips[2][:-3]):
            with pytest.raises(ImageReadError, match="damaged or cut off"):
                read_image(put("c.tif", by_hand(tags, [*strips[:2], damaged])))

    @pytest.mark.parametrize("compression", ["none", "lzw", "zlib", "packbits", "group4"])
    def test_byte_counts_past_the_end(self, tmp_path, noise, compression):
        """All rows are there: only the count of the last strip is too large."""
        path = tmp_path / "a.tif"
        pixels = noise((8, 16))
        if compression == "group4":
            pixels = np.where(pixels > 99, 255, 0).astype(np.uint8)
            PIL.Image.fromarray(pixels > 0).save(path, compression="group4")
        else:
            kind = None if compression == "none" else compression
            tifffile.imwrite(path, pixels, compression=kind, photometric="minisblack")
        data = bytearray(path.read_bytes())
        with tifffile.TiffFile(path) as file:
            page = file.pages[0]
            start, count = page.dataoffsets[0], page.databytecounts[0]
            offsets, counts = page.tags["StripOffsets"], page.tags["StripByteCounts"]
        strip = data[start : start + count]
        end = len(data)
        data[offsets.offset + 2 : offsets.offset + 4] = b"\4\0"  # 32 bits
        data[counts.offset + 2 : counts.offset + 4] = b"\4\0"
        data[offsets.valueoffset : offsets.valueoffset + 4] = end.to_bytes(4, "little")
        data[counts.valueoffset : counts.valueoffset + 4] = (count + 5).to_bytes(4, "little")
        path.write_bytes(data + strip)
        np.testing.assert_array_equal(read_image(path).pixels, pixels)
        path.write_bytes(data + strip[: count // 2])
        with pytest.raises(ImageReadError, match="cut off"):
            read_image(path)

    def test_strips_on_each_other(self, put):
        """A small file whose few bytes are read for each of many rows."""
        size = 2**20
        strip = zlib.compress(np.random.default_rng(1).bytes(size))
        data = by_hand({256: 1, 257: 400, 258: 8, 259: 8, 262: 1, 277: 1, 278: 1}, [strip] * 400)
        with pytest.raises(ImageReadError, match="lie on each other"):
            read_image(put("a.tif", data))

    def test_fewer_strips_than_rows_need(self, put):
        tags = {256: 4, 257: 8, 258: 8, 259: 8, 262: 1, 277: 1, 278: 4}
        with pytest.raises(ImageReadError, match="it lists 1 of 2 strips or tiles"):
            read_image(put("a.tif", by_hand(tags, [zlib.compress(b"\7" * 16)])))

    @pytest.mark.parametrize("tag", [None, 1, 3])
    @pytest.mark.parametrize(
        "packet", [b'<d tiff:Orientation="6"/>', b"<tiff:Orientation> 6 </tiff:Orientation>"]
    )
    def test_orientation_in_xmp(self, tiff, noise, tag, packet):
        """TIFF's own tag counts first."""
        pixels = noise(SHAPE)
        tags = [(700, 1, len(packet), packet, True)]
        if tag is not None:
            tags.append((274, 3, 1, tag, True))
        image = tiff(pixels, extratags=tags, photometric="minisblack")
        turned = {None: np.rot90(pixels, -1), 1: pixels, 3: np.rot90(pixels, 2)}[tag]
        np.testing.assert_array_equal(image.pixels, turned)


class TestWhatIsNotSaid:
    """Tags and data that a file leaves out."""

    @pytest.fixture
    def without_photometric(self, tmp_path):
        """Return a function that saves a picture and takes the tag out."""

        def save(pixels, **options):
            path = tmp_path / "a.tif"
            tifffile.imwrite(path, pixels, **options)
            with tifffile.TiffFile(path) as file:
                tag = file.pages[0].tags["PhotometricInterpretation"]
            data = bytearray(path.read_bytes())
            # A private tag in its place: entries are 12 bytes, the code comes first.
            assert data[tag.offset : tag.offset + 2] == (262).to_bytes(2, "little")
            data[tag.offset : tag.offset + 2] = (65000).to_bytes(2, "little")
            path.write_bytes(data)
            return read_image(path)

        return save

    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
    @pytest.mark.parametrize("channels", [1, 3])
    def test_no_photometric_interpretation(self, without_photometric, noise, dtype, channels):
        pixels = noise(SHAPE if channels == 1 else (*SHAPE, channels), dtype)
        image = without_photometric(pixels, photometric="rgb" if channels == 3 else "minisblack")
        np.testing.assert_array_equal(image.pixels, pixels)
        meaning = "RGB" if channels == 3 else "grey, with 0 for black"
        assert image.notices == (
            f"The file does not say what its samples stand for: taken as {meaning}.",
        )

    def test_a_stack_without_photometric_interpretation(self, tmp_path, noise):
        pages = noise((3, 4, 5))
        path = tmp_path / "a.tif"
        tifffile.imwrite(path, pages, photometric="minisblack", metadata=None)
        data = bytearray(path.read_bytes())
        with tifffile.TiffFile(path) as file:
            for page in file.pages:
                place = page.tags["PhotometricInterpretation"].offset
                data[place : place + 2] = (65000).to_bytes(2, "little")
        path.write_bytes(data)
        volume = read_volume(path)
        np.testing.assert_array_equal(volume.voxels, pages)
        assert "taken as grey, with 0 for black" in volume.notices[1]

    @pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.25, 1.5), (-0.5, 1.0)])
    def test_floats_whose_white_is_zero(self, tiff, low, high):
        pixels = np.array([[low, 0.5, high]], np.float32)
        image = tiff(pixels, photometric="miniswhite")
        if low < 0 or high > 1:
            np.testing.assert_array_equal(image.pixels, pixels)
            assert "not inverted" in image.notices[0]
        else:
            np.testing.assert_array_equal(image.pixels, 1 - pixels)
            assert image.notices == ("White is 0 in the file: inverted.",)

    @pytest.mark.parametrize("pages", [1, 3])
    def test_strips_that_were_never_written(self, tmp_path, noise, pages):
        path = tmp_path / "a.tif"
        pixels = noise((pages, 8, 16), np.uint8) | 1
        tifffile.imwrite(path, pixels, rowsperstrip=4, compression="zlib", photometric="minisblack")
        with tifffile.TiffFile(path, mode="r+b") as file:
            for name in ("StripOffsets", "StripByteCounts"):
                tag = file.pages[0].tags[name]
                tag.overwrite((tag.value[0], 0))
        if pages == 1:
            image = read_image(path)
            assert image.notices == ("1 of 2 strips or tiles were never written: they count as 0.",)
            assert not image.pixels[4:].any()
            np.testing.assert_array_equal(image.pixels[:4], pixels[0, :4])
        else:
            notices = read_volume(path).notices
            assert "Parts of 1 of 3 pages were never written: they count as 0." in notices
