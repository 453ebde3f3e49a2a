"""Texts of files reach no terminal and no window with control characters in them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pydicom
import pytest
import tifffile
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import MRImageStorage, generate_uid

from kernelscope.base.errors import AppError, ImageReadError, SeveralVolumes
from kernelscope.cli.main import main
from kernelscope.files import read_image
from kernelscope.files.lazy import Head
from kernelscope.files.volumes import read_volume
from kernelscope.images.image import Image
from kernelscope.images.volume import Volume

EVIL = "\x1b[2J\x9b31m\u202eexe\x07\r"
"""Clears the screen, colours, turns the direction of writing, rings, goes to the line's start."""


def clean(text: str) -> bool:
    return all(each.isprintable() or each == "\n" for each in text)


def test_errors_and_what_is_read() -> None:
    error = AppError(f"a{EVIL}: cause.", f"hint {EVIL}")
    for each in (error, error.prefixed(EVIL), SeveralVolumes(EVIL, EVIL, (EVIL,))):
        assert clean(str(each))
        assert clean(each.message + each.hint)
        assert all(clean(str(part)) for part in each.args)
    assert "\\x1b[2J" in error.message, "and not left out"
    assert clean(SeveralVolumes("", "", (EVIL,)).names[0])
    for image in (
        Image.from_array(np.zeros((2, 2), np.uint8), EVIL, notices=(EVIL,)),
        Volume.from_array(np.zeros((2, 2, 2), np.uint8), EVIL, notices=(EVIL,)),
    ):
        assert clean(image.title + image.notices[0])
    assert clean(Head(notices=(EVIL,)).notices[0])


def series(folder: Path, description: str) -> None:
    """Write a DICOM series of two slices with a description."""
    uid = generate_uid()
    for number in range(2):
        meta = FileMetaDataset()
        meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        meta.MediaStorageSOPClassUID = MRImageStorage
        meta.MediaStorageSOPInstanceUID = generate_uid()
        data = FileDataset(None, {}, file_meta=meta, preamble=b"\0" * 128)
        data.SOPClassUID, data.SOPInstanceUID = MRImageStorage, meta.MediaStorageSOPInstanceUID
        data.SeriesInstanceUID, data.SeriesDescription = uid, description
        data.Rows = data.Columns = 8
        data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
        data.BitsAllocated = data.BitsStored = 16
        data.HighBit, data.PixelRepresentation = 15, 0
        data.ImagePositionPatient, data.ImageOrientationPatient = [0, 0, number], [1, 0, 0, 0, 1, 0]
        data.PixelSpacing = [1, 1]
        data.PixelData = bytes(128)
        data.save_as(folder / f"{uid}-{number}.dcm", enforce_file_format=True)


@pytest.mark.filterwarnings("ignore")  # pydicom's, of such a description
def test_descriptions_of_series(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / f"scan{EVIL}"
    folder.mkdir()
    for name in ("T1", "T2"):
        series(folder, f"{name}\x1b[2J")
    with pytest.raises(SeveralVolumes) as caught:
        read_volume(folder)
    assert clean(str(caught.value))
    assert all(map(clean, caught.value.names))
    assert main(["apply", "median", str(folder), str(tmp_path / "out.nii"), "--volume", "1"]) == 0
    assert main(["apply", "median", str(folder), str(tmp_path / "out.nii")]) == 1
    printed = capsys.readouterr()
    assert clean(printed.err)
    assert clean(printed.out)


def test_names_of_files_in_a_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe, folder = tmp_path / "a.recipe.json", tmp_path / "in"
    folder.mkdir()
    picture = tmp_path / "a.tif"
    tifffile.imwrite(picture, np.zeros((9, 9), np.uint8))
    steps = ["apply", "median", str(picture), str(tmp_path / "b.tif"), "--save-recipe", str(recipe)]
    assert main(steps) == 0
    (folder / f"bad{EVIL}.png").write_bytes(b"no picture")
    assert main(["batch", str(recipe), str(folder), "--out", str(tmp_path / "out")]) == 1
    printed = capsys.readouterr()
    assert "failed: " in printed.err
    assert clean(printed.err.replace("\n", "")), printed.err
    assert clean(printed.out)


def test_a_recipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / f"{EVIL}.recipe.json"
    recipe.write_text(json.dumps({"steps": [{"filter": EVIL, EVIL: 1}], EVIL: EVIL}))
    assert main(["apply", "--recipe", str(recipe), "a.png", str(tmp_path / "b.png")]) in (1, 2)
    assert clean(capsys.readouterr().err)


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.tif", "a.bmp", "a.ppm", "a.webp"])
def test_a_picture_that_is_none(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{EVIL}{name}"
    path.write_bytes(EVIL.encode())
    with pytest.raises(ImageReadError) as caught:
        read_image(path)
    assert clean(str(caught.value))
