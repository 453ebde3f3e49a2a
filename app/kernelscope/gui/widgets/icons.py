"""The icons: lines of one width in the colours of the palette; a desktop may have none."""

from __future__ import annotations

import functools

from PySide6.QtCore import QByteArray, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QIconEngine, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication

from kernelscope.gui.widgets import theme

_SHAPES = {
    "load": '<path d="M1.5 13V3.5h4.3l1.4 1.8h7.3V13z"/><path d="M8 11.5V7.4M6 9.2l2-2 2 2"/>',
    "save": '<path d="M8 1.8v7.7M4.8 6.6L8 9.8l3.2-3.2M2 11v3h12v-3"/>',
    "denoise": '<path d="M1.2 12.5c2-7 4-7 5.5-2.5s3 3.5 4.8.5s2-6 3.3-6"/>'
    '<path d="M2.2 3.2h.01M5 2.2h.01M8.2 4.8h.01M11 1.8h.01"/>',
    "run": '<path d="M4 2.2v11.6L13.4 8z" fill="{accent}" stroke="{accent}"/>',
    "cancel": '<rect x="3.5" y="3.5" width="9" height="9" rx="1"/>',
    "side": '<rect x="1" y="3" width="6" height="10" rx="1"/>'
    '<rect x="9" y="3" width="6" height="10" rx="1"/>',
    "swipe": '<rect x="1" y="3" width="14" height="10" rx="1"/><path d="M8 1v14M5.5 6.5L4 8l1.5 1.5'
    'M10.5 6.5L12 8l-1.5 1.5"/>',
    "split": '<rect x="1" y="2" width="14" height="12" rx="1"/><path d="M0.5 8h15M6.5 6L8 4.5 9.5 6'
    'M6.5 10L8 11.5 9.5 10"/>',
    "single": '<rect x="1" y="3" width="14" height="10" rx="1"/>',
    "display": '<circle cx="8" cy="8" r="6"/><path d="M8 2a6 6 0 0 1 0 12z" fill="{colour}"/>',
    "learn": '<path d="M8 3L15 6.2 8 9.4 1 6.2z"/>'
    '<path d="M4 7.8v3.4c2 1.9 6 1.9 8 0V7.8M15 6.2v4.3"/>',
    "gpu": '<rect x="4" y="4" width="8" height="8" rx="1"/><rect x="6.6" y="6.6" width="2.8" '
    'height="2.8"/><path d="M6 1.5V4M10 1.5V4M6 12v2.5M10 12v2.5M1.5 6H4M1.5 10H4M12 6h2.5'
    'M12 10h2.5"/>',
    "undo": '<path d="M5.5 3L2.5 6l3 3"/><path d="M2.5 6h6.5a4 4 0 0 1 0 8H6"/>',
    "redo": '<path d="M10.5 3l3 3-3 3"/><path d="M13.5 6H7a4 4 0 0 0 0 8h3"/>',
    "add": '<path d="M8 2.5v11M2.5 8h11"/>',
    "duplicate": '<rect x="5.5" y="5.5" width="9" height="9" rx="1"/>'
    '<path d="M10.5 3V1.5h-9v9H3"/>',
    "delete": '<path d="M2 4h12M6 4V2h4v2M3.5 4l.8 10h7.4l.8-10M6.5 6.5v5M9.5 6.5v5"/>',
    "up": '<path d="M8 13.5v-11M3.5 7L8 2.5 12.5 7"/>',
    "down": '<path d="M8 2.5v11M3.5 9L8 13.5 12.5 9"/>',
    "alone": '<path d="M1 8c3.5-5 10.5-5 14 0c-3.5 5-10.5 5-14 0z"/>'
    '<circle cx="8" cy="8" r="2.2"/>',
    "preferences": '<circle cx="8" cy="8" r="2.2"/><path d="M8 1.8v2.2M8 12v2.2M1.8 8H4M12 8h2.2'
    'M3.6 3.6l1.6 1.6M10.8 10.8l1.6 1.6M12.4 3.6l-1.6 1.6M5.2 10.8l-1.6 1.6"/>',
}
_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><g fill="none" stroke="{colour}" '
    'stroke-width="1.4" stroke-linecap="round" stroke-linejoin="round">{shape}</g></svg>'
)
_ACCENTS = ("#2560c8", "#6aa5ff")
"""The accent of *Run*, on a light ground and on a dark one: a palette of a desktop may lack it."""

NAMES = tuple(_SHAPES)  # the icons there are


def icon(name: str) -> QIcon:
    return QIcon(_Engine(_SHAPES[name]))


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
    drawing = _SVG.format(colour=colour, shape=shape.format(accent=accent, colour=colour))
    return QSvgRenderer(QByteArray(drawing.encode()))
