"""A button that stays down."""

from __future__ import annotations

from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QStyleOptionToolButton, QToolButton


class Switch(QToolButton):
    """A tool button that is highlighted while it is on: a dark style hardly shows it else."""

    def initStyleOption(self, option: QStyleOptionToolButton) -> None:
        super().initStyleOption(option)
        if self.isChecked() and self.isEnabled():
            palette = QPalette(option.palette)
            palette.setColor(QPalette.ColorRole.Button, palette.color(QPalette.ColorRole.Highlight))
            palette.setColor(
                QPalette.ColorRole.ButtonText, palette.color(QPalette.ColorRole.HighlightedText)
            )
            option.palette = palette
