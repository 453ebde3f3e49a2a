"""Regions and profile lines on slices of volumes; the magnifier and the units of their probe."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QCheckBox, QLabel
from pytestqt.qtbot import QtBot

from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.gui.docks.parameter_panel import WithinBox
from kernelscope.gui.model.display import ColourMap, Display, Units
from kernelscope.gui.model.measurements import (
    EARLIER,
    Output,
    measure,
    profile,
    profiles_as_csv,
    steps_of,
    to_measure,
)
from kernelscope.gui.model.regions import Against, Interest, Shape
from kernelscope.gui.model.slice_drawing import Look, Projection
from kernelscope.gui.model.slice_previews import SlicePreviews
from kernelscope.gui.viewer.plane_canvas import PlaneCanvas
from kernelscope.gui.widgets.controls import ChoiceBox, WholeBox
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.planes import planes_of
from kernelscope.images.scan import Scan
from kernelscope.images.source import Channel
from kernelscope.images.volume import Among, Volume
from kernelscope.schema.crop import Box
from tests.gui.helpers import child, drag, kept_regions, load, mouse, press, run
from tests.gui.test_measuring import chosen
from tests.gui.test_volume_page import open_scan, voxels, write

LEFT = Qt.MouseButton.LeftButton
AXIAL, CORONAL, SAGITTAL = range(3)

pytestmark = pytest.mark.usefixtures("compiled_judging")


@pytest.fixture
def scanned(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> MainWindow:
    """Return a window with a scan of voxels of 1 x 1.5 x 2 mm and half of it as the output."""
    open_scan(qtbot, window, write(tmp_path / "T1.nii.gz", voxels()))
    window.resize(1400, 1000)
    run(qtbot, window)
    return window


def view_of(window: MainWindow, plane: int) -> PlaneCanvas:
    return window.volumes.canvas.output.views[plane]


def at(view: PlaneCanvas, column: float, row: float) -> QPointF:
    """Return where a point of a slice is drawn; whole numbers are edges of voxels."""
    return view.point_of(0, 0) + QPointF(
        (column - 0.5) * (view.point_of(1, 0) - view.point_of(0, 0)).x(),
        (row - 0.5) * (view.point_of(0, 1) - view.point_of(0, 0)).y(),
    )


def draw(view: PlaneCanvas, start: tuple[float, float], end: tuple[float, float]) -> None:
    first, last = at(view, *start), at(view, *end)
    drag(view, first, last - first, LEFT)


def figures(qtbot: QtBot, window: MainWindow, headings: set[str]) -> list[list[str]]:
    """Return the table once its rows belong to these regions and slices."""

    def table() -> list[list[str]]:
        return [line.split("\t") for line in window.measure.text().split("\n")[1:]]

    qtbot.waitUntil(lambda: {line[0] for line in table()} == headings)
    return table()


def cut(window: MainWindow, plane: int, name: str = "input") -> np.ndarray:
    viewer = window.volumes.canvas
    volume = window.session.volumes.part if name == "input" else window.session.volumes.shown_output
    assert volume is not None
    each = viewer.view.planes[plane]
    return np.asarray(each.cut(volume.voxels, viewer.view.position[each.axis]), float)


def a_rectangle_is_measured_in_the_slices_of_its_plane(qtbot: QtBot, scanned: MainWindow) -> None:
    position = scanned.volumes.canvas.view.position
    press(qtbot, scanned, "Ctrl+Alt+R")
    draw(view_of(scanned, AXIAL), (1, 2), (5, 7))
    assert chosen(scanned).corners == ((1, 2), (5, 7))
    said: list[str] = []
    scanned.volumes.described.connect(said.append)
    at_corner = at(view_of(scanned, AXIAL), 4.5, 6.5)
    mouse(view_of(scanned, AXIAL), QEvent.Type.MouseMove, at_corner, Qt.MouseButton.NoButton)
    x, y = (child(scanned, WholeBox, f"region{name}").value() for name in "XY")
    assert said[-1].startswith(f"x {x}, y {y}, z "), "the first voxel of both axes"
    assert chosen(scanned).plane == AXIAL
    assert scanned.volumes.canvas.view.position == position  # the crosshair stays
    source, output = figures(qtbot, scanned, {f"R1 (axial {position[0] + 1})"})
    for line, name in ((source, "input"), (output, "output")):
        inside = cut(scanned, AXIAL, name)[2:7, 1:5]
        assert line[1:4] == [name, "", "20"]
        assert float(line[4]) == pytest.approx(inside.mean(), rel=1e-4)
        assert float(line[5]) == pytest.approx(inside.std(ddof=1), rel=1e-3)
        assert line[6:8] == [f"{inside.min():.0f}", f"{inside.max():.0f}"]
    assert child(scanned, QLabel, "regionSize").text() == "4 × 7.5 mm"
    row = next(csv.DictReader(scanned.measure.csv().splitlines()))
    assert (row["slice"], row["area"]) == (f"axial {position[0] + 1}", "30.0")

    press(qtbot, scanned, "PgDown")
    scanned.volumes.canvas.go_to((position[0] - 2, *position[1:]))
    source, _ = figures(qtbot, scanned, {f"R1 (axial {position[0] - 1})"})
    mean = cut(scanned, AXIAL)[2:7, 1:5].mean()
    assert float(source[4]) == pytest.approx(mean, rel=1e-4)


def regions_of_other_planes_are_neither_drawn_nor_taken(qtbot: QtBot, scanned: MainWindow) -> None:
    press(qtbot, scanned, "Ctrl+Alt+R")
    draw(view_of(scanned, AXIAL), (1, 1), (6, 5))
    colour = QColor(chosen(scanned).colour)

    def is_drawn(plane: int) -> bool:
        view = view_of(scanned, plane)
        picture = view.grab().toImage()
        edge = at(view, 3, 5).toPoint()
        around = [picture.pixelColor(edge.x(), edge.y() + step) for step in range(-3, 4)]
        return any(
            abs(each.red() - colour.red()) + abs(each.blue() - colour.blue()) < 24
            for each in around
        )

    assert [is_drawn(plane) for plane in range(3)] == [True, False, False]
    draw(view_of(scanned, SAGITTAL), (3, 3), (5, 5))  # inside of R1, if it were there
    assert [each.plane for each in scanned.measuring.regions.all] == [AXIAL, SAGITTAL]
    assert scanned.measuring.regions.all[0].corners == ((1, 1), (6, 5))
    position = scanned.volumes.canvas.view.position
    first, last = (each.name for each in scanned.measuring.regions.all)
    names = {f"{first} (axial {position[0] + 1})", f"{last} (sagittal {position[2] + 1})"}
    table = figures(qtbot, scanned, names)
    second = [line for line in table if line[0].startswith(last)]
    mean = cut(scanned, SAGITTAL)[3:5, 3:5].mean()
    assert float(second[0][4]) == pytest.approx(mean, rel=1e-4)


def handles_are_taken_where_they_are_and_a_double_click_with_a_tool_keeps_the_planes(
    qtbot: QtBot, scanned: MainWindow
) -> None:
    press(qtbot, scanned, "Ctrl+Alt+O")
    view = view_of(scanned, CORONAL)
    draw(view, (1, 1), (5, 3))
    draw(view, (5, 3), (6, 5))
    assert chosen(scanned).corners == ((1, 1), (6, 5))
    draw(view, (3.2, 3.2), (4.2, 4.2))  # inside: moves
    assert chosen(scanned).corners == ((2, 2), (7, 6))
    assert len(scanned.measuring.regions.all) == 1
    beside = at(view, 7, 6) + QPointF(0, 12)  # more than a grip below the corner
    drag(view, beside, QPointF(5, 40), LEFT)
    assert scanned.measuring.regions.all[0].corners == ((2, 2), (7, 6))

    viewer = scanned.volumes.canvas
    press(qtbot, scanned, "Ctrl+Alt+R")
    mouse(view_of(scanned, AXIAL), QEvent.Type.MouseButtonDblClick, QPointF(50, 50), LEFT)
    assert viewer.view.plane_number is None
    press(qtbot, scanned, "Ctrl+Alt+M")
    mouse(view_of(scanned, AXIAL), QEvent.Type.MouseButtonDblClick, QPointF(50, 50), LEFT)
    assert viewer.view.plane_number == AXIAL


def lines_have_lengths_in_millimetres(qtbot: QtBot, scanned: MainWindow) -> None:
    press(qtbot, scanned, "Ctrl+Alt+L")
    draw(view_of(scanned, CORONAL), (1.5, 1.5), (5.5, 4.5))
    assert chosen(scanned).corners == ((1, 1), (5, 4))
    view = scanned.measure.profile
    qtbot.waitUntil(lambda: [each.picture for each in view.profiles] == ["input", "output"])
    source, output = view.profiles
    # Four voxels of 1 mm across and three of 2 mm down.
    assert source.length == pytest.approx(math.hypot(4, 6))
    assert source.distances[-1] == pytest.approx(math.hypot(4, 6))
    assert source.levels[0, 0] == cut(scanned, CORONAL)[1, 1]
    assert output.levels[-1, 0] == cut(scanned, CORONAL, "output")[4, 5]
    assert view.csv().startswith("distance in mm,x,z,")
    assert child(scanned, QLabel, "regionSize").text() == "7.211 mm"
    depth = scanned.session.volumes.part.voxels.shape[0]  # drawn from below
    assert child(scanned, WholeBox, "regionY").value() == depth - 2
    child(scanned, WholeBox, "regionH").setValue(0)
    assert chosen(scanned).corners == ((1, 1), (5, depth - 1))


def lines_through_tall_voxels_are_taken_beside_them_on_the_screen(
    qtbot: QtBot, scanned: MainWindow
) -> None:
    press(qtbot, scanned, "Ctrl+Alt+L")
    view = view_of(scanned, CORONAL)
    draw(view, (0.5, 2.5), (7.5, 2.5))
    beside = at(view, 3.5, 2.5) + QPointF(0, 12)  # more than a grip, less than one stretched
    drag(view, beside, QPointF(0, 60), LEFT)
    assert scanned.measuring.regions.all[0].corners == ((0, 2), (7, 2))
    assert len(scanned.measuring.regions.all) == 2


def regions_of_slices_are_made_and_moved_by_keys(qtbot: QtBot, scanned: MainWindow) -> None:
    viewer = scanned.volumes.canvas
    viewer.choose_plane(SAGITTAL)
    press(qtbot, scanned, "Ctrl+Alt+R")
    press(qtbot, scanned, "Return")
    assert chosen(scanned).plane == SAGITTAL
    before = chosen(scanned)
    slice_before = viewer.view.position[2]
    press(qtbot, scanned, "Right")
    press(qtbot, scanned, "Ctrl+Down")
    left, top, right, bottom = before.box
    assert chosen(scanned).box == (left + 1, top, right + 1, bottom + 1)
    assert viewer.view.position[2] == slice_before
    press(qtbot, scanned, "PgDown")
    assert viewer.view.position[2] != slice_before
    viewer.choose_plane(AXIAL)
    view_of(scanned, AXIAL).setFocus()
    axial = viewer.view.position[0]
    press(qtbot, scanned, "Right")  # in another plane than that of the region
    assert chosen(scanned).box == (left + 1, top, right + 1, bottom + 1)
    assert viewer.view.position[0] == axial + 1
    press(qtbot, scanned, "Esc")
    assert scanned.actions_["regionsOff"].isChecked()
    press(qtbot, scanned, "Right")
    assert chosen(scanned).box == (left + 1, top, right + 1, bottom + 1)


def test_pictures_and_volumes_have_regions_of_their_own(
    qtbot: QtBot, scanned: MainWindow, picture: Path
) -> None:
    press(qtbot, scanned, "Ctrl+Alt+R")
    draw(view_of(scanned, AXIAL), (1, 2), (5, 7))
    number = scanned.volumes.canvas.view.position[0] + 1
    figures(qtbot, scanned, {f"R1 (axial {number})"})
    load(qtbot, scanned, picture)
    assert scanned.measuring.regions.all == ()
    assert scanned.measure.rows == ()
    canvas = scanned.pictures.canvas.output.views[0]
    start, end = canvas.to_widget(QPointF(4, 4)), canvas.to_widget(QPointF(9, 9))
    drag(canvas, start, end - start, LEFT)
    assert chosen(scanned).plane is None
    assert {line[0] for line in figures(qtbot, scanned, {"R1"})} == {"R1"}
    size = scanned.measure.findChild(QLabel, "regionSize")
    assert size is not None
    assert not size.isVisible()
    within = scanned.panel.findChild(WithinBox)
    assert within is not None
    assert "R1" in within.text()
    scanned.switch_kind()
    figures(qtbot, scanned, {f"R1 (axial {number})"})
    press(
        qtbot, scanned, "Delete"
    )  # the region of the volume; that of the picture is still offered
    assert scanned.measuring.regions.all == ()
    assert "R1" in within.text()


def a_projection_is_measured_where_it_is_shown(qtbot: QtBot, scanned: MainWindow) -> None:
    press(qtbot, scanned, "Ctrl+Alt+R")
    draw(view_of(scanned, AXIAL), (1, 2), (5, 7))
    name, view = chosen(scanned).name, scanned.volumes.canvas.view
    figures(qtbot, scanned, {f"{name} (axial {view.position[0] + 1})"})
    axis, output = view.planes[AXIAL].axis, scanned.session.volumes.shown_output
    assert output is not None
    pictures = scanned.session.volumes.part, output
    for projection, extreme in ((Projection.MAXIMUM, np.max), (Projection.MEAN, np.mean)):
        view.choose_look(Look(projection=projection))
        depth = output.voxels.shape[axis]
        lines = figures(qtbot, scanned, {f"{name} ({projection.lower()} of axial 1–{depth})"})
        for line, volume in zip(lines, pictures, strict=True):
            whole = extreme(volume.voxels.astype(float), axis=axis, keepdims=True)
            inside = view.planes[AXIAL].cut(whole, 0)[2:7, 1:5]
            assert float(line[4]) == pytest.approx(inside.mean(), rel=1e-4)


def test_white_is_the_brightest_voxel_of_the_reference() -> None:
    rng = np.random.default_rng(0)
    truth = Volume.from_array(rng.integers(0, 1000, (3, 4, 5)).astype(np.int16))
    noisy = Volume.from_array(rng.integers(0, 1000, (3, 4, 5)).astype(np.float32))
    region = Interest("R1", Shape.RECTANGLE, ((0, 0), (5, 4)), plane=0)
    rows = measure([region], Against(), to_measure(noisy, (), truth, planes_of(noisy), (1, 0, 0)))
    assert [row.picture for row in rows] == ["input", "reference"]
    error = np.mean((noisy.voxels[1] - truth.voxels[1].astype(float)) ** 2)
    expected = 10 * math.log10(truth.voxels.max().item() ** 2 / error)
    assert rows[0].figures.psnr == pytest.approx(expected)
    assert rows[0].unit == noisy.voxels.max()
    assert rows[0].area is None  # the size of a voxel is not known
    assert steps_of(noisy, planes_of(noisy)[0]) is None


def test_previews_of_slices_are_measured_in_their_planes() -> None:
    """Figures stayed those of the output before, which a preview covered."""
    volume = Volume.from_array(voxels())
    request = Request.create(Scan((volume,)), "mri-nlm")
    whole = Result(request, Scan((volume,)), "cpu", "parallel", ())
    planes, position = planes_of(volume), (3, 4, 5)
    plane = planes[CORONAL]  # whose first row lies at the bottom
    assert plane.flip_rows
    inverted, previews = volume.with_voxels(2000 - volume.voxels), SlicePreviews()
    box = Box((2, 4, 1), (4, 1, 5))
    made = Result(replace(request, region=box), Scan((inverted,)).part(box), "cpu", "parallel", ())
    assert previews.put(made)
    kept = previews.at(1, 4)
    outputs = [
        Output(kept.result, "preview", CORONAL, kept.volumes[0], kept.part),
        Output(whole, EARLIER),
    ]
    below = volume.voxels.shape[0] - 6  # rows above the part
    corners = {"in": ((1, below), (6, below + 4)), "beside": ((1, below), (7, below + 4))}
    regions = [
        Interest(name, Shape.RECTANGLE, each, plane=CORONAL) for name, each in corners.items()
    ]
    regions.append(Interest("axial", Shape.RECTANGLE, ((1, 2), (3, 4)), plane=AXIAL))
    rows = measure(
        regions, Against(background="beside"), to_measure(volume, outputs, None, planes, position)
    )
    states = [row.made.state for row in rows if row.picture == "output"]
    assert states == ["preview", EARLIER, EARLIER]
    first = next(row for row in rows if row.picture == "output")
    cut = plane.cut(inverted.voxels, 4)[below : below + 4, 1:6]
    assert first.figures.mean == pytest.approx(cut.mean())
    assert (first.snr, first.figures.count) == (None, 20)
    assert first.note.startswith("No SNR of the output, preview: beside is measured in another")

    (alone,) = [
        row
        for row in measure(
            regions[1:2], Against(), to_measure(volume, outputs[:1], None, planes, position)
        )
        if row.picture == "output"
    ]
    assert (alone.figures.count, alone.made.state) == (0, "preview")
    assert "does not cover beside" in alone.note


def test_figures_name_the_channel_of_a_microscope() -> None:
    gfp = replace(Volume.from_array(voxels()), channel=Channel("GFP"))
    corners = ((0, 0), (5, 4))
    regions = [
        Interest("R1", Shape.RECTANGLE, corners, plane=0),
        Interest("R2", Shape.LINE, corners, plane=0),
        Interest("R3", Shape.ELLIPSE, corners, plane=0),
    ]
    measured = to_measure(gfp, (), None, planes_of(gfp), (1, 0, 0))
    rows = measure(regions, Against(cnr="R1"), measured)
    assert [row.channel for row in rows] == ["GFP"] * 3
    assert rows[2].cnr is not None


def test_each_channel_of_a_composite_is_measured_as_it_is_drawn() -> None:
    dapi, gfp, rfp, made, front_made = (
        replace(Volume.from_array(voxels(n)), channel=Channel(name), among=(Among("C", place, 3),))
        for n, (name, place) in enumerate(
            (("DAPI", 0), ("GFP", 1), ("", 2), ("GFP", 1), ("DAPI", 0))
        )
    )
    red, green, blue = (
        Display(0, 1000, colour_map=each)
        for each in (ColourMap.RED, ColourMap.GREEN, ColourMap.BLUE)
    )
    request = Request.create(Scan((dapi,)), "median", {"size": 3})
    result = Result(request, Scan((front_made,)), "cpu", "parallel", ())
    look = Look(beside=((gfp, green), (rfp, red)), filtered=((made, green), (rfp, red)))
    corners, plane = ((0, 0), (5, 4)), planes_of(dapi)[0]
    regions = [Interest("R1", Shape.RECTANGLE, corners, plane=0)]
    regions.append(Interest("R2", Shape.RECTANGLE, ((2, 1), (5, 4)), plane=0))
    for hidden, expected in (
        ((), [("input", "DAPI", dapi), ("input", "GFP", gfp), ("input", "channel 3", rfp),
              ("output", "DAPI", front_made), ("output", "GFP", made)]),
        ((0, 2), [("input", "GFP", gfp), ("output", "GFP", made)]),
    ):  # fmt: skip
        looks = [replace(look, hidden=frozenset(hidden))]
        measured = to_measure(
            dapi, [Output(result)], None, planes_of(dapi)[:1], (1, 0, 0), looks, blue
        )
        rows = measure(regions, Against(cnr="R1"), measured)
        assert [(row.picture, row.channel) for row in rows[: len(expected)]] == [
            (picture, channel) for picture, channel, _ in expected
        ]
        for number, (_, _, volume) in enumerate(expected):
            cut = plane.cut(volume.voxels, 1).astype(float)
            first, second = cut[0:4, 0:5], cut[1:4, 2:5]
            assert rows[number].figures.mean == pytest.approx(first.mean())
            assert rows[len(expected) + number].figures.mean == pytest.approx(second.mean())
            noise = math.hypot(first.std(ddof=1), second.std(ddof=1))
            cnr = abs(first.mean() - second.mean()) / noise
            assert rows[len(expected) + number].cnr == pytest.approx(cnr)
        inks = {"DAPI": "#0000ff", "GFP": "#00ff00", "channel 3": "#ff0000"}
        several = len({row.channel for row in rows}) > 1
        assert [row.ink for row in rows] == [inks[row.channel] * several for row in rows]
    line = Interest("R3", Shape.LINE, ((0, 0), (4, 3)), plane=0)
    lit, *_ = profiles = [profile(line, each) for each in measured]
    assert profiles_as_csv(profiles, Units.STORED).splitlines()[0] == (
        "distance in px,x,y,input GFP,output GFP,units"
    )
    assert lit.levels[0, 0] == plane.cut(gfp.voxels, 1)[0, 0]


def test_lines_are_hit_within_pixels_of_the_screen() -> None:
    regions = kept_regions()
    regions.add(Shape.LINE, ((0, 2), (9, 2)), plane=1)
    assert regions.at(5, 4.5, reach=3, plane=1) == 0
    assert regions.at(5, 4.5, reach=3, plane=1, aspect=2) == -1
    assert regions.at(5, 3.5, reach=3, plane=1, aspect=2) == 0
    assert regions.at(5, 2.5, reach=3, plane=0) == -1
    assert regions.chosen_in(1) is regions.chosen
    assert regions.chosen_in(None) is None


# --- probe ---


def test_a_magnifier_has_the_input_on_its_side_and_the_probe_leaves_another_volume(
    qtbot: QtBot, scanned: MainWindow, tmp_path: Path
) -> None:
    viewer = scanned.volumes.canvas
    viewer.view.arrange(shows_values=False)
    viewer.choose_plane(AXIAL)
    viewer.view.choose(Display(0, 2000))
    press(qtbot, scanned, "Alt+2")
    press(qtbot, scanned, "Ctrl+M")
    view = view_of(scanned, AXIAL)
    brightest = np.unravel_index(cut(scanned, AXIAL).argmax(), cut(scanned, AXIAL).shape)
    place = at(view, brightest[1] + 0.5, brightest[0] + 0.5)
    greys = []
    for share in (0.99, 0.01):  # the line is right of the voxel, then left of it
        viewer.view.set_divide(share)
        mouse(view, QEvent.Type.MouseMove, place, Qt.MouseButton.NoButton)
        greys.append(view.grab().toImage().pixelColor(place.toPoint()).red())
    expected = [cut(scanned, AXIAL, name)[brightest] for name in ("input", "output")]
    assert greys == pytest.approx([255 * each / 2000 for each in expected], abs=1)

    press(qtbot, scanned, "Ctrl+M")
    viewer.choose_plane(None)
    press(qtbot, scanned, "Alt+1")
    said: list[str] = []
    scanned.volumes.described.connect(said.append)
    view = scanned.volumes.canvas.input.views[AXIAL]
    mouse(view, QEvent.Type.MouseMove, at(view, 7.5, 8.5), Qt.MouseButton.NoButton)
    open_scan(qtbot, scanned, write(tmp_path / "small.nii.gz", voxels()[:3, :4, :5]))
    assert said[-1].startswith("x 2, y 2, z 1")


def snr_of_a_volume_takes_the_noise_of_its_background(qtbot: QtBot, scanned: MainWindow) -> None:
    press(qtbot, scanned, "Ctrl+Alt+R")
    draw(view_of(scanned, AXIAL), (1, 2), (5, 7))
    draw(view_of(scanned, AXIAL), (6, 1), (9, 4))
    background, rician = (
        child(scanned, ChoiceBox, "snrRegion"),
        child(scanned, QCheckBox, "snrRician"),
    )
    assert rician.isChecked(), "a scan, not a microscope's"
    assert not rician.isEnabled(), "no background is chosen"
    assert background.currentText() == "none"
    assert all(row.snr is None for row in scanned.measure.rows)
    background.setCurrentText(chosen(scanned).name)
    number = scanned.volumes.canvas.view.position[0] + 1
    names = {f"{each.name} (axial {number})" for each in scanned.measuring.regions.all}
    qtbot.waitUntil(lambda: any(row.snr is None for row in scanned.measure.rows))
    figures(qtbot, scanned, names)
    plane = cut(scanned, AXIAL)
    signal, air = plane[2:7, 1:5].mean(), plane[1:4, 6:9]
    noise = air.std(ddof=1)
    first = scanned.measure.rows[0]
    assert first.snr == pytest.approx(signal / (noise / 0.65514), rel=1e-4)
    scanned.measuring.regions.rename("air")
    assert background.currentText() == "air"
    rician.setChecked(False)
    qtbot.waitUntil(lambda: scanned.measure.rows[0].snr != first.snr)
    assert scanned.measure.rows[0].snr == pytest.approx((signal - air.mean()) / noise, rel=1e-4)


def test_stories_of_measuring_in_planes(qtbot: QtBot, scanned: MainWindow) -> None:
    """In one window: each begins with all planes and without regions."""
    view = scanned.volumes.canvas.view
    position = view.position
    for story in (
        a_rectangle_is_measured_in_the_slices_of_its_plane,
        regions_of_other_planes_are_neither_drawn_nor_taken,
        handles_are_taken_where_they_are_and_a_double_click_with_a_tool_keeps_the_planes,
        lines_have_lengths_in_millimetres,
        lines_through_tall_voxels_are_taken_beside_them_on_the_screen,
        regions_of_slices_are_made_and_moved_by_keys,
        snr_of_a_volume_takes_the_noise_of_its_background,
        a_projection_is_measured_where_it_is_shown,
    ):
        story(qtbot, scanned)
        press(qtbot, scanned, "Ctrl+Alt+M")
        while scanned.measuring.regions.all:
            scanned.measuring.regions.choose(0)
            scanned.measuring.regions.remove()
        scanned.volumes.canvas.choose_plane(None)
        scanned.volumes.canvas.go_to(position)
        QApplication.processEvents()  # planes have their places
