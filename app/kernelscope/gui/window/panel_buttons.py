"""Buttons in the status bar for the panels at the bottom, which leave the pictures their room."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDockWidget, QMainWindow, QToolButton, QWidget

from kernelscope.gui.widgets.commands import WindowState
from kernelscope.gui.widgets.parts import dressed, in_row, switch
from kernelscope.gui.window.dock_list import DOCKS, Dock, DockName, DockSide

_HEIGHT = 190
"""Pixels of the panels at the bottom when the first of them opens."""


class PanelButtons(QWidget):
    """A button for each panel at the bottom that has something to show.

    It opens the panel in place of the one that is open, or closes it.
    """

    def __init__(self, window: QMainWindow, docks: Mapping[DockName, QDockWidget]) -> None:
        super().__init__(window)
        self.setObjectName("panelButtons")
        self._window, self._docks = window, docks
        self._state = WindowState()
        self._buttons: dict[DockName, QToolButton] = {}
        for each in DOCKS:
            if each.side is DockSide.BOTTOM:
                button = switch(each.title, f"{each.name}PanelButton", f"Panel {each.title}")
                button.setAutoRaise(True)
                button.clicked.connect(
                    lambda wanted, name=each.name: self._on_clicked(name, wanted)
                )
                docks[each.name].visibilityChanged.connect(lambda _: self._show())
                self._buttons[each.name] = button
        in_row(*self._buttons.values(), of=self, margins=0, spacing=2)
        dressed(self, "panelButtons", "Panels at the bottom")
        self._show()

    def show_state(self, state: WindowState) -> None:
        """Offer the panels that have something now, and open or close those beside the pictures.

        Those stand there of their own accord, as the steps do once there are two.
        """
        before, self._state = self._state, state
        for each in DOCKS:
            met = each.need.met(state)
            if each.side is DockSide.LEFT and met is not each.need.met(before):
                self._docks[each.name].setVisible(met)
        self._show()

    def open(self, name: DockName) -> None:
        """Show a panel in place of the others at the bottom, those that float apart."""
        open_ = [each for each in self._at_the_bottom() if not each.isHidden()]
        dock = self._docks[name]
        dock.show()
        dock.raise_()
        if not open_:
            self._window.resizeDocks([dock], [_HEIGHT], Qt.Orientation.Vertical)
        for each in open_:
            each.setVisible(each is dock)

    def _on_clicked(self, name: DockName, wanted: bool) -> None:
        if wanted:
            self.open(name)
            return
        for each in self._at_the_bottom():
            each.hide()

    def _at_the_bottom(self) -> list[QDockWidget]:
        docks = [self._docks[name] for name in self._buttons]
        return [each for each in docks if not each.isFloating()]

    def _show(self) -> None:
        for each in DOCKS:
            button = self._buttons.get(each.name)
            if button is None:
                continue
            dock = self._docks[each.name]
            button.setVisible(each.need.met(self._state) or not dock.isHidden())
            button.setText(_title(each, self._state))
            button.setChecked(not dock.isHidden() and not dock.visibleRegion().isEmpty())


def _title(dock: Dock, state: WindowState) -> str:
    number = {DockName.RUNS: state.runs, DockName.MEASURE: state.regions}.get(dock.name)
    return f"{dock.title} {number}" if number else dock.title
