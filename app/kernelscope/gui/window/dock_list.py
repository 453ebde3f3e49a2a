"""The docks of the window: their declarations, and the widgets made from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import (
    QAbstractButton,
    QDockWidget,
    QMainWindow,
    QSizePolicy,
    QTabBar,
    QTabWidget,
    QWidget,
)

from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action, Need
from kernelscope.gui.widgets.layouts import Boundary
from kernelscope.gui.widgets.parts import Watcher, set_help


class DockSide(StrEnum):
    LEFT = "left"
    RIGHT = "right"
    BOTTOM = "bottom"


class DockName(StrEnum):
    FILTERS = "filters"
    STEPS = "steps"
    CONTROLS = "controls"
    RUNS = "runs"
    TIMING = "timing"
    QUALITY = "quality"
    MEASURE = "measure"
    CONSOLE = "console"


@dataclass(frozen=True)
class Dock:
    """A dock of the window.

    Only the settings are open at first: the pictures come first. Steps opens with the second step,
    the others when the user asks for them. Docks at the bottom lie behind each other; those on the
    left and on the right lie below each other.
    """

    name: DockName
    title: str
    side: DockSide
    help: str  # page of the manual that explains it, or ``page#heading``
    entry: str = ""  # title in the menu *Panels*; empty if it has an action of its own
    keys: str = ""
    need: Need = commands.NOTHING  # when it has something to show

    @property
    def object_name(self) -> str:
        """Name under which Qt saves the dock's place."""
        return f"{self.name}Dock"

    @property
    def toggle(self) -> Action:
        """Its entry in the menu *Panels*; Qt shows and hides the dock."""
        id_ = f"show{self.name.capitalize()}dock"
        return Action(id_, self.entry, self.keys, help=self.help)


DOCKS = (
    Dock(
        DockName.FILTERS, "Filters", DockSide.LEFT, "window#finding-a-filter", "&Filters", "Ctrl+F8"
    ),
    Dock(
        DockName.STEPS,
        "Steps",
        DockSide.LEFT,
        "window#recipes",
        "S&teps",
        "Ctrl+F9",
        commands.STEPS,
    ),
    Dock(DockName.CONTROLS, "Settings", DockSide.RIGHT, "window", "&Settings", "F8"),
    Dock(
        DockName.RUNS,
        "Runs",
        DockSide.BOTTOM,
        "window#the-list-of-runs",
        "&Runs",
        "Ctrl+F7",
        commands.TIMED_RUNS,
    ),
    Dock(
        DockName.TIMING,
        "Timing",
        DockSide.BOTTOM,
        "window#the-list-of-runs",
        "Ti&ming",
        "F9",
        commands.TIMED_RUNS,
    ),
    Dock(
        DockName.QUALITY,
        "Quality",
        DockSide.BOTTOM,
        "window#denoising",
        "&Quality",
        "F7",
        commands.OUTPUT,
    ),
    Dock(
        DockName.MEASURE,
        "Measure",
        DockSide.BOTTOM,
        "window#measuring",
        "M&easure",
        "Ctrl+F10",
        commands.REGIONS,
    ),
    Dock(
        DockName.CONSOLE,
        "Console",
        DockSide.BOTTOM,
        "window#kernels-benchmark-and-console",
        need=commands.NEVER,
    ),
)


_AREAS = {
    DockSide.LEFT: Qt.DockWidgetArea.LeftDockWidgetArea,
    DockSide.RIGHT: Qt.DockWidgetArea.RightDockWidgetArea,
    DockSide.BOTTOM: Qt.DockWidgetArea.BottomDockWidgetArea,
}

_LEFT_WIDTH, _RIGHT_WIDTH = 200, 330  # pixels at the first start


