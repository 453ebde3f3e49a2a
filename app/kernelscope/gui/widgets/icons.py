"""The icons: lines of one width in the colours of the palette; a desktop may have none."""

from __future__ import annotations

import functools

from PySide6.QtCore import QByteArray, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QIconEngine, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication

from kernelscope.base.paths import RESOURCES
from kernelscope.gui.widgets import theme

_ACCENTS = ("#2560c8", "#6aa5ff")
"""The accent of *Run*, on a light ground and on a dark one: a palette of a desktop may lack it."""

_FOLDER = RESOURCES / "icons" / "lines"

NAMES = tuple(path.stem for path in _FOLDER.glob("*.svg"))  # the icons there are


def icon(name: str) -> QIcon:
    return QIcon(_Engine((_FOLDER / f"{name}.svg").read_text(encoding="utf-8")))


class _Engine(QIconEngine):
    """Draws with the palette of the moment, so that light and dark need no second set."""

    def __init__(self, shape: str) -> None:
        super().__init__()
        self._shape = shape

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        palette = QApplication.palette()
        off = mode is QIcon.Mode.Disabled
        group = QPalette.ColorGroup.Disabled if off else QPalette.ColorGroup.Active
        role = QPalette.ColorRole.ButtonText
        if mode is QIcon.Mode.Selected:  # the line of a menu that is pointed at
            role = QPalette.ColorRole.HighlightedText
        colour = palette.color(group, role).name()
        plain = off or mode is QIcon.Mode.Selected
        accent = colour if plain else _ACCENTS[theme.is_dark(palette)]
        _renderer(self._shape, colour, accent).render(painter, QRectF(rect))

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        pixmap = QPixmap(size)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        self.paint(painter, QRect(QPoint(), size), mode, state)
        painter.end()
        return pixmap

    def clone(self) -> QIconEngine:
        return _Engine(self._shape)


@functools.lru_cache(maxsize=64)
def _renderer(shape: str, colour: str, accent: str) -> QSvgRenderer:
    drawing = shape.replace("currentColor", colour).replace(_ACCENTS[0], accent)
    return QSvgRenderer(QByteArray(drawing.encode()))
