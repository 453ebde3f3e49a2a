"""From the command to the first frame, picture and output of the window, without a screen.

    python resources/bench/start.py --json start.json

Each start is a process of its own with the sample picture: *first* with empty folders for settings
and compiled code, as after the installation, and *later* with those that a first start left, its
compiling ended. The clock begins before the interpreter starts. The *frame* is the first paint of
anything, *window* that of the main window, *picture* and *output* are there when the view on either
side has painted one, *whole* when the badge says that the output is up to date. *cpu* is the
processor time of the process by then, which other programs disturb less. Reported are the quickest
of several starts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

GOALS = {
    "first": {"frame": 2.0, "picture": 2.5, "output": 5.0},
    "later": {"frame": 1.0, "picture": 1.5, "output": 2.5},
}
"""Seconds of issue 37, on two quiet cores."""

CHILD = """
import json, os, sys, time
begun, whole = float(sys.argv[1]), sys.argv[2] == "whole"
marks = {}

def mark(name):
    if name not in marks:
        used = os.times()
        marks[name] = [time.time() - begun, used.user + used.system]

from PySide6 import QtCore, QtWidgets

class Watch(QtCore.QObject):
    window = None
    panes = ()

    def eventFilter(self, watched, event):
        if event.type() != QtCore.QEvent.Type.Paint:
            return False
        if self.window is None and isinstance(watched, QtWidgets.QMainWindow):
            self.window = watched
        mark("frame")
        if self.window is None:
            return False
        mark("window")
        if not self.panes and hasattr(self.window, "pictures"):
            canvas = self.window.pictures.canvas
            self.panes = (canvas.input, "picture"), (canvas.output, "output")
        for pane, name in self.panes:
            if pane.isAncestorOf(watched) and getattr(watched, "front", None) is not None:
                mark(name)
                badge = self.window.live.badge.text()
                if name == "output" and "up to date" in badge:
                    mark("whole")
        done = "output" in marks and ("whole" in marks or not whole)
        if done and not self.ending:
            self.ending = True
            QtCore.QTimer.singleShot(0, self.end)
        return False

    ending = False

    def end(self):
        print(json.dumps(marks), flush=True)
        self.window.close() if whole else os._exit(0)

watch = None

class Application(QtWidgets.QApplication):
    def __init__(self, arguments):
        global watch
        super().__init__(arguments)
        watch = Watch()
        self.installEventFilter(watch)

QtWidgets.QApplication = Application
sys.argv = ["kernelscope"]
from kernelscope.cli.main import main
sys.exit(main([]))
"""


def start(folder: Path, *, whole: bool) -> dict[str, list[float]]:
    """Return seconds by the clock and of the processor, by what has been painted."""
    environment = {
        **os.environ,
        "QT_QPA_PLATFORM": os.environ.get("QT_QPA_PLATFORM", "offscreen"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_STATE_HOME": str(folder / "state"),
        "PYTHONPATH": str(Path(__file__).parents[2] / "app"),
    }
    command = [sys.executable, "-c", CHILD, repr(time.time()), "whole" if whole else ""]
    with subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if whole:
            process.wait(60)
        with contextlib.suppress(ProcessLookupError):  # a compiler that outlives the window
            os.killpg(process.pid, signal.SIGKILL)
    if not line:
        raise SystemExit("The window was closed before it showed an output.")
    found: dict[str, list[float]] = json.loads(line)
    return found


def measure(repeats: int) -> dict[str, list[dict[str, list[float]]]]:
    found: dict[str, list[dict[str, list[float]]]] = {"first": [], "later": []}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as kept:
        start(Path(kept), whole=True)
        for _ in range(repeats):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as empty:
                found["first"].append(start(Path(empty), whole=False))
            found["later"].append(start(Path(kept), whole=True))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for kind, starts in measure(options.repeats).items():
        for name in dict.fromkeys(name for each in starts for name in each):
            times = [each[name] for each in starts if name in each]
            best, spent = (min(column) for column in zip(*times, strict=True))
            goal = GOALS[kind].get(name)
            rows.append({"start": kind, "name": name, "s": round(best, 2), "cpu": round(spent, 2)})
            rows[-1] |= {} if goal is None else {"goal": goal, "met": best <= goal}
            rows[-1] |= {"times_s": [round(each[0], 2) for each in times]}
            verdict = "" if goal is None else f"goal {goal} {'met' if best <= goal else 'missed'}"
            print(f"{kind:6} {name:8} {best:6.2f} s, {spent:6.2f} s of processor  {verdict}")
    if options.json:
        from kernelscope.base import machine

        content = {"machine": machine.facts(), "rows": rows}
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
