"""Recipes, estimates and the progress of long runs in the window."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QDoubleSpinBox,
    QFileDialog,
    QLabel,
    QMessageBox,
    QProgressBar,
    QToolButton,
)
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.engine import steps
from kernelscope.engine.recipe import Recipe
from kernelscope.files import read_recipe
from kernelscope.gui.docks.parameter_panel import ParameterPanel
from kernelscope.gui.model.freshness import Pace
from kernelscope.gui.session.session import Session
from kernelscope.gui.widgets.messages import ErrorDialog
from kernelscope.gui.widgets.parts import ElidedLabel
from kernelscope.gui.window.bars import RunBar
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.work.background import Background
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.parameters import FloatParameter, Parameter
from kernelscope.schema.samples import Kind, Pixels
from tests.gui.helpers import (
    FakeCpu,
    Opener,
    child,
    choose_files,
    dialog,
    estimated,
    load,
    press,
    run,
    settle,
    state,
)
from tests.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("compiled_judging")

ESTIMATED = [
    (spec, parameter)
    for spec in filters.discover().values()
    for parameter in spec.parameters
    if isinstance(parameter, FloatParameter) and parameter.estimate is not None
    if spec.kind is Kind.PICTURE
]
"""Filters of pictures and their parameters that can be estimated."""


def before(spec: FilterSpec, parameter: Parameter, planes: Pixels) -> dict[str, Any]:
    """Return the defaults, with estimates of the parameters before this one."""
    values = spec.defaults()
    for each in spec.parameters[: spec.parameters.index(parameter)]:
        if each.is_estimated:
            values[each.name] = each.estimate_from(planes, values)
    return values


def write_recipe(path: Path, *steps: dict[str, object]) -> Path:
    content = {"format": "kernelscope recipe", "version": 2, "steps": list(steps)}
    path.write_text(json.dumps(content))
    return path


def choose(qtbot: QtBot, window: MainWindow, path: Path) -> None:
    chooser = dialog(qtbot, window, QFileDialog)
    choose_files(chooser, path)


def run_recipe(qtbot: QtBot, window: MainWindow, path: Path) -> None:
    press(qtbot, window, "Ctrl+Shift+R")
    choose(qtbot, window, path)


@pytest.fixture
def three(tmp_path: Path) -> Path:
    return write_recipe(
        tmp_path / "three.json",
        {"filter": "gaussian-noise", "parameters": {"variance": 0.002}},
        {"filter": "mean", "parameters": {"size": 5}, "border": "wrap"},
        {"filter": "median"},
    )


@pytest.mark.smoke
def test_a_recipe_runs_step_by_step_and_can_be_undone(
    qtbot: QtBot, loaded: MainWindow, three: Path, cpu: FakeCpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read elsewhere: a pipe, or a share that does not answer, would hold the window."""
    threads: list[threading.Thread] = []

    def read(path: Path) -> Recipe:
        threads.append(threading.current_thread())
        return read_recipe(path)

    monkeypatch.setattr("kernelscope.gui.tools.file_dialogs.read_recipe", read)
    original = loaded.pictures.canvas.input.shown
    run_recipe(qtbot, loaded, three)
    qtbot.waitUntil(lambda: loaded.pictures.canvas.output.shown is not None)
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()
    assert [request.step.filter.id for request in cpu.requests] == [
        "gaussian_noise",
        "mean",
        "median",
    ]
    assert cpu.requests[0].step.parameters["variance"] == 0.002
    assert (cpu.requests[1].step.parameters["size"], cpu.requests[1].step.border) == (5, "wrap")
    # The picture before the noise judges the steps that follow.
    assert [request.reference for request in cpu.requests] == [None, original, original]
    np.testing.assert_array_equal(loaded.pictures.canvas.input.shown.pixels, original.pixels)
    np.testing.assert_array_equal(loaded.pictures.canvas.output.shown.pixels, 255 - original.pixels)
    details = child(loaded, QLabel, "inputDetails").toolTip()
    assert details.endswith("after Gaussian noise, Mean")
    assert loaded.findChild(QAction, "undo").text() == "&Undo Mean"
    press(qtbot, loaded, "Ctrl+Z")
    press(qtbot, loaded, "Ctrl+Z")
    qtbot.waitUntil(lambda: loaded.pictures.canvas.input.shown is original)


