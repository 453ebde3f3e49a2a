"""The window driven by mouse and keyboard, on a backend that the tests control."""

from __future__ import annotations

import logging
import re
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow
from PySide6.QtCore import QPoint, QPointF, QSize, Qt
from PySide6.QtGui import (
    QAction,
    QColor,
    QGuiApplication,
    QIcon,
    QImage,
    QKeySequence,
    QPalette,
)
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QCheckBox,
    QComboBox,
    QFileDialog,
    QInputDialog,
    QLabel,
    QMenu,
    QMessageBox,
    QSpinBox,
    QTableWidget,
    QToolBar,
    QToolButton,
)
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import AppError, ImageWriteError
from kernelscope.base.paths import RESOURCES
from kernelscope.engine.backend import Availability
from kernelscope.engine.options import Device
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.steps import estimate, execute_all
from kernelscope.files import SAMPLES, read_image
from kernelscope.gui.application import BugCatcher
from kernelscope.gui.docks import runs_panel
from kernelscope.gui.model.comparison import View
from kernelscope.gui.model.freshness import Freshness
from kernelscope.gui.tools import file_dialogs
from kernelscope.gui.tools.gpu_dialog import GpuDialog
from kernelscope.gui.tools.manual_window import ManualWindow
from kernelscope.gui.tools.preferences import Preferences, jpeg_quality
from kernelscope.gui.viewer.plane_canvas import PlaneCanvas
from kernelscope.gui.widgets.messages import ErrorDialog, ReportDialog
from kernelscope.gui.widgets.parts import SnugLabel
from kernelscope.gui.widgets.theme import icon
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.main_window import MainWindow, warm_up
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from tests.gui.helpers import (
    WIDTH,
    FakeCpu,
    Opener,
    answer,
    child,
    choose_files,
    choose_place,
    dialog,
    headline,
    is_done,
    load,
    offers,
    press,
    program_threads,
    run,
    save_as,
    settle,
    shown,
    state,
    wait_until,
    write_picture,
)
from tests.patience import PATIENCE

# --- opening ---


@pytest.mark.smoke
def test_starts_on_a_sample_with_a_hint(qtbot: QtBot, window: MainWindow, monkeypatch) -> None:
    warmed = []
    monkeypatch.setattr("kernelscope.gui.window.main_window.warm_up", warmed.append)
    window.open_first(None)
    qtbot.waitUntil(lambda: shown(window) == SAMPLES[0].path.name)
    assert window.pictures.canvas.output.shown is None
    assert child(window, QLabel, "outputHint").text() == "Press Run (F5)"
    qtbot.waitUntil(lambda: len(warmed) == 1)
    assert warmed[0].step.filter.id == window.session.filter_id
    assert window.settings.recent_files == []  # a sample is in a menu of its own


