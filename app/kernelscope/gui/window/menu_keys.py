"""Keys of the menus while a field is being edited.

Qt offers a key to the widget in focus before it looks for shortcuts (``ShortcutOverride``), and a
line edit takes the keys of its platform: on X11 Ctrl+U, which deletes the line. The menus of
the window say something else of that key, and have the word. Keys that edit text everywhere, such
as Ctrl+A and Ctrl+V, stay with the field; of Ctrl+Z, as long as it has something to take back.
"""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget

_Key = QKeySequence.StandardKey
_EDITING = (_Key.Cut, _Key.Copy, _Key.Paste, _Key.SelectAll)


class MenuKeys(QObject):
    """Gives the keys of `actions` back to them where a line edit of the window has the focus."""

    def __init__(self, window: QWidget, actions: Iterable[QAction]) -> None:
        super().__init__(window)
        self._window, self._actions = window, tuple(actions)
        self._watched: QWidget | None = None
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._on_focus)

    def _on_focus(self, old: QWidget | None, new: QWidget | None) -> None:
        """Watch the widget in focus alone: an event that passes through Python takes its time."""
        if self._watched is not None:
            self._watched.removeEventFilter(self)
        ours = new is not None and new.window() is self._window and _field(new) is not None
        self._watched = new if ours else None
        if self._watched is not None:
            self._watched.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            field = _field(watched)
            if field is not None and not _edits(field, event) and self._is_ours(event):
                event.ignore()
                return True
        return super().eventFilter(watched, event)

    def _is_ours(self, event: QKeyEvent) -> bool:
        key = QKeySequence(event.keyCombination())
        return any(action.isEnabled() and key in action.shortcuts() for action in self._actions)


def _field(widget: QObject | None) -> QLineEdit | None:
    """Return the line edit that a widget is, or in which its text is edited."""
    if isinstance(widget, QLineEdit):
        return widget
    return widget.findChild(QLineEdit) if isinstance(widget, QWidget) else None


def _edits(field: QLineEdit, event: QKeyEvent) -> bool:
    """Return whether a key edits the text of a field on every platform."""
    if event.matches(_Key.Undo):
        return field.isUndoAvailable()
    if event.matches(_Key.Redo):
        return field.isRedoAvailable()
    return any(map(event.matches, _EDITING))
