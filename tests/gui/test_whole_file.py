"""All channels and times of a file filtered by the same steps, and saved as one file."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QMessageBox, QToolButton
from pytestqt.qtbot import QtBot

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import Cancelled, NotANumber
from kernelscope.engine.control import CancelToken
from kernelscope.engine.costs import Costs
from kernelscope.engine.request import RunSettings
from kernelscope.engine.step import ESTIMATE, Step
from kernelscope.files.names import stem_of
from kernelscope.files.volumes import read_volume, read_volumes, write_volumes
from kernelscope.gui.model import volume_files
from kernelscope.gui.model.comparison import StepProgress
from kernelscope.gui.model.pipeline import Pipeline
from kernelscope.gui.model.volume_files import FilteredFile, VolumeDone, VolumeSeries
from kernelscope.gui.widgets.controls import Slider
from kernelscope.gui.widgets.messages import ErrorDialog
from kernelscope.gui.widgets.parts import ElidedLabel
from kernelscope.gui.window import scans
from kernelscope.gui.window.bars import RunBar
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.scan import Scan
from tests.gui.helpers import (
    FakeCpu,
    answer,
    child,
    choose_files,
    dialog,
    press,
    run,
    save_as,
    settle,
)
from tests.gui.test_drops import said
from tests.gui.test_volume_page import SHAPE, open_scan, voxels, write
from tests.gui.test_volume_steps import CHANNELS, TIMES, write_film

pytestmark = pytest.mark.usefixtures("compiled_judging")

MEDIAN = (RunSettings(Step.create("median")),)


def series_of(path: Path) -> VolumeSeries:
    first = read_volume(path, 1)
    return VolumeSeries(path, TIMES * CHANNELS, axes=first.among)


@pytest.fixture
def film(tmp_path: Path) -> NDArray[Any]:
    """Write a film; return its voxels."""
    return write_film(tmp_path / "film.ome.tif", np.uint16)


@pytest.fixture
def series(tmp_path: Path, film: NDArray[Any]) -> VolumeSeries:
    return series_of(tmp_path / "film.ome.tif")


@pytest.fixture
def window(qtbot: QtBot, window: MainWindow, tmp_path: Path, film: NDArray[Any]) -> MainWindow:
    """Return a window with the film."""
    open_scan(qtbot, window, tmp_path / "film.ome.tif")
    return window


def filter_all(
    filtered: FilteredFile, token: CancelToken | None = None, most: int = 99
) -> list[object]:
    """Filter as the window does; cancel after so many volumes."""
    reports, token = list[object](), token or CancelToken()

    def report(value: object) -> None:
        reports.append(value)
        if isinstance(value, VolumeDone):
            filtered.results[value.place] = value.result
            if len(filtered.results) == most:
                token.cancel()

    with closing(CpuBackend(threads=1)) as backend:
        filtered.run({}, Costs(), {"cpu": backend}, token, report)
    return reports


def test_each_volume_has_the_output_that_it_has_alone(
    tmp_path: Path, series: VolumeSeries, film: NDArray[Any]
) -> None:
    steps = (*MEDIAN, RunSettings(Step.create("greyscale")))
    filtered = FilteredFile(series, steps, None, range(6))
    reports = filter_all(filtered)
    assert not filtered.missing
    steps_seen = {each.step for each in reports if isinstance(each, StepProgress)}
    assert "Volume 3 of 6: " in steps_seen
    saved = write_volumes(filtered.outputs(), tmp_path / "out.ome.tif")
    for number, (before, after) in enumerate(
        zip(read_volumes(tmp_path / "film.ome.tif"), read_volumes(saved), strict=True)
    ):
        alone = FilteredFile(filtered.series, MEDIAN, None, [number])
        filter_all(alone)
        np.testing.assert_array_equal(after.voxels, alone.outputs()[0].voxels)
        np.testing.assert_array_equal(before.voxels, film[number // 2, number % 2])
        assert (after.channel, after.spacing, after.among, after.interval) == (
            before.channel,
            before.spacing,
            before.among,
            30.0,
        )


def test_neighbouring_times_are_one_file_and_others_one_file_each(
    tmp_path: Path, series: VolumeSeries
) -> None:
    filtered = FilteredFile(series, MEDIAN, None, range(6))
    filter_all(filtered)
    times = replace(filtered, places=range(2, 6))
    assert times.is_block
    saved = read_volumes(write_volumes(times.outputs(), tmp_path / "times.ome.tif"))
    assert [each.place for each in saved] == [
        f"time {time}, {name}" for time in (1, 2) for name in ("DAPI", "RFP")
    ]
    one = replace(filtered, places=[2, 3])
    saved_one = write_volumes(one.outputs(), tmp_path / "one.ome.tif")
    assert [each.channel.name for each in read_volumes(saved_one)] == ["DAPI", "RFP"]
    with tifffile.TiffFile(saved_one) as file:
        assert file.series[0].axes == "CZYX", "without times"
    for places in ([0, 1, 2], [0, 1, 4, 5]):  # cancelled, and with a time left out
        part = replace(filtered, places=places)
        assert not part.is_block
        assert [stem_of(each) for each in part.outputs()] == [
            f"film-time-{place // 2 + 1}-{('DAPI', 'RFP')[place % 2]}" for place in places
        ]


def test_numbers_are_estimated_for_each_volume(
    series: VolumeSeries, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = (
        RunSettings(Step.create("nlm", {"sigma": ESTIMATE})),
        RunSettings(Step.create("gaussian")),
    )
    seen = []

    def execute(request: Any, *_: object) -> None:
        seen.append((request.source.volumes[0].among, request.needs_estimates, request.then))

    monkeypatch.setattr(volume_files, "execute_all", execute)
    filtered = FilteredFile(series, steps, None, [1, 5])
    reports: list[object] = []
    filtered.run({}, Costs(), {}, CancelToken(), reports.append)
    assert [estimates for _, estimates, _ in seen] == [True, True]
    assert [[axis.index for axis in among] for among, _, _ in seen] == [[0, 1], [2, 1]]
    assert all(then == steps[1:] for _, _, then in seen)


def test_the_time_left_is_that_of_all_volumes(
    series: VolumeSeries, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    now, bar = 100.0, RunBar(QAction("Run"), QAction("Cancel"))
    qtbot.addWidget(bar)
    monkeypatch.setattr("time.monotonic", lambda: now)
    shown = []

    def report(value: object) -> None:
        if isinstance(value, StepProgress):
            bar.show_progress(value.stage, value.fraction, value.step, value.left)
            shown.append(child(bar, ElidedLabel, "runState").full_text)

    def execute(_request: Any, _backends: Any, _token: Any, progress: Any, _costs: Any) -> None:
        nonlocal now
        for fraction in (0.0, 0.25, 0.75):
            progress("compute", fraction)
            now += 10 / 3

    monkeypatch.setattr(volume_files, "execute_all", execute)
    for places in ([0, 1, 2], [0]):
        filtered = FilteredFile(series, MEDIAN, None, places)
        filtered.run({}, Costs(), {}, CancelToken(), report)
    ends = [text.partition("Compute ")[2] for text in shown if "75 %" in text]
    assert ends == ["75 %", "75 %, 13 s left", "75 %, 3 s left", "75 %, 2 s left"]


def test_a_cancelled_run_goes_on_where_it_stopped(series: VolumeSeries) -> None:
    filtered = FilteredFile(series, MEDIAN, None, range(6))
    with pytest.raises(Cancelled):
        filter_all(filtered, most=2)
    assert filtered.missing == [2, 3, 4, 5]
    done = dict(filtered.results)
    filter_all(filtered)
    assert not filtered.missing
    assert all(filtered.results[place] is result for place, result in done.items())


def test_nan_in_a_later_volume_is_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "film.ome.tif"
    film = write_film(path, np.float32)
    film[1, 0, 0, 0, 0] = np.nan
    tifffile.imwrite(path, film, ome=True, photometric="minisblack", metadata={"axes": "TCZYX"})
    filtered = FilteredFile(series_of(path), MEDIAN, None, range(6))
    assert isinstance(filter_all(filtered)[-1], NotANumber)
    assert filtered.missing == [2, 3, 4, 5]
    filtered.series.nan = 7.0
    filter_all(filtered)
    assert not filtered.missing
    assert filtered.results[2].request.source.samples[0][0, 0, 0] == 7


def test_outputs_are_those_of_equal_steps_only(series: VolumeSeries) -> None:
    filtered = FilteredFile(series, MEDIAN, None, range(6))
    assert filtered.is_of(series, (RunSettings(Step.create("median")),), None)
    assert not filtered.is_of(series, (RunSettings(Step.create("median", {"size": 5})),), None)
    assert not filtered.is_of(series, (*MEDIAN, *MEDIAN), None)
    assert not filtered.is_of(replace(series), MEDIAN, None)


@pytest.mark.slow
@pytest.mark.smoke
def test_filter_all_show_and_save(
    qtbot: QtBot, window: MainWindow, cpu: FakeCpu, tmp_path: Path
) -> None:
    members, subject = window.files.members, window.session.volumes

    def button(bar: Any, action: str) -> QToolButton:
        return next(
            each
            for each in bar.findChildren(QToolButton)
            if each.defaultAction() is window.actions_[action]
        )

    assert button(members.bar, "filterFile").isVisible()
    run(qtbot, window)
    settle(qtbot, window)
    cpu.requests.clear()
    qtbot.mouseClick(button(members.channel_bar, "filterChannels"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: members.filtered is not None and not members.filtered.missing)
    settle(qtbot, window)
    assert len(cpu.requests) == SHAPE[0], "that of the run in front is known"
    assert subject.is_current(window.session.settings)
    message = window.statusBar().currentMessage()
    assert "Filtered 1 volume of film.ome.tif" in message
    assert message.endswith("That makes 2 of the 6 volumes.")
    assert button(members.channel_bar, "filterChannels").text() == "Filter 2 channels"
    assert button(members.bar, "filterFile").text() == "Filter all 6 volumes"
    assert window.actions_["filterFile"].text() == "Filter &All 6 Volumes"

    runs = window.session.gallery.of("film.ome.tif")[:CHANNELS]
    size = "×".join(map(str, SHAPE[::-1]))
    assert [each.input for each in runs] == [
        f"film.ome.tif, time 1, {name}, {size}" for name in ("RFP", "DAPI")
    ]
    for each, place in zip(runs, (1, 0), strict=True):
        assert each.result is members.filtered.results[place]
        assert (each.settings, each.seconds) == (each.result.settings, each.result.seconds)
    assert window.runs.current is runs[1], "that of the volume in front"
    assert window.session.gallery.distinguishing(runs[0]) == ("time 1, RFP",)
    headings = [row.texts[0] for row in window.runs.table.rows.rows if row.run is None]
    assert headings[0].endswith(f"–  {runs[0].input}")
    child(window, Slider, "channelStepSlider").setValue(1)
    qtbot.waitUntil(lambda: subject.part.channel.name == "RFP")
    assert subject.result is members.filtered.results[1]
    assert subject.is_current(window.session.settings)
    assert len(cpu.requests) == SHAPE[0]
    qtbot.waitUntil(lambda: len(subject.view.look.filtered) == 1)
    ((dapi, _),) = subject.view.look.of_output.beside
    np.testing.assert_array_equal(dapi.voxels, members.filtered.results[0].scan.volumes[0].voxels)
    ((raw, _),) = subject.view.look.beside
    np.testing.assert_array_equal(raw.voxels, members.filtered.results[0].request.source.samples[0])

    qtbot.mouseClick(button(members.bar, "filterFile"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not members.filtered.missing)
    settle(qtbot, window)
    assert len(cpu.requests) == (TIMES * CHANNELS - 1) * SHAPE[0], "the first two are known"
    message = window.statusBar().currentMessage()
    assert "Filtered 4 volumes of film.ome.tif" in message
    assert message.endswith("File > Save All Volumes writes all 6 volumes to one file.")
    window.files.whole_file.filter_channels()
    assert len(window.session.gallery.saved) == 0
    press(qtbot, window, "Ctrl+Alt+S")
    for name in ("out.ome.zarr", "out.ome.tif"):
        save_as(qtbot, window, tmp_path / name)
        settle(qtbot, window)
        assert len(window.session.gallery.saved) == TIMES * CHANNELS, "Quit asks about none"
        saved = read_volumes(tmp_path / name)
        assert [each.channel.name for each in saved] == ["DAPI", "RFP"] * TIMES
        assert [each.among for each in saved] == [
            each.among for each in read_volumes(tmp_path / "film.ome.tif")
        ]
        for volume, output in zip(saved, members.filtered.outputs(), strict=True):
            np.testing.assert_array_equal(volume.voxels, output.voxels)
        press(qtbot, window, "Ctrl+Alt+S")
    chooser = child(window, QFileDialog, "saveDialog")
    chooser.selectNameFilter("OME-Zarr (*.ome.zarr *.zarr)")
    choose_files(chooser, tmp_path / "out")
    box = child(window, QMessageBox, "overwrite")
    assert "out.ome.zarr" in box.text(), "a folder is replaced only if that is chosen"
    box.reject()

    window.session.set_values(window.session.spec.id, {"size": 5})
    assert members.result_of(*members.place[:2]) is None
    press(qtbot, window, "Ctrl+Alt+S")
    asked = child(window, QMessageBox, "partOfFile")
    assert asked.text() == "6 of the 6 volumes are not filtered by these settings."
    assert len(cpu.requests) == (TIMES * CHANNELS - 1) * SHAPE[0], "nothing before the answer"
    answer(qtbot, asked, "Save All 6…")
    box = dialog(qtbot, window, QFileDialog)
    assert len(cpu.requests) == (2 * TIMES * CHANNELS - 1) * SHAPE[0]
    assert box.windowTitle() == "Save 6 Volumes"
    box.reject()


@pytest.mark.parametrize("filter_id", ["median", "nlm"])
def test_quitting_offers_to_save_all_volumes_that_took_long_together(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, filter_id: str
) -> None:
    window.session.set_filter(filter_id)
    window.files.whole_file.filter_channels()
    filtered, gallery = window.files.members.filtered, window.session.gallery
    assert filtered is not None
    qtbot.waitUntil(lambda: len(gallery) == CHANNELS)
    settle(qtbot, window)
    for seconds, count in ((4.0, 0), (7.0, CHANNELS)):
        for each in gallery:
            each.seconds = seconds
        assert len(gallery.unsaved()) == count
    window.close()
    box = dialog(qtbot, window, QMessageBox)
    took, *_ = box.informativeText().splitlines()
    assert took == "The output of film.ome.tif is not saved; it took 14 s."
    answer(qtbot, box, "Save Filtered Volumes…")
    assert dialog(qtbot, window, QFileDialog).windowTitle() == "Save 2 of 6 Volumes"
    save_as(qtbot, window, tmp_path / "out.ome.tif")
    qtbot.waitUntil(lambda: gallery.unsaved() == [])
    saved = read_volumes(tmp_path / "out.ome.tif")
    for volume, output in zip(saved, filtered.outputs(), strict=True):
        np.testing.assert_array_equal(volume.voxels, output.voxels)


def test_save_all_asks_whether_those_that_were_filtered_last_are_meant(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    said: list[str] = []
    window.file_dialogs.announced.connect(said.append)
    window.files.whole_file.filter_channels()
    settle(qtbot, window)
    for which, title, count in (
        ("Save Only 2…", "Save 2 of 6 Volumes", 2),
        ("Save All 6…", "Save 6 Volumes", 6),
    ):
        press(qtbot, window, "Ctrl+Alt+S")
        box = child(window, QMessageBox, "partOfFile")
        assert box.text() == "Of the 6 volumes, 2 channels of time 1 were filtered last."
        answer(qtbot, box, which)
        assert dialog(qtbot, window, QFileDialog).windowTitle() == title
        save_as(qtbot, window, tmp_path / f"{count}.ome.tif")
        settle(qtbot, window)
        assert len(read_volumes(tmp_path / f"{count}.ome.tif")) == count
        word = "They are 2 of the 6 volumes of the input; File > Save All Volumes saves all of them"
        assert (word in said[-1]) is (count == 2)


def test_one_channel_is_saved_under_its_name(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    press(qtbot, window, "Ctrl+S")
    chooser = dialog(qtbot, window, QFileDialog)
    assert chooser.windowTitle() == "Save 1 of 6 Volumes: time 1, DAPI"
    assert chooser.selectedFiles()[0].endswith(f"film-time-1-DAPI-{window.session.filter_id}")
    chooser.reject()


def test_a_run_of_another_source_or_of_fewer_steps_is_not_the_output(
    qtbot: QtBot, window: MainWindow, cpu: FakeCpu
) -> None:
    members, subject = window.files.members, window.session.volumes

    def filtered() -> int:
        """Filter all, and return how many slices were."""
        settle(qtbot, window)
        cpu.requests.clear()
        window.files.whole_file.filter_file()
        qtbot.waitUntil(lambda: members.filtered is not None and not members.filtered.missing)
        settle(qtbot, window)
        return len(cpu.requests)

    slices = TIMES * CHANNELS * SHAPE[0]
    run(qtbot, window)
    result, settings = subject.result, window.session.settings
    assert result is not None
    assert settings is not None
    other = replace(result.request, source=Scan(subject.moment.source.volumes))
    subject.show_output(replace(result, request=other), settings)
    assert subject.is_current(settings)
    assert filtered() == slices
    members._filtered.clear()
    pipeline = Pipeline((settings, *MEDIAN), 0, alone=True)
    subject.history.amend(pipeline=pipeline)
    assert subject.is_current(settings)
    assert filtered() == 2 * slices


def test_blocks_take_all_channels_and_times(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    film = write_film(tmp_path / "film.ome.tif", np.uint8)
    open_scan(qtbot, window, tmp_path / "film.ome.tif")
    window.actions_["filterBlocks"].trigger()
    box = dialog(qtbot, window, QFileDialog)
    target = Path(box.selectedFiles()[0])
    assert target.name == f"film-{window.session.filter_id}.ome.tif"
    box.fileSelected.emit(str(target))
    box.reject()
    qtbot.waitUntil(target.exists)
    settle(qtbot, window)
    size = "×".join(map(str, SHAPE[::-1]))
    assert f"Wrote {target}: 6 volumes of {size}, in " in window.statusBar().currentMessage()
    for number, each in enumerate(read_volumes(target)):
        time, channel = divmod(number, CHANNELS)
        assert (each.channel.name, each.interval) == (("DAPI", "RFP")[channel], 30)
        np.testing.assert_array_equal(each.voxels, 255 - film[time, channel])


def test_a_filter_of_the_whole_is_refused_in_blocks_before_a_name_is_asked_for(
    qtbot: QtBot, window: MainWindow
) -> None:
    window.session.set_filter("mri_nlm")
    window.actions_["filterBlocks"].trigger()
    error = dialog(qtbot, window, ErrorDialog)
    assert "cannot be computed in blocks" in said(error)
    error.reject()
    assert all(each.isHidden() for each in window.findChildren(QFileDialog))


def test_files_in_front_by_turns_keep_their_outputs(
    qtbot: QtBot, window: MainWindow, cpu: FakeCpu, tmp_path: Path
) -> None:
    members, subject = window.files.members, window.session.volumes
    write_film(tmp_path / "other.ome.tif")
    for name in ("film", "other"):
        if name == "other":
            open_scan(qtbot, window, tmp_path / "other.ome.tif")
        window.session.set_filter("median")
        window.files.whole_file.filter_file()
        qtbot.waitUntil(lambda: members.filtered is not None and not members.filtered.missing)
        settle(qtbot, window)
    cpu.requests.clear()
    press(qtbot, window, "Ctrl+PgUp")
    qtbot.waitUntil(lambda: subject.part.title.startswith("film"))
    settle(qtbot, window)
    for place in (1, 2):
        window.findChild(QAction, "nextVolume").trigger()
        settle(qtbot, window)
        assert subject.result is not None
        assert members.place[1:] == (2 * place, TIMES * CHANNELS)
    press(qtbot, window, "Ctrl+Alt+S")
    dialog(qtbot, window, QFileDialog).reject()
    assert cpu.requests == []


def test_outputs_of_a_file_behind_are_dropped_with_a_word(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    window.statusBar().messageChanged.connect(said.append)
    members = window.files.members
    for number, most in enumerate((10**9, 1)):
        monkeypatch.setattr(scans, "MOST_BYTES", most)
        write_film(tmp_path / f"film{number}.ome.tif")
        open_scan(qtbot, window, tmp_path / f"film{number}.ome.tif")
        settle(qtbot, window)
        window.files.whole_file.filter_file()
        qtbot.waitUntil(lambda: members.filtered is not None and not members.filtered.missing)
        assert members.filtered.bytes >= 2 * TIMES * CHANNELS * 2 * np.prod(SHAPE)
        open_scan(qtbot, window, write(tmp_path / f"T{number}.nii", voxels(9)))
        settle(qtbot, window)
        assert (members.filtered is None) is (most == 1)
    assert any("outputs of all volumes of film1.ome.tif" in each for each in said)
