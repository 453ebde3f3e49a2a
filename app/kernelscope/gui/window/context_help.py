"""F1: opens the page about the widget that the user points at or works in.

The widget under the mouse counts if the mouse was moved since the keyboard focus changed, and
otherwise the one with the focus. Rooms name the pages, see `kernelscope.gui.widgets.help_place`.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QCursor, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QComboBox, QMenu, QWidget

from kernelscope.gui.widgets.help_place import place_of

START = "index"
"""The page if nothing around a widget names one."""


class ContextHelp(QObject):
    """Finds the page about the widget in use."""

    wanted = Signal(str)
    """Open this place: from a list that keeps the keyboard for itself."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._rest = QCursor.pos()
        """Where the mouse was when the focus changed."""
        for menu in window.findChildren(QMenu):  # which keep the keyboard for themselves
            menu.installEventFilter(self)
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.focusChanged.connect(self._on_focus)

    def watch(self, box: QComboBox) -> None:
        """Open help from the open list of `box` too, which keeps the keyboard for itself."""
        box.view().installEventFilter(self)

    def place(self) -> str:
        """Return page, or ``page#heading``, about the widget in use; an open menu is closed."""
        popup = QApplication.activePopupWidget()
        if isinstance(popup, QMenu):
            found = place_of(popup) or START
            _close_popups()
            return found
        cursor = QCursor.pos()
        under = QApplication.widgetAt(cursor)
        active = QApplication.activeWindow()
        pointed = under is not None and active is not None and under.window() is active
        if pointed and cursor != self._rest:
            found = place_of(under, cursor)
            if found:
                return found
        return place_of(QApplication.focusWidget() or active) or START

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        is_help = isinstance(event, QKeyEvent) and event.matches(
            QKeySequence.StandardKey.HelpContents
        )
        if event.type() == QEvent.Type.KeyPress and is_help and isinstance(watched, QWidget):
            place = place_of(watched) or START
            _close_popups()
            self.wanted.emit(place)
            return True
        return super().eventFilter(watched, event)

    def _on_focus(self, *_: object) -> None:
        self._rest = QCursor.pos()


def _close_popups() -> None:
    """Close the list or menu that is open, and the menus that it opened from."""
    while (popup := QApplication.activePopupWidget()) is not None:
        popup.close()
