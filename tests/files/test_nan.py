"""Samples that are unknown: NaN, and those that a file marks; refused, or filtered as a number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import PIL.Image
import pytest
import tifffile

from kernelscope.base.errors import (
    AppError,
    ImageReadError,
    InvalidImage,
    InvalidParameter,
    NotANumber,
)
from kernelscope.big.lazy.tiff_source import open_tiff
from kernelscope.files import read_image, write_image
from kernelscope.files.volumes import read_volume, write_volume
from kernelscope.files.volumes.writing import record_of
from kernelscope.files.writing import record_of_image
from kernelscope.images.image import Image
from kernelscope.images.volume import Volume
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind


@pytest.fixture
def holes():
    """Return a function that makes floats, some of them NaN."""
    rng = np.random.default_rng(8)

    def make(*shape: int, dtype: str = "float32") -> np.ndarray:
        values = rng.random(shape).astype(dtype)
        values[rng.random(shape) < 0.3] = np.nan
        return values

    return make


class TestVolumes:
    def write(self, path, voxels):
        if path.suffix == ".npy":
            np.save(path, voxels)
        elif path.suffix == ".tif":
            tifffile.imwrite(path, voxels, photometric="minisblack")
        else:
            nibabel.save(nibabel.Nifti1Image(voxels.T, np.diag([1, 2, 3, 1.0])), path)
        return path

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("target", [".nii", ".nii.gz", ".npy", ".tif"])
    @pytest.mark.parametrize("source", [".nii", ".npy", ".tif"])
    def test_they_come_back(self, tmp_path, holes, source, target, dtype):
        voxels = holes(4, 5, 6, dtype=dtype)
        path = self.write(tmp_path / f"a{source}", voxels)
        count = np.count_nonzero(np.isnan(voxels))
        with pytest.raises(NotANumber, match=rf"a{source}: {count} of 120 voxels are NaN"):
            read_volume(path)
        volume = read_volume(path, nan=-2.5)
        np.testing.assert_array_equal(
            volume.voxels, np.where(np.isnan(voxels), -2.5, voxels).astype(np.float32)
        )
        notice = f"{count} of 120 voxels are NaN: filtered as -2.5, saved as NaN again."
        assert notice in volume.notices
        result = volume.with_voxels(volume.voxels + np.float32(1))
        saved = write_volume(result, tmp_path / f"b{target}", lossy=True)
        again = {
            ".npy": np.load,
            ".tif": tifffile.imread,
        }.get(target, lambda path: np.asarray(nibabel.load(path).dataobj).T)(saved)
        assert again.dtype == dtype
        np.testing.assert_array_equal(np.isnan(again), np.isnan(voxels))
        expected = (voxels.astype(np.float32) + np.float32(1))[~np.isnan(voxels)]
        np.testing.assert_array_equal(again[~np.isnan(voxels)], expected)

    def test_scaled(self, tmp_path, holes):
        voxels = holes(4, 5, 6)
        image = nibabel.Nifti1Image(voxels.T, np.eye(4))
        image.header.set_slope_inter(2, 1)
        nibabel.save(image, tmp_path / "a.nii")
        volume = read_volume(tmp_path / "a.nii", nan=0)
        assert not volume.voxels[np.isnan(voxels)].any()
        result = nibabel.load(write_volume(volume, tmp_path / "b.nii"))
        expected = np.asarray(nibabel.load(tmp_path / "a.nii").dataobj)
        np.testing.assert_allclose(np.asarray(result.dataobj), expected, rtol=1e-6)

    def test_residuals_and_maps_have_them_too(self, tmp_path, holes):
        voxels = holes(4, 5, 6)
        volume = read_volume(self.write(tmp_path / "a.npy", voxels), nan=0)
        saved = np.load(write_volume(volume.minus(volume), tmp_path / "b.npy"))
        np.testing.assert_array_equal(saved, np.where(np.isnan(voxels), np.nan, 0))

    def test_infinite_voxels_are_refused_still(self, tmp_path, holes):
        voxels = holes(4, 5, 6)
        voxels[0, 0, :2] = np.inf, -np.inf
        path = self.write(tmp_path / "a.npy", voxels)
        with pytest.raises(InvalidImage, match="2 of 120 voxels are infinite") as caught:
            read_volume(path, nan=0)
        assert not isinstance(caught.value, NotANumber)

    @pytest.mark.parametrize("number", [1e39, np.nan, np.inf])
    def test_the_number_has_to_be_one(self, tmp_path, holes, number):
        path = self.write(tmp_path / "a.npy", holes(4, 5, 6))
        with pytest.raises(InvalidParameter, match="NaN cannot be replaced"):
            read_volume(path, nan=number)

    def test_without_any_nothing_is_said(self, tmp_path):
        path = self.write(tmp_path / "a.nii", np.ones((4, 5, 6), np.float32))
        volume = read_volume(path, nan=0)
        assert volume.missing is None
        assert volume.notices == ()

    def test_squares_that_are_too_large(self, tmp_path):
        """The quick look at them takes a sum of squares."""
        path = self.write(tmp_path / "a.npy", np.full((4, 5, 6), 3e38, np.float32))
        assert read_volume(path).voxels.min() == np.float32(3e38)

    def test_a_folder_of_pictures(self, tmp_path, holes):
        voxels = holes(3, 5, 6)
        voxels[1] = 0.5
        (tmp_path / "in").mkdir()
        for number, plane in enumerate(voxels):
            tifffile.imwrite(tmp_path / "in" / f"{number}.tif", plane, photometric="minisblack")
        with pytest.raises(NotANumber, match="of 90 voxels are NaN"):
            read_volume(tmp_path / "in")
        volume = read_volume(tmp_path / "in", nan=1)
        assert sum("NaN" in notice for notice in volume.notices) == 1
        saved = write_volume(volume, tmp_path / "out.tifs")
        for number, plane in enumerate(voxels, 1):
            np.testing.assert_array_equal(tifffile.imread(saved / f"slice-{number:03}.tif"), plane)

    def test_where_they_cannot_be_kept_it_is_said(self, tmp_path, holes):
        voxels = holes(3, 5, 6)
        volume = read_volume(self.write(tmp_path / "a.npy", voxels), nan=1)
        assert record_of("b.npy", volume).losses == []
        said = ["b.pngs is saved without fractions and NaN of the input."]
        assert record_of("b.pngs", volume).losses == said
        saved = write_volume(volume, tmp_path / "b.pngs", lossy=True)
        with PIL.Image.open(saved / "slice-001.png") as image:
            expected = np.rint(np.where(np.isnan(voxels[0]), 1, voxels[0]))
            np.testing.assert_array_equal(np.asarray(image), expected)


class TestPictures:
    @pytest.mark.parametrize("channels", [(), (3,), (4,)])
    def test_they_come_back(self, tmp_path, holes, channels):
        pixels = holes(7, 9, *channels)
        path = tmp_path / "a.tif"
        more = {"extrasamples": ("unassalpha",)} if channels == (4,) else {}
        photometric = "rgb" if channels else "minisblack"
        tifffile.imwrite(path, pixels, photometric=photometric, **more)
        with pytest.raises(NotANumber, match=f"a.tif: .* of {pixels.size} samples are NaN"):
            read_image(path)
        image = read_image(path, nan=0.25)
        np.testing.assert_array_equal(image.pixels, np.where(np.isnan(pixels), 0.25, pixels))
        assert "filtered as 0.25, saved as NaN again." in image.notices[-1]
        holed = np.isnan(pixels.reshape(7, 9, -1))
        smaller = image.like(image.planes[1:-1, 2:-2])  # as border “valid” makes it
        for result, marks in ((image, holed), (smaller, holed[1:-1, 2:-2])):
            again = tifffile.imread(write_image(result, tmp_path / "b.tif"))
            expected = result.planes.copy()
            expected[marks] = np.nan
            np.testing.assert_array_equal(again.reshape(expected.shape), expected)

    def test_where_they_cannot_be_kept_it_is_said(self, tmp_path, holes):
        pixels = holes(7, 9)
        tifffile.imwrite(tmp_path / "a.tif", pixels, photometric="minisblack")
        image = read_image(tmp_path / "a.tif", nan=1)
        assert record_of("b.tif", image).losses == []
        assert record_of("b.png", image).losses == [
            "b.png is saved without float samples and NaN of the input."
        ]
        again = read_image(write_image(image, tmp_path / "b.png", lossy=True))
        assert (again.pixels[np.isnan(pixels)] == 65535).all()

    def test_infinite_samples_are_refused_still(self, tmp_path):
        pixels = np.array([[1, np.inf], [np.nan, 0]], np.float32)
        with pytest.raises(InvalidImage, match="1 of 4 samples is infinite"):
            Image.from_array(pixels, nan=0)

    def test_another_shape_forgets_them(self, holes):
        image = Image.from_array(holes(6, 6), nan=0)
        assert image.like(np.zeros((5, 6, 1), np.float32)).missing is None
        assert image.like(np.zeros((4, 6, 1), np.float32)).missing.shape == (4, 6)


class TestBooleans:
    def test_they_come_back(self, tmp_path):
        mask = np.random.default_rng(1).random((4, 5, 6)) < 0.4
        np.save(tmp_path / "a.npy", mask)
        volume = read_volume(tmp_path / "a.npy")
        assert volume.voxels.dtype == np.uint8
        np.testing.assert_array_equal(volume.voxels, mask)
        assert volume.notices[-1].startswith("Booleans are filtered as 1 and 0; .npy")
        saved = np.load(write_volume(volume, tmp_path / "b.npy"))
        assert saved.dtype == bool
        np.testing.assert_array_equal(saved, mask)

    def test_results_are_what_is_seen(self, tmp_path):
        np.save(tmp_path / "a.npy", np.ones((1, 1, 5), bool))
        volume = read_volume(tmp_path / "a.npy")
        result = volume.with_voxels(np.array([[[0.4, 0.6, 1.4, 3, 300]]]))
        np.testing.assert_array_equal(result.voxels, [[[0, 1, 1, 1, 1]]])
        np.testing.assert_array_equal(
            np.load(write_volume(result, tmp_path / "b.npy")), [[[False, *[True] * 4]]]
        )
        floats = volume.with_voxels(np.full((1, 1, 5), 0.5, np.float32), as_float=True)
        assert np.load(write_volume(floats, tmp_path / "b.npy")).dtype == np.float32

    @pytest.mark.parametrize("name", ["b.nii", "b.tif", "b.pngs"])
    def test_other_formats_get_bytes(self, tmp_path, name):
        mask = np.random.default_rng(1).random((4, 5, 6)) < 0.4
        volume = Volume.from_array(mask)
        again = read_volume(write_volume(volume, tmp_path / name))
        assert again.voxels.dtype == np.uint8
        np.testing.assert_array_equal(again.voxels, mask)


class TestOthers:
    def test_what_a_volume_loses_is_said(self, tmp_path):
        nibabel.save(
            nibabel.Nifti1Image(np.ones((4, 5, 6), np.uint8), np.eye(4)), tmp_path / "a.nii"
        )
        volume = read_volume(tmp_path / "a.nii")
        assert record_of("b.nii.gz", volume).losses == []
        assert record_of("b.npy", volume).losses == [
            "b.npy is saved without the distance of voxels, orientation, position and the NIfTI "
            "header of the input."
        ]
        tagged = Volume.from_array(volume.voxels, others=("DICOM tags",))
        result = tagged.with_voxels(volume.voxels)
        assert record_of("b.nii", result).losses == [
            "b.nii is saved without DICOM tags of the input."
        ]

    def test_an_unknown_suffix_is_another_matter(self):
        with pytest.raises(ImageReadError):
            read_volume("no.nii")


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
        stack = tmp_path / "stack.tif"
        tifffile.imwrite(stack, np.stack([pixels] * 2), photometric="minisblack", extratags=tags)
        stated = nodata != "none"
        for source, other in ((image, "b.png"), (read_volume(stack), "b.nii")):
            assert ("marks of" in " ".join(record_of(other, source).lost)) == stated
            if isinstance(source, Image):
                made = write_image(source, tmp_path / "b.tif")
            else:
                made = write_volume(source, tmp_path / "b.tif")
            with tifffile.TiffFile(made) as file:
                assert (42113 in file.pages.first.tags) == stated
            assert ("marks of" in " ".join(record_of("b.tif", source).kept)) == stated
        for path, kind in ((tmp_path / "a.tif", Kind.PICTURE), (stack, Kind.VOLUME)):
            opened = open_tiff(path, kind)
            assert opened.head.others == ("marks of samples without data",) * stated
            opened.close()


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
