"""The bench in the window: choosing, measuring, cancelling, plots, exports, parity."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyqtgraph as pg
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPalette
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QCheckBox,
    QComboBox,
    QFileDialog,
    QFrame,
    QLabel,
    QLineEdit,
    QListWidget,
    QProgressBar,
    QPushButton,
    QSpinBox,
    QTreeWidget,
    QWidget,
)
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.base.errors import AppError
from kernelscope.base.paths import RESOURCES
from kernelscope.bench.charts import Chart, Plot, Selection, Series, chart, choices
from kernelscope.bench.data import Content, Data
from kernelscope.bench.parity import Parity
from kernelscope.bench.plan import Plan, Sweep
from kernelscope.bench.presets import PRESETS, QUICK_LOOK
from kernelscope.bench.recorded import entries
from kernelscope.bench.report import Report, load, save
from kernelscope.bench.rows import Row
from kernelscope.engine.backend import Availability
from kernelscope.engine.request import Request
from kernelscope.engine.worker import Job
from kernelscope.gui.tools import bench_window as module
from kernelscope.gui.tools.bench_charts import (
    ChartView,
    SeriesStyle,
    export,
    light,
    save_chart,
)
from kernelscope.gui.tools.bench_window import OWN_CHOICE, BenchWindow, ParityDialog
from kernelscope.gui.widgets.appearance import Appearance, Scheme, Stylist
from kernelscope.gui.widgets.messages import ErrorDialog
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.work.background import Background
from kernelscope.gui.work.tasks import Priority, Tasks
from kernelscope.images.image import Image
from kernelscope.schema.levels import colour
from tests.bench.made_up import row
from tests.bench.stand_in import StandIn
from tests.gui.helpers import FakeCpu, choose_files, click, counted, press
from tests.gui.helpers import load as load_picture
from tests.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("small_cache")

TINY = Plan(
    sweeps=(
        Sweep(
            filter="mean",
            parameters=({"size": 3},),
            data=tuple(Data(Content.NOISE, (side, side)) for side in (16, 32)),
        ),
    ),
    repeat=2,
    cold=False,
)


@pytest.fixture
def gpu() -> StandIn:
    return StandIn()


@pytest.fixture
def tasks(qtbot: QtBot, cpu: FakeCpu, gpu: StandIn) -> Iterator[Tasks]:
    tasks = Tasks({"gpu": gpu, "cpu": cpu})
    yield tasks
    cpu.go.set()
    tasks.close(5)


@pytest.fixture
def settings(store: Path) -> Settings:
    return Settings(store)


Maker = Callable[..., BenchWindow]


@pytest.fixture
def make(
    qtbot: QtBot, tasks: Tasks, settings: Settings, background: Background, opens_slowly: None
) -> Maker:
    image = Image.from_array(np.arange(600, dtype=np.uint8).reshape(20, 30), "ramp")

    def make_(gpu: bool = True, source: Image | None = image) -> BenchWindow:
        bench = BenchWindow(
            tasks,
            settings,
            {"gpu": Availability(gpu, "a stand-in")},
            current=lambda: Request.create(source, "mean") if source else None,
            opened=lambda: source,
            background=background,
        )
        qtbot.addWidget(bench)
        bench.show()
        return bench

    return make_


@pytest.fixture
def bench(make: Maker) -> BenchWindow:
    return make()


def test_recorded_results_are_offered_until_there_are_rows(
    qtbot: QtBot, bench: BenchWindow
) -> None:
    offer = child(bench, QPushButton, "benchRecorded")
    assert offer.isVisible()
    assert offer.isEnabled()
    menu = offer.menu()
    assert [each.text() for each in menu.actions()] == [each.title for each in entries()]
    recorded = next(each for each in menu.actions() if each.text().startswith("Quick look"))
    recorded.trigger()
    qtbot.waitUntil(lambda: state(bench).startswith("Opened"))
    assert state(bench) == "Opened cpu-quick-look.json, gpu-quick-look.json."
    assert bench.chart_view.isVisible()
    assert not offer.isVisible()

    bench.run()
    assert not offer.isEnabled()
    bench.cancel()
    qtbot.waitUntil(offer.isEnabled)


def test_an_installation_without_recorded_results_offers_none(
    make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "entries", list)
    assert not child(make(), QPushButton, "benchRecorded").isVisible()


def read(qtbot: QtBot, bench: BenchWindow, paths: list[Path]) -> None:
    """Open results and wait until they are shown."""
    bench.open_results(paths)
    qtbot.waitUntil(lambda: not bench._reading)


def drawn(qtbot: QtBot, shown: Chart) -> ChartView:
    view = ChartView(light())
    qtbot.addWidget(view)
    view.show_chart(shown)
    return view


def gated(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Let reading wait for the first event; it sets the second as it goes on."""
    gate, has_read = threading.Event(), threading.Event()

    def slowly(path: Path) -> Report:
        assert gate.wait(PATIENCE)
        has_read.set()
        return load(path)

    monkeypatch.setattr(module, "load", slowly)
    return gate, has_read


def child(bench: QWidget, kind: type, name: str) -> Any:
    found = bench.findChild(kind, name)
    assert found is not None, name
    return found


def state(bench: BenchWindow) -> str:
    return child(bench, QLabel, "benchState").text()


def origin(bench: BenchWindow) -> str:
    return child(bench, QLabel, "benchOrigin").text()


def table(bench: BenchWindow) -> list[list[str]]:
    tree = child(bench, QTreeWidget, "benchTable")
    items = (tree.topLevelItem(number) for number in range(tree.topLevelItemCount()))
    return [[item.text(column) for column in range(tree.columnCount())] for item in items]


def tick(bench: BenchWindow, name: str, *wanted: str) -> None:
    box = child(bench, QListWidget, name)
    for number in range(box.count()):
        item = box.item(number)
        on = item.data(Qt.ItemDataRole.UserRole) in wanted
        item.setCheckState(Qt.CheckState.Checked if on else Qt.CheckState.Unchecked)


def set_small(bench: BenchWindow) -> None:
    """Choose the mean of 3×3 on two sizes, two repeats."""
    tick(bench, "benchFilters", "mean")
    child(bench, QLineEdit, "benchSizes").setText("16, 32 16")
    child(bench, QLineEdit, "benchMasks").setText("3")
    child(bench, QSpinBox, "benchRepeat").setValue(2)


def wait_for_end(qtbot: QtBot, bench: BenchWindow) -> None:
    run = child(bench, QAbstractButton, "benchRun")
    qtbot.waitUntil(run.isEnabled)  # kernels may have to be compiled


