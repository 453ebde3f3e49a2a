"""Files dropped together, and pasted ones: none is left out without a message."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt
from PySide6.QtGui import QDropEvent, QGuiApplication, QImage
from PySide6.QtWidgets import QFileDialog, QLabel
from pytestqt.qtbot import QtBot

from kernelscope.gui.tools.file_dialogs import TogetherDialog, folder_for
from kernelscope.gui.widgets.messages import ErrorDialog, NoticeDialog
from kernelscope.gui.window.main_window import MainWindow
from tests.gui.helpers import (
    click,
    dialog,
    dropping,
    entering,
    files_of,
    press,
    run,
    shown,
    write_picture,
)
from tests.gui.test_volume_page import titles, voxels, write

pytestmark = pytest.mark.usefixtures("compiled_judging")


def drop(window: MainWindow, paths: list[Path]) -> QDropEvent:
    """Drop files as a file manager does that would rather move them."""
    mime, actions = files_of(paths), Qt.DropAction.CopyAction | Qt.DropAction.MoveAction
    enter = entering(QPointF(50, 50), actions, mime)
    enter.setDropAction(Qt.DropAction.MoveAction)
    window.dragEnterEvent(enter)
    assert enter.isAccepted()
    assert enter.dropAction() is Qt.DropAction.CopyAction
    event = dropping(mime, actions)
    event.setDropAction(Qt.DropAction.MoveAction)
    window.dropEvent(event)
    assert event.isAccepted()
    assert event.dropAction() is Qt.DropAction.CopyAction
    return event


def said(box: NoticeDialog | ErrorDialog) -> str:
    return f"{box.text()} {box.informativeText()}"


@pytest.mark.slow
def test_a_dropped_picture_is_saved_beside_it_at_first(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    place, later = tmp_path / "pictures", tmp_path / "saved"
    place.mkdir()
    later.mkdir()
    drop(window, [write_picture(place / "ramp.png")])
    qtbot.waitUntil(lambda: shown(window) == "ramp.png")
    run(qtbot, window)
    press(qtbot, window, "Ctrl+S")
    chooser = dialog(qtbot, window, QFileDialog)
    assert Path(chooser.directory().absolutePath()) == place
    chooser.reject()
    assert folder_for(window.settings, "open") == str(place)
    window.settings.set_folder("save", later)
    assert folder_for(window.settings, "save") == str(later)


@pytest.mark.slow
@pytest.mark.smoke
def test_volumes_dropped_together_are_the_components_of_one_scan(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    paths = [
        write(tmp_path / f"{name}.nii.gz", voxels(seed))
        for seed, name in enumerate(("T1", "T2", "PD"))
    ]
    drop(window, paths)
    click(qtbot, dialog(qtbot, window, TogetherDialog), "openTogether")
    qtbot.waitUntil(lambda: titles(window) == ["T1.nii.gz", "T2.nii.gz", "PD.nii.gz"])
    assert set(window.settings.recent_files) == set(paths)
    assert not [box for box in window.findChildren(NoticeDialog) if box.isVisible()]
    press(qtbot, window, "F5")
    qtbot.waitUntil(lambda: window.session.volumes.result is not None)
    assert len(window.session.volumes.result.scan.volumes) == 3


def test_too_many_files_on_the_list_of_components_are_refused_at_once(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    volumes = [write(tmp_path / f"{n}.nii", voxels(n)) for n in range(5)]
    window.file_dialogs.open(volumes[0])
    qtbot.waitUntil(lambda: titles(window) == ["0.nii"])
    window.scans.components.add_wanted.emit(volumes[1:] + volumes[1:])
    box = dialog(qtbot, window, ErrorDialog)
    assert "8 volumes are too many. At most 4 are filtered together: add 3 or fewer." in said(box)
    box.reject()
    assert titles(window) == ["0.nii"]


# --- the clipboard ---


def test_pasting_nothing_says_so(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Empty:
        def mimeData(self) -> None:  # noqa: N802
            return None

    def paste() -> str:
        window.show_status("")
        press(qtbot, window, "Ctrl+V")
        return window.statusBar().currentMessage()

    clipboard, none = QGuiApplication.clipboard(), QMimeData()
    none.setData("application/x-qt-image", b"")
    none.setImageData(QImage())
    clipboard.clear()
    said = [paste()]
    for mime in (QMimeData(), none):
        clipboard.setMimeData(mime)
        said.append(paste())
    monkeypatch.setattr(QGuiApplication, "clipboard", Empty)
    said.append(paste())
    assert said == 4 * ["There is no picture on the clipboard."]


def test_pasting_nothing_into_the_mask_says_so(qtbot: QtBot, window: MainWindow) -> None:
    QGuiApplication.clipboard().clear()
    window.session.set_filter("mask")
    before = window.session.require()
    window.panel.form.editors["mask"].paste()
    box = dialog(qtbot, window, ErrorDialog)
    assert any("empty" in label.text() for label in box.findChildren(QLabel))
    box.reject()
    assert window.session.require() == before
