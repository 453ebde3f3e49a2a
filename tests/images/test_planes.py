"""The three planes through a volume, and how voxels become grey."""

from __future__ import annotations

import itertools

import numpy as np

from kernelscope.images.judging.pictures import GAINS
from kernelscope.images.planes import auto_gain, millimetres, planes_of
from kernelscope.images.volume import Volume
from tests.pairs import together

SHAPE = (4, 5, 6)

ORIENTATIONS = [
    "".join(letters)
    for order in itertools.permutations(("RL", "AP", "SI"))
    for letters in itertools.product(*order)
]
"""All 48 ways in which the axes of a volume may point."""


def oriented(letters: str) -> Volume:
    """Return a volume whose x, y and z point to `letters`, values counting up."""
    affine = np.zeros((4, 4))
    affine[3, 3] = 1
    for axis, letter in enumerate(letters):
        row = next(row for row, pair in enumerate(("RL", "AP", "SI")) if letter in pair)
        affine[row, axis] = 1 if letter in "RAS" else -1
    voxels = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)
    volume = Volume.from_array(voxels, affine=affine)
    assert volume.orientation == letters
    return volume


def place(volume: Volume, position: tuple[int, int, int]) -> np.ndarray:
    """Return where a voxel lies: to the right, anterior and superior."""
    return np.array(millimetres(volume, position))


@together("letters", ORIENTATIONS)
def test_planes_show_the_head_upright_as_radiologists_see_it(letters: str) -> None:
    volume = oriented(letters)
    axial, coronal, sagittal = planes_of(volume)
    assert [plane.name for plane in (axial, coronal, sagittal)] == ["Axial", "Coronal", "Sagittal"]
    middle = (2, 2, 2)
    right, anterior, superior = np.eye(3)
    for plane, leftwards, upwards, names in (
        (axial, right, anterior, "APRL"),
        (coronal, right, superior, "SIRL"),
        (sagittal, anterior, superior, "SIAP"),
    ):
        assert plane.letters == names
        column, row = plane.place(middle, SHAPE)
        left = plane.moved(middle, column - 1, row, SHAPE)
        above = plane.moved(middle, column, row - 1, SHAPE)
        np.testing.assert_array_equal(place(volume, left) - place(volume, middle), leftwards)
        np.testing.assert_array_equal(place(volume, above) - place(volume, middle), upwards)


@together("letters", ["", "RAS", "LPS", "PIR", "ASL"])
def test_a_voxel_is_drawn_where_it_is_pointed_at(letters: str) -> None:
    volume = (
        oriented(letters)
        if letters
        else Volume.from_array(np.arange(120, dtype=np.uint8).reshape(SHAPE))
    )
    for plane in planes_of(volume):
        for position in ((0, 0, 0), (3, 1, 5), (2, 4, 0)):
            cut = plane.cut(volume.voxels, position[plane.axis])
            column, row = plane.place(position, SHAPE)
            assert cut[row, column] == volume.voxels[position]
            z, y, x = (index if axis == plane.axis else 0 for axis, index in enumerate(position))
            assert plane.moved((z, y, x), column, row, SHAPE) == position
        # Beyond the edge the nearest voxel counts.
        z, y, x = plane.moved((1, 1, 1), -5, 99, SHAPE)
        assert all(0 <= index < side for index, side in zip((z, y, x), SHAPE, strict=True))


def test_without_an_affine_z_points_up() -> None:
    volume = Volume.from_array(np.zeros(SHAPE, np.uint8))
    planes = planes_of(volume)
    assert [plane.name for plane in planes] == ["Across z", "Across y", "Across x"]
    assert {plane.letters for plane in planes} == {""}
    assert planes[1].place((0, 0, 0), SHAPE) == (0, SHAPE[0] - 1)
    assert planes[0].place((0, 0, 0), SHAPE) == (0, 0)


def test_gain_is_the_largest_that_keeps_most_differences() -> None:
    rng = np.random.default_rng(0)
    before = Volume.from_array(rng.uniform(0, 100, (20, 20, 20)).astype(np.float32))
    after = before.with_voxels(before.voxels + rng.choice([-1.5, 1.5], before.voxels.shape))
    assert auto_gain(after, before, 100, GAINS) == 20  # 50 / 1.5 = 33
    assert auto_gain(before, before, 100, GAINS) == 1
