"""The main window: wires the panel, the views, the worker and the files together."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QImage
from PySide6.QtWidgets import (
    QLabel,
    QMainWindow,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from kernelscope.engine.backend import Availability, Backend
from kernelscope.engine.chain import estimate
from kernelscope.engine.costs import Costs
from kernelscope.engine.launch_report import LaunchReport
from kernelscope.engine.options import RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result, estimate_notices
from kernelscope.engine.step import ESTIMATE
from kernelscope.errors import AppError
from kernelscope.files import SAMPLES
from kernelscope.gui.bench.window import BenchWindow
from kernelscope.gui.canvas.drawing import Drawing, draw
from kernelscope.gui.canvas.image_views import ImagePair
from kernelscope.gui.canvas.pane import EARLIER
from kernelscope.gui.canvas.rendering import render
from kernelscope.gui.canvas.volume_viewer import VolumeViewer
from kernelscope.gui.dialogs.command_palette import CommandPalette
from kernelscope.gui.dialogs.file_dialogs import Pictures
from kernelscope.gui.dialogs.gpu_dialog import GpuDialog
from kernelscope.gui.dialogs.kernel_viewer import KernelViewer
from kernelscope.gui.dialogs.manual_window import ManualWindow
from kernelscope.gui.dialogs.phantom_dialog import Order, PhantomDialog
from kernelscope.gui.dialogs.recipe_dialogs import Recipes
from kernelscope.gui.dialogs.shortcut_dialog import ShortcutDialog
from kernelscope.gui.model.comparison import (
    Judged,
    View,
    following,
    judge_both,
    judging,
    offset_of,
)
from kernelscope.gui.model.form_state import FormState, made_with
from kernelscope.gui.model.history import History, Moment, Origin, Reference
from kernelscope.gui.model.runs import duration
from kernelscope.gui.pages.volume_page import VolumePage
from kernelscope.gui.panels.console import Console
from kernelscope.gui.panels.parameter_panel import ParameterPanel
from kernelscope.gui.panels.quality_panel import QualityPanel
from kernelscope.gui.panels.timing_panel import TimingPanel
from kernelscope.gui.panels.view_bar import ViewBar
from kernelscope.gui.widgets import messages as dialogs
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window.actions import Actions
from kernelscope.gui.window.docks import make_docks
from kernelscope.gui.window.run_bar import RunBar
from kernelscope.gui.window.status_bar import StatusBar
from kernelscope.gui.window.tool_bar import ToolBar
from kernelscope.gui.work.background import Background
from kernelscope.gui.work.bridge import WorkerBridge
from kernelscope.gui.work.warm_up import warm_up
from kernelscope.images.image import Image
from kernelscope.images.scan import MAX_COMPONENTS, Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume
from kernelscope.judging import colours
from kernelscope.judging.histogram import Histogram
from kernelscope.menus import DockName, State
from kernelscope.spec.samples import Kind

_logger = logging.getLogger(__name__)

_STATE_VERSION = 3
"""Raised when docks or toolbars change, so that an old saved layout is not applied."""

_PATIENCE = 2.0
"""Seconds that closing waits for a run to stop; only a kernel being compiled takes longer."""

_WORTH_SAYING = 0.1
"""Seconds of compiling that are told: code that was kept is loaded in less."""

_FIRST_SIZE = QSize(1280, 800)

_FRAME = QSize(16, 48)
"""Room for the frame that the desktop draws around the window; its size is unknown before."""
_STAND_IN = np.zeros((512, 512), np.uint8)
"""What the kernel viewer plans a launch for while there is no picture."""


class MainWindow(QMainWindow):
    """Input on the left, output on the right, settings beside them, timing below."""

    def __init__(
        self, backends: Mapping[str, Backend], settings: Settings, costs: Costs | None = None
    ) -> None:
        super().__init__()
        self.setObjectName("mainWindow")
        self.setWindowTitle("Kernelscope")
        self.setWindowIcon(theme.app_icon())
        self.setAcceptDrops(True)
        self.settings = settings
        self._backends = backends
        self._availability: dict[str, Availability] = {}
        self._history: History[Image] = History()
        self._history.form = lambda: None if self._has_volumes else self.panel.state()
        self._shown = self._history.state
        self._view = View.OUTPUT
        self._drawing: Drawing | None = None
        self._quality_seen = False
        self._console_seen = False
        self._close_when_saved = False
        self._launches: dict[str, LaunchReport] = {}
        self._ended = ""
        """How the last run ended if not well, until there is something newer to say."""
        self._under_way: tuple[object, FormState] | None = None
        """What the last run works on, and its settings."""
        self._automatic: tuple[str, ...] = ()
        """Parameters that the run under way estimates because the user wants it every time."""
        self._replaces = False
        self._kernel_viewer: KernelViewer | None = None
        self._bench: BenchWindow | None = None
        self._cold = False

        self.console = Console()  # first, so that it misses nothing
        self._background = Background(self)
        self.pictures = Pictures(self, settings, self._background)
        self.images = ImagePair()
        self.volumes = VolumePage(self._background, self._report)
        self.volumes.history.form = lambda: self.panel.state() if self._has_volumes else None
        self._pages = QStackedWidget()
        self.panel = ParameterPanel(backends, settings)
        self.recipes = Recipes(self, self._background, backends)
        self.timing = TimingPanel()
        self.quality = QualityPanel()
        self._controls = QWidget()
        self.docks = make_docks(
            self,
            {
                DockName.CONTROLS: self._controls,
                DockName.TIMING: self.timing,
                DockName.QUALITY: self.quality,
                DockName.CONSOLE: self.console,
            },
        )
        self.actions_ = Actions(self, self.docks, settings)
        self.quality.set_menu(self.actions_.reference_menu)
        self._tool_bar = ToolBar(*self.actions_.tools, parent=self)
        self.addToolBar(self._tool_bar)
        self._run_bar = RunBar(self.actions_["run"], self.actions_["cancel"])
        self._view_bar = ViewBar(
            tuple(self.actions_[id_] for id_ in ("undo", "redo", "reuse")),
            self.actions_.views,
        )
        self._lay_out()
        self._bridge = WorkerBridge(backends, self, costs)
        self._connect()
        self._restore()
        self._set_kind(Kind.PICTURE)
        self._refresh_actions()

    # --- what the menus and other parts ask for ---

    def find_gpu(self) -> None:
        """Look for a GPU in the background and offer it if there is one."""
        backends = self._backends

        def look() -> dict[str, Availability]:
            return {backend.id: backend.availability() for backend in backends.values()}

        self._background.start("gpu", look, self._on_availability, self.report_bug)

    def run(self) -> None:
        """Apply the filter to the input, in place of another run that is under way."""
        request = self._request()
        if request is None:
            return
        names = self.panel.automatic
        wanted = request.source, FormState.of(request, names).but(names)
        busy = self._bridge.busy or self.recipes.busy
        if busy and wanted == self._under_way:
            self._tell("This run is under way already; Esc stops it.")
            return
        self._replaces = busy
        self.recipes.stop()
        self._under_way = wanted
        if names:
            step = request.step
            values = {**step.parameters, **dict.fromkeys(names, ESTIMATE)}
            self._start_recipe(
                Recipe((replace(step, parameters=values),)), request.options.level, names
            )
        else:
            self._automatic = ()
            self._submit(request)

    def cancel(self) -> None:
        """Stop the run that is under way, and the recipe that it belongs to."""
        waits = self.recipes.busy and not self._bridge.busy
        self.recipes.stop()
        self._bridge.cancel()
        if waits:  # between two steps, or while a number is estimated
            _logger.info("Cancelled before it began")
            self._on_stopped()

    def save_output(self) -> None:
        """Ask where, then save the output; of several volumes the one that is shown."""
        volume = self.volumes.shown_output
        if self._has_volumes:
            if volume is not None:
                self.pictures.save([volume], self.volumes.output_name(volume))
        elif self._result is not None:
            request = self._result.request
            name = f"{Path(request.image.title).stem}-{request.step.filter.id}"
            self.pictures.save([self._result.image], name)

    def save_components(self) -> None:
        """Ask where, then save every component of the output, each to a file of its own."""
        result = self.volumes.result
        if self._has_volumes and result is not None:
            volumes = result.scan.volumes
            self.pictures.save(volumes, self.volumes.output_name(volumes[0]))

    def copy_output(self) -> None:
        """Put the output on the clipboard."""
        if self._result is not None:
            self.pictures.copy(self._result.image)

    def save_view(self) -> None:
        """Ask where, then save the residual or difference, of pictures as it is shown."""
        if self._has_volumes:
            self._background.start(
                "change",
                self.volumes.change,
                lambda change: self.pictures.save([change], change.title),
                self._report,
            )
        elif self._drawing is not None and self._drawing.image is not None:
            stem = Path(self._drawing.image.title).stem
            self.pictures.save([self._drawing.image], f"{stem}-{self._drawing.view}")

    def save_recipe(self) -> None:
        """Ask where, then save the steps to the input and the filter as it is set."""
        request = self._request()
        if request is not None:
            steps = self._any_history.current.steps if self._any_history.current else ()
            self.recipes.save((*steps, request))

    def use_output(self) -> None:
        """Make the output the new input."""
        if self._has_volumes:
            self.volumes.use_output()
        elif self._result is not None:
            moment = self._moment

            def go_on(following_moment: Moment[Image]) -> None:
                if self._source is moment.source:  # nothing else was opened or undone meanwhile
                    self._go_on(following_moment)

            self._background.start("use", lambda: following(moment), go_on, self._report)

    def undo(self) -> None:
        """Go back to the input before this one, with its output and reference."""
        if self._any_history.undo_name:
            self.recipes.stop()
            self._any_history.undo()
            self._come_back()

    def redo(self) -> None:
        """Take `undo` back."""
        if self._any_history.redo_name:
            self.recipes.stop()
            self._any_history.redo()
            self._come_back()

    def show_again(self, result: Result) -> None:
        """Go back to an earlier run: its input, output and settings."""
        volumes = isinstance(result.output, Scan)
        self.panel.set_kind(Kind.VOLUME if volumes else Kind.PICTURE)
        self._ended = ""
        self.panel.show_request(result.request)
        if volumes:
            self.volumes.show_result(result)
            return
        image = result.request.image
        if image is self._input:
            self._history.amend(result=result)
            self._show()
        else:
            known = self._history.moment_of(image)
            steps = known.steps if known else ()
            judged_by = result.request.reference
            reference = (
                Reference(judged_by, Origin.CHOSEN) if isinstance(judged_by, Image) else None
            )
            self._go_on(Moment(image, "Earlier Run", steps, reference, result))

    def use_input_as_reference(self) -> None:
        """Judge what comes of the input by the input itself."""
        if self._has_volumes:
            self.volumes.use_input_as_reference()
            self._judge()
        elif self._input is not None:
            self._set_reference(Reference(self._input, Origin.CHOSEN))

    def choose_reference(self) -> None:
        """Let the user choose what input and output are judged by."""
        self.pictures.choose_reference(Kind.VOLUME if self._has_volumes else Kind.PICTURE)

    def clear_reference(self) -> None:
        """Judge no longer."""
        if self._has_volumes:
            self._set_volume_reference(None)
        elif self._input is not None:
            self._set_reference(None)

    def set_view(self, name: str) -> None:
        """Show the output, or how it differs from the input or the reference."""
        self._view = View(name)
        self.actions_.mark_view(name)
        self._draw()

    def estimate(self, name: str) -> None:
        """Set the parameter of this name to what the input suggests."""
        request = self._request(of_slice=self.panel.filter_kind is Kind.PICTURE)
        if request is None:
            return

        def show(values: dict[str, float]) -> None:
            self.panel.set_estimates(request.step.filter.id, values)
            label = request.step.filter.parameter(name).label
            self._tell(f"{label} {values[name]:.4g}, estimated from {request.source.title}.")

        self._tell("Estimating…")
        self._background.start("estimate", lambda: estimate(request, [name]), show, self._report)

    def show_noise_map(self) -> None:
        """Show the noise around each voxel, estimated as the filter is set."""
        try:
            parameters = self.panel.arguments()["parameters"]
        except AppError as error:
            dialogs.show_error(self, error)
            return
        self._tell("Estimating the noise around each voxel…")
        self.volumes.show_noise(parameters, lambda text: self._tell(text))

    def show_gpu(self) -> None:
        """Tell what is known of the GPU."""
        looking = Availability(False, "Still looking for a GPU.")
        dialogs.open_dialog(
            GpuDialog(
                self._availability.get("gpu", looking),
                self,
                backend=self._backends.get("gpu"),
                background=self._background,
                settings=self.settings,
            )
        )

    def toggle_console(self) -> None:
        """Bring the console to the front, or hide it if it is there."""
        console, wanted = self.docks[DockName.CONSOLE], not self._console_seen
        console.setVisible(wanted)
        if wanted:
            console.raise_()

    def show_kernel(self) -> None:
        """Show the CUDA source of the chosen filter and level, beside the window."""
        try:
            request = self._create(of_slice=self.panel.filter_kind is Kind.PICTURE)
            if request is None:
                image = Image.from_array(_STAND_IN, "no picture")
                request = Request.create(image, **self.panel.arguments())
        except AppError as error:
            dialogs.show_error(self, error)
            return
        if self._kernel_viewer is None:
            self._kernel_viewer = KernelViewer(self._background, self._launches, self)
        self._kernel_viewer.show_request(request)
        self._kernel_viewer.show()
        self._kernel_viewer.raise_()
        self._kernel_viewer.activateWindow()

    def show_bench(self) -> None:
        """Show the bench, beside the window."""
        if self._bench is None:
            self._bench = BenchWindow(
                self._bridge,
                self.settings,
                self._availability,
                current=self._request,
                opened=lambda: self._source,
                parent=self,
            )
        self._bench.show()
        self._bench.raise_()
        self._bench.activateWindow()

    def new_phantom(self) -> None:
        """Ask for a phantom, make it and open it."""

        def make(order: Order) -> None:
            self._tell("Making a phantom…")
            self._background.start(
                "open", order.make, lambda made: self.volumes.open(*made), self._report
            )

        dialog = PhantomDialog(self)
        dialog.ordered.connect(make)
        dialogs.open_dialog(dialog)

    def open_slice(self) -> None:
        """Go on with a slice of the volume as a picture."""
        picture = self.volumes.slice_as_picture()
        if picture is not None:
            self._open(picture)

    def switch_kind(self) -> None:
        """Go from the volumes that are open to the picture that is, or back."""
        if not self._has_volumes:
            self._on_scan()
        elif self._input is not None:
            self._show()

    def show_manual(self) -> None:
        """Show the manual in a window of its own, at the page where it was."""
        guide = self.findChild(ManualWindow) or ManualWindow(self)
        guide.show()
        guide.raise_()

    def show_palette(self) -> None:
        """Let the user find a command by typing."""
        CommandPalette(self.actions_.commands(), self).show()

    def show_shortcuts(self) -> None:
        """List the keyboard shortcuts."""
        dialogs.open_dialog(ShortcutDialog(self))

    def show_about(self) -> None:
        """Open the about box."""
        dialogs.show_about(self)

    def report_bug(self, exception: BaseException) -> None:
        """Log an unexpected exception and offer the log; the window stays usable."""
        _logger.critical("Unexpected error", exc_info=exception)
        dialogs.show_bug(self, exception, self.console.text())

    def open_first(self, path: Path | None) -> None:
        """Open `path`, or a sample picture; then compile what Run is going to need."""
        self._cold = True
        self.pictures.open(path or SAMPLES[0].path)

    @property
    def canvas(self) -> ImagePair | VolumeViewer:
        """What shows the pictures or the volumes."""
        return self.volumes.viewer if self._has_volumes else self.images

    # --- building ---

    def _lay_out(self) -> None:
        column = QVBoxLayout(self._controls)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.volumes.components)
        column.addWidget(self.panel, 1)
        column.addWidget(self._run_bar)
        centre = QWidget()
        around = QVBoxLayout(centre)
        around.setContentsMargins(8, 4, 8, 4)
        around.addWidget(self._view_bar)
        self._pages.addWidget(self.images)
        self._pages.addWidget(self.volumes)
        around.addWidget(self._pages, 1)
        self.setCentralWidget(centre)

        self._pixel = QLabel()
        self._pixel.setObjectName("pixel")
        self._pixel.setContentsMargins(12, 0, 0, 0)
        self._pixel.setAccessibleName("Position and values under the cursor")
        self._zoom = QLabel()
        self._zoom.setObjectName("zoom")
        self._zoom.setAccessibleName("Zoom")
        self.setStatusBar(StatusBar())
        self.statusBar().setObjectName("statusBar")
        self.statusBar().addPermanentWidget(self._pixel)
        self.statusBar().addPermanentWidget(self._zoom)

    def _connect(self) -> None:
        self._background.settled.connect(self._on_settled)
        self.pictures.loaded.connect(self._on_loaded)
        self.pictures.scan_loaded.connect(self.volumes.open)
        self.pictures.component_loaded.connect(self.volumes.add)
        self.pictures.reference_loaded.connect(self._on_reference)
        self.pictures.saved.connect(self._on_saved)
        self.pictures.told.connect(self._tell)
        self.pictures.broken.connect(self.report_bug)
        self.images.described.connect(self._pixel.setText)
        self.images.zoomed.connect(lambda zoom: self._zoom.setText(f"{100 * zoom:.0f} %"))
        self.volumes.opened.connect(self._on_scan)
        self.volumes.drawn.connect(self._mark)
        self.volumes.drawn.connect(self._on_volume_drawn)
        self.volumes.viewer.described.connect(self._pixel.setText)
        self.volumes.components.chosen.connect(self._judge)
        self.volumes.components.add_wanted.connect(self._add_components)
        self.panel.filter_changed.connect(self.actions_.mark_filter)
        self.panel.kernel_wanted.connect(self.show_kernel)
        self.panel.estimate_wanted.connect(self.estimate)
        self.panel.changed.connect(self._on_settings)
        self.volumes.viewer.arranged.connect(self._mark)
        self._view_bar.gain_changed.connect(self._draw)
        self.docks[DockName.CONTROLS].visibilityChanged.connect(self._on_run_bar_seen)
        self.docks[DockName.QUALITY].visibilityChanged.connect(self._on_quality_seen)
        self.docks[DockName.CONSOLE].visibilityChanged.connect(self._on_console_seen)
        self.recipes.loaded.connect(self._run_recipe)
        self.recipes.preparing.connect(self._on_preparing)
        self.recipes.wanted.connect(self._show_what_was_estimated)
        self.recipes.wanted.connect(self._submit)
        self.recipes.failed.connect(self._on_failed)
        self.recipes.saved.connect(lambda path: self._tell(f"Saved {path.name}."))
        self.actions_.mark_filter(self.panel.filter_id)
        self.timing.resultActivated.connect(self.show_again)
        self._bridge.submitted.connect(self._on_submitted)
        self._bridge.progressed.connect(self._on_progress)
        self._bridge.finished.connect(self._on_finished)
        self._bridge.failed.connect(self._on_failed)
        self._bridge.stopped.connect(self._on_stopped)

    def _restore(self) -> None:
        screen = self.screen().availableGeometry()
        first = _FIRST_SIZE.boundedTo(screen.size() - _FRAME)
        if not self.restoreGeometry(self.settings.blob("geometry")):
            self.resize(first)
        elif not _is_reachable(self.frameGeometry()):  # saved on a screen that is gone, perhaps
            self.setWindowState(Qt.WindowState.WindowNoState)
            self.resize(first)
            self.move(screen.topLeft())
        self.restoreState(self.settings.blob("state"), _STATE_VERSION)

    # --- what happens ---

    def _on_settled(self, well: bool) -> None:
        """Close if that only waited for a save; stay if the save failed."""
        if self._close_when_saved and well:
            self.close()
        self._close_when_saved = False

    @property
    def _moment(self) -> Moment[Image]:
        """What is shown; there is none before the first picture."""
        assert self._history.current is not None
        return self._history.current

    @property
    def _input(self) -> Image | None:
        return self._history.current.source if self._history.current else None

    @property
    def _result(self) -> Result | None:
        return self._history.current.result if self._history.current else None

    @property
    def _any_history(self) -> History[Image] | History[Scan]:
        """The history of what is shown."""
        return self.volumes.history if self._has_volumes else self._history

    @property
    def _has_volumes(self) -> bool:
        """Whether a scan is shown in place of pictures."""
        return self._pages.currentWidget() is self.volumes

    @property
    def _source(self) -> Source | None:
        """What Run filters."""
        return self.volumes.scan if self._has_volumes else self._input

    def _create(self, *, of_slice: bool = False) -> Request | None:
        """Return a request for the input, if there is one; raises `AppError`.

        `of_slice` takes a slice instead of volumes.
        """
        if self._source is None:
            return None
        arguments = self.panel.arguments()
        if self._has_volumes and not of_slice:
            return self.volumes.request(**arguments)
        picture = self.volumes.slice_to_filter() if self._has_volumes else self._input
        assert picture is not None
        return Request.create(picture, **arguments)

    def _request(self, *, of_slice: bool = False) -> Request | None:
        """Return what Run asks for, or tell the user why that cannot be."""
        try:
            request = self._create(of_slice=of_slice)
        except AppError as error:
            dialogs.show_error(self, error)
            return None
        if request is None:
            self._tell("Open a picture first (Ctrl+O).")
        return request

    def _submit(self, request: Request) -> None:
        if isinstance(request.source, Image):
            request = judging(request, self._moment.reference)
        self._bridge.submit(request)

    def _show_what_was_estimated(self, request: Request) -> None:
        """Show in their fields the numbers that the run before the request estimated."""
        if request.step.filter.id == self.panel.filter_id:
            names = self.panel.automatic
            values = {name: request.step.parameters[name] for name in names}
            self.panel.set_estimates(request.step.filter.id, values)

    def _on_loaded(self, loaded: Image | Volume) -> None:
        if isinstance(loaded, Volume):
            self.volumes.open([loaded])
        else:
            self._open(loaded)

    def _on_scan(self) -> None:
        """Make room for a scan, or tell what is new of it."""
        scan = self.volumes.scan
        assert scan is not None
        self.recipes.stop()
        self._ended = ""
        self._set_kind(Kind.VOLUME)
        self._judge()
        self._refresh_actions()
        self.setWindowTitle(f"{scan.title} – Kernelscope")
        self.panel.show_estimates(self.volumes.result)
        if self.volumes.result is None:
            self._tell("  ".join((f"{scan.describe()}.", *scan.notices)))
        else:
            self._tell_result(self.volumes.result)

    def _on_volume_drawn(self, gain: int | None, savable: bool) -> None:
        self._view_bar.show_gain(gain)
        self.actions_.refresh_difference(savable)

    def _add_components(self, paths: list[Path]) -> None:
        room = MAX_COMPONENTS - len(self.volumes.scan.volumes if self.volumes.scan else ())
        if len(paths) > room:
            hint = f"At most {MAX_COMPONENTS} are filtered together: add {room} or fewer."
            dialogs.show_error(self, AppError(f"{len(paths)} volumes are too many.", hint))
            return
        for path in paths:
            self.pictures.open_component(path)
        if not paths:
            self.pictures.choose_component()

    def _set_kind(self, kind: Kind) -> None:
        """Show pictures or volumes, and what can be done with them."""
        volumes = kind is Kind.VOLUME
        changed = volumes is not self._has_volumes
        if changed:
            self._pixel.clear()
        self._pages.setCurrentWidget(self.volumes if volumes else self.images)
        self.volumes.components.setVisible(volumes)
        self.panel.set_kind(kind)
        self.actions_.refresh_kind(volumes)
        if volumes and changed:
            self._zoom.clear()
            self.volumes.set_view(self._view, self._view_bar.gain)

    def _open(self, image: Image) -> None:
        """Go on to a picture that has nothing to do with the last one."""
        reference = self._history.current.reference if self._history.current else None
        if reference is not None:  # one that was chosen may be meant for this picture
            kept = reference.origin is not Origin.NOISE
            reference = Reference(reference.image, Origin.KEPT) if kept else None
        self._go_on(Moment(image, f"Open {image.title}", reference=reference))

    def _go_on(self, moment: Moment[Image]) -> None:
        """Show `moment`, so that the one before can be come back to."""
        self.recipes.stop()
        self._ended = ""
        new = moment.reference is not None and self._reference_image() is None
        self._history.push(moment)
        self._show()
        quality = self.docks[DockName.QUALITY]
        if new and quality.toggleViewAction().isChecked():
            quality.raise_()

    def _come_back(self) -> None:
        """Show the current moment of what is open, and the settings that belong to it."""
        moment = self._any_history.current
        assert moment is not None
        self._ended = ""
        if moment.form is not None:
            self.panel.show_state(moment.form)
        if self._has_volumes:
            self.volumes.show_moment()
        else:
            self._show()

    def _on_settings(self) -> None:
        self._ended = ""
        self._mark()

    def _mark(self) -> None:
        """Say whether Run would make the output as things are set now, and how long it took."""
        result = self.volumes.result if self._has_volumes else self._result
        stale = result is not None and not self._is_current(result)
        canvas = self.volumes.viewer if self._has_volumes else self.images
        shows_map = self._has_volumes and self.volumes.shows_map
        canvas.output.set_stale(not self._is_map_current() if shows_map else stale)
        if self._bridge.busy or self.recipes.busy:
            return
        if self._ended or result is None:
            self._run_bar.show_idle(self._ended or "Ready.")
        else:
            done = f"done in {duration(result.seconds)}, {result.speed:.4g} {result.speed_unit}"
            if result.compile_seconds >= _WORTH_SAYING:
                done = f"{done}; compiling once took {duration(result.compile_seconds)} before"
            done = f"{done}."
            text = f"{EARLIER}{done}" if stale else f"D{done[1:]}"
            self._run_bar.show_idle(text, stale=stale)

    def _is_map_current(self) -> bool:
        """Tell whether the map of the noise that is shown is as things are set now."""
        try:
            return self.volumes.is_map_current(self.panel.arguments()["parameters"])
        except AppError:
            return False

    def _is_current(self, result: Result) -> bool:
        """Tell whether Run would do again what made `result`."""
        try:
            arguments = self.panel.arguments()
        except AppError:
            return False
        if self._has_volumes and not self.volumes.is_current(result):
            return False
        return made_with(result.request, arguments)

    def _show(self) -> None:
        """Show the current moment of pictures."""
        moment = self._moment
        image, result, view, gain = moment.source, moment.result, self._view, self._view_bar.gain
        new = image is not self.images.input.image

        def work() -> tuple[list[QImage], Drawing | None]:
            drawing = draw(view, result, moment.reference, gain) if result else None
            return render(image) if new else [], drawing

        def show(rendered: tuple[list[QImage], Drawing | None]) -> None:
            before, drawing = rendered
            self._shown = self._history.state
            if self._has_volumes:
                self._set_kind(Kind.PICTURE)
                self._refresh_actions()
            self.setWindowTitle(f"{image.title} – Kernelscope")
            if new:
                size = f"{image.width}×{image.height}, {image.mode}"
                details = ", ".join(filter(None, (size, moment.describe_steps())))
                self.images.input.show_picture(image, before, 0, f"Input: {image.title}", details)
                self.images.fit()
                self._tell("  ".join((f"{image.describe()}.", *image.notices)))
            self._show_drawing(drawing)
            self._show_reference()
            self._warm_up()

        def failed(error: Exception) -> None:
            self._history.state = self._shown
            self._refresh_actions()
            self._mark()
            self._report(error)

        self._refresh_actions()
        self._background.forget("draw")
        self._background.start("show", work, show, failed)

    def _draw(self) -> None:
        """Draw the view that is chosen of the result that is shown."""
        moment, view, gain = self._history.current, self._view, self._view_bar.gain
        if self._has_volumes:
            self.volumes.set_view(view, gain)
            return
        if moment is None or moment.result is None:
            return
        result = moment.result
        self._background.start(
            "draw",
            lambda: draw(view, result, moment.reference, gain),
            self._show_drawing,
            self._report,
        )

    def _show_drawing(self, drawing: Drawing | None) -> None:
        """Show a view of the current result, or that there is none."""
        result = self._result
        self._drawing = drawing
        amplified = drawing is not None and drawing.view is not View.OUTPUT
        self._view_bar.show_gain(drawing.gain if drawing is not None and amplified else None)
        self.actions_.refresh_difference(
            drawing is not None and amplified and drawing.image is not None
        )
        if drawing is None or result is None:
            self.images.output.clear()
            self._mark()
            return
        self.images.output.show_picture(
            result.image,
            drawing.rendered,
            offset_of(result.request),
            drawing.title(result.image),
            f"{result.where}, {result.settings}",
            f"{result.where}, {result.brief_settings}",
        )
        if drawing.problem:
            self.images.output.show_hint(drawing.problem)
        self._mark()

    def _set_reference(self, reference: Reference[Image] | None) -> None:
        self._history.amend(reference=reference)
        self._show_reference()
        self._draw()

    def _set_volume_reference(self, volume: Volume | None) -> None:
        try:
            self.volumes.set_reference(volume)
        except AppError as error:
            dialogs.show_error(self, error)
        self._judge()

    def _on_reference(self, image: Image | Volume) -> None:
        if isinstance(image, Image) is self._has_volumes:
            return  # the other kind is shown by now
        self._tell(f"{image.describe()}.")
        if isinstance(image, Image):
            self._set_reference(Reference(image, Origin.CHOSEN))
        else:
            self._set_volume_reference(image)

    def _reference_image(self) -> Image | None:
        moment = self._history.current
        return moment.reference.image if moment is not None and moment.reference else None

    def _show_reference(self) -> None:
        self.images.reference = self._reference_image()
        self._judge()

    def _on_quality_seen(self, seen: bool) -> None:
        """Bring the panel up to date when it comes into sight; behind a tab it costs nothing."""
        self._quality_seen = seen
        self._judge()

    def _on_console_seen(self, seen: bool) -> None:
        """Keep the button down while the console is in sight; behind another tab it is not."""
        self._console_seen = seen
        self.actions_["debug"].setChecked(seen)

    def _judge(self) -> None:
        """Compare the pictures with the reference and count their values, if that is seen."""
        moment = self._history.current
        if not self._quality_seen:
            return
        if self._has_volumes:
            self.volumes.judge(self.quality)
            return
        if moment is None:
            return
        planes = {"input": moment.source.planes}
        if moment.result is not None:
            planes["output"] = moment.result.image.planes

        def work() -> tuple[Judged, dict[str, Histogram]]:
            reference = moment.reference
            judged = (
                judge_both(moment.source, moment.result, reference.image) if reference else Judged()
            )
            return judged, {name: Histogram.of(colours(each)) for name, each in planes.items()}

        if moment.reference is not None:
            self.quality.show_comparing(moment.reference.image.title)

        def show(answer: tuple[Judged, dict[str, Histogram]]) -> None:
            judged, histograms = answer
            reference = moment.reference
            title, origin = (reference.image.title, reference.origin) if reference else ("", "")
            self.quality.show_judged(title, origin, judged)
            self.quality.show_histograms(histograms)

        self._background.start("judge", work, show, self._report)

    def _run_recipe(self, recipe: Recipe) -> None:
        """Run a recipe from a file, which is not what Run last began."""
        self._under_way = None
        self._start_recipe(recipe)

    def _start_recipe(
        self, recipe: Recipe, level: str | None = None, automatic: tuple[str, ...] = ()
    ) -> None:
        if self._source is None:
            self._tell("Open a picture first (Ctrl+O).")
            return
        self._replaces = self._replaces or self._bridge.busy
        self._bridge.cancel(followed=True)
        self._automatic = automatic
        try:
            options = RunOptions(**self.panel.run_options(), level=level)
            self.recipes.start(recipe, self._source, options)
        except AppError as error:
            dialogs.show_error(self, error)
        self._refresh_actions()

    def _continue_recipe(self) -> None:
        """Run the next step on the picture that the last one made, without showing that."""
        moment = self._moment

        def go_on(following_moment: Moment[Image]) -> None:
            if self._moment is moment and self.recipes.busy:
                self._history.push(following_moment)
                self.recipes.go_on(following_moment.source)

        self._background.start("use", lambda: following(moment), go_on, self._report)

    def _warm_up(self) -> None:
        if not self._cold or self._input is None:
            return
        self._cold = False
        try:
            request = Request.create(self._input, **self.panel.arguments())
        except AppError:
            return  # Run will say so
        self._background.start("warm-up", lambda: warm_up(request), lambda _: None, self._report)

    def _on_preparing(self, estimates: bool) -> None:
        """Say what keeps the next step from running: code for it may be compiled first."""
        self._ended = ""
        self._run_bar.show_progress("estimate" if estimates else "prepare", 0.0, self.recipes.step)

    def _on_submitted(self, request: Request) -> None:
        self._ended = ""
        self._run_bar.show_progress("Waiting", 0.0)
        instead = ", in place of the run that was under way" if self._replaces else ""
        self._replaces = False
        self._tell(f"{request.describe()}{instead}")
        self._refresh_actions()

    def _on_run_bar_seen(self, seen: bool) -> None:
        """Have Run and Cancel in the tool bar where the settings are closed."""
        for id_ in ("run", "cancel"):
            self._tool_bar.offer(self.actions_[id_], not seen)

    def _on_finished(self, result: Result) -> None:
        result = self.recipes.told(result)
        self.timing.add_result(result)
        if result.launch is not None:
            self._launches[result.launch.kernel] = result.launch
            if self._kernel_viewer is not None:
                self._kernel_viewer.refresh()
        self._tell_result(result)
        if result.request.source is not self._source:
            self._tell("The run on the previous picture is done; it is in the list of runs.")
            self._refresh_actions()
            self._mark()
        elif self._has_volumes:
            form = FormState.of(result.request, self._automatic)
            if self.recipes.has_more:
                self.recipes.go_on(self.volumes.go_on_unseen(result))
            else:
                self._follow_recipe(form)
                self.volumes.show_result(result)
                self.volumes.history.amend(form=form)
        else:
            form = FormState.of(result.request, self._automatic)
            self._history.amend(result=result, form=form)
            if self.recipes.has_more:
                self._continue_recipe()
            else:
                self._follow_recipe(form)
                self._show()

    def _follow_recipe(self, form: FormState) -> None:
        """End a recipe; after one from a file the panel shows the settings of its last step."""
        if self.recipes.busy and not self._automatic:
            self.panel.show_state(form)
        self.recipes.stop()

    def _on_progress(self, stage: str, fraction: float) -> None:
        self._run_bar.show_progress(stage, fraction, self.recipes.step)

    def _on_failed(self, error: Exception) -> None:
        error = self.recipes.fail(error)
        self._show_rest()
        self._ended = "Failed."
        self._mark()
        self._refresh_actions()
        self._report(error)

    def _show_rest(self) -> None:
        """Show how far a recipe came that did not reach its end."""
        if self._has_volumes:
            if self.volumes.is_behind:
                self.volumes.show_moment()
        elif self._input is not self.images.input.image:
            self._show()

    def _on_stopped(self) -> None:
        self._show_rest()
        self._ended = "Cancelled."
        self._mark()
        self._tell("")
        self._refresh_actions()

    def _on_saved(self, image: Image, path: Path) -> None:
        self.settings.add_recent(path)

    def _on_availability(self, availability: dict[str, Availability]) -> None:
        self._availability = availability
        self.panel.set_availability(availability)

    def _report(self, error: Exception) -> None:
        self._tell("")  # what was under way has ended
        if isinstance(error, AppError):
            dialogs.show_error(self, error)
        else:
            self.report_bug(error)

    def _tell(self, text: str) -> None:
        self.statusBar().showMessage(text)

    def _tell_result(self, result: Result) -> None:
        # What was estimated stands in its field and over the output.
        estimated = estimate_notices(result.request, result.estimates)
        notices = (notice for notice in result.notices if notice not in estimated)
        self._tell("  ".join((f"{result.where}.", *notices, f"{result.request.describe()}.")))

    def _refresh_actions(self) -> None:
        """Enable what can be done now."""
        volumes = self._has_volumes
        result = self.volumes.result if volumes else self._result
        busy = self._bridge.busy or self.recipes.busy
        self.actions_.refresh(
            State(
                source=self._source is not None,
                volumes=volumes,
                output=result is not None,
                components=len(result.scan.volumes) if volumes and result is not None else 0,
                other=(self._input if volumes else self.volumes.scan) is not None,
                busy=busy,
                difference=self.actions_.state.difference,
                undo=self._any_history.undo_name,
                redo=self._any_history.redo_name,
            )
        )
        self.canvas.set_running(busy)

    # --- Qt ---

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if Pictures.can_take(event.mimeData()):
            _copy(event)

    def dropEvent(self, event: QDropEvent) -> None:
        if self.pictures.take(event.mimeData()):
            _copy(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._background.owes:
            # A save that fails must be told, and the picture still be there to save elsewhere.
            self._close_when_saved = True
            self._tell("The window closes when the picture is saved…")
            event.ignore()
            return
        self.settings.set_blob("geometry", self.saveGeometry())
        self.settings.set_blob("state", self.saveState(_STATE_VERSION))
        self.panel.save()
        self.settings.flush()
        self.hide()  # what follows may take a moment
        self._bridge.close(_PATIENCE)
        self._background.close()
        self.console.close()
        super().closeEvent(event)


def _is_reachable(place: QRect) -> bool:
    """Tell whether the middle of a window is on a screen, and the window not far larger."""
    screens = [screen.availableGeometry() for screen in QGuiApplication.screens()]
    return any(
        screen.contains(place.center())
        and place.width() <= 2 * screen.width()
        and place.height() <= 2 * screen.height()
        for screen in screens
    )


def _copy(event: QDropEvent) -> None:
    """Accept what is dragged here as a copy: a file manager must not take its file away."""
    event.setDropAction(Qt.DropAction.CopyAction)
    event.accept()
