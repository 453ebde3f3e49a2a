"""Colours, fonts and icons; colours follow the desktop's palette, light or dark."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, cast

from PySide6.QtCore import QByteArray, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QIcon,
    QIconEngine,
    QPainter,
    QPalette,
    QPixmap,
    QTextCursor,
    QTextFormat,
)
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication, QTextEdit, QWidget

from kernelscope.base.paths import RESOURCES


def is_dark(palette: QPalette) -> bool:
    return palette.color(QPalette.ColorRole.Base).lightness() < 128


def _toned(dark: str, light: str) -> Callable[[QPalette], QColor]:
    return lambda palette: QColor(dark if is_dark(palette) else light)


# Readable on the base colour of a palette.
error_text = _toned("#ff8f87", "#b3261e")
warning_text = _toned("#ffc46b", "#8a5300")
error_fill = _toned("#6b1f1a", "#ffd5d1")  # a ground for the text colour

# Parts of bars: computing is light, data on their way dark, the rest grey.
kernel_fill = _toned("#5fa3d6", "#8ec4ea")
transfers_fill = _toned("#1f5c8f", "#1b5e92")
other_fill = _toned("#6d6d6d", "#bdbdbd")


def quiet_text(palette: QPalette) -> QColor:
    """Return the text colour of `palette`, toned down for secondary text."""
    text = palette.color(QPalette.ColorRole.Text)
    base = palette.color(QPalette.ColorRole.Base)
    return QColor(
        round(0.7 * text.red() + 0.3 * base.red()),
        round(0.7 * text.green() + 0.3 * base.green()),
        round(0.7 * text.blue() + 0.3 * base.blue()),
    )


CANVAS_GROUND, CANVAS_TEXT, CANVAS_QUIET = "#141414", "#e2e2e2", "#a4a4a4"
"""Around pictures, in both themes: a light surround would dazzle and hide dark tissue."""

canvas_ground = _toned(CANVAS_GROUND, CANVAS_GROUND)
canvas_quiet = _toned(CANVAS_QUIET, CANVAS_QUIET)  # hints over that ground


def set_role(widget: QWidget, role: str) -> None:
    """Give text its size and colour by its part in the window, in every theme.

    `role`: ``headline`` (18 points where labels have 11), ``heading`` (of a dialog), ``title``
    (bold), ``note`` (9 points, quiet), ``drop`` (where files can be dropped), ``warning``,
    ``problem``; for buttons ``primary``; empty for a plain label.
    """
    if widget.property("role") == role:
        return
    widget.setProperty("role", role)
    widget.style().unpolish(widget)
    widget.style().polish(widget)


def added_fill(palette: QPalette, strong: bool = False) -> QColor:
    """Return the ground of lines that are new; a strong one of the characters that are."""
    if is_dark(palette):
        return QColor("#2b6a3f" if strong else "#16351f")
    return QColor("#a6e3b5" if strong else "#e2f5e7")


def removed_fill(palette: QPalette, strong: bool = False) -> QColor:
    """Return the ground of lines that are gone; a strong one of the characters that are."""
    if is_dark(palette):
        return QColor("#7c2f2a" if strong else "#431b18")
    return QColor("#f6bab3" if strong else "#fde6e3")


def fixed_font() -> QFont:
    """Return a font that leaves the size of text to the window, and so to the preferences."""
    font = QFont()
    font.setFamilies(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).families())
    font.setStyleHint(QFont.StyleHint.Monospace)
    return font


def show_markdown(view: QTextEdit, text: str) -> None:
    """Show Markdown, whose code Qt would not let follow the size of text."""
    view.setMarkdown(text)
    cursor = QTextCursor(view.document())
    cursor.beginEditBlock()  # lays the page out once, not after each piece of code
    block = view.document().begin()
    while block.isValid():
        for part in [each.fragment() for each in cast(Iterable[Any], block)]:
            style = part.charFormat()
            if style.hasProperty(QTextFormat.Property.FontPointSize):
                style.clearProperty(QTextFormat.Property.FontPointSize)
                cursor.setPosition(part.position())
                end = part.position() + part.length()
                cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
                cursor.setCharFormat(style)
        block = block.next()
    cursor.endEditBlock()


def app_icon() -> QIcon:
    path = RESOURCES / "icon.svg"
    return QIcon(str(path)) if path.exists() else QIcon()


_ACCENTS = ("#2560c8", "#6aa5ff")
"""The accent of *Run*, on a light ground and on a dark one: a palette of a desktop may lack it."""

_FOLDER = RESOURCES / "icons" / "lines"


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
        accent = colour if plain else _ACCENTS[is_dark(palette)]
        side = min(rect.width(), rect.height())  # room beside it keeps texts away
        square = QRect(rect.left(), rect.center().y() - (side - 1) // 2, side, side)
        _renderer(self._shape, colour, accent).render(painter, QRectF(square))

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


PICTURE_STYLES = {
    "input": (Qt.PenStyle.DashLine, "- -"),
    "output": (Qt.PenStyle.SolidLine, "—"),
    "reference": (Qt.PenStyle.DotLine, "···"),
}
"""Line styles that distinguish pictures without colour, and their marks in a legend."""

CHANNEL_STYLES = (
    (Qt.PenStyle.SolidLine, "—"),
    (Qt.PenStyle.DashLine, "- -"),
    (Qt.PenStyle.DotLine, "···"),
)
"""Line styles that distinguish channels without colour, and their marks in a legend."""

_PICTURE_INKS = {
    "input": ("#e69f00", "#9a5b00"),
    "output": ("#56b4e9", "#0b62a3"),
    "reference": ("#b8bec8", "#5b626d"),
}
"""Colours for pictures without colours, on a dark and on a light ground."""


def picture_colour(picture: str, palette: QPalette) -> QColor:
    dark, light = _PICTURE_INKS[picture]
    return QColor(dark if is_dark(palette) else light)


def dye_colour(dye: str, palette: QPalette) -> QColor:
    """Return the colour of a channel of a microscope, mixed with that of text to be legible."""
    text, own = palette.color(QPalette.ColorRole.Text), QColor(dye)
    shares = zip((own.red(), own.green(), own.blue()), (text.red(), text.green(), text.blue()))  # noqa: B905
    red, green, blue = ((2 * colour + ink) // 3 for colour, ink in shares)
    return QColor(red, green, blue)


def channel_colour(channel: str, palette: QPalette) -> QColor:
    dark = is_dark(palette)
    match channel:
        case "red":
            return QColor("#ff7a70" if dark else "#c62828")
        case "green":
            return QColor("#6bd06f" if dark else "#2e7d32")
        case "blue":
            return QColor("#6fa8ff" if dark else "#1565c0")
        case _:
            return palette.color(QPalette.ColorRole.Text)
