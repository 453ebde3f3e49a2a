"""Reading kernels: the files, the highlighting, the launch, the compiler's report."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QPalette, QTextDocument
from PySide6.QtWidgets import (
    QAbstractButton,
    QComboBox,
    QLabel,
    QSpinBox,
    QTabWidget,
    QToolButton,
)
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.backends.cuda.compiler import Nvrtc
from kernelscope.backends.cuda.inspection import plan, plans
from kernelscope.backends.cuda.sources import source_files
from kernelscope.base.paths import KERNELS
from kernelscope.engine.backend import Availability, Fact, FactGroup
from kernelscope.engine.context import RunContext
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.timing import LaunchReport, Resources
from kernelscope.gui.model.kernel_edits import Edits
from kernelscope.gui.model.ladder import RungPlace
from kernelscope.gui.tools import kernel_viewer as module
from kernelscope.gui.tools.code_view import CodeView, CudaHighlighter
from kernelscope.gui.tools.kernel_viewer import (
    GONE,
    HEADING,
    NEW,
    SAME,
    DifferenceView,
    KernelViewer,
)
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.form import Form
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.widgets.tables import FactTable
from kernelscope.gui.widgets.theme import added_fill, removed_fill
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.images.source import Source
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import GPU_LEVELS, Level
from tests.gui.helpers import FakeGpu, click, contrast
from tests.patience import PATIENCE

RESOURCES = Resources(40, 8, 16, 1024, 372)
KERNEL_FILTERS = [spec for spec in filters.discover().values() if spec.levels("gpu")]


def request(filter_id: str = "mean", level: str | None = "shared", **options: Any) -> Request:
    image = Image.from_array(np.zeros((100, 70, 3), np.uint8))
    return Request.create(image, filter_id, level=level, **options)


def report(kernel: str) -> LaunchReport:
    return LaunchReport("mean", kernel, (3, 13), (32, 8), 5120, RESOURCES, 0.75, "nvcc 13.0")


@pytest.fixture
def launches() -> dict[str, LaunchReport]:
    return {}


@pytest.fixture
def viewer(
    qtbot: QtBot,
    background: Background,
    launches: dict[str, LaunchReport],
    edits: Edits,
    opens_slowly: None,
) -> KernelViewer:
    viewer = KernelViewer(background, launches, edits)
    qtbot.addWidget(viewer)
    viewer.show_request(request())
    viewer.show()
    return viewer


def table(viewer: KernelViewer) -> str:
    return viewer.findChild(FactTable, "kernelFacts").text()


def current(viewer: KernelViewer) -> CodeView:
    view = viewer.findChild(QTabWidget, "kernelFiles").currentWidget()
    assert isinstance(view, CodeView)
    return view


# Contents -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("spec", KERNEL_FILTERS, ids=lambda spec: spec.id)
def test_every_kernel_is_found_in_its_source(
    qtbot: QtBot, background: Background, spec: FilterSpec, edits: Edits
) -> None:
    viewer = KernelViewer(background, {}, edits)
    qtbot.addWidget(viewer)
    for level in spec.levels("gpu"):
        viewer.show_request(request(spec.id, level.id))
        view = current(viewer)
        start, stop = view._marked
        assert stop > start + 2, level.id
        kernel = plan(request(spec.id, level.id), level).launch.kernel
        marked = view.toPlainText().split("\n")[start:stop]
        assert any(f"{kernel}(" in line for line in marked)
        assert marked[-1].startswith("}")


def marked_lines(qtbot: QtBot, viewer: KernelViewer) -> dict[str, list[str]]:
    """Return the lines that have links, by use; all of them are marked in their files."""
    uses, tabs = viewer.findChild(QLabel, "kernelUses"), viewer.findChild(QTabWidget, "kernelFiles")
    height = uses.height()
    qtbot.waitUntil(lambda: uses.text().startswith("Marked: "), timeout=60_000)
    assert uses.height() == height
    views = {tabs.tabText(n): tabs.widget(n) for n in range(tabs.count())}
    found = {}
    for part in uses.text().split("; "):
        links = re.findall(r'href="([^"]+):(\d+)"', part)
        assert all(int(line) - 1 in views[file]._lines for file, line in links)
        lines = [views[file].toPlainText().split("\n")[int(line) - 1] for file, line in links]
        found[re.findall("<b>(.+)</b>", part)[0]] = [each.strip() for each in lines]
    return found


def test_lines_that_use_the_memory_of_the_level_are_marked(
    qtbot: QtBot, viewer: KernelViewer
) -> None:
    assert marked_lines(qtbot, viewer) == {
        "writes shared memory": ["samples[s * Tile::PITCH + t] = first[s * pitch + t];"],
        "barrier": [
            "__syncthreads();",
            "__device__ inline void end(const Tile&) { __syncthreads(); }",
        ],
        "reads shared memory": [
            "__device__ inline Sample operator[](int t) const { return left[(t + REACH) * STEP]; }",
            "for (int t = -RADIUS; t <= RADIUS; ++t) part += row[t];",
        ],
    }
    viewer.show_request(request(level="texture"))
    (reads,) = marked_lines(qtbot, viewer).values()
    assert any("tex2D<TEXEL>(" in line for line in reads)
    viewer.show_request(request("mask", "constant"))
    assert list(marked_lines(qtbot, viewer)) == ["reads constant memory"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    [each for each in KERNEL_FILTERS if "shared" in {one.id for one in each.levels("gpu")}],
    ids=lambda spec: spec.id,
)
def test_every_shared_level_has_its_copy_barrier_and_reads_marked(
    qtbot: QtBot, viewer: KernelViewer, spec: FilterSpec
) -> None:
    viewer.show_request(request(spec.id))
    found = marked_lines(qtbot, viewer)
    assert list(found) == ["writes shared memory", "barrier", "reads shared memory"]
    assert all("__syncthreads()" in line for line in found["barrier"])
    assert all("=" in line for line in found["writes shared memory"])


def test_the_kernel_in_view_is_that_of_the_macros(viewer: KernelViewer) -> None:
    marked = {}
    for search in ("window", "image"):
        image = Image.from_array(np.zeros((100, 70), np.uint16))
        viewer.show_request(Request.create(image, "nlm", {"search": search}, level="tuned"))
        view = current(viewer)
        start, stop = marked[search] = view._marked
        assert "nlm_tuned(" in "".join(view.toPlainText().split("\n")[start:stop])
        assert not set(view.dimmed_lines) & set(range(start, stop))
        tabs = viewer.findChild(QTabWidget, "kernelFiles")
        assert "Dimmed lines are left out" in tabs.tabToolTip(tabs.currentIndex())
        dim = theme.quiet_text(view.palette()).name()
        dimmed = {
            each.cursor.blockNumber()
            for each in view.extraSelections()
            if each.format.foreground().color().name() == dim
        }
        assert dimmed == set(view.dimmed_lines)
        if search == "image":
            assert set(range(*marked["window"])) <= dimmed
    assert marked["image"][1] < marked["window"][0]


def test_files_are_the_source_its_headers_and_in_a_menu_those_that_the_launch_leaves_out(
    viewer: KernelViewer,
) -> None:
    tabs = viewer.findChild(QTabWidget, "kernelFiles")
    names = [tabs.tabText(place) for place in range(tabs.count())]
    assert names[0] == "mean.cu"
    assert len(set(names)) == len(names)
    for file in source_files("mean"):
        assert file.text == (KERNELS / file.name).read_text(encoding="utf-8")
    assert current(viewer).toPlainText() == source_files("mean")[0].text
    shown = {name for place, name in enumerate(names) if tabs.isTabVisible(place)}
    button = viewer.findChild(QToolButton, "kernelOtherFiles")
    assert {"mean.cu", "common.cuh", "levels.cuh"} <= shown
    assert [action.text() for action in button.menu().actions()] == [
        name for name in names if name not in shown
    ]
    assert button.text() == f"{len(names) - len(shown)} left out"
    (action,) = (action for action in button.menu().actions() if action.text() == "box.cuh")
    combo = viewer.findChild(QComboBox, "kernelOther")
    combo.setCurrentIndex(combo.findData("texture"))  # whose tab moves all others on
    action.trigger()
    assert tabs.tabText(tabs.currentIndex()) == "box.cuh"
    assert tabs.isTabVisible(tabs.currentIndex())
    assert set(current(viewer).dimmed_lines) == set(range(current(viewer).blockCount()))


def test_the_level_can_be_changed_in_place(qtbot: QtBot, viewer: KernelViewer) -> None:
    assert "Kernel\tmean_shared\n" in table(viewer)
    combo = viewer.findChild(QComboBox, "kernelLevel")
    combo.setCurrentIndex(combo.findData("texture"))
    assert "Kernel\tmean_texture\n" in table(viewer)
    assert "Reads the image through\ta texture" in table(viewer)
    start, _ = current(viewer)._marked
    assert current(viewer).textCursor().blockNumber() == start


@pytest.mark.parametrize("level", [None, "parallel"])
def test_a_choice_that_is_no_gpu_level_shows_the_fastest(
    viewer: KernelViewer, level: str | None
) -> None:
    viewer.show_request(request(level=level))
    fastest = filters.get("mean").levels("gpu")[-1]
    assert viewer.findChild(QComboBox, "kernelLevel").currentData() == fastest.id


@pytest.mark.smoke
def test_the_planned_launch_is_shown_before_any_run(viewer: KernelViewer) -> None:
    text = table(viewer)
    assert "Launch for 70×100, RGB, 8 bit" in text
    assert "Grid\t3 × 13 blocks" in text
    assert "Block\t32 × 8 threads" in text
    assert "SAMPLE_BITS\t8" in text
    state = viewer.findChild(QLabel, "kernelState")
    assert "Compile report has the registers" in state.text(), "without a GPU none comes with a run"
    assert "occupancy" in state.text()
    viewer._has_card = lambda: True
    viewer.show_request(request())
    assert "Not run on a GPU yet" in state.text()


def test_large_numbers_have_no_exponents(viewer: KernelViewer) -> None:
    image = Image.from_array(np.zeros((512, 512), np.uint8))
    viewer.show_request(Request.create(image, "nlm", {"search": "image"}))
    launch = table(viewer).split("Specialisation")[0]
    assert "e+" not in launch
    assert re.search(r"Arithmetic\t\d+(,\d{3})+ operations a sample", launch)


def test_grey_conversion_comes_before_the_kernel() -> None:
    level = next(level for level in GPU_LEVELS if level.id == "shared")
    grey = plan(request(grey=True), level).launch.shared_bytes
    assert plan(request(), level).launch.shared_bytes == 3 * grey


def test_a_run_shows_up(viewer: KernelViewer, launches: dict[str, LaunchReport]) -> None:
    launches["mean_global"] = report("mean_global")
    viewer.refresh()
    assert "Last run" not in table(viewer)
    launches["mean_shared"] = report("mean_shared")
    viewer.refresh()
    text = table(viewer)
    assert "Last run on the GPU" in text
    assert "Registers\t40 a thread" in text
    assert "Spilled registers\t8 bytes a thread" in text
    assert "Theoretical occupancy\t75 %" in text
    assert viewer.findChild(QLabel, "kernelState").text() == ""


def test_a_filter_without_a_kernel_says_so(viewer: KernelViewer) -> None:
    wanted = request()
    without = replace(wanted.step, filter=replace(wanted.step.filter, implementations={}))
    viewer.show_request(replace(wanted, step=without))
    assert "no CUDA kernel" in viewer.findChild(QLabel, "kernelState").text()


# The difference of two levels ---------------------------------------------------------


def compare_with(viewer: KernelViewer, level: str | None) -> DifferenceView | None:
    """Choose a level to compare with, by its keyboard-reachable list."""
    combo = viewer.findChild(QComboBox, "kernelOther")
    combo.setCurrentIndex(combo.findData(level))
    view = viewer.findChild(QTabWidget, "kernelFiles").currentWidget()
    return view if isinstance(view, DifferenceView) else None


def of_kind(view: DifferenceView, kind: str) -> list[str]:
    return [line.text.strip() for line in view.lines if line.kind == kind]


@pytest.mark.smoke
def test_the_difference_of_two_levels(qtbot: QtBot, viewer: KernelViewer) -> None:
    viewer.show_request(request("mask", "global"))
    view = compare_with(viewer, "constant")
    assert view is not None
    gone, new = of_kind(view, GONE), of_kind(view, NEW)
    assert any("mask_global" in line for line in gone)
    assert any("mask_constant" in line for line in new)
    assert any("in constant memory" in line for line in new), "a fact of the launch"
    assert not any("Block  " in line for line in (*gone, *new)), "alike"
    shown = view.toPlainText().split("\n")
    assert [line[:1] for line in shown if line.startswith(("-", "+"))].count("-") == len(gone)
    # Taking the lines that are new away gives the first kernel, and the other way round.
    text = source_files("mask")[0].text
    heading = next(n for n, line in enumerate(view.lines) if line.text == "// Kernel")
    for other in (GONE, NEW):
        kernel = [line.text for line in view.lines[heading + 1 :] if line.kind != other]
        assert "\n".join(kernel) in text
    bar = viewer.findChild(QTabWidget, "kernelFiles").tabBar()
    assert bar.tabText(0) == "Global memory → Constant memory"


def test_the_difference_is_coloured(qtbot: QtBot, viewer: KernelViewer) -> None:
    viewer.show_request(request("mask", "global"))
    view = compare_with(viewer, "shared")
    assert view is not None
    grounds: dict[int, list[QColor]] = {}
    for selection in view.extraSelections():
        number = selection.cursor.blockNumber()
        grounds.setdefault(number, []).append(selection.format.background().color())
    for number, line in enumerate(view.lines):
        found = grounds.get(number, [])
        if line.kind == SAME:
            assert found == []
        elif line.kind == GONE:
            assert found[0] == removed_fill(view.palette())
        elif line.kind == NEW:
            assert found[0] == added_fill(view.palette())
    words = [
        selection.cursor.selectedText()
        for selection in view.extraSelections()
        if selection.format.background().color() == added_fill(view.palette(), strong=True)
    ]
    assert "mask_shared" in words, "the words that differ stand out"
    view.setPalette(QPalette(QColor("#202020")))
    dark = [each.format.background().color().name() for each in view.extraSelections()]
    assert added_fill(view.palette()).name() in dark


def test_a_plan_of_several_kernels_shows_all(qtbot: QtBot, viewer: KernelViewer) -> None:
    image = Image.from_array(np.zeros((64, 64), np.uint8))
    wanted = Request.create(image, "nlm", {"search": "image"}, level="global")
    viewer.show_request(wanted)
    levels = {level.id: plans(wanted, level) for level in wanted.step.filter.levels("gpu")}
    view = compare_with(viewer, "tuned")
    assert view is not None
    count = max(len(levels["global"]), len(levels["tuned"]))
    assert count > 1
    headings = of_kind(view, HEADING)
    assert headings[:-1] == [f"// Launch {n} of {count}" for n in range(1, count + 1)]
    for each in levels["global"]:
        assert any(each.launch.kernel + "(" in line for line in of_kind(view, GONE))
    assert headings[-1] == "// Kernels"


def test_the_difference_follows_both_levels_and_goes(qtbot: QtBot, viewer: KernelViewer) -> None:
    tabs = viewer.findChild(QTabWidget, "kernelFiles")
    assert compare_with(viewer, "texture") is not None
    level = viewer.findChild(QComboBox, "kernelLevel")
    level.setCurrentIndex(level.findData("global"))
    view = tabs.currentWidget()
    assert isinstance(view, DifferenceView), "it stays in sight"
    assert any("mean_global" in line for line in of_kind(view, GONE))
    tabs.setCurrentIndex(1)
    level.setCurrentIndex(level.findData("shared"))
    assert not isinstance(tabs.currentWidget(), DifferenceView), "the source stays, too"
    assert tabs.tabText(0) == "Shared memory → Texture"
    viewer.show_request(request("median", "global"))
    assert tabs.tabText(0) == "Global memory → Texture", "another filter, the same levels"
    assert compare_with(viewer, None) is None
    assert all(not isinstance(tabs.widget(n), DifferenceView) for n in range(tabs.count()))
    same = compare_with(viewer, "global")
    assert same is not None
    assert {line.kind for line in same.lines} == {SAME, HEADING}


# The compiler's report ----------------------------------------------------------------


def test_compile_report(
    qtbot: QtBot, viewer: KernelViewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()

    def compiled(filter_id: str, launch: object) -> dict[str, Resources | None]:
        assert threading.current_thread() is not threading.main_thread()
        go.wait(PATIENCE)
        return {"sm_75": RESOURCES, "sm_90": RESOURCES, "sm_99": None}

    monkeypatch.setattr(module, "compile_report", compiled)
    monkeypatch.setattr(module, "reporter", lambda: "NVRTC 13.1")
    button = viewer.findChild(QAbstractButton, "compileReport")
    assert "for sm_75 (Turing) and sm_90 (Hopper) and see" in button.toolTip()
    button.setFocus()
    click(qtbot, viewer, "compileReport")
    assert not button.isEnabled()
    go.set()
    qtbot.waitUntil(lambda: "Compiled for sm_75 (Turing)\nCompiled by\tNVRTC 13.1" in table(viewer))
    assert "Compiled by\tNVRTC 13.1\nRegisters\t40" in table(viewer)
    assert "Compiled by\tNVRTC 13.1\nReport\tnone" in table(viewer)
    places = [table(viewer).index(f"Compiled for sm_{each}") for each in (90, 75)]
    assert places == sorted(places), "the generation of the recorded times is first"
    # 256 threads are 8 of 64 warps, whose 40 registers let 6 blocks in; 3 of 32 where it has half.
    assert "Occupancy, computed\t75 % of H100 and H200, as registers allow" in table(viewer)
    assert button.isEnabled()
    assert viewer.focusWidget() is button, "the keyboard is where it was"


def test_a_missing_compiler_is_explained(
    qtbot: QtBot, viewer: KernelViewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(self: object) -> str:
        raise RuntimeError("libnvrtc.so.13 not found")

    monkeypatch.setattr(Nvrtc, "version", version)
    click(qtbot, viewer, "compileReport")
    state = viewer.findChild(QLabel, "kernelState")
    qtbot.waitUntil(lambda: "needs NVRTC" in state.text())
    assert "pip install" in state.text()


# Copying ------------------------------------------------------------------------------


@pytest.mark.smoke
def test_copy(qtbot: QtBot, viewer: KernelViewer) -> None:
    click(qtbot, viewer, "copyButton")
    assert QGuiApplication.clipboard().text() == current(viewer).toPlainText()
    click(qtbot, viewer, "copyFactsButton")
    assert QGuiApplication.clipboard().text() == table(viewer)


def test_ctrl_c_copies_the_selected_rows(qtbot: QtBot) -> None:
    facts = FactTable("facts", "Facts")
    qtbot.addWidget(facts)
    facts.show()
    facts.set_group(FactGroup("A", (Fact("one", "1", "ms"), Fact("two", "2"))))
    facts.set_group(FactGroup("B", (Fact("three", "3"),)))
    facts.set_group(FactGroup("A", (Fact("one", "11", "ms"),)))
    assert facts.text() == "A\none\t11 ms\nB\nthree\t3"
    item: Any = facts.topLevelItem(1).child(0)
    facts.setCurrentItem(item)
    qtbot.keyClick(facts, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "three\t3"


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_facts_are_wrapped_and_not_cut(qtbot: QtBot, scale: float) -> None:
    facts = FactTable("facts", "Facts")
    qtbot.addWidget(facts)
    font = facts.font()
    font.setPointSizeF(scale * font.pointSizeF())
    facts.setFont(font)
    facts.set_group(FactGroup("A", (Fact("Grid", "128 × 256", "blocks"), Fact("Lane", "3"))))
    facts.show()
    line = facts.fontMetrics().height()

    def heights() -> list[int]:
        facts.doItemsLayout()
        heading: Any = facts.topLevelItem(0)
        return [facts.visualItemRect(heading.child(n)).height() for n in range(2)]

    facts.resize(40 * facts.fontMetrics().averageCharWidth(), 300)
    assert all(line <= height < 2 * line for height in heights())
    facts.resize(20 * facts.fontMetrics().averageCharWidth(), 300)
    wrapped, short = heights()
    assert wrapped >= 2 * line > short
    assert facts.hidden_height == 0
    facts.resize(facts.width(), 2 * line)
    shown = facts.viewport().height()
    heading: Any = facts.topLevelItem(0)
    whole = facts.visualItemRect(heading).height() + wrapped + short
    assert facts.hidden_height == whole - shown
    facts.set_group(FactGroup("A", (Fact("Kernel", "gaussian_shared_rows"), Fact("Lane", "3"))))
    wrapped, short = heights()
    assert wrapped >= 2 * line > short, "a name of a kernel"
    assert facts.text() == "A\nKernel\tgaussian_shared_rows\nLane\t3"


# Highlighting -------------------------------------------------------------------------


def kinds(text: str, palette: QPalette | None = None) -> list[list[tuple[str, str]]]:
    """Return (text, colour) of each highlighted stretch, line by line."""
    document = QTextDocument(text)
    highlighter = CudaHighlighter(document, palette or QPalette())
    colours = {
        style.foreground().color().name(): kind for kind, style in highlighter.formats.items()
    }
    found = []
    block = document.begin()
    while block.isValid():
        found.append(
            [
                (
                    block.text()[part.start : part.start + part.length],
                    colours[part.format.foreground().color().name()],
                )
                for part in block.layout().formats()
            ]
        )
        block = block.next()
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  int i = 0; // int", [("int", "type"), ("0", "number"), ("// int", "comment")]),
        ("#include <x.h>", [("#include", "preprocessor")]),
        ('s = "// no \\" int";', [('"// no \\" int"', "string")]),
        ("__global__ void f(float)", [("__global__", "cuda"), ("void", "type"), ("float", "type")]),
        ("__shared__ x[0x1Fu];", [("__shared__", "cuda"), ("0x1Fu", "number")]),
        ("return a / b * 1.5e-3f;", [("return", "keyword"), ("1.5e-3f", "number")]),
        ("const Weight* w = NO_MASK", [("const", "keyword"), ("Weight", "type")]),
        ("ColumnSums s[N]", [("ColumnSums", "type")]),
        ("integer int3x x2 RADIUS COUNT_of aWord", []),
        ("a /* b */ int", [("/* b */", "comment"), ("int", "type")]),
    ],
)
def test_tokens(qtbot: QtBot, text: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(text) == [expected]


def test_a_comment_over_several_lines(qtbot: QtBot) -> None:
    assert kinds("x /* int\n int \n int */ int") == [
        [("/* int", "comment")],
        [(" int ", "comment")],
        [(" int */", "comment"), ("int", "type")],
    ]


@pytest.mark.parametrize(("base", "text"), [("#ffffff", "#000000"), ("#1e1e1e", "#ffffff")])
def test_colours_are_readable_on_light_and_dark_and_in_a_difference(
    qtbot: QtBot, base: str, text: str
) -> None:
    palette = QPalette()
    palette.setColor(QPalette.ColorRole.Base, QColor(base))
    palette.setColor(QPalette.ColorRole.Text, QColor(text))
    highlighter = CudaHighlighter(QTextDocument(), palette)
    for ground in (base, added_fill(palette), removed_fill(palette)):
        for kind, style in highlighter.formats.items():
            assert contrast(style.foreground().color(), ground) >= 4.5, (kind, ground)


# The window ---------------------------------------------------------------------------


class Launching(FakeGpu):
    """Says which kernel it launched."""

    def run(self, request: Request, level: Level, context: RunContext) -> Source:
        context.log.launch = report(plan(request, level).launch.kernel)
        return super().run(request, level, context)


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Any) -> Iterator[MainWindow]:
    settings = Settings(tmp_path / "settings.json")
    gpu = Launching(Availability(True, "fake card"))
    window = MainWindow({"gpu": gpu, "cpu": gpu}, settings)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitExposed(window)
    window.find_gpu()
    qtbot.waitUntil(lambda: bool(window.companions.availability))
    yield window
    window._leaves = True  # a picture that no file has would be asked about
    window.close()


def test_ctrl_k_opens_the_viewer_also_without_a_picture_and_a_run_reaches_it(
    qtbot: QtBot, window: MainWindow
) -> None:
    window.session.set_filter("mean")
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    viewer = window.findChild(KernelViewer)
    assert viewer.isVisible()
    assert not viewer.isModal()
    viewer.close()
    window.session.set_filter("median")
    qtbot.keyClick(window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    assert window.findChildren(KernelViewer) == [viewer]
    assert viewer.isVisible()
    assert viewer.windowTitle() == "Kernel – Median"

    assert viewer is not None
    window.session.set_filter("mean")
    window.companions.show_kernel()
    window.file_dialogs.loaded.emit(Image.from_array(np.zeros((20, 30), np.uint8)))
    window.session.choose_place(RungPlace(Device.GPU, "global"))
    wished = replace(window.session.wished, repeat=3, memory_limit=64 << 20, block=(14, 18))
    window.session.set_options(wished)
    options = window.findChild(Form, "gpuOptions")
    assert options.findChild(QSpinBox, "repeat").value() == 3
    with qtbot.waitSignal(window.runner.finished) as done:
        window.runner.run()
    result, _ = done.args
    assert (result.request.options.repeat, result.request.options.memory_limit) == (3, 64 << 20)
    assert result.request.options.block == (14, 18)
    assert "blocks of 14×18" in window.runs.table.text()
    window.companions.show_kernel()
    assert "Block\t14 × 18 threads" in table(viewer)
    assert "Theoretical occupancy\t75 %\nCompiled by\tnvcc 13.0" in table(viewer)


def test_a_line_that_is_asked_for_before_the_file_is_seen_stays(qtbot: QtBot) -> None:
    view = CodeView("file.cu", "\n".join(map(str, range(2000))))
    qtbot.addWidget(view)
    view.show_place((1500, 1510))
    view.go_to_line(10)
    view.show()
    assert view.textCursor().blockNumber() == 10
