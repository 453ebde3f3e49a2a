"""The axes of plots: plain numbers on logarithmic scales, and names that never overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QApplication

_FEW_LINES = 3
"""Lines of a name that are read at a glance; a longer one gets twice the width where possible."""

_MOST_HEIGHT = 0.3  # share of a plot's height that names take in full
_GAP = 6  # pixels between two names, and between the axis and the names
PADDING = 0.02  # room left and right of the groups, as a share of their width


@dataclass(frozen=True)
class GroupName:
    """The name of a group of bars as it is written: its lines, and which line is its first."""

    text: str
    first: int


class PlainAxis(pg.AxisItem):  # type: ignore[misc]
    """Writes powers of ten as plain numbers, and the names of groups below each other.

    `names`, as written for the present width.
    """

    def __init__(self, side: str) -> None:
        self._groups: tuple[str, ...] = ()
        self.names: list[GroupName] = []
        super().__init__(side)

    def name_groups(self, groups: Sequence[str], width: float) -> None:
        """Write names at 0, 1, 2…, now for a width in pixels, and later for that of the axis."""
        self._groups = tuple(groups)
        self.setTicks([[]])
        self._arrange(width)

    def resizeEvent(self, event: Any = None) -> None:
        super().resizeEvent(event)
        if self._groups:
            self._arrange(self.width())

    def _arrange(self, width: float) -> None:
        metrics = QFontMetrics(_small_font())
        room = width / len(self._groups) / (1 + 2 * PADDING)
        view = self.getViewWidget()
        height = view.height() if view is not None else 0
        most = max(_FEW_LINES, int(_MOST_HEIGHT * height / metrics.lineSpacing()))
        self.names = arranged(self._groups, room, metrics, most)
        lines = max(name.first + 1 + name.text.count("\n") for name in self.names)
        self.setHeight(lines * metrics.lineSpacing() + 2 * _GAP)
        self.picture = None
        self.update()

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        if not self.logMode:
            return list(super().tickStrings(values, scale, spacing))
        return [_power(value) for value in values]

    def drawPicture(self, p: QPainter, axisSpec: Any, tickSpecs: Any, textSpecs: Any) -> None:  # noqa: N803
        super().drawPicture(p, axisSpec, tickSpecs, textSpecs)
        if not self.names:
            return
        p.setFont(_small_font())
        spacing = p.fontMetrics().lineSpacing()
        least, most = self.range
        faint = QColor(self.pen().color())
        faint.setAlpha(90)
        for number, name in enumerate(self.names):
            x = (number - least) / (most - least) * self.width()
            top = _GAP + name.first * spacing
            if name.first:  # the line shows which bars a name further below belongs to
                p.setPen(faint)
                p.drawLine(QPointF(x, 2), QPointF(x, top - 1))
            half = max(map(p.fontMetrics().horizontalAdvance, name.text.split("\n"))) / 2
            x = max(min(x, self.width() - half), half)  # beyond the axis nothing is drawn
            p.setPen(self.textPen())
            p.drawText(QRectF(x - 500, top, 1000, 1000), _CENTRED, name.text)


_CENTRED = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop


def _small_font() -> QFont:
    font = QApplication.font()
    font.setPointSizeF(0.9 * font.pointSizeF())
    return font


def arranged(
    groups: Sequence[str], room: float, metrics: QFontMetrics, most: int
) -> list[GroupName]:
    """Return the names of groups, horizontal and apart from each other.

    They stand on one level, or on two in turn, where each has twice the room. Where they would take
    more than `most` lines, parts that all groups of a filter share are left out, and then the ends
    of names. `room`: from the middle of a group to the next, in pixels.
    """
    for names in (groups, without_shared(groups)):
        found = []
        for levels in (1, 2):
            width = levels * room - _GAP
            if max(map(metrics.horizontalAdvance, " ".join(names).split())) <= width:
                found.append(_placed([broken(name, width, metrics) for name in names], levels))
        if found and (_lines(found[0]) <= _FEW_LINES or len(found) == 1):
            found = found[:1]
        found = [each for each in found if _lines(each) <= most]
        if found:
            return min(reversed(found), key=_lines)
    width = 2 * room - _GAP
    texts = [broken(name, width, metrics).split("\n") for name in names]
    end, kept = Qt.TextElideMode.ElideRight, max(most // 2, 1)
    for lines in texts:
        if len(lines) > kept:
            lines[kept - 1 :] = [" ".join(lines[kept - 1 :])]
    cut = ["\n".join(metrics.elidedText(line, end, int(width)) for line in each) for each in texts]
    return _placed(cut, 2)


def _placed(texts: Sequence[str], levels: int) -> list[GroupName]:
    """Return names on levels in turn, each level below the last line of the one before."""
    first, found = 0, {}
    for level in range(min(levels, len(texts))):
        own = texts[level::levels]
        found.update({level + levels * n: GroupName(each, first) for n, each in enumerate(own)})
        first += 1 + max(text.count("\n") for text in own)
    return [found[number] for number in range(len(texts))]


def _lines(names: Sequence[GroupName]) -> int:
    return max(name.first + 1 + name.text.count("\n") for name in names)


def without_shared(groups: Sequence[str]) -> list[str]:
    parts = [group.split(", ") for group in groups]
    found = []
    for own in parts:
        family = [each for each in parts if each[0] == own[0]]
        shared = set.intersection(*map(set, family)) if len(family) > 1 else set()
        found.append(", ".join([own[0], *(part for part in own[1:] if part not in shared)]))
    return found


def staggered(centres: Sequence[float], widths: Sequence[float]) -> list[int]:
    """Return the line of each name, from 0, so that no two on a line touch.

    `centres` and `widths`: of the names, in pixels, from left to right.
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
    parts = (wrapped(f"{part},", room, metrics) for part in name.split(", "))
    return "\n".join(line for lines in parts for line in lines).removesuffix(",")


def wrapped(text: str, room: float, metrics: QFontMetrics) -> list[str]:
    """Return the words of a text on lines of at most `room` pixels, but for longer words."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if lines[-1] and metrics.horizontalAdvance(longer) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _power(exponent: float) -> str:
    """Return a power of ten as a number; only 1, 2 and 5 of each decade, which do not crowd."""
    if f"{10**exponent:e}"[0] not in "125":
        return ""
    return f"{10**exponent:,.0f}" if exponent > -0.01 else f"{10**exponent:.3g}"


def log10(value: float) -> float:
    return math.log10(max(value, 1e-12))
