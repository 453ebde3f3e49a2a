"""A widget around another one that keeps requests for layout from the window."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QWidget, QWidgetItem


class Boundary(QWidget):
    """Holds a widget, and requests a layout only if the widget's size hints have changed.

    Qt passes every request on, up to the window: a label's new text has all docks and their tab
    bars laid out again, which took 3 ms of each live change.
    """

    def __init__(self, content: QWidget) -> None:
        super().__init__()
        self.content = content
        content.setParent(self)
        self._item = QWidgetItem(content)
        self._hints = self._read()
        self.setSizePolicy(content.sizePolicy())

    def sizeHint(self) -> QSize:
        return self._hints[0]

    def minimumSizeHint(self) -> QSize:
        return self._hints[1]

    def hasHeightForWidth(self) -> bool:
        return self._item.hasHeightForWidth()

    def heightForWidth(self, width: int) -> int:
        return self._item.heightForWidth(width)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self._follow()
        return super().event(event)

    def showEvent(self, event: QShowEvent) -> None:
        self._follow()  # hidden widgets get no requests
        super().showEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.content.setGeometry(self.rect())

    def _follow(self) -> None:
        hints = self._read()
        if hints != self._hints:
            self._hints = hints
            self.updateGeometry()

    def _read(self) -> tuple[QSize, QSize]:
        return self._item.sizeHint(), self._item.minimumSize()
