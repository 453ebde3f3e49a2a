"""Folders of pictures that volumes are written to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelscope.base.errors import ImageWriteError, LossyFormat
from kernelscope.files import read_image
from kernelscope.files.volumes import check_write_volume, folder, read_volume, write_volume
from kernelscope.images.image import Metadata
from kernelscope.images.volume import Volume


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


def test_spacing_and_place_are_lost_on_demand_only(tmp_path: Path) -> None:
    values = np.zeros((2, 3, 4), np.uint8)
    made = Volume.from_array(values, spacing=(4.0, 1.0, 1.0), affine=np.eye(4))
    with pytest.raises(LossyFormat, match="the distance of voxels, orientation and position"):
        write_volume(made, tmp_path / "out.pngs")
    write_volume(made, tmp_path / "out.pngs", lossy=True)


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
    writer = folder.SLICE_WRITERS[".png"]
    written = []

    def fail(plane: np.ndarray, metadata: Metadata) -> bytes:
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        written.append(plane)
        return writer.encode(plane, metadata)

    monkeypatch.setitem(folder.SLICE_WRITERS, ".png", replace(writer, encode=fail))
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
