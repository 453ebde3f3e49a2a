"""The program as a process: how it starts and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

_START_AND_CLOSE = """
import sys, threading, time
from PySide6.QtCore import QTimer
from kernelscope.gui import application; from kernelscope.gui.window import main_window

def compile_for_long(request):
    QTimer.singleShot(0, window, window.close)
    time.sleep(60)

class Window(main_window.MainWindow):
    def open_first(self, path):
        global window
        window = self
        print(sys.getswitchinterval(), flush=True)
        super().open_first(path)

main_window.warm_up = compile_for_long
application.MainWindow = Window
sys.exit(application.run(None))
"""


def test_program_ends_quickly_while_a_kernel_is_being_compiled(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "QT_QPA_PLATFORM": "offscreen",
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", _START_AND_CLOSE],
        env=environment,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - start < 30
    assert "Traceback" not in done.stderr
    assert done.stdout.split() == ["0.0005"]
    assert (tmp_path / "kernelscope" / "settings.json").exists()
