"""DICOM series: sorted, rescaled, placed; and refused if faulty."""

from __future__ import annotations

import functools
import re
import shutil
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pydicom
import pytest
from numpy.typing import NDArray
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import (
    MPEG2MPML,
    BasicTextSRStorage,
    EnhancedMRImageStorage,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    HTJ2KLossless,
    JPEG2000Lossless,
    JPEGBaseline8Bit,
    JPEGExtended12Bit,
    JPEGLossless,
    JPEGLosslessSV1,
    JPEGLSLossless,
    MRImageStorage,
    RLELossless,
    generate_uid,
)

from kernelscope.base.errors import ImageReadError, InvalidImage
from kernelscope.base.installed import install_command
from kernelscope.files import read_image, watched
from kernelscope.files.pictures import dicom
from kernelscope.files.volumes import is_volume, read_volume, write_volume
from kernelscope.gui.model.display import Display, automatic_of, first_of
from tests.files.mutations import seeds

SERIES = generate_uid()
OTHER = generate_uid()
UPRIGHT = np.eye(3)[:2]
OBLIQUE = np.array([[0.8, 0.6, 0.0], [-0.48, 0.64, -0.6]])


def pixels(index: int, dtype: Any = np.uint16) -> np.ndarray:
    return (np.arange(30).reshape(5, 6) * 7 + 100 * index).astype(dtype)


def write(
    path: Path,
    array: np.ndarray,
    index: float,
    directions: np.ndarray = UPRIGHT,
    syntax: str = ExplicitVRLittleEndian,
    preamble: bytes = bytes(128),
    **tags: object,
) -> FileDataset:
    """Write one slice; None among `tags` leaves the element out."""
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = MRImageStorage
    meta.MediaStorageSOPInstanceUID = generate_uid()
    meta.TransferSyntaxUID = syntax
    little = syntax != ExplicitVRBigEndian
    dataset = FileDataset(path, {}, preamble, meta, False, is_little_endian=little)
    dataset.SOPClassUID = MRImageStorage
    dataset.SOPInstanceUID = meta.MediaStorageSOPInstanceUID
    dataset.Modality = "MR"
    dataset.SeriesInstanceUID = SERIES
    dataset.SeriesNumber = 3
    dataset.SeriesDescription = "T1w"
    dataset.Rows, dataset.Columns = array.shape[:2]
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


def encapsulate(
    dataset: FileDataset, path: Path, syntax: str, *frames: Any, has_bot: bool = True
) -> None:
    """Write a file again, with encoded frames in place of its pixels."""
    dataset.file_meta.TransferSyntaxUID = syntax
    dataset.PixelData = pydicom.encaps.encapsulate([*frames], has_bot=has_bot)
    dataset["PixelData"].is_undefined_length = True
    dataset.save_as(path)


@pytest.fixture
def folder(tmp_path) -> Path:
    path = tmp_path / "scan"
    path.mkdir()
    return path


@pytest.fixture
def series(folder) -> Callable[..., Path]:
    """Return a function that writes slices whose names say nothing about their order."""

    def make(count: int = 4, dtype: Any = np.uint16, **options: Any) -> Path:
        for index in range(count):
            write(folder / f"IM{(index * 3) % 7}", pixels(index, dtype), index, **options)
        return folder

    return make


