"""Opens several volumes after a question; that some of the files are not opened is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from kernelscope.base.errors import AppError, NotANumber
from kernelscope.gui.model.together import FoundFile, read_together
from kernelscope.gui.tools.together_dialog import TogetherDialog
from kernelscope.gui.widgets.messages import open_dialog, show_error, show_notice
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.work.background import Background
from kernelscope.images.volume import Volume

_MOST_PROBLEMS = 12
"""Files that a message explains."""


class VolumesTogether(QObject):
    """Reads several volumes, and asks how they belong together."""

    scan_loaded = Signal(object)
    """`list of Volume`: These are the components of one scan."""
    each_loaded = Signal(object)
    """`list of Volume`: Each of these is a scan of its own."""
    announced = Signal(str)
    """One line for the status bar."""

    def __init__(
        self,
        window: QWidget,
        settings: Settings,
        background: Background,
        ask_nan: Callable[[NotANumber, Callable[[float], None]], None],
        failed: Callable[[Exception], None],
    ) -> None:
        super().__init__(window)
        self._window, self._settings, self._background = window, settings, background
        self._ask_nan, self._failed = ask_nan, failed

    def open(self, paths: Sequence[Path], nan: float | None = None) -> None:
        """Read `paths`, with `nan` in place of NaN, and ask for their relation."""
        self.announced.emit(f"Opening {len(paths)} volumes…")

        def failed(error: Exception) -> None:
            if isinstance(error, NotANumber):
                self._ask_nan(error, lambda number: self.open(paths, number))
            else:
                self._failed(error)

        self._background.start("together", lambda: read_together(paths, nan), self._show, failed)

    def _show(self, found: list[FoundFile]) -> None:
        self.announced.emit("")
        volumes = [each.volume for each in found if each.volume is not None]
        if len(volumes) < 2:
            self._explain(found)
            if volumes:
                self._open(volumes, self.each_loaded.emit)
            return
        dialog = TogetherDialog(found, self._window)
        dialog.together.connect(lambda chosen: self._open(chosen, self.scan_loaded.emit))
        dialog.each.connect(lambda chosen: self._open(chosen, self.each_loaded.emit))
        open_dialog(dialog)

    def _open(self, volumes: Sequence[Volume], show: Callable[[list[Volume]], None]) -> None:
        for volume in volumes:
            if volume.path is not None:
                self._settings.add_recent(volume.path)
        show(list(volumes))

    def _explain(self, found: Sequence[FoundFile]) -> None:
        """Say why files were not opened."""
        problems = [f"{each.path.name}: {each.problem}" for each in found if each.problem]
        if not problems:
            return
        more = len(problems) - _MOST_PROBLEMS
        text = "\n".join(problems[:_MOST_PROBLEMS] + [f"… and {more} others."] * (more > 0))
        if len(problems) == len(found):
            show_error(self._window, AppError("None of the volumes could be opened.", text))
            return
        files = "1 file adds" if len(problems) == 1 else f"{len(problems)} files add"
        show_notice(self._window, f"{files} nothing to the volume that is open.", text)
