"""Judging in the window: reference, figures, views of differences, undo and redo."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDockWidget,
    QFileDialog,
    QLabel,
    QSpinBox,
    QToolButton,
    QTreeWidget,
    QWidget,
)
from pytestqt.qtbot import QtBot

from kernelscope.base.errors import AppError
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.files import read_image, write_image
from kernelscope.files.volumes import read_volume
from kernelscope.gui.docks.histogram_plot import pen_of
from kernelscope.gui.docks.quality_panel import NO_REFERENCE
from kernelscope.gui.model import comparison
from kernelscope.gui.model.comparison import View, following, like_output
from kernelscope.gui.model.drawn_view import DrawnView
from kernelscope.gui.model.history import Moment, ReferenceOrigin
from kernelscope.gui.session import subject
from kernelscope.gui.widgets.messages import ErrorDialog
from kernelscope.gui.window import page
from kernelscope.gui.window.actions import Actions
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.image import Image
from kernelscope.images.judging.pictures import Histogram, difference, suggest_gain
from kernelscope.images.scan import Scan
from kernelscope.schema.borders import Border
from kernelscope.schema.samples import Kind
from tests.gui.helpers import (
    HEIGHT,
    WIDTH,
    FakeCpu,
    child,
    choose_files,
    click,
    counted,
    dialog,
    judged_by,
    load,
    press,
    run,
    save_as,
    settle,
    show_quality,
    wait_until,
    write_picture,
)
from tests.gui.test_looking import Looked, opened
from tests.gui.test_volume_page import voxels, write
from tests.patience import PATIENCE

__all__ = ["opened"]  # a fixture

pytestmark = pytest.mark.usefixtures("compiled_judging")


def add_noise(qtbot: QtBot, window: MainWindow) -> None:
    """Spoil the input (the backend inverts or halves it) and go on from there."""
    kinds = {Kind.PICTURE: "gaussian_noise", Kind.VOLUME: "rician_noise"}
    window.session.set_filter(kinds[window.session.kind])
    run(qtbot, window)
    canvas = window.page.canvas
    spoilt = canvas.output.shown
    window.actions_["reuse"].trigger()
    qtbot.waitUntil(lambda: canvas.input.shown is spoilt)


def figures(window: MainWindow) -> dict[str, list[str]]:
    """Return the cells of each figure."""
    rows = [line.split("\t") for line in window.quality.text().splitlines()[1:]]
    return {name: cells for name, *cells in rows}


def bold(window: MainWindow, row: int) -> list[bool]:
    item = window.findChild(QTreeWidget, "qualityFigures").topLevelItem(row)
    return [item.font(column).bold() for column in range(4)]


def test_what_a_denoiser_removed_needs_no_reference(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    noisy = np.random.default_rng(1).normal(128, 20, (60, 60)).clip(0, 255).astype(np.uint8)
    write_image(Image.from_array(noisy), tmp_path / "noise.png")
    load(qtbot, window, tmp_path / "noise.png")
    show_quality(window)
    window.session.set_filter("mean")
    run(qtbot, window)
    qtbot.waitUntil(lambda: bool(figures(window)))
    assert "Residual" not in figures(window)
    window.session.set_filter("sliding_dct")
    run(qtbot, window)
    qtbot.waitUntil(lambda: "Residual" in figures(window))
    assert figures(window)["Residual"][0] == "–"
    # The backend inverts: twice the noise is gone.
    assert float(figures(window)["Residual"][1]) == pytest.approx(0, abs=0.05)
    assert figures(window)["Residual"][2] == "freed of white noise"
    assert figures(window)["PSNR"] == ["–", "–", ""]
    assert judged_by(window) == NO_REFERENCE


# --- the reference ---


def test_noise_and_mending_are_judged_by_what_was_before(qtbot: QtBot, opened: Looked) -> None:
    window, subject = opened.window, opened.window.session.subject
    original: Any = subject.part

    def psnr() -> float:
        part = subject.shown_output or subject.part
        error = np.mean((part.arrays()[0].astype(float) - original.arrays()[0]) ** 2)
        return float(10 * np.log10(original.levels.span**2 / error)) if error else math.inf

    def text(found: float) -> str:
        return "∞ dB (equal)" if math.isinf(found) else f"{found:.2f} dB"

    add_noise(qtbot, window)
    show_quality(window)
    title, before = original.title, psnr()
    qtbot.waitUntil(lambda: judged_by(window) == f"Compared with {title} (before noise)")
    assert figures(window)["PSNR"] == [text(before), "–", ""]

    window.session.set_filter("mean")
    press(qtbot, window, "F4")
    for _ in range(2):  # the backend undoes what it made of the input, and makes it again
        before = psnr()
        run(qtbot, window)
        after = psnr()
        qtbot.waitUntil(lambda: window.page.canvas.output.content.minus is original)
        wanted = [text(before), text(after)]
        wait_until(qtbot, lambda wanted=wanted: figures(window)["PSNR"][:2] == wanted)
        verdict = "better" if after > before else "worse" if after < before else "equal"
        found = [figures(window)[name][2] for name in ("PSNR", "MSE", "MAE")]
        assert [each.split()[0] for each in found] == [verdict] * 3
        assert bold(window, 0) == [False, after < before, after > before, False]
        press(qtbot, window, "Ctrl+U")
        qtbot.waitUntil(lambda: subject.result is None and not subject.is_behind)
        assert reference_of(window).image is original, "no noise was added"
    for _ in range(3):
        press(qtbot, window, "Ctrl+Z")
    qtbot.waitUntil(lambda: judged_by(window).startswith("No reference"))


def test_a_reference_is_remembered_until_another_picture_and_kept_if_chosen(
    qtbot: QtBot, loaded: MainWindow, tmp_path: Path
) -> None:
    original = loaded.pictures.canvas.input.shown
    add_noise(qtbot, loaded)
    add_noise(qtbot, loaded)
    assert reference_of(loaded).image is original
    assert len(loaded.session.subject.moment.steps) == 2

    add_noise(qtbot, loaded)
    load(qtbot, loaded, write_picture(tmp_path / "b.png", 1))
    assert loaded.session.subject.reference is None

    loaded.findChild(QAction, "inputAsReference").trigger()
    chosen = reference_of(loaded)
    assert chosen.image is loaded.pictures.canvas.input.shown
    load(qtbot, loaded, write_picture(tmp_path / "c.png", 2))
    show_quality(loaded)
    qtbot.waitUntil(lambda: judged_by(loaded) == "Compared with b.png (kept from before)")
    assert reference_of(loaded).image is chosen.image
    assert figures(loaded)["MAE"][0] == "1"
    add_noise(qtbot, loaded)  # now another one belongs to the picture
    assert reference_of(loaded).origin is ReferenceOrigin.NOISE
    assert reference_of(loaded).image.title == "c.png"


def test_a_reference_is_chosen_cleared_and_refused_if_of_another_size(
    qtbot: QtBot, window: MainWindow, picture: Path, tmp_path: Path, cpu: FakeCpu
) -> None:
    assert not window.findChild(QAction, "chooseReference").isEnabled()
    load(qtbot, window, picture)
    run(qtbot, window)
    show_quality(window)
    other = write_picture(tmp_path / "other.png", 3)
    window.findChild(QAction, "chooseReference").trigger()
    chooser = dialog(qtbot, window, QFileDialog)
    choose_files(chooser, other)
    qtbot.waitUntil(lambda: judged_by(window) == "Compared with other.png (chosen)")
    assert figures(window)["MAE"][0] == "3"  # judged although nothing was run since
    assert figures(window)["MAE"][1] != "–"
    assert window.settings.recent_files == [picture]
    run(qtbot, window)
    assert cpu.requests[-1].reference.title == "other.png"

    window.findChild(QAction, "clearReference").trigger()
    qtbot.waitUntil(lambda: judged_by(window).startswith("No reference"))
    assert figures(window)["MAE"] == ["–", "–", ""]
    run(qtbot, window)
    assert cpu.requests[-1].reference is None

    tiny = tmp_path / "tiny.png"
    Pillow.fromarray(np.zeros((9, 8), np.uint8)).save(tiny)
    load(qtbot, window, tiny)
    window.use_input_as_reference()
    load(qtbot, window, other)  # the first is there, without a reference
    show_quality(window)
    qtbot.waitUntil(lambda: "Pictures of 40×30 and 8×9 pixels" in judged_by(window))
    run(qtbot, window)
    assert cpu.requests[-1].reference is None
    qtbot.waitUntil(lambda: figures(window)["PSNR"] == ["–", "–", ""])


def test_panel_behind_a_tab_costs_nothing(
    qtbot: QtBot, window: MainWindow, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def count(pixels: np.ndarray) -> Histogram:
        threads.append(threading.current_thread())
        return real(pixels)

    real = Histogram.of
    monkeypatch.setattr(Histogram, "of", count)
    load(qtbot, window, picture)
    run(qtbot, window)
    settle(qtbot, window)
    assert threads == []
    show_quality(window)
    qtbot.waitUntil(lambda: len(window.quality.histograms.histograms) == 2)
    assert len(threads) == 2
    assert threading.main_thread() not in threads


# --- views ---


def reference_of(window: MainWindow) -> Any:
    """Return the reference; read here, its type is not the one asserted before a change."""
    return window.session.subject.reference


def drawn(qtbot: QtBot, window: MainWindow, view: View) -> DrawnView:
    qtbot.waitUntil(
        lambda: (
            window.session.pictures.drawing is not None
            and window.session.pictures.drawing.view is view
        )
    )
    drawing = window.session.pictures.drawing
    assert drawing is not None
    return drawing


def test_residual_is_drawn_amplified_and_saved(
    qtbot: QtBot, loaded: MainWindow, tmp_path: Path
) -> None:
    run(qtbot, loaded)
    save = loaded.findChild(QAction, "saveView")
    gain = loaded.findChild(QSpinBox, "gain")
    assert not save.isEnabled()
    assert not gain.isVisible()
    click(qtbot, loaded, "viewResidualButton")
    drawing = drawn(qtbot, loaded, View.RESIDUAL)
    before, after = (
        loaded.pictures.canvas.input.shown.planes,
        loaded.pictures.canvas.output.shown.planes,
    )
    assert drawing.gain == suggest_gain(after, before) == gain.value()
    np.testing.assert_array_equal(drawing.change.planes, difference(after, before, drawing.gain))
    title = child(loaded, QLabel, "outputTitle").toolTip()
    limit = f"{127 / drawing.gain:.3g}"
    assert title == f"Residual: output – input, ×{drawing.gain} · up to ±{limit}"

    gain.setFocus()
    qtbot.keyClick(gain, Qt.Key.Key_Up)
    assert gain.value() == 2
    assert not child(loaded, QToolButton, "autoGain").isChecked()
    qtbot.waitUntil(lambda: loaded.session.pictures.drawing.gain == 2)
    run(qtbot, loaded)  # the view and the gain stay
    qtbot.waitUntil(
        lambda: (
            loaded.session.pictures.drawing.view is View.RESIDUAL
            and loaded.session.pictures.drawing.gain == 2
        )
    )

    press(qtbot, loaded, "Ctrl+Shift+S")
    assert dialog(qtbot, loaded, QFileDialog).selectedFiles()[0].endswith("/ramp-residual")
    save_as(qtbot, loaded, tmp_path / "residual.png")
    qtbot.waitUntil((tmp_path / "residual.png").exists)
    saved = np.asarray(Pillow.open(tmp_path / "residual.png"))
    np.testing.assert_array_equal(saved, difference(after, before, 2)[:, :, 0])

    click(qtbot, loaded, "autoGain")
    qtbot.waitUntil(lambda: loaded.session.pictures.drawing.gain == 1)
    press(qtbot, loaded, "F2")
    assert drawn(qtbot, loaded, View.OUTPUT).shown is loaded.pictures.canvas.output.shown
    assert not save.isEnabled()

    gain = loaded.findChild(QSpinBox, "gain")
    steps = []
    for _ in range(5):
        gain.stepUp()
        steps.append(gain.value())
    assert steps == [2, 5, 10, 20, 50]
    gain.setValue(7)
    gain.stepDown()
    assert gain.value() == 5


def test_difference_needs_a_reference(qtbot: QtBot, loaded: MainWindow) -> None:
    original = loaded.pictures.canvas.input.shown
    press(qtbot, loaded, "F4")
    assert loaded.session.view == "output"
    loaded.set_view("difference")  # as it was left with another picture
    assert child(loaded, QLabel, "outputHint").text() == "Press Run (F5)"
    run(qtbot, loaded)
    hint = child(loaded, QLabel, "outputHint")
    qtbot.waitUntil(lambda: hint.text() == comparison.NO_REFERENCE)
    assert hint.isVisible()
    loaded.use_input_as_reference()
    qtbot.waitUntil(lambda: loaded.session.pictures.drawing.change is not None)
    assert not hint.isVisible()
    np.testing.assert_array_equal(
        loaded.session.pictures.drawing.change.planes,
        difference(
            loaded.pictures.canvas.output.shown.planes,
            original.planes,
            loaded.session.pictures.drawing.gain,
        ),
    )
    press(qtbot, loaded, "Ctrl+Shift+S")
    chooser = dialog(qtbot, loaded, QFileDialog)
    assert chooser.selectedFiles()[0].endswith("/ramp-difference")
    chooser.reject()


def made(image: Image, output: np.ndarray, **settings: Any) -> Result:
    request = Request.create(image, "mean", {"size": 3}, **settings)
    return Result(request, Image.from_array(output), "cpu", "serial", ())


def test_pictures_are_compared_where_the_result_lies() -> None:
    colour = np.random.default_rng(3).integers(0, 256, (9, 8, 4), np.uint8)
    image = Image.from_array(colour, "colour")
    cut = like_output(image, made(image, colour[1:-1, 1:-1], border=Border.VALID))
    np.testing.assert_array_equal(cut.pixels, colour[1:-1, 1:-1])
    grey = like_output(image, made(image, colour[:, :, 2:], grey=True))
    exact = colour[:, :, :3] @ np.array([0.299, 0.587, 0.114])
    np.testing.assert_allclose(grey.planes[:, :, 0], exact, atol=0.51)
    np.testing.assert_array_equal(grey.planes[:, :, 1], colour[:, :, 3])
    assert like_output(image, made(image, colour)) is image


def test_reference_follows_the_picture_to_grey() -> None:
    image = Image.from_array(np.full((9, 9, 3), 100, np.uint8), "colour")
    request = Request.create(image, "gaussian_noise", grey=True)
    output = Image.from_array(np.full((9, 9), 100, np.uint8))
    moment = Moment(image, "Open", result=Result(request, output, "cpu", "serial", ()))
    new = following(moment)
    reference = new.references[new.source]
    assert reference.origin is ReferenceOrigin.NOISE
    np.testing.assert_array_equal(reference.image.pixels, output.pixels)
    judged = comparison.judge_both(image, moment.result, image)
    assert judged.before.psnr == judged.after.psnr == np.inf


# --- histograms ---


def test_histograms_are_shown_and_saved(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "colour.png"
    pixels = np.random.default_rng(4).integers(0, 9, (HEIGHT, WIDTH, 3), np.uint8)
    Pillow.fromarray(pixels).save(path)
    load(qtbot, window, path)
    show_quality(window)
    run(qtbot, window)
    qtbot.waitUntil(lambda: len(window.quality.histograms.histograms) == 2)
    view = window.quality.histograms
    assert [curve.picture for curve in view.plot.plot.curves] == ["input", "output"]
    child(window, QCheckBox, "histogramChannels").click()
    child(window, QComboBox, "histogramScale").setCurrentText("Logarithmic")
    curves = view.plot.plot.curves
    assert [(curve.picture, curve.channel) for curve in curves] == [
        ("output", channel) for channel in ("red", "green", "blue")
    ]
    assert (
        len({pen_of(curve, row, window.palette()).style() for row, curve in enumerate(curves)}) == 3
    )
    legend = child(window, QLabel, "histogramLegend").text()
    assert legend.startswith("Output:")
    assert all(f" {channel}</span>" in legend for channel in ("red", "green", "blue"))

    click(qtbot, window, "saveHistogram")
    save_as(qtbot, window, tmp_path / "values.csv")
    header, *rows = (tmp_path / "values.csv").read_text().splitlines()
    assert header == "picture,channel,from,to,count"
    assert len(rows) == 2 * 3 * 256
    ones = int(np.count_nonzero(pixels[:, :, 1] == 1))
    assert f"input,green,1,2,{ones}" in rows
    assert f"output,green,254,255,{ones}" in rows


def test_ctrl_c_in_the_figures_copies_them(qtbot: QtBot, loaded: MainWindow) -> None:
    loaded.use_input_as_reference()
    show_quality(loaded)
    qtbot.waitUntil(lambda: figures(loaded)["MSE"][0] == "0")
    table = child(loaded, QTreeWidget, "qualityFigures")
    table.setFocus()
    qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == loaded.quality.text()


# --- undo and redo ---


@pytest.mark.smoke
def test_undo_and_redo_name_the_step_and_bring_everything_back(
    qtbot: QtBot, window: MainWindow, picture: Path
) -> None:
    undo, redo = window.findChild(QAction, "undo"), window.findChild(QAction, "redo")
    load(qtbot, window, picture)
    original = window.pictures.canvas.input.shown
    assert not undo.isEnabled()
    add_noise(qtbot, window)
    spoilt = window.pictures.canvas.input.shown
    assert undo.text() == "&Undo Gaussian noise"
    assert undo.toolTip() == "Undo Gaussian noise (Ctrl+Z)"
    press(qtbot, window, "Ctrl+Z")
    qtbot.waitUntil(lambda: window.pictures.canvas.input.shown is original)
    assert window.pictures.canvas.output.shown is spoilt
    assert window.session.subject.reference is None
    assert not undo.isEnabled()
    assert redo.text() == "&Redo Gaussian noise"
    press(qtbot, window, "Ctrl+Shift+Z")
    qtbot.waitUntil(lambda: window.pictures.canvas.input.shown is spoilt)
    assert reference_of(window).image is original
    assert not redo.isEnabled()

    other = picture.with_name("a&b.png")
    picture.rename(other)
    window.session.pictures.open_source(read_image(other))  # in the same document
    assert undo.text() == "&Undo Open a&&b.png"
    click(qtbot, window, "undoButton")
    qtbot.waitUntil(lambda: window.pictures.canvas.input.shown is spoilt)


def test_earlier_run_keeps_its_steps_and_can_be_undone(
    qtbot: QtBot, opened: Looked, tmp_path: Path
) -> None:
    window, subject = opened.window, opened.window.session.subject
    original: Any = subject.part
    add_noise(qtbot, window)
    run(qtbot, window)
    result = subject.result
    if window.session.kind is Kind.PICTURE:  # in the same document
        subject.open_source(read_image(write_picture(tmp_path / "other.png", 1)))
    else:
        other_scan = Scan((read_volume(write(tmp_path / "other.nii", voxels(3))),))
        window.session.volumes.open_source(other_scan)
    qtbot.waitUntil(lambda: subject.part is not original and not subject.is_behind)
    other: Any = subject.part
    assert subject.reference is None
    window.runs.wanted.emit(next(iter(window.session.gallery)))
    qtbot.waitUntil(lambda: subject.result is result and not subject.is_behind)
    assert [each.step.filter.category for each in subject.moment.steps] == ["Noise"]
    assert reference_of(window).image is original
    assert window.findChild(QAction, "undo").text() == "&Undo Earlier Run"
    subject.undo()
    qtbot.waitUntil(lambda: subject.part is other and not subject.is_behind)


def test_output_is_not_taken_after_something_else_is_shown(
    qtbot: QtBot, loaded: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = loaded.pictures.canvas.input.shown
    add_noise(qtbot, loaded)
    run(qtbot, loaded)
    gate = threading.Event()

    def late(moment: Moment) -> Moment:
        assert gate.wait(PATIENCE)
        return following(moment)

    monkeypatch.setattr(page, "following", late)
    loaded.page.use_output()
    loaded.session.subject.undo()
    qtbot.waitUntil(lambda: loaded.pictures.canvas.input.shown is original)
    gate.set()
    qtbot.waitUntil(lambda: "use" not in loaded.background._latest)
    assert loaded.session.subject.source is original
    assert loaded.session.subject.history.redo_name == "Gaussian noise"


def test_picture_that_cannot_be_shown_leaves_the_last_one(
    qtbot: QtBot, loaded: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = loaded.pictures.canvas.input.shown
    run(qtbot, loaded)

    def fail(planes: np.ndarray) -> None:
        raise AppError("There is not enough memory.")

    monkeypatch.setattr(page, "Pyramid", fail)
    loaded.page.use_output()
    dialog(qtbot, loaded, ErrorDialog).reject()
    assert loaded.session.subject.source is image
    assert loaded.session.subject.result is not None


# --- how often ---


@pytest.mark.slow
@pytest.mark.smoke
def test_a_run_is_judged_drawn_and_followed_by_the_actions_once(
    qtbot: QtBot, loaded: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_noise(qtbot, loaded)
    show_quality(loaded)
    qtbot.waitUntil(lambda: figures(loaded).get("PSNR", ["–"])[0] != "–")
    judged = counted(monkeypatch, subject, "judge_both")
    spread = counted(monkeypatch, Histogram, "of")
    drawn = counted(monkeypatch, subject, "draw")
    loaded.session.set_filter("median")  # which offers other actions
    followed = counted(monkeypatch, Actions, "refresh")
    press(qtbot, loaded, "F5")
    qtbot.waitUntil(lambda: figures(loaded)["PSNR"][1] != "–")
    qtbot.waitUntil(lambda: len(spread) == 2 and len(drawn) == 1)  # histograms of both pictures
    settle(qtbot, loaded)
    assert (len(judged), len(spread), len(drawn)) == (1, 2, 1)
    assert len(followed) == 2  # one where it begins, which offers Cancel, and one at its end
    for key in ("Ctrl+Z", "Ctrl+Shift+Z"):
        del spread[:], drawn[:], followed[:]
        press(qtbot, loaded, key)
        qtbot.waitUntil(lambda: len(spread) > 1 and bool(drawn) and bool(followed))
        settle(qtbot, loaded)
        assert (len(spread), len(drawn), len(followed)) == (2, 1, 1)


def test_figures_of_another_picture_are_not_shown_meanwhile(
    qtbot: QtBot, loaded: MainWindow, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show_quality(loaded)
    loaded.use_input_as_reference()
    qtbot.waitUntil(lambda: figures(loaded).get("PSNR", ["–"])[0] != "–")
    loaded.findChild(QDockWidget, "timingDock").raise_()
    load(qtbot, loaded, write_picture(picture.with_name("second.png"), 9))
    go_on, real = threading.Event(), Histogram.of

    def wait(pixels: np.ndarray) -> Histogram:
        go_on.wait(PATIENCE)
        return real(pixels)

    monkeypatch.setattr(Histogram, "of", wait)
    try:
        show_quality(loaded)
        qtbot.waitUntil(lambda: judged_by(loaded).startswith("Comparing with"))
        assert figures(loaded)["PSNR"] == ["–", "–", ""]
        assert not loaded.quality.histograms.histograms
    finally:
        go_on.set()
    qtbot.waitUntil(lambda: len(loaded.quality.histograms.histograms) == 1)


def test_figures_of_another_output_are_not_shown_meanwhile(
    qtbot: QtBot, loaded: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the filter before stood there, in bold, beside an output that was up to date."""
    show_quality(loaded)
    loaded.use_input_as_reference()
    run(qtbot, loaded)
    qtbot.waitUntil(lambda: "–" not in figures(loaded).get("PSNR", ["–"]))
    before = figures(loaded)["PSNR"]
    loaded.session.set_filter("mean")
    legend = child(loaded, QLabel, "histogramLegend")
    assert "output, earlier settings" in legend.text()
    table = child(loaded, QTreeWidget, "qualityFigures")
    assert loaded.quality.text().startswith("Figure\tInput\tOutput of earlier settings\t")
    assert figures(loaded)["PSNR"] == before

    go_on, real = threading.Event(), Histogram.of

    def wait(pixels: np.ndarray) -> Histogram:
        go_on.wait(PATIENCE)
        return real(pixels)

    monkeypatch.setattr(Histogram, "of", wait)
    try:
        run(qtbot, loaded)
        assert judged_by(loaded).startswith("Comparing with")
        assert figures(loaded)["PSNR"] == ["…", "…", ""]
        assert not any(
            bold(loaded, row)[n] for row in range(table.topLevelItemCount()) for n in (1, 2)
        )
        assert list(loaded.quality.histograms.histograms) == ["input"]
        assert table.headerItem().text(2) == "Output"
    finally:
        go_on.set()
    qtbot.waitUntil(lambda: "…" not in figures(loaded)["PSNR"])
    assert len(loaded.quality.histograms.histograms) == 2
    assert "earlier" not in legend.text()


