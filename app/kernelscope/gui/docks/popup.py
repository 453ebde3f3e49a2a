"""Where panels that belong to a button pop up."""

from __future__ import annotations

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QWidget


def place_below(panel: QWidget, button: QWidget) -> None:
    """Show `panel` under a button, inside of its screen."""
    panel.adjustSize()
    place = button.mapToGlobal(QPoint(button.width() - panel.width(), button.height() + 2))
    room = button.screen().availableGeometry()
    place.setX(min(max(place.x(), room.left()), room.right() - panel.width()))
    place.setY(min(max(place.y(), room.top()), room.bottom() - panel.height()))
    panel.move(place)
    panel.show()
