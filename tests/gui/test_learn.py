"""Learn: each window opens at the filter, the level and the pixel in front."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PySide6.QtWidgets import QCheckBox, QComboBox, QToolButton
from pytestqt.qtbot import QtBot

from kernelscope.backends.emulator.tracing import TooManyAccesses, Tracer
from kernelscope.bench.charts import all_whole
from kernelscope.bench.memory_ladder import SMALL
from kernelscope.bench.report import load as load_report
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.timing import Stage
from kernelscope.gui.docks.ladder import LadderTree
from kernelscope.gui.model.ladder import RungPlace
from kernelscope.gui.tools.bench_window import STORY
from kernelscope.gui.window import menus
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.image import Image
from tests.gui.helpers import load
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


def move_to(rungs: LadderTree, place: RungPlace) -> None:
    item = rungs.rung_item(place)
    assert item is not None
    rungs.setCurrentItem(item)


@pytest.fixture
def front(qtbot: QtBot, window: MainWindow, picture: Path) -> MainWindow:
    """Return a window without a card, the cursor of whose ladder is on a level of one."""
    load(qtbot, window, picture)
    window.session.set_filter("mean")
    window.find_gpu()
    qtbot.waitUntil(lambda: bool(window.companions.availability))
    rungs = window.levels.ladder.rungs
    qtbot.waitUntil(lambda: Device.GPU in rungs.headings)
    move_to(rungs, RungPlace(Device.GPU, "shared"))
    return window


def test_the_lecture_has_the_newest_runs_on_a_card(window: MainWindow) -> None:
    image = Image.from_array(np.zeros((8, 8), np.uint8), "flat.png")
    for device, size in (("gpu", 3), ("cpu", 3), *(("gpu", size) for size in (5, 7, 9, 7, 11))):
        request = Request.create(image, "mean", {"size": size})
        name = "kernel" if device == "gpu" else "compute"
        level = "tuned" if device == "gpu" else "serial"
        window.session.gallery.add(Result(request, image, device, level, (Stage(name, 1e-3),)))
    found = window.companions._measured()
    assert [each.what for each in found] == [
        f"Mean · {size}×{size} · GPU tuned, flat.png, 8×8: kernels" for size in (5, 9, 7, 11)
    ], "four of a filter, each setting once"
    assert {(each.filter_id, each.time) for each in found} == {("mean", "1.00 ms")}


def test_one_button_has_them_all(window: MainWindow) -> None:
    button = window.findChild(QToolButton, "learnMenuTool")
    assert button.text() == "Learn"
    offered = {each.objectName() for each in button.menu().actions() if not each.isSeparator()}
    assert offered == set(menus.actions_of(menus.LEARN))


def test_the_level_under_the_cursor_of_the_ladder_is_in_front(
    qtbot: QtBot, front: MainWindow
) -> None:
    assert front.levels.in_front == RungPlace(Device.GPU, "shared")
    rungs = front.levels.ladder.rungs
    move_to(rungs, RungPlace(Device.CPU, "serial"))
    assert front.levels.in_front == front.session.place


def test_windows_open_there(qtbot: QtBot, front: MainWindow) -> None:
    companions = front.companions
    for id_ in ("viewKernel", "lecture", "exercises", "xray"):
        front.actions_[id_].trigger()
    try:
        viewer = companions.kernel_viewer
        assert viewer is not None
        assert viewer._request.options.level == "shared"
        assert companions.lecture is not None
        assert companions.lecture.page.id == "tiles"
        assert companions.exercises is not None
        assert companions.exercises._exercise is not None
        assert companions.exercises._exercise.filter_id == "mean"
        assert companions.xray is not None
        level = companions.xray.findChild(QComboBox, "xrayLevel")
        assert level.currentText() == "Shared memory"
    finally:
        for each in (
            companions.kernel_viewer,
            companions.lecture,
            companions.exercises,
            companions.xray,
        ):
            if each is not None:
                each.close()


def test_other_windows_end_with_the_main_window(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = {"batch": "leave", "kernel_viewer": "leave", "exercises": "leave", "xray": "leave"}
    windows |= {"memory_ladder": "leave", "contact_sheet": "close", "lecture": "close"}
    ended: list[str] = []
    with monkeypatch.context() as patched:
        for name, method in windows.items():
            opened = SimpleNamespace(**{method: partial(ended.append, name)})
            patched.setitem(vars(window.companions), name, opened)
        window.companions.close()
    assert sorted(ended) == sorted(windows)


def test_the_benchmark_opens_with_the_levels_on_kernel_time(
    qtbot: QtBot, front: MainWindow
) -> None:
    qtbot.waitUntil(lambda: bool(front.session.recorded._settings))
    front.actions_["benchmark"].trigger()
    bench = front.companions.bench
    assert bench is not None
    qtbot.waitUntil(lambda: bench._state.text().startswith("Opened"))
    assert bench._report is not None
    levels = {row.level for row in bench._report.rows if row.filter == "mean"}
    assert levels >= {"global", "shared", "tuned"}
    assert not bench.findChild(QCheckBox, "benchWaiting").isChecked()
    assert bench.findChild(QComboBox, "benchPlotKind").currentText() == "Speed-up"
    assert bench.findChild(QComboBox, "benchAbout").currentText().startswith("Mean")
    assert bench.findChild(QComboBox, "benchBaseline").currentText() == "GPU global memory"
    assert bench._chart is not None
    heights = [point.y for each in bench._chart.series for point in each.points]
    assert max(heights) < 100, "kernels beside kernels, not beside serial code"
    (line,) = bench._table.selectedItems()
    assert (line.text(0).partition(",")[0], line.text(1)) == ("Mean", "GPU shared memory")
    assert [sweep.filter for sweep in bench.form.plan().sweeps] == ["mean"]
    other = STORY.with_name("gpu-blocks.json")
    bench.open_results([other])
    qtbot.waitUntil(lambda: bench._state.text() == f"Opened {other.name}.")
    whole = all_whole(load_report(other).rows)
    assert bench.findChild(QCheckBox, "benchWaiting").isChecked() is whole is True
    bench.close()


def test_the_memory_ladder_counts_a_corner_where_the_picture_is_too_much(
    qtbot: QtBot, front: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each level of the denoisers was refused, with the name of a kernel."""
    count = Tracer.count

    def fewer(self: Tracer, request: Request, *arguments: Any) -> Any:
        if max(request.source.shape) > SMALL:
            raise TooManyAccesses("mean_global reads and writes too often.", "")
        return count(self, request, *arguments)

    monkeypatch.setattr(Tracer, "count", fewer)
    large = Image.from_array(np.zeros((80, 90), np.uint8), "large")
    front.file_dialogs.loaded.emit(large)
    qtbot.waitUntil(lambda: front.session.subject.source is large)
    front.actions_["memoryLadder"].trigger()
    ladder = front.companions.memory_ladder
    assert ladder is not None
    qtbot.waitUntil(lambda: bool(ladder.ladder().steps), timeout=round(1000 * PATIENCE))
    assert ladder._sides.currentText() == "Corner of 64×64"
    assert not any(each.refusal for each in ladder._found)
    assert ladder._bars.in_front == "shared"
    ladder.close()
