"""Where views look: fitting, zooming about a point, and the limits of both."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF, QRectF, QSizeF

from kernelscope.gui.canvas.camera import PictureCamera, PlaneCamera, centre_holding, fitting_scale


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


def test_zooming_too_far_keeps_the_point_that_the_view_kept() -> None:
    camera = PictureCamera()
    camera.look_at(QPointF(6, 8), 32)
    fixed = QPointF(10, 4)
    camera.follow(centre_holding(fixed, QPointF(6, 8), 32, 100), 100)
    assert camera.scale == 64
    kept = centre_holding(fixed, QPointF(6, 8), 32, 64)
    assert (camera.centre.x(), camera.centre.y()) == pytest.approx((kept.x(), kept.y()))
    camera.follow(QPointF(3, 3), 2)  # within limits: as it is
    assert (camera.centre, camera.scale) == (QPointF(3, 3), 2)


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
