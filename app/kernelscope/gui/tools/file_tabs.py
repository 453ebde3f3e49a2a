"""Tabs of source files: those of a launch side by side, the others in a menu."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
    QMenu,
    QProxyStyle,
    QStyle,
    QStyleOption,
    QTabBar,
    QTabWidget,
    QToolButton,
    QWidget,
)

from kernelscope.gui.widgets.parts import dressed

_AROUND_TAB = 6  # horizontal padding of a tab in pixels, both sides together


class _NarrowTabs(QProxyStyle):
    """Leaves less around the text of tabs, so that ten of them stand side by side."""

    def pixelMetric(
        self,
        metric: QStyle.PixelMetric,
        option: QStyleOption | None = None,
        widget: QWidget | None = None,
    ) -> int:
        if metric == QStyle.PixelMetric.PM_TabBarTabHSpace:
            return _AROUND_TAB
        return super().pixelMetric(metric, option, widget)


class FileTabs(QTabBar):
    """Tabs with room for underscores.

    Fusion pushes the text of tabs that are not chosen down, and cuts it off there.
    """

    def __init__(self) -> None:
        super().__init__()
        self._style = _NarrowTabs()
        self._style.setParent(self)
        self.setStyle(self._style)

    def tabSizeHint(self, index: int) -> QSize:
        shift = self.style().pixelMetric(QStyle.PixelMetric.PM_TabBarTabShiftVertical, None, self)
        return super().tabSizeHint(index) + QSize(0, shift)


class SourceTabs(QTabWidget):
    """The files of a kernel; those that a launch leaves out are in a menu at the right.

    A filter with kernels for many sizes has twice as many headers as there is room for, and a
    launch uses half of them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("kernelFiles")
        self.setTabBar(FileTabs())
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
        """Show the file at this place, also one that was left out."""
        self.setTabVisible(place, True)
        self.setCurrentIndex(place)

    def _show_file(self, name: str) -> None:
        """Show a file, whose place may have changed since the menu was made."""
        for place in range(self.count()):
            if self.tabText(place) == name:
                self.show_place(place)
                return
