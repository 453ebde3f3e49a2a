"""Rules for every test of the window: no screen is needed, and Qt must not complain."""

from __future__ import annotations

import functools
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QEventLoop, QLocale, Qt, QTimer
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.bench.recorded import Recorded
from kernelscope.engine import measuring
from kernelscope.engine.backend import Availability, Backend
from kernelscope.filters.mri_nlm import strength
from kernelscope.gui.model.kernel_edits import Edits
from kernelscope.gui.tools.manual_window import PageView
from kernelscope.gui.widgets import appearance
from kernelscope.gui.widgets.appearance import Stylist
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window import live
from kernelscope.gui.window.filter_shelf import FilterShelf
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.work.background import Background
from kernelscope.images.judging.metrics import judge
from kernelscope.images.judging.pictures import difference, histogram, suggest_gain
from kernelscope.schema.parameters import FloatParameter
from kernelscope.schema.samples import Kind
from tests.gui.helpers import (
    NO_GPU,
    FakeCpu,
    FakeGpu,
    Opener,
    load,
    open_panels,
    wait_until,
    write_picture,
)
from tests.patience import PATIENCE

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


LOCALES = ("en_US", "de_DE", "fr_FR")
"""Points, commas; groups by commas, points and narrow spaces."""


@pytest.fixture(autouse=True)
def user_locale(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give each test one of three locales, always the same: none may matter to any test."""
    old = QLocale()
    QLocale.setDefault(QLocale(LOCALES[zlib.crc32(request.node.name.encode()) % len(LOCALES)]))
    yield
    QLocale.setDefault(old)


@pytest.fixture
def qtbot(qtbot: QtBot) -> QtBot:
    """Wait as long as `PATIENCE` says where a test does not say; the 5 s of pytest-qt are few.

    `waitUntil` waits 10 ms at a time, for each of which pytest-qt makes a loop and its timers: an
    eighth of the processor time of a test that waits.
    """
    most = round(1000 * PATIENCE)
    bot: Any = qtbot
    usual, loop, timer = qtbot.wait, QEventLoop(), QTimer(singleShot=True)
    timer.timeout.connect(loop.quit)

    def wait(ms: int) -> None:
        if loop.isRunning():
            usual(ms)
            return
        timer.start(ms)
        loop.exec()

    bot.wait = wait
    bot.waitUntil = functools.partial(qtbot.waitUntil, timeout=most)
    bot.waitSignal = functools.partial(qtbot.waitSignal, timeout=most)
    return qtbot


@pytest.fixture
def opens_slowly() -> None:
    """Opens nothing: fixtures that open a large window ask for it, so that it is found."""


@pytest.hookimpl(tryfirst=True)  # before pytest applies `-m`
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fail tests of the window on Qt warnings, and count those of large windows as slow.

    Opening one takes 0.15 to 0.3 s, which hundreds of tests do; those marked `smoke` go once
    through everything in the quick loop.
    """
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "opens_slowly" in fixtures and item.get_closest_marker("smoke") is None:
            item.add_marker("slow")
        if "qapp" in fixtures:
            item.add_marker(pytest.mark.qt_log_level_fail("WARNING"))
            # Messages of a screenless platform about every window that is shown or raised.
            quiet = r"does not support (propagateSizeHints\(\)|raise\(\)|grabbing the keyboard)"
            item.add_marker(pytest.mark.qt_log_ignore(quiet))


@pytest.fixture(autouse=True)
def no_window_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a window open, and delete all: a dialog would block later tests,
    and closed windows take part in each change of the looks."""
    if "qapp" not in request.fixturenames:
        yield
        return
    before = _windows()
    yield
    # A closed window takes its dialogs along when Qt gets round to deleting it: now.
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    left = [each for each in _windows() if each not in before]
    names = [f"{type(each).__name__} {each.windowTitle()!r}" for each in left if each.isVisible()]
    for each in left:
        each.hide()
        each.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    if names:
        pytest.fail(f"windows left open: {names}")


def _windows() -> list[QWidget]:
    """Return the windows, except menus and tips, which leave by themselves."""
    passing = Qt.WindowType.ToolTip, Qt.WindowType.Popup
    return [
        each
        for each in QApplication.topLevelWidgets()
        if isValid(each) and each.windowType() not in passing
    ]


@pytest.fixture(autouse=True)
def run_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each request once, so that tests can count requests; tests marked otherwise repeat."""
    if "repeats_runs" not in request.fixturenames:
        monkeypatch.setattr(measuring, "MOST_REPEATS", 0)


@pytest.fixture
def repeats_runs() -> None:
    """Leave runs measured as they are in the program; see `run_once`."""


@pytest.fixture(autouse=True)
def draw_no_thumbnails(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the thumbnails of all filters, which real kernels compute, unless tests ask."""
    if "thumbnails" not in request.fixturenames:
        monkeypatch.setattr(FilterShelf, "draws", False)


@pytest.fixture(autouse=True)
def strengths_of_few_voxels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimate strengths for volumes from few voxels, whatever they are: live windows do often."""
    monkeypatch.setattr(strength, "_WORK", 4e6)


@pytest.fixture
def rests_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have exact results follow live changes at once, for tests that wait for many of them."""
    monkeypatch.setattr(live, "REST_MS", 20)


@pytest.fixture
def worked_examples() -> None:
    """Make the pictures of handbook pages, which real kernels compute; see the next one."""


@pytest.fixture(autouse=True)
def make_no_examples(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave them out unless tests ask: each page that is opened compiles its filter."""
    if "worked_examples" not in request.fixturenames:
        monkeypatch.setattr(PageView, "_make", lambda view: None)


@pytest.fixture(scope="session")
def figures_read_once() -> Callable[..., Recorded]:
    return functools.cache(Recorded.read)


@pytest.fixture(autouse=True)
def read_figures_once(
    monkeypatch: pytest.MonkeyPatch, figures_read_once: Callable[..., Recorded]
) -> None:
    """Read the recorded figures once a process: each window does, for half a second."""
    monkeypatch.setattr(Recorded, "read", figures_read_once)


@pytest.fixture(scope="session")
def compiled_judging() -> None:
    """Compile the metrics of bytes and volumes, so that no test waits for that, or leaves it."""
    pixels = np.arange(1024, dtype=np.uint8).reshape(32, 32, 1)
    difference(pixels, 255 - pixels, suggest_gain(pixels, 255 - pixels))
    for each in (pixels, pixels.astype(np.float32) / 255):
        judge(each, each[::-1].copy())
        histogram(each)
    for spec in filters.discover().values():
        seen: NDArray[Any] = pixels
        if spec.kind is Kind.VOLUME:
            seen = np.random.default_rng(0).random((8, 9, 10, 1), np.float32)
        for parameter in spec.parameters:
            if isinstance(parameter, FloatParameter) and parameter.estimate is not None:
                parameter.estimate(seen, spec.defaults())


@pytest.fixture
def background(qtbot: QtBot) -> Iterator[Background]:
    background = Background()
    yield background
    background.close()


@pytest.fixture
def edits(tmp_path: Path) -> Edits:
    return Edits(tmp_path / "kernels")


@pytest.fixture
def cpu() -> FakeCpu:
    return FakeCpu()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "settings.json"


@pytest.fixture
def open_window(qtbot: QtBot, cpu: FakeCpu, store: Path, opens_slowly: None) -> Iterator[Opener]:
    windows = []

    def open_(
        gpu: Availability = NO_GPU,
        *,
        live: bool = False,
        emulated: Backend | None = None,
        panels: bool = True,
    ) -> MainWindow:
        """Open a window; `panels`: with all panels at the bottom, as users may have them."""
        settings = Settings(store)
        settings.set_text("live", "on" if live else "off")
        more = {"emulated": emulated} if emulated is not None else {}
        window = MainWindow({"gpu": FakeGpu(gpu), "cpu": cpu, **more}, settings)
        windows.append(window)
        window.resize(1000, 700)
        window.show()
        qtbot.waitExposed(window)
        if panels:
            open_panels(window)
        return window

    yield open_
    cpu.go.set()
    for window in windows:
        # A window whose save was not answered yet would stay open, and its thread with it.
        wait_until(qtbot, lambda window=window: not window.background.owes)
        window._leaves = True  # a test that fails may leave an output that is asked about
        window.close()
        window.deleteLater()


@pytest.fixture
def window(open_window: Opener) -> MainWindow:
    return open_window()


@pytest.fixture
def real_window(qtbot: QtBot, store: Path) -> Iterator[MainWindow]:
    """Yield a window that computes, live."""
    window = MainWindow({"cpu": CpuBackend(threads=2)}, Settings(store))
    window.resize(1000, 700)
    window.show()
    qtbot.waitExposed(window)
    open_panels(window)
    yield window
    qtbot.waitUntil(lambda: not window.background.owes)
    window._leaves = True
    window.close()
    window.deleteLater()


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    return write_picture(tmp_path / "ramp.png")


@pytest.fixture
def stylist(qapp: QApplication) -> Iterator[Stylist]:
    """Yield the stylist, and take its looks back for other tests."""
    palette, font, style = QPalette(qapp.palette()), qapp.font(), qapp.style().name()
    made = appearance.stylist()
    yield made
    made.appearance = appearance.Appearance()
    qapp.setStyleSheet("")
    if qapp.style().name() != style:
        qapp.setStyle(style)
    qapp.setPalette(palette)
    qapp.setFont(font)


@pytest.fixture
def loaded(qtbot: QtBot, window: MainWindow, picture: Path) -> MainWindow:
    """Return the window with the picture."""
    load(qtbot, window, picture)
    return window
