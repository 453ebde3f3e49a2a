"""The table of volume formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelscope.files.volumes import is_volume, read_volume, write_volume
from kernelscope.files.volumes.volume_formats import FOLDER, FORMATS, WRITERS, VolumeFormat
from kernelscope.files.volumes.volume_formats import VolumeWriter as Writer
from kernelscope.images.volume import Volume

WRITTEN = [
    pytest.param(row, writer, id=writer.format.name)
    for row in (*FORMATS, FOLDER)
    for writer in row.writers
]


def test_no_two_writers_share_a_suffix():
    suffixes = [suffix for writer in WRITERS for suffix in writer.format.suffixes]
    assert len(set(suffixes)) == len(suffixes)


@pytest.mark.parametrize(("row", "writer"), WRITTEN)
def test_a_written_volume_is_one_to_its_format(row: VolumeFormat, writer: Writer, tmp_path: Path):
    voxels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    path = write_volume(Volume.from_array(voxels, "a"), tmp_path / f"a{writer.format.suffixes[0]}")
    assert row.holds_volume(path)
    assert is_volume(path)
    np.testing.assert_array_equal(row.decode(path, None).numbers, voxels)
    np.testing.assert_array_equal(read_volume(path).unscaled, voxels)


@pytest.mark.parametrize(("row", "writer"), WRITTEN)
def test_the_suffixes_that_are_written_are_those_that_are_read(row: VolumeFormat, writer: Writer):
    if row is not FOLDER:
        assert all(suffix.endswith(row.format.suffixes) for suffix in writer.format.suffixes)
