"""Looking at a picture and at a volume: each story is one for both."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPen
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QLabel,
    QPushButton,
    QSlider,
    QToolButton,
)
from pytestqt.qtbot import QtBot

from kernelscope.gui.model.display import (
    Arrangement,
    ColourMap,
    Display,
    PaneSide,
    full_of,
    samples_of,
    table,
)
from kernelscope.gui.model.figure import FigurePart
from kernelscope.gui.viewer.pair_view import PairView
from kernelscope.gui.viewer.plane_canvas import PlaneCanvas
from kernelscope.gui.viewer.region_tool import Touch
from kernelscope.gui.widgets.controls import NumberBox
from kernelscope.gui.widgets.parts import SnugLabel
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.schema.samples import Kind
from tests.gui.helpers import (
    HEIGHT,
    WIDTH,
    child,
    drag,
    hover,
    load,
    press,
    run,
    wait_until,
    wheel,
    write_picture,
)
from tests.gui.test_volume_page import open_scan, write

LEFT, RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton
SHIFT, CTRL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier


class Looked:
    """A window with an input and its output, seen in one plane each."""

    def __init__(self, window: MainWindow, before: np.ndarray) -> None:
        self.window = window
        self.before = self.after = before
        """The samples as they lie on the screen."""

    @property
    def viewer(self) -> PairView:
        return self.window.page.canvas

    @property
    def view(self) -> Any:
        return self.window.session.subject.view

    @property
    def input(self) -> PlaneCanvas:
        return self.viewer.input.views[0]

    @property
    def output(self) -> PlaneCanvas:
        return self.viewer.output.views[0]

    @property
    def pixel(self) -> str:
        """The text at the cursor, in the status bar."""
        return child(self.window, SnugLabel, "pixel").full_text

    def step(self, samples: np.ndarray, x: int, y: int) -> int:
        """Return the step in which a sample is drawn as the input is."""
        return int(self.view.display.steps(samples[y : y + 1, x : x + 1])[0, 0])


def colour(canvas: PlaneCanvas, x: float, y: float) -> tuple[int, int, int]:
    """Return the colour of a pixel, read above its middle, where no crosshair is."""
    place = canvas.to_widget(QPointF(x + 0.3, y + 0.3)).toPoint()
    found = canvas.grab().toImage().pixelColor(place)
    return found.red(), found.green(), found.blue()


def grey(canvas: PlaneCanvas, x: float, y: float) -> int:
    (value,) = set(colour(canvas, x, y))
    return value


@pytest.fixture(params=["picture", "volume"])
def opened(
    request: pytest.FixtureRequest, qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> Looked:
    """Return a ramp, not filtered yet."""
    if request.param == "picture":
        load(qtbot, window, write_picture(tmp_path / "ramp.png"))
        source = window.session.pictures.source
        assert source is not None
        made = Looked(window, source.pixels)
    else:
        y, x = np.mgrid[:HEIGHT, :WIDTH]
        voxels = np.stack([4 * y + x] * 3).astype(np.int16)
        open_scan(qtbot, window, write(tmp_path / "ramp.nii", voxels, np.diag([1.0, 1, 1, 1])))
        window.volumes.canvas.choose_plane(0)
        volumes = window.session.volumes
        made = Looked(window, volumes.view.planes[0].cut(volumes.part.voxels, 1))
    QApplication.processEvents()
    return made


@pytest.fixture
def looked(qtbot: QtBot, opened: Looked) -> Looked:
    """Return a ramp and what the test's backend makes of it."""
    run(qtbot, opened.window)
    output = opened.window.session.subject.shown_output
    assert output is not None
    plane = next(iter(opened.view.planes), None)
    opened.after = samples_of(output, plane, (1, 0, 0))[:, :, 0]
    QApplication.processEvents()
    return opened


