"""Where the window is on the screen, and how its docks lie: saved and restored."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMainWindow

from kernelscope.gui.widgets.settings import Settings

STATE_VERSION = 7
"""Increased when docks or toolbars change, so that an old layout is not restored."""

_FIRST_SIZE = QSize(1600, 960)

_FRAME = QSize(16, 48)
"""Room for the frame that the desktop draws around the window; not known before it is shown."""


def save(window: QMainWindow, settings: Settings) -> None:
    settings.set_blob("geometry", window.saveGeometry())
    settings.set_blob("state", window.saveState(STATE_VERSION))


def restore(window: QMainWindow, settings: Settings) -> None:
    """Put `window` where it was, or else on the screen in a size that fits."""
    screen = window.screen().availableGeometry()
    first = _FIRST_SIZE.boundedTo(screen.size() - _FRAME)
    if not window.restoreGeometry(settings.blob("geometry")):
        window.resize(first)
    elif not _is_reachable(window.frameGeometry()):  # its screen may be gone
        window.setWindowState(Qt.WindowState.WindowNoState)
        window.resize(first)
        window.move(screen.topLeft())
    window.restoreState(settings.blob("state"), STATE_VERSION)


def _is_reachable(place: QRect) -> bool:
    """Return whether the middle of a window is on a screen, and the window not far larger."""
    screens = [screen.availableGeometry() for screen in QGuiApplication.screens()]
    return any(
        screen.contains(place.center())
        and place.width() <= 2 * screen.width()
        and place.height() <= 2 * screen.height()
        for screen in screens
    )
