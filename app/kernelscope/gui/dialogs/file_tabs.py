"""Tabs of source files, narrow enough for ten side by side."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QProxyStyle, QStyle, QStyleOption, QTabBar, QWidget

_AROUND_TAB = 6
"""Horizontal padding of a tab in pixels, both sides together."""


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
