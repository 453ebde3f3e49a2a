"""TIFF files read and written a box at a time, as the readers and writers of whole files do."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray

from kernelscope.base.errors import ImageReadError, ImageWriteError, SeveralVolumes
from kernelscope.big.lazy.blocks import cut
from kernelscope.big.lazy.tiff_sink import tiff_sink
from kernelscope.big.lazy.tiff_source import TiffSource, _Kept, open_tiff
from kernelscope.files import read_image
from kernelscope.files.lazy import Head, OpenedFile
from kernelscope.files.volumes import read_volume
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind


def some(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    random = np.random.default_rng([*shape])
    return (random.random(shape) * (1 if dtype == "float32" else 255)).astype(dtype)


def in_boxes(source: TiffSource, sides: tuple[int, int, int]) -> NDArray[Any]:
    found = np.empty(source.shape, source.dtype)
    for box in cut(source.shape, sides):
        part = source.read(box)
        assert part.flags.c_contiguous
        assert part.dtype == found.dtype
        box.of(found)[...] = part
    return found


LAYOUTS: list[dict[str, Any]] = [
    {},
    {"bigtiff": True},
    {"byteorder": ">"},
    {"rowsperstrip": 7},
    {"rowsperstrip": 7, "compression": "zlib", "predictor": True},
    {"tile": (16, 32), "compression": "lzw"},
    {"tile": (16, 16), "byteorder": ">"},
    {"compression": "zlib"},
    {"photometric": "miniswhite"},
    {"rowsperstrip": 5, "photometric": "miniswhite", "byteorder": ">"},
]

SIDES = [(1, 53, 4), (37, 1, 4), (10, 17, 4), (37, 53, 4)]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_a_grey_picture(layout: dict[str, Any], dtype: str, tmp_path: Path) -> None:
    if "miniswhite" in layout.values() and dtype == "float32":
        pytest.skip("has no largest value")
    path = tmp_path / "a.tif"
    layout = {"photometric": "minisblack", "metadata": None, **layout}
    tifffile.imwrite(path, some((37, 53), dtype), **layout)
    source = open_tiff(path, Kind.PICTURE)
    for sides in SIDES:
        np.testing.assert_array_equal(in_boxes(source, sides), read_image(path).planes)
    source.close()


@pytest.mark.parametrize("layout", [{}, {"tile": (16, 32), "compression": "zlib"}], ids=str)
@pytest.mark.parametrize("channels", [2, 3, 4])
def test_a_picture_with_channels(layout: dict[str, Any], channels: int, tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    how = {
        "photometric": "minisblack" if channels == 2 else "rgb",
        "planarconfig": "contig",
        "extrasamples": ["unassalpha"] if channels != 3 else None,
    }
    tifffile.imwrite(path, some((37, 53, channels), "uint16"), **layout, **how)
    source = open_tiff(path, Kind.PICTURE)
    for sides in SIDES:
        np.testing.assert_array_equal(in_boxes(source, sides), read_image(path).planes)
    source.close()


@pytest.mark.parametrize("layout", [{}, {"tile": (16, 32), "compression": "zlib"}], ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_alpha_is_not_inverted_where_white_is_zero(
    layout: dict[str, Any], dtype: str, tmp_path: Path
) -> None:
    path, samples = tmp_path / "a.tif", some((37, 53, 2), dtype)
    how: dict[str, Any] = {"planarconfig": "contig", "extrasamples": ["unassalpha"], **layout}
    tifffile.imwrite(path, samples, photometric="miniswhite", **how)
    source = open_tiff(path, Kind.PICTURE)
    expected = np.dstack([np.iinfo(dtype).max - samples[:, :, 0], samples[:, :, 1]])
    for sides in SIDES:
        np.testing.assert_array_equal(in_boxes(source, sides), expected)
    np.testing.assert_array_equal(read_image(path).planes, expected)
    source.close()


def test_jpeg_tiles_in_their_own_colours(tmp_path: Path) -> None:
    path = tmp_path / "slide.tif"
    smooth = np.linspace(0, 255, 64 * 48 * 3).reshape(64, 48, 3).astype(np.uint8)
    tifffile.imwrite(path, smooth, tile=(16, 16), compression="jpeg", photometric="rgb")
    source = open_tiff(path, Kind.PICTURE)
    np.testing.assert_array_equal(in_boxes(source, (11, 48, 3)), read_image(path).planes)
    source.close()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_a_stack(layout: dict[str, Any], dtype: str, tmp_path: Path) -> None:
    if "miniswhite" in layout.values() and dtype != "uint8":
        pytest.skip("has no largest value")
    path = tmp_path / "a.tif"
    layout = {"photometric": "minisblack", **layout}
    how = {"metadata": {"axes": "ZYX", "spacing_mm": (3.0, 0.5, 0.25)}, **layout}
    tifffile.imwrite(path, some((6, 37, 53), dtype), **how)
    source, volume = open_tiff(path, Kind.VOLUME), read_volume(path)
    for sides in ((1, 37, 53), (6, 5, 53), (4, 11, 13)):
        np.testing.assert_array_equal(in_boxes(source, sides), volume.voxels)
    assert source.head.spacing == volume.spacing == (3.0, 0.5, 0.25)
    assert source.head.notices == volume.notices
    source.close()


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_one_of_several_volumes_of_an_ome_file(compression: str | None, tmp_path: Path) -> None:
    path = tmp_path / "a.ome.tif"
    stacks = some((2, 5, 3, 9, 8), "uint16")
    tifffile.imwrite(path, stacks, metadata={"axes": "TZCYX"}, compression=compression)
    with pytest.raises(SeveralVolumes, match="it holds 6 volumes"):
        open_tiff(path, Kind.VOLUME)
    for number in (1, 2, 6):
        source = open_tiff(path, Kind.VOLUME, number)
        wanted = read_volume(path, number).voxels
        np.testing.assert_array_equal(in_boxes(source, (2, 9, 8)), wanted)
        source.close()


# --- refused ---


@pytest.mark.parametrize(
    ("pixels", "how", "kind", "message"),
    [
        (some((9, 8), "int32"), {}, Kind.PICTURE, "a.tif: its samples are of type int32"),
        (some((4, 9, 8), "float64"), {}, Kind.VOLUME, "samples are of type float64"),
        (some((9, 8), "float32"), {"photometric": "miniswhite"}, Kind.PICTURE, "no largest one"),
        (some((3, 9, 8), "uint8"), {"planarconfig": "separate", "photometric": "rgb"}, Kind.PICTURE,
         "no plain grey or RGB picture"),
        (some((9, 8, 4), "uint8"), {"photometric": "separated"}, Kind.PICTURE, "no plain grey"),
        (some((9, 8, 4), "uint8"), {"photometric": "rgb", "extrasamples": ["assocalpha"]},
         Kind.PICTURE, "no plain alpha"),
        (some((9, 8), "uint8"), {"extratags": [(274, 3, 1, 6, True)]}, Kind.PICTURE, "turned"),
        (some((9, 8, 3), "uint8"), {"photometric": "rgb"}, Kind.VOLUME, "in colour"),
    ],
)  # fmt: skip
def test_files_that_are_not_read_in_blocks(
    pixels: Any, how: dict[str, Any], kind: Kind, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, pixels, **{"photometric": "minisblack", **how})
    with pytest.raises(ImageReadError, match=message):
        open_tiff(path, kind)


def test_missing_empty_and_cut_off_files(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    with pytest.raises(ImageReadError, match="does not exist"):
        open_tiff(path, Kind.PICTURE)
    path.write_bytes(b"")
    with pytest.raises(ImageReadError, match="empty"):
        open_tiff(path, Kind.PICTURE)
    for pixels, kind in ((some((50, 60), "uint8"), Kind.PICTURE), (some((3, 50, 60), "uint8"),
                                                                  Kind.VOLUME)):  # fmt: skip
        tifffile.imwrite(path, pixels, photometric="minisblack", metadata={})
        path.write_bytes(path.read_bytes()[:1500])
        with pytest.raises(ImageReadError, match=r"a\.tif: "):
            open_tiff(path, kind)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("kind", [Kind.PICTURE, Kind.VOLUME])
def test_one_byte_less_is_cut_off(kind: Kind, dtype: str, tmp_path: Path) -> None:
    """The samples are the last part of the file, in one piece."""
    path, shape = tmp_path / "a.tif", (7, 9, 11)[kind is Kind.PICTURE :]
    how: dict[str, Any] = {"metadata": {}, "truncate": True} if kind is Kind.VOLUME else {}
    tifffile.imwrite(path, some(shape, dtype), photometric="minisblack", **how)
    data = path.read_bytes()
    for length in (len(data), len(data) - 1):
        path.write_bytes(data[:length])
        if length == len(data):
            open_tiff(path, kind).close()
        else:
            with pytest.raises(ImageReadError, match="cut off"):
                open_tiff(path, kind)


def test_the_pages_that_are_left_out_are_counted(tmp_path: Path) -> None:
    for count in (1, 3):
        with tifffile.TiffWriter(tmp_path / "a.tif") as writer:
            for height in range(9, 9 + count):  # no stack, as each page has another size
                writer.write(some((height, 8), "uint8"), photometric="minisblack")
        source = open_tiff(tmp_path / "a.tif", Kind.PICTURE)
        assert source.head.notices == ("Only the first of 3 pages is filtered.",) * (count > 1)
        source.close()


def test_tiles_of_several_slices_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, some((8, 32, 32), "uint8"), tile=(4, 16, 16), photometric="minisblack")
    with pytest.raises(ImageReadError, match="its tiles have several slices"):
        open_tiff(path, Kind.VOLUME)


def test_a_tile_is_decoded_once_for_neighbouring_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.tif"
    how: dict[str, Any] = {"tile": (16, 16), "compression": "zlib", "photometric": "minisblack"}
    tifffile.imwrite(path, some((32, 64), "uint8"), **how)
    source = open_tiff(path, Kind.PICTURE)
    read, bytes_at = list[int](), OpenedFile.bytes_at

    def counted(file: OpenedFile, offset: int, count: int) -> bytes:
        read.append(offset)
        return bytes_at(file, offset, count)

    monkeypatch.setattr(OpenedFile, "bytes_at", counted)
    for top in range(0, 28, 4):
        source.read(Box((top, 0, 0), (8, 64, 1)))  # with four rows of the block before
    assert len(read) == len(set(read)) == 8
    source.close()


def test_the_tiles_used_last_are_kept_within_a_limit() -> None:
    kept = _Kept(300)
    tiles = {offset: np.zeros(100, np.uint8) for offset in range(5)}
    for offset in range(3):
        assert kept.put(offset, tiles[offset]) is tiles[offset]
    assert kept.put(1, tiles[1]) is tiles[1]  # two threads decoded it: it counts once
    assert kept.get(0) is tiles[0]
    kept.put(3, tiles[3])
    assert [kept.get(offset) is not None for offset in range(5)] == [True, False, True, True, False]
    kept.put(4, np.zeros(301, np.uint8))  # larger than all that is kept
    assert [kept.get(offset) for offset in range(5)] == [None] * 5


@pytest.mark.parametrize("channels", [1, 3])
def test_reading_claims_the_samples_a_part_of_the_file_and_its_code(
    channels: int, tmp_path: Path
) -> None:
    path, box = tmp_path / "a.tif", Box((3, 5, 0), (20, 30, channels))
    pixels = some((37, 53, channels)[: 2 + (channels > 1)], "uint16")
    model = "rgb" if channels > 1 else "minisblack"
    for layout, part in (
        ({}, None),  # in one piece: nothing beside the samples
        ({"rowsperstrip": 7, "compression": "zlib"}, (7, 53)),
        ({"tile": (16, 32), "compression": "zlib"}, (16, 32)),
        ({"rowsperstrip": 100, "compression": "zlib"}, (37, 53)),
    ):
        tifffile.imwrite(path, pixels, photometric=model, **layout)
        with tifffile.TiffFile(path) as tiff:
            code = max(tiff.pages[0].databytecounts)
        source, samples = open_tiff(path, Kind.PICTURE), 20 * 30 * channels * 2
        beside = 2 * part[0] * part[1] * channels * 2 + code if part is not None else 0
        assert source.working_bytes(box) == samples + beside
        source.close()


@pytest.mark.parametrize("change", ["shorter", "longer", "other", "gone"])
def test_a_file_that_changes_while_it_is_read(change: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, some((6, 37, 53), "uint8"), photometric="minisblack")
    source = open_tiff(path, Kind.VOLUME)
    source.read(Box((0, 0, 0), (1, 37, 53)))
    if change == "shorter":
        os.truncate(path, 3000)
    elif change == "longer":
        with path.open("ab") as handle:
            handle.write(b"more")
    elif change == "other":
        tifffile.imwrite(tmp_path / "b.tif", some((6, 37, 53), "uint8"))
        (tmp_path / "b.tif").replace(path)
    else:
        path.unlink()
    with pytest.raises(ImageReadError, match=r"a\.tif: the file changed while it was read"):
        source.read(Box((5, 0, 0), (1, 37, 53)))
    source.close()


def test_a_damaged_tile_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, some((64, 64), "uint8"), tile=(16, 16), compression="zlib")
    with tifffile.TiffFile(path) as file:
        place = file.pages[0].dataoffsets[5]
    data = bytearray(path.read_bytes())
    data[place : place + 40] = b"\xff" * 40
    path.write_bytes(data)
    source = open_tiff(path, Kind.PICTURE)
    source.read(Box((0, 0, 0), (16, 64, 1)))
    with pytest.raises(ImageReadError, match=r"a\.tif: the TIFF data are damaged"):
        source.read(Box((16, 0, 0), (16, 64, 1)))
    source.close()


# --- written ---


@pytest.mark.parametrize("name", ["a.tif", "a.ome.tif"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
def test_volumes_are_written_in_blocks(name: str, dtype: str, tmp_path: Path) -> None:
    voxels, path = some((5, 11, 13), dtype), tmp_path / name
    for sides in ((1, 11, 13), (5, 4, 13), (2, 5, 6)):
        head = Head(spacing=(2.0, 0.5, 0.25))
        with tiff_sink(path, (5, 11, 13), voxels.dtype, Kind.VOLUME, head) as sink:
            for box in cut((5, 11, 13), sides):
                sink.write(box, box.of(voxels))
        volume = read_volume(path)
        np.testing.assert_array_equal(volume.voxels, voxels)
        if name == "a.tif":
            assert volume.spacing == (2.0, 0.5, 0.25)
            assert volume.voxels.dtype == voxels.dtype
        with tifffile.TiffFile(path) as file:
            assert file.is_ome == (name == "a.ome.tif")
            assert 'PhysicalSizeZ="2.0"' in (file.ome_metadata or 'PhysicalSizeZ="2.0"')


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_pictures_are_written_in_blocks(channels: int, tmp_path: Path) -> None:
    pixels, path = some((11, 13, channels), "uint16"), tmp_path / "a.tif"
    head = Head(profile=b"a profile", resolution=(300.0, 300.0))
    with tiff_sink(path, (11, 13, channels), pixels.dtype, Kind.PICTURE, head) as sink:
        for box in cut((11, 13, channels), (4, 5, channels)):
            sink.write(box, box.of(pixels))
    image = read_image(path)
    np.testing.assert_array_equal(image.planes, pixels)
    assert image.metadata.resolution == (300.0, 300.0)
    assert image.metadata.profile == b"a profile"
    assert not image.notices


def test_more_than_four_gigabytes_become_bigtiff(tmp_path: Path) -> None:
    """Sparse: nothing but the last voxels is stored."""
    path, shape = tmp_path / "a.tif", (70, 8192, 8192)
    with tiff_sink(path, shape, np.dtype(np.uint8), Kind.VOLUME, Head()) as sink:
        sink.write(Box((69, 8191, 8190), (1, 1, 2)), np.array([[[7, 9]]], np.uint8))
    source = open_tiff(path, Kind.VOLUME)
    assert source.shape == shape
    assert source.read(Box((69, 8191, 8189), (1, 1, 3))).tolist() == [[[0, 7, 9]]]
    source.close()
    with tifffile.TiffFile(path) as file:
        assert file.is_bigtiff


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    path.write_bytes(b"old")

    class Full:
        def __init__(self, handle: Any) -> None:
            self._handle = handle

        def seek(self, place: int) -> None:
            self._handle.seek(place)

        def write(self, data: Any) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill() -> None:
        with tiff_sink(path, (3, 9, 8), np.dtype(np.uint8), Kind.VOLUME, Head()) as sink:
            sink.write(Box((0, 0, 0), (1, 9, 8)), np.zeros((1, 9, 8), np.uint8))
            sink._handle = Full(sink._handle)  # type: ignore[assignment]
            sink.write(Box((1, 0, 0), (1, 9, 8)), np.zeros((1, 9, 8), np.uint8))

    with pytest.raises(ImageWriteError, match=r"a\.tif: the disk is full"):
        fill()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_without_room_is_seen_beforehand(tmp_path: Path) -> None:
    shape, dtype = (2**20, 2**20, 2**10), np.dtype(np.uint8)
    with (
        pytest.raises(ImageWriteError, match="disk is full: the result takes 1125899"),
        tiff_sink(tmp_path / "a.tif", shape, dtype, Kind.VOLUME, Head()),
    ):
        pytest.fail("nothing is begun")
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    with (
        pytest.raises(ImageWriteError, match=r"a\.tif: the folder .* does not exist"),
        tiff_sink(tmp_path / "no" / "a.tif", (1, 1, 1), np.dtype("u1"), Kind.VOLUME, Head()),
    ):
        pytest.fail("nothing is begun")


def test_an_error_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        tiff_sink(tmp_path / "a.tif", (1, 1, 1), np.dtype("u1"), Kind.VOLUME, Head()),
    ):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("pages", [1, 3])
def test_xmp_data_that_are_not_kept_are_named(tmp_path: Path, pages: int) -> None:
    """Pictures that are read whole keep them."""
    path = tmp_path / "a.tif"
    samples = np.zeros((pages, 20, 30), np.uint8) if pages > 1 else np.zeros((20, 30), np.uint8)
    tags = [(700, "B", 5, b"<xmp>", True)]
    tifffile.imwrite(path, samples, extratags=tags, photometric="minisblack")
    source = open_tiff(path, Kind.VOLUME if pages > 1 else Kind.PICTURE)
    assert "XMP data" in source.head.others
    source.close()
    if pages > 1:
        assert "XMP data" in read_volume(path).others
    else:
        assert read_image(path).metadata.xmp == b"<xmp>"
