"""Pictures and volumes answer the same questions, so that nobody has to ask which they are."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.base.errors import InvalidImage, InvalidParameter
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume
from kernelscope.schema.samples import Kind

PICTURE = Image.from_array(np.arange(3 * 4 * 3, dtype=np.uint8).reshape(3, 4, 3), "p")
HEADS = Scan(
    tuple(
        Volume.from_array(np.arange(24, dtype=np.uint8).reshape(2, 3, 4) + n, f"v{n}")
        for n in range(2)
    )
)


@pytest.mark.parametrize(
    ("source", "kind", "unit", "titles", "size", "mode", "grey"),
    [
        (PICTURE, Kind.PICTURE, "pixels", ("p",), "4×3", "RGB, 8 bit", False),
        (HEADS, Kind.VOLUME, "voxels", ("v0", "v1"), "4×3×2", "2 volumes", True),
    ],
)
def test_what_is_asked_of_any_source(
    source: Source,
    kind: Kind,
    unit: str,
    titles: tuple[str, ...],
    size: str,
    mode: str,
    grey: bool,
) -> None:
    assert (source.kind, source.unit, source.titles) == (kind, unit, titles)
    assert (source.size, source.mode, source.is_grey) == (size, mode, grey)
    assert source.title == " + ".join(titles)
    assert len(source.samples) == len(titles)


@pytest.mark.parametrize("source", [PICTURE, HEADS], ids=["picture", "volumes"])
def test_shape_and_type_are_those_of_the_planes(source: Source) -> None:
    assert source.shape == source.planes.shape
    assert source.dtype == source.planes.dtype


def test_volumes_that_do_not_align_have_no_shape() -> None:
    other = Volume.from_array(np.zeros((2, 3, 5), np.uint8), "other")
    with pytest.raises(InvalidImage, match="differ in size"):
        _ = Scan((HEADS.volumes[0], other)).shape
    with pytest.raises(InvalidParameter, match="no volume"):
        _ = Scan(()).shape


def test_a_picture_stands_in_for_one_of_another_shape() -> None:
    assert PICTURE.stand_in((7, 5, 1)).planes.shape == (7, 5, 1)
    assert PICTURE.stand_in((7, 5, 1)).pixels.dtype == np.uint8
    assert HEADS.stand_in((9, 9, 9, 2)) is HEADS


def test_the_corner_of_a_source_is_a_copy() -> None:
    np.testing.assert_array_equal(PICTURE.cropped((2, 3)).pixels, PICTURE.pixels[:2, :3])
    corner = HEADS.cropped((1, 2, 3))
    for volume, part in zip(HEADS.volumes, corner.volumes, strict=True):
        np.testing.assert_array_equal(part.voxels, volume.voxels[:1, :2, :3])
        assert not np.shares_memory(part.voxels, volume.voxels)
    assert corner.titles == HEADS.titles
    assert not np.shares_memory(PICTURE.cropped((2, 3)).pixels, PICTURE.pixels)