def one_plane_is_divided_by_a_line(qtbot: QtBot, looked: Looked, key: str, action: str) -> None:
    window, canvas = looked.window, looked.output
    press(qtbot, window, key)
    QApplication.processEvents()
    assert window.actions_[action].isChecked()
    assert not looked.viewer.input.isVisible()
    assert canvas.names == ("Input", "Output")
    first, second = ((5, 20), (35, 20)) if action == "swipe" else ((35, 5), (35, 25))
    assert grey(canvas, *first) == looked.step(looked.before, *first)
    assert grey(canvas, *second) == looked.step(looked.after, *second)
    middle = QPointF(canvas.width() / 2, canvas.height() / 2)
    end = canvas.to_widget(QPointF(38, 28))
    way = (
        QPointF(end.x() - middle.x(), 0) if action == "swipe" else QPointF(0, end.y() - middle.y())
    )
    camera = canvas.camera
    drag(canvas, middle, way, LEFT)
    assert grey(canvas, *second) == looked.step(looked.before, *second)
    assert canvas.camera == camera, "the line was dragged, not the picture or the crosshair"
    looked.view.set_divide(0.5)
    before = canvas.camera, canvas.cross
    beside = QPointF(40, 8) if action == "swipe" else QPointF(8, 60)
    drag(canvas, middle + QPointF(30, 40), beside, LEFT)
    assert looked.view.divide == 0.5
    assert (canvas.camera, canvas.cross) != before
    looked.viewer.fit()
    canvas.setFocus()
    qtbot.keyClick(canvas, Qt.Key.Key_BracketRight)
    assert looked.view.divide == canvas.divide == pytest.approx(0.52)
    for _ in range(40):
        qtbot.keyClick(canvas, Qt.Key.Key_BracketLeft)
    assert looked.view.divide == 0
    assert grey(canvas, *first) == looked.step(looked.after, *first)
    for name in ("Residual", "Output"):
        window.actions_[f"view{name}"].trigger()
        wait_until(qtbot, lambda name=name: canvas.names == ("Input", name))
    press(qtbot, window, "Alt+1")
    assert looked.viewer.input.isVisible()
    looked.view.set_divide(0.5)


