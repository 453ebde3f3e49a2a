"""Volumes from any side: which voxels are seen, and where."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.gui.model.display import Display
from kernelscope.gui.model.shear_warp import Rendering, SpaceStyle, ViewedVolume, Viewpoint, render
from kernelscope.images.phantom import affine
from kernelscope.images.volume import Volume

SHAPE = (20, 24, 28)
SPACING = (2.0, 1.0, 1.5)
WINDOW = Display(0, 255)


def scene(*points: tuple[int, int, int], value: int = 200, patient: bool = False) -> ViewedVolume:
    voxels = np.zeros(SHAPE, np.uint8)
    for point in points:
        voxels[point] = value
    # Without an affine x runs right, y away from the camera and z up in the front view.
    place = affine(SPACING) if patient else None
    return ViewedVolume.of(Volume.from_array(voxels, spacing=SPACING, affine=place), WINDOW)


def screen(rendering: Rendering) -> tuple[float, float]:
    """Return where the only bright pixel is: millimetres right and down of the middle."""
    ((row, column),) = np.argwhere(rendering.steps > 0)
    x, y = rendering.matrix @ (column, row, 1)
    return float(x), float(y)


@pytest.mark.parametrize("yaw", [0, 30, 85, 140, 200, 290])
@pytest.mark.parametrize("pitch", [-80, -20, 0, 50])
def test_a_voxel_is_drawn_where_it_is(yaw: float, pitch: float) -> None:
    point = (14, 5, 20)
    z, y, x = ((p - (n - 1) / 2) * s for p, n, s in zip(point, SHAPE, SPACING, strict=True))
    a, b = np.radians(yaw), np.radians(pitch)
    # The camera went around by yaw to the right and up by pitch; it looks from -y.
    toward = np.array([np.sin(a) * np.cos(b), -np.cos(a) * np.cos(b), np.sin(b)])
    right = np.array([np.cos(a), np.sin(a), 0])
    up = np.cross(toward, right)
    expected = right @ (x, y, z), -(up @ (x, y, z))
    got = screen(render(scene(point), Viewpoint(yaw, pitch), SpaceStyle()))
    assert got == pytest.approx(expected, abs=1.5)  # half a voxel on each axis


def test_the_front_view_of_a_patient_has_the_right_on_the_left() -> None:
    # In the phantom x runs to the patient's right and y to the back: the camera is at small y.
    x, y = screen(render(scene((15, 12, 25), patient=True), Viewpoint(0, 0), SpaceStyle()))
    assert x < 0
    assert y < 0  # the head stands upright
    front, back = scene((10, 2, 14), patient=True), scene((10, 21, 14), patient=True)
    both = scene((10, 2, 14), (10, 21, 14), patient=True)
    style = SpaceStyle(surface=True, threshold=100)
    for each in (front, back, both):
        assert (render(each, Viewpoint(0, 0), style).steps > 0).sum() == 1


def test_the_maximum_is_the_largest_value_on_the_line_of_sight() -> None:
    voxels = np.random.default_rng(0).integers(0, 255, SHAPE).astype(np.uint8)
    made = ViewedVolume.of(Volume.from_array(voxels, spacing=SPACING), WINDOW)
    front = render(made, Viewpoint(0, 0), SpaceStyle()).steps
    assert np.array_equal(np.sort(front.ravel()), np.sort(voxels.max(axis=1).ravel()))
    side = render(made, Viewpoint(90, 0), SpaceStyle()).steps
    assert np.array_equal(np.sort(side.ravel()), np.sort(voxels.max(axis=2).ravel()))


def test_darker_voxels_than_the_threshold_are_not_seen() -> None:
    made = scene((10, 12, 14), value=99)
    assert render(made, Viewpoint(), SpaceStyle(threshold=99)).steps.any()
    assert not render(made, Viewpoint(), SpaceStyle(threshold=100)).steps.any()
    assert not render(made, Viewpoint(), SpaceStyle(surface=True, threshold=100)).steps.any()


def test_surfaces_are_lit_by_their_slope() -> None:
    z, y, x = np.indices((40, 40, 40)) - 19.5
    ball = (255 * np.clip(16 - np.sqrt(x * x + y * y + z * z), 0, 1)).astype(np.uint8)
    made = ViewedVolume.of(Volume.from_array(ball), WINDOW)
    style = SpaceStyle(surface=True, threshold=128)
    for camera in (Viewpoint(0, 0), Viewpoint(40, 25), Viewpoint(90, 0)):
        rendering = render(made, camera, style)
        steps = rendering.steps.astype(int)
        row, column = np.argwhere(steps > 0).mean(axis=0).round().astype(int)
        assert steps[row - 1 : row + 2, column - 1 : column + 2].mean() > 235
        rows, columns = np.nonzero(steps)
        places = rendering.matrix @ np.stack([columns, rows, np.ones(len(rows))])
        far = np.hypot(*places)
        slope = steps[rows, columns][(far > 12.5) & (far < 13.5)].mean()
        assert slope == pytest.approx(255 * (0.2 + 0.8 * np.sqrt(1 - (13 / 15.5) ** 2)), abs=25)


def test_the_surface_in_front_hides_those_behind() -> None:
    """A slope in front of a wall, from both sides: the wall is lit in full."""
    voxels = np.zeros((30, 30, 30), np.uint8)
    voxels[:, 25:] = 200
    for column in range(30):
        voxels[:, column // 2 : column // 2 + 3, column] = 200
    made, style = (
        ViewedVolume.of(Volume.from_array(voxels), WINDOW),
        SpaceStyle(surface=True, threshold=100),
    )
    for yaw, lit in ((0, 0.2 + 0.8 * np.cos(np.arctan(0.5))), (180, 1)):
        middle = render(made, Viewpoint(yaw, 0), style).steps[12:18, 12:18]
        assert middle.mean() == pytest.approx(255 * lit, abs=8)


def test_through_a_clear_surface_the_maximum_is_seen() -> None:
    made = scene((10, 2, 14), (10, 21, 14))
    solid, clear = (
        render(made, Viewpoint(0, 0), SpaceStyle(True, 100, o)).steps.max() for o in (1.0, 0.0)
    )
    assert clear == made.steps.max()
    assert solid != clear


def test_the_camera_stays_within_its_limits() -> None:
    camera = Viewpoint(350, 80, 1).turned(20, 30)
    assert (camera.yaw, camera.pitch) == (10, 89)
    assert Viewpoint().zoomed(1e9).zoom == 20
    assert Viewpoint().zoomed(1e-9).zoom == 0.2
