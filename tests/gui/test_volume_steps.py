"""Steps through components and through the volumes of a file, by slider, keys and playing."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import DTypeLike, NDArray
from PySide6.QtCore import QPointF, QSizeF, Qt
from PySide6.QtGui import QAction, QImage, QPainter
from PySide6.QtWidgets import QApplication, QLabel, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from kernelscope.base.errors import SeveralVolumes
from kernelscope.files.volumes import read_volume
from kernelscope.gui.docks.display_panel import DisplayPanel
from kernelscope.gui.docks.volume_components import VolumeStepBar
from kernelscope.gui.model import volume_files
from kernelscope.gui.model.display import (
    Colouring,
    ColourMap,
    Display,
    Dye,
    PaneSide,
    automatic_of,
    table,
)
from kernelscope.gui.model.drawn_view import DrawnView
from kernelscope.gui.model.slice_drawing import Look, Projection, composite, dyes
from kernelscope.gui.model.volume_files import VolumeSeries
from kernelscope.gui.session.session import FIRST_FILTER
from kernelscope.gui.session.subject import SHOWN, Fields, Savable
from kernelscope.gui.viewer.layer import Slabs
from kernelscope.gui.widgets.controls import ChoiceBox, Slider
from kernelscope.gui.widgets.messages import ErrorDialog
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.window.scans import Scans
from kernelscope.gui.work.background import Background
from kernelscope.images.planes import planes_of
from kernelscope.images.scan import Scan
from kernelscope.images.source import Channel
from kernelscope.images.volume import Among, Volume
from tests.gui.helpers import Opener, child, dialog, judged_by, press, settle, show_quality
from tests.gui.test_session import made
from tests.gui.test_volume_page import SHAPE, add, open_scan, titles, voxels, write
from tests.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("compiled_judging")

COUNT = 4
"""Volumes of the file."""

TIMES, CHANNELS = 3, 2


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "bold.nii.gz", np.stack([voxels(n) for n in range(COUNT)]))


def write_cells(path: Path, stacks: NDArray[Any], names: Sequence[str] = (), **more: float) -> Path:
    """Write a file of channels."""
    metadata: dict[str, object] = {"axes": "CZYX", **more}
    if names:
        metadata["Channel"] = {"Name": list(names)}
    tifffile.imwrite(path, stacks, ome=True, photometric="minisblack", metadata=metadata)
    return path


@pytest.fixture
def bar(window: MainWindow) -> VolumeStepBar:
    return window.files.members.bar


def shows(qtbot: QtBot, window: MainWindow, number: int) -> None:
    """Wait for a volume of the file, whose seed is its number, and compare all that names it."""

    def there() -> bool:
        source = window.session.volumes.source
        return source is not None and np.array_equal(source.volumes[0].voxels, voxels(number))

    qtbot.waitUntil(there)
    assert window.volumes.canvas.input.shown is window.session.volumes.part
    assert window.files.members.bar.text == f"Volume  {number + 1} / {COUNT}"


@pytest.mark.smoke
def test_a_file_of_several_volumes_opens_with_the_first(
    qtbot: QtBot, window: MainWindow, file: Path, bar: VolumeStepBar
) -> None:
    assert not bar.isVisible()
    assert not window.findChild(QAction, "nextVolume").isEnabled()
    said: list[str] = []
    window.volumes.described.connect(said.append)
    open_scan(qtbot, window, file)
    shows(qtbot, window, 0)
    assert bar.isVisible()
    viewer = window.volumes.canvas
    viewer.go_to((1, 2, 3))
    display = viewer.view.display
    assert said[-1].startswith("volume 1   x 3")
    child(window, Slider, "volumeStepSlider").setValue(2)
    shows(qtbot, window, 2)
    assert (viewer.view.display, viewer.view.position) == (display, (1, 2, 3))
    assert said[-1].startswith("volume 3   x 3")
    assert said[-1].endswith(f"input {voxels(2)[1, 2, 3]:.4g}")
    press(qtbot, window, "Alt+.")
    shows(qtbot, window, 3)
    press(qtbot, window, "Alt+.")
    shows(qtbot, window, 0)  # after the last one comes the first
    press(qtbot, window, "Alt+,")
    shows(qtbot, window, 3)
    assert child(window, Slider, "volumeStepSlider").accessibleName() == "Volume"


def test_channels_have_names_and_micrometres(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, bar: VolumeStepBar
) -> None:
    sizes = {"PhysicalSizeX": 0.2, "PhysicalSizeY": 0.2, "PhysicalSizeZ": 0.5}
    stacks = np.stack([voxels(n) for n in range(3)])
    cells = write_cells(tmp_path / "cells.ome.tif", stacks, ["DAPI", "GFP", "RFP"], **sizes)
    open_scan(qtbot, window, cells)
    assert bar.text == "Channel  1 / 3  DAPI"
    assert window.session.filter_id == FIRST_FILTER
    assert "0.2×0.2×0.5 µm" in window.session.volumes.announce()
    press(qtbot, window, "Alt+.")
    qtbot.waitUntil(lambda: bar.text == "Channel  2 / 3  GFP")
    assert window.session.volumes.part.channel.name == "GFP"
    assert not window.session.volumes.history.undo_name, "it was only looked at"
    press(qtbot, window, "Alt+,")  # back to the first
    window.actions_["openComposite"].trigger()
    qtbot.waitUntil(lambda: window.session.pictures.source is not None)
    made = window.session.pictures.source
    assert made is not None
    assert made.channels == 3
    assert "DAPI in" in made.notices[0]
    assert "GFP in" in made.notices[0]


def test_a_series_of_times_has_no_composite(qtbot: QtBot, window: MainWindow, file: Path) -> None:
    open_scan(qtbot, window, file)
    window.actions_["openComposite"].trigger()
    qtbot.waitUntil(lambda: "has no channels" in window.statusBar().currentMessage())
    assert window.session.pictures.source is None


@pytest.mark.parametrize(
    ("colour", "expected"),
    [
        ("", ColourMap.GREY),
        ("ff0000", ColourMap.RED),
        ("00FF00", ColourMap.GREEN),
        ("0050FF", Dye("#0050FF")),
        ("00c800", Dye("#00C800")),
        ("0000ff", ColourMap.BLUE),
        ("00ffff", ColourMap.CYAN),
        ("ff00ff", ColourMap.MAGENTA),
        ("ffff00", ColourMap.YELLOW),
        ("ffffff", ColourMap.GREY),
        ("000000", ColourMap.GREY),
    ],
)
def test_a_channel_is_drawn_in_its_colour(colour: str, expected: Colouring) -> None:
    volume = replace(Volume.from_array(voxels()), channel=Channel("DAPI", colour))
    found = automatic_of(volume).colour_map
    assert (type(found), found) == (type(expected), expected)
    if colour.strip("0"):
        assert table(found)[[0, -1]].tolist() == [[0, 0, 0], list(bytes.fromhex(colour))]


def test_a_composite_adds_the_channels_up() -> None:
    first, second = np.zeros((2, 4, 4, 4), np.uint8)
    first[1, 0], second[1, :, 0] = 255, 255
    volumes = [
        replace(Volume.from_array(each, "cells"), channel=Channel(name, colour))
        for each, name, colour in ((first, "DAPI", "0000ff"), (second, "GFP", "00ff00"))
    ]
    plane = planes_of(volumes[0])[0]

    def drawn(volumes: list[Volume], look: Look = Look()) -> NDArray[np.uint8]:  # noqa: B008
        maps = dyes(volumes)
        displays = [
            replace(automatic_of(v), colour_map=m) for v, m in zip(volumes, maps, strict=True)
        ]
        return composite(list(zip(volumes, displays, strict=True)), plane, 1, look).pixels

    made = drawn(volumes)
    expected = np.zeros((4, 4, 3), np.uint8)
    expected[..., 2] = plane.cut(first, 1)
    expected[..., 1] = plane.cut(second, 1)
    np.testing.assert_array_equal(made, expected)
    unknown = [replace(each, channel=Channel()) for each in volumes]
    np.testing.assert_array_equal(drawn(unknown)[..., 0], plane.cut(first, 1))
    highest = drawn(volumes, Look(Projection.MAXIMUM))
    np.testing.assert_array_equal(highest[..., 2], plane.cut(first.max(axis=0, keepdims=True), 0))


def test_the_volumes_are_played(qtbot: QtBot, window: MainWindow, file: Path) -> None:
    open_scan(qtbot, window, file)
    seen: list[str] = []

    def note(fields: Fields) -> None:
        if SHOWN in fields:
            seen.append(window.files.members.bar.text)

    window.session.volumes.follow(note)
    play = child(window, QToolButton, "playVolumesButton")
    qtbot.mouseClick(play, Qt.MouseButton.LeftButton)
    assert play.text() == "Stop"
    qtbot.waitUntil(lambda: len(seen) > COUNT)
    assert seen[:COUNT] == [f"Volume  {n} / {COUNT}" for n in (2, 3, 4, 1)]
    press(qtbot, window, "Alt+P")
    assert not window.files.members.bar.playing
    assert not window.files.members.timer.isActive()
    press(qtbot, window, "Alt+P")
    assert window.files.members.bar.playing
    child(window, Slider, "volumeStepSlider").setValue(3)
    assert not window.files.members.bar.playing, "the hand takes over"
    shows(qtbot, window, 3)


def test_playing_stops_when_something_else_is_shown(
    qtbot: QtBot, window: MainWindow, file: Path, tmp_path: Path
) -> None:
    open_scan(qtbot, window, file)
    window.files.members.play()
    open_scan(qtbot, window, write(tmp_path / "T1.nii", voxels(9)))
    assert not window.files.members.bar.playing
    assert not window.files.members.bar.isVisible()
    settle(qtbot, window)
    assert titles(window) == ["T1.nii"]


def test_components_are_stepped_through(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, bar: VolumeStepBar
) -> None:
    said: list[str] = []
    window.volumes.described.connect(said.append)
    open_scan(qtbot, window, write(tmp_path / "T1.nii", voxels(0)))
    assert not bar.isVisible()
    add(qtbot, window, write(tmp_path / "T2.nii", voxels(1)))
    qtbot.waitUntil(bar.isVisible)
    assert bar.text == "Volume  1 / 2  T1.nii"
    press(qtbot, window, "Alt+.")
    assert bar.text == "Volume  2 / 2  T2.nii"
    assert window.session.volumes.part.title == "T2.nii"
    assert said[-1].startswith("volume 2   x ")
    child(window, Slider, "volumeStepSlider").setValue(0)
    assert window.session.volumes.part.title == "T1.nii"
    assert len(window.session.volumes.source.volumes) == 2


def test_live_follows_the_volumes(qtbot: QtBot, open_window: Opener, file: Path) -> None:
    window = open_window(live=True)
    open_scan(qtbot, window, file)
    qtbot.waitUntil(lambda: window.session.volumes.result is not None)
    for number in (1, 2):
        press(qtbot, window, "Alt+.")
        shows(qtbot, window, number)
        qtbot.waitUntil(lambda: window.session.volumes.result is not None)
        source = window.session.volumes.source
        assert window.session.volumes.result.request.source is source
    assert not window.actions_["undo"].isEnabled(), "they were only looked at"
    press(qtbot, window, "Alt+,")
    shows(qtbot, window, 1)


def test_a_file_that_is_gone_is_reported(qtbot: QtBot, window: MainWindow, file: Path) -> None:
    open_scan(qtbot, window, file)
    file.unlink()
    press(qtbot, window, "Alt+.")
    box = dialog(qtbot, window, ErrorDialog)
    assert "bold.nii.gz" in box.text()
    box.reject()
    shows(qtbot, window, 0)
    press(qtbot, window, "Alt+.")  # it is asked again
    dialog(qtbot, window, ErrorDialog).reject()


def test_volumes_are_kept_up_to_a_limit(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume_files, "MOST_BYTES", 2 * 2 * int(np.prod(SHAPE)))
    series = VolumeSeries(file, COUNT)
    for index in range(3):
        series.keep(index, series.read(index))
    assert [series.kept(index) is not None for index in range(3)] == [False, True, True]
    series.kept(1)
    series.keep(3, series.read(3))
    assert [series.kept(index) is not None for index in range(4)] == [False, True, False, True]


def test_only_volumes_of_one_grid_are_alike(tmp_path: Path, file: Path) -> None:
    with pytest.raises(SeveralVolumes) as error:
        read_volume(file)
    assert error.value.alike
    assert error.value.prefixed("Step 1: ").alike


def test_the_light_of_channels_is_added() -> None:
    """By hand: 100 in red and 50 in green are (100, 50, 0); an output takes its channel's place."""
    size = (4, 8, 8)
    red, green, output = (
        Volume.from_array(np.full(size, value, np.uint8)) for value in (100, 50, 200)
    )
    shown = [
        replace(automatic_of(each), low=0, high=255, colour_map=colours)
        for each, colours in ((red, ColourMap.RED), (green, ColourMap.GREEN))
    ]
    look, plane = Look(beside=((green, shown[1]),)), planes_of(red)[0]
    for volume, wanted in ((red, (100, 50, 0)), (output, (200, 50, 0)), (green, (50, 0, 0))):
        layer, drawn = Slabs().draw(DrawnView(volume), plane, 1, shown[0], look)
        assert drawn
        assert layer is not None
        image = QImage(8, 8, QImage.Format.Format_RGB32)
        image.fill(0)
        painter = QPainter(image)
        layer.paint(painter, QPointF(0, 0), QSizeF(1, 1), image.rect(), lambda *_: None)
        painter.end()
        colour = image.pixelColor(4, 4)
        assert (colour.red(), colour.green(), colour.blue()) == wanted
        samples = layer.samples_at(4, 4)
        assert samples is not None
        assert samples.tolist() == [volume.voxels[1, 4, 4]], "values are those of the channel"


