"""Editing kernels: versions, messages at their lines, keys."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QComboBox,
    QFileDialog,
    QInputDialog,
    QLabel,
    QLineEdit,
    QTabWidget,
    QTreeWidget,
)
from pytestqt.qtbot import QtBot

from kernelscope.backends.cuda.sources import source_files
from kernelscope.backends.emulator.compiler import HostCompiler
from kernelscope.backends.trial.parent import TrialOutcome
from kernelscope.backends.trial.protocol import (
    CHECKED,
    EMULATED,
    ERROR,
    WARNING,
    CompilerMessage,
    Ending,
    TrialJob,
    TrialLimits,
    TrialReport,
    Work,
)
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.engine.timing import Resources
from kernelscope.gui.model import trials
from kernelscope.gui.model.kernel_edits import FIRST, Edits
from kernelscope.gui.model.trials import Version
from kernelscope.gui.tools.code_view import CodeEditor, CodeView
from kernelscope.gui.tools.edit_panel import WrongPixels
from kernelscope.gui.tools.kernel_viewer import DifferenceView, KernelViewer
from kernelscope.gui.widgets.tables import FactTable
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from tests.backends.emulated import needs_compiler
from tests.gui.helpers import choose_files, click, dialog, due_timers

pytestmark = needs_compiler

MEAN = source_files("mean")[0].text
CONTROL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def viewer(qtbot: QtBot, background: Background, edits: Edits, opens_slowly: None) -> KernelViewer:
    return opened(qtbot, background, edits)


def opened(qtbot: QtBot, background: Background, edits: Edits) -> KernelViewer:
    viewer = KernelViewer(background, {}, edits)
    qtbot.addWidget(viewer)
    viewer.show_request(request())
    viewer.show()
    return viewer


def request(filter_id: str = "mean", level: str = "shared") -> Request:
    return Request.create(
        Image.from_array(np.zeros((100, 70, 3), np.uint8)), filter_id, level=level
    )


def version_box(viewer: KernelViewer) -> QComboBox:
    box = viewer.findChild(QComboBox, "kernelVersion")
    assert box is not None
    return box


def choose(viewer: KernelViewer, version: str) -> None:
    box = version_box(viewer)
    box.setCurrentIndex(box.findData(version))


def edit(viewer: KernelViewer) -> CodeEditor:
    """Return the editor of the user's first version."""
    choose(viewer, FIRST)
    return editor_of(viewer)


def editor_of(viewer: KernelViewer) -> CodeEditor:
    view = viewer.findChild(QTabWidget, "kernelFiles").currentWidget()
    assert isinstance(view, CodeEditor)
    return view


def put(editor: CodeEditor, text: str) -> None:
    """Replace all of the text, as typing does."""
    cursor = editor.textCursor()
    cursor.select(QTextCursor.SelectionType.Document)
    cursor.insertText(text)


def try_out(qtbot: QtBot, viewer: KernelViewer) -> None:
    with qtbot.waitSignal(viewer.panel.compiled):
        viewer.panel.compile()


def answer_by(monkeypatch: pytest.MonkeyPatch, report: TrialReport) -> None:
    monkeypatch.setattr(trials, "try_out", lambda *_, **__: TrialOutcome(report))


def state(viewer: KernelViewer) -> str:
    return viewer.findChild(QLabel, "editState").text()


def facts(viewer: KernelViewer) -> str:
    return viewer.findChild(FactTable, "kernelFacts").text()


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[TrialJob]:
    """The jobs of a made-up compiler, which answers by `REPORT`."""
    jobs = []

    def answer(job: TrialJob, *_: object, **__: object) -> TrialOutcome:
        jobs.append(job)
        return TrialOutcome(REPORT)

    monkeypatch.setattr(trials, "try_out", answer)
    return jobs