@pytest.mark.smoke
def test_open_dialog_reads_the_file_and_remembers_it(
    qtbot: QtBot, window: MainWindow, picture: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usual = tmp_path / "Pictures"
    usual.mkdir()
    monkeypatch.setattr(
        "kernelscope.gui.tools.file_dialogs.QStandardPaths.writableLocation",
        lambda place: str(usual),
    )
    press(qtbot, window, "Ctrl+O")
    chooser = dialog(qtbot, window, QFileDialog)
    assert chooser.testOption(QFileDialog.Option.HideNameFilterDetails)
    assert Path(chooser.directory().absolutePath()) == usual
    types = chooser.nameFilters()
    assert "*.bmp" in types[0]
    assert len(set(types)) == len(types), "DICOM has pictures and volumes"
    choose_files(chooser, picture)
    qtbot.waitUntil(lambda: shown(window) == picture.name)
    assert window.windowTitle().startswith("ramp.png")
    assert window.settings.recent_files == [picture]
    press(qtbot, window, "Ctrl+O")
    again = dialog(qtbot, window, QFileDialog)
    assert Path(again.directory().absolutePath()) == picture.parent
    again.reject()
    assert child(window, QLabel, "inputDetails").toolTip() == "40×30, grey, 8 bit"


def test_recent_files_are_listed_once_with_their_names_and_open_again(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    window.settings.add_recent(tmp_path / "black & white.png")
    for _ in range(3):
        window.actions_.fill_recent()
    names = [action.objectName() for action in window.actions()]
    assert names.count("recent1") == names.count("clearRecent") == 1
    (entry,) = (action for action in window.actions() if action.objectName() == "recent1")
    assert entry.text() == "&1 black && white.png"

    first, second = write_picture(tmp_path / "ä b.png"), write_picture(tmp_path / "two.png")
    load(qtbot, window, first)
    load(qtbot, window, second)
    menu = window.findChild(QMenu, "recentMenu")
    menu.aboutToShow.emit()
    assert [a.text() for a in menu.actions()[:2]] == ["&1 two.png", "&2 ä b.png"]
    menu.actions()[1].trigger()
    qtbot.waitUntil(lambda: shown(window) == first.name)
    menu.aboutToShow.emit()
    menu.actions()[-1].trigger()
    assert window.settings.recent_files == []


def test_paste_and_copy(qtbot: QtBot, window: MainWindow) -> None:
    image = QImage(7, 5, QImage.Format.Format_RGB32)
    image.fill(0xFF102030)
    QGuiApplication.clipboard().setImage(image)
    press(qtbot, window, "Ctrl+V")
    qtbot.waitUntil(lambda: shown(window) == "pasted picture")
    assert window.pictures.canvas.input.shown.planes[4, 6].tolist() == [0x10, 0x20, 0x30]
    child(window, QComboBox, "border")
    run(qtbot, window)
    press(qtbot, window, "Ctrl+C")
    copied = QGuiApplication.clipboard().image()
    assert copied.pixelColor(6, 4).name() == "#efdfcf"


# --- running ---


@pytest.mark.smoke
def test_a_run_is_shown_cancelled_refused_and_timed(
    qtbot: QtBot, loaded: MainWindow, cpu: FakeCpu
) -> None:
    qtbot.mouseClick(child(loaded, QToolButton, "runButton"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: loaded.pictures.canvas.output.shown is not None)
    result = loaded.pictures.canvas.output.shown
    np.testing.assert_array_equal(result.pixels, 255 - loaded.pictures.canvas.input.shown.pixels)
    details = child(loaded, QLabel, "outputDetails").toolTip()
    assert details.startswith("CPU parallel, ")
    assert details.endswith("reflect border")
    assert is_done(loaded)
    assert not child(loaded, QToolButton, "cancelButton").isEnabled()

    run(qtbot, loaded)
    output = loaded.pictures.canvas.output.shown
    cpu.go.clear()
    press(qtbot, loaded, "Ctrl+R")
    qtbot.waitUntil(lambda: state(loaded) == "Compute 50 %")
    assert child(loaded, QToolButton, "cancelButton").isEnabled()
    start = time.monotonic()
    press(qtbot, loaded, "Esc")
    qtbot.waitUntil(lambda: state(loaded) == "Cancelled.")
    assert time.monotonic() - start < PATIENCE
    qtbot.waitUntil(lambda: "Cancelled after" in loaded.console.text())
    last = loaded.console.text().splitlines()[-1]
    assert loaded.pictures.canvas.output.shown is output
    assert re.search(r"INFO +Cancelled after \d+\.\d+ s: Median, ", last)

    cpu.go.set()
    cpu.error = AppError("The device is full.", "Use a smaller picture.")
    press(qtbot, loaded, "F5")
    box = dialog(qtbot, loaded, ErrorDialog)
    assert any("The device is full." in label.text() for label in box.findChildren(QLabel))
    box.reject()
    cpu.error = ZeroDivisionError("a bug of ours")
    press(qtbot, loaded, "F5")
    bug = dialog(qtbot, loaded, ReportDialog)
    bug.reject()
    assert "a bug of ours" in loaded.console.text()
    cpu.error = None
    run(qtbot, loaded)

    cpu.compiling = 7.25
    run(qtbot, loaded)
    note = child(loaded, QLabel, "headlineNote")
    qtbot.waitUntil(lambda: "compiled once, in 7.25 s" in note.toolTip())
    assert "7.25" not in headline(loaded)
    cpu.compiling = 0.004
    run(qtbot, loaded)
    qtbot.waitUntil(lambda: note.toolTip() and "compil" not in note.toolTip())


def test_uncaught_exception_of_a_thread_is_reported(
    qtbot: QtBot, window: MainWindow, monkeypatch
) -> None:
    monkeypatch.setattr("sys.excepthook", None)
    monkeypatch.setattr("threading.excepthook", None)
    catcher = BugCatcher()
    catcher.caught.connect(window.report_bug, Qt.ConnectionType.QueuedConnection)
    catcher.install()

    def fail() -> None:
        raise KeyError("lost in a thread")

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    dialog(qtbot, window, ReportDialog).reject()
    assert "lost in a thread" in window.console.text()


def test_a_picture_that_cannot_be_filtered_or_read_is_named(
    qtbot: QtBot, loaded: MainWindow, tmp_path: Path, cpu: FakeCpu, picture: Path
) -> None:
    tiny = tmp_path / "tiny.png"
    Pillow.fromarray(np.zeros((1, 1), np.uint8)).save(tiny)
    load(qtbot, loaded, tiny)
    child(loaded, QComboBox, "border").setCurrentText("Valid")
    press(qtbot, loaded, "F5")
    dialog(qtbot, loaded, ErrorDialog).reject()
    assert cpu.requests == []
    child(loaded, QComboBox, "border").setCurrentText("Reflect")
    run(qtbot, loaded)

    bad = tmp_path / "broken.png"
    bad.write_bytes(picture.read_bytes()[:40])
    loaded.file_dialogs.open(bad)
    box = dialog(qtbot, loaded, ErrorDialog)
    assert any("broken.png" in label.text() for label in box.findChildren(QLabel))
    box.reject()
    assert shown(loaded) == "tiny.png"
    assert bad not in loaded.settings.recent_files
    run(qtbot, loaded)


@pytest.mark.smoke
def test_close_while_running_is_quick(qtbot: QtBot, loaded: MainWindow, cpu: FakeCpu) -> None:
    cpu.go.clear()
    press(qtbot, loaded, "F5")
    qtbot.waitUntil(cpu.entered.is_set)
    start = time.monotonic()
    loaded.close()
    assert time.monotonic() - start < PATIENCE
    # Work in the background, like reading recorded figures, may be under way at any moment.
    qtbot.waitUntil(lambda: not program_threads())


# --- saving ---


def test_formats_are_offered_and_lose_nothing_without_a_word(
    qtbot: QtBot, window: MainWindow, picture: Path, tmp_path: Path
) -> None:
    for suffix, offered in (("tif", "TIFF"), ("png", "PNG"), ("jpg", "JPEG")):
        path = picture.with_name(f"cells.{suffix}")
        with Pillow.open(picture) as image:
            image.save(path)
        window.settings.set_text("saveFormat", "BMP (*.bmp)")  # that of an earlier picture
        load(qtbot, window, path)
        run(qtbot, window)
        press(qtbot, window, "Ctrl+S")
        chooser = dialog(qtbot, window, QFileDialog)
        assert chooser.selectedNameFilter().split()[0] == offered
        chooser.reject()
        wait_until(qtbot, lambda chooser=chooser: not chooser.isVisible())

    with Pillow.open(picture) as image:
        image.save(tmp_path / "tagged.png", dpi=(300, 300))
    load(qtbot, window, tmp_path / "tagged.png")
    run(qtbot, window)
    press(qtbot, window, "Ctrl+S")
    save_as(qtbot, window, tmp_path / "a.pgm")
    said = f"Saved {tmp_path / 'a.pgm'}.  a.pgm is saved without resolution of the input."
    qtbot.waitUntil(lambda: window.statusBar().currentMessage() == said)

    transparent = tmp_path / "alpha.png"
    Pillow.fromarray(np.full((9, 9, 4), 100, np.uint8)).save(transparent)
    load(qtbot, window, transparent)
    run(qtbot, window)
    target = tmp_path / "flat.jpg"
    press(qtbot, window, "Ctrl+S")
    choose_files(dialog(qtbot, window, QFileDialog), target)
    box = dialog(qtbot, window, QMessageBox)  # before its quality, which would be asked in vain
    assert not target.exists()
    answer(qtbot, box, "Save with Loss")
    dialog(qtbot, window, QInputDialog).accept()
    qtbot.waitUntil(target.exists)


@pytest.mark.parametrize("fails", [False, True])
def test_closing_during_a_save_waits_and_stays_if_it_fails(
    qtbot: QtBot,
    window: MainWindow,
    picture: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fails: bool,
) -> None:
    go_on = threading.Event()

    def write(image: Image, path: Path, **options: object) -> Path:
        assert go_on.wait(PATIENCE)
        if fails:
            raise ImageWriteError("The disk is full.", "Save somewhere else.")
        return path

    monkeypatch.setattr(file_dialogs, "write_image", write)
    load(qtbot, window, picture)
    run(qtbot, window)
    next(iter(window.session.gallery)).seconds = 47.0
    press(qtbot, window, "Ctrl+S")
    save_as(qtbot, window, tmp_path / "result.png")
    window.close()
    assert window.isVisible()
    assert window.findChild(QMessageBox, "unsaved") is None, "it is being saved"
    go_on.set()
    if fails:
        box = dialog(qtbot, window, QMessageBox)
        assert "disk is full" in box.text()
        assert window.isVisible()
        box.reject()
        window.close()
        assert "is not saved" in child(window, QMessageBox, "unsaved").informativeText()
    else:
        qtbot.waitUntil(lambda: not window.isVisible())


# --- settings ---


def test_manual_is_one_window_that_keeps_its_page(qtbot: QtBot, window: MainWindow) -> None:
    action = window.findChild(QAction, "manual")
    action.trigger()
    guide = dialog(qtbot, window, ManualWindow)
    guide.open_page("volumes")
    guide.reject()
    action.trigger()
    assert dialog(qtbot, window, ManualWindow) is guide
    assert guide.page == "volumes"
    assert not guide.isModal()


@pytest.mark.smoke
def test_blocks_are_chosen_at_levels_that_take_them(qtbot: QtBot, open_window: Opener) -> None:
    window = open_window(Availability(True, "a card"))
    window.find_gpu()
    qtbot.waitUntil(lambda: offers(window, "gpu"))
    block = window.findChild(QComboBox, "block")
    window.session.set_filter("mean")
    assert not block.isVisible()  # the fastest level has blocks of its own
    offered = []
    for rung in window.session.rungs:
        if not rung.obstacle:
            choose_place(window, *rung.place)
            if block.isVisible():
                offered.append(rung.place.level)
            on_card = rung.place.device in (Device.AUTO, Device.GPU)
            for name in ("repeat", "memoryLimit"):
                assert window.findChild(QSpinBox, name).isVisible() is on_card, rung.place
    assert offered == ["single-block", "global", "shared", "texture"]
    choose_place(window, "gpu", "shared")
    assert window.session.require().options.block is None
    block.setCurrentText("16×16 threads")
    assert window.session.require().options.block == (16, 16)
    choose_place(window, "gpu", "tuned")
    assert window.session.require().options.block is None

    window.session.set_filter("gaussian_noise")
    assert window.session.require().options.device is Device.AUTO
    note = child(window, QLabel, "ladderNote").text()
    assert note.startswith("On the CPU only")
    assert "seed" in note


def test_each_filter_keeps_its_values_also_after_a_restart(
    qtbot: QtBot, open_window: Opener
) -> None:
    window = open_window()
    window.session.set_filter("mean")
    child(window, QSpinBox, "sizeBox").setValue(11)
    window.session.set_filter("weighted_mean")
    child(window, QToolButton, "size5").click()
    child(window, QCheckBox, "grey").setChecked(True)
    border = child(window, QComboBox, "border")
    border.setCurrentText("Wrap")
    border.activated.emit(border.currentIndex())
    window.session.set_filter("mean")
    assert child(window, QSpinBox, "sizeBox").value() == 11
    window.resize(950, 650)
    window.docks[DockName.CONSOLE].show()
    window.close()

    again = open_window()
    assert again.session.filter_id == "mean"
    assert again.docks[DockName.CONSOLE].isVisible()
    step = again.session.require().step
    assert step.parameters == {"size": 11}
    assert step.grey is True
    assert step.border is Border.WRAP
    again.session.set_filter("weighted_mean")
    assert again.session.require().step.parameters == {"size": 5}
    child(again, QAbstractButton, "reset").click()
    assert again.session.require().step.parameters == filters.get("weighted_mean").defaults()


def test_wrong_numbers_are_refused_with_the_way_out(qtbot: QtBot, loaded: MainWindow) -> None:
    loaded.session.set_filter("mean")
    box = child(loaded, QSpinBox, "sizeBox")
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, "4")
    problem = child(loaded, QLabel, "problem")
    assert "use 3 or 5" in problem.text()
    qtbot.keyClick(box, Qt.Key.Key_Up)
    assert box.value() == 5
    assert not problem.isVisible()
    qtbot.keyClick(box, Qt.Key.Key_Down)
    assert box.value() == 3

    loaded.session.set_filter("mask")
    table = child(loaded, QTableWidget, "maskTable")
    table.item(0, 0).setText("abc")
    says = [
        label.text()
        for label in loaded.panel.findChildren(QLabel)
        if label.isVisible() and "abc" in label.text()
    ]
    assert says == ["Mask: row 1, column 1 holds “abc”, which is not a number."]


@pytest.mark.slow
def test_every_filter_runs_with_the_values_that_its_form_shows(
    qtbot: QtBot, loaded: MainWindow, cpu: FakeCpu
) -> None:
    image = loaded.session.pictures.source
    assert image is not None
    for spec in filters.discover().values():
        action = loaded.findChild(QAction, f"filter{spec.id}")
        action.trigger()
        run(qtbot, loaded)
        assert cpu.requests[-1].step.filter is spec
        names = [each.name for each in spec.parameters if each.is_estimated]  # from the start
        values = spec.validate({}) | estimate(Request.create(image, spec.id), names)
        assert dict(cpu.requests[-1].step.parameters) == values, spec.id
        assert dict(loaded.session.values.numbers) == values, spec.id
        child(loaded, QComboBox, "filter")
        assert action.isChecked(), spec.id


def test_no_two_controls_share_a_mnemonic(window: MainWindow) -> None:
    for filter_id in ("mean", "mask", "collaborative"):
        window.session.set_filter(filter_id)
        texts = [action.text() for action in window.menuBar().actions()]
        for kind in (QLabel, QAbstractButton):
            labels: list[Any] = window.findChildren(kind)
            texts += [label.text() for label in labels if label.isVisible()]
        keys = [QKeySequence.mnemonic(text).toString() for text in texts]
        keys = [key for key in keys if key]
        assert len(keys) > 8
        assert sorted(keys) == sorted(set(keys)), filter_id


# --- the tool bar ---


def tool(window: MainWindow, text: str) -> QToolButton:
    """Return the button of the tool bar that shows this text."""
    bar = child(window, QToolBar, "toolBar")
    (found,) = (button for button in bar.findChildren(QToolButton) if button.text() == text)
    return found


def test_the_first_screen_has_load_save_run_learn_and_gpu_info(
    qtbot: QtBot, window: MainWindow, picture: Path, tmp_path: Path
) -> None:
    window.resize(1280, 720)
    buttons = {text: tool(window, text) for text in ("Open", "Save", "Learn", "GPU info")}
    run_button = child(window, QToolButton, "runButton")
    assert not run_button.visibleRegion().isEmpty()
    for text, button in buttons.items():
        assert not button.visibleRegion().isEmpty(), text
        assert not button.icon().isNull(), text
        assert button.toolTip(), text
    assert not tool(window, "Save").isEnabled()
    qtbot.mouseClick(tool(window, "Open"), Qt.MouseButton.LeftButton)
    chooser = dialog(qtbot, window, QFileDialog)
    choose_files(chooser, picture)
    qtbot.waitUntil(lambda: shown(window) == picture.name)
    qtbot.mouseClick(run_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(tool(window, "Save").isEnabled)
    qtbot.mouseClick(tool(window, "Save"), Qt.MouseButton.LeftButton)
    save_as(qtbot, window, tmp_path / "out.png")
    qtbot.waitUntil((tmp_path / "out.png").exists)
    qtbot.mouseClick(tool(window, "GPU info"), Qt.MouseButton.LeftButton)
    dialog(qtbot, window, GpuDialog).reject()


def test_debug_is_down_while_the_console_is_in_sight(qtbot: QtBot, window: MainWindow) -> None:
    button, console = window.actions_["debug"], window.console
    assert not button.isChecked()
    button.trigger()
    qtbot.waitUntil(lambda: not console.visibleRegion().isEmpty())
    assert button.isChecked()
    window.docks[DockName.TIMING].raise_()  # the timing lies over it
    qtbot.waitUntil(lambda: not button.isChecked())
    assert console.visibleRegion().isEmpty()
    button.trigger()
    qtbot.waitUntil(lambda: not console.visibleRegion().isEmpty())
    assert button.isChecked()
    press(qtbot, window, "F12")
    qtbot.waitUntil(lambda: not console.isVisible())
    assert not button.isChecked()
    window.docks[DockName.CONSOLE].show()
    qtbot.waitUntil(button.isChecked)


@pytest.mark.parametrize(
    "name", [path.stem for path in (RESOURCES / "icons" / "lines").glob("*.svg")]
)
def test_icons_are_drawn_in_the_colours_of_the_palette(qtbot: QtBot, name: str) -> None:
    def darkest(drawn: QIcon, mode: QIcon.Mode) -> int:
        image = drawn.pixmap(QSize(32, 32), 1.0, mode).toImage()
        colours = (image.pixelColor(x, y) for x in range(32) for y in range(32))
        return min((c.lightness() for c in colours if c.alpha() > 200), default=255)

    palette = QApplication.palette()
    try:
        assert darkest(icon(name), QIcon.Mode.Normal) < darkest(icon(name), QIcon.Mode.Disabled)
        dark = QPalette(QColor("#202020"))
        QApplication.setPalette(dark)
        assert darkest(icon(name), QIcon.Mode.Normal) > 100
    finally:
        QApplication.setPalette(palette)


# --- looking ---


def canvas_point(window: MainWindow, x: float, y: float) -> QPoint:
    """Return where pixel (x, y) of the output is on its canvas."""
    view = window.pictures.canvas.output
    return view.views[0].to_widget(QPointF(x, y)).toPoint()


@pytest.mark.smoke
def test_a_result_is_looked_at(qtbot: QtBot, loaded: MainWindow) -> None:
    run(qtbot, loaded)
    child(loaded, QSpinBox, "sizeBox").setValue(5)
    child(loaded, QComboBox, "border").setCurrentText("Valid")
    run(qtbot, loaded)
    output = loaded.pictures.canvas.output
    assert isinstance(output.shown, Image)
    assert (output.shown.width, output.content.offset) == (WIDTH - 4, 2)
    pixel = child(loaded, SnugLabel, "pixel")
    qtbot.mouseMove(output.views[0], canvas_point(loaded, 20.5, 10.5))
    qtbot.waitUntil(lambda: pixel.full_text == "x 20, y 10   input 60   output 195")
    qtbot.mouseMove(output.views[0], canvas_point(loaded, 0.5, 10.5))
    qtbot.waitUntil(lambda: pixel.full_text == "x 0, y 10   input 40")

    run(qtbot, loaded)
    difference = loaded.actions_["viewDifference"]
    assert not difference.isEnabled()
    assert difference.toolTip().startswith("There is no reference")
    button = loaded.findChild(QToolButton, "viewDifferenceButton")
    assert not button.isVisible()
    loaded.use_input_as_reference()
    qtbot.waitUntil(difference.isEnabled)
    assert button.isVisible()
    difference.trigger()
    loaded.clear_reference()
    qtbot.waitUntil(lambda: not difference.isEnabled())
    assert button.isVisible(), "it is the view that is chosen"
    loaded.actions_["viewOutput"].trigger()
    assert not button.isVisible()
    loaded.use_input_as_reference()
    qtbot.waitUntil(difference.isEnabled)
    assert difference.toolTip().startswith("Output minus reference")


@pytest.mark.parametrize("width", [1280, 1920])
def test_no_column_of_runs_is_cut_off(qtbot: QtBot, loaded: MainWindow, width: int) -> None:
    loaded.resize(width, 720)
    loaded.docks[DockName.RUNS].raise_()
    tree = loaded.runs.table
    header = tree.header()
    loaded.session.set_filter("median")
    for level in ("serial", "parallel"):
        choose_place(loaded, "cpu", level)
        for _ in range(4):
            before = len(loaded.session.gallery)
            press(qtbot, loaded, "F5")
            wait_until(qtbot, lambda before=before: len(loaded.session.gallery) > before)
    switch = loaded.findChild(QAbstractButton, "runsTableSwitch")
    assert tree.isVisible() != switch.isVisible(), "the switch is there where there is no room"
    if switch.isVisible():
        switch.click()
    qtbot.waitUntil(lambda: header.length() == tree.viewport().width())
    assert not tree.horizontalScrollBar().isVisible()
    shown = [n for n in range(header.count()) if not tree.isColumnHidden(n)]
    assert {runs_panel.TOTAL_TIME, runs_panel.SPEED_UP, runs_panel.PSNR} <= set(shown)
    for number in shown:
        assert header.sectionSize(number) >= header.sectionSizeHint(number)
        texts = [tree.rows.index(row, number).data() for row, _ in tree.rows.places()]
        widest = max(map(tree.fontMetrics().horizontalAdvance, texts))
        assert header.sectionSize(number) > widest, texts


def test_run_and_cancel_are_in_sight_without_the_settings(
    qtbot: QtBot, loaded: MainWindow, cpu: FakeCpu
) -> None:
    tools = [loaded.findChild(QToolButton, f"{name}Tool") for name in ("run", "cancel")]
    assert [each.isVisible() for each in tools] == [False, False], "they stand in the settings"
    loaded.docks[DockName.CONTROLS].close()
    qtbot.waitUntil(lambda: all(each.isVisible() for each in tools))
    cpu.go.clear()
    qtbot.mouseClick(tools[0], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: tools[1].isEnabled() and cpu.entered.is_set())
    qtbot.mouseClick(tools[1], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not tools[1].isEnabled())
    assert loaded.pictures.canvas.output.shown is None
    loaded.docks[DockName.CONTROLS].show()
    qtbot.waitUntil(lambda: not any(each.isVisible() for each in tools))


def test_getting_ready_is_not_logged_as_a_run(caplog: pytest.LogCaptureFixture) -> None:
    image = Image.from_array(np.zeros((40, 40), np.uint8))
    with caplog.at_level(logging.INFO):
        warm_up(Request.create(image, "negative", {}))
    reported = [record.getMessage() for record in caplog.records]
    assert reported == [
        "Getting Negative ready for the first run",
        "Negative is ready: its code is compiled",
    ]


def show_part(window: MainWindow) -> None:
    """Show a part of the result of the present settings over the last one."""
    subject = window.session.pictures
    wanted = subject.wanted()
    assert wanted is not None
    request = replace(wanted, region=Region(2, 1, 3, 4), live=True)
    result = execute_all(request, {"cpu": CpuBackend(threads=1)})
    assert subject.show_preview(result)


def test_a_part_is_shown_again_after_a_look_at_the_residual(
    qtbot: QtBot, loaded: MainWindow
) -> None:
    """During a long run the output was that of the filter before, with its time."""
    run(qtbot, loaded)
    loaded.session.set_filter("mean")
    show_part(loaded)
    subject, output = loaded.session.pictures, loaded.pictures.canvas.output
    part = subject.preview
    assert part is not None

    def samples() -> Any:
        layer = output.views[0].front
        assert layer is not None
        return layer.samples_at(1, 2)

    np.testing.assert_array_equal(samples(), part.image.planes[0, 0])
    for _ in range(2):
        press(qtbot, loaded, "F3")
        wait_until(qtbot, lambda: output.content.view is View.RESIDUAL)
        assert loaded.session.freshness is Freshness.OUT_OF_DATE, "the residual is another one"
        press(qtbot, loaded, "F2")
        wait_until(qtbot, lambda: output.content.view is View.OUTPUT)
        assert loaded.session.freshness is Freshness.PART
        assert output.title.full_text.startswith("Input around the preview – ")
        np.testing.assert_array_equal(samples(), part.image.planes[0, 0])
    loaded.session.set_values("mean", {"size": 9})
    press(qtbot, loaded, "F3")
    wait_until(qtbot, lambda: output.content.view is View.RESIDUAL)
    press(qtbot, loaded, "F2")
    wait_until(qtbot, lambda: output.content.view is View.OUTPUT)
    assert subject.preview is None, "it is of other settings"


def test_a_part_of_earlier_settings_is_marked_with_and_without_an_output(
    qtbot: QtBot, loaded: MainWindow
) -> None:
    """While *Denoise* estimated, the first filter's preview was there without a word."""
    title = loaded.pictures.canvas.output.title
    loaded.session.set_filter("mean")
    show_part(loaded)
    assert title.full_text.startswith("Input around the preview – ")
    loaded.session.set_filter("median")
    assert title.full_text.startswith("Earlier settings, input around the preview – ")
    loaded.session.set_filter("mean")
    assert title.full_text.startswith("Input around the preview – ")
    run(qtbot, loaded)
    output = loaded.pictures.canvas.output.views[0]

    def around() -> Any:
        assert output.front is not None
        return output.front.planes  # None: the input

    loaded.session.set_filter("median")
    show_part(loaded)
    assert title.full_text.startswith("Input around the preview – "), "and no other filter's output"
    assert around() is None
    loaded.session.set_filter("mean")
    assert loaded.session.freshness is Freshness.EXACT, "its output is back"
    loaded.session.set_values("mean", {"size": 5})
    show_part(loaded)
    assert title.full_text.startswith("Earlier settings around the preview – ")
    result = loaded.session.pictures.result
    assert result is not None
    assert around() is result.image.planes
    loaded.session.set_filter("sobel")
    assert title.full_text.startswith("Earlier settings, others around the preview – ")


def test_the_headline_never_has_the_time_of_a_result_that_a_part_covers(
    qtbot: QtBot, loaded: MainWindow
) -> None:
    """It had that of the filter before, over a part by the next one while its slider moved."""
    run(qtbot, loaded)
    assert headline(loaded)
    loaded.session.set_filter("mean")
    show_part(loaded)
    loaded.session.set_values("mean", {"size": 9})
    assert loaded.session.freshness is Freshness.OUT_OF_DATE
    loaded.run_shelf.show_state()
    assert not headline(loaded)


@pytest.mark.smoke
def test_results_are_saved_after_every_question(
    qtbot: QtBot, loaded: MainWindow, tmp_path: Path, cpu: FakeCpu
) -> None:
    assert loaded.session.pictures.result is None
    cpu.go.clear()
    loaded.actions_["save"].trigger()
    dialog(qtbot, loaded, QFileDialog).reject()
    settle(qtbot, loaded)
    assert not cpu.entered.is_set()
    cpu.go.set()

    run(qtbot, loaded)
    press(qtbot, loaded, "Ctrl+S")
    chooser = dialog(qtbot, loaded, QFileDialog)
    png = next(f for f in chooser.nameFilters() if f.startswith("PNG"))
    chooser.selectNameFilter(png)
    save_as(qtbot, loaded, tmp_path / "result")
    written = tmp_path / "result.png"
    qtbot.waitUntil(lambda: written in loaded.settings.recent_files)
    np.testing.assert_array_equal(
        np.asarray(Pillow.open(written)), loaded.session.subject.result.image.pixels
    )

    written.write_bytes(b"precious")
    press(qtbot, loaded, "Ctrl+S")
    assert dialog(qtbot, loaded, QFileDialog).selectedNameFilter() == png
    save_as(qtbot, loaded, tmp_path / "result")
    box = dialog(qtbot, loaded, QMessageBox)
    assert written.read_bytes() == b"precious"
    answer(qtbot, box, "Replace")
    qtbot.waitUntil(lambda: written.read_bytes() != b"precious")

    run(qtbot, loaded)
    old = loaded.session.subject.result.settings
    loaded.session.set_filter("greyscale")
    loaded.files.copy_output()
    assert loaded.statusBar().currentMessage().endswith(f"earlier settings: {old}.")
    press(qtbot, loaded, "Ctrl+S")
    box = dialog(qtbot, loaded, QMessageBox)
    assert box.informativeText() == f"It is that of: {old}."
    answer(qtbot, box, "Save This Result…")
    save_as(qtbot, loaded, tmp_path / "earlier.png")
    qtbot.waitUntil(lambda: (tmp_path / "earlier.png") in loaded.settings.recent_files)
    loaded.session.set_filter("mean")
    press(qtbot, loaded, "Ctrl+S")
    default = dialog(qtbot, loaded, QMessageBox).defaultButton()
    assert default.text() == "Run and Save…"
    default.click()
    save_as(qtbot, loaded, tmp_path / "present.png")
    qtbot.waitUntil(lambda: (tmp_path / "present.png") in loaded.settings.recent_files)
    assert loaded.session.subject.result.request.step.filter.id == "mean"
    np.testing.assert_array_equal(
        np.asarray(Pillow.open(tmp_path / "present.png")),
        loaded.session.subject.result.image.pixels,
    )
    loaded.session.set_filter("median")
    show_part(loaded)  # what is seen are the present settings: nothing to ask
    press(qtbot, loaded, "Ctrl+S")
    save_as(qtbot, loaded, tmp_path / "seen.png")
    qtbot.waitUntil(lambda: (tmp_path / "seen.png") in loaded.settings.recent_files)
    assert loaded.session.subject.result.request.step.filter.id == "median"
    run(qtbot, loaded)
    press(qtbot, loaded, "Ctrl+S")
    dialog(qtbot, loaded, QFileDialog).reject()

    run(qtbot, loaded)
    press(qtbot, loaded, "Ctrl+S")
    save_as(qtbot, loaded, tmp_path / "no such folder" / "a.png")
    answer(qtbot, dialog(qtbot, loaded, QMessageBox), "Choose Another Place…")
    save_as(qtbot, loaded, tmp_path / "a.png")
    qtbot.waitUntil((tmp_path / "a.png").exists)


def test_the_picture_has_the_keyboard_after_a_start_and_a_click_on_the_tool_bar(
    qtbot: QtBot, loaded: MainWindow
) -> None:
    """Space pressed the button, or nothing, in place of showing the input."""
    focused = loaded.focusWidget()
    assert isinstance(focused, PlaneCanvas)
    for name in ("denoiseTool", "runButton"):
        qtbot.mouseClick(child(loaded, QToolButton, name), Qt.MouseButton.LeftButton)
        assert loaded.focusWidget() is focused
    qtbot.waitUntil(lambda: not loaded.runner.busy)


def test_a_residual_is_announced_while_it_is_computed(qtbot: QtBot, loaded: MainWindow) -> None:
    run(qtbot, loaded)
    settle(qtbot, loaded)
    caption = loaded.page.canvas.output.title
    loaded.actions_["viewResidual"].trigger()
    assert caption.full_text == "Residual: computing…"
    settle(qtbot, loaded)
    assert caption.full_text.startswith("Residual: ")
    assert "computing" not in caption.full_text


def test_the_quality_of_jpeg_is_that_of_the_preferences_and_can_be_the_usual_one_again(
    qtbot: QtBot, loaded: MainWindow, tmp_path: Path
) -> None:
    preferences = Preferences(loaded.settings)
    qtbot.addWidget(preferences)
    spin = preferences.findChild(QSpinBox, "jpegQuality")
    assert isinstance(spin, QSpinBox)
    assert spin.text() == "95, or as read if higher"
    run(qtbot, loaded)
    spin.setValue(20)
    press(qtbot, loaded, "Ctrl+S")
    save_as(qtbot, loaded, tmp_path / "a.jpg")
    qtbot.waitUntil(lambda: "JPEG quality 20." in loaded.statusBar().currentMessage())
    spin.setValue(spin.minimum())
    assert jpeg_quality(loaded.settings) is None


def test_a_photograph_is_saved_at_95_or_more_unless_another_quality_is_chosen(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    rng, source = np.random.default_rng(1), tmp_path / "photo.jpg"
    pixels = rng.integers(0, 256, (40, 48, 3)).astype(np.uint8)
    Pillow.fromarray(pixels).save(source, quality=83, subsampling="4:2:0")
    load(qtbot, window, source)
    run(qtbot, window)
    for quality in (None, 40):
        target = tmp_path / f"{quality}.jpg"
        press(qtbot, window, "Ctrl+S")
        question = save_as(qtbot, window, target, quality)
        assert question is not None
        assert "\nUsual: 95, that of the original: 83" in question.labelText()
        said = f"Saved {target}.  JPEG quality {quality or 95}, chroma 4:2:0."
        wait_until(qtbot, lambda said=said: window.statusBar().currentMessage() == said)
        assert read_image(target).metadata.jpeg == (quality or 95, "4:2:0")


def test_the_question_for_the_quality_has_the_size_of_the_file(
    qtbot: QtBot, loaded: MainWindow, tmp_path: Path
) -> None:
    run(qtbot, loaded)
    shown = []
    for quality in (20, 100):
        target = tmp_path / f"{quality}.jpg"
        press(qtbot, loaded, "Ctrl+S")
        choose_files(dialog(qtbot, loaded, QFileDialog), target)
        question = dialog(qtbot, loaded, QInputDialog)
        assert "original" not in question.labelText(), "it is no JPEG"
        question.setIntValue(quality)
        wait_until(qtbot, lambda box=question: "…" not in box.labelText())
        shown.append(question.labelText().rpartition("\nFile: ")[2])
        question.accept()
        wait_until(qtbot, target.exists)
        size = target.stat().st_size
        assert shown[-1] == (f"{size} bytes" if size < 1000 else f"{size / 1000:.2f} kB")
    assert shown[0] != shown[1]


def test_a_key_typed_ahead_is_no_quality(qtbot: QtBot, loaded: MainWindow, tmp_path: Path) -> None:
    """A photograph was saved at 3 without a warning."""
    run(qtbot, loaded)
    press(qtbot, loaded, "Ctrl+S")
    choose_files(dialog(qtbot, loaded, QFileDialog), tmp_path / "a.jpg")
    question = dialog(qtbot, loaded, QInputDialog)
    focused = question.focusWidget()
    assert focused is not None
    qtbot.keyClick(focused, "3")
    assert question.intValue() == 95
    question.reject()


def test_a_file_that_waits_for_a_run_is_given_up_with_it(
    qtbot: QtBot, loaded: MainWindow, cpu: FakeCpu, tmp_path: Path
) -> None:
    cpu.go.clear()
    first, second = tmp_path / "first.png", tmp_path / "second.png"
    for path, names in ((first, "first.png"), (second, "first.png and second.png")):
        press(qtbot, loaded, "Ctrl+S")  # the second time the run is under way already
        save_as(qtbot, loaded, path)
        said = f"Saving {names} when this run is done; Esc stops both."
        assert loaded.statusBar().currentMessage() == said
    qtbot.waitUntil(cpu.entered.is_set)
    loaded.close()
    box = dialog(qtbot, loaded, QMessageBox)
    assert "first.png and second.png: to be written when the run is done." in box.informativeText()
    box.reject()
    press(qtbot, loaded, "Esc")
    said = "second.png is not saved: the run was stopped."
    wait_until(qtbot, lambda: loaded.statusBar().currentMessage() == said)

    press(qtbot, loaded, "Ctrl+S")
    save_as(qtbot, loaded, first)
    loaded.session.set_filter("mean")
    press(qtbot, loaded, "F5")
    said = "first.png is not saved: the run was stopped."
    wait_until(qtbot, lambda: loaded.statusBar().currentMessage() == said)
    cpu.go.set()
    run(qtbot, loaded)
    settle(qtbot, loaded)
    assert not first.exists()
    assert not second.exists()
    cpu.error = AppError("No memory.")
    loaded.session.set_filter("median")
    press(qtbot, loaded, "Ctrl+S")
    answer(qtbot, dialog(qtbot, loaded, QMessageBox), "Run and Save…")
    save_as(qtbot, loaded, first)
    dialog(qtbot, loaded, ErrorDialog).reject()
    said = "first.png is not saved: the run failed."
    wait_until(qtbot, lambda: loaded.statusBar().currentMessage() == said)
    assert not first.exists()


@pytest.mark.parametrize("change", ["settings", "picture"])
def test_a_file_has_the_output_of_the_settings_at_the_time_of_saving(
    qtbot: QtBot, loaded: MainWindow, cpu: FakeCpu, tmp_path: Path, change: str
) -> None:
    pixels = loaded.session.subject.source.pixels
    cpu.go.clear()
    path = tmp_path / "out.png"
    loaded.session.set_filter("mean")
    press(qtbot, loaded, "Ctrl+S")
    save_as(qtbot, loaded, path)
    qtbot.waitUntil(cpu.entered.is_set)
    if change == "settings":
        loaded.session.set_filter("greyscale")
    else:
        load(qtbot, loaded, write_picture(tmp_path / "other.png", 2))
    cpu.go.set()
    qtbot.waitUntil(path.exists)
    settle(qtbot, loaded)
    np.testing.assert_array_equal(np.asarray(Pillow.open(path)), 255 - pixels)


def test_what_a_format_loses_is_asked_before_the_run(
    qtbot: QtBot, window: MainWindow, cpu: FakeCpu, tmp_path: Path
) -> None:
    pixels = np.random.default_rng(1).integers(0, 65536, (40, 48)).astype(np.uint16)
    Pillow.fromarray(pixels).save(tmp_path / "deep.png")
    load(qtbot, window, tmp_path / "deep.png")
    press(qtbot, window, "Ctrl+S")
    choose_files(dialog(qtbot, window, QFileDialog), tmp_path / "out.webp")
    assert "16-bit depth" in dialog(qtbot, window, QMessageBox).text()
    assert not cpu.requests
