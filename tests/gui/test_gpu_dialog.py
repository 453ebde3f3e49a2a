"""The GPU dialog: without a device the reason and the steps; with one its facts and load."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QCheckBox, QLabel, QWidget
from pytestqt.qtbot import QtBot

from kernelscope.backends.cuda.probe import probe
from kernelscope.engine.backend import Availability, Fact, FactGroup
from kernelscope.gui.tools import gpu_dialog as module
from kernelscope.gui.tools.gpu_dialog import GpuDialog
from kernelscope.gui.widgets.messages import open_dialog
from kernelscope.gui.widgets.settings import Settings
from kernelscope.gui.work.background import Background
from tests.gui.helpers import answered, due_timers
from tests.patience import PATIENCE

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
    assert text_of(dialog, "headline") == "GPU filters cannot be used now"
    assert text_of(dialog, "reason") == MISSING.summary
    assert dialog.findChild(QLabel, "reason").textFormat() == Qt.TextFormat.PlainText


def test_it_says_how_kernels_run_without_a_gpu(qtbot: QtBot) -> None:
    dialog = GpuDialog(MISSING, without="GPU kernels run on the processor.")
    qtbot.addWidget(dialog)
    assert text_of(dialog, "rest").endswith("works as usual. GPU kernels run on the processor.")


def test_copy_gives_everything_as_plain_text(qtbot: QtBot, dialog: GpuDialog) -> None:
    button = dialog.findChild(QAbstractButton, "copyButton")
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text().splitlines() == [
        "GPU filters cannot be used now",
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


# Facts of a GPU -----------------------------------------------------------------------


class Card:
    """A backend with facts that come when the test lets them, and a load that changes."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.looks = 0
        self.threads: set[str] = set()

    def facts(self) -> Iterator[FactGroup]:
        self.threads.add(threading.current_thread().name)
        yield FactGroup("Device", (Fact("Name", "Fake card"), Fact("Warp size", "32", "threads")))
        self.go.wait(PATIENCE)
        yield FactGroup("Measured", (Fact("Copy", "2,873", "GB/s"),))

    def load(self) -> tuple[Fact, ...]:
        self.threads.add(threading.current_thread().name)
        self.looks += 1
        return (Fact("Free memory", str(80 - self.looks), "GiB"),)


AVAILABLE = Availability(True, "Fake card", devices=("Fake card",))


def open_on(
    qtbot: QtBot, card: Card, background: Background, state: Availability = AVAILABLE
) -> GpuDialog:
    dialog = GpuDialog(state, backend=card, background=background)  # type: ignore[arg-type]
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def test_facts_come_group_by_group_without_blocking(qtbot: QtBot, background: Background) -> None:
    card = Card()
    dialog = open_on(qtbot, card, background)
    qtbot.waitUntil(lambda: "Warp size\t32 threads" in dialog.text())
    assert "Measured" not in dialog.text()
    assert text_of(dialog, "state") == "Asking the GPU…"
    card.go.set()
    qtbot.waitUntil(lambda: not dialog.findChild(QLabel, "state").isVisible())
    assert "Measured\nCopy\t2,873 GB/s" in dialog.text()
    assert card.threads
    assert all(name.startswith("kernelscope-gpu-") for name in card.threads)
    qtbot.mouseClick(dialog.findChild(QAbstractButton, "copyButton"), Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == dialog.text()


def test_load_is_looked_at_until_the_dialog_closes(
    qtbot: QtBot, background: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_REFRESH", 10)
    card = Card()
    card.go.set()
    dialog = open_on(qtbot, card, background)
    qtbot.waitUntil(lambda: card.looks > 3)
    assert "Free memory\t7" in dialog.text()
    assert dialog.text().count("Free memory") == 1
    dialog.reject()
    answered(qtbot, background)  # one may have been on its way
    looks = card.looks
    assert not due_timers(dialog)
    answered(qtbot, background)
    assert card.looks == looks


def test_a_card_that_does_not_answer_is_said_to_be_so(qtbot: QtBot, background: Background) -> None:
    class Silent(Card):
        def facts(self) -> Iterator[FactGroup]:
            raise RuntimeError("it fell off the bus")
            yield

        def load(self) -> tuple[Fact, ...]:
            return ()

    dialog = open_on(qtbot, Silent(), background)
    state = dialog.findChild(QLabel, "state")
    qtbot.waitUntil(lambda: state.text() == "The GPU does not answer: it fell off the bus")


def test_closing_while_the_card_is_asked(qtbot: QtBot, background: Background) -> None:
    card = Card()
    parent = QWidget()
    qtbot.addWidget(parent)
    dialog = GpuDialog(AVAILABLE, parent, backend=card, background=background)  # type: ignore[arg-type]
    open_dialog(dialog)
    qtbot.waitUntil(lambda: "Fake card" in dialog.text())
    dialog.reject()
    qtbot.waitUntil(lambda: not parent.findChildren(GpuDialog))
    card.go.set()
    answered(qtbot, background)  # and meet nobody


def test_one_or_several_devices_can_be_chosen(qtbot: QtBot, tmp_path: Path) -> None:
    settings = Settings(tmp_path / "settings.json")
    settings.set_text("gpu", "1")
    state = Availability(False, "There is no GPU number 5.", devices=("A", "B"))
    dialog = GpuDialog(state, settings=settings)
    qtbot.addWidget(dialog)
    dialog.show()
    first, second = (dialog.findChild(QCheckBox, f"device{number}") for number in range(2))
    assert (second.text(), first.isChecked(), second.isChecked()) == ("1: B", False, True)
    first.click()
    assert settings.text("gpu") == "0,1"
    second.click()
    assert settings.text("gpu") == "0"
    first.click()  # one of them has to do it
    assert first.isChecked()
    assert settings.text("gpu") == "0"


def test_the_real_state_can_be_shown(qtbot: QtBot) -> None:
    state = probe()
    dialog = GpuDialog(state)
    qtbot.addWidget(dialog)
    assert state.summary in dialog.text()
    assert all(step in dialog.text() for step in state.steps)