REPORT = TrialReport(
    Ending.NOT_COMPILED,
    compiler="NVRTC 13.1",
    messages=(
        CompilerMessage(ERROR, "identifier is undefined", "mean.cu", 3, 5),
        CompilerMessage(ERROR, "expected a bracket", "levels.cuh", 7),
        CompilerMessage(WARNING, "never referenced", "mean.cu", 9, 1),
    ),
)


# Versions -----------------------------------------------------------------------------


def test_the_original_headers_and_other_levels_are_read_only(
    viewer: KernelViewer, edits: Edits
) -> None:
    assert version_box(viewer).currentText() == "Original"
    view = viewer.findChild(QTabWidget, "kernelFiles").currentWidget()
    assert isinstance(view, CodeView)
    assert view.isReadOnly()
    assert not viewer.findChild(QAbstractButton, "compileEdit").isVisible()

    edit(viewer)
    tabs = viewer.findChild(QTabWidget, "kernelFiles")
    views = [tabs.widget(n) for n in range(tabs.count())]
    assert [view.isReadOnly() for view in views] == [False] + [True] * (len(views) - 1)

    put(edit(viewer), "// shared")
    level = viewer.findChild(QComboBox, "kernelLevel")
    level.setCurrentIndex(level.findData("global"))
    assert version_box(viewer).currentText() == "Original"
    assert viewer_text(viewer) == MEAN
    assert edits.names("mean", "global") == []


@pytest.mark.smoke
def test_a_version_is_kept_and_comes_back(
    qtbot: QtBot, viewer: KernelViewer, background: Background, edits: Edits
) -> None:
    editor = edit(viewer)
    assert editor.toPlainText() == MEAN
    qtbot.waitUntil(lambda: not due_timers(viewer))
    assert edits.names("mean", "shared") == [], "nothing was changed yet"
    put(editor, "// mine\n" + MEAN)
    qtbot.waitUntil(lambda: edits.names("mean", "shared") == [FIRST])  # without leaving it
    other = opened(qtbot, background, edits)
    assert edit(other).toPlainText() == "// mine\n" + MEAN
    assert source_files("mean")[0].text == MEAN
    choose(other, "")
    assert "// mine" not in viewer_text(other)


def viewer_text(viewer: KernelViewer) -> str:
    view = viewer.findChild(QTabWidget, "kernelFiles").currentWidget()
    assert isinstance(view, CodeView)
    return view.toPlainText()


def test_leaving_keeps_at_once(viewer: KernelViewer, edits: Edits) -> None:
    put(edit(viewer), "// one")
    choose(viewer, "")
    assert edits.read("mean", "shared", FIRST).text == "// one"
    put(edit(viewer), "// two")
    viewer.show_request(request("median"))
    assert edits.read("mean", "shared", FIRST).text == "// two"
    viewer.show_request(request())
    put(edit(viewer), "// three")
    viewer.close()
    assert edits.read("mean", "shared", FIRST).text == "// three"


def test_reverting_and_a_template_are_one_step_of_undo(
    qtbot: QtBot, viewer: KernelViewer, edits: Edits
) -> None:
    editor = edit(viewer)
    put(editor, "// mine")
    click(qtbot, viewer, "revertEdit")
    assert editor.toPlainText() == MEAN
    QTest.keyClick(editor, Qt.Key.Key_Z, CONTROL)
    assert editor.toPlainText() == "// mine"
    choose(viewer, "")
    assert edits.read("mean", "shared", FIRST).text == "// mine"

    editor = edit(viewer)
    put(editor, MEAN + "// mine")
    editor.go_to_line(30)
    click(qtbot, viewer, "revertEdit")
    assert editor.textCursor().blockNumber() == 30, "where the user is at work"
    put(editor, "// mine")
    click(qtbot, viewer, "templateEdit")
    assert "void mean_shared(const Sample* source" in editor.toPlainText()
    assert state(viewer).startswith("A template")
    QTest.keyClick(editor, Qt.Key.Key_Z, CONTROL)
    assert editor.toPlainText() == "// mine"


