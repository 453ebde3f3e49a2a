"""A backend under the tests' control, and actions of a user on a window."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import (
    QColor,
    QDragEnterEvent,
    QDropEvent,
    QKeySequence,
    QMouseEvent,
    QWheelEvent,
)
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QDialog,
    QDockWidget,
    QFileDialog,
    QInputDialog,
    QLabel,
    QMessageBox,
    QWidget,
)
from pytestqt.qtbot import QtBot

from kernelscope.engine.backend import Availability, Fact, FactGroup
from kernelscope.engine.context import RunContext
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.gui.model.ladder import RungPlace
from kernelscope.gui.model.regions import Interest, Regions
from kernelscope.gui.viewer.plane_canvas import PlaneCanvas
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.schema.crop import Box
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import CPU_LEVELS, Level
from kernelscope.schema.parameters import FloatParameter

WIDTH, HEIGHT = 40, 30

Opener = Callable[..., MainWindow]

NO_GPU = Availability(False, "No NVIDIA driver was found.", ("Install it.",))


def open_panels(window: MainWindow) -> None:
    """Show the panels at the bottom as tabs, with the runs in front."""
    for name in (DockName.RUNS, DockName.TIMING, DockName.QUALITY, DockName.MEASURE):
        window.docks[name].show()
    window.docks[DockName.RUNS].raise_()


def program_threads() -> list[threading.Thread]:
    """Return every thread of the program, the worker's too."""
    return [each for each in threading.enumerate() if each.name.startswith("kernelscope")]


class FakeCpu:
    """Inverts pictures and halves volumes; waits in the middle until the test lets it go on."""

    id = "cpu"
    name = "CPU"

    def __init__(self) -> None:
        self.go = threading.Event()
        self.go.set()
        self.entered = threading.Event()
        self.one = threading.Semaphore(0)
        """Released once for each run that may go on alone."""
        self.deaf = False
        """Whether it does not look at the token, as while compiling."""
        self.error: Exception | None = None
        self.requests: list[Request] = []
        self.estimates: dict[str, object] = {}
        self.compiling = 0.0
        self.stage = "compute"
        """The stage that is reported while it waits."""

    def availability(self) -> Availability:
        return Availability(True, "test processor")

    def facts(self) -> Iterator[FactGroup]:
        return iter(())

    def load(self) -> tuple[Fact, ...]:
        return ()

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return CPU_LEVELS

    def run(
        self,
        request: Request,
        level: Level,
        context: RunContext,
    ) -> Source:
        self.requests.append(request)
        context.progress(self.stage, 0.5)
        self.entered.set()
        while not self.go.wait(0.005) and not self.one.acquire(blocking=False):
            if not self.deaf:
                context.token.check()
        if self.error is not None:
            raise self.error
        context.log.estimates |= self.estimates
        if self.compiling:
            context.log.add("compile", self.compiling, counted=False)
        if isinstance(request.source, Scan):
            box = request.region
            with context.log.stage("compute"):
                planes = request.scan.planes
                part = box.of(planes) if isinstance(box, Box) else planes
                return request.target.like(part / 2)
        shape = request.step.filter.output_shape(
            request.image.planes.shape, request.step.parameters, request.step.border
        )
        with context.log.stage("compute"):
            y, x = (
                (a - b) // 2 for a, b in zip(request.image.planes.shape[:2], shape[:2], strict=True)
            )
            cut = request.image.planes[y : y + shape[0], x : x + shape[1]]
            return request.image.like(np.ascontiguousarray(255 - cut))

    def mean_squared_error(self, image: Image, other: Image) -> None:
        return None

    def close(self) -> None:
        pass


class FakeGpu(FakeCpu):
    """A GPU that is there or not, as the test wants."""

    id = "gpu"
    name = "GPU"

    def __init__(self, state: Availability = NO_GPU) -> None:
        super().__init__()
        self.state = state

    def availability(self) -> Availability:
        return self.state

    def levels(self, spec: FilterSpec) -> tuple[Level, ...]:
        return spec.levels("gpu")


