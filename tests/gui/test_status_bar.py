"""The status bar shows a part of a message that is too long."""

from __future__ import annotations

from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from kernelscope.gui.window.bars import StatusBar

MESSAGE = "GPU tuned.  MRI NLM, dimensions 3d, search radius 5 voxels, patch radius 1 voxel."


class Watched(StatusBar):
    """Keeps its last drawing, from the left edge on."""

    drawn = ""

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        super().paintEvent(event)
        if event.rect().left() == 0:
            self.drawn = self.shown_message()


def test_a_long_message_ends_before_the_labels(qtbot: QtBot) -> None:
    bar, position = Watched(), QLabel("x 32")
    qtbot.addWidget(bar)
    bar.addPermanentWidget(position)
    bar.resize(2000, 24)
    bar.show()
    bar.showMessage(MESSAGE)
    qtbot.waitUntil(lambda: bar.drawn == MESSAGE)
    bar.resize(400, 24)
    qtbot.waitUntil(lambda: bar.drawn.endswith("…"))
    first = bar.drawn
    assert MESSAGE.startswith(first.removesuffix("…"))
    assert bar.fontMetrics().horizontalAdvance(first) < position.x()
    position.setText("x 32, y 36, z 24")
    qtbot.waitUntil(lambda: bar.drawn.endswith("…") and len(bar.drawn) < len(first))
    assert bar.currentMessage() == bar.toolTip() == MESSAGE
