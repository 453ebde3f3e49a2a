"""Several volumes opened together: which fit, in which order, and nothing dropped in silence."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDialog, QLabel, QPushButton
from pytestqt.qtbot import QtBot

from kernelscope.base.errors import NotANumber
from kernelscope.gui.model.volume_files import FoundFile, misfit, read_file, read_together
from kernelscope.gui.tools.file_dialogs import TogetherDialog
from kernelscope.gui.widgets.messages import ErrorDialog, NoticeDialog
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.scan import MAX_COMPONENTS
from kernelscope.images.volume import Volume
from tests.files.test_volumes_dicom import pixels
from tests.files.test_volumes_dicom import write as write_slice
from tests.gui.helpers import click, dialog, wait_until
from tests.gui.test_volume_page import titles, voxels, write


def volume(name: str, seed: int = 0, *, less: int = 0) -> Volume:
    return Volume.from_array(voxels(seed)[less:].copy(), name, path=Path(f"/{name}"))


def found(*volumes: Volume) -> list[FoundFile]:
    return [FoundFile(Path(f"/{each.title}"), each) for each in volumes]


def button(dialog: QDialog, name: str) -> QPushButton:
    found = dialog.findChild(QPushButton, name)
    assert found is not None
    return found


@pytest.fixture
def make(qtbot: QtBot):
    def made(*each: FoundFile) -> TogetherDialog:
        dialog = TogetherDialog(each)
        qtbot.addWidget(dialog)
        dialog.show()
        return dialog

    return made


def test_files_of_a_microscope_are_no_heads(make) -> None:
    for microscope in (False, True):
        each = [replace(volume(name), microscope=microscope) for name in ("a.tif", "b.tif")]
        words = " ".join(label.text() for label in make(*found(*each)).findChildren(QLabel))
        assert "Those of one object" in words
        assert ("of a head" in words) is not microscope


# --- reading ---


def test_files_without_a_volume_of_their_own_say_why(tmp_path: Path) -> None:
    first = write(tmp_path / "a.nii", voxels())
    copy = write(tmp_path / "b.nii", voxels())
    several = write(tmp_path / "several.nii", np.stack([voxels(1), voxels(2)]))
    missing = tmp_path / "missing.nii"
    other = write(tmp_path / "c.nii", voxels(3))
    read = read_together([first, copy, several, missing, other])
    assert [each.volume is not None for each in read] == [True, False, True, False, True]
    assert [each.path for each in read] == [first, copy, several, missing, other]
    assert read[1].problem == "It holds the same voxels as a.nii."
    assert [each.series.count if each.series else 1 for each in read] == [1, 1, 2, 1, 1]
    assert read[3].problem.startswith("the file does not exist."), "it stands behind the name"


def test_the_same_voxels_of_another_size_are_no_copy(tmp_path: Path) -> None:
    first = write(tmp_path / "a.nii", voxels())
    other = write(tmp_path / "b.nii", voxels(), np.diag([1.0, 1.5, 2.5, 1.0]))
    assert [each.problem for each in read_together([first, other])] == ["", ""]


def test_a_dicom_series_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(
        "kernelscope.gui.model.volume_files.read_file",
        lambda path, nan: calls.append(path) or read_file(path, nan=nan),
    )
    (tmp_path / "series").mkdir()
    files = [tmp_path / "series" / f"{n}.dcm" for n in range(3)]
    for number, file in enumerate(files):
        write_slice(file, pixels(number), number)
    read = read_together(files)
    assert calls == [files[0]]
    assert read[0].volume is not None
    assert read[0].volume.depth == len(files)
    assert {each.problem for each in read[1:]} == {
        f"It belongs to the same series as {files[0].name}."
    }
    shutil.copytree(tmp_path / "series", tmp_path / "again")
    read_together([files[0], tmp_path / "again" / files[0].name])
    assert len(calls) == 3, "another folder may hold other slices"


def test_nan_is_asked_for_all(tmp_path: Path) -> None:
    holes = voxels().astype(np.float32)
    holes[0, 0, 0] = np.nan
    paths = [write(tmp_path / "a.nii", holes), write(tmp_path / "b.nii", 2 * holes)]
    with pytest.raises(NotANumber):
        read_together(paths)
    read = read_together(paths, nan=7.0)
    assert [each.volume.voxels[0, 0, 0] for each in read if each.volume] == [7, 7]


def test_misfits_name_sizes() -> None:
    text = misfit(volume("a.nii"), volume("b.nii", less=1))
    assert text == "a.nii and b.nii differ in size: 8×9×6 and 8×9×5."
    assert misfit(volume("a.nii"), volume("b.nii", 1)) == ""


# --- the dialog ---


def test_those_that_fit_the_first_are_checked(make) -> None:
    names = [volume(f"{n}.nii", n, less=n == 1) for n in range(6)]
    made = make(*found(*names), FoundFile(Path("/x.nii"), None, "It is damaged."))
    assert [each.title for each in made.chosen] == ["0.nii", "2.nii", "3.nii", "4.nii"]
    assert len(made.chosen) == MAX_COMPONENTS
    text = made.list.item(1).text()
    assert "differ in size: 8×9×6 and 8×9×5" in text
    assert made.list.item(6).text() == "x.nii\nIt is damaged."
    assert not made.list.item(6).flags() & Qt.ItemFlag.ItemIsEnabled
    assert "4 checked volumes fit together" in made.state.text()
    made.list.item(5).setCheckState(Qt.CheckState.Checked)
    assert "5 are checked" in made.state.text()
    assert not button(made, "openTogether").isEnabled()
    for row in (2, 5):
        made.list.item(row).setCheckState(Qt.CheckState.Unchecked)
    assert button(made, "openTogether").isEnabled()
    made.list.item(1).setCheckState(Qt.CheckState.Checked)
    assert made.state.text().startswith("Uncheck 1.nii, ")
    assert not button(made, "openTogether").isEnabled()


def test_the_first_checked_one_decides_on_the_size(make) -> None:
    made = make(*found(volume("odd.nii", less=1), volume("a.nii", 1), volume("b.nii", 2)))
    assert [each.title for each in made.chosen] == ["odd.nii"]
    assert not button(made, "openTogether").isEnabled()
    assert "Check two or more" in made.state.text()
    made.list.item(0).setCheckState(Qt.CheckState.Unchecked)
    made.list.item(1).setCheckState(Qt.CheckState.Checked)
    assert "⚠" in made.list.item(0).text()
    assert "⚠" not in made.list.item(2).text()


def test_the_order_is_changed_by_buttons_and_keys(make, qtbot: QtBot) -> None:
    made = make(*found(*(volume(f"{n}.nii", n) for n in range(3))))
    opened: list[list[Volume]] = []
    made.together.connect(opened.append)
    assert not button(made, "moveUp").isEnabled()
    click(qtbot, made, "moveDown")
    assert [each.title for each in made.chosen] == ["1.nii", "0.nii", "2.nii"]
    assert made.list.currentRow() == 1
    qtbot.keyClick(made.list, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    assert not button(made, "moveDown").isEnabled()
    qtbot.keyClick(made.list, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    qtbot.keyClick(made, Qt.Key.Key_Return)
    assert [[each.title for each in chosen] for chosen in opened] == [["1.nii", "2.nii", "0.nii"]]
    assert not made.isVisible()


def test_one_or_each_can_be_opened_alone(make, qtbot: QtBot) -> None:
    for name, titles_ in (("openOnly", ["1.nii"]), ("openEach", ["0.nii", "1.nii"])):
        made = make(*found(volume("0.nii"), volume("1.nii", 1, less=2)))
        opened: list[list[Volume]] = []
        made.each.connect(opened.append)
        made.list.setCurrentRow(1)
        click(qtbot, made, name)
        assert [[each.title for each in chosen] for chosen in opened] == [titles_]


# --- the window ---


def test_volumes_of_other_sizes_have_a_tile_each(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    paths = [write(tmp_path / f"{n}.nii", voxels(n)[n:]) for n in range(3)]
    window.file_dialogs.open_all(paths)
    asked = dialog(qtbot, window, TogetherDialog)
    assert "differ in size" in asked.list.item(2).text()
    click(qtbot, asked, "openEach")
    qtbot.waitUntil(lambda: titles(window) == ["2.nii"])
    assert set(window.settings.recent_files) == set(paths)
    strip = window.film_strip
    names = [f"{n}.nii" for n in range(3)]
    qtbot.waitUntil(lambda: [strip.item(n).text() for n in range(strip.count())] == names)
    for row in (1, 0):
        strip.wanted.emit(strip.item(row).data(Qt.ItemDataRole.UserRole))
        wait_until(qtbot, lambda row=row: titles(window) == [names[row]])
        assert window.volumes.canvas.input.shown is window.session.volumes.part
        assert window.session.volumes.history.undo_name == ""


def test_nothing_opens_when_the_question_is_cancelled(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    paths = [write(tmp_path / f"{n}.nii", voxels(n)) for n in range(2)]
    window.file_dialogs.open_all(paths)
    dialog(qtbot, window, TogetherDialog).reject()
    assert titles(window) == []
    assert window.settings.recent_files == []


def test_files_of_several_volumes_have_a_tile_each(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    for n in range(2):
        write(tmp_path / f"{n}.nii", np.stack([voxels(2 * n), voxels(2 * n + 1)]))
    window.file_dialogs.open_all([tmp_path / "0.nii", tmp_path / "1.nii"])
    strip, names = window.film_strip, ["0.nii", "1.nii"]
    wait_until(qtbot, lambda: [strip.item(n).text() for n in range(strip.count())] == names)
    for row in (1, 0):
        strip.wanted.emit(strip.item(row).data(Qt.ItemDataRole.UserRole))
        wait_until(
            qtbot,
            lambda row=row: (
                window.session.volumes.source is not None
                and window.session.volumes.part.path == tmp_path / names[row]
            ),
        )
        window.findChild(QAction, "nextVolume").trigger()
        wait_until(
            qtbot, lambda row=row: (window.session.volumes.part.voxels == voxels(2 * row + 1)).all()
        )


def test_files_that_add_nothing_are_named(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    good = write(tmp_path / "good.nii", voxels())
    copy = write(tmp_path / "copy.nii", voxels())
    window.file_dialogs.open_volumes([good, copy])
    box = dialog(qtbot, window, NoticeDialog)
    assert box.text() == "1 file adds nothing to the volume that is open."
    assert "copy.nii" in box.informativeText()
    box.reject()
    qtbot.waitUntil(lambda: titles(window) == ["good.nii"])
    window.file_dialogs.open_volumes([tmp_path / "lost.nii", tmp_path / "missing.nii"])
    error = dialog(qtbot, window, ErrorDialog)
    assert "lost.nii" in error.informativeText()
    assert "missing.nii" in error.informativeText()
    error.reject()