def refuse(path: Path, message: str, hint: str = "") -> None:
    with pytest.raises(ImageReadError) as caught:
        read_volume(path)
    assert message in caught.value.message
    assert hint in caught.value.hint


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
        assert volume.affine is not None
        for x, y, z in [(0, 0, 0), (5, 0, 0), (0, 4, 0), (2, 3, 3)]:
            left = np.array([-10.0, 20.0, 5.0]) + 2.5 * z * np.cross(*OBLIQUE)
            left += OBLIQUE[0] * 0.75 * x + OBLIQUE[1] * 0.5 * y
            np.testing.assert_allclose(
                volume.affine @ [x, y, z, 1], [-left[0], -left[1], left[2], 1], atol=1e-4
            )

    def test_orientation(self, series):
        assert read_volume(series()).orientation == "LPS"

    def test_tilted_gantry_shears(self, folder, tmp_path):
        for index in range(3):
            corner = [0.0, 0.5 * index, 2.0 * index]
            write(folder / f"{index}", pixels(index), 0, ImagePositionPatient=corner)
        volume = read_volume(folder)
        assert volume.affine is not None
        np.testing.assert_allclose(volume.affine[:3, 2], [0, -0.5, 2])
        again = read_volume(write_volume(volume, tmp_path / "a.nii"))
        assert again.affine is not None
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

    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    def test_floats_of_parametric_maps(self, folder, kind):
        """They were named as cut off or damaged."""
        planes = [pixels(index, kind) / 8 - 3 for index in range(3)]
        for index, plane in enumerate(planes):
            dataset = write(folder / f"{index}", plane, index, RescaleSlope=2)
            del dataset.PixelData
            name = "FloatPixelData" if kind == np.float32 else "DoubleFloatPixelData"
            setattr(dataset, name, plane.tobytes())
            dataset.save_as(folder / f"{index}", enforce_file_format=True)
        volume = read_volume(folder)
        np.testing.assert_array_equal(volume.voxels, np.array(planes, np.float32) * 2)
        assert volume.voxels.dtype == np.float32
        assert volume.spacing == pytest.approx((2.5, 0.5, 0.75))

    @pytest.mark.parametrize(
        ("model", "stored", "limit", "number", "shown"),
        [
            ("MONOCHROME2", -2000, None, -3024, "-3024"),
            ("MONOCHROME2", -2000, -1998, -3024, "-3024"),
            ("MONOCHROME1", -2000, None, -1 + 2000 - 1024, "975"),
            ("MONOCHROME2", 1024, None, 0, ""),  # the background of most filters and scans
            ("MONOCHROME2", -7, None, -3024, ""),  # no voxel has it
        ],
    )
    def test_values_of_no_data_are_named(self, folder, model, stored, limit, number, shown):
        plane = pixels(0, np.int16) + np.int16(3000)
        plane[:2, :3] = stored if stored != -7 else -2000
        tags = {} if limit is None else {"PixelPaddingRangeLimit": limit}
        write(
            folder / "a", plane, 0, RescaleIntercept=-1024, PhotometricInterpretation=model,
            PixelPaddingValue=stored, **tags,
        )  # fmt: skip
        volume = read_volume(folder)
        np.testing.assert_array_equal(volume.voxels[0, :2, :3], number)
        said = [each for each in volume.notices if "PixelPaddingValue" in each]
        assert len(said) == bool(shown)
        if shown:
            assert said[0].startswith("6 voxels lie outside of the picture")
            assert said[0].endswith(f"number, {shown}.")

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
        assert volume.spacing == read_volume(series(1)).spacing
        assert volume.notices == ()

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
        """Three slices have regular spacing without the middle one too."""
        path = series(3)
        for file in list(path.iterdir()):
            file.rename(f"{file}{suffix}")
        (path / f"IM3{suffix}").write_bytes(bytes(500))
        with pytest.raises(ImageReadError, match=r"IM3.* is named like the slices"):
            read_volume(path)


