"""Controls in a row, or in two where there is no room for one."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QWidget

from kernelscope.gui.widgets.parts import in_row


class FoldingRow(QWidget):
    """Two groups of controls, the second of which comes below the first in a narrow window.

    `apart`: in one row, the second group stands at the right.
    """

    def __init__(
        self,
        first: Sequence[QWidget],
        second: Sequence[QWidget],
        parent: QWidget,
        *,
        apart: bool = False,
        spacing: int = 2,
    ) -> None:
        super().__init__(parent)
        self._box = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.setSpacing(spacing)
        self._groups = [QWidget(self), QWidget(self)]
        for group, widgets in zip(self._groups, (first, second), strict=True):
            row = in_row(*widgets, of=group, margins=0, spacing=spacing)
            if not apart:
                row.addStretch(1)
            self._box.addWidget(group, int(not apart and group is self._groups[1]))
        if apart:
            self._box.insertStretch(1, 1)

    def minimumSizeHint(self) -> QSize:
        """Return the width of the wider group, and the height as it is now."""
        return QSize(max(self._widths()), self._box.minimumSize().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        direction = QBoxLayout.Direction
        fits = sum(self._widths()) + self._box.spacing() <= self.width()
        self._box.setDirection(direction.LeftToRight if fits else direction.TopToBottom)

    def _widths(self) -> list[int]:
        return [group.minimumSizeHint().width() for group in self._groups]
