"""The memory ladder: its model, and the window with counts of real kernels."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QFileDialog,
    QLabel,
    QPushButton,
    QTableWidget,
)
from pytestqt.qtbot import QtBot

from kernelscope.backends.emulator.tracing import Tracer
from kernelscope.base.errors import AppError
from kernelscope.bench.memory_ladder import CountedRung, Limiter, MemoryLadder, with_side
from kernelscope.bench.recorded import Recorded, Wanted
from kernelscope.engine.backend import Fact, FactGroup
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.timing import Stage
from kernelscope.gui.model.runs import Runs
from kernelscope.gui.tools.memory_ladder_window import MemoryLadderBars, MemoryLadderWindow
from kernelscope.gui.widgets.tables import BARS
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.schema.devices import Device
from kernelscope.traffic.gpus import GPUS, gpu
from tests.backends.emulated import needs_compiler
from tests.gui.helpers import FakeGpu, child, choose_files, dialog

pytestmark = [needs_compiler, pytest.mark.slow]

PIXELS = np.random.default_rng(5).integers(0, 256, (48, 64), np.uint8)


def request_of(name: str = "mean", side: int | None = None, **values: object) -> Request:
    return with_side(Request.create(Image.from_array(PIXELS), name, values), side)


def rung(request: Request, level: str) -> CountedRung:
    found = next(each for each in request.step.filter.levels(Device.GPU) if each.id == level)
    tracer = Tracer(threads=1)
    try:
        return CountedRung(found, tracer.count(request, found))
    finally:
        tracer.close()


def ladder_on(name: str, request: Request, *rungs: CountedRung) -> MemoryLadder:
    chosen = gpu(name)
    assert chosen is not None
    return MemoryLadder(rungs, chosen, Recorded.read().same(request, name))


def test_pictures_are_repeated_to_a_side() -> None:
    request = request_of(side=100)
    assert isinstance(request.source, Image)
    pixels = request.source.pixels
    assert pixels.shape == (100, 100)
    assert (pixels[48:96, 64:100] == PIXELS[:, :36]).all()
    colour = with_side(Request.create(Image.from_array(np.dstack([PIXELS] * 3)), "mean", {}), 70)
    assert colour.source.shape == (70, 70, 3)


def test_recorded_times_are_those_of_the_same_work_on_the_same_card() -> None:
    request = request_of("median", 512, size=3)
    counted = rung(request, "global")
    (step,) = ladder_on("H100", request, counted).steps
    assert step.figure is not None
    assert step.figure.setting == "Median, mask size 3, border reflect, 512×512"
    assert step.prediction is not None
    assert step.ratio == pytest.approx(step.figure.seconds / step.prediction.seconds)
    assert ladder_on("A100, 40 GB", request, counted).steps[0].figure is None
    other = request_of("median", 512, size=11)
    assert Recorded.read().same(other, "H100") == {}
    assert Recorded.read().same(request_of("median", 500, size=3), "H100") == {}


def test_far_times_are_explained_once_for_all_levels() -> None:
    request = request_of("median", 512, size=3)
    found = ladder_on("H100", request, rung(request, "global"), rung(request, "shared"))
    assert all(each.is_far for each in found.steps)
    (reason,) = found.reasons()
    assert reason.startswith("Global memory ")
    assert ", Shared memory " in reason
    assert "launch overhead" in reason


def test_the_table_has_bounds_and_traffic() -> None:
    request = request_of(side=64, size=3)
    table = ladder_on("H100", request, rung(request, "global"), rung(request, "shared")).table
    rows = {row[0]: row[1:] for row in table}
    assert rows[""] == ("Global memory", "Shared memory")
    assert rows["global loads"] == ("9.00", "1.33")
    assert rows["TIME ON H100"] == ()
    assert rows["least"] == rows["    loads and stores"]
    assert "recorded" not in rows


def test_counts_of_few_blocks_are_said_to_be_scaled() -> None:
    request = request_of("median", 3000, size=11)
    large, small = rung(request, "global"), rung(request_of("median", 64, size=3), "global")
    found = ladder_on("H100", request, large)
    assert found.steps[0].is_scaled
    assert found.remark().endswith("not all were run: Global memory.")
    rows = {row[0]: row[1:] for row in found.table}
    run, of, all_blocks = rows["blocks counted"][0].split()
    assert of == "of"
    assert int(run) < int(all_blocks.replace(",", ""))
    whole = ladder_on("H100", request, small)
    assert whole.remark() == ""
    assert whole.table[-1] == ("blocks counted", f"all {small.counts[0].scene.blocks}")


def done(request: Request, level: str, seconds: float, **changes: Any) -> Result:
    return Result(request, request.source, "gpu", level, (Stage("kernel", seconds),), **changes)


def test_times_of_this_session_belong_to_the_card_of_this_computer() -> None:
    request = request_of(side=64, size=3)
    runs = Runs()
    runs.add(done(request, "global", 0.1, first=True))  # cold
    assert runs.kernels_of(request) == {}
    runs.add(done(request, "global", 3e-4))
    for other in (request_of(side=64, size=5), request_of(side=65, size=3)):
        for _ in range(2):
            runs.add(done(other, "shared", 1.0))
    assert runs.kernels_of(request_of(side=64, size=3)) == {"global": 3e-4}
    rungs = rung(request, "global"), rung(request, "shared")
    published = gpu("H100")
    assert published is not None
    here = replace(published, name="A card", year=0)
    found = MemoryLadder(
        rungs, here, Recorded.read().same(request, "A card"), runs.kernels_of(request)
    )
    first, second = found.steps
    assert (first.seconds, second.seconds) == (3e-4, None)
    assert first.is_far
    assert "measured 300 µs" in first.text()
    rows = {row[0]: row[1:] for row in found.table}
    assert rows["measured"] == ("300 µs", "–")
    assert "    on" not in rows
    assert MemoryLadder(rungs, published, {}, runs.kernels_of(request)).steps[0].seconds is None


def test_a_single_block_has_little_to_do_while_it_waits() -> None:
    request = request_of(side=256, size=3)
    found = ladder_on("H100", request, rung(request, "single-block"), rung(request, "texture"))
    single, texture = found.reasons()
    assert single.startswith("Single block ")
    assert "one block at most" in single
    assert "launch overhead" in texture


def test_a_time_below_the_least_one_is_explained_as_such() -> None:
    request = request_of(side=64, size=3)
    here = replace(GPUS[0], year=0)
    counted = rung(request, "global")
    ladder = MemoryLadder([counted], here, {}, {"global": 1e-9})
    (reason,) = ladder.reasons()
    assert "faster than the least time" in reason
    prediction = ladder.steps[0].prediction
    assert prediction is not None
    is_memory = prediction.limit in (Limiter.MEMORY, Limiter.CACHE)
    assert ("a cache" in reason) == is_memory
    assert is_memory or str(prediction.limit) in reason


@pytest.fixture
def runs() -> Runs:
    """Return the runs of this session, which `window` shows."""
    return Runs()


@pytest.fixture
def window(qtbot: QtBot, runs: Runs) -> Iterator[MemoryLadderWindow]:
    background = Background()
    window = MemoryLadderWindow(background, runs)
    qtbot.addWidget(window)
    window.show()
    yield window
    window.close()
    background.close()


def rows(window: MemoryLadderWindow) -> dict[str, list[str]]:
    table = child(window, QTableWidget, "memoryLadderTable")
    cells = [
        [table.item(y, x).text() if table.item(y, x) else "" for x in range(table.columnCount())]
        for y in range(table.rowCount())
    ]
    return {row[0].strip(): row[1:] for row in cells}


def is_counting(bars: MemoryLadderBars) -> bool:
    return "counting" in bars.accessibleDescription()


def count(
    qtbot: QtBot, window: MemoryLadderWindow, request: Request, recorded: Recorded | None = None
) -> None:
    """Show a request, and wait for its counts."""
    window.show_request(request, recorded or Recorded())
    wait(qtbot, window)


def choose_card(window: MemoryLadderWindow, name: str) -> None:
    cards = child(window, QComboBox, "memoryLadderCard")
    cards.setCurrentIndex([each.name for each in GPUS].index(name))


def wait(qtbot: QtBot, window: MemoryLadderWindow) -> None:
    bars = child(window, MemoryLadderBars, "memoryLadderBars")
    qtbot.waitUntil(lambda: bool(bars.accessibleDescription()) and not is_counting(bars))


def test_levels_appear_and_the_card_can_be_changed(
    qtbot: QtBot, window: MemoryLadderWindow
) -> None:
    window.show_request(request_of(size=3), Recorded())
    bars = child(window, MemoryLadderBars, "memoryLadderBars")
    table = child(window, QTableWidget, "memoryLadderTable")

    def places() -> list[object]:
        header = bars.header()
        items = map(bars.topLevelItem, range(bars.topLevelItemCount()))
        names = [(item.text(0), bars.visualItemRect(item).getRect()) for item in items if item]
        columns = [header.sectionViewportPosition(each) for each in range(3)]
        return [names, columns, bars.geometry(), table.y()]

    QApplication.processEvents()  # lays out
    before_results = places()
    assert bars.accessibleDescription().splitlines()[0] == "Single block: counting…"
    wait(qtbot, window)
    QApplication.processEvents()
    assert places() == before_results, "nothing moves when results arrive"
    lines = bars.accessibleDescription().splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        *("Single block", "Global memory", "Shared memory", "Texture", "Tuned")
    ]
    before = rows(window)
    cards = child(window, QComboBox, "memoryLadderCard")
    assert cards.count() == len(GPUS)
    cards.setFocus()
    QTest.keyClick(cards, Qt.Key.Key_Home)
    after = rows(window)
    assert "TIME ON GeForce 210" in after
    assert "TIME ON H100" in before
    assert after["least"] != before["least"]
    assert after["global loads"] == before["global loads"]


def test_the_card_is_that_of_the_levels_until_another_is_chosen(
    qtbot: QtBot, window: MemoryLadderWindow
) -> None:
    """The ladder named one card and the window another, and half of its times were missing."""
    recorded = Recorded.read()
    request = request_of("mask", 512)
    shown = recorded.nearest(Wanted.by(request))
    window.show_request(request, recorded)
    cards = child(window, QComboBox, "memoryLadderCard")
    assert {figure.card for figure in shown.values()} == {cards.currentData().name}
    assert set(recorded.same(request, cards.currentData().name)) == set(shown)
    cards.setFocus()
    QTest.keyClick(cards, Qt.Key.Key_Home)
    window.show_request(request, recorded)
    assert cards.currentData() is GPUS[0]


def test_another_size_is_counted_anew(qtbot: QtBot, window: MemoryLadderWindow) -> None:
    count(qtbot, window, request_of("negative"))
    sides = child(window, QComboBox, "memoryLadderSide")
    assert sides.itemText(0) == "Open: 64×48"
    sides.setCurrentIndex(1)
    wait(qtbot, window)
    assert window.findChild(QComboBox, "memoryLadderSide").currentText() == "Repeated to 512×512"
    assert float(rows(window)["bytes of device memory"][0]) == 2.0


def test_the_same_work_is_counted_once(
    qtbot: QtBot, window: MemoryLadderWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    count(qtbot, window, request_of("laplace"))
    counted = rows(window)
    monkeypatch.setattr(Tracer, "count", None)  # it would fail
    window.show_request(request_of("laplace"), Recorded())  # opened again
    assert rows(window) == counted


def test_other_blocks_are_counted_anew(qtbot: QtBot, window: MemoryLadderWindow) -> None:
    request = request_of("laplace")
    loads = list[list[str]]()
    for block in (None, (8, 4)):
        options = replace(request.options, block=block)
        count(qtbot, window, replace(request, options=options))
        loads.append(rows(window)["blocks counted"])
    assert loads[0] != loads[1]


def test_work_that_was_refused_is_counted_again(
    qtbot: QtBot, window: MemoryLadderWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most likely it lacked a compiler, which is there by now."""

    def refuse(*_: object) -> None:
        raise AppError("There is no compiler.", "Install one.")

    bars = child(window, MemoryLadderBars, "memoryLadderBars")
    with monkeypatch.context() as patch:
        patch.setattr(Tracer, "count", refuse)
        count(qtbot, window, request_of("laplace"))
        assert "There is no compiler." in bars.accessibleDescription()
    count(qtbot, window, request_of("laplace"))
    assert "There is no compiler." not in bars.accessibleDescription()
    assert "global loads" in rows(window)


