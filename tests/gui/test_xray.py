"""One pixel under X-ray: the model of a thread, and the window."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLabel, QPushButton, QSlider, QSpinBox, QTableWidget
from pytestqt.qtbot import QtBot

from kernelscope.backends.cuda.sources import source_files
from kernelscope.backends.emulator import tracing
from kernelscope.backends.emulator.checking import Finding, MistakeKind
from kernelscope.backends.emulator.tracing import Tracer, job_of
from kernelscope.backends.trial.protocol import COMPILE_ONLY, TrialJob
from kernelscope.base.errors import AppError, Cancelled
from kernelscope.engine.control import CancelToken
from kernelscope.engine.request import Request
from kernelscope.files import write_image
from kernelscope.filters import discover
from kernelscope.gui.model.trials import Version, work_for
from kernelscope.gui.model.xray import ThreadStep, Xray, compare
from kernelscope.gui.tools.code_view import CodeView
from kernelscope.gui.tools.xray_window import XrayView, XrayWindow
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from kernelscope.schema.devices import Device
from kernelscope.schema.levels import Level
from kernelscope.traffic.trace import OUTPUT, Event, MemorySpace
from tests.backends.emulated import needs_compiler
from tests.backends.quick_compiler import QuickCompiler
from tests.gui.helpers import Opener, child, hover, load, press
from tests.patience import PATIENCE

pytestmark = [needs_compiler, pytest.mark.slow]

SIDE = 64
PIXELS = np.random.default_rng(5).integers(0, 256, (SIDE, SIDE), np.uint8)


def request_of(name: str = "mean", **values: object) -> Request:
    return Request.create(Image.from_array(PIXELS), name, values)


def xray(level: str, x: int, y: int, request: Request | None = None) -> Xray:
    request = request or request_of(size=3)
    chosen = next(each for each in request.step.filter.levels(Device.GPU) if each.id == level)
    tracer = Tracer(threads=1)
    try:
        return Xray(*tracer.trace_pixel(request, chosen, x, y))
    finally:
        tracer.close()


def square(x: int, y: int) -> set[tuple[int, int]]:
    return {(x + t, y + s) for s in (-1, 0, 1) for t in (-1, 0, 1)}


@pytest.mark.parametrize(
    ("level", "space"),
    [
        ("global", MemorySpace.GLOBAL),
        ("shared", MemorySpace.SHARED),
        ("texture", MemorySpace.TEXTURE),
    ],
)
def test_a_thread_reads_the_cells_around_its_pixel(level: str, space: MemorySpace) -> None:
    found = xray(level, 40, 20)
    assert (found.warp, found.lane) == (20 % 8, 40 % 32)
    reads = [step for step in found.steps if step.event is Event.READ and step.space is space]
    assert {step.cell for step in reads} == square(40, 20)
    # The values are those of the picture, also where they came by way of shared memory.
    assert all(step.cell and step.value == PIXELS[step.cell[1], step.cell[0]] for step in reads)
    assert found.steps[-1].event in (Event.WRITE, Event.BARRIER)
    cells = found.cells(len(found.steps))
    assert {cell for cell, (_, where) in cells.items() if where is space} == square(40, 20)
    assert found.cells(0) == {}


def test_warp_and_block_of_a_tile() -> None:
    found = xray("shared", 40, 20)
    tile = {(x, y) for y in range(15, 25) for x in range(31, 64)}  # the last column folds back
    assert found.block_pixels == tile
    assert found.warp_pixels < found.block_pixels
    barriers = [n for n, step in enumerate(found.steps) if step.event is Event.BARRIER]
    assert found.next_step(0, Event.BARRIER) == barriers[0] + 1
    assert found.next_step(len(found.steps), Event.READ) == len(found.steps)
    rows = {row[0]: row[1:] for row in found.figures}
    assert rows["■ shared loads"] == ("9", "288", "2,304")
    assert rows["● global stores"] == ("1", "32", "256")


def test_cells_beyond_the_border_are_those_they_are_taken_from() -> None:
    reads = [step for step in xray("global", 0, 0).steps if step.event is Event.READ]
    assert len(reads) == 9
    assert {step.cell for step in reads} == {(0, 0), (1, 0), (0, 1), (1, 1)}


@pytest.fixture
def window(qtbot: QtBot) -> Iterator[XrayWindow]:
    background = Background()
    window = XrayWindow(background)
    qtbot.addWidget(window)
    window.show_request(request_of(size=3))
    window.show()
    yield window
    window.leave()
    window.close()
    background.close()


def traced(qtbot: QtBot, window: XrayWindow, text: str) -> QSlider:
    title = child(window, QLabel, "xrayTitle")
    qtbot.waitUntil(lambda: text in title.text())
    slider = child(window, QSlider, "xraySlider")
    assert isinstance(slider, QSlider)
    return slider


def test_nothing_is_traced_once_the_window_is_left(
    qtbot: QtBot, window: XrayWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread and its tracer would stay: a box has another value as it loses the focus."""
    qtbot.waitUntil(lambda: window.xray is not None)
    late = window._work(1, 1)
    begun: list[str] = []
    monkeypatch.setattr(window._background, "start", lambda topic, *_: begun.append(topic))
    window.reject()
    child(window, QSpinBox, "xrayColumn").setValue(3)
    assert not begun
    with pytest.raises(Cancelled):
        late()  # its thread had not come so far
    assert window._tracer is None
    window.show_request(request_of(size=3))
    assert begun == ["xray"]


