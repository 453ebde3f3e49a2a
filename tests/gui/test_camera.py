"""Where views look: fitting, zooming about a point, and the limits of both."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF, QRectF, QSizeF

from kernelscope.gui.viewer.camera import PictureCamera, PlaneCamera, centre_holding, fitting_scale


def test_fits_the_narrower_view_and_leaves_a_margin() -> None:
    views = [QSizeF(120, 420), QSizeF(420, 220)]
    assert fitting_scale(views, QSizeF(50, 100), 10) == 2
    assert fitting_scale([QSizeF(5, 5)], QSizeF(50, 100), 10) == 1 / 100  # not below a pixel


def test_point_under_the_cursor_stays() -> None:
    assert centre_holding(QPointF(10, 4), QPointF(6, 8), 1, 2) == QPointF(8, 6)


def test_picture_camera_fits_until_it_is_moved() -> None:
    camera = PictureCamera()
    assert camera.fitted
    camera.fit(QSizeF(100, 50), [QSizeF(216, 216)])
    assert (camera.centre, camera.scale) == (QPointF(50, 25), 2)
    camera.look_at(QPointF(1, 2), 1000)
    assert not camera.fitted
    assert (camera.centre, camera.scale) == (QPointF(1, 2), 64)
    camera.look_at(QPointF(1, 2), 1e-6)
    assert camera.scale == 1 / 64


@pytest.mark.parametrize(
    ("side", "ratio", "device"),
    [
        (466, 1, 4),  # 4.5 fits
        (466, 2, 9),  # 9.0 on the device
        (266, 1, 2.5),  # smooth below 3
        (236, 1, 2),  # 2.2 fits; whole costs little
        (66, 1, 0.5),  # reduced: as large as there is room
    ],
)
def test_fitted_pixels_are_alike_where_that_costs_little(
    side: float, ratio: float, device: float
) -> None:
    camera = PictureCamera()
    camera.fit(QSizeF(100, 100), [QSizeF(side, side)], ratio)
    assert camera.scale * ratio == pytest.approx(device)


def test_zoom_keeps_a_point_and_stops_at_whole_multiples() -> None:
    camera = PictureCamera()
    camera.look_at(QPointF(6, 8), 1)
    fixed, kept = QPointF(10, 4), QPointF(4, -4)
    scales = []
    for _ in range(12):
        camera.zoom(1, fixed)
        scales.append(camera.scale)
        moved = (fixed - camera.centre) * camera.scale - kept
        assert abs(moved.x()) + abs(moved.y()) < 1e-9
    assert scales == sorted(set(scales))
    assert all(scale == round(scale) for scale in scales if scale >= 2)
    for _ in range(12):
        camera.zoom(-1, fixed)
    assert camera.scale == 1


def test_fine_wheels_add_up() -> None:
    camera = PictureCamera()
    camera.look_at(QPointF(5, 5), 8)
    for _ in range(10):
        camera.zoom(0.1, QPointF(5, 5))
    assert camera.scale == 10
    camera.zoom(100, QPointF(5, 5))
    assert camera.scale == 64
    camera.zoom(-1000, QPointF(5, 5))
    assert camera.scale == 1 / 64


def test_zoom_is_whole_on_the_device() -> None:
    camera = PictureCamera()
    camera.look_at(QPointF(5, 5), 2)
    camera.zoom(1, QPointF(5, 5), 1.5)
    assert camera.scale * 1.5 == 4


def test_panning_leaves_the_picture_in_the_view() -> None:
    camera, picture = PictureCamera(), QRectF(0, 0, 100, 50)
    camera.look_at(QPointF(10, 10), 4)
    camera.pan(QPointF(5, 7), picture)
    assert camera.centre == QPointF(15, 17)
    camera.pan(QPointF(-500, 500), picture)
    assert camera.centre == QPointF(0, 50)


def test_picture_settles_in_the_view() -> None:
    camera, picture = PictureCamera(), QRectF(0, 0, 100, 50)
    camera.look_at(QPointF(1, 49), 1)
    camera.settle(picture, [QSizeF(40, 80), QSizeF(60, 80)])
    assert camera.centre == QPointF(20, 25)  # x: filled; y: smaller than the view
    camera.look_at(QPointF(99, 25), 1)
    camera.settle(picture, [QSizeF(40, 80)])
    assert camera.centre == QPointF(80, 25)


@pytest.fixture
def planes() -> PlaneCamera:
    camera = PlaneCamera()
    camera.set_extents([QSizeF(100, 50), QSizeF(100, 40), QSizeF(50, 40)])
    return camera


VIEW = QSizeF(208, 208)


def test_whole_slices_lie_in_the_middle(planes: PlaneCamera) -> None:
    fit = planes.fit_of([(0, VIEW), (2, VIEW)])
    assert fit == 2
    assert planes.area(0, VIEW, fit) == QRectF(4, 54, 200, 100)
    assert planes.area(2, VIEW, fit) == QRectF(54, 64, 100, 80)


def test_planes_zoom_about_a_point_and_back(planes: PlaneCamera) -> None:
    planes.zoom_at(0, QPointF(20, -10), 4, 2)
    assert planes.zoom == 4
    # 20 pixels right of the middle lay 60 mm, 10 above it 20 mm; they still do.
    assert planes.centre(0) == QPointF(60 - 20 / 8, 20 + 10 / 8)
    assert planes.centre(1) == QPointF(50, 20)
    planes.pan(1, QPointF(8, 16), 2)
    assert planes.centre(1) == QPointF(49, 18)
    planes.zoom_at(0, QPointF(20, -10), 1 / 8, 2)
    assert planes.zoom == 1
    assert planes.centre(0) == QPointF(50, 25)
    assert planes.centre(1) == QPointF(50, 20)


def test_planes_zoom_about_the_crosshair_within_limits(planes: PlaneCamera) -> None:
    points = {0: QPointF(1, 2), 1: QPointF(3, 4), 2: QPointF(5, 6)}
    planes.zoom_about(points, 1000)
    assert planes.zoom == 32
    assert [planes.centre(number) for number in range(3)] == list(points.values())
    planes.zoom_about(points, 1e-3)
    assert planes.centre(0) == QPointF(50, 25)
    planes.zoom_about(points, 2)
    planes.reset()
    assert planes.zoom == 1
    assert planes.centre(2) == QPointF(25, 20)