def output_alone_takes_all_the_room_and_a_line_can_be_dragged(qtbot: QtBot, looked: Looked) -> None:
    before = looked.output.width()
    press(qtbot, looked.window, "Alt+4")
    qtbot.waitUntil(lambda: looked.output.width() > 1.5 * before)
    assert not looked.viewer.input.isVisible()
    assert grey(looked.output, 5, 5) == looked.step(looked.after, 5, 5)

    press(qtbot, looked.window, "Alt+3")
    QApplication.processEvents()  # the output gets the room of the input
    canvas = looked.output
    qtbot.mouseMove(canvas, QPoint(5, canvas.height() // 2))
    assert canvas.cursor().shape() is Qt.CursorShape.SplitVCursor
    qtbot.mouseMove(canvas, QPoint(5, 5))
    assert canvas.cursor().shape() is Qt.CursorShape.CrossCursor

    looked.window.viewer.arrange("split")
    for subject in looked.window.session.subjects:
        assert subject.view.panes.arrangement is Arrangement.SPLIT
    press(qtbot, looked.window, "Alt+1")


def space_shows_the_input_while_it_is_held(qtbot: QtBot, looked: Looked) -> None:
    canvas = looked.output
    before, after = (looked.step(each, 9, 20) for each in (looked.before, looked.after))
    canvas.setFocus()
    qtbot.keyPress(canvas, Qt.Key.Key_Space)
    assert (grey(canvas, 9, 20), canvas.name) == (before, "Input")
    assert looked.window.actions_["inputInstead"].isChecked()
    qtbot.keyRelease(canvas, Qt.Key.Key_Space)
    assert (grey(canvas, 9, 20), canvas.name) == (after, "")
    qtbot.keyPress(canvas, Qt.Key.Key_Space)
    looked.input.setFocus()  # the release would go elsewhere
    assert grey(canvas, 9, 20) == after
    press(qtbot, looked.window, "Ctrl+I")
    assert grey(canvas, 9, 20) == before
    press(qtbot, looked.window, "Ctrl+I")


def wheel_keys_and_the_middle_button_move_the_camera(qtbot: QtBot, looked: Looked) -> None:
    zoom = child(looked.window, QLabel, "zoom")
    fitted = looked.view.camera.device_scale
    assert zoom.text() == f"{100 * fitted:.0f} %"
    at = QPointF(60, 50)
    under = looked.output.to_units(at)
    wheel(looked.output, 3 * 120, CTRL, at)
    assert looked.view.camera.device_scale == round(looked.view.camera.device_scale) > fitted
    assert (looked.output.to_units(at) - under).manhattanLength() < 1e-9
    assert looked.input.camera == looked.output.camera
    assert zoom.text() == f"{100 * looked.view.camera.device_scale:.0f} %"
    seen = looked.view.seen
    assert seen[2] - seen[0] < WIDTH
    if looked.window.session.kind is Kind.PICTURE:  # in a slice, all planes are shown again
        qtbot.mouseDClick(looked.input, LEFT, pos=QPoint(60, 60))
        assert looked.view.camera.fitted
        wheel(looked.output, 3 * 120, CTRL, at)
    press(qtbot, looked.window, "Ctrl+0")
    assert looked.view.camera.fitted
    assert looked.view.camera.device_scale == fitted

    canvas = looked.output
    for _ in range(3):
        looked.viewer.zoom_in()
    centre, scale = canvas.camera
    canvas.setFocus()
    qtbot.keyClick(canvas, Qt.Key.Key_Right, CTRL)
    moved = canvas.camera[0] - centre
    assert (moved.x() * scale, moved.y()) == pytest.approx((canvas.width() / 10, 0))
    drag(canvas, QPointF(60, 60), QPointF(9999, 9999), Qt.MouseButton.MiddleButton)
    assert looked.input.camera[0] == QPointF(0, 0), "a corner stays in the view"

    viewer = looked.viewer
    viewer.look_at(QPointF(1, 29), 64)
    press(qtbot, looked.window, "Ctrl+1")
    for each in (looked.input, looked.output):
        assert each.seen().contains(QRectF(0, 0, WIDTH, HEIGHT))
    viewer.look_at(QPointF(1, 29), 64)
    for _ in range(12):
        press(qtbot, looked.window, "Ctrl+-")
    assert looked.view.seen == pytest.approx((0, 0, WIDTH, HEIGHT))

    viewer = looked.viewer
    with qtbot.waitSignal(viewer.zoomed):
        viewer.look_at(QPointF(20, 15), 40)
    left, top, right, bottom = looked.view.seen
    assert left < 20 < right
    assert top < 15 < bottom
    assert right - left == pytest.approx(looked.output.width() / 40, abs=1 / 40)
    with qtbot.waitSignal(viewer.zoomed):
        looked.output.pair.pan(0, QPointF(2, 0))
    assert looked.view.seen[0] == pytest.approx(left + 2)
    viewer.fit()


def the_probe_moves_by_keys_and_names_the_values_of_all(qtbot: QtBot, looked: Looked) -> None:
    canvas = looked.output
    canvas.setFocus()
    qtbot.keyClick(canvas, Qt.Key.Key_Right, SHIFT)
    assert canvas.probe is not None
    x, y = canvas.probe.x, canvas.probe.y
    qtbot.keyClick(canvas, Qt.Key.Key_Up, SHIFT)
    qtbot.keyClick(canvas, Qt.Key.Key_Left, SHIFT | CTRL)
    assert (canvas.probe.x, canvas.probe.y) == (x - 10, y - 1)
    for _ in range(5):
        qtbot.keyClick(canvas, Qt.Key.Key_Left, SHIFT | CTRL)
    assert canvas.probe.x == 0
    hover(looked.input, QPointF(WIDTH + 0.5, 3))
    assert canvas.probe is None, "there is no pixel beside the input"

    looked.window.use_input_as_reference()
    hover(looked.input, QPointF(20.5, 10.5))
    before, after = looked.before[10, 20], looked.after[10, 20]
    expected = [("input", f"{before}"), ("output", f"{after}"), ("reference", f"{before}")]
    for canvas in (looked.input, looked.output):
        probe = canvas.probe
        assert probe is not None
        assert (probe.x, probe.y) == (20, 10)
        assert [(line.name, line.value) for line in probe.lines if line.value] == expected
        assert [line.name for line in probe.lines if line.bold] == [canvas.side.value]
    assert f"input {before}   output {after}   reference {before}" in looked.pixel
    white = looked.window.session.subject.part.levels.span
    for units, factor in (("Bytes", 255 / white), ("Share", 1 / white)):
        looked.window.actions_[f"units{units}"].trigger()
        hover(looked.input, QPointF(20.5, 10.5))
        assert f"input {before * factor:.4g}   output {after * factor:.4g}" in looked.pixel
    looked.window.actions_["unitsStored"].trigger()
    press(qtbot, looked.window, "Ctrl+Shift+I")
    assert looked.output.probe is not None
    assert looked.output.probe.lines == ()
    hover(looked.input, None)
    assert looked.output.probe is None
    press(qtbot, looked.window, "Ctrl+Shift+I")


def the_magnifier_enlarges_in_both(qtbot: QtBot, looked: Looked) -> None:
    looked.viewer.look_at(QPointF(20, 15), 4)
    press(qtbot, looked.window, "Ctrl+M")
    hover(looked.input, QPointF(20.5, 15.5))
    for canvas, samples in ((looked.input, looked.before), (looked.output, looked.after)):
        drawn, middle = canvas.grab().toImage(), canvas.point_of(20, 15)
        for step in (-1, 0, 1):  # each is four times as large as around the magnifier
            place = middle + QPointF(4 * canvas.cell.width() * step, 3)
            seen = drawn.pixelColor(place.toPoint()).red()
            assert seen == looked.step(samples, 20 + step, 15)
    hover(looked.input, None)
    press(qtbot, looked.window, "Ctrl+M")
    looked.viewer.fit()


def values_stand_in_the_pixels_from_2000_percent(_: QtBot, looked: Looked) -> None:
    cells: Callable[..., list[str]] = looked.output.pair.cell
    assert cells(looked.input.front, 20, 10) == [f"{looked.before[10, 20]}"]
    assert cells(looked.output.front, 20, 10) == [f"{looked.after[10, 20]}"]
    for scale, written in ((16, False), (40, True)):
        looked.viewer.look_at(QPointF(10, 10), scale)
        canvas = looked.input
        corner = canvas.to_widget(QPointF(11, 11)).toPoint()
        cell = canvas.grab().toImage().copy(corner.x() + 1, corner.y() + 1, scale - 2, scale - 2)
        colours = {cell.pixelColor(x, y).red() for x in range(scale - 2) for y in range(scale - 2)}
        assert (len(colours) > 3) is written
    looked.viewer.fit()


def the_right_button_and_one_panel_change_levels_and_colours(qtbot: QtBot, looked: Looked) -> None:
    before = looked.view.display
    place = looked.input.camera, looked.input.cross
    drag(looked.input, QPointF(50, 50), QPointF(30, 0), RIGHT)
    wider = looked.view.display
    assert wider.width == pytest.approx(1.1 * before.width)
    assert wider.level == pytest.approx(before.level)
    drag(looked.output, QPointF(50, 80), QPointF(0, -60), RIGHT)
    assert looked.view.display.level == pytest.approx(wider.level - 0.2 * wider.width)
    assert (looked.input.camera, looked.input.cross) == place
    assert grey(looked.input, 16, 12) == looked.step(looked.before, 16, 12)
    press(qtbot, looked.window, "Ctrl+L")
    assert looked.view.display == before
    assert looked.view.displays.is_automatic(PaneSide.INPUT)
    press(qtbot, looked.window, "Ctrl+Shift+L")
    assert looked.view.display == full_of(looked.window.session.subject.part)

    press(qtbot, looked.window, "Ctrl+D")
    panel, view = looked.window.viewer.panel, looked.view
    low, high, level, gamma = (
        child(panel, NumberBox, f"display{name}") for name in ("Low", "High", "Level", "Gamma")
    )
    low.setValue(20)
    high.setValue(120)
    assert view.display == Display(20, 120)
    assert level.value() == 70
    gamma.setValue(0.5)
    child(panel, QComboBox, "displayMap").setCurrentText("Viridis")
    display = Display(20, 120, 0.5, ColourMap.VIRIDIS)
    assert view.displays.of(PaneSide.OUTPUT) == display
    assert looked.window.actions_["mapViridis"].isChecked()
    step = looked.step(looked.before, 16, 12)
    assert 0 < step < 255
    assert colour(looked.input, 16, 12) == tuple(table(ColourMap.VIRIDIS)[step])
    side = child(panel, QComboBox, "displaySide")
    assert not side.isEnabled()
    child(panel, QCheckBox, "displayLinked").setChecked(False)
    assert not looked.window.actions_["linkDisplays"].isChecked()
    side.setCurrentText("output")
    low.setValue(30)
    assert view.displays.of(PaneSide.OUTPUT).low == 30
    assert view.displays.of(PaneSide.INPUT) == display
    expected = view.displays.of(PaneSide.OUTPUT).steps(looked.after[9:10, 9:10])
    assert grey(looked.output, 9, 9) == expected
    if looked.window.session.kind is Kind.PICTURE:  # slices have their level above them
        hover(looked.output, QPointF(9.5, 9.5))
        ways = "input: display 20..120, gamma 0.5, Viridis, output: display 30..255"
        assert looked.pixel.endswith(ways)
    child(panel, QPushButton, "displayAutomatic").click()
    assert view.displays.is_automatic(PaneSide.OUTPUT)


def show_residual(qtbot: QtBot, looked: Looked) -> None:
    press(qtbot, looked.window, "F3")
    qtbot.waitUntil(lambda: looked.viewer.output.content.is_change)


def residuals_are_read_off_laid_over_the_input_and_have_diverging_colours(
    qtbot: QtBot, looked: Looked
) -> None:
    button = child(looked.window, QToolButton, "viewResidualButton")
    place = button.mapTo(looked.window, QPoint())
    show_residual(qtbot, looked)
    assert child(looked.window, QToolButton, "autoGain").isVisible()
    assert button.mapTo(looked.window, QPoint()) == place, "a second click would hit another button"
    change = float(looked.after[10, 20]) - float(looked.before[10, 20])
    hover(looked.output, QPointF(20.5, 10.5))
    assert f"   residual {change:.4g}" in looked.pixel
    probe = looked.output.probe
    assert probe is not None
    assert [line.name for line in probe.lines if line.bold] == ["residual"]
    cells: Callable[..., list[str]] = looked.output.pair.cell
    assert cells(looked.output.front, 20, 10) == [f"{change:+.4g}"]
    assert cells(looked.viewer.input.views[0].front, 20, 10) == [f"{looked.before[10, 20]}"]

    window, canvas = looked.window, looked.output
    hover(looked.output, None)
    assert looked.viewer.overlay.isVisible()
    room = looked.output.size()
    looked.viewer.overlay.hide()
    QApplication.processEvents()
    assert looked.output.size() == room, "the bar would move the picture"
    looked.viewer.overlay.show()
    x, y = 20, 20
    alone = colour(canvas, x, y)
    opacity = child(window, QSlider, "overlayOpacity")
    assert not opacity.isEnabled()
    child(window, QToolButton, "overlay").click()
    opacity.setValue(0)
    assert grey(canvas, x, y) == looked.step(looked.before, x, y)
    opacity.setValue(100)
    over = colour(canvas, x, y)
    assert len(set(over)) == 3
    darker = looked.after[y, x] < looked.before[y, x]
    assert (over[2] > over[0]) is bool(darker), "blue is darker, orange brighter"
    size = abs(float(looked.after[y, x]) - float(looked.before[y, x]))
    threshold = child(window, QDoubleSpinBox, "overlayThreshold")
    threshold.setValue(size - 1)
    assert colour(canvas, x, y) == over
    threshold.setValue(size + 1)
    assert grey(canvas, x, y) == looked.step(looked.before, x, y)
    looked.view.choose_look(replace(looked.view.look, overlaid=False, opacity=0.3))
    assert (opacity.value(), opacity.isEnabled()) == (30, False)
    assert colour(canvas, x, y) == alone
    press(qtbot, window, "F2")
    qtbot.waitUntil(lambda: not looked.viewer.overlay.isVisible())

    show_residual(qtbot, looked)
    dark = colour(looked.output, 12, 10)
    assert len(set(dark)) == 3
    looked.view.choose_difference_map(ColourMap.GREY)
    assert len(set(colour(looked.output, 12, 10))) == 1
    press(qtbot, window, "F2")
    qtbot.waitUntil(lambda: not looked.viewer.output.content.is_change)


def test_hints_leave_the_input_free(qtbot: QtBot, opened: Looked) -> None:
    subject = opened.window.session.subject
    for key in ("Alt+2", "Alt+3"):
        press(qtbot, opened.window, key)
        QApplication.processEvents()
        canvas, hint = opened.output, opened.viewer.output.hint
        assert hint.isVisible()
        assert hint.text() == "Press Run (F5)"
        room, halves = hint.geometry().translated(-canvas.pos()), canvas.halves()
        assert room == halves[1].toRect(), key
        assert grey(canvas, 5, 5) == opened.step(opened.before, 5, 5)
        subject.note_work(at_work=True, compiling=True)
        assert hint.text().startswith("Compiling")
        subject.note_work(at_work=False, compiling=False)

    press(qtbot, opened.window, "Alt+4")
    QApplication.processEvents()
    canvas, hint = opened.output, opened.viewer.output.hint
    assert not opened.viewer.input.isVisible()
    assert not hint.isVisible()
    assert (canvas.name, canvas.note) == ("Input", "Press Run (F5)")
    assert grey(canvas, 20, 15) == opened.step(opened.before, 20, 15)
    opened.window.session.subject.note_work(at_work=True, compiling=False)
    assert canvas.note == "Running…"
    press(qtbot, opened.window, "Alt+1")
    assert hint.isVisible()
    assert canvas.note == canvas.name == ""


class Frame:
    """In place of regions: a filled square from (10, 10) to (14, 14)."""

    def paint(self, painter: QPainter, plane: int | None) -> None:
        painter.setPen(QPen(Qt.PenStyle.NoPen))
        painter.setBrush(QColor("#00ff00"))
        painter.drawRect(10, 10, 4, 4)


class Pencil:
    """A tool that keeps its arguments."""

    cursor = Qt.CursorShape.PointingHandCursor

    def __init__(self) -> None:
        self.seen: list[tuple[str, float, float]] = []

    def _note(self, kind: str, touch: Touch) -> None:
        x, y = round(touch.point.x(), 6), round(touch.point.y(), 6)
        self.seen.append((kind, x, y))

    def press(self, touch: Touch) -> None:
        self._note("press", touch)

    def drag(self, touch: Touch) -> None:
        self._note("drag", touch)

    def release(self, touch: Touch) -> None:
        self._note("release", touch)

    def hover(self, touch: Touch) -> None:
        pass

    def key(self, event: QKeyEvent, plane: int | None = None) -> bool:
        self.seen.append(("key", event.key(), 0))
        return event.key() == Qt.Key.Key_Delete


def regions_are_drawn_in_coordinates_of_the_plane_and_a_tool_takes_the_left_button(
    qtbot: QtBot, looked: Looked
) -> None:
    viewer, square = looked.viewer, cast(Any, Frame())
    viewer.add_regions(square)
    for look in (viewer.fit, lambda: viewer.look_at(QPointF(12, 13), 9)):
        look()
        for canvas in (looked.input, looked.output):
            assert colour(canvas, 10, 10) == colour(canvas, 13, 13) == (0, 255, 0)
            assert len(set(colour(canvas, 14, 10))) == 1
            assert len(set(colour(canvas, 10, 9))) == 1

    viewer, canvas = looked.viewer, looked.output
    viewer.look_at(QPointF(20, 15), 8)
    pencil: Any = Pencil()
    viewer.set_tool(pencil)
    before = canvas.camera, canvas.cross
    drag(canvas, canvas.to_widget(QPointF(18, 12)), QPointF(16, 24), LEFT)
    assert pencil.seen == [
        ("press", 18, 12),
        ("drag", 20, 15),
        ("release", 20, 15),
    ]
    assert (canvas.camera, canvas.cross) == before
    assert canvas.cursor().shape() == Qt.CursorShape.PointingHandCursor
    qtbot.keyClick(canvas, Qt.Key.Key_Delete)
    qtbot.keyClick(canvas, Qt.Key.Key_Left, CTRL)  # not for the tool: pans
    assert canvas.camera != before[0]
    viewer.set_tool(None)
    pencil.seen.clear()
    before = canvas.camera, canvas.cross
    drag(canvas, QPointF(50, 50), QPointF(16, 24), LEFT)
    assert pencil.seen == []
    assert (canvas.camera, canvas.cross) != before, "the picture or the crosshair moves"
    viewer.fit()


def figures_have_all_or_the_part_in_view(qtbot: QtBot, looked: Looked) -> None:
    looked.viewer.look_at(QPointF(20, 15), 40)
    looked.view.choose_display(PaneSide.INPUT, Display(0, 100))
    left, top, right, bottom = looked.view.seen
    assert (right - left) * (bottom - top) < WIDTH * HEIGHT
    seen = np.s_[math.floor(top) : math.ceil(bottom), math.floor(left) : math.ceil(right)]
    for which, part in ((FigurePart.VIEW, seen), (FigurePart.WHOLE, np.s_[:])):
        figure = looked.window.session.subject.figure()(None, which)
        for picture, samples in zip(figure.pictures, (looked.before, looked.after), strict=True):
            np.testing.assert_array_equal(picture.planes[:, :, 0], samples[part])
        assert figure.pictures[1].display == Display(0, 100)
    press(qtbot, looked.window, "Ctrl+L")
    looked.viewer.fit()


def the_output_is_copied(qtbot: QtBot, looked: Looked) -> None:
    looked.viewer.output.views[0].pair.activate(looked.viewer.output.views[0])
    press(qtbot, looked.window, "Ctrl+C")
    copied = QApplication.clipboard().image()
    assert (copied.width(), copied.height()) == (WIDTH, HEIGHT)
    if looked.window.session.kind is Kind.PICTURE:
        assert copied.pixelColor(20, 10).red() == looked.after[10, 20]
    else:
        assert copied.pixelColor(20, 10).red() == pytest.approx(
            looked.step(looked.after, 20, 10), abs=1
        )


def the_pixel_under_the_pointer_is_that_of_the_slice(_: QtBot, looked: Looked) -> None:
    """An X-ray of a slice took the pixel that was pointed at in the picture."""
    looked.window.session.set_filter("mean")
    hover(looked.input, QPointF(7.5, 4.5))
    subject = looked.window.session.subject
    pixel = subject.probed()
    assert pixel is not None
    request = subject.next_request(of_slice=True)
    assert request is not None
    scale = request.image.pixels[0, 1] - float(request.image.pixels[0, 0])
    value = request.image.pixels[pixel[1], pixel[0]] / scale
    assert value == pytest.approx(looked.before[4, 7], rel=1e-5)


def test_stories_of_looking(qtbot: QtBot, looked: Looked) -> None:
    """In one window: most stories leave the view as they found it, the last three do not."""
    for key, action in (("Alt+2", "swipe"), ("Alt+3", "split")):
        one_plane_is_divided_by_a_line(qtbot, looked, key, action)
    for story in (
        output_alone_takes_all_the_room_and_a_line_can_be_dragged,
        space_shows_the_input_while_it_is_held,
        wheel_keys_and_the_middle_button_move_the_camera,
        the_magnifier_enlarges_in_both,
        values_stand_in_the_pixels_from_2000_percent,
        the_output_is_copied,
        figures_have_all_or_the_part_in_view,
        residuals_are_read_off_laid_over_the_input_and_have_diverging_colours,
        the_probe_moves_by_keys_and_names_the_values_of_all,
        regions_are_drawn_in_coordinates_of_the_plane_and_a_tool_takes_the_left_button,
        the_right_button_and_one_panel_change_levels_and_colours,
        the_pixel_under_the_pointer_is_that_of_the_slice,
    ):
        story(qtbot, looked)