def test_a_composite_follows_the_channel_in_front_and_goes_on_with_the_next_file(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, file: Path, bar: VolumeStepBar
) -> None:
    stacks = np.stack([voxels(n) for n in range(3)])
    cells = write_cells(tmp_path / "cells.ome.tif", stacks, ["DAPI", "GFP", "RFP"])
    open_scan(qtbot, window, cells)
    action, view = window.actions_["composite"], window.session.volumes.view
    settle(qtbot, window)
    assert view.look.beside == (), "the file states no colours"
    button = bar.findChild(QToolButton, "compositeButton")
    assert button.isVisible()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(view.look.beside) == 2)
    assert action.isChecked()

    def names() -> list[str]:
        return [volume.channel.name for volume, _ in view.look.beside]

    assert names() == ["GFP", "RFP"]
    assert view.chosen_map is ColourMap.RED
    press(qtbot, window, "Alt+.")
    qtbot.waitUntil(lambda: names() == ["DAPI", "RFP"])
    assert view.chosen_map is ColourMap.GREEN
    action.trigger()
    assert view.look.beside == ()
    assert not action.isChecked()
    action.trigger()
    qtbot.waitUntil(action.isChecked)
    open_scan(qtbot, window, file)
    qtbot.waitUntil(lambda: view.look.beside == ())
    assert action.isChecked(), "it can be ended here"
    assert not button.isVisible()
    write_film(tmp_path / "film.ome.tif")
    open_scan(qtbot, window, tmp_path / "film.ome.tif")
    qtbot.waitUntil(lambda: names() == ["RFP"])
    assert action.isChecked(), "it goes on with each file that has channels"
    open_scan(qtbot, window, file)
    action.trigger()
    assert not action.isChecked()
    action.trigger()
    assert "has no channels" in window.statusBar().currentMessage()
    assert not action.isChecked()
    open_scan(qtbot, window, cells)
    settle(qtbot, window)
    assert not action.isChecked()
    assert view.look.beside == ()