def make_docks(
    window: QMainWindow, contents: Mapping[DockName, QWidget]
) -> dict[DockName, QDockWidget]:
    """Add a dock to `window` for each of the `contents`.

    The docks at the bottom share a row of tabs with the first one in front; those at a side lie
    below each other. The corners belong to the sides, which need height more than the bottom
    needs width.
    """
    window.setCorner(Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.RightDockWidgetArea)
    window.setCorner(Qt.Corner.BottomLeftCorner, Qt.DockWidgetArea.LeftDockWidgetArea)
    window.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
    docks: dict[DockName, QDockWidget] = {}
    declared = [dock for dock in DOCKS if dock.name in contents]
    first: dict[DockSide, QDockWidget] = {}
    for each in declared:
        dock = QDockWidget(each.title, window)
        dock.setObjectName(each.object_name)
        dock.setWidget(Boundary(contents[each.name]))
        _let_buttons_grow(dock)
        set_help(dock, each.help)
        if each.side is not DockSide.BOTTOM:
            dock.setAllowedAreas(_AREAS[DockSide.LEFT] | _AREAS[DockSide.RIGHT])
        window.addDockWidget(_AREAS[each.side], dock)
        if each.side is DockSide.BOTTOM and each.side in first:
            window.tabifyDockWidget(first[each.side], dock)
        first.setdefault(each.side, dock)
        docks[each.name] = dock
    for dock in first.values():
        dock.raise_()
    for each in declared:
        docks[each.name].setVisible(each.side is DockSide.RIGHT)
    guard = _WheelGuard(window)
    for dock in docks.values():
        _Title(dock, docks.values(), guard)
    for side, width in ((DockSide.LEFT, _LEFT_WIDTH), (DockSide.RIGHT, _RIGHT_WIDTH)):
        if side in first:
            window.resizeDocks([first[side]], [width], Qt.Orientation.Horizontal)
    return docks


def _let_buttons_grow(dock: QDockWidget) -> None:
    """Let the buttons of a title be as high as the style sheet has them, not as their icons."""
    direct = Qt.FindChildOption.FindDirectChildrenOnly
    for button in dock.findChildren(QAbstractButton, options=direct):
        button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)


class Drawer:
    """Hides all docks, so that the pictures have the window, and brings them back."""

    def __init__(self, docks: Iterable[QDockWidget]) -> None:
        self._docks = tuple(docks)
        self._closed: tuple[QDockWidget, ...] = ()
        self._is_closed = False
        self._front: tuple[QDockWidget, ...] = ()

    @Action("onlyPictures", "Only the &Pictures", "F11")
    def toggle(self) -> None:
        """Hide or show all panels."""
        shown = tuple(dock for dock in self._docks if not dock.isHidden())
        if shown:
            # One that opened meanwhile, as the steps do, comes back beside those hidden before.
            before = self._closed if self._is_closed else ()
            self._closed, self._is_closed = tuple(dict.fromkeys((*before, *shown))), True
            self._front = tuple(dock for dock in shown if not dock.visibleRegion().isEmpty())
            for dock in shown:
                dock.hide()
            return
        self._is_closed = False
        for dock in self._closed or self._docks:
            dock.show()
        for dock in self._front:
            dock.raise_()


class _WheelGuard(Watcher):
    """Keeps the wheel from changing tabs."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        return event.type() == QEvent.Type.Wheel


class _Title(QObject):
    """Hides the title bar of a dock that lies behind a tab of the same name; others come and go."""

    def __init__(self, dock: QDockWidget, docks: Iterable[QDockWidget], guard: _WheelGuard) -> None:
        super().__init__(dock)
        self._dock = dock
        self._none = QWidget(dock)
        self._none.hide()
        for each in docks:
            for signal in (each.visibilityChanged, each.topLevelChanged, each.dockLocationChanged):
                signal.connect(self._wait)
        self._guard = guard
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._update)
        self._update()

    def _wait(self) -> None:
        self._timer.start(0)  # Qt moves the other docks of the row after the signal

    def _update(self) -> None:
        window = self._dock.parentWidget()
        beside = window.tabifiedDockWidgets(self._dock) if isinstance(window, QMainWindow) else []
        if isinstance(window, QMainWindow) and beside:  # Qt makes the bars when docks meet
            direct = Qt.FindChildOption.FindDirectChildrenOnly
            self._guard.watch(*window.findChildren(QTabBar, "", direct))
        tabbed = any(not each.isHidden() for each in beside) and not self._dock.isFloating()
        if tabbed is not (self._dock.titleBarWidget() is self._none):
            # None brings Qt's own title back; the type stubs do not know it.
            bar: Any = self._none if tabbed else None
            self._dock.setTitleBarWidget(bar)