def test_progress_names_the_step_and_cancel_ends_the_recipe(
    qtbot: QtBot, loaded: MainWindow, three: Path, cpu: FakeCpu
) -> None:
    cpu.go.clear()
    run_recipe(qtbot, loaded, three)
    qtbot.waitUntil(lambda: state(loaded) == "Step 1 of 3, Gaussian noise: Compute 50 %")
    cpu.entered.clear()
    cpu.one.release()
    qtbot.waitUntil(lambda: state(loaded) == "Step 2 of 3, Mean: Compute 50 %")
    assert child(loaded, QToolButton, "cancelButton").isEnabled()
    press(qtbot, loaded, "Esc")
    assert state(loaded) == "Cancelled."
    assert not loaded.runner.busy
    # Completed steps stay, and are shown.
    qtbot.waitUntil(lambda: loaded.pictures.canvas.input.shown is loaded.session.subject.source)
    assert [each.step.filter.id for each in loaded.session.subject.moment.steps] == [
        "gaussian_noise"
    ]
    cpu.go.set()
    run(qtbot, loaded)
    assert len(cpu.requests) == 3


def test_a_recipe_that_cannot_be_is_refused_before_anything_runs(
    qtbot: QtBot, loaded: MainWindow, tmp_path: Path, cpu: FakeCpu
) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("no recipe")
    run_recipe(qtbot, loaded, broken)
    box = dialog(qtbot, loaded, ErrorDialog)
    assert "broken.json" in box.text()
    box.reject()
    large: dict[str, object] = {"filter": "mean", "parameters": {"size": 17}, "border": "valid"}
    run_recipe(qtbot, loaded, write_recipe(tmp_path / "large.json", large, large))
    box = dialog(qtbot, loaded, ErrorDialog)
    assert box.text().startswith("Step 2, Mean: The 17×17 neighbourhood does not fit")
    box.reject()
    assert cpu.requests == []


def test_what_was_done_is_saved_and_loaded(
    qtbot: QtBot, loaded: MainWindow, tmp_path: Path, cpu: FakeCpu
) -> None:
    loaded.session.set_filter("mean")
    loaded.session.set_values("mean", {"size": 7})
    run(qtbot, loaded)
    press(qtbot, loaded, "Ctrl+U")
    qtbot.waitUntil(lambda: loaded.pictures.canvas.output.shown is None)
    loaded.session.set_filter("median")
    loaded.findChild(QAction, "saveRecipe").trigger()
    assert dialog(qtbot, loaded, QFileDialog).defaultSuffix() == "recipe.json"
    path = tmp_path / "mine.json"
    choose(qtbot, loaded, path)
    assert loaded.statusBar().currentMessage() == "Saved mine.json."
    steps = read_recipe(path).steps
    assert [step.filter.id for step in steps] == ["mean", "median"]
    assert steps[0].parameters["size"] == 7

    loaded.findChild(QAction, "saveRecipe").trigger()
    choose(qtbot, loaded, tmp_path / "no such folder" / "x.json")
    box = dialog(qtbot, loaded, QMessageBox)
    assert "x.json" in box.text()
    box.reject()


def test_opening_a_picture_ends_the_recipe(
    qtbot: QtBot, loaded: MainWindow, picture: Path, three: Path, cpu: FakeCpu
) -> None:
    cpu.go.clear()
    run_recipe(qtbot, loaded, three)
    qtbot.waitUntil(cpu.entered.is_set)
    other = picture.with_name("other.png")
    picture.rename(other)
    load(qtbot, loaded, other)
    cpu.go.set()
    qtbot.waitUntil(lambda: len(loaded.session.gallery) == 1)
    settle(qtbot, loaded)
    assert len(cpu.requests) == 1
    assert loaded.pictures.canvas.output.shown is None


# --- estimates ---


