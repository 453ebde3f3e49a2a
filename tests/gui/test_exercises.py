"""The window of the exercises."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QListWidget, QTabWidget, QTextBrowser
from pytestqt.qtbot import QtBot

from kernelscope.backends.trial.exercises import exercises
from kernelscope.backends.trial.parent import TrialOutcome
from kernelscope.backends.trial.protocol import CHECKED, Ending, TrialJob, TrialReport
from kernelscope.gui.model import trials
from kernelscope.gui.model.kernel_edits import FIRST, Edits
from kernelscope.gui.tools.code_view import CodeEditor, CodeView
from kernelscope.gui.tools.exercise_window import ExerciseWindow
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.work.background import Background
from tests.gui.helpers import Opener, click


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path / "settings.json")


@pytest.fixture
def window(
    qtbot: QtBot, background: Background, edits: Edits, settings: Settings
) -> ExerciseWindow:
    window = ExerciseWindow(background, edits, settings)
    qtbot.addWidget(window)
    window.show()
    return window


def choose(window: ExerciseWindow, number: int) -> CodeEditor:
    window.findChild(QListWidget, "exerciseList").setCurrentRow(number)
    view = window.findChild(QTabWidget, "exerciseFiles").currentWidget()
    assert isinstance(view, CodeEditor)
    return view


def titles(window: ExerciseWindow) -> list[str]:
    rows = window.findChild(QListWidget, "exerciseList")
    return [rows.item(n).text() for n in range(rows.count())]


def text(window: ExerciseWindow) -> str:
    return window.findChild(QTextBrowser, "exerciseText").toPlainText()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """The reads a pixel of a made-up run, all of whose pixels are right."""
    made = {"a pixel": 1.0}

    def answer(job: TrialJob, *_: object, **__: object) -> TrialOutcome:
        pixels = np.zeros((10, 10, 1), np.uint8)
        if job.target == CHECKED:
            loads = (round(100 * made["a pixel"]),)
            return TrialOutcome(TrialReport(Ending.DONE, loads=loads))
        return TrialOutcome(TrialReport(Ending.DONE), ((pixels, pixels),))

    monkeypatch.setattr(trials, "try_out", answer)
    return made


def test_the_chosen_exercise_is_shown_with_its_starter(window: ExerciseWindow) -> None:
    assert len(titles(window)) == 7
    for number, exercise in enumerate(exercises()):
        editor = choose(window, number)
        assert editor.toPlainText() == exercise.starter
        assert text(window).startswith(exercise.title)
        assert "Goal:" in text(window)


def test_answers_are_kept_for_each(window: ExerciseWindow, edits: Edits) -> None:
    choose(window, 0).setPlainText("// first")
    choose(window, 1).setPlainText("// second")
    assert choose(window, 0).toPlainText() == "// first"
    window.close()
    kept = edits.read("exercise", exercises()[1].id, FIRST)
    assert kept is not None
    assert kept.text == "// second"


def test_hints_come_one_by_one(qtbot: QtBot, window: ExerciseWindow) -> None:
    hints = len(exercises()[0].hints)
    button = window.findChild(QAbstractButton, "exerciseHint")
    for number in range(hints):
        assert button.text() == f"&Hint {number + 1} of {hints}"
        assert f"Hint {number + 1}." not in text(window)
        click(qtbot, window, "exerciseHint")
        assert f"Hint {number + 1}." in text(window)
    assert not button.isEnabled()
    choose(window, 1)
    assert "Hint 1." not in text(window)


def test_the_solution_leaves_the_answer_alone(qtbot: QtBot, window: ExerciseWindow) -> None:
    editor = choose(window, 0)
    editor.setPlainText("// mine")
    click(qtbot, window, "exerciseSolution")
    tabs = window.findChild(QTabWidget, "exerciseFiles")
    shown = tabs.currentWidget()
    assert isinstance(shown, CodeView)
    assert (shown.toPlainText(), shown.isReadOnly()) == (exercises()[0].solution, True)
    assert editor.toPlainText() == "// mine"


def test_a_passed_exercise_is_ticked_and_stays_so(
    qtbot: QtBot,
    window: ExerciseWindow,
    reads: dict[str, float],
    background: Background,
    edits: Edits,
    settings: Settings,
) -> None:
    editor = choose(window, 1)
    reads["a pixel"] = 2.0
    with qtbot.waitSignal(window.panel.compiled):
        QTest.keyClick(editor, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert titles(window)[1] == "– 2. A tile in shared memory"
    reads["a pixel"] = 1.4
    with qtbot.waitSignal(window.panel.compiled):
        click(qtbot, window, "compileEdit")
    assert titles(window)[1] == "✓ 2. A tile in shared memory (passed)"
    other = ExerciseWindow(background, edits, Settings(settings.path))
    qtbot.addWidget(other)
    assert titles(other) == titles(window)


@pytest.mark.parametrize(
    ("filter_id", "level", "title"),
    [
        ("median", "shared", "2. A tile in shared memory"),
        ("mean", "shared", "2. A tile in shared memory"),
        ("nlm", "shared", "7. Non-local means from a tile"),
        ("sobel", "texture", "4. Reading through a texture"),
        ("sobel", "", "6. Sobel with shared rows"),
        ("median", "", "1. One thread for each pixel"),
    ],
)
def test_it_opens_at_the_level_in_front_and_else_at_the_filter(
    window: ExerciseWindow, filter_id: str, level: str, title: str
) -> None:
    window.open_at(filter_id, level)
    assert title in window.findChild(QListWidget).currentItem().text()


@pytest.mark.smoke
def test_it_opens_from_the_menu(open_window: Opener) -> None:
    window_of_all = open_window()
    window_of_all.findChild(QAction, "exercises").trigger()
    opened = window_of_all.findChild(ExerciseWindow)
    assert opened.isVisible()
    opened.close()
