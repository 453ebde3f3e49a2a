"""Which page of the handbook explains a widget: a property that rooms set and F1 reads.

set_help(form, "filter-median")               the widget and everything inside it
set_help(editor, "filter-median#mask-size")   a part of it has a paragraph of its own
item.setData(HELP_ROLE, "level-gpu-shared")   a line of a list
place_of(widget)                              the nearest place, from the widget outwards
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QPoint, Qt
from PySide6.QtWidgets import QAbstractItemView, QMenu, QWidget

_PROPERTY = "helpPlace"

HELP_ROLE = Qt.ItemDataRole.UserRole + 97
"""Role of the place in the data of an item; far from the roles that lists have for themselves."""


def set_help(widget: QObject, place: str) -> None:
    """Let F1 on `widget`, and on everything inside it, open ``page`` or ``page#heading``.

    An action of a menu has a place as well; without one, that of its menu counts.
    """
    widget.setProperty(_PROPERTY, place)


def place_of(widget: QWidget | None, cursor: QPoint | None = None) -> str:
    """Return the place that explains a widget: its own, or the nearest one around it.

    `cursor`: point of the screen: of a list, the line there counts. By default its current line
    does.
    """
    while widget is not None:
        if isinstance(widget, QAbstractItemView):
            found = _line(widget, cursor)
            if found:
                return found
        place = (_entry(widget) if isinstance(widget, QMenu) else "") or widget.property(_PROPERTY)
        if place:
            return str(place)
        widget = widget.parentWidget()
    return ""


def _entry(menu: QMenu) -> str:
    """Return the place of the highlighted entry of a menu; empty if it has none."""
    action = menu.activeAction()
    if action is None:
        return ""
    return str(action.property(_PROPERTY) or (action.menu() or action).property(_PROPERTY) or "")


def _line(view: QAbstractItemView, cursor: QPoint | None) -> str:
    """Return the place of a line of a list; empty if it has none."""
    index = view.currentIndex()
    if cursor is not None:
        index = view.indexAt(view.viewport().mapFromGlobal(cursor))
    return str(index.data(HELP_ROLE) or "") if index.isValid() else ""