def test_an_evaluation_that_failed_is_tried_again(
    qtbot: QtBot, loaded: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AppError("There is not enough memory.")

    with monkeypatch.context() as patched:
        patched.setattr(Histogram, "of", fail)
        show_quality(loaded)
        dialog(qtbot, loaded, ErrorDialog).reject()
    assert not loaded.quality.histograms.histograms
    loaded.findChild(QDockWidget, "timingDock").raise_()
    show_quality(loaded)
    qtbot.waitUntil(lambda: len(loaded.quality.histograms.histograms) == 1)


def test_a_narrow_panel_has_the_histogram_in_place_of_the_figures(
    qtbot: QtBot, loaded: MainWindow
) -> None:
    """At 150 % text the two lay over each other."""
    panel = loaded.quality
    panel.setParent(None)
    qtbot.addWidget(panel)
    unit = panel.fontMetrics().averageCharWidth()
    find: Any = panel.findChild
    figures, curves = find(QWidget, "qualityFigures"), panel.histograms
    switch = find(QWidget, "qualityShowHistogram")
    panel.show()
    panel.resize(120 * unit, 300)
    qtbot.waitUntil(lambda: figures.isVisible() and curves.isVisible() and switch.isHidden())
    panel.resize(60 * unit, 300)
    qtbot.waitUntil(lambda: figures.isVisible() and not curves.isVisible())
    qtbot.mouseClick(switch, Qt.MouseButton.LeftButton)
    assert (figures.isVisible(), curves.isVisible()) == (False, True)
