"""Makes the manual's pictures of the window: ``python resources/make_screenshots.py [NAME...]``.

Needs no screen. Those that show a GPU (see `GPU_PICTURES`) are left as they are where there is
none. What they show is measured while they are made: let nothing else run meanwhile.

``python resources/make_screenshots.py --views [NAME...]`` makes the main views at the usual sizes
of screens, dark and light and with large text, into build/views: to be looked at, not kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, NoReturn

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "app"))

import numpy as np
from PIL import Image as Photo
from PySide6.QtCore import QEventLoop, QSize
from PySide6.QtGui import QAction, QPixmap
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QDockWidget,
    QLabel,
    QListWidget,
    QSlider,
    QWidget,
)

from kernelscope import filters
from kernelscope.backends import create_backends
from kernelscope.backends.trial.exercises import exercises
from kernelscope.bench.charts import Plot
from kernelscope.engine.options import Device
from kernelscope.files import SAMPLES, read_image, write_image
from kernelscope.gui.model.kernel_edits import FIRST
from kernelscope.gui.model.ladder import RungPlace
from kernelscope.gui.starting import create_application
from kernelscope.gui.tools.bench_window import BenchWindow
from kernelscope.gui.tools.code_view import CodeEditor
from kernelscope.gui.tools.contact_sheet import ContactSheet
from kernelscope.gui.tools.gpu_dialog import GpuDialog
from kernelscope.gui.tools.kernel_viewer import KernelViewer
from kernelscope.gui.tools.memory_ladder_window import MemoryLadderBars
from kernelscope.gui.tools.phantom_dialog import PhantomOrder
from kernelscope.gui.widgets.appearance import Appearance, Scheme, stylist
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.image import Image
from kernelscope.images.phantom import Contrast, ScannerNoise
from kernelscope.schema.samples import Kind

FOLDER = Path(__file__).parent / "screenshots"
RESULTS = Path(__file__).parent / "bench"

GPU_PICTURES = ("gpu-info",)
"""Those that need a card. None of them shows the time of a kernel: nobody would remake it."""

NO_GPU_PICTURES = ("recorded",)

MADE = FOLDER / "made.json"
"""The day of each picture, and the digests of the reports whose figures it shows: a test refuses
one that is older than they are."""


class Look(NamedTuple):
    """A screen, and how the window looks on it."""

    name: str
    width: int  # of the screen, in logical pixels
    height: int
    scheme: Scheme = Scheme.DARK
    scale: float = 1.0  # of text
    ratio: int = 1  # of physical pixels to logical ones


LOOKS = (
    Look("1280x720-dark", 1280, 720),
    Look("1280x720-light", 1280, 720, Scheme.LIGHT),
    Look("1280x720-text-150", 1280, 720, scale=1.5),
    Look("1920x1080-dark", 1920, 1080),
    Look("1920x1080-light", 1920, 1080, Scheme.LIGHT),
    Look("1920x1080-text-150", 1920, 1080, Scheme.LIGHT, scale=1.5),
    Look("3840x2160-dark", 1920, 1080, ratio=2),
)

VIEWS = Path(__file__).parents[1] / "build" / "views"


class Studio:
    """A window with settings of its own, driven as a user would.

    `views`: it takes all `LOOKS` of a view, in place of one picture for the manual.
    """

    def __init__(self, *, views: bool = False) -> None:
        self.views = views
        self.app = QApplication.instance() or create_application()
        settings = Settings(Path(tempfile.mkdtemp()) / "settings.json")
        settings.set_text("bench/seen", "yes")
        self.window = MainWindow(create_backends(), settings)
        self.window.show()
        self.window.find_gpu()
        self.wait(lambda: bool(self.window.companions.availability))
        gpu = self.window.companions.availability.get("gpu")
        self.has_gpu = gpu is not None and gpu.available

    def wait(self, condition: Callable[[], bool], seconds: float = 600) -> None:
        end = time.monotonic() + seconds
        while not condition():
            self.app.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 50)
            if time.monotonic() > end:
                seen = [each for each in QApplication.topLevelWidgets() if each.isVisible()]
                texts = [label.text() for each in seen for label in each.findChildren(QLabel)]
                print("waited in vain; the windows say:", *texts, sep="\n  ", file=sys.stderr)
                _end(1)

    def settle(self) -> None:
        end = time.monotonic() + 0.5
        self.wait(lambda: time.monotonic() > end)

    def open(self, image: Image) -> None:
        self.window.file_dialogs.loaded.emit(image)
        self.wait(lambda: self.window.pictures.canvas.input.shown is image)

    def choose(self, filter_id: str, **values: object) -> None:
        self.window.session.set_filter(filter_id)
        self.window.session.set_values(filter_id, values)

    def run(self) -> None:
        ended: list[object] = []
        connection = self.window.runner.finished.connect(lambda result: ended.append(result))
        self.window.runner.run()
        self.wait(lambda: bool(ended) and not self.window.runner.busy)
        self.window.runner.finished.disconnect(connection)
        self.settle()

    def run_levels(self, device: str, *levels: str) -> None:
        for level in levels:
            self.window.session.choose_place(RungPlace(Device(device), level))
            self.run()

    def press(self, parent: QWidget, name: str) -> None:
        button = parent.findChild(QAbstractButton, name)
        assert button is not None, name
        button.click()

    def raise_dock(self, name: str) -> None:
        dock = self.window.findChild(QDockWidget, name)
        assert dock is not None
        button = self.window.findChild(QAbstractButton, name.replace("Dock", "PanelButton"))
        if button is None:
            dock.show()
            dock.raise_()
        elif not button.isChecked():
            button.click()  # a panel at the bottom leaves room for the pictures

    def take(
        self,
        name: str,
        width: int,
        height: int,
        widget: QWidget | None = None,
        reports: Iterable[Path] = (),
    ) -> None:
        """Save a picture of the window, or of `widget`, which shows figures of `reports`."""
        if self.views:
            self._take_looks(name, widget, width, height)
            return
        if widget is None:
            entries = self.window.levels.entries()
            reports = [each.figure.path for each in entries if each.figure is not None]
        widget = widget or self.window
        widget.resize(width, height)
        self.settle()
        path = FOLDER / f"{name}.png"
        widget.grab().save(str(path))
        with Photo.open(path) as photo:
            reduced = _reduced(photo.convert("RGB"))
        reduced.save(path, optimize=True)
        note(name, reports)
        print(name, flush=True)

    def _take_looks(self, name: str, widget: QWidget | None, width: int, height: int) -> None:
        VIEWS.mkdir(parents=True, exist_ok=True)
        for look in LOOKS:
            stylist().apply(Appearance(look.scheme, look.scale))
            self.settle()  # docks take the width that the text needs
            screen = QSize(look.width, look.height)
            shown = widget or self.window
            shown.resize(QSize(width, height).boundedTo(screen) if widget else screen)
            self.settle()
            picture = QPixmap(shown.size() * look.ratio)
            picture.setDevicePixelRatio(look.ratio)
            shown.render(picture)
            picture.save(str(VIEWS / f"{name}-{look.name}.png"))
        stylist().apply(Appearance())
        print(name, flush=True)

    def trigger(self, action: str) -> None:
        found = self.window.findChild(QAction, action)
        assert found is not None, action
        found.trigger()


def note(name: str, reports: Iterable[Path]) -> None:
    """Write down that a picture was made today, and from which reports."""
    made = json.loads(MADE.read_text("utf-8"))
    shown = {path.name: digest(path) for path in sorted(set(reports))}
    made[name] = {"day": datetime.now(UTC).date().isoformat(), "reports": shown}
    MADE.write_text(json.dumps(dict(sorted(made.items())), indent=1) + "\n", "utf-8")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _reduced(photo: Photo.Image) -> Photo.Image:
    """Return a picture with 256 colours, half of them exact: greys and accents of the window."""
    every = sorted(photo.getcolors(photo.width * photo.height) or [], reverse=True)
    values = [tuple(value) for _, value in every if isinstance(value, tuple)]
    vivid = [value for value in values if max(value) - min(value) > 40]
    exact = (vivid[:64] + [value for value in values if value not in vivid[:64]])[:128]
    rest = photo.quantize(128, Photo.Quantize.MEDIANCUT).getpalette() or []
    palette = Photo.new("P", (1, 1))
    palette.putpalette([*np.ravel(exact).tolist(), *rest])
    return photo.quantize(palette=palette, dither=Photo.Dither.NONE)


def window(studio: Studio) -> None:
    """Take a noisy picture, its median, and what the levels of the CPU take."""
    studio.window.file_dialogs.open(SAMPLES[0].path)
    studio.wait(lambda: studio.window.pictures.canvas.input.shown is not None)
    studio.choose("median", size=3)
    studio.run_levels("cpu", "serial", "parallel")
    studio.take("window", 1280, 800)


def denoise(studio: Studio) -> None:
    """Add noise, take it away, show by how much that helped."""
    clean = next(each for each in SAMPLES if each.path.stem == "camera")
    studio.window.file_dialogs.open(clean.path)
    studio.wait(lambda: studio.window.windowTitle().startswith("camera.bmp"))
    studio.settle()
    studio.choose("gaussian_noise", variance=0.001)
    studio.run()
    studio.window.page.use_output()
    studio.wait(lambda: studio.window.pictures.canvas.reference is not None)
    studio.window.steps.denoise()
    studio.wait(lambda: studio.window.session.filter_id == "collaborative")
    studio.run()
    studio.raise_dock("qualityDock")
    studio.take("denoise", 1280, 800)


def residual(studio: Studio) -> None:
    """Take away what `denoise` took away."""
    denoise(studio)
    studio.press(studio.window, "viewResidualButton")
    title = studio.window.pictures.canvas.output.findChild(QLabel, "outputTitle")
    assert title is not None
    studio.wait(lambda: "Residual" in title.text())
    studio.take("residual", 1280, 800)


def _open_phantom(studio: Studio, shape: tuple[int, int, int], sigma: float) -> None:
    order = PhantomOrder(shape, tuple(Contrast), ScannerNoise.RICIAN, sigma, 1)
    studio.window.scans.open(*order.make())
    studio.wait(lambda: studio.window.session.kind is Kind.VOLUME)
    studio.choose("mri_nlm")


def volume_residual(studio: Studio) -> None:
    _open_phantom(studio, (96, 128, 112), 9)
    studio.run()
    studio.press(studio.window, "viewResidualButton")
    studio.raise_dock("timingDock")
    studio.take("volume-residual", 1280, 800)
    studio.press(studio.window, "viewOutputButton")


def kernel(studio: Studio) -> None:
    """Show the difference of two levels, and the compiler's report where there is one."""
    studio.open(Image.from_array(np.zeros((4096, 4096), np.uint8), "4096"))
    studio.choose(
        "mask",
        mask=filters.get("mask").parameter("mask").parse("; ".join([" ".join(["1"] * 9)] * 9)),
    )
    if studio.has_gpu:
        studio.run_levels("gpu", "global")
    studio.window.companions.show_kernel(RungPlace(Device.GPU, "global"))
    viewer = studio.window.findChild(KernelViewer)
    assert viewer is not None
    other = viewer.findChild(QComboBox, "kernelOther")
    assert other is not None
    other.setCurrentIndex(other.findData("shared"))
    studio.press(viewer, "compileReport")
    report = viewer.findChild(QAbstractButton, "compileReport")
    assert report is not None
    studio.wait(report.isEnabled)
    studio.take("kernel", 1200, 760, viewer)
    viewer.close()


