"""The tool bar: the commands of the first minute, each with a visible name."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QSizePolicy, QToolBar, QToolButton, QWidget

from kernelscope.gui.widgets.commands import plain
from kernelscope.gui.widgets.icons import icon

_ROOM, _HEIGHT = 8, 28
"""Pixels around icon and text, and the minimum height of an easy target."""


class ToolBar(QToolBar):
    """Buttons with icon and text, in groups.

    Groups stand apart; those of `right` at the far end.
    """

    def __init__(
        self,
        left: Sequence[Sequence[QAction | QMenu]],
        right: Sequence[Sequence[QAction | QMenu]],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("Tool Bar", parent)
        self.setObjectName("toolBar")
        self.setMovable(False)
        self.setIconSize(QSize(16, 16))
        self._places: dict[QAction | QMenu, QAction] = {}
        self._add(left)
        gap = QWidget(self)
        gap.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.addWidget(gap)
        self._add(right)

    def _add(self, groups: Sequence[Sequence[QAction | QMenu]]) -> None:
        for number, group in enumerate(groups):
            if number:
                self.addSeparator()
            for action in group:
                button = QToolButton(self)
                if isinstance(action, QMenu):
                    button.setText(plain(action.title()))
                    button.setIcon(icon("learn"))
                    button.setToolTip("Why levels are as fast as they are, and kernels of your own")
                    button.setMenu(action)
                    button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
                else:
                    button.setDefaultAction(action)
                button.setObjectName(f"{action.objectName()}Tool")
                button.setAccessibleName(button.text())
                button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
                button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
                button.setAutoRaise(True)
                hint = button.sizeHint()
                button.setMinimumSize(hint.width() + _ROOM, max(hint.height(), _HEIGHT))
                self._places[action] = self.addWidget(button)

    def offer(self, action: QAction, offered: bool) -> None:
        self._places[action].setVisible(offered)