def test_copies_are_named_and_deleted(viewer: KernelViewer, qtbot: QtBot, edits: Edits) -> None:
    put(edit(viewer), "// first")
    viewer.panel.keep()
    for name, problem in (("a/b", "cannot be used"), (FIRST, "already")):
        viewer.panel.save_copy(name)
        assert problem in state(viewer)
        assert version_box(viewer).currentData() == FIRST

    put(edit(viewer), "// first")
    click(qtbot, viewer, "copyEdit")
    dialog = viewer.findChild(QInputDialog, "copyDialog")
    dialog.findChild(QLineEdit).setText("second")
    dialog.accept()
    assert version_box(viewer).currentData() == "second"
    put(editor_of(viewer), "// second")
    choose(viewer, FIRST)
    assert viewer_text(viewer) == "// first"
    choose(viewer, "second")
    click(qtbot, viewer, "removeEdit")
    assert edits.names("mean", "shared") == [FIRST]
    assert viewer_text(viewer) == MEAN


def test_versions_of_another_source_and_damaged_ones_are_named(
    viewer: KernelViewer, edits: Edits
) -> None:
    put(edit(viewer), "// first")
    choose(viewer, "")
    (path,) = edits.folder.glob("*.json")
    path.write_text(path.read_text().replace('"original": "', '"original": "0'))
    choose(viewer, FIRST)
    assert "has changed since" in state(viewer)
    assert viewer_text(viewer) == "// first"

    put(edit(viewer), "// first")
    choose(viewer, "")
    (path,) = edits.folder.glob("*.json")
    path.write_text(path.read_text()[:-9])
    choose(viewer, FIRST)
    assert path.name in state(viewer)
    assert viewer_text(viewer) == MEAN


@pytest.mark.slow
def test_the_difference_from_the_original(qtbot: QtBot, viewer: KernelViewer) -> None:
    editor = edit(viewer)
    put(editor, MEAN.replace("Sum sum = 0;", "Sum sum = 1;"))
    other = viewer.findChild(QComboBox, "kernelOther")
    other.setCurrentIndex(other.findText("the original"))
    tabs = viewer.findChild(QTabWidget, "kernelFiles")

    def changes() -> list[str]:
        view = tabs.widget(0)
        assert isinstance(view, DifferenceView)
        return [str(line) for line in view.lines if line.kind != "same"]

    assert changes() == ["-         Sum sum = 0;", "+         Sum sum = 1;"]
    assert tabs.tabText(0) == "Original → My version"
    put(editor, MEAN.replace("Sum sum = 0;", "Sum sum = 2;"))
    qtbot.waitUntil(lambda: changes()[-1] == "+         Sum sum = 2;")
    choose(viewer, "")
    assert other.findText("the original") < 0
    assert not isinstance(tabs.widget(0), DifferenceView)


# Compiling ----------------------------------------------------------------------------