class TestAFileAlone:
    """A good file that is named opens, whatever lies beside it."""

    @pytest.mark.parametrize(
        ("tags", "said"),
        [
            ({"PixelSpacing": [0.5, 0.8]}, "odd and IM3 differ in spacing"),
            ({"ImageOrientationPatient": [0, 1, 0, 0, 0, 1]}, "odd and IM3 differ in orientation"),
            ({"PhotometricInterpretation": "MONOCHROME1"}, "odd and IM3 differ in kind of grey"),
            ({"ImagePositionPatient": None}, "odd does not state its position"),
            ({"PixelSpacing": None}, "odd does not state its position (PixelSpacing is missing)"),
            ({"NumberOfFrames": 2}, "odd holds several frames"),
            ({"ImagePositionPatient": [1, 2]}, "the DICOM file odd's data are damaged"),
            ({"ImageOrientationPatient": [1, 2, 3]}, "the DICOM file odd's data are damaged"),
            ({"PhotometricInterpretation": "RGB"}, "odd is in colour"),
            ({"ModalityLUTSequence": [pydicom.Dataset()]}, "odd has a table of values"),
            ({"Rows": 7}, "odd and IM3 differ in height: 7 and 5"),
            ({"Columns": 7}, "odd and IM3 differ in width: 7 and 6"),
        ],
    )
    def test_an_odd_one_is_left_out_and_named(self, series, tags, said):
        """In a folder that is named it is refused: nobody said which ones are right."""
        path = series()
        sides = tags.get("Rows", 5), tags.get("Columns", 6)
        write(path / "odd", np.resize(pixels(4), sides), 4, **tags)
        refuse(path, said.replace("IM3", "IM0").removeprefix("the "))
        volume = read_volume(path / "IM3")
        assert volume.depth == 4
        assert volume.notices[0] == "Read with all slices of its series in the folder."
        assert volume.notices[1].startswith(f"Left out of the folder: {said}")

    @pytest.mark.parametrize("kind", ["folder", "file"])
    def test_one_that_may_not_be_read_is_named(self, series, monkeypatch, kind):
        path = series()
        (path / "notes.txt").write_text("private")
        usual = Path.open

        def refusing(file, *how, **more):
            if file.name == "notes.txt":
                raise PermissionError(13, "Permission denied", str(file))
            return usual(file, *how, **more)

        monkeypatch.setattr(Path, "open", refusing)
        said = "notes.txt cannot be read (Permission denied)"
        if kind == "folder":
            with pytest.raises(ImageReadError, match=re.escape(said)):
                read_volume(path)
        else:
            volume = read_volume(path / "IM3")
            assert volume.depth == 4
            assert volume.notices[1] == f"Left out of the folder: {said}."

    def test_a_damaged_one_is_left_out_and_named(self, series):
        path = series()
        (path / "odd").write_bytes((path / "IM3").read_bytes()[:200])
        volume = read_volume(path / "IM3")
        assert volume.depth == 4
        assert volume.notices[1].startswith("Left out of the folder: ")
        assert "odd" in volume.notices[1]

    def test_many_are_counted(self, series):
        path = series()
        for number in range(9):
            write(path / f"odd{number}", pixels(4), 4, PhotometricInterpretation="RGB")
        notice = read_volume(path / "IM3").notices[1]
        assert "odd2" in notice
        assert "odd3" not in notice
        assert notice.endswith("; and 6 more.")


class TestPreamble:
    @pytest.mark.parametrize("start", [b"II*\0", b"MM\0*", b"II+\0", b"P5 9 9", b"BM"])
    def test_it_may_look_like_anything(self, series, folder, start):
        path = series(preamble=start.ljust(128, b"\x08"))
        for place in (path, path / "IM3"):
            assert is_volume(place)
            np.testing.assert_array_equal(read_volume(place).voxels[1], pixels(1))


@pytest.mark.parametrize(
    ("level", "width", "model", "window"),
    [
        (450, 900, "MONOCHROME2", (0, 900)),
        ([40, 300], [80, 1500], "MONOCHROME2", (0, 80)),  # several: the first
        (450, 900, "MONOCHROME1", None),  # of values that reading inverts
        (None, 900, "MONOCHROME2", None),
    ],
)
def test_the_window_of_the_file(series, level, width, model, window):
    tags = {"WindowWidth": width} | ({"WindowCenter": level} if level is not None else {})
    path = series(PhotometricInterpretation=model, **tags)
    volume = read_volume(path)
    assert volume.channel.window == window
    assert first_of(volume) == (Display(*window) if window else automatic_of(volume))


