"""The main window: wires the panel, the views, the worker and the files together."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QImage
from PySide6.QtWidgets import QDockWidget, QLabel, QMainWindow, QVBoxLayout, QWidget

from app.engine.backend import Availability, Backend
from app.engine.costs import Costs
from app.engine.image import Image
from app.engine.launch import LaunchReport
from app.engine.request import Request, Result
from app.errors import AppError
from app.files import SAMPLES
from app.filters.spec import Border
from app.gui import dialogs, theme
from app.gui.actions import Actions
from app.gui.background import Background
from app.gui.bridge import WorkerBridge
from app.gui.console import Console
from app.gui.gpu_dialog import GpuDialog
from app.gui.image_views import ImagePair
from app.gui.kernel_viewer import KernelViewer
from app.gui.parameter_panel import ParameterPanel
from app.gui.pictures import Pictures
from app.gui.rendering import render
from app.gui.run_bar import RunBar
from app.gui.settings import Settings
from app.gui.timing_panel import TimingPanel
from app.gui.warm_up import warm_up

_logger = logging.getLogger(__name__)

_STATE_VERSION = 1
"""Raised when docks or toolbars change, so that an old saved layout is not applied."""

_PATIENCE = 2.0
"""Seconds that closing waits for a run to stop; only a kernel being compiled takes longer."""

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
        self._input: Image | None = None
        self._result: Result | None = None
        self._close_when_saved = False
        self._launches: dict[str, LaunchReport] = {}
        self._kernel_viewer: KernelViewer | None = None
        self._cold = False

        self.console = Console()  # first, so that it misses nothing
        self._background = Background(self)
        self.pictures = Pictures(self, settings, self._background)
        self.images = ImagePair()
        self.panel = ParameterPanel(backends, settings)
        self.timing = TimingPanel()
        self._controls = QWidget()
        right, bottom = (
            Qt.DockWidgetArea.RightDockWidgetArea,
            Qt.DockWidgetArea.BottomDockWidgetArea,
        )
        self.docks = (
            self._dock("controls", "Settings", self._controls, right),
            self._dock("timing", "Timing", self.timing, bottom),
            self._dock("console", "Console", self.console, bottom),
        )
        self.actions_ = Actions(self)
        self._run_bar = RunBar(self.actions_.run, self.actions_.cancel)
        self._lay_out()
        self._bridge = WorkerBridge(backends, self, costs)
        self._connect()
        self._restore()
        self._refresh_actions()

    # --- what the menus and other parts ask for ---

    def find_gpu(self) -> None:
        """Look for a GPU in the background and offer it if there is one."""
        backends = self._backends

        def look() -> dict[str, Availability]:
            return {backend.id: backend.availability() for backend in backends.values()}

        self._background.start("gpu", look, self._on_availability, self.report_bug)

    def run(self) -> None:
        """Apply the filter to the input, in place of a run that is under way."""
        if self._input is None:
            self._tell("Open a picture first (Ctrl+O).")
            return
        try:
            request = Request.create(self._input, **self.panel.arguments())
        except AppError as error:
            dialogs.show_error(self, error)
            return
        self._bridge.submit(request)

    def cancel(self) -> None:
        """Stop the run that is under way."""
        self._bridge.cancel()

    def save_output(self) -> None:
        """Ask where, then save the output."""
        if self._result is not None:
            name = f"{Path(self._result.request.image.title).stem}-{self._result.request.filter.id}"
            self.pictures.save(self._result.image, name)

    def copy_output(self) -> None:
        """Put the output on the clipboard."""
        if self._result is not None:
            self.pictures.copy(self._result.image)

    def use_output(self) -> None:
        """Make the output the new input."""
        if self._result is not None:
            self._show(self._result.image)

    def show_again(self, result: Result) -> None:
        """Go back to an earlier run: its input, output and settings."""
        self.panel.show_request(result.request)
        self._show(result.request.image, result)

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

    def show_kernel(self) -> None:
        """Show the CUDA source of the chosen filter and level, beside the window."""
        image = self._input or Image.from_array(_STAND_IN, "no picture")
        try:
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

    # --- building ---

    def _dock(
        self, name: str, title: str, content: QWidget, area: Qt.DockWidgetArea
    ) -> QDockWidget:
        dock = QDockWidget(title, self)
        dock.setObjectName(name + "Dock")
        dock.setWidget(content)
        self.addDockWidget(area, dock)
        return dock

    def _lay_out(self) -> None:
        controls, timing, console = self.docks
        column = QVBoxLayout(self._controls)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.panel, 1)
        column.addWidget(self._run_bar)
        self.setCorner(Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.RightDockWidgetArea)
        self.setCorner(Qt.Corner.BottomLeftCorner, Qt.DockWidgetArea.LeftDockWidgetArea)
        controls.setAllowedAreas(
            Qt.DockWidgetArea.LeftDockWidgetArea | Qt.DockWidgetArea.RightDockWidgetArea
        )
        self.tabifyDockWidget(timing, console)
        console.hide()
        self.resizeDocks([timing], [190], Qt.Orientation.Vertical)

        centre = QWidget()
        around = QVBoxLayout(centre)
        around.setContentsMargins(8, 8, 8, 4)
        around.addWidget(self.images)
        self.setCentralWidget(centre)

        self._pixel = QLabel()
        self._pixel.setObjectName("pixel")
        self._pixel.setAccessibleName("Position and values under the cursor")
        self._zoom = QLabel()
        self._zoom.setObjectName("zoom")
        self._zoom.setAccessibleName("Zoom")
        self.statusBar().setObjectName("statusBar")
        self.statusBar().addPermanentWidget(self._pixel)
        self.statusBar().addPermanentWidget(self._zoom)

    def _connect(self) -> None:
        self._background.settled.connect(self._on_settled)
        self.pictures.loaded.connect(self._show)
        self.pictures.saved.connect(self._on_saved)
        self.pictures.told.connect(self._tell)
        self.pictures.broken.connect(self.report_bug)
        self.images.described.connect(self._pixel.setText)
        self.images.zoomed.connect(lambda zoom: self._zoom.setText(f"{100 * zoom:.0f} %"))
        self.panel.filter_changed.connect(self.actions_.mark_filter)
        self.panel.kernel_wanted.connect(self.show_kernel)
        self.actions_.mark_filter(self.panel.filter_id)
        self.timing.resultActivated.connect(self.show_again)
        self._bridge.submitted.connect(self._on_submitted)
        self._bridge.progressed.connect(self._run_bar.show_progress)
        self._bridge.finished.connect(self._on_finished)
        self._bridge.failed.connect(self._on_failed)
        self._bridge.stopped.connect(self._on_stopped)

    def _restore(self) -> None:
        if not self.restoreGeometry(self.settings.blob("geometry")):
            self.resize(_FIRST_SIZE.boundedTo(self.screen().availableSize() - _FRAME))
        self.restoreState(self.settings.blob("state"), _STATE_VERSION)

    # --- what happens ---

    def _on_settled(self, well: bool) -> None:
        """Close if that only waited for a save; stay if the save failed."""
        if self._close_when_saved and well:
            self.close()
        self._close_when_saved = False

    def _show(self, image: Image, result: Result | None = None) -> None:
        """Show `image` as the input, and `result` as the output if there is one."""
        new = image is not self.images.input.image
        self._input = image

        def work() -> tuple[list[QImage], list[QImage]]:
            return render(image) if new else [], render(result.image) if result else []

        def show(rendered: tuple[list[QImage], list[QImage]]) -> None:
            before, after = rendered
            if new:
                self.images.input.show_picture(image, before)
                self.images.fit()
                self.setWindowTitle(f"{image.title} – Kernelscope")
                self._tell("  ".join((f"{image.describe()}.", *image.notices)))
            if result is None:
                self.images.output.clear()
            else:
                self.images.output.show_picture(
                    result.image, after, _offset(result.request), result.describe()
                )
            self._result = result
            self._refresh_actions()
            self._warm_up()

        def failed(error: Exception) -> None:
            self._input = self.images.input.image
            self._report(error)

        self._background.start("show", work, show, failed)

    def _warm_up(self) -> None:
        if not self._cold or self._input is None:
            return
        self._cold = False
        try:
            request = Request.create(self._input, **self.panel.arguments())
        except AppError:
            return  # Run will say so
        self._background.start("warm-up", lambda: warm_up(request), lambda _: None, self._report)

    def _on_submitted(self, request: Request) -> None:
        self._run_bar.show_progress("Waiting", 0.0)
        self._tell(request.describe())
        self._refresh_actions()

    def _on_finished(self, result: Result) -> None:
        self.timing.add_result(result)
        if result.launch is not None:
            self._launches[result.launch.kernel] = result.launch
            if self._kernel_viewer is not None:
                self._kernel_viewer.refresh()
        self._run_bar.show_idle(
            f"Done in {1e3 * result.seconds:.4g} ms, {result.megapixels_per_second:.4g} MP/s."
        )
        self._tell("  ".join((f"{result.describe()}.", *result.notices)))
        if result.request.image is self._input:
            self._show(self._input, result)
        else:
            self._tell("The run on the previous picture is done; it is in the list of runs.")
        self._refresh_actions()

    def _on_failed(self, error: Exception) -> None:
        self._run_bar.show_idle("Failed.")
        self._tell("")
        self._refresh_actions()
        self._report(error)

    def _on_stopped(self) -> None:
        self._run_bar.show_idle("Cancelled.")
        self._tell("")
        self._refresh_actions()

    def _on_saved(self, image: Image, path: Path) -> None:
        self.settings.add_recent(path)

    def _on_availability(self, availability: dict[str, Availability]) -> None:
        self._availability = availability
        self.panel.set_availability(availability)

    def _report(self, error: Exception) -> None:
        if isinstance(error, AppError):
            dialogs.show_error(self, error)
        else:
            self.report_bug(error)

    def _tell(self, text: str) -> None:
        self.statusBar().showMessage(text)

    def _refresh_actions(self) -> None:
        """Enable what can be done now."""
        self.actions_.run.setEnabled(self._input is not None)
        self.actions_.cancel.setEnabled(self._bridge.busy)
        for action in (self.actions_.save, self.actions_.copy, self.actions_.reuse):
            action.setEnabled(self._result is not None)

    # --- Qt ---

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802
        if Pictures.can_take(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802
        if self.pictures.take(event.mimeData()):
            event.acceptProposedAction()

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802
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


def _offset(request: Request) -> int:
    """Return where the result begins in the input: border “valid” cuts off the rim."""
    valid = request.border is Border.VALID
    return request.filter.radius(request.parameters) if valid else 0
