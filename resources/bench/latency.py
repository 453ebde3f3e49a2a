"""From a change of a setting to painted pixels, in the real window without a screen.

    python resources/bench/latency.py cpu --json resources/bench/cpu-latency.json
    python resources/bench/latency.py gpu --json resources/bench/gpu-latency.json

For each case a picture is opened and the border is changed again and again, as a user does it in
its list. The clock stops when the output view has painted the new result, or the part of it
that is visible. At 1024² the whole picture fits the view; larger ones are shown one to one, or with
--fit as a whole. The first change of each case compiles and is timed apart. Every painted part is
compared with a run of its own. Use a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PySide6.QtCore import QEvent, QEventLoop, QObject, QPointF, QTimer
from PySide6.QtWidgets import QApplication, QComboBox, QWidget

from kernelscope.backends import create_backends
from kernelscope.base import machine
from kernelscope.engine.backend import Backend
from kernelscope.engine.request import Request, alike
from kernelscope.engine.run import execute
from kernelscope.gui.application import SWITCH_INTERVAL
from kernelscope.gui.model.freshness import Freshness
from kernelscope.gui.starting import create_application
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.work.garbage import GarbageCollector
from kernelscope.images.image import Image
from kernelscope.images.reduction import reduced

REPEATS = 9
PATIENCE_MS = 60_000
SETTLING = 60
"""Seconds, of which a change takes a few, and compiling most."""
WINDOW = (1920, 1080)
BORDERS = ("reflect", "mirror")

LAPLACE_9 = tuple(tuple(81 if (y, x) == (4, 4) else -1 for x in range(9)) for y in range(9))


class Case(NamedTuple):
    """A filter and its parameters."""

    filter_id: str
    parameters: dict[str, Any]
    name: str
    tolerance: int = 0
    """Levels by which a part may differ from the same part of the whole."""


LINEAR = (
    Case("mean", {"size": 3}, "mean 3"),
    Case("mean", {"size": 15}, "mean 15"),
    Case("weighted_mean", {}, "weighted mean"),
    Case("mask", {}, "mask 3"),
    Case("mask", {"mask": LAPLACE_9}, "mask 9"),
    Case("sobel", {}, "Sobel"),
    Case("laplace", {}, "Laplace"),
)
CASES = {
    "cpu": (
        *LINEAR,
        Case("median", {"size": 3}, "median 3"),
        Case("median", {"size": 5}, "median 5"),
    ),
    "gpu": (
        *LINEAR,
        Case("median", {"size": 5}, "median 5"),
        Case("median", {"size": 7}, "median 7"),
        Case("nlm", {"search_radius": 10, "patch": 7, "filter_sigma": 0.1}, "NLM radius 10", 1),
    ),
}
SIZES = {"cpu": (1024, 4096), "gpu": (1024, 4096, 16384)}
DTYPES = ("uint8", "uint16")


class Watch(QObject):
    """Stops the clock when the output view has painted what is wanted."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__()
        self.window = window
        self.wanted: Request | None = None
        self.loop = QEventLoop()
        self.painted = 0.0
        self.spent = 0.0
        """Processor seconds of the last change, of all threads."""
        self.patience = QTimer(self)
        self.patience.setSingleShot(True)
        self.patience.timeout.connect(self.loop.quit)
        pane = window.pictures.canvas.output
        for widget in (pane, *pane.findChildren(QWidget)):
            widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        if event.type() == QEvent.Type.Paint and self.wanted is not None and self.shows():
            QTimer.singleShot(0, self.stop)  # after the paint, which follows this filter
        return False

    def shows(self) -> bool:
        """Return whether the output view shows a result of the settings, visible or whole."""
        shown = self.window.session.subject.shown
        assert self.wanted is not None
        if shown is None or not alike(shown, self.wanted):
            return False
        visible: Any = self.window.session.pictures.visible_parts(self.wanted)
        return shown.region is None or any(shown.region.contains(part) for part in visible)

    def stop(self) -> None:
        if self.wanted is not None:
            self.wanted, self.painted = None, time.perf_counter()
            self.loop.quit()

    def time(self, change: Any) -> float:
        """Return the seconds from `change` until its result is painted."""
        begun, spent = time.perf_counter(), time.process_time()
        change()
        self.wanted = self.window.session.subject.request(self.window.session.require())
        self.patience.start(PATIENCE_MS)
        self.loop.exec()
        self.patience.stop()
        if self.wanted is not None:
            raise SystemExit(f"not painted within a minute: {self.wanted.describe()}")
        self.spent = time.process_time() - spent
        return self.painted - begun

    def settle(self) -> None:
        """Wait until the whole result is there and the user pauses, or nothing more comes.

        Also until the code is ready, without which a filter takes many times as long.
        """
        deadline = time.perf_counter() + SETTLING
        while time.perf_counter() < deadline:
            QApplication.processEvents()
            time.sleep(0.005)
            last = self.window.live.last
            ready = last is None or not last.uncompiled
            exact = self.window.session.freshness is Freshness.EXACT
            if ready and exact and self.window.live.resting:
                return


