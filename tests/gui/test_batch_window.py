"""File > Batch: the queue, the settings, pausing, stopping and closing."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image as PillowImage
from PIL import PngImagePlugin
from pydicom.uid import generate_uid
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QMessageBox,
    QPushButton,
)
from pytestqt.qtbot import QtBot

from kernelscope.base.errors import AppError
from kernelscope.big.batch.item import FileState, Pause
from kernelscope.engine.costs import Costs
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.files import read_image, write_image, write_recipe
from kernelscope.gui.model.batch_run import REPLACE
from kernelscope.gui.tools.batch_window import BatchWindow, Thumbnails
from kernelscope.gui.tools.preferences import JPEG_QUALITY
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.controls import ChoiceBox
from kernelscope.gui.widgets.messages import ErrorDialog
from kernelscope.gui.widgets.parts import ElidedLabel
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.schema.devices import Device
from tests.batch.test_series import series
from tests.gui.helpers import (
    FakeCpu,
    answer,
    child,
    choose_files,
    dialog,
    dropping,
    entering,
    files_of,
    load,
    settle,
    wait_until,
    write_picture,
)

RECIPE = Recipe((Step.create("mean", {}),))
COUNT = 6


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for number in range(COUNT):
        write_picture(tmp_path / f"in/{number}.png", number)
    return tmp_path / "in"


Opener = Callable[..., BatchWindow]


@pytest.fixture
def open_batch(qtbot: QtBot, cpu: FakeCpu, store: Path) -> Iterator[Opener]:
    background = Background()
    windows: list[BatchWindow] = []

    def open_(steps: Callable[[], Recipe] = lambda: RECIPE) -> BatchWindow:
        made = BatchWindow(background, {"cpu": cpu}, Settings(store), steps, Costs(), tuple)
        windows.append(made)
        made.show()
        qtbot.waitExposed(made)
        return made

    yield open_
    cpu.go.set()
    for made in windows:
        made.cancel()
        wait_until(qtbot, lambda made=made: not made.running)
        made.leave()
        made.close()
        made.deleteLater()
    background.close()


@pytest.fixture
def batch(open_batch: Opener) -> BatchWindow:
    return open_batch()


def press(window: BatchWindow, name: str) -> None:
    QTest.mouseClick(child(window, QPushButton, name), Qt.MouseButton.LeftButton)


def fill(qtbot: QtBot, window: BatchWindow, *paths: Path, count: int = COUNT) -> None:
    window.add(paths)
    qtbot.waitUntil(lambda: len(window.queue) == count)


def run(qtbot: QtBot, window: BatchWindow) -> None:
    press(window, "batchStart")
    qtbot.waitUntil(lambda: not window.running)


def state(window: BatchWindow) -> str:
    return child(window, QLabel, "batchState").text()


def states(window: BatchWindow) -> list[FileState]:
    return [row.state for row in window.queue.rows]


def shown(window: BatchWindow) -> list[str]:
    model = window.table.model()
    rows = (row for row in range(model.rowCount()) if not window.table.isRowHidden(row))
    return [model.index(row, 0).data() for row in rows]


def has_thumbnail(qtbot: QtBot, batch: BatchWindow, path: Path) -> bool:
    batch._thumbnails.of(path)
    qtbot.waitUntil(lambda: not batch._thumbnails._busy)
    made = batch._thumbnails.of(path).toImage()
    return bool(made != batch._thumbnails.empty.toImage())


def test_files_of_a_folder_are_filtered_into_the_folder_next_to_it(
    qtbot: QtBot, batch: BatchWindow, folder: Path
) -> None:
    fill(qtbot, batch, folder)
    assert child(batch, QLineEdit, "batchOut").text() == f"{folder}-filtered"
    assert state(batch) == f"{COUNT} files"
    run(qtbot, batch)
    assert set(states(batch)) == {FileState.DONE}
    assert state(batch).startswith(f"{COUNT} of {COUNT} files, took ")
    for number in range(COUNT):
        made = read_image(folder.with_name("in-filtered") / f"{number}.png").pixels
        source = read_image(folder / f"{number}.png").pixels
        assert (made == 255 - source).all()


def test_a_bad_file_shows_its_reason_and_the_others_go_on(
    qtbot: QtBot, batch: BatchWindow, folder: Path
) -> None:
    (folder / "2.png").write_bytes(b"no picture")
    fill(qtbot, batch, folder)
    assert not batch.only_failed.isVisible()
    run(qtbot, batch)
    assert "1 failed" in state(batch)
    assert states(batch).count(FileState.DONE) == COUNT - 1
    batch.only_failed.click()
    assert shown(batch) == ["2.png"]
    model = batch.table.model()
    assert model.index(2, 2).data() == "Failed"
    assert "this is no image" in model.index(2, 3).data()
    spoken = model.index(2, 0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken.startswith("2.png, failed, this is no image")
    batch.table.selectAll()
    assert batch.table.selected() == [2]
    batch.only_failed.click()
    assert len(shown(batch)) == COUNT
    batch.only_failed.click()
    batch.remove(batch.table.selected() or [2])
    assert len(shown(batch)) == COUNT - 1, "without failures, all are shown"


def test_a_file_that_was_cut_off_is_marked(qtbot: QtBot, batch: BatchWindow, folder: Path) -> None:
    path = folder / "2.png"
    noise = np.random.default_rng(1).integers(0, 256, (99, 99), np.uint8)
    PillowImage.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[:5000])
    fill(qtbot, batch, folder)
    run(qtbot, batch)
    assert "1 cut off" in state(batch)
    model = batch.table.model()
    assert [model.index(row, 2).data() for row in (1, 2)] == ["Done", "Done, cut off"]
    done, cut_off = (model.index(row, 2).data(Qt.ItemDataRole.ForegroundRole) for row in (1, 2))
    assert cut_off.color() == theme.warning_text(batch.palette()) != done.color()


def test_a_pause_holds_the_batch_and_resume_goes_on(
    qtbot: QtBot,
    batch: BatchWindow,
    cpu: FakeCpu,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, wait = threading.Event(), Pause.wait
    monkeypatch.setattr(Pause, "wait", lambda *args: (held.set(), wait(*args)))
    cpu.go.clear()
    fill(qtbot, batch, folder)
    press(batch, "batchStart")
    qtbot.waitUntil(lambda: FileState.FILTERING in states(batch))
    button = child(batch, QPushButton, "batchStart")
    assert button.text() == "Pau&se"
    button.click()
    assert state(batch).endswith("paused")
    cpu.go.set()
    qtbot.waitUntil(lambda: batch.queue.ended == 1)
    qtbot.waitUntil(held.is_set)
    assert batch.queue.ended == 1
    assert button.text() == "Re&sume"
    button.click()
    qtbot.waitUntil(lambda: not batch.running)
    assert set(states(batch)) == {FileState.DONE}


@pytest.mark.parametrize("replaces", [False, True])
def test_a_cancelled_batch_is_resumed_without_doing_anything_twice(
    qtbot: QtBot, batch: BatchWindow, cpu: FakeCpu, folder: Path, replaces: bool
) -> None:
    fill(qtbot, batch, folder)
    batch.form.editors["batchThere"].setCurrentIndex(int(replaces))
    cpu.go.clear()
    press(batch, "batchStart")
    cpu.one.release(2)
    qtbot.waitUntil(lambda: len(cpu.requests) == 3)
    press(batch, "batchCancel")
    qtbot.waitUntil(lambda: not batch.running)
    assert states(batch) == [FileState.DONE] * 2 + [FileState.WAITING] * (COUNT - 2)
    assert state(batch) == f"2 of {COUNT} files, stopped"
    assert child(batch, QPushButton, "batchStart").text() == "Re&sume"
    cpu.go.set()
    cpu.requests.clear()
    run(qtbot, batch)
    assert states(batch) == [FileState.SKIPPED] * 2 + [FileState.DONE] * (COUNT - 2)
    assert len(cpu.requests) == COUNT - 2


def test_results_are_replaced_only_where_that_is_chosen(
    qtbot: QtBot, batch: BatchWindow, folder: Path
) -> None:
    out = folder.with_name("in-filtered")
    out.mkdir()
    (out / "1.png").write_bytes(b"mine")
    fill(qtbot, batch, folder)
    run(qtbot, batch)
    assert (out / "1.png").read_bytes() == b"mine"
    assert f"Set Existing results to “{REPLACE}”" in batch.queue.rows[1].remark
    batch.form.editors["batchThere"].setCurrentIndex(1)
    run(qtbot, batch)
    assert set(states(batch)) == {FileState.DONE}
    assert (out / "1.png").read_bytes() != b"mine"


def test_a_folder_with_the_results_of_another_recipe_is_not_touched(
    qtbot: QtBot, batch: BatchWindow, folder: Path, tmp_path: Path
) -> None:
    fill(qtbot, batch, folder)
    run(qtbot, batch)
    path = tmp_path / "other.recipe.json"
    write_recipe(Recipe((Step.create("median", {"size": 5}),)), path)
    press(batch, "batchOpenRecipe")
    choose_files(dialog(qtbot, batch, QFileDialog), path)
    assert batch.form.description.full_text == "Median: 5×5"
    run(qtbot, batch)
    box = dialog(qtbot, batch, ErrorDialog)
    assert "belongs to another recipe" in box.text()
    assert f"set Existing results to “{REPLACE}”" in box.informativeText()
    box.close()
    assert set(states(batch)) == {FileState.WAITING}
    batch.form.editors["batchThere"].setCurrentIndex(1)
    run(qtbot, batch)
    assert set(states(batch)) == {FileState.DONE}


def test_each_format_is_offered_once_and_the_quality_where_results_may_be_jpegs(
    batch: BatchWindow,
) -> None:
    box = child(batch, ChoiceBox, "batchFormat")
    offered = [box.itemText(number) for number in range(box.count())]
    assert [each for each in offered if ".ome.tif" in each] == ["OME-TIFF (.ome.tif)"]
    for suffix, shown in (("", True), (".tif", False), (".jpg", True)):
        batch.form.editors["batchFormat"].set_value(suffix)
        assert batch.form.editors["batchQuality"].isVisible() == shown
        assert batch.form.labels["batchQuality"].isVisible() == shown


def test_the_settings_come_back(qtbot: QtBot, open_batch: Opener, tmp_path: Path) -> None:
    first = open_batch()
    field = child(first, QLineEdit, "batchOut")
    field.setText(str(tmp_path / "there"))
    QTest.keyClick(field, Qt.Key.Key_Return)
    first.form.editors["batchFormat"].set_value(".tif")
    first.form.editors["batchDevice"].set_value(Device.CPU)
    first.form.editors["batchLossy"].click()
    first.form.editors["batchQuality"].setValue(70)
    again = open_batch()
    assert again.form.settings() == first.form.settings()
    assert (again.form.folder, again.form.suffix) == (tmp_path / "there", ".tif")
    assert again.form.device is Device.CPU
    assert again.form.editors["batchLossy"].isChecked()


def test_an_output_folder_that_is_still_typed_counts(
    qtbot: QtBot, batch: BatchWindow, folder: Path, tmp_path: Path
) -> None:
    fill(qtbot, batch, folder)
    child(batch, QLineEdit, "batchOut").setText(str(tmp_path / "typed"))
    batch.press_start()  # by its access key, which leaves the focus in the field
    qtbot.waitUntil(lambda: batch.queue.ended == COUNT and not batch.running)
    assert len(list((tmp_path / "typed").glob("*.png"))) == COUNT


def test_a_typed_folder_shows_where_it_is(batch: BatchWindow, here: Path) -> None:
    field = child(batch, QLineEdit, "batchOut")
    field.setText(" clean ")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert field.text() == str(here / "clean")
    assert batch.form.folder == here / "clean"


def test_files_are_removed_by_the_keyboard(qtbot: QtBot, batch: BatchWindow, folder: Path) -> None:
    fill(qtbot, batch, folder)
    batch.table.setFocus()
    batch.table.selectRow(1)
    QTest.keyClick(batch.table, Qt.Key.Key_Delete)
    assert shown(batch) == ["0.png", "2.png", "3.png", "4.png", "5.png"]
    batch.form.editors["batchFormat"].set_value(".tif")
    batch.form.places_changed.emit()
    qtbot.waitUntil(lambda: batch.queue.rows[0].item.target.suffix == ".tif")
    assert "1.png" not in shown(batch)
    press(batch, "batchClear")
    assert shown(batch) == []
    assert not child(batch, QPushButton, "batchStart").isEnabled()


def drop(window: BatchWindow, *paths: Path) -> bool:
    """Drop files on the window; return whether it takes them."""
    mime = files_of(paths)
    enter = entering(QPointF(50, 50), Qt.DropAction.CopyAction, mime)
    enter.ignore()
    window.dragEnterEvent(enter)
    if enter.isAccepted():
        window.dropEvent(dropping(mime))
    return enter.isAccepted()


def test_files_are_dropped(qtbot: QtBot, batch: BatchWindow, cpu: FakeCpu, folder: Path) -> None:
    assert drop(batch, folder / "0.png", folder / "3.png")
    qtbot.waitUntil(lambda: shown(batch) == ["0.png", "3.png"])
    cpu.go.clear()
    press(batch, "batchStart")
    assert not drop(batch, folder)


def test_a_folder_without_pictures_is_named(
    qtbot: QtBot, batch: BatchWindow, tmp_path: Path
) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "none/a.txt").write_text("a")
    batch.add([tmp_path / "none"])
    note = batch.findChild(QLabel, "batchNote")
    qtbot.waitUntil(lambda: "There is no picture or volume in" in note.full_text)


def test_without_steps_the_reason_is_shown(qtbot: QtBot, open_batch: Opener, folder: Path) -> None:
    def none() -> Recipe:
        raise AppError("No picture is open, so there are no steps.", "Open one.")

    batch = open_batch(none)
    assert "No picture is open" in batch.form.description.full_text
    fill(qtbot, batch, folder)
    press(batch, "batchStart")
    assert not batch.running
    dialog(qtbot, batch, ErrorDialog).close()


def test_a_grey_start_has_its_reason(
    qtbot: QtBot, batch: BatchWindow, cpu: FakeCpu, folder: Path
) -> None:
    start = child(batch, QPushButton, "batchStart")
    assert start.toolTip() == "Filter the files. The queue is empty: add files"
    (folder / "none").mkdir()
    batch.add([folder / "none"])
    qtbot.waitUntil(lambda: "There is no picture or volume in" in start.toolTip())
    batch.clear()
    cpu.go.clear()
    fill(qtbot, batch, folder)
    assert start.toolTip() == "Filter the files"
    press(batch, "batchStart")
    qtbot.waitUntil(cpu.entered.is_set)
    add = child(batch, QPushButton, "batchAdd")
    assert add.toolTip() == "Add pictures and volumes. Not while the batch is on its way"
    cpu.deaf = True
    batch.cancel()
    assert not start.isEnabled()
    assert start.toolTip().endswith("The files that are being written are finished first")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not allow such names")
def test_series_odd_names_and_notices(
    qtbot: QtBot, batch: BatchWindow, folder: Path, tmp_path: Path
) -> None:
    for file in folder.iterdir():
        file.unlink()
    series(folder / "scan", "IM{}".format)
    series(folder / "scan", "T2_{}".format, SeriesInstanceUID=generate_uid(), SeriesNumber=4)
    odd = folder / os.fsdecode(b"<b>\xff\n.png")
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Comment", "scan of 3 May")
    PillowImage.fromarray(np.zeros((8, 8), np.uint8)).save(odd, pnginfo=texts)
    fill(qtbot, batch, folder, count=3)
    assert shown(batch) == ["<b>\\udcff\\n.png", "IM0, 4 slices", "T2_0, 4 slices"]
    run(qtbot, batch)
    assert set(states(batch)) == {FileState.DONE}
    out = tmp_path / "in-filtered"
    assert sorted(file.name for file in (out / "scan").iterdir()) == [
        "3-T1w.nii.gz",
        "4-T1w.nii.gz",
    ]
    assert (out / odd.name).exists()
    model = batch.table.model()
    assert "is saved without texts of the input." in model.index(0, 3).data()
    for column in range(4):
        tip = model.index(0, column).data(Qt.ItemDataRole.ToolTipRole)
        assert "&lt;b&gt;" in tip
        assert "\n" not in tip
    assert "DICOM tags" in model.index(1, 3).data(Qt.ItemDataRole.ToolTipRole)
    qtbot.waitUntil(lambda: not batch._thumbnails._busy)
    assert all(has_thumbnail(qtbot, batch, folder / "scan" / name) for name in ("IM0", "T2_0"))


def test_a_file_of_channels_has_a_thumbnail_also_when_the_window_is_opened_again(
    qtbot: QtBot, batch: BatchWindow, tmp_path: Path
) -> None:
    cells = np.arange(2 * 24 * 24, dtype=np.uint16).reshape(2, 24, 24)
    tifffile.imwrite(
        tmp_path / "a.ome.tif", cells, ome=True, photometric="minisblack", metadata={"axes": "CYX"}
    )
    fill(qtbot, batch, tmp_path / "a.ome.tif", count=1)
    batch.close()
    batch.show_in_front()
    assert has_thumbnail(qtbot, batch, tmp_path / "a.ome.tif")


@pytest.mark.slow
def test_only_files_in_view_get_thumbnails(
    qtbot: QtBot, batch: BatchWindow, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = set[Path]()
    of = Thumbnails.of

    def note(thumbnails: Thumbnails, path: Path) -> Any:
        asked.add(path)
        return of(thumbnails, path)

    monkeypatch.setattr(Thumbnails, "of", note)
    (folder / "many").mkdir()
    for number in range(2000):
        (folder / f"many/{number:04}.png").touch()
    fill(qtbot, batch, folder, count=2000 + COUNT)
    batch.table.viewport().repaint()
    first = batch.table.model()
    assert first.rowCount() == 2000 + COUNT
    assert 0 < len(asked) < 100
    qtbot.waitUntil(lambda: not batch._thumbnails._busy)
    assert has_thumbnail(qtbot, batch, folder / "0.png")
    assert not has_thumbnail(qtbot, batch, folder / "many/0000.png"), "it is empty"


@pytest.mark.parametrize(
    ("own", "chosen", "usual", "shown"),
    [
        (None, 0, 95, "95, or as read if higher"),
        (40, 0, 40, "40, as in Preferences"),
        (None, 60, 60, "60"),
        (40, 60, 60, "60"),
    ],
)
def test_jpegs_have_the_quality_that_is_chosen_that_of_the_preferences_or_95(
    qtbot: QtBot,
    open_batch: Opener,
    store: Path,
    tmp_path: Path,
    own: int | None,
    chosen: int,
    usual: int,
    shown: str,
) -> None:
    """There was no choice, and only a picture that was saved alone had that of the preferences."""
    if own is not None:
        Settings(store).set_text(JPEG_QUALITY, str(own))
    pixels = np.random.default_rng(1).integers(0, 256, (40, 30), np.uint8)
    PillowImage.fromarray(pixels).save(tmp_path / "photo.jpg", quality=70)
    PillowImage.fromarray(pixels).save(tmp_path / "as.jpg", quality=usual)
    batch = open_batch()
    box = batch.form.editors["batchQuality"]
    box.setValue(chosen)
    assert box.text() == shown
    fill(qtbot, batch, tmp_path / "photo.jpg", count=1)
    run(qtbot, batch)
    (row,) = batch.queue.rows
    assert row.state is FileState.DONE
    tables = []
    for path in (row.item.target, tmp_path / "as.jpg"):
        with PillowImage.open(path) as image:
            tables.append(vars(image)["quantization"])
    assert tables[0] == tables[1]


def test_results_that_cannot_be_written_are_named_beside_the_format(
    qtbot: QtBot, batch: BatchWindow, tmp_path: Path
) -> None:
    """The batch began, and each of these files failed in its turn."""
    write_picture(tmp_path / "plain.png", 1)
    for name in ("deep.png", "deeper.tif"):
        write_image(Image.from_array(np.zeros((8, 9), np.uint16)), tmp_path / name)
    fill(
        qtbot,
        batch,
        *(tmp_path / name for name in ("plain.png", "deep.png", "deeper.tif")),
        count=3,
    )
    refusals = child(batch, ElidedLabel, "batchRefusals")
    assert refusals.full_text == ""
    child(batch, ChoiceBox, "batchFormat").setCurrentText("JPEG (.jpg)")
    expected = (
        "2 of 3 files will fail: JPEG cannot keep 16-bit depth. Save it as PNG, OME-TIFF, TIFF, "
        "PGM or PPM to keep everything. Or tick “Allow losses of the format”."
    )
    qtbot.waitUntil(lambda: refusals.full_text == expected)
    run(qtbot, batch)
    assert states(batch) == [FileState.DONE, FileState.FAILED, FileState.FAILED]
    child(batch, QCheckBox, "batchLossy").click()
    qtbot.waitUntil(lambda: refusals.full_text == "")
    run(qtbot, batch)
    assert [each.state_name for each in batch.queue.rows] == ["done before", "done", "done"]


def test_results_of_an_earlier_batch_are_left_out(
    qtbot: QtBot, batch: BatchWindow, folder: Path
) -> None:
    fill(qtbot, batch, folder)
    field = child(batch, QLineEdit, "batchOut")
    field.setText(str(folder / "clean"))
    batch.press_start()
    qtbot.waitUntil(lambda: batch.queue.ended == COUNT and not batch.running)
    field.setText(str(folder.with_name("elsewhere")))
    field.editingFinished.emit()
    qtbot.waitUntil(lambda: "6 files are left out: results of" in batch._note.full_text)
    assert len(batch.queue) == COUNT


# In the main window ----------------------------------------------------------------------


def opened(window: MainWindow) -> BatchWindow:
    """Open the window by its menu and return it."""
    window.findChild(QAction, "batch").trigger()
    batch = window.companions.batch
    assert batch is not None
    return batch


@pytest.mark.smoke
def test_the_menu_opens_it_with_the_steps_of_the_window(
    qtbot: QtBot, window: MainWindow, picture: Path, folder: Path
) -> None:
    load(qtbot, window, picture)
    window.session.set_filter("median")
    batch = opened(window)
    assert batch.form.description.full_text == "Median: 3×3"
    window.session.set_values("median", {"size": 5})
    batch.refresh()
    assert batch.form.description.full_text == "Median: 5×5"
    fill(qtbot, batch, folder)
    run(qtbot, batch)
    assert set(states(batch)) == {FileState.DONE}
    batch.close()


def test_open_files_are_added_at_once(qtbot: QtBot, window: MainWindow, folder: Path) -> None:
    """The photographs of the strip had to be found again in a dialog."""
    batch = opened(window)
    button = batch.findChild(QPushButton, "batchAddOpen")
    assert not button.isVisible(), "nothing is open"
    files = [folder / f"{number}.png" for number in (2, 0)]
    window.open_pictures.open_all([*files, folder / "1.png"])
    qtbot.waitUntil(lambda: len(window.open_pictures.documents) == 3)
    assert button.isVisible(), "without a return to the command that opens the window"
    window.open_pictures.show(list(window.open_pictures.documents)[2])
    window.findChild(QAction, "closePicture").trigger()
    qtbot.waitUntil(lambda: len(window.open_pictures.documents) == 2)
    button.click()
    qtbot.waitUntil(lambda: len(batch.queue.rows) == 2)
    assert {row.item.source for row in batch.queue.rows} == set(files)
    assert not button.isEnabled(), "they are in the queue"
    window.open_pictures.open_all([folder / "3.png"])
    qtbot.waitUntil(button.isEnabled)
    press(batch, "batchClear")
    assert button.isEnabled()


def test_a_batch_goes_on_with_the_steps_with_which_it_began(
    qtbot: QtBot, window: MainWindow, cpu: FakeCpu, picture: Path, folder: Path
) -> None:
    """The line under Recipe followed the main window, and Resume ran the steps that stood there."""
    load(qtbot, window, picture)
    window.session.set_filter("median")
    batch = opened(window)
    settle(qtbot, window)
    fill(qtbot, batch, folder)
    cpu.go.clear()
    cpu.requests.clear()
    press(batch, "batchStart")
    qtbot.waitUntil(cpu.entered.is_set)
    recipe, start = batch.form.editors["batchRecipe"], child(batch, QPushButton, "batchStart")
    window.session.set_filter("mean")
    batch.refresh()
    shown = recipe.currentText(), batch.form.description.full_text
    assert shown == ("Steps as the batch began", "Median: 3×3")
    cpu.one.release(2)
    qtbot.waitUntil(lambda: len(cpu.requests) == 3)
    press(batch, "batchCancel")
    qtbot.waitUntil(lambda: not batch.running)
    assert batch.form.description.full_text == "Median: 3×3"
    assert start.text() == "Re&sume"
    recipe.setCurrentIndex(0)
    assert batch.form.description.full_text == "Mean: 3×3"
    qtbot.waitUntil(start.isEnabled)
    assert start.text() == "&Start", "it would begin with other steps"
    recipe.setCurrentIndex(1)
    qtbot.waitUntil(lambda: not batch._listing)
    assert start.text() == "Re&sume"
    cpu.requests.clear()
    cpu.go.set()
    run(qtbot, batch)
    assert states(batch) == [FileState.SKIPPED] * 2 + [FileState.DONE] * (COUNT - 2)
    assert {each.step.filter.id for each in cpu.requests} == {"median"}
    assert batch.form.description.full_text == "Mean: 3×3"
    assert recipe.count() == 1


def test_a_batch_goes_on_while_its_window_is_closed(
    qtbot: QtBot, window: MainWindow, cpu: FakeCpu, picture: Path, folder: Path
) -> None:
    """Closing asked whether to stop, and the letter s of a text that was typed meanwhile did."""
    load(qtbot, window, picture)
    batch, button = opened(window), window.batch_progress
    fill(qtbot, batch, folder)
    assert not button.isVisible()
    cpu.go.clear()
    press(batch, "batchStart")
    qtbot.waitUntil(cpu.entered.is_set)
    press(batch, "batchClose")
    assert not batch.isVisible()
    cpu.one.release(2)
    qtbot.waitUntil(lambda: button.text().startswith(("Batch: 1 of 6", "Batch: 2 of 6")))
    cpu.go.set()
    qtbot.waitUntil(lambda: not batch.running)
    assert set(states(batch)) == {FileState.DONE}
    assert button.text().startswith(f"Batch: {COUNT} of {COUNT} files, took")
    assert button.isVisible(), "its end was not seen"
    button.click()
    assert batch.isVisible()
    assert not button.isVisible()


def test_closing_the_main_window_asks_stops_and_closes(
    qtbot: QtBot, window: MainWindow, cpu: FakeCpu, picture: Path, folder: Path
) -> None:
    load(qtbot, window, picture)
    batch = opened(window)
    fill(qtbot, batch, folder)
    cpu.go.clear()
    press(batch, "batchStart")
    qtbot.waitUntil(cpu.entered.is_set)
    window.close()
    assert window.isVisible()
    box = dialog(qtbot, window, QMessageBox)
    QTest.keyClicks(box, "scans/quit.png")  # typed ahead
    assert batch.running
    assert box.isVisible()
    answer(qtbot, box, "Stop and quit")
    qtbot.waitUntil(lambda: not window.isVisible())
    assert not batch.running


def test_a_result_is_looked_at_from_its_row(
    qtbot: QtBot, batch: BatchWindow, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Path] = []
    opened: list[str] = []
    batch.result_wanted.connect(shown.append)
    monkeypatch.setattr(
        "kernelscope.gui.tools.batch_window.QDesktopServices.openUrl",
        lambda url: opened.append(url.toLocalFile()),
    )
    fill(qtbot, batch, folder)
    button = batch.findChild(QPushButton, "batchOpenFolder")
    assert not button.isVisible(), "there is nothing in it yet"
    rows = batch.table.model()
    batch.table.activated.emit(rows.index(2, 0))
    assert not shown
    run(qtbot, batch)
    target = batch.queue.rows[2].item.target
    batch.table.activated.emit(rows.index(2, 0))
    assert shown == [target]
    assert read_image(target).pixels[0, 0] == 255 - read_image(folder / "2.png").pixels[0, 0]
    press(batch, "batchOpenFolder")
    assert opened == [str(target.parent)]
