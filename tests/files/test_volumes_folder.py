"""Folders of pictures as volumes, read and written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import tifffile

from kernelscope.base.errors import (
    AppError,
    ImageReadError,
    ImageWriteError,
    InvalidImage,
    LossyFormat,
)
from kernelscope.files import read_image
from kernelscope.files.volumes import (
    check_write_volume,
    is_volume,
    read_volume,
    write_volume,
)
from kernelscope.files.volumes.folder import SLICE_WRITERS
from kernelscope.files.volumes.raw_volume import UNKNOWN_SPACING
from kernelscope.files.volumes.writing import record_of
from kernelscope.images.image import Metadata
from kernelscope.images.volume import MAX_VOXELS, Volume


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


def volume(dtype: str, depth: int = 12, most: float = 200) -> Volume:
    values = np.random.default_rng(0).uniform(0, most, (depth, 7, 9)).astype(dtype)
    return Volume.from_array(values, "scan")


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.parametrize(
    ("suffix", "dtype"),
    [
        (".pngs", "u1"),
        (".pngs", "u2"),
        (".tifs", "u1"),
        (".tifs", "u2"),
        (".tifs", "f4"),
        (".bmps", "u1"),
    ],
)
def test_what_is_written_is_read(tmp_path: Path, suffix: str, dtype: str) -> None:
    made = volume(dtype)
    path = write_volume(made, tmp_path / f"out{suffix}")
    assert names(path)[0] == f"slice-001{suffix[:-1]}"
    assert names(path)[-1] == f"slice-012{suffix[:-1]}"
    assert names(tmp_path) == [path.name], "nothing else is left"
    found = read_volume(path)
    assert found.voxels.dtype == made.voxels.dtype
    np.testing.assert_array_equal(found.voxels, made.voxels)
    picture = read_image(path / names(path)[4])
    np.testing.assert_array_equal(picture.planes[:, :, 0], made.voxels[4])


def test_wide_floats_are_written_as_floats_of_32_bits(tmp_path: Path) -> None:
    values = volume("f8").unscaled
    np.save(tmp_path / "a.npy", np.where(values > 190, np.nan, values))
    made = read_volume(tmp_path / "a.npy", nan=0)
    with pytest.raises(LossyFormat, match="voxels of type float64"):
        write_volume(made, tmp_path / "out.tifs")
    path = write_volume(made, tmp_path / "out.tifs", lossy=True)
    found = read_volume(path, nan=0)
    np.testing.assert_array_equal(found.voxels, made.voxels)
    assert (made.missing is not None, found.missing is not None) == (True, True)
    assert record_of(path, made).lost == ("voxels of type float64",)
    assert record_of("out.pngs", made).lost == ("fractions", "NaN")


def test_content_of_slices_that_no_volume_has_is_named(folder: Path) -> None:
    options: dict[str, Any] = {"metadata": None, "software": False}
    plane = np.arange(6, dtype=np.uint8).reshape(2, 3)
    tifffile.imwrite(folder / "1.tif", plane, resolution=(300, 300), resolutionunit=2, **options)
    tifffile.imwrite(folder / "2.tif", plane, iccprofile=b"icc", **options)
    tifffile.imwrite(folder / "3.tif", plane, description="second", **options)
    expected = ("resolution", "colour profile", "a description")
    assert read_volume(folder).others == expected
    labels = plane.astype("i4")  # which pictures lack
    tifffile.imwrite(folder / "1.tif", labels, resolution=(300, 300), resolutionunit=2, **options)
    tifffile.imwrite(folder / "2.tif", labels, iccprofile=b"icc", **options)
    tifffile.imwrite(folder / "3.tif", labels, description="second", **options)
    assert read_volume(folder).others == expected


def test_ranges_of_single_slices_are_no_notices_of_a_volume(tmp_path: Path) -> None:
    path = write_volume(volume("f4"), tmp_path / "out.tifs")
    assert read_volume(path).notices == (UNKNOWN_SPACING,)


@pytest.mark.slow
def test_a_thousand_slices_stay_in_order(tmp_path: Path) -> None:
    values = np.arange(1001, dtype=np.uint16).reshape(-1, 1, 1)
    path = write_volume(Volume.from_array(values), tmp_path / "out.pngs")
    assert names(path)[0] == "slice-0001.png"
    np.testing.assert_array_equal(read_volume(path).voxels, values)


@pytest.mark.parametrize("suffix", [".pngs", ".bmps"])
def test_fractions_are_refused_or_rounded(tmp_path: Path, suffix: str) -> None:
    made = volume("f4")
    with pytest.raises(LossyFormat, match="cannot keep fractions"):
        check_write_volume(made, tmp_path / f"out{suffix}")
    with pytest.raises(LossyFormat, match="cannot keep fractions"):
        write_volume(made, tmp_path / f"out{suffix}")
    path = write_volume(made, tmp_path / f"out{suffix}", lossy=True)
    found = read_volume(path).voxels
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, np.rint(made.voxels))


@pytest.mark.parametrize(
    ("suffix", "low", "high"), [(".pngs", 0, 65536), (".pngs", -1, 9), (".bmps", 0, 256)]
)
def test_what_does_not_fit_is_refused(tmp_path: Path, suffix: str, low: int, high: int) -> None:
    values = np.array([low, high], np.float32).reshape(1, 1, 2)
    with pytest.raises(ImageWriteError, match=f"voxels of {low} to {high} do not fit"):
        write_volume(Volume.from_array(values), tmp_path / f"out{suffix}", lossy=True)
    assert names(tmp_path) == []
    fits = np.array([max(low, 0), min(high, 255 if suffix == ".bmps" else 65535)], np.float32)
    write_volume(Volume.from_array(fits.reshape(1, 1, 2)), tmp_path / f"out{suffix}", lossy=True)


def test_an_older_result_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = write_volume(volume("u1", 5), tmp_path / "out.pngs")
    write_volume(volume("u1", 3), path)
    assert names(path) == ["slice-001.png", "slice-002.png", "slice-003.png"]
    assert names(tmp_path) == ["out.pngs"]


@pytest.mark.parametrize("other", ["notes.txt", "slice-1.png", "slice-001.dcm", "slice-001.png~"])
def test_a_folder_of_other_things_stays(tmp_path: Path, other: str) -> None:
    path = write_volume(volume("u1", 2), tmp_path / "out.pngs")
    (path / other).write_text("mine")
    before = names(path)
    for refuse in (check_write_volume, write_volume):
        with pytest.raises(ImageWriteError, match=f"holds other things, such as {other}"):
            refuse(volume("u1", 1), path)
    assert names(path) == before


def test_a_file_or_a_missing_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out.pngs").write_text("a file")
    with pytest.raises(ImageWriteError, match="this is no folder"):
        write_volume(volume("u1"), tmp_path / "out.pngs")
    with pytest.raises(ImageWriteError, match="does not exist"):
        check_write_volume(volume("u1"), tmp_path / "missing" / "out.pngs")


@pytest.mark.parametrize("there", [False, True])
def test_no_folder_is_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    path = tmp_path / "out.pngs"
    if there:
        write_volume(volume("u1", 2), path)
    before = names(tmp_path), names(path) if there else []
    writer = SLICE_WRITERS[".png"]
    written = []

    def fail(plane: np.ndarray, metadata: Metadata) -> bytes:
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        written.append(plane)
        return writer.encode(plane, metadata)

    monkeypatch.setitem(SLICE_WRITERS, ".png", replace(writer, encode=fail))
    with pytest.raises(ImageWriteError, match="disk is full"):
        write_volume(volume("u1", 9), path)
    assert (names(tmp_path), names(path) if there else []) == before


def test_the_old_folder_comes_back_if_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_volume(volume("u1", 2), tmp_path / "out.pngs")
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if self.name.endswith(".part"):
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(ImageWriteError, match="cannot be written"):
        write_volume(volume("u1", 3), path)
    assert names(tmp_path) == ["out.pngs"]
    assert len(names(path)) == 2
