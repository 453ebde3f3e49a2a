"""A tree whose content Ctrl+C copies, although the window has a shortcut for that key."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QTreeWidget, QWidget


class CopyKey(QObject):
    """Puts a text on the clipboard when Ctrl+C is pressed in a view.

    Qt offers a key to the widget in focus before it looks for shortcuts (``ShortcutOverride``); a
    widget that accepts the offer gets the key press in place of the window's action. `text` returns
    the text to copy.
    """

    def __init__(self, view: QWidget, text: Callable[[], str]) -> None:
        super().__init__(view)
        self._text = text
        view.installEventFilter(self)

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self._text())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if (
            isinstance(event, QKeyEvent)
            and event.type() in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress)
            and event.matches(QKeySequence.StandardKey.Copy)
        ):
            event.accept()
            if event.type() == QEvent.Type.KeyPress:
                self.copy()
            return True
        return super().eventFilter(watched, event)


class CopyableTree(QTreeWidget):
    """A tree with a `CopyKey`; by default its rows are copied, cells separated by tabs."""

    def __init__(
        self, text: Callable[[], str] | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._key = CopyKey(self, text or self.rows)

    def copy(self) -> None:
        self._key.copy()

    def rows(self) -> str:
        """Return the texts of the rows at the top, without those below them."""
        items = (self.topLevelItem(row) for row in range(self.topLevelItemCount()))
        columns = range(self.columnCount())
        return "\n".join("\t".join(map(item.text, columns)) for item in items if item is not None)