def test_estimate_fills_the_field_from_the_input(
    qtbot: QtBot, window: MainWindow, picture: Path
) -> None:
    bar = window.statusBar()

    def click_estimate(spec: FilterSpec, parameter: FloatParameter) -> None:
        bar.showMessage("")
        window.session.set_filter(spec.id)
        child(window, QToolButton, f"{parameter.name}Estimate").click()

    for spec, parameter in ESTIMATED:
        click_estimate(spec, parameter)
        assert bar.currentMessage() == "Open a picture first (Ctrl+O)."
    load(qtbot, window, picture)
    image = window.pictures.canvas.input.shown
    for spec, parameter in ESTIMATED:
        click_estimate(spec, parameter)
        box = child(window, QDoubleSpinBox, f"{parameter.name}Box")
        expected = estimated(parameter, image.planes, before(spec, parameter, image.planes))
        qtbot.waitUntil(lambda: "estimated from ramp.png" in bar.currentMessage())
        assert box.value() == pytest.approx(expected, rel=1e-3, abs=10**-parameter.decimals)
        window.session.reset()
        usual, last = spec.defaults(), window.session.automatic  # estimates stay until the next
        found = window.session.require().step.parameters
        assert {**found, **{name: usual[name] for name in last}} == usual


def test_a_saved_recipe_leaves_open_what_the_loaded_one_did(
    qtbot: QtBot, loaded: MainWindow, tmp_path: Path, cpu: FakeCpu
) -> None:
    open_step: dict[str, object] = {
        "filter": "nlm",
        "parameters": {"filter_sigma": "estimate"},
    }
    number: dict[str, object] = {"filter": "nlm", "parameters": {"filter_sigma": 0.25}}
    path = write_recipe(tmp_path / "a.json", open_step, {"filter": "median"}, number, open_step)
    run_recipe(qtbot, loaded, path)
    qtbot.waitUntil(lambda: loaded.pictures.canvas.output.shown is not None)
    assert len(cpu.requests) == 4
    assert child(loaded, QToolButton, "filter_sigmaEstimate").isChecked(), "as in the recipe"
    loaded.findChild(QAction, "saveRecipe").trigger()
    choose(qtbot, loaded, tmp_path / "again.json")
    assert read_recipe(tmp_path / "again.json") == read_recipe(path)


