"""Runs in the window: shown again with their form, starred, deleted, compared; the headline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QInputDialog,
    QLabel,
    QMessageBox,
    QSpinBox,
)
from pytestqt.qtbot import QtBot

from kernelscope.base.text import enumerated
from kernelscope.engine.options import Device
from kernelscope.engine.region import Region
from kernelscope.gui.model.display import Arrangement, Display, PaneSide
from kernelscope.gui.model.figure import FigurePart
from kernelscope.gui.model.freshness import Freshness
from kernelscope.gui.model.ladder import RungPlace
from kernelscope.gui.model.regions import Shape
from kernelscope.gui.model.runs import describe_gain, figures_of
from kernelscope.gui.model.slice_drawing import Look, Projection
from kernelscope.gui.session.subject import RESULT
from kernelscope.gui.tools.picture_pair import RunPair
from kernelscope.gui.viewer.pair_view import PairView
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.window.runner import Runner
from kernelscope.images.image import Image
from tests.gui.helpers import (
    FakeCpu,
    answer,
    child,
    dialog,
    headline,
    load,
    press,
    run,
    save_as,
    settle,
    shown,
    wait_until,
    write_picture,
)
from tests.gui.test_volume_page import open_scan, voxels, write


def median_of(qtbot: QtBot, window: MainWindow, *sizes: int) -> None:
    """Run the median with these sizes, and wait for the thumbnails."""
    window.session.set_filter("median")
    for size in sizes:
        child(window, QSpinBox, "sizeBox").setValue(size)
        run(qtbot, window)
    qtbot.waitUntil(lambda: all(each.thumbnail is not None for each in window.session.gallery))


def focus_runs(window: MainWindow) -> None:
    window.docks[DockName.RUNS].raise_()
    window.runs.strip.setFocus()


def test_return_shows_a_run_with_its_picture_and_form(
    qtbot: QtBot, loaded: MainWindow, picture: Path, tmp_path: Path
) -> None:
    median_of(qtbot, loaded, 3, 7)
    load(qtbot, loaded, write_picture(tmp_path / "other.png", 9))
    loaded.session.set_filter("mean")
    focus_runs(loaded)
    qtbot.waitUntil(lambda: not loaded.runs.runs)
    assert loaded.runs.strip.isHidden() or not loaded.runs.strip.isVisible()
    assert "No runs of this picture" in child(loaded, QLabel, "runsEmpty").text()
    every = child(loaded, QComboBox, "runsOf")
    assert every.isVisible()
    every.setCurrentText("All pictures")
    qtbot.keyClick(loaded.runs.strip, Qt.Key.Key_Right)
    first = loaded.runs.current
    assert first is not None
    assert first.number == 1
    assert shown(loaded) == "other.png", "an arrow only moves"
    qtbot.keyClick(loaded.runs.strip, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: shown(loaded) == picture.name)
    assert loaded.session.filter_id == "median"
    assert child(loaded, QSpinBox, "sizeBox").value() == 3
    qtbot.waitUntil(lambda: loaded.pictures.canvas.output.shown is not None)
    assert loaded.session.freshness is Freshness.EXACT
    every.setCurrentText("This picture")
    assert [each.number for each in loaded.runs.runs] == [2, 1]


def test_clearing_the_list_leaves_the_runs_of_other_pictures(
    qtbot: QtBot, loaded: MainWindow, tmp_path: Path
) -> None:
    median_of(qtbot, loaded, 3)
    load(qtbot, loaded, write_picture(tmp_path / "other.png", 9))
    median_of(qtbot, loaded, 5)
    assert [each.number for each in loaded.runs.runs] == [2]
    loaded.actions_["clearRuns"].trigger()
    assert [each.number for each in loaded.session.gallery] == [1]
    assert not loaded.actions_["clearRuns"].isEnabled()


def test_where_runs_go_is_said_once(
    qtbot: QtBot, window: MainWindow, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelscope.gui.model.runs.MAX_RUNS", 3)
    load(qtbot, window, picture)
    median_of(qtbot, window, 3, 5, 7)
    assert "makes room" not in window.statusBar().currentMessage()
    median_of(qtbot, window, 9)
    said = "The list holds 3 runs: from now on the oldest makes room"
    qtbot.waitUntil(lambda: window.statusBar().currentMessage().startswith(said))
    assert [each.number for each in window.session.gallery] == [4, 3, 2]
    median_of(qtbot, window, 11)
    assert not window.statusBar().currentMessage().startswith(said)


def test_a_dropped_picture_leaves_its_settings_and_a_word(qtbot: QtBot, loaded: MainWindow) -> None:
    loaded.session.gallery.limit = 2 * 30 * 40  # the input and one output
    median_of(qtbot, loaded, 3, 7)
    qtbot.waitUntil(lambda: "made room" in loaded.statusBar().currentMessage())
    newest, first = loaded.session.gallery
    assert (newest.result is None, first.result is None) == (False, True)
    loaded.runs.wanted.emit(first)
    assert child(loaded, QSpinBox, "sizeBox").value() == 3
    assert "no longer in memory" in loaded.statusBar().currentMessage()
    assert not loaded.findChild(QAction, "saveRun").isEnabled() or loaded.runs.current is newest


def test_space_stars_delete_removes_and_the_next_one_is_chosen(
    qtbot: QtBot, loaded: MainWindow
) -> None:
    median_of(qtbot, loaded, 3, 5, 7)
    three, two, one = loaded.session.gallery
    loaded.runs.choose(two)
    focus_runs(loaded)
    qtbot.keyClick(loaded.runs.strip, Qt.Key.Key_Space)
    assert [each.starred for each in (three, two, one)] == [False, True, False]
    qtbot.keyClick(loaded.runs.strip, Qt.Key.Key_Space)
    assert not two.starred
    qtbot.keyClick(loaded.runs.strip, Qt.Key.Key_Delete)
    assert list(loaded.session.gallery) == [three, one]
    assert loaded.runs.current is one
    loaded.runs.table.setFocus()
    loaded.runs.choose(three)
    qtbot.keyClick(loaded.runs.strip, Qt.Key.Key_Delete)
    qtbot.keyClick(loaded.runs.strip, Qt.Key.Key_Delete)
    assert list(loaded.session.gallery) == []
    assert not loaded.findChild(QAction, "starRun").isEnabled()


def test_a_run_is_renamed_and_saved(qtbot: QtBot, loaded: MainWindow, tmp_path: Path) -> None:
    median_of(qtbot, loaded, 3, 5)
    _, first = loaded.session.gallery
    loaded.runs.choose(first)
    loaded.findChild(QAction, "renameRun").trigger()
    box = dialog(qtbot, loaded, QInputDialog)
    box.textValueSelected.emit("  the best ")
    box.reject()
    assert first.title == "the best"
    loaded.findChild(QAction, "saveRun").trigger()
    chooser = dialog(qtbot, loaded, QFileDialog)
    assert "the best" in chooser.selectedFiles()[0]
    save_as(qtbot, loaded, tmp_path / "best.png")
    qtbot.waitUntil((tmp_path / "best.png").exists)


def test_two_chosen_runs_lie_over_each_other(qtbot: QtBot, loaded: MainWindow) -> None:
    median_of(qtbot, loaded, 3, 5)
    five, three = loaded.session.gallery
    loaded.runs.choose(three)
    assert not loaded.findChild(QAction, "swipeRuns").isEnabled()
    strip = loaded.runs.strip
    loaded.docks[DockName.RUNS].raise_()
    place = strip.visualRect(loaded.runs.table.rows.index(1, 0)).center()
    qtbot.waitUntil(strip.isVisible)
    control = Qt.KeyboardModifier.ControlModifier
    qtbot.mouseClick(strip.viewport(), Qt.MouseButton.LeftButton, control, place)
    assert loaded.findChild(QAction, "swipeRuns").isEnabled()
    pair = dialog(qtbot, loaded, RunPair)
    images = pair.findChild(PairView)
    assert images.view.panes.arrangement is Arrangement.SWIPE
    assert three.result is not None
    assert five.result is not None
    assert images.input.shown is three.result.image
    assert images.output.shown is five.result.image
    assert images.output.views[0].names == (f"Run {three.number}", f"Run {five.number}")
    pair.findChild(QAction, "pairSide_By_Side").trigger()
    qtbot.waitUntil(lambda: images.view.panes.arrangement is Arrangement.SIDE_BY_SIDE)
    pair.close()


def test_two_runs_of_a_volume_are_looked_at_as_in_the_window(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    """They had the middle slice, an automatic window and no regions, and one run's heading."""
    volume = write(tmp_path / "T1.nii.gz", voxels())
    open_scan(qtbot, window, volume)
    view, session = window.volumes.canvas.view, window.session
    for filter_id in ("mri_nlm", "mean"):
        session.set_filter(filter_id)
        run(qtbot, window)
    window.volumes.canvas.go_to((1, 2, 3))
    window.volumes.canvas.choose_plane(1)
    view.choose(Display(100, 900))
    view.choose_look(Look(Projection.MAXIMUM, 3))
    window.measuring.regions.add(Shape.RECTANGLE, ((1, 2), (5, 7)), 1)
    second, first = session.gallery
    window.runs.pair_wanted.emit(first, second)
    pair = dialog(qtbot, window, RunPair)
    images = pair.findChild(PairView)
    assert images.view.position == (1, 2, 3)
    assert images.view.plane_number == 1
    assert images.view.look == view.look
    shown = [images.view.displays.of(side) for side in PaneSide]
    assert [(each.low, each.high) for each in shown] == [(100, 900)] * 2
    assert images.output.views[1].regions.regions.all == window.measuring.regions.all
    heading = images.output.title.toolTip() or images.output.title.text()
    assert first.filter_name in heading
    assert second.filter_name in heading
    pair.findChild(QAction, "pairSide_By_Side").trigger()
    heading = images.output.title.toolTip() or images.output.title.text()
    assert first.filter_name not in heading
    pair.close()