def measured(*, more: tuple[Row, ...] = ()) -> Report:
    """Return a report of two sizes on two devices that nobody measured."""
    rows = []
    for side in (16, 32):
        size = {"shape": (side, side)}
        rows.append(row(**size, seconds=(8.0, 9.0, 10.0)))
        rows.append(
            row(
                **size,
                device="gpu",
                level="tuned",
                seconds=(0.5, 1.0, 4.0),
                stages={"upload": (1.0, 1.0, 1.0), "kernel": (0.5, 1.0, 4.0)},
                bytes=1e9,
                operations=4e9,
                copy_rate=2e9,
                peak_rate=6e9,
            )
        )
    return Report({"Date": "today"}, TINY, (*rows, *more))


# Choosing ------------------------------------------------------------------------------


@pytest.mark.smoke
def test_own_choice_becomes_a_plan(bench: BenchWindow) -> None:
    set_small(bench)
    plan = bench.form.plan()
    (sweep,) = plan.sweeps
    assert (sweep.filter, sweep.parameters) == ("mean", ({"size": 3},))
    assert [data.shape for data in sweep.data] == [(16, 16), (32, 32)]
    assert (plan.levels, plan.devices, plan.repeat, plan.peers) == ((), ("cpu", "gpu"), 2, False)
    assert plan.blocks == ()
    child(bench, QLineEdit, "benchBlocks").setText("16x16 256×1 16x16")
    assert bench.form.plan().blocks == ((16, 16), (256, 1))

    set_small(bench)
    child(bench, QCheckBox, "benchOpenImage").setChecked(True)
    (data,) = bench.form.plan().sweeps[0].data
    assert (data.content, data.shape, data.title) == (Content.GIVEN, (20, 30), "ramp")
    assert not child(bench, QLineEdit, "benchSizes").isEnabled()


@pytest.mark.smoke
def test_what_cannot_be_is_said(qtbot: QtBot, bench: BenchWindow) -> None:
    for field, text, said in (
        ("benchSizes", "huge", "Sizes: “huge” is not a list of numbers from 16 to 16384."),
        ("benchSizes", "16385", "Sizes: “16385”"),
        ("benchSizes", "", "Sizes: “”"),
        ("benchMasks", "255", "None of these filters has masks of 255."),
        ("benchMasks", "4", "Mask size: 4 is even."),
        ("benchBlocks", "16x16 huge", "“huge” is no block of threads."),
        ("benchBlocks", "64x64", "A block of 64×64 has 4096 threads."),
    ):
        set_small(bench)
        child(bench, QLineEdit, "benchBlocks").clear()
        child(bench, QLineEdit, field).setText(text)
        click(qtbot, bench, "benchRun")
        box = bench.findChildren(ErrorDialog)[-1]
        assert box.text().startswith(said)
        box.reject()


def test_presets_fill_the_form(bench: BenchWindow) -> None:
    for name, preset in PRESETS.items():
        child(bench, QComboBox, "benchPreset").setCurrentText(preset.title)
        plan, wanted = bench.form.plan(), preset.plan
        assert (plan.name, plan.sweeps, plan.repeat) == (name, wanted.sweeps, wanted.repeat)
        assert set(plan.levels) == set(wanted.levels), name
        assert plan.blocks == wanted.blocks, name
        summary = child(bench, QLabel, "benchSummary").text()
        assert summary.startswith(preset.summary)
        for sweep in wanted.sweeps:  # it is described; the own choice has no part in it
            assert filters.get(sweep.filter).name in summary
            assert all("×".join(map(str, data.shape[::-1])) in summary for data in sweep.data)
        assert not child(bench, QListWidget, "benchFilters").isVisible()
        child(bench, QComboBox, "benchPreset").setCurrentText(OWN_CHOICE)
        assert child(bench, QListWidget, "benchFilters").isVisible()


# Measuring -----------------------------------------------------------------------------


@pytest.mark.slow
def test_run_fills_the_table_and_the_plots(qtbot: QtBot, bench: BenchWindow) -> None:
    set_small(bench)
    click(qtbot, bench, "benchRun")
    assert not child(bench, QAbstractButton, "benchRun").isEnabled()
    wait_for_end(qtbot, bench)
    lines = table(bench)
    assert len(lines) == 14
    assert state(bench) == "Done: 14 rows measured."
    assert {line[1] for line in lines} >= {"CPU serial", "CPU parallel", "GPU tuned"}
    assert {line[2] for line in lines} == {"16×16", "32×32"}
    serial = next(line for line in lines if line[1] == "CPU serial")
    assert serial[7] == "1.00×"
    plots = child(bench, QComboBox, "benchPlotKind")
    for plot in Plot:
        plots.setCurrentText(plot)
        assert bench.chart_view.isVisible(), plot
        assert bench.chart_view.accessibleDescription()


def test_rows_that_cannot_run_have_the_reason(
    qtbot: QtBot, bench: BenchWindow, gpu: StandIn
) -> None:
    gpu.available = False
    set_small(bench)
    click(qtbot, bench, "benchRun")
    wait_for_end(qtbot, bench)
    missing = [line for line in table(bench) if line[1].startswith("GPU")]
    assert len(missing) == 10
    assert {line[9] for line in missing} == {"Not measured: No GPU here."}
    assert state(bench) == "Done: 4 rows measured, 10 cannot run here (reasons in the table)."


def test_cancel_keeps_what_was_measured(qtbot: QtBot, bench: BenchWindow, cpu: FakeCpu) -> None:
    set_small(bench)
    child(bench, QCheckBox, "benchGpu").setChecked(False)
    click(qtbot, bench, "benchRun")
    qtbot.waitUntil(lambda: len(table(bench)) >= 2)
    cpu.go.clear()  # in case it is still running; the second size may be done already
    click(qtbot, bench, "benchCancel")
    wait_for_end(qtbot, bench)
    assert len(table(bench)) >= 2
    assert child(bench, QAbstractButton, "benchSaveData").isEnabled()


@pytest.mark.smoke
def test_cancel_in_the_middle(qtbot: QtBot, bench: BenchWindow, cpu: FakeCpu) -> None:
    set_small(bench)
    cpu.go.clear()
    click(qtbot, bench, "benchRun")
    qtbot.waitUntil(cpu.entered.is_set)
    qtbot.waitUntil(lambda: "CPU serial" in state(bench))
    qtbot.keyClick(bench, Qt.Key.Key_Escape)
    wait_for_end(qtbot, bench)
    assert state(bench).startswith("Stopped")
    assert table(bench) == []
    qtbot.keyClick(bench, Qt.Key.Key_Escape)
    assert not bench.isVisible(), "nothing is measured now"


