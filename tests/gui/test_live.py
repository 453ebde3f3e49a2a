"""The output follows the settings, and the badge over it is true."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QComboBox, QLabel, QSpinBox
from pytestqt.qtbot import QtBot

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import AppError, DeviceUnavailable
from kernelscope.bench.recorded import Recorded, RecordedTime
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.steps import execute_all
from kernelscope.gui.docks.headline import Headline
from kernelscope.gui.docks.ladder import Ladder
from kernelscope.gui.model import freshness
from kernelscope.gui.model.freshness import LOOKING, Freshness, pixels_of
from kernelscope.gui.model.gallery import judge_run
from kernelscope.gui.session.canvas_view import DRAWN, SEEN
from kernelscope.gui.session.session import SETTINGS
from kernelscope.gui.session.subject import JUDGED, PART, RESULT, SHOWN, Fields
from kernelscope.gui.viewer.pane import COMPILING, NOTHING, RUNNING, Pane
from kernelscope.gui.viewer.plane_canvas import PlaneCanvas
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window import live, runner
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.work.background import Later
from kernelscope.gui.work.tasks import Task, Tasks
from kernelscope.images.image import Image
from tests.bench.made_up import row
from tests.gui.helpers import (
    FakeCpu,
    Opener,
    child,
    counted,
    load,
    press,
    settle,
    wait_until,
)
from tests.gui.test_layout import Requests
from tests.patience import PATIENCE

# --- with a processor under control ---


@pytest.fixture
def live_window(open_window: Opener) -> MainWindow:
    return open_window(live=True)


def settled(qtbot: QtBot, window: MainWindow) -> None:
    """Wait until the output is that of the settings."""
    qtbot.waitUntil(lambda: window.session.freshness is Freshness.EXACT)


@pytest.fixture
def following(qtbot: QtBot, live_window: MainWindow, picture: Path) -> MainWindow:
    """Return a live window with a picture, whose output is that of the settings."""
    load(qtbot, live_window, picture)
    settled(qtbot, live_window)
    return live_window


def badge(window: MainWindow) -> str:
    return window.live.badge.full_text


def size(window: MainWindow, value: int) -> None:
    child(window, QSpinBox, "sizeBox").setValue(value)


def test_opening_and_every_change_show_a_result_without_run(
    qtbot: QtBot, live_window: MainWindow, picture: Path
) -> None:
    window = live_window
    listed: list[Any] = []
    window.runner.finished.connect(listed.append)
    load(qtbot, window, picture)
    settled(qtbot, window)
    assert window.session.subject.result.request.step.parameters["size"] == 3
    size(window, 7)
    assert window.session.freshness is Freshness.OUT_OF_DATE
    assert badge(window).startswith("○ out of date")
    settled(qtbot, window)
    assert badge(window) == "● up to date"
    assert window.session.subject.result.request.step.parameters["size"] == 7
    assert child(window, QLabel, "headlineNote").toolTip().endswith("live, one run")
    assert not listed


def test_a_change_is_painted_before_lists_and_headline_follow(
    qtbot: QtBot, following: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = following.findChildren(Later)
    qtbot.waitUntil(lambda: following.live.resting and not any(each.is_due for each in waiting))
    rungs = following.levels.ladder.rungs
    qtbot.waitUntil(  # the recorded figures are read once
        lambda: any("recorded on" in each.text(0) for each in rungs.headings.values())
    )
    for each in waiting:  # as if the run took no time
        each.findChildren(QTimer)[0].setInterval(round(1000 * PATIENCE))
    seen: list[str] = []
    canvas = following.pictures.canvas.output.views[0]
    real = PlaneCanvas._draw_pictures

    def draw(canvas_: PlaneCanvas, ratio: float) -> None:
        seen.append("drawn" if canvas_ is canvas else "input drawn")
        real(canvas_, ratio)

    monkeypatch.setattr(PlaneCanvas, "_draw_pictures", draw)
    monkeypatch.setattr(Ladder, "show_entries", lambda *_, **__: seen.append("ladder"))
    following.live.refreshed.connect(lambda: seen.append("refreshed"))
    size(following, 7)
    assert badge(following).startswith("○ out of date"), "the badge does not wait"
    qtbot.waitUntil(lambda: "refreshed" in seen)
    assert following.session.freshness is Freshness.EXACT
    assert seen[:2] == ["drawn", "refreshed"]


def test_a_run_begins_before_its_settings_are_shown_elsewhere(
    qtbot: QtBot, following: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[str]()
    submit, mark = Tasks.submit, Pane.set_mark

    def begin(*arguments: Any) -> Task:
        seen.append("begun")
        return submit(*arguments)

    def show(pane: Pane, text: str) -> None:
        seen.append("marked" if text else "current")
        mark(pane, text)

    monkeypatch.setattr(Tasks, "submit", begin)
    monkeypatch.setattr(Pane, "set_mark", show)
    size(following, 7)
    assert seen == ["begun", "marked"]


def test_a_result_touches_nothing_that_it_does_not_change(
    qtbot: QtBot, following: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    qtbot.waitUntil(lambda: following.live.resting)
    noted = set[str]()
    layouts = Requests(following.statusBar())
    following.session.follow(noted.update)
    headline = counted(monkeypatch, Headline, "show_figures")
    size(following, 7)
    settled(qtbot, following)
    QApplication.processEvents()
    assert {SETTINGS, RESULT, SHOWN} <= noted
    assert DRAWN not in noted, "its levels and colours are those of the input"
    assert not layouts.count
    assert len(headline) == 1
    following.session.pictures.view.link(False)
    noted.clear()
    size(following, 5)
    settled(qtbot, following)
    assert DRAWN in noted, "it has its own"


def test_the_first_output_is_announced_while_it_is_computed(
    qtbot: QtBot, live_window: MainWindow, picture: Path, cpu: FakeCpu
) -> None:
    """Compiling may take seconds, during which nobody has to press Run."""
    window = live_window
    hint = window.page.canvas.output.hint
    assert "Run" in hint.text()
    cpu.go.clear()
    load(qtbot, window, picture)
    qtbot.waitUntil(cpu.entered.is_set)
    assert hint.isVisible()
    assert hint.text() == RUNNING
    window.page.canvas.show_output(NOTHING)  # as another view of it does
    assert hint.text() == RUNNING
    cpu.go.set()
    settled(qtbot, window)
    assert not hint.isVisible()


def test_code_that_is_compiled_is_announced_over_the_output(
    qtbot: QtBot,
    live_window: MainWindow,
    picture: Path,
    cpu: FakeCpu,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    window, hint = live_window, live_window.page.canvas.output.hint
    monkeypatch.setattr(live, "COMPILING_SECONDS", 0.0)
    window.live._watch.setInterval(10)
    cpu.stage = "compile"
    cpu.go.clear()
    load(qtbot, window, picture)
    qtbot.waitUntil(lambda: badge(window) == "compiling (first use only)…")
    assert hint.text() == COMPILING
    cpu.go.set()
    settled(qtbot, window)
    assert badge(window) == "● up to date"
    cpu.stage = "compute"
    cpu.go.clear()
    size(window, 7)
    qtbot.waitUntil(lambda: badge(window) == "○ out of date: computing…")
    for _ in range(2):
        with qtbot.waitSignal(window.live._watch.timeout):
            pass
    assert badge(window) == "○ out of date: computing…"
    cpu.go.set()
    settled(qtbot, window)


def test_undo_and_redo_restore_settings_and_picture_together(
    qtbot: QtBot, following: MainWindow
) -> None:
    qtbot.waitUntil(lambda: following.live.resting)
    following.live.rest.setInterval(round(1000 * PATIENCE))  # however slow this machine is just now
    for value in (5, 7, 9):  # one gesture
        size(following, value)
        settled(qtbot, following)
    following.live.rest.start(0)
    qtbot.waitUntil(lambda: following.live.resting)
    size(following, 11)
    settled(qtbot, following)

    def state() -> tuple[int, int]:
        settled(qtbot, following)
        computed = following.session.subject.result.request.step.parameters["size"]
        return child(following, QSpinBox, "sizeBox").value(), computed

    assert state() == (11, 11)
    press(qtbot, following, "Ctrl+Z")
    assert state() == (9, 9)
    press(qtbot, following, "Ctrl+Z")
    assert state() == (3, 3)
    press(qtbot, following, "Ctrl+Y")
    assert state() == (9, 9)
    press(qtbot, following, "Ctrl+Y")
    assert state() == (11, 11)


def test_a_pause_is_a_step_even_if_no_result_came(
    qtbot: QtBot, following: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large picture only parts are computed live: Undo stayed grey."""
    history = following.session.pictures.history
    qtbot.waitUntil(lambda: following.live.resting)
    monkeypatch.setattr(live, "next_run", lambda *_, **__: None)
    monkeypatch.setattr(live, "run_to_measure", lambda *_, **__: None)

    def pause() -> None:
        following.live.rest.start(0)
        qtbot.waitUntil(lambda: following.live.resting)

    def state() -> int:
        return child(following, QSpinBox, "sizeBox").value()

    for value in (5, 7):
        size(following, value + 4)
        size(following, value)
        pause()
    assert following.actions_["undo"].isEnabled()
    press(qtbot, following, "F5")
    settled(qtbot, following)
    seen = []
    for _ in range(2):
        press(qtbot, following, "Ctrl+Z")
        pause()
        seen.append(state())
    assert seen == [5, 3]
    assert not history.undo_name
    press(qtbot, following, "Ctrl+Y")
    pause()
    press(qtbot, following, "Ctrl+Y")
    settled(qtbot, following)
    assert state() == 7


