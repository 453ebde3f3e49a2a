"""The output belongs to the present settings, or is marked as older."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QComboBox, QLabel, QSpinBox, QToolButton
from pytestqt.qtbot import QtBot

from kernelscope.base.errors import AppError
from kernelscope.engine.backend import Availability
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.controls import NumberBox
from kernelscope.gui.widgets.messages import ErrorDialog
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.schema.borders import Border
from tests.gui.helpers import (
    FakeCpu,
    Opener,
    child,
    choose_place,
    dialog,
    headline,
    is_done,
    load,
    offers,
    press,
    run,
    shown,
    state,
    write_picture,
)
from tests.gui.test_volume_page import voxels, write


def caption(window: MainWindow) -> str:
    return child(window, QLabel, "outputTitle").toolTip()


def is_marked(window: MainWindow) -> bool:
    """Return whether the output is marked as of other settings, in all places or in none."""
    marks = {
        caption(window).startswith("Earlier settings – "),
        child(window, QLabel, "outputTitle").palette().windowText().color()
        == theme.warning_text(window.palette()),
    }
    assert len(marks) == 1, caption(window)
    return marks.pop()


def choose(window: MainWindow, name: str, text: str) -> None:
    """Choose an entry of a list, as the user does."""
    combo = child(window, QComboBox, name)
    combo.setCurrentText(text)
    combo.activated.emit(combo.currentIndex())


Change = Callable[[MainWindow], None]
CHANGES: dict[str, tuple[Change, Change]] = {
    "parameter": (
        lambda w: child(w, QSpinBox, "sizeBox").setValue(9),
        lambda w: child(w, QSpinBox, "sizeBox").setValue(3),
    ),
    "filter": (lambda w: w.session.set_filter("mean"), lambda w: w.session.set_filter("median")),
    "border": (lambda w: choose(w, "border", "Wrap"), lambda w: choose(w, "border", "Reflect")),
    "level": (
        lambda w: choose_place(w, "cpu", "serial"),
        lambda w: choose_place(w, "auto"),
    ),
    "repeat": (
        lambda w: w.findChild(QSpinBox, "repeat").setValue(5),
        lambda w: w.findChild(QSpinBox, "repeat").setValue(1),
    ),
    "memory": (
        lambda w: w.findChild(QSpinBox, "memoryLimit").setValue(5),
        lambda w: w.findChild(QSpinBox, "memoryLimit").setValue(0),
    ),
    "not a number": (
        lambda w: child(w, QSpinBox, "sizeBox").lineEdit().setText("3.5"),
        lambda w: child(w, QSpinBox, "sizeBox").lineEdit().setText("3"),
    ),
}


def test_an_output_of_other_settings_says_so_until_they_are_back(
    qtbot: QtBot, window: MainWindow, picture: Path
) -> None:
    window.session.set_filter("median")
    load(qtbot, window, picture)
    assert state(window) == ""
    for change, back in CHANGES.values():
        press(qtbot, window, "F2")
        run(qtbot, window)
        assert not is_marked(window)
        done = headline(window)
        assert is_done(window)
        change(window)
        assert is_marked(window)
        press(qtbot, window, "F3")  # the residual is of the same run
        qtbot.waitUntil(lambda: "Residual" in caption(window))
        assert is_marked(window)
        back(window)
        assert not is_marked(window)
        assert headline(window) == done
        change(window)
        back(window)
        run(qtbot, window)
        assert not is_marked(window)
    window.session.set_grey(True)  # of a grey picture, where it has no effect
    assert not is_marked(window)
    assert is_done(window)


@pytest.mark.smoke
def test_another_picture_has_no_output_and_no_time(
    qtbot: QtBot, loaded: MainWindow, picture: Path, tmp_path: Path
) -> None:
    run(qtbot, loaded)
    done = headline(loaded)
    load(qtbot, loaded, write_picture(tmp_path / "other.png", 9))
    assert state(loaded) == ""
    assert caption(loaded) == "Output"
    press(qtbot, loaded, "Ctrl+PgUp")
    qtbot.waitUntil(lambda: shown(loaded) == picture.name)
    assert headline(loaded) == done
    assert not is_marked(loaded)


def test_a_failed_run_is_said_until_something_is_changed(
    qtbot: QtBot, loaded: MainWindow, cpu: FakeCpu
) -> None:
    cpu.error = AppError("No.")
    press(qtbot, loaded, "F5")
    dialog(qtbot, loaded, ErrorDialog).reject()
    assert state(loaded) == "Failed."
    child(loaded, QSpinBox, "sizeBox").setValue(9)
    assert state(loaded) == ""


# --- undo ---


@pytest.mark.smoke
def test_undo_brings_back_the_settings_of_what_is_shown(
    qtbot: QtBot, open_window: Opener, picture: Path, cpu: FakeCpu
) -> None:
    window = open_window(Availability(True, "a card"))
    window.find_gpu()
    qtbot.waitUntil(lambda: offers(window, "gpu"))
    load(qtbot, window, picture)
    window.session.set_filter("median")
    child(window, QSpinBox, "sizeBox").setValue(7)
    choose(window, "border", "Wrap")
    choose_place(window, "cpu", "serial")
    window.session.set_grey(True)
    run(qtbot, window)
    first = window.session.require()
    press(qtbot, window, "Ctrl+U")
    qtbot.waitUntil(lambda: window.pictures.canvas.output.shown is None)
    window.session.set_filter("mean")
    child(window, QSpinBox, "sizeBox").setValue(5)
    choose(window, "border", "Mirror")
    choose_place(window, "cpu", "parallel")
    window.session.set_grey(False)
    second = window.session.require()

    press(qtbot, window, "Ctrl+Z")
    qtbot.waitUntil(lambda: window.pictures.canvas.output.shown is not None)
    assert window.session.require() == first
    assert not is_marked(window)
    cpu.requests.clear()
    run(qtbot, window)  # repeats the visible result
    assert (cpu.requests[-1].step.filter.id, cpu.requests[-1].step.border) == (
        "median",
        Border.WRAP,
    )

    child(window, QSpinBox, "sizeBox").setValue(11)
    press(qtbot, window, "Ctrl+Shift+Z")
    qtbot.waitUntil(lambda: window.pictures.canvas.output.shown is None)
    assert window.session.require() == second  # as it was left
    press(qtbot, window, "Ctrl+Z")
    qtbot.waitUntil(lambda: window.pictures.canvas.output.shown is not None)
    assert window.session.require() == first


def test_undo_brings_back_that_a_number_is_estimated(qtbot: QtBot, loaded: MainWindow) -> None:
    loaded.session.set_filter("nlm")
    assert loaded.session.automatic == ("sigma", "patch", "filter_sigma")
    run(qtbot, loaded)
    assert not is_marked(loaded)
    estimated = child(loaded, NumberBox, "filter_sigmaBox").value()
    press(qtbot, loaded, "Ctrl+U")
    qtbot.waitUntil(lambda: loaded.pictures.canvas.output.shown is None)
    child(loaded, NumberBox, "filter_sigmaBox").setValue(0.125)
    assert loaded.session.automatic == ("sigma", "patch")
    press(qtbot, loaded, "Ctrl+Z")
    qtbot.waitUntil(lambda: loaded.pictures.canvas.output.shown is not None)
    assert loaded.session.automatic == ("sigma", "patch", "filter_sigma")
    assert child(loaded, NumberBox, "filter_sigmaBox").value() == estimated
    assert not is_marked(loaded)


def test_an_output_of_volumes_is_of_one_axis_of_slices(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    window.file_dialogs.open(write(tmp_path / "T1.nii.gz", voxels()))
    qtbot.waitUntil(lambda: window.session.volumes.source is not None)
    viewer = window.volumes.canvas
    title = child(window, QLabel, "volumeOutputTitle")
    window.session.set_filter("median")
    child(window, QSpinBox, "sizeBox").setValue(5)
    press(qtbot, window, "F5")
    qtbot.waitUntil(lambda: viewer.output.shown is not None)
    assert not title.toolTip().startswith("Earlier settings – ")
    viewer.choose_plane(1)  # slices across another axis would be another result
    assert title.toolTip().startswith("Earlier settings – ")
    viewer.choose_plane(None)
    assert not title.toolTip().startswith("Earlier settings – ")
    window.session.set_filter("mean")
    assert title.toolTip().startswith("Earlier settings – ")


# --- F5 during a run ---


def test_the_same_run_again_does_not_begin_anew(
    qtbot: QtBot, loaded: MainWindow, cpu: FakeCpu
) -> None:
    for filter_id in ("median", "nlm"):  # a run, and one that estimates first
        loaded.session.set_filter(filter_id)
        cpu.go.clear()
        cpu.entered.clear()
        cpu.requests.clear()
        press(qtbot, loaded, "F5")
        qtbot.waitUntil(cpu.entered.is_set)
        qtbot.waitUntil(lambda: state(loaded) == "Compute 50 %")
        press(qtbot, loaded, "F5")
        assert "under way already" in loaded.statusBar().currentMessage()
        cpu.go.set()
        qtbot.waitUntil(lambda: is_done(loaded))
        assert len(cpu.requests) == 1
    assert "Cancelled" not in loaded.console.text()


@pytest.mark.parametrize("filter_id", ["mean", "nlm"])
def test_another_run_says_that_it_takes_the_place_of_the_first(
    qtbot: QtBot, loaded: MainWindow, cpu: FakeCpu, filter_id: str
) -> None:
    loaded.session.set_filter("median")
    cpu.go.clear()
    press(qtbot, loaded, "F5")
    qtbot.waitUntil(cpu.entered.is_set)
    assert child(loaded, QToolButton, "runButton").text() == "Restart"
    loaded.session.set_filter(filter_id)
    press(qtbot, loaded, "F5")
    message = loaded.statusBar().currentMessage
    qtbot.waitUntil(lambda: "in place of the run that was under way" in message())
    qtbot.waitUntil(lambda: "for a later run: Median" in loaded.console.text())
    cpu.go.set()
    qtbot.waitUntil(lambda: is_done(loaded))
    assert child(loaded, QToolButton, "runButton").text() == "Run"
    press(qtbot, loaded, "F5")
    qtbot.waitUntil(lambda: len(cpu.requests) > 2)
    assert "in place" not in message()
    qtbot.waitUntil(lambda: is_done(loaded))


def test_a_caption_has_only_what_is_not_as_by_default(qtbot: QtBot, loaded: MainWindow) -> None:
    loaded.session.set_filter("nlm")
    loaded.session.set_values("nlm", {"filter_sigma": 0.0375, "sigma": 4.0, "patch": 7})
    run(qtbot, loaded)
    details = child(loaded, QLabel, "outputDetails")
    assert details.text() == "NLM · h 0.0375 · CPU parallel"
    assert details.toolTip().startswith("CPU parallel, Non-local means, noise sigma 4 %, ")
    assert details.accessibleDescription() == details.toolTip()
    loaded.session.set_values(
        "nlm", {"filter_sigma": 0.0375, "sigma": 4.0, "patch": 5, "search_radius": 7}
    )
    run(qtbot, loaded)
    assert details.text() == "NLM · 5×5 · r 7 px · h 0.0375 · CPU parallel"
