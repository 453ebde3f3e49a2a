"""Folders of pictures as volumes."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
import tifffile

from kernelscope.base.errors import AppError, ImageReadError, InvalidImage
from kernelscope.files.volumes import is_volume, read_volume
from kernelscope.files.volumes.raw_volume import UNKNOWN_SPACING
from kernelscope.images.volume import MAX_VOXELS


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "slices").mkdir()
    return tmp_path / "slices"


def test_in_the_order_of_the_numbers(folder):
    for index in (1, 2, 9, 10, 11, 100):
        PIL.Image.fromarray(np.full((3, 4), index, np.uint8)).save(folder / f"Slice{index}.bmp")
    volume = read_volume(folder)
    assert is_volume(folder)
    assert volume.voxels[:, 0, 0].tolist() == [1, 2, 9, 10, 11, 100]
    assert volume.voxels.shape == (6, 3, 4)
    assert volume.notices == (UNKNOWN_SPACING,)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_types_are_kept(folder, noise, dtype):
    slices = noise((3, 5, 6), dtype)
    for index, plane in enumerate(slices):
        tifffile.imwrite(folder / f"{index}.tif", plane)
    volume = read_volume(folder)
    np.testing.assert_array_equal(volume.voxels, slices)
    assert volume.voxels.dtype == dtype


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "LA"])
def test_grey_in_colour_models(folder, noise, mode):
    slices = noise((2, 5, 6))
    for index, plane in enumerate(slices):
        PIL.Image.fromarray(plane).convert(mode).save(folder / f"{index}.png")
    np.testing.assert_array_equal(read_volume(folder).voxels, slices)


def test_names_of_any_kind_can_be_sorted(folder):
    for name in ("1.png", "a.png", "2b.png", "b2.png", "01.png", "³.png"):
        PIL.Image.fromarray(np.zeros((2, 2), np.uint8)).save(folder / name)
    assert read_volume(folder).depth == 6


def test_other_files_are_left_out(folder, noise):
    PIL.Image.fromarray(noise((2, 2))).save(folder / "1.png")
    (folder / "notes.txt").write_text("notes")
    assert read_volume(folder).notices[-1] == "Other files in the folder are left out: 1."


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        (np.zeros((3, 5), np.uint8), r"2\.png and 1\.png differ in size: 5×3 and 4×3"),
        (np.zeros((3, 4), np.uint16), r"2\.png and 1\.png differ in type: uint16 and uint8"),
        (np.eye(3, 4, dtype=np.uint8)[:, :, None] * [1, 2, 3], r"2\.png is in colour"),
        (np.full((3, 4, 4), 9, np.uint8), r"2\.png is transparent"),
    ],
)
def test_an_odd_slice(folder, odd, message):
    PIL.Image.fromarray(np.zeros((3, 4), np.uint8)).save(folder / "1.png")
    PIL.Image.fromarray(odd.astype(odd.dtype if odd.ndim == 2 else np.uint8)).save(folder / "2.png")
    with pytest.raises(ImageReadError, match=message) as caught:
        read_volume(folder)
    assert caught.value.message.startswith("slices: ")


def test_a_damaged_slice_is_named(folder):
    PIL.Image.fromarray(np.zeros((3, 4), np.uint8)).save(folder / "1.png")
    (folder / "2.png").write_bytes((folder / "1.png").read_bytes()[:40])
    with pytest.raises(ImageReadError, match=r"2\.png: "):
        read_volume(folder)


def test_nothing_in_it(folder):
    (folder / "inner").mkdir()
    (folder / "a.nii").write_bytes(b"")
    with pytest.raises(ImageReadError, match="neither DICOM files nor pictures"):
        read_volume(folder)


def test_too_many_voxels(folder):
    """The size is known after the first picture, before memory is taken for all."""
    PIL.Image.fromarray(np.zeros((4096, 4096), np.uint8)).save(folder / "0.png")
    for index in range(1, MAX_VOXELS // 2**24):
        (folder / f"{index}.png").touch()
    with pytest.raises(InvalidImage, match="4096×4096×128 voxels are too many"):
        read_volume(folder)


def test_only_one_volume(folder, noise):
    PIL.Image.fromarray(noise((2, 2))).save(folder / "1.png")
    assert read_volume(folder, 1).depth == 1
    with pytest.raises(AppError, match="no volume 2"):
        read_volume(folder, 2)
