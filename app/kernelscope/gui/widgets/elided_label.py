"""A label that never asks for more room than it gets."""

from __future__ import annotations

from PySide6 import QtGui
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from kernelscope.base.text import printable


def plain_tip(text: str) -> str:
    """Return a tooltip that shows a text as it is: Qt takes names such as “<b>.tif” for markup.

    Control characters are escaped: one of them shows a name backwards.
    """
    text = printable(text)
    return QtGui.Qt.convertFromPlainText(text) if QtGui.Qt.mightBeRichText(text) else text


class ElidedLabel(QLabel):
    """One line that ends in “…” where there is no room; the tooltip has it all."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = self._brief = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def set_full_text(self, text: str, brief: str = "") -> None:
        """Show `brief`, or without one `text`; the tooltip and screen readers have `text`."""
        if (text, brief) == (self._text, self._brief):
            return
        self._text, self._brief = text, brief
        self.setToolTip(plain_tip(text))
        self.setAccessibleDescription(text)
        self._elide()

    def sizeHint(self) -> QSize:
        """Return the height of a line of the font.

        Letters of another script may be taller; two labels side by side stay level all the same.
        """
        return QSize(super().sizeHint().width(), self.fontMetrics().height() + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(super().minimumSizeHint().width(), self.sizeHint().height())

    @property
    def full_text(self) -> str:
        return self._text

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        metrics, room = self.fontMetrics(), self.contentsRect().width()
        text = self._brief or self._text
        self.setText(metrics.elidedText(text, Qt.TextElideMode.ElideRight, room))
