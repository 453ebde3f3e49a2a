"""The middle of the window: the bar of views, the headline, the pages and the film strip."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from kernelscope.gui.widgets.layouts import Slot


class Centre(QWidget):
    """One column; the page takes all the height that is left.

    Attributes
    ----------
    headline : Slot
        The strip over the pictures: time, rate and quality of the output.
    stack : QStackedWidget
        The pages.
    film_strip : Slot
        The open pictures, below the page.
    """

    def __init__(self, view_bar: QWidget, pages: Iterable[QWidget]) -> None:
        super().__init__()
        self.setObjectName("centre")
        self.headline = Slot("headlineSlot", self)
        self.film_strip = Slot("filmStripSlot", self)
        self.stack = QStackedWidget(self)
        for page in pages:
            self.stack.addWidget(page)
        column = QVBoxLayout(self)
        column.setContentsMargins(6, 4, 6, 4)
        column.setSpacing(4)
        column.addWidget(view_bar)
        column.addWidget(self.headline)
        column.addWidget(self.stack, 1)
        column.addWidget(self.film_strip)
