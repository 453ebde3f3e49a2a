"""The parts of the benchmark window, and how they are put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QProgressBar,
    QPushButton,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from kernelscope.gui.widgets.controls import ChoiceBox
from kernelscope.gui.widgets.parts import dressed, in_column, in_row


def button(name: str, text: str, tip: str, action: Callable[[], object]) -> QPushButton:
    button = dressed(QPushButton(text), name, text.replace("&", "").rstrip("…"), tip=tip)
    button.clicked.connect(lambda: action())
    return button


def combo(name: str, accessible_name: str, tip: str) -> QComboBox:
    return dressed(ChoiceBox(), name, accessible_name, tip=tip)


def refill(box: QComboBox, entries: list[tuple[str, Any]], chosen: str) -> None:
    """Offer other entries, without a signal; keep the chosen one if it is still there."""
    box.blockSignals(True)
    box.clear()
    for text, data in entries:
        box.addItem(text, data)
    box.setCurrentIndex(max(0, box.findText(chosen)))
    box.blockSignals(False)


def progress_bar() -> QProgressBar:
    bar = dressed(QProgressBar(), "benchProgress", "Progress")
    bar.setTextVisible(False)
    bar.setFixedHeight(8)
    return bar


def state_label() -> QLabel:
    """Return the label for the progress in words, with room for three lines."""
    label = dressed(QLabel(), "benchState")
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setMinimumHeight(3 * label.fontMetrics().height())
    label.setAlignment(Qt.AlignmentFlag.AlignTop)
    return label


def side_column(
    form: QWidget, buttons: tuple[QWidget, QWidget], below: tuple[QWidget, ...]
) -> QWidget:
    """Return the column on the left: the form, two buttons beside each other, and the rest."""
    side = QWidget()
    column = in_column((form, 1), of=side, margins=(0, 0, 6, 0))
    row = QHBoxLayout()
    for widget, stretch in zip(buttons, (3, 2), strict=True):
        row.addWidget(widget, stretch)
    column.addLayout(row)
    for widget in below:
        column.addWidget(widget)
    return side


def results(
    bar: QLayout,
    view: QWidget,
    hint: QWidget,
    origin: QWidget,
    tools: Sequence[QWidget],
    table: QWidget,
) -> QSplitter:
    """Return the right side: the plot above, the table below its origin and its buttons."""
    upper = QWidget()
    in_column(bar, (view, 1), (hint, 1), of=upper, margins=0)
    lower = QWidget()
    column = QVBoxLayout(lower)
    column.setContentsMargins(0, 0, 0, 0)
    row = in_row((origin, 1), *tools)
    column.addLayout(row)
    column.addWidget(table, 1)
    splitter = dressed(QSplitter(Qt.Orientation.Vertical), "benchResults")
    splitter.setChildrenCollapsible(False)
    splitter.addWidget(upper)
    splitter.addWidget(lower)
    splitter.setSizes([480, 240])
    return splitter


def side_by_side(side: QWidget, right: QWidget) -> QSplitter:
    splitter = dressed(QSplitter(), "benchSplitter")
    splitter.setChildrenCollapsible(False)
    splitter.addWidget(side)
    splitter.addWidget(right)
    splitter.setStretchFactor(1, 1)
    unit = splitter.fontMetrics().averageCharWidth()
    splitter.setSizes([44 * unit, 130 * unit])
    return splitter


def banner(quick: QWidget, later: QWidget, *, gpu: bool) -> QFrame:
    """Return the offer of a quick look, of a GPU as well unless this machine has none."""
    frame = dressed(QFrame(), "benchOffer")
    frame.setFrameShape(QFrame.Shape.StyledPanel)
    text = QLabel(
        "What do you gain on this machine by using the GPU, and by each level? "
        "A quick look answers that in about 20 seconds."
        if gpu
        else "This machine has no usable GPU. What do you gain by using all cores of the CPU, "
        "and by each way of computing? A quick look answers that."
    )
    text.setObjectName("benchOfferText")
    text.setWordWrap(True)
    in_row((text, 1), quick, later, of=frame)
    return frame