def test_a_window_that_is_left_ends_its_trace(
    window: XrayWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaving waited for the end of the trace, however long it took."""
    begun, cancelled = threading.Event(), threading.Event()

    def trace_pixel(
        self: Tracer, request: Request, level: Level, *, x: int, y: int, token: CancelToken
    ) -> None:
        begun.set()
        deadline = time.monotonic() + PATIENCE
        while not token.cancelled and time.monotonic() < deadline:
            time.sleep(0.001)
        if token.cancelled:
            cancelled.set()
        token.check()

    monkeypatch.setattr(Tracer, "trace_pixel", trace_pixel)
    child(window, QSpinBox, "xrayColumn").setValue(5)
    assert begun.wait(PATIENCE)
    window.leave()
    assert cancelled.is_set()


def test_an_index_has_no_groups_of_digits() -> None:
    """``output[131,328]`` reads as two indices in the middle of C."""
    step = ThreadStep(Event.WRITE, MemorySpace.GLOBAL, "output", 131328, 7, None, None)
    assert step.text() == "writes ● global memory, output[131328]"
    finding = Finding(MistakeKind.INDEX, "mean", "", "output", 131328, 1, True, 0, 0, None, 1)
    assert "the index 131328," in str(finding)


def test_another_pixel_is_traced_and_drawn(qtbot: QtBot, window: XrayWindow) -> None:
    traced(qtbot, window, "lane 0")
    window.findChild(QSpinBox, "xrayColumn").setValue(5)
    traced(qtbot, window, "lane 5")
    view = window.findChild(XrayView)
    view.resize(800, 400)
    left, top, right, bottom = view.area
    row = child(window, QSpinBox, "xrayRow").value()
    assert left <= 4 <= 6 < right
    assert top < row - 1 < row + 1 < bottom
    # The pane is full of cells in which a number can be read.
    assert right - left == 800 // 40
    assert bottom - top == 400 // 40
    with_signs = view.grab().toImage()
    view.show_steps(0)
    assert view.grab().toImage() != with_signs
    table = window.findChild(QTableWidget)
    assert table.item(0, 1).text() == "9"


def test_a_click_on_a_cell_traces_its_thread(qtbot: QtBot, window: XrayWindow) -> None:
    traced(qtbot, window, "lane 0")
    view = window.findChild(XrayView)
    left, top, right, bottom = view.area
    side = min(view.width() / (right - left), view.height() / (bottom - top))
    x, y = (left + right) // 2 + 1, (top + bottom) // 2 - 1
    place = QPoint(
        round(view.width() / 2 + (x + 0.5 - (left + right) / 2) * side),
        round(view.height() / 2 + (y + 0.5 - (top + bottom) / 2) * side),
    )
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=place)
    traced(qtbot, window, f"lane {x % 32}")
    assert window.findChild(QSpinBox, "xrayColumn").value() == x
    assert window.findChild(QSpinBox, "xrayRow").value() == y


def test_steps_play_and_have_lines_from_the_pixel_that_is_wanted(
    qtbot: QtBot, window: XrayWindow
) -> None:
    slider = traced(qtbot, window, "mean_global")
    play = window.findChild(QPushButton, "xrayPlay")
    slider.setValue(slider.maximum() - 2)
    play.click()
    assert (play.text(), play.accessibleName()) == ("&Pause", "Pause")
    qtbot.waitUntil(lambda: not play.isChecked())
    assert slider.value() == slider.maximum()

    level = window.findChild(QComboBox, "xrayLevel")
    level.setCurrentText("Shared memory")
    slider = traced(qtbot, window, "mean_shared: block 1, 4, warp 0, lane 0")
    slider.setValue(0)
    QTest.mouseClick(child(window, QPushButton, "xrayNextLoad"), Qt.MouseButton.LeftButton)
    text = window.findChild(QLabel, "xrayStep").text()
    assert "reads ● global memory, source[" in text
    code = window.findChild(CodeView)
    assert code.accessibleName() == "Source of cells.cuh"
    start, stop = code._marked
    assert stop == start + 1
    assert f"cells.cuh:{stop}" in text
    slider.setFocus()
    QTest.keyClick(slider, Qt.Key.Key_Right)
    assert "writes ■ shared memory" in window.findChild(QLabel, "xrayStep").text()
    QTest.mouseClick(child(window, QPushButton, "xrayNextBarrier"), Qt.MouseButton.LeftButton)
    assert "waits at a barrier" in window.findChild(QLabel, "xrayStep").text()

    window.show_request(request_of(size=3), (9, 3))
    traced(qtbot, window, "block 0, 0, warp 3, lane 9")
    request = Request.create(Image.from_array(PIXELS), "mean", {"size": 5}, border=Border.VALID)
    window.show_request(request)
    traced(qtbot, window, "warp 6, lane 30")  # of an output that is four pixels smaller
    assert child(window, QSpinBox, "xrayColumn").maximum() == SIDE - 5


def test_filters_without_a_kernel_are_refused(window: XrayWindow) -> None:
    with pytest.raises(AppError, match="has no kernel"):
        window.show_request(request_of("gaussian_noise"))


@pytest.mark.smoke
def test_the_key_traces_the_pixel_under_the_pointer_and_the_menu_another(
    qtbot: QtBot, open_window: Opener, tmp_path: Path
) -> None:
    whole = open_window()
    write_image(Image.from_array(PIXELS), tmp_path / "noise.png")
    load(qtbot, whole, tmp_path / "noise.png")
    whole.session.set_filter("mean")
    hover(whole.pictures.canvas.input.views[0], QPointF(17.5, 9.2))
    QTest.keyClick(whole, Qt.Key.Key_X)
    assert whole.findChild(XrayWindow) is None, "it may be a letter of a path"
    press(qtbot, whole, "Ctrl+Shift+X")
    opened = whole.findChild(XrayWindow)
    place = [opened.findChild(QSpinBox, name).value() for name in ("xrayColumn", "xrayRow")]
    assert place == [17, 9]
    opened.close()
    hover(whole.pictures.canvas.input.views[0], None)
    whole.findChild(QAction, "xray").trigger()
    place = [opened.findChild(QSpinBox, name).value() for name in ("xrayColumn", "xrayRow")]
    assert place != [17, 9]
    assert opened.isVisible()
    qtbot.waitUntil(lambda: "steps" in opened.findChild(QLabel, "xrayTitle").text())
    opened.close()


def test_of_a_large_block_the_title_says_what_is_recorded(
    qtbot: QtBot, window: XrayWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "WHOLE_RECORDS", 1000)
    window.show_request(request_of(size=3), (40, 20))
    traced(qtbot, window, "steps")
    title = child(window, QLabel, "xrayTitle")
    assert title.text().endswith("only the warp is recorded, and copies to shared memory")
    table = child(window, QTableWidget, "xrayFigures")
    last = [table.item(table.rowCount() - 1, column).text() for column in range(4)]
    assert last[0] == "divergent branches"
    assert last[3] == ""


def test_two_levels_stand_side_by_side(qtbot: QtBot, window: XrayWindow) -> None:
    window.show_request(request_of(size=5), (40, 20))
    traced(qtbot, window, "steps")
    title = child(window, QLabel, "xrayTitle")
    second = window.findChild(XrayView, "xraySecondPicture")
    table = child(window, QTableWidget, "xrayFigures")
    assert not second.isVisible()
    assert table.columnCount() == 4
    level, other = (child(window, QComboBox, name) for name in ("xrayLevel", "xrayOther"))
    level.setCurrentIndex(level.findText("Shared memory"))
    other.setCurrentIndex(other.findText("Global memory"))
    qtbot.waitUntil(lambda: "Global memory" in title.text())
    assert title.text().endswith("for a pixel of the block: Shared memory 1.69, Global memory 25.")
    assert second.isVisible()
    assert table.columnCount() == 7
    head = [table.horizontalHeaderItem(column).text() for column in range(7)]
    assert head[1:4] == ["Shared\nthread", "Shared\nwarp", "Shared\nblock"]
    assert head[6] == "Global\nblock"
    rows = [[table.item(y, x).text() for x in range(7)] for y in range(table.rowCount())]
    assert [row[3::3] for row in rows if row[0] == "● global loads"] == [["432", "6,400"]]
    assert [row[3::3] for row in rows if row[0] == "■ shared loads"] == [["6,400", ""]]
    assert rows[-1][0] == "divergent branches"
    qtbot.waitUntil(lambda: not table.horizontalScrollBar().isVisible())
    assert table.horizontalHeader().length() <= table.viewport().width()
    slider = child(window, QSlider, "xraySlider")
    slider.setValue(slider.maximum() // 2)
    first, lines = child(window, QLabel, "xrayStep").text().splitlines()
    assert first.startswith(f"Step {slider.maximum() // 2} of ")
    assert lines.startswith("Global memory: Step 13 of 26: ")
    slider.setValue(slider.maximum())
    assert "Step 26 of 26" in child(window, QLabel, "xrayStep").text()
    slider.setValue(0)
    assert child(window, QLabel, "xrayStep").text() == ""
    other.setCurrentIndex(0)
    traced(qtbot, window, "steps")
    assert not second.isVisible()
    assert table.columnCount() == 4


def test_loads_are_shared_out_to_the_pixels_of_a_block() -> None:
    """A tile of 32x8 with its halo for 5x5, and four pixels of a thread at once."""
    global_, shared = xray("global", 40, 20), xray("shared", 40, 20)
    assert global_.loads_per_pixel == 9
    assert shared.loads_per_pixel == pytest.approx(34 * 10 / (32 * 8), rel=0.3)
    assert compare(global_, shared).startswith("Loads from the card's memory for a pixel")


def test_the_title_names_the_launch_and_the_level_whose_kernel_runs(
    qtbot: QtBot, window: XrayWindow
) -> None:
    window.show_request(request_of("nlm", search_radius=2, patch=3), (40, 20))
    traced(qtbot, window, "steps")
    title = child(window, QLabel, "xrayTitle")
    assert title.text().startswith("nlm_global_mean (launch 3 of 3): block ")
    window.show_request(request_of(size=3), (40, 20))
    qtbot.waitUntil(lambda: "mean_global" in title.text())
    assert "launch" not in title.text()

    window.show_request(request_of(size=5), (40, 20))
    level = child(window, QComboBox, "xrayLevel")
    traced(qtbot, window, "steps")
    assert "runs the kernel" not in title.text()
    level.setCurrentIndex(level.findText("Tuned"))
    traced(qtbot, window, "steps")
    last = "Tuned runs the kernel of level Shared memory, quicker at this size."
    assert title.text().splitlines()[-1] == last


@pytest.mark.parametrize("border", [Border.REFLECT, Border.VALID])
@pytest.mark.parametrize("level", ["global", "texture", "shared"])
def test_cells_of_a_padded_copy_are_those_of_the_picture(level: str, border: Border) -> None:
    """Below tuned, non-local means read a copy with a border around it, and from that a tile."""
    request = Request.create(
        Image.from_array(PIXELS), "nlm", {"search_radius": 2, "patch": 3}, border=border
    )
    found = xray(level, 30, 20, request)
    shift = 3 if border is Border.VALID else 0
    read = [(step.cell, step.value) for step in found.steps if step.cell is not None]
    around = {(30 + shift + t, 20 + shift + s) for s in range(-3, 4) for t in range(-3, 4)}
    assert {cell for cell, _ in read} <= around
    assert len({cell for cell, _ in read}) >= 25, "the cells of the search, and of patches"
    for (x, y), value in read:
        assert np.uint32(value).view(np.float32) == PIXELS[y, x]
    assert found.block_pixels >= {cell for cell, _ in read}


@pytest.mark.parametrize("level", ["global", "shared", "texture"])
def test_the_second_of_two_passes_reads_along_the_row_of_its_pixel(level: str) -> None:
    """Each sum that the first pass made of a column lies where its pixel does."""
    request = request_of("gaussian", sigma=1.0)
    found = xray(level, 30, 20, request)
    space = MemorySpace.SHARED if level == "shared" else MemorySpace.GLOBAL
    space = MemorySpace.TEXTURE if level == "texture" else space
    read = {step.cell for step in found.steps if step.space is space and step.cell}
    assert read == {(x, 20) for x in range(26, 35)}


@pytest.fixture
def tracer() -> Iterator[Tracer]:
    tracer = Tracer(QuickCompiler.find(), threads=1)
    yield tracer
    tracer.close()


SEVERAL_PASSES = "collaborative", "morphology", "sliding_dct"
FILTERS = [
    pytest.param(name, marks=() if name in SEVERAL_PASSES else pytest.mark.exhaustive)
    for name, spec in discover().items()
    if spec.levels(Device.GPU)
]


@pytest.mark.parametrize("name", FILTERS)
def test_every_level_shows_a_thread_of_the_pixel(qtbot: QtBot, tracer: Tracer, name: str) -> None:
    """It writes the pixel, or has its place where the launch with most of the work writes none."""
    request = request_of(name)
    pixel = 40, 20
    for level in request.step.filter.levels(Device.GPU):
        if not level.exact:
            continue
        found = Xray(*tracer.trace_pixel(request, level, *pixel))
        found.prepare()
        output = 20 * SIDE + 40
        written = [
            step.element
            for step in found.steps
            if step.array == OUTPUT and step.event is Event.WRITE
        ]
        plan = job_of(request, level).plan
        if plan.launches[found.scene.launch - 1].frame is None:
            assert any(0 <= output - first < 16 for first in written), level
        else:
            assert not written, level
            assert not found.writes_pixel
        cells = found.cells(len(found.steps))
        assert bool(cells) == (name != "ripple"), f"{level}: which computes from its place alone"
        assert found.loads_per_pixel >= 0
        view = XrayView()
        qtbot.addWidget(view)
        view.show_xray(found, pixel, PIXELS)
        view.show_steps(len(found.steps))
        left, top, right, bottom = view.area
        assert left <= pixel[0] < right, level
        assert top <= pixel[1] < bottom, level
        assert not view.grab().isNull()


# An edited kernel ---------------------------------------------------------------------


def version_of(old: str, new: str) -> Version:
    """Return the mean's kernel with a change, at the level global."""
    text = source_files("mean")[0].text
    assert text.count(old) >= 1
    request = request_of(size=3)
    (level,) = (each for each in request.step.filter.levels("gpu") if each.id == "global")
    work = work_for(request, level)
    launch = work.plan.plan.launches[0]
    job = TrialJob(COMPILE_ONLY, "mean.cu", text.replace(old, new), launch.kernel, launch.defines)
    return Version(job, work)


def test_an_edited_kernel_shows_its_wrong_pixel_or_its_trap(
    qtbot: QtBot, window: XrayWindow
) -> None:
    version = version_of("part += row[t];", "part += row[t + 1];  // mine")
    window.show_version(version, (20, 10))
    slider = traced(qtbot, window, "Your version of mean_global: block")
    xray = window.xray
    assert xray is not None
    read = [step.cell for step in xray.steps if step.cell is not None]
    assert read == [(x, y) for y in (9, 10, 11) for x in (20, 21, 22)], "one column too far right"
    own = [n for n, each in enumerate(xray.steps, 1) if each.place and each.place.file == "mean.cu"]
    slider.setValue(own[0])
    assert "// mine" in window.findChild(CodeView).toPlainText()
    assert not window.findChild(QComboBox, "xrayLevel").isEnabled()
    window._column.setValue(5)
    window._row.setValue(6)
    qtbot.waitUntil(lambda: window.xray not in (None, xray))
    window.show_request(request_of(size=3), (5, 6))
    traced(qtbot, window, "mean_global: block")
    assert window.findChild(QComboBox, "xrayLevel").isEnabled()
    slider.setValue(own[0])
    assert "// mine" not in window.findChild(CodeView).toPlainText()

    call = "    compute(source, output, g, Mean());"
    window.show_version(version_of(call, f"    __trap();\n{call}"), (20, 10))
    traced(qtbot, window, "reached a trap (SIGILL) and was stopped. Check every index")
    assert window.xray is None
    window.show_request(request_of(size=3), (5, 6))
    traced(qtbot, window, "mean_global: block")
