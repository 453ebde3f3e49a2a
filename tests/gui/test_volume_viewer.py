"""Looking at a volume: crosshair, slices, window and level, zoom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QLabel,
    QSlider,
    QSpinBox,
    QToolButton,
)
from pytestqt.qtbot import QtBot

from kernelscope.gui.model.comparison import View
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.drawn_view import DrawnView
from kernelscope.gui.model.slice_drawing import Projection
from kernelscope.gui.session.canvas_view import CanvasView
from kernelscope.gui.viewer import layer
from kernelscope.gui.viewer.pair_view import PairView
from kernelscope.gui.viewer.plane_canvas import PlaneCanvas
from kernelscope.images.source import Channel
from kernelscope.images.volume import Among, Volume
from tests.gui.helpers import hover, wheel

SHAPE = (20, 30, 40)
LEFT, RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton


def volume(seed: int = 0, spacing: tuple[float, float, float] = (1, 1, 1)) -> Volume:
    voxels = np.random.default_rng(seed).integers(0, 1000, SHAPE).astype(np.int16)
    z, y, x = spacing
    affine = np.diag([x, y, z, 1.0])
    return Volume.from_array(voxels, f"v{seed}", spacing=spacing, affine=affine)


def show_input(viewer: PairView, shown: Volume, title: str = "") -> None:
    viewer.show_input(DrawnView(shown), title)


def show_output(
    viewer: PairView, shown: Volume, title: str = "", minus: Volume | None = None, gain: int = 1
) -> None:
    view = View.OUTPUT if minus is None else View.RESIDUAL
    viewer.show_output(DrawnView(shown, view=view, minus=minus, gain=gain), title)


@pytest.fixture
def viewer(qtbot: QtBot) -> PairView:
    viewer = PairView(CanvasView(3))
    qtbot.addWidget(viewer)
    viewer.resize(900, 500)
    viewer.show()
    qtbot.waitExposed(viewer)
    return viewer


def grey(view: PlaneCanvas) -> np.ndarray:
    """Return the steps in which a slice is drawn, shape (rows, columns)."""
    assert view.front is not None
    assert view.front.planes is not None
    return view.front.display.steps(view.front.planes)[:, :, 0]


def test_views_say_how_oblique_they_are(viewer: PairView) -> None:
    """Their letters are those of the nearest directions."""
    angle = np.radians(20)
    affine = np.eye(4)
    affine[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    show_input(viewer, volume())
    assert not any(view.note for view in viewer.input.views)
    show_input(viewer, replace(volume(), affine=affine))
    assert {view.note for view in viewer.input.views} == {"20° oblique"}
    assert [view.letters for view in viewer.input.views] == ["APRL", "SIRL", "SIAP"]


def test_a_single_slice_is_looked_at_as_a_picture(qtbot: QtBot, viewer: PairView) -> None:
    show_input(viewer, volume(), "Input: v")
    viewer.choose_plane(2)
    for across in range(3):
        voxels = np.take(volume().voxels, [3], across)
        flat = Volume.from_array(voxels, "cells", affine=np.eye(4))
        show_input(viewer, flat, "Input: cells")
        show_output(viewer, flat, "Output: cells")
        (view,) = (each for each in viewer.output.views if each.isVisible())
        assert viewer.view.axis == across
        assert view.accessibleName() == "Output"
        assert view.cross is None
        assert not any(
            viewer.findChild(kind, name).isVisible()
            for kind, name in ((QSlider, "slice0Slider"), (QToolButton, "plane0Button"))
        )
        before = viewer.view.camera.device_scale
        wheel(view, 120)
        assert viewer.view.camera.device_scale > before
        qtbot.mouseDClick(view, LEFT)
        assert viewer.view.camera.device_scale == before
    show_input(viewer, volume(), "Input: v")
    shown = [each for each in viewer.output.views if each.isVisible()]
    assert shown == [viewer.output.views[2]], "the plane that was chosen for volumes"
    assert viewer.findChild(QSlider, "slice2Slider").isVisible()


def test_a_composite_has_only_filtered_channels_beside_an_output(viewer: PairView) -> None:
    front, made, raw, filtered = (
        replace(volume(n), among=(Among("C", n // 2, 2),)) for n in range(4)
    )
    show_input(viewer, front)
    show_output(viewer, made)
    display = Display(0, 1000)
    for beside, expected in ((raw, None), (filtered, filtered)):
        pairs = ((raw, display),), ((beside, display),)
        look = replace(viewer.view.look, beside=pairs[0], filtered=pairs[1])
        viewer.view.choose_look(look)
        # Else the other seems to be filtered away.
        for pane, added in ((viewer.input, expected and raw), (viewer.output, expected)):
            for view, plane in zip(pane.views, viewer.view.planes, strict=True):
                assert view.front is not None
                assert len(view.front._parts) == 1 + (added is not None)
                if added is None:
                    continue
                planes = view.front._parts[-1].pyramid.planes  # their light is added
                cut = plane.cut(added.voxels, viewer.view.position[plane.axis])
                np.testing.assert_array_equal(planes[..., 0], cut)
    noise = volume(4)
    viewer.show_output(DrawnView(noise, own_levels=display, caption="Noise: sigma"))
    for view, plane in zip(viewer.output.views, viewer.view.planes, strict=True):
        assert view.front is not None
        (part,) = view.front._parts
        cut = plane.cut(noise.voxels, viewer.view.position[plane.axis])
        np.testing.assert_array_equal(part.pyramid.planes[..., 0], cut)


def test_the_output_of_a_composite_names_the_channels_that_are_filtered(viewer: PairView) -> None:
    dapi, gfp, rfp, made = (
        (replace(volume(n), channel=Channel(name)), Display(0, 1000))
        for n, name in enumerate(("DAPI", "GFP", "RFP", "GFP"))
    )
    show_input(viewer, dapi[0])
    show_output(viewer, dapi[0], "Output: Median")
    for beside, filtered, only in (
        ((), (), ""),
        ((gfp, rfp), (gfp, rfp), " · DAPI only"),
        ((gfp, rfp), (made, rfp), " · DAPI, GFP only, figures of DAPI"),
        ((gfp,), (made,), " · figures of DAPI"),
    ):
        viewer.view.choose_look(replace(viewer.view.look, beside=beside, filtered=filtered))
        assert viewer.output.title.full_text == f"Output: Median{only}"
    residual = DrawnView(dapi[0], view=View.RESIDUAL, minus=dapi[0])
    viewer.show_output(residual, "Residual: output – input")
    viewer.view.choose(Display(0, 1000))
    expected = "Residual: output – input · up to ±{}, DAPI only"
    assert viewer.output.title.full_text == expected.format(498)
    viewer.view.choose(Display(100, 300))
    assert viewer.output.title.full_text == expected.format(99.6)
    viewer.view.choose_look(replace(viewer.view.look, beside=(), filtered=()))
    assert viewer.output.title.full_text == "Residual: output – input · up to ±99.6"
    levels = Display(3, 12.5)
    viewer.show_output(DrawnView(volume(4), own_levels=levels, caption="Noise: sigma"), "Noise")
    assert viewer.output.title.full_text == "Noise · 3 to 12.5"


def test_slices_of_a_flat_stack_are_large_until_all_are_chosen(
    qtbot: QtBot, viewer: PairView
) -> None:
    def stack(depth: int, step: float) -> Volume:
        cells = np.zeros((depth, 40, 50), np.uint8)
        return Volume.from_array(cells, spacing=(step, 1.0, 1.0))

    for depth, step, large in ((10, 1.0, 0), (10, 2.0, None), (5, 1.0, 0), (40, 1.0, None)):
        show_input(viewer, stack(depth, step))
        assert viewer.view.large == large, (depth, step)
    show_input(viewer, stack(5, 1.0))
    qtbot.mouseClick(viewer.findChild(QToolButton, "plane3Button"), LEFT)
    assert viewer.view.large is None
    show_input(viewer, stack(6, 1.0))
    assert viewer.view.large is None


def test_a_click_moves_the_crosshair_in_all_planes(qtbot: QtBot, viewer: PairView) -> None:
    shown = volume()
    show_input(viewer, shown, "Input: v")
    show_output(viewer, volume(1), "Output: w")
    assert viewer.view.position == (10, 15, 20)
    axial = viewer.view.planes[0]
    target = (10, 7, 33)
    column, row = axial.place(target, SHAPE)
    point = viewer.output.views[0].point_of(column, row).toPoint()
    qtbot.mouseClick(viewer.output.views[0], LEFT, pos=point)
    assert viewer.view.position == target
    for side, data in ((viewer.input, shown), (viewer.output, viewer.output.shown)):
        for view, plane in zip(side.views, viewer.view.planes, strict=True):
            cut = plane.cut(data.voxels, target[plane.axis])
            np.testing.assert_array_equal(grey(view), viewer.view.display.steps(cut))
    sliders = [viewer.findChild(QSlider, f"slice{n}Slider").value() for n in range(3)]
    assert sliders == [10, 7, 33]


def test_dragging_follows_and_stays_inside(qtbot: QtBot, viewer: PairView) -> None:
    show_input(viewer, volume())
    view = viewer.input.views[0]
    qtbot.mousePress(view, LEFT, pos=view.rect().center())
    qtbot.mouseMove(view, view.rect().center() + QPoint(9, 0))
    moved = viewer.view.position
    assert moved[2] != 20
    assert moved[:2] == (10, 15)
    qtbot.mouseMove(view, QPoint(-500, 900))
    z, y, x = viewer.view.position
    assert z == 10
    assert y in (0, SHAPE[1] - 1)
    assert x in (0, SHAPE[2] - 1)
    qtbot.mouseRelease(view, LEFT)


def test_wheel_keys_and_sliders_change_the_slice(qtbot: QtBot, viewer: PairView) -> None:
    show_input(viewer, volume())
    wheel(viewer.input.views[0], 120)
    assert viewer.view.position[0] == 11
    wheel(viewer.input.views[0], -60)  # half a notch of a fine wheel
    wheel(viewer.input.views[0], -60)
    assert viewer.view.position[0] == 10
    wheel(viewer.output.views[1], -240)
    assert viewer.view.position[1] == 13
    viewer.input.views[2].setFocus()
    qtbot.keyClick(viewer.input.views[2], Qt.Key.Key_PageUp)
    assert viewer.view.position[2] == 30
    qtbot.keyClick(viewer.input.views[2], Qt.Key.Key_Down)
    assert viewer.view.position[2] == 29
    viewer.findChild(QSlider, "slice0Slider").setValue(3)
    assert viewer.view.position == (3, 13, 29)
    assert viewer.findChild(QLabel, "slice0").text() == "Axial  4 / 20"
    for _ in range(9):
        wheel(viewer.input.views[0], -120)
    assert viewer.view.position[0] == 0


def test_values_and_position_are_told(qtbot: QtBot, viewer: PairView) -> None:
    reported: list[str] = []
    viewer.described.connect(reported.append)
    first, second = volume(spacing=(3, 2, 1.5)), volume(1, spacing=(3, 2, 1.5))
    show_input(viewer, first)
    show_output(viewer, second)
    viewer.go_to((4, 5, 6))
    values = f"input {first.voxels[4, 5, 6]}   output {second.voxels[4, 5, 6]}"
    assert reported[-1] == f"x 6, y 5, z 4   (9.0, 10.0, 12.0) mm   {values}"
    view, plane = viewer.input.views[0], viewer.view.planes[0]
    over = view.point_of(*plane.place((4, 20, 30), SHAPE)).toPoint()
    qtbot.mouseMove(view, over)
    assert reported[-1].startswith("x 30, y 20, z 4 ")
    assert viewer.view.position == (4, 5, 6)
    hover(view, None)
    assert reported[-1].startswith("x 6, y 5, z 4 ")


def test_spacing_decides_about_the_shape_on_the_screen(viewer: PairView) -> None:
    show_input(viewer, volume(spacing=(4, 1, 1)))
    coronal = viewer.input.views[1]
    one = coronal.point_of(1, 1) - coronal.point_of(0, 0)
    assert one.y() / one.x() == pytest.approx(4)
    axial = viewer.input.views[0]
    assert (axial.point_of(1, 0) - axial.point_of(0, 0)).x() == pytest.approx(one.x())


def test_window_is_set_and_automatic(qtbot: QtBot, viewer: PairView) -> None:
    shown = volume()
    show_input(viewer, shown)
    show_output(viewer, volume(1))
    automatic = viewer.view.display
    auto = viewer.findChild(QToolButton, "autoWindow")
    assert auto.isChecked()
    assert automatic.width == pytest.approx(996, abs=3)
    viewer.findChild(QDoubleSpinBox, "windowLevel").setValue(300)
    viewer.findChild(QDoubleSpinBox, "windowWidth").setValue(200)
    assert viewer.view.display == Display(200, 400)
    assert not auto.isChecked()
    plane = viewer.view.planes[2]
    cut = plane.cut(viewer.output.shown.voxels, viewer.view.position[plane.axis])
    np.testing.assert_array_equal(grey(viewer.output.views[2]), Display(200, 400).steps(cut))

    qtbot.mouseClick(auto, LEFT)
    assert viewer.view.display == automatic


def test_one_plane_alone_shows_both_sides_beside_each_other(qtbot: QtBot, viewer: PairView) -> None:
    show_input(viewer, volume())
    qtbot.mouseDClick(viewer.input.views[1], LEFT)
    assert viewer.view.plane_number == 1
    assert [view.isVisible() for view in viewer.input.views] == [False, True, False]
    qtbot.waitUntil(lambda: viewer.output.x() > viewer.input.x())
    viewer.go_to((1, 2, 3))
    qtbot.mouseClick(viewer.findChild(QToolButton, "plane3Button"), LEFT)
    assert viewer.view.plane_number is None
    assert all(view.isVisible() for view in viewer.input.views)
    plane = viewer.view.planes[0]  # which was out of sight when the crosshair moved
    cut = plane.cut(viewer.input.shown.voxels, 1)
    np.testing.assert_array_equal(grey(viewer.input.views[0]), viewer.view.display.steps(cut))


def test_one_plane_is_large_beside_two_small_ones(qtbot: QtBot, viewer: PairView) -> None:
    show_input(viewer, volume())
    show_output(viewer, volume(1))
    fitted = viewer.view.camera.scale
    viewer.view.clicked = 1
    qtbot.mouseClick(viewer.findChild(QToolButton, "plane4Button"), LEFT)
    axial, coronal, sagittal = viewer.input.views
    qtbot.waitUntil(lambda: coronal.width() > 1.8 * axial.width())
    assert coronal.height() > 1.8 * axial.height()
    assert sagittal.y() > axial.y()
    assert all(view.isVisible() for view in (*viewer.input.views, *viewer.output.views))
    assert viewer.view.camera.scale > 1.3 * fitted
    scales = [view.camera[1] for view in viewer.input.views]
    assert scales[1] == max(scales)
    for view, (across, down) in zip(
        viewer.input.views, viewer.view.camera._planes, strict=True
    ):  # whole planes are in view
        assert view.camera[1] * across <= view.width()
        assert view.camera[1] * down <= view.height()

    place = axial.point_of(3, 4).toPoint()
    qtbot.mouseClick(axial, LEFT, pos=place)
    assert viewer.view.planes[0].place(viewer.view.position, volume().voxels.shape) == (3, 4)
    qtbot.mouseDClick(axial, LEFT)
    assert viewer.view.large == 0
    qtbot.waitUntil(lambda: axial.width() > 1.8 * coronal.width())
    qtbot.mouseDClick(axial, LEFT)  # the large one alone, and back
    assert [view.isVisible() for view in viewer.input.views] == [True, False, False]
    qtbot.mouseDClick(axial, LEFT)
    assert viewer.view.large == 0
    qtbot.mouseClick(viewer.findChild(QToolButton, "plane3Button"), LEFT)
    qtbot.waitUntil(lambda: axial.width() == pytest.approx(coronal.width(), abs=2))


@pytest.mark.parametrize(("x", "y"), [(0.3, 0.4), (0.7, 0.35), (0.25, 0.65), (0.5, 0.6)])
@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("side", ["input", "output"])
def test_zoom_keeps_what_is_under_the_cursor_wherever_that_is(
    viewer: PairView, x: float, y: float, number: int, side: str
) -> None:
    show_input(viewer, volume(spacing=(2, 1, 1.5)))
    show_output(viewer, volume(1, spacing=(2, 1, 1.5)))
    view = getattr(viewer, side).views[number]
    cursor = QPointF(x * view.width(), y * view.height())
    places = [(2, 3), (0, 0), (11, 7)]
    start = [view.point_of(*place) for place in places]
    for notches in (1, 5, -2, 3):
        before, scale = [view.point_of(*place) for place in places], viewer.view.camera.scale
        wheel(view, 120 * notches, Qt.KeyboardModifier.ControlModifier, cursor)
        grown = viewer.view.camera.scale / scale
        assert grown == pytest.approx(1.25**notches, rel=0.2)
        after = [view.point_of(*place) for place in places]
        for old, new in zip(before, after, strict=True):
            wanted = cursor + (old - cursor) * grown
            assert (new - wanted).manhattanLength() < 2 + grown  # whole pixels of the screen
    wheel(view, -12 * 120, Qt.KeyboardModifier.ControlModifier, cursor)
    for place, point in zip(places, start, strict=True):  # whole slices are in the middle again
        assert (view.point_of(*place) - point).manhattanLength() < 1e-6


def test_only_slices_that_changed_are_drawn_again(
    viewer: PairView, monkeypatch: pytest.MonkeyPatch
) -> None:
    show_input(viewer, volume())
    show_output(viewer, volume(1))
    drawn: list[tuple[int, ...]] = []
    real = layer.layer_of
    monkeypatch.setattr(layer, "layer_of", lambda *each: drawn.append(each[0].shape) or real(*each))
    viewer.go_to((10, 15, 25))  # within the axial and the coronal plane
    assert len(drawn) == 2
    viewer.go_to((10, 15, 25))
    assert len(drawn) == 2


@pytest.fixture
def shown(viewer: PairView) -> PairView:
    show_input(viewer, volume(), "Input: v")
    show_output(viewer, volume(1), "Output: w")
    viewer.view.choose(Display(0, 1000))
    return viewer


def test_a_maximum_of_a_slab_is_drawn_and_named(qtbot: QtBot, shown: PairView) -> None:
    kind = shown.findChild(QComboBox, "projection")
    thickness = shown.findChild(QSpinBox, "slabSlices")
    assert kind is not None
    assert thickness is not None
    assert not thickness.isVisible()
    kind.setCurrentText(Projection.MAXIMUM)
    thickness.setValue(4)
    view, source = shown.input.views[0], shown.input.shown
    assert source is not None
    expected = shown.view.display.steps(
        shown.view.planes[0].cut(source.voxels[9:13].max(0)[None], 0)
    )
    assert np.array_equal(grey(view), expected)
    assert view.note == "Maximum of slices 10–13"
    texts: list[str] = []
    shown.described.connect(texts.append)
    column, row = shown.view.planes[0].place((10, 3, 4), SHAPE)
    hover(view, QPointF(column, row))
    assert f"(maximum {source.voxels[9:13, 3, 4].max()})" in texts[-1]


def test_beside_a_large_plane_only_that_is_projected(shown: PairView) -> None:
    """So a crosshair in a projection across z still shows the depth of a cell beside it."""
    shown.view.enlarge(0)
    shown.view.choose_look(replace(shown.view.look, projection=Projection.MAXIMUM))
    notes = [view.note for view in shown.input.views]
    assert notes == [f"Maximum of slices 1–{SHAPE[0]}", "", ""]
    source, (z, y, x) = shown.input.shown, shown.view.position
    assert source is not None
    planes, steps = shown.view.planes, shown.view.display.steps
    highest = planes[0].cut(source.voxels.max(0, keepdims=True), 0)
    assert np.array_equal(grey(shown.input.views[0]), steps(highest))
    assert np.array_equal(grey(shown.input.views[1]), steps(planes[1].cut(source.voxels, y)))
    assert shown.view.slices == [(1, y), (2, x)]
    shown.view.enlarge(1)
    assert shown.view.slices == [(0, z), (2, x)]
    shown.view.enlarge(None)
    assert all(view.note.startswith("Maximum") for view in shown.input.views)


def test_a_large_slab_is_computed_elsewhere_first(
    shown: PairView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layer, "_AT_ONCE", 10)
    works: list[Callable[[], Any]] = []
    shown.wanted.connect(works.append)
    shown.view.choose_look(replace(shown.view.look, projection=Projection.MEAN))
    view = shown.output.views[2]
    assert view.front is None
    assert view.note.endswith("computing…")
    assert len(works) == 1
    shown.take(works[0]())
    assert view.front is not None
    assert view.note == "Mean of slices 1–40"
    assert len(works) == 1
    pairs = tuple((volume(n), Display(0, 1000)) for n in (2, 3))
    shown.view.choose_look(replace(shown.view.look, beside=pairs))
    assert view.note.endswith("computing…")
    assert len(works) == 2
    shown.take(works[1]())
    assert view.note == "Mean of slices 1–40", "all channels are computed in one go"
    assert len(view.front._parts) == 3
    assert len(works) == 2


def test_a_scale_bar_has_its_length_at_every_magnification(viewer: PairView) -> None:
    """Only over planes along both of whose axes the file states the distance."""
    voxels = np.full((20, 60, 80), 10, np.uint8)
    spacing = (0.0005, 0.0002, 0.0002)
    show_input(viewer, Volume.from_array(voxels, spacing=spacing, stated="yx"))
    assert [view.unit for view in viewer.input.views] == [1.0, 0.0, 0.0]
    show_input(viewer, Volume.from_array(voxels, spacing=spacing))
    viewer.choose_plane(0)
    viewer.view.choose(Display(0, 255))
    (view,) = (each for each in viewer.input.views if each.isVisible())
    lengths = []
    for _ in range(3):
        drawn = view.grab().toImage()
        row = drawn.height() - round(9.5 * view.devicePixelRatioF())
        whites = sum(drawn.pixelColor(x, row).red() > 230 for x in range(drawn.width()))
        micrometres = whites / view.devicePixelRatioF() / view.cell.width() * 0.2
        power = 10 ** np.floor(np.log10(micrometres * 1.05))
        rounded = min((1, 2, 5), key=lambda step: abs(step * power - micrometres)) * power
        assert micrometres == pytest.approx(rounded, abs=3 * 0.2 / view.cell.width())
        assert 0.09 < whites / drawn.width() <= 0.26
        lengths.append(rounded)
        for _ in range(4):
            viewer.zoom_in()
    assert lengths[0] > lengths[2]
    viewer.view.arrange(scale_bar=False)
    assert not view.unit
