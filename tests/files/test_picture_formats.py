"""The table of picture formats."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.files.picture_formats import FORMATS, WRITERS, PictureFormat, Writer, writer_of
from kernelscope.images.image import NOTHING

WRITTEN = [
    pytest.param(each, writer, id=writer.format.name) for each in FORMATS for writer in each.writers
]


def test_no_two_formats_share_a_suffix():
    read = [suffix for each in FORMATS for suffix in each.format.suffixes]
    written = [suffix for writer in WRITERS for suffix in writer.format.suffixes]
    assert len(set(read)) == len(read)
    assert len(set(written)) == len(written)


@pytest.mark.parametrize(("row", "writer"), WRITTEN)
def test_a_written_file_has_the_signature_and_a_suffix_of_its_own_format_only(
    row: PictureFormat, writer: Writer
):
    shape = (4, 5, 3) if writer.colour else (4, 5)
    data = writer.encode(np.zeros(shape, writer.dtypes[-1]), NOTHING)
    assert [each for each in FORMATS if each.fits(data)] == [row]
    assert all(suffix.endswith(row.format.suffixes) for suffix in writer.format.suffixes)


@pytest.mark.parametrize(("row", "writer"), WRITTEN)
def test_writers_are_found_by_each_suffix(row: PictureFormat, writer: Writer):
    assert all(writer_of(suffix) is writer for suffix in writer.format.suffixes)


@pytest.mark.parametrize("suffix", ["", ".dcm", ".gif", ".jfif", "png", ".ome"])
def test_other_suffixes_have_no_writer(suffix: str):
    assert writer_of(suffix) is None