@pytest.mark.smoke
def test_a_key_compiles_and_messages_lead_to_their_lines(
    qtbot: QtBot, viewer: KernelViewer, jobs: list[TrialJob]
) -> None:
    editor = edit(viewer)
    put(editor, "// mine\n" + MEAN)
    with qtbot.waitSignal(viewer.panel.compiled):
        QTest.keyClick(editor, Qt.Key.Key_Return, CONTROL)
    assert jobs[0].text == "// mine\n" + MEAN
    assert (jobs[0].kernel, jobs[0].name) == ("mean_shared", "mean.cu")
    assert jobs[0].defines["CHANNELS"] == "3"
    assert editor.toPlainText() == jobs[0].text, "the key types nothing"
    assert state(viewer) == "Not compiled: 2 errors and 1 warning."

    with qtbot.waitSignal(viewer.panel.compiled):
        click(qtbot, viewer, "compileEdit")
    assert [line for line, _ in editor.messages] == [2, 8]
    assert [each.text for each in editor.messages_at(2)] == ["identifier is undefined"]
    cursor = QTextCursor(editor.document().findBlockByNumber(1))
    cursor.insertText("int a;\n")
    assert [line for line, _ in editor.messages] == [3, 9]
    assert state(viewer) == "Changed: Ctrl+Return tries it."

    try_out(qtbot, viewer)
    editor.moveCursor(QTextCursor.MoveOperation.Start)

    def lines(modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> list[int]:
        found = []
        for _ in range(3):
            QTest.keyClick(viewer, Qt.Key.Key_F8, modifier)
            found.append(editor.textCursor().blockNumber())
        return found

    assert lines() == [2, 8, 2]
    assert editor.textCursor().positionInBlock() == 4
    assert lines(SHIFT) == [8, 2, 8]

    try_out(qtbot, viewer)
    tree = viewer.findChild(QTreeWidget, "compilerMessages")
    texts = [tree.topLevelItem(n).text(0) for n in range(tree.topLevelItemCount())]
    assert texts == ["mean.cu:3", "levels.cuh:7", "mean.cu:9"]
    tree.itemActivated.emit(tree.topLevelItem(2), 0)
    assert editor.textCursor().blockNumber() == 8
    tree.itemActivated.emit(tree.topLevelItem(1), 0)
    tabs = viewer.findChild(QTabWidget, "kernelFiles")
    assert tabs.tabText(tabs.currentIndex()) == "levels.cuh"
    assert tabs.currentWidget().textCursor().blockNumber() == 6


def test_the_first_error_is_scrolled_into_view_and_an_empty_list_is_away(
    qtbot: QtBot, viewer: KernelViewer, jobs: list[TrialJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A student saw three lines of messages, and none of the lines that they were about."""
    editor = edit(viewer)
    editor.go_to_line(editor.blockCount() - 1)
    where = editor.textCursor().position()
    try_out(qtbot, viewer)
    (line, *_) = (line for line, each in editor.messages if each.kind == ERROR)

    def seen() -> bool:
        place = editor.blockBoundingGeometry(editor.document().findBlockByNumber(line))
        top = place.translated(editor.contentOffset()).top()
        return 0 <= top <= editor.viewport().height() - place.height()

    qtbot.waitUntil(seen)
    assert editor.textCursor().position() == where
    tree = viewer.findChild(QTreeWidget, "compilerMessages")
    assert tree.isVisible()
    done = TrialReport(Ending.DONE, compiler="NVRTC 13.1")
    answer_by(monkeypatch, done)
    try_out(qtbot, viewer)
    assert not tree.isVisible()


@pytest.mark.slow
def test_resources_of_a_version_go_when_it_changes(
    qtbot: QtBot, viewer: KernelViewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = TrialReport(
        Ending.DONE, compiler="NVRTC 13.1", resources={"sm_75": Resources(4321, 0, 0, 0, 0)}
    )
    answer_by(monkeypatch, done)
    editor = edit(viewer)
    try_out(qtbot, viewer)
    assert state(viewer) == "Compiled by NVRTC 13.1."
    assert "4321" in facts(viewer)
    put(editor, "// other")
    qtbot.waitUntil(lambda: "4321" not in facts(viewer))


def test_stop_ends_compiling(
    qtbot: QtBot, viewer: KernelViewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = []

    def wait(
        job: TrialJob, works: object, limits: object, token: CancelToken, *_: object
    ) -> TrialOutcome:
        tokens.append(token)
        while not token.cancelled:
            time.sleep(0.01)
        return TrialOutcome(TrialReport(Ending.CANCELLED))

    monkeypatch.setattr(trials, "try_out", wait)
    edit(viewer)
    viewer.panel.compile()
    qtbot.waitUntil(lambda: bool(tokens))
    assert state(viewer) == "Compiling and running…"
    click(qtbot, viewer, "stopTrial")
    assert tokens[0].cancelled
    assert state(viewer) == "Stopped."
    viewer.panel.compile()
    qtbot.waitUntil(lambda: len(tokens) == 2)
    viewer.close()
    assert tokens[1].cancelled


@pytest.mark.slow
def test_the_real_compiler(qtbot: QtBot, viewer: KernelViewer) -> None:
    editor = edit(viewer)
    put(editor, MEAN.replace("sum += part;", "sum += prt;"))
    try_out(qtbot, viewer)
    ((line, message),) = editor.messages
    assert "prt" in editor.document().findBlockByNumber(line).text()
    assert "prt" in message.text
    click(qtbot, viewer, "revertEdit")
    try_out(qtbot, viewer)
    assert state(viewer).startswith("Right: all 70 × 100 pixels equal")
    assert "sm_75" in facts(viewer)


# Running ------------------------------------------------------------------------------


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make results up: the pixels (4, 2) and (1, 3) are wrong, in channel 1."""
    reference = np.full((100, 70, 3), 7, np.uint8)
    output = reference.copy()
    output[2, 4, 1], output[3, 1, 1] = 9, 200
    done = TrialReport(Ending.DONE, compiler="NVRTC 13.1")
    monkeypatch.setattr(
        trials, "try_out", lambda *_, **__: TrialOutcome(done, ((output, reference),))
    )


@pytest.mark.smoke
def test_wrong_pixels_are_counted_chosen_and_go_to_the_xray(
    qtbot: QtBot, viewer: KernelViewer, wrong: None
) -> None:
    chosen = []
    viewer.panel.wrong_pixel_chosen.connect(lambda x, y: chosen.append((x, y)))
    edit(viewer)
    try_out(qtbot, viewer)
    assert state(viewer).startswith("Wrong: 2 of 70 × 100 pixels differ")
    figures = viewer.findChild(QLabel, "wrongPixel")
    assert "Column 4, row 2, channel 1\nExpected 7, got 9" in figures.text()
    shown = viewer.findChild(WrongPixels)
    assert shown is not None
    assert shown.isVisible()
    QTest.keyClick(shown, Qt.Key.Key_Right)
    assert "Column 1, row 3, channel 1\nExpected 7, got 200" in figures.text()
    QTest.keyClick(shown, Qt.Key.Key_Right)
    QTest.keyClick(shown, Qt.Key.Key_Left)
    assert chosen == [(4, 2), (1, 3), (4, 2), (1, 3)]
    area = shown.area()
    scale = area.width() / 70
    at = area.topLeft() + QPointF(5.5 * scale, 1.5 * scale)
    qtbot.mouseClick(shown, Qt.MouseButton.LeftButton, pos=at.toPoint())
    assert shown.chosen == (4, 2)

    wanted: list[tuple[Version, int, int]] = []
    viewer.panel.xray_wanted.connect(lambda *asked: wanted.append(asked))
    put(edit(viewer), text := MEAN + "// mine\n")
    try_out(qtbot, viewer)
    click(qtbot, viewer, "wrongPixelXray")
    shown = viewer.findChild(WrongPixels)
    assert shown is not None
    QTest.keyClick(shown, Qt.Key.Key_Right)
    QTest.keyClick(shown, Qt.Key.Key_X)
    assert [(x, y) for _, x, y in wanted] == [(4, 2), (1, 3)]
    version = wanted[0][0]
    assert (version.job.text, version.job.kernel) == (text, "mean_shared")
    assert version.work.plan.task.output_shape == (100, 70, 3)
    assert version.source("mean.cu") == text
    assert "inline" in version.source("cells.cuh")

    try_out(qtbot, viewer)
    QTest.keyClicks(editor_of(viewer), "x")
    assert not viewer.findChild(WrongPixels).isVisible()
    assert not viewer.findChild(QLabel, "wrongPixel").isVisible()


def test_wrong_accesses_to_memory_stand_at_their_lines(
    qtbot: QtBot, viewer: KernelViewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is right, but by chance."""
    picture = np.zeros((100, 70, 1), np.uint8)
    race = CompilerMessage(ERROR, "mean_shared, block 0, thread 1 reads 1 bytes", "mean.cu", 61)
    answers = {
        EMULATED: TrialOutcome(
            TrialReport(Ending.DONE, compiler="NVRTC 13.1"), ((picture, picture),)
        ),
        CHECKED: TrialOutcome(
            TrialReport(Ending.FAULT, "Wrong access at 61.", "Wait.", messages=(race,))
        ),
    }
    asked: list[tuple[str, int]] = []

    def answer(job: TrialJob, works: Sequence[Work], *_: object) -> TrialOutcome:
        asked.append((job.target, len(works)))
        return answers[job.target]

    monkeypatch.setattr(trials, "try_out", answer)
    editor = edit(viewer)
    with qtbot.waitSignal(viewer.panel.graded) as graded:
        viewer.panel.compile()
    qtbot.waitUntil(lambda: [message for _, message in editor.messages] == [race])
    assert asked == [(EMULATED, 1), (CHECKED, 1)]
    assert state(viewer) == (
        "Right: all 70 × 100 pixels equal those of the program's own kernel, on the emulated GPU. "
        "Wrong access at 61. Wait."
    )
    assert not graded.args[0].passed
    answers[CHECKED] = TrialOutcome(TrialReport(Ending.TIME, "It took too long."))
    try_out(qtbot, viewer)
    assert state(viewer).endswith("Its accesses to memory were not checked: It took too long.")
    assert editor.messages == []


@pytest.mark.smoke
def test_grading_goes_through_the_cases_of_the_contract(
    qtbot: QtBot, viewer: KernelViewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, counts = [], []

    def answer(
        job: TrialJob,
        works: Sequence[Work],
        limits: TrialLimits,
        token: object,
        begun: Callable[[int], None] = lambda number: None,
    ) -> TrialOutcome:
        if job.target == CHECKED:
            return TrialOutcome(TrialReport(Ending.DONE))
        counts.append(len(works))
        begun(2)
        right = np.zeros((3, 3, 1), np.uint8)
        results = [(right, right)] * len(works)
        results[4] = (right, right + np.uint8(1))
        return TrialOutcome(TrialReport(Ending.DONE), tuple(results))

    monkeypatch.setattr(trials, "try_out", answer)
    edit(viewer)
    viewer.panel._case.connect(lambda *case: shown.append(case))
    with qtbot.waitSignal(viewer.panel.compiled):
        QTest.keyClick(viewer, Qt.Key.Key_Return, CONTROL | SHIFT)
    # Three types, eight borders, grey and RGB, three sizes; one pixel is too small for valid.
    assert counts == [3 * 2 * (8 * 3 - 1)]
    assert shown == [(2, 138)]
    assert state(viewer) == (
        "Right in 137 of 138 cases. "
        "First wrong: uint8, RGB, border reflect, 131 × 3, 9 of 9 pixels."
    )


def test_a_case_in_which_a_kernel_is_stopped_is_named(
    qtbot: QtBot, viewer: KernelViewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(
        job: TrialJob,
        works: Sequence[Work],
        limits: TrialLimits,
        token: object,
        begun: Callable[[int], None],
    ) -> TrialOutcome:
        begun(3)
        return TrialOutcome(TrialReport(Ending.TIME, "It ran for 9 s.", "Look for a loop."))

    monkeypatch.setattr(trials, "try_out", answer)
    edit(viewer)
    with qtbot.waitSignal(viewer.panel.compiled):
        click(qtbot, viewer, "gradeEdit")
    assert state(viewer) == (
        "Case 3 of 138 (uint8, grey, border reflect, 33 × 17): It ran for 9 s. Look for a loop."
    )


def test_what_cannot_run_is_compiled_and_says_why(
    qtbot: QtBot, viewer: KernelViewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = TrialReport(Ending.DONE, compiler="NVRTC 13.1")
    targets = []

    def answer(job: TrialJob, *_: object, **__: object) -> TrialOutcome:
        targets.append(job.target)
        return TrialOutcome(done)

    monkeypatch.setattr(trials, "try_out", answer)
    monkeypatch.setattr(HostCompiler, "find", lambda: None)
    edit(viewer)
    try_out(qtbot, viewer)
    assert targets == ["compile"]
    assert "needs a C++ compiler" in state(viewer)


# Typing -------------------------------------------------------------------------------


def test_indenting_finding_and_leaving_by_a_key(viewer: KernelViewer, qtbot: QtBot) -> None:
    editor = edit(viewer)
    put(editor, "")
    QTest.keyClicks(editor, "if (a) {")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    QTest.keyClicks(editor, "b;")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    QTest.keyClick(editor, Qt.Key.Key_Backtab)
    QTest.keyClicks(editor, "}")
    assert editor.toPlainText() == "if (a) {\n    b;\n}"
    editor.selectAll()
    QTest.keyClick(editor, Qt.Key.Key_Tab)
    assert editor.toPlainText() == "    if (a) {\n        b;\n    }"
    QTest.keyClick(editor, Qt.Key.Key_Backtab)
    QTest.keyClick(editor, Qt.Key.Key_Backtab)
    assert editor.toPlainText() == "if (a) {\nb;\n}"

    editor = edit(viewer)
    put(editor, "one two\nTwo\nthree two")
    editor.moveCursor(QTextCursor.MoveOperation.Start)
    QTest.keyClick(editor, Qt.Key.Key_F, CONTROL)
    field = viewer.findChild(QLineEdit, "findText")
    assert field is not None
    assert field.isVisible()
    QTest.keyClicks(field, "two")
    assert viewer.findChild(QLabel, "findCount").text() == "3 found"
    lines = [editor.textCursor().blockNumber()]
    for _ in range(3):
        QTest.keyClick(field, Qt.Key.Key_Return)
        lines.append(editor.textCursor().blockNumber())
    QTest.keyClick(field, Qt.Key.Key_Return, SHIFT)
    lines.append(editor.textCursor().blockNumber())
    assert lines == [0, 1, 2, 0, 2]
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert not field.isVisible()
    assert viewer.isVisible(), "Escape closes the bar, not the window"

    editor = edit(viewer)
    viewer.activateWindow()
    qtbot.waitUntil(editor.hasFocus)
    QTest.keyClick(editor, Qt.Key.Key_F6)
    assert not editor.hasFocus()


@pytest.mark.slow
def test_lines_that_are_left_out_are_dimmed_as_one_types(
    qtbot: QtBot, viewer: KernelViewer
) -> None:
    editor = edit(viewer)
    put(editor, "int a;\n#if SIZE > 3\nint b;\n#endif\n")
    qtbot.waitUntil(lambda: editor.dimmed_lines == (2,))


# --- new kernels ---


def test_a_kernel_and_its_test_are_saved_under_a_name_that_a_filter_can_have(
    qtbot: QtBot, viewer: KernelViewer, tmp_path: Path
) -> None:
    edit(viewer)
    click(qtbot, viewer, "filesEdit")
    choose_files(dialog(qtbot, viewer, QFileDialog), tmp_path / "My Mean.cu")
    assert "“My Mean” cannot be the id" in state(viewer)
    assert not list(tmp_path.glob("*.cu"))

    put(edit(viewer), 'extern "C" __global__ void mean_shared() {}  // mine\n')
    click(qtbot, viewer, "filesEdit")
    chooser = dialog(qtbot, viewer, QFileDialog)
    choose_files(chooser, tmp_path / "own_mean.cu")
    text = (tmp_path / "own_mean.cu").read_text()
    assert text == 'extern "C" __global__ void own_mean_shared() {}  // mine\n'
    assert "'size': 3" in (tmp_path / "test_own_mean.py").read_text()
    assert state(viewer).startswith("Saved own_mean.cu and test_own_mean.py.")
