"""The first sign of the program, on the screen before the modules of the window are loaded."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QFont, QGuiApplication, QPainter, QPalette, QPixmap
from PySide6.QtWidgets import QApplication, QLabel

from kernelscope import __version__
from kernelscope.base import memory
from kernelscope.gui.widgets import theme
from kernelscope.gui.widgets.appearance import Appearance, stylist
from kernelscope.gui.widgets.settings import Settings

_WIDTH, _HEIGHT, _ICON, _MARGIN = 440, 128, 64, 32


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


class StartScreen(QLabel):
    """The icon, the name and the file that is opened, until the window stands.

    A `QSplashScreen` waits for up to a second until the system has put it on the screen.
    """

    def __init__(self, path: Path | None, palette: QPalette, font: QFont) -> None:
        super().__init__(None, Qt.WindowType.SplashScreen | Qt.WindowType.FramelessWindowHint)
        self.setPixmap(_drawn(path, palette, font))
        self.adjustSize()
        place = self.frameGeometry()
        place.moveCenter(QGuiApplication.primaryScreen().availableGeometry().center())
        self.move(place.topLeft())
        self.setObjectName("startScreen")
        self.setAccessibleName("Kernelscope is starting")


def _drawn(path: Path | None, palette: QPalette, font: QFont) -> QPixmap:
    ratio = QGuiApplication.primaryScreen().devicePixelRatio()
    scale = max(1.0, font.pointSizeF() / 9)
    width, height = round(_WIDTH * scale), round(_HEIGHT * scale)
    pixmap = QPixmap(round(width * ratio), round(height * ratio))
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(palette.color(QPalette.ColorRole.Window))
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
    icon, margin = round(_ICON * scale), round(_MARGIN * scale)
    theme.app_icon().paint(painter, QRect(margin, (height - icon) // 2, icon, icon))
    left = 2 * margin + icon
    room = QRect(left, 0, width - left - margin, height // 2)
    large = QFont(font)
    large.setPointSizeF(2 * font.pointSizeF())
    painter.setFont(large)
    painter.setPen(palette.color(QPalette.ColorRole.WindowText))
    painter.drawText(room, Qt.AlignmentFlag.AlignBottom, "Kernelscope")
    painter.setFont(font)
    painter.setPen(theme.quiet_text(palette))
    text = f"Opening {path.name}…" if path is not None else "Starting…"
    text = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideMiddle, room.width())
    painter.drawText(room.translated(0, height // 2 + margin // 4), Qt.AlignmentFlag.AlignTop, text)
    painter.setPen(palette.color(QPalette.ColorRole.Mid))
    painter.drawRect(0, 0, width - 1, height - 1)
    painter.end()
    return pixmap


def show_start(path: Path | None) -> StartScreen:
    """Create the application and show that it starts."""
    memory.share_arenas()
    gc.disable()  # from now on `GarbageCollector` collects, once the window stands
    application = create_application()
    stylist().apply(Appearance.load(Settings()))
    screen = StartScreen(path, application.palette(), application.font())
    screen.show()
    application.processEvents()
    return screen
