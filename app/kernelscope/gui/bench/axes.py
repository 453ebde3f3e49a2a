"""The axes of plots: plain numbers on logarithmic scales, and names that never overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetrics, QPainter


class Axis(pg.AxisItem):  # type: ignore[misc]
    """Writes powers of ten as plain numbers, and texts upright where they have no room."""

    upright: tuple[str, ...] = ()
    """Texts in place of ticks that are called 0, 1, 2…: long ones would be left out."""

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        if not self.logMode:
            return list(super().tickStrings(values, scale, spacing))
        return [_power(value) for value in values]

    def drawPicture(self, p: QPainter, axisSpec: Any, tickSpecs: Any, textSpecs: Any) -> None:  # noqa: N803
        super().drawPicture(p, axisSpec, tickSpecs, [] if self.upright else textSpecs)
        if self.upright:
            p.setPen(self.textPen())
            for place, _, text in textSpecs:
                p.save()
                p.translate(place.center().x(), place.top())
                p.rotate(90)
                p.drawText(QRectF(0, -50, 1000, 100), _UPRIGHT, self.upright[int(text)])
                p.restore()


_UPRIGHT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


def staggered(centres: Sequence[float], widths: Sequence[float]) -> list[int]:
    """Return the line of each name, from 0, so that no two on a line touch.

    Parameters
    ----------
    centres, widths : sequence of float
        Of the names, in pixels, from left to right.
    """
    ends: list[float] = []
    lines = []
    for centre, width in zip(centres, widths, strict=True):
        left = centre - width / 2
        line = next((line for line, end in enumerate(ends) if end <= left), len(ends))
        ends[line : line + 1] = [centre + width / 2]
        lines.append(line)
    return lines


def broken(name: str, room: float, metrics: QFontMetrics) -> str:
    """Return a name on lines of at most `room` pixels, each of its parts on lines of its own."""
    if metrics.horizontalAdvance(name) <= room:
        return name
    lines: list[str] = []
    for part in name.split(", "):
        lines.append("")
        for word in f"{part},".split():
            longer = f"{lines[-1]} {word}".lstrip()
            if metrics.horizontalAdvance(longer) <= room:
                lines[-1] = longer
            else:
                lines.append(word)
    return "\n".join(filter(None, lines)).removesuffix(",")


def _power(exponent: float) -> str:
    """Return a power of ten as a number; only 1, 2 and 5 of each decade, which do not crowd."""
    if f"{10**exponent:e}"[0] not in "125":
        return ""
    return f"{10**exponent:,.0f}" if exponent > -0.01 else f"{10**exponent:.3g}"


def log10(value: float) -> float:
    return math.log10(max(value, 1e-12))