def test_the_headline_goes_with_the_picture(
    qtbot: QtBot, loaded: MainWindow, tmp_path: Path
) -> None:
    median_of(qtbot, loaded, 3, 5)
    _, three = loaded.session.gallery
    loaded.runs.wanted.emit(three)
    qtbot.waitUntil(lambda: child(loaded, QSpinBox, "sizeBox").value() == 3)
    result = three.result
    assert result is not None
    qtbot.waitUntil(lambda: loaded.pictures.canvas.output.shown is result.image)
    child(loaded, QSpinBox, "sizeBox").setValue(9)
    assert loaded.session.freshness is Freshness.OUT_OF_DATE
    own = figures_of(result, three).text
    assert headline(loaded) == own, "the earlier picture is still shown, with its own time"
    corner = replace(result.request, region=Region(0, 0, 4, 4))
    part = replace(result, request=corner, output=Image.from_array(result.image.pixels[:4, :4]))
    assert loaded.session.subject.show_preview(part)
    assert not headline(loaded), "part of another result lies over it"
    loaded.session.subject.note(RESULT)
    assert headline(loaded) == own
    load(qtbot, loaded, write_picture(tmp_path / "other.png", 9))
    qtbot.waitUntil(lambda: not headline(loaded))


def test_a_reference_that_is_chosen_later_gives_the_runs_their_figures(
    qtbot: QtBot, loaded: MainWindow, compiled_judging: None
) -> None:
    median_of(qtbot, loaded, 3, 5)
    assert [each.psnr for each in loaded.session.gallery] == [None, None]
    truth = Image.from_array(255 - loaded.session.subject.source.planes[:, :, 0], "truth")
    loaded.session.subject.set_reference(truth)
    qtbot.waitUntil(lambda: all(each.psnr is not None for each in loaded.session.gallery))
    assert all(each.psnr == np.inf for each in loaded.session.gallery), "the fake filter inverts"
    qtbot.waitUntil(lambda: headline(loaded).endswith("equal to the reference"))
    loaded.actions_["runLevels"].trigger()  # one of the levels runs aside
    qtbot.waitUntil(lambda: len(loaded.session.gallery) == 4)
    qtbot.waitUntil(lambda: all(each.psnr is not None for each in loaded.session.gallery))


