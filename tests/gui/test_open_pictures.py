"""Several pictures in the window: opened together, switched, closed; nothing lost in silence."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QFontMetrics
from PySide6.QtWidgets import QComboBox, QFileDialog
from pytestqt.qtbot import QtBot

from kernelscope.base.text import printable
from kernelscope.files import SAMPLES, read_image
from kernelscope.gui.docks.film_strip import FilmStrip, cross_of
from kernelscope.gui.model.documents import Document
from kernelscope.gui.widgets.messages import ErrorDialog, NoticeDialog
from kernelscope.gui.window import open_pictures as module
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.image import Image
from kernelscope.schema.samples import Kind
from tests.gui.helpers import (
    FakeCpu,
    Opener,
    child,
    choose_files,
    dialog,
    load,
    press,
    run,
    shown,
    wait_until,
    write_picture,
)
from tests.gui.test_drops import drop, said
from tests.gui.test_volume_page import open_scan, titles, voxels, write
from tests.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("compiled_judging")


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return [write_picture(tmp_path / f"{name}.png", 10 * k) for k, name in enumerate("abcd")]


@pytest.fixture
def four(qtbot: QtBot, window: MainWindow, paths: list[Path]) -> MainWindow:
    """A window with four pictures, the first in front."""
    drop(window, paths)
    settle(qtbot, window, 4)
    assert shown(window) == "a.png"
    return window


def settle(qtbot: QtBot, window: MainWindow, count: int) -> None:
    pictures = window.open_pictures
    qtbot.waitUntil(lambda: len(pictures.documents) == count and not pictures._count)


def in_strip(window: MainWindow) -> list[str]:
    strip = window.film_strip
    return [strip.item(row).text() for row in range(strip.count())]


def in_front(window: MainWindow) -> list[str]:
    """Return the pictures that the strip marks."""
    strip, role = window.film_strip, Qt.ItemDataRole.AccessibleTextRole
    items = [strip.item(row) for row in range(strip.count())]
    return [item.text() for item in items if item.data(role).endswith("in front")]


def documents(window: MainWindow) -> list[Document]:
    return list(window.open_pictures.documents)


def click(qtbot: QtBot, window: MainWindow, row: int, *, cross: bool = False) -> None:
    strip = window.film_strip
    tile = strip.visualItemRect(strip.item(row))
    place = cross_of(tile).center() if cross else tile.topLeft() + QPoint(20, 20)
    qtbot.mouseClick(strip.viewport(), Qt.MouseButton.LeftButton, pos=place)


def test_names_are_whole_where_the_strip_has_room(qtbot: QtBot) -> None:
    """They ended in dots beside an empty strip."""
    strip = FilmStrip()
    qtbot.addWidget(strip)
    strip.resize(1200, 60)
    names = ["camera-salt-pepper.png", "a.png", "Phantom T1w, 9 % Rician noise"]
    documents = [Document(Kind.PICTURE, each) for each in names]
    strip.show_documents(documents, documents[2])
    font = strip.font()
    font.setBold(True)
    room = strip.tile_size().width()
    assert room > QFontMetrics(font).horizontalAdvance(names[2]) + 56
    assert strip.visualItemRect(strip.item(2)).right() < 1200
    strip.show()
    strip.resize(400, 60)
    assert strip.tile_size().width() < room
    qtbot.waitUntil(lambda: strip.visualItemRect(strip.item(2)).right() < 400)  # that in front
    strip.resize(1200, 60)
    strip.show_documents(documents[:2], documents[0])
    assert strip.tile_size().width() < room, "the longest is closed"


def test_the_strip_knows_what_was_saved(
    qtbot: QtBot, window: MainWindow, paths: list[Path]
) -> None:
    drop(window, paths)
    settle(qtbot, window, 4)

    def said() -> list[str]:
        tiles = [window.film_strip.item(row) for row in range(2)]
        return [each.data(Qt.ItemDataRole.AccessibleTextRole).split(", ")[4] for each in tiles]

    assert said() == ["as opened"] * 2
    window.session.subject.history.settle(window.session.require(), as_step=False)
    window.open_pictures.show_strip()
    assert said() == ["no whole output", "as opened"], "a part of it was seen at most"
    run(qtbot, window)
    qtbot.waitUntil(lambda: said() == ["output not saved", "as opened"])
    savable = window.session.subject.output()
    assert savable is not None
    window.file_dialogs.saved.emit(savable, paths[0])
    assert said() == ["an output saved", "as opened"]


def test_a_file_that_is_open_is_shown_again_and_gets_no_second_tile(
    qtbot: QtBot, four: MainWindow, paths: list[Path]
) -> None:
    window, tiles = four, ["a.png", "b.png", "c.png", "d.png"]
    first = window.session.pictures.source
    four.file_dialogs.open(paths[1])
    qtbot.waitUntil(lambda: shown(window) == "b.png")
    bar = window.statusBar()
    qtbot.waitUntil(lambda: bar.currentMessage() == "b.png is open already.")
    four.file_dialogs.open_all([paths[0], paths[2]])
    qtbot.waitUntil(lambda: shown(window) == "a.png" and not window.open_pictures._count)
    assert window.session.pictures.source is first
    assert in_strip(window) == tiles

    write_picture(paths[1], 99)  # the file has other pixels now
    four.file_dialogs.open(paths[1])
    qtbot.waitUntil(lambda: in_strip(window) == [*tiles, "b.png"])


@pytest.mark.smoke
def test_pictures_dropped_together_all_open(
    qtbot: QtBot, window: MainWindow, paths: list[Path]
) -> None:
    assert not window.film_strip.isVisible()
    drop(window, paths)
    settle(qtbot, window, 4)
    assert shown(window) == "a.png"
    assert in_strip(window) == ["a.png", "b.png", "c.png", "d.png"]
    assert window.film_strip.isVisible()
    assert set(window.settings.recent_files) == set(paths)
    assert not [box for box in window.findChildren(NoticeDialog) if box.isVisible()]


def test_files_are_chosen_together(qtbot: QtBot, window: MainWindow, paths: list[Path]) -> None:
    window.file_dialogs.choose()
    box = dialog(qtbot, window, QFileDialog)
    assert box.fileMode() is QFileDialog.FileMode.ExistingFiles
    choose_files(box, *paths[:2])
    settle(qtbot, window, 2)
    assert in_strip(window) == ["a.png", "b.png"]


def test_files_of_the_command_line_open_together(
    qtbot: QtBot, window: MainWindow, paths: list[Path]
) -> None:
    window.open_first(*paths[:2])
    settle(qtbot, window, 2)
    assert in_strip(window) == ["a.png", "b.png"]
    assert shown(window) == "a.png"


def test_a_picture_opened_last_stays_in_front_of_slower_ones(
    qtbot: QtBot, window: MainWindow, paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()

    def slow(path: Path) -> tuple[Image, None]:
        release.wait(PATIENCE)
        return read_image(path), None

    monkeypatch.setattr(module, "read_file", slow)
    drop(window, paths[:2])
    load(qtbot, window, paths[2])
    release.set()
    settle(qtbot, window, 3)
    assert shown(window) == "c.png"


def test_pictures_join_the_one_that_is_open(
    qtbot: QtBot, window: MainWindow, paths: list[Path]
) -> None:
    load(qtbot, window, paths[0])
    assert not window.film_strip.isVisible()
    assert not window.actions_["nextPicture"].isEnabled()
    load(qtbot, window, paths[1])
    assert in_strip(window) == ["a.png", "b.png"]
    assert not window.actions_["undo"].isEnabled()
    drop(window, paths[2:])
    settle(qtbot, window, 4)
    qtbot.waitUntil(lambda: shown(window) == "c.png")  # the first of the new ones
    assert in_strip(window) == ["a.png", "b.png", "c.png", "d.png"]
    assert [each.size for each in documents(window)] == 4 * ["40×30, grey, 8 bit"]
    assert all(each.thumbnail.any() for each in documents(window))


def test_each_picture_keeps_its_settings_and_keys_switch(qtbot: QtBot, four: MainWindow) -> None:
    four.session.set_filter("mean")
    run(qtbot, four)
    output = four.session.pictures.result
    four.session.set_values("mean", {"size": 7})  # not run
    click(qtbot, four, 1)
    qtbot.waitUntil(lambda: shown(four) == "b.png")
    assert four.session.pictures.result is None
    assert four.session.filter_id == "mean"  # a new picture takes over the settings
    four.session.set_filter("sobel")
    click(qtbot, four, 0)
    qtbot.waitUntil(lambda: shown(four) == "a.png")
    assert four.session.pictures.result is output
    assert four.session.filter_id == "mean"
    assert four.session.require().step.parameters["size"] == 7
    click(qtbot, four, 1)
    qtbot.waitUntil(lambda: four.session.filter_id == "sobel")

    click(qtbot, four, 2)
    qtbot.waitUntil(lambda: shown(four) == "c.png")
    assert four.windowTitle().startswith("c.png")
    press(qtbot, four, "Ctrl+PgDown")
    qtbot.waitUntil(lambda: shown(four) == "d.png")
    press(qtbot, four, "Ctrl+PgDown")
    qtbot.waitUntil(lambda: shown(four) == "a.png")
    press(qtbot, four, "Ctrl+PgUp")
    qtbot.waitUntil(lambda: shown(four) == "d.png")
    four.film_strip.setCurrentRow(1)
    qtbot.keyClick(four.film_strip, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: shown(four) == "b.png")
    assert in_front(four) == ["b.png"]


def test_a_run_that_ends_after_a_switch_is_listed(
    qtbot: QtBot, four: MainWindow, cpu: FakeCpu
) -> None:
    cpu.go.clear()
    press(qtbot, four, "F5")
    qtbot.waitUntil(cpu.entered.is_set)
    click(qtbot, four, 1)
    qtbot.waitUntil(lambda: shown(four) == "b.png")
    cpu.go.set()
    qtbot.waitUntil(lambda: len(four.session.gallery) == 1)
    assert four.session.pictures.result is None
    # Shown again, it brings its own picture to the front.
    assert not four.runs.runs
    child(four, QComboBox, "runsOf").setCurrentText("All pictures")
    four.run_shelf.show()
    qtbot.waitUntil(lambda: shown(four) == "a.png")
    assert four.open_pictures.documents.current is documents(four)[0]
    assert four.session.pictures.result is not None
    assert documents(four)[1].history.current.source.title == "b.png"


def test_live_computes_the_picture_that_came_to_the_front(
    qtbot: QtBot, open_window: Opener, paths: list[Path]
) -> None:
    window = open_window(live=True)
    drop(window, paths[:2])
    settle(qtbot, window, 2)
    qtbot.waitUntil(lambda: window.session.pictures.result is not None)
    press(qtbot, window, "Ctrl+PgDown")
    second = documents(window)[1].history
    qtbot.waitUntil(lambda: second.current.result is not None)
    assert second.current.result.request.source is second.current.source
    assert window.session.freshness is not None


def test_closing_and_opening_again(qtbot: QtBot, four: MainWindow) -> None:
    run(qtbot, four)
    output = four.session.pictures.result
    press(qtbot, four, "Ctrl+W")
    qtbot.waitUntil(lambda: shown(four) == "b.png")
    said_ = "Closed a.png; Ctrl+Shift+T opens it again, with its output."
    qtbot.waitUntil(lambda: four.statusBar().currentMessage() == said_)
    assert in_strip(four) == ["b.png", "c.png", "d.png"]
    click(qtbot, four, 1, cross=True)
    assert in_strip(four) == ["b.png", "d.png"]
    assert shown(four) == "b.png"
    four.film_strip.setCurrentRow(1)
    qtbot.keyClick(four.film_strip, Qt.Key.Key_Delete)
    assert not four.film_strip.isVisible()
    assert not four.actions_["closePicture"].isEnabled()
    for title in ("d.png", "c.png", "a.png"):
        press(qtbot, four, "Ctrl+Shift+T")
        wait_until(qtbot, lambda title=title: shown(four) == title)
    assert four.session.pictures.result is output
    assert not four.actions_["reopenPicture"].isEnabled()


def test_files_that_cannot_be_read_are_listed_and_the_others_open(
    qtbot: QtBot, window: MainWindow, paths: list[Path], tmp_path: Path
) -> None:
    text, gone = tmp_path / "text.png", tmp_path / "gone.png"
    text.write_text("no picture")
    drop(window, [text, paths[0], gone, paths[1]])
    settle(qtbot, window, 2)
    box = dialog(qtbot, window, NoticeDialog)
    assert "2 of 4 files could not be opened." in said(box)
    assert said(box).count("text.png") == said(box).count("gone.png") == 1
    box.reject()
    assert in_strip(window) == ["a.png", "b.png"]
    assert shown(window) == "a.png"


def test_volumes_among_pictures_open_as_well(
    qtbot: QtBot, window: MainWindow, paths: list[Path], tmp_path: Path
) -> None:
    drop(window, [paths[0], write(tmp_path / "head.nii", voxels()), paths[1]])
    qtbot.waitUntil(lambda: titles(window) == ["head.nii"])
    assert [each.title for each in documents(window)] == ["a.png", "b.png", "head.nii"]
    assert in_front(window) == ["head.nii"]
    scan = documents(window)[2]
    assert scan.thumbnail.max() > 0
    assert scan.size.startswith("8×9×6")
    click(qtbot, window, 1)
    qtbot.waitUntil(lambda: window.page is window.pictures and shown(window) == "b.png")
    assert in_front(window) == ["b.png"]
    window.switch_kind()
    qtbot.waitUntil(lambda: window.page is window.volumes)
    assert in_front(window) == ["head.nii"]
    window.switch_kind()
    qtbot.waitUntil(lambda: window.page is window.pictures)
    assert in_front(window) == ["b.png"]
    click(qtbot, window, 2)
    qtbot.waitUntil(lambda: window.page is window.volumes)
    assert in_front(window) == ["head.nii"]


def test_volumes_have_tiles_are_closed_and_opened_again_and_sleep_as_pictures_do(
    qtbot: QtBot, window: MainWindow, paths: list[Path], tmp_path: Path
) -> None:
    drop(window, [paths[0], paths[1]])
    qtbot.waitUntil(lambda: len(documents(window)) == 2)
    for name in ("one.nii", "two.nii"):
        open_scan(qtbot, window, write(tmp_path / name, voxels()))
    assert [each.title for each in documents(window)] == ["a.png", "b.png", "one.nii", "two.nii"]
    press(qtbot, window, "F5")
    qtbot.waitUntil(lambda: window.session.volumes.result is not None)
    result = window.session.volumes.result
    click(qtbot, window, 2)
    qtbot.waitUntil(lambda: in_front(window) == ["one.nii"])
    qtbot.waitUntil(lambda: window.session.volumes.input is window.session.volumes.source)
    assert window.session.volumes.result is None
    window.open_pictures.close_current()
    qtbot.waitUntil(lambda: in_front(window) == ["two.nii"])
    assert window.session.volumes.result is result, "each keeps its output"
    window.open_pictures.reopen()
    qtbot.waitUntil(lambda: in_front(window) == ["one.nii"])

    window.open_pictures.documents.limit = 0
    click(qtbot, window, 0)
    qtbot.waitUntil(lambda: in_front(window) == ["a.png"])
    two, one = documents(window)[2:]
    qtbot.waitUntil(lambda: two.asleep)
    assert not one.asleep, "the page of volumes still has it"
    click(qtbot, window, 2)
    qtbot.waitUntil(lambda: in_front(window) == ["two.nii"])
    qtbot.waitUntil(lambda: window.session.volumes.input is window.session.volumes.source)
    assert window.session.volumes.part.voxels.shape == voxels().shape


def test_a_sample_that_was_only_looked_at_has_no_tile_beside_a_volume(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    load(qtbot, window, SAMPLES[0].path)
    open_scan(qtbot, window, write(tmp_path / "one.nii", voxels()))
    assert window.film_strip.isHidden()
    open_scan(qtbot, window, write(tmp_path / "two.nii", voxels()))
    assert in_strip(window) == ["one.nii", "two.nii"]
    assert [each.size for each in documents(window)[1:]] == 2 * ["8×9×6, 1 volume"]


def test_memory_is_bounded_and_what_goes_is_said(
    qtbot: QtBot, four: MainWindow, paths: list[Path]
) -> None:
    four.session.set_filter("mean")
    run(qtbot, four)
    reported: list[str] = []
    four.statusBar().messageChanged.connect(reported.append)
    four.open_pictures.documents.limit = 0
    click(qtbot, four, 1)
    qtbot.waitUntil(lambda: shown(four) == "b.png")
    first = documents(four)[0]
    assert [each.asleep for each in documents(four)] == [True, False, True, True]
    assert any("Dropped to make room: a.png (its output)" in text for text in reported)
    assert "Dropped to make room: its output" in four.film_strip.item(0).toolTip()
    four.session.set_filter("sobel")
    click(qtbot, four, 0)
    qtbot.waitUntil(lambda: shown(four) == "a.png" and not first.asleep)
    assert four.session.filter_id == "mean"  # the settings stayed
    paths[2].unlink()
    click(qtbot, four, 2)
    box = dialog(qtbot, four, ErrorDialog)
    assert "c.png" in said(box)
    box.reject()
    assert shown(four) == "a.png"
    assert len(documents(four)) == 4


def test_a_sample_that_was_only_looked_at_makes_room(
    qtbot: QtBot, window: MainWindow, paths: list[Path]
) -> None:
    window.open_first(None)
    qtbot.waitUntil(lambda: bool(shown(window)))
    drop(window, paths[:2])
    settle(qtbot, window, 2)
    assert in_strip(window) == ["a.png", "b.png"]
    assert window.session.subject.history.undo_name  # Undo returns to the sample


def test_control_characters_of_names_reach_no_list_menu_message_or_log(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    """A right-to-left override shows ``exe.gnp.png`` as another type of file."""
    evil = "\u202egnp\x1b[2J\x07<b>\x85"
    drop(window, [write_picture(tmp_path / f"{name}{evil}.png") for name in "ab"])
    settle(qtbot, window, 2)
    window.file_dialogs.open(tmp_path / f"missing{evil}.png")
    found = dialog(qtbot, window, ErrorDialog)
    logging.getLogger("kernelscope").info("%s", evil)
    window.actions_.fill_recent()
    entries = [window.findChild(QAction, f"recent{number}") for number in (1, 2)]
    strip, role = window.film_strip, Qt.ItemDataRole.ToolTipRole
    shown_ = [
        *(text for each in entries for text in (each.text(), each.toolTip(), each.statusTip())),
        *(str(strip.item(row).data(role)) for row in range(strip.count())),
        *(window.windowTitle(), window.statusBar().currentMessage(), window.statusBar().toolTip()),
        *(window.console.text(), found.text(), found.informativeText()),
    ]
    assert not [text for text in shown_ if printable(text) != text]
    assert sum("\\u202egnp\\x1b[2J" in text for text in shown_) >= 11
    found.reject()
    assert window.settings.recent_files[0].name == f"b{evil}.png"  # it is found again
