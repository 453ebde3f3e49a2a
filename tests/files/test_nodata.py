"""Samples that a file marks as unknown have no part in results, and are marked again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from kernelscope.base.errors import AppError, InvalidParameter, NotANumber
from kernelscope.big.lazy.tiff_source import open_tiff
from kernelscope.files.reading import read_image
from kernelscope.files.volumes.reading import read_volume
from kernelscope.files.volumes.writing import record_of, write_volume
from kernelscope.files.writing import record_of_image, write_image
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind


def write(path: Path, dtype: str, nodata: str, **more: Any) -> np.ndarray[Any, Any]:
    pixels = np.arange(48).reshape(6, 8).astype(dtype)
    pixels[2, 3] = float(nodata)
    tags = [(42113, "s", 0, nodata, True)]
    tifffile.imwrite(path, pixels, photometric="minisblack", extratags=tags, **more)
    return pixels


@pytest.mark.parametrize(
    ("dtype", "nodata"),
    [("uint8", "255"), ("uint16", "65535"), ("float32", "-9999"), ("float32", "-3.4028235e+38")],
)
def test_marked_samples_come_back(dtype: str, nodata: str, tmp_path: Path) -> None:
    source, target = tmp_path / "a.tif", tmp_path / "b.tif"
    pixels = write(source, dtype, nodata)
    with pytest.raises(NotANumber):
        read_image(source)
    image = read_image(source, nan=7)
    assert image.planes[2, 3, 0] == 7
    assert image.missing is not None
    assert np.argwhere(image.missing.reshape(6, 8)).tolist() == [[2, 3]]
    assert not any(nodata in notice for notice in image.notices)
    write_image(image.like(image.planes), target)
    with tifffile.TiffFile(target) as file:
        page = file.pages.first
        np.testing.assert_array_equal(page.asarray(), pixels)
        assert np.dtype(dtype).type(page.tags[42113].value) == pixels[2, 3]


def test_a_mark_that_no_sample_has_changes_nothing(tmp_path: Path) -> None:
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
    for nodata in ("200", "-9999", "none"):
        tags = [(42113, "s", 0, nodata, True)]
        tifffile.imwrite(tmp_path / "a.tif", pixels, extratags=tags)
        image = read_image(tmp_path / "a.tif")
        assert image.missing is None
        np.testing.assert_array_equal(image.pixels, pixels)


def test_replacements_must_fit_the_type(tmp_path: Path) -> None:
    write(tmp_path / "a.tif", "uint8", "255")
    for number in (0.5, 256, -1):
        with pytest.raises(InvalidParameter):
            read_image(tmp_path / "a.tif", nan=number)


def test_other_formats_say_that_the_mark_is_lost(tmp_path: Path) -> None:
    write(tmp_path / "a.tif", "uint8", "255")
    image = read_image(tmp_path / "a.tif", nan=0)
    assert "marks of samples without data" in record_of_image(image, tmp_path / "b.png").lost
    assert "marks of samples without data" in record_of_image(image, tmp_path / "b.tif").kept


def test_blocks_refuse_them(tmp_path: Path) -> None:
    write(tmp_path / "a.tif", "float32", "-9999", rowsperstrip=1)
    source = open_tiff(tmp_path / "a.tif", Kind.PICTURE)
    try:
        with pytest.raises(AppError, match="without data"):
            source.read(Box((0, 0, 0), (6, 8, 1)))
        source.read(Box((3, 0, 0), (3, 8, 1)))
    finally:
        source.close()


def test_marks_and_nan_are_both_unknown(tmp_path: Path) -> None:
    pixels = np.arange(12, dtype=np.float32).reshape(3, 4)
    pixels[0, 1], pixels[2, 2] = -9999, np.nan
    tags = [(42113, "s", 0, "-9999", True)]
    tifffile.imwrite(tmp_path / "a.tif", pixels, extratags=tags)
    image = read_image(tmp_path / "a.tif", nan=0)
    assert image.missing is not None
    assert np.argwhere(image.missing.reshape(3, 4)).tolist() == [[0, 1], [2, 2]]
    assert image.pixels[0, 1] == image.pixels[2, 2] == 0


@pytest.mark.parametrize(
    ("dtype", "nodata"),
    [
        ("int16", "-32768"),
        ("int32", "-2147483648"),
        ("uint32", "4294967295"),
        ("int8", "-128"),
        ("float32", "-9999"),
    ],
)
@pytest.mark.parametrize(("pages", "orientation"), [(1, 1), (3, 1), (3, 6)])
def test_marked_voxels_of_stacks_come_back(
    dtype: str, nodata: str, pages: int, orientation: int, tmp_path: Path
) -> None:
    if dtype == "float32" and pages == 1:
        return  # a picture
    source, target = tmp_path / "a.tif", tmp_path / "b.tif"
    stored = (np.arange(pages * 48) % 100).reshape(pages, 6, 8).astype(dtype)
    stored[pages - 1, 2, 3] = float(nodata)
    tags = [(42113, "s", 0, nodata, True), (274, "H", 1, orientation, True)]
    tifffile.imwrite(source, stored, photometric="minisblack", extratags=tags, metadata=None)
    with pytest.raises(NotANumber, match=r"1 of \d+ voxels is marked as without data"):
        read_volume(source)
    volume = read_volume(source, nan=7)
    place = (pages - 1, 2, 3) if orientation == 1 else (pages - 1, 3, 3)
    assert volume.voxels[place] == 7
    assert volume.missing is not None
    assert np.argwhere(volume.missing).tolist() == [list(place)]
    assert volume.value_range[0] >= 0
    upright = stored if orientation == 1 else np.rot90(stored, -1, (1, 2))
    for name in ("b.tif", "b.ome.tif"):
        target = tmp_path / name
        assert "marks of voxels without data" in record_of(target, volume).kept
        write_volume(volume.with_voxels(volume.voxels), target, lossy=True)
        with tifffile.TiffFile(target) as file:
            np.testing.assert_array_equal(file.asarray().reshape(upright.shape), upright)
        assert read_volume(target, nan=7).missing is not None
    if dtype != "float32":
        assert "marks of voxels without data" in record_of(tmp_path / "b.nii", volume).lost


def test_marked_voxels_of_folders_come_back(tmp_path: Path) -> None:
    for dtype, nodata in (("uint8", "255"), ("int16", "-32768"), ("float32", "-9999")):
        folder = tmp_path / dtype
        folder.mkdir()
        for number in range(2):  # both have the mark
            write(folder / f"slice-{number}.tif", dtype, nodata)
        with pytest.raises(NotANumber):
            read_volume(folder)
        volume = read_volume(folder, nan=7)
        assert volume.missing is not None
        assert np.argwhere(volume.missing).tolist() == [[0, 2, 3], [1, 2, 3]]
        assert volume.voxels[1, 2, 3] == 7
        assert len([each for each in volume.notices if "filtered as" in each]) == 1
    mixed = tmp_path / "uint8"
    write(mixed / "slice-0.tif", "uint8", "255")
    np.testing.assert_array_equal(read_volume(mixed, nan=7).voxels[0, 0], np.arange(8))
    target = tmp_path / "out.tifs"
    write_volume(read_volume(mixed, nan=7), target, lossy=True)
    written = tifffile.imread(sorted(target.iterdir())[0])
    np.testing.assert_array_equal(written, tifffile.imread(mixed / "slice-0.tif"))
