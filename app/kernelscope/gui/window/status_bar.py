"""A status bar that marks a message that is too long."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRect, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QStatusBar, QStyle, QStyleOption

from kernelscope.gui.widgets.elided_label import plain_tip

_MARGIN = 6
"""Pixels left of the message, as in Qt's own status bar, and between it and the labels."""


class StatusBar(QStatusBar):
    """Its message ends in “…” before the labels on the right; the tooltip has it all.

    Qt's own status bar cuts it off in the middle of a letter.

    - `pixel`, `zoom`: values under the cursor, and the magnification.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("statusBar")
        self.messageChanged.connect(lambda text: self.setToolTip(plain_tip(text)))
        self.pixel = QLabel(self)
        self.pixel.setObjectName("pixel")
        self.pixel.setContentsMargins(12, 0, 0, 0)
        self.pixel.setAccessibleName("Position and values under the cursor")
        self.zoom = QLabel(self)
        self.zoom.setObjectName("zoom")
        self.zoom.setAccessibleName("Zoom")
        for label in (self.pixel, self.zoom):
            self.addPermanentWidget(label)

    def changeEvent(self, event: QEvent) -> None:
        """Give the labels the room that another size of text needs."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            for label in (self.pixel, self.zoom):
                label.updateGeometry()

    def clear_figures(self) -> None:
        """Empty the labels on the right, which belong to a page."""
        self.pixel.clear()
        self.zoom.clear()

    def withdraw(self, message: str) -> None:
        """Clear the message if it is still this one."""
        if message and self.currentMessage() == message:
            self.clearMessage()

    def shown_message(self) -> str:
        """Return as much of the message as there is room for."""
        return self.fontMetrics().elidedText(
            self.currentMessage(), Qt.TextElideMode.ElideRight, self._area().width()
        )

    def _area(self) -> QRect:
        labels = (label.x() for label in self.findChildren(QLabel) if label.isVisible())
        right = min(labels, default=self.width()) - _MARGIN
        return QRect(_MARGIN, 0, right - _MARGIN, self.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        option = QStyleOption()
        option.initFrom(self)
        panel = QStyle.PrimitiveElement.PE_PanelStatusBar
        self.style().drawPrimitive(panel, option, painter, self)
        painter.setPen(self.palette().windowText().color())
        painter.drawText(self._area(), Qt.AlignmentFlag.AlignVCenter, self.shown_message())