def enhanced(
    path: Path, count: int = 4, order: Iterable[int] | None = None, **options: Any
) -> FileDataset:
    """Write an Enhanced MR file; `order` says which slice each frame shows.

    `alter(frame, number)` changes the groups of a frame.
    """
    order = list(order or [(index * 3) % count for index in range(count)])
    alter = options.pop("alter", lambda frame, number: None)
    directions = options.pop("directions", UPRIGHT)
    array = np.concatenate([pixels(index) for index in order])
    absent: dict[str, Any] = dict.fromkeys(PLACES)
    dataset = write(path, array, 0, **absent)
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID = EnhancedMRImageStorage
    dataset.Rows, dataset.NumberOfFrames = 5, len(order)
    measures = pydicom.Dataset()
    measures.PixelSpacing, measures.SliceThickness = [0.5, 0.75], 2
    orientation = pydicom.Dataset()
    orientation.ImageOrientationPatient = np.round(directions, 6).ravel().tolist()
    values = pydicom.Dataset()
    values.RescaleSlope, values.RescaleIntercept = 2, -5
    shared = pydicom.Dataset()
    shared.PixelMeasuresSequence = [measures]
    shared.PlaneOrientationSequence = [orientation]
    shared.PixelValueTransformationSequence = [values]
    dataset.SharedFunctionalGroupsSequence = [shared]
    frames = []
    for number, index in enumerate(order):
        position = pydicom.Dataset()
        corner = np.array([-10.0, 20.0, 5.0]) + 2.5 * index * np.cross(*directions)
        position.ImagePositionPatient = np.round(corner, 6).tolist()
        frame = pydicom.Dataset()
        frame.PlanePositionSequence = [position]
        alter(frame, number)
        frames.append(frame)
    dataset.PerFrameFunctionalGroupsSequence = frames
    for keyword, value in options.items():
        setattr(dataset, keyword, value)
    dataset.save_as(path)
    return dataset


PLACES = ("PixelSpacing", "SliceThickness", "ImageOrientationPatient", "ImagePositionPatient")


def of_group(name: str, **elements: object) -> pydicom.Dataset:
    item = pydicom.Dataset()
    for keyword, value in elements.items():
        setattr(item, keyword, value)
    frame = pydicom.Dataset()
    setattr(frame, name, [item])
    return frame