def bench(studio: Studio) -> None:
    """Show the saved comparison of levels of source F."""
    studio.window.companions.show_bench()
    bench_window = studio.window.findChild(BenchWindow)
    assert bench_window is not None
    reports = [RESULTS / f"{device}-f-levels.json" for device in ("cpu", "gpu")]
    bench_window.open_results(reports)
    studio.wait(lambda: bench_window.chart_view.isVisible())
    box = bench_window.findChild(QComboBox, "benchPlotKind")
    assert box is not None
    box.setCurrentText(Plot.SPEED_UP)
    studio.take("bench", 1320, 760, bench_window, reports)
    bench_window.close()


def lecture(studio: Studio) -> None:
    """Take the page on tiles, with the counts of the emulated GPU."""
    studio.window.file_dialogs.open(SAMPLES[2].path)
    studio.wait(lambda: studio.window.pictures.canvas.input.shown is not None)
    studio.window.companions.show_lecture()
    opened = studio.window.companions.lecture
    assert opened is not None
    pages = opened.findChild(QComboBox, "lecturePages")
    assert pages is not None
    pages.setCurrentIndex(pages.findData("tiles"))
    opened.set_values(size=9, block="16x16")
    studio.settle()
    studio.wait(lambda: opened.settled)
    opened.count()
    studio.wait(lambda: opened.counted)
    studio.take("lecture", 1180, 620, opened)
    opened.close()


