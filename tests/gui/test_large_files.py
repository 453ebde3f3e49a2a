"""Files that are too large to be opened as a whole: a lower resolution is, and blocks filter it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtWidgets import QFileDialog, QLabel, QLineEdit
from pytestqt.qtbot import QtBot

from kernelscope.big.lazy import viewing
from kernelscope.files import formats
from kernelscope.gui.model.regions import Shape
from kernelscope.gui.model.volume_files import read_file
from kernelscope.gui.widgets.messages import ErrorDialog
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.image import Image
from tests.gui.helpers import FakeCpu, child, dialog, settle, shown
from tests.lazy.test_viewing import write


def test_the_command_for_a_large_file(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    with (tmp_path / "huge.tif").open("wb") as handle:
        file = tifffile.FileHandle(handle, name="huge.tif")
        with tifffile.TiffWriter(file, bigtiff=True) as writer:
            writer.write(None, shape=(40, 9000, 9000), dtype=np.uint8, photometric="minisblack")
    (tmp_path / "scan.zarr").mkdir()
    (tmp_path / "small.tif").write_bytes(b"II*\0")
    for name in ("huge.tif", "scan.zarr", "small.tif"):
        window.file_dialogs.open(tmp_path / name)
        box = dialog(qtbot, window, ErrorDialog)
        text = " ".join(label.text() for label in box.findChildren(QLabel))
        command = f"kernelscope apply median {name} OUTPUT.tif --memory 2G"
        assert (command in text) == (name == "huge.tif"), text
        box.reject()


@pytest.mark.parametrize("name", ["slide.ome.zarr", "slide.tif"])
def test_a_large_picture_is_shown_reduced_and_filtered_whole(
    qtbot: QtBot,
    window: MainWindow,
    cpu: FakeCpu,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    path, whole = tmp_path / name, np.arange(60 * 40, dtype=np.uint8).reshape(60, 40)
    if name.endswith("zarr"):
        write(path, whole, "yx", 2)
    else:
        tifffile.imwrite(path, whole, photometric="minisblack")
    for module in (formats, viewing):
        monkeypatch.setattr(module, "MAX_PIXELS", 1000)
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(f"{path}/" if path.is_dir() else str(path))])
    assert window.file_dialogs.take(mime)
    title = f"{name}, level 2 of 2" if path.is_dir() else f"{name}, reduced 2×"
    qtbot.waitUntil(lambda: shown(window) == title)
    settle(qtbot, window)
    assert "20×30 of 40×60 pixels" in window.statusBar().currentMessage()
    assert window.settings.recent_files[0] == path

    cpu.requests.clear()
    window.actions_["filterBlocks"].trigger()
    box = dialog(qtbot, window, QFileDialog)
    assert Path(box.directory().path()) == tmp_path
    target = Path(box.selectedFiles()[0])
    assert (
        target.name == f"slide-{window.session.filter_id}{'.ome.zarr' if path.is_dir() else '.tif'}"
    )
    box.fileSelected.emit(str(target))
    box.reject()
    qtbot.waitUntil(target.exists)
    settle(qtbot, window)
    assert f"Wrote {target}: 40×60, in " in window.statusBar().currentMessage()

    window.measuring.regions.add(Shape.RECTANGLE, ((5, 10), (15, 30)))
    window.actions_["openRegion"].trigger()
    qtbot.waitUntil(lambda: shown(window) == f"{name}, 20×40 from 10, 20")
    settle(qtbot, window)
    part = window.session.pictures.source
    assert part is not None
    np.testing.assert_array_equal(part.pixels.squeeze(), whole[20:60, 10:30])
    assert part.path is None
    window.measuring.regions.add(Shape.RECTANGLE, ((1, 2), (3, 4)))
    window.actions_["openRegion"].trigger()
    assert "Only pictures that are shown at a lower" in window.statusBar().currentMessage()
    monkeypatch.undo()
    made, _ = read_file(target)
    assert isinstance(made, Image)
    np.testing.assert_array_equal(made.pixels.squeeze(), 255 - whole, "the test's filter inverts")
    assert window.settings.recent_files[0] == target


def test_a_document_of_ome_zarr_wakes_up(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    for number in range(2):
        write(tmp_path / f"{number}.zarr", np.full((20, 30), number, np.uint8), "yx", 1)
    window.open_pictures.open_all([tmp_path / "0.zarr"])
    qtbot.waitUntil(lambda: shown(window) == "0.zarr")
    write(tmp_path / "v.zarr", np.zeros((3, 20, 30), np.uint8), "zyx", 1)
    window.file_dialogs.open(tmp_path / "v.zarr")
    qtbot.waitUntil(lambda: window.session.volumes.source is not None)
    first = next(each for each in window.open_pictures.documents if each.title == "0.zarr")
    settle(qtbot, window)
    first.sleep()
    window.open_pictures.show(first)
    qtbot.waitUntil(lambda: not first.asleep)
    settle(qtbot, window)
    assert window.session.pictures.source is not None
    assert window.session.pictures.source.path == tmp_path / "0.zarr"


@pytest.mark.parametrize("typed", [True, False])
def test_an_ome_zarr_is_chosen_as_a_file_in_the_dialog(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, typed: bool
) -> None:
    path = tmp_path / "cells.ome.zarr"
    write(path, np.zeros((4, 6, 5), np.uint16), "zyx", 1)
    window.actions_["open"].trigger()
    chooser = dialog(qtbot, window, QFileDialog)
    name = child(chooser, QLineEdit, "fileNameEdit")
    if typed:
        name.setText(str(path))
        qtbot.keyClick(name, Qt.Key.Key_Return)
    else:
        chooser.directoryEntered.emit(str(path))  # by a double click
    qtbot.waitUntil(lambda: window.session.volumes.source is not None)
    assert window.session.volumes.part.path == path
    qtbot.waitUntil(lambda: not window.findChildren(QFileDialog))


def test_the_dialog_goes_into_other_folders(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    window.actions_["open"].trigger()
    chooser = dialog(qtbot, window, QFileDialog)
    child(chooser, QLineEdit, "fileNameEdit").setText(str(tmp_path))
    chooser.accept()
    assert Path(chooser.directory().absolutePath()) == tmp_path
    assert chooser.isVisible()
    chooser.reject()