def test_the_job_of_another_window_ends_it(
    qtbot: QtBot, bench: BenchWindow, tasks: Tasks, cpu: FakeCpu
) -> None:
    """It is not done because the other one is, and does not end before it."""
    set_small(bench)
    cpu.go.clear()
    cpu.entered.clear()
    tasks.submit(Job(lambda backends, token, report: None), Priority.STARTED)
    click(qtbot, bench, "benchRun")
    assert not child(bench, QAbstractButton, "benchRun").isEnabled(), "the other one was stopped"
    qtbot.waitUntil(cpu.entered.is_set)
    tasks.submit(Job(lambda backends, token, report: None), Priority.STARTED)
    assert state(bench).startswith("Stopped")
    cpu.go.set()
    qtbot.waitUntil(lambda: tasks.current is None)
    assert state(bench).startswith("Stopped")


def test_the_first_open_offers_a_quick_look(
    qtbot: QtBot, make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make()
    assert child(first, QFrame, "benchOffer").isVisible()
    plans: list[Plan] = []
    monkeypatch.setattr(BenchWindow, "_measure", lambda self, plan: plans.append(plan))
    click(qtbot, first, "benchQuick")
    assert [plan.name for plan in plans] == [QUICK_LOOK.name]
    assert child(first, QComboBox, "benchPlotKind").currentText() == Plot.SPEED_UP
    assert not child(first, QFrame, "benchOffer").isVisible()
    assert not child(make(), QFrame, "benchOffer").isVisible()


@pytest.mark.parametrize("usable", [True, False])
def test_the_offer_and_the_ticks_promise_only_what_the_machine_has(
    make: Maker, usable: bool
) -> None:
    bench = make(usable)
    assert bench.form.plan().devices == (("cpu", "gpu") if usable else ("cpu",))
    text = child(bench, QLabel, "benchOfferText").text()
    assert ("by using the GPU" in text) == usable
    assert ("no usable GPU" in text) != usable


# Showing -------------------------------------------------------------------------------


@pytest.mark.smoke
def test_the_authors_figures_stand_beside_ours(bench: BenchWindow) -> None:
    ours = row(shape=(256, 256), seconds=(0.01,), border="reflect")
    bench.show_report(Report({}, TINY, (ours,)))
    (line,) = table(bench)
    assert line[8].startswith("1.296 ms (parallel computing report no. 5")
    shown = chart(Plot.TIME, Selection(ours.label), [ours])
    assert shown.note.endswith("measured on Xeon Gold 6154 + RTX 2080 Ti.")
    assert figures_of(shown)["parallel computing report no. 5: serial"].points[
        0
    ].y == pytest.approx(1.296)


def figures_of(shown: Chart) -> dict[str, Series]:
    return {series.name: series for series in shown.series if series.theirs}


FOR_F = {
    "label": "Custom mask, 9×9",
    "filter": "mask",
    "parameters": {"mask": "; ".join([" ".join(["1"] * 9)] * 9), "divisor": "count"},
    "shape": (4096, 4096),
}
"""The whole runs whose speed-ups source F reports."""


def levels_of_f() -> list[Row]:
    rows = [row(**FOR_F, seconds=(1.0, 1.0))]
    for level, kernel in (("global", 0.002), ("shared", 0.001)):
        stages = {"upload": (0.003,) * 2, "kernel": (kernel,) * 2, "download": (0.004,) * 2}
        rows.append(row(**FOR_F, device="gpu", level=level, seconds=(kernel,) * 2, stages=stages))
    return rows


def test_series_of_levels_are_in_the_order_of_the_ladder() -> None:
    """A filter that came later in a report had its level of constant memory at the end."""
    rows = [
        row(device=device, level=level, label=label, seconds=(1e-3,))
        for label in ("Median, mask size 3", "Custom mask, 3×3")
        for device, level in (
            *(("cpu", each) for each in ("parallel", "serial")),
            *(("gpu", each) for each in ("single-block", "global", "selection", "texture")),
        )
    ]
    rows.append(replace(rows[-1], level="constant"))
    shown = chart(Plot.BARS, Selection(), rows, waiting=False)
    assert [each.name.partition(" ")[2] for each in shown.series] == [
        *("serial", "parallel", "single block"),
        *("global memory", "selection", "constant memory", "texture"),
    ]


def test_authors_whole_runs_stand_beside_our_whole_runs_only() -> None:
    rows = levels_of_f()
    choice = Selection(rows[0].label)
    whole = chart(Plot.SPEED_UP, choice, rows, waiting=True)
    theirs = figures_of(whole)
    assert {name: round(series.points[0].y) for name, series in theirs.items()} == {
        "Korčuška 2013: global memory": 13,
        "Korčuška 2013: shared memory": 31,
    }
    ours = {series.name: series.style for series in whole.series if not series.theirs}
    styles = [ours["GPU global memory"], ours["GPU shared memory"]]
    assert [series.style for series in theirs.values()] == styles
    assert [series.name.rpartition(": ")[2] for series in whole.series] == [
        "CPU serial", "GPU global memory", "global memory", "GPU shared memory", "shared memory",
    ]  # fmt: skip
    kernels = chart(Plot.SPEED_UP, choice, rows, waiting=False)
    assert figures_of(kernels) == {}
    assert (
        kernels.note
        == "The figures of Korčuška 2013 are times of whole runs: see the plots with transfers."
    )
    other = chart(Plot.SPEED_UP, choice, rows, baseline="GPU global")
    assert figures_of(other) == {}
    assert other.note == "Published speed-ups are over serial code: choose CPU serial as baseline."
    alone = chart(Plot.SPEED_UP, choice, rows[1:], baseline="GPU global")
    assert alone.note == "Published speed-ups are over serial code, which was not timed."


def test_a_plot_says_how_doubtful_figures_of_a_source_were_read() -> None:
    rows = load(RESOURCES / "bench" / "gpu-v-sizes.json").rows
    choice = Selection(rows[0].label)
    times = chart(Plot.TIME, choice, rows)
    doubt = "Salari 2019, 1 gpu: 64 to 73 s [as printed: 64-73, perhaps 64.73"
    assert times.note.count(doubt) == 1
    assert "as printed" not in chart(Plot.SPEED_UP, choice, rows).note
    assert "as printed" not in chart(Plot.TIME, choice, rows, waiting=False).note


def beside_a_library() -> list[Row]:
    return [*levels_of_f(), row(**FOR_F, device="gpu", level="NPP", library=True, seconds=(0.002,))]


@pytest.mark.parametrize("plot", [Plot.BARS, Plot.TIME, Plot.RATE, Plot.SPEED_UP])
def test_calls_of_libraries_are_not_drawn_beside_whole_runs(plot: Plot) -> None:
    rows = beside_a_library()
    choice = Selection(rows[0].label)
    whole = chart(plot, choice, rows, baseline="GPU shared")
    assert "NPP" not in [series.name for series in whole.series]
    assert whole.note.endswith(
        "Left out, as only their computing was timed: NPP. Compare them without transfers."
    )
    computing = chart(plot, choice, rows, baseline="GPU shared", waiting=False)
    assert "NPP" in [series.name for series in computing.series]
    assert "Left out" not in computing.note


def test_opened_results_with_calls_of_libraries_are_compared_by_computing(
    qtbot: QtBot, make: Maker, tmp_path: Path
) -> None:
    whole, with_library = tmp_path / "whole.json", tmp_path / "library.json"
    save(Report({}, TINY, tuple(levels_of_f())), whole)
    save(Report({}, TINY, tuple(beside_a_library())), with_library)
    bench = make()
    waiting = child(bench, QCheckBox, "benchWaiting")
    read(qtbot, bench, [with_library])
    assert not waiting.isChecked()
    assert [line[7] for line in table(bench)] == ["1.00×", "500×", "1,000×", "500×"]
    waiting.click()
    speed_ups = [line[7] for line in table(bench)]
    assert speed_ups == ["1.00×", "111×", "125×", ""], "NPP has no whole runs"
    read(qtbot, bench, [with_library])
    read(qtbot, bench, [whole])
    assert waiting.isChecked()


def test_a_hidden_plot_takes_the_theme_when_it_is_shown(
    qtbot: QtBot, stylist: Stylist, bench: BenchWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    stylist.apply(Appearance(Scheme.DARK))
    bench.show_report(Report({}, TINY, tuple(levels_of_f())))
    bench.close()
    draws = counted(monkeypatch, bench.chart_view, "show_chart")
    for scheme in (Scheme.LIGHT, Scheme.DARK, Scheme.LIGHT):
        stylist.apply(Appearance(scheme))
        QApplication.processEvents()
    assert not draws, "nobody sees it"
    bench.show()
    assert len(draws) == 1
    base = bench.chart_view.palette().color(QPalette.ColorRole.Base)
    assert bench.chart_view.backgroundBrush().color() == base


def test_results_are_read_while_the_window_stays_usable(
    qtbot: QtBot, bench: BenchWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    save(Report({}, TINY, tuple(levels_of_f())), first)
    save(Report({}, TINY, tuple(beside_a_library())), second)
    gate, _ = gated(monkeypatch)
    bench.open_results([first])
    assert state(bench) == "Reading first.json…"
    assert bench.findChild(QProgressBar).maximum() == 0
    bench.open_results([second])
    gate.set()
    qtbot.waitUntil(lambda: state(bench) == "Opened second.json.")
    assert bench.findChild(QProgressBar).maximum() == 1
    assert len(table(bench)) == len(beside_a_library()), "those of the later request alone"


def test_a_window_that_is_closed_reads_no_more(
    qtbot: QtBot, bench: BenchWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(measured(), tmp_path / "saved.json")
    gate, has_read = gated(monkeypatch)
    bench.open_results([tmp_path / "saved.json"])
    assert state(bench) == "Reading saved.json…"
    bench.close()
    gate.set()
    qtbot.waitUntil(has_read.is_set)
    bench.show()
    assert (state(bench), bench.findChild(QProgressBar).maximum()) == ("Ready.", 1)
    assert len(table(bench)) == 0


def test_results_that_cannot_be_read_are_an_error(
    qtbot: QtBot, bench: BenchWindow, tmp_path: Path
) -> None:
    (tmp_path / "bad.json").write_text("[", encoding="utf-8")
    read(qtbot, bench, [tmp_path / "bad.json"])
    (box,) = bench.findChildren(ErrorDialog)
    box.close()
    assert state(bench).startswith("Not opened: ")
    assert "bad.json" in state(bench)


def test_results_are_not_mixed_with_rows_that_are_measured(
    qtbot: QtBot, bench: BenchWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(measured(), tmp_path / "saved.json")
    gate, has_read = gated(monkeypatch)
    bench.open_results([tmp_path / "saved.json"])
    bench.run()  # gives up reading
    gate.set()
    bench.open_results([tmp_path / "saved.json"])
    assert state(bench) == "Measuring: cancel it to open results."
    qtbot.waitUntil(has_read.is_set)
    bench.cancel()
    wait_for_end(qtbot, bench)
    assert "saved.json" not in origin(bench)


def test_a_figure_is_of_all_the_data_where_ours_is_of_a_part() -> None:
    part = row(asked=(256, 256), shape=(128, 128), seconds=(0.01,))
    shown = chart(Plot.RATE, Selection(part.label), [part])
    (theirs,) = figures_of(shown).values()
    assert theirs.points[0].x == 256 * 256
    assert theirs.points[0].y == pytest.approx(256 * 256 / 1e6 / 1.296e-3)


def test_bars_of_whole_runs_show_both_parts(qtbot: QtBot) -> None:
    rows = levels_of_f()
    shown = chart(Plot.BARS, Selection(rows[0].label), rows)
    inner = {series.name: series.points[0].inner for series in shown.series}
    assert inner == pytest.approx(
        {"CPU serial": 1000, "GPU global memory": 2, "GPU shared memory": 1}
    )
    assert [series.points[0].y for series in shown.series] == pytest.approx([1000, 9, 8])
    view = drawn(qtbot, shown)
    bars = [item for item in view.getItem(0, 0).items if isinstance(item, pg.BarGraphItem)]
    lower, upper = bars[2].opts, bars[3].opts  # of GPU global, on a logarithmic axis
    assert lower["width"][0] == pytest.approx(math.log10(2) - math.log10(shown.foot))
    assert upper["width"][0] == pytest.approx(math.log10(9 / 2))
    assert lower["brush"].color().alpha() < upper["brush"].color().alpha()
    assert lower["brush"].color().rgb() == upper["brush"].color().rgb()
    names = [label.text for _, label in legend_of(view).items]
    assert names[-2:] == ["light: computing", "dark: transfers, rest of run"]
    computing = chart(Plot.BARS, Selection(rows[0].label), rows, waiting=False)
    assert {point.inner for series in computing.series for point in series.points} == {None}
    view.show_chart(computing)
    labels = [label.text for _, label in legend_of(view).items]
    assert not any("light" in label for label in labels)


@pytest.mark.parametrize("plot", [Plot.BARS, Plot.TIME])
def test_levels_have_the_colours_of_the_ladder(qtbot: QtBot, plot: Plot) -> None:
    rows = [*levels_of_f(), replace(levels_of_f()[0], level="OpenCV", library=True)]
    shown = chart(plot, Selection(rows[0].label), rows, waiting=False)
    levels = {series.name: series.level for series in shown.series if not series.theirs}
    assert levels == {
        "CPU serial": "serial", "GPU global memory": "global",
        "GPU shared memory": "shared", "OpenCV": "",
    }  # fmt: skip
    looks = {s.name: SeriesStyle(s.style, s.theirs, light(), s.level) for s in shown.series}
    assert looks["GPU shared memory"].colour.name() == colour("shared")
    assert looks["OpenCV"].colour.name() not in {colour(level) for level in levels.values()}
    ours = [look for name, look in looks.items() if name in levels]
    assert len({look.symbol for look in ours}) == len(ours), "never distinguished by colour alone"
    items = drawn(qtbot, shown).getItem(0, 0).items
    if plot is Plot.BARS:
        seen = {i.opts["pen"].color().name() for i in items if isinstance(i, pg.BarGraphItem)}
    else:
        seen = {i.opts["pen"].color().name() for i in items if i.opts.get("symbolSize") == 9}
    assert {colour(level) for level in levels.values() if level} <= seen


def test_series_of_one_level_do_not_share_its_colour() -> None:
    rows = [replace(levels_of_f()[2], block=block) for block in (None, (16, 16), (32, 8))]
    shown = chart(Plot.BARS, Selection(rows[0].label), [levels_of_f()[0], *rows], waiting=False)
    assert [series.level for series in shown.series] == ["serial", "", "", ""]
    styles = [SeriesStyle(s.style, s.theirs, light(), s.level) for s in shown.series]
    assert len({style.colour.name() for style in styles}) == 4


def legend_of(view: ChartView) -> pg.LegendItem:
    (found,) = (item for item in view.scene().items() if isinstance(item, pg.LegendItem))
    return found


def test_the_choice_of_transfers_says_where_it_has_no_effect(bench: BenchWindow) -> None:
    bench.show_report(measured())
    box = child(bench, QCheckBox, "benchWaiting")
    assert box.isChecked(), "both parts are seen without a click"
    for plot in Plot:
        child(bench, QComboBox, "benchPlotKind").setCurrentText(plot)
        assert box.isEnabled() is (plot not in (Plot.STAGES, Plot.ROOFLINE))
        assert box.toolTip().startswith("On: whole runs") is box.isEnabled()


def test_speed_ups_of_two_machines_name_none_of_them() -> None:
    rows = tuple(
        row(machine=machine, seconds=(seconds,), **each)
        for machine, seconds in (("one", 1.0), ("two", 3.0))
        for each in ({"device": "cpu", "level": "serial"}, {"device": "gpu", "level": "global"})
    )
    shown = chart(Plot.SPEED_UP, choices(Plot.SPEED_UP, rows)[0], rows)
    assert shown.y == "Times as fast as CPU serial"
    assert [point.y for each in shown.series for point in each.points] == [1.0] * 4


def test_levels_have_the_names_of_the_window(
    qtbot: QtBot, bench: BenchWindow, tmp_path: Path
) -> None:
    rows = tuple(row(asked=(64, 64), shape=(32, 32), **{"seconds": (1.0,), **each}) for each in (
        {"device": "gpu", "level": "global"},
        {"device": "gpu", "level": "shared", "block": (16, 16), "seconds": (0.5,)},
        {"device": "gpu", "level": "OpenCV", "library": "4.1"},
        {"device": "gpu", "level": "of-old"},
    ))  # fmt: skip
    names = ["GPU global memory", "GPU shared memory 16×16", "OpenCV", "GPU of-old"]
    bench.show_report(Report({}, TINY, rows))
    assert [line[1] for line in table(bench)] == names
    baseline = child(bench, QComboBox, "benchBaseline")
    assert [baseline.itemText(n) for n in range(baseline.count())] == names
    assert [line[7] for line in table(bench)][:2] == ["1.00×", "≈ 2.00×"], "found by its id"
    child(bench, QComboBox, "benchPlotKind").setCurrentText(Plot.SPEED_UP)
    bench.resize(1320, 760)
    about = child(bench, QComboBox, "benchAbout")
    assert about.minimumSizeHint().width() < about.sizeHint().width(), about.currentText()
    qtbot.waitUntil(lambda: about.width() >= about.sizeHint().width())
    shown = bench._chart
    assert shown is not None
    assert shown.y == "Times as fast as GPU global memory"
    assert {series.name for series in shown.series} <= set(names)
    assert "GPU shared memory 16×16 on 32×32" in shown.note
    save(Report({}, TINY, rows), tmp_path / "ids.json")
    assert '"global"' in (tmp_path / "ids.json").read_text(encoding="utf-8")


def test_a_part_shows_what_was_timed_and_what_all_would_take(bench: BenchWindow) -> None:
    part = row(asked=(2048, 2048), shape=(512, 512), seconds=(0.2306,), label="Mean")
    whole = row(asked=(2048, 2048), level="parallel", seconds=(0.07677,), label="Mean")
    bench.show_report(Report({}, TINY, (part, whole)))
    (line, other) = table(bench)
    assert line[2:4] == ["512×512 of 2048×2048", "231 (≈ 3,690)"]
    assert other[2:4] == ["2048×2048", "76.8"]
    assert other[7] == "≈ 48.1×"
    tree = child(bench, QTreeWidget, "benchTable")
    needed = tree.fontMetrics().horizontalAdvance(line[2])
    assert tree.columnWidth(2) > needed
    font = tree.font()
    font.setPointSizeF(1.5 * font.pointSizeF())
    tree.setFont(font)
    assert tree.columnWidth(2) > tree.fontMetrics().horizontalAdvance(line[2]) > needed
    for plot in (Plot.BARS, Plot.SPEED_UP):
        note = chart(plot, Selection("Mean"), [part, whole]).note
        assert note == "≈ scaled by the work from a timed part: CPU serial on 512×512."


def test_the_baseline_is_serial_code_again_where_it_is_there(bench: BenchWindow) -> None:
    box = child(bench, QComboBox, "benchBaseline")
    gpu = [each for each in measured().rows if each.device == "gpu"]
    bench.show_report(Report({}, TINY, tuple(gpu)))
    assert box.currentText() == "GPU tuned"
    bench.show_report(measured())
    assert box.currentText() == "CPU serial"
    box.setCurrentText("GPU tuned")
    box.textActivated.emit("GPU tuned")
    bench.show_report(measured())
    assert box.currentText() == "GPU tuned", "the user's choice"


def test_choices_begin_with_all_filters() -> None:
    other = row(label="Median", filter="median", seconds=(1.0,))
    rows = measured(more=(other,)).rows
    assert choices(Plot.SPEED_UP, rows)[0] == Selection(None, "16×16")
    assert choices(Plot.TIME, rows) == [Selection("Mean, mask size 3"), Selection("Median")]
    stages = [str(each) for each in choices(Plot.STAGES, rows)]
    assert stages == [f"Mean, mask size 3, {size}" for size in ("16×16", "32×32")]


def test_grey_and_rgb_rows_are_drawn_apart(bench: BenchWindow) -> None:
    """In the recorded ladder their bars lay over each other, with numbers that belonged to none."""
    rows = load(RESOURCES / "bench" / "gpu-ladder-others.json").rows
    assert {row.channels for row in rows if row.label == "Mean, mask size 3"} == {1, 3}
    for plot in (Plot.BARS, Plot.SPEED_UP, Plot.TIME):
        for choice in choices(plot, rows):
            drawn = chart(plot, choice, rows, baseline="GPU global", waiting=False).series
            for series in (each for each in drawn if not each.theirs):
                places = [point.x for point in series.points]
                assert len(places) == len(set(places)), (plot, choice, series.name)
    grey = Selection("Mean, mask size 3")
    assert {grey, Selection("Mean, mask size 3, RGB")} <= set(choices(Plot.TIME, rows))
    tuned = chart(Plot.BARS, grey, rows, waiting=False).series[-1]
    (mine,) = (each for each in rows if each.title == grey.title and each.level == "tuned")
    assert tuned.points[0].y == pytest.approx(1e3 * np.median(mine.seconds))
    bench.show_report(Report({}, TINY, rows))
    lines = [tuple(line[:3]) for line in table(bench)]
    assert len(lines) == len(set(lines))


def test_the_origin_of_all_rows_is_in_view(qtbot: QtBot, bench: BenchWindow) -> None:
    """At this width the line ended before the card and the day of the bars that it is about."""
    report = measured()
    where = f"2026-11-22 17:17, AMD EPYC, 2 cores, commit a46ceda; {'more of it, ' * 12}NVIDIA H200"
    bench.show_report(replace(report, files={"gpu.json": where}))
    bench.resize(1280, 720)
    bench.show()
    label = child(bench, QLabel, "benchOrigin")
    assert label.text().endswith("NVIDIA H200 (gpu.json).")
    qtbot.waitUntil(lambda: label.height() >= label.heightForWidth(label.width()))
    assert label.height() > 1.5 * label.fontMetrics().height()


def test_speed_ups_are_over_the_baseline() -> None:
    rows = measured().rows
    choice = Selection("Mean, mask size 3")
    gpu = chart(Plot.SPEED_UP, choice, rows).series[1]
    assert [point.y for point in gpu.points] == [9 / 2, 9 / 2]
    computing = chart(Plot.SPEED_UP, choice, rows, waiting=False).series[1]
    assert computing.points[0].y == 9
    assert computing.points[0].text == "9.00×"
    swapped = chart(Plot.SPEED_UP, choice, rows, baseline="GPU tuned").series[0]
    assert swapped.points[0].y == pytest.approx(2 / 9)


def test_every_repeat_is_drawn_and_the_spread_is_quartiles() -> None:
    shown = chart(Plot.TIME, Selection("Mean, mask size 3"), measured().rows, waiting=False)
    point = shown.series[1].points[0]
    assert (point.x, point.y, point.low, point.high) == (256, 1000, 750, 2500)
    assert point.repeats == (500, 1000, 4000)


def test_stages_and_roof() -> None:
    rows = measured().rows
    stages = chart(Plot.STAGES, Selection("Mean, mask size 3", "16×16"), rows)
    assert {series.name: series.points[0].y for series in stages.series} == {
        "Upload": 1000,
        "Kernel": 1000,
    }
    roofline = chart(Plot.ROOFLINE, Selection("Mean, mask size 3"), rows)
    points, roof = roofline.series
    assert (points.points[0].x, points.points[0].y) == (4, 4)
    assert [(p.x, p.y) for p in roof.points] == [(1.5, 3), (3, 6), (8, 6)], "its ridge is seen"


def test_bars_that_are_far_apart_stand_on_a_logarithmic_axis() -> None:
    rows = [row(seconds=(2.0,)), row(level="parallel", seconds=(0.1,))]
    assert not chart(Plot.BARS, Selection("Mean, mask size 3"), rows).log
    rows.append(row(device="gpu", level="tuned", seconds=(0.0035,)))
    wide = chart(Plot.BARS, Selection("Mean, mask size 3"), rows)
    assert (wide.log, wide.foot) == (True, 1), "milliseconds"
    shown = chart(Plot.SPEED_UP, Selection("Mean, mask size 3"), rows)
    assert (shown.log, shown.foot) == (True, 0.1), "each bar has a length, that of 1.00× as well"
    slower = [row(level=each, seconds=(s,)) for each, s in (("parallel", 1.0), ("serial", 11.3))]
    shown = chart(Plot.SPEED_UP, Selection("Mean, mask size 3"), slower, baseline="CPU parallel")
    assert not shown.log, "bars from 0: 0.0884× does not hang from 1 as the longest"


def test_a_logarithmic_axis_of_bars_says_so(qtbot: QtBot) -> None:
    for seconds, said in ((0.1, False), (0.001, True)):
        rows = [row(seconds=(2.0,)), row(level="parallel", seconds=(seconds,))]
        view = drawn(qtbot, chart(Plot.SPEED_UP, Selection("Mean, mask size 3"), rows))
        label = view.getItem(0, 0).getAxis("bottom").labelText
        assert label == "Times as fast as CPU serial" + ", logarithmic" * said


def test_the_spread_is_left_out_where_it_is_0_in_all_lines(bench: BenchWindow) -> None:
    tree, steady = child(bench, QTreeWidget, "benchTable"), row(seconds=(1.0, 1.0))
    bench.show_report(Report({}, TINY, (steady,)))
    assert tree.isColumnHidden(4)
    bench.show_report(Report({}, TINY, (steady, row(level="parallel", seconds=(1.0, 1.2)))))
    assert not tree.isColumnHidden(4)


def test_what_groups_have_in_common_is_in_the_title() -> None:
    labels = ("MRI NLM, dimensions 2d, patch radius 1", "MRI NLM, dimensions 3d, patch radius 1")
    rows = [row(label=label, seconds=(1.0,)) for label in labels]
    shown = chart(Plot.BARS, Selection(None, "16×16"), rows)
    assert shown.title.startswith("MRI NLM, 16×16: ")
    assert shown.groups == ("dimensions 2d, patch radius 1", "dimensions 3d, patch radius 1")
    rows.append(row(label="MRI NLM", seconds=(1.0,)))
    assert chart(Plot.BARS, Selection(None, "16×16"), rows).groups[2] == "MRI NLM"


@pytest.mark.parametrize("width", [640, 960, 1400])
def test_many_groups_fit_into_the_plot(qtbot: QtBot, width: int) -> None:
    labels = [f"Filter number {number}, mask size 3" for number in range(20)]
    rows = [row(label=label, seconds=(1.0,)) for label in labels]
    view = drawn(qtbot, chart(Plot.BARS, Selection(None, "16×16"), rows))
    view.resize(width, 400)
    view.show()
    view.grab()
    axis = view.getItem(0, 0).getAxis("left")
    longest = max(map(QFontMetrics(QApplication.font()).horizontalAdvance, labels))
    assert longest < axis.width() < width / 2, "names are in full beside the bars"
    y = (15 - axis.range[0]) / (axis.range[1] - axis.range[0])
    y = (1 - y) * axis.height() if axis.range[0] > axis.range[1] else y * axis.height()
    beside = view.mapFromScene(axis.mapToScene(axis.width() / 2, y))
    assert view.group_at(beside).splitlines() == [*labels[15:16], "CPU serial: 1,000 ms"]


@pytest.mark.parametrize(("height", "shown"), [(600, True), (200, False)])
def test_values_stand_beside_bars_that_are_as_high_as_a_line(
    qtbot: QtBot, height: int, shown: bool
) -> None:
    rows = [row(label=f"Filter {number}", seconds=(1.0 + number,)) for number in range(20)]
    view = drawn(qtbot, chart(Plot.BARS, Selection(None, "16×16"), rows))
    view.resize(900, height)
    view.show()
    view.grab()
    texts = [each for each in view.getItem(0, 0).items if isinstance(each, pg.TextItem)]
    assert [each.isVisible() for each in texts] == [shown] * 20
    edge = view.getItem(0, 0).getViewBox().sceneBoundingRect().right()
    ends = [each.mapRectToScene(each.boundingRect()).right() for each in texts]
    assert max(ends) <= edge or not shown


def test_letters_of_a_chart_grow_with_the_text(qtbot: QtBot, stylist: Stylist) -> None:
    """The title, the legend and the axis stayed small at 150 %."""
    heights = []
    for scale in (1.0, 1.5):
        stylist.apply(Appearance(scale=scale))
        rows = [row(seconds=(1.0,)), row(level="parallel", seconds=(2.0,))]
        view = drawn(qtbot, chart(Plot.BARS, Selection(None, "16×16"), rows))
        view.resize(800, 400)
        view.show()
        plot = view.getItem(0, 0)
        labels = plot.titleLabel, legend_of(view).items[0][1], plot.getAxis("bottom").label
        heights.append([each.boundingRect().height() for each in labels])
    assert all(large > 1.3 * usual for usual, large in zip(*heights, strict=True)), heights


def test_rows_on_the_same_part_are_one_point() -> None:
    rows = [
        row(asked=(side, side), shape=(32, 32), seconds=(seconds,))
        for side, seconds in ((64, 0.002), (32, 0.001), (128, 0.003))
    ]
    (series,) = chart(Plot.TIME, Selection("Mean, mask size 3"), rows).series
    assert [point.y for point in series.points] == [1.0]


def test_runs_shown_as_one_have_a_bar_for_each_level() -> None:
    first, again = (
        row(device="gpu", level="tuned", seconds=(s,), stages={"kernel": (s,)}) for s in (2.0, 1.0)
    )
    shown = chart(Plot.STAGES, Selection("Mean, mask size 3", "16×16"), [first, again])
    assert shown.groups == ("Tuned",)
    assert shown.series[0].points[0].y == 1000, "of the last"


def test_outliers_of_bars_are_drawn(qtbot: QtBot) -> None:
    repeats = (1.0, 1.0, 1.0, 1.1, 3.0)
    shown = chart(Plot.BARS, Selection("Mean, mask size 3"), [row(seconds=repeats)])
    plot = drawn(qtbot, shown).getItem(0, 0)
    curves = (item for item in plot.items if isinstance(item, pg.PlotDataItem))
    assert tuple(1e3 * each for each in repeats) in [tuple(map(float, i.xData)) for i in curves]
    assert plot.viewRange()[0][1] > 3000


def test_a_change_of_theme_is_followed_and_destroys_no_widget_under_qt(
    qtbot: QtBot, bench: BenchWindow
) -> None:
    bench.show_report(measured())
    plot = bench.chart_view.getItem(0, 0)
    gone: list[str] = []
    for widget in QApplication.allWidgets():
        widget.destroyed.connect(lambda _=None: gone.append("widget"))
    bench.chart_view.setPalette(QPalette(QColor("#202020")))
    assert bench.chart_view.getItem(0, 0) is plot
    assert gone == []
    qtbot.waitUntil(lambda: bench.chart_view.getItem(0, 0) is not plot)

    bench.show_report(measured())
    palette = QPalette(QColor("#202020"))
    palette.setColor(QPalette.ColorRole.Base, QColor("#101010"))
    bench.chart_view.setPalette(palette)
    qtbot.waitUntil(lambda: bench.chart_view.backgroundBrush().color() == QColor("#101010"))


# Files ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_plots_are_saved_as_png_and_svg(bench: BenchWindow, tmp_path: Path) -> None:
    reported: list[str] = []
    paths = export(measured(), tmp_path / "plots", reported.append)
    assert reported[0] == f"1/{len(reported)}  Drawing Speed-up, Mean, mask size 3"
    assert (
        len(paths)
        == 2 * len(reported)
        == 2 * len([c for plot in Plot for c in choices(plot, measured().rows)])
    )
    picture = QImage(str(next(path for path in paths if path.suffix == ".png")))
    assert (picture.width(), picture.height()) == (2400, 1440)
    drawing = next(path for path in paths if path.suffix == ".svg").read_text(encoding="utf-8")
    for text in ("CPU serial", "GPU tuned", "Times as fast as CPU serial", "16×16", "4.50×"):
        assert text in drawing
    assert "Measured: today, an unknown CPU and an unknown GPU." in drawing
    pixels = {picture.pixelColor(x, y).name() for x in range(0, 2400, 7) for y in range(0, 1440, 7)}
    assert {"#ffffff", colour("tuned")} <= pixels


def test_levels_of_a_device_that_is_not_ticked_count_for_nothing(bench: BenchWindow) -> None:
    levels = child(bench, QListWidget, "benchLevels")
    items = [levels.item(number) for number in range(levels.count())]
    gpu = child(bench, QCheckBox, "benchGpu")
    gpu.setChecked(False)
    for item in items:
        offered = bool(item.flags() & Qt.ItemFlag.ItemIsEnabled)
        assert offered is item.text().startswith("CPU ")
        assert item.toolTip() == ("" if offered else "The GPU is not ticked above.")
    assert bench.form.plan().levels == (), "all that are offered"
    for item in items:
        if item.text().startswith("CPU "):
            item.setCheckState(Qt.CheckState.Unchecked)
    with pytest.raises(AppError, match="No level is chosen"):
        bench.form.plan()
    gpu.setChecked(True)
    assert items
    assert all(item.flags() & Qt.ItemFlag.ItemIsEnabled for item in items)
    assert set(bench.form.plan().levels) == set(filters.levels("gpu"))


def test_nothing_is_saved_under_the_name_of_another_format(
    qtbot: QtBot, bench: BenchWindow, tmp_path: Path
) -> None:
    bench.show_report(measured())
    for button, name, usual in (
        ("benchSavePlot", "a.jpg", ".png or .svg"),
        ("benchSaveData", "a.txt", ".json or .csv"),
    ):
        click(qtbot, bench, button)
        choose_files(bench.findChildren(QFileDialog)[-1], tmp_path / name)
        box = bench.findChildren(ErrorDialog)[-1]
        assert usual in " ".join(label.text() for label in box.findChildren(QLabel))
        box.close()
        assert not (tmp_path / name).exists()


def test_an_unwritable_plot_is_an_error(bench: BenchWindow, tmp_path: Path) -> None:
    shown = chart(Plot.BARS, Selection("Mean, mask size 3"), measured().rows)
    for name in ("a.png", "a.svg"):
        with pytest.raises(AppError, match="cannot be written"):
            save_chart(shown, tmp_path / "missing" / name)


def test_data_are_saved_and_opened(
    qtbot: QtBot, bench: BenchWindow, make: Maker, tmp_path: Path
) -> None:
    bench.show_report(measured())
    for name in ("out.json", "out.csv"):
        click(qtbot, bench, "benchSaveData")
        chooser = bench.findChildren(QFileDialog)[-1]
        choose_files(chooser, tmp_path / name)
        assert state(bench) == f"Saved {name}."
    assert load(tmp_path / "out.json").rows == measured().rows
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["machine"]
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").count("\n") == 5
    other = make()
    click(qtbot, other, "benchOpen")
    dialog = child(other, QFileDialog, "openBenchDialog")
    choose_files(dialog, tmp_path / "out.json")
    qtbot.waitUntil(lambda: len(table(other)) == 4)
    assert state(other) == "Opened out.json."
    assert origin(other) == "Recorded: today, an unknown CPU and an unknown GPU (out.json)."
    save(measured(more=(row(label="Median", seconds=(1.0,)),)), tmp_path / "more.json")
    read(qtbot, other, [tmp_path / "out.json", tmp_path / "more.json"])
    assert len(table(other)) == 9, "as one run"
    assert state(other) == "Opened out.json, more.json."
    assert origin(other).count("today") == 2


# Verifying -----------------------------------------------------------------------------


def test_the_form_follows_results_that_are_opened(
    qtbot: QtBot, bench: BenchWindow, tmp_path: Path
) -> None:
    box = child(bench, QComboBox, "benchPreset")
    preset = PRESETS["M mean filter ladder (256²)"]
    save(replace(measured(), plan=preset.plan), tmp_path / "ladder.json")
    read(qtbot, bench, [tmp_path / "ladder.json"])
    assert box.currentText() == "Parallel computing report no. 5: mean filter ladder (256²)"
    assert bench.form.plan().sweeps == preset.plan.sweeps
    save(measured(), tmp_path / "own.json")
    read(qtbot, bench, [tmp_path / "own.json"])
    assert box.currentText() == OWN_CHOICE


def test_recorded_results_name_their_machine_and_day_also_after_verifying(
    qtbot: QtBot, bench: BenchWindow, tmp_path: Path
) -> None:
    machine = {"CPU": "theirs", "GPU": "NVIDIA H100", "Date": "2026-11-21 20:25+00:00"}
    save(replace(measured(), machine=machine), tmp_path / "card.json")
    read(qtbot, bench, [tmp_path / "card.json"])
    whose = "Recorded: 2026-11-21 20:25, theirs and NVIDIA H100 (card.json)."
    assert origin(bench) == whose
    click(qtbot, bench, "benchSavePlot")
    choose_files(bench.findChildren(QFileDialog)[-1], tmp_path / "plot.svg")
    assert whose in (tmp_path / "plot.svg").read_text(encoding="utf-8")
    click(qtbot, bench, "benchVerify")  # the fake CPU inverts, the stand-in takes the mean
    wait_for_end(qtbot, bench)
    shown = bench.findChild(ParityDialog)
    assert shown is not None
    assert "Levels differ by up to" in child(shown, QLabel, "headline").text()
    assert "CPU serial" in child(shown, QLabel, "parityText").text()
    assert not child(shown, QLabel, "parityMap").pixmap().isNull()
    shown.reject()
    assert origin(bench) == whose
    assert state(bench) == "Verified Mean.", "nothing was measured"
    assert len(table(bench)) == 4
    set_small(bench)
    click(qtbot, bench, "benchRun")
    wait_for_end(qtbot, bench)
    assert origin(bench).startswith("Measured: ")


@pytest.mark.slow
def test_a_single_pixel_is_seen_on_the_map(qtbot: QtBot) -> None:
    differences = np.zeros((2000, 1000), np.uint8)
    differences[1234, 567] = 3
    parity = Parity("Mean", "a", ("x", "y"), {}, 3.0, ("x", "y"), (1234, 567, 0), 5e-7, differences)
    dialog = ParityDialog(parity)
    qtbot.addWidget(dialog)
    drawn = child(dialog, QLabel, "parityMap").pixmap().toImage()
    assert drawn.height() == 480
    bright = sum(
        drawn.pixelColor(x, y).lightness() > 200
        for x in range(drawn.width())
        for y in range(drawn.height())
    )
    assert 1 <= bright <= 9


def test_nothing_open_is_said(qtbot: QtBot, make: Maker) -> None:
    bench = make(source=None)
    click(qtbot, bench, "benchVerify")
    assert state(bench) == "Open a picture in the main window first."


# In the main window --------------------------------------------------------------------


def test_the_menu_opens_it(qtbot: QtBot, window: MainWindow, picture: Path) -> None:
    load_picture(qtbot, window, picture)
    press(qtbot, window, "Ctrl+B")
    bench = window.findChild(BenchWindow)
    assert bench is not None
    assert bench.isVisible()
    named = [w for w in bench.findChildren(QAbstractButton) if w.objectName().startswith("bench")]
    assert named
    assert all(w.accessibleName() or w.text() for w in named)
    assert all(w.toolTip() for w in named)
    child(bench, QCheckBox, "benchOpenImage").setChecked(True)
    tick(bench, "benchFilters", "mean")
    assert bench.form.plan().sweeps[0].data[0].title == picture.name
