"""Whether the planes of input and output lie below each other or beside each other."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QSize
from pytestqt.qtbot import QtBot

from kernelscope.gui.model.camera import arranged
from kernelscope.gui.model.drawn_view import DrawnView
from kernelscope.gui.session.canvas_view import CanvasView
from kernelscope.gui.viewer.pair_view import PairView
from kernelscope.images.volume import Volume

HEAD = ((112, 128), (112, 96), (128, 96))
FLAT = ((256, 256), (256, 37), (256, 37))


@pytest.mark.parametrize(
    ("width", "height", "extents", "beside"),
    [
        (926, 244, HEAD, True),
        (926, 292, HEAD, True),
        (926, 600, HEAD, False),
        (1500, 650, HEAD, False),
        (926, 400, FLAT, False),
        (926, 200, FLAT, True),
        (926, 244, (), False),
    ],
)
def test_the_larger_slices_decide(
    width: int, height: int, extents: tuple[tuple[int, int], ...], beside: bool
) -> None:
    assert arranged(width, height, 19, extents) == (beside, None)


def test_little_height_puts_the_output_beside_the_input(qtbot: QtBot) -> None:
    viewer = PairView(CanvasView(3))
    qtbot.addWidget(viewer)
    viewer.resize(930, 700)
    viewer.show()
    viewer.show_input(DrawnView(Volume.from_array(np.zeros((96, 128, 112), np.float32), "head")))
    qtbot.waitUntil(lambda: viewer.output.y() > viewer.input.y())
    viewer.resize(QSize(930, 350))
    qtbot.waitUntil(lambda: viewer.output.x() > viewer.input.x())
    small = viewer.input.views[0].height()
    assert small > 0.6 * viewer.height(), "the height of both rows"
    viewer.choose_plane(0)
    viewer.choose_plane(None)
    qtbot.waitUntil(lambda: viewer.output.x() > viewer.input.x())
    viewer.resize(QSize(930, 700))
    qtbot.waitUntil(lambda: viewer.output.y() > viewer.input.y())


@pytest.mark.parametrize(
    ("extents", "large", "below", "share"),
    [(FLAT, 0, True, 1 / 6), (HEAD, 0, False, 1 / 3), (FLAT, 1, True, 1 / 2)],
)
def test_a_large_plane_uses_the_room(
    extents: tuple[tuple[int, int], ...], large: int, below: bool, share: float
) -> None:
    for sides, height in ((1, 619), (2, 1238)):
        beside, made = arranged(600, height, 19, extents, large, sides=sides)
        assert made is not None
        assert (beside, made.below, made.share) == (False, below, share)


def test_a_large_plane_is_larger_where_the_output_is_beside_the_input() -> None:
    beside, made = arranged(1200, 619, 19, HEAD, 0)
    assert beside
    assert made == arranged(600, 619, 19, HEAD, 0, sides=1)[1]


def test_small_planes_go_below_a_large_one_where_it_is_larger_so(qtbot: QtBot) -> None:
    viewer = PairView(CanvasView(3))
    qtbot.addWidget(viewer)
    viewer.resize(1200, 760)
    viewer.show()
    spacing = (1.0, 1.0, 1.0)
    viewer.show_input(
        DrawnView(Volume.from_array(np.zeros((9, 64, 64), np.float32), spacing=spacing))
    )
    viewer.view.enlarge(0)
    first, second, third = viewer.input.views
    qtbot.waitUntil(lambda: second.y() > first.y() + first.height())
    assert first.width() > 0.95 * viewer.input.width()
    assert third.x() > second.x() + second.width() - 1
    assert first.height() > 3 * second.height()
    viewer.view.enlarge(None)
    qtbot.waitUntil(lambda: second.x() > first.x() and second.y() == first.y())
    assert abs(first.width() - second.width()) <= 1
