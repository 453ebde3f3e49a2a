"""The program with a window: start, unexpected exceptions, end."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QApplication

from kernelscope.backends import GPU_VARIABLE, create_backends, gpu_numbers
from kernelscope.base import jit
from kernelscope.base.compile_process import CompileProcess
from kernelscope.engine.backend import Backend
from kernelscope.engine.costs import Costs, default_path
from kernelscope.gui.starting import StartScreen, show_start
from kernelscope.gui.widgets import messages
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.gui.work import crash_log
from kernelscope.gui.work.crash_log import CrashLog
from kernelscope.gui.work.garbage import INTERVAL, GarbageCollector

SWITCH_INTERVAL = 0.0005
"""Seconds that other threads wait for the interpreter at most while the window is busy.

With the default of 5 ms, beside a window that computes 20 ms at a time, a kernel of 0.9 ms took
6 ms and 64 copies 250 to 306 ms; so 0.9 to 1.6 ms and 1 to 38 ms. See
resources/bench/switch_interval.py.
"""


class BugCatcher(QObject):
    """Sends uncaught exceptions of any thread to the GUI thread."""

    caught = Signal(object)

    def install(self) -> None:
        """Take the place of the interpreter's hooks."""
        sys.excepthook = self._on_exception
        threading.excepthook = lambda args: self._on_exception(
            args.exc_type, args.exc_value, args.exc_traceback
        )

    def _on_exception(
        self,
        kind: type[BaseException],
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if issubclass(kind, Exception):
            self.caught.emit(exception or kind())
        else:
            sys.__excepthook__(kind, exception or kind(), traceback)


def _backends(settings: Settings) -> dict[str, Backend]:
    """Return the backends; the environment's choice of GPUs goes before the settings'."""
    chosen = None
    if not os.environ.get(GPU_VARIABLE):
        with contextlib.suppress(ValueError):  # nothing was chosen, or another program wrote it
            chosen = gpu_numbers(settings.text("gpu"))
    return create_backends(chosen, emulated=True)


def run(path: Path | None = None, *more: Path, screen: StartScreen | None = None) -> int:
    """Show the window in the place of `screen`, and run the event loop until it is closed."""
    screen = screen or show_start(path)
    folder = crash_log.default_folder()
    crashes = crash_log.take_crashes(folder)
    log = CrashLog(folder)
    sys.setswitchinterval(SWITCH_INTERVAL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl+C in the terminal ends the program
    settings = Settings()
    compiler = CompileProcess()
    jit.compile_elsewhere(compiler)
    window = MainWindow(_backends(settings), settings, Costs(default_path()))
    catcher = BugCatcher()
    catcher.caught.connect(window.report_bug, Qt.ConnectionType.QueuedConnection)
    catcher.install()
    window.show()
    QTimer.singleShot(0, screen.close)
    window.find_gpu()
    window.preparing.wanted = True
    window.open_first(path, *more)
    garbage = GarbageCollector()
    QTimer.singleShot(INTERVAL, garbage.start)  # going through all objects would hold the picture
    if crashes:
        messages.show_crash(window, crashes)
    status = QApplication.exec()
    garbage.stop()
    compiler.close()
    log.close()
    if threading.active_count() > 1:
        # A kernel is being compiled, or a file hangs. Neither can be interrupted, and ending
        # the interpreter under a compiler is not safe. Everything worth keeping is on the disk.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status
