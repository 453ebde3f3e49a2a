"""Volumes in memory, written as OME-Zarr and read again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.base.errors import ImageWriteError, LossyFormat
from kernelscope.files.volumes import read_volume, read_volumes, write_volume, write_volumes
from kernelscope.files.volumes.writing import record_of
from kernelscope.images.source import Channel
from kernelscope.images.volume import DTYPES, Among, Stored, Volume

zarr = pytest.importorskip("zarr")

SIDES = 3, 5, 300  # a pyramid of two levels


def voxels(dtype: Any, seed: int = 0) -> NDArray[Any]:
    values = np.random.default_rng(seed).integers(0, 200, SIDES)
    return (values - (50 if np.dtype(dtype).kind in "if" else 0)).astype(dtype)


def cells(dtype: Any, axes: str, counts: tuple[int, ...]) -> list[Volume]:
    names = Channel("DAPI", "0000FF"), Channel("GFP", "00FF00")
    return [
        replace(
            Volume.from_array(voxels(dtype, number), "cells", spacing=(6e-4, 2e-4, 2e-4)),
            among=tuple(Among(*each) for each in zip(axes, place, counts, strict=True)),
            channel=names[dict(zip(axes, place, strict=True)).get("C", 0)],
            microscope=True,
            interval=30.0,
        )
        for number, place in enumerate(np.ndindex(*counts))
    ]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_stack_is_read_again_as_it_was(tmp_path: Path, dtype: np.dtype[Any]) -> None:
    (volume,) = cells(dtype, "", ())
    path = write_volume(volume, tmp_path / "out.ome.zarr")
    read = read_volume(path)
    assert read.voxels.dtype == dtype
    np.testing.assert_array_equal(read.voxels, volume.voxels)
    assert read.spacing == pytest.approx(volume.spacing, rel=1e-12)
    assert read.stated == "zyx"
    assert read.microscope
    assert (read.channel.name, read.channel.colour) == ("DAPI", "0000FF")
    (coarse,) = (np.asarray(zarr.open_group(path, mode="r")["1"]),)
    assert coarse.shape == (3, 5, 150)
    assert read.channel.window == pytest.approx(np.percentile(coarse, (0.2, 99.8)))
    axes = zarr.open_group(path, mode="r").attrs["ome"]["multiscales"][0]["axes"]
    assert axes == [{"name": n, "type": "space", "unit": "micrometer"} for n in "zyx"]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out.ome.zarr"]
    record = record_of(path, volume)
    assert "the distance of voxels" in record.kept
    assert "the time step" in " ".join(record.losses)


@pytest.mark.parametrize(("axes", "counts"), [("C", (2,)), ("TC", (3, 2)), ("CT", (2, 3))])
def test_channels_and_times_are_in_one_folder(
    tmp_path: Path, axes: str, counts: tuple[int, ...]
) -> None:
    volumes = cells(np.uint16, axes, counts)
    path = write_volumes(volumes, tmp_path / "out.zarr")
    found = {tuple(sorted((a.letter, a.index) for a in v.among)): v for v in read_volumes(path)}
    assert len(found) == len(volumes)
    for each in volumes:
        read = found[tuple(sorted((axis.letter, axis.index) for axis in each.among))]
        np.testing.assert_array_equal(read.voxels, each.voxels)
        assert (read.channel.name, read.channel.colour) == (each.channel.name, each.channel.colour)
        assert read.interval == (30.0 if "T" in axes else None)
        assert read.channel.window is not None
    assert ("the time step" in record_of(path, *volumes).kept) == ("T" in axes)


def test_types_that_are_not_read_become_those_of_the_voxels(tmp_path: Path) -> None:
    volume = replace(
        Volume.from_array(voxels(np.float32), "labels"), stored=Stored(np.dtype(np.int32))
    )
    path = write_volume(volume, tmp_path / "out.zarr")
    assert read_volume(path).voxels.dtype == np.float32
    np.testing.assert_array_equal(read_volume(path).voxels, volume.voxels)
    assert any("int32" in each for each in record_of(path, volume).losses)
    unknown = replace(Volume.from_array(voxels(np.float32), "mri"), missing=voxels(np.uint8) > 100)
    marked = read_volume(write_volume(unknown, tmp_path / "nan.zarr"), nan=0.0)
    np.testing.assert_array_equal(marked.missing, unknown.missing)
    mixed = [
        replace(each, voxels=each.voxels.astype(dtype))
        for each, dtype in zip(cells(np.uint8, "C", (2,)), ("uint8", "float32"), strict=True)
    ]
    mixed[1] = mixed[1].with_voxels(mixed[1].voxels + np.float32(0.5), as_float=True)
    first, second = read_volumes(write_volumes(mixed, tmp_path / "mixed.zarr"))
    np.testing.assert_array_equal(first.voxels, mixed[0].voxels)
    np.testing.assert_array_equal(second.voxels, mixed[1].voxels)


def test_only_a_folder_of_its_kind_is_replaced_and_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = cells(np.uint8, "C", (2,))
    path = write_volume(replace(first, among=()), tmp_path / "out.zarr")
    monkeypatch.setattr(zarr.Group, "update_attributes", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):  # the last of all that is written
        write_volume(replace(second, among=()), path)
    assert [each.name for each in tmp_path.iterdir()] == ["out.zarr"]
    np.testing.assert_array_equal(read_volume(path).voxels, first.voxels)
    monkeypatch.undo()
    write_volume(replace(second, among=()), path)
    np.testing.assert_array_equal(read_volume(path).voxels, second.voxels)
    (path / "labels").mkdir()
    with pytest.raises(ImageWriteError, match="holds other things, such as labels"):
        write_volume(replace(first, among=()), path)
    head = replace(first, among=(), affine=np.eye(4))
    with pytest.raises(LossyFormat, match="orientation and position"):
        write_volume(head, tmp_path / "head.zarr")
