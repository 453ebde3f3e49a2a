"""The docks of the window, made from their declarations in `kernelscope.menus`."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDockWidget, QMainWindow, QWidget

from kernelscope.menus import DOCKS, DockName, Side

_AREAS = {
    Side.RIGHT: Qt.DockWidgetArea.RightDockWidgetArea,
    Side.BOTTOM: Qt.DockWidgetArea.BottomDockWidgetArea,
}

_BOTTOM_HEIGHT = 210


def make_docks(
    window: QMainWindow, contents: Mapping[DockName, QWidget]
) -> dict[DockName, QDockWidget]:
    """Add a dock to `window` for each of the `contents`.

    Docks on the same side share a row of tabs with the first one in front. The corners belong
    to the right side, so that the settings are as high as the window.
    """
    window.setCorner(Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.RightDockWidgetArea)
    window.setCorner(Qt.Corner.BottomLeftCorner, Qt.DockWidgetArea.LeftDockWidgetArea)
    docks: dict[DockName, QDockWidget] = {}
    first: dict[Side, QDockWidget] = {}
    for declared in DOCKS:
        dock = QDockWidget(declared.title, window)
        dock.setObjectName(declared.object_name)
        dock.setWidget(contents[declared.name])
        if declared.side is Side.RIGHT:
            dock.setAllowedAreas(
                Qt.DockWidgetArea.LeftDockWidgetArea | Qt.DockWidgetArea.RightDockWidgetArea
            )
        window.addDockWidget(_AREAS[declared.side], dock)
        if declared.side in first:
            window.tabifyDockWidget(first[declared.side], dock)
        first.setdefault(declared.side, dock)
        docks[declared.name] = dock
    for dock in first.values():
        dock.raise_()
    for declared in DOCKS:
        docks[declared.name].setVisible(declared.visible)
    window.resizeDocks([first[Side.BOTTOM]], [_BOTTOM_HEIGHT], Qt.Orientation.Vertical)
    return docks
