"""Colours and line styles of pictures and channels, the same in every plot."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette

from kernelscope.gui.widgets import theme

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
    return QColor(dark if theme.is_dark(palette) else light)


def channel_colour(channel: str, palette: QPalette) -> QColor:
    dark = theme.is_dark(palette)
    match channel:
        case "red":
            return QColor("#ff7a70" if dark else "#c62828")
        case "green":
            return QColor("#6bd06f" if dark else "#2e7d32")
        case "blue":
            return QColor("#6fa8ff" if dark else "#1565c0")
        case _:
            return palette.color(QPalette.ColorRole.Text)
