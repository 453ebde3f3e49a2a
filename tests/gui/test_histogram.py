"""The histogram in the window: its handles draw pictures and volumes, and follow them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QPainter, QPicture
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox, QComboBox, QDockWidget, QToolButton
from pytestqt.qtbot import QtBot

from kernelscope.gui.docks.histogram_plot import HistogramPlot
from kernelscope.gui.model.display import ColourMap, Display, PaneSide
from kernelscope.gui.model.histogram_plot import Handle, HeightScale, place_of
from kernelscope.gui.window.main_window import MainWindow
from tests.gui.helpers import child, load, mouse, run
from tests.gui.test_looking import Looked, looked, opened
from tests.gui.test_volume_page import open_scan, voxels, write

__all__ = ["looked", "opened"]  # fixtures

pytestmark = pytest.mark.usefixtures("compiled_judging")

LEFT = Qt.MouseButton.LeftButton


def open_histogram(qtbot: QtBot, window: MainWindow) -> HistogramPlot:
    window.findChild(QDockWidget, "qualityDock").raise_()
    view = window.quality.histograms
    qtbot.waitUntil(lambda: bool(view.histograms) and view.isVisible())
    qtbot.waitUntil(lambda: view.plot.handles[Handle.LOW].isVisible())
    return view.plot


def shown(window: MainWindow, side: PaneSide = PaneSide.INPUT) -> Display:
    display = window.pictures.canvas.view.displays.of(side)
    assert display is not None
    return display


def drag(plot: HistogramPlot, handle: Handle, value: float, *, steps: int = 1) -> None:
    """Drag a handle to a value, without letting go."""
    widget = plot.handles[handle]
    QTest.mousePress(widget, LEFT, pos=widget.rect().center())
    start, end = widget.mapTo(plot, widget.rect().center()).x(), plot.x_of(value)
    for step in range(1, steps + 1):
        x = round(start + (end - start) * step / steps)
        QTest.mouseMove(widget, widget.mapFrom(plot, QPoint(x, plot.height() - 8)))


def release(plot: HistogramPlot, handle: Handle) -> None:
    QTest.mouseRelease(plot.handles[handle], LEFT)


def reading(window: MainWindow) -> str:
    return window.quality.histograms.words.full_text


@pytest.fixture
def dark(tmp_path: Path) -> Path:
    """Return a picture of 12 bits in 16."""
    path = tmp_path / "dark.png"
    values = np.random.default_rng(1).integers(0, 4096, (30, 40)).astype(np.uint16)
    Pillow.fromarray(values).save(path)
    return path


def test_the_axis_of_12_bits_has_its_counts_and_stays_while_a_handle_is_dragged(
    qtbot: QtBot, window: MainWindow, dark: Path
) -> None:
    load(qtbot, window, dark)
    plot = open_histogram(qtbot, window)
    assert plot.plot is not None
    counts = plot._counts(plot.plot, plot.fontMetrics())
    assert counts[0] == (0.0, "0")
    assert len(counts) > 1

    def written() -> set[str]:
        record = QPicture()
        painter = QPainter(record)
        _, _, texts = plot._graph.left.generateDrawSpecs(painter)
        painter.end()
        return {text for _, _, text in texts}

    qtbot.waitUntil(lambda: written() >= {counts[0][1], counts[-1][1]})  # once it has its room

    axis = plot.plot.axis
    assert 4000 < axis.high < 4300
    assert shown(window).high < 4096
    drag(plot, Handle.HIGH, axis.high)
    assert plot.plot.axis == axis
    release(plot, Handle.HIGH)
    assert shown(window).high == round(axis.high)
    assert plot.plot.axis.high > axis.high


def test_handles_draw_the_picture_and_follow_it(qtbot: QtBot, loaded: MainWindow) -> None:
    plot = open_histogram(qtbot, loaded)
    depth = len(loaded.session.subject.history.state[0])
    drag(plot, Handle.LOW, 60)
    assert shown(loaded).low == pytest.approx(60, abs=256 / plot.area.width() + 1)
    assert loaded.pictures.canvas.input.views[0].front.display == shown(loaded)
    release(plot, Handle.LOW)
    drag(plot, Handle.HIGH, 180)
    release(plot, Handle.HIGH)
    qtbot.waitUntil(lambda: abs(shown(loaded).high - 180) < 5)
    drag(plot, Handle.MIDDLE, 90)
    release(plot, Handle.MIDDLE)
    qtbot.waitUntil(lambda: shown(loaded).gamma < 0.9)
    assert place_of(shown(loaded), Handle.MIDDLE) == pytest.approx(90, abs=5)
    assert len(loaded.session.subject.history.state[0]) == depth, "nothing to undo"

    pair = loaded.pictures.canvas
    pair.view.choose_display(PaneSide.INPUT, Display(64, 128, 1, ColourMap.VIRIDIS))
    handle = plot.handles[Handle.HIGH]
    assert plot.display == Display(64, 128, 1, ColourMap.VIRIDIS)
    assert handle.geometry().center().x() == pytest.approx(plot.x_of(128), abs=1)
    image = plot.grab().toImage()
    scale = image.devicePixelRatio()
    strip = QPointF(plot.x_of(64) - 6, plot.area.bottom() + 5) * scale
    colour = image.pixelColor(strip.toPoint())
    assert (colour.red(), colour.green(), colour.blue()) == (68, 1, 84)
    loaded.findChild(QDockWidget, "timingDock").raise_()
    qtbot.waitUntil(lambda: plot.visibleRegion().isEmpty())
    pair.view.choose_display(PaneSide.INPUT, Display(10, 20))
    assert plot.display != Display(10, 20), "unseen, it costs nothing"
    loaded.findChild(QDockWidget, "qualityDock").raise_()
    qtbot.waitUntil(lambda: plot.display == Display(10, 20))

    assert not child(loaded, QCheckBox, "histogramChannels").isEnabled()
    child(loaded, QComboBox, "histogramScale").setCurrentText(HeightScale.ROOT)
    assert plot.plot.scale is HeightScale.ROOT


def test_keys_and_a_double_click_choose_the_contrast(qtbot: QtBot, loaded: MainWindow) -> None:
    plot = open_histogram(qtbot, loaded)
    plot.frame.setInterval(0)
    handle = plot.handles[Handle.LOW]
    handle.setFocus()
    qtbot.waitUntil(handle.hasFocus)

    def low_is(low: float) -> bool:
        return shown(loaded).low == low

    for key, modifier, low in (
        (Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier, 1),
        (Qt.Key.Key_PageUp, Qt.KeyboardModifier.NoModifier, 11),
        (Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier, 21),
        (Qt.Key.Key_Left, Qt.KeyboardModifier.NoModifier, 20),
    ):
        qtbot.keyClick(handle, key, modifier)
        qtbot.waitUntil(partial(low_is, low))
    assert reading(loaded) == "Black level 20"
    assert handle.accessibleDescription() == "Black level 20"
    qtbot.keyClick(handle, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: shown(loaded) == Display(0, 255))

    pair = loaded.pictures.canvas
    for click in (
        lambda: QTest.mouseDClick(plot, LEFT, pos=plot.area.center().toPoint()),
        lambda: qtbot.mouseClick(child(loaded, QToolButton, "histogramAutomatic"), LEFT),
    ):
        pair.view.choose_display(PaneSide.INPUT, Display(50, 70, 2))
        click()
        assert shown(loaded) == Display(0, 255)
        assert pair.view.displays.ruling(PaneSide.INPUT) not in pair.view.displays._choices


def test_values_are_read_off_and_separate_levels_asked_for(
    qtbot: QtBot, loaded: MainWindow
) -> None:
    run(qtbot, loaded)
    plot = open_histogram(qtbot, loaded)
    qtbot.waitUntil(lambda: len(plot.plot.curves) == 2)
    pixels = loaded.pictures.canvas.input.shown.pixels
    value = next(v for v in range(20, 140) if np.count_nonzero(pixels == v) > 1)

    def is_read_off() -> bool:
        """Point again: until its parts have their places, the plot moves under the cursor.

        Qt drops a move to where the cursor is already, also by a test before.
        """
        x = round(plot.x_of(value + 0.5))
        place = QPointF(x, plot.area.center().y())
        mouse(plot, QEvent.Type.MouseMove, place, Qt.MouseButton.NoButton)
        low = int(plot.value_at(x))
        counts = [np.count_nonzero(pixels == each) for each in (low, 255 - low)]
        return reading(loaded) == f"{low} to {low + 1}: input {counts[0]:,}, output {counts[1]:,}"

    qtbot.waitUntil(is_read_off)


def test_handles_set_the_levels_of_the_side_that_is_chosen(qtbot: QtBot, looked: Looked) -> None:
    view, box = looked.view, looked.window.quality.side_box
    plot = open_histogram(qtbot, looked.window)
    before = view.displays.of(PaneSide.INPUT)
    assert not box.isVisible()
    view.link(False)
    qtbot.waitUntil(box.isVisible)
    assert box.currentText() == "output"
    level = view.displays.of(PaneSide.OUTPUT).level
    drag(plot, Handle.LOW, level)
    release(plot, Handle.LOW)
    assert view.displays.of(PaneSide.INPUT) == before
    qtbot.waitUntil(lambda: view.displays.of(PaneSide.OUTPUT).low == pytest.approx(level, abs=10))
    box.setCurrentText("input")
    assert plot.display == before


def test_the_page_in_front_decides_what_handles_draw(
    qtbot: QtBot, loaded: MainWindow, tmp_path: Path
) -> None:
    values = voxels()
    values[:4] = 0
    open_scan(qtbot, loaded, write(tmp_path / "T1.nii.gz", values))
    plot = open_histogram(qtbot, loaded)
    assert reading(loaded).endswith(" of the input) exceed the scale.")
    before = shown(loaded)
    drag(plot, Handle.LOW, plot.plot.axis.value(0.5))
    release(plot, Handle.LOW)
    assert shown(loaded) == before
    assert loaded.volumes.canvas.view.display.low > 500