def write_picture(path: Path, value: int = 0) -> Path:
    """Write a grey picture whose pixel (x, y) is ``4 y + x + value``."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    Pillow.fromarray((4 * y + x + value).astype(np.uint8)).save(path)
    return path


def load(qtbot: QtBot, window: MainWindow, path: Path) -> None:
    window.file_dialogs.open(path)
    qtbot.waitUntil(lambda: shown(window) == path.name)


def shown(window: MainWindow) -> str:
    image = window.pictures.canvas.input.shown
    return "" if image is None else image.title


def wait_until(qtbot: QtBot, condition: Callable[..., object]) -> None:
    """Wait for a condition, which may have defaults to bind the variable of a loop."""
    qtbot.waitUntil(lambda: bool(condition()))


def answered(qtbot: QtBot, background: Background) -> None:
    """Wait until all its work is done, that of which nobody wants the answer as well."""
    qtbot.waitUntil(lambda: not background._tasks)


def settle(qtbot: QtBot, window: MainWindow) -> None:
    """Wait until nothing is on its way to a window: for tests that something does *not* happen."""
    worker = window.runner.tasks._worker

    def rests() -> bool:
        QApplication.processEvents()
        busy = worker._token or worker._pending or window.runner.busy or window.background._tasks
        return not busy and not due_timers(window)

    qtbot.waitUntil(rests)


def due_timers(widget: QWidget) -> list[QTimer]:
    """Return the timers that will call once, and soon; others watch over long work."""
    return [
        each
        for each in widget.findChildren(QTimer)
        if each.isActive() and each.isSingleShot() and each.interval() <= 1000
    ]


def press(qtbot: QtBot, window: MainWindow, key: str) -> None:
    """Press a shortcut where the focus is."""
    qtbot.waitUntil(lambda: QApplication.activeModalWidget() is None)
    window.activateWindow()  # a desktop does that when a dialog closes
    qtbot.waitUntil(window.isActiveWindow)
    sequence: Any = QKeySequence(key)
    combination = sequence[0]
    target = window.focusWidget() or window
    qtbot.keyClick(target, combination.key(), combination.keyboardModifiers())


def run(qtbot: QtBot, window: MainWindow) -> None:
    """Press F5 and wait for the new output."""
    output = window.page.canvas.output
    before = output.shown
    press(qtbot, window, "F5")
    qtbot.waitUntil(lambda: output.shown not in (before, None))


def show_quality(window: MainWindow) -> None:
    window.findChild(QDockWidget, "qualityDock").raise_()


def judged_by(window: MainWindow) -> str:
    return window.findChild(QLabel, "referenceName").text()


def click(qtbot: QtBot, window: QWidget, name: str) -> None:
    """Click on a button, which has a name or a text for screen readers."""
    button = window.findChild(QAbstractButton, name)
    assert button is not None, name
    assert button.accessibleName() or button.text(), name
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def child(window: QWidget, kind: type, name: str):
    """Return the visible widget of this name; filters have parameters of the same name."""
    found = [w for w in window.findChildren(kind, name) if w.isVisibleTo(window)]
    assert len(found) == 1, f"{len(found)} widgets are called {name}"
    return found[0]


def dialog(qtbot: QtBot, window: QWidget, kind: type):
    """Wait for a dialog of this kind and return it."""

    def find() -> list[QDialog]:
        return [each for each in window.findChildren(kind) if each.isVisible()]

    qtbot.waitUntil(lambda: bool(find()))
    return find()[0]


def answer(qtbot: QtBot, box: QMessageBox, text: str) -> None:
    button = next(each for each in box.buttons() if each.text().replace("&", "") == text)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def hover(canvas: PlaneCanvas, point: QPointF | None) -> None:
    """Let the pointer be over a point of a plane; None: it leaves."""
    canvas.pair.hover(canvas.number, point)


def choose_place(window: MainWindow, device: str, level: str | None = None) -> None:
    """Choose a rung of the ladder without running, as Space does."""
    rungs = window.levels.ladder.rungs
    window.levels.refresh()  # it waits for the next paint otherwise
    place = RungPlace(Device(device), level)
    item = rungs.rung_item(place)
    assert item is not None, place
    rungs.setCurrentItem(item)
    QTest.keyClick(rungs, Qt.Key.Key_Space)


def offers(window: MainWindow, device: str) -> bool:
    """Return whether some level of a device can run."""
    return any(r.place.device == device and not r.obstacle for r in window.session.rungs)


def state(window: MainWindow) -> str:
    """Return the line under Run: the progress, or how a run ended that did not end well."""
    return child(window, QLabel, "runState").text()


def counted(monkeypatch: pytest.MonkeyPatch, where: object, name: str) -> list[object]:
    """Return a list that grows by the answer of each call of a function."""
    answers: list[object] = []
    real = getattr(where, name)

    def call(*args: object, **kwargs: object) -> object:
        answers.append(real(*args, **kwargs))
        return answers[-1]

    monkeypatch.setattr(where, name, call)
    return answers


def headline(window: MainWindow) -> str:
    """Return time, rate and quality of the output."""
    return child(window, QLabel, "headlineText").text()


def is_done(window: MainWindow) -> bool:
    """Return whether a run ended well, and its time stands over the pictures."""
    return not window.runner.busy and not state(window) and bool(headline(window))


def contrast(one: QColor | str, other: QColor | str) -> float:
    """Return the contrast of two colours by the relative luminance of WCAG 2."""

    def luminance(colour: QColor) -> float:
        parts = (colour.redF(), colour.greenF(), colour.blueF())
        linear = [
            each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
        ]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    low, high = sorted((luminance(QColor(one)), luminance(QColor(other))))
    return (high + 0.05) / (low + 0.05)


def choose_files(chooser: QFileDialog, *paths: Path) -> None:
    """Answer a file dialog with `paths`, with the signals that a dialog sends when accepted."""
    chooser.filesSelected.emit([str(path) for path in paths])
    if len(paths) == 1:
        chooser.fileSelected.emit(str(paths[0]))
    chooser.reject()


def save_as(
    qtbot: QtBot, window: MainWindow, path: Path, quality: int | None = None
) -> QInputDialog | None:
    """Save there; return the question about the quality of a JPEG, which is answered."""
    choose_files(dialog(qtbot, window, QFileDialog), path)
    if path.suffix != ".jpg":
        return None
    question = dialog(qtbot, window, QInputDialog)
    if quality is not None:
        question.setIntValue(quality)
    question.accept()
    return question


def estimated(parameter: FloatParameter, planes: NDArray[Any], values: Mapping[str, Any]) -> float:
    """Return the filter's estimate, within the range of the parameter."""
    assert parameter.estimate is not None
    return min(max(parameter.estimate(planes, values), parameter.minimum), parameter.maximum)


