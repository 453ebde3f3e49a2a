"""A random hand on the real window, and settings that nobody would have written."""

from __future__ import annotations

import base64
import gc
import json
import logging
import random
import resource
import statistics
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from _pytest.logging import LogCaptureHandler
from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QMainWindow,
)
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.base import jit, memory
from kernelscope.base.compile_process import CompileProcess
from kernelscope.engine.backend import Availability
from kernelscope.gui import application
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window import last_session
from kernelscope.gui.window.main_window import MainWindow
from tests.gui.hand import Hand
from tests.gui.helpers import FakeCpu, Opener, load, program_threads, settle, shown, write_picture
from tests.gui.test_emulated_gpu import FakeEmulated
from tests.gui.test_volume_page import voxels, write

pytestmark = pytest.mark.slow

ACTIONS = [
    (1, 100),
    *(pytest.param(seed, 3000, marks=pytest.mark.exhaustive) for seed in (1, 2)),
]
"""Seeds, and numbers of actions; 3000 take two to four minutes, and show a leak; see `Memory`."""


class Memory:
    """The resident memory of the process every 500 actions; flat after a thousand."""

    def __init__(self) -> None:
        self.mebibytes: dict[int, float] = {}

    def note(self, action: int) -> None:
        if action % 500 == 0:
            # A figure that was copied, of 400 mm at 1200 dpi, has 0.8 GB.
            QGuiApplication.clipboard().clear()
            gc.collect()
            memory.give_back()  # as `GarbageCollector` does
            pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
            self.mebibytes[action] = pages * resource.getpagesize() / 2**20
            print(f"{action} actions: {self.mebibytes[action]:.0f} MiB, {len(gc.get_objects())}")

    def growth(self) -> float:
        """Return the median of the mebibytes that 500 actions add, from action 1000 on.

        A leak grows steadily; a filter that is compiled or a library that is loaded takes one step.
        """
        kept = [each for action, each in self.mebibytes.items() if action >= 1000]
        return statistics.median(np.diff(kept).tolist()) if len(kept) > 2 else 0.0


def forget(caplog: pytest.LogCaptureFixture, cpu: FakeCpu) -> None:
    """Free the runs that only the test keeps, with their pictures.

    Two handlers of pytest's keep records, and these their arguments.
    """
    cpu.requests.clear()
    caplog.clear()
    for handler in logging.getLogger().handlers:
        if isinstance(handler, LogCaptureHandler):
            handler.reset()


def own_threads() -> list[threading.Thread]:
    """Return the background work, apart from the worker's."""
    return [each for each in program_threads() if each.name != "kernelscope-worker"]


def place_of(thread: threading.Thread) -> str:
    """Return the name of a thread, and where it is now."""
    frame = sys._current_frames().get(thread.ident or 0)
    return "\n".join([thread.name, *traceback.format_stack(frame)])


def report(hand: Hand, errors: list[BaseException]) -> str:
    """Return the last actions, and the place of the failure."""
    return "\n".join([*hand.done[-25:], *traceback.format_exception(errors[0])])


@pytest.fixture
def compiled_elsewhere() -> Iterator[None]:
    """Compile and allocate as the program does, which otherwise would take more memory."""
    memory.share_arenas()
    compiler = CompileProcess()
    jit.compile_elsewhere(compiler)
    yield
    jit.compile_elsewhere(None)
    compiler.close()


