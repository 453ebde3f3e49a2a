"""The window of the 3-D view: one camera for both views, by mouse and keys."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QComboBox, QPushButton, QSlider
from pytestqt.qtbot import QtBot

from kernelscope.gui.model.display import Display
from kernelscope.gui.model.shear_warp import Viewpoint
from kernelscope.gui.tools.space_window import SpaceWindow
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from tests.gui.test_volume_viewer import volume


@pytest.fixture
def space(qtbot: QtBot) -> Iterator[SpaceWindow]:
    failures: list[Exception] = []
    background = Background(report=failures.append)
    window = SpaceWindow(background)
    qtbot.addWidget(window)
    window.show_volumes(volume(0), volume(1), Display(0, 1000))
    window.open()
    qtbot.waitUntil(lambda: window.settled)
    yield window
    window.close()
    background.close()
    assert not failures


def pictures(space: SpaceWindow) -> list[object]:
    return [view.grab().toImage() for view in space.views]


def test_a_drag_turns_both_volumes(qtbot: QtBot, space: SpaceWindow) -> None:
    before, camera = pictures(space), space.camera
    view = space.views[0]
    qtbot.mousePress(view, Qt.MouseButton.LeftButton, pos=QPoint(50, 50))
    qtbot.mouseMove(view, QPoint(100, 70))
    qtbot.mouseRelease(view, Qt.MouseButton.LeftButton, pos=QPoint(100, 70))
    qtbot.waitUntil(lambda: space.camera != camera and space.settled)
    after = pictures(space)
    assert all(a != b for a, b in zip(after, before, strict=True))


def test_keys_turn_and_zoom(qtbot: QtBot, space: SpaceWindow) -> None:
    start = space.camera
    for key, expected in (
        (Qt.Key.Key_Right, start.turned(10, 0)),
        (Qt.Key.Key_Up, start.turned(10, 10)),
        (Qt.Key.Key_Left, start.turned(0, 10)),
        (Qt.Key.Key_Down, start),
    ):
        qtbot.keyClick(space.views[1], key)
        assert space.camera == expected
    qtbot.keyClick(space.views[1], Qt.Key.Key_Plus)
    assert space.camera.zoom > 1
    qtbot.mouseClick(space.findChild(QPushButton, "spaceFront"), Qt.MouseButton.LeftButton)
    assert space.camera == Viewpoint(0, 0)
    qtbot.waitUntil(lambda: space.settled)


def test_threshold_and_surface_change_the_picture(qtbot: QtBot, space: SpaceWindow) -> None:
    surface = pictures(space)
    kind, opacity = (
        space.findChild(QComboBox, "spaceKind"),
        space.findChild(QSlider, "spaceOpacity"),
    )
    assert kind.currentText() == "Surface"
    assert opacity.isEnabled()
    kind.setCurrentText("Maximum")
    qtbot.waitUntil(lambda: space.settled)
    assert not opacity.isEnabled()
    maximum = pictures(space)
    assert maximum != surface
    space.findChild(QSlider, "spaceThreshold").setValue(0)
    kind.setCurrentText("Surface")
    qtbot.waitUntil(lambda: space.settled)
    assert space.style_.threshold > 0
    assert pictures(space) == surface
    space.findChild(QSlider, "spaceThreshold").setValue(255)
    qtbot.waitUntil(lambda: space.settled)
    assert pictures(space) != surface


def test_an_output_that_is_missing_says_how_to_get_one(qtbot: QtBot, space: SpaceWindow) -> None:
    full = space.views[1].grab().toImage()
    space.show_volumes(volume(0), None, Display(0, 1000))
    qtbot.waitUntil(lambda: space.settled)
    assert space.views[1].grab().toImage() != full


def test_both_views_are_saved_as_one_picture(qtbot: QtBot, space: SpaceWindow) -> None:
    saved: list[Image] = []
    space.saving.connect(saved.append)
    qtbot.mouseClick(space.findChild(QPushButton, "spaceSave"), Qt.MouseButton.LeftButton)
    (image,) = saved
    ratio = space.devicePixelRatioF()
    assert image.width == sum(round(view.width() * ratio) for view in space.views)
    assert image.title == "v0-3d"
    left, right = np.array_split(image.planes, 2, axis=1)
    assert left.max() > 100
    assert right.max() > 100