def files_of(paths: Iterable[Path]) -> QMimeData:
    """Return files as a file manager gives them to the window under the pointer."""
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return mime


def dropping(
    mime: QMimeData, actions: Qt.DropAction = Qt.DropAction.CopyAction, at: int = 50
) -> QDropEvent:
    buttons = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    return QDropEvent(QPointF(at, at), actions, mime, *buttons)


def entering(place: QPointF, actions: Qt.DropAction, mime: QMimeData) -> QDragEnterEvent:
    """Return a drag that enters a widget; newer versions of Qt want fractions of pixels."""
    make: Any = QDragEnterEvent
    buttons = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    try:
        event: QDragEnterEvent = make(place, actions, mime, *buttons)
    except TypeError:
        event = make(place.toPoint(), actions, mime, *buttons)
    return event


def mouse(canvas: QWidget, kind: QEvent.Type, at: QPointF, button: Qt.MouseButton) -> None:
    """Send an event of the mouse: Qt's own helpers send no buttons while the mouse moves."""
    pressed = Qt.MouseButton.NoButton if kind is QEvent.Type.MouseButtonRelease else button
    place = canvas.mapToGlobal(at)
    event = QMouseEvent(kind, at, place, button, pressed, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(canvas, event)


def drag(canvas: QWidget, start: QPointF, way: QPointF, button: Qt.MouseButton) -> None:
    mouse(canvas, QEvent.Type.MouseButtonPress, start, button)
    mouse(canvas, QEvent.Type.MouseMove, start + way, button)
    mouse(canvas, QEvent.Type.MouseButtonRelease, start + way, button)
    QApplication.sendEvent(canvas, QEvent(QEvent.Type.Leave))  # no probe over the picture


def wheel(
    canvas: QWidget,
    delta: int,
    modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
    at: QPointF | None = None,
) -> None:
    """Turn the wheel over a place, by default the middle; with Ctrl it zooms."""
    at = QPointF(canvas.width() / 2, canvas.height() / 2) if at is None else at
    place, no_button = QPointF(canvas.mapToGlobal(at.toPoint())), Qt.MouseButton.NoButton
    turn, phase = QPoint(0, delta), Qt.ScrollPhase.NoScrollPhase
    event = QWheelEvent(at, place, QPoint(), turn, no_button, modifiers, phase, False)
    QApplication.sendEvent(canvas, event)


def kept_regions(acts: list[str] | None = None) -> Regions:
    """Return regions of no window; names of acts that are steps go to `acts`."""
    kept: list[tuple[Interest, ...]] = [()]

    def keep(regions: tuple[Interest, ...], act: str, goes_on: bool) -> None:
        kept[0] = regions
        if acts is not None and not goes_on:
            acts.append(act)

    return Regions(lambda: kept[0], keep, lambda: None)