@pytest.fixture
def no_files_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a dialog for files come up and be closed, whatever was typed into it."""
    monkeypatch.setattr(QFileDialog, "accept", lambda self: self.reject())


@pytest.fixture
def strays(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """Collect exceptions of any thread, as the program does."""
    found: list[BaseException] = []
    monkeypatch.setattr("sys.excepthook", None)
    monkeypatch.setattr("threading.excepthook", None)
    catcher = application.BugCatcher()
    catcher.caught.connect(found.append, Qt.ConnectionType.DirectConnection)
    catcher.install()
    return found


@pytest.mark.usefixtures("compiled_elsewhere", "compiled_judging", "no_files_are_written", "here")
@pytest.mark.parametrize(("seed", "actions"), ACTIONS)
def test_a_random_hand_finds_no_exception_no_warning_and_no_thread(
    qtbot: QtBot,
    open_window: Opener,
    cpu: FakeCpu,
    tmp_path: Path,
    strays: list[BaseException],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    seed: int,
    actions: int,
) -> None:
    bugs: list[BaseException] = []
    monkeypatch.setattr(MainWindow, "report_bug", lambda self, error: bugs.append(error))
    files = [
        *(write_picture(tmp_path / f"{number}.png", number) for number in range(3)),
        *(write(tmp_path / f"{number}.nii", voxels(number)) for number in range(3)),
        tmp_path / "missing.png",
        write(tmp_path / "smaller.nii", voxels()[:-1]),
        write(tmp_path / "several.nii", np.stack([voxels(3), voxels(4), voxels(5)])),
    ]
    (tmp_path / "damaged.png").write_bytes(files[0].read_bytes()[:50])
    files.append(tmp_path / "damaged.png")
    window = open_window(Availability(True, "a card"), emulated=FakeEmulated())
    window.find_gpu()
    load(qtbot, window, files[0])
    finished: list[bool] = []
    window.runner.finished.connect(lambda result, _: finished.append(True))
    hand = Hand(window, seed, files, cpu)
    resident = Memory()
    for number in range(actions):
        hand.act()
        forget(caplog, cpu)
        resident.note(number + 1)
        assert not bugs, report(hand, bugs)
        assert not strays, report(hand, strays)
        assert window.isVisible(), hand.done[-10:]
    kinds = {name.split()[0] for name in hand.done}
    assert len(kinds) > 8
    if actions == 3000:
        assert len(kinds) > 13
        assert kinds >= {"window", "region", "histogram", "emulated"}
        assert len(finished) > 5
    assert resident.growth() < 30, resident.mebibytes
    cpu.go.set()
    qtbot.waitUntil(lambda: not window.runner.busy)
    window.file_dialogs.open(files[1])  # it still works
    qtbot.waitUntil(lambda: shown(window) == files[1].name)
    qtbot.waitUntil(lambda: not window.background.owes)
    try:
        qtbot.waitUntil(lambda: not own_threads(), timeout=120_000)  # a first estimate is compiled
    except qtbot.TimeoutError:
        pytest.fail("\n".join(map(place_of, own_threads())))
    window._leaves = True  # it would ask about outputs of pasted pictures
    window.close()
    qtbot.waitUntil(lambda: not window.isVisible())
    assert not bugs
    assert not strays
    # A measurement that imports libraries on a busy machine outlives its window by seconds.
    qtbot.waitUntil(lambda: not program_threads())
    assert not strays


# --- settings ---

_ODD = (
    *("", "0", "-1", "3", "1e400", "nan", "9" * 5000, "99999999999", "-99999999999", "2147483648"),
    *("on", "16x16", "99999999x1", "médian\n", "\0", "../../x", "estimate", "[" * 1000, "\udcff"),
)


def keys() -> list[str]:
    """Return all objects that the program keeps, and those that it does not."""
    of_runs = ("device", "level", "border", "grey", "block", "repeat", "memoryLimit")
    parameters = [
        f"filters/{spec.id}/{parameter.name}"
        for spec in filters.discover().values()
        for parameter in spec.parameters
    ]
    return [
        *(f"run/{name}" for name in of_runs),
        *parameters,
        *("filter", "gpu", "saveFormat", "saveVolumeFormat", "folders/open", "recentFiles"),
        *("geometry", "state", "unknown"),
    ]


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.exhaustive) for n in range(6, 12))]
)
def test_the_window_opens_with_any_settings(
    qtbot: QtBot, open_window: Opener, store: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    chance = random.Random(seed)
    content: dict[str, object] = {key: chance.choice(_ODD) for key in keys()}
    for key in chance.sample(sorted(content), 10):
        content[key] = chance.choice((2**40, -1e300, None, True, ["a"], {"b": 1}))
    for name in ("geometry", "state"):
        if chance.random() < 0.7:
            content[name] = base64.b64encode(chance.randbytes(chance.randrange(200))).decode()
    store.write_text(json.dumps(content))
    store.chmod(0o600)
    window = open_window()
    for spec in filters.discover().values():
        window.session.set_filter(spec.id)
        window.session.require()
    window.actions_.fill_recent()
    for path in window.settings.recent_files:
        window.file_dialogs.open(path)
    settle(qtbot, window)
    for dialog in window.findChildren(QDialog):
        dialog.reject()
    assert not [record for record in caplog.records if record.levelno >= logging.CRITICAL]
    window.close()
    assert set(json.loads(store.read_text())) >= {"geometry", "state", "filter"}


def changed(data: bytes, chance: random.Random) -> bytes:
    """Return `data` with a few bytes changed, or cut off."""
    new = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        new[chance.randrange(len(new))] ^= chance.choice((1, 0x7F, 0x80, 0xFF))
    if chance.random() < 0.2:
        del new[chance.randrange(len(new)) :]
    return bytes(new)


@pytest.mark.parametrize("name", ["geometry", "state"])
def test_a_saved_layout_that_is_not_whole_is_not_given_to_qt(
    open_window: Opener, store: Path, name: str
) -> None:
    window = open_window()
    window.resize(900, 650)
    window.close()
    whole = json.loads(store.read_text())
    digest, _, text = whole[name].partition(" ")
    chance = random.Random(3)
    for _ in range(20):
        text_ = base64.b64encode(changed(base64.b64decode(text), chance)).decode()
        for content in (f"{digest} {text_}", text_, text, "0 not base64"):
            store.write_text(json.dumps(whole | {name: content}))
            assert Settings(store).blob(name).isEmpty()
    window = open_window()
    assert window.isVisible()


def test_a_window_is_on_a_screen_wherever_it_was_saved(qtbot: QtBot, store: Path) -> None:
    def window_of(settings: Settings) -> QMainWindow:
        window = QMainWindow()
        qtbot.addWidget(window)
        last_session.restore_layout(window, settings)
        window.show()
        qtbot.waitExposed(window)
        return window

    settings, chance = Settings(store), random.Random(5)
    window = window_of(settings)
    window.resize(700, 650)
    last_session.save_layout(window, settings)
    window.close()
    data = bytes(settings.blob("geometry").data())
    for trial in range(50):
        settings.set_blob("geometry", QByteArray(changed(data, chance)))
        again = window_of(settings)
        screen = again.screen().availableGeometry()
        assert screen.contains(again.frameGeometry().center()), (trial, again.frameGeometry())
        assert again.width() <= 2 * screen.width()
        again.close()
