"""The contact sheet follows the window; a click adopts, two pins are compared."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QSpinBox
from pytestqt.qtbot import QtBot

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import AppError
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.slices import picture_of
from kernelscope.engine.step import Step
from kernelscope.engine.steps import prepared
from kernelscope.engine.sweep import Cell
from kernelscope.gui.model.display import Arrangement, Display
from kernelscope.gui.tools import contact_sheet
from kernelscope.gui.tools.contact_sheet import ContactSheet, detail
from kernelscope.gui.tools.picture_pair import BlindDialog
from kernelscope.gui.viewer.pair_view import PairView
from kernelscope.gui.widgets import tool_window
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.widgets.tiles import image_of
from kernelscope.gui.window import menus, runner
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.image import Image
from kernelscope.schema.samples import Kind
from tests.gui.helpers import FakeCpu, child, due_timers, load
from tests.patience import PATIENCE

SIDE = 64


@pytest.fixture
def real(qtbot: QtBot, tmp_path: Path, opens_slowly: None) -> Iterator[MainWindow]:
    """A window with the real CPU, and a noisy picture of which the truth is known."""
    settings = Settings(tmp_path / "settings.json")
    settings.set_text("live", "off")
    window = MainWindow({"cpu": CpuBackend()}, settings)
    window.resize(1000, 700)
    window.show()
    qtbot.waitExposed(window)
    y, x = np.mgrid[:SIDE, :SIDE] / SIDE
    clean = (120 + 40 * np.sin(7 * x + 4 * y)).astype(np.uint8)
    noise = np.random.default_rng(4).normal(0, 12, clean.shape)
    noisy = (clean + noise).clip(1, 254).astype(np.uint8)
    Pillow.fromarray(noisy).save(tmp_path / "noisy.png")
    load(qtbot, window, tmp_path / "noisy.png")
    window.session.set_filter("mean")
    window.session.subject.set_reference(Image.from_array(clean, "clean"))
    yield window
    window.close()
    window.deleteLater()


@pytest.fixture
def mean(loaded: MainWindow) -> MainWindow:
    """Return a window with a processor under control, a picture and the mean."""
    loaded.session.set_filter("mean")
    return loaded


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("sigma", [7.0, None])  # another one than the form has; the same
def test_tiles_wait_for_settings_that_are_estimated(
    qtbot: QtBot,
    window: MainWindow,
    picture: Path,
    cpu: FakeCpu,
    monkeypatch: pytest.MonkeyPatch,
    live: bool,
    sigma: float | None,
) -> None:
    """They had defaults, which the settings showed as those of the picture, until it was done."""
    may, begun = threading.Event(), threading.Event()
    wanted: list[Request] = []

    def estimated(request: Request, names: Sequence[str]) -> dict[str, float]:
        wanted.append(request)
        begun.set()
        assert may.wait(PATIENCE)
        numbers = {name: request.step.parameters[name] for name in names}
        return numbers if sigma is None else {**numbers, "sigma": sigma}

    monkeypatch.setattr(runner, "estimate", estimated)
    load(qtbot, window, picture)
    window.session.live = live
    window.session.set_filter("mean")
    sheet = _opened(window)
    qtbot.waitUntil(lambda: _complete(sheet) and window.runner.tasks.current is None)
    window.session.set_filter("nlm")
    qtbot.waitUntil(lambda: begun.is_set() and "Estimating" in sheet.note.text())
    qtbot.waitUntil(lambda: not due_timers(sheet))
    assert not any(tile.isVisible() for tile in sheet.tiles)
    may.set()
    qtbot.waitUntil(lambda: _complete(sheet) and sheet.tiles[0].isVisible())
    of_nlm = [each.step for each in cpu.requests if each.step.filter.id == "nlm"]
    found = {step.parameters["sigma"] for step in of_nlm}
    assert found == {sigma or wanted[0].step.parameters["sigma"]}
    assert len(wanted) == 1


def test_settings_that_cannot_be_estimated_are_an_error_on_the_sheet(
    qtbot: QtBot, window: MainWindow, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def estimated(request: Request, names: Sequence[str]) -> dict[str, float]:
        raise AppError("No room.")

    monkeypatch.setattr(runner, "estimate", estimated)
    load(qtbot, window, picture)
    window.session.set_filter("nlm")
    sheet = _opened(window)
    qtbot.waitUntil(lambda: sheet.note.text() == "No room.")


def _opened(window: MainWindow) -> ContactSheet:
    window.actions_["contactSheet"].trigger()
    sheet = window.companions.contact_sheet
    assert sheet is not None
    return sheet


def _sheet(qtbot: QtBot, window: MainWindow) -> ContactSheet:
    sheet = _opened(window)
    _settled(qtbot, sheet)
    return sheet


def _settled(qtbot: QtBot, sheet: ContactSheet) -> None:
    qtbot.waitUntil(lambda: any("best" in tile.text for tile in sheet.tiles if tile.isVisible()))


def test_the_sheet_fits_the_screen(
    qtbot: QtBot, real: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = QSize(1280, 720).boundedTo(real.screen().availableSize())
    monkeypatch.setattr(tool_window, "_FRAME", room - QSize(700, 560))
    assert _sheet(qtbot, real).size() == QSize(700, 560)


@pytest.mark.smoke
def test_nine_values_have_their_results_times_and_figures_and_a_click_adopts_one(
    qtbot: QtBot, real: MainWindow
) -> None:
    sheet = _sheet(qtbot, real)
    assert [tile.value for tile in sheet.tiles] == [3, 5, 7, 9, 11, 13, 15, 17, 19]
    focused = sheet.focusWidget()
    assert isinstance(focused, contact_sheet.SheetTile)
    assert "current" in focused.marks, "where the keyboard begins"
    source = real.session.subject.source
    assert isinstance(source, Image)
    backends = {"cpu": CpuBackend()}
    for tile in sheet.tiles:
        result = execute(Request.create(source, "mean", {"size": tile.value}), backends)
        grey = tile.image.convertToFormat(tile.image.Format.Format_Grayscale8)
        for y, x in ((0, 0), (31, 17), (SIDE - 1, SIDE - 1)):
            assert grey.pixelColor(x, y).red() == result.image.pixels[y, x]
        assert "dB" in tile.text
        assert "one run" in tile.text or "first run" in tile.text
    backends["cpu"].close()
    assert "Click or Return adopts" in sheet.note.text()
    best = [tile for tile in sheet.tiles if "best" in tile.text]
    assert [tile.psnr for tile in best] == [max(tile.psnr or 0 for tile in sheet.tiles)]

    qtbot.mouseClick(sheet.tiles[2], Qt.MouseButton.LeftButton)
    assert child(real, QSpinBox, "sizeBox").value() == 7
    qtbot.waitUntil(lambda: [t.value for t in sheet.tiles if "current" in t.text] == [7])
    QTest.keyClick(sheet.tiles[3], Qt.Key.Key_Return)
    assert child(real, QSpinBox, "sizeBox").value() == 9


def test_the_best_is_marked_once_all_have_a_figure(
    qtbot: QtBot, real: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked: list[bool] = []
    show = contact_sheet.SheetTile.show_cell

    def showing(tile: contact_sheet.SheetTile, cell: Cell, display: Display) -> None:
        show(tile, cell if cell.index != 4 or lets_all else replace(cell, score=None), display)
        marked.extend("best" in each.text for each in sheet.tiles)

    lets_all = False
    monkeypatch.setattr(contact_sheet.SheetTile, "show_cell", showing)
    sheet = _opened(real)
    qtbot.waitUntil(lambda: "No best one: some have no figure" in sheet.note.text())
    assert not any("best" in tile.text for tile in sheet.tiles)
    lets_all = True
    sheet.compute(anew=True)
    qtbot.waitUntil(lambda: sum("best" in tile.text for tile in sheet.tiles) == 1)
    assert marked
    assert not any(marked)


def test_a_tile_that_is_adopted_stays_and_the_second_time_comes_to_the_middle(
    qtbot: QtBot, real: MainWindow
) -> None:
    sheet = _sheet(qtbot, real)
    sheet.activateWindow()
    qtbot.waitUntil(sheet.isActiveWindow)
    sheet.tiles[7].setFocus()
    before = [tile.value for tile in sheet.tiles]
    QTest.keyClick(sheet.tiles[7], Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: [t.value for t in sheet.tiles if "current" in t.text] == [17])
    assert [tile.value for tile in sheet.tiles] == before
    assert all(tile.psnr is not None for tile in sheet.tiles)
    QTest.keyClick(sheet.tiles[7], Qt.Key.Key_Return)
    assert sheet.tiles[7].value != 17
    assert [tile.value for tile in sheet.tiles if tile.hasFocus()] == [17]


def test_values_that_stay_keep_their_results(qtbot: QtBot, mean: MainWindow, cpu: FakeCpu) -> None:
    """All tiles waited again after one was adopted."""
    mean.session.set_values("mean", {"size": 21})
    sheet = _opened(mean)
    qtbot.waitUntil(lambda: _complete(sheet) and mean.runner.tasks.current is None)
    assert cpu.requests[0].step.parameters["size"] == 21, "the current value is the first"
    adopted = sheet.tiles[6].value
    kept = {tile.value: tile.text.removesuffix(", current") for tile in sheet.tiles}
    QTest.keyClick(sheet.tiles[7], Qt.Key.Key_P)
    pinned = sheet.tiles[7].value
    cpu.requests.clear()
    cpu.go.clear()
    qtbot.mouseClick(sheet.tiles[6], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: [t.value for t in sheet.tiles if "current" in t.text] == [adopted])
    assert not [each for each in cpu.requests if each.region is not None]
    qtbot.mouseClick(sheet.tiles[6], Qt.MouseButton.LeftButton)
    still = [tile for tile in sheet.tiles if tile.value in kept]
    assert len(still) > 5
    assert all(tile.picture is not None for tile in still)
    assert [tile.value for tile in sheet.tiles if "pinned" in tile.text] == [pinned]
    cpu.go.set()
    qtbot.waitUntil(lambda: _complete(sheet) and mean.runner.tasks.current is None)
    of_sheet = [each for each in cpu.requests if each.region is not None]
    assert not {each.step.parameters["size"] for each in of_sheet} & kept.keys()


def test_a_tile_shows_pixels_one_to_one(qtbot: QtBot, real: MainWindow) -> None:
    """In 200×150 pixels of the screen, 320×240 of a picture showed less noise than there is."""
    sheet = _sheet(qtbot, real)
    tile = sheet.tiles[0]
    stripes = np.zeros((240, 320), np.uint8)
    stripes[:, ::2] = 255
    tile.image = image_of(stripes, QImage.Format.Format_Grayscale8)
    sheet.resize(sheet.minimumSizeHint())
    tile.resize(tile.minimumSizeHint())
    middle = tile.grab().toImage().copy(tile.width() // 2 - 10, 40, 20, 1)
    found = [middle.pixelColor(x, 0).red() for x in range(20)]
    assert found in ([0, 255] * 10, [255, 0] * 10)


def test_tiles_say_which_part_they_show_and_time(
    qtbot: QtBot, real: MainWindow, tmp_path: Path
) -> None:
    """A time of 320×240 pixels looked like one of the picture, of which no tile named its part."""
    sheet = _sheet(qtbot, real)
    (tile, *_) = sheet.tiles
    assert "for this part" not in tile.text
    tile.resize(SIDE + 8, SIDE + 200)
    assert tile.part == ""
    tile.resize(2 * SIDE + 8, 2 * SIDE + 200)
    assert tile.part == "2×"
    noise = np.random.default_rng(4).integers(0, 256, (400, 500), np.uint8)
    Pillow.fromarray(noise).save(tmp_path / "large.png")
    load(qtbot, real, tmp_path / "large.png")
    real.session.subject.set_reference(Image.from_array(noise, "same"))
    region = Region(80, 90, 240, 320)
    qtbot.waitUntil(lambda: all(each.picture is not None for each in sheet.tiles))
    qtbot.waitUntil(lambda: all(each._region == region for each in sheet.tiles))
    assert "320×240 of 500×400 pixels are computed and timed." in sheet.note.text()
    tile.resize(600, 400)
    for each in sheet.tiles:
        assert re.search(r"s for this part, (one|first) run", each.text)
        last = each.text.split(" · ")[-1]
        assert "for this part" in last, "the time is cut, where there is no room, and no score"
    assert tile.part == "320×240 at 90, 80"
    tile.resize(100 + 8, 50 + 2 * tile.fontMetrics().height() + 16)
    assert tile.part == "100×50 at 200, 175"
    assert tile.part in tile.text
    assert tile.accessibleName() == tile.text


def test_the_sheet_follows_the_settings(qtbot: QtBot, real: MainWindow) -> None:
    sheet = _sheet(qtbot, real)
    child(real, QSpinBox, "sizeBox").setValue(21)
    qtbot.waitUntil(lambda: 21 in [tile.value for tile in sheet.tiles])
    _settled(qtbot, sheet)
    assert [tile.value for tile in sheet.tiles if "current" in tile.text] == [21]
    real.session.set_filter("median")
    qtbot.waitUntil(lambda: "mask size" in sheet.tiles[0].caption.lower())
    _settled(qtbot, sheet)


def _complete(sheet: ContactSheet) -> bool:
    return len(sheet.tiles) == 9 and all(tile.picture is not None for tile in sheet.tiles)


def test_tiles_say_what_they_wait_for(
    qtbot: QtBot,
    mean: MainWindow,
    cpu: FakeCpu,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contact_sheet, "_COMPILING_MS", 100)
    cpu.stage = "compile"
    cpu.go.clear()
    sheet = _opened(mean)
    qtbot.waitUntil(lambda: "compiling (first use only)…" in sheet.tiles[0].text)
    assert all("waiting…" in tile.text for tile in sheet.tiles[1:])
    cpu.stage = "compute"
    cpu.one.release()
    qtbot.waitUntil(lambda: "computing…" in sheet.tiles[1].text)
    assert sheet.tiles[0].picture is not None
    qtbot.waitUntil(lambda: not due_timers(sheet))
    assert "computing…" in sheet.tiles[1].text
    cpu.go.set()
    qtbot.waitUntil(lambda: _complete(sheet))


def test_an_error_leaves_no_tile_waiting(qtbot: QtBot, mean: MainWindow, cpu: FakeCpu) -> None:
    cpu.error = ValueError("a bug")
    sheet = _opened(mean)
    qtbot.waitUntil(lambda: sheet.note.text() == "a bug")
    assert all("not computed" in tile.text for tile in sheet.tiles)


def test_the_sheet_waits_for_a_run(qtbot: QtBot, mean: MainWindow, cpu: FakeCpu) -> None:
    """A change of the view would otherwise end a long run."""
    sheet = _opened(mean)
    qtbot.waitUntil(lambda: _complete(sheet))
    qtbot.waitUntil(lambda: mean.runner.tasks.current is None)
    cpu.go.clear()
    mean.runner.run()
    assert mean.runner.busy
    stopped: list[None] = []
    mean.runner.stopped.connect(lambda: stopped.append(None))
    child(mean, QSpinBox, "sizeBox").setValue(21)
    qtbot.waitUntil(lambda: "Waits" in sheet.note.text())
    assert [tile.value for tile in sheet.tiles if "waiting…" in tile.text] == [21, 23, 25, 27, 29]
    assert mean.runner.busy
    cpu.go.set()
    qtbot.waitUntil(lambda: _complete(sheet))
    assert not stopped
    assert "Waits" not in sheet.note.text()
    assert 21 in [tile.value for tile in sheet.tiles]


def test_a_run_ends_the_sheet_and_it_is_computed_afterwards(
    qtbot: QtBot, mean: MainWindow, cpu: FakeCpu
) -> None:
    cpu.go.clear()
    cpu.entered.clear()
    sheet = _opened(mean)
    qtbot.waitUntil(cpu.entered.is_set)
    finished: list[object] = []
    mean.runner.finished.connect(lambda result, _: finished.append(result))
    mean.runner.run()
    cpu.go.set()
    qtbot.waitUntil(lambda: _complete(sheet))
    assert len(finished) == 1


def test_pinned_results_can_be_compared_once_they_are_computed(
    qtbot: QtBot, cpu: FakeCpu, window: MainWindow, picture: Path
) -> None:
    """The buttons stayed grey, without a reason."""
    load(qtbot, window, picture)
    window.session.live = False
    window.session.set_filter("mean")
    cpu.go.clear()
    sheet = _opened(window)
    for tile in sheet.tiles[:2]:
        QTest.keyClick(tile, Qt.Key.Key_P)
    assert not sheet.swipe_button.isEnabled()
    assert "have to be computed" in sheet.swipe_button.toolTip()
    cpu.go.set()
    qtbot.waitUntil(lambda: _complete(sheet))
    assert sheet.swipe_button.isEnabled()


@pytest.mark.parametrize("factor", [1, 4])
def test_the_part_with_most_detail_is_computed_or_the_middle(factor: int) -> None:
    """Of a photograph of 12 megapixels, the middle was a plain saucer at all nine strengths."""
    height, width = 1000 * factor, 2000 * factor
    planes = np.full((height, width, 3), 90, np.uint8)
    seen = Region(10, 20, height - 10, width - 20)
    across, down = (seen.left + (seen.width - 320) // 2, seen.top + (seen.height - 240) // 2)
    assert detail(planes, seen) == Region(down, across, 240, 320)
    planes[:, : width // 4] = 250  # a single edge is no detail
    planes += np.random.default_rng(1).integers(0, 2, planes.shape, np.uint8)
    planes[700:860, 1600:1850, 1] = np.kron(np.eye(10, 10), np.full((16, 25), 99)) + 90
    found = detail(planes, seen)
    assert (found.height, found.width) == (240, 320)
    assert found.contains(Region(700, 1600, 160, 250))
    small = Region(10, 20, 300, 100)
    assert detail(planes, small) == Region(40, 20, 240, 100)


def test_tiles_name_their_distance_from_the_current_one(qtbot: QtBot, real: MainWindow) -> None:
    """Strengths from 84 to 200 % looked alike, and no tile said whether they were."""
    sheet = _sheet(qtbot, real)
    for current in (0, 2):
        if current:
            qtbot.mouseClick(sheet.tiles[current], Qt.MouseButton.LeftButton)
            qtbot.waitUntil(lambda: "current" in sheet.tiles[2].text)
        before = sheet.tiles[current].picture
        assert before is not None
        assert "Δ" not in sheet.tiles[current].text
        for tile in sheet.tiles:
            if tile is not sheet.tiles[current]:
                assert tile.picture is not None
                change = tile.picture.pixels.astype(float) - before.pixels
                share = 100 * np.sqrt((change**2).mean()) / 255
                found = re.search(r"Δ ([\d.]+) % · ", tile.text)
                assert found is not None
                assert float(found[1]) == pytest.approx(share, rel=0.05)
                assert "from the result of the current value" in tile.toolTip()


def test_pinned_results_are_compared(qtbot: QtBot, real: MainWindow) -> None:
    sheet = _sheet(qtbot, real)
    assert not sheet.swipe_button.isEnabled()
    assert sheet.swipe_button.toolTip().endswith("First pin two results: Shift+click, or P")
    qtbot.mouseClick(sheet.tiles[0], Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier)
    assert not sheet.blind_button.isEnabled()
    QTest.keyClick(sheet.tiles[4], Qt.Key.Key_P)
    assert sheet.swipe_button.isEnabled()
    assert "Shift" not in sheet.swipe_button.toolTip()
    qtbot.mouseClick(sheet.swipe_button, Qt.MouseButton.LeftButton)
    swipe = child(sheet, QDialog, "sheetSwipe")
    assert swipe.windowTitle() == "Mask size 3 px and Mask size 11 px"
    images = child(swipe, PairView, "images")
    assert images.view.panes.arrangement is Arrangement.SWIPE
    assert images.input.shown is sheet.tiles[0].picture
    assert images.output.shown is sheet.tiles[4].picture
    assert images.output.views[0].names == ("Mask size 3 px", "Mask size 11 px")
    images.move_probe(0, 0, 0)
    assert images.output.views[0].probe is not None
    values = [line.name for line in images.output.views[0].probe.lines]
    assert values[1:3] == ["mask size 3 px", "mask size 11 px"]
    qtbot.mouseClick(sheet.blind_button, Qt.MouseButton.LeftButton)
    blind = child(sheet, BlindDialog, "blindTest")
    assert blind.sides[0].image in (sheet.tiles[0].image, sheet.tiles[4].image)
    QTest.keyClick(sheet.tiles[8], Qt.Key.Key_P)  # a third takes the place of the first
    assert [tile.value for tile in sheet.tiles if "pinned" in tile.text] == [11, 19]
    sheet.close()  # and the window that compares its results
    qtbot.waitUntil(lambda: not sheet.findChildren(QDialog))


def test_a_pin_stays_when_another_filter_is_chosen(qtbot: QtBot, real: MainWindow) -> None:
    """It was lost without a word, so that no two filters could be compared."""
    real.session.set_filter("sliding_dct")
    real.session.set_values("sliding_dct", {"sigma": 5.0, "noise": "white"})
    sheet = _sheet(qtbot, real)
    assert sheet.tiles[4].caption == "Strength 100 %"
    QTest.keyClick(sheet.tiles[6], Qt.Key.Key_P)
    real.session.set_filter("mean")
    qtbot.waitUntil(lambda: "Mean" in sheet.tiles[0].caption)
    _settled(qtbot, sheet)
    captions = [tile.caption for tile in sheet.tiles]
    assert captions[:2] == ["Mean: mask size 3 px", "Mean: mask size 5 px"]
    pinned = sheet.tiles[8]
    assert pinned.caption == "Sliding DCT: σ 5 %, noise white, strength 140 %"
    assert pinned.marks == {"pinned"}
    source = real.session.subject.source
    assert isinstance(source, Image)
    backends = {"cpu": CpuBackend()}
    values = {"sigma": 5.0, "noise": "white", "strength": 140.0}
    expected = execute(Request.create(source, "sliding_dct", values), backends).image.pixels
    backends["cpu"].close()
    assert pinned.picture is not None
    np.testing.assert_array_equal(pinned.picture.pixels, expected)

    QTest.keyClick(sheet.tiles[0], Qt.Key.Key_P)
    qtbot.mouseClick(sheet.swipe_button, Qt.MouseButton.LeftButton)
    swipe = child(sheet, QDialog, "sheetSwipe")
    assert swipe.windowTitle() == f"{pinned.caption} and Mean: mask size 3 px"
    qtbot.mouseClick(pinned, Qt.MouseButton.LeftButton)
    assert real.session.filter_id == "sliding_dct"
    assert {**real.session.values.numbers, **values} == real.session.values.numbers
    qtbot.waitUntil(lambda: sheet.tiles[0].caption.startswith("Sliding DCT: strength"))
    _settled(qtbot, sheet)
    assert [tile.caption for tile in sheet.tiles if "current" in tile.marks] == [
        "Sliding DCT: strength 140 %"
    ]
    pins = ["Mean", "Sliding DCT: strength 140 %"]
    assert sorted(tile.caption for tile in sheet.tiles if "pinned" in tile.marks) == pins
    real.session.set_values("sliding_dct", {"sigma": 9.0})
    qtbot.waitUntil(lambda: "Sliding DCT: noise sigma 5 %" in [t.caption for t in sheet.tiles])
    _settled(qtbot, sheet)
    (pinned,) = (tile for tile in sheet.tiles if "sigma" in tile.caption)
    qtbot.mouseClick(pinned, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not any("sigma" in tile.caption for tile in sheet.tiles))
    for tile in [each for each in sheet.tiles if "pinned" in each.marks]:
        QTest.keyClick(tile, Qt.Key.Key_P)
    sheet.compute(anew=True)
    assert sheet.tiles[8].caption == "Strength 280 %"


def test_filters_are_compared_at_their_estimates(qtbot: QtBot, real: MainWindow) -> None:
    real.session.set_filter("median")
    sheet = _sheet(qtbot, real)
    _vary(sheet, "")
    qtbot.waitUntil(lambda: _shown(sheet)[-1].picture is not None)
    captions = [tile.caption for tile in _shown(sheet)]
    assert captions == ["Median", "Collaborative filtering", "Sliding DCT", "NLM"]
    _settled(qtbot, sheet)
    nlm = sheet.tiles[3]
    assert nlm.picture is not None
    source = real.session.subject.source
    assert isinstance(source, Image)
    request, _ = prepared(Request(source, Step.create("nlm")))
    backends = {"cpu": CpuBackend()}
    np.testing.assert_array_equal(nlm.picture.pixels, execute(request, backends).image.pixels)
    backends["cpu"].close()
    before = nlm.picture
    qtbot.mouseClick(nlm, Qt.MouseButton.LeftButton)
    assert real.session.filter_id == "nlm"
    assert real.session.values.numbers["sigma"] == request.step.parameters["sigma"]
    assert "sigma" in real.session.automatic
    qtbot.waitUntil(lambda: "current" in nlm.marks)
    assert nlm.picture is before
    assert [tile.caption for tile in _shown(sheet)] == captions


def _shown(sheet: ContactSheet) -> list[contact_sheet.SheetTile]:
    return [tile for tile in sheet.tiles if tile.isVisible()]


def test_the_sheet_of_a_denoiser_varies_its_strength(qtbot: QtBot, real: MainWindow) -> None:
    real.session.set_filter("sliding_dct")
    real.session.set_values("sliding_dct", {"sigma": 5.0, "noise": "white"})
    sheet = _sheet(qtbot, real)
    assert sheet.parameters.currentData() == "strength"
    assert not any(tile.same for tile in sheet.tiles)
    real.session.set_values("sliding_dct", {"sigma": 0.0})
    qtbot.waitUntil(lambda: "makes no difference" in sheet.note.text())
    assert sheet.note.text().startswith("Strength ")
    first = next(tile for tile in sheet.tiles if "current" in tile.text)
    others = [tile for tile in sheet.tiles if tile is not first]
    assert not first.same
    assert all(f"same as {first.caption}" in tile.text for tile in others)


def test_equal_results_are_named_among_the_tiles_that_are_there(
    qtbot: QtBot, real: MainWindow
) -> None:
    """A kind of noise was described as a strength, which is a number."""
    real.session.set_filter("sliding_dct")
    real.session.set_values("sliding_dct", {"sigma": 0.0})
    sheet = _sheet(qtbot, real)
    _vary(sheet, "noise")
    qtbot.waitUntil(lambda: "makes no difference" in sheet.note.text())
    other = next(tile for tile in sheet.tiles if tile.same and tile.isVisible())
    qtbot.mouseClick(other, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "current" in other.marks)
    _vary(sheet, "strength")
    current = next(tile for tile in sheet.tiles if "current" in tile.marks)
    assert (current.caption, current.same) == ("Strength 100 %", "")
    assert current.picture is not None
    qtbot.waitUntil(lambda: "makes no difference" in sheet.note.text())
    assert {tile.same for tile in sheet.tiles} == {"", "same as Strength 100 %"}


def _vary(sheet: ContactSheet, name: str) -> None:
    index = sheet.parameters.findData(name)
    sheet.parameters.setCurrentIndex(index)
    sheet.parameters.activated.emit(index)


def test_filters_without_such_parameters_or_parts_say_so(qtbot: QtBot, real: MainWindow) -> None:
    sheet = _sheet(qtbot, real)
    real.session.set_filter("greyscale")
    qtbot.waitUntil(lambda: "no parameter" in sheet.note.text())
    assert not any(tile.isVisible() for tile in sheet.tiles)

    real.session.set_filter("ripple")
    said = "its pattern depends on the size of the picture"
    qtbot.waitUntil(lambda: said in sheet.note.text())
    assert not any(tile.isVisible() for tile in sheet.tiles)


def test_the_sheet_shows_a_slice_of_a_volume(
    qtbot: QtBot, real: MainWindow, tmp_path: Path
) -> None:
    voxels = np.random.default_rng(0).random((6, 20, 24), np.float32)
    np.save(tmp_path / "scan.npy", voxels)
    real.file_dialogs.open(tmp_path / "scan.npy")
    qtbot.waitUntil(lambda: real.session.kind is Kind.VOLUME)
    real.use_input_as_reference()
    real.session.set_filter("mri_nlm")
    real.companions.show_contact_sheet()
    sheet = real.companions.contact_sheet
    assert sheet is not None
    assert sheet.note.text().startswith("The sheet shows a picture or a slice: open one")
    assert sheet.parameters.y() < 2 * sheet.parameters.height()  # at the top, also without tiles
    real.session.set_filter("mean")
    qtbot.waitUntil(lambda: any(tile.isVisible() for tile in sheet.tiles))
    _settled(qtbot, sheet)
    shown = sheet._shown
    assert shown is not None
    assert (shown.image.height, shown.image.width) == (20, 24)
    real.volumes.canvas.choose_plane(2)
    real.volumes.canvas.go_to((2, 3, 5))
    qtbot.waitUntil(lambda: sheet._shown is not None and sheet._shown.image.height == 6)
    assert sheet._shown is not None
    assert (sheet._shown.image.height, sheet._shown.image.width) == (6, 20)
    np.testing.assert_array_equal(
        sheet._shown.image.pixels, picture_of(real.session.volumes.part, 2, 5).pixels
    )


def test_without_scores_the_note_names_the_way_to_a_reference(
    qtbot: QtBot, real: MainWindow, tmp_path: Path
) -> None:
    specks = np.full((SIDE, SIDE), 90, np.uint8)
    specks[::7, ::5] = 255
    Pillow.fromarray(specks).save(tmp_path / "specks.png")
    real.clear_reference()
    load(qtbot, real, tmp_path / "specks.png")
    sheet = _opened(real)
    qtbot.waitUntil(lambda: "No estimate of dB: noise is clipped" in sheet.note.text())
    ways = [menus.place(path) for path, id_ in menus.entries() if id_ == "chooseReference"]
    assert f"{ways[0]} > Choose" in sheet.note.text()


def test_a_window_that_closes_computes_no_sheet(qtbot: QtBot, real: MainWindow) -> None:
    sheet = _sheet(qtbot, real)
    sheet.touch()
    real.close()
    qtbot.waitUntil(lambda: not due_timers(sheet))  # an error in the loop would fail the test
    assert not sheet.isVisible()


@pytest.mark.parametrize("close", [QDialog.close, QDialog.reject])
def test_closing_stops_the_work(
    qtbot: QtBot,
    real: MainWindow,
    close: Callable[[QDialog], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Esc rejects the dialog, which sends no close event."""
    sheet = _sheet(qtbot, real)
    sheet.compute(anew=True)
    task = real.runner.tasks.current
    assert task is not None
    stopped: list[None] = []
    stop = task.cancel
    monkeypatch.setattr(task, "cancel", lambda: (stopped.append(None), stop()))
    close(sheet)
    assert stopped
    qtbot.waitUntil(lambda: real.runner.tasks.current is None)
