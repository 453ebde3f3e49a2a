"""DICOM series: put in order, rescaled, placed; and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import nibabel
import numpy as np
import pydicom
import pytest
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import (
    BasicTextSRStorage,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    JPEGLSLossless,
    MRImageStorage,
    RLELossless,
    generate_uid,
)

from app.errors import ImageReadError, InvalidImage
from app.files.volumes import is_volume, read_volume, write_volume

SERIES = generate_uid()
OTHER = generate_uid()
UPRIGHT = np.eye(3)[:2]
OBLIQUE = np.array([[0.8, 0.6, 0.0], [-0.48, 0.64, -0.6]])


def pixels(index: int, dtype: object = np.uint16) -> np.ndarray:
    return (np.arange(30).reshape(5, 6) * 7 + 100 * index).astype(dtype)


def write(
    path: Path,
    array: np.ndarray,
    index: float,
    directions: np.ndarray = UPRIGHT,
    syntax: str = ExplicitVRLittleEndian,
    **tags: object,
) -> FileDataset:
    """Write one slice; None among `tags` leaves the element out."""
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = MRImageStorage
    meta.MediaStorageSOPInstanceUID = generate_uid()
    meta.TransferSyntaxUID = syntax
    little = syntax != ExplicitVRBigEndian
    dataset = FileDataset(path, {}, bytes(128), meta, False, is_little_endian=little)
    dataset.SOPClassUID = MRImageStorage
    dataset.SOPInstanceUID = meta.MediaStorageSOPInstanceUID
    dataset.Modality = "MR"
    dataset.SeriesInstanceUID = SERIES
    dataset.SeriesNumber = 3
    dataset.SeriesDescription = "T1w"
    dataset.Rows, dataset.Columns = array.shape
    dataset.SamplesPerPixel = 1
    dataset.PhotometricInterpretation = "MONOCHROME2"
    dataset.BitsAllocated = dataset.BitsStored = array.dtype.itemsize * 8
    dataset.HighBit = dataset.BitsStored - 1
    dataset.PixelRepresentation = int(array.dtype.kind == "i")
    dataset.PixelSpacing = [0.5, 0.75]
    dataset.SliceThickness = 3
    dataset.ImageOrientationPatient = np.round(directions, 6).ravel().tolist()
    corner = np.array([-10.0, 20.0, 5.0]) + 2.5 * index * np.cross(*directions)
    dataset.ImagePositionPatient = np.round(corner, 6).tolist()
    for keyword, value in tags.items():
        if value is None:
            delattr(dataset, keyword)
        else:
            setattr(dataset, keyword, value)
    if syntax == ExplicitVRBigEndian:
        array = array.byteswap()
    dataset.PixelData = array.tobytes()
    dataset["PixelData"].VR = "OW"
    dataset.save_as(path, enforce_file_format=True)
    return dataset


@pytest.fixture
def folder(tmp_path) -> Path:
    path = tmp_path / "scan"
    path.mkdir()
    return path


@pytest.fixture
def series(folder) -> Callable[..., Path]:
    """Return a function that writes slices whose names say nothing about their order."""

    def make(count: int = 4, dtype: object = np.uint16, **options: object) -> Path:
        for index in range(count):
            write(folder / f"IM{(index * 3) % 7}", pixels(index, dtype), index, **options)
        return folder

    return make


class TestSeries:
    @pytest.mark.parametrize("directions", [UPRIGHT, np.eye(3)[[1, 2]], OBLIQUE])
    def test_sorted_along_the_normal(self, series, directions):
        volume = read_volume(series(directions=directions))
        expected = np.stack([pixels(index) for index in range(4)])
        np.testing.assert_array_equal(volume.voxels, expected)
        assert volume.voxels.dtype == np.uint16
        assert volume.spacing == pytest.approx((2.5, 0.5, 0.75))
        assert volume.notices == ()
        assert volume.title == "scan"

    def test_placed_as_the_standard_says(self, series):
        """DICOM PS3.3 C.7.6.2.1.1, with x and y turned round for NIfTI."""
        volume = read_volume(series(directions=OBLIQUE))
        for x, y, z in [(0, 0, 0), (5, 0, 0), (0, 4, 0), (2, 3, 3)]:
            left = np.array([-10.0, 20.0, 5.0]) + 2.5 * z * np.cross(*OBLIQUE)
            left += OBLIQUE[0] * 0.75 * x + OBLIQUE[1] * 0.5 * y
            np.testing.assert_allclose(
                volume.affine @ [x, y, z, 1], [-left[0], -left[1], left[2], 1], atol=1e-4
            )

    def test_orientation(self, series):
        assert read_volume(series()).orientation == "LPS"

    def test_saved_as_nifti_with_type_and_place(self, series, tmp_path):
        volume = read_volume(series(dtype=np.int16))
        image = nibabel.load(write_volume(volume, tmp_path / "a.nii.gz"))
        np.testing.assert_array_equal(np.asarray(image.dataobj).T, volume.voxels)
        np.testing.assert_allclose(image.affine, volume.affine, atol=1e-5)
        assert image.get_data_dtype() == volume.voxels.dtype
        assert image.header.get_zooms() == pytest.approx((0.75, 0.5, 2.5))

    def test_tilted_gantry_shears(self, folder, tmp_path):
        for index in range(3):
            corner = [0.0, 0.5 * index, 2.0 * index]
            write(folder / f"{index}", pixels(index), 0, ImagePositionPatient=corner)
        volume = read_volume(folder)
        np.testing.assert_allclose(volume.affine[:3, 2], [0, -0.5, 2])
        again = read_volume(write_volume(volume, tmp_path / "a.nii"))
        np.testing.assert_allclose(again.affine, volume.affine, atol=1e-5)

    @pytest.mark.parametrize(
        ("slope", "intercept", "stored", "kept"),
        [
            (1, -1024, np.uint16, np.int16),
            (1, 0, np.int16, np.uint16),
            (2, 0, np.uint16, np.uint16),
            (0.5, 0, np.uint16, np.float32),
            (1, 0.25, np.int16, np.float32),
        ],
    )
    def test_rescaled(self, series, slope, intercept, stored, kept):
        volume = read_volume(series(dtype=stored, RescaleSlope=slope, RescaleIntercept=intercept))
        expected = np.stack([pixels(index, float) for index in range(4)]) * slope + intercept
        np.testing.assert_array_equal(volume.voxels, expected)
        assert volume.voxels.dtype == kept

    def test_every_slice_has_its_own_scaling(self, folder):
        for index in range(3):
            write(folder / f"{index}", pixels(index), index, RescaleSlope=1.5**index)
        expected = [pixels(index) * 1.5**index for index in range(3)]
        np.testing.assert_allclose(read_volume(folder).voxels, expected)

    @pytest.mark.parametrize(("dtype", "bits"), [(np.uint16, 12), (np.uint8, 8), (np.int16, 16)])
    def test_white_low(self, series, dtype, bits):
        volume = read_volume(
            series(
                2,
                dtype,
                PhotometricInterpretation="MONOCHROME1",
                BitsStored=bits,
                HighBit=bits - 1,
            )
        )
        plain = np.stack([pixels(index, dtype) for index in range(2)]).astype(int)
        expected = -1 - plain if dtype == np.int16 else 2**bits - 1 - plain
        np.testing.assert_array_equal(volume.voxels, expected)
        assert "MONOCHROME1" in volume.notices[0]

    def test_big_endian(self, series):
        volume = read_volume(series(syntax=ExplicitVRBigEndian))
        np.testing.assert_array_equal(volume.voxels[3], pixels(3))

    def test_run_length_encoded(self, folder):
        for index in range(2):
            dataset = write(folder / f"{index}", pixels(index), index)
            dataset.compress(RLELossless, generate_instance_uid=False)
            dataset.save_as(folder / f"{index}")
        np.testing.assert_array_equal(read_volume(folder).voxels, [pixels(0), pixels(1)])

    def test_one_slice(self, series):
        volume = read_volume(series(1))
        assert volume.voxels.shape == (1, 5, 6)
        assert volume.spacing == pytest.approx((3, 0.5, 0.75))

    def test_one_slice_of_unknown_place(self, series):
        volume = read_volume(series(1, ImagePositionPatient=None))
        np.testing.assert_array_equal(volume.voxels, [pixels(0)])
        assert volume.affine is None
        assert "1 mm is assumed" in volume.notices[0]

    def test_a_file_stands_for_its_series(self, series):
        path = series()
        write(path / "other", pixels(9), 0, SeriesInstanceUID=OTHER)
        assert is_volume(path / "IM3")
        volume = read_volume(path / "IM3")
        assert volume.voxels.shape == (4, 5, 6)
        assert volume.notices == ("Read with all slices of its series in the folder.",)

    def test_other_files_are_left_out(self, series, tmp_path):
        path = series()
        (path / "README.txt").write_text("not a slice")
        (path / ".hidden").write_text("nor this")
        (path / "folder").mkdir()
        volume = read_volume(path)
        assert volume.voxels.shape == (4, 5, 6)
        assert volume.notices == ("Other files in the folder are left out: 1.",)

    @pytest.mark.parametrize("suffix", ["", ".dcm"])
    def test_a_damaged_slice_is_not_another_file(self, series, suffix):
        """With three slices the spacing would not tell that the middle one is missing."""
        path = series(3)
        for file in list(path.iterdir()):
            file.rename(f"{file}{suffix}")
        (path / f"IM3{suffix}").write_bytes(bytes(500))
        with pytest.raises(ImageReadError, match=r"IM3.* is named like the slices"):
            read_volume(path)


class TestSeveralSeries:
    @pytest.fixture
    def mixed(self, series, folder) -> Path:
        series()
        for index in range(2):
            write(
                folder / f"other{index}",
                pixels(index),
                index,
                SeriesInstanceUID=OTHER,
                SeriesNumber=1,
                SeriesDescription="T2w",
            )
        return folder

    @pytest.mark.parametrize("number", [None, 3])
    def test_listed(self, mixed, number):
        with pytest.raises(ImageReadError) as caught:
            read_volume(mixed, number)
        assert "1: T2w (2 slices, 6×5); 2: T1w (4 slices, 6×5)" in caught.value.hint
        assert ("holds 2 series" if number is None else "no series 3") in caught.value.message

    def test_chosen(self, mixed):
        assert read_volume(mixed, 1).depth == 2
        volume = read_volume(mixed, 2)
        assert volume.depth == 4
        assert volume.notices == ("Series 2 of 2: T1w (4 slices, 6×5).",)


class TestRefused:
    def refuse(self, path: Path, message: str, hint: str = "") -> None:
        with pytest.raises(ImageReadError) as caught:
            read_volume(path)
        assert message in caught.value.message
        assert hint in caught.value.hint

    def test_missing_slices(self, series):
        path = series(7)
        (path / "IM5").unlink()  # slice 4
        self.refuse(path, "scan: slices are missing between IM2 and IM1: 1.")

    def test_uneven_slices(self, series):
        path = series(4)
        write(path / "late", pixels(4), 4.3)
        self.refuse(path, "IM2 and late lie 3.25 mm apart, and most others 2.5 mm.")

    def test_the_same_slice_twice(self, series):
        path = series()
        shutil.copy(path / "IM3", path / "copy")
        self.refuse(path, "lie at the same place", "Leave only one echo")

    def test_a_slice_beside_the_others(self, series):
        path = series()
        write(path / "IM3", pixels(1), 0, ImagePositionPatient=[-8, 20, 7.5])
        self.refuse(path, "IM3 lies 2 mm beside the others.")

    @pytest.mark.parametrize(
        ("tags", "message"),
        [
            ({"PixelSpacing": [0.5, 0.8]}, "differ in spacing"),
            ({"ImageOrientationPatient": [0, 1, 0, 0, 0, 1]}, "differ in orientation"),
            ({"PhotometricInterpretation": "MONOCHROME1"}, "differ in kind of grey"),
            ({"ImagePositionPatient": None}, "odd does not tell where it lies"),
            ({"PixelSpacing": None}, "(PixelSpacing is missing)"),
            ({"NumberOfFrames": 2}, "odd holds several frames"),
            ({"PhotometricInterpretation": "RGB"}, "odd is in colour"),
            ({"ModalityLUTSequence": [pydicom.Dataset()]}, "odd has a table of values"),
        ],
    )
    def test_an_odd_slice(self, series, tags, message):
        path = series()
        write(path / "odd", pixels(4), 4, **tags)
        self.refuse(path, message)

    def test_another_size(self, series):
        path = series()
        write(path / "odd", np.zeros((5, 7), np.uint16), 4)
        self.refuse(path, "odd and IM0 differ in width: 7 and 6.")

    def test_a_place_that_makes_no_sense(self, series):
        path = series(PixelSpacing=[0, 0])
        self.refuse(path, "makes no sense")

    def test_cut_off(self, series):
        """A slice must not be left out because so little is left of it."""
        path = series(2)
        data = (path / "IM3").read_bytes()
        for length in range(140, len(data), 5):
            (path / "IM3").write_bytes(data[:length])
            self.refuse(path, "IM3")

    def test_compressed_without_the_library(self, series, monkeypatch):
        path = series(1)
        dataset = pydicom.dcmread(path / "IM0")
        dataset.file_meta.TransferSyntaxUID = JPEGLSLossless
        dataset.PixelData = pydicom.encaps.encapsulate([b"\xff\xd8\xff\xd9"])
        dataset["PixelData"].is_undefined_length = True
        dataset.save_as(path / "IM0")
        decoder = pydicom.pixels.get_decoder(JPEGLSLossless)
        monkeypatch.setattr(decoder, "_available", {})
        self.refuse(path, "IM0 is compressed as JPEG-LS Lossless", "pip install pylibjpeg")

    def test_too_many_voxels(self, folder):
        for index in range(2):
            write(folder / f"{index}", pixels(index), index)
            dataset = pydicom.dcmread(folder / f"{index}")
            dataset.Rows = dataset.Columns = 40000
            dataset.save_as(folder / f"{index}")
        with pytest.raises(InvalidImage, match="voxels are too many"):
            read_volume(folder)

    def test_nothing_but_reports(self, folder):
        dataset = write(folder / "report", pixels(0), 0, Rows=None)
        dataset.file_meta.MediaStorageSOPClassUID = BasicTextSRStorage
        dataset.save_as(folder / "report")
        self.refuse(folder, "its DICOM files hold no pictures")
        self.refuse(folder / "report", "the file holds no picture")
