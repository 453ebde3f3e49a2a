"""Settings survive the death of the process, and one gesture writes one file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PySide6.QtWidgets import QComboBox, QDialog
from pytestqt.qtbot import QtBot

from kernelscope.gui.tools.preferences import Preferences
from kernelscope.gui.widgets.appearance import Appearance, Scheme, Stylist
from kernelscope.gui.widgets.controls import Slider
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.window.dock_list import DockName
from kernelscope.gui.window.last_session import STATE_VERSION
from kernelscope.gui.window.main_window import MainWindow
from tests.gui.helpers import Opener, child, dialog
from tests.patience import PATIENCE

_CHANGE = """
from kernelscope.gui import application
from kernelscope.gui.window import main_window
from kernelscope.gui.window.dock_list import DockName

class Window(main_window.MainWindow):
    def open_first(self, path):
        self.session.set_filter("nlm")
        self.session.set_values("nlm", {"search_radius": 4})
        self.docks[DockName.TIMING].show()
        print("changed", flush=True)

application.MainWindow = Window
application.run(None)
"""


@pytest.mark.slow
def test_settings_survive_a_kill(tmp_path: Path, open_window: Opener, store: Path) -> None:
    written = tmp_path / "kernelscope" / "settings.json"
    environment = {
        **os.environ,
        "QT_QPA_PLATFORM": "offscreen",
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    command = [sys.executable, "-c", _CHANGE]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "changed\n"
            end = time.monotonic() + PATIENCE
            while not (written.exists() and '"filter": "nlm"' in written.read_text()):
                assert time.monotonic() < end
                time.sleep(0.05)
        finally:
            os.kill(process.pid, signal.SIGKILL)
    store.write_bytes(written.read_bytes())
    window = open_window(panels=False)
    assert window.session.filter_id == "nlm"
    assert window.session.require().step.parameters["search_radius"] == 4
    assert not window.docks[DockName.TIMING].isHidden()


def test_a_gesture_is_written_once(
    qtbot: QtBot, window: MainWindow, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.session.set_filter("nlm")
    qtbot.waitUntil(lambda: Settings(store).text("filter") == "nlm")
    writes = []
    flush = window.settings.flush
    monkeypatch.setattr(window.settings, "flush", lambda: (writes.append(1), flush()))
    slider = child(window, Slider, "search_radiusSlider")
    for place in range(slider.minimum(), slider.maximum() + 1):
        slider.setValue(place)
    last = str(window.session.require().step.parameters["search_radius"])
    qtbot.waitUntil(lambda: Settings(store).texts("filters/nlm")["search_radius"] == last)
    assert len(writes) == 1


def test_a_layout_is_kept_while_the_window_is_open(
    qtbot: QtBot, window: MainWindow, store: Path
) -> None:
    window.docks[DockName.QUALITY].close()

    def state() -> bytes:
        return bytes(window.saveState(STATE_VERSION).data())

    qtbot.waitUntil(lambda: bytes(Settings(store).blob("state").data()) == state())


def test_preferences_are_seen_and_kept_at_once(
    qtbot: QtBot,
    window: MainWindow,
    store: Path,
    stylist: Stylist,
) -> None:
    window.companions.show_preferences()
    shown: QDialog = dialog(qtbot, window, Preferences)
    for name, text in (("scheme", "Light"), ("textSize", "125 %")):
        box = shown.findChild(QComboBox, name)
        box.setCurrentIndex(box.findText(text))
    assert stylist.appearance == Appearance(Scheme.LIGHT, 1.25) == Appearance.load(Settings(store))
    assert not stylist.is_dark
    shown.reject()
    again = Preferences(window.settings)
    qtbot.addWidget(again)
    assert again.findChild(QComboBox, "scheme").currentText() == "Light"
    assert again.findChild(QComboBox, "textSize").currentText() == "125 %"
