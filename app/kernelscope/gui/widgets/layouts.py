"""Widgets that hold others: pages, a boundary for requests of layout, a row that folds."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QBoxLayout, QScrollArea, QStackedWidget, QWidget, QWidgetItem

from kernelscope.gui.widgets.parts import dressed, in_row


class FoldingRow(QWidget):
    """Two groups of controls, the second at the right if `apart`, below in a narrow window."""

    def __init__(
        self,
        first: Sequence[QWidget],
        second: Sequence[QWidget],
        parent: QWidget | None = None,
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
            row.addStretch(1)  # or lists would take the whole of a row that is folded
            self._box.addWidget(group, int(not apart and group is self._groups[1]))
        if apart:
            self._box.insertStretch(1, 1)

    def minimumSizeHint(self) -> QSize:
        return QSize(max(self._widths()), self._box.minimumSize().height())

    def append(self, widget: QWidget) -> None:
        """Add a control to the first group."""
        layout = self._groups[0].layout()
        assert isinstance(layout, QBoxLayout)
        layout.insertWidget(layout.count() - 1, widget)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fold()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # a control came or went
            self._fold()
        return super().event(event)

    def _fold(self) -> None:
        direction = QBoxLayout.Direction
        fits = sum(self._widths()) + self._box.spacing() <= self.width()
        self._box.setDirection(direction.LeftToRight if fits else direction.TopToBottom)

    def _widths(self) -> list[int]:
        return [group.minimumSizeHint().width() for group in self._groups]


class Scrolled(QScrollArea):
    """Scrolls a column of controls up and down only: as wide as they need."""

    def __init__(self, content: QWidget, name: str, accessible: str) -> None:
        super().__init__()
        dressed(self, name, accessible)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setWidget(content)
        self._content = content

    def minimumSizeHint(self) -> QSize:
        bar = self.verticalScrollBar().sizeHint().width()
        width = self._content.minimumSizeHint().width() + bar
        return QSize(width, super().minimumSizeHint().height())


class Pages(QStackedWidget):
    """Shows one of several pages, and is not kept wide by those that are hidden."""

    def __init__(self) -> None:
        super().__init__()
        self.currentChanged.connect(self.updateGeometry)

    def minimumSizeHint(self) -> QSize:
        current = self.currentWidget()
        return current.minimumSizeHint() if current is not None else QSize()


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
