"""The first sign of the program, on the screen before the modules of the window are loaded."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QFrame, QLabel

from kernelscope import __version__
from kernelscope.base import memory
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.appearance import Appearance, stylist
from kernelscope.gui.widgets.parts import ElidedLabel, dressed, in_column, in_row, text_label
from kernelscope.gui.widgets.settings import Settings


def create_application() -> QApplication:
    """Return the Qt application, with its name, icon and style set."""
    application = QApplication(sys.argv[:1])
    application.setApplicationName("Kernelscope")
    application.setOrganizationName("Kernelscope")
    application.setApplicationVersion(__version__)
    application.setDesktopFileName("kernelscope")
    application.setWindowIcon(theme.app_icon())
    stylist().apply(Appearance())
    return application


class StartScreen(QFrame):
    """The icon, the name and the file that is opened, until the window stands.

    A `QSplashScreen` waits for up to a second until the system has put it on the screen.
    """

    def __init__(self, path: Path | None) -> None:
        super().__init__(None, Qt.WindowType.SplashScreen | Qt.WindowType.FramelessWindowHint)
        dressed(self, "startScreen", "Kernelscope is starting")
        self.setFrameShape(QFrame.Shape.StyledPanel)
        line = self.fontMetrics().height()
        icon, note = QLabel(), ElidedLabel()
        icon.setPixmap(theme.app_icon().pixmap(4 * line, 4 * line))
        note.set_full_text(f"Opening {path.name}…" if path is not None else "Starting…")
        name = text_label("Kernelscope", role="headline")
        name.setMinimumHeight(3 * line)
        text = in_column(1, name, note, 1, spacing=0)
        in_row(icon, (text, 1), of=self, margins=(2 * line, 0, line, 0), spacing=2 * line)
        self.setFixedSize(30 * line, 8 * line)
        place = self.frameGeometry()
        place.moveCenter(QGuiApplication.primaryScreen().availableGeometry().center())
        self.move(place.topLeft())


def show_start(path: Path | None) -> StartScreen:
    """Create the application and show that it starts."""
    memory.share_arenas()
    gc.disable()  # from now on `GarbageCollector` collects, once the window stands
    application = create_application()
    stylist().apply(Appearance.load(Settings()))
    screen = StartScreen(path)
    screen.show()
    application.processEvents()
    return screen
