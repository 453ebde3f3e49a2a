"""Colours, arrangements, overlay and projections of volumes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QComboBox, QSlider, QSpinBox, QToolButton
from pytestqt.qtbot import QtBot

from kernelscope.gui.model.arrangement import Arrangement
from kernelscope.gui.model.colour_maps import ColourMap, table
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.projection import Projection
from kernelscope.gui.viewer import slices
from kernelscope.gui.viewer.plane_canvas import PlaneCanvas
from kernelscope.gui.viewer.volume_viewer import VolumeViewer
from kernelscope.images.volume import Volume
from tests.gui.test_volume_viewer import LEFT, SHAPE, grey, viewer, volume

__all__ = ["viewer"]


@pytest.fixture
def shown(viewer: VolumeViewer) -> VolumeViewer:
    viewer.show_input(volume(), "Input: v")
    viewer.show_output(volume(1), "Output: w")
    viewer.view.choose(Display(0, 1000))
    return viewer


def at(view: PlaneCanvas, x: float, y: float) -> QColor:
    """Return the colour on the screen at shares of the width and height of the slice."""
    assert view.front is not None
    column, row = int(x * view.front.area.width()), int(y * view.front.area.height())
    picture = view.grab().toImage()
    point = view.point_of(column, row) * picture.devicePixelRatio()
    return picture.pixelColor(point.toPoint())


def test_a_colour_map_colours_input_and_output(shown: VolumeViewer) -> None:
    before = grey(shown.input.views[0]).copy()
    shown.view.choose_map(ColourMap.VIRIDIS)
    for pane in (shown.input, shown.output):
        pane.views[0].set_camera(QPointF(7.5, 5.5), 9)
        pixel = pane.views[0].grab().toImage().pixelColor(pane.views[0].rect().center())
        colour = (pixel.red(), pixel.green(), pixel.blue())
        assert colour == tuple(table(ColourMap.VIRIDIS)[grey(pane.views[0])[5, 7]])
    assert np.array_equal(grey(shown.input.views[0]), before)


def test_a_swipe_shows_the_input_on_its_side(qtbot: QtBot, viewer: VolumeViewer) -> None:
    black, white = np.zeros(SHAPE, np.int16), np.full(SHAPE, 1000, np.int16)
    viewer.show_input(Volume.from_array(black), "Input")
    viewer.view.arrange(arrangement=Arrangement.SWIPE)
    assert viewer.input.isVisible()  # there is nothing yet to share the room with
    viewer.show_output(Volume.from_array(white), "Output")
    viewer.view.choose(Display(0, 1000))
    view = viewer.output.views[0]
    assert not viewer.input.isVisible()
    assert at(view, 0.2, 0.2).lightness() < 30
    assert at(view, 0.8, 0.2).lightness() > 220
    line = QPoint(view.width() // 2, 10)
    before = viewer.view.position
    qtbot.mousePress(view, LEFT, pos=line)
    qtbot.mouseMove(view, QPoint(0, 10))
    qtbot.mouseRelease(view, LEFT, pos=QPoint(0, 10))
    assert at(view, 0.2, 0.2).lightness() > 220
    assert viewer.view.position == before  # the line was dragged, not the crosshair
    for _ in range(50):
        qtbot.keyClick(view, Qt.Key.Key_BracketRight)
    assert at(view, 0.8, 0.2).lightness() < 30


def test_the_probe_names_input_output_and_residual_in_both_panes(shown: VolumeViewer) -> None:
    first, second = shown.input.volume, shown.output.volume
    assert first is not None
    assert second is not None
    texts: list[str] = []
    shown.described.connect(texts.append)
    shown.show_output(second, minus=first)
    plane, place = shown.view.planes[0], (10, 3, 4)
    column, row = plane.place(place, SHAPE)
    shown.output.views[0].hovered.emit(QPointF(column, row))
    values = first.voxels[place].item(), second.voxels[place].item()
    expected = f"input {values[0]:.4g}   output {values[1]:.4g}   "
    assert expected + f"residual {values[1] - values[0]:.4g}" in texts[-1]
    cells = [pane.views[0].grab().toImage() for pane in (shown.input, shown.output)]
    shown.output.views[0].hovered.emit(None)
    for pane, cell in zip((shown.input, shown.output), cells, strict=True):
        assert pane.views[0].grab().toImage() != cell  # both had the mark


def test_differences_are_drawn_over_the_anatomy(qtbot: QtBot, viewer: VolumeViewer) -> None:
    anatomy = np.full(SHAPE, 500, np.int16)
    changed = anatomy.copy()
    changed[:, :, 30:] += 400
    first, second = Volume.from_array(anatomy), Volume.from_array(changed)
    viewer.show_input(first, "Input")
    viewer.view.choose(Display(0, 1000))
    viewer.show_output(second, "Output")
    assert not viewer.overlay.isVisible()
    viewer.show_output(second, "Residual", minus=first)
    switch = viewer.findChild(QToolButton, "overlay")
    opacity = viewer.findChild(QSlider, "overlayOpacity")
    assert switch is not None
    assert opacity is not None
    assert not opacity.isEnabled()
    qtbot.mouseClick(switch, LEFT)
    view = viewer.output.views[0]
    same, brighter = at(view, 0.2, 0.2), at(view, 0.9, 0.2)
    assert same.red() == same.blue() == pytest.approx(128, abs=1)
    assert brighter.red() > brighter.blue() + 50
    opacity.setValue(0)
    assert at(view, 0.9, 0.2) == same
    opacity.setValue(100)
    viewer.view.choose_look(replace(viewer.view.look, threshold=401))
    assert at(view, 0.9, 0.2) == same


def test_a_maximum_of_a_slab_is_drawn_and_named(qtbot: QtBot, shown: VolumeViewer) -> None:
    kind = shown.findChild(QComboBox, "projection")
    thickness = shown.findChild(QSpinBox, "slabSlices")
    assert kind is not None
    assert thickness is not None
    assert not thickness.isVisible()
    kind.setCurrentText(Projection.MAXIMUM)
    thickness.setValue(4)
    view, source = shown.input.views[0], shown.input.volume
    assert source is not None
    expected = shown.view.display.steps(
        shown.view.planes[0].cut(source.voxels[9:13].max(0)[None], 0)
    )
    assert np.array_equal(grey(view), expected)
    assert view.note == "Maximum of slices 10–13"
    texts: list[str] = []
    shown.described.connect(texts.append)
    column, row = shown.view.planes[0].place((10, 3, 4), SHAPE)
    view.hovered.emit(QPointF(column, row))
    assert f"(maximum {source.voxels[9:13, 3, 4].max()})" in texts[-1]


def test_a_large_slab_is_computed_elsewhere_first(
    shown: VolumeViewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "_AT_ONCE", 10)
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


def test_hovering_the_line_shows_that_it_can_be_dragged(qtbot: QtBot, shown: VolumeViewer) -> None:
    shown.view.arrange(arrangement=Arrangement.SPLIT)
    QApplication.processEvents()  # the output gets the room of the input
    view = shown.output.views[0]
    qtbot.mouseMove(view, QPoint(5, view.height() // 2))
    assert view.cursor().shape() is Qt.CursorShape.SplitVCursor
    qtbot.mouseMove(view, QPoint(5, 5))
    assert view.cursor().shape() is Qt.CursorShape.CrossCursor
