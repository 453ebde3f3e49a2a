"""Regions and profile lines in the window: drawn, moved, resized, typed, measured and copied."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyqtgraph as pg
import pytest
import tifffile
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QLabel,
    QLineEdit,
    QToolButton,
    QTreeWidget,
)
from pytestqt.qtbot import QtBot

from kernelscope.backends.cpu import CpuBackend
from kernelscope.engine.region import Region
from kernelscope.engine.run import execute
from kernelscope.gui.docks.measure_panel import ProfileView
from kernelscope.gui.model.display import Units
from kernelscope.gui.model.documents import Document
from kernelscope.gui.model.figure import FigurePart
from kernelscope.gui.model.measurements import Profile, ProfiledPicture, as_csv, profile
from kernelscope.gui.model.regions import Against, Interest, Shape
from kernelscope.gui.widgets.controls import ChoiceBox, WholeBox
from kernelscope.gui.widgets.parts import ElidedLabel
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.main_window import MainWindow
from tests.gui.helpers import (
    WIDTH,
    Opener,
    child,
    drag,
    load,
    mouse,
    press,
    run,
    settle,
    write_picture,
)


def test_a_line_beside_the_picture_has_a_name_and_no_curve(qtbot: QtBot) -> None:
    """PyQtGraph warned of a curve of gaps alone, when the plot was painted."""
    view = ProfileView()
    qtbot.addWidget(view)
    plot = view.plot
    picture = ProfiledPicture("input", np.full((4, 4, 1), 9, np.uint8))
    for y, curves in ((1, 1), (9, 0)):
        line = Interest("L1", Shape.LINE, ((0, y), (3, y)))
        view.show_profiles([profile(line, picture)], Units.STORED)
        assert len(plot.listDataItems()) == curves
        assert "L1" in plot.accessibleDescription()


LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def drawing(qtbot: QtBot, window: MainWindow, picture: Path) -> MainWindow:
    """Return a window with a ramp and its inverse, in which rectangles are drawn."""
    load(qtbot, window, picture)
    run(qtbot, window)
    press(qtbot, window, "Ctrl+Alt+R")
    return window


def draw(window: MainWindow, start: tuple[int, int], end: tuple[int, int]) -> None:
    """Drag in the output from one corner of pixels to another; for lines, between pixels."""
    canvas, region = window.pictures.canvas.output.views[0], window.measuring.regions.chosen
    is_line = (region.shape if region is not None else window.measuring.tool.shape) is Shape.LINE
    half = QPointF(0.5, 0.5) if is_line else QPointF()
    first, last = canvas.to_widget(QPointF(*start) + half), canvas.to_widget(QPointF(*end) + half)
    drag(canvas, first, last - first, LEFT)


def click(window: MainWindow, x: float, y: float) -> None:
    canvas = window.pictures.canvas.output.views[0]
    at = canvas.to_widget(QPointF(x, y))
    mouse(canvas, QEvent.Type.MouseButtonPress, at, LEFT)
    mouse(canvas, QEvent.Type.MouseButtonRelease, at, LEFT)


def chosen(window: MainWindow) -> Interest:
    region = window.measuring.regions.chosen
    assert region is not None
    return region


def figures(qtbot: QtBot, window: MainWindow, lines: int) -> list[list[str]]:
    """Return the table once it belongs to the regions and has as many lines."""

    def table() -> list[list[str]]:
        return [line.split("\t") for line in window.measure.text().split("\n")[1:]]

    # A table of the earlier place would be replaced by then.
    qtbot.waitUntil(lambda: len(table()) == lines and not window.measuring._later.is_due)
    return table()


def test_a_tool_brings_its_panel_to_the_front(qtbot: QtBot, loaded: MainWindow) -> None:
    loaded.docks[DockName.MEASURE].hide()
    press(qtbot, loaded, "Ctrl+Alt+R")
    qtbot.waitUntil(lambda: not loaded.measure.visibleRegion().isEmpty())


def test_a_panel_that_opened_with_the_tool_closes_where_there_is_no_region(
    qtbot: QtBot, open_window: Opener, picture: Path, tmp_path: Path
) -> None:
    """It took a quarter of the height from the next photograph, and after a restart."""
    window = open_window(panels=False)
    dock, other = window.docks[DockName.MEASURE], write_picture(tmp_path / "other.png", 5)
    load(qtbot, window, picture)
    press(qtbot, window, "Ctrl+Alt+R")
    draw(window, (4, 2), (10, 7))
    assert not dock.isHidden()
    load(qtbot, window, other)
    assert dock.isHidden()
    first, second = window.open_pictures.documents

    def show(document: Document, number: int) -> bool:
        """Show a picture with so many regions; return whether the panel is open."""
        window.open_pictures.show(document)
        settle(qtbot, window)
        assert len(window.measuring.regions.all) == number
        return not dock.isHidden()

    assert show(first, 1)
    dock.close()
    assert not show(second, 0)
    assert not show(first, 1), "the user closed it"
    qtbot.mouseClick(child(window, QToolButton, "measurePanelButton"), LEFT)
    assert show(second, 0), "the user opened it"
    dock.close()
    press(qtbot, window, "Ctrl+Alt+O")
    assert not dock.isHidden()
    window.close()
    assert open_window(panels=False).docks[DockName.MEASURE].isHidden()


def test_the_filter_is_limited_to_a_region_beside_its_name(
    qtbot: QtBot, drawing: MainWindow
) -> None:
    box = drawing.measure.findChild(QCheckBox, "measureWithin")
    assert box.isHidden()
    drawing.docks[DockName.MEASURE].raise_()
    draw(drawing, (4, 2), (10, 7))
    qtbot.waitUntil(box.isVisible)
    assert box.text() == "Filter only in R1"
    box.click()
    assert drawing.session.within == chosen(drawing).area
    assert child(drawing, QCheckBox, "within").isChecked()
    drawing.measuring.remove()
    assert drawing.session.within is not None
    box.click()
    assert drawing.session.within is None
    assert box.isHidden()


def test_a_rectangle_is_drawn_and_measured_in_input_and_output(
    qtbot: QtBot, drawing: MainWindow
) -> None:
    draw(drawing, (4, 2), (10, 7))
    assert chosen(drawing).corners == ((4, 2), (10, 7))
    source, output = figures(qtbot, drawing, 2)
    # The picture is 4 y + x, the output 255 minus that.
    mean = 4 * 4 + 6.5
    assert source[:5] == ["R1", "input", "", "30", f"{mean:.2f}"]
    assert source[6:8] == ["12", "33"]
    assert output[:5] == ["R1", "output", "", "30", f"{255 - mean:.2f}"]
    assert source[8] == "–"  # no reference

    drawing.use_input_as_reference()
    source, output, _ = figures(qtbot, drawing, 3)
    assert source[8] == "∞ dB"
    assert output[8].endswith(" dB")
    assert output[8] != "∞ dB"


def test_pixels_of_a_known_size_have_a_scale_bar_and_regions_an_area(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    """As voxels do; the resolution of a photograph is that of its print."""
    array = np.arange(32 * 48, dtype=np.uint16).reshape(32, 48)
    photograph, plane = tmp_path / "print.tif", tmp_path / "plane.tif"
    tifffile.imwrite(photograph, array, resolution=(300, 300), resolutionunit="inch")
    size = 1 / 0.325, 1 / 0.325
    tifffile.imwrite(plane, array, imagej=True, resolution=size, metadata={"unit": "um"})
    load(qtbot, window, photograph)
    bar, view = window.actions_["scaleBar"], window.pictures.canvas.input.views[0]
    assert not bar.isEnabled()
    assert not view.unit
    assert window.session.subject.part.describe() == "print.tif, 48×32, grey, 16 bit"
    load(qtbot, window, plane)
    assert bar.isEnabled()
    assert view.unit == pytest.approx(0.000325)
    part = window.session.subject.part
    assert part.describe() == "plane.tif, 48×32, grey, 16 bit, 0.325×0.325 µm"
    run(qtbot, window)
    press(qtbot, window, "Ctrl+Alt+R")
    draw(window, (4, 2), (10, 7))
    figures(qtbot, window, 2)
    rows = window.measure.rows
    assert [row.area for row in rows] == pytest.approx([30 * 0.325**2] * 2)
    table = as_csv(rows, Units.STORED, Against())
    assert table.splitlines()[0].endswith(",area,area unit")
    assert table.splitlines()[1].endswith(",µm²")
    assert window.session.subject.size_of(chosen(window)) == "1.95 × 1.625 µm"
    figure = window.session.subject.figure()(None, FigurePart.WHOLE)
    assert figure.unit == "mm"
    assert figure.pictures[0].width == pytest.approx(48 * 0.000325)


def test_a_polygon_is_drawn_corner_by_corner(qtbot: QtBot, drawing: MainWindow) -> None:
    press(qtbot, drawing, "Ctrl+Alt+G")
    corners = ((4, 4), (20, 5), (12, 18))
    for corner in (*corners, (25, 25)):
        click(drawing, *corner)
    press(qtbot, drawing, "Backspace")
    assert drawing.measuring.regions.all == ()
    click(drawing, *corners[0])
    assert chosen(drawing).corners == corners
    assert chosen(drawing).shape is Shape.POLYGON
    draw(drawing, corners[1], (22, 9))
    assert chosen(drawing).corners == (corners[0], (22, 9), corners[2])


def undo_name(window: MainWindow) -> str:
    return window.session.subject.history.undo_name


def corners(window: MainWindow) -> list[tuple[tuple[int, int], ...]]:
    return [each.corners for each in window.measuring.regions.all]


def test_undo_takes_back_acts_on_regions_in_their_order(qtbot: QtBot, drawing: MainWindow) -> None:
    """Undo passed over them, and took a setting back that was made before."""
    subject, drawn = drawing.session.subject, [((4, 2), (10, 7))]
    draw(drawing, *drawn[0])
    assert undo_name(drawing) == "Draw R1"
    draw(drawing, (6, 4), (8, 5))  # a drag in several parts
    moved = [((6, 3), (12, 8))]
    assert (undo_name(drawing), corners(drawing)) == ("Move R1", moved)
    assert drawing.findChild(QAction, "undo").text() == "&Undo Move R1"
    for _ in range(3):  # one act, as a drag is
        press(qtbot, drawing, "Right")
    nudged = [((9, 3), (15, 8))]
    assert (undo_name(drawing), corners(drawing)) == ("Move R1", nudged)
    drawing.session.set_filter("mean")
    before = subject.result
    run(qtbot, drawing)
    result = subject.result
    assert result is not before
    press(qtbot, drawing, "Delete")
    assert (undo_name(drawing), corners(drawing)) == ("Delete R1", [])
    for kept in (nudged, moved, drawn, []):
        drawing.undo()
        assert corners(drawing) == kept
        assert subject.result is result, "regions alone are others"
        if kept:
            assert chosen(drawing).corners == kept[0]
            assert figures(qtbot, drawing, 2)[0][0] == "R1"
    assert not undo_name(drawing)
    for kept in (drawn, moved, nudged, []):
        drawing.redo()
        assert corners(drawing) == kept
    assert drawing.session.filter_id == "mean"


def test_settings_and_regions_are_undone_in_the_order_of_the_acts(
    qtbot: QtBot, drawing: MainWindow
) -> None:
    session = drawing.session
    session.live = True  # results of other settings are steps
    first = session.filter_id
    draw(drawing, (4, 2), (10, 7))
    session.set_filter("mean")
    run(qtbot, drawing)
    draw(drawing, (20, 20), (24, 24))
    assert undo_name(drawing) == "Draw R2"
    drawing.undo()
    assert (session.filter_id, len(corners(drawing))) == ("mean", 1)
    drawing.undo()
    assert (session.filter_id, len(corners(drawing))) == (first, 1)
    drawing.undo()
    assert (session.filter_id, len(corners(drawing))) == (first, 0)


def test_a_filter_that_is_limited_to_a_region_is_undone_with_it(
    qtbot: QtBot, drawing: MainWindow
) -> None:
    session = drawing.session
    session.live = True
    draw(drawing, (4, 2), (10, 7))
    session.limit(True)
    run(qtbot, drawing)
    steps = undo_name(drawing)
    draw(drawing, (6, 4), (8, 5))
    run(qtbot, drawing)  # as a live change is
    assert undo_name(drawing) == "Move R1"
    drawing.undo()
    assert undo_name(drawing) == steps
    assert chosen(drawing).corners == ((4, 2), (10, 7))
    assert session.require().step.within == chosen(drawing).area == session.within
    assert session.subject.result is not None
    assert session.subject.result.request.step.within == session.within
    drawing.redo()
    assert chosen(drawing).corners == ((6, 3), (12, 8))
    assert session.require().step.within == chosen(drawing).area


def test_regions_stay_with_their_file(qtbot: QtBot, drawing: MainWindow, tmp_path: Path) -> None:
    """The next file had those of the one before."""
    draw(drawing, (4, 2), (10, 7))
    drawing.session.limit(True)
    other = write_picture(tmp_path / "other.png", 5)
    load(qtbot, drawing, other)
    assert drawing.measuring.regions.all == ()
    assert drawing.session.within is None, "no region is seen that the filter is limited to"
    assert drawing.measure.rows == ()
    assert not drawing.actions_["openRegion"].isEnabled()
    draw(drawing, (1, 1), (3, 3))
    run(qtbot, drawing)
    drawing.page.use_output()
    settle(qtbot, drawing)
    assert corners(drawing) == [((1, 1), (3, 3))], "the next step is on the same file"
    first = next(each for each in drawing.open_pictures.documents if each.title == "ramp.png")
    drawing.open_pictures.show(first)
    settle(qtbot, drawing)
    assert corners(drawing) == [((4, 2), (10, 7))]
    assert chosen(drawing).name == "R1"
    first.sleep()  # as the one behind does to make room
    assert first.regions[0].corners == ((4, 2), (10, 7))


def test_place_and_name_can_be_typed(qtbot: QtBot, drawing: MainWindow) -> None:
    draw(drawing, (4, 2), (10, 7))
    for name, value in (("X", 1), ("Y", 3), ("W", 20), ("H", 5)):
        child(drawing, WholeBox, f"region{name}").setValue(value)
    assert chosen(drawing).corners == ((1, 3), (21, 8))
    name = child(drawing, QLineEdit, "regionName")
    name.setFocus()
    name.selectAll()
    qtbot.keyClicks(name, "sky")
    qtbot.keyClick(name, Qt.Key.Key_Return)
    assert chosen(drawing).name == "sky"
    assert figures(qtbot, drawing, 2)[0][0] == "sky"


def test_contrast_is_between_two_chosen_regions(qtbot: QtBot, drawing: MainWindow) -> None:
    draw(drawing, (0, 0), (4, 4))
    draw(drawing, (20, 20), (24, 24))
    child(drawing, ChoiceBox, "cnrRegion").setCurrentIndex(1)
    qtbot.waitUntil(lambda: any(row.cnr is not None for row in drawing.measure.rows))
    table = figures(qtbot, drawing, 4)
    assert [line[10] for line in table[:2]] == ["–", "–"]
    # Means 100 apart, each with the variance of 4 y + x over 4×4: (16 + 1) · 20 / 15.
    assert [line[10] for line in table[2:]] == [f"{100 / (2 * 17 * 20 / 15) ** 0.5:.4g}"] * 2


def test_figures_are_copied_and_those_of_other_settings_are_called_so(
    qtbot: QtBot, drawing: MainWindow
) -> None:
    draw(drawing, (4, 2), (10, 7))
    figures(qtbot, drawing, 2)
    drawing.measure.copy()
    assert QApplication.clipboard().text() == drawing.measure.text()
    assert drawing.measure.csv().split("\n")[1].startswith("R1,input,,30,22.5,")
    drawing.viewer.choose_units("0 to 1")
    qtbot.waitUntil(lambda: "0 to 1" in drawing.measure.csv())
    assert float(figures(qtbot, drawing, 2)[0][7]) == pytest.approx(33 / 255, abs=1e-4)

    note = drawing.measure.findChild(QLabel, "measureHint")
    assert note is not None
    assert not note.isVisible()
    drawing.session.set_filter("sobel")
    qtbot.waitUntil(note.isVisible)
    assert note.text().startswith("Output, earlier settings, not the present ones: Median")
    assert [line[1] for line in figures(qtbot, drawing, 2)] == ["input", "output, earlier settings"]
    rows = csv.DictReader(drawing.measure.csv().splitlines())
    states = [(row["filter and settings"], row["state"]) for row in rows]
    assert states[0] == ("", "")
    assert states[1][0].startswith("Median")
    assert states[1][1] == "earlier settings"


def test_a_preview_is_measured_where_it_covers_the_region(
    qtbot: QtBot, drawing: MainWindow, backends: dict[str, CpuBackend]
) -> None:
    """The figures stayed those of the output before it."""
    draw(drawing, (4, 2), (10, 7))
    draw(drawing, (1, 1), (6, 5))
    subject, session = drawing.session.subject, drawing.session
    before = figures(qtbot, drawing, 4)
    session.set_filter("maximum")
    wanted = subject.wanted()
    assert wanted is not None
    preview = execute(replace(wanted, region=Region(2, 4, 6, 7)), backends)
    assert subject.show_preview(preview)
    qtbot.waitUntil(lambda: any("preview" in line[1] for line in figures(qtbot, drawing, 4)))
    table = figures(qtbot, drawing, 4)
    assert table[1][1] == "output, preview"
    inside = execute(wanted, backends).image.planes[2:7, 4:10]
    assert float(table[1][4]) == pytest.approx(inside.mean(), abs=0.01)
    assert table[3] == [before[3][0], "output, earlier settings", *before[3][2:]]
    drawing.use_input_as_reference()
    table = figures(qtbot, drawing, 6)
    source = subject.part.planes[2:7, 4:10]
    error = np.mean((inside.astype(float) - source) ** 2)
    assert table[1][8] == f"{10 * np.log10(255**2 / error):.2f} dB"

    session.set_values("maximum", {"size": 7})
    names = [line[1] for line in figures(qtbot, drawing, 6)]
    assert names[1] == names[4] == "output, earlier settings", "at once, or computed anew"


# --- profile lines ---


def profile_of(qtbot: QtBot, window: MainWindow, points: int, pictures: int = 2) -> list[Profile]:
    """Return the profiles on the plot once they have as many points."""
    view = window.measure.profile

    def fits() -> bool:
        return [len(each.places) for each in view.profiles] == [points] * pictures

    qtbot.waitUntil(fits)
    return list(view.profiles)


def test_a_line_is_drawn_and_plotted_over_input_and_output(
    qtbot: QtBot, drawing: MainWindow
) -> None:
    press(qtbot, drawing, "Ctrl+Alt+L")
    draw(drawing, (4, 2), (10, 2))
    assert chosen(drawing).shape is Shape.LINE
    assert chosen(drawing).corners == ((4, 2), (10, 2))
    source, output = profile_of(qtbot, drawing, 7)
    # The picture is 4 y + x, the output 255 minus that.
    assert source.levels[:, 0].tolist() == [12, 13, 14, 15, 16, 17, 18]
    assert (output.levels == 255 - source.levels).all()
    curves = child(drawing, pg.PlotWidget, "profilePlot").getPlotItem().listDataItems()
    assert [curve.getData()[1].tolist() for curve in curves] == [
        each.levels[:, 0].tolist() for each in (source, output)
    ]
    assert "linear interpolation" in child(drawing, ElidedLabel, "profileHeading").toolTip()
    assert drawing.minimumSizeHint().width() <= 1000
    drawing.viewer.choose_units("0 to 1")
    qtbot.waitUntil(lambda: "0 to 1" in drawing.measure.profile.csv())
    child(drawing, QToolButton, "copyProfile").click()
    copied = QApplication.clipboard().text().splitlines()
    assert copied[0] == "distance in px,x,y,input,output,units"
    assert copied[1].split(",")[3] == str(12 / 255)


def test_the_end_of_a_new_line_follows_the_mouse(qtbot: QtBot, drawing: MainWindow) -> None:
    press(qtbot, drawing, "Ctrl+Alt+L")
    canvas = drawing.pictures.canvas.output.views[0]
    points = [canvas.to_widget(QPointF(x + 0.5, y + 0.5)) for x, y in ((4, 2), (6, 2), (12, 5))]
    mouse(canvas, QEvent.Type.MouseButtonPress, points[0], LEFT)
    for point in points[1:]:
        mouse(canvas, QEvent.Type.MouseMove, point, LEFT)
    mouse(canvas, QEvent.Type.MouseButtonRelease, points[2], LEFT)
    assert chosen(drawing).corners == ((4, 2), (12, 5))


def test_a_line_is_made_and_changed_by_keys_and_typed(qtbot: QtBot, drawing: MainWindow) -> None:
    press(qtbot, drawing, "Ctrl+Alt+L")
    press(qtbot, drawing, "Return")
    (left, y), (right, end) = chosen(drawing).corners
    assert 0 <= left < right < WIDTH
    assert y == end
    press(qtbot, drawing, "Down")
    press(qtbot, drawing, "Ctrl+Left")
    press(qtbot, drawing, "Ctrl+Shift+Down")
    assert chosen(drawing).corners == ((left, y + 1), (right - 1, y + 11))
    for name, value in (("X", 1), ("Y", 3), ("W", 5), ("H", 0)):
        child(drawing, WholeBox, f"region{name}").setValue(value)
    assert chosen(drawing).corners == ((1, 3), (5, 0))
    assert child(drawing, WholeBox, "regionW").accessibleName().startswith("Last pixel")
    profile_of(qtbot, drawing, 6)
    press(qtbot, drawing, "Ctrl+Alt+R")
    draw(drawing, (12, 10), (20, 16))
    assert not drawing.measure.profile.isVisible()
    assert child(drawing, WholeBox, "regionW").value() == 8
    names = child(drawing, ChoiceBox, "cnrRegion")
    assert [names.itemText(n) for n in range(names.count())] == ["none", "R2"]


def test_controls_are_beside_the_table_where_there_is_room(
    qtbot: QtBot, drawing: MainWindow
) -> None:
    """They took two rows over it, of whose width two thirds were empty."""
    panel = drawing.measure
    box, table = child(panel, ChoiceBox, "snrRegion"), child(panel, QTreeWidget, "measureTable")

    def is_beside() -> bool:
        left = box.mapTo(panel, QPoint(0, 0)).x()
        return left > table.geometry().right() and box.isVisible()

    drawing.resize(1600, 900)
    draw(drawing, (0, 0), (4, 4))
    figures(qtbot, drawing, 2)
    qtbot.waitUntil(is_beside)
    drawing.docks[DockName.MEASURE].setFloating(True)
    drawing.docks[DockName.MEASURE].resize(600, 300)
    qtbot.waitUntil(lambda: not is_beside() and box.isVisible())


def test_a_chosen_background_comes_back_with_its_file(
    qtbot: QtBot, drawing: MainWindow, tmp_path: Path
) -> None:
    """It was forgotten as soon as another file was shown."""
    draw(drawing, (0, 0), (4, 4))
    draw(drawing, (20, 20), (24, 24))
    background = child(drawing, ChoiceBox, "snrRegion")
    background.setCurrentText("R2")
    load(qtbot, drawing, write_picture(tmp_path / "other.png", 5))
    assert background.currentText() == "none"
    first = next(each for each in drawing.open_pictures.documents if each.title == "ramp.png")
    drawing.open_pictures.show(first)
    settle(qtbot, drawing)
    assert background.currentText() == "R2"
    qtbot.waitUntil(lambda: any(row.snr is not None for row in drawing.measure.rows))