class TestEnhanced:
    @pytest.mark.parametrize("directions", [UPRIGHT, OBLIQUE])
    def test_frames_are_sorted_placed_and_rescaled(self, folder, directions):
        enhanced(folder / "E", 5, directions=directions)
        for place in (folder, folder / "E"):
            assert is_volume(place)
            volume = read_volume(place)
            expected = np.stack([pixels(index).astype(int) * 2 - 5 for index in range(5)])
            np.testing.assert_array_equal(volume.voxels, expected)
            assert volume.spacing == pytest.approx((2.5, 0.5, 0.75))
            assert volume.affine is not None
            assert volume.affine[:3, 3] == pytest.approx((10, -20, 5))
            assert volume.notices == ()

    def test_a_frame_has_its_own_groups_first(self, folder):
        def alter(frame: pydicom.Dataset, number: int) -> None:
            frame.update(
                of_group(
                    "PixelValueTransformationSequence", RescaleSlope=number, RescaleIntercept=0.5
                )
            )

        enhanced(folder / "E", order=[0, 1, 2], alter=alter)
        expected = np.stack([pixels(index) * index + 0.5 for index in range(3)])
        np.testing.assert_array_equal(read_volume(folder).voxels, expected)

    def test_several_volumes_are_told_apart(self, folder):
        """Two echoes of three slices, in turn."""

        def alter(frame: pydicom.Dataset, number: int) -> None:
            echo = of_group("MREchoSequence", EffectiveEchoTime=[4.5, 9.0][number % 2])
            frame.update(echo)
            frame.update(of_group("FrameContentSequence", StackID="1"))

        enhanced(folder / "E", order=[0, 3, 1, 4, 2, 5], alter=alter)
        with pytest.raises(ImageReadError) as caught:
            read_volume(folder / "E")
        assert "1: echo time 4.5 ms (3 slices, 6×5); 2: echo time 9.0 ms" in caught.value.hint
        for number, slices in ((1, [0, 1, 2]), (2, [3, 4, 5])):
            volume = read_volume(folder / "E", number)
            expected = [pixels(index).astype(int) * 2 - 5 for index in slices]
            np.testing.assert_array_equal(volume.voxels, expected)
            assert volume.notices[0].startswith(f"Volume {number} of 2: echo time")

    def test_compressed(self, folder):
        dataset = enhanced(folder / "E")
        dataset.compress(RLELossless, generate_instance_uid=False)
        dataset.save_as(folder / "E")
        np.testing.assert_array_equal(read_volume(folder).voxels[2], pixels(2).astype(int) * 2 - 5)

    @pytest.mark.parametrize(
        ("order", "third", "message"),
        [
            ([0, 1, 1, 2], {}, "E, frame 2 and E, frame 3 lie at the same place"),
            ([0, 1, 2, 4], {}, "slices are missing between E, frame 3 and E, frame 4: 1."),
            (None, of_group("PlanePositionSequence"), "E, frame 3 does not state its position"),
            (
                None,
                of_group("PlaneOrientationSequence", ImageOrientationPatient=[0, 1, 0, 0, 0, 1]),
                "E, frame 3 and E, frame 1 differ in orientation",
            ),
        ],
    )
    def test_faults_of_frames_name_them(self, folder, order, third, message):
        def alter(frame: pydicom.Dataset, number: int) -> None:
            if number == 2:
                frame.update(third)

        enhanced(folder / "E", order=order, alter=alter)
        refuse(folder, message)

    def test_fewer_groups_than_frames(self, folder):
        enhanced(folder / "E", NumberOfFrames=5)
        refuse(folder, "E describes 4 frames and holds 5.")

    def test_frames_that_say_nothing(self, folder):
        write(folder / "F", np.zeros((10, 6), np.uint16), 0, NumberOfFrames=2, Rows=5)
        refuse(folder, "F holds several frames in one file, which do not say where they lie")