def test_no_text_on_an_earlier_run_stays_over_other_settings(
    qtbot: QtBot, following: MainWindow
) -> None:
    press(qtbot, following, "F5")
    qtbot.waitUntil(lambda: "mask size 3 px" in following.statusBar().currentMessage())
    qtbot.waitUntil(lambda: not following.runner.busy)
    size(following, 7)
    assert not following.statusBar().currentMessage()
    following.show_status("Saved.")
    size(following, 9)
    assert following.statusBar().currentMessage() == "Saved."


def test_a_live_result_is_compared_with_the_reference_once(
    qtbot: QtBot, following: MainWindow
) -> None:
    headline = child(following, QLabel, "headlineText")
    assert "dB" not in headline.text()
    evaluated: list[Fields] = []
    following.session.follow(lambda fields: evaluated.append(fields) if JUDGED in fields else None)
    reference = Image.from_array(following.session.pictures.source.planes // 2, "half")
    following.session.subject.set_reference(reference)
    qtbot.waitUntil(lambda: headline.text().endswith("dB"))
    size(following, 7)
    settled(qtbot, following)
    qtbot.waitUntil(lambda: len(evaluated) >= 2)
    shown = headline.text()
    assert shown.endswith("dB")
    assert following.session.subject.result is not None
    judged = judge_run(following.session.subject.result, following.session.subject.part, reference)
    assert judged is not None
    assert judged == following.session.subject.judgement
    following.docks[DockName.QUALITY].raise_()  # evaluates for itself, with histograms
    qtbot.waitUntil(lambda: following.quality.subject is not None)
    following.run_shelf.judge_output()
    following.clear_reference()
    qtbot.waitUntil(lambda: not headline.text().endswith("dB"))
    assert following.session.subject.judgement is None


def test_off_means_that_run_computes_and_is_remembered(
    qtbot: QtBot, live_window: MainWindow, picture: Path, cpu: FakeCpu, store: Path
) -> None:
    window = live_window
    action = window.actions_["live"]
    assert action.isChecked()
    load(qtbot, window, picture)
    settled(qtbot, window)
    action.trigger()
    assert not action.isChecked()
    assert Settings(store).text("live") == "off"
    done = len(cpu.requests)
    size(window, 9)
    qtbot.waitUntil(lambda: window.live.resting)
    assert len(cpu.requests) == done
    assert "Run (F5)" in badge(window)
    press(qtbot, window, "F5")
    settled(qtbot, window)


def test_the_latest_settings_win_and_nothing_queues(
    qtbot: QtBot, following: MainWindow, cpu: FakeCpu, monkeypatch: Any
) -> None:
    monkeypatch.setattr("kernelscope.gui.window.live._PATIENCE", PATIENCE)
    before = len(cpu.requests)
    cpu.entered.clear()
    cpu.go.clear()
    size(following, 5)
    qtbot.waitUntil(cpu.entered.is_set)
    for value in (7, 9, 11, 13):
        size(following, value)
    cpu.go.set()
    settled(qtbot, following)
    computed = [each.step.parameters["size"] for each in cpu.requests[before:]]
    assert computed == [5, 13], "the first ends, or a slider that moves would show nothing"


def test_a_run_for_settings_that_are_gone_is_cancelled(
    qtbot: QtBot, following: MainWindow, cpu: FakeCpu, monkeypatch: Any
) -> None:
    monkeypatch.setattr("kernelscope.gui.window.live._PATIENCE", 0.0)
    cpu.entered.clear()
    cpu.go.clear()
    size(following, 5)
    qtbot.waitUntil(cpu.entered.is_set)
    cpu.entered.clear()
    size(following, 7)
    qtbot.waitUntil(cpu.entered.is_set)  # though the first was never let go on
    assert cpu.requests[-1].step.parameters["size"] == 7
    cpu.go.set()
    settled(qtbot, following)


def test_a_failure_is_said_in_the_badge_once(
    qtbot: QtBot, following: MainWindow, cpu: FakeCpu
) -> None:
    cpu.error = DeviceUnavailable("The card is busy.", "Wait.")
    size(following, 5)
    qtbot.waitUntil(lambda: "The card is busy." in badge(following))
    asked = len(cpu.requests)
    qtbot.waitUntil(lambda: following.live.resting)
    assert len(cpu.requests) == asked
    assert following.session.freshness is Freshness.OUT_OF_DATE
    cpu.error = None
    size(following, 7)
    settled(qtbot, following)


def test_a_slow_run_shows_the_time_on_a_recorded_card(
    qtbot: QtBot, live_window: MainWindow, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = live_window
    monkeypatch.setattr(freshness.Pace, "expect", lambda *_: 100.0)
    window.session.set_filter("mean")
    load(qtbot, window, picture)
    here = "Run (F5): about 2 min here"
    qtbot.waitUntil(lambda: here in badge(window))
    shape = window.session.subject.source.shape[:2]
    own = {"asked": shape, "shape": shape, "device": "gpu", "level": "tuned", "seconds": (2.0,)}
    figure = RecordedTime(row(**own), "NVIDIA H100 80GB", "22 Nov 2026", picture)
    window.session.set_recorded(Recorded([figure]))
    assert badge(window).endswith(f"{here}, 2.00 s on H100 (recorded 22 Nov 2026)")
    wider = row(**own | {"asked": (shape[0], 2 * shape[1]), "shape": (shape[0], 2 * shape[1])})
    window.session.set_recorded(Recorded([replace(figure, row=wider)]))
    size_ = f"{2 * shape[1]}×{shape[0]}"
    assert f"{here}, ≈ 1.00 s on H100 (recorded 22 Nov 2026, scaled from {size_})" in badge(window)
    size(window, 5)
    qtbot.waitUntil(lambda: here in badge(window) and "H100" not in badge(window))
    monkeypatch.setattr(freshness.Pace, "is_bound", lambda *_: True)
    wanted = window.session.subject.wanted()
    assert wanted is not None
    window.live.refresh(wanted)
    assert "Run (F5): less than 2 min here" in badge(window)
    monkeypatch.setattr(window.runner.tasks.costs, "predict", lambda *_: 7.0)
    window.live.refresh(wanted)
    assert "Run (F5): about 7 s here" in badge(window), "it was measured"
    assert window.runner.pace(wanted) == 7
    monkeypatch.setattr(freshness.Pace, "is_uncompiled", lambda *_: True)
    window.live.refresh(window.session.subject.wanted())
    assert badge(window).endswith("Run (F5) computes the whole")


@pytest.mark.parametrize("fails", [False, True])
def test_an_estimate_is_said_and_made_once(
    qtbot: QtBot,
    live_window: MainWindow,
    picture: Path,
    monkeypatch: pytest.MonkeyPatch,
    fails: bool,
) -> None:
    """The window asked for Run meanwhile, and began the same estimate at each move of the view."""
    window, go, asked = live_window, threading.Event(), list[Sequence[str]]()

    def estimate(wanted: Request, names: Sequence[str]) -> dict[str, float]:
        asked.append(names)
        assert go.wait(PATIENCE)
        if fails:
            raise AppError("No noise at all.", "")
        return {name: 3 if name == "patch" else 0.25 for name in names}

    monkeypatch.setattr(runner, "estimate", estimate)
    window.session.set_filter("nlm")
    load(qtbot, window, picture)
    qtbot.waitUntil(lambda: bool(asked))
    qtbot.waitUntil(lambda: not window.live.rest.isActive())
    for _ in range(3):
        window.session.subject.note(SEEN)
        QApplication.processEvents()
        assert badge(window).endswith("estimating…")
    assert len(asked) == 1
    go.set()
    if fails:
        qtbot.waitUntil(lambda: badge(window).endswith("No noise at all."))
    else:
        settled(qtbot, window)
        parameters = window.session.subject.result.request.step.parameters
        assert {parameters[name] for name in asked[0]} == {0.25, 3}
    assert len(asked) == 1


def test_usual_values_are_no_estimate(
    qtbot: QtBot, live_window: MainWindow, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After *Denoise*, or *Defaults*, the output was that of a sigma that nobody had estimated."""
    window, asked = live_window, list[Sequence[str]]()
    session, subject = window.session, window.session.subject

    def estimate(wanted: Request, names: Sequence[str]) -> dict[str, float]:
        asked.append(names)
        return {"sigma": 2.5}

    monkeypatch.setattr(runner, "estimate", estimate)
    session.set_filter("collaborative")
    load(qtbot, window, picture)
    settled(qtbot, window)
    result = subject.result
    assert result.request.step.parameters["sigma"] == 2.5
    session.reset()
    qtbot.waitUntil(lambda: not window.background._tasks)
    assert session.values.numbers["sigma"] == 2.5
    assert subject.result is result, "nothing changed"
    session.set_values("collaborative", {"sigma": 7.0})
    settled(qtbot, window)
    assert subject.result.request.step.parameters["sigma"] == 7
    session.reset()
    settled(qtbot, window)
    assert session.values.numbers["sigma"] == 2.5
    assert subject.result.request.step.parameters["sigma"] == 2.5
    assert len(asked) == 2


def test_invalid_settings_are_out_of_date(
    qtbot: QtBot, live_window: MainWindow, picture: Path
) -> None:
    window = live_window
    load(qtbot, window, picture)
    settled(qtbot, window)
    border = child(window, QComboBox, "border")
    border.setCurrentText("Valid")
    border.activated.emit(border.currentIndex())
    size(window, 31)  # higher than the picture
    qtbot.waitUntil(lambda: window.live.resting)
    assert window.session.freshness is Freshness.OUT_OF_DATE


# --- with the real processor: is the badge true? ---


@pytest.mark.parametrize("steps", [1, 2])
def test_another_method_shows_a_preview_until_the_code_is_ready(
    qtbot: QtBot,
    real_window: MainWindow,
    picture: Path,
    monkeypatch: pytest.MonkeyPatch,
    steps: int,
) -> None:
    window, ready, compile_all = real_window, threading.Event(), CpuBackend._compile_all

    def compile_later(self: CpuBackend, *arguments: Any) -> None:
        assert ready.wait(PATIENCE)
        compile_all(self, *arguments)

    monkeypatch.setattr(CpuBackend, "_compile_all", compile_later)
    if not window.session.live:
        window.live.toggle()
    subject = window.session.pictures
    window.session.set_filter("collaborative")
    window.session.set_values("collaborative", {"sigma": 5.0})
    load(qtbot, window, picture)
    if steps > 1:
        pipeline, settings = subject.pipeline, window.session.require()
        assert pipeline is not None
        twice = pipeline.duplicated(pipeline.place).selected(pipeline.place)
        subject.push(replace(subject.moment, pipeline=twice, result=None, settings=settings))

    def is_preview() -> bool:
        shown = subject.shown
        return shown is not None and bool(shown.stand_in) and len(shown.shapes) == steps

    wait_until(qtbot, is_preview)
    wait_until(qtbot, lambda: window.live.resting)
    assert subject.result is None, "there is nothing to be saved"
    assert window.session.freshness is Freshness.PREVIEW
    said = "by sliding DCT while the code still compiles, Run (F5) computes the whole"
    assert badge(window).endswith(said)
    assert "quick preview by sliding DCT" in window.page.canvas.output.details.toolTip()
    compiled = window.live.use_compiled
    seen: list[tuple[Freshness | None, str]] = []

    def look() -> None:
        compiled()
        seen.append((window.session.freshness, badge(window)))

    monkeypatch.setattr(window.live, "use_compiled", look)
    ready.set()
    wait_until(qtbot, lambda: window.session.freshness is Freshness.EXACT)
    said = "◐ preview: by sliding DCT, computing the output…"
    assert seen[0] == (Freshness.PREVIEW, said), "it is on the screen until the output is there"
    assert subject.result is not None
    own = execute_all(replace(subject.result.request, live=False), {"cpu": CpuBackend()})
    np.testing.assert_array_equal(subject.result.image.pixels, own.image.pixels)


def test_numpy_shows_the_output_and_the_code_computes_it_once_more(
    qtbot: QtBot, real_window: MainWindow, picture: Path
) -> None:
    window, shown = real_window, []
    if not window.session.live:
        window.live.toggle()
    subject = window.session.pictures
    subject.follow(lambda _: shown.append(subject.result))
    load(qtbot, window, picture)
    wait_until(qtbot, lambda: subject.result is not None and not subject.result.uncompiled)
    results = list(dict.fromkeys(each for each in shown if each is not None))
    assert [each.uncompiled for each in results] == [True, False]
    early, later = (each.image.pixels for each in results)
    np.testing.assert_array_equal(early, later)
    assert window.session.freshness is Freshness.EXACT
    assert not subject.history.undo_name, "it is the same step"


def take_too_long(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the view take four times as long as a gesture allows, and smaller parts their share."""
    monkeypatch.setattr(freshness, "_SMALLEST_SIDE", 2)
    pace = window.live.pace
    monkeypatch.setattr(pace, "record", lambda *_, **__: None)
    monkeypatch.setattr(pace, "expect", lambda each: 4 * LOOKING * pixels_of(each) / 1200)
    monkeypatch.setattr(pace, "is_sure", lambda _: True)


def test_the_part_keeps_its_size_when_a_value_is_chosen(
    qtbot: QtBot, following: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shrank to a part that was there within 0.1 s, as while a slider moves."""
    take_too_long(following, monkeypatch)
    subject = following.session.pictures
    size(following, 7)
    settle(qtbot, following)
    assert subject.shown is not None
    before, parts = subject.shown.region, []
    assert isinstance(before, Region)
    subject.when({PART}, lambda: parts.append(subject.shown))
    following.session.set_values("median", {"size": 9})
    following.live.end_gesture()
    settle(qtbot, following)
    assert [each and each.region for each in parts] == [before]
    assert parts[0] is not None
    assert parts[0].step.parameters["size"] == 9


def test_a_part_that_shows_the_pace_does_not_take_a_larger_preview_away(
    qtbot: QtBot, following: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that began then left 94×98 pixels for two minutes, where 564×588 had been."""
    take_too_long(following, monkeypatch)
    monkeypatch.setattr(freshness, "PROBE_SIDE", 6)
    subject, pace = following.session.pictures, following.live.pace
    size(following, 7)
    settle(qtbot, following)
    assert subject.shown is not None
    before, expect = subject.shown.region, pace.expect
    parts: list[Any] = []
    measured: list[Any] = []

    def known(request: Request) -> float | None:
        return expect(request) if measured or request.step.parameters["size"] == 7 else None

    monkeypatch.setattr(pace, "record", lambda each, *_, **__: measured.append(each.region))
    monkeypatch.setattr(pace, "expect", known)
    subject.when({PART}, lambda: parts.append(subject.shown))
    following.session.set_values("median", {"size": 9})
    following.live.end_gesture()
    settle(qtbot, following)
    assert measured[0].pixels <= 36
    assert [each.region for each in parts] == [before]
    assert parts[0].step.parameters["size"] == 9


def test_a_line_that_is_dragged_asks_for_the_part_beside_it(
    qtbot: QtBot, following: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The view would take too long, and only a part of it, where the output is drawn, is made."""
    take_too_long(following, monkeypatch)
    press(qtbot, following, "Alt+2")
    subject = following.session.pictures
    view = subject.view
    view.set_divide(0.7)
    size(following, 7)
    settle(qtbot, following)

    def part() -> Region:
        assert subject.shown is not None
        assert isinstance(subject.shown.region, Region)
        return subject.shown.region

    right = part()
    assert right.left >= math.floor(view.output_from[0])
    view.set_divide(0.2)
    settle(qtbot, following)
    assert part().left < right.left
