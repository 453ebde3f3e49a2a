"""Where views look: fitting, zooming about a point, and the limits of both."""

from __future__ import annotations

import pytest

from kernelscope.gui.model.camera import Camera, Room

PLANES = [(100, 50), (100, 40), (50, 40)]


def camera(
    *planes: tuple[float, float], side: float = 208, ratio: float = 1, unit: float = 1
) -> Camera:
    """Return a camera of planes (by default, of a picture) in square views."""
    made = Camera()
    made.lay_out([Room(number, side, side) for number in range(len(planes) or 1)], ratio)
    made.show(planes or [(100, 50)], unit)
    return made


def test_the_narrowest_view_decides_with_a_margin() -> None:
    made = Camera()
    made.show([(50, 100)])
    made.lay_out([Room(0, 108, 408), Room(0, 408, 208)], 1)
    assert made.scale == 2
    made.lay_out([Room(0, 5, 5)], 1)
    assert made.scale == 1 / 100  # not below a pixel


@pytest.mark.parametrize("planes", [[(100, 50)], PLANES], ids=["picture", "volume"])
def test_whole_planes_lie_in_the_middle_until_the_camera_is_moved(
    planes: list[tuple[float, float]],
) -> None:
    made = camera(*planes)
    assert made.fitted
    assert made.scale == 2
    assert [made.centre(number) for number in range(len(planes))] == [
        (width / 2, height / 2) for width, height in planes
    ]
    made.lay_out([Room(number, 308, 308) for number in range(len(planes))], 1)
    assert made.scale == 3
    made.look_at({0: (10, 20)}, 1000)
    assert not made.fitted
    assert (made.centre(), made.scale) == ((10, 20), 64)
    made.lay_out([Room(number, 208, 208) for number in range(len(planes))], 1)
    assert made.scale == 64
    made.fit()
    assert (made.centre(), made.scale) == ((50, 25), 2)


@pytest.mark.parametrize(
    ("side", "ratio", "device"),
    [
        (458, 1, 4),  # 4.5 fits
        (458, 2, 9),  # 9.0 on the device
        (258, 1, 2.5),  # smooth below 3
        (228, 1, 2),  # 2.2 fits; whole costs little
        (58, 1, 0.5),  # reduced: as large as there is room
    ],
)
@pytest.mark.parametrize("unit", [1, 0.5])
def test_fitted_pixels_are_alike_where_that_costs_little(
    side: float, ratio: float, device: float, unit: float
) -> None:
    made = camera((100 * unit, 100 * unit), side=side, ratio=ratio, unit=unit)
    assert made.device_scale == pytest.approx(device)


@pytest.mark.parametrize("planes", [[(100, 50)], PLANES], ids=["picture", "volume"])
def test_zoom_keeps_a_point_and_stops_at_whole_multiples(
    planes: list[tuple[float, float]],
) -> None:
    made = camera(*planes)
    fixed = 60.0, 20.0
    kept = [(p - c) * made.scale for p, c in zip(fixed, made.centre(), strict=True)]
    scales = []
    for _ in range(12):
        made.zoom_about(1, 0, fixed)
        scales.append(made.scale)
        now = [(p - c) * made.scale for p, c in zip(fixed, made.centre(), strict=True)]
        assert now == pytest.approx(kept)
    assert scales == sorted(scales)
    assert all(scale == round(scale) for scale in scales)
    others = [made.centre(number) for number in range(1, len(planes))]
    assert others == [(width / 2, height / 2) for width, height in planes[1:]]
    for _ in range(12):
        made.zoom_about(-1, 0, fixed)
    assert made.scale == 2
    assert made.centre() == pytest.approx((50, 25))


def test_several_planes_are_no_smaller_than_whole_ones() -> None:
    picture, volume = camera(), camera(*PLANES)
    for made in (picture, volume):
        made.zoom_about(-1000, 0, (0, 0))
    assert picture.scale == 1 / 64
    assert volume.scale == 2
    assert volume.fitted


def test_fine_wheels_add_up() -> None:
    made = camera()
    made.look_at({0: (5, 5)}, 8)
    for _ in range(10):
        made.zoom_about(0.1, 0, (5, 5))
    assert made.scale == 10
    made.zoom_about(100, 0, (5, 5))
    assert made.scale == 64


def test_zoom_is_whole_on_the_device() -> None:
    made = camera(ratio=1.5)
    made.look_at({0: (5, 5)}, 2)
    made.zoom(1, {0: (5, 5)})
    assert made.device_scale == 4


def test_commands_bring_the_crosshair_into_the_middle() -> None:
    made, points = camera(*PLANES), {0: (1.0, 2.0), 1: (3.0, 4.0), 2: (5.0, 6.0)}
    made.zoom(2, points)
    assert made.scale == 3
    assert {number: made.centre(number) for number in points} == points


@pytest.mark.parametrize("plane", [0, 2])
def test_panning_leaves_the_plane_in_the_view(plane: int) -> None:
    made, (width, height) = camera(*PLANES), PLANES[plane]
    made.look_at({plane: (10, 10)}, 4)
    made.pan(plane, (5, 7))
    assert made.centre(plane) == (15, 17)
    made.pan(plane, (-500, 500))
    assert made.centre(plane) == (0, height)
    made.pan(plane, (500, -500))
    assert made.centre(plane) == (width, 0)


def test_the_picture_settles_in_its_views() -> None:
    made = camera()
    made.lay_out([Room(0, 40, 80), Room(0, 60, 80)], 1)
    for start, settled in (((1, 49), (20, 25)), ((99, 25), (80, 25))):
        made.look_at({0: start}, 1)
        made.settle()
        assert made.centre() == settled  # x: filled; y: smaller than the view


def test_actual_size_is_one_pixel_of_the_screen() -> None:
    made = camera((50, 25), side=40, ratio=2, unit=0.5)
    made.one_to_one({0: (20, 20)}, {})
    assert made.device_scale == 1
    assert camera(*PLANES).device_scale == 2
    larger = camera(*PLANES)
    larger.one_to_one({0: (20, 20)}, {})
    assert larger.scale == 2, "whole slices fit"


def test_planes_beside_a_large_one_are_fitted_to_their_smaller_views() -> None:
    made = Camera()
    made.show(PLANES)
    rooms = [Room(0, 408, 408), Room(1, 108, 208), Room(2, 108, 208)]
    made.lay_out(rooms, 1)
    assert [made.scale_of(number) for number in range(3)] == [1, 1, 1], "the small ones decide"
    made.lay_out(rooms, 1, large=0)
    assert [made.scale_of(number) for number in range(3)] == [4, 1, 2]
    made.zoom(3, {0: (50, 25), 1: (50, 20), 2: (25, 20)})
    assert made.scale_of(0) / made.scale_of(1) == pytest.approx(4)
    assert made.scale == made.scale_of(0) > 4


def test_a_small_plane_is_never_larger_than_the_large_one() -> None:
    made = Camera()
    made.show([(100, 100), (10, 10)])
    made.lay_out([Room(0, 208, 208), Room(1, 108, 108)], 1, large=0)
    assert made.scale_of(1) == made.scale_of(0) == 2, "pixels beside each other mislead otherwise"
