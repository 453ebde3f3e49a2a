"""About, errors and bugs: their texts; they do not block, and they close."""

from __future__ import annotations

import errno
import platform
from importlib import metadata
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, qVersion
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QLabel, QPlainTextEdit, QWidget
from pytestqt.qtbot import QtBot

from kernelscope import __version__
from kernelscope.base.errors import AppError
from kernelscope.gui.widgets import messages as dialogs
from tests.gui.helpers import choose_files, click


@pytest.fixture
def window(qtbot: QtBot) -> QWidget:
    window = QWidget()
    qtbot.addWidget(window)
    window.show()
    return window


def failure() -> ValueError:
    try:
        raise ValueError("boo <b>")
    except ValueError as error:
        return error


def test_about_names_the_sources_and_versions(qtbot: QtBot, window: QWidget) -> None:
    dialog = dialogs.show_about(window)
    text = " ".join(label.text() for label in dialog.findChildren(QLabel))
    for part in ("Kernelscope", __version__, "MIT", "Korčuška", "no. 5", "Kasparidis", "Salari"):
        assert part in text
    for part in (platform.python_version(), qVersion(), metadata.version("numba")):
        assert part in text
    click(qtbot, dialog, "copyButton")
    assert f"NumPy {metadata.version('numpy')}" in QGuiApplication.clipboard().text()
    assert dialog.isVisible()
    click(qtbot, dialog, "closeButton")


def test_an_error_shows_cause_and_way_out_as_plain_text(qtbot: QtBot, window: QWidget) -> None:
    dialog = dialogs.show_error(window, AppError("“<b>.png” is broken.", "Try another."))
    assert dialog.isVisible()
    assert dialog.text() == "“<b>.png” is broken."
    assert dialog.informativeText() == "Try another."
    assert dialog.textFormat() == Qt.TextFormat.PlainText
    click(qtbot, dialog, "okButton")
    qtbot.waitUntil(lambda: not window.findChildren(dialogs.ErrorDialog))


def test_a_bug_shows_traceback_and_log(qtbot: QtBot, window: QWidget) -> None:
    dialog = dialogs.show_bug(window, failure(), "12:00 INFO  the log")
    details = dialog.findChild(QPlainTextEdit, "details")
    text = details.toPlainText()
    assert "ValueError: boo <b>" in text
    assert "in failure" in text
    assert "12:00 INFO  the log" in text
    assert __version__ in text
    assert details.isReadOnly()
    assert dialog.isSizeGripEnabled()
    click(qtbot, dialog, "copyButton")
    assert QGuiApplication.clipboard().text() == text
    click(qtbot, dialog, "closeButton")


def test_a_crash_is_shown_and_copied(qtbot: QtBot, window: QWidget) -> None:
    dialog = dialogs.show_crash(window, "Fatal Python error: Aborted")
    assert dialog.findChild(QPlainTextEdit, "details").toPlainText() == (
        "Fatal Python error: Aborted\n"
    )
    click(qtbot, dialog, "copyButton")
    assert QGuiApplication.clipboard().text() == "Fatal Python error: Aborted\n"
    click(qtbot, dialog, "closeButton")


def test_a_bug_that_repeats_itself_opens_one_dialog(qtbot: QtBot, window: QWidget) -> None:
    first = dialogs.show_bug(window, failure(), "")
    assert dialogs.show_bug(window, failure(), "") is first
    click(qtbot, first, "closeButton")
    second = dialogs.show_bug(window, failure(), "")
    assert second is not first
    click(qtbot, second, "closeButton")


def test_a_dialog_goes_with_its_window(qtbot: QtBot) -> None:
    window = QWidget()
    dialogs.show_bug(window, failure(), "")
    window.deleteLater()
    qtbot.waitUntil(lambda: not dialogs.open_dialogs)
    again = dialogs.show_bug(None, failure(), "")
    assert again.isVisible()
    click(qtbot, again, "closeButton")


def test_a_dialog_without_a_parent_stays(qtbot: QtBot) -> None:
    dialogs.show_error(None, AppError("Nothing to see."))
    (dialog,) = dialogs.open_dialogs
    assert dialog.isVisible()
    assert dialog.windowHandle() in QGuiApplication.topLevelWindows()
    assert dialog.windowTitle() == "Kernelscope"
    dialog.accept()
    assert not dialogs.open_dialogs


def test_saving_the_details(qtbot: QtBot, window: QWidget, tmp_path: Path) -> None:
    dialog = dialogs.show_bug(window, failure(), "")
    click(qtbot, dialog, "saveButton")
    chooser = dialog.findChild(QFileDialog)
    assert chooser is not None
    assert chooser.isVisible()
    assert chooser.selectedFiles()[0].endswith("kernelscope-bug.txt")
    choose_files(chooser, tmp_path / "bug.txt")
    assert "ValueError: boo" in (tmp_path / "bug.txt").read_text(encoding="utf-8")
    click(qtbot, dialog, "closeButton")


def test_a_text_is_saved_beside_the_last_file(window: QWidget, tmp_path: Path) -> None:
    """Plots and tables went to the folder of the sources, where the program is started."""
    chosen: list[Path] = []
    first = dialogs.choose_text_to_save(window, "Save", "one.txt", chosen.append)
    first.setDirectory(str(tmp_path))
    first.selectFile("one.txt")
    first.accept()
    assert chosen == [tmp_path / "one.txt"]
    second = dialogs.choose_text_to_save(window, "Save", "two.txt", chosen.append)
    assert Path(second.directory().absolutePath()) == tmp_path
    assert [Path(each).name for each in second.selectedFiles()] == ["two.txt"]
    second.reject()


def test_a_text_that_cannot_be_saved_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "x.txt"
    with pytest.raises(AppError, match=r"x\.txt"):
        dialogs.write_text(path, "x")


def test_a_full_disk_leaves_the_old_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.txt"
    path.write_text("old")

    def fail(target: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("kernelscope.base.atomic.replace", fail)
    with pytest.raises(AppError, match=r"x\.txt: the disk is full"):
        dialogs.write_text(path, "new")
    assert path.read_text() == "old"


def test_a_text_replaces_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "žluťoučký.txt"
    path.write_text("old and longer")
    dialogs.write_text(path, "nové")
    assert path.read_text(encoding="utf-8") == "nové"
    assert list(tmp_path.iterdir()) == [path]
