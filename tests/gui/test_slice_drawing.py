"""Projections of slabs, and colours of differences over anatomy, without a window."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.gui.model.slice_drawing import Look, Projection, project, project_change, slab
from kernelscope.images.volume import Volume

WIDTH = 200


def layer(look: Look, *values: float, gain: int = 1) -> list[list[int]]:
    return look.layer(np.array([values], np.float32), WIDTH, gain)[0].tolist()


def test_differences_over_anatomy_are_blue_and_orange() -> None:
    none, darker, brighter = layer(Look(opacity=1), 0, -60, 60)
    assert none[3] == 0
    assert darker[2] > darker[0]
    assert brighter[0] > brighter[2]
    assert darker[3] == brighter[3] == round(255 * 0.6)


def test_opacity_and_gain_scale_the_layer() -> None:
    (half,) = layer(Look(opacity=0.5), 100)
    assert half[3] == round(255 * 0.5)
    (doubled,) = layer(Look(opacity=1), 25, gain=2)
    assert doubled[3] == round(255 * 0.5)
    (saturated,) = layer(Look(opacity=1), 500)
    assert saturated[3] == 255


def test_differences_below_the_threshold_are_left_out() -> None:
    below, above, negative = layer(Look(threshold=30), 29, 30, -30)
    assert below[3] == 0
    assert above[3] > 0
    assert negative[3] > 0


def volume(seed: int, dtype: type = np.int16) -> Volume:
    voxels = np.random.default_rng(seed).integers(-900, 900, (7, 8, 9)).astype(dtype)
    return Volume.from_array(voxels)


@pytest.mark.parametrize(
    ("index", "slices", "expected"),
    [
        (5, 1, range(5, 6)),
        (5, 2, range(5, 7)),
        (5, 3, range(4, 7)),
        (0, 5, range(3)),
        (9, 5, range(7, 10)),
        (4, 0, range(10)),
    ],
)
def test_a_slab_lies_around_its_slice(index: int, slices: int, expected: range) -> None:
    assert slab(index, slices, 10) == expected


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_projections_agree_with_numpy(axis: int) -> None:
    shown = volume(1)
    part = np.take(shown.voxels, [2, 3, 4], axis)
    for projection, expected in (
        (Projection.MAXIMUM, part.max(axis)),
        (Projection.MINIMUM, part.min(axis)),
        (Projection.MEAN, part.mean(axis)),
    ):
        answer = project(shown, axis, range(2, 5), projection)
        assert answer.shape[axis] == 1
        np.testing.assert_allclose(answer.squeeze(axis), expected, rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_largest_difference_keeps_its_sign(axis: int) -> None:
    first, second = volume(1), volume(2)
    change = (first.voxels.astype(float) - second.voxels).take([2, 3, 4], axis)
    largest = np.take_along_axis(change, np.expand_dims(np.abs(change).argmax(axis), axis), axis)
    answer = project_change(first, second, axis, range(2, 5), Projection.MAXIMUM)
    np.testing.assert_array_equal(answer, largest)
    mean = project_change(first, second, axis, range(2, 5), Projection.MEAN)
    np.testing.assert_allclose(mean.squeeze(axis), change.mean(axis), rtol=1e-6)