def test_estimating_is_said_and_its_cancel_logged(
    qtbot: QtBot,
    window: MainWindow,
    picture: Path,
    cpu: FakeCpu,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on, entered = threading.Event(), threading.Event()
    real = steps.prepared

    def prepare(*arguments: Any, **options: Any) -> object:
        entered.set()
        assert go_on.wait(PATIENCE)
        return real(*arguments, **options)

    load(qtbot, window, picture)
    window.session.set_filter("nlm")
    monkeypatch.setattr(steps, "prepared", prepare)
    press(qtbot, window, "F5")
    qtbot.waitUntil(lambda: entered.is_set() and state(window) == "Estimating…")
    press(qtbot, window, "Esc")
    assert state(window) == "Cancelled."
    go_on.set()
    qtbot.waitUntil(lambda: "Cancelled after" in window.console.text())
    assert not cpu.requests


# --- numbers and progress ---


def test_long_runs_tell_the_time_left(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("kernelscope.engine.timing.time.monotonic", lambda: now)
    bar = RunBar(QAction("Run"), QAction("Cancel"))
    qtbot.addWidget(bar)
    label = bar.findChild(ElidedLabel, "runState")
    for stage in ("compute", "kernel"):
        bar.show_progress(stage, 0.0)
        assert label.full_text == stage.capitalize()
        now += 1
        bar.show_progress(stage, 0.1)
        assert label.full_text == f"{stage.capitalize()} 10 %"  # too early for an estimate
        now += 4
        bar.show_progress(stage, 0.25)
        assert label.full_text == f"{stage.capitalize()} 25 %, 15 s left"
    now += 595
    bar.show_progress("kernel", 0.5, "Step 2 of 3, Mean: ")
    assert label.full_text == "Step 2 of 3, Mean: Kernel 50 %"  # another step starts again
    now += 600
    bar.show_progress("kernel", 0.75, "Step 2 of 3, Mean: ")
    assert label.full_text == "Step 2 of 3, Mean: Kernel 75 %, 10 min left"
    bar.show_idle("Done.")
    assert label.full_text == "Done."


def test_a_run_of_a_known_pace_shows_the_time_left(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("kernelscope.gui.window.bars.time.monotonic", lambda: now)
    bar = RunBar(QAction("Run"), QAction("Cancel"))
    qtbot.addWidget(bar)
    label = bar.findChild(ElidedLabel, "runState")
    progress = bar.findChild(QProgressBar, "progress")
    bar.expect(40.0)
    bar.show_progress("Waiting", 0.0)
    assert label.full_text == "Waiting, about 40 s left"
    now += 7
    bar.show_progress("compile", 0.0)
    assert label.full_text == "Compiling (first use only)…"
    now += 5
    bar.show_progress("compile", 0.0)
    bar.show_progress("compute", 0.0)
    now += 10
    bar._ticks.timeout.emit()
    assert label.full_text == "Compute, about 30 s left"
    assert (progress.maximum(), progress.value()) == (100, 25)
    now += 31
    bar._ticks.timeout.emit()
    assert label.full_text == "Compute, longer than expected"
    assert progress.maximum() == 0
    bar.show_progress("compute", 0.9)
    assert label.full_text == "Compute 90 %", "what is known comes before what is expected"
    bar.show_idle("Done.")
    assert not bar._ticks.isActive()
    for unknown in (None, 0.5):
        bar.expect(unknown)
        bar.show_progress("compute", 0.0)
        assert label.full_text == "Compute"


def test_run_expects_what_the_badge_says(
    qtbot: QtBot, open_window: Opener, picture: Path, cpu: FakeCpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_window(live=True)
    monkeypatch.setattr(Pace, "expect", lambda *_: 37.0)
    load(qtbot, window, picture)
    cpu.go.clear()
    press(qtbot, window, "F5")
    label = window.findChild(ElidedLabel, "runState")
    qtbot.waitUntil(lambda: label.full_text.endswith("about 37 s left"))
    cpu.go.set()
    qtbot.waitUntil(lambda: not window.runner.busy)


@pytest.mark.parametrize(
    ("filter_id", "changes", "idle"),
    [
        (
            "nlm",
            {"search": "image", "weights": "uniform"},
            {"search_radius", "patch_sigma", "sigma", "noise"},
        ),
        ("gaussian_noise", {"sigma": 0.1}, {"variance"}),
        ("mri_nlm", {"sigma_from": "volume"}, {"sigma", "window_radius"}),
        ("mri_nlm", {"sigma_from": "given", "sigma": (3.0,)}, {"window_radius"}),
        ("mri_nlm", {"sigma_from": "local"}, {"sigma"}),
        ("mri_nlm", {"sigma_from": "adaptive"}, {"sigma", "window_radius"}),
    ],
)
def test_what_has_no_part_in_the_result_is_not_offered(
    qtbot: QtBot, filter_id: str, changes: dict[str, object], idle: set[str]
) -> None:
    session = Session({})
    session.bring_to_front(
        next(each for each in session.subjects if each.kind is filters.get(filter_id).kind)
    )
    session.set_filter(filter_id)
    panel = ParameterPanel(session, Background())
    qtbot.addWidget(panel)
    form = panel.form
    session.set_values(filter_id, changes)
    offered = {name: editor.isEnabled() for name, editor in form.editors.items()}
    assert {name for name, enabled in offered.items() if not enabled} == idle
    text = filters.get(filter_id).describe(form.state().numbers)
    labels = [filters.get(filter_id).parameter(name).label.lower() for name in idle]
    assert not any(f", {label} " in text for label in labels if label != "sigma")
    session.reset()
    offered = {name: editor.isEnabled() for name, editor in form.editors.items()}
    idle = {name for name, enabled in offered.items() if not enabled}
    assert filter_id == "mri_nlm" or idle <= {"patch_sigma"}