class TestColour:
    COLOURS = np.random.default_rng(1).integers(0, 256, (5, 6, 3), np.uint8)

    def write(self, path, array, model, **tags):
        if array.ndim == 3:
            tags = {"SamplesPerPixel": 3, "PlanarConfiguration": 0} | tags
        write(path, array, 0, PhotometricInterpretation=model, **tags)
        assert not is_volume(path)
        return read_image(path)

    @pytest.mark.parametrize("suffix", ["", ".dcm"])
    def test_rgb(self, folder, suffix):
        image = self.write(
            folder / f"C{suffix}", self.COLOURS, "RGB", preamble=b"II*\0" + bytes(124)
        )
        np.testing.assert_array_equal(image.pixels, self.COLOURS)
        assert image.notices == ()
        assert image.metadata.others == ("DICOM tags",)

    def test_planes(self, folder):
        array = np.ascontiguousarray(self.COLOURS.transpose(2, 0, 1)).reshape(5, 6, 3)
        image = self.write(folder / "C", array, "RGB", PlanarConfiguration=1)
        np.testing.assert_array_equal(image.pixels, self.COLOURS)

    @pytest.mark.parametrize("bits", [12, 16])
    def test_deep(self, folder, bits):
        deep = np.linspace(0, 2**bits - 1, 90).astype(np.uint16).reshape(5, 6, 3)
        image = self.write(folder / "C", deep, "RGB", BitsStored=bits, HighBit=bits - 1)
        expected = np.floor(deep / (2**bits - 1) * 65535 + 0.5)
        np.testing.assert_array_equal(image.pixels, expected)
        assert len(image.notices) == (bits == 12)

    def test_bits_above_the_samples_do_not_count(self, folder):
        """Old files have overlays there."""
        deep = np.array([0, 4095, 4096 + 819, 65535, 0, 0], np.uint16).reshape(1, 2, 3)
        image = self.write(folder / "C", deep, "RGB", BitsStored=12, HighBit=11)
        assert image.pixels.ravel().tolist() == [0, 65535, 13107, 65535, 0, 0]

    def test_ybr(self, folder):
        image = self.write(folder / "C", self.COLOURS, "YBR_FULL")
        y, b, r = np.moveaxis(self.COLOURS.astype(float), 2, 0)
        b, r = b - 128, r - 128
        expected = np.stack([y + 1.402 * r, y - 0.344136 * b - 0.714136 * r, y + 1.772 * b], 2)
        assert np.abs(image.pixels - np.clip(expected, 0, 255)).max() <= 1
        assert image.notices == ("YBR_FULL converted to RGB.",)

    @pytest.mark.parametrize("depth", [8, 16])
    def test_palette(self, folder, depth):
        table = np.random.default_rng(2).integers(0, 1 << depth, (3, 256))
        tags = {}
        for colour, row in zip(("Red", "Green", "Blue"), table, strict=True):
            data = row.astype(np.uint8 if depth == 8 else np.uint16).tobytes()
            tags[f"{colour}PaletteColorLookupTableDescriptor"] = [256, 0, depth]
            tags[f"{colour}PaletteColorLookupTableData"] = data
        indices = self.COLOURS[:, :, 0].copy()
        image = self.write(folder / "C", indices, "PALETTE COLOR", **tags)
        np.testing.assert_array_equal(image.pixels, np.moveaxis(table[:, indices], 0, 2))
        assert image.notices == ("Palette colours converted to RGB.",)

    def test_the_first_of_several(self, folder):
        array = np.concatenate([self.COLOURS, 255 - self.COLOURS])
        image = self.write(folder / "C", array, "RGB", NumberOfFrames=2, Rows=5)
        np.testing.assert_array_equal(image.pixels, self.COLOURS)
        assert image.notices == ("Only the first of 2 pictures is shown.",)

    @pytest.mark.parametrize("rows", [60000, 0])
    def test_a_claimed_size_takes_no_memory(self, folder, rows):
        write(folder / "C", self.COLOURS, 0, PhotometricInterpretation="RGB", SamplesPerPixel=3)
        dataset = pydicom.dcmread(folder / "C")
        dataset.Rows = dataset.Columns = rows
        dataset.save_as(folder / "C")
        with pytest.raises(ImageReadError, match=r"too large|no pixels"):
            read_image(folder / "C")

    def test_grey_is_no_picture(self, series):
        with pytest.raises(ImageReadError, match="a grey DICOM slice, which opens as a volume"):
            read_image(series() / "IM3")

    def test_every_way_of_cutting_off(self, folder):
        self.write(folder / "C", self.COLOURS, "RGB")
        data = (folder / "C").read_bytes()
        for length in range(132, len(data) - 1, 7):
            (folder / "C").write_bytes(data[:length])
            with pytest.raises(ImageReadError):
                read_volume(folder / "C") if is_volume(folder / "C") else read_image(folder / "C")


