"""Whether all levels gave the same result, with a map of where not."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage, QPixmap
from PySide6.QtWidgets import QDialog, QLabel, QWidget

from kernelscope.bench import Parity
from kernelscope.gui.widgets.messages import close_box, headline
from kernelscope.gui.widgets.parts import dressed, in_column, text_label
from kernelscope.schema.samples import Pixels

_SIDE = 480  # of the map on the screen, in pixels


class ParityDialog(QDialog):
    def __init__(self, parity: Parity, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("parityDialog")
        self.setWindowTitle("Verify levels")
        agree = not parity.largest
        title = "All levels agree" if agree else f"Levels differ by up to {parity.largest:g}"
        if len(parity.levels) == 1:
            title = "Only one level ran"
        lines = [
            f"{parity.describe()}",
            f"On {parity.source}.",
            f"Compared: {', '.join(parity.levels)}.",
            *parity.remarks,
            *(f"{level} did not run: {reason}" for level, reason in parity.reasons.items()),
        ]
        text = text_label("\n".join(lines), "parityText", plain=True, selectable=True)
        layout = in_column(headline(title), text, of=self)
        if not agree:
            layout.addWidget(_map(parity), 0, Qt.AlignmentFlag.AlignCenter)
            caption = text_label(
                "Where: black, no difference; the brighter, the larger; white, the largest"
                + (f" (slice {parity.place[0]})." if parity.map.ndim == 3 else ".")
            )
            caption.setObjectName("parityCaption")
            layout.addWidget(caption)
        layout.addWidget(close_box(self))
        self.setMinimumWidth(60 * self.fontMetrics().averageCharWidth())


def _map(parity: Parity) -> QLabel:
    differences = parity.map[parity.place[0]] if parity.map.ndim == 3 else parity.map
    grey = _reduced(differences, parity.largest)
    height, width = grey.shape
    image = QImage(grey.tobytes(), width, height, width, QImage.Format.Format_Grayscale8).copy()
    shown = dressed(QLabel(), "parityMap", "Map of the differences")
    scaled = image.scaled(_SIDE, _SIDE, Qt.AspectRatioMode.KeepAspectRatio)
    shown.setPixmap(QPixmap.fromImage(scaled))
    return shown


def _reduced(differences: Pixels, largest: float) -> Pixels:
    """Return as many bytes as the screen has room for, each the largest of its neighbourhood.

    Any difference is at least a dark grey, and a single pixel is not averaged away.
    """
    step = max(1, -(-max(differences.shape) // _SIDE))
    rows, columns = (range(0, side, step) for side in differences.shape)
    most = np.maximum.reduceat(np.maximum.reduceat(differences, rows, axis=0), columns, axis=1)
    grey = np.ceil(64 + 191 * (most.astype(np.float64) / largest))
    return np.where(most > 0, grey, 0).astype(np.uint8)
