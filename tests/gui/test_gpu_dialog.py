"""The GPU dialog without a device: the reason, the steps, and copying them."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QLabel
from pytestqt.qtbot import QtBot

from app.backends.cuda.probe import probe
from app.engine.backend import Availability
from app.gui.gpu_dialog import GpuDialog
from app.gui.theme import fixed_font

MISSING = Availability(
    False,
    "There is no driver & no <GPU>.",
    ("Buy one.", "Run `sudo apt install 'x<y>'` and wait.", "Check: `nvidia-smi`"),
)


@pytest.fixture
def dialog(qtbot: QtBot) -> GpuDialog:
    dialog = GpuDialog(MISSING)
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def text_of(dialog: GpuDialog, name: str) -> str:
    return dialog.findChild(QLabel, name).text()


def test_it_says_what_is_missing(dialog: GpuDialog) -> None:
    assert text_of(dialog, "headline") == "No supported device found"
    assert text_of(dialog, "reason") == MISSING.summary
    assert dialog.findChild(QLabel, "reason").textFormat() == Qt.TextFormat.PlainText


def test_commands_are_in_monospace_and_can_be_selected(dialog: GpuDialog) -> None:
    steps = dialog.findChild(QLabel, "steps")
    assert steps.text().count(fixed_font().family()) == 2
    assert "sudo apt install &#x27;x&lt;y&gt;&#x27;</span>" in steps.text()
    flags = steps.textInteractionFlags()
    assert flags & Qt.TextInteractionFlag.TextSelectableByMouse
    assert flags & Qt.TextInteractionFlag.TextSelectableByKeyboard


def test_copy_gives_everything_as_plain_text(qtbot: QtBot, dialog: GpuDialog) -> None:
    button = dialog.findChild(QAbstractButton, "copyButton")
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text().splitlines() == [
        "No supported device found",
        "There is no driver & no <GPU>.",
        "1. Buy one.",
        "2. Run `sudo apt install 'x<y>'` and wait.",
        "3. Check: `nvidia-smi`",
    ]
    assert dialog.isVisible()


def test_escape_and_close_end_it(qtbot: QtBot, dialog: GpuDialog) -> None:
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()
    dialog.show()
    qtbot.mouseClick(dialog.findChild(QAbstractButton, "closeButton"), Qt.MouseButton.LeftButton)
    assert not dialog.isVisible()


def test_an_available_device_is_named(qtbot: QtBot) -> None:
    dialog = GpuDialog(Availability(True, "NVIDIA H200"))
    qtbot.addWidget(dialog)
    assert text_of(dialog, "headline") == "GPU filters can be used"
    assert text_of(dialog, "reason") == "NVIDIA H200"
    assert dialog.findChild(QLabel, "steps") is None


def test_the_real_state_can_be_shown(qtbot: QtBot) -> None:
    state = probe()
    dialog = GpuDialog(state)
    qtbot.addWidget(dialog)
    assert state.summary in dialog.text()
    assert all(step in dialog.text() for step in state.steps)
