"""Runs in the window: shown again with their form, starred, deleted, compared; the headline."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QComboBox, QFileDialog, QInputDialog, QLabel, QSpinBox
from pytestqt.qtbot import QtBot

from kernelscope.engine.options import Device
from kernelscope.gui.model.displays import Arrangement
from kernelscope.gui.model.figure import FigurePart
from kernelscope.gui.model.freshness import Freshness
from kernelscope.gui.model.rungs import RungPlace
from kernelscope.gui.model.runs import describe_gain, figures_of
from kernelscope.gui.session.session import Session
from kernelscope.gui.tools.picture_pair import RunPair
from kernelscope.gui.viewer.pair_view import PairView
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.image import Image
from tests.gui.helpers import (
    child,
    dialog,
    load,
    press,
    run,
    save_as,
    shown,
    wait_until,
    write_picture,
)


def median_of(qtbot: QtBot, window: MainWindow, *sizes: int) -> None:
    """Run the median with these sizes, and wait for the thumbnails."""
    window.session.set_filter("median")
    for size in sizes:
        child(window, QSpinBox, "sizeBox").setValue(size)
        run(qtbot, window)
    qtbot.waitUntil(lambda: all(each.thumbnail is not None for each in window.session.gallery))


def headline(window: MainWindow) -> str:
    return child(window, QLabel, "headlineText").text()


def focus_runs(window: MainWindow) -> None:
    window.docks[DockName.RUNS].raise_()
    window.runs.strip.setFocus()


def test_return_shows_a_run_with_its_picture_and_form(
    qtbot: QtBot, window: MainWindow, picture: Path, tmp_path: Path
) -> None:
    load(qtbot, window, picture)
    median_of(qtbot, window, 3, 7)
    load(qtbot, window, write_picture(tmp_path / "other.png", 9))
    window.session.set_filter("mean")
    focus_runs(window)
    qtbot.waitUntil(lambda: not window.runs.runs)
    assert window.runs.strip.isHidden() or not window.runs.strip.isVisible()
    assert "No runs of this picture" in child(window, QLabel, "runsEmpty").text()
    every = child(window, QComboBox, "runsOf")
    assert every.isVisible()
    every.setCurrentText("All pictures")
    qtbot.keyClick(window.runs.strip, Qt.Key.Key_Right)
    first = window.runs.current
    assert first is not None
    assert first.number == 1
    assert shown(window) == "other.png", "an arrow only moves"
    qtbot.keyClick(window.runs.strip, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: shown(window) == picture.name)
    assert window.session.filter_id == "median"
    assert child(window, QSpinBox, "sizeBox").value() == 3
    qtbot.waitUntil(lambda: window.pictures.canvas.output.shown is not None)
    assert window.session.freshness is Freshness.EXACT
    every.setCurrentText("This picture")
    assert [each.number for each in window.runs.runs] == [2, 1]


def test_clearing_the_list_leaves_the_runs_of_other_pictures(
    qtbot: QtBot, window: MainWindow, picture: Path, tmp_path: Path
) -> None:
    load(qtbot, window, picture)
    median_of(qtbot, window, 3)
    load(qtbot, window, write_picture(tmp_path / "other.png", 9))
    median_of(qtbot, window, 5)
    assert [each.number for each in window.runs.runs] == [2]
    window.actions_["clearRuns"].trigger()
    assert [each.number for each in window.session.gallery] == [1]
    assert not window.actions_["clearRuns"].isEnabled()


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


def test_a_dropped_picture_leaves_its_settings_and_a_word(
    qtbot: QtBot, window: MainWindow, picture: Path
) -> None:
    load(qtbot, window, picture)
    window.session.gallery.limit = 2 * 30 * 40  # the input and one output
    median_of(qtbot, window, 3, 7)
    qtbot.waitUntil(lambda: "made room" in window.statusBar().currentMessage())
    newest, first = window.session.gallery
    assert (newest.result is None, first.result is None) == (False, True)
    window.runs.wanted.emit(first)
    assert child(window, QSpinBox, "sizeBox").value() == 3
    assert "no longer in memory" in window.statusBar().currentMessage()
    assert not window.findChild(QAction, "saveRun").isEnabled() or window.runs.current is newest


def test_space_stars_delete_removes_and_the_next_one_is_chosen(
    qtbot: QtBot, window: MainWindow, picture: Path
) -> None:
    load(qtbot, window, picture)
    median_of(qtbot, window, 3, 5, 7)
    three, two, one = window.session.gallery
    window.runs.choose(two)
    focus_runs(window)
    qtbot.keyClick(window.runs.strip, Qt.Key.Key_Space)
    assert [each.starred for each in (three, two, one)] == [False, True, False]
    qtbot.keyClick(window.runs.strip, Qt.Key.Key_Space)
    assert not two.starred
    qtbot.keyClick(window.runs.strip, Qt.Key.Key_Delete)
    assert list(window.session.gallery) == [three, one]
    assert window.runs.current is one
    window.runs.table.setFocus()
    window.runs.choose(three)
    qtbot.keyClick(window.runs.strip, Qt.Key.Key_Delete)
    qtbot.keyClick(window.runs.strip, Qt.Key.Key_Delete)
    assert list(window.session.gallery) == []
    assert not window.findChild(QAction, "starRun").isEnabled()


def test_a_run_is_renamed_and_saved(
    qtbot: QtBot, window: MainWindow, picture: Path, tmp_path: Path
) -> None:
    load(qtbot, window, picture)
    median_of(qtbot, window, 3, 5)
    _, first = window.session.gallery
    window.runs.choose(first)
    window.findChild(QAction, "renameRun").trigger()
    box = dialog(qtbot, window, QInputDialog)
    box.textValueSelected.emit("  the best ")
    box.reject()
    assert first.title == "the best"
    window.findChild(QAction, "saveRun").trigger()
    chooser = dialog(qtbot, window, QFileDialog)
    assert "the best" in chooser.selectedFiles()[0]
    save_as(qtbot, window, tmp_path / "best.png")
    qtbot.waitUntil((tmp_path / "best.png").exists)


def test_two_chosen_runs_lie_over_each_other(
    qtbot: QtBot, window: MainWindow, picture: Path
) -> None:
    load(qtbot, window, picture)
    median_of(qtbot, window, 3, 5)
    five, three = window.session.gallery
    window.runs.choose(three)
    assert not window.findChild(QAction, "swipeRuns").isEnabled()
    strip = window.runs.strip
    window.docks[DockName.RUNS].raise_()
    place = strip.visualRect(strip.tile(0)).center()
    qtbot.waitUntil(strip.isVisible)
    control = Qt.KeyboardModifier.ControlModifier
    qtbot.mouseClick(strip.viewport(), Qt.MouseButton.LeftButton, control, place)
    assert window.findChild(QAction, "swipeRuns").isEnabled()
    pair = dialog(qtbot, window, RunPair)
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


def test_the_headline_goes_with_the_picture(
    qtbot: QtBot,
    window: MainWindow,
    picture: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load(qtbot, window, picture)
    median_of(qtbot, window, 3, 5)
    _, three = window.session.gallery
    window.runs.wanted.emit(three)
    qtbot.waitUntil(lambda: child(window, QSpinBox, "sizeBox").value() == 3)
    result = three.result
    assert result is not None
    qtbot.waitUntil(lambda: window.pictures.canvas.output.shown is result.image)
    child(window, QSpinBox, "sizeBox").setValue(9)
    assert window.session.freshness is Freshness.OUT_OF_DATE
    own = figures_of(result, three).text
    assert headline(window) == own, "the earlier picture is still shown, with its own time"
    monkeypatch.setattr(Session, "freshness", Freshness.PREVIEW)
    window.live.refreshed.emit()
    assert headline(window) == "–", "part of another result lies over it"
    monkeypatch.undo()
    window.live.refreshed.emit()
    assert headline(window) == own
    load(qtbot, window, write_picture(tmp_path / "other.png", 9))
    qtbot.waitUntil(lambda: headline(window) == "–")


def test_a_reference_that_is_chosen_later_gives_the_runs_their_figures(
    qtbot: QtBot, window: MainWindow, picture: Path, compiled_judging: None
) -> None:
    load(qtbot, window, picture)
    median_of(qtbot, window, 3, 5)
    assert [each.psnr for each in window.session.gallery] == [None, None]
    truth = Image.from_array(255 - window.session.subject.source.planes[:, :, 0], "truth")
    window.session.subject.set_reference(truth)
    qtbot.waitUntil(lambda: all(each.psnr is not None for each in window.session.gallery))
    assert all(each.psnr == np.inf for each in window.session.gallery), "the fake filter inverts"
    qtbot.waitUntil(lambda: headline(window).endswith("equal to the reference"))


def test_figures_of_a_cleared_reference_do_not_stay(
    qtbot: QtBot, window: MainWindow, picture: Path, compiled_judging: None
) -> None:
    load(qtbot, window, picture)
    assert isinstance(window.session.subject.source, Image)
    planes = window.session.subject.source.planes[:, :, 0]
    truth, other = (Image.from_array(planes // share, f"1/{share}") for share in (2, 3))
    window.session.subject.set_reference(truth)
    median_of(qtbot, window, 3)
    qtbot.waitUntil(lambda: headline(window).endswith("dB"))
    assert "PSNR" in window.session.subject.figure()(None, FigurePart.WHOLE).caption
    window.clear_reference()
    assert not headline(window).endswith("dB")
    assert "PSNR" not in window.session.subject.figure()(None, FigurePart.WHOLE).caption
    window.session.subject.set_reference(truth)
    qtbot.waitUntil(lambda: headline(window).endswith("dB"))
    window.session.subject.set_reference(other)
    assert not headline(window).endswith("dB"), "until it is compared with this one"
    qtbot.waitUntil(lambda: headline(window).endswith("dB"))


def test_a_run_aside_is_compared_with_the_reference_too(
    qtbot: QtBot, window: MainWindow, picture: Path, compiled_judging: None
) -> None:
    load(qtbot, window, picture)
    median_of(qtbot, window, 3)
    assert isinstance(window.session.subject.source, Image)
    window.session.subject.set_reference(window.session.subject.source)
    qtbot.waitUntil(lambda: all(each.psnr is not None for each in window.session.gallery))
    window.actions_["runLevels"].trigger()
    qtbot.waitUntil(lambda: len(window.session.gallery) == 3)
    qtbot.waitUntil(lambda: all(each.psnr is not None for each in window.session.gallery))
    assert len({each.psnr for each in window.session.gallery}) == 1


def test_a_gain_of_nothing_has_no_direction() -> None:
    assert [describe_gain(value) for value in (3.14, -0.06, -0.04, 0.0)] == [
        "+3.1 dB",
        "−0.1 dB",
        "±0.0 dB",
        "±0.0 dB",
    ]


@pytest.mark.parametrize("level", ["serial", "parallel"])
def test_the_button_names_what_it_compares_with(
    qtbot: QtBot, window: MainWindow, picture: Path, level: str
) -> None:
    load(qtbot, window, picture)
    window.session.set_filter("median")
    action = window.findChild(QAction, "compareRuns")
    note = child(window, QLabel, "runsNote")
    for each in ("serial", "serial", "parallel", "parallel"):
        window.session.choose_place(RungPlace(Device.CPU, each))
        before = len(window.session.gallery)
        press(qtbot, window, "F5")
        wait_until(qtbot, lambda before=before: len(window.session.gallery) > before)
    newest = next(run for run in window.session.gallery if run.level == level)
    window.runs.choose(newest)
    assert action.text() == f"&Compare with CPU {level}"
    assert action.isEnabled() == (level == "parallel")
    if level == "serial":
        assert note.toolTip() == "The other levels are compared with run 2, CPU serial."
        assert action.toolTip() == note.toolTip(), "where there is no room for the note"
        assert note.text() in ("", note.toolTip()), "it is not cut off"
        return
    action.trigger()
    assert not action.isEnabled()
    assert note.toolTip() == "The other levels are compared with run 4, CPU parallel."
