"""Tabs of source files: those of a launch side by side, the others in a menu."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu, QTabWidget, QToolButton

from kernelscope.gui.widgets.parts import dressed

_NARROW = "QTabBar::tab { padding: 5px 4px; }"
"""Leaves less around the text of tabs, so that ten of them stand side by side."""


class SourceTabs(QTabWidget):
    """The files of a kernel; those that a launch leaves out are in a menu at the right.

    A filter with kernels for many sizes has twice as many headers as there is room for, and a
    launch uses half of them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("kernelFiles")
        self.tabBar().setStyleSheet(_NARROW)
        self.setDocumentMode(True)
        self._others = dressed(
            QToolButton(),
            "kernelOtherFiles",
            "Files left out",
            tip="Headers of which the macros of the launch leave nothing",
        )
        self._others.setAutoRaise(True)
        self._others.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._others.setMenu(QMenu(self._others))
        self._others.hide()
        self.setCornerWidget(self._others, Qt.Corner.TopRightCorner)

    def empty(self) -> None:
        while self.count():
            place = self.count() - 1 if self.currentIndex() == 0 else 0
            page = self.widget(place)
            assert page is not None
            self.removeTab(place)  # never the one in view: the next would be shown, and coloured
            page.deleteLater()

    def leave_out(self, unused: Collection[int]) -> None:
        """Put the files at these places into the menu, and all others side by side."""
        for place in range(self.count()):
            self.setTabVisible(place, place not in unused)
        menu = self._others.menu()
        menu.clear()
        for place in unused:
            name = self.tabText(place)
            menu.addAction(name).triggered.connect(partial(self._show_file, name))
        self._others.setText(f"{len(unused)} left out")
        self._others.setVisible(bool(unused))

    def show_place(self, place: int) -> None:
        self.setTabVisible(place, True)
        self.setCurrentIndex(place)

    def _show_file(self, name: str) -> None:
        """Show a file, whose place may have changed since the menu was made."""
        for place in range(self.count()):
            if self.tabText(place) == name:
                self.show_place(place)
                return