def xray(studio: Studio) -> None:
    """Take a pixel of a mean at level Shared, compared with Global, half-way through its steps."""
    studio.window.file_dialogs.open(SAMPLES[2].path)
    studio.wait(lambda: studio.window.pictures.canvas.input.shown is not None)
    studio.choose("mean", size=5)
    studio.window.companions.show_xray()
    opened = studio.window.companions.xray
    assert opened is not None
    for name, level in (("xrayLevel", "Shared memory"), ("xrayOther", "Global memory")):
        box = opened.findChild(QComboBox, name)
        assert box is not None
        box.setCurrentText(level)
    title, slider = opened.findChild(QLabel, "xrayTitle"), opened.findChild(QSlider, "xraySlider")
    assert title is not None
    assert slider is not None
    studio.wait(lambda: "Global memory" in title.text())
    slider.setValue(slider.maximum() * 2 // 3)
    studio.take("xray", 1240, 690, opened)
    opened.close()


def memory_ladder(studio: Studio) -> None:
    """Take the levels of a mask on an H200, with recorded times."""
    studio.window.file_dialogs.open(SAMPLES[2].path)
    studio.wait(lambda: studio.window.pictures.canvas.input.shown is not None)
    studio.choose("median", size=5)
    for _ in range(6):  # recorded results are read meanwhile
        studio.settle()
    studio.window.companions.show_memory_ladder()
    opened = studio.window.companions.memory_ladder
    assert opened is not None
    sides = opened.findChild(QComboBox, "memoryLadderSide")
    bars = opened.findChild(MemoryLadderBars)
    assert sides is not None
    assert bars is not None
    sides.setCurrentIndex(sides.count() - 1)
    studio.settle()
    studio.wait(lambda: "counting" not in bars.accessibleDescription(), seconds=900)
    figures = [each.figure for each in opened.ladder().steps if each.figure is not None]
    studio.take("memory-ladder", 1180, 690, opened, [each.path for each in figures])
    opened.close()


def batch(studio: Studio) -> None:
    """Take a batch in the middle of 48 files, one of which is cut off."""
    folder = Path(tempfile.mkdtemp()) / "scans"
    folder.mkdir()
    sources = [read_image(SAMPLES[number].path).pixels for number in (0, 2)]
    for number in range(48):
        pixels = np.roll(sources[number % len(sources)], 37 * number, axis=1)
        write_image(Image.from_array(pixels), folder / f"scan-{number:03}.tif")
    (folder / "scan-005.tif").write_bytes((folder / "scan-005.tif").read_bytes()[:9000])
    studio.window.file_dialogs.open(SAMPLES[2].path)
    studio.wait(lambda: studio.window.pictures.canvas.input.shown is not None)
    studio.choose("median", size=5)
    studio.window.companions.show_batch()
    opened = studio.window.companions.batch
    assert opened is not None
    opened.add([folder])
    studio.wait(lambda: len(opened.queue) == 48)
    devices = opened.form.findChild(QComboBox, "batchDevice")
    assert devices is not None
    devices.setCurrentIndex(1)
    opened.press_start()
    studio.wait(lambda: opened.queue.ended >= 20)
    opened.press_start()
    studio.take("batch", 1060, 660, opened)
    opened.cancel()
    studio.wait(lambda: not opened.running)
    opened.close()


def edited_kernel(studio: Studio) -> None:
    """Take a kernel of the user's with a mistake, at whose line the compiler's message stands."""
    studio.open(Image.from_array(np.zeros((512, 512), np.uint8), "512"))
    studio.choose("mean")
    studio.window.companions.show_kernel(RungPlace(Device.GPU, "shared"))
    viewer = studio.window.findChild(KernelViewer)
    assert viewer is not None
    version = viewer.findChild(QComboBox, "kernelVersion")
    assert version is not None
    version.setCurrentIndex(version.findData(FIRST))
    editor = viewer.findChild(CodeEditor)
    state = viewer.findChild(QLabel, "editState")
    assert editor is not None
    assert state is not None
    line = "            for (int t = -RADIUS; t <= RADIUS; ++t) part += row[t];"
    assert line in editor.toPlainText()
    editor.setPlainText(editor.toPlainText().replace(line, line.replace("row[t]", "rows[t]")))
    viewer.panel.compile()
    studio.wait(lambda: "error" in state.text())
    editor.go_to_message(1)
    studio.take("edited-kernel", 1280, 760, viewer)
    viewer.close()


def exercise(studio: Studio) -> None:
    """Take an answer that misses the last column, with the map of its wrong pixels."""
    studio.window.companions.show_exercises()
    opened = studio.window.companions.exercises
    assert opened is not None
    rows = opened.findChild(QListWidget, "exerciseList")
    editor = opened.findChild(CodeEditor)
    state = opened.findChild(QLabel, "editState")
    assert rows is not None
    assert editor is not None
    assert state is not None
    rows.setCurrentRow(0)
    right = exercises()[0].solution
    wrong = right.replace("x >= picture.width", "x >= picture.width - 1")
    assert wrong != right
    editor.setPlainText(wrong)
    opened.panel.compile()
    studio.wait(lambda: " pictures. " in state.text())
    studio.take("exercise", 1280, 760, opened)
    opened.close()


def recorded(studio: Studio) -> None:
    """Run the levels of the CPU, and unfold those of the missing card with their recorded times."""
    studio.window.file_dialogs.open(SAMPLES[0].path)
    studio.wait(lambda: studio.window.pictures.canvas.input.shown is not None)
    studio.choose("median", size=5)
    studio.run_levels("cpu", "serial", "parallel")
    studio.wait(lambda: any(each.figure for each in studio.window.levels.entries()))
    rungs = studio.window.levels.ladder.rungs
    rungs.headings[Device.GPU].setExpanded(True)
    studio.window.resize(1280, 800)
    studio.settle()
    rungs.scrollToBottom()
    studio.take("recorded", 1280, 800)


def gpu_info(studio: Studio) -> None:
    studio.window.companions.show_gpu()
    dialog = studio.window.findChild(GpuDialog)
    assert dialog is not None
    studio.settle()
    studio.take("gpu-info", 720, 900, dialog)
    dialog.close()


# Views that are not in the manual ------------------------------------------------------


def colours(studio: Studio) -> None:
    """Denoise a photograph, with the filters in front."""
    studio.window.file_dialogs.open(SAMPLES[-1].path)
    studio.wait(lambda: studio.window.pictures.canvas.input.shown is not None)
    studio.choose("sliding_dct")
    studio.run()
    studio.raise_dock("filtersDock")
    studio.take("colours", 1280, 800)


def steps(studio: Studio) -> None:
    studio.window.file_dialogs.open(SAMPLES[0].path)
    studio.wait(lambda: studio.window.pictures.canvas.input.shown is not None)
    studio.choose("median", size=5)
    studio.run()
    studio.window.page.use_output()
    studio.choose("unsharp")
    studio.run()
    studio.raise_dock("runsDock")
    studio.take("steps", 1280, 800)


def volume(studio: Studio) -> None:
    _open_phantom(studio, (96, 128, 112), 9)
    studio.run()
    studio.take("volume", 1280, 800)


def contact_sheet(studio: Studio) -> None:
    studio.window.file_dialogs.open(SAMPLES[0].path)
    studio.wait(lambda: studio.window.pictures.canvas.input.shown is not None)
    studio.choose("bilateral")
    studio.run()
    studio.trigger("contactSheet")
    sheet = studio.window.findChild(ContactSheet)
    assert sheet is not None
    studio.wait(lambda: bool(sheet.tiles) and all(each.picture for each in sheet.tiles))
    studio.take("contact-sheet", 1100, 800, sheet)
    sheet.close()


PICTURES: dict[str, Callable[[Studio], None]] = {
    "window": window,
    "residual": residual,  # and denoise
    "kernel": kernel,
    "bench": bench,
    "lecture": lecture,
    "volume-residual": volume_residual,
    "recorded": recorded,
    "gpu-info": gpu_info,
    "xray": xray,
    "memory-ladder": memory_ladder,
    "batch": batch,
    "edited-kernel": edited_kernel,
    "exercise": exercise,
}

MORE_VIEWS: dict[str, Callable[[Studio], None]] = {
    "colours": colours,
    "steps": steps,
    "volume": volume,
    "contact-sheet": contact_sheet,
}


def main() -> None:
    views = "--views" in sys.argv
    offered = {**PICTURES, **MORE_VIEWS} if views else PICTURES
    wanted = [each for each in sys.argv[1:] if each != "--views"] or list(offered)
    if unknown := set(wanted) - set(offered):
        sys.exit(f"error: no picture {', '.join(unknown)}; there are {', '.join(offered)}")
    for name in wanted:
        studio = Studio(views=views)
        if name in GPU_PICTURES and not studio.has_gpu:
            print(f"{name} needs a GPU", flush=True)
        elif name in NO_GPU_PICTURES and studio.has_gpu:
            print(f"{name} needs a computer without a GPU", flush=True)
        else:
            offered[name](studio)
        studio.window.close()


def _end(status: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # threads of a compiler or a worker may still run


if __name__ == "__main__":
    try:
        main()
    except Exception:
        traceback.print_exc()
        _end(1)
    _end(0)
