"""How a series looks in a plot: colour, symbol, dashes; also for people who see no colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette

from kernelscope.gui.widgets import theme
from kernelscope.schema.level_colours import colour

_COLOURS = (
    (None, None),
    ("#e69f00", "#e69f00"),
    ("#0072b2", "#6fa8ff"),
    ("#d55e00", "#ff7f3f"),
    ("#009e73", "#2fd0a0"),
    ("#cc79a7", "#e79cc6"),
    ("#56b4e9", "#a8dcff"),
)
"""On light and on dark ground; colour-blind people can distinguish them (Okabe and Ito 2008).
None stands for the colour of text."""

_SYMBOLS = ("o", "s", "t", "d", "+", "x", "star", "p", "h", "t1", "t2")
_DASHES = (
    Qt.PenStyle.SolidLine,
    Qt.PenStyle.DashLine,
    Qt.PenStyle.DashDotLine,
    Qt.PenStyle.DashDotDotLine,
)
_STRENGTHS = (255, 90, 170, 40)
"""Opacity of bars; patterns would be scaled with the bars in SVGs."""

LIGHT = 0.45
"""Opacity of computing relative to transfers if a bar shows both."""


@dataclass(frozen=True)
class SeriesStyle:
    """Look of a series; symbol and dashes or opacity distinguish it without colours."""

    number: int
    theirs: bool
    palette: QPalette
    level: str = ""

    @property
    def colour(self) -> QColor:
        """That of the level, as in the ladder and in tables; else the next of a list."""
        if self.level:
            return QColor(colour(self.level))
        name = _COLOURS[self.number % len(_COLOURS)][theme.is_dark(self.palette)]
        return QColor(name) if name else self.palette.color(QPalette.ColorRole.Text)

    @property
    def symbol(self) -> str:
        return _SYMBOLS[self.number % len(_SYMBOLS)]

    def pen(self) -> Any:
        dash = _DASHES[self.number // len(_COLOURS) % len(_DASHES)]
        return pg.mkPen(self.colour, width=1.5, style=Qt.PenStyle.DotLine if self.theirs else dash)

    def symbol_brush(self) -> QColor:
        """Symbols of the authors' figures are hollow."""
        return self.palette.color(QPalette.ColorRole.Base) if self.theirs else self.colour

    def brush(self, light: bool = False) -> Any:
        """Return the fill of bars; `light`: of their lower parts."""
        if self.theirs:
            return pg.mkBrush(None)
        colour = QColor(self.colour)
        turn = 0 if self.level else self.number // len(_COLOURS)
        strength = _STRENGTHS[turn % len(_STRENGTHS)]
        colour.setAlpha(round(LIGHT * strength) if light else strength)
        return pg.mkBrush(colour)


def light() -> QPalette:
    palette = QPalette(QColor("#f0f0f0"))
    palette.setColor(QPalette.ColorRole.Base, QColor("white"))
    palette.setColor(QPalette.ColorRole.Text, QColor("black"))
    return palette