def picture(side: int, dtype: str) -> Image:
    """Return a picture of smooth structure and noise."""
    tile = min(side, 2048)
    random = np.random.default_rng(side)
    y, x = np.mgrid[:tile, :tile].astype(np.float32)
    values = 0.5 + 0.3 * np.sin(x / 37) * np.cos(y / 53)
    values += random.standard_normal((tile, tile), np.float32) * 0.05
    white = np.iinfo(dtype).max
    pixels = (values.clip(0, 1) * white).astype(dtype)
    return Image.from_array(np.tile(pixels, (side // tile, side // tile)), f"{side}")


def border_box(window: MainWindow) -> QComboBox:
    return next(b for b in window.panel.findChildren(QComboBox, "border"))


def measure(
    watch: Watch,
    case: Case,
    image: Image,
    one_to_one: bool,
    repeats: int,
    backends: dict[str, Backend],
) -> dict[str, Any]:
    """Return the row of a case."""
    window = watch.window
    window.session.set_filter(case.filter_id)
    window.session.set_values(case.filter_id, case.parameters)
    if window.session.subject.source is not image:
        window.session.pictures.open_source(image)
    watch.settle()
    box = border_box(window)
    images = window.pictures.canvas
    if one_to_one:
        images.look_at(QPointF(image.width / 2, image.height / 2), 1.0)
    else:
        images.fit()

    def change() -> None:
        other = BORDERS[box.currentData() == BORDERS[0]]
        box.setCurrentIndex(box.findData(other))
        box.activated.emit(box.currentIndex())  # as a choice in the list does

    watch.settle()
    first = watch.time(change)
    times, computing, spent = [], [], []
    for _ in range(repeats + 1):
        watch.settle()
        times.append(watch.time(change))
        spent.append(watch.spent)
        last = window.live.last  # before the whole, which follows a part when the user pauses
        assert last is not None
        computing.append(last.seconds)
        shown, painted = last.request, last.output.planes
    part = shown.region
    fresh = execute(window.session.subject.request(window.session.require()), backends)
    whole = fresh.output.planes
    expected = part.of(whole) if part else whole
    if shown.reduction > 1:
        expected = reduced(expected, shown.reduction)
    off = int(np.abs(painted.astype(np.int64) - expected).max())
    if off > (shown.reduction > 1) + case.tolerance:  # a reduction may round halves either way
        raise SystemExit(f"{case.name}: the output that was painted is wrong, by up to {off}")
    times, computing = times[1:], computing[1:]
    height, width = painted.shape[:2]
    return {
        "filter": case.name,
        "size": image.width,
        "dtype": image.pixels.dtype.name,
        "painted": f"{width}x{height}",
        "device": fresh.device,
        "least_ms": round(1e3 * min(times), 2),
        "processor_ms": round(1e3 * min(spent[1:]), 2),
        "median_ms": round(1e3 * statistics.median(times), 2),
        "worst_ms": round(1e3 * max(times), 2),
        "run_ms": round(1e3 * statistics.median(computing), 2),
        "first_ms": round(1e3 * first, 1),
        "times_ms": [round(1e3 * each, 2) for each in times],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("device", choices=("cpu", "gpu"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--fit", action="store_true", help="show pictures as a whole")
    parser.add_argument("--only", help="names of filters that contain this")
    options = parser.parse_args()
    application = create_application()  # with its style sheet, as the program
    sys.setswitchinterval(SWITCH_INTERVAL)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(Path(folder) / "settings.json")
        settings.set_texts("run", {"device": options.device})
        backends = create_backends()
        window = MainWindow(create_backends(), settings)
        window.resize(*WINDOW)
        window.show()
        window.find_gpu()
        while not window.companions.availability:
            application.processEvents()
        garbage = GarbageCollector()
        garbage.start()
        watch = Watch(window)
        rows = []
        for size in options.sizes or SIZES[options.device]:
            for dtype in DTYPES:
                image = picture(size, dtype)
                for case in CASES[options.device]:
                    if options.only and options.only not in case.name:
                        continue
                    one_to_one = size > 1024 and not options.fit
                    row = measure(watch, case, image, one_to_one, options.repeats, backends)
                    rows.append(row)
                    if options.json:  # rows are kept if the rest is cut off
                        save(options.json, rows)
                    print(
                        f"{row['filter']:14} {size:6} {dtype:7} {row['painted']:>10} "
                        f"{row['device']}  {row['median_ms']:8.2f} ms  (least "
                        f"{row['least_ms']:.2f}, worst {row['worst_ms']:.2f}, processor "
                        f"{row['processor_ms']:.2f}, run {row['run_ms']:.2f}, first "
                        f"{row['first_ms']:.0f})",
                        flush=True,
                    )
        garbage.stop()
        window.close()
        application.processEvents()
        for backend in backends.values():
            backend.close()


def save(path: Path, rows: list[dict[str, Any]]) -> None:
    content = {"machine": machine.facts(), "window": list(WINDOW), "rows": rows}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