def test_the_table_is_copied_for_a_spreadsheet(qtbot: QtBot, window: MemoryLadderWindow) -> None:
    count(qtbot, window, request_of("negative"))
    QTest.mouseClick(child(window, QPushButton, "memoryLadderCopy"), Qt.MouseButton.LeftButton)
    lines = QGuiApplication.clipboard().text().splitlines()
    (first, *_) = csv.DictReader(lines, delimiter="\t")
    assert first["level"] == "Mapped host memory"
    assert first["counted: global stores (per pixel of the output)"] == "1.0"


def test_the_table_is_saved_as_numbers_with_all_that_they_are_about(
    qtbot: QtBot, window: MemoryLadderWindow, tmp_path: Path
) -> None:
    """It was the texts of the screen: units that change, marks, and no filter, size or card."""
    side = 128
    request, recorded = request_of("median", side, size=3), Recorded.read()
    count(qtbot, window, request, recorded)
    choose_card(window, "H100")
    QTest.mouseClick(child(window, QPushButton, "memoryLadderSave"), Qt.MouseButton.LeftButton)
    choose_files(dialog(qtbot, window, QFileDialog), tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as file:
        lines = {line["level"]: line for line in csv.DictReader(file)}
    figure = recorded.same(request, "H100")["global"]
    line = lines["Global memory"]
    about = ("filter", "settings", "width (px)", "height (px)", "channels", "card")
    assert [line[name] for name in about] == [
        *("Median", "3×3; reflect border", str(side), str(side), "1", "H100")
    ]
    assert float(line["recorded: time (s)"]) == pytest.approx(figure.seconds)
    assert line["recorded: day"] == figure.date
    bound = float(line["bound: least time (s)"])
    assert bound == float(line[f"bound: {line['bound: set by']} (s)"])
    assert float(line["recorded: time / least time"]) == pytest.approx(figure.seconds / bound)
    loads = float(line["counted: global loads (per pixel of the output)"])
    assert f"{loads:.2f}" == rows(window)["global loads"][list(lines).index("Global memory")]
    texts = {"filter", "settings", "card", "level", "bound: set by", "recorded: day"}
    for each in lines.values():
        numbers = [text for name, text in each.items() if text and name not in texts]
        assert all(float(number) >= 0 for number in numbers)


def test_sizes_with_recorded_times_are_offered_and_else_the_nearest_is_named(
    qtbot: QtBot, window: MemoryLadderWindow
) -> None:
    """Times of the mean on one card were recorded at 2048×2048 only, which the list had not."""
    recorded = Recorded.read()
    assert recorded.sizes(request_of(size=3), "H200") == [(2048, 2048)]
    count(qtbot, window, request_of("median", size=3), recorded)
    choose_card(window, "H100")
    sides = child(window, QComboBox, "memoryLadderSide")
    remarks = child(window, QLabel, "memoryLadderRemarks")
    wanted = "No time is recorded on H100 at 64×48; the nearest size with one is 128×128."
    assert wanted in remarks.text()
    assert sides.findText("Repeated to 2048×2048") > 0
    sides.setCurrentIndex(sides.findText("Repeated to 128×128"))
    wait(qtbot, window)
    assert "No time is recorded" not in remarks.text()
    assert "recorded" in rows(window)


class OwnCard(FakeGpu):
    """A GPU whose last facts, which are slow, are not waited for."""

    def facts(self) -> Iterator[FactGroup]:
        facts = {
            "Name": "NVIDIA A card", "Compute capability": "8.9", "Multiprocessors": "10",
            "CUDA cores": "1,280 (128 per multiprocessor)", "Highest clock": "2,000",
        }  # fmt: skip
        yield FactGroup("Device", tuple(Fact(*each) for each in facts.items()))
        yield FactGroup("Memory", (Fact("Theoretical bandwidth", "200", "GB/s"),))
        raise AssertionError


def test_the_card_of_this_computer_is_offered_first_and_has_times_of_this_session(
    qtbot: QtBot, window: MemoryLadderWindow, runs: Runs
) -> None:
    request = request_of("negative")
    window.show_request(request, Recorded(), OwnCard())
    cards = child(window, QComboBox, "memoryLadderCard")
    qtbot.waitUntil(lambda: cards.count() == len(GPUS) + 1)
    assert cards.currentText() == "This computer: NVIDIA A card"
    wait(qtbot, window)
    assert "TIME ON NVIDIA A card" in rows(window)
    assert "measured" not in rows(window)
    for _ in range(2):  # the first one is cold
        runs.add(done(request, "global", 2e-3))
    window.refresh()
    assert "2.00 ms" in rows(window)["measured"]
    cards.setCurrentIndex(3)
    window.show_request(request, Recorded(), OwnCard())
    wait(qtbot, window)
    assert (cards.count(), cards.currentIndex()) == (len(GPUS) + 1, 3)


def refuse(monkeypatch: pytest.MonkeyPatch, refused: str) -> None:
    count = Tracer.count

    def counted(self: Tracer, request: Request, level: object, *more: object) -> object:
        if getattr(level, "id", "") == refused:
            raise AppError("That reads too often.", "Choose a smaller picture.")
        return count(self, request, level, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(Tracer, "count", counted)


def test_work_without_end_is_refused_level_by_level(
    qtbot: QtBot, window: MemoryLadderWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, "global")
    count(qtbot, window, request_of("negative"))
    text = child(window, MemoryLadderBars, "memoryLadderBars").accessibleDescription()
    assert "Global memory: That reads too often. Choose a smaller picture." in text
    assert "Uncoalesced: at least" in text


def test_a_level_without_a_bar_does_not_shorten_the_others(
    qtbot: QtBot, window: MemoryLadderWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, "single-block")
    count(qtbot, window, request_of(side=256, size=3), Recorded.read())
    bars = child(window, MemoryLadderBars, "memoryLadderBars")
    assert "Single block: That reads too often." in bars.accessibleDescription()
    items = [bars.topLevelItem(row) for row in range(bars.topLevelItemCount())]
    drawn = [item.data(2, BARS) for item in items if item is not None]
    places = [place for each in drawn if each for _, *ends in each for place in ends if place]
    assert max(places) == 1
    assert len(places) > 4, "bounds and recorded times"
    steps = window.ladder().steps
    figures = [each.figure if each.prediction is not None else None for each in steps]
    assert sum(each is not None for each in figures) > 2
    for item, figure in zip(items, figures, strict=True):
        tip = item.toolTip(2) if item is not None else ""
        words = (figure.setting, figure.machine, figure.date) if figure is not None else ()
        assert all(each in tip for each in words)
        assert bool(tip) is bool(words)


def test_closing_gives_up_and_a_filter_without_kernels_is_refused(
    qtbot: QtBot, window: MemoryLadderWindow
) -> None:
    window.show_request(request_of(size=3), Recorded())
    window.reject()
    with pytest.raises(AppError, match="no kernel"):
        window.show_request(request_of("gaussian_noise"), Recorded())
