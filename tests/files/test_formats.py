"""The tables of formats of pictures and of volumes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelscope.files import picture_formats
from kernelscope.files.picture_formats import PictureFormat, Writer, writer_of
from kernelscope.files.volumes import is_volume, read_volume, volume_formats, write_volume
from kernelscope.files.volumes.volume_formats import FOLDER, VolumeFormat, VolumeWriter
from kernelscope.images.image import NOTHING
from kernelscope.images.volume import Volume

WRITTEN_PICTURES = [
    pytest.param(each, writer, id=writer.format.name)
    for each in picture_formats.FORMATS
    for writer in each.writers
]


def test_no_two_formats_share_a_suffix():
    read = [suffix for each in picture_formats.FORMATS for suffix in each.format.suffixes]
    written = [suffix for writer in picture_formats.WRITERS for suffix in writer.format.suffixes]
    assert len(set(read)) == len(read)
    assert len(set(written)) == len(written)


@pytest.mark.parametrize(("row", "writer"), WRITTEN_PICTURES)
def test_a_written_file_has_the_signature_and_a_suffix_of_its_own_format_only(
    row: PictureFormat, writer: Writer
):
    shape = (4, 5, 3) if writer.colour else (4, 5)
    data = writer.encode(np.zeros(shape, writer.dtypes[-1]), NOTHING)
    assert [each for each in picture_formats.FORMATS if each.fits(data)] == [row]
    assert all(suffix.endswith(row.format.suffixes) for suffix in writer.format.suffixes)


@pytest.mark.parametrize(("row", "writer"), WRITTEN_PICTURES)
def test_writers_are_found_by_each_suffix(row: PictureFormat, writer: Writer):
    assert all(writer_of(suffix) is writer for suffix in writer.format.suffixes)


@pytest.mark.parametrize("suffix", ["", ".dcm", ".gif", ".jfif", "png", ".ome"])
def test_other_suffixes_have_no_writer(suffix: str):
    assert writer_of(suffix) is None


WRITTEN_VOLUMES = [
    pytest.param(row, writer, id=writer.format.name)
    for row in (*volume_formats.FORMATS, FOLDER)
    for writer in row.writers
]


def test_no_two_writers_share_a_suffix():
    suffixes = [suffix for writer in volume_formats.WRITERS for suffix in writer.format.suffixes]
    assert len(set(suffixes)) == len(suffixes)


@pytest.mark.parametrize(("row", "writer"), WRITTEN_VOLUMES)
def test_a_written_volume_is_one_to_its_format(
    row: VolumeFormat, writer: VolumeWriter, tmp_path: Path
):
    voxels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    path = write_volume(Volume.from_array(voxels, "a"), tmp_path / f"a{writer.format.suffixes[0]}")
    assert row.holds_volume(path)
    assert is_volume(path)
    np.testing.assert_array_equal(row.decode(path, None).numbers, voxels)
    np.testing.assert_array_equal(read_volume(path).unscaled, voxels)


@pytest.mark.parametrize(("row", "writer"), WRITTEN_VOLUMES)
def test_the_suffixes_that_are_written_are_those_that_are_read(
    row: VolumeFormat, writer: VolumeWriter
):
    if row is not FOLDER:
        assert all(suffix.endswith(row.format.suffixes) for suffix in writer.format.suffixes)