def test_figures_of_a_cleared_reference_do_not_stay(
    qtbot: QtBot, loaded: MainWindow, compiled_judging: None
) -> None:
    assert isinstance(loaded.session.subject.source, Image)
    planes = loaded.session.subject.source.planes[:, :, 0]
    truth, other = (Image.from_array(planes // share, f"1/{share}") for share in (2, 3))
    loaded.session.subject.set_reference(truth)
    median_of(qtbot, loaded, 3)
    qtbot.waitUntil(lambda: headline(loaded).endswith("dB"))
    assert "PSNR" in loaded.session.subject.figure()(None, FigurePart.WHOLE).caption
    loaded.clear_reference()
    assert not headline(loaded).endswith("dB")
    assert "PSNR" not in loaded.session.subject.figure()(None, FigurePart.WHOLE).caption
    loaded.session.subject.set_reference(truth)
    qtbot.waitUntil(lambda: headline(loaded).endswith("dB"))
    loaded.session.subject.set_reference(other)
    assert not headline(loaded).endswith("dB"), "until it is compared with this one"
    qtbot.waitUntil(lambda: headline(loaded).endswith("dB"))


def test_a_gain_of_nothing_has_no_direction() -> None:
    assert [describe_gain(value) for value in (3.14, -0.06, -0.04, 0.0)] == [
        "+3.1 dB",
        "−0.1 dB",
        "±0.0 dB",
        "±0.0 dB",
    ]


def test_the_button_names_what_it_compares_with(qtbot: QtBot, loaded: MainWindow) -> None:
    loaded.session.set_filter("median")
    action = loaded.findChild(QAction, "compareRuns")
    note = child(loaded, QLabel, "runsNote")
    for each in ("serial", "serial", "parallel", "parallel"):
        loaded.session.choose_place(RungPlace(Device.CPU, each))
        before = len(loaded.session.gallery)
        press(qtbot, loaded, "F5")
        wait_until(qtbot, lambda before=before: len(loaded.session.gallery) > before)
    for level in ("serial", "parallel"):
        loaded.runs.choose(next(run for run in loaded.session.gallery if run.level == level))
        assert action.text() == f"&Compare with CPU {level}"
        assert action.isEnabled() == (level == "parallel")
        if level == "serial":
            assert note.toolTip() == "The other levels are compared with run 2, CPU serial."
            assert action.toolTip() == note.toolTip(), "where there is no room for the note"
            assert note.text() in ("", note.toolTip()), "it is not cut off"
    action.trigger()
    assert not action.isEnabled()
    assert note.toolTip() == "The other levels are compared with run 4, CPU parallel."


def test_quitting_asks_once_about_an_output_that_took_long_and_is_not_saved(
    qtbot: QtBot, loaded: MainWindow, picture: Path, tmp_path: Path
) -> None:
    median_of(qtbot, loaded, 3, 5)
    quick, slow = reversed(list(loaded.session.gallery))
    assert loaded.session.gallery.unsaved() == []
    slow.seconds = 47.0
    twin = replace(slow, seconds=2.0)
    loaded.session.gallery._runs.insert(0, twin)
    assert loaded.session.gallery.unsaved() == [], "it is computed again in 2 s"
    loaded.session.gallery._runs.remove(twin)
    loaded.close()
    box = dialog(qtbot, loaded, QMessageBox)
    assert box.informativeText() == (
        "The output of ramp.png is not saved; it took 47 s.\n"
        "Reopen Last Session will open the files again, with their steps."
    )
    answer(qtbot, box, "Cancel")
    assert loaded.isVisible()

    load(qtbot, loaded, write_picture(picture.with_name("other.png"), 5))
    loaded.close()
    answer(qtbot, dialog(qtbot, loaded, QMessageBox), "Save…")
    save_as(qtbot, loaded, tmp_path / "slow.png")
    qtbot.waitUntil(lambda: loaded.session.gallery.unsaved() == [])
    quick.seconds = 30.0
    assert loaded.session.gallery.unsaved() == [], "of its picture an output was saved"
    qtbot.waitUntil(lambda: not loaded.isVisible())


def test_quitting_offers_to_save_one_output_after_the_other(
    qtbot: QtBot, loaded: MainWindow, picture: Path, tmp_path: Path
) -> None:
    median_of(qtbot, loaded, 3)
    load(qtbot, loaded, write_picture(picture.with_name("other.png"), 5))
    median_of(qtbot, loaded, 5)
    for each in loaded.session.gallery:
        each.seconds = 47.0
    loaded.close()
    for name in ("first", "second"):
        answer(qtbot, dialog(qtbot, loaded, QMessageBox), "Save…")
        save_as(qtbot, loaded, tmp_path / f"{name}.png")
    qtbot.waitUntil(lambda: not loaded.isVisible())
    assert loaded.session.gallery.unsaved() == []


def test_what_took_long_and_is_not_saved_makes_room_for_nothing(
    qtbot: QtBot, loaded: MainWindow, picture: Path
) -> None:
    median_of(qtbot, loaded, 3)
    loaded.open_pictures.documents.limit = 0
    next(iter(loaded.session.gallery)).seconds = 47.0
    (document,) = loaded.open_pictures.documents
    load(qtbot, loaded, write_picture(picture.with_name("other.png"), 5))
    assert not document.asleep
    next(iter(loaded.session.gallery)).seconds = 2.0
    load(qtbot, loaded, write_picture(picture.with_name("third.png"), 6))
    qtbot.waitUntil(lambda: document.asleep)
    loaded._leaves = True


def test_quitting_asks_about_runs_on_pictures_that_no_file_has(
    qtbot: QtBot, window: MainWindow
) -> None:
    """They were lost without a word: the last session brings back files alone."""
    window.file_dialogs.loaded.emit(Image.from_array(np.eye(40, dtype=np.uint8), "pasted picture"))
    settle(qtbot, window)
    assert not window._asks_about_outputs(), "it was only looked at"
    median_of(qtbot, window, 3)
    window.page.use_output()
    settle(qtbot, window)
    median_of(qtbot, window, 5)
    first, second = reversed(list(window.session.gallery))
    assert window.session.gallery.unsaved() == []
    assert window.session.gallery.unsaved(window.open_pictures.of_no_file()) == [second, first]
    window.close()
    box = dialog(qtbot, window, QMessageBox)
    took, *texts = box.informativeText().splitlines()
    assert "pasted picture" in took
    inputs = sorted({first.picture, second.picture})
    assert texts == [f"No file has the input: {enumerated(inputs)}."]
    answer(qtbot, box, "Quit")
    qtbot.waitUntil(lambda: not window.isVisible())


def test_esc_stops_a_long_run_when_it_is_pressed_twice(
    qtbot: QtBot, loaded: MainWindow, cpu: FakeCpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [0.0]
    monkeypatch.setattr(Runner, "seconds", property(lambda _: seconds[0]))
    for presses in ([5.0], [40.0, 42.0], [40.0, 44.0, 46.0]):
        cpu.go.clear()
        cpu.entered.clear()
        press(qtbot, loaded, "F5")
        qtbot.waitUntil(cpu.entered.is_set)
        for seconds[0] in presses:
            assert loaded.runner.busy
            press(qtbot, loaded, "Esc")
            if loaded.runner.busy:
                assert "This run has taken 4" in loaded.statusBar().currentMessage()
        assert not loaded.runner.busy
    press(qtbot, loaded, "F5")
    loaded.close()
    box = dialog(qtbot, loaded, QMessageBox)
    assert box.informativeText().splitlines()[0] == "The run under way has taken 46 s."
    answer(qtbot, box, "Cancel")
    loaded.findChild(QAction, "cancel").trigger()  # with the mouse
    assert not loaded.runner.busy
    seconds[0] = 0.0
    cpu.go.set()
