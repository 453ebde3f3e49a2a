"""A place in a layout into which another part of the window puts its widget."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget


class Slot(QWidget):
    """Takes no room until something is put into it."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hide()

    def put(self, widget: QWidget) -> None:
        """Show `widget` here, below those that are here already."""
        self._column.addWidget(widget)
        self.show()
