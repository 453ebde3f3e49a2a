"""Looking at pictures in the window: arrangements, levels and colours, values, overlays, tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.gui.model.comparison import View
from kernelscope.gui.model.display import ColourMap, Display, Units
from kernelscope.gui.model.drawn_view import draw
from kernelscope.gui.viewer import marks
from kernelscope.gui.viewer.layer import Layer
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.image import Image
from tests.gui.helpers import Opener, child, hover, load, press, run
from tests.gui.test_looking import colour, grey


@pytest.fixture
def ran(qtbot: QtBot, window: MainWindow, picture: Path) -> MainWindow:
    """Return a window with a ramp and its inverse."""
    load(qtbot, window, picture)
    run(qtbot, window)
    return window


def test_a_result_leaves_the_input_as_it_is_drawn(
    qtbot: QtBot, ran: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = ran.pictures.canvas
    pair.input.views[0].grab()
    painted = []
    real = Layer.paint

    def paint(layer: Layer, *rest: Any) -> None:
        painted.append(layer)
        real(layer, *rest)

    monkeypatch.setattr(Layer, "paint", paint)
    first = pair.output.views[0].front
    run(qtbot, ran)
    for view in (pair.input, pair.output):
        view.views[0].grab()
    assert pair.output.views[0].front is not first
    assert painted == [pair.output.views[0].front]


def test_each_region_is_drawn(ran: MainWindow) -> None:
    pair = ran.pictures.canvas
    for shade in (7, 200):
        part = Image.from_array(np.full((6, 8), shade, np.uint8))
        pair.show_region(Region(4, 10, 6, 8), part, 0)
        assert grey(pair.output.views[0], 13, 6) == shade


def test_the_input_is_around_a_part_until_there_is_an_output(loaded: MainWindow) -> None:
    """It was so dark that a large picture could not be judged before the whole run."""
    pair = loaded.pictures.canvas
    assert pair.output.is_empty
    pair.show_region(Region(4, 10, 6, 8), Image.from_array(np.full((6, 8), 7, np.uint8)), 0)
    view = pair.output.views[0]
    assert grey(view, 30, 20) == grey(pair.input.views[0], 30, 20)
    assert grey(view, 13, 6) == 7
    assert loaded.session.pictures.result is None


@pytest.mark.parametrize("keys", ["Ctrl+1", "Ctrl++", "Ctrl+-"])
def test_commands_magnify_about_the_pointer(
    qtbot: QtBot, loaded: MainWindow, tmp_path: Path, keys: str
) -> None:
    """Actual size went to the middle of the picture, and not to the face under the pointer."""
    Pillow.new("L", (4000, 3000)).save(tmp_path / "large.png")
    load(qtbot, loaded, tmp_path / "large.png")
    view = loaded.pictures.canvas.output.views[0]
    loaded.pictures.canvas.look_at(QPointF(2000, 1500), 0.5)
    at = QPointF(60.5, 50.5)
    hover(view, view.to_scene(at))
    before = view.to_units(at)
    press(qtbot, loaded, keys)
    after = view.to_units(at)
    assert loaded.session.pictures.view.camera.scale != 0.5
    assert (after - before).manhattanLength() < 4, "within the pixel under the pointer"
    hover(view, None)
    middle = loaded.session.pictures.view.camera.centre()
    press(qtbot, loaded, keys)
    assert loaded.session.pictures.view.camera.centre() == pytest.approx(middle)


# --- arrangements ---


def test_live_parts_begin_where_the_output_does(qtbot: QtBot, ran: MainWindow) -> None:
    view = ran.session.pictures.view
    column, row = view.output_from
    assert max(column, row) < 0
    press(qtbot, ran, "Alt+2")
    canvas = ran.pictures.canvas.output.views[0]
    column, row = view.output_from
    assert row < 0
    assert column == pytest.approx(canvas.to_scene(QPointF(canvas.width() / 2, 0)).x(), abs=0.2)
    view.set_divide(0.75)
    assert view.output_from[0] > column
    press(qtbot, ran, "Alt+3")
    column, row = view.output_from
    assert column < 0 < row


def test_arrangement_and_units_are_remembered(qtbot: QtBot, open_window: Opener) -> None:
    first = open_window()
    first.viewer.arrange("swipe")
    first.viewer.choose_units("0 to 1")
    first.viewer.toggle_probe()
    second = open_window()
    assert second.actions_["swipe"].isChecked()
    assert second.actions_["unitsShare"].isChecked()
    assert second.session.volumes.view.panes.units is Units.SHARE
    assert not second.actions_["probe"].isChecked()


def test_residuals_of_floats_beyond_0_to_1_are_seen() -> None:
    random = np.random.default_rng(6)
    source = (random.random((60, 50)) * 85 - 20).astype(np.float32)
    change = random.normal(0, 4, source.shape).astype(np.float32)
    request = Request.create(Image.from_array(source), "mean", {"size": 3})
    result = Result(request, Image.from_array(source + change), "cpu", "serial", ())
    drawing = draw(View.RESIDUAL, result, None, None)
    width = Display.automatic(source[:, :, None]).width
    expected = np.rint(128 + drawing.gain * 255 / width * change.astype(float)).clip(0, 255)
    assert np.abs(drawing.change.pixels - expected).max() <= 1
    assert 0.001 < ((expected == 0) | (expected == 255)).mean() + 0.01 < 0.02
    limit = 127 / 255 * width / drawing.gain
    title = drawing.title
    assert title == f"Residual: output – input, ×{drawing.gain}, up to ±{limit:.3g}"


def test_buttons_without_room_are_in_a_menu(qtbot: QtBot, loaded: MainWindow) -> None:
    reuse, alone = (loaded.findChild(QWidget, f"{name}Button") for name in ("reuse", "outputAlone"))
    row = reuse.parentWidget()
    more = row.findChild(QToolButton, "qt_toolbar_ext_button")
    loaded.resize(1280, 720)
    qtbot.waitUntil(lambda: reuse.isVisible() and not more.isVisible())
    run(qtbot, loaded)
    loaded.resize(710, 640)
    qtbot.waitUntil(lambda: not reuse.isVisible())
    assert alone.isVisible(), "the arrangement stays"
    assert more.isVisible()
    (action,) = (each for each in more.menu().actions() if each.objectName() == "reuse")
    output = loaded.pictures.canvas.output.shown
    action.trigger()
    qtbot.waitUntil(lambda: loaded.pictures.canvas.input.shown is output)
    loaded.resize(1280, 720)
    qtbot.waitUntil(lambda: reuse.isVisible() and not more.isVisible())


# --- levels and colours ---


def test_a_picture_in_colour_can_only_be_inverted(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    pixels = np.random.default_rng(4).integers(0, 256, (30, 40, 3), np.uint8)
    Pillow.fromarray(pixels).save(tmp_path / "colour.png")
    load(qtbot, window, tmp_path / "colour.png")
    window.viewer.show_controls()
    box = child(window.viewer.panel, QComboBox, "displayMap")
    enabled = [box.model().item(row).isEnabled() for row in range(box.count())]
    assert enabled == [each.is_grey for each in ColourMap]
    box.setCurrentText(ColourMap.INVERTED)
    canvas = window.pictures.canvas.input.views[0]
    assert colour(canvas, 7, 8) == tuple(255 - pixels[8, 7])


# --- values ---


def test_values_at_the_cursor_fit_a_narrow_view(qapp: QApplication) -> None:
    """The place pushed them out of a plane of 150 pixels."""

    def drawn(value: str) -> QImage:
        image = QImage(150, 120, QImage.Format.Format_RGB32)
        image.fill(0)
        painter = QPainter(image)
        place = marks.ProbeLine("x 81, y 40, z 48   (81.0, -40.0, 48.0) mm", "")
        lines = (place, marks.ProbeLine("input", value, True))
        marks.draw_chip(painter, QRectF(40, 20, 1, 1), QRectF(4, 4, 142, 112), lines)
        painter.end()
        return image

    assert drawn("153.2") != drawn("99.9")
