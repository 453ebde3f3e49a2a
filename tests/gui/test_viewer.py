"""Looking at pictures in the window: arrangements, levels and colours, values, overlays, tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image as Pillow
from PySide6.QtCore import QEvent, QPoint, QPointF, QSize, QSizeF, Qt
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QLabel,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.gui.model.arrangement import Arrangement, Units
from kernelscope.gui.model.colour_maps import ColourMap, table
from kernelscope.gui.model.comparison import View
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import PaneSide
from kernelscope.gui.model.drawn_view import draw
from kernelscope.gui.viewer import marks
from kernelscope.gui.viewer.layer import Layer
from kernelscope.gui.viewer.plane_canvas import PlaneCanvas
from kernelscope.gui.viewer.tools import OverlayPlace, Touch
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.image import Image
from tests.gui.helpers import Opener, child, load, press, run

LEFT, RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton


@pytest.fixture
def ran(qtbot: QtBot, window: MainWindow, picture: Path) -> MainWindow:
    """Return a window with a ramp and its inverse."""
    load(qtbot, window, picture)
    run(qtbot, window)
    return window


def colour(canvas: PlaneCanvas, x: float, y: float) -> tuple[int, int, int]:
    """Return the colour in which the middle of a pixel of the input is drawn."""
    drawn = canvas.grab().toImage()
    place = canvas.to_widget(QPointF(x + 0.5, y + 0.5)).toPoint()
    found = drawn.pixelColor(place)
    return found.red(), found.green(), found.blue()


def grey(canvas: PlaneCanvas, x: float, y: float) -> int:
    (value,) = set(colour(canvas, x, y))
    return value


def mouse(canvas: QWidget, kind: QEvent.Type, at: QPointF, button: Qt.MouseButton) -> None:
    """Send an event of the mouse: Qt's own helpers send no buttons while the mouse moves."""
    pressed = Qt.MouseButton.NoButton if kind is QEvent.Type.MouseButtonRelease else button
    place = canvas.mapToGlobal(at)
    event = QMouseEvent(kind, at, place, button, pressed, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(canvas, event)


def drag(canvas: QWidget, start: QPointF, way: QPointF, button: Qt.MouseButton) -> None:
    mouse(canvas, QEvent.Type.MouseButtonPress, start, button)
    mouse(canvas, QEvent.Type.MouseMove, start + way, button)
    mouse(canvas, QEvent.Type.MouseButtonRelease, start + way, button)
    QApplication.sendEvent(canvas, QEvent(QEvent.Type.Leave))  # no probe over the picture


def test_a_result_leaves_the_input_as_it_is_drawn(
    qtbot: QtBot, ran: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = ran.pictures.images
    pair.input.canvas.grab()
    painted = []
    real = Layer.paint

    def paint(layer: Layer, *rest: Any) -> None:
        painted.append(layer)
        real(layer, *rest)

    monkeypatch.setattr(Layer, "paint", paint)
    first = pair.output.layer
    run(qtbot, ran)
    for view in (pair.input, pair.output):
        view.canvas.grab()
    assert pair.output.layer is not first
    assert painted == [pair.output.layer]


def test_each_region_is_drawn(ran: MainWindow) -> None:
    output = ran.pictures.images.output
    for shade in (7, 200):
        part = Image.from_array(np.full((6, 8), shade, np.uint8))
        output.show_region(Region(4, 10, 6, 8), part)
        assert grey(output.canvas, 13, 6) == shade


# --- arrangements ---


def value(x: int, y: int) -> int:
    """Return the value of a pixel of the ramp; the output has 255 minus that."""
    return 4 * y + x


def test_dragging_beside_the_line_moves_the_picture(qtbot: QtBot, ran: MainWindow) -> None:
    press(qtbot, ran, "Alt+2")
    canvas = ran.pictures.images.output.canvas
    centre, scale = canvas.camera
    drag(canvas, QPointF(canvas.width() / 2 + 30, 40), QPointF(-24, 8), LEFT)
    moved = canvas.camera[0] - centre
    assert (moved.x() * scale, moved.y() * scale) == pytest.approx((24, -8))
    assert canvas.divide == 0.5


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


def test_residuals_have_diverging_colours(qtbot: QtBot, ran: MainWindow) -> None:
    press(qtbot, ran, "F3")
    drawing = ran.session.pictures.drawing
    qtbot.waitUntil(lambda: ran.session.pictures.drawing.view is View.RESIDUAL)
    drawing = ran.session.pictures.drawing
    canvas = ran.pictures.images.output.canvas
    colours = table(ColourMap.DIVERGING)
    for x, y in ((3, 3), (20, 15), (38, 28)):
        assert colour(canvas, x, y) == tuple(colours[drawing.image.pixels[y, x]])
    assert len({colour(canvas, 20, y) for y in (0, 15, 29)}) == 3
    ran.viewer.show_controls()
    child(ran.viewer.panel, QComboBox, "displayDifference").setCurrentText("Grey")
    assert grey(canvas, 20, 15) == drawing.image.pixels[15, 20]


def test_residuals_of_floats_beyond_0_to_1_are_seen() -> None:
    random = np.random.default_rng(6)
    source = (random.random((60, 50)) * 85 - 20).astype(np.float32)
    change = random.normal(0, 4, source.shape).astype(np.float32)
    request = Request.create(Image.from_array(source), "mean", {"size": 3})
    result = Result(request, Image.from_array(source + change), "cpu", "serial", ())
    drawing = draw(View.RESIDUAL, result, None, None)
    width = Display.automatic(source[:, :, None]).width
    expected = np.rint(128 + drawing.gain * 255 / width * change.astype(float)).clip(0, 255)
    assert np.abs(drawing.image.pixels - expected).max() <= 1
    assert 0.001 < ((expected == 0) | (expected == 255)).mean() + 0.01 < 0.02
    limit = 127 / 255 * width / drawing.gain
    title = drawing.title(result.image)
    assert title == f"Residual: output – input, ×{drawing.gain}, up to ±{limit:.3g}"


def test_buttons_without_room_are_in_a_menu(
    qtbot: QtBot, window: MainWindow, picture: Path
) -> None:
    load(qtbot, window, picture)
    swipe, use = (window.findChild(QWidget, f"{name}Button") for name in ("swipe", "reuse"))
    more = window.findChild(QToolButton, "moreButton")

    def offered() -> list[str]:
        return [each.objectName() for each in more.menu().actions() if each.objectName()]

    window.resize(1280, 720)
    qtbot.waitUntil(lambda: swipe.isVisible() and use.isVisible() and not more.isVisible())
    assert offered() == []
    window.resize(900, 640)
    qtbot.waitUntil(lambda: not swipe.isVisible())
    assert use.isVisible()
    assert more.isVisible()
    assert "swipe" in offered()
    assert "reuse" not in offered()
    window.docks[DockName.FILTERS].show()
    window.resize(window.minimumSizeHint())
    qtbot.waitUntil(lambda: not use.isVisible())
    assert {"swipe", "reuse", "undo", "redo"} <= set(offered())
    (action,) = (each for each in more.menu().actions() if each.objectName() == "swipe")
    action.trigger()
    assert window.pictures.images.view.panes.arrangement is Arrangement.SWIPE
    window.docks[DockName.FILTERS].hide()
    window.resize(1280, 720)
    qtbot.waitUntil(lambda: swipe.isVisible() and not more.isVisible())


# --- levels and colours ---


@pytest.fixture
def scan(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> MainWindow:
    """Return a window with floats from -20 to 65, and their output."""
    ramp = np.linspace(-20, 65, 30 * 40).reshape(30, 40).astype(np.float32)
    tifffile.imwrite(tmp_path / "scan.tif", ramp)
    load(qtbot, window, tmp_path / "scan.tif")
    run(qtbot, window)
    return window


def test_scientific_pictures_are_seen_when_they_are_opened(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    pixels = np.linspace(0, 4080, 30 * 40).reshape(30, 40).astype(np.uint16)
    tifffile.imwrite(tmp_path / "microscope.tif", pixels)
    load(qtbot, window, tmp_path / "microscope.tif")
    view = window.pictures.images.input
    shown = [grey(view.canvas, x, y) for x, y in ((0, 0), (20, 15), (39, 29))]
    assert shown[0] == 0
    assert 120 < shown[1] < 140
    assert shown[2] == 255
    np.testing.assert_array_equal(view.image.pixels, pixels)
    view.canvas.hovered.emit(QPointF(20.5, 15.5))
    display = Display.automatic(pixels[:, :, None])
    text = child(window, QLabel, "pixel").text()
    assert text == f"x 20, y 15   input {pixels[15, 20]}   {display.describe()}"


def test_output_is_drawn_as_the_input_unless_it_is_unlinked(qtbot: QtBot, scan: MainWindow) -> None:
    pair = scan.pictures.images
    pair.view.choose_display(PaneSide.OUTPUT, Display(0, 100))
    assert pair.view.displays.of(PaneSide.INPUT) == Display(0, 100)
    assert scan.actions_["linkDisplays"].isChecked()
    scan.actions_["linkDisplays"].trigger()
    own = Display.automatic(pair.output.image.planes)
    assert pair.view.displays.of(PaneSide.OUTPUT) == own
    pair.view.choose_display(PaneSide.OUTPUT, Display(150, 300, 0.5))
    assert pair.view.displays.of(PaneSide.INPUT) == Display(0, 100)
    shown = pair.output.image.pixels[9:10, 9:10]
    assert grey(pair.output.canvas, 9, 9) == Display(150, 300, 0.5).steps(shown)
    pair.output.canvas.hovered.emit(QPointF(9.5, 9.5))
    text = child(scan, QLabel, "pixel").text()
    assert text.endswith("input: display 0..100, output: display 150..300, gamma 0.5")


def test_a_display_belongs_to_its_picture(qtbot: QtBot, scan: MainWindow, picture: Path) -> None:
    pair = scan.pictures.images
    chosen = Display(-5, 40, 2, ColourMap.MAGMA)
    pair.view.choose_display(PaneSide.INPUT, chosen)
    press(qtbot, scan, "Ctrl+U")  # its results keep it
    qtbot.waitUntil(lambda: pair.output.image is None)
    assert pair.view.displays.of(PaneSide.INPUT) == chosen
    load(qtbot, scan, picture)
    assert pair.view.displays.of(PaneSide.INPUT) == Display(0, 255)
    for _ in range(2):
        press(qtbot, scan, "Ctrl+Z")
    qtbot.waitUntil(lambda: pair.input.image.title == "scan.tif" and pair.output.image is not None)
    assert pair.view.displays.of(PaneSide.INPUT) == chosen


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
    canvas = window.pictures.images.input.canvas
    assert colour(canvas, 7, 8) == tuple(255 - pixels[8, 7])


# --- values ---


def test_units_of_values(ran: MainWindow) -> None:
    for action, before, after in (
        ("unitsStored", "60", "195"),
        ("unitsBytes", "60", "195"),
        ("unitsShare", "0.2353", "0.7647"),
    ):
        ran.actions_[action].trigger()
        ran.pictures.images.input.canvas.hovered.emit(QPointF(20.5, 10.5))
        assert child(ran, QLabel, "pixel").text() == f"x 20, y 10   input {before}   output {after}"


def test_units_of_16_bits(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "deep.tif", np.full((9, 9), 13107, np.uint16))
    load(qtbot, window, tmp_path / "deep.tif")
    window.actions_["unitsBytes"].trigger()
    window.pictures.images.input.canvas.hovered.emit(QPointF(2, 2))
    assert "input 51 " in child(window, QLabel, "pixel").text() + " "


def test_grid_and_values_from_2000_percent(qtbot: QtBot, ran: MainWindow) -> None:
    pair = ran.pictures.images
    canvas = pair.input.canvas

    def colours(scale: float) -> set[int]:
        pair.look_at(QPointF(20, 15), scale)
        corner = canvas.to_widget(QPointF(20, 15)).toPoint()
        side = round(scale)
        cell = canvas.grab().toImage().copy(corner.x() + 1, corner.y() + 1, side - 2, side - 2)
        return {cell.pixelColor(x, y).red() for x in range(side - 2) for y in range(side - 2)}

    def line(scale: float) -> int:
        pair.look_at(QPointF(20, 15), scale)
        corner = canvas.to_widget(QPointF(20, 15)).toPoint()
        return canvas.grab().toImage().pixelColor(corner + QPoint(0, round(scale / 2))).red()

    assert line(19) == value(20, 15)
    assert line(20) != value(20, 15)
    assert colours(19) == {value(20, 15)}
    assert len(colours(40)) > 5  # digits
    assert marks.value_font(ran.font(), ["65535"], 1, QSizeF(20, 20)) is None  # unreadable
    assert marks.value_font(ran.font(), ["65535"], 1, QSizeF(40, 40)) is not None


def test_cells_of_a_residual_have_the_change(qtbot: QtBot, ran: MainWindow) -> None:
    ran.set_view("residual")
    pair = ran.pictures.images
    qtbot.waitUntil(lambda: pair.output.layer is not None and pair.output.layer.minus is not None)
    cells: Any = pair.output.canvas.values
    assert cells(pair.output.layer, 20, 10) == ["+135"]
    assert cells(pair.output.layer, 39, 29) == ["-55"]
    assert cells(pair.input.layer, 20, 10) == ["60"]
    assert cells(pair.input.layer, 40, 10) == []


# --- overlays and tools ---


class Frame:
    """An overlay: a filled square from (10, 10) to (14, 14)."""

    def __init__(self) -> None:
        self.places: list[OverlayPlace] = []

    def paint(self, painter: QPainter, place: OverlayPlace) -> None:
        self.places.append(place)
        painter.setPen(QPen(Qt.PenStyle.NoPen))
        painter.setBrush(QColor("#00ff00"))
        painter.drawRect(10, 10, 4, 4)


class Pencil:
    """A tool that keeps its arguments."""

    cursor = Qt.CursorShape.PointingHandCursor

    def __init__(self, wanted: bool = True) -> None:
        self.wanted = wanted
        self.seen: list[tuple[str, float, float, str]] = []

    def _note(self, kind: str, touch: Touch) -> None:
        x, y = round(touch.point.x(), 6), round(touch.point.y(), 6)
        self.seen.append((kind, x, y, touch.side.value))

    def press(self, touch: Touch) -> bool:
        self._note("press", touch)
        return self.wanted

    def drag(self, touch: Touch) -> None:
        self._note("drag", touch)

    def release(self, touch: Touch) -> None:
        self._note("release", touch)

    def hover(self, touch: Touch) -> None:
        pass

    def key(self, event: QKeyEvent, plane: int | None = None) -> bool:
        self.seen.append(("key", event.key(), 0, ""))
        return event.key() == Qt.Key.Key_Delete


def test_overlays_are_drawn_in_picture_coordinates(ran: MainWindow) -> None:
    pair = ran.pictures.images
    overlay = Frame()
    pair.add_overlay(overlay)
    for look in (pair.fit, lambda: pair.look_at(QPointF(12, 13), 9)):
        look()
        for view in (pair.input, pair.output):
            assert colour(view.canvas, 10, 10) == colour(view.canvas, 13, 13) == (0, 255, 0)
            assert len(set(colour(view.canvas, 14, 10))) == 1
            assert len(set(colour(view.canvas, 10, 9))) == 1
    assert {place.side for place in overlay.places} == {PaneSide.INPUT, PaneSide.OUTPUT}
    assert overlay.places[-1].scale == 9


def test_tool_takes_the_left_button(qtbot: QtBot, ran: MainWindow) -> None:
    pair = ran.pictures.images
    pair.look_at(QPointF(20, 15), 8)
    pencil = Pencil()
    pair.set_tool(pencil)
    canvas = pair.output.canvas
    before = canvas.camera
    drag(canvas, canvas.to_widget(QPointF(18, 12)), QPointF(16, 24), LEFT)
    assert pencil.seen == [
        ("press", 18, 12, "output"),
        ("drag", 20, 15, "output"),
        ("release", 20, 15, "output"),
    ]
    assert canvas.camera == before
    assert canvas.cursor().shape() == Qt.CursorShape.PointingHandCursor
    qtbot.keyClick(canvas, Qt.Key.Key_Delete)
    qtbot.keyClick(canvas, Qt.Key.Key_Left)  # not for the tool: pans
    assert canvas.camera != before
    pencil.wanted = False
    before = canvas.camera
    drag(canvas, QPointF(50, 50), QPointF(16, 24), LEFT)
    assert canvas.camera != before
    pair.set_tool(None)
    pencil.seen.clear()
    drag(canvas, QPointF(50, 50), QPointF(16, 24), LEFT)
    assert pencil.seen == []


# --- camera ---


def test_actual_size_keeps_the_picture_in_view(qtbot: QtBot, ran: MainWindow) -> None:
    pair = ran.pictures.images
    pair.look_at(QPointF(1, 29), 64)
    press(qtbot, ran, "Ctrl+1")
    assert pair.view.camera.scale * ran.devicePixelRatioF() == 1
    for view in (pair.input, pair.output):
        assert view.canvas.seen().contains(view.layer.area)
    pair.look_at(QPointF(1, 29), 64)
    for _ in range(12):
        press(qtbot, ran, "Ctrl+-")
    assert pair.visible() == pair.input.layer.area


def test_double_click_fits(ran: MainWindow) -> None:
    pair = ran.pictures.images
    fitted = pair.view.camera.scale
    pair.look_at(QPointF(1, 29), 64)
    mouse(pair.input.canvas, QEvent.Type.MouseButtonDblClick, QPointF(60, 60), LEFT)
    assert pair.view.camera.fitted
    assert pair.view.camera.scale == fitted


def test_moves_of_the_camera_are_reported(qtbot: QtBot, ran: MainWindow) -> None:
    pair = ran.pictures.images
    with qtbot.waitSignal(pair.zoomed):
        pair.look_at(QPointF(20, 15), 40)
    seen = pair.visible()
    assert seen.contains(QPointF(20, 15))
    assert seen.width() == pytest.approx(pair.output.canvas.width() / 40, abs=1 / 40)
    with qtbot.waitSignal(pair.zoomed):
        pair.output.canvas.panned.emit(QPointF(2, 0))
    assert pair.visible().x() == pytest.approx(seen.x() + 2)


def test_headers_are_level_with_names_in_other_scripts(
    qtbot: QtBot, window: MainWindow, picture: Path, tmp_path: Path
) -> None:
    name = tmp_path / "画像 ภาพ.png"
    name.write_bytes(picture.read_bytes())
    load(qtbot, window, name)
    run(qtbot, window)
    pair = window.pictures.images
    tops = {view.canvas.mapTo(window, QPoint(0, 0)).y() for view in (pair.input, pair.output)}
    assert len(tops) == 1
    sizes: set[QSize] = {view.canvas.size() for view in (pair.input, pair.output)}
    assert len({size.height() for size in sizes}) == 1
