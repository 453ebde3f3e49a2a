"""The program as a process: how it starts and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernelscope import __version__
from kernelscope.gui.work.crash_log import default_folder, take_crashes
from tests.patience import PATIENCE

_START_AND_CLOSE = """
import sys, threading, time
from PySide6.QtCore import QTimer
from kernelscope.gui import application; from kernelscope.gui.window import main_window

def compile_for_long(request):
    QTimer.singleShot(0, window, window.close)
    time.sleep(600)

class Window(main_window.MainWindow):
    def open_first(self, path):
        global window
        window = self
        print(sys.getswitchinterval(), flush=True)
        self.session.live = False
        super().open_first(path)

main_window.warm_up = compile_for_long
application.MainWindow = Window
sys.exit(application.run(None))
"""


@pytest.mark.slow
def test_program_ends_quickly_while_a_kernel_is_being_compiled(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "QT_QPA_PLATFORM": "offscreen",
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    done = subprocess.run(
        [sys.executable, "-c", _START_AND_CLOSE],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.split() == ["0.0005"]
    assert (tmp_path / "kernelscope" / "settings.json").exists()
    assert list((tmp_path / "state").rglob("crash-*")) == []  # it ended well


_CRASH = """
import faulthandler, sys
from PySide6.QtCore import QTimer
from kernelscope.gui import application
from kernelscope.gui.window import main_window

def crash_in_a_kernel():
    faulthandler._sigsegv()

class Window(main_window.MainWindow):
    def open_first(self, path):
        QTimer.singleShot(0, crash_in_a_kernel)

application.MainWindow = Window
application.run(None)
"""

_NEXT_START = """
import sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QPlainTextEdit
from kernelscope.gui import application
from kernelscope.gui.widgets.messages import ReportDialog
from kernelscope.gui.window import main_window

class Window(main_window.MainWindow):
    def open_first(self, path):
        QTimer.singleShot(0, self.look)

    def look(self):
        for dialog in self.findChildren(ReportDialog):
            print(dialog.findChild(QPlainTextEdit).toPlainText())
            dialog.close()
        self.close()

application.MainWindow = Window
sys.exit(application.run(None))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the place of the log is set by XDG_STATE_HOME")
def test_a_crash_is_shown_once_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    environment = {
        **os.environ,
        "QT_QPA_PLATFORM": "offscreen",
        "XDG_CONFIG_HOME": str(tmp_path),
    }

    def start(code: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    assert start(_CRASH).returncode == -signal.SIGSEGV
    shown = start(_NEXT_START)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(f"Kernelscope {__version__}, Python ")
    assert "Segmentation fault" in shown.stdout
    assert "in crash_in_a_kernel" in shown.stdout
    assert take_crashes(default_folder()) == ""


_FIRST_SIGN = """
import sys
from pathlib import Path
from kernelscope.gui.starting import show_start
screen = show_start(Path("brain.nii.gz"))
print(screen.isVisible(), screen.grab().width() > 0)
print(sorted(each for each in sys.modules if each in %r))
from kernelscope.gui import application
print(sorted(each for each in sys.modules if each in %r))
"""

_LATER = ("kernelscope.gui.window.main_window", "pyqtgraph", "numba")
_ON_DEMAND = (
    "numba",
    "pyqtgraph",
    "kernelscope.cli.apply",
    "kernelscope.teach.handbook",
    "kernelscope.gui.tools.xray_window",
    "kernelscope.gui.tools.bench_window",
)


@pytest.mark.slow
def test_the_first_sign_comes_before_the_modules_of_the_window(tmp_path: Path) -> None:
    """They take most of a second to load; those of tools wait until they are asked for."""
    done = subprocess.run(
        [sys.executable, "-c", _FIRST_SIGN % (_LATER, _ON_DEMAND)],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True True", "[]", "[]"]