def test_channels_of_a_composite_are_hidden_by_click_and_key(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, bar: VolumeStepBar
) -> None:
    stacks = np.zeros((3, *SHAPE), np.uint8)
    for number, stack in enumerate(stacks):
        stack[:, number] = 255
    sizes = {f"PhysicalSize{axis}": 0.5 for axis in "XYZ"}
    cells = write_cells(tmp_path / "cells.ome.tif", stacks, ["DAPI", "GFP", "RFP"], **sizes)
    open_scan(qtbot, window, cells)
    view, canvas = window.session.volumes.view, window.volumes.canvas.input.views[0]
    press(qtbot, window, "Ctrl+Alt+1")
    assert view.look.hidden == frozenset(), "there is no composite"
    window.actions_["composite"].trigger()
    qtbot.waitUntil(lambda: len(view.look.beside) == 2)
    eyes = [child(bar, QToolButton, f"volumeStepsEye{n}") for n in (1, 2, 3)]
    assert [eye.text() for eye in eyes] == ["DAPI", "GFP", "RFP"]

    def seen() -> list[bool]:
        """Return whether each channel, of the rows of its number, is on the screen."""
        picture = canvas.grab().toImage()
        points = [canvas.point_of(SHAPE[2] // 3, row).toPoint() for row in range(3)]
        drawn = [picture.pixelColor(point).value() > 128 for point in points]
        assert [eye.isChecked() for eye in eyes] == drawn
        assert [window.actions_[f"channel{n}"].isChecked() for n in (1, 2, 3)] == drawn
        return drawn

    def header() -> str:
        return window.volumes.canvas.input.title.full_text

    said: list[str] = []
    window.volumes.canvas.described.connect(said.append)
    panel = DisplayPanel(window.session, window)
    assert seen() == [True, True, True]
    assert header().startswith("Input: cells.ome.tif, DAPI + GFP + RFP, 8×9×6")
    qtbot.mouseClick(eyes[0], Qt.MouseButton.LeftButton)
    assert seen() == [False, True, True], "that in front can be hidden, its values are read off"
    assert header().startswith("Input: cells.ome.tif, GFP + RFP, ")
    window.volumes.canvas.move_probe(0, 1, 0)
    assert said[-1].endswith("   of DAPI")
    panel.refresh()
    assert child(panel, QLabel, "displayNote").text().startswith("Of DAPI: each channel has its")
    press(qtbot, window, "Ctrl+Alt+3")
    assert seen() == [False, True, False]
    press(qtbot, window, "Ctrl+Alt+4")
    assert "No channel 4 is drawn" in window.statusBar().currentMessage()
    press(qtbot, window, "Alt+.")
    qtbot.waitUntil(lambda: view.look.beside[0][0].channel.name == "DAPI")
    assert seen() == [False, True, False], "whatever is in front"
    panel.refresh()
    assert child(panel, QLabel, "displayNote").text().startswith("Of GFP: ")
    qtbot.mouseClick(eyes[1], Qt.MouseButton.LeftButton)
    assert seen() == [False, False, False]
    window.actions_["composite"].trigger()
    assert not bar.findChild(QWidget, "volumeEyes").isVisible()
    assert header().startswith("Input: cells.ome.tif, GFP, ")
    panel.refresh()
    assert child(panel, QLabel, "displayNote").text().startswith("Only the view changes")
    window.actions_["composite"].trigger()
    qtbot.waitUntil(lambda: len(view.look.beside) == 2)
    assert view.look.hidden == frozenset(), "a composite begins with all channels"
    press(qtbot, window, "Ctrl+Alt+1")
    press(qtbot, window, "Ctrl+Alt+3")
    view.choose(view.display.spanning(0, 510))
    window.actions_["openComposite"].trigger()
    qtbot.waitUntil(lambda: window.session.pictures.source is not None)
    made = window.session.pictures.source
    assert made is not None
    assert made.notices == ("GFP in green.",)
    assert made.pixels.max(axis=(0, 1)).tolist() == [0, 128, 0], "in the window on the screen"
    assert made.metadata.resolution == pytest.approx((50800, 50800))


def write_film(path: Path, dtype: DTypeLike = np.int16, axes: str = "TCZYX") -> NDArray[Any]:
    """Write three times of two channels, return them; the second is red and a tenth as bright."""
    film = np.array(
        [[voxels(t) // 10**c + t for c in range(CHANNELS)] for t in range(TIMES)], dtype
    )
    tifffile.imwrite(
        path,
        film if axes[0] == "T" else film.swapaxes(0, 1),
        ome=True,
        photometric="minisblack",
        metadata={
            "axes": axes,
            "PhysicalSizeX": 0.2,
            "PhysicalSizeY": 0.2,
            "PhysicalSizeZ": 0.5,
            "TimeIncrement": 0.5,
            "TimeIncrementUnit": "min",
            "Channel": {"Name": ["DAPI", "RFP"], "Color": [0x0050FFFF, 0xFF0000FF - 2**32]},
        },
    )
    return film


@pytest.mark.parametrize("axes", ["TCZYX", "CTZYX"])
def test_times_and_channels_have_a_bar_each(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, bar: VolumeStepBar, axes: str
) -> None:
    """Times follow each other in the look of their channel."""
    film = tmp_path / "film.ome.tif"
    stacks = write_film(film, axes=axes)
    open_scan(qtbot, window, film)
    subject, channels = window.session.volumes, window.files.members.channel_bar
    view = subject.view

    def shown(time: int, channel: int) -> bool:
        return np.array_equal(subject.part.voxels, stacks[time, channel])

    assert (bar.text, channels.text) == ("Time  1 / 3  0 s", "Channel  1 / 2  DAPI")
    assert view.chosen_map == Dye("#0050FF")
    panel = DisplayPanel(window.session, window)
    maps = child(panel, ChoiceBox, "displayMap")
    assert maps.currentText() == "#0050FF"
    maps.setCurrentText("Viridis")
    assert view.chosen_map is ColourMap.VIRIDIS
    panel.refresh()
    maps.setCurrentText("#0050FF")
    assert child(window, QToolButton, "playVolumesButton").isVisible()
    assert not channels.findChild(QToolButton, "playChannelsButton").isVisible()
    qtbot.waitUntil(lambda: channels.findChild(QWidget, "channelEyes").isVisible())
    assert not bar.findChild(QWidget, "volumeEyes").isVisible(), "a channel has one button"
    window.actions_["composite"].trigger()
    child(window, Slider, "channelStepSlider").setValue(1)
    qtbot.waitUntil(lambda: shown(0, 1))
    qtbot.waitUntil(lambda: channels.text == "Channel  2 / 2  RFP")
    assert bar.text == "Time  1 / 3  0 s"
    found = view.displays.of(PaneSide.INPUT)
    assert found == automatic_of(subject.part)
    assert found is not None
    assert found.colour_map is ColourMap.RED
    assert found.high < 210

    view.choose(replace(found, high=150.0))  # by the user, for this channel
    press(qtbot, window, "Alt+.")
    qtbot.waitUntil(lambda: shown(1, 1))
    qtbot.waitUntil(lambda: bar.text == "Time  2 / 3  30 s")
    assert view.displays.of(PaneSide.INPUT) == replace(found, high=150.0)

    button = channels.findChild(QToolButton, "compositeButton")
    assert button.isVisible()
    assert not bar.findChild(QToolButton, "compositeButton").isVisible()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(view.look.beside) == 1)
    press(qtbot, window, "Alt+.")
    qtbot.waitUntil(lambda: shown(2, 1))
    qtbot.waitUntil(lambda: np.array_equal(view.look.beside[0][0].voxels, stacks[2, 0]))
    assert view.look.beside[0][1].colour_map == Dye("#0050FF")
    child(window, Slider, "channelStepSlider").setValue(0)
    qtbot.waitUntil(lambda: shown(2, 0))
    ((volume, display),) = view.look.beside
    assert np.array_equal(volume.voxels, stacks[2, 1])
    assert display == replace(found, high=150.0)
    assert view.chosen_map == Dye("#0050FF")
    press(qtbot, window, "Alt+.")  # after the last time comes the first
    qtbot.waitUntil(lambda: shown(0, 0))


class Reading:
    """Notes the volumes that are read after the first one of a file, and holds them back while
    `go` is not set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go, self.places = threading.Event(), list[int]()
        self.go.set()
        real = VolumeSeries.read

        def read(series: VolumeSeries, index: int) -> Volume:
            if index:
                self.places.append(index)
                assert self.go.wait(PATIENCE)
            return real(series, index)

        monkeypatch.setattr(VolumeSeries, "read", read)


def test_the_reference_follows_time_and_channel(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    """The second channel was compared with the first one of the reference's file."""
    film, truth = tmp_path / "film.ome.tif", tmp_path / "truth.ome.tif"
    write_film(film)
    stacks = write_film(truth)
    open_scan(qtbot, window, film)
    show_quality(window)
    subject, slider = window.session.volumes, child(window, Slider, "channelStepSlider")
    subject.set_reference(read_volume(truth, 1))

    def compared(time: int, channel: int) -> bool:
        image = subject.reference.image if subject.reference is not None else None
        return image is not None and np.array_equal(image.voxels, stacks[time, channel])

    qtbot.waitUntil(
        lambda: judged_by(window) == "Compared with truth.ome.tif, time 1, DAPI (chosen)"
    )
    slider.setValue(1)
    qtbot.waitUntil(lambda: compared(0, 1))
    press(qtbot, window, "Alt+.")
    qtbot.waitUntil(lambda: compared(1, 1))
    kept = "Compared with truth.ome.tif, time 2, RFP (kept from before)"
    qtbot.waitUntil(lambda: judged_by(window) == kept)
    slider.setValue(0)
    qtbot.waitUntil(lambda: compared(1, 0))

    alone = subject.part.with_voxels(subject.part.voxels)
    subject.set_reference(replace(alone, among=(), path=None, title="alone.tif"))
    slider.setValue(1)
    qtbot.waitUntil(lambda: subject.part.channel_number == 1)
    assert subject.reference is None
    problem = "alone.tif has no time 2, RFP: choose a reference for it."
    qtbot.waitUntil(lambda: judged_by(window) == problem)
    slider.setValue(0)
    qtbot.waitUntil(lambda: subject.reference is not None)
    press(qtbot, window, "Alt+.")  # a file without times is that of all
    qtbot.waitUntil(lambda: judged_by(window) == "Compared with alone.tif (kept from before)")
    subject.set_reference(None)
    slider.setValue(1)
    qtbot.waitUntil(lambda: judged_by(window).startswith("No reference"))


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reading]:
    made = Reading(monkeypatch)
    yield made
    made.go.set()


def test_a_composite_has_channels_of_one_time_each_read_once(
    qtbot: QtBot,
    window: MainWindow,
    tmp_path: Path,
    reading: Reading,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(volume_files, "MOST_BYTES", 0)  # only the volume in front is kept
    film = tmp_path / "film.ome.tif"
    stacks = write_film(film)
    open_scan(qtbot, window, film)
    composite, subject = window.actions_["composite"], window.session.volumes
    view = subject.view

    def drawn() -> list[tuple[int, int]]:
        """Return time and channel of all that is drawn together."""
        shown = [window.volumes.canvas.input.shown, *(volume for volume, _ in view.look.beside)]
        return [
            place
            for each in shown
            for place in np.ndindex(TIMES, CHANNELS)
            if isinstance(each, Volume) and np.array_equal(each.voxels, stacks[place])
        ]

    qtbot.waitUntil(lambda: drawn() == [(0, 0), (0, 1)])
    assert composite.isChecked(), "the file has colours of channels"
    assert reading.places == [1]
    reading.go.clear()
    press(qtbot, window, "Alt+.")
    qtbot.waitUntil(lambda: 3 in reading.places or len(reading.places) > 1)
    assert drawn() == [(0, 0), (0, 1)]
    reading.go.set()
    qtbot.waitUntil(lambda: drawn() == [(1, 0), (1, 1)])
    assert sorted(reading.places) == [1, 2, 3]

    reading.go.clear()
    subject.history.amend(name="A step")
    subject.undo()
    qtbot.waitUntil(lambda: (0, 0) in drawn() and len(reading.places) > 3)
    subject.note(SHOWN)
    assert drawn() == [(0, 0)], "the channel of another time goes at once"
    reading.go.set()
    qtbot.waitUntil(lambda: drawn() == [(0, 0), (0, 1)])
    assert reading.places[3:] == [1]

    subject.redo()
    qtbot.waitUntil(lambda: drawn() == [(1, 0), (1, 1)])
    reading.go.clear()
    subject.undo()
    qtbot.waitUntil(lambda: len(reading.places) == 6)
    composite.trigger()
    assert not composite.isChecked()
    reading.go.set()
    settle(qtbot, window)
    assert not composite.isChecked(), "it was ended while a channel was read"
    assert drawn() == [(0, 0)]

    reading.go.clear()
    composite.trigger()
    assert composite.isChecked()
    window.actions_["openComposite"].trigger()
    reading.go.set()
    qtbot.waitUntil(lambda: drawn() == [(0, 0), (0, 1)])
    qtbot.waitUntil(lambda: window.session.pictures.source is not None)


def test_a_composite_whose_file_is_gone_goes_on_with_the_next(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, reading: Reading
) -> None:
    film = tmp_path / "film.ome.tif"
    write_film(film)
    reading.go.clear()
    open_scan(qtbot, window, film)
    qtbot.waitUntil(lambda: reading.places == [1])
    film.unlink()
    reading.go.set()
    message = window.statusBar().currentMessage
    qtbot.waitUntil(lambda: message().startswith("The channels are not drawn together: film"))
    assert not window.findChildren(ErrorDialog), "nobody asked for them"
    assert not window.actions_["composite"].isChecked()
    window.actions_["composite"].trigger()
    box = dialog(qtbot, window, ErrorDialog)
    assert "film.ome.tif" in box.text()
    box.reject()
    assert not window.actions_["composite"].isChecked()
    window.session.volumes.note(SHOWN)
    settle(qtbot, window)
    assert not window.findChildren(ErrorDialog)
    write_film(tmp_path / "next.ome.tif")
    open_scan(qtbot, window, tmp_path / "next.ome.tif")
    qtbot.waitUntil(lambda: len(window.session.volumes.view.look.beside) == 1)
    assert window.actions_["composite"].isChecked()


def test_a_shorter_file_opens_while_a_volume_is_read(
    qtbot: QtBot,
    window: MainWindow,
    tmp_path: Path,
    file: Path,
    bar: VolumeStepBar,
    reading: Reading,
) -> None:
    open_scan(qtbot, window, file)
    reading.go.clear()
    press(qtbot, window, "Alt+,")
    assert bar.text == "Volume  4 / 4  reading…"
    qtbot.waitUntil(lambda: reading.places == [3])
    shorter = write(tmp_path / "short.nii.gz", np.stack([voxels(n) for n in (7, 8)]))
    open_scan(qtbot, window, shorter)
    assert bar.text == "Volume  1 / 2"
    bar.chosen.emit(3)  # as by a bar of the longer file
    reading.go.set()
    press(qtbot, window, "Alt+.")
    qtbot.waitUntil(lambda: np.array_equal(window.session.volumes.part.voxels, voxels(8)))
    assert bar.text == "Volume  2 / 2"


def test_a_contrast_that_is_chosen_while_channels_are_read_stays(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, parent = made(), QWidget()
    displays = session.volumes.view.displays
    scans = Scans(session.volumes, Background(parent), parent)
    dim, bright = (
        replace(Volume.from_array(voxels(n)), among=(Among("C", n, 2),)) for n in range(2)
    )
    session.volumes.open_volumes(Scan((dim,)))
    displays.show_input(dim, follows=False)
    chosen = replace(automatic_of(dim), high=77.0)

    def meanwhile(volume: Volume) -> Display:
        displays.choose(PaneSide.INPUT, chosen)
        scans.show_member(bright)
        return automatic_of(volume)

    assert scans.display_of(dim) is None
    monkeypatch.setattr("kernelscope.gui.window.scans.first_of", meanwhile)
    scans.find_displays([dim])
    assert scans.display_of(dim) == chosen


def test_a_channel_that_was_not_drawn_does_not_take_the_levels_of_another(
    qapp: QApplication,
) -> None:
    """The slider may move on while a channel is prepared on a thread, before it is drawn."""
    session, parent = made(), QWidget()
    subject = session.volumes
    displays = subject.view.displays
    scans = Scans(subject, Background(parent), parent)
    dim, bright, third = (
        replace(Volume.from_array(voxels(n) * 5**n), among=(Among("C", n, 3),)) for n in range(3)
    )
    subject.open_volumes(Scan((dim,)))
    displays.show_input(dim, follows=False)
    chosen = replace(automatic_of(dim), high=77.0)
    displays.choose(PaneSide.INPUT, chosen)
    scans.show_member(bright)
    scans.show_member(third)
    scans.show_member(bright)
    assert not displays.knows(bright)
    again = replace(dim)  # read once more
    scans.show_member(again)
    displays.show_input(again, follows=False)
    assert displays.of(PaneSide.INPUT) == chosen


@pytest.mark.parametrize(("name", "kind"), [("bold.nii.gz", "volumes"), ("c.ome.tif", "channels")])
def test_one_of_several_is_saved_with_a_word(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, file: Path, name: str, kind: str
) -> None:
    if kind == "channels":
        file = write_cells(tmp_path / name, np.stack([voxels(n) for n in range(COUNT)]))
    open_scan(qtbot, window, file)
    said: list[str] = []
    window.file_dialogs.announced.connect(said.append)
    window.file_dialogs._write(Savable([window.session.volumes.part], ""), tmp_path / f"one-{name}")
    qtbot.waitUntil(lambda: any("Saved" in each for each in said))
    assert said[-1].endswith(
        f"It is one of the {COUNT} {kind} of the input; File > Save All Volumes saves all of them."
    )