class TestCompressed:
    def compress(self, path: Path, encode: Callable[..., Any], syntax: str, dtype: Any) -> None:
        dataset = pydicom.dcmread(path)
        encapsulate(dataset, path, syntax, encode(dataset.pixel_array.view(dtype)))

    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16])
    @pytest.mark.parametrize(
        "syntax", [JPEGLosslessSV1, JPEGLossless, JPEGLSLossless, HTJ2KLossless, JPEG2000Lossless]
    )
    def test_without_loss(self, series, syntax, dtype):
        path = series(3, dtype)
        unsigned = f"u{np.dtype(dtype).itemsize}"
        encoders: dict[str, Callable[..., Any]] = {
            JPEGLSLossless: imagecodecs.jpegls_encode,
            HTJ2KLossless: functools.partial(imagecodecs.htj2k_encode, reversible=True),
            JPEG2000Lossless: functools.partial(
                imagecodecs.jpeg2k_encode, reversible=True, level=0
            ),
        }
        encode = encoders.get(syntax, functools.partial(imagecodecs.jpeg8_encode, lossless=True))
        signed = "2000" in syntax.name  # JPEG 2000 knows signs, JPEG does not.
        for file in path.iterdir():
            self.compress(file, encode, syntax, np.dtype(dtype) if signed else unsigned)
        expected = np.stack([pixels(index, dtype) for index in range(3)])
        np.testing.assert_array_equal(read_volume(path).voxels, expected)

    def test_12_bits(self, series):
        path = series(2, np.uint16, BitsStored=12, HighBit=11)
        encode = functools.partial(imagecodecs.jpeg8_encode, level=100, bitspersample=12)
        for file in path.iterdir():
            self.compress(file, encode, JPEGExtended12Bit, "u2")
        expected = np.stack([pixels(index, int) for index in range(2)])
        assert np.abs(read_volume(path).voxels - expected).max() <= 6

    @pytest.mark.parametrize("syntax", [JPEGBaseline8Bit, JPEGExtended12Bit, JPEGLosslessSV1])
    def test_jpeg_data_that_end_early(self, series, syntax):
        bits = 8 if syntax == JPEGBaseline8Bit else 12
        dtype = "u1" if bits == 8 else "u2"
        path = series(1, np.dtype(dtype), BitsStored=bits, HighBit=bits - 1)
        noise = np.random.default_rng(1).integers(0, 2**bits, pixels(0, dtype).shape, dtype)

        def encode(share: float, _: NDArray[Any]) -> bytes:
            lossless = syntax == JPEGLosslessSV1
            data = imagecodecs.jpeg8_encode(noise, level=100, bitspersample=bits, lossless=lossless)
            return bytes(data[: round((len(data) - 2) * share)]) + b"\xff\xd9"

        self.compress(path / "IM0", functools.partial(encode, 1.0), syntax, dtype)
        original = pydicom.dcmread(path / "IM0")
        assert np.abs(read_volume(path).voxels[0] - noise.astype(float)).max() < 16
        encapsulate(original, path / "IM0", syntax, encode(0.9, noise))
        with pytest.raises(ImageReadError, match="data end before the picture does"):
            read_volume(path)

    @pytest.mark.parametrize(
        ("syntax", "message", "hint"),
        [
            (MPEG2MPML, "IM0 is compressed as MPEG2", "gdcmconv --raw"),
            ("1.2.3.4.5", "IM0 is compressed as 1.2.3.4.5, which is not", "gdcmconv --raw"),
        ],
    )
    def test_what_is_not_read_is_not_called_damaged(self, series, syntax, message, hint):
        path = series(1)
        self.compress(path / "IM0", lambda samples: b"\0" * 64, syntax, "u2")
        with pytest.raises(ImageReadError) as caught:
            read_volume(path)
        assert message in caught.value.message
        assert "damaged" not in caught.value.message
        assert hint in caught.value.hint

    def test_without_the_library(self, series, monkeypatch):
        """Pillow is always there, but takes no more than 8 bits, and no JPEG-LS."""
        path = series(1, np.uint16, BitsStored=12, HighBit=11)
        dicom._add_codecs()
        deep = functools.partial(imagecodecs.jpeg8_encode, bitspersample=12)
        for syntax, encode in (
            (JPEGExtended12Bit, deep),
            (JPEGLSLossless, lambda samples: b"\xff\xd8\xff\xd9"),
        ):
            self.compress(path / "IM0", encode, syntax, "u2")
            decoder = pydicom.pixels.get_decoder(syntax)
            others = {name: each for name, each in decoder._available.items() if name == "pillow"}
            monkeypatch.setattr(decoder, "_available", others)
            refuse(path, f"IM0 is compressed as {syntax.name}", install_command("dicom"))
            write(path / "IM0", pixels(0), 0, BitsStored=12, HighBit=11)

    @pytest.mark.parametrize("model", ["RGB", "YBR_RCT"])
    @pytest.mark.parametrize("bits", [8, 16])
    @pytest.mark.parametrize("syntax", [JPEG2000Lossless, HTJ2KLossless])
    def test_colour(self, folder, syntax, bits, model):
        colours = np.linspace(0, 2**bits - 1, 90).astype(f"u{bits // 8}").reshape(5, 6, 3)
        tags: dict[str, Any] = {"SamplesPerPixel": 3, "PlanarConfiguration": 0}
        dataset = write(folder / "C", colours, 0, PhotometricInterpretation=model, **tags)
        if syntax == HTJ2KLossless:
            data = imagecodecs.htj2k_encode(colours, reversible=True)
        else:
            data = imagecodecs.jpeg2k_encode(
                colours, reversible=True, level=0, codecformat="j2k", mct=model != "RGB"
            )
        encapsulate(dataset, folder / "C", syntax, data)
        np.testing.assert_array_equal(read_image(folder / "C").pixels, colours)


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
    def test_missing_slices(self, series):
        path = series(7)
        (path / "IM5").unlink()  # slice 4
        refuse(path, "scan: slices are missing between IM2 and IM1: 1.")

    def test_uneven_slices(self, series):
        path = series(4)
        write(path / "late", pixels(4), 4.3)
        refuse(path, "IM2 and late lie 3.25 mm apart, and most others 2.5 mm.")

    def test_the_same_slice_twice(self, series):
        path = series()
        shutil.copy(path / "IM3", path / "copy")
        refuse(path, "lie at the same place", "Leave only one echo")

    def test_nearly_the_same_slice_twice(self, series):
        path = series()
        write(path / "copy", pixels(1), 1.019)  # 0.0475 mm from the next, of 2.5
        refuse(path, "lie at the same place", "Leave only one echo")

    def test_a_slice_beside_the_others(self, series):
        path = series()
        write(path / "IM3", pixels(1), 0, ImagePositionPatient=[-8, 20, 7.5])
        refuse(path, "IM3 lies 2 mm beside the others.")

    def test_a_slice_of_no_samples(self, series):
        path = series()
        write(path / "odd", pixels(4), 4, SamplesPerPixel=0)
        refuse(path, "DICOM file odd's data are damaged")

    def test_a_place_that_makes_no_sense(self, series):
        path = series(PixelSpacing=[0, 0])
        refuse(path, "makes no sense")

    def test_cut_off(self, series):
        """A slice must not be left out because so little is left of it."""
        path = series(2)
        data = (path / "IM3").read_bytes()
        for length in range(140, len(data), 5):
            (path / "IM3").write_bytes(data[:length])
            refuse(path, "IM3")

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
        refuse(folder, "its DICOM files hold no pictures")
        refuse(folder / "report", "the file holds no picture")


@pytest.mark.slow
def test_hundreds_of_thousands_of_elements(tmp_path, monkeypatch):
    """Small ones take much longer than their bytes are worth, so the watch ends them."""
    monkeypatch.setattr(watched, "SECONDS", 0.05)
    data = seeds("DICOM")[0].data
    start = data.index(b"\xe0\x7f\x10\x00")
    elements = (
        struct.pack(
            "<HH2sH4s", 0x29 + 2 * (number // 60000), 0x1000 + number % 60000, b"LO", 4, b"a"
        )
        for number in range(300_000)
    )
    path = tmp_path / "a.dcm"
    path.write_bytes(data[:start] + b"".join(elements) + data[start:])
    with pytest.raises(ImageReadError, match=r"a\.dcm: it takes too long to find the way"):
        read_volume(path)
